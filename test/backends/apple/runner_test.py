#!/usr/bin/env python3
"""`mlc run` on a faulty Core ML: the stub of stub/README.md, configured by MLC_STUB. A run completes, gives correct results for the
predictions that succeeded, and reports the failure of each other prediction and every decision."""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import onnx_wire as wire
from build_fleet import Fleet
from driver import BUILD, SKIPPED, expect, run, run_tests
from speaking_models import EOS, Chain, Speaker, ids_of

RUNNER = BUILD / "bin" / "mlc-stub"


def package(folder, name="m"):
    """y = softmax(relu(x w)), z = relu(x w)."""
    weights = np.random.default_rng(1).standard_normal((16, 5)).astype("f4")
    nodes = [wire.node("MatMul", ["x", "w"], ["p"]), wire.node("Relu", ["p"], ["z"]), wire.node("Softmax", ["z"], ["y"])]
    values = [[wire.value_info("x", wire.FLOAT, [3, 16])],
              [wire.value_info("y", wire.FLOAT, [3, 5]), wire.value_info("z", wire.FLOAT, [3, 5])]]
    (folder / f"{name}.onnx").write_bytes(
        wire.model(wire.graph(nodes, *values, [wire.tensor("w", wire.FLOAT, [16, 5], raw=weights.tobytes())])))
    expect(run("compile", folder / f"{name}.onnx", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def core_ml(folder, *arguments, stub="", code=0, environment=None):
    settings = {"MLC_STUB": stub, "MLC_CACHE_DIR": str(folder / "cache"), "OMP_WAIT_POLICY": "passive", **(environment or {})}
    command = () if arguments[0] in ("gate", "cache", "doctor") else ("run",)
    return expect(run(*command, *arguments, "--json", program=RUNNER, environment=settings), code).answer


UNKIND = "pad-arrays,pad-outputs,offset-outputs,mutable-strides,moved-bytes,handler-thread,delete-compiled,nil-devices,nil-cost"


def test_twenty_predictions(folder):
    m = package(folder)
    alone = core_ml(folder, m, "--units", "reference", "--output-dir", folder / "alone")
    for system in ("26.0", "13.2"):
        found = core_ml(folder, m, "--units", "all", "--iterations", 20, "--timeout", 2500, "--compare", "reference",
                        "--output-dir", folder / system,
                        stub=f"{UNKIND},no-ane,missing-function,throw-at=3,hang-at=8,late-write-ms=5000,macos={system}", code=4)
        telemetry = found["telemetry"]
        # The breaker judges from the tenth prediction on: 8 of 10 succeeded.
        assert telemetry["predictions"] == 20 and telemetry["succeeded"] == 8 and telemetry["failed"] == 2, telemetry
        assert telemetry["failures"] == {"exception": 1, "timeout": 1, "fallback": 10}, telemetry
        assert telemetry["fallbacks"] == 10 and telemetry["loads"] >= 3, telemetry
        assert [(f["prediction"], f["failure"]) for f in found["failures"]] == [(3, "exception"), (8, "timeout")], found["failures"]
        assert found["breaker"]["state"] == "open" and "80 % success" in found["breaker"]["changes"][0]["reason"], found["breaker"]
        assert found["compared"]["verdict"] == "PASSED" and found["exit_code"] == 4
        placement = found["placement"]
        assert placement["asked"] == "all"
        if system == "13.2":
            assert "14.4" in placement["unknown_because"], placement
        else:
            assert set(placement["operations"]) == {"unknown"}, placement
        for name in ("y", "z"):
            ours, its = np.load(folder / system / f"{name}.npy"), np.load(folder / "alone" / f"{name}.npy")
            assert np.array_equal(ours, its), (ours, its)
    assert alone["telemetry"]["succeeded"] == 1


def test_what_is_not_there_is_said(folder):
    m = package(folder)
    result = core_ml(folder, m, "--function", "other", code=1)
    assert result["errors"][0]["id"] == "bad-name", result
    core_ml(folder, m, "--low-precision", "--reshapes", "frequent", "--specialization", "fast-prediction")
    result = core_ml(folder, m, "--specialization", "fast-prediction", stub="macos=14.4", code=1)
    assert result["errors"][0]["id"] == "needs-system" and "15" in result["errors"][0]["text"], result
    result = core_ml(folder, m, "--units", "ane", stub="no-ane", code=1)
    assert result["errors"][0]["id"] == "needs-system" and "Neural Engine" in result["errors"][0]["text"], result
    assert core_ml(folder, folder / "m.onnx")["units"] == "reference"
    result = core_ml(folder, folder / "m.onnx", "--units", "all", code=2)
    assert "Core ML runs packages" in result["errors"][0]["text"], result
    for switch, text in (("load-fails", "load"), ("compile-fails", "compil"), ("load-throws", ""), ("compile-throws", "")):
        result = core_ml(folder, package(folder, switch), stub=switch, code=1)
        assert result["errors"][0]["id"] == "runtime-failed" and text in result["errors"][0]["text"].lower(), (switch, result)


def test_all_numbers_are_right(folder):
    m = package(folder)
    found = core_ml(folder, m, "--compare", "reference", "--operations", "--iterations", 3, "--jobs", 2, stub=UNKIND)
    assert found["compared"]["verdict"] == "PASSED", found["compared"]
    rows = found["compared"]["operations"]
    assert len(rows) >= 3 and all(row["within"] for row in rows), rows
    for switch in ("missing-output", "wrong-shape", "wrong-type"):
        result = core_ml(folder, m, stub=switch, code=1)
        assert result["errors"][0]["id"] == "schema-mismatch", (switch, result)
    for stub in ("error-at=1", "throw-at=1", "throw-cpp-at=1"):
        assert core_ml(folder, m, stub=stub, code=1)["errors"][0]["id"] == "runtime-failed"
        found = core_ml(folder, m, "--iterations", 3, stub=stub, code=1)
        assert found["telemetry"]["failures"] == {"exception": 1} and found["telemetry"]["succeeded"] == 2, found["telemetry"]


def test_units_asked_for_and_met(folder):
    m = package(folder)
    found = core_ml(folder, m, "--units", "ane", "--require-units")
    assert found["placement"]["elsewhere"] == [] and found["placement"]["operations"], found["placement"]
    found = core_ml(folder, m, "--units", "cpu", "--require-units")
    assert set(found["placement"]["operations"]) == {"cpu"}, found["placement"]
    core_ml(folder, m, "--units", "ane", "--require-units", stub="nil-devices", code=3)
    core_ml(folder, m, "--units", "ane", "--require-units", stub="no-plan", code=3)
    found = core_ml(folder, m, "--units", "sweep", "--iterations", 5)
    assert [row["units"] for row in found["sweep"]] == ["cpu", "ane", "gpu", "all"] and found["recommended"], found
    found = core_ml(folder, m, "--units", "sweep", "--iterations", 5, stub="no-ane,no-gpu")
    assert [row["units"] for row in found["sweep"]] == ["cpu", "all"], found
    found = core_ml(folder, m, "--units", "sweep", "--iterations", 5, "--timeout", 2500, stub="hang-at=2")
    assert found["recommended"] != "cpu", found["why"]


def test_bundles_and_the_cache(folder):
    m = package(folder)
    expect(run("verify", folder / "m.onnx", m, "--bundle", folder / "b"), 0)
    found = core_ml(folder, "--bundle", folder / "b", stub=UNKIND)
    assert found["ok"] and found["units"] == "all", found
    assert "compile_ms" not in core_ml(folder, m)  # the package in the bundle is the same
    assert "compile_ms" in core_ml(folder, m, environment={"MLC_CACHE_DIR": str(folder / "another")})
    assert "compile_ms" not in core_ml(folder, m, environment={"MLC_CACHE_DIR": str(folder / "another")})
    found = core_ml(folder, "--bundle", folder / "b", stub="throw-at=1", code=1)
    found = core_ml(folder, "--bundle", folder / "b", environment={"MLC_CIRCUIT_BREAKER": "open"}, code=1)
    assert found["errors"][0]["id"] == "circuit-open", found
    found = core_ml(folder, "--bundle", folder / "b", "--load-timeout", 300, stub="compile-hangs",
                    environment={"MLC_CACHE_DIR": str(folder / "a third")}, code=4)
    assert found["errors"][0]["id"] == "timeout", found
    # Compiled by mlc and compiled by the runtime: the same report.
    expect(run("precompile", m, "-o", folder / "m.mlmodelc"), 0)
    assert core_ml(folder, m, "--compare", folder / "m.mlmodelc")["compared"]["verdict"] == "PASSED"


def test_the_breaker_is_told(folder):
    m = package(folder)
    found = core_ml(folder, m, "--iterations", 4, environment={"MLC_CIRCUIT_BREAKER": "open"})
    assert found["telemetry"]["fallbacks"] == 4, found["telemetry"]
    found = core_ml(folder, m, "--iterations", 20, stub="error-at=1,error-at=2,error-at=3",
                    environment={"MLC_CIRCUIT_BREAKER": "closed"}, code=1)
    assert found["telemetry"]["succeeded"] == 17 and found["telemetry"]["fallbacks"] == 0, found["telemetry"]
    result = core_ml(folder, m, environment={"MLC_CIRCUIT_BREAKER": "ajar"}, code=2)
    assert "ajar" in json.dumps(result), result


def test_what_hung_writes_late(folder):
    """Late writes of a hanging prediction do not affect later predictions."""
    found = core_ml(folder, package(folder), "--soak", "3s", "--timeout", 1000, "--compare", "reference",
                    stub="pad-outputs,hang-at=20,late-write-ms=1500", code=4)
    assert found["telemetry"]["failures"] == {"timeout": 1}, found["telemetry"]
    assert found["compared"]["verdict"] == "PASSED", found["compared"]


def test_what_another_engine_made_passes_nothing(folder):
    m = package(folder)
    is_open = {"MLC_CIRCUIT_BREAKER": "open"}
    history = folder / "h.jsonl"
    core_ml(folder, m, "--iterations", 20, "--history", history)
    found = core_ml(folder, m, "--iterations", 4, "--compare", "reference", environment=is_open, code=3)
    assert "compared" not in found and {o["runtime"] for o in found["outputs"]} == {"mlc's engine"}, found
    found = core_ml(folder, m, "--iterations", 4, "--baseline", history, environment=is_open, code=3)
    assert not found["baseline"]["within"] and "predictions_per_second" not in found, found
    found = core_ml(folder, m, "--iterations", 20, "--memory-mark", 1, code=3)
    assert "memory" in found["breaker"]["changes"][0]["reason"], found["breaker"]
    found = core_ml(folder, m, "--units", "sweep", "--iterations", 20, "--memory-mark", 1, code=3)
    assert "recommended" not in found, found["why"]


def test_units_are_those_asked_for(folder):
    m = package(folder)
    for units in ("all", "cpu", "gpu", "ane"):
        core_ml(folder, m, "--units", units, "--require-units", stub="nil-devices", code=3)
    found = core_ml(folder, m, "--units", "ane", "--require-units", stub="cpu-op=softmax", code=3)
    assert [e["op"] for e in found["placement"]["elsewhere"]] == ["softmax"], found["placement"]
    core_ml(folder, m, "--units", "all", "--require-units", stub="cpu-op=softmax")


def test_whatever_hangs_ends(folder):
    m = package(folder)
    expect(run("precompile", m, "-o", folder / "m.mlmodelc"), 0)
    result = core_ml(folder, package(folder, "new"), "--load-timeout", 300, stub="compile-hangs", code=4)
    assert result["errors"][0]["id"] == "timeout", result
    result = core_ml(folder, m, "--timeout", 2500, "--compare", folder / "m.mlmodelc", stub="hang-at=1", code=4)
    assert result["errors"][0]["id"] == "timeout", result
    found = core_ml(folder, m, "--timeout", 2500, "--compare", "reference", "--operations", stub="hang-at=2", code=4)
    assert found["compared"]["verdict"] == "PASSED" and found["failures"][0]["id"] == "timeout", found
    found = core_ml(folder, m, "--timeout", 2500, "--iterations", 12, "--jobs", 6, stub="hang-at=2,hang-at=5", code=4)
    assert found["telemetry"]["failures"]["timeout"] == 2, found["telemetry"]


def test_gates(folder):
    m = package(folder)
    gate = lambda letter, *words, **settings: {
        check["name"]: check for check in core_ml(folder, "gate", letter, m, *words, **settings)["models"][0]["checks"]}
    verdicts = lambda checks: {name: check["verdict"] for name, check in checks.items()}
    checks = gate("b", "--p99-ms", 10000, "--source", folder / "m.onnx", stub=UNKIND)
    assert verdicts(checks) == {"schema": "pass", "timeout": "pass", "p99": "pass", "parity": "pass"}, checks
    checks = gate("b", "--p99-ms", 10000, stub="wrong-shape", code=3)
    assert verdicts(checks)["schema"] == "fail", checks
    checks = gate("a", "--cycles", 40, "--load-timeout", 300, stub="compile-hangs", code=3)
    assert "300 ms" in json.dumps(checks), checks
    checks = gate("d", "--duration", "1s", "--timeout", 300, stub="hang-at=5", code=3)
    assert checks["hangs"]["verdict"] == "fail" and "prediction 5" in checks["hangs"]["text"], checks
    # The stub, not the machine, determines the duration of a prediction. A check that cannot be
    # judged does not pass (exit code 1).
    checks = gate("c", "--iterations", 20, stub="nil-devices,device-ms=50", code=3)
    assert verdicts(checks) == {"speed": "fail", "coverage": "not-applicable"}, checks
    checks = gate("c", "--iterations", 20, stub="nil-devices,cpu-ms=50", code=1)
    assert verdicts(checks) == {"speed": "pass", "coverage": "not-applicable"}, checks
    checks = gate("c", "--iterations", 20, stub="cpu-op=softmax,cpu-ms=50", code=3)
    assert verdicts(checks) == {"speed": "pass", "coverage": "fail"} and checks["coverage"]["value"] < 90, checks


def test_gate_b_of_open_sizes_and_pictures(folder):
    relu = [wire.node("Relu", ["x"], ["y"])]
    def compiled(name, dims, *options):
        (folder / f"{name}.onnx").write_bytes(wire.model(wire.graph(
            relu, [wire.value_info("x", wire.FLOAT, dims)], [wire.value_info("y", wire.FLOAT, dims)])))
        expect(run("compile", folder / f"{name}.onnx", "-o", folder / f"{name}.mlpackage", *options), 0)
        return folder / f"{name}.mlpackage"
    for m in (compiled("open", ["n", 8]), compiled("picture", [1, 3, 20, 24], "--image", "x=rgb,1/255,0"),
              compiled("gray", [1, 1, 20, 24], "--image", "x=gray,1/255,0")):
        found = core_ml(folder, "gate", "b", m, "--p99-ms", 10000)
        assert found["verdict"] == "pass", (m, found)


def test_what_nobody_computes_runs_nowhere(folder):
    m = package(folder)
    for stub in ("folded-op=relu", "nan-cost"):
        core_ml(folder, m, "--units", "ane", "--require-units", stub=stub)
    core_ml(folder, m, "--units", "ane", "--require-units", stub="nil-devices,nil-cost", code=3)


def test_wrong_numbers_open_the_breaker(folder):
    found = core_ml(folder, package(folder), "--iterations", 20, "--compare", "reference", stub="wrong-numbers", code=3)
    telemetry = found["telemetry"]
    assert telemetry["failures"] == {"parity": 10, "fallback": 10} and telemetry["succeeded"] == 0, telemetry
    assert "0 % success" in found["breaker"]["changes"][0]["reason"], found["breaker"]


def test_what_another_machine_built(folder):
    """`mlc build --test` runs packages with Core ML, and compares its latency with a baseline of these units."""
    fleet = Fleet(folder)
    fleet.recipes["n"]["variants"][0]["limits"] = {"latency_increase_pct": 1000}
    fleet.write()
    fleet.build()
    shutil.rmtree(fleet.out / ".mlc-build")

    def tested(stub="", code=0):
        answer = expect(run("build", fleet.models, "-o", fleet.out, "--test", "--baselines", folder / "baselines", "--json", program=RUNNER,
                            environment={"MLC_STUB": stub, "MLC_CACHE_DIR": str(folder / "cache")}), code).answer
        return {v["name"]: v for recipe in answer["recipes"] for v in recipe["variants"]}

    first = tested()
    assert [v["status"] for v in first.values()] == ["passed"] * 3 and "no baseline" in first["n-only"]["checks"][-1]["figures"], first
    stored = json.loads(next((folder / "baselines").rglob("n-only.json")).read_text())
    assert stored["machine"]["runtime"] == "Core ML" and stored["machine"]["units"] == "all", stored
    wrong = tested("wrong-numbers", code=3)
    assert [v["status"] for v in wrong.values()] == ["failed"] * 3, wrong
    slow = tested(f"device-ms={20 * stored['median_ms'] + 20:.0f}", code=3)
    assert [v["status"] for v in slow.values()] == ["passed", "passed", "failed"] and not slow["n-only"]["checks"][-1]["ok"], slow


def test_a_trace_of_jobs(folder):
    core_ml(folder, package(folder), "--iterations", 12, "--jobs", 3, "--trace", folder / "t.json")
    events = [e for e in json.loads((folder / "t.json").read_text())["traceEvents"] if e["cat"] == "prediction"]
    assert len(events) == 12 and 1 <= len({e["tid"] for e in events}) <= 3, events
    for tid in {e["tid"] for e in events}:
        own = sorted((e["ts"], e["dur"]) for e in events if e["tid"] == tid)
        assert all(a + b <= c for (a, b), (c, _) in zip(own, own[1:])), own


def test_text_comes_from_it(folder):
    """Generates token by token with states; a source model does not need Core ML; a token that times out ends the answer."""
    model, m = Chain(ids_of("Ahelo, wrd!") + [EOS]).gguf(folder / "t.gguf"), folder / "t.mlpackage"
    expect(run("compile", model, "-o", m), 0)
    expect(run("compile", Speaker().gguf(folder / "s.gguf"), "-o", folder / "s.mlpackage"), 0)
    found = core_ml(folder, m, "--prompt", "A", "--units", "cpu")
    assert found["text"] == "helo, wrd!" and found["finish"] == "stop" and found["runtime"] == "Core ML", found
    assert found["units"] == "cpu" and "mode" not in found, found
    found, alone = [core_ml(folder, folder / "s.mlpackage", "--prompt", "Once", "--generate", 20, *units)
                    for units in ((), ("--units", "reference"))]
    assert found["runtime"] == "Core ML" and found["tokens"] == alone["tokens"], (found, alone)
    assert core_ml(folder, model, "--prompt", "A")["runtime"] != "Core ML"
    late = core_ml(folder, m, "--prompt", "A", "--timeout", 2000, stub="hang-at=3", code=4)
    assert late["errors"][0]["id"] == "timeout", late
    text = folder / "text.txt"
    text.write_text("It was the best of times, it was the worst of times.")
    found, alone = [core_ml(folder, folder / "s.mlpackage", "--perplexity", text, "--context", 16, *units)
                    for units in ((), ("--units", "reference"))]
    assert found["runtime"] == "Core ML" and abs(found["perplexity"] / alone["perplexity"] - 1) < 1e-3, (found, alone)


if not RUNNER.exists():
    print("runner on the stub of Core ML: skipped, mlc-stub was not built (scripts/setup --dev installs what it needs)")
    sys.exit(SKIPPED)
sys.exit(run_tests(globals(), "mlc-run on a Core ML that misbehaves"))
