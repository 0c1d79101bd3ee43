#!/usr/bin/env python3
"""Tests encoder-decoders that read pictures and have no folder in the corpus: Donut (Swin and MBart) against a reading in NumPy."""
import json
import math
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import safetensors_file as safetensors
from driver import expect, run, run_tests
from encoders_test import error
from language_models import refused
from picture_numpy import Net, swin_tokens

EXACT = 1e-5
HEADS, VOCABULARY, POSITIONS = 4, 40, 24


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def mbart_decoder(net, tokens, states, width, layers, scale=True):
    """Logits of modeling_mbart.py: norms of inputs and of the embeddings, positions from row 2 on."""
    table = net.tensor("model.decoder.embed_tokens.weight", VOCABULARY, width)
    x = table[tokens] * (math.sqrt(width) if scale else 1)
    x = x + net.tensor("model.decoder.embed_positions.weight", POSITIONS + 2, width)[2:len(tokens) + 2]
    x = net.layer_norm("model.decoder.layernorm_embedding", x, 1e-5)
    causal = np.where(np.tri(len(tokens)) == 0, -1e30, 0)

    def attention(own, x, source, bias):
        q, k, v = (np.stack(np.split(net.linear(f"{own}.{name}_proj", of, width), HEADS, -1)) for name, of in zip("qkv", (x, source, source)))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(width // HEADS) + bias
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y = scores / scores.sum(-1, keepdims=True) @ v
        return net.linear(f"{own}.out_proj", np.concatenate(list(y), -1), width)

    for layer in range(layers):
        own = f"model.decoder.layers.{layer}."
        h = net.layer_norm(f"{own}self_attn_layer_norm", x, 1e-5)
        x = x + attention(f"{own}self_attn", h, h, causal)
        x = x + attention(f"{own}encoder_attn", net.layer_norm(f"{own}encoder_attn_layer_norm", x, 1e-5), states, 0)
        h = net.layer_norm(f"{own}final_layer_norm", x, 1e-5)
        x = x + net.linear(f"{own}fc2", gelu(net.linear(f"{own}fc1", h, 48)), width)
    return net.layer_norm("model.decoder.layer_norm", x, 1e-5) @ net.tensor("lm_head.weight", VOCABULARY, width).T


def donut(folder, kind="donut-swin", width=32, size=(32, 48), seed=0):
    """Writes a folder; returns the pixels, the tokens and what the model makes of them."""
    folder.mkdir()
    encoder = {"model_type": kind, "image_size": list(size), "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    decoder = {"model_type": "mbart", "d_model": width, "decoder_layers": 2, "decoder_attention_heads": HEADS, "decoder_ffn_dim": 48,
               "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "scale_embedding": True, "is_decoder": True, "add_cross_attention": True}
    pixels = np.random.default_rng(seed).normal(size=(3, *size)).astype("f4")
    tower, text = Net("encoder.", seed), Net("decoder.", seed + 1)
    states = swin_tokens(tower, encoder, pixels.astype("f8"))
    if kind == "swin":
        states = tower.layer_norm("layernorm", states, 1e-5)
    seen = tower.linear("enc_to_dec_proj", states, width, prefix="") if width != 32 else states
    tokens = [2, 5, 7, 1, 39]
    logits = mbart_decoder(text, tokens, seen, width, 2)
    # Saved in older versions, and not needed.
    tensors = tower.tensors | text.tensors | {"encoder.encoder.layers.0.blocks.0.attention.self.relative_position_index": np.zeros((16, 16), "i8")}
    (folder / "config.json").write_text(json.dumps({"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"],
                                                    "encoder": encoder, "decoder": decoder, "decoder_start_token_id": 2, "eos_token_id": 3,
                                                    "pad_token_id": 1}))
    (folder / "model.safetensors").write_bytes(safetensors.of(tensors))
    np.save(folder / "pixels.npy", pixels[None])
    np.save(folder / "tokens.npy", np.array([tokens], "i4"))
    return {"logits": logits[None], "encoder_last_hidden_state": states[None]}


def test_donut(folder):
    worst = 0
    for name, options in (("same", {}), ("other_width", {"width": 24}), ("odd", {"size": (36, 44)}), ("swin", {"kind": "swin"})):
        model = folder / name
        wanted = donut(model, **options)
        given = ["--input", f"pixel_values={model / 'pixels.npy'}", "--input", f"decoder_input_ids={model / 'tokens.npy'}"]
        expect(run("run", model, *given, "--arithmetic", "exact", "--output-dir", folder / "out"), 0)
        for output, value in wanted.items():
            off = error(np.load(folder / "out" / f"{output}.npy"), value)
            worst = max(worst, off)
            assert off <= EXACT, (name, output, off)
        # Step by step with caches, which the function main does not have.
        expect(run("run", model, "--picture", model / "pixels.npy", "--generate", 4, "--json"), 0)
        if name == "same":
            expect(run("compile", model, "-o", folder / f"{name}.mlpackage"), 0)
            expect(run("verify", model, folder / f"{name}.mlpackage"), 0, "PASSED")
    print(f"# Donut within {worst:.1e} of NumPy")


def test_refusals(folder):
    donut(folder / "good")

    def bad(identifier, *texts, **changes):
        model = folder / "bad"
        model.mkdir(exist_ok=True)
        config = json.loads((folder / "good" / "config.json").read_text())
        config["encoder"] |= changes
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_bytes((folder / "good" / "model.safetensors").read_bytes())
        refused(run("compile", model, "-o", folder / "m.mlpackage"), identifier, *texts)

    bad("unsupported-architecture", "unsupported encoder", "donut-swin", model_type="resnet")
    bad("unsupported-architecture", "use_absolute_embeddings", use_absolute_embeddings=True)
    bad("bad-file", "image_size", image_size=[1, 2, 3])
    bad("bad-file", image_size=0)
    bad("bad-file", num_heads=[3, 4])
    bad("bad-file", depths=[])
    bad("resource-limit", window_size=10 ** 6)
    bad("missing-tensor", depths=[2, 3])
    bad("bad-tensor", embed_dim=24, num_heads=[2, 4])


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "encoder-decoders that read pictures"))
