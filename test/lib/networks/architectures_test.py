#!/usr/bin/env python3
"""Families of decoders of which there is no model in the corpus, as GGUF files and as Hugging Face folders.

Expected is what language_models.Llama computes with NumPy, by transformers' models/NAME/modular_NAME.py (configuration and
modeling_NAME.py where there is none) and, for what GGUF has otherwise, llama.cpp's src/models/NAME.cpp.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
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


class Qwen2Moe(Llama):
    model_type, experts, used, neighbours_in_gguf, biased = "qwen2_moe", 6, 2, False, ("attn_q", "attn_k", "attn_v")
    gguf_name = "qwen2moe"
    gguf_numbers = {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 48,
                    "expert_shared_feed_forward_length": 48}
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


def test_families(folder):
    def one(family):
        model = family()
        prompt = model.prompt()
        expected = model.logits(prompt)
        own = folder / model.model_type
        own.mkdir()
        gguf = model.gguf(own / "model.gguf", getattr(model, "gguf_name", model.model_type), model.gguf_numbers)
        return [check(source, prompt, expected, own / source.stem)
                for source in (gguf, model.hugging_face(own / "model", model.config))]

    families = [Granite, SmolLm3, Olmo2, Cohere2, Qwen2Moe, Ernie45, SeedOss]
    found = [figures for pair in parallel(one, families) for figures in pair]
    print(f"# families of decoders against NumPy: {len(families)}, each from GGUF and Hugging Face; worst {summary(found)}")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "architectures of decoders"))
