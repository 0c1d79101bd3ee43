"""The share of real models that is in fp16 with default options, and the resulting errors of their outputs.

The share of the work and the number of segments are those of lib/analysis/fp16_share.h. They are measured at target iOS18, which has
fp16 forms of all operators, and at the default target, where the limits apply to operations that the target supports in fp16.
Outputs are compared with the stored references by the figures of models.py; the limit is 1e-2, or 1.5 times the floor that `mlc
verify` prints. Limits over all models: the mean share, the number of models with at least 95 %, with one segment, and within the
error limit. Every operation in fp32 needs a reason from the list, and every output that the compiler found outside its budget must
be in the headline.

Models are those of the corpus and, if MLC_ZOO is set, of the zoo, without duplicates; limits over all models are only checked with
both. With an argument, only models whose name contains it run.
"""
import collections
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

REASONS = {"overflow", "index", "angle", "logarithm", "loop", "no-fp16-form", "rounding"}
SECONDS = 600
MEAN_SHARE, LEAST_SHARE, OF_MODELS, IN_ONE_SEGMENT, WITHIN = 0.96, 0.95, 0.93, 0.85, 0.97


def measure(model):
    """Returns {"failure"} or the figures of a model."""
    facts = onnx_wire.read_facts(model.file.read_bytes())
    found = {"name": model.name, "failure": "", "error": 0.0, "outside": [], "broken": False, "reasons": collections.Counter()}
    options = models.options(model, facts)
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        package = pathlib.Path(scratch) / "model.mlpackage"
        for target, words in (("default", []), ("iOS18", ["--target", "iOS18"])):
            made = driver.run("compile", model.file, "-o", package, "--force", *options, *words, "--json", timeout=SECONDS)
            if made.code != 0:
                return {**found, "failure": f"compile: {driver.ending(made)}"}
            wide = [d for d in made.answer["decisions"] if d["kind"] == "fp32"]
            unknown = sorted({d.get("id", "none") for d in wide} - REASONS)
            if unknown:
                return {**found, "failure": f"reasons {unknown}"}
            if target == "default":
                has = 1 - made.answer["no_fp16_form_share"]
                found["default"] = made.answer["fp16_share"]
                found["of_fp16_forms"] = min(1, found["default"] / has) if has else 1
                found["default_segments"] = made.answer["fp16_segments"]
        found["share"], found["segments"] = made.answer["fp16_share"], made.answer["fp16_segments"]
        found["reasons"].update(d["id"] for d in wide)
        exceeded = made.answer.get("measurement", {}).get("exceeded", [])
        if exceeded and not any("fp16 exceeds its budget" in note for note in made.answer["notes"]):
            return {**found, "failure": "an output beyond its budget is not said"}
        found["exceeded"] = [e["output"] for e in exceeded]
        given = [f"--input={n}={file}" for n, file in models.input_files(model, facts.inputs).items()]
        ran = driver.run("run", package, *given, "--output-dir", scratch, "--json", timeout=SECONDS)
        if ran.code != 0:
            return {**found, "failure": f"run: {driver.ending(ran)}"}
        written = {entry["name"]: entry["file"] for entry in ran.answer["outputs"]}
        for position, file in model.references:
            value, reference = np.load(written[facts.outputs[position]]), np.load(file)
            if reference.dtype.kind == "f" and value.shape == reference.shape:
                found["broken"] |= bool((~np.isfinite(value) & np.isfinite(reference)).any())
            error = models.error(value, reference)
            if error and reference.dtype.kind == "f" and value.shape == reference.shape:
                found["error"] = max(found["error"], error[0])
        verdict = models.verify(model, package, options, SECONDS)
        if verdict.failure:
            return {**found, "failure": verdict.failure}
        found["outside"], found["floor"] = list(verdict.outside), verdict.floor
    return found


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    corpus = models.models()
    names = {m.name.removeprefix("zoo_") for m in corpus}
    found = [m for m in corpus + [m for m in models.torch_zoo() if m.name not in names] if wanted in m.name]
    if not found:
        print(f"# shares of fp16: skipped, no corpus at {models.FOLDER}")
        return driver.SKIPPED
    results = driver.parallel(measure, found)
    failures = [f"{r['name']}: {r['failure']}" for r in results if r["failure"]]
    results = [r for r in results if not r["failure"]]
    print(f"{'model':28} {'iOS18':>7} {'default':>8} {'of forms':>8} {'segments':>8} {'error':>9} {'floor':>9}")
    for r in sorted(results, key=lambda r: r["share"]):
        why = ", ".join(f"{count} {reason}" for reason, count in r["reasons"].most_common())
        print(f"{r['name']:28} {r['share']:7.1%} {r['default']:8.1%} {r['of_fp16_forms']:8.1%} {r['segments']:8}"
              f" {r['error']:9.1e} {r['floor']:9.1e}  {why}"
              f"{'  OUTSIDE ' + ', '.join(r['outside']) if r['outside'] else ''}"
              f"{'  said: ' + ', '.join(r['exceeded']) if r['exceeded'] else ''}")
    failures += [f"{r['name']}: NaN or infinite where the reference is not" for r in results if r["broken"]]
    if not wanted and results:
        count = len(results)
        figures = [("mean share of the work in fp16", sum(r["share"] for r in results) / count, MEAN_SHARE),
                   ("models with 95 % of it", sum(r["share"] >= LEAST_SHARE for r in results) / count, OF_MODELS),
                   ("models in one segment", sum(r["segments"] <= 1 for r in results) / count, IN_ONE_SEGMENT),
                   ("default target: mean share of what it has in fp16", sum(r["of_fp16_forms"] for r in results) / count, MEAN_SHARE),
                   ("default target: models with 95 % of it", sum(r["of_fp16_forms"] >= LEAST_SHARE for r in results) / count, OF_MODELS),
                   ("default target: models in one segment, but for what it lacks",
                    sum(r["default_segments"] <= 1 or r["of_fp16_forms"] > 1 - 1e-9 for r in results) / count, IN_ONE_SEGMENT),
                   ("models within what is allowed", sum(not r["outside"] for r in results) / count, WITHIN)]
        for text, figure, limit in figures:
            print(f"# {text}: {figure:.1%} of {count} models")
            if figure < limit and models.torch_zoo():
                failures.append(f"{text}: {figure:.1%}, minimum {limit:.0%}")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"# shares of fp16: {len(results)} models, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
