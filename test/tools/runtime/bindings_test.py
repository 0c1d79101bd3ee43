"""Builds the example of every binding from the installed files of libmlc, and compares what they print."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np  # noqa: E402

import driver  # noqa: E402
import interface  # noqa: E402
import rust_declarations  # noqa: E402
from speaking_models import EOS, Chain, ids_of  # noqa: E402

BINDINGS = driver.ROOT / "tools" / "runtime" / "bindings"
DIGITS = driver.ROOT / "manifests" / "digits"
TEXT = "brown-fig."


class Installed:
    """The installed library, and the arguments of the examples."""
    made = None

    def __init__(self, folder):
        self.folder = folder
        self.prefix = interface.install(folder)
        self.environment = interface.environment(self.prefix)
        images = np.load(DIGITS / "images.npy")[:10]
        images.astype("<f4").tofile(folder / "images.f32")
        scores = np.load(DIGITS / "probabilities.npy")[:10]
        Chain(ids_of(TEXT) + [EOS]).gguf(folder / "speaker.gguf")
        self.expected = ["digits: " + " ".join(map(str, scores.argmax(axis=1))), f"text: {TEXT}", "loop: 0 0 1 3 6 10",
                         "package: while_loop"]

    def flags(self):
        return subprocess.run(["pkg-config", "--cflags", "--libs", "mlc"], env=self.environment, capture_output=True, text=True,
                              check=True).stdout.split()

    def run(self, *command, **more):
        done = subprocess.run(command, env={**self.environment, **more.pop("env", {})}, capture_output=True, text=True, timeout=600, **more)
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def check(self, name, *command, **more):
        package = self.folder / f"{name}.mlpackage"
        printed = self.run(*command, DIGITS / "digits.onnx", self.folder / "images.f32", self.folder / "speaker.gguf", TEXT[0], package,
                           **more)
        assert printed.splitlines() == self.expected, f"{name}: {printed}, expected {self.expected}"
        return package


def test_all_print_the_same(folder):
    installed = Installed(folder)
    packages = {}
    installed.run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", BINDINGS / "c" / "three_things.c", *installed.flags(), "-o",
                  folder / "in_c")
    packages["c"] = installed.check("c", folder / "in_c")
    installed.run("c++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", BINDINGS / "cpp",
                  BINDINGS / "cpp" / "three_things.cc", *installed.flags(), "-o", folder / "in_cpp")
    packages["cpp"] = installed.check("cpp", folder / "in_cpp")
    shutil.copytree(BINDINGS / "python", folder / "python")
    packages["python"] = installed.check("python", sys.executable, folder / "python" / "three_things.py")
    if shutil.which("go"):
        shutil.copytree(BINDINGS / "go", folder / "go")
        environment = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": str(folder / "go-cache"), "GOPATH": str(folder / "gopath")}
        installed.run("go", "vet", "./...", cwd=folder / "go", env=environment)
        installed.run("go", "build", "-o", folder / "in_go", "./three_things", cwd=folder / "go", env=environment)
        packages["go"] = installed.check("go", folder / "in_go", env={"GODEBUG": "cgocheck=2"})
    else:
        print("# binding for Go: skipped, no go")
    if shutil.which("cargo"):
        shutil.copytree(BINDINGS / "rust", folder / "rust")
        installed.run("cargo", "build", "--offline", "--quiet", "--examples", cwd=folder / "rust",
                      env={"CARGO_TARGET_DIR": str(folder / "target"), "RUSTFLAGS": "-D warnings"})
        packages["rust"] = installed.check("rust", folder / "target" / "debug" / "examples" / "three_things")
    else:
        print("# binding for Rust: skipped, no cargo")
    written = {name: {path.relative_to(package): path.read_bytes() for path in package.rglob("*") if path.is_file()}
               for name, package in packages.items()}
    for name, files in written.items():
        assert files.keys() == written["c"].keys(), name
    print(f"# bindings that print the same: {', '.join(packages)}")


def test_python_package_installs_from_the_tree(folder):
    """Without network: pip builds with the setuptools of this Python, if it has one."""
    if subprocess.run([sys.executable, "-c", "import setuptools, wheel, pip"], capture_output=True).returncode:
        print("# pip install of the Python binding: skipped, no setuptools, wheel or pip")
        return
    shutil.copytree(BINDINGS / "python", folder / "python")
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-index", "--no-deps", "--quiet",
                           "--target", folder / "site", folder / "python"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    installed = Installed(folder)
    installed.run(sys.executable, "-c", "import mlc; assert mlc.version()", env={"PYTHONPATH": str(folder / "site")}, cwd=folder)


def test_python_passes_buffers_without_copies(folder):
    os.environ.update({"MLC_LIBRARY": interface.environment(interface.install(folder))["MLC_LIBRARY"]})
    sys.path.insert(0, str(BINDINGS / "python"))
    sys.dont_write_bytecode = True
    import mlc
    program = mlc.Program(options={"target": "iOS18"})
    body = program.function()
    x = body.input("x", mlc.FP32, [2, 3])
    body.output(body.op("add", "y", x=x, y=1.0), "y")
    model = program.load()
    values = np.arange(6, dtype="f4").reshape(3, 2).T  # strides
    out = np.zeros((2, 6), "f4")[:, ::2]
    assert model.predict({"x": values}, outputs={"y": out}) is None
    assert (out == values + 1).all()
    assert (np.asarray(model.predict({"x": values})["y"]) == values + 1).all()
    try:
        model.predict({"x": np.zeros((3, 3), "f4")})
    except mlc.Error as error:
        assert error.id == "bad-input" and error.code == 1, str(error)
    else:
        raise AssertionError("a wrong shape was accepted")
    try:
        mlc.compile(DIGITS / "digits.onnx", folder / "a.mlpackage", {"precision": "fp17"})
    except mlc.Error as error:
        assert "option 'precision'" in str(error)
    seen = []
    context = mlc.Context(progress=lambda step, share: seen.append(step), threads=1)
    assert mlc.compile(DIGITS / "digits.onnx", folder / "a.mlpackage", context=context)["operations"] > 5
    assert "optimising" in seen, seen


def test_declarations_in_rust_are_those_of_the_header(folder):
    assert rust_declarations.FILE.read_text() == rust_declarations.declarations(), "run rust_declarations.py --update"


TRUNCATED = """
import array, os, pathlib, sys
import mlc
folder = pathlib.Path(sys.argv[1])
size = 1 << 20
program = mlc.Program()
body = program.function()
w = body.constant(array.array("f", range(size)), "w")
body.output(body.op("mul", "y", x=body.input("x", mlc.FP32, [size]), y=w), "y")
program.write(folder / "a.mlpackage")
weights = next((folder / "a.mlpackage").rglob("weight.bin"))
bytes = weights.read_bytes()
x = array.array("f", [2.0]) * size
model = mlc.Model(folder / "a.mlpackage")
opened = mlc.Program(folder / "a.mlpackage")
os.truncate(weights, 100)
for attempt in (lambda: model.predict({"x": x}), lambda: opened.write(folder / "b.mlpackage"),
                lambda: mlc.Model(folder / "a.mlpackage").predict({"x": x})):
    try:
        attempt()
        print("done")
    except mlc.Error as error:
        print(error.id)
weights.write_bytes(bytes)
assert mlc.Model(folder / "a.mlpackage").predict({"x": x})["y"].view[size - 1] == 2 * (size - 1)
"""


def test_a_file_that_shrinks_is_an_error(folder):
    installed = Installed(folder)
    printed = installed.run(sys.executable, "-c", TRUNCATED, folder, env={"PYTHONPATH": str(BINDINGS / "python")}).split()
    assert set(printed) <= {"done", "file-io", "bad-file"} and printed[2] != "done", printed


def test_swift_module_map(folder):
    clang = shutil.which("clang-16") or shutil.which("clang")
    if not clang:
        print("# binding for Swift: skipped, no clang")
        return
    installed = Installed(folder)
    module = folder / "CMlc"
    shutil.copytree(BINDINGS / "swift" / "Sources" / "CMlc", module)
    header = next(installed.prefix.rglob("mlc.h"))
    (folder / "user.m").write_text("@import CMlc;\nint main(void) { return mlc_abi_version() != MLC_ABI_VERSION; }\n")
    installed.run(clang, "-fsyntax-only", "-fmodules", f"-fmodules-cache-path={folder}/modules", "-I", module, "-I", header.parent,
                  folder / "user.m")
    print("# binding for Swift: the module map was parsed by clang; the Swift code was not compiled")


if __name__ == "__main__":
    if interface.sanitized():
        print("# bindings of libmlc: skipped, a sanitizer is not linked into clients")
        sys.exit(77)
    sys.exit(driver.run_tests(globals(), "bindings of libmlc"))
