#!/usr/bin/env python3
"""Compares the weights that `mlc opt --compress` and coremltools.optimize make of the same packages: the squared error of every
weight, decoded by coremltools with scales and tables as stored, and the time that compressing takes.

The error of a palette with one table equals theirs, since both are optimal but for the rounding of entries; every other is at most
theirs. MLC_ZOO is a folder with NAME/model.onnx. MLC_MODELS and MLC_SCHEMES choose models, of the zoo or the corpus, and schemes; by default
one model is compressed, since coremltools takes minutes for each palette of a large one. scripts/nightly takes all.
"""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import checkers
from driver import CORPUS, SKIPPED, expect, run, run_tests

ZOO = pathlib.Path(os.environ.get("MLC_ZOO", "/nonexistent"))
MODELS = os.environ.get("MLC_MODELS", "mobilenet_v3_small").split()
SCHEMES = os.environ.get("MLC_SCHEMES", "pal8 pal6 pal4 pal3 pal2 pal6:group=16 pal4:group=16 pal3:group=16 pal2:group=16 "
                                        "int8 int4:block=row int4:block=32").split()
DECODE = pathlib.Path(__file__).with_name("decode_weights.py")
LATER = ("pal3", "int4")  # schemes that need iOS18 whatever their options
# Of palettes with one table, a double rounded in another order of summation may choose another entry.
EQUAL = 1 + 1e-4


def decoded(folder, jobs):
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs))
    result = checkers.python(DECODE, path)
    assert result.returncode == 0, result.stderr[-2000:]
    answers = json.loads(result.stdout.splitlines()[-1])
    return [(answer, dict(np.load(job["outputs"])) if "error" not in answer else {}) for job, answer in zip(jobs, answers)]


def source(model):
    if (ZOO / model / "model.onnx").exists():
        return ZOO / model / "model.onnx"
    return sorted((CORPUS / "onnx-models" / model).glob("*.onnx"))[0]


def base(name):
    for suffix in ("_palettized", "_quantized"):
        name = name.removesuffix(suffix)
    return name


def test_errors(folder):
    print(f"# {'model':<20} {'scheme':<15} {'weights':>7} {'ours / theirs':>14} {'worst':>7} {'theirs':>9} {'ours':>8} {'times':>6}")
    beyond = []
    for model in MODELS:
        package = folder / f"{model}.mlpackage"
        for scheme in SCHEMES:
            later = ":group=" in scheme or "=32" in scheme or scheme.startswith(LATER)
            expect(run("compile", source(model), "-o", package, "--no-measure", "--force",
                       *(["--target", "iOS18"] if later else []), timeout=600), 0)
            ours = folder / "ours.mlpackage"
            started = time.perf_counter()
            expect(run("opt", package, "--compress", scheme, "-o", ours, "--force", timeout=600), 0)
            seconds = time.perf_counter() - started
            jobs = [{"package": str(package), "outputs": str(folder / "plain.npz")},
                    {"package": str(ours), "outputs": str(folder / "ours.npz")},
                    {"package": str(package), "outputs": str(folder / "theirs.npz"), "scheme": scheme}]
            (_, plain), (_, mine), (answer, theirs) = decoded(folder, jobs)
            assert "error" not in answer, answer
            theirs = {base(name): value for name, value in theirs.items()}
            ratios, total, their_total = {}, 0, 0
            for name, weight in plain.items():
                if name not in theirs or np.array_equal(theirs[name], weight):
                    continue  # skipped there
                assert name in mine and mine[name].shape == weight.shape, name
                own, other = (float(np.sum((made[name].astype("f8") - weight) ** 2)) for made in (mine, theirs))
                total += own
                their_total += other
                ratios[name] = own / max(other, 1e-30)
            if not ratios:
                continue
            worst = max(ratios, key=ratios.get)
            print(f"# {model:<20} {scheme:<15} {len(ratios):>7} {total / their_total:>14.4f} {ratios[worst]:>7.4f} "
                  f"{answer['seconds']:>7.1f} s {seconds:>6.2f} s {answer['seconds'] / seconds:>5.0f}x", flush=True)
            beyond += [f"{model} {scheme} {name}: {ratio:.5f}" for name, ratio in ratios.items() if ratio > EQUAL]
    assert not beyond, "\n".join(beyond[:20])


if __name__ == "__main__":
    missing = checkers.missing() or ("" if ZOO.is_dir() else "no folder of models (MLC_ZOO)")
    if not missing and checkers.python("-c", "import sklearn").returncode:
        missing = "no scikit-learn, which coremltools needs for palettes"
    if missing:
        print(f"# errors of compressed weights: skipped, {missing}")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "errors of compressed weights"))
