#!/usr/bin/env python3
"""Tests folders of Segment Anything against a reading of transformers' models/sam/modeling_sam.py in NumPy: the whole model, its
functions for pictures and prompts, and the tower alone."""
import json
import math
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import picture_numpy
import safetensors_file as safetensors
from driver import expect, run, run_tests
from picture_numpy import ACTIVATIONS, attend, tokens

EXACT, PACKAGE = 1e-5, 1e-2  # relative root mean square errors
VISION = {"hidden_size": 32, "output_channels": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 80, "patch_size": 8,
          "window_size": 4, "global_attn_indexes": [1], "num_pos_feats": 16, "mlp_ratio": 2.0}
DECODER = {"hidden_size": 32, "mlp_dim": 48, "num_attention_heads": 4, "iou_head_hidden_dim": 24}
CONFIG = {"model_type": "sam", "architectures": ["SamModel"], "vision_config": VISION, "mask_decoder_config": DECODER,
          "prompt_encoder_config": {"hidden_size": 32, "image_size": 80, "patch_size": 8, "image_embedding_size": 10}}
POINTS = np.array([[[[12, 70.5], [33, 4], [79, 40], [1, 1], [5, 6]]]], "f4")
LABELS = np.array([[[1, 0, -1, 1, -10]]], "i4")


def tower(net, c, x):
    patch, width, heads = c["patch_size"], c["hidden_size"], c["num_attention_heads"]
    x = net.conv("patch_embed.projection", x, width, patch, patch, 0, bias=True).transpose(1, 2, 0)
    if c.get("use_abs_pos", True):
        x = x + net.tensor("pos_embed", 1, *x.shape)[0]

    def attention(name, x):
        rows, columns = x.shape[:2]
        qkv = net.linear(name + "qkv", x.reshape(-1, width), 3 * width, c.get("qkv_bias", True))
        q, k, v = qkv.reshape(rows * columns, 3, heads, -1).transpose(1, 2, 0, 3)
        bias = 0
        if c.get("use_rel_pos", True):
            down, across = (net.tensor(name + f"rel_pos_{axis}", 2 * size - 1, width // heads)[
                np.arange(size)[:, None] - np.arange(size) + size - 1] for axis, size in (("h", rows), ("w", columns)))
            grid = q.reshape(heads, rows, columns, -1)
            bias = (np.einsum("nhwc,hkc->nhwk", grid, down)[..., :, None] + np.einsum("nhwc,wkc->nhwk", grid, across)[..., None, :])
            bias = bias.reshape(heads, rows * columns, -1)
        return net.linear(name + "proj", attend(q, k, v, bias).transpose(1, 0, 2).reshape(-1, width), width).reshape(rows, columns, width)
    for n in range(c["num_hidden_layers"]):
        name, size = f"layers.{n}.", c["window_size"]
        y = net.layer_norm(name + "layer_norm1", x, 1e-6)
        if n in c["global_attn_indexes"] or size == 0:
            y = attention(name + "attn.", y)
        else:
            y = np.pad(y, [(0, -y.shape[0] % size), (0, -y.shape[1] % size), (0, 0)])
            for top in range(0, y.shape[0], size):
                for left in range(0, y.shape[1], size):
                    y[top:top + size, left:left + size] = attention(name + "attn.", y[top:top + size, left:left + size])
            y = y[:x.shape[0], :x.shape[1]]
        x = x + y
        inner = int(width * c["mlp_ratio"])
        y = net.linear(name + "mlp.lin1", net.layer_norm(name + "layer_norm2", x, 1e-6), inner)
        x = x + net.linear(name + "mlp.lin2", ACTIVATIONS["gelu"](y), width)
    x = net.map_norm("neck.layer_norm1", net.conv("neck.conv1", x.transpose(2, 0, 1), c["output_channels"]), 1e-6)
    return net.map_norm("neck.layer_norm2", net.conv("neck.conv2", x, c["output_channels"], 3), 1e-6)


def decoder(net, c, size, picture, points, labels):
    width, heads, (_, height, across) = c["hidden_size"], c["num_attention_heads"], picture.shape

    def positioned(xy):
        angles = 2 * math.pi * ((2 * xy - 1) @ net.tensor("shared_image_embedding.positional_embedding", 2, width // 2))
        return np.concatenate([np.sin(angles), np.cos(angles)], -1)
    none = net.tensor("prompt_encoder.not_a_point_embed.weight", 1, width)
    shown = [net.tensor(f"prompt_encoder.point_embed.{i}.weight", 1, width)[0] for i in range(4)]
    prompt = positioned((points + 0.5) / size)
    for i, label in enumerate(labels):
        prompt[i] = none[0] if label == -1 else 0 if label == -10 else prompt[i] + shown[label]
    x = first = np.concatenate([net.tensor("mask_decoder.iou_token.weight", 1, width), net.tensor("mask_decoder.mask_tokens.weight", 4, width),
                                prompt, none])
    dense = net.tensor("prompt_encoder.no_mask_embed.weight", 1, width)
    picture = tokens(picture) + dense
    centres = np.stack(np.meshgrid((np.arange(across) + 0.5) / across, (np.arange(height) + 0.5) / height), -1).reshape(-1, 2)
    places = positioned(centres)

    def attention(name, q, k, v, inner):
        q, k, v = (net.linear(f"{name}.{part}_proj", of, inner).reshape(len(of), heads, -1).swapaxes(0, 1)
                   for part, of in (("q", q), ("k", k), ("v", v)))
        return net.linear(name + ".out_proj", attend(q, k, v).swapaxes(0, 1).reshape(-1, inner), width)
    for i in range(2):
        name = f"mask_decoder.transformer.layers.{i}."
        norm = lambda n, y: net.layer_norm(f"{name}layer_norm{n}", y, 1e-6)
        x = norm(1, attention(name + "self_attn", x, x, x, width) if i == 0 else x + attention(name + "self_attn", x + first, x + first, x, width))
        x = norm(2, x + attention(name + "cross_attn_token_to_image", x + first, picture + places, picture, width // 2))
        y = np.maximum(net.linear(name + "mlp.lin1", x, c["mlp_dim"]), 0)
        x = norm(3, x + net.linear(name + "mlp.lin2", y, width))
        picture = norm(4, picture + attention(name + "cross_attn_image_to_token", picture + places, x + first, x, width // 2))
    x = x + attention("mask_decoder.transformer.final_attn_token_to_image", x + first, picture + places, picture, width // 2)
    x = net.layer_norm("mask_decoder.transformer.layer_norm_final_attn", x, 1e-5)

    def up(name, x, out):
        weight, bias = net.tensor(f"mask_decoder.{name}.weight", len(x), out, 2, 2), net.tensor(f"mask_decoder.{name}.bias", out)
        y = np.einsum("chw,coyx->ohywx", x, weight)
        return y.reshape(out, 2 * x.shape[1], 2 * x.shape[2]) + bias[:, None, None]
    map_ = up("upscale_conv1", picture.T.reshape(width, height, across), width // 4)
    map_ = ACTIVATIONS["gelu"](net.map_norm("mask_decoder.upscale_layer_norm", map_, 1e-6))
    map_ = ACTIVATIONS["gelu"](up("upscale_conv2", map_, width // 8))

    def mlp(name, x, inner, out):
        for part in ("proj_in", "layers.0"):
            x = np.maximum(net.linear(f"mask_decoder.{name}.{part}", x, inner), 0)
        return net.linear(f"mask_decoder.{name}.proj_out", x, out)
    masks = [np.tensordot(mlp(f"output_hypernetworks_mlps.{i}", x[1 + i], width, width // 8), map_, 1) for i in range(4)]
    scores = mlp("iou_prediction_head", x[0], c["iou_head_hidden_dim"], 4)
    return {"iou_scores": scores[None, None, 1:], "pred_masks": np.stack(masks[1:])[None, None]}


def made(picture, vision=VISION, points=POINTS, labels=LABELS):
    """Returns the tensors of a folder, the embeddings of the picture and the outputs."""
    net = picture_numpy.Net("vision_encoder.")
    embeddings = tower(net, vision, picture[0].astype("f8"))
    net.prefix = ""
    wanted = decoder(net, DECODER, 80, embeddings, points[0, 0].astype("f8"), labels[0, 0])
    return net.tensors, embeddings[None], wanted


def write(folder, config, tensors):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors.of(tensors))
    return folder


def outputs(model, folder, inputs, *options):
    folder.mkdir()
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value.astype("i4" if name == "input_labels" else "f4"))
        arguments += ["--input", f"{name}={folder / name}.npy"]
    expect(run("run", model, *arguments, "--output-dir", folder / "out", *options), 0)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def compare(label, found, wanted, limit):
    assert found.keys() == wanted.keys(), (label, found.keys(), wanted.keys())
    for key, value in wanted.items():
        assert found[key].shape == value.shape, (label, key, found[key].shape, value.shape)
        off = float(np.sqrt(np.mean((found[key] - value) ** 2) / np.mean(value**2)))
        assert off <= limit, (label, key, off)


def pictures():
    return np.random.default_rng(1).normal(size=(1, 3, 80, 80)).astype("f4")


def test_whole(folder):
    """One function is transformers' model; two others encode a picture once, and decode prompts."""
    picture = pictures()
    prompt = {"input_points": POINTS, "input_labels": LABELS}
    for number, changes in enumerate(({}, {"use_rel_pos": False, "qkv_bias": False}, {"use_abs_pos": False, "window_size": 0})):
        vision = VISION | changes
        tensors, embeddings, wanted = made(picture, vision)
        model = write(folder / f"{number}", CONFIG | {"vision_config": vision}, tensors)
        found = outputs(model, folder / f"{number}-main", {"pixel_values": picture} | prompt, "--arithmetic", "exact")
        compare(changes, found, wanted, EXACT)
        found = outputs(model, folder / f"{number}-some", {"pixel_values": picture}, "--arithmetic", "exact", "--outputs", "image_embeddings")
        compare(changes, found, {"image_embeddings": embeddings}, EXACT)
    package = folder / "m.mlpackage"
    expect(run("compile", folder / "0", "-o", package, "--verify-each"), 0)
    expect(run("verify", folder / "0", package), 0, "PASSED")
    tensors, embeddings, wanted = made(picture)
    found = outputs(package, folder / "encode", {"pixel_values": picture}, "--function", "encode")
    compare("encode", found, {"image_embeddings": embeddings}, PACKAGE)
    found = outputs(package, folder / "decode", found | prompt, "--function", "decode")
    compare("decode", found, wanted, PACKAGE)


def test_tower(folder):
    picture = pictures()
    tensors, embeddings, _ = made(picture)
    parts = {name.removeprefix("vision_encoder."): value for name, value in tensors.items() if name.startswith("vision_encoder.")}
    alone = {"model_type": "sam_vision_model", "architectures": ["SamVisionModel"]} | VISION
    for number, (config, weights) in enumerate(((alone, parts), (CONFIG | {"architectures": ["SamVisionModel"]}, tensors))):
        model = write(folder / f"{number}", config, weights)
        found = outputs(model, folder / f"{number}-out", {"pixel_values": picture}, "--arithmetic", "exact")
        compare(number, found, {"last_hidden_state": embeddings}, EXACT)


def test_refused(folder):
    tensors, _, _ = made(pictures())
    for number, (part, changes, text) in enumerate((
            ("vision_config", {"window_size": -1}, "windows"), ("vision_config", {"num_hidden_layers": 0}, "layers"),
            ("vision_config", {"image_size": 10**9}, "image_size"), ("vision_config", {"patch_size": 0}, "patch"),
            ("vision_config", {"hidden_size": "wide"}, "hidden_size"), ("vision_config", {"mlp_ratio": 1e30}, "mlp_ratio"),
            ("vision_config", {"num_attention_heads": 5}, "heads"), ("mask_decoder_config", {"num_attention_heads": 7}, "heads"),
            ("mask_decoder_config", {"num_multimask_outputs": 10**9}, "masks"), ("mask_decoder_config", {"iou_head_depth": 10**15}, "scores"),
            ("mask_decoder_config", {"hidden_size": 64}, "hidden_size"), ("mask_decoder_config", {"attention_downsample_rate": 0}, "reduction"),
            ("prompt_encoder_config", {"image_size": 96}, "image_size"))):
        model = write(folder / f"{number}", CONFIG | {part: CONFIG[part] | changes}, tensors)
        result = run("compile", model, "-o", folder / "no.mlpackage")
        assert result.code == 1 and text in result.stderr, (changes, text, result)
    model = write(folder / "nested", CONFIG | {"vision_config": 5}, tensors)
    expect(run("compile", model, "-o", folder / "no.mlpackage"), 1, "vision_config")
    model = write(folder / "less", CONFIG, {name: value for name, value in tensors.items() if "iou_token" not in name})
    expect(run("compile", model, "-o", folder / "no.mlpackage"), 1, "mask_decoder.iou_token.weight")
    result = run("compile", model, "-o", folder / "no.mlpackage", "--shape", "pixel_values=1,3,96,96")
    assert result.code == 2 and "80 x 80" in result.stderr, result


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "Segment Anything"))
