"""Random nodes of elementwise operators and reductions. There is one function per operator signature; tables list the operators of each."""
import numpy as np

from graph import TYPES, UNSIGNED, Unfit


def _monotone(f):
    return lambda low, high: (float(f(low)), float(f(high)))


def _ends(low, high):
    return lambda *_: (low, high)


def _same(low, high):
    return low, high


def _below(least):
    return lambda low, high: (max(low, least) if low < 0 else 0, max(high, 0))


def _alpha(*values):
    return lambda g: {"alpha": g.one_of(*values)}


# ---- one input
#   takes       range of the input, by default -50..50
#   to          range of the result, as a function of the input's
#   exact       the input must be exact (Graph)
#   keeps       an exact input gives an exact result
#   attributes  random subset of these
#   kinds       further element types: (kind, first opset version)
UNARY = {
    "Abs": dict(to=lambda l, h: (0, max(abs(l), abs(h))), keeps=True, kinds=(("l", 7), ("i", 7), ("c", 7), ("B", 7), ("h", 7), ("d", 7))),
    "Acos": dict(takes=(-0.9, 0.9), to=_ends(0, 3.2)),
    "Acosh": dict(takes=(1.1, 50), to=_ends(0, 5)),
    "Asin": dict(takes=(-0.9, 0.9), to=_ends(-1.6, 1.6)),
    "Asinh": dict(to=_monotone(np.arcsinh)),
    "Atan": dict(to=_monotone(np.arctan)),
    "Atanh": dict(takes=(-0.9, 0.9), to=_monotone(np.arctanh)),
    "Ceil": dict(to=lambda l, h: (np.floor(l), np.ceil(h)), exact=True, keeps=True, kinds=(("d", 13),)),
    "Celu": dict(to=_below(-2), attributes=_alpha(0.5, 1.0, 2.0)),
    "Cos": dict(takes=(-20, 20), to=_ends(-1, 1), kinds=(("d", 7),)),
    "Cosh": dict(takes=(-4, 4), to=_ends(1, 28)),
    "Elu": dict(to=_below(-2), attributes=_alpha(0.5, 1.0, 2.0)),
    "Erf": dict(to=_ends(-1, 1)),
    "Exp": dict(takes=(-20, 4), to=_monotone(np.exp), kinds=(("d", 7),)),
    "Floor": dict(to=lambda l, h: (np.floor(l), np.ceil(h)), exact=True, keeps=True),
    "Gelu": dict(to=_below(-0.2), attributes=lambda g: {"approximate": g.one_of("none", "tanh")}),
    "HardSigmoid": dict(to=_ends(0, 1), attributes=lambda g: {"alpha": g.one_of(0.2, 0.5), "beta": g.one_of(0.25, 0.5)}),
    "HardSwish": dict(to=_below(-0.4)),
    "Identity": dict(to=_same, keeps=True, kinds=tuple((k, 7) for k in "dlibBchHI")),
    "LeakyRelu": dict(to=lambda l, h: (min(l, 0), max(h, 0)), attributes=_alpha(0.01, 0.25, 1.5)),
    "Log": dict(takes=(0.05, 1e4), to=_monotone(np.log), kinds=(("d", 7),)),
    "Mish": dict(to=_below(-0.31)),
    "Neg": dict(to=lambda l, h: (-h, -l), keeps=True, kinds=(("l", 7), ("i", 7), ("c", 7), ("d", 7))),
    "Reciprocal": dict(takes=(0.1, 50), to=lambda l, h: (1 / h, 1 / l), kinds=(("d", 7),)),
    "Relu": dict(to=lambda l, h: (max(l, 0), max(h, 0)), keeps=True, kinds=(("i", 14), ("c", 14), ("d", 7))),
    "Round": dict(to=lambda l, h: (np.floor(l), np.ceil(h)), exact=True, keeps=True, kinds=(("d", 11),)),
    "Selu": dict(to=lambda l, h: (-4, max(2 * h, 0)), attributes=lambda g: {"alpha": g.one_of(1.5, 1.75), "gamma": g.one_of(1.0, 2.0)}),
    "Shrink": dict(to=lambda l, h: (min(l, 0) - 1, max(h, 0) + 1), exact=True,
                   attributes=lambda g: {"lambd": g.one_of(0.5, 0.75), "bias": g.one_of(0.0, 0.25)}),
    "Sigmoid": dict(to=_ends(0, 1), kinds=(("d", 7),)),
    "Sign": dict(to=_ends(-1, 1), exact=True, keeps=True, kinds=(("l", 9), ("i", 9), ("c", 9), ("d", 9))),
    "Sin": dict(takes=(-20, 20), to=_ends(-1, 1), kinds=(("d", 7),)),
    "Sinh": dict(takes=(-4, 4), to=_ends(-28, 28)),
    "Softplus": dict(to=lambda l, h: (0, max(h, 0) + 0.7)),
    "Softsign": dict(to=_ends(-1, 1)),
    "Sqrt": dict(takes=(0.01, 1e4), to=_monotone(np.sqrt), kinds=(("d", 7),)),
    "Tan": dict(takes=(-1.2, 1.2), to=_ends(-2.6, 2.6)),
    "Tanh": dict(to=_ends(-1, 1), kinds=(("d", 7),)),
    "ThresholdedRelu": dict(to=lambda l, h: (0, max(h, 0)), exact=True, attributes=_alpha(0.5, 1.0)),
}


def kind_of(g, row):
    kinds = [k for k, since in row.get("kinds", ()) if g.opset >= since]
    return g.one_of(*kinds) if kinds and g.chance(0.35) else "f"


def unary(g, op):
    row = UNARY[op]
    low, high = row.get("takes", (-50, 50))
    kind = kind_of(g, row)
    if kind in UNSIGNED and op == "Neg":
        raise Unfit
    x = g.pick(kind, rank=(0, 5), low=low, high=high, exact=row.get("exact", False))
    low, high = row["to"](x.low, x.high)
    attributes = g.some(0.7, **row["attributes"](g)) if "attributes" in row else {}
    g.same(op, x, low, high, x.exact and (row.get("keeps", False) or kind not in "fd"), **attributes)


# ---- two inputs, with broadcasting

def partner(g, x, low=-50, high=50, exact=False, kind=None):
    """Returns a value or constant that broadcasts with x, and the shape of the result."""
    kind = kind or x.kind
    if g.chance(0.3):
        y = g.pick(kind, rank=(0, 5), low=low, high=high, exact=exact, fresh=0,
                   where=lambda v: _broadcast(v.shape, x.shape) is not None)
        return y, _broadcast(y.shape, x.shape)
    shape = [d if g.chance(0.6) else 1 for d in x.shape]
    shape = shape[g.integer(0, len(shape)):] if g.chance(0.3) else shape
    if g.chance(0.15) and len(shape) < 4:
        shape = [g.integer(1, 3)] + [d if s == 1 else s for s, d in zip(shape, x.shape[x.rank - len(shape):])]
        if _broadcast(tuple(shape), x.shape) is None:
            shape = list(x.shape)
    y = g.either(kind, tuple(shape), *g.ends(kind, low, high), constant=0.5)
    return y, _broadcast(tuple(shape), x.shape)


def _broadcast(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def _corners(f, x, y):
    corners = [f(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)


def fits(kind, low, high):
    """Whether a range lies within the type of a kind."""
    if kind not in "fdb":
        limits = np.iinfo(np.dtype(TYPES[kind][1]))
        if low < max(limits.min, -2 ** 31) or high > min(limits.max, 2 ** 31 - 1):
            raise Unfit


def arithmetic(g, op):
    kind = g.one_of("f", "f", "f", "f", "l", "i", "d")
    x = g.pick(kind, rank=(0, 5))
    if op == "Div" and kind not in "fd":
        y, shape = partner(g, x, *g.one_of((1, 4), (-4, -1)))
        return g.node(op, [x, y], (kind, shape, -x.bound, x.bound, True))
    y, shape = partner(g, x, *((0.25, 50) if op == "Div" else ()))
    if g.chance(0.5) and op != "Div":
        x, y = y, x
    f = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b}[op]
    low, high = _corners(f, x, y)
    fits(kind, low, high)
    small = max(abs(low), abs(high)) < 64
    g.node(op, [x, y], (kind, shape, low, high, kind not in "fd" or (x.exact and y.exact and small and op in ("Add", "Sub"))))


def power(g, op):
    if g.chance(0.4):  # a small integer exponent is valid for any base
        x = g.pick(g.one_of("f", "f", *("il" if g.opset >= 12 else "")), rank=(0, 5), low=-6, high=6)
        n = g.integer(0, 3)
        kind = x.kind if g.opset < 12 or g.chance(0.4) else g.one_of(*"fil")
        return g.node("Pow", [x, g.scalar(kind, n)], (x.kind, x.shape, -x.bound ** n - 1, x.bound ** n + 1, x.kind != "f"))
    x = g.pick(rank=(0, 5), low=0.1, high=6)
    y, shape = partner(g, x, -2, 2)
    g.node("Pow", [x, y], ("f", shape, 0, max(x.high, 1 / x.low) ** 2, False))


def variadic(g, op):
    x = g.pick(g.one_of("f", "f", *("lid" if g.opset >= 12 and op in ("Max", "Min") else "")), rank=(0, 5))
    inputs, shape = [x], x.shape
    for _ in range(g.integer(0, 2)):
        y, joined = partner(g, inputs[0])
        joined = _broadcast(joined, shape)
        if joined is None or (g.opset < 8 and y.shape != x.shape):
            raise Unfit
        inputs, shape = inputs + [y], joined
    low, high = min(v.low for v in inputs), max(v.high for v in inputs)
    if op == "Sum":
        low, high = sum(v.low for v in inputs), sum(v.high for v in inputs)
    g.node(op, inputs, (x.kind, shape, low, high, op in ("Max", "Min") and all(v.exact for v in inputs)))


def modulo(g, op):
    if g.chance(0.5):
        x = g.pick(g.one_of(*"liBch"), rank=(0, 5))
        y, shape = partner(g, x, *((1, 4) if x.kind in UNSIGNED or g.chance(0.6) else (-4, -1)))
        return g.node("Mod", [x, y], (x.kind, shape, 0 if x.kind in UNSIGNED else -4, 4, True), **g.some(fmod=g.integer(0, 1)))
    x = g.pick(exact=True)
    y, shape = partner(g, x, *g.one_of((0.5, 2), (-2, -0.5)), exact=True)
    g.node("Mod", [x, y], ("f", shape, -2, 2, True), fmod=1)


def compare(g, op):
    kinds = "fflid"
    if op == "Equal":
        kinds = "libf" if g.opset >= 11 else "li"
    elif g.opset < 9:
        kinds = "f"
    x = g.pick(g.one_of(*kinds), rank=(0, 5), exact=True)
    y, shape = partner(g, x, exact=True)
    g.node(op, [x, y], ("b", shape, 0, 1, True))


def logical(g, op):
    x = g.pick("b", rank=(0, 5))
    if op == "Not":
        return g.same(op, x, 0, 1, True)
    y, shape = partner(g, x)
    g.node(op, [x, y], ("b", shape, 0, 1, True))


def bitwise(g, op):
    x = g.pick(g.one_of(*"iilBchH"), low=-1000, high=1000)
    if op == "BitwiseNot":
        if x.kind in UNSIGNED:
            limit = np.iinfo(np.dtype(TYPES[x.kind][1])).max
            return g.same(op, x, limit - x.high, limit - x.low, True)
        return g.same(op, x, -x.high - 1, -x.low - 1, True)
    y, shape = partner(g, x, -1000, 1000)
    most = 2.0 ** np.ceil(np.log2(max(x.bound, y.bound, 1) + 2))
    g.node(op, [x, y], (x.kind, shape, 0 if x.kind in UNSIGNED else -most, most - 1, True))


def bit_shift(g, op):
    x = g.pick(g.one_of("B", "B", "I"), rank=(1, 4), low=0, high=255)
    y, shape = partner(g, x, 0, 4)
    direction = g.one_of("LEFT", "RIGHT") if x.kind == "B" or g.chance(0.1) else "RIGHT"
    g.node(op, [x, y], (x.kind, shape, 0, 255 if x.kind == "B" else x.high * 16, True), direction=direction)


def where(g, op):
    x = g.pick(g.one_of("f", "f", "l", "i", "B"), rank=(0, 5))
    y, shape = partner(g, x)
    shape_of_condition = tuple(d if g.chance(0.7) else 1 for d in shape)
    condition = g.pick("b", rank=(0, 5), where=lambda v: _broadcast(v.shape, shape) == shape) if g.chance(0.3) else \
        g.input("b", shape_of_condition[g.integer(0, len(shape)) if g.chance(0.2) else 0:], 0, 1)
    g.node("Where", [condition, x, y], (x.kind, shape, min(x.low, y.low), max(x.high, y.high), x.exact and y.exact))


def prelu(g, op):
    x = g.pick(rank=(1, 5))
    shape = tuple(d if g.chance(0.6) else 1 for d in x.shape)
    shape = shape[g.integer(0, len(shape)) if g.chance(0.4) else 0:]
    if x.rank > 2 and g.chance(0.4):
        shape = (x.shape[1], *[1] * (x.rank - 2))
    g.node("PRelu", [x, g.either("f", shape, -2, 2)], ("f", x.shape, -2 * x.bound, 2 * x.bound, False))


def clip(g, op):
    kind = g.one_of("f", "f", *("idlcB" if g.opset >= 12 else ""))
    x = g.pick(kind, rank=(0, 5))
    least = 1 if kind in UNSIGNED else -1
    low, high = [g.integer(least, 1), None][g.chance(0.2)], [g.integer(1, 3), None][g.chance(0.2)]
    result = (kind, x.shape, max(x.low, low) if low is not None else x.low, min(x.high, high) if high is not None else x.high, x.exact)
    if low is not None and result[2] > result[3]:
        result = (kind, x.shape, low, max(low, result[3]), x.exact)
    if high is not None and result[2] > result[3]:
        result = (kind, x.shape, min(high, result[2]), high, x.exact)
    if g.opset < 11:
        return g.node("Clip", [x], result, **{k: float(v) for k, v in (("min", low), ("max", high)) if v is not None})
    make = g.scalar if g.chance(0.8) else lambda k, v: g.input(k, (), v, v)
    inputs = [x, None if low is None else make(kind, low), None if high is None else make(kind, high)]
    while inputs[-1] is None:
        inputs.pop()
    g.node("Clip", inputs, result)


def cast(g, op):
    x = g.pick(g.one_of(*"ffdlibBch"), rank=(0, 5), exact=True)
    kind = g.one_of(*"ffdlib" + ("BHI" if x.low >= 0 else "") + ("ch" if x.bound < 100 else ""))
    if kind == "B" and x.high > 255:
        kind = "f"
    low, high = (0, 1) if kind == "b" else (np.floor(x.low), np.ceil(x.high))
    result = (kind, x.shape, low, high, True)
    if op == "CastLike":
        return g.node(op, [x, g.either(kind, (1,), 0, 1)], result)
    g.node(op, [x], result, to=TYPES[kind][0])


def is_special(g, op):
    x = g.pick(rank=(0, 5), fresh=0.8)
    if any(x is v for v, _ in g.inputs) and x.size > 1 and not x.used:
        g.inputs = [(v, _with_specials(g, a) if v is x else a) for v, a in g.inputs]
        x.low, x.high = -np.inf, np.inf  # no other node may use its elements
    attributes = {}
    if op == "IsInf":
        attributes = g.some(detect_negative=g.integer(0, 1), detect_positive=g.integer(0, 1))
    g.node(op, [x], ("b", x.shape, 0, 1, True), **attributes)


def _with_specials(g, array):
    flat = array.reshape(-1).copy()
    flat[:: g.integer(2, 3)] = g.one_of(np.nan, np.inf, -np.inf)
    flat[-1] = g.one_of(np.nan, np.inf, -np.inf)
    return flat.reshape(array.shape)


# ---- reductions

def axes_of(g, x, allow_none=True):
    if allow_none and g.chance(0.15):
        return None
    axes = [i for i in range(x.rank) if g.chance(0.5)] or [g.integer(0, x.rank - 1)]
    return [a - x.rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]


def reduced(x, axes, keep):
    drop = {a % x.rank for a in (axes if axes is not None else range(x.rank))}
    return tuple(1 if i in drop else d for i, d in enumerate(x.shape) if keep or i not in drop), \
        int(np.prod([x.shape[i] for i in drop]))


def reduction(g, op):
    low, high = {"ReduceLogSum": (0.05, 50), "ReduceLogSumExp": (-10, 10), "ReduceProd": (-2, 2)}.get(op, (-50, 50))
    kind = "f"
    if op not in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL1", "ReduceL2", "ReduceMean"):
        kind = g.one_of("f", "f", "f", "i", *("d" if op != "ReduceProd" else ""))
    x = g.pick(kind, rank=(1, 5), low=low, high=high)
    axes, keep = axes_of(g, x), g.integer(0, 1)
    as_input = g.opset >= (13 if op == "ReduceSum" else 18)
    inputs, attributes = [x], g.some(0.8, keepdims=keep)
    if axes is None and as_input and g.chance(0.5):
        attributes["noop_with_empty_axes"] = 1
        attributes.pop("keepdims", None)
        if g.chance(0.5):
            inputs.append(g.ints([]))
        keep, n, shape = 1, 1, x.shape
        if op not in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"):
            raise Unfit  # other opsets do not specify whether the rest of the operator is applied
    else:
        shape, n = reduced(x, axes, attributes.get("keepdims", 1))
    if op == "ReduceProd" and n > 12:
        raise Unfit
    if axes is not None and as_input:
        inputs.append(g.ints(axes))
    elif axes is not None:
        attributes["axes"] = axes
    b = x.bound
    ends = {"ReduceL1": (0, n * b), "ReduceL2": (0, np.sqrt(n) * b), "ReduceLogSum": (-4, np.log(n * b + 1)),
            "ReduceLogSumExp": (x.low, x.high + np.log(n)), "ReduceMax": (x.low, x.high), "ReduceMin": (x.low, x.high),
            "ReduceMean": (x.low, x.high), "ReduceProd": (-(max(b, 1) ** min(n, 12)), max(b, 1) ** min(n, 12)), "ReduceSum": (-n * b, n * b),
            "ReduceSumSquare": (0, n * b * b)}[op]
    fits(kind, *ends)
    g.node(op, inputs, (kind, shape, *ends, kind == "i" or (x.exact and op in ("ReduceMax", "ReduceMin"))), **attributes)


def arg(g, op):
    x = g.pick(g.one_of("f", "f", "f", "i"), exact=True)
    axis, keep = g.axis(x.rank), g.integer(0, 1)
    shape, _ = reduced(x, [axis], keep)
    g.node(op, [x], ("l", shape, 0, x.shape[axis] - 1, True), axis=axis, keepdims=keep,
           **(g.some(select_last_index=g.integer(0, 1)) if g.opset >= 12 else {}))


def top_k(g, op):
    x = g.pick(g.one_of("f", "f", *("il" if g.opset >= 11 else "")), exact=True)
    axis = g.axis(x.rank)
    k = g.integer(1, x.shape[axis])
    shape = tuple(k if i == axis % x.rank else d for i, d in enumerate(x.shape))
    results = (x.kind, shape, x.low, x.high, True), ("l", shape, 0, x.shape[axis] - 1, True)
    if g.opset < 10:
        return g.node(op, [x], *results, axis=axis, k=k)
    largest = g.some(largest=g.integer(0, 1)) if g.opset >= 11 else {}
    if g.chance(0.7):
        return g.node(op, [x, g.ints([k])], *results, axis=axis, **largest)
    g.unknown(g.node(op, [x, g.input("l", (1,), k, k)], *results, axis=axis, **largest))


def cumulative(g, op):
    x = g.pick(g.one_of("f", "f", "i", "l", "d"), low=-4, high=4)
    axis = g.axis(x.rank)
    n = x.shape[axis]
    bound = n * x.bound if op == "CumSum" else max(x.bound, 1) ** min(n, 100)
    fits(x.kind, -bound, bound)
    g.node(op, [x, g.scalar(g.one_of("l", "i"), axis)], (x.kind, x.shape, -bound, bound, x.kind in "il"),
           **g.some(0.7, exclusive=g.integer(0, 1), reverse=g.integer(0, 1)))


def softmax(g, op):
    x = g.pick(low=-20, high=20)
    low, high = (0, 1) if op == "Softmax" else (-50, 0)
    g.same(op, x, low, high, **g.some(0.8, axis=g.axis(x.rank)) if x.rank > 1 or g.opset >= 13 else {"axis": 0})


def hardmax(g, op):
    x = g.pick(exact=True)
    g.same(op, x, 0, 1, True, **g.some(0.8, axis=g.axis(x.rank)) if x.rank > 1 or g.opset >= 13 else {"axis": 0})


def bit_cast(g, op):
    x = g.pick(g.one_of(*"icBhHf"), rank=(0, 5), exact=True)
    to = {"i": "i", "c": "B", "B": "c", "h": "H", "H": "h", "f": "i"}[x.kind]
    limits = np.iinfo(np.dtype(TYPES[to][1]))
    g.node(op, [x], (to, x.shape, limits.min, limits.max, True), to=TYPES[to][0])


ROWS = {
    **{op: unary for op in UNARY},
    **{op: arithmetic for op in ("Add", "Sub", "Mul", "Div")},
    "Pow": power, "Mod": modulo, "Where": where, "PRelu": prelu, "Clip": clip, "Cast": cast, "CastLike": cast,
    **{op: variadic for op in ("Max", "Min", "Sum", "Mean")},
    **{op: compare for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")},
    **{op: logical for op in ("And", "Or", "Xor", "Not")},
    **{op: bitwise for op in ("BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitShift": bit_shift, "BitCast": bit_cast, "IsNaN": is_special, "IsInf": is_special,
    **{"Reduce" + op: reduction for op in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
    "ArgMax": arg, "ArgMin": arg, "TopK": top_k, "CumSum": cumulative, "CumProd": cumulative, "Softmax": softmax,
    "LogSoftmax": softmax, "Hardmax": hardmax,
    **{op: "onnxruntime has no kernel for it" for op in ("SwiGLU", "Swish")},
    **{op: "random numbers of another generator" for op in ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                                                            "RandomUniformLike")},
}
