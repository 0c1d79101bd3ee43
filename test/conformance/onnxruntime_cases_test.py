"""Nodes with attributes that ONNX's own tests leave out, compared with what onnxruntime computes.

The expected outputs stand in onnxruntime_cases.json; `--update TOOL` writes them anew, where TOOL is a command that runs
`TOOL MODEL INPUT.npy... --out DIR` with onnxruntime and leaves DIR/out_<k>_*.npy (written with version 1.30).
An argument runs only the cases whose name contains it.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

EXPECTED = pathlib.Path(__file__).with_name("onnxruntime_cases.json")
TOLERANCE = 1e-5  # of the greatest value of an output
TYPES = {np.dtype("f4"): 1, np.dtype("i4"): 6, np.dtype("i8"): 7, np.dtype("?"): 9}
CASES = {}


def values(*dims, seed=0):
    """Numbers between -1.25 and 1.25, all of which floats hold exactly."""
    n = int(np.prod(dims))
    return (((np.arange(n) * 7 + seed * 3 + np.arange(n) // 11) % 11 - 5) * 0.25).reshape(dims).astype("f4")


def case(name, op, inputs, outputs, opset, domain="", **attributes):
    """`inputs`: {name: array}; a name that begins with a capital letter is a constant, None is left out. `outputs`: names, of which
    empty ones are left out."""
    assert name not in CASES
    node = wire.node(op, [k if v is not None else "" for k, v in inputs.items()], outputs, domain, **attributes)
    given = {k: v for k, v in inputs.items() if v is not None and not k[0].isupper()}
    constants = [wire.tensor(k, TYPES[v.dtype], v.shape, v.tobytes()) for k, v in inputs.items()
                 if v is not None and k[0].isupper()]
    graph = wire.graph([node], [wire.value_info(k, TYPES[v.dtype], v.shape) for k, v in given.items()],
                       [wire.value_info(o, 1, None) for o in outputs if o], constants)
    extra = wire.field(8, wire.field(1, domain) + wire.field(2, 1)) if domain else b""
    CASES[name] = (wire.model(graph, opset=opset) + extra, given, [o for o in outputs if o])


def recurrent(name, op, steps=3, batch=2, inputs=3, hidden=2, bias=True, state=True, peephole=False, lengths=None, opset=14,
              run_time=False, outputs=("y", "y_h", "y_c"), **attributes):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    first = attributes.get("layout", 0)
    tell = str.lower if run_time else str.upper
    shape = (batch, count, hidden) if first else (count, batch, hidden)
    all_inputs = {"x": values(*((batch, steps, inputs) if first else (steps, batch, inputs)), seed=3),
                  tell("w"): values(count, gates * hidden, inputs, seed=1), tell("r"): values(count, gates * hidden, hidden, seed=2),
                  tell("b"): values(count, 2 * gates * hidden, seed=4) if bias else None,
                  "lengths" if run_time else "Lengths": None if lengths is None else np.array(lengths, "i4"),
                  "h": values(*shape, seed=5) if state else None}
    if op == "LSTM":
        all_inputs |= {"c": values(*shape, seed=6) if state else None, tell("p"): values(count, 3 * hidden, seed=7) if peephole else None}
    case(name, op, all_inputs, list(outputs)[:3 if op == "LSTM" else 2], opset, hidden_size=hidden, **attributes)


for op in ("LSTM", "GRU", "RNN"):
    for direction in ("forward", "reverse", "bidirectional"):
        recurrent(f"{op} {direction}", op, direction=direction)
        recurrent(f"{op} {direction} lengths", op, direction=direction, lengths=[3, 2])
        recurrent(f"{op} {direction} lengths and weights at run time", op, direction=direction, lengths=[1, 3], run_time=True)
    recurrent(f"{op} opset 7 without state and bias", op, opset=7, state=False, bias=False)
    recurrent(f"{op} last state only", op, outputs=("", "y_h", ""), direction="bidirectional")
    recurrent(f"{op} clip", op, clip=0.3, direction="reverse")
    recurrent(f"{op} many steps", op, steps=80)
    names = {"LSTM": ["HardSigmoid", "Relu", "HardSigmoid"], "GRU": ["HardSigmoid", "Softsign"], "RNN": ["LeakyRelu"]}[op]
    recurrent(f"{op} activations", op, activations=names)
    names = {"LSTM": ["LeakyRelu", "ScaledTanh", "Softplus", "Sigmoid", "ThresholdedRelu", "Elu"],
             "GRU": ["Sigmoid", "ScaledTanh", "Affine", "Elu"], "RNN": ["ThresholdedRelu", "Affine"]}[op]
    recurrent(f"{op} activations with parameters", op, activations=names, activation_alpha=[0.5, 0.25, 0.75, 0.125],
              activation_beta=[0.5, 0.25], direction="bidirectional")
for direction in ("forward", "bidirectional"):
    recurrent(f"LSTM {direction} peephole", "LSTM", peephole=True, direction=direction)
    recurrent(f"LSTM {direction} input_forget", "LSTM", input_forget=1, peephole=True, direction=direction)
    recurrent(f"GRU {direction} linear_before_reset", "GRU", linear_before_reset=1, direction=direction)
    recurrent(f"GRU {direction} linear_before_reset lengths", "GRU", linear_before_reset=1, direction=direction, lengths=[2, 3])
for direction in ("forward", "bidirectional"):
    recurrent(f"GRU {direction} linear_before_reset many steps", "GRU", linear_before_reset=1, steps=80, direction=direction)
    recurrent(f"LSTM {direction} lengths many steps", "LSTM", steps=80, lengths=[70, 80], direction=direction, run_time=True)
recurrent("GRU linear_before_reset many steps, last state only", "GRU", linear_before_reset=1, steps=80, outputs=("", "y_h"))
recurrent("GRU linear_before_reset clip", "GRU", linear_before_reset=1, clip=0.3)

SIGNAL = values(2, 6, 5, 1, seed=1)
for inverse in (0, 1):
    for size in (4, 6, 9):
        x = SIGNAL if not inverse else values(2, 6, 5, 2, seed=2)
        case(f"DFT inverse={inverse} size={size}", "DFT", {"x": x, "N": np.array(size, "i8")}, ["y"], 17, inverse=inverse, axis=1)
        case(f"DFT inverse={inverse} size={size} axis=2", "DFT", {"x": x, "N": np.array(size, "i8"), "A": np.array(-2, "i8")}, ["y"],
             20, inverse=inverse)
case("DFT onesided", "DFT", {"x": SIGNAL}, ["y"], 17, onesided=1, axis=1)
for onesided in (0, 1):
    case(f"STFT onesided={onesided}", "STFT", {"x": values(2, 20, 1), "S": np.array(3, "i8"), "w": values(8, seed=1) + 2,
                                               "L": np.array(8, "i8")}, ["y"], 17, onesided=onesided)


def run_case(name):
    model, inputs, outputs = CASES[name]
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model)
        for key, value in inputs.items():
            np.save(folder / f"{key}.npy", value)
        compiled = driver.run("compile", folder / "model.onnx", "-o", folder / "m.mlpackage", "--precision", "fp32", "--no-manifest",
                              "--json")
        if compiled.code != 0:
            return [f"{name}: {driver.ending(compiled)}"]
        result = driver.run("run", folder / "m.mlpackage", *[f"--input={k}={folder / k}.npy" for k in inputs], "--output-dir",
                            folder, "--json")
        if result.code != 0:
            return [f"{name}: {driver.ending(result)}"]
        written = {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}
    wrong = []
    for output, expected in zip(outputs, EXPECTATIONS[name]):
        reference = np.array(expected["values"], written[output].dtype).reshape(expected["shape"])
        if written[output].shape != reference.shape:
            wrong.append(f"{name}: {output} has shape {written[output].shape}, expected {reference.shape}")
        elif not (error := np.abs(written[output] - reference).max()) <= TOLERANCE * np.abs(reference).max():
            wrong.append(f"{name}: {output} differs by {error:.3g}")
    return wrong


def update(tool):
    expectations = {}
    for name, (model, inputs, outputs) in CASES.items():
        with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
            folder = pathlib.Path(folder)
            (folder / "model.onnx").write_bytes(model)
            files = []
            for key, value in inputs.items():
                files.append(f"{key}={folder / key}.npy")
                np.save(folder / f"{key}.npy", value)
            ran = subprocess.run([*shlex.split(tool), folder / "model.onnx", *files, "--out", folder, "--quiet"], capture_output=True,
                                 text=True)
            if ran.returncode:
                print(f"left out: {name}: {driver.last_line(ran.stdout + ran.stderr)}")
                continue
            results = [np.load(next(folder.glob(f"out_{k}_*.npy"))) for k in range(len(outputs))]
            expectations[name] = [{"shape": list(r.shape), "values": [float(f"{v:.7g}") for v in r.flatten().tolist()]}
                                  for r in results]
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in expectations.items())
    EXPECTED.write_text("{\n" + lines + "\n}\n")


if len(sys.argv) > 2 and sys.argv[1] == "--update":
    update(sys.argv[2])
    sys.exit()
EXPECTATIONS = json.loads(EXPECTED.read_text())
wanted = [name for name in CASES if name in EXPECTATIONS and (len(sys.argv) < 2 or sys.argv[1] in name)]
wrong = [line for lines in driver.parallel(run_case, wanted) for line in lines]
for line in wrong:
    print(line)
print(f"# onnxruntime: {len(wanted)} nodes compared, {len(wrong)} wrong")
sys.exit(1 if wrong else 0)
