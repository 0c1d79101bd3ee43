"""kill -9 at random times during compilation: the output path always holds a complete package, a previous package is never lost,
and staging folders of killed processes disappear at the next compile.

Compiles two generated models of 200 MB alternately to one path, every fourth time without an existing package. A kill counts as "while
writing" if the output path is unchanged and the staging folder holds bytes. Kills 20 times, or MLC_KILLS.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import big_model  # noqa: E402
import driver  # noqa: E402

MEGABYTES = 200


def arguments(model, package):
    return ["compile", model, "-o", package, "--precision", "fp32", "--no-manifest"]


def same(a, b):
    """Returns whether two folders hold the same files with the same bytes."""
    return subprocess.run(["diff", "-rq", a, b], capture_output=True).returncode == 0


def staging(output):
    return list(output.parent.glob(f".{output.name}.mlc-*"))


def bytes_in(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


class Trial:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.output = folder / "out" / "model.mlpackage"
        self.output.parent.mkdir()
        self.models = [folder / "a.onnx", folder / "b.onnx"]
        self.whole = [folder / "a.mlpackage", folder / "b.mlpackage"]  # packages compiled without interruption
        self.slowest = 0
        for seed, (model, package) in enumerate(zip(self.models, self.whole)):
            big_model.write(model, MEGABYTES, seed=seed)
            result = driver.run(*arguments(model, package), timeout=300)
            if result.code != 0:
                raise RuntimeError(driver.ending(result))
            self.slowest = max(self.slowest, result.seconds)

    def kill_once(self, number):
        """Returns ("before" | "writing" | "after", what is wrong or "")."""
        fresh = number % 2
        if number % 4 == 3:
            shutil.rmtree(self.output, ignore_errors=True)
        before = self.there()
        process = subprocess.Popen([str(driver.MLC), *map(str, arguments(self.models[fresh], self.output))],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.uniform(0, self.slowest * 1.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = self.there()
        left = staging(self.output)
        if after == "broken":
            return "writing", "the output is incomplete"
        if after not in (before, fresh):
            return "writing", f"the output was {before}, is {after}, and {fresh} was being written"
        if len(left) > 1:
            return "writing", f"stale folders remain: {left}"
        if after == fresh and before != fresh:
            return "after", ""
        # If the output holds the same model twice in a row, its bytes do not show whether it was
        # written, so this does not count.
        written = before != fresh and any(bytes_in(folder) for folder in left)
        return ("writing" if written else "before"), ""

    def there(self):
        """Returns 0 or 1 for the package of that model, None for nothing, or "broken"."""
        if not self.output.exists():
            return None
        return next((i for i, package in enumerate(self.whole) if same(package, self.output)), "broken")

    def stale_disappear(self):
        """An uninterrupted compile leaves nothing but its package."""
        result = driver.run(*arguments(self.models[0], self.output), timeout=300)
        if result.code != 0 or self.there() != 0:
            return f"the compile after the kills: {driver.ending(result)}, output {self.there()}"
        left = [f.name for f in self.output.parent.iterdir() if f != self.output]
        return f"left beside the output: {left}" if left else ""


def main():
    kills = int(os.environ.get("MLC_KILLS", "20"))
    seed = int.from_bytes(os.urandom(4), "little")
    counts, failures = {"before": 0, "writing": 0, "after": 0}, []
    # On the disk of the build folder, because /tmp may be in memory.
    with tempfile.TemporaryDirectory(prefix="kill-", dir=driver.BUILD) as scratch:
        trial = Trial(pathlib.Path(scratch), seed)
        for number in range(kills):
            moment, wrong = trial.kill_once(number)
            counts[moment] += 1
            if wrong:
                failures.append(f"kill {number} (seed {seed}): {wrong}")
        if wrong := trial.stale_disappear():
            failures.append(wrong)
    if counts["writing"] < kills // 10:
        failures.append(f"only {counts['writing']} kills fell between the first byte and the exchange")
    for text in failures:
        print(f"FAILED: {text}")
    print(f"# kill -9: {kills} kills of compiling {MEGABYTES} MB: {counts['before']} before the first byte was written, "
          f"{counts['writing']} between it and the exchange, {counts['after']} after it; {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
