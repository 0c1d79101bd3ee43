#!/usr/bin/env python3
"""What an app meets of a package: its names, labels, sizes, images, and the systems that load it; and how the tools say so."""
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import checkers
import onnx_wire as wire
from driver import MLC, SKIPPED, expect, run, run_tests
from driver_test import FLOAT, INT64, PACKAGES, Folder, accepted, compiled, floats, ints

RUN = MLC.with_name("mlc-run")


def about(package):
    return expect(run("inspect", package, "--json"), 0).answer


def test_names_of_the_package_come_first(folder):
    model = folder.model("names.onnx", [wire.node("Relu", ["input.1"], ["out/y:0"]), wire.node("Neg", ["input.1"], ["z"])],
                         [("input.1", FLOAT, [2])], [("out/y:0", FLOAT, [2]), ("z", FLOAT, [2])])
    names = ['input_1 (from "input.1")', 'out_y_0 (from "out/y:0")', "z "]
    shown = expect(run("compile", model, "-o", folder / "out.mlpackage"), 0, *names).stdout
    assert '"z"' not in shown, shown
    for file in (model, folder / "out.mlpackage"):
        expect(run("inspect", file), 0, *names)
        expect(run("run", file), 0, *names[1:], "  out_y_0: ", "  z: ")
        answer = expect(run("run", file, "--json"), 0).answer
        assert [(o["name"], o["mil_name"]) for o in answer["outputs"]] == [("out/y:0", "out_y_0"), ("z", "z")], answer
    answer = expect(run("compile", model, "-o", folder / "out.mlpackage", "--json"), 0).answer
    assert [(i["name"], i["mil_name"]) for i in answer["inputs"]] == [("input.1", "input_1")], answer
    assert [o["mil_name"] for o in answer["outputs"]] == ["out_y_0", "z"], answer
    # An input is found under either name.
    np.save(folder / "x.npy", np.array([1, 2], "f4"))
    for name in ("input.1", "input_1"):
        expect(run("run", folder / "out.mlpackage", "--input", f"{name}={folder / 'x.npy'}"), 0, "out_y_0: 1 2")


def classifier(folder, nodes, labels, *options, name="c.onnx", shape=3):
    model = folder.model(name, nodes, [("x", FLOAT, [1, shape])], [("p", FLOAT, [1, shape])])
    (folder / "labels.txt").write_text("\n".join(labels))
    result = expect(run("compile", model, "-o", folder / "c.mlpackage", "--labels", folder / "labels.txt", *options), 0)
    return folder / "c.mlpackage", result


def test_a_classifier_shows_its_labels_and_the_name_of_its_probabilities(folder):
    nodes = [wire.node("Softmax", ["x"], ["p"], axis=1)]
    package, result = classifier(folder, nodes, ["cat", "dog", "h\u00f8ne"])
    accepted(package)
    assert "logits" not in result.stdout + result.stderr, result
    for result in (result, run("inspect", package), run("run", package)):
        expect(result, 0, 'classLabel_probs (from "p")')
    expect(run("inspect", package), 0, "labels     3: cat, dog, h\u00f8ne\n")
    assert about(package)["labels"] == ["cat", "dog", "h\u00f8ne"]
    many = [f"label {i}" for i in range(100)]
    package, result = classifier(folder, nodes, many, shape=100)
    expect(result, 0, "labels     100: label 0, ", "... 80 more")
    assert about(package)["labels"] == many


def test_a_classifier_of_logits_is_noted(folder):
    node, labels = wire.node, ["a", "b", "c"]
    axes = {"axis": 1}
    for nodes, logits in (
            ([node("Softmax", ["x"], ["p"], **axes)], False),
            ([node("Sigmoid", ["x"], ["p"])], False),
            ([node("Softmax", ["x"], ["h"], **axes), node("Transpose", ["h"], ["t"]), node("Flatten", ["t"], ["p"], axis=0)], False),
            ([node("Exp", ["x"], ["e"]), node("ReduceSum", ["e"], ["s"]), node("Div", ["e", "s"], ["p"])], False),
            ([node("Relu", ["x"], ["e"]), node("ReduceSum", ["x"], ["s"]), node("Div", ["e", "s"], ["p"])], True),
            ([node("Softmax", ["x"], ["h"], **axes), node("Sigmoid", ["x"], ["s"]), node("Mul", ["h", "s"], ["p"])], False),
            ([node("LogSoftmax", ["x"], ["p"], **axes)], True),
            ([node("Softmax", ["x"], ["h"], **axes), node("Log", ["h"], ["p"])], True),
            ([node("Relu", ["x"], ["p"])], True),
            ([node("Softmax", ["x"], ["h"], **axes), node("Add", ["h", "x"], ["p"])], True)):
        _, result = classifier(folder, nodes, labels)
        assert ("logits" in result.stderr) == logits, (nodes, result.stderr)
        if logits:
            expect(result, 0, 'note: output "p"', "classLabel_probs", "softmax")


def test_open_dimensions_stand_in_the_headline(folder):
    model = folder.linear("open.onnx", batch="n")
    shown = expect(run("compile", model, "-o", folder / "o.mlpackage"), 0).stdout.splitlines()
    assert "n in 1..4096" in shown[0], shown
    shown = expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "n=2,4"), 0).stdout.splitlines()
    assert "n in 2|4" in shown[0], shown
    shown = expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "n=2"), 0).stdout.splitlines()
    assert " in " not in shown[0] and "open" not in shown[0], shown
    answer = expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "n=2..9", "--json"), 0).answer
    assert answer["inputs"][0]["shape"] == ["n", 3] and answer["symbols"] == {"n": {"low": 2, "high": 9}}, answer


def test_targets_of_every_system(folder):
    model = folder.linear()
    for name, ios in (("tvOS15", "iOS15"), ("watchOS9", "iOS16"), ("visionOS1", "iOS17"), ("tvos18", "iOS18"),
                      ("visionOS2", "iOS18"), ("watchOS26", "iOS26"), ("visionOS26", "iOS26"), ("macOS13", "iOS16")):
        answer = expect(run("compile", model, "-o", folder / "o.mlpackage", "--target", name, "--json"), 0).answer
        assert answer["target"] == ios, (name, answer)
    for name in ("visionOS3", "watchOS12", "tvOS", "tvOS14"):
        expect(run("compile", model, "-o", folder / "o.mlpackage", f"--target={name}"), 2, "tvOS15", "visionOS1", "watchOS8")


FUNCTIONS = """func f<ios18>(state<tensor<fp16, [4, 2]>> s, state<tensor<fp16, [4, 2]>> u, tensor<fp16, [4, 2]> x) {
  t = read_state(input = s);
  y = add(x = t, y = x);
  write_state(input = s, data = y);
  v = read_state(input = u);
  z = mul(x = v, y = y);
  write_state(input = u, data = z);
} -> (z);
func g<ios18>(state<tensor<fp16, [4, 2]>> s, tensor<fp16, [4, 2]> a) {
  t = read_state(input = s);
  b = sub(x = t, y = a);
} -> (b);
func h<ios18>(tensor<fp16, [3, 2]> x) {
  y = abs(x = x);
} -> (y);
"""


def functions(folder, name="m", text=FUNCTIONS):
    (folder / f"{name}.mil").write_text(text)
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def test_inspect_shows_every_function(folder):
    package = accepted(functions(folder))
    answer = about(package)
    assert [f["name"] for f in answer["functions"]] == ["f", "g", "h"], answer["functions"]
    f, g, h = answer["functions"]
    assert [[i["mil_name"] for i in one["inputs"]] for one in (f, g, h)] == [["x"], ["a"], ["x"]], answer
    assert [[i["mil_name"] for i in one["outputs"]] for one in (f, g, h)] == [["z"], ["b"], ["y"]], answer
    assert [[i["name"] for i in one["states"]] for one in (f, g, h)] == [["s", "u"], ["s"], []], answer
    assert h["inputs"][0]["shape"] == [3, 2] and h["operators"] == {"abs": 1}, h
    assert f["operators"] == {"read_state": 2, "write_state": 2, "add": 1, "mul": 1}, f
    assert answer["operators"] == {"read_state": 3, "write_state": 2, "add": 1, "mul": 1, "sub": 1, "abs": 1}, answer
    shown = expect(run("inspect", package), 0, "functions  f, g, h").stdout
    parts = shown.split("function   ")
    assert len(parts) == 4 and parts[1].startswith("f (default)") and parts[3].startswith("h"), shown
    for part, words in ((parts[1], ("inputs     x", "states     s", " u ", "write_state")),
                        (parts[2], ("inputs     a", "outputs    b", "states     s", "sub")), (parts[3], ("[3, 2]", "abs"))):
        assert all(word in part for word in words), part


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "interface", Folder) if MLC.exists() else SKIPPED)
