"""Runs the built `mlc` for tests in Python, with resource limits, and returns its JSON answer, time and peak memory."""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("MLC_BUILD_DIR", ROOT / "build"))
MLC = BUILD / "bin" / "mlc"
CORPUS = pathlib.Path(os.environ.get("MLC_CORPUS", ROOT.parent / "shared" / "corpus"))
SKIPPED = 77
# Sanitizers reserve more address space than any limit allows.
SANITIZED = "MLC_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text() if (
    BUILD / "CMakeCache.txt").exists() else False


@dataclasses.dataclass
class Result:
    code: int  # exit code; negative: number of the signal that ended the process; None: timeout
    stdout: str
    stderr: str
    seconds: float  # wall-clock time
    cpu_seconds: float
    peak_bytes: int  # resident set; at least that of this process when it started the other

    @property
    def answer(self):
        """Returns the JSON document on stdout, or {}."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            return {}

    @property
    def errors(self):
        answer = self.answer
        return answer.get("errors", []) if isinstance(answer, dict) else []


def run(*arguments, timeout=60, environment=None, address_space=None, data=None, program=MLC, folder=None, watch=None):
    """Runs `mlc ARGUMENTS`; `program` may be a list of words that run it. Limits in bytes, not set under a sanitizer: `address_space`,
    which includes mapped files, and `data`, which does not. `watch` is called with the process id on a separate thread."""
    limits = {kind: most for kind, most in ((resource.RLIMIT_AS, address_space), (resource.RLIMIT_DATA, data)) if most}
    limit = None
    if limits and not SANITIZED:
        def limit():
            for kind, most in limits.items():
                resource.setrlimit(kind, (most, most))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        words = [*program, *arguments] if isinstance(program, list) else [program, *arguments]
        process = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env={**os.environ, **(environment or {})}, preexec_fn=limit, cwd=folder)
        late = threading.Event()
        if watch:
            threading.Thread(target=watch, args=(process.pid,), daemon=True).start()

        def stop():
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait for the process again
        seconds = time.monotonic() - start
        timer.cancel()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return Result(None if late.is_set() else process.returncode, *texts, seconds, usage.ru_utime + usage.ru_stime,
                  usage.ru_maxrss * unit)


def verdict(result):
    """Classifies the end of a run: "ok", "refused" (exit code 1 with known error ids), "timeout" or "crash"."""
    if result.code is None:
        return "timeout"
    if result.code == 0:
        return "ok"
    ids = [e.get("id") for e in result.errors]
    return "refused" if result.code == 1 and ids and set(ids) <= input_errors() else "crash"


def ending(result):
    """Summarizes in one line how a run ended, for messages."""
    if result.code is None:
        return f"no end after {result.seconds:.0f} s"
    if result.code < 0:
        return f"{signal.Signals(-result.code).name} {last_line(result.stderr)}"
    if result.errors:
        first = result.errors[0]
        return f"exit code {result.code}, {first['id']}: {first['text']} ({first['location']})"
    return f"exit code {result.code} {last_line(result.stderr)}"


def last_line(text):
    return (text.strip().splitlines() or [""])[-1][:200]


def input_errors():
    """Returns the error ids with exit code 1, from the table in the source."""
    global _input_errors
    if _input_errors is None:
        table = (ROOT / "lib" / "support" / "error.cpp").read_text()
        _input_errors = set(re.findall(r'^    \{"([a-z0-9-]+)", 1,', table, re.M))
    return _input_errors


_input_errors = None


def parallel(function, items, workers=None):
    """Returns function(item) for all items, in order. Threads suffice because the work is done in child processes."""
    workers = workers or int(os.environ.get("MLC_JOBS", os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def expect(result, code, *texts):
    """Asserts that the run ended with this exit code and printed these texts; returns the result."""
    shown = result.stdout + result.stderr
    assert result.code == code, f"exit code {result.code}, not {code}: {shown}"
    for text in texts:
        assert text in shown, f"no {text!r} in: {shown}"
    return result


def run_tests(functions, title, in_folder=pathlib.Path):
    """Calls the functions test_* of {name: value}, or those whose name contains a command-line argument. Each gets its own
    folder, which in_folder makes from a path. Prints every failure and returns 1 if there was one, else 0."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    tests = {name: test for name, test in functions.items() if name.startswith("test_") and wanted in name}
    failed = 0
    for name, test in tests.items():
        with tempfile.TemporaryDirectory(prefix="mlc-") as path:
            try:
                test(in_folder(path))
            except Exception:
                failed += 1
                print(f"{name}:\n{traceback.format_exc(limit=-2)}")
    print(f"# {title}: {len(tests)} tests, {failed} failed")
    return 1 if failed else 0
