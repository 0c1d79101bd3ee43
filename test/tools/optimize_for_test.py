#!/usr/bin/env python3
"""Tests `--optimize-for`: what a program becomes is tested by the golden files in test/golden/optimize-for and test/golden/passes; here,
whole models keep their results and reach the coverage that `mlc explain` predicts, and language models have fixed sizes.

With the corpus and the folder MLC_ZOO (test/README.md), real models are compiled, too.
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from command_line_test import FLOAT, Folder
from driver import CORPUS, expect, parallel, run, run_tests
from language_models import PACKAGE, Llama, check, errors

ANE = ["--optimize-for", "ane"]
LEAST = 95  # coverage in percent of the work, the criterion of --optimize-for ane
ZOO = pathlib.Path(os.environ.get("MLC_ZOO", "/nonexistent"))
HUGGING_FACE = CORPUS / "huggingface"
REAL = [  # model and options that fix its sizes
    (ZOO / "bert_small" / "model.onnx", []),
    (ZOO / "vit_tiny" / "model.onnx", []),
    (ZOO / "gpt_kv_dyn" / "model.onnx", ["--dim", "t=8", "--dim", "past=24"]),
    (ZOO / "mobilenet_v3_small" / "model.onnx", []),
    (ZOO / "resnet50" / "model.onnx", []),
    (ZOO / "convnext_tiny" / "model.onnx", []),
    (HUGGING_FACE / "hf_bert", ["--dim", "tokens=16"]),
    (HUGGING_FACE / "hf_llama", ["--dim", "tokens=1"]),
    (HUGGING_FACE / "gemma3", ["--dim", "tokens=1,8"]),
]


def attention(folder, name="m.onnx", sizes=(1, 6, 8)):
    """A model of one self-attention with two heads and a residual sum."""
    random = np.random.default_rng(3)
    weights = [wire.tensor(f"w{i}", FLOAT, [8, 8], raw=(random.standard_normal((8, 8)) / 3).astype("<f4").tobytes())
               for i in range(4)]
    shapes = [wire.tensor(n, 7, [len(s)], raw=np.array(s, "<i8").tobytes())
              for n, s in (("heads", [0, 0, 2, 4]), ("joined", [0, 0, 8]))]
    nodes = []
    for i, letter in enumerate("qkv"):
        nodes += [wire.node("MatMul", ["x", f"w{i}"], [f"{letter}0"]), wire.node("Reshape", [f"{letter}0", "heads"], [f"{letter}1"]),
                  wire.node("Transpose", [f"{letter}1"], [letter], perm=[0, 2, 3, 1] if letter == "k" else [0, 2, 1, 3])]
    nodes += [wire.node("MatMul", ["q", "k"], ["s"]), wire.node("Softmax", ["s"], ["p"], axis=-1),
              wire.node("MatMul", ["p", "v"], ["o"]), wire.node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
              wire.node("Reshape", ["o1", "joined"], ["o2"]), wire.node("MatMul", ["o2", "w3"], ["o3"]),
              wire.node("Add", ["x", "o3"], ["y"])]
    return folder.model(name, nodes, [("x", FLOAT, list(sizes))], [("y", FLOAT, list(sizes))], weights + shapes)


def operators(package):
    return expect(run("inspect", package, "--json"), 0).answer["operators"]


def compiled(model, package, *options):
    return expect(run("compile", model, "-o", package, "--force", "--verify-each", *options, timeout=600), 0)


def test_each_unit(folder):
    model = attention(folder)
    made = {}
    for unit in ("ane", "gpu", "cpu", None):
        package = folder / f"{unit}.mlpackage"
        compiled(model, package, "--target", "iOS18", *(["--optimize-for", unit] if unit else []))
        expect(run("verify", model, package), 0, "PASSED")
        made[unit] = operators(package)
    assert made[None] == made["cpu"] and made[None]["matmul"] == 2, made
    assert made["ane"]["conv"] == 4 and made["ane"]["einsum"] == 4 and "linear" not in made["ane"], made
    assert made["gpu"]["scaled_dot_product_attention"] == 1 and "softmax" not in made["gpu"], made
    # Before iOS18, there is no such operation.
    compiled(model, folder / "old.mlpackage", "--optimize-for", "gpu")
    assert operators(folder / "old.mlpackage") == made[None]
    expect(run("compile", model, "-o", folder / "x.mlpackage", "--optimize-for", "npu"), 2, "--optimize-for", "ane, gpu or cpu")


def test_a_package_is_optimised_later(folder):
    model = attention(folder)
    compiled(model, folder / "m.mlpackage")
    expect(run("opt", folder / "m.mlpackage", "-o", folder / "ane.mlpackage", "--precision", "fp16", *ANE), 0)
    assert operators(folder / "ane.mlpackage")["conv"] == 4
    expect(run("verify", model, folder / "ane.mlpackage"), 0, "PASSED")


def test_ranges_are_left_alone(folder):
    model = attention(folder, sizes=(1, "n", 8))
    result = compiled(model, folder / "m.mlpackage", *ANE)
    assert "open-shape" in result.stderr and "--dim n=N" in result.stderr, result.stderr
    assert "conv" not in operators(folder / "m.mlpackage")
    # A list of sizes runs.
    compiled(model, folder / "m.mlpackage", *ANE, "--dim", "n=4,6", "--target", "iOS18")
    assert operators(folder / "m.mlpackage")["conv"] == 4
    expect(run("verify", model, folder / "m.mlpackage"), 0, "PASSED")


def test_explain_of_a_source(folder):
    model = attention(folder)
    rules = lambda *options: {rule["id"] for rule in expect(run("explain", model, "--json", *options), 0).answer["functions"][0]["rules"]}
    assert {"linear-layer", "heads-together"} <= rules()
    assert not {"linear-layer", "heads-together"} & rules(*ANE)


def test_a_language_model_with_fixed_sizes(folder):
    llama = Llama()
    model, tokens = llama.gguf(folder / "tiny.gguf"), [3, 17, 40, 8, 21, 5, 33]
    reference = llama.logits(tokens)
    for sizes in ("1", "4", "2,5"):
        fixed = ["--dim", f"tokens={sizes}", "--context", "32"]
        check(model, tokens, reference, folder / f"plain {sizes}", *fixed)
        package, outputs = folder / "ane.mlpackage", folder / f"ane {sizes}"
        outputs.mkdir()
        compiled(model, package, *fixed, *ANE)
        found = errors(package, tokens, reference, outputs)
        assert max(found) <= PACKAGE, (sizes, found)
        expect(run("verify", model, package), 0, "PASSED")
        expect(run("explain", package, "--fail-under", "97"), 0)
        states = expect(run("inspect", package, "--json"), 0).answer["states"]
        assert [state["shape"] for state in states] == [[2, 1, 16, 1, 32]] * 2, states
    # The last tokens fill the context.
    long = [(7 * i) % llama.vocabulary for i in range(32)]
    found = errors(package, long, llama.logits(long), outputs)
    assert max(found) <= PACKAGE, found
    expect(run("run", package, "--tokens", ",".join(map(str, long + [1]))), 2, "at most 32")


def test_a_window_with_fixed_sizes(folder):
    llama = Llama()
    llama.window, tokens = 3, [3, 17, 40, 8, 21, 5, 33]
    model = llama.hugging_face(folder / "mistral", {"model_type": "mistral", "sliding_window": 3})
    check(model, tokens, llama.logits(tokens), folder / "window", "--dim", "tokens=4", "--context", "16")


def test_sizes_that_a_language_model_refuses(folder):
    model = Llama().gguf(folder / "tiny.gguf")
    output = ["-o", folder / "x.mlpackage"]
    expect(run("compile", model, *output, "--dim", "tokens=40", "--context", "32"), 2, "tokens=40", "1 to 32")
    expect(run("compile", model, *output, "--dim", "past=4"), 1, "bad-name", "tokens or end")


def test_real_models(folder):
    models = [(model, options) for model, options in REAL if model.exists()]
    if not models:
        print("# real models with --optimize-for ane: skipped, there is no corpus")
        return

    def one(case):
        model, options = case
        package = folder / f"{model.parent.name} {model.name}.mlpackage"
        compiled(model, package, *options, *ANE)
        verified = run("verify", model, package, timeout=600)
        coverage = expect(run("explain", package, "--json"), 0).answer
        lowest = min(function["work_coverage_pct"] for function in coverage["functions"])
        left = {name for name in operators(package) if name in ("linear", "matmul")}
        assert verified.code == 0 and lowest >= LEAST and not left, (model, verified.stdout[-400:], lowest, left)
        return lowest

    found = parallel(one, models)
    print(f"# {len(found)} of {len(REAL)} real models with --optimize-for ane: lowest coverage {min(found):.1f} % of the work")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "--optimize-for", Folder))
