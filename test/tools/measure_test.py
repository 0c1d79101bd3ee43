#!/usr/bin/env python3
"""What `mlc compile` says and refuses about measuring: inputs that cannot be run, options that contradict each other."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests


def model(folder, nodes, inputs, output):
    """An ONNX file of these nodes; inputs and output: (name, shape) of floats."""
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
    shown = expect(run("compile", m, "-o", folder / "a.mlpackage", "--calibrate", nothing), 0, "or no number").stdout
    assert "--calibrate" not in shown, shown
    shown = expect(run("compile", m, "-o", folder / "b.mlpackage", "--calibrate", nothing, "--precision", "mixed", "--budget",
                       "fp16"), 0)
    assert "--budget was not looked at" in shown.stderr, shown.stderr


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


def test_large_inputs_cost_little(folder):
    """Of which 256 samples of an output of 3 elements, or sizes that outputs allow, would be gigabytes."""
    for shape in ([10, 1000, 1000], ["n", 3, "h", "w"], [64, 3, 1080, 1920]):
        m = model(folder, [wire.node("ReduceMax", ["x"], ["y"], keepdims=0)], [("x", shape)], ("y", []))
        stats = expect(run("compile", m, "-o", folder / "a.mlpackage", "--force", "--json"), 0).answer
        assert stats["peak_memory_bytes"] < 1e9, (shape, stats["peak_memory_bytes"])


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "measuring"))
