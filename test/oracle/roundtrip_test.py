"""Packages of coremltools are read, written back and judged by programs that are not ours: the protobufs are equal up to the
order of maps and the layout of the weight file, coremltools' definitions accept what was written (check_mlpackage.py
--strict), and an evaluator made of coremltools' value inference and torch (run_mlpackage.py) computes what `mlc run` computes.
The same for a bundle of Apple's that has its weights.

CT_DIR names an importable coremltools; packages and programs are in ../shared.
"""
import hashlib
import os
import pathlib
import struct
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checkers  # noqa: E402
import driver  # noqa: E402
import models  # noqa: E402

PACKAGES = driver.CORPUS / "coremltools-packages"
BUNDLE = driver.CORPUS / "mlmodelc" / "SileroVAD.mlmodelc"
MODEL = "Data/com.apple.CoreML/model.mlmodel"
BUDGETS = {"fp32": 1e-3, "fp16": 1e-2}  # the default ones, by what a package computes in


def skip(why):
    print(f"# round trips: skipped, {why}")
    sys.exit(driver.SKIPPED)


def blobs(message, folder):
    """Replaces every reference into a weight file by the hash of what stands there."""
    if message.DESCRIPTOR.name == "BlobFileValue":
        data = (folder / message.fileName.replace("@model_path/", "")).read_bytes()
        magic, dtype, size, offset = struct.unpack_from("<IIQQ", data, message.offset)
        assert magic == 0xDEADBEEF
        message.fileName = f"{dtype}:{hashlib.sha256(data[offset:offset + size]).hexdigest()}"
        message.offset = 0
        return
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE:
            continue
        if field.message_type.GetOptions().map_entry:
            values = [value[k] for k in value] if field.message_type.fields_by_name["value"].message_type else []
        else:
            values = value if field.label == field.LABEL_REPEATED else [value]
        for inner in values:
            blobs(inner, folder)


def load(proto, package):
    model = proto.Model()
    model.ParseFromString((package / MODEL).read_bytes())
    blobs(model, (package / MODEL).parent)
    return model


def random_inputs(about, seed):
    random = np.random.default_rng(seed)
    inputs = {}
    for entry in about["inputs"]:
        shape = [d if isinstance(d, int) else 2 for d in entry["shape"]] or [1]
        inputs[entry["mil_name"]] = (random.integers(0, 2, shape).astype(np.int32) if "int" in entry["dtype"] else
                                     random.standard_normal(shape).astype(
                                         np.float16 if entry["dtype"] == "fp16" else np.float32))
    return inputs


def run_ours(package, inputs, folder):
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    # The other evaluator does not overflow in fp16.
    result = driver.run("run", package, "--json", "--arithmetic", "exact", "--output-dir", folder / "out", *arguments, timeout=300)
    if driver.verdict(result) != "ok":
        return None, driver.ending(result)
    return {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}, ""


def run_theirs(package, inputs, folder):
    np.savez(folder / "in.npz", **inputs)
    [why] = checkers.compute([{"package": package, "inputs": folder / "in.npz", "outputs": folder / "out.npz"}])
    return (dict(np.load(folder / "out.npz")), "") if not why else (None, why)


def agree(ours, theirs, budget):
    for name, value in theirs.items():
        if name.startswith("state_"):  # what a state holds afterwards
            continue
        if name not in ours:
            return f"{name} is missing"
        value = np.asarray(value, np.float64)
        error, _ = models.measured(np.asarray(ours[name], np.float64).reshape(value.shape), value)
        if not error <= budget:
            return f"{name}: error {error:.2e}"
    return ""


def main():
    if what := checkers.missing():
        skip(what)
    if not PACKAGES.is_dir():
        skip(f"no packages in {PACKAGES}")
    sys.path.insert(0, os.environ["CT_DIR"])
    from coremltools.proto import Model_pb2 as proto
    failures, equal, accepted, computed, stopped = [], 0, 0, 0, {}
    packages = sorted(p for p in PACKAGES.iterdir() if p.suffix == ".mlpackage")
    with tempfile.TemporaryDirectory() as scratch:
        for package in [*packages, BUNDLE]:
            folder = pathlib.Path(scratch) / package.stem
            folder.mkdir()
            back = folder / "back.mlpackage"
            result = driver.run("opt", package, "--passes", "", "-o", back)
            if result.code != 0:
                failures.append(f"{package.name}: {driver.ending(result)}")
                continue
            if package != BUNDLE:
                if load(proto, package) == load(proto, back):
                    equal += 1
                else:
                    failures.append(f"{package.name}: the protobufs differ")
            # Apple's bundle itself has an infinite fp16 constant, which the strict check refuses.
            if refused := checkers.check([back], strict=package != BUNDLE):
                failures.append(f"{package.name}: {refused[str(back)][0]}")
            else:
                accepted += 1
            about = driver.run("inspect", package, "--json").answer
            inputs = random_inputs(about, 0)
            ours, why = run_ours(package, inputs, folder)
            if ours is None:
                failures.append(f"{package.name}: {why}")
                continue
            theirs, why = run_theirs(back, inputs, folder)
            if theirs is None:
                stopped[package.name] = why
                continue
            computed += 1
            half = "fp16" in about["weights"]["by_dtype"] or "cast" in about["operators"]
            if why := agree(ours, theirs, BUDGETS["fp16" if half else "fp32"]):
                failures.append(f"{package.name}: {why}")
    print(f"# round trip: {len(packages)} packages of coremltools and a bundle of Apple; {equal} equal protobufs, "
          f"{accepted} accepted, {computed} computed alike")
    for name, why in stopped.items():
        print(f"# not computed by the other evaluator: {name}: {why}")
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
