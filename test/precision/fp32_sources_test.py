"""--precision fp32 of sources that hold fp16 computes in fp32: packages agree with float64 up to the rounding of fp16 outputs."""
import pathlib
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

HALF, BOOL, INT64 = 10, 9, 7


def half(name, value):
    return wire.tensor(name, HALF, value.shape, value.astype("f2").tobytes())


def run(folder, graph, inputs):
    (folder / "model.onnx").write_bytes(wire.model(graph))
    driver.expect(driver.run("compile", folder / "model.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32", "--verify-each"), 0)
    given = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        given.append(f"--input={name}={folder}/{name}.npy")
    ran = driver.run("run", folder / "m.mlpackage", *given, "--output-dir", folder, "--json")
    driver.expect(ran, 0)
    return [np.load(output["file"]) for output in ran.answer["outputs"]]


def close(value, exact):
    assert value.dtype == np.float16, value.dtype
    assert (np.abs(value - exact) <= 2**-11 * 1.01 * np.abs(exact) + 1e-6).all(), np.abs(value - exact).max()


rng = np.random.default_rng(1)
X = rng.standard_normal((4, 64)).astype("f2")
W, V = ((rng.standard_normal((64, 64)) / 8).astype("f2") for _ in range(2))


def test_products(folder):
    nodes = [wire.node("MatMul", ["x", "w"], ["a"]), wire.node("Tanh", ["a"], ["b"]), wire.node("MatMul", ["b", "v"], ["c"]),
             wire.node("Softmax", ["c"], ["y"], axis=-1)]
    graph = wire.graph(nodes, [wire.value_info("x", HALF, [4, 64])], [wire.value_info("y", HALF, [4, 64])], [half("w", W), half("v", V)])
    exponentials = np.exp(np.tanh(X.astype("f8") @ W) @ V.astype("f8"))
    close(run(folder, graph, {"x": X})[0], exponentials / exponentials.sum(-1, keepdims=True))


def test_loop(folder):
    nodes = [wire.node("MatMul", ["a", "w"], ["b0"]), wire.node("Sin", ["b0"], ["b"]), wire.node("Identity", ["go"], ["on"]),
             wire.node("ReduceSum", ["b"], ["s"], keepdims=0)]
    matrix = [wire.value_info(name, HALF, [4, 64]) for name in "ab"]
    body = wire.graph(nodes, [wire.value_info("i", INT64, []), wire.value_info("go", BOOL, []), matrix[0]],
                      [wire.value_info("on", BOOL, []), matrix[1], wire.value_info("s", HALF, [])])
    graph = wire.graph([wire.node("Loop", ["n", "yes", "x"], ["y", "z"], body=(body,))],
                       [wire.value_info("x", HALF, [4, 64]), wire.value_info("n", INT64, [])],
                       [wire.value_info("y", HALF, [4, 64]), wire.value_info("z", HALF, None)], [half("w", W), wire.tensor("yes", BOOL, [], b"\1")])
    y = X.astype("f8")
    for _ in range(3):
        y = np.sin(y @ W)
    close(run(folder, graph, {"x": X, "n": np.array(3, "i4")})[0], y)


sys.exit(driver.run_tests(globals(), "--precision fp32 of fp16 sources"))
