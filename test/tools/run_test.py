#!/usr/bin/env python3
"""Tests the measurements of `mlc run`: parts and totals, baselines, histories, comparison, jobs, soak tests, time limits."""
import json
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import json_schema
import onnx_wire as wire
from driver import MLC, ROOT, expect, run, run_tests

MLC_RUN = MLC.parent / "mlc-run"
QUIET = {"OMP_WAIT_POLICY": "passive"}


def constant(name, array):
    dtype = {"f": wire.FLOAT, "i": wire.INT64, "b": wire.BOOL}[array.dtype.kind]
    return wire.tensor(name, dtype, array.shape, raw=array.tobytes())


def product(path, scale=1.0, size=(2, 16)):
    """An ONNX file: y = softmax(x w)."""
    weights = (np.random.default_rng(1).standard_normal((size[1], 4)) * scale).astype("f4")
    nodes = [wire.node("MatMul", ["x", "w"], ["p"]), wire.node("Softmax", ["p"], ["y"])]
    values = [[wire.value_info("x", wire.FLOAT, size)], [wire.value_info("y", wire.FLOAT, [size[0], 4])]]
    path.write_bytes(wire.model(wire.graph(nodes, *values, [constant("w", weights)])))
    return path


def package(folder, name="m", **how):
    expect(run("compile", product(folder / f"{name}.onnx", **how), "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def loop(folder, times):
    """A model that counts to `times`, so that its duration can be chosen."""
    body = wire.graph([wire.node("Identity", ["go"], ["again"]), wire.node("Add", ["v", "one"], ["w"])],
                      [wire.value_info("i", wire.INT64, []), wire.value_info("go", wire.BOOL, []),
                       wire.value_info("v", wire.FLOAT, [1])],
                      [wire.value_info("again", wire.BOOL, []), wire.value_info("w", wire.FLOAT, [1])], [])
    nodes = [wire.node("Loop", ["times", "true", "x"], ["y"], body=(body,))]
    constants = [constant("times", np.array(times, "i8")), constant("true", np.array(True)),
                 constant("one", np.ones(1, "f4"))]
    (folder / "loop.onnx").write_bytes(wire.model(wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [1])],
                                                             [wire.value_info("y", wire.FLOAT, [1])], constants)))
    return folder / "loop.onnx"


def answer(*arguments, code=0, **how):
    return expect(run("run", *arguments, "--json", environment=QUIET, **how), code).answer


def test_parts_are_the_whole(folder):
    m = package(folder, size=(512, 512))
    started = time.monotonic()
    found = answer(m, "--iterations", 8000, "--warmup", 5, "--trace", folder / "t.json", "--output-dir", folder / "out")
    lasted = 1000 * (time.monotonic() - started)
    parts, whole = found["phases_ms"], found["whole_ms"]
    assert abs(sum(parts.values()) - whole) <= 0.02 * whole, (parts, whole)
    assert found["read_ms"] > 0 and abs(found["read_ms"] - parts["read"]) <= 0.1 * whole, (found["read_ms"], parts)
    assert parts["other"] <= 0.02 * whole, parts
    assert whole <= lasted, (whole, lasted)
    times = found["timings_ms"]
    predicted = sum(times[part]["mean"] for part in times) * 8000
    assert 0.8 * parts["predict"] <= predicted <= parts["predict"], (predicted, parts)
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    phases = [e for e in events if e["cat"] == "phase"]
    assert abs(sum(e["dur"] for e in phases) / 1000 - (whole - parts["other"])) < 0.001 * whole
    inside = [e for e in events if e["cat"] == "prediction"]
    assert len(inside) == 8005, len(inside)
    predict = next(e for e in phases if e["name"] == "predict")
    assert all(e["ts"] >= predict["ts"] for e in inside[5:]) and inside[0]["ts"] < predict["ts"]


def test_statistics_are_of_the_runs(folder):
    m = package(folder)
    found = answer(m, "--iterations", 7)["timings_ms"]["predict"]
    assert found["count"] == 7
    assert found["min"] <= found["p50"] <= found["p90"] <= found["p95"] <= found["p99"] <= found["max"], found
    assert found["p99"] == found["max"] and found["min"] <= found["mean"] <= found["max"], found
    expect(run("run", m, "--iterations", 7), 0, "7 runs are too few", "--iterations 20")
    assert "too few" not in run("run", m, "--iterations", 30).stdout
    assert "too few" not in run("run", m).stdout
    expect(run("run", m, "--iterations", 0), 2, "--iterations")


def test_profile_names_the_operators(folder):
    m = package(folder)
    shown = expect(run("run", m, "--profile", "--iterations", 3, "--trace", folder / "t.json"), 0, "softmax", "share").stdout
    assert " 1 " in shown, shown
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    operations = {e["name"] for e in events if e["cat"] == "operation"}
    assert {"softmax"} <= operations, operations
    expect(run("run", m, "--trace", folder / "no" / "t.json"), 1, "file-io")


def test_a_baseline_says_slower(folder):
    m = package(folder)
    history = folder / "h.jsonl"
    for _ in range(2):
        answer(m, "--iterations", 20, "--history", history)
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    # An incomplete line of an interrupted writer is removed; a line that only lacks its newline stays.
    whole = history.read_text()
    history.write_text(whole + whole[:100])
    answer(m, "--iterations", 20, "--history", history)
    assert history.read_text().startswith(whole) and len(history.read_text().splitlines()) == 3
    history.write_text("what is no history")
    answer(m, "--iterations", 20, "--history", history)
    assert history.read_text().startswith("what is no history\n{")
    history.write_text(whole[:-1])
    answer(m, "--iterations", 20, "--history", history)
    assert history.read_text().startswith(whole) and len(history.read_text().splitlines()) == 3
    answer(m, "--iterations", 20, "--baseline", history, "--tolerance", 1000)
    assert len(lines) == 2 and lines[0]["model_hash"] == lines[1]["model_hash"] and lines[0]["time"].endswith("Z")
    for factor, code in ((1e4, 0), (1e-4, 3)):
        before = json.loads(json.dumps(lines[-1]))
        for name in before["timings_ms"]["predict"]:
            before["timings_ms"]["predict"][name] *= 1 if name == "count" else factor
        # A JSON document, and a history whose last line is used.
        (folder / "one.json").write_text(json.dumps(before, indent=2))
        (folder / "many.jsonl").write_text(json.dumps(lines[0] | {"units": "cpu"}) + "\n" + json.dumps(lines[0]) + "\n" +
                                           json.dumps(before) + "\n")
        for file in ("one.json", "many.jsonl"):
            found = answer(m, "--iterations", 20, "--baseline", folder / file, code=code)
            assert found["baseline"]["within"] == (code == 0) and found["exit_code"] == code, found["baseline"]
    expect(run("run", m, "--iterations", 20, "--baseline", folder / "one.json"), 3, "SLOWER", "more than 5 %")
    expect(run("run", m, "--iterations", 20, "--baseline", folder / "one.json", "--tolerance", 1000), 3)
    other = package(folder, "other", scale=2.0)
    expect(run("run", other, "--iterations", 20, "--baseline", folder / "one.json"), 3, "another package")
    # Records of something else are ignored, however slow it was.
    slow = before | {"timings_ms": {"predict": {name: value * (1 if name == "count" else 1e10)
                                                for name, value in before["timings_ms"]["predict"].items()}}}
    moved = slow | {"machine": slow["machine"] | {"chip": "Apple M9"}}
    for model, line, why in ((other, slow, "another package"), (m, moved, "another machine: Apple M9"), (m, slow, None)):
        (folder / "slow.json").write_text(json.dumps(line))
        words = [model, "--iterations", 20, "--baseline", folder / "slow.json"]
        if why:
            expect(run("run", *words), 3, why, "--force-baseline compares anyway")
            assert not answer(*words, code=3)["baseline"]["within"]
        expect(run("run", *words, "--force-baseline"), 0, why or "no slower", "no slower")
    expect(run("run", m, "--iterations", 20, "--baseline", folder / "slow.json"), 0, "no slower")
    # The last line for this machine and package, regardless of later lines for others.
    (folder / "many.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (slow, moved, slow | {"model_hash": "0" * 32})))
    answer(m, "--iterations", 20, "--baseline", folder / "many.jsonl")
    # The output of --json names its package.
    (folder / "printed.json").write_text(json.dumps(answer(m, "--iterations", 20)))
    expect(run("run", other, "--iterations", 20, "--tolerance", 1000, "--baseline", folder / "printed.json"), 3, "another package")
    for time in ("zzz", "2999-01-01T00:00:00Z"):
        (folder / "many.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (slow, slow | {"time": time})))
        expect(run("run", m, "--baseline", folder / "many.jsonl"), 1, "bad-file", "line 2", f'"time" is "{time}"')
    for text, why in (("", "no run of function"), ("x", "not JSON"), ("[1]", "not JSON"), ("{}", "not a report of mlc run"),
                      ('{"units": "reference", "function": "main"}', "not a report of mlc run")):
        (folder / "bad.json").write_text(text)
        expect(run("run", m, "--baseline", folder / "bad.json"), 1, "bad-file", why)
    expect(run("run", m, "--baseline", folder / "none.json"), 1, "file-io")


def test_options_without_effect(folder):
    m = package(folder)
    for hint in (["--low-precision"], ["--reshapes", "frequent"], ["--specialization", "fast-prediction"]):
        expect(run("run", m, "--units", "reference", *hint), 2, f"{hint[0]} applies to Core ML")
        expect(run("run", folder / "m.onnx", *hint), 2, f"{hint[0]} applies to Core ML")
    expect(run("run", m, "--tolerance", 9), 2, "--tolerance requires --baseline")
    expect(run("run", m, "--force-baseline"), 2, "--force-baseline requires --baseline")
    expect(run("run", m, "--units", "sweep", "--profile"), 2, "--units sweep cannot be combined with --profile")
    for option in (["--seed", 0], ["--input-range", "x=0..1"]):
        expect(run("run", m, "--tokens", "1", *option), 2, f"remove {option[0]}")
    for option in (["--generate", 0], ["--temperature", 0], ["--top-k", 0], ["--top-p", 1], ["--min-p", 0], ["--repetition-penalty", 1]):
        expect(run("run", m, *option), 2, f"{option[0]} requires --prompt")
    for option in (["--iterations", 1], ["--jobs", 1], ["--warmup", 0], ["--units", "sweep"]):
        for text in (["--prompt", "x"], ["--perplexity", "x"]):
            expect(run("run", m, *option, *text), 2, option[0])
    expect(run("run", m, "--perplexity", "x", "--seed", 1), 2, "remove --seed")
    for option in (["--function", "main"], ["--tokens", "1"], ["--seed", 1], ["--arithmetic", "exact"], ["--profile"], ["--warmup", 1],
                   ["--tolerance", 5], ["--shape", "x=1,1"], ["--iterations", 1], ["--low-precision"]):
        expect(run("run", "--bundle", folder / "b", *option), 2, f"remove {option[0]}")
    v = ["verify", folder / "m.onnx", m]
    expect(run(*v, "--worst", 3), 2, "--worst requires --layers")
    for option in (["--seed", 1], ["--input-range", "x=0..1"]):
        expect(run(*v, "--inputs", folder, *option), 2, f"remove {option[0]}")
    for option in (["--compiler-version", 1], ["--mil-version", 1]):
        expect(run("inspect", m, *option), 2, f"remove {option[0]}")
        expect(run("inspect", folder / "m.onnx", "--mil", *option), 2, f"remove {option[0]}")
    c = ["compile", folder / "m.onnx", "-o", folder / "c.mlpackage"]
    expect(run(*c, "--no-manifest", "--sha256"), 2, "remove --sha256")
    for option in (["--fp32-ops", "add"], ["--fp16-strict"]):
        expect(run(*c, "--precision", "fp32", *option), 2, "--precision fp32 cannot be combined")
    expect(run(*v, "--per-axis", 0, "--atol", 1), 2, "remove --per-axis")
    for option in (["--seed", 1], ["--samples", 2], ["--layers"], ["--budget", "fp16"], ["--dim", "a=1"]):
        expect(run("verify", "--result", folder / "r.json", *option), 2, f"remove {option[0]}")


def test_messages_name_no_library_and_no_nameless_tensor(folder):
    m = package(folder)
    for text in ("{", "[1", '{"model_hash": 5}', '{"units": {}}', "nothing"):
        (folder / "damaged").write_text(text)
        for option in (["run", m, "--baseline"], ["verify", folder / "m.onnx", m, "--budget"]):
            result = run(*option, folder / "damaged")
            shown = result.stdout + result.stderr
            assert result.code in (1, 2) and "json.exception" not in shown and "error[" in shown, (option, text, shown)


def test_what_was_measured_goes_into_the_manifest(folder):
    m = package(folder)
    history = folder / "h.jsonl"
    answer(m, "--iterations", 5, "--compare", "reference", "--history", history)
    line = json.loads(history.read_text())
    cpu = json.loads(json.dumps(line)) | {"units": "cpu"}
    for name in cpu["timings_ms"]["predict"]:
        cpu["timings_ms"]["predict"][name] = 3 * line["timings_ms"]["predict"][name]
    stranger = line | {"model_hash": "0" * 32}
    history.write_text("\n".join(map(json.dumps, (line, cpu, stranger))) + "\n")
    before = (folder / "m.manifest.json").read_text()
    found = expect(run("manifest", m, "--merge", history, "--json"), 0).answer
    assert (found["added"], found["replaced"], found["of_others"]) == (2, 0, 1), found
    manifest = json.loads((folder / "m.manifest.json").read_text())
    schema = json.loads((ROOT / "manifests" / "manifest.schema.json").read_text())
    assert not list(json_schema.errors(manifest, schema)), list(json_schema.errors(manifest, schema))
    mine, its = manifest["measured"]
    assert mine["units"] == "reference" and its["units"] == "cpu"
    assert abs(mine["speedup_vs_cpu"] - 3) < 1e-9 and "speedup_vs_cpu" not in its, manifest["measured"]
    assert mine["deltas"] == [{"output": "y", "max_error": 0.0, "rmse": 0.0}], mine
    # Merging the same line again replaces it; an older one does not.
    found = expect(run("manifest", m, "--merge", history, "--json"), 0).answer
    assert (found["added"], found["replaced"]) == (0, 2), found
    assert {k: v for k, v in manifest.items() if k != "measured"} == json.loads(before)
    history.write_text(json.dumps(stranger) + "\n")
    expect(run("manifest", m, "--merge", history), 3, "no usable result for this package (failed runs: 0, results of other packages: 1)")
    history.write_text("{}\n")
    expect(run("manifest", m, "--merge", history), 1, "bad-file", "line 1")
    other = package(folder, "other", scale=2.0)
    shutil.copy(folder / "other.manifest.json", folder / "m.manifest.json")
    expect(run("manifest", m, "--merge", history), 3, "does not belong to the package")
    (folder / "m.manifest.json").unlink()
    expect(run("manifest", m, "--merge", history), 1, "file-io")


def test_outputs_are_compared(folder):
    m, other = package(folder), package(folder, "other", scale=2.0)
    found = answer(m, "--compare", "reference")
    assert found["compared"]["verdict"] == "PASSED", found["compared"]
    expect(run("precompile", m, "-o", folder / "m.mlmodelc"), 0)
    assert answer(m, "--compare", folder / "m.mlmodelc")["compared"]["verdict"] == "PASSED"
    assert answer(m, "--compare", folder / "m.onnx")["compared"]["verdict"] == "PASSED"
    found = answer(m, "--compare", folder / "other.onnx", "--iterations", 3, code=3)
    assert found["telemetry"]["failures"] == {"parity": 3} and len(found["failures"]) == 3, found["telemetry"]
    assert answer(m, "--compare", other, code=3)["compared"]["verdict"] != "PASSED"
    (folder / "loose.json").write_text('{"max_error": 10, "rmse": 10}')
    answer(m, "--compare", other, "--budget", folder / "loose.json")
    expect(run("run", m, "--compare", folder / "none.onnx"), 1, "file-io")


def test_operations_are_compared(folder):
    m = package(folder)
    found = answer(m, "--compare", "reference", "--operations")["compared"]["operations"]
    assert len(found) >= 2 and all(row["within"] for row in found), found
    expect(run("run", m, "--compare", "reference", "--operations"), 0, "all values are within the budget")
    expect(run("run", m, "--operations"), 2, "--compare reference")
    expect(run("run", folder / "m.onnx", "--compare", "reference", "--operations"), 2, "is a source model")


def test_jobs_compute_the_same(folder):
    m = package(folder)
    found = answer(m, "--iterations", 200, "--jobs", 4, "--compare", "reference")
    assert found["telemetry"]["succeeded"] == 200 and not found["failures"], found["telemetry"]
    assert found["queue"]["submitted"] == 200 and found["queue"]["high_water"] <= 4, found["queue"]
    assert found["predictions_per_second"] > 0
    found = answer(m, "--iterations", 100, "--jobs", 8, "--timeout", 60000)
    assert found["telemetry"]["succeeded"] == 100 and not found["failures"], found["telemetry"]
    for bad in (0, -1, 257):
        expect(run("run", m, "--jobs", bad), 2, "--jobs")


def test_a_soak_watches_memory(folder):
    m = package(folder)
    soaks = [answer(m, "--soak", "1s") for _ in range(3)]
    found = soaks[0]
    assert 0.9 < found["phases_ms"]["predict"] / 1000 < 5, found["phases_ms"]
    assert found["iterations"] == found["telemetry"]["succeeded"] > 50, found["iterations"]
    assert found["timings_ms"]["predict"]["count"] == found["iterations"]
    # A record kept per prediction would take 10 kB per hundred predictions every time; growth caused by allocators varies.
    growth = min(soak["telemetry"]["growth_per_100_predictions"] for soak in soaks)
    assert growth < 8e3, [soak["telemetry"] for soak in soaks]
    for bad in ("1", "0s", "s", "1d", "-1s", "99999999999h"):
        expect(run("run", m, "--soak", bad), 2, "--soak")


def test_a_time_limit_ends_what_takes_long(folder):
    long = loop(folder, 2_000_000_000)
    result = run("run", long, "--timeout", 200, timeout=30)
    expect(result, 4, "error[timeout]")
    assert result.seconds < 10, result.seconds
    # The first ten fail; after that the circuit breaker rejects all.
    found = answer(long, "--timeout", 50, "--iterations", 20, timeout=60, code=4)
    telemetry = found["telemetry"]
    assert telemetry["succeeded"] == 0 and telemetry["failed"] == 10 and telemetry["refused"] == 10, telemetry
    assert found["failures"][0]["id"] == "timeout" and found["breaker"]["state"] == "open" and not found["outputs"], found
    for bad in (0, -1, 10**10, 2**63 - 1):
        expect(run("run", long, "--timeout", bad), 2, "--timeout")


def test_units_that_are_not_here(folder):
    m = package(folder)
    if os.uname().sysname == "Darwin":
        return
    for units in ("all", "cpu", "gpu", "ane"):
        expect(run("run", m, "--units", units), 1, "no-coreml", "--units reference")
    expect(run("run", m, "--units", "tpu"), 2, "sweep")
    found = answer(m, "--units", "sweep", "--iterations", 5)
    assert found["recommended"] == "reference" and len(found["sweep"]) == 1, found
    answer(m, "--require-units", "--units", "reference")


def test_many_bundles_in_one_call(folder):
    for name, scale in (("a", 1.0), ("b", 2.0)):
        package(folder, name, scale=scale)
        expect(run("verify", folder / f"{name}.onnx", folder / f"{name}.mlpackage", "--bundle", folder / f"{name}.bundle"), 0)
    bundles = [word for name in "ab" for word in ("--bundle", folder / f"{name}.bundle")]
    result = run(*bundles, "--json", program=MLC_RUN)
    expect(result, 0)
    assert result.answer["ok"] and [b["result"]["ok"] for b in result.answer["bundles"]] == [True, True]
    assert (folder / "a.bundle" / "result.json").exists() and (folder / "b.bundle" / "result.json").exists()
    expect(run(*bundles, program=MLC_RUN), 0, "a.bundle", "b.bundle", "PASSED")
    expect(run(*bundles, "--result", folder / "r.json", program=MLC_RUN), 2, "--result requires a single bundle")
    # A failing job does not prevent the others from running.
    shutil.rmtree(folder / "a.bundle" / "a.mlpackage")
    result = run(*bundles, "--json", program=MLC_RUN)
    expect(result, 1)
    assert "error" in result.answer["bundles"][0] and result.answer["bundles"][1]["result"]["ok"], result.stdout


sys.exit(run_tests(globals(), "what runs measure"))
