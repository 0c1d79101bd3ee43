"""Random nodes of operators that move, choose and make elements."""
import numpy as np

from graph import Unfit, wire


def like(x, shape):
    """The output description of a result that holds elements of x."""
    return (x.kind, shape, x.low, x.high, x.exact)


def anything(g, **options):
    return g.pick(g.one_of("f", "f", "f", "l", "i"), **options)


def reshape(g, op):
    x = anything(g)
    target, rest = [], x.size
    while rest > 1 and len(target) < 4:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        d = g.one_of(*divisors)
        target.append(d)
        rest //= d
    shape = target + [rest] if rest > 1 or not target else target
    written = list(shape)
    if g.chance(0.4):
        written[g.integer(0, len(written) - 1)] = -1
    elif len(shape) <= x.rank and g.chance(0.3):
        written = [0 if i < x.rank and d == x.shape[i] else d for i, d in enumerate(shape)]
    g.node("Reshape", [x, g.ints(written)], like(x, shape))


def transpose(g, op):
    x = anything(g)
    perm = [int(i) for i in g.rng.permutation(x.rank)]
    if g.chance(0.1):
        return g.node(op, [x], like(x, x.shape[::-1]))
    g.node(op, [x], like(x, [x.shape[i] for i in perm]), perm=perm)


def flatten(g, op):
    x = anything(g)
    axis = g.integer(-x.rank, x.rank)
    at = axis % x.rank if axis < 0 else axis
    g.node(op, [x], like(x, [int(np.prod(x.shape[:at])), int(np.prod(x.shape[at:]))]), axis=axis)


def squeeze(g, op):
    x = anything(g, where=lambda v: 1 in v.shape and v.rank > 1)
    axes = [i for i, d in enumerate(x.shape) if d == 1]
    axes = [a for a in axes if g.chance(0.7)] or axes[:1]
    if len(axes) == x.rank:
        axes = axes[1:]
    shape = [d for i, d in enumerate(x.shape) if i not in axes]
    g.node(op, [x, g.ints([a - x.rank if g.chance(0.3) else a for a in axes])], like(x, shape))


def unsqueeze(g, op):
    x = anything(g, rank=(1, 3))
    rank = x.rank + g.integer(1, 2)
    axes = sorted(int(a) for a in g.rng.choice(rank, rank - x.rank, replace=False))
    shape = list(x.shape)
    for a in axes:
        shape.insert(a, 1)
    g.node(op, [x, g.ints([a - rank if g.chance(0.3) else a for a in axes])], like(x, shape))


def concat(g, op):
    x = anything(g)
    axis = g.integer(-x.rank, x.rank - 1)
    parts = [x]
    for _ in range(g.integer(0, 2)):
        shape = [g.integer(1, 4) if i == axis % x.rank else d for i, d in enumerate(x.shape)]
        parts.append(g.constant(g.array(x.kind, shape)) if g.chance(0.3) else g.input(x.kind, shape))
    shape = [sum(p.shape[i] for p in parts) if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    order = [parts[i] for i in g.rng.permutation(len(parts))]
    g.node(op, order, (x.kind, shape, min(p.low for p in parts), max(p.high for p in parts), all(p.exact for p in parts)),
           axis=axis)


def split(g, op):
    x = anything(g, where=lambda v: max(v.shape) > 1)
    axis = int(np.argmax(x.shape))
    n = x.shape[axis]
    first = g.integer(1, n - 1)
    sizes = [first, n - first]
    written = axis - x.rank if g.chance(0.5) else axis
    if n % 2 == 0 and g.chance(0.4):
        sizes, inputs, extra = [n // 2] * 2, [x], {"num_outputs": 2} if g.opset >= 18 else {}
    else:
        inputs, extra = [x, g.ints(sizes)], {}
    g.node(op, inputs, *[like(x, [s if i == axis else d for i, d in enumerate(x.shape)]) for s in sizes], axis=written, **extra)


def slice_(g, op):
    x = anything(g)
    axes = sorted(int(a) for a in g.rng.choice(x.rank, g.integer(1, x.rank), replace=False))
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for a in axes:
        step = g.one_of(1, 1, 2, -1, -2, 3)
        start, end = g.one_of(0, 1, -1, -2, 100), g.one_of(-1, 2, 3, 100, -100, 2 ** 63 - 1, -(2 ** 63))
        if step < 0 and g.chance(0.7):
            start, end = g.one_of(-1, 100, 2), g.one_of(-100, 0, -(2 ** 63))
        elif g.chance(0.7):
            start = g.one_of(0, 0, 1)
        shape[a] = len(range(x.shape[a])[start:end:step])
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    if 0 in shape:
        raise Unfit
    written = [a - x.rank if g.chance(0.3) else a for a in axes]
    inputs = [x, g.ints(starts), g.ints(ends), g.ints(written)] + ([g.ints(steps)] if set(steps) != {1} else [])
    g.node(op, inputs, like(x, shape))


def pad(g, op):
    mode = g.one_of("constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else []))
    x = g.pick(rank=(1, 4), where=lambda v: mode == "constant" or min(v.shape) > 1)
    begin = [g.integer(0, 1 if mode in ("reflect", "wrap") else 2) for _ in x.shape]
    end = [g.integer(0, 1 if mode in ("reflect", "wrap") else 2) for _ in x.shape]
    if mode == "constant" and g.chance(0.2):
        axis = int(np.argmax(x.shape))
        if x.shape[axis] > 1:
            begin[axis] = -1
    shape = [d + a + b for d, a, b in zip(x.shape, begin, end)]
    inputs = [x, g.ints(begin + end)]
    low, high = x.low, x.high
    if mode == "constant":
        low, high = min(low, 0), max(high, 0)
        if g.chance(0.5):
            inputs.append(g.constant(np.array(1.5, "<f4")))
            high = max(high, 1.5)
    g.node(op, inputs, ("f", shape, low, high, x.exact), mode=mode)


def tile(g, op):
    x = anything(g)
    repeats = [g.integer(1, 3) for _ in x.shape]
    g.node(op, [x, g.ints(repeats)], like(x, [d * r for d, r in zip(x.shape, repeats)]))


def expand(g, op):
    x = anything(g)
    shape = [g.integer(1, 4) if d == 1 else d for d in x.shape]
    if g.chance(0.3) and x.rank < 4:
        shape = [g.integer(1, 3)] + shape
    written = [1 if g.chance(0.2) else d for d in shape]
    shape = np.broadcast_shapes(x.shape, tuple(written))
    g.node(op, [x, g.ints(written)], like(x, shape))


def indices(g, shape, limit, negative=True):
    array = g.rng.randint(-limit if negative else 0, limit, shape).astype(g.one_of("<i8", "<i4"))
    return g.constant(array)


def gather(g, op):
    x = anything(g)
    axis = g.integer(-x.rank, x.rank - 1)
    index = indices(g, g.dims(g.integer(0, 2), 1, 3), x.shape[axis])
    at = axis % x.rank
    g.node(op, [x, index], like(x, [*x.shape[:at], *index.shape, *x.shape[at + 1:]]), axis=axis)


def gather_elements(g, op):
    x = anything(g)
    axis = g.integer(-x.rank, x.rank - 1)
    shape = [g.integer(1, 4) if i == axis % x.rank else g.integer(1, d) for i, d in enumerate(x.shape)]
    g.node(op, [x, indices(g, shape, x.shape[axis])], like(x, shape), axis=axis)


def index_tuples(g, dims, count_shape):
    parts = [g.rng.randint(-d, d, count_shape) for d in dims]
    return g.constant(np.stack(parts, -1).astype("<i8"))


def gather_nd(g, op):
    x = anything(g, rank=(2, 4))
    batch = g.integer(0, 1)
    k = g.integer(1, x.rank - batch)
    count = (*x.shape[:batch], g.integer(1, 3))
    index = index_tuples(g, x.shape[batch:batch + k], count)
    g.node(op, [x, index], like(x, [*count, *x.shape[batch + k:]]), batch_dims=batch)


def distinct(g, n, count):
    return g.rng.permutation(n)[:count]


def scatter_elements(g, op):
    x = g.pick()
    axis = g.integer(-x.rank, x.rank - 1)
    n = x.shape[axis]
    rows = g.integer(1, n)
    shape = [rows if i == axis % x.rank else g.integer(1, d) for i, d in enumerate(x.shape)]
    order = np.array(distinct(g, n, rows)).reshape([-1 if i == axis % x.rank else 1 for i in range(x.rank)])
    reduction = g.one_of("none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])) if g.opset >= 16 else "none"
    index = g.constant(np.broadcast_to(order, shape).astype("<i8").copy())
    bound = max(x.bound * 2, x.bound + 2, 2)
    g.node(op, [x, index, g.input("f", shape)], ("f", x.shape, -bound, bound, False),
           axis=axis, **({"reduction": reduction} if reduction != "none" else {}))


def scatter_nd(g, op):
    x = g.pick(rank=(1, 4))
    k = g.integer(1, x.rank)
    count = min(int(np.prod(x.shape[:k])), 3)
    flat = distinct(g, int(np.prod(x.shape[:k])), count)
    index = g.constant(np.stack(np.unravel_index(flat, x.shape[:k]), -1).astype("<i8"))
    reduction = g.one_of("none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])) if g.opset >= 16 else "none"
    bound = max(x.bound * 2, x.bound + 2, 2)
    g.node(op, [x, index, g.input("f", (count, *x.shape[k:]))], ("f", x.shape, -bound, bound, False),
           **({"reduction": reduction} if reduction != "none" else {}))


def one_hot(g, op):
    x = g.pick("l", rank=(1, 3), low=-4, high=4)
    axis = g.integer(-x.rank - 1, x.rank)
    depth = g.integer(5, 6)
    shape = list(x.shape)
    shape.insert(axis % (x.rank + 1), depth)
    g.node(op, [x, g.constant(np.array(depth, "<i8")), g.constant(np.array([-0.5, 1.5], "<f4"))], ("f", shape, -0.5, 1.5, True),
           axis=axis)


def depth_space(g, op):
    block = g.integer(1, 2)
    n, c, h, w = g.dims(4, 1, 3)
    if op == "DepthToSpace":
        x = g.input("f", (n, c * block * block, h, w))
        return g.node(op, [x], like(x, (n, c, h * block, w * block)), blocksize=block, mode=g.one_of("DCR", "CRD"))
    x = g.input("f", (n, c, h * block, w * block))
    g.node(op, [x], like(x, (n, c * block * block, h, w)), blocksize=block)


def shape_of(g, op):
    x = anything(g)
    if op == "Size":
        value = g.node(op, [x], ("l", (), x.size, x.size, True))
        return g.node("Reshape", [value, g.ints([1])], ("l", (1,), x.size, x.size, True))
    start = g.integer(0, x.rank - 1) if g.opset >= 15 else 0
    g.node(op, [x], ("l", (x.rank - start,), 1, 4000, True), **({"start": start} if start else {}))


def range_(g, op):
    start, step, n = g.integer(-3, 3), g.one_of(1, 2, -1), g.integer(1, 5)
    parts = [np.array(v, "<i8") for v in (start, start + step * n, step)]
    end = start + step * n
    g.node(op, [g.constant(p) for p in parts], ("l", (n,), min(start, end), max(start, end), True))


def constant_of_shape(g, op):
    shape = g.dims(g.integer(1, 3))
    value = wire.tensor("", wire.FLOAT, [1], np.array([g.one_of(0.0, 1.5)], "<f4").tobytes())
    made = g.node(op, [g.ints(shape)], ("f", shape, 0, 1.5, True), value=value)
    g.node("Add", [made, g.input("f", shape)], ("f", shape, -2, 3.5, True))


def eye_like(g, op):
    x = g.pick(rank=2)
    made = g.node(op, [x], ("f", x.shape, 0, 1, True), k=g.integer(-2, 2))
    g.node("Add", [made, x], ("f", x.shape, x.low, x.high + 1, x.exact))


def trilu(g, op):
    x = g.pick(rank=(2, 4))
    inputs = [x] + ([g.constant(np.array(g.integer(-2, 2), "<i8"))] if g.chance(0.7) else [])
    g.node(op, inputs, ("f", x.shape, min(x.low, 0), max(x.high, 0), x.exact), upper=g.integer(0, 1))


def reverse_sequence(g, op):
    x = g.pick(rank=(2, 4))
    time = g.integer(0, 1)
    lengths = g.constant(g.rng.randint(1, x.shape[time] + 1, x.shape[1 - time]).astype("<i8"))
    g.node(op, [x, lengths], like(x, x.shape), time_axis=time, batch_axis=1 - time)


def compress(g, op):
    x = g.pick()
    axis = g.integer(0, x.rank - 1)
    keep = g.rng.rand(x.shape[axis]) < 0.6
    keep[0] = True
    shape = [int(keep.sum()) if i == axis else d for i, d in enumerate(x.shape)]
    g.node(op, [x, g.constant(keep)], like(x, shape), axis=axis)


def center_crop_pad(g, op):
    if g.opset < 18:
        raise Unfit
    x = g.pick()
    axis = g.integer(-x.rank, x.rank - 1)
    n = g.integer(1, 7)
    shape = [n if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    g.node(op, [x, g.ints([n])], ("f", shape, min(x.low, 0), max(x.high, 0), x.exact), axes=[axis])


def unique(g, op):
    values = g.constant(g.array("f", (6,)))
    n = len(np.unique(values.constant))
    made = g.node(op, [values], ("f", (n,), -2, 2, True), sorted=1)
    g.node("Add", [made, g.input("f", (1,))], ("f", (n,), -4, 4, True))


def dropout(g, op):
    x = g.pick()
    g.node(op, [x], like(x, x.shape))


def non_zero(g, op):
    values = g.constant(g.array("f", (2, 4), 0, 1))
    n = int((values.constant != 0).sum())
    if n == 0:
        raise Unfit
    made = g.node(op, [values], ("l", (2, n), 0, 3, True))
    g.node("Add", [made, g.input("l", (2, n), 0, 3)], ("l", (2, n), 0, 6, True))


def col2im(g, op):
    if g.opset < 18:
        raise Unfit
    block, out, c = [g.integer(1, 2), g.integer(1, 2)], [g.integer(3, 5), g.integer(3, 5)], g.integer(1, 2)
    positions = (out[0] - block[0] + 1) * (out[1] - block[1] + 1)
    x = g.input("f", (1, c * block[0] * block[1], positions))
    g.node(op, [x, g.ints(out), g.ints(block)], ("f", (1, c, *out), -8, 8, True), strides=[1, 1], pads=[0] * 4,
           dilations=[1, 1])


def sequence(g, op):
    """The operators of sequences only work together."""
    x = g.pick(rank=(1, 3))
    y = g.input("f", x.shape)
    a = g.name("s")
    g.nodes.append(wire.node("SequenceConstruct", [x.name, y.name], [a]))
    x.used = y.used = True
    ends = (min(x.low, y.low), max(x.high, y.high), x.exact and y.exact)
    used = ["SequenceConstruct"]
    n = 2
    if op in ("SequenceInsert", "SequenceLength"):
        b = g.name("s")
        g.nodes.append(wire.node("SequenceInsert", [a, x.name, g.constant(np.array(0, "<i8")).name], [b]))
        a, n = b, 3
        used.append("SequenceInsert")
    if op == "SequenceErase":
        b = g.name("s")
        g.nodes.append(wire.node("SequenceErase", [a, g.constant(np.array(-1, "<i8")).name], [b]))
        a, n = b, 1
        used.append("SequenceErase")
    if op == "SequenceLength":
        g.nodes.append(wire.node(op, [a], [g.name("n")]))
        used.append(op)
    if op == "SequenceAt":
        at = g.integer(-n, n - 1)
        position = g.constant(np.array(at, "<i8"))
        name = g.node("Identity", [x], ("f", x.shape, *ends))
        g.nodes.pop()
        g.operators.pop()
        g.nodes.append(wire.node("SequenceAt", [a, position.name], [name.name]))
        used.append(op)
    else:
        axis, new = g.integer(0, x.rank - 1), g.integer(0, 1)
        shape = list(x.shape)
        if new:
            shape.insert(axis, n)
        else:
            shape[axis] *= n
        name = g.node("Identity", [x], ("f", shape, *ends))
        g.nodes.pop()
        g.operators.pop()
        g.nodes.append(wire.node("ConcatFromSequence", [a], [name.name], axis=axis, new_axis=new))
        used.append("ConcatFromSequence")
    g.operators += used


def split_to_sequence(g, op):
    x = g.pick(rank=(1, 3), where=lambda v: v.shape[0] > 1)
    a = g.name("s")
    g.nodes.append(wire.node(op, [x.name], [a], axis=0, keepdims=1))
    x.used = True
    made = g.node("Identity", [x], like(x, (1, *x.shape[1:])))
    g.nodes.pop()
    g.operators.pop()
    g.nodes.append(wire.node("SequenceAt", [a, g.constant(np.array(-1, "<i8")).name], [made.name]))
    g.operators += [op, "SequenceAt"]


ROWS = {
    "Reshape": reshape, "Transpose": transpose, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Concat": concat, "Split": split, "Slice": slice_, "Pad": pad, "Tile": tile, "Expand": expand, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements, "ScatterND": scatter_nd,
    "OneHot": one_hot, "DepthToSpace": depth_space, "SpaceToDepth": depth_space, "Shape": shape_of, "Size": shape_of,
    "Range": range_, "ConstantOfShape": constant_of_shape, "EyeLike": eye_like, "Trilu": trilu,
    "ReverseSequence": reverse_sequence, "Compress": compress, "CenterCropPad": center_crop_pad, "Unique": unique,
    "Dropout": dropout, "NonZero": non_zero, "Col2Im": col2im, "SplitToSequence": split_to_sequence,
    **{op: sequence for op in ("SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength",
                               "ConcatFromSequence")},
}
