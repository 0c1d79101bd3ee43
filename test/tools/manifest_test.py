#!/usr/bin/env python3
"""Tests `mlc manifest --merge`: which lines of a history are measurements, files that are not manifests, and concurrent merges."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import json_schema
from coreml_test import package
from driver import ROOT, expect, parallel, run, run_tests
from command_line_test import Folder

SCHEMA = json.loads((ROOT / "manifests" / "manifest.schema.json").read_text())


NO_TIMES = ("zzz", "", "2999-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-1-1T0:0:0Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z ")


class Measured:
    """A package a with its manifest, and the line that a run of it wrote."""

    def __init__(self, folder):
        self.package, self.manifest = package(folder), folder / "a.manifest.json"
        self.history = folder / "h.jsonl"
        expect(run("run", self.package, "--units", "reference", "--iterations", 3, "--history", self.history), 0)
        self.line = json.loads(self.history.read_text())

    def merge(self, *lines, code=0, texts=(), end="\n"):
        """Returns the nonzero counts, or the text of an error."""
        self.history.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end)
        result = expect(run("manifest", self.package, "--merge", self.history, "--json"), code, *texts)
        assert sorted(p.name for p in self.manifest.parent.glob(".a.*")) == [], "a lock stays"
        return {k: v for k, v in result.answer.items() if k not in ("manifest", "errors", "warnings", "notes") and v}

    def entries(self):
        manifest = json.loads(self.manifest.read_text())
        assert not list(json_schema.errors(manifest, SCHEMA)), list(json_schema.errors(manifest, SCHEMA))
        return manifest.get("measured", [])


def failed(line):
    return [line | {"iterations": 0}, line | {"telemetry": {"fallbacks": 1, "failed": 0}},
            line | {"telemetry": {"fallbacks": 0, "failed": 2}},
            line | {"failures": [{"prediction": 0, "failure": "timeout", "id": "timeout", "text": "late"}]}]


def test_runs_that_failed_are_no_measurements(folder):
    m = Measured(folder)
    m.merge(*failed(m.line), m.line | {"model_hash": "0" * 32}, code=3, texts=["failed runs: 4", "results of other packages: 1"])
    assert not m.entries()
    assert m.merge(m.line) == {"added": 1}
    clean = m.entries()
    late = [line | {"time": "2999-01-01T00:00:00Z"} for line in failed(m.line)]
    m.merge(*late, code=3)
    assert m.merge(*late, m.line) == {"replaced": 1, "failed": 4}
    expect(run("manifest", m.package, "--merge", m.history), 0, "1 replaced", ", 4 of failed runs")
    assert m.entries() == clean


def test_older_ones_and_those_of_other_models(folder):
    m = Measured(folder)
    source = {k: v for k, v in m.line.items() if k != "model_hash"}
    assert m.merge(m.line, source) == {"added": 1, "of_others": 1}
    clean = m.entries()
    assert m.merge(m.line | {"time": "2000-01-01T00:00:00Z"}) == {"older": 1}
    assert m.entries() == clean
    m.merge(source, code=3, texts=["results of other packages: 1"])


def test_a_time_that_is_none_or_has_not_come(folder):
    """A line with an invalid or future time would always be the newest."""
    m = Measured(folder)
    assert m.merge(m.line) == {"added": 1}
    clean = m.entries()
    for time in NO_TIMES:
        m.merge(m.line | {"time": time, "load_ms": 77.0}, m.line, code=1, texts=["bad-file", "line 1", f'\\"time\\" is \\"{time}\\"'])
        m.merge(m.line, m.line | {"time": time}, code=1, texts=["bad-file", "line 2"])
    m.merge(m.line | {"time": "2999-01-01T00:00:00Z"}, code=1, texts=["in the future"])
    assert m.entries() == clean
    manifest = json.loads(m.manifest.read_text())
    manifest["measured"][0]["time"] = "zzz"
    m.manifest.write_text(json.dumps(manifest))
    m.merge(m.line, code=1, texts=["bad-file", "measured[0]", "compile again"])


def test_what_is_measured_in_another_way_is_another_entry(folder):
    m = Measured(folder)
    others = [{"jobs": 4}, {"measures": "prompts"}, {"measures": "tokens one by one"}, {"units": "cpu", "jobs": 4}]
    assert m.merge(m.line, *[m.line | other for other in others]) == {"added": 5}
    entries = m.entries()
    assert [e.get("jobs", 1) for e in entries] == [1, 4, 1, 1, 4]
    assert ["speedup_vs_cpu" in e for e in entries] == [False, True, False, False, False], entries
    assert m.merge(m.line | {"jobs": 4}) == {"replaced": 1}


def test_a_last_line_that_was_cut_off(folder):
    m = Measured(folder)
    cut = json.dumps(m.line)[:100]
    assert m.merge(m.line, cut, end="") == {"added": 1}
    expect(run("manifest", m.package, "--merge", m.history), 0, "line 2", "truncated")
    assert m.merge(m.line, end="") == {"replaced": 1}
    m.merge(m.line, cut, code=1, texts=["bad-file", "line 2"])
    m.merge(cut, m.line, code=1, texts=["bad-file", "line 1"])
    m.history.unlink()
    m.history.mkdir()
    expect(run("manifest", m.package, "--merge", m.history), 1, "file-io")


def test_what_is_no_result(folder):
    m = Measured(folder)
    before = m.manifest.read_text()
    for field, values in {"time": (5, None, *NO_TIMES), "mlc": ([],), "machine": (5, "x", {}, {"runtime": 5}, {"runtime": "x", "os": [1]}),
                          "function": ({},), "units": ("gpus", 5), "iterations": (1.5, -1, "3", None), "load_ms": ("1", -1),
                          "placement": (5, {"operations": 5}, {"operations": {"cpu": "1"}}), "telemetry": (5, {"failed": "x"}),
                          "timings_ms": (5, {}, {"predict": {"p50": 1}}, {"predict": {"p50": "1", "p95": 1, "p99": 1}}),
                          "compared": (5, {"with": 1}, {"with": "x", "outputs": 5}, {"with": "x", "outputs": [5]}),
                          "model_hash": (5,), "failures": (5,)}.items():
        for value in values:
            m.merge(m.line, m.line | {field: value}, code=1, texts=["bad-file", "line 2"])
    for line in ("5", "[]", "{}", '{"model": "x"}', "x"):
        m.merge(line, m.line, code=1, texts=["bad-file", "line 1"])
    assert m.manifest.read_text() == before


def test_what_is_no_manifest(folder):
    m = Measured(folder)
    good = json.loads(m.manifest.read_text())
    entry = {"time": "2020-01-01T00:00:00Z", "machine": {"runtime": "x"}, "function": "main", "units": "cpu", "predict_ms": {"p50": 1}}
    bad = [5, [], {}, good | {"package": 5}, good | {"package": {}}, good | {"package": good["package"] | {"xxh3_128": 7}}]
    bad += [good | {"measured": value} for value in (5, {"a": 1}, [1], [{}], "x", None, [entry | {"machine": 5}],
                                                     [entry | {"units": 5}], [entry | {"predict_ms": {"p50": "x"}}])]
    for manifest in bad:
        m.manifest.write_text(json.dumps(manifest))
        m.merge(m.line, code=1, texts=["bad-file", "a.manifest.json"])
        assert m.manifest.read_text() == json.dumps(manifest)


def test_merges_at_once(folder):
    m = Measured(folder)
    files = []
    for i in range(12):
        files.append(folder / f"{i}.jsonl")
        files[-1].write_text(json.dumps(m.line | {"machine": {"runtime": f"r{i}"}}) + "\n")
    parallel(lambda file: expect(run("manifest", m.package, "--merge", file), 0), files, 12)
    assert sorted(e["machine"]["runtime"] for e in m.entries()) == sorted(f"r{i}" for i in range(12)), m.entries()


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "manifest", Folder))
