#!/usr/bin/env python3
"""Texts and pairs of texts as inputs of encoders: `mlc run --text`, `--similarity` and `mlc verify --text`.

The ids, types and masks that mlc makes are those of Hugging Face's tokenizers library: TOKENIZERS_DIR is the folder in which
`npm install @anush008/tokenizers` was run; without it, ids and types that it
printed (version 0.6.0 of the package) are compared. ORT_DIR is the folder with onnxruntime-node, which computes the outputs of the
sample model.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
import tokenizer_files as made
from driver import CORPUS, ROOT, expect, run, run_tests

SAMPLE = ROOT / "manifests/passages"
LIBRARY, ONNX_RUNTIME = os.environ.get("TOKENIZERS_DIR", ""), os.environ.get("ORT_DIR", "")
FIRST, SECOND = "And Ruth said, I will go with thee.", "The king's house was of cedar."
CLS, SEP = 2, 3
# [ids, types] of FIRST, and of FIRST with SECOND.
STORED = ([[2, 7, 1, 41, 5, 19, 44, 91, 30, 45, 9, 3], [0] * 12],
          [[2, 7, 1, 41, 5, 19, 44, 91, 30, 45, 9, 3, 6, 61, 74, 83, 67, 35, 8, 1175, 9, 3], [0] * 12 + [1] * 10])


def refused(result, *expected):
    expect(result, 2)
    for text in expected:
        assert text in result.stderr, (text, result.stderr)


def document(name, **changes):
    """The sample's tokenizer.json, changed."""
    path = pathlib.Path(name)
    path.write_text(json.dumps(json.loads((SAMPLE / "tokenizer.json").read_text()) | changes))
    return path


def library(file, cases):
    """Returns [(ids, types)] of Hugging Face's library for texts and pairs of texts."""
    script = ROOT / "test/differential/tokenizers_batch.mjs"
    result = subprocess.run(["node", script, LIBRARY, "--pairs"], input=json.dumps([[str(file), cases]]), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)[0]
    assert isinstance(answer, list), answer
    return answer


def encoded(model, *options):
    shown = json.loads(expect(run("run", model, *options, "--json"), 0).stdout)
    return shown["text"], shown


def outputs(folder):
    return {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}


def test_a_text_and_a_pair_have_the_numbers_of_another_library(folder):
    model = SAMPLE / "passages.onnx"
    for i, (first, second) in enumerate(((FIRST, None), (FIRST, SECOND))):
        pair = ["--text-pair", second] if second else []
        text, _ = encoded(model, "--text", first, *pair)
        expected = STORED[i]
        if LIBRARY:
            assert library(SAMPLE / "tokenizer.json", [[first, second]]) == [expected]
        assert [text["tokens"], text["types"]] == expected, text
        # The outputs are those for these numbers as .npy files.
        arrays = {"input_ids": expected[0], "attention_mask": [1] * len(expected[0]), "token_type_ids": expected[1]}
        given = []
        for name, values in arrays.items():
            np.save(folder / f"{name}.npy", np.array([values]))
            given += ["--input", f"{name}={folder / name}.npy"]
        expect(run("run", model, *given, "--output-dir", folder / "arrays"), 0)
        expect(run("run", model, "--text", first, *pair, "--output-dir", folder / "text"), 0)
        arrays, texts = outputs(folder / "arrays"), outputs(folder / "text")
        assert (arrays["sentence_embedding"][0] == texts["pooled"]).all() and (arrays["logits"][0] == texts["logits"]).all()
        assert np.abs(texts["pooled"]).max() > 0.1
        if ONNX_RUNTIME:
            out = folder / f"ort{i}"
            out.mkdir()
            files = {name: str(folder / f"{name}.npy") for name in ("input_ids", "attention_mask", "token_type_ids")}
            line = {"model": str(model), "inputs": files, "out": str(out)}
            (folder / "list.jsonl").write_text(json.dumps(line) + "\n")
            subprocess.run(["node", ROOT / "test/differential/ort_batch.mjs", folder / "list.jsonl"], check=True)
            assert not (out / "error.txt").exists(), (out / "error.txt").read_text()
            assert np.abs(np.load(out / "0.npy")[0] - texts["pooled"]).max() < 1e-5
            assert np.abs(np.load(out / "1.npy")[0] - texts["logits"]).max() < 1e-4


def test_templates_of_pairs(folder):
    """Ids and types for each kind of post-processor, and how texts are cut."""
    bert = {"type": "BertProcessing", "sep": ["[SEP]", SEP], "cls": ["[CLS]", CLS]}
    roberta = {"type": "RobertaProcessing", "sep": ["[SEP]", SEP], "cls": ["[CLS]", CLS], "trim_offsets": True, "add_prefix_space": True}
    model = SAMPLE / "passages.onnx"
    first, second = [encoded(model, "--text", t)[0]["tokens"][1:-1] for t in (FIRST, SECOND)]
    one = [0] * len(first)
    for name, processor, expected in (
            ("bert", bert, ([CLS, *first, SEP, *second, SEP], [0, *one, 0, *[1] * len(second), 1])),
            ("roberta", roberta, ([CLS, *first, SEP, SEP, *second, SEP], [0] * (len(first) + len(second) + 4))),
            ("none", None, ([*first, *second], [*one, *[1] * len(second)]))):
        file = document(folder / f"{name}.json", post_processor=processor)
        text, _ = encoded(model, "--text", FIRST, "--text-pair", SECOND, "--tokenizer", file)
        assert (text["tokens"], text["types"]) == expected, name
        if LIBRARY:
            assert library(file, [[FIRST, SECOND]]) == [list(expected)], name
    # Special tokens in a text are recognised, as in the library.
    text, _ = encoded(model, "--text", "[MASK] said")
    assert text["tokens"][1] == 4, text
    # A template that takes one text only.
    single = json.loads((SAMPLE / "tokenizer.json").read_text())["post_processor"]
    file = document(folder / "single.json", post_processor=single | {"pair": single["single"]})
    expect(run("run", model, "--text", "a", "--tokenizer", file), 0)
    expect(run("run", model, "--text", "a", "--text-pair", "b", "--tokenizer", file), 1, "no template for a pair of texts")


def test_long_texts_are_cut_and_short_ones_padded(folder):
    package = folder / "p.mlpackage"
    expect(run("compile", SAMPLE / "passages.onnx", "--dim", "batch=1", "--dim", "tokens=12", "-o", package), 0)
    tokenizer = ["--tokenizer", SAMPLE]
    shown = expect(run("run", package, "--text", "And he", *tokenizer), 0).stdout
    assert "text: 4 tokens: [CLS] and he [SEP]\n" in shown and "padded to 12 tokens\n" in shown, shown
    long = " ".join(["word"] * 3 + ["king"] * 20)
    text, _ = encoded(package, "--text", long, *tokenizer)
    assert len(text["tokens"]) == 12 and text["left_out"] == 13 and text["pieces"][-1] == "[SEP]", text
    assert "13 tokens left out: more than the model takes" in run("run", package, "--text", long, *tokenizer).stdout
    # Of a pair, the longer text is cut first: with 3 tokens for the template, 9 remain.
    for lengths, kept in (((20, 3), (6, 3)), ((3, 20), (3, 6)), ((20, 20), (4, 5)), ((21, 20), (5, 4)), ((4, 5), (4, 5))):
        first, second = [" ".join(["king"] * n) for n in lengths]
        text, _ = encoded(package, "--text", first, "--text-pair", second, *tokenizer)
        assert (text["types"].count(0) - 2, text["types"].count(1) - 1) == kept, (lengths, text)
        if LIBRARY:
            file = document(folder / "cut.json", truncation={"direction": "Right", "max_length": 12, "strategy": "LongestFirst", "stride": 0})
            assert library(file, [[first, second]]) == [[text["tokens"], text["types"]]]
    # The limit of the tokenizer, and the side on which it cuts.
    shutil.copy(SAMPLE / "tokenizer.json", folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 5, "truncation_side": "left"}))
    text, _ = encoded(SAMPLE / "passages.onnx", "--text", "and he said king of", "--tokenizer", folder)
    assert text["pieces"] == ["[CLS]", "said", "king", "of", "[SEP]"], text


def test_similarity(folder):
    model = SAMPLE / "passages.onnx"
    texts = "The king sat upon his throne.", "And the prince ruled over the kingdom.", "Ye shall not eat of their flesh."
    expect(run("run", model, "--text", texts[0], "--output-dir", folder / "a"), 0)
    expect(run("run", model, "--text", texts[1], "--output-dir", folder / "b"), 0)
    a, b = [np.load(folder / name / "pooled.npy").astype("f8") for name in "ab"]
    cosine = a @ b / np.sqrt((a @ a) * (b @ b))
    shown = json.loads(expect(run("run", model, "--similarity", *texts[:2], "--json"), 0).stdout)
    assert abs(shown["cosine"] - cosine) < 1e-6 and shown["pooling"] == "sentence_embedding", shown["cosine"]
    assert np.abs(np.array(shown["texts"][0]["embedding"]) - a).max() < 1e-6
    other = json.loads(expect(run("run", model, "--similarity", texts[0], texts[2], "--json"), 0).stdout)
    assert shown["cosine"] > other["cosine"], (shown["cosine"], other["cosine"])
    assert abs(json.loads(run("run", model, "--similarity", texts[0], texts[0], "--json").stdout)["cosine"] - 1) < 1e-6
    refused(run("run", model, "--similarity", "one"), "--similarity")
    refused(run("run", model, "--similarity", "one", "two", "--text", "three"), "cannot be combined")


def tokens_model(folder, width=6, rows=2405, fixed=None):
    """An ONNX file with the output last_hidden_state [1, tokens, width], whose rows depend on the words alone."""
    folder.mkdir()
    table = np.random.default_rng(1).normal(size=(rows, width)).astype("f4")
    dims = [1, fixed or "tokens"]
    info = [wire.value_info(name, wire.INT64, dims) for name in ("input_ids", "attention_mask")]
    nodes = [wire.node("Gather", ["table", "input_ids"], ["rows"]), wire.node("Cast", ["attention_mask"], ["seen"], to=wire.FLOAT),
             wire.node("Unsqueeze", ["seen", "axis"], ["column"]), wire.node("Mul", ["rows", "column"], ["last_hidden_state"])]
    initializers = [wire.tensor("table", wire.FLOAT, table.shape, table.tobytes()),
                    wire.tensor("axis", wire.INT64, [1], np.array([2]).tobytes())]
    (folder / "m.onnx").write_bytes(wire.model(wire.graph(
        nodes, info, [wire.value_info("last_hidden_state", wire.FLOAT, [*dims, width])], initializers)))
    shutil.copy(SAMPLE / "tokenizer.json", folder)
    return folder / "m.onnx", table.astype("f8")


def test_similarity_pools_as_sentence_transformers_does(folder):
    model, table = tokens_model(folder / "m", fixed=16)
    texts = "the king", "a house of cedar"
    rows = [table[encoded(model, "--text", t)[0]["tokens"]] for t in texts]

    def cosine(a, b):
        return a @ b / np.sqrt((a @ a) * (b @ b))

    def shown():
        return json.loads(expect(run("run", model, "--similarity", *texts, "--json"), 0).stdout)
    # Padding counts for nothing.
    assert abs(shown()["cosine"] - cosine(rows[0].mean(0), rows[1].mean(0))) < 1e-5
    assert shown()["pooling"] == "mean of the tokens"
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"},
               {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
               {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
    (folder / "m/modules.json").write_text(json.dumps(modules))
    (folder / "m/1_Pooling").mkdir()

    def pooling(**modes):
        (folder / "m/1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 6} | modes))
    pooling(pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
    first = shown()
    assert abs(first["cosine"] - 1) < 1e-6, "both begin with [CLS]"
    assert first["pooling"] == "first token, of length 1" and abs(np.linalg.norm(first["texts"][0]["embedding"]) - 1) < 1e-6
    pooling(pooling_mode_max_tokens=True)
    expect(run("run", model, "--similarity", *texts), 1, "the pooling of 1_Pooling/config.json is not supported")
    # max_seq_length
    pooling(pooling_mode_mean_tokens=True)
    (folder / "m/sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    assert len(shown()["texts"][1]["tokens"]) == 4


def test_verify_compares_on_texts(folder):
    model, package = SAMPLE / "passages.onnx", folder / "p.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    texts = folder / "texts.txt"
    texts.write_bytes(f"\ufeff{FIRST}\r\n\n{FIRST}\t{SECOND}\r\n".encode())
    shown = expect(run("verify", model, package, "--text", texts), 0, "PASSED").stdout
    lengths = [len(encoded(model, "--text", FIRST, *more)[0]["tokens"]) for more in ([], ["--text-pair", SECOND])]
    assert f"texts: 2, of {lengths[0]} to {lengths[1]} tokens\n" in shown, shown
    listed = json.loads(run("verify", model, package, "--text", texts, "--json").stdout)
    assert [len(t["tokens"]) for t in listed["texts"]] == lengths and listed["outputs"], listed
    # A package of another model fails.
    other = folder / "other.onnx"
    other.write_bytes(model.read_bytes().replace(b"Max", b"Min"))
    expect(run("compile", other, "-o", folder / "other.mlpackage"), 0)
    expect(run("verify", model, folder / "other.mlpackage", "--text", texts), 3, "FAILED")
    texts.write_text("a\tb\tc\n")
    expect(run("verify", model, package, "--text", texts), 1, "line 1 has more than one tab")
    texts.write_text("\n\n")
    expect(run("verify", model, package, "--text", texts), 1, "the file contains no text")
    refused(run("verify", model, package, "--text", texts, "--seed", 1), "--text replaces inputs; remove --seed")


def test_a_folder_of_hugging_face(folder):
    """A classifier with labels: its folder, and its package with the tokenizer beside it."""
    source = CORPUS / "huggingface/hf_distilbert_cls"
    if not source.exists():
        print("# a Hugging Face folder: skipped, needs ../shared/corpus")
        return
    model = folder / "model"
    shutil.copytree(source, model)
    document_ = json.loads((SAMPLE / "tokenizer.json").read_text())
    document_["model"]["vocab"] = {word: i for word, i in document_["model"]["vocab"].items() if i < 512}
    (model / "tokenizer.json").write_text(json.dumps(document_))
    shown = expect(run("run", model, "--text", FIRST, "--output-dir", folder / "out"), 0).stdout
    logits = np.load(folder / "out/logits.npy").astype("f8")
    best = int(logits.argmax())
    share = 100 / (1 + np.exp(-abs(logits[0] - logits[1])))
    assert f"label: LABEL_{best} ({share:.1f} %), LABEL_{1 - best}" in shown, (shown, logits)
    text, _ = encoded(model, "--text", FIRST)
    ids = ",".join(map(str, text["tokens"]))
    expect(run("run", model, "--tokens", ids, "--output-dir", folder / "tokens"), 0)
    assert (np.load(folder / "tokens/logits.npy") == np.load(folder / "out/logits.npy")).all()
    package = folder / "p.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    assert encoded(package, "--text", FIRST)[0]["tokens"] == text["tokens"]
    (folder / "t.txt").write_text(f"{FIRST}\n{SECOND}\n")
    expect(run("verify", model, package, "--text", folder / "t.txt"), 0, "PASSED")
    expect(run("run", model, "--similarity", "a", "b"), 2, "the model has no embedding; its outputs: logits")


def test_mistakes(folder):
    model = SAMPLE / "passages.onnx"
    alone = folder / "alone.onnx"
    shutil.copy(model, alone)
    expect(run("run", alone, "--text", "a"), 1, "there is no tokenizer with the model", "--tokenizer PATH")
    shutil.copy(SAMPLE / "tokenizer.json", folder / "tokenizer.json")
    expect(run("run", alone, "--text", "a"), 0)
    # optimum's layout
    (folder / "onnx").mkdir()
    shutil.move(alone, folder / "onnx/model.onnx")
    expect(run("run", folder / "onnx/model.onnx", "--text", "a"), 0)
    refused(run("run", ROOT / "manifests/digits/digits.onnx", "--text", "a"), "is not a text encoder; its inputs: image [1, 1, 8, 8]", "--input NAME=FILE")
    refused(run("run", ROOT / "manifests/sums/sums.gguf", "--text", "1"), "is a language model", "--prompt continues a text")
    refused(run("run", model, "--text-pair", "a"), "--text-pair requires --text")
    refused(run("run", model, "--text", "a", "--tokens", "1"), "--text cannot be combined with --tokens")
    refused(run("run", model, "--text", "a", "--input", "x=y.npy"), "--text cannot be combined with --input")
    refused(run("run", model, "--text", "a", "--seed", "1"), "--text replaces inputs; remove --seed")
    refused(run("run", model, "--tokenizer", SAMPLE), "--tokenizer requires a text")
    # A tokenizer with more tokens than the model.
    file = document(folder / "large.json", added_tokens=[])
    larger = json.loads(file.read_text())
    larger["model"]["vocab"]["zzz"] = len(larger["model"]["vocab"])
    file.write_text(json.dumps(larger))
    expect(run("run", model, "--text", "zzz", "--tokenizer", file), 1, 'token 2405 ("zzz") is not in the vocabulary of the model')


if __name__ == "__main__":
    if not LIBRARY:
        print("# Hugging Face's library: not compared, needs TOKENIZERS_DIR")
    if not ONNX_RUNTIME:
        print("# ONNX Runtime: not compared, needs ORT_DIR")
    sys.exit(run_tests(globals(), "texts as inputs"))
