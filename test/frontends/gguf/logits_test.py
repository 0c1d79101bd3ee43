#!/usr/bin/env python3
"""Tests language models in GGUF files: logits of all tokens at once and one after the other, of the file and of its package.

The expected logits are those of llama.cpp, which are stored with the files of the corpus (for quantised files, those of
their dequantised twins), and those of language_models.Llama, which implements the papers with NumPy.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import gguf_wire
import safetensors_file
from driver import CORPUS, expect, parallel, run, run_tests
from language_models import Llama, check, error, logits, refused, summary

FOLDER = CORPUS / "gguf"
ENCODERS = {"bert_cls", "bert_mean", "modern_bert", "nomic_bert"}  # see encoders_test.py


def test_corpus(folder):
    if not FOLDER.exists():
        print("# language models of the GGUF corpus: skipped, there is no corpus")
        return
    tokens = [int(word) for word in (FOLDER / "TOKENS.txt").read_text().split(":")[1].split()]
    models = sorted(model for model in FOLDER.glob("*.gguf") if model.name.split(".")[0] not in ENCODERS)

    def one(model):
        return check(model, tokens, np.load(model.with_name(model.stem + ".logits.npy")), folder / model.stem)

    found = parallel(one, models)
    assert found
    print(f"# GGUF language models against llama.cpp: {len(found)} files; worst {summary(found)}")


def test_corpus_with_fixed_sizes(folder):
    """Recurrent layers take one token at a time, since padding would change their state."""
    if not FOLDER.exists():
        print("# language models with fixed sizes: skipped, there is no corpus")
        return
    tokens = [int(word) for word in (FOLDER / "TOKENS.txt").read_text().split(":")[1].split()]
    models = sorted(model for model in FOLDER.glob("*.f32.gguf") if model.name.split(".")[0] not in ENCODERS)
    recurrent = {"lfm2", "mamba", "mamba2", "qwen35"}

    def one(model):
        sizes = "tokens=1" if model.name.split(".")[0] in recurrent else "tokens=5"
        return check(model, tokens, np.load(model.with_name(model.stem + ".logits.npy")), folder / model.stem, "--dim", sizes)

    found = parallel(one, models)
    print(f"# language models with fixed sizes against llama.cpp: {len(found)} files; worst {summary(found)}")


def test_gpt_neox(folder):
    """Uses transformers' model in the layout of llama.cpp's converter: the rows of all queries, keys and values are
    consecutive."""
    model = CORPUS / "huggingface" / "hf_gpt_neox"
    if not model.exists():
        print("# GPT-NeoX as GGUF: skipped, there is no corpus")
        return
    names = {"gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output",
             "input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
             "post_attention_layernorm": "ffn_norm", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
    tensors = {}
    for name, (_, _, tensor) in safetensors_file.read(model / "model.safetensors").items():
        if name.endswith("inv_freq"):
            continue
        if "query_key_value" in name:
            tensor = tensor.reshape(4, 3, 16, -1).swapaxes(0, 1).reshape(tensor.shape)
        base, part = name.rsplit(".", 1)
        layer, inner = base.removeprefix("gpt_neox.layers.").split(".", 1) if ".layers." in base else ("", base)
        tensors[f"blk.{layer}.{names[inner]}.{part}" if layer else f"{names[base]}.{part}"] = tensor
    numbers = {"context_length": 2048, "embedding_length": 64, "block_count": 2, "feed_forward_length": 128,
               "attention.head_count": 4, "attention.layer_norm_epsilon": 1e-5, "rope.dimension_count": 4,
               "use_parallel_residual": True}
    metadata = {"general.architecture": "gptneox"} | {f"gptneox.{key}": number for key, number in numbers.items()}
    path = folder / "gptneox.gguf"
    path.write_bytes(gguf_wire.model(metadata, tensors))
    oracle = np.load(model / "oracle.npz")
    found = check(path, oracle["in_input_ids"][0], oracle["out_logits"][0], folder / "scratch")
    print(f"# GPT-NeoX as GGUF against transformers: {summary([found])}")


def test_papers(folder):
    """Uses 80 of the 96 tokens of the model's context."""
    found = []

    def compare(name, llama, *options, tokens=80, **gguf):
        prompt = llama.prompt(tokens)
        path = llama.gguf(folder / f"{name}.gguf", **gguf)
        found.append(check(path, prompt, llama.logits(prompt), folder / f"{name}_{len(options)}", *options))

    compare("plain", Llama())
    linear = Llama()
    linear.frequencies = linear.frequencies / 4
    compare("linear", linear, numbers={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0})
    compare("yarn", Llama().yarn(4, 24), numbers={"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                                                  "rope.scaling.original_context_length": 24})
    # Phi-3 has one matrix for queries, keys and values, and one for gate and up. LongRoPE (Ding et al. 2024, section 3.3)
    # has factors for contexts beyond the 32 tokens of the training, and for shorter ones.
    factors = {"long": np.array([1, 1.5, 4, 8], "f4"), "short": np.array([1, 1.1, 1.2, 1.3], "f4")}
    for name, options, tokens in (("long", (), 80), ("short", ("--context", "32"), 32)):
        phi = Llama()
        phi.frequencies = phi.frequencies / factors[name]
        phi.magnitude = 1.25
        tensors = {f"{key}.weight": tensor for key, tensor in phi.whole.items()}
        tensors |= {f"rope_factors_{key}.weight": tensor for key, tensor in factors.items()}
        for layer, block in enumerate(phi.blocks):
            join = lambda *keys: np.concatenate([block[key] for key in keys])
            joined = {"attn_norm": block["attn_norm"], "attn_qkv": join("attn_q", "attn_k", "attn_v"),
                      "attn_output": block["attn_output"], "ffn_norm": block["ffn_norm"], "ffn_up": join("ffn_gate", "ffn_up"),
                      "ffn_down": block["ffn_down"]}
            tensors |= {f"blk.{layer}.{key}.weight": tensor for key, tensor in joined.items()}
        numbers = {"rope.scaling.original_context_length": 32, "rope.scaling.attn_factor": 1.25}
        compare("phi", phi, *options, tokens=tokens, architecture="phi3", numbers=numbers, tensors=tensors)
    print(f"# GGUF language models against NumPy: {len(found)}; worst {summary(found)}")


def test_context(folder):
    model = Llama().gguf(folder / "tiny.gguf")
    states = expect(run("inspect", "--ops", model, "--context", "32", "--json"), 0).answer["states"]
    assert [each["shape"] for each in states] == [[2, 1, 2, 32, 8]] * 2, states
    refused(run("inspect", "--ops", model, "--context", "97"), "usage", "1 to 96")
    refused(run("run", model, "--tokens", ""), "usage", "--tokens requires at least one token")
    off = error(logits(model, [3], folder / "one", "--context", "1"), logits(model, [3], folder / "all"))
    assert off < 1e-6, off
    long = Llama().gguf(folder / "long.gguf", numbers={"context_length": 2**31 - 1})
    refused(run("inspect", "--ops", long, "--context", str(2**31 - 1), timeout=5), "resource-limit", "--context")
    refused(run("run", model, "--context", "2", "--tokens", "1,2,3"), "usage", "accepts at most 2")
    refused(run("run", model, "--tokens", "1,50"), "bad-input", "0 to 49")


def test_verify(folder):
    """Verifies with given and generated prompts; a package with other weights does not pass."""
    llama = Llama()
    model, package = llama.gguf(folder / "tiny.gguf"), folder / "tiny.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    language = expect(run("verify", model, package, "--tokens", "1,2,3,4,5", "--json"), 0).answer["language"][0]
    assert language["tokens"] == [1, 2, 3, 4, 5] and not language["made_up"]
    for figures in (language["at_once"], language["step_by_step"]):
        assert figures["equal"] + len(figures["close"]) == 5 and not figures["wrong"], figures
        assert 0 < figures["mean_divergence"] < figures["max_divergence"] < 1e-3, figures
    expect(run("verify", model, package), 0, "prompt of 32 tokens, generated", "PASSED")
    tensors = llama.gguf_tensors()
    tensors["blk.1.ffn_down.weight"] = -tensors["blk.1.ffn_down.weight"]
    result = run("verify", llama.gguf(folder / "other.gguf", tensors=tensors), package)
    assert result.code == 3 and "FAIL logits, step by step" in result.stdout, result.stdout + result.stderr
    refused(run("verify", model, package, "--tokens", "1,50"), "bad-input", "0 to 49")


def test_nothing_compared(folder):
    """All logits are equal, regardless of the states."""
    llama = Llama()
    model = llama.gguf(folder / "flat.gguf", tensors=llama.gguf_tensors() | {"output.weight": np.zeros((50, 32))})
    expect(run("compile", model, "-o", folder / "flat.mlpackage"), 0)
    expect(run("verify", model, folder / "flat.mlpackage"), 3, "not discriminating")


def test_refusals(folder):
    llama = Llama()
    model, tensors = llama.gguf(folder / "tiny.gguf"), llama.gguf_tensors()
    inspect = lambda tensors: run("inspect", "--ops", llama.gguf(folder / "other.gguf", tensors=tensors))
    refused(run("compile", model, "-o", folder / "x.mlpackage", "--target", "iOS17"), "target-too-old", "states", "iOS18")
    refused(run("compile", model, "-o", folder / "x.mlpackage", "--dim", "past=1"), "bad-name", "tokens or end")
    refused(inspect(tensors | {"blk.0.extra.weight": np.zeros((2, 2))}), "unused-tensor", "blk.0.extra.weight")
    refused(inspect({name: tensor for name, tensor in tensors.items() if name != "blk.1.ffn_up.weight"}), "missing-tensor",
            "blk.1.ffn_up.weight", "[48, 32]")
    refused(inspect(tensors | {"blk.1.ffn_up.weight": np.zeros((48, 31))}), "bad-tensor", "blk.1.ffn_up.weight", "[48, 31]",
            "[48, 32]")
    refused(run("inspect", "--ops", llama.gguf(folder / "unknown.gguf", "lama")), "unsupported-architecture", '"lama"',
            'did you mean "llama"', "decoders: cohere2, ", " qwen3,", 'the keys and tensors of a "llama" model')
    del tensors["blk.0.ffn_down.weight"]
    path = llama.gguf(folder / "unknown.gguf", "lama", tensors=tensors | {"blk.0.ffn_norm.weight": np.ones(32)})
    refused(run("inspect", "--ops", path), "unsupported-architecture", 'read as "llama": tensor "blk.0.ffn_down.weight" is missing')
    for key, number, word in (("attention.head_count", 2**31 - 1, "a head"), ("rope.dimension_count", 7, "rotary embedding covers 7"),
                              ("block_count", 0, "0 layers"), ("rope.freq_base", 0.0, "base 0"),
                              ("attention.key_length", 2**30, "at most 16384"), ("rope.scaling.factor", -1.0, "rope.scaling.factor")):
        refused(run("inspect", "--ops", llama.gguf(folder / "numbers.gguf", numbers={key: number})), "bad-file", word)
    for factor in (0.0, np.nan, -1.0, np.inf):
        refused(inspect(tensors | {"rope_freqs.weight": np.array([1, factor, 1, 1])}), "bad-tensor", "factor 1 ")
    refused(run("inspect", "--ops", llama.gguf(folder / "scaled.gguf", numbers={"rope.scaling.type": "spiral"})),
            "unsupported-architecture", '"spiral"', "llama.rope.scaling.type", "yarn")
    for key, number in (("attention.causal", False), ("pooling_type", 3)):
        refused(run("inspect", "--ops", llama.gguf(folder / "others.gguf", numbers={key: number})), "unsupported-architecture",
                f"llama.{key}")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "GGUF language models"))
