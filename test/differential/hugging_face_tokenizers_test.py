#!/usr/bin/env python3
"""Compares models, normalizers and pre-tokenizers of tokenizer.json with Hugging Face's library.

TOKENIZERS_DIR is the folder in which `npm install @anush008/tokenizers` was run. Without it, nothing is compared.
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


def level():
    """Returns (number of tokens, a byte-level model in GPT-2's representation)."""
    tokens, merges, _ = made.byte_bpe(400, ())
    return len(tokens), {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [" ".join(pair) for pair in merges]}


def cases():
    count, bytes_ = level()
    added = [(count, "zz", {"single_word": True, "lstrip": True}), (count + 1, "<|x|>", {"rstrip": True})]
    for name, normalizer, cut in (
            ("gpt2", None, LEVEL), ("prefix", None, LEVEL | {"add_prefix_space": True}),
            ("lowercase", {"type": "Lowercase"}, LEVEL), ("nfkd", {"type": "NFKD"}, LEVEL),
            ("stripped", {"type": "StripAccents"}, LEVEL), ("nfc", {"type": "NFC"}, sequence(split(QWEN), BYTES)), ("nfkc", {"type": "NFKC"}, sequence(split(GPT4O), BYTES)),
            ("digits", None, sequence({"type": "Digits", "individual_digits": True}, LEVEL)),
            ("contiguous", None, sequence({"type": "Digits", "individual_digits": False},
                                          {"type": "Punctuation", "behavior": "Contiguous"}, LEVEL)),
            ("previous", None, sequence(split("[aeiou]+", "MergedWithPrevious"), BYTES)),
            ("next", None, sequence(split("[aeiou]", "MergedWithNext"), BYTES)),
            ("removed", None, sequence(split(r"\s+", "Removed"), BYTES)), ("inverted", None, sequence(split(r"\w+", "Removed", True), BYTES)),
            ("thousands", None, sequence(split(r"\d{1,3}(?=(?:\d{3})*\b)"), LEVEL)),
            ("zero", None, sequence(split(r"(?=(\d{3})+(?!\d))"), BYTES))):
        yield name, document(bytes_, normalizer, cut, added)
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


def ours(folder, name, texts, *flags):
    """Returns mlc's ids, or its error."""
    given = folder / "texts.json"
    given.write_text(json.dumps(texts))
    done = run("tokenize", folder / f"{name}.json", "--texts", given, "--special", *flags, timeout=300)
    return done.answer["ids"] if done.code == 0 else done.stderr


def theirs_of(paths, texts, *flags):
    """Returns the library's ids for each file, its error, or None if it crashes, in which case the file is not compared."""
    asked = json.dumps([[str(path), texts] for path in paths])
    done = subprocess.run(["node", pathlib.Path(__file__).with_name("tokenizers_batch.mjs"), FOLDER, *flags], input=asked,
                          capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        return json.loads(done.stdout)
    assert "panicked" in done.stderr, done.stderr[-800:]
    half = len(paths) // 2
    return theirs_of(paths[:half], texts, *flags) + theirs_of(paths[half:], texts, *flags) if half else [None]


def compare(folder, listed, texts, *flags):
    """Compares (name, document) pairs and returns how many the library refuses. mlc must refuse the same documents and give the
    same ids for all others."""
    for name, content in listed:
        (folder / f"{name}.json").write_text(json.dumps(content))
    wrong, refused = [], 0
    answers = theirs_of([folder / f"{name}.json" for name, _ in listed], texts, *flags)
    for (name, _), theirs in zip(listed, answers, strict=True):
        given = ours(folder, name, texts, *flags)
        if theirs is None:
            continue
        if isinstance(theirs, str) or isinstance(given, str):
            refused += isinstance(theirs, str)
            if not (isinstance(theirs, str) and isinstance(given, str)) or "error[" not in given:
                wrong.append(f"{name}: {given[:200]}; theirs {theirs[:200]}")
            continue
        differ = [(text, a, b) for text, a, b in zip(texts, given, theirs, strict=True) if a != b]
        wrong += [f"{name}: {len(differ)} of {len(texts)}, e.g. " + "; ".join(
            f"{ascii(text)}: {a}, theirs {b}" for text, a, b in sorted(differ, key=lambda each: len(each[0]))[:2])] if differ else []
    assert not wrong, f"{len(wrong)} of {len(listed)} differ:\n" + "\n".join(wrong)
    return refused


def known(texts):
    """Keeps texts whose characters have not changed since Unicode 3.2, because the library uses tables of several versions."""
    old = unicodedata.ucd_3_2_0.category
    return [text for text in texts if all(old(c) == unicodedata.category(c) != "Cn" for c in text)]


def test_added(folder):
    """Tests added tokens, which are matched in the text or in the normalized text, with random flags, on texts made of their
    parts. Hugging Face's library is the reference."""
    dice = random.Random(12)
    pieces = ["ab", "bcd", "bc", "a", "Day", "DAY", "é", "e\u0301", "İ", " x", "x ", "<s>", "<S>", "½", "\u24b6", "Ä", "the", "</s>", "ﬁ",
              made.SPACE + "ab"]
    normalizers = [None, {"type": "Lowercase"}, {"type": "NFC"}, {"type": "NFKD"}, BERT, BERT | {"lowercase": False},
                   sequence({"type": "NFD"}, {"type": "StripAccents"}, of="normalizers"),
                   {"type": "Strip", "strip_left": True, "strip_right": True},
                   {"type": "Replace", "pattern": {"Regex": "[aeiou]"}, "content": "o"}, {"type": "Prepend", "prepend": made.SPACE},
                   sequence({"type": "Prepend", "prepend": made.SPACE},
                            {"type": "Replace", "pattern": {"String": " "}, "content": made.SPACE}, of="normalizers")]
    count, model = level()
    listed = []
    for number in range(60):
        picked = dice.sample(pieces, dice.randint(2, 8))
        new = [text for text in picked if text not in model["vocab"]]
        added = [(model["vocab"].get(text, count + new.index(text) if text in new else None), text, {flag: dice.random() < share for flag, share in (
            ("single_word", 0.3), ("lstrip", 0.3), ("rstrip", 0.3), ("normalized", 0.6), ("special", 0.3))})
            for text in picked]
        listed.append((f"added{number}", document(model, normalizers[number % len(normalizers)],
                                                  LEVEL, added)))
    between = ["", "", " ", "  ", "\u3000", "\n", "b", "B", "1", "_", "\u200d", "\u0301", ".", "½", "\u00a0"]
    texts = known(dict.fromkeys("".join(dice.choice(pieces + between) for _ in range(dice.randint(1, 9))) for _ in range(400)))
    refused = compare(folder, listed, texts)
    print(f"# added tokens against Hugging Face's tokenizers: {len(listed)} lists, {refused} of them refused, {len(listed) * len(texts)} texts")


# Expressions that Oniguruma interprets differently from other engines, or that only it supports.
EXPRESSIONS = [
    "^a", "a$", "^", "$", r"^\s+", r"\s+$", r"\Aa", r"a\z", r"a\Z", r"\h+", r"\H+", r"[\h]+", r"[^\h]", r"\v", r"[\v]", "(?m).+", "(?s).+",
    ".+", "(?m:a.b)", "(?i)the|é", "(?i:ß|ss)", "(?x) a b # c", "a{,2}", "a{2}", "a{,}", "a{2}+", "a{1,3}+", "a{1,2}?", "a++b", "a?+a",
    r"\R", r"\X", r"\O", r"\N+", r"\Ga", r"a\Kb", r"\bthe\b", r"\Bt", r"\y", r"\w+", r"\W+", r"[\w]+", r"[^\W]+", r"\d+", r"\D",
    r"[\S]+", r"[\W\d]", "[a&&b]", "[a-z&&[^aeiou]]+", "[a-c[x-z]]+", r"[\p{L}&&[^a-z]]+", "[^a[b]]", "[[:alpha:]]+", "[[:^alpha:]]+",
    "[[:punct:]]", "[[:word:]]+", r"\p{Han}+", r"\p{^L}+", r"\p{Alnum}+", r"\P{Alpha}", r"\p{IsGreek}", r"\p{Script=Han}", r"\p{Lu}\p{Ll}*",
    r"\p{Letter}", r"\p{Emoji}", r"(?<=a)b", r"(?<!a)b", r"(?<=a|bc)d", r"(?<=a+)b", r"(?>a+)b", r"(?<n>a)\k<n>", r"(a)\1", r"(a)|b\1",
    r"(?:a(?~b)b)", "(?~ab)", r"(?(?=a)ab|c)", r"(?<p>\((?:\g<p>|[^()])*\))", r"\u0061", r"\x61", r"\x{61}", r"\o{141}", r"\141", r"\cA",
    r"\Q.\E", "]", "}", "{", "a{", "a{b", "a{1", "[]a]", "[a", "(a", "a)", "*a", "+", "a**", "a|*", r"\p{Nope}", r"\k<n>", "(?<n", "[b-a]",
    r"[\d-a]", "[a-]", "[-a]", "\\", r"[\]", "", "()", "a||b", "(?:)", r"\/", r"\-", r"\_", r"\é", "(?#c)a", "(?i)[k]", "(?i)İ", "(?i)i\u0307",
    r"(?=(\d{3})+(?!\d))", r"\d{1,3}(?=(?:\d{3})*\b)", r"\s+(?!\S)|\s+", r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}", "x*", "x*?", "(?=a)", r"(?W)\w+",
    r"(?D)\d+", r"(?S)\s+", r"(?P)\w+", r"(?y{g})\X", r"(?y{w})\X", r"\pL", r"\PL+", r"(?U)a+", r"(?P<n>a)", r"(?'n'a)", r"\n", r"\t|\r", r"\e|\a",
    r"(?-m).", r"(?im-x:A.)", r"[[:xdigit:]]+", r"\M-a", r"\C-a", r"[^\n]+|\n+", r"[\x00-\x7f]+", r"[\x{4e00}-\x{9fff}]+", r"[一-龥]+", r"a{0}", r"(a{2}){2}",
]


def test_patterns(folder):
    """Tests every expression as a Split, as an inverted Split and as a Replace, on texts in which each has matches. Hugging
    Face's library is the reference."""
    count, model = level()
    listed = []
    behaviors = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    for number, expression in enumerate(EXPRESSIONS):
        cut = split(expression, behaviors[number % 5], number % 7 == 0)
        listed.append((f"split{number}", document(model, None, sequence(cut, BYTES))))
        replace = {"type": "Replace", "pattern": {"Regex": expression}, "content": "_"}
        listed.append((f"replace{number}", document(model, replace, BYTES)))
    dice = random.Random(13)
    atoms = ["a", "ab", "aaa", "aab", "abc", "b", "bcd", "xyz", "x", "the", "The", "\n", "\r\n", "\r", " ", "\t", "\v", "\f", "\u0085", "\u2028", "1",
             "1234567", "fF09", "é", "e\u0301", "ß", "SS", "İ", "i\u0307", "½²", "٣", "_", "-", ".", "(a(b)c)", "[]", "{", "}", "中文", "かな", "γΓ",
             "\u200d", "\x01", "\x1b\x07", "'s", "K\u212a", "/", "\\", "h", "v"]
    texts = ["", *dict.fromkeys("".join(dice.choices(atoms, k=dice.randint(1, 9))) for _ in range(300))]
    texts = known(texts)
    refused = compare(folder, listed, texts)
    print(f"# expressions against Hugging Face's tokenizers: {len(listed)}, {refused} of them refused, {len(listed) * len(texts)} texts")


def damaged():
    """Returns (name, document) pairs: invalid documents, and unusual valid ones. Documents that only mlc refuses are in
    test/tools/tokenize_test.py: numbers that the library changes, templates that repeat the text, two templates."""
    count, model = level()
    good = document(model, None, LEVEL, [(count, "<s>", {})])
    vocabulary = model["vocab"]

    def bpe(added=(), **changes):
        return document(model | changes, None, LEVEL, added)

    def few(added=(), **changes):  # no byte tokens, so that unknown characters are visible
        return document({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "?": 3}, "merges": ["a b"]} | changes, None, None, added)

    yield "repeated_merge", few(vocab={"a": 0, "b": 1, "ab": 2, "bb": 3}, merges=["a b", "b b", "a b"])
    yield "version_line", few(merges=["#version: 0.2", "a b"])
    for number, merge in enumerate(("a x", "x a", "b a", "a", "a b c", " b", "", ["a"], ["a", "b", "c"], ["b", "a"], 3)):
        yield f"merge{number}", few(merges=[merge])
    for number, unknown in enumerate((None, "", "?", "nobody")):
        yield f"unknown{number}", few(unk_token=unknown)
        yield f"fused{number}", few(unk_token=unknown, fuse_unk=True)
        yield f"bytes{number}", few(unk_token=unknown, byte_fallback=True)
        yield f"level{number}", bpe(unk_token=unknown)
    yield "hole", few(vocab={"a": 0, "b": 7, "ab": 5})
    yield "negative", few(vocab={"a": -1, "b": 1, "ab": 2})
    yield "fraction", few(vocab={"a": 0.5, "b": 1, "ab": 2})
    yield "no_merges", document({"type": "BPE", "vocab": {"a": 0}}, None, None)
    words = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
             "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}
    for number, change in enumerate(({}, {"unk_token": "nobody"}, {"vocab": {"a": 0, "##b": 1}}, {"vocab": {"[UNK]": 0, "a": 4, "##b": 2}})):
        yield f"words{number}", document(words | change, None, {"type": "BertPreTokenizer"})
    yield "words_added", document(words, None, {"type": "BertPreTokenizer"}, [(3, "cab", {"single_word": True}), (4, "##z", {})])
    pieces = {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [["?", -9.0], ["a", -2.0], ["b", -3.0], ["ab", -1.0]]}
    for number, change in enumerate(({}, {"unk_id": 9}, {"unk_id": -1}, {"unk_id": None}, {"unk_id": "?"}, {"vocab": []},
                                     {"vocab": pieces["vocab"] + [["a", -20.0]]}, {"byte_fallback": True},
                                     {"vocab": pieces["vocab"] + [["xy", -90.0]]})):
        yield f"pieces{number}", document(pieces | change, None, None)
    yield "pieces_added", document(pieces, None, None, [(4, "xa", {"single_word": True}), (0, "?", {"single_word": True})])

    def template(*parts, ids=(0,)):
        return good | {"post_processor": {"type": "TemplateProcessing", "single": [
            {"Sequence": {"id": part, "type_id": 0}} if part in "AB" else {"SpecialToken": {"id": part, "type_id": 0}} for part in parts],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": list(ids), "tokens": ["<s>"] * len(ids)}}}}

    for number, parts in enumerate((("<s>", "A"), ("A", "<s>"), ("<s>", "<s>", "A", "<s>"), ("A",))):
        yield f"template{number}", template(*parts)
    yield "template_two", template("<s>", "A", ids=(1, 2))
    yield "template_level", good | {"post_processor": {"type": "Sequence", "processors": [LEVEL, template("<s>", "A")["post_processor"]]}}
    yield "added_known", bpe([(vocabulary["a"], "a", {})])
    yield "added_twice", bpe([(count, "ab", {}), (count, "ab", {"lstrip": True})])


def test_damaged(folder):
    texts = ["", "a", "ab", "abb", "xaby", "a  b", "axb", "axyb", "cab", "cabz", "abzz", "?a", "é", "xa xab", "a a"]
    listed = list(damaged())
    refused = compare(folder, listed, texts, "--add-special")
    print(f"# odd and damaged tokenizer.json against Hugging Face's tokenizers: {len(listed)}, of which both refuse {refused}")


def test_cases(folder):
    texts = made.texts(11, int(os.environ.get("MLC_TOKENIZER_TEXTS", "1500"))) + [
        "zz cat", "on zz mat zz", "ozz zz,", "a <|x|>  b<|x|>", "12345678", "1234567 89", "x1234y12"]
    texts = known(texts)
    listed = list(cases())
    compare(folder, listed, texts)
    print(f"# tokenizer.json against Hugging Face's tokenizers: {len(listed)} tokenizers, {len(listed) * len(texts)} texts")


if __name__ == "__main__":
    if not FOLDER:
        print("# tokenizer.json against Hugging Face's tokenizers: skipped, TOKENIZERS_DIR names no folder with it")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "tokenizer.json against Hugging Face's tokenizers"))
