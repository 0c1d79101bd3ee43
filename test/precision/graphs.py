"""ONNX graphs that are evaluated during construction, in three ways, with NumPy alone.

    g = Graph()
    x = g.input("x", array)
    y = g.op("Mul", x, g.constant(3.0))
    g.write(path, y)

Each value has `exact`, its result in float64; `floor`, the same with weights rounded to fp16; and `half`, the result of a plain
cast: every operation computes exactly and rounds its result to fp16.
"""
import dataclasses
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import onnx_wire as wire  # noqa: E402


def half(array):
    """Rounds floats to fp16; other types stay."""
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float64) if array.dtype.kind == "f" else array


def rounded(constant):
    """Rounds weights to fp16; scalars, such as an epsilon, stay."""
    weights = constant.dtype.kind == "f" and constant.size > 1
    return np.where(np.isinf(constant), constant, half(np.clip(constant, -65504, 65504))) if weights else constant


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def rms_norm(x, scale, epsilon=1e-5, axis=-1):
    return x / np.sqrt((x * x).mean(axis, keepdims=True) + epsilon) * scale


def skip_rms_norm(x, skip, scale, epsilon=1e-12):
    return rms_norm(x + skip, scale, epsilon)


def log_softmax(x, axis=-1):
    z = x - x.max(axis, keepdims=True)
    return z - np.log(np.exp(z).sum(axis, keepdims=True))


def log_sum_exp(x, axes, keepdims=1):
    m = x.max(tuple(axes), keepdims=True)
    y = np.log(np.exp(x - m).sum(tuple(axes), keepdims=True)) + m
    return y if keepdims else y.squeeze(tuple(axes))


def reduction(function):
    def reduced(x, axes, keepdims=1):
        return function(x, tuple(axes), bool(keepdims))
    return reduced


def mean_variance(x, axes):
    d = x - x.mean(tuple(axes), keepdims=True)
    return d / (np.sqrt((d * d).mean(tuple(axes), keepdims=True)) + 1e-9)


def lp_norm(x, axis=-1, p=2):
    norm = (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)
    return x / np.where(norm == 0, 1, norm)


def convolution(x, w, b):
    """Kernels of 1x1: [N, C, H, W] with [K, C, 1, 1]."""
    return np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0]) + b[:, None, None]


def clip(x, low, high=np.inf):
    return np.clip(x, low, high)


def layer_norm(x, scale, bias, epsilon=1e-5, axis=-1):
    d = x - x.mean(axis, keepdims=True)
    return d / np.sqrt((d * d).mean(axis, keepdims=True) + epsilon) * scale + bias


def batch_norm(x, scale, bias, mean, variance, epsilon=1e-5):
    """Inputs of shape [N, C, L]."""
    scale, bias, mean, variance = (v[:, None] for v in (scale, bias, mean, variance))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + bias


def plain_rms_norm(x, scale, epsilon=1e-5, axis=-1):
    mean = half(half(x * x).mean(axis, keepdims=True))
    return half(x / half(np.sqrt(half(mean + half(np.asarray(epsilon)))))) * scale


# The naive decomposition of these operators, following the formula in the documentation: each part
# is rounded.
SPELLED = {
    "RMSNormalization": plain_rms_norm,
    "SimplifiedLayerNormalization": plain_rms_norm,
    "SkipSimplifiedLayerNormalization": lambda x, skip, scale, epsilon=1e-12: plain_rms_norm(half(x + skip), scale, epsilon),
    "LogSoftmax": lambda x, axis=-1: half(np.log(half(softmax(x, axis)))),
    "ReduceLogSumExp": lambda x, axes, keepdims=1: half(np.log(half(half(np.exp(x)).sum(tuple(axes), keepdims=bool(keepdims))))),
    "LayerNormalization": lambda x, scale, bias, epsilon=1e-5, axis=-1: layer_norm(x, scale, bias, half(np.asarray(epsilon))),
    "Softplus": lambda x: half(np.log(half(1 + half(np.exp(x))))),
    "LpNormalization": lambda x, axis=-1, p=2: half(x / half(half(half(np.abs(x) ** p).sum(axis, keepdims=True)) ** (1 / p))),
    "ReduceL2": lambda x, axes, keepdims=1: half(np.sqrt(half(half(x * x).sum(tuple(axes), keepdims=bool(keepdims))))),
    "MeanVarianceNormalization": lambda x, axes: (lambda d: half(d / half(np.sqrt(half(half(d * d).mean(
        tuple(axes), keepdims=True))))))(half(x - half(x.mean(tuple(axes), keepdims=True)))),
}

OPERATORS = {
    "Abs": np.abs,
    "Add": np.add,
    "BatchNormalization": batch_norm,
    "Cast": lambda x, to: x.astype(np.float64) if to == wire.FLOAT else np.trunc(x).astype(np.int64),
    "Ceil": np.ceil,
    "Clip": clip,
    "Conv": convolution,
    "Div": np.divide,
    "Exp": np.exp,
    "Floor": np.floor,
    "Gather": lambda x, indices, axis=0: x.take(indices, axis, mode="clip"),
    "Identity": lambda x: x,
    "LayerNormalization": layer_norm,
    "Log": np.log,
    "LogSoftmax": log_softmax,
    "LpNormalization": lp_norm,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "MeanVarianceNormalization": mean_variance,
    "Mod": lambda x, y, fmod: np.fmod(x, y),
    "Mul": np.multiply,
    "Neg": np.negative,
    "Pow": np.power,
    "RMSNormalization": rms_norm,
    "Reciprocal": lambda x: 1 / x,
    "ReduceL2": reduction(lambda x, axes, keep: np.sqrt((x * x).sum(axes, keepdims=keep))),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": reduction(lambda x, axes, keep: x.max(axes, keepdims=keep)),
    "ReduceMean": reduction(lambda x, axes, keep: x.mean(axes, keepdims=keep)),
    "ReduceSum": reduction(lambda x, axes, keep: x.sum(axes, keepdims=keep)),
    "ReduceSumSquare": reduction(lambda x, axes, keep: (x * x).sum(axes, keepdims=keep)),
    "Relu": lambda x: np.maximum(x, 0),
    "Round": np.round,
    "SimplifiedLayerNormalization": rms_norm,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "SkipSimplifiedLayerNormalization": skip_rms_norm,
    "Softmax": softmax,
    "Softplus": softplus,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Transpose": lambda x, perm: x.transpose(perm),
    "Unsqueeze": np.expand_dims,
    "Where": np.where,
}


@dataclasses.dataclass
class Value:
    name: str
    exact: np.ndarray
    floor: np.ndarray
    half: np.ndarray


class Graph:
    """Opset 17, or 23 if the graph holds an RMSNormalization. Axes of reductions are attributes here in any opset."""

    def __init__(self):
        self.nodes, self.inputs, self.initializers, self.feeds = [], [], [], {}
        self.opset, self.domains = 17, set()  # opset 17 of ONNX, and other domains

    def fresh(self, hint):
        return f"{hint.lower()}_{len(self.nodes) + len(self.initializers)}"

    def input(self, name, array):
        array = np.asarray(array)
        kinds = {"bool": wire.BOOL, "uint8": wire.UINT8}
        kind = kinds.get(array.dtype.name, wire.FLOAT)
        dtype = array.dtype if kind != wire.FLOAT else np.float32
        self.feeds[name] = array.astype(dtype)
        self.inputs.append(wire.value_info(name, kind, array.shape))
        given = self.feeds[name].astype(np.float64) if kind == wire.FLOAT else array
        return Value(name, given, given, half(given))

    def constant(self, array, dtype=np.float32):
        array = np.asarray(array).astype(dtype)
        name = self.fresh("c")
        kind = wire.FLOAT if array.dtype.kind == "f" else wire.INT64
        self.initializers.append(wire.tensor(name, kind, array.shape, array.tobytes()))
        wide = array.astype(np.float64) if kind == wire.FLOAT else array
        return Value(name, wide, rounded(wide), half(wide))

    def op(self, kind, *operands, domain="", **attributes):
        values = [v if isinstance(v, Value) else self.constant(v) for v in operands]
        name = self.fresh(kind)
        function = OPERATORS[kind]
        with np.errstate(all="ignore"):
            exact = function(*(v.exact for v in values), **attributes)
            floor = function(*(v.floor for v in values), **attributes)
            plain = half(SPELLED.get(kind, function)(*(v.half for v in values), **attributes))
        if kind == "RMSNormalization":
            self.opset = 23
        if domain:
            self.domains.add(domain)
        inputs, given = [v.name for v in values], dict(attributes)
        # Since opset 13 (ReduceSum) or 18, these axes are an input.
        if kind in ("ReduceSum", "Unsqueeze"):
            inputs.append(self.constant(np.atleast_1d(given.pop("axes" if kind == "ReduceSum" else "axis")), np.int64).name)
        self.nodes.append(wire.node(kind, inputs, [name], domain=domain, **given))
        return Value(name, exact, floor, plain)

    def write(self, path, *outputs):
        listed = [wire.value_info(v.name, wire.FLOAT, v.exact.shape) for v in outputs]
        model = wire.model(wire.graph(self.nodes, self.inputs, listed, self.initializers), opset=self.opset)
        path.write_bytes(model + b"".join(wire.field(8, wire.field(1, d) + wire.field(2, 1)) for d in sorted(self.domains)))
