#!/usr/bin/env python3
"""Tests the tarball for Linux: that it needs glibc alone, in a root that has nothing else, and that it is made the same way twice.

With MLC_BUILD_DIR=build-arm64 it tests that of the arm64 preset by qemu, and that packages have the same bytes as on this processor.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cache_server
from driver import BUILD, ROOT, SANITIZED, SKIPPED, run_tests
from root_folder import inside, lacking, make_glibc_root

TARBALL = ROOT / "scripts" / "packaging" / "tarball"
PLACE = "/any/place"  # of the unpacked tarball, in the root
# A folder with the libraries that another architecture's tarball is made of.
SYSROOT = (BUILD / "sysroot").resolve() if (BUILD / "sysroot").exists() else None
EMULATOR, COMPILER = "qemu-aarch64-static", "aarch64-linux-gnu-gcc"
DATABASE = f"--admindir={SYSROOT or ''}/var/lib/dpkg"
TITLE = "tarball for arm64" if SYSROOT else "tarball"

CLIENT = """#include <mlc.h>
#include <stdio.h>
int main(void) { puts(mlc_version()); return 0; }
"""


def make(folder, **environment):
    """Makes the tarball with quick compression; returns it."""
    done = subprocess.run([TARBALL, BUILD, folder, *([SYSROOT] if SYSROOT else [])], capture_output=True, text=True,
                          env={**os.environ, "XZ_OPT": "-0", "SOURCE_DATE_EPOCH": "1700000000", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.tar.xz")), done.stdout.strip()


def quickstart():
    """Yields the commands of scripts/quickstart."""
    text = (ROOT / "scripts" / "quickstart").read_text()
    for line in re.findall(r'^run (.*)$|^command = "(.*)"$', text, re.M):
        yield shlex.split("".join(line).replace('"$model"', "../../manifests/digits/digits.onnx"))


class Root:
    """A root with glibc, the unpacked tarball and the sample models; made once."""

    def __init__(self, folder):
        self.tarball, self.said = make(folder / "made")
        self.path = make_glibc_root(folder / "root", SYSROOT or "/", SYSROOT and shutil.which(EMULATOR))
        self.unpacked = self.path / PLACE.lstrip("/")
        self.unpacked.mkdir(parents=True)
        subprocess.run(["tar", "xf", self.tarball, "-C", self.unpacked, "--strip-components=1", "--no-same-owner"], check=True)
        shutil.copytree(ROOT / "manifests", self.path / "mlc" / "manifests",
                        ignore=lambda _, names: [name for name in names if "verses" in name])
        (self.path / "mlc" / "build" / "quickstart").mkdir(parents=True)

    def run(self, tool, *words, **more):
        return inside(self.path, f"{PLACE}/bin/{tool}", *words, folder="/mlc/build/quickstart", **more)


root = None


def skip_build(what):
    print(f"# {TITLE}, {what}: skipped, qemu runs no child processes, by which mlc build builds")


def test_the_quickstart_runs_with_glibc_alone(_):
    import numpy as np
    np.save(root.path / "mlc/build/quickstart/digit.npy", np.load(ROOT / "manifests/digits/images.npy")[44:45])
    commands = list(quickstart())
    assert len(commands) == 6 and {words[0] for words in commands} == {"mlc"}, commands
    if SYSROOT:
        skip_build("mlc build")
        commands = [words for words in commands if words[1] != "build"]
    shown = "".join(root.run(*words) for words in commands)
    assert shown.count("PASSED") == (1 if SYSROOT else 2), shown
    best = np.load(root.path / "mlc/build/quickstart/outputs/probabilities.npy")[0].argmax()
    assert best == np.load(ROOT / "manifests/digits/labels.npy")[44]
    root.run("mlc-run", "digits.mlpackage", "--input", "image=digit.npy", "--output-dir", "again")
    assert (np.load(root.path / "mlc/build/quickstart/again/probabilities.npy")[0].argmax()) == best


def test_a_cache_on_a_server_needs_no_library_of_the_system(_):
    if SYSROOT:
        return skip_build("a cache on a server")
    with cache_server.CacheServer() as server:
        for out in ("a", "b"):
            (root.path / "mlc/build/quickstart" / out).mkdir()
            shown = inside(root.path, f"{PLACE}/bin/mlc", "build", "/mlc/manifests/digits.json", "--cache", server.url,
                           folder=f"/mlc/build/quickstart/{out}")
    assert server.count("PUT", "/") > 1 and "from the cache" in shown, shown


def test_https_uses_the_certificates_of_the_system(folder):
    if SYSROOT:
        return skip_build("https")
    if not shutil.which("openssl"):
        print(f"# {TITLE}, https: skipped, openssl is not installed")
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=cache", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key", "-out", folder / "certificate"], check=True,
                   capture_output=True)
    fedora, own = root.path / "etc/pki/tls/certs/ca-bundle.crt", root.path / "own.pem"
    with cache_server.CacheServer() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate", folder / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True)

        def build(**environment):
            shutil.rmtree(root.path / "mlc/build/secure", ignore_errors=True)
            (root.path / "mlc/build/secure").mkdir()
            return inside(root.path, f"{PLACE}/bin/mlc", "build", "/mlc/manifests/digits.json", "--cache",
                          server.url.replace("http:", "https:"), folder="/mlc/build/secure", environment=environment)

        assert "certificate" in build() and not server.requests
        for place, environment in ((own, {"SSL_CERT_FILE": "/own.pem"}), (fedora, {})):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "certificate", place)
            shown = build(**environment)
        assert server.count("PUT", "/") > 1 and "from the cache" in shown, shown


def test_every_library_is_inside(_):
    libraries = sorted((root.unpacked / "lib" / "mlc").iterdir())
    assert "libcurl.so.4" in {path.name for path in libraries}
    loader = next(line for line in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if (root.path / line[1:]).exists())
    for path in [root.unpacked / "bin/mlc", root.unpacked / "bin/mlc-run", root.unpacked / "lib/libmlc.so.0", *libraries]:
        listed = inside(root.path, loader, "--list", "/" + str(path.relative_to(root.path)))
        assert "not found" not in listed, (path.name, listed)
        for name, found in re.findall(r"(\S+) => (\S+)", listed):
            assert found.startswith((f"{PLACE}/", "/lib/")), (path.name, name, found)
            assert os.path.normpath(found).startswith(f"{PLACE}/lib/mlc/") or found.startswith("/lib/"), found


def test_programs_link_libmlc(folder):
    compiler = COMPILER if SYSROOT else "cc"
    if not shutil.which(compiler):
        print(f"# {TITLE}, linking: skipped, {compiler} is not installed")
        return
    (folder / "client.c").write_text(CLIENT)
    library = root.unpacked / "lib"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "mlc"], capture_output=True, text=True, check=True,
                           env={**os.environ, "PKG_CONFIG_PATH": str(library / "pkgconfig")}).stdout.split()
    system = [f"--sysroot={SYSROOT}"] if SYSROOT else []
    subprocess.run([compiler, *system, folder / "client.c", *flags, f"-Wl,-rpath,{PLACE}/lib", "-o", root.path / "client"], check=True)
    version = inside(root.path, "/client").strip()
    assert version == json.loads(root.run("mlc", "--version", "--json"))["mlc"]["version"], version


def test_files(_):
    names = {str(path.relative_to(root.unpacked)) for path in root.unpacked.rglob("*")}
    for name in ("README.md", "LICENSE", "include/mlc.h", "share/man/man1/mlc-compile.1", "share/man/man1/mlc-run.1",
                 "share/bash-completion/completions/mlc", "lib/cmake/mlc/mlc_add_package.cmake", "lib/pkgconfig/mlc.pc"):
        assert name in names, name
    assert not any(name.endswith(".a") for name in names)


def test_the_bill_of_materials(_):
    bill = json.loads((root.unpacked / "share/doc/mlc/bill-of-materials.cdx.json").read_text())
    assert bill == json.loads(next(root.tarball.parent.glob("*.cdx.json")).read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    parts = {part["name"]: part for part in bill["components"]}
    shipped = {name for name, part in parts.items() if {"name": "mlc:in-tarball", "value": "true"} in part["properties"]}
    assert set(parts) - shipped == {"libc6"}, parts
    for name, part in parts.items():
        version = subprocess.run(["dpkg-query", DATABASE, "--show", "--showformat", "${Version}\n", name], capture_output=True, text=True,
                                 check=True).stdout.splitlines()[0]
        assert part["version"] == version and part["licenses"], part
        assert name == "libc6" or (root.unpacked / "share/doc/mlc/licenses" / name).stat().st_size > 0
    for path in (root.unpacked / "lib/mlc").iterdir():
        owner = subprocess.run(["dpkg-query", DATABASE, "--search", f"*/{path.name}"], capture_output=True, text=True, check=True).stdout
        assert shipped & {line.split(":")[0] for line in owner.splitlines()}, path.name
    references = {name: set(entry["dependsOn"]) for entry in bill["dependencies"] for name in [entry["ref"]]}
    assert references["mlc"] >= {"libdnnl2", "libcurl4", "libcli11-dev"} and set().union(*references.values()) <= set(parts)


if SYSROOT:
    def test_packages_are_those_of_this_processor(folder):
        native = ROOT / "build/bin/mlc"
        if not native.exists():
            print(f"# {TITLE}, the same packages: skipped, mlc is not built for this processor")
            return
        place = root.path / "mlc/build/same"
        for model, options in (("digits/digits.onnx", []), ("passages/passages.onnx", ["--precision", "fp32"]), ("notes/notes.onnx", []),
                               ("sums/sums.gguf", []), ("sums/sums", ["--compress", "int4:block=32"]),
                               ("digits/digits.onnx", ["--compress", "pal4"])):
            for name in ("here", "there"):
                (place / name).mkdir(parents=True)
            subprocess.run([native, "compile", ROOT / "manifests" / model, "-o", "p.mlpackage", *options], check=True,
                           capture_output=True, cwd=place / "here")
            root.run("mlc", "compile", f"/mlc/manifests/{model}", "-o", "../same/there/p.mlpackage", *options)
            here, there = ({str(file.relative_to(place / name)): file.read_bytes() for file in sorted((place / name).rglob("*"))
                            if file.is_file()} for name in ("here", "there"))
            assert set(here) == set(there) and len(here) > 3, (model, set(here) ^ set(there))
            unlike = [name for name in here if here[name] != there[name]]
            assert not unlike, (model, options, unlike)
            shutil.rmtree(place)


def test_the_same_bytes_twice(folder):
    previous = os.umask(0o077)
    try:
        again, _ = make(folder / "elsewhere", TZ="Asia/Tokyo", LC_ALL="C.UTF-8", TMPDIR=str(folder))
    finally:
        os.umask(previous)
    assert again.read_bytes() == root.tarball.read_bytes()
    assert not list(folder.glob("mlc-tarball-*"))


def test_what_is_not_built_is_refused(folder):
    (folder / "build").mkdir()
    done = subprocess.run([TARBALL, folder / "build", folder / "out"], capture_output=True, text=True)
    assert done.returncode == 1 and "component mlc cannot be installed from" in done.stderr, done.stderr
    assert not list((folder / "out").iterdir())


if __name__ == "__main__":
    reason = lacking("dpkg-query", "patchelf", "xz", "readelf", *([EMULATOR] if SYSROOT else []))
    if SANITIZED:
        reason = "the build has a sanitizer, whose library is not shipped"
    elif not all((BUILD / name).exists() for name in ("bin/mlc", "bin/mlc-run", "libmlc.so", "libmlc.a")):
        reason = "mlc, mlc-run or libmlc is not built"
    if reason:
        print(f"# {TITLE}: skipped, {reason}")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        root = Root(pathlib.Path(scratch))
        print(f"# {TITLE}: {root.said} (compressed quickly)")
        sys.exit(run_tests(globals(), TITLE))
