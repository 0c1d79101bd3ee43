#!/usr/bin/env python3
"""Tests limits of latency in recipes. No test depends on a time: stored baselines are made a thousand times faster or slower."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from build_fleet import Fleet, settle
from driver import expect, run, run_tests

LIMIT = "latency_increase_pct"


def fleet_with_limit(folder):
    """One variant of the fleet limits its latency, to eleven times the baseline."""
    fleet = Fleet(folder)
    fleet.recipes["n"]["variants"][0]["limits"] = {LIMIT: 1000}
    fleet.write()
    return fleet


def build(fleet, *options, code=0):
    return fleet.build("--only", "n-*", *options, code=code)["n-only"]


def baseline(fleet, folder=None):
    files = list((folder or fleet.out / "baselines").rglob("*.json"))
    assert len(files) == 1 and files[0].name == "n-only.json", files
    return files[0]


def scale(file, factor):
    """Changes the stored times; returns the new text."""
    stored = json.loads(file.read_text())
    for name in ("median_ms", "low_ms", "high_ms"):
        stored[name] *= factor
    file.write_text(json.dumps(stored))
    return file.read_text()


def latency(variant):
    return next(check for check in variant["checks"] if check.get("what") == LIMIT)


def test_the_first_measurement_is_recorded_and_not_judged(folder):
    fleet = fleet_with_limit(folder)
    first = build(fleet)
    assert first["status"] == "passed" and "latency" in first["made"], first
    check = latency(first)
    assert check["judged"] is False and "no baseline, recorded" in check["figures"] and "found" not in check, check
    stored = json.loads(baseline(fleet).read_text())
    assert stored["median_ms"] == first["latency_ms"] > 0, stored
    assert stored["machine"]["processors"] > 0 and stored["machine"]["units"] == "reference", stored
    text = expect(run("build", fleet.models, "-o", fleet.out, "--baselines", folder / "new", "--only", "n-*"), 0).stdout
    assert f"  --   {LIMIT} not judged: no baseline, recorded" in text, text
    # The next build judges, and the one after it has nothing to do.
    scale(baseline(fleet), 1000)
    second = build(fleet)
    assert second["made"] == ["latency"] and "judged" not in latency(second), second
    assert latency(second)["found"] < 0 and latency(second)["ok"], second
    settle()
    assert build(fleet)["status"] == "up to date"


def test_a_slower_package_fails_and_is_not_installed(folder):
    fleet = fleet_with_limit(folder)
    build(fleet)
    text = scale(baseline(fleet), 1e-3)
    failed = build(fleet, code=3)
    assert failed["status"] == "failed" and "package" not in failed, failed
    assert latency(failed)["found"] > latency(failed)["limit"] == 1000 and not latency(failed)["ok"], failed
    assert "baseline" in latency(failed)["figures"], failed
    # It fails again: failures are not kept, and nothing raises the baseline.
    assert build(fleet, code=3)["status"] == "failed"
    assert baseline(fleet).read_text() == text
    # In an empty folder it leaves no package.
    fleet.out = folder / "empty"
    assert build(fleet, "--baselines", folder / "out" / "baselines", code=3)["status"] == "failed"
    assert not fleet.out.exists()


def test_a_changed_baseline_is_a_reason(folder):
    fleet = fleet_with_limit(folder)
    build(fleet)
    text = scale(baseline(fleet), 1e3)
    build(fleet)
    settle()
    assert baseline(fleet).read_text() == text, "a faster package does not change the baseline"
    scale(baseline(fleet), 2)
    again = build(fleet)
    assert again["why"] == ["changed: baseline"] and again["made"] == ["latency"], again
    # Baselines are replaced if asked to, whatever they are.
    for damaged in ("{", '{"median_ms": 1}'):
        baseline(fleet).write_text(damaged)
        refused = build(fleet, code=1)
        assert refused["status"] == "not built" and refused["errors"][0]["id"] == "bad-file", refused
        recorded = build(fleet, "--record-baselines")
        assert "baseline recorded" in latency(recorded)["figures"] and not latency(recorded).get("judged", True), recorded
        assert json.loads(baseline(fleet).read_text())["median_ms"] == recorded["latency_ms"]


def test_results_are_of_one_machine(folder):
    fleet = fleet_with_limit(folder)
    store = folder / "baselines"
    options = ("--cache", folder / "cache", "--baselines", store)
    build(fleet, *options)
    scale(baseline(fleet, store), 1e3)
    assert "judged" not in latency(build(fleet, *options))
    # Another folder gets everything else from the cache.
    fleet.out = folder / "other"
    other = build(fleet, *options)
    assert other["cached"] == ["package", "checks"] and other["made"] == ["latency"], other
    settle()
    assert build(fleet, *options)["status"] == "up to date"
    # A folder that comes from another machine: its result does not count here.
    state = fleet.out / ".mlc-build" / "state" / "n-only.json"
    parts = json.loads(state.read_text())
    machine = next(part for part in parts["actions"]["latency"]["parts"] if part[0] == "machine")
    machine[1] = "Another Chip, 4 processors"
    state.write_text(json.dumps(parts))
    moved = build(fleet, *options)
    assert moved["why"] == ["changed: machine"] and moved["made"] == ["latency"], moved
    # Nor does its baseline.
    file = baseline(fleet, store)
    stored = json.loads(file.read_text())
    stored["machine"]["chip"] = "Another Chip"
    file.write_text(json.dumps(stored))
    refused = build(fleet, *options, code=1)
    assert "Another Chip" in refused["errors"][0]["text"], refused
    file.parent.rename(store / "another-chip")
    assert "no baseline, recorded" in latency(build(fleet, *options))["figures"]


def test_limits_that_no_measurement_can_meet(folder):
    """A limit below 1 % is finer than what is measured."""
    fleet = fleet_with_limit(folder)
    for limit, code in ((0.9, 1), (-5, 1), (1001, 1), ("10", 1)):
        fleet.recipes["n"]["variants"][0]["limits"] = {LIMIT: limit}
        fleet.write()
        refused = build(fleet, code=code)
        assert refused["errors"][0]["id"] == "bad-recipe" and LIMIT in refused["errors"][0]["text"], refused


def test_reports(folder):
    fleet = fleet_with_limit(folder)
    files = [folder / "r.json", folder / "r.xml"]
    words = [word for file in files for word in ("--report", file)]
    build(fleet, *words)
    outcome = {check["name"]: check["outcome"] for check in json.loads(files[0].read_text())["checks"]}
    assert outcome[LIMIT] == "skipped" and "<skipped message=" in files[1].read_text(), outcome
    scale(baseline(fleet), 1e-3)
    build(fleet, *words, code=3)
    outcome = {check["name"]: check["outcome"] for check in json.loads(files[0].read_text())["checks"]}
    assert outcome[LIMIT] == "failed" and "<failure " in files[1].read_text(), outcome


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "build_latency"))
