"""Compiling does not hold weights: the peak memory for 200 MB of weights is little more than for 20 MB; measuring in fp16 runs the
model and holds its weights once. Running holds weights in their stored form: fp16 or blocks of int4 take at most 1.2 times their
bytes, for one vector and for many, in addition to a run of one layer. A model of twice the available memory or address space
compiles to the same bytes.

MLC_LIMITED_MEGABYTES: the size of the models that are compiled with limited address space (default 300).
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import big_model  # noqa: E402
import driver  # noqa: E402
import big_package  # noqa: E402
from overwrite_test import tree  # noqa: E402

MOST_MORE = 32 << 20  # windows of the files; a kept fp16 copy would be 90 MB
# Addresses are assigned at random, and pieces aligned to huge pages of 2 MB waste some: over this range of limits, the same command
# may succeed or fail.
RANDOM_MEGABYTES = 6
LIMITED = int(os.environ.get("MLC_LIMITED_MEGABYTES", "300"))


def peak(folder, megabytes, *options):
    model = folder / f"{megabytes}.onnx"
    if not model.exists():
        big_model.write(model, megabytes)
    result = driver.run("compile", model, "-o", folder / "out.mlpackage", *options, "--force", timeout=300)
    assert result.code == 0, result.stderr
    return result.peak_bytes


def compiles_within(folder, megabytes, data):
    result = driver.run("compile", folder / f"{megabytes}.onnx", "-o", folder / "out.mlpackage", "--force", data=data, timeout=300)
    print(f"# memory: {megabytes} MB of weights {'' if result.code == 0 else 'do not '}compile in {data / 1e6:.0f} MB")
    return result.code == 0


def few_addresses(folder):
    """With an address space (ulimit -v) of half the size of the model, commands that compile, read and write packages behave as
    without a limit, except for measuring, which runs the model and reports if it could not. Then with ever smaller limits."""
    limit = LIMITED * 500_000
    (folder / "out").mkdir()

    def both(*command, outputs=(), code=0):
        """Runs without a limit and with it: the same answer and the same files."""
        seen = []
        for addresses in (None, limit):
            result = driver.run(*command, folder=folder, address_space=addresses, timeout=300)
            driver.expect(result, code)
            seen.append((result.stdout if "--json" in command else "", tree(folder / "out")))
            for output in outputs:
                (shutil.rmtree if (folder / output).is_dir() else os.remove)(folder / output)
        assert seen[0] == seen[1], f"{command}: different result in {limit / 1e6:.0f} MB of address space"

    for model in ("inline.onnx", "external.onnx"):
        big_model.write(folder / model, LIMITED, model == "external.onnx")
        for options in (["--no-measure"], ["--precision", "fp32", "--sha256"]):
            both("compile", model, "-o", "out/m.mlpackage", *options, outputs=["out/m.mlpackage", "out/m.manifest.json"])
        not_measured(folder, model, limit)
    both("compile", model, "-o", "out/m.mlmodelc", "--no-measure", outputs=["out/m.mlmodelc", "out/m.manifest.json"])
    driver.expect(driver.run("compile", model, "-o", "m.mlpackage", "--precision", "fp32", folder=folder, timeout=300), 0)
    both("inspect", "m.mlpackage", "--ops", "--weights", "--json")
    both("diff", "m.mlpackage", "m.mlpackage", "--json")
    both("opt", "m.mlpackage", "-o", "out/o.mlpackage", outputs=["out/o.mlpackage"])
    both("precompile", "m.mlpackage", "-o", "out/p.mlmodelc", outputs=["out/p.mlmodelc"])

    # The engine needs all weights in memory.
    driver.expect(driver.run("run", "m.mlpackage", folder=folder, address_space=limit, timeout=300), 1, "error[resource-limit]", "ulimit -v")

    shutil.rmtree(folder / "m.mlpackage")
    first = ever_fewer(folder, ["compile", model, "-o", "out/m.mlpackage"], "address_space", range(80, LIMITED // 2, LIMITED // 30))
    print(f"# memory: {LIMITED} MB compile in {limit / 1e6:.0f} MB of address space; minimum limits in MB: {first}")


def not_measured(folder, model, limit):
    """The default and mixed precision run the model. Without enough memory, the default skips that and reports it."""
    for precision in ("fp16", "mixed"):
        result = driver.run("compile", model, "-o", "out/m.mlpackage", "--precision", precision, folder=folder, address_space=limit,
                            timeout=300)
        driver.expect(result, 0, "not measured", "ran out of memory")
        assert "rounding" not in json.loads((folder / "out/m.manifest.json").read_text()), "errors reported without measuring"
        shutil.rmtree(folder / "out/m.mlpackage")
        os.remove(folder / "out/m.manifest.json")


def ever_fewer(folder, command, kind, sizes):
    """Under limits of so many MB, a command succeeds, or fails with an error that names the limit and leaves nothing behind."""
    first = {}
    for megabytes in sizes:
        limit = {kind: megabytes * 1_000_000}
        if driver.run("--version", **limit).code != 0:
            continue  # even its libraries cannot be loaded
        result = driver.run(*command, "--json", folder=folder, timeout=300, **limit)
        ended = driver.verdict(result)
        assert ended in ("ok", "refused"), f"{command} in {megabytes} MB, {kind}: {driver.ending(result)}"
        first.setdefault(ended, megabytes)
        may_fail = megabytes <= first.get("ok", megabytes) + RANDOM_MEGABYTES
        assert ended == "ok" or may_fail, f"{command} fails with {megabytes} MB of {kind}, not with {first['ok']} MB"
        left = sorted(os.listdir(folder / "out"))
        if ended == "refused":
            assert not left and "ulimit" in str(result.errors), f"{command} in {megabytes} MB: left {left}, {result.errors}"
        for name in left:
            (shutil.rmtree if (folder / "out" / name).is_dir() else os.remove)(folder / "out" / name)
    return first


def runs_or_says_so(folder):
    """The libraries cannot recover from a lack of memory, so it is detected in advance."""
    (folder / "out").mkdir()
    big_model.write(folder / "m.onnx", 40)
    for kind, sizes in (("address_space", range(80, 260, 6)), ("data", range(16, 136, 6))):
        first = ever_fewer(folder, ["run", "m.onnx", "--output-dir", "out"], kind, sizes)
        print(f"# memory: 40 MB run under limits of {kind}; minimum in MB: {first}")


def runs_as_it_is(folder, kind, batch, megabytes):
    runs = []
    for size in (1, megabytes):
        package = folder / f"{kind}-{batch}-{size}.mlpackage"
        _, weights = big_package.write(package, size, kind, batch)
        result = driver.run("run", package, timeout=300)
        assert result.code == 0, result.stderr
        runs.append((weights, result.peak_bytes))
    more_weights, more = (after - before for before, after in zip(*runs))
    print(f"# memory, {kind} run in batches of {batch}: {more / 1e6:.0f} MB more for {more_weights / 1e6:.0f} MB of weights more")
    return more <= 1.2 * more_weights


def main():
    if driver.SANITIZED:
        print("# memory: skipped, sanitizers need their own")
        return driver.SKIPPED
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        for options, most in ((["--precision", "fp32"], MOST_MORE), (["--no-measure"], MOST_MORE), ([], MOST_MORE + 1.2 * 180e6)):
            little, much = (peak(pathlib.Path(path), size, *options) for size in (20, 200))
            failed |= much - little > most
            print(f"# memory, {' '.join(options) or 'default'}: peak {little / 1e6:.0f} MB for 20 MB of weights, {much / 1e6:.0f} MB for 200 MB")
        failed |= not compiles_within(pathlib.Path(path), 200, 100 << 20)
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        for kind, megabytes in (("fp16", 200), ("int4", 80)):
            for batch in (1, 16):
                failed |= not runs_as_it_is(pathlib.Path(path), kind, batch, megabytes)
    # Memory held by this process would hide the peaks of its children (driver.Result).
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        few_addresses(pathlib.Path(path))
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        runs_or_says_so(pathlib.Path(path))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
