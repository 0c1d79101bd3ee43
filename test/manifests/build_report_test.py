#!/usr/bin/env python3
"""Tests `mlc build --report` and `--history`: what a build is compared with, and how failures are reported."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import browser
import junit_schema
from build_fleet import Fleet
from driver import run_tests

FORMS = ("html", "md", "xml", "json", "txt")


def build(fleet, *options, code=0):
    """Builds with a history; returns the document of the report."""
    words = [word for form in FORMS for word in ("--report", fleet.folder / f"r.{form}")]
    fleet.build("--history", fleet.folder / "history", *words, *options, code=code)
    found = junit_schema.errors((fleet.folder / "r.xml").read_text())
    assert not found, found
    return json.loads((fleet.folder / "r.json").read_text())


def table(document, title, name=""):
    section = next(section for section in document["sections"] if section["title"] == title)
    found = [block["table"] for block in section["blocks"] if "table" in block and block["table"]["title"] == name]
    return found[0] if found else None


def outcomes(document):
    return {(check["group"], check["name"]): check["outcome"] for check in document["checks"]}


def row_of(document, variant):
    variants = table(document, "Variants")
    cells = next(row for row in variants["rows"] if row[0] == variant)
    return dict(zip([column["name"] for column in variants["columns"]], cells))


def test_history(folder):
    fleet = Fleet(folder)
    first = build(fleet)
    assert first["verdict"] == {"value": "PASSED", "mark": "good"}, first
    assert outcomes(first)[("m-fp16", "build")] == "passed" and outcomes(first)[("m-fp16", "operations")] == "passed"
    assert table(first, "Changes since the last build", "Worst first") is None
    assert "There is no earlier build." in (folder / "r.md").read_text()
    assert isinstance(row_of(first, "n-only")["size"], int), row_of(first, "n-only")
    # Nothing changed: the second build has the same figures, now with a history.
    second = build(fleet)
    assert row_of(second, "n-only")["status"]["value"] == "up to date"
    assert row_of(second, "n-only")["size"] == [row_of(first, "n-only")["size"]] * 2
    assert table(second, "Changes since the last build", "Worst first") is None, second
    # A variant in fp32 has a larger package and a smaller error. The worse one comes first.
    fleet.recipes["n"]["variants"][0]["options"] += ["--precision", "fp32"]
    fleet.write()
    third = build(fleet)
    changes = table(third, "Changes since the last build", "Worst first")
    assert {(row[0], row[4]["mark"]) for row in changes["rows"]} == {("n-only", "notice"), ("n-only", "good")}, changes
    marks = [row[4]["mark"] for row in changes["rows"]]
    assert marks == sorted(marks, reverse=True) and ("n-only", "size") in {(row[0], row[1]) for row in changes["rows"]}, changes
    text = (folder / "r.md").read_text()
    assert " points |" in text and text.index("worse -") < text.index("better -"), text
    assert len(list((folder / "history").glob("*.json"))) == 3


def test_failures(folder):
    fleet = Fleet(folder)
    build(fleet)
    fleet.recipes["m"]["variants"][1]["limits"]["operations"] = 1
    fleet.recipes["n"]["variants"][0]["options"] = ["--outputs", "nothing"]
    fleet.write()
    document = build(fleet, code=3)
    assert document["verdict"]["mark"] == "bad" and document["sections"][0]["title"] == "Failures"
    found = outcomes(document)
    assert found[("m-fp16", "operations")] == "failed" and found[("n-only", "build")] == "error" and found[("m-fp32", "build")] == "passed"
    assert "nothing" in table(document, "Failures", "Errors")["rows"][0][0]["value"]
    assert table(document, "Failures", "Checks")["rows"][0][0] == "m-fp16"
    changes = table(document, "Changes since the last build", "Worst first")["rows"]
    assert {row[0] for row in changes[:2]} == {"m-fp16", "n-only"} and all(row[1] == "status" for row in changes[:2]), changes
    assert [row[0] for row in table(document, "Variants")["rows"]][2] == "m-fp32", "failures come first"
    # What was not built leaves the figures of the last build that had them.
    fleet.recipes["n"]["variants"][0]["options"] = ["--labels", "labels.txt"]
    fleet.recipes["m"]["variants"][1]["limits"]["operations"] = 9
    fleet.write()
    document = build(fleet)
    assert len(row_of(document, "n-only")["size"]) == 2, row_of(document, "n-only")


def test_history_of_others(folder):
    """Files in the folder that are not of a build are named and left out; a trial run adds none."""
    fleet = Fleet(folder)
    (folder / "history").mkdir()
    (folder / "history" / "0.json").write_text("{}")
    (folder / "history" / "1.json").write_text("not JSON")
    document = build(fleet)
    assert document["verdict"]["mark"] == "good" and len(list((folder / "history").glob("*.json"))) == 3
    build(fleet, "--dry-run")
    assert len(list((folder / "history").glob("*.json"))) == 3


def test_page(folder):
    if not browser.find():
        print("# page of a fleet in a browser: skipped, no Chromium")
        return
    fleet = Fleet(folder)
    build(fleet)
    fleet.recipes["n"]["variants"][0]["options"] += ["--precision", "fp32"]
    fleet.write()
    build(fleet)
    with browser.Browser() as chromium:
        for dark in (False, True):
            chromium.open(folder / "r.html", dark)
            assert chromium.messages == [] and chromium.requests == [(folder / "r.html").resolve().as_uri()]
        assert chromium.evaluate("document.querySelectorAll('svg.spark').length") >= 3


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "reports of builds"))
