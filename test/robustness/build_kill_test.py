"""Builds that are killed at random, several builds in one folder, eight on one cache, and a full disk: never a wrong package, and the
next build makes what is missing.

MLC_KILLS is the number of builds that are killed (default 12).
"""
import json
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

import driver
from build_fleet import VARIANTS, Fleet
from driver import MLC, run


def arguments(fleet, *options):
    return [str(MLC), "build", str(fleet.models), "-o", str(fleet.out), "--json", *map(str, options)]


def left_behind(fleet):
    """Hidden folders beside the outputs, and anything under construction."""
    return [f.name for f in fleet.out.iterdir() if f.name.startswith(".") and f.name != ".mlc-build"]


def whole(fleet, expected):
    """Every file that is there is that of some complete build: the outputs are replaced one by one."""
    return all(expected.get(name) in (None, data) for name, data in fleet.bytes().items())


def main():
    kills = int(os.environ.get("MLC_KILLS", "12"))
    seed = int.from_bytes(os.urandom(4), "little")
    choice, failures = random.Random(seed), []

    def check(condition, text):
        if not condition:
            failures.append(f"{text} (seed {seed})")

    with tempfile.TemporaryDirectory(prefix="build-", dir=driver.BUILD) as scratch:
        fleet = Fleet(pathlib.Path(scratch))
        cache = fleet.folder / "cache"
        begin = time.monotonic()
        fleet.build()
        seconds = time.monotonic() - begin
        expected = fleet.bytes()
        shutil.rmtree(fleet.out)

        for i in range(kills):
            process = subprocess.Popen(arguments(fleet, "-j", choice.choice((1, 2)), "--cache", cache), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            time.sleep(choice.uniform(0, seconds * 1.2))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)  # its children end, too: they hold the pipe of standard error
            check(not fleet.out.exists() or whole(fleet, expected), f"kill {i}: a wrong file")
            if i % 3 == 2:
                fleet.build("--cache", cache)
                check(fleet.bytes() == expected, f"kill {i}: the next build differs")
                check(not left_behind(fleet), f"kill {i}: {left_behind(fleet)}")
                shutil.rmtree(fleet.out if choice.random() < 0.5 else cache, ignore_errors=True)
        fleet.build("--cache", cache)
        check(fleet.bytes() == expected, "the build after all kills differs")
        result = run("cache", "gc", "--verify", "--cache", cache, "--json")
        check(result.code == 0 and not result.answer["removed"], f"gc: {result.stdout}")

        # A build that was killed after it had recorded its results, but before it removed their folder: nothing is built again.
        abandoned = fleet.out / ".n-only.mlpackage.mlc-1-1"
        (abandoned / "new").mkdir(parents=True)
        (abandoned / "mlc-staging").touch()
        fleet.build("--cache", cache)
        check(not left_behind(fleet), f"killed at the end: {left_behind(fleet)}")

        # One that was killed while it installed its results, of which it has announced the names: these are replaced. Without
        # this, a folder of that name is somebody else's.
        def forget(announced):
            state = fleet.out / ".mlc-build" / "state"
            for name in VARIANTS:
                (state / f"{name}.json").unlink(missing_ok=True)
                outputs = [f.name for f in fleet.out.iterdir() if f.name.startswith(f"{name}.")]
                if announced:
                    (state / f"{name}.installing").write_text(json.dumps({"version": 1, "outputs": outputs}))

        forget(announced=True)
        (fleet.out / "m-fp16.manifest.json").unlink()
        fleet.build("--cache", cache)
        check(fleet.bytes() == expected, "the build after one that was killed while it installed differs")
        check(not list(fleet.out.rglob("*.installing")), "an announcement stays")
        forget(announced=False)
        refused = fleet.build("--cache", cache, code=1)["m-fp16"]
        check([e["id"] for e in refused["errors"]] == ["file-exists"], f"a foreign folder is replaced: {refused}")
        shutil.rmtree(fleet.out)
        fleet.build("--cache", cache)

        # Two builds in one folder, and eight in folders of their own with one cache.
        for count, shared in ((2, True), (8, False)):
            for folder in (fleet.out, cache):
                shutil.rmtree(folder, ignore_errors=True)
            outs = [fleet.out if shared else fleet.folder / f"out{i}" for i in range(count)]
            running = [subprocess.Popen([*arguments(fleet)[:4], str(out), "--json", "--cache", str(cache)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE) for out in outs]
            for process in running:
                shown, said = process.communicate(timeout=300)
                check(process.returncode == 0, f"{count} builds: exit code {process.returncode}: {shown} {said}")
            for out in outs:
                fleet.out = out
                check(fleet.bytes() == expected, f"{count} builds: {out.name} differs")
            fleet.out = outs[0] if shared else fleet.folder / "out"
        made = run("cache", "stats", "--cache", cache, "--json").answer
        check(made["misses"] == 8, f"eight builds made results more than once: {made}")

        # A cache on a full disk is not used, and the build goes on. Only root can mount a small file system.
        small = fleet.folder / "small"
        small.mkdir()
        mounted = os.getuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", small],
                                                      capture_output=True).returncode == 0
        if mounted:
            shutil.rmtree(fleet.out, ignore_errors=True)
            try:
                result = run("build", fleet.models, "-o", fleet.out, "--cache", small / "cache", "--json")
            finally:
                subprocess.run(["umount", small], check=True)
            warnings = result.answer.get("warnings", [])
            check(result.code == 0 and fleet.bytes() == expected, f"full cache: {result.stdout}")
            check([w["id"] for w in warnings] == ["remote-cache"], f"full cache: {warnings}")

        # A full disk, as a limit on the size of files. Nothing is lost, and the message names the file.
        shutil.rmtree(fleet.out, ignore_errors=True)
        fleet.build()
        fleet.recipes["m"]["variants"][0]["options"] += ["--author", "x" * 100]
        fleet.write()
        limited = subprocess.run(["bash", "-c", "ulimit -f 0; trap '' XFSZ; exec \"$@\"", "bash", *arguments(fleet)],
                                 capture_output=True, text=True)
        check(limited.returncode in (1, 70), f"full disk: exit code {limited.returncode}: {limited.stdout} {limited.stderr}")
        check(fleet.bytes() == expected, "full disk: an output was changed or lost")

    for failure in failures:
        print(failure)
    print(f"# builds killed at random: {kills}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
