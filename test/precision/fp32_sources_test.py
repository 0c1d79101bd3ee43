"""--precision fp32 computes in fp32 even if the source holds fp16: packages agree with float64 up to the rounding of fp16 outputs."""
import pathlib
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

HALF, FLOAT, BOOL, INT64 = 10, 1, 9, 7


def half(name, value):
    return wire.tensor(name, HALF, value.shape, value.astype("f2").tobytes())


def run(folder, graph, inputs, ran_as="m.mlpackage"):
    (folder / "model.onnx").write_bytes(wire.model(graph))
    driver.expect(driver.run("compile", folder / "model.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32", "--verify-each", "--force"), 0)
    given = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        given.append(f"--input={name}={folder}/{name}.npy")
    ran = driver.run("run", folder / ran_as, *given, "--output-dir", folder, "--json")
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


def test_rounding(folder):
    """A Cast to fp16 and back is a rounding requested by the source; the package applies it like the source."""
    nodes = [wire.node("Cast", ["x"], ["h"], to=HALF), wire.node("Cast", ["h"], ["f"], to=FLOAT), wire.node("Sub", ["f", "x"], ["y"])]
    matrix = [wire.value_info(name, FLOAT, [4, 64]) for name in "xy"]
    x = rng.standard_normal((4, 64)).astype("f4")
    x[0, 0] = 1e5
    with np.errstate(over="ignore"):
        wanted = x.astype("f2").astype("f4") - x
    for what in ("m.mlpackage", "model.onnx"):
        assert np.array_equal(run(folder, wire.graph(nodes, matrix[:1], matrix[1:], []), {"x": x}, what)[0], wanted), what
    driver.expect(driver.run("verify", folder / "model.onnx", folder / "m.mlpackage"), 0)


def test_fp16_inside(folder):
    """Inputs and outputs in fp32 around an fp16 network, as produced by keep_io_types of onnxconverter-common."""
    nodes = [wire.node("Cast", ["x"], ["h"], to=HALF), wire.node("MatMul", ["h", "w"], ["a"]), wire.node("Tanh", ["a"], ["b"]),
             wire.node("Cast", ["b"], ["y"], to=FLOAT)]
    matrix = [wire.value_info(name, FLOAT, [4, 64]) for name in "xy"]
    run(folder, wire.graph(nodes, matrix[:1], matrix[1:], [half("w", W)]), {"x": X.astype("f4")})
    driver.expect(driver.run("verify", folder / "model.onnx", folder / "m.mlpackage", "--budget", "fp32"), 0)


def test_statistics(folder):
    """LayerNormalization's mean and inverse deviation are fp32 for fp16 inputs: the type constraint U, with stash_type of 1."""
    nodes = [wire.node("LayerNormalization", ["x", "s"], ["y", "mean", "inverse"])]
    outputs = [wire.value_info("y", HALF, [4, 64]), *(wire.value_info(name, FLOAT, [4, 1]) for name in ("mean", "inverse"))]
    graph = wire.graph(nodes, [wire.value_info("x", HALF, [4, 64])], outputs, [half("s", np.ones(64))])
    x = X.astype("f8")
    for what in ("m.mlpackage", "model.onnx"):
        _, mean, inverse = run(folder, graph, {"x": X}, what)
        assert mean.dtype == inverse.dtype == np.float32, (what, mean.dtype, inverse.dtype)
        assert np.allclose(mean, x.mean(-1, keepdims=True), atol=1e-6) and np.allclose(inverse, (x.var(-1, keepdims=True) + 1e-5)**-0.5), what


sys.exit(driver.run_tests(globals(), "--precision fp32 of fp16 sources"))
