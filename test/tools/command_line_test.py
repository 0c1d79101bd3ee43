#!/usr/bin/env python3
"""Tests the command line: exit codes, messages, JSON and options, on small models made here."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import checkers
import json_schema
import onnx_wire as wire
from driver import MLC, ROOT, SKIPPED, expect, run, run_tests

SCHEMA = json.loads((ROOT / "manifests" / "manifest.schema.json").read_text())
FLOAT, INT64 = wire.FLOAT, wire.INT64

# First bytes of files that are not ONNX models, and a word of the help text.
FOREIGN = {
    "a.pt": (b"PK\3\4" + bytes(16) + b"constants.pkl", "torch.onnx.export"),
    "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(8), "tf2onnx"),
    "a.pkl": (b"\x80\x02}q", "torch.onnx.export"),
    "a.tflite": (b"\x1c\0\0\0TFL3" + bytes(8), "tf2onnx"),
    "a.safetensors": (b"\x08\0\0\0\0\0\0\0" + b'{"a": 1}', "export"),
    "empty.onnx": (b"", "empty"),
    "text.onnx": (b"hello\n", "expected: a GGUF file"),
}


def floats(name, values):
    array = np.asarray(values, "<f4")
    return wire.tensor(name, FLOAT, array.shape, array.tobytes())


def ints(name, values):
    array = np.asarray(values, "<i8")
    return wire.tensor(name, INT64, array.shape, array.tobytes())


class Folder:
    """A scratch folder with models in it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def __truediv__(self, name):
        return self.path / name

    def model(self, name, nodes, inputs, outputs, initializers=(), **options):
        graph = wire.graph(nodes, [wire.value_info(*i) for i in inputs], [wire.value_info(*o) for o in outputs], initializers)
        (self / name).write_bytes(wire.model(graph, **options))
        return self / name

    def linear(self, name="linear.onnx", batch=2):
        """y = relu(x @ w), x [batch, 3]."""
        return self.model(name, [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Relu", ["h"], ["y"])],
                          [("x", FLOAT, [batch, 3])], [("y", FLOAT, [batch, 4])],
                          [floats("w", np.arange(12).reshape(3, 4) / 7 - 0.5)])


def compiled(folder, model, *options, name="out.mlpackage"):
    expect(run("compile", model, "-o", folder / name, *options), 0)
    manifest = json.loads((folder / name.replace(".mlpackage", ".manifest.json")).read_text()) if (
        folder / name.replace(".mlpackage", ".manifest.json")).exists() else json.loads(
            (folder / (name + ".manifest.json")).read_text())
    problems = json_schema.errors(manifest, SCHEMA)
    assert not problems, problems
    return folder / name


PACKAGES = []  # (name, copy) of packages that coremltools' operator definitions must accept
KEPT = tempfile.TemporaryDirectory(prefix="mlc-")


def accepted(package):
    """Keeps a copy of the package for coremltools to check at the end."""
    copy = pathlib.Path(KEPT.name) / f"{len(PACKAGES)}.mlpackage"
    shutil.copytree(package, copy)
    PACKAGES.append(copy)
    return package


def inputs_of(path):
    answer = expect(run("inspect", path, "--json"), 0).answer
    return {i["name"]: i["shape"] for i in answer["inputs"]}


def test_usage_errors_have_exit_code_2(folder):
    model = folder.linear()
    expect(run(), 0, "Usage: mlc COMMAND")
    expect(run("frobnicate"), 2, "error[usage]")
    expect(run("compile"), 2, "MODEL")
    expect(run("compile", model, "--bogus"), 2, "--bogus", "mlc compile --help")
    expect(run("compile", model, "--target", "iOS3"), 2, "iOS3")
    expect(run("compile", model, "--precision", "fp7"), 2, "fp7")
    expect(run("compile", model, "--shape", "x"), 2, "--shape")
    expect(run("compile", model, "--shape", "x=1,a"), 2, "--shape")
    expect(run("run", model, "--seed", "many"), 2, "--seed")
    expect(run("completions", "tcsh"), 2, "tcsh")


def test_foreign_formats_are_refused_with_a_way_out(folder):
    for name, (data, way_out) in FOREIGN.items():
        (folder / name).write_bytes(data)
        for command in (["compile", folder / name, "-o", folder / "o.mlpackage"], ["inspect", folder / name]):
            expect(run(*command), 1, name, way_out)
    (folder / "folder").mkdir()
    expect(run("compile", folder / "folder"), 1, "Manifest.json")
    expect(run("compile", "/dev/null"), 1, "/dev/null")
    expect(run("compile", folder / "absent.onnx"), 1, "absent.onnx", "help:")
    assert not (folder / "o.mlpackage").exists()


def test_json_is_one_document_errors_too(folder):
    model = folder.linear()
    for arguments, code in ((["compile", model, "-o", folder / "a.mlpackage"], 0), (["run", model], 0),
                            (["inspect", model], 0), (["ops"], 0), (["ops", model], 0),
                            (["verify", model, folder / "a.mlpackage"], 0), (["run", folder / "absent.onnx"], 1),
                            (["compile", model, "--target", "iOS3"], 2), (["compile", model, "--bogus"], 2)):
        result = expect(run(*arguments, "--json"), code)
        document = json.loads(result.stdout)
        if code:
            assert set(document["errors"][0]) >= {"id", "text", "location", "notes"}, document


def test_all_bad_nodes_are_listed_in_one_run(folder):
    model = folder.model("bad.onnx", [wire.node("Bogus", ["x"], ["a"]), wire.node("Relu", ["a"], ["b"]),
                                      wire.node("Dubious", ["b"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    errors = expect(run("compile", model, "-o", folder / "o.mlpackage", "--json"), 1).errors
    assert {"Bogus", "Dubious"} <= {w for e in errors for w in ("Bogus", "Dubious") if w in str(e)}, errors
    expect(run("ops", model), 1, "Bogus", "Dubious", "Relu")


def test_ops_lists_what_each_frontend_compiles(folder):
    for frontend, decoder, encoder in (("gguf", "gemma3", "nomic-bert"), ("safetensors", "gemma3_text", "nomic_bert")):
        rows = expect(run("ops", "--frontend", frontend, "--json"), 0).answer
        networks = {row["architecture"]: row["network"] for row in rows if row["architecture"] != "gemma3_text"}
        assert networks[encoder] == "encoder" and networks["llama"] == "decoder", rows
        assert {"architecture": decoder, "network": "decoder"} in rows, rows
        lines = expect(run("ops", "--frontend", frontend, "--markdown"), 0).stdout.splitlines()
        assert lines[0].startswith("# ") and sum(line.startswith("| ") for line in lines) == len(rows) + 1, lines
    expect(run("ops", "--frontend", "mlpackage"), 2, "gguf, safetensors or onnx")


def test_an_option_of_another_format_is_refused(folder):
    model = folder.linear()
    expect(run("compile", model, "--context", "8"), 2, "--context", "a GGUF file or a Hugging Face folder")
    expect(run("inspect", compiled(folder, model), "--shape", "x=1,2"), 2,
           "--shape applies to a GGUF file, a Hugging Face folder or an ONNX model, not to a package")


def test_an_existing_package_is_replaced_but_no_other_folder(folder):
    model = folder.linear()
    compiled(folder, model)
    compiled(folder, model)
    (folder / "mine.mlpackage").mkdir()
    (folder / "mine.mlpackage" / "notes.txt").write_text("mine")
    expect(run("compile", model, "-o", folder / "mine.mlpackage"), 1, "mine.mlpackage")
    assert (folder / "mine.mlpackage" / "notes.txt").read_text() == "mine"


def test_dim_fixes_bounds_and_lists(folder):
    model = folder.linear(batch="n")
    for value, shape in (("4", 4), ("1..8", None), ("1,2,4", None)):
        package = compiled(folder, model, "--dim", f"n={value}")
        dim = inputs_of(package)["x"][0]
        assert (dim == 4) == (shape == 4), (value, dim)
    assert inputs_of(compiled(folder, model, "--shape", "x=5,3"))["x"] == [5, 3]
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "m=4"), 1, "--dim m", "expected: \"n\"")
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--shape", "z=4"), 1, "--shape z")
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--shape", "x=4"), 1, "x")


def test_dim_takes_sizes_only(folder):
    model, o = folder.linear(batch="n"), folder / "o.mlpackage"
    for text in ("..4", "1..", "..", "1..2..3", "1,2..4", "0", "0..4", "-1", "5..4", "", ",", "1..99999999999", "99999999999", "1,99999999999",
                 "2147483648", "99999999999999999999"):
        expect(run("compile", model, "-o", o, "--dim", f"n={text}"), 2, "error[usage]", "--dim")
    expect(run("inspect", compiled(folder, model, "--dim", "n=1..2147483646")), 0, "n in 1..2147483646")
    expect(run("compile", model, "-o", o, "--shape", "x=99999999999,3"), 1, "--shape x", "99999999999", "1 to 2147483647")
    assert not o.exists()


def test_shape_and_dim_do_not_contradict(folder):
    pair = folder.model("pair.onnx", [wire.node("MatMul", ["x", "y"], ["z"])], [("x", FLOAT, ["N", 3]), ("y", FLOAT, [3, ""])],
                        [("z", FLOAT, None)])
    o = folder / "o.mlpackage"
    for shape, dim in (("x=1,3", "N=2"), ("x=1,3", "N=2..4"), ("x=3,3", "N=2,4"), ("x=1,3", "N=1..4"), ("y=3,5", "y_dim1=4")):
        expect(run("compile", pair, "-o", o, "--shape", shape, "--dim", dim), 2, "--shape " + shape[0], "--dim " + dim, "dimension")
    assert inputs_of(compiled(folder, pair, "--shape", "x=2,3", "--dim", "N=2", "--dim", "y_dim1=4")) == {"x": [2, 3], "y": [3, 4]}
    assert inputs_of(compiled(folder, pair, "--shape", "x=2,3", "--dim", "y_dim1=4")) == {"x": [2, 3], "y": [3, 4]}
    np.save(folder / "x.npy", np.ones((2, 3), "f4"))
    expect(run("compile", pair, "-o", o, "--const", f"x={folder / 'x.npy'}", "--dim", "N=3"), 2, "--const x", "--dim N=3")
    odd = folder.linear("odd.onnx", batch="past + 1")
    expect(run("compile", odd, "-o", o, "--shape", "x=1,3", "--dim", "past___1=4"), 2, "--shape x", "--dim past___1=4")
    expect(run("inspect", compiled(folder, odd, "--shape", "x=4,3", "--dim", "past___1=4")), 0, "[4, 3]")


def test_a_size_that_was_not_declared_names_the_option(folder):
    model = folder.linear(batch="n")
    np.save(folder / "x.npy", np.zeros((9, 3), "f4"))
    given = ["--input", f"x={folder / 'x.npy'}"]
    expect(run("run", compiled(folder, model, "--dim", "n=1..8"), *given), 1, "--dim n=1..9", "--shape x=9,3")
    expect(run("run", compiled(folder, model, "--dim", "n=1,4"), *given), 1, "--dim n=1,4,9", "--shape x=9,3")
    expect(run("run", compiled(folder, model, "--dim", "n=4"), *given), 1, "--shape x=9,3")
    expect(run("run", compiled(folder, model), *given), 0)


def test_dimensions_without_a_name_have_one_for_dim(folder):
    model = folder.linear(batch="")
    assert inputs_of(compiled(folder, model, "--dim", "x_dim0=4"))["x"] == [4, 3]
    assert inputs_of(compiled(folder, model, "--dim", "x_dim0=2..5"))["x"] == ["x_dim0", 3]
    odd = folder.linear("odd.onnx", batch="past + 1")
    assert inputs_of(compiled(folder, odd, "--dim", "past + 1=4"))["x"] == [4, 3]
    assert inputs_of(compiled(folder, odd, "--dim", "past___1=4"))["x"] == [4, 3]


def pixels(package, picture, name="x"):
    expect(run("run", package, "--input", f"{name}={picture}", "--output-dir", package.parent / "o"), 0)
    return np.load(package.parent / "o" / "y.npy")


def test_image_inputs(folder):
    rgb = np.arange(2 * 5 * 3, dtype="u1").reshape(2, 5, 3) * 8
    np.save(folder / "rgb.npy", rgb)
    (folder / "rgb.ppm").write_bytes(b"P6\n# made here\n5 2\n255\n" + rgb.tobytes())
    planes = rgb.transpose(2, 0, 1)[None].astype("f4")
    model = folder.model("image.onnx", [wire.node("Identity", ["x"], ["y"])], [("x", FLOAT, [1, 3, 2, 5])],
                         [("y", FLOAT, [1, 3, 2, 5])])
    mean = np.array([1, 2, 3], "f4").reshape(1, 3, 1, 1)
    for option, want in (("rgb", planes), ("bgr", planes[:, ::-1]), ("rgb,0.5", planes * 0.5),
                         ("rgb,2,-1", planes * 2 - 1), ("rgb,1,1,2,3", planes + mean),
                         ("bgr,1,2,3,1,2,3", planes[:, ::-1] * mean + mean)):
        package = compiled(folder, model, "--image", f"x={option}", "--precision", "fp32")
        for file in ("rgb.npy", "rgb.ppm"):
            assert np.allclose(pixels(package, folder / file), want, atol=1e-5), option
        about = expect(run("inspect", package, "--json"), 0).answer["inputs"][0]
        assert about["image"] == option[:3] and about["shape"] == [1, 3, 2, 5], about
        manifest = json.loads(package.with_suffix(".manifest.json").read_text())
        assert manifest["io_schema"]["main"]["inputs"][0]["image"] == option[:3]
        expect(run("verify", model, package, "--image", f"x={option}"), 0, "PASSED")
        expect(run("verify", model, package), 0, "PASSED", "--image x=")
        manifest_path = package.with_suffix(".manifest.json")
        hidden = manifest_path.rename(folder / "hidden.json")
        expect(run("verify", model, package), 2, "--image x=")
        hidden.rename(manifest_path)
        expect(run("run", package), 0)
        accepted(package)
    last = folder.model("last.onnx", [wire.node("Cast", ["x"], ["y"], to=FLOAT)], [("x", wire.UINT8, [1, 2, 5, 3])],
                        [("y", FLOAT, [1, 2, 5, 3])])
    package = compiled(folder, last, "--image", "x=rgb")
    assert (pixels(package, folder / "rgb.ppm") == rgb[None]).all()
    gray = folder.model("gray.onnx", [wire.node("Neg", ["x"], ["y"])], [("x", FLOAT, [1, 1, 2, 5])],
                        [("y", FLOAT, [1, 1, 2, 5])])
    (folder / "gray.pgm").write_bytes(b"P5 5 2 255\n" + rgb[..., 0].tobytes())
    assert (pixels(accepted(compiled(folder, gray, "--image", "x=gray")), folder / "gray.pgm") == -planes[:, :1]).all()
    o = folder / "o.mlpackage"
    expect(run("compile", gray, "-o", o, "--image", "x=rgb"), 1, "input-shape", "[1, 1, 2, 5]", "[1, 3, height, width]")
    expect(run("compile", gray, "-o", o, "--image", "z=gray"), 1, "--image z", '"x"')
    for bad in ("x=cmyk", "x=rgb,", "x=rgb,a", "x=rgb,1,2,3", "x=gray,1,1,1,1", "x=rgb,inf", "x"):
        expect(run("compile", gray, "-o", o, "--image", bad), 2, "--image")
    (folder / "short.ppm").write_bytes(b"P6 5 2 255\n")
    expect(run("run", model, "--image", "x=rgb", "--input", f"x={folder / 'short.ppm'}"), 1, "short.ppm", "pixels")
    (folder / "wide.ppm").write_bytes(b"P6 6 2 255\n" + bytes(36))
    expect(run("run", model, "--image", "x=rgb", "--input", f"x={folder / 'wide.ppm'}"), 1, "bad-input", "6 x 2 pixels", "5 x 2")


def test_io_decides_the_types_at_the_border(folder):
    half, single = wire.FLOAT16, FLOAT
    for source, options, want in ((single, [], "fp32"), (single, ["--io", "fp16"], "fp16"), (half, [], "fp16"),
                                  (half, ["--io", "fp16"], "fp16"), (half, ["--target", "iOS15"], "fp32")):
        model = folder.model("io.onnx", [wire.node("Exp", ["x"], ["y"])], [("x", source, [2])], [("y", source, [2])])
        for precision in ("fp32", "fp16"):
            package = accepted(compiled(folder, model, "--precision", precision, *options))
            about = expect(run("inspect", package, "--json"), 0).answer
            assert [about[k][0]["dtype"] for k in ("inputs", "outputs")] == [want, want], (source, options, about)
            answer = expect(run("run", package, "--output-dir", folder / "o", "--json"), 0).answer
            assert answer["outputs"][0]["dtype"] == ("fp16" if source == half else "fp32"), answer
            expect(run("verify", model, package), 0)
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--io", "fp16", "--target", "iOS15"), 1, "target-too-old")
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--io", "int8"), 2, "--io")


def test_labels_make_a_classifier(folder):
    model = folder.model("scores.onnx", [wire.node("Softmax", ["x"], ["p"], axis=1), wire.node("Relu", ["x"], ["h"])],
                         [("x", FLOAT, [1, 3])], [("h", FLOAT, [1, 3]), ("p", FLOAT, [1, 3])])
    (folder / "labels.txt").write_text("cat\ndog \nh\u00f8ne\n\n", "utf-8")
    np.save(folder / "x.npy", np.array([[1, 2, 4]], "f4"))
    options = ["--labels", folder / "labels.txt"]
    package = accepted(compiled(folder, model, "--outputs", "p", *options))
    answer = expect(run("run", package, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "o", "--json"), 0).answer
    assert [o["name"] for o in answer["outputs"]] == ["classLabel", "p"], answer["outputs"]
    assert answer["outputs"][0]["values"] == ["h\u00f8ne"] and np.load(folder / "o" / "classLabel.npy") == "h\u00f8ne"
    assert np.allclose(np.load(folder / "o" / "classLabel_probs.npy"), [[0.042, 0.114, 0.844]], atol=1e-3)  # exp(x) / sum(exp(x))
    expect(run("verify", model, package, "--outputs", "p"), 0, "ok   p")
    description = dict(wire.fields(dict(wire.fields(next(package.rglob("*.mlmodel")).read_bytes()))[2]))
    assert (description[11], description[12]) == (b"classLabel", b"classLabel_probs"), description
    expect(run("opt", package, "--passes", "", "-o", folder / "again.mlpackage"), 0)
    for file in ("model.mlmodel",):  # the model survives import and export unchanged
        assert next(package.rglob(file)).read_bytes() == next((folder / "again.mlpackage").rglob(file)).read_bytes()
    o = folder / "o.mlpackage"
    expect(run("compile", model, "-o", o, *options), 1, "several outputs", "--outputs")
    (folder / "labels.txt").write_text("cat\ndog\n")
    expect(run("compile", model, "-o", o, *options), 1, "no outputs", "[1, 3]")
    for text in ("", "a\n\nb\nc\n", "a\nb\na\n"):
        (folder / "labels.txt").write_text(text)
        expect(run("compile", model, "-o", o, *options), 1, "labels.txt", "line")


def test_metadata_is_in_the_package(folder):
    package = accepted(compiled(folder, folder.linear(), "--author", "A. Nyone", "--license", "MIT", "--description", "One\nlayer"))
    spec = next(package.rglob("*.mlmodel")).read_bytes()
    metadata = {n: v for n, v in wire.fields(dict(wire.fields(dict(wire.fields(spec))[2]))[100]) if n < 5}
    assert (metadata[3], metadata[4], metadata[1]) == (b"A. Nyone", b"MIT", b"One\nlayer"), metadata


def test_const_binds_an_input(folder):
    model = folder.model("pad.onnx", [wire.node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
                         [("x", FLOAT, [2, 3]), ("axes", INT64, [1])], [("y", FLOAT, None)])
    result = expect(run("compile", model, "-o", folder / "o.mlpackage"), 1, "needs-constant", "--const axes=")
    assert "axes" in result.stderr
    np.save(folder / "axes.npy", np.array([1]))
    package = compiled(folder, model, "--const", f"axes={folder / 'axes.npy'}")
    assert inputs_of(package) == {"x": [2, 3]}


def test_outputs_and_replace(folder):
    model = folder.model("two.onnx", [wire.node("LeakyRelu", ["x"], ["a"], alpha=0.5), wire.node("Neg", ["a"], ["b"])],
                         [("x", FLOAT, [2])], [("a", FLOAT, [2]), ("b", FLOAT, [2])])
    answer = expect(run("inspect", compiled(folder, model, "--outputs", "a"), "--json"), 0).answer
    assert [o["name"] for o in answer["outputs"]] == ["a"], answer["outputs"]
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--outputs", "aa"), 1, "--outputs aa", '3 names; similar ones: "a", "b"')
    accepted(folder / "out.mlpackage")
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--replace", "Elu.alpha=1"), 1, "--replace Elu.alpha")
    np.save(folder / "x.npy", np.array([-2, 4], "f4"))
    expect(run("run", model, "--input", f"x={folder / 'x.npy'}", "--replace", "LeakyRelu.alpha=0.25", "--output-dir",
               folder / "r"), 0)
    assert np.load(folder / "r" / "a.npy").tolist() == [-0.5, 4]


def test_a_large_weight_that_fp16_cannot_hold_stays_fp32(folder):
    # Weights of this size are compared only while they are written. Small weights are scaled by a power of two.
    for scale, kept, budget in ((1e6, True, "fp32"), (1e-7, True, "fp16"), (1, False, "fp16")):
        weight = (np.random.RandomState(0).rand(256, 512) * scale).astype("<f4")
        model = folder.model("m.onnx", [wire.node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [1, 256])],
                             [("y", FLOAT, [1, 512])], [floats("w", weight)])
        package = compiled(folder, model)
        decisions = json.loads((folder / "out.manifest.json").read_text()).get("decisions", [])
        assert any(d["kind"] == "fp32" for d in decisions) == kept, (scale, decisions)
        assert len(decisions) == len({str(d) for d in decisions}), decisions
        expect(run("verify", model, package, "--budget", budget), 0)


def test_run_writes_the_types_of_the_source_under_the_names_of_what_runs(folder):
    model = folder.model("names.onnx", [wire.node("Cast", ["in/x"], ["out/y:0"], to=INT64),
                                        wire.node("Identity", ["in/x"], ["z"])],
                         [("in/x", FLOAT, [2])], [("out/y:0", INT64, [2]), ("z", FLOAT, [2])])
    np.save(folder / "x.npy", np.array([1.5, -2.5], "f4"))
    for source, name in ((model, "out%2Fy%3A0.npy"), (compiled(folder, model), "out_y_0.npy")):
        answer = expect(run("run", source, "--input", f"in/x={folder / 'x.npy'}", "--output-dir", folder / "o", "--json"),
                        0).answer
        first = answer["outputs"][0]
        assert first["name"] == "out/y:0" and pathlib.Path(first["file"]).is_absolute(), first
        assert pathlib.Path(first["file"]).name == name, first
        value = np.load(first["file"])
        assert value.dtype == np.int64 and value.tolist() == [1, -2], value
    expect(run("run", model, "--input", f"nope={folder / 'x.npy'}"), 1, "nope", "in/x")
    np.save(folder / "wide.npy", np.zeros(3, "f4"))
    expect(run("run", model, "--input", f"in/x={folder / 'wide.npy'}"), 1, "in/x", "3", "2")


def test_timeout_has_exit_code_4(folder):
    n = 1024
    model = folder.model("slow.onnx", [wire.node("MatMul", ["x", "x"], ["y"])], [("x", FLOAT, [n, n])],
                         [("y", FLOAT, [n, n])])
    expect(run("run", model, "--timeout", "1"), 4, "timeout")


def test_verify_says_what_differs_with_exit_code_3(folder):
    model, other = folder.linear(), folder.model(
        "other.onnx", [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Neg", ["h"], ["y"])], [("x", FLOAT, [2, 3])],
        [("y", FLOAT, [2, 4])], [floats("w", np.arange(12).reshape(3, 4) / 7 - 0.5)])
    package = compiled(folder, model)
    expect(run("verify", model, package), 0)
    expect(run("verify", other, package), 3, "y")
    expect(run("verify", other, package, "--layers"), 3, "y")


def test_a_state_that_stands_before_the_inputs(folder):
    (folder / "s.mil").write_text("""func main<ios18>(state<tensor<fp16, [4, 2]>> s, tensor<fp16, [4, 2]> x) {
  t = read_state(input = s);
  y = add(x = t, y = x);
} -> (y);""")
    package = folder / "s.mlpackage"
    expect(run("opt", folder / "s.mil", "--passes", "", "-o", package), 0)
    np.save(folder / "x.npy", np.arange(8, dtype=np.float16).reshape(4, 2))
    expect(run("run", package, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out"), 0)
    assert np.array_equal(np.load(folder / "out" / "y.npy"), np.load(folder / "x.npy"))
    expect(run("inspect", package), 0, "inputs     x", "states     s")
    expect(run("run", folder / "s.mil"), 0, "y  fp16 [4,2]", "  y: ")
    answer = expect(run("inspect", package, "--json"), 0).answer
    assert answer["states"] == [{"name": "s", "dtype": "fp16", "shape": [4, 2]}], answer["states"]
    assert [i["name"] for i in answer["inputs"]] == ["x"], answer["inputs"]


def test_opt_reads_text_and_packages(folder):
    (folder / "a.mil").write_text("func main<ios16>(tensor<fp32, [2]> x) { a = add(x = x, y = 0.0); y = relu(x = a); } -> (y);\n")
    assert "add" in expect(run("opt", folder / "a.mil", "--passes", ""), 0).stdout
    assert "add" not in expect(run("opt", folder / "a.mil", "--passes", "remove-no-ops"), 0).stdout
    expect(run("opt", folder / "a.mil", "--passes", "nonsense"), 1, "nonsense")
    expect(run("opt", folder / "a.mil", "-o", folder / "a.mlpackage"), 0)
    assert "relu" in expect(run("opt", folder / "a.mlpackage", "--passes", ""), 0).stdout
    expect(run("inspect", folder / "a.mlpackage", "--mil"), 0, "relu")


def counted(package):
    """The manifest counts the contents of the package."""
    manifest = json.loads(package.with_suffix(".manifest.json").read_text())
    inspected = expect(run("inspect", package, "--json"), 0).answer
    assert manifest["operators"] == inspected["operators"], manifest["operators"]
    assert abs(manifest["fp16_share"] - inspected["fp16_share"]) < 1e-4, (manifest["fp16_share"], inspected["fp16_share"])
    return manifest


def test_the_manifest_counts_what_was_written(folder):
    boxes = folder.model("boxes.onnx", [wire.node("NonMaxSuppression", ["b", "s", "most", "overlap", "least"], ["y"])],
                         [("b", FLOAT, [1, 6, 4]), ("s", FLOAT, [1, 1, 6])], [("y", INT64, ["n", 3])],
                         [ints("most", [3]), floats("overlap", [0.5]), floats("least", [0.25])])
    lost = {}
    for target in ("iOS16", "iOS17"):  # nms has lost the threshold there
        package = compiled(folder, boxes, "--target", target, "--verify-each", "--check-each", "1", "--force")
        manifest = counted(accepted(package))
        lost[target] = [run for run in manifest["passes"] if run["name"] == "newer-forms" and run["changed"]]
        assert manifest["package"]["target"] == target and not manifest.get("notes"), manifest
    assert not lost["iOS16"] and len(lost["iOS17"]) == 1, lost
    assert lost["iOS17"][0]["operators_after"]["reduce_max"] == 1, lost
    # An input that is also an output, and a value that is two outputs, are written with identity operations.
    same = folder.model("same.onnx", [wire.node("Exp", ["x"], ["y"]), wire.node("Identity", ["y"], ["z"]),
                                      wire.node("Identity", ["x"], ["w"])],
                        [("x", FLOAT, [2])], [("y", FLOAT, [2]), ("z", FLOAT, [2]), ("w", FLOAT, [2])])
    manifest = counted(compiled(folder, same, "--precision", "fp32", "--force"))
    assert manifest["operators"] == {"exp": 1, "identity": 2}, manifest["operators"]


def test_the_target_is_known_before_the_passes(folder):
    """Requirements of the imported model raise the target, with a note; an LSTM in fp16 would require iOS17 and stays in fp32."""
    lstm = folder.model("lstm.onnx", [wire.node("Exp", ["x"], ["e"]), wire.node("LSTM", ["e", "w", "r"], ["h"], hidden_size=32),
                                      wire.node("Squeeze", ["h", "one"], ["s"]), wire.node("MatMul", ["s", "m"], ["y"])],
                        [("x", FLOAT, [4, 64, 32])], [("y", FLOAT, [4, 64, 600])],
                        [floats("w", np.full((1, 128, 32), 0.1)), floats("r", np.full((1, 128, 32), 0.1)), ints("one", [1]),
                         floats("m", np.full((32, 600), 0.1))])
    for options, target, half in (([], "iOS16", 0), (["--target", "iOS16"], "iOS16", 0), (["--target", "iOS17"], "iOS17", 1)):
        package = compiled(folder, lstm, *options, "--force")
        manifest = counted(package)
        decisions = [d for d in manifest.get("decisions", []) if d["reason"].startswith("lstm: Core ML supports this operator in fp32 only before")]
        assert manifest["package"]["target"] == target and not manifest.get("notes") and len(decisions) == 1 - half, manifest
    # Integers beside fp16 values become fp16 and do not raise the target.
    leaky = folder.model("leaky.onnx", [wire.node("LeakyRelu", ["x"], ["y"], alpha=0.1)],
                         [("x", wire.FLOAT16, [2])], [("y", wire.FLOAT16, [2])], opset=16)
    package = compiled(folder, leaky, "--force")
    assert counted(package)["package"]["target"] == "iOS16"
    # Block-wise 4-bit weights require iOS18. An explicit target is never raised; weights are then stored in a supported form.
    blocks = folder.model("blocks.onnx", [wire.node("DequantizeLinear", ["q", "s"], ["w"], axis=0, block_size=32),
                                          wire.node("MatMul", ["x", "w"], ["y"])],
                          [("x", FLOAT, [2, 64])], [("y", FLOAT, [2, 64])],
                          [wire.tensor("q", 3, [64, 64], bytes(range(64)) * 64), floats("s", np.full((2, 64), 0.25))], opset=21)
    manifest = counted(compiled(folder, blocks, "--force"))
    assert manifest["operators"]["constexpr_blockwise_shift_scale"] == 1 and manifest["package"]["target"] == "iOS18", manifest
    assert [d["subject"] for d in manifest["decisions"] if d["kind"] == "target"] == ["iOS18"], manifest["decisions"]
    assert manifest["notes"][0].startswith('target raised to iOS18: quantised constant "w" (int8 [64, 64], scales [2, 64]) requires'), manifest["notes"]
    manifest = counted(compiled(folder, blocks, "--target", "iOS17", "--force"))
    assert "constexpr_blockwise_shift_scale" not in manifest["operators"] and not manifest.get("notes"), manifest


def test_opt_writes_a_package_in_the_forms_of_its_target(folder):
    boxes = ("func main<{}>(tensor<fp32, [1, 6, 4]> b, tensor<fp32, [1, 6, 2]> s) {{\n  p, q, r, t = non_maximum_suppression(boxes = b, "
             "scores = s, iou_threshold = 0.5, score_threshold = 0.25, max_boxes = 3);\n}} -> (p, q, r, t);\n")
    for target, changed in (("ios16", "no"), ("ios17", "yes")):
        (folder / "boxes.mil").write_text(boxes.format(target))
        expect(run("opt", folder / "boxes.mil", "--passes", "", "-o", folder / "boxes.mlpackage", "--force"), 0, f"changed: {changed}")
        answer = expect(run("inspect", folder / "boxes.mlpackage", "--json"), 0).answer
        assert answer["target"].lower() == target and ("reduce_max" in answer["operators"]) == (changed == "yes"), answer
    (folder / "roi.mil").write_text("func main<ios17>(tensor<fp32, [1, 1, 4, 4]> x, tensor<fp32, [n, 1, 4, 1, 1]> roi) {\n"
                                    "  y = crop_resize(x = x, roi = roi, target_height = 2, target_width = 2);\n} -> (y);\n")
    expect(run("opt", folder / "roi.mil", "-o", folder / "roi.mlpackage"), 1, "unsupported-attribute",
           'parameter "roi" was removed in iOS17, and its replacement, box_indices, requires static numbers of boxes and images')
    assert not (folder / "roi.mlpackage").exists()


def test_completions_are_scripts(folder):
    for shell in ("bash", "zsh", "fish"):
        script = expect(run("completions", shell), 0, "compile", "precision").stdout
        if shell == "bash":
            done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
            assert done.returncode == 0 and not done.stderr, done.stderr


def test_bytes_do_not_depend_on_where_one_works(folder):
    trees = []
    for name in ("one", "two/deeper"):
        place = folder / name
        place.mkdir(parents=True)
        Folder(place).linear("m.onnx")
        expect(run("compile", "m.onnx", folder=place) if name == "one" else run(
            "compile", place / "m.onnx", "-o", place / "m.mlpackage"), 0)
        package = place / "m.mlpackage"
        trees.append({p.relative_to(package): p.read_bytes() for p in package.rglob("*") if p.is_file()})
    assert trees[0] and trees[0] == trees[1]


def test_references_by_number(folder):
    # As in ONNX's test of Split, the outputs are called output_1 and output_2, but the files are numbered from 0.
    model = folder.model("split.onnx", [wire.node("Split", ["x"], ["output_1", "output_2"], axis=0)], [("x", FLOAT, [4])],
                         [("output_1", FLOAT, [2]), ("output_2", FLOAT, [2])])
    package = compiled(folder, model, "--precision", "fp32")
    data = folder / "data"
    data.mkdir()
    x = np.arange(4, dtype="f4")
    for name, value in (("input_0", x), ("output_0", x[:2]), ("output_1", x[2:])):
        np.save(data / f"{name}.npy", value)
    expect(run("verify", model, package, "--inputs", data, "--reference", data), 0, "ok   output_1", "ok   output_2")
    (data / "output_0.npy").unlink()  # output_1 is now matched by name, and the other output has no reference
    expect(run("verify", model, package, "--inputs", data, "--reference", data), 3, "FAIL output_1", "output_2", "not compared")


def test_verify_takes_the_shapes_of_the_package(folder):
    model = folder.linear("open.onnx", batch="n")
    expect(run("verify", model, compiled(folder, model, "--dim", "n=5")), 0, "PASSED")
    expect(run("verify", model, compiled(folder, model, "--dim", "n=2,4", name="b.mlpackage")), 0, "PASSED")


def test_a_constant_reference_that_is_missed_is_said(folder):
    model = folder.linear()
    package = compiled(folder, model)
    np.save(folder / "y.npy", np.full((2, 4), 9, "f4"))
    (folder / "reference").mkdir()
    (folder / "y.npy").rename(folder / "reference" / "y.npy")
    expect(run("verify", model, package, "--reference", folder / "reference"), 3, "not discriminating", "warning", '"y" differs from',
           "nothing was compared")


def test_bits_of_bfloat16(folder):
    # NumPy lacks bfloat16; ONNX's test data store its bits as uint16.
    model = folder.model("b.onnx", [wire.node("Cast", ["x"], ["y"], to=FLOAT)], [("x", wire.BFLOAT16, [2])],
                         [("y", FLOAT, [2])], opset=19)
    np.save(folder / "x.npy", np.array([0x3F80, 0xC040], "u2"))
    out = folder / "out"
    expect(run("run", model, "--input", f"x={folder / 'x.npy'}", "--output-dir", out), 0)
    assert np.load(out / "y.npy").tolist() == [1.0, -3.0]


def test_what_is_given_twice(folder):
    model = folder.linear("open.onnx", batch="n")
    np.save(folder / "x.npy", np.zeros((2, 3), "f4"))
    x = f"x={folder / 'x.npy'}"
    for command in (["compile", model, "--dim", "n=3", "--dim", "n=4"], ["compile", model, "--shape", "x=1,3", "--shape", "x=2,3"],
                    ["run", model, "--input", x, "--input", x]):
        expect(run(*command), 2, "given twice")


def test_inspect_shows_sizes(folder):
    model = folder.linear("open.onnx", batch="n")
    package = compiled(folder, model, "--dim", "n=2..9", "--author", "A\nB")
    expect(run("inspect", package), 0, "[n, 3], n in 2..9", "author     A...")
    answer = expect(run("inspect", package, "--json"), 0).answer
    assert answer["inputs"][0]["shape_range"] == [[2, 9], [3, 3]] and answer["author"] == "A\nB"


def test_output_that_cannot_be_written(folder):
    model = folder.linear()
    package = compiled(folder, model)
    expect(run("compile", model, "-o", folder / ("a" * 300 + ".mlpackage")), 1, "error[file-io]")
    expect(run("opt", package, "-o", folder / "a.txt"), 2, ".mil", ".mlpackage")
    if pathlib.Path("/dev/full").exists():
        for command in (["inspect", package], ["inspect", package, "--json"], ["opt", package], ["ops"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([MLC, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            assert result.returncode == 1 and "standard output" in result.stderr + "standard output" * (
                "error[file-io]" in result.stderr), (command, result.returncode, result.stderr)


def test_coremltools_accepts_the_packages_of_the_tests_before(_):
    if what := checkers.missing():
        print(f"# driver: {len(PACKAGES)} packages not checked, {what}")
        return
    refused = checkers.check(PACKAGES)
    print(f"# driver: check_mlpackage --strict accepts {len(PACKAGES) - len(refused)} of {len(PACKAGES)} packages")
    assert not refused, refused


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "driver", Folder) if MLC.exists() else SKIPPED)
