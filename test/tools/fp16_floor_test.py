#!/usr/bin/env python3
"""Tests `mlc verify` of fp16 packages. The floor is the error of rounding the constants only; 1.5 times the floor is allowed,
and only for packages of default precision. Expected errors are computed with NumPy.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import models
from driver import MLC, expect, run, run_tests
from verify_test import mil, package, save

RUN = MLC.with_name("mlc-run")
WEIGHTS = [1000.3, -1000.1, 10.0]  # 1000.5, -1000 and 10 in fp16


def linear(last=10.0):
    """A product in fp32, and the same in fp16 with `last` as its last weight."""
    source = f"""func main<ios16>(tensor<fp32, [64, 3]> x) {{
  y = linear(x = x, weight = [{WEIGHTS}], bias = [0.0]);
}} -> (y);
"""
    half = f"""func main<ios16>(tensor<fp32, [64, 3]> x) {{
  h = cast(x = x, dtype = "fp16");
  p = linear(x = h, weight = tensor<fp16, [1, 3]>([[{WEIGHTS[0]}, {WEIGHTS[1]}, {last}]]), bias = tensor<fp16, [1]>([0.0]));
  y = cast(x = p, dtype = "fp32");
}} -> (y);
"""
    return source, half


def product():
    """Returns inputs that are exact in fp16, the product, and the floor."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.repeat(rng.integers(0, 2, (64, 1)), 2, 1), rng.integers(-16, 17, (64, 1)) / 16], 1).astype("f4")
    y = x.astype("f8") @ np.array(WEIGHTS)
    rounded = x.astype("f8") @ np.array(WEIGHTS, np.float16).astype("f8")
    return x, y[:, None], models.measured(rounded.astype("f4"), y.astype("f4"))


def half_and_source(folder, **of_package):
    source, half = linear(**of_package)
    return mil(folder, "source", source), package(folder, "half" + "".join(map(str, of_package.values())), half)


def figures(answer, name="y"):
    return next(output for output in answer["outputs"] if output["name"] == name)


def test_what_constants_cost_is_allowed(folder):
    source, good = half_and_source(folder)
    x, y, (error, rmse) = product()
    assert error > 1.2e-2 and rmse > 1.2e-3, (error, rmse)
    given = ["--inputs", save(folder / "in", x=x)]
    shown = expect(run("verify", source, good, *given), 0, "PASSED", "floor: the error of the source with each float constant",
                   f"; floor {error:.1e}, RMSE {rmse:.1e} (budget {1.5 * error:.1e})").stdout
    assert "budget: fp16 (max error 0.01)" in shown, shown
    answer = expect(run("verify", source, good, *given, "--json"), 0).answer
    output = figures(answer)
    assert answer["floors"] is True and output["tells"] and output["within"], answer
    np.testing.assert_allclose([output["floor"]["max_error"], output["floor"]["rmse"]], [error, rmse], rtol=1e-4)
    np.testing.assert_allclose(output["budget"]["max_error"], 1.5 * error, rtol=1e-4)
    assert output["budget"]["rmse"] == "inf", output
    assert 1e-2 < output["max_error"] < 1.5 * error, output
    _, bad = half_and_source(folder, last=10.5)
    expect(run("verify", source, bad, *given), 3, "FAIL y", f"floor {error:.1e}", "FAILED")
    # With external references, the floor is computed with the imported source.
    known = ["--reference", save(folder / "known", y=y.astype("f4"))]
    output = figures(expect(run("verify", source, good, *given, *known, "--json"), 0).answer)
    np.testing.assert_allclose(output["floor"]["max_error"], error, rtol=1e-4)
    expect(run("verify", source, bad, *given, *known), 3, "FAIL y", f"floor {error:.1e}")


def test_who_gives_a_budget_gets_no_floor(folder):
    source, good = half_and_source(folder)
    given = ["--inputs", save(folder / "in", x=product()[0])]
    for budget in (["--budget", "fp16"], ["--atol", "0.01"], ["--rtol", "1e-3"]):
        shown = expect(run("verify", source, good, *given, *budget), 3, "FAIL y").stdout
        assert "floor" not in shown, shown
        answer = expect(run("verify", source, good, *given, *budget, "--json"), 3).answer
        assert answer["floors"] is False and "floor" not in figures(answer), answer


def test_bundles_carry_floors(folder):
    source, good = half_and_source(folder)
    _, bad = half_and_source(folder, last=10.5)
    x, _, (error, _) = product()
    given = ["--inputs", save(folder / "in", x=x)]
    for made, code in ((good, 0), (bad, 3)):
        bundle = folder / f"bundle{code}"
        expect(run("verify", source, made, *given, "--bundle", bundle), code)
        np.testing.assert_allclose(json.loads((bundle / "parity.json").read_text())["outputs"][0]["floor"]["max_error"], error,
                                   rtol=1e-4)
        expect(run("--bundle", bundle, program=RUN), code, f"floor {error:.1e}")
        expect(run("verify", "--result", bundle / "result.json"), code, f"floor {error:.1e}", "compared again")
        answer = expect(run("verify", "--result", bundle / "result.json", "--json"), code).answer
        np.testing.assert_allclose(figures(answer)["budget"]["max_error"], 1.5 * error, rtol=1e-4)


def test_only_packages_of_precision_fp16_have_floors(folder):
    source = mil(folder, "source", linear()[0])
    given = ["--inputs", save(folder / "in", x=product()[0])]
    for precision, floors in (("fp32", False), ("mixed", False)):
        made = folder / f"{precision}.mlpackage"
        expect(run("compile", source, "-o", made, "--precision", precision), 0)
        answer = run("verify", source, made, *given, "--json").answer
        assert answer["floors"] is floors, (precision, answer)
    # The manifest of another package, or a damaged one, is ignored.
    _, half = half_and_source(folder)
    manifest = folder / "mixed.manifest.json"
    for text in (manifest.read_text(), "{", "[]", "{}"):
        half.with_suffix(".manifest.json").write_text(text)
        assert expect(run("verify", source, half, *given, "--json"), 0).answer["floors"] is True
    # The manifest of the same package is used, regardless of the folder.
    hashed = json.loads(expect(run("inspect", half, "--json"), 0).stdout)
    stated = json.loads(manifest.read_text())
    stated["package"]["xxh3_128"] = package_hash(half)
    half.with_suffix(".manifest.json").write_text(json.dumps(stated))
    assert expect(run("verify", source, half, *given, "--json"), 3).answer["floors"] is False, hashed


def package_hash(path):
    """The package hash that parity bundles use."""
    source = path.with_name("source.mil")
    bundle = path.with_name("for-its-hash")
    run("verify", source, path, "--bundle", bundle)
    return json.loads((bundle / "parity.json").read_text())["package_hash"]


def compare(limit=1000.3, what="", inner="x", dtype="fp32"):
    return f"""func main<ios16>(tensor<fp32, [20]> x) {{
  y = relu(x = x);
  {'h = cast(x = x, dtype = "fp16");' if dtype == "fp16" else ""}
  b = greater(x = {inner}, y = tensor<{dtype}, []>({limit}));
  {what}
"""


BOOLS = '  i = cast(x = b, dtype = "int32");\n} -> (y, i);\n'
PLACES = '  i = non_zero(x = f);\n} -> (y, i);\n'


def numbers(between):
    """Returns 20 numbers, of which `between` lie between 1000.3 and its fp16 value 1000.5; the others are far from both."""
    x = np.where(np.arange(20) % 2, 900, 1100).astype("f4")
    x[:between] = 1000.4
    return x


def test_a_share_of_integers_may_differ(folder):
    source = mil(folder, "source", compare() + BOOLS)
    given = ["--inputs", save(folder / "in", x=numbers(2))]
    half = package(folder, "half", compare(inner="h", dtype="fp16") + BOOLS)
    expect(run("verify", source, half, *given), 0, "ok   i", "90.00 % equal", "floor 10.00 % unequal (budget 15.00 %)", "PASSED")
    output = figures(expect(run("verify", source, half, *given, "--json"), 0).answer, "i")
    assert output["equal_fraction"] == 0.9 and abs(output["floor"]["unequal"] - 0.1) < 1e-9, output
    # 2 of 20 elements differ because of the constants, and so does every element above the limit.
    wrong = package(folder, "wrong", compare(1200, inner="h", dtype="fp16") + BOOLS)
    expect(run("verify", source, wrong, *given), 3, "FAIL i", "floor 10.00 % unequal")
    # Here none differ because of the constants.
    (folder / "in" / "x.npy").unlink()
    save(folder / "in", x=numbers(0))
    expect(run("verify", source, half, *given), 0, "ok   i", "100.00 % equal", "floor 0.00 % unequal")
    expect(run("verify", source, wrong, *given), 3, "FAIL i")
    # One of 20 elements is allowed with an explicit option.
    (folder / "budget.json").write_text('{"base": "fp16", "unequal": 0.1}')
    save(folder / "in", x=numbers(2))
    expect(run("verify", source, half, *given, "--budget", folder / "budget.json"), 0, "ok   i")
    (folder / "budget.json").write_text('{"base": "fp16", "unequal": 0.05}')
    expect(run("verify", source, half, *given, "--budget", folder / "budget.json"), 3, "FAIL i")


def test_sizes_that_depend_on_data(folder):
    cast = '  f = cast(x = b, dtype = "fp32");\n'
    source = mil(folder, "source", compare() + cast + PLACES)
    given = ["--inputs", save(folder / "in", x=numbers(2))]
    half = package(folder, "half", compare(inner="h", dtype="fp16") + cast + PLACES)
    # 1000.4 occurs twice, and nine of the others are larger.
    expect(run("verify", source, half, *given), 0, "-    i", "shape [9, 1], reference has [11, 1]", "not comparable",
           'the size of output "i" depends on data', "ok   y", "PASSED")
    assert not figures(expect(run("verify", source, half, *given, "--json"), 0).answer, "i")["tells"]
    save(folder / "in", x=numbers(0))
    expect(run("verify", source, half, *given), 0, "ok   i")
    wrong = package(folder, "wrong", compare(1200, inner="h", dtype="fp16") + cast + PLACES)
    expect(run("verify", source, wrong, *given), 3, "FAIL i", "shape [0, 1], reference has [10, 1]")


def quotient(dtype, body):
    return f"""func main<ios16>(tensor<fp32, [8, 2]> x) {{
  h = cast(x = x, dtype = "fp16");
  w = const()[val = tensor<{dtype}, [2]>([1e-9, 0.1])];
{body}
}} -> (y);
"""


def test_nan(folder):
    """x w / w, where w[0] underflows in fp16."""
    source = mil(folder, "source", quotient("fp32", "  a = mul(x = x, y = w); y = real_div(x = a, y = w);"))
    x = np.random.default_rng(0).standard_normal((8, 2)).astype("f4")
    given = ["--inputs", save(folder / "in", x=x)]
    back = '\n  y = cast(x = q, dtype = "fp32");'
    half = package(folder, "half", quotient("fp16", "  a = mul(x = h, y = w); q = real_div(x = a, y = w);" + back))
    expect(run("verify", source, half, *given), 3, "-    y", "floor inf", "not comparable", "nothing was compared")
    # A package without NaN passes; one with more NaN than the constants cause does not.
    right = package(folder, "right", quotient("fp16", "  q = relu(x = h); r = sub(x = q, y = h); s = sub(x = q, y = r);" +
                                              back.replace("= q", "= s")))
    expect(run("verify", source, right, *given), 0, "ok   y", "floor inf", "PASSED")
    worse = package(folder, "worse", quotient("fp16", "  a = mul(x = h, y = w); b = real_div(x = a, y = w);"
                                              "  c = reduce_sum(x = b, axes = [1], keep_dims = true); q = add(x = b, y = c);" + back))
    expect(run("verify", source, worse, *given), 3, "FAIL y", "FAILED\n")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "floors"))
