"""Compares nodes that ONNX's own tests do not cover with NumPy: operators of old opsets (broadcasting with an axis, attributes
that later became inputs, mask types), and operators of the newest opsets that onnxruntime lacks. Expected values follow the
changelog of the specification. Every case runs with constant and with symbolic dimensions of x. An argument selects the cases
whose name contains it.
"""
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

RTOL, ATOL = 1e-4, 1e-6
TYPES = {np.dtype(name): number for number, (name, _) in wire.DTYPES.items()}
CASES = []
RANDOM = np.random.RandomState(0)


def floats(*dims):
    return RANDOM.randn(*dims).astype("f4")


def case(op, opsets, inputs, expected, **attributes):
    """Adds a case. `inputs`: {name: array}; a name that begins with a capital letter is a constant, and None omits an optional input."""
    expected = expected if isinstance(expected, list) else [expected]
    for opset in opsets:
        CASES.append((f"{op}-{opset} {attributes or ''}".strip(), op, opset, inputs, expected, attributes))


def softmax(x, axes):
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


X, SUFFIX, MIDDLE, FIRST = floats(2, 3, 4, 5), floats(4, 5), floats(3, 4), floats(2)
WHOLE, PART = RANDOM.randint(-9, 9, (2, 3, 4, 5)), RANDOM.randint(1, 4, (3, 4))
CHANNEL = [1, 3, 1, 1]
for name, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)):
    for opset, old in ((1, {"consumed_inputs": [0, 0]}), (6, {})):
        case(name, [opset], {"x": X, "y": X[::-1].copy()}, function(X, X[::-1]), **old)
        case(name, [opset], {"x": X, "y": SUFFIX}, function(X, SUFFIX), broadcast=1, **old)
        case(name, [opset], {"x": X, "y": MIDDLE}, function(X, MIDDLE[None, :, :, None]), broadcast=1, axis=1, **old)
        case(name, [opset], {"x": X, "y": FIRST}, function(X, FIRST.reshape(2, 1, 1, 1)), broadcast=1, axis=0, **old)
for dtype in ("i4", "i8"):
    x, y = WHOLE.astype(dtype), PART.astype(dtype)
    case("Div", [6], {"x": x, "y": y}, np.trunc(x / y[None, :, :, None]).astype(dtype), broadcast=1, axis=1)
for name, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
    case(name, [1], {"x": X > 0, "y": MIDDLE > 0}, function(X > 0, MIDDLE[None, :, :, None] > 0), broadcast=1, axis=1)
for name, function in (("Greater", np.greater), ("Less", np.less)):
    case(name, [1], {"x": X, "y": MIDDLE}, function(X, MIDDLE[None, :, :, None]), broadcast=1, axis=1)
case("Equal", [1], {"x": WHOLE.astype("i4"), "y": PART.astype("i4")}, WHOLE == PART[None, :, :, None], broadcast=1, axis=1)
case("Pow", [1], {"x": abs(X), "y": MIDDLE}, abs(X) ** MIDDLE[None, :, :, None], broadcast=1, axis=1)
case("Selu", [1], {"x": X}, (1.0507 * np.where(X <= 0, 1.6732 * (np.exp(X) - 1), X)).astype("f4"), consumed_inputs=[0])
case("Clip", [1, 6], {"x": X}, np.clip(X, -.5, .75).astype("f4"), min=-.5, max=.75)
case("Clip", [6], {"x": X}, np.maximum(X, np.float32(-.5)), min=-.5)

# Pads computed at run time, in all modes; negative pads crop.
for mode in ("constant", "edge", "reflect", "wrap"):
    opsets, how = [19], {} if mode == "constant" else {"mode": mode}
    for x in (X, WHOLE):
        case("Pad", opsets, {"x": x, "p": np.array([0, 1, 2, 0, 1, 0, 1, 3])}, np.pad(x, [(0, 1), (1, 0), (2, 1), (0, 3)], mode), **how)
    case("Pad", opsets, {"x": X, "p": np.array([2, 1, 1, 0]), "": None, "A": np.array([3, -2])},
         np.pad(X, [(0, 0), (0, 0), (1, 0), (2, 1)], mode), **how)
case("Pad", [13], {"x": X, "p": np.array([0, 1, -1, 0, 0, 0, 1, -2]), "v": np.array(.5, "f4")},
     np.pad(X[:, :, 1:, :-2], [(0, 0), (1, 0), (0, 1), (0, 0)], constant_values=.5))
case("Pad", [13], {"x": X, "p": np.array([0, 1, -1, 0, 0, 0, 1, -2])}, np.pad(X[:, :, 1:, :-2], [(0, 0), (1, 0), (0, 1), (0, 0)]))
case("CenterCropPad", [18], {"x": X, "S": np.array([2, 8])}, np.pad(X[:, :, 1:3], [(0, 0), (0, 0), (0, 0), (1, 2)]), axes=[2, 3])
# Dilated pools, and the indices of their maxima.
PAIRS = np.stack([X[:, :, :-2], X[:, :, 2:]])
NUMBERS = np.arange(X.size).reshape(X.shape)
case("MaxPool", [12], {"x": X}, [PAIRS.max(0), np.where(PAIRS.argmax(0), NUMBERS[:, :, 2:], NUMBERS[:, :, :-2])],
     kernel_shape=[2, 1], dilations=[2, 1])
case("AveragePool", [19], {"x": X}, PAIRS.mean(0), kernel_shape=[2, 1], dilations=[2, 1])
case("MaxPool", [12], {"x": X}, [X[:, :, ::3, ::2], NUMBERS[:, :, ::3, ::2]], kernel_shape=[1, 1], strides=[3, 2], ceil_mode=1)
# Resizes that Core ML's own operators do not support: linear and cubic interpolation at the edges.
LINE = np.arange(6, dtype="f4").reshape(1, 1, 1, 6)
case("Resize", [13], {"x": LINE, "": None, "S": np.array([1, 1, 1, .5], "f4")}, LINE[..., ::2] + .5, mode="linear")
case("Resize", [13], {"x": LINE, "": None, "S": np.array([1, 1, 1, .5], "f4")}, LINE[..., ::2], nearest_mode="floor",
     mode="nearest", coordinate_transformation_mode="asymmetric")
# Halfway between two elements, Keys' cubic kernel with a = -3/4 has the weights -3/32, 19/32, 19/32 and -3/32.
AROUND = LINE.reshape(6)[np.clip(np.arange(0, 6, 2)[:, None] + [-1, 0, 1, 2], 0, 5)]
case("Resize", [13], {"x": LINE, "": None, "S": np.array([1, 1, 1, .5], "f4")},
     (AROUND @ np.array([-3, 19, 19, -3], "f4") / 32).reshape(1, 1, 1, 3), mode="cubic")
case("Resize", [10], {"x": X, "S": np.array([1, 1, .5, .5], "f4")}, X[:, :, ::2, :4:2])
# Dilated convolutions with weights computed at run time, which Core ML's conv does not support.
IMAGE, KERNEL = floats(1, 2, 6, 7), floats(3, 2, 2, 2)
GAPS = np.zeros((3, 2, 3, 4), "f4")
GAPS[:, :, ::2, ::3] = KERNEL
windows = np.lib.stride_tricks.sliding_window_view(IMAGE[0], (3, 4), (1, 2))
case("Conv", [1, 11], {"x": IMAGE, "w": KERNEL}, np.einsum("cijhw,ochw->oij", windows, GAPS)[None], dilations=[2, 3])

SLOPES = floats(3)
for name in ("s", "S"):
    case("PRelu", [1, 6], {"x": X, name: SLOPES}, np.where(X < 0, X * SLOPES.reshape(3, 1, 1), X))
    case("PRelu", [6], {"x": X[:, :, 0, 0], name: SLOPES}, np.where(X[:, :, 0, 0] < 0, X[:, :, 0, 0] * SLOPES, X[:, :, 0, 0]))
    case("PRelu", [6], {"x": X, name: SLOPES[:1]}, np.where(X < 0, X * SLOPES[0], X))

NORMS = [floats(3), floats(3), floats(3), abs(floats(3)) + .125]
scale, bias, mean, variance = (v.reshape(CHANNEL) for v in NORMS)
normal = (X - mean) / np.sqrt(variance + 1e-3) * scale + bias
for names in ("sbmv", "SBMV"):
    operands = {"x": X, **dict(zip(names, NORMS))}
    case("BatchNormalization", [1], operands, normal, epsilon=1e-3, is_test=1, spatial=1, consumed_inputs=[0, 0, 0, 1, 1])
    case("BatchNormalization", [6], operands, normal, epsilon=1e-3, is_test=1)
    case("BatchNormalization", [7, 9, 14, 15], operands, normal, epsilon=1e-3)
PLACES = {"S": floats(3, 4, 5), "B": floats(3, 4, 5), "M": floats(3, 4, 5), "V": abs(floats(3, 4, 5)) + .125}
for opset, test in ((1, {"is_test": 1}), (6, {"is_test": 1}), (7, {})):
    case("BatchNormalization", [opset], {"x": X, **PLACES},
         (X - PLACES["M"]) / np.sqrt(PLACES["V"] + 1e-3) * PLACES["S"] + PLACES["B"], epsilon=1e-3, spatial=0, **test)

for opset, old in ((1, {"is_test": 1}), (6, {"is_test": 1}), (7, {}), (10, {})):
    case("Dropout", [opset], {"x": X}, [X, np.ones_like(X, bool if opset >= 10 else "f4")], ratio=.5, **old)
PADDED = np.pad(X, [(0, 0), (0, 1), (1, 3), (2, 0)], constant_values=2.5)
case("Pad", [1], {"x": X}, PADDED, paddings=[0, 0, 1, 2, 0, 1, 3, 0], value=2.5)
case("Pad", [2], {"x": X}, PADDED, pads=[0, 0, 1, 2, 0, 1, 3, 0], value=2.5)
case("Slice", [1], {"x": X}, X[:, 1:, :, -3:-1], starts=[1, -3], ends=[9, -1], axes=[1, 3])
case("Reshape", [1], {"x": X}, X.reshape(2, 12, 5), shape=[0, -1, 5])
case("Concat", [1], {"x": X, "y": X}, np.concatenate([X, X], 1))
case("Cast", [1], {"x": X * 5}, (X * 5).astype("i4"), to="INT32")
A, B, C = floats(4, 5), floats(5, 3), floats(3)
case("Gemm", [1, 6], {"A": A, "b": B, "c": C}, A @ B / 2 + 2 * C, alpha=.5, beta=2., broadcast=1)
# Labels with several symbolic sizes, labels of a single operand, labels of size 1 in one operand, and repeated labels.
for equation, operands in (("abcd,edc->abe", (X, floats(2, 5, 4))), ("abcd,abcd->ab", (X, X)), ("abcd,adec->be", (X, floats(2, 5, 2, 1))),
                           ("...ij,...jk->...ik", (X, floats(3, 5, 2))), ("ijkj->ki", (floats(2, 3, 4, 3),)), ("iji,ik", (floats(3, 2, 3), floats(3, 2)))):
    case("Einsum", [12], dict(zip("xy", operands)), np.einsum(equation, *operands, optimize=False).astype("f4"), equation=equation)
UP = X.repeat(2, 2).repeat(3, 3)
case("Upsample", [1], {"x": X}, UP, height_scale=2., width_scale=3.)
case("Upsample", [7], {"x": X}, UP, scales=[1., 1., 2., 3.])
case("Upsample", [9], {"x": X, "S": np.array([1, 1, 2, 3], "f4")}, UP)
case("Resize", [10], {"x": X, "S": np.array([1, 1, 2, 3], "f4")}, UP)
case("Tile", [1], {"x": X, "T": np.array([3]), "A": np.array([2])}, np.tile(X, (1, 1, 3, 1)))
ORDER = np.argsort(-X, 3)[..., :2]
case("TopK", [1], {"x": X}, [np.take_along_axis(X, ORDER, 3), ORDER], axis=3, k=2)
case("TopK", [10], {"x": X, "K": np.array([2])}, [np.take_along_axis(X, ORDER, 3), ORDER], axis=3)
case("Split", [1, 2], {"x": X}, [X[..., :2], X[..., 2:]], axis=3, split=[2, 3])
case("Split", [18], {"x": X[:, :, :, 0]}, [X[:, :, :2, 0], X[:, :, 2:, 0]], axis=2, num_outputs=2)
case("Split", [18], {"x": X}, [X[..., :2], X[..., 2:4], X[..., 4:]], axis=3, num_outputs=3)
case("LpPool", [1], {"x": X}, (abs(X[:, :, :, :-1]) ** 3 + abs(X[:, :, :, 1:]) ** 3) ** np.float32(1 / 3), kernel_shape=[1, 2], p=3.)
case("GlobalLpPool", [1], {"x": X}, (abs(X) ** 3).sum((2, 3), keepdims=True) ** np.float32(1 / 3), p=3.)
# Windows of size 3 with stride 2; the last one extends past the input.
LONG = floats(1, 2, 8)
case("MaxPool", [10], {"x": LONG}, np.stack([LONG[:, :, i:i + 3].max(2) for i in (0, 2, 4, 6)], 2), kernel_shape=[3],
     strides=[2], ceil_mode=1)
case("AveragePool", [10], {"x": LONG}, np.stack([LONG[:, :, i:i + 3].mean(2) for i in (0, 2, 4, 6)], 2), kernel_shape=[3],
     strides=[2], ceil_mode=1)
case("AveragePool", [10], {"x": LONG[:, :, :7]}, np.stack([LONG[:, :, i:i + 3].mean(2) for i in (0, 2, 4)], 2),
     kernel_shape=[3], strides=[2], ceil_mode=1)
for axis in (1, 2):
    axes = tuple(range(axis, 4))
    case("Softmax", [1, 11], {"x": X}, softmax(X, axes), axis=axis)
    case("LogSoftmax", [1, 11], {"x": X}, np.log(softmax(X, axes)), axis=axis)
    case("Hardmax", [1, 11], {"x": X}, (X == X.max(axes, keepdims=True)).astype("f4"), axis=axis)


def attention(q, k, v, offset, left, right, causal, lengths=None, mask=0.0):
    """NumPy reference for attention with grouped queries. The position of a query is its row plus the offset of its batch entry."""
    times = q.shape[1] // k.shape[1]
    scores = q @ k.repeat(times, 1).swapaxes(2, 3) / np.sqrt(q.shape[3]) + mask
    position = np.arange(q.shape[2])[:, None] + np.reshape(offset, (-1, 1, 1, 1))
    key = np.arange(k.shape[2])
    seen = ((left < 0) | (key >= position - left)) & ((right < 0) | (key <= position + right)) & ((not causal) | (key <= position))
    if lengths is not None:
        seen = seen & (key < lengths.reshape(-1, 1, 1, 1))
    scores = np.where(seen, scores, -np.inf)
    nothing = np.isneginf(scores).all(-1, keepdims=True)
    return (np.where(nothing, 0, softmax(np.where(nothing, 0, scores), -1)) @ v.repeat(times, 1)).astype("f4")


Q, K, V = floats(2, 4, 5, 8), floats(2, 2, 7, 8), floats(2, 2, 7, 8)
PAST_K, PAST_V, LENGTHS = floats(2, 2, 3, 8), floats(2, 2, 3, 8), np.array([3, 7])
for left, right, causal in ((2, 1, 0), (2, 0, 0), (-1, 2, 0), (0, -1, 0), (2, 3, 1), (1, -1, 1)):
    window = {"left_window_size": left, "right_window_size": right, "is_causal": causal}
    case("Attention", [25], {"x": Q, "k": K, "v": V}, attention(Q, K, V, 0, left, right, causal), **window)
    case("Attention", [25], {"x": Q, "k": K, "v": V, "": None, "p": PAST_K, "q": PAST_V},
         attention(Q, np.concatenate([PAST_K, K], 2), np.concatenate([PAST_V, V], 2), 3, left, right, causal), **window)
    case("Attention", [25], {"x": Q, "k": K, "v": V, "": None, " ": None, "  ": None, "n": LENGTHS},
         attention(Q, K, V, LENGTHS - 5, left, right, causal, LENGTHS), **window)
SHORT = floats(5, 4)
ENDLESS = np.concatenate([SHORT, np.full((5, 3), -np.inf)], 1)
case("Attention", [24], {"x": Q, "k": K, "v": V, "m": SHORT}, attention(Q, K, V, 0, -1, -1, 0, mask=ENDLESS))
case("Attention", [24], {"x": Q, "k": K, "v": V, "m": SHORT > 0},
     attention(Q, K, V, 0, -1, -1, 0, mask=np.where(np.isfinite(ENDLESS) & (ENDLESS > 0), 0, -np.inf)))

CACHE, NEW = floats(2, 3, 8, 4), floats(2, 3, 2, 4)
case("TensorScatter", [24], {"x": CACHE, "u": NEW}, np.concatenate([NEW, CACHE[:, :, 2:]], 2))
WRITTEN = CACHE.copy()
WRITTEN[0, :, 3:5], WRITTEN[1, :, 6:8] = NEW
case("TensorScatter", [24], {"x": CACHE, "u": NEW, "s": np.array([3, 6])}, WRITTEN)
FACTORS = RANDOM.randint(1, 4, (2, 7, 3))
for dtype in ("i8", "f2", "f4"):
    x = FACTORS.astype(dtype)
    case("CumProd", [26], {"x": x, "A": np.array(1)}, x.cumprod(1).astype(dtype))
    backwards = np.concatenate([x[:, ::-1].cumprod(1)[:, ::-1][:, 1:], np.ones((2, 1, 3))], 1).astype(dtype)
    case("CumProd", [26], {"x": x, "A": np.array(-2)}, backwards, reverse=1, exclusive=1)


def linear_attention(q, k, v, state, decay, beta):
    """NumPy reference for linear attention with two heads of keys [4] and values [3], and two queries per key head."""
    outputs = []
    for t in range(q.shape[1]):
        keys = k[:, t].reshape(2, 2, 4, 1)
        state = state * np.exp(decay[:, t].reshape(2, 2, 4, 1))
        known = keys.swapaxes(2, 3) @ state
        state = state + keys @ (beta[:, t].reshape(2, 1, 1, 1) * (v[:, t].reshape(2, 2, 1, 3) - known))
        outputs.append((q[:, t].reshape(2, 2, 2, 4) @ state).reshape(2, 12) / 2)
    return [np.stack(outputs, 1).astype("f4"), state.astype("f4")]


for length in (5, 70):  # unrolled, and lowered to a while_loop
    TOKENS = [floats(2, length, width) * np.float32(.25) for width in (16, 8, 6)]
    STATE, DECAY, BETA = floats(2, 2, 4, 3), -abs(floats(2, length, 8)), abs(floats(2, length, 1))
    case("LinearAttention", [27], dict(zip("xkvsdb", (*TOKENS, STATE, DECAY, BETA))),
         linear_attention(*TOKENS, STATE, DECAY, BETA), q_num_heads=4, kv_num_heads=2)


def run_case(entry):
    (name, op, opset, inputs, expected, attributes), symbolic = entry
    names = [f"y{i}" for i in range(len(expected))]
    given = {k: v for k, v in inputs.items() if k.islower() and v is not None}
    sizes = {k: [f"{k}{i}" if symbolic and v.dtype.kind == "f" and k == "x" else n for i, n in enumerate(v.shape)]
             for k, v in given.items()}
    model = wire.model(wire.graph(
        [wire.node(op, [k.strip() for k in inputs], names, **attributes)],
        [wire.value_info(k, TYPES[v.dtype], sizes[k]) for k, v in given.items()],
        [wire.value_info(k, TYPES[v.dtype], None) for k, v in zip(names, expected)],
        [wire.tensor(k, TYPES[v.dtype], v.shape, v.tobytes()) for k, v in inputs.items() if k.isupper()]), opset=opset)
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model)
        for key, value in given.items():
            np.save(folder / f"{key}.npy", value)
        result = driver.run("compile", folder / "model.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32", "--no-manifest",
                            "--json")
        if result.code == 0:
            result = driver.run("run", folder / "m.mlpackage", *[f"--input={k}={folder / k}.npy" for k in given], "--output-dir",
                                folder, "--json")
        if symbolic and any(e["id"] == "dynamic-shape" for e in result.errors):
            return []
        if result.code != 0:
            return [f"{name}: {driver.ending(result)}"]
        written = [np.load(o["file"]) for o in result.answer["outputs"]]
    return [f"{name}{' with symbols' if symbolic else ''}: y{i} is {g.dtype}{g.shape}, expected {w.dtype}{w.shape}, or differs"
            for i, (g, w) in enumerate(zip(written, expected))
            if g.dtype != w.dtype or g.shape != w.shape or not np.allclose(g, w, RTOL, ATOL)]


wanted = [(c, symbolic) for c in CASES for symbolic in (False, True) if len(sys.argv) < 2 or sys.argv[1] in c[0]]
wrong = [line for lines in driver.parallel(run_case, wanted) for line in lines]
for line in wrong:
    print(line)
print(f"# nodes against NumPy: {len(wanted)} runs, {len(wrong)} wrong")
sys.exit(1 if wrong else 0)
