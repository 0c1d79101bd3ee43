#!/usr/bin/env python3
"""Tests that a user's value is accepted if it is exactly representable in the type that the model declares, for all ways to
pass it: --const, --input, a folder for verify, a recipe. Otherwise the error names the element.
"""
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import MLC, SKIPPED, expect, parallel, run, run_tests

FLOAT, BFLOAT16 = wire.FLOAT, wire.BFLOAT16
TYPES = {name.strip("<"): number for number, (name, _) in wire.DTYPES.items()} | {"bf16": BFLOAT16}
INF, NAN = float("inf"), float("nan")
WAYS = ("const", "input", "package", "folder", "recipe")
RUN_TIME = WAYS[1:]

# Declared type, type of the file, a value that is written to element [0, 1] after a 1, text of the error ("": accepted), and
# the ways to pass it for which this holds (Core ML inputs have at most 32 bits; packages hold no infinite constants).
CASES = [
    ("i8", "f8", 1.7, "[0, 1] is 1.7, which int64 cannot represent exactly"), ("i8", "f8", 3.0, ""), ("i8", "f4", -0.0, ""),
    ("i8", "f4", NAN, "[0, 1] is nan, which int64 cannot represent"), ("i8", "f8", -INF, "[0, 1] is -inf"),
    ("i8", "f8", 2.0**63, "[0, 1] is 9.223372036854776e+18, which int64 cannot represent"), ("i8", "u8", 2**63, "[0, 1] is 9223372036854775808, which int64"),
    ("i8", "i4", -7, ""), ("i8", "?", True, ""), ("i8", "i8", 2**40, "", ("const",)),
    ("i8", "i8", 2**40, "[0, 1] is 1099511627776, which int32", RUN_TIME), ("i8", "i8", 2**63 - 1, "which int32 cannot represent", RUN_TIME),
    ("u1", "i8", 300, "[0, 1] is 300, which uint8 cannot represent"), ("u1", "i8", -1, "[0, 1] is -1, which uint8 cannot represent"),
    ("u1", "i1", -1, "[0, 1] is -1"), ("u1", "f4", 255.0, ""), ("u1", "f4", 255.5, "[0, 1] is 255.5"), ("i1", "u1", 128, "[0, 1] is 128"),
    ("i4", "i8", 2**31, "[0, 1] is 2147483648"), ("i4", "u4", 2**31, "[0, 1] is 2147483648"), ("i4", "i8", -2**31, ""),
    ("u4", "u4", 3 * 10**9, "[0, 1] is 3000000000, which int32", RUN_TIME), ("u4", "u4", 3 * 10**9, "", ("const",)),
    ("u8", "i8", -1, "[0, 1] is -1"), ("u8", "u8", 2**63, "", ("const",)), ("u8", "u8", 2**63, "which int32", RUN_TIME),
    ("f2", "f4", 70000, "[0, 1] is 70000, which fp16 cannot represent"), ("f2", "f8", 0.1, "help: convert it to fp16 at its source"), ("f2", "f4", 0.5, ""),
    ("f2", "i4", 2049, "[0, 1] is 2049, which fp16 cannot represent exactly"), ("f2", "f4", INF, "", RUN_TIME),
    ("f4", "f8", 0.1, "help: convert it to fp32 at its source"), ("f4", "f8", 0.5, ""), ("f4", "f8", 1e300, "[0, 1] is 1e+300, which fp32 cannot represent"),
    ("f4", "f8", 1e-50, "[0, 1] is 1e-50, which fp32 cannot represent exactly"), ("f4", "f8", NAN, "", RUN_TIME),
    ("f4", "i8", 2**24 + 1, "[0, 1] is 16777217"), ("f4", "i8", 2**24, ""), ("f4", "u8", 2**63, ""), ("f4", "f2", 0.1, ""),
    ("f8", "f8", 0.1, ""), ("f8", "f8", 1e300, "[0, 1] is 1e+300, which fp32 cannot represent", RUN_TIME), ("f8", "i8", 2**53 + 1, "[0, 1]"),
    ("f8", "f8", INF, "", RUN_TIME),
    ("?", "i8", 2, "[0, 1] is 2, which bool cannot represent"), ("?", "i8", 0, ""), ("?", "f4", 1.0, ""), ("?", "f4", 0.5, "[0, 1] is 0.5"),
    ("bf16", "f4", 1.5, ""), ("bf16", "f4", 0.1, "[0, 1] is 0.1, which bf16 cannot represent exactly"),
]


def save_recipe(folder, model, inputs, **check):
    recipe = {"name": "r", "source": {"path": model.name, "sha256": hashlib.sha256(model.read_bytes()).hexdigest(), "made_by": "a test"},
              "variants": [{"name": "v", "options": ["--precision", "fp32"]}], "check": {"inputs": inputs, **check}}
    (folder / "r.json").write_text(json.dumps(recipe))
    return folder / "r.json"


def write_model(folder, declared):
    """y = x + float(c), c [1, 2] of the declared type."""
    model = folder / "m.onnx"
    model.write_bytes(wire.model(wire.graph(
        [wire.node("Cast", ["c"], ["h"], to=FLOAT), wire.node("Add", ["h", "x"], ["y"])],
        [wire.value_info("x", FLOAT, [1, 2]), wire.value_info("c", TYPES[declared], [1, 2])], [wire.value_info("y", FLOAT, [1, 2])]), 19))
    return model


def check_case(folder, number, declared, of_file, value, says, ways=WAYS):
    folder = folder / str(number)
    (folder / "given").mkdir(parents=True)
    model, package = write_model(folder, declared), folder / "m.mlpackage"
    c, x, y = folder / "given" / "c.npy", folder / "given" / "x.npy", folder / "y.npy"
    with np.errstate(all="ignore"):
        array = np.array([[1, value]]).astype(of_file)
        np.save(c, array)
        np.save(x, np.zeros((1, 2), "f4"))
        np.save(y, array.astype("f4"))
        expected = array.astype("f4")
    x = ["--input", f"x={x}"]
    expect(run("compile", model, "-o", package, "--precision", "fp32"), 0)
    for way in ways:
        out = folder / way
        if way == "const":
            result = run("run", model, "--const", f"c={c}", *x, "--output-dir", out)
        elif way in ("input", "package"):
            result = run("run", model if way == "input" else package, "--input", f"c={c}", *x, "--output-dir", out)
        elif way == "folder":
            result = run("verify", model, package, "--inputs", folder / "given")
        else:
            recipe = save_recipe(folder, model, {"x": "given/x.npy", "c": "given/c.npy"}, reference={"y": "y.npy"})
            result = run("build", recipe, folder=folder)
        what = (declared, of_file, value, way, result.stdout + result.stderr)
        if says:
            assert result.code == 1 and says in result.stderr and "c" in result.stderr, what
        elif way == "folder" or way == "recipe":  # not judged: a single element may not be a discriminating reference
            assert result.code in (0, 3) and "error[" not in result.stderr, what
        else:
            assert result.code == 0 and np.array_equal(np.load(out / "y.npy"), expected, equal_nan=True), what


def test_each_value_by_each_way(folder):
    failures = []

    def one(case):
        try:
            check_case(folder, CASES.index(case), *case)
        except AssertionError as error:
            failures.append(str(error))

    parallel(one, CASES)
    assert not failures, "\n".join(failures)


def test_an_initializer_keeps_its_type(folder):
    model = folder / "m.onnx"
    model.write_bytes(wire.model(wire.graph(
        [wire.node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], [wire.value_info("x", FLOAT, [2, 3])],
        [wire.value_info("y", FLOAT, None)], [wire.tensor("axes", wire.INT64, [1], np.array([0], "<i8").tobytes())])))
    np.save(folder / "axes.npy", np.array([1.5]))
    expect(run("run", model, "--const", f"axes={folder / 'axes.npy'}"), 1, "--const axes: element [0] is 1.5, which int64")
    np.save(folder / "axes.npy", np.array([1.0]))
    expect(run("run", model, "--const", f"axes={folder / 'axes.npy'}"), 0, "y  fp32 [2]")


def test_elements_that_a_tensor_file_holds_one_by_one(folder):
    # int32_data also stores narrower types (onnx.proto, TensorProto).
    model = write_model(folder, "u1")
    for value, says in ((300, "element 1 has the value 300, which is out of range for type uint8"), (-1, "element 1 has the value -1, which is out of range for type uint8"), (255, "")):
        (folder / "c.pb").write_bytes(wire.tensor("c", wire.UINT8, [1, 2]) + wire.field(5, [1, value]))
        expect(run("run", model, "--input", f"c={folder / 'c.pb'}"), 1 if says else 0, says)
    half = write_model(folder, "f2")
    for code in (0xC000, 0xC000 - (1 << 16)):  # -2; some writers sign-extend the bits
        (folder / "c.pb").write_bytes(wire.tensor("c", wire.FLOAT16, [1, 2]) + wire.field(5, [code, code]))
        expect(run("run", half, "--const", f"c={folder / 'c.pb'}", "--output-dir", folder / "o"), 0)


def test_an_image_has_pixels_of_8_bits(folder):
    model = folder / "m.onnx"
    model.write_bytes(wire.model(wire.graph([wire.node("Neg", ["x"], ["y"])], [wire.value_info("x", FLOAT, [1, 1, 1, 2])],
                                            [wire.value_info("y", FLOAT, [1, 1, 1, 2])])))
    for value, says in ((0.5, "element [0, 1] is 0.5"), (300, "[0, 1] is 300"), (-1, "[0, 1] is -1"), (NAN, "[0, 1] is nan"), (255, "")):
        np.save(folder / "x.npy", np.array([[1, value]], "f4"))
        expect(run("run", model, "--image", "x=gray", "--input", f"x={folder / 'x.npy'}"), 1 if says else 0, says)


def test_labels_of_a_recipe_are_whole_numbers(folder):
    model = folder / "m.onnx"
    model.write_bytes(wire.model(wire.graph([wire.node("Neg", ["x"], ["y"])], [wire.value_info("x", FLOAT, [1, 2])],
                                            [wire.value_info("y", FLOAT, [1, 2])])))
    np.save(folder / "x.npy", np.array([[1, 2], [4, 3]], "f4"))
    for labels, code, says in (([0.5, 1], 1, "labels: element [0] is 0.5"), ([0.0, 1], 0, "PASSED")):
        np.save(folder / "labels.npy", np.array(labels))
        recipe = save_recipe(folder, model, {"x": "x.npy"}, accuracy={"output": "y", "labels": "labels.npy", "expected": 1})
        expect(run("build", recipe, "--force", folder=folder), code, says)


def test_a_package_of_others_takes_what_the_source_declares(folder):
    # The package does not record the declared type of the source; for verify, the source does.
    (folder / "m.mil").write_text("func main<ios16>(tensor<fp16, [4]> x) { y = relu(x = x); } -> (y);\n")
    expect(run("opt", folder / "m.mil", "-o", folder / "m.mlpackage"), 0)
    (folder / "m.onnx").write_bytes(wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], [wire.value_info("x", FLOAT, [4])],
                                                          [wire.value_info("y", FLOAT, [4])])))
    expect(run("verify", folder / "m.onnx", folder / "m.mlpackage"), 0, "ok   y")
    (folder / "given").mkdir()
    np.save(folder / "given" / "x.npy", np.array([0.1, -0.1, 0.3, 9], "f4"))
    expect(run("verify", folder / "m.onnx", folder / "m.mlpackage", "--inputs", folder / "given"), 0, "ok   y")
    np.save(folder / "given" / "x.npy", np.array([0.1, -0.1, 0.3, 70000], "f4"))
    expect(run("verify", folder / "m.onnx", folder / "m.mlpackage", "--inputs", folder / "given"), 1, "element [3] is 70000, which fp16")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "given values") if MLC.exists() else SKIPPED)
