"""Tests fp16 models: the fp16 twins (../fp16_twins.py) of ONNX's node tests, of the cases of onnxruntime_cases_test.py and of
random graphs. Compiled with default options and with --precision fp32, a twin must compute what its fp32 model computes.

Expected values are those of the fp32 model, from ONNX, onnxruntime or NumPy. The inputs of a twin are rounded to fp16. Where
this rounding changes a result (a floor, a tie, a cancelling sum), the fp32 model is run on the rounded inputs instead. A result
must not be infinite or NaN if the expected value is finite and representable in fp16. MLC_FP16_TWINS is the number of node
tests, sampled evenly (0: all). An argument selects the tests whose name contains it and prints each.
"""
import collections
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "differential"))
import differential_test  # noqa: E402
import driver  # noqa: E402
import fp16_twins  # noqa: E402
import onnx_backend_test as backend  # noqa: E402
import onnx_wire as wire  # noqa: E402
from nodes import CASES  # noqa: E402
from node_cases import references  # noqa: E402

COUNT, GRAPHS = int(os.environ.get("MLC_FP16_TWINS", 130)), 24
TOLERANCE = 1e-2  # relative to the largest magnitude in an output, as `mlc verify` allows for fp16


def rounded(array):
    return fp16_twins.narrowed(array) if array.dtype == np.float32 else array


def difference(value, expected):
    """Describes the error in an output of the twin; "" if there is none."""
    if value.shape != expected.shape:
        return f"shape {value.shape}, expected {expected.shape}"
    wanted = np.float16 if expected.dtype == np.float32 else expected.dtype
    if value.dtype != wanted:
        return f"type {value.dtype}, expected {wanted}"
    if value.dtype.kind != "f":
        unequal = np.count_nonzero(value != expected)
        return f"{unequal} of {value.size} unequal" if unequal else ""
    value, expected = value.astype("f8"), expected.astype("f8")
    held = np.isfinite(expected) & (np.abs(expected) <= fp16_twins.LARGEST)
    if lost := np.count_nonzero(held & ~np.isfinite(value)):
        return f"{lost} of {value.size} infinite or NaN"
    if np.any(np.isnan(expected) != np.isnan(value)):
        return "NaN elsewhere"
    scale = np.abs(expected[held]).max(initial=1e-3)
    error = np.abs(value[held] - expected[held]).max(initial=0) / scale
    return f"error {error:.2g}" if error > TOLERANCE else ""


class Refused(Exception):
    pass


def computed(model, inputs, bound, folder, *options):
    """Returns {name: array}, the outputs of a package, or of the model itself without options."""
    folder.mkdir(parents=True)
    (folder / "m.onnx").write_bytes(model)
    for name, array in inputs.items():
        np.save(folder / f"{file_of(name)}.npy", np.require(array, requirements="C"))
    constants = [f"--const={name}={folder / file_of(name)}.npy" for name in bound]
    package = folder / "m.mlpackage"
    result = driver.run("compile", folder / "m.onnx", "-o", package, *options, *constants, "--no-manifest", "--json")
    if driver.verdict(result) == "refused":
        missing = {n for e in result.errors if e["id"] == "needs-constant"
                   for n in re.findall(r"--const (\S+)=FILE", " ".join(e["notes"]))} - set(bound)
        if missing and missing < set(inputs) and len(bound) < 4:
            return computed(model, inputs, sorted({*bound, *missing}), folder / "bound", *options)
        raise Refused(driver.ending(result))
    if result.code != 0:
        raise AssertionError(driver.ending(result))
    given = [f"--input={n}={folder / file_of(n)}.npy" for n, a in inputs.items() if n not in bound and a.size]
    result = driver.run("run", package, *given, "--output-dir", folder, "--json")
    if result.code != 0:
        raise AssertionError(driver.ending(result))
    return {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}


def file_of(name):
    return "in_" + re.sub(r"\W", "_", name)


def compare(model, inputs, expected, folder):
    """Returns descriptions of the errors of a model's twin; None if there is no twin."""
    made = fp16_twins.twin(model)
    if made is None:
        return None
    inputs = {name: rounded(array) for name, array in inputs.items()}
    wrong, wide = [], None

    def in_fp32():
        full = {name: a.astype("f4") if a.dtype == np.float16 else a for name, a in inputs.items()}
        return computed(model, full, [], folder / "wide", "--precision", "fp32")

    for i, options in enumerate(((), ("--precision", "fp32"))):
        try:
            written = computed(made, inputs, [], folder / str(i), *options)
        except Refused as refusal:
            in_fp32()  # the fp32 model is refused too
            return [f"refused, but not in fp32: {refusal}"]
        for name, reference in expected.items():
            text = difference(written[name], reference)
            if text and wide is None:
                wide = in_fp32()
            if text and (text := difference(written[name], wide[name])):
                wrong.append(f"{' '.join(options) or 'default'}: {name}: {text}")
    return wrong


def node_test(folder, scratch):
    model = (folder / "model.onnx").read_bytes()
    facts = wire.read_facts(model)
    if not facts.dense or wire.BFLOAT16 in facts.types.values():
        return None
    data = folder / "test_data_set_0"
    arrays = [[wire.read_tensor(f.read_bytes()) for f in backend.data_set_files(data, kind, names, facts, scratch)]
              for kind, names in (("input", facts.inputs), ("output", facts.outputs))]
    if any(a is None for a in arrays[0] + arrays[1]):
        return None
    return compare(model, dict(zip(facts.inputs, arrays[0])), dict(zip(facts.outputs, arrays[1])), scratch / "run")


def case_test(name, scratch):
    case = CASES[name]
    if case.refused:
        return None
    expected = dict(zip(case.outputs, references(name)))
    return compare(case.model, case.inputs, expected, scratch / "run")


def graph_test(made, scratch):
    """Compares the twin of a random graph with the fp32 package, which differential_test.py compares with onnxruntime."""
    inputs = {value.name: rounded(array) for value, array in made.feeds()}
    full = {name: a.astype("f4") if a.dtype == np.float16 else a for name, a in inputs.items()}
    expected = computed(made.model(), full, [], scratch / "expected", "--precision", "fp32")
    return compare(made.model(), inputs, expected, scratch / "run")


def random_graphs(count):
    """Returns the first random graphs of differential_test.py that have a twin and no symbolic dimension."""
    since, planned, seed = differential_test.supported(), collections.Counter(), 0
    while count:
        made = differential_test.generate(seed, planned, since)
        seed += 1
        if made is None or made.symbols or fp16_twins.twin(made.model()) is None:
            continue
        planned.update(set(made.operators))
        count -= 1
        yield f"graph of seed {seed - 1}: {' '.join(made.operators)}", made


def outcome(job):
    """Returns (kind, name, descriptions)."""
    name, test = job
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        try:
            wrong = test(pathlib.Path(scratch))
        except Refused as refusal:
            return "refused", name, [str(refusal)]
        except AssertionError as fault:
            wrong = [str(fault)]
    return ("no twin" if wrong is None else "wrong" if wrong else "agrees"), name, wrong or []


def main():
    wanted = next(iter(sys.argv[1:]), "")
    folders = [f for place in [*(backend.DATA / suite for suite in backend.SUITES), backend.NEWER]
               for f in sorted(place.glob("test_*")) if wanted in f.name and f.name not in backend.DISPUTED
               and (f / "test_data_set_0").exists()]
    if not wanted and 0 < COUNT < len(folders):
        folders = [folders[i * len(folders) // COUNT] for i in range(COUNT)]
    jobs = [(f"{f.parent.name}/{f.name}", lambda scratch, f=f: node_test(f, scratch)) for f in folders]
    every = [name for name in CASES if wanted in name]
    if not wanted and COUNT:  # attention tests, whose masks are constants, and a sample of the others
        every = [name for i, name in enumerate(every) if "ttention" in CASES[name].operator or i % 4 == 0]
    jobs += [(name, lambda scratch, name=name: case_test(name, scratch)) for name in every]
    if not wanted:
        jobs += [(name, lambda scratch, made=made: graph_test(made, scratch)) for name, made in random_graphs(GRAPHS)]
    outcomes = driver.parallel(outcome, jobs)
    for kind, name, texts in outcomes:
        if kind == "wrong" or wanted:
            print(f"{kind}: {name}: {'; '.join(texts)}")
    counts = collections.Counter(kind for kind, _, _ in outcomes)
    print("# fp16 twins: " + ", ".join(f"{counts[kind]} {kind}" for kind in ("agrees", "wrong", "refused", "no twin")))
    if not folders and not wanted:
        print(f"# fp16 twins of ONNX's node tests: skipped, nothing at {backend.DATA}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
