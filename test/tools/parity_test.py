#!/usr/bin/env python3
"""Tests parity bundles as two users use them: one makes a bundle, the other runs a copy of it elsewhere and returns the result.
Every change on the way, even of a single byte, must be detected.
"""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import MLC, expect, run, run_tests

RUN = MLC.with_name("mlc-run")
FLOAT, INT64, BOOL = wire.FLOAT, wire.INT64, wire.BOOL
STEP = 13  # distance between the bytes of small files that are changed

STATE = """func main<ios18>(state<tensor<fp16, [4]>> s, tensor<fp16, [4]> x) {
  t = read_state(input = s);
  y = add(x = t, y = x);
  write_state(data = y, input = s);
} -> (y);
"""


def graph(path, nodes, inputs, outputs, initializers=()):
    path.write_bytes(wire.model(wire.graph(nodes, [wire.value_info(*i) for i in inputs],
                                           [wire.value_info(*o) for o in outputs], initializers)))
    return path


def weight(name, shape):
    values = (np.arange(np.prod(shape)).reshape(shape) / 7 % 1 - 0.5).astype("<f4")
    return wire.tensor(name, FLOAT, shape, values.tobytes())


def linear(folder):
    return graph(folder / "linear.onnx", [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Relu", ["h"], ["y"])],
                 [("x", FLOAT, [2, 8])], [("y", FLOAT, [2, 4])], [weight("w", [8, 4])])


def many(folder):
    """Outputs of several types, with names that are not valid file names; one of them is not discriminating."""
    return graph(folder / "many.onnx",
                 [wire.node("MatMul", ["x/in:0", "w"], ["a/b c:0"]), wire.node("TopK", ["a/b c:0", "k"], ["best", "which"]),
                  wire.node("Greater", ["a/b c:0", "zero"], ["positive"]), wire.node("Mul", ["best", "zero"], ["nothing"])],
                 [("x/in:0", FLOAT, [2, 8])], [("a/b c:0", FLOAT, [2, 4]), ("best", FLOAT, [2, 3]), ("which", INT64, [2, 3]),
                                               ("positive", BOOL, [2, 4]), ("nothing", FLOAT, [2, 3])],
                 [weight("w", [8, 4]), wire.tensor("k", INT64, [1], np.array([3], "<i8").tobytes()),
                  wire.tensor("zero", FLOAT, [], bytes(4))])


def scalar(folder):
    return graph(folder / "scalar.onnx", [wire.node("ReduceSum", ["x"], ["y"], keepdims=0)], [("x", FLOAT, ["n", 3])],
                 [("y", FLOAT, [])])


def bundle(folder, model, *options, name="bundle", verify=()):
    package = folder / (model.stem + ".mlpackage")
    expect(run("compile", model, "-o", package, *options), 0)
    expect(run("verify", model, package, "--samples", "1", "--bundle", folder / name, *verify), 0, "PASSED")
    return folder / name, package


def elsewhere(folder, source, name="elsewhere"):
    """Returns a copy in another folder; the original files are deleted."""
    copy = folder / name / "copied"
    shutil.copytree(source, copy)
    return copy


def sent_back(copy, home):
    shutil.copy(copy / "result.json", home / "result.json")
    return home / "result.json"


def flip(file, at):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def each_flip(file, step=STEP):
    """Changes one byte at a time, including the last; the file is restored at the end."""
    data = file.read_bytes()
    for at in [*range(0, len(data), step), len(data) - 1]:
        flip(file, at)
        yield at
        file.write_bytes(data)


def round_trip(folder, home):
    copy = elsewhere(folder, home)
    ran = expect(run("--bundle", copy, program=RUN, folder="/"), 0, "PASSED")
    expect(run("verify", "--result", copy / "result.json"), 0, "PASSED", "compared again here")
    expect(run("verify", "--result", copy / "result.json", "--bundle", home), 0, "PASSED", "compared again here")
    result = sent_back(copy, home)
    shown = expect(run("verify", "--result", result), 0, "PASSED")
    assert "compared again" not in shown.stdout, "there are no outputs to compare"
    assert shown.stdout.splitlines() == [line for line in ran.stdout.splitlines() if "result.json" not in line]
    assert f"written to {copy}/result.json; `mlc verify --result`" in ran.stdout, ran.stdout
    return copy


def test_a_package_is_checked_in_another_folder(folder):
    home, package = bundle(folder, linear(folder), "--precision", "fp32")
    copy = round_trip(folder, home)
    expect(run("verify", package, "--result", home / "result.json"), 0, "PASSED")
    x, y = np.load(copy / "inputs" / "x.npy"), np.load(copy / "outputs" / "y.npy")
    w = np.frombuffer((np.arange(32) / 7 % 1 - 0.5).astype("<f4").tobytes(), "<f4").reshape(8, 4)
    np.testing.assert_allclose(y, np.maximum(x @ w, 0), atol=1e-6)


def test_half_precision(folder):
    home, _ = bundle(folder, linear(folder), "--precision", "fp16", "--io", "fp16")
    copy = round_trip(folder, home)
    budget = json.loads((copy / "result.json").read_text())["budget"]
    assert budget == {"max_error": 1e-2, "rmse": "inf"}, budget
    error = expect(run("verify", "--result", copy / "result.json", "--json"), 0).answer["outputs"][0]["max_error"]
    assert 0 < error < 1e-2, error


def test_several_outputs_of_several_types(folder):
    home, _ = bundle(folder, many(folder))
    copy = round_trip(folder, home)
    types = {p.name: np.load(p).dtype.name for p in (copy / "outputs").iterdir()}
    assert types == {"a%2Fb%20c%3A0.npy": "float32", "best.npy": "float32", "which.npy": "int64", "positive.npy": "bool",
                     "nothing.npy": "float32"}, types
    shown = run("--bundle", copy, program=RUN).stdout
    assert shown.count("100.00 % equal") == 2 and shown.count("not discriminating") == 1, shown


def test_open_sizes_and_scalars(folder):
    model = scalar(folder)
    inputs = folder / "inputs"
    inputs.mkdir()
    np.save(inputs / "x.npy", np.arange(15, dtype=np.float32).reshape(5, 3))
    package = folder / "scalar.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    expect(run("verify", model, package, "--inputs", inputs, "--bundle", folder / "bundle"), 0)
    copy = round_trip(folder, folder / "bundle")
    y = np.load(copy / "outputs" / "y.npy")
    assert y.shape == () and abs(y - 105) < 0.2, y


def test_states_from_step_to_step(folder):
    (folder / "state.mil").write_text(STATE)
    package = folder / "state.mlpackage"
    expect(run("opt", folder / "state.mil", "-o", package), 0)
    expect(run("verify", folder / "state.mil", package, "--bundle", folder / "bundle"), 0)
    copy = round_trip(folder, folder / "bundle")
    total = np.zeros(4, np.float16)
    for step in "012":
        total = total + np.load(copy / "inputs" / step / "x.npy")
        for name in ("y.npy", "states/s.npy"):
            np.testing.assert_array_equal(np.load(copy / "outputs" / step / name), total)
            np.testing.assert_allclose(np.load(copy / "reference" / step / name), total, rtol=2e-3, atol=2e-3)
    flip(copy / "reference" / "2" / "states" / "s.npy", 130)
    expect(run("--bundle", copy, program=RUN), 3, "reference/2/states/s.npy")


def test_samples_have_folders(folder):
    model = linear(folder)
    package = folder / "linear.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    expect(run("verify", model, package, "--samples", "3", "--bundle", folder / "bundle"), 0)
    copy = round_trip(folder, folder / "bundle")
    inputs = [np.load(copy / "inputs" / step / "x.npy") for step in "012"]
    assert len({x.tobytes() for x in inputs}) == 3 and not (copy / "inputs" / "3").exists()
    flip(copy / "reference" / "2" / "y.npy", 130)
    expect(run("--bundle", copy, program=RUN), 3, "reference/2/y.npy")


def test_functions_have_folders(folder):
    text = "func {}<ios18>(tensor<fp32, [4]> x) {{ y = {}(x = x); }} -> (y);\n"
    (folder / "two.mil").write_text(text.format("plain", "relu") + text.format("round", "cos"))
    package = folder / "two.mlpackage"
    expect(run("opt", folder / "two.mil", "-o", package), 0)
    expect(run("verify", folder / "two.mil", package, "--samples", "1", "--bundle", folder / "bundle"), 0)
    copy = round_trip(folder, folder / "bundle")
    np.testing.assert_allclose(np.load(copy / "outputs" / "round" / "y.npy"), np.cos(np.load(copy / "inputs" / "round" / "x.npy")),
                               atol=1e-6)
    (copy / "reference" / "plain" / "y.npy").unlink()
    expect(run("--bundle", copy, program=RUN), 1, "reference/plain/y.npy")


def test_images(folder):
    model = graph(folder / "image.onnx", [wire.node("Relu", ["x"], ["y"])], [("x", FLOAT, [1, 3, 2, 5])], [("y", FLOAT, [1, 3, 2, 5])])
    home, _ = bundle(folder, model, "--image", "x=rgb,0.5,-20", verify=["--image", "x=rgb,0.5,-20"])
    copy = round_trip(folder, home)
    assert np.load(copy / "outputs" / "y.npy").std() > 1


def test_a_compiled_bundle(folder):
    model = linear(folder)
    expect(run("compile", model, "-o", folder / "linear.mlmodelc"), 0)
    expect(run("verify", model, folder / "linear.mlmodelc", "--bundle", folder / "bundle"), 0)
    copy = round_trip(folder, folder / "bundle")
    assert (copy / "linear.mlmodelc" / "model.mil").exists()


def test_outputs_computed_elsewhere_are_the_reference(folder):
    model = linear(folder)
    package = folder / "linear.mlpackage"
    expect(run("compile", model, "-o", package, "--precision", "fp32"), 0)
    (folder / "in").mkdir(), (folder / "out").mkdir()
    np.save(folder / "in" / "x.npy", np.ones((2, 8), np.float32))
    np.save(folder / "out" / "y.npy", np.arange(8, dtype=np.float32).reshape(2, 4))  # of another model
    expect(run("verify", model, package, "--inputs", folder / "in", "--reference", folder / "out", "--bundle",
               folder / "bundle"), 3, "FAILED")
    copy = elsewhere(folder, folder / "bundle")
    expect(run("--bundle", copy, program=RUN), 3, "FAIL y")
    expect(run("verify", "--result", copy / "result.json"), 3, "FAIL y")
    expect(run("verify", "--result", sent_back(copy, folder / "bundle")), 3, "FAIL y")
    answer = expect(run("--bundle", copy, "--json", program=RUN), 3).answer
    assert answer["ok"] is False and answer["outputs"][0]["within"] is False, answer


def test_one_changed_byte_of_the_bundle_fails(folder):
    home, _ = bundle(folder, linear(folder))
    copy = elsewhere(folder, home)
    weights = copy / "linear.mlpackage" / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    for file, text in ((copy / "reference" / "y.npy", "reference/y.npy"), (copy / "inputs" / "x.npy", "inputs/x.npy"),
                       (weights, "linear.mlpackage"), (copy / "parity.json", "parity.json"),
                       (weights.parents[1] / "model.mlmodel", "linear.mlpackage")):
        for at in each_flip(file, max(STEP, file.stat().st_size // 20)):
            result = run("--bundle", copy, program=RUN)
            expect(result, 3, "error[check-failed]", text, "modified", "help: copy")
            assert not (copy / "result.json").exists(), f"a result in spite of byte {at} of {file}"
    expect(run("--bundle", copy, program=RUN), 0)


def test_one_changed_byte_of_the_result_fails(folder):
    home, _ = bundle(folder, many(folder))
    copy = elsewhere(folder, home)
    expect(run("--bundle", copy, program=RUN), 0)
    for file in (sent_back(copy, home), copy / "result.json"):
        for _ in each_flip(file):
            expect(run("verify", "--result", file), 3, "error[check-failed]", "result.json", "modified since")
    for file in sorted((copy / "outputs").iterdir()):
        for _ in each_flip(file, 37):
            expect(run("verify", "--result", copy / "result.json"), 3, "error[check-failed]", f"outputs/{file.name}")
    for _ in each_flip(copy / "reference" / "which.npy", 37):
        expect(run("verify", "--result", copy / "result.json"), 3, "error[check-failed]", "reference/which.npy")
    expect(run("verify", "--result", copy / "result.json"), 0)


def test_what_is_missing_is_named(folder):
    home, _ = bundle(folder, linear(folder))
    expect(run("--bundle", folder / "nowhere", program=RUN), 1, "no parity bundle", "mlc verify")
    expect(run("--bundle", folder, program=RUN), 1, "no parity bundle", "parity.json")
    expect(run("verify", "--result", home / "result.json"), 1, "no result", "mlc-run --bundle")
    expect(run("verify", "--result", home), 1, "no result")
    for name in ("inputs/x.npy", "reference/y.npy", "linear.mlpackage", "linear.mlpackage/Data", "parity.json"):
        copy = elsewhere(folder, home, name.replace("/", "-"))
        path = copy / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        code = 3 if name.endswith("Data") else 1
        expect(run("--bundle", copy, program=RUN), code, "error[", name.split("/Data")[0], "help: ")
    copy = elsewhere(folder, home)
    expect(run("--bundle", copy, program=RUN), 0)
    (copy / "outputs" / "y.npy").unlink()
    expect(run("verify", "--result", copy / "result.json"), 1, "outputs/y.npy")


def test_cut_and_foreign_files_are_refused(folder):
    home, _ = bundle(folder, linear(folder))
    copy = elsewhere(folder, home)
    expect(run("--bundle", copy, program=RUN), 0)
    for name, command in (("result.json", lambda: run("verify", "--result", copy / "result.json")),
                          ("parity.json", lambda: run("--bundle", copy, program=RUN))):
        whole = (copy / name).read_bytes()
        for content in (b"", b"{}", b"[]", b"{", b"\xff" * 100, whole[:1], whole[:60], whole[:-1], whole + b" ", whole * 2):
            (copy / name).write_bytes(content)
            expect(command(), 3, "error[check-failed]", name, "help: ")
        (copy / name).write_bytes(whole)
    expect(run("verify", "--result", copy / "parity.json"), 1, "error[bad-file]")


def test_the_result_of_another_bundle_is_refused(folder):
    model = linear(folder)
    home, package = bundle(folder, model)
    other, _ = bundle(folder, model, name="other", verify=["--seed", "7"])
    copy, second = elsewhere(folder, home), elsewhere(folder, other, "second")
    for one in (copy, second):
        expect(run("--bundle", one, program=RUN), 0)
    # The package is the same, the inputs are not.
    expect(run("verify", "--result", sent_back(second, home)), 3, "belongs to another parity bundle", "help: ")
    expect(run("verify", "--result", second / "result.json", "--bundle", home), 3, "belongs to another parity bundle")
    expect(run("verify", "--result", second / "result.json", "--bundle", other), 0, "PASSED")
    expect(run("verify", "--result", second / "result.json", "--bundle", folder), 1, "no parity bundle")
    expect(run("compile", model, "-o", folder / "new.mlpackage", "--author", "another"), 0)
    expect(run("verify", folder / "new.mlpackage", "--result", copy / "result.json"), 3, "does not belong to package", "help: ")
    expect(run("verify", package, "--result", copy / "result.json"), 0)


def test_folders_that_are_in_the_way(folder):
    model = linear(folder)
    home, package = bundle(folder, model)
    expect(run("verify", model, package, "--bundle", home, "--seed", "3"), 0)  # the tool's own output is replaced
    (folder / "mine").mkdir()
    (folder / "mine" / "precious.txt").write_text("keep")
    expect(run("verify", model, package, "--bundle", folder / "mine"), 1, "error[file-exists]", "mine")
    assert [p.name for p in (folder / "mine").iterdir()] == ["precious.txt"]
    expect(run("verify", model, package, "--bundle", folder / "no" / "where"), 1, "error[file-io]")
    (folder / "file").write_text("keep")
    expect(run("verify", model, package, "--bundle", folder / "file"), 1, "error[file-exists]", "file")
    assert (folder / "file").read_text() == "keep"
    expect(run("--bundle", home, package, program=RUN), 2, "--bundle already supplies the model and inputs")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "parity bundles"))
