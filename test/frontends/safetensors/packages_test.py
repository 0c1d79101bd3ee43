#!/usr/bin/env python3
"""Compiles Hugging Face folders with default options and verifies the packages against their folders with default options: every
folder of the corpus, and tiny written ones. With coremltools, the packages are checked as well (checkers.py)."""
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import checkers
import encoders_test
import picture_nets_test
import picture_numpy
import speech_numpy
import speech_test
from driver import CORPUS, expect, parallel, run, run_tests

OVER = "exceeds the budget as stated in the manifest"


def verdict(folder, package, *options):
    """Compiles and verifies; returns the last line of the report."""
    expect(run("compile", folder, "-o", package, *options, timeout=300), 0)
    report = expect(run("verify", folder, package, *options, timeout=300), 0).stdout
    last = report.splitlines()[-1]
    assert last.startswith("PASSED"), (folder, report)
    return last


def verify_all(cases, scratch):
    """Cases are (folder, options). Returns the names of the folders whose errors the manifest states."""
    packages = [scratch / f"{number}.mlpackage" for number in range(len(cases))]
    last = parallel(lambda case: verdict(case[0][0], case[1], *case[0][1]), list(zip(cases, packages)))
    if not checkers.missing():
        refused = checkers.check(packages)
        assert not refused, refused
    return [folder.name for (folder, _), line in zip(cases, last) if OVER in line]


def test_corpus(folder):
    if not (CORPUS / "folders").exists():
        return print("# default packages of folders: skipped, there is no corpus")
    cases = [(model, ()) for kind in ("folders", "huggingface") for model in sorted((CORPUS / kind).iterdir()) if
             (model / "config.json").exists()]
    cases += [(CORPUS / "huggingface" / "llama", ("--lora", adapter)) for adapter in sorted((CORPUS / "lora").iterdir())]
    over = verify_all(cases, folder)
    print(f"# {len(cases)} default packages verified against their folders, {len(over)} within the error that the manifest states: "
          f"{', '.join(over)}")


def test_tiny(folder):
    cases = []

    def add(write, *arguments, **more):
        model = folder / f"model{len(cases)}"
        write(model, *arguments, **more)
        cases.append((model, ()))

    for number, (architecture, changes) in enumerate(speech_test.TINY_SPEECH[::3]):
        add(speech_test.write, *speech_numpy.speech(architecture, number, **changes))
    for number, (model_type, changes) in enumerate(speech_test.TINY_SEQUENCES[::2]):
        add(speech_test.write, *speech_numpy.sequence(model_type, number, **changes))
    for architecture, changes in encoders_test.TINY[::5]:
        add(encoders_test.write, architecture, **changes)
    # Of 8,400 random queries that are nearly equal, other precisions choose others, which exchanges whole rows of the results.
    nets = [row for row in enumerate(picture_nets_test.TINY) if not row[1][0].startswith(("rt_detr", "d_fine"))]
    for number, (kind, architecture, changes, height, width) in nets[::8]:
        config = {"model_type": kind, "architectures": [architecture], "id2label": picture_nets_test.LABELS} | changes
        tensors, _ = picture_numpy.made(config, np.zeros((3, height, width)), number)
        add(picture_nets_test.write, config, tensors)
    over = verify_all(cases, folder)
    print(f"# {len(cases)} default packages of tiny folders verified, {len(over)} within the error that the manifest states")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "default packages of folders"))
