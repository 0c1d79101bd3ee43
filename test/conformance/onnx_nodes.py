"""How the nodes of onnxruntime_cases_test.py are written down: case() for one that computes, refused() for one that mlc refuses."""
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
    operator: str  # of ai.onnx, or with its domain: "com.microsoft.BiasAdd"
    model: bytes
    inputs: dict   # {name: array} of those at run time
    outputs: list  # names
    refused: str   # what the error names; empty: computes
    steps: int     # by so many units integers may differ; see case()
    expected: list  # arrays, where onnxruntime does not compute the node


def values(*dims, seed=0, step=0.25, dtype="f4"):
    """Multiples of `step` between -5 and 5 of them, all of which floats hold exactly."""
    n = int(np.prod(dims))
    return (((np.arange(n) * 7 + seed * 3 + np.arange(n) // 11) % 11 - 5) * step).reshape(dims).astype(dtype)


def integers(*dims, seed=0, dtype="u1"):
    """Of all the range of an integer type."""
    info, n = np.iinfo(dtype), int(np.prod(dims))
    span = int(info.max) - int(info.min)
    return ((np.arange(n, dtype="i8") * 7919 + seed * 104729) * 31 % (span + 1) + info.min).reshape(dims).astype(dtype)


def constant(name, value):
    if isinstance(value, Packed):
        return wire.tensor(name, value.type, value.dims, value.data)
    return wire.tensor(name, TYPES[value.dtype], value.shape, value.tobytes())


def case(name, op, inputs, outputs, opset=17, domain="", refused="", steps=0, others=None, expected=(), **attributes):
    """`inputs`: {name: array}; a name that begins with a capital letter is a constant, None is left out. `outputs`: names, of which
    empty ones are left out; "y:u1" has elements of that type, others are floats. `others`: attributes with names of parameters. `steps` above 0 stands where two orders of
    rounding are both right, and says by how many units the results may differ."""
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
    """mlc's error must contain `says`."""
    case(f"refused: {name}", op, inputs, outputs, refused=says, **rest)


@functools.cache
def expectations():
    """{name: what onnxruntime computes}, as onnxruntime_cases_test.py --update wrote it."""
    return json.loads(EXPECTED.read_text())


def references(name):
    """The arrays that a case computes: NumPy's, or onnxruntime's."""
    return CASES[name].expected or [np.array(e["values"], e.get("dtype", "f4")).reshape(e["shape"]) for e in expectations()[name]]
