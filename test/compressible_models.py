"""Programs with one weight in each layout that operators have, as MIL text: name -> (shape of the input, shapes of the
weights, operation)."""
import numpy as np

LAYOUTS = {
    "conv": ((1, 16, 6, 6), [(24, 16, 3, 3)], "conv(x = x, weight = w0)"),
    "grouped": ((1, 32, 6, 6), [(48, 8, 3, 3)], "conv(x = x, weight = w0, groups = 4)"),
    "depthwise": ((1, 256, 5, 5), [(256, 1, 3, 3)], "conv(x = x, weight = w0, groups = 256)"),
    "transposed": ((1, 16, 6, 6), [(16, 24, 3, 3)], "conv_transpose(x = x, weight = w0)"),
    "linear": ((2, 96), [(40, 96)], "linear(x = x, weight = w0)"),
    "odd": ((2, 61), [(43, 61)], "linear(x = x, weight = w0)"),
    "right": ((2, 96), [(96, 40)], "matmul(x = x, y = w0)"),
    "right_transposed": ((2, 96), [(40, 96)], "matmul(x = x, y = w0, transpose_y = true)"),
    "left": ((96, 2), [(40, 96)], "matmul(x = w0, y = x)"),
    "left_transposed": ((96, 2), [(96, 40)], "matmul(x = w0, y = x, transpose_x = true)"),
    "batch": ((3, 2, 32), [(3, 32, 24)], "matmul(x = x, y = w0)"),
    "lstm": ((3, 2, 24), [(96, 24), (96, 24)], "lstm(x = x, initial_h = h, initial_c = h, weight_ih = w0, weight_hh = w1)"),
    "gru": ((3, 2, 32), [(96, 32), (96, 32)], "gru(x = x, initial_h = h, weight_ih = w0, weight_hh = w1)"),
}


def numbers(array):
    if array.ndim == 0:
        return repr(float(array))
    return "[" + ", ".join(numbers(part) for part in array) + "]"


def weights(name, seed=0):
    random = np.random.default_rng(seed)
    return [random.normal(0, 0.05, shape).astype("f2") for shape in LAYOUTS[name][1]]


def mil(name, opset="ios18"):
    """Returns the program; weights are drawn."""
    shape, _, operation = LAYOUTS[name]
    lines = [f"  tensor<fp16, [{', '.join(map(str, weight.shape))}]> w{i} = const()[val = {numbers(weight)}];"
             for i, weight in enumerate(weights(name))]
    if "initial_h" in operation:
        hidden = LAYOUTS[name][1][1][1]
        lines.append(f"  tensor<fp16, [2, {hidden}]> h = const()[val = fill(0.0)];")
    body = "\n".join(lines)
    results = {"lstm": "y, last, cell", "gru": "y, last"}.get(name, "y")
    return (f"func main<{opset}>(tensor<fp16, [{', '.join(map(str, shape))}]> x) {{\n{body}\n  {results} = {operation};\n}} -> (y);\n")


def package(folder, name, run, expect, opset="ios18"):
    """Writes the package with plain weights."""
    (folder / f"{name}.mil").write_text(mil(name, opset))
    out = folder / f"{name}_{opset}.mlpackage"
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", out), 0)
    return out
