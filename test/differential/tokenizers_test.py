#!/usr/bin/env python3
"""Compares every pre-tokenizer and kind of tokenizer with llama.cpp, on texts that cover all of Unicode.

LLAMA_DIR is the folder in which node-llama-cpp is installed. Without it, nothing is compared.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gguf_wire
import llama_cpp
import tokenizer_files as made
from driver import CORPUS, ROOT, SKIPPED, expect, parallel, run, run_tests

LIBRARIES = llama_cpp.libraries(os.environ.get("LLAMA_DIR", "/none"))
TEXTS = int(os.environ.get("MLC_TOKENIZER_TEXTS", "400"))
# Names that llama.cpp accepts only with another tokenizer.ggml.model, or not with a byte-level vocabulary.
NOT_BYTES = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"}


def rows():
    """Returns the names in each row of lib/text/pre_tokenizers.cpp."""
    source = (ROOT / "lib/text/pre_tokenizers.cpp").read_text()
    lists = re.findall(r"^    \{\{((?:\"[^\"]*\",?\s*)+)\}", source[source.index("kRows = {"):], re.M)
    return [[name for name in re.findall(r'"([^"]*)"', row) if name] for row in lists]


def theirs(model, texts, *flags):
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("llama_tokenize.py"), LIBRARIES, model, *flags],
                          input=json.dumps(texts), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-800:]
    return json.loads(done.stdout)


def compare(model, texts, *flags, scores=None):
    """Compares the ids of all texts and returns the number of texts. Ids may differ if their `scores` have the same sum,
    because rounding breaks such ties."""
    given = model.with_suffix(".json")
    given.write_text(json.dumps(texts))
    ours = json.loads(expect(run("tokenize", model, "--texts", given, *flags, timeout=300), 0).stdout)["ids"]
    other = theirs(model, texts, *flags)
    differ = [(text, a, b) for text, a, b in zip(texts, ours, other) if a != b and not (
        scores and abs(sum(scores[i] for i in a) - sum(scores[i] for i in b)) < 1e-4)]
    assert not differ, f"{model.name}: {len(differ)} of {len(texts)} differ, e.g. " + "; ".join(
        f"{ascii(text)}: {a}, llama.cpp {b}" for text, a, b in sorted(differ, key=lambda each: len(each[0]))[:2])
    return len(texts)


def test_pre_tokenizers(folder):
    tokens, merges, types = made.byte_bpe()
    listed = [name for row in rows() for name in row if name not in NOT_BYTES]
    assert len(listed) > 60, listed
    texts = made.texts(1, TEXTS)

    def one(name):
        model = folder / f"{name}.gguf"
        model.write_bytes(gguf_wire.model(made.gguf("gpt2", tokens, types, merges=merges, pre=name), {}))
        return compare(model, texts)

    counts = parallel(one, listed)
    print(f"# pre-tokenizers against llama.cpp: {len(counts)} names, {sum(counts)} texts")


def test_categories(folder):
    """Tests every pre-tokenizer on characters of every general category, with a vocabulary that makes each split visible.
    llama.cpp is the reference."""
    tokens, merges, types = made.byte_pairs()
    listed = [row[0] for row in rows() if row[0] not in NOT_BYTES]
    texts = made.categories(5, 5 * TEXTS)

    def one(name):
        model = folder / f"{name}.gguf"
        model.write_bytes(gguf_wire.model(made.gguf("gpt2", tokens, types, merges=merges, pre=name), {}))
        return compare(model, texts)

    counts = parallel(one, listed)
    print(f"# pre-tokenizers against llama.cpp, all categories: {len(counts)} rows, {sum(counts)} texts")


def test_corpus(folder):
    """Tests the vocabularies of the corpus, with and without special tokens. llama.cpp is the reference."""
    places = sorted((CORPUS / "tokenizers").glob("*.gguf"))
    if not places:
        print("# real vocabularies against llama.cpp: skipped, there is no corpus")
        return
    texts = made.texts(2, TEXTS)
    special = [f"{text}{token} {text}" for text in texts[:40] for token in ("<s>", "</s>", "<|endoftext|>", "[SEP]", "<unk>")]
    count = 0
    for place in places:
        model = folder / place.name
        model.write_bytes(place.read_bytes())
        count += compare(model, texts) + compare(model, special, "--special")
    print(f"# real vocabularies against llama.cpp: {len(places)} files, {count} texts")


def test_word_piece(folder):
    tokens, types = made.word_piece()
    ids = {"bos_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1, "padding_token_id": 0, "mask_token_id": 4}
    count = 0
    for lowercase in (True, False):
        model = folder / f"bert{lowercase}.gguf"
        keys = ids | {"normalizer.lowercase": lowercase}
        model.write_bytes(gguf_wire.model(made.gguf("bert", tokens, types, **keys), {}))
        count += compare(model, made.texts(3, TEXTS))
    print(f"# WordPiece against llama.cpp: {count} texts")


def test_sentencepiece(folder):
    try:
        import sentencepiece  # noqa: F401
    except ImportError:
        print("# SentencePiece's models against llama.cpp: skipped, scripts/setup --dev installs python3-sentencepiece")
        return
    count = 0
    for kind, options in (("bpe", {"byte_fallback": True, "vocabulary": 700}), ("unigram", {}),
                          ("unigram", {"remove_extra_whitespaces": False, "user_defined_symbols": ["<sep>", "the"]}),
                          ("unigram", {"add_dummy_prefix": False})):
        path = made.sentencepiece_model(folder, kind, **options)
        model = folder / f"{kind}{count}.gguf"
        metadata = made.sentencepiece_gguf(path)
        model.write_bytes(gguf_wire.model(metadata, {}))
        count += compare(model, made.texts(4, TEXTS) + ["a<sep>b", "<sep> the <se", "the<sep>the"],
                         scores=metadata["tokenizer.ggml.scores"] if kind == "unigram" else None)
    print(f"# SentencePiece's models against llama.cpp: {count} texts")


if __name__ == "__main__":
    if not LIBRARIES:
        print("# tokenizers against llama.cpp: skipped, LLAMA_DIR does not name a folder with node-llama-cpp")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "tokenizers against llama.cpp"))
