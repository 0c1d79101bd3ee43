#!/usr/bin/env python3
"""Tests families of decoders that have no model in the corpus, as GGUF files and as Hugging Face folders.

The expected results are those of language_models.Llama with NumPy, according to transformers' models/NAME/modular_NAME.py
(or configuration and modeling_NAME.py) and, for differences in GGUF, llama.cpp's src/models/NAME.cpp.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

from driver import parallel, run_tests
from language_models import Llama, check, summary


class Granite(Llama):
    model_type = "granite"
    embedding_scale, residual_scale, logit_scale, attention_scale = 6.0, 0.22, 1 / 8, 0.25
    gguf_numbers = {"embedding_scale": 6.0, "residual_scale": 0.22, "logit_scale": 8.0, "attention.scale": 0.25}
    config = {"embedding_multiplier": 6.0, "residual_multiplier": 0.22, "logits_scaling": 8.0, "attention_multiplier": 0.25}


class SmolLm3(Llama):
    model_type, tied, layers, unturned_every = "smollm3", True, 4, 4
    gguf_numbers = {}
    config = {"no_rope_layers": [1, 1, 1, 0]}


class Olmo2(Llama):
    model_type, norms, head_norm, neighbours_in_gguf = "olmo2", "behind", "whole", False
    gguf_numbers = config = {}


class Cohere2(Llama):
    model_type, tied, layers, parallel, layer_norm, neighbours_there = "cohere2", True, 4, True, True, True
    unturned_every = global_every = 4
    logit_scale = 0.0625
    gguf_numbers = {"logit_scale": 0.0625, "attention.sliding_window": 16}
    config = {"logit_scale": 0.0625, "sliding_window": 16, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}

    def __init__(self):
        super().__init__()
        self.window = 16


class Cohere2Pairs(Cohere2):
    """Gives another pattern as a number, which determines both the layers with rotary embedding and those with windows."""
    unturned_every = global_every = 2
    gguf_numbers = Cohere2.gguf_numbers | {"attention.sliding_window_pattern": 2}
    config = {"logit_scale": 0.0625, "sliding_window": 16, "sliding_window_pattern": 2}


class Qwen2Moe(Llama):
    model_type, experts, used, neighbours_in_gguf, biased = "qwen2_moe", 6, 2, False, ("attn_q", "attn_k", "attn_v")
    gguf_name = "qwen2moe"
    gguf_numbers = {"expert_count": 6, "expert_used_count": 2}  # sizes are those of the tensors
    config = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 48,
              "norm_topk_prob": False, "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False,
              "sliding_window": 16}


class Ernie45(Llama):
    model_type, tied, neighbours_there = "ernie4_5", True, True
    gguf_numbers = config = {}


class SeedOss(Llama):
    model_type, neighbours_in_gguf, biased = "seed_oss", False, ("attn_q", "attn_k", "attn_v")
    gguf_numbers = {}
    config = {"attention_bias": True, "attention_out_bias": False}

    def gguf_tensors(self):
        return {name.replace("ffn_norm", "post_attention_norm"): tensor for name, tensor in super().gguf_tensors().items()}


class SeedOssUnbiased(SeedOss):
    biased, config = (), {"attention_bias": False, "attention_out_bias": False}


class Exaone4(Llama):
    """In GGUF, only models with 64 layers have windows."""
    model_type, norms, head_norm, layers, neighbours_in_gguf = "exaone4", "behind", "each", 64, False
    unturned_every = global_every = 4
    gguf_numbers = {"attention.sliding_window": 16, "attention.sliding_window_pattern": [True, True, True, False] * 16}
    config = {"sliding_window": 16, "sliding_window_pattern": "LLLG",
              "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 16}

    def __init__(self):
        super().__init__()
        self.window = 16


class Exaone4Small(Llama):
    """Without windows, all layers have rotary embedding."""
    model_type, norms, head_norm, layers, neighbours_in_gguf, tied = "exaone4", "behind", "each", 4, False, True
    gguf_numbers = {}
    config = {"sliding_window": None, "sliding_window_pattern": None, "layer_types": ["full_attention"] * 4}


class Opt:
    """OPT (Zhang et al. 2022) as in transformers: LayerNorm before attention and feed-forward, biases everywhere, ReLU, and
    learned positions, of which the first is in the third row."""
    width, heads, head, inner, vocabulary, context = 32, 4, 8, 48, 50, 96
    config = {"model_type": "opt", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48,
              "vocab_size": 50, "max_position_embeddings": 96, "word_embed_proj_dim": 32, "do_layer_norm_before": True,
              "activation_function": "relu", "tie_word_embeddings": True, "num_key_value_heads": None,
              "intermediate_size": None, "hidden_act": None, "rms_norm_eps": None, "rope_theta": None}

    def __init__(self):
        random = np.random.default_rng(11)
        self.tensors = {}

        def add(name, *shape):
            self.tensors[f"model.decoder.{name}"] = (random.standard_normal(shape) / np.sqrt(shape[-1])).astype("f4")

        def module(name, *shape):
            add(f"{name}.weight", *shape)
            add(f"{name}.bias", shape[0])
            if len(shape) == 1:
                self.tensors[f"model.decoder.{name}.weight"] += 1

        add("embed_tokens.weight", self.vocabulary, self.width)
        add("embed_positions.weight", self.context + 2, self.width)
        module("final_layer_norm", self.width)
        for layer in range(2):
            for name in ("q", "k", "v", "out"):
                module(f"layers.{layer}.self_attn.{name}_proj", self.width, self.width)
            module(f"layers.{layer}.fc1", self.inner, self.width)
            module(f"layers.{layer}.fc2", self.width, self.inner)
            for name in ("self_attn_layer_norm", "final_layer_norm"):
                module(f"layers.{layer}.{name}", self.width)

    def hugging_face(self, folder):
        return Llama().hugging_face(folder, self.config, self.tensors)

    def logits(self, tokens):
        of = lambda name: self.tensors[f"model.decoder.{name}"].astype("f8")
        linear = lambda name, x: x @ of(f"{name}.weight").T + of(f"{name}.bias")

        def norm(name, x):
            x = x - x.mean(-1, keepdims=True)
            return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5) * of(f"{name}.weight") + of(f"{name}.bias")

        count = len(tokens)
        x = of("embed_tokens.weight")[tokens] + of("embed_positions.weight")[2:count + 2]
        for layer in range(2):
            at = f"layers.{layer}"
            h = norm(f"{at}.self_attn_layer_norm", x)
            q, k, v = (linear(f"{at}.self_attn.{name}_proj", h).reshape(count, self.heads, self.head).transpose(1, 0, 2)
                       for name in "qkv")
            shares = np.exp(np.where(np.tri(count), q @ k.transpose(0, 2, 1) / np.sqrt(self.head), -np.inf))
            shares /= shares.sum(-1, keepdims=True)
            x = x + linear(f"{at}.self_attn.out_proj", (shares @ v).transpose(1, 0, 2).reshape(count, -1))
            x = x + linear(f"{at}.fc2", np.maximum(linear(f"{at}.fc1", norm(f"{at}.final_layer_norm", x)), 0))
        return norm("final_layer_norm", x) @ of("embed_tokens.weight").T


def test_opt(folder):
    model, prompt = Opt(), Llama().prompt()
    found = check(model.hugging_face(folder / "opt"), prompt, model.logits(prompt), folder / "scratch")
    print(f"# OPT against NumPy: {summary([found])}")


def test_families(folder):
    def one(family):
        model = family()
        prompt = model.prompt()
        expected = model.logits(prompt)
        own = folder / family.__name__
        own.mkdir()
        gguf = model.gguf(own / "model.gguf", getattr(model, "gguf_name", model.model_type), model.gguf_numbers)
        return [check(source, prompt, expected, own / source.stem)
                for source in (gguf, model.hugging_face(own / "model", model.config))]

    families = [Granite, SmolLm3, Olmo2, Cohere2, Cohere2Pairs, Qwen2Moe, Ernie45, SeedOss, SeedOssUnbiased, Exaone4, Exaone4Small]
    found = [figures for pair in parallel(one, families) for figures in pair]
    print(f"# families of decoders against NumPy: {len(families)}, each from GGUF and Hugging Face; worst {summary(found)}")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "architectures of decoders"))
