#!/usr/bin/env python3
"""Sizes that may be 0, and symbols that belong to one function.

A symbol is at least 1. What takes a size that may be 0 for a symbol of its own turns max(size, 1) into the size, and says of
nothing that it is one: every case has an output that counts max(size, 1) ones, and one that asks whether the size is 0.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests

FLOAT, INT64, BOOL = wire.FLOAT, wire.INT64, wire.BOOL


def ints(name, values):
    array = np.asarray(values, "<i8")
    return wire.tensor(name, INT64, array.shape, array.tobytes())


CONSTANTS = [ints("zero", 0), ints("one", 1), ints("zeros", [0]), ints("ones", [1]), ints("last", [-1]),
             ints("far", [1 << 62]), wire.tensor("true", BOOL, [], b"\1")]
ONE = wire.tensor("value", FLOAT, [1], np.ones(1, "<f4").tobytes())


def count(x, prefix=""):
    """Nodes that make PREFIXcount, the number of elements that x has, or would have with 1 for 0, and PREFIXempty."""
    p = prefix
    return [wire.node("Shape", [x], [p + "shape"]), wire.node("Max", [p + "shape", "ones"], [p + "most"]),
            wire.node("ConstantOfShape", [p + "most"], [p + "filled"], value=ONE),
            wire.node("ReduceSum", [p + "filled"], [p + "count"], keepdims=0),
            wire.node("ReduceMin", [p + "shape"], [p + "least"], keepdims=0),
            wire.node("Equal", [p + "least", "zero"], [p + "is"]),
            wire.node("Cast", [p + "is"], [p + "empty"], to=INT64)]


COUNTED = [("count", FLOAT, []), ("empty", INT64, [])]


def both(folder, model, inputs, expected):
    """The model and its package, with these inputs, give these outputs."""
    package = folder / "out.mlpackage"
    expect(run("compile", model, "-o", package, "--force", "--precision", "fp32", "--verify-each"), 0)
    options = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        options += ["--input", f"{name}={folder / name}.npy"]
    for what in (model, package):
        out = folder / "out"
        expect(run("run", what, *options, "--output-dir", out), 0)
        for name, value in expected.items():
            got = np.load(out / f"{name}.npy")
            assert np.array_equal(got, value), f"{what.name}: {name} is {got.tolist()}, not {value}"


def write(folder, nodes, inputs, outputs, initializers=(), opset=13):
    model = folder / "model.onnx"
    graph = wire.graph(nodes, [wire.value_info(*i) for i in inputs], [wire.value_info(*o) for o in outputs],
                       [*CONSTANTS, *initializers])
    model.write_bytes(wire.model(graph, opset=opset))
    return model


def shrinking_loop(joined=True):
    """acc = acc[1:], with `count` of acc before that as what is joined."""
    body = wire.graph([*count("acc"), wire.node("Slice", ["acc", "ones", "far"], ["next"]),
                       wire.node("Identity", ["go"], ["still"])],
                      [wire.value_info("i", INT64, []), wire.value_info("go", BOOL, []), wire.value_info("acc", FLOAT, None)],
                      [wire.value_info("still", BOOL, []), wire.value_info("next", FLOAT, None),
                       *([wire.value_info("count", FLOAT, [])] if joined else [])], name="body")
    outputs = ["acc_out", "counts"] if joined else ["acc_out"]
    return wire.node("Loop", ["M", "true", "x"], outputs, body=(body,))


# Expected values: by hand, from ONNX's definition of the operators.

def test_a_loop_whose_tensor_shrinks_to_nothing(folder):
    model = write(folder, [shrinking_loop()], [("x", FLOAT, [3]), ("M", INT64, [])],
                  [("counts", FLOAT, None), ("acc_out", FLOAT, None)])
    both(folder, model, {"x": np.ones(3, "f4"), "M": np.int64(4)}, {"counts": [3, 2, 1, 1], "acc_out": []})
    both(folder, model, {"x": np.ones(3, "f4"), "M": np.int64(1)}, {"counts": [3], "acc_out": [1, 1]})


def test_what_a_loop_leaves(folder):
    model = write(folder, [shrinking_loop(joined=False), *count("acc_out")], [("x", FLOAT, ["n"]), ("M", INT64, [])], COUNTED)
    x = np.ones(3, "f4")
    both(folder, model, {"x": x, "M": np.int64(4)}, {"count": 1, "empty": 1})
    both(folder, model, {"x": x, "M": np.int64(3)}, {"count": 1, "empty": 1})
    both(folder, model, {"x": x, "M": np.int64(2)}, {"count": 1, "empty": 0})
    both(folder, model, {"x": x, "M": np.int64(0)}, {"count": 3, "empty": 0})


def test_a_loop_that_joins_no_times(folder):
    body = wire.graph([wire.node("Identity", ["go"], ["still"]), wire.node("Identity", ["x"], ["y"])],
                      [wire.value_info("i", INT64, []), wire.value_info("go", BOOL, [])],
                      [wire.value_info("still", BOOL, []), wire.value_info("y", FLOAT, None)], name="body")
    model = write(folder, [wire.node("Loop", ["M", "true"], ["ys"], body=(body,)),
                           wire.node("Shape", ["ys"], ["sizes"]), wire.node("Slice", ["sizes", "zeros", "ones"], ["times"]),
                           wire.node("ConstantOfShape", ["times"], ["each"], value=ONE), *count("each")],
                  [("x", FLOAT, [2]), ("M", INT64, [])], COUNTED)
    for trips, expected in ((0, {"count": 1, "empty": 1}), (3, {"count": 3, "empty": 0})):
        both(folder, model, {"x": np.ones(2, "f4"), "M": np.int64(trips)}, expected)


def test_a_list_of_tensors_of_no_elements(folder):
    """A loop that may stop early joins a list; its tensors have the size of x without one element."""
    body = wire.graph([wire.node("Less", ["i", "M"], ["still"]), wire.node("Slice", ["x", "ones", "far"], ["y"])],
                      [wire.value_info("i", INT64, []), wire.value_info("go", BOOL, [])],
                      [wire.value_info("still", BOOL, []), wire.value_info("y", FLOAT, None)], name="body")
    model = write(folder, [wire.node("Loop", ["", "true"], ["ys"], body=(body,)),
                           wire.node("Shape", ["ys"], ["sizes"]), wire.node("Slice", ["sizes", "ones", "far"], ["width"]),
                           wire.node("ConstantOfShape", ["width"], ["each"], value=ONE), *count("each")],
                  [("x", FLOAT, ["n"]), ("M", INT64, [])], COUNTED)
    for size, expected in ((1, {"count": 1, "empty": 1}), (4, {"count": 3, "empty": 0})):
        both(folder, model, {"x": np.ones(size, "f4"), "M": np.int64(1)}, expected)


def test_branches_of_unlike_sizes(folder):
    yes = wire.graph([wire.node("Slice", ["x", "ones", "far"], ["a"])], [], [wire.value_info("a", FLOAT, None)], name="yes")
    no = wire.graph([wire.node("Concat", ["x", "x"], ["b"], axis=0)], [], [wire.value_info("b", FLOAT, None)], name="no")
    model = write(folder, [wire.node("If", ["p"], ["y"], then_branch=(yes,), else_branch=(no,)), *count("y")],
                  [("x", FLOAT, ["n"]), ("p", BOOL, [])], COUNTED)
    x = np.ones(1, "f4")
    both(folder, model, {"x": x, "p": np.bool_(True)}, {"count": 1, "empty": 1})
    both(folder, model, {"x": x, "p": np.bool_(False)}, {"count": 2, "empty": 0})


def empties():
    """Name, nodes that make y of x [4] and k [1], inputs for nothing and for something, and how much that is."""
    x = np.array([3, 0, 0, 5], "f4")
    nothing, something = np.zeros(4, "f4"), x
    two = np.array([2], "i8")
    none = np.array([0], "i8")
    yield "NonZero", [wire.node("NonZero", ["x"], ["at"]), wire.node("Squeeze", ["at", "zeros"], ["y"])], \
        (nothing, two), (something, two), 2
    yield "Compress", [wire.node("Cast", ["x"], ["c"], to=BOOL), wire.node("Compress", ["x", "c"], ["y"], axis=0)], \
        (nothing, two), (something, two), 2
    yield "TopK", [wire.node("TopK", ["x", "k"], ["y", "at"])], (x, none), (x, two), 2
    yield "Slice", [wire.node("Slice", ["x", "zeros", "k"], ["y"])], (x, none), (x, two), 2
    yield "Range", [wire.node("Squeeze", ["k"], ["scalar"]), wire.node("Range", ["zero", "scalar", "one"], ["y"])], \
        (x, none), (x, two), 2
    yield "ConstantOfShape", [wire.node("ConstantOfShape", ["k"], ["y"], value=ONE)], (x, none), (x, two), 2
    yield "Tile", [wire.node("Tile", ["x", "k"], ["y"])], (x, none), (x, two), 8
    yield "Split of a sequence", [
        wire.node("Slice", ["x", "zeros", "k"], ["part"]), wire.node("SequenceConstruct", ["part", "part"], ["s"]),
        wire.node("ConcatFromSequence", ["s"], ["y"], axis=0)], (x, none), (x, two), 4


def test_operators_that_may_give_nothing(folder):
    for name, nodes, nothing, something, size in empties():
        model = write(folder, [*nodes, *count("y")], [("x", FLOAT, [4]), ("k", INT64, [1])], COUNTED)
        for (x, k), expected in ((nothing, {"count": 1, "empty": 1}), (something, {"count": size, "empty": 0})):
            try:
                both(folder, model, {"x": x, "k": k}, expected)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


def test_scan_of_nothing(folder):
    body = wire.graph([wire.node("Add", ["s", "e"], ["t"]), wire.node("Identity", ["e"], ["f"])],
                      [wire.value_info("s", FLOAT, []), wire.value_info("e", FLOAT, [])],
                      [wire.value_info("t", FLOAT, []), wire.value_info("f", FLOAT, [])], name="body")
    model = write(folder, [wire.node("Slice", ["x", "zeros", "k"], ["part"]), wire.node("ReduceSum", ["x"], ["start"], keepdims=0),
                           wire.node("Scan", ["start", "part"], ["sum", "y"], body=(body,), num_scan_inputs=1), *count("y")],
                  [("x", FLOAT, [4]), ("k", INT64, [1])], [*COUNTED, ("sum", FLOAT, [])])
    x = np.ones(4, "f4")
    both(folder, model, {"x": x, "k": np.array([0])}, {"count": 1, "empty": 1, "sum": 4})
    both(folder, model, {"x": x, "k": np.array([3])}, {"count": 3, "empty": 0, "sum": 7})


TWO = """[symbols = {{x in {}}}]
func main<ios18>(tensor<fp32, [x, 2]> a) {{
  tensor<fp32, [x, 2]> b = relu(x = a);
}} -> (b);
[symbols = {{x in {}}}]
func other<ios18>(tensor<fp32, [x, 2]> a) {{
  tensor<fp32, [2*x, 2]> b = concat(axis = 0, interleave = false, values = (a, a));
}} -> (b);
"""


def test_functions_have_symbols_of_their_own(folder):
    for ranges in (("1..4", "8..16"), ("2..16", "2..4"), ("2|4", "3|9"), ("2..5", "3|9")):
        text = TWO.format(*ranges)
        source, package = folder / "two.mil", folder / "two.mlpackage"
        source.write_text(text)
        expect(run("opt", source, "-o", package, "--verify-each", "--check-each", "0"), 0)
        read = expect(run("opt", package, "--passes", "", "--inline"), 0).stdout
        assert text in read, f"{ranges}: {read}"
        low, high = ranges[0].replace("|", "..").split("..")
        listed = f"one of [{low}, 2], [{high}, 2]" if "|" in ranges[0] else f"x in {ranges[0]}"
        expect(run("inspect", package), 0, listed)
        for size, code in ((int(low), 0), (int(high), 0), (int(high) + 1, 1)):
            np.save(folder / "a.npy", np.ones((size, 2), "f4"))
            expect(run("run", package, "--input", f"a={folder / 'a.npy'}"), code)


def slices(folder, times):
    names = ["x", *(f"y{i}" for i in range(times))]
    return write(folder, [wire.node("Slice", [a, "zeros", "last", "last"], [b]) for a, b in zip(names, names[1:])],
                 [("x", FLOAT, [2, "n"])], [(names[-1], FLOAT, None)])


def test_slices_of_an_open_size_stay_small(folder):
    model = slices(folder, 8)
    # From 9 on, the smallest size of which something is left.
    for option in ([], ["--dim", "n=16..64"], ["--dim", "n=7..64"]):
        shown = expect(run("inspect", model, "--mil", *option), 0).stdout
        assert "[2, n - 8]> y7 =" in shown, shown
    shown = expect(run("inspect", model, "--mil", "--outputs", "y6", "--dim", "n=7..64"), 0).stdout
    assert "[2, n - 7]> y6 =" in shown, shown
    expect(run("compile", model, "-o", folder / "out.mlpackage", "--dim", "n=16..64", "--verify-each"), 0)
    for size in (16, 40):
        x = np.arange(2 * size, dtype="f4").reshape(2, size)
        np.save(folder / "x.npy", x)
        for what in (model, folder / "out.mlpackage"):
            expect(run("run", what, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out"), 0)
            assert np.array_equal(np.load(folder / "out" / "y7.npy"), x[:, :-8])


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "symbols"))
