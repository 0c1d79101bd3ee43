#!/usr/bin/env python3
"""Tests find_package(mlc COMPONENTS tools) and mlc_add_package in a project of its own."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import BUILD, ROOT, expect, run, run_tests

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES NONE)
find_package(mlc REQUIRED COMPONENTS tools)
mlc_add_package(digits SOURCE models/digits.onnx OPTIONS --precision fp32 --labels models/labels.txt DEPENDS models/labels.txt
                FOLDER packages ALL)
mlc_add_package(later SOURCE models/digits.onnx)
get_target_property(package digits MLC_PACKAGE)
message(STATUS "package: ${package}")
"""


def prefix(folder):
    """What `cmake --install build --component mlc` installs, of the tools that are built."""
    prefix = folder / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib/cmake/mlc").mkdir(parents=True)
    shutil.copy(BUILD / "bin/mlc", prefix / "bin")
    for file in BUILD / "mlcConfig.cmake", ROOT / "tools/mlc/mlc_add_package.cmake":
        shutil.copy(file, prefix / "lib/cmake/mlc")
    return prefix


def cmake(*words, code=0):
    result = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout + result.stderr


def test_a_project(folder):
    app, out = folder / "app", folder / "out"
    (app / "models").mkdir(parents=True)
    shutil.copy(ROOT / "manifests/digits/digits.onnx", app / "models")
    (app / "models/labels.txt").write_text("".join(f"{i}\n" for i in range(10)))
    (app / "CMakeLists.txt").write_text(PROJECT)
    shown = cmake("-S", app, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix(folder)}")
    assert f"package: {out}/packages/digits.mlpackage" in shown, shown
    assert "Compiling digits.mlpackage" in cmake("--build", out)
    assert not (out / "later.mlpackage").exists()
    package = out / "packages/digits.mlpackage"
    assert "fp32" in expect(run("inspect", package), 0).stdout and (out / "packages/digits.manifest.json").exists()
    assert "Compiling" not in cmake("--build", out)
    time.sleep(1.1)  # make compares whole seconds on some file systems
    (app / "models/labels.txt").write_text("".join(f"digit {i}\n" for i in range(10)))
    assert "Compiling digits.mlpackage" in cmake("--build", out)
    assert "digit 7" in expect(run("inspect", package, "--json"), 0).stdout
    assert "Compiling" not in cmake("--build", out)
    assert "Compiling later.mlpackage" in cmake("--build", out, "--target", "later")
    # A failure of mlc fails the build, and leaves no package.
    os.utime(app / "models/digits.onnx")
    (app / "models/digits.onnx").write_bytes(b"no model")
    shutil.rmtree(out / "later.mlpackage")
    text = cmake("--build", out, "--target", "later", code=2)
    assert "error[" in text and not (out / "later.mlpackage").exists(), text


def test_wrong_arguments(folder):
    for call, text in (("mlc_add_package(a)", "expected SOURCE"), ("mlc_add_package(a SOURCE none.onnx)", "does not exist"),
                       ("mlc_add_package(a SOURCE CMakeLists.txt BOGUS)", "BOGUS")):
        (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES NONE)\n"
                                               f"find_package(mlc REQUIRED COMPONENTS tools)\n{call}\n")
        place = folder / "prefix"
        shown = cmake("-S", folder, "-B", folder / "out", f"-DCMAKE_PREFIX_PATH={place if place.exists() else prefix(folder)}", code=1)
        assert text in shown, shown


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "cmake_package"))
