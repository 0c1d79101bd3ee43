"""Computes networks for pictures in NumPy with double precision: readings of transformers' models/*/modeling_*.py and of timm's
models/*.py that are independent of mlc. A reading asks for tensors by their names in a folder, with their shapes; those that a
`Net` lacks are drawn at random, so that a reading also makes the tensors of a tiny folder."""
import math

import numpy as np

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.maximum(x, -500)))


ACTIVATIONS = {"": lambda x: x, "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "sigmoid": sigmoid,
               "silu": lambda x: x * sigmoid(x), "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
               "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6, "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6}


class Net:
    """Layers with random weights; pictures are [C, H, W], tokens [..., C]."""

    def __init__(self, prefix="", seed=0):
        self.tensors, self.prefix, self.rng = {}, prefix, np.random.default_rng(seed)

    def tensor(self, name, *shape, prefix=None):
        name = (self.prefix if prefix is None else prefix) + name
        if name not in self.tensors:
            kind = name.rsplit(".", 1)[-1]
            value = self.rng.normal(size=shape) * (min(1, (1.5 / max(np.prod(shape[1:]), 1)) ** 0.5) if len(shape) > 1 else 0.1)
            if kind == "running_var":
                value = self.rng.uniform(0.5, 1.5, shape)
            elif len(shape) == 1 and kind in ("weight", "gamma", "layer_scale_parameter"):
                value = 1 + value
            self.tensors[name] = value.astype("f4")
        assert self.tensors[name].shape == shape, (name, shape)
        return self.tensors[name].astype("f8")

    def linear(self, name, x, out, bias=True, prefix=None):
        y = x @ self.tensor(name + ".weight", out, x.shape[-1], prefix=prefix).T
        return y + self.tensor(name + ".bias", out, prefix=prefix) if bias else y

    def layer_norm(self, name, x, epsilon):
        centred = x - x.mean(-1, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        return y * self.tensor(name + ".weight", x.shape[-1]) + self.tensor(name + ".bias", x.shape[-1])

    def map_norm(self, name, x, epsilon):
        return self.layer_norm(name, x.transpose(1, 2, 0), epsilon).transpose(2, 0, 1)

    def conv(self, name, x, out, kernel=1, stride=1, pad=None, groups=1, dilation=1, bias=False, prefix=None):
        """`pad` is the number of rows and columns on all sides, or (before, after) of the rows and of the columns."""
        weight = self.tensor(name + ".weight", out, len(x) // groups, kernel, kernel, prefix=prefix)
        pad = dilation * (kernel - 1) // 2 if pad is None else pad
        pad = [(pad, pad)] * 2 if isinstance(pad, int) else pad
        x = np.pad(x, [(0, 0), *pad])
        reach = dilation * (kernel - 1) + 1
        windows = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (1, 2))[:, ::stride, ::stride, ::dilation, ::dilation]
        windows = windows.reshape(groups, -1, *windows.shape[1:])
        y = np.einsum("gchwyx,gocyx->gohw", windows, weight.reshape(groups, out // groups, *weight.shape[1:]), optimize=True).reshape(out, *windows.shape[2:4])
        return y + self.tensor(name + ".bias", out, prefix=prefix)[:, None, None] if bias else y

    def batch_norm(self, name, x, epsilon=1e-5, prefix=None):
        weight, bias, mean, variance = (self.tensor(f"{name}.{part}", len(x), prefix=prefix)[:, None, None]
                                        for part in ("weight", "bias", "running_mean", "running_var"))
        return (x - mean) / np.sqrt(variance + epsilon) * weight + bias

    def attention(self, names, x, keys, values, heads, width, biases=(True, True, True)):
        """Attention with projections of these names: queries, keys, values and output."""
        q, k, v = (np.stack(np.split(self.linear(name, of, width, bias), heads, -1))
                   for name, of, bias in zip(names, (x, keys, values), biases))
        return self.linear(names[3], np.concatenate(list(attend(q, k, v)), -1), width)


def attend(q, k, v, bias=0, scale=None):
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ v


def pool(x, kind, kernel=3, stride=2, pad=1):
    x = np.pad(x, [(0, 0), (pad, pad), (pad, pad)], constant_values=-np.inf if kind == "max" else np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (1, 2))[:, ::stride, ::stride]
    return windows.max((-1, -2)) if kind == "max" else np.nanmean(windows, (-1, -2))


def halved(x):
    """The average of 2 x 2 neighbours; a last odd row or column is averaged alone."""
    x = np.pad(x, [(0, 0), (0, x.shape[1] % 2), (0, x.shape[2] % 2)], constant_values=np.nan)
    return np.nanmean(x.reshape(len(x), x.shape[1] // 2, 2, x.shape[2] // 2, 2), (2, 4))


def same(x, kernel, stride, dilation=1):
    """TensorFlow's padding: as much as ceil(size / stride) windows need, the odd pixel behind."""
    pads = []
    for size in x.shape[1:]:
        missing = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
        pads.append((missing // 2, missing - missing // 2))
    return pads


def resized(x, height, width):
    """Bilinear, corners not aligned."""
    for axis, size in ((1, height), (2, width)):
        old = x.shape[axis]
        at = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, None)
        low = np.minimum(at.astype(int), old - 1)
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(3)])
        x = np.take(x, low, axis) * (1 - share) + np.take(x, np.minimum(low + 1, old - 1), axis) * share
    return x


def tokens(x):
    return x.reshape(len(x), -1).T


def divisible(value, divisor=8, least=None, limit=0.9):
    rounded = max(least or divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < limit * value else rounded


def head(net, config, x, name, base, pooled=None, out=None):
    """The outputs of a classifier, or of its base model."""
    mean = x.mean((1, 2)) if pooled is None else pooled
    if not config["architectures"][0].endswith("ForImageClassification"):
        return {"last_hidden_state": x[None] if out is None else out[None], "pooler_output": base(mean)[None]}
    return {"logits": net.linear(name, mean, len(config["id2label"]), prefix="")[None]}


def flat(mean):
    return mean


def as_map(mean):
    return mean[:, None, None]


def resnet(net, c, x):
    act = ACTIVATIONS[c["hidden_act"]]

    # The convolutions within blocks have no key for their activation.
    def unit(name, x, out, last=False, act=ACTIVATIONS["relu"], **window):
        y = net.batch_norm(name + ".normalization", net.conv(name + ".convolution", x, out, **window))
        return y if last else act(y)
    x = pool(unit("embedder.embedder", x, c["embedding_size"], act=act, kernel=7, stride=2), "max")
    for s, (depth, out) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        for i in range(depth):
            stride = 2 if i == 0 and (s or c["downsample_in_first_stage"]) else 1
            name = f"encoder.stages.{s}.layers.{i}."
            short = unit(name + "shortcut", x, out, True, stride=stride) if stride > 1 or len(x) != out else x
            if c["layer_type"] == "basic":
                y = unit(name + "layer.0", x, out, kernel=3, stride=stride)
                y = unit(name + "layer.1", y, out, True, kernel=3)
            else:
                first = c["downsample_in_bottleneck"]
                y = unit(name + "layer.0", x, out // 4, stride=stride if first else 1)
                y = unit(name + "layer.1", y, out // 4, kernel=3, stride=1 if first else stride)
                y = unit(name + "layer.2", y, out, True)
            x = act(y + short)
    return head(net, c, x, "classifier.1", as_map)


def regnet(net, c, x):
    act = ACTIVATIONS[c["hidden_act"]]

    def unit(name, x, out, last=False, **window):
        y = net.batch_norm(name + ".normalization", net.conv(name + ".convolution", x, out, **window))
        return y if last else act(y)
    x = unit("embedder.embedder", x, c["embedding_size"], kernel=3, stride=2)
    for s, (depth, out) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        for i in range(depth):
            stride = 2 if i == 0 and (s or c["downsample_in_first_stage"]) else 1
            name = f"encoder.stages.{s}.layers.{i}."
            y = unit(name + "layer.0", x, out)
            y = unit(name + "layer.1", y, out, kernel=3, stride=stride, groups=max(1, out // c["groups_width"]))
            if c["layer_type"] == "y":
                inner = round(len(x) / 4)
                gate = np.maximum(net.conv(name + "layer.2.attention.0", y.mean((1, 2), keepdims=True), inner, bias=True), 0)
                y = y * sigmoid(net.conv(name + "layer.2.attention.2", gate, out, bias=True))
            y = unit(name + ("layer.3" if c["layer_type"] == "y" else "layer.2"), y, out, True)
            short = unit(name + "shortcut", x, out, True, stride=stride) if stride > 1 or len(x) != out else x
            x = act(y + short)
    return head(net, c, x, "classifier.1", as_map)


def convnext(net, c, x):
    kind, epsilon = c["model_type"], 1e-6
    dino = kind == "dinov3_convnext"
    stage = "stages.{}." if dino else "encoder.stages.{}."
    down = stage + ("downsample_layers.{}" if dino else "downsampling_layer.{}")
    names = (("depthwise_conv", "layer_norm", "pointwise_conv1", "pointwise_conv2", "gamma") if dino
             else ("dwconv", "layernorm", "pwconv1", "pwconv2", "layer_scale_parameter"))
    stem = (down.format(0, 0), down.format(0, 1)) if dino else ("embeddings.patch_embeddings", "embeddings.layernorm")
    x = net.map_norm(stem[1], net.conv(stem[0], x, c["hidden_sizes"][0], 4, 4, 0, bias=True), epsilon)
    for s, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        if s:
            x = net.conv(down.format(s, 1), net.map_norm(down.format(s, 0), x, epsilon), width, 2, 2, 0, bias=True)
        for i in range(depth):
            name = stage.format(s) + f"layers.{i}."
            y = net.conv(name + names[0], x, width, 7, groups=width, bias=True).transpose(1, 2, 0)
            y = ACTIVATIONS["gelu"](net.linear(name + names[2], net.layer_norm(name + names[1], y, epsilon), 4 * width))
            if kind == "convnextv2":
                length = np.sqrt((y**2).sum((0, 1), keepdims=True))
                share = length / (length.mean(-1, keepdims=True) + 1e-6)
                y = (net.tensor(name + "grn.weight", 1, 1, 1, 4 * width)[0] * (y * share)
                     + net.tensor(name + "grn.bias", 1, 1, 1, 4 * width)[0] + y)
            y = net.linear(name + names[3], y, width)
            if kind != "convnextv2":
                y = y * net.tensor(name + names[4], width)
            x = x + y.transpose(2, 0, 1)
    if dino:
        all_tokens = net.layer_norm("layer_norm", np.concatenate([x.mean((1, 2))[None], tokens(x)]), epsilon)
        return {"last_hidden_state": all_tokens[None], "pooler_output": all_tokens[:1]}
    return head(net, c, x, "classifier", flat, net.layer_norm("layernorm", x.mean((1, 2)), c.get("layer_norm_eps", 1e-12)))


def mobilenet(net, c, x):
    epsilon, tf, multiplier = 1e-3, c["tf_padding"], c["depth_multiplier"]

    def unit(name, x, out, kernel=1, stride=1, groups=1, dilation=1, last=False):
        pad = same(x, kernel, stride, dilation) if tf else None
        y = net.conv(name + ".convolution", x, out, kernel, stride, pad, groups, dilation)
        y = net.batch_norm(name + ".normalization", y, epsilon)
        return y if last else np.clip(y, 0, 6)
    if c["model_type"] == "mobilenet_v1":
        width = 32
        x = unit("conv_stem", x, max(int(width * multiplier), 8), 3, 2)
        for i, stride in enumerate([1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]):
            width *= 2 if stride == 2 or i == 0 else 1
            x = unit(f"layer.{2 * i}", x, len(x), 3, stride, len(x))
            x = unit(f"layer.{2 * i + 1}", x, max(int(width * multiplier), 8))
        return head(net, c, x, "classifier", flat)

    def scaled(width):
        return divisible(int(round(width * multiplier)), 8, 8)
    x = unit("conv_stem.first_conv", x, scaled(32), 3, 2)
    if not c.get("first_layer_is_expansion", True):
        x = unit("conv_stem.expand_1x1", x, scaled(32))
    x = unit("conv_stem.conv_3x3", x, scaled(32), 3, 1, scaled(32))
    x = unit("conv_stem.reduce_1x1", x, scaled(16), last=True)
    so_far, dilation = 2, 1
    widths, strides = [24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320], [2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1]
    for i, (width, stride) in enumerate(zip(widths, strides)):
        own, inner = dilation, divisible(int(round(len(x) * 6.0)), 8, 8)
        if so_far == c.get("output_stride", 32):
            dilation, stride = dilation * stride, 1
        else:
            own, so_far = 1, so_far * stride
        y = unit(f"layer.{i}.expand_1x1", x, inner)
        y = unit(f"layer.{i}.conv_3x3", y, inner, 3, stride, inner, own)
        y = unit(f"layer.{i}.reduce_1x1", y, scaled(width), last=True)
        x = x + y if stride == 1 and len(x) == len(y) else y
    if "SemanticSegmentation" in c["architectures"][0]:
        def joined(name, x):
            y = net.conv(f"segmentation_head.{name}.convolution", x, 256, prefix="")
            return np.maximum(net.batch_norm(f"segmentation_head.{name}.normalization", y, prefix=""), 0)
        mean = joined("conv_pool", x.mean((1, 2), keepdims=True))
        y = joined("conv_aspp", x)
        y = joined("conv_projection", np.concatenate([mean + 0 * y, y]))
        unit("conv_1x1", x, 1280)  # which is stored, and not read
        return {"logits": net.conv("segmentation_head.classifier.convolution", y, len(c["id2label"]), bias=True, prefix="")[None]}
    x = unit("conv_1x1", x, 1280 if multiplier < 1 and c.get("finegrained_output", True) else scaled(1280))
    return head(net, c, x, "classifier", flat)


def efficientnet(net, c, x):
    act = ACTIVATIONS["silu"]

    def width(filters):
        return divisible(filters * c["width_coefficient"])
    x = net.conv("embeddings.convolution", x, width(32), 3, 2, [(0, 1), (0, 1)])
    x = act(net.batch_norm("embeddings.batchnorm", x, 1e-3))
    number, stages = 0, zip(c["in_channels"], c["out_channels"], c["kernel_sizes"], c["strides"], c["num_block_repeats"], c["expand_ratios"])
    for before, out, kernel, stride, repeats, ratio in stages:
        for i in range(math.ceil(repeats * c["depth_coefficient"])):
            name, y = f"encoder.blocks.{number}.", x
            inner, s = width(out if i else before) * ratio, 1 if i else stride
            if ratio != 1:
                y = act(net.batch_norm(name + "expansion.expand_bn", net.conv(name + "expansion.expand_conv", y, inner), 1e-3))
            half = kernel // 2
            pad = half if s == 1 or number in c["depthwise_padding"] else [(half - 1, half)] * 2
            y = net.conv(name + "depthwise_conv.depthwise_conv", y, inner, kernel, s, pad, inner)
            y = act(net.batch_norm(name + "depthwise_conv.depthwise_norm", y, 1e-3))
            gate = act(net.conv(name + "squeeze_excite.reduce", y.mean((1, 2), keepdims=True), max(1, int(len(x) * 0.25)), bias=True))
            y = y * sigmoid(net.conv(name + "squeeze_excite.expand", gate, inner, bias=True))
            y = net.batch_norm(name + "projection.project_bn", net.conv(name + "projection.project_conv", y, width(out)), 1e-3)
            x, number = x + y if i else y, number + 1
    x = act(net.batch_norm("encoder.top_bn", net.conv("encoder.top_conv", x, width(1280)), 1e-3))
    return head(net, c, x, "classifier", flat, x.max((1, 2)) if c["pooling_type"] == "max" else None)


def mobilevit(net, c, x):
    act, necks, p = ACTIVATIONS["silu"], c["neck_hidden_sizes"], c["patch_size"]

    def unit(name, x, out, last=False, prefix=None, relu=False, **window):
        y = net.batch_norm(name + ".normalization", net.conv(name + ".convolution", x, out, prefix=prefix, **window), prefix=prefix)
        return y if last else np.maximum(y, 0) if relu else act(y)

    def inverted(name, x, out, stride, dilation=1):
        inner = divisible(int(round(len(x) * c["expand_ratio"])))
        y = unit(name + "expand_1x1", x, inner)
        y = unit(name + "conv_3x3", y, inner, kernel=3, stride=stride, groups=inner, dilation=dilation)
        y = unit(name + "reduce_1x1", y, out, True)
        return x + y if stride == 1 and len(x) == out else y
    x = unit("conv_stem", x, necks[0], kernel=3, stride=2)
    x = inverted("encoder.layer.0.layer.0.", x, necks[1], 1)
    for i in range(3):
        x = inverted(f"encoder.layer.1.layer.{i}.", x, necks[2], 1 if i else 2)
    so_far, dilation = 4, 1
    for s, (width, layers) in enumerate(zip(c["hidden_sizes"], (2, 4, 3)), 2):
        name = f"encoder.layer.{s}."
        if so_far < c["output_stride"]:
            so_far *= 2
            x = inverted(name + "downsampling_layer.", x, necks[s + 1], 2)
        else:
            x = inverted(name + "downsampling_layer.", x, necks[s + 1], 1, dilation)
            dilation *= 2
        y = net.conv(name + "conv_1x1.convolution", unit(name + "conv_kxk", x, len(x), kernel=3), width)
        (h, w), rows, columns = y.shape[1:], -(-y.shape[1] // p), -(-y.shape[2] // p)
        y = resized(y, rows * p, columns * p) if (rows * p, columns * p) != (h, w) else y
        y = y.reshape(width, rows, p, columns, p).transpose(2, 4, 1, 3, 0).reshape(p * p, rows * columns, width)
        for i in range(layers):
            own = f"{name}transformer.layer.{i}."
            names = [own + "attention.attention." + part for part in ("query", "key", "value")] + [own + "attention.output.dense"]
            normed = net.layer_norm(own + "layernorm_before", y, 1e-5)
            y = y + net.attention(names, normed, normed, normed, 4, width, [c.get("qkv_bias", True)] * 3)
            inner = act(net.linear(own + "intermediate.dense", net.layer_norm(own + "layernorm_after", y, 1e-5), int(2 * width)))
            y = y + net.linear(own + "output.dense", inner, width)
        y = net.layer_norm(name + "layernorm", y, 1e-5)
        y = y.reshape(p, p, rows, columns, width).transpose(4, 2, 0, 3, 1).reshape(width, rows * p, columns * p)
        y = resized(y, h, w) if (rows * p, columns * p) != (h, w) else y
        x = unit(name + "fusion", np.concatenate([x, unit(name + "conv_projection", y, len(x))]), len(x), kernel=3)
    if "SemanticSegmentation" in c["architectures"][0]:
        own, width = "segmentation_head.aspp.", c["aspp_out_channels"]
        maps = [unit(own + "convs.0", x, width, prefix="", relu=True)]
        maps += [unit(own + f"convs.{i}", x, width, prefix="", relu=True, kernel=3, dilation=r) for i, r in enumerate(c["atrous_rates"], 1)]
        mean = unit(own + "convs.4.conv_1x1", x.mean((1, 2), keepdims=True), width, prefix="", relu=True)
        y = unit(own + "project", np.concatenate([*maps, mean + 0 * maps[0]]), width, prefix="", relu=True)
        return {"logits": net.conv("segmentation_head.classifier.convolution", y, len(c["id2label"]), bias=True, prefix="")[None]}
    return head(net, c, unit("conv_1x1_exp", x, necks[6]), "classifier", flat)


def mobilevit2(net, c, x):
    act, p, times = ACTIVATIONS["silu"], 2, c["width_multiplier"]

    def unit(name, x, out, last=False, prefix=None, relu=False, **window):
        y = net.batch_norm(name + ".normalization", net.conv(name + ".convolution", x, out, prefix=prefix, **window), prefix=prefix)
        return y if last else np.maximum(y, 0) if relu else act(y)

    def inverted(name, x, out, stride, dilation=1):
        inner = divisible(int(round(len(x) * c.get("expand_ratio", 2))))
        y = unit(name + "expand_1x1", x, inner)
        y = unit(name + "conv_3x3", y, inner, kernel=3, stride=stride, groups=inner, dilation=dilation)
        y = unit(name + "reduce_1x1", y, out, True)
        return x + y if stride == 1 and len(x) == out else y

    def normed(name, x):
        y = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        return y * net.tensor(name + ".weight", len(x))[:, None, None] + net.tensor(name + ".bias", len(x))[:, None, None]
    x = unit("conv_stem", x, divisible(min(max(32 * times, 16), 64), 8, 16), kernel=3, stride=2)
    x = inverted("encoder.layer.0.layer.0.", x, divisible(64 * times, 16), 1)
    for i in range(2):
        x = inverted(f"encoder.layer.1.layer.{i}.", x, divisible(128 * times), 1 if i else 2)
    so_far, dilation = 4, 1
    for s, (out, base, layers) in enumerate(zip((256, 384, 512), c["base_attn_unit_dims"], c["n_attn_blocks"]), 2):
        name, width = f"encoder.layer.{s}.", divisible(base * times)
        if so_far < c.get("output_stride", 32):
            so_far *= 2
            x = inverted(name + "downsampling_layer.", x, divisible(out * times), 2)
        else:
            x = inverted(name + "downsampling_layer.", x, divisible(out * times), 1, dilation)
            dilation *= 2
        y = net.conv(name + "conv_1x1.convolution", unit(name + "conv_kxk", x, len(x), kernel=3, groups=len(x)), width)
        rows, columns = y.shape[1] // p, y.shape[2] // p
        y = y.reshape(width, rows, p, columns, p).transpose(0, 2, 4, 1, 3).reshape(width, p * p, rows * columns)
        for i in range(layers):
            own = f"{name}transformer.layer.{i}."
            all_ = net.conv(own + "attention.qkv_proj.convolution", normed(own + "layernorm_before", y), 1 + 2 * width, bias=True)
            scores = np.exp(all_[:1] - all_[:1].max(-1, keepdims=True))
            context = (all_[1:1 + width] * scores / scores.sum(-1, keepdims=True)).sum(-1, keepdims=True)
            y = y + net.conv(own + "attention.out_proj.convolution", np.maximum(all_[1 + width:], 0) * context, width, bias=True)
            inner = int(c.get("ffn_multiplier", 2) * width // 16 * 16)
            z = act(net.conv(own + "ffn.conv1.convolution", normed(own + "layernorm_after", y), inner, bias=True))
            y = y + net.conv(own + "ffn.conv2.convolution", z, width, bias=True)
        y = normed(name + "layernorm", y).reshape(width, p, p, rows, columns).transpose(0, 3, 1, 4, 2)
        x = unit(name + "conv_projection", y.reshape(width, rows * p, columns * p), len(x), True)
    if "SemanticSegmentation" in c["architectures"][0]:
        own, width = "segmentation_head.aspp.", c["aspp_out_channels"]
        maps = [unit(own + "convs.0", x, width, prefix="", relu=True)]
        maps += [unit(own + f"convs.{i}", x, width, prefix="", relu=True, kernel=3, dilation=r) for i, r in enumerate(c["atrous_rates"], 1)]
        mean = unit(own + "convs.4.conv_1x1", x.mean((1, 2), keepdims=True), width, prefix="", relu=True)
        y = unit(own + "project", np.concatenate([*maps, mean + 0 * maps[0]]), width, prefix="", relu=True)
        return {"logits": net.conv("segmentation_head.classifier.convolution", y, len(c["id2label"]), bias=True, prefix="")[None]}
    return head(net, c, x, "classifier", flat)


def swin_tokens(net, c, x):
    second, p, window = c["model_type"] == "swinv2", c["patch_size"], c["window_size"]
    epsilon = c.get("layer_norm_eps", 1e-5)  # which the norms of patches and of merged ones do not read
    x = net.conv("embeddings.patch_embeddings.projection", x, c["embed_dim"], p, p, 0, bias=True).transpose(1, 2, 0)
    x = net.layer_norm("embeddings.norm", x, 1e-5)

    def attention(name, x, heads, w, shift, pretrained):
        h, v, width = x.shape
        x = np.pad(x, [(0, -h % w), (0, -v % w), (0, 0)])
        rows, columns = x.shape[0] // w, x.shape[1] // w
        region = np.zeros(x.shape[:2])
        if shift:
            x = np.roll(x, (-shift, -shift), (0, 1))
            cut = [slice(0, -w), slice(-w, -shift), slice(-shift, None)]
            for i, a in enumerate(cut):
                for j, b in enumerate(cut):
                    region[a, b] = 3 * i + j
        x = x.reshape(rows, w, columns, w, width).swapaxes(1, 2).reshape(-1, w * w, width)
        region = region.reshape(rows, w, columns, w).swapaxes(1, 2).reshape(-1, w * w)
        mask = np.where(region[:, :, None] != region[:, None, :], c.get("apart", -200.0 if second else -100.0), 0)[:, None]
        q, k, v_ = (net.linear(f"{name}.self.{part}", x, width, not (second and part == "key")) for part in ("query", "key", "value"))
        q, k, v_ = (y.reshape(len(x), w * w, heads, -1).swapaxes(1, 2) for y in (q, k, v_))
        at = np.stack(np.meshgrid(np.arange(w), np.arange(w), indexing="ij"), -1).reshape(-1, 2)
        apart = at[:, None] - at[None] + w - 1
        index = apart[..., 0] * (2 * w - 1) + apart[..., 1]
        if second:
            grid = np.arange(1 - w, w) / (pretrained - 1 if pretrained else max(w - 1, 1)) * 8
            grid = np.sign(grid) * np.log2(np.abs(grid) + 1) / 3
            distances = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
            inner = np.maximum(net.linear(name + ".self.continuous_position_bias_mlp.0", distances, 512), 0)
            table = 16 * sigmoid(net.linear(name + ".self.continuous_position_bias_mlp.2", inner, heads, False))
            q, k = (y / np.maximum(np.linalg.norm(y, axis=-1, keepdims=True), 1e-12) for y in (q, k))
            q = q * np.exp(np.minimum(net.tensor(name + ".self.logit_scale", heads, 1, 1), math.log(100)))
        else:
            table = net.tensor(name + ".self.relative_position_bias_table", (2 * w - 1) ** 2, heads)
        y = attend(q, k, v_, table[index].transpose(2, 0, 1)[None] + mask, 1 if second else None)
        y = net.linear(name + ".output.dense", y.swapaxes(1, 2).reshape(len(x), w * w, width), width)
        y = y.reshape(rows, columns, w, w, width).swapaxes(1, 2).reshape(rows * w, columns * w, width)
        return np.roll(y, (shift, shift), (0, 1))[:h, :v]
    for s, (depth, heads) in enumerate(zip(c["depths"], c["num_heads"])):
        for i in range(depth):
            name, width = f"encoder.layers.{s}.blocks.{i}.", x.shape[-1]
            least = c["image_size"] // p >> s if second else min(x.shape[:2])
            w, shift = (least, 0) if least <= window else (window, i % 2 * (window // 2))

            def part(y, norm, run):
                if second:
                    return y + net.layer_norm(name + norm, run(y), epsilon)
                return y + run(net.layer_norm(name + norm, y, epsilon))
            pretrained = c["pretrained_window_sizes"][s] if second else 0
            x = part(x, "layernorm_before", lambda y: attention(name + "attention", y, heads, w, shift, pretrained))
            x = part(x, "layernorm_after", lambda y: net.linear(name + "output.dense", ACTIVATIONS["gelu"](
                net.linear(name + "intermediate.dense", y, int(4 * width))), width))
        if s + 1 < len(c["depths"]):
            name, width = f"encoder.layers.{s}.downsample.", x.shape[-1]
            x = np.pad(x, [(0, x.shape[0] % 2), (0, x.shape[1] % 2), (0, 0)])
            x = np.concatenate([x[0::2, 0::2], x[1::2, 0::2], x[0::2, 1::2], x[1::2, 1::2]], -1)
            x = x if second else net.layer_norm(name + "norm", x, 1e-5)
            x = net.linear(name + "reduction", x, 2 * width, False)
            x = net.layer_norm(name + "norm", x, 1e-5) if second else x
    return x.reshape(-1, x.shape[-1])


def swin(net, c, x):
    x = net.layer_norm("layernorm", swin_tokens(net, c, x), c.get("layer_norm_eps", 1e-5))
    return head(net, c, None, "classifier", flat, x.mean(0), x)


def segformer(net, c, x):
    maps, kind = [], c["architectures"][0]
    for s, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        kernel, stride, heads, ratio = c["patch_sizes"][s], c["strides"][s], c["num_attention_heads"][s], c["sr_ratios"][s]
        x = net.conv(f"encoder.patch_embeddings.{s}.proj", x, width, kernel, stride, kernel // 2, bias=True)
        size = x.shape[1:]
        x = net.layer_norm(f"encoder.patch_embeddings.{s}.layer_norm", tokens(x), 1e-5)
        for i in range(depth):
            name = f"encoder.block.{s}.{i}."
            q = k = net.layer_norm(name + "layer_norm_1", x, 1e-5)
            if ratio > 1:
                k = tokens(net.conv(name + "attention.self.sr", q.T.reshape(width, *size), width, ratio, ratio, 0, bias=True))
                k = net.layer_norm(name + "attention.self.layer_norm", k, 1e-5)
            names = [name + "attention.self." + part for part in ("query", "key", "value")] + [name + "attention.output.dense"]
            x = x + net.attention(names, q, k, k, heads, width)
            inner = width * c["mlp_ratios"][s]
            y = net.linear(name + "mlp.dense1", net.layer_norm(name + "layer_norm_2", x, 1e-5), inner)
            y = net.conv(name + "mlp.dwconv.dwconv", y.T.reshape(inner, *size), inner, 3, groups=inner, bias=True)
            x = x + net.linear(name + "mlp.dense2", ACTIVATIONS["gelu"](tokens(y)), width)
        x = net.layer_norm(f"encoder.layer_norm.{s}", x, 1e-5).T.reshape(width, *size)
        maps.append(x)
    if kind.endswith("ForImageClassification"):
        return head(net, c, x, "classifier", flat)
    if not kind.endswith("ForSemanticSegmentation"):
        return {"last_hidden_state": x[None]}
    size, width = maps[0].shape[1:], c["decoder_hidden_size"]
    levels = [resized(net.linear(f"decode_head.linear_c.{i}.proj", tokens(y), width, prefix="").T.reshape(width, *y.shape[1:]), *size)
              for i, y in enumerate(maps)]
    y = net.conv("decode_head.linear_fuse", np.concatenate(levels[::-1]), width, prefix="")
    y = np.maximum(net.batch_norm("decode_head.batch_norm", y, prefix=""), 0)
    return {"logits": net.conv("decode_head.classifier", y, len(c["id2label"]), bias=True, prefix="")[None]}


def pvt2(net, c, x):
    epsilon = 1e-6
    for s, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        kernel, ratio = c["patch_sizes"][s], c["sr_ratios"][s]
        stage = f"encoder.layers.{s}."
        x = net.conv(stage + "patch_embedding.proj", x, width, kernel, c["strides"][s], kernel // 2, bias=True)
        size = x.shape[1:]
        x = net.layer_norm(stage + "patch_embedding.layer_norm", tokens(x), epsilon)
        for i in range(depth):
            name = f"{stage}blocks.{i}."
            q = k = net.layer_norm(name + "layer_norm_1", x, epsilon)
            if ratio > 1:
                k = net.conv(name + "attention.spatial_reduction", q.T.reshape(width, *size), width, ratio, ratio, 0, bias=True)
                k = net.layer_norm(name + "attention.layer_norm", tokens(k), epsilon)
            names = [name + "attention." + part for part in ("query", "key", "value", "proj")]
            x = x + net.attention(names, q, k, k, c["num_attention_heads"][s], width, (c.get("qkv_bias", True),) * 3)
            inner = width * c["mlp_ratios"][s]
            y = net.linear(name + "mlp.dense1", net.layer_norm(name + "layer_norm_2", x, epsilon), inner)
            y = net.conv(name + "mlp.dwconv.dwconv", y.T.reshape(inner, *size), inner, 3, groups=inner, bias=True)
            x = x + net.linear(name + "mlp.dense2", ACTIVATIONS["gelu"](tokens(y)), width)
        x = net.layer_norm(stage + "layer_norm", x, epsilon).T.reshape(width, *size)
    if c["architectures"][0].endswith("ForImageClassification"):
        return head(net, c, x, "classifier", flat)
    return {"last_hidden_state": x[None]}


def pvt(net, c, x):
    epsilon, last = 1e-6, len(c["depths"]) - 1
    for s, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        ratio, name = c["sequence_reduction_ratios"][s], f"encoder.patch_embeddings.{s}."
        x = net.conv(name + "projection", x, width, c["strides"][s], c["patch_sizes"][s], 0, bias=True)
        size = x.shape[1:]
        x = net.layer_norm(name + "layer_norm", tokens(x), epsilon)
        if s == last:
            x = np.concatenate([net.tensor(name + "cls_token", 1, 1, width)[0], x])
        x = x + net.tensor(name + "position_embeddings", 1, len(x), width)[0]
        for i in range(depth):
            name = f"encoder.block.{s}.{i}."
            q = k = net.layer_norm(name + "layer_norm_1", x, epsilon)
            if ratio > 1:
                k = net.conv(name + "attention.self.sequence_reduction", q.T.reshape(width, *size), width, ratio, ratio, 0, bias=True)
                k = net.layer_norm(name + "attention.self.layer_norm", tokens(k), epsilon)
            names = [name + "attention.self." + part for part in ("query", "key", "value")] + [name + "attention.output.dense"]
            x = x + net.attention(names, q, k, k, c["num_attention_heads"][s], width)
            y = net.linear(name + "mlp.dense1", net.layer_norm(name + "layer_norm_2", x, epsilon), width * c["mlp_ratios"][s])
            x = x + net.linear(name + "mlp.dense2", ACTIVATIONS["gelu"](y), width)
        x = x if s == last else x.T.reshape(width, *size)
    x = net.layer_norm("encoder.layer_norm", x, epsilon)
    if c["architectures"][0].endswith("ForImageClassification"):
        return {"logits": net.linear("classifier", x[0], len(c["id2label"]), prefix="")[None]}
    return {"last_hidden_state": x[None]}


def levit(net, c, x):
    swish, widths = ACTIVATIONS["hardswish"], c["hidden_sizes"]

    def normed(name, x, prefix=None):
        return net.batch_norm(name, x.reshape(-1, x.shape[-1]).T[..., None], prefix=prefix).squeeze(-1).T.reshape(x.shape)

    def projected(name, x, out):
        return normed(name + ".batch_norm", net.linear(name + ".linear", x, out, False))

    def attended(name, q, k, v, heads, key, stride, side, width):
        split = lambda y: y.reshape(len(y), heads, -1).swapaxes(0, 1)
        points, numbers, index = [(i, j) for i in range(side) for j in range(side)], {}, []
        for a, b in points:
            if a % stride == 0 and b % stride == 0:
                index.append([numbers.setdefault((abs(a - i), abs(b - j)), len(numbers)) for i, j in points])
        bias = net.tensor(name + "attention_biases", heads, len(numbers))[:, np.array(index)]
        y = attend(split(q), k, v, bias, key ** -0.5).swapaxes(0, 1).reshape(len(q), -1)
        return projected(name + "projection", swish(y), width)

    def feed_forward(name, x, inner):
        return x + projected(name + "linear_down", swish(projected(name + "linear_up", x, inner)), x.shape[-1])
    for i in range(1, 5):
        own = f"patch_embeddings.embedding_layer_{i}."
        x = net.batch_norm(own + "batch_norm", net.conv(own + "convolution", x, widths[0] >> (4 - i), 3, 2))
        x = swish(x) if i < 4 else x
    side, x = x.shape[1], tokens(x)
    for s, (depth, width) in enumerate(zip(c["depths"], widths)):
        number, heads, key, value = 0, c["num_attention_heads"][s], c["key_dim"][s], c["key_dim"][s] * c["attention_ratio"][s]
        for _ in range(depth):
            name = f"encoder.stages.{s}.layers.{number}.module."
            parts = projected(name + "queries_keys_values", x, heads * (2 * key + value)).reshape(len(x), heads, -1).swapaxes(0, 1)
            q = parts[..., :key].swapaxes(0, 1).reshape(len(x), -1)
            x = x + attended(name, q, parts[..., key:2 * key], parts[..., 2 * key:], heads, key, 1, side, width)
            x = feed_forward(f"encoder.stages.{s}.layers.{number + 1}.module.", x, width * c["mlp_ratio"][s])
            number += 2
        if s + 1 == len(widths):
            break
        name, key = f"encoder.stages.{s}.layers.{number}.", c["key_dim"][0]
        heads = width // key
        parts = projected(name + "keys_values", x, heads * 5 * key).reshape(len(x), heads, -1).swapaxes(0, 1)
        q = projected(name + "queries", x.reshape(side, side, width)[::2, ::2].reshape(-1, width), heads * key)
        x = attended(name, q, parts[..., :key], parts[..., key:], heads, key, 2, side, widths[s + 1])
        side = (side - 1) // 2 + 1
        x = feed_forward(f"encoder.stages.{s}.layers.{number + 1}.module.", x, 2 * widths[s + 1])
    mean = x.mean(0)
    if c["architectures"][0].endswith("Model"):
        return {"last_hidden_state": x[None], "pooler_output": mean[None]}

    def classified(name):
        return net.linear(name + ".linear", normed(name + ".batch_norm", mean[None], ""), len(c["id2label"]), prefix="")
    logits = classified("classifier")
    if not c["architectures"][0].endswith("WithTeacher"):
        return {"logits": logits}
    other = classified("classifier_distill")
    return {"logits": (logits + other) / 2, "cls_logits": logits, "distillation_logits": other}


def swiftformer(net, c, x):
    gelu, widths = ACTIVATIONS["gelu"], c["embed_dims"]

    def convolved(own, x, inner):
        y = net.batch_norm(own + "norm", net.conv(own + "depth_wise_conv", x, len(x), 3, groups=len(x), bias=True))
        y = net.conv(own + "point_wise_conv2", gelu(net.conv(own + "point_wise_conv1", y, inner, bias=True)), len(x), bias=True)
        return x + net.tensor(own + "layer_scale", len(x), 1, 1) * y

    def unit_length(y):
        return y / np.linalg.norm(y, axis=-1, keepdims=True)

    def last(own, x):
        width, size = len(x), x.shape[1:]
        x = convolved(own + "local_representation.", x, width)
        q, k = (unit_length(net.linear(f"{own}attn.to_{name}", tokens(x), width)) for name in ("query", "key"))
        shares = q @ net.tensor(own + "attn.w_g", width, 1) * width**-0.5
        shares = np.exp(shares - shares)  # a softmax over one number
        y = net.linear(own + "attn.final", net.linear(own + "attn.proj", (shares * q).sum(0) * k, width) + q, width)
        scales = [net.tensor(f"{own}layer_scale_{i}", width, 1, 1) if c["use_layer_scale"] else 1 for i in (1, 2)]
        x = x + scales[0] * y.T.reshape(width, *size)
        y = net.conv(own + "linear.fc1", net.batch_norm(own + "linear.norm1", x), int(width * c["mlp_ratio"]), bias=True)
        return x + scales[1] * net.conv(own + "linear.fc2", gelu(y), width, bias=True)
    for i, out in enumerate((widths[0] // 2, widths[0])):
        x = net.conv(f"patch_embed.patch_embedding.{3 * i}", x, out, 3, 2, bias=True)
        x = np.maximum(net.batch_norm(f"patch_embed.patch_embedding.{3 * i + 1}", x), 0)
    for s, depth in enumerate(c["depths"]):
        for i in range(depth):
            own = f"encoder.network.{2 * s}.blocks.{i}."
            x = convolved(own, x, int(len(x) * c["mlp_ratio"])) if i + 1 < depth else last(own, x)
        if s + 1 < len(widths):
            own = f"encoder.network.{2 * s + 1}."
            x = net.batch_norm(own + "norm", net.conv(own + "proj", x, widths[s + 1], 3, 2, bias=True))
    if c["architectures"][0].endswith("Model"):
        return {"last_hidden_state": x[None]}
    mean = net.batch_norm("norm", x, prefix="").mean((1, 2))
    return {"logits": sum(net.linear(name, mean, len(c["id2label"]), prefix="") for name in ("head", "dist_head"))[None] / 2}


def poolformer(net, c, x):
    def normed(name, x, prefix=None):
        y = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        weight, bias = (net.tensor(f"{name}.{part}", len(x), prefix=prefix)[:, None, None] for part in ("weight", "bias"))
        return y * weight + bias
    for s, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        x = net.conv(f"encoder.patch_embeddings.{s}.projection", x, width, c["patch_sizes"][s], c["strides"][s], c["padding"][s], bias=True)
        for i in range(depth):
            name = f"encoder.block.{s}.{i}."
            scales = [net.tensor(f"{name}layer_scale_{n}", width)[:, None, None] if c["use_layer_scale"] else 1 for n in (1, 2)]
            y = normed(name + "before_norm", x)
            x = x + scales[0] * (pool(y, "mean", c["pool_size"], 1, c["pool_size"] // 2) - y)
            y = ACTIVATIONS["gelu"](net.conv(name + "output.conv1", normed(name + "after_norm", x), int(width * c["mlp_ratio"]), bias=True))
            x = x + scales[1] * net.conv(name + "output.conv2", y, width, bias=True)
    if not c["architectures"][0].endswith("ForImageClassification"):
        return {"last_hidden_state": x[None]}
    return {"logits": net.linear("classifier", normed("norm", x, prefix="").mean((1, 2)), len(c["id2label"]), prefix="")[None]}


def detr(net, c, x):
    width, b = c["d_model"], c["backbone_config"]
    backbone = Net()
    backbone.tensors, backbone.prefix, backbone.rng = net.tensors, net.prefix + "backbone.conv_encoder.model.", net.rng
    x = resnet(backbone, DEFAULTS["resnet"] | b | {"architectures": ["ResNetModel"]}, x)["last_hidden_state"][0]
    x = net.conv("input_projection", x, width, bias=True)
    h, w = x.shape[1:]
    wave = 10000 ** (np.arange(width // 2) // 2 * 2 / (width // 2))
    sides = [(np.arange(size) + 1)[:, None] / (size + 1e-6) * 2 * math.pi / wave for size in (h, w)]
    sides = [np.where(np.arange(width // 2) % 2, np.cos(angle), np.sin(angle)) for angle in sides]
    places = np.concatenate([np.repeat(sides[0], w, 0), np.tile(sides[1], (h, 1))], -1)

    def attention(name, q, k, v, heads):
        return net.attention([name + part for part in (".q_proj", ".k_proj", ".v_proj", ".out_proj")], q, k, v, heads, width)

    def feed_forward(name, x, inner):
        y = net.linear(name + "fc2", np.maximum(net.linear(name + "fc1", x, inner), 0), width)
        return net.layer_norm(name + "final_layer_norm", x + y, 1e-5)
    x = tokens(x)
    for i in range(c["encoder_layers"]):
        name = f"encoder.layers.{i}."
        y = attention(name + "self_attn", x + places, x + places, x, c["encoder_attention_heads"])
        x = feed_forward(name, net.layer_norm(name + "self_attn_layer_norm", x + y, 1e-5), c["encoder_ffn_dim"])
    queries = net.tensor("query_position_embeddings.weight", c["num_queries"], width)
    y = np.zeros_like(queries)
    for i in range(c["decoder_layers"]):
        name, heads = f"decoder.layers.{i}.", c["decoder_attention_heads"]
        y = net.layer_norm(name + "self_attn_layer_norm", y + attention(name + "self_attn", y + queries, y + queries, y, heads), 1e-5)
        y = net.layer_norm(name + "encoder_attn_layer_norm", y + attention(name + "encoder_attn", y + queries, x + places, x, heads), 1e-5)
        y = feed_forward(name, y, c["decoder_ffn_dim"])
        if c.get("auxiliary_loss"):
            y = net.layer_norm("decoder.layernorm", y, 1e-5)
    y = net.layer_norm("decoder.layernorm", y, 1e-5)
    if c["architectures"][0] == "DetrModel":
        return {"last_hidden_state": y[None], "encoder_last_hidden_state": x[None]}
    box = y
    for i, out in enumerate((width, width, 4)):
        box = net.linear(f"bbox_predictor.layers.{i}", np.maximum(box, 0) if i else box, out, prefix="")
    return {"logits": net.linear("class_labels_classifier", y, len(c["id2label"]) + 1, prefix="")[None],
            "pred_boxes": sigmoid(box)[None], "encoder_last_hidden_state": x[None]}


def timm_mobile(stages, stem, widest, head_width, width=1.0, act="silu", head_first=True, gate="sigmoid", inner=None, tf=False):
    """A reading of timm's EfficientNets and MobileNets: stages of blocks (kind, repeats, kernel, stride, expansion, channels, squeeze
    and excitation, activation or None), where head_first says that the last convolution comes before the mean."""
    def reading(net, labels, x):
        epsilon = 1e-3 if tf else 1e-5

        def unit(conv, norm, x, out, kernel=1, stride=1, groups=1, act=act):
            pad = same(x, kernel, stride) if tf else None
            return ACTIVATIONS[act](net.batch_norm(norm, net.conv(conv, x, out, kernel, stride, pad, groups), epsilon))
        x = unit("conv_stem", "bn1", x, stem, 3, 2)
        for s, stage in enumerate(stages):
            place = 0
            for kind, repeats, kernel, stride, expansion, channels, squeeze, own in stage:
                for _ in range(repeats):
                    name, out, step = f"blocks.{s}.{place}.", divisible(channels * width), 1 if place else stride
                    block_act, between = own or act, divisible(len(x) * expansion)
                    y = x
                    if kind == "cn":
                        y = unit(name + "conv", name + "bn1", y, out, kernel, step, act=block_act)
                    elif kind == "er":
                        y = unit(name + "conv_exp", name + "bn1", y, between, kernel, step, act=block_act)
                        y = unit(name + "conv_pwl", name + "bn2", y, out, act="")
                    else:
                        if kind == "ir":
                            y = unit(name + "conv_pw", name + "bn1", y, between, act=block_act)
                        y = unit(name + "conv_dw", name + ("bn2" if kind == "ir" else "bn1"), y, len(y), kernel, step, len(y), block_act)
                        if squeeze:
                            reduced = divisible(len(y) * squeeze) if inner else round(len(x) * squeeze)
                            mean = net.conv(name + "se.conv_reduce", y.mean((1, 2), keepdims=True), reduced, bias=True)
                            mean = net.conv(name + "se.conv_expand", ACTIVATIONS[inner or block_act](mean), len(y), bias=True)
                            y = y * ACTIVATIONS[gate](mean)
                        ends = ("conv_pwl", "bn3") if kind == "ir" else ("conv_pw", "bn2")
                        y = unit(name + ends[0], name + ends[1], y, out, act="")
                    x = x + y if step == 1 and len(x) == out and (kind != "cn" or kernel > 1) else y
                    place += 1
        assert len(x) == widest
        if head_first:
            x = unit("conv_head", "bn2", x, head_width).mean((1, 2))
        else:
            x = ACTIVATIONS[act](net.conv("conv_head", x.mean((1, 2), keepdims=True), head_width, bias=True))[:, 0, 0]
        return {"logits": net.linear("classifier", x, labels)[None]}
    return reading


READINGS = {"resnet": resnet, "regnet": regnet, "convnext": convnext, "convnextv2": convnext, "dinov3_convnext": convnext,
            "mobilenet_v1": mobilenet, "mobilenet_v2": mobilenet, "efficientnet": efficientnet, "mobilevit": mobilevit, "mobilevitv2": mobilevit2,
            "swin": swin, "swinv2": swin, "segformer": segformer, "pvt": pvt, "pvt_v2": pvt2,
            "poolformer": poolformer, "levit": levit, "swiftformer": swiftformer, "detr": detr}
# What a reading needs and config.json may leave out.
DEFAULTS = {
    "resnet": {"layer_type": "bottleneck", "downsample_in_first_stage": False, "downsample_in_bottleneck": False, "hidden_act": "relu"},
    "regnet": {"layer_type": "y", "downsample_in_first_stage": True, "hidden_act": "relu"},
    "mobilenet_v1": {"tf_padding": True}, "mobilenet_v2": {"tf_padding": True},
    "efficientnet": {"depthwise_padding": [], "pooling_type": "mean", "depth_coefficient": 1.0},
    "mobilevit": {"patch_size": 2, "output_stride": 32, "atrous_rates": [6, 12, 18]},
    "pvt": {"patch_sizes": [4, 2, 2, 2], "strides": [4, 2, 2, 2], "sequence_reduction_ratios": [8, 4, 2, 1], "mlp_ratios": [8, 8, 4, 4]},
    "pvt_v2": {"patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2], "sr_ratios": [8, 4, 2, 1], "mlp_ratios": [8, 8, 4, 4]},
    "poolformer": {"patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2], "padding": [2, 1, 1, 1], "pool_size": 3, "mlp_ratio": 4.0,
                   "use_layer_scale": True},
    "swin": {"patch_size": 4}, "swinv2": {"patch_size": 4, "pretrained_window_sizes": [0, 0, 0, 0]},
    "segformer": {"patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2], "sr_ratios": [8, 4, 2, 1], "mlp_ratios": [4, 4, 4, 4]}}


def made(config, picture, seed=0):
    """Returns the tensors of a tiny folder and the outputs for a picture [3, H, W]."""
    kind = config["model_type"]
    prefix = "model." if kind in ("detr", "rt_detr", "rt_detr_v2", "d_fine") else kind + "."
    net = Net("" if config["architectures"][0].endswith("Model") else prefix, seed)
    outputs = READINGS[kind](net, DEFAULTS.get(kind, {}) | config, picture)
    return net.tensors, outputs
