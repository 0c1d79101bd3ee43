"""A command never overwrites its inputs, and overwrites files of other tools only with --force: otherwise it is rejected before
anything is written, by an error that names the obstacle.
"""
import hashlib
import json
import os
import pathlib
import shutil
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import MLC, expect, run, run_tests

RUN = MLC.with_name("mlc-run")
SECONDS = 20


def onnx_model(path, external=None):
    """y = relu(x w), x: float[1, 8], with w in the file or in another one."""
    values = (np.arange(32, dtype="<f4") / 7 % 1 - 0.5).tobytes()
    path.parent.mkdir(exist_ok=True)
    if external:
        (path.parent / external).write_bytes(values)
        w = wire.tensor("w", wire.FLOAT, [8, 4], external={"location": external})
    else:
        w = wire.tensor("w", wire.FLOAT, [8, 4], values)
    path.write_bytes(wire.model(wire.graph(
        [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Relu", ["h"], ["y"])],
        [wire.value_info("x", wire.FLOAT, [1, 8])], [wire.value_info("y", wire.FLOAT, [1, 4])], [w])))
    return path


def package(path, *options):
    model = onnx_model(path.with_suffix(".onnx"))
    expect(run("compile", model, "-o", path, "--precision", "fp32", *options), 0)
    return path


def text(path):
    path.write_text("func main<ios16>(tensor<fp32, [4]> x) {\n  y = relu(x = x);\n} -> (y);\n")
    return path


def samples(folder, **arrays):
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.asarray(array, "f4"))
    return folder


def tree(folder):
    """Returns everything below a folder: names, kinds and bytes; without what `mlc build` keeps about outputs, which is its own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".mlc-build" in path.parts:
            continue
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder" if path.is_dir() else "special"
    return found


def refused(folder, *command, says, id="overwrites-input", program=MLC, code=1):
    before = tree(folder)
    result = expect(run(*command, program=program, folder=folder, timeout=SECONDS), code, f"error[{id}]", *map(str, says))
    after = tree(folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert not changed, f"{command} changed {changed}: {result.stdout}{result.stderr}"


def test_a_package_as_its_own_output(folder):
    package(folder / "a.mlpackage", "--no-manifest")
    (folder / "link.mlpackage").symlink_to("a.mlpackage")
    for command in (["compile", "a.mlpackage"], ["compile", "a.mlpackage", "-o", "../" + folder.name + "/a.mlpackage"],
                    ["compile", folder / "a.mlpackage", "--force"], ["compile", "link.mlpackage", "-o", "a.mlpackage"],
                    ["compile", "a.mlpackage", "-o", "link.mlpackage"], ["opt", "a.mlpackage", "-o", "a.mlpackage"]):
        refused(folder, *command, says=["a.mlpackage\"", "of this run"])
    refused(folder, "compile", "a.mlpackage/Data/com.apple.CoreML/model.mlmodel", "-o", "a.mlpackage",
            says=['"a.mlpackage" cannot be written', '"a.mlpackage/Data/com.apple.CoreML/model.mlmodel"'])


def test_into_a_package_that_is_read(folder):
    package(folder / "a.mlpackage", "--no-manifest")
    expect(run("precompile", "a.mlpackage", folder=folder), 0)
    (folder / "link").symlink_to("a.mlpackage/Data")
    samples(folder / "in", x=np.zeros((1, 8)))
    for command, source in (
            (["compile", "a.mlpackage", "-o", "a.mlpackage/b.mlpackage"], "a.mlpackage"),
            (["compile", "a.mlpackage", "-o", "link/b.mlpackage"], "a.mlpackage"),
            (["compile", "a.mlpackage", "-o", "b.mlpackage", "--save-ir", "link/b.mil"], "a.mlpackage"),
            (["opt", "a.mlmodelc", "-o", "a.mlmodelc/b.mil"], "a.mlmodelc"),
            (["precompile", "a.mlpackage", "-o", "a.mlpackage/a.mlmodelc"], "a.mlpackage"),
            (["run", "a.mlpackage", "--output-dir", "a.mlpackage"], "a.mlpackage"),
            (["run", "a.mlpackage", "--output-dir", "a.mlpackage/new"], "a.mlpackage"),
            (["verify", "a.onnx", "a.mlpackage", "--inputs", "in", "--bundle", "a.mlpackage/b"], "a.mlpackage"),
            (["verify", "a.onnx", "a.mlpackage", "--inputs", "in", "--bundle", "a.mlpackage"], "a.mlpackage")):
        refused(folder, *command, says=["cannot be written", f'"{source}"'])


def test_files_that_compiling_reads(folder):
    onnx_model(folder / "m.onnx", external="m.data")
    (folder / "labels.txt").write_text("a\nb\nc\nd\n")
    os.link(folder / "m.onnx", folder / "hard.onnx")
    (folder / "soft.onnx").symlink_to("m.onnx")
    compiling = ["compile", "m.onnx", "-o", "p.mlpackage", "--labels", "labels.txt", "--save-ir"]
    for ir, source in (("m.onnx", "m.onnx"), ("hard.onnx", "m.onnx"), ("soft.onnx", "m.onnx"), ("m.data", "m.data"),
                       ("labels.txt", "labels.txt")):
        refused(folder, *compiling, ir, says=[f'"{ir}" cannot be written', f"{source}\" of this run"])
    refused(folder, "compile", "m.onnx", "-o", "p.mlpackage", "--stats", "m.data", says=['"m.data" cannot be written'])
    shutil.copy(folder / "labels.txt", folder / "p.manifest.json")
    refused(folder, "compile", "m.onnx", "-o", "p.mlpackage", "--force", "--labels", "p.manifest.json",
            says=['it is the input "p.manifest.json"'])
    (folder / "p.manifest.json").unlink()
    np.save(folder / "c.npy", np.zeros((1, 8), "f4"))
    refused(folder, "compile", "m.onnx", "-o", "p.mlpackage", "--const", "x=c.npy", "--save-ir", "c.npy", says=["c.npy"])


def test_a_source_in_the_folder_that_is_replaced(folder):
    onnx_model(folder / "m.onnx")
    onnx_model(folder / "X.mlpackage" / "m.onnx")
    onnx_model(folder / "Y.mlmodelc" / "m.onnx", external="w.bin")
    (folder / "Z.mlpackage").mkdir()
    (folder / "Z.mlpackage" / "m.onnx").symlink_to("../m.onnx")
    for command in (["compile", "X.mlpackage/m.onnx", "-o", "X.mlpackage"],
                    ["compile", "X.mlpackage/m.onnx", "-o", "X.mlpackage", "--force"],
                    ["compile", "X.mlpackage/m.onnx", "-o", folder / "X.mlpackage", "--no-manifest"],
                    ["compile", "Z.mlpackage/m.onnx", "-o", "Z.mlpackage", "--force"],
                    ["compile", "Y.mlmodelc/m.onnx", "-o", "Y.mlmodelc", "--force"]):
        refused(folder, *command, says=["cannot be written", 'it contains the input "' + str(command[1]) + '" of this run'])
    expect(run("compile", "X.mlpackage/m.onnx", "-o", "Z.mlpackage", "--force", folder=folder), 0)
    assert (folder / "X.mlpackage" / "m.onnx").exists() and not (folder / "Z.mlpackage" / "m.onnx").exists()


def test_outputs_over_inputs(folder):
    package(folder / "a.mlpackage", "--no-manifest")
    inputs = samples(folder / "D", y=np.ones((1, 8)))
    refused(folder, "run", "a.onnx", "--input", "x=D/y.npy", "--output-dir", "D", says=['"D/y.npy" cannot', 'it is the input "D/y.npy"'])
    (folder / "E").mkdir()
    (folder / "E" / "y.npy").symlink_to("../D/y.npy")
    refused(folder, "run", "a.onnx", "--input", "x=D/y.npy", "--output-dir", "E", says=['"E/y.npy" cannot', 'it is the input "D/y.npy"'])
    np.save(folder / "x.npy", np.ones((1, 8), "f4"))
    expect(run("run", "a.onnx", "--input", "x=x.npy", "--output-dir", "E", folder=folder), 0)  # the link points to it
    assert (folder / "E" / "y.npy").is_symlink() and np.load(inputs / "y.npy").shape == (1, 4)
    expect(run("run", "a.onnx", "--input", "x=x.npy", "--output-dir", ".", folder=folder), 0)  # beside it, as usual


def test_a_parity_bundle_over_its_source(folder):
    package(folder / "a.mlpackage", "--no-manifest")
    D = samples(folder / "D", x=np.linspace(-1, 1, 8).reshape(1, 8) ** 3)
    (D / "parity.json").write_text("{}")
    R = samples(folder / "R", y=np.arange(4).reshape(1, 4))
    (folder / "S").mkdir()
    for name in ("a.mlpackage", "a.onnx"):
        shutil.move(folder / name, folder / "S" / name)
    model, made = "S/a.onnx", "S/a.mlpackage"
    for target in ("D", "R", "S"):
        refused(folder, "verify", model, made, "--inputs", "D", "--reference", "R", "--bundle", target,
                says=[f'"{target}" cannot be written', "contains the input"])
    expect(run("verify", model, made, "--inputs", "D", "--bundle", "D/new", folder=folder), 0, "PASSED")
    assert R.is_dir()


def test_a_result_over_the_bundle(folder):
    package(folder / "a.mlpackage", "--no-manifest")
    expect(run("verify", "a.onnx", "a.mlpackage", "--bundle", "b", folder=folder), 0)
    files = [str(next((folder / "b" / kind).rglob("*.npy")).relative_to(folder / "b")) for kind in ("inputs", "reference")]
    for name in (*files, "parity.json", "a.mlpackage/Manifest.json", "a.mlpackage/new.json"):
        refused(folder, "--bundle", "b", "--result", f"b/{name}", says=[f'"b/{name}" cannot be written'], program=RUN)
    (folder / "null.json").symlink_to("/dev/null")
    (folder / "empty").mkdir()
    for name in ("null.json", "empty"):
        refused(folder, "--bundle", "b", "--result", name, id="file-exists", says=[name], program=RUN)
    expect(run("--bundle", "b", "--result", "r.json", program=RUN, folder=folder), 0)


def test_build_in_the_folder_of_its_source(folder):
    model = onnx_model(folder / "r-a.mlpackage" / "m.onnx")
    (folder / "r-a.mlpackage" / "r.json").write_text(json.dumps({
        "name": "r", "source": {"path": "m.onnx", "sha256": hashlib.sha256(model.read_bytes()).hexdigest(), "made_by": "a test"},
        "variants": [{"name": "a", "options": []}], "check": {"inputs": {"x": "x.npy"}, "reference": {"y": "y.npy"}}}))
    for name in "xy":
        np.save(folder / "r-a.mlpackage" / f"{name}.npy", np.zeros(4, "f4"))
    refused(folder, "build", "r-a.mlpackage/r.json", "--force", says=["r-a.mlpackage\" cannot be written", "contains the input"])


def foreign(folder, name="foreign.mlpackage"):
    """Returns a package without any sign of mlc."""
    path = package(folder / name, "--no-manifest")
    model = path / "Data" / "com.apple.CoreML" / "model.mlmodel"
    assert b"mlc-version" in model.read_bytes()
    model.write_bytes(model.read_bytes().replace(b"mlc-version", b"any-version"))
    return path


def test_packages_of_others(folder):
    path = foreign(folder)
    ours = package(folder / "a.mlpackage")
    for command in (["compile", "a.onnx", "-o", path], ["opt", ours, "-o", path]):
        refused(folder, *command, id="file-exists", says=["foreign.mlpackage", "not a package written by mlc", "--force"])
    expect(run("compile", "a.onnx", "-o", path, "--force", "--precision", "fp32", folder=folder), 0)
    expect(run("compile", "a.onnx", "-o", path, "--precision", "fp32", folder=folder), 0)  # now it was written by mlc


def test_packages_of_ours(folder):
    path = package(folder / "a.mlpackage", "--no-manifest")
    manifest = json.loads((path / "Manifest.json").read_text())
    edited = json.dumps(manifest).replace(manifest["rootModelIdentifier"], "6C2DE9B4-0000-4000-8000-2E6A3A1CAB1D")
    (path / "Manifest.json").write_text(edited)  # saved again by another tool; build_info still names mlc
    expect(run("compile", "a.onnx", "-o", path, folder=folder), 0)
    text(folder / "t.mil")
    for _ in range(2):  # no build_info
        expect(run("opt", "t.mil", "-o", "t.mlpackage", folder=folder), 0)
    (folder / "empty.mlpackage").mkdir()
    expect(run("opt", "t.mil", "-o", "empty.mlpackage", folder=folder), 0)


def test_folders_that_are_no_packages(folder):
    onnx_model(folder / "m.onnx")
    for name, content in (("none", None), ("object", "{}"), ("other", '{"items": []}'), ("damaged", "{"), ("dots", json.dumps(
            {"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "../../precious.txt"}}}))):
        path = folder / f"{name}.mlpackage"
        path.mkdir()
        (path / "precious.txt").write_text("keep")
        if content:
            (path / "Manifest.json").write_text(content)
        refused(folder, "compile", "m.onnx", "-o", path, id="file-exists", says=[f"{name}.mlpackage"])
    path = package(folder / "more.mlpackage", "--no-manifest")
    (path / "Data" / "precious.txt").write_text("keep")
    refused(folder, "compile", "m.onnx", "-o", path, id="file-exists", says=["more.mlpackage", "contains other files"])
    (folder / "file.mlpackage").write_text("keep")
    refused(folder, "compile", "m.onnx", "-o", "file.mlpackage", id="file-exists", says=["file.mlpackage"])
    expect(run("compile", "m.onnx", "-o", path, "--force", folder=folder), 0)
    assert not (path / "Data" / "precious.txt").exists()


def test_bundles_of_others(folder):
    a = package(folder / "a.mlpackage", "--no-manifest")
    expect(run("precompile", a, "-o", "own.mlmodelc", folder=folder), 0)
    expect(run("compile", "a.onnx", "-o", "own.mlmodelc", folder=folder), 0)  # its own output is replaced
    shutil.copytree(folder / "own.mlmodelc", folder / "theirs.mlmodelc")
    with open(folder / "theirs.mlmodelc" / "analytics" / "coremldata.bin", "ab") as file:
        file.write(bytes(8))  # a section that only Core ML's compiler writes
    shutil.copytree(folder / "own.mlmodelc", folder / "more.mlmodelc")
    (folder / "more.mlmodelc" / "precious.txt").write_text("keep")
    (folder / "none.mlmodelc").mkdir()
    (folder / "none.mlmodelc" / "coremldata.bin").write_text("keep")
    for name in ("theirs", "more", "none"):
        for command in (["precompile", a], ["compile", "a.onnx"]):
            refused(folder, *command, "-o", f"{name}.mlmodelc", id="file-exists", says=[f"{name}.mlmodelc", "--force"])
    expect(run("precompile", a, "-o", "theirs.mlmodelc", "--force", folder=folder), 0)


def test_folders_that_are_no_parity_bundles(folder):
    a = package(folder / "a.mlpackage", "--no-manifest")
    verify = ["verify", "a.onnx", a, "--bundle"]
    (folder / "notes").mkdir()
    (folder / "notes" / "parity.json").write_text('{"version": 1, "checksum": "' + "0" * 32 + '"}\n')
    (folder / "notes" / "precious.txt").write_text("keep")
    refused(folder, *verify, "notes", id="file-exists", says=["notes", "not a parity bundle"])
    expect(run(*verify, "own", folder=folder), 0)
    expect(run("--bundle", "own", program=RUN, folder=folder), 0)
    expect(run(*verify, "own", "--seed", "1", folder=folder), 0)
    (folder / "own" / "precious.txt").write_text("keep")
    refused(folder, *verify, "own", id="file-exists", says=["own", "contains other files"])


def test_manifests_of_others(folder):
    onnx_model(folder / "m.onnx")
    for content in ("keep", "[]", '{"name": "web app"}'):
        (folder / "p.manifest.json").write_text(content)
        refused(folder, "compile", "m.onnx", "-o", "p.mlpackage", id="file-exists", says=["p.manifest.json", "--no-manifest"])
    expect(run("compile", "m.onnx", "-o", "p.mlpackage", "--force", folder=folder), 0)
    expect(run("compile", "m.onnx", "-o", "p.mlpackage", folder=folder), 0)


def test_what_is_in_the_way_of_a_file(folder):
    onnx_model(folder / "m.onnx")
    text(folder / "t.mil")
    (folder / "D").mkdir()
    (folder / "D" / "y.npy").mkdir()
    (folder / "D" / "y.npy" / "precious.txt").write_text("keep")
    (folder / "D.mil").symlink_to("D")
    os.mkfifo(folder / "pipe.mil")
    (folder / "null.mil").symlink_to("/dev/null")
    for ir in ("D", "D.mil", "pipe.mil", "null.mil"):
        refused(folder, "compile", "m.onnx", "-o", "p.mlpackage", "--save-ir", ir, id="file-exists", says=["exists and is"])
    for name in ("D.mil", "pipe.mil", "null.mil"):
        refused(folder, "opt", "t.mil", "-o", name, id="file-exists", says=["exists and is"])
    refused(folder, "run", "m.onnx", "--output-dir", "D", id="file-exists", says=["y.npy", "a folder"])
    os.mkfifo(folder / "pipe.mlpackage")
    for force in ([], ["--force"]):
        refused(folder, "compile", "m.onnx", "-o", "pipe.mlpackage", *force, id="file-exists", says=["pipe.mlpackage"])
    assert pathlib.Path("/dev/null").is_char_device()


def test_dangling_links_are_followed(folder):
    onnx_model(folder / "m.onnx")
    (folder / "there").mkdir()
    (folder / "link.mlpackage").symlink_to("there/new.mlpackage")
    (folder / "twice.mlpackage").symlink_to("link.mlpackage")
    (folder / "ir.mil").symlink_to(folder / "there" / "ir.mil")
    for name in ("twice.mlpackage", "link.mlpackage"):
        expect(run("compile", "m.onnx", "-o", name, "--save-ir", "ir.mil", folder=folder), 0)
        assert (folder / name).is_symlink() and (folder / "ir.mil").is_symlink()
        shutil.rmtree(folder / "there" / "new.mlpackage")
    assert (folder / "there" / "ir.mil").read_text().count("func main")
    (folder / "nowhere.mlpackage").symlink_to("no/where.mlpackage")
    (folder / "loop.mlpackage").symlink_to("loop.mlpackage")
    for name in ("nowhere", "loop"):
        refused(folder, "compile", "m.onnx", "-o", f"{name}.mlpackage", id="file-io", says=[""])
    package(folder / "a.mlpackage", "--no-manifest")
    (folder / "in.mlpackage").symlink_to("a.mlpackage/in.mlpackage")
    refused(folder, "compile", "a.mlpackage", "-o", "in.mlpackage", says=['it is inside the input "a.mlpackage"'])


def special_files(folder):
    """Everything that is not a readable file."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("pipe")
    (folder / "folder").mkdir()
    here = os.getcwd()
    os.chdir(folder)  # socket paths must be short
    socket.socket(socket.AF_UNIX).bind("socket")
    os.chdir(here)
    return ["pipe", "link", "folder", "socket", "/dev/zero", "/dev/null"]


def test_what_is_no_file_is_not_read(folder):
    onnx_model(folder / "m.onnx")
    package(folder / "a.mlpackage")
    expect(run("verify", "a.onnx", "a.mlpackage", "--bundle", "bundle", folder=folder), 0)
    recipe = {"name": "r", "source": {"path": "m.onnx", "sha256": hashlib.sha256((folder / "m.onnx").read_bytes()).hexdigest(),
                                      "made_by": "a test"}, "variants": [{"name": "a", "options": []}], "check": {"inputs": {"x": "x.npy"}, "reference": {"y": "y.npy"}}}
    for name in special_files(folder):
        checked = {**recipe, "check": {"inputs": {"x": name}, "reference": {"y": name}}}
        (folder / "source.json").write_text(json.dumps({**recipe, "source": {**recipe["source"], "path": name}}))
        (folder / "check.json").write_text(json.dumps(checked))
        commands = [["compile", "m.onnx", "-o", "p.mlpackage", "--labels", name], ["build", name],
                    ["verify", "m.onnx", "a.mlpackage", "--budget", name], ["verify", "m.onnx", "a.mlpackage", "--result", name],
                    ["run", "m.onnx", "--input", f"x={name}"], ["compile", "m.onnx", "-o", "p.mlpackage", "--const", f"x={name}"]]
        if name != "folder":  # a model may be a folder
            commands += [["build", "source.json"], ["run", name], ["compile", name, "-o", "p.mlpackage"], ["inspect", name], ["opt", name],
                         ["verify", "m.onnx", "a.mlpackage", "--reference", name], ["diff", "a.mlpackage", name]]
        for command in commands:
            before = tree(folder)
            code = 2 if command == ["build", "folder"] else 1  # a folder without recipes
            result = expect(run(*command, folder=folder, timeout=SECONDS), code, "error[")
            assert tree(folder) == before and pathlib.Path(name).name in result.stdout + result.stderr, (command, result.stderr)
        result = expect(run("build", "check.json", "--force", folder=folder, timeout=SECONDS), 1, "error[")
        for at, command in (("in/x.npy", ["verify", "m.onnx", "a.mlpackage", "--inputs", "in"]),
                            ("in/y.npy", ["verify", "m.onnx", "a.mlpackage", "--reference", "in"]),
                            ("bundle/parity.json", ["run", "--bundle", "bundle"]),
                            ("a.mlpackage/Manifest.json", ["inspect", "a.mlpackage"])):
            path = folder / at
            path.parent.mkdir(exist_ok=True)
            kept = path.with_name("kept")
            if path.exists():
                path.rename(kept)
            path.symlink_to(name if name.startswith("/") else folder / name)
            result = run(*command, folder=folder, timeout=SECONDS)
            assert result.code in (1, 2), (name, command, result)
            path.unlink()
            if kept.exists():
                kept.rename(path)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "what is read or not ours stays"))
