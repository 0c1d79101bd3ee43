#!/usr/bin/env python3
"""Tests `mlc doctor`: its report on this machine, and for every finding a model that triggers it and one that does not."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import onnx_wire as wire
from driver import ROOT, expect, run, run_tests
from command_line_test import FLOAT, Folder, floats
from interface_test import FUNCTIONS, classifier, functions
from language_models import Llama

DESCRIBED = ["--author", "A", "--license", "MIT", "--description", "D"]


def findings(model, *options):
    """Returns {id: [finding]}."""
    answer = expect(run("doctor", model, "--json", *options), 0).answer
    found = {}
    for finding in answer["findings"]:
        assert finding["text"] and finding["help"] and finding["severity"] in ("note", "warning"), finding
        found.setdefault(finding["id"], []).append(finding)
    assert answer["warnings"] == sum(f["severity"] == "warning" for fs in found.values() for f in fs)
    return found


def only(found, name, *texts, place=""):
    """Asserts that exactly one finding has this id and contains these texts; returns it."""
    assert len(found.get(name, [])) == 1, (name, found)
    for text in texts:
        assert text in found[name][0]["text"] + found[name][0]["help"], (text, found[name])
    assert place in found[name][0]["place"], (place, found[name])


def none(found, *names):
    for name in names:
        assert name not in found, found[name]


def compiled(folder, nodes, inputs, outputs, *options, initializers=(), name="m"):
    model = folder.model(f"{name}.onnx", nodes, inputs, outputs, initializers)
    expect(run("compile", model, "-o", folder / f"{name}.mlpackage", *options), 0)
    return folder / f"{name}.mlpackage"


def unary(folder, *options, op="Relu", dims=(2, 8), x="x", y="y", **attributes):
    return compiled(folder, [wire.node(op, [x], [y], **attributes)], [(x, FLOAT, list(dims))], [(y, FLOAT, list(dims))], *options)


def text_package(folder, text):
    (folder / "t.mil").write_text(text)
    expect(run("opt", folder / "t.mil", "--passes", "", "-o", folder / "t.mlpackage"), 0)
    return folder / "t.mlpackage"


def test_a_good_package_has_no_findings(folder):
    package = unary(folder, "--io", "fp16", *DESCRIBED)
    assert findings(package) == {}
    expect(run("doctor", package), 0, "0 findings, 0 warnings")
    expect(run("doctor", package, "--strict"), 0)


def test_strict(folder):
    package = unary(folder)
    expect(run("doctor", package), 0, "note[metadata]: no author, license, description\n  help: ")
    expect(run("doctor", package, "--strict"), 3, "metadata")
    assert expect(run("doctor", package, "--strict", "--json"), 3).answer["findings"]
    expect(run("doctor", "--strict"), 2, "a model")
    expect(run("doctor", folder / "none.mlpackage"), 1, "file-io")
    expect(run("doctor", ""), 1, "file-io")


def test_names(folder):
    found = findings(unary(folder, x="input.1", y="Any"))
    only(found, "name-changed", '"input.1"', place='input "input_1"')
    only(found, "name-reserved", "Swift", place='output "Any"')
    none(findings(unary(folder, x="image", y="classes")), "name-changed", "name-reserved")


def test_classifiers(folder):
    softmax = {"op": "Softmax", "dims": (1, 8), "axis": 1}
    only(findings(unary(folder, **softmax)), "no-labels", "8 numbers", "--labels")
    only(findings(folder / "m.onnx"), "no-labels")
    none(findings(unary(folder, dims=(1, 8))), "no-labels", "logits-as-probabilities")
    none(findings(unary(folder, op="Sigmoid", dims=(1, 3, 32, 32))), "no-labels")  # a mask
    labels = ["a", "b", "c"]
    package, _ = classifier(folder, [wire.node("Softmax", ["x"], ["p"], axis=1)], labels)
    none(findings(package), "no-labels", "logits-as-probabilities")
    package, _ = classifier(folder, [wire.node("Relu", ["x"], ["p"])], labels)
    only(findings(package), "logits-as-probabilities", "relu", "softmax", place="classLabel_probs")


def test_sizes(folder):
    found = findings(unary(folder, dims=("n", 8)))
    only(found, "open-size", "n in 1..4096", "--dim")
    only(found, "small-default", "n = 1", place='input "x"')
    none(found, "unbounded-size", "data-dependent-size", "large-input")
    found = findings(unary(folder, "--dim", "n=4", dims=("n", 8)))
    none(found, "open-size", "small-default", "unbounded-size")
    found = findings(unary(folder, "--dim", "n=1,2,9", dims=("n", 8)))
    only(found, "open-size", "n in 1|2|9")
    none(found, "unbounded-size")
    only(findings(unary(folder, "--dim", "n=1..2147483647", dims=("n", 8))), "unbounded-size", "--dim", place='input "x"')


def test_sizes_that_depend_on_data(folder):
    nodes = [wire.node("NonZero", ["x"], ["y"])]
    only(findings(compiled(folder, nodes, [("x", FLOAT, [8])], [("y", 7, [1, "k"])])), "data-dependent-size", "pad", place='output "y"')


def test_large_inputs(folder):
    only(findings(unary(folder, dims=(1024, 8192))), "large-input", "MB", place='input "x"')
    none(findings(unary(folder, dims=(256, 8192))), "large-input")
    # The bound on the size of a source is mlc's own.
    source = folder.model("open.onnx", [wire.node("Relu", ["x"], ["y"])], [("x", FLOAT, ["a", "b"])], [("y", FLOAT, ["a", "b"])])
    found = findings(source)
    only(found, "unbounded-size", "4096", "--dim", place='input "x"')
    none(found, "large-input")
    none(findings(source, "--dim", "a=1..8", "--dim", "b=1..8"), "unbounded-size", "large-input")


def test_pictures(folder):
    picture = (1, 3, 32, 32)
    only(findings(unary(folder, dims=picture)), "picture-as-array", "--image x=rgb", place='input "x"')
    none(findings(unary(folder, "--image", "x=rgb,1/255,0", dims=picture)), "picture-as-array")
    none(findings(unary(folder, dims=(1, 4, 32, 32))), "picture-as-array")
    only(findings(unary(folder, dims=(1, 1, 28, 28))), "picture-as-array", "--image x=gray", place='input "x"')
    none(findings(unary(folder, dims=(1, 1, 80, 3000))), "picture-as-array")
    none(findings(unary(folder, dims=(1, 3, 2, 2))), "picture-as-array")
    only(findings(unary(folder, dims=(1, 32, 32, 3))), "picture-as-array", "transpose")


def test_types(folder):
    found = findings(unary(folder))
    only(found, "widened-output", "--io fp16", place='output "y"')
    none(found, "little-fp16")
    found = findings(unary(folder, "--precision", "fp32"))
    only(found, "little-fp16", "0 %", "--precision fp16")
    none(found, "widened-output")
    none(findings(unary(folder, "--io", "fp16")), "widened-output", "little-fp16")
    none(findings(folder / "m.onnx"), "widened-output", "little-fp16", "metadata", "target")


def test_states(folder):
    found = findings(functions(folder))
    assert len(found["states"]) == 2, found
    none(found, "state-type", "target")
    (folder / "wide.mil").write_text(FUNCTIONS.replace("fp16", "fp32"))
    assert len(findings(folder / "wide.mil")["state-type"]) == 3
    none(findings(unary(folder)), "states", "state-type")


def test_target(folder):
    only(findings(unary(folder, "--target", "iOS18")), "target", "declares iOS18", "iOS17", "--target iOS17")
    none(findings(unary(folder, "--target", "iOS16")), "target")
    none(findings(unary(folder)), "target")


def test_metadata(folder):
    only(findings(unary(folder, "--author", "A")), "metadata", "no license, description", "--license TEXT --description TEXT")
    none(findings(unary(folder, *DESCRIBED)), "metadata")


def test_duplicate_weights(folder):
    weight = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096
    nodes = [wire.node("MatMul", ["x", "a"], ["h"]), wire.node("MatMul", ["h", "b"], ["y"])]
    package = compiled(folder, nodes, [("x", FLOAT, [1, 64])], [("y", FLOAT, [1, 64])], "--precision", "fp32",
                       initializers=[floats("a", weight), floats("b", weight)])
    none(findings(package), "duplicate-weights")
    # If the tables differ in their last element, they are two; they are then made equal in the file, as some tools write two
    # equal copies.
    other = weight.copy()
    other[-1, -1] += 1
    package = compiled(folder, nodes, [("x", FLOAT, [1, 64])], [("y", FLOAT, [1, 64])], "--precision", "fp32",
                       initializers=[floats("a", weight), floats("b", other)])
    none(findings(package), "duplicate-weights")
    file = next(package.rglob("weight.bin"))
    data = file.read_bytes()
    raw, changed = (bytes(np.ascontiguousarray(m).astype("<f4").tobytes()) for m in (weight, other))
    if changed not in data:  # stored transposed
        raw, changed = (np.ascontiguousarray(m.T).astype("<f4").tobytes() for m in (weight, other))
    assert data.count(changed) == 1 and data.count(raw) == 1, len(data)
    file.write_bytes(data.replace(changed, raw))
    only(findings(package), "duplicate-weights", "0.02 MB", "mlc opt")


def test_every_finding_is_in_the_help_and_in_a_test(folder):
    shown = run("doctor", "--help").stdout
    rules = re.findall(r"^  ([a-z0-9-]+) +(?:note|warning) ", shown, re.M)
    assert len(rules) == len(set(rules)) > 10, rules
    here = pathlib.Path(__file__).read_text()
    for rule in rules:
        assert here.count(f'"{rule}"') >= 2, f"{rule} must be told somewhere, and not be told elsewhere"


ADVICE = r"--(?:dim|image|io|precision|target|author|license|description|labels|outputs|context) [^\s):]+"


def typed(folder, source, package, expected, *given):
    """Runs the advice of a finding, as printed: `mlc compile` accepts it, and the finding disappears. `given`: options with
    which the package was compiled."""
    (folder / "FILE").write_text("".join(f"label {i}\n" for i in range(8)))
    told = set()
    for model in (source, package):
        for name, several in findings(model).items():
            for finding in several:
                # Alternatives are in separate brackets.
                groups = re.findall(r"\(([^()]*--[^()]*)\)", finding["help"]) or [finding["help"]]
                for group in groups:
                    options = [word for option in re.findall(ADVICE, group) for word in option.rstrip(",;").split(" ", 1)]
                    if not options:
                        assert "--" not in group, finding
                        continue
                    told.add(name)
                    kept = [word for i in range(0, len(given), 2) if given[i] not in options for word in given[i:i + 2]]
                    result = run("compile", source, "-o", folder / "advice.mlpackage", "--force", *kept, *options, folder=folder.path)
                    expect(result, 0)
                    left = findings(folder / "advice.mlpackage").get(name, [])
                    if "=1,4,8" not in group and "," not in options[-1].split("=")[-1] and name not in ("target", "open-size"):
                        assert len(left) < len(several), (finding, left)
    assert expected <= told, (expected, told)


def test_every_advice_works_when_it_is_typed(folder):
    def model(name, nodes, inputs, outputs, *options, initializers=()):
        package = compiled(folder, nodes, inputs, outputs, *options, initializers=initializers, name=name)
        return folder / f"{name}.onnx", package

    relu = [wire.node("Relu", ["x.1"], ["y"])]
    typed(folder, *model("open", relu, [("x.1", FLOAT, ["batch size", "steps"])], [("y", FLOAT, ["batch size", "steps"])]),
          {"open-size", "unbounded-size", "metadata", "widened-output"})
    typed(folder, *model("picture", relu, [("x.1", FLOAT, ["b", 3, 32, 32])], [("y", FLOAT, ["b", 3, 32, 32])]), {"picture-as-array"})
    typed(folder, *model("last", relu, [("x.1", FLOAT, [1, 32, 32, 3])], [("y", FLOAT, [1, 32, 32, 3])]), {"picture-as-array"})
    typed(folder, *model("wide", relu, [("x.1", FLOAT, [2, 8])], [("y", FLOAT, [2, 8])], "--precision", "fp32"), {"little-fp16"},
          "--precision", "fp32")
    typed(folder, *model("new", relu, [("x.1", FLOAT, [2, 8])], [("y", FLOAT, [2, 8])], "--target", "iOS18"), {"target"}, "--target", "iOS18")
    typed(folder, *model("old", relu, [("x.1", FLOAT, [2, 8])], [("y", FLOAT, [2, 8])], "--target", "iOS15"), set(), "--target", "iOS15")
    typed(folder, *model("listed", relu, [("x.1", FLOAT, ["n", 8])], [("y", FLOAT, ["n", 8])], "--dim", "n=3,7"), {"open-size"}, "--dim", "n=3,7")
    softmax = [wire.node("Softmax", ["x.1"], [name], axis=1) for name in ("y", "z")]
    typed(folder, *model("classes", softmax[:1], [("x.1", FLOAT, [1, 8])], [("y", FLOAT, [1, 8])]), {"no-labels"})
    typed(folder, *model("two", softmax, [("x.1", FLOAT, [1, 8])], [("y", FLOAT, [1, 8]), ("z", FLOAT, [1, 8])]), {"no-labels"})


def test_advice_on_a_language_model(folder):
    Llama().gguf(folder / "l.gguf")
    expect(run("compile", folder / "l.gguf", "-o", folder / "l.mlpackage"), 0)
    for path in (folder / "l.gguf", folder / "l.mlpackage"):
        none(findings(path), "picture-as-array")
        only(findings(path), "open-size", "--context ")
    typed(folder, folder / "l.gguf", folder / "l.mlpackage", {"open-size", "metadata"})


def test_what_is_no_picture_and_no_lack_of_fp16(folder):
    softmax = [wire.node("Add", ["s", "mask"], ["a"]), wire.node("Softmax", ["a"], ["y"], axis=-1)]
    scores = [1, 2, 64, 64]
    found = findings(compiled(folder, softmax, [("s", FLOAT, scores), ("mask", FLOAT, [1, 1, 64, 64])], [("y", FLOAT, scores)]))
    none(found, "picture-as-array")
    # The sum exceeds the range of fp16, so nearly all of the work stays in fp32 automatically.
    nodes = [wire.node("Mul", ["x", "c"], ["h"]), wire.node("Mul", ["h", "c"], ["g"]), wire.node("Div", ["g", "d"], ["y"])]
    package = compiled(folder, nodes, [("x", FLOAT, [2, 8])], [("y", FLOAT, [2, 8])],
                       initializers=[floats("c", np.full((2, 8), 3e6)), floats("d", np.full((2, 8), 1e12))])
    for finding in findings(package).get("little-fp16", []):
        assert "--precision fp16" not in finding["help"] and "manifest.json" in finding["help"], finding
    # Packages from other converters cannot be recompiled by mlc.
    text = "func main<ios16>(tensor<fp32, [n, 8]> x) {\n  y = relu(x = x);\n} -> (y);\n"
    for found in findings(text_package(folder, text)).values():
        for finding in found:
            assert "--dim" not in finding["help"], finding


def test_the_machine(folder):
    environment = {"MLC_CACHE_DIR": str(folder / "cache"), "MLC_THREADS": "3"}
    answer = expect(run("doctor", "--json", environment=environment), 0).answer
    assert answer["threads"] == 3 and answer["memory_bytes"] > 2**28 and answer["os"] and answer["chip"], answer
    assert answer["mlc"]["version"] in expect(run("--version"), 0).stdout and re.fullmatch("[0-9a-f]{16,}", answer["mlc"]["build"])
    libraries = {library["name"]: library for library in answer["libraries"]}
    assert {"protobuf", "onnx", "oneDNN", "fmt", "nlohmann/json", "xxHash", "zlib", "CLI11"} <= set(libraries), libraries
    for library in libraries.values():
        for key in ("built", "running"):
            assert re.fullmatch(r"\d+(\.\d+)+[a-z0-9.-]*", library.get(key, "0.0")), library
    units = {row["units"]: row for row in answer["units"]}
    assert units["reference"]["runs"], units
    if os.uname().sysname != "Darwin":
        assert answer["runtime"]["name"] == "mlc's engine" and answer["devices"] == ["reference"], answer
        for name in ("all", "cpu", "gpu", "ane"):
            assert not units[name]["runs"] and "Core ML" in units[name]["why"], units
    assert "entries" not in answer["cache"] and answer["cache"]["folder"] == str(folder / "cache"), answer["cache"]
    assert answer["cache"]["disk_free_bytes"] > 0 and not (folder / "cache").exists()
    package = unary(folder)
    expect(run("precompile", package, "-o", folder / "m.mlmodelc", "--cache", folder / "cache"), 0)
    assert expect(run("doctor", "--json", environment=environment), 0).answer["cache"]["entries"] == 1
    expect(run("doctor", environment=environment), 0, "mlc        ", "cache      ", "1 entry", "oneDNN", "free")
    (folder / "file").write_text("")
    environment["MLC_CACHE_DIR"] = str(folder / "file" / "cache")
    assert "fault" in expect(run("doctor", "--json", environment=environment), 0).answer["cache"]


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc doctor", Folder))
