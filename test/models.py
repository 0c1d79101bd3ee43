"""The real models of the corpus with outputs that other programs computed, and DESIGN's error measure."""
import dataclasses
import os
import pathlib
import re

import numpy as np

import driver

FOLDER = driver.CORPUS / "onnx-models"
# Model: the operator that its refusal names.
REFUSED = {"microllama_fp32": "RMSNorm", "sr_prepost_op18": "com.microsoft.extensions", "qonnx_kwsmlp": "onnx.brevitas"}
# Outputs whose reference lacks the digits that the fp32 budget asks for. onnxruntime computes Sigmoid as a fraction plus
# 0.5, so near 0 it knows multiples of 2^-25 only, and these are of the order of 1e-5.
COARSE = {("yunet_n_dynamic", "obj_8"), ("yunet_n_dynamic", "obj_16"), ("yunet_n_dynamic", "obj_32")}
COARSE_STEP, COARSE_ERROR = 2**-25, 2**-23
LARGEST_BY_DEFAULT = 4096  # of a dimension that the model leaves open
# max |difference| and RMSE, relative to the reference's range; of fp16 the error alone is judged.
BUDGETS = {"fp32": (1e-3, 1e-4), "fp16": (1e-2, float("inf"))}


@dataclasses.dataclass
class Model:
    name: str
    file: pathlib.Path
    folder: pathlib.Path  # of the inputs and references
    inputs: list          # files, in the order of their names
    references: list      # (output's position, file)


def models():
    """Those with references that have to compile."""
    return [model for model in in_folder(FOLDER) if model.name not in REFUSED]


def torch_zoo():
    """What PyTorch exported to the folder that MLC_ZOO names: NAME/model.onnx, input_K.npy, output_K.npy."""
    return in_folder(pathlib.Path(os.environ["MLC_ZOO"])) if "MLC_ZOO" in os.environ else []


def in_folder(parent):
    """Models with references, one in each folder."""
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
    """{input's name: file} for the names that a package or model declares, in their order. Files are in_NAME.npy with every
    unusual character replaced by '_', or input_K.npy."""
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
    """Whether a reference is as COARSE says, and the value as near as such a reference can tell."""
    steps = reference.astype("f8") / COARSE_STEP
    return bool((steps == np.floor(steps)).all() and np.abs(value.astype("f8") - reference).max() <= COARSE_ERROR)


def options(model, facts):
    """What to add to compile: --shape for inputs that are larger than a flexible dimension is by default."""
    shapes = {name: np.load(file, mmap_mode="r").shape for name, file in input_files(model, facts.inputs).items()}
    return [f"--shape={name}={','.join(map(str, shape))}" for name, shape in shapes.items()
            if any(d is None and n > LARGEST_BY_DEFAULT for d, n in zip(facts.shapes.get(name, []), shape))]


@dataclasses.dataclass
class Verdict:
    """What `mlc verify` says of a package beside the references of its model: the tool's own figures and budgets."""
    failure: str = ""      # why there is none
    max_error: float = 0   # of the worst output that says anything
    rmse: float = 0
    floor: float = 0       # of that output; none for packages that have no floor
    outside: tuple = ()    # names of outputs
    silent: int = 0        # outputs that say nothing
    compared: int = 0


def verify(model, package, options, timeout):
    """The verdict of the budget that the package's precision has by default, which for fp16 is the floor's where that is more."""
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
    """(max error, RMSE) as measured() has them; None when the reference says nothing: it is constant, and the value finite where
    it is."""
    value, reference = np.asarray(value), np.asarray(reference)
    silent = reference.size > 1 and np.unique(reference).size < 2
    if silent and (value.shape != reference.shape or np.array_equal(np.isfinite(value), np.isfinite(reference))):
        return None
    return measured(value, reference)


def measured(value, reference):
    """(max error, RMSE), relative to the reference's size; infinite for what must be equal and is not."""
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
