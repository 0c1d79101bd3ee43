"""Models of plain operators that fail after a plain cast to fp16 and have no safe form: they are run during compilation, and the
operations that cause the failure stay in fp32. Equivalent harmless models keep nothing in fp32 for this reason.

Expected values and bounds are those of safe_forms_test.py.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from precision import safe_forms_test as harness  # noqa: E402
from precision.safe_forms_test import SMALL, WIDTH, activations, noise  # noqa: E402


def unscaled_softmax(g, rows, size):
    """Attention without a scale."""
    q, k = (g.op("Mul", g.op("MatMul", g.input(name, noise(i, 1, rows, WIDTH)), g.constant(noise(i + 5, WIDTH, WIDTH) / np.sqrt(WIDTH))),
                 g.constant(size)) for i, name in enumerate("qk"))
    return g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), axis=-1)


def large_mean(g, rows, size):
    x = g.op("Add", activations(g, rows, 1.0), g.constant(size))
    d = g.op("Sub", x, g.op("ReduceMean", x, axes=[2], keepdims=1))
    v = g.op("ReduceMean", g.op("Mul", d, d), axes=[2], keepdims=1)
    return g.op("Div", d, g.op("Sqrt", g.op("Add", v, g.constant(1e-5))))


def unlike_layers(g, rows, size):
    x = g.op("Relu", g.op("MatMul", activations(g, rows, 1.0), g.constant(noise(3, WIDTH, WIDTH) * size)))
    return g.op("MatMul", x, g.constant(noise(4, WIDTH, WIDTH) / size / WIDTH))


def long_sum(g, rows, size):
    x = g.input("x", noise(1, 1, rows // SMALL, 1024, int(size)))
    total = g.op("ReduceSum", g.op("Sigmoid", x), axes=[2, 3], keepdims=1)
    return g.op("Mul", g.op("Mul", g.op("Mul", total, g.constant(2.0 ** -10)), g.constant(1 / size)), g.op("Sigmoid", x))


def pixels(g, rows, size):
    """An image of 8-bit values, whose squares are summed by a convolution."""
    x = g.op("Cast", g.input("x", np.random.default_rng(1).integers(0, 256, (1, 3, 4 * rows, WIDTH)).astype(np.uint8)), to=1)
    x = g.op("Mul", x, g.constant(size))
    w = g.constant(np.abs(noise(3, 8, 3, 1, 1)))
    y = g.op("Conv", g.op("Mul", x, x), w, g.constant(noise(4, 8)))
    return g.op("Sqrt", g.op("Abs", y))


CASES = [("softmax over unscaled logits", unscaled_softmax, 120.0, 0.2), ("variance of large means", large_mean, 1e3, 1.0),
         ("weights x 1e4 and x 1e-4", unlike_layers, 1e4, 0.1),
         ("sum over 10^6 elements", long_sum, 1024, 16), ("pixels up to 255", pixels, 1.0, 1 / 256)]

if __name__ == "__main__":
    sys.exit(harness.main(CASES))
