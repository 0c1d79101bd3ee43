#!/usr/bin/env python3
"""Tests `mlc extract`: parts of ONNX models, packages and MIL text compute what the whole model computes; names, files and cuts that
are refused."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests

BATCH, WIDTH = 2, 3


def floats(name, values):
    array = np.asarray(values, "<f4")
    return wire.tensor(name, wire.FLOAT, array.shape, array.tobytes())


def model(folder, name="model.onnx", batch=BATCH, external=None):
    """m = x @ w, r = relu(m), s = r + z, y = softmax(s), t = tanh(r); only x, z, y and t have declared types."""
    weight = np.arange(12).reshape(WIDTH, 4) / 7 - 0.5
    w = floats("w", weight)
    if external:
        (folder / external).write_bytes(bytes(64) + weight.astype("<f4").tobytes())
        w = wire.tensor("w", wire.FLOAT, [WIDTH, 4], external={"location": external, "offset": 64, "length": 48})
    nodes = [wire.node("MatMul", ["x", "w"], ["m"]), wire.node("Relu", ["m"], ["r"]), wire.node("Add", ["r", "z"], ["s"]),
             wire.node("Softmax", ["s"], ["y"], axis=1), wire.node("Tanh", ["r"], ["t"])]
    graph = wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [batch, WIDTH]), wire.value_info("z", wire.FLOAT, [batch, 4])],
                       [wire.value_info("y", wire.FLOAT, [batch, 4]), wire.value_info("t", wire.FLOAT, [batch, 4])], [w])
    (folder / name).write_bytes(wire.model(graph))
    return folder / name


def values(folder, path, outputs=(), **inputs):
    """Returns {output: array} of a run."""
    arguments = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    if outputs:
        arguments += ["--outputs", ",".join(outputs)]
    out = folder / f"values-{path.name}"
    expect(run("run", path, *arguments, "--output-dir", out), 0)
    return {file.stem: np.load(file) for file in out.glob("*.npy")}


def ports(path):
    answer = expect(run("inspect", path, "--json"), 0).answer
    return [i["name"] for i in answer["inputs"]], [o["name"] for o in answer["outputs"]]


def check_halves(folder, source, ending):
    """Cuts a model at r and compares the halves with the whole."""
    x, z = np.random.default_rng(1).normal(size=(2, 2, 4)).astype("f4")
    x = x[:, :WIDTH].copy()
    whole = values(folder, source, x=x, z=z)
    first, second = folder / f"first{ending}", folder / f"second{ending}"
    result = expect(run("extract", source, "--outputs", "r", "-o", first, "--json"), 0)
    assert result.answer["operations"] == 2 and result.answer["inputs"] == ["x"], result.answer
    expect(run("extract", source, "--inputs", "r,z", "--outputs", "t,y", "-o", second), 0, "3 of 5 operations", "r, z", "t, y")
    assert ports(first) == (["x"], ["r"]), ports(first)
    r = values(folder, first, x=x)["r"]
    found = values(folder, second, r=r, z=z)
    assert set(found) == {"t", "y"}, found
    for name, array in found.items():
        assert np.array_equal(array, whole[name]), (name, array, whole[name])


def test_halves_of_an_onnx_model_compute_the_whole(folder):
    check_halves(folder, model(folder), ".onnx")


def test_halves_of_text_compute_the_whole(folder):
    text = folder / "model.mil"
    expect(run("opt", model(folder), "--passes", "", "-o", text), 0)
    check_halves(folder, text, ".mil")


def test_halves_of_a_package_compute_the_whole(folder):
    package = folder / "model.mlpackage"
    expect(run("opt", model(folder), "--passes", "", "-o", package), 0)
    check_halves(folder, package, ".mlpackage")
    check_halves(folder, package, ".mil")


def test_a_part_keeps_symbolic_sizes(folder):
    part = folder / "part.onnx"
    expect(run("extract", model(folder, batch="n"), "--inputs", "m", "--outputs", "t", "-o", part), 0)
    answer = expect(run("inspect", part, "--json"), 0).answer
    assert answer["inputs"][0]["shape"] == ["n", 4], answer["inputs"]


def test_a_part_of_a_flexible_package(folder):
    package, part = folder / "m.mlpackage", folder / "part.mlpackage"
    expect(run("compile", model(folder, batch="n"), "-o", package, "--precision", "fp32", "--dim", "n=1..8"), 0)
    names = expect(run("opt", package, "--passes", ""), 0).stdout
    relu = next(line.split(" = relu(")[0].split()[-1] for line in names.splitlines() if " = relu(" in line)
    expect(run("extract", package, "--inputs", relu, "--outputs", "t", "-o", part), 0)
    t = values(folder, part, **{relu: np.full((5, 4), 0.5, "f4")})["t"]
    assert t.shape == (5, 4) and np.allclose(t, np.tanh(0.5), atol=1e-6), t


def test_source_names_of_a_package(folder):
    graph = wire.graph([wire.node("Relu", ["in/put:0"], ["h"]), wire.node("Tanh", ["h"], ["out/put:0"])],
                       [wire.value_info("in/put:0", wire.FLOAT, [2])], [wire.value_info("out/put:0", wire.FLOAT, [2])])
    (folder / "m.onnx").write_bytes(wire.model(graph))
    expect(run("compile", folder / "m.onnx", "-o", folder / "m.mlpackage"), 0)
    for name in ("out/put:0", "out_put_0"):
        answer = expect(run("extract", folder / "m.mlpackage", "--outputs", name, "-o", folder / "p.mlpackage", "--json"), 0).answer
        assert answer["outputs"] == ["out_put_0"], answer
    assert ports(folder / "p.mlpackage") == ports(folder / "m.mlpackage")


def test_external_data_is_carried_inside(folder):
    part = folder / "elsewhere" / "part.onnx"
    part.parent.mkdir()
    expect(run("extract", model(folder, external="w.bin"), "--outputs", "r", "-o", part), 0)
    whole = model(folder, "plain.onnx")
    x = np.ones((BATCH, WIDTH), "f4")
    assert np.array_equal(values(folder, part, x=x)["r"], values(folder, whole, ["r"], x=x)["r"])
    assert [file.name for file in part.parent.iterdir()] == ["part.onnx"]
    (folder / "w.bin").unlink()
    expect(run("extract", folder / "model.onnx", "--outputs", "r", "-o", part), 1, "error[external-data]", "w.bin")
    # The second half does not need the weight.
    expect(run("extract", folder / "model.onnx", "--inputs", "r", "--outputs", "t", "-o", part), 0)


def test_types_that_only_mlc_infers(folder):
    for op, code in (("Gelu", 0), ("Bogus", 1)):
        nodes = [wire.node(op, ["x"], ["g"], domain="com.microsoft"), wire.node("Tanh", ["g"], ["y"])]
        graph = wire.graph(nodes, [wire.value_info("x", wire.FLOAT, ["n", 3])], [wire.value_info("y", wire.FLOAT, None)])
        (folder / "m.onnx").write_bytes(wire.model(graph))
        result = run("extract", folder / "m.onnx", "--inputs", "g", "--outputs", "y", "-o", folder / "p.onnx")
        expect(result, code, *['type of value "g" is unknown'] * code)
        if code == 0:
            shape = expect(run("inspect", folder / "p.onnx", "--json"), 0).answer["inputs"][0]["shape"]
            assert shape == ["n", 3], shape


def test_names_that_cannot_be_cut(folder):
    path, out = model(folder), folder / "o.onnx"
    expect(run("extract", path, "--outputs", "yy", "-o", out), 1, "error[bad-name]", 'no value "yy"', '"y"')
    expect(run("extract", path, "--inputs", "q", "--outputs", "y", "-o", out), 1, "error[bad-name]", 'no value "q"')
    expect(run("extract", path, "--inputs", "r", "--outputs", "y", "-o", out), 1, 'output "y" depends on input "z"')
    expect(run("extract", path, "--inputs", "r", "--outputs", "r", "-o", out), 1, "both an input and an output")
    expect(run("extract", path, "--outputs", "x", "-o", out), 1, 'value "x" cannot be both')
    assert not out.exists()


def test_values_of_subgraphs_cannot_be_cut(folder):
    branches = [wire.graph([wire.node(op, ["x"], [name])], [], [wire.value_info(name, wire.FLOAT, [2])])
                for op, name in (("Neg", "inner"), ("Abs", "other"))]
    node = wire.node("If", ["c"], ["y"], then_branch=(branches[0],), else_branch=(branches[1],))
    graph = wire.graph([node], [wire.value_info("c", wire.BOOL, []), wire.value_info("x", wire.FLOAT, [2])],
                       [wire.value_info("y", wire.FLOAT, [2])])
    (folder / "m.onnx").write_bytes(wire.model(graph))
    expect(run("opt", folder / "m.onnx", "--passes", "", "-o", folder / "m.mil"), 0)
    expect(run("extract", folder / "m.onnx", "--outputs", "inner", "-o", folder / "o.onnx"), 1, "inside a nested block")
    text = (folder / "m.mil").read_text()
    inner = next(line.split(" = abs(")[0].split()[-1] for line in text.splitlines() if " = abs(" in line)
    expect(run("extract", folder / "m.mil", "--outputs", inner, "-o", folder / "o.mil"), 1, "inside a nested block")


def test_bad_arguments(folder):
    path = model(folder)
    expect(run("extract", path, "-o", folder / "o.onnx"), 2, "--outputs")
    expect(run("extract", path, "--outputs", "y"), 2, "-o")
    expect(run("extract", path, "--outputs", "y", "-o", folder / "o.mil"), 2, ".onnx")
    before = path.read_bytes()
    expect(run("extract", path, "--outputs", "y", "-o", path), 1, "error[overwrites-input]")
    assert path.read_bytes() == before
    expect(run("extract", path, "--outputs", "y", "-o", folder / "no" / "o.onnx"), 1, "error[file-io]")
    expect(run("extract", path, "--outputs", "y", "--function", "f", "-o", folder / "o.onnx"), 1, 'no function "f"', '"main"')
    (folder / "m.gguf").write_bytes(b"GGUF" + bytes(64))
    expect(run("extract", folder / "m.gguf", "--outputs", "y", "-o", folder / "o.onnx"), 2, "cannot be edited")
    errors = expect(run("extract", path, "--outputs", "yy", "-o", folder / "o.onnx", "--json"), 1).errors
    assert errors[0]["id"] == "bad-name", errors
    package = folder / "m.mlpackage"
    expect(run("compile", path, "-o", package), 0)
    expect(run("extract", package, "--outputs", "y", "-o", package), 1, "error[overwrites-input]")


def test_one_function_of_a_package(folder):
    (folder / "m.mil").write_text("""program(1.3)
{
    func a<ios18>(tensor<fp32, [2]> x) {
            tensor<fp32, [2]> p = relu(x = x);
            tensor<fp32, [2]> y = tanh(x = p);
        } -> (y);
    func b<ios18>(tensor<fp32, [2]> x) {
            tensor<fp32, [2]> q = exp(x = x);
            tensor<fp32, [2]> y = tanh(x = q);
        } -> (y);
}""")
    package = folder / "m.mlpackage"
    expect(run("opt", folder / "m.mil", "--passes", "", "-o", package), 0)
    expect(run("extract", package, "--function", "b", "--outputs", "q", "-o", folder / "q.mlpackage"), 0, "1 of 4 operations")
    assert ports(folder / "q.mlpackage") == (["x"], ["q"])
    expect(run("extract", package, "--function", "a", "--outputs", "q", "-o", folder / "o.mlpackage"), 1, 'no value "q"')


def test_a_constant_operand_cannot_become_an_input(folder):
    (folder / "m.mil").write_text("""program(1.0)
{
    func main<ios17>(tensor<fp32, [2, 3]> x) {
            tensor<int32, [2]> order = const()[name = tensor<string, []>("order"), val = tensor<int32, [2]>([1, 0])];
            tensor<fp32, [3, 2]> y = transpose(perm = order, x = x);
        } -> (y);
}""")
    expect(run("extract", folder / "m.mil", "--inputs", "x,order", "--outputs", "y", "-o", folder / "o.mil"), 1, "error[bad-operand]",
           "perm")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "extract"))
