#!/usr/bin/env python3
"""Tests `mlc explain`: coverage, limits, sizes, functions, and the comparison with a device. The rules themselves are tested in
test/lib/analysis/placement_test.cpp."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import onnx_wire as wire
from command_line_test import FLOAT, Folder, ints
from driver import expect, run, run_tests
from interface_test import functions

# tan has no kernel on the Neural Engine; the rest is fp16.
ISLAND = """func main<ios16>(tensor<fp16, [1, 64]> x) {
  a = relu(x = x); b = tan(x = a); y = exp(x = b);
} -> (y);"""


def text(folder, program, name="p"):
    (folder / f"{name}.mil").write_text(program)
    return folder / f"{name}.mil"


def explained(model, *options, code=0):
    return expect(run("explain", model, "--json", *options), code).answer


def test_coverage_segments_and_the_value_of_a_fix(folder):
    model = text(folder, ISLAND)
    function = explained(model)["functions"][0]
    assert (function["operations"], function["eligible_operations"]) == (3, 2)
    assert [segment["eligible"] for segment in function["segments"]] == [True, False, True]
    assert (function["transfers"], function["transfer_bytes"]) == (2, 256)
    rule = function["rules"][0]
    assert (rule["id"], rule["severity"], rule["operations"]) == ("no-function", "cannot run", 1)
    assert rule["work_coverage_without_pct"] == 100 and rule["source"] and rule["fix"] and rule["standing"] == "measured"
    assert function["findings"][0]["operation"] == "b" and function["findings"][0]["operator"] == "tan"
    expect(run("explain", model), 0, "2 of 3 operations can run on the Neural Engine, in 2 parts; 2 tensors (256 bytes) are copied between units",
           "no-function", 'tan "b"', "this fix alone raises the coverage from 66.7 % to 100.0 % of the work", "Needs work: start with no-function")


def test_units_and_chips(folder):
    model = text(folder, ISLAND.replace("tan", "sin"))
    assert explained(model, "--chip", "M2")["work_coverage_pct"] < 70
    assert explained(model, "--chip", "m3")["work_coverage_pct"] == 100
    assert explained(model, "--units", "gpu")["work_coverage_pct"] == 100
    assert explained(model, "--units", "cpu")["unit"] == "CPU"
    expect(run("explain", model, "--chip", "A11"), 2, "--chip", "A12, A13, A14")
    expect(run("explain", model, "--units", "all"), 2, "ane, gpu or cpu")


def test_a_limit(folder):
    model = text(folder, ISLAND)
    expect(run("explain", model, "--fail-under", "66"), 0)
    expect(run("explain", model, "--fail-under", "67"), 3, "FAILED: 66.7 % of the work")
    assert explained(model, "--fail-under", "67", code=3)["passed"] is False
    expect(run("explain", model, "--fail-under", "101"), 2, "0 to 100")
    expect(run("explain"), 2, "MODEL")


def test_a_source_is_compiled(folder):
    model = folder.model("m.onnx", [wire.node("Relu", ["x"], ["a"]), wire.node("Sinh", ["a"], ["y"])],
                         [("x", FLOAT, [1, 64])], [("y", FLOAT, [1, 64])])
    answer = explained(model)
    assert answer["functions"][0]["sizes"] == {}
    found = {finding["rule"]: finding for finding in answer["functions"][0]["findings"]}
    assert found["no-function"]["source"] == 'node of output "y"', found
    assert {"fp32-port", "no-function"} <= set(found)  # the casts of the input and output, and sinh
    assert explained(model, "--io", "fp16")["work_coverage_pct"] == 50
    assert explained(model, "--precision", "fp32")["work_coverage_pct"] == 0
    assert not list((folder / "m.onnx").parent.glob("*.mlpackage"))
    # The package says the same, and its manifest, too.
    expect(run("compile", model, "--io", "fp16", "-o", folder / "m.mlpackage"), 0)
    assert explained(folder / "m.mlpackage")["work_coverage_pct"] == 50
    placement = json.loads((folder / "m.manifest.json").read_text())["placement"]
    assert placement["ane_op_coverage_pct"] == 50 and placement["chip"] == "A14", placement
    assert list(placement["not_eligible"]) == ["no-function"] and len(placement["not_eligible"]["no-function"]) == 1


def test_each_listed_size_is_examined(folder):
    model = folder.model("m.onnx", [wire.node("Relu", ["x"], ["y"])], [("x", FLOAT, [1, "n"])], [("y", FLOAT, [1, "n"])])
    assert explained(model, "--io", "fp16")["work_coverage_pct"] == 0  # an open size
    sizes = explained(model, "--io", "fp16", "--dim", "n=8,16,20000")["functions"]
    assert [(f["sizes"]["n"], f["work_coverage_pct"]) for f in sizes] == [(8, 100), (16, 100), (20000, 0)]
    expect(run("explain", model, "--io", "fp16", "--dim", "n=8,16,20000"), 0, "function main at n = 8: 100.0 %", "function main at n = 20000: 0.0 %",
           "long-axis", "axis 1 of x has 20000 elements")


def test_sizes_that_are_not_valid_together(folder):
    # At the lower bound of n, a dimension is negative.
    model = folder.model("m.onnx", [wire.node("Pad", ["x", "p"], ["a"], mode="constant"), wire.node("Relu", ["a"], ["y"])],
                         [("x", FLOAT, [1, "n"])], [("y", FLOAT, [1, "m"])], [ints("p", [0, -3, 0, -3])])
    assert explained(model)["work_coverage_pct"] == 0


def test_each_function_is_explained(folder):
    package = functions(folder)
    found = explained(package)["functions"]
    assert sorted(f["function"] for f in found) == ["f", "g", "h"], found


def test_a_measurement_contradicts_the_rules(folder):
    model = text(folder, ISLAND)

    def measured(*entries):
        placement = {"by_operation": [dict(zip(("name", "device", "supported"), entry)) for entry in entries]}
        (folder / "measured.json").write_text(json.dumps({"placement": placement}))
        return folder / "measured.json"

    agrees = measured(("a", "ane"), ("b", "cpu"), ("y", "ane"))
    answer = explained(model, "--measured", agrees)["measured"]
    assert answer == {"compared": 3, "ran_although_forbidden": [], "did_not_run_although_allowed": []}
    # What a device supports counts more than what it chose.
    answer = explained(model, "--measured", measured(("a", "gpu"), ("b", "ane"), ("y", "cpu", ["cpu", "ane"])))["measured"]
    assert [one["operation"] for one in answer["ran_although_forbidden"]] == ["b"]
    assert "no-function" in answer["ran_although_forbidden"][0]["rules"]
    assert [(one["operation"], one["device"]) for one in answer["did_not_run_although_allowed"]] == [("a", "gpu")]
    expect(run("explain", model, "--measured", folder / "measured.json"), 0, "1 operation ran on the Neural Engine although",
           'tan "b" (ane): no-function', "1 operation did not run on the Neural Engine although", 'relu "a" (gpu)')
    for bad in ("{}", "[]", "{", '{"placement": {"by_operation": [{"name": 1}]}}', '{"placement": {"by_operation": []}}'):
        (folder / "measured.json").write_text(bad)
        expect(run("explain", model, "--measured", folder / "measured.json"), 1, "bad-file", "measured.json")
    expect(run("explain", model, "--measured", measured(("other", "ane"))), 1, "none of its 1 operations is in the model")
    # The reference engine has no units to compare with.
    expect(run("opt", model, "--passes", "", "-o", folder / "p.mlpackage"), 0)
    report = expect(run("run", folder / "p.mlpackage", "--iterations", "1", "--json"), 0)
    (folder / "measured.json").write_text(report.stdout)
    expect(run("explain", folder / "p.mlpackage", "--measured", folder / "measured.json"), 1, "reference engine")


def test_a_large_model(folder):
    operations = "".join(f"v{i + 1} = {op}(x = v{i});" for i, op in enumerate(["relu", "exp", "tan", "relu"] * 2500))
    model = text(folder, f"func main<ios16>(tensor<fp16, [1, 64]> v0) {{{operations}}} -> (v10000);")
    answer = explained(model)["functions"][0]
    assert (answer["operations"], answer["eligible_operations"], len(answer["segments"])) == (10000, 7500, 5001)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc explain", Folder))
