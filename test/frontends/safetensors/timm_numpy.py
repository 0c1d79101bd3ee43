"""Computes networks of timm in NumPy with double precision: readings of timm's models/*.py that are independent of mlc. A reading
takes a picture_numpy.Net, the number of labels and a picture [3, H, W], and returns the outputs."""
import math

import numpy as np

from picture_numpy import ACTIVATIONS, attend, divisible, halved, pool, sigmoid, tokens

ACTIVATIONS = ACTIVATIONS | {"quick_gelu": lambda x: x * sigmoid(1.702 * x),
                             "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))}


def vit(width, depth, heads, patch=16, ratio=4, pooling="token", classes=True, registers=0, distilled=False, prenorm=False, overlap=True,
        scales=False, fc_norm=None, bias=True, act="gelu", gated=False, relative=False, final=True, epsilon=1e-6, rotary=None, apart=False,
        norms=()):
    """`overlap` says that tokens before the patches have positions, `relative` that the network is a BEiT. `rotary` is dinov3 or eva02;
    `apart` says that projections and gates are not joined, and `norms` are those inside of "attn" and "mlp"."""
    first = classes + registers + distilled
    fc_norm = pooling == "avg" if fc_norm is None else fc_norm

    def attention(net, name, x, grid):
        if apart:
            qkv = np.concatenate([net.linear(f"{name}{part}_proj", x, width, part != "k") for part in "qkv"], -1)
        elif (relative or rotary) and bias:
            qkv = x @ net.tensor(name + "qkv.weight", 3 * width, width).T
            qkv = qkv + np.concatenate([net.tensor(name + "q_bias", width), np.zeros(width), net.tensor(name + "v_bias", width)])
        else:
            qkv = net.linear(name + "qkv", x, 3 * width, bias)
        q, k, v = qkv.reshape(len(x), 3, heads, -1).transpose(1, 2, 0, 3)
        shift, size = 0, width // heads
        if rotary:
            frequencies = (100 if rotary == "dinov3" else 10000) ** (-np.arange(size // 4) / (size // 4))
            along = [2 * math.pi * (2 * (np.arange(n) + 0.5) / n - 1) if rotary == "dinov3" else np.arange(n) / n * 16 for n in grid]
            places = np.stack(np.meshgrid(*along, indexing="ij"), -1).reshape(-1, 2)
            angles = (places[:, :, None] * frequencies).reshape(len(places), -1)

            def turned(x):
                x = x.copy()
                pairs = (x[:, first:, :size // 2], x[:, first:, size // 2:]) if rotary == "dinov3" else (x[:, first:, ::2], x[:, first:, 1::2])
                a, b = pairs[0] * np.cos(angles) - pairs[1] * np.sin(angles), pairs[1] * np.cos(angles) + pairs[0] * np.sin(angles)
                x[:, first:] = np.concatenate([a, b], -1) if rotary == "dinov3" else np.stack([a, b], -1).reshape(a.shape[0], a.shape[1], size)
                return x
            q, k = turned(q), turned(k)
        if relative:
            spans = 2 * grid[0] - 1, 2 * grid[1] - 1
            table = net.tensor(name + "relative_position_bias_table", spans[0] * spans[1] + 3, heads)
            at = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"), -1).reshape(-1, 2)
            offsets = at[:, None] - at[None] + np.array(grid) - 1
            index = np.pad(offsets[..., 0] * spans[1] + offsets[..., 1], ((1, 0), (1, 0)))
            index[0, :], index[:, 0], index[0, 0] = len(table) - 3, len(table) - 2, len(table) - 1
            shift = table[index].transpose(2, 0, 1)
        y = attend(q, k, v, shift).transpose(1, 0, 2).reshape(len(x), width)
        return net.linear(name + "proj", net.layer_norm(name + "norm", y, epsilon) if "attn" in norms else y, width)

    def mlp(net, name, x):
        if apart:
            y = ACTIVATIONS["silu"](net.linear(name + "fc1_g", x, int(width * ratio))) * net.linear(name + "fc1_x", x, int(width * ratio))
            y = net.layer_norm(name + "norm", y, epsilon) if "mlp" in norms else y
            return net.linear(name + "fc2", y, width)
        y = net.linear(name + "fc1", x, int(width * ratio) * (2 if gated and rotary else 1))
        y = ACTIVATIONS[act](y[:, :y.shape[1] // 2]) * y[:, y.shape[1] // 2:] if gated else ACTIVATIONS[act](y)
        return net.linear(name + "fc2", y, width)

    def reading(net, labels, x):
        x = net.conv("patch_embed.proj", x, width, patch, patch, 0, bias=not prenorm)
        grid, x = x.shape[1:], tokens(x)
        names = ["cls_token"] * classes + ["dist_token"] * distilled
        before = [net.tensor(name, 1, 1, width)[0] for name in names]
        before += [net.tensor("reg_token", 1, registers, width)[0]] if registers else []
        if not relative and rotary != "dinov3":
            positions = net.tensor("pos_embed", 1, len(x) + first * overlap, width)[0]
            x = np.concatenate(before + [x]) + positions if overlap else np.concatenate(before + [x + positions])
        else:
            x = np.concatenate(before + [x])
        x = net.layer_norm("norm_pre", x, epsilon) if prenorm else x
        for n in range(depth):
            name = f"blocks.{n}."
            scale = (lambda key: net.tensor(name + key, width)) if scales else lambda key: 1
            keys = ("gamma_1", "gamma_2") if relative or rotary else ("ls1.gamma", "ls2.gamma")
            x = x + scale(keys[0]) * attention(net, name + "attn.", net.layer_norm(name + "norm1", x, epsilon), grid)
            x = x + scale(keys[1]) * mlp(net, name + "mlp.", net.layer_norm(name + "norm2", x, epsilon))
        x = net.layer_norm("norm", x, epsilon) if final and not fc_norm else x
        if distilled:
            return {"logits": (net.linear("head", x[0], labels) + net.linear("head_dist", x[1], labels))[None] / 2}
        if pooling == "map":
            q = net.linear("attn_pool.q", net.tensor("attn_pool.latent", 1, 1, width)[0], width).reshape(1, heads, -1).swapaxes(0, 1)
            k, v = net.linear("attn_pool.kv", x[first:], 2 * width).reshape(len(x) - first, 2, heads, -1).transpose(1, 2, 0, 3)
            y = net.linear("attn_pool.proj", attend(q, k, v).reshape(1, width), width)
            pooled = (y + mlp(net, "attn_pool.mlp.", net.layer_norm("attn_pool.norm", y, epsilon)))[0]
        else:
            pooled = x[0] if pooling == "token" else x[first:].mean(0)
        pooled = net.layer_norm("fc_norm", pooled, epsilon) if final and fc_norm else pooled
        if labels == 0:
            return {"last_hidden_state": x[None], "pooler_output": pooled[None]}
        return {"logits": net.linear("head", pooled, labels)[None]}
    return reading


def unit(net, conv, norm, x, out, kernel=1, stride=1, groups=1, act="relu"):
    return ACTIVATIONS[act](net.batch_norm(norm, net.conv(conv, x, out, kernel, stride, groups=groups)))


def squeezed(net, name, x, inner):
    mean = np.maximum(net.conv(name + "fc1", x.mean((1, 2), keepdims=True), inner, bias=True), 0)
    return x * sigmoid(net.conv(name + "fc2", mean, len(x), bias=True))


def classified(net, name, x, labels):
    return {"logits": net.linear(name, x.mean((1, 2)), labels)[None]}


def resnet(depths, basic, stem=None, groups=1, width=64, average=False, squeeze=None, convolves=False):
    """`stem` has the widths of three convolutions; `squeeze` is se or eca."""
    def reading(net, labels, x):
        if stem is None:
            x = unit(net, "conv1", "bn1", x, 64, 7, 2)
        else:
            for i, (out, norm) in enumerate(zip(stem, ("conv1.1", "conv1.4", "bn1"))):
                x = unit(net, f"conv1.{3 * i}", norm, x, out, 3, 1 if i else 2)
        x = unit(net, "maxpool.0", "maxpool.1", x, len(x), 3, 2) if convolves else pool(x, "max")
        for s, depth in enumerate(depths):
            planes = 64 << s
            out, inner = planes if basic else 4 * planes, planes if basic else planes * width // 64 * groups
            for i in range(depth):
                name, stride = f"layer{s + 1}.{i}.", 2 if s and not i else 1
                if basic:
                    y = unit(net, name + "conv1", name + "bn1", x, inner, 3, stride)
                    y = unit(net, name + "conv2", name + "bn2", y, out, 3, act="")
                else:
                    y = unit(net, name + "conv1", name + "bn1", x, inner)
                    y = unit(net, name + "conv2", name + "bn2", y, inner, 3, stride, groups)
                    y = unit(net, name + "conv3", name + "bn3", y, out, act="")
                if squeeze == "se":
                    y = squeezed(net, name + "se.", y, 8 * (out // 128 or 1))
                elif squeeze == "eca":
                    t = int((math.log2(out) + 1) / 2)
                    size = max(t if t % 2 else t + 1, 3)
                    row = np.convolve(np.pad(y.mean((1, 2)), size // 2), net.tensor(name + "se.conv.weight", 1, 1, size)[0, 0, ::-1], "valid")
                    y = y * sigmoid(row)[:, None, None]
                if stride > 1 or len(x) != out:
                    pooled = average and stride > 1
                    conv, norm = (1, 2) if average else (0, 1)
                    x = unit(net, f"{name}downsample.{conv}", f"{name}downsample.{norm}", halved(x) if pooled else x, out,
                             stride=1 if average else stride, act="")
                x = np.maximum(x + y, 0)
        return classified(net, "fc", x, labels)
    return reading


def regnet(first, slope, ratio, group, depth, squeeze=False):
    def reading(net, labels, x):
        exact = first + slope * np.arange(depth)
        widths = (np.round(first * ratio ** np.round(np.log(exact / first) / math.log(ratio)) / 8) * 8).astype(int)
        x = unit(net, "stem.conv", "stem.bn", x, 32, 3, 2)
        for s, width in enumerate(sorted(set(widths))):
            size = min(group, width)
            out = int(round(width / size) * size)
            for i in range((widths == width).sum()):
                name, stride = f"s{s + 1}.b{i + 1}.", 1 if i else 2
                y = unit(net, name + "conv1.conv", name + "conv1.bn", x, out)
                y = unit(net, name + "conv2.conv", name + "conv2.bn", y, out, 3, stride, out // size)
                y = squeezed(net, name + "se.", y, round(len(x) / 4)) if squeeze else y
                y = unit(net, name + "conv3.conv", name + "conv3.bn", y, out, act="")
                if i == 0:
                    x = unit(net, name + "downsample.conv", name + "downsample.bn", x, out, stride=stride, act="")
                x = np.maximum(x + y, 0)
        return classified(net, "head.fc", x, labels)
    return reading


def vgg(depths, normed, inner):
    def reading(net, labels, x):
        at = 0
        for depth, width in zip(depths, (64, 128, 256, 512, 512)):
            for _ in range(depth):
                x = net.conv(f"features.{at}", x, width, 3, bias=True)
                x = np.maximum(net.batch_norm(f"features.{at + 1}", x) if normed else x, 0)
                at += 3 if normed else 2
            x, at = pool(x, "max", 2, 2, 0), at + 1
        for axis in (1, 2):
            size = x.shape[axis]
            if size < 7:
                x = np.stack([x.take(range(i * size // 7, -(-(i + 1) * size // 7)), axis).mean(axis) for i in range(7)], axis)
        x = np.maximum(net.conv("pre_logits.fc1", x, inner, 7, pad=0, bias=True), 0)
        x = np.maximum(net.conv("pre_logits.fc2", x, 4096, bias=True), 0)
        return classified(net, "head.fc", x, labels)
    return reading


def densenet(growth, depths, bottleneck):
    def reading(net, labels, x):
        def normed(name, x):
            return np.maximum(net.batch_norm(name, x), 0)
        x = pool(unit(net, "features.conv0", "features.norm0", x, 2 * growth, 7, 2), "max")
        for block, depth in enumerate(depths, 1):
            for layer in range(1, depth + 1):
                name = f"features.denseblock{block}.denselayer{layer}."
                y = net.conv(name + "conv1", normed(name + "norm1", x), bottleneck * growth)
                x = np.concatenate([x, net.conv(name + "conv2", normed(name + "norm2", y), growth, 3)])
            if block < len(depths):
                name = f"features.transition{block}."
                x = net.conv(name + "conv", normed(name + "norm", x), len(x) // 2)
                x = pool(x, "mean", 2, 2, 0)
        return classified(net, "classifier", normed("features.norm5", x), labels)
    return reading


def mobilenet_v4(stages, stem, width=1.0):
    """Stages of blocks: (er or cn, kernel, stride, expansion, channels) or (uir, start, kernel, stride, expansion, channels)."""
    def reading(net, labels, x):
        x = unit(net, "conv_stem", "bn1", x, stem, 3, 2)
        for s, stage in enumerate(stages):
            for i, (kind, *sizes) in enumerate(stage):
                name, (kernel, stride, expansion, channels) = f"blocks.{s}.{i}.", sizes[-4:]
                stride, out, between, y = 1 if i else stride, divisible(channels * width), divisible(len(x) * expansion), x
                if kind == "cn":
                    y = unit(net, name + "conv", name + "bn1", y, out, kernel, stride)
                elif kind == "er":
                    y = unit(net, name + "conv_exp", name + "bn1", y, between, kernel, stride)
                    y = unit(net, name + "conv_pwl", name + "bn2", y, out, act="")
                else:
                    def part(part, y, out, *window, act="relu"):
                        return unit(net, f"{name}{part}.conv", f"{name}{part}.bn", y, out, *window, act=act)
                    if sizes[0]:
                        y = part("dw_start", y, len(y), sizes[0], 1 if kernel else stride, len(y), act="")
                    y = part("pw_exp", y, between)
                    y = part("dw_mid", y, between, kernel, stride, between) if kernel else y
                    y = part("pw_proj", y, out, act="")
                x = x + y if kind != "cn" and stride == 1 and len(x) == out else y
        x = unit(net, "conv_head", "norm_head", x.mean((1, 2), keepdims=True), 1280)[:, 0, 0]
        return {"logits": net.linear("classifier", x, labels)[None]}
    return reading


def repvit_maps(net, depths, widths, legacy, x, stages="stages."):
    """Returns the maps of the stages. `stages` is how the folder names a stage."""
    gelu = ACTIVATIONS["gelu"]

    def normed(name, x, out, kernel=1, stride=1, groups=1):
        return unit(net, name + ".c", name + ".bn", x, out, kernel, stride, groups, "")

    def mlp(name, x):
        return x + normed(name + "conv2", gelu(normed(name + "conv1", x, 2 * len(x))), len(x))

    def block(name, x, squeezes):
        mixer, n = name + "token_mixer.", len(x)
        if legacy:
            x = normed(mixer + "conv", x, n, 3, groups=n) + normed(mixer + "conv1", x, n, groups=n) + x
        else:
            x = net.batch_norm(mixer + "bn", normed(mixer + "conv", x, n, 3, groups=n) + net.conv(mixer + "conv1", x, n, groups=n, bias=True) + x)
        x = squeezed(net, name + "se.", x, 8) if squeezes else x
        return mlp(name + "channel_mixer.", x)
    x = normed("stem.conv2", gelu(normed("stem.conv1", x, widths[0] // 2, 3, 2)), widths[0], 3, 2)
    maps = []
    for s, (depth, width) in enumerate(zip(depths, widths)):
        if s:
            name = f"{stages}{s}.downsample."
            x = block(name + "pre_block.", x, False)
            x = normed(name + "channel_downsample", normed(name + "spatial_downsample", x, len(x), 3, 2, len(x)), width)
            x = mlp(name + "ffn.", x)
        for i in range(depth):
            x = block(f"{stages}{s}.blocks.{i}.", x, i % 2 == 0)
        maps.append(x)
    return maps


def repvit(depths, widths, legacy=False, distilled=True):
    def reading(net, labels, x):
        x = repvit_maps(net, depths, widths, legacy, x)[-1]
        mean = x.mean((1, 2))
        if not labels:
            return {"last_hidden_state": x[None], "pooler_output": mean[None]}
        heads = ["head.head", "head.head_dist"][:1 + distilled]
        return {"logits": np.mean([net.linear(head + ".l", net.batch_norm(head + ".bn", mean[:, None, None])[:, 0, 0], labels)
                                   for head in heads], 0)[None]}
    return reading


def fastvit(depths, widths, ratios, attends=(), squeezes=(), activated=False, channels=False, stem_scales=True, fused=False):
    """`attends` and `squeezes` are the stages with attention and with squeeze and excitation; `fused` folders have one convolution in
    the place of several."""
    gelu = ACTIVATIONS["gelu"]

    def reading(net, labels, x):
        def branches(name, x, out, kernel=1, stride=1, groups=1, scales=True, convolutions=1):
            if fused:
                return net.conv(name + ".reparam_conv", x, out, kernel, stride, groups=groups, bias=True)
            y = net.batch_norm(name + ".identity", x) if stride == 1 and len(x) == out else 0
            for i in range(convolutions):
                y = y + unit(net, f"{name}.conv_kxk.{i}.conv", f"{name}.conv_kxk.{i}.bn", x, out, kernel, stride, groups, "")
            if kernel > 1 and scales:
                y = y + unit(net, name + ".conv_scale.conv", name + ".conv_scale.bn", x, out, 1, stride, groups, "")
            return y

        def gamma(name, x):
            return x * net.tensor(name + ".gamma", len(x), 1, 1)

        def mlp(name, x, ratio):
            y = unit(net, name + "conv.conv", name + "conv.bn", x, len(x), 7, groups=len(x), act="")
            return net.conv(name + "fc2", gelu(net.conv(name + "fc1", y, int(len(x) * ratio), bias=True)), len(x), bias=True)
        x = gelu(branches("stem.0", x, widths[0], 3, 2, scales=stem_scales))
        x = gelu(branches("stem.1", x, widths[0], 3, 2, widths[0], stem_scales))
        x = gelu(branches("stem.2", x, widths[0]))
        for s, (depth, width, ratio) in enumerate(zip(depths, widths, ratios)):
            if s:
                name = f"stages.{s}.downsample.proj."
                if fused:
                    y = net.conv(name + "0.reparam_conv", x, width, 7, 2, groups=len(x), bias=True)
                else:
                    y = unit(net, name + "0.large_conv.conv", name + "0.large_conv.bn", x, width, 7, 2, len(x), "")
                    y = y + unit(net, name + "0.small_conv.conv", name + "0.small_conv.bn", x, width, 3, 2, len(x), "")
                y = squeezed(net, name + "0.se.", y, width // 4) if s in squeezes else y
                x = gelu(branches(name + "1", gelu(y) if activated else y, width))
            if s in attends:
                name = f"stages.{s}.pos_emb."
                if fused:
                    x = net.conv(name + "reparam_conv", x, width, 7, groups=width, bias=True)
                else:
                    x = x + net.conv(name + "pos_enc", x, width, 7, groups=width, bias=True)
            for i in range(depth):
                name = f"stages.{s}.blocks.{i}."
                if s in attends:
                    y = tokens(net.map_norm(name + "norm", x, 1e-5) if channels else net.batch_norm(name + "norm", x))
                    q, k, v = net.linear(name + "token_mixer.qkv", y, 3 * width, False).reshape(len(y), 3, width // 32, 32).transpose(1, 2, 0, 3)
                    y = net.linear(name + "token_mixer.proj", attend(q, k, v).transpose(1, 0, 2).reshape(len(y), width), width)
                    x = x + gamma(name + "layer_scale_1", y.T.reshape(x.shape))
                    x = x + gamma(name + "layer_scale_2", mlp(name + "mlp.", x, ratio))
                    continue
                if fused:
                    x = net.conv(name + "token_mixer.reparam_conv", x, width, 3, groups=width, bias=True)
                else:
                    y = branches(name + "token_mixer.mixer", x, width, 3, 1, width)
                    y = y - branches(name + "token_mixer.norm", x, width, 3, 1, width, False, 0)
                    x = x + gamma(name + "token_mixer.layer_scale", y)
                x = x + gamma(name + "layer_scale", mlp(name + "mlp.", x, ratio))
        x = branches("final_conv", x, 2 * len(x), 3, 1, len(x))
        return classified(net, "head.fc", gelu(squeezed(net, "final_conv.se.", x, len(x) // 16)), labels)
    return reading
