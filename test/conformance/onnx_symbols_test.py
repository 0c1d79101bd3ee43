"""ONNX's backend tests with symbols for the dimensions of their inputs: what compiles computes the same at run time.

Dimensions of one size share a symbol; those of 1, and those beyond the range that a symbol has, stay. Many of these models
are refused, since ONNX's weights and axes are inputs, too: that is counted, no failure. With an argument, only tests
whose name contains it run, and each is printed.
"""
import collections
import pathlib
import sys
import tempfile

import onnx_backend_test as backend
from onnx_backend_test import driver
from onnx_backend_test import onnx_wire as wire

LARGEST = 4096  # of a symbol without --dim


def rebuilt(data, change):
    """A message whose fields `change(number, value)` gives: bytes or int; None leaves one out."""
    changed = ((number, change(number, value)) for number, value in wire.fields(data))
    return b"".join(wire.field(number, value) for number, value in changed if value is not None)


def inside(path, data, change):
    """`change` applied to what lies at this path of field numbers."""
    if not path:
        return change(data)
    return rebuilt(data, lambda n, v: inside(path[1:], v, change) if n == path[0] else v)


def symbol(dimension):
    size = dict(wire.fields(dimension)).get(1)
    return wire.field(2, f"d{size}") if size and 1 < size <= LARGEST else bytes(dimension)


def with_symbols(model):
    inputs = set(wire.read_facts(model).inputs)

    def changed(number, value):
        if number == 11 and wire.text(value, 1) in inputs:
            return inside([2, 1, 2, 1], value, symbol)
        if number == 12:  # an output's shape follows
            return inside([2, 1], value, lambda dense: rebuilt(dense, lambda n, v: None if n == 2 else v))
        return value

    return inside([7], model, lambda graph: rebuilt(graph, changed))


def run_test(folder):
    model = (folder / "model.onnx").read_bytes()
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        copy = pathlib.Path(scratch) / folder.parent.name / folder.name
        copy.mkdir(parents=True)
        (copy / "model.onnx").write_bytes(with_symbols(model))
        for data_set in folder.glob("test_data_set_*"):
            (copy / data_set.name).symlink_to(data_set)
        return backend.run_test(copy)


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    folders = [f for root in [*(backend.DATA / suite for suite in backend.SUITES), backend.NEWER]
               for f in sorted(root.glob("test_*")) if wanted in f.name]
    if not folders:
        print(f"# ONNX backend tests with symbols: skipped, nothing at {backend.DATA}")
        return driver.SKIPPED
    outcomes = driver.parallel(run_test, folders)
    count = collections.Counter(o.kind for o in outcomes)
    failures = [o for o in outcomes if o.kind in ("wrong", "crash", "timeout")]
    print(f"# ONNX backend tests with symbols: {len(outcomes)} tests: {count['passed'] + count['bound'] + count['folded']} passed, "
          f"{count['refused'] + count['unfounded']} refused, {count['disputed']} disputed, wrong {count['wrong']}, crashed "
          f"{count['crash']}, timed out {count['timeout']}")
    for o in outcomes if wanted else failures:
        print(f"{o.kind}: {o.name}: {o.reason} {o.detail}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
