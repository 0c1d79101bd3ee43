"""A tokenizer with a word for each token, for the tiny folders of tests."""
import json

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tokenizer(folder, special, count, around=((), ())):
    """Writes a tokenizer with a word for each token, but for those of `special` {id: text}, of which `around` a text are added. Texts in
    "<|0.02|>" are no special tokens, as Whisper's times. Returns the words."""
    words = [special.get(i, "▁" + LETTERS[i // 26] + LETTERS[i % 26]) for i in range(count)]
    before, behind = ([{"SpecialToken": {"id": words[i], "type_id": 0}} for i in ids] for ids in around)
    added = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": not text.startswith("<|") or not text[2].isdigit()} for i, text in special.items()]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "added_tokens": added,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {"type": "TemplateProcessing", "single": before + [{"Sequence": {"id": "A", "type_id": 0}}] + behind, "pair": [],
                           "special_tokens": {words[i]: {"id": words[i], "ids": [i], "tokens": [words[i]]} for ids in around for i in ids}},
        "model": {"type": "Unigram", "unk_id": min(special), "byte_fallback": False, "vocab": [[word, 0.0 if i in special else -1.0]
                                                                                          for i, word in enumerate(words)]}}))
    (folder / "tokenizer_config.json").write_text("{}")
    return words
