#!/usr/bin/env python3
"""Checks that passes preserve results in any order: random programs, random orders, the program evaluated before and after each pass.

pass_orders_test.py [--programs N] [--seed S] [--keep DIR]

Each program is a random graph of differential_test.py. `mlc opt --check-each` runs a random selection of the passes on it, some
of them twice, and compares all outputs before and after each one. A failure is reported with the shortest order that shows it.

The passes in LAST do not move: fp16-precision changes results on purpose, within a budget that is measured for the default
order, and encoded-constants writes weights in the form of the target, which later passes do not look into.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import differential_test as differential  # noqa: E402
import driver  # noqa: E402

LAST = {"fp16-precision", "encoded-constants"}
PROGRAMS = int(os.environ.get("MLC_PASS_ORDERS", 500))
SLICE = 250


def passes():
    text = driver.run("opt", "--help").stdout.split("Passes:")[1]
    return sorted(words[0] for line in text.splitlines() if (words := line.split()) and line.startswith("  ") and words[0] != "mlc")


def order(chooser, names):
    """Returns 3 to all passes in random order, of which some occur twice."""
    chosen = chooser.sample(names, chooser.randint(3, len(names)))
    chosen += chooser.sample(chosen, chooser.randint(0, len(chosen) // 2))
    chooser.shuffle(chosen)
    return chosen


def check(model, names, options, seed):
    """Returns (outcome, detail): ok, refused (the graph needs options), or a failure."""
    result = driver.run("opt", model, "--passes", ",".join(names), *options, "--check-each", str(seed), "--verify-each", "--json")
    outcome = driver.verdict(result)
    return outcome, "" if outcome == "ok" else driver.ending(result)


def shortest(model, names, options, seed, outcome):
    """Removes passes from the order as long as it fails in the same way."""
    at = 0
    while at < len(names):
        fewer = names[:at] + names[at + 1:]
        if fewer and check(model, fewer, options, seed)[0] == outcome:
            names = fewer
        else:
            at += 1
    return names


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MLC_SEED", 0)))
    parser.add_argument("--keep", type=pathlib.Path, help="keeps programs that fail here")
    arguments = parser.parse_args()
    names = [name for name in passes() if name not in LAST]
    assert len(names) > 20 and LAST <= set(passes()), names
    since, planned = differential.supported(), collections.Counter()
    totals, failures, count = collections.Counter(), [], 0
    seeds = iter(range(arguments.seed, arguments.seed + arguments.programs * 4))
    while count < arguments.programs:
        with tempfile.TemporaryDirectory() as scratch:
            programs = []
            for seed in seeds:
                made = differential.generate(seed, planned, since)
                if made is None:
                    continue
                planned.update(set(made.operators))
                model = pathlib.Path(scratch) / f"{seed}.onnx"
                model.write_bytes(made.model())
                chooser = random.Random(seed)
                chosen = order(chooser, names)
                options = ["--precision", chooser.choice(("fp32", "fp16"))]
                options += chooser.choice(([], ["--optimize-for", "ane"], ["--optimize-for", "gpu"]))
                programs.append((model, chosen, options, seed))
                if len(programs) == min(SLICE, arguments.programs - count):
                    break
            if not programs:
                break
            count += len(programs)
            for (model, chosen, options, seed), (outcome, detail) in zip(
                    programs, driver.parallel(lambda program: check(*program), programs)):
                totals[outcome] += 1
                if outcome in ("ok", "refused") and "check-failed" not in detail:
                    continue
                fewest = shortest(model, chosen, options, seed, outcome)
                failures.append(f"{outcome}: seed {seed}, {' '.join(options)} --passes {','.join(fewest)}: {detail}")
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(model, arguments.keep)
    if count and totals["ok"] < count / 2:
        failures.append(f"only {totals['ok']} of {count} programs were evaluated")
    for failure in failures:
        print(failure)
    print(f"# pass orders: {count} programs, {len(names)} passes, " + ", ".join(f"{n} {what}" for what, n in sorted(totals.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
