"""Results of timm itself (pytorch-image-models 1.0.29, torch 1.13) for tensors that are drawn anew from their names, so that a test
needs neither. timm_reference.json has a row for each network: its architecture, the rest of its config.json, the names and shapes of its
tensors, and the outputs.

    timm_reference.py CHECKOUT [ARCHITECTURE]...   computes all rows, or these, again with the timm in that folder"""
import json
import math
import pathlib
import re
import sys
import zlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("timm_reference.json")
ROWS = [  # architecture, model_args, size of pictures; the rest of the arguments of create_model
    ("resnet50s", {}, 64), ("test_resnet", {}, 96), ("resnetblur18", {}, 64), ("resnetaa34d", {}, 64),
    ("convnext_large_mlp", {"depths": [1, 1, 1, 1], "dims": [16, 32, 48, 64], "head_hidden_size": 80}, 64, {"num_classes": 0}),
    ("swin_tiny_patch4_window7_224", {"depths": [2, 2, 2, 2], "embed_dim": 16, "num_heads": [1, 2, 2, 4], "img_size": 160}, 160),
    ("swinv2_tiny_window8_256", {"depths": [2, 2], "embed_dim": 16, "num_heads": [2, 2], "window_size": 4, "img_size": 64}, 64),
    ("deit_tiny_distilled_patch16_224", {"embed_dim": 32, "depth": 2, "num_heads": 4, "img_size": 64}, 64, {"num_classes": 0}),
    ("repvgg_a0", {"width_factor": 0.25}, 64), ("repvgg_d2se", {"width_factor": 0.125}, 64), ("mobileone_s0", {"width_factor": 0.5}, 64),
    ("mobileone_s4", {"width_factor": 0.125}, 64),
    ("ghostnet_050", {}, 64), ("ghostnetv2_100", {}, 96),
    ("efficientformer_l1", {"depths": [1, 1, 1, 3], "embed_dims": [16, 16, 24, 32]}, 224),
    ("efficientformerv2_s0", {"depths": [1, 1, 2, 2], "embed_dims": [16, 16, 24, 32], "mlp_ratios": [2, 2, 2, 2], "img_size": 128}, 128),
    ("levit_128s", {"embed_dim": [32, 48, 64], "depth": [1, 2, 1], "num_heads": [2, 3, 4], "img_size": 112}, 112),
    ("levit_conv_256d", {"embed_dim": [32, 64, 64], "depth": [1, 1, 1], "num_heads": [2, 3, 2], "img_size": 112}, 112),
    ("poolformer_s12", {}, 64), ("poolformerv2_s12", {}, 64), ("caformer_s18", {}, 64),
    ("pvt_v2_b0", {"depths": [1, 1, 1, 1], "embed_dims": [16, 16, 20, 16]}, 64),
    ("pvt_v2_b2_li", {"depths": [1, 1, 1, 1], "embed_dims": [16, 16, 20, 16], "num_heads": [1, 2, 5, 8]}, 224),
    ("mobilevit_xxs", {}, 96), ("mobilevitv2_050", {}, 64), ("mobilenetv4_hybrid_medium", {}, 96),
    ("inception_v3", {}, 96), ("inception_v4", {}, 96), ("legacy_xception", {}, 96),
    ("dla34", {"channels": [8, 8, 16, 16, 32, 32]}, 64), ("dla60_res2next", {"channels": [8, 8, 32, 32, 32, 32]}, 64),
    ("dla102x", {"channels": [8, 8, 64, 64, 64, 64]}, 64), ("hrnet_w18_small", {}, 64),
    ("ese_vovnet19b_dw", {}, 64), ("vovnet39a", {}, 64),
    ("test_byobnet", {}, 96), ("regnetz_d8", {"width_factor": 0.25}, 64), ("resnet51q", {"width_factor": 0.5}, 64),
    ("eca_resnext26ts", {}, 64), ("gernet_s", {"width_factor": 0.5}, 64),
    ("test_nfnet", {}, 96), ("dm_nfnet_f0", {"width_factor": 0.125, "group_size": 8}, 64), ("nf_resnet26", {"width_factor": 0.25}, 64),
    ("eca_nfnet_l0", {"width_factor": 0.25, "group_size": 8}, 64),
    ("efficientvit_b0", {"widths": [8, 8, 16, 32, 32], "head_widths": [32, 48]}, 64),
    ("efficientvit_l1", {"widths": [8, 8, 16, 32, 32], "head_widths": [32, 48], "depths": [1, 1, 1, 1, 1], "head_dim": 16}, 64),
    ("tiny_vit_5m_224", {"embed_dims": [16, 16, 32, 40], "depths": [1, 1, 2, 1], "num_heads": [1, 1, 2, 5], "window_sizes": [7, 7, 4, 2]}, 80),
    ("hgnetv2_b0", {}, 64), ("hgnetv2_b4", {}, 64), ("test_convnext3", {}, 64),
    ("test_vit3", {}, 160), ("test_vit4", {}, 160), ("tinynet_e", {}, 64), ("efficientnet_es", {}, 64), ("spnasnet_100", {}, 64),
    ("mobilenetv3_rw", {}, 64), ("fbnetc_100", {"bn_eps": 0.001}, 64), ("resnetv2_18d", {}, 64), ("resnetv2_50", {"width_factor": 0.25}, 64),
    ("resnetv2_50d_gn", {}, 64),
    ("test_mambaout", {}, 96), ("mambaout_femto", {"dims": [16, 24, 32, 48], "depths": [1, 1, 2, 1]}, 64),
]
LABELS = 7


def drawn(name, shape, gain=0.9):
    """Returns the tensor of this name: the same numbers for the same name with any version of NumPy."""
    noise = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    last = name.rsplit(".", 1)[-1]
    if last == "running_var":
        value = 0.75 + 0.2 * np.tanh(noise)
    elif last == "logit_scale":
        value = math.log(10) + 0.1 * noise
    elif last in ("gain", "gamma", "skipinit_gain") or "scale" in last:
        value = 0.5 + 0.1 * noise
    elif last == "weight" and len(shape) > 1:
        value = gain * noise / math.sqrt(math.prod(shape[1:]))
    else:
        value = (1 if last == "weight" else 0) + 0.1 * noise
    return np.asarray(value, "f4")


def picture(size):
    return np.random.RandomState(size).standard_normal((1, 3, size, size)).astype("f4")


NORM = ("weight", "bias", "running_mean", "running_var")


def packed(shapes):
    """Groups names that differ in numbers and have one shape, {"blocks.#.conv.weight 8 3 1 1": "0 1 2"}; "*" stands for the four tensors of
    a batch norm."""
    groups = {}
    for name, shape in shapes.items():
        owner, _, last = name.rpartition(".")
        if owner + ".running_mean" in shapes:
            if last != "weight":
                continue
            name = owner + ".*"
        key = re.sub(r"\d+", "#", name) + "".join(f" {size}" for size in shape)
        groups.setdefault(key, []).append(",".join(re.findall(r"\d+", name)))
    return {key: " ".join(numbers) for key, numbers in groups.items()}


def unpacked(groups):
    shapes = {}
    for key, numbers in groups.items():
        pattern, *sizes = key.split(" ")
        for row in numbers.split(" "):
            parts = iter(row.split(","))
            name = re.sub("#", lambda _: next(parts), pattern)
            for one in [name[:-1] + last for last in NORM] if name.endswith("*") else [name]:
                shapes[one] = tuple(map(int, sizes))
    return shapes


def computed(architecture, model_args, size, others=None):
    import timm
    import torch

    model = timm.create_model(architecture, **{"num_classes": LABELS} | model_args | (others or {})).eval()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items() if not name.endswith(("num_batches_tracked", "_idxs"))}
    tensors = {name: torch.from_numpy(drawn(name, shape)) for name, shape in shapes.items()}
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected and all(name.endswith(("num_batches_tracked", "_idxs")) for name in missing), (architecture, missing)
    with torch.no_grad():
        result = model.double()(torch.from_numpy(picture(size)).double())
    assert unpacked(packed(shapes)) == shapes, architecture
    pool = getattr(model, "global_pool", None)
    config = {"num_classes": model.num_classes, "pretrained_cfg": {"input_size": [3, size, size]}, "model_args": model_args}
    return {"architecture": architecture, "config": config | ({"global_pool": pool} if isinstance(pool, str) else {}),
            "tensors": packed(shapes), "outputs": [float(f"{x:.9g}") for x in result.flatten().tolist()]}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    rows = {(row["architecture"], json.dumps(row["config"]["model_args"])): row for row in (json.loads(FILE.read_text()) if FILE.exists() else [])}
    for row in ROWS:
        if not sys.argv[2:] or row[0] in sys.argv[2:]:
            rows[row[0], json.dumps(row[1])] = computed(*row)
            print(row[0], flush=True)
    listed = [rows[row[0], json.dumps(row[1])] for row in ROWS if (row[0], json.dumps(row[1])) in rows]
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in listed) + "\n]\n")
