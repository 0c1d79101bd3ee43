#!/usr/bin/env python3
"""Tests the code of `mlc inspect --swift` and `--objc`: app_code_test.py [--update].

The texts of a few packages are golden (golden/app/). All texts are parsed: Swift by tree-sitter (SWIFT_PARSER_DIR names a folder
with `npm install --ignore-scripts web-tree-sitter@0.20.8 tree-sitter-wasms`), Objective-C by clang with the stub of Core ML's
interface.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TEST))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import onnx_wire as wire
from command_line_test import FLOAT, INT64, Folder, floats, ints
from driver import expect, run, run_tests
from language_models import Llama

GOLDEN = TEST / "golden/app"
STUB = TEST / "backends/apple/stub"
UPDATE = "--update" in sys.argv
LANGUAGES = {"swift": "swift", "objc": "m"}  # option: ending of files
TEXTS = {}  # every text made here, to be parsed: {title: (language, text)}


def code(package, language):
    text = expect(run("inspect", package, f"--{language}"), 0).stdout
    TEXTS[f"{package.name} {len(TEXTS)}"] = (language, text)
    return text


def written(folder, name, text):
    (folder / f"{name}.mil").write_text(text)
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def compiled(model, *options):
    expect(run("compile", model, "-o", model.with_suffix(".mlpackage"), *options), 0)
    return model.with_suffix(".mlpackage")


def image_classifier(folder):
    nodes = [wire.node("GlobalAveragePool", ["image"], ["means"]), wire.node("Flatten", ["means"], ["row"]),
             wire.node("Gemm", ["row", "w"], ["scores"]), wire.node("Softmax", ["scores"], ["probabilities"], axis=1)]
    model = folder.model("fruit-v2.onnx", nodes, [("image", FLOAT, [1, 3, 48, 64])], [("probabilities", FLOAT, [1, 6])],
                         [floats("w", np.arange(18).reshape(3, 6) / 9)])
    (folder / "labels.txt").write_text("apple\nbanana\ncherry\ngrape\norange\npear \"William\"\n")
    return compiled(model, "--image", "image=rgb,0.0039", "--labels", folder / "labels.txt")


def flexible(folder):
    """A dimension in a range, another one listed, integers, and an optional input of a reserved name."""
    model = folder.model("tagger.onnx", [wire.node("Gather", ["table", "tokens"], ["rows"]), wire.node("Mul", ["rows", "in"], ["h"]),
                                         wire.node("ReduceSum", ["h"], ["score"], keepdims=1)],
                         [("tokens", INT64, ["batch", "length"]), ("in", FLOAT, ["length", 4])],
                         [("h", FLOAT, ["batch", "length", 4]), ("score", FLOAT, [1, 1, 1])],
                         [floats("table", np.arange(40).reshape(10, 4) / 40)])
    return compiled(model, "--dim", "length=16,32", "--dim", "batch=1..8", "--target", "iOS18")


def stateful(folder):
    return written(folder, "counter", """func main<ios18>(tensor<fp16, [1, 4]> x, state<tensor<fp16, [1, 4]>> total) {
  before = read_state(input = total);
  sum = add(x = before, y = x);
  write_state(input = total, data = sum);
  y = mul(x = sum, y = fp16(0.5));
} -> (y);
""")


def several_functions(folder):
    return written(folder, "steps", """func main<ios18>(tensor<fp32, [1, 4]> x) {
  y = relu(x = x);
} -> (y);
func pre_fill<ios18>(tensor<fp32, [8, 4]> x, tensor<int32, [1]> place) {
  y = tanh(x = x);
  next = add(x = place, y = 1);
} -> (y, next);
""")


def language_model(folder):
    Llama().gguf(folder / "llama.gguf")
    return compiled(folder / "llama.gguf")


def fixed_language_model(folder):
    Llama().gguf(folder / "fixed.gguf")
    return compiled(folder / "fixed.gguf", "--runtime", "ane")


GOLDENS = [image_classifier, flexible, stateful, several_functions, language_model, fixed_language_model]


def test_the_texts_are_as_expected(folder):
    for make in GOLDENS:
        package = make(folder)
        for language, ending in LANGUAGES.items():
            text, file = code(package, language), GOLDEN / f"{make.__name__}.{ending}"
            if UPDATE:
                file.write_text(text)
            assert file.read_text() == text, f"{file} differs (--update writes it anew)"
        # A compiled bundle and a package with the same name have the same code.
        bundle = folder / "compiled" / f"{package.stem}.mlmodelc"
        bundle.parent.mkdir(exist_ok=True)
        expect(run("precompile", package, "-o", bundle), 0)
        assert code(bundle, "swift") == (GOLDEN / f"{make.__name__}.swift").read_text(), make.__name__


if __name__ == "__main__":
    if UPDATE:
        sys.argv.remove("--update")
    sys.exit(run_tests(dict(globals()), "app code", Folder))
