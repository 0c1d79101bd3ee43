"""Compares single nodes, with attributes that ONNX's own tests do not cover, with onnxruntime, or with NumPy where
onnxruntime's CPU provider lacks the operator. The cases are in nodes_*.py.

Expected outputs are stored in onnxruntime_cases.json. `--update TOOL` regenerates them, where the command `TOOL MODEL
INPUT.npy... --out DIR` runs onnxruntime and writes DIR/out_<k>_*.npy (version 1.30 was used). An argument selects the cases
whose name contains it, also with `--update TOOL`.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import driver  # noqa: E402
from nodes import CASES  # noqa: E402
from node_cases import EXPECTED, expectations, references  # noqa: E402

TOLERANCE = 1e-5  # relative to the largest value of an output


def compare(output, written, reference, steps):
    """Describes the error; "" if there is none."""
    if written.shape != reference.shape or written.dtype != reference.dtype:
        return f"{output} is {written.dtype} {written.shape}, expected {reference.dtype} {reference.shape}"
    error = np.abs(written.astype("f8") - reference.astype("f8")).max()
    tolerance = {"f2": 2e-3, "f4": TOLERANCE}.get(reference.dtype.str[1:])
    if not error <= (steps if tolerance is None else tolerance * np.abs(reference).max()):
        return f"{output} differs by {error:.3g}"
    return ""


def run_case(name):
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(case.model)
        for key, value in case.inputs.items():
            np.save(folder / f"{key}.npy", value)
        compiled = driver.run("compile", folder / "model.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32", "--no-manifest",
                              "--json")
        if case.refused:
            said = " ".join(f"{e['id']}: {e['text']}" for e in compiled.errors)
            return [] if driver.verdict(compiled) == "refused" and case.refused in said else [f"{name}: {driver.ending(compiled)}"]
        if compiled.code != 0:
            return [f"{name}: {driver.ending(compiled)}"]
        result = driver.run("run", folder / "m.mlpackage", *[f"--input={k}={folder / k}.npy" for k in case.inputs], "--output-dir",
                            folder, "--json")
        if result.code != 0:
            return [f"{name}: {driver.ending(result)}"]
        written = {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}
    wrong = []
    for output, reference in zip(case.outputs, references(name)):
        if text := compare(output, written[output], reference, case.steps):
            wrong.append(f"{name}: {text}")
    return wrong


def expectation(array):
    if array.dtype.kind == "f":
        entry = {"shape": list(array.shape), "values": [float(f"{v:.7g}") for v in array.flatten().tolist()]}
    else:
        entry = {"shape": list(array.shape), "values": array.flatten().tolist()}
    return entry if array.dtype == "f4" else {"dtype": array.dtype.str[1:]} | entry


def update(tool, wanted):
    written = {k: v for k, v in expectations().items() if k in CASES}
    for name, case in CASES.items():
        if case.refused or case.expected or wanted not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
            folder = pathlib.Path(folder)
            (folder / "model.onnx").write_bytes(case.model)
            files = []
            for key, value in case.inputs.items():
                files.append(f"{key}={folder / key}.npy")
                np.save(folder / f"{key}.npy", value)
            ran = subprocess.run([*shlex.split(tool), folder / "model.onnx", *files, "--out", folder, "--quiet"], capture_output=True,
                                 text=True)
            if ran.returncode:
                print(f"left out: {name}: {driver.last_line(ran.stdout + ran.stderr)}")
                written.pop(name, None)
                continue
            written[name] = [expectation(np.load(next(folder.glob(f"out_{k}_*.npy")))) for k in range(len(case.outputs))]
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in written.items())
    EXPECTED.write_text("{\n" + lines + "\n}\n")


if sys.argv[1:2] == ["--update"]:
    if len(sys.argv) == 2:
        sys.exit("--update needs the command that runs onnxruntime: --update TOOL [NAME]")
    update(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
    sys.exit()
wanted = [name for name in CASES if len(sys.argv) < 2 or sys.argv[1] in name]
if not wanted:
    sys.exit(f"no case has \"{sys.argv[1]}\" in its name")
wrong = [f"{name}: nothing is expected of it: give expected=, or run --update TOOL" for name in wanted
         if not (CASES[name].refused or CASES[name].expected or name in expectations())]
if not wrong:
    wrong = [line for lines in driver.parallel(run_case, wanted) for line in lines]
for line in wrong:
    print(line)
refusals = sum(bool(CASES[name].refused) for name in wanted)
computed = sum(bool(CASES[name].expected) for name in wanted)
print(f"# onnxruntime: {len(wanted) - refusals - computed} nodes compared, {computed} with NumPy, {refusals} to be refused, "
      f"{len(wrong)} wrong")
sys.exit(1 if wrong else 0)
