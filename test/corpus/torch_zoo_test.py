"""Networks of torch and torchvision with random weights, exported to ONNX: each compiles in fp32 and in fp16, and its package,
run from its bytes, computes what PyTorch computed, in fp32 within 1e-3. The fp16 figures are printed: how far random weights
take them is no property of a compiler, so they fail nothing.

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

SECONDS = 120  # for a compilation or a run: more would be a defect of the passes or the engine


def position(file):
    return int(file.stem.rpartition("_")[2])


def measure(job):
    """(why there is no number or "", max error, RMSE, seconds to compile and to run)"""
    folder, precision, package = job
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
    return "" if compared else "no output tells anything", worst, rmse, compiled.seconds, ran.seconds


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
        for (folder, precision, _), (text, worst, rmse, compile_seconds, run_seconds) in zip(jobs, results):
            good = not text and worst <= models.BUDGETS[precision][0]
            within[precision] += good
            failed |= bool(text) or (precision == "fp32" and not good)
            figures = text or f"{worst:10.2e} {rmse:10.2e} {compile_seconds:10.2f} {run_seconds:8.2f}"
            print(f"{folder.name:24} {precision:9} {figures}{'' if good or text else '  OUTSIDE'}")
        for precision, count in within.items():
            print(f"# torch zoo, {precision}: {count} of {len(folders)} within {models.BUDGETS[precision][0]:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
