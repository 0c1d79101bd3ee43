#!/usr/bin/env python3
"""Tests `mlc build --test`, which checks packages that another machine built, and what a build leaves in its folder."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

from build_fleet import VARIANTS, Fleet
from driver import expect, run, run_tests


def moved(folder):
    """A built fleet on a machine without its sources."""
    fleet = Fleet(folder)
    fleet.build()
    shutil.rmtree(fleet.out / ".mlc-build")
    for file in (*fleet.models.glob("*.onnx"), *fleet.models.glob("*.bin"), fleet.models / "labels.txt"):
        file.unlink()
    shutil.rmtree(fleet.models / "samples")
    return fleet


def test_packages_of_another_machine(folder):
    fleet = moved(folder)
    before = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    tested = fleet.build("--test")
    assert list(tested) == VARIANTS and {v["status"] for v in tested.values()} == {"passed"}, tested
    assert [v["made"] for v in tested.values()] == [["checks"], ["checks", "parity"], ["checks"]], tested
    # The accuracy, the references, the limits and the parity bundle.
    kinds = [(check["kind"], check["ok"]) for check in tested["m-fp16"]["checks"]]
    assert kinds == [("limit", True), ("reference", True), ("accuracy", True), ("reference", True)], kinds
    after = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    assert after == before, "a test changes nothing"
    assert fleet.build("--test", "--units", "reference", "--only", "n-*").keys() == {"n-only"}


def test_what_fails_elsewhere(folder):
    fleet = moved(folder)
    np.save(fleet.models / "n-y.npy", np.load(fleet.models / "n-y.npy") + np.float32(1))
    tested = fleet.build("--test", "--only", "n-*", code=3)["n-only"]
    assert tested["status"] == "failed" and not tested["checks"][0]["ok"], tested
    # Another package than the one that was built, and one of another source.
    weight = next((fleet.out / "m-fp32.mlpackage").rglob("weight.bin"))
    weight.write_bytes(weight.read_bytes()[:-1] + b"?")
    fleet.recipes["m"]["source"]["sha256"] = "0" * 64
    fleet.write()
    tested = fleet.build("--test", "--only", "m-*", code=3)
    texts = {name: v["errors"][0]["text"] for name, v in tested.items()}
    assert "is not the package of its manifest" in texts["m-fp32"], texts
    assert "was built from another source" in texts["m-fp16"], texts
    shutil.rmtree(fleet.out / "n-only.mlpackage")
    tested = fleet.build("--test", "--only", "n-*", code=1)["n-only"]
    assert tested["errors"][0]["id"] == "file-io" and "there is no package" in tested["errors"][0]["text"], tested
    for option in (("-j", "2"), ("--dry-run",), ("--cache", "c")):
        refused = expect(run("build", fleet.models, "--test", *option, "-o", fleet.out), 2)
        assert f"remove {option[0]}" in refused.stderr, refused.stderr


def test_latency_elsewhere(folder):
    fleet = Fleet(folder)
    fleet.recipes["n"]["variants"][0]["limits"] = {"latency_increase_pct": 1000}
    fleet.write()
    fleet.build("--only", "n-*")
    store = folder / "baselines"
    first = fleet.build("--only", "n-*", "--test", "--baselines", store)["n-only"]
    assert first["made"] == ["checks", "latency"] and "no baseline, recorded" in first["checks"][-1]["figures"], first
    file = next(store.rglob("n-only.json"))
    stored = json.loads(file.read_text())
    stored["median_ms"] /= 1000
    file.write_text(json.dumps(stored))
    assert fleet.build("--only", "n-*", "--test", "--baselines", store, code=3)["n-only"]["status"] == "failed"


def test_a_folder_without_results_is_left_alone(folder):
    fleet = Fleet(folder)
    assert all(v["why"] == ["first build"] for v in fleet.build("--dry-run").values())
    assert not fleet.out.exists()
    # Nothing could be built: the hash of the source, or a check.
    fleet.recipes["m"]["source"]["sha256"] = "0" * 64
    fleet.recipes["n"]["variants"][0]["limits"] = {"operations": 0}
    fleet.write()
    assert {v["status"] for v in fleet.build(code=3).values()} == {"not built", "failed"}
    assert not fleet.out.exists()
    fleet.out.mkdir()
    (fleet.out / "mine").write_text("mine")
    fleet.build(code=3)
    assert list(fleet.bytes()) == ["mine"] and not (fleet.out / ".mlc-build").exists()
    # What passed is remembered, and looking at it adds nothing.
    fleet.recipes["n"]["variants"][0]["limits"] = {"operations": 9}
    fleet.write()
    fleet.build("--only", "n-*")
    assert (fleet.out / ".mlc-build" / "state" / "n-only.json").exists()
    assert fleet.build("--only", "n-*", "--dry-run")["n-only"]["status"] == "up to date"


def test_a_failed_build_says_what_is_at_its_path(folder):
    """The last package that passed stays. A modified one stays, too, because nobody else may have it, and is named."""
    fleet = Fleet(folder)
    fleet.build("--only", "n-*")
    package = {name: data for name, data in fleet.bytes().items() if ".mlpackage/" in name}
    fleet.recipes["n"]["variants"][0]["limits"] = {"operations": 0}
    fleet.write()
    failed = fleet.build("--only", "n-*", code=3)["n-only"]
    assert failed["notes"][-1:] == ["n-only.mlpackage is that of the last build that passed"], failed
    assert {name: data for name, data in fleet.bytes().items() if ".mlpackage/" in name} == package
    (fleet.out / "n-only.mlpackage" / "more").write_text("more")
    failed = fleet.build("--only", "n-*", code=3)["n-only"]
    assert failed["notes"][-1:] == ["n-only.mlpackage is not the result of a build that passed: added: n-only.mlpackage/more"], failed


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "build_elsewhere"))
