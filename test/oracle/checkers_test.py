"""Programs that are not ours judge the packages of the real models and of the torch zoo, both precisions: coremltools'
operator definitions accept every one (check_mlpackage.py --strict), and an evaluator made of coremltools' value inference
and torch (run_mlpackage.py) computes the reference outputs from at least 20 of each.

CT_DIR names an importable coremltools, MLC_ZOO the exported zoo; the two programs are in ../shared/tools. With an
argument, only models whose name contains it are checked.
"""
import pathlib
import re
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checkers  # noqa: E402
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

LEAST_COMPUTED = 20


def compile_and_prepare(job):
    """Compiles one model, writes its inputs by the package's names; returns None when it does not compile."""
    model, precision, folder = job
    package = folder / f"{model.name}-{precision}.mlpackage"
    facts = onnx_wire.read_facts(model.file.read_bytes())
    result = driver.run("compile", model.file, "-o", package, "--precision", precision, *models.options(model, facts),
                        "--json", timeout=checkers.SECONDS)
    if driver.verdict(result) != "ok":
        return None
    about = driver.run("inspect", package, "--json").answer
    names = {entry["name"]: entry["mil_name"] for entry in about["inputs"]}
    files = models.input_files(model, facts.inputs)
    inputs = package.with_suffix(".in.npz")
    np.savez(inputs, **{names[n]: np.atleast_1d(np.load(f)) for n, f in files.items() if n in names})
    outputs = {entry["name"]: entry["mil_name"] for entry in about["outputs"]}
    return {"model": model, "precision": precision, "package": str(package), "inputs": str(inputs),
            "outputs": str(package.with_suffix(".out.npz")), "names": [outputs.get(n) for n in facts.outputs]}


def compare(job):
    """What is outside the budget, or ""."""
    computed = np.load(job["outputs"])
    limits = models.BUDGETS[job["precision"]]
    said = False
    for position, file in job["model"].references:
        reference = np.load(file)
        name = job["names"][position]
        if name not in computed:
            return f"output {name} is missing"
        value = computed[name]
        if (job["model"].name, name) in models.COARSE and job["precision"] == "fp32" and models.is_coarse(value, reference):
            said = True
            continue
        error = models.error(value.reshape(reference.shape) if value.size == reference.size else value, reference)
        if error and (error[0] > limits[0] or error[1] > limits[1]):
            return f"output {name}: max error {error[0]:.2e}, RMSE {error[1]:.2e}"
        said |= error is not None
    return "" if said else "not discriminating"


def check_all(title, found, folder):
    """Prints what both programs say of these models' packages. (failed, how many run_mlpackage computed)"""
    folder.mkdir()
    prepared = driver.parallel(compile_and_prepare, [(m, p, folder) for m in found for p in models.BUDGETS])
    jobs = [job for job in prepared if job]
    refused = checkers.check(job["package"] for job in jobs)
    for package, texts in refused.items():
        for text in texts[:5]:
            print(f"check_mlpackage: {pathlib.Path(package).stem}: {text}")
    print(f"# {title}: check_mlpackage --strict accepts {len(jobs) - len(refused)} of {len(jobs)} packages "
          f"({len(prepared) - len(jobs)} did not compile)")
    failed = bool(refused) or len(jobs) != len(prepared)

    computed, stopped = {"fp32": 0, "fp16": 0}, []
    for job, stop in zip(jobs, checkers.compute(jobs)):
        name = f"{job['model'].name} {job['precision']}"
        text = stop or compare(job)
        if not text:
            computed[job["precision"]] += 1
        elif stop:
            stopped.append(f"{name}: {stop}")
        elif text == "not discriminating":
            print(f"run_mlpackage: {name}: {text}")
        else:
            failed = failed or job["precision"] == "fp32"
            print(f"run_mlpackage: {name}: {text}")
    for text in stopped:
        print(f"run_mlpackage cannot compute {text}")
    print(f"# {title}: run_mlpackage computes the reference outputs from {computed['fp32']} fp32 and {computed['fp16']} fp16 "
          f"packages of {len(found)} models; {len(stopped)} it cannot compute: "
          + (", ".join(sorted({re.split(r'[ :]+', s)[2] for s in stopped})) or "none"))
    return failed, sum(computed.values())


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    groups = {"real models": models.models(), "torch zoo": models.torch_zoo()}
    groups = {title: [m for m in found if wanted in m.name] for title, found in groups.items()}
    if what := checkers.missing() or ("" if any(groups.values()) else f"no {models.FOLDER}"):
        print(f"# checks by coremltools: skipped, {what}")
        return driver.SKIPPED
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        for title, found in groups.items():
            if not found:
                print(f"# {title}: nothing to check")
                continue
            wrong, computed = check_all(title, found, pathlib.Path(scratch) / title.replace(" ", "-"))
            failed |= wrong or (not wanted and computed < LEAST_COMPUTED)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
