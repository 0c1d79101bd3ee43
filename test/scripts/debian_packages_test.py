#!/usr/bin/env python3
"""Tests the packages for Debian that cpack makes: contents, dependencies, lintian, the same bytes twice; and, with MLC_DEBOOTSTRAP=1,
that the image of scripts/packaging/Dockerfile can be built in a fresh Debian 12 made by debootstrap (from MLC_DEBIAN_MIRROR),
runs, and that removing the packages leaves nothing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import BUILD, ROOT, SANITIZED, SKIPPED, run_tests
from root_folder import inside, lacking

TITLE = "debian packages"
MIRROR = os.environ.get("MLC_DEBIAN_MIRROR", "http://deb.debian.org/debian")


def make(folder, **environment):
    """Returns {name: file}."""
    # Compressed quickly.
    done = subprocess.run(["cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", folder,
                           "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"], capture_output=True, text=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return {file.name.split("_")[0]: file for file in sorted(folder.glob("*.deb"))}


def field(file, name):
    return subprocess.run(["dpkg-deb", "--field", file, name], check=True, capture_output=True, text=True).stdout.strip()


def contents(file):
    listed = subprocess.run(["dpkg-deb", "--contents", file], check=True, capture_output=True, text=True).stdout
    return [(line.split()[0], line.split()[1], line.split()[5].removeprefix(".")) for line in listed.splitlines()]


packages = {}


def test_contents(_):
    version = re.search(r'kVersion = "(.*?)"', (ROOT / "tools/driver/version.h").read_text())[1]
    library = f"libmlc{version.split('.')[0]}"
    assert set(packages) == {"mlc", "mlc-run", library, "libmlc-dev"}, packages
    owners = {}
    for name, file in packages.items():
        assert field(file, "Version") == version
        for mode, owner, path in contents(file):
            assert owner == "root/root" and not mode[5] + mode[8] == "w", (mode, owner, path)
            if not path.endswith("/"):
                assert owners.setdefault(path, name) == name, f"{path} is in {name} and in {owners[path]}"
    for path, name in (("/usr/bin/mlc", "mlc"), ("/usr/bin/mlc-run", "mlc-run"), ("/usr/share/man/man1/mlc.1.gz", "mlc"),
                       ("/usr/share/man/man1/mlc-compile.1.gz", "mlc"), ("/usr/share/man/man1/mlc-run.1.gz", "mlc-run"),
                       ("/usr/share/bash-completion/completions/mlc-run", "mlc-run"), ("/usr/share/zsh/site-functions/_mlc", "mlc"),
                       ("/usr/include/mlc.h", "libmlc-dev"), (f"/usr/share/doc/{library}/copyright", library)):
        assert owners.get(path) == name, (path, owners.get(path))
    assert [name for path, name in owners.items() if re.search(r"/libmlc\.so\.\d+$", path)] == [library]
    assert [name for path, name in owners.items() if path.endswith(("/libmlc.so", "/libmlc.a", "/mlc.pc"))] == ["libmlc-dev"] * 3
    for name in ("mlc", "mlc-run", library):
        assert {"libc6", "libdnnl2", "libonnx1"} <= set(re.findall(r"[\w.+-]+(?= \(|,|$)", field(packages[name], "Depends"))), name
    assert field(packages["libmlc-dev"], "Depends") == f"{library} (= {version})"
    assert "libcurl4" in field(packages["mlc"], "Recommends")


def test_lintian(_):
    if not shutil.which("lintian"):
        print(f"# {TITLE}, lintian: skipped, lintian is not installed")
        return
    # Root is warned of.
    done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", *packages.values()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_bytes_twice(folder):
    if not os.environ.get("MLC_DEBOOTSTRAP"):
        print(f"# {TITLE}, made twice: skipped, MLC_DEBOOTSTRAP is not set")
        return
    again = make(folder / "again", TZ="Asia/Tokyo")
    for name, file in packages.items():
        assert again[name].read_bytes() == file.read_bytes(), name


def docker_commands():
    """Returns the RUN command of the Dockerfile, and the packages that it copies."""
    text = (ROOT / "scripts/packaging/Dockerfile").read_text().replace("\\\n", " ")
    assert re.findall(r"^([A-Z]+) ", text, re.M) == ["FROM", "COPY", "RUN", "WORKDIR", "ENTRYPOINT", "CMD"], text
    assert "FROM debian:bookworm-slim" in text and 'ENTRYPOINT ["mlc"]' in text
    copied = re.search(r"^COPY (.*) /packages/$", text, re.M)[1].split()
    return re.search(r"^RUN (.*)$", text, re.M)[1], copied


def files_with_name(root):
    """Files of mlc outside of the sample models, without folders of apt and dpkg that keep no files of packages."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*mlc*") if "proc" not in path.parts[:len(root.parts) + 1]
                  and not str(path.relative_to(root)).startswith(("work", "packages", "proc", "sys")))


def test_a_fresh_debian(folder):
    why = None if os.environ.get("MLC_DEBOOTSTRAP") else "MLC_DEBOOTSTRAP is not set"
    why = why or (lacking("debootstrap") if os.geteuid() == 0 else "not root")
    if why:
        print(f"# {TITLE}, a fresh Debian 12: skipped, {why}")
        return
    root = folder / "root"
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root, MIRROR], capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    apt = {"DEBIAN_FRONTEND": "noninteractive"}
    before = files_with_name(root)

    # The image, as far as no Docker is needed for it.
    run, copied = docker_commands()
    (root / "packages").mkdir()
    built = [file for pattern in copied for file in packages["mlc"].parent.glob(pattern)]
    assert len(built) == 2, built
    for file in built:
        shutil.copy(file, root / "packages")
    inside(root, "sh", "-ec", run, environment=apt)
    assert not (root / "packages").exists()
    shutil.copytree(ROOT / "manifests/digits", root / "work")
    assert "digits.mlpackage" in inside(root, "mlc", "compile", "digits.onnx", folder="/work")
    assert "PASSED" in inside(root, "mlc", "verify", "digits.onnx", "digits.mlpackage", folder="/work")
    assert "image" in inside(root, "mlc-run", "digits.mlpackage", "--help", folder="/work")

    # The other packages, and all of them removed.
    (root / "packages").mkdir()
    for file in packages.values():
        shutil.copy(file, root / "packages")
    inside(root, "sh", "-ec", "apt-get update && apt-get install -y --no-install-recommends /packages/*.deb", environment=apt)
    assert "libmlc.so.0" in inside(root, "ldconfig", "-p")
    assert len(files_with_name(root)) > 20
    inside(root, "apt-get", "purge", "-y", *packages, environment=apt)
    assert files_with_name(root) == before, files_with_name(root)
    assert "libmlc" not in inside(root, "ldconfig", "-p")
    print(f"# {TITLE}: installed, run and removed in a fresh Debian 12; the commands of the Dockerfile ran in it, not Docker itself")


if __name__ == "__main__":
    reason = next((f"{tool} is not installed" for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps") if not shutil.which(tool)), None)
    if SANITIZED:
        reason = "the build has a sanitizer, whose library is not a dependency"
    elif not all((BUILD / name).exists() for name in ("CPackConfig.cmake", "bin/mlc", "bin/mlc-run", "libmlc.so", "libmlc.a")):
        reason = "mlc, mlc-run or libmlc is not built"
    if reason:
        print(f"# {TITLE}: skipped, {reason}")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        packages = make(pathlib.Path(scratch))
        sys.exit(run_tests(globals(), TITLE))
