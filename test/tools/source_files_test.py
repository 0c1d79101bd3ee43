#!/usr/bin/env python3
"""Tests what is read from a source and reported about it: external data, hashes, text, manifests, file names of outputs."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import json_schema
import onnx_wire as wire
from driver import MLC, ROOT, expect, run, run_tests

SCHEMA = json.loads((ROOT / "manifests" / "manifest.schema.json").read_text())
FLOAT = wire.FLOAT
ROWS, COLUMNS = 64, 32  # 8 kB, which is kept as a slice of the file like large weights
WEIGHT = (np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) / 7 % 1 - 0.5).astype("<f4")


def sha256(*files):
    return [hashlib.sha256(f.read_bytes()).hexdigest() for f in files]


def external(folder, checksum=None, location="model.data", name="model.onnx", weights=1, data=WEIGHT, length=None):
    """x @ w_1 + x @ w_2 ..., with all weights in one external data file."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / location).parent.exists():
        (folder / location).write_bytes(data.tobytes())
    where = {"location": location, **({"checksum": checksum} if checksum else {})}
    numbers = range(weights)
    products = [wire.node("MatMul", ["x", f"w_{i}"], [f"p_{i}"]) for i in numbers]
    graph = wire.graph([*products, wire.node("Sum", [f"p_{i}" for i in numbers], ["y"])],
                       [wire.value_info("x", FLOAT, [2, ROWS])], [wire.value_info("y", FLOAT, [2, COLUMNS])],
                       [wire.tensor(f"w_{i}", FLOAT, [ROWS, COLUMNS], external=where) for i in numbers])
    (folder / name).write_bytes(wire.model(graph))
    return folder / name


def linear(file, names=("x", "y"), metadata=b""):
    graph = wire.graph([wire.node("Relu", [names[0]], [names[1]])], [wire.value_info(names[0], FLOAT, [1, 3])],
                       [wire.value_info(names[1], FLOAT, [1, 3])])
    file.write_bytes(wire.model(graph) + metadata)
    return file


def compiled(model, package, *options):
    """Compiles and returns the manifest."""
    expect(run("compile", model, "-o", package, *options), 0)
    manifest = json.loads(package.with_suffix(".manifest.json").read_text())
    assert not (problems := json_schema.errors(manifest, SCHEMA)), problems
    return manifest


def works(folder, model, *options):
    """The model compiles, and the package has the weights."""
    compiled(model, folder / "works.mlpackage", "--precision", "fp32", "--force", *options)
    np.save(folder / "x.npy", x := np.eye(2, ROWS, dtype="<f4"))
    expect(run("run", folder / "works.mlpackage", "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out"), 0)
    np.testing.assert_allclose(np.load(folder / "out" / "y.npy"), x @ WEIGHT, rtol=1e-5)


# ---- external data

def test_models_with_other_data_have_other_hashes(folder):
    first, second = external(folder / "a"), external(folder / "b", data=WEIGHT + 1)
    assert sha256(first) == sha256(second)
    one, two = (compiled(m, m.parent / "out.mlpackage", "--sha256")["source"] for m in (first, second))
    assert one["xxh3_128"] != two["xxh3_128"] and one["sha256"] != two["sha256"], (one, two)
    # Computed with sha256sum.
    files = [(f, h) for f, h in zip(("model.onnx", "model.data"), sha256(first, first.with_name("model.data")))]
    assert [(f["name"], f["sha256"]) for f in one["files"]] == files
    assert [f["bytes"] for f in one["files"]] == [first.stat().st_size, WEIGHT.nbytes]
    lines = "".join(f"{h}  {f}\n" for f, h in files)
    assert one["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    plain = compiled(linear(folder / "plain.onnx"), folder / "plain.mlpackage", "--sha256")["source"]
    assert [plain["sha256"]] == sha256(folder / "plain.onnx") and "files" not in plain


def test_small_external_data_counts_too(folder):
    for name, value in (("a", 1), ("b", 2)):
        (folder / name).mkdir()
        (folder / name / "d.bin").write_bytes(np.full(3, value, "<f4").tobytes())
        graph = wire.graph([wire.node("Add", ["x", "w"], ["y"])], [wire.value_info("x", FLOAT, [1, 3])],
                           [wire.value_info("y", FLOAT, [1, 3])],
                           [wire.tensor("w", FLOAT, [3], external={"location": "d.bin"})])
        (folder / name / "m.onnx").write_bytes(wire.model(graph))
    one, two = (compiled(folder / n / "m.onnx", folder / n / "o.mlpackage")["source"]["xxh3_128"] for n in "ab")
    assert one != two


def test_checksum_of_external_data(folder):
    good = hashlib.sha1(WEIGHT.tobytes()).hexdigest()
    for i, checksum in enumerate((good, good.upper())):
        works(folder, external(folder / str(i), checksum))
    for i, checksum in enumerate(("0" * 40, good[:-1], "md5")):
        model = external(folder / f"bad{i}", checksum, weights=3)
        for command in (["compile", model, "-o", folder / "no.mlpackage"], ["run", model]):
            result = expect(run(*command), 1, "error[external-data]", "model.data", "SHA-1", good, checksum.lower())
            assert result.stderr.count("error[") == 1, result.stderr
    assert not (folder / "no.mlpackage").exists()


def test_links_into_one_folder(folder):
    """As in a download cache, the model and its data are links to adjacent files with other names."""
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "rev"
    model = external(folder / "made")
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    shutil.move(model, blobs / "aaaa")
    shutil.move(model.with_name("model.data"), blobs / "bbbb")
    (snapshot / "model.onnx").symlink_to("../../blobs/aaaa")
    (snapshot / "model.data").symlink_to("../../blobs/bbbb")
    works(folder, snapshot / "model.onnx")
    # The model itself is not a link, so a link to its data may lead to a private file.
    plain = folder / "plain"
    plain.mkdir()
    shutil.copy(blobs / "aaaa", plain / "model.onnx")
    (plain / "model.data").symlink_to("../blobs/bbbb")
    expect(run("compile", plain / "model.onnx", "-o", folder / "no.mlpackage"), 1, "error[external-data]", "--data-root",
           str(blobs / "bbbb"))
    works(folder, plain / "model.onnx", "--data-root", blobs)
    works(folder, plain / "model.onnx", "--data-root", f"{folder}/")
    expect(run("compile", plain / "model.onnx", "-o", folder / "no.mlpackage", "--data-root", snapshot), 1, "external-data")


def test_data_root_is_where_data_is_looked_up(folder):
    model = external(folder / "a")
    (folder / "store").mkdir()
    shutil.move(model.with_name("model.data"), folder / "store" / "model.data")
    expect(run("compile", model, "-o", folder / "no.mlpackage"), 1, "missing", str(model.with_name("model.data")),
           "--data-root")
    works(folder, model, "--data-root", folder / "store")
    expect(run("run", model, "--data-root", folder / "store"), 0)
    expect(run("run", model, "--data-root", folder / "nowhere"), 2, "--data-root")
    manifest = json.loads((folder / "works.manifest.json").read_text())
    assert manifest["options"]["--data-root"] == ["store"], manifest["options"]
    # Names in the model must still stay inside the folder.
    (folder / "secret").write_bytes(WEIGHT.tobytes())
    outside = external(folder / "b", location="../secret")
    expect(run("compile", outside, "-o", folder / "no.mlpackage", "--data-root", folder / "store"), 1, "outside")


def test_errors_of_a_data_file_are_said_once(folder):
    model = external(folder / "a", weights=50)
    data = model.with_name("model.data")
    for spoil in (lambda: data.write_bytes(b"short"), data.unlink):
        spoil()
        result = expect(run("compile", model, "-o", folder / "no.mlpackage"), 1, "error[external-data]", "model.data")
        assert result.stderr.count("error[") == 1, result.stderr


# ---- text

def test_labels_are_utf8(folder):
    model = linear(folder / "m.onnx")
    labels = folder / "labels.txt"
    labels.write_bytes("\ufeffcat\ndog\nh\u00f8ne\n".encode())
    expect(run("compile", model, "-o", folder / "o.mlpackage", "--labels", labels), 0)
    answer = expect(run("run", folder / "o.mlpackage", "--seed", "1", "--json"), 0).answer
    assert answer["outputs"][0]["values"][0] in ("cat", "dog", "h\u00f8ne"), answer
    labels.write_bytes("cat\ndog\nh\u00f8ne\n".encode("latin-1"))
    expect(run("compile", model, "-o", folder / "no.mlpackage", "--labels", labels), 1, "labels.txt", "UTF-8", "line 3", "byte 2",
           "0xf8")
    labels.write_bytes("cat\ndog\nhen\n".encode("utf-16"))
    expect(run("compile", model, "-o", folder / "no.mlpackage", "--labels", labels), 1, "UTF-8", "line 1", "byte 1")
    assert not (folder / "no.mlpackage").exists()


def test_metadata_is_utf8(folder):
    model = linear(folder / "m.onnx")
    for flag in ("--author", "--license", "--description"):
        expect(run("compile", model, "-o", folder / "no.mlpackage", flag, b"J\xf8rgen".decode("utf-8", "surrogateescape")), 2,
               flag, "UTF-8", "line 1", "byte 2")
        expect(run("compile", model, "-o", folder / "o.mlpackage", flag, "J\u00f8rgen", "--force"), 0)
        expect(run("inspect", folder / "o.mlpackage"), 0, "J\u00f8rgen")
    assert not (folder / "no.mlpackage").exists()


def test_names_of_the_source_are_utf8(folder):
    for i, names in enumerate(((b"x\xe4", b"y"), (b"x", b"y\xe4"))):
        graph = wire.graph([wire.node("Relu", [names[0]], [names[1]])], [wire.value_info(names[0], FLOAT, [1, 3])],
                           [wire.value_info(names[1], FLOAT, [1, 3])])
        (folder / f"{i}.onnx").write_bytes(wire.model(graph))
        expect(run("compile", folder / f"{i}.onnx", "-o", folder / "no.mlpackage"), 1, "error[bad-file]", "UTF-8", "line 1",
               "byte 2")
    dims = wire.field(1, "x") + wire.field(2, wire.field(1, wire.field(1, FLOAT) + wire.field(2, wire.field(
        1, wire.field(2, b"n\xe4")))))
    graph = wire.graph([wire.node("Relu", ["x"], ["y"])], [dims], [wire.value_info("y", FLOAT, None)])
    (folder / "dim.onnx").write_bytes(wire.model(graph))
    expect(run("compile", folder / "dim.onnx", "-o", folder / "no.mlpackage"), 1, "UTF-8", "dimension")
    good = linear(folder / "good.onnx", ("x\u00e4", "y\u00e4"), wire.field(3, b"prod\xe4"))
    manifest = compiled(good, folder / "good.mlpackage")
    assert manifest["io_schema"]["main"]["inputs"][0]["source_name"] == "x\u00e4"


def test_strings_of_mil_text_are_utf8(folder):
    text = (b'func main<ios16>(tensor<fp32, [1]> x) {\n  c, p = classify(probabilities = x, classes = ["k\xe4t"]);\n} -> (c, p);\n')
    (folder / "m.mil").write_bytes(text)
    expect(run("compile", folder / "m.mil", "-o", folder / "no.mlpackage"), 1, "UTF-8", "byte 2")
    (folder / "m.mil").write_bytes(text.replace(b"\xe4", "\u00e4".encode()))
    expect(run("compile", folder / "m.mil", "-o", folder / "o.mlpackage"), 0)


# ---- output files

def test_outputs_of_any_name_are_saved_and_found(folder):
    names = ["a" * 250, "a" * 249 + "b", "/" * 100, "\u20ac" * 90, "x" * 4000]
    graph = wire.graph([wire.node("Mul", ["in" * 200, f"c_{i}"], [n]) for i, n in enumerate(names)],
                       [wire.value_info("in" * 200, FLOAT, [1, 3])], [wire.value_info(n, FLOAT, [1, 3]) for n in names],
                       [wire.tensor(f"c_{i}", FLOAT, [1], np.array([i + 1], "<f4").tobytes()) for i in range(len(names))])
    (folder / "m.onnx").write_bytes(wire.model(graph))
    np.save(folder / "x.npy", np.array([[1, -2, 3]], "<f4"))
    (folder / "long").mkdir()
    answer = expect(run("run", folder / "m.onnx", "--input", "in" * 200 + f"={folder / 'x.npy'}", "--output-dir", folder / "out",
                        "--json"), 0).answer
    assert [o["name"] for o in answer["outputs"]] == names
    files = [pathlib.Path(o["file"]) for o in answer["outputs"]]
    assert len(set(files)) == len(names) and max(len(f.name.encode()) for f in files) <= 220
    for i, file in enumerate(files):
        np.testing.assert_array_equal(np.load(file), np.array([[1, -2, 3]], "<f4") * (i + 1))
    # The files can be read back as references, also from a bundle.
    expect(run("compile", folder / "m.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32"), 0)
    expect(run("verify", folder / "m.onnx", folder / "m.mlpackage", "--samples", "1", "--bundle", folder / "bundle"), 0)
    expect(run("run", "--bundle", folder / "bundle"), 0, "PASSED")
    for references in (folder / "out", folder / "bundle" / "reference"):
        shutil.rmtree(folder / "given", ignore_errors=True)
        shutil.copytree(folder / "bundle" / "inputs", folder / "given")
        if references == folder / "out":
            np.save(next((folder / "given").iterdir()), np.array([[1, -2, 3]], "<f4"))
        compared = expect(run("verify", folder / "m.onnx", folder / "m.mlpackage", "--inputs", folder / "given", "--reference",
                              references, "--json"), 0).answer
        assert [o["within"] for o in compared["outputs"]] == [True] * len(names), compared


# ---- package hash and manifest

def test_the_hash_of_a_package_does_not_resolve_links(folder):
    package = folder / "o.mlpackage"
    content = compiled(linear(folder / "m.onnx"), package)["package"]["xxh3_128"]
    linked = folder / "linked.mlpackage"
    shutil.copytree(package, linked)
    (folder / "store").mkdir()
    model = linked / "Data" / "com.apple.CoreML" / "model.mlmodel"
    shutil.move(model, folder / "store" / "abc")
    model.symlink_to(folder / "store" / "abc")
    expect(run("verify", folder / "m.onnx", linked, "--bundle", folder / "bundle"), 0)
    bundle = json.loads((folder / "bundle" / "parity.json").read_text())
    assert bundle["package_hash"] == content, (bundle["package_hash"], content)
    # The copy in a bundle has no links and can be run elsewhere.
    shutil.copytree(folder / "bundle", folder / "elsewhere")
    shutil.rmtree(folder / "store")
    expect(run("run", "--bundle", folder / "elsewhere"), 0, "PASSED")
    # A folder in it that is a link.
    shutil.rmtree(linked)
    linked.mkdir()
    shutil.copy(package / "Manifest.json", linked)
    (linked / "Data").symlink_to(package / "Data")
    expect(run("verify", folder / "m.onnx", linked, "--bundle", folder / "bundle2"), 0)
    assert json.loads((folder / "bundle2" / "parity.json").read_text())["package_hash"] == content
    # Circular links end with an error.
    (linked / "circle").symlink_to(linked)
    (linked / "again").symlink_to(linked)
    expect(run("verify", folder / "m.onnx", linked, "--bundle", folder / "bundle3", timeout=30), 1, "error[resource-limit]")


def test_manifests_are_equal_bytes(folder):
    """Manifests are equal for repeated runs, different thread counts and folders, and different spellings of a path."""
    texts = set()
    for name, threads in (("a", 1), ("b", 2), ("c", 8)):
        model = external(folder / name)
        (folder / name / "labels.txt").write_text("".join(f"label {i}\n" for i in range(2 * COLUMNS)))
        where = {"a": model.parent, "b": pathlib.Path("."), "c": pathlib.Path("..") / name}[name]
        options = ["--labels", where / "labels.txt", "--author", "A", "--save-ir", folder / f"{name}.mil", "--verify-each",
                   "--stats", where / f"{name}.json", "--sha256"]
        expect(run("compile", where / "model.onnx", "-o", where / "out.mlpackage", *options, folder=model.parent,
                   environment={"MLC_THREADS": str(threads)}), 0)
        texts.add((model.parent / "out.manifest.json").read_text())
    assert len(texts) == 1, texts
    manifest = json.loads(texts.pop())
    assert not json_schema.errors(manifest, SCHEMA)
    assert manifest["options"] == {"--author": ["A"], "--labels": ["labels.txt"], "--save-ir": True, "--sha256": True,
                                   "--stats": True, "--verify-each": True}, manifest["options"]
    assert manifest["source"]["name"] == "model.onnx"
    assert str(folder) not in json.dumps(manifest)


def test_times_and_memory(folder):
    answer = expect(run("compile", linear(folder / "m.onnx"), "-o", folder / "o.mlpackage", "--json", "--stats",
                        folder / "s.json"), 0).answer
    stats = json.loads((folder / "s.json").read_text())
    for document in (answer, stats):
        assert document["peak_memory_bytes"] > 1 << 20 and document["phases"]["import"] > 0
        assert {p["name"] for p in document["passes"]} >= {"dead-code"}
    assert "seconds" not in (folder / "o.manifest.json").read_text()
    expect(run("compile", folder / "m.onnx", "-o", folder / "o.mlpackage", "--stats", folder / "nowhere" / "s.json"), 1,
           "error[file-io]")


def test_a_package_as_source_is_hashed(folder):
    compiled(linear(folder / "m.onnx"), folder / "a.mlpackage")
    source = compiled(folder / "a.mlpackage", folder / "b.mlpackage")["source"]
    assert source["name"] == "a.mlpackage" and "Manifest.json" in [f["name"] for f in source["files"]], source


# ---- bundles

def test_a_result_elsewhere_leaves_the_bundle_alone(folder):
    model = external(folder / "a")
    expect(run("compile", model, "-o", folder / "o.mlpackage"), 0)
    expect(run("verify", model, folder / "o.mlpackage", "--bundle", folder / "bundle"), 0)
    before = {f: (f.stat().st_mtime_ns, f.read_bytes() if f.is_file() else None) for f in (folder / "bundle").rglob("*")}
    (folder / "results").mkdir()
    result = folder / "results" / "r.json"
    ran = subprocess.run([MLC.with_name("mlc-run"), "--bundle", folder / "bundle", "--result", result], capture_output=True,
                         text=True)
    assert ran.returncode == 0 and str(result) in ran.stdout, ran
    after = {f: (f.stat().st_mtime_ns, f.read_bytes() if f.is_file() else None) for f in (folder / "bundle").rglob("*")}
    assert before == after
    expect(run("verify", "--result", result, "--bundle", folder / "bundle"), 0, "PASSED", "compared again")
    expect(run("run", model, "--result", result), 2, "--result", "--bundle")
    # No result may overwrite a file that is read.
    parity = folder / "bundle" / "parity.json"
    assert run("run", "--bundle", folder / "bundle", "--result", parity).code == 1
    assert parity.read_bytes() == before[parity][1]


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "sources"))
