#!/usr/bin/env python3
"""Tests folders of timm against readings in NumPy (timm_numpy.py) of tiny folders with random weights. Most take their sizes from
model_args; those that timm does not let them change are the smallest of their family."""
import json
import pathlib
import re
import shutil
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import picture_numpy
import timm_numpy as readings
import timm_reference
from driver import expect, run, run_tests
from picture_nets_test import EXACT, LABELS, PACKAGE, compare, outputs, shape_of, timm, write

# model_args and those of a reading of a small vision transformer
VIT, SMALL = {"embed_dim": 32, "depth": 2, "num_heads": 4}, {"width": 32, "depth": 2, "heads": 4}
DINO = {"pooling": "avg", "fc_norm": False, "registers": 4, "scales": True, "epsilon": 1e-5}
CLIP = {"prenorm": True, "epsilon": 1e-5}
V4 = [[("cn", 3, 2, 1, 32), ("cn", 1, 1, 1, 32)], [("cn", 3, 2, 1, 96), ("cn", 1, 1, 1, 64)],
      [("uir", 5, 5, 2, 3, 96)] + 4 * [("uir", 0, 3, 1, 2, 96)] + [("uir", 3, 0, 1, 4, 96)],
      [("uir", 3, 3, 2, 6, 128), ("uir", 5, 5, 1, 4, 128), ("uir", 0, 5, 1, 4, 128), ("uir", 0, 5, 1, 3, 128)] + 2 * [("uir", 0, 3, 1, 4, 128)],
      [("cn", 1, 1, 1, 960)]]
FAST = {"layers": [1, 2, 1, 2], "embed_dims": [8, 16, 16, 32], "mlp_ratios": [2, 3, 2, 2]}
AVG = {"global_pool": "avg"}
REP = {"depth": [2, 1, 3], "embed_dim": [8, 16, 24]}
ROWS = [  # architecture, model_args, reading, and the rest of config.json
    ("vit_tiny_patch16_224", VIT, readings.vit(**SMALL)),
    ("vit_small_patch8_224", VIT | {"mlp_ratio": 3, "qkv_bias": False}, readings.vit(**SMALL, patch=8, ratio=3, bias=False)),
    ("vit_tiny_patch16_384", VIT, readings.vit(**SMALL), {"num_classes": 0}),
    ("vit_medium_patch16_gap_240", VIT, readings.vit(**SMALL, pooling="avg", fc_norm=False, classes=False, bias=False, scales=True), {"global_pool": "avg"}),
    ("vit_medium_patch16_reg4_gap_256", VIT,
     readings.vit(**SMALL, pooling="avg", classes=False, registers=4, overlap=False, scales=True), {"global_pool": "avg"}),
    ("vit_so150m_patch16_reg4_map_256", VIT | {"mlp_ratio": 2}, readings.vit(**SMALL, ratio=2, pooling="map", classes=False, registers=4), {"global_pool": "map"}),
    ("vit_base_patch32_clip_224", VIT, readings.vit(**SMALL, patch=32, **CLIP), {"num_classes": 0}),
    ("vit_base_patch16_clip_quickgelu_224", VIT, readings.vit(**SMALL, act="quick_gelu", **CLIP)),
    ("vit_small_patch14_dinov2", VIT | {"patch_size": 16}, readings.vit(**SMALL, scales=True), {"num_classes": 0}),
    ("vit_giant_patch14_reg4_dinov2", VIT | {"patch_size": 16},
     readings.vit(**SMALL, ratio=5.33334, gated=True, act="silu", registers=4, overlap=False, scales=True)),
    ("vit_base_patch16_siglip_224", VIT, readings.vit(**SMALL, classes=False, pooling="map"), {"global_pool": "map"}),
    ("vit_so400m_patch14_siglip_gap_224", VIT | {"mlp_ratio": 2, "patch_size": 16, "act_layer": "gelu_tanh"},
     readings.vit(**SMALL, ratio=2, classes=False, pooling="avg", fc_norm=False, act="gelu_tanh"), {"num_classes": 0} | AVG),
    ("vit_intern300m_patch14_448", VIT | {"patch_size": 16}, readings.vit(**SMALL, scales=True, final=False)),
    ("eva_large_patch14_196", VIT | {"patch_size": 16}, readings.vit(**SMALL, pooling="avg"), {"global_pool": "avg"}),
    ("flexivit_small", VIT, readings.vit(**SMALL, overlap=False)),
    ("deit_tiny_patch16_224", VIT, readings.vit(**SMALL)),
    ("deit_tiny_distilled_patch16_224", VIT, readings.vit(**SMALL, distilled=True)),
    ("deit3_small_patch16_224", VIT, readings.vit(**SMALL, overlap=False, scales=True)),
    ("beit_base_patch16_224", VIT, readings.vit(**SMALL, pooling="avg", relative=True, scales=True), {"global_pool": "avg"}),
    ("vit_small_patch16_dinov3", VIT, readings.vit(**SMALL, rotary="dinov3", bias=False, **DINO), {"num_classes": 0} | AVG),
    ("vit_tiny_patch16_dinov3_qkvb", VIT, readings.vit(**SMALL, rotary="dinov3", **DINO), {"global_pool": "avg"}),
    ("eva02_tiny_patch14_224", VIT | {"patch_size": 8, "mlp_ratio": 2},
     readings.vit(**SMALL, patch=8, ratio=2, rotary="eva02", pooling="avg", gated=True, act="silu"), {"global_pool": "avg"}),
    ("eva02_base_patch14_224", VIT | {"patch_size": 16, "mlp_ratio": 2},
     readings.vit(**SMALL, ratio=2, rotary="eva02", pooling="avg", apart=True, norms=["mlp"]), {"global_pool": "avg"}),
    ("eva02_base_patch16_clip_224", VIT | {"mlp_ratio": 2}, readings.vit(**SMALL, ratio=2, rotary="eva02", apart=True, norms=["mlp", "attn"])),
    ("regnetx_002", {"w0": 16, "wa": 9.5, "wm": 2.2, "group_size": 16, "depth": 6}, readings.regnet(16, 9.5, 2.2, 16, 6)),
    ("regnety_002", {"depth": 7}, readings.regnet(24, 36.44, 2.49, 8, 7, True)),
    ("vgg11", {"mlp_ratio": 0.01}, readings.vgg([1, 1, 2, 2, 2], False, 40)),
    ("vgg11_bn", {"mlp_ratio": 0.01}, readings.vgg([1, 1, 2, 2, 2], True, 40)),
    ("densenet121", {"growth_rate": 8, "block_config": [2, 3, 2], "bn_size": 2}, readings.densenet(8, [2, 3, 2], 2)),
    ("resnet10t", {}, readings.resnet([1, 1, 1, 1], True, (24, 32, 64), average=True)),
    ("ecaresnet26t", {}, readings.resnet([2, 2, 2, 2], False, (24, 32, 64), average=True, squeeze="eca")),
    ("seresnext26d_32x4d", {}, readings.resnet([2, 2, 2, 2], False, (32, 32, 64), 32, 4, True, "se")),
    ("resnetrs50", {}, readings.resnet([3, 4, 6, 3], False, (32, 32, 64), average=True, squeeze="se", convolves=True)),
    ("repvit_m1", REP, readings.repvit(*REP.values(), legacy=True), AVG),
    ("repvit_m1_1", REP, readings.repvit(*REP.values()), AVG),
    ("repvit_m0_9", REP | {"distillation": False}, readings.repvit(*REP.values(), distilled=False), AVG),
    ("repvit_m2_3", REP, readings.repvit(*REP.values()), {"num_classes": 0} | AVG),
    ("fastvit_t8", FAST, readings.fastvit(*FAST.values())),
    ("fastvit_t12", FAST, readings.fastvit(*FAST.values(), fused=True)),
    ("fastvit_sa12", FAST, readings.fastvit(*FAST.values(), attends=[3], fused=True)),
    ("fastvit_mci0", FAST, readings.fastvit(*FAST.values(), attends=[3], squeezes=[2, 3], activated=True)),
    ("fastvit_mci3", {"layers": [1, 1, 1, 1, 2], "embed_dims": [8, 16, 16, 32, 64], "mlp_ratios": [2] * 5},
     readings.fastvit([1, 1, 1, 1, 2], [8, 16, 16, 32, 64], [2] * 5, attends=[3, 4], activated=True, channels=True, stem_scales=False)),
    ("test_efficientnet", {}, picture_numpy.timm_mobile(
        [[("cn", 1, 3, 1, 1, 16, 0, None)], [("er", 1, 3, 2, 4, 24, 0, None)], [("er", 1, 3, 2, 4, 32, 0, None)],
         [("ir", 1, 3, 2, 4, 48, .25, None)], [("ir", 1, 3, 2, 4, 64, .25, None)]], 24, 64, 256)),
    ("mobilenetv4_conv_small", {}, readings.mobilenet_v4(V4, 32)),
    ("mobilenetv4_conv_small_050", {}, readings.mobilenet_v4(V4, 32, 0.5)),
]


def folder_of(folder, architecture, arguments, reading, picture, others={}):
    """Returns a folder with tensors that the reading asks for, and the outputs of the reading."""
    net, config = picture_numpy.Net(), {"model_args": arguments, "global_pool": "token" if arguments.keys() & {"embed_dim"} else "avg"} | others
    wanted = reading(net, config.get("num_classes", len(LABELS)), picture[0].astype("f8"))
    return timm(folder, architecture, net.tensors, **config), wanted


def test_rows(folder):
    picture, worst = np.random.default_rng(1).normal(size=(1, 3, 64, 64)).astype("f4"), 0
    for number, (architecture, arguments, reading, *others) in enumerate(ROWS):
        model, wanted = folder_of(folder / f"{number}", architecture, arguments, reading, picture, *others)
        found = outputs(model, folder / f"{number}-out", picture, "--arithmetic", "exact")
        worst = max(worst, compare(architecture, found, wanted, EXACT))
    print(f"# timm: {len(ROWS)} architectures within {worst:.1e} of NumPy")


def test_reference(folder):
    """Compares with results of timm (timm_reference.py)."""
    worst, rows = 0, json.loads(timm_reference.FILE.read_text())
    for number, row in enumerate(rows):
        tensors = {name: timm_reference.drawn(name, shape) for name, shape in timm_reference.unpacked(row["tensors"]).items()}
        model = write(folder / f"{number}", {"architecture": row["architecture"]} | row["config"], tensors)
        key, size = "logits" if row["config"]["num_classes"] else "pooler_output", row["config"]["pretrained_cfg"]["input_size"][1]
        found = outputs(model, folder / "out", timm_reference.picture(size), "--arithmetic", "exact")
        worst = max(worst, compare(row["architecture"], {key: found[key]}, {key: np.array([row["outputs"]])}, EXACT))
        shutil.rmtree(model)
    print(f"# timm: {len(rows)} architectures within {worst:.1e} of timm")


def test_swin_v2(folder):
    """timm joins queries, keys and values, and adds the mask once."""
    sizes = {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    config = {"model_type": "swinv2", "architectures": ["Swinv2ForImageClassification"], "id2label": LABELS, "image_size": 64, "apart": -100.0}
    picture = np.random.default_rng(2).normal(size=(1, 3, 64, 64)).astype("f4")
    tensors, wanted = picture_numpy.made(config | sizes, picture[0].astype("f8"))
    rules = [(r"^swinv2\.", ""), (r"embeddings\.patch_embeddings\.projection", "patch_embed.proj"), (r"embeddings\.norm", "patch_embed.norm"),
             (r"encoder\.layers\.(\d)\.downsample", lambda m: f"layers.{int(m[1]) + 1}.downsample"), (r"encoder\.", ""),
             ("layernorm_before", "norm1"), ("layernorm_after", "norm2"), ("^layernorm", "norm"), (r"attention\.output\.dense", "attn.proj"),
             (r"attention\.self\.", "attn."), ("continuous_position_bias_mlp", "cpb_mlp"), (r"intermediate\.dense", "mlp.fc1"),
             (r"output\.dense", "mlp.fc2"), ("^classifier", "head.fc"), (r"attn\.(query|value)\.bias", lambda m: f"attn.{m[1][0]}_bias")]
    renamed = {}
    for name, value in tensors.items():
        for pattern, by in rules:
            name = re.sub(pattern, by, name)
        renamed[name] = value
    for name in [name for name in renamed if name.endswith("attn.query.weight")]:
        parts = [renamed.pop(name.replace("query", part)) for part in ("query", "key", "value")]
        renamed[name.replace("query", "qkv")] = np.concatenate(parts)
    model = timm(folder / "m", "swinv2_tiny_window8_256", renamed, model_args=sizes)
    compare("swinv2", outputs(model, folder / "out", picture, "--arithmetic", "exact"), wanted, EXACT)


def test_packages(folder):
    """Packages in fp16 agree with their folders and with the readings, and sizes come from the name and from --shape."""
    picture = np.random.default_rng(3).normal(size=(1, 3, 64, 64)).astype("f4")
    for architecture in ("vit_medium_patch16_reg4_gap_256", "vit_base_patch16_siglip_224", "beit_base_patch16_224", "ecaresnet26t",
                         "mobilenetv4_conv_small_050", "fastvit_sa12"):
        row = next(row for row in ROWS if row[0] == architecture)
        model, wanted = folder_of(folder / architecture, *row[:3], picture, *row[3:])
        expect(run("compile", model, "-o", folder / f"{architecture}.mlpackage", "--verify-each"), 0)
        expect(run("verify", model, folder / f"{architecture}.mlpackage"), 0, "PASSED")
        compare(architecture, outputs(folder / f"{architecture}.mlpackage", folder / "out", picture), wanted, PACKAGE)
    model, wanted = folder_of(folder / "named", "vit_tiny_patch16_384", VIT, readings.vit(**SMALL), np.zeros((1, 3, 384, 384)), {"pretrained_cfg": {}})
    expect(run("compile", model, "-o", folder / "named.mlpackage"), 0)
    assert expect(run("inspect", folder / "named.mlpackage", "--json"), 0).answer["inputs"][0]["shape"] == [1, 3, 384, 384]
    outputs(model, folder / "out", picture, *shape_of(picture))


def test_refused(folder):
    """What is unsupported, damaged or hostile is refused at once, with the key or the tensor."""
    for number, (architecture, arguments, others, text) in enumerate((
            ("vit_tiny_patch16_225", {}, {}, "vit_tiny_patch16_224"), ("vit_tiny_patch16_224", {"qk_norm": True}, {}, "qk_norm"),
            ("vit_tiny_patch16_224", {"depth": 0}, {}, "0 layers"), ("vit_tiny_patch16_224", {"depth": "many"}, {}, "depth"),
            ("vit_tiny_patch16_224", {"embed_dim": 2**31 - 1}, {}, "channels"), ("vit_tiny_patch16_224", {"mlp_ratio": 1e30}, {}, "feed-forward"),
            ("vit_tiny_patch16_224", {"patch_size": 0}, {}, "patches"), ("vit_tiny_patch16_224", {"global_pool": "max"}, {}, "global_pool"),
            ("vit_tiny_patch16_224", {"class_token": False}, {}, "class_token"), ("vit_tiny_patch16_224", {}, {"global_pool": "avg"}, "global_pool"),
            ("vit_tiny_patch16_224", {"reg_tokens": 10**9}, {}, "tokens"), ("vit_tiny_patch16_224", {}, {}, "patch_embed.proj.weight"),
            ("vit_tiny_patch16_224", {"img_size": [10**9, 1]}, {}, "pixels"), ("vit_tiny_patch16_224", {"act_layer": "step"}, {}, "step"),
            ("regnetx_002", {"wa": -1}, {}, "wa"), ("regnetx_002", {"wm": 1}, {}, "wm"), ("regnetx_002", {"depth": 10**9}, {}, "depth"),
            ("regnety_002", {"group_size": 0}, {}, "group"), ("regnety_002", {"preact": True}, {}, "preact"), ("vgg11", {"mlp_ratio": 0}, {}, "mlp_ratio"),
            ("densenet121", {"growth_rate": 10**9}, {}, "at most"), ("densenet121", {"block_config": []}, {}, "depths"),
            ("vgg11", {}, {"pretrained_cfg": {"input_size": [3, 16, 16]}}, "features.0.weight"), ("resnet50d", {"stem_width": 8}, {}, "stem_width"),
            ("repvit_m1", {"depth": [1]}, {}, "depths"), ("repvit_m1", {"embed_dim": [7, 8, 8, 8]}, {}, "even"),
            ("fastvit_t8", {"layers": [1]}, {}, "layers"), ("fastvit_t8", {"embed_dims": [0, 1, 2, 3]}, {}, "width"),
            ("fastvit_t8", {"mlp_ratios": [1e9] * 4}, {}, "ratio"), ("fastvit_t8", {"token_mixers": ["pool"] * 4}, {}, "token_mixers"),
            ("fastvit_sa12", {"embed_dims": [8, 8, 8, 8]}, {}, "32"), ("fastvit_t8", {"repmixer_kernel_size": 2}, {}, "odd"),
            ("mobilenetv4_conv_small", {"aa_layer": "avg"}, {}, "aa_layer"), ("caformer_s18", {"head_dim": 0}, {}, "head"),
            ("tiny_vit_5m_224", {"window_sizes": [7]}, {}, "windows"), ("tiny_vit_5m_224", {"window_sizes": [10**9] * 4}, {}, "64"),
            ("levit_128s", {"num_heads": []}, {}, "heads"), ("levit_128s", {"key_dim": 0}, {}, "key"), ("efficientvit_b0", {"head_dim": 0}, {}, "head"),
            ("pvt_v2_b0", {"num_heads": [0]}, {}, "heads"), ("regnetz_d8", {"strides": [1]}, {}, "strides"), ("dla34", {}, {}, "base_layer.0.weight"),
            ("repvgg_a0", {}, {}, "stem.conv_kxk.conv.weight"), ("nfnet_f0", {"act_layer": "sigmoid"}, {}, "act_layer"),
            ("inception_v3", {"aux_logits": True}, {}, "aux_logits"), ("hrnet_w18", {}, {}, "conv1.weight"))):
        config = {"architecture": architecture, "model_args": arguments} | others
        model = write(folder / f"{number}", config, {"a": np.zeros(1, "f4")})
        result = run("compile", model, "-o", folder / "no.mlpackage")
        assert result.code == 1 and text in result.stderr, (config, text, result)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "timm"))
