#!/usr/bin/env python3
"""Tests `mlc build`: it refuses what the schema refuses, a failing variant does not affect the others, and nothing is written elsewhere."""
import copy
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import json_schema
import onnx_wire as wire
from driver import MLC, ROOT, expect, run, run_tests
from language_models import Llama

SCHEMA = json.loads((ROOT / "manifests" / "recipe.schema.json").read_text())
RNG = np.random.default_rng(0)
W = RNG.standard_normal((16, 4)).astype("<f4")
X = RNG.standard_normal((6, 16)).astype("<f4")


def sha256(*files):
    """SHA-256 of one file, or of the output of sha256sum for several."""
    hashes = [hashlib.sha256(f.read_bytes()).hexdigest() for f in files]
    lines = "".join(f"{h}  {f.name}\n" for h, f in zip(hashes, files))
    return hashes[0] if len(files) == 1 else hashlib.sha256(lines.encode()).hexdigest()


def prepare(folder, external=None, data_root=None):
    """Makes a model y = x @ w in folder/models, samples and references; returns a valid recipe."""
    models = folder / "models"
    models.mkdir()
    weight = wire.tensor("w", wire.FLOAT, W.shape, None if external else W.tobytes(),
                         {"location": external} if external else None)
    if external:
        ((data_root or models) / external).write_bytes(W.tobytes())
    graph = wire.graph([wire.node("MatMul", ["x", "w"], ["y"])], [wire.value_info("x", wire.FLOAT, [2, 16])],
                       [wire.value_info("y", wire.FLOAT, [2, 4])], [weight])
    (models / "m.onnx").write_bytes(wire.model(graph))
    np.save(models / "x.npy", X)
    np.save(models / "y.npy", X @ W)
    np.save(models / "best.npy", (X @ W).argmax(1))
    files = [models / "m.onnx"] + ([(data_root or models) / external] if external else [])
    return {"name": "r", "source": {"path": "m.onnx", "sha256": sha256(*files)},
            "variants": [{"name": "a", "options": ["--precision", "fp32"], "limits": {"operations": 9}},
                         {"name": "b", "options": []}],
            "check": {"inputs": {"x": "x.npy"}, "reference": {"y": "y.npy"},
                      "accuracy": {"output": "y", "labels": "best.npy", "expected": 1, "tolerance": 0.2}}}


def changed(recipe, path, value):
    """Returns a copy with another value at the path, or without that member if the value is `...`."""
    recipe = copy.deepcopy(recipe)
    inner = recipe
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return recipe


def write(folder, recipe, name="r.json"):
    file = folder / "models" / name
    file.write_text(recipe if isinstance(recipe, str) else json.dumps(recipe))
    return file


def build(folder, recipe, *options, **more):
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return run("build", write(folder, recipe), *options, folder=work, **more)


def made(folder):
    """Lists everything below the folder except the files of `prepare` and `write`, and what builds note about themselves."""
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*")
                  if f.parent != folder / "models" and f.name != "models" and ".mlc-build" not in f.parts)


def test_a_good_recipe(folder):
    expect(build(folder, prepare(folder)), 0, "r-a.mlpackage", "r-b.mlpackage", "accuracy 100.00 %", "PASSED")


# Invalid recipes: path, value, text of the error. An error in a variant does not affect the other variant.
BAD = [
    (["name"], "../outside", "name"), (["name"], "/abs", "name"), (["name"], "A b", "name"), (["name"], 3, "name"),
    (["name"], "a\n", "name"), (["name"], "a" * 10000, "name"), (["surprise"], 1, "surprise"), (["variants"], [], "variants"),
    (["variants"], {}, "variants"), (["check"], ..., "check"), (["check"], {}, "check"),
    (["check"], {"inputs": {"x": "x.npy"}}, "check"), (["check", "inputs"], {}, "check.inputs"),
    (["check", "inputs", "x"], 1, "check.inputs.x"), (["check", "reference"], {}, "check.reference"),
    (["check", "accuracy", "tolerance"], 5, "check.accuracy.tolerance"),
    (["check", "accuracy", "tolerance"], -1, "check.accuracy.tolerance"),
    (["check", "accuracy", "expected"], 1.5, "check.accuracy.expected"),
    (["check", "accuracy", "labels"], ..., "labels"), (["source"], "m.onnx", "source"), (["source", "sha256"], "12", "sha256"),
    (["mlc"], "0.1", "mlc"), (["mlc"], "x", "mlc"), (["mlc"], 0.1, "mlc"),
    (["source", "sha256"], ..., "sha256"), (["source", "path"], ..., "path"), (["source", "url"], "x", "url"),
]
BAD_VARIANTS = [
    (["name"], "../outside", "variants[1].name"), (["name"], "/abs", "variants[1].name"), (["name"], ..., "name"),
    (["options"], ..., "options"), (["options"], "--precision fp32", "variants[1].options"), (["options"], [1], "options[0]"),
    (["budget"], "loose", "variants[1].budget"), (["budget"], {}, "variants[1].budget"),
    (["budget"], {"max_error": -1}, "variants[1].budget.max_error"), (["budget"], {"error": 1}, "error"),
    (["limits"], {}, "variants[1].limits"), (["limits"], {"operations": -1}, "variants[1].limits.operations"),
    (["limits"], {"operations": 1.5}, "variants[1].limits.operations"), (["bundle"], "yes", "variants[1].bundle"),
    (["extra"], 1, "extra"), (["parity_bundle"], 1, "variants[1].parity_bundle"),
    (["limits"], {"fp32_share": 2}, "variants[1].limits.fp32_share"), (["limits"], {"ane_coverage_pct": -1}, "ane_coverage_pct"),
]


def test_the_schema_is_what_is_enforced(folder):
    good = prepare(folder)
    assert not json_schema.errors(good, SCHEMA)
    for path, value, text in BAD:
        recipe = changed(good, path, value)
        assert json_schema.errors(recipe, SCHEMA), path
        result = build(folder, recipe)
        expect(result, 1, "error[bad-recipe]", text, "r.json")
        assert not (left := [f for f in made(folder) if f != "work"]), (path, value, left)


def test_a_bad_variant_is_named_and_the_others_are_built(folder):
    good = prepare(folder)
    for path, value, text in BAD_VARIANTS:
        recipe = changed(good, ["variants", 1, *path], value)
        assert json_schema.errors(recipe, SCHEMA), path
        result = expect(build(folder, recipe, "--force"), 1, "error[bad-recipe]", text, "FAILED")
        assert "r-a.mlpackage" in result.stdout and "r-b.mlpackage" not in result.stdout, result.stdout
        left = {f for f in made(folder) if f.count("/") < 2} - {"work"}
        assert left == {"work/r-a.mlpackage", "work/r-a.manifest.json"}, (path, left)


def test_options_of_a_variant(folder):
    """Options that a variant does not have, and a variant that cannot be compiled."""
    good = prepare(folder)
    for options, text, code in (
            (["-o", "../elsewhere.mlpackage"], "-o", 2), (["--help"], "--help", 2), (["--json"], "--json", 2),
            (["--save-ir", "x.mil"], "--save-ir", 2), (["--stats", "x.json"], "--stats", 2), (["-h"], "-h", 2),
            (["--data-root", "."], "--data-root", 2), (["other.onnx"], "other.onnx", 2), (["--", "other.onnx"], "other.onnx", 2),
            (["--bogus"], "--bogus", 2), (["--version"], "--version", 2), (["--precision", "fp7"], "fp7", 2),
            (["--dim", "nosuch=3"], "nosuch", 1)):
        recipe = changed(good, ["variants", 0, "options"], options)
        result = expect(build(folder, recipe, "--force"), code, "r-a: error[", text, "r-a  not built", "r-b.mlpackage", "FAILED")
        left = {f for f in made(folder) if f.count("/") < 2} - {"work"}
        assert left == {"work/r-b.mlpackage", "work/r-b.manifest.json"}, (options, left)
        answer = expect(build(folder, recipe, "--force", "--json"), code).answer
        first, second = answer["recipes"][0]["variants"]
        assert not answer["ok"] and first["name"] == "r-a" and text in json.dumps(first["errors"]), answer
        assert second["name"] == "r-b" and all(c["ok"] for c in second["checks"]), answer
        assert [(e["recipe"], e["variant"]) for e in answer["errors"]] == [(str(folder / "models" / "r.json"), "r-a")]


def test_files_in_options_are_from_the_recipes_folder(folder):
    recipe = prepare(folder)
    (folder / "models" / "labels.txt").write_text("".join(f"l{i}\n" for i in range(8)))
    recipe["variants"] = [{"name": "a", "options": ["--labels", "labels.txt", "--precision", "fp32"]}]
    del recipe["check"]["accuracy"]
    recipe["check"]["reference"] = {"y": "y8.npy"}
    np.save(folder / "models" / "y8.npy", X @ W)
    expect(build(folder, recipe), 0, "PASSED")
    manifest = json.loads((folder / "work" / "r-a.manifest.json").read_text())
    assert manifest["options"]["--labels"] == ["labels.txt"], manifest["options"]


def test_what_precision_is_judged_by_is_from_the_recipes_folder(folder):
    recipe = prepare(folder)
    (folder / "models" / "inputs").mkdir()
    np.save(folder / "models" / "inputs" / "x.npy", X[:2])
    (folder / "models" / "budget.json").write_text('{"max_error": 1e-3, "rmse": 1e-3}')
    recipe["variants"] = [{"name": name, "options": ["--precision", "mixed", "--calibrate", "inputs", "--budget", budget]}
                          for name, budget in (("a", "budget.json"), ("b", "fp16"))]
    expect(build(folder, recipe), 0, "PASSED")
    options = json.loads((folder / "work" / "r-a.manifest.json").read_text())["options"]
    assert options["--calibrate"] == ["inputs"] and options["--budget"] == ["budget.json"], options


def test_the_exit_code_is_the_worst(folder):
    good = prepare(folder)
    tight = changed(good, ["variants", 1, "limits"], {"operations": 0})
    expect(build(folder, tight, "--force"), 3, "FAIL operations", "FAILED")
    both = changed(tight, ["variants", 0, "options"], ["--dim", "nosuch=3"])
    expect(build(folder, both, "--force"), 3, "r-a  not built", "FAIL operations")
    # An invalid recipe does not affect the others either.
    bad = write(folder, changed(good, ["check"], {}), "bad.json")
    missing = folder / "models" / "missing.json"
    fine = write(folder, changed(good, ["name"], "fine"), "fine.json")
    expect(run("build", bad, missing, fine, folder=folder / "work"), 1, "bad.json", "missing.json", "fine-a.mlpackage",
           "fine-b.mlpackage", "FAILED")
    answer = expect(run("build", bad, fine, "--json", "--force", folder=folder / "work"), 1).answer
    assert [bool(r.get("errors")) for r in answer["recipes"]] == [True, False]


def test_limits(folder):
    good = prepare(folder)
    for limits, code, text in (({"fp32_share": 1}, 0, "ok   fp32_share 1, at most 1"), ({"fp32_share": 0.5}, 3, "FAIL fp32_share 1"),
                               ({"ane_coverage_pct": 0}, 0, "ok   ane_coverage_pct 0, at least 0"),
                               ({"ane_coverage_pct": 1}, 3, "FAIL ane_coverage_pct 0"),
                               ({"peak_memory_bytes": 10**10}, 0, "ok   peak_memory_bytes"),
                               ({"peak_memory_bytes": 10**6}, 3, "FAIL peak_memory_bytes")):
        expect(build(folder, changed(good, ["variants", 0, "limits"], limits), "--only", "r-a"), code, text)


def test_a_version_may_be_required(folder):
    good = prepare(folder)
    version = run("--version").stdout.split()[-1]
    for wanted in version, version.rpartition(".")[0] + ".x", version.split(".")[0] + ".x":
        expect(build(folder, {**good, "mlc": wanted}), 0, "PASSED")
    for wanted in "9.9.9", "9.x", version + "9", version.rpartition(".")[0] + "1.x":
        expect(build(folder, {**good, "mlc": wanted}), 1, "error[bad-recipe]", f"requires mlc {wanted}", version)


def test_only_and_names(folder):
    good = prepare(folder)
    shown = expect(build(folder, good, "--only", "*-b"), 0, "1 passed", "r-b.mlpackage").stdout
    assert "r-a" not in shown and not (folder / "work" / "r-a.mlpackage").exists()
    expect(build(folder, good, "--only", "none"), 2, "no variant matches none")
    write(folder, good, "same.json")
    both = run("build", folder / "models" / "r.json", folder / "models" / "same.json", folder=folder / "work")
    expect(both, 1, 'duplicate name "r-a"', "same.json", "r-a.mlpackage")
    expect(run("build", folder / "work", folder=folder), 2, "has no recipes")


def test_time_and_memory(folder):
    good = prepare(folder)
    expect(build(folder, good, "--timeout", "1ms"), 4, "error[timeout]", "r-a", "2 not built")
    expect(build(folder, good, "--memory-limit", "1MB"), 1, "error[resource-limit]", "--memory-limit", "2 not built")
    # With little memory, the variants run one after the other.
    expect(build(folder, good, "-j", "2", "--memory-limit", "400MB"), 0, "2 passed")
    for option, value in ("-j", "-1"), ("-j", "x"), ("--timeout", "1"), ("--memory-limit", "lots"):
        expect(build(folder, good, option, value), 2, "error[usage]")
    assert [f for f in made(folder) if ".mlc-" in f] == []


def test_equal_errors_are_shown_once(folder):
    good = prepare(folder)
    recipe = changed(good, ["variants"], [{"name": f"v{i}", "options": ["--dim", "nosuch=3"]} for i in range(7)])
    result = expect(build(folder, recipe, "-j", "2"), 1, "and 2 more: error[", "0 passed, 0 failed, 7 not built, 0 up to date")
    assert result.stderr.count("error[") == 1, result.stderr


def test_a_recipe_is_written_and_updated(folder):
    prepare(folder)
    (folder / "work").mkdir()
    model = folder / "models" / "m.onnx"
    shown = expect(run("build", "--init", model, "-o", "recipes", folder=folder / "work"), 0, "recipes/m.json")
    recipe = folder / "work" / "recipes" / "m.json"
    assert not json_schema.errors(json.loads(recipe.read_text()), SCHEMA), shown
    expect(run("build", "recipes", folder=folder / "work"), 0, "m-fp16.mlpackage", "m-fp32.mlpackage", "2 passed")
    expect(run("build", "--init", model, "-o", "recipes", folder=folder / "work"), 1, "file-exists")
    model.write_bytes(model.read_bytes() + wire.field(2, "another producer"))
    expect(run("build", "recipes", folder=folder / "work"), 3, "hash mismatch")
    before = recipe.read_text()
    expect(run("build", "recipes", "--update", folder=folder / "work"), 0, sha256(model))
    assert recipe.read_text() == before.replace(json.loads(before)["source"]["sha256"], sha256(model))
    expect(run("build", "recipes", "--update", folder=folder / "work"), 0, "unchanged")
    expect(run("build", "recipes", folder=folder / "work"), 0, "2 passed")


def test_other_engines(folder):
    """The commands and the build file make what `mlc build` makes, and know what is up to date."""
    good = prepare(folder)
    expect(build(folder, changed(good, ["variants", 0, "bundle"], True)), 0)

    def files(out):
        return {str(f.relative_to(out)): f.read_bytes() for f in sorted(out.rglob("*")) if f.is_file() and ".mlc-build" not in f.parts}

    expected = files(folder / "work")
    recipe = folder / "models" / "r.json"
    lines = expect(run("build", recipe, "--emit", "list", "-o", folder / "a b", folder=folder), 0).stdout.splitlines()
    assert len(lines) == 2 and "--only r-a" in lines[0], lines
    for line in lines:
        subprocess.run(["bash", "-c", line], check=True, capture_output=True)
    assert files(folder / "a b") == expected
    bazel = expect(run("build", recipe, "--emit", "bazel", "-o", folder / "models", folder=folder), 0).stdout
    assert '"r-a": "--precision fp32"' in bazel and '"best.npy"' in bazel, bazel
    expect(run("build", recipe, "--emit", "bazel", "-o", folder / "work", folder=folder), 2, "is not in the folder")
    expect(run("build", recipe, "--emit", "make", folder=folder), 2, "list, ninja or bazel")
    if not shutil.which("ninja"):
        return
    (folder / "build.ninja").write_text(expect(run("build", recipe, "--emit", "ninja", "-o", "n", "-j", "2", folder=folder), 0).stdout)

    def ninja():
        return subprocess.run(["ninja"], cwd=folder, check=True, capture_output=True, text=True).stdout

    ninja()
    assert files(folder / "n") == expected and "no work" in ninja()
    (folder / "n" / "r-b.manifest.json").unlink()
    assert "r-b" in ninja() and files(folder / "n") == expected and "no work" in ninja()
    np.save(folder / "models" / "y.npy", X @ W + np.float32(1e-7))
    assert "2 passed" not in ninja() and "no work" in ninja()


def test_a_check_that_compares_nothing_does_not_pass(folder):
    good = prepare(folder)
    np.save(folder / "models" / "none.npy", np.zeros((0, 16), "<f4"))
    expect(build(folder, changed(good, ["check", "inputs", "x"], "none.npy")), 1, "no samples", "FAILED")
    np.save(folder / "models" / "zeros.npy", np.zeros((6, 16), "<f4"))
    np.save(folder / "models" / "same.npy", np.zeros((6, 4), "<f4"))
    constant = changed(changed(good, ["check", "inputs", "x"], "zeros.npy"), ["check", "reference", "y"], "same.npy")
    del constant["check"]["accuracy"]
    expect(build(folder, constant, "--force"), 3, "FAIL y", "constant")
    loose = changed(good, ["check", "accuracy"], {"output": "y", "labels": "best.npy", "expected": 0.4, "tolerance": 0.6})
    expect(build(folder, loose), 1, "accepts any accuracy")
    np.save(folder / "models" / "floats.npy", (X @ W).argmax(1) + 0.5)
    expect(build(folder, changed(good, ["check", "accuracy", "labels"], "floats.npy"), "--force"), 1, "check.accuracy")
    np.save(folder / "models" / "high.npy", (X @ W).argmax(1) + 4)
    expect(build(folder, changed(good, ["check", "accuracy", "labels"], "high.npy"), "--force"), 1, "check.accuracy")
    expect(build(folder, changed(good, ["check", "inputs", "z"], "x.npy"), "--force"), 1, '"z"')


def test_files_of_checks_are_looked_for_before_anything_is_compiled(folder):
    good = prepare(folder)
    recipe = changed(changed(good, ["check", "reference", "y"], "none.npy"), ["check", "accuracy", "labels"], "nor_this.npy")
    result = expect(build(folder, recipe), 1, "error[file-io]", "none.npy", "nor_this.npy", "check.reference.y", "check.accuracy.labels",
                    "FAILED")
    assert "0 passed, 0 failed, 2 not built" in result.stdout and made(folder) == ["work"], (result.stdout, made(folder))
    assert result.stderr.count("none.npy") == result.stderr.count("nor_this.npy") == 1, result.stderr
    (folder / "models" / "none.npy").write_bytes(b"no array")
    expect(build(folder, changed(good, ["check", "inputs", "x"], "none.npy")), 1, "none.npy")
    assert made(folder) == ["work"], made(folder)


def test_what_is_not_built_leaves_nothing_and_what_was_there(folder):
    good = prepare(folder)
    np.save(folder / "models" / "high.npy", (X @ W).argmax(1) + 4)
    bundles = changed(changed(good, ["variants", 0, "bundle"], True), ["check", "accuracy", "labels"], "high.npy")
    expect(build(folder, bundles), 1, "check.accuracy", "r-a  not built", "r-b  not built")
    assert made(folder) == ["work"], made(folder)

    def files():
        return {f: f.read_bytes() for f in sorted((folder / "work").rglob("*")) if f.is_file() and ".mlc-build" not in f.parts}

    expect(build(folder, changed(good, ["variants", 0, "bundle"], True)), 0, "PASSED")
    before = files()
    assert {f.name for f in (folder / "work").iterdir()} == {"r-a.mlpackage", "r-a.manifest.json", "r-a.mlmodelc", "r-b.mlpackage",
                                                            "r-b.manifest.json", ".mlc-build"}, before.keys()
    options = ["--precision", "fp32", "--author", "another"]
    expect(build(folder, changed(bundles, ["variants", 0, "options"], options), "--force"), 1, "r-a  not built")
    assert files() == before
    # A variant that fails its checks is not installed either.
    expect(build(folder, changed(good, ["variants", 0, "limits"], {"operations": 0}), "--force"), 3, "FAIL operations",
           "r-a.mlpackage is that of the last build that passed")
    # So has a package whose check needs an output that does not exist.
    expect(build(folder, changed(good, ["check", "reference"], {"z": "y.npy"}), "--force"), 1, '"z"', "r-a  not built")


def test_budgets_of_single_outputs(folder):
    good = prepare(folder)
    # NumPy may add up products in the same order, so that nothing would differ.
    reference = folder / "models" / "y.npy"
    np.save(reference, np.load(reference) * np.float32(1 + 1e-5))
    for budget, code, texts in (
            ({"base": "fp32"}, 0, ["PASSED"]), ({"max_error": 1e-3, "rmse": 1e-3, "per_axis": -1}, 0, ["axis -1"]),
            ({"base": "fp32", "outputs": {"y": {"max_error": 1e-12}}}, 3, ["FAIL y", "max error 1e-12", "worst at"]),
            ({"atol": 1e-12, "rtol": 0}, 3, ["FAIL y", "outside atol and rtol"]), ({"atol": 1e-4}, 0, ["PASSED"]),
            ({"rmse": 1e-3}, 1, ["budget", "max_error"]), ({"base": "fp32", "outputs": {"z": {"rmse": 1}}}, 1, ['"z"'])):
        recipe = changed(changed(good, ["variants"], good["variants"][:1]), ["variants", 0, "budget"], budget)
        assert not json_schema.errors(recipe, SCHEMA), budget
        expect(build(folder, recipe, "--force"), code, *texts)


def test_fp16_is_judged_by_what_its_constants_cost(folder):
    """Weights that nearly cancel and are not representable in fp16; there are more results than stay fp32 at the end of a model."""
    models = folder / "models"
    models.mkdir()
    w = np.repeat(np.array([[1000.3], [-1000.1], [10]], "<f4"), 512, 1)
    graph = wire.graph([wire.node("MatMul", ["x", "w"], ["y"])], [wire.value_info("x", wire.FLOAT, [64, 3])],
                       [wire.value_info("y", wire.FLOAT, [64, 512])], [wire.tensor("w", wire.FLOAT, w.shape, w.tobytes())])
    (models / "m.onnx").write_bytes(wire.model(graph))
    x = np.concatenate([np.repeat(RNG.integers(0, 2, (64, 1)), 2, 1), RNG.integers(-16, 17, (64, 1)) / 16], 1).astype("<f4")
    y = x.astype("f8") @ w.astype("f8")
    error = np.abs(x.astype("f8") @ w.astype(np.float16).astype("f8") - y).max() / max(np.ptp(y), np.abs(y).max())
    assert error > 1.2e-2, error
    np.save(models / "x.npy", x)
    np.save(models / "y.npy", y.astype("f4"))
    recipe = {"name": "r", "source": {"path": "m.onnx", "sha256": sha256(models / "m.onnx")},
              "variants": [{"name": "a", "options": []}], "check": {"inputs": {"x": "x.npy"}, "reference": {"y": "y.npy"}}}
    expect(build(folder, recipe), 0, "ok   y", f"budget fp16, floor {error:.1e}", f"(budget {1.5 * error:.1e}", "PASSED")
    shown = expect(build(folder, changed(recipe, ["variants", 0, "budget"], "fp16"), "--force"), 3, "FAIL y").stdout
    assert "floor" not in shown, shown
    np.save(models / "y.npy", (y + x[:, 2:]).astype("f4"))
    expect(build(folder, recipe, "--force"), 3, "FAIL y", f"floor {error:.1e}")
    expect(build(folder, changed(recipe, ["variants", 0, "options"], ["--precision", "mixed"]), "--force"), 3, "FAIL y")


def test_duplicate_keys(folder):
    good = json.dumps(prepare(folder))
    for text, key in ((good[:-1] + ', "name": "s"}', "name"), (good.replace('"x": "x.npy"', '"x": "x.npy", "x": "x.npy"'), "x"),
                      (good.replace('"sha256"', '"path": "m.onnx", "sha256"'), "path")):
        expect(build(folder, text), 1, "error[bad-recipe]", f'duplicate key "{key}"')
    assert made(folder) == ["work"]
    for text in ("", "{", "[]", "null", "\x00", good + "x", '{"name": 1e999}'):
        expect(build(folder, text), 1, "error[bad-recipe]")
    expect(build(folder, "[" * 100000), 1, "error[resource-limit]")


def test_names_of_variants_are_unique(folder):
    good = prepare(folder)
    expect(build(folder, changed(good, ["variants", 1, "name"], "a")), 1, "error[bad-recipe]", '"a"')


def test_the_hash_covers_external_data(folder):
    recipe = prepare(folder, external="w.bin")
    expect(build(folder, recipe), 0, "PASSED")
    data = folder / "models" / "w.bin"
    data.write_bytes((W + 1).tobytes())
    result = expect(build(folder, recipe, "--force"), 3, "error[check-failed]", "hash mismatch", recipe["source"]["sha256"],
                    hashlib.sha256(data.read_bytes()).hexdigest() + "  w.bin")
    found = sha256(folder / "models" / "m.onnx", data)
    assert found in result.stderr
    manifest = json.loads((folder / "work" / "r-a.manifest.json").read_text())
    assert manifest["source"]["sha256"] == recipe["source"]["sha256"]
    # A truncated download is reported as a hash mismatch rather than as a damaged file.
    (folder / "models" / "m.onnx").write_bytes(b"\x08")
    expect(build(folder, recipe, "--force"), 3, "hash mismatch")
    (folder / "models" / "m.onnx").unlink()
    expect(build(folder, recipe, "--force"), 1, "m.onnx")


def test_the_hash_covers_what_is_read_of_a_folder(folder):
    """README, images and weights in other formats are not hashed, because they are not read."""
    models, model = folder / "models", Llama()
    models.mkdir()
    model.hugging_face(models / "hf")
    tokens = np.array([[1, 2, 3]], "i4")
    np.save(models / "tokens.npy", tokens)
    np.save(models / "mask.npy", np.triu(np.full((1, 1, 3, 3), -3e4), 1).astype("f2"))
    np.save(models / "logits.npy", model.logits(tokens[0])[None].astype("f4"))
    read = [file for file in sorted((models / "hf").iterdir()) if file.name in ("config.json", "model.safetensors")]
    (models / "hf" / "README.md").write_text("of no matter")
    recipe = {"name": "r", "source": {"path": "hf", "sha256": sha256(*read)}, "variants": [{"name": "a", "options": ["--context", "16"]}],
              "check": {"inputs": {"inputIds": "tokens.npy", "causalMask": "mask.npy"}, "reference": {"logits": "logits.npy"}}}
    result = build(folder, recipe)
    assert "hash mismatch" not in result.stderr, result.stderr
    (models / "hf" / "README.md").write_text("another text")
    (models / "hf" / "pytorch_model.bin").write_bytes(b"zzz")
    assert "hash mismatch" not in build(folder, recipe, "--force").stderr
    (models / "hf" / "config.json").write_text((models / "hf" / "config.json").read_text() + " ")
    expect(build(folder, recipe, "--force"), 3, "hash mismatch", "config.json")
    # The manifest of a compilation lists the same files.
    expect(run("compile", models / "hf", "-o", folder / "m.mlpackage", "--sha256"), 0)
    assert [f["name"] for f in json.loads((folder / "m.manifest.json").read_text())["source"]["files"]] == [f.name for f in read]


def test_data_root(folder):
    (folder / "store").mkdir()
    recipe = prepare(folder, external="w.bin", data_root=folder / "store")
    expect(build(folder, recipe), 3, "hash mismatch")
    recipe["source"]["data_root"] = "../store"
    expect(build(folder, recipe), 0, "PASSED")


def test_results_are_there_when_they_are_ready(folder):
    """Both streams go to one file, in which the stderr output for the second variant follows the result of the first."""
    recipe = changed(prepare(folder), ["variants", 1, "options"], ["--time-passes"])
    with open(folder / "log", "wb") as log:
        subprocess.run([MLC, "build", write(folder, recipe)], cwd=folder, stdout=log, stderr=log, check=True)
    lines = (folder / "log").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("r-a.mlpackage"))
    passes = next(i for i, line in enumerate(lines) if "dead-code" in line)
    assert first < passes, lines


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "build"))
