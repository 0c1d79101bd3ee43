#!/usr/bin/env python3
"""Tests --compress and --decompress on the command line: rules in shells and files, targets, reports, manifests, packages that are
compressed already, and the same bytes for any number of threads."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import compressible_models
import json_schema
import onnx_wire
from driver import MLC, ROOT, expect, run, run_tests

RULES = "conv=pal4:group=8,linear=int8,first=int4:block=16,asym"
CANONICAL = "conv=pal4:group=8;linear=int8;first=int4:block=16,asym"


def network(folder):
    """Two convolutions, a linear layer, and an element-wise table."""
    random = np.random.default_rng(1)
    arrays = {"stem": (32, 16, 3, 3), "body": (64, 32, 3, 3), "table": (1, 64, 8, 8), "head": (64, 40)}
    initializers = [onnx_wire.tensor(name, 1, shape, raw=random.normal(0, 0.05, shape).astype("f4").tobytes()) for name, shape in arrays.items()]
    nodes = [onnx_wire.node("Conv", ["x", "stem"], ["a"], pads=[1, 1, 1, 1]), onnx_wire.node("Relu", ["a"], ["b"]),
             onnx_wire.node("Conv", ["b", "body"], ["c"], pads=[1, 1, 1, 1]), onnx_wire.node("Mul", ["c", "table"], ["d"]),
             onnx_wire.node("GlobalAveragePool", ["d"], ["e"]), onnx_wire.node("Flatten", ["e"], ["f"]),
             onnx_wire.node("MatMul", ["f", "head"], ["y"])]
    path = folder / "network.onnx"
    path.write_bytes(onnx_wire.model(onnx_wire.graph(nodes, [onnx_wire.value_info("x", 1, (1, 16, 8, 8))],
                                                     [onnx_wire.value_info("y", 1, (1, 40))], initializers)))
    return path


def size(package):
    return sum(f.stat().st_size for f in package.rglob("weight.bin"))


def test_manifest_and_report(folder):
    model, package = network(folder), folder / "a.mlpackage"
    answer = expect(run("compile", model, "-o", package, "--compress", RULES, "--json"), 0).answer
    assert answer["target"] == "iOS18" and any("target raised to iOS18" in note for note in answer["notes"])
    manifest = json.loads(package.with_suffix(".manifest.json").read_text())
    problems = json_schema.errors(manifest, json.loads((ROOT / "manifests/manifest.schema.json").read_text()))
    assert not problems, problems
    assert manifest["options"]["--compress"] == [CANONICAL]
    report = manifest["compression"]
    assert report == answer["compression"] and report["rules"] == CANONICAL
    used = {entry["name"]: entry["scheme"] for entry in report["tensors"]}
    assert used["stem"] == "int4:block=16,asym" or used["stem"] == "int4:block=row,asym", used
    assert used["body"] == "pal4:group=8" and used["table"] == "none", used
    assert report["weights"] == 3 and report["compressed"] == 3
    assert abs(sum(e["bytes_after"] for e in report["tensors"]) - size(package)) < 3000, (report, size(package))
    text = expect(run("compile", model, "-o", package, "--force", "--compress", "int8"), 0).stdout
    assert "compressed 3 of 3 weights" in text and "dB" in text
    # The source is compressed in the same way when it is compared.
    assert "PASSED" in expect(run("verify", model, package), 0).stdout


def test_compute_units(folder):
    """The report says which units the chosen forms do not suit, by the rules of mlc explain."""
    model = network(folder)
    rules = expect(run("explain", "--rules"), 0).stdout
    expected = {"int4:block=row": {("int4-weights", "Neural Engine", "cannot run")}, "int8": {("gpu-int8", "GPU", "inaccurate")},
                "pal4": {("cpu-palette", "CPU", "inaccurate")}, "w8a8": {("int8-activations", "Neural Engine", "slow")}, "fp16": set()}
    for scheme, wanted in expected.items():
        done = expect(run("compile", model, "-o", folder / "u.mlpackage", "--force", "--compress", scheme, "--json"), 0)
        units = done.answer["compression"].get("units", [])
        found = {(entry["rule"], entry["unit"], entry["severity"]) for entry in units}
        assert wanted <= found and all(f"| {entry['rule']} |" in rules and entry["fix"] and entry["operations"] > 0 for entry in units), units
        assert scheme != "fp16" or not units, units
    package = expect(run("compile", model, "-o", folder / "p.mlpackage"), 0) and folder / "p.mlpackage"
    expect(run("opt", package, "--compress", "pal4", "-o", folder / "o.mlpackage"), 0, "cpu-palette: weights with at most 16")


def test_separators_in_shells(folder):
    """Neither separator nor the characters of schemes need quotes, except for ; and globs; a file has one rule per line."""
    model = network(folder)
    (folder / "rules.txt").write_text("# of the first and other layers\nconv=pal4:group=8   # tables\n\nlinear=int8\nfirst=int4:block=16,asym\n")
    packages = []
    for number, (shell, rules) in enumerate([("sh", RULES), ("bash", RULES), ("zsh", RULES), ("sh", f"'{RULES.replace(',linear', ';linear')}'"),
                                             ("sh", f"@{folder}/rules.txt")]):
        if not shutil.which(shell):
            continue
        package = folder / f"{number}.mlpackage"
        subprocess.run([shell, "-c", f"{MLC} compile {model} -o {package} --compress {rules}"], check=True, capture_output=True)
        packages.append((package / "Data/com.apple.CoreML/weights/weight.bin").read_bytes())
    assert len(packages) >= 3 and all(package == packages[0] for package in packages)


def test_targets(folder):
    model = network(folder)
    expect(run("compile", model, "-o", folder / "t.mlpackage", "--compress", "int4", "--target", "iOS17"), 1,
           "--compress int4:block=32: not supported on iOS17", "iOS18 or later", "pal1, pal2, pal4, pal6 and pal8")
    answer = expect(run("compile", model, "-o", folder / "t.mlpackage", "--compress", "pal4", "--target", "iOS16", "--json"), 0).answer
    assert answer["target"] == "iOS16"
    expect(run("compile", model, "-o", folder / "t.mlpackage", "--force", "--compress", "int8", "--target", "iOS15"), 1, "iOS16 or later")


def test_bad_rules(folder):
    model = network(folder)
    expect(run("compile", model, "-o", folder / "b.mlpackage", "--compress", "bdoy=int8"), 1, '"bdoy" selects no weight', '"body"')
    expect(run("compile", model, "-o", folder / "b.mlpackage", "--compress", "int7"), 2, 'unknown scheme "int7"')
    (folder / "bad.txt").write_text("int8\nlinear=int8:block=0\n")
    expect(run("compile", model, "-o", folder / "b.mlpackage", "--compress", f"@{folder / 'bad.txt'}"), 2, "in line 2 of", 'invalid option "block=0"')
    assert not (folder / "b.mlpackage").exists()


def test_threads(folder):
    model = network(folder)
    for scheme in ("int8", "int4:asym", "pal4:group=8", "pal3:vec=2", "sparse:0.5+pal4"):
        bytes_of = []
        for threads in "1", "8":
            package = folder / f"{threads}.mlpackage"
            expect(run("compile", model, "-o", package, "--force", "--compress", scheme, environment={"MLC_THREADS": threads}), 0)
            bytes_of.append([f.read_bytes() for f in sorted(package.rglob("*")) if f.is_file()])
        assert bytes_of[0] == bytes_of[1], scheme


def test_again_and_back(folder):
    """A compressed package is decoded first; decompression gives weights with the same values."""
    plain = compressible_models.package(folder, "linear", run, expect)
    first, again, back = folder / "first.mlpackage", folder / "again.mlpackage", folder / "back.mlpackage"
    expect(run("opt", plain, "--compress", "int8", "-o", first), 0)
    report = expect(run("opt", first, "--compress", "pal4", "-o", again, "--json"), 0).answer["compression"]
    assert "compressed before" in report["tensors"][0]["reason"] and size(again) < size(first) < size(plain)
    expect(run("opt", first, "--decompress", "-o", back), 0)
    assert size(back) == size(plain)
    operators = expect(run("inspect", back, "--json"), 0).answer["operators"]
    assert not [name for name in operators if name.startswith("constexpr")], operators
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(2, 96)).astype("f2"))
    for package in first, back:
        expect(run("run", package, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / package.stem), 0)
    assert np.array_equal(np.load(folder / "first/y.npy"), np.load(folder / "back/y.npy"))
    # A rule may keep some weights as they are.
    kept = expect(run("opt", first, "--compress", "none", "-o", folder / "kept.mlpackage", "--json"), 0).answer["compression"]
    assert kept["compressed"] == 0 and size(folder / "kept.mlpackage") == size(first)


def test_functions_share_weights(folder):
    text = compressible_models.mil("linear")
    body = text[text.index("{"):]
    both = text + "\n" + "func other<ios18>(tensor<fp16, [2, 96]> x) " + body
    (folder / "both.mil").write_text(both)
    package, small = folder / "both.mlpackage", folder / "small.mlpackage"
    expect(run("opt", folder / "both.mil", "--passes", "", "-o", package), 0)
    report = expect(run("opt", package, "--compress", "pal4", "-o", small, "--json"), 0).answer["compression"]
    assert report["weights"] == 1, report
    single = folder / "single.mlpackage"
    expect(run("opt", compressible_models.package(folder, "linear", run, expect), "--compress", "pal4", "-o", single), 0)
    assert size(small) == size(single), (size(small), size(single))


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc --compress"))
