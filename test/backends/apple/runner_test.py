"""`mlc run` on Core ML that misbehaves: exceptions, hangs, outputs with gaps, handlers on other threads, old systems."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

from driver import MLC, ROOT, SKIPPED, expect, run, run_tests

STUB = MLC.parent / "mlc-run-stub"
# All at once: systems before macOS 15 have no states and no functions, those before 14.4 no plan.
UNKIND = ("pad-arrays,pad-outputs,offset-outputs,mutable-strides,moved-bytes,handler-thread,delete-compiled,nil-devices,"
          "nil-cost,missing-function,no-ane,macos=14.7")


def digits(folder):
    """The sample model, compiled, and a sample of its inputs."""
    expect(run("compile", ROOT / "manifests/digits/digits.onnx", "-o", folder / "digits.mlpackage"), 0)
    np.save(folder / "image.npy", np.load(ROOT / "manifests/digits/images.npy")[:1])
    return folder / "digits.mlpackage"


def runner(package, *arguments, stub="", **how):
    image = package.parent / "image.npy"
    return run(package, "--input", f"image={image}", *arguments, program=STUB, **how,
               environment={"MLC_STUB": stub, "OMP_WAIT_POLICY": "passive",
                            "MLC_CACHE_DIR": str(package.parent / "cache")})


def test_twenty_predictions(folder):
    """One throws, one hangs and writes five seconds later; the others are right, and the breaker says what it did."""
    package = digits(folder)
    for k, arguments in enumerate(([], ["--jobs", "2"])):
        result = runner(package, "--iterations", 20, "--timeout", 1000, "--compare", "reference", "--json", "--output-dir",
                        folder / f"out{k}", *arguments, stub=UNKIND + ",throw-at=4,hang-at=8,late-write-ms=5000")
        expect(result, 4)
        answer = result.answer
        counted = answer["telemetry"]
        assert counted["failures"]["exception"] == 1, counted
        assert counted["failures"]["timeout"] == 1, counted
        assert counted["predictions"] == 20, counted
        assert counted["succeeded"] + counted["fallbacks"] == 18, counted
        assert [c["to"] for c in answer["breaker"]["changes"]] == ["open"], answer["breaker"]
        # With two at a time the tenth is through before the hang is one.
        assert f"{1 if arguments else 2} of 10 predictions failed" in answer["breaker"]["changes"][0]["reason"], answer["breaker"]
        assert {f["failure"] for f in answer["failures"]} == {"exception", "timeout"}, answer["failures"]
        assert answer["compared"]["verdict"] == "PASSED", answer["compared"]
        assert answer["placement"]["operations"].keys() == {"unknown"}, answer["placement"]
        assert answer["machine"]["os"] == "macOS 14.7"
        expected = np.load(ROOT / "manifests/digits/probabilities.npy")[:1]
        assert np.abs(np.load(folder / f"out{k}" / "probabilities.npy") - expected).max() < 0.01


def test_late_output(folder):
    """What hangs writes while others run: they are right, and nothing breaks."""
    result = runner(digits(folder), "--soak", "2s", "--timeout", 300, "--compare", "reference", "--json",
                    stub="pad-outputs,hang-at=150,late-write-ms=900")
    expect(result, 4)
    assert result.answer["telemetry"]["failures"] == {"timeout": 1}, result.answer["telemetry"]
    assert result.answer["compared"]["verdict"] == "PASSED"


def test_what_is_missing(folder):
    """A function, a unit, a system, a unit that operations need: each by itself."""
    package = digits(folder)
    expect(runner(package, "--function", "encoder", stub="missing-function"), 1, "error[bad-name]", "encoder")
    expect(runner(package, "--specialization", "fast-prediction", stub="macos=14.4"), 1, "error[needs-system]", "macOS 15")
    expect(runner(package, "--units", "ane", stub="no-ane"), 1, "error[needs-system]", "no Neural Engine")
    expect(runner(package, "--units", "ane", "--require-units", stub="nil-devices"), 3)
    expect(runner(package, "--units", "ane", "--require-units"), 0)
    expect(runner(package, stub="compile-fails"), 1, "error[runtime-failed]", "the compiler failed")
    expect(runner(package, stub="load-throws"), 1, "error[runtime-failed]", "StubException")


def test_no_stub_elsewhere(folder):
    """What people build knows no Core ML here, and its switches are none."""
    package = digits(folder)
    expect(run(package, "--units", "all", program=MLC.parent / "mlc-run", environment={"MLC_STUB": "no-plan"}), 1,
           "error[no-coreml]")


if __name__ == "__main__":
    if not STUB.exists():
        print("# runs on Core ML's stub: skipped, no clang or no GNUstep here (scripts/setup --dev)")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "runs on Core ML's stub"))
