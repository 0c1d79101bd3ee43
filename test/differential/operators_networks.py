"""Random nodes of typical network operators: matrix products, convolutions, pools, normalizations."""
import numpy as np

from graph import Unfit


def matmul(g, op):
    x = g.pick(g.one_of("f", "f", "f", "f", "d", *("i" if g.opset >= 9 else "")), rank=(1, 5), low=-10, high=10)
    k, n = x.shape[-1], g.integer(1, 5)
    batch = x.shape[:-2]
    if x.rank > 2 and g.chance(0.4):
        batch = tuple(d if g.chance(0.7) else 1 for d in batch)
        shape = (*batch[g.integer(0, len(batch)) if g.chance(0.3) else 0:], k, n)
    elif x.rank == 2 and g.chance(0.3):
        shape = (*g.dims(g.integer(1, 2), 1, 3), k, n)
    else:
        shape = (k,) if g.chance(0.2) else (k, n)
    y = g.either(x.kind, shape, -1, 1, constant=0.5)
    if g.chance(0.15) and x.rank > 1 and x.kind == "f":  # the constant is the left operand
        m = g.integer(1, 4)
        a = g.weights(m, x.shape[-2])
        bound = x.shape[-2] * x.bound
        return g.node(op, [a, x], ("f", (*x.shape[:-2], m, k), -bound, bound, False))
    if x.rank > 1 and y.rank > 1:
        shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], n)
    else:
        shape = (*x.shape[:-1], *y.shape[-1:]) if y.rank > 1 and x.rank > 1 else x.shape[:-1] if x.rank > 1 else \
            y.shape[:-2] + y.shape[-1:] if y.rank > 1 else ()
    bound = k * x.bound * y.bound
    g.node(op, [x, y], (x.kind, shape, -bound, bound, x.kind == "i"))


def gemm(g, op):
    x = g.pick(rank=2, low=-10, high=10)
    trans_a, trans_b, n = g.integer(0, 1), g.integer(0, 1), g.integer(1, 5)
    m, k = x.shape[::-1] if trans_a else x.shape
    y = g.either("f", (n, k) if trans_b else (k, n), -1, 1)
    alpha, beta = g.one_of(1.0, 0.5, -2.0), g.one_of(1.0, 2.0, 0.25)
    inputs = [x, y]
    if g.opset < 11 or g.chance(0.7):
        inputs.append(g.either("f", g.one_of((n,), (1, n), (m, n), (m, 1), (), (1,)), -1, 1))
    bound = 2 * k * x.bound * y.bound + 2
    g.node(op, inputs, ("f", (m, n), -bound, bound, False),
           **{k: v for k, v in (("alpha", alpha), ("beta", beta), ("transA", trans_a), ("transB", trans_b))
              if v != (1.0 if isinstance(v, float) else 0) or g.chance(0.5)})


def einsum(g, op):
    a, b, c, d = g.dims(4, 1, 4)
    equation, shapes, out = g.one_of(
        ("ij,jk->ik", [(a, b), (b, c)], (a, c)), ("bij,bjk->bik", [(d, a, b), (d, b, c)], (d, a, c)),
        ("bhid,bhjd->bhij", [(2, a, b, c), (2, a, d, c)], (2, a, b, d)), ("ij->ji", [(a, b)], (b, a)),
        ("ij->i", [(a, b)], (a,)), ("i,j->ij", [(a,), (b,)], (a, b)), ("ijk,ijk->ij", [(a, b, c)] * 2, (a, b)),
        ("abc,cd->abd", [(a, b, c), (c, d)], (a, b, d)), ("ij,ij->", [(a, b)] * 2, ()), ("ij,jk", [(a, b), (b, c)], (a, c)),
        ("...ij,...jk->...ik", [(d, a, b), (d, b, c)], (d, a, c)), ("...ij,jk->...ik", [(d, a, b), (b, c)], (d, a, c)),
        ("ii->i", [(a, a)], (a,)), ("ii", [(a, a)], ()), ("bii->b", [(b, a, a)], (b,)), ("ij,jk,kl->il", [(a, b), (b, c), (c, d)], (a, d)),
        ("bij,bj->bi", [(d, a, b), (d, b)], (d, a)), ("ijk->kij", [(a, b, c)], (c, a, b)), (" i j , k -> k j ", [(a, b), (c,)], (c, b)),
        ("bn,anm,bm->ba", [(a, b), (c, b, d), (a, d)], (a, c)), ("...i->...", [(a, b, c)], (a, b)))
    inputs = [g.either("f", s, -2, 2, constant=0.2) for s in shapes[1:]]
    g.node(op, [g.input("f", shapes[0]), *inputs], ("f", out, -1024, 1024, False), equation=equation)


def windows(g, spatial, kernel, strides, dilations, auto_pad, ceil=False, least=1):
    """Returns (attributes, output size) of a convolution or pool."""
    attributes, out = {}, []
    if auto_pad:
        attributes["auto_pad"] = auto_pad
        for n, k, s, d in zip(spatial, kernel, strides, dilations):
            if auto_pad.startswith("SAME") and ((-(-n // s) - 1) * s + (k - 1) * d + 1 < n):
                raise Unfit  # onnxruntime rejects negative padding
            out.append(-(-n // s) if auto_pad.startswith("SAME") else (n - (k - 1) * d - 1) // s + 1)
    else:
        begin, end = [g.integer(0, k - 1) for k in kernel], [g.integer(0, k - 1) for k in kernel]
        if g.chance(0.3):
            begin = end = [0] * len(kernel)
        if any(begin + end) or g.chance(0.5):
            attributes["pads"] = begin + end
        for n, k, s, d, a, b in zip(spatial, kernel, strides, dilations, begin, end):
            free = n + a + b - (k - 1) * d - 1
            out.append((-(-free // s) if ceil else free // s) + 1)
            if ceil and (out[-1] - 1) * s >= n + a:
                out[-1] -= 1  # a window that starts in the padding at the end is omitted
    if min(out) < least:
        raise Unfit
    return attributes, out


def spatial_input(g, rank=None, channels=(1, 4), low=3, high=8):
    rank = rank or g.one_of(1, 2, 2, 2, 3)
    shape = (g.integer(1, 2), g.integer(*channels), *g.sizes(rank, low, 5 if rank == 3 else high))
    return g.pick(rank=rank + 2, low=-10, high=10, where=lambda v: min(v.shape[2:]) >= low, shape=None, fresh=0) \
        if g.chance(0.3) and any(v.kind == "f" and v.rank == rank + 2 and min(v.shape[2:]) >= low and v.bound <= 10 for v in g.values) \
        else g.input("f", shape)


def conv(g, op):
    x = spatial_input(g)
    rank = x.rank - 2
    group = g.one_of(1, 1, x.shape[1], *([2] if x.shape[1] % 2 == 0 else []))
    out = group * g.integer(1, 3)
    kernel, strides, dilations = [list(g.dims(rank, 1, 3)) for _ in range(3)]
    auto = g.one_of("", "", "", "", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto.startswith("SAME"):
        dilations = [1] * rank
    attributes, size = windows(g, x.shape[2:], kernel, strides, dilations, auto)
    inputs = [x, g.either("f", (out, x.shape[1] // group, *kernel), -1, 1, constant=0.85)] + ([g.weights(out)] if g.chance(0.6) else [])
    bound = x.bound * x.shape[1] * int(np.prod(kernel)) + 1
    g.node(op, inputs, ("f", (x.shape[0], out, *size), -bound, bound, False),
           **{k: v for k, v in (("group", group), ("strides", strides), ("dilations", dilations), ("kernel_shape", kernel))
              if k != "kernel_shape" and v not in (1, [1] * rank) or g.chance(0.6)}, **attributes)


def conv_transpose(g, op):
    x = spatial_input(g, g.one_of(1, 2, 2, 3), low=2, high=5)
    rank = x.rank - 2
    group = g.one_of(1, 1, x.shape[1], *([2] if x.shape[1] % 2 == 0 else []))
    out = g.integer(1, 3)
    kernel, strides, dilations = [list(g.dims(rank, 1, 3)) for _ in range(3)]
    extra = [g.integer(0, s - 1) if g.chance(0.5) else 0 for s in strides]
    full = [s * (n - 1) + o + (k - 1) * d + 1 for n, s, o, k, d in zip(x.shape[2:], strides, extra, kernel, dilations)]
    how, attributes = g.integer(0, 5), {}
    if how == 0:
        size, attributes["auto_pad"] = full, "VALID"
    elif how == 1:
        size, attributes["auto_pad"] = [n * s for n, s in zip(x.shape[2:], strides)], g.one_of("SAME_UPPER", "SAME_LOWER")
        if any(f < s for f, s in zip(full, size)):
            raise Unfit
    elif how == 2:
        size = [g.integer(max(1, f - 2), f) for f in full]
        attributes["output_shape"] = size
        if g.chance(0.5):
            attributes["auto_pad"] = g.one_of("SAME_UPPER", "SAME_LOWER", "NOTSET")
    else:
        begin, end = [g.integer(0, k - 1) for k in kernel], [g.integer(0, k - 1) for k in kernel]
        size = [f - a - b for f, a, b in zip(full, begin, end)]
        attributes["pads"] = begin + end
    if min(size) < 1:
        raise Unfit
    inputs = [x, g.weights(x.shape[1], out, *kernel)] + ([g.weights(out * group)] if g.chance(0.6) else [])
    bound = x.bound * x.shape[1] * int(np.prod(kernel)) + 1
    g.node(op, inputs, ("f", (x.shape[0], out * group, *size), -bound, bound, False),
           **{k: v for k, v in (("group", group), ("strides", strides), ("dilations", dilations), ("kernel_shape", kernel),
                                ("output_padding", extra))
              if k != "kernel_shape" and v not in (1, [1] * rank if k != "output_padding" else [0] * rank) or g.chance(0.6)}, **attributes)


def pool(g, op):
    x = spatial_input(g)
    rank = x.rank - 2
    kernel = list(g.dims(rank, 1, 3))
    strides = list(g.dims(rank, 1, 3))
    auto = g.one_of("", "", "", "", "SAME_UPPER", "SAME_LOWER", "VALID")
    since = {"MaxPool": (10, 10), "AveragePool": (10, 19), "LpPool": (18, 18)}[op]
    ceil = not auto and g.opset >= since[0] and g.chance(0.3)
    dilations = list(g.dims(rank, 1, 2)) if not auto and g.opset >= since[1] and g.chance(0.3) else [1] * rank
    attributes, size = windows(g, x.shape[2:], kernel, strides, dilations, auto, ceil)
    if ceil:
        attributes["ceil_mode"] = 1
    if dilations != [1] * rank:
        attributes["dilations"] = dilations
    if op == "AveragePool":
        attributes.update(g.some(count_include_pad=g.integer(0, 1)))
        pads = attributes.get("pads", [0] * 2 * rank)
        if ceil and attributes.get("count_include_pad") and any(
                (o - 1) * s + (k - 1) * d + 1 > n + a + b for o, s, k, d, n, a, b in zip(
                    size, strides, kernel, dilations, x.shape[2:], pads, pads[rank:])):
            g.known.add(op)
    if op == "LpPool":
        attributes["p"] = g.integer(1, 3)
    if strides != [1] * rank or g.chance(0.5):
        attributes["strides"] = strides
    bound = x.bound * (int(np.prod(kernel)) if op == "LpPool" else 1)
    low = 0 if op == "LpPool" else -bound
    outputs = [("f", (*x.shape[:2], *size), low, bound, False)]
    if op == "MaxPool":
        outputs[0] = ("f", (*x.shape[:2], *size), x.low, x.high, x.exact)
        if g.opset >= 8 and x.exact and g.chance(0.2) and not ceil and x.rank < 5:
            outputs.append(("l", outputs[0][1], 0, x.size, True))
            attributes.update(g.some(storage_order=g.integer(0, 1)))
    g.node(op, [x], *outputs, kernel_shape=kernel, **attributes)


def global_pool(g, op):
    x = spatial_input(g)
    bound = x.bound * (x.size if op == "GlobalLpPool" else 1)
    g.node(op, [x], ("f", (*x.shape[:2], *[1] * (x.rank - 2)), -bound, bound, x.exact and op == "GlobalMaxPool"),
           **(g.some(p=g.integer(1, 3)) if op == "GlobalLpPool" else {}))


def channels(g, x):
    return g.weights(x.shape[1]), g.weights(x.shape[1])


def norm(g, op):
    epsilon = g.some(epsilon=g.one_of(1e-2, 1e-3, 0.25))
    if op == "BatchNormalization":
        x = g.pick(rank=(2, 5), low=-10, high=10)
        mean, variance = g.weights(x.shape[1]), g.weights(x.shape[1], low=0.5, high=2)
        inputs = [x, *[g.either("f", (x.shape[1],), constant=0.8) for _ in range(2)], mean, variance]
        if g.opset >= 14 and g.chance(0.2):
            return g.node(op, inputs[:3] + [mean, variance], ("f", x.shape, -x.bound * 9 - 4, x.bound * 9 + 4, False),
                          *[("f", mean.shape, -60, 60, False), ("f", mean.shape, -1e4, 1e4, False)], training_mode=1, epsilon=0.25,
                          **g.some(momentum=0.75)) if x.size > x.shape[1] else None
        return g.node(op, inputs, ("f", x.shape, -2 * x.bound - 4, 2 * x.bound + 4, False), **epsilon,
                      **g.some(0.2, momentum=0.8))
    if op == "InstanceNormalization":
        x = g.input("f", (g.integer(1, 2), g.integer(1, 3), *g.sizes(g.integer(1, 3), 3, 5)))
        return g.node(op, [x, *channels(g, x)], ("f", x.shape, -8, 8, False), **epsilon)
    if op == "GroupNormalization":
        groups, each = g.integer(1, 3), g.integer(1, 2)
        x = g.input("f", (g.integer(1, 2), groups * each, *g.sizes(g.integer(1, 3), 3, 5)))
        scales = channels(g, x) if g.opset >= 21 else (g.weights(groups), g.weights(groups))
        return g.node(op, [x, *scales], ("f", x.shape, -8, 8, False), num_groups=groups, **epsilon)
    if op in ("LayerNormalization", "RMSNormalization"):
        x = g.input("f", (*g.sizes(g.integer(0, 3), 1, 3), g.integer(4, 8)))
        axis = g.integer(-x.rank, x.rank - 1)
        inputs = [x, g.either("f", x.shape[axis:], constant=0.8)]
        if op[0] == "L" and g.chance(0.7):
            inputs.append(g.weights(*x.shape[axis:]))
        outputs = [("f", x.shape, -8, 8, False)]
        if op[0] == "L" and g.chance(0.2):
            shape = tuple(d if i < axis % x.rank else 1 for i, d in enumerate(x.shape))
            outputs += [("f", shape, -2, 2, False), ("f", shape, 0, 10, False)]
        return g.node(op, inputs, *outputs, epsilon=g.one_of(1e-2, 0.25), **({} if axis in (-1,) and g.chance(0.5) else {"axis": axis}))
    x = g.input("f", g.sizes(4, 2, 4))
    if op == "MeanVarianceNormalization":
        return g.node(op, [x], ("f", x.shape, -8, 8, False), **g.some(0.8, axes=g.one_of([0, 2, 3], [2, 3], [1, 3], [0, 1, 2, 3])))
    if op == "LRN":
        x = g.input("f", (g.integer(1, 2), g.integer(1, 6), *g.sizes(2, 2, 4)))
        return g.node(op, [x], ("f", x.shape, -4, 4, False), size=g.one_of(1, 3, 5),
                      **g.some(alpha=g.one_of(0.1, 1.0), beta=g.one_of(0.75, 0.5), bias=g.one_of(1.0, 2.0)))
    x = g.same("Exp", g.pick(rank=(1, 5), low=-3, high=2), 0.04, 8)
    g.node("LpNormalization", [x], ("f", x.shape, 0, 1, False), **g.some(0.8, axis=g.integer(-x.rank, x.rank - 1), p=g.integer(1, 2)))


ROWS = {
    "MatMul": matmul, "Gemm": gemm, "Einsum": einsum, "Conv": conv, "ConvTranspose": conv_transpose,
    **{op: pool for op in ("AveragePool", "MaxPool", "LpPool")},
    **{op: global_pool for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")},
    **{op: norm for op in ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization",
                           "RMSNormalization", "MeanVarianceNormalization", "LRN", "LpNormalization")},
    **{op: "onnxruntime runs it in old models alone, without what graphs are made of: conformance/nodes_experimental.py compares it"
       for op in ("Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh")},
}
