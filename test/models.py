"""The real models of the corpus with reference outputs from other programs, and the error measure of DESIGN."""
import dataclasses
import os
import pathlib
import re

import numpy as np

import driver

FOLDER = driver.CORPUS / "onnx-models"
# Model: the operator named in its refusal.
REFUSED = {"microllama_fp32": "RMSNorm", "sr_prepost_op18": "com.microsoft.extensions", "qonnx_kwsmlp": "onnx.brevitas"}
# Outputs whose reference is less precise than the fp32 budget. onnxruntime computes Sigmoid as a fraction plus 0.5, so near 0
# its results are multiples of 2^-25, and these outputs are of the order of 1e-5.
COARSE = {("yunet_n_dynamic", "obj_8"), ("yunet_n_dynamic", "obj_16"), ("yunet_n_dynamic", "obj_32")}
COARSE_STEP, COARSE_ERROR = 2**-25, 2**-23
LARGEST_BY_DEFAULT = 4096  # default upper bound of a symbolic dimension
# Limits for the maximum error and the RMSE, relative to the range of the reference; for fp16 only the maximum error is limited.
BUDGETS = {"fp32": (1e-3, 1e-4), "fp16": (1e-2, float("inf"))}


@dataclasses.dataclass
class Model:
    name: str
    file: pathlib.Path
    folder: pathlib.Path  # folder of the inputs and references
    inputs: list  # files, sorted by name
    references: list  # (output index, file)


def models():
    """Returns the models that have references and must compile."""
    return [model for model in in_folder(FOLDER) if model.name not in REFUSED]


def torch_zoo():
    """Returns the models exported by PyTorch to the folder MLC_ZOO: NAME/model.onnx, input_K.npy, output_K.npy."""
    return in_folder(pathlib.Path(os.environ["MLC_ZOO"])) if "MLC_ZOO" in os.environ else []


def in_folder(parent):
    """Returns the models with references, one per folder."""
    found = []
    for folder in sorted(parent.glob("*")):
        files = sorted(folder.glob("*.onnx"))
        data = folder / "ort" if (folder / "ort").is_dir() else folder
        inputs = sorted([*data.glob("in_*.npy"), *data.glob("input_*.npy")])
        references = [(int(re.match(r"out(?:put)?_(\d+)", f.stem)[1]), f)
                      for f in sorted([*data.glob("out_*.npy"), *data.glob("output_*.npy")])]
        if files and references:
            found.append(Model(folder.name, files[0], data, inputs, sorted(references)))
    return found


def input_files(model, names):
    """Returns {input name: file} for the names that a package or model declares, in order. Files are named in_NAME.npy, with
    special characters replaced by '_', or input_K.npy."""
    by_position = {int(f.stem.rpartition("_")[2]): f for f in model.inputs if re.fullmatch(r"input_\d+", f.stem)}
    by_name = {f.stem.removeprefix("in_"): f for f in model.inputs}
    files = {}
    for position, name in enumerate(names):
        file = by_name.get(re.sub(r"[^A-Za-z0-9._-]", "_", name), by_position.get(position))
        if file is None:
            raise LookupError(f"{model.name}: no file for input {name}")
        files[name] = file
    return files


def is_coarse(value, reference):
    """Whether a reference is listed in COARSE and the value agrees with it within its precision."""
    steps = reference.astype("f8") / COARSE_STEP
    return bool((steps == np.floor(steps)).all() and np.abs(value.astype("f8") - reference).max() <= COARSE_ERROR)


def options(model, facts):
    """Returns compile options: --shape for inputs that exceed the default bound of a symbolic dimension."""
    shapes = {name: np.load(file, mmap_mode="r").shape for name, file in input_files(model, facts.inputs).items()}
    return [f"--shape={name}={','.join(map(str, shape))}" for name, shape in shapes.items()
            if any(d is None and n > LARGEST_BY_DEFAULT for d, n in zip(facts.shapes.get(name, []), shape))]


@dataclasses.dataclass
class Verdict:
    """The result of `mlc verify` for a package and the references of its model, with the tool's own errors and budgets."""
    failure: str = ""  # why there is no result
    max_error: float = 0  # of the worst output that is judged
    rmse: float = 0
    floor: float = 0  # floor of that output; none for packages without one
    outside: tuple = ()  # names of outputs outside the budget
    silent: int = 0  # number of outputs that cannot be judged
    compared: int = 0


def verify(model, package, options, timeout):
    """Verifies a package with the default budget of its precision; for fp16 this may be raised by the floor."""
    result = driver.run("verify", model.file, package, "--inputs", model.folder, "--reference", model.folder, *options, "--json",
                        timeout=timeout)
    outputs = result.answer.get("outputs")
    if outputs is None:
        return Verdict(f"verify: {driver.ending(result)}")
    telling = [o for o in outputs if o["tells"]]
    worst = max(telling, key=lambda o: float(o["max_error"]), default={"max_error": 0})
    return Verdict("", float(worst["max_error"]), max((float(o["rmse"]) for o in telling), default=0.0),
                   float(worst.get("floor", {}).get("max_error", 0)), tuple(o["name"] for o in telling if not o["within"]),
                   len(outputs) - len(telling), len(telling))


def error(value, reference):
    """Returns (max error, RMSE) as in measured(); None if the reference is constant and the value finite where it is."""
    value, reference = np.asarray(value), np.asarray(reference)
    silent = reference.size > 1 and np.unique(reference).size < 2
    if silent and (value.shape != reference.shape or np.array_equal(np.isfinite(value), np.isfinite(reference))):
        return None
    return measured(value, reference)


def measured(value, reference):
    """Returns (max error, RMSE), relative to the magnitude of the reference; infinite if values that must be equal are not."""
    value, reference = np.asarray(value), np.asarray(reference)
    if value.shape != reference.shape:
        return float("inf"), float("inf")
    if reference.dtype.kind != "f":
        wrong = np.count_nonzero(value != reference)
        return (float("inf"), float("inf")) if wrong else (0.0, 0.0)
    a, b = value.astype("f8"), reference.astype("f8")
    finite = np.isfinite(b)
    if not (np.isfinite(a) == finite).all() or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf"), float("inf")
    if not finite.any():
        return 0.0, 0.0
    a, b = a[finite], b[finite]
    scale = max(np.ptp(b), np.abs(b).max(), 1e-6)
    return float(np.abs(a - b).max() / scale), float(np.sqrt(np.mean((a - b) ** 2)) / scale)
