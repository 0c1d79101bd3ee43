#!/usr/bin/env python3
"""Encoders of Hugging Face against what transformers computed (oracle.npz of the corpus), and against a reading of the same
networks in NumPy (encoder_numpy.py): other architectures and heads, more tokens, and padding.
"""
import json
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import encoder_numpy
import safetensors_file as safetensors
from driver import CORPUS, expect, run, run_tests

FOLDERS = ["hf_bert", "hf_bert_qa", "hf_deberta_v2_cls", "hf_distilbert_cls", "hf_mpnet", "hf_roberta"]
# Architectures of tiny folders, and what their config.json has otherwise.
TINY = [("BertModel", {}), ("BertForMaskedLM", {}), ("BertForSequenceClassification", {}), ("BertForTokenClassification", {}),
        ("RobertaForMaskedLM", {}), ("RobertaForTokenClassification", {}), ("XLMRobertaModel", {}),
        ("XLMRobertaForSequenceClassification", {}), ("DistilBertModel", {}), ("DistilBertForQuestionAnswering", {}),
        ("DistilBertForMaskedLM", {}), ("MPNetModel", {}), ("MPNetForSequenceClassification", {}), ("MPNetForMaskedLM", {}),
        ("AlbertModel", {}), ("AlbertForMaskedLM", {}), ("AlbertForSequenceClassification", {}), ("AlbertForQuestionAnswering", {}),
        ("ElectraModel", {}), ("ElectraForMaskedLM", {}), ("ElectraForSequenceClassification", {}),
        ("ElectraForTokenClassification", {}), ("DebertaV2Model", {}), ("DebertaV2ForTokenClassification", {}),
        ("DebertaV2ForSequenceClassification", {"share_att_key": False, "pos_att_type": ["c2p", "p2c"]}),
        ("DebertaV2ForQuestionAnswering", {"pos_att_type": ["c2p"], "max_relative_positions": 64}),
        ("ModernBertModel", {}), ("ModernBertForMaskedLM", {}), ("ModernBertForSequenceClassification", {}),
        ("ModernBertForSequenceClassification", {"classifier_pooling": "mean"}), ("ModernBertForTokenClassification", {}),
        ("ModernBertForQuestionAnswering", {}), ("NomicBertModel", {})]
TOKENS, PADDING = 90, 10
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
    if not (CORPUS / "huggingface").exists():
        print("# encoders of transformers: skipped, there is no corpus")
        return
    worst = 0
    for name in FOLDERS:
        oracle = np.load(CORPUS / "huggingface" / name / "oracle.npz")
        (folder / name).mkdir()
        found = outputs(CORPUS / "huggingface" / name, folder / name, oracle["in_input_ids"], "--arithmetic", "exact")
        wanted = {key[4:]: oracle[key] for key in oracle.files if key.startswith("out_")}
        assert found.keys() == wanted.keys(), (name, found.keys(), wanted.keys())
        for key, value in wanted.items():
            off = error(found[key], value)
            assert off <= EXACT, (name, key, off)
            worst = max(worst, off)
    print(f"# encoders: {len(FOLDERS)} folders within {worst:.1e} of transformers")


def test_numpy(folder):
    worst, rng = 0, np.random.default_rng(1)
    ids = rng.integers(2, encoder_numpy.VOCABULARY, TOKENS)
    mask, types = np.ones(TOKENS, int), rng.integers(0, 2, TOKENS)
    ids[-PADDING:], mask[-PADDING:] = 1, 0
    for number, (architecture, changes) in enumerate(TINY):
        config, tensors = encoder_numpy.tiny(architecture, number, **changes)
        model = folder / f"{number}"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_bytes(safetensors.of(tensors, {"format": "pt"}))
        kinds = types * (config.get("type_vocab_size", 2) > 1)
        wanted = encoder_numpy.outputs(config, tensors, ids, kinds, mask)
        found = outputs(model, model, ids[None], "--arithmetic", "exact", attention_mask=mask[None], token_type_ids=kinds[None])
        assert found.keys() == wanted.keys(), (architecture, found.keys(), wanted.keys())
        for key, value in wanted.items():
            assert found[key].shape == value.shape, (architecture, key, found[key].shape, value.shape)
            seen = (slice(None), slice(TOKENS - PADDING)) if value.shape[1] == TOKENS else ()
            off = error(found[key][seen], value[seen])
            assert off <= EXACT, (architecture, changes, key, off)
            worst = max(worst, off)
    print(f"# encoders: {len(TINY)} tiny folders within {worst:.1e} of NumPy, {TOKENS} tokens, {PADDING} of them padding")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "encoders"))
