#!/usr/bin/env python3
"""Packages of language models and encoders, judged by programs that are not ours (checkers.py): coremltools' definitions accept each,
nothing that it infers is less than what is declared, and its value inference computes the same logits.

Models are those of the corpus, and some with their weights quantised anew or for an older target.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import checkers
from driver import CORPUS, SKIPPED, expect, parallel, run, run_tests

# Folders of models that are not language models.
OTHERS = {"hf_clip", "hf_dinov2", "hf_dpt", "hf_mobilenet_v2", "hf_resnet", "hf_t5", "hf_vit_cls", "hf_wav2vec2_ctc", "hf_whisper",
          "hf_yolos"}
VARIANTS = [("gguf/llama.Q4_K_M.gguf", "--requant", "int8"), ("gguf/llama.Q4_K_M.gguf", "--requant", "int4"),
            ("gguf/llama.f32.gguf", "--requant", "lut4"), ("gguf/llama.Q5_1.gguf", "--requant", "fp16"),
            ("gguf/llama.Q6_K.gguf", "--target", "iOS26"), ("huggingface/hf_bert", "--requant", "int8")]
TOKENS = [5, 17, 30, 2, 41, 9]
# Relative root mean square: states are fp16 there, ours fp32 in exact arithmetic.
ALIKE = 1e-3


def models():
    files = sorted((CORPUS / "gguf").glob("*.gguf"))
    folders = sorted(path for path in (CORPUS / "huggingface").iterdir() if path.is_dir() and path.name not in OTHERS)
    return [(path,) for path in files + folders] + [(CORPUS / model, *options) for model, *options in VARIANTS]


def given(package):
    """A prompt, by the names of the package's inputs."""
    count = len(TOKENS)
    values = {"inputIds": np.array([TOKENS], "i4"), "causalMask": np.zeros((1, 1, count, count), "f4"),
              "input_ids": np.array([TOKENS], "i4"), "attention_mask": np.ones((1, count), "i4"),
              "token_type_ids": np.zeros((1, count), "i4")}
    return {port["name"]: values[port["name"]] for port in expect(run("inspect", package, "--json"), 0).answer["inputs"]}


def test_packages(folder):
    def compiled(numbered):
        number, (model, *options) = numbered
        package = folder / f"{number}_{'_'.join([model.name, *options]).replace('--', '')}.mlpackage"
        expect(run("compile", model, "-o", package, "--no-manifest", *options, timeout=300), 0)
        return package

    packages = parallel(compiled, enumerate(models()))
    refused = checkers.check(packages)
    assert not refused, "\n".join(f"{pathlib.Path(package).name}: {why[:3]}" for package, why in refused.items())

    jobs = []
    for package in packages:
        inputs = given(package)
        np.savez(folder / f"{package.stem}.in.npz", **inputs)
        jobs.append({"package": package, "inputs": folder / f"{package.stem}.in.npz", "outputs": folder / f"{package.stem}.npz"})
    answers = checkers.compute(jobs)
    worst, alike = 0, 0
    for job, answer in zip(jobs, answers):
        if answer:
            print(f"# {job['package'].name} is not computed there: {answer}")
            continue
        arguments = []
        for name, value in np.load(job["inputs"]).items():
            # The mask is fp16 in the package.
            path = folder / f"{job['package'].stem}.{name}.npy"
            np.save(path, value.astype("f2") if value.dtype.kind == "f" else value)
            arguments += ["--input", f"{name}={path}"]
        out = folder / f"{job['package'].stem}.out"
        result = expect(run("run", job["package"], *arguments, "--arithmetic", "exact", "--output-dir", out, "--json"), 0)
        ours = {entry["name"]: np.load(entry["file"]).astype("f8") for entry in result.answer["outputs"]}
        computed = np.load(job["outputs"])
        for name, values in ours.items():
            theirs = computed[name]
            error = np.sqrt(np.square(values - theirs).mean() / np.square(theirs.astype("f8")).mean())
            assert error <= ALIKE, f"{job['package'].name}: {name} is off by {error:.1e}"
            worst = max(worst, error)
        alike += 1
    assert alike >= 10
    print(f"# packages of language models: {len(packages)} accepted, {alike} computed alike, worst {worst:.1e}")


if __name__ == "__main__":
    if missing := checkers.missing() or ("" if (CORPUS / "gguf").exists() else "no corpus"):
        print(missing)
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "packages of language models"))
