"""Computes vision transformers in NumPy with double precision, from the tensors of a Hugging Face folder under their original
names. This is an implementation of transformers' models/*/modeling_*.py that is independent of mlc. It also makes tiny folders:
`tiny(MODEL_TYPE, ARCHITECTURE)` has a config and random weights."""
import math

import numpy as np

WIDTH, HEADS, LAYERS, INNER, LABELS, SIDE, PATCH = 32, 4, 3, 48, 5, 32, 8
TOKENS, VOCABULARY = 16, 61
PREFIXES = {"vit": "vit.", "deit": "deit.", "beit": "beit.", "dinov2": "dinov2.", "dinov2_with_registers": "dinov2_with_registers.",
            "dinov3_vit": "", "yolos": "vit.", "dpt": "dpt.", "data2vec-vision": "data2vec_vision.",
            "ijepa": "ijepa.", "vit_msn": "vit.", "vit_mae": "vit."}

erf = np.vectorize(math.erf)
ACTIVATIONS = {"tanh": np.tanh, "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))), "relu": lambda x: np.maximum(x, 0),
               "gelu_pytorch_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
               "silu": lambda x: x / (1 + np.exp(-x)), "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x))}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Pictures and grids.

def matrix(before, after, kind):
    """Returns the matrix [after, before] of torch.nn.functional.interpolate(align_corners=False)."""
    cubic, antialias = kind.startswith("bicubic"), kind.endswith("antialias")
    a = -0.5 if antialias else -0.75
    stretch = max(before / after, 1) if antialias else 1

    def kernel(x):
        x = abs(x) / stretch
        if not cubic:
            return max(0.0, 1 - x)
        return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x < 1 else a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0

    result = np.zeros((after, before))
    for i in range(after):
        centre = (i + 0.5) * before / after - 0.5
        for j in range(-3 * before, 4 * before):
            if antialias and not 0 <= j < before:
                continue
            result[i, min(max(j, 0), before - 1)] += kernel(j - centre)
    return result / result.sum(1, keepdims=True)


def resized(rows, before, after, kind):
    grid = rows.reshape(*before, -1)
    return np.einsum("ab,cd,bde->ace", matrix(before[0], after[0], kind), matrix(before[1], after[1], kind), grid).reshape(
        after[0] * after[1], -1)


def aligned(x, height, width):
    """Resizes [channels, h, w] bilinearly with align_corners=True."""
    def along(before, after):
        result = np.zeros((after, before))
        for i in range(after):
            at = i * (before - 1) / (after - 1) if after > 1 else 0
            low = min(int(at), before - 1)
            result[i, low] += 1 - (at - low)
            result[i, min(low + 1, before - 1)] += at - low
        return result
    return np.einsum("ab,cd,kbd->kac", along(x.shape[1], height), along(x.shape[2], width), x)


def convolve(x, weight, bias, stride, pad):
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    k = weight.shape[-1]
    height, width = (x.shape[1] - k) // stride + 1, (x.shape[2] - k) // stride + 1
    y = np.zeros((weight.shape[0], height, width))
    for dy in range(k):
        for dx in range(k):
            part = x[:, dy:dy + stride * height:stride, dx:dx + stride * width:stride]
            y += np.einsum("oc,chw->ohw", weight[:, :, dy, dx], part)
    return y if bias is None else y + bias[:, None, None]


class Network:
    def __init__(self, config, tensors, prefix=""):
        self.config, self.prefix = config, prefix
        self.tensors = {name: value.astype("f8") for name, value in tensors.items()}

    def tensor(self, name):
        return self.tensors.get(self.prefix + name, self.tensors.get(name))

    def linear(self, name, x):
        y, bias = x @ self.tensor(name + ".weight").T, self.tensor(name + ".bias")
        return y if bias is None else y + bias

    def norm(self, name, x, epsilon=None):
        centred = x - x.mean(-1, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + (epsilon or self.config["layer_norm_eps"]))
        return y * self.tensor(name + ".weight") + self.tensor(name + ".bias")

    def conv(self, name, x, stride=1, pad=0):
        return convolve(x, self.tensor(name + ".weight"), self.tensor(name + ".bias"), stride, pad)


def attend(q, k, v, heads, bias=0):
    split = lambda x: x.reshape(len(x), heads, -1).transpose(1, 0, 2)
    q, k, v = split(q), split(k), split(v)
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]) + bias
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def rotated(x, heads, angles, first):
    x = x.reshape(len(x), heads, -1).copy()
    part = x[first:]
    half = part.shape[-1] // 2
    turned = np.concatenate([-part[..., half:], part[..., :half]], -1)
    x[first:] = part * np.cos(angles)[:, None] + turned * np.sin(angles)[:, None]
    return x.reshape(len(x), -1)


def beit_bias(net, table, grid, heads):
    side = net.config["image_size"] // net.config["patch_size"]
    old, new = (2 * side - 1,) * 2, (2 * grid[0] - 1, 2 * grid[1] - 1)
    rows = table[:-3] if old == new else resized(table[:-3], old, new, "bilinear")
    count = grid[0] * grid[1]
    bias = np.zeros((count + 1, count + 1, heads))
    for q in range(count):
        for k in range(count):
            dy, dx = q // grid[1] - k // grid[1] + grid[0] - 1, q % grid[1] - k % grid[1] + grid[1] - 1
            bias[q + 1, k + 1] = rows[dy * new[1] + dx]
    bias[0, :], bias[:, 0], bias[0, 0] = table[-3], table[-2], table[-1]
    return bias.transpose(2, 0, 1)


def towers_of(kind):
    if kind == "data2vec-vision":
        return "beit"
    return kind.split("_")[0] if kind.endswith(("_vision_model", "_text_model")) else kind


def vision(net, kind, pixels):
    """Returns the hidden states, without the norm at the end, and the number of tokens before the patches."""
    c = net.config
    clip = kind in ("clip", "siglip", "blip", "siglip2")
    patch = c["patch_size"]
    grid = pixels.shape[1] // patch, pixels.shape[2] // patch
    name = "embeddings.patch_embedding" if clip else "embeddings.patch_embeddings" if kind == "dinov3_vit" else \
        "embeddings.patch_embeddings.projection"
    weight = net.tensor(name + ".weight")
    if kind == "siglip2":
        weight = weight.reshape(len(weight), patch, patch, -1).transpose(0, 3, 1, 2)
    x = convolve(pixels.astype("f8"), weight, net.tensor(name + ".bias"), patch, 0).reshape(len(weight), -1).T
    tokens, rows = [], lambda t: net.tensor(t).reshape(-1, WIDTH)
    if kind in ("clip", "blip"):
        tokens.append(rows("embeddings.class_embedding"))
    elif not clip and kind != "ijepa":
        tokens.append(rows("embeddings.cls_token"))
    if kind == "deit":
        tokens.append(rows("embeddings.distillation_token"))
    before = len(tokens)
    after = [rows("embeddings.detection_tokens")] if kind == "yolos" else []
    x = np.concatenate(tokens + [x] + after)
    size = c.get("image_size", math.isqrt(c.get("num_patches", 0)) * patch)
    trained = (size if isinstance(size, list) else [size, size])
    trained = trained[0] // patch, trained[1] // patch
    how = {"dinov2_with_registers": "bicubic_antialias", "dpt": "bilinear", "siglip2": "bilinear_antialias"}.get(kind, "bicubic")

    def table(positions):
        count = trained[0] * trained[1]
        middle = positions[before:before + count]
        if trained != grid:
            middle = resized(middle, trained, grid, how)
        return np.concatenate([positions[:before], middle, positions[before + count:]])

    for name in ("embeddings.position_embedding.weight", "embeddings.position_embedding", "embeddings.position_embeddings"):
        if net.tensor(name) is not None:
            x = x + table(rows(name))
    registers = c.get("num_register_tokens", 0)
    if registers:
        x = np.concatenate([x[:before], rows("embeddings.register_tokens"), x[before:]])
    first = before + registers
    if kind == "clip":
        x = net.norm("pre_layrnorm", x)
    angles, heads = None, c["num_attention_heads"]
    if kind == "dinov3_vit":
        quarter = WIDTH // heads // 4
        frequencies = c["rope_theta"] ** (-np.arange(quarter) / quarter)
        y, z = np.meshgrid(*(2 * (np.arange(n) + 0.5) / n - 1 for n in grid), indexing="ij")
        angles = 2 * math.pi * np.stack([y.ravel(), z.ravel()], 1)[:, :, None] * frequencies
        angles = np.tile(angles.reshape(len(angles), -1), 2)
    states = [x]
    for n in range(c["num_hidden_layers"]):
        own = f"encoder.layers.{n}." if clip else f"layer.{n}." if kind == "dinov3_vit" else f"encoder.layer.{n}."
        dino = kind.startswith("dino")
        norms = ("layer_norm1", "layer_norm2") if clip else ("norm1", "norm2") if dino else ("layernorm_before", "layernorm_after")
        qkv = "self_attn.{}_proj" if clip else "attention.{}_proj" if kind == "dinov3_vit" else "attention.attention.{}"
        keys = ("q", "k", "v") if clip or kind == "dinov3_vit" else ("query", "key", "value")
        y = net.norm(own + norms[0], x)
        if kind == "blip":
            q, k, v = np.split(net.linear(own + "self_attn.qkv", y), 3, 1)
        else:
            q, k, v = (net.linear(own + qkv.format(key), y) for key in keys)
        if angles is not None:
            q, k = rotated(q, heads, angles, first), rotated(k, heads, angles, first)
        bias = 0
        for name in (own + "attention.attention.relative_position_bias.relative_position_bias_table",
                     "encoder.relative_position_bias.relative_position_bias_table"):
            if net.tensor(name) is not None:
                bias = beit_bias(net, net.tensor(name), grid, heads)
        out = {"clip": "self_attn.out_proj", "siglip": "self_attn.out_proj", "siglip2": "self_attn.out_proj",
               "blip": "self_attn.projection", "dinov3_vit": "attention.o_proj"}.get(kind, "attention.output.dense")
        scale = lambda names: next((net.tensor(own + s) for s in names if net.tensor(own + s) is not None), 1)
        x = x + net.linear(own + out, attend(q, k, v, heads, bias)) * scale(("layer_scale1.lambda1", "lambda_1"))
        y, act = net.norm(own + norms[1], x), ACTIVATIONS[c["hidden_act"]]
        if c.get("use_swiglu_ffn"):
            gate, up = np.split(net.linear(own + "mlp.weights_in", y), 2, 1)
            y = net.linear(own + "mlp.weights_out", ACTIVATIONS["silu"](gate) * up)
        elif c.get("use_gated_mlp"):
            y = net.linear(own + "mlp.down_proj", act(net.linear(own + "mlp.gate_proj", y)) * net.linear(own + "mlp.up_proj", y))
        else:
            names = ("mlp.fc1", "mlp.fc2") if clip or kind.startswith("dinov2") else ("mlp.up_proj", "mlp.down_proj") if dino else \
                ("intermediate.dense", "output.dense")
            y = net.linear(own + names[1], act(net.linear(own + names[0], y)))
        x = x + y * scale(("layer_scale2.lambda1", "lambda_2"))
        middle = net.tensor("encoder.mid_position_embeddings")
        if middle is not None and n + 1 < c["num_hidden_layers"]:
            x = x + table(middle[n, 0])
        states.append(x)
    return states, first, grid


def pooled_by_attention(net, x):
    w, b = net.tensor("head.attention.in_proj_weight"), net.tensor("head.attention.in_proj_bias")
    part = lambda y, i: y @ w[i * WIDTH:(i + 1) * WIDTH].T + b[i * WIDTH:(i + 1) * WIDTH]
    y = attend(part(net.tensor("head.probe").reshape(1, -1), 0), part(x, 1), part(x, 2), net.config["num_attention_heads"])
    y = net.linear("head.attention.out_proj", y)
    z = ACTIVATIONS[net.config["hidden_act"]](net.linear("head.mlp.fc1", net.norm("head.layernorm", y)))
    return (y + net.linear("head.mlp.fc2", z))[0]


def image_features(net, kind, pixels):
    """Returns the last hidden state, the pooled vector (None without a pooler), and the number of tokens before the patches."""
    states, first, _ = vision(net, kind, pixels)
    x = states[-1]
    if kind == "clip":
        return x, net.norm("post_layernorm", x[0]), first
    if kind == "blip":
        x = net.norm("post_layernorm", x)
        return x, net.norm("post_layernorm", x[0]), first
    if kind.startswith("siglip"):
        x = net.norm("post_layernorm", x)
        return x, pooled_by_attention(net, x) if net.config.get("vision_use_head", True) else None, first
    if kind == "beit" and net.config["use_mean_pooling"]:
        return x, net.norm("pooler.layernorm", x[1:].mean(0)), first
    x = net.norm("norm" if kind == "dinov3_vit" else "layernorm", x)
    if net.tensor("pooler.dense.weight") is not None:
        return x, ACTIVATIONS[net.config.get("pooler_act", "tanh")](net.linear("pooler.dense", x[0])), first
    return x, x[0] if kind.startswith("dino") or kind == "beit" else None, first


def text_features(net, ids, causal):
    x = net.tensor("embeddings.token_embedding.weight")[ids] + net.tensor("embeddings.position_embedding.weight")[:len(ids)]
    bias = np.where(np.tri(len(ids)), 0, -1e30) if causal else 0
    for n in range(net.config["num_hidden_layers"]):
        own = f"encoder.layers.{n}."
        y = net.norm(own + "layer_norm1", x)
        q, k, v = (net.linear(own + f"self_attn.{key}_proj", y) for key in "qkv")
        x = x + net.linear(own + "self_attn.out_proj", attend(q, k, v, net.config["num_attention_heads"], bias))
        y = ACTIVATIONS[net.config["hidden_act"]](net.linear(own + "mlp.fc1", net.norm(own + "layer_norm2", x)))
        x = x + net.linear(own + "mlp.fc2", y)
    x = net.norm("final_layer_norm", x)
    if not causal:
        return x, net.linear("head", x[-1])
    end = net.config["eos_token_id"]
    return x, x[int(np.argmax(ids)) if end == 2 else int(np.argmax(ids == end))]


def depth(net, config, states, first, grid, patch):
    """DPTForDepthEstimation and DepthAnythingForDepthEstimation, from hidden states."""
    anything, levels = config["model_type"] == "depth_anything", []
    for i, x in enumerate(states):
        patches = x[first:]
        if config.get("readout_type") == "add":
            patches = patches + x[0]
        if config.get("readout_type") == "project":
            both = np.concatenate([patches, np.broadcast_to(x[0], patches.shape)], 1)
            patches = ACTIVATIONS[config["hidden_act"]](net.linear(f"neck.reassemble_stage.readout_projects.{i}.0", both))
        y = net.conv(f"neck.reassemble_stage.layers.{i}.projection", patches.T.reshape(-1, *grid))
        name, factor = f"neck.reassemble_stage.layers.{i}.resize", config["reassemble_factors"][i]
        if factor > 1:
            w = net.tensor(name + ".weight")
            y = np.einsum("chw,coyx->ohywx", y, w).reshape(w.shape[1], y.shape[1] * factor, -1) + net.tensor(name + ".bias")[:, None, None]
        elif factor < 1:
            y = net.conv(name, y, stride=int(1 / factor), pad=1)
        levels.append(net.conv(f"neck.convs.{i}", y, pad=1))

    def batch_normed(name, x):
        weight, bias, mean, variance = (net.tensor(f"{name}.{part}")[:, None, None] for part in ("weight", "bias", "running_mean", "running_var"))
        return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias

    def residual(name, x):
        y = x
        for n in "12":
            y = net.conv(name + ".convolution" + n, np.maximum(y, 0), pad=1)
            y = batch_normed(name + ".batch_norm" + n, y) if config.get("use_batch_norm_in_fusion_residual") else y
        return x + y

    x = None
    for i, level in enumerate(reversed(levels)):
        own = f"neck.fusion_stage.layers.{i}."
        if x is None:
            x = level
        else:
            if level.shape != x.shape:
                level = resized(level.reshape(len(level), -1).T, level.shape[1:], x.shape[1:], "bilinear").T.reshape(len(level), *x.shape[1:])
            x = x + residual(own + "residual_layer1", level)
        x = residual(own + "residual_layer2", x)
        size = levels[-2 - i].shape[1:] if anything and i + 1 < len(levels) else (2 * x.shape[1], 2 * x.shape[2])
        x = net.conv(own + "projection", aligned(x, *size))
    if config["architectures"][0].endswith("ForSemanticSegmentation"):
        x = net.conv("head.head.4", np.maximum(batch_normed("head.head.1", net.conv("head.head.0", x, pad=1)), 0))
        return aligned(x, 2 * x.shape[1], 2 * x.shape[2])[None]
    if not anything:
        if config.get("add_projection"):
            x = np.maximum(net.conv("head.projection", x, pad=1), 0)
        x = net.conv("head.head.0", x, pad=1)
        x = np.maximum(net.conv("head.head.2", aligned(x, 2 * x.shape[1], 2 * x.shape[2]), pad=1), 0)
        return np.maximum(net.conv("head.head.4", x), 0)
    x = aligned(net.conv("head.conv1", x, pad=1), grid[0] * patch, grid[1] * patch)
    x = net.conv("head.conv3", np.maximum(net.conv("head.conv2", x, pad=1), 0))
    metric = config.get("depth_estimation_type") == "metric"
    return (sigmoid(x) if metric else np.maximum(x, 0)) * (config.get("max_depth") or 1)


def bilinear(x, like):
    return resized(x.reshape(len(x), -1).T, x.shape[1:], like.shape[1:], "bilinear").T.reshape(len(x), *like.shape[1:])


def batch_norm(net, name, x):
    weight, bias, mean, variance = (net.tensor(f"{name}.{part}")[:, None, None] for part in ("weight", "bias", "running_mean", "running_var"))
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def segments(net, states, first, grid):
    """BeitForSemanticSegmentation: maps of four sizes, and the head of UPerNet."""
    def unit(name, x, pad=0):
        return np.maximum(batch_norm(net, f"decode_head.{name}.bn", net.conv(f"decode_head.{name}.conv", x, pad=pad)), 0)

    def doubled(name, x):
        w = net.tensor(name + ".weight")
        y = np.einsum("chw,coyx->ohywx", x, w).reshape(w.shape[1], 2 * x.shape[1], -1)
        return y + net.tensor(name + ".bias")[:, None, None]

    def means(x, side):
        def edges(size):
            return [(i * size // side, -(-(i + 1) * size // side)) for i in range(side)]
        return np.array([[x[:, a:b, c:d].mean((1, 2)) for c, d in edges(x.shape[2])] for a, b in edges(x.shape[1])]).transpose(2, 0, 1)
    maps = [states[i - 1][first:].T.reshape(-1, *grid) for i in net.config["out_indices"]]
    maps[0] = doubled("fpn1.3", ACTIVATIONS["gelu"](batch_norm(net, "fpn1.1", doubled("fpn1.0", maps[0]))))
    maps[1] = doubled("fpn2.0", maps[1])
    last = maps[3][:, :maps[3].shape[1] // 2 * 2, :maps[3].shape[2] // 2 * 2]
    maps[3] = last.reshape(len(last), last.shape[1] // 2, 2, -1, 2).max((2, 4))
    pyramid = [bilinear(unit(f"psp_modules.{n}.1", means(maps[3], side)), maps[3]) for n, side in enumerate(net.config["pool_scales"])]
    levels = [unit(f"lateral_convs.{n}", x) for n, x in enumerate(maps[:3])] + [unit("bottleneck", np.concatenate([maps[3], *pyramid]), 1)]
    for n in (3, 2, 1):
        levels[n - 1] = levels[n - 1] + bilinear(levels[n], levels[n - 1])
    levels[:3] = [unit(f"fpn_convs.{n}", x, 1) for n, x in enumerate(levels[:3])]
    joined = unit("fpn_bottleneck", np.concatenate([bilinear(x, levels[0]) for x in levels]), 1)
    return net.conv("decode_head.classifier", joined)[None]


def outputs(config, tensors, pixels=None, ids=None):
    """The outputs for pixels [1, 3, height, width] and ids [tokens]; hidden states of pairs of towers are left out."""
    kind, architecture = towers_of(config["model_type"]), config["architectures"][0]
    if pixels is not None:
        pixels = pixels[0]
    if kind in ("clip", "siglip", "siglip2"):
        return pair_outputs(config, tensors, kind, architecture, pixels, ids)
    if kind == "beit" and architecture.endswith("ForSemanticSegmentation"):
        net = Network(config, tensors, PREFIXES[config["model_type"]])
        return {"logits": segments(net, *vision(net, kind, pixels))}
    if architecture.endswith(("ForDepthEstimation", "ForSemanticSegmentation")):
        inner = config.get("backbone_config", config)
        own = inner["model_type"] if inner is not config else "dpt"
        net = Network(inner, tensors, "dpt." if inner is config else "backbone.")
        states, first, grid = vision(net, own, pixels)
        if inner is config:
            chosen = [states[i + 1] for i in config["backbone_out_indices"]]
        else:
            chosen = [states[i] if own == "beit" else net.norm("layernorm", states[i]) for i in inner["out_indices"]]
        made = depth(net, config, chosen, first, grid, inner["patch_size"])
        return {"predicted_depth" if "Depth" in architecture else "logits": made}
    net = Network(config, tensors, "vision_model." if kind == "blip" else PREFIXES[kind])
    x, pooled, first = image_features(net, kind, pixels)
    if architecture.endswith("WithTeacher"):
        a, b = net.linear("cls_classifier", x[0]), net.linear("distillation_classifier", x[1])
        return {"logits": ((a + b) / 2)[None], "cls_logits": a[None], "distillation_logits": b[None]}
    if architecture.endswith("ForImageClassification"):
        features = np.concatenate([x[0], x[first:].mean(0)]) if kind.startswith("dinov2") else pooled if kind == "beit" else x.mean(0) if kind == "ijepa" else x[0]
        return {"logits": net.linear("classifier", features)[None]}
    if architecture.endswith("ForObjectDetection"):
        found = x[-config["num_detection_tokens"]:]

        def perceptron(name):
            y = found
            for n in range(3):
                y = net.linear(f"{name}.layers.{n}", y if n == 0 else np.maximum(y, 0))
            return y[None]
        return {"logits": perceptron("class_labels_classifier"), "pred_boxes": sigmoid(perceptron("bbox_predictor")),
                "last_hidden_state": x[None]}
    return {"last_hidden_state": x[None]} | ({} if pooled is None else {"pooler_output": pooled[None]})


def pair_outputs(config, tensors, kind, architecture, pixels, ids):
    both = "vision_config" in config
    found = {}
    if "Text" not in architecture:
        net = Network(config["vision_config"] if both else config, tensors, "vision_model.")
        x, image, first = image_features(net, kind, pixels)
        if architecture.endswith("ForImageClassification"):
            return {"logits": net.linear("classifier", x[first:].mean(0))[None]}
        found["image"] = (x, image, "visual_projection")
    if "Vision" not in architecture:
        net = Network(config["text_config"] if both else config, tensors, "text_model.")
        found["text"] = (*text_features(net, ids, kind == "clip"), "text_projection")
    embeds = {k: net.linear(name, pooled) if net.tensor(name + ".weight") is not None else pooled for k, (_, pooled, name) in
              found.items() if pooled is not None}
    if len(found) == 2:
        embeds = {k: v / np.linalg.norm(v) for k, v in embeds.items()}
        logit = np.exp(net.tensor("logit_scale").reshape(-1)) * (embeds["image"] @ embeds["text"])
        if kind != "clip":
            logit = logit + net.tensor("logit_bias")
        return {f"{k}_embeds": v[None] for k, v in embeds.items()} | {f"logits_per_{k}": logit.reshape(1, 1) for k in embeds}
    (name, (x, pooled, _)), = found.items()
    if architecture.endswith("WithProjection"):
        return {f"{name}_embeds": embeds[name][None], "last_hidden_state": x[None]}
    return {"last_hidden_state": x[None]} | ({} if pooled is None else {"pooler_output": pooled[None]})


# Tiny folders.

class Weights(dict):
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def draw(self, name, *dims, scale=None):
        self[name] = (self.rng.standard_normal(dims) * (scale or 1.5 / math.sqrt(dims[-1]))).astype("f4")

    def linear(self, name, out, width, bias=True):
        self.draw(name + ".weight", out, width)
        if bias:
            self.draw(name + ".bias", out, scale=0.3)

    def norm(self, name, width=WIDTH):
        self[name + ".weight"] = (1 + self.rng.standard_normal(width) / 4).astype("f4")
        self.draw(name + ".bias", width, scale=0.3)

    def conv(self, name, out, channels, k, bias=True):
        self.draw(name + ".weight", out, channels, k, k, scale=1 / math.sqrt(channels * k * k))
        if bias:
            self.draw(name + ".bias", out, scale=0.3)

    def batch_norm(self, name, width):
        self.norm(name, width)
        self.draw(name + ".running_mean", width, scale=0.3)
        self[name + ".running_var"] = self.rng.uniform(0.5, 1.5, width).astype("f4")


CONFIGS = {
    "vit": {"layer_norm_eps": 1e-12}, "deit": {"layer_norm_eps": 1e-12},
    "ijepa": {"layer_norm_eps": 1e-12}, "vit_msn": {"layer_norm_eps": 1e-6}, "vit_mae": {"layer_norm_eps": 1e-12},
    "beit": {"layer_norm_eps": 1e-12, "use_mean_pooling": True, "use_relative_position_bias": True},
    "dinov2": {"layer_norm_eps": 1e-6, "mlp_ratio": 2}, "dinov2_with_registers": {"layer_norm_eps": 1e-6, "mlp_ratio": 2,
                                                                                  "num_register_tokens": 3},
    "dinov3_vit": {"layer_norm_eps": 1e-5, "num_register_tokens": 2, "rope_theta": 100.0, "query_bias": True, "key_bias": False},
    "yolos": {"layer_norm_eps": 1e-12, "num_detection_tokens": 6, "image_size": [32, 40], "use_mid_position_embeddings": True},
    "dpt": {"layer_norm_eps": 1e-12, "backbone_out_indices": [0, 1, 2, 3], "readout_type": "project"},
    "clip": {"layer_norm_eps": 1e-5, "hidden_act": "quick_gelu"}, "siglip": {"layer_norm_eps": 1e-6, "hidden_act": "gelu_pytorch_tanh"},
    "siglip2": {"layer_norm_eps": 1e-6, "hidden_act": "gelu_pytorch_tanh", "num_patches": 16}, "blip": {"layer_norm_eps": 1e-5},
}


def vision_weights(w, c, kind, p):
    """Adds the tensors of a tower under the prefix p."""
    clip, patch = kind in ("clip", "siglip", "siglip2", "blip"), c["patch_size"]
    size = c.get("image_size", math.isqrt(c.get("num_patches", 0)) * patch)
    height, width = size if isinstance(size, list) else (size, size)
    count = height // patch * (width // patch)
    name = p + ("embeddings.patch_embedding" if clip else "embeddings.patch_embeddings" if kind == "dinov3_vit" else
                "embeddings.patch_embeddings.projection")
    if kind == "siglip2":
        w.linear(name, WIDTH, 3 * patch * patch)
    else:
        w.conv(name, WIDTH, 3, patch, bias=kind != "clip")
    if kind == "clip":
        w.draw(p + "embeddings.class_embedding", WIDTH, scale=1)
    elif kind == "blip":
        w.draw(p + "embeddings.class_embedding", 1, 1, WIDTH, scale=1)
    elif not clip and kind != "ijepa":
        w.draw(p + "embeddings.cls_token", 1, 1, WIDTH, scale=1)
    if kind == "deit":
        w.draw(p + "embeddings.distillation_token", 1, 1, WIDTH, scale=1)
    if kind == "yolos":
        w.draw(p + "embeddings.detection_tokens", 1, c["num_detection_tokens"], WIDTH, scale=1)
    if "num_register_tokens" in c:  # a tensor without elements if there are none
        w.draw(p + "embeddings.register_tokens", 1, c["num_register_tokens"], WIDTH, scale=1)
    rows = count + {"siglip": 0, "siglip2": 0, "ijepa": 0, "deit": 2}.get(kind, 1) + c.get("num_detection_tokens", 0)
    if clip and kind != "blip":
        w.draw(p + "embeddings.position_embedding.weight", rows, WIDTH, scale=1)
    elif kind == "blip":
        w.draw(p + "embeddings.position_embedding", 1, rows, WIDTH, scale=1)
    elif kind != "dinov3_vit" and (kind != "beit" or c.get("use_absolute_position_embeddings")):
        w.draw(p + "embeddings.position_embeddings", 1, rows, WIDTH, scale=1)
    if c.get("use_mid_position_embeddings"):
        w.draw(p + "encoder.mid_position_embeddings", c["num_hidden_layers"] - 1, 1, rows, WIDTH, scale=1)
    if kind == "clip":
        w.norm(p + "pre_layrnorm")
    offsets = (2 * (height // patch) - 1) * (2 * (width // patch) - 1) + 3
    table = "relative_position_bias.relative_position_bias_table"
    if c.get("use_shared_relative_position_bias"):
        w.draw(p + "encoder." + table, offsets, HEADS, scale=1)
    for n in range(c["num_hidden_layers"]):
        own = p + (f"encoder.layers.{n}." if clip else f"layer.{n}." if kind == "dinov3_vit" else f"encoder.layer.{n}.")
        dino, inner = kind.startswith("dino"), c.get("intermediate_size", int(WIDTH * c.get("mlp_ratio", 0)))
        for norm in ("layer_norm1", "layer_norm2") if clip else ("norm1", "norm2") if dino else ("layernorm_before", "layernorm_after"):
            w.norm(own + norm)
        if kind == "blip":
            w.linear(own + "self_attn.qkv", 3 * WIDTH, WIDTH)
            w.linear(own + "self_attn.projection", WIDTH, WIDTH)
        elif clip:
            for key in "q", "k", "v", "out":
                w.linear(own + f"self_attn.{key}_proj", WIDTH, WIDTH)
        elif kind == "dinov3_vit":
            for key in "qkvo":
                w.linear(own + f"attention.{key}_proj", WIDTH, WIDTH, bias=key != "k" or c.get("key_bias", False))
        else:
            for key in "query", "key", "value":
                w.linear(own + f"attention.attention.{key}", WIDTH, WIDTH,
                         bias=c.get("qkv_bias", True) and not (kind == "beit" and key == "key"))
            w.linear(own + "attention.output.dense", WIDTH, WIDTH)
        if c.get("use_relative_position_bias"):
            w.draw(own + "attention.attention." + table, offsets, HEADS, scale=1)
        if c.get("use_swiglu_ffn"):
            hidden = (int(inner * 2 / 3) + 7) // 8 * 8
            w.linear(own + "mlp.weights_in", 2 * hidden, WIDTH)
            w.linear(own + "mlp.weights_out", WIDTH, hidden)
        elif kind == "dinov3_vit":
            for key in ("gate", "up") if c.get("use_gated_mlp") else ("up",):
                w.linear(own + f"mlp.{key}_proj", inner, WIDTH)
            w.linear(own + "mlp.down_proj", WIDTH, inner)
        else:
            up, down = ("mlp.fc1", "mlp.fc2") if clip or dino else ("intermediate.dense", "output.dense")
            w.linear(own + up, inner, WIDTH)
            w.linear(own + down, WIDTH, inner)
        for scale in ("layer_scale1.lambda1", "layer_scale2.lambda1") if dino else ("lambda_1", "lambda_2") if kind == "beit" else ():
            w.draw(own + scale, WIDTH, scale=1)
    if clip:
        w.norm(p + "post_layernorm")
    elif kind != "beit" or not c["use_mean_pooling"]:
        w.norm(p + ("norm" if kind == "dinov3_vit" else "layernorm"))
    if kind.startswith("siglip") and c.get("vision_use_head", True):
        w.draw(p + "head.probe", 1, 1, WIDTH, scale=1)
        w.draw(p + "head.attention.in_proj_weight", 3 * WIDTH, WIDTH)
        w.draw(p + "head.attention.in_proj_bias", 3 * WIDTH, scale=0.3)
        w.linear(p + "head.attention.out_proj", WIDTH, WIDTH)
        w.norm(p + "head.layernorm")
        w.linear(p + "head.mlp.fc1", INNER, WIDTH)
        w.linear(p + "head.mlp.fc2", WIDTH, INNER)


def text_weights(w, c, kind, p):
    w.draw(p + "embeddings.token_embedding.weight", VOCABULARY, WIDTH, scale=1)
    w.draw(p + "embeddings.position_embedding.weight", TOKENS, WIDTH, scale=1)
    for n in range(c["num_hidden_layers"]):
        own = f"{p}encoder.layers.{n}."
        w.norm(own + "layer_norm1")
        w.norm(own + "layer_norm2")
        for key in "q", "k", "v", "out":
            w.linear(own + f"self_attn.{key}_proj", WIDTH, WIDTH)
        w.linear(own + "mlp.fc1", INNER, WIDTH)
        w.linear(own + "mlp.fc2", WIDTH, INNER)
    w.norm(p + "final_layer_norm")
    if kind != "clip":
        w.linear(p + "head", WIDTH, WIDTH)


def neck_weights(w, c):
    widths, fusion = c["neck_hidden_sizes"], c["fusion_hidden_size"]
    for i, width in enumerate(widths):
        if c.get("readout_type") == "project":
            w.linear(f"neck.reassemble_stage.readout_projects.{i}.0", WIDTH, 2 * WIDTH)
        w.conv(f"neck.reassemble_stage.layers.{i}.projection", width, WIDTH, 1)
        factor = c["reassemble_factors"][i]
        if factor != 1:
            w.conv(f"neck.reassemble_stage.layers.{i}.resize", width, width, factor if factor > 1 else 3)
        w.conv(f"neck.convs.{i}", fusion, width, 3, bias=False)
        own = f"neck.fusion_stage.layers.{i}."
        w.conv(own + "projection", fusion, fusion, 1)
        norms = c.get("use_batch_norm_in_fusion_residual", False)
        for layer in "12":
            for n in "12":
                w.conv(f"{own}residual_layer{layer}.convolution{n}", fusion, fusion, 3, c.get("use_bias_in_fusion_residual", not norms))
                if norms:
                    w.batch_norm(f"{own}residual_layer{layer}.batch_norm{n}", fusion)
    if c["architectures"][0].endswith("ForSemanticSegmentation"):
        w.conv("head.head.0", fusion, fusion, 3, bias=False)
        w.batch_norm("head.head.1", fusion)
        w.conv("head.head.4", LABELS, fusion, 1)
        c["id2label"] = {str(i): f"segment {i}" for i in range(LABELS)}
        return w.conv("auxiliary_head.head.0", fusion, fusion, 3)
    if c["model_type"] == "depth_anything":
        names, hidden = ("head.conv1", "head.conv2", "head.conv3"), c["head_hidden_size"]
    else:
        names, hidden = ("head.head.0", "head.head.2", "head.head.4"), 32
        if c.get("add_projection"):
            w.conv("head.projection", fusion, fusion, 3)
    w.conv(names[0], fusion // 2, fusion, 3)
    w.conv(names[1], hidden, fusion // 2, 3)
    w.conv(names[2], 1, hidden, 1)


def tower_config(kind, layers=LAYERS, **changes):
    c = {"hidden_size": WIDTH, "num_hidden_layers": layers, "num_attention_heads": HEADS, "hidden_act": "gelu", "patch_size": PATCH}
    if not kind.startswith("dinov2"):
        c["intermediate_size"] = INNER
    if kind != "siglip2":
        c["image_size"] = SIDE
    return c | CONFIGS[kind] | changes


def segment_weights(w, c):
    def unit(name, channels, kernel=1):
        w.conv(f"decode_head.{name}.conv", WIDTH, channels, kernel, bias=False)
        w.batch_norm(f"decode_head.{name}.bn", WIDTH)
    for name in "fpn1.0", "fpn1.3", "fpn2.0":
        w.conv(name, WIDTH, WIDTH, 2)
    w.batch_norm("fpn1.1", WIDTH)
    for n, _ in enumerate(c["pool_scales"]):
        unit(f"psp_modules.{n}.1", WIDTH)
    for n in range(3):
        unit(f"lateral_convs.{n}", WIDTH)
        unit(f"fpn_convs.{n}", WIDTH, 3)
    unit("bottleneck", WIDTH * (1 + len(c["pool_scales"])), 3)
    unit("fpn_bottleneck", 4 * WIDTH, 3)
    w.conv("decode_head.classifier", LABELS, WIDTH, 1)
    w.conv("auxiliary_head.classifier", LABELS, WIDTH, 1)  # which only training reads


def tiny(model_type, architecture, seed=0, **changes):
    kind, w = towers_of(model_type), Weights(seed)
    text = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": INNER, "vocab_size":
            VOCABULARY, "max_position_embeddings": TOKENS, "layer_norm_eps": 1e-5 if kind.startswith("clip") else 1e-6,
            "hidden_act": "quick_gelu" if kind.startswith("clip") else "gelu_pytorch_tanh", "eos_token_id": 40}
    named = {"model_type": model_type, "architectures": [architecture]}
    if model_type in ("clip", "siglip", "siglip2"):
        c = named | {"text_config": text | changes.pop("text", {}), "vision_config": tower_config(kind, **changes)}
        vision_weights(w, c["vision_config"], kind, "vision_model.")
        if architecture.endswith("ForImageClassification"):
            w.linear("classifier", LABELS, WIDTH)
            return c, w
        text_weights(w, c["text_config"], kind, "text_model.")
        if kind == "clip":
            w.draw("visual_projection.weight", 24, WIDTH)
            w.draw("text_projection.weight", 24, WIDTH)
        w["logit_scale"] = np.array([2.0] if kind != "clip" else 2.0, "f4")
        if kind != "clip":
            w["logit_bias"] = np.array([-3.0], "f4")
        return c, w
    if model_type.endswith("_text_model"):
        c = named | text | changes
        text_weights(w, c, kind, "text_model.")
        if architecture.endswith("WithProjection"):
            w.draw("text_projection.weight", 24, WIDTH)
        return c, w
    if kind == "depth_anything":
        backbone = tower_config("dinov2", layers=4) | {"model_type": "dinov2", "out_indices": [1, 2, 3, 4]}
        c = named | {"backbone_config": backbone, "patch_size": PATCH, "reassemble_hidden_size": WIDTH, "reassemble_factors": [4, 2, 1, 0.5],
                     "neck_hidden_sizes": [6, 8, 10, 12], "fusion_hidden_size": 8, "head_hidden_size": 5} | changes
        vision_weights(w, backbone, "dinov2", "backbone.")
        neck_weights(w, c)
        return c, w
    if kind == "dpt" and "backbone_config" in changes:
        kind = changes["backbone_config"]["model_type"]
        backbone = tower_config(kind, layers=4) | {"out_indices": [1, 2, 3, 4]} | changes.pop("backbone_config")
        c = named | {"backbone_config": backbone, "reassemble_factors": [4, 2, 1, 0.5], "neck_hidden_sizes": [6, 8, 10, 12],
                     "fusion_hidden_size": 8, "readout_type": "project", "hidden_act": "gelu"} | changes
        vision_weights(w, backbone, kind, "backbone.")
        neck_weights(w, c)
        return c, w
    c = named | tower_config(kind, **changes)
    base = architecture.endswith("Model")
    p = "vision_model." if kind in ("clip", "siglip", "siglip2", "blip") else "" if base else PREFIXES.get(model_type, PREFIXES.get(kind))
    if kind == "dpt":
        c = named | tower_config(kind, layers=4) | {"reassemble_factors": [4, 2, 1, 0.5], "neck_hidden_sizes": [6, 8, 10, 12],
                                                    "fusion_hidden_size": 8} | changes
        neck_weights(w, c)
    vision_weights(w, c, kind, p)
    if base and kind in ("vit", "deit", "yolos"):
        w.linear(p + "pooler.dense", c.get("pooler_output_size", WIDTH), WIDTH)
    if kind == "beit" and architecture.endswith("ForSemanticSegmentation"):
        segment_weights(w, c)
    elif kind == "beit" and c["use_mean_pooling"]:
        w.norm(p + "pooler.layernorm")
    if architecture.endswith("VisionModelWithProjection"):
        w.draw("visual_projection.weight", 24, WIDTH)
    if architecture.endswith("ForImageClassification"):
        w.linear("classifier", LABELS, WIDTH * (2 if kind.startswith("dinov2") else 1))
    if architecture.endswith("WithTeacher"):
        w.linear("cls_classifier", LABELS, WIDTH)
        w.linear("distillation_classifier", LABELS, WIDTH)
    if architecture.endswith("ForObjectDetection"):
        for name, out in ("class_labels_classifier", LABELS + 1), ("bbox_predictor", 4):
            for n in range(3):
                w.linear(f"{name}.layers.{n}", out if n == 2 else WIDTH, WIDTH)
    return c, w
