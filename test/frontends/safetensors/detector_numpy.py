"""Computes RT-DETR, RT-DETRv2 and D-FINE in NumPy with double precision: readings of transformers' modeling_rt_detr.py,
modeling_rt_detr_v2.py, modeling_d_fine.py and modeling_hgnet_v2.py, with picture_numpy.Net."""
import math

import numpy as np

from picture_numpy import ACTIVATIONS, attend, halved, pool, sigmoid, tokens

DEFAULTS = {"encoder_hidden_dim": 32, "encoder_in_channels": [16, 24, 32], "encoder_layers": 1, "encoder_ffn_dim": 40,
            "encoder_attention_heads": 4, "encode_proj_layers": [2], "positional_encoding_temperature": 10000, "normalize_before": False,
            "hidden_expansion": 1.0, "d_model": 32, "num_queries": 12, "decoder_ffn_dim": 48, "decoder_n_points": 4, "decoder_layers": 2,
            "decoder_attention_heads": 4, "decoder_offset_scale": 0.5, "max_num_bins": 32, "reg_scale": 4.0, "up": 0.5, "depth_mult": 1.0,
            "top_prob_values": 4, "lqe_hidden_dim": 64, "lqe_layers": 2, "decoder_in_channels": [256, 256, 256]}
RESNET = {"model_type": "rt_detr_resnet", "embedding_size": 16, "hidden_sizes": [16, 16, 24, 32], "depths": [1, 1, 1, 1], "layer_type": "basic"}
HGNET = {"model_type": "hgnet_v2", "stem_channels": [3, 8, 12], "stage_in_channels": [12, 16, 20, 24], "stage_mid_channels": [8, 8, 12, 16],
         "stage_out_channels": [16, 20, 24, 32], "stage_num_blocks": [1, 1, 2, 1], "stage_numb_of_layers": [2, 2, 3, 2]}


def resnet_stages(net, c, x):
    def unit(name, x, out, last=False, **window):
        y = net.batch_norm(name + ".normalization", net.conv(name + ".convolution", x, out, **window))
        return y if last else np.maximum(y, 0)
    for i, out in enumerate((c["embedding_size"] // 2,) * 2 + (c["embedding_size"],)):
        x = unit(f"embedder.embedder.{i}", x, out, kernel=3, stride=1 if i else 2)
    x, maps = pool(x, "max"), []
    for s, (depth, out) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        for i in range(depth):
            name, stride = f"encoder.stages.{s}.layers.{i}.", 2 if s and not i else 1
            short = x
            if stride > 1:
                short = unit(name + "shortcut.1", halved(x), out, True)
            elif len(x) != out or (i == 0 and s == 0):
                short = unit(name + "shortcut", x, out, True)
            y = unit(name + "layer.0", x, out, kernel=3, stride=stride)
            x = np.maximum(unit(name + "layer.1", y, out, True, kernel=3) + short, 0)
        maps.append(x)
    return maps


def hgnet_stages(net, c, x):
    c = {"stage_downsample": [False, True, True, True], "stage_light_block": [False, False, True, True], "stage_kernel_size": [3, 3, 5, 5],
         "use_learnable_affine_block": False} | c

    def conv(name, x, out, kernel=1, stride=1, groups=1, pad=None, act=True):
        y = net.batch_norm(name + ".normalization", net.conv(name + ".convolution", x, out, kernel, stride, pad, groups))
        y = np.maximum(y, 0) if act else y
        if act and c["use_learnable_affine_block"]:
            y = y * net.tensor(name + ".lab.scale", 1) + net.tensor(name + ".lab.bias", 1)
        return y
    _, stem, out = c["stem_channels"]
    more = lambda x: np.pad(x, [(0, 0), (0, 1), (0, 1)])
    x = more(conv("embedder.stem1", x, stem, 3, 2))
    y = conv("embedder.stem2a", x, stem // 2, 2, pad=0)
    y = conv("embedder.stem2b", more(y), stem, 2, pad=0)
    x = conv("embedder.stem3", np.concatenate([pool(x, "max", 2, 1, 0), y]), stem, 3, 2)
    x, maps = conv("embedder.stem4", x, out), []
    for s, (width, inner, out, kernel) in enumerate(zip(c["stage_in_channels"], c["stage_mid_channels"], c["stage_out_channels"], c["stage_kernel_size"])):
        if c["stage_downsample"][s]:
            x = conv(f"encoder.stages.{s}.downsample", x, width, 3, 2, width, act=False)
        for b in range(c["stage_num_blocks"][s]):
            name, y, all_ = f"encoder.stages.{s}.blocks.{b}.", x, [x]
            for i in range(c["stage_numb_of_layers"][s]):
                layer = f"{name}layers.{i}"
                if c["stage_light_block"][s]:
                    y = conv(layer + ".conv2", conv(layer + ".conv1", y, inner, act=False), inner, kernel, 1, inner)
                else:
                    y = conv(layer, y, inner, kernel)
                all_.append(y)
            y = conv(name + "aggregation.1", conv(name + "aggregation.0", np.concatenate(all_), out // 2), out)
            x = x + y if b else y
        maps.append(x)
    return maps


def hgnet(net, c, x):
    x = hgnet_stages(net, HGNET | c, x)[-1]
    if c["architectures"][0].endswith("Model"):
        return {"last_hidden_state": x[None], "pooler_output": x.mean((1, 2))[None, :, None, None]}
    return {"logits": net.linear("fc", x.mean((1, 2)), len(c["id2label"]), prefix="")[None]}


def mlp(net, name, x, widths):
    for i, width in enumerate(widths):
        x = net.linear(f"{name}.{i}", np.maximum(x, 0) if i else x, width)
    return x


def sampled(x, xy):
    """Bilinear samples of a map [C, H, W] at x and y from 0 to 1 [..., 2], zero outside."""
    height, width = x.shape[1:]
    at = np.stack([xy[..., 0] * width - 0.5, xy[..., 1] * height - 0.5], -1)
    low, result = np.floor(at).astype(int), 0
    for dx in (0, 1):
        for dy in (0, 1):
            px, py = low[..., 0] + dx, low[..., 1] + dy
            share = (1 - np.abs(at[..., 0] - px)) * (1 - np.abs(at[..., 1] - py)) * ((px >= 0) & (px < width) & (py >= 0) & (py < height))
            result = result + x[:, py.clip(0, height - 1), px.clip(0, width - 1)] * share
    return result


def rt_detr(net, given, x):
    c, fine = DEFAULTS | given, given["model_type"] == "d_fine"
    width, inner, heads = c["d_model"], c["encoder_hidden_dim"], c["decoder_attention_heads"]
    outer, net.prefix = net.prefix, net.prefix + "backbone.model."
    backbone = c["backbone_config"]
    maps = (hgnet_stages if fine else resnet_stages)(net, backbone, x)[-3:]
    net.prefix = outer
    projected = lambda name, x, out: net.batch_norm(name + ".1", net.conv(name + ".0", x, out))
    maps = [projected(f"encoder_input_proj.{i}", x, inner) for i, x in enumerate(maps)]

    def unit(name, x, out, kernel=1, stride=1, groups=1, act="silu"):
        return ACTIVATIONS[act](net.batch_norm(name + ".norm", net.conv(name + ".conv", x, out, kernel, stride, groups=groups)))

    def attention(name, x, keys, values, heads):
        return net.attention([name + part for part in ("q_proj", "k_proj", "v_proj", "out_proj")], x, keys, values, heads, x.shape[-1])
    for n, level in enumerate(c["encode_proj_layers"]):
        _, height, across = maps[level].shape
        frequencies = c["positional_encoding_temperature"] ** (-np.arange(inner // 4) / (inner // 4))
        # Version 5 has the positions of rows first, in the order of the tokens.
        sides = (height, across) if c.get("transformers_version", "").startswith("5.") else (across, height)
        grid = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), -1).reshape(-1, 2)
        angles = grid[:, :, None] * frequencies
        places = np.concatenate([np.sin(angles[:, 0]), np.cos(angles[:, 0]), np.sin(angles[:, 1]), np.cos(angles[:, 1])], -1)
        x = tokens(maps[level])
        for i in range(c["encoder_layers"]):
            name = f"encoder.encoder.{n}.layers.{i}."
            x = net.layer_norm(name + "self_attn_layer_norm", x + attention(name + "self_attn.", x + places, x + places, x, c["encoder_attention_heads"]), 1e-5)
            y = ACTIVATIONS["gelu"](net.linear(name + "fc1", x, c["encoder_ffn_dim"]))
            x = net.layer_norm(name + "final_layer_norm", x + net.linear(name + "fc2", y, inner), 1e-5)
        maps[level] = x.T.reshape(inner, height, across)

    def csp(name, x, out, hidden, blocks):
        y = unit(name + ".conv1", x, hidden)
        for i in range(blocks):
            own = f"{name}.bottlenecks.{i}."
            y = ACTIVATIONS["silu"](unit(own + "conv1", y, hidden, 3, act="") + unit(own + "conv2", y, hidden, act=""))
        y = y + unit(name + ".conv2", x, hidden)
        return y if hidden == out else unit(name + ".conv3", y, out)

    def joined(name, x):
        if not fine:
            return csp(name, x, inner, int(inner * c["hidden_expansion"]), 3)
        less, blocks = round(c["hidden_expansion"] * inner // 2), round(3 * c["depth_mult"])
        x = unit(name + ".conv1", x, 2 * inner)
        y = unit(name + ".conv2", csp(name + ".csp_rep1", x[inner:], less, less, blocks), less, 3)
        z = unit(name + ".conv3", csp(name + ".csp_rep2", y, less, less, blocks), less, 3)
        return unit(name + ".conv4", np.concatenate([x, y, z]), inner)
    down = list(maps)
    for n, i in enumerate((2, 1)):
        down[i] = unit(f"encoder.lateral_convs.{n}", down[i], inner, act="" if fine else "silu")
        down[i - 1] = joined(f"encoder.fpn_blocks.{n}", np.concatenate([down[i].repeat(2, 1).repeat(2, 2), maps[i - 1]]))
    levels = [down[0]]
    for n in range(2):
        name = f"encoder.downsample_convs.{n}"
        if fine:
            less = unit(name + ".conv2", unit(name + ".conv1", levels[-1], inner, act=""), inner, 3, 2, inner, "")
        else:
            less = unit(name, levels[-1], inner, 3, 2)
        levels.append(joined(f"encoder.pan_blocks.{n}", np.concatenate([less, down[n + 1]])))
    if not fine or c["decoder_in_channels"][-1] != width:
        levels = [projected(f"decoder_input_proj.{i}", x, width) for i, x in enumerate(levels)]
    anchors = []
    for level, x in enumerate(levels):
        _, height, across = x.shape
        centres = np.stack(np.meshgrid((np.arange(across) + 0.5) / across, (np.arange(height) + 0.5) / height), -1).reshape(-1, 2)
        anchors.append(np.concatenate([centres, np.full_like(centres, 0.05 * 2**level)], -1))
    anchors = np.concatenate(anchors)
    inside = ((anchors > 0.01) & (anchors < 0.99)).all(-1, keepdims=True)
    anchors = np.where(inside, np.log(anchors / (1 - anchors)), 1e30)
    memory = np.concatenate([tokens(x) for x in levels])
    found = net.layer_norm("enc_output.1", net.linear("enc_output.0", memory * inside, width), 1e-5)
    scores = net.linear("enc_score_head", found, len(c["id2label"]))
    boxes = mlp(net, "enc_bbox_head.layers", found, [width, width, 4]) + anchors
    chosen = np.argsort(-scores.max(-1), kind="stable")[:c["num_queries"]]
    sigma = lambda x: np.where(x > 500, 1, sigmoid(np.minimum(x, 500)))
    boxes, x = sigma(boxes[chosen]), found[chosen]
    logit = lambda x: np.log(np.maximum(x, 1e-5)) - np.log(np.maximum(1 - x, 1e-5))
    points = c["decoder_n_points"]
    points = points if isinstance(points, list) else [points] * 3

    def deformable(name, x, boxes):
        all_, many = sum(points), len(x)
        offsets = net.linear(name + "sampling_offsets", x, heads * all_ * 2).reshape(many, heads, all_, 2)
        shares = net.linear(name + "attention_weights", x, heads * all_).reshape(many, heads, all_)
        shares = np.exp(shares - shares.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        scale = np.repeat([1 / n for n in points], points)[:, None] * c["decoder_offset_scale"]
        if given["model_type"] == "rt_detr_v2":
            net.tensors[net.prefix + name + "n_points_scale"] = np.repeat([1 / n for n in points], points).astype("f4")
        places = boxes[:, None, None, :2] + offsets * scale * boxes[:, None, None, 2:]
        values = memory if fine else net.linear(name + "value_proj", memory, width)
        y, begin, first = np.zeros((many, heads, width // heads)), 0, 0
        for level, count in zip(levels, points):
            size = level.shape[1] * level.shape[2]
            maps = values[begin:begin + size].T.reshape(heads, -1, *level.shape[1:])
            for head in range(heads):
                of = slice(first, first + count)
                y[:, head] += (sampled(maps[head], places[:, head, of]) * shares[:, head, of]).sum(-1).T
            begin, first = begin + size, first + count
        y = y.reshape(many, width)
        return y if fine else net.linear(name + "output_proj", y, width)
    first = corners = last = None
    root = net.prefix.removesuffix("model.")
    for i in range(c["decoder_layers"]):
        name = f"decoder.layers.{i}."
        places = mlp(net, "decoder.query_pos_head.layers", boxes, [2 * width, width])
        places = places.clip(-10, 10) if fine else places
        x = net.layer_norm(name + "self_attn_layer_norm", x + attention(name + "self_attn.", x + places, x + places, x, heads), 1e-5)
        y = deformable(name + "encoder_attn.", x + places, boxes)
        if fine:
            gates = sigmoid(net.linear(name + "gateway.gate", np.concatenate([x, y], -1), 2 * width))
            x = net.layer_norm(name + "gateway.norm", gates[:, :width] * x + gates[:, width:] * y, 1e-5)
        else:
            x = net.layer_norm(name + "encoder_attn_layer_norm", x + y, 1e-5)
        y = net.linear(name + "fc2", np.maximum(net.linear(name + "fc1", x, c["decoder_ffn_dim"]), 0), width)
        x = net.layer_norm(name + "final_layer_norm", x + y, 1e-5)
        net.prefix = root
        if not fine:
            boxes = sigmoid(mlp(net, f"bbox_embed.{i}.layers", x, [width, width, 4]) + logit(boxes))
        scores = net.linear(f"class_embed.{i}", x, len(c["id2label"]))
        net.prefix = outer
        if fine:
            bins = c["max_num_bins"]
            if i == 0:
                first = sigmoid(mlp(net, "decoder.pre_bbox_head.layers", x, [width, width, 4]) + logit(boxes))
            net.prefix = root
            moved = mlp(net, f"bbox_embed.{i}.layers", x if i == 0 else x + last, [width, width, 4 * (bins + 1)])
            net.prefix = outer
            corners = moved if i == 0 else moved + corners
            up, scale = c["up"], c["reg_scale"]
            net.tensors[net.prefix + "decoder.up"], net.tensors[net.prefix + "decoder.reg_scale"] = np.array([up], "f4"), np.array([scale], "f4")
            step, half = (up * scale + 1) ** (2 / (bins - 2)), bins // 2
            weights = np.array([-2 * up * scale, *(1 - step**n for n in range(half - 1, 0, -1)), 0, *(step**n - 1 for n in range(1, half)), 2 * up * scale])
            shares = corners.reshape(len(x), 4, -1)
            shares = np.exp(shares - shares.max(-1, keepdims=True))
            shares = shares / shares.sum(-1, keepdims=True)
            far = shares @ weights
            low = first[:, :2] - (0.5 * scale + far[:, :2]) * first[:, 2:] / scale
            high = first[:, :2] + (0.5 * scale + far[:, 2:]) * first[:, 2:] / scale
            boxes = np.concatenate([(low + high) / 2, high - low], -1)
            top = -np.sort(-shares, -1)[..., :c["top_prob_values"]]
            known = np.concatenate([top, top.mean(-1, keepdims=True)], -1).reshape(len(x), -1)
            widths = [c["lqe_hidden_dim"]] * (c["lqe_layers"] - 1) + [1]
            scores = scores + mlp(net, f"decoder.lqe_layers.{i}.reg_conf.layers", known, widths)
            last = x
    return {"logits": scores[None], "pred_boxes": boxes[None]}


READINGS = {"rt_detr": rt_detr, "rt_detr_v2": rt_detr, "d_fine": rt_detr, "hgnet_v2": hgnet}
