#!/usr/bin/env python3
"""Tests language models in Hugging Face folders: logits of all tokens at once and one after the other, of folder and
package.

The expected logits are those of llama.cpp and transformers, which are stored in the folders of the corpus, and those of
language_models.Llama, which implements the papers with NumPy.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import gguf_wire
import safetensors_file
from driver import CORPUS, expect, parallel, run, run_tests
from language_models import Llama, check, logits, refused, summary

FOLDER = CORPUS / "huggingface"
DECODERS = ["gemma", "gemma2", "gemma3", "hf_falcon", "hf_gpt2", "hf_gpt_neox", "hf_llama", "llama", "mixtral", "phi3", "qwen2",
            "qwen3", "qwen3moe", "starcoder2"]


def test_corpus(folder):
    if not FOLDER.exists():
        print("# language models of Hugging Face's corpus: skipped, there is no corpus")
        return

    def one(name):
        model = FOLDER / name
        if (model / "oracle.npz").exists():
            oracle = np.load(model / "oracle.npz")
            return check(model, oracle["in_input_ids"][0], oracle["out_logits"][0], folder / name)
        tokens = (CORPUS / "gguf" / "TOKENS.txt").read_text().split(":")[1].split()
        return check(model, tokens, np.load(model / "logits.npy"), folder / name)

    found = list(parallel(one, DECODERS))
    print(f"# Hugging Face's language models against llama.cpp and transformers: {len(found)} folders; worst {summary(found)}")


def test_gguf(folder):
    """Compares models of the GGUF corpus, under their names in transformers, with llama.cpp's logits."""
    if not FOLDER.exists():
        print("# folders made of GGUF files: skipped, there is no corpus")
        return
    common = {"token_embd": "model.embed_tokens", "output": "lm_head", "attn_norm": "input_layernorm",
              "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj"}
    models = {
        "phi2": (common | {"output_norm": "model.final_layernorm", "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1",
                           "ffn_down": "mlp.fc2"},
                 {"model_type": "phi", "partial_rotary_factor": 0.5, "hidden_act": "gelu_new"}),
        "stablelm": (common | {"output_norm": "model.norm", "attn_output": "self_attn.o_proj",
                               "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
                               "ffn_down": "mlp.down_proj"},
                     {"model_type": "stablelm", "partial_rotary_factor": 0.25, "use_qkv_bias": True,
                      "use_parallel_residual": False}),
    }
    found = []
    for name, (names, config) in models.items():
        metadata, tensors = gguf_wire.read(CORPUS / "gguf" / f"{name}.f32.gguf")
        number = lambda key: metadata[f"{name}.{key}"]
        config |= {"hidden_size": number("embedding_length"), "num_hidden_layers": number("block_count"),
                   "num_attention_heads": number("attention.head_count"),
                   "num_key_value_heads": number("attention.head_count_kv"), "intermediate_size": number("feed_forward_length"),
                   "vocab_size": number("vocab_size"), "max_position_embeddings": number("context_length"),
                   "layer_norm_eps": number("attention.layer_norm_epsilon"), "rope_theta": number("rope.freq_base"),
                   "tie_word_embeddings": False}
        there = {}
        for key, tensor in tensors.items():
            *layer, base, part = key.split(".")
            there[".".join((["model", "layers", layer[1]] if layer else []) + [names[base], part])] = tensor
        path = Llama().hugging_face(folder / name, config, there)
        tokens = (CORPUS / "gguf" / "TOKENS.txt").read_text().split(":")[1].split()
        found.append(check(path, tokens, np.load(CORPUS / "gguf" / f"{name}.f32.logits.npy"), folder / "scratch"))
    print(f"# folders made of GGUF files against llama.cpp: {len(found)}; worst {summary(found)}")


def test_papers(folder):
    """Uses 80 of the 96 tokens of the model's context."""
    found = []

    def compare(name, llama, *options, tokens=80, **config):
        prompt = llama.prompt(tokens)
        path = llama.hugging_face(folder / f"{name}_{len(options)}", config)
        found.append(check(path, prompt, llama.logits(prompt), folder / "scratch", *options))

    def scaled(frequencies, magnitude=1.0):
        llama = Llama()
        llama.frequencies = frequencies(llama.frequencies)
        llama.magnitude = magnitude
        return llama

    compare("plain", Llama())
    window = Llama()
    window.window = 16
    compare("mistral", window, model_type="mistral", sliding_window=16)
    # Llama's configuration has no window, even if the file has the key; Mistral's does not use max_window_layers.
    compare("unused_window", Llama(), sliding_window=16)
    compare("mistral_window", window, model_type="mistral", sliding_window=16, max_window_layers=2)
    # transformers' Mistral uses only the window; use_sliding_window is a key of Qwen.
    compare("mistral_key", window, model_type="mistral", sliding_window=16, use_sliding_window=False)
    compare("linear", scaled(lambda f: f / 4), rope_scaling={"type": "linear", "factor": 4.0})
    compare("newer", scaled(lambda f: f / 4), rope_theta=None,
            rope_parameters={"rope_theta": Llama.base, "rope_type": "linear", "factor": 4.0})
    compare("yarn", Llama().yarn(4, 24),
            rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24})

    # Llama 3.1 divides the frequencies of waves longer than 64 tokens by eight, keeps those of waves below 16 tokens, and
    # interpolates between them (Meta's llama-models, models/llama3/model.py, apply_scaling).
    def slowed(frequencies):
        waves = 2 * np.pi / frequencies
        smooth = (64 / waves - 1) / (4 - 1)
        between = (1 - smooth) * frequencies / 8 + smooth * frequencies
        return np.where(waves < 64 / 4, frequencies, np.where(waves > 64 / 1, frequencies / 8, between))

    compare("llama3", scaled(slowed), rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 64})
    # LongRoPE (Ding et al. 2024, section 3.3).
    factors = {"long_factor": [1.0, 1.5, 4.0, 8.0], "short_factor": [1.0, 1.1, 1.2, 1.3]}
    magnitude = np.sqrt(1 + np.log(96 / 32) / np.log(32))
    for name, options, tokens in (("long_factor", (), 80), ("short_factor", ("--context", "32"), 32)):
        compare("longrope", scaled(lambda f: f / factors[name], magnitude), *options, tokens=tokens,
                original_max_position_embeddings=32, rope_scaling={"type": "longrope"} | factors)
    print(f"# Hugging Face's language models against NumPy: {len(found)}; worst {summary(found)}")


def test_names(folder):
    """Names may lack the outermost module, as in GPT-2's published weights; stored tables that can be computed are ignored."""
    llama = Llama()
    tensors = {name.removeprefix("model."): tensor for name, tensor in llama.hugging_face_tensors().items()}
    tensors["layers.0.self_attn.rotary_emb.inv_freq"] = np.zeros(4)
    prompt = llama.prompt(5)
    check(llama.hugging_face(folder / "bare", tensors=tensors), prompt, llama.logits(prompt), folder / "scratch")


def test_what_is_left_out(folder):
    """Tests defaults of missing keys: a separate matrix for logits means that embeddings are not tied. Newer folders store
    the rotated fraction of heads in another place."""
    llama = Llama()
    prompt = llama.prompt(5)
    check(llama.hugging_face(folder / "untied", {"tie_word_embeddings": None}), prompt, llama.logits(prompt), folder / "scratch")
    older = llama.hugging_face(folder / "older", {"partial_rotary_factor": 0.5})
    newer = llama.hugging_face(folder / "newer", {"rope_parameters": {"rope_theta": llama.base, "partial_rotary_factor": 0.5}})
    partly, whole = (logits(model, prompt, folder / model.name / "out") for model in (older, newer))
    assert np.array_equal(partly, whole) and not np.array_equal(partly, llama.logits(prompt))


def rewritten(model, change, metadata=None):
    """Rewrites the folder with the tensors returned by `change`, and with this __metadata__."""
    path = model / "model.safetensors"
    tensors = {name: array for name, (_, _, array) in safetensors_file.read(path).items()}
    path.write_bytes(safetensors_file.of(change(tensors), metadata))
    return model


def test_biases(folder):
    """Stored biases that the configuration disables are not added: transformers' torch.nn.Linear(bias=config.attention_bias)
    has none, and calls them unexpected. Biases that it enables are added."""
    biased = ("attn_q", "attn_k", "attn_v", "attn_output")
    with_biases, plain = type("Biased", (Llama,), {"biased": biased})(), Llama()
    for name in plain.whole:
        with_biases.whole[name] = plain.whole[name]
    for own, other in zip(with_biases.blocks, plain.blocks):
        own |= other
    prompt = plain.prompt(9)
    added, left_out = with_biases.logits(prompt), plain.logits(prompt)
    assert not np.allclose(added, left_out)
    cases = [("on", {"attention_bias": True}, added), ("off", {"attention_bias": False}, left_out), ("silent", {}, left_out),
             ("mistral", {"model_type": "mistral", "sliding_window": None, "attention_bias": True}, left_out),
             ("seed", {"model_type": "seed_oss", "head_dim": 8, "attention_out_bias": True}, added)]
    for name, config, wanted in cases:
        model = with_biases.hugging_face(folder / name, config)
        check(model, prompt, wanted, folder / "scratch")
        result = expect(run("inspect", "--ops", model), 0)
        assert ("are ignored" in result.stderr) == (wanted is left_out), result.stderr
    model = with_biases.hugging_face(folder / "norm", {"attention_bias": True},
                                     with_biases.hugging_face_tensors() | {"model.norm.bias": np.ones(32)})
    check(model, prompt, added, folder / "scratch")
    assert "model.norm.bias" in run("inspect", "--ops", model).stderr


def test_missing_biases(folder):
    """transformers reports biases that the configuration enables and no file contains, and initialises them with zeros."""
    plain = Llama()
    prompt = plain.prompt(9)
    for key, on in (("attention_bias", True), ("mlp_bias", True), ("attention_bias", False)):
        model = plain.hugging_face(folder / f"{key}{on}", {key: on})
        check(model, prompt, plain.logits(prompt), folder / "scratch")
        shown = expect(run("inspect", "--ops", model), 0)
        assert (f'"{key}"' in shown.stderr) == on, shown.stderr


FAMILIES = ("cohere2 ernie4_5 exaone4 falcon gemma gemma2 gemma3_text gpt2 gpt_neox granite lfm2 llama mistral mixtral olmo2 opt phi phi3 qwen2 "
            "qwen2_moe qwen3 qwen3_moe seed_oss smollm3 stablelm starcoder2").split()


def test_missing_tensors(folder):
    """The error names the missing tensor for every family and every configuration."""
    missing = 0
    for family in FAMILIES:
        for number, config in enumerate(({}, {"num_local_experts": 2, "num_experts": 2, "num_experts_per_tok": 1},
                                         {"shared_expert_intermediate_size": 8, "num_experts": 2, "num_experts_per_tok": 1},
                                         {"tie_word_embeddings": True}, {"rope_scaling": {"rope_type": "linear", "factor": 2.0}})):
            general = {"model_type": family, "logit_scale": 1.0, "layer_norm_eps": 1e-5, "sliding_window": 8, "num_experts_per_tok": 1}
            shown = run("inspect", "--ops", Llama().hugging_face(folder / f"{family}{number}", general | config, {"other": np.ones(3)}))
            assert shown.code == 1 and '""' not in shown.stderr, (family, config, shown.stderr)
            missing += "missing-tensor" in shown.stderr
    assert missing >= 4 * len(FAMILIES), missing


ATTENTION = tuple(f"self_attn.{part}_proj" for part in "qkvo")
MLP = tuple(f"mlp.{part}_proj" for part in ("gate", "up", "down"))
NORM = ("input_layernorm",)
NEOX = ("attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "input_layernorm")
FALCON = ("self_attention.query_key_value", "self_attention.dense", "mlp.dense_h_to_4h", "input_layernorm")
OPT = ("self_attn.q_proj", "self_attn.out_proj", "fc1", "fc2", "self_attn_layer_norm", "final_layer_norm")
MODERNBERT = ("attn.Wqkv", "attn.Wo", "mlp.Wi", "mlp.Wo", "attn_norm", "mlp_norm")
ON, OFF = {"attention_bias": True, "mlp_bias": True}, {"attention_bias": False, "mlp_bias": False}


def biases_kept():
    """Yields the family, members of config.json, modules that may have a bias, and modules that have one, according to
    `bias=` of torch.nn.Linear and LayerNorm in transformers, models/*/modeling_*.py, and to the defaults of
    models/*/configuration_*.py."""
    usual = ATTENTION + MLP + NORM
    for family in ("llama", "granite", "smollm3"):
        yield family, {}, usual, ()
        yield family, {"attention_bias": True}, usual, ATTENTION
        yield family, {"mlp_bias": True}, usual, MLP
    for family in ("qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "cohere2", "olmo2"):
        yield family, {}, usual, ()
        yield family, ON, usual, ATTENTION
    for family in ("mistral", "mixtral", "phi3", "exaone4"):
        yield family, ON, usual, ()
    yield "t5", ON, ("SelfAttention.q", "DenseReluDense.wi", "layer_norm"), ()
    yield "gpt2", OFF, ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "ln_1"), ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "ln_1")
    yield "phi", OFF, usual, usual
    yield "qwen2", OFF, usual, ATTENTION[:3]
    yield "qwen2_moe", OFF, usual, ATTENTION[:3]
    yield "qwen2_moe", {"qkv_bias": False}, usual, ()
    yield "stablelm", ON, usual, NORM
    yield "stablelm", {"use_qkv_bias": True}, usual, ATTENTION[:3] + NORM
    yield "starcoder2", OFF, usual, usual
    yield "starcoder2", {"use_bias": False}, usual, NORM
    yield "ernie4_5", ON, usual, ()
    yield "ernie4_5", {"use_bias": True}, usual, ATTENTION + MLP
    yield "seed_oss", {}, usual, ATTENTION[:3]
    yield "seed_oss", {"attention_bias": False, "attention_out_bias": True}, usual, ATTENTION[3:]
    yield "seed_oss", {"mlp_bias": True}, usual, ATTENTION[:3] + MLP
    yield "gpt_neox", {}, NEOX, NEOX
    yield "gpt_neox", OFF, NEOX, NEOX[2:]
    yield "falcon", ON, FALCON, FALCON[3:]
    yield "falcon", {"bias": True}, FALCON, FALCON
    yield "opt", OFF, OPT, OPT
    yield "opt", {"enable_bias": False}, OPT, OPT[4:]
    yield "modernbert", {}, MODERNBERT, ()
    yield "modernbert", {"attention_bias": True}, MODERNBERT, MODERNBERT[:2]
    yield "modernbert", {"mlp_bias": True}, MODERNBERT, MODERNBERT[2:4]
    yield "modernbert", {"norm_bias": True}, MODERNBERT, MODERNBERT[4:]


def test_biases_of_families(folder):
    """Module i occurs in 2**i layers, so the number of ignored biases identifies the modules."""
    for number, (family, config, modules, kept) in enumerate(biases_kept()):
        biases = {f"model.layers.{layer}.{module}.bias": np.ones(1)
                  for place, module in enumerate(modules) for layer in range(2**place)}
        model = Llama().hugging_face(folder / str(number), {"model_type": family} | config, biases)
        said = re.search(r"(\d+) of the stored biases", run("inspect", "--ops", model).stderr)
        left_out = int(said[1]) if said else 0
        assert left_out == sum(2**place for place, module in enumerate(modules) if module not in kept), (family, config, said)


def test_tied(folder):
    """Follows transformers 5, modeling_utils.py, tie_weights: a stored matrix that differs from the matrix it is tied to is
    used, with a warning; either of the two may be stored."""
    llama = Llama()
    prompt = llama.prompt(9)
    tied = type("Tied", (Llama,), {"tied": True})()
    on = {"tie_word_embeddings": True}
    differs = llama.hugging_face(folder / "differs", on)
    check(differs, prompt, llama.logits(prompt), folder / "scratch")
    expect(run("inspect", "--ops", differs), 0, "lm_head.weight", "model.embed_tokens.weight", "tie_word_embeddings")
    same = lambda tensors: tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"]}
    moved = lambda tensors: {name: array for name, array in same(tensors).items() if name != "model.embed_tokens.weight"}
    for name, change in (("same", same), ("moved", moved)):
        model = rewritten(tied.hugging_face(folder / name), change)
        check(model, prompt, tied.logits(prompt), folder / "scratch")
        assert "tie_word_embeddings" not in run("inspect", "--ops", model).stderr
    # Without tied embeddings, neither name can stand for the other.
    refused(run("inspect", "--ops", rewritten(llama.hugging_face(folder / "untied"), moved)), "missing-tensor",
            "model.embed_tokens.weight")


def test_aliases(folder):
    """safetensors.torch's save_model stores one of several shared tensors, and lists the others in __metadata__: {name of
    the omitted tensor: name of the stored tensor}."""
    tied = type("Tied", (Llama,), {"tied": True})()
    prompt = tied.prompt(9)
    for number, (kept, left_out) in enumerate((("lm_head.weight", "model.embed_tokens.weight"),
                                               ("model.embed_tokens.weight", "lm_head.weight"))):
        for on in (True, False):
            model = tied.hugging_face(folder / f"{number}{on}", {"tie_word_embeddings": on})
            rewritten(model, lambda tensors: {kept if name == "model.embed_tokens.weight" else name: array
                                              for name, array in tensors.items()}, {"format": "pt", left_out: kept})
            check(model, prompt, tied.logits(prompt), folder / "scratch")
    # Any tensor may be shared: here all layers share the gate of the first one.
    shared = Llama()
    for block in shared.blocks[1:]:
        block["ffn_gate"] = shared.blocks[0]["ffn_gate"]
    first, second = (f"model.layers.{i}.mlp.gate_proj.weight" for i in range(2))
    drop = lambda tensors: {name: array for name, array in tensors.items() if name != second}
    model = rewritten(shared.hugging_face(folder / "gates"), drop, {second: first})
    check(model, prompt, shared.logits(prompt), folder / "scratch")
    model = rewritten(shared.hugging_face(folder / "nowhere"), drop, {second: "model.layers.9.mlp.gate_proj.weight"})
    refused(run("inspect", "--ops", model), "missing-tensor", second)


def test_fp8(folder):
    """A weight without a scale is rejected if other weights have scales; if none has, FP8 is a cast, as in transformers."""
    llama = Llama()
    prompt, tensors = llama.prompt(9), llama.hugging_face_tensors()
    codes = np.arange(256, dtype="u1")
    exponent, mantissa = (codes >> 3 & 15).astype(int), (codes & 7) / 8  # OCP 8-bit floating point 1.0, section 5.2.1
    values = np.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7)) * np.where(codes & 128, -1, 1)
    values[codes & 127 == 127] = np.inf
    name = "model.layers.0.mlp.gate_proj.weight"
    nearest = np.abs(values[None, None] - tensors[name][..., None]).argmin(-1).astype("u1")
    llama.blocks[0]["ffn_gate"] = values[nearest]
    raw = ("F8_E4M3", nearest.shape, nearest.tobytes())

    def model_of(name_of_folder, config={}, more={}):
        model = llama.hugging_face(folder / name_of_folder, config)
        return rewritten(model, lambda floats: floats | {name: raw} | more)

    cast = model_of("cast")
    check(cast, prompt, llama.logits(prompt), folder / "scratch")
    assert "without scales" in run("inspect", "--ops", cast).stderr
    one = {name + "_scale_inv": np.ones((1, 1), "f4")}
    for method in ({"quant_method": "fp8", "weight_block_size": [128, 128]}, {"quant_method": "compressed-tensors"}):
        config = {"quantization_config": method}
        refused(run("inspect", "--ops", model_of(method["quant_method"], config)), "bad-constant", name, "_scale_inv")
        check(model_of(method["quant_method"] + "_scaled", config, one), prompt, llama.logits(prompt), folder / "scratch")
    # Weights that the configuration excludes are used as stored: transformers' should_convert_module, compressed-tensors'
    # ignore.
    module = name.removesuffix(".weight")
    for number, (key, entry, excluded) in enumerate((
            ("modules_to_not_convert", module, True), ("modules_to_not_convert", "model.layers.0", True),
            ("modules_to_not_convert", "gate_proj", True), ("modules_to_not_convert", "model.*.mlp", True),
            ("modules_to_not_convert", "model.layers.1", False), ("modules_to_not_convert", "layers", False),
            ("modules_to_not_convert", "lm_head", False), ("modules_to_not_convert", None, False),
            ("ignore", module, True), ("ignore", "re:.*gate_proj$", True), ("ignore", r"re:^model\.layers\.0\..*", True),
            ("ignore", "re:.*mlp.gate$", False), ("ignore", "gate_proj", False), ("ignore", "re:(.*)*x", False))):
        config = {"quantization_config": {"quant_method": "fp8", key: entry and ["nothing", entry]}}
        model = model_of(f"excluded_{number}", config)
        if excluded:
            check(model, prompt, llama.logits(prompt), folder / "scratch")
        else:
            refused(run("inspect", "--ops", model), "bad-constant", name, "_scale_inv")
    # There is no configuration, but another weight has a scale.
    other = "model.layers.1.mlp.gate_proj.weight"
    refused(run("inspect", "--ops", model_of("other", {}, {other: raw, other + "_scale": np.ones(1, "f4")})), "bad-constant", name)


def test_defaults(folder):
    """Missing keys have the defaults of the family's configuration class (transformers' configuration_smollm3.py)."""
    Silent = type("Silent", (Llama,), {"model_type": "smollm3", "base": 2e6, "key_heads": 4, "tied": True, "unturned_every": 4,
                                       "layers": 4})
    llama = Silent()
    model, prompt = llama.hugging_face(folder / "silent"), llama.prompt(20)
    config = json.loads((model / "config.json").read_text())
    for key in ("rope_theta", "num_key_value_heads", "tie_word_embeddings"):
        del config[key]
    (model / "config.json").write_text(json.dumps(config))
    check(model, prompt, llama.logits(prompt), folder / "scratch")


def test_default_output(folder):
    """A dot in a folder's name does not start an extension."""
    model = Llama().hugging_face(folder / "Tiny-1.2-chat")
    expect(run("compile", model, folder=folder), 0)
    assert (folder / "Tiny-1.2-chat.mlpackage").exists() and (folder / "Tiny-1.2-chat.manifest.json").exists()


def test_refusals(folder):
    llama = Llama()
    number = iter(range(100))

    def inspect(config={}, without="", more={}):
        tensors = {name: tensor for name, tensor in llama.hugging_face_tensors().items() if name != without}
        return run("inspect", "--ops", llama.hugging_face(folder / str(next(number)), config, tensors | more))

    refused(inspect(more={"model.extra": np.zeros(2)}), "unused-tensor", "model.extra")
    refused(inspect(without="model.layers.1.mlp.up_proj.weight"), "missing-tensor", "model.layers.1.mlp.up_proj.weight", "[48, 32]")
    refused(inspect(without="lm_head.weight"), "missing-tensor", "lm_head.weight", "tie_word_embeddings")
    refused(inspect({"intermediate_size": 47}), "bad-tensor", "[48, 32]", "[47, 32]")
    refused(inspect({"model_type": "lama"}), "unsupported-architecture", 'did you mean "llama"', "decoders: cohere2, ", " mistral,", "encoders: albert, bert")
    refused(inspect({"hidden_act": "wave"}), "unsupported-architecture", '"wave"', "hidden_act")
    refused(inspect({"rope_scaling": {"type": "dynamic", "factor": 2.0}}), "unsupported-architecture", '"dynamic"', "rope_scaling")
    refused(inspect({"rope_theta": 0.0}), "bad-file", "base 0")
    refused(inspect({"partial_rotary_factor": 1.5}), "unsupported-architecture", "partial_rotary_factor")
    refused(inspect({"head_dim": 2**31 - 1}), "bad-file", "a head has 2147483647 dimensions")
    refused(inspect({"head_dim": 2**30}), "bad-file", "at most 16384")
    llama3 = {"rope_type": "llama3", "factor": 0, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}
    refused(inspect({"rope_scaling": llama3}), "bad-file", "rope_scaling.factor")
    refused(inspect({"rope_scaling": {"type": "yarn", "factor": 4.0, "mscale": 1.0}}), "unsupported-architecture", "mscale")
    refused(inspect({"num_key_value_heads": 3}), "bad-file", "number of heads (4)", "key/value heads (3)")
    for key in ("rope_theta", "rms_norm_eps"):  # Python writes these as Infinity or NaN
        refused(inspect({key: float("nan")}), "bad-file", key, "NaN")
    quantised = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    refused(inspect(quantised, without="model.layers.1.mlp.up_proj.weight"), "missing-tensor", "quantised by gptq")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "Hugging Face's language models"))
