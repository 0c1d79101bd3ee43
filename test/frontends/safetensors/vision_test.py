#!/usr/bin/env python3
"""Tests Hugging Face folders of vision transformers against the results of transformers (oracle.npz of the corpus), and
against an implementation in NumPy (vision_numpy.py) with other rows, heads and sizes of pictures; image inputs, class labels
and `run --picture`."""
import json
import pathlib
import shutil
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import safetensors_file as safetensors
import vision_numpy
from driver import CORPUS, expect, run, run_tests

FOLDERS = ["huggingface/hf_vit_cls", "huggingface/hf_dinov2", "huggingface/hf_clip", "huggingface/hf_yolos", "huggingface/hf_dpt",
           "folders/hf_clip_gelu", "folders/hf_siglip", "folders/hf_siglip2", "folders/hf_dinov3_vit", "folders/hf_depth_anything"]
EXACT, PACKAGE = 1e-5, 1e-2  # relative root mean square errors
LOGIT = 1e-4  # of a single cosine times a large number, which may be close to 0

SEGMENTS = {"out_indices": [1, 2, 3, 4], "num_hidden_layers": 4, "pool_scales": [1, 2], "num_labels": vision_numpy.LABELS}
# model_type, architecture, changes of config.json, and the size of pictures if it is not that of config.json.
TINY = [
    ("vit", "ViTModel", {}), ("vit", "ViTModel", {"qkv_bias": False}, (24, 40)), ("vit", "ViTForImageClassification", {}),
    ("vit", "ViTModel", {"pooler_act": "relu", "pooler_output_size": 24}),
    ("vit_msn", "ViTMSNModel", {}), ("vit_msn", "ViTMSNForImageClassification", {"qkv_bias": False}, (24, 40)), ("vit_mae", "ViTMAEModel", {}),
    ("ijepa", "IJepaModel", {}, (40, 24)), ("ijepa", "IJepaForImageClassification", {}),
    ("deit", "DeiTModel", {}), ("deit", "DeiTForImageClassification", {}), ("deit", "DeiTForImageClassificationWithTeacher", {}, (40, 32)),
    ("beit", "BeitForImageClassification", {}), ("beit", "BeitForImageClassification", {}, (24, 40)),
    ("beit", "BeitModel", {"use_mean_pooling": False, "use_absolute_position_embeddings": True}),
    ("beit", "BeitModel", {"use_relative_position_bias": False, "use_shared_relative_position_bias": True}),
    ("data2vec-vision", "Data2VecVisionModel", {}),
    ("beit", "BeitForSemanticSegmentation", SEGMENTS), ("beit", "BeitForSemanticSegmentation", SEGMENTS | {"pool_scales": [1, 3]}, (40, 48)),
    ("data2vec-vision", "Data2VecVisionForSemanticSegmentation", SEGMENTS | {"use_absolute_position_embeddings": True}),
    ("dinov2", "Dinov2Model", {"use_swiglu_ffn": True}, (56, 40)), ("dinov2", "Dinov2ForImageClassification", {}),
    ("dinov2_with_registers", "Dinov2WithRegistersModel", {}), ("dinov2_with_registers", "Dinov2WithRegistersModel", {}, (16, 48)),
    ("dinov2_with_registers", "Dinov2WithRegistersForImageClassification", {}),
    ("dinov3_vit", "DINOv3ViTModel", {"use_gated_mlp": True, "hidden_act": "silu"}, (24, 40)),
    ("dinov3_vit", "DINOv3ViTModel", {"key_bias": True, "num_register_tokens": 0}),
    ("yolos", "YolosForObjectDetection", {}), ("yolos", "YolosForObjectDetection", {}, (48, 32)),
    ("yolos", "YolosModel", {"use_mid_position_embeddings": False}),
    ("clip", "CLIPModel", {}), ("clip", "CLIPModel", {"text": {"eos_token_id": 2}}, (40, 24)), ("clip", "CLIPForImageClassification", {}),
    ("clip_vision_model", "CLIPVisionModel", {}), ("clip_vision_model", "CLIPVisionModelWithProjection", {}),
    ("clip_text_model", "CLIPTextModel", {}), ("clip_text_model", "CLIPTextModelWithProjection", {}),
    ("siglip", "SiglipModel", {}, (24, 40)), ("siglip", "SiglipForImageClassification", {"vision_use_head": False}),
    ("siglip_vision_model", "SiglipVisionModel", {}), ("siglip_vision_model", "SiglipVisionModel", {"vision_use_head": False}),
    ("siglip_text_model", "SiglipTextModel", {}), ("siglip2", "Siglip2Model", {}, (24, 48)),
    ("siglip2_vision_model", "Siglip2VisionModel", {}, (16, 16)), ("blip_vision_model", "BlipVisionModel", {}),
    ("blip_vision_model", "BlipVisionModel", {}, (40, 24)),
    ("dpt", "DPTForDepthEstimation", {}), ("dpt", "DPTForDepthEstimation", {"readout_type": "add", "add_projection": True}, (40, 56)),
    ("dpt", "DPTForDepthEstimation", {"readout_type": "ignore", "head_in_index": -1}),
    ("dpt", "DPTForDepthEstimation", {"use_batch_norm_in_fusion_residual": True, "use_bias_in_fusion_residual": True}),
    ("dpt", "DPTForDepthEstimation", {"backbone_config": {"model_type": "beit", "reshape_hidden_states": False}}),
    ("dpt", "DPTForDepthEstimation", {"backbone_config": {"model_type": "dinov2"}, "readout_type": "ignore"}),
    ("dpt", "DPTForSemanticSegmentation", {"use_batch_norm_in_fusion_residual": True}),
    ("dpt", "DPTForSemanticSegmentation", {"readout_type": "add"}, (40, 56)),
    ("depth_anything", "DepthAnythingForDepthEstimation", {}),
    ("depth_anything", "DepthAnythingForDepthEstimation", {"depth_estimation_type": "metric", "max_depth": 20}, (40, 56)),
]


def outputs(model, folder, inputs, *options):
    folder.mkdir(exist_ok=True)
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    shutil.rmtree(folder / "out", ignore_errors=True)
    expect(run("run", model, *arguments, "--output-dir", folder / "out", *options), 0)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def error(value, reference):
    assert value.shape == reference.shape, (value.shape, reference.shape)
    return float(np.sqrt(np.mean((value - reference.astype("f8")) ** 2) / np.mean(reference.astype("f8") ** 2)))


def pixels_of(oracle, side):
    """Patches [1, N, side * side * 3] (siglip2) as a picture [1, 3, height, width] of what spatial_shapes says."""
    pixels = oracle["in_pixel_values"]
    if pixels.ndim == 4:
        return pixels
    height, width = oracle["in_spatial_shapes"][0]
    patches = pixels[0, :height * width].reshape(height, width, side, side, 3)
    return patches.transpose(4, 0, 2, 1, 3).reshape(1, 3, height * side, width * side)


def given(oracle):
    inputs = {"pixel_values": pixels_of(oracle, 8)}
    if "in_input_ids" in oracle.files:
        inputs["input_ids"] = oracle["in_input_ids"].astype("i4")
    return inputs


def test_corpus(folder):
    if not (CORPUS / "folders").exists():
        print("# vision transformers of transformers: skipped, there is no corpus")
        return
    worst, worst_package = 0, 0
    for number, name in enumerate(FOLDERS):
        model, package = CORPUS / name, folder / f"{number}.mlpackage"
        oracle = np.load(model / "oracle.npz")
        inputs = given(oracle)
        shape = "pixel_values=" + ",".join(map(str, inputs["pixel_values"].shape))
        wanted = {key[4:]: oracle[key] for key in oracle.files if key.startswith("out_")}
        options = ["--io", "tensor", "--shape", shape, "--outputs", ",".join(wanted)]
        found = outputs(model, folder / "run", inputs, "--arithmetic", "exact", *options)
        assert found.keys() == wanted.keys(), (name, found.keys(), wanted.keys())
        off = {key: error(found[key], value) for key, value in wanted.items()}
        assert max(off.values()) <= EXACT, (name, off)
        worst = max(worst, *off.values())
        # The logits of these pairs are close to 0, sums of products that cancel, so fp16 shows more in them.
        steady = [key for key in wanted if not key.startswith("logits_per")]
        options[-1] = ",".join(steady)
        expect(run("compile", model, "-o", package, *options, "--verify-each", "--no-measure"), 0)
        expect(run("verify", model, package), 0, "PASSED")
        found = outputs(package, folder / "run", inputs)
        worst_package = max(worst_package, *(error(found[key], wanted[key]) for key in steady))
    assert worst_package <= PACKAGE, worst_package
    print(f"# vision transformers: {len(FOLDERS)} folders within {worst:.1e} of transformers, their packages within {worst_package:.1e}")


def test_corpus_others(folder):
    """SigLIP 2 with another grid, whose masked patches are left out, and the tower of BLIP alone."""
    if not (CORPUS / "folders").exists():
        return
    model = CORPUS / "folders" / "hf_siglip2"
    oracle = np.load(model / "oracle_wide.npz")
    found = outputs(model, folder / "wide", given(oracle), "--arithmetic", "exact", "--io", "tensor", "--shape",
                    "pixel_values=1,3,24,32", "--outputs", "logits_per_image,image_embeds,text_embeds,vision_last_hidden_state")
    for key, value in found.items():
        wanted = oracle["out_" + key]
        assert error(value, wanted[:, :12] if key == "vision_last_hidden_state" else wanted) <= EXACT, key
    blip = CORPUS / "folders" / "hf_blip"
    oracle, config = np.load(blip / "oracle.npz"), json.loads((blip / "config.json").read_text())["vision_config"]
    tensors = {name: value for name, value in safetensors.read(blip / "model.safetensors").items() if name.startswith("vision_model.")}
    model = write_folder(folder / "blip", config | {"architectures": ["BlipVisionModel"]}, tensors)
    found = outputs(model, folder / "run", {"pixel_values": oracle["in_pixel_values"]}, "--arithmetic", "exact")
    assert error(found["last_hidden_state"], oracle["out_last_hidden_state"]) <= EXACT


def test_images(folder):
    """The image input takes pixels of the final size, and gives what the array of the processor gives."""
    if not (CORPUS / "folders").exists():
        return
    for number, name in enumerate(["hf_clip_gelu", "hf_siglip", "hf_dinov3_vit", "hf_depth_anything"]):
        model = CORPUS / "folders" / name
        oracle = np.load(model / "oracle.npz")
        final = next(np.load(model / file) for file in ("image_final.npy", "image.npy") if (model / file).exists())
        inputs = given(oracle) | {"pixel_values": final}
        shape = ["--shape", f"pixel_values=1,3,{final.shape[0]},{final.shape[1]}"]
        found = outputs(model, folder / "run", inputs, "--arithmetic", "exact", *shape)
        for key, value in found.items():
            if "out_" + key in oracle.files:
                assert error(value, oracle["out_" + key]) <= EXACT, (name, key)
        package = folder / f"{number}.mlpackage"
        steady = ",".join(key for key in found if not key.startswith("logits_per"))
        expect(run("compile", model, "-o", package, *shape, "--outputs", steady, "--no-measure"), 0)
        expect(run("inspect", package), 0, "rgb image", "ixels")
        expect(run("verify", model, package), 0, "PASSED")
        assert any("mlc.picture.pixel_values" == key for key in expect(run("inspect", package, "--json"), 0).answer["metadata"])
        if number == 0:
            np.save(folder / "half.npy", oracle["in_pixel_values"])
            expect(run("run", model, "--input", f"pixel_values={folder / 'half.npy'}"), 1, "bad-input", "--io tensor")


def write_folder(model, config, tensors, **files):
    model.mkdir(parents=True)
    for name, value in {"config": config, **files}.items():
        (model / f"{name}.json").write_text(json.dumps(value))
    (model / "model.safetensors").write_bytes(safetensors.of(tensors))
    return model


def test_numpy(folder):
    rng, worst = np.random.default_rng(1), 0
    for number, (kind, architecture, changes, *size) in enumerate(TINY):
        config, tensors = vision_numpy.tiny(kind, architecture, number, **changes)
        model = write_folder(folder / f"{number}", config, tensors)
        inputs, options = {}, []
        if "Text" not in architecture:
            own = config.get("vision_config", config.get("backbone_config", config)).get("image_size", 32)
            height, width = size[0] if size else own if isinstance(own, list) else (own, own)
            inputs["pixel_values"] = rng.standard_normal((1, 3, height, width)).astype("f4")
            options = ["--shape", f"pixel_values=1,3,{height},{width}"] if size else []
        if "Text" in architecture or "text_config" in config and "Classification" not in architecture:
            ids = rng.permutation(61)[None, :12]
            if number % 2 == 0:
                ids[0, 7] = 40
            inputs["input_ids"] = ids.astype("i4")
        wanted = vision_numpy.outputs(config, tensors, inputs.get("pixel_values"), inputs.get("input_ids", [None])[0])
        found = outputs(model, folder / "run", inputs, "--arithmetic", "exact", *options)
        assert found.keys() == wanted.keys(), (kind, architecture, found.keys(), wanted.keys())
        off = {key: error(found[key], value) for key, value in wanted.items()}
        assert all(value <= (LOGIT if key.startswith("logits_per") else EXACT) for key, value in off.items()), (kind, architecture, off)
        worst = max(worst, *off.values())
    print(f"# vision transformers: {len(TINY)} tiny folders within {worst:.1e} of NumPy")


def test_defaults(folder):
    """Nested configurations leave out what is at the default of their own class; old files of CLIP repeat them under
    another name, which wins."""
    config, tensors = vision_numpy.tiny("clip", "CLIPModel")
    for part in "vision_config", "text_config":
        for key in "layer_norm_eps", "hidden_act":
            del config[part][key]
    model = write_folder(folder / "defaults", config, tensors)
    full, _ = vision_numpy.tiny("clip", "CLIPModel")
    rng = np.random.default_rng(2)
    inputs = {"pixel_values": rng.standard_normal((1, 3, 32, 32)).astype("f4"), "input_ids": rng.integers(0, 61, (1, 9)).astype("i4")}
    wanted = vision_numpy.outputs(full, tensors, inputs["pixel_values"], inputs["input_ids"][0])
    old = write_folder(folder / "old", full | {"vision_config_dict": config["vision_config"], "vision_config": {"num_hidden_layers": 40}},
                       tensors)
    for folder_ in model, old:
        found = outputs(folder_, folder / "run", inputs, "--arithmetic", "exact")
        assert all(error(found[key], value) <= (LOGIT if key.startswith("logits_per") else EXACT) for key, value in wanted.items())
    only = outputs(model, folder / "run", {"pixel_values": inputs["pixel_values"]}, "--arithmetic", "exact", "--outputs", "image_embeds")
    assert only.keys() == {"image_embeds"} and error(only["image_embeds"], wanted["image_embeds"]) <= EXACT
    expect(run("run", model, "--outputs", "image_embed"), 1, "bad-name", 'image_embeds')


PROCESSOR = {"image_processor_type": "ViTImageProcessor", "image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.25, 0.2],
             "size": {"height": 32, "width": 32}, "resample": 3}


def test_processors(folder):
    """Scale, bias, layout, sizes and sentences of image processors."""
    rng = np.random.default_rng(3)
    picture = rng.integers(0, 256, (32, 32, 3)).astype("u1")
    rows = [
        (PROCESSOR, [0.5, 0.4, 0.3], [0.5, 0.25, 0.2], False, ["32 x 32", "bicubic"]),
        ({"feature_extractor_type": "ViTFeatureExtractor", "size": 32}, [0.5] * 3, [0.5] * 3, False, ["bilinear"]),
        ({"image_processor_type": "MobileViTImageProcessor", "size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}},
         [0] * 3, [1] * 3, True, ["shorter side has 36", "centre of 32 x 32"]),
        ({"image_processor_type": "RTDetrImageProcessor", "size": {"height": 32, "width": 32}}, [0] * 3, [1] * 3, False, ["32 x 32"]),
        ({"image_processor_type": "CLIPImageProcessorFast", "size": 32, "crop_size": 32}, [0.48145466, 0.4578275, 0.40821073],
         [0.26862954, 0.26130258, 0.27577711], False, ["shorter side has 32", "bicubic"]),
        ({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 32}}, [0.5] * 3, [0.5] * 3, False,
         ["shorter side has 36", "centre of 32 x 32"]),
        ({"image_processor_type": "DPTImageProcessor", "size": {"height": 32, "width": 32}, "keep_aspect_ratio": True,
          "ensure_multiple_of": 8, "do_rescale": False, "do_normalize": False}, [0] * 3, [1 / 255] * 3, False, ["multiples of 8"]),
    ]
    config, tensors = vision_numpy.tiny("vit", "ViTModel")
    for number, (processor, mean, std, bgr, texts) in enumerate(rows):
        model = write_folder(folder / f"{number}", config, tensors, preprocessor_config=processor)
        pixels = ((picture / 255 - mean) / std).transpose(2, 0, 1)[None]
        wanted = vision_numpy.outputs(config, tensors, (pixels[:, ::-1] if bgr else pixels).astype("f4"))
        found = outputs(model, folder / "run", {"pixel_values": picture}, "--arithmetic", "exact")
        assert max(error(found[key], value) for key, value in wanted.items()) <= EXACT, processor
        expect(run("inspect", "--ops", model), 0, "bgr image" if bgr else "rgb image", *texts)
    expect(run("inspect", "--ops", model, "--io", "tensor"), 0)
    assert " image" not in run("inspect", "--ops", model, "--io", "tensor").stdout.replace("image_", "")
    # The size of pictures is that of the processor; --shape and --image win.
    model = write_folder(folder / "size", config, tensors, preprocessor_config=PROCESSOR | {"size": {"height": 24, "width": 40}})
    expect(run("inspect", "--ops", model), 0, "[1, 3, 24, 40]")
    expect(run("inspect", "--ops", model, "--shape", "pixel_values=1,3,16,16", "--image", "pixel_values=bgr,1,0"), 0, "[1, 3, 16, 16]",
           "bgr image", "takes pictures of 16 x 16 pixels")
    bad = [({"size": {"height": -4, "width": 32}}, "size.height"), ({"image_std": [0, 1, 1]}, "image_std"), ({"image_mean": [1, 2]}, "image_mean"),
           ({"resample": 9}, "resample"), ({"size": "big"}, "size"), ({"size": {"height": 2**31 - 1, "width": 1}}, "size.height"),
           ({"image_std": "half"}, "image_std"), ({"do_resize": "yes"}, "do_resize")]
    for number, (changes, key) in enumerate(bad):
        model = write_folder(folder / f"bad{number}", config, tensors, preprocessor_config=PROCESSOR | changes)
        expect(run("inspect", "--ops", model), 1, key, "preprocessor_config.json")


def test_labels(folder):
    config, tensors = vision_numpy.tiny("vit", "ViTForImageClassification")
    labels = ["crane", "dog", "crane", "cat", "tench, Tinca tinca"]
    named = config | {"id2label": {str(i): label for i, label in enumerate(labels)}}
    model = write_folder(folder / "named", named, tensors, preprocessor_config=PROCESSOR)
    package = folder / "m.mlpackage"
    expect(run("compile", model, "-o", package, "--no-measure"), 0)
    found = expect(run("inspect", package, "--json", "--ops"), 0).answer
    assert found["labels"] == ["crane (0)", "dog", "crane (2)", "cat", "tench, Tinca tinca"], found.get("labels")
    expect(run("verify", model, package), 0, "PASSED")
    # --io tensor, and labels that are only numbers, leave the scores.
    expect(run("compile", model, "-o", package, "--force", "--no-measure", "--io", "tensor"), 0)
    assert "labels" not in expect(run("inspect", package, "--json", "--ops"), 0).answer
    expect(run("verify", model, package), 0, "PASSED")
    plain = write_folder(folder / "plain", config | {"id2label": {str(i): f"LABEL_{i}" for i in range(5)}}, tensors)
    expect(run("compile", plain, "-o", package, "--force", "--no-measure"), 0)
    assert "labels" not in expect(run("inspect", package, "--json", "--ops"), 0).answer


def test_picture(folder):
    """--picture names a file for the only image input, of folders and packages."""
    config, tensors = vision_numpy.tiny("vit", "ViTModel")
    model = write_folder(folder / "vit", config, tensors, preprocessor_config=PROCESSOR)
    pixels = np.random.default_rng(4).integers(0, 256, (32, 32, 3)).astype("u1")
    (folder / "p.ppm").write_bytes(b"P6 32 32 255\n" + pixels.tobytes())
    (folder / "wide.ppm").write_bytes(b"P6 40 32 255\n" + bytes(40 * 32 * 3))
    wanted = outputs(model, folder / "run", {"pixel_values": pixels})
    package = folder / "m.mlpackage"
    expect(run("compile", model, "-o", package, "--no-measure"), 0)
    for what, limit in ((model, 0), (package, PACKAGE)):
        expect(run("run", what, "--picture", folder / "p.ppm", "--output-dir", folder / "out"), 0)
        for key, value in wanted.items():
            assert error(np.load(folder / "out" / f"{key}.npy"), value) <= limit, (what, key)
    expect(run("run", model, "--picture", folder / "wide.ppm"), 1, "bad-input", "--fit")
    expect(run("run", model, "--picture", folder / "wide.ppm", "--fit", "crop"), 0)
    expect(run("run", model, "--picture", folder / "p.ppm", "--input", f"pixel_values={folder / 'p.ppm'}"), 2, "given twice")
    expect(run("run", model, "--io", "tensor", "--picture", folder / "p.ppm"), 2, "no image input", "--image")


def test_refusals(folder):
    """Folders that are not supported, or not sound, are refused quickly, with the key."""
    def refused(name, kind, architecture, *texts, without=(), more={}, **config):
        made, tensors = vision_numpy.tiny(kind, architecture)
        tensors = {key: value for key, value in tensors.items() if key not in without} | more
        model = write_folder(folder / name, made | config, tensors)
        expect(run("inspect", "--ops", model), 1, *texts)

    vit = "vit", "ViTModel"
    refused("head", *vit, "unsupported-architecture", "architectures", "ForImageClassification", architectures=["ViTForMaskedImageModeling"])
    refused("segments", "depth_anything", "DepthAnythingForDepthEstimation", "architectures", architectures=["DepthAnythingForSemanticSegmentation"])
    refused("reshaped", "dpt", "DPTForDepthEstimation", "reshape_hidden_states", backbone_config={"model_type": "beit"})
    refused("hybrid", "dpt", "DPTForDepthEstimation", "is_hybrid", is_hybrid=True)
    refused("norms", "dpt", "DPTForDepthEstimation", "residual_layer2.batch_norm1", use_batch_norm_in_fusion_residual=True,
            use_bias_in_fusion_residual=True)
    refused("backbone", "depth_anything", "DepthAnythingForDepthEstimation", "backbone_config.model_type",
            backbone_config={"model_type": "swinv2"})
    refused("kind", "depth_anything", "DepthAnythingForDepthEstimation", "depth_estimation_type", depth_estimation_type="absolute")
    refused("activation", *vit, "hidden_act", hidden_act="mish")
    refused("missing", *vit, "missing-tensor", "encoder.layer.1.output.dense.bias", without=["encoder.layer.1.output.dense.bias"])
    refused("unused", *vit, "unused-tensor", "encoder.other.weight", more={"encoder.other.weight": np.zeros((2, 2), "f4")})
    refused("patches", *vit, "patch", patch_size=0)
    refused("large_patch", *vit, "patch", patch_size=33)
    refused("zero", *vit, "dimensions", hidden_size=0)
    refused("negative", *vit, "layers", num_hidden_layers=-1)
    refused("many", *vit, "layers", num_hidden_layers=2**31 - 1)
    refused("heads", *vit, "heads", num_attention_heads=5)
    refused("huge", *vit, "pixels", image_size=10**9)
    refused("tokens", *vit, "resource-limit", image_size=16384, patch_size=16)
    refused("text", *vit, "image_size", image_size="large")
    refused("list", *vit, "image_size", image_size=[32, 32, 32])
    refused("tower", "clip", "CLIPModel", "vision_config", vision_config=[1])
    refused("square", "siglip2", "Siglip2Model", "num_patches", vision_config={"num_patches": 10})
    refused("levels", "dpt", "DPTForDepthEstimation", "widths", neck_hidden_sizes=[4])
    refused("state", "dpt", "DPTForDepthEstimation", "hidden state", backbone_out_indices=[0, 1, 2, 99])
    refused("factor", "dpt", "DPTForDepthEstimation", "enlarged", reassemble_factors=[4, 2, 1, 1e9])
    config, tensors = vision_numpy.tiny(*vit)
    model = write_folder(folder / "vit", config, tensors)
    expect(run("inspect", "--ops", model, "--shape", "pixel_values=1,4,32,32"), 1, "input-shape", "[1, 3, height, width]")
    expect(run("inspect", "--ops", model, "--shape", "pixels=1,3,32,32"), 1, "bad-name", "pixel_values")
    expect(run("inspect", "--ops", model, "--dim", "tokens=4"), 1, "bad-name", "--shape")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "vision"))
