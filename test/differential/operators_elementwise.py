"""Random nodes of elementwise operators and reductions. One function per shape of operator; a table names who has which."""
import numpy as np

from graph import TYPES, Unfit


# ---- one input: (range that it takes, result range of a range, exact inputs only, result exact, attributes, opset)
def _monotone(f):
    return lambda low, high: (float(f(low)), float(f(high)))


def _ends(low, high):
    return lambda *_: (low, high)


def _same(low, high):
    return low, high


UNARY = {
    "Abs": dict(to=lambda l, h: (0, max(abs(l), abs(h))), keeps=True),
    "Acos": dict(takes=(-0.9, 0.9), to=_ends(0, 3.2)),
    "Acosh": dict(takes=(1.1, 50), to=_ends(0, 5)),
    "Asin": dict(takes=(-0.9, 0.9), to=_ends(-1.6, 1.6)),
    "Asinh": dict(to=_monotone(np.arcsinh)),
    "Atan": dict(to=_monotone(np.arctan)),
    "Atanh": dict(takes=(-0.9, 0.9), to=_monotone(np.arctanh)),
    "Ceil": dict(to=lambda l, h: (np.floor(l), np.ceil(h)), exact=True, keeps=True),
    "Celu": dict(to=lambda l, h: (max(l, -2), max(h, 0)), attributes=lambda g: {"alpha": g.one_of(0.5, 1.0, 2.0)}),
    "Cos": dict(takes=(-20, 20), to=_ends(-1, 1)),
    "Cosh": dict(takes=(-4, 4), to=_ends(1, 28)),
    "Elu": dict(to=lambda l, h: (max(l, -2), max(h, 0)), attributes=lambda g: {"alpha": g.one_of(0.5, 1.0, 2.0)}),
    "Erf": dict(to=_ends(-1, 1)),
    "Exp": dict(takes=(-20, 4), to=_monotone(np.exp)),
    "Floor": dict(to=lambda l, h: (np.floor(l), np.ceil(h)), exact=True, keeps=True),
    "Gelu": dict(to=lambda l, h: (-0.2, max(h, 0)), since=20, attributes=lambda g: {"approximate": g.one_of("none", "tanh")}),
    "HardSigmoid": dict(to=_ends(0, 1), attributes=lambda g: {"alpha": g.one_of(0.2, 0.5), "beta": g.one_of(0.25, 0.5)}),
    "HardSwish": dict(to=lambda l, h: (-0.4, max(h, 0)), since=14),
    "Identity": dict(to=_same, keeps=True),
    "LeakyRelu": dict(to=lambda l, h: (min(l, 0), max(h, 0)), attributes=lambda g: {"alpha": g.one_of(0.01, 0.25)}),
    "Log": dict(takes=(0.05, 1e4), to=_monotone(np.log)),
    "Mish": dict(to=lambda l, h: (-0.31, max(h, 0)), since=18),
    "Neg": dict(to=lambda l, h: (-h, -l), keeps=True),
    "Reciprocal": dict(takes=(0.1, 50), to=lambda l, h: (1 / h, 1 / l)),
    "Relu": dict(to=lambda l, h: (max(l, 0), max(h, 0)), keeps=True),
    "Round": dict(to=lambda l, h: (np.floor(l), np.ceil(h)), exact=True, keeps=True),
    "Selu": dict(to=lambda l, h: (-1.8, max(1.06 * h, 0))),
    "Shrink": dict(to=lambda l, h: (min(l, 0) - 1, max(h, 0) + 1), exact=True,
                   attributes=lambda g: {"lambd": g.one_of(0.5, 0.75), "bias": g.one_of(0.0, 0.25)}),
    "Sigmoid": dict(to=_ends(0, 1)),
    "Sign": dict(to=_ends(-1, 1), exact=True, keeps=True),
    "Sin": dict(takes=(-20, 20), to=_ends(-1, 1)),
    "Sinh": dict(takes=(-4, 4), to=_ends(-28, 28)),
    "Softplus": dict(to=lambda l, h: (0, max(h, 0) + 0.7)),
    "Softsign": dict(to=_ends(-1, 1)),
    "Sqrt": dict(takes=(0.01, 1e4), to=_monotone(np.sqrt)),
    "Swish": dict(to=lambda l, h: (-0.6, max(h, 0)), since=24, attributes=lambda g: {"alpha": g.one_of(1.0, 0.5)}),
    "Tan": dict(takes=(-1.2, 1.2), to=_ends(-2.6, 2.6)),
    "Tanh": dict(to=_ends(-1, 1)),
    "ThresholdedRelu": dict(to=lambda l, h: (0, max(h, 0)), exact=True, attributes=lambda g: {"alpha": g.one_of(0.5, 1.0)}),
}


def unary(g, op):
    row = UNARY[op]
    if g.opset < row.get("since", 1):
        raise Unfit
    low, high = row.get("takes", (-50, 50))
    x = g.pick(low=low, high=high, exact=row.get("exact", False))
    low, high = row["to"](x.low, x.high)
    attributes = row["attributes"](g) if "attributes" in row and g.chance(0.7) else {}
    g.same(op, x, low, high, x.exact and row.get("keeps", False), **attributes)


# ---- two inputs, with broadcasting

def partner(g, x, low=-50, high=50, exact=False, kind=None):
    """A value or constant that broadcasts with x, and the shape of the result."""
    kind = kind or x.kind
    if g.chance(0.3):
        y = g.pick(kind, rank=(1, 4), low=low, high=high, exact=exact, fresh=0,
                   where=lambda v: _broadcast(v.shape, x.shape) is not None)
        return y, _broadcast(y.shape, x.shape)
    shape = [d if g.chance(0.6) else 1 for d in x.shape]
    shape = shape[g.integer(0, len(shape)):] if g.chance(0.3) else shape
    ends = {"f": (max(low, -2), min(high, 2)), "b": (0, 1)}.get(kind, (max(low, -4), min(high, 4)))
    y = g.constant(g.array(kind, tuple(shape), *ends)) if g.chance(0.5) else g.input(kind, shape, *ends)
    return y, _broadcast(tuple(shape), x.shape)


def _broadcast(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def _corners(f, x, y):
    corners = [f(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)


def arithmetic(g, op):
    kind = g.one_of("f", "f", "f", "l", "i")
    x = g.pick(kind)
    if op == "Div" and kind != "f":
        y, shape = partner(g, x, 1, 4)
        return g.node(op, [x, y], (kind, shape, -x.bound, x.bound, True))
    y, shape = partner(g, x, *((0.25, 50) if op == "Div" else ()))
    if g.chance(0.5) and op != "Div":
        x, y = y, x
    f = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b}[op]
    low, high = _corners(f, x, y)
    small = max(abs(low), abs(high)) < 64
    g.node(op, [x, y], (kind, shape, low, high, kind != "f" or (x.exact and y.exact and small and op in ("Add", "Sub"))))


def power(g, op):
    x = g.pick(low=0.1, high=6)
    y, shape = partner(g, x, -2, 2)
    g.node("Pow", [x, y], ("f", shape, 0, max(x.high, 1 / x.low) ** 2, False))


def variadic(g, op):
    x = g.pick()
    inputs, shape = [x], x.shape
    for _ in range(g.integer(0, 2)):
        y, joined = partner(g, inputs[0])
        joined = _broadcast(joined, shape)
        if joined is None:
            raise Unfit
        inputs, shape = inputs + [y], joined
    low, high = min(v.low for v in inputs), max(v.high for v in inputs)
    if op == "Sum":
        low, high = sum(v.low for v in inputs), sum(v.high for v in inputs)
    g.node(op, inputs, ("f", shape, low, high, op in ("Max", "Min") and all(v.exact for v in inputs)))


def modulo(g, op):
    if g.chance(0.5):
        x = g.pick(g.one_of("l", "i"))
        y, shape = partner(g, x, 1, 4)
        return g.node("Mod", [x, y], (x.kind, shape, -4, 4, True), fmod=g.integer(0, 1))
    x = g.pick(exact=True)
    y, shape = partner(g, x, 0.5, 2, exact=True)
    g.node("Mod", [x, y], ("f", shape, -2, 2, True), fmod=1)


def compare(g, op):
    x = g.pick(g.one_of("f", "f", "l", "i"), exact=True)
    y, shape = partner(g, x, exact=True)
    g.node(op, [x, y], ("b", shape, 0, 1, True))


def logical(g, op):
    x = g.pick("b")
    if op == "Not":
        return g.same(op, x, 0, 1, True)
    y, shape = partner(g, x)
    g.node(op, [x, y], ("b", shape, 0, 1, True))


def bitwise(g, op):
    if g.opset < 18:
        raise Unfit
    x = g.pick("i", low=-1000, high=1000)
    if op == "BitwiseNot":
        return g.same(op, x, -x.high - 1, -x.low - 1, True)
    mask = g.constant(np.array(g.integer(0, 255), "<i4"))
    g.node(op, [x, mask], ("i", x.shape, -2048, 2048, True))


def bit_shift(g, op):
    x = g.input("B", g.dims(g.integer(1, 3)), 0, 7)
    shift = g.constant(g.array("B", x.shape, 0, 3))
    g.node(op, [x, shift], ("B", x.shape, 0, 56, True), direction=g.one_of("LEFT", "RIGHT"))


def where(g, op):
    x = g.pick(g.one_of("f", "f", "l"))
    y, shape = partner(g, x)
    condition = g.input("b", [d if g.chance(0.7) else 1 for d in shape], 0, 1)
    g.node("Where", [condition, x, y], (x.kind, shape, min(x.low, y.low), max(x.high, y.high), x.exact and y.exact))


def prelu(g, op):
    x = g.pick(rank=(2, 4))
    slope = g.weights(*[d if i == 1 and g.chance(0.7) else 1 for i, d in enumerate(x.shape)][1:])
    g.node("PRelu", [x, slope], ("f", x.shape, -x.bound, x.bound, False))


def clip(g, op):
    x = g.pick(g.one_of("f", "f", "i"))
    kind = {"f": "<f4", "i": "<i4"}[x.kind]
    low = g.constant(np.array(-1, kind)) if g.chance(0.8) else None
    high = g.constant(np.array(1, kind)) if g.chance(0.8) else None
    g.node("Clip", [x, low, high], (x.kind, x.shape, max(x.low, -1) if low else x.low, min(x.high, 1) if high else x.high, x.exact))


def cast(g, op):
    x = g.pick(g.one_of("f", "l", "i", "b"), exact=True)
    kind = g.one_of("f", "l", "i", "b")
    if op == "CastLike":
        if g.opset < 15:
            raise Unfit
        like = g.constant(g.array(kind, (1,), 0, 1))
        return g.node(op, [x, like], (kind, x.shape, np.floor(x.low), np.ceil(x.high), True))
    g.node(op, [x], (kind, x.shape, np.floor(x.low), np.ceil(x.high), True), to=TYPES[kind][0])


def is_special(g, op):
    x = g.pick()
    g.node(op, [x], ("b", x.shape, 0, 1, True))


# ---- reductions

def axes_of(g, x, allow_none=True):
    if allow_none and g.chance(0.15):
        return None
    axes = [i for i in range(x.rank) if g.chance(0.5)] or [g.integer(0, x.rank - 1)]
    return [a - x.rank if g.chance(0.3) else a for a in axes]


def reduced(x, axes, keep):
    drop = {a % x.rank for a in (axes if axes is not None else range(x.rank))}
    return tuple(1 if i in drop else d for i, d in enumerate(x.shape) if keep or i not in drop), \
        int(np.prod([x.shape[i] for i in drop]))


def reduction(g, op):
    low, high = {"ReduceLogSum": (0.05, 50), "ReduceLogSumExp": (-10, 10), "ReduceProd": (-2, 2)}.get(op, (-50, 50))
    x = g.pick(low=low, high=high)
    axes, keep = axes_of(g, x), g.integer(0, 1)
    shape, n = reduced(x, axes, keep)
    if op == "ReduceProd" and n > 12:
        raise Unfit
    as_input = g.opset >= (13 if op == "ReduceSum" else 18)
    inputs, attributes = [x], {"keepdims": keep}
    if axes is not None and as_input:
        inputs.append(g.ints(axes))
    elif axes is not None:
        attributes["axes"] = axes
    b = x.bound
    ends = {"ReduceL1": (0, n * b), "ReduceL2": (0, np.sqrt(n) * b), "ReduceLogSum": (-4, np.log(n * b + 1)),
            "ReduceLogSumExp": (x.low, x.high + np.log(n)), "ReduceMax": (x.low, x.high), "ReduceMin": (x.low, x.high),
            "ReduceMean": (x.low, x.high), "ReduceProd": (-(max(b, 1) ** n), max(b, 1) ** n), "ReduceSum": (-n * b, n * b),
            "ReduceSumSquare": (0, n * b * b)}[op]
    g.node(op, inputs, ("f", shape, *ends, x.exact and op in ("ReduceMax", "ReduceMin")), **attributes)


def arg(g, op):
    x = g.pick(exact=True)
    axis, keep = g.integer(-x.rank, x.rank - 1), g.integer(0, 1)
    shape, _ = reduced(x, [axis], keep)
    g.node(op, [x], ("l", shape, 0, x.shape[axis] - 1, True), axis=axis, keepdims=keep, select_last_index=g.integer(0, 1))


def top_k(g, op):
    x = g.pick(exact=True)
    axis = g.integer(-x.rank, x.rank - 1)
    k = g.integer(1, x.shape[axis])
    shape = tuple(k if i == axis % x.rank else d for i, d in enumerate(x.shape))
    g.node("TopK", [x, g.ints([k])], ("f", shape, x.low, x.high, True), ("l", shape, 0, x.shape[axis] - 1, True), axis=axis,
           largest=g.integer(0, 1))


def cumulative(g, op):
    x = g.pick(low=-2, high=2)
    axis = g.integer(-x.rank, x.rank - 1)
    n = x.shape[axis]
    if op == "CumProd" and g.opset < 26:
        raise Unfit
    bound = n * x.bound if op == "CumSum" else max(x.bound, 1) ** n
    g.node(op, [x, g.constant(np.array(axis, "<i8"))], ("f", x.shape, -bound, bound, False), exclusive=g.integer(0, 1),
           reverse=g.integer(0, 1))


def softmax(g, op):
    x = g.pick(low=-20, high=20)
    low, high = (0, 1) if op == "Softmax" else (-45, 0)
    g.same(op, x, low, high, axis=g.integer(-x.rank, x.rank - 1))


def hardmax(g, op):
    x = g.pick(exact=True)
    g.same(op, x, 0, 1, True, axis=g.integer(-x.rank, x.rank - 1))


ROWS = {
    **{op: unary for op in UNARY},
    **{op: arithmetic for op in ("Add", "Sub", "Mul", "Div")},
    "Pow": power, "Mod": modulo, "Where": where, "PRelu": prelu, "Clip": clip, "Cast": cast, "CastLike": cast,
    **{op: variadic for op in ("Max", "Min", "Sum", "Mean")},
    **{op: compare for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")},
    **{op: logical for op in ("And", "Or", "Xor", "Not")},
    **{op: bitwise for op in ("BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitShift": bit_shift, "IsNaN": is_special, "IsInf": is_special,
    **{"Reduce" + op: reduction for op in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
    "ArgMax": arg, "ArgMin": arg, "TopK": top_k, "CumSum": cumulative, "CumProd": cumulative, "Softmax": softmax,
    "LogSoftmax": softmax, "Hardmax": hardmax,
}
