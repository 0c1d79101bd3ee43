#!/usr/bin/env python3
"""Tests the rules of scripts/bazel with the Bazel of Debian (bazel-bootstrap), without a network: the example of six variants, built
and tested, and again from an empty folder with a remote cache, which has everything. Packages have the bytes of `mlc build`.

The cache is nginx (nginx-light) if it is installed, otherwise test/cache_server.py.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cache_server
import driver
from driver import MLC, ROOT, SKIPPED

EXAMPLE = ROOT / "scripts" / "bazel" / "example"
VARIANTS = ["digits-" + v["name"] for v in json.loads((EXAMPLE / "digits.json").read_text())["variants"]]


def libraries():
    """The shared libraries of mlc that are not the C library's."""
    listed = subprocess.run(["ldd", MLC], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"=> (/\S+)", listed)
    return [pathlib.Path(f) for f in found if not re.search(r"/(libc|libm|libpthread|libdl|librt|libresolv)\.so|ld-linux", f)]


def workspace(folder):
    """Copies the example with its models and the tool, as its README says."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("bazelrc", "digits.json", "nginx.conf"))
    shutil.copy(EXAMPLE / "bazelrc", folder / ".bazelrc")
    (folder / "scripts").mkdir()
    shutil.copytree(ROOT / "scripts" / "bazel", folder / "scripts" / "bazel", ignore=shutil.ignore_patterns("example"))
    models = folder / "models"
    models.mkdir()
    shutil.copy(EXAMPLE / "digits.json", models)
    for name in "digits.onnx", "images.npy", "probabilities.npy", "labels.npy":
        shutil.copy(ROOT / "manifests" / "digits" / name, models)
    shutil.copy(MLC, folder / "mlc" / "mlc")
    # The executable looks for its libraries in the folders of the system, and is given them only to be hashed.
    (folder / "mlc" / "lib").mkdir()
    for library in libraries():
        shutil.copy(library, folder / "mlc" / "lib")
    emitted = driver.run("build", models / "digits.json", "--emit", "bazel", "-o", models)
    assert emitted.code == 0, emitted.stderr
    (models / "BUILD").write_text(emitted.stdout)
    return folder


class Nginx:
    def __init__(self, folder):
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "nginx.conf").write_text((EXAMPLE / "nginx.conf").read_text().replace("PORT", str(port)))
        self.url = f"http://127.0.0.1:{port}/bazel"

    def __enter__(self):
        # Workers of root would be those of an unprivileged user, who may not write here.
        user = ["-g", "user root;"] if os.getuid() == 0 else []
        subprocess.run(["nginx", "-p", self.folder, "-c", "nginx.conf", *user], check=True, capture_output=True)
        return self

    def __exit__(self, *arguments):
        subprocess.run(["nginx", "-p", self.folder, "-c", "nginx.conf", "-s", "stop"], capture_output=True)


def bazel(place, root, *words, code=0):
    result = subprocess.run(["bazel", f"--output_user_root={root}", "--batch", *words], cwd=place, capture_output=True, text=True,
                            timeout=900)
    assert result.returncode == code, f"{words}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr


def contents(folder, names):
    return {f"{name}/{file.relative_to(folder / name)}": file.read_bytes() for name in names
            for file in sorted((folder / name).rglob("*")) if file.is_file()}


def main():
    if not shutil.which("bazel"):
        print("# bazel: skipped, bazel is not installed (apt-get install bazel-bootstrap zip)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="bazel-", dir=driver.BUILD) as scratch:
        folder = pathlib.Path(scratch)
        server = Nginx(folder / "nginx") if shutil.which("nginx") else cache_server.CacheServer()
        try:
            with server:
                outputs = []
                for attempt in "first", "second":
                    place = workspace(folder / attempt / "workspace")
                    root = folder / attempt / "output"
                    begin = time.monotonic()
                    shown = bazel(place, root, "test", f"--remote_cache={server.url}", "//models:digits", "//models:all")
                    seconds = time.monotonic() - begin
                    if attempt == "second":
                        processes = re.search(r"(\d+) processes?: (.*)\.", shown)
                        assert "remote cache hit" in processes.group(2) and "sandbox" not in processes.group(2), shown
                        assert len(re.findall(r"_(?:test|parity) +\(cached\) PASSED", shown)) == 2 * len(VARIANTS), shown
                    assert len(re.findall(r"_(?:test|parity) .*PASSED", shown)) == 2 * len(VARIANTS), shown
                    print(f"# bazel: {attempt} build {seconds:.1f} s")
                    bin_folder = place / "bazel-bin" / "models"
                    outputs.append(contents(bin_folder, [f"{v}.mlpackage" for v in VARIANTS] + [f"{v}_bundle" for v in VARIANTS]) |
                                   {v: (bin_folder / f"{v}.manifest.json").read_bytes() for v in VARIANTS})
                assert outputs[0] == outputs[1]
                # As `mlc build` writes them.
                built = driver.run("build", folder / "first/workspace/models/digits.json", "-o", folder / "out")
                assert built.code == 0, built.stderr
                expected = contents(folder / "out", [f"{v}.mlpackage" for v in VARIANTS])
                assert expected and all(outputs[0][name] == data for name, data in expected.items())
                for variant in VARIANTS:
                    assert outputs[0][variant] == (folder / "out" / f"{variant}.manifest.json").read_bytes(), variant
                # A changed model is built again, and a failing check fails its test alone.
                place = folder / "second/workspace"
                recipe = json.loads((place / "models/digits.json").read_text())
                recipe["variants"][3]["limits"] = {"operations": 1}
                (place / "models/digits.json").write_text(json.dumps(recipe))
                shown = bazel(place, folder / "second/output", "test", "-k", f"--remote_cache={server.url}", "//models:all", code=3)
                assert re.search(r"fp16-ios16_test +FAILED", shown), shown
                assert len(re.findall(r"_test +(?:\(cached\) )?PASSED", shown)) == len(VARIANTS) - 1, shown
        finally:
            subprocess.run(["chmod", "-R", "u+w", folder], check=False)
    print("# bazel: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
