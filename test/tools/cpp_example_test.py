"""Tests that the C++ example of tools/driver/README.md works against the installed library (find_package(mlc))."""
import pathlib
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
from driver import run_tests  # noqa: E402

MAIN = """
#include <cstdio>
#include "lib/ir/npy.h"
int main(int, char** argv) {
  for (const auto& output : CompileAndRun(argv[1], mlc::ReadNpy(argv[2])).outputs)
    for (int64_t i = 0; i < output.tensor.size(); ++i) std::printf("%.6f\\n", output.tensor.Double(i));
}
"""


PROJECT = """cmake_minimum_required(VERSION 3.25)
project(example CXX)
find_package(mlc REQUIRED)
add_executable(example example.cpp)
target_link_libraries(example PRIVATE mlc::mlc_driver)
target_compile_options(example PRIVATE -Wall -Werror -Wno-missing-field-initializers)
"""


def test_the_example_builds_against_the_installed_library_and_works(folder):
    text = (driver.ROOT / "tools" / "driver" / "README.md").read_text()
    code = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    ") or not line)
    assert code.count(";") < 16, "the example has become long"
    (folder / "example.cpp").write_text(code + MAIN)
    (folder / "CMakeLists.txt").write_text(PROJECT)
    cache = (driver.BUILD / "CMakeCache.txt").read_text()
    setting = {name: re.search(rf"^{name}:\w+=(.*)$", cache, re.M)[1] for name in ("CMAKE_CXX_COMPILER", "MLC_SANITIZE")}
    sanitize = setting["MLC_SANITIZE"]
    for command in (["cmake", "--install", driver.BUILD, "--prefix", folder / "installed"],
                    ["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder / 'installed'}",
                     f"-DCMAKE_CXX_COMPILER={setting['CMAKE_CXX_COMPILER']}",
                     f"-DCMAKE_CXX_FLAGS={f'-fsanitize={sanitize}' if sanitize else ''}"],
                    ["cmake", "--build", folder / "build"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    digits = driver.ROOT / "manifests" / "digits"
    np.save(folder / "image.npy", np.load(digits / "images.npy")[:1])
    done = subprocess.run([folder / "build" / "example", digits / "digits.onnx", "image.npy"], cwd=folder, check=True,
                          capture_output=True, text=True)
    found = np.array([float(line) for line in done.stdout.split()])
    assert np.abs(found - np.load(digits / "probabilities.npy")[0]).max() < 1e-2, done.stdout
    assert (folder / "model.mlpackage").exists() and not done.stderr


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "library"))
