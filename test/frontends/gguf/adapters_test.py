#!/usr/bin/env python3
"""Tests adapters in GGUF files (--lora). The expected logits are those of the same model with weights that NumPy merged."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import gguf_wire
from driver import expect, run, run_tests
from language_models import Llama, error, logits, refused

TOKENS = [3, 14, 1, 5, 9, 2, 6, 11]
Q, TABLE = "blk.1.attn_q.weight", "token_embd.weight"


class Wide(Llama):
    width, head, inner, vocabulary = 64, 16, 128, 96


def write(path, tensors, **keys):
    metadata = {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora",
                "adapter.lora.alpha": 8.0} | {key.replace("_", "."): value for key, value in keys.items()}
    path.write_bytes(gguf_wire.model(metadata, {name: np.ascontiguousarray(t, "<f4") for name, t in tensors.items()}))
    return path


def pair(random, rows, columns, rank=4):
    return random.standard_normal((rank, columns)) * 0.3, random.standard_normal((rows, rank)) * 0.3


def test_merged(folder):
    """Scales by alpha, tables of tokens, whose first matrix is transposed, and quantised weights, which become dense."""
    model, random = Wide(), np.random.default_rng(1)
    tensors = model.gguf_tensors()
    q, table = pair(random, *tensors[Q].shape), pair(random, *tensors[TABLE].shape)
    own = {f"{Q}.lora_a": q[0], f"{Q}.lora_b": q[1], f"{TABLE}.lora_a": table[1], f"{TABLE}.lora_b": table[0].T}
    for number, (alpha, factor, scale) in enumerate(((8, "", 2), (0, "", 1), (6, "=2", 3))):
        adapter = write(folder / f"{number}.gguf", own, adapter_lora_alpha=float(alpha))
        decoded = dict(tensors)
        for encoded in ((), (Q,)):
            base = model.gguf(folder / "base.gguf", tensors=tensors, encoded=encoded)
            if encoded:
                decoded[Q] = gguf_wire.q8_0(tensors[Q])[1].reshape(tensors[Q].shape)
            merged = decoded | {Q: decoded[Q] + scale * q[1] @ q[0], TABLE: decoded[TABLE] + scale * table[1] @ table[0]}
            wanted = logits(model.gguf(folder / "merged.gguf", tensors={n: t.astype("f4") for n, t in merged.items()}),
                            TOKENS, folder / "wanted", "--arithmetic", "exact")
            found = logits(base, TOKENS, folder / "found", "--arithmetic", "exact", "--lora", f"{adapter}{factor}")
            assert error(found, wanted) <= 1e-5, (number, encoded, error(found, wanted))
            result = run("compile", base, "-o", folder / "m.mlpackage", "--force", "--lora", f"{adapter}{factor}")
            expect(result, 0)
            assert ("quantised in the source" in result.stderr) == bool(encoded), result.stderr
            assert error(logits(folder / "m.mlpackage", TOKENS, folder / "p"), wanted) <= 1e-2
    expect(run("verify", base, folder / "m.mlpackage", "--lora", f"{adapter}{factor}"), 0, "PASSED")


def test_refusals(folder):
    model, random = Wide(), np.random.default_rng(2)
    base, tensors = model.gguf(folder / "base.gguf"), model.gguf_tensors()
    a, b = pair(random, *tensors[Q].shape)
    good = {f"{Q}.lora_a": a, f"{Q}.lora_b": b}

    def bad(identifier, tensors, *texts, **keys):
        adapter = write(folder / "bad.gguf", tensors, **keys)
        refused(run("compile", base, "-o", folder / "m.mlpackage", "--lora", adapter), identifier, *texts)

    bad("bad-file", good, 'general.architecture is "qwen2"', 'expected: "llama"', general_architecture="qwen2")
    bad("bad-file", good, 'general.type is "model"', general_type="model")
    bad("bad-file", {}, "no tensors")
    bad("bad-name", {"blk.7.attn_q.weight.lora_a": a, "blk.7.attn_q.weight.lora_b": b, "x.lora_a": a, "x.lora_b": b},
        "lacks 2 of the adapter's tensors", "blk.7.attn_q.weight", '"x"')
    bad("missing-tensor", {f"{Q}.lora_b": b}, "half of the pairs", Q)
    bad("bad-tensor", {f"{Q}.lora_a": a[:, 1:], f"{Q}.lora_b": b}, "trained on this model")
    (folder / "peft").mkdir()
    refused(run("compile", base, "-o", folder / "m.mlpackage", "--lora", folder / "peft"), "bad-file", "convert_lora_to_gguf.py")
    refused(run("compile", base, "-o", folder / "m.mlpackage", "--lora", base), "bad-file", "general.type")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "adapters in GGUF files"))
