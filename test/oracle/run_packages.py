"""run_packages.py TOOL JOBS.json - runs TOOL (run_mlpackage.py) on many packages, imported once and forked for each one.

JOBS.json: [{"package", "inputs" (npz), "outputs" (npz to write)}]. Prints one JSON list: per job "" when it was computed,
or what stopped it, the operator first.
"""
import contextlib
import functools
import importlib.util
import json
import multiprocessing
import os
import sys


def compute(job):
    sys.argv = ["run", job["package"], "--inputs", job["inputs"], "--out", job["outputs"]]
    with open(os.devnull, "w") as nowhere, mil.Function({}):  # a place for the defaults that inference asks for
        sys.stdout = nowhere
        try:
            tool.main()
        except (Exception, SystemExit) as error:
            if isinstance(error, SystemExit) and not error.code:
                return ""
            operator, frame = "loading", error.__traceback__
            while frame:
                if frame.tb_frame.f_code.co_name == "run_block":
                    operator = frame.tb_frame.f_locals.get("t", operator)
                frame = frame.tb_next
            return f"{operator}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}"
    return ""


def refuse_interleaved(infer):
    """Wraps the value inference of concat, which ignores interleave (coremltools, mil/ops/defs/iOS15/tensor_operation.py)."""
    @functools.wraps(infer)
    def wrapped(op):
        if op.interleave.val:
            raise NotImplementedError("value_inference() of concat ignores interleave")
        return infer(op)
    return wrapped


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("run_mlpackage", sys.argv[1])
    tool = importlib.util.module_from_spec(spec)
    with open(sys.argv[2]) as file:
        jobs = json.load(file)
    sys.argv = ["run", "--help"]  # the tool runs its main() when it is loaded
    with contextlib.redirect_stdout(None), contextlib.suppress(SystemExit):
        spec.loader.exec_module(tool)
    from coremltools.converters.mil import mil
    from coremltools.converters.mil.mil.ops.defs.iOS15.tensor_operation import concat
    concat.value_inference = refuse_interleaved(concat.value_inference)
    with multiprocessing.get_context("fork").Pool(int(os.environ.get("MLC_JOBS", os.cpu_count() or 1)),
                                                  maxtasksperchild=1) as pool:
        answers = pool.map(compute, jobs, chunksize=1)
    print(json.dumps(answers))
