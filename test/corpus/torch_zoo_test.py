"""Networks of torch and torchvision with random weights, exported to ONNX: each compiles in fp32 and in fp16, and its package,
executed from its bytes, matches PyTorch in fp32 within 1e-3, by figures computed here. In fp16, `mlc verify` judges by the error of
rounded constants (the floor), and the figures are printed beside it; OUTSIDE names the models that exceed it.

MLC_ZOO names a folder of NAME/model.onnx, input_K.npy, output_K.npy. With an argument, only models whose name contains it run.
"""
import os
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

# fp16 packages beyond 1.5 times the floor: one selects other boxes by the scores of random weights.
OUTSIDE = {"fasterrcnn_mobilenet"}
SECONDS = 120  # limit for one compilation or run; exceeding it indicates a defect of the passes or the engine


def position(file):
    return int(file.stem.rpartition("_")[2])


def measure(job):
    """Returns (reason for a missing figure or "", max error, RMSE, seconds to compile and to run, verdict of `mlc verify` in fp16)."""
    folder, precision, package = job
    figures = of_run(folder, precision, package)
    verdict = models.Verdict()
    if precision == "fp16" and not figures[0]:
        verdict = models.verify(models.Model(folder.name, folder / "model.onnx", folder, [], []), package, [], SECONDS)
    return *figures, verdict


def of_run(folder, precision, package):
    facts = onnx_wire.read_facts((folder / "model.onnx").read_bytes())
    compiled = driver.run("compile", folder / "model.onnx", "-o", package, "--precision", precision, "--no-manifest", "--json",
                          timeout=SECONDS)
    if driver.verdict(compiled) != "ok":
        return f"compile: {driver.ending(compiled)}", 0, 0, compiled.seconds, 0
    given = [f"--input={facts.inputs[position(f)]}={f}" for f in sorted(folder.glob("input_*.npy"))
             if position(f) < len(facts.inputs)]
    with tempfile.TemporaryDirectory(prefix="mlc-") as results:
        ran = driver.run("run", package, *given, "--output-dir", results, "--json", timeout=SECONDS)
        if driver.verdict(ran) != "ok":
            return f"run: {driver.ending(ran)}", 0, 0, compiled.seconds, ran.seconds
        written = {entry["name"]: entry["file"] for entry in ran.answer["outputs"]}
        worst = rmse = compared = 0
        for file in sorted(folder.glob("output_*.npy")):
            error = models.error(np.load(written[facts.outputs[position(file)]]), np.load(file))
            if error:
                worst, rmse, compared = max(worst, error[0]), max(rmse, error[1]), compared + 1
    return "" if compared else "no output is conclusive", worst, rmse, compiled.seconds, ran.seconds


def main():
    zoo = pathlib.Path(os.environ.get("MLC_ZOO", "/nowhere"))
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    folders = sorted(f.parent for f in zoo.glob("*/model.onnx") if wanted in f.parent.name)
    if not folders:
        print(f"# torch zoo: skipped, no models in MLC_ZOO ({os.environ.get('MLC_ZOO', 'not set')})")
        return driver.SKIPPED
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        jobs = [(f, p, pathlib.Path(scratch) / f"{f.name}-{p}.mlpackage") for f in folders for p in models.BUDGETS]
        results = driver.parallel(measure, jobs)
        print(f"{'model':24} {'precision':9} {'max error':>10} {'RMSE':>10} {'compile s':>10} {'run s':>8}")
        within = {p: 0 for p in models.BUDGETS}
        for (folder, precision, _), (text, worst, rmse, compile_seconds, run_seconds, verdict) in zip(jobs, results):
            text = text or verdict.failure
            good = not text and (worst <= models.BUDGETS["fp32"][0] if precision == "fp32" else not verdict.outside)
            within[precision] += good
            expected = precision == "fp32" or folder.name not in OUTSIDE
            failed |= bool(text) or good != expected
            figures = text or f"{worst:10.2e} {rmse:10.2e} {compile_seconds:10.2f} {run_seconds:8.2f}"
            figures += f"  floor {verdict.floor:.1e}" if precision == "fp16" and not text else ""
            print(f"{folder.name:24} {precision:9} {figures}{'' if good or text else '  OUTSIDE ' + ', '.join(verdict.outside)}"
                  f"{'  within now: take it out of OUTSIDE' if good and not expected else ''}")
        for precision, count in within.items():
            print(f"# torch zoo, {precision}: {count} of {len(folders)} within the budget")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
