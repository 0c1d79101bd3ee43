#!/usr/bin/env python3
"""Encoders of Hugging Face against what transformers computed (oracle.npz of the corpus)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

from driver import CORPUS, SKIPPED, expect, run, run_tests

FOLDERS = ["hf_bert", "hf_bert_qa", "hf_deberta_v2_cls", "hf_distilbert_cls", "hf_mpnet", "hf_roberta"]
EXACT = 1e-4  # relative root mean square


def outputs(model, folder, ids, *options, **more):
    """What mlc computes of one row of tokens, all of them seen, of the first type."""
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids), **more}
    takes = {port["name"] for port in expect(run("inspect", model, "--ops", "--json"), 0).answer["inputs"]}
    arguments = []
    for name in sorted(takes):
        np.save(folder / f"{name}.npy", given[name].astype("i4"))
        arguments += ["--input", f"{name}={folder / name}.npy"]
    expect(run("run", model, *arguments, "--output-dir", folder / "out", *options), 0)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def error(value, reference):
    assert value.shape == reference.shape, (value.shape, reference.shape)
    return float(np.sqrt(np.mean((value - reference.astype("f8")) ** 2) / np.mean(reference.astype("f8") ** 2)))


def test_corpus(folder):
    worst = 0
    for name in FOLDERS:
        oracle = np.load(CORPUS / "huggingface" / name / "oracle.npz")
        (folder / name).mkdir()
        found = outputs(CORPUS / "huggingface" / name, folder / name, oracle["in_input_ids"], "--arithmetic", "exact")
        wanted = {key[4:]: oracle[key] for key in oracle.files if key.startswith("out_")}
        assert found.keys() == wanted.keys(), (name, found.keys(), wanted.keys())
        for key, value in wanted.items():
            off = error(found[key], value)
            print(f"{name} {key}: {off:.1e}")
            assert off <= EXACT, (name, key, off)
            worst = max(worst, off)
    print(f"# encoders: {len(FOLDERS)} folders within {worst:.1e} of transformers")


if __name__ == "__main__":
    if not (CORPUS / "huggingface").exists():
        print("# encoders: skipped, there is no corpus")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "encoders"))
