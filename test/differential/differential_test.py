#!/usr/bin/env python3
"""Random graphs: mlc's package against onnxruntime. differential_test.py [--graphs N] [--seed S] [--operator OP] [--keep DIR]

Each graph has 3 to 12 nodes. It is compiled in fp32, the package runs on the engine, and every output is compared with
onnxruntime's: error at most 1e-3, integers and booleans equal. A disagreement is a bug, or a row of known_differences.txt that
says by which section of the specification mlc is right. Runs where ORT_DIR names the folder of onnxruntime-node.
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

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import numpy as np  # noqa: E402

import driver  # noqa: E402
import graph  # noqa: E402
import operators_elementwise  # noqa: E402
import operators_moves  # noqa: E402
import operators_networks  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROWS = {**operators_elementwise.ROWS, **operators_moves.ROWS, **operators_networks.ROWS}
OPSETS = (13, 16, 17, 18, 20, 21, 22, 23)
GRAPHS = int(os.environ.get("MLC_GRAPHS", 400))


def supported():
    """{operator: its first opset version} of ai.onnx's operators in mlc's own table, but for the impossible ones."""
    table = driver.run("ops", "--frontend", "onnx", "--json").answer
    first = {}
    for row in table:
        if row["domain"] == "ai.onnx" and row["class"] != "impossible":
            since = min(int(n) for n in re.findall(r"\d+", row["versions"]))
            first[row["operator"]] = min(first.get(row["operator"], since), since)
    return first


def known_differences():
    """[(operator, condition, section)]; the condition is marked by the operator's generator (Graph.known)."""
    lines = (HERE / "known_differences.txt").read_text().splitlines()
    return [tuple(part.strip() for part in line.split(":", 2)) for line in lines if line and not line.startswith("#")]


def generate(seed, counts, since, only=None):
    """A graph of 3 to 12 nodes; operators that few graphs have come first."""
    chooser = random.Random(seed)
    made = graph.Graph(seed, chooser.choice(OPSETS))
    wanted = chooser.randint(3, 12)
    usable = [op for op in ROWS if since.get(op, 99) <= made.opset]
    rare = sorted(usable, key=lambda op: (counts[op], chooser.random()))[:12]
    plan = [only] if only else [chooser.choice(rare)]
    for _ in range(80):
        if len(made.nodes) >= wanted:
            break
        op = plan.pop() if plan else chooser.choice(rare if chooser.random() < 0.3 else usable)
        before = (len(made.nodes), len(made.values), len(made.inputs), len(made.initializers), len(made.operators))
        try:
            ROWS[op](made, op)
        except graph.Unfit:
            nodes, values, inputs, initializers, operators = before
            del made.nodes[nodes:], made.values[values:], made.inputs[inputs:], made.initializers[initializers:]
            del made.operators[operators:]
    return made if 3 <= len(made.nodes) <= 14 and made.inputs else None


def error_of(value, reference):
    """DESIGN's measure: infinite for what must be equal and is not."""
    if value.shape != reference.shape and value.size != reference.size:
        return float("inf")
    value = value.reshape(reference.shape)
    if reference.dtype.kind != "f":
        return 0.0 if np.array_equal(value, reference) else float("inf")
    same = (value == reference) | (np.isnan(value) & np.isnan(reference))
    if same.all():
        return 0.0
    finite = np.isfinite(reference)
    if not (np.isfinite(value) | same).all() or not (finite | same).all():
        return float("inf")
    r = reference[finite].astype("f8")
    scale = max(np.ptp(r), np.abs(r).max(), 1e-6)
    return float(np.abs(value[finite].astype("f8") - r).max() / scale)


def compute(folder):
    """(outcome, detail) of mlc for the graph in a folder; its outputs are written beside."""
    package = folder / "m.mlpackage"
    result = driver.run("compile", folder / "m.onnx", "-o", package, "--precision", "fp32", "--no-manifest", "--json",
                        "--verify-each")
    if driver.verdict(result) != "ok":
        return driver.verdict(result), driver.ending(result)
    inputs = [a for f in sorted(folder.glob("in_*.npy")) for a in ("--input", f"{f.stem[3:]}={f}")]
    result = driver.run("run", package, *inputs, "--output-dir", folder / "mlc", "--json")
    return driver.verdict(result), "" if result.code == 0 else driver.ending(result)


def judge(folder, made):
    """(outcome, detail): agrees, differs, refused, crash, timeout, no reference."""
    outcome, detail = compute(folder)
    if outcome != "ok":
        return outcome, detail
    if (folder / "error.txt").exists():
        return "no reference", (folder / "error.txt").read_text()[:300]
    worst = 0.0
    for i, value in enumerate(made.outputs()):
        file = folder / "mlc" / f"{value.name}.npy"
        if not file.exists():
            return "differs", f"no output {value.name}"
        ours, theirs = np.load(file), np.load(folder / f"{i}.npy")
        if ours.dtype != theirs.dtype:
            return "differs", f"{value.name} is {ours.dtype}, onnxruntime's {theirs.dtype}"
        if theirs.dtype.kind == "f" and theirs.size and np.abs(theirs).max() < 1e-5 * value.bound:
            continue  # what is left of numbers that cancel is rounding
        error = error_of(ours, theirs)
        if error > 1e-3:
            return "differs", f"{value.name}: error {error:.3g}"
        worst = max(worst, error)
    return "agrees", f"{worst:.1e}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--graphs", type=int, default=GRAPHS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operator")
    parser.add_argument("--keep", type=pathlib.Path, help="keeps graphs that do not agree here")
    arguments = parser.parse_args()
    if not os.environ.get("ORT_DIR") or not shutil.which("node") or not driver.MLC.exists():
        print("# differential: skipped, no ORT_DIR, node or mlc")
        return driver.SKIPPED
    counts, totals, refusals, failures = collections.Counter(), collections.Counter(), collections.Counter(), []
    known, since = known_differences(), supported()
    with tempfile.TemporaryDirectory() as scratch:
        graphs, planned = [], collections.Counter()
        for seed in range(arguments.seed, arguments.seed + arguments.graphs * 3):
            if len(graphs) == arguments.graphs:
                break
            made = generate(seed, planned, since, arguments.operator)
            if made is None or (arguments.operator and arguments.operator not in made.operators):
                continue
            folder = pathlib.Path(scratch) / str(seed)
            folder.mkdir()
            (folder / "m.onnx").write_bytes(made.model())
            for value, array in made.inputs:
                np.save(folder / f"in_{value.name}.npy", array)
            planned.update(set(made.operators))
            graphs.append((folder, made))
        jobs, lists = int(os.environ.get("MLC_JOBS", os.cpu_count() or 1)), []
        for part in range(jobs):
            lists.append(pathlib.Path(scratch) / f"list{part}.jsonl")
            lists[-1].write_text("".join(json.dumps({
                "model": str(folder / "m.onnx"), "out": str(folder),
                "inputs": {v.name: str(folder / f"in_{v.name}.npy") for v, _ in made.inputs}}) + "\n"
                for folder, made in graphs[part::jobs]))
        driver.parallel(lambda file: subprocess.run(["node", HERE / "ort_batch.mjs", file], check=True), lists)
        results = driver.parallel(lambda g: judge(*g), graphs)
        for (folder, made), (outcome, detail) in zip(graphs, results):
            operators = set(made.operators)
            if outcome == "differs" and any(op in made.known for op, _, _ in known):
                outcome = "known difference"
            totals[outcome] += 1
            if outcome in ("agrees", "known difference"):
                counts.update(operators)
            elif outcome == "refused":
                refusals[detail[:160]] += 1
            elif outcome != "no reference":
                failures.append(f"{outcome}: seed {folder.name}, opset {made.opset}, {' '.join(made.operators)}: {detail}")
            if arguments.keep and outcome not in ("agrees", "known difference"):
                shutil.copytree(folder, arguments.keep / f"{outcome.replace(' ', '-')}-{folder.name}", dirs_exist_ok=True)
                (arguments.keep / f"{outcome.replace(' ', '-')}-{folder.name}" / "note.txt").write_text(
                    f"opset {made.opset}\n{' '.join(made.operators)}\n{detail}\n")
    for failure in failures:
        print(failure)
    for detail, count in refusals.most_common(20):
        print(f"# refused {count}: {detail}")
    least = sorted((counts[op], op) for op in ROWS if op in since)
    print("# operators without generator: " + ", ".join(sorted(set(since) - set(ROWS))))
    print("# operators in fewest graphs: " + ", ".join(f"{op} {n}" for n, op in least[:15]))
    print(f"# differential: {len(graphs)} graphs, {len(least)} operators, "
          + ", ".join(f"{n} {outcome}" for outcome, n in sorted(totals.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
