"""decode_weights.py JOBS.json: weights as coremltools decodes them, or compresses and decodes them.

A job is {"package", "outputs" (npz to write: value name -> fp32 array), "scheme"}: without a scheme, the package's own constants
and what its constexpr operations evaluate to; with one, the package is compressed by coremltools.optimize first. Prints a JSON
list with the seconds that compressing took, or the error, for each job. CT_DIR names an importable coremltools.
"""
import json
import logging
import os
import sys
import time
import warnings

sys.path.insert(0, os.environ["CT_DIR"])
logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
import coremltools as ct
import coremltools.converters.mil.frontend.milproto.load as milload
import coremltools.optimize as cto
import numpy as np
from coremltools.converters.mil.mil.var import Var

DECODED = {}  # results of constexpr operations, which later ones take as operands
inferred = Var.val.fget
Var.val = property(lambda self: DECODED[id(self)] if id(self) in DECODED else inferred(self))


def config(scheme):
    name, _, options = scheme.partition(":")
    options = dict(option.split("=") for option in options.split(",") if option)
    if name.startswith("pal"):
        group = options.get("group")
        more = {"granularity": "per_grouped_channel", "group_size": int(group)} if group else {}
        return cto.coreml.palettize_weights, cto.coreml.OpPalettizerConfig(mode="kmeans", nbits=int(name[3:]), weight_threshold=2047, **more)
    block = options.get("block")
    more = {"granularity": "per_block", "block_size": int(block)} if block not in (None, "row") else {}
    return cto.coreml.linear_quantize_weights, cto.coreml.OpLinearQuantizerConfig(
        mode="linear_symmetric", dtype=name, weight_threshold=2047, **more)


def weights_of(model):
    """Returns {value name: fp32 array} of the constants and decoded constants that have at least two dimensions."""
    found = {}
    for function in milload.load(model._spec, model._spec.specificationVersion, model.weights_dir).functions.values():
        for op in function.operations:
            if op.op_type.startswith("constexpr_"):
                value = op.materialized_val_inference()
                values = value if isinstance(value, tuple) else (value,)
                DECODED.update((id(output), decoded) for output, decoded in zip(op.outputs, values))
            elif op.op_type == "const":
                value = op.outputs[0].val
            else:
                continue
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size >= 2048 and value.ndim > 1:
                found[op.outputs[0].name] = value.astype(np.float32)
    DECODED.clear()  # objects of another program may have the same addresses
    return found


def run(job):
    model = ct.models.MLModel(job["package"], skip_model_load=True)
    seconds = 0
    if job.get("scheme"):
        function, op_config = config(job["scheme"])
        started = time.perf_counter()
        model = function(model, cto.coreml.OptimizationConfig(global_config=op_config))
        seconds = time.perf_counter() - started
        saved = job["outputs"] + ".mlpackage"
        model.save(saved)
        model = ct.models.MLModel(saved, skip_model_load=True)
    np.savez(job["outputs"], **weights_of(model))
    return {"seconds": seconds}


if __name__ == "__main__":
    answers = []
    for job in json.load(open(sys.argv[1])):
        try:
            answers.append(run(job))
        except Exception as error:  # reported by the caller
            answers.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(answers))
