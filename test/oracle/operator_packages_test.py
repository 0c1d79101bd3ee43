"""The packages of coremltools' own operator tests: mlc reads each, writes it back as an equal protobuf, also through a
compiled bundle, and computes what the tests expect of Core ML, before and after its passes.

CT_DIR names an importable coremltools with its tests; pytest must be there, too. MLC_CASES: how many cases of each
parametrised test are taken (default 1).
"""
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checkers  # noqa: E402
import driver  # noqa: E402
import roundtrip_test  # noqa: E402

TESTS = pathlib.Path(os.environ.get("CT_DIR", "")) / "coremltools/converters/mil/mil/ops/tests"
FOLDERS = ("iOS14", "iOS15", "iOS16", "iOS17", "iOS18")
SECONDS = 1500
# What mlc refuses, and why.
REFUSED = {"TestFill::test_builder_to_backend_symbolic": "variable rank"}
# Tests of errors at run time, which expect no outputs; and boxes outside of [0, 1], which the operator's documentation
# excludes.
NO_VALUES = ("invalid_indices", "TestCropResize::test_builder_to_backend_smoke")
HALF = 1e-2  # Core ML's result of fp16 arithmetic is not exact, either


def record(folder):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "record_packages",
         *(str(TESTS / name) for name in FOLDERS)], capture_output=True, text=True, timeout=SECONDS, cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{pathlib.Path(__file__).parent}:{os.environ['CT_DIR']}", "RECORDED": str(folder),
             "CASES": os.environ.get("MLC_CASES", "1"), "PYMIL_TEST_TARGETS": "mlprogram",
             "INCLUDE_MIL_FP32_UNIT_TESTS": "1"})


def as_declared(about, inputs, folder):
    """--input arguments, each in the type that the package takes."""
    arguments = []
    types = {entry["mil_name"]: entry["dtype"] for entry in about["inputs"]}
    for name, value in inputs.items():
        dtype = {"fp16": np.float16, "int32": np.int32}.get(types[name], np.float32)
        np.save(folder / f"{name}.npy", value.astype(dtype))
        arguments += ["--input", f"{name}={folder / name}.npy"]
    return arguments


def wrong_values(package, case, arguments, half, folder):
    if any(name in case["test"] for name in NO_VALUES):
        return ""
    result = driver.run("run", package, "--json", "--output-dir", folder / "out", *arguments)
    if driver.verdict(result) != "ok":
        return driver.ending(result)
    computed = {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}
    for name, expected in case["expected"].items():
        if expected.dtype.kind not in "fiub":
            continue
        value = computed.get(name)
        if value is None or value.size != expected.size:
            return f"output {name} is {None if value is None else value.shape}, expected {expected.shape}"
        value, expected = value.reshape(expected.shape).astype(np.float64), expected.astype(np.float64)
        finite = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        least = HALF if half else 1e-4
        if not np.allclose(value, expected, rtol=max(case["rtol"], least), atol=max(case["atol"], least * finite),
                           equal_nan=True):
            return f"output {name} is {value.ravel()[:4]}, expected {expected.ravel()[:4]}"
    return ""


def check(package):
    """(the test, what is wrong)"""
    from coremltools.proto import Model_pb2 as proto
    case = pickle.loads(package.with_suffix(".pickle").read_bytes())
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        folder = pathlib.Path(scratch)
        back, bundle, again, better = (folder / name for name in (
            "back.mlpackage", "bundle.mlmodelc", "again.mlpackage", "better.mlpackage"))
        for command in (("opt", package, "--passes", "", "-o", back), ("precompile", package, "-o", bundle),
                        ("opt", bundle, "--passes", "", "-o", again), ("opt", package, "-o", better)):
            result = driver.run(*command, "--json")
            if driver.verdict(result) != "ok":
                if any(name in case["test"] and why in driver.ending(result) for name, why in REFUSED.items()):
                    return case["test"], ""
                return case["test"], f"{command[0]}: {driver.ending(result)}"
        read, written, bundled = (roundtrip_test.load(proto, p) for p in (package, back, again))
        if read != written:
            return case["test"], "the protobufs differ"
        for model in (read, bundled):
            if "buildInfo" in model.mlProgram.attributes:  # a bundle has its compiler's versions there
                del model.mlProgram.attributes["buildInfo"]
            for function in model.mlProgram.functions.values():  # a bundle sorts them
                inputs = sorted(function.inputs, key=lambda value: value.name)
                del function.inputs[:]
                function.inputs.extend(inputs)
        if read != bundled:
            return case["test"], "the protobufs differ after a bundle"
        about = driver.run("inspect", package, "--json").answer
        if about["states"]:
            return case["test"], ""  # the test runs several times
        arguments = as_declared(about, case["inputs"], folder)
        half = case["half"] or b"fp16" in (bundle / "model.mil").read_bytes()
        return case["test"], (wrong_values(package, case, arguments, half, folder)
                              or wrong_values(better, case, arguments, half, folder))


def main():
    what = checkers.missing()
    if not what and subprocess.run([sys.executable, "-c", "import pytest"], capture_output=True).returncode:
        what = "no pytest"
    if not what and not TESTS.is_dir():
        what = f"no {TESTS}"
    if what:
        print(f"# packages of coremltools' operator tests: skipped, {what}")
        return driver.SKIPPED
    sys.path.insert(0, os.environ["CT_DIR"])
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        recorded = record(pathlib.Path(scratch))
        packages = sorted(pathlib.Path(scratch).glob("*.mlpackage"))
        answers = driver.parallel(check, packages)
    failures = [(test, why) for test, why in answers if why]
    for test, why in failures:
        print(f"FAILED {test}: {why}")
    print(f"# packages of coremltools' operator tests: {len(answers) - len(failures)} of {len(answers)} are read, "
          "written back equal and computed as expected")
    if len(answers) < 50:  # pytest runs none where it cannot import one
        print(f"{len(answers)} packages are too few; pytest said: {recorded.stdout[-2000:]}")
    return 1 if failures or len(answers) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
