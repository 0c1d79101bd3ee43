#!/usr/bin/python3
"""Creates a sample language model: a small llama that was trained to add numbers below 100.

Tokens 0 to 9 are digits, 10 is "+", 11 is "=", and 12 ends the answer: the model continues 1 2 10 3 4 11 with 4 6 12. Writes to
manifests/sums: sums.gguf, whose matrices are Q8_0; the folder sums with config.json and fp16 weights in Hugging Face's format; and
the results of PyTorch with the weights of the folder for one prompt (prompt.npy int32 [9], logits.npy [9,13] float32). Requires
Debian's python3-torch. Runs on the same machine are deterministic.
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "manifests" / "sums"
sys.path.insert(0, str(ROOT / "test"))
import gguf_wire  # noqa: E402
import safetensors_file  # noqa: E402

PLUS, EQUALS, END = 10, 11, 12
WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, VOCABULARY, CONTEXT = 64, 128, 3, 4, 2, 13, 32
HEAD = WIDTH // HEADS
BASE, EPSILON = 10000.0, 1e-5
LONGEST = 10  # 99+99=198 and the end token
STEPS, BATCH, RATE = 2000, 128, 4e-3
HELD_OUT = 1000  # of the 10,000 sums


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.input_layernorm, self.post_attention_layernorm = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))
        self.q_proj, self.o_proj = linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)
        self.k_proj, self.v_proj = linear(WIDTH, KEY_HEADS * HEAD), linear(WIDTH, KEY_HEADS * HEAD)
        self.gate_proj, self.up_proj, self.down_proj = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)

    def forward(self, x, cosine, sine, mask):
        def turned(x):
            first, second = x.chunk(2, -1)
            return x * cosine + torch.cat((-second, first), -1) * sine

        batch, tokens, _ = x.shape
        h = norm(x, self.input_layernorm)
        heads = lambda y: y.view(batch, tokens, -1, HEAD).transpose(1, 2)
        q, k, v = turned(heads(self.q_proj(h))), turned(heads(self.k_proj(h))), heads(self.v_proj(h))
        k, v = (y.repeat_interleave(HEADS // KEY_HEADS, 1) for y in (k, v))
        shares = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(HEAD) + mask, -1)
        x = x + self.o_proj((shares @ v).transpose(1, 2).reshape(batch, tokens, WIDTH))
        h = norm(x, self.post_attention_layernorm)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(h)) * self.up_proj(h))


def norm(x, scale):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * scale


class Llama(nn.Module):
    """[N, tokens] -> logits [N, tokens, vocabulary]."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(WIDTH))
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.08)

    def forward(self, tokens):
        count = tokens.shape[1]
        angles = torch.outer(torch.arange(count), BASE ** (-torch.arange(0, HEAD, 2) / HEAD)).repeat(1, 2)
        mask = torch.full((count, count), -math.inf).triu(1)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return self.lm_head(norm(x, self.norm))


def digits(number):
    return [int(digit) for digit in str(number)]


def question(a, b):
    return [*digits(a), PLUS, *digits(b), EQUALS]


def table():
    """Returns all sums, padded with end tokens, and the targets: -100 for positions that are not trained."""
    tokens, wanted = np.full((10000, LONGEST), END), np.full((10000, LONGEST), -100)
    for a in range(100):
        for b in range(100):
            asked, answer = question(a, b), [*digits(a + b), END]
            row = asked + answer
            tokens[a * 100 + b, :len(row)] = row
            wanted[a * 100 + b, len(asked) - 1:len(row) - 1] = answer
    return torch.tensor(tokens), torch.tensor(wanted)


def train(model, tokens, wanted):
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.05, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, STEPS, pct_start=0.05)
    for step in range(STEPS):
        chosen = torch.randint(len(tokens), (BATCH,))
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens[chosen]).flatten(0, 1), wanted[chosen].flatten(), ignore_index=-100)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 500 == 499:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)


@torch.no_grad()
def right(model, tokens, wanted):
    """Returns the fraction of sums whose digits are all correct."""
    said = model(tokens).argmax(-1)
    return ((said == wanted) | (wanted == -100)).all(1).double().mean().item()


def gguf(tensors):
    """Returns the GGUF file of {Hugging Face name: array}. GGUF interleaves the two halves of the query and key rows of a head."""
    names = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm", "lm_head.weight": "output",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k",
             "v_proj": "attn_v", "o_proj": "attn_output", "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}
    metadata = {"general.architecture": "llama", "general.name": "Sums", "general.license": "Apache-2.0",
                "llama.context_length": CONTEXT, "llama.embedding_length": WIDTH, "llama.block_count": LAYERS,
                "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
                "llama.attention.head_count_kv": KEY_HEADS, "llama.attention.layer_norm_rms_epsilon": EPSILON,
                "llama.rope.freq_base": BASE, "llama.vocab_size": VOCABULARY, "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.tokens": [*"0123456789", "+", "=", "."], "tokenizer.ggml.eos_token_id": END,
                "tokenizer.ggml.merges": []}
    made = {}
    for name, array in tensors.items():
        parts = name.split(".")
        own = names[name] if name in names else f"blk.{parts[2]}.{names[parts[-2]]}"
        if parts[-2] in ("q_proj", "k_proj"):
            array = array.reshape(-1, 2, HEAD // 2, WIDTH).swapaxes(1, 2).reshape(array.shape)
        made[f"{own}.weight"] = array
    return gguf_wire.model(metadata, made, {name: "Q8_0" for name, array in made.items() if array.ndim == 2})


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokens, wanted = table()
    order = torch.randperm(len(tokens))
    known, held_out = order[:-HELD_OUT], order[-HELD_OUT:]
    model = Llama()
    train(model, tokens[known], wanted[known])
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    print(f"{sum(p.numel() for p in model.parameters())} parameters; accuracy {right(model, tokens[known], wanted[known]):.4f} on "
          f"the training set, {right(model, tokens[held_out], wanted[held_out]):.4f} on {HELD_OUT} held-out sums")

    tensors = {}
    for name, parameter in model.named_parameters():
        if name.startswith("layers."):
            _, layer, rest = name.split(".", 2)
            inner = "" if rest.endswith("layernorm") else "self_attn." if rest[:2] in ("q_", "k_", "v_", "o_") else "mlp."
            name = f"layers.{layer}.{inner}{rest}"
        name = name.removesuffix(".weight") + ".weight"
        tensors[name if name.startswith("lm_head") else f"model.{name}"] = parameter.detach().numpy().astype("<f2")
    folder = OUT / "sums"
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
              "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "rms_norm_eps": EPSILON, "rope_theta": BASE,
              "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "float16", "eos_token_id": END}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "model.safetensors").write_bytes(safetensors_file.of(tensors))
    (OUT / "sums.gguf").write_bytes(gguf({name: array.astype("f4") for name, array in tensors.items()}))
    prompt = question(57, 68) + digits(57 + 68)
    np.save(OUT / "prompt.npy", np.array(prompt, "i4"))
    with torch.no_grad():
        np.save(OUT / "logits.npy", model(torch.tensor([prompt]))[0].numpy())


if __name__ == "__main__":
    main()
