"""A random ONNX graph while it is made: values with type, shape and range, and nodes.

Ranges keep operators inside their domains. A value is `exact` when every engine computes the same bits for it (inputs are
multiples of 1/8, and moves, comparisons and small sums keep that): only such values go where a rounding would be seen,
into comparisons, roundings and choices.
"""
import dataclasses
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import onnx_wire as wire  # noqa: E402

TYPES = {"f": (wire.FLOAT, "<f4"), "l": (wire.INT64, "<i8"), "i": (wire.INT32, "<i4"), "b": (wire.BOOL, "?"), "B": (2, "u1"),
         "c": (3, "i1")}
MOST_ELEMENTS = 4000


class Unfit(Exception):
    """The operator does not fit the graph so far; another is tried."""


@dataclasses.dataclass
class Value:
    name: str
    kind: str            # a key of TYPES
    shape: tuple
    low: float
    high: float
    exact: bool = False
    used: bool = False
    constant: object = None  # NumPy array of an initialiser

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
    def __init__(self, seed, opset):
        self.rng = np.random.RandomState(seed)
        self.opset = opset
        self.values, self.inputs, self.initializers, self.nodes = [], [], [], []
        self.operators, self.domains = [], set()
        self.known = set()  # operators under a condition of known_differences.txt
        self.count = 0

    # ---- chance

    def chance(self, probability):
        return self.rng.rand() < probability

    def integer(self, low, high):
        """Both ends included."""
        return int(self.rng.randint(low, high + 1))

    def one_of(self, *choices):
        return choices[self.rng.randint(len(choices))]

    def dims(self, rank, low=1, high=5):
        return tuple(self.integer(low, high) for _ in range(rank))

    # ---- values

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def array(self, kind, shape, low=-2, high=2):
        if kind == "f":
            return (self.rng.randint(round(low * 8), round(high * 8) + 1, shape) / 8).astype("<f4")
        if kind == "b":
            return self.rng.rand(*shape) < 0.5
        return self.rng.randint(int(low), int(high) + 1, shape).astype(TYPES[kind][1])

    def input(self, kind="f", shape=None, low=-2, high=2):
        """A run-time input."""
        shape = self.dims(self.integer(1, 4)) if shape is None else tuple(shape)
        value = Value(self.name("x"), kind, shape, float(low), float(high), True)
        self.inputs.append((value, self.array(kind, shape, low, high)))
        self.values.append(value)
        return value

    def constant(self, array, exact=True):
        array = np.asarray(array)
        kind = next(k for k, (_, name) in TYPES.items() if np.dtype(name) == array.dtype)
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
        value = Value(self.name("c"), kind, array.shape, low, high, exact, constant=array)
        self.initializers.append(value)
        return value

    def weights(self, *shape, low=-1, high=1):
        return self.constant(self.array("f", shape, low, high))

    def ints(self, values):
        return self.constant(np.array(values, "<i8"))

    def pick(self, kind="f", rank=None, low=-50, high=50, exact=False, where=lambda v: True, shape=None, fresh=0.15):
        """A value that fits, now and then a new input. `rank`: a number or (least, most)."""
        least, most = (rank, rank) if isinstance(rank, int) else rank or (1, 4)
        fits = [v for v in self.values if v.kind == kind and least <= v.rank <= most and v.low >= low and v.high <= high
                and (v.exact or not exact) and (shape is None or v.shape == tuple(shape)) and where(v)]
        if fits and not self.chance(fresh):
            unused = [v for v in fits if not v.used]
            return self.one_of(*(unused if unused and self.chance(0.7) else fits))
        for _ in range(20):
            dims = self.dims(self.integer(least, most)) if shape is None else shape
            ends = {"f": (max(low, -2), min(high, 2)), "b": (0, 1)}.get(kind, (max(low, -4), min(high, 4)))
            if kind in "B":
                ends = (max(low, 0), min(high, 4))
            if ends[0] > ends[1]:
                ends = (low, high)
            probe = Value("", kind, tuple(dims), *ends, True)
            if where(probe):
                return self.input(kind, dims, *ends)
        raise Unfit

    # ---- nodes

    def node(self, op, inputs, *outputs, domain="", **attributes):
        """`outputs`: (kind, shape, low, high, exact) each; None is left out. Returns their Values."""
        made = []
        for output in outputs:
            if output is None:
                made.append(None)
                continue
            kind, shape, low, high, exact = output
            shape = tuple(int(d) for d in shape)
            if np.prod(shape) > MOST_ELEMENTS or np.prod(shape) == 0 or len(shape) > 5:
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
        self.values += kept
        return kept[0] if len(kept) == 1 else kept

    def same(self, op, x, low, high, exact=False, extra=(), **attributes):
        """A node whose result has the type and shape of its first input."""
        return self.node(op, [x, *extra], (x.kind, x.shape, low, high, exact), **attributes)

    def tensor(self, value):
        return wire.tensor(value.name, TYPES[value.kind][0], value.shape,
                           np.ascontiguousarray(value.constant.astype(TYPES[value.kind][1])).tobytes())

    def outputs(self):
        produced = [v for v in self.values if not any(v is i for i, _ in self.inputs)]
        ends = [v for v in produced if not v.used]
        return ends or produced[-1:]

    def model(self):
        inputs = [wire.value_info(v.name, TYPES[v.kind][0], v.shape) for v, _ in self.inputs]
        outputs = [wire.value_info(v.name, TYPES[v.kind][0], v.shape) for v in self.outputs()]
        graph = wire.graph(self.nodes, inputs, outputs, [self.tensor(v) for v in self.initializers])
        extra = b"".join(wire.field(8, wire.field(1, d) + wire.field(2, 1)) for d in sorted(self.domains))
        return wire.model(graph, opset=self.opset, ir_version=9) + extra
