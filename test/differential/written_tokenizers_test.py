#!/usr/bin/env python3
"""Compares the tokenizer.json that mlc writes for GGUF vocabularies with the GGUF file, in mlc and in Hugging Face's library.

mlc's ids for the GGUF file are compared with llama.cpp by tokenizers_test.py. TOKENIZERS_DIR is the folder in which
`npm install @anush008/tokenizers` was run; without it, mlc alone reads the files.
"""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gguf_wire
import hugging_face_tokenizers_test as library
import tokenizer_files as made
import tokenizers_test as llama
from driver import CORPUS, expect, parallel, run, run_tests

TEXTS = made.texts(2, llama.TEXTS)


def compare(folder, model, texts, may_differ=lambda text, ids, others: False):
    """Compares the ids of all texts. `may_differ` tells which differences are documented in tokenizer_writer.h."""
    expect(run("tokenize", model, "-o", folder / model.stem), 0)
    file = folder / model.stem / "tokenizer.json"
    given = folder / f"{model.stem}.texts.json"
    given.write_text(json.dumps(texts))

    def ours(path):
        return json.loads(expect(run("tokenize", path, "--texts", given, "--special", "--add-special", timeout=300), 0).stdout)["ids"]

    expected = ours(model)
    read = {"mlc": ours(file)}
    if library.FOLDER:
        read["Hugging Face's library"] = library.theirs_of([file], texts, "--add-special")[0]
    for reader, ids in read.items():
        assert not isinstance(ids, str), f"{model.name}, {reader}: {ids}"
        wrong = [(text, a, b) for text, a, b in zip(texts, expected, ids, strict=True) if a != b and not may_differ(text, a, b)]
        assert not wrong, f"{model.name}, {reader}: {len(wrong)} of {len(texts)} differ, e.g. " + "; ".join(
            f"{ascii(text)}: {a}, written {b}" for text, a, b in sorted(wrong, key=lambda each: len(each[0]))[:2])
    return len(texts)


def test_pre_tokenizers(folder):
    tokens, merges, types = made.byte_bpe()

    def one(name):
        model = folder / f"{name}.gguf"
        model.write_bytes(gguf_wire.model(made.gguf("gpt2", tokens, types, merges=merges, pre=name), {}))
        return compare(folder, model, TEXTS)

    counts = parallel(one, [row[0] for row in llama.rows() if row and row[0] not in llama.NOT_BYTES])
    print(f"# written tokenizers, pre-tokenizers: {len(counts)} rows, {sum(counts)} texts")


def test_corpus(folder):
    places = [place for place in sorted((CORPUS / "tokenizers").glob("*.gguf")) if not place.name.startswith("bert")]
    for place in places:
        shutil.copy(place, folder / place.name)
        compare(folder, folder / place.name, TEXTS + [f"{text}<s> {text}</s>a<|endoftext|>" for text in TEXTS[:40]])
    print(f"# written tokenizers, real vocabularies: {len(places)}")


def test_sentencepiece(folder):
    try:
        import sentencepiece  # noqa: F401
    except ImportError:
        print("# written tokenizers of SentencePiece's models: skipped, scripts/setup --dev installs python3-sentencepiece")
        return
    for number, (kind, options) in enumerate((
            ("bpe", {"byte_fallback": True, "vocabulary": 700}), ("unigram", {}),
            ("unigram", {"remove_extra_whitespaces": False, "user_defined_symbols": ["<sep>", "the"]}),
            ("unigram", {"add_dummy_prefix": False}))):
        metadata = made.sentencepiece_gguf(made.sentencepiece_model(folder, kind, **options))
        model = folder / f"{kind}{number}.gguf"
        model.write_bytes(gguf_wire.model(metadata, {}))
        scores = metadata["tokenizer.ggml.scores"]

        def tie_or_cluster(text, a, b):
            # Sums in another precision break ties; the library normalizes whole clusters, such as letters with marks, or "\r\n".
            tie = abs(sum(scores[i] for i in a) - sum(scores[i] for i in b)) < 1e-4
            return kind == "unigram" and (tie or "\r\n" in text or any(ord(letter) > 0x2ff for letter in text))

        compare(folder, model, TEXTS + ["a<sep>b", "<sep> the <se", "the<sep>the"], tie_or_cluster)


def test_word_piece(folder):
    """On ordinary text, BERT's normalization and llama.cpp's are the same."""
    tokens, types = made.word_piece()
    ids = {"bos_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1, "padding_token_id": 0, "mask_token_id": 4}
    words = made.ENGLISH.split() + "Größenmaß Äpfel Привет, Γειά 你好,世界! [MASK] IT'S don't 3.14159 {a[i]}".split()
    texts = ["", " ", *words, *(" ".join(words[at:at + 9]) for at in range(0, len(words), 9)), made.ENGLISH]
    for lowercase in (True, False):
        model = folder / f"bert{lowercase}.gguf"
        model.write_bytes(gguf_wire.model(made.gguf("bert", tokens, types, **(ids | {"normalizer.lowercase": lowercase})), {}))
        compare(folder, model, texts)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "written tokenizers"))
