#!/usr/bin/env python3
"""Tests inputs of the source that are missing in its package because they are empty, bound by --const, or not needed with
--outputs. A user may still pass them, but not with a value other than the compiled one.
"""
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests

VALUES = {"e": np.zeros((0, 3), "f4"), "x": np.array([[1, 2, 3]], "f4"), "axes": np.array([1], "i8"), "z": np.ones((1, 3), "f4"),
          "w": np.array([[2, 2, 2]], "f4")}


def prepare(folder, precision="fp32"):
    """y = sum of rows of (e and x) + w over the axes; v = x + z is not requested."""
    model, package = folder / "m.onnx", folder / "m.mlpackage"
    nodes = [wire.node("Concat", ["e", "x"], ["c"], axis=0), wire.node("Add", ["c", "w"], ["s"]),
             wire.node("ReduceSum", ["s", "axes"], ["y"], keepdims=0), wire.node("Add", ["x", "z"], ["v"])]
    types = {name: wire.INT64 if name == "axes" else wire.FLOAT for name in VALUES}
    model.write_bytes(wire.model(wire.graph(
        nodes, [wire.value_info(name, types[name], list(value.shape)) for name, value in VALUES.items()],
        [wire.value_info("y", wire.FLOAT, None), wire.value_info("v", wire.FLOAT, None)]), 17))
    for name, value in VALUES.items():
        np.save(folder / f"{name}.npy", value)
    options = ("--const", f"axes={folder / 'axes.npy'}", "--outputs", "y", "--precision", precision)
    expect(run("compile", model, "-o", package, *options), 0)
    return model, package, options


def given(folder, *names):
    return [part for name in names for part in ("--input", f"{name}={folder / name}.npy")]


def test_all_that_the_model_has_may_be_given(folder):
    model, package, options = prepare(folder)
    for what, more in ((package, ()), (model, options[:4])):
        out = folder / "out"
        expect(run("run", what, *more, *given(folder, *VALUES), "--output-dir", out), 0)
        assert np.load(out / "y.npy").tolist() == [12], np.load(out / "y.npy")
        (out / "y.npy").unlink()
    names = {port["mil_name"] for port in run("inspect", package, "--json").answer["inputs"]}
    assert names == {"x", "w"}, names


def test_another_value_is_refused(folder):
    _, package, _ = prepare(folder)
    for name, value, says in (("axes", np.array([0]), "int64 of shape [1]"), ("e", np.zeros((1, 3), "f4"), "fp32 of shape [0, 3]"),
                              ("axes", np.array([1, 1]), "fixed when the model was compiled"), ("axes", np.array([1.5]), "fixed when")):
        np.save(folder / "other.npy", value)
        expect(run("run", package, *given(folder, "x", "w"), "--input", f"{name}={folder / 'other.npy'}"), 1, f'input "{name}"', says,
               f"--const {name}=FILE" if name == "axes" else "expected: ")
    # The same value in another type is accepted; unneeded inputs may have any value.
    np.save(folder / "other.npy", np.array([1], "i4"))
    expect(run("run", package, *given(folder, "x", "w"), "--input", f"axes={folder / 'other.npy'}"), 0)
    expect(run("run", package, *given(folder, "x", "w"), "--input", f"z={folder / 'other.npy'}"), 0)
    expect(run("run", package, *given(folder, "x", "w"), "--input", f"q={folder / 'other.npy'}"), 1, 'no input "q"')


def test_folders_by_name_and_by_number(folder):
    model, package, options = prepare(folder)
    names, numbers, package_numbers, wrong = (folder / name for name in ("names", "numbers", "package_numbers", "wrong"))
    for made in (names, numbers, package_numbers, wrong):
        made.mkdir()
    for place, (name, value) in enumerate(VALUES.items()):
        np.save(names / f"{name}.npy", value)
        np.save(numbers / f"input_{place}.npy", value)
        np.save(wrong / f"{name}.npy", np.array([0]) if name == "axes" else value)
    for place, name in enumerate(("x", "w")):
        np.save(package_numbers / f"input_{place}.npy", VALUES[name])
    (folder / "reference").mkdir()
    np.save(folder / "reference" / "y.npy", np.array([12], "f4"))
    for inputs in (names, numbers, package_numbers):
        report = run("verify", model, package, *options[:4], "--inputs", inputs, "--reference", folder / "reference", "--json")
        # Input twelve has a single element: it is compared but not discriminating.
        assert "bad-input" not in report.stdout + report.stderr, report
        parity = report.answer["outputs"][0]
        assert parity["max_error"] == 0, parity
    expect(run("verify", model, package, *options[:4], "--inputs", wrong), 1, 'input "axes" was fixed')


def test_recipes(folder):
    model, _, options = prepare(folder)
    np.save(folder / "y.npy", np.array([12], "f4"))
    for name in VALUES:
        assert (folder / f"{name}.npy").exists()
    recipe = {"name": "r", "source": {"path": model.name, "sha256": hashlib.sha256(model.read_bytes()).hexdigest(), "made_by": "a test"},
              "variants": [{"name": "v", "options": list(options)}],
              "check": {"inputs": {name: f"{name}.npy" for name in VALUES}, "reference": {"y": "y.npy"}}}
    (folder / "r.json").write_text(json.dumps(recipe))
    expect(run("build", folder / "r.json", folder=folder), 0)
    np.save(folder / "axes2.npy", np.array([0]))
    recipe["check"]["inputs"]["axes"] = "axes2.npy"
    (folder / "r.json").write_text(json.dumps(recipe))
    result = run("build", folder / "r.json", "--force", folder=folder)
    assert result.code != 0 and "fixed when the model was compiled" in result.stdout + result.stderr, result


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "absent inputs"))
