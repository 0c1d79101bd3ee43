"""Tests mlc export-weights and mlc set-weights."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
from driver import expect, run, run_tests  # noqa: E402

MODEL = """func main<ios18>(tensor<fp32, [2, 12]> x) {
  w = const()[val = tensor<fp16, [12]>([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])];
  a = cast(x = w, dtype = "fp32");
  y = mul(x = x, y = a);
  q = constexpr_affine_dequantize()[axis = int32(0), name = string("q"), quantized_data = tensor<int8, [12]>(fill(3)), scale = fp32(0.5), zero_point = int8(1)];
  z = add(x = y, y = q);
} -> (z);
"""


def model(folder):
    (folder / "m.mil").write_text(MODEL)
    return folder / "m.mil"


def test_weights_survive_the_way_out_and_in(folder):
    expect(run("compile", driver.ROOT / "manifests/digits/digits.onnx", "-o", folder / "a.mlpackage", "--no-measure"), 0)
    found = expect(run("export-weights", folder / "a.mlpackage", "-o", folder / "w", "--json"), 0).answer["weights"]
    assert len(found) > 3 and all(weight["settable"] for weight in found), found
    for weight in found:
        assert list(np.load(weight["file"]).shape) == weight["shape"]
    answer = expect(run("set-weights", folder / "a.mlpackage", "--weights", folder / "w", "-o", folder / "b.mlpackage", "--json"), 0).answer
    assert sorted(answer["weights"]) == sorted(weight["name"] for weight in found)
    assert "identical" in expect(run("diff", folder / "a.mlpackage", folder / "b.mlpackage"), 0).stdout


def test_replaced_weights_are_used(folder):
    expect(run("export-weights", model(folder), "-o", folder / "w", "--names", "w"), 0)
    np.save(folder / "w" / "w.npy", np.arange(12, dtype="f4"))  # rounded to fp16
    text = expect(run("set-weights", model(folder), "--weights", folder / "w", "-o", folder / "n.mil"), 0).stdout
    assert "1 weight replaced" in text
    np.save(folder / "x.npy", np.ones((2, 12), "f4"))
    expect(run("run", folder / "n.mil", "--input", f"x={folder / 'x.npy'}", "--output-dir", folder), 0)
    assert (np.load(folder / "z.npy") == np.arange(12) + 1).all()


def test_refused_weights_are_all_named(folder):
    (folder / "w").mkdir()
    np.save(folder / "w" / "w.npy", np.zeros(11, "f4"))
    np.save(folder / "w" / "u.npy", np.zeros(12, "f4"))
    result = run("set-weights", model(folder), "--weights", folder / "w", "-o", folder / "n.mlpackage", "--json")
    errors = expect(result, 1).answer["errors"]
    assert [error["id"] for error in errors] == ["bad-name", "bad-input"], errors
    assert "fp16 [12]" in errors[1]["notes"][0] and not (folder / "n.mlpackage").exists()
    expect(run("set-weights", driver.ROOT / "manifests/digits/digits.onnx", "--weights", folder / "w", "-o", folder / "n.mlpackage"), 2,
           "is an ONNX model")
    weights = expect(run("export-weights", model(folder), "-o", folder / "all", "--json"), 0).answer["weights"]
    why = {weight["name"]: weight.get("why", "") for weight in weights}
    assert why.pop("w") == "" and all("compressed" in text for text in why.values()), why
    expect(run("export-weights", model(folder), "-o", folder / "all"), 1, "file-exists")
    (folder / "none").mkdir()
    expect(run("set-weights", model(folder), "--weights", folder / "none", "-o", folder / "n.mlpackage"), 2, "contains no .npy files")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "weights"))
