#!/usr/bin/env python3
"""Tests that `mlc build` builds again exactly what has changed: sources, files of options and checks, options, mlc itself, outputs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from build_fleet import RNG, VARIANTS, Fleet, settle
from driver import MLC, run_tests

# The changes. Each returns the actions that run again: by variant, a list of actions.
def touch(fleet):
    """Times alone are no change."""
    for file in fleet.models.rglob("*"):
        os.utime(file)
    return {}


def copy(fleet):
    """Neither is another inode."""
    for file in list(fleet.models.glob("*.npy")) + list(fleet.models.glob("*.onnx")):
        shutil.copy(file, fleet.folder / "copy")
        os.replace(fleet.folder / "copy", file)
    return {}


def source(fleet):
    model = fleet.models / "n.onnx"
    model.write_bytes(model.read_bytes() + wire.field(2, "another producer"))
    fleet.recipes["n"]["source"]["sha256"] = fleet.hash("n")
    fleet.write()
    return {"n-only": ["package", "checks"]}


def external_data(fleet):
    w = np.frombuffer((fleet.models / "n.bin").read_bytes(), "<f4").copy()
    w[0] += 1e-6
    (fleet.models / "n.bin").write_bytes(w.tobytes())
    fleet.recipes["n"]["source"]["sha256"] = fleet.hash("n")
    fleet.write()
    return {"n-only": ["package", "checks"]}


def labels_of_an_option(fleet):
    (fleet.models / "labels.txt").write_text("".join(f"m{i}\n" for i in range(8)))
    return {"n-only": ["package", "checks"]}


def file_in_a_folder_of_an_option(fleet):
    np.save(fleet.models / "samples" / "x.npy", RNG.standard_normal((2, 16)).astype("<f4"))
    return {"m-fp16": None}


def new_file_in_a_folder_of_an_option(fleet):
    (fleet.models / "samples" / "note.txt").write_text("new")
    return {"m-fp16": None}


def unrelated_file(fleet):
    (fleet.models / "unrelated.txt").write_text("new")
    (fleet.out / "unrelated.txt").write_text("new")
    return {}


def labels_of_a_check(fleet):
    best = np.load(fleet.models / "m-best.npy")
    best[0] = (best[0] + 1) % 4
    np.save(fleet.models / "m-best.npy", best)
    return {"m-fp32": ["checks"], "m-fp16": ["checks"]}


def reference(fleet):
    np.save(fleet.models / "n-y.npy", np.load(fleet.models / "n-y.npy") + np.float32(1e-6))
    return {"n-only": ["checks"]}


def samples(fleet):
    """As a file with the same size and times, of the same inode: the change time of the inode gives it away."""
    file = fleet.models / "m-x.npy"
    before = file.stat()
    x = np.load(file)
    x[0, 0] += np.float32(1e-6)
    np.save(file, x)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return {"m-fp32": ["checks"], "m-fp16": ["checks"]}


def option(fleet):
    fleet.recipes["m"]["variants"][0]["options"] += ["--author", "somebody"]
    fleet.write()
    return {"m-fp32": ["package", "checks", "bundle"]}


def limit(fleet):
    fleet.recipes["m"]["variants"][1]["limits"] = {"operations": 10}
    fleet.write()
    return {"m-fp16": ["checks"]}


def tolerance(fleet):
    fleet.recipes["m"]["check"]["accuracy"]["tolerance"] = 0.3
    fleet.write()
    return {"m-fp32": ["checks"], "m-fp16": ["checks"]}


def budget(fleet):
    fleet.recipes["n"]["variants"][0]["budget"] = "int8"
    fleet.write()
    return {"n-only": ["checks"]}


def description(fleet):
    fleet.recipes["n"]["description"] = "text for people"
    fleet.write()
    return {}


def mlc_itself(fleet):
    """Another build of mlc: the same program with another build id."""
    notes = subprocess.run(["readelf", "-n", MLC], capture_output=True, text=True, check=True).stdout
    build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))
    program = pathlib.Path(MLC).read_bytes()
    assert program.count(build_id) == 1
    fleet.mlc = fleet.folder / "mlc"
    fleet.mlc.write_bytes(program.replace(build_id, bytes(b ^ 255 for b in build_id)))
    fleet.mlc.chmod(0o755)
    return {"m-fp32": ["package", "checks", "bundle"], "m-fp16": ["package", "checks", "parity"], "n-only": ["package", "checks"]}


def changed_package(fleet):
    file = next((fleet.out / "n-only.mlpackage").rglob("weight.bin"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    return {"n-only": ["package"]}


def file_added_to_a_package(fleet):
    (fleet.out / "n-only.mlpackage" / "Data" / "more").write_text("more")
    return {"n-only": ["package"]}


def removed_package(fleet):
    shutil.rmtree(fleet.out / "n-only.mlpackage")
    return {"n-only": ["package"]}


def removed_manifest(fleet):
    (fleet.out / "m-fp16.manifest.json").unlink()
    return {"m-fp16": ["package"]}


def changed_bundle(fleet):
    (fleet.out / "m-fp32.mlmodelc" / "model.mil").write_text("?")
    return {"m-fp32": ["bundle"]}


def removed_parity_bundle(fleet):
    shutil.rmtree(fleet.out / "m-fp16.parity")
    return {"m-fp16": ["parity"]}


def removed_state(fleet):
    (fleet.out / ".mlc-build" / "state" / "n-only.json").unlink()
    return {"n-only": ["package", "checks"]}


def damaged_state(fleet):
    (fleet.out / ".mlc-build" / "state" / "n-only.json").write_text('{"version": 1, "actions": {"package": 7}}')
    return {"n-only": ["package", "checks"]}


CHANGES = [touch, copy, source, external_data, labels_of_an_option, file_in_a_folder_of_an_option, new_file_in_a_folder_of_an_option,
           unrelated_file, labels_of_a_check, reference, samples, option, limit, tolerance, budget, description, changed_package,
           file_added_to_a_package, removed_package, removed_manifest, changed_bundle, removed_parity_bundle, removed_state, damaged_state,
           mlc_itself]


def test_what_changed_is_built_again_and_nothing_else(folder):
    fleet = Fleet(folder)
    first = fleet.build("-j", "2")
    assert {v["status"] for v in first.values()} == {"passed"} and list(first) == VARIANTS, first
    assert first["m-fp32"]["made"] == ["package", "checks", "bundle"], first["m-fp32"]
    settle()
    for change in CHANGES:
        expected = change(fleet)
        if change is mlc_itself and not shutil.which("readelf"):
            continue
        settle()
        again = fleet.build()
        for name, variant in again.items():
            text = f"{change.__name__}: {name} {variant}"
            if name not in expected:
                assert variant["status"] == "up to date" and not variant.get("why"), text
            else:
                assert variant["status"] == "passed" and variant["why"], text
                assert expected[name] is None or variant["made"] == expected[name], text
        settle()
        after = fleet.bytes()
        assert all(v["status"] == "up to date" for v in fleet.build().values()), change.__name__
        assert fleet.bytes() == after, change.__name__


def test_the_reasons_are_named(folder):
    fleet = Fleet(folder)
    assert fleet.build("--dry-run")["m-fp32"]["why"] == ["first build"]
    assert not [f for f in fleet.bytes()]
    fleet.build()
    settle()
    for change, name, reason in ((labels_of_an_option, "n-only", "changed: --labels labels.txt"),
                                 (reference, "n-only", "changed: reference y"), (option, "m-fp32", "changed: options"),
                                 (removed_manifest, "m-fp16", "missing: m-fp16.manifest.json"),
                                 (changed_bundle, "m-fp32", "modified: m-fp32.mlmodelc/model.mil"),
                                 (external_data, "n-only", "changed: source n.bin")):
        change(fleet)
        settle()
        looked = fleet.build("--dry-run")
        assert reason in looked[name]["why"] and looked[name]["status"] == "not built", (reason, looked[name])
        assert [v["name"] for v in looked.values() if v["status"] == "not built"] == [name], looked
        built = fleet.build()
        assert reason in built[name]["why"], (reason, built[name])
        settle()


def test_a_file_that_was_just_written_is_not_trusted(folder):
    """Two versions of a file within one tick of the file system's clock, with the same size."""
    fleet = Fleet(folder)
    fleet.build()
    file = fleet.models / "n-y.npy"
    for i in range(10):
        y = np.load(file)
        y[0, 0] += np.float32(1e-5)
        np.save(file, y)
        assert fleet.build("--only", "n-*")["n-only"]["status"] == "passed", i


def test_a_second_build_reads_nothing(folder):
    """Nothing but what is below .mlc-build and the recipes. Root can read every file, and is therefore watched."""
    fleet = Fleet(folder)
    fleet.build()
    settle()
    fleet.build()
    if os.getuid() != 0:
        for file in [f for f in (*fleet.models.rglob("*"), *fleet.out.rglob("*")) if f.is_file() and ".mlc-build" not in f.parts]:
            if file.suffix != ".json" or "manifest" in file.name:
                file.chmod(0)
        assert all(v["status"] == "up to date" for v in fleet.build().values())
    elif shutil.which("strace"):
        subprocess.run(["strace", "-f", "-e", "trace=openat", "-o", folder / "trace", MLC, "build", fleet.models, "-o", fleet.out],
                       check=True, capture_output=True)
        opened = [line for line in (folder / "trace").read_text().splitlines()
                  if re.search(r'(\.npy|\.onnx|\.bin|\.mlmodel|\.mil|\.manifest\.json)"', line)]
        assert not opened, opened


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "build_again"))
