"""Shared by tests of language models: logits and their errors, and a small model with a reference implementation in NumPy."""
import json

import numpy as np

import gguf_wire
import safetensors_file
from driver import expect, run

# Limits for the relative root mean square error: of the source, in exact arithmetic, and of an fp16 package.
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
    """Returns the errors for all tokens at once and step by step."""
    return [error(logits(model, tokens, folder / name, *options, *step), reference)
            for name, step in (("whole", ()), ("steps", ("--step",)))]


def check(model, tokens, reference, folder, *options):
    """Returns four errors: of the source and of its package, each for all tokens at once and step by step."""
    folder.mkdir(exist_ok=True)
    source = errors(model, tokens, reference, folder, *options)
    package = folder / "x.mlpackage"
    expect(run("compile", model, "-o", package, "--force", "--no-manifest", *options, timeout=300), 0)
    packaged = errors(package, tokens, reference, folder)
    assert max(source) <= EXACT and max(packaged) <= PACKAGE, f"{model.name}: source {source}, package {packaged}"
    return source + packaged


def summary(found):
    """Returns the maximum of each error of check()."""
    worst = [max(column) for column in zip(*found)]
    return "at once {:.1e}, step by step {:.1e}, package {:.1e} and {:.1e}".format(*worst)


def refused(result, error_id, *words):
    assert result.code in (1, 2) and error_id in result.stderr, f"expected {error_id}: {result.code}, {result.stderr}"
    for word in words:
        assert word in result.stderr, f"no {word!r} in {result.stderr}"


class Llama:
    """Llama 2 (Touvron et al. 2023, section 2.2) with grouped queries (Ainslie et al. 2023). Rotary embedding follows RoFormer
    (Su et al. 2021, section 3.2.2), with pairs split into halves. `frequencies` (angle per position) and `magnitude` (of the
    rotated vectors) can be overridden; `window` is the number of keys that a query attends to. The attributes below select the
    variants of other model families.
    """
    layers, width, heads, key_heads, head, inner, vocabulary, context = 2, 32, 4, 2, 8, 48, 50, 96
    epsilon, base = 1e-5, 5000.0
    model_type = "llama"
    layer_norm = False  # LayerNorm without bias instead of RMSNorm
    norms = "before"  # normalization before attention and feed-forward; or "behind"
    parallel = False  # attention and feed-forward read the same normalized x
    head_norm = ""  # normalization of queries and keys: "each" head, or the "whole" vector
    unturned_every = 0  # the last of every n layers has no rotary embedding
    global_every = 0  # the last of every n layers has no window
    neighbours_there = False  # in Hugging Face files too, the rows of a pair are adjacent
    neighbours_in_gguf = True
    biased = ()  # matrices that have a bias
    embedding_scale = residual_scale = logit_scale = 1.0
    attention_scale = None
    experts = used = 0  # number of experts, and how many a token uses; weights are not normalized, and one expert is shared
    tied = False
    NAMES = {  # by their names in GGUF
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
        if self.tied:
            del self.whole["output"]
        self.blocks = [{"attn_norm": scale(), "attn_q": draw(self.heads * self.head, self.width),
                        "attn_k": draw(keys, self.width), "attn_v": draw(keys, self.width),
                        "attn_output": draw(self.width, self.heads * self.head), "ffn_norm": scale(),
                        "ffn_gate": draw(self.inner, self.width), "ffn_up": draw(self.inner, self.width),
                        "ffn_down": draw(self.width, self.inner)} for _ in range(self.layers)]
        for block in self.blocks:
            if self.head_norm:
                for name, heads in (("attn_q_norm", self.heads), ("attn_k_norm", self.key_heads)):
                    size = self.head if self.head_norm == "each" else heads * self.head
                    block[name] = (1 + 0.1 * random.standard_normal(size)).astype("f4")
            if self.experts:
                for name in ("ffn_gate", "ffn_up", "ffn_down"):
                    matrix = block.pop(name)
                    block[f"{name}_exps"] = draw(self.experts, *matrix.shape)
                    block[f"{name}_shexp"] = draw(*matrix.shape)
                block |= {"ffn_gate_inp": draw(self.experts, self.width), "ffn_gate_inp_shexp": draw(1, self.width)}
            if self.norms == "behind":
                block |= {"post_attention_norm": block.pop("attn_norm"), "post_ffw_norm": block.pop("ffn_norm")}
            if self.parallel:
                del block["ffn_norm"]
            for name in self.biased:
                block[f"{name}.bias"] = random.standard_normal(len(block[name])).astype("f4") / 4

    def neighbours(self, name, rows):
        """Reorders the rows of queries or keys as in GGUF files of llama, where the rows of a pair are adjacent."""
        if name.split(".")[0] not in ("attn_q", "attn_k"):
            return rows
        return rows.reshape(-1, 2, self.head // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)

    @staticmethod
    def suffixed(name):
        return name if name.endswith(".bias") else f"{name}.weight"

    def gguf(self, path, architecture="llama", numbers={}, tensors=None, encoded=(), whole_keys={}):
        """Writes the GGUF file. `tensors` replace the model's own; those named in `encoded` are stored as Q8_0. Keys of
        `numbers` are prefixed with the architecture, keys of `whole_keys` are not."""
        own = {"context_length": self.context, "embedding_length": self.width, "block_count": self.layers,
               "vocab_size": self.vocabulary, "feed_forward_length": self.inner, "attention.head_count": self.heads,
               "attention.head_count_kv": self.key_heads,
               "attention.layer_norm_epsilon" if self.layer_norm else "attention.layer_norm_rms_epsilon": self.epsilon,
               "rope.freq_base": self.base}
        metadata = {"general.architecture": architecture, "general.name": "tiny"}
        metadata |= {f"{architecture}.{key}": number for key, number in (own | numbers).items()} | whole_keys
        path.write_bytes(gguf_wire.model(metadata, self.gguf_tensors() if tensors is None else tensors,
                                         dict.fromkeys(encoded, "Q8_0")))
        return path

    def gguf_tensors(self):
        tensors = {f"{name}.weight": tensor for name, tensor in self.whole.items()}
        for layer, block in enumerate(self.blocks):
            order = self.neighbours if self.neighbours_in_gguf else lambda name, rows: rows
            tensors |= {f"blk.{layer}.{self.suffixed(name)}": order(name, tensor) for name, tensor in block.items()}
        return tensors

    def hugging_face(self, folder, config={}, tensors=None):
        own = {"model_type": self.model_type, "hidden_size": self.width, "num_hidden_layers": self.layers,
               "num_attention_heads": self.heads, "num_key_value_heads": self.key_heads, "head_dim": None,
               "intermediate_size": self.inner, "vocab_size": self.vocabulary, "max_position_embeddings": self.context,
               "rope_theta": self.base, "rope_scaling": None, "layer_norm_eps" if self.layer_norm else "rms_norm_eps": self.epsilon, "hidden_act": "silu",
               "tie_word_embeddings": self.tied}
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(own | config))
        tensors = self.hugging_face_tensors() if tensors is None else tensors
        floats = {name: np.ascontiguousarray(tensor, "<f4") for name, tensor in tensors.items()}
        (folder / "model.safetensors").write_bytes(safetensors_file.of(floats))
        return folder

    def hugging_face_tensors(self):
        tensors = {f"{self.NAMES[name]}.weight": tensor for name, tensor in self.whole.items()}
        for layer, block in enumerate(self.blocks):
            for name, tensor in block.items():
                base, _, bias = name.partition(".")
                name = f"model.layers.{layer}.{self.names_there()[base]}"
                if self.neighbours_there:
                    tensor = self.neighbours(base, tensor)
                if base.endswith("_exps"):
                    tensors |= {f"{name.format(i)}.weight": one for i, one in enumerate(tensor)}
                else:
                    tensors[f"{name}.{bias or 'weight'}"] = tensor
        return tensors

    def names_there(self):
        own = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
               "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
               "ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate"}
        for part in ("gate", "up", "down"):
            own |= {f"ffn_{part}_exps": f"mlp.experts.{{}}.{part}_proj", f"ffn_{part}_shexp": f"mlp.shared_expert.{part}_proj"}
        return self.NAMES | own

    def norm(self, x, scale):
        if self.layer_norm:
            x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + self.epsilon) * scale

    def turned(self, x):  # [heads, tokens, head size]
        angles = np.arange(x.shape[1])[:, None] * self.frequencies
        half = self.head // 2
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles) * self.magnitude
        return np.concatenate([turned.real, turned.imag], -1)

    def attention(self, layer, block, h):
        count = len(h)
        is_last = lambda every: every and (layer + 1) % every == 0
        turned = (lambda x: x) if is_last(self.unturned_every) else self.turned
        behind = np.arange(count)[:, None] - np.arange(count)
        hidden = (behind < 0) | (behind >= (self.context if is_last(self.global_every) else self.window))

        def heads(name):
            x = h @ block[name].T + block.get(f"{name}.bias", 0)
            norm = block.get(f"{name}_norm")
            if self.head_norm == "whole" and norm is not None:
                x = self.norm(x, norm)
            x = x.reshape(count, -1, self.head)
            if self.head_norm == "each" and norm is not None:
                x = self.norm(x, norm)
            return x.transpose(1, 0, 2)

        q, k, v = turned(heads("attn_q")), turned(heads("attn_k")), heads("attn_v")
        k, v = (np.repeat(each, self.heads // self.key_heads, 0) for each in (k, v))
        scores = q @ k.transpose(0, 2, 1) * (self.attention_scale or 1 / np.sqrt(self.head))
        scores = np.where(hidden, -np.inf, scores)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ v).transpose(1, 0, 2).reshape(count, -1) @ block["attn_output"].T + block.get("attn_output.bias", 0)

    def feed_forward(self, block, h):
        def swiglu(gate, up, down, h):
            gate = h @ gate.T
            return (gate / (1 + np.exp(-gate)) * (h @ up.T)) @ down.T

        if not self.experts:
            return swiglu(block["ffn_gate"], block["ffn_up"], block["ffn_down"], h)
        of = lambda kind: [block[f"ffn_{part}_{kind}"] for part in ("gate", "up", "down")]
        scores = h @ block["ffn_gate_inp"].T
        ranked = np.sort(scores)
        self.margin = min(self.margin, (ranked[:, -self.used] - ranked[:, -self.used - 1]).min())
        scores = np.exp(scores)
        y = swiglu(*of("shexp"), h) / (1 + np.exp(-h @ block["ffn_gate_inp_shexp"].T))
        for token, row in enumerate(scores / scores.sum(-1, keepdims=True)):
            for expert in np.argsort(row)[-self.used:]:
                y[token] += row[expert] * swiglu(*(matrix[expert] for matrix in of("exps")), h[token])
        return y

    def logits(self, tokens):
        self.margin = np.inf  # smallest margin by which the selected experts lead
        x = self.whole["token_embd"].astype("f8")[tokens] * self.embedding_scale
        for layer, block in enumerate(self.blocks):
            block = {name: tensor.astype("f8") for name, tensor in block.items()}
            normed = lambda name, x: self.norm(x, block[name]) if name in block else x
            h = normed("attn_norm", x)
            y = normed("post_attention_norm", self.attention(layer, block, h)) * self.residual_scale
            if self.parallel:
                x = x + y + self.feed_forward(block, h)
                continue
            x = x + y
            x = x + normed("post_ffw_norm", self.feed_forward(block, normed("ffn_norm", x))) * self.residual_scale
        head = self.whole["token_embd" if self.tied else "output"].astype("f8")
        return self.norm(x, self.whole["output_norm"]) @ head.T * self.logit_scale

    def prompt(self, count=80):
        """Returns a prompt. For models with experts, no selection is so close that fp16 could change it."""
        for seed in range(3, 1000):
            tokens = [int(token) for token in np.random.default_rng(seed).integers(0, self.vocabulary, count)]
            if not self.experts or (self.logits(tokens) is not None and self.margin > 0.005):
                return tokens
        raise RuntimeError("every prompt has a narrow choice")

    # Frequencies modified by YaRN (Peng et al. 2023, sections 3.2 and 3.4), as in the authors' code (jquesnelle/yarn,
    # LlamaYaRNScaledRotaryEmbedding.py).
    def yarn(self, factor, original):
        find = lambda turns: self.head * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(self.base))
        low, high = max(np.floor(find(32)), 0), min(np.ceil(find(1)), self.head - 1)
        ramp = np.clip((np.arange(self.head // 2) - low) / (high - low), 0, 1)
        self.frequencies = self.frequencies / factor * ramp + self.frequencies * (1 - ramp)
        self.magnitude = 0.1 * np.log(factor) + 1
        return self
