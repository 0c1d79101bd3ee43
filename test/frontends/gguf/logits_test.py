#!/usr/bin/env python3
"""Language models in GGUF files: logits of all tokens at once and one after the other, of the file and of its package.

Expected are llama.cpp's, which stand beside the files of the corpus (of quantised files those of their dequantised twins), and
those of `Llama`, which reads the paper with NumPy.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import gguf_wire
from driver import CORPUS, expect, parallel, run, run_tests

FOLDER = CORPUS / "gguf"
# Of the source, in exact arithmetic; of a package, which is fp16. Relative root mean square.
EXACT, PACKAGE = 1e-4, 1e-2
# Files of architectures that have no row.
REFUSED = {"bert_cls", "bert_mean", "lfm2", "mamba", "mamba2", "modern_bert", "nomic_bert", "qwen35"}


def tokens_of_corpus():
    return [int(word) for word in (FOLDER / "TOKENS.txt").read_text().split(":")[1].split()]


def error(values, reference):
    if values.shape != reference.shape:
        return np.inf
    return float(np.sqrt(np.square(values.astype("f8") - reference).mean() / np.square(reference.astype("f8")).mean()))


def logits(model, tokens, folder, *options):
    folder.mkdir(exist_ok=True)
    expect(run("run", model, "--tokens", ",".join(map(str, tokens)), "--output-dir", folder, *options), 0)
    return np.load(folder / "logits.npy")


def errors(model, tokens, reference, folder, *options):
    """What stands in a line of the report: at once, and step by step."""
    return [error(logits(model, tokens, folder / name, *options, *step), reference)
            for name, step in (("whole", ()), ("steps", ("--step",)))]


def check(model, tokens, reference, folder, *options):
    """Four errors: of the source and of its package, each at once and step by step."""
    source = errors(model, tokens, reference, folder, *options)
    package = folder / "x.mlpackage"
    expect(run("compile", model, "-o", package, "--no-manifest", *options, timeout=300), 0)
    packaged = errors(package, tokens, reference, folder)
    assert max(source) <= EXACT and max(packaged) <= PACKAGE, f"{model.name}: source {source}, package {packaged}"
    return source + packaged


def refused(result, id, *words):
    assert result.code in (1, 2) and id in result.stderr, f"expected {id}: exit code {result.code}, {result.stderr}"
    for word in words:
        assert word in result.stderr, f"no {word!r} in {result.stderr}"


def test_corpus(folder):
    if not FOLDER.exists():
        print("# language models of the GGUF corpus: skipped, there is no corpus")
        return
    tokens, models = tokens_of_corpus(), sorted(FOLDER.glob("*.gguf"))

    def one(model):
        name = model.name.split(".")[0]
        if name in REFUSED:
            refused(run("run", model, "--tokens", "1"), "unsupported-architecture", "llama")
            return None
        own = folder / model.stem
        own.mkdir()
        return check(model, tokens, np.load(model.with_name(model.stem + ".logits.npy")), own)

    found = [figures for figures in parallel(one, models) if figures]
    assert len(found) + len([m for m in models if m.name.split(".")[0] in REFUSED]) == len(models) and found
    worst = [max(column) for column in zip(*found)]
    print("# GGUF language models against llama.cpp: {} of {} files; worst error at once {:.1e}, step by step {:.1e}, "
          "package {:.1e} and {:.1e}".format(len(found), len(models), *worst))


class Llama:
    """Llama 2 (Touvron et al. 2023, section 2.2) with grouped queries, as GGUF has it: rows of queries and keys are in the order
    in which neighbours turn together."""
    layers, width, heads, key_heads, head, inner, vocabulary, epsilon, base = 2, 32, 4, 2, 8, 48, 50, 1e-5, 10000.0

    def __init__(self, architecture="llama"):
        self.architecture = architecture
        random = np.random.default_rng(7)
        draw = lambda *shape: (random.standard_normal(shape) / np.sqrt(shape[-1])).astype("f4")
        scale = lambda: (1 + 0.1 * random.standard_normal(self.width)).astype("f4")
        keys = self.key_heads * self.head
        self.tensors = {"token_embd.weight": draw(self.vocabulary, self.width), "output_norm.weight": scale(),
                        "output.weight": draw(self.vocabulary, self.width)}
        for layer in range(self.layers):
            self.tensors |= {f"blk.{layer}.{name}.weight": tensor for name, tensor in {
                "attn_norm": scale(), "attn_q": draw(self.heads * self.head, self.width), "attn_k": draw(keys, self.width),
                "attn_v": draw(keys, self.width), "attn_output": draw(self.width, self.heads * self.head), "ffn_norm": scale(),
                "ffn_gate": draw(self.inner, self.width), "ffn_up": draw(self.inner, self.width),
                "ffn_down": draw(self.width, self.inner)}.items()}

    def write(self, path):
        numbers = {"context_length": 96, "embedding_length": self.width, "block_count": self.layers, "vocab_size": self.vocabulary,
                   "feed_forward_length": self.inner, "attention.head_count": self.heads,
                   "attention.head_count_kv": self.key_heads, "attention.layer_norm_rms_epsilon": self.epsilon,
                   "rope.freq_base": self.base}
        metadata = {"general.architecture": self.architecture, "general.name": "tiny"}
        metadata |= {f"{self.architecture}.{key}": number for key, number in numbers.items()}
        path.write_bytes(gguf_wire.model(metadata, self.tensors))
        return path

    def of(self, layer, name):
        return self.tensors[f"blk.{layer}.{name}.weight"].astype("f8")

    def norm(self, x, scale):
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + self.epsilon) * scale

    def turned(self, x):  # [heads, tokens, head]
        angles = np.arange(x.shape[1])[:, None] * self.base ** (-np.arange(0, self.head, 2) / self.head)
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def logits(self, tokens):
        x = self.tensors["token_embd.weight"].astype("f8")[tokens]
        count = len(tokens)
        hidden = np.triu(np.ones((count, count), bool), 1)
        for layer in range(self.layers):
            h = self.norm(x, self.of(layer, "attn_norm"))
            q, k, v = ((h @ self.of(layer, name).T).reshape(count, -1, self.head).transpose(1, 0, 2)
                       for name in ("attn_q", "attn_k", "attn_v"))
            k, v = (np.repeat(each, self.heads // self.key_heads, 0) for each in (self.turned(k), v))
            scores = self.turned(q) @ k.transpose(0, 2, 1) / np.sqrt(self.head)
            scores = np.where(hidden, -np.inf, scores)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + (shares @ v).transpose(1, 0, 2).reshape(count, -1) @ self.of(layer, "attn_output").T
            h = self.norm(x, self.of(layer, "ffn_norm"))
            gate = h @ self.of(layer, "ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ self.of(layer, "ffn_up").T)) @ self.of(layer, "ffn_down").T
        return self.norm(x, self.tensors["output_norm.weight"]) @ self.tensors["output.weight"].astype("f8").T


def test_paper(folder):
    """80 tokens of the 96 that the model was made for."""
    llama = Llama()
    tokens = [int(token) for token in np.random.default_rng(3).integers(0, llama.vocabulary, 80)]
    found = check(llama.write(folder / "tiny.gguf"), tokens, llama.logits(tokens), folder)
    print("# GGUF language model against NumPy: at once {:.1e}, step by step {:.1e}, package {:.1e} and {:.1e}".format(*found))


def test_context(folder):
    model = Llama().write(folder / "tiny.gguf")
    inputs = expect(run("inspect", model, "--context", "32", "--json"), 0).answer["states"]
    assert [each["shape"] for each in inputs] == [[2, 1, 2, 32, 8]] * 2, inputs
    refused(run("inspect", model, "--context", "97"), "usage", "1 to 96")
    refused(run("run", model, "--context", "2", "--tokens", "1,2,3"), "usage", "takes 2")
    refused(run("run", model, "--tokens", "1,50"), "bad-input", "0 to 49")


def test_refusals(folder):
    llama = Llama()
    model = llama.write(folder / "tiny.gguf")
    refused(run("compile", model, "-o", folder / "x.mlpackage", "--target", "iOS17"), "target-too-old", "states", "iOS18")
    refused(run("compile", model, "-o", folder / "x.mlpackage", "--dim", "tokens=1"), "usage", "ONNX")
    llama.tensors["blk.0.extra.weight"] = np.zeros((2, 2), "f4")
    refused(run("inspect", llama.write(folder / "more.gguf")), "unused-tensor", "blk.0.extra.weight")
    del llama.tensors["blk.0.extra.weight"], llama.tensors["blk.1.ffn_up.weight"]
    refused(run("inspect", llama.write(folder / "less.gguf")), "missing-tensor", "blk.1.ffn_up.weight", "[48, 32]")
    llama.tensors["blk.1.ffn_up.weight"] = np.zeros((48, 31), "f4")
    refused(run("inspect", llama.write(folder / "other.gguf")), "bad-tensor", "blk.1.ffn_up.weight", "[48, 31]", "[48, 32]")
    refused(run("inspect", Llama("lama").write(folder / "unknown.gguf")), "unsupported-architecture", '"lama"',
            'nearest: "llama"', '"qwen3"')


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "GGUF language models"))
