#!/usr/bin/env python3
"""`--force` on a file system that cannot exchange two folders: a preloaded library rejects the exchange and kills the process, or
fails, during a rename. No package is ever lost, and no other folder is removed."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import driver
import onnx_wire as wire
from driver import SKIPPED, expect, run, run_tests
from overwrite_test import tree

SHIM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  errno = EINVAL;
  return flags ? -1 : syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}
int rename(const char* from, const char* to) {
  static int count = 0;
  const char* kill_at = getenv("KILL_AT");
  const char* fail_at = getenv("FAIL_AT");
  if (strstr(to, ".mlpackage")) {
    ++count;
    if (kill_at && count == atoi(kill_at)) raise(SIGKILL);
    if (fail_at && count == atoi(fail_at)) return errno = EIO, -1;
  }
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
"""


def shim(folder):
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True)
    return str(folder / "shim.so")


def compile_over(folder, name, *options, **environment):
    """Compiles a model that adds 1 or 2, always to the same output path."""
    weight = np.array([1 if name == "one" else 2], "f4")
    (folder / f"{name}.onnx").write_bytes(wire.model(wire.graph(
        [wire.node("Add", ["x", "w"], ["y"])], [wire.value_info("x", wire.FLOAT, [4])], [wire.value_info("y", wire.FLOAT, [4])],
        [wire.tensor("w", wire.FLOAT, [1], raw=weight.tobytes())])))
    (folder / "out").mkdir(exist_ok=True)
    return run("compile", folder / f"{name}.onnx", "-o", folder / "out" / "m.mlpackage", "--no-manifest", *options,
               environment=environment)


def hidden(folder):
    return sorted(path.name for path in (folder / "out").iterdir() if path.name.startswith("."))


def test_what_a_kill_between_two_renamings_leaves_is_put_back(folder):
    library, target = shim(folder), folder / "out" / "m.mlpackage"
    expect(compile_over(folder, "one"), 0)
    before = tree(target)
    for at in (1, 2):
        assert compile_over(folder, "two", "--force", LD_PRELOAD=library, KILL_AT=str(at)).code == -9
        assert target.exists() == (at == 1) and len(hidden(folder)) == 1, (at, hidden(folder))
        # The next run finds the package again and is rejected as before.
        expect(compile_over(folder, "two", LD_PRELOAD=library), 1, "file-exists")
        assert tree(target) == before and not hidden(folder), (at, hidden(folder))
    expect(compile_over(folder, "two", "--force", LD_PRELOAD=library), 0)
    assert tree(target) != before and not hidden(folder)


def test_a_renaming_that_fails_loses_nothing(folder):
    library, target = shim(folder), folder / "out" / "m.mlpackage"
    expect(compile_over(folder, "one"), 0)
    before = tree(target)
    for at in (1, 2):
        expect(compile_over(folder, "two", "--force", LD_PRELOAD=library, FAIL_AT=str(at)), 1, "file-io")
        assert tree(target) == before and not hidden(folder), (at, hidden(folder))


def test_other_hidden_folders_stay(folder):
    """Keeps folders with another name, folders with our name without our marker, and other files in place of the marker."""
    expect(compile_over(folder, "one"), 0)
    out = folder / "out"
    names = [".m.mlpackage.mlc-backup", ".m.mlpackage.mlc-12-7", ".m.mlpackage.mlc-12-7x", ".m.mlpackage.mlc-12-8"]
    for name in names:
        (out / name).mkdir()
        (out / name / "precious").write_text("text")
    (out / names[3] / "mlc-staging").mkdir()
    (out / ".m.mlpackage.mlc-12-9").mkdir()  # left by a process that was killed
    expect(compile_over(folder, "two"), 0)
    assert hidden(folder) == sorted(names), hidden(folder)
    assert all((out / name / "precious").read_text() == "text" for name in names)


if sys.platform != "linux" or driver.SANITIZED or not shutil.which("cc"):
    print("replacing in two steps: skipped, it needs Linux, a C compiler and a build without sanitizers")
    sys.exit(SKIPPED)
sys.exit(run_tests(globals(), "packages that are replaced in two steps"))
