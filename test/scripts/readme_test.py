"""Tests that the commands of README.md, and of the README.md of each folder, work in order and print the given output.

The commands of each file run in a separate folder with the files of the sample models. In a ```console block, lines that
begin with "$ " are commands; lines after a command are its complete output in order, except for times, for errors, which
differ between processors, and for lines that "..." replaces. A command without such lines may print anything. A command must
succeed, unless it reports its exit code itself (`; echo "exit code $?"`).
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


def run(readme):
    """Returns (number of commands, failed ones) of a file."""
    failed = count = 0
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        folder = pathlib.Path(scratch)
        for sample in "digits", "sums", "verses", "passages", "notes":
            shutil.copytree(ROOT / "manifests" / sample, folder, dirs_exist_ok=True)
        recipe = (ROOT / "manifests" / "digits.json").read_text()
        (folder / "digits.json").write_text(recipe.replace('"digits/', '"'))
        environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        for command, expected in commands(readme.read_text()):
            result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            count += 1
            if result.returncode != 0 or (expected and not matches(expected, result.stdout)):
                failed += 1
                print(f"{readme.relative_to(ROOT)}\n$ {command}\nexit code {result.returncode}; printed:\n{result.stdout}"
                      "expected:\n" + "\n".join(expected))
    return count, failed


def main():
    text = (ROOT / "README.md").read_text()
    count = failed = files = 0
    listed = subprocess.run(["git", "ls-files", "README.md", "*/README.md"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    for readme in (ROOT / name for name in listed.stdout.split()):
        if not any(commands(readme.read_text())):
            continue
        more, bad = run(readme)
        count, failed, files = count + more, failed + bad, files + 1
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
    print(f"# README: {count} commands of {files} files ran, {failed} failed; mlc lists {listed[('ops',)]} operators of Core ML, "
          f"{listed[('ops', '--frontend', 'onnx')]} of ONNX")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
