"""Every real model with flexible dimensions keeps them in its package and matches onnxruntime at two sizes of each, in fp32 within
1e-3. The same holds if --dim bounds the dimensions or lists both sizes. A size that was not declared is rejected with the option
that would allow it.

ORT_DIR names the folder in which onnxruntime-node is installed. With an argument, only models whose name contains it run.
"""
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checkers  # noqa: E402
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

ORT_RUN = driver.CORPUS.parent / "tools" / "ort_run.mjs"
MAX_ERROR = 1e-3
SECONDS = 300
# Candidates for the second size, as functions of the first; the first one that onnxruntime accepts
# is used.
SECOND = [lambda n: n + 1, lambda n: n + 32, lambda n: n + 64, lambda n: n * 2, lambda n: n // 2]


@dataclasses.dataclass
class Case:
    sizes: dict  # {(input, axis): size} of the dimensions that differ from the model's references
    inputs: dict  # {input: file}
    references: list  # by output


def onnxruntime(model, inputs, folder):
    """Returns reference outputs in the model's order, or None if onnxruntime rejects the inputs."""
    result = subprocess.run(["node", ORT_RUN, model.file, *(f"{n}={f}" for n, f in inputs.items()), "--out", folder, "--quiet"],
                            capture_output=True, text=True, timeout=SECONDS)
    if result.returncode:
        return None
    files = sorted(folder.glob("out_*.npy"), key=lambda f: int(f.stem.split("_")[1]))
    return [np.load(f) for f in files]


def resized(array, shape, seed):
    """Repeats or cuts the elements of the array to fill a shape; adds noise to floats, so that no two parts are equal."""
    result = np.resize(array, shape)
    if result.dtype.kind == "f":
        noise = np.random.default_rng(seed).standard_normal(shape)
        result = (result + 0.05 * np.abs(array).max() * noise).astype(array.dtype)
    return result


def cases(model, facts, folder):
    """Returns the model's own inputs and, for each flexible dimension, a case in which it has another size; also returns the dimensions
    for which onnxruntime only accepts one size although the model declares more."""
    files = models.input_files(model, facts.inputs)
    arrays = {name: np.load(f) for name, f in files.items()}
    dims = {}  # symbol: [(input, axis)]; a dimension without a name stands alone
    for name in facts.inputs:
        for axis, (size, symbol) in enumerate(zip(facts.shapes[name], facts.symbols[name])):
            if size is None:
                dims.setdefault(symbol or (name, axis), []).append((name, axis))
    found, stuck = [], []
    own = folder / "own"
    references = onnxruntime(model, files, own)
    found.append(Case({}, files, references))
    for index, (symbol, places) in enumerate(list(dims.items())):
        first = arrays[places[0][0]].shape[places[0][1]]
        for attempt, second in enumerate(f(first) for f in SECOND):
            if second < 1 or second == first:
                continue
            shapes = {n: list(a.shape) for n, a in arrays.items()}
            for name, axis in places:
                shapes[name][axis] = second
            where = folder / f"case{index}_{attempt}"
            where.mkdir()
            inputs = {}
            for name, array in arrays.items():
                inputs[name] = where / (re.sub(r"\W", "_", name) + ".npy")
                np.save(inputs[name], resized(array, shapes[name], index) if shapes[name] != list(array.shape) else array)
            references = onnxruntime(model, inputs, where / "out")
            if references is not None:
                found.append(Case({place: second for place in places}, inputs, references))
                break
        else:
            stuck.append(f"{model.name} {places[0][0]}")
            del dims[symbol]
    return dims, found, stuck


def compile_model(model, package, options):
    result = driver.run("compile", model.file, "-o", package, "--precision", "fp32", *options, "--json", timeout=SECONDS)
    return "" if driver.verdict(result) == "ok" else f"compile {' '.join(options)}: {driver.ending(result)}"


def compare(model, facts, package, case, folder):
    given = [f"--input={n}={f}" for n, f in case.inputs.items()]
    result = driver.run("run", package, *given, "--output-dir", folder, "--json", timeout=SECONDS)
    if driver.verdict(result) != "ok":
        return f"run {case.sizes}: {driver.ending(result)}"
    written = {entry["name"]: entry["file"] for entry in result.answer["outputs"]}
    for name, reference in zip(facts.outputs, case.references):
        value = np.load(written[name])
        if (model.name, name) in models.COARSE:  # the reference is too coarse
            continue
        error = models.error(value, reference)
        if error and error[0] > MAX_ERROR:
            return f"{case.sizes}: output {name} {value.shape}: max error {error[0]:.2e}"
    return ""


def measure(model):
    """Returns (problems, dimensions, sizes compared, packages, skipped dimensions, folder)."""
    facts = onnx_wire.read_facts(model.file.read_bytes())
    problems, compared, packages = [], 0, []
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="mlc-"))
    dims, found, stuck = cases(model, facts, scratch)
    if found[0].references is None:
        return ["onnxruntime refuses the model's own inputs"], len(dims), 0, [], stuck, scratch
    sizes = {}  # symbol: both sizes
    for symbol, places in dims.items():
        name, axis = places[0]
        sizes[symbol] = sorted({c.sizes.get((name, axis), np.load(c.inputs[name]).shape[axis]) for c in found})
    named = {s: v for s, v in sizes.items() if isinstance(s, str)}
    large = {s: v for s, v in named.items() if v[-1] > models.LARGEST_BY_DEFAULT}
    variants = {
        "open": [f"--dim={s}=1..{v[-1]}" for s, v in large.items()],
        "bounded": [f"--dim={s}={v[0]}..{v[-1]}" for s, v in named.items()],
        "listed": [f"--dim={s}={','.join(map(str, v))}" for s, v in named.items()],
    }
    if not named:
        del variants["bounded"], variants["listed"]
    for variant, options in variants.items():
        package = scratch / f"{variant}.mlpackage"
        if text := compile_model(model, package, options):
            problems.append(text)
            break
        packages.append(package)
        about = driver.run("inspect", package, "--json").answer
        for entry in about["inputs"]:
            for axis in range(len(entry["shape"])):
                varied = any((entry["name"], axis) in places for places in dims.values())
                if varied and isinstance(entry["shape"][axis], int):
                    problems.append(f"{variant}: {entry['name']} is no longer flexible in dimension {axis}")
        for case in found:
            if text := compare(model, facts, package, case, scratch / "results"):
                problems.append(f"{variant} {text}")
            else:
                compared += 1
        if variant != "bounded":
            continue
        for symbol, (name, axis) in ((s, dims[s][0]) for s in named):
            array = np.load(found[0].inputs[name])
            shape = list(array.shape)
            shape[axis] = sizes[symbol][-1] + 1
            np.save(scratch / "large.npy", np.resize(array, shape))
            given = {**found[0].inputs, name: scratch / "large.npy"}
            result = driver.run("run", package, *(f"--input={n}={f}" for n, f in given.items()), "--json")
            said = " ".join(" ".join([e["text"], *e["notes"]]) for e in result.errors)
            if result.code != 1 or f"--dim {symbol}=" not in said:
                problems.append(f"{symbol} beyond its bounds: {said or driver.ending(result)}")
    return problems, len(dims), compared, packages, stuck, scratch


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if not ORT_RUN.exists() or "ORT_DIR" not in os.environ or not shutil.which("node"):
        print(f"# flexible shapes: skipped, no onnxruntime-node (ORT_DIR), node or {ORT_RUN}")
        return driver.SKIPPED
    flexible = []
    for model in models.models():
        facts = onnx_wire.read_facts(model.file.read_bytes())
        if wanted in model.name and any(None in facts.shapes[name] for name in facts.inputs):
            flexible.append(model)
    if not flexible:
        print(f"# flexible shapes: skipped, no models in {models.FOLDER}")
        return driver.SKIPPED
    failed, dims, compared, packages, one_size = 0, 0, 0, [], []
    results = driver.parallel(measure, flexible)
    for model, (problems, count, runs, made, stuck, _) in zip(flexible, results):
        print(f"{model.name:28} {count} dimensions, {runs} runs agree")
        for text in problems:
            print(f"FAILED: {model.name}: {text}")
        failed += bool(problems)
        dims, compared, packages, one_size = dims + count, compared + runs, packages + made, one_size + stuck
    print(f"# flexible shapes: {len(flexible) - failed} of {len(flexible)} models, {dims} dimensions at two sizes each, "
          f"{compared} runs within {MAX_ERROR:g} of onnxruntime; not compared: "
          + ", ".join(f"{m} {o}" for m, o in sorted(models.COARSE))
          + "; one size only in onnxruntime: " + (", ".join(one_size) or "none"))
    if packages and not checkers.missing():
        # coremltools does not know the bounds of flexible sizes, from which mlc infers the sizes of some slices.
        refused = {package: other for package, texts in checkers.check(packages).items()
                   if (other := [text for text in texts if "is more specific than inferred" not in text])}
        for package, texts in refused.items():
            print(f"FAILED: {package}", *texts, sep="\n  ")
        print(f"# flexible shapes: check_mlpackage --strict accepts {len(packages) - len(refused)} of {len(packages)} packages")
        failed += bool(refused)
    for *_, scratch in results:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
