"""Tests nodes on special values (special_nodes.py) element by element: NaN where NaN is expected, and infinities and zeros with
the correct sign.

Every case runs three ways: the model, its fp32 package, and the model with constant inputs, which is folded. Expected values
are those of onnxruntime 1.30 (`--update TOOL`, as in onnxruntime_cases_test.py), unless a case overrides them and says why. An
argument selects the cases whose name contains it.
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
import special_nodes  # noqa: E402
from node_cases import CASES, constant  # noqa: E402

import onnx_wire as wire  # noqa: E402

EXPECTED = pathlib.Path(__file__).with_name("special_values.json")
RTOL, ATOL = 1e-5, 1e-37  # subnormal results may be flushed to zero


def compare(written, reference, zeros):
    """Describes the error; "" if there is none. With `zeros`, the sign of zeros is compared."""
    if written.shape != reference.shape or written.dtype != reference.dtype:
        return f"is {written.dtype} {written.shape}, expected {reference.dtype} {reference.shape}"
    if reference.dtype.kind != "f":
        same = written == reference
    else:
        a, b = written.astype("f8"), reference.astype("f8")
        with np.errstate(invalid="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= RTOL * np.abs(b) + ATOL)
        if zeros:
            same &= ~((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b)))
    if same.all():
        return ""
    places = np.argwhere(~same)
    shown = ", ".join(f"{p.tolist()}: {written[tuple(p)]!s}, expected {reference[tuple(p)]!s}" for p in places[:6])
    return f"{len(places)} of {same.size}: {shown}"


def folded(case):
    """Returns the model with its inputs as constants."""
    model = []
    for number, value in wire.fields(case.model):
        if number == 7:
            parts = [wire.field(n, v) for n, v in wire.fields(value) if n != 11]
            value = b"".join(parts) + wire.field(5, [constant(k, v) for k, v in case.inputs.items()])
        model.append(wire.field(number, value))
    return b"".join(model)


def run_case(name):
    case = CASES[name]
    zeros = name.split()[0].rstrip(",") in special_nodes.SIGNED_ZEROS
    references = case.expected or [np.array(e["values"], e.get("dtype", "f4")).reshape(e["shape"]) for e in EXPECTATIONS[name]]
    wrong = []
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(case.model)
        (folder / "folded.onnx").write_bytes(folded(case))
        inputs = []
        for key, value in case.inputs.items():
            np.save(folder / f"{key}.npy", value)
            inputs.append(f"--input={key}={folder / key}.npy")
        compiled = driver.run("compile", folder / "model.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32", "--no-manifest",
                              "--json")
        for way, path, given in (("model", "model.onnx", inputs), ("package", "m.mlpackage", inputs), ("folded", "folded.onnx", [])):
            result = compiled if way == "package" and compiled.code else driver.run("run", folder / path, *given, "--output-dir",
                                                                                    folder / way, "--json")
            if result.code != 0:
                wrong.append(f"{name}, {way}: {driver.ending(result)}")
                continue
            written = {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}
            for output, reference in zip(case.outputs, references):
                if text := compare(written[output], reference, zeros):
                    wrong.append(f"{name}, {way}, {output}: {text}")
    return wrong


def expectation(array):
    kept = [float(f"{v:.9g}") for v in array.flatten().tolist()] if array.dtype.kind == "f" else array.flatten().tolist()
    entry = {"shape": list(array.shape), "values": kept}
    return entry if array.dtype == "f4" else {"dtype": array.dtype.str[1:]} | entry


def update(tool, wanted):
    expectations = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    expectations = {k: v for k, v in expectations.items() if k in CASES}
    for name, case in CASES.items():
        if case.expected or wanted not in name:
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
                expectations.pop(name, None)
                continue
            expectations[name] = [expectation(np.load(next(folder.glob(f"out_{k}_*.npy")))) for k in range(len(case.outputs))]
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in expectations.items())
    EXPECTED.write_text("{\n" + lines + "\n}\n")


if len(sys.argv) > 2 and sys.argv[1] == "--update":
    update(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
    sys.exit()
EXPECTATIONS = json.loads(EXPECTED.read_text())
wanted = [name for name, case in CASES.items() if (case.expected or name in EXPECTATIONS) and (len(sys.argv) < 2 or sys.argv[1] in name)]
wrong = [line for lines in driver.parallel(run_case, wanted) for line in lines]
for line in wrong:
    print(line)
print(f"# special values: {len(wanted)} nodes in three ways, {len(wrong)} wrong")
sys.exit(1 if wrong else 0)
