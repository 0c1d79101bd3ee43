#!/usr/bin/env python3
"""Tests --calibrate with --compress, auto and --report on the command line."""
import json
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import compressible_models
import gguf_wire
import json_schema
from driver import MLC, ROOT, expect, run, run_tests

DIGITS = ROOT / "manifests/digits"


def digits(folder):
    """Returns the model, inputs for calibration, and test images with their probabilities."""
    return DIGITS / "digits.onnx", DIGITS / "calibration", np.load(DIGITS / "images.npy")[::5], np.load(DIGITS / "probabilities.npy")[::5]


def error(package, images, expected, folder):
    """The squared error of the probabilities of some images."""
    samples, reference = folder / "test-images", folder / "test-probabilities"
    if not samples.exists():
        for i, (image, wanted) in enumerate(zip(images, expected)):
            for root, name, value in ((samples, "image", image[None]), (reference, "probabilities", wanted[None])):
                (root / str(i)).mkdir(parents=True)
                np.save(root / str(i) / f"{name}.npy", value)
    result = run("verify", DIGITS / "digits.onnx", package, "--inputs", samples, "--reference", reference, "--json")
    assert result.code in (0, 3), result
    outputs = result.answer["outputs"]
    assert len(outputs) == len(expected), outputs
    # The RMSE is relative to the largest probability.
    return sum((output["rmse"] * np.max(wanted)) ** 2 * wanted.size for output, wanted in zip(outputs, expected))


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


def test_shards_add_up_to_the_whole(folder):
    model, inputs, *_ = digits(folder)
    expect(run("calibrate", model, "--inputs", inputs, "-o", folder / "whole"), 0)
    for count in 2, 5:
        parts = [folder / f"{count}-{i}" for i in range(1, count + 1)]
        for i, part in enumerate(parts, 1):
            shown = expect(run("calibrate", model, "--inputs", inputs, "--shard", f"{i}/{count}", "-o", part, "--json"), 0).answer
            assert 64 // count <= shown["samples"] <= 64 // count + 1, shown
        for order in parts, parts[::-1]:
            merged = expect(run("calibrate", *[word for part in order for word in ("--merge", part)], "-o", folder / "all", "--json"), 0)
            assert merged.answer["samples"] == 64 and (folder / "all").read_bytes() == (folder / "whole").read_bytes(), count
    for words, code, text in ((["--shard", "0/2"], 2, "--shard"), (["--shard", "3/2"], 2, "--shard"), (["--shard", "2"], 2, "--shard"),
                              (["--shard", "1/65"], 2, "64 samples")):
        expect(run("calibrate", model, "--inputs", inputs, *words, "-o", folder / "none"), code, text)
    expect(run("calibrate", model, "--merge", folder / "whole", "-o", folder / "none"), 2, "MODEL")
    expect(run("calibrate", "--merge", DIGITS / "digits.onnx", "-o", folder / "none"), 1, "digits.onnx")
    expect(run("calibrate", "-o", folder / "none"), 2, "MODEL is missing")
    assert not (folder / "none").exists()


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
    assert "<svg" in page and "auto:bits=3.5" in page and "http://" not in page and "https://" not in page
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


def test_compares_on_other_inputs(folder):
    """Generated inputs that weights are fitted to are not those on which programs are compared; given ones are."""
    model, inputs, _, _ = digits(folder)
    for given, fitted, compared in (("generated:4", "generated inputs, 4 samples", "generated inputs, 64 samples"),
                                    (inputs, "the given inputs, 64 samples", "the given inputs, 64 samples")):
        report = expect(run("compile", model, "-o", folder / "auto.mlpackage", "--force", "--compress", "auto:bits=4", "--calibrate", given,
                            "--json"), 0).answer["compression"]
        assert (report["inputs"], report["loss"]["inputs"]) == (fitted, compared), report
    # A program that takes long is compared on fewer inputs, but on others, too.
    x, w = (1, 16, 290, 290), np.random.default_rng(0).normal(0, 0.05, (16, 16, 3, 3)).astype("f2")
    (folder / "large.mil").write_text(f"func main<ios18>(tensor<fp16, [{', '.join(map(str, x))}]> x) {{\n"
                                      f"  tensor<fp16, [16, 16, 3, 3]> w = const()[val = {compressible_models.numbers(w)}];\n"
                                      "  y = conv(x = x, weight = w);\n} -> (y);\n")
    report = expect(run("opt", folder / "large.mil", "--compress", "auto:bits=4", "--calibrate", "generated:8", "-o",
                        folder / "large.mlpackage", "--json"), 0).answer["compression"]
    assert report["inputs"] == "generated inputs, 8 samples" and report["loss"]["inputs"] == "generated inputs, 5 samples", report


def test_training(folder):
    """Weights are trained on most samples where every operator between them and the outputs has a derivative; on any number of threads."""
    random = np.random.default_rng(0)

    def model(name, between):
        u, v = (random.normal(0, 0.2, shape).astype("f2") for shape in ((48, 64), (64, 48)))
        (folder / f"{name}.mil").write_text("func main<ios18>(tensor<fp16, [4, 64]> x) {\n"
                                            f"  tensor<fp16, [48, 64]> u = const()[val = {compressible_models.numbers(u)}];\n"
                                            f"  tensor<fp16, [64, 48]> v = const()[val = {compressible_models.numbers(v)}];\n"
                                            f"  a = linear(x = x, weight = u); b = {between}(x = a); y = linear(x = b, weight = v);\n"
                                            "} -> (y);\n")
        return folder / f"{name}.mil"

    def compressed(source, name, *options, threads="2"):
        package = folder / f"{name}.mlpackage"
        return package, expect(run("opt", source, "--compress", "pal2", "--calibrate", "generated:64", "-o", package, "--json", *options,
                                   environment={"MLC_THREADS": threads}), 0).answer["compression"]

    known, unknown = model("known", "silu"), model("unknown", "erf")
    package, trained = compressed(known, "one", threads="1")
    assert trained["trained"] == {"weights": 2, "steps": 200, "samples": 56, "codes": False}, trained["trained"]
    assert all(entry["trained"] and "output_snr_db" not in entry for entry in trained["tensors"]), trained
    other, plain = compressed(known, "plain", "--no-training")
    assert "trained" not in plain and trained["loss"]["snr_db"] >= plain["loss"]["snr_db"] - 0.05, (trained["loss"], plain["loss"])
    assert trained["bytes_after"] == plain["bytes_after"] and package_bytes(package) != package_bytes(other)
    again, _ = compressed(known, "eight", threads="8")
    assert package_bytes(package) == package_bytes(again)
    _, left = compressed(unknown, "left")
    assert left["trained"]["weights"] == 0 and left["trained"]["reason"] == "there is no derivative of erf", left["trained"]
    expect(run("opt", known, "--compress", "pal2", "--calibrate", "generated:64", "-o", folder / "text.mlpackage"), 0,
           "tables and scales of 2 weights trained, 200 steps on 56 samples")


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


def test_statistics(folder):
    """Statistics are read instead of the inputs; those of parts add up to those of the whole."""
    model, inputs, images, expected = digits(folder)
    whole = np.load(inputs / "image.npy")
    for name, part in (("a", whole[:24]), ("b", whole[24:]), ("whole", whole)):
        (folder / name).mkdir()
        np.save(folder / name / "image.npy", part)
        answer = expect(run("calibrate", model, "--inputs", folder / name, "-o", folder / f"{name}.stats", "--json",
                            environment={"MLC_THREADS": "1" if name == "whole" else "8"}), 0).answer
        assert answer["samples"] == len(part) and answer["weights"] == 4 and answer["activations"] >= 5 and not answer["without_inputs"]
    wanted = (folder / "whole.stats").read_bytes()
    for parts in ("a.stats", "b.stats"), ("b.stats", "a"), ("b", "a"):
        expect(run("calibrate", model, *[x for part in parts for x in ("--inputs", folder / part)], "-o", folder / "sum.stats"), 0)
        assert (folder / "sum.stats").read_bytes() == wanted, parts
    errors = {}
    for name, options in (("without", []), ("with", ["--calibrate", folder / "whole.stats"])):
        package = folder / f"{name}.mlpackage"
        answer = expect(run("compile", model, "-o", package, "--compress", "pal3", "--json", *options), 0).answer["compression"]
        errors[name] = error(package, images, expected, folder)
    assert errors["with"] < 0.8 * errors["without"] and answer["inputs"] == "statistics of 64 samples", (errors, answer)
    # A package has weights of its own.
    expect(run("calibrate", folder / "with.mlpackage", "--inputs", inputs, "-o", folder / "package.stats"), 0)
    expect(run("opt", folder / "with.mlpackage", "--compress", "pal2", "--calibrate", folder / "package.stats", "-o", folder / "o.mlpackage"), 0)
    expect(run("opt", folder / "with.mlpackage", "--compress", "pal2", "--calibrate", folder / "whole.stats", "-o", folder / "o2.mlpackage"),
           1, "those of another model", "mlc calibrate MODEL")
    assert not (folder / "o2.mlpackage").exists()
    expect(run("calibrate", model, "--inputs", folder / "a.stats", "--inputs", folder / "package.stats", "-o", folder / "e.stats"), 1,
           "different models")
    # A model that differs in one weight.
    other = folder / "other.onnx"
    data = model.read_bytes()
    at = data.rindex(b"features.3.weight")  # of the initializer; its elements follow
    raw = bytearray(data)
    raw[at + 400] ^= 1
    other.write_bytes(raw)
    expect(run("calibrate", other, "--inputs", folder / "a", "-o", folder / "other.stats"), 0)
    expect(run("calibrate", model, "--inputs", folder / "a", "--inputs", folder / "other.stats", "-o", folder / "e2.stats"), 1,
           "different models", "weight")
    assert not (folder / "e2.stats").exists()
    # Damaged files.
    for name, data in (("cut", wanted[:-100]), ("bit", wanted[:5000] + bytes([wanted[5000] ^ 1]) + wanted[5001:]), ("head", wanted[:20])):
        (folder / f"{name}.stats").write_bytes(data)
        expect(run("compile", model, "-o", folder / "e.mlpackage", "--compress", "pal4", "--calibrate", folder / f"{name}.stats"), 1,
               "are damaged", "mlc calibrate")
    (folder / "version.stats").write_bytes(wanted.replace(b"statistics 1", b"statistics 9", 1))
    expect(run("compile", model, "-o", folder / "e.mlpackage", "--compress", "pal4", "--calibrate", folder / "version.stats"), 1,
           "another version")
    expect(run("compile", model, "-o", folder / "e.mlpackage", "--calibrate", folder / "whole.stats"), 2, "statistics require --compress")
    expect(run("calibrate", model, "-o", folder / "e.stats"), 2, "--inputs")
    (folder / "empty").mkdir()
    expect(run("calibrate", model, "--inputs", folder / "empty", "-o", folder / "e3.stats"), 2, "contains no inputs")
    assert not (folder / "e3.stats").exists()


def test_activations(folder):
    """w8a8: ranges of activations from inputs, with and without --calibrate."""
    model, inputs, images, expected = digits(folder)
    expect(run("calibrate", model, "--inputs", inputs, "-o", folder / "d.stats"), 0)
    for name, options in (("generated", []), ("given", ["--calibrate", inputs]), ("statistics", ["--calibrate", folder / "d.stats"])):
        package = folder / f"{name}.mlpackage"
        answer = expect(run("compile", model, "-o", package, "--compress", "w8a8", "--json", *options), 0).answer["compression"]
        left = answer.get("activations_left", {}).get("names", [])
        assert len(answer["activations"]) + len(left) == 5 and answer["ranges"] and answer["inputs"], answer
        assert len(left) <= 1 and not set(left) & {one["name"] for one in answer["activations"]}, answer
        assert error(package, images, expected, folder) < 0.02
        manifest = json.loads((folder / f"{name}.manifest.json").read_text())
        assert not json_schema.errors(manifest, json.loads((ROOT / "manifests/manifest.schema.json").read_text()))
        operators = expect(run("inspect", package, "--json"), 0).answer["operators"]
        assert operators["quantize"] == operators["dequantize"] == 5 - len(left), operators
        expect(run("verify", model, package), 0, "PASSED")
        expect(run("opt", package, "-o", folder / "again.mil", "--precision", "fp16"), 0, "changed: no")
    # Only the layers that rules name.
    answer = expect(run("compile", model, "-o", folder / "one.mlpackage", "--compress", "linear=w8a8", "--json"), 0).answer["compression"]
    assert len(answer.get("activations", [])) <= 1, answer
    expect(run("compile", model, "-o", folder / "e.mlpackage", "--compress", "w8a8", "--target", "iOS16"), 1, "w8a8", "iOS17")
    expect(run("compile", model, "-o", folder / "e.mlpackage", "--compress", "w8a8:block=32"), 2, "no option")
    expect(run("compile", model, "-o", folder / "e.mlpackage", "--compress", "sparse:0.5+w8a8"), 2, "sparse can be combined")


def test_importance(folder):
    """An importance matrix of llama.cpp weights the columns of matrices."""
    model = ROOT / "manifests/verses/verses-q8_0.gguf"

    def imatrix(name, change=None, rename=lambda name: name):
        tensors = {}
        for layer in range(4):
            for matrix, columns in (("attn_q", 128), ("attn_k", 128), ("ffn_up", 128), ("ffn_down", 224)):
                sums = (1000 * np.where(np.arange(columns) % 32 == 5, 100, 0.01)[None]).astype("f4")
                base = rename(f"blk.{layer}.{matrix}.weight")
                tensors[f"{base}.in_sum2"], tensors[f"{base}.counts"] = sums, np.full((1, 1), 1000, "f4")
        if change:
            change(tensors)
        path = folder / name
        path.write_bytes(gguf_wire.model({"general.type": "imatrix", "imatrix.chunk_count": 7, "imatrix.chunk_size": 256}, tensors))
        return path

    command = ["compile", model, "-o", folder / "v.mlpackage", "--compress", "int4:block=32", "--no-measure", "--force"]
    answer = expect(run(*command, "--json", "--calibrate", imatrix("i.gguf")), 0).answer["compression"]
    assert answer["inputs"] == "an importance matrix of 7 chunks", answer
    weighted = {entry["name"]: entry for entry in answer["tensors"] if "output_snr_db" in entry}
    assert len(weighted) == 16, weighted
    # One column of each block matters, and the scales of its blocks suit it.
    assert all(entry["output_snr_db"] > entry["snr_db"] + 6 for entry in weighted.values()), weighted
    wrong = {"counts": lambda t: t.pop("blk.0.attn_q.weight.counts"),
             "negative": lambda t: t.update({"blk.0.attn_q.weight.in_sum2": -t["blk.0.attn_q.weight.in_sum2"]}),
             "rows": lambda t: t.update({"blk.0.attn_q.weight.counts": np.full((2, 1), 1, "f4")}),
             "nan": lambda t: t.update({"blk.0.attn_q.weight.in_sum2": np.full((1, 128), np.nan, "f4")})}
    for name, change in wrong.items():
        expect(run(*command, "--calibrate", imatrix(f"{name}.gguf", change)), 1, "bad-file", "blk.0.attn_q.weight")
    expect(run(*command, "--calibrate", imatrix("other.gguf", rename=lambda name: "model." + name)), 1, "those of another model")
    expect(run("compile", model, "-o", folder / "w.mlpackage", "--calibrate", folder / "i.gguf"), 2, "statistics require --compress")
    expect(run(*command, "--calibrate", model), 1)  # a model is no importance matrix


def test_verify(folder):
    """Packages compressed for inputs are judged by what their manifest states."""
    model, inputs, _, _ = digits(folder)
    for scheme in ["pal2", "--calibrate", inputs], ["pal3", "--calibrate", inputs, "--precision", "fp32"], ["auto:bits=3"]:
        package = folder / "p.mlpackage"
        expect(run("compile", model, "-o", package, "--force", "--compress", *scheme), 0)
        expect(run("verify", model, package), 0, "PASSED, exceeds the budget as stated in the manifest")
        expect(run("verify", model, package, "--budget", "fp16"), 3, "FAILED")


def test_threads(folder):
    model, inputs, _, _ = digits(folder)
    for scheme in "pal3", "auto:bits=4", "w8a8":
        bytes_of = []
        for threads in "1", "8":
            package = folder / f"{threads}.mlpackage"
            expect(run("compile", model, "-o", package, "--force", "--compress", scheme, "--calibrate", inputs,
                       environment={"MLC_THREADS": threads}), 0)
            bytes_of.append([f.read_bytes() for f in sorted(package.rglob("*")) if f.is_file()])
        assert bytes_of[0] == bytes_of[1], scheme


def package_bytes(package):
    return [file.read_bytes() for file in sorted(package.rglob("*")) if file.is_file()]


def test_resume(folder):
    """A run that was killed continues with the weights that it left, and ends with the bytes of one that was not."""
    model, inputs, _, _ = digits(folder)
    whole, package, kept = folder / "whole.mlpackage", folder / "resumed.mlpackage", folder / "kept"
    options = ["--force", "--compress", "pal3", "--calibrate", inputs]
    expect(run("compile", model, "-o", whole, *options), 0)
    process = subprocess.Popen([MLC, "compile", model, "-o", package, *map(str, options), "--resume", kept], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(kept.glob("*.weight")):
        time.sleep(0.001)
    process.kill()
    process.wait()
    left = len(list(kept.glob("*.weight")))
    assert left > 0
    expect(run("compile", model, "-o", package, *options, "--resume", kept), 0, f"\n{left} result")
    assert package_bytes(package) == package_bytes(whole)
    results = sorted(kept.glob("*.weight"))
    expect(run("compile", model, "-o", package, *options, "--resume", kept), 0, f"\n{len(results)} results were taken from")
    assert package_bytes(package) == package_bytes(whole)
    # Another scheme, or other inputs, use none of them.
    expect(run("compile", model, "-o", package, "--force", "--compress", "pal2", "--calibrate", inputs, "--resume", kept), 0,
           "\n0 results were taken from")
    for change in lambda bytes: bytes[:100], lambda bytes: bytes[:-40] + b"\0" + bytes[-39:], lambda bytes: b"":
        damaged = results[0].read_bytes()
        results[0].write_bytes(change(damaged))
        expect(run("compile", model, "-o", package, *options, "--resume", kept), 1, "damaged", results[0].name, "delete the file")
        results[0].write_bytes(damaged)
    expect(run("compile", model, "-o", package, "--force", "--compress", "pal3", "--resume", kept), 2, "requires --compress and --calibrate")
    (folder / "file").write_text("")
    expect(run("compile", model, "-o", package, *options, "--resume", folder / "file"), 1, "cannot create the folder")


def test_text(folder):
    """A language model is calibrated on text, which its tokenizer splits."""
    model = ROOT / "manifests/verses/verses-q8_0.gguf"
    (folder / "sample.txt").write_text((ROOT / "manifests/verses-calibration.txt").read_text()[:8000])
    answer = expect(run("compile", model, "-o", folder / "v.mlpackage", "--compress", "pal3:group=32", "--no-measure", "--json",
                        "--calibrate", folder / "sample.txt", "--no-training", timeout=240), 0).answer["compression"]
    assert answer["inputs"].startswith("text, ") and answer["loss"]["divergence"] > 0
    expect(run("verify", model, folder / "v.mlpackage"), 0, "over state keyCache", "PASSED, exceeds the budget as stated")
    expect(run("calibrate", model, "--inputs", folder / "sample.txt", "-o", folder / "v.stats"), 0)
    statistics = expect(run("compile", model, "-o", folder / "s.mlpackage", "--compress", "pal3:group=32", "--no-measure", "--json",
                            "--calibrate", folder / "v.stats"), 0).answer["compression"]
    assert sum("output_snr_db" in entry for entry in statistics["tensors"]) == 29, statistics
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
    refused(2, "does not name the form of the report", report=folder / "r.pdf")
    refused(2, "no curve", report=folder / "r.svg")
    expect(run("compile", model, "-o", package, "--report", folder / "r.html"), 2, "--report requires --compress")
    expect(run("opt", model, "-o", package, "--calibrate", inputs), 2, "--calibrate requires --compress")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc --calibrate"))
