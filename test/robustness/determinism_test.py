"""One thread, two threads and a second run write the same bytes; so does the command MLC_OTHER, an mlc that was built by another
compiler or for another processor, e.g. qemu-aarch64-static -L build-arm64/sysroot build-arm64/bin/mlc."""
import concurrent.futures
import hashlib
import os
import pathlib
import shlex
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import big_model  # noqa: E402
import driver  # noqa: E402
import models  # noqa: E402

MEGABYTES = 50
NODE_MODELS = pathlib.Path("/usr/share/libonnx-testdata/data")
CHOSEN = ("nanodet_m_320", "zoo_bert_small_dyn", "zoo_vit_tiny", "zoo_unet_dyn", "ultraface_rfb320", "chess_policy_extdata")


def digest(package):
    """Returns {relative path: SHA-256} of every file."""
    return {str(f.relative_to(package)): hashlib.sha256(f.read_bytes()).hexdigest()
            for f in sorted(package.rglob("*")) if f.is_file()}


def packed(program, file, folder):
    """Returns the digest of the package that a program creates from a model, or its failure."""
    package = folder / "out.mlpackage"
    result = driver.run("compile", file, "-o", package, "--no-manifest", "--force", "--json", timeout=300, program=program)
    return digest(package) if driver.verdict(result) == "ok" else driver.verdict(result)


def differences(other):
    """Returns the models for which this mlc and another one create different packages, and the number of compared models."""
    files = sorted({m.file for m in models.models()} | set(NODE_MODELS.rglob("*.onnx")) | set(driver.CORPUS.rglob("*.gguf")) |
                   {config.parent for config in driver.CORPUS.rglob("config.json") if any(config.parent.glob("*.safetensors"))})

    def differs(file):
        with tempfile.TemporaryDirectory(prefix="mlc-") as path:
            return packed(driver.MLC, file, pathlib.Path(path)) != packed(other, file, pathlib.Path(path))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [str(file) for file, unlike in zip(files, pool.map(differs, files)) if unlike], len(files)


def main():
    files = [driver.ROOT / "manifests" / "digits" / "digits.onnx"]
    files += [m.file for m in models.models() if m.name in CHOSEN]
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        folder = pathlib.Path(scratch)
        big_model.write(folder / "big.onnx", MEGABYTES)
        files.append(folder / "big.onnx")
        for file in files:
            for precision in ("fp32", "fp16"):
                digests = []
                for attempt, threads in enumerate((1, 2, 2)):
                    package = folder / f"{attempt}.mlpackage"
                    result = driver.run("compile", file, "-o", package, "--precision", precision, "--json",
                                        environment={"MLC_THREADS": str(threads)}, timeout=300)
                    if driver.verdict(result) != "ok":
                        print(f"{file}: {driver.ending(result)}")
                        return 1
                    digests.append(digest(package))
                different = sorted(name for name in digests[0] if any(d.get(name) != digests[0][name] for d in digests))
                if different or any(set(d) != set(digests[0]) for d in digests):
                    print(f"{file} {precision}: {different or 'the files'} differ between runs with 1, 2 and 2 threads")
                    failed = True
    print(f"# determinism: {len(files)} models, fp32 and fp16, with 1, 2 and 2 threads: "
          f"{'DIFFERENT' if failed else 'identical'} packages")
    if "MLC_OTHER" in os.environ:
        unlike, count = differences(shlex.split(os.environ["MLC_OTHER"]))
        print(f"# determinism: {count} models, fp16, {len(unlike)} differ from those of {os.environ['MLC_OTHER']}")
        for file in unlike:
            print(f"{file}: the package differs from that of the other mlc")
        failed = failed or bool(unlike) or count == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
