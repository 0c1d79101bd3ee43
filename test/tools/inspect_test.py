#!/usr/bin/env python3
"""Tests `mlc inspect` of a program: weights include everything that stores them, encoded or not, in every function; shared
weights count once.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests
from command_line_test import FLOAT, Folder, floats
from language_models import Llama

ROWS, COLUMNS = 64, 32


def numbers(count, most=100):
    return "[" + ", ".join(str(i * 37 % most) for i in range(count)) + "]"


def grid(rows, columns, most=100):
    return "[" + ", ".join(numbers(columns, most) for _ in range(rows)) + "]"


SCALES = "[" + ", ".join(f"[{1 + i}.5]" for i in range(16)) + "]"

# Programs with one weight [16, 32]: the operation that decodes it, and its bytes by type, according to the operator
# definitions.
ENCODED = {
    "affine": ("ios16", f"w = constexpr_affine_dequantize(quantized_data = tensor<int8, [16, 32]>({grid(16, 32)}), zero_point = int8(0), "
               f"scale = tensor<fp16, [16]>({numbers(16)}), axis = 0);", {"int8": 513, "fp16": 32}),
    "packed palette": ("ios16", f"w = constexpr_lut_to_dense(indices = tensor<uint8, [256]>({numbers(256)}), lut = tensor<fp16, [16]>({numbers(16)}), "
                       "shape = tensor<uint32, [2]>([16, 32]));", {"uint8": 256, "fp16": 32}),
    "sparse": ("ios16", f"w = constexpr_sparse_to_dense(mask = tensor<uint8, [64]>([{', '.join(['1'] * 64)}]), nonzero_data = tensor<fp16, [64]>({numbers(64)}), "
               "shape = tensor<uint32, [2]>([16, 32]));", {"uint8": 64, "fp16": 128}),
    "blocks": ("ios18", f"w = constexpr_blockwise_shift_scale(data = tensor<int4, [16, 32]>({grid(16, 32, 7)}), scale = tensor<fp16, [16, 1]>({SCALES}));",
               {"int4": 256, "fp16": 32}),
    "palette of int8": ("ios18", f"t = constexpr_blockwise_shift_scale(data = tensor<int8, [1, 1, 16, 1]>([[[{', '.join(f'[{i}]' for i in range(16))}]]]), "
                        "scale = tensor<fp16, [1, 1, 1, 1]>([[[[0.5]]]]));\n"
                        f"w = constexpr_lut_to_dense(indices = tensor<uint4, [16, 32]>({grid(16, 32, 15)}), lut = t);",
                        {"uint4": 256, "int8": 16, "fp16": 2}),
}


def weights(model, *options):
    return expect(run("inspect", model, "--json", "--weights", *options), 0).answer["weights"]


def text_package(folder, name, text):
    (folder / f"{name}.mil").write_text(text)
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def test_encoded_weights_count(folder):
    for name, (opset, decode, parts) in ENCODED.items():
        text = f"func main<{opset}>(tensor<fp16, [1, 32]> x) {{\n  {decode}\n  y = matmul(x = x, y = w, transpose_y = true);\n}} -> (y);\n"
        package = text_package(folder, name.replace(" ", "_"), text)
        bundle = package.with_suffix(".mlmodelc")
        expect(run("precompile", package, "-o", bundle), 0)
        for model in (package.with_suffix(".mil"), package, bundle):
            found = weights(model)
            total = sum(parts.values())
            assert found["by_dtype"] == parts and found["bytes"] == total, (name, model, found)
            assert found["count"] == 1 and found["elements"] == 512 and found["bits_per_weight"] == total / 64, (name, model, found)
            tensor, = found["tensors"]
            assert tensor["shape"] == [16, 32] and tensor["dtype"] == "fp16" and tensor["bytes"] == total, (name, tensor)
            assert tensor["encoding"].startswith("constexpr_"), (name, tensor)
        expect(run("inspect", package, "--weights"), 0, f"{total / 64:.2f} bits per weight", "constexpr_")


def test_of_all_functions_those_that_are_shared_count_once(folder):
    decode = ENCODED["blocks"][1]
    function = f"func NAME<ios18>(tensor<fp16, [1, 32]> x) {{\n  {decode}\n  y = matmul(x = x, y = w, transpose_y = true);\n  z = add(x = y, y = tensor<fp16, [1, 16]>([{numbers(16, 17)}]));\n}} -> (z);\n"
    package = text_package(folder, "two", function.replace("NAME", "main") + function.replace("NAME", "other"))
    found = weights(package)
    assert found["by_dtype"]["int4"] == 256 and [t["name"] for t in found["tensors"]].count("w") == 1, found
    assert found["elements"] in (528, 544), found  # small constants may be repeated in each program
    # A weight that only another function has is counted too.
    package = text_package(folder, "other", f"func main<ios18>(tensor<fp16, [1, 32]> x) {{\n  y = relu(x = x);\n}} -> (y);\n"
                           + function.replace("NAME", "other"))
    assert weights(package)["by_dtype"]["int4"] == 256


def test_tied_weights_count_once(folder):
    matrix = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS) / ROWS
    nodes = [wire.node("Gather", ["w", "i"], ["h"]), wire.node("Gemm", ["h", "w"], ["y"], transB=1)]
    model = folder.model("tied.onnx", nodes, [("i", wire.INT64, [1])], [("y", FLOAT, [1, ROWS])], [floats("w", matrix)])
    expect(run("compile", model, "-o", folder / "tied.mlpackage"), 0)
    for path in (model, folder / "tied.mlpackage"):
        found = weights(path)["tensors"]
        assert len([tensor for tensor in found if np.prod(tensor["shape"]) == matrix.size]) == 1, (path, found)


class Wide(Llama):
    width, head, inner, vocabulary = 64, 16, 128, 96


def test_a_requantised_language_model(folder):
    """The counted bytes are the whole weight file, except for record headers and small constants in the program."""
    model = Wide()
    model.gguf(folder / "m.gguf")
    for scheme in ("int8", "int4", "lut4", None):
        package = folder / f"{scheme}.mlpackage"
        expect(run("compile", folder / "m.gguf", "-o", package, *(["--requant", scheme] if scheme else [])), 0)
        found, file = weights(package), next(package.rglob("weight.bin")).stat().st_size
        assert 0.85 * file < found["bytes"] < 1.15 * file, (scheme, found["bytes"], file)
        assert found["elements"] >= sum(array.size for array in model.gguf_tensors().values() if array.ndim > 1), (scheme, found)


def test_constants_without_a_name(folder):
    """The tensor of a Constant node has no name, so that an error about it names only the node."""
    for tensor, found in ((wire.tensor("", FLOAT, [4], bytes(8)), "16 bytes"), (wire.tensor("", 99, [4], bytes(8)), "99"),
                          (wire.tensor("", FLOAT, [-4], bytes(8)), "-4")):
        constant = wire.node("Constant", [], ["c"]) + wire.field(5, wire.attribute("value", tensor))
        graph = wire.graph([constant, wire.node("Add", ["x", "c"], ["y"])], [wire.value_info("x", FLOAT, [4])], [wire.value_info("y", FLOAT, [4])])
        (folder / "m.onnx").write_bytes(wire.model(graph))
        shown = expect(run("inspect", "--ops", folder / "m.onnx"), 1)
        assert 'output "c"' in shown.stderr and found in shown.stderr and '""' not in shown.stderr, shown.stderr


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc inspect", Folder))
