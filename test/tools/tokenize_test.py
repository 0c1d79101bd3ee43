#!/usr/bin/env python3
"""Tests `mlc tokenize`: ids for GGUF vocabularies and tokenizer.json, and texts for ids.

Expected ids are llama.cpp's, which are stored with the vocabularies of the corpus; SentencePiece's for models that are trained
here; and for the small vocabularies below, those derived in the comments.
"""
import json
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gguf_wire
import tokenizer_files as made
from driver import CORPUS, expect, parallel, run, run_tests

SPACE = made.SPACE


def write(folder, name, metadata):
    (folder / name).write_bytes(gguf_wire.model(metadata, {}))
    return folder / name


def ids_of(model, text, *flags):
    return expect(run("tokenize", model, "--text", text, "--json", *flags), 0).answer["ids"]


def ids_of_all(folder, model, texts, *flags):
    given = folder / f"{pathlib.Path(model).stem}{len(flags)}.texts.json"
    given.write_text(json.dumps(texts))
    return expect(run("tokenize", model, "--texts", given, *flags), 0).answer["ids"]


def text_of(model, ids, *flags):
    listed = ",".join(map(str, ids))
    return expect(run("tokenize", model, "--decode", listed, "--json", *flags), 0).answer["text"]


def spm(**keys):
    """Merges "▁ab" by scores: "ab" (-1) is merged before "▁a" (-2)."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *bytes_, SPACE, "a", "b", "ab", SPACE + "a", SPACE + "ab", "<|x|>"]
    types = [2, 3, 3, *[6] * 256, 1, 1, 1, 1, 1, 1, 4]
    scores = [0, 0, 0, *[0] * 256, -9, -9, -9, -1, -2, -3, 0]
    return made.gguf("llama", tokens, types, scores, **keys)


def test_spm(folder):
    model = write(folder, "spm.gguf", spm())
    space, a, b, ab, space_a, space_ab, added = range(259, 266)
    cases = {"ab": [space_ab], "a": [space_a], "b": [space, b], "": [], "aab": [space_a, ab],
             "a<|x|>b": [space_a, added, space, b],  # user-defined tokens are matched first; a space is added to the text after one
             "\n": [space, 3 + 10], "é": [space, 3 + 0xc3, 3 + 0xa9], " a": [space, space_a]}
    for text, expected in cases.items():
        assert ids_of(model, text) == expected, (text, ids_of(model, text), expected)
        assert text_of(model, expected) == text, (text, text_of(model, expected))
    assert ids_of(model, "</s>a") != ids_of(model, "</s>a", "--special") == [2, space_a]
    assert ids_of(model, "a", "--add-special") == [1, space_a]
    assert text_of(model, [1, space_a]) == "a" and text_of(model, [1, space_a], "--special") == "<s>a"
    shown = expect(run("tokenize", model, "--text", "a\né"), 0).stdout.split("\n")
    assert [line.split() for line in shown if line] == [
        ["263", '"', 'a"'], ["13", '"\\n"'], ["198", '"<0xC3>"'], ["172", '"<0xA9>"']], shown


def test_byte_bpe(folder):
    """Merges are applied in order: "l l" before "e l", so "hell" becomes h e ll."""
    table = list(made.gpt2_characters().values())
    tokens = [*table, "ll", "el", "he", "hell", "Ġa", "<|end|>"]
    merges = [("l", "l"), ("e", "l"), ("h", "e"), ("he", "ll"), ("Ġ", "a")]
    types = [1] * (len(tokens) - 1) + [3]
    ll, el, he, hell, space_a = range(256, 261)
    byte = {chr(i): table.index(chr(i)) for i in range(33, 127)}
    for pre, expected in (("gpt-2", [byte["1"], byte["2"], space_a, hell]), ("llama-bpe", [byte["1"], byte["2"], space_a, hell])):
        model = write(folder, f"{pre}.gguf", made.gguf("gpt2", tokens, types, merges=merges, pre=pre))
        assert ids_of(model, "12 ahell"[:4]) == expected[:3], ids_of(model, "12 a")
        assert ids_of(model, "hell") == [hell] and ids_of(model, "ell") == [byte["e"], ll]
        for text in ("é\n\x01 🙂", "hell  a", "\r\n"):
            assert text_of(model, ids_of(model, text)) == text
        assert ids_of(model, "hell<|end|>", "--special") == [hell, 261] and len(ids_of(model, "<|end|>")) == 7


def test_unigram(folder):
    """Maximizes the sum of scores: "ab" + "c" (-3) is better than "a" + "bc" (-5); an unknown character costs ten more than the
    worst token."""
    tokens = ["<pad>", "</s>", "<unk>", SPACE, "a", "ab", "bc", "c", SPACE + "a"]
    model = write(folder, "t5.gguf", made.gguf("t5", tokens, [3, 3, 2, 1, 1, 1, 1, 1, 1], [0, 0, 0, -2, -2, -1, -3, -2, -9],
                                               remove_extra_whitespaces=True))
    assert ids_of(model, "abc") == [3, 5, 7] and ids_of(model, "  abc  a ") == [3, 5, 7, 3, 4]
    assert ids_of(model, "axya") == [3, 4, 2, 4]  # consecutive unknown characters become one token
    assert ids_of(model, "a", "--add-special") == [3, 4, 1]
    assert text_of(model, [3, 5, 7, 3, 4]) == "abc a"


def test_word_piece(folder):
    tokens, types = made.word_piece()
    model = write(folder, "bert.gguf", made.gguf("bert", tokens, types, bos_token_id=2, seperator_token_id=3, unknown_token_id=1))
    at = {token: index for index, token in enumerate(tokens)}
    assert ids_of(model, "The WORST, Éa") == [at[SPACE + "the"], at[SPACE + "worst"], at[SPACE + ","], at[SPACE + "e"], at["a"]]
    assert ids_of(model, "it", "--add-special") == [2, at[SPACE + "it"], 3]
    assert ids_of(model, "it \ue000 \u4e01") == [at[SPACE + "it"], 1], "no such word, and what controls is nothing"
    assert text_of(model, ids_of(model, "it was the best, the worst.")) == "it was the best, the worst."


def tokenizer_json(**parts):
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
            "decoder": None, "model": None} | parts


def bpe_json(**parts):
    tokens, merges, _ = made.byte_bpe(60, ())
    vocabulary = {token: index for index, token in enumerate(tokens)}
    added = [{"id": len(tokens) + i, "content": text, "special": text.startswith("<"), "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False} for i, text in enumerate(("<s>", "</s>", "@@"))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": True}
    model = {"type": "BPE", "vocab": vocabulary, "merges": [" ".join(pair) for pair in merges]}
    return tokens, tokenizer_json(**({"model": model, "added_tokens": added, "pre_tokenizer": level, "decoder": level} | parts))


def test_hugging_face(folder):
    """The same vocabulary and splits give the same ids as in GGUF; also templates, special tokens and a chat template."""
    tokens, document = bpe_json()
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}},
                                                         {"SpecialToken": {"id": "</s>"}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [len(tokens)]}, "</s>": {"id": "</s>", "ids": [len(tokens) + 1]}}}
    model = folder / "model"
    model.mkdir()
    (model / "tokenizer.json").write_text(json.dumps(document | {"post_processor": template}))
    (model / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}}))
    _, merges, types = made.byte_bpe(60, ())
    gguf = write(folder, "same.gguf", made.gguf("gpt2", tokens, types, merges=merges, pre="gpt-2"))
    texts = [text for text in made.texts(5, 200) if "@@" not in text]
    ours = ids_of_all(folder, model, texts)
    assert ours == ids_of_all(folder, gguf, texts)
    assert ids_of_all(folder, model / "tokenizer.json", texts) == ours
    assert ids_of(model, "a", "--add-special") == [len(tokens), tokens.index("a"), len(tokens) + 1]
    assert ids_of(model, "a@@</s>") != ids_of(model, "a@@</s>", "--special") == [
        tokens.index("a"), len(tokens) + 2, len(tokens) + 1]
    for text, ids in list(zip(texts, ours))[:20]:
        assert text_of(model, ids) == text


def few(added=(), **model):
    """A vocabulary of three tokens, in which every step is visible."""
    return tokenizer_json(model={"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]} | model, added_tokens=list(added))


def templated(*parts):
    return few() | {"post_processor": {"type": "TemplateProcessing", "single": [
        {"Sequence": {"id": part}} if part in "AB" else {"SpecialToken": {"id": part}} for part in parts],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [999]}}}}


def test_odd(folder):
    """Unusual documents accepted by Hugging Face's library, with its ids: the last of equal merges, version lines, gaps in the ids."""
    cases = {
        "repeated": (few(vocab={"a": 0, "b": 1, "ab": 2, "bb": 3}, merges=["a b", "b b", "a b"]), {"abb": [0, 3]}),
        "version": (few(merges=["#version: 0.2", "a b"]), {"ab": [2]}),
        "hole": (few(vocab={"a": 0, "b": 7, "ab": 5}), {"aab": [0, 5]}),
        "empty": (few() | {"pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}},
                  {"aab": [0, 0, 1]}),
        "dotted": (few([{"id": 3, "content": "i\u0307", "normalized": False}]) | {"normalizer": {"type": "Lowercase"}}, {"aİ": [0]}),
    }
    for name, (content, texts) in cases.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content))
        for text, ids in texts.items():
            assert ids_of(path, text) == ids, (name, text, ids_of(path, text), ids)


def test_switches(folder):
    """Some classes of transformers rebuild their template from add_bos_token and add_eos_token; others use the one in the file."""
    document = few([{"id": 3, "content": "<s>"}, {"id": 4, "content": "</s>"}])
    template = templated("<s>", "A")["post_processor"]
    template["special_tokens"]["<s>"]["ids"] = [3]
    for number, (kind, switches, processor, ids) in enumerate((
            ("LlamaTokenizerFast", {"add_bos_token": True}, None, [3, 2]), ("LlamaTokenizer", {"add_eos_token": True}, None, [2, 4]),
            ("GemmaTokenizer", {"add_bos_token": True, "add_eos_token": True}, None, [3, 2, 4]),
            ("LlamaTokenizerFast", {"add_bos_token": False}, template, [2]), ("LlamaTokenizerFast", {}, template, [3, 2]),
            ("PreTrainedTokenizerFast", {"add_bos_token": True}, None, [2]),
            ("PreTrainedTokenizerFast", {"add_bos_token": False}, template, [3, 2]))):
        model = folder / str(number)
        model.mkdir()
        (model / "tokenizer.json").write_text(json.dumps(document | {"post_processor": processor}))
        (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, "bos_token": "<s>", "eos_token": "</s>"} | switches))
        found = ids_of(model, "ab", "--add-special")
        assert found == ids, (kind, switches, found, ids)


def test_refusals(folder):
    """Errors name unsupported features; damaged files are errors."""
    tokens, merges, types = made.byte_bpe(5)
    good = made.gguf("gpt2", tokens, types, merges=merges, pre="gpt-2")
    space = {"type": "Metaspace", "replacement": SPACE}
    _, document = bpe_json()
    files = {
        "pre.gguf": (good | {"tokenizer.ggml.pre": "nobody"}, "unsupported-tokenizer", '"nobody"', "qwen2, "),
        "model.gguf": (good | {"tokenizer.ggml.model": "rwkv"}, "unsupported-tokenizer", '"rwkv"'),
        "none.gguf": ({"general.architecture": "llama"}, "unsupported-tokenizer", "the file has no tokenizer"),
        "types.gguf": (good | {"tokenizer.ggml.token_type": good["tokenizer.ggml.token_type"][:9]}, "bad-file", "9 types"),
        "merges.gguf": ({key: value for key, value in good.items() if "merges" not in key}, "bad-file", "tokenizer.ggml.merges"),
        "normalizer.json": (document | {"normalizer": {"type": "Nmt"}}, "unsupported-tokenizer", '"Nmt"'),
        "pre.json": (document | {"pre_tokenizer": {"type": "UnicodeScripts"}}, "unsupported-tokenizer", '"UnicodeScripts"'),
        "level.json": (document | {"model": {"type": "WordLevel", "vocab": {}}}, "unsupported-tokenizer", '"WordLevel"'),
        "split.json": (document | {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\p{Nope}"}}}, "unsupported-tokenizer",
                       "\\p{Nope}", "Nope"),
        "paren.json": (document | {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}}}, "unsupported-tokenizer", "(a"),
        "post.json": (document | {"post_processor": {"type": "Other"}}, "unsupported-tokenizer", '"Other"'),
        "decoder.json": (document | {"decoder": {"type": "CTC"}}, "unsupported-tokenizer", '"CTC"'),
        "id.json": (document | {"model": {"type": "BPE", "vocab": {"a": 1 << 40}, "merges": []}}, "bad-file", '"a"'),
        "unigram.json": (document | {"model": {"type": "Unigram", "vocab": [["a", "b"]]}, "pre_tokenizer": space}, "bad-file"),
        "numbers.json": (few(vocab={"a": 0, "b": 0}), "bad-file", '"a"', '"b"', "the same id, 0"),
        "merge.json": (few(merges=["a x"]), "bad-file", '"a" and "x" needs the token "x"'),
        "merged.json": (few(merges=["b a"]), "bad-file", 'needs the token "ba"'),
        "unknown.json": (few(unk_token="nobody"), "bad-file", '"model.unk_token" is "nobody"'),
        "added.json": (few([{"id": 9, "content": "x"}]), "bad-file", 'the added token "x" has the id 9', "expected: 3"),
        "known.json": (few([{"id": 3, "content": "ab"}]), "bad-file", 'the added token "ab" has the id 3', "expected: 2"),
        "gone.json": (few([{"id": 3, "content": " ", "normalized": True}]) | {
            "normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}}, "bad-file", 'added token " " is empty'),
        "words.json": (document | {"pre_tokenizer": None, "added_tokens": [], "decoder": None, "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "vocab": {"a": 0}}}, "bad-file", '"model.unk_token" is "[UNK]"'),
        "unk_id.json": (document | {"pre_tokenizer": None, "added_tokens": [], "decoder": None, "model": {
            "type": "Unigram", "unk_id": 7, "vocab": [["a", -1.0]]}}, "bad-file", '"model.unk_id" is 7'),
        "no_unk.json": (document | {"pre_tokenizer": None, "added_tokens": [], "decoder": None, "model": {
            "type": "Unigram", "vocab": [["b", -1.0]]}}, "bad-file", 'no token for "a"', "unk_id"),
        "twice.json": (templated("A", "A"), "unsupported-tokenizer", "the text more than once"),
        "textless.json": (templated("<s>"), "unsupported-tokenizer", "a template without the text"),
        "templates.json": (few() | {"post_processor": {"type": "Sequence", "processors": 2 * [templated("A")["post_processor"]]}},
                           "unsupported-tokenizer", "two templates"),
        "second.json": (templated("B"), "bad-file", 'the text "B"'),
        "far.json": (templated("A", "<s>"), "bad-file", "token 999"),
        "array.json": ([1], "unsupported-tokenizer"),
    }
    for name, (content, error, *texts) in files.items():
        if name.endswith(".gguf"):
            path = write(folder, name, content)
        else:
            path = folder / name
            path.write_text(json.dumps(content))
        expect(run("tokenize", path, "--text", "a"), 1, *([f"error[{error}]"] if name != "array.json" else []), *texts)
    model = write(folder, "good.gguf", good)
    for number in (-1, len(tokens), 1 << 30):
        expect(run("tokenize", model, f"--decode={number}"), 1, f"token {number} is not in the vocabulary", f"0 to {len(tokens) - 1}")
    expect(run("tokenize", model, "--decode", "1,x"), 2, '"x" is not a token id')
    expect(run("tokenize", model, "--decode", str(1 << 40)), 2, "is not a token id")
    expect(run("tokenize", model), 2, "one of --text")
    expect(run("tokenize", model, "--text", "a", "--decode", "1"), 2, "several texts or tokens given")
    (folder / "empty").mkdir()
    expect(run("tokenize", folder / "empty", "--text", "a"), 1)


def test_bytes(folder):
    """A file is read as bytes; invalid UTF-8 is not an error."""
    tokens, merges, types = made.byte_bpe()
    models = [write(folder, "bpe.gguf", made.gguf("gpt2", tokens, types, merges=merges, pre="gpt-2")), write(folder, "spm.gguf", spm())]
    dice = random.Random(3)
    inputs = [b"\0a\0", b"a\n", b"a\n\n", b"\xff", b"\xe4a", b"\xf0\x9f\x99", b"\xed\xa0\x80", b"\xc0\x80"]
    inputs += [bytes(dice.randrange(256) for _ in range(30)) for _ in range(20)]
    for model in models:
        for data in inputs:
            (folder / "text").write_bytes(data)
            ids = expect(run("tokenize", model, "--file", folder / "text", "--json"), 0).answer["ids"]
            out = expect(run("tokenize", model, "--decode", ",".join(map(str, ids))), 0).stdout
            if model.stem == "bpe" and b"\xff" not in data:
                replaced = data.decode("utf-8", "replace") + "\n"
                assert out.replace("\ufffd", "") == replaced.replace("\ufffd", ""), (data, out)


def test_hostile(folder):
    """A long text of one letter, of spaces or of digits does not take quadratic time with any kind of tokenizer."""
    tokens, merges, types = made.byte_bpe()
    models = [write(folder, f"{pre}.gguf", made.gguf("gpt2", tokens, types, merges=merges, pre=pre))
              for pre in ("gpt-2", "deepseek-llm", "tekken", "tiny_aya", "superbpe", "exaone-moe", "jais-2", "bloom",
                          "granite-embed-multi-97m")]
    models += [write(folder, "spm.gguf", spm())]
    tokens, types = made.word_piece()
    models += [write(folder, "bert.gguf", made.gguf("bert", tokens, types, unknown_token_id=1))]
    size = int(os.environ.get("MLC_HOSTILE_BYTES", 1 << 18))
    texts = {"a": b"a" * size, "space": b" " * size + b"a", "digits": b"7" * size, "lines": b"\n" * size, "letters": b"A b " * (size // 4),
             "marks": "e\u0301".encode() * (size // 3), "han": "中".encode() * (size // 3), "bad": b"\xff" * size}
    for name, data in texts.items():
        (folder / name).write_bytes(data)

    def one(case):
        model, name = case
        return expect(run("tokenize", model, "--file", folder / name, "--json", timeout=15 + size // 20000), 0).peak_bytes

    peaks = parallel(one, [(model, name) for model in models for name in texts])
    print(f"# {len(peaks)} hostile texts of {size >> 10} KiB, at most {max(peaks) >> 20} MiB")


def test_sentencepiece(folder):
    """Compares ids with SentencePiece's, for models that it trained."""
    try:
        import sentencepiece
    except ImportError:
        print("# SentencePiece's own ids: skipped, scripts/setup --dev installs python3-sentencepiece")
        return
    count = 0
    for kind, options in (("unigram", {}), ("unigram", {"add_dummy_prefix": False, "remove_extra_whitespaces": False}),
                          ("unigram", {"user_defined_symbols": ["<sep>"], "normalization_rule_name": "nfkc_cf"}), ("bpe", {"vocabulary": 300}),
                          ("bpe", {"byte_fallback": True, "vocabulary": 600, "normalization_rule_name": "identity",
                                   "remove_extra_whitespaces": False})):
        path = made.sentencepiece_model(folder, kind, **options)
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        model = write(folder, f"{kind}{count}.gguf", made.sentencepiece_gguf(path))
        # GGUF's "llama" vocabulary lacks normalization rules (llama.cpp does not normalize it), so these texts need none.
        texts = [text for text in made.texts(6, 400) if text.isprintable() and "\u180e" not in text and SPACE not in text]
        if kind == "bpe" and "byte_fallback" not in options:
            words = set(made.ENGLISH + made.SCRIPTS)
            texts = [text for text in texts if text.isascii() and set(text) <= words and " ".join(text.split()) == text]
        ours = ids_of_all(folder, model, texts)
        wrong = [(text, ids, processor.encode(text)) for text, ids in zip(texts, ours) if ids != processor.encode(text)]
        assert not wrong, f"{kind} {options}: {len(wrong)} of {len(texts)}, e.g. {wrong[:3]}"
        count += len(texts)
    assert count > 500, count
    print(f"# SentencePiece's own ids: {count} texts")


def test_corpus(folder):
    """Compares ids with llama.cpp's, for all strings at once and for some individually, and decodes them."""
    places = sorted((CORPUS / "tokenizers").glob("*.gguf"))
    if not places:
        print("# llama.cpp's ids: skipped, there is no corpus")
        return
    strings = alone = back = 0
    for place in places:
        cases = json.loads(place.with_suffix(".json").read_text())["cases"]
        texts = [case["text"] for case in cases]
        for flags, key in (((), "ids"), (("--special",), "special")):
            for case, ids in zip(cases, ids_of_all(folder, place, texts, *flags), strict=True):
                assert ids == case.get(key, case["ids"]), (place.name, case["text"], ids, case)
        strings += len(texts)
        picked = [case for i, case in enumerate(cases) if i % 40 == 0 or case["text"][:1] in ("-", "[", "@", '"') or "\0" in case["text"]]

        def one(case):
            name = folder / f"{place.stem}{cases.index(case)}.txt"
            name.write_bytes(case["text"].encode())
            assert expect(run("tokenize", place, "--file", name, "--json"), 0).answer["ids"] == case["ids"], case["text"]
            if "\0" not in case["text"]:
                assert ids_of(place, case["text"]) == case["ids"], case["text"]
            if place.stem != "bert-bge":  # bert-bge does not preserve case and spaces
                assert text_of(place, case["ids"]) == case["text"], (place.name, case["text"])
                assert text_of(place, case.get("special", case["ids"]), "--special") == case["text"] or "special" in case
            return 1

        alone += sum(parallel(one, picked))
        back += place.stem != "bert-bge"
    print(f"# llama.cpp's ids: {len(places)} vocabularies, {strings} strings, {alone} of them one by one, {back} vocabularies back")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc tokenize"))
