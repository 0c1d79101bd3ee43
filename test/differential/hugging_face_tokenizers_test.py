#!/usr/bin/env python3
"""Models, normalizers and pre-tokenizers of tokenizer.json against Hugging Face's own library.

TOKENIZERS_DIR names the folder in which `npm install @anush008/tokenizers` put it. Where there is none, nothing is compared.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tokenizer_files as made
from driver import SKIPPED, expect, run, run_tests

FOLDER = os.environ.get("TOKENIZERS_DIR", "")
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = LEVEL | {"use_regex": False}
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
ENDING = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + ENDING
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS +
         r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS +
         r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + ENDING)


def split(expression, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert}


def sequence(*parts, of="pretokenizers"):
    return {"type": "Sequence", of: list(parts)}


def metaspace(scheme, cut=True):
    return {"type": "Metaspace", "replacement": made.SPACE, "prepend_scheme": scheme, "split": cut}


def document(model, normalizer, pre_tokenizer, added=()):
    return {"version": "1.0", "added_tokens": [
        {"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} |
        flags for i, text, flags in added], "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": None,
        "decoder": None, "model": model}


def cases():
    tokens, merges, _ = made.byte_bpe(400, ())
    level = {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [" ".join(pair) for pair in merges]}
    added = [(len(tokens), "zz", {"single_word": True, "lstrip": True}), (len(tokens) + 1, "<|x|>", {"rstrip": True})]
    for name, normalizer, cut in (
            ("gpt2", None, LEVEL), ("prefix", None, LEVEL | {"add_prefix_space": True}),
            ("nfc", {"type": "NFC"}, sequence(split(QWEN), BYTES)), ("nfkc", {"type": "NFKC"}, sequence(split(GPT4O), BYTES)),
            ("digits", None, sequence({"type": "Digits", "individual_digits": True}, LEVEL)),
            ("contiguous", None, sequence({"type": "Digits", "individual_digits": False},
                                          {"type": "Punctuation", "behavior": "Contiguous"}, LEVEL)),
            ("previous", None, sequence(split("[aeiou]+", "MergedWithPrevious"), BYTES)),
            ("next", None, sequence(split("[aeiou]", "MergedWithNext"), BYTES)),
            ("removed", None, sequence(split(r"\s+", "Removed"), BYTES)), ("inverted", None, sequence(split(r"\w+", "Removed", True), BYTES)),
            ("thousands", None, sequence(split(r"\d{1,3}(?=(?:\d{3})*\b)"), LEVEL)),
            ("zero", None, sequence(split(r"(?=(\d{3})+(?!\d))"), BYTES))):
        yield name, document(level, normalizer, cut, added)
    words, kinds = made.word_piece()
    vocabulary = {(word[1:] if word[0] == made.SPACE else word if kind == made.CONTROL else "##" + word): i
                  for i, (word, kind) in enumerate(zip(words, kinds))}
    pieces = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
              "vocab": vocabulary}
    accents = sequence({"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}, of="normalizers")
    for name, normalizer, cut in (("bert", BERT, {"type": "BertPreTokenizer"}),
                                  ("cased", BERT | {"lowercase": False}, {"type": "BertPreTokenizer"}),
                                  ("accents", accents, {"type": "Whitespace"}),
                                  ("spaces", BERT, sequence({"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}))):
        yield name, document(pieces, normalizer, cut)
    dice = random.Random(3)
    mixed = (made.ENGLISH + made.SCRIPTS).replace(" ", made.SPACE)
    pairs = made.learn_merges(list(mixed), 200)
    letters = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *dict.fromkeys(mixed), *(a + b for a, b in pairs)]
    letters = list(dict.fromkeys(letters))
    spm = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "merges": [list(pair) for pair in pairs],
           "vocab": {letter: i for i, letter in enumerate(letters)}}
    prepended = sequence({"type": "Prepend", "prepend": made.SPACE},
                         {"type": "Replace", "pattern": {"String": " "}, "content": made.SPACE}, of="normalizers")
    yield "llama", document(spm, prepended, None, [(0, "<unk>", {})])
    yield "llama_first", document(spm, None, metaspace("first", False), [(0, "<unk>", {})])
    scored = [[letter, -dice.randrange(3000, 14000) / 1024 if i > 256 else -20.0] for i, letter in enumerate(letters)]
    unigram = {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": scored}
    spaces = sequence({"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, of="normalizers")
    yield "unigram", document(unigram, spaces, metaspace("always"), [(0, "<unk>", {})])
    yield "unigram_never", document(unigram, None, sequence({"type": "WhitespaceSplit"}, metaspace("never")), [(0, "<unk>", {})])
    yield "unigram_bytes", document(unigram | {"byte_fallback": True}, None, metaspace("first"), [(0, "<unk>", {})])


def test_cases(folder):
    texts = made.texts(11, int(os.environ.get("MLC_TOKENIZER_TEXTS", "1500"))) + [
        "zz cat", "on zz mat zz", "ozz zz,", "a <|x|>  b<|x|>", "12345678", "1234567 89", "x1234y12"]
    # Oniguruma is of two minds about these: \w in a class and \w by itself.
    texts = [text for text in texts if not set(text) & set("½²¹³¼¾")]
    # Its tables are of several versions of Unicode.
    old = unicodedata.ucd_3_2_0.category
    texts = [text for text in texts if all(old(c) == unicodedata.category(c) != "Cn" for c in text)]
    listed = list(cases())
    (folder / "texts.json").write_text(json.dumps(texts))
    for name, content in listed:
        (folder / f"{name}.json").write_text(json.dumps(content))
    asked = json.dumps([[str(folder / f"{name}.json"), texts] for name, _ in listed])
    done = subprocess.run(["node", pathlib.Path(__file__).with_name("tokenizers_batch.mjs"), FOLDER], input=asked,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-800:]
    wrong = []
    for (name, _), theirs in zip(listed, json.loads(done.stdout), strict=True):
        ours = expect(run("tokenize", folder / f"{name}.json", "--texts", folder / "texts.json", "--special"), 0).answer["ids"]
        differ = [(text, a, b) for text, a, b in zip(texts, ours, theirs, strict=True) if a != b]
        wrong += [f"{name}: {len(differ)} of {len(texts)}, e.g. " + "; ".join(
            f"{ascii(text)}: {a}, theirs {b}" for text, a, b in sorted(differ, key=lambda each: len(each[0]))[:2])] if differ else []
    assert not wrong, "\n".join(wrong)
    print(f"# tokenizer.json against Hugging Face's tokenizers: {len(listed)} tokenizers, {len(listed) * len(texts)} texts")


if __name__ == "__main__":
    if not FOLDER:
        print("# tokenizer.json against Hugging Face's tokenizers: skipped, TOKENIZERS_DIR names no folder with it")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "tokenizer.json against Hugging Face's tokenizers"))
