"""Tests that the C++ example of tools/driver/README.md compiles, links with mlc_driver only, and works."""
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


def link_command(program):
    """Returns the link command of `mlc`, without the command-line sources; None if ninja does not print it."""
    if not (driver.BUILD / "build.ninja").exists():
        return None
    last = subprocess.run(["ninja", "-t", "commands", "bin/mlc"], cwd=driver.BUILD, check=True, capture_output=True,
                          text=True).stdout.splitlines()[-1]
    words = last.removeprefix(": && ").removesuffix(" && :")
    words = words.replace("libmlc_command_line.a", "").replace("-o bin/mlc", f"-o {program}")
    return re.sub(r"\S+main\.cpp\.o", f"{program}.o", words)


def test_the_example_compiles_a_model_and_runs_it(folder):
    text = (driver.ROOT / "tools" / "driver" / "README.md").read_text()
    code = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    ") or not line)
    assert code.count(";") < 16, "the example has become long"
    (folder / "example.cpp").write_text(code + MAIN)
    cache = (driver.BUILD / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.M)[1]
    subprocess.run([compiler, "-std=c++20", "-Wall", "-Werror", "-Wno-missing-field-initializers", "-I", driver.ROOT, "-c",
                    folder / "example.cpp", "-o", folder / "example.o"], check=True)
    command = link_command(folder / "example")
    if command is None or driver.SANITIZED:
        print("# compiled only: linked where ninja builds without sanitizers")
        return
    subprocess.run(command, shell=True, cwd=driver.BUILD, check=True)
    digits = driver.ROOT / "manifests" / "digits"
    np.save(folder / "image.npy", np.load(digits / "images.npy")[:1])
    done = subprocess.run([folder / "example", digits / "digits.onnx", "image.npy"], cwd=folder, check=True,
                          capture_output=True, text=True)
    found = np.array([float(line) for line in done.stdout.split()])
    assert np.abs(found - np.load(digits / "probabilities.npy")[0]).max() < 1e-2, done.stdout
    assert (folder / "model.mlpackage").exists() and not done.stderr


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "library"))
