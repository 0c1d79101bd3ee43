#!/usr/bin/env python3
"""Tests scripts/release: what it refuses, the Homebrew formula, and, with MLC_DEBOOTSTRAP=1 (minutes), a
release, which must have the same bytes when it is made again."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import BUILD, ROOT, SKIPPED, run_tests
from root_folder import lacking

TITLE = "release"
VERSION = re.search(r'kVersion = "(.*?)"', (ROOT / "tools/driver/version.h").read_text())[1]


def release(*arguments, code=0):
    done = subprocess.run([ROOT / "scripts/release", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "XZ_OPT": "-0"})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_refusals(folder):
    assert f"VERSION is 9.9.9, but tools/driver/version.h has {VERSION}" in release("9.9.9", code=1)
    for arguments in ((), ("--bogus",), (VERSION, "another"), (VERSION, "-o")):
        assert "scripts/release VERSION" in release(*arguments, code=2), arguments
    if shutil.which("patchelf"):
        (folder / "mine").mkdir()
        (folder / "mine/file").write_text("")
        assert "is not a release" in release(VERSION, "-o", folder / "mine", code=1)
        assert (folder / "mine/file").exists()


def test_the_formula(folder):
    """Its dependencies are those that scripts/setup installs, and the options of the build exist."""
    formula = (ROOT / "scripts/packaging/mlc.rb.in").read_text()
    setup = (ROOT / "scripts/setup").read_text()
    wanted = set(re.search(r"brew_packages=\((.*?)\)", setup, re.S)[1].split()) - {"ccache", "python3", "numpy", "catch2"}
    assert set(re.findall(r'depends_on "(.*?)"', formula)) == wanted
    components = re.search(r"CPACK_COMPONENTS_ALL (.*?)\)", (ROOT / "scripts/packaging/packages.cmake").read_text())[1]
    assert f"%w[{components}]" in formula and "option(BUILD_TESTING" in (ROOT / "CMakeLists.txt").read_text()
    if shutil.which("ruby"):
        (folder / "mlc.rb").write_text(formula)
        subprocess.run(["ruby", "-c", folder / "mlc.rb"], check=True, capture_output=True)
    else:
        print(f"# {TITLE}, syntax of the Homebrew formula: skipped, ruby is not installed")
    # What the formula's test does.
    (folder / "model.mil").write_text(re.search(r"<<~MIL\n(.*?)    MIL", formula, re.S)[1])
    for words in re.findall(r'system bin/"mlc", (.*)', formula):
        subprocess.run([BUILD / "bin/mlc", *json.loads(f"[{words}]")], cwd=folder, check=True, capture_output=True)


def test_a_release(folder):
    why = None if os.environ.get("MLC_DEBOOTSTRAP") else "MLC_DEBOOTSTRAP is not set"
    why = why or lacking("patchelf", "cpack", "dpkg-shlibdeps")
    if not why and subprocess.run(["git", "log", "-1"], cwd=ROOT, capture_output=True).returncode:
        why = "the sources are not in a git repository"
    if not why and BUILD != ROOT / "build":
        why = "scripts/release uses the folder build"
    if why:
        print(f"# {TITLE}, made twice: skipped, {why}")
        return
    made = [folder / "first", folder / "second"]
    for place in (made[0], os.path.relpath(made[1], ROOT)):
        shown = release(VERSION, "-o", place, "--uncommitted", "--url", "https://example.org/files")
    files = {file.name: file.read_bytes() for file in made[0].iterdir()}
    assert files == {file.name: file.read_bytes() for file in made[1].iterdir()}
    machine = os.uname().machine
    assert {f"mlc-{VERSION}-linux-{machine}.tar.xz", f"mlc-{VERSION}-linux-{machine}.cdx.json", f"mlc-{VERSION}.tar.gz", "mlc.rb",
            "Dockerfile", "SHA256SUMS"} <= set(files) and sum(name.endswith(".deb") for name in files) == 4, sorted(files)
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "SHA256SUMS"}
    formula = files["mlc.rb"].decode()
    assert f'url "https://example.org/files/mlc-{VERSION}.tar.gz"' in formula and "@" not in formula
    assert f'sha256 "{sums[f"mlc-{VERSION}.tar.gz"]}"' in formula
    with tarfile.open(made[0] / f"mlc-{VERSION}.tar.gz") as archive:
        assert f"mlc-{VERSION}/CMakeLists.txt" in archive.getnames()
    assert all(name in shown for name in files), shown


if __name__ == "__main__":
    if not (BUILD / "bin/mlc").exists():
        print(f"# {TITLE}: skipped, mlc is not built")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), TITLE))
