#!/usr/bin/env python3
"""`mlc gate`: verdicts and exit codes on mlc's engine. The limits themselves are in gate_test.cpp, on a fake runtime."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from coreml_test import changed, package
from driver import expect, run, run_tests
from driver_test import Folder


def gate(code, *words):
    """Verdicts by check, of the first model."""
    answer = expect(run("gate", *words, "--json", timeout=120), code).answer
    assert {"pass": 0, "fail": 3, "not-applicable": 1}[answer["verdict"]] == code, answer
    assert answer["models"][0]["runtime"] == "mlc's engine" and answer["units"] == "reference", answer
    return {check["name"]: check for check in answer["models"][0]["checks"]}


def verdicts(checks):
    return {name: check["verdict"] for name, check in checks.items()}


def test_a(folder):
    a = package(folder)
    before = sorted(pathlib.Path(folder.path).rglob("*"))
    # How memory grows in so few cycles says little: gate_test.cpp has that, and `scripts/nightly` real cycles.
    result = run("gate", "a", a, "--cycles", 60, "--json", timeout=120)
    assert result.code in (0, 3), result
    checks = {check["name"]: check for check in result.answer["models"][0]["checks"]}
    assert {"cycles": "pass", "cache hits": "pass", "compile p99": "pass"}.items() <= verdicts(checks).items(), checks
    assert abs(checks["cache hits"]["value"] - 100 * 59 / 60) < 1e-9, checks
    assert checks["memory growth"]["limit"] == 100 and checks["compile p99"]["limit"] == 5, checks
    assert before == sorted(pathlib.Path(folder.path).rglob("*"))
    # Too few to see anything, and a model of which there is nothing to compile.
    assert verdicts(gate(1, "a", a, "--cycles", 20))["memory growth"] == "not-applicable"
    expect(run("precompile", a, "-o", folder / "a.mlmodelc"), 0)
    bundle = expect(run("gate", "a", folder / "a.mlmodelc", "--cycles", 20, "--json"), 1).answer
    assert "name its package" in json.dumps(bundle), bundle


def test_b(folder):
    a = package(folder)
    checks = gate(0, "b", a, "--p99-ms", 10000, "--source", folder / "a.onnx")
    assert set(verdicts(checks).values()) == {"pass"} and list(checks) == ["schema", "timeout", "p99", "parity"], checks
    checks = gate(1, "b", a, "--p99-ms", 10000)
    assert verdicts(checks)["parity"] == "not-applicable" and "--source" in checks["parity"]["text"], checks
    assert verdicts(gate(3, "b", a, "--p99-ms", 0, "--source", folder / "a.onnx"))["p99"] == "fail"
    package(folder, "other", weight=changed(0, 0, 1))
    checks = gate(3, "b", a, "--p99-ms", 10000, "--source", folder / "other.onnx")
    assert verdicts(checks)["parity"] == "fail" and "FAILED" in checks["parity"]["text"], checks


def test_c(folder):
    checks = gate(1, "c", package(folder))
    assert set(verdicts(checks).values()) == {"not-applicable"} and "Core ML" in checks["speed"]["text"], checks


def test_d(folder):
    answer = run("gate", "d", package(folder), "--duration", "2s", "--json", timeout=120).answer
    checks = {check["name"]: check for check in answer["models"][0]["checks"]}
    assert verdicts(checks)["success rate"] == "pass" and checks["success rate"]["value"] == 100, checks
    assert verdicts(checks)["numbers"] == "pass" and "bit by bit" in checks["numbers"]["text"], checks


def test_several_models_and_the_table(folder):
    a, b = package(folder), package(folder, "b")
    shown = expect(run("gate", "c", a, b), 1, "gate c: not-applicable").stdout
    assert str(a) in shown and str(b) in shown and "on mlc's engine" in shown, shown


def test_usage(folder):
    a = package(folder)
    expect(run("gate", "e", a), 2, 'there is no gate "e"')
    expect(run("gate", "b", a), 2, "--p99-ms")
    expect(run("gate", "c", folder / "a.onnx"), 2, "source model")
    expect(run("gate", "c", a, "--units", "ane"), 1, "Core ML")
    expect(run("gate", "d", a, "--duration", "soon"), 2, "--duration")
    for option in ("--cycles", "--iterations"):
        expect(run("gate", "a", a, option, "0"), 2, option)
    shutil.rmtree(a)
    expect(run("gate", "d", a), 1)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "gate", Folder))
