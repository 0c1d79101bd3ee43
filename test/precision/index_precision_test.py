#!/usr/bin/env python3
"""Values that become indices: a plain cast to fp16 selects other rows of a table, default packages select the same ones.

Expected values are computed by NumPy in float64; even fp32 occasionally differs by one step. NumPy also computes the plain cast:
every result of an operation is rounded to fp16. Each model exists with few elements, which stay in fp32 before an output, and with
more than 16,384, which do not.
"""
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
from precision.graphs import Graph  # noqa: E402

ROWS = 4096
BY_PLAIN_CAST, BY_FP32 = 0.15, 2e-3  # share of changed results: minimum for the plain cast, maximum for fp32
WIDTH = 128
INT64 = 7


def places(g, rows):
    """Numbers from 0 to 4095, after two products."""
    def noise(seed, *shape):
        return np.random.default_rng(seed).standard_normal(shape)

    def product(x, seed):
        return g.op("MatMul", x, g.constant(noise(seed, WIDTH, WIDTH) / np.sqrt(WIDTH)))

    x = g.op("Sigmoid", product(g.input("x", noise(1, rows, WIDTH)), 2))
    return g.op("Mul", g.op("Transpose", x, perm=[1, 0]), g.constant(float(ROWS - 1)))


def gathered(g, steps):
    table = g.constant(np.random.default_rng(4).permutation(ROWS) / ROWS)
    return g.op("Gather", table, g.op("Cast", steps, to=INT64), axis=0)


CASES = {
    "Floor": lambda g, x: gathered(g, g.op("Floor", x)),
    "Ceil": lambda g, x: gathered(g, g.op("Ceil", x)),
    "Round": lambda g, x: gathered(g, g.op("Round", x)),
    "Cast": gathered,
    "Mod": lambda g, x: g.op("Mod", x, g.constant(1.0), fmod=1),
    "x - Floor(x)": lambda g, x: g.op("Sub", x, g.op("Floor", x)),
}


def others(answer, exact):
    return np.mean(~(np.abs(answer - exact) <= 1e-2 * np.ptp(exact)))


def failure(folder, name, build, rows):
    g = Graph()
    y = build(g, places(g, rows))
    model, package, given = folder / "m.onnx", folder / "m.mlpackage", folder / "x.npy"
    g.write(model, y)
    np.save(given, g.feeds["x"])
    driver.expect(driver.run("compile", model, "-o", package, "--force", timeout=120), 0)
    driver.expect(driver.run("run", package, "--input", f"x={given}", "--output-dir", folder, timeout=120), 0)
    found, plain = others(np.load(folder / f"{y.name}.npy"), y.exact), others(y.half, y.exact)
    if plain >= BY_PLAIN_CAST and found <= BY_FP32:
        return []
    return [f"{name}, {rows * WIDTH} elements: {found:.2%} of the results are others, {plain:.1%} in a plain cast"]


def main():
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        wrong = [line for name, build in CASES.items() for rows in (4, 160)
                 for line in failure(pathlib.Path(scratch), name, build, rows)]
    print("\n".join(wrong))
    print(f"# values that become indices: {len(CASES)} kinds in 2 sizes, {len(wrong)} failures")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
