#!/usr/bin/env python3
"""`mlc opt` changes nothing in a package that mlc has just written, in either precision.

Compiles every ONNX, GGUF and Hugging Face model of the corpus and of the folder MLC_ZOO for the default target, and those that
are no single operators for iOS18 and for the Neural Engine, too. Without the corpus, the sample models of manifests are compiled.
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402


# Models that change, and why that is right.
CONSTANT = "the writer gives a constant output an operation, which folds again"
DIVISION = "a pipeline for fp32 replaces divisions in what stayed in fp32; one for fp16 keeps them, as the reciprocals are inexact"
SUNK = "with --optimize-for ane, a transpose sinks below the cast of an output, and rises again"
KNOWN = {
    "dtln_2": SUNK,
    "fasterrcnn_mobilenet": DIVISION,
    "oww_melspectrogram": DIVISION,
    "raft_small": DIVISION,
    "ssdlite320": DIVISION,
    "test_optional_has_element_empty_no_input_name_optional_input": CONSTANT,
    "test_optional_has_element_empty_no_input_optional_input": CONSTANT,
    "test_bitcast_int32_to_float32": "a lookup stays in fp32 for the sake of its user, which is in fp16 once it is written",
}


def sources(folder):
    """Returns the models below a folder."""
    found = []
    for at, folders, files in os.walk(folder):
        if at.endswith((".mlpackage", ".mlmodelc")):
            folders.clear()
            continue
        found += [pathlib.Path(at, f) for f in files if f.endswith((".onnx", ".gguf"))]
        if "config.json" in files and any(f.endswith(".safetensors") for f in files):
            found.append(pathlib.Path(at))
    return sorted(found)


def examine(model):
    """Returns (number of packages, faults)."""
    packages, faults = 0, []
    variants = [[]] if "onnx-node" in model.parts else [[], ["--target", "iOS18"], ["--optimize-for", "ane"]]
    for options in variants:
        with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
            package = pathlib.Path(scratch) / "m.mlpackage"
            if driver.run("compile", model, "-o", package, "--no-measure", "--no-manifest", *options, timeout=600).code:
                continue  # tested elsewhere
            packages += 1
            for precision in ("fp32", "fp16"):
                result = driver.run("opt", package, "--precision", precision, "-o", package.with_name("again.mlpackage"),
                                    "--force", "--json", timeout=600)
                changed = [run["name"] for run in result.answer.get("passes", []) if run["changed"]]
                known = model.parent.name in KNOWN and result.code == 0
                if (result.code or changed) and not known:
                    faults.append(f"{model}, {' '.join(options) or 'default'}, {precision}: {changed or driver.ending(result)}")
    return packages, faults


def main():
    if not driver.MLC.exists():
        print("# fixed point: skipped, no mlc")
        return driver.SKIPPED
    folders = [driver.CORPUS, *([os.environ["MLC_ZOO"]] if "MLC_ZOO" in os.environ else [])]
    models = sum((sources(folder) for folder in folders), []) or sources(driver.ROOT / "manifests")
    results = driver.parallel(examine, models)
    faults = sum((found for _, found in results), [])
    print("\n".join(faults))
    print(f"# fixed point: {sum(count for count, _ in results)} packages of {len(models)} models, {len(faults)} changed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
