#!/usr/bin/env python3
"""coremltools_counts.py NAME... - counts the operations that coremltools ends with for the models of export_zoo.py.

Prints a JSON object for each model: {"name", "iOS16", "iOS18"}, without constants and casts, or {"name", "error"}. Requires an
importable coremltools (CT_DIR), torch, and export_zoo.py in ../shared/tools.
"""
import contextlib
import io
import json
import os
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import driver  # noqa: E402

ZOO = driver.CORPUS.parent / "tools" / "export_zoo.py"


def count(torch, ct, make, inputs, target):
    torch.manual_seed(1234)
    model, x = make().eval(), inputs()
    traced = torch.jit.trace(model, x, check_trace=False)  # with gradients, since coremltools lacks torch's fused attention
    types = [ct.TensorType(shape=t.shape, dtype=float if t.is_floating_point() else int) for t in x]
    converted = ct.convert(traced, inputs=types, convert_to="mlprogram", minimum_deployment_target=getattr(ct.target, target),
                           skip_model_load=True)

    def within(block):
        return sum((op.op_type not in ("const", "cast") and not op.op_type.startswith("constexpr")) + sum(map(within, op.blocks))
                   for op in block.operations)

    return sum(map(within, converted._mil_program.functions.values()))


def main():
    warnings.filterwarnings("ignore")
    sys.path.insert(0, os.environ["CT_DIR"])
    with contextlib.redirect_stderr(io.StringIO()):
        import coremltools as ct
        import torch
    zoo = {}
    source = ZOO.read_text()
    exec(compile(source[:source.index("out = sys.argv[1]")], ZOO, "exec"), zoo)  # the table of models, without the export
    for name in sys.argv[1:]:
        make, inputs, options = zoo["Z"].get(name, (None, None, {}))
        row = {"name": name}
        try:
            if not make or options.get("det"):
                raise ValueError("not traced")
            whole = (lambda: zoo["Last"](make())) if options.get("last") else make
            for target in ("iOS16", "iOS18"):
                with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                    row[target] = count(torch, ct, whole, inputs, target)
        except Exception as error:  # of any kind: coremltools refuses some models
            row["error"] = str(error).splitlines()[0][:200]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
