"""Makes a tiny GGUF file for each row of frontends/gguf/decoder_rows.cpp, with the tensors that llama.cpp requires
(src/models/NAME.cpp, load_arch_tensors), random weights and no vocabulary: tokens are ids."""
import numpy as np

import gguf_wire
from recurrent_models import Lfm2, Mamba, Mamba2, Qwen35

WIDTH, HEADS, KEY_HEADS, HEAD, INNER, VOCABULARY, CONTEXT, EXPERTS = 32, 4, 2, 8, 48, 50, 96, 4
NO_WORDS = {"tokenizer.ggml.model": "none"}


class WideMamba(Mamba):
    inner_size = 2 * WIDTH  # the only supported size
    gguf_numbers = Mamba.gguf_numbers | {"ssm.inner_size": inner_size}


RECURRENT = {"lfm2": Lfm2, "mamba": WideMamba, "mamba2": Mamba2, "qwen35": Qwen35}

# The number of layers; for each layer its norms, its other parts, which PARTS defines, and the tensors with biases.
ROWS = {
    "cohere2": (4, "attn_norm", "qkv o gud", ""), "ernie4_5": (2, "attn_norm ffn_norm", "qkv o gud", ""),
    "exaone4": (2, "post_attention_norm post_ffw_norm", "qkv heads o gud", ""), "falcon": (2, "attn_norm", "fused o ud", "norms"),
    "gemma": (2, "attn_norm ffn_norm", "qkv o gud", ""),
    "gemma2": (2, "attn_norm post_attention_norm ffn_norm post_ffw_norm", "qkv o gud", ""),
    "gemma3": (6, "attn_norm post_attention_norm ffn_norm post_ffw_norm", "qkv heads o gud", ""),
    "gpt-oss": (2, "attn_norm post_attention_norm", "qkv o sinks experts", "qkv o experts"),
    "gpt2": (2, "attn_norm ffn_norm", "fused o ud", "norms fused o ud"),
    "gptneox": (2, "attn_norm ffn_norm", "fused o ud", "norms fused o ud"),
    "granite": (2, "attn_norm ffn_norm", "qkv o gud", ""), "llama": (2, "attn_norm ffn_norm", "qkv o gud", ""),
    "olmo2": (2, "post_attention_norm post_ffw_norm", "qkv whole o gud", ""), "phi2": (2, "attn_norm", "fused o ud", "norms fused o ud output"),
    "phi3": (2, "attn_norm ffn_norm", "fused o double", ""), "qwen2": (2, "attn_norm ffn_norm", "qkv o gud", "qkv"),
    "qwen2moe": (2, "attn_norm ffn_norm", "qkv o experts shared", "qkv"), "qwen3": (2, "attn_norm ffn_norm", "qkv heads o gud", ""),
    "qwen2vl": (2, "attn_norm ffn_norm", "qkv o gud", "qkv"), "qwen3vl": (2, "attn_norm ffn_norm", "qkv heads o gud", ""),
    "qwen3moe": (2, "attn_norm ffn_norm", "qkv heads o experts", ""), "seed_oss": (2, "attn_norm post_attention_norm", "qkv o gud", ""),
    "smollm3": (4, "attn_norm ffn_norm", "qkv o gud", ""), "stablelm": (2, "attn_norm ffn_norm", "qkv o gud", "norms"),
    "starcoder2": (2, "attn_norm ffn_norm", "qkv o ud", "norms qkv o ud"),
}
Q, K = HEADS * HEAD, KEY_HEADS * HEAD
PARTS = {
    "qkv": {"attn_q": (Q, WIDTH), "attn_k": (K, WIDTH), "attn_v": (K, WIDTH)}, "fused": {"attn_qkv": (Q + 2 * K, WIDTH)},
    "heads": {"attn_q_norm": (HEAD,), "attn_k_norm": (HEAD,)}, "whole": {"attn_q_norm": (Q,), "attn_k_norm": (K,)},
    "o": {"attn_output": (WIDTH, Q)}, "sinks": {"attn_sinks": (HEADS,)},
    "gud": {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)},
    "ud": {"ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}, "double": {"ffn_up": (2 * INNER, WIDTH), "ffn_down": (WIDTH, INNER)},
    "experts": {"ffn_gate_inp": (EXPERTS, WIDTH), "ffn_gate_exps": (EXPERTS, INNER, WIDTH), "ffn_up_exps": (EXPERTS, INNER, WIDTH),
                "ffn_down_exps": (EXPERTS, WIDTH, INNER)},
    "shared": {"ffn_gate_inp_shexp": (1, WIDTH), "ffn_gate_shexp": (INNER, WIDTH), "ffn_up_shexp": (INNER, WIDTH),
               "ffn_down_shexp": (WIDTH, INNER)},
}
LAYER_NORM = {"cohere2", "falcon", "gpt2", "gptneox", "phi2", "stablelm", "starcoder2"}
TIED = {"cohere2", "gemma", "gemma2", "gemma3"}
NUMBERS = {  # required keys of the architecture, and keys that let the tiny model cover the whole architecture
    "cohere2": {"logit_scale": 0.25, "attention.sliding_window": 5}, "gemma2": {"attention.sliding_window": 5},
    "gemma3": {"attention.sliding_window": 5}, "gpt-oss": {"attention.sliding_window": 5, "expert_feed_forward_length": INNER},
    "gptneox": {"use_parallel_residual": True}, "granite": {"logit_scale": 4.0},
    "qwen2moe": {"expert_feed_forward_length": INNER, "expert_shared_feed_forward_length": INNER},
    "qwen3moe": {"expert_feed_forward_length": INNER},
    "qwen2vl": {"rope.dimension_sections": [np.int32(size) for size in (2, 1, 1, 0)]},
    "qwen3vl": {"rope.dimension_sections": [np.int32(size) for size in (2, 1, 1, 0)], "n_deepstack_layers": 1},
    "qwen35": {"rope.dimension_sections": [np.int32(size) for size in (3, 3, 2, 0)]},
}


def epsilon_key(architecture):
    return "attention.layer_norm_epsilon" if architecture in LAYER_NORM else "attention.layer_norm_rms_epsilon"


def attention_model(architecture, layers):
    """Returns (numbers, tensors)."""
    usual, norms, parts, biased = ROWS[architecture]
    layers, biased = layers or usual, biased.split()
    random = np.random.default_rng(29)
    tensors = {}

    def add(name, shape, bias=False):
        tensor = random.standard_normal(shape) / (np.sqrt(shape[-1]) if len(shape) > 1 else 5)
        tensors[f"{name}.weight"] = (tensor + (len(shape) == 1)).astype("f4")
        if bias:
            tensors[f"{name}.bias"] = (random.standard_normal(shape[:-1] if len(shape) > 1 else shape) / 4).astype("f4")

    has_bias = "norms" in biased
    add("token_embd", (VOCABULARY, WIDTH))
    if architecture == "gpt2":
        add("position_embd", (CONTEXT, WIDTH))
    add("output_norm", (WIDTH,), has_bias)
    if architecture not in TIED:
        add("output", (VOCABULARY, WIDTH), "output" in biased)
    for layer in range(layers):
        for norm in norms.split():
            add(f"blk.{layer}.{norm}", (WIDTH,), has_bias)
        for part in parts.split():
            for name, shape in PARTS[part].items():
                add(f"blk.{layer}.{name}", shape, part in biased)
    numbers = {"context_length": CONTEXT, "embedding_length": WIDTH, "block_count": layers, "vocab_size": VOCABULARY,
               "feed_forward_length": INNER, "attention.head_count": HEADS, "attention.head_count_kv": KEY_HEADS,
               epsilon_key(architecture): 1e-5, "rope.freq_base": 5000.0}
    if "experts" in parts:
        numbers |= {"expert_count": EXPERTS, "expert_used_count": 2}
    return numbers, tensors


def model(architecture, layers=0):
    """Returns ({key without the architecture: number}, {name: tensor}); `layers` overrides the usual number."""
    if architecture not in RECURRENT:
        numbers, tensors = attention_model(architecture, layers)
    else:
        own = RECURRENT[architecture]()
        numbers = {"context_length": own.context, "embedding_length": own.width, "block_count": own.layers,
                   "vocab_size": own.vocabulary, "feed_forward_length": own.inner, "attention.head_count": own.heads,
                   "attention.head_count_kv": own.key_heads, epsilon_key(architecture): own.epsilon, "rope.freq_base": own.base}
        numbers, tensors = numbers | own.gguf_numbers, own.gguf_tensors()
    return numbers | NUMBERS.get(architecture, {}), tensors


def write(path, architecture, numbers, tensors):
    metadata = {"general.architecture": architecture} | {f"{architecture}.{key}": number for key, number in numbers.items()}
    path.write_bytes(gguf_wire.model(metadata | NO_WORDS, tensors))
    return path
