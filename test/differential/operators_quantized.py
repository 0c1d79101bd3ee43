"""Random nodes of quantized operators. Scales are not simple fractions of each other, so that few values are ties."""
import numpy as np

from graph import TYPES


def parameters(g, kind, count=None, scale=None):
    """Adds constants: the scale and zero point of a tensor, or of each of `count` slices."""
    shape = () if count is None else (count,)
    low, high = (100, 150) if kind == "B" else (-20, 20)
    scales = np.full(shape, scale, "<f4") if scale and count is None else (2.0 ** g.rng.randint(-6, -1, shape)).astype("<f4")
    return g.constant(np.asarray(scales, "<f4")), g.constant(np.asarray(g.rng.randint(low, high, shape), TYPES[kind][1]))


def quantize_blocks(g):
    kind, block = g.one_of("B", "c", "H", "h"), g.one_of(2, 3)
    shape = [g.integer(1, 4) for _ in range(g.integer(1, 3))]
    axis = g.integer(0, len(shape) - 1)
    shape[axis] *= block
    scales = [n // block if i == axis else n for i, n in enumerate(shape)]
    attributes = {"axis": axis - len(shape) if g.chance(0.3) else axis, "block_size": block}
    inputs = [g.constant((2.0 ** g.rng.randint(-5, -1, scales)).astype("<f4"))]
    typed = {}
    if g.chance(0.6):
        low, high = (100, 150) if kind in "BH" else (-20, 20)
        inputs.append(g.constant(np.asarray(g.rng.randint(low, high, scales), TYPES[kind][1])))
    else:
        typed["output_dtype"] = TYPES[kind][0]
    limits = np.iinfo(np.dtype(TYPES[kind][1]))
    q = g.node("QuantizeLinear", [g.input("f", shape), *inputs], (kind, shape, limits.min, limits.max, True), **attributes, **typed)
    g.node("DequantizeLinear", [q, *inputs], ("f", shape, -64, 64, True), **attributes)


def quantize(g, op):
    if g.opset >= 21 and g.chance(0.2):
        return quantize_blocks(g)
    kind = g.one_of(*"BBcc" + ("Hh" if g.opset >= 21 else ""))
    x = g.pick(rank=(1, 4), low=-8, high=8, exact=True)
    axis, count = None, None
    if g.opset >= 13 and g.chance(0.4):
        axis = g.axis(x.rank)
        count = x.shape[axis]
    scale, zero = parameters(g, "B" if kind == "H" else "c" if kind == "h" else kind, count)
    if kind in "Hh":
        zero = g.constant(zero.constant.astype(TYPES[kind][1]))
    if kind == "B" and g.chance(0.15):
        zero = None
    limits = np.iinfo(np.dtype(TYPES[kind][1]))
    attributes = {"axis": axis} if axis is not None else {}
    inputs = [scale] + ([zero] if zero is not None else [])
    q = g.node("QuantizeLinear", [x, *inputs], (kind, x.shape, limits.min, limits.max, True), **attributes)
    if op == "DequantizeLinear" or g.chance(0.6):
        g.node("DequantizeLinear", [q, *inputs], ("f", x.shape, -64, 64, True), **attributes)


def dequantize(g, op):
    if g.chance(0.4):
        return quantize(g, op)
    if g.opset >= 21 and g.chance(0.5):
        return dequantize_blocks(g, op)
    kind = g.one_of("B", "c", "c", "i")
    shape = g.sizes(g.integer(1, 4))
    axis = g.axis(len(shape)) if g.opset >= 13 and g.chance(0.5) else None
    x = g.either(kind, shape, 0 if kind == "B" else -100, 100, constant=0.5)
    scale, zero = parameters(g, "c" if kind == "i" else kind, None if axis is None else shape[axis])
    bound = 150 * float(scale.constant.max()) + 70
    y = g.node(op, [x, scale] + ([zero] if kind != "i" and g.chance(0.8) else []), ("f", shape, -bound, bound, True),
               **({} if axis is None else {"axis": axis}))
    if x.constant is not None:
        g.node("Add", [y, g.input("f", shape)], ("f", shape, -bound - 2, bound + 2, False))


def dequantize_blocks(g, op):
    """Adds 4- or 8-bit constants with a scale per slice or block, and a run-time value."""
    kind, block = g.one_of("4", "u", "c", "B"), g.one_of(0, 2, 4)
    low, high = {"4": (-8, 7), "u": (0, 15), "c": (-128, 127), "B": (0, 255)}[kind]
    shape = [g.integer(1, 4) for _ in range(g.integer(1, 3))]
    axis = g.integer(0, len(shape) - 1)
    shape[axis] *= block or 1
    scales = [n // block if i == axis else n for i, n in enumerate(shape)] if block else [shape[axis]]
    random = lambda dims: np.asarray(g.rng.randint(low, high + 1, dims), TYPES[kind][1])  # noqa: E731
    inputs = [g.constant(random(shape), kind=kind), g.constant((2.0 ** g.rng.randint(-6, -1, scales)).astype("<f4"))]
    if g.chance(0.6):
        inputs.append(g.constant(random(scales), kind=kind))
    made = g.node(op, inputs, ("f", shape, -128, 128, True), axis=axis - len(shape) if g.chance(0.3) else axis,
                  **({"block_size": block} if block else {}))
    g.node("Mul", [made, g.input("f", shape)], ("f", shape, -256, 256, False))


def dynamic_quantize(g, op):
    y = g.same("Mul", g.input("f", g.sizes(g.integer(1, 3))), -6, 6, extra=[g.constant(np.array(0.9137, "<f4"))])
    q, scale, zero = g.node(op, [y], ("B", y.shape, 0, 255, False), ("f", (), 0, 1, False), ("B", (), 0, 255, False))
    g.node("DequantizeLinear", [q, scale, zero], ("f", y.shape, -8, 8, False))


def zero_point(g, kind, high=150):
    return g.scalar(kind, g.integer(0, high) if kind == "B" else g.integer(-20, 20))


def matmul_integer(g, op):
    kind = g.one_of("B", "B", "c")
    m, k, n = g.dims(3, 1, 6)
    batch = g.sizes(g.integer(0, 2), 1, 3)
    other = g.one_of("c", "c", "B") if kind == "B" else "c"
    x = g.input(kind, (*batch, m, k), *((0, 255) if kind == "B" else (-128, 127)))
    y = g.either(other, (*(batch if g.chance(0.3) else ()), k, n), *((0, 255) if other == "B" else (-128, 127)), constant=0.7)
    inputs = [x, y]
    if g.chance(0.6):
        inputs.append(zero_point(g, kind))
        if g.chance(0.5):
            inputs.append(zero_point(g, other) if g.chance(0.6) else
                          g.constant(g.array(other, (n,), *((0, 100) if other == "B" else (-20, 20)))))
    g.node(op, inputs, ("i", (*batch, m, n), -1e6, 1e6, True))


def convolution(g, kind="B"):
    """Returns (x, w, sizes, attributes) of a random quantized convolution."""
    group = g.one_of(1, 1, 2)
    c, out = group * g.integer(1, 2), group * g.integer(1, 2)
    kernel, strides, dilations = [list(g.dims(2, 1, high)) for high in (3, 2, 2)]
    pads = list(g.dims(4, 0, 1))
    x = g.input("B", (g.integer(1, 2), c, *g.sizes(2, 5, 6)), 0, 255)
    w = g.either(kind, (out, c // group, *kernel), *((0, 255) if kind == "B" else (-128, 127)), constant=0.8)
    size = [(d + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i, d in enumerate(x.shape[2:])]
    return x, w, (x.shape[0], out, *size), dict(group=group, strides=strides, dilations=dilations, pads=pads, **g.some(kernel_shape=kernel))


def conv_integer(g, op):
    x, w, shape, attributes = convolution(g)
    inputs = [x, w]
    if g.chance(0.7):
        inputs.append(zero_point(g, "B"))
        if g.chance(0.5):
            inputs.append(zero_point(g, "B"))
    g.node(op, inputs, ("i", shape, -1e7, 1e7, True), **attributes)


def comparable(g, q, scale, zero):
    """Dequantizes q, so that it can be compared with a tolerance."""
    domain = "com.microsoft" if g.opset < 10 else ""
    return g.node("DequantizeLinear", [q, scale, zero], ("f", q.shape, -256, 256, False), domain=domain)


def qlinear_matmul(g, op):
    kind = g.one_of("B", "B", "c")
    m, k, n = g.dims(3, 1, 6)
    batch = g.sizes(g.integer(0, 1), 1, 3)
    ends = (0, 255) if kind == "B" else (-128, 127)
    x, w = g.input(kind, (*batch, m, k), *ends), g.either(kind, (k, n), *ends)
    (xs, xz), (ws, wz), (ys, yz) = [parameters(g, kind, scale=v) for v in (0.0297, 0.01713, 0.2911)]
    q = g.node(op, [x, xs, xz, w, ws, wz, ys, yz], (kind, (*batch, m, n), *ends, False))
    comparable(g, q, ys, yz)


def qlinear_conv(g, op):
    kind = g.one_of("B", "c")
    x, w, shape, attributes = convolution(g, kind)
    (xs, xz), (ys, yz) = [parameters(g, "B", scale=v) for v in (0.0297, 0.2911)]
    count = w.shape[0] if g.chance(0.4) else None
    ws, wz = parameters(g, kind, count, scale=0.01713)
    if count is not None:
        wz = g.constant(np.full(count, wz.constant[0]))
    inputs = [x, xs, xz, w, ws, wz, ys, yz] + ([g.constant(g.array("i", (w.shape[0],), -500, 500))] if g.chance(0.5) else [])
    q = g.node(op, inputs, ("B", shape, 0, 255, False), **attributes)
    comparable(g, q, ys, yz)


ROWS = {
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer, "ConvInteger": conv_integer, "QLinearMatMul": qlinear_matmul, "QLinearConv": qlinear_conv,
}
