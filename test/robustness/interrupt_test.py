"""Signals, a full disk, a file-size limit and truncated sources, at many points during writing: the output is either the complete
old one or the complete new one, and no hidden files remain beside it, even before the next run.

Each case waits until a number of bytes is staged and then acts. MLC_INTERRUPTS is the number of points for each command and signal
(default 2).
"""
import contextlib
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import big_model
import driver
import onnx_wire as wire
from driver import MLC, expect, run, run_tests
from overwrite_test import tree

MEGABYTES = 60
MOMENTS = int(os.environ.get("MLC_INTERRUPTS", "2"))
SECONDS = 120
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
skipped = []


def staged(folder):
    """Returns the number of bytes in the tool's hidden folders; None if there are no folders."""
    size = None
    with contextlib.suppress(OSError):  # files may appear and disappear
        for hidden in [path for path in folder.iterdir() if path.name.startswith(".") and ".mlc-" in path.name]:
            size = size or 0
            for path in hidden.rglob("*"):
                size += path.stat().st_blocks * 512
    return size


def big_output(path):
    """y = x as a tensor of MEGABYTES: a long .npy file."""
    rows = MEGABYTES * 250
    shape = wire.tensor("s", wire.INT64, [2], np.array([rows, 1000], "<i8").tobytes())
    path.write_bytes(wire.model(wire.graph([wire.node("Expand", ["x", "s"], ["y"])],
                                           [wire.value_info("x", wire.FLOAT, [1, 1000])],
                                           [wire.value_info("y", wire.FLOAT, [rows, 1000])], [shape])))


class Folder(type(pathlib.Path())):
    """Commands with large outputs, each with its output path. `out` holds nothing else."""

    def prepare(self):
        (self / "out").mkdir()
        big_model.write(self / "m.onnx", MEGABYTES, external=True)
        big_output(self / "big.onnx")
        expect(run("compile", "m.onnx", "-o", "m.mlpackage", "--precision", "fp32", folder=self, timeout=SECONDS), 0)
        (self / "few.mil").write_text("func main<ios16>(tensor<fp32, [4]> x) {\n  y = relu(x = x);\n} -> (y);\n")
        return {
            "compile": ["compile", "m.onnx", "-o", "out/m.mlpackage", "--precision", "fp32"],
            "compile to a bundle": ["compile", "m.onnx", "-o", "out/m.mlmodelc", "--precision", "fp16"],
            "opt": ["opt", "m.mlpackage", "-o", "out/o.mlpackage", "--passes", ""],
            "opt to text": ["opt", "m.mlpackage", "-o", "out/o.mil", "--passes", ""],
            "run": ["run", "big.onnx", "--output-dir", "out"],
            "precompile": ["precompile", "m.mlpackage", "-o", "out/p.mlmodelc"],
            "verify": ["verify", "m.onnx", "m.mlpackage", "--bundle", "out/bundle"],
        }


def start(folder, command, **options):
    return subprocess.Popen([str(MLC), *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def act_while_writing(folder, command, least, action, **options):
    """Calls action(process) as soon as `least` bytes are staged. Returns (exit code, output, whether it was in time)."""
    process = start(folder, command, **options)
    late = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < late:
        size = staged(folder / "out")
        if size is not None and size >= least:
            action(process)
            break
        time.sleep(0.0005)
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{command} does not end: {out}{err}")
    return process.returncode, out + err


def whole(folder, command, before, expected):
    """Returns what is wrong with the contents of `out`, and whether they are the new ones."""
    after = tree(folder / "out")
    if after == before:
        return "", False
    hidden = [name for name in after if any(part.startswith(".") for part in pathlib.Path(name).parts)]
    if hidden:
        return f"{hidden[:3]} stays", False
    new = {name: value for name, value in after.items() if not name.endswith("manifest.json")}
    return ("" if new == expected else f"neither the old nor the new one: {sorted(new)}"), True


def test_signals_while_writing(folder):
    commands, generator = folder.prepare(), random.Random(7)
    hits = {}
    for name, command in commands.items():
        subprocess.run(["rm", "-rf", folder / "out"], check=True)  # leftovers of the previous command
        (folder / "out").mkdir()
        expect(run(*command, folder=folder, timeout=SECONDS), 0)
        expected = {k: v for k, v in tree(folder / "out").items() if not k.endswith("manifest.json")}
        for number in range(len(SIGNALS) * MOMENTS):
            sent = SIGNALS[number % len(SIGNALS)]
            if number % 2:  # sometimes over an existing output
                before = tree(folder / "out")
            else:
                subprocess.run(["rm", "-rf", folder / "out"], check=True)
                (folder / "out").mkdir()
                before = {}
            least = generator.uniform(0, 0.9 * MEGABYTES * 1e6) if number >= len(SIGNALS) else 0
            code, said = act_while_writing(folder, command, least, lambda process: process.send_signal(sent))
            wrong, new = whole(folder, command, before, expected)
            assert not wrong, f"{name}, {sent.name} at {least:.0f} bytes, exit code {code}: {wrong}"
            assert code in (0, -sent), f"{name}, {sent.name}: exit code {code}: {said}"
            assert code != 0 or new or before, f"{name}: exit code 0 without an output"
            hits[name] = hits.get(name, 0) + (code == -sent and not new)
    print(f"# interrupts: {len(SIGNALS) * MOMENTS} each; signals before the output was complete: {hits}")
    assert all(hits.get(name) for name in commands), hits


def test_signals_before_and_after_writing(folder):
    """Signals at any time, including before the handlers are installed."""
    (folder / "m.mil").write_text("func main<ios16>(tensor<fp32, [4]> x) {\n  y = relu(x = x);\n} -> (y);\n")
    generator = random.Random(8)
    (folder / "out").mkdir()
    command = ["opt", "m.mil", "-o", "out/m.mlpackage"]
    slowest = run(*command, folder=folder).seconds
    for number in range(20 * MOMENTS):
        process = start(folder, command)
        time.sleep(generator.uniform(0, 1.2 * slowest))
        process.send_signal(SIGNALS[number % 3])
        process.communicate(timeout=SECONDS)
        assert process.returncode in (0, -SIGNALS[number % 3]), process.returncode
        assert os.listdir(folder / "out") == ["m.mlpackage"], os.listdir(folder / "out")


def test_an_ignored_signal_stays_ignored(folder):
    command = folder.prepare()["compile"]
    code, said = act_while_writing(folder, command, 0, lambda process: process.send_signal(signal.SIGHUP),
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert code == 0 and (folder / "out" / "m.mlpackage").exists(), (code, said)


def test_a_file_size_limit(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for name, command in folder.prepare().items():
        if name == "opt to text":
            command = [*command[:-2]]  # all passes print equally much
        process = start(folder, command, preexec_fn=limit)
        said, code = "".join(process.communicate(timeout=SECONDS)), process.returncode
        left = tree(folder / "out")
        assert code == 1 and "error[file-io]" in said, f"{name}: exit code {code}: {said}"
        assert not left, f"{name}: left {left}"


def test_a_full_disk(folder):
    disk = folder / "out"
    commands = folder.prepare()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        skipped.append("a full disk: no right to mount one")
        return
    try:
        for name, command in commands.items():
            result = run(*command, folder=folder, timeout=SECONDS)
            left = tree(disk)
            assert result.code == 1 and "error[file-io]" in result.stderr, f"{name}: {driver.ending(result)}"
            assert not left, f"{name}: left {left}"
        (disk / "fill").write_bytes(bytes((8 << 20) - (64 << 10)))
        expect(run("opt", "few.mil", "-o", "out/f.mlpackage", folder=folder), 0)
        kept = tree(disk)
        fill = os.open(disk / "fill", os.O_WRONLY | os.O_APPEND)
        with contextlib.suppress(OSError):
            while True:
                os.write(fill, bytes(4096))
        os.close(fill)
        for command in (["opt", "few.mil", "-o", "out/f.mlpackage"], ["opt", "few.mil", "-o", "out/f.mil"],
                        ["run", "few.mil", "--output-dir", "out"], ["precompile", "out/f.mlpackage", "-o", "out/f.mlmodelc"]):
            result = run(*command, folder=folder, timeout=SECONDS)
            assert result.code == 1 and "error[file-io]" in result.stderr, f"{command}: {driver.ending(result)}"
            left = tree(disk)
            assert {**left, "fill": ""} == {**kept, "fill": ""}, f"{command}: {left}"
    finally:
        subprocess.run(["umount", disk], check=True)


def read_in_parts():
    """With so little address space, the sources are not mapped."""
    resource.setrlimit(resource.RLIMIT_AS, (3 * MEGABYTES * 1000000,) * 2)


def test_a_source_that_is_cut_short(folder):
    commands = folder.prepare()
    sources = {"compile": "m.onnx.data", "compile to a bundle": "m.onnx.data",
               "opt": "m.mlpackage/Data/com.apple.CoreML/weights/weight.bin"}
    for name, source in sources.items():
        for least, said_as, limit in ((0, [], None), (MEGABYTES * 3e5, ["--json"], None), (MEGABYTES * 3e5, [], read_in_parts)):
            path = folder / source
            kept = path.read_bytes()
            code, said = act_while_writing(folder, [*commands[name], *said_as], least, lambda process: os.truncate(path, 1 << 16),
                                           preexec_fn=limit if not driver.SANITIZED else None)
            path.write_bytes(kept)
            left = tree(folder / "out")
            assert code == 1 and "file-io" in said and path.name in said, f"{name}: exit code {code}: {said}"
            assert not left, f"{name}: left {left}"


def test_a_source_that_is_written_to(folder):
    """The same size with other bytes: mapped pages change during the run."""
    command = folder.prepare()["compile"]
    path = folder / "m.onnx.data"

    def write(_):
        with open(path, "r+b") as file:
            file.write(bytes(64))

    code, said = act_while_writing(folder, command, 0, write)
    left = tree(folder / "out")
    assert code == 1 and "error[file-io]" in said and "m.onnx.data" in said and not left, (code, said, left)


def test_cut_short_while_it_is_run(folder):
    """There is no staging to wait for, so the times are random."""
    folder.prepare()
    path, generator, hits = folder / "m.onnx.data", random.Random(9), 0
    kept = path.read_bytes()
    command = ["run", "m.onnx", "--iterations", "20", "--json"]
    for _ in range(4 * MOMENTS):
        process = start(folder, command)
        time.sleep(generator.uniform(0, 1))
        os.truncate(path, 1 << 16)
        out, err = process.communicate(timeout=SECONDS)
        path.write_bytes(kept)
        assert process.returncode in (0, 1), (process.returncode, out, err)
        if process.returncode == 1:
            errors = driver.Result(1, out, err, 0, 0, 0).errors
            assert len(errors) == 1 and path.name in str(errors), (out, err)
            hits += "was truncated" in str(errors)
    print(f"# truncated during a run: {hits} of {4 * MOMENTS} while it was mapped")


if __name__ == "__main__":
    if not MLC.exists():
        sys.exit(driver.SKIPPED)
    code = run_tests(globals(), "interrupts", Folder)
    for what in skipped:
        print(f"# interrupts: skipped, {what}")
    sys.exit(code)
