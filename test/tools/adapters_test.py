#!/usr/bin/env python3
"""Tests adapters beside the weights of a model: as inputs (--lora-inputs), and as functions over shared weights (--functions)."""
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[1],
                         pathlib.Path(__file__).resolve().parents[1] / "frontends" / "safetensors"))
import numpy as np

from adapters_test import Q, V, low_rank, pair, write
from driver import expect, run, run_tests
from language_models import Llama, error, logits, refused

TOKENS = [3, 14, 1, 5, 9, 2, 6, 11]


class Wide(Llama):
    width, head, inner, vocabulary = 128, 32, 256, 512


def written(folder, **more):
    model, random = Wide(), np.random.default_rng(1)
    tensors = model.hugging_face_tensors()
    base = model.hugging_face(folder / "base")
    return model, base, tensors, {
        name: write(folder / name, low_rank(module, *pair(random, tensors[f"{module}.weight"])), **more)
        for name, module in (("first", Q.format(0)), ("second", V.format(1)))}


def test_functions(folder):
    """Each function computes what the model with this adapter merged computes; the weights are stored once."""
    model, base, tensors, adapters = written(folder)
    package = folder / "m.mlpackage"
    both = [word for adapter in adapters.values() for word in ("--lora", adapter)]
    expect(run("compile", base, *both, "--functions", "-o", package), 0)
    expect(run("compile", base, "-o", folder / "plain.mlpackage"), 0)
    size = lambda path: sum(file.stat().st_size for file in path.rglob("weight.bin"))
    assert size(package) <= size(folder / "plain.mlpackage") * 1.05, (size(package), size(folder / "plain.mlpackage"))
    answer = expect(run("inspect", package, "--json"), 0).answer
    assert {function["name"] for function in answer["functions"]} == {"first", "main", "second"}, answer["functions"]
    for name, options in {"main": [], **{name: ["--lora", adapter] for name, adapter in adapters.items()}}.items():
        wanted = logits(base, TOKENS, folder / "wanted", "--arithmetic", "exact", *options)
        found = logits(package, TOKENS, folder / "found", "--function", name)
        assert error(found, wanted) <= 1e-2, (name, error(found, wanted))
        exact = logits(base, TOKENS, folder / "exact", "--arithmetic", "exact", *both, "--functions", "--function", name)
        assert error(exact, wanted) <= 1e-5, (name, error(exact, wanted))
    expect(run("verify", base, package, *both), 0, "PASSED")
    refused(run("compile", base, *both[:2], *both[:2], "--functions", "-o", package, "--force"), "usage", 'two functions "first"')


def test_inputs(folder):
    """Without the inputs, the model computes what it does without an adapter; with them, what the merged model does."""
    model, base, tensors, adapters = written(folder)
    package = folder / "m.mlpackage"
    one = ["--lora", adapters["first"]]
    expect(run("compile", base, *one, "--lora-inputs", "-o", package), 0)
    ports = {port["name"]: port for port in expect(run("inspect", package, "--json"), 0).answer["inputs"]}
    name = Q.format(0).replace(".", "_") + "_weight"
    assert {f"{name}_lora_down", f"{name}_lora_up"} <= set(ports), sorted(ports)
    plain = logits(base, TOKENS, folder / "plain", "--arithmetic", "exact")
    assert error(logits(package, TOKENS, folder / "without"), plain) <= 1e-2
    expect(run("verify", base, package, *one), 0, "PASSED")
    random = np.random.default_rng(1)
    a, b = pair(random, tensors[f"{Q.format(0)}.weight"])
    np.save(folder / "a.npy", a.astype("f4"))
    np.save(folder / "b.npy", b.astype("f4"))
    np.save(folder / "ids.npy", np.array([TOKENS], "i4"))
    np.save(folder / "mask.npy", np.zeros((1, 1, len(TOKENS), len(TOKENS)), "f2"))
    inputs = {"inputIds": "ids", "causalMask": "mask", f"{name}_lora_down": "a", f"{name}_lora_up": "b"}
    expect(run("run", package, "--output-dir", folder / "out",
               *[word for key, file in inputs.items() for word in ("--input", f"{key}={folder / file}.npy")]), 0)
    wanted = logits(base, TOKENS, folder / "wanted", "--arithmetic", "exact", *one)
    assert error(np.load(folder / "out" / "logits.npy")[0], wanted) <= 1e-2
    assert error(plain, wanted) > 2e-2


def test_refusals(folder):
    model, base, tensors, adapters = written(folder)
    compiled = lambda *options: run("compile", base, "-o", folder / "m.mlpackage", *options)
    refused(compiled("--lora-inputs"), "usage", "--lora-inputs requires an adapter")
    refused(compiled("--functions"), "usage", "--functions requires an adapter")
    first, second = adapters.values()
    refused(compiled("--lora", first, "--lora", second, "--lora-inputs"), "usage", "2 adapters are given")
    refused(compiled("--lora", first, "--functions", "--lora-inputs"), "usage", "exclude each other")
    whole = write(folder / "whole", low_rank(Q.format(0), *pair(np.random.default_rng(2), tensors[f"{Q.format(0)}.weight"]))
                  | {"lm_head.weight": tensors["lm_head.weight"]}, modules_to_save=["lm_head"])
    refused(compiled("--lora", whole, "--lora-inputs"), "usage", "cannot be inputs", "lm_head.weight", "--functions")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "adapters beside weights"))
