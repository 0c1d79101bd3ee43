#!/usr/bin/env python3
"""Tests --calibrate with --compress, auto and --report on the command line."""
import json
import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import compressible_models
import json_schema
from driver import ROOT, expect, run, run_tests

DIGITS = ROOT / "manifests/digits"


def digits(folder):
    """Returns the model, inputs for calibration, and test images with their probabilities."""
    return DIGITS / "digits.onnx", DIGITS / "calibration", np.load(DIGITS / "images.npy")[::5], np.load(DIGITS / "probabilities.npy")[::5]


def error(package, images, expected, folder):
    """The squared error of the probabilities of some images."""
    total = 0
    for image, wanted in list(zip(images, expected)):
        np.save(folder / "image.npy", image[None])
        expect(run("run", package, "--input", f"image={folder / 'image.npy'}", "--output-dir", folder / "out"), 0)
        total += float(((np.load(folder / "out/probabilities.npy")[0] - wanted) ** 2).sum())
    return total


def test_lowers_the_error(folder):
    model, inputs, images, expected = digits(folder)
    errors = {}
    for scheme in "pal2", "pal3", "int4:block=row", "sparse:0.6":
        for name, options in (("without", []), ("with", ["--calibrate", inputs])):
            package = folder / f"{name}.mlpackage"
            answer = expect(run("compile", model, "-o", package, "--force", "--compress", scheme, "--json", *options), 0).answer
            errors[name] = error(package, images, expected, folder)
        report = answer["compression"]
        assert errors["with"] < 0.8 * errors["without"], (scheme, errors)
        assert "64 samples" in report["inputs"] and report["loss"]["snr_db"] > 0, report
        measured = [entry for entry in report["tensors"] if "output_snr_db" in entry]
        assert measured and any(entry.get("bias_corrected") for entry in measured), report
        manifest = json.loads((folder / "with.manifest.json").read_text())
        assert not json_schema.errors(manifest, json.loads((ROOT / "manifests/manifest.schema.json").read_text()))


def test_auto(folder):
    model, inputs, images, expected = digits(folder)
    package = folder / "auto.mlpackage"
    answer = expect(run("compile", model, "-o", package, "--compress", "auto:bits=3.5", "--calibrate", inputs, "--json",
                        "--report", folder / "report.html"), 0).answer
    report = answer["compression"]
    chosen = [entry for entry in report["tensors"] if entry.get("asked", "").startswith("auto") and entry["scheme"] != "none"]
    assert chosen and sum(e["bytes_after"] for e in chosen) * 8 <= 3.5 * sum(np.prod(e["shape"]) for e in chosen), chosen
    assert sum(point.get("chosen", False) for point in report["curve"]) == 1 and len(report["curve"]) >= 8
    uniform = folder / "uniform.mlpackage"
    expect(run("compile", model, "-o", uniform, "--compress", "pal3"), 0)
    assert error(package, images, expected, folder) < error(uniform, images, expected, folder)
    manifest = json.loads((folder / "auto.manifest.json").read_text())
    assert not json_schema.errors(manifest, json.loads((ROOT / "manifests/manifest.schema.json").read_text()))
    page = (folder / "report.html").read_text()
    assert "<svg" in page and "auto:bits=3.5" in page and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for goal in "auto:size=30%", "auto:snr=30":
        answer = expect(run("compile", model, "-o", package, "--force", "--compress", goal, "--calibrate", inputs, "--json",
                            "--report", folder / "curve.svg"), 0).answer["compression"]
        if goal.startswith("auto:size"):
            own = [e for e in answer["tensors"] if e.get("asked", "").startswith("auto") and e["scheme"] != "none"]
            assert sum(e["bytes_after"] for e in own) <= 0.3 * sum(e["bytes_before"] for e in own), own
        else:
            assert answer["loss"]["snr_db"] >= 29, answer["loss"]
        xml.etree.ElementTree.fromstring((folder / "curve.svg").read_text())
    # Without inputs, schemes are compared on generated ones, and the target limits them.
    answer = expect(run("compile", model, "-o", package, "--force", "--compress", "auto:bits=5", "--target", "iOS16", "--json"), 0).answer
    assert {e["scheme"].split(":")[0] for e in answer["compression"]["tensors"]} <= {"none", "int8", "pal1", "pal2", "pal4", "pal6", "pal8"}
    assert all("group" not in e["scheme"] for e in answer["compression"]["tensors"])
    assert "inputs" not in answer["compression"] and "generated" in answer["compression"]["loss"]["inputs"]


def test_packages(folder):
    """Packages of anybody are calibrated, too; encoded weights may be chosen anew."""
    package = compressible_models.package(folder, "linear", run, expect)
    (folder / "in").mkdir()
    np.save(folder / "in/x.npy", np.random.default_rng(0).normal(size=(2, 96)).astype("f2"))
    first = folder / "first.mlpackage"
    report = expect(run("opt", package, "--compress", "int8", "-o", first, "--calibrate", folder / "in", "--json"), 0).answer["compression"]
    assert report["tensors"][0]["output_snr_db"] > 30, report
    second = folder / "second.mlpackage"
    report = expect(run("opt", first, "--compress", "auto:bits=4.5", "-o", second, "--calibrate", "generated:4", "--json",
                        "--report", folder / "r.json"), 0).answer["compression"]
    assert json.loads((folder / "r.json").read_text()) == report and report["tensors"][0]["scheme"] != "none"


def test_threads(folder):
    model, inputs, _, _ = digits(folder)
    for scheme in "pal3", "auto:bits=4":
        bytes_of = []
        for threads in "1", "8":
            package = folder / f"{threads}.mlpackage"
            expect(run("compile", model, "-o", package, "--force", "--compress", scheme, "--calibrate", inputs,
                       environment={"MLC_THREADS": threads}), 0)
            bytes_of.append([f.read_bytes() for f in sorted(package.rglob("*")) if f.is_file()])
        assert bytes_of[0] == bytes_of[1], scheme


def test_text(folder):
    """A language model is calibrated on text, which its tokenizer splits."""
    model = ROOT / "manifests/verses/verses-q8_0.gguf"
    (folder / "sample.txt").write_text((ROOT / "manifests/verses-calibration.txt").read_text()[:8000])
    answer = expect(run("compile", model, "-o", folder / "v.mlpackage", "--compress", "pal3:group=32", "--no-measure", "--json",
                        "--calibrate", folder / "sample.txt", timeout=240), 0).answer["compression"]
    assert answer["inputs"].startswith("text, ") and answer["loss"]["divergence"] > 0
    plain = expect(run("compile", model, "-o", folder / "p.mlpackage", "--compress", "pal3:group=32", "--no-measure", "--json"), 0).answer
    assert "loss" not in plain["compression"]


def test_errors(folder):
    model, inputs, images, _ = digits(folder)
    package = folder / "e.mlpackage"

    def refused(code, *texts, compress="pal4", **options):
        given = [item for name, value in options.items() for item in (f"--{name}", value)]
        expect(run("compile", model, "-o", package, "--compress", compress, *given), code, *texts)
        assert not package.exists()

    (folder / "empty").mkdir()
    refused(2, "contains no inputs", "NAME.npy", calibrate=folder / "empty")
    for name, array, text in (("nan", np.full((1, 1, 8, 8), np.nan, "f4"), "is NaN at element 0"),
                              ("shape", np.zeros((1, 1, 9, 8), "f4"), "image"),
                              ("name", None, "matches no input")):
        (folder / name).mkdir()
        np.save(folder / name / ("image.npy" if array is not None else "picture.npy"), array if array is not None else images[:1])
        expect(run("compile", model, "-o", package, "--compress", "pal4", "--calibrate", folder / name), 1, text)
        assert not package.exists()
    (folder / "text.txt").write_text("In the beginning")
    refused(1, "tokenizer", calibrate=folder / "text.txt")
    refused(2, "from 1 to 4096", calibrate="generated:0")
    refused(2, "auto requires a goal", compress="auto")
    refused(2, "bits per element from 1 to 16", compress="auto:bits=0")
    refused(2, "ends neither in .html", report=folder / "r.pdf")
    refused(2, "no curve", report=folder / "r.svg")
    expect(run("compile", model, "-o", package, "--report", folder / "r.html"), 2, "--report requires --compress")
    expect(run("opt", model, "-o", package, "--calibrate", inputs), 2, "--calibrate requires --compress")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc --calibrate"))
