"""Cases of run_time_sizes_test.py: single nodes with dimensions or values that are known only at run time.

    case(name, op, {input: "f n 3" or an array}, good=[{input: (1, 3) or an array}], bad=[...], ...)

"f n 3" is a float input (i: int64, j: int32, b: bool, u: uint8, s: int8) with the symbolic dimension n; an array is a constant,
and None an omitted optional input. `good` lists inputs that onnxruntime accepts, `bad` inputs that it rejects; a tuple is a
shape that is filled with small numbers. `options` are passed to mlc, and `says` lists texts that its compilation must print. A
case without inputs has no valid size, and mlc must refuse to compile it.
"""
import dataclasses

import numpy as np

import onnx_wire as wire

CASES = {}
KINDS = {"f": "f4", "i": "i8", "j": "i4", "b": "?", "u": "u1", "s": "i1"}
TYPES = {np.dtype(name): number for number, (name, _) in wire.DTYPES.items() if "c" not in name}


@dataclasses.dataclass
class Case:
    model: bytes
    good: list
    bad: list
    options: list
    says: list


def floats(*dims):
    n = int(np.prod(dims))
    return ((np.arange(n) * 7 + 3) % 11 - 5).reshape(dims).astype("f4") / 4


def ints(*values):
    return np.array(values, "i8")


def model(nodes, inputs, outputs, opset, domain="", ir_version=None):
    """Returns a model. `inputs`: {name: "f n 3" or array}. Outputs: names, or name:dtype."""
    declared = []
    for name, spec in inputs.items():
        if isinstance(spec, str):
            kind, *dims = spec.split()
            declared.append(wire.value_info(name, TYPES[np.dtype(KINDS[kind])], [int(d) if d.lstrip("-").isdigit() else d for d in dims]))
    constants = [wire.tensor(k, TYPES[v.dtype], v.shape, v.tobytes()) for k, v in inputs.items() if isinstance(v, np.ndarray)]
    results = []
    for output in outputs:
        name, _, kind = output.partition(":")
        if name:
            results.append(wire.value_info(name, TYPES[np.dtype(kind or "f4")], None))
    extra = wire.field(8, wire.field(1, domain) + wire.field(2, 1)) if domain else b""
    return wire.model(wire.graph(nodes, declared, results, constants), opset=opset, ir_version=8 if opset < 21 else 10) + extra


def fed(feeds, inputs):
    def array(name, given):
        if isinstance(given, np.ndarray):
            return given
        made = floats(*given)
        dtype = KINDS[inputs[name].split()[0]]
        return made if dtype == "f4" else (np.arange(made.size) % 3 + 1).reshape(given).astype(dtype)

    return [{name: array(name, given) for name, given in feed.items()} for feed in feeds]


def graph(name, nodes, inputs, outputs=("y",), good=(), bad=(), opset=17, options=(), domain="", says=()):
    """Like case(), for several nodes made by onnx_wire.node()."""
    assert name not in CASES, name
    CASES[name] = Case(model(nodes, inputs, outputs, opset, domain), fed(good, inputs), fed(bad, inputs), list(options), list(says))


def case(name, op, inputs, good=(), bad=(), outputs=("y",), opset=17, domain="", options=(), says=(), attributes=None, **more):
    node = wire.node(op, [k if v is not None else "" for k, v in inputs.items()], [o.partition(":")[0] for o in outputs], domain,
                     **(attributes or {}), **more)
    graph(name, [node], {k: v for k, v in inputs.items() if v is not None}, outputs, good, bad, opset, options, domain, says)


def node(*arguments, **attributes):
    return wire.node(*arguments, **attributes)


# ---- squeezes, reshapes, broadcasting

case("Squeeze: a symbolic dimension", "Squeeze", {"x": "f n 3", "axes": ints(0)}, [{"x": (1, 3)}], [{"x": (2, 3)}],
     says=["only for n from 1 to 1: Squeeze: dimension 0 of [n, 3] must be 1"])
case("Squeeze: two symbolic dimensions", "Squeeze", {"x": "f n 3 m", "axes": ints(0, 2)}, [{"x": (1, 3, 1)}],
     [{"x": (2, 3, 1)}, {"x": (1, 3, 2)}])
case("Squeeze: another dimension stays symbolic", "Squeeze", {"x": "f n m", "axes": ints(0)}, [{"x": (1, 5)}, {"x": (1, 1)}], [{"x": (2, 5)}])
case("Squeeze: no axes", "Squeeze", {"x": "f n 1 3"}, [{"x": (2, 1, 3)}])
case("Squeeze: --dim without a valid size", "Squeeze", {"x": "f batch 3", "axes": ints(0)}, options=["--dim", "batch=2..4"],
     says=["dimension 0 of [batch, 3] must be 1", "batch is 2 to 4", "--dim batch=1"])
case("Squeeze: --dim with one valid size", "Squeeze", {"x": "f batch 3", "axes": ints(0)}, [{"x": (1, 3)}], [{"x": (2, 3)}],
     options=["--dim", "batch=1..4"])
graph("Squeeze: a data-dependent size", [node("NonZero", ["x"], ["p"]), node("Squeeze", ["p", "axes"], ["y"])],
      {"x": "f 4", "axes": ints(1)}, ["y:i8"], [{"x": np.array([0, 1, 0, 0], "f4")}], [{"x": np.array([0, 1, 1, 0], "f4")}])
graph("Squeeze: a computed size", [node("Concat", ["x", "z"], ["p"], axis=0), node("Squeeze", ["p", "axes"], ["y"])],
      {"x": "f n 3", "z": "f m 3", "axes": ints(0)}, ["y"], [], [{"x": (1, 3), "z": (1, 3)}])
graph("Squeeze: half of a symbolic dimension", [node("Slice", ["x", "b", "e", "a", "s"], ["p"]), node("Squeeze", ["p", "a"], ["y"])],
      {"x": "f n 3", "b": ints(0), "e": ints(9999), "a": ints(0), "s": ints(2)}, ["y"], [{"x": (1, 3)}, {"x": (2, 3)}],
      [{"x": (3, 3)}])
case("Expand: a symbolic dimension", "Expand", {"x": "f n 2", "shape": ints(3, 2)}, [{"x": (1, 2)}, {"x": (3, 2)}], [{"x": (2, 2)}])
case("Expand: to another symbolic dimension", "Expand", {"x": "f 2", "shape": "i 1"}, [{"x": (2,), "shape": ints(1)}, {"x": (2,), "shape": ints(2)}],
     [{"x": (2,), "shape": ints(3)}, {"x": (2,), "shape": ints(4)}])
graph("Expand: to the shape of another value", [node("Shape", ["z"], ["s"]), node("Expand", ["x", "s"], ["y"])], {"x": "f n 2", "z": "f m 2"},
      ["y"], [{"x": (1, 2), "z": (4, 2)}, {"x": (4, 2), "z": (4, 2)}, {"x": (4, 2), "z": (1, 2)}],
      [{"x": (2, 2), "z": (3, 2)}, {"x": (2, 2), "z": (4, 2)}, {"x": (3, 2), "z": (2, 2)}])
graph("Expand: a constant dimension to a symbolic one", [node("Shape", ["z"], ["s"]), node("Expand", ["x", "s"], ["y"])], {"x": "f 2", "z": "f m"},
      ["y"], [{"x": (2,), "z": (2,)}, {"x": (2,), "z": (1,)}], [{"x": (2,), "z": (3,)}, {"x": (2,), "z": (4,)}])
case("Reshape: sizes that are not divisible", "Reshape", {"x": "f n 3", "shape": ints(2, -1)}, [{"x": (2, 3)}, {"x": (4, 3)}],
     [{"x": (1, 3)}, {"x": (3, 3)}])
case("Reshape: to a constant shape", "Reshape", {"x": "f n", "shape": ints(2, 3)}, [{"x": (6,)}], [{"x": (5,)}, {"x": (12,)}])
case("Reshape: to a run-time shape", "Reshape", {"x": "f n", "shape": "i 2"}, [{"x": (6,), "shape": ints(2, -1)}, {"x": (6,), "shape": ints(0, 1)}],
     [{"x": (6,), "shape": ints(4, -1)}, {"x": (6,), "shape": ints(2, 2)}, {"x": (6,), "shape": ints(-1, -1)},
      {"x": (6,), "shape": ints(-2, -3)}, {"x": (6,), "shape": ints(6, 0)}])
case("Reshape: 0 and -1", "Reshape", {"x": "f n m", "shape": ints(0, 4, -1)}, [{"x": (2, 8)}], [{"x": (1, 6)}, {"x": (2, 6)}])
case("Add: a symbolic and a constant dimension", "Add", {"x": "f n 2", "z": floats(3, 2)}, [{"x": (1, 2)}, {"x": (3, 2)}], [{"x": (2, 2)}])
case("Add: two symbolic dimensions", "Add", {"x": "f n", "z": "f m"}, [{"x": (1,), "z": (3,)}, {"x": (3,), "z": (1,)}, {"x": (3,), "z": (3,)}],
     [{"x": (2,), "z": (3,)}])
case("Where: symbolic dimensions", "Where", {"c": "b n", "x": "f m", "z": floats(3)}, [{"c": (1,), "x": (3,)}, {"c": (3,), "x": (1,)}],
     [{"c": (2,), "x": (3,)}, {"c": (3,), "x": (2,)}])
case("Max: symbolic dimensions", "Max", {"x": "f n", "z": "f m", "v": floats(3)}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}, {"x": (1,), "z": (2,)}])
case("Mean: symbolic dimensions", "Mean", {"x": "f n", "z": "f m", "v": floats(3)}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}, {"x": (1,), "z": (2,)}])
case("Pow: symbolic dimensions", "Pow", {"x": "f n", "z": "f m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}])
case("Mod: symbolic dimensions", "Mod", {"x": "i n", "z": "i m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}], outputs=["y:i8"])
case("And: symbolic dimensions", "And", {"x": "b n", "z": "b m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}], outputs=["y:?"])
case("Equal: symbolic dimensions", "Equal", {"x": "f n", "z": "f m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}], outputs=["y:?"])
case("BitShift: symbolic dimensions", "BitShift", {"x": "u n", "z": "u m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}], outputs=["y:u1"],
     direction="LEFT")
case("BitwiseAnd: symbolic dimensions", "BitwiseAnd", {"x": "j n", "z": "j m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}], outputs=["y:i4"],
     opset=18)
case("PRelu: a slope with a symbolic dimension", "PRelu", {"x": "f n 2", "slope": "f m 2"}, [{"x": (3, 2), "slope": (1, 2)}], [{"x": (3, 2), "slope": (2, 2)}])
case("Clip: bounds of higher rank", "Clip", {"x": "f 3", "low": "f n"}, [], [{"x": (3,), "low": (3,)}])
case("Concat: different dimensions", "Concat", {"x": "f n a", "z": "f m b"}, [{"x": (1, 2), "z": (2, 2)}], [{"x": (1, 2), "z": (2, 3)}], axis=0)
case("Concat: with a constant", "Concat", {"x": "f n a", "z": floats(2, 3)}, [{"x": (1, 3)}], [{"x": (1, 2)}, {"x": (1, 1)}], axis=0)
case("Tile: negative repeats", "Tile", {"x": "f n", "reps": "i 1"}, [{"x": (2,), "reps": ints(2)}], [{"x": (2,), "reps": ints(-1)}])
case("Split: sizes for a symbolic dimension", "Split", {"x": "f n", "split": ints(2, 3)}, [{"x": (5,)}], [{"x": (6,)}, {"x": (4,)}, {"x": (1,)}],
     outputs=["y", "z"])
case("Split: in equal parts", "Split", {"x": "f n"}, [{"x": (4,)}], [{"x": (5,)}, {"x": (1,)}], outputs=["y", "z"])
case("Split: sizes at run time", "Split", {"x": "f 5", "split": "i 2"}, [{"x": (5,), "split": ints(2, 3)}],
     [{"x": (5,), "split": ints(2, 2)}, {"x": (5,), "split": ints(6, -1)}, {"x": (5,), "split": ints(3, 3)}], outputs=["y", "z"])
case("Range: a step of 0", "Range", {"a": "i", "b": "i", "c": "i"}, [{"a": np.array(0), "b": np.array(4), "c": np.array(2)}],
     [{"a": np.array(0), "b": np.array(4), "c": np.array(0)}], outputs=["y:i8"])
case("ConstantOfShape: a negative size", "ConstantOfShape", {"s": "i 2"}, [{"s": ints(2, 3)}], [{"s": ints(2, -3)}])
case("CumSum: an axis out of range", "CumSum", {"x": "f n", "axis": "i"}, [{"x": (3,), "axis": np.array(-1)}], [{"x": (3,), "axis": np.array(1)}])
case("Pad: negative pads exceed the size", "Pad", {"x": "f n", "pads": ints(-2, -1)}, [{"x": (4,)}], [{"x": (2,)}, {"x": (1,)}])
case("Pad: pads at run time", "Pad", {"x": "f n", "pads": "i 2"}, [{"x": (4,), "pads": ints(-2, 1)}], [{"x": (2,), "pads": ints(-2, -1)}])
case("Pad: reflect", "Pad", {"x": "f n", "pads": ints(3, 3)}, [{"x": (4,)}], [{"x": (2,)}, {"x": (1,)}], mode="reflect")
case("OneHot: a negative depth", "OneHot", {"x": "i n", "d": "i", "v": floats(2)}, [{"x": ints(1, 2), "d": np.array(3)}],
     [{"x": ints(1, 2), "d": np.array(-3)}, {"x": ints(1, 2), "d": np.array(0)}])
case("ReverseSequence: sequence_lens of another batch size", "ReverseSequence", {"x": "f t b", "l": "i m"}, [{"x": (3, 2), "l": ints(1, 3)}],
     [{"x": (3, 2), "l": ints(1)}, {"x": (3, 2), "l": ints(1, 2, 3)}, {"x": (3, 2), "l": ints(1, 4)}, {"x": (3, 2), "l": ints(1, -1)}])
case("Compress: more conditions than elements", "Compress", {"x": "f n", "c": "b m"},
     [{"x": (3,), "c": np.array([1, 0], "?")}, {"x": (3,), "c": np.array([1, 0, 1], "?")}], [], axis=0)
graph("If: a condition with a symbolic dimension", [node("If", ["c"], ["y"], then_branch=(wire.graph([node("Relu", ["x"], ["p"])], [], [wire.value_info("p", 1, None)]),),
      else_branch=(wire.graph([node("Neg", ["x"], ["q"])], [], [wire.value_info("q", 1, None)]),))], {"c": "b n", "x": "f 3"}, ["y"],
      [{"c": np.array([True]), "x": (3,)}], [{"c": np.array([True, False]), "x": (3,)}])
BRANCHES = {"then_branch": (wire.graph([node("Reshape", ["x", "s"], ["p"])], [], [wire.value_info("p", 1, None)]),),
            "else_branch": (wire.graph([node("Relu", ["x"], ["q"])], [], [wire.value_info("q", 1, None)]),)}
graph("If: an invalid branch", [node("If", ["c"], ["y"], **BRANCHES)], {"c": "b", "x": "f 3", "s": ints(5)}, says=["--const c=FILE"])
graph("If: nothing is narrowed in a branch", [node("If", ["c"], ["y"], **BRANCHES)], {"c": "b", "x": "f n", "s": ints(5)}, ["y"],
      [{"c": np.array(False), "x": (3,)}, {"c": np.array(True), "x": (5,)}, {"c": np.array(False), "x": (5,)}], [{"c": np.array(True), "x": (3,)}])
SQUEEZES = {"then_branch": (wire.graph([node("Squeeze", ["x", "a"], ["p"])], [], [wire.value_info("p", 1, None)]),),
            "else_branch": (wire.graph([node("ReduceMax", ["x"], ["q"], axes=[0], keepdims=0)], [], [wire.value_info("q", 1, None)]),)}
graph("If: a squeeze in a branch", [node("If", ["c"], ["y"], **SQUEEZES)], {"c": "b", "x": "f n 3", "a": ints(0)}, ["y"],
      [{"c": np.array(False), "x": (4, 3)}, {"c": np.array(True), "x": (1, 3)}], [{"c": np.array(True), "x": (3, 3)}])

# ---- products

case("MatMul: a symbolic and a constant dimension", "MatMul", {"x": "f 2 n", "z": floats(3, 4)}, [{"x": (2, 3)}], [{"x": (2, 2)}, {"x": (2, 1)}])
case("MatMul: two symbolic dimensions", "MatMul", {"x": "f 2 n", "z": "f m 4"}, [{"x": (2, 3), "z": (3, 4)}], [{"x": (2, 3), "z": (2, 4)}, {"x": (2, 1), "z": (2, 4)}])
case("MatMul: vectors", "MatMul", {"x": "f n", "z": "f m"}, [{"x": (3,), "z": (3,)}], [{"x": (1,), "z": (3,)}])
case("MatMul: a vector and a constant", "MatMul", {"x": "f n", "z": floats(3, 4)}, [{"x": (3,)}], [{"x": (1,)}, {"x": (2,)}])
case("MatMul: batches", "MatMul", {"x": "f a 2 3", "z": "f b 3 4"}, [{"x": (1, 2, 3), "z": (2, 3, 4)}], [{"x": (3, 2, 3), "z": (2, 3, 4)}])
case("MatMulInteger: two symbolic dimensions", "MatMulInteger", {"x": "u 2 n", "z": "u m 4"}, [{"x": (2, 3), "z": (3, 4)}], [{"x": (2, 3), "z": (2, 4)}],
     outputs=["y:i4"])
case("MatMulInteger: zero points", "MatMulInteger", {"x": "u n 3", "z": "u 3 4", "a": "u m"}, [{"x": (2, 3), "z": (3, 4), "a": (1,)}],
     [{"x": (2, 3), "z": (3, 4), "a": (3,)}], outputs=["y:i4"])
case("Gemm: a symbolic and a constant dimension", "Gemm", {"x": "f 2 n", "z": floats(3, 4)}, [{"x": (2, 3)}], [{"x": (2, 2)}, {"x": (2, 1)}])
case("Gemm: a larger bias", "Gemm", {"x": "f n 3", "z": floats(3, 4), "c": floats(3, 4)}, [{"x": (3, 3)}], [{"x": (1, 3)}, {"x": (2, 3)}])
case("Gemm: a larger bias at run time", "Gemm", {"x": "f n 3", "z": floats(3, 4), "c": "f m 4"}, [{"x": (3, 3), "c": (1, 4)}, {"x": (3, 3), "c": (3, 4)}],
     [{"x": (1, 3), "c": (3, 4)}, {"x": (2, 3), "c": (3, 4)}])
case("Gemm: a wider bias", "Gemm", {"x": "f n 3", "z": "f 3 m", "c": floats(4)}, [{"x": (2, 3), "z": (3, 4)}], [{"x": (2, 3), "z": (3, 1)}])
case("Gemm: a vector with a symbolic dimension", "Gemm", {"x": "f 2 3", "z": floats(3, 4), "c": "f m"}, [{"x": (2, 3), "c": (1,)}, {"x": (2, 3), "c": (4,)}],
     [{"x": (2, 3), "c": (2,)}])
case("Einsum: sums", "Einsum", {"x": "f 2 n", "z": "f m 4"}, [{"x": (2, 3), "z": (3, 4)}], [{"x": (2, 3), "z": (2, 4)}], equation="ij,jk->ik")
case("Einsum: a diagonal", "Einsum", {"x": "f n m"}, [{"x": (3, 3)}], [{"x": (2, 3)}, {"x": (3, 2)}], equation="ii->i")
case("Einsum: products", "Einsum", {"x": "f n", "z": "f m"}, [{"x": (3,), "z": (3,)}], [{"x": (2,), "z": (3,)}], equation="i,i->i")
case("Einsum: batches", "Einsum", {"x": "f a 2 3", "z": "f b 3 4"}, [{"x": (2, 2, 3), "z": (2, 3, 4)}], [{"x": (3, 2, 3), "z": (2, 3, 4)}],
     equation="bij,bjk->bik")

# ---- convolutions, pooling

W = floats(4, 3, 3, 3)
case("Conv: channels", "Conv", {"x": "f 1 n 5 5", "w": W}, [{"x": (1, 3, 5, 5)}], [{"x": (1, 1, 5, 5)}, {"x": (1, 6, 5, 5)}])
case("Conv: a bias of length 1", "Conv", {"x": "f 1 3 5 5", "w": W, "b": "f n"}, [{"x": (1, 3, 5, 5), "b": (4,)}],
     [{"x": (1, 3, 5, 5), "b": (1,)}, {"x": (1, 3, 5, 5), "b": (2,)}])
case("Conv: an input smaller than the kernel", "Conv", {"x": "f 1 3 h 5", "w": W}, [{"x": (1, 3, 3, 5)}], [{"x": (1, 3, 1, 5)}, {"x": (1, 3, 2, 5)}])
case("Conv: groups", "Conv", {"x": "f 1 n 5 5", "w": floats(4, 2, 3, 3)}, [{"x": (1, 4, 5, 5)}], [{"x": (1, 2, 5, 5)}, {"x": (1, 3, 5, 5)}], group=2)
case("Conv: one spatial dimension, a bias of length 1", "Conv", {"x": "f 1 3 n", "w": floats(4, 3, 3), "b": "f m"}, [{"x": (1, 3, 5), "b": (4,)}],
     [{"x": (1, 3, 5), "b": (1,)}, {"x": (1, 3, 2), "b": (4,)}])
case("ConvTranspose: channels", "ConvTranspose", {"x": "f 1 n 5 5", "w": W}, [{"x": (1, 4, 5, 5)}], [{"x": (1, 1, 5, 5)}, {"x": (1, 8, 5, 5)}])
case("ConvTranspose: a bias of length 1", "ConvTranspose", {"x": "f 1 4 5 5", "w": W, "b": "f n"}, [{"x": (1, 4, 5, 5), "b": (3,)}], [{"x": (1, 4, 5, 5), "b": (1,)}])
case("ConvTranspose: a size given by output_padding only", "ConvTranspose", {"x": "f 1 1 1 3", "w": floats(1, 1, 2, 2)}, [{"x": (1, 1, 1, 3)}], [],
     strides=[2, 1], pads=[2, 0, 0, 0], output_padding=[1, 0])
case("ConvTranspose: a symbolic dimension and output_padding", "ConvTranspose", {"x": "f 1 1 h 3", "w": floats(1, 1, 2, 2)}, [{"x": (1, 1, 1, 3)}, {"x": (1, 1, 3, 3)}], [],
     strides=[2, 1], pads=[2, 0, 0, 0], output_padding=[1, 0])
case("ConvInteger: channels", "ConvInteger", {"x": "u 1 n 5 5", "w": np.ones((4, 3, 3, 3), "u1")}, [{"x": (1, 3, 5, 5)}], [{"x": (1, 1, 5, 5)}], outputs=["y:i4"])
SCALE, ZERO = np.array(0.5, "f4"), np.array(1, "u1")
case("QLinearConv: channels", "QLinearConv", {"x": "u 1 n 5 5", "xs": SCALE, "xz": ZERO, "w": np.ones((4, 3, 3, 3), "u1"), "ws": SCALE, "wz": ZERO,
     "ys": SCALE, "yz": ZERO}, [{"x": (1, 3, 5, 5)}], [{"x": (1, 1, 5, 5)}], outputs=["y:u1"])
case("QLinearConv: a bias of length 1", "QLinearConv", {"x": "u 1 3 5 5", "xs": SCALE, "xz": ZERO, "w": np.ones((4, 3, 3, 3), "u1"), "ws": SCALE, "wz": ZERO,
     "ys": SCALE, "yz": ZERO, "b": "j n"}, [{"x": (1, 3, 5, 5), "b": (4,)}], [{"x": (1, 3, 5, 5), "b": (1,)}], outputs=["y:u1"])
case("QLinearMatMul: sizes", "QLinearMatMul", {"x": "u 2 n", "xs": SCALE, "xz": ZERO, "w": np.ones((3, 4), "u1"), "ws": SCALE, "wz": ZERO,
     "ys": SCALE, "yz": ZERO}, [{"x": (2, 3)}], [{"x": (2, 1)}, {"x": (2, 2)}], outputs=["y:u1"])
case("MaxPool: an input smaller than the kernel", "MaxPool", {"x": "f 1 1 h 5"}, [{"x": (1, 1, 3, 5)}], [{"x": (1, 1, 1, 5)}], kernel_shape=[3, 3])
case("AveragePool: an input smaller than the kernel", "AveragePool", {"x": "f 1 1 h 5"}, [{"x": (1, 1, 3, 5)}], [{"x": (1, 1, 1, 5)}], kernel_shape=[3, 3])
case("LpPool: an input smaller than the kernel", "LpPool", {"x": "f 1 1 h 5"}, [{"x": (1, 1, 3, 5)}], [{"x": (1, 1, 1, 5)}], kernel_shape=[3, 3])
case("DepthToSpace: channels", "DepthToSpace", {"x": "f 1 n 2 2"}, [{"x": (1, 4, 2, 2)}, {"x": (1, 8, 2, 2)}], [{"x": (1, 3, 2, 2)}, {"x": (1, 6, 2, 2)}], blocksize=2)
case("SpaceToDepth: an odd height", "SpaceToDepth", {"x": "f 1 1 h 2"}, [{"x": (1, 1, 2, 2)}, {"x": (1, 1, 4, 2)}], [{"x": (1, 1, 3, 2)}, {"x": (1, 1, 1, 2)}],
     blocksize=2)
case("GridSample: batches", "GridSample", {"x": "f a 1 3 3", "g": "f b 2 2 2"}, [{"x": (2, 1, 3, 3), "g": (2, 2, 2, 2)}], [{"x": (1, 1, 3, 3), "g": (2, 2, 2, 2)}])
case("AffineGrid: batches", "AffineGrid", {"t": "f n 2 3", "s": ints(2, 1, 3, 3)}, [{"t": (2, 2, 3)}], [{"t": (1, 2, 3)}, {"t": (3, 2, 3)}], opset=20)
ROIS = np.array([[0, 0, 2, 2], [1, 1, 3, 3]], "f4")
case("RoiAlign: batch indices", "RoiAlign", {"x": "f 1 1 4 4", "r": "f n 4", "i": "i m"}, [{"x": (1, 1, 4, 4), "r": ROIS, "i": ints(0, 0)}],
     [{"x": (1, 1, 4, 4), "r": ROIS, "i": ints(0)}, {"x": (1, 1, 4, 4), "r": ROIS[:1], "i": ints(0, 0)},
      {"x": (1, 1, 4, 4), "r": ROIS, "i": ints(0, 1)}, {"x": (1, 1, 4, 4), "r": ROIS, "i": ints(-1, 0)}], output_height=2, output_width=2, sampling_ratio=2)
case("NonMaxSuppression: boxes and scores", "NonMaxSuppression", {"b": "f 1 n 4", "s": "f 1 1 m", "k": ints(3)}, [{"b": (1, 3, 4), "s": (1, 1, 3)}],
     [{"b": (1, 3, 4), "s": (1, 1, 2)}, {"b": (1, 1, 4), "s": (1, 1, 3)}], outputs=["y:i8"])

# ---- normalization

case("BatchNormalization: one channel", "BatchNormalization", {"x": "f 2 n 2", "s": floats(3), "b": floats(3), "m": floats(3), "v": np.ones(3, "f4")},
     [{"x": (2, 3, 2)}], [{"x": (2, 1, 2)}, {"x": (2, 2, 2)}])
case("BatchNormalization: parameters at run time", "BatchNormalization", {"x": "f 2 3 2", "s": "f a", "b": "f b", "m": "f c", "v": "f d"},
     [{"x": (2, 3, 2), "s": (3,), "b": (3,), "m": (3,), "v": np.ones(3, "f4")}], [{"x": (2, 3, 2), "s": (1,), "b": (3,), "m": (3,), "v": np.ones(3, "f4")},
                                                                            {"x": (2, 3, 2), "s": (3,), "b": (1,), "m": (3,), "v": np.ones(3, "f4")},
                                                                            {"x": (2, 3, 2), "s": (3,), "b": (3,), "m": (1,), "v": np.ones(3, "f4")},
                                                                            {"x": (2, 3, 2), "s": (3,), "b": (3,), "m": (3,), "v": np.ones(1, "f4")}])
case("BatchNormalization: all dimensions symbolic", "BatchNormalization", {"x": "f 2 n 2", "s": "f a", "b": "f b", "m": "f c", "v": "f d"},
     [{"x": (2, 3, 2), "s": (3,), "b": (3,), "m": (3,), "v": np.ones(3, "f4")}], [{"x": (2, 1, 2), "s": (3,), "b": (3,), "m": (3,), "v": np.ones(3, "f4")},
                                                                            {"x": (2, 3, 2), "s": (1,), "b": (1,), "m": (1,), "v": np.ones(1, "f4")}])
case("InstanceNormalization: channels", "InstanceNormalization", {"x": "f 1 n 4", "s": floats(3), "b": floats(3)}, [{"x": (1, 3, 4)}], [{"x": (1, 1, 4)}, {"x": (1, 2, 4)}])
case("InstanceNormalization: parameters at run time", "InstanceNormalization", {"x": "f 1 3 4", "s": "f a", "b": "f b"}, [{"x": (1, 3, 4), "s": (3,), "b": (3,)}],
     [{"x": (1, 3, 4), "s": (1,), "b": (3,)}, {"x": (1, 3, 4), "s": (3,), "b": (1,)}])
case("LayerNormalization: one channel", "LayerNormalization", {"x": "f 2 n", "s": floats(3), "b": floats(3)}, [{"x": (2, 3)}], [{"x": (2, 1)}, {"x": (2, 2)}])
case("LayerNormalization: parameters at run time", "LayerNormalization", {"x": "f 2 3", "s": "f a", "b": "f b"}, [{"x": (2, 3), "s": (3,), "b": (3,)}],
     [{"x": (2, 3), "s": (2,), "b": (3,)}, {"x": (2, 3), "s": (3,), "b": (2,)}])
case("RMSNormalization: one channel", "RMSNormalization", {"x": "f 2 n", "s": floats(3)}, [{"x": (2, 3)}], [{"x": (2, 1)}, {"x": (2, 2)}], opset=23)
case("GroupNormalization: channels", "GroupNormalization", {"x": "f 1 n 4", "s": floats(4), "b": floats(4)}, [{"x": (1, 4, 4)}], [{"x": (1, 1, 4)}, {"x": (1, 2, 4)}],
     opset=21, num_groups=2)
case("GroupNormalization: parameters at run time", "GroupNormalization", {"x": "f 1 4 n", "s": "f m", "b": "f m"}, [{"x": (1, 4, 4), "s": (4,), "b": (4,)}],
     [{"x": (1, 4, 4), "s": (3,), "b": (3,)}, {"x": (1, 4, 4), "s": (2,), "b": (2,)}], opset=21, num_groups=2)
case("SkipLayerNormalization: the skip", "SkipLayerNormalization", {"x": "f 2 n 4", "s": "f 2 m 4", "g": floats(4)}, [{"x": (2, 3, 4), "s": (2, 3, 4)}],
     [{"x": (2, 3, 4), "s": (2, 2, 4)}], domain="com.microsoft")
case("SkipLayerNormalization: channels", "SkipLayerNormalization", {"x": "f 2 3 n", "s": "f 2 3 n", "g": floats(4)}, [{"x": (2, 3, 4), "s": (2, 3, 4)}],
     [{"x": (2, 3, 1), "s": (2, 3, 1)}], domain="com.microsoft")
case("BiasGelu: a bias of another length", "BiasGelu", {"x": "f 2 n", "b": "f m"}, [{"x": (2, 3), "b": (3,)}], [{"x": (2, 3), "b": (1,)}, {"x": (2, 1), "b": (3,)}],
     domain="com.microsoft")
case("FastGelu: a bias of another length", "FastGelu", {"x": "f 2 n", "b": "f m"}, [{"x": (2, 3), "b": (3,)}], [{"x": (2, 3), "b": (2,)}, {"x": (2, 1), "b": (3,)}],
     domain="com.microsoft")

# ---- quantization

case("DequantizeLinear: per axis", "DequantizeLinear", {"x": "u n 2", "s": floats(3) + 2}, [{"x": (3, 2)}], [{"x": (1, 2)}, {"x": (2, 2)}], axis=0)
case("DequantizeLinear: scales at run time", "DequantizeLinear", {"x": "u 3 2", "s": "f n", "z": "u m"}, [{"x": (3, 2), "s": (3,), "z": (3,)}],
     [{"x": (3, 2), "s": (3,), "z": (1,)}, {"x": (3, 2), "s": (2,), "z": (2,)}], axis=0)
case("QuantizeLinear: per axis", "QuantizeLinear", {"x": "f n 2", "s": np.ones(3, "f4"), "z": np.ones(3, "u1")}, [{"x": (3, 2)}], [{"x": (1, 2)}, {"x": (2, 2)}],
     outputs=["y:u1"], axis=0)
case("QuantizeLinear: zero points of another length", "QuantizeLinear", {"x": "f 3 2", "s": np.ones(3, "f4"), "z": "u n"}, [{"x": (3, 2), "z": (3,)}],
     [{"x": (3, 2), "z": (1,)}, {"x": (3, 2), "z": (2,)}], outputs=["y:u1"], axis=0)
case("DequantizeLinear: blocks", "DequantizeLinear", {"x": "u n 4", "s": np.ones((3, 2), "f4")}, [{"x": (3, 4)}], [{"x": (1, 4)}, {"x": (6, 4)}], opset=21, axis=1, block_size=2)

# ---- recurrent layers


def recurrent(op, gates):
    weights = {"w": floats(1, gates * 4, 3), "r": floats(1, gates * 4, 4)}
    bias = np.zeros((1, 2 * gates * 4), "f4")
    more = {"hidden_size": 4}
    case(f"{op}: input size", op, {"x": "f 5 2 n"} | weights, [{"x": (5, 2, 3)}], [{"x": (5, 2, 1)}, {"x": (5, 2, 4)}], outputs=["y"], **more)
    lengths = {"x": "f t b 3"} | weights | {"b": bias, "l": "j m"}
    j = lambda *values: np.array(values, "i4")
    case(f"{op}: sequence_lens", op, lengths, [{"x": (5, 2, 3), "l": j(2, 5)}],
         [{"x": (5, 2, 3), "l": j(2)}, {"x": (5, 2, 3), "l": j(2, 3, 4)}, {"x": (5, 2, 3), "l": j(2, 6)}, {"x": (5, 2, 3), "l": j(-1, 3)}], **more)
    case(f"{op}: sequence_lens for a constant batch size", op, lengths | {"x": "f 5 2 3"}, [{"x": (5, 2, 3), "l": j(2, 5)}],
         [{"x": (5, 2, 3), "l": j(2)}, {"x": (5, 2, 3), "l": j(2, 3, 4)}, {"x": (5, 2, 3), "l": j(2, 6)}, {"x": (5, 2, 3), "l": j(-1, 3)}], **more)
    case(f"{op}: constant sequence_lens", op, lengths | {"l": j(2, 5)}, [{"x": (5, 2, 3)}], [{"x": (4, 2, 3)}, {"x": (5, 1, 3)}, {"x": (5, 3, 3)}], **more)
    case(f"{op}: an initial state of another batch size", op, {"x": "f 3 b 3"} | weights | {"b": bias, "l": None, "h": "f 1 m 4"}, [{"x": (3, 2, 3), "h": (1, 2, 4)}],
         [{"x": (3, 2, 3), "h": (1, 1, 4)}, {"x": (3, 1, 3), "h": (1, 2, 4)}], **more)
    case(f"{op}: a bias of another length", op, {"x": "f 3 b 3"} | weights | {"b": "f 1 n"}, [{"x": (3, 2, 3), "b": bias}], [{"x": (3, 2, 3), "b": (1, 2)}], **more)


recurrent("RNN", 1)
recurrent("GRU", 3)
recurrent("LSTM", 4)

# ---- indices

case("TopK: K at run time", "TopK", {"x": "f n", "k": "i 1"}, [{"x": (4,), "k": ints(2)}, {"x": (4,), "k": ints(4)}],
     [{"x": (4,), "k": ints(-1)}, {"x": (4,), "k": ints(5)}], outputs=["y", "i:i8"])
case("TopK: constant K, symbolic dimension", "TopK", {"x": "f n", "k": ints(3)}, [{"x": (4,)}, {"x": (3,)}], [{"x": (2,)}, {"x": (1,)}], outputs=["y", "i:i8"])
case("TopK: negative K", "TopK", {"x": "f 4", "k": ints(-1)}, outputs=["y", "i:i8"])
case("Gather: indices", "Gather", {"x": "f n 2", "i": "i m"}, [{"x": (3, 2), "i": ints(-3, 2)}], [{"x": (3, 2), "i": ints(3)}, {"x": (3, 2), "i": ints(-4)}])
case("Gather: a constant index", "Gather", {"x": "f n 2", "i": ints(2)}, [{"x": (3, 2)}], [{"x": (2, 2)}, {"x": (1, 2)}])
case("Gather: a negative constant index", "Gather", {"x": "f n 2", "i": ints(-3)}, [{"x": (3, 2)}], [{"x": (2, 2)}, {"x": (1, 2)}])
case("Gather: a constant scalar", "Gather", {"x": "f n 2", "i": np.array(2)}, [{"x": (3, 2)}], [{"x": (2, 2)}, {"x": (1, 2)}])
case("Gather: a table", "Gather", {"x": floats(3, 2), "i": "i n"}, [{"i": ints(-3, 2)}], [{"i": ints(3)}, {"i": ints(-4)}])
case("GatherElements: indices", "GatherElements", {"x": "f n 2", "i": "i m 2"}, [{"x": (3, 2), "i": ints(-3, 2).reshape(1, 2)}],
     [{"x": (3, 2), "i": ints(3, 0).reshape(1, 2)}, {"x": (3, 2), "i": ints(-4, 0).reshape(1, 2)}])
case("GatherElements: indices larger than the data", "GatherElements", {"x": "f 3 n", "i": "i 1 m"}, [{"x": (3, 2), "i": ints(0, 1).reshape(1, 2)}, {"x": (3, 2), "i": ints(1).reshape(1, 1)}],
     [{"x": (3, 2), "i": ints(0, 1, 2).reshape(1, 3)}])
case("GatherND: indices", "GatherND", {"x": "f n 2", "i": "i m 1"}, [{"x": (3, 2), "i": ints(-3, 2).reshape(2, 1)}],
     [{"x": (3, 2), "i": ints(3).reshape(1, 1)}, {"x": (3, 2), "i": ints(-4).reshape(1, 1)}])
case("GatherND: batches", "GatherND", {"x": "f a 2", "i": "i b 1"}, [{"x": (3, 2), "i": ints(0, 1, 1).reshape(3, 1)}], [{"x": (3, 2), "i": ints(0).reshape(1, 1)}], batch_dims=1)
UPDATES = {"x": "f n 2", "i": "i m 1", "u": "f m 2"}
case("ScatterND: indices", "ScatterND", UPDATES, [{"x": (3, 2), "i": ints(-3, 2).reshape(2, 1), "u": (2, 2)}],
     [{"x": (3, 2), "i": ints(3).reshape(1, 1), "u": (1, 2)}, {"x": (3, 2), "i": ints(-4).reshape(1, 1), "u": (1, 2)}])
case("ScatterND: constant indices", "ScatterND", {"x": "f n 2", "i": ints(2).reshape(1, 1), "u": "f 1 2"}, [{"x": (3, 2), "u": (1, 2)}], [{"x": (2, 2), "u": (1, 2)}])
case("ScatterND: updates of another shape", "ScatterND", UPDATES | {"u": "f k l"}, [{"x": (3, 2), "i": ints(0, 2).reshape(2, 1), "u": (2, 2)}],
     [{"x": (3, 2), "i": ints(0, 2).reshape(2, 1), "u": (1, 2)}, {"x": (3, 2), "i": ints(0, 2).reshape(2, 1), "u": (2, 1)}])
for reduction in ("add", "max"):
    case(f"ScatterND: {reduction}", "ScatterND", UPDATES, [{"x": (3, 2), "i": ints(-3, 2).reshape(2, 1), "u": (2, 2)}],
         [{"x": (3, 2), "i": ints(3).reshape(1, 1), "u": (1, 2)}, {"x": (3, 2), "i": ints(-4).reshape(1, 1), "u": (1, 2)}], opset=18, reduction=reduction)
ELEMENTS = {"x": "f n 2", "i": "i m 2", "u": "f m 2"}
for reduction in ("none", "add", "max"):
    case(f"ScatterElements: {reduction}", "ScatterElements", ELEMENTS, [{"x": (3, 2), "i": ints(-3, 2).reshape(1, 2), "u": (1, 2)}],
         [{"x": (3, 2), "i": ints(3, 0).reshape(1, 2), "u": (1, 2)}, {"x": (3, 2), "i": ints(-4, 0).reshape(1, 2), "u": (1, 2)}], opset=18, reduction=reduction)
case("ScatterElements: updates of another shape", "ScatterElements", ELEMENTS | {"u": "f k 2"}, [{"x": (3, 2), "i": ints(0, 2).reshape(1, 2), "u": (1, 2)}],
     [{"x": (3, 2), "i": ints(0, 2).reshape(1, 2), "u": (2, 2)}, {"x": (3, 2), "i": ints(0, 2, 1, 1).reshape(2, 2), "u": (1, 2)}])
case("ScatterElements: indices larger than the data", "ScatterElements", {"x": "f 3 n", "i": "i 1 m", "u": "f 1 m"}, [{"x": (3, 2), "i": ints(0, 2).reshape(1, 2), "u": (1, 2)}],
     [{"x": (3, 1), "i": ints(0, 2).reshape(1, 2), "u": (1, 2)}])
case("Scatter: indices", "Scatter", ELEMENTS, [{"x": (3, 2), "i": ints(-3, 2).reshape(1, 2), "u": (1, 2)}], [{"x": (3, 2), "i": ints(3, 0).reshape(1, 2), "u": (1, 2)}],
     opset=9)
case("NegativeLogLikelihoodLoss: labels", "NegativeLogLikelihoodLoss", {"x": "f n 3", "t": "i m"}, [{"x": (2, 3), "t": ints(0, 2)}],
     [{"x": (2, 3), "t": ints(0, 1, 2)}])
case("SoftmaxCrossEntropyLoss: labels", "SoftmaxCrossEntropyLoss", {"x": "f n 3", "t": "i m"}, [{"x": (2, 3), "t": ints(0, 2)}],
     [{"x": (2, 3), "t": ints(0, 1, 2)}])

# ---- loops, sequences


def body(nodes, inputs, outputs):
    info = lambda name: wire.value_info(name, {"i": 7, "k": 9}.get(name[0], 1), None if name[0] not in "ik" else [])
    return (wire.graph(nodes, [info(n) for n in inputs], [info(n) for n in outputs]),)


SUM = body([node("Add", ["s", "a"], ["t"]), node("Add", ["t", "b"], ["u"]), node("Identity", ["u"], ["v"])], ["s", "a", "b"], ["u", "v"])
case("Scan: scan inputs of different lengths", "Scan", {"s0": floats(2), "p": "f n 2", "q": "f m 2"}, [{"p": (3, 2), "q": (3, 2)}],
     [{"p": (3, 2), "q": (2, 2)}, {"p": (2, 2), "q": (3, 2)}], outputs=["y", "z"], body=SUM, num_scan_inputs=2)
case("Scan: with a constant scan input", "Scan", {"s0": floats(2), "p": "f n 2", "q": floats(3, 2)}, [{"p": (3, 2)}], [{"p": (2, 2)}, {"p": (4, 2)}, {"p": (1, 2)}],
     outputs=["y", "z"], body=SUM, num_scan_inputs=2)
case("Loop: a trip count with a symbolic dimension", "Loop", {"m": "i n", "k0": np.array(True), "s0": floats(2)}, [{"m": ints(2)}], [{"m": ints(2, 3)}],
     body=body([node("Add", ["s", "s"], ["t"]), node("Identity", ["k"], ["kk"])], ["i", "k", "s"], ["kk", "t"]))
graph("ConcatFromSequence: different dimensions", [node("SequenceConstruct", ["x", "z"], ["q"]), node("ConcatFromSequence", ["q"], ["y"], axis=0)],
      {"x": "f n a", "z": "f m b"}, ["y"], [{"x": (1, 2), "z": (2, 2)}], [{"x": (1, 2), "z": (2, 3)}])
graph("ConcatFromSequence: new axis", [node("SequenceConstruct", ["x", "z"], ["q"]), node("ConcatFromSequence", ["q"], ["y"], axis=0, new_axis=1)],
      {"x": "f n", "z": "f m"}, ["y"], [{"x": (2,), "z": (2,)}], [{"x": (1,), "z": (3,)}])

# ---- attention

case("Attention: keys and values", "Attention", {"q": "f 1 2 a 4", "k": "f 1 2 b 4", "v": "f 1 2 c 4"}, [{"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4)}],
     [{"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 4, 4)}, {"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 1, 4)}], opset=23)
case("Attention: a mask", "Attention", {"q": "f 1 2 a 4", "k": "f 1 2 b 4", "v": "f 1 2 b 4", "m": "f c d"},
     [{"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "m": (3, 5)}],
     [{"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "m": (2, 5)}, {"q": (1, 2, 1, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "m": (2, 5)}], opset=23)
case("MultiHeadAttention: keys and values", "MultiHeadAttention", {"q": "f 1 a 8", "k": "f 1 b 8", "v": "f 1 c 8"}, [{"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8)}],
     [{"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 4, 8)}, {"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 1, 8)}], domain="com.microsoft", num_heads=2)
case("MultiHeadAttention: batches", "MultiHeadAttention", {"q": "f a 3 8", "k": "f b 5 8", "v": "f b 5 8"}, [{"q": (2, 3, 8), "k": (2, 5, 8), "v": (2, 5, 8)}],
     [{"q": (2, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8)}, {"q": (1, 3, 8), "k": (2, 5, 8), "v": (2, 5, 8)}], domain="com.microsoft", num_heads=2)
case("Attention: width and weights", "Attention", {"x": "f 1 3 n", "w": floats(8, 24), "b": floats(24)}, [{"x": (1, 3, 8)}], [{"x": (1, 3, 1)}, {"x": (1, 3, 4)}],
     domain="com.microsoft", num_heads=2)
case("RotaryEmbedding: positions", "RotaryEmbedding", {"x": "f 1 2 n 4", "c": "f p 2", "s": "f q 2", "i": "i 1 m"},
     [{"x": (1, 2, 3, 4), "c": (5, 2), "s": (5, 2), "i": ints(0, 1, 4).reshape(1, 3)}],
     [{"x": (1, 2, 3, 4), "c": (5, 2), "s": (4, 2), "i": ints(0, 1, 2).reshape(1, 3)}, {"x": (1, 2, 3, 4), "c": (5, 2), "s": (5, 2), "i": ints(0).reshape(1, 1)},
      {"x": (1, 2, 3, 4), "c": (5, 2), "s": (5, 2), "i": ints(0, 1, 5).reshape(1, 3)}], opset=23)

# ---- other operators

case("PRelu: a slope larger than the input", "PRelu", {"x": "f n 2", "slope": floats(3, 2)}, [{"x": (3, 2)}], [{"x": (2, 2)}])
case("Trilu: k with several elements", "Trilu", {"x": "f 2 3", "k": "i n"}, [{"x": (2, 3), "k": ints(1)}], [{"x": (2, 3), "k": ints(1, 2)}])
case("Sum: symbolic dimensions", "Sum", {"x": "f n", "z": "f m", "v": floats(3)}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}])
case("Xor: symbolic dimensions", "Xor", {"x": "b n", "z": "b m"}, [{"x": (1,), "z": (3,)}], [{"x": (2,), "z": (3,)}], outputs=["y:?"])
case("Einsum: ellipsis", "Einsum", {"x": "f a 2 3", "z": "f b 3 4"}, [{"x": (2, 2, 3), "z": (2, 3, 4)}], [{"x": (3, 2, 3), "z": (2, 3, 4)}], equation="...ij,...jk->...ik")
case("DeformConv: offsets", "DeformConv", {"x": "f 1 1 4 4", "w": floats(1, 1, 2, 2), "o": "f 1 8 n 3", "b": "f m"}, [],
     [{"x": (1, 1, 4, 4), "o": (1, 8, 2, 3), "b": (1,)}], opset=19)
case("DeformConv: a bias of length 1", "DeformConv", {"x": "f 1 1 4 4", "w": floats(2, 1, 2, 2), "o": "f 1 8 3 3", "b": "f m"}, [{"x": (1, 1, 4, 4), "o": (1, 8, 3, 3), "b": (2,)}],
     [{"x": (1, 1, 4, 4), "o": (1, 8, 3, 3), "b": (1,)}], opset=19)
case("DeformConv: batches", "DeformConv", {"x": "f n 1 4 4", "w": floats(1, 1, 2, 2), "o": "f m 8 3 3"}, [],
     [{"x": (2, 1, 4, 4), "o": (1, 8, 3, 3)}], opset=19)
case("STFT: a window of another length", "STFT", {"x": "f 1 16 1", "s": np.array(4), "w": "f n", "l": np.array(8)}, [], [{"x": (1, 16, 1), "w": (4,)}])
case("STFT: a short signal", "STFT", {"x": "f 1 n 1", "s": np.array(4), "w": None, "l": np.array(8)}, [{"x": (1, 16, 1)}], [{"x": (1, 4, 1)}])
case("MaxRoiPool: regions", "MaxRoiPool", {"x": "f 1 1 4 4", "r": "f n 5"}, [{"x": (1, 1, 4, 4), "r": np.array([[0, 0, 0, 2, 2]], "f4")}], [{"x": (1, 1, 4, 4), "r": np.array([[1, 0, 0, 2, 2]], "f4")}],
     pooled_shape=[2, 2])
case("RoiAlign: batches", "RoiAlign", {"x": "f 2 1 4 4", "r": "f n 4", "i": "i m"}, [{"x": (2, 1, 4, 4), "r": ROIS, "i": ints(0, 1)}], [{"x": (2, 1, 4, 4), "r": ROIS, "i": ints(0, 2)}],
     output_height=2, output_width=2, sampling_ratio=2)
graph("SplitToSequence: sizes for a symbolic dimension", [node("SplitToSequence", ["x", "s"], ["q"], axis=0), node("ConcatFromSequence", ["q"], ["y"], axis=0)],
      {"x": "f n", "s": ints(2, 3)}, ["y"], [{"x": (5,)}], [{"x": (6,)}, {"x": (4,)}])
graph("SequenceAt: a position", [node("SequenceConstruct", ["x", "z"], ["q"]), node("SequenceAt", ["q", "p"], ["y"])], {"x": "f 3", "z": "f 3", "p": "i"}, ["y"],
      [{"x": (3,), "z": (3,), "p": np.array(-1)}], [{"x": (3,), "z": (3,), "p": np.array(2)}, {"x": (3,), "z": (3,), "p": np.array(-3)}])
case("LSTM: peepholes", "LSTM", {"x": "f 3 2 3", "w": floats(1, 16, 3), "r": floats(1, 16, 4), "b": None, "l": None, "h": None, "c": None, "p": "f 1 n"}, [{"x": (3, 2, 3), "p": (1, 12)}],
     [{"x": (3, 2, 3), "p": (1, 4)}, {"x": (3, 2, 3), "p": (1, 3)}, {"x": (3, 2, 3), "p": (1, 1)}], hidden_size=4)
case("LSTM: initial_c of another batch size", "LSTM", {"x": "f 3 b 3", "w": floats(1, 16, 3), "r": floats(1, 16, 4), "bias": None, "l": None, "h": None, "c": "f 1 m 4"},
     [{"x": (3, 2, 3), "c": (1, 2, 4)}], [{"x": (3, 2, 3), "c": (1, 1, 4)}, {"x": (3, 1, 3), "c": (1, 2, 4)}], hidden_size=4)
case("LSTM: weights at run time", "LSTM", {"x": "f 3 2 n", "w": "f 1 16 m", "r": floats(1, 16, 4)}, [{"x": (3, 2, 3), "w": (1, 16, 3)}],
     [{"x": (3, 2, 1), "w": (1, 16, 3)}, {"x": (3, 2, 3), "w": (1, 16, 1)}], hidden_size=4)
case("QLinearMatMul: scale per row", "QLinearMatMul", {"x": "u n 3", "xs": "f m", "xz": "u m", "w": np.ones((3, 4), "u1"), "ws": SCALE, "wz": ZERO, "ys": SCALE, "yz": ZERO},
     [], [{"x": (1, 3), "xs": (3,), "xz": (3,)}], outputs=["y:u1"])
case("MatMulInteger: zero point per column", "MatMulInteger", {"x": "u 2 3", "z": "u 3 n", "a": None, "b": "u m"}, [{"x": (2, 3), "z": (3, 4), "b": (4,)}],
     [{"x": (2, 3), "z": (3, 1), "b": (4,)}, {"x": (2, 3), "z": (3, 4), "b": (3,)}], outputs=["y:i4"])
case("ConvInteger: zero points of another length", "ConvInteger", {"x": "u 1 1 3 3", "w": np.ones((2, 1, 2, 2), "u1"), "a": None, "b": "u n"}, [{"x": (1, 1, 3, 3), "b": (1,)}],
     [{"x": (1, 1, 3, 3), "b": (3,)}], outputs=["y:i4"])
case("DynamicQuantizeMatMul: sizes", "DynamicQuantizeMatMul", {"x": "f 2 n", "w": np.ones((3, 4), "u1"), "s": SCALE}, [{"x": (2, 3)}], [{"x": (2, 1)}], domain="com.microsoft")
case("MatMulIntegerToFloat: a bias", "MatMulIntegerToFloat", {"x": "u 2 3", "w": np.ones((3, 4), "u1"), "xs": SCALE, "ws": SCALE, "xz": ZERO, "wz": ZERO, "b": "f n"},
     [{"x": (2, 3), "b": (4,)}], [{"x": (2, 3), "b": (1,)}, {"x": (2, 3), "b": (3,)}], domain="com.microsoft")
case("QLinearAdd: symbolic dimensions", "QLinearAdd", {"x": "u n", "xs": SCALE, "xz": ZERO, "w": "u m", "ws": SCALE, "wz": ZERO, "ys": SCALE, "yz": ZERO}, [{"x": (1,), "w": (3,)}],
     [{"x": (2,), "w": (3,)}], outputs=["y:u1"], domain="com.microsoft")
case("FusedConv: addend Z", "FusedConv", {"x": "f 1 1 3 3", "w": floats(1, 1, 2, 2), "b": None, "z": "f 1 1 n 2"}, [{"x": (1, 1, 3, 3), "z": (1, 1, 2, 2)}],
     [{"x": (1, 1, 3, 3), "z": (1, 1, 1, 2)}], domain="com.microsoft", activation="Relu")
case("FusedMatMul: sizes", "FusedMatMul", {"x": "f 2 n", "z": "f m 4"}, [{"x": (2, 3), "z": (3, 4)}], [{"x": (2, 1), "z": (3, 4)}], domain="com.microsoft")
case("FusedGemm: a larger bias", "FusedGemm", {"x": "f n 3", "z": floats(3, 4), "c": floats(3, 4)}, [{"x": (3, 3)}], [{"x": (1, 3)}], domain="com.microsoft", activation="Relu")
case("SkipSimplifiedLayerNormalization: channels", "SkipSimplifiedLayerNormalization", {"x": "f 2 3 n", "s": "f 2 3 n", "g": floats(4)}, [{"x": (2, 3, 4), "s": (2, 3, 4)}],
     [{"x": (2, 3, 1), "s": (2, 3, 1)}], domain="com.microsoft")
case("SkipLayerNormalization: a bias", "SkipLayerNormalization", {"x": "f 2 3 4", "s": "f 2 3 4", "g": floats(4), "b": None, "c": "f n"}, [{"x": (2, 3, 4), "s": (2, 3, 4), "c": (4,)}],
     [{"x": (2, 3, 4), "s": (2, 3, 4), "c": (1,)}], domain="com.microsoft")
case("EmbedLayerNormalization: segments", "EmbedLayerNormalization", {"i": "j 1 n", "s": "j 1 m", "w": floats(5, 4), "p": floats(6, 4), "t": floats(2, 4), "g": floats(4), "b": floats(4),
     "mask": None, "pos": "j 1 n"}, [], [{"i": np.array([[1, 2, 3]], "i4"), "s": np.array([[1]], "i4"), "pos": np.array([[0, 1, 2]], "i4")}], outputs=["y", "m:i4"], domain="com.microsoft")
case("com.microsoft.RotaryEmbedding: positions", "RotaryEmbedding", {"x": "f 1 n 8", "i": "i 1 m", "c": floats(5, 2), "s": floats(5, 2)}, [{"x": (1, 3, 8), "i": ints(0, 1, 4).reshape(1, 3)}],
     [{"x": (1, 3, 8), "i": ints(0).reshape(1, 1)}], domain="com.microsoft")
case("com.microsoft.Attention: a bias", "Attention", {"x": "f 1 3 8", "w": floats(8, 24), "b": "f n"}, [{"x": (1, 3, 8), "b": (24,)}], [{"x": (1, 3, 8), "b": (1,)}], domain="com.microsoft", num_heads=2)
case("MultiHeadAttention: a mask", "MultiHeadAttention", {"q": "f 1 3 8", "k": "f 1 5 8", "v": "f 1 5 8", "b": None, "m": "j 1 n"},
     [{"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8), "m": np.array([[1, 1, 0, 1, 1]], "i4")}], [{"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8), "m": np.array([[1, 1, 0]], "i4")}],
     domain="com.microsoft", num_heads=2)
case("MultiHeadAttention: past_key and past_value", "MultiHeadAttention", {"q": "f 1 3 8", "k": "f 1 3 8", "v": "f 1 3 8", "b": None, "m": None, "a": None, "pk": "f 1 2 n 4", "pv": "f 1 2 m 4"},
     [{"q": (1, 3, 8), "k": (1, 3, 8), "v": (1, 3, 8), "pk": (1, 2, 2, 4), "pv": (1, 2, 2, 4)}],
     [{"q": (1, 3, 8), "k": (1, 3, 8), "v": (1, 3, 8), "pk": (1, 2, 2, 4), "pv": (1, 2, 1, 4)}], domain="com.microsoft", outputs=["y", "k1", "v1"], num_heads=2)
case("Attention: a bool mask", "Attention", {"q": "f 1 2 a 4", "k": "f 1 2 b 4", "v": "f 1 2 b 4", "m": "b c d"},
     [{"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "m": np.ones((3, 5), "?")}],
     [{"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "m": np.ones((2, 5), "?")}, {"q": (1, 2, 1, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4), "m": np.ones((2, 5), "?")}], opset=23)
case("Attention: heads", "Attention", {"q": "f 1 n 3 4", "k": "f 1 m 5 4", "v": "f 1 m 5 4"}, [], [{"q": (1, 3, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4)}], opset=23)
case("TensorScatter: rows", "TensorScatter", {"c": "f n 5 2", "u": "f m 2 2", "i": "i k"}, [{"c": (2, 5, 2), "u": (2, 2, 2), "i": ints(0, 1)}],
     [{"c": (2, 5, 2), "u": (2, 2, 2), "i": ints(0)}, {"c": (2, 5, 2), "u": (1, 2, 2), "i": ints(0)}], opset=24)
case("Pad: mode edge, symbolic dimension", "Pad", {"x": "f n", "pads": ints(3, 3)}, [{"x": (1,)}, {"x": (4,)}], [], mode="edge")
case("MatMulNBits: K", "MatMulNBits", {"x": "f 2 n", "w": np.zeros((4, 1, 8), "u1"), "s": floats(4)}, [{"x": (2, 16)}], [{"x": (2, 1)}, {"x": (2, 15)}], domain="com.microsoft",
     K=16, N=4, bits=4, block_size=16)
case("GatherBlockQuantized: indices", "GatherBlockQuantized", {"x": np.zeros((5, 16), "u1"), "i": "i n", "s": floats(5, 1)}, [], [{"i": ints(5)}], domain="com.microsoft", block_size=16, bits=8)
case("ReverseSequence: sequence_lens for a constant batch size", "ReverseSequence", {"x": "f 3 2", "l": "i n"}, [{"x": (3, 2), "l": ints(1, 3)}], [{"x": (3, 2), "l": ints(1)}])
case("ScatterElements: five dimensions", "ScatterElements", {"x": "f 1 1 1 3 2", "i": "i 1 1 1 1 1", "u": "f 1 1 1 1 1"}, [{"x": (1, 1, 1, 3, 2), "i": ints(-1).reshape(1, 1, 1, 1, 1), "u": (1, 1, 1, 1, 1)}],
     [{"x": (1, 1, 1, 3, 2), "i": ints(-4).reshape(1, 1, 1, 1, 1), "u": (1, 1, 1, 1, 1)}, {"x": (1, 1, 1, 3, 2), "i": ints(3).reshape(1, 1, 1, 1, 1), "u": (1, 1, 1, 1, 1)}], axis=3)
case("ScatterElements: five dimensions, two blocks", "ScatterElements", {"x": "f 2 1 1 3 2", "i": "i 1 1 1 1 1", "u": "f 1 1 1 1 1"}, [{"x": (2, 1, 1, 3, 2), "i": ints(-1).reshape(1, 1, 1, 1, 1), "u": (1, 1, 1, 1, 1)}],
     [{"x": (2, 1, 1, 3, 2), "i": ints(-4).reshape(1, 1, 1, 1, 1), "u": (1, 1, 1, 1, 1)}, {"x": (2, 1, 1, 3, 2), "i": ints(3).reshape(1, 1, 1, 1, 1), "u": (1, 1, 1, 1, 1)}], axis=3)
case("GatherND: vectors", "GatherND", {"x": "f 3 2", "i": "i n 2"}, [{"x": (3, 2), "i": ints(-3, 1).reshape(1, 2)}], [{"x": (3, 2), "i": ints(-4, 1).reshape(1, 2)}, {"x": (3, 2), "i": ints(0, -3).reshape(1, 2)}])
# ---- checks of empty tensors pass, and checked values keep their known elements

NEGATIVE = np.array([-1, -2, -3], "f4")
graph("RoiAlign: a data-dependent number of regions, including 0", [node("Relu", ["t"], ["u"]), node("NonZero", ["u"], ["p"]), node("Squeeze", ["p", "zero"], ["q"]),
      node("Gather", ["r", "q"], ["rois"], axis=0), node("Gather", ["b", "q"], ["batch"], axis=0),
      node("RoiAlign", ["x", "rois", "batch"], ["y"], sampling_ratio=2, output_height=2, output_width=2)],
      {"t": "f 3", "x": "f 1 2 6 6", "r": floats(3, 4) + 2, "b": "i 3", "zero": ints(0)}, ["y"],
      [{"t": -NEGATIVE, "x": (1, 2, 6, 6), "b": ints(0, 0, 0)}, {"t": NEGATIVE, "x": (1, 2, 6, 6), "b": ints(0, 0, 0)}],
      [{"t": -NEGATIVE, "x": (1, 2, 6, 6), "b": ints(0, 1, 0)}])
graph("NonMaxSuppression: at most as many boxes as exist", [node("Shape", ["x"], ["n"]), node("Min", ["n", "most"], ["k"]), node("TopK", ["x", "k"], ["v", "i"]),
      node("Unsqueeze", ["v", "both"], ["scores"]), node("Gather", ["b", "i"], ["c"], axis=0), node("Unsqueeze", ["c", "zero"], ["boxes"]),
      node("NonMaxSuppression", ["boxes", "scores", "each", "overlap"], ["y"])],
      {"x": "f n", "b": np.array([[i, i, i + 1, i + 1] for i in range(9)], "f4"), "most": ints(5), "both": ints(0, 1), "zero": ints(0), "each": ints(2**63 - 1),
       "overlap": np.array([0.5], "f4")}, ["y:i8"], [{"x": np.arange(3, dtype="f4")}, {"x": np.arange(8, dtype="f4")}], opset=17)
