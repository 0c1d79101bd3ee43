#!/usr/bin/env python3
"""Tests what users see on a terminal: suggestions, help, paths, progress, colours, man pages and completions."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
import fcntl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import BUILD, MLC, ROOT, SKIPPED, expect, run, run_tests

RUN = BUILD / "bin" / "mlc-run"
DIGITS = ROOT / "manifests" / "digits"
VERSES = ROOT / "manifests" / "verses"
PLAIN = {"COLUMNS": "", "NO_COLOR": "", "CLICOLOR_FORCE": "", "TERM": "xterm"}


class Folder:
    """A scratch folder with the digits model under the names of the examples."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        shutil.copy(DIGITS / "digits.onnx", self.path / "model.onnx")

    def __truediv__(self, name):
        return self.path / name

    def mlc(self, *arguments, **options):
        return run(*arguments, folder=self.path, **options)

    def packaged(self):
        expect(self.mlc("compile", "model.onnx"), 0)
        return self / "model.mlpackage"

    def dynamic(self):
        """A model with the dynamic dimension "batch" and the input "image"."""
        sys.path.insert(0, str(ROOT / "test"))
        import onnx_wire as wire
        graph = wire.graph([wire.node("Relu", ["image"], ["y"])], [wire.value_info("image", wire.FLOAT, ["batch", 3])],
                           [wire.value_info("y", wire.FLOAT, ["batch", 3])], [])
        (self / "dynamic.onnx").write_bytes(wire.model(graph))
        return "dynamic.onnx"


def on_terminal(*arguments, folder=None, columns=80, environment=None, program=MLC, streams=("stdout", "stderr")):
    """Runs mlc with these streams on a pseudo-terminal; returns the exit code, and what was written there and elsewhere."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    ends = {name: terminal if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
    process = subprocess.Popen([str(program), *map(str, arguments)], stdin=subprocess.DEVNULL, cwd=folder, **ends,
                               env={**os.environ, **PLAIN, **(environment or {})})
    os.close(terminal)
    written, other = b"", b""
    pipes = [stream for stream in (process.stdout, process.stderr) if stream]
    waiting = {control, *(pipe.fileno() for pipe in pipes)}
    while waiting:
        for ready in select.select(list(waiting), [], [])[0]:
            try:
                piece = os.read(ready, 65536)
            except OSError:  # the terminal is closed
                piece = b""
            if not piece:
                waiting.discard(ready)
            elif ready == control:
                written += piece
            else:
                other += piece
    code = process.wait()
    os.close(control)
    return code, written.decode(), other.decode()


def screen(text):
    """What remains on the screen of a terminal after text with \\r and erased lines."""
    lines = [""]
    for piece in re.split(r"(\r\n|\r|\x1b\[K|\n)", text):
        if piece in ("\r\n", "\n"):
            lines.append("")
        elif piece == "\x1b[K":
            lines[-1] = ""
        elif piece != "\r":
            lines[-1] += piece
    return "\n".join(lines)


def test_mistyped_words_are_recognised(folder):
    model = folder.dynamic()
    for arguments, code, meant in (
            (["complie", model], 2, "compile"), (["compile", "--presicion", "fp16", model], 2, "--precision"),
            (["compile", "--presicion"], 2, "--precision"), (["compile", model, "--presicion=fp32"], 2, "--precision"),
            (["--verison"], 2, "--version"), (["compile", model, "--precision", "pf16"], 2, "fp16"),
            (["compile", model, "--target", "IOS71"], 2, "iOS17"), (["compile", model, "--dim", "bacth=1"], 1, "batch"),
            (["compile", model, "--shape", "imgae=1,3"], 1, "image"), (["compile", model, "--image", "imgae=rgb"], 1, "image"),
            (["compile", model, "--compress", "itn8"], 2, "int8"), (["compile", model, "--compress", "int4:blokc=32"], 2, "block"),
            (["compile", model, "--optimize-for", "ana"], 2, "ane"), (["compile", model, "--print-after", "dead-coed"], 1, "dead-code"),
            (["opt", model, "--passes", "dead-cod"], 1, "dead-code"), (["run", model, "--units", "refrence"], 2, "reference"),
            (["run", model, "--input-range", "imgae=0..1"], 2, "image"), (["explain", model, "--chip", "A17pr"], 2, "A17Pro"),
            (["cache", "claer"], 2, "clear"), (["completions", "bsh"], 2, "bash"), (["ops", "--frontend", "onxn"], 2, "onnx"),
            (["help", "complie"], 2, "compile"), (["compile", model, "--color", "alwyas"], 2, "always")):
        expect(folder.mlc(*arguments), code, f'did you mean "{meant}"?')
    import numpy
    numpy.save(folder / "x.npy", numpy.zeros((1, 3), "f4"))
    for option, code in (("--input", 1), ("--const", 1)):
        command = "run" if option == "--input" else "compile"
        expect(folder.mlc(command, model, option, "imgae=x.npy"), code, 'did you mean "image"?')
    answer = folder.mlc("compile", model, "--dim", "bacth=1", "--json").errors
    assert answer[0]["text"].endswith('did you mean "batch"?'), answer
    # Nothing is suggested for what resembles nothing.
    for arguments in (["frobnicate"], ["compile", model, "--frobnicate"], ["compile", model, "--precision", "double"]):
        assert "did you mean" not in expect(folder.mlc(*arguments), 2).stderr


def commands():
    text = expect(run("--help"), 0).stdout
    return re.findall(r"^  ([a-z-]+) +[A-Z]", text.split("Commands:")[1].split("Options:")[0], re.M)


def test_help_states_every_default(folder):
    for command in commands():
        text = expect(run(command, "--help-all"), 0).stdout.split("  --help-all ")[0]  # without the notes
        for flags, help_text in re.findall(r"^  (-[-a-z0-9]+ \S+)\s+(.*)$", text, re.M):
            assert re.search(r"default|repeat|required|generated", help_text), f"{command}: {flags}: {help_text}"


def examples_of(command):
    lines = expect(run(command, "--help"), 0).stdout.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert len(lines) >= 2 and all(line.startswith("  mlc ") for line in lines), lines
    return [line.strip() for line in lines]


def test_help_has_two_examples(folder):
    for command in commands():
        examples_of(command)
        related = re.search(r"See also: (.*)", expect(run(command, "--help"), 0).stdout)
        assert related, command
        for name in related.group(1).split(", "):
            assert name.removeprefix("mlc ") in commands(), name


def test_examples_run(folder):
    """Runs the examples of all commands, with files under the names that they use."""
    (folder / "samples").mkdir()
    import numpy
    images = numpy.load(DIGITS / "images.npy")[:1]
    numpy.save(folder / "digit.npy", images)
    numpy.save(folder / "samples" / "image.npy", images)
    shutil.copy(VERSES / "verses-q8_0.gguf", folder / "model.gguf")
    (folder / "sample.txt").write_text((VERSES / "sample.txt").read_text()[:3000])
    shutil.copytree(ROOT / "manifests", folder / "manifests")
    package = folder.packaged()
    expect(folder.mlc("run", "model.onnx", "--input", "image=digit.npy", "--output-dir", "outputs"), 0)
    for name in ("old", "new", "a", "b"):
        shutil.copytree(package, folder / f"{name}.mlpackage")
    (folder / "model.mil").write_text("func main<ios16>(tensor<fp32, [4]> x) { a = add(x = x, y = 0.0); b = relu(x = a); } -> (b);")
    (folder / "is_faulty.sh").write_text('#!/bin/sh\nexit 1\n')
    (folder / "is_faulty.sh").chmod(0o755)
    for name in ("runs", "phone", "mac"):
        expect(folder.mlc("run", "model.mlpackage", "--iterations", "2", "--history", f"{name}.jsonl"), 0)
    environment = {**os.environ, **PLAIN, "PATH": f"{MLC.parent}:{os.environ['PATH']}", "HOME": str(folder.path),
                   "MLC_CACHE_DIR": str(folder / "cache-of-models")}
    tried = 0
    for command in commands():
        folder.packaged()  # the same package for each
        for example in examples_of(command):
            if command in ("extract", "reduce", "set-weights", "gate", "explain"):
                continue  # names of values, faults, weights and times of a model of the user's
            done = subprocess.run(["bash", "-c", example], cwd=folder.path, env=environment, capture_output=True, text=True, timeout=120)
            # --strict and diff find something.
            assert done.returncode in ((0, 3) if command in ("doctor", "diff") else (0,)), (example, done.stdout + done.stderr)
            tried += 1
    assert tried > 30, tried


def test_help_of_commands(folder):
    everything = expect(run(), 0).stdout
    assert everything == expect(run("help"), 0).stdout == expect(run("-h"), 0).stdout == expect(run("--help"), 0).stdout
    for variable in set(re.findall(r'"(MLC_[A-Z_]+)"', "".join(
            path.read_text() for folder_ in ("lib", "tools", "frontends", "backends")
            for path in (ROOT / folder_).rglob("*.cpp")))) - {"MLC_VERSION"}:
        assert variable in everything, variable
    assert "  130 " in everything
    assert expect(run("help", "compile"), 0).stdout == expect(run("compile", "--help"), 0).stdout
    short, whole = (expect(run("compile", option), 0).stdout for option in ("--help", "--help-all"))
    assert "--fp32-ops" not in short and "--fp32-ops" in whole and "--help-all" in short


def test_help_fits_the_terminal(folder):
    for columns in (60, 80, 100):
        for command in commands():
            _, text, _ = on_terminal(command, "--help-all", columns=columns)
            wide = [line for line in text.replace("\r", "").split("Examples:")[0].splitlines()
                    if len(line) > columns and re.match(r" *(mlc |#|-)", line) is None and " " in line.strip()]
            assert not wide, (command, columns, wide)


def test_version(folder):
    assert expect(run("-V"), 0).stdout == expect(run("--version"), 0).stdout
    answer = expect(run("--version", "--json"), 0).answer
    assert answer["mlc"]["version"] in expect(run("-V"), 0).stdout
    names = {library["name"] for library in answer["libraries"]}
    assert {"fmt", "zlib", "CLI11", "nlohmann/json"} <= names, names
    assert all("built" in library or "running" in library for library in answer["libraries"])


def test_output_folders_and_trailing_slashes(folder):
    expect(folder.mlc("compile", "model.onnx", "-o", "out/deep/"), 0, "out/deep/model.mlpackage")
    assert (folder / "out/deep/model.manifest.json").exists()
    package = "out/deep/model.mlpackage/"
    expect(folder.mlc("compile", "model.onnx", "-o", package), 0)
    assert not (folder / package / "model.mlpackage").exists()
    for arguments in (["run", package], ["verify", "model.onnx", package], ["inspect", package], ["diff", package, package],
                      ["explain", package], ["doctor", package], ["opt", package, "-o", "opted/"],
                      ["precompile", package, "-o", "compiled/"], ["run", package, "--compare", package],
                      ["export-weights", package, "-o", "weights/"], ["calibrate", package, "--inputs", "generated:2", "-o", "s/"],
                      ["ops", "model.onnx"]):
        result = folder.mlc(*arguments)
        assert result.code == 0, (arguments, result.stdout + result.stderr)
    for made in ("opted/model.mlpackage", "compiled/model.mlmodelc", "s/model.stats"):
        assert (folder / made).exists(), made
    expect(folder.mlc("compile", "model.onnx", "-o", "-"), 2, "standard output")


def test_standard_output(folder):
    done = expect(folder.mlc("compile", "model.onnx", "--save-ir", "-"), 0)
    assert done.stdout.startswith("func main") and "model.mlpackage" in done.stderr
    expect(folder.mlc("compile", "model.onnx", "--save-ir", "-", "--json"), 2, "--json")
    stats = json.loads(expect(folder.mlc("compile", "model.onnx", "--stats", "-"), 0).stdout)
    assert stats
    plain = expect(folder.mlc("opt", "model.mlpackage"), 0).stdout
    assert plain and expect(folder.mlc("opt", "model.mlpackage", "-o", "-"), 0).stdout == plain
    assert sorted(p.name for p in folder.path.iterdir()) == ["model.manifest.json", "model.mlpackage", "model.onnx"]


def test_several_models(folder):
    folder.packaged()
    for command in ("inspect", "doctor", "explain"):
        alone = expect(folder.mlc(command, "model.onnx", "--json"), 0).answer
        assert "models" not in alone
        both = expect(folder.mlc(command, "model.onnx", "model.mlpackage", "--json"), 0).answer["models"]
        assert [entry["model"] for entry in both] == ["model.onnx", "model.mlpackage"]
        assert both[0]["result"] == alone
        mixed = folder.mlc(command, "absent.onnx", "model.mlpackage", "--json")
        assert mixed.code == 1 and mixed.answer["models"][0]["errors"][0]["id"] and mixed.answer["models"][1]["result"]
        text = expect(folder.mlc(command, "absent.onnx", "model.mlpackage"), 1, "absent.onnx").stdout
        assert text.strip(), command


def test_colours(folder):
    red = "\x1b[1;31m"
    for arguments, environment, colored in (([], {}, True), (["--color", "never"], {}, False), ([], {"NO_COLOR": "1"}, False),
                                            ([], {"TERM": "dumb"}, False), (["--color=always"], {"NO_COLOR": "1"}, True)):
        code, text, _ = on_terminal("compile", "absent.onnx", *arguments, environment=environment)
        assert code == 1 and (red + "error\x1b[0m[" in text) == colored, (arguments, environment, text)
    for arguments, environment, colored in (([], {}, False), (["--color", "always"], {}, True),
                                            ([], {"CLICOLOR_FORCE": "1"}, True), ([], {"CLICOLOR_FORCE": "0"}, False)):
        text = run("compile", "absent.onnx", *arguments, environment={**PLAIN, **environment}).stderr
        assert (red in text) == colored, (arguments, environment, text)
    folder.packaged()
    text = expect(folder.mlc("verify", "model.onnx", "model.mlpackage", "--color", "always"), 0).stdout
    assert "\x1b[1;32mPASSED\x1b[0m" in text and "\x1b[1;32mok\x1b[0m" in text, text
    assert "\x1b" not in expect(folder.mlc("verify", "model.onnx", "model.mlpackage", "--json", "--color", "always"), 0).stdout


def test_tables_fit_the_terminal(folder):
    for arguments in (["ops"], ["ops", "model.onnx"]):
        code, text, _ = on_terminal(*arguments, folder=folder.path, columns=60)
        lines = text.replace("\r", "").splitlines()
        assert code == 0 and len(lines) > 4 and all(len(line) <= 60 for line in lines), [line for line in lines if len(line) > 60]
        cut = [line for line in lines if line.endswith("\u2026")]
        whole = expect(folder.mlc(*arguments, environment=PLAIN), 0).stdout.splitlines()
        assert len(whole) == len(lines) and all(any(line.startswith(short[:-1]) for line in whole) for short in cut)
        assert arguments == ["ops", "model.onnx"] or cut
    folder.packaged()
    for arguments in (["inspect", "model.mlpackage", "--weights"], ["opt", "model.mlpackage", "--compress", "pal4", "-o", "c.mlpackage"]):
        rows = [line for line in on_terminal(*arguments, folder=folder.path)[1].replace("\r", "").splitlines() if line.endswith((" bits", " dB"))]
        long = [line for line in rows if "\u2026" in line]
        assert len(rows) > 1 and all(len(line) <= 80 for line in rows), rows
        assert long or arguments[0] == "opt", rows
        assert "\u2026" not in run(*arguments, "--force" if arguments[0] == "opt" else "--ops", folder=folder.path, environment=PLAIN).stdout


def test_general_options_before_the_command(folder):
    after = expect(folder.mlc("inspect", "model.onnx", "--json", "--quiet"), 0).stdout
    for before in (["--json", "-q"], ["--quiet", "--json"], ["--progress", "none", "--json"], ["--color=never", "--json"]):
        assert expect(folder.mlc(*before, "inspect", "model.onnx"), 0).stdout == after, before
    assert run("--help", "inspect").stdout == run("inspect", "--help").stdout
    expect(folder.mlc("--quite", "inspect", "model.onnx"), 2, 'unknown option "--quite"')
    expect(folder.mlc("--target", "iOS17", "compile", "model.onnx"), 2, 'unknown option "--target"')
    expect(folder.mlc("--color"), 2)
    expect(folder.mlc("--color", "sometimes", "doctor"), 2, "sometimes")


def test_progress(folder):
    """Work that lasts a second has a line on a terminal, shorter work has none; --progress plain has one for each step."""
    folder.packaged()
    commands = {"importing": ["compile", "model.onnx", "--force"], "running samples": ["verify", "model.onnx", "model.mlpackage"],
                "predictions": ["run", "model.mlpackage", "--iterations", "50"], "copying weights": ["precompile", "model.mlpackage", "--force"],
                "comparing weights": ["diff", "model.onnx", "model.onnx"], "comparing layers": ["verify", "model.onnx", "model.mlpackage", "--layers"],
                "observing inputs": ["calibrate", "model.onnx", "--inputs", "generated:4", "-o", "a.stats"]}
    for step, arguments in commands.items():
        begin = time.monotonic()
        code, text, out = on_terminal(*arguments, folder=folder.path, streams=["stderr"])
        assert code == 0 and ("\x1b[K" not in text or time.monotonic() - begin >= 1), (arguments, text)
        lines = folder.mlc(*arguments, "--progress", "plain").stderr
        assert re.search(rf"^(\d+ of \d+ )?{step}", lines, re.M), (arguments, lines)
        assert "\x1b" not in lines and "\r" not in lines


def test_progress_of_long_work(folder):
    folder.packaged()
    long = 0
    for arguments in (["run", "model.mlpackage", "--soak", "2s"], ["verify", "model.onnx", "model.mlpackage", "--samples", "2000"],
                      ["calibrate", "model.onnx", "--inputs", "generated:2000", "-o", "a.stats"]):
        begin = time.monotonic()
        code, text, out = on_terminal(*arguments, folder=folder.path, streams=["stderr"])
        seconds = time.monotonic() - begin
        assert code == 0 and "\x1b" not in out and "\r" not in out
        if seconds > 1.5:  # the start of the process is no part of the first second
            long += 1
            assert "\x1b[K" in text and ("%" in text or "predictions" in text), (arguments, seconds, text)
        assert not screen(text).strip("\n") or "note:" in screen(text) or "warning" in screen(text), screen(text)
    assert long > 0
    soak = ["run", "model.mlpackage", "--soak", "2s"]
    narrow = on_terminal(*soak, folder=folder.path, columns=20, streams=["stderr"])[1]
    assert all(len(piece) < 20 for piece in re.findall(r"\x1b\[K([^\r\x1b\n]*)", narrow.split("note:")[0].split("warning")[0])), narrow
    for quiet in (["--quiet"], ["-q"], ["--progress", "none"], ["--json"]):
        code, text, _ = on_terminal(*soak, *quiet, folder=folder.path, streams=["stderr"])
        assert code == 0 and "\x1b[K" not in text and "%" not in text, (quiet, text)


def test_pipes_have_no_control_bytes(folder):
    folder.packaged()
    for arguments in ([], ["--version"], ["compile", "model.onnx"], ["compile", "absent.onnx"], ["run", "model.mlpackage"],
                      ["verify", "model.onnx", "model.mlpackage"], ["inspect", "model.onnx", "--ops"], ["diff", "model.onnx", "model.onnx"],
                      ["opt", "model.onnx"], ["precompile", "model.mlpackage"], ["ops", "model.onnx"], ["ops"], ["build", "absent.json"],
                      ["manifest", "model.mlpackage", "--merge", "absent"], ["cache", "ls", "--cache", folder / "c"],
                      ["gate", "c", "model.mlpackage", "--iterations", "2"],
                      ["tokenize", VERSES / "verses-q8_0.gguf", "--text", "In the beginning"], ["doctor"], ["doctor", "model.onnx"],
                      ["explain", "model.onnx"], ["extract", "model.onnx", "--outputs", "none", "-o", "part.onnx"],
                      ["reduce", "model.onnx", "--test", "/bin/false", "-o", "small.onnx"],
                      ["calibrate", "model.onnx", "--inputs", "generated:2", "-o", "a.stats"],
                      ["export-weights", "model.mlpackage", "-o", "w"],
                      ["set-weights", "model.mlpackage", "--weights", "w", "-o", "t.mlpackage"], ["completions", "bash"], ["man", "compile"],
                      *([command, "--help-all"] for command in commands())):
        result = folder.mlc(*arguments, environment=PLAIN)
        found = re.search(r"[^\n\t -~\u00a0-\uffff]", result.stdout + result.stderr)
        assert result.code is not None and result.code >= 0 and not found, (arguments, found)


def test_two_models(folder):
    folder.packaged()
    expect(folder.mlc("compile", "model.onnx", "-o", "wide.mlpackage", "--precision", "fp32"), 0)
    text = expect(folder.mlc("run", "model.mlpackage", "wide.mlpackage"), 0, "over 20 runs", "times faster than", "+/-").stdout
    assert "model.mlpackage" in text and "wide.mlpackage" in text
    answer = expect(folder.mlc("run", "model.mlpackage", "wide.mlpackage", "--iterations", "5", "--json"), 0).answer
    assert [entry["model"] for entry in answer["models"]] == ["model.mlpackage", "wide.mlpackage"]
    means = [entry["timings"]["predict"]["mean"] if "timings" in entry else None for entry in answer["models"]]
    assert answer["ratio"]["mean"] > 0 and answer["ratio"]["deviation"] >= 0
    if None not in means:
        assert abs(answer["ratio"]["mean"] - means[1] / means[0]) < 1e-6
    expect(folder.mlc("run", "model.mlpackage", "wide.mlpackage", "--compare", "reference"), 2, "--compare")
    expect(folder.mlc("run", "model.mlpackage", "wide.mlpackage", "model.onnx"), 2, "two to compare")
    expect(folder.mlc("run", "model.mlpackage", "--iterations", "5"), 0, "too few", "--iterations")


def test_man_pages_render(folder):
    expect(run("man", "-o", folder / "man"), 0)
    pages = sorted((folder / "man").iterdir())
    assert {page.name for page in pages} == {"mlc.1", *(f"mlc-{command}.1" for command in commands())}
    assert (folder / "man" / "mlc-compile.1").read_text() == expect(run("man", "compile"), 0).stdout
    for page in pages:
        text = page.read_text()
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "EXIT STATUS", "SEE ALSO"):
            assert f"\n.SH {section}" in text or f"\n.SH \"{section}" in text, (page.name, section)
        for option in re.findall(r"^  (--[a-z0-9-]+)", expect(run(page.stem.removeprefix("mlc-"), "--help-all"), 0).stdout, re.M) if (
                page.stem != "mlc") else []:
            assert option.replace("-", "\\-") in text, (page.name, option)
        for checker in (["groff", "-ww", "-man", "-Tutf8", "-z"], ["mandoc", "-T", "lint", "-W", "warning"]):
            if shutil.which(checker[0]):
                done = subprocess.run([*checker, page], capture_output=True, text=True)
                assert done.returncode == 0 and not done.stdout and not done.stderr, (page.name, done.stdout + done.stderr)
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", pages[0]], capture_output=True, text=True,
                              env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80"})
        assert done.returncode == 0 and not done.stderr, done.stderr


def test_completions_complete(folder):
    def bash(*words):
        script = expect(run("completions", "bash"), 0).stdout
        line = " ".join(f"'{word}'" for word in words)
        return subprocess.run(["bash", "-c", f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _mlc; echo ${{COMPREPLY[@]}}"],
                              capture_output=True, text=True, cwd=folder.path, check=True).stdout.split()

    assert bash("mlc", "comp") == ["compile", "completions"]
    assert bash("mlc", "compile", "--precision", "") == ["fp16", "fp32", "mixed"]
    assert bash("mlc", "compile", "--preci") == ["--precision"]
    assert bash("mlc", "compile", "mod") == ["model.onnx"]
    assert bash("mlc", "cache", "l")[0] == "ls"
    for shell in ("bash", "zsh", "fish"):
        if not shutil.which(shell):
            continue
        for program in ("mlc", "mlc-run"):
            script = expect(run("completions", shell, program), 0).stdout
            done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
            assert done.returncode == 0 and not done.stderr, (shell, program, done.stderr)
    if shutil.which("fish"):
        script = expect(run("completions", "fish"), 0).stdout
        done = subprocess.run(["fish", "-c", f"{script}\ncomplete -C 'mlc compile --precision '"], capture_output=True, text=True,
                              env={**os.environ, "HOME": str(folder.path)})
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["fp16", "fp32", "mixed"], done.stdout


def test_installed_files(folder):
    if not (BUILD / "cmake_install.cmake").exists():
        return
    for component in ("mlc", "mlc-run"):
        done = subprocess.run(["cmake", "--install", str(BUILD), "--component", component, "--prefix", str(folder / "root")],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for name in ("man/man1/mlc.1", "man/man1/mlc-compile.1", "man/man1/mlc-run.1", "bash-completion/completions/mlc",
                 "zsh/site-functions/_mlc", "zsh/site-functions/_mlc-run", "fish/vendor_completions.d/mlc.fish"):
        assert (folder / "root" / "share" / name).stat().st_size > 0, name


if __name__ == "__main__":
    if not MLC.exists():
        print("mlc is not built")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "terminal", Folder))
