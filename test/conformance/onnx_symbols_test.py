"""Runs ONNX's backend tests with symbolic input dimensions: every model that compiles must compute the expected outputs.

Dimensions of equal size share a symbol; dimensions of size 1, and sizes beyond the default range of a symbol, stay constant.
Many of these models are refused, because ONNX's tests pass weights and axes as inputs; refusals are counted but are not
failures. An argument selects the tests whose name contains it and prints each.
"""
import collections
import pathlib
import sys
import tempfile

import onnx_backend_test as backend
from onnx_backend_test import driver
from onnx_backend_test import onnx_wire as wire

LARGEST = 4096  # the default upper bound of a symbol


def rebuilt(data, change):
    """Returns a message with each field replaced by `change(number, value)`: bytes or int; None removes the field."""
    changed = ((number, change(number, value)) for number, value in wire.fields(data))
    return b"".join(wire.field(number, value) for number, value in changed if value is not None)


def inside(path, data, change):
    """Applies `change` to the message at this path of field numbers."""
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
        if number == 12:  # output shapes are inferred
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
