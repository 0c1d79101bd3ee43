"""Compiling holds no weights: the peak memory of 200 MB of weights is little more than that of 20 MB. Running holds them as they
are: 400 MB of fp16 or of int4 blocks take no more than 1.2 times that and 300 MB. A model of twice the memory that there may be
compiles.
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import big_model  # noqa: E402
import driver  # noqa: E402
import weights_package  # noqa: E402

MOST_MORE = 32 << 20  # windows of the files; a kept fp16 copy would be 90 MB


def peak(folder, megabytes, precision):
    model = folder / f"{megabytes}.onnx"
    if not model.exists():
        big_model.write(model, megabytes)
    result = driver.run("compile", model, "-o", folder / "out.mlpackage", "--precision", precision, "--force", timeout=300)
    assert result.code == 0, result.stderr
    return result.peak_bytes


def compiles_within(folder, megabytes, data):
    result = driver.run("compile", folder / f"{megabytes}.onnx", "-o", folder / "out.mlpackage", "--force", data=data, timeout=300)
    print(f"# memory: {megabytes} MB of weights {'' if result.code == 0 else 'do not '}compile in {data / 1e6:.0f} MB")
    return result.code == 0


def runs_as_it_is(folder, kind):
    package = folder / f"{kind}.mlpackage"
    _, weights = weights_package.write(package, 400, kind, 1)
    result = driver.run("run", package, timeout=300)
    assert result.code == 0, result.stderr
    most = 1.2 * weights + 300e6
    print(f"# memory, {kind} run: peak {result.peak_bytes / 1e6:.0f} MB for {weights / 1e6:.0f} MB of weights, "
          f"at most {most / 1e6:.0f} MB")
    return result.peak_bytes <= most


def main():
    if driver.SANITIZED:
        print("# memory: skipped, sanitizers need their own")
        return driver.SKIPPED
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        for precision in ("fp32", "fp16"):
            little, much = (peak(pathlib.Path(path), size, precision) for size in (20, 200))
            failed |= much - little > MOST_MORE
            print(f"# memory, {precision}: peak {little / 1e6:.0f} MB for 20 MB of weights, {much / 1e6:.0f} MB for 200 MB")
        failed |= not compiles_within(pathlib.Path(path), 200, 100 << 20)
        # Files are mapped, whole: without addresses for them nothing can be done, which the message says.
        no_addresses = driver.run("compile", pathlib.Path(path) / "200.onnx", "-o", pathlib.Path(path) / "out.mlpackage", "--force",
                                  address_space=150 << 20)
        driver.expect(no_addresses, 1, "error[file-io]: cannot map", "ulimit -v")
        for kind in ("fp16", "int4"):
            failed |= not runs_as_it_is(pathlib.Path(path), kind)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
