"""The commands of README.md work, in order, and print what it says.

In a ```console block, lines that begin with "$ " are commands; lines after one are its output: all of it, in order, but for
times, for errors, which differ between processors, and for what a line "..." stands for. A command without such lines may print anything. A
command must succeed; one that need not says so itself (`; echo "exit code $?"`).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MLC_BUILD_DIR", ROOT / "build")) / "bin"


def commands(text):
    """Yields (command, expected lines)."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *expected = part.rstrip("\n").split("\n")
            yield command, expected


def matches(expected, printed):
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += r"(.*\n)*?"
        else:
            line = re.sub(r"\d+\\\.\d+(?=\\ m?s\b)", r"[0-9.]+", re.escape(line))
            pattern += re.sub(r"\d\\\.\d+e\\-\d+", r"[0-9.e-]+", line) + r"\n"
    return re.fullmatch(pattern, printed)


def main():
    text = (ROOT / "README.md").read_text()
    failed = count = 0
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        folder = pathlib.Path(scratch)
        for sample in "digits", "sums", "verses":
            shutil.copytree(ROOT / "manifests" / sample, folder, dirs_exist_ok=True)
        recipe = (ROOT / "manifests" / "digits.json").read_text()
        (folder / "digits.json").write_text(recipe.replace('"digits/', '"'))
        environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        for command, expected in commands(text):
            result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            count += 1
            if result.returncode != 0 or (expected and not matches(expected, result.stdout)):
                failed += 1
                print(f"$ {command}\nexit code {result.returncode}; printed:\n{result.stdout}expected:\n" + "\n".join(expected))
    listed = {tuple(c): len(json.loads(subprocess.run([BIN / "mlc", *c, "--json"], capture_output=True).stdout))
              for c in (["ops"], ["ops", "--frontend", "onnx"])}
    counts = re.findall(r"`mlc ([a-z -]+)` lists more than (\d+)", text)
    for said, number in counts:
        if listed[tuple(said.split())] <= int(number):
            failed += 1
            print(f"mlc {said} lists {listed[tuple(said.split())]}, README.md says more than {number}")
    if len(counts) != len(listed):
        failed += 1
        print(f"README.md says of {len(counts)} lists how long they are, expected {len(listed)}")
    print(f"# README: {count} commands ran, {failed} failed; mlc lists {listed[('ops',)]} operators of Core ML, "
          f"{listed[('ops', '--frontend', 'onnx')]} of ONNX")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
