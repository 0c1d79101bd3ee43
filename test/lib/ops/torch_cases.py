#!/usr/bin/env python3
"""Prints torch_cases.inc: results of operators computed by torch on small inputs that floats represent exactly.

usage: torch_cases.py > torch_cases.inc   (needs torch; written with 1.13)
"""
import math

import torch
import torch.nn.functional as F


def pattern(dims, seed):
    n = math.prod(dims)
    return torch.tensor([((i * 7 + seed) % 11 - 5) * 0.25 for i in range(n)], dtype=torch.float64).reshape(dims)


def braces(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def emit(op, operands, y, *more):
    parts = []
    for name, value in operands.items():
        if isinstance(value, tuple):
            parts.append(f'{{"{name}", Pattern({braces(value[0])}, {value[1]})}}')
        elif isinstance(value, bool):
            parts.append(f'{{"{name}", Tensor::Scalar<bool>({str(value).lower()})}}')
        elif isinstance(value, str):
            parts.append(f'{{"{name}", Tensor::String("{value}")}}')
        elif isinstance(value, list):
            parts.append(f'{{"{name}", I32({{{len(value)}}}, {braces(value)})}}')
        elif isinstance(value, float):
            parts.append(f'{{"{name}", Tensor::Scalar<float>({value!r}f)}}')
        else:
            parts.append(f'{{"{name}", Tensor::Scalar<int32_t>({value})}}')
    values = ", ".join(f"{v:.9g}" for result in (y, *more) for v in result.flatten().tolist())
    print(f'{{"{op}", {{{", ".join(parts)}}}, {braces(y.shape)}, {{{values}}}}},')


def padded(x, pads, value=0.0):
    flat = [p for before, after in reversed(pads) for p in (before, after)]
    return F.pad(x, flat, value=value)


def same(size, kernel, stride, lower):
    total = max(0, (math.ceil(size / stride) - 1) * stride + kernel - size)
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


def pairs(pad):
    return list(zip(pad[::2], pad[1::2]))


def pads_of(operands, x, kernel, stride, dilation):
    kind = operands.get("pad_type", "valid")
    if kind == "valid":
        return [(0, 0)] * len(kernel)
    if kind == "custom":
        return pairs(operands["pad"])
    return [same(n, (k - 1) * d + 1, s, kind == "same_lower")
            for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation)]


def conv(x_dims, w_dims, bias=False, **operands):
    x, w, n = pattern(x_dims, 3), pattern(w_dims, 1), len(x_dims) - 2
    b = pattern([w_dims[0]], 2) if bias else None
    stride, dilation = operands.get("strides", [1] * n), operands.get("dilations", [1] * n)
    f = [F.conv1d, F.conv2d, F.conv3d][n - 1]
    y = f(padded(x, pads_of(operands, x, w_dims[2:], stride, dilation)), w, b, stride, 0, dilation,
          operands.get("groups", 1))
    tensors = {"x": (x_dims, 3), "weight": (w_dims, 1)} | ({"bias": ([w_dims[0]], 2)} if bias else {})
    emit("conv", tensors | operands, y)


def conv_transpose(x_dims, w_dims, padding=0, output_padding=0, crop=None, **operands):
    x, w, n = pattern(x_dims, 3), pattern(w_dims, 1), len(x_dims) - 2
    f = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][n - 1]
    bias = pattern([w_dims[1] * operands.get("groups", 1)], 2)
    y = f(x, w, bias, operands.get("strides", [1] * n), padding, output_padding, operands.get("groups", 1),
          operands.get("dilations", [1] * n))
    for i, (before, size) in enumerate(crop or []):
        y = y.narrow(i + 2, before, size)
    emit("conv_transpose", {"x": (x_dims, 3), "weight": (w_dims, 1), "bias": (list(bias.shape), 2)} | operands, y)


def pool(op, x_dims, kernel, **operands):
    x, n = pattern(x_dims, 3), len(x_dims) - 2
    stride = operands.get("strides", [1] * n)
    kind = operands.get("pad_type", "valid")
    ceil = operands.get("ceil_mode", False)
    pads = pads_of(operands, x, kernel, stride, [1] * n)
    if op == "max_pool":
        f = [F.max_pool1d, F.max_pool2d, F.max_pool3d][n - 1]
        y = f(padded(x, pads, -math.inf), kernel, stride) if not ceil else f(x, kernel, stride, [p[0] for p in pads], ceil_mode=True)
    elif op == "avg_pool":
        f = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][n - 1]
        exclude = operands.get("exclude_padding_from_average", False)
        if all(a == b for a, b in pads):
            y = f(x, kernel, stride, [p[0] for p in pads], ceil, not exclude)
        else:
            y = f(padded(x, pads), kernel, stride)
            if exclude:
                y = y / f(padded(torch.ones_like(x), pads), kernel, stride)
    else:
        f = [F.avg_pool1d, F.avg_pool2d][n - 1]
        y = torch.sqrt(f(padded(x * x, pads), kernel, stride) * math.prod(kernel))
    emit(op, {"x": (x_dims, 3), "kernel_sizes": kernel, "pad_type": kind} | operands, y)


def matmul(x_dims, y_dims, **operands):
    x, y = pattern(x_dims, 3), pattern(y_dims, 1)
    a = x.transpose(-1, -2) if operands.get("transpose_x") else x
    b = y.transpose(-1, -2) if operands.get("transpose_y") else y
    emit("matmul", {"x": (x_dims, 3), "y": (y_dims, 1)} | operands, torch.matmul(a, b))


def interpolate(op, x_dims, size, mode, align, **operands):
    y = F.interpolate(pattern(x_dims, 3), size=size, mode=mode, align_corners=align)
    emit(op, {"x": (x_dims, 3)} | operands, y)


def grid_sample(x_dims, grid_dims, mode, padding, align, names):
    x, grid = pattern(x_dims, 3), pattern(grid_dims, 1)
    y = F.grid_sample(x, grid, mode, padding, align)
    emit("resample", {"x": (x_dims, 3), "coordinates": (grid_dims, 1), "sampling_mode": mode, "padding_mode": names,
                      "padding_value": 0.0, "coordinates_mode": "normalized_minus_one_to_one",
                      "align_corners": align}, y)


def affine(x_dims, matrix_dims, height, width):
    x, matrix = pattern(x_dims, 3), pattern(matrix_dims, 4)
    theta = matrix.reshape(-1, 2, 3).expand(x_dims[0], 2, 3)
    grid = F.affine_grid(theta, [x_dims[0], x_dims[1], height, width], align_corners=True)
    emit("affine", {"x": (x_dims, 3), "transform_matrix": (matrix_dims, 4), "output_height": height,
                    "output_width": width, "sampling_mode": "bilinear", "padding_mode": "constant",
                    "padding_value": 0.0, "coordinates_mode": "normalized_minus_one_to_one",
                    "align_corners": True}, F.grid_sample(x, grid, "bilinear", "zeros", True))


def attention(q_dims, k_dims, v_dims, mask_dims):
    q, k, v = pattern(q_dims, 3), pattern(k_dims, 1), pattern(v_dims, 2)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q_dims[-1])
    operands = {"query": (q_dims, 3), "key": (k_dims, 1), "value": (v_dims, 2)}
    if mask_dims:
        scores = scores + pattern(mask_dims, 5)
        operands["attn_mask"] = (mask_dims, 5)
    emit("scaled_dot_product_attention", operands, torch.softmax(scores, -1) @ v)


def recurrent(op, steps, batch, inputs, hidden, direction="forward", sequence=True, clip=None, peephole=False, bias=True,
              acts=None, **operands):
    """Follows the formulas in coremltools' documentation of the operators; plain layers are checked against torch.nn."""
    act = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "linear": lambda v: v,
           "hard_sigmoid": lambda v: (0.2 * v + 0.5).clamp(0, 1), "scaled_tanh": torch.tanh}
    names = {"lstm": ["recurrent_activation", "cell_activation", "activation"], "rnn": ["activation"],
             "gru": ["recurrent_activation", "activation"]}[op]
    usual = {"lstm": ["sigmoid", "tanh", "tanh"], "rnn": ["tanh"], "gru": ["sigmoid", "tanh"]}[op]
    f = [act[name] for name in acts or usual]
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[op]
    both = direction == "bidirectional"
    tensors = {"x": ([steps, batch, inputs], 3), "initial_h": ([batch, hidden * (1 + both)], 1)}
    if op == "lstm":
        tensors["initial_c"] = ([batch, hidden * (1 + both)], 2)
    halves = []
    for back in range(1 + both):
        own = {"weight_ih": ([gates * hidden, inputs], 4 + back), "weight_hh": ([gates * hidden, hidden], 6 + back)}
        if bias:
            own["bias"] = ([gates * hidden], 8 + back)
        if peephole:
            own["peephole"] = ([3 * hidden], 5 + back)
        if operands.get("reset_after"):
            own["input_bias"] = ([gates * hidden], 2)
        tensors |= {name + "_back" * back: value for name, value in own.items()}
        w = {name: pattern(*value) for name, value in own.items()}
        x = pattern(*tensors["x"])
        h, c = (pattern(*tensors.get(name, tensors["initial_h"]))[:, back * hidden:(back + 1) * hidden]
                for name in ("initial_h", "initial_c"))
        start, y = (h, c), []
        backward = direction == "reverse" or back
        for t in range(steps):
            wx = x[steps - 1 - t if backward else t] @ w["weight_ih"].T + w.get("input_bias", 0)
            wh, b = w["weight_hh"], w.get("bias", torch.zeros(gates * hidden, dtype=torch.float64))
            if op == "rnn":
                h = f[0](wx + h @ wh.T + b)
            elif op == "gru":
                (xr, xo, xz), (hr, ho, hz), (br, bo, bz) = wx.chunk(3, 1), wh.chunk(3), b.chunk(3)
                r, z = f[0](xr + h @ hr.T + br), f[0](xz + h @ hz.T + bz)
                o = f[1](xo + r * (h @ ho.T + bo)) if operands.get("reset_after") else f[1](xo + (r * h) @ ho.T + bo)
                h = (1 - z) * o + z * h
            else:
                i, g, o, z = (wx + h @ wh.T + b).chunk(4, 1)
                pi, pf, po = w.get("peephole", torch.zeros(3 * hidden, dtype=torch.float64)).chunk(3)
                c = f[0](g + pf * c) * c + f[0](i + pi * c) * f[1](z)
                c = c if clip is None else c.clamp(-clip, clip)
                h = f[0](o + po * c) * f[2](c)
            y.append(h)
        if not (peephole or clip or acts or not bias) and (op != "gru" or operands.get("reset_after")):
            order = {"lstm": [0, 1, 3, 2], "gru": [0, 2, 1], "rnn": [0]}[op]
            net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[op](inputs, hidden).double()
            swap = lambda v: torch.cat([v.chunk(gates)[k] for k in order])
            zero = torch.zeros(gates * hidden, dtype=torch.float64)
            net.weight_ih_l0.data, net.weight_hh_l0.data = swap(w["weight_ih"]), swap(w["weight_hh"])
            net.bias_ih_l0.data, net.bias_hh_l0.data = swap(w.get("input_bias", zero)), swap(w["bias"])
            begin = tuple(v.unsqueeze(0) for v in start)
            torch_y, _ = net(x.flip(0) if backward else x, begin if op == "lstm" else begin[0])
            assert torch.allclose(torch_y, torch.stack(y))
        halves.append((torch.stack(y[::-1] if back else y) if sequence else y[-1].unsqueeze(0), h, c))
    results = [torch.cat(parts, -1) for parts in zip(*halves)][:3 if op == "lstm" else 2]
    tensors |= operands | dict(zip(names, acts or [])) | {"direction": direction, "output_sequence": sequence}
    if clip is not None:
        tensors["clip"] = clip
    emit(op, tensors, *results)


conv([1, 2, 6], [3, 2, 3])
conv([2, 2, 7], [2, 2, 3], bias=True, strides=[2], dilations=[2], pad_type="custom", pad=[3, 1])
conv([1, 4, 5, 4], [4, 2, 3, 2], bias=True, groups=2, strides=[2, 1], pad_type="same")
conv([1, 2, 5, 6], [2, 1, 2, 4], groups=2, strides=[1, 3], pad_type="same_lower")
conv([1, 1, 3, 4, 3], [2, 1, 2, 3, 2], bias=True, strides=[1, 2, 2], pad_type="custom", pad=[1, 0, 0, 1, 2, 0])
conv([1, 3, 1, 9], [1, 3, 1, 3], dilations=[1, 3], pad_type="same")
conv_transpose([1, 2, 4], [2, 3, 3], strides=[2])
conv_transpose([1, 4, 3, 2], [4, 1, 3, 2], groups=2, strides=[2, 3], dilations=[1, 2], pad_type="custom", pad=[1, 1, 0, 0], padding=(1, 0))
conv_transpose([1, 1, 3, 3], [1, 1, 3, 3], strides=[2, 2], padding=1, output_padding=1, pad_type="custom", pad=[1, 1, 1, 1], output_shape=[1, 1, 6, 6])
conv_transpose([1, 1, 3, 4], [1, 2, 3, 3], strides=[2, 2], pad_type="same", crop=[(0, 6), (0, 8)])
conv_transpose([1, 1, 2, 2, 2], [1, 1, 2, 1, 2], strides=[1, 2, 1])
pool("max_pool", [1, 1, 7], [3], strides=[2], pad_type="custom", pad=[1, 0])
pool("max_pool", [1, 2, 5, 4], [3, 2], strides=[2, 2], pad_type="same")
pool("max_pool", [1, 1, 6, 6], [3, 3], strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1], ceil_mode=True)
pool("avg_pool", [1, 1, 6, 6], [3, 3], strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1], ceil_mode=True)
pool("avg_pool", [1, 1, 6, 6], [3, 3], strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1], ceil_mode=True, exclude_padding_from_average=True)
pool("avg_pool", [1, 1, 7], [2], strides=[3], pad_type="valid", ceil_mode=True)
pool("avg_pool", [1, 2, 4, 5], [2, 3], pad_type="same_lower")
pool("avg_pool", [1, 2, 4, 5], [2, 3], strides=[1, 2], pad_type="same", exclude_padding_from_average=True)
pool("avg_pool", [1, 1, 3, 4, 2], [2, 2, 2], pad_type="custom", pad=[1, 0, 0, 1, 1, 1])
pool("l2_pool", [1, 2, 4, 4], [2, 3], strides=[2, 1], pad_type="custom", pad=[0, 0, 1, 1])
matmul([3, 4], [4, 2])
matmul([2, 1, 3, 4], [3, 2, 4], transpose_y=True)
matmul([2, 4, 3], [4, 2], transpose_x=True)
matmul([4], [2, 4, 3])
matmul([2, 3, 4], [4])
matmul([5], [5])
emit("linear", {"x": ([2, 2, 3], 3), "weight": ([4, 3], 1), "bias": ([4], 2)},
     F.linear(pattern([2, 2, 3], 3), pattern([4, 3], 1), pattern([4], 2)))
for align, mode in ((True, "STRICT_ALIGN_CORNERS"), (False, "UNALIGN_CORNERS")):
    interpolate("resize_bilinear", [1, 1, 3, 4], (5, 3), "bilinear", align, target_size_height=5, target_size_width=3, sampling_mode=mode)
    interpolate("upsample_bilinear", [1, 1, 2, 3], (4, 7), "bilinear", align, scale_factor_height=2.0, scale_factor_width=2.5, align_corners=align)
interpolate("resize_nearest_neighbor", [1, 1, 3, 4], (5, 6), "nearest-exact", None, target_size_height=5, target_size_width=6)
interpolate("upsample_nearest_neighbor", [1, 1, 2, 3], (4, 4), "nearest", None, scale_factor_height=2.0, scale_factor_width=1.5)
interpolate("resize", [1, 1, 3, 4], (7, 6), "nearest-exact", None, shape=[7, 6], resized_dims=2, interpolation_mode="NEAREST_NEIGHBOR", sampling_mode="UNALIGN_CORNERS")
interpolate("resize", [1, 1, 2, 3, 2], (3, 2, 5), "trilinear", True, shape=[9, 3, 2, 5], resized_dims=3, sampling_mode="ALIGN_CORNERS")
for mode, padding, align, names in (("bilinear", "zeros", False, "constant"), ("bilinear", "border", True, "border"),
                                    ("bilinear", "reflection", True, "reflection"), ("nearest", "reflection", False, "symmetric"),
                                    ("nearest", "zeros", True, "constant")):
    grid_sample([1, 2, 3, 4], [1, 2, 3, 2], mode, padding, align, names)
affine([2, 1, 3, 4], [1, 6], 2, 3)
affine([2, 1, 3, 4], [2, 6], 3, 2)
attention([1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 2], None)
attention([1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 2], [3, 5])
recurrent("lstm", 3, 2, 3, 2)
recurrent("lstm", 2, 1, 1, 3, direction="reverse", bias=False, acts=["hard_sigmoid", "relu", "linear"])
recurrent("lstm", 3, 2, 2, 2, direction="reverse", sequence=False, peephole=True, clip=0.25)
recurrent("lstm", 3, 2, 2, 2, direction="bidirectional")
recurrent("lstm", 2, 1, 2, 3, direction="bidirectional", sequence=False, peephole=True, acts=["sigmoid", "scaled_tanh", "tanh"])
recurrent("gru", 3, 2, 3, 2)
recurrent("gru", 3, 1, 2, 3, direction="reverse", reset_after=True)
recurrent("gru", 2, 2, 1, 2, sequence=False, bias=False, acts=["tanh", "sigmoid"])
recurrent("rnn", 3, 2, 3, 2)
recurrent("rnn", 3, 2, 2, 2, direction="reverse", acts=["relu"])
recurrent("rnn", 2, 1, 2, 2, direction="reverse", sequence=False)
