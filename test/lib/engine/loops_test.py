"""Tests that loop-carried values are updated in place: twice the iterations take about twice the time, whatever is joined."""
import pathlib
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2])]
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

WIDTH = 2000


def loop(folder):
    """Joins WIDTH numbers in each iteration."""
    nodes = [wire.node("Neg", ["a"], ["b"]), wire.node("Identity", ["go"], ["on"]), wire.node("Identity", ["b"], ["s"])]
    vector = [wire.value_info(name, 1, [WIDTH]) for name in ("a", "b", "s")]
    body = wire.graph(nodes, [wire.value_info("i", 7, []), wire.value_info("go", 9, []), vector[0]], [wire.value_info("on", 9, []), *vector[1:]])
    end = [wire.node("Loop", ["n", "yes", "x"], ["y", "all"], body=(body,)), wire.node("ReduceSum", ["all"], ["sum"], keepdims=0)]
    graph = wire.graph(end, [wire.value_info("n", 7, []), wire.value_info("x", 1, [WIDTH])], [wire.value_info("y", 1, [WIDTH]), wire.value_info("sum", 1, [])],
                       [wire.tensor("yes", 9, [], b"\1")])
    (folder / "loop.onnx").write_bytes(wire.model(graph))
    np.save(folder / "x.npy", np.arange(WIDTH, dtype="f4"))
    driver.expect(driver.run("compile", folder / "loop.onnx", "-o", folder / "loop.mlpackage", "--precision", "fp32"), 0)


def seconds(folder, trips):
    np.save(folder / "n.npy", np.array(trips, "i4"))
    ran = driver.run("run", folder / "loop.mlpackage", f"--input=n={folder}/n.npy", f"--input=x={folder}/x.npy", "--output-dir", folder,
                     "--json", timeout=300)
    driver.expect(ran, 0)
    x = np.arange(WIDTH, dtype="f4")
    assert np.array_equal(np.load(folder / "y.npy"), x if trips % 2 == 0 else -x)
    assert np.load(folder / "sum.npy") == (0 if trips % 2 == 0 else -x.sum())
    return ran.answer["phases_ms"]["predict"] / 1e3


def test_time_is_linear_in_iterations(folder):
    """Copies would take 64 times as long: 2,000 of 16 MB instead of 250 of 2 MB."""
    loop(folder)
    few, many = (min(seconds(folder, trips) for _ in range(2)) for trips in (250, 2000))
    assert many < 24 * few + 0.1, f"{few:.3f} s for 250 iterations, {many:.3f} s for 2000"


sys.exit(driver.run_tests(globals(), "loops in the engine"))
