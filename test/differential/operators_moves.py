"""Random nodes of operators that move, select and generate elements."""
import numpy as np

from graph import TYPES, Unfit, wire


def like(x, shape):
    """Returns the output description of a result that contains elements of x."""
    return (x.kind, shape, x.low, x.high, x.exact)


def anything(g, kinds="ffflidbBch", **options):
    return g.pick(g.one_of(*kinds), **options)


def reshape(g, op):
    x = anything(g, rank=(0, 5))
    target, rest = [], x.size
    while rest > 1 and len(target) < 4:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        d = g.one_of(*divisors)
        target.append(d)
        rest //= d
    shape = target + [rest] if rest > 1 or not target else target
    if x.size == 1 and g.chance(0.3):
        shape = []
    written, attributes = list(shape), {}
    if shape and g.chance(0.4):
        written[g.integer(0, len(written) - 1)] = -1
    elif len(shape) <= x.rank and g.chance(0.3):
        written = [0 if i < x.rank and d == x.shape[i] else d for i, d in enumerate(shape)]
    elif g.opset >= 14 and g.chance(0.2):
        attributes["allowzero"] = 1
    g.node("Reshape", [x, g.ints(written)], like(x, shape), **attributes)


def transpose(g, op):
    x = anything(g, rank=(1, 5))
    perm = [int(i) for i in g.rng.permutation(x.rank)]
    if g.chance(0.1):
        return g.node(op, [x], like(x, x.shape[::-1]))
    g.node(op, [x], like(x, [x.shape[i] for i in perm]), perm=perm)


def flatten(g, op):
    x = anything(g, "ffflidbBc" if g.opset >= 9 else "f")
    axis = g.integer(-x.rank if g.opset >= 11 else 0, x.rank)
    attributes = g.some(0.8, axis=axis)
    at = attributes.get("axis", 1)
    at += x.rank if at < 0 else 0
    g.node(op, [x], like(x, [int(np.prod(x.shape[:at])), int(np.prod(x.shape[at:]))]), **attributes)


def squeeze(g, op):
    x = anything(g, where=lambda v: 1 in v.shape)
    axes = [i for i, d in enumerate(x.shape) if d == 1]
    everything = g.chance(0.15)
    if not everything:
        axes = [a for a in axes if g.chance(0.7)] or axes[:1]
    shape = [d for i, d in enumerate(x.shape) if i not in axes]
    written = [a - x.rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]
    if everything:
        g.known.add(op)
        return g.node(op, [x], like(x, shape))
    if g.opset < 13:
        return g.node(op, [x], like(x, shape), axes=written)
    g.node(op, [x, g.ints(written)], like(x, shape))


def unsqueeze(g, op):
    x = anything(g, rank=(0, 3))
    rank = x.rank + g.integer(1, 2)
    axes = [int(a) for a in g.rng.choice(rank, rank - x.rank, replace=False)]
    shape = list(x.shape)
    for a in sorted(axes):
        shape.insert(a, 1)
    written = [a - rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]
    if g.opset < 13:
        return g.node(op, [x], like(x, shape), axes=written)
    g.node(op, [x, g.ints(written)], like(x, shape))


def concat(g, op):
    x = anything(g)
    axis = g.axis(x.rank)
    parts = [x]
    for _ in range(g.integer(0, 3)):
        if g.chance(0.2):
            parts.append(g.one_of(*parts))
            continue
        shape = [g.integer(1, 4) if i == axis % x.rank else d for i, d in enumerate(x.shape)]
        parts.append(g.either(x.kind, shape, *g.ends(x.kind, -2, 2), constant=0.3))
    shape = [sum(p.shape[i] for p in parts) if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    order = [parts[i] for i in g.rng.permutation(len(parts))]
    g.node(op, order, (x.kind, shape, min(p.low for p in parts), max(p.high for p in parts), all(p.exact for p in parts)),
           axis=axis)


def split(g, op):
    x = anything(g, "ffflidbB" if g.opset >= 13 else "ffi", where=lambda v: max(v.shape) > 1)
    axis = int(np.argmax(x.shape))
    n = x.shape[axis]
    attributes = {"axis": axis - x.rank if g.opset >= 11 and g.chance(0.4) else axis}
    if axis == 0 and g.chance(0.5):
        attributes = {}
    parts = g.integer(2, min(n, 4))
    inputs, how = [x], g.integer(0, 2)
    if how == 0 and g.opset >= 18:  # the last part is smaller
        size = -(-n // parts)
        if size * (parts - 1) >= n:
            raise Unfit
        sizes, attributes["num_outputs"] = [size] * (parts - 1) + [n - size * (parts - 1)], parts
    elif how == 1 and n % parts == 0:
        sizes = [n // parts] * parts
        if g.opset >= 18:
            attributes["num_outputs"] = parts
    else:
        cuts = sorted(int(c) + 1 for c in g.rng.choice(n - 1, parts - 1, replace=False))
        sizes = [b - a for a, b in zip([0] + cuts, cuts + [n])]
        if g.opset < 13:
            attributes["split"] = sizes
        else:
            inputs.append(g.ints(sizes))
    g.node(op, inputs, *[like(x, [s if i == axis else d for i, d in enumerate(x.shape)]) for s in sizes], **attributes)


def slice_(g, op):
    x = anything(g)
    axes = sorted(int(a) for a in g.rng.choice(x.rank, g.integer(1, x.rank), replace=False))
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for a in axes:
        step = g.one_of(1, 1, 2, -1, -2, 3) if g.opset >= 10 else 1
        start, end = g.one_of(0, 1, -1, -2, 100), g.one_of(-1, 2, 3, 100, -100, 2 ** 63 - 1, -(2 ** 63))
        if step < 0 and g.chance(0.7):
            start, end = g.one_of(-1, 100, 2), g.one_of(-100, 0, -(2 ** 63))
        elif g.chance(0.7):
            start = g.one_of(0, 0, 1)
        shape[a] = len(range(x.shape[a])[start:end:step])
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    if 0 in shape:
        raise Unfit
    written = [a - x.rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]
    order = [int(i) for i in g.rng.permutation(len(axes))]
    starts, ends, steps, written = [[part[i] for i in order] for part in (starts, ends, steps, written)]
    if g.opset < 10:
        return g.node(op, [x], like(x, shape), starts=starts, ends=ends, axes=written)
    def index(values):
        if max(abs(v) for v in values) < 2 ** 31 and narrow:
            return g.constant(np.array(values, "<i4"))
        return g.ints(values)
    narrow = g.chance(0.2) and max(abs(v) for v in starts + ends) < 2 ** 31
    inputs = [x, index(starts), index(ends), None if axes == written == list(range(x.rank)) else index(written),
              None if set(steps) == {1} else index(steps)]
    while inputs[-1] is None:
        inputs.pop()
    g.node(op, inputs, like(x, shape))


def pad(g, op):
    mode = g.one_of("constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else []))
    x = g.pick(g.one_of("f", "f", "f", *("li" if g.opset >= 13 else "")), where=lambda v: mode == "constant" or min(v.shape) > 1)
    axes = sorted(int(a) for a in g.rng.choice(x.rank, g.integer(1, x.rank), replace=False)) \
        if g.opset >= 18 and g.chance(0.3) else list(range(x.rank))
    most = [max(1, d - 1) if mode in ("reflect", "wrap") else 2 for d in x.shape]
    begin, end = [[g.integer(0, min(most[a], 2)) if g.chance(0.6) else 0 for a in axes] for _ in range(2)]
    if g.chance(0.2):
        at = g.integer(0, len(axes) - 1)
        if x.shape[axes[at]] > 2 and mode == "constant":
            g.one_of(begin, end)[at] = -1
    shape = list(x.shape)
    for a, b, e in zip(axes, begin, end):
        shape[a] += b + e
    low, high, value = x.low, x.high, None
    if mode == "constant":
        value = g.one_of(None, 2, -1)
        low, high = min(low, value or 0), max(high, value or 0)
    attributes = {} if mode == "constant" and g.chance(0.5) else {"mode": mode}
    if g.opset < 11:
        return g.node(op, [x], ("f", shape, low, high, x.exact), pads=begin + end, **attributes,
                      **({} if value is None else {"value": float(value)}))
    inputs = [x, g.ints(begin + end), None if value is None else g.scalar(x.kind, value),
              g.ints([a - x.rank if g.chance(0.3) else a for a in axes]) if len(axes) < x.rank else None]
    while inputs[-1] is None:
        inputs.pop()
    g.node(op, inputs, (x.kind, shape, low, high, x.exact), **attributes)


def tile(g, op):
    x = anything(g, "ffflibB", rank=(1, 5))
    repeats = [g.one_of(1, 1, 2, 3) for _ in x.shape]
    g.node(op, [x, g.ints(repeats)], like(x, [d * r for d, r in zip(x.shape, repeats)]))


def expand(g, op):
    x = anything(g, rank=(0, 5))
    shape = [g.integer(1, 4) if d == 1 else d for d in x.shape]
    if g.chance(0.3) and x.rank < 4:
        shape = [g.integer(1, 3)] + shape
    written = [1 if g.chance(0.2) else d for d in shape]
    written = written[g.integer(0, len(written)) if g.chance(0.1) else 0:]
    shape = np.broadcast_shapes(x.shape, tuple(written))
    g.node(op, [x, g.ints(written)], like(x, shape))


def indices(g, shape, limit, run_time=0.3):
    """Returns indices of elements in 0..limit-1, some of them negative."""
    kind = g.one_of("l", "l", "i")
    low = -limit if g.opset >= 11 and g.chance(0.5) else 0
    return g.either(kind, shape, low, limit - 1, constant=1 - run_time)


def gather(g, op):
    x = anything(g)
    axis = g.axis(x.rank)
    at = axis % x.rank
    if g.chance(0.2):
        index = g.pick("l", rank=(0, 2), low=0 if g.opset < 11 else -x.shape[at], high=x.shape[at] - 1)
    else:
        index = indices(g, g.dims(g.integer(0, 2), 1, 3), x.shape[at])
    g.node(op, [x, index], like(x, [*x.shape[:at], *index.shape, *x.shape[at + 1:]]),
           **({} if axis == 0 and g.chance(0.5) else {"axis": axis}))


def gather_elements(g, op):
    x = anything(g)
    axis = g.axis(x.rank)
    shape = [g.integer(1, 4) if i == axis % x.rank else g.integer(1, d) for i, d in enumerate(x.shape)]
    g.node(op, [x, indices(g, shape, x.shape[axis])], like(x, shape), **({} if axis == 0 and g.chance(0.5) else {"axis": axis}))


def index_tuples(g, dims, count_shape):
    parts = [g.rng.randint(-d, d, count_shape) for d in dims]
    return g.constant(np.stack(parts, -1).astype("<i8"))


def gather_nd(g, op):
    x = anything(g, rank=(1, 5))
    batch = g.integer(0, min(2, x.rank - 1)) if g.opset >= 12 else 0
    k = g.integer(1, x.rank - batch)
    count = (*x.shape[:batch], *g.dims(g.integer(0, 2), 1, 3))
    index = index_tuples(g, x.shape[batch:batch + k], count)
    if g.chance(0.3):
        value = g.input("l", index.shape, 0, 0)
        g.inputs[-1] = (value, index.constant)
        value.low, value.high = -5, 5
        index = value
    g.node(op, [x, index], like(x, [*count, *x.shape[batch + k:]]), **({"batch_dims": batch} if batch else {}))


def distinct(g, n, count):
    return g.rng.permutation(n)[:count]


def scatter_elements(g, op):
    x = g.pick(g.one_of("f", "f", "l", "i"))
    axis = g.axis(x.rank)
    n = x.shape[axis]
    rows = g.integer(1, n)
    shape = [rows if i == axis % x.rank else g.integer(1, d) for i, d in enumerate(x.shape)]
    order = np.array(distinct(g, n, rows)).reshape([-1 if i == axis % x.rank else 1 for i in range(x.rank)])
    if g.opset >= 11 and g.chance(0.3):
        order -= n
    reduction = g.one_of("none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])) \
        if g.opset >= 16 and op == "ScatterElements" else "none"
    if reduction in ("add", "max", "min") and g.chance(0.4):
        order = g.rng.randint(0, n, order.shape)  # repeated indices
    index = g.constant(np.broadcast_to(order, shape).astype(g.one_of("<i8", "<i4")))
    bound = max(x.bound * 2, x.bound + 2 * n, 2)
    g.node(op, [x, index, g.either(x.kind, shape, -2, 2, constant=0.2)], (x.kind, x.shape, -bound, bound, x.kind != "f"),
           **({} if axis == 0 and g.chance(0.5) else {"axis": axis}), **({"reduction": reduction} if reduction != "none" else {}))


def scatter_nd(g, op):
    x = g.pick(g.one_of("f", "f", "l", "i"))
    k = g.integer(1, x.rank)
    count = min(int(np.prod(x.shape[:k])), 3)
    flat = distinct(g, int(np.prod(x.shape[:k])), count)
    reduction = g.one_of("none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])) if g.opset >= 16 else "none"
    if reduction in ("add", "max", "min") and g.chance(0.4):
        flat[-1] = flat[0]
    index = np.stack(np.unravel_index(flat, x.shape[:k]), -1).astype("<i8")
    if g.opset >= 13 and g.chance(0.2):
        index -= np.array(x.shape[:k])
    bound = max(x.bound * 2, x.bound + 6, 2)
    g.node(op, [x, g.constant(index), g.either(x.kind, (count, *x.shape[k:]), -2, 2, constant=0.2)],
           (x.kind, x.shape, -bound, bound, x.kind != "f"), **({"reduction": reduction} if reduction != "none" else {}))


def one_hot(g, op):
    x = g.pick(g.one_of("l", "l", "i", "f"), rank=(1, 3), low=-4, high=4, exact=True)
    if x.kind == "f":
        x = g.node("Floor", [x], ("f", x.shape, np.floor(x.low), np.ceil(x.high), True))
    if g.opset < 11 and x.low < 0:
        raise Unfit
    axis = g.integer(-x.rank - 1 if g.opset >= 11 else 0, x.rank)
    depth = g.integer(5, 6)
    shape = list(x.shape)
    attributes = {} if g.chance(0.2) else {"axis": axis}
    shape.insert(attributes.get("axis", -1) % (x.rank + 1), depth)
    kind = g.one_of("f", "l") if x.kind == "l" else "f"
    off, on = (-0.5, 1.5) if kind == "f" else (-1, 3)
    values = g.constant(np.array([off, on], TYPES[kind][1]))
    size = np.array(depth, TYPES[x.kind][1])
    g.node(op, [x, g.constant(size.reshape(1) if g.chance(0.3) else size), values], (kind, shape, off, on, True), **attributes)


def depth_space(g, op):
    block = g.integer(1, 3)
    n, c, h, w = g.dims(4, 1, 3)
    if op == "DepthToSpace":
        x = g.pick("f", shape=(n, c * block * block, h, w))
        mode = g.some(mode=g.one_of("DCR", "CRD")) if g.opset >= 11 else {}
        return g.node(op, [x], like(x, (n, c, h * block, w * block)), blocksize=block, **mode)
    x = g.pick("f", shape=(n, c, h * block, w * block))
    g.node(op, [x], like(x, (n, c * block * block, h, w)), blocksize=block)


def shape_of(g, op):
    x = anything(g, rank=(0, 5))
    if op == "Size":
        value = g.node(op, [x], ("l", (), x.size, x.size, True))
        return g.node("Reshape", [value, g.ints([1])], ("l", (1,), x.size, x.size, True))
    attributes = g.some(start=g.integer(-x.rank - 1, x.rank), end=g.integer(-x.rank - 1, x.rank + 1)) if g.opset >= 15 else {}
    shape = np.array(x.shape, "<i8")[attributes.get("start", 0):attributes.get("end", None)]
    if shape.size == 0:
        raise Unfit
    made = g.node(op, [x], ("l", shape.shape, shape.min(), shape.max(), True), **attributes)
    if g.chance(0.5):  # as models use it, to compute a shape
        y = g.input("f", (int(np.prod(shape)),)) if np.prod(shape) < 500 and len(shape) < 5 else None
        if y is not None:
            g.node("Reshape", [y, made], ("f", shape, -2, 2, True))


def range_(g, op):
    kind = g.one_of("l", "l", "i", "f", "d")
    start, step, n = g.integer(-3, 3), g.one_of(1, 2, -1, *((0.5,) if kind in "fd" else ())), g.integer(1, 5)
    end = start + step * n
    parts = [g.scalar(kind, v) for v in (start, end, step)]
    g.node(op, parts, (kind, (n,), min(start, end), max(start, end), True))


def constant_of_shape(g, op):
    shape = g.sizes(g.integer(0, 3))
    kind = g.one_of(*"ffli")
    number = g.one_of(0, 2, -1)
    value = wire.tensor("", TYPES[kind][0], [1], np.array([number], TYPES[kind][1]).tobytes())
    attributes = g.some(0.8, value=value)
    if not attributes:
        kind, number = "f", 0
    made = g.node(op, [g.ints(shape)], (kind, shape, number, number, True), **attributes)
    g.node("Add", [made, g.input(kind, shape)], (kind, shape, number - 2, number + 2, True))


def constant(g, op):
    shape = g.dims(g.integer(0, 3))
    which = g.one_of("value", "value", "value_float", "value_int", "value_floats", "value_ints") if g.opset >= 12 else "value"
    kind = g.one_of(*"flidB") if which == "value" else "f" if "float" in which else "l"
    shape = shape if which == "value" else () if which in ("value_float", "value_int") else (g.integer(1, 4),)
    array = g.array(kind, shape, *g.ends(kind, -2, 2))
    value = wire.tensor("", TYPES[kind][0], shape, array.tobytes()) if which == "value" else array.tolist()
    low, high = float(array.min()), float(array.max())
    made = g.node(op, [], (kind, shape, low, high, True), **{which: value})
    x = g.input(kind, shape)
    if kind == "B":
        return g.node("Concat", [made, x], (kind, (2 * shape[0], *shape[1:]), low, 4, True), axis=0) if shape else None
    g.node("Sub", [made, x], (kind, shape, low - 2, high + 2, True))


def eye_like(g, op):
    x = g.pick(rank=2)
    kind = g.one_of("f", "l", "i")
    made = g.node(op, [x], (kind, x.shape, 0, 1, True), **g.some(k=g.integer(-2, 2)), **({"dtype": TYPES[kind][0]} if kind != "f" else {}))
    if kind == "f":
        g.node("Add", [made, x], ("f", x.shape, x.low, x.high + 1, x.exact))


def trilu(g, op):
    x = g.pick(g.one_of("f", "f", "l", "b"), rank=(2, 5))
    inputs = [x] + ([g.scalar("l", g.integer(-3, 3))] if g.chance(0.7) else [])
    g.node(op, inputs, (x.kind, x.shape, min(x.low, 0), max(x.high, 0), x.exact), **g.some(upper=g.integer(0, 1)))


def reverse_sequence(g, op):
    x = anything(g, "ffli", rank=(2, 5))
    time = g.integer(0, 1)
    lengths = g.either("l", (x.shape[1 - time],), 1, x.shape[time])
    attributes = {} if time == 0 and g.chance(0.4) else {"time_axis": time, "batch_axis": 1 - time}
    g.node(op, [x, lengths], like(x, x.shape), **attributes)


def compress(g, op):
    x = anything(g, "ffliB")
    axis = g.axis(x.rank)
    n = x.shape[axis]
    if g.chance(0.25):
        axis, n = None, x.size
    keep = g.rng.rand(n if g.chance(0.7) else g.integer(1, n)) < 0.6
    keep[0] = True
    shape = [int(keep.sum()) if i == axis % x.rank else d for i, d in enumerate(x.shape)] if axis is not None else [int(keep.sum())]
    g.node(op, [x, g.constant(keep)], like(x, shape), **({} if axis is None else {"axis": axis}))


def center_crop_pad(g, op):
    x = g.pick()
    axes = [int(a) for a in g.rng.choice(x.rank, g.integer(1, x.rank), replace=False)]
    everything = g.chance(0.2)
    axes = list(range(x.rank)) if everything else axes
    sizes = [g.integer(1, 7) for _ in axes]
    shape = list(x.shape)
    for a, n in zip(axes, sizes):
        shape[a] = n
    g.node(op, [x, g.ints(sizes)], ("f", shape, min(x.low, 0), max(x.high, 0), x.exact),
           **({} if everything else {"axes": [a - x.rank if g.chance(0.3) else a for a in axes]}))


def unique(g, op):
    shape = g.dims(g.integer(1, 3), 1, 3)
    values = g.either(g.one_of("f", "f", "l"), shape, -1, 1, constant=0.5)
    array = values.constant if values.constant is not None else g.inputs[-1][1]
    axis = g.axis(len(shape)) if g.chance(0.4) else None
    found, first, inverse, counts = np.unique(array, True, True, True, axis=axis)
    ordered = g.integer(0, 1)
    k = len(first)
    made = (values.kind, found.shape, -1, 1, True)
    indices_ = [("l", (k,), 0, values.size, True), ("l", (inverse.size,), 0, values.size, True), ("l", (k,), 1, values.size, True)]
    kept = g.integer(0, 3)
    outputs = [made] + [i if g.chance(0.6) else None for i in indices_[:kept]]
    while outputs and outputs[-1] is None:
        outputs.pop()
    results = g.node(op, [values], *outputs, **g.some(sorted=ordered), **({} if axis is None else {"axis": axis}))
    if values.constant is not None:
        for r in results if isinstance(results, list) else [results]:
            g.node("Sub", [r, g.input(r.kind, (1,))], (r.kind, r.shape, r.low - 4, r.high + 4, True))
    else:
        g.unknown(results)


def dropout(g, op):
    x = g.pick(rank=(0, 5))
    outputs = [like(x, x.shape)] + ([("b", x.shape, 0, 1, True)] if g.opset >= 10 and g.chance(0.3) else [])
    if g.opset < 12:
        if len(outputs) > 1:
            g.known.add(op)
        return g.node(op, [x], *outputs, **g.some(ratio=0.25))
    inputs = [x] + g.one_of([], [g.scalar("f", 0.3)], [g.scalar("f", 0.3), g.scalar("b", False)],
                            [g.scalar("f", 0.0), g.scalar("b", True)])
    g.node(op, inputs, *outputs, **g.some(0.2, seed=3))


def non_zero(g, op):
    shape = g.dims(g.integer(1, 3), 1, 4)
    values = g.either(g.one_of("f", "l", "b", "i"), shape, 0, 1, constant=0.6)
    array = values.constant if values.constant is not None else g.inputs[-1][1]
    n = int((array != 0).sum())
    if n == 0:
        raise Unfit
    made = g.node(op, [values], ("l", (len(shape), n), 0, 3, True))
    if values.constant is not None:
        g.node("Add", [made, g.input("l", (1, n), 0, 3)], ("l", (len(shape), n), 0, 6, True))
    else:
        g.unknown(made)


def col2im(g, op):
    rank = g.one_of(1, 2, 2, 3)
    block, out = [list(g.dims(rank, low, high)) for low, high in ((1, 3), (3, 5))]
    strides, dilations = [list(g.dims(rank, 1, 2)) for _ in range(2)]
    begin, end = [list(g.dims(rank, 0, 1)) for _ in range(2)]
    counts = [(o + a + b - d * (k - 1) - 1) // s + 1 for o, a, b, d, k, s in zip(out, begin, end, dilations, block, strides)]
    if min(counts) < 1:
        raise Unfit
    if rank != 2 and set(dilations) != {1}:
        g.known.add(op)
    n, c = g.dims(2, 1, 2)
    x = g.input("f", (n, c * int(np.prod(block)), int(np.prod(counts))))
    g.node(op, [x, g.ints(out), g.ints(block)], ("f", (n, c, *out), -54, 54, False),
           **{k: v for k, v in (("strides", strides), ("pads", begin + end), ("dilations", dilations))
              if set(v) != {0 if k == "pads" else 1} or g.chance(0.5)})


ROWS = {
    "Reshape": reshape, "Transpose": transpose, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Concat": concat, "Split": split, "Slice": slice_, "Pad": pad, "Tile": tile, "Expand": expand, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements, "Scatter": scatter_elements,
    "ScatterND": scatter_nd,
    "OneHot": one_hot, "DepthToSpace": depth_space, "SpaceToDepth": depth_space, "Shape": shape_of, "Size": shape_of,
    "Range": range_, "ConstantOfShape": constant_of_shape, "Constant": constant, "EyeLike": eye_like, "Trilu": trilu,
    "ReverseSequence": reverse_sequence, "Compress": compress, "CenterCropPad": center_crop_pad, "Unique": unique,
    "Dropout": dropout, "NonZero": non_zero, "Col2Im": col2im,
}
