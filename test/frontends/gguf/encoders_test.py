#!/usr/bin/env python3
"""Tests encoders in GGUF files, and their packages, against llama.cpp's hidden states, which are stored with the files of
the corpus, and against encoder_numpy.py, an independent implementation, with the same weights, more tokens, padding,
poolings and heads."""
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parents[1] / "safetensors"))
import numpy as np

import encoder_numpy
import gguf_wire
from driver import CORPUS, expect, run, run_tests
from language_models import EXACT, PACKAGE, error, refused

FOLDER = CORPUS / "gguf"
FILES = ("bert_cls", "bert_mean", "modern_bert", "nomic_bert")
NONE, MEAN, FIRST, LAST, RANK = range(5)  # gguf-py's PoolingType


def outputs(model, folder, ids, *options, mask=None):
    """Returns mlc's outputs for one row of tokens."""
    folder.mkdir(exist_ok=True)
    if mask is None:
        arguments = ["--tokens", ",".join(map(str, ids))]
    else:
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
        arguments = []
        for port in expect(run("inspect", model, "--ops", "--json"), 0).answer["inputs"]:
            np.save(folder / f"{port['name']}.npy", given[port["name"]].astype("i4")[None])
            arguments += ["--input", f"{port['name']}={folder / port['name']}.npy"]
    out = folder / ("tokens" if mask is None else "inputs")
    expect(run("run", model, *arguments, "--output-dir", out, *options), 0)
    return {path.stem: np.load(path) for path in out.glob("*.npy")}


def test_corpus(folder):
    """The pooled output is that of llama.cpp's states: the first state, or their mean."""
    if not FOLDER.exists():
        print("# encoders of the GGUF corpus: skipped, there is no corpus")
        return
    tokens = [int(word) for word in (FOLDER / "TOKENS.txt").read_text().split(":")[1].split()]
    worst, worst_package = 0, 0
    for name in FILES:
        model, package = FOLDER / f"{name}.f32.gguf", folder / f"{name}.mlpackage"
        states = np.load(model.with_name(model.stem + ".logits.npy"))
        wanted = {"hidden": states, "pooled": states[0] if name == "bert_cls" else states.mean(0, dtype="f8")}
        found = outputs(model, folder / name, tokens)
        assert found.keys() == wanted.keys(), found.keys()
        worst = max([worst] + [error(found[key], value) for key, value in wanted.items()])
        expect(run("compile", model, "-o", package, "--verify-each", "--target", "iOS16"), 0)
        found = outputs(package, folder / name, tokens)
        worst_package = max([worst_package] + [error(found[key], value) for key, value in wanted.items()])
        expect(run("verify", model, package), 0, "PASSED")
        expect(run("verify", model, package, "--tokens", ",".join(map(str, tokens))), 0, "PASSED")
    assert worst <= EXACT and worst_package <= PACKAGE, (worst, worst_package)
    print(f"# GGUF encoders: {len(FILES)} files within {worst:.1e} of llama.cpp, their packages within {worst_package:.1e}")


# The keys are the names of modules in a transformers folder.
NAMES = {
    "bert": {"embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
             "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
             "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
             "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
             "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
             "pooler.dense": "cls", "classifier": "cls.output"},
    "nomic-bert": {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
                   "emb_ln": "token_embd_norm", "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output",
                   "norm1": "attn_output_norm", "mlp.fc12": "ffn_gate", "mlp.fc11": "ffn_up", "mlp.fc2": "ffn_down",
                   "norm2": "layer_output_norm"},
    "modern-bert": {"embeddings.tok_embeddings": "token_embd", "embeddings.norm": "token_embd_norm", "attn.Wqkv": "attn_qkv",
                    "attn.Wo": "attn_output", "attn_norm": "attn_norm", "mlp_norm": "ffn_norm", "mlp.Wi": "ffn_up",
                    "mlp.Wo": "ffn_down", "final_norm": "output_norm", "head.dense": "cls", "head.norm": "cls.norm",
                    "classifier": "cls.output"},
    "t5encoder": {"shared": "token_embd", "0.SelfAttention.q": "attn_q", "0.SelfAttention.k": "attn_k",
                  "0.SelfAttention.v": "attn_v", "0.SelfAttention.o": "attn_o",
                  "0.SelfAttention.relative_attention_bias": "attn_rel_b", "0.layer_norm": "attn_norm",
                  "1.layer_norm": "ffn_norm", "1.DenseReluDense.wi": "ffn_up", "1.DenseReluDense.wi_0": "ffn_gate",
                  "1.DenseReluDense.wi_1": "ffn_up", "1.DenseReluDense.wo": "ffn_down",
                  "encoder.final_layer_norm": "enc.output_norm"},
    "gemma-embedding": {"embed_tokens": "token_embd", "norm": "output_norm", "self_attn.q_proj": "attn_q",
                        "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
                        "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
                        "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                        "post_feedforward_layernorm": "post_ffw_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
                        "mlp.down_proj": "ffn_down"}}
LAYERS = {"t5encoder": ("encoder.block.", "enc.blk."), "bert": ("encoder.layer.", "blk."),
          "nomic-bert": ("encoder.layers.", "blk.")}


def named(architecture, tensors):
    """Returns the tensors of a folder under GGUF's names."""
    theirs, ours = LAYERS.get(architecture, ("layers.", "blk."))
    found = {}
    for name, tensor in tensors.items():
        base, part = name.rsplit(".", 1)
        base = base.removeprefix("bert.").removeprefix("model.")
        layer = ""
        if base.startswith(theirs):
            number, base = base.removeprefix(theirs).split(".", 1)
            layer, base = f"{ours}{number}.", base.removeprefix("layer.")
        if base == "encoder.embed_tokens":
            continue
        if architecture == "gemma-embedding" and base.endswith("norm"):
            tensor = tensor + 1  # the converter stores them this way
        found[f"{layer}{NAMES[architecture][base]}.{part}"] = tensor
    return found


def write(path, architecture, transformers, pooling, numbers={}, more={}, without=(), blocks=False, **changes):
    """Writes the file, and returns encoder_numpy's configuration and tensors: those of llama.cpp, whose GELU is the tanh
    approximation."""
    config, tensors = encoder_numpy.tiny(transformers, **changes)
    own = {"context_length": encoder_numpy.MOST, "embedding_length": encoder_numpy.WIDTH, "block_count": encoder_numpy.LAYERS,
           "feed_forward_length": encoder_numpy.INNER, "attention.head_count": encoder_numpy.HEADS, "attention.causal": False,
           "pooling_type": pooling}
    rms = architecture in ("t5encoder", "gemma-embedding")
    epsilon = encoder_numpy.Network(config, {}, "").epsilon
    own["attention.layer_norm_rms_epsilon" if rms else "attention.layer_norm_epsilon"] = float(epsilon)
    own |= {
        "nomic-bert": {"rope.freq_base": 1000.0},
        "modern-bert": {"rope.freq_base": 160000.0, "rope.freq_base_swa": 10000.0, "attention.sliding_window": 16,
                        "hidden_activation": "gelu", "rope.scaling.type": "none"},
        "t5encoder": {"attention.key_length": 10, "attention.value_length": 10, "attention.relative_buckets_count": 32},
        "gemma-embedding": {"attention.head_count_kv": 2, "attention.key_length": 16, "attention.value_length": 16,
                            "attention.sliding_window": 16, "attention.sliding_window_pattern": 3, "rope.freq_base": 1e6}
    }.get(architecture, {}) | numbers
    own = {key: number for key, number in own.items() if number is not None}
    metadata = {"general.architecture": architecture} | {f"{architecture}.{key}": number for key, number in own.items()}
    stored = {name: tensor for name, tensor in (named(architecture, tensors) | more).items() if name not in without}
    if "token_types.weight" in stored:
        metadata["tokenizer.ggml.token_type_count"] = len(stored["token_types.weight"])
    matrices = [name for name, tensor in stored.items() if tensor.ndim == 2 and tensor.shape[1] % 32 == 0]
    path.write_bytes(gguf_wire.model(metadata, stored, dict.fromkeys(matrices if blocks else (), "Q8_0")))
    if blocks:  # the same file with the values of the blocks
        whole = stored | {name: gguf_wire.q8_0(stored[name])[1] for name in matrices}
        path.with_suffix(".whole.gguf").write_bytes(gguf_wire.model(metadata, whole))
    return config, tensors


def test_numpy(folder):
    """Uses 90 tokens, ten of which are padding, so that every window is exceeded."""
    rng, worst, found_all = np.random.default_rng(1), 0, 0
    ids = rng.integers(2, encoder_numpy.VOCABULARY, 90)
    mask = np.ones(90, int)
    ids[-10:], mask[-10:] = 1, 0
    dense = {"dense_2.weight": rng.standard_normal((80, 32)) / 6, "dense_3.weight": rng.standard_normal((32, 80)) / 9}
    encoder_numpy.ACTIVATIONS["gelu"] = encoder_numpy.ACTIVATIONS["gelu_new"]
    kinds = [("bert", "BertModel", MEAN, {}, {}), ("bert", "BertModel", FIRST, {}, {}), ("bert", "BertModel", NONE, {}, {}),
             ("bert", "BertForSequenceClassification", RANK, {}, {}), ("nomic-bert", "NomicBertModel", MEAN, {}, {}),
             ("modern-bert", "ModernBertModel", MEAN, {}, {}),
             ("modern-bert", "ModernBertForSequenceClassification", RANK, {"classifier_pooling": "mean"}, {}),
             ("t5encoder", "T5EncoderModel", NONE, {}, {}),
             ("t5encoder", "T5EncoderModel", MEAN, {"feed_forward_proj": "gated-gelu"}, {}),
             ("gemma-embedding", "Gemma3TextModel", MEAN, {}, {}), ("gemma-embedding", "Gemma3TextModel", MEAN, {}, dense)]
    for number, (architecture, transformers, pooling, changes, more) in enumerate(kinds):
        model = folder / f"{number}.gguf"
        without = ("cls.weight", "cls.bias") if pooling != RANK else ()
        config, tensors = write(model, architecture, transformers, pooling, seed=number, more=more, without=without, **changes)
        wanted = {key: value[0] for key, value in encoder_numpy.outputs(config, tensors, ids, ids * 0, mask).items()}
        wanted.pop("pooler_output", None)
        if pooling in (MEAN, FIRST):
            states = wanted["last_hidden_state"]
            pooled = states[0] if pooling == FIRST else states[mask > 0].mean(0)
            for matrix in more.values():
                pooled = pooled @ matrix.astype("f4").astype("f8").T
            wanted["sentence_embedding"] = pooled
        found = outputs(model, folder / f"{number}", ids, mask=mask)
        assert found.keys() == wanted.keys(), (architecture, found.keys(), wanted.keys())
        for key, value in wanted.items():
            seen = slice(80 if len(value) == 90 else None)
            off = error(found[key][0][seen], value[seen])
            assert off <= EXACT, (architecture, transformers, pooling, key, off)
            worst, found_all = max(worst, off), found_all + 1
    print(f"# GGUF encoders: {len(kinds)} tiny files, {found_all} outputs within {worst:.1e} of NumPy")


def test_blocks(folder):
    """Quantised matrices give the same result as their dequantised values, even below iOS18."""
    ids, model, whole = list(range(2, 22)), folder / "modern.gguf", folder / "modern.whole.gguf"
    write(model, "modern-bert", "ModernBertModel", MEAN, blocks=True)
    wanted = outputs(whole, folder / "whole", ids)
    found = outputs(model, folder / "blocks", ids)
    assert all(error(found[key], value) <= EXACT for key, value in wanted.items())
    sizes = {}
    for source, target in ((model, "iOS16"), (model, "iOS18"), (whole, "iOS18")):
        package = folder / f"{source.stem}.{target}.mlpackage"
        expect(run("compile", source, "-o", package, "--target", target), 0)
        found = outputs(package, folder / package.stem, ids)
        assert all(error(found[key], value) <= PACKAGE for key, value in wanted.items()), package
        sizes[source] = (package / "Data/com.apple.CoreML/weights/weight.bin").stat().st_size
    assert sizes[model] < sizes[whole], sizes


def test_sizes(folder):
    model, package = folder / "t5.gguf", folder / "t5.mlpackage"
    write(model, "t5encoder", "T5EncoderModel", MEAN)
    expect(run("compile", model, "-o", package, "--dim", "tokens=16"), 0, "[1, 16]")
    refused(run("compile", model, "-o", folder / "x.mlpackage", "--dim", "tokens=201"), "usage", "1 to 200")
    refused(run("compile", model, "-o", folder / "x.mlpackage", "--context", "5"), "usage", "--dim tokens")
    for name in ("input_ids", "attention_mask"):
        np.save(folder / f"{name}.npy", np.ones((1, 40), "i4"))
    refused(run("run", package, *(f"--input={name}={folder / name}.npy" for name in ("input_ids", "attention_mask"))), "bad-input",
            "--dim tokens=40")
    expect(run("verify", model, package, "--dim", "tokens=16"), 0, "PASSED")
    refused(run("run", model, "--tokens", "1", "--step"), "usage", "processes all tokens at once")
    facts = expect(run("inspect", model, "--json"), 0).answer
    assert [port["name"] for port in facts["outputs"]] == ["sentence_embedding", "last_hidden_state"], facts["outputs"]


def test_keys(folder):
    """Tests the keys that llama.cpp requires, and its defaults (src/models/NAME.cpp, llama-hparams.h)."""
    def states(architecture, transformers, numbers):
        write(model, architecture, transformers, NONE, numbers=numbers)
        return outputs(model, folder / "out", list(range(2, 60)))["hidden"]

    model, modern = folder / "model.gguf", ("modern-bert", "ModernBertModel")
    whole = states(*modern, {})
    assert np.array_equal(whole, states(*modern, {"rope.freq_base_swa": None}))
    assert np.array_equal(whole, states(*modern, {"rope.scaling.type": "linear", "rope.scaling.factor": 0.0}))
    assert np.array_equal(whole, states(*modern, {"rope.scaling.factor": 4.0}))  # has type none
    everywhere = states(*modern, {"attention.sliding_window": None})
    assert np.array_equal(everywhere, states(*modern, {"attention.sliding_window": 0})) and not np.array_equal(everywhere, whole)
    for key, number in (("rope.scaling.factor", 4.0), ("rope.scale_linear", 4.0), ("rope.scaling.attn_factor", 2.0)):
        write(model, *modern, NONE, numbers={"rope.scaling.type": None, key: number})
        refused(run("inspect", "--ops", model), "unsupported-architecture", "RoPE scaling")
    for architecture, transformers, key in (
            ("bert", "BertModel", "attention.layer_norm_epsilon"), ("modern-bert", "ModernBertModel", "attention.layer_norm_epsilon"),
            ("nomic-bert", "NomicBertModel", "attention.layer_norm_epsilon"), ("t5encoder", "T5EncoderModel", "attention.layer_norm_rms_epsilon"),
            ("gemma-embedding", "Gemma3TextModel", "attention.layer_norm_rms_epsilon"),
            ("gemma-embedding", "Gemma3TextModel", "attention.sliding_window")):
        write(model, architecture, transformers, MEAN, numbers={key: None})
        refused(run("inspect", "--ops", model), "bad-file", f'"{architecture}.{key}"')


def test_refusals(folder):
    model = folder / "other.gguf"

    def inspect(pooling=MEAN, architecture="modern-bert", transformers="ModernBertModel", **more):
        write(model, architecture, transformers, pooling, **more)
        return run("inspect", "--ops", model)

    refused(inspect(LAST), "unsupported-architecture", "pooling type 3", "modern-bert.pooling_type")
    refused(inspect(RANK), "missing-tensor", "cls.weight", "[32, 32]")
    for key, number in (("attention.causal", True), ("expert_count", 4), ("hidden_activation", "wave"),
                        ("rope.dimension_count", 4), ("rope.scaling.type", "yarn")):
        refused(inspect(numbers={key: number}), "unsupported-architecture", f"modern-bert.{key}")
    for key, number, word in (("block_count", 0, "0 layers"), ("attention.head_count", 5, "heads (5)"),
                              ("rope.freq_base", 0.0, "base 0"), ("context_length", 1 << 30, "131072")):
        assert word in inspect(numbers={key: number}).stderr, (key, inspect(numbers={key: number}).stderr)
    refused(inspect(without=["blk.1.ffn_norm.weight"]), "missing-tensor", "blk.1.ffn_norm.weight")
    refused(inspect(more={"blk.1.extra.weight": np.zeros((2, 2))}), "unused-tensor", "blk.1.extra.weight")
    refused(inspect(more={"blk.1.ffn_down.weight": np.zeros((2, 2))}), "bad-tensor", "[2, 2]", "[32, 48]")
    write(model, "bert", "BertModel", MEAN)
    model.write_bytes(model.read_bytes().replace(b"\4\0\0\0\0\0\0\0bert", b"\4\0\0\0\0\0\0\0berd"))
    refused(run("inspect", "--ops", model), "unsupported-architecture", '"berd"', 'did you mean "bert"', "encoders: bert, gemma-embedding")
    expect(inspect(numbers={"attention.sliding_window": 2**32 - 1}), 0)
    gemma = ("gemma-embedding", "Gemma3TextModel")
    refused(inspect(NONE, *gemma, more={"dense_2.weight": np.zeros((8, 32))}), "unused-tensor", "dense_2.weight")
    refused(inspect(MEAN, *gemma, numbers={"attention.value_length": 8}), "unsupported-architecture", "value_length")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "GGUF encoders"))
