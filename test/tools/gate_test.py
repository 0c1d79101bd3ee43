#!/usr/bin/env python3
"""Tests verdicts and exit codes of `mlc gate` on the reference engine. The limits are tested in gate_test.cpp with a fake runtime."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from coreml_test import changed, package
from driver import expect, run, run_tests
from command_line_test import Folder
from interface_test import functions


def gate(code, *words):
    """Returns the verdicts of the first model by check."""
    answer = expect(run("gate", *words, "--json", timeout=120), code).answer
    assert {"pass": 0, "fail": 3, "not-applicable": 1}[answer["verdict"]] == code, answer
    assert answer["models"][0]["runtime"] == "mlc's engine" and answer["units"] == "reference", answer
    return {check["name"]: check for check in answer["models"][0]["checks"]}


def verdicts(checks):
    return {name: check["verdict"] for name, check in checks.items()}


def test_a(folder):
    a = package(folder)
    before = sorted(pathlib.Path(folder.path).rglob("*"))
    # `scripts/nightly` runs 10,000.
    checks = gate(0, "a", a, "--cycles", 500)
    assert set(verdicts(checks)) == {"cycles", "memory growth", "cache hits", "compile p99"}, checks
    assert abs(checks["cache hits"]["value"] - 100 * 499 / 500) < 1e-9, checks
    assert checks["memory growth"]["limit"] == 100 and checks["compile p99"]["limit"] == 5, checks
    assert before == sorted(pathlib.Path(folder.path).rglob("*"))
    # Too few predictions for a verdict, and a model that has nothing to compile.
    assert verdicts(gate(1, "a", a, "--cycles", 20))["memory growth"] == "not-applicable"
    few = gate(1, "a", a, "--cycles", 5)
    assert few["cache hits"]["verdict"] == "not-applicable" and few["cycles"]["count"] == 5, few
    expect(run("precompile", a, "-o", folder / "a.mlmodelc"), 0)
    bundle = expect(run("gate", "a", folder / "a.mlmodelc", "--cycles", 20, "--json"), 1).answer
    assert "pass its package" in json.dumps(bundle), bundle


def test_b(folder):
    a = package(folder)
    checks = gate(0, "b", a, "--p99-ms", 10000, "--source", folder / "a.onnx")
    assert verdicts(checks) == {"schema": "pass", "timeout": "pass", "p99": "pass", "parity": "pass"}, checks
    assert checks["p99"]["count"] == 100, checks
    checks = gate(1, "b", a, "--p99-ms", 10000)
    assert verdicts(checks)["parity"] == "not-applicable" and "--source" in checks["parity"]["text"], checks
    assert verdicts(gate(3, "b", a, "--p99-ms", 0.00001, "--source", folder / "a.onnx"))["p99"] == "fail"
    package(folder, "other", weight=changed(0, 0, 1))
    checks = gate(3, "b", a, "--p99-ms", 10000, "--source", folder / "other.onnx")
    text = checks["parity"]["text"]
    assert verdicts(checks)["parity"] == "fail" and "FAILED" in text, checks
    assert 'output "y": max error' in text and "budget max error" in text, text
    # Import options apply to the source, not to the package.
    checks = gate(0, "b", a, "--p99-ms", 10000, "--source", folder / "a.onnx", "--data-root", folder.path, "--outputs", "y")
    assert verdicts(checks)["parity"] == "pass", checks


def test_one_of_several_functions(folder):
    m = functions(folder)
    for words, name in (((), "f"), (("--function", "h"), "h")):
        result = run("gate", "d", m, *words, "--duration", "100ms", "--json", timeout=120)
        model = result.answer["models"][0]
        assert model["function"] == name and model["checks"][1]["value"] == 100, result


def test_the_document_says_what_was_asked(folder):
    a = package(folder)
    answer = expect(run("gate", "b", a, "--p99-ms", 12.5, "--iterations", 7, "--timeout", 9000, "--json"), 1).answer
    assert answer["options"] == {"timeout_ms": 9000, "iterations": 7, "p99_ms": 12.5}, answer["options"]
    assert answer["models"][0]["function"] == "main", answer
    answer = expect(run("gate", "c", a, "--coverage", 99.5, "--json"), 1).answer
    assert answer["options"]["coverage_percent"] == 99.5, answer
    assert "function main" in expect(run("gate", "c", a, "--function", "main"), 1).stdout
    assert "says why).\n" in expect(run("gate", "--help"), 0).stdout


def test_one_bad_model_of_two(folder):
    a, bad = package(folder), package(folder, "bad")
    (next(bad.rglob("*.mlmodel"))).write_bytes(b"no model")
    answer = expect(run("gate", "c", bad, a, folder / "none.mlpackage", "--json"), 3).answer
    first, second, third = answer["models"]
    assert [check["name"] for check in first["checks"]] == ["loads"] and first["verdict"] == "fail", first
    assert first["checks"][0]["text"] and third["checks"][0]["name"] == "loads", answer
    assert second["verdict"] == "not-applicable", second
    checks = gate(3, "c", a, "--function", "other")
    assert 'no function "other"' in checks["loads"]["text"], checks


def test_c(folder):
    checks = gate(1, "c", package(folder))
    assert set(verdicts(checks).values()) == {"not-applicable"} and "Core ML" in checks["speed"]["text"], checks


def test_d(folder):
    answer = run("gate", "d", package(folder), "--duration", "2s", "--json", timeout=120).answer
    checks = {check["name"]: check for check in answer["models"][0]["checks"]}
    assert verdicts(checks)["success rate"] == "pass" and checks["success rate"]["value"] == 100, checks
    assert verdicts(checks)["numbers"] == "pass" and "bit by bit" in checks["numbers"]["text"], checks
    assert checks["success rate"]["count"] >= 2 and checks["hangs"]["verdict"] == "pass", checks
    assert answer["options"]["duration_ms"] == 2000, answer


def test_several_models_and_the_table(folder):
    a, b = package(folder), package(folder, "b")
    shown = expect(run("gate", "c", a, b), 1, "gate c: not-applicable").stdout
    assert str(a) in shown and str(b) in shown and "on mlc's engine" in shown, shown


def test_usage(folder):
    a = package(folder)
    expect(run("gate", "e", a), 2, 'unknown gate "e"')
    expect(run("gate", "b", a), 2, "--p99-ms")
    expect(run("gate", "c", folder / "a.onnx"), 2, "source model")
    expect(run("gate", "c", a, "--units", "ane"), 1, "Core ML")
    expect(run("gate", "d", a, "--duration", "soon"), 2, "--duration")
    for option in ("--cycles", "--iterations"):
        expect(run("gate", "a" if option == "--cycles" else "b", a, option, "0"), 2, option)
    for value in ("0", "-1", "soon", "nan", "inf"):
        expect(run("gate", "b", a, "--p99-ms", value), 2, "--p99-ms")
    # Options that do not apply to a check, and import options without a source.
    values = {"--timeout": 100, "--cycles": 10000, "--iterations": 100, "--p99-ms": 5, "--source": folder / "a.onnx",
              "--coverage": 90, "--duration": "1h", "--outputs": "y", "--context": 4, "--data-root": folder.path}
    gates = dict.fromkeys(values, "b") | {"--timeout": "bcd", "--cycles": "a", "--iterations": "bc", "--coverage": "c", "--duration": "d"}
    for option, used in gates.items():
        for letter in "abcd":
            if letter not in used:
                expect(run("gate", letter, a, option, values[option]), 2, f"gate {letter} does not use {option}",
                       f"gate {', '.join(used)}")
    for option in ("--outputs", "--context", "--data-root"):
        expect(run("gate", "b", a, "--p99-ms", 5, option, values[option]), 2, f"{option} requires --source")
    for value in ("-1", "101", "much"):
        expect(run("gate", "c", a, "--coverage", value), 2, "--coverage")
    expect(run("gate", "d", a, "--timeout", "0"), 2, "--timeout")
    shutil.rmtree(a)
    expect(run("gate", "d", a), 3, "loads")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "gate", Folder))
