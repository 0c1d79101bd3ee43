#!/usr/bin/python3
"""Creates the sample text encoder: embeddings of passages of the King James Bible, and whether one follows another.

Writes to manifests/passages: passages.onnx, tokenizer.json (WordPiece, the template of BERT), config.json (the names of the
classes) and texts.txt, pairs of verses that were not trained on, one on each line. The model has the inputs and the form of
BERT's exports: input_ids, attention_mask and token_type_ids [batch, tokens] int64 give sentence_embedding [batch, 48], of
length 1, and logits [batch, 2]: whether the second text of a pair stands within ten verses of the first. The embedding of a
passage is the mean of those of its words, which are latent semantic analysis of the verses around them, weighted as in SIF
(Arora et al., 2017); a logistic regression on the products of two embeddings makes the logits. Requires Debian's python3-numpy
and bible-kjv. Prints the accuracy on three books that are not in the training set.
"""
import json
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "manifests" / "passages"
sys.path.insert(0, str(ROOT / "test"))
import onnx_wire as wire  # noqa: E402

HELD_OUT = ("Ruth", "Est", "Jonah")
WIDTH, WORDS, WINDOW, NEAR = 48, 2400, 3, 10
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def books():
    """Returns {book: [verse]} in the order of the package."""
    text = subprocess.run(["bible", "-l9999", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=True).stdout
    made = {}
    for book, verse in re.findall(r"^([1-3]?[A-Za-z]+)\d+:\d+ (.*)$", text, re.M):
        made.setdefault(book, []).append(verse.strip())
    return made


def words(verse):
    """The words that BERT's pre-tokenizer finds in a lower-case text of ASCII."""
    return re.findall(r"[a-z0-9]+|[^\sa-z0-9]", verse.lower())


def embeddings(books, vocabulary):
    """Returns [words, WIDTH] float32: the singular vectors of the words' occurrences in neighbouring verses."""
    ids = {word: i for i, word in enumerate(vocabulary)}
    counts = np.zeros((len(vocabulary), len(vocabulary)))
    for verses in books.values():
        rows = [np.unique([ids[w] for w in words(v) if w in ids]) for v in verses]
        for i, row in enumerate(rows):
            near = np.concatenate(rows[max(0, i - WINDOW):i + WINDOW + 1])
            np.add.at(counts, (np.repeat(row, len(near)), np.tile(near, len(row))), 1)
    total, margin = counts.sum(), counts.sum(1)
    information = np.log(np.maximum(counts * total / np.maximum(np.outer(margin, margin), 1), 1))
    left, values, _ = np.linalg.svd(information, hermitian=True)
    left *= np.sign(left[np.abs(left).argmax(0), np.arange(left.shape[1])])
    frequency = margin / total
    table = left[:, :WIDTH] * np.sqrt(values[:WIDTH]) * (1e-3 / (1e-3 + frequency))[:, None]
    return (table / np.abs(table).max()).astype("f4")


def passage(verse, ids, table):
    found = [ids[w] for w in words(verse) if w in ids]
    sum_ = table[found].sum(0)
    return sum_ / max(np.linalg.norm(sum_), 1e-6)


def pairs(books, dice):
    """Returns (pairs of verses, whether they are close), half of each."""
    texts, near = [], []
    everything = [v for verses in books.values() for v in verses]
    for verses in books.values():
        for i in range(0, len(verses) - NEAR, 2):
            texts.append((verses[i], verses[i + int(dice.integers(1, NEAR + 1))]))
            texts.append((verses[i], everything[int(dice.integers(len(everything)))]))
            near += [1, 0]
    return texts, np.array(near)


def regression(features, near):
    """Returns weights and bias of a logistic regression, by Newton's method."""
    x = np.hstack([features, np.ones((len(features), 1))])
    w = np.zeros(x.shape[1])
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ w))
        w += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + 1e-2 * np.eye(len(w)), x.T @ (near - p) - 1e-2 * w)
    return w[:-1], w[-1]


def onnx(table, weights, bias):
    f, i64 = wire.FLOAT, wire.INT64

    def constant(name, array):
        kind = {"float32": wire.FLOAT, "float16": wire.FLOAT16, "int64": wire.INT64}[array.dtype.name]
        return wire.tensor(name, kind, array.shape, array.tobytes())
    node = wire.node
    nodes = [node("Gather", ["words", "input_ids"], ["rows"]), node("Cast", ["rows"], ["embedded"], to=f),
             node("Cast", ["attention_mask"], ["seen"], to=f), node("Cast", ["token_type_ids"], ["types"], to=f),
             node("Mul", ["seen", "types"], ["second_mask"]), node("Sub", ["seen", "second_mask"], ["first_mask"])]
    for name, mask in ("all", "seen"), ("first", "first_mask"), ("second", "second_mask"):
        unit = "sentence_embedding" if name == "all" else name
        nodes += [node("Unsqueeze", [mask, "last"], [f"{name}_column"]),
                  node("Mul", ["embedded", f"{name}_column"], [f"{name}_rows"]),
                  node("ReduceSum", [f"{name}_rows", "tokens_axis"], [f"{name}_sum"], keepdims=0),
                  node("ReduceL2", [f"{name}_sum"], [f"{name}_length"], axes=[1], keepdims=1),
                  node("Max", [f"{name}_length", "least"], [f"{name}_norm"]),
                  node("Div", [f"{name}_sum", f"{name}_norm"], [unit])]
    nodes += [node("Mul", ["first", "second"], ["products"]), node("Gemm", ["products", "classes", "bias"], ["logits"])]
    both = np.stack([-weights / 2, weights / 2], 1).astype("f4")
    initializers = [constant("words", table.astype("f2")), constant("last", np.array([2])), constant("tokens_axis", np.array([1])),
                    constant("least", np.array([[1e-3]], "f4")), constant("classes", both),
                    constant("bias", np.array([-bias / 2, bias / 2], "f4"))]
    ids = [wire.value_info(name, i64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [wire.value_info("sentence_embedding", f, ["batch", WIDTH]), wire.value_info("logits", f, ["batch", 2])]
    return wire.model(wire.graph(nodes, ids, outputs, initializers, name="passages"))


def tokenizer(vocabulary):
    special = {text: {"id": text, "ids": [SPECIAL.index(text)], "tokens": [text]} for text in ("[CLS]", "[SEP]")}

    def token(text, kind):
        return {"SpecialToken": {"id": text, "type_id": kind}}

    def text(which, kind):
        return {"Sequence": {"id": which, "type_id": kind}}
    single = [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True} for i, content in enumerate(SPECIAL)],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": single,
                               "pair": [*single, text("B", 1), token("[SEP]", 1)], "special_tokens": special},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(vocabulary)}}}


def main():
    everything = books()
    train = {name: verses for name, verses in everything.items() if name not in HELD_OUT}
    held_out = {name: verses for name, verses in everything.items() if name in HELD_OUT}
    often = {}
    for verse in (v for verses in train.values() for v in verses):
        for word in words(verse):
            often[word] = often.get(word, 0) + 1
    known = sorted(sorted(often), key=lambda word: -often[word])[:WORDS]
    vocabulary = SPECIAL + known
    table = np.concatenate([np.zeros((len(SPECIAL), WIDTH), "f4"), embeddings(train, known)]).astype("f2").astype("f4")
    ids = {word: i for i, word in enumerate(vocabulary)}
    dice = np.random.Generator(np.random.Philox(1))

    def features(texts):
        return np.array([passage(a, ids, table) * passage(b, ids, table) for a, b in texts])
    texts, near = pairs(train, dice)
    weights, bias = regression(features(texts), near)
    texts, near = pairs(held_out, dice)
    right = ((features(texts) @ weights + bias > 0) == near).mean()
    OUT.mkdir(exist_ok=True)
    (OUT / "passages.onnx").write_bytes(onnx(table, weights, bias))
    (OUT / "tokenizer.json").write_text(json.dumps(tokenizer(vocabulary), indent=0, ensure_ascii=False) + "\n")
    (OUT / "config.json").write_text(json.dumps({"id2label": {"0": "elsewhere", "1": "near"}}) + "\n")
    (OUT / "texts.txt").write_text("".join(f"{a}\t{b}\n" for a, b in texts[:24]))
    print(f"accuracy on {len(texts)} pairs of {', '.join(HELD_OUT)}: {100 * right:.1f} %")


if __name__ == "__main__":
    main()
