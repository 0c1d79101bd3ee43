"""Cases of special_values_test.py: nodes on NaN, infinities, signed zeros, the largest and smallest numbers, subnormals and the
extremes of integer types.
"""
import math

import numpy as np

from node_cases import case

MS = "com.microsoft"
NAN, INF = float("nan"), float("inf")
MAX, TINY, LEAST = float(np.finfo("f4").max), float(np.finfo("f4").tiny), 1e-45


def f(*numbers):
    return np.array(numbers, "f4")


# Single values.
ALL = f(NAN, INF, -INF, 0.0, -0.0, MAX, -MAX, TINY, -TINY, LEAST, -LEAST, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 1e-4, -1e-4, 1e-8, -1e-8, 10, -10,
        50, -50, 89, -89, 104, -104, 1e10, -1e10, 1e20, -1e20, 3e38, -3e38)
FINITE = ALL[~np.isinf(ALL)]
# Pairs of values.
PAIRS = f(NAN, INF, -INF, 0.0, -0.0, MAX, -MAX, TINY, -LEAST, 1, -1, 0.5, -0.5, 2, -3)
LEFT, RIGHT = PAIRS[:, None], PAIRS[None]
# Rows along which operators reduce, sort or normalize.
LINES = f([1, 2, 3, 0], [NAN, 1, 2, 0], [1, 2, 3, NAN], [0, NAN, 1, NAN], [NAN] * 4, [INF, 1, 2, 0], [1, INF, INF, 2], [INF] * 4,
          [-INF, 1, 2, 0], [0, -INF, -INF, 2], [-INF] * 4, [INF, -INF, 1, 2], [INF, NAN, -INF, 0], [-INF, -INF, NAN, 1], [-INF, NAN, NAN, NAN],
          [0.0, -0.0, 0.0, -0.0], [-0.0, 0.0, -0.0, 0.0], [-0.0] * 4, [MAX, 1, 0, -1], [MAX] * 4, [-MAX] * 4, [MAX, -MAX, 0, 0],
          [LEAST] * 4, [TINY, -TINY, LEAST, 0], [100, 100, 100, 100], [-200, -200, -199, -200], [1e20, -1e20, 1e20, 1], [INF, MAX, 0, 0],
          [-INF, -MAX, -MAX, -INF])
# Rows without values whose squares or products overflow in fp32, where the result depends on the order of operations.
SIZES = np.where(np.isfinite(LINES) & (LINES != 0), np.abs(LINES), 1)
MODERATE = LINES[((SIZES > 1e-15) & (SIZES < 150)).all(1)]
# Run-time integers have 32 bits, so the results of int64 arithmetic must stay within that range.
INTEGERS = {"i4": (-2**31, 2**31 - 1), "i8": (1 - 2**30, 2**30 - 1), "i1": (-128, 127), "u1": (0, 255), "i2": (-2**15, 2**15 - 1),
            "u2": (0, 2**16 - 1)}


def ends(dtype):
    low, high = INTEGERS[dtype]
    return np.array([v for v in (low, low + 1, -3, -2, -1, 0, 1, 2, 3, high - 1, high) if v >= low], dtype)


# Expected values for operators in which onnxruntime is imprecise or treats NaN by position: those of ONNX's reference
# implementation, which uses NumPy.
def exactly(function, *arrays, dtype="f4"):
    with np.errstate(all="ignore"):
        return [np.asarray(function(*[a.astype("f8") for a in arrays])).astype(dtype)]


def elu(alpha, scale=1.0):
    return lambda x: scale * np.where(x < 0, alpha * np.expm1(x), x)


def celu(alpha):
    return lambda x: np.where(x < 0, alpha * np.expm1(x / alpha), x)


def gelu(x):
    return np.where(np.isneginf(x), np.nan, 0.5 * x * np.vectorize(math.erfc)(-x * math.sqrt(0.5)))


def quick_gelu(x):
    return x / (1 + np.exp(-float(np.float32(1.702)) * x))


def order(x, k, largest, axis=1):
    """Sort order in which NaN is the largest number and equal numbers keep their order."""
    x = np.moveaxis(x, axis, 1)
    places = np.array([sorted(range(len(line)), key=lambda i: (np.isnan(line[i]) ^ largest, 0 if np.isnan(line[i]) else
                                                               (-line[i] if largest else line[i]), i))[:k] for line in x])
    return [np.moveaxis(np.take_along_axis(x, places, 1), 1, axis), np.moveaxis(places, 1, axis)]


def extreme(function, x, axis, last):
    """numpy.argmax or argmin that returns the last of equal elements."""
    if not last:
        return [function(x, axis, keepdims=True)]
    return [x.shape[axis] - 1 - function(np.flip(x, axis), axis, keepdims=True)]


def hardmax(x, axis):
    out = np.zeros_like(x)
    np.put_along_axis(out, x.argmax(axis, keepdims=True), 1, axis)
    return [out]


EXACT = {"Elu": elu(1.0), "Selu": elu(1.67326319217681884765625, 1.05070102214813232421875), "Celu": celu(1.0),
         "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Gelu": gelu}
COLUMNS = np.ascontiguousarray(LINES.T)

# ---- unary
for op, opset in (("Abs", 13), ("Acos", 7), ("Acosh", 9), ("Asin", 7), ("Asinh", 9), ("Atan", 7), ("Atanh", 9), ("Ceil", 13), ("Cos", 7),
                  ("Cosh", 9), ("Elu", 6), ("Erf", 13), ("Exp", 13), ("Floor", 13), ("HardSigmoid", 6), ("HardSwish", 14), ("Identity", 13),
                  ("LeakyRelu", 16), ("Log", 13), ("Mish", 18), ("Neg", 13), ("Reciprocal", 13), ("Relu", 14), ("Round", 11), ("Selu", 6),
                  ("Sigmoid", 13), ("Sign", 13), ("Sin", 7), ("Sinh", 9), ("Softplus", 1), ("Softsign", 1), ("Sqrt", 13), ("Tan", 7),
                  ("Tanh", 13), ("ThresholdedRelu", 10), ("Celu", 12), ("Shrink", 9), ("Gelu", 20)):
    x = ALL
    if op in ("Sin", "Cos", "Tan"):  # the result for a large argument depends on its last bit
        x = ALL[~(np.abs(ALL) > 200) | np.isinf(ALL)]
    case(op, op, {"x": x}, ["y"], opset, expected=exactly(EXACT[op], x) if op in EXACT else ())
for alpha in (0.0, -1.0, 0.5):
    case(f"ThresholdedRelu alpha={alpha}", "ThresholdedRelu", {"x": ALL}, ["y"], 10, alpha=alpha)
    case(f"LeakyRelu alpha={alpha}", "LeakyRelu", {"x": ALL}, ["y"], 16, alpha=alpha)
    case(f"Elu alpha={alpha}", "Elu", {"x": ALL}, ["y"], 6, alpha=alpha, expected=exactly(elu(alpha), ALL))
case("Celu alpha=0.5", "Celu", {"x": ALL}, ["y"], 12, alpha=0.5, expected=exactly(celu(0.5), ALL))
case("Selu alpha=2 gamma=3", "Selu", {"x": ALL}, ["y"], 6, alpha=2.0, gamma=3.0, expected=exactly(elu(2.0, 3.0), ALL))
case("HardSigmoid alpha=0", "HardSigmoid", {"x": ALL}, ["y"], 6, alpha=0.0, beta=0.5)
case("Shrink lambd=1.5 bias=1.5", "Shrink", {"x": ALL}, ["y"], 9, lambd=1.5, bias=1.5)
case("Gelu tanh", "Gelu", {"x": ALL}, ["y"], 20, approximate="tanh")
case("QuickGelu", "QuickGelu", {"x": ALL}, ["y"], domain=MS, alpha=1.702, expected=exactly(quick_gelu, ALL))
case("FastGelu", "FastGelu", {"x": ALL}, ["y"], domain=MS)
case("IsNaN", "IsNaN", {"x": ALL}, ["y:?"], 13)
for positive, negative in ((1, 1), (1, 0), (0, 1), (0, 0)):
    case(f"IsInf {positive}{negative}", "IsInf", {"x": ALL}, ["y:?"], 10, detect_positive=positive, detect_negative=negative)
case("Cast to bool", "Cast", {"x": ALL}, ["y:?"], 13, to=9)
case("Cast to fp16", "Cast", {"x": ALL}, ["y:f2"], 13, to=10)
for dtype in ("i4", "i8", "i1"):
    case(f"Neg {dtype}", "Neg", {"x": ends(dtype)}, [f"y:{dtype}"], 13)
for dtype in INTEGERS:
    case(f"Abs {dtype}", "Abs", {"x": ends(dtype)}, [f"y:{dtype}"], 13)
    case(f"Sign {dtype}", "Sign", {"x": ends(dtype)}, [f"y:{dtype}"], 13)
    case(f"BitwiseNot {dtype}", "BitwiseNot", {"x": ends(dtype)}, [f"y:{dtype}"], 18)
case("Relu i4", "Relu", {"x": ends("i4")}, ["y:i4"], 14)

# ---- two operands, with the second also as a constant
for constant in (False, True):
    for op, opset, dtype in (("Add", 14, "f4"), ("Sub", 14, "f4"), ("Mul", 14, "f4"), ("Div", 14, "f4"), ("Pow", 15, "f4"), ("Max", 13, "f4"),
                             ("Min", 13, "f4"), ("Sum", 13, "f4"), ("Mean", 13, "f4"), ("Mod", 13, "f4"), ("Equal", 13, "?"),
                             ("Greater", 13, "?"), ("GreaterOrEqual", 16, "?"), ("Less", 13, "?"), ("LessOrEqual", 16, "?"),
                             ("PRelu", 16, "f4")):
        if constant and op in ("Sum", "Mean", "Greater", "Less"):
            continue
        case(f"{op}{', constant' * constant}", op, {"x": LEFT, "Y" if constant else "y": RIGHT}, [f"z:{dtype}"], opset,
             **({"fmod": 1} if op == "Mod" else {}))
    for dtype in INTEGERS:
        x, y = ends(dtype)[:, None], ends(dtype)[None]
        divisor = y[y != 0][None]
        for op, opset, second, attributes, types in (
                ("Add", 14, y, {}, INTEGERS), ("Sub", 14, y, {}, INTEGERS), ("Mul", 14, y[np.abs(y) < 3][None], {}, INTEGERS), ("Div", 14, divisor, {}, INTEGERS),
                ("Mod", 13, divisor, {}, INTEGERS), ("Mod", 13, divisor, {"fmod": 1}, INTEGERS), ("Max", 13, y, {}, INTEGERS),
                ("Min", 13, y, {}, INTEGERS), ("Less", 13, y, {}, ("i4", "i8")), ("Equal", 13, y, {}, ("i4", "i8")),
                ("Pow", 15, np.array([[0, 1]], dtype), {}, ("i4", "i8")), ("BitwiseAnd", 18, y, {}, INTEGERS),
                ("BitwiseXor", 18, y, {}, INTEGERS)):
            if dtype not in types or constant and op in ("Max", "Min", "Less", "Equal"):
                continue
            result = "?" if op in ("Less", "Equal") else dtype
            # onnxruntime divides -2^31 by -1 with a machine instruction that traps.
            expected = [np.mod(x, second)] if op == "Mod" and not attributes else ()
            case(f"{op} {dtype}{' fmod' if attributes else ''}{', constant' * constant}", op, {"x": x, "Y" if constant else "y": second},
                 [f"z:{result}"], opset, expected=expected, **attributes)
for exponent in (0.0, 0.5, -0.5, 1.0, 2.0, 3.0, -1.0, INF, NAN):
    case(f"Pow {exponent}", "Pow", {"x": ALL, "Y": np.array(exponent, "f4")}, ["z"], 15)
    case(f"Pow of {exponent}", "Pow", {"X": np.array(exponent, "f4"), "y": ALL}, ["z"], 15)
for name, factor in (("0", 0.0), ("-0", -0.0), ("1", 1.0), ("-1", -1.0), ("inf", INF), ("NaN", NAN), ("2", 2.0), ("1e-45", LEAST), ("max", MAX)):
    for op in ("Add", "Sub", "Mul", "Div"):  # operations that passes simplify
        case(f"{op} {name}", op, {"x": ALL, "Y": np.array(factor, "f4")}, ["z"], 14)
        case(f"{name} {op}", op, {"X": np.array(factor, "f4"), "y": ALL}, ["z"], 14)
SLOPES = f(NAN, INF, -INF, 0.0, -0.0, MAX, -1, 0.5).reshape(8, 1, 1)
for names in ("s", "S"):
    case(f"PRelu per channel {names}", "PRelu", {"x": np.broadcast_to(PAIRS.reshape(1, 1, 1, -1), (1, 8, 1, 15)).copy(), names: SLOPES}, ["y"], 16)
    for slope in (INF, 0.0, NAN):
        case(f"PRelu one slope {slope} {names}", "PRelu", {"x": ALL, names: f(slope)}, ["y"], 16)
for low, high in ((NAN, 1), (-1, NAN), (NAN, NAN), (-INF, INF), (2, 1), (0, MAX), (-MAX, 0), (0.0, INF), (-INF, -0.0), (0.0, 6.0)):
    # NaN or infinite bounds: min(max(x, low), high) with NumPy's maximum. onnxruntime ignores a NaN bound.
    clipped = [np.minimum(np.maximum(x, np.float32(low)), np.float32(high)) for x in (ALL, FINITE)]
    # The largest number as a bound means no bound, so infinities pass, as with the default of Clip; Clip(0, max) is Relu.
    x, want = (FINITE, clipped[1]) if MAX in (-low, high) else (ALL, clipped[0])
    case(f"Clip {low} {high}", "Clip", {"x": x, "L": np.array(low, "f4"), "H": np.array(high, "f4")}, ["y"], 13, expected=[want])
    case(f"Clip {low} {high}, run time", "Clip", {"x": x, "l": np.array(low, "f4"), "h": np.array(high, "f4")}, ["y"], 13, expected=[want])
case("Clip below 1, no upper bound", "Clip", {"x": FINITE, "L": np.array(1, "f4")}, ["y"], 13)
case("Clip below NaN", "Clip", {"x": FINITE, "L": np.array(NAN, "f4")}, ["y"], 13, expected=[FINITE * np.float32(NAN)])
for dtype in ("i4", "i8", "i1", "u1"):
    for low, high in ((0, 2), (2, 1)):
        case(f"Clip {dtype} {low} {high}", "Clip", {"x": ends(dtype), "L": np.array(low, dtype), "H": np.array(high, dtype)}, [f"y:{dtype}"], 13)
case("Where", "Where", {"c": PAIRS > 0, "x": PAIRS, "y": PAIRS[::-1].copy()}, ["z"], 16)

# ---- along rows
for keep in (1, 0):
    for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
               "ReduceSumSquare"):
        if keep or op == "ReduceLogSumExp":
            lines = MODERATE if op == "ReduceProd" else LINES
            given = {"x": lines, "A": np.array([1])} if op == "ReduceSum" else {"x": lines}
            turned = {**given, "x": np.ascontiguousarray(lines.T)} | ({"A": np.array([0])} if op == "ReduceSum" else {})
            function = {"ReduceMax": np.max, "ReduceMin": np.min}.get(op)
            for axis, x in ((1, given), (0, turned)):
                case(f"{op}{' of columns' * (axis == 0)} keepdims={keep}", op, x, ["y"], 13, keepdims=keep,
                     expected=[function(x["x"], axis, keepdims=bool(keep))] if function else (), **({} if op == "ReduceSum" else {"axes": [axis]}))
for op in ("ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"):
    for dtype in ("i4", "i8"):
        low, high = INTEGERS[dtype]
        x = np.array([[low, high], [-1, low + 1], [low, low], [high, high], [-1, 0], [low, 1]], dtype)
        if op in ("ReduceMax", "ReduceMin"):
            case(f"{op} {dtype}", op, {"x": x}, [f"y:{dtype}"], 13, axes=[1])
for last in (0, 1):
    for op in ("ArgMax", "ArgMin"):
        function = np.argmax if op == "ArgMax" else np.argmin
        for axis, x in ((1, LINES), (0, COLUMNS)):
            case(f"{op}{' of columns' * (axis == 0)} select_last_index={last}", op, {"x": x}, ["y:i8"], 13, axis=axis,
                 select_last_index=last, expected=extreme(function, x, axis, last))
        case(f"{op} i4 select_last_index={last}", op, {"x": np.array([[0, -2**31, -2**31], [2**31 - 1, 3, 2**31 - 1], [-1, -1, -2]], "i4")},
             ["y:i8"], 13, axis=1, select_last_index=last)
for op in ("Softmax", "LogSoftmax", "Hardmax"):
    is_hard = op == "Hardmax"
    case(op, op, {"x": LINES}, ["y"], 13, axis=1, expected=hardmax(LINES, 1) if is_hard else ())
    case(f"{op} of columns", op, {"x": COLUMNS}, ["y"], 13, axis=0, expected=hardmax(COLUMNS, 0) if is_hard else ())
    case(f"{op}-11, two axes", op, {"x": LINES.reshape(29, 2, 2)}, ["y"], 11, axis=1,
         expected=[hardmax(LINES, 1)[0].reshape(29, 2, 2)] if is_hard else ())
for largest in (0, 1):
    for k in (1, 2, 4):
        case(f"TopK {k} largest={largest}", "TopK", {"x": LINES, "K": np.array([k])}, ["y", "i:i8"], 11, largest=largest,
             expected=order(LINES, k, largest))
    case(f"TopK of columns, largest={largest}", "TopK", {"x": COLUMNS, "K": np.array([2])}, ["y", "i:i8"], 11, largest=largest, axis=0,
         expected=order(COLUMNS, 2, largest, 0))
    case(f"TopK of a K at run time, largest={largest}", "TopK", {"x": LINES, "k": np.array([3])}, ["y", "i:i8"], 11, largest=largest,
         expected=order(LINES, 3, largest))
    case(f"TopK i4 largest={largest}", "TopK", {"x": np.array([[0, -2**31, 5, 2**31 - 1], [-1, -2**31, -2**31, 0]], "i4"), "K": np.array([3])},
         ["y:i4", "i:i8"], 11, largest=largest)
for reverse in (0, 1):
    for exclusive in (0, 1):
        case(f"CumSum reverse={reverse} exclusive={exclusive}", "CumSum", {"x": LINES, "A": np.array(1)}, ["y"], 14, reverse=reverse,
             exclusive=exclusive)
case("LpNormalization 2", "LpNormalization", {"x": MODERATE}, ["y"], 1, axis=1, p=2)
case("LpNormalization 1", "LpNormalization", {"x": MODERATE}, ["y"], 1, axis=1, p=1)
PLANES = LINES.reshape(1, 29, 1, 4)


def pooled(function, size, pad=0, fill=0.0):
    """Windows along the last dimension."""
    padded = np.pad(PLANES.astype("f8"), [(0, 0)] * 3 + [(pad, pad)], constant_values=fill)
    with np.errstate(all="ignore"):
        return [function(np.lib.stride_tricks.sliding_window_view(padded, size, 3), -1).astype("f4")]


# The maximum of a window or plane is NaN if it contains NaN, as in ReduceMax; onnxruntime ignores NaN after the first element
# and returns the lowest number if all elements are -inf.
case("MaxPool 2", "MaxPool", {"x": PLANES}, ["y"], 12, kernel_shape=[1, 2], expected=pooled(np.max, 2))
case("MaxPool 3", "MaxPool", {"x": PLANES}, ["y"], 12, kernel_shape=[1, 3], pads=[0, 1, 0, 1], expected=pooled(np.max, 3, 1, -INF))
case("GlobalMaxPool", "GlobalMaxPool", {"x": PLANES}, ["y"], 1, expected=[PLANES.max(3, keepdims=True)])
case("AveragePool 2", "AveragePool", {"x": PLANES}, ["y"], 11, kernel_shape=[1, 2])
case("AveragePool 3", "AveragePool", {"x": PLANES}, ["y"], 11, kernel_shape=[1, 3], pads=[0, 1, 0, 1])
case("AveragePool 3 with its border", "AveragePool", {"x": PLANES}, ["y"], 11, kernel_shape=[1, 3], pads=[0, 1, 0, 1], count_include_pad=1)
case("LpPool 2", "LpPool", {"x": PLANES}, ["y"], 11, kernel_shape=[1, 2])
case("GlobalAveragePool", "GlobalAveragePool", {"x": PLANES}, ["y"], 1)
case("GlobalLpPool", "GlobalLpPool", {"x": PLANES}, ["y"], 2)
ONES = {"S": np.ones(len(MODERATE), "f4"), "B": np.zeros(len(MODERATE), "f4")}
case("InstanceNormalization", "InstanceNormalization", {"x": MODERATE.reshape(1, -1, 1, 4), **ONES}, ["y"], 6)
case("LayerNormalization", "LayerNormalization", {"x": MODERATE, "S": np.ones(4, "f4")}, ["y"], 17)
case("BatchNormalization", "BatchNormalization", {"x": MODERATE.reshape(1, -1, 1, 4), **ONES, "M": ONES["B"], "V": ONES["S"]}, ["y"], 15)
case("Trilu upper", "Trilu", {"x": np.full((3, 3), NAN, "f4")}, ["y"], 14, upper=1)
case("Trilu lower", "Trilu", {"x": np.full((3, 3), -INF, "f4")}, ["y"], 14, upper=0)
case("MatMul", "MatMul", {"x": LINES, "y": f([0, 1], [1, INF], [0, 0], [NAN, 1])}, ["z"], 13)
case("Pad", "Pad", {"x": f([NAN, INF], [-INF, -0.0]), "P": np.array([1, 1, 1, 1]), "V": np.array(-MAX, "f4")}, ["y"], 13)
case("Pad with -inf", "Pad", {"x": f([1, 2]), "P": np.array([0, 1, 0, 1]), "V": np.array(-INF, "f4")}, ["y"], 13)
case("Pad with NaN", "Pad", {"x": f([1, 2]), "P": np.array([0, 1, 0, 1]), "V": np.array(NAN, "f4")}, ["y"], 13)
case("OneHot", "OneHot", {"i": np.array([0, -1, 2, 5, -4]), "D": np.array(3), "V": f(-INF, NAN)}, ["y"], 11)
for reduction, function in (("none", None), ("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
    with np.errstate(all="ignore"):
        want = LINES[::-1].copy() if function is None else function(LINES, LINES[::-1])
        pairs = PAIRS[::-1].copy() if function is None else function(PAIRS, PAIRS[::-1])
    case(f"ScatterElements {reduction}", "ScatterElements", {"x": LINES, "I": np.tile(np.array([[0, 1, 2, 3]]), (29, 1)),
                                                             "u": LINES[::-1].copy()}, ["y"], 18, axis=1, reduction=reduction, expected=[want])
    case(f"ScatterND {reduction}", "ScatterND", {"x": PAIRS, "I": np.arange(15)[:, None], "u": PAIRS[::-1].copy()}, ["y"], 18,
         reduction=reduction, expected=[pairs])
case("QuantizeLinear", "QuantizeLinear", {"x": ALL, "S": np.array(0.5, "f4"), "Z": np.array(3, "u1")}, ["y:u1"], 13)
case("Resize", "Resize", {"x": PLANES, "": None, "S": f(1, 1, 1, 2)}, ["y"], 13, mode="nearest")
case("Einsum", "Einsum", {"x": LINES, "y": f([0, 1], [1, INF], [0, 0], [NAN, 1])}, ["z"], 12, equation="ij,jk->ik")

# Operators for which IEEE 754 defines the sign of a zero result. It does not define the sign of the maximum of two zeros, and a
# sum may start from either zero.
SIGNED_ZEROS = {"Abs", "Add", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Celu", "Div", "Elu", "Erf", "Floor", "Identity", "LeakyRelu", "Mul",
                "Neg", "PRelu", "Pow", "Reciprocal", "Round", "Selu", "Sin", "Sinh", "Softsign", "Sqrt", "Sub", "Tan", "Tanh", "Where"}
