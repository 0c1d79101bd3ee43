#!/usr/bin/env python3
"""Tests language models with recurrent states in GGUF files against recurrent_models.py, an independent implementation of
the papers: 80 tokens, at once and one after the other, of the file and of its package. (logits_test.py compares models of
the corpus with llama.cpp.)"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import gguf_wire
from driver import CORPUS, expect, parallel, run, run_tests
from language_models import check, error, logits, refused, summary
from recurrent_models import ALL, Lfm2, Mamba, Mamba2, Qwen35


def test_papers(folder):
    def one(family):
        model = family()
        prompt = model.prompt()
        return check(model.gguf(folder / f"{family.__name__}.gguf"), prompt, model.logits(prompt), folder / family.__name__)

    print(f"# recurrent language models against NumPy: {len(ALL)}; worst {summary(parallel(one, ALL))}")


def test_layers_of_each_kind(folder):
    """The file determines which layers have attention."""
    class Other(Qwen35):
        layers = 3
        gguf_numbers = Qwen35.gguf_numbers | {"attention.recurrent_layers": [True, False, True]}

        def attends(self, layer):
            return layer == 1

    class Second(Qwen35):
        gguf_numbers = Qwen35.gguf_numbers | {"full_attention_interval": 2}

        def attends(self, layer):
            return layer in (1, 3)

    class Every(Lfm2):
        gguf_numbers = Lfm2.gguf_numbers | {"attention.head_count_kv": 2}

        def attends(self, layer):
            return True

    class Half(Lfm2):
        layers = 4

        def attends(self, layer):
            return layer in (0, 3)

        gguf_numbers = Lfm2.gguf_numbers | {"attention.head_count_kv": [2, 0, 0, 2]}

    for family in (Other, Second, Every, Half):
        model = family()
        prompt = model.prompt(12)
        path = model.gguf(folder / "model.gguf")
        found = error(logits(path, prompt, folder / "out", "--step"), model.logits(prompt))
        assert found < 1e-5, f"{family.__name__}: {found}"


def test_states(folder):
    names = lambda model, *options: {state["name"]: state["shape"] for state in expect(
        run("inspect", "--ops", model, "--json", *options), 0).answer["states"]}
    assert names(Mamba().gguf(folder / "mamba.gguf")) == {"convCache": [2, 3, 48], "recurrentCache": [2, 1, 1, 6, 48]}
    assert names(Mamba2().gguf(folder / "mamba2.gguf")) == {"convCache": [2, 3, 72], "recurrentCache": [2, 2, 3, 6, 8]}
    cache = [1, 1, 2, 32, 8]
    assert names(Lfm2().gguf(folder / "lfm2.gguf"), "--context", "32") == {
        "keyCache": cache, "valueCache": cache, "convCache": [2, 2, 32]}
    assert names(Qwen35().gguf(folder / "qwen35.gguf"), "--context", "32") == {
        "keyCache": cache, "valueCache": cache, "convCache": [3, 3, 256], "recurrentCache": [3, 2, 2, 32, 32]}


def test_verify(folder):
    models = [family().gguf(folder / f"{family.__name__}.gguf") for family in (Mamba, Mamba2, Lfm2)]
    models += [model for name in ("mamba", "mamba2", "lfm2", "qwen35") if (model := CORPUS / "gguf" / f"{name}.f32.gguf").exists()]
    for model in models:
        package = folder / f"{model.stem}.mlpackage"
        expect(run("compile", model, "-o", package), 0)
        expect(run("verify", model, package), 0, "prompt of 32 tokens", "PASSED")


def test_blocks_stay(folder):
    """Blocks of weights are stored unchanged in the package, and give the same results as their values."""
    for family, names in ((Mamba, ("ssm_in",)), (Lfm2, ("shortconv.in_proj", "shortconv.out_proj", "ffn_up")),
                          (Qwen35, ("attn_qkv", "attn_gate", "ssm_out", "ssm_alpha"))):
        model = family()
        tensors = model.gguf_tensors()
        encoded = [name for name in tensors if any(name.endswith(f"{own}.weight") for own in names)]
        path = model.gguf(folder / "model.gguf", encoded=encoded)
        for block in model.blocks:
            block |= {name: gguf_wire.q8_0(block[name])[1] for name in names if name in block}
        prompt = model.prompt(12)
        found = error(logits(path, prompt, folder / "out"), model.logits(prompt))
        assert found < 1e-5, f"{family.__name__}: {found}"
        package = folder / f"{family.__name__}.mlpackage"
        expect(run("compile", path, "-o", package), 0)
        encoded = [name for name in encoded if tensors[name].size >= 2048]  # smaller tensors would gain nothing
        operators = expect(run("inspect", package, "--json"), 0).answer["operators"]
        assert sum(count for name, count in operators.items() if name.startswith("constexpr_")) == len(encoded), operators


def test_multi_token_prediction(folder):
    """The layers for multi-token prediction, which come last, do not change the logits."""
    model = Qwen35()
    more = {"blk.4.attn_norm.weight": np.ones(32), "blk.4.nextn.eh_proj.weight": np.zeros((32, 64))}
    path = model.gguf(folder / "model.gguf", {"block_count": 5, "nextn_predict_layers": 1}, model.gguf_tensors() | more)
    prompt = model.prompt(5)
    assert error(logits(path, prompt, folder / "out"), model.logits(prompt)) < 1e-5
    refused(run("inspect", "--ops", model.gguf(folder / "without.gguf", tensors=model.gguf_tensors() | more)), "unused-tensor",
            "blk.4.nextn.eh_proj.weight")
    refused(run("inspect", "--ops", model.gguf(folder / "all.gguf", {"nextn_predict_layers": 4})), "bad-file", "0 layers")


def test_refusals(folder):
    def look(family, numbers, error_id, *words, tensors=None):
        path = family().gguf(folder / "model.gguf", numbers, tensors)
        refused(run("inspect", "--ops", path, timeout=5, address_space=2 << 30), error_id, *words)

    for family, key, number, word in (
            (Mamba, "ssm.inner_size", 0, "0 channels"), (Mamba, "ssm.state_size", 0, "0 numbers"),
            (Mamba, "ssm.state_size", 2**32 - 1, "4294967295 numbers"), (Mamba, "ssm.time_step_rank", 0, "0 dimensions"),
            (Mamba, "ssm.conv_kernel", 1, "expected 2"), (Mamba2, "ssm.conv_kernel", 0, "0 tokens"),
            (Mamba2, "ssm.group_count", 0, "0 groups"), (Mamba2, "ssm.group_count", 4, "6 heads"),
            (Mamba2, "ssm.time_step_rank", 0, "0 heads"), (Mamba2, "ssm.time_step_rank", 10, "48 channels"),
            (Lfm2, "shortconv.l_cache", 0, "0 tokens"), (Lfm2, "shortconv.l_cache", 2**32 - 1, "4294967295 tokens"),
            (Lfm2, "attention.head_count_kv", [0, 2], "of 2 layers"), (Qwen35, "ssm.group_count", 3, "3 groups"),
            (Qwen35, "attention.value_length", 4, "gate has 8"), (Qwen35, "attention.recurrent_layers", [True], "of 1 layers"),
            (Qwen35, "block_count", 0, "0 layers"), (Qwen35, "full_attention_interval", 0, "interval"),
            (Qwen35, "nextn_predict_layers", 5, "5 of 4 layers")):
        look(family, {key: number}, "bad-file", word)
    look(Mamba, {"ssm.state_size": 2**24}, "bad-tensor", "ssm_x.weight")
    look(Mamba, {"ssm.inner_size": 2**24}, "bad-tensor", "ssm_in.weight")
    look(Mamba2, {"block_count": 2**31 - 1}, "missing-tensor", "blk.2.attn_norm.weight")
    look(Qwen35, {"block_count": 2**31 - 1}, "missing-tensor", "blk.4.attn_norm.weight")
    look(Lfm2, {"attention.head_count_kv": [0, 2, 4]}, "unsupported-architecture", "head_count_kv", "2 and 4")
    look(Qwen35, {"rope.dimension_sections": [1, 0, 0, 1]}, "unsupported-architecture", "dimension_sections")
    tensors = Mamba().gguf_tensors()
    look(Mamba, {}, "missing-tensor", '"blk.1.ssm_a"', "[48, 6]",
         tensors={name: tensor for name, tensor in tensors.items() if name != "blk.1.ssm_a"})
    look(Mamba, {}, "bad-tensor", "blk.0.ssm_conv1d.weight", "[48, 4]",
         tensors=tensors | {"blk.0.ssm_conv1d.weight": np.zeros((48, 3))})


def test_unknown_names(folder):
    """The error names the most similar architecture and explains why the file does not match it."""
    for family, words in ((Mamba, ('did you mean "mamba"', 'the keys and tensors of a "mamba" model')),
                          (Mamba2, ('did you mean "mamba"', 'the keys and tensors of a "mamba2" model'))):
        class Unknown(family):
            architecture = "mamba3"

        model = Unknown()
        refused(run("inspect", "--ops", model.gguf(folder / "model.gguf")), "unsupported-architecture", '"mamba3"', *words)
        tensors = {name: tensor for name, tensor in model.gguf_tensors().items() if "output_norm" not in name}
        path = model.gguf(folder / "model.gguf", tensors=tensors)
        refused(run("inspect", "--ops", path), "unsupported-architecture", 'read as "mamba": ')


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "recurrent GGUF language models"))
