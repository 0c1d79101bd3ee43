"""Builds a random ONNX graph: values with type, shape and range, and nodes.

Ranges keep values inside the domain of operators. A value is `exact` if every implementation computes the same bits for it:
inputs are multiples of 1/8, and data movement, comparisons and small sums are exact. Only exact values are used where a
rounding error would change the result, as in comparisons, roundings and selections.
"""
import dataclasses
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import onnx_wire as wire  # noqa: E402

# Kind of a value: its ONNX type and its NumPy type.
TYPES = {"f": (wire.FLOAT, "<f4"), "d": (11, "<f8"), "l": (wire.INT64, "<i8"), "i": (wire.INT32, "<i4"), "b": (wire.BOOL, "?"),
         "B": (wire.UINT8, "u1"), "c": (3, "i1"), "H": (4, "<u2"), "h": (5, "<i2"), "I": (12, "<u4"),
         "4": (22, "i1"), "u": (21, "u1")}  # int4 and uint4: constants only, two elements per byte in the file
UNSIGNED = "BHI"
MOST_ELEMENTS = 4000
# Tensors of large graphs have more elements than the limit for operations at the end of an fp16 package that stay in fp32.
LARGE, MOST_OF_LARGE = 16384, 150000
# Opset versions after 7 in which operators were added, according to ONNX's Operators.md.
APPEARED = {
    8: "Expand", 9: "Scan Acosh Asinh Atanh BatchNormalization Compress ConstantOfShape Cosh Erf EyeLike IsNaN "
    "MeanVarianceNormalization NonZero OneHot Scatter Shrink Sign Sinh TfIdfVectorizer Where MaxUnpool",
    10: "ConvInteger DequantizeLinear IsInf MatMulInteger Mod NonMaxSuppression QLinearConv QLinearMatMul QuantizeLinear Resize "
    "ReverseSequence RoiAlign ThresholdedRelu",
    11: "BitShift ConcatFromSequence CumSum Det DynamicQuantizeLinear GatherElements GatherND If Loop Range Round ScatterElements "
    "ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence Unique",
    12: "Celu Einsum GreaterOrEqual LessOrEqual NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", 14: "HardSwish Trilu",
    15: "CastLike Bernoulli Optional OptionalGetElement OptionalHasElement", 16: "GridSample",
    17: "BlackmanWindow DFT HammingWindow HannWindow LayerNormalization MelWeightMatrix STFT SequenceMap",
    18: "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im Mish GroupNormalization",
    19: "DeformConv", 20: "AffineGrid Gelu", 23: "Attention RMSNormalization RotaryEmbedding",
    24: "Swish TensorScatter", 26: "BitCast CumProd", 27: "CausalConvWithState", 28: "SwiGLU"}
FIRST = {op: version for version, ops in APPEARED.items() for op in ops.split()}


class Unfit(Exception):
    """Raised by a generator whose operator does not fit the graph; another operator is tried."""


@dataclasses.dataclass(eq=False)
class Value:
    name: str
    kind: str  # key of TYPES
    shape: tuple
    low: float
    high: float
    exact: bool = False
    used: bool = False
    constant: object = None  # NumPy array of an initializer
    slack: float = 0.0  # allowed error of an element; known_differences.txt gives the reason

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape))

    @property
    def bound(self):
        return max(abs(self.low), abs(self.high))


class Graph:
    def __init__(self, seed, opset, large=False):
        self.rng = np.random.RandomState(seed)
        self.opset, self.large = opset, large
        self.values, self.inputs, self.initializers, self.nodes = [], [], [], []
        self.operators, self.domains = [], set()
        self.symbols = {}  # {size: name of a symbolic dimension that inputs declare instead}
        self.known = set()  # operators used under a condition listed in known_differences.txt
        self.count = 0

    # ---- randomness

    def chance(self, probability):
        return self.rng.rand() < probability

    def integer(self, low, high):
        """A random integer; both bounds are inclusive."""
        return int(self.rng.randint(low, high + 1))

    def one_of(self, *choices):
        return choices[self.rng.randint(len(choices))]

    def dims(self, rank, low=1, high=5):
        return tuple(self.integer(low, high) for _ in range(rank))

    def sizes(self, rank, low=1, high=5):
        """Dimensions of a new tensor; in a large graph, usually one dimension is large enough to make it LARGE."""
        sizes = list(self.dims(rank, low, high))
        if self.large and rank and self.chance(0.85):
            i = self.integer(0, rank - 1)
            sizes[i] = max(sizes[i], LARGE // (int(np.prod(sizes)) // sizes[i]) + 1)
        return tuple(sizes)

    def axis(self, rank, beyond=0):
        """A random axis of `rank` axes, or `beyond` more; sometimes negative, which all operators support since opset 11."""
        axis = self.integer(0, rank - 1 + beyond)
        return axis - rank if axis < rank and self.opset >= 11 and self.chance(0.4) else axis

    def some(self, probability=0.5, **attributes):
        """A random subset of the attributes, whose values are the defaults, so that the others have the same values."""
        return {k: v for k, v in attributes.items() if self.chance(probability)}

    # ---- values

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def array(self, kind, shape, low=-2, high=2):
        if kind in "fd":
            return np.asarray(self.rng.randint(round(low * 8), round(high * 8) + 1, shape) / 8, TYPES[kind][1])
        if kind == "b":
            return np.asarray(self.rng.rand(*shape) < 0.5)
        return np.asarray(self.rng.randint(int(low), int(high) + 1, shape), TYPES[kind][1])

    def input(self, kind="f", shape=None, low=-2, high=2):
        """Adds a run-time input."""
        shape = self.sizes(self.integer(1, 4)) if shape is None else tuple(shape)
        value = Value(self.name("x"), kind, shape, float(low), float(high), True)
        self.inputs.append((value, self.array(kind, shape, low, high)))
        self.values.append(value)
        return value

    def given(self, kind, array):
        """Adds a run-time input with these elements."""
        array = np.asarray(array, TYPES[kind][1])
        value = Value(self.name("x"), kind, array.shape, float(array.min()), float(array.max()), True)
        self.inputs.append((value, array))
        self.values.append(value)
        return value

    def unknown(self, values):
        """Excludes values from other nodes, because their range is unknown at generation time."""
        for value in values if isinstance(values, list) else [values]:
            value.low, value.high = -np.inf, np.inf

    def freeze(self, value):
        """Turns an input into a constant, so that everything that depends only on it is folded."""
        value.constant = next(a for v, a in self.inputs if v is value)
        self.inputs = [(v, a) for v, a in self.inputs if v is not value]
        self.initializers.append(value)

    def thaw(self, value):
        """Turns a constant into a run-time input."""
        self.initializers = [v for v in self.initializers if v is not value]
        self.inputs.append((value, value.constant))
        if not any(v is value for v in self.values):
            self.values.append(value)
        value.constant = None

    def constant(self, array, exact=True, kind=None):
        array = np.asarray(array)
        kind = kind or next(k for k, (_, name) in TYPES.items() if np.dtype(name) == array.dtype)
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
        value = Value(self.name("c"), kind, array.shape, low, high, exact, constant=array)
        self.initializers.append(value)
        return value

    def weights(self, *shape, low=-1, high=1):
        return self.constant(self.array("f", shape, low, high))

    def ints(self, values):
        return self.constant(np.array(values, "<i8"))

    def scalar(self, kind, value):
        return self.constant(np.array(value, TYPES[kind][1]))

    def either(self, kind, shape, low=-1, high=1, constant=0.6):
        """Adds either a constant or a run-time input."""
        return self.constant(self.array(kind, shape, low, high)) if self.chance(constant) else self.input(kind, shape, low, high)

    def ends(self, kind, low, high):
        """The usual range of new values of a kind, within the requested range."""
        least, most = {"f": (-2, 2), "d": (-2, 2), "b": (0, 1)}.get(kind, (0 if kind in UNSIGNED else -4, 4))
        least, most = max(low, least), min(high, most)
        return (least, most) if least <= most else (low, high)

    def pick(self, kind="f", rank=None, low=-50, high=50, exact=False, where=lambda v: True, shape=None, fresh=0.15):
        """Picks an existing value that fits, or sometimes adds an input. `rank`: a number or (min, max)."""
        least, most = (rank, rank) if isinstance(rank, int) else rank or (1, 5)
        fits = [v for v in self.values if v.kind == kind and least <= v.rank <= most and v.low >= low and v.high <= high
                and (v.exact or not exact) and (shape is None or v.shape == tuple(shape)) and where(v)]
        if fits and not self.chance(fresh):
            unused = [v for v in fits if not v.used]
            return self.one_of(*(unused if unused and self.chance(0.7) else fits))
        for _ in range(20):
            dims = self.sizes(self.integer(least, most), 1, 3 if most > 4 else 5) if shape is None else shape
            ends = self.ends(kind, low, high)
            probe = Value("", kind, tuple(dims), *ends, True)
            if where(probe):
                return self.input(kind, dims, *ends)
        raise Unfit

    # ---- nodes

    def node(self, op, inputs, *outputs, domain="", **attributes):
        """Adds a node. `outputs`: one (kind, shape, low, high, exact) per output; None omits an output; an empty list means a
        sequence. Returns the output Values."""
        made = []
        if not outputs:  # a sequence, which only sequence operators may use
            made.append(Value(self.name("s"), "", (), 0.0, 0.0))
        for output in outputs:
            if output is None:
                made.append(None)
                continue
            kind, shape, low, high, exact = output
            shape = tuple(int(d) for d in shape)
            if np.prod(shape) > (MOST_OF_LARGE if self.large else MOST_ELEMENTS) or np.prod(shape) == 0 or len(shape) > 5 or not low <= high:
                raise Unfit
            made.append(Value(self.name("v"), kind, shape, float(low), float(high), exact))
        for value in inputs:
            if value is not None:
                value.used = True
        self.nodes.append(wire.node(op, ["" if v is None else v.name for v in inputs],
                                    ["" if v is None else v.name for v in made], domain=domain, **attributes))
        self.operators.append(f"{domain}.{op}" if domain else op)
        if domain:
            self.domains.add(domain)
        kept = [v for v in made if v is not None]
        self.values += kept if outputs else []
        return kept[0] if len(kept) == 1 else kept

    def same(self, op, x, low, high, exact=False, extra=(), **attributes):
        """Adds a node whose result has the type and shape of its first input."""
        return self.node(op, [x, *extra], (x.kind, x.shape, low, high, exact), **attributes)

    def outputs(self):
        produced = [v for v in self.values if v.constant is None and not any(v is i for i, _ in self.inputs)]
        ends = [v for v in produced if not v.used]
        return ends or produced[-1:]

    def model(self, outputs=None, fed=()):
        """Returns the model that computes `outputs`, by default all values without users. `fed`: values that become inputs."""
        outputs = outputs or self.outputs()
        fed = {v.name for v in fed}
        nodes, needed = self.part({v.name for v in outputs}, fed)
        inputs = [wire.value_info(v.name, TYPES[v.kind][0], self.declared(v)) for v in self.values
                  if v.name in needed and (v.name in fed or any(v is i for i, _ in self.inputs))]
        outputs = [wire.value_info(v.name, TYPES[v.kind][0], None if self.symbols else v.shape) for v in outputs]
        constants = [wire.tensor(v.name, TYPES[v.kind][0], v.shape, content(v))
                     for v in self.initializers if v.name in needed]
        extra = b"".join(wire.field(8, wire.field(1, d) + wire.field(2, 1)) for d in sorted(self.domains))
        return wire.model(wire.graph(nodes, inputs, outputs, constants), opset=self.opset, ir_version=8) + extra

    def part(self, ends, fed=()):
        """Returns (nodes, all their value names) that some values depend on, up to the values in `fed`."""
        nodes, needed = [], set(ends)
        for node in reversed(self.nodes):
            _, inputs, produced = names(node)
            if needed & (produced - set(fed)):
                needed |= inputs
                nodes.insert(0, node)
        return nodes, needed

    def feeds(self, outputs=None, fed=None):
        """Returns (value, elements) for the inputs of the model with the same arguments; `fed`: {value: elements}."""
        fed = fed or {}
        _, needed = self.part({v.name for v in outputs or self.outputs()}, {v.name for v in fed})
        return [(v, a) for v, a in [*self.inputs, *fed.items()] if v.name in needed]

    def declared(self, value):
        return [self.symbols.get(d, d) for d in value.shape] if value.rank else []


def content(value):
    array = np.ascontiguousarray(value.constant)
    if value.kind not in "4u":
        return array.tobytes()
    flat = np.append(array.reshape(-1), np.zeros(array.size % 2, array.dtype)).astype("u1") & 15
    return (flat[::2] | flat[1::2] << 4).tobytes()


def names(node):
    """Parses a node: (operator, names that it reads, including in its subgraphs, names that it produces)."""
    op, domain, inputs, outputs = "", "", set(), set()
    for number, part in wire.fields(node):
        if number == 1:
            inputs.add(bytes(part).decode())
        elif number == 2:
            outputs.add(bytes(part).decode())
        elif number == 4:
            op = bytes(part).decode()
        elif number == 5:
            for body in (v for n, v in wire.fields(part) if n == 6):
                for inner in (v for n, v in wire.fields(body) if n == 1):
                    inputs |= names(inner)[1]
        elif number == 7:
            domain = bytes(part).decode() + "."
    return domain + op, inputs - {""}, outputs - {""}
