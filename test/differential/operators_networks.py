"""Random nodes of the operators that networks are made of: products, convolutions, pools, norms, images, recurrences,
quantisation, control flow."""
import numpy as np

from graph import TYPES, Unfit, wire


def matmul(g, op):
    x = g.pick(rank=(1, 4), low=-10, high=10)
    k, n = x.shape[-1], g.integer(1, 5)
    if x.rank > 2 and g.chance(0.4):
        y = g.input("f", (*x.shape[:-2], k, n))
    elif g.chance(0.2):
        y = g.input("f", (k,))
    else:
        y = g.weights(k, n) if g.chance(0.6) else g.input("f", (k, n))
    shape = (*x.shape[:-1], *y.shape[-1:]) if y.rank > 1 else x.shape[:-1]
    if x.rank == 1:
        shape = y.shape[:-2] + y.shape[-1:] if y.rank > 1 else ()
    if not shape:
        raise Unfit
    bound = k * x.bound * y.bound
    g.node(op, [x, y], ("f", shape, -bound, bound, False))


def gemm(g, op):
    x = g.pick(rank=2, low=-10, high=10)
    trans_a, trans_b, n = g.integer(0, 1), g.integer(0, 1), g.integer(1, 5)
    m, k = x.shape[::-1] if trans_a else x.shape
    y = (g.weights if g.chance(0.6) else lambda *s: g.input("f", s))(*((n, k) if trans_b else (k, n)))
    inputs = [x, y] + ([g.weights(*g.one_of((n,), (1, n), (m, n), (m, 1)))] if g.chance(0.7) else [])
    alpha, beta = g.one_of(1.0, 0.5), g.one_of(1.0, 2.0)
    bound = k * x.bound * y.bound + 2
    g.node(op, inputs, ("f", (m, n), -bound, bound, False), alpha=alpha, beta=beta, transA=trans_a, transB=trans_b)


def einsum(g, op):
    a, b, c, d = g.dims(4, 1, 4)
    equation, shapes, out = g.one_of(
        ("ij,jk->ik", [(a, b), (b, c)], (a, c)), ("bij,bjk->bik", [(d, a, b), (d, b, c)], (d, a, c)),
        ("bhid,bhjd->bhij", [(2, a, b, c), (2, a, d, c)], (2, a, b, d)), ("ij->ji", [(a, b)], (b, a)),
        ("ij->i", [(a, b)], (a,)), ("i,j->ij", [(a,), (b,)], (a, b)), ("ijk,ijk->ij", [(a, b, c)] * 2, (a, b)),
        ("abc,cd->abd", [(a, b, c), (c, d)], (a, b, d)), ("ij,ij->", [(a, b)] * 2, ()), ("...ij,...jk->...ik", [(d, a, b), (d, b, c)], (d, a, c)))
    if not out:
        raise Unfit
    inputs = [g.input("f", s) for s in shapes]
    g.node(op, inputs, ("f", out, -64, 64, False), equation=equation)


def windows(g, spatial, kernel, strides, dilations, auto_pad, ceil=False):
    """(attributes, output size), for a convolution or a pool."""
    attributes, out = {}, []
    if auto_pad:
        attributes["auto_pad"] = auto_pad
        for n, k, s, d in zip(spatial, kernel, strides, dilations):
            out.append(-(-n // s) if auto_pad.startswith("SAME") else (n - (k - 1) * d - 1) // s + 1)
    else:
        begin, end = [g.integer(0, k - 1) for k in kernel], [g.integer(0, k - 1) for k in kernel]
        attributes["pads"] = begin + end
        for n, k, s, d, a, b in zip(spatial, kernel, strides, dilations, begin, end):
            free = n + a + b - (k - 1) * d - 1
            out.append((-(-free // s) if ceil else free // s) + 1)
            if ceil and (out[-1] - 1) * s >= n + a:
                out[-1] -= 1  # a window that begins in the padding behind is left out
    if min(out) < 1:
        raise Unfit
    return attributes, out


def spatial_input(g, rank=None, channels=(1, 4), low=3, high=8):
    rank = rank or g.one_of(1, 2, 2, 2, 3)
    shape = (g.integer(1, 2), g.integer(*channels), *g.dims(rank, low, 5 if rank == 3 else high))
    return g.pick(rank=rank + 2, low=-10, high=10, where=lambda v: min(v.shape[2:]) >= low, shape=None, fresh=0) \
        if g.chance(0.3) and any(v.kind == "f" and v.rank == rank + 2 and min(v.shape[2:]) >= low and v.bound <= 10 for v in g.values) \
        else g.input("f", shape)


def conv(g, op):
    x = spatial_input(g)
    rank = x.rank - 2
    group = g.one_of(1, 1, x.shape[1])
    out = group * g.integer(1, 3)
    kernel, strides, dilations = [list(g.dims(rank, 1, 3)) for _ in range(3)]
    strides, dilations = [min(s, 2) for s in strides], [min(d, 2) for d in dilations]
    auto = g.one_of("", "", "", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto.startswith("SAME"):
        dilations = [1] * rank
    attributes, size = windows(g, x.shape[2:], kernel, strides, dilations, auto)
    inputs = [x, g.weights(out, x.shape[1] // group, *kernel)] + ([g.weights(out)] if g.chance(0.6) else [])
    bound = x.bound * x.shape[1] * int(np.prod(kernel)) + 1
    g.node(op, inputs, ("f", (x.shape[0], out, *size), -bound, bound, False), group=group, strides=strides,
           dilations=dilations, kernel_shape=kernel, **attributes)


def conv_transpose(g, op):
    x = spatial_input(g, g.one_of(1, 2, 2), low=2, high=5)
    rank = x.rank - 2
    group = g.one_of(1, 1, x.shape[1])
    out = g.integer(1, 3)
    kernel = list(g.dims(rank, 1, 3))
    strides = list(g.dims(rank, 1, 2))
    dilations = list(g.dims(rank, 1, 2))
    extra = [g.integer(0, s - 1) for s in strides]
    begin, end = [g.integer(0, k - 1) for k in kernel], [g.integer(0, k - 1) for k in kernel]
    size = [s * (n - 1) + o + (k - 1) * d + 1 - a - b
            for n, s, o, k, d, a, b in zip(x.shape[2:], strides, extra, kernel, dilations, begin, end)]
    if min(size) < 1:
        raise Unfit
    inputs = [x, g.weights(x.shape[1], out, *kernel)] + ([g.weights(out * group)] if g.chance(0.6) else [])
    bound = x.bound * x.shape[1] * int(np.prod(kernel)) + 1
    g.node(op, inputs, ("f", (x.shape[0], out * group, *size), -bound, bound, False), group=group, strides=strides,
           dilations=dilations, kernel_shape=kernel, pads=begin + end, output_padding=extra)


def pool(g, op):
    x = spatial_input(g)
    rank = x.rank - 2
    kernel = list(g.dims(rank, 1, 3))
    strides = list(g.dims(rank, 1, 2))
    auto = g.one_of("", "", "", "SAME_UPPER", "SAME_LOWER", "VALID")
    ceil = not auto and op != "LpPool" and g.chance(0.3)
    dilated = op == "MaxPool" and not auto and not ceil and g.chance(0.3)
    dilations = [2 if dilated else 1] * rank
    attributes, size = windows(g, x.shape[2:], kernel, strides, dilations, auto, ceil)
    if ceil:
        attributes["ceil_mode"] = 1
    if dilated:
        attributes["dilations"] = dilations
    if op == "AveragePool":
        attributes["count_include_pad"] = g.integer(0, 1)
    if op == "LpPool":
        attributes["p"] = g.integer(1, 3)
    bound = x.bound * (int(np.prod(kernel)) if op == "LpPool" else 1)
    g.node(op, [x], ("f", (*x.shape[:2], *size), -bound, bound, False), kernel_shape=kernel, strides=strides, **attributes)


def global_pool(g, op):
    x = spatial_input(g)
    bound = x.bound * (x.size if op == "GlobalLpPool" else 1)
    g.node(op, [x], ("f", (*x.shape[:2], *[1] * (x.rank - 2)), -bound, bound, False),
           **({"p": g.integer(1, 3)} if op == "GlobalLpPool" else {}))


def channels(g, x):
    return g.weights(x.shape[1]), g.weights(x.shape[1])


def norm(g, op):
    if op == "BatchNormalization":
        x = g.pick(rank=(2, 4), low=-10, high=10)
        mean, variance = g.weights(x.shape[1]), g.weights(x.shape[1], low=0.5, high=2)
        return g.node(op, [x, *channels(g, x), mean, variance], ("f", x.shape, -2 * x.bound - 4, 2 * x.bound + 4, False),
                      epsilon=1e-3)
    if op == "InstanceNormalization":
        x = g.input("f", (g.integer(1, 2), g.integer(1, 3), *g.dims(g.integer(1, 2), 4, 6)))
        return g.node(op, [x, *channels(g, x)], ("f", x.shape, -8, 8, False), epsilon=1e-2)
    if op == "GroupNormalization":
        if g.opset < 21:
            raise Unfit
        groups = g.integer(1, 2)
        x = g.input("f", (g.integer(1, 2), groups * g.integer(1, 2), *g.dims(g.integer(1, 2), 3, 5)))
        return g.node(op, [x, *channels(g, x)], ("f", x.shape, -8, 8, False), epsilon=1e-2, num_groups=groups)
    if op in ("LayerNormalization", "RMSNormalization"):
        if g.opset < (17 if op[0] == "L" else 23):
            raise Unfit
        x = g.input("f", (*g.dims(g.integer(1, 2), 1, 3), g.integer(4, 8)))
        axis = g.integer(-x.rank, -1)
        inputs = [x, g.weights(*x.shape[axis:])]
        if op[0] == "L" and g.chance(0.7):
            inputs.append(g.weights(*x.shape[axis:]))
        return g.node(op, inputs, ("f", x.shape, -8, 8, False), axis=axis, epsilon=1e-2)
    x = g.input("f", g.dims(4, 2, 4))
    if op == "MeanVarianceNormalization":
        return g.node(op, [x], ("f", x.shape, -8, 8, False), axes=g.one_of([0, 2, 3], [2, 3]))
    if op == "LRN":
        return g.node(op, [x], ("f", x.shape, -4, 4, False), size=g.one_of(1, 3), alpha=0.1, beta=0.75, bias=g.one_of(1.0, 2.0))
    g.node("LpNormalization", [g.same("Exp", x, 0.1, 8)], ("f", x.shape, 0, 1, False), axis=g.integer(-4, 3), p=g.integer(1, 2))


def resize(g, op):
    x = g.input("f", (1, g.integer(1, 2), *g.dims(2, 2, 5)))
    mode = g.one_of("nearest", "linear", "linear", "cubic")
    transform = g.one_of("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = g.one_of("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.one_of(-0.75, -0.5)
    if g.chance(0.5):
        scales = [1.0, 1.0, g.one_of(0.5, 1.5, 2.0, 3.0), g.one_of(1.0, 2.0, 0.75)]
        size = [int(np.floor(n * s)) for n, s in zip(x.shape, scales)]
        inputs = [x, None, g.constant(np.array(scales, "<f4"))]
        if transform == "align_corners" and any(n * s != d for n, s, d in zip(x.shape, scales, size)):
            g.known.add("Resize")
    else:
        size = [*x.shape[:2], *g.dims(2, 1, 8)]
        inputs = [x, None, None, g.ints(size)]
    g.node(op, inputs, ("f", size, -4, 4, False), **attributes)


def grid_sample(g, op):
    if g.opset < 16:
        raise Unfit
    n, c, h, w = g.integer(1, 2), g.integer(1, 2), g.integer(2, 5), g.integer(2, 5)
    x = g.input("f", (n, c, h, w))
    grid = g.input("f", (n, *g.dims(2, 1, 4), 2), -1.1, 1.1)
    grid = g.node("Mul", [grid, g.constant(np.array(0.93, "<f4"))], ("f", grid.shape, -1.1, 1.1, False))  # off the ties
    linear, cubic = ("linear", "cubic") if g.opset >= 20 else ("bilinear", "bicubic")
    g.node(op, [x, grid], ("f", (n, c, *grid.shape[1:3]), -6, 6, False), mode=g.one_of(linear, linear, "nearest", cubic),
           padding_mode=g.one_of("zeros", "border", "reflection"), align_corners=g.integer(0, 1))


def affine_grid(g, op):
    if g.opset < 20:
        raise Unfit
    n = g.integer(1, 2)
    theta = g.input("f", (n, 2, 3))
    h, w = g.dims(2, 2, 4)
    g.node(op, [theta, g.ints([n, 1, h, w])], ("f", (n, h, w, 2), -6, 6, False), align_corners=g.integer(0, 1))


def roi_align(g, op):
    if g.opset < 16:
        raise Unfit
    x = g.input("f", (1, g.integer(1, 2), 6, 6))
    corner = g.rng.randint(0, 5, (2, 2)) / 2 + 0.125
    boxes = g.constant(np.concatenate([corner, corner + g.rng.randint(2, 6, (2, 2)) / 2], 1).astype("<f4"))
    h, w = g.dims(2, 1, 3)
    g.node(op, [x, boxes, g.ints([0, 0])], ("f", (2, x.shape[1], h, w), -2, 2, False), output_height=h, output_width=w,
           sampling_ratio=g.integer(1, 2), spatial_scale=g.one_of(1.0, 0.5), mode=g.one_of("avg", "avg", "max"),
           coordinate_transformation_mode=g.one_of("half_pixel", "output_half_pixel"))


def recurrent(g, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    length, batch, size, hidden = g.integer(1, 4), g.integer(1, 3), g.integer(1, 4), g.integer(1, 4)
    direction = g.one_of("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    x = g.input("f", (length, batch, size))
    inputs = [x, g.weights(ways, gates * hidden, size), g.weights(ways, gates * hidden, hidden)]
    inputs.append(g.weights(ways, 2 * gates * hidden) if g.chance(0.7) else None)
    inputs.append(None)
    states = g.integer(0, 1)
    for _ in range(2 if op == "LSTM" else 1):
        inputs.append(g.input("f", (ways, batch, hidden)) if states else None)
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"direction": direction, "hidden_size": hidden}
    if op == "GRU":
        attributes["linear_before_reset"] = g.integer(0, 1)
    state = ("f", (ways, batch, hidden), -8, 8, False)
    outputs = [("f", (length, ways, batch, hidden), -1, 1, False), state] + ([state] if op == "LSTM" else [])
    if g.chance(0.4):
        outputs[0] = None
    g.node(op, inputs, *outputs, **attributes)


def quantize(g, op):
    kind = g.one_of("B", "c")
    x = g.pick(low=-8, high=8, exact=True)
    low, high = (0, 255) if kind == "B" else (-128, 127)
    zero = g.constant(np.array(g.integer(100, 150) if kind == "B" else g.integer(-20, 20), TYPES[kind][1]))
    scale = g.constant(np.array(g.one_of(0.0625, 0.03125, 0.25), "<f4"))
    q = g.node("QuantizeLinear", [x, scale, zero], (kind, x.shape, low, high, True))
    if op == "DequantizeLinear" or g.chance(0.7):
        g.node("DequantizeLinear", [q, scale, zero], ("f", x.shape, -64, 64, True))


def dynamic_quantize(g, op):
    x = g.input("f", g.dims(g.integer(1, 3)))
    y = g.same("Mul", x, -6, 6, extra=[g.constant(np.array(0.9137, "<f4"))])
    q, scale, zero = g.node(op, [y], ("B", x.shape, 0, 255, False), ("f", (), 0, 1, False), ("B", (), 0, 255, False))
    g.node("DequantizeLinear", [q, scale, zero], ("f", x.shape, -8, 8, False))


def integer_product(g, op):
    kind = g.one_of("B", "c")
    if op == "MatMulInteger":
        m, k, n = g.dims(3, 1, 6)
        x, y = g.input(kind, (m, k), 0, 100), g.constant(g.array("c", (k, n), -100, 100))
        inputs = [x, y] + ([g.constant(np.array(g.integer(0, 20), TYPES[kind][1]))] if g.chance(0.6) else [])
        return g.node(op, inputs, ("i", (m, n), -1e6, 1e6, True))
    x = g.input("B", (1, g.integer(1, 3), 5, 5), 0, 200)
    w = g.constant(g.array("B", (2, x.shape[1], 3, 3), 0, 200))
    inputs = [x, w] + ([g.constant(np.array(g.integer(0, 200), "u1"))] if g.chance(0.6) else [])
    g.node(op, inputs, ("i", (1, 2, 3, 3), -1e7, 1e7, True))


def quantized_product(g, op):
    x_scale, w_scale, y_scale = [g.constant(np.array(v, "<f4")) for v in (0.03, 0.017, 0.29)]
    zero = [g.constant(np.array(g.integer(100, 150), "u1")) for _ in range(3)]
    if op == "QLinearMatMul":
        m, k, n = g.dims(3, 1, 6)
        x, w = g.input("B", (m, k), 0, 255), g.constant(g.array("B", (k, n), 0, 255))
        return g.node(op, [x, x_scale, zero[0], w, w_scale, zero[1], y_scale, zero[2]], ("B", (m, n), 0, 255, False))
    x, w = g.input("B", (1, 2, 5, 5), 0, 255), g.constant(g.array("B", (3, 2, 3, 3), 0, 255))
    g.node(op, [x, x_scale, zero[0], w, w_scale, zero[1], y_scale, zero[2]], ("B", (1, 3, 3, 3), 0, 255, False))


def dft(g, op):
    if g.opset < 17:
        raise Unfit
    n = g.integer(2, 6)
    x = g.input("f", (1, n, g.integer(1, 2)))
    one = g.integer(0, 1) if x.shape[2] == 1 else 0
    out = n // 2 + 1 if one else n
    if g.opset >= 20:
        return g.node(op, [x, None, g.constant(np.array(1, "<i8"))], ("f", (1, out, 2), -32, 32, False), onesided=one)
    g.node(op, [x], ("f", (1, out, 2), -32, 32, False), axis=1, onesided=one)


def stft(g, op):
    if g.opset < 17:
        raise Unfit
    frame, step = g.one_of(4, 8), g.one_of(2, 4)
    n = frame + step * g.integer(0, 3)
    x = g.input("f", (1, n, 1))
    window = g.weights(frame, low=0.25, high=1)
    one = g.integer(0, 1)
    frames, bins = (n - frame) // step + 1, frame // 2 + 1 if one else frame
    g.node(op, [x, g.constant(np.array(step, "<i8")), window], ("f", (1, frames, bins, 2), -32, 32, False), onesided=one)


def window(g, op):
    if g.opset < 17:
        raise Unfit
    n = g.integer(3, 8)
    made = g.node(op, [g.constant(np.array(n, "<i8"))], ("f", (n,), 0, 1, False), periodic=g.integer(0, 1))
    g.node("Mul", [made, g.input("f", (n,))], ("f", (n,), -2, 2, False))


def mel(g, op):
    if g.opset < 17:
        raise Unfit
    parts = [np.array(v, k) for v, k in ((3, "<i8"), (16, "<i8"), (8000, "<i8"), (100.0, "<f4"), (4000.0, "<f4"))]
    made = g.node(op, [g.constant(p) for p in parts], ("f", (9, 3), 0, 1, False))
    g.node("MatMul", [g.input("f", (2, 9)), made], ("f", (2, 3), -18, 18, False))


def det(g, op):
    n = g.integer(1, 3)
    x = g.input("f", (2, n, n))
    g.node(op, [x], ("f", (2,), -50, 50, False))


def loss(g, op):
    n, c = g.integer(1, 3), g.integer(2, 4)
    x = g.pick(low=-5, high=5, shape=(n, c))
    labels = g.input("l", (n,), 0, c - 1)
    inputs = [x, labels] + ([g.weights(c, low=0.5, high=1)] if g.chance(0.4) else [])
    reduction = g.one_of("none", "mean", "sum")
    made = g.node(op, inputs, ("f", (n,) if reduction == "none" else (), -50, 50, False), reduction=reduction)
    if reduction != "none":
        g.node("Reshape", [made, g.ints([1])], ("f", (1,), -50, 50, False))


def max_unpool(g, op):
    x = g.input("f", (1, 1, 2, 2))
    index = g.ints([[[[0, 3], [9, 14]]]])
    g.node(op, [x, index], ("f", (1, 1, 4, 4), -2, 2, True), kernel_shape=[2, 2], strides=[2, 2])


def max_roi_pool(g, op):
    x = g.input("f", (1, 2, 6, 6))
    boxes = g.constant(np.array([[0, 0, 0, 3, 3], [0, 1, 2, 5, 5]], "<f4"))
    g.node(op, [x, boxes], ("f", (2, 2, 2, 2), -2, 2, True), pooled_shape=[2, 2])


def attention(g, op):
    if g.opset < 23:
        raise Unfit
    b, h, q, kv, d = g.integer(1, 2), g.one_of(1, 2), g.integer(1, 4), g.integer(1, 4), g.one_of(2, 4)
    inputs = [g.input("f", (b, h, n, d)) for n in (q, kv, kv)]
    if g.chance(0.4):
        inputs.append(g.weights(q, kv))
    g.node(op, inputs, ("f", (b, h, q, d), -2, 2, False), is_causal=g.integer(0, 1) if len(inputs) == 3 else 0)


def rotary(g, op):
    if g.opset < 23:
        raise Unfit
    b, h, n, d = g.integer(1, 2), g.integer(1, 2), g.integer(1, 3), g.one_of(4, 8)
    x = g.input("f", (b, h, n, d))
    caches = [g.weights(6, d // 2) for _ in range(2)]
    positions = g.input("l", (b, n), 0, 5)
    g.node("RotaryEmbedding", [x, *caches, positions], ("f", x.shape, -4, 4, False), interleaved=g.integer(0, 1))


# ---- control flow: the body is written with g's names, so that it sees the values outside

def body(nodes, inputs, outputs):
    return (wire.graph(nodes, inputs, outputs, name="body"),)


def if_(g, op):
    x = g.pick(rank=(1, 3))
    condition = g.constant(np.array(g.chance(0.5))) if g.chance(0.4) else g.input("b", (), 0, 1)
    branches = []
    for inner in ("Relu", "Neg"):
        y = g.name("v")
        branches.append(body([wire.node(inner, [x.name], [y])], [], [wire.value_info(y, wire.FLOAT, x.shape)]))
    g.node(op, [condition], ("f", x.shape, -x.bound, x.bound, x.exact), then_branch=branches[0], else_branch=branches[1])
    x.used = True


def loop(g, op):
    x = g.pick(rank=(1, 3), low=-4, high=4)
    trips = g.integer(1, 3)
    i, cond_in, state, cond_out, moved, scanned = [g.name("v") for _ in range(6)]
    inner = body([wire.node("Identity", [cond_in], [cond_out]), wire.node("Add", [state, x.name], [moved]),
                  wire.node("Identity", [moved], [scanned])],
                 [wire.value_info(i, wire.INT64, []), wire.value_info(cond_in, wire.BOOL, []),
                  wire.value_info(state, wire.FLOAT, x.shape)],
                 [wire.value_info(cond_out, wire.BOOL, []), wire.value_info(moved, wire.FLOAT, x.shape),
                  wire.value_info(scanned, wire.FLOAT, x.shape)])
    bound = x.bound * (trips + 1)
    g.node(op, [g.constant(np.array(trips, "<i8")), g.constant(np.array(True)), x], ("f", x.shape, -bound, bound, x.exact),
           ("f", (trips, *x.shape), -bound, bound, x.exact), body=inner)


def scan(g, op):
    x = g.pick(rank=(2, 3), low=-4, high=4)
    start = g.input("f", x.shape[1:])
    state, item, moved, scanned = [g.name("v") for _ in range(4)]
    inner = body([wire.node("Add", [state, item], [moved]), wire.node("Identity", [moved], [scanned])],
                 [wire.value_info(n, wire.FLOAT, x.shape[1:]) for n in (state, item)],
                 [wire.value_info(n, wire.FLOAT, x.shape[1:]) for n in (moved, scanned)])
    bound = x.bound * x.shape[0] + 2
    g.node(op, [start, x], ("f", x.shape[1:], -bound, bound, x.exact), ("f", x.shape, -bound, bound, x.exact), body=inner,
           num_scan_inputs=1, scan_input_directions=[g.integer(0, 1)])


ROWS = {
    "MatMul": matmul, "Gemm": gemm, "Einsum": einsum, "Conv": conv, "ConvTranspose": conv_transpose,
    **{op: pool for op in ("AveragePool", "MaxPool", "LpPool")},
    **{op: global_pool for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")},
    **{op: norm for op in ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization",
                           "RMSNormalization", "MeanVarianceNormalization", "LRN", "LpNormalization")},
    "Resize": resize, "GridSample": grid_sample, "AffineGrid": affine_grid, "RoiAlign": roi_align,
    **{op: recurrent for op in ("LSTM", "GRU", "RNN")},
    "QuantizeLinear": quantize, "DequantizeLinear": quantize, "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": integer_product, "ConvInteger": integer_product, "QLinearMatMul": quantized_product,
    "QLinearConv": quantized_product, "DFT": dft, "STFT": stft,
    **{op: window for op in ("HannWindow", "HammingWindow", "BlackmanWindow")}, "MelWeightMatrix": mel, "Det": det,
    "NegativeLogLikelihoodLoss": loss, "SoftmaxCrossEntropyLoss": loss, "MaxUnpool": max_unpool, "MaxRoiPool": max_roi_pool,
    "Attention": attention, "RotaryEmbedding": rotary, "If": if_, "Loop": loop, "Scan": scan,
}
