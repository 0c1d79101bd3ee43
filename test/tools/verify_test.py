#!/usr/bin/env python3
"""Tests `mlc verify`: it compares every function, state and step, and never passes if nothing was compared."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import MLC, expect, run, run_tests
from language_models import Llama

RUN = MLC.with_name("mlc-run")
FLOAT = wire.FLOAT


def accumulator(write="write_state(data = y, input = s);"):
    return f"""func main<ios18>(state<tensor<fp16, [4]>> s, tensor<fp16, [4]> x) {{
  t = read_state(input = s);
  y = add(x = t, y = x);
  {write}
}} -> (y);
"""


def functions(second="sin", third=""):
    body = "func {}<ios18>(tensor<fp32, [4]> x) {{\n  y = {}(x = x);\n}} -> (y);\n"
    return body.format("first", "relu") + body.format("second", second) + (third and body.format("third", third))


def mil(folder, name, text):
    (folder / f"{name}.mil").write_text(text)
    return folder / f"{name}.mil"


def package(folder, name, text):
    expect(run("opt", mil(folder, name, text), "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def graph(path, nodes, inputs, outputs, initializers=()):
    path.write_bytes(wire.model(wire.graph(nodes, [wire.value_info(*i) for i in inputs],
                                           [wire.value_info(*o) for o in outputs], initializers)))
    return path


def floats(name, values):
    values = np.asarray(values, "<f4")
    return wire.tensor(name, FLOAT, list(values.shape), values.tobytes())


def linear(folder, name="linear"):
    w = np.arange(32).reshape(8, 4) / 7 % 1 - 0.5
    return graph(folder / f"{name}.onnx", [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Relu", ["h"], ["y"])],
                 [("x", FLOAT, [2, 8])], [("y", FLOAT, [2, 4])], [floats("w", w)])


def compiled(folder, model, *options):
    expect(run("compile", model, "-o", folder / (model.stem + ".mlpackage"), *options), 0)
    return folder / (model.stem + ".mlpackage")


def save(folder, **tensors):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in tensors.items():
        np.save(folder / f"{name}.npy", value)
    return folder


def test_a_lost_write_to_a_state_fails(folder):
    source, good = mil(folder, "source", accumulator()), package(folder, "good", accumulator())
    shown = expect(run("verify", source, good), 0, "PASSED", "ok   y", "ok   state s").stdout
    assert "of 3)" in shown, shown
    for name, write in (("lost", ""), ("other", "write_state(data = x, input = s);")):
        bad = package(folder, name, accumulator(write))
        expect(run("verify", source, bad), 3, "FAIL y", "FAIL state s", "FAILED")
        expect(run("verify", source, bad, "--bundle", folder / "bundle"), 3)
        expect(run("--bundle", folder / "bundle", program=RUN), 3, "FAIL y", "FAIL state s")
        expect(run("verify", "--result", folder / "bundle" / "result.json"), 3, "FAIL state s", "compared again")
    # After one step only the state differs; after another step the output does too.
    expect(run("verify", source, folder / "lost.mlpackage", "--samples", "1"), 3, "ok   y", "FAIL state s")
    answer = expect(run("verify", source, good, "--json", "--samples", "2"), 0).answer
    assert [(o["name"], o["kind"], o["step"]) for o in answer["outputs"]] == [
        ("y", "output", 0), ("s", "state", 0), ("y", "output", 1), ("s", "state", 1)], answer


def test_every_function_is_compared(folder):
    source, good = mil(folder, "source", functions()), package(folder, "good", functions())
    expect(run("verify", source, good), 0, "function first:", "function second:", "PASSED")
    bad = package(folder, "bad", functions("cos"))
    expect(run("verify", source, bad), 3, "function second:\nFAIL y")
    expect(run("verify", source, bad, "--function", "first"), 0, "PASSED")
    expect(run("verify", source, bad, "--function", "second"), 3, "FAIL y")
    expect(run("verify", source, bad, "--function", "third"), 1, 'no function "third"', "first, second")
    more = package(folder, "more", functions(third="exp"))
    expect(run("verify", source, more), 3, "the source has no function third", "--function")
    expect(run("verify", mil(folder, "all", functions(third="exp")), good), 3, "the package has no function third")
    expect(run("verify", source, more, "--function", "second"), 0, "PASSED")
    expect(run("verify", source, bad, "--bundle", folder / "bundle"), 3)
    expect(run("--bundle", folder / "bundle", program=RUN), 3, "function second:\nFAIL y")
    expect(run("verify", "--result", folder / "bundle" / "result.json"), 3, "function second:\nFAIL y")


def test_run_takes_a_function(folder):
    made = package(folder, "made", functions())
    x = np.array([-1, 0.5, 1, 2], np.float32)
    save(folder, x=x)
    for name, expected in ((None, np.maximum(x, 0)), ("first", np.maximum(x, 0)), ("second", np.sin(x))):
        options = ["--function", name] if name else []
        expect(run("run", made, "--input", f"x={folder}/x.npy", "--output-dir", folder / "out", *options), 0)
        np.testing.assert_allclose(np.load(folder / "out" / "y.npy"), expected, atol=1e-6)
    expect(run("run", made, "--function", "third"), 1, 'no function "third"', "first, second")


def test_check_each_sees_functions_and_states(folder):
    expect(run("opt", mil(folder, "s", accumulator()), "--check-each", "1", "-o", folder / "o.mil"), 0)
    expect(run("opt", mil(folder, "f", functions()), "--check-each", "1", "-o", folder / "o.mil"), 0)


def test_functions_and_steps_in_folders(folder):
    source, good = mil(folder, "source", accumulator()), package(folder, "good", accumulator())
    total = np.zeros(4, np.float16)
    for step in range(4):
        x = np.arange(4).astype(np.float16) + step
        total = total + x
        save(folder / "in" / str(step), x=x)
        save(folder / "out" / str(step), y=total)
        save(folder / "out" / str(step) / "states", s=total)
    both = ["--inputs", folder / "in", "--reference", folder / "out"]
    expect(run("verify", source, good, *both), 0, "ok   y", "ok   state s", "of 4)")
    save(folder / "out" / "2" / "states", s=total)  # the value after the fourth step
    expect(run("verify", source, good, *both), 3, "ok   y", "FAIL state s", "(step 3 of 4)")
    expect(run("verify", source, good, *both, "--samples", "2"), 2, "--reference has 4 samples")
    # The folders of a bundle can be passed again.
    expect(run("verify", source, good, "--bundle", folder / "bundle"), 0)
    expect(run("verify", source, good, "--inputs", folder / "bundle" / "inputs", "--reference",
               folder / "bundle" / "reference"), 0, "ok   state s", "of 3)")

    source, made = mil(folder, "two", functions()), package(folder, "made", functions())
    x = np.array([-1, 0.5, 1, 2], np.float32)
    for name in ("first", "second"):
        save(folder / "given" / name, x=x)
    save(folder / "known" / "first", y=np.maximum(x, 0))
    both = ["--inputs", folder / "given", "--reference", folder / "known"]
    expect(run("verify", source, made, *both), 1, "contains no output of function second")
    save(folder / "known" / "second", y=np.cos(x))
    expect(run("verify", source, made, *both), 3, "function second:\nFAIL y")
    save(folder / "known" / "second", y=np.sin(x))
    expect(run("verify", source, made, *both), 0, "PASSED")
    expect(run("verify", source, made, *both, "--function", "second"), 0, "PASSED")


def test_what_is_given_must_be_there(folder):
    model = linear(folder)
    made = compiled(folder, model)
    (folder / "empty").mkdir()
    expect(run("verify", model, made, "--inputs", folder / "empty"), 2, "empty", "contains no inputs")
    save(folder / "outputs", out_y=np.zeros((2, 4), np.float32))
    expect(run("verify", model, made, "--inputs", folder / "outputs"), 2, "contains no inputs")


def test_the_order_of_the_arguments(folder):
    model = linear(folder)
    made = compiled(folder, model)
    expect(run("verify", made, model), 2, "is a source model", f"mlc verify {model} {made}")
    expect(run("verify", model, model), 2, "is a source model", "mlc compile")


def test_a_package_does_not_prove_itself(folder):
    made = compiled(folder, linear(folder))
    expect(run("verify", made, made), 2, "are the same")
    (folder / "link").symlink_to(made)
    expect(run("verify", made, folder / "link"), 2, "are the same")
    shutil.copytree(made, folder / "copy.mlpackage")
    expect(run("verify", made, folder / "copy.mlpackage"), 2, "are the same")
    # Outputs that were computed elsewhere prove it.
    x = np.arange(16, dtype=np.float32).reshape(2, 8) % 5 - 1
    w = (np.arange(32).reshape(8, 4) / 7 % 1 - 0.5).astype("f4")
    both = ["--inputs", save(folder / "in", x=x), "--reference", save(folder / "out", y=np.maximum(x @ w, 0))]
    expect(run("verify", made, made, *both), 0, "PASSED")


def test_outputs_that_tell_nothing_do_not_pass(folder):
    model = graph(folder / "zero.onnx", [wire.node("Mul", ["x", "zero"], ["y"])], [("x", FLOAT, [4])], [("y", FLOAT, [4])],
                  [floats("zero", 0.0)])
    made = compiled(folder, model)
    nothing = "nothing was compared"
    expect(run("verify", model, made, "--bundle", folder / "bundle"), 3, "not discriminating", nothing)
    assert expect(run("verify", model, made, "--json"), 3).answer["ok"] is False
    expect(run("--bundle", folder / "bundle", program=RUN), 3, nothing)
    assert json.loads((folder / "bundle" / "result.json").read_text())["ok"] is False
    expect(run("verify", "--result", folder / "bundle" / "result.json"), 3, nothing)
    # A package that returns something else where the reference is constant.
    other = linear(folder)
    made = compiled(folder, other)
    known = save(folder / "known", y=np.zeros((2, 4), np.float32))
    shown = run("verify", other, made, "--reference", known, "--bundle", folder / "second")
    expect(shown, 3, nothing, "warning", '"y" differs from its constant reference')
    expect(run("--bundle", folder / "second", program=RUN), 3, nothing)


def test_an_integer_reference_of_a_float_output_is_a_number(folder):
    model = linear(folder)
    made = compiled(folder, model, "--precision", "fp32")
    x = np.random.default_rng(1).standard_normal((2, 8)).astype("f4") * 9
    w = (np.arange(32).reshape(8, 4) / 7 % 1 - 0.5).astype("f4")
    y = np.maximum(x @ w, 0)
    assert (y != np.trunc(y)).any()
    both = ["--inputs", save(folder / "in", x=x), "--reference", save(folder / "out", y=y.astype(np.int64))]
    expect(run("verify", model, made, *both), 3, "FAIL y", "max error")


def detector(folder):
    """Boxes with coordinates in thousands of pixels and scores below 1: [1, 4 + 80, 50]."""
    scale = np.ones((1, 84, 1), np.float32)
    scale[:, :4] = 6400
    model = graph(folder / "detector.onnx", [wire.node("Mul", ["x", "scale"], ["rows"]), wire.node("Relu", ["x"], ["z"])],
                  [("x", FLOAT, [1, 84, 50])], [("rows", FLOAT, [1, 84, 50]), ("z", FLOAT, [1, 84, 50])],
                  [floats("scale", scale)])
    x = np.random.default_rng(0).random((1, 84, 50), np.float32)
    rows = x * scale
    rows[:, 64:84] = rows[:, 64:84][:, :, ::-1]  # the scores of 20 classes
    both = ["--inputs", save(folder / "in", x=x), "--reference", save(folder / "out", rows=rows, z=x)]
    return model, compiled(folder, model, "--precision", "fp32"), both


def test_slices_that_the_figure_hides(folder):
    model, made, both = detector(folder)
    shown = expect(run("verify", model, made, *both), 0, "PASSED", "slices along axis 1 differ", "--per-axis 1").stdout
    assert shown.count("slices along axis") == 1, shown
    hidden = expect(run("verify", model, made, *both, "--json"), 0).answer["outputs"][0]["hidden"]
    assert hidden["axis"] == 1 and 64 <= hidden["slice"] < 84 and hidden["max_error"] > 0.5 and hidden["ratio"] > 5000, hidden
    shown = expect(run("verify", model, made, *both, "--per-axis", "1"), 3, "FAIL rows", "ok   z", "by slices of axis 1").stdout
    assert "slices along axis 1 differ" not in shown, shown
    expect(run("verify", model, made, *both, "--per-axis", "-2"), 3, "FAIL rows", "ok   z")
    expect(run("verify", model, made, *both, "--per-axis", "3"), 2, "no output has an axis 3")
    expect(run("verify", model, made, *both, "--per-axis", "one"), 2, "--per-axis")


def test_the_worst_element_is_shown(folder):
    model = linear(folder)
    made = compiled(folder, model, "--precision", "fp32")
    x = np.arange(16, dtype=np.float32).reshape(2, 8) % 5 - 1
    w = (np.arange(32).reshape(8, 4) / 7 % 1 - 0.5).astype("f4")
    y = np.maximum(x @ w, 0)
    y[1, 2] += 10
    both = ["--inputs", save(folder / "in", x=x), "--reference", save(folder / "out", y=y)]
    shown = expect(run("verify", model, made, *both), 3, "worst at [1, 2]: ", "error: max |difference| / max(range")
    answer = expect(run("verify", model, made, *both, "--json"), 3).answer
    worst = answer["outputs"][0]["worst"]
    assert worst["position"] == [1, 2] and worst["index"] == 6 and abs(worst["reference"] - worst["value"] - 10) < 1e-4, worst
    assert abs(answer["outputs"][0]["max_error"] - 10 / max(np.ptp(y), np.abs(y).max())) < 1e-5, answer
    assert "|difference|" in answer["figure"], answer
    expect(run("verify", "--help"), 0, "max |difference| / max(range")
    expect(run("verify", model, made, *both, "--bundle", folder / "bundle"), 3)
    expect(run("--bundle", folder / "bundle", program=RUN), 3, "worst at [1, 2]: ", "error: max |difference| / max(range")


def test_budgets_by_element_and_by_output(folder):
    model, made, both = detector(folder)
    expect(run("verify", model, made, *both, "--atol", "1"), 0, "|difference| <= 1 + 0 |reference|")
    expect(run("verify", model, made, *both, "--atol", "0.1"), 3, "FAIL rows", "elements outside atol and rtol", "ok   z")
    expect(run("verify", model, made, *both, "--atol", "0.01", "--rtol", "1e-6"), 3, "FAIL rows", "ok   z")
    expect(run("verify", model, made, *both, "--rtol", "x"), 2, "--rtol")
    expect(run("verify", model, made, *both, "--atol", "-1"), 2, "--atol")

    def budget(value):
        (folder / "budget.json").write_text(json.dumps(value))
        return run("verify", model, made, *both, "--budget", folder / "budget.json", "--bundle", folder / "bundle")

    expect(budget({"base": "fp32", "outputs": {"rows": {"per_axis": 1}}}), 3, "FAIL rows", "ok   z")
    expect(run("--bundle", folder / "bundle", program=RUN), 3, "FAIL rows", "ok   z")
    expect(run("verify", "--result", folder / "bundle" / "result.json"), 3, "FAIL rows", "ok   z")
    expect(budget({"base": "fp32", "outputs": {"rows": {"per_axis": 1, "max_error": 2, "rmse": 2}}}), 0, "PASSED")
    expect(run("--bundle", folder / "bundle", program=RUN), 0, "PASSED")
    expect(budget({"base": "fp32", "outputs": {"row": {"per_axis": 1}}}), 1, 'no output "row"')
    expect(budget({"max_error": 1, "rms": 1}), 1, 'unknown field "rms"')


def test_layers_compares_what_is_the_same_tensor(folder):
    source = mil(folder, "source", """func main<ios16>(tensor<fp32, [4, 4]> x) {
  a = mul(x = x, y = 2.0);
  b = slice_by_index(x = a, begin = [0, 0], end = [2, 3]);
  c = exp(x = a);
} -> (b, c);
""")
    text = """func main<ios16>(tensor<fp32, [4, 4]> x) {
  t = transpose(x = x, perm = [1, 0]);
  a = mul(x = t, y = 2.0);
  u = slice_by_index(x = a, begin = [0, 0], end = [3, 2]);
  b = transpose(x = u, perm = [1, 0]);
  v = transpose(x = a, perm = [1, 0]);
  c = exp(x = v);
} -> (b, c);
"""
    shown = expect(run("verify", source, package(folder, "turned", text), "--layers"), 0, "all values are within").stdout
    assert "2 values exist in both programs; 1 more share a name" in shown, shown
    wrong = package(folder, "wrong", text.replace("exp(x = v)", "exp2(x = v)"))
    shown = expect(run("verify", source, wrong, "--layers", "--worst", "1"), 3, 'first value outside the budget: exp2 "c"').stdout
    assert 'worst 1 values:\nFAIL exp2 "c": max error' in shown and 'transpose "b"' not in shown, shown
    layers = expect(run("verify", source, wrong, "--layers", "--json"), 3).answer["layers"]
    assert [(layer["name"], layer["within"]) for layer in layers] == [("b", True), ("c", False)], layers


def test_what_the_manifest_says_of_the_compilation(folder):
    """By default the source is imported with the options of the compilation, and this is reported."""
    graph = wire.graph([wire.node("Relu", ["x"], ["y"])], [wire.value_info("x", wire.FLOAT, ["b", 3, 16, 16])],
                       [wire.value_info("y", wire.FLOAT, ["b", 3, 16, 16])], [])
    (folder / "picture.onnx").write_bytes(wire.model(graph))
    package = folder / "picture.mlpackage"
    expect(run("compile", folder / "picture.onnx", "-o", package, "--dim", "b=1", "--image", "x=rgb,1/255,0"), 0)
    shown = expect(run("verify", folder / "picture.onnx", package), 0, "PASSED", "manifest").stderr
    assert "--dim b=1" in shown and "--image x=rgb" in shown, shown
    shown = expect(run("verify", folder / "picture.onnx", package, "--dim", "b=1", "--image", "x=rgb,1/255,0"), 0, "PASSED").stderr
    assert "manifest" not in shown, shown
    expect(run("verify", folder / "picture.onnx", package, "--image", "x=rgb,1/100,0"), 3, "FAIL")
    package.with_suffix(".manifest.json").unlink()
    assert run("verify", folder / "picture.onnx", package).code != 0
    model = Wide()
    model.gguf(folder / "m.gguf")
    expect(run("compile", folder / "m.gguf", "-o", folder / "m.mlpackage", "--requant", "int4", "--context", "16"), 0)
    expect(run("verify", folder / "m.gguf", folder / "m.mlpackage"), 0, "--requant int4", "--context 16", "PASSED")
    expect(run("verify", folder / "m.gguf", folder / "m.mlpackage", "--requant", "fp16"), 3, "FAIL")


class Wide(Llama):
    width, head, inner, vocabulary = 64, 16, 128, 96


def test_layers_do_not_judge_what_both_mask(folder):
    """Differences in masked values are ignored: they are never the worst layer, and their size does not hide errors in values
    that are added to them."""
    text = """func main<ios16>(tensor<fp32, [2, 4]> x, tensor<int32, [4]> p) {
  c = cast(x = p, dtype = "bool");
  m = select(cond = c, a = 0.0, b = MASK);
  s = add(x = x, y = m);
  y = softmax(x = s);
} -> (y);
"""
    np.save(folder / "x.npy", np.linspace(-2, 2, 8, dtype="f4").reshape(2, 4))
    np.save(folder / "p.npy", np.array([1, 0, 1, 1], "i4"))
    for number, mask in enumerate(("-3.4028235e38", "-inf", "-1e9")):
        source = mil(folder, f"masked{number}", text.replace("MASK", mask))
        package = folder / f"masked{number}.mlpackage"
        expect(run("opt", source, "--precision", "fp16", "-o", package), 0)
        options = ("--inputs", folder, "--layers")
        layers = {l["name"]: l for l in expect(run("verify", source, package, *options, "--json"), 0).answer["layers"]}
        assert layers["s"]["within"] and layers["s"]["max_error"] < 1e-3, (mask, layers)
        expect(run("verify", source, package, *options), 0, "all values are within")
        # Where only one side is masked, all values count.
        wrong = mil(folder, f"wrong{number}", text.replace("MASK", mask).replace("add(x = x,", "add(x = z,").replace("  s =", "  z = mul(x = x, y = 1.5);\n  s ="))
        expect(run("opt", wrong, "--precision", "fp16", "-o", package, "--force"), 0)
        layers = {l["name"]: l for l in expect(run("verify", source, package, *options, "--json"), 3).answer["layers"]}
        assert not layers["s"]["within"] and layers["s"]["max_error"] > 0.1, (mask, layers)
        wrong = mil(folder, f"unmasked{number}", text.replace("MASK", "-100.0"))
        expect(run("opt", wrong, "--precision", "fp16", "-o", package, "--force"), 0)
        layers = {l["name"]: l for l in run("verify", source, package, *options, "--json").answer["layers"]}
        assert not layers["s"]["within"], (mask, layers)


def test_a_manifest_with_switches_is_read(folder):
    nodes = [wire.node("Relu", ["x"], ["y"])]
    values = [[wire.value_info(name, wire.FLOAT, ["n", 8])] for name in "xy"]
    (folder / "s.onnx").write_bytes(wire.model(wire.graph(nodes, *values, [])))
    for switch in ("--force", "--no-measure", "--sha256", "--verify-each"):
        expect(run("compile", folder / "s.onnx", "-o", folder / "s.mlpackage", "--force", "--dim", "n=3", switch), 0)
        expect(run("verify", folder / "s.onnx", folder / "s.mlpackage"), 0, "--dim n=3, according to the package's manifest", "PASSED")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "verify"))
