"""Models that fail after a plain cast to fp16, and whose default packages are correct because they are rewritten to safe forms.
Equivalent harmless models keep nothing in fp32 for this reason.

Expected values are computed by NumPy in float64. NumPy also computes the plain cast: every operation computes exactly and rounds its
result to fp16, as in Core ML. The bound is max(1e-2, 1.5 times the error of rounded constants). Each model exists with few elements,
which stay in fp32 before an output, and with more than 16,384, which do not; the latter also with --precision mixed.
"""
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
from precision.graphs import Graph  # noqa: E402

GARBAGE, LEAST_BOUND, OF_FLOOR = 5e-2, 1e-2, 1.5
SMALL, LARGE = 16, 160  # rows of 128 elements
WIDTH = 128


def error(value, exact):
    """Returns the largest difference relative to the range of the exact result; infinite if a result is not finite where the exact one is."""
    if not np.isfinite(value[np.isfinite(exact)]).all():
        return np.inf
    difference = np.abs(np.where(value == exact, 0, value - exact)).max()
    return difference / max(np.ptp(exact), np.abs(exact).max(), 1e-6)


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def activations(g, rows, size, width=WIDTH):
    """Returns a product with a matrix, scaled to magnitude `size`, which is a number or one for each row."""
    product = g.op("MatMul", g.input("x", noise(1, 1, rows, width)), g.constant(noise(2, width, width) / np.sqrt(width)))
    return g.op("Mul", product, g.constant(size))


def rows_of_all_sizes(rows):
    sizes = np.geomspace(1e-4, 1e4, rows)[:, None]
    sizes[1::4] = 0
    return sizes


# ---- norms: f(graph, x [1, rows, WIDTH]) -> the result

def scaled(g, y):
    return g.op("Mul", y, g.constant(1 + 0.1 * noise(3, WIDTH)))


def mean_of_square(g, x, square):
    squares = g.op("Mul", x, x) if square == "Mul" else g.op("Pow", x, g.constant(2.0))
    return g.op("ReduceMean", squares, axes=[-1], keepdims=1)


def by_root(square, epsilon=1e-6):
    def norm(g, x):
        root = g.op("Sqrt", g.op("Add", mean_of_square(g, x, square), g.constant(epsilon)))
        return scaled(g, g.op("Div", x, root))
    return norm


def by_reciprocal(g, x):
    root = g.op("Sqrt", g.op("Add", mean_of_square(g, x, "Pow"), g.constant(1e-5)))
    return scaled(g, g.op("Mul", x, g.op("Reciprocal", root)))


def by_power(g, x):
    inverse = g.op("Pow", g.op("Add", mean_of_square(g, x, "Mul"), g.constant(1e-5)), g.constant(-0.5))
    return scaled(g, g.op("Mul", x, inverse))


def scaled_first(g, x):
    root = g.op("Sqrt", g.op("Add", mean_of_square(g, x, "Mul"), g.constant(1e-5)))
    return g.op("Div", scaled(g, x), root)


def rms_normalization(g, x):
    return g.op("RMSNormalization", x, g.constant(1 + 0.1 * noise(3, WIDTH)), epsilon=1e-6, axis=-1)


def simplified(g, x):
    return g.op("SimplifiedLayerNormalization", x, g.constant(1 + 0.1 * noise(3, WIDTH)), epsilon=1e-6)


def skip_simplified(g, x):
    skip = g.input("skip", noise(4, *x.exact.shape))
    return g.op("SkipSimplifiedLayerNormalization", x, skip, g.constant(1 + 0.1 * noise(3, WIDTH)), domain="com.microsoft",
                epsilon=1e-6)


def lp_normalization(g, x):
    return g.op("LpNormalization", x, axis=-1, p=2)


def sum_of_squares(g, x):
    return g.op("Div", x, g.op("Sqrt", g.op("ReduceSumSquare", x, axes=[-1], keepdims=1)))


def normalize(g, x):
    return g.op("Div", x, g.op("Clip", g.op("ReduceL2", x, axes=[-1], keepdims=1), g.constant(1e-12)))


def norm_alone(g, x):
    squares = g.op("ReduceSumSquare", x, axes=[-1], keepdims=1)
    # Scaled by x, so that it has more elements than rows.
    return g.op("Mul", g.op("Sqrt", squares), g.op("Sigmoid", g.op("Mul", x, g.constant(1e-3))))


def mean_variance(g, x):
    return g.op("MeanVarianceNormalization", x, axes=[2])


def variance(g, x):
    """Uses both the deviation and the value that it divides."""
    d = g.op("Sub", x, g.op("ReduceMean", x, axes=[2], keepdims=1))
    root = g.op("Sqrt", g.op("Add", g.op("ReduceMean", g.op("Mul", d, d), axes=[2], keepdims=1), g.constant(1e-5)))
    return g.op("Add", g.op("Div", d, root), g.op("Sigmoid", root))


def of_all(g, x):
    """One norm over all elements, which are more than fp16 can count."""
    return g.op("Div", x, g.op("Sqrt", g.op("ReduceSumSquare", x, axes=[0, 1, 2], keepdims=1)))


def mean_of_all(g, x):
    squares = g.op("ReduceMean", g.op("Mul", x, x), axes=[1, 2], keepdims=1)
    return g.op("Mul", x, g.op("Reciprocal", g.op("Sqrt", g.op("Add", squares, g.constant(1e-6)))))


def without_dimension(g, x):
    root = g.op("Sqrt", g.op("Add", g.op("ReduceMean", g.op("Pow", x, g.constant(2.0)), axes=[2], keepdims=0), g.constant(1e-6)))
    return g.op("Div", x, g.op("Unsqueeze", root, axis=-1))


def cosine(g, x):
    y = g.op("Mul", g.input("other", noise(6, *x.exact.shape)), g.constant(1e3))
    product, *squares = (g.op("ReduceSum", g.op("Mul", *pair), axes=[2], keepdims=1) for pair in ((x, y), (x, x), (y, y)))
    shares = g.op("Div", product, g.op("Max", g.op("Sqrt", g.op("Mul", *squares)), g.constant(1e-8)))
    return g.op("Mul", shares, g.op("Sigmoid", g.op("Mul", x, g.constant(1e-3))))


NORMS = {"Pow, Sqrt, Div": by_root("Pow"), "Mul, Sqrt, Div": by_root("Mul"), "Reciprocal": by_reciprocal, "Pow -0.5": by_power,
         "scaled before": scaled_first, "RMSNormalization": rms_normalization, "SimplifiedLayerNormalization": simplified,
         "SkipSimplifiedLayerNormalization": skip_simplified, "LpNormalization": lp_normalization,
         "ReduceSumSquare, Sqrt": sum_of_squares, "ReduceL2, Clip": normalize, "norm alone": norm_alone,
         "MeanVarianceNormalization": mean_variance, "variance": variance, "L2 of all": of_all, "RMS of all": mean_of_all,
         "without its dimension": without_dimension, "cosine": cosine}


# ---- logarithms: f(graph, x [1, rows, WIDTH]) -> the result

def log_of_sum(g, x):
    total = g.op("Log", g.op("ReduceSum", g.op("Exp", x), axes=[-1], keepdims=1))
    return g.op("Sub", x, total)


def log_of_softmax(g, x):
    return g.op("Log", g.op("Softmax", x, axis=-1))


def log_of_sigmoid(g, x):
    return g.op("Log", g.op("Sigmoid", x))


def log_of_rest(g, x):
    return g.op("Log", g.op("Sub", g.constant(1.0), g.op("Sigmoid", x)))


def log_with_epsilon(g, x):
    return g.op("Log", g.op("Add", g.op("Softmax", x, axis=-1), g.constant(1e-9)))


def log_of_clipped(g, x):
    return g.op("Log", g.op("Clip", g.op("Softmax", x, axis=-1), g.constant(1e-12), g.constant(1.0)))


def entropy(g, x):
    p = g.op("Softmax", x, axis=-1)
    return g.op("Mul", p, g.op("Log", p))


def softmax_by_hand(g, x):
    e = g.op("Exp", x)
    return g.op("Div", e, g.op("ReduceSum", e, axes=[-1], keepdims=1))


def softplus(g, x):
    return g.op("Log", g.op("Add", g.op("Exp", x), g.constant(1.0)))


def log_add(g, x):
    return g.op("Log", g.op("Add", g.op("Exp", x), g.op("Exp", g.op("Neg", x))))


LOGARITHMS = {"Exp, ReduceSum, Log": log_of_sum, "Softmax, Log": log_of_softmax, "Sigmoid, Log": log_of_sigmoid,
              "1 - Sigmoid, Log": log_of_rest, "Softmax + 1e-9, Log": log_with_epsilon, "Softmax, Clip, Log": log_of_clipped,
              "p log p": entropy, "Exp / ReduceSum": softmax_by_hand, "Exp + 1, Log": softplus,
              "Softplus": lambda g, x: g.op("Softplus", x), "Exp + Exp, Log": log_add,
              "LogSoftmax": lambda g, x: g.op("LogSoftmax", x, axis=-1)}


# ---- attention: queries and keys of different magnitudes, scores scaled after their product

def attention(scale, divide=False, shares=True, mask=False):
    def build(g, rows, size):
        heads, width = 4, WIDTH // 2
        q, k, v = (g.op("Mul", g.op("MatMul", g.input(name, noise(i, 1, heads, rows, width)),
                                    g.constant(noise(i + 5, width, width) / np.sqrt(width))), g.constant(s))
                   for i, (name, s) in enumerate((("q", size), ("k", size), ("v", 1.0))))
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        if mask:
            scores = g.op("Where", g.input("seen", noise(8, 1, 1, rows, rows) > 0), scores, g.constant(-1e9))
        scores = g.op("Div", scores, g.constant(1 / scale)) if divide else g.op("Mul", scores, g.constant(scale))
        return g.op("MatMul", g.op("Softmax", scores, axis=-1), v) if shares else scores
    return build


# ---- others

def spread(g, column, rows):
    """Returns [1, rows, 1], one number for each row, computed from more elements than there are rows."""
    return g.op("Mul", column, g.op("Sigmoid", g.input("other", noise(9, 1, rows, WIDTH))))


def raw(g, rows, mean=0.0, size=1.0):
    """An unprocessed input, not the result of a product."""
    return g.input("x", mean + size * noise(1, 1, rows, WIDTH))


def difference_of_squares(form):
    def build(g, rows, size):
        behind = form == "behind a product"
        x = g.op("Add", activations(g, rows, 1.0), g.constant(size)) if behind else raw(g, rows, size)
        mean = g.op("ReduceMean", x, axes=[2], keepdims=1)
        if form == "ReduceSumSquare":
            squares = g.op("Mul", g.op("ReduceSumSquare", x, axes=[2], keepdims=1), g.constant(1 / WIDTH))
        else:
            squares = mean_of_square(g, x, "Mul" if behind else form)
        v = g.op("Sub", squares, g.op("Pow", mean, g.constant(2.0)) if form == "Pow" else g.op("Mul", mean, mean))
        return g.op("Div", g.op("Sub", x, mean), g.op("Sqrt", g.op("Add", v, g.constant(1e-5))))
    return build


def squares_alone(form):
    def build(g, rows, size):
        x = raw(g, rows, 0.0, size)
        if size < 2:  # small, with a proof
            x = g.op("Sigmoid", x)
        y = (mean_of_square(g, x, "Mul") if form == "ReduceMean"
             else g.op("ReduceSum", g.op("Pow", x, g.constant(2.0)), axes=[2], keepdims=1) if form == "Pow"
             else g.op(form, x, axes=[2], keepdims=1))
        return spread(g, g.op("Mul", y, g.constant(2.0 ** -12)), rows)
    return build


def cosine_of_pairs(outer):
    def build(g, rows, size):
        x, z = raw(g, rows, 0.0, size), g.op("Mul", g.input("z", noise(2, 1, 160, WIDTH)), g.constant(size))
        n, m = (g.op("Sqrt", g.op("ReduceSum", g.op("Mul", v, v), axes=[2], keepdims=1)) for v in (x, z))
        turned = (g.op("Transpose", v, perm=[0, 2, 1]) for v in (z, m))
        scores = g.op("MatMul", x, next(turned))
        return g.op("Div", scores, g.op("Max", g.op(outer, n, next(turned)), g.constant(1e-8)))
    return build


def standardised(form):
    """Raw inputs around means of `size`, which constants subtract."""
    def build(g, rows, size):
        means = size * (1 + np.arange(WIDTH) / WIDTH)
        x = raw(g, rows, means)
        if form == "BatchNormalization":
            x = g.op("Transpose", x, perm=[0, 2, 1])
            one = g.constant(np.ones(WIDTH))
            y = g.op(form, x, one, g.constant(np.zeros(WIDTH)), g.constant(means), one)
            return g.op("MatMul", g.op("Transpose", y, perm=[0, 2, 1]), g.constant(noise(4, WIDTH, WIDTH) / np.sqrt(WIDTH)))
        y = g.op("Div", g.op("Sub", x, g.constant(means)), g.constant(np.linspace(1, 2, WIDTH)))
        return g.op("MatMul", y, g.constant(noise(4, WIDTH, WIDTH) / np.sqrt(WIDTH)))
    return build


def lowest_mask(g, rows, size):
    """Masks scores [1, rows, WIDTH], with the first `size` rows masked completely."""
    seen = noise(7, 1, rows, WIDTH) > 0
    seen[:, :size] = False
    mask = g.op("Where", g.input("seen", seen), g.constant(0.0), g.constant(np.finfo(np.float32).min))
    return g.op("Softmax", g.op("Add", activations(g, rows, 1.0), mask), axis=-1)


def two_depths(g, rows, size):
    """The first `size` columns are padding with -1e9; row i attends to the columns up to i, and the others are at -inf."""
    seen = np.ones((1, 1, WIDTH))
    seen[..., :size] = 0
    hidden = np.where(np.arange(WIDTH) > np.arange(rows)[:, None], -np.inf, 0.0)
    mask = g.op("Where", g.input("seen", seen > 0), g.constant(0.0), g.constant(-1e9))
    return g.op("Softmax", g.op("Add", g.op("Add", activations(g, rows, 1.0), mask), g.constant(hidden)), axis=-1)


def epsilon_of_layer_norm(g, x):
    scale, bias = g.constant(1 + 0.1 * noise(3, WIDTH)), g.constant(0.1 * noise(4, WIDTH))
    return g.op("LayerNormalization", x, scale, bias, epsilon=1e-12, axis=-1)


def some_rows(rows):
    sizes = np.ones((rows, 1))
    sizes[1::4] = 0
    return sizes


def of_activations(function):
    return lambda g, rows, size: function(g, activations(g, rows, size(rows) if callable(size) else size))


def distances(g, rows, size):
    """|x|^2 - 2 x c + |c|^2 for rows whose distance from zero is `size` times their mutual distance."""
    x, c = (g.op("Add", g.input(name, noise(i, 1, rows, WIDTH)), g.constant(size)) for i, name in enumerate("xc"))
    squares = [g.op("ReduceSum", g.op("Mul", v, v), axes=[2], keepdims=1) for v in (x, c)]
    product = g.op("Mul", g.op("MatMul", x, g.op("Transpose", c, perm=[0, 2, 1])), g.constant(2.0))
    return g.op("Sub", g.op("Add", squares[0], g.op("Transpose", squares[1], perm=[0, 2, 1])), product)


def mean_of_powers(g, rows, size):
    """GeM pooling."""
    x = g.op("Clip", activations(g, rows, size), g.constant(1e-6))
    mean = g.op("ReduceMean", g.op("Pow", x, g.constant(3.0)), axes=[2], keepdims=1)
    return g.op("Mul", g.op("Pow", mean, g.constant(1 / 3)), g.op("Sigmoid", g.op("Mul", x, g.constant(1e-3))))


# Title, f(graph, rows, size) -> the result, a size at which the plain cast fails, a size at which
# it does not (None: the form itself is kept in fp32, for any values)
CASES = [(name, of_activations(norm), 1e3, 1.0) for name, norm in NORMS.items()]
CASES += [("epsilon 1e-12", of_activations(by_root("Mul", 1e-12)), 1e-4, 1.0),
          ("rows of all sizes", of_activations(by_root("Pow", 1e-12)), rows_of_all_sizes, 1.0)]
CASES += [("mask of -3.4e38", lowest_mask, 1, 0), ("masks of two depths", two_depths, 1, 0),
          ("LayerNormalization, epsilon 1e-12", of_activations(epsilon_of_layer_norm), some_rows, 1.0)]
# In fp32, where small results are kept, the bounded mask of a whole row does not change its scores.
ONLY_LARGE = ("mask of -3.4e38",)
# fp16 resolves logits around 100 only to 0.03, which causes errors of this size in probabilities.
LESS = {"p log p": 5.0, "Exp / ReduceSum": 5.0, "1 - Sigmoid, Log": 6.0}
CASES += [(name, of_activations(function), LESS.get(name, 30.0), 1.0) for name, function in LOGARITHMS.items()]
CASES += [("attention / 8", attention(1 / 8, divide=True, shares=False), 90.0, 1.0),
          ("attention x 2^-15", attention(2.0 ** -15), 120.0, 1.0),
          ("attention x 3e-5", attention(3e-5), 120.0, 1.0), ("masked attention", attention(1e-4, mask=True), 120.0, 2.0)]
CASES += [(f"sums of squares, {form}", squares_alone(form), 600.0, 1.0)
          for form in ("ReduceMean", "Pow", "ReduceSumSquare")]
CASES += [(f"cosine of pairs, {outer}", cosine_of_pairs(outer), 100.0, None) for outer in ("MatMul", "Mul")]
CASES += [(f"large mean, {form}", standardised(form), 3072.0, 4.0) for form in ("BatchNormalization", "Sub, Div")]
CASES += [(f"E[x^2] - E[x]^2, {form}", difference_of_squares(form), 60.0, None)
          for form in ("Mul", "Pow", "ReduceSumSquare", "behind a product")]
CASES += [("distances by squares and a product", distances, 10.0, None), ("mean of cubes", mean_of_powers, 60.0, None)]


def measured(folder, name, build, rows, size, precision):
    """Returns (error of the plain cast, error of the package, its bound, fp32 decisions except those for final operations)."""
    g = Graph()
    y = build(g, rows, size)
    model, package = folder / f"{name}.onnx", folder / f"{name}.mlpackage"
    g.write(model, y)
    made = driver.run("compile", model, "-o", package, "--precision", precision, timeout=120)
    if made.code:
        return f"compile: {made.stderr}"
    arguments = []
    for given, array in g.feeds.items():
        np.save(folder / f"{name}.{given}.npy", array)
        arguments += ["--input", f"{given}={folder / f'{name}.{given}.npy'}"]
    run = driver.run("run", package, *arguments, "--output-dir", folder / name, timeout=120)
    if run.code:
        return f"run: {run.stderr}"
    answer = np.load(folder / name / f"{y.name}.npy").astype(np.float64)
    manifest = json.loads((folder / f"{name}.manifest.json").read_text())
    kept = [d for d in manifest.get("decisions", []) if d["kind"] == "fp32"]
    return error(y.half, y.exact), error(answer, y.exact), max(LEAST_BOUND, OF_FLOOR * error(y.floor, y.exact)), kept


def failures(case):
    title, build, trouble, calm = case
    wrong = []
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        for rows, size, precision in ((SMALL, trouble, "fp16"), (SMALL, calm, "fp16"), (LARGE, trouble, "fp16"),
                                      (LARGE, calm, "fp16"), (LARGE, trouble, "mixed")):
            if size is None or (rows == SMALL and title in ONLY_LARGE):
                continue
            where = f"{title}, {rows} rows, {'calm' if size == calm else 'trouble'}, {precision}"
            got = measured(pathlib.Path(scratch), f"m{rows}_{size == calm}_{precision}", build, rows, size, precision)
            if isinstance(got, str):
                wrong.append(f"{where}: {got}")
                continue
            plain, found, bound, kept = got
            if os.environ.get("MLC_VERBOSE"):
                print(f"{where}: plain {plain:.2g}, package {found:.2g}, bound {bound:.2g}")
            if size != calm and not plain > GARBAGE:
                wrong.append(f"{where}: the plain cast is off by {plain:.2g} only")
            if not found <= bound:
                wrong.append(f"{where}: the package is off by {found:.2g}, above {bound:.2g}")
            if size == calm:
                wrong += [f"{where}: fp32 for {d['subject']}: {d['reason']}" for d in kept]
    return wrong


def main(cases):
    chosen = [c for c in cases if len(sys.argv) < 2 or any(word in c[0] for word in sys.argv[1:])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [line for lines in pool.map(failures, chosen) for line in lines]
    print("\n".join(wrong))
    print(f"# models that fail after a plain cast: {len(chosen)} kinds in 2 sizes, {len(wrong)} failures")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(CASES))
