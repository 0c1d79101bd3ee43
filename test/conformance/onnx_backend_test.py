"""Runs ONNX's backend tests end to end: compiles each model to an fp32 package, runs the package, and compares with ONNX's
expected outputs as ONNX's own runner does (rtol 1e-3, atol 1e-7, equal NaN, same type and shape).

Every test must pass or be refused for one of REASONS, which must be recognizable from the errors; refused.txt lists the refused
tests, and --update rewrites it. No test may give wrong results, crash or hang. Where Core ML requires constants, the operands
named in the error are bound and the test is repeated; the first input always stays a run-time input. A package without
operations counts as passed only if the model has no run-time inputs. Tests with random outputs are compiled and run, and only
type and shape are compared. An argument selects the tests whose name contains it and prints each.

If coremltools is importable (CT_DIR), its operator definitions must accept every package, and the values that it can compute by
value inference and torch must agree (test/checkers.py).
"""
import collections
import dataclasses
import pathlib
import re
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checkers  # noqa: E402
import driver  # noqa: E402
import onnx_wire  # noqa: E402

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
SUITES = ("node", "pytorch-converted", "pytorch-operator", "simple")
NEWER = driver.CORPUS / "onnx-node"  # tests of newer ONNX releases than the system's
REFUSED = pathlib.Path(__file__).with_name("refused.txt")
RTOL, ATOL = 1e-3, 1e-7
# Tests with disputed expected values, and why. They are run and listed, but count neither as passed nor as wrong.
GARBAGE = "its data are uninitialised memory, with doubles beyond the range of fp32"
DISPUTED = {"test_operator_addconstant": GARBAGE, "test_operator_add_broadcast": GARBAGE,
            "test_operator_add_size1_right_broadcast": GARBAGE, "test_operator_add_size1_singleton_broadcast": GARBAGE,
            "test_dft_inverse_opset19": "expects the rounding errors of a transform in fp32 where 0 is exact"}
# Tests that the package evaluator cannot judge, because its scatter_along_axis keeps only one update per index.
EQUAL_INDICES = {"test_scatter_elements_with_duplicate_indices", "test_scatter_elements_with_reduction_min"}
SECONDS = 60
# Accepted reasons for refusing a test, recognized by the id and text of an error.
REASONS = [(reason, re.compile(f"(?:{pattern})")) for reason, pattern in (
    ("strings", r"unsupported-(dtype|operator): .*\bstrings?\b"),
    ("sequence or optional as model input or output", r'unsupported-dtype: (in|out)put "[^"]*" is an? (sequence|optional)\b'),
    ("training", r"unsupported-attribute: .*\btraining\b"),
    ("image decoding", r"unsupported-operator: .*\bimage file\b"),
    ("data-dependent output shape", r"(needs-constant|dynamic-shape): .*\bshape depends on data\b"),
    ("integers beyond 32 bits", r"(unsupported-dtype|constant-range): .*\b32-bit\b"),
    ("sub-byte or fp8 model input or output", r"unsupported-dtype: .*\b(float8e\w+|float4e\w+|u?int[24])\b"),
    ("ai.onnx.ml", r"unsupported-operator: ai\.onnx\.ml::"),
    ("preview domain", r"unsupported-operator: ai\.onnx\.preview(\.training)?::"),
    ("empty tensor", r"empty-tensor: "),
    ("rank above 5", r"rank-limit: "))]
RANDOM = "output is random"
NARROW = {17, 18, 19, 20, 21, 22, 23, 24, 25, 26}  # element types for the reason "sub-byte or fp8"


@dataclasses.dataclass
class Outcome:
    name: str
    kind: str  # passed, bound (passed with some inputs bound), folded (passed, no operations at run time), refused,
                 # unfounded (refused for no reason of REASONS), wrong, crash, timeout, disputed
    reason: str = ""
    detail: str = ""
    package: str = ""  # path of the package that is kept for the checkers
    expected: dict = dataclasses.field(default_factory=dict)  # {MIL name of an output: (value, whether it is bfloat16)}


def difference(value, expected):
    """Describes how `value` differs from the expected one; "" if it does not."""
    if expected.dtype != value.dtype:
        return f"type {value.dtype}, expected {expected.dtype}"
    if expected.shape != value.shape:
        return f"shape {value.shape}, expected {expected.shape}"
    with np.errstate(invalid="ignore"):
        close = np.isclose(value, expected, rtol=RTOL, atol=ATOL, equal_nan=True)
    if close.all():
        return ""
    worst = np.argwhere(~close)[0]
    at = tuple(int(i) for i in worst)
    return f"{np.count_nonzero(~close)} of {close.size} differ, first {list(at)}: {value[at]}, expected {expected[at]}"


def data_set_files(folder, kind, names, facts, scratch):
    """Returns the files in the order of `names`. If the model declares bfloat16 and a file has uint16, a copy with bfloat16 is added."""
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.rpartition("_")[2]))
    for i, (name, file) in enumerate(zip(names, files)):
        if facts.types.get(name) == onnx_wire.BFLOAT16:
            files[i] = pathlib.Path(scratch) / file.name
            # If a non-repeated field occurs several times, the last value counts.
            files[i].write_bytes(file.read_bytes() + onnx_wire.field(2, onnx_wire.BFLOAT16))
    return files


def is_empty(file):
    value = onnx_wire.read_tensor(file.read_bytes())
    return value is not None and value.size == 0


def reason_of(error, facts):
    """Returns the reason of REASONS that an error matches, or ""."""
    said = f"{error['id']}: {error['text']}"
    for reason, pattern in REASONS:
        if pattern.match(said) and (not reason.startswith("sub-byte") or NARROW & set(facts.types.values())):
            return reason
    return ""


def refusal(name, facts, result):
    """Classifies a refusal as refused, with its reason, or as unfounded if an error matches no reason."""
    reasons = [reason_of(error, facts) for error in result.errors]
    if not all(reasons):
        error = result.errors[reasons.index("")]
        return Outcome(name, "unfounded", "", f"{error['id']}: {error['text']} ({error['location']})")
    return Outcome(name, "refused", reasons[0], driver.ending(result))


def run_package(package, facts, files, outputs, bound, scratch):
    """Runs one data set and returns (kind, detail)."""
    # mlc removes empty inputs from packages and reports them.
    empty = {name for name, file in zip(facts.inputs, files) if is_empty(file)}
    given = [f"--input={n}={file}" for n, file in zip(facts.inputs, files) if n not in bound and n not in empty]
    result = driver.run("run", package, *given, "--output-dir", scratch, "--json", timeout=SECONDS)
    kind = driver.verdict(result)
    if kind == "refused":  # a compiled test must also run
        return "wrong", driver.ending(result)
    if kind != "ok":
        return kind, driver.ending(result)
    written = {entry["name"]: np.load(entry["file"]) for entry in result.answer["outputs"]}
    for name, file in zip(facts.outputs, outputs):
        expected = onnx_wire.read_tensor(file.read_bytes())
        if expected is None:
            return "wrong", f"output {name}: the expected value has a type that this test does not read"
        if name not in written:
            return "wrong", f"output {name} is missing"
        if text := difference(written[name], expected):
            alike = expected.dtype == written[name].dtype and expected.shape == written[name].shape
            random = alike and any(op.startswith("random_") for op in operators(package))
            return ("refused" if random else "wrong"), f"output {name}: {text}"
    return "ok", ""


def operators(package):
    """Returns {MIL operator: count}, without constants."""
    counts = driver.run("inspect", package, "--json").answer["operators"]
    return {op: n for op, n in counts.items() if op != "const"}


def keep(package, facts, files, outputs, bound):
    """Writes a package's inputs, under their MIL names, into its folder; returns the expected outputs under their MIL names."""
    about = driver.run("inspect", package, "--json").answer
    names = {entry["name"]: entry["mil_name"] for entry in about["inputs"]}
    given = {n: onnx_wire.read_tensor(f.read_bytes()) for n, f in zip(facts.inputs, files) if n in names and n not in bound}
    np.savez(package.with_suffix(".in.npz"), **{names[n]: np.atleast_1d(value) for n, value in given.items()})
    names = {entry["name"]: entry["mil_name"] for entry in about["outputs"]}
    return {names[n]: (onnx_wire.read_tensor(f.read_bytes()), facts.types.get(n) == onnx_wire.BFLOAT16)
            for n, f in zip(facts.outputs, outputs)}


def computed_difference(value, expected, is_bfloat16):
    """Applies difference() to values from another evaluator, which have the types and rank of the package."""
    if value.size == expected.size:
        value = value.reshape(expected.shape)
    if is_bfloat16:  # the package computes in fp32 and rounds at its outputs
        bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
        value = ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).view(np.float32)
    return difference(value.astype(expected.dtype), expected)


def run_test(folder, kept=None):
    """Runs one test. `kept` is a folder in which to keep the package and its inputs, or None."""
    name = f"{folder.parent.name}/{folder.name}"
    facts = onnx_wire.read_facts((folder / "model.onnx").read_bytes())
    data_sets = sorted(folder.glob("test_data_set_*"))
    if not data_sets:
        return Outcome(name, "wrong", detail="there is no data set")
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        package = pathlib.Path(kept or scratch) / f"{name.replace('/', '-')}.mlpackage"
        compile_command = ["compile", folder / "model.onnx", "-o", package, "--precision", "fp32", "--no-manifest", "--json"]
        bound = []
        result = driver.run(*compile_command, timeout=SECONDS)
        for data_set in data_sets:
            files = data_set_files(data_set, "input", facts.inputs, facts, scratch)
            outputs = data_set_files(data_set, "output", facts.outputs, facts, scratch)
            for _ in range(3):  # binding one operand may reveal another that must be constant
                missing = [n for e in result.errors if e["id"] == "needs-constant"
                           for n in re.findall(r"--const (\S+)=FILE", " ".join(e["notes"])) if n not in bound]
                if not missing or not set(missing) <= set(facts.inputs[1:]) or len(data_sets) > 1:
                    break
                bound += sorted(set(missing))
                values = [f"--const={n}={files[facts.inputs.index(n)]}" for n in bound]
                result = driver.run(*compile_command, *values, timeout=SECONDS)
            kind = driver.verdict(result)
            if kind == "refused":
                return refusal(name, facts, result)
            if kind == "ok":
                kind, detail = run_package(package, facts, files, outputs, bound, scratch)
            else:
                detail = driver.ending(result)
            if kind == "refused":
                return Outcome(name, kind, RANDOM, detail)
            if kind == "wrong" and folder.name in DISPUTED:
                return Outcome(name, "disputed", DISPUTED[folder.name], detail)
            if kind != "ok":
                return Outcome(name, kind, detail=detail)
        kind = "bound" if bound else "passed"
        if not operators(package):
            if set(facts.inputs) - set(bound):
                return Outcome(name, "wrong", "", "nothing is left to compute with the run-time inputs")
            kind = "folded"
        if not kept:
            return Outcome(name, kind)
        return Outcome(name, kind, package=str(package), expected=keep(package, facts, files, outputs, bound))


def judge(title, outcomes):
    """Has coremltools check and evaluate the packages of passed tests; returns whether that failed."""
    outcomes = [o for o in outcomes if o.package]
    refused = checkers.check(o.package for o in outcomes)
    for package, texts in refused.items():
        print(f"check_mlpackage: {pathlib.Path(package).stem}: {texts[0]}")
    jobs = [{"package": o.package, "inputs": pathlib.Path(o.package).with_suffix(".in.npz"),
             "outputs": pathlib.Path(o.package).with_suffix(".out.npz")} for o in outcomes]
    agree, stopped, differ = 0, collections.Counter(), []
    for o, job, stop in zip(outcomes, jobs, checkers.compute(jobs)):
        if stop:
            stopped[stop.split(":")[0]] += 1
            continue
        computed = np.load(job["outputs"])
        texts = [computed_difference(computed[n], *expected) for n, expected in o.expected.items()]
        if any(texts) and o.name.split("/")[1] in EQUAL_INDICES:
            stopped["equal indices"] += 1
            continue
        agree += not any(texts)
        differ += [f"{o.name}: {text}" for text in texts if text]
    for text in differ:
        print(f"run_mlpackage: {text}")
    print(f"# {title}: check_mlpackage --strict accepts {len(outcomes) - len(refused)} of {len(outcomes)} packages; run_mlpackage "
          f"computes what ONNX expects from {agree}, something else from {len(differ)}, and cannot compute {stopped.total()}: "
          + ", ".join(f"{n} {operator}" for operator, n in stopped.most_common()))
    return bool(refused or differ)


def run_suite(title, folders, kept):
    outcomes = driver.parallel(lambda folder: run_test(folder, kept), folders)
    count = collections.Counter(o.kind for o in outcomes)
    failures = [o for o in outcomes if o.kind in ("unfounded", "wrong", "crash", "timeout")]
    passed = count["passed"] + count["bound"] + count["folded"]
    print(f"# {title}: {len(outcomes)} tests: {passed} passed ({count['bound']} of them with some operands bound by --const, "
          f"{count['folded']} computed at compile time for want of run-time inputs), {count['refused']} refused, "
          f"{count['disputed']} disputed; refused without a listed reason {count['unfounded']}, wrong {count['wrong']}, crashed {count['crash']}, timed out {count['timeout']}")
    reasons = collections.Counter(o.reason for o in outcomes if o.kind == "refused")
    print(f"# {title}: refused: " + ", ".join(f"{n} {reason}" for reason, n in reasons.most_common()))
    for o in outcomes:
        if o.kind == "disputed":
            print(f"# {title}: disputed: {o.name} {o.reason}: {o.detail}")
    for o in failures:
        print(f"{o.kind}: {o.name}: {o.detail}")
    return outcomes, failures


def compare_refused(outcomes, update):
    """Returns whether refused.txt matches these outcomes."""
    suites = {o.name.split("/")[0] for o in outcomes}
    listed = [line.split("\t") for line in REFUSED.read_text().splitlines()] if REFUSED.exists() else []
    others = [(name, reason) for name, reason in listed if name.split("/")[0] not in suites]
    found = [(o.name, o.reason) for o in outcomes if o.kind == "refused"]
    if update:
        REFUSED.write_text("".join(f"{name}\t{reason}\n" for name, reason in sorted(others + found)))
        return True
    listed = {name: reason for name, reason in listed if name.split("/")[0] in suites}
    found = dict(found)
    for name in sorted(set(listed) | set(found)):
        if listed.get(name) != found.get(name):
            print(f"{name}: {REFUSED.name} says {listed.get(name, 'not refused')}, refused: {found.get(name, 'no')}")
    return listed == found


def main():
    update = "--update" in sys.argv[1:]
    wanted = next((a for a in sys.argv[1:] if a != "--update"), "")
    tests = [f for suite in SUITES for f in sorted((DATA / suite).glob("test_*")) if wanted in f.name]
    newer = [f for f in sorted(NEWER.glob("test_*")) if wanted in f.name]
    if not tests and not newer:
        print(f"# ONNX backend tests: skipped, nothing at {DATA}")
        return driver.SKIPPED
    every, failed = [], False
    unchecked = checkers.missing()
    if unchecked:
        print(f"# ONNX backend tests: packages are not checked, {unchecked}")
    for title, folders in (("ONNX backend tests", tests), ("newer ONNX node tests", newer)):
        if not folders:
            print(f"# {title}: none here")
            continue
        with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
            outcomes, failures = run_suite(title, folders, None if unchecked else scratch)
            failed |= bool(failures) or (not unchecked and judge(title, outcomes))
        every += outcomes
        if wanted:
            for o in outcomes:
                print(f"{o.kind:8} {o.name} {o.reason} {o.detail}")
    if not wanted:
        failed |= not compare_refused(every, update)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
