"""Tests mlc export-weights and mlc set-weights."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402
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
    every = expect(run("export-weights", folder / "a.mlpackage", "-o", folder / "every", "--json"), 0).answer["weights"]
    names = [weight["name"] for weight in every if weight["settable"]]
    assert names and len(every) > 3, every
    found = expect(run("export-weights", folder / "a.mlpackage", "-o", folder / "w", "--names", ",".join(names), "--json"), 0).answer["weights"]
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


def source(folder):
    """Convolution (w, b) with a batch normalisation, then m = x @ [tied weight], and a gather from the tied weight, then + small."""
    rng = np.random.default_rng(1)
    w = lambda name, *dims: wire.tensor(name, wire.FLOAT, list(dims), rng.normal(size=dims).astype("<f4").tobytes())
    plus = lambda name, n: wire.tensor(name, wire.FLOAT, [n], np.abs(rng.normal(size=n)).astype("<f4").tobytes())
    nodes = [wire.node("Conv", ["image", "conv.w", "conv.b"], ["c"]), wire.node("Conv", ["c", "fused.w"], ["d"]),
             wire.node("BatchNormalization", ["d", "scale", "shift", "mean", "variance"], ["e"]),
             wire.node("Gather", ["table", "ids"], ["g"]), wire.node("Gemm", ["g", "table"], ["h"], transB=1),
             wire.node("Gemm", ["g", "other"], ["k"]), wire.node("Add", ["k", "small"], ["l"])]
    graph = wire.graph(
        nodes, [wire.value_info("image", wire.FLOAT, [1, 3, 8, 8]), wire.value_info("ids", wire.INT64, [5])],
        [wire.value_info(name, wire.FLOAT, dims) for name, dims in (("e", [1, 4, 4, 4]), ("h", [5, 20]), ("l", [5, 6]))],
        [w("conv.w", 4, 3, 3, 3), w("conv.b", 4), w("fused.w", 4, 4, 3, 3), plus("scale", 4), w("shift", 4), w("mean", 4),
         plus("variance", 4), w("table", 20, 8), w("other", 8, 6), w("small", 6)])
    (folder / "s.onnx").write_bytes(wire.model(graph))
    return folder / "s.onnx"


def test_a_package_knows_the_tensors_of_its_source(folder):
    onnx = source(folder)
    for options in (["--precision", "fp32"], ["--no-measure"]):
        package = folder / "p.mlpackage"
        expect(run("compile", onnx, "-o", package, *options, "--force"), 0)
        answer = expect(run("export-weights", package, "-o", folder / options[0], "--json"), 0).answer["weights"]
        weights = {weight["name"]: weight for weight in answer}
        settable = {weight["source"] for weight in answer if weight["settable"]}
        # Convolutions keep their weight, rounded or not; a bias of four elements is a weight, too.
        assert {"conv.w", "conv.b"} <= settable and not {"fused.w", "scale", "shift"} & settable, weights
        fused = [weight["why"] for weight in answer if "fused.w" in weight.get("why", "")]
        assert fused and all("it was computed from" in why and "scale" in why for why in fused), weights


def test_weights_are_replaced_by_the_names_of_the_source(folder):
    onnx = source(folder)
    package = folder / "p.mlpackage"
    expect(run("compile", onnx, "-o", package, "--no-measure"), 0)
    (folder / "w").mkdir()
    rng = np.random.default_rng(2)
    new = rng.normal(size=(4, 3, 3, 3)).astype("f4")
    np.save(folder / "w" / "conv.w.npy", new)
    np.save(folder / "w" / "conv.b.npy", np.arange(4, dtype="f4"))
    answer = expect(run("set-weights", package, "--weights", folder / "w", "-o", folder / "q.mlpackage", "--json"), 0).answer
    assert sorted(answer["weights"]) == ["conv.b", "conv.w"], answer
    # The same package as of the changed source, and what it states about its weights stays.
    changed = onnx.read_bytes()
    for name in ("conv.w", "conv.b"):
        old = expect(run("export-weights", onnx, "-o", folder / f"old-{name}", "--names", name, "--json"), 0).answer["weights"][0]["file"]
        before, after = np.load(old).astype("<f4").tobytes(), np.load(folder / "w" / f"{name}.npy").astype("<f4").tobytes()
        assert changed.count(before) == 1
        changed = changed.replace(before, after)
    (folder / "changed.onnx").write_bytes(changed)
    expect(run("compile", folder / "changed.onnx", "-o", folder / "r.mlpackage", "--no-measure"), 0)
    assert "identical" in expect(run("diff", folder / "q.mlpackage", folder / "r.mlpackage"), 0).stdout
    np.save(folder / "w" / "fused.w.npy", np.zeros((4, 4, 3, 3), "f4"))
    expect(run("set-weights", package, "--weights", folder / "w", "-o", folder / "n.mlpackage"), 1, 'tensor "fused.w" of the source cannot be replaced')


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "weights"))
