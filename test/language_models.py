"""What tests of language models share: logits and how far they are off, and a small model with its own reading in NumPy."""
import json
import struct

import numpy as np

import gguf_wire
from driver import expect, run

# Of the source, in exact arithmetic; of a package, which is fp16. Relative root mean square.
EXACT, PACKAGE = 1e-4, 1e-2


def error(values, reference):
    if values.shape != reference.shape:
        return np.inf
    return float(np.sqrt(np.square(values.astype("f8") - reference).mean() / np.square(reference.astype("f8")).mean()))


def logits(model, tokens, folder, *options):
    folder.mkdir(exist_ok=True)
    expect(run("run", model, "--tokens", ",".join(map(str, tokens)), "--output-dir", folder, *options), 0)
    return np.load(folder / "logits.npy")


def errors(model, tokens, reference, folder, *options):
    """At once, and step by step."""
    return [error(logits(model, tokens, folder / name, *options, *step), reference)
            for name, step in (("whole", ()), ("steps", ("--step",)))]


def check(model, tokens, reference, folder, *options):
    """Four errors: of the source and of its package, each at once and step by step."""
    folder.mkdir(exist_ok=True)
    source = errors(model, tokens, reference, folder, *options)
    package = folder / "x.mlpackage"
    expect(run("compile", model, "-o", package, "--force", "--no-manifest", *options, timeout=300), 0)
    packaged = errors(package, tokens, reference, folder)
    assert max(source) <= EXACT and max(packaged) <= PACKAGE, f"{model.name}: source {source}, package {packaged}"
    return source + packaged


def summary(found):
    """The worst of each of the figures of check()."""
    worst = [max(column) for column in zip(*found)]
    return "at once {:.1e}, step by step {:.1e}, package {:.1e} and {:.1e}".format(*worst)


def refused(result, error_id, *words):
    assert result.code in (1, 2) and error_id in result.stderr, f"expected {error_id}: {result.code}, {result.stderr}"
    for word in words:
        assert word in result.stderr, f"no {word!r} in {result.stderr}"


def safetensors(tensors):
    """The bytes of a .safetensors file of fp32 tensors."""
    head, body = {}, b""
    for name, array in tensors.items():
        data = np.ascontiguousarray(array, "<f4").tobytes()
        head[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + body


class Llama:
    """Llama 2 (Touvron et al. 2023, section 2.2) with grouped queries (Ainslie et al. 2023); rotary embedding as RoFormer (Su et al.
    2021, section 3.2.2) has it, of pairs in halves. `frequencies`, angles from one position to the next, and `magnitude` of what
    turns may be others; `window` is how many keys a query sees."""
    layers, width, heads, key_heads, head, inner, vocabulary, context = 2, 32, 4, 2, 8, 48, 50, 96
    epsilon, base = 1e-5, 10000.0
    NAMES = {  # by GGUF's names
        "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}

    def __init__(self):
        random = np.random.default_rng(7)
        draw = lambda *shape: (random.standard_normal(shape) / np.sqrt(shape[-1])).astype("f4")
        scale = lambda: (1 + 0.1 * random.standard_normal(self.width)).astype("f4")
        keys = self.key_heads * self.head
        self.frequencies = self.base ** (-np.arange(0, self.head, 2) / self.head)
        self.magnitude, self.window = 1.0, self.context
        self.whole = {"token_embd": draw(self.vocabulary, self.width), "output_norm": scale(),
                      "output": draw(self.vocabulary, self.width)}
        self.blocks = [{"attn_norm": scale(), "attn_q": draw(self.heads * self.head, self.width),
                        "attn_k": draw(keys, self.width), "attn_v": draw(keys, self.width),
                        "attn_output": draw(self.width, self.heads * self.head), "ffn_norm": scale(),
                        "ffn_gate": draw(self.inner, self.width), "ffn_up": draw(self.inner, self.width),
                        "ffn_down": draw(self.width, self.inner)} for _ in range(self.layers)]

    def neighbours(self, name, rows):
        """Rows of queries or keys as GGUF has them for llama: those of a pair next to each other."""
        if name not in ("attn_q", "attn_k"):
            return rows
        return rows.reshape(-1, 2, self.head // 2, self.width).swapaxes(1, 2).reshape(rows.shape)

    def gguf(self, path, architecture="llama", numbers={}, tensors=None):
        """Writes the file; `tensors` in place of its own."""
        own = {"context_length": self.context, "embedding_length": self.width, "block_count": self.layers,
               "vocab_size": self.vocabulary, "feed_forward_length": self.inner, "attention.head_count": self.heads,
               "attention.head_count_kv": self.key_heads, "attention.layer_norm_rms_epsilon": self.epsilon,
               "rope.freq_base": self.base}
        metadata = {"general.architecture": architecture, "general.name": "tiny"}
        metadata |= {f"{architecture}.{key}": number for key, number in (own | numbers).items()}
        path.write_bytes(gguf_wire.model(metadata, self.gguf_tensors() if tensors is None else tensors))
        return path

    def gguf_tensors(self):
        tensors = {f"{name}.weight": tensor for name, tensor in self.whole.items()}
        for layer, block in enumerate(self.blocks):
            tensors |= {f"blk.{layer}.{name}.weight": self.neighbours(name, tensor) for name, tensor in block.items()}
        return tensors

    def hugging_face(self, folder, config={}, tensors=None):
        own = {"model_type": "llama", "hidden_size": self.width, "num_hidden_layers": self.layers,
               "num_attention_heads": self.heads, "num_key_value_heads": self.key_heads, "head_dim": None,
               "intermediate_size": self.inner, "vocab_size": self.vocabulary, "max_position_embeddings": self.context,
               "rope_theta": self.base, "rope_scaling": None, "rms_norm_eps": self.epsilon, "hidden_act": "silu",
               "tie_word_embeddings": False}
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(own | config))
        (folder / "model.safetensors").write_bytes(safetensors(self.hugging_face_tensors() if tensors is None else tensors))
        return folder

    def hugging_face_tensors(self):
        tensors = {f"{self.NAMES[name]}.weight": tensor for name, tensor in self.whole.items()}
        for layer, block in enumerate(self.blocks):
            tensors |= {f"model.layers.{layer}.{self.NAMES[name]}.weight": tensor for name, tensor in block.items()}
        return tensors

    def norm(self, x, scale):
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + self.epsilon) * scale

    def turned(self, x):  # [heads, tokens, head]
        angles = np.arange(x.shape[1])[:, None] * self.frequencies
        half = self.head // 2
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles) * self.magnitude
        return np.concatenate([turned.real, turned.imag], -1)

    def logits(self, tokens):
        x = self.whole["token_embd"].astype("f8")[tokens]
        count = len(tokens)
        behind = np.arange(count)[:, None] - np.arange(count)
        hidden = (behind < 0) | (behind >= self.window)
        for block in self.blocks:
            block = {name: tensor.astype("f8") for name, tensor in block.items()}
            h = self.norm(x, block["attn_norm"])
            q, k, v = ((h @ block[name].T).reshape(count, -1, self.head).transpose(1, 0, 2)
                       for name in ("attn_q", "attn_k", "attn_v"))
            k, v = (np.repeat(each, self.heads // self.key_heads, 0) for each in (self.turned(k), v))
            scores = np.where(hidden, -np.inf, self.turned(q) @ k.transpose(0, 2, 1) / np.sqrt(self.head))
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + (shares @ v).transpose(1, 0, 2).reshape(count, -1) @ block["attn_output"].T
            h = self.norm(x, block["ffn_norm"])
            gate = h @ block["ffn_gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ block["ffn_up"].T)) @ block["ffn_down"].T
        return self.norm(x, self.whole["output_norm"]) @ self.whole["output"].astype("f8").T

    def prompt(self, count=80):
        return [int(token) for token in np.random.default_rng(3).integers(0, self.vocabulary, count)]

    # What YaRN (Peng et al. 2023, sections 3.2 and 3.4) makes of the frequencies, as in the authors' code (jquesnelle/yarn,
    # LlamaYaRNScaledRotaryEmbedding.py).
    def yarn(self, factor, original):
        find = lambda turns: self.head * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(self.base))
        low, high = max(np.floor(find(32)), 0), min(np.ceil(find(1)), self.head - 1)
        ramp = np.clip((np.arange(self.head // 2) - low) / (high - low), 0, 1)
        self.frequencies = self.frequencies / factor * ramp + self.frequencies * (1 - ramp)
        self.magnitude = 0.1 * np.log(factor) + 1
        return self
