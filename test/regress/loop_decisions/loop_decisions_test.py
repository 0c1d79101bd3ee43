#!/usr/bin/env python3
"""A loop body that is lowered several times, because the sizes that it carries change, adds its decisions to the manifest once."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import onnx_wire as wire
from driver import expect, run, run_tests

FLOAT, INT64, BOOL = wire.FLOAT, wire.INT64, wire.BOOL


def filled(name, dims):
    count = dims[0] * dims[1] * dims[2]
    return wire.tensor(name, FLOAT, dims, struct.pack(f"<{count}f", *[0.125] * count))


def growing_gru(file):
    """A loop that appends what a GRU makes of a sequence to the sequence: of 2 steps at first, then of any number."""
    body = wire.graph([wire.node("GRU", ["x", "w", "r"], ["y"], hidden_size=3, linear_before_reset=1),
                       wire.node("Squeeze", ["y", "one"], ["steps"]),
                       wire.node("Concat", ["x", "steps"], ["longer"], axis=0), wire.node("Identity", ["go"], ["goes_on"])],
                      [wire.value_info("i", INT64, []), wire.value_info("go", BOOL, []), wire.value_info("x", FLOAT, None)],
                      [wire.value_info("goes_on", BOOL, []), wire.value_info("longer", FLOAT, None)])
    graph = wire.graph([wire.node("Loop", ["trips", "", "x0"], ["z"], body=(body,))],
                       [wire.value_info("x0", FLOAT, [2, 1, 3]), wire.value_info("trips", INT64, [])],
                       [wire.value_info("z", FLOAT, None)],
                       [filled("w", [1, 9, 3]), filled("r", [1, 9, 3]),
                        wire.tensor("one", INT64, [1], struct.pack("<q", 1))])
    file.write_bytes(wire.model(graph))


def test_decisions(folder):
    growing_gru(folder / "model.onnx")
    expect(run("compile", folder / "model.onnx", "-o", folder / "out.mlpackage", "--verify-each"), 0)
    manifest = json.loads((folder / "out.manifest.json").read_text())
    made = [decision["reason"] for decision in manifest["decisions"] if decision["reason"].startswith("GRU")]
    assert made == ["GRU: a loop: linear_before_reset is not for MIL's gru"], made


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "drafts"))
