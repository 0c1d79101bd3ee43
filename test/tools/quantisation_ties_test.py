#!/usr/bin/env python3
"""Tests `mlc verify` of quantized outputs: a difference of one step at a tie is reported as such; a step without a tie, and two
steps, are errors.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import expect, run, run_tests
from verify_test import floats, graph, package, save

FLOAT, INT8, ROWS = wire.FLOAT, 3, 64
SCALE = 0.5


def numbers(ties):
    """Numbers from -40 to 40 steps; each is near the middle between two steps, or far from it."""
    steps = np.random.default_rng(3).integers(-40, 40, (ROWS, 4)) + 0.2
    steps[:ties, 0] = np.floor(steps[:ties, 0]) + 0.4999
    return (steps * SCALE).astype("f4")


def source(folder, dequantised):
    zero = wire.tensor("zero", INT8, [], b"\0")
    nodes = [wire.node("QuantizeLinear", ["x", "scale", "zero"], ["q"])]
    if dequantised:
        nodes.append(wire.node("DequantizeLinear", ["q", "scale", "zero"], ["y"]))
    return graph(folder / f"source{dequantised}.onnx", nodes, [("x", FLOAT, [ROWS, 4])],
                 [("y", FLOAT, [ROWS, 4]) if dequantised else ("q", INT8, [ROWS, 4])],
                 [floats("scale", SCALE), zero])


def moved(folder, dequantised, by, name):
    """The same program, with the rounded numbers moved by some steps."""
    tail = f"y = mul(x = r, y = {SCALE});" if dequantised else 'q = cast(x = r, dtype = "int32");'
    return package(folder, name, f"""func main<ios17>(tensor<fp32, [{ROWS}, 4]> x) {{
  d = real_div(x = x, y = {SCALE});
  m = add(x = d, y = {by});
  r = round(x = m);
  {tail}
}} -> ({"y" if dequantised else "q"});
""")


def test_ties_pass_and_are_said(folder):
    given = ["--inputs", save(folder / "in", x=numbers(5))]
    for dequantised in (False, True):
        model, made = source(folder, dequantised), moved(folder, dequantised, 0.0005, f"tie{dequantised}")
        said = f"5 of {4 * ROWS} elements differ by one quantisation step (ties)"
        expect(run("verify", model, made, *given), 0, "PASSED", said)
        answer = expect(run("verify", model, made, *given, "--json"), 0).answer
        assert answer["outputs"][0]["ties"] == 5, answer
        # External references may have rounded to either side.
        steps = np.rint(numbers(5) / np.float32(SCALE))
        known = save(folder / f"known{dequantised}",
                     **{"y": (steps * SCALE).astype("f4")} if dequantised else {"q": steps.astype("i1")})
        expect(run("verify", model, made, *given, "--reference", known), 0, "PASSED", said)


def test_a_step_that_is_no_tie_fails(folder):
    given = ["--inputs", save(folder / "in", x=numbers(5))]
    for dequantised in (False, True):
        for by in (0.4, 1.0, 2.0, -1.0):
            made = moved(folder, dequantised, by, f"moved{dequantised}{by}")
            expect(run("verify", source(folder, dequantised), made, *given), 3, "FAIL", "FAILED")


def test_one_wrong_step_beside_ties_fails(folder):
    """Five ties round to the other side, and so does one element that is not a tie."""
    x = numbers(5)
    x[9, 1] = (7 + 0.2) * SCALE
    mask = np.zeros((ROWS, 4), "f4")
    mask[9, 1] = 1
    for step in (1, 2):
        made = package(folder, f"one{step}", f"""func main<ios17>(tensor<fp32, [{ROWS}, 4]> x) {{
  d = real_div(x = x, y = {SCALE});
  m = add(x = d, y = 0.0005);
  r = round(x = m);
  e = add(x = r, y = tensor<fp32, [{ROWS}, 4]>({(mask * step).tolist()}));
  q = cast(x = e, dtype = "int32");
}} -> (q);
""")
        shown = expect(run("verify", source(folder, False), made, "--inputs", save(folder / "in", x=x)), 3, "FAIL q")
        assert "5 of 256 elements differ by one quantisation step (ties)" in shown.stdout, shown.stdout


def test_nothing_is_said_where_all_are_equal(folder):
    given = ["--inputs", save(folder / "in", x=numbers(5))]
    shown = expect(run("verify", source(folder, False), moved(folder, False, 0.0, "same"), *given), 0, "PASSED").stdout
    assert "ties" not in shown, shown
    assert "(exact: computes in fp32)" in shown, shown


def test_arithmetic_says_what_it_computes(folder):
    model = source(folder, False)
    for arithmetic, what in (("exact", "exact: computes in fp32"), ("faithful", "faithful: rounds fp16 results to fp16")):
        expect(run("run", model, "--arithmetic", arithmetic), 0, f"({what})")
        assert expect(run("run", model, "--arithmetic", arithmetic, "--json"), 0).answer["computes"] == what


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "ties of quantisation"))
