#!/usr/bin/env python3
"""Tests networks for pictures (convolutional networks, transformers on maps, detectors) against the results of transformers
(oracle.npz of the corpus), and against readings in NumPy (picture_numpy.py) of tiny folders with random weights."""
import json
import pathlib
import re
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import detector_numpy
import picture_numpy
import safetensors_file as safetensors
from driver import CORPUS, expect, run, run_tests

FOLDERS = ["huggingface/hf_resnet", "huggingface/hf_mobilenet_v2", "folders/hf_regnet", "folders/hf_mobilevit", "folders/hf_detr"]
EXACT, PACKAGE = 1e-5, 1e-2  # relative root mean square errors
RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [2, 2]}
REGNET = {"embedding_size": 16, "hidden_sizes": [16, 32, 48], "depths": [1, 2, 1], "groups_width": 8}
CONVNEXT = {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 2, 1]}
MOBILEVIT = {"hidden_sizes": [16, 20, 24], "neck_hidden_sizes": [8, 8, 12, 16, 20, 24, 48], "expand_ratio": 2.0}
MOBILEVIT2 = {"width_multiplier": 0.25, "base_attn_unit_dims": [64, 96, 128], "n_attn_blocks": [1, 2, 1]}
EFFICIENTNET = {"width_coefficient": 0.5, "in_channels": [32, 16, 24], "out_channels": [16, 24, 40], "kernel_sizes": [3, 3, 5],
                "strides": [1, 2, 2], "num_block_repeats": [1, 2, 2], "expand_ratios": [1, 6, 6], "depth_coefficient": 1.0}
SWIN = {"embed_dim": 16, "depths": [2, 2, 1], "num_heads": [2, 2, 4], "window_size": 4}
SEGFORMER = {"hidden_sizes": [8, 16, 20, 24], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 2, 1, 1], "decoder_hidden_size": 24}
PVT = {"image_size": 64, "hidden_sizes": [8, 16, 20, 24], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 2, 1, 1], "mlp_ratios": [2, 2, 2, 2]}
LEVIT = {"hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4], "depths": [1, 2, 1], "key_dim": [8, 8, 4], "attention_ratio": [2, 2, 2],
         "mlp_ratio": [2, 2, 2], "image_size": 64}
SWIFTFORMER = {"embed_dims": [8, 12, 16, 20], "depths": [1, 2, 1, 3], "mlp_ratio": 2, "use_layer_scale": True}
POOLFORMER = {"hidden_sizes": [8, 16, 20, 24], "depths": [1, 2, 1, 1]}
DETR = {"backbone_config": RESNET | {"model_type": "resnet", "depths": [1, 1]}, "d_model": 32, "num_queries": 7, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40,
        "use_timm_backbone": False}
RT_DETR = {key: value for key, value in detector_numpy.DEFAULTS.items() if key not in ("decoder_in_channels",)} | {
    "backbone_config": detector_numpy.RESNET}
D_FINE = RT_DETR | {"backbone_config": detector_numpy.HGNET}
# model_type, architecture, members of config.json, height and width of the picture
TINY = [
    ("resnet", "ResNetForImageClassification", RESNET, 64, 64),
    ("resnet", "ResNetForImageClassification", RESNET | {"layer_type": "basic", "downsample_in_first_stage": True}, 50, 61),
    ("resnet", "ResNetModel", RESNET | {"downsample_in_bottleneck": True, "hidden_act": "gelu"}, 64, 64),
    ("regnet", "RegNetForImageClassification", REGNET | {"layer_type": "x", "downsample_in_first_stage": False}, 64, 64),
    ("regnet", "RegNetModel", REGNET, 60, 50),
    ("convnext", "ConvNextForImageClassification", CONVNEXT, 64, 64),
    ("convnext", "ConvNextModel", CONVNEXT | {"layer_norm_eps": 1e-3}, 64, 96),
    ("convnextv2", "ConvNextV2ForImageClassification", CONVNEXT, 64, 64),
    ("dinov3_convnext", "DINOv3ConvNextModel", CONVNEXT, 64, 96),
    ("mobilenet_v1", "MobileNetV1ForImageClassification", {"depth_multiplier": 0.25}, 65, 64),
    ("mobilenet_v1", "MobileNetV1Model", {"depth_multiplier": 0.25, "tf_padding": False}, 65, 64),
    ("mobilenet_v2", "MobileNetV2ForImageClassification", {"depth_multiplier": 0.35, "output_stride": 8, "first_layer_is_expansion": False}, 65, 64),
    ("mobilenet_v2", "MobileNetV2Model", {"depth_multiplier": 0.35, "tf_padding": False, "finegrained_output": False}, 64, 64),
    ("mobilenet_v2", "MobileNetV2ForSemanticSegmentation", {"depth_multiplier": 0.35, "output_stride": 8}, 65, 64),
    ("efficientnet", "EfficientNetForImageClassification", EFFICIENTNET | {"depthwise_padding": [3]}, 65, 65),
    ("efficientnet", "EfficientNetModel", EFFICIENTNET | {"pooling_type": "max", "depth_coefficient": 1.2}, 64, 64),
    ("mobilevit", "MobileViTForImageClassification", MOBILEVIT | {"output_stride": 16, "qkv_bias": False}, 72, 72),
    ("mobilevit", "MobileViTModel", MOBILEVIT, 96, 64),
    ("mobilevit", "MobileViTForSemanticSegmentation", MOBILEVIT | {"output_stride": 8, "aspp_out_channels": 16, "atrous_rates": [1, 2, 3]}, 64, 64),
    ("mobilevitv2", "MobileViTV2ForImageClassification", MOBILEVIT2, 64, 128),
    ("mobilevitv2", "MobileViTV2Model", MOBILEVIT2 | {"output_stride": 16, "ffn_multiplier": 1.5, "expand_ratio": 1.5}, 64, 64),
    ("mobilevitv2", "MobileViTV2ForSemanticSegmentation", MOBILEVIT2 | {"output_stride": 8, "aspp_out_channels": 16, "atrous_rates": [1, 2, 3]}, 64, 64),
    ("swin", "SwinForImageClassification", SWIN, 64, 64),
    ("swin", "SwinModel", SWIN, 72, 88),
    ("swin", "SwinForImageClassification", SWIN | {"layer_norm_eps": 1e-2}, 64, 64),
    ("swinv2", "Swinv2Model", SWIN | {"image_size": 64, "layer_norm_eps": 1e-2}, 64, 64),
    ("swinv2", "Swinv2ForImageClassification", SWIN | {"image_size": 64}, 64, 64),
    ("swinv2", "Swinv2Model", SWIN | {"image_size": 72, "window_size": 5, "pretrained_window_sizes": [4, 4, 3]}, 72, 72),
    ("segformer", "SegformerForSemanticSegmentation", SEGFORMER, 64, 64),
    ("segformer", "SegformerForImageClassification", SEGFORMER, 64, 96),
    ("segformer", "SegformerModel", SEGFORMER, 64, 64),
    ("pvt", "PvtForImageClassification", PVT | {"layer_norm_eps": 1e-6}, 64, 64),
    ("pvt", "PvtModel", PVT, 64, 64),
    ("pvt_v2", "PvtV2ForImageClassification", PVT, 64, 96),
    ("pvt_v2", "PvtV2Model", PVT | {"qkv_bias": False}, 64, 64),
    ("levit", "LevitForImageClassification", LEVIT, 64, 64),
    ("levit", "LevitForImageClassificationWithTeacher", LEVIT | {"attention_ratio": [2, 1, 2], "mlp_ratio": [2, 3, 2]}, 64, 64),
    ("levit", "LevitModel", LEVIT, 96, 96),
    ("swiftformer", "SwiftFormerForImageClassification", SWIFTFORMER, 64, 96),
    ("swiftformer", "SwiftFormerModel", SWIFTFORMER | {"use_layer_scale": False, "mlp_ratio": 2.5}, 64, 64),
    ("poolformer", "PoolFormerForImageClassification", POOLFORMER, 64, 96),
    ("poolformer", "PoolFormerModel", POOLFORMER | {"use_layer_scale": False, "pool_size": 5}, 64, 64),
    ("detr", "DetrForObjectDetection", DETR, 64, 80),
    ("detr", "DetrModel", DETR, 64, 64),
    ("detr", "DetrForObjectDetection", DETR | {"auxiliary_loss": True}, 64, 64),
    ("rt_detr", "RTDetrForObjectDetection", RT_DETR, 128, 160),
    ("rt_detr", "RTDetrForObjectDetection", RT_DETR | {"transformers_version": "5.3.0"}, 128, 160),
    ("rt_detr", "RTDetrForObjectDetection", RT_DETR | {"hidden_expansion": 0.5, "encode_proj_layers": [1, 2], "encoder_layers": 2}, 96, 128),
    ("rt_detr_v2", "RTDetrV2ForObjectDetection", RT_DETR | {"decoder_offset_scale": 0.25, "decoder_n_points": 2}, 128, 128),
    ("d_fine", "DFineForObjectDetection", D_FINE, 128, 160),
    ("d_fine", "DFineForObjectDetection", D_FINE | {
        "decoder_n_points": [3, 6, 3], "hidden_expansion": 0.5, "depth_mult": 0.34, "decoder_in_channels": [32, 32, 32], "reg_scale": 8.0,
        "lqe_layers": 3, "max_num_bins": 16, "backbone_config": detector_numpy.HGNET | {"use_learnable_affine_block": True}}, 128, 128),
    ("hgnet_v2", "HGNetV2ForImageClassification", detector_numpy.HGNET, 64, 64),
    ("hgnet_v2", "HGNetV2Model", detector_numpy.HGNET | {"use_learnable_affine_block": True, "stage_kernel_size": [5, 3, 3, 3]}, 70, 66),
]
picture_numpy.READINGS.update(detector_numpy.READINGS)
LABELS = {str(i): f"LABEL_{i}" for i in range(5)}
# Names of timm in the place of transformers'.
TIMM_RESNET = [(r"embedder\.embedder\.convolution", "conv1"), (r"embedder\.embedder\.normalization", "bn1"),
               (r"encoder\.stages\.(\d+)\.layers\.(\d+)\.layer\.(\d+)\.", lambda m: f"layer{int(m[1]) + 1}.{m[2]}.{int(m[3]) + 1}."),
               (r"encoder\.stages\.(\d+)\.layers\.(\d+)\.shortcut\.", lambda m: f"layer{int(m[1]) + 1}.{m[2]}.downsample."),
               (r"(layer\d+\.\d+)\.(\d+)\.convolution", r"\1.conv\2"), (r"(layer\d+\.\d+)\.(\d+)\.normalization", r"\1.bn\2"),
               (r"downsample\.convolution", "downsample.0"), (r"downsample\.normalization", "downsample.1"), (r"classifier\.1", "fc")]
TIMM_CONVNEXT = [(r"embeddings\.patch_embeddings", "stem.0"), (r"embeddings\.layernorm", "stem.1"), (r"^layernorm", "head.norm"),
                 (r"encoder\.stages\.(\d+)\.layers", r"stages.\1.blocks"), (r"encoder\.stages", "stages"),
                 ("downsampling_layer", "downsample"), ("dwconv", "conv_dw"), ("layernorm", "norm"), ("pwconv1", "mlp.fc1"),
                 ("pwconv2", "mlp.fc2"), ("layer_scale_parameter", "gamma"), ("grn", "mlp.grn"), ("classifier", "head.fc")]
RELU = "relu"
MOBILENET_V3_SMALL = picture_numpy.timm_mobile(
    [[("ds", 1, 3, 2, 1, 16, .25, RELU)], [("ir", 1, 3, 2, 4.5, 24, 0, RELU), ("ir", 1, 3, 1, 3.67, 24, 0, RELU)],
     [("ir", 1, 5, 2, 4, 40, .25, None), ("ir", 2, 5, 1, 6, 40, .25, None)], [("ir", 2, 5, 1, 3, 48, .25, None)],
     [("ir", 3, 5, 2, 6, 96, .25, None)], [("cn", 1, 1, 1, 1, 576, 0, None)]],
    16, 288, 1024, 0.5, "hardswish", False, "hardsigmoid", RELU)
EFFICIENTNET_V2_B0 = picture_numpy.timm_mobile(
    [[("cn", 1, 3, 1, 1, 16, 0, None)], [("er", 2, 3, 2, 4, 32, 0, None)], [("er", 2, 3, 2, 4, 48, 0, None)],
     [("ir", 3, 3, 2, 4, 96, .25, None)], [("ir", 5, 3, 1, 6, 112, .25, None)], [("ir", 8, 3, 2, 6, 192, .25, None)]],
    32, 192, 1280, tf=True)
MOBILENET_V2 = picture_numpy.timm_mobile(
    [[("ds", 1, 3, 1, 1, 16, 0, None)], [("ir", 2, 3, 2, 6, 24, 0, None)], [("ir", 3, 3, 2, 6, 32, 0, None)],
     [("ir", 4, 3, 2, 6, 64, 0, None)], [("ir", 3, 3, 1, 6, 96, 0, None)], [("ir", 3, 3, 2, 6, 160, 0, None)],
     [("ir", 1, 3, 1, 6, 320, 0, None)]], 16, 112, 1280, 0.35, "relu6")


def write(model, config, tensors):
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config))
    (model / "model.safetensors").write_bytes(safetensors.of(tensors))
    return model


def shape_of(picture):
    return ("--shape", "pixel_values=" + ",".join(map(str, picture.shape)))


def outputs(what, folder, picture, *options):
    """Returns mlc's outputs for a picture [1, 3, H, W]."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "pixels.npy", picture.astype("f4"))
    expect(run("run", what, "--input", f"pixel_values={folder / 'pixels.npy'}", "--output-dir", folder / "out", *options), 0)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def error(found, wanted):
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    return float(np.sqrt(np.mean((found - wanted.astype("f8")) ** 2) / np.mean(wanted.astype("f8") ** 2)))


def compare(label, found, wanted, limit):
    assert found.keys() == wanted.keys(), (label, found.keys(), wanted.keys())
    worst = max(error(found[key], value) for key, value in wanted.items())
    assert worst <= limit, (label, worst)
    return worst


def test_corpus(folder):
    """Compares results in exact arithmetic, and of the package in fp16."""
    if not (CORPUS / "folders").exists():
        print("# networks for pictures of transformers: skipped, there is no corpus")
        return
    exact, halved = 0, 0
    for name in FOLDERS:
        model, package = CORPUS / name, folder / f"{pathlib.Path(name).name}.mlpackage"
        oracle = np.load(model / "oracle.npz")
        picture = oracle["in_pixel_values"]
        wanted = {key[4:]: oracle[key] for key in oracle.files if key.startswith("out_")}
        if "logits" in wanted and "pred_boxes" not in wanted:
            wanted = {"logits": wanted["logits"]}  # a classifier has no other outputs
        size = (*shape_of(picture), "--io", "tensor")
        exact = max(exact, compare(name, outputs(model, folder / f"{package.stem}-exact", picture, *size, "--arithmetic", "exact"), wanted, EXACT))
        expect(run("compile", model, "-o", package, "--verify-each", *size), 0)
        halved = max(halved, compare(name, outputs(package, folder / f"{package.stem}-half", picture), wanted, PACKAGE))
    print(f"# networks for pictures: {len(FOLDERS)} folders within {exact:.1e} of transformers, their packages within {halved:.1e}")


def test_numpy(folder):
    worst, rng = 0, np.random.default_rng(1)
    for number, (kind, architecture, changes, height, width) in enumerate(TINY):
        config = {"model_type": kind, "architectures": [architecture], "id2label": LABELS} | changes
        picture = rng.normal(size=(1, 3, height, width)).astype("f4")
        tensors, wanted = picture_numpy.made(config, picture[0].astype("f8"), number)
        model = write(folder / f"{number}", config, tensors)
        found = outputs(model, folder / f"{number}-out", picture, *shape_of(picture), "--arithmetic", "exact")
        worst = max(worst, compare((number, kind, architecture), found, wanted, EXACT))
    print(f"# networks for pictures: {len(TINY)} tiny folders within {worst:.1e} of NumPy")


def timm(folder, architecture, tensors, **config):
    return write(folder, {"architecture": architecture, "num_classes": len(LABELS), "global_pool": "avg",
                          "pretrained_cfg": {"input_size": [3, 64, 64]}} | config, tensors)


def renamed(tensors, rules):
    result = {}
    for name, value in tensors.items():
        for pattern, by in rules:
            name = re.sub(pattern, by, name)
        result[name] = value.reshape(-1) if name.endswith(("grn.weight", "grn.bias")) else value
    return result


def test_timm(folder):
    picture = np.random.default_rng(2).normal(size=(1, 3, 64, 64)).astype("f4")

    def check(label, model, wanted):
        found = outputs(model, folder / f"{label}-out", picture, "--arithmetic", "exact")
        return compare(label, found, wanted, EXACT)

    def of_transformers(kind, architecture, rules, members, arguments={}):
        config = {"model_type": kind, "architectures": [architecture], "id2label": LABELS} | members
        tensors, wanted = picture_numpy.made(config, picture[0].astype("f8"))
        tensors = renamed({name.removeprefix(kind + "."): value for name, value in tensors.items()}, rules)
        return tensors, wanted
    tensors, wanted = of_transformers("resnet", "ResNetForImageClassification", TIMM_RESNET, {
        "embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "layer_type": "basic"})
    worst = check("resnet18", timm(folder / "resnet18", "resnet18", tensors), wanted)
    # The name of the weights may follow that of the architecture, and transformers' wrapper has one more module.
    wrapped = {f"timm_model.{name}": value for name, value in tensors.items()}
    worst = max(worst, check("wrapped", timm(folder / "wrapped", "resnet18.a1_in1k", wrapped, model_type="timm_wrapper"), wanted))
    sizes = {"depths": [1, 1, 2, 1], "dims": [16, 24, 32, 40]}
    for kind, name, architecture in (("convnext", "convnext_tiny", "ConvNextForImageClassification"),
                                     ("convnextv2", "convnextv2_atto", "ConvNextV2ForImageClassification")):
        tensors, wanted = of_transformers(kind, architecture, TIMM_CONVNEXT, {
            "depths": sizes["depths"], "hidden_sizes": sizes["dims"], "layer_norm_eps": 1e-6})
        if kind == "convnextv2":  # these have convolutions in the place of linear layers
            tensors = {key: value[..., None, None] if re.search(r"mlp\.fc\d\.weight", key) else value for key, value in tensors.items()}
        worst = max(worst, check(name, timm(folder / name, name, tensors, model_args=sizes), wanted))
    for name, reading in (("mobilenetv3_small_050", MOBILENET_V3_SMALL), ("tf_efficientnetv2_b0", EFFICIENTNET_V2_B0),
                          ("mobilenetv2_035", MOBILENET_V2)):
        net = picture_numpy.Net()
        wanted = reading(net, len(LABELS), picture[0].astype("f8"))
        worst = max(worst, check(name, timm(folder / name, name, net.tensors), wanted))
    print(f"# timm: 7 folders within {worst:.1e} of NumPy")


def test_packages(folder):
    """Packages in fp16 agree with their folders by default, also where padding has no length."""
    picture = np.random.default_rng(3).normal(size=(1, 3, 72, 72)).astype("f4")
    config = {"model_type": "swinv2", "architectures": ["Swinv2Model"], "image_size": 72} | SWIN
    tensors, wanted = picture_numpy.made(config, picture[0].astype("f8"))
    model = write(folder / "swinv2", config, tensors)
    expect(run("compile", model, "-o", folder / "m.mlpackage", "--verify-each"), 0)
    compare("swinv2", outputs(folder / "m.mlpackage", folder / "out", picture), wanted, PACKAGE)
    expect(run("verify", model, folder / "m.mlpackage"), 0, "PASSED")


def test_spellings(folder):
    """Transformers 5 names some tensors of DETR in another way."""
    config = {"model_type": "detr", "architectures": ["DetrForObjectDetection"], "id2label": LABELS} | DETR
    picture = np.random.default_rng(4).normal(size=(1, 3, 64, 64)).astype("f4")
    tensors, wanted = picture_numpy.made(config, picture[0].astype("f8"))
    rules = [(r"backbone\.conv_encoder", "backbone"), ("out_proj", "o_proj"), (r"\.fc(\d)", r".mlp.fc\1")]
    model = write(folder / "detr", config, renamed(tensors, rules))
    compare("detr", outputs(model, folder / "out", picture, *shape_of(picture), "--arithmetic", "exact"), wanted, EXACT)


def test_sizes(folder):
    """The size of a picture is that of the image processor, else of config.json, else of the class; --shape replaces it."""
    config = {"model_type": "convnext", "architectures": ["ConvNextModel"]} | CONVNEXT
    tensors, _ = picture_numpy.made(config, np.zeros((3, 64, 64)))
    model = write(folder / "m", config, tensors)

    def size(*options):
        expect(run("compile", model, "-o", folder / "m.mlpackage", "--force", "--io", "tensor", *options), 0)
        return expect(run("inspect", folder / "m.mlpackage", "--json"), 0).answer["inputs"][0]["shape"]
    assert size() == [1, 3, 224, 224]
    (model / "config.json").write_text(json.dumps(config | {"image_size": 128}))
    assert size() == [1, 3, 128, 128]
    (model / "config.json").write_text(json.dumps(config | {"image_size": [64, 96]}))
    assert size() == [1, 3, 64, 96]
    (model / "preprocessor_config.json").write_text('{"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 96}}')
    assert size() == [1, 3, 96, 96] and size("--shape", "pixel_values=1,3,64,32") == [1, 3, 64, 32]
    for wrong, text in (("pixels=1,3,64,64", "pixel_values"), ("pixel_values=2,3,64,64", "[1, 3, height, width]"),
                        ("pixel_values=1,3,64", "[1, 3, height, width]"), ("pixel_values=1,3,64,100000", "16384")):
        result = run("compile", model, "-o", folder / "no.mlpackage", "--shape", wrong)
        assert result.code == 1 and text in result.stderr, (wrong, result)
    expect(run("compile", model, "-o", folder / "one.mlpackage", "--outputs", "pooler_output"), 0)
    answer = expect(run("inspect", folder / "one.mlpackage", "--json"), 0).answer
    assert [port["name"] for port in answer["outputs"]] == ["pooler_output"], answer["outputs"]


def test_images(folder):
    """Folders of timm scale pixels inside the package, and name classes."""
    net, picture = picture_numpy.Net(), np.random.default_rng(5).integers(0, 256, (1, 3, 64, 64))
    mean, std = np.array([.485, .456, .406])[:, None, None], np.array([.229, .224, .225])[:, None, None]
    wanted = MOBILENET_V2(net, len(LABELS), (picture[0] / 255 - mean) / std)["logits"]
    described = {"input_size": [3, 64, 64], "mean": [.485, .456, .406], "std": [.229, .224, .225], "crop_pct": 0.875, "interpolation": "bicubic"}
    model = timm(folder / "m", "mobilenetv2_035", net.tensors, pretrained_cfg=described, label_names=list("abcde"))
    found = outputs(model, folder / "out", picture, "--arithmetic", "exact")
    assert error(found["logits"], wanted) <= EXACT, (found["logits"], wanted)
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0)
    shown = expect(run("inspect", folder / "m.mlpackage"), 0).stdout
    assert "73 pixels (bicubic)" in shown and "image" in shown, shown


def test_refused(folder):
    """What is unsupported, damaged or hostile is refused at once, with the key or the tensor."""
    number = 0

    def check(kind, architecture, members, changes, text, drop=None, add={}):
        nonlocal number
        number += 1
        config = {"model_type": kind, "architectures": [architecture], "id2label": LABELS} | members
        tensors, _ = picture_numpy.made(config, np.zeros((3, 64, 64)))
        tensors = {name: value for name, value in tensors.items() if not drop or not re.search(drop, name)} | add
        model = write(folder / f"{number}", config | changes, tensors)
        result = run("compile", model, "-o", folder / "no.mlpackage", "--shape", "pixel_values=1,3,64,64")
        assert result.code not in (0, None) and result.code > 0, (changes, result)
        assert text in result.stderr, (changes, text, result.stderr)
    for changes, text in (
            ({"layer_type": "z"}, "layer_type"), ({"layer_type": 3}, "layer_type"), ({"depths": "many"}, "depths"),
            ({"depths": [1]}, "depths"), ({"depths": [0, 1]}, "depths"), ({"depths": [10**9, 10**9]}, "missing"),
            ({"hidden_sizes": [-16, 32]}, "widths"), ({"hidden_sizes": [16, 10**12]}, "integers of 32 bits"), ({"embedding_size": 0}, "stem"),
            ({"hidden_act": "step"}, "step"), ({"num_channels": 0}, "[1, 0, height, width]"), ({"num_channels": 10**9}, "[1, 1000000000, height, width]"),
            ({"architectures": ["ResNetForMaskedLM"]}, "architectures"), ({"id2label": 5}, "id2label")):
        check("resnet", "ResNetForImageClassification", RESNET, changes, text)
    check("resnet", "ResNetForImageClassification", RESNET, {}, "classifier.1.weight", drop="classifier.1.weight")
    check("resnet", "ResNetForImageClassification", RESNET, {}, "resnet.more", add={"resnet.more": np.zeros(3, "f4")})
    for changes, text in (({"use_absolute_embeddings": True}, "use_absolute_embeddings"), ({"window_size": 0}, "window"),
                          ({"window_size": 10**6}, "window"), ({"num_heads": [3, 3, 3]}, "heads"), ({"patch_size": 0}, "patch"),
                          ({"depths": [1] * 40, "num_heads": [1] * 40}, "16 stages"), ({"mlp_ratio": -1}, "ratio")):
        check("swin", "SwinForImageClassification", SWIN, changes, text)
    for changes, text in (({"position_embedding_type": "learned"}, "position_embedding_type"), ({"num_queries": 0}, "queries"),
                          ({"num_queries": 10**9}, "queries"), ({"backbone_config": 7}, "backbone"), ({"dilation": True}, "dilation"),
                          ({"backbone_config": {"model_type": "swin"}}, "model_type"), ({"d_model": 30}, "multiple of 4")):
        check("detr", "DetrForObjectDetection", DETR, changes, text)
    for changes, text in (({"num_encoder_blocks": 9}, "num_encoder_blocks"), ({"sr_ratios": [1]}, "reductions"),
                          ({"mlp_ratios": [1e9] * 4}, "ratio"), ({"reshape_last_stage": False}, "reshape_last_stage")):
        check("segformer", "SegformerModel", SEGFORMER, changes, text)
    for changes, text in (({"depth_coefficient": 1e9}, "depth_coefficient"), ({"pooling_type": "sum"}, "pooling_type"),
                          ({"width_coefficient": 1e30}, "multiple"), ({"depth_divisor": 0}, "multiple")):
        check("efficientnet", "EfficientNetForImageClassification", EFFICIENTNET, changes, text)
    for config, text in (({"architecture": "resnet19"}, "resnet18"), ({"architecture": "resnet18", "global_pool": "max"}, "global_pool"),
                         ({"architecture": "resnet18", "num_classes": -1}, "num_classes"),
                         ({"architecture": "mobilenetv2_100", "model_args": {"channel_multiplier": 1e9}}, "multipliers"),
                         ({"architecture": "convnext_tiny", "model_args": {"stem_type": "none"}}, "stem_type"),
                         ({"architecture": "resnet18", "pretrained_cfg": {"input_size": [3]}}, "input_size")):
        number += 1
        model = write(folder / f"{number}", config, {"a": np.zeros(1, "f4")})
        expect(run("compile", model, "-o", folder / "no.mlpackage"), 1, text)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "networks for pictures"))
