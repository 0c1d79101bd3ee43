#!/usr/bin/env python3
"""More concurrent predictions than available threads: an error reports it, without a crash."""
import os
import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver
import onnx_wire as wire
from driver import MLC, SKIPPED, run_tests

ROOM = 100  # threads in addition to those of the user
NOBODY = 54321  # a user without processes; limits do not apply to root


def limited():
    mine = os.getuid() or NOBODY
    there = sum(int(line.split()[1]) for path in pathlib.Path("/proc").glob("[0-9]*/status") if os.access(path, os.R_OK)
                for text in [path.read_text()] if f"\nUid:\t{mine}\t" in text
                for line in text.splitlines() if line.startswith("Threads:"))
    resource.setrlimit(resource.RLIMIT_NPROC, (there + ROOM, there + ROOM))
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def test_jobs_beyond_the_limit_of_processes(folder):
    ports = [[wire.value_info(name, wire.FLOAT, [4])] for name in ("x", "y")]
    (folder / "m.onnx").write_bytes(wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], *ports)))
    folder.chmod(0o755)
    for jobs, code, text in ((256, 1, "resource-limit"), (8, 0, "")):
        for options in ([], ["--timeout", "60000"]):
            done = subprocess.run([MLC, "run", folder / "m.onnx", "--jobs", str(jobs), "--iterations", "300", *options],
                                  capture_output=True, text=True, preexec_fn=limited)
            assert done.returncode == code and text in done.stderr, (jobs, options, done)


if sys.platform != "linux" or driver.SANITIZED:
    print("jobs beyond the limit of processes: skipped, it needs Linux and a build without sanitizers")
    sys.exit(SKIPPED)
sys.exit(run_tests(globals(), "jobs beyond the limit of processes"))
