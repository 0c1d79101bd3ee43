#!/usr/bin/env python3
"""Tests that the engine uses the threads of oneDNN's OpenMP library, not those of another one in the same process: a preloaded
library also defines GOMP_parallel and records its callers."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import driver
import onnx_wire as wire
from driver import SKIPPED, expect, run, run_tests

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
typedef void (*Parallel)(void (*)(void*), void*, unsigned, unsigned);
void GOMP_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned flags) {
  Dl_info caller;
  FILE* log = fopen(getenv("CALLERS"), "a");
  fprintf(log, "%s\n", dladdr(__builtin_return_address(0), &caller) ? caller.dli_fname : "?");
  fclose(log);
  ((Parallel)dlsym(RTLD_NEXT, "GOMP_parallel"))(fn, data, threads, flags);
}
"""


def test_the_engine_does_not_call_the_hosts(folder):
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True)
    ports = [[wire.value_info(name, wire.FLOAT, [1, 64, 64, 64])] for name in ("x", "y")]
    (folder / "m.onnx").write_bytes(wire.model(wire.graph([wire.node("Erf", ["x"], ["y"])], *ports)))
    callers = folder / "callers"
    callers.write_text("")
    expect(run("run", folder / "m.onnx", environment={
        "LD_PRELOAD": str(folder / "shim.so"), "CALLERS": str(callers), "MLC_THREADS": "2"}), 0)
    others = {pathlib.Path(line).name for line in callers.read_text().splitlines() if "dnnl" not in line}
    assert not others, others


if sys.platform != "linux" or driver.SANITIZED or not shutil.which("cc"):
    print("OpenMP of the host: skipped, it needs Linux, a C compiler and a build without sanitizers")
    sys.exit(SKIPPED)
sys.exit(run_tests(globals(), "OpenMP that is oneDNN's"))
