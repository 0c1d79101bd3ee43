"""Every real model with references compiles in fp32 and in fp16, and its package, executed from its bytes, matches onnxruntime or
PyTorch: fp32 within 1e-3, fp16 within 1e-2 or 1.5 times the error of rounded constants (the floor of `mlc verify`, which judges
fp16), except for the models in OUTSIDE. Unsupported models are rejected by a message that names the operator. The figures are
computed here, not by mlc.

With an argument, only models whose name contains it run.
"""
import dataclasses
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

# Models that exceed a budget.
OUTSIDE = {"fp32": set(), "fp16": set()}
SECONDS = 600


@dataclasses.dataclass
class Measured:
    model: str
    precision: str
    failure: str = ""  # why there is no figure
    max_error: float = 0  # of the worst conclusive output
    rmse: float = 0
    silent: int = 0  # outputs whose reference does not discriminate
    coarse: int = 0  # outputs that agree within the precision of a coarse reference (fp32)
    compared: int = 0
    note: str = ""
    verdict: models.Verdict = None  # of fp16
    floor: str = ""  # of fp16

    @property
    def within(self):
        if self.verdict:
            return not self.failure and not self.verdict.outside
        limits = models.BUDGETS[self.precision]
        return not self.failure and self.max_error <= limits[0] and self.rmse <= limits[1]


def measure(job):
    model, precision = job
    facts = onnx_wire.read_facts(model.file.read_bytes())
    measured = Measured(model.name, precision)
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        package = pathlib.Path(scratch) / "model.mlpackage"
        result = driver.run("compile", model.file, "-o", package, "--precision", precision, *models.options(model, facts),
                            "--json", timeout=SECONDS)
        if driver.verdict(result) != "ok":
            measured.failure = f"compile: {driver.ending(result)}"
            return measured
        given = [f"--input={n}={file}" for n, file in models.input_files(model, facts.inputs).items()]
        result = driver.run("run", package, *given, "--output-dir", scratch, "--json", timeout=SECONDS)
        if driver.verdict(result) != "ok":
            measured.failure = f"run: {driver.ending(result)}"
            return measured
        written = {entry["name"]: entry["file"] for entry in result.answer["outputs"]}
        for position, file in model.references:
            name = facts.outputs[position]
            if name not in written:
                measured.failure = f"output {name} is missing"
                return measured
            value, reference = np.load(written[name]), np.load(file)
            if (model.name, name) in models.COARSE and precision == "fp32" and models.is_coarse(value, reference):
                measured.coarse += 1
                continue
            error = models.error(value, reference)
            if error is None:
                measured.silent += 1
                continue
            measured.compared += 1
            measured.max_error = max(measured.max_error, error[0])
            measured.rmse = max(measured.rmse, error[1])
        if precision == "fp16":
            measured.verdict = models.verify(model, package, models.options(model, facts), SECONDS)
            measured.failure = measured.verdict.failure
            measured.floor = f"  floor {measured.verdict.floor:.1e}"
        if not measured.within:
            measured.note = first_layer_outside(model, package, precision)
    return measured


def first_layer_outside(model, package, precision):
    """Returns the first operation whose result is outside the budget, according to mlc's comparison of layers."""
    result = driver.run("verify", model.file, package, "--inputs", model.folder, "--budget", precision, "--layers", "--json",
                        timeout=SECONDS)
    layers = result.answer.get("layers")
    if layers is None:
        return driver.ending(result)
    outside = next((layer for layer in layers if not layer["within"]), None)
    return f"first at {outside['operator']} {outside['name']}" if outside else "no inner value is outside the budget"


def check_refusal(name):
    """Returns what is wrong with the rejection of a model, or ""."""
    file = next((models.FOLDER / name).glob("*.onnx"))
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        result = driver.run("compile", file, "-o", f"{scratch}/model.mlpackage", "--json", timeout=SECONDS)
    if driver.verdict(result) != "refused":
        return driver.ending(result) if result.code else "it compiled"
    said = " ".join(e["text"] + e["location"] for e in result.errors)
    return "" if models.REFUSED[name] in said else f"{models.REFUSED[name]} is not named: {said[:200]}"


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    found = [m for m in models.models() if wanted in m.name]
    if not found:
        print(f"# real models: skipped, no corpus at {models.FOLDER}")
        return driver.SKIPPED
    failures = []
    results = driver.parallel(measure, [(m, p) for m in found for p in models.BUDGETS])
    print(f"{'model':28} {'precision':9} {'max error':>10} {'RMSE':>10}  outputs")
    for m in results:
        silent = f", {m.silent} not discriminating" if m.silent else ""
        silent += f", {m.coarse} as near as their reference can tell" if m.coarse else ""
        if m.failure:
            print(f"{m.model:28} {m.precision:9} {m.failure}")
            failures.append(f"{m.model} {m.precision}: {m.failure}")
        else:
            print(f"{m.model:28} {m.precision:9} {m.max_error:10.2e} {m.rmse:10.2e}  {m.compared}{silent}{m.floor}"
                  f"{'' if m.within else '  OUTSIDE: ' + m.note}")
    for precision in models.BUDGETS:
        ran = [m for m in results if m.precision == precision and not m.failure]
        outside = [m for m in ran if not m.within]
        silent = [m.model for m in ran if not m.compared]
        print(f"# real models, {precision}: {len(ran)} of {len(found)} ran, {sum(m.within and m.compared > 0 for m in ran)} within "
              f"the budget, not discriminating: {', '.join(silent) or 'none'}")
        for m in ran:
            if m.coarse:
                print(f"# real models, {precision}: {m.model}: the references of {m.coarse} outputs are multiples of 2^-25, "
                      "too coarse for the budget; they agree within 2^-23")
        for m in outside:
            print(f"# real models, {precision}: {m.model} is outside: {m.max_error:.2e}, RMSE {m.rmse:.2e}; {m.note}")
        missed = {m.model for m in outside}
        failures += [f"{name} is outside the {precision} budget" for name in sorted(missed - OUTSIDE[precision])]
        failures += [f"{m.model} is within the {precision} budget now: remove it from OUTSIDE" for m in ran
                     if m.model in OUTSIDE[precision] - missed]
    refused = [name for name in models.REFUSED if wanted in name and (models.FOLDER / name).is_dir()]
    for name, text in zip(refused, driver.parallel(check_refusal, refused)):
        if text:
            failures.append(f"{name} must be rejected: {text}")
    print(f"# real models: {len(refused)} unsupported models checked")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
