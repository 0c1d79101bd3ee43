"""Random nodes of com.microsoft operators that onnxruntime implements."""
import numpy as np

from graph import TYPES
from operators_images import trim
from operators_quantized import comparable, convolution, parameters

DOMAIN = "com.microsoft"


def make(g, op, inputs, *outputs, **attributes):
    return g.node(op.split(".")[-1], trim(inputs), *outputs, domain="" if "." not in op else DOMAIN, **attributes)


def activation(g, op):
    x = g.pick(rank=(1, 4))
    name = op.split(".")[-1]
    attributes = g.some(alpha=g.one_of(1.0, 1.702, 0.5)) if name == "QuickGelu" else {}
    inputs = [x]
    if name == "BiasGelu" or (name == "FastGelu" and g.chance(0.5)):
        inputs.append(g.either("f", x.shape[-1:]))
    make(g, op, inputs, ("f", x.shape, -1, max(x.high, 0) + 1, False), **attributes)


def fused_matmul(g, op):
    trans_a, trans_b, alpha = g.integer(0, 1), g.integer(0, 1), g.one_of(1.0, 0.5)
    m, k, n = g.dims(3, 1, 5)
    batch = g.sizes(g.integer(0, 2), 1, 3)
    x = g.input("f", (*batch, *((k, m) if trans_a else (m, k))))
    y = g.either("f", (*(batch if g.chance(0.5) else ()), *((n, k) if trans_b else (k, n))))
    bound = 2 * k
    make(g, op, [x, y], ("f", (*batch, m, n), -bound, bound, False), **g.some(1.0, transA=trans_a, transB=trans_b), **g.some(alpha=alpha))


def fused_gemm(g, op):
    m, k, n = g.dims(3, 1, 5)
    trans_a, trans_b = g.integer(0, 1), g.integer(0, 1)
    x, y = g.input("f", (k, m) if trans_a else (m, k)), g.either("f", (n, k) if trans_b else (k, n))
    inputs = [x, y] + ([g.weights(n)] if g.chance(0.7) else [])
    name, parameters_ = g.one_of(("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.1}),
                                 ("Elu", {"activation_alpha": 0.5}), ("HardSigmoid", {"activation_alpha": 0.2, "activation_beta": 0.4}))
    make(g, op, inputs, ("f", (m, n), -4 * k - 4, 4 * k + 4, False), transA=trans_a, transB=trans_b, activation=name,
         **g.some(alpha=0.5, beta=2.0), **parameters_)


def fused_conv(g, op):
    x = g.input("f", (g.integer(1, 2), g.integer(1, 3), *g.sizes(2, 4, 6)))
    out, kernel = g.integer(1, 3), list(g.dims(2, 1, 3))
    strides = list(g.dims(2, 1, 2))
    size = [(d - k) // s + 1 for d, k, s in zip(x.shape[2:], kernel, strides)]
    inputs = [x, g.weights(out, x.shape[1], *kernel), g.weights(out)]
    name, parameters_ = g.one_of(("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.1]), ("Clip", [-1.0, 2.0]),
                                 ("HardSigmoid", [0.2, 0.4]))
    if g.chance(0.3):
        inputs.append(g.input("f", (x.shape[0], out, *size)))
    bound = 3 * x.shape[1] * 9 + 4
    make(g, op, inputs, ("f", (x.shape[0], out, *size), -bound, bound, False), kernel_shape=kernel, strides=strides, activation=name,
         **({"activation_params": parameters_} if parameters_ else {}))


def norm(g, op):
    name = op.split(".")[-1]
    n = g.integer(4, 8)
    x = g.input("f", (g.integer(1, 2), g.integer(1, 3), n))
    epsilon = {"epsilon": g.one_of(1e-2, 0.25)}
    result = ("f", x.shape, -12, 12, False)
    if name == "SimplifiedLayerNormalization":
        return make(g, op, [x, g.weights(n)], result, axis=-1, **epsilon)
    skip = g.input("f", x.shape)
    inputs = [x, skip, g.weights(n)]
    if name == "SkipLayerNormalization":
        inputs.append(g.weights(n) if g.chance(0.7) else None)
    inputs.append(g.weights(n) if g.chance(0.5) else None)
    outputs = [result] + ([None, None, ("f", x.shape, -6, 6, False)] if g.chance(0.4) else [])
    make(g, op, inputs, *outputs, **epsilon)


def embed_norm(g, op):
    batch, length, hidden = g.integer(1, 2), g.integer(2, 4), g.one_of(4, 6, 8)
    ids = g.input("i", (batch, length), 0, 5)
    segments = g.input("i", (batch, length), 0, 1) if g.chance(0.6) else None
    inputs = [ids, segments, g.weights(6, hidden), g.weights(5, hidden), g.weights(2, hidden) if segments else None, g.weights(hidden),
              g.weights(hidden)]
    if g.chance(0.4):
        inputs.append(g.constant((np.arange(length) < g.integer(1, length)).astype("<i4") * np.ones((batch, 1), "<i4")))
    make(g, op, inputs, ("f", (batch, length, hidden), -8, 8, False), ("i", (batch,), 0, length, True), epsilon=1e-2)


def attention(g, op):
    batch, length, heads, size = g.integer(1, 2), g.integer(1, 4), g.one_of(1, 2), g.one_of(2, 4)
    hidden = heads * size
    x = g.input("f", (batch, length, hidden))
    inputs = [x, g.weights(hidden, 3 * hidden), g.weights(3 * hidden)]
    attributes = {"num_heads": heads, **g.some(0.2, scale=0.25)}
    if g.chance(0.3):
        inputs.append(g.constant(np.array([g.integer(1, length) for _ in range(batch)], "<i4")))
    elif g.chance(0.3):
        mask = np.ones((batch, length), "<i4")
        mask[:, g.integer(1, length):] = 0
        inputs.append(g.constant(mask))
    elif g.chance(0.3):
        attributes["unidirectional"] = 1
    if len(inputs) == 3 and g.chance(0.3):
        inputs += [None, None, g.weights(batch, heads, length, length)]
    make(g, op, inputs, ("f", x.shape, -4 * hidden, 4 * hidden, False), **attributes)


def multi_head(g, op):
    batch, q, heads, size = g.integer(1, 2), g.integer(1, 4), g.one_of(1, 2), g.one_of(2, 4)
    kv = q if g.chance(0.4) else g.integer(1, 4)
    hidden = heads * size
    inputs = [g.input("f", (batch, n, hidden)) for n in (q, kv, kv)]
    inputs.append(g.weights(3 * hidden) if g.chance(0.4) else None)
    mask = None
    if g.chance(0.3):
        mask = np.ones((batch, kv), "<i4")
        mask[:, g.integer(1, kv):] = 0
    inputs.append(None if mask is None else g.constant(mask))
    inputs.append(g.weights(1, heads, q, kv) if g.chance(0.3) else None)
    attributes = {"num_heads": heads, **g.some(0.2, scale=0.25)}
    if g.chance(0.2) and q == kv and mask is None:
        attributes["unidirectional"] = 1
    make(g, op, inputs, ("f", (batch, q, hidden), -4, 4, False), **attributes)


def group_query(g, op):
    batch, length, groups, each, size = g.integer(1, 2), g.integer(1, 4), g.one_of(1, 2), g.one_of(1, 2), 16
    heads, past = groups * each, g.integer(0, 1) * g.integer(1, 3)
    prefill = past == 0
    length = length if prefill else 1
    total = past + length
    q = g.input("f", (batch, length, heads * size))
    k, v = [g.input("f", (batch, length, groups * size)) for _ in range(2)]
    caches = [g.input("f", (batch, groups, past, size)) if past else None for _ in range(2)]
    last = np.full(batch, total - 1, "<i4") if g.chance(0.5) else g.rng.randint(0, total, batch).astype("<i4")
    inputs = [q, k, v, *caches, g.constant(last) if g.chance(0.5) else g.given("i", last), g.scalar("i", total)]
    attributes = {"num_heads": heads, "kv_num_heads": groups, **g.some(0.3, scale=0.25)}
    if g.chance(0.4):
        inputs += [g.weights(8, size // 2), g.weights(8, size // 2)]
        attributes["do_rotary"] = 1
        attributes.update(g.some(rotary_interleaved=g.integer(0, 1)))
    present = ("f", (batch, groups, total, size), -4, 4, False)
    make(g, op, inputs, ("f", q.shape, -4, 4, False), present, present, **attributes)


def rotary(g, op):
    batch, heads, length, size = g.integer(1, 2), g.integer(1, 2), g.integer(1, 3), g.one_of(4, 8)
    whole = g.chance(0.5)
    x = g.input("f", (batch, heads, length, size) if whole else (batch, length, heads * size))
    positions = g.input("l", (batch, length), 0, 5) if g.chance(0.6) else g.constant(np.array([g.integer(0, 2)], "<i8"))
    caches = [g.weights(6, size // 2) for _ in range(2)]
    make(g, op, [x, positions, *caches], ("f", x.shape, -4, 4, False), **g.some(interleaved=g.integer(0, 1)))


def expand_dims(g, op):
    x = g.pick(rank=(1, 3))
    axis = g.integer(-x.rank - 1, x.rank)
    shape = list(x.shape)
    shape.insert(axis % (x.rank + 1), 1)
    make(g, op, [x, g.scalar("i", axis)], ("f", shape, x.low, x.high, x.exact))


def gather_nd(g, op):
    x = g.pick(rank=(2, 4))
    k = g.integer(1, x.rank)
    count = g.integer(1, 3)
    index = np.stack([g.rng.randint(0, d, count) for d in x.shape[:k]], -1)
    make(g, op, [x, g.constant(index.astype(g.one_of("<i4", "<i8")))], ("f", (count, *x.shape[k:]), x.low, x.high, x.exact))


def grid_sample(g, op):
    n, c = g.integer(1, 2), g.integer(1, 2)
    x = g.input("f", (n, c, *g.sizes(2, 2, 5)))
    grid = g.same("Mul", g.input("f", (n, *g.sizes(2, 1, 4), 2), -1.25, 1.25), -1.25, 1.25, extra=[g.scalar("f", 0.93)])
    make(g, op, [x, grid], ("f", (n, c, *grid.shape[1:3]), -6, 6, False),
         **g.some(mode=g.one_of("bilinear", "nearest", "bicubic"), padding_mode=g.one_of("zeros", "border", "reflection"),
                  align_corners=g.integer(0, 1)))


def pad(g, op):
    x = g.pick(rank=(1, 4))
    begin, end = g.dims(x.rank, 0, 2), g.dims(x.rank, 0, 2)
    shape = [d + a + b for d, a, b in zip(x.shape, begin, end)]
    inputs = [x, g.ints(begin + end), g.scalar("f", 1.5) if g.chance(0.5) else None]
    make(g, op, inputs, ("f", shape, min(x.low, 0), max(x.high, 1.5), x.exact), **g.some(mode="constant"))


def range_(g, op):
    kind = g.one_of("l", "i", "f")
    start, step, n = g.integer(-3, 3), g.one_of(1, 2, -1), g.integer(1, 5)
    end = start + step * n
    make(g, op, [g.scalar(kind, v) for v in (start, end, step)], (kind, (n,), min(start, end), max(start, end), True))


def trilu(g, op):
    x = g.pick(rank=(2, 4))
    make(g, op, [x, g.scalar("l", g.integer(-2, 2)) if g.chance(0.7) else None], ("f", x.shape, min(x.low, 0), max(x.high, 0), x.exact),
         **g.some(upper=g.integer(0, 1)))


def inverse(g, op):
    n = g.integer(1, 4)
    batch = g.sizes(g.integer(0, 2), 1, 3)
    x = g.given("f", g.array("f", (*batch, n, n), -1, 1) + 4 * np.eye(n))  # well-conditioned matrices
    make(g, op, [x], ("f", x.shape, -2, 2, False))


# ---- quantized

def quantize(g, op):
    kind = g.one_of("B", "c")
    x = g.pick(rank=(1, 4), low=-8, high=8, exact=True)
    scale, zero = parameters(g, kind)
    limits = np.iinfo(np.dtype(TYPES[kind][1]))
    q = make(g, "com.microsoft.QuantizeLinear", [x, scale, zero], (kind, x.shape, limits.min, limits.max, True))
    if op.endswith("DequantizeLinear") or g.chance(0.6):
        make(g, "com.microsoft.DequantizeLinear", [q, scale, zero], ("f", x.shape, -64, 64, True))


def quantized(g, kind, shape):
    ends = (0, 255) if kind == "B" else (-128, 127)
    return g.input(kind, shape, *ends), *parameters(g, kind, scale=g.one_of(0.0297, 0.01713))


def qlinear(g, op):
    """Adds a quantized operator that corresponds to a float operator."""
    name = op.split(".QLinear")[-1]
    kind = g.one_of("B", "c")
    images = name in ("AveragePool", "GlobalAveragePool")
    shape = (g.integer(1, 2), g.integer(1, 3), *g.sizes(2, 3, 5)) if images else g.sizes(g.integer(1, 3), 1, 4)
    x, xs, xz = quantized(g, kind, shape)
    ys, yz = parameters(g, kind, scale=0.0083 if name == "Sigmoid" or name == "Softmax" else 0.05237)
    inputs, attributes, out = [x, xs, xz], {}, shape
    if name in ("Add", "Mul"):
        other = tuple(d if g.chance(0.7) else 1 for d in shape)
        y, s, z = quantized(g, kind, other)
        inputs += [y, s, z]
    elif name == "LeakyRelu":
        attributes = g.some(alpha=0.25)
    elif name == "AveragePool":
        kernel = list(g.dims(2, 1, 3))
        attributes = {"kernel_shape": kernel, **g.some(count_include_pad=g.integer(0, 1))}
        out = (*shape[:2], *[d - k + 1 for d, k in zip(shape[2:], kernel)])
    elif name == "GlobalAveragePool":
        attributes = {"channels_last": 0}
        out = (*shape[:2], 1, 1)
    elif name == "Softmax":
        attributes = {"axis": -1, "opset": 13}
    low, high = (0, 255) if kind == "B" else (-128, 127)
    q = make(g, op, inputs + [ys, yz], (kind, out, low, high, False), **attributes)
    real = comparable(g, q, ys, yz)
    if name == "Softmax":
        q.slack, real.slack = 1, float(ys.constant)
        g.unknown([q, real])  # an off-by-one error would grow in other integer operators


def qlinear_concat(g, op):
    kind = g.one_of("B", "c")
    shape = g.sizes(g.integer(1, 3), 1, 4)
    axis = g.integer(0, len(shape) - 1)
    ys, yz = parameters(g, kind, scale=0.05237)
    inputs, total = [ys, yz], 0
    for _ in range(g.integer(1, 3)):
        part = [g.integer(1, 3) if i == axis else d for i, d in enumerate(shape)]
        total += part[axis]
        inputs += quantized(g, kind, part)
    low, high = (0, 255) if kind == "B" else (-128, 127)
    q = make(g, op, inputs, (kind, [total if i == axis else d for i, d in enumerate(shape)], low, high, False), axis=axis)
    comparable(g, q, ys, yz)


def qlinear_where(g, op):
    kind = g.one_of("B", "c")
    shape = g.sizes(g.integer(1, 3), 1, 4)
    condition = g.input("b", shape, 0, 1)
    ys, yz = parameters(g, kind, scale=0.05237)
    low, high = (0, 255) if kind == "B" else (-128, 127)
    q = make(g, op, [condition, *quantized(g, kind, shape), *quantized(g, kind, shape), ys, yz], (kind, shape, low, high, False))
    comparable(g, q, ys, yz)


def qlinear_conv(g, op):
    x, w, shape, attributes = convolution(g)
    (xs, xz), (ws, wz), (ys, yz) = [parameters(g, "B", scale=v) for v in (0.0297, 0.01713, 0.2911)]
    q = make(g, op, [x, xs, xz, w, ws, wz, ys, yz], ("B", shape, 0, 255, False), **attributes)
    comparable(g, q, ys, yz)


def q_gemm(g, op):
    m, k, n = g.dims(3, 1, 5)
    trans_a, trans_b = g.integer(0, 1), g.integer(0, 1)
    x, y = g.input("B", (k, m) if trans_a else (m, k), 0, 255), g.constant(g.array("B", (n, k) if trans_b else (k, n), 0, 255))
    (xs, xz), (ws, wz), (ys, yz) = [parameters(g, "B", scale=v) for v in (0.0297, 0.01713, 0.2911)]
    c = g.constant(g.array("i", (n,), -300, 300)) if g.chance(0.6) else None
    inputs = [x, xs, xz, y, ws, wz, c]
    if g.chance(0.5):
        return make(g, op, inputs, ("f", (m, n), -200 * k, 200 * k, False), transA=trans_a, transB=trans_b)
    q = make(g, op, inputs + [ys, yz], ("B", (m, n), 0, 255, False), transA=trans_a, transB=trans_b)
    comparable(g, q, ys, yz)


def matmul_to_float(g, op):
    m, k, n = g.dims(3, 1, 6)
    y = g.constant(g.array("c", (k, n), -100, 100))
    scale, zero = g.constant(np.array(0.017, "<f4")), g.scalar("c", g.integer(-10, 10)) if g.chance(0.5) else None
    bias = g.weights(n) if g.chance(0.5) else None
    result = ("f", (m, n), -400 * k, 400 * k, False)
    if op.endswith("DynamicQuantizeMatMul"):
        x = g.same("Mul", g.input("f", (m, k)), -2, 2, extra=[g.scalar("f", 0.9137)])
        return make(g, op, [x, y, scale, zero, bias], result)
    x = g.input("B", (m, k), 0, 255)
    make(g, op, [x, y, g.constant(np.array(0.03, "<f4")), scale, g.scalar("B", g.integer(0, 150)), zero, bias], result)


def n_bits(g, op):
    m, n, k, block = g.integer(1, 3), g.integer(1, 4), g.one_of(16, 32, 48), g.one_of(16, 32)
    blocks = -(-k // block)
    x = g.input("f", (m, k))
    w = g.constant(g.array("B", (n, blocks, block // 2), 0, 255))
    scales = g.weights(n, blocks, low=0.125, high=1)
    zeros = g.constant(g.array("B", (n, -(-blocks // 2)), 0, 255)) if g.chance(0.5) else None
    make(g, op, [x, w, scales, zeros], ("f", (m, n), -40 * k, 40 * k, False), K=k, N=n, bits=4, block_size=block)


def gather_block(g, op):
    rows, columns, block = g.integer(2, 5), g.one_of(16, 32), 16
    data = g.constant(g.array("B", (rows, columns // 2), 0, 255))
    scales = g.weights(rows, columns // block, low=0.125, high=1)
    index = g.either("l", g.dims(g.integer(1, 2), 1, 3), 0, rows - 1)
    make(g, op, [data, index, scales], ("f", (*index.shape, columns), -20, 20, False), block_size=block, bits=4, gather_axis=0,
         quantize_axis=1)


def nhwc_max_pool(g, op):
    kind = g.one_of("B", "c")
    x = g.input(kind, (1, *g.sizes(2, 3, 6), g.integer(1, 3)), *((0, 255) if kind == "B" else (-128, 127)))
    kernel, strides = list(g.dims(2, 1, 3)), list(g.dims(2, 1, 2))
    size = [(d - k) // s + 1 for d, k, s in zip(x.shape[1:3], kernel, strides)]
    make(g, op, [x], (kind, (1, *size, x.shape[3]), x.low, x.high, True), kernel_shape=kernel, strides=strides)


_ROWS = {
    **{op: activation for op in ("BiasGelu", "FastGelu", "Gelu", "QuickGelu")}, "FusedMatMul": fused_matmul,
    "TransposeMatMul": fused_matmul, "FusedGemm": fused_gemm, "FusedConv": fused_conv,
    **{op: norm for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")},
    "EmbedLayerNormalization": embed_norm, "Attention": attention, "MultiHeadAttention": multi_head,
    "GroupQueryAttention": group_query, "RotaryEmbedding": rotary, "ExpandDims": expand_dims, "GatherND": gather_nd,
    "GridSample": grid_sample, "Pad": pad, "Range": range_, "Trilu": trilu, "Inverse": inverse,
    "QuantizeLinear": quantize, "DequantizeLinear": quantize,
    **{"QLinear" + op: qlinear for op in ("Add", "Mul", "LeakyRelu", "Sigmoid", "AveragePool", "GlobalAveragePool", "Softmax")},
    "QLinearConcat": qlinear_concat, "QLinearWhere": qlinear_where, "QLinearConv": qlinear_conv, "QGemm": q_gemm,
    "MatMulIntegerToFloat": matmul_to_float, "DynamicQuantizeMatMul": matmul_to_float, "MatMulNBits": n_bits,
    "GatherBlockQuantized": gather_block, "NhwcMaxPool": nhwc_max_pool, "SimplifiedLayerNormalization": "onnxruntime knows it in ai.onnx, where it has a generator",
}
ROWS = {"SimplifiedLayerNormalization": norm, **{f"{DOMAIN}.{op}": row for op, row in _ROWS.items()}}
