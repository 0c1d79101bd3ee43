"""Defines the cases of onnxruntime_cases_test.py: case() for a node that must compute, refused() for one that mlc must refuse."""
import dataclasses
import functools
import json
import pathlib

import numpy as np

import onnx_wire as wire

TYPES = {np.dtype(name): number for number, (name, _) in wire.DTYPES.items() if "c" not in name}
TYPES[np.dtype("?")] = 9
CASES = {}
EXPECTED = pathlib.Path(__file__).with_name("onnxruntime_cases.json")


@dataclasses.dataclass
class Packed:
    """A constant of a type that NumPy lacks."""
    type: int    # TensorProto.DataType
    dims: tuple
    data: bytes


@dataclasses.dataclass
class Case:
    operator: str  # "Relu", or with its domain: "com.microsoft.BiasAdd"
    model: bytes
    inputs: dict  # {name: array} of the run-time inputs
    outputs: list  # names
    refused: str  # required text of the error; "" if the node must compute
    steps: int  # tolerance for integers, in units; see case()
    expected: list  # expected arrays if onnxruntime cannot compute the node


def values(*dims, seed=0, step=0.25, dtype="f4"):
    """Returns multiples of `step` between -5 and 5 steps, which are exact in floating point."""
    n = int(np.prod(dims))
    return (((np.arange(n) * 7 + seed * 3 + np.arange(n) // 11) % 11 - 5) * step).reshape(dims).astype(dtype)


def integers(*dims, seed=0, dtype="u1"):
    """Returns integers from the full range of the type."""
    info, n = np.iinfo(dtype), int(np.prod(dims))
    span = int(info.max) - int(info.min)
    return ((np.arange(n, dtype="i8") * 7919 + seed * 104729) * 31 % (span + 1) + info.min).reshape(dims).astype(dtype)


def constant(name, value):
    if isinstance(value, Packed):
        return wire.tensor(name, value.type, value.dims, value.data)
    return wire.tensor(name, TYPES[value.dtype], value.shape, value.tobytes())


def case(name, op, inputs, outputs, opset=17, domain="", refused="", steps=0, others=None, expected=(), **attributes):
    """Adds a case. `inputs`: {name: array}; a name that begins with a capital letter is a constant, and None omits an optional
    input. `outputs`: names; an empty name omits an output, and "y:u1" gives its element type (float by default). `others`:
    attributes whose names are parameters of this function. `steps` is the allowed difference, in units, where two orders of
    rounding are both valid.
    """
    assert name not in CASES, name
    names = [o.partition(":")[0] for o in outputs]
    types = [TYPES[np.dtype(o.partition(":")[2] or "f4")] for o in outputs]
    node = wire.node(op, [k if v is not None else "" for k, v in inputs.items()], names, domain, **attributes, **(others or {}))
    given = {k: v for k, v in inputs.items() if v is not None and not k[0].isupper()}
    constants = [constant(k, v) for k, v in inputs.items() if v is not None and k[0].isupper()]
    graph = wire.graph([node], [wire.value_info(k, TYPES[v.dtype], v.shape) for k, v in given.items()],
                       [wire.value_info(o, t, None) for o, t in zip(names, types) if o], constants)
    extra = wire.field(8, wire.field(1, domain) + wire.field(2, 1)) if domain else b""
    CASES[name] = Case(f"{domain}.{op}" if domain else op, wire.model(graph, opset=opset, ir_version=8 if opset < 21 else 10) + extra,
                       given, [o for o in names if o], refused, steps, list(expected))


def refused(name, says, op, inputs, outputs, **rest):
    """Adds a case that mlc must refuse with an error containing `says`."""
    case(f"refused: {name}", op, inputs, outputs, refused=says, **rest)


@functools.cache
def expectations():
    """Returns {name: outputs of onnxruntime}, as written by onnxruntime_cases_test.py --update."""
    return json.loads(EXPECTED.read_text())


def references(name):
    """Returns the expected arrays of a case, from NumPy or onnxruntime."""
    return CASES[name].expected or [np.array(e["values"], e.get("dtype", "f4")).reshape(e["shape"]) for e in expectations()[name]]
