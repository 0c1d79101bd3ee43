"""Tests generated inputs, as `mlc run` and `mlc verify` use and report them."""
import pathlib
import shutil
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import onnx_wire as wire  # noqa: E402
from driver import expect, run, run_tests  # noqa: E402

FLOAT, INT64 = wire.FLOAT, wire.INT64
ROWS, WIDTH = 100, 8


class Folder:
    """A scratch folder with a model: y = table[ids] scaled by s, and the unchanged ids."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        table = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype("<f4")
        graph = wire.graph(
            [wire.node("Gather", ["table", "ids"], ["rows"], axis=0), wire.node("Mul", ["rows", "s"], ["y"]),
             wire.node("Identity", ["ids"], ["seen"])],
            [wire.value_info("ids", INT64, [1, "n"]), wire.value_info("s", FLOAT, [WIDTH])],
            [wire.value_info("y", FLOAT, [1, "n", WIDTH]), wire.value_info("seen", INT64, [1, "n"])],
            [wire.tensor("table", FLOAT, table.shape, table.tobytes())])
        self.model = self.path / "table.onnx"
        self.model.write_bytes(wire.model(graph))
        self.package = self.path / "table.mlpackage"
        expect(run("compile", self.model, "-o", self.package, "--precision", "fp32"), 0)

    def __truediv__(self, name):
        return self.path / name


def overwritten(folder, first, last):
    """Returns a copy of the package in which these rows of the table are 7."""
    copy = folder / f"rows{first}_{last}.mlpackage"
    shutil.copytree(folder.package, copy)
    file = next(copy.glob("**/weight.bin"))
    weights = bytearray(file.read_bytes())
    data, = struct.unpack_from("<Q", weights, 64 + 16)  # of the only record
    row = WIDTH * 4
    weights[data + first * row:data + (last + 1) * row] = np.full((last + 1 - first) * WIDTH, 7, "<f4").tobytes()
    file.write_bytes(weights)
    return copy


def test_all_rows_of_a_table_are_read(folder):
    expect(run("verify", folder.model, folder.package), 0, "PASSED")
    expect(run("verify", folder.model, overwritten(folder, 2, 99)), 3, "FAILED")
    # Single rows are found too, including the first and the last.
    for row in (0, 41, 99):
        expect(run("verify", folder.model, overwritten(folder, row, row)), 3, "FAILED")


def test_sizes_are_those_at_which_the_source_is_measured(folder):
    """A package keeps only one of two equal products, so its own sizes would allow a larger input."""
    width = 512
    graph = wire.graph(
        [wire.node("MatMul", ["x", "w"], ["a"]), wire.node("MatMul", ["x", "w"], ["b"]), wire.node("Add", ["a", "b"], ["y"])],
        [wire.value_info("x", FLOAT, ["n", width])], [wire.value_info("y", FLOAT, ["n", width])],
        [wire.tensor("w", FLOAT, [width, width], np.full(width * width, 0.01, "<f4").tobytes())])
    (folder / "twice.onnx").write_bytes(wire.model(graph))
    expect(run("compile", folder / "twice.onnx", "-o", folder / "once.mlpackage", "--precision", "fp32"), 0, "2 operations")
    expect(run("verify", folder / "twice.onnx", folder / "once.mlpackage", "--bundle", folder / "bundle"), 0, "PASSED")
    sizes = [np.load(file).shape[0] for file in (folder / "bundle").rglob("*.npy") if "x" in file.stem]
    assert max(sizes) > 1000 and 2 * width * width * max(sizes) < 1e9, sizes


def test_verify_says_what_was_made_up(folder):
    result = expect(run("verify", folder.model, folder.package, "--seed", 5), 0, "inputs generated from seed 5, 16 samples",
                    "ids: 0..99 (rows selected by gather", "s: N(0, 1)")
    assert "--input-range" not in result.stdout
    made, = run("verify", folder.model, folder.package, "--samples", 3, "--json").answer["made_up"]
    assert made["seed"] == 0 and made["samples"] == 3, made
    ids, = [entry for entry in made["inputs"] if entry["name"] == "ids"]
    assert (ids["low"], ids["high"]) == (0, 99) and "rows" in ids["because"], ids
    # Nothing is reported if no input was generated.
    (folder / "given").mkdir()
    np.save(folder / "given" / "ids.npy", np.array([[3, 4]]))
    np.save(folder / "given" / "s.npy", np.ones(WIDTH, "f4"))
    result = expect(run("verify", folder.model, folder.package, "--inputs", folder / "given", "--json"), 0)
    assert "made_up" not in result.answer, result.stdout


def test_run_says_what_it_made_up_and_takes_ranges(folder):
    expect(run("run", folder.model), 0, "inputs generated from seed 0, 1 sample:", "ids: 0..99")
    seen = set()
    for seed in range(8):
        result = expect(run("run", folder.model, "--seed", seed, "--input-range", "ids=5..7", "--output-dir", folder / "out",
                            "--json"), 0)
        ids, = [entry for entry in result.answer["made_up"]["inputs"] if entry["name"] == "ids"]
        assert (ids["low"], ids["high"]) == (5, 7), ids
        seen |= set(np.load(folder / "out" / "seen.npy").ravel().tolist())
    assert seen <= {5, 6, 7} and len(seen) > 1, seen
    # Integers are not drawn for a float range.
    expect(run("run", folder.package, "--input-range", "s=2.5..2.75", "--input-range", "ids=1..1", "--output-dir",
               folder / "out"), 0)
    assert np.load(folder / "out" / "seen.npy").tolist() == [[1]]
    # The package was wrong for values other than these.
    expect(run("verify", folder.model, overwritten(folder, 50, 99), "--input-range", "ids=0..49"), 0, "as requested")


def test_ranges_that_make_no_sense_are_usage_errors(folder):
    for text, said in [("ids", "not of the form NAME=LO..HI"), ("ids=5", "not of the form NAME=LO..HI"), ("ids=..5", "not of the form NAME=LO..HI"),
                       ("ids=1..x", "not of the form NAME=LO..HI"), ("ids=nan..5", "not of the form NAME=LO..HI"),
                       ("ids=7..5", "lower bound is above"), ("ids=0.5..5", "whole numbers"), ("ids=0..1e12", "is not a range of int64 values"),
                       ("s=0..1e39", "is not a range of fp32 values"), ("other=0..1", 'no input "other"')]:
        for command in (["run", folder.model], ["verify", folder.model, folder.package]):
            expect(run(*command, "--input-range", text), 2, said)
    expect(run("run", folder.model, "--input-range", "ids=0..1", "--input-range", "ids=0..2"), 2, "given twice")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "made-up inputs", Folder))
