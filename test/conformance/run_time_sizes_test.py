"""Tests symbolic dimensions and run-time values. Where onnxruntime rejects an input, mlc must too, either at compile time (a
dimension was narrowed, or no size is valid) or when the package runs. Where onnxruntime computes, so must mlc.

A case of run_time_sizes.py has inputs that onnxruntime accepts and inputs that it rejects. With ORT_DIR, the folder of
onnxruntime-node, this is verified and the outputs are compared. An argument selects the cases whose name contains it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import driver  # noqa: E402
from run_time_sizes import CASES  # noqa: E402

BATCH = pathlib.Path(__file__).resolve().parents[1] / "differential" / "ort_batch.mjs"
ORT = os.environ.get("ORT_DIR")


def feeds_of(case):
    return [(True, feed) for feed in case.good] + [(False, feed) for feed in case.bad]


def write(folder, feed):
    folder.mkdir(parents=True)
    for name, array in feed.items():
        np.save(folder / f"in_{name}.npy", np.require(array, requirements="C"))


def same(value, reference):
    if value.shape != reference.shape:
        return f"shape {value.shape}, onnxruntime has {reference.shape}"
    error = np.abs(value.astype("f8") - reference.astype("f8"))
    scale = max(np.nanmax(np.abs(reference.astype("f8")), initial=0), 1e-6)
    return "" if (np.isnan(value) & np.isnan(reference) | (error <= 1e-4 * scale)).all() else f"differs by {error.max():.3g}"


def run_case(job):
    """Runs a case and returns the list of its errors."""
    name, folder = job
    case, wrong = CASES[name], []
    package = folder / "m.mlpackage"
    compiled = driver.run("compile", folder / "m.onnx", "-o", package, "--precision", "fp32", *case.options, "--no-manifest",
                          *([] if case.says else ["--json"]))
    wrong += [f"{name}: compiling says no {text!r}: {compiled.stderr}" for text in case.says if text not in compiled.stdout + compiled.stderr]
    if compiled.code != 0:
        if compiled.code != 1 or case.good:
            wrong.append(f"{name}: does not compile: {driver.ending(compiled)}")
        return wrong
    if not case.good and not case.bad:
        return [f"{name}: compiles"]
    for k, (good, feed) in enumerate(feeds_of(case)):
        at = folder / str(k)
        refused_there = (at / "error.txt").exists()
        if ORT and refused_there == good:
            text = (at / "error.txt").read_text()[:300] if refused_there else "computes"
            wrong.append(f"{name}: feed {k}: onnxruntime: {text}")
        out = at / "mlc"
        ran = driver.run("run", package, *[f"--input={n}={at / f'in_{n}.npy'}" for n in feed], "--output-dir", out, "--json")
        if good and ran.code != 0:
            wrong.append(f"{name}: feed {k} is refused: {driver.ending(ran)}")
        elif not good and ran.code == 0:
            shown = [np.load(o["file"]) for o in ran.answer["outputs"]]
            wrong.append(f"{name}: feed {k} is served: {[list(a.shape) for a in shown]} {str(shown[0].flatten()[:8].tolist())}")
        elif not good and driver.verdict(ran) != "refused":
            wrong.append(f"{name}: feed {k}: {driver.ending(ran)}")
        elif good and ORT and not refused_there:
            for i, output in enumerate(ran.answer["outputs"]):
                if text := same(np.load(output["file"]), np.load(at / f"{i}.npy")):
                    wrong.append(f"{name}: feed {k}: output {i} {text}")
    return wrong


def main():
    wanted = [name for name in CASES if len(sys.argv) < 2 or sys.argv[1] in name]
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        folder, lines = pathlib.Path(folder), []
        jobs = []
        for n, name in enumerate(wanted):
            at = folder / str(n)
            at.mkdir()
            (at / "m.onnx").write_bytes(CASES[name].model)
            jobs.append((name, at))
            for k, (_, feed) in enumerate(feeds_of(CASES[name])):
                write(at / str(k), feed)
                lines.append(json.dumps({"model": str(at / "m.onnx"), "out": str(at / str(k)),
                                         "inputs": {i: str(at / str(k) / f"in_{i}.npy") for i in feed}}))
        if ORT:
            (folder / "list.jsonl").write_text("\n".join(lines))
            subprocess.run(["node", str(BATCH), str(folder / "list.jsonl")], check=True)
        wrong = [line for texts in driver.parallel(run_case, jobs) for line in texts]
    for line in wrong:
        print(line)
    print(f"# open sizes: {len(wanted)} cases, {len(wrong)} wrong" + ("" if ORT else "; onnxruntime was not asked"))
    return 1 if wrong else 0


sys.exit(main())
