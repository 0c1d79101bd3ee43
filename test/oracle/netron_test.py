#!/usr/bin/env python3
"""Packages open in Netron: its own sources (NETRON_DIR, a checkout of github.com/lutzroeder/netron) load them, read every tensor
and draw the graphs, and show the functions, inputs, outputs and operators of `mlc inspect`.
"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TEST))
sys.path.insert(0, str(TEST / "tools"))
import numpy as np

import app_code_test as app
import onnx_wire as wire
from command_line_test import FLOAT, Folder, floats
from driver import expect, run, run_tests
from inspect_test import ENCODED, text_package
from language_models import Llama

NETRON = os.environ.get("NETRON_DIR", "")
# mlc's names of types, by Netron's.
TYPES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "boolean": "bool"}
COMPRESSIONS = ["int8", "int4:block=32", "pal4", "w8a8", "sparse:0.5"]


def shown(*models):
    """What Netron shows of each model: dictionaries of netron_open.mjs."""
    done = subprocess.run(["node", TEST / "netron_open.mjs", NETRON, *models], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def opens(package):
    """Netron opens the package and shows what mlc inspects."""
    answer, = shown(package)
    assert "error" not in answer, answer
    ours = expect(run("inspect", package, "--json"), 0).answer
    assert answer["format"].startswith("Core ML Package v"), answer["format"]
    functions = {f["name"]: f for f in ours["functions"]}
    # Netron's first graph is that of the default function once more; a single function has no name there.
    graphs = {graph["name"]: graph for graph in answer["graphs"]}
    if len(functions) == 1:
        graphs = {name: answer["graphs"][0] for name in functions}
    for name, function in functions.items():
        graph = graphs[name]
        # Netron hides constants, except for those that are 0, false or empty and those in lists.
        want = collections.Counter(function["operators"])
        found = collections.Counter(o for o in graph["operators"] if o != "const")
        assert found == want, (package.name, name, found - want, want - found)
        states = [state["name"] for state in function["states"]]
        assert [i[0] for i in graph["inputs"]] == [i["mil_name"] for i in function["inputs"]] + states, graph["inputs"]
        assert [o[0] for o in graph["outputs"]] == [o["mil_name"] for o in function["outputs"]], graph["outputs"]
        for (_, kind), port in zip(graph["inputs"], function["inputs"]):
            if "image" not in port and "shape_range" not in port and "enumerated_shapes" not in port:
                dtype, _, dims = kind.partition("[")
                assert TYPES.get(dtype, dtype) == port["dtype"], (kind, port)
                assert [int(d) for d in dims.rstrip("]").split(",")] == port["shape"], (kind, port)
    return answer


def test_the_packages_of_every_kind_of_interface(folder):
    for make in app.GOLDENS:
        opens(make(folder))


def test_encoded_weights(folder):
    for name, (opset, decode, _) in ENCODED.items():
        text = f"func main<{opset}>(tensor<fp16, [1, 32]> x) {{\n  {decode}\n  y = matmul(x = x, y = w, transpose_y = true);\n}} -> (y);\n"
        opens(text_package(folder, name.replace(" ", "_"), text))


def test_compressed_models(folder):
    random = np.random.default_rng(3)
    weights = [floats("w", random.standard_normal((64, 128))), floats("v", random.standard_normal((128, 32)))]
    model = folder.model("net.onnx", [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Relu", ["h"], ["r"]),
                                      wire.node("MatMul", ["r", "v"], ["y"])], [("x", FLOAT, [2, 64])], [("y", FLOAT, [2, 32])], weights)
    for scheme in COMPRESSIONS:
        package = folder / f"{scheme.partition(':')[0]}.mlpackage"
        expect(run("compile", model, "-o", package, "--compress", scheme), 0)
        answer = opens(package)
        assert any(operator.startswith("constexpr_") for graph in answer["graphs"] for operator in graph["operators"]), scheme
        assert answer["tensors"], scheme  # Netron found the values in the weight file


def test_what_netron_does_not_read(folder):
    """Netron refuses compiled bundles by name, of any tool; a damaged package is not shown."""
    package = app.stateful(folder)
    bundle = package.with_suffix(".mlmodelc")
    expect(run("precompile", package, "-o", bundle), 0)
    answer, = shown(bundle)
    assert "not supported" in answer["error"], answer
    damaged = folder / "damaged.mlpackage"
    shutil.copytree(package, damaged)
    file, = damaged.rglob("*.mlmodel")
    file.write_bytes(file.read_bytes()[:100])
    answer, = shown(damaged)
    assert "error" in answer, answer


if __name__ == "__main__":
    if not NETRON or not (pathlib.Path(NETRON) / "test/worker.js").exists() or not shutil.which("node"):
        print("# packages in Netron: skipped, " + ("no node here" if NETRON and not shutil.which("node") else
              "NETRON_DIR names no checkout of github.com/lutzroeder/netron"))
        sys.exit(77)
    sys.exit(run_tests(dict(globals()), "packages in Netron", Folder))
