#!/usr/bin/env python3
"""Tests messages and errors of `mlc compile` about measuring: inputs that cannot be run, contradictory options."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests


def model(folder, nodes, inputs, output):
    """Writes an ONNX file with these nodes; inputs and outputs are (name, shape) of floats."""
    values = [[wire.value_info(name, wire.FLOAT, shape) for name, shape in some] for some in (inputs, [output])]
    (folder / "m.onnx").write_bytes(wire.model(wire.graph(nodes, *values, [])))
    return folder / "m.onnx"


def product(folder):
    return model(folder, [wire.node("MatMul", ["x", "w"], ["y"])], [("x", [2, 16]), ("w", [16, 4])], ("y", [2, 4]))


def given(folder, **arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def test_inputs_that_cannot_be_run_are_errors(folder):
    m = product(folder)
    wrong = given(folder / "wrong", x=np.zeros((3, 16), "f4"))
    expect(run("compile", m, "-o", folder / "a.mlpackage", "--calibrate", wrong), 1, 'input "x"', "2")
    assert not (folder / "a.mlpackage").exists()
    nothing = given(folder / "nan", x=np.full((2, 16), np.nan, "f4"))
    shown = expect(run("compile", m, "-o", folder / "a.mlpackage", "--calibrate", nothing), 0, "or not finite").stdout
    assert "--calibrate" not in shown, shown
    shown = expect(run("compile", m, "-o", folder / "b.mlpackage", "--calibrate", nothing, "--precision", "mixed", "--budget",
                       "fp16"), 0)
    assert "--budget was not checked" in shown.stderr, shown.stderr


def test_a_step_that_is_left_out_is_named(folder):
    m = product(folder)
    expect(run("compile", m, "-o", folder / "a.mlpackage"), 0)
    for steps, missing in ((("0", "1", "3"), "2"), (("1", "2"), "0"), (("00", "01"), "0")):
        steps = [given(folder / "of" / missing / step, x=np.ones((2, 16), "f4")).parent for step in steps]
        for command in (["compile", m, "-o", folder / "a.mlpackage", "--force", "--calibrate", steps[0]],
                        ["verify", m, folder / "a.mlpackage", "--inputs", steps[0]],
                        ["verify", m, folder / "a.mlpackage", "--reference", steps[0]]):
            expect(run(*command), 1, "error[bad-input]", f'no "{missing}"')


def test_elements_judged_one_by_one_have_columns_of_their_own(folder):
    nodes = [wire.node("MatMul", ["x", "w"], ["p"]), wire.node("Softmax", ["p"], ["y"])]
    m = model(folder, nodes, [("x", [64, 64]), ("w", [64, 64])], ("y", [64, 64]))
    (folder / "b.json").write_text('{"atol": 1e-4}')
    made = run("compile", m, "-o", folder / "a.mlpackage", "--precision", "mixed", "--budget", folder / "b.json")
    assert "not measured" not in made.stdout, made.stdout
    rows = [line.split() for line in made.stdout.splitlines() if line.strip().endswith(("y", "beyond")) and "%" in line]
    assert rows and all(row[3:6] == ["0", "elements", "y"] for row in rows), made.stdout


def test_options_that_contradict_each_other(folder):
    m = product(folder)
    for options in (["--precision", "fp32", "--fp16-ops", "matmul"], ["--precision", "fp32", "--calibrate", folder],
                    ["--fp16-ops", "matmul", "--fp32-ops", "matmul"]):
        expect(run("compile", m, "-o", folder / "a.mlpackage", *options), 2, "error[usage]")
        assert not (folder / "a.mlpackage").exists()


def test_operations_are_named_as_in_the_source(folder):
    nodes = [wire.node("Exp", ["x"], ["/block/Exp_output_0"]), wire.node("Sqrt", ["/block/Exp_output_0"], ["y"])]
    m = model(folder, nodes, [("x", [2, 40000])], ("y", []))
    for name in ("/block/Exp_output_0", "_block_Exp_output_0"):
        made = expect(run("compile", m, "-o", folder / "a.mlpackage", "--force", "--fp32-ops", name, "--json"), 0).answer
        assert [d["subject"] for d in made["decisions"] if d["reason"].endswith("--fp32-ops")] == ["_block_Exp_output_0"], made["decisions"]
    expect(run("compile", m, "-o", folder / "a.mlpackage", "--force", "--fp32-ops", "/block/Exp"), 1, "_block_Exp_output_0")


def test_a_wrong_budget_is_told_before_the_model_is_read(folder):
    (folder / "budget.json").write_text("{")
    for budget in (folder / "budget.json", folder / "none.json"):
        ran = run("compile", folder / "no.onnx", "-o", folder / "a.mlpackage", "--precision", "mixed", "--budget", budget)
        assert ran.code in (1, 2) and budget.name in ran.stderr and "pass" not in ran.stderr, ran.stderr


def near_one(folder):
    """exp(tanh(x) / 1000) - 1, of which fp16 loses most digits; its operations are less than 5 % of the work."""
    scalars = [wire.tensor(name, wire.FLOAT, (), np.float32(value).tobytes()) for name, value in (("c", 1e-3), ("one", 1))]
    nodes = [wire.node("Tanh", ["x"], ["t"]), wire.node("Mul", ["t", "c"], ["m"]), wire.node("Exp", ["m"], ["e"]), wire.node("Sub", ["e", "one"], ["y"])]
    values = [[wire.value_info(name, wire.FLOAT, [2, 512])] for name in "xy"]
    (folder / "near.onnx").write_bytes(wire.model(wire.graph(nodes, *values, scalars)))
    return folder / "near.onnx"


def test_what_exceeds_its_budget_is_said_and_passes_as_stated(folder):
    m, package = near_one(folder), folder / "a.mlpackage"
    made = expect(run("compile", m, "-o", package), 0, "warning[fp16-error]", 'output "y" has an error of', "--precision mixed")
    assert "% error)" in made.stdout, made.stdout
    manifest = json.loads((folder / "a.manifest.json").read_text())
    stated, = manifest["rounding"]["exceeded"]
    assert stated["output"] == "y" and stated["error"] > stated["allowed"] >= 1e-2 and manifest["fp16_share"] == 1, manifest
    expect(run("verify", m, package), 0, "over y", "PASSED, exceeds the budget as stated in the manifest")
    # Without the manifest no error is stated; more than 1.5 times the stated error never passes.
    (folder / "a.manifest.json").rename(folder / "kept")
    expect(run("verify", m, package), 3, "FAILED")
    manifest["rounding"]["exceeded"][0]["error"] /= 3
    (folder / "a.manifest.json").write_text(json.dumps(manifest))
    expect(run("verify", m, package), 3, "FAILED")
    # Errors within the budget are not stated.
    expect(run("compile", product(folder), "-o", folder / "b.mlpackage"), 0)
    assert "exceeded" not in json.loads((folder / "b.manifest.json").read_text())["rounding"]
    expect(run("compile", m, "-o", folder / "c.mlpackage", "--precision", "mixed"), 0)
    assert "exceeds" not in expect(run("verify", m, folder / "c.mlpackage"), 0, "PASSED").stdout


def test_strict_fp16_fails_where_something_stays_fp32(folder):
    m = folder / "large.onnx"
    values = [[wire.value_info(name, wire.FLOAT, [2, 512])] for name in "xy"]
    large = wire.tensor("c", wire.FLOAT, (), np.float32(1e6).tobytes())
    m.write_bytes(wire.model(wire.graph([wire.node("Mul", ["x", "c"], ["z"]), wire.node("Tanh", ["z"], ["y"])], *values, [large])))
    expect(run("compile", m, "-o", folder / "a.mlpackage", "--fp16-strict"), 3, "--fp16-strict", "2 operations", "the maximum of fp16 is 65504", "--fp16-ops")
    assert not (folder / "a.mlpackage").exists()
    made = expect(run("compile", m, "-o", folder / "a.mlpackage", "--json"), 0).answer
    assert {d["id"] for d in made["decisions"] if d["kind"] == "fp32"} == {"overflow"}, made["decisions"]
    expect(run("compile", product(folder), "-o", folder / "b.mlpackage", "--fp16-strict"), 0)


def test_a_newer_target_that_has_fp16_is_named(folder):
    # Recurrent layers are fp32 before iOS17.
    rng = np.random.default_rng(0)
    weights = [wire.tensor(name, wire.FLOAT, shape, rng.standard_normal(shape).astype("f4").tobytes())
               for name, shape in (("w", (1, 32, 8)), ("r", (1, 32, 8)))]
    values = [[wire.value_info("x", wire.FLOAT, [4, 1, 8])], [wire.value_info("y", wire.FLOAT, [4, 1, 1, 8])]]
    m = folder / "lstm.onnx"
    m.write_bytes(wire.model(wire.graph([wire.node("LSTM", ["x", "w", "r"], ["y"], hidden_size=8)], *values, weights)))
    expect(run("compile", m, "-o", folder / "a.mlpackage"), 0, "less with --target iOS17")
    assert "less with" not in expect(run("compile", m, "-o", folder / "b.mlpackage", "--target", "iOS17"), 0).stdout


def test_large_inputs_cost_little(folder):
    """256 samples of an output of 3 elements, or the allowed output sizes, would take gigabytes."""
    for shape in ([10, 1000, 1000], ["n", 3, "h", "w"], [64, 3, 1080, 1920]):
        m = model(folder, [wire.node("ReduceMax", ["x"], ["y"], keepdims=0)], [("x", shape)], ("y", []))
        stats = expect(run("compile", m, "-o", folder / "a.mlpackage", "--force", "--json"), 0).answer
        assert stats["peak_memory_bytes"] < 1e9, (shape, stats["peak_memory_bytes"])


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "measuring"))
