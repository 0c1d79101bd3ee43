"""ONNX's backend tests through the whole path: compile to a package (fp32), run the package's bytes, compare with ONNX's
own outputs as its runner does (rtol 1e-3, atol 1e-7, equal NaN, same type and shape).

Every test passes or is refused with a known error; none is wrong, crashes or hangs. Where Core ML wants constants, the
operands that the error names are bound and the test is tried again; it passes if a run-time input remains. With an
argument, only tests whose name contains it run, and each is printed.
"""
import collections
import dataclasses
import pathlib
import re
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire  # noqa: E402

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
SUITES = ("node", "pytorch-converted", "pytorch-operator", "simple")
NEWER = driver.CORPUS / "onnx-node"  # tests of newer releases of ONNX than the system's
LEAST_PASSED = 500
RTOL, ATOL = 1e-3, 1e-7
# Tests whose expected outputs are disputed, and why: they are run and named, and count neither as passed nor as wrong.
DISPUTED = {"test_cast_FLOAT_to_BFLOAT16": "expects bfloat16 cut off, not rounded to nearest as in IEEE 754 and later ONNX"}
SECONDS = 60


@dataclasses.dataclass
class Outcome:
    name: str
    kind: str    # passed, bound (passed with some inputs bound), constant (nothing left at run time), refused, wrong,
                 # crash, timeout, disputed
    reason: str = ""
    detail: str = ""


def difference(value, expected):
    """What is wrong with `value`, or ""."""
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
    """Files in the order of `names`. Where the model says bfloat16 and the file uint16, a copy that says bfloat16, too."""
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.rpartition("_")[2]))
    for i, (name, file) in enumerate(zip(names, files)):
        if facts.types.get(name) == onnx_wire.BFLOAT16:
            files[i] = pathlib.Path(scratch) / file.name
            # The last value of a field that does not repeat counts.
            files[i].write_bytes(file.read_bytes() + onnx_wire.field(2, onnx_wire.BFLOAT16))
    return files


def is_empty(file):
    value = onnx_wire.read_tensor(file.read_bytes())
    return value is not None and value.size == 0


def refusal(name, facts, result):
    """The id of the first error that names an operator, input, output or node, and which."""
    operators = sorted(op for _, op, _ in facts.operators)
    for error in result.errors:
        said = f"{error['text']} {error['location']}"
        what = next((op for op in operators if re.search(rf"\b{re.escape(op)}\b", said)), None)
        what = what or next((kind for kind in ("input", "output", "node") if re.search(rf'\b{kind} (of output )?"', said)), None)
        if what:
            return Outcome(name, "refused", f"{error['id']} {what}", driver.ending(result))
    return Outcome(name, "refused", f"{result.errors[0]['id']} -", driver.ending(result))


def unfit(facts, files):
    """Why a test's data is not what its model takes on Core ML, or "": then it may be refused when it runs."""
    for name, file in zip(facts.inputs, files):
        value = onnx_wire.read_tensor(file.read_bytes())
        if value is None:
            continue
        dims = facts.shapes.get(name)
        if dims is not None and (len(dims) != value.ndim or any(d not in (None, n) for d, n in zip(dims, value.shape))):
            return "data of another shape than the model declares"
        if value.dtype == np.float64 and (np.abs(value[np.isfinite(value)]) > np.finfo(np.float32).max).any():
            return "double beyond the range of fp32"
    return ""


def run_package(package, facts, files, outputs, bound, scratch):
    """Returns (kind, detail) of one data set."""
    # Packages have no inputs without elements, mlc leaves them out and says so.
    empty = {name for name, file in zip(facts.inputs, files) if is_empty(file)}
    given = [f"--input={n}={file}" for n, file in zip(facts.inputs, files) if n not in bound and n not in empty]
    result = driver.run("run", package, *given, "--output-dir", scratch, "--json", timeout=SECONDS)
    kind = driver.verdict(result)
    if kind == "refused":  # what was compiled must run
        why = unfit(facts, files) if result.errors[0]["id"] == "bad-input" else ""
        return ("refused", f"bad-input {why}") if why else ("crash", driver.ending(result))
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
            return "wrong", f"output {name}: {text}"
    return "ok", ""


def run_test(folder):
    name = f"{folder.parent.name}/{folder.name}"
    facts = onnx_wire.read_facts((folder / "model.onnx").read_bytes())
    data_sets = sorted(folder.glob("test_data_set_*"))
    if not data_sets:
        return Outcome(name, "wrong", detail="there is no data set")
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        package = pathlib.Path(scratch) / "model.mlpackage"
        compile_command = ["compile", folder / "model.onnx", "-o", package, "--precision", "fp32", "--no-manifest", "--json"]
        bound = []
        result = driver.run(*compile_command, timeout=SECONDS)
        for data_set in data_sets:
            files = data_set_files(data_set, "input", facts.inputs, facts, scratch)
            outputs = data_set_files(data_set, "output", facts.outputs, facts, scratch)
            for _ in range(3):  # an operand that a constant reveals may want to be one, too
                missing = [n for e in result.errors if e["id"] == "needs-constant"
                           for n in re.findall(r"--const (\S+)=FILE", " ".join(e["notes"])) if n not in bound]
                if not missing or not set(missing) <= set(facts.inputs) or len(data_sets) > 1:
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
                return Outcome(name, kind, detail)
            if kind == "wrong" and folder.name in DISPUTED:
                return Outcome(name, "disputed", DISPUTED[folder.name], detail)
            if kind != "ok":
                return Outcome(name, kind, detail=detail)
    if not facts.inputs or set(facts.inputs) <= set(bound):
        return Outcome(name, "constant", "all inputs read at compile time" if facts.inputs else "no run-time input")
    return Outcome(name, "bound" if bound else "passed")


def operator_rows():
    """{(domain, operator): [(first version, last version), ...]} that mlc lowers."""
    rows = {}
    for row in driver.run("ops", "--frontend", "onnx", "--json").answer:
        domain = onnx_wire.normal(row["domain"])
        spans = [re.fullmatch(r"(\d+)(?:-(\d+)|\+)", part).groups() for part in row["versions"].split(", ")]
        rows.setdefault((domain, row["operator"]), []).extend((int(first), int(last or 1 << 30)) for first, last in spans)
    return rows


def has_row(rows, operator):
    domain, op, version = operator
    return any(first <= version <= last for first, last in rows.get((domain, op), []))


def print_table(title, counts):
    print(f"{title}:")
    for key, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f"  {count:4d}  {key}")


def run_suite(title, folders, rows):
    outcomes = driver.parallel(run_test, folders)
    count = collections.Counter(o.kind for o in outcomes)
    failures = [o for o in outcomes if o.kind in ("wrong", "crash", "timeout")]
    for o in outcomes:
        # A model whose operators all have rows must not be refused for one of them, and must hear what stops it.
        if o.kind == "refused":
            if o.reason.endswith(" -"):
                failures.append(dataclasses.replace(o, kind="refused without saying what for"))
            facts = onnx_wire.read_facts((folders[outcomes.index(o)] / "model.onnx").read_bytes())
            if o.reason.startswith("unsupported-operator") and all(has_row(rows, op) for op in facts.operators):
                failures.append(dataclasses.replace(o, kind="operator refused in spite of its row"))
    passed = count["passed"] + count["bound"]
    by_id = collections.Counter(o.reason.split()[0] for o in outcomes if o.kind == "refused")
    print_table(f"{title}: refused by error and operator", collections.Counter(
        o.reason for o in outcomes if o.kind == "refused"))
    print(f"# {title}: {len(outcomes)} tests: {passed} passed ({count['bound']} of them with some operands bound by --const), "
          f"{count['refused']} refused, {count['constant']} computed at compile time; wrong {count['wrong']}, "
          f"crashed {count['crash']}, timed out {count['timeout']}")
    print(f"# {title}: refused: " + ", ".join(f"{n} {i}" for i, n in by_id.most_common()))
    for o in outcomes:
        if o.kind == "disputed":
            print(f"# {title}: disputed: {o.name} {o.reason}: {o.detail}")
    for o in failures:
        print(f"{o.kind}: {o.name}: {o.detail}")
    return outcomes, failures, passed


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    tests = [f for suite in SUITES for f in sorted((DATA / suite).glob("test_*")) if wanted in f.name]
    newer = [f for f in sorted(NEWER.glob("test_*")) if wanted in f.name]
    if not tests and not newer:
        print(f"# ONNX backend tests: skipped, nothing at {DATA}")
        return driver.SKIPPED
    rows = operator_rows()
    print(f"# ONNX operators: {len(rows)} have rows, {sum(len(v) for v in rows.values())} version ranges")
    failed = False
    for title, folders in (("ONNX backend tests", tests), ("newer ONNX node tests", newer)):
        if not folders:
            print(f"# {title}: none here")
            continue
        outcomes, failures, passed = run_suite(title, folders, rows)
        failed |= bool(failures)
        if folders is tests and not wanted and passed < LEAST_PASSED:
            print(f"# {title}: fewer than {LEAST_PASSED} passed")
            failed = True
        if wanted:
            for o in outcomes:
                print(f"{o.kind:8} {o.name} {o.reason} {o.detail}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
