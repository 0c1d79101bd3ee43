#!/usr/bin/env python3
"""Tests folders of Segment Anything, its second version and EdgeTAM against readings in NumPy (sam_numpy.py): the whole models, their
functions for pictures and prompts, and the towers alone."""
import json
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import picture_numpy
import safetensors_file as safetensors
from driver import expect, run, run_tests
from sam_numpy import decoder, hiera, pyramid, tower
from timm_numpy import repvit_maps

EXACT, PACKAGE = 1e-5, 1e-2  # relative root mean square errors
VISION = {"hidden_size": 32, "output_channels": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 80, "patch_size": 8,
          "window_size": 4, "global_attn_indexes": [1], "num_pos_feats": 16, "mlp_ratio": 2.0}
DECODER = {"hidden_size": 32, "mlp_dim": 48, "num_attention_heads": 4, "iou_head_hidden_dim": 24}
CONFIG = {"model_type": "sam", "architectures": ["SamModel"], "vision_config": VISION, "mask_decoder_config": DECODER,
          "prompt_encoder_config": {"hidden_size": 32, "image_size": 80, "patch_size": 8, "image_embedding_size": 10}}
HIERA = {"hidden_size": 8, "image_size": [128, 128], "blocks_per_stage": [1, 2, 3, 1], "embed_dim_per_stage": [8, 16, 32, 64],
         "num_attention_heads_per_stage": [1, 2, 4, 8], "window_size_per_stage": [8, 4, 6, 2], "global_attention_blocks": [4],
         "window_positional_embedding_background_size": [3, 5], "mlp_ratio": 2.0}
PYRAMID = {"fpn_hidden_size": 32, "backbone_channel_list": [64, 32, 16, 8]}
SECOND = {"model_type": "sam2", "architectures": ["Sam2Model"], "vision_config": PYRAMID | {"backbone_config": HIERA},
          "mask_decoder_config": DECODER, "prompt_encoder_config": {"hidden_size": 32, "image_size": 128}}
REPVIT = {"depth": [1, 2, 1, 1], "embed_dim": [8, 16, 24, 32]}
EDGE = SECOND | {"model_type": "edgetam", "architectures": ["EdgeTamModel"], "vision_config": PYRAMID | {"backbone_config": {
    "model_type": "timm_wrapper", "architecture": "repvit_m1.dist_in1k", "model_args": REPVIT | {"in_chans": 3, "features_only": True,
                                                                                                "out_indices": [0, 1, 2, 3]}}}}
POINTS = np.array([[[[12, 70.5], [33, 4], [79, 40], [1, 1], [5, 6]]]], "f4")
LABELS = np.array([[[1, 0, -1, 1, -10]]], "i4")
BOX = np.array([[[10, 20, 70, 75.5]]], "f4")


def made(picture, vision=VISION, points=POINTS, labels=LABELS):
    """Returns the tensors of a folder, the embeddings of the picture and the outputs."""
    net = picture_numpy.Net("vision_encoder.")
    embeddings = tower(net, vision, picture[0].astype("f8"))
    net.prefix = ""
    wanted = decoder(net, DECODER, 80, [embeddings], points[0, 0].astype("f8"), labels[0, 0])
    return net.tensors, embeddings[None], wanted


def made_second(config, picture):
    """Returns the tensors of a folder of the second version, the maps of its pyramid, the embeddings and outputs for points and a box."""
    net = picture_numpy.Net("vision_encoder.backbone.")
    if config["model_type"] == "sam2":
        maps = hiera(net, HIERA, picture[0].astype("f8"))
    else:
        net.prefix += "timm_model."
        repvit_maps(net, *REPVIT.values(), True, picture[0].astype("f8"), "stages_")
        for name, value in net.tensors.items():  # without it each block enlarges its input many times
            value *= 0.2 if "token_mixer.conv1.c" in name else 1
        maps = repvit_maps(net, *REPVIT.values(), True, picture[0].astype("f8"), "stages_")
    net.prefix = "vision_encoder."
    levels = pyramid(net, maps, 32)
    net.prefix = ""
    embeddings = [net.conv("mask_decoder.conv_s0", levels[0], 4, bias=True), net.conv("mask_decoder.conv_s1", levels[1], 8, bias=True),
                  levels[2] + net.tensor("no_memory_embedding", 1, 1, 32)[0, 0][:, None, None]]
    wanted = [decoder(net, DECODER, 128, embeddings, second=True, **prompt) for prompt in (
        {"points": POINTS[0, 0].astype("f8"), "labels": LABELS[0, 0]}, {"box": BOX[0, 0].astype("f8")})]
    towers = {"last_hidden_state": maps[-1].transpose(1, 2, 0)[None]} | {f"fpn_hidden_states.{i}": level[None] for i, level in enumerate(levels)}
    return net.tensors, towers, {f"image_embeddings.{i}": value[None] for i, value in enumerate(embeddings)}, wanted


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


def pictures(side=80):
    return np.random.default_rng(1).normal(size=(1, 3, side, side)).astype("f4")


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


def test_box(folder):
    """A box is a prompt of its own."""
    tensors, embeddings, _ = made(pictures())
    net = picture_numpy.Net()
    net.tensors = tensors | {f"prompt_encoder.point_embed.{i}.weight": tensors[f"prompt_encoder.point_embed.{i}.weight"] for i in range(4)}
    wanted = decoder(net, DECODER, 80, [embeddings[0]], box=BOX[0, 0].astype("f8"))
    model = write(folder / "m", CONFIG, tensors)
    found = outputs(model, folder / "box", {"image_embeddings": embeddings, "input_boxes": BOX}, "--function", "decode_box", "--arithmetic", "exact")
    compare("box", found, wanted, EXACT)


def test_second(folder):
    """The second version and EdgeTAM, whole, in parts, and the tower alone; folders for videos have the same parts."""
    picture = pictures(128)
    prompt = {"input_points": POINTS, "input_labels": LABELS}
    for config in (SECOND, EDGE):
        kind = config["model_type"]
        tensors, towers, embeddings, (wanted, boxed) = made_second(config, picture)
        model = write(folder / kind, config, tensors)
        found = outputs(model, folder / f"{kind}-main", {"pixel_values": picture} | prompt, "--arithmetic", "exact")
        compare(kind, found, wanted, EXACT)
        found = outputs(model, folder / f"{kind}-encode", {"pixel_values": picture}, "--function", "encode", "--arithmetic", "exact")
        compare(kind, found, embeddings, EXACT)
        for function, more, of in (("decode", prompt, wanted), ("decode_box", {"input_boxes": BOX}, boxed)):
            found = outputs(model, folder / f"{kind}-{function}", embeddings | more, "--function", function, "--arithmetic", "exact")
            compare((kind, function), found, of, EXACT)
        some = [name for name in embeddings if name.endswith("2")]
        found = outputs(model, folder / f"{kind}-some", {"pixel_values": picture}, "--arithmetic", "exact", "--outputs", ",".join(some))
        compare(kind, found, {name: embeddings[name] for name in some}, EXACT)
        package = folder / f"{kind}.mlpackage"
        expect(run("compile", model, "-o", package, "--verify-each"), 0)
        expect(run("verify", model, package), 0, "PASSED")
        memory = {"memory_attention.layers.0.linear1.weight": np.ones((4, 4), "f4"), "memory_temporal_positional_encoding": np.ones((7, 1), "f4"),
                  "prompt_encoder.mask_embed.conv1.weight": np.ones((1, 1, 2, 2), "f4"), "no_object_pointer": np.ones((1, 32), "f4")}
        video = write(folder / f"{kind}-video", config | {"model_type": f"{kind}_video", "architectures": ["Sam2VideoModel"]}, tensors | memory)
        compare(kind, outputs(video, folder / f"{kind}-video-main", {"pixel_values": picture} | prompt, "--arithmetic", "exact"), wanted, EXACT)
        alone = config["vision_config"] | {"model_type": f"{kind}_vision_model", "architectures": ["Sam2VisionModel"], "image_size": 128}
        parts = {name.removeprefix("vision_encoder."): value for name, value in tensors.items() if name.startswith("vision_encoder.")}
        tower = write(folder / f"{kind}-tower", alone, parts)
        compare(kind, outputs(tower, folder / f"{kind}-tower-out", {"pixel_values": picture}, "--arithmetic", "exact"), towers, EXACT)


def test_second_refused(folder):
    tensors = made_second(SECOND, pictures(128))[0]
    for number, (part, changes, text) in enumerate((
            ("vision_config", {"fpn_stride": 2}, "fpn_stride"), ("vision_config", {"num_feature_levels": 2}, "stages"),
            ("vision_config", {"backbone_config": HIERA | {"window_size_per_stage": [8, 4, 6]}}, "windows"),
            ("vision_config", {"backbone_config": HIERA | {"window_size_per_stage": [8, 4, 5, 2]}}, "halved"),
            ("vision_config", {"backbone_config": HIERA | {"image_size": [100, 128]}}, "image_size"),
            ("vision_config", {"backbone_config": HIERA | {"window_size_per_stage": [7, 4, 6, 2], "num_query_pool_stages": 0}}, "windows of 7"),
            ("vision_config", {"backbone_config": HIERA | {"num_attention_heads_per_stage": [3, 2, 4, 8]}}, "heads"),
            ("vision_config", {"backbone_config": HIERA | {"query_stride": [2, 3]}}, "query_stride"),
            ("vision_config", {"backbone_config": HIERA | {"blocks_per_stage": [10**9, 2, 3, 1]}}, "blocks"),
            ("vision_config", {"backbone_config": 7}, "backbone_config"),
            ("mask_decoder_config", {"num_hidden_layers": 3}, "num_hidden_layers"),
            ("prompt_encoder_config", {"patch_size": 32}, "places"))):
        model = write(folder / f"{number}", SECOND | {part: SECOND[part] | changes}, tensors)
        result = run("compile", model, "-o", folder / "no.mlpackage")
        assert result.code == 1 and text in result.stderr, (changes, text, result)
    odd = EDGE | {"vision_config": PYRAMID | {"backbone_config": {"architecture": "resnet50"}}}
    expect(run("compile", write(folder / "odd", odd, tensors), "-o", folder / "no.mlpackage"), 1, "RepViT")


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
            ("mask_decoder_config", {"num_multimask_outputs": 10**9}, "masks"), ("mask_decoder_config", {"iou_head_depth": 2**31 - 1}, "scores"),
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
