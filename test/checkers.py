"""Runs two independent checkers on packages: check_mlpackage.py compares them with the operator definitions of coremltools, and
run_mlpackage.py evaluates them with coremltools' value inference and torch. CT_DIR names an importable coremltools; the
programs are in ../shared/tools.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import driver

TOOLS = driver.CORPUS.parent / "tools"
RUN_PACKAGES = pathlib.Path(__file__).parent / "oracle" / "run_packages.py"
SECONDS = 1800


def python(*arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS)


def missing():
    """Names the missing requirements of the checkers; "" if there are none."""
    for tool in ("check_mlpackage.py", "run_mlpackage.py"):
        if not (TOOLS / tool).exists():
            return f"no {tool} in {TOOLS}"
    if "CT_DIR" not in os.environ or python("-c", "import os, sys; sys.path.insert(0, os.environ['CT_DIR']); "
                                                  "import coremltools, torch").returncode:
        return "no coremltools and torch importable (CT_DIR)"
    return ""


def check(packages, strict=True):
    """Returns {package: errors} for the packages that are not accepted; with `strict`, warnings count as errors."""
    packages = [str(package) for package in packages]

    def part(start):
        with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
            answer = pathlib.Path(scratch) / "answer.json"
            result = python(TOOLS / "check_mlpackage.py", *(["--strict"] if strict else []), "--json", answer,
                            *packages[start::2])
            if packages[start:] and not answer.exists():
                raise RuntimeError(result.stderr[-2000:])
            return json.loads(answer.read_text()) if answer.exists() else []

    answers = sum(driver.parallel(part, range(2)), [])
    refused = {a["path"]: a["errors"] + a["warnings"] for a in answers if not a["ok"]}
    unseen = set(packages) - {a["path"] for a in answers}
    return refused | {package: ["the checker says nothing of it"] for package in unseen}


def compute(jobs):
    """Evaluates jobs [{"package", "inputs" (npz by MIL names), "outputs" (npz to write)}]. Returns, for each job, "" or the
    error that stopped it, beginning with the operator."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([{key: str(job[key]) for key in ("package", "inputs", "outputs")} for job in jobs], file)
        file.flush()
        result = python(RUN_PACKAGES, TOOLS / "run_mlpackage.py", file.name)
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    return json.loads(result.stdout.splitlines()[-1])
