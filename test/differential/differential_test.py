#!/usr/bin/env python3
"""Compares mlc's packages with onnxruntime on random graphs.

differential_test.py [--graphs N] [--seed S] [--operator OP] [--keep DIR] [--precision fp16]

Each graph has 3 to 12 nodes. It is compiled in fp32, the package runs on the reference engine, and every output is compared
with onnxruntime's: the error must be at most 1e-3, and integers and booleans must be equal. A graph that disagrees is reduced
to the operator that causes it. This is a failure unless the operator is in one of these tables:

    known_differences.txt  mlc is right, or the specification is silent
    known_refusals.txt     operators that mlc refuses for a good reason

With --precision fp16 (fp16_test.py), packages have default precision and are judged by `mlc verify`: within max(1e-2, 1.5 x
floor), or the error stated in the manifest, on the graph's own inputs and, if available, against onnxruntime's outputs. On
generated inputs other than those used by the compiler, no output may be infinite or NaN or have another size. Every third graph
is large.

Requires ORT_DIR, the folder of onnxruntime-node, except for fp16. In any case, the test checks that every operator is generated
(ROWS of operators_*.py), is compared with NumPy because onnxruntime lacks it (all its cases in ../conformance have expected=),
or has a reason in ROWS.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "differential"), str(TESTS / "conformance")]
import numpy as np  # noqa: E402

import driver  # noqa: E402
import graph  # noqa: E402
import models  # noqa: E402
import nodes  # noqa: E402
import operators_control  # noqa: E402
import operators_elementwise  # noqa: E402
import operators_images  # noqa: E402
import operators_microsoft  # noqa: E402
import operators_moves  # noqa: E402
import operators_networks  # noqa: E402
import operators_quantized  # noqa: E402
import operators_sequences  # noqa: E402
import operators_signals  # noqa: E402
import reduce  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = (operators_control, operators_elementwise, operators_images, operators_microsoft, operators_moves, operators_networks,
            operators_quantized, operators_sequences, operators_signals)
ROWS = {op: row for family in FAMILIES for op, row in family.ROWS.items() if callable(row)}
REASONS = {op: row for family in FAMILIES for op, row in family.ROWS.items() if not callable(row)}
BY_NUMPY = {c.operator for c in nodes.CASES.values() if c.expected} - {
    c.operator for c in nodes.CASES.values() if not c.expected and not c.refused}
OPSETS = (7, 8, 9, 10, 11, 11, 12, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 20, 21, 21, 22, 23, 23, 24, 24, 26, 26)
# The last opset version for which onnxruntime implements an operator, or in which the standard defines it.
UNTIL = {"Upsample": 9, "Scatter": 10, "RoiAlign": 21, "GlobalLpPool": 21, "MaxRoiPool": 21}
GRAPHS = {"fp32": int(os.environ.get("MLC_GRAPHS", 1500)), "fp16": int(os.environ.get("MLC_FP16_GRAPHS", 200))}
SLICE = 250
LEAST = 20 / 5000  # minimum fraction of the graphs that contain each operator


def supported():
    """Returns {operator: first opset version} of mlc's operator table, without impossible operators."""
    first = {}
    for row in driver.run("ops", "--frontend", "onnx", "--json").answer:
        if row["class"] != "impossible":
            name = row["operator"] if row["domain"] == "ai.onnx" else f"{row['domain']}.{row['operator']}"
            since = min(int(n) for n in re.findall(r"\d+", row["versions"]))
            first[name] = max(min(first.get(name, since), since), graph.FIRST.get(name, 1))
    return first


def table(name):
    """Returns the rows of a text file: three parts separated by colons, of which the last may contain colons."""
    lines = (HERE / name).read_text().splitlines()
    return [tuple(part.strip() for part in line.split(": ", 2)) for line in lines if line and not line.startswith("#")]


def generate(seed, counts, since, only=None, large=False):
    """Generates a graph of 3 to 12 nodes; rare operators are preferred."""
    chooser = random.Random(seed)
    rarest = sorted((op for op in ROWS if op in since), key=lambda op: (counts[op], chooser.random()))
    first = only or chooser.choice(rarest[:12])
    opsets = [n for n in OPSETS if since.get(first, 99) <= n <= UNTIL.get(first, 99)]
    if not opsets:
        return None
    made = graph.Graph(seed, chooser.choice(opsets), large)
    wanted = chooser.randint(3, 12)
    usable = [op for op in ROWS if since.get(op, 99) <= made.opset <= UNTIL.get(op, 99)]
    rare, plan = [op for op in rarest if op in usable][:12], [first]
    for _ in range(80):
        if len(made.nodes) >= wanted:
            break
        op = plan.pop() if plan else chooser.choice(rare if chooser.random() < 0.3 else usable)
        before = (len(made.nodes), len(made.values), len(made.inputs), len(made.initializers), len(made.operators))
        known = set(made.known)
        try:
            ROWS[op](made, op)
        except graph.Unfit:
            nodes, values, inputs, initializers, operators = before
            del made.nodes[nodes:], made.values[values:], made.inputs[inputs:], made.initializers[initializers:]
            del made.operators[operators:]
            made.known = known
    for value, _ in list(made.inputs):
        if len(made.inputs) > 1 and chooser.random() < 0.15:
            made.freeze(value)
    sizes = sorted({d for v, _ in made.inputs for d in v.shape if d > 1})
    if chooser.random() < 0.08:  # all constants become run-time inputs
        for value in [v for v in made.initializers if v.kind not in "4u" and v.size]:
            made.thaw(value)
    elif sizes and not large and chooser.random() < 0.2 and "com.microsoft.GroupQueryAttention" not in made.operators:
        made.symbols = {chooser.choice(sizes): "N"}  # total_sequence_length would contradict a different size
    if large and not is_large(made):
        return None
    return made if 3 <= len(made.nodes) <= 14 and made.feeds() else None


def is_large(made):
    return any(value.size > graph.LARGE for value in made.outputs())


def write(folder, model, feeds):
    folder.mkdir(parents=True)
    (folder / "m.onnx").write_bytes(model)
    for value, array in feeds:
        np.save(folder / f"in_{value.name}.npy", np.require(array, requirements="C"))


def has_onnxruntime():
    return bool(os.environ.get("ORT_DIR") and shutil.which("node"))


def ask_onnxruntime(folders):
    """Has onnxruntime write K.npy for each output, or error.txt, into each folder, if it is available."""
    jobs = min(int(os.environ.get("MLC_JOBS", os.cpu_count() or 1)), len(folders))
    if not jobs or not has_onnxruntime():
        return

    def run(part):
        lines = [json.dumps({"model": str(f / "m.onnx"), "out": str(f),
                             "inputs": {i.stem[3:]: str(i) for i in f.glob("in_*.npy")}}) for f in part]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("".join(line + "\n" for line in lines))
            file.flush()
            subprocess.run(["node", HERE / "ort_batch.mjs", file.name], check=True, stderr=subprocess.DEVNULL)

    driver.parallel(run, [folders[i::jobs] for i in range(jobs)])


def compiled(folder, symbols, *options):
    """Compiles the graph in a folder. Returns (outcome, detail, names of bound inputs, options that fix dimensions). Dimensions
    that cannot stay symbolic are fixed. Operands that must be constant according to the errors are bound, and all constants of
    the graph if a size depends on one.
    """
    package = folder / "m.mlpackage"
    command = ("compile", folder / "m.onnx", "-o", package, *options, "--no-manifest", "--json", "--verify-each")
    result, bound, settings = driver.run(*command), set(), []
    for _ in range(4):  # sequences of other lengths may require other constant positions
        missing = {name for e in result.errors if e["id"] == "needs-constant"
                   for name in re.findall(r"--const (\S+)=FILE", " ".join(e["notes"]))} - bound
        if any(e["id"] == "dynamic-shape" for e in result.errors):
            missing |= {f.stem[3:] for f in folder.glob("in_c*.npy")} - bound  # named by graph.py
        if not missing:
            break
        bound |= missing
        settings = [f"--const={name}={folder / f'in_{name}.npy'}" for name in sorted(bound)]
        result = driver.run(*command, *settings)
    if symbols and driver.verdict(result) == "refused":
        (folder / "set").touch()
        bound, settings = set(), [f"--dim={name}={size}" for size, name in symbols.items()]
        result = driver.run(*command, *settings)
    return driver.verdict(result), "" if result.code == 0 else driver.ending(result), bound, settings


def execute(package, folder, bound=()):
    inputs = [a for f in sorted(folder.glob("in_*.npy")) if f.stem[3:] not in bound for a in ("--input", f"{f.stem[3:]}={f}")]
    result = driver.run("run", package, *inputs, "--output-dir", folder / "mlc", "--json")
    return driver.verdict(result), "" if result.code == 0 else driver.ending(result)


def judge(folder, outputs, made):
    """Returns (outcome, detail): agrees, differs, refused, crash, timeout, no reference."""
    outcome, detail, bound, _ = compiled(folder, made.symbols, "--precision", "fp32")
    if outcome == "ok":
        outcome, detail = execute(folder / "m.mlpackage", folder, bound)
    return (outcome, detail) if outcome != "ok" else compare(folder, outputs)


def judge_fp16(folder, outputs, made):
    """Like judge(), for a package of default precision, according to `mlc verify`; "says nothing" if no output could be compared."""
    outcome, detail, _, settings = compiled(folder, made.symbols)
    if outcome != "ok":
        return outcome, detail
    own = ["--inputs", links(folder / "own", {f.name: f for f in folder.glob("in_*.npy")})]
    if references := {f"output_{i}.npy": folder / f"{i}.npy" for i, value in enumerate(outputs) if is_reference(folder, i, value, made)}:
        own += ["--reference", links(folder / "references", references)]
    told = False
    # The compiler measures on inputs of seed 0. Large inputs exercise more; flexible dimensions keep the graph's sizes, which
    # may be large.
    other = ["--seed", "1", *(["--samples", "4"] if made.large else []),
             *(f"--dim={name}={size}" for size, name in made.symbols.items() if not (folder / "set").exists())]
    for inputs in (own, other):
        result = driver.run("verify", folder / "m.onnx", folder / "m.mlpackage", *inputs, *settings, "--json")
        if result.code is None:
            return "timeout", driver.ending(result)
        answer = result.answer.get("outputs")
        if answer is None and inputs is own:
            return driver.verdict(result), driver.ending(result)
        outside = [o for o in answer or [] if o["tells"] and not o["within"]]
        # Rounding errors on inputs that the compiler did not see are neither avoided nor stated, but infinite and NaN results
        # are failures.
        if inputs is other:
            outside = [o for o in outside if "mismatch" in o or ("equal_fraction" not in o and not np.isfinite(float(o["max_error"])))]
            # Among many random matrices, some are singular in fp16, and their inverse is infinite.
            if (not outside and result.code == 3) or "com.microsoft.Inverse" in made.operators:
                continue
        if outside or result.code not in (0, 1, 3):  # inputs that the graph accepts may be impossible to generate
            return "differs", f"{' '.join(map(str, inputs[:1]))}: {', '.join(map(figures, outside[:3])) or driver.ending(result)}"
        told = told or result.code == 0
    return ("agrees", "") if told else ("says nothing", "")


def is_reference(folder, i, value, made):
    """Whether onnxruntime's output number i must be reproduced by a package."""
    file = folder / f"{i}.npy"
    if made.known or value.slack or not file.exists():
        return False
    array = np.load(file)
    return not is_rounding(array, value)


def is_rounding(array, value):
    """Whether a difference is the rounding error of a cancellation."""
    return array.dtype.kind == "f" and array.size and np.abs(array).max() < 1e-5 * value.bound


def figures(output):
    """Formats the error that `mlc verify --json` reports for an output, and its limit."""
    allowed = output["budget"]
    if "mismatch" in output:
        return f"{output['name']}: {output['mismatch']}"
    if "equal_fraction" in output:
        return f"{output['name']}: {1 - output['equal_fraction']:.2g} unequal of {allowed['unequal']:.2g}"
    return "{}: error {:.2g} of {:.2g}, RMSE {:.2g} of {:.2g}".format(
        output["name"], *(float(n) for n in (output["max_error"], allowed["max_error"], output["rmse"], allowed["rmse"])))


def links(folder, files):
    """Makes a folder of links {name: file}."""
    folder.mkdir()
    for name, file in files.items():
        (folder / name).symlink_to(file)
    return folder


def compare(folder, outputs):
    if (folder / "error.txt").exists():
        return "no reference", (folder / "error.txt").read_text()[:300]
    worst = 0.0
    for i, value in enumerate(outputs):
        file = folder / "mlc" / f"{value.name}.npy"
        if not file.exists():
            return "differs", f"no output {value.name}"
        ours, theirs = np.load(file), np.load(folder / f"{i}.npy")
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return "differs", f"{value.name} is {ours.dtype}{ours.shape}, onnxruntime's {theirs.dtype}{theirs.shape}"
        if is_rounding(theirs, value):
            continue
        if value.slack and np.abs(ours.astype("f8") - theirs.astype("f8")).max() <= value.slack * 1.001:
            continue
        error, _ = models.measured(ours, theirs)
        if error > 1e-3:
            return "differs", f"{value.name}: error {error:.3g}"
        worst = max(worst, error)
    return "agrees", f"{worst:.1e}"


def larger(folder, made):
    """Makes a folder with inputs in which the symbolic dimension is larger by one, for an existing package."""
    (size, _), = made.symbols.items()
    write(folder / "larger", made.model(), [
        (v, np.resize(a, [d + (d == size) for d in a.shape]) if v.rank else a) for v, a in made.feeds()])
    return folder / "larger"


def judge_larger(folder, made):
    if (folder / "error.txt").exists():  # the graph is valid for one size only
        return "for one size only", ""
    outcome, detail = execute(folder.parent / "m.mlpackage", folder)
    return (outcome, detail) if outcome != "ok" else compare(folder, made.outputs())


def reduced(folder, made, outcome, detail, judge):
    """Reduces a failure to (operator, detail, folder of the reduced graph) as far as possible."""
    folder, numbers = folder / "part", iter(range(10 ** 6))

    def ask(parts):
        folders = [folder / str(next(numbers)) for _ in parts]
        for part, where in zip(parts, folders):
            write(where, part.model(), part.feeds())
            part.folder = where
        ask_onnxruntime(folders)
        answers = [judge(where, part.outputs(), made) for part, where in zip(parts, folders)]
        return [(*answer, [np.load(where / "0.npy")] if (where / "0.npy").exists() else None)
                for answer, where in zip(answers, folders)]

    error_id = re.match(r"exit code \d+, ([a-z-]+)", detail)
    found = reduce.reduce(made, ask, lambda o, d: o == outcome and (not error_id or error_id[1] in d))
    if found is None:
        return "", detail, None
    part, _, detail = found
    return part.operators()[-1], " ".join(part.operators()) + ": " + detail, part.folder


def main(given=None):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--precision", choices=GRAPHS, default="fp32")
    parser.add_argument("--graphs", type=int)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MLC_SEED", 0)))
    parser.add_argument("--operator")
    parser.add_argument("--keep", type=pathlib.Path, help="keeps graphs that do not agree here")
    arguments = parser.parse_args(given)
    half = arguments.precision == "fp16"
    graphs_in_all, judge_one = arguments.graphs or GRAPHS[arguments.precision], judge_fp16 if half else judge
    if not driver.MLC.exists():
        print("# differential: skipped, no mlc")
        return driver.SKIPPED
    since = supported()
    left_out = set(since) - set(ROWS)
    faults = [f"{op} has no generator in ROWS of {HERE.name}/operators_*.py, and no case with expected=" for op in
              sorted(left_out - BY_NUMPY - set(REASONS))]
    faults += [f"ROWS of {HERE.name}/operators_*.py say why {op} is not generated, which is needless" for op in
               sorted(set(REASONS) & BY_NUMPY | set(REASONS) - left_out)]
    if faults:
        print("\n".join(faults))
        return 1
    if not half and not has_onnxruntime():
        print("# differential: skipped, no ORT_DIR or node")
        return driver.SKIPPED
    differences, refusals = table("known_differences.txt"), table("known_refusals.txt")
    counts, planned, totals = collections.Counter(), collections.Counter(), collections.Counter()
    failures, unasked, flexible, count = [], collections.Counter(), collections.Counter(), 0
    large = 0

    def settle(folder, made, outcome, detail):
        """Returns the outcome after consulting the tables, and records a failure."""
        operator, part, where = reduced(folder, made, outcome, detail, judge_one)
        if outcome == "differs" and not half and operator in made.known and any(op == operator for op, _, _ in differences):
            return "known difference"
        blamed = [operator] if operator else made.operators
        if outcome == "refused" and any(op in blamed and text in part for op, text, _ in refusals):
            return "refused"
        failures.append(f"{outcome}: seed {folder.name}, opset {made.opset}: {part} (of {' '.join(made.operators)})")
        if arguments.keep:
            shutil.copytree(where or folder, arguments.keep / f"{outcome}-{operator}-{folder.name}", dirs_exist_ok=True)
        return outcome

    seeds = iter(range(arguments.seed, arguments.seed + graphs_in_all * 4))
    while count < graphs_in_all:
        with tempfile.TemporaryDirectory() as scratch:
            graphs = []
            for seed in seeds:
                made = generate(seed, planned, since, arguments.operator, half and (count + len(graphs)) % 3 == 0)
                if made is None or (arguments.operator and arguments.operator not in made.operators):
                    continue
                folder = pathlib.Path(scratch) / str(seed)
                write(folder, made.model(), made.feeds())
                planned.update(set(made.operators))
                graphs.append((folder, made))
                if len(graphs) == min(SLICE, graphs_in_all - count):
                    break
            if not graphs:
                break
            count += len(graphs)
            ask_onnxruntime([folder for folder, _ in graphs])
            results = driver.parallel(lambda g: judge_one(g[0], g[1].outputs(), g[1]), graphs)
            other = [(folder, made) for (folder, made), (outcome, _) in zip(graphs, results)
                     if not half and made.symbols and outcome == "agrees" and not (folder / "set").exists()]
            sized = [(larger(folder, made), made) for folder, made in other]
            ask_onnxruntime([folder for folder, _ in sized])
            for (folder, made), (outcome, detail) in zip(sized, driver.parallel(lambda g: judge_larger(*g), sized)):
                flexible[outcome] += 1
                if outcome not in ("agrees", "for one size only", "refused"):  # onnxruntime does not validate all inputs
                    failures.append(f"{outcome} at another size: seed {folder.parent.name}, opset {made.opset}: {detail} (of "
                                    f"{' '.join(made.operators)})")
                    if arguments.keep:
                        shutil.copytree(folder, arguments.keep / f"larger-{folder.parent.name}", dirs_exist_ok=True)
            for (folder, made), (outcome, detail) in zip(graphs, results):
                large += made.large
                if outcome == "no reference":
                    unasked[re.sub(r"\s+", " ", detail)[:150]] += 1
                elif outcome not in ("agrees", "says nothing"):
                    outcome = settle(folder, made, outcome, detail)
                totals[outcome] += 1
                if outcome in ("agrees", "known difference"):
                    counts.update(set(made.operators))
    for detail, number in unasked.most_common(20):
        print(f"no reference {number}: {detail}")
    least = sorted((counts[op], op) for op in ROWS if op in since)
    if not arguments.operator and not half and count >= 500:
        failures += [f"{op} is in {n} of {count} graphs" for n, op in least if n < LEAST * count]
    for failure in failures:
        print(failure)
    of = f"{count} graphs, {len(least)} operators ({len(left_out)} more are not asked for), " + ", ".join(
        f"{n} {outcome}" for outcome, n in sorted(totals.items()))
    if half:
        print(f"# differential, fp16: {of}; {large} have outputs above {graph.LARGE} elements")
        return 1 if failures else 0
    print("# operators in fewest graphs: " + ", ".join(f"{op} {n}" for n, op in least[:12]))
    print("# graphs with a symbol, at another size: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(flexible.items())))
    print(f"# differential: {of}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
