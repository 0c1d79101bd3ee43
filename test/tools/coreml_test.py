#!/usr/bin/env python3
"""Tests commands on Core ML files: `mlc diff`, and making, reading and validating compiled bundles."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import onnx_wire as wire
from driver import MLC, expect, run, run_tests
from command_line_test import FLOAT, Folder, floats
from interface_test import FUNCTIONS, classifier, functions

RUN = MLC.with_name("mlc-run")
WEIGHT = np.arange(32).reshape(8, 4) / 32


def package(folder, name="a", *options, weight=WEIGHT, middle="Relu", axis=1, batch=2, x="x", inner="h", more=()):
    """Compiles softmax(middle(x @ w)) to an fp32 package."""
    nodes = [wire.node("MatMul", [x, "w"], [inner]), wire.node(middle, [inner], ["r"]),
             *[wire.node(op, ["r"], ["m"]) for op in more], wire.node("Softmax", ["m" if more else "r"], ["y"], axis=axis)]
    model = folder.model(f"{name}.onnx", nodes, [(x, FLOAT, [batch, 8])], [("y", FLOAT, [batch, np.shape(weight)[1]])],
                         [floats("w", weight)])
    expect(run("compile", model, "-o", folder / f"{name}.mlpackage", "--precision", "fp32", *options), 0)
    return folder / f"{name}.mlpackage"


def changed(row, column, by):
    weight = WEIGHT.copy()
    weight[row, column] += by
    return weight


def diff(a, b, code, *texts):
    shown = expect(run("diff", a, b), code, *texts).stdout
    answer = expect(run("diff", a, b, "--json"), code).answer
    assert answer["same"] == (code == 0), answer
    back = expect(run("diff", b, a, "--json"), code).answer
    assert back["matched_operations"] == answer["matched_operations"], (answer, back)
    assert shown.splitlines()[-1] == ("different" if code else "identical"), shown
    return answer


def test_diff_of_equal_programs(folder):
    a = package(folder)
    diff(a, a, 0, "operations  3 matched, 0 differ", "weights     1 equal, 0 close, 0 changed")
    diff(a, package(folder, "other", inner="another"), 0, "3 matched, 0 differ")
    expect(run("precompile", a, "-o", folder / "a.mlmodelc"), 0)
    diff(a, folder / "a.mlmodelc", 0, "3 matched, 0 differ", "1 equal")
    shutil.copytree(folder / "a.mlmodelc", folder / "b.mlmodelc")
    diff(folder / "b.mlmodelc", folder / "a.mlmodelc", 0)


def test_diff_of_inputs_and_outputs(folder):
    a = package(folder)
    diff(a, package(folder, "renamed", x="image"), 3, 'input "x": only in the first', 'input "image": only in the second',
         "3 matched, 0 differ")
    answer = diff(a, package(folder, "batch", batch=3), 3, 'input "x": fp32 [2, 8] -> fp32 [3, 8]',
                  'output "y": fp32 [2, 4] -> fp32 [3, 4]', '~ linear "h": result: fp32 [2, 4] -> fp32 [3, 4]')
    assert answer["interface"] == ['input "x": fp32 [2, 8] -> fp32 [3, 8]', 'output "y": fp32 [2, 4] -> fp32 [3, 4]']
    diff(a, package(folder, "half", "--io", "fp16"), 3, 'input "x": fp32 [2, 8] -> fp16 [2, 8]')
    one = 'func main<ios16>(tensor<fp32, [16]> x) {\n  y = add(x = x, y = tensor<fp32, [16]>(fill(0.1)));\n} -> (y);'
    (folder / "one.mil").write_text(one)
    (folder / "two.mil").write_text(one.replace("fp32", "fp16"))
    diff(folder / "one.mil", folder / "two.mil", 3, "result: fp32 [16] -> fp16 [16]", "y: close, fp32 -> fp16, largest difference")
    diff(a, package(folder, "newer", "--target", "iOS18"), 3, "operator set of main: CoreML6 -> CoreML8", "3 matched")


def test_diff_of_operations(folder):
    a = package(folder)
    diff(a, package(folder, "sigmoid", middle="Sigmoid"), 3, '- relu "r"', '+ sigmoid "r"', "2 matched, 2 differ")
    diff(a, package(folder, "more", more=["Exp"]), 3, '+ exp "m"', "3 matched, 1 differ")
    answer = diff(a, package(folder, "axis", axis=0), 3, '~ softmax "y": axis: 1 -> 0', "2 matched, 1 differ")
    assert answer["operations"] == [{"first": {"op": "softmax", "name": "y"}, "second": {"op": "softmax", "name": "y"},
                                     "changes": ["axis: 1 -> 0"]}], answer


def test_diff_of_who_reads_what(folder):
    """The same operations with other operands: a - b differs from b - a."""
    one = """func main<ios16>(tensor<fp32, [2]> a, tensor<fp32, [2]> b) {
  p = sub(x = a, y = b);
  q = exp(x = p);
} -> (p, q);"""
    (folder / "one.mil").write_text(one)
    for other, message in (
            (one.replace("x = a, y = b", "x = b, y = a"), '~ sub "p": x: input "a" -> input "b"; y: input "b" -> input "a"'),
            (one.replace("exp(x = p)", "exp(x = a)"), '~ exp "q": x: sub "p" -> input "a"'),
            (one.replace("p = sub", "q = sub").replace("q = exp(x = p)", "p = exp(x = q)"), 'output "p": sub "p" -> exp "p"')):
        (folder / "other.mil").write_text(other)
        diff(folder / "one.mil", folder / "other.mil", 3, message)


def test_diff_of_weights(folder):
    a = package(folder)
    answer = diff(a, package(folder, "close", weight=changed(1, 2, 1e-4)), 3, "0 equal, 1 close, 0 changed",
                  'linear "h" weight: close, largest difference 0.0001')
    assert abs(answer["weights"][0]["largest_difference"] - 1e-4) < 1e-7, answer
    answer = diff(a, package(folder, "far", weight=changed(1, 2, 0.5)), 3, "0 equal, 0 close, 1 changed",
                  'linear "h" weight: changed, largest difference 0.5')
    assert answer["weights"] == [{"operation": "h", "parameter": "weight", "state": "changed", "largest_difference": 0.5,
                                  "bytes": [128, 128]}], answer
    diff(a, package(folder, "nan", weight=changed(1, 2, np.nan)), 3, "changed, largest difference inf")
    diff(a, package(folder, "wide", weight=np.ones((8, 6))), 3, "weight: changed, fp32 [4, 8] -> fp32 [6, 8]")
    # A single flipped bit in a weight is reported.
    copy = folder / "bit.mlpackage"
    shutil.copytree(a, copy)
    file = copy / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    data = bytearray(file.read_bytes())
    data[128 + 8] ^= 1
    file.write_bytes(data)
    diff(a, copy, 3, "1 close")


def test_diff_of_the_order_of_outputs(folder):
    model = folder.model("two.onnx", [wire.node("Neg", ["x"], ["p"]), wire.node("Exp", ["x"], ["q"])], [("x", FLOAT, [2])],
                         [("p", FLOAT, [2]), ("q", FLOAT, [2])])
    for name, outputs in (("pq", "p,q"), ("qp", "q,p")):
        expect(run("compile", model, "-o", folder / f"{name}.mlpackage", "--outputs", outputs, "--precision", "fp32"), 0)
    diff(folder / "pq.mlpackage", folder / "qp.mlpackage", 3, "order of outputs: p, q -> q, p", "2 matched, 0 differ")


def test_diff_of_every_function_and_state(folder):
    a = functions(folder)
    diff(a, a, 0, "9 matched, 0 differ")
    for name, old, new, message in (
            ("first", "add(x = t, y = x)", "sub(x = t, y = x)", '- add "y" of function f'),
            ("second", "sub(x = t, y = a)", "sub(x = a, y = t)", '~ sub "b" of function g'),
            ("third", "abs(", "exp(", '+ exp "y" of function h'),
            ("input", "tensor<fp16, [3, 2]> x", "tensor<fp16, [3, 4]> x", 'function h: input "x": fp16 [3, 2] -> fp16 [3, 4]'),
            ("one lost", "  write_state(input = s, data = y);\n", "", '- write_state "s" of function f'),
            ("other lost", "  write_state(input = u, data = z);\n", "", '- write_state "u" of function f'),
            # Only the order of the operations determines which read sees the write.
            ("late", "  write_state(input = s, data = y);\n  v = read_state(input = u);",
             "  v = read_state(input = u);\n  write_state(input = s, data = y);", None),
            ("early", "  t = read_state(input = s);\n  y = add(x = t, y = x);\n  write_state(input = s, data = y);",
             "  write_state(input = s, data = x);\n  t = read_state(input = s);\n  y = add(x = t, y = x);",
             "moved across a write to the state")):
        assert old in FUNCTIONS, name
        package = functions(folder, name, FUNCTIONS.replace(old, new))
        diff(a, package, 3 if message else 0, *([message] if message else []))


def test_diff_of_every_label(folder):
    labels = [f"label {i:02}" for i in range(100)]
    package, _ = classifier(folder, [wire.node("Softmax", ["x"], ["p"], axis=1)], labels, shape=100)
    model = next(package.rglob("model.mlmodel"))
    first = folder / "first.mlpackage"
    shutil.copytree(package, first)
    data = model.read_bytes()
    for i, label in enumerate(labels):
        assert data.count(label.encode()) == 1
        model.write_bytes(data.replace(label.encode(), b"Label %02d" % i))
        expect(run("diff", first, package), 3, f'classes[{i}]: "label {i:02}" -> "Label {i:02}"')
    model.write_bytes(data.replace(b"label ", b"Label "))
    expect(run("diff", first, package), 3, '"Label 19"; ... 80 more, see --all')
    assert len(expect(run("diff", first, package, "--json"), 3).answer["operations"][0]["changes"]) == 100


def test_diff_of_metadata(folder):
    answer = diff(package(folder), package(folder, "signed", "--author", "Me", "--license", "MIT", "--description", "D"), 3,
                  'author: "" -> "Me"', 'license: "" -> "MIT"', 'description: "" -> "D"', "3 matched, 0 differ", "1 equal")
    assert len(answer["interface"]) == 3, answer


def test_diff_shows_twenty_of_a_kind(folder):
    lines = "".join(f"r{i} = exp(x = r{i - 1});\n" for i in range(1, 31))
    for name, op in (("one", "exp"), ("two", "tanh")):
        body = f"r0 = abs(x = a);\n{lines.replace('exp', op)}}} -> (r30);"
        (folder / f"{name}.mil").write_text(f"func main<ios16>(tensor<fp32, [2]> a) {{\n{body}\n")
    shown = run("diff", folder / "one.mil", folder / "two.mil").stdout
    assert "... 40 more, see --all" in shown and shown.count("\n") < 30, shown
    shown = run("diff", folder / "one.mil", folder / "two.mil", "--all").stdout
    assert "more" not in shown and shown.count('- exp "r') == 30 and shown.count('+ tanh "r') == 30, shown


def test_diff_wants_two_models(folder):
    a = package(folder)
    expect(run("diff", a), 2, "B is required", "mlc diff --help")
    expect(run("diff", a, folder / "nowhere"), 1, "error[file-io]", "nowhere")
    (folder / "empty").mkdir()
    expect(run("diff", a, folder / "empty"), 1, "error[unknown-format]", "empty")


def test_precompile(folder):
    a = package(folder)
    expect(run("precompile", a, folder=folder.path), 0, "a.mlmodelc", "experimental")
    expect(run("precompile", f"{a}/", folder=folder.path), 0, "a.mlmodelc")  # the tool's own output is replaced
    assert sorted(p.relative_to(folder / "a.mlmodelc").as_posix() for p in (folder / "a.mlmodelc").rglob("*")
                  if p.is_file()) == ["analytics/coremldata.bin", "coremldata.bin", "metadata.json", "model.mil",
                                      "weights/weight.bin"]
    assert json.loads((folder / "a.mlmodelc" / "metadata.json").read_text())[0]["generatedClassName"] == "a"
    assert (folder / "a.mlpackage" / "Data" / "com.apple.CoreML" / "weights" / "weight.bin").exists()
    answer = expect(run("precompile", a, "-o", folder / "j.mlmodelc", "--json"), 0).answer
    assert answer == {"bundle": str(folder / "j.mlmodelc")}, answer
    before = (folder / "a.mlmodelc" / "model.mil").read_text()
    assert '"3500.32.1"' in before and '"3500.14.1"' in before and "mlc-version" in before
    expect(run("precompile", a, "-o", folder / "v.mlmodelc", "--compiler-version", "3404.23.1", "--mil-version", "3404.16.1"), 0)
    after = (folder / "v.mlmodelc" / "model.mil").read_text()
    assert before.replace("3500.32.1", "3404.23.1").replace("3500.14.1", "3404.16.1") == after
    for bad in ("", "new", '1"', "1.2.x"):
        expect(run("precompile", a, "-o", folder / "w.mlmodelc", "--compiler-version", bad), 2, "--compiler-version", "3500.32.1")
        expect(run("inspect", a, "--mil", "--mil-version", bad), 2, "--mil-version", "3500.32.1")
    assert not (folder / "w.mlmodelc").exists()


def test_precompile_refuses(folder):
    a = package(folder)
    expect(run("precompile", folder / "a.onnx"), 2, "a.onnx", "expected: a .mlpackage", "mlc compile")
    expect(run("precompile", a, "-o", folder / "x.foo"), 2, "x.foo", ".mlmodelc")
    expect(run("precompile", a, "-o", folder / "a.mlmodelc"), 0)
    expect(run("precompile", folder / "a.mlmodelc"), 2, "already a compiled bundle")
    expect(run("precompile", a, "--check"), 1, "error[no-coreml]", "Mac")
    expect(run("precompile", folder / "nowhere.mlpackage"), 1, "error[file-io]", "nowhere")
    expect(run("precompile", a, "-o", folder / "no" / "where.mlmodelc"), 1, "error[file-io]", "does not exist")
    (folder / "mine.mlmodelc").mkdir()
    (folder / "mine.mlmodelc" / "precious").write_text("keep")
    expect(run("precompile", a, "-o", folder / "mine.mlmodelc"), 1, "error[file-exists]", "--force")
    assert [p.name for p in (folder / "mine.mlmodelc").iterdir()] == ["precious"]
    bare = folder / "bare.mlmodel"
    shutil.copy(a / "Data" / "com.apple.CoreML" / "model.mlmodel", bare)
    expect(run("precompile", bare, "-o", folder / "b.mlmodelc"), 1, "error[bad-file]", "beside the model")
    assert not (folder / "b.mlmodelc").exists()
    expect(run("inspect", bare, "--mil"), 0, "BLOBFILE")
    expect(run("run", bare), 1, "error[bad-file]", "weight.bin", "help: ")
    shutil.copytree(a / "Data" / "com.apple.CoreML" / "weights", folder / "weights")
    expect(run("precompile", bare, "-o", folder / "b.mlmodelc"), 0)
    diff(a, folder / "b.mlmodelc", 0)


def test_compile_makes_bundles(folder):
    package(folder)
    model, bundle = folder / "a.onnx", folder / "c.mlmodelc"
    expect(run("compile", model, "-o", bundle, "--precision", "fp32"), 0, "c.mlmodelc", "experimental")
    diff(folder / "a.mlpackage", bundle, 0)
    expect(run("precompile", folder / "a.mlpackage", "-o", folder / "p.mlmodelc"), 0)
    for file in ("model.mil", "coremldata.bin", "weights/weight.bin", "analytics/coremldata.bin"):
        assert (bundle / file).read_bytes() == (folder / "p.mlmodelc" / file).read_bytes(), file
    answer = expect(run("compile", model, "-o", bundle, "--json"), 0).answer
    assert answer["package"] == str(bundle) and answer["manifest"] == str(folder / "c.manifest.json"), answer
    assert answer["content_hash"] in (folder / "c.manifest.json").read_text()
    expect(run("run", bundle), 0, "y  fp32 [2,4]")
    expect(run("verify", model, bundle), 0, "PASSED")
    expect(run("compile", model, "-o", bundle, "--compiler-version", "1.2.3"), 0)
    assert '"1.2.3"' in (bundle / "model.mil").read_text()
    expect(run("compile", model, "-o", folder / "q.mlpackage", "--compiler-version", "1.2.3"), 2, "--compiler-version", ".mlmodelc")
    expect(run("compile", model, "-o", folder / "q.zip"), 2, ".mlpackage or .mlmodelc")
    assert [p.name for p in folder.path.iterdir() if p.name.startswith((".", "q", "hidden"))] == []


def test_only_compiled_bundles(folder):
    a = package(folder)
    expect(run("precompile", a, "-o", folder / "a.mlmodelc"), 0)
    expect(run("--no-compile", folder / "a.mlmodelc", program=RUN), 0, "y  fp32 [2,4]")
    (folder / "a.mil").write_text(run("opt", a, "--passes", "").stdout)
    bare = folder / "bare.mlmodel"
    shutil.copy(a / "Data" / "com.apple.CoreML" / "model.mlmodel", bare)
    for model, way in ((a, "mlc precompile"), (folder / "a.onnx", "mlc compile MODEL -o MODEL.mlmodelc"),
                       (folder / "a.mil", "mlc precompile"), (bare, "mlc precompile")):
        expect(run("--no-compile", model, program=RUN), 2, "--no-compile", model.name, "expected: a compiled bundle (.mlmodelc)", way)
        expect(run("run", "--no-compile", model), 2, "--no-compile")
    expect(run("--no-compile", folder / "nowhere", program=RUN), 1, "error[file-io]")
    expect(run("--no-compile", program=RUN), 2, "MODEL is required", "--help")
    # The same holds in a parity bundle.
    for made, code in ((a, 2), (folder / "a.mlmodelc", 0)):
        expect(run("verify", folder / "a.onnx", made, "--bundle", folder / "bundle"), 0)
        expect(run("--no-compile", "--bundle", folder / "bundle", program=RUN), code, "--no-compile" if code else "PASSED")


def test_the_text_as_json(folder):
    a = package(folder)
    answer = expect(run("inspect", a, "--mil", "--json"), 0).answer
    assert answer == {"format": "mlpackage", "mil": run("inspect", a, "--mil").stdout}


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "Core ML files on the command line", Folder))
