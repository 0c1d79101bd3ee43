"""Processes that share a cache of compiled models and are killed at random: the cache never returns a damaged bundle, no lock
outlives its process, and no incomplete entry remains.

Eight concurrent processes run `mlc precompile --cache` on 50 generated packages, and three in five are killed (SIGKILL) at a random
time. The limit is half of the total size, so that entries are evicted all the time. Every returned bundle is compared with one
compiled without a cache. Runs for 10 seconds, or MLC_CACHE_SECONDS.
"""
import fcntl
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

WORKERS, MODELS, SIZE, FLOAT = 8, 50, 512, 1


def files(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def write_model(path, number):
    weight = np.random.default_rng(number).standard_normal((SIZE, SIZE)).astype(np.float32)
    path.write_bytes(wire.model(wire.graph([wire.node("MatMul", ["x", "w"], ["y"])], [wire.value_info("x", FLOAT, [1, SIZE])],
                                           [wire.value_info("y", FLOAT, [1, SIZE])],
                                           [wire.tensor("w", FLOAT, [SIZE, SIZE], raw=weight.tobytes())])))


class Trial:
    def __init__(self, folder):
        self.folder, self.cache = folder, folder / "cache"
        self.packages = [folder / "packages" / f"m{i}.mlpackage" for i in range(MODELS)]
        self.packages[0].parent.mkdir()
        self.failures, self.counts = [], {"given": 0, "found": 0, "killed": 0}
        self.lock = threading.Lock()

        def prepare(package):
            model = package.with_suffix(".onnx")
            write_model(model, int(package.stem[1:]))
            for words in (["compile", model, "-o", package, "--no-manifest", "--no-measure"],
                          ["precompile", package, "-o", package.with_suffix(".mlmodelc")]):
                result = driver.run(*words)
                if result.code != 0:
                    raise RuntimeError(driver.ending(result))
            return files(package.with_suffix(".mlmodelc"))
        self.whole = driver.parallel(prepare, self.packages)
        took = driver.run("precompile", self.packages[0], "-o", folder / "timed.mlmodelc", "--cache", folder / "timed")
        self.slowest = took.seconds * WORKERS / 2
        bytes_of_all = sum(len(data) for whole in self.whole for data in whole.values())
        self.environment = {**os.environ, "MLC_CACHE_LIMIT": str(bytes_of_all // 2)}

    def work(self, worker, seed, until):
        """Compiles random packages until the given time; records failures."""
        choice = random.Random(seed)
        output = self.folder / f"out{worker}"
        output.mkdir()
        while time.monotonic() < until:
            number = choice.randrange(MODELS)
            bundle = output / "m.mlmodelc"
            shutil.rmtree(bundle, ignore_errors=True)
            process = subprocess.Popen([driver.MLC, "precompile", self.packages[number], "-o", bundle, "--cache", self.cache, "--json"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment, text=True)
            if choice.random() < 0.6:
                time.sleep(choice.uniform(0, self.slowest))
                process.send_signal(signal.SIGKILL)
            try:
                shown, said = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                self.fail(f"no end: somebody waits for a lock, {number} (seed {seed})")
                continue
            if process.returncode == -signal.SIGKILL:
                self.count("killed")
            elif process.returncode != 0:
                self.fail(f"exit code {process.returncode}: {shown} {said}")
            elif files(bundle) != self.whole[number]:
                self.fail(f"another bundle was given out than that of {number}")
            else:
                self.count("given")
                if '"cached": true' in shown:
                    self.count("found")

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fail(self, text):
        with self.lock:
            self.failures.append(text)

    def after(self):
        """Checks the cache when all processes have ended."""
        for lock in (self.cache / "lock").iterdir():
            with open(lock) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self.fail(f"{lock.name} is locked by a dead process")
        result = driver.run("cache", "gc", "--verify", "--cache", self.cache, "--json", environment={"MLC_CACHE_LIMIT": "1TB"})
        if result.code != 0:
            self.fail(f"gc: {driver.ending(result)}")
        for removed in result.answer.get("removed", []):
            if removed["reason"] != "half-written":
                self.fail(f"gc found {removed}")
        names = {kind: {f.name for f in (self.cache / kind).iterdir()} for kind in ("ac", "cas", "tree", "lock", "work")}
        linked = {f.stat().st_ino for f in (self.cache / "tree").rglob("*") if f.is_file()}
        blobs = {f.stat().st_ino for f in (self.cache / "cas").iterdir()}
        if names["ac"] != names["tree"] or linked != blobs or names["work"] or names["lock"] - names["ac"] - {"all", "stats"}:
            self.fail(f"pieces stay: {({kind: len(found) for kind, found in names.items()})}, {len(linked)} files, {len(blobs)} blobs")
        return len(names["ac"])


def main():
    seconds = float(os.environ.get("MLC_CACHE_SECONDS", "10"))
    seed = int.from_bytes(os.urandom(4), "little")
    # On the disk of the build folder, because /tmp may be in memory.
    with tempfile.TemporaryDirectory(prefix="cache-", dir=driver.BUILD) as scratch:
        trial = Trial(pathlib.Path(scratch))
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=trial.work, args=(i, seed + i, until)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = trial.after()
    counts = trial.counts
    if not counts["killed"] or not counts["found"] or counts["given"] == counts["found"]:
        trial.fail(f"not everything happened: {counts}")
    for text in trial.failures[:20]:
        print(f"FAILED: {text}")
    print(f"# cache: {WORKERS} processes at a time, {seconds:.0f} s (seed {seed}): {counts['killed']} killed, {counts['given']} bundles "
          f"given out, {counts['found']} of them found; {entries} entries left; {len(trial.failures)} failures")
    return 1 if trial.failures else 0


if __name__ == "__main__":
    sys.exit(main())
