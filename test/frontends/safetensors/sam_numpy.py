"""Computes Segment Anything in NumPy with double precision: readings of transformers' models/sam/modeling_sam.py and
models/sam2/modeling_sam2.py that are independent of mlc."""
import math

import numpy as np

from picture_numpy import ACTIVATIONS, attend, sigmoid, tokens
from vision_numpy import resized


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


def hiera(net, c, x):
    """Returns the maps of the stages, [C, H, W]."""
    widths, windows, size = c["embed_dim_per_stage"], c["window_size_per_stage"], c["window_positional_embedding_background_size"]
    x = net.conv("patch_embed.projection", x, widths[0], 7, 4, 3, bias=True).transpose(1, 2, 0)
    table = net.tensor("pos_embed", 1, widths[0], *size)[0].transpose(1, 2, 0).reshape(-1, widths[0])
    table = resized(table, tuple(size), x.shape[:2], "bicubic").reshape(x.shape)
    own = net.tensor("pos_embed_window", 1, widths[0], windows[0], windows[0])[0].transpose(1, 2, 0)
    x = x + table + np.tile(own, (x.shape[0] // windows[0], x.shape[1] // windows[0], 1))

    def halved(x):
        return x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2, -1).max((1, 3))

    def attention(name, x, width, heads, pools):
        q, k, v = np.split(net.linear(name + "qkv", x, 3 * width), 3, -1)
        q = halved(q) if pools else q
        shape = q.shape
        q, k, v = (part.reshape(-1, heads, width // heads).swapaxes(0, 1) for part in (q, k, v))
        return net.linear(name + "proj", attend(q, k, v).swapaxes(0, 1).reshape(-1, width), width).reshape(shape)
    maps, number = [], 0
    for s, (depth, width, heads) in enumerate(zip(c["blocks_per_stage"], widths, c["num_attention_heads_per_stage"])):
        for i in range(depth):
            name, pools = f"blocks.{number}.", s > 0 and i == 0
            window = 0 if number in c["global_attention_blocks"] else windows[s - 1 if pools else s]
            y = net.layer_norm(name + "layer_norm1", x, 1e-6)
            if x.shape[-1] != width:
                x = halved(net.linear(name + "proj", y, width))
            if window:
                y = np.pad(y, [(0, -y.shape[0] % window), (0, -y.shape[1] % window), (0, 0)])
                step = window // 2 if pools else window
                out = np.zeros((y.shape[0] // window * step, y.shape[1] // window * step, width))
                for row in range(y.shape[0] // window):
                    for column in range(y.shape[1] // window):
                        part = y[row * window:(row + 1) * window, column * window:(column + 1) * window]
                        out[row * step:(row + 1) * step, column * step:(column + 1) * step] = attention(name + "attn.", part, width, heads, pools)
                y = out[:x.shape[0], :x.shape[1]]
            else:
                y = attention(name + "attn.", y, width, heads, pools)
            x = x + y
            y = ACTIVATIONS["gelu"](net.linear(name + "mlp.proj_in", net.layer_norm(name + "layer_norm2", x, 1e-6), int(width * c["mlp_ratio"])))
            x = x + net.linear(name + "mlp.proj_out", y, width)
            number += 1
        maps.append(x.transpose(2, 0, 1))
    return maps


def pyramid(net, maps, width):
    """Returns the three finest maps, from the finest one on."""
    levels = []
    for i in reversed(range(len(maps))):
        level = net.conv(f"neck.convs.{len(maps) - 1 - i}", maps[i], width, bias=True)
        levels.append(level + levels[-1].repeat(2, 1).repeat(2, 2) if levels and i in (2, 3) else level)
    return levels[-3:][::-1]


def decoder(net, c, size, maps, points=None, labels=None, box=None, second=False):
    """`maps` are the embeddings of a picture, the coarsest one last."""
    picture = maps[-1]
    width, heads, (_, height, across) = c["hidden_size"], c["num_attention_heads"], picture.shape
    epsilon, first_in, last_in, output = (1e-5, "proj_in", "proj_out", "o_proj") if second else (1e-6, "lin1", "lin2", "out_proj")

    def positioned(xy):
        angles = 2 * math.pi * ((2 * xy - 1) @ net.tensor("shared_image_embedding.positional_embedding", 2, width // 2))
        return np.concatenate([np.sin(angles), np.cos(angles)], -1)
    none = net.tensor("prompt_encoder.not_a_point_embed.weight", 1, width)
    shown = (net.tensor("prompt_encoder.point_embed.weight", 4, width) if second else
             [net.tensor(f"prompt_encoder.point_embed.{i}.weight", 1, width)[0] for i in range(4)])
    if box is None:
        prompt = positioned((points + 0.5) / size)
        for i, label in enumerate(labels):
            prompt[i] = none[0] if label == -1 else 0 if label == -10 else prompt[i] + shown[label]
        prompt = np.concatenate([prompt, none])
    else:
        prompt = positioned((box.reshape(2, 2) + 0.5) / size) + np.stack([shown[2], shown[3]])
        prompt = np.concatenate([prompt, none]) if second else prompt
    object_token = [net.tensor("mask_decoder.obj_score_token.weight", 1, width)] if second else []
    x = first = np.concatenate(object_token + [net.tensor("mask_decoder.iou_token.weight", 1, width),
                                               net.tensor("mask_decoder.mask_tokens.weight", 4, width), prompt])
    dense = net.tensor("prompt_encoder.no_mask_embed.weight", 1, width)
    picture = tokens(picture) + dense
    centres = np.stack(np.meshgrid((np.arange(across) + 0.5) / across, (np.arange(height) + 0.5) / height), -1).reshape(-1, 2)
    places = positioned(centres)

    def attention(name, q, k, v, inner):
        q, k, v = (net.linear(f"{name}.{part}_proj", of, inner).reshape(len(of), heads, -1).swapaxes(0, 1)
                   for part, of in (("q", q), ("k", k), ("v", v)))
        return net.linear(f"{name}.{output}", attend(q, k, v).swapaxes(0, 1).reshape(-1, inner), width)
    for i in range(2):
        name = f"mask_decoder.transformer.layers.{i}."
        norm = lambda n, y: net.layer_norm(f"{name}layer_norm{n}", y, epsilon)
        x = norm(1, attention(name + "self_attn", x, x, x, width) if i == 0 else x + attention(name + "self_attn", x + first, x + first, x, width))
        x = norm(2, x + attention(name + "cross_attn_token_to_image", x + first, picture + places, picture, width // 2))
        y = np.maximum(net.linear(f"{name}mlp.{first_in}", x, c["mlp_dim"]), 0)
        x = norm(3, x + net.linear(f"{name}mlp.{last_in}", y, width))
        picture = norm(4, picture + attention(name + "cross_attn_image_to_token", picture + places, x + first, x, width // 2))
    x = x + attention("mask_decoder.transformer.final_attn_token_to_image", x + first, picture + places, picture, width // 2)
    x = net.layer_norm("mask_decoder.transformer.layer_norm_final_attn", x, 1e-5)

    def up(name, x, out):
        weight, bias = net.tensor(f"mask_decoder.{name}.weight", len(x), out, 2, 2), net.tensor(f"mask_decoder.{name}.bias", out)
        y = np.einsum("chw,coyx->ohywx", x, weight)
        return y.reshape(out, 2 * x.shape[1], 2 * x.shape[2]) + bias[:, None, None]
    details = maps[:-1] if second else (0, 0)
    map_ = up("upscale_conv1", picture.T.reshape(width, height, across), width // 4) + details[1]
    map_ = ACTIVATIONS["gelu"](net.map_norm("mask_decoder.upscale_layer_norm", map_, 1e-6))
    map_ = ACTIVATIONS["gelu"](up("upscale_conv2", map_, width // 8) + details[0])

    def mlp(name, x, inner, out):
        for part in ("proj_in", "layers.0"):
            x = np.maximum(net.linear(f"mask_decoder.{name}.{part}", x, inner), 0)
        return net.linear(f"mask_decoder.{name}.proj_out", x, out)
    score = int(second)
    masks = [np.tensordot(mlp(f"output_hypernetworks_mlps.{i}", x[score + 1 + i], width, width // 8), map_, 1) for i in range(4)]
    scores = mlp("iou_prediction_head", x[score], c["iou_head_hidden_dim"], 4)[None, None, 1:]
    result = {"iou_scores": sigmoid(scores) if second else scores, "pred_masks": np.stack(masks[1:])[None, None]}
    return result | ({"object_score_logits": mlp("pred_obj_score_head", x[0], width, 1)[None, None]} if second else {})
