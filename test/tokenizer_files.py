"""Small vocabularies for tokenizer tests, as GGUF metadata and as tokenizer.json, and difficult texts."""
import collections
import itertools
import random
import unicodedata

import numpy as np

SPACE = "\u2581"
CONTROL, USER_DEFINED, UNUSED, BYTE = 3, 4, 5, 6
ENGLISH = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was
the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness, it was the
spring of hope, it was the winter of despair, we had everything before us, we had nothing before us, we were all going direct
to Heaven, we were all going direct the other way. In short, the period was so far like the present period, that some of its
noisiest authorities insisted on its being received, for good or for evil, in the superlative degree of comparison only."""
SCRIPTS = """Größenmaß über Äpfel. Привет, как дела? Γειά σου Κόσμε. 你好,世界!今天天气。 こんにちは世界、カタカナ。 한국어 문장. שלום עולם.
مرحبا بالعالم. नमस्ते दुनिया। สวัสดีชาวโลก. Xin chào thế giới. é vs e\u0301. 🙂👩\u200d👩\u200d👧 ½ ² Ⅷ ﬁ ™. I'm you're we'll they've he'd IT'S DON'T.
x = [[1,2],[3,4]]; for (int i = 0; i < 1234567; ++i) { a[i] += 3.14159; }  // ok\n\n\t\tif x:\r\n        return None\n"""
# Samples of character classes: letters of each kind, digits, marks, symbols, all sorts of white space, control characters.
LETTERS = list("aZé ñ\n\t'’sSTlLrReEvVmMdDn.,!?0123456789½²Ⅷ٣中文字㐀かなカナｶ한국어ᄒ हिन्दी ไทย العربية עברית🙂👩\r\f\v\x00\x01\x1c\x7f$+<=>^`|~#%&*@\\/-_"
               "()[]{}\"\u200d\u00a0\u3000\u2028\u0085\u0301\u093eſKıİßẞﬁ①\u180e\ufeff\u00ad\u00b5ǅʰªⓐ€¢§。、，！：；…—“”‘")


def texts(seed, count):
    """Returns texts: words, scripts, repeated characters, and adjacent letters of any kinds."""
    dice = random.Random(seed)
    assigned = [chr(code) for code in range(0x20, 0x30000) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]
    words = (ENGLISH + " " + SCRIPTS).split(" ")
    drawn = ["", " ", "  ", "\n", " \n ", "a", SPACE, " a", "a ", "\ufeffa", "\x00", "12345678901", "1 12 123 1234"]
    for _ in range(count):
        kind = dice.randrange(5)
        if kind == 0:
            text = " ".join(dice.choices(words, k=dice.randint(1, 12)))
        elif kind == 1:
            text = "".join(dice.choices(LETTERS, k=dice.randint(1, 40)))
        elif kind == 2:
            text = "".join(dice.choices(assigned, k=dice.randint(1, 20)))
        elif kind == 3:
            text = "".join(dice.choice(LETTERS) * dice.randint(1, 9) for _ in range(dice.randint(1, 8)))
        else:
            text = "".join(dice.choice(["", " ", "  ", "\n"]) + dice.choice(words) for _ in range(dice.randint(1, 6)))
        drawn.append(text)
    return list(dict.fromkeys(drawn))


def gpt2_characters():
    """Returns the characters to which GPT-2 maps bytes (its encoder.py, bytes_to_unicode)."""
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    table, extra = {}, itertools.count(0x100)
    for byte in range(256):
        table[byte] = chr(byte) if byte in printable else chr(next(extra))
    return table


def learn_merges(symbols, count):
    """Learns byte-pair merges from a list of symbols treated as one word, so that merges cross all boundaries."""
    merges = []
    for _ in range(count):
        (left, right), often = collections.Counter(zip(symbols, symbols[1:])).most_common(1)[0]
        if often < 2:
            break
        merges.append((left, right))
        joined, at = [], 0
        while at < len(symbols):
            pair = at + 1 < len(symbols) and symbols[at] == left and symbols[at + 1] == right
            joined.append(left + right if pair else symbols[at])
            at += 2 if pair else 1
        symbols = joined
    return merges


def byte_bpe(merges=400, special=("<|endoftext|>", "<|im_start|>", "<|im_end|>")):
    """Returns (tokens, merges, types) of a byte-level vocabulary whose merges ignore word boundaries, so that they reveal how
    text is split."""
    table = gpt2_characters()
    dice = random.Random(1)
    mixed = ENGLISH + SCRIPTS + "".join(dice.choice(LETTERS) * dice.randint(1, 4) for _ in range(3000))
    pairs = learn_merges([table[byte] for byte in mixed.encode()], merges)
    tokens = list(dict.fromkeys([*table.values(), *(a + b for a, b in pairs)]))
    return tokens + list(special), pairs, [1] * len(tokens) + [CONTROL] * len(special)


def byte_pairs():
    """Returns (tokens, merges, types) of a byte-level vocabulary that merges any two non-ASCII bytes, so that every split is visible."""
    table = gpt2_characters()
    symbols = [table[byte] for byte in [*range(0x80, 0xf5), *b" ab12x!.\r\n"]]
    pairs = list(itertools.product(symbols, symbols))
    random.Random(9).shuffle(pairs)
    tokens = [*table.values(), *(a + b for a, b in pairs)]
    return tokens, pairs, [1] * len(tokens)


def categories(seed, count):
    """Returns texts in which characters of every general category, inside and outside the BMP, are adjacent to characters that
    pre-tokenizers treat specially."""
    dice = random.Random(seed)
    pools = collections.defaultdict(list)
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category not in ("Cn", "Cs"):  # libraries disagree on which code points are assigned
            pools[category, code > 0xffff].append(chr(code))
    pools = list(pools.values()) + [[chr(code) for code in range(0x1d400, 0x1d800)], list(" \u2003\u3000\u2028\r\n")]
    drawn = []
    while len(drawn) < count:
        for pool in pools:
            a, b, other = dice.choice(pool), dice.choice(pool), dice.choice(dice.choice(pools))
            drawn.append(dice.choice((f"a{a}b 1{a}2", f" {a}{b} x{a}\r\n{a} {b}", f"{a}{b}{a}", f"!{a}.{a}\u0301", f"{a}{other} {other}{a}\r\n",
                                      f"{a}{other}{b}", f"1{a}{b}1", f"{a}a")))
    return list(dict.fromkeys(drawn))


def gguf(model, tokens, types=None, scores=None, merges=None, **keys):
    """Returns metadata of a GGUF file whose vocabulary llama.cpp can read as well. Keys are given without "tokenizer.ggml."."""
    metadata = {"general.architecture": "llama", "llama.context_length": 64, "llama.embedding_length": 8,
                "llama.feed_forward_length": 8, "llama.block_count": 1, "llama.attention.head_count": 1,
                "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": model,
                "tokenizer.ggml.tokens": list(tokens)}
    if scores is not None:
        metadata["tokenizer.ggml.scores"] = [float(score) for score in scores]
    if types is not None:
        metadata["tokenizer.ggml.token_type"] = [np.int32(kind) for kind in types]
    if merges is not None:
        metadata["tokenizer.ggml.merges"] = [" ".join(pair) for pair in merges]
    return metadata | {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def word_piece():
    """Returns (tokens, types) of a BERT vocabulary in the form used by GGUF."""
    words = collections.Counter(word.strip(",.!?") for word in (ENGLISH + " " + SCRIPTS).lower().split())
    base = sorted({c for c in unicodedata.normalize("NFD", (ENGLISH + SCRIPTS + "".join(LETTERS)).lower())
                   if not c.isspace() and unicodedata.category(c)[0] != "M" and unicodedata.category(c) != "Cc"})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    inside = [c for c in base if c.isalnum()] + ["ing", "er", "es", "ed", "th", "or"]
    tokens = special + [SPACE + c for c in base] + [SPACE + w for w in words if len(w) > 1] + inside
    tokens = list(dict.fromkeys(tokens))
    return tokens, [CONTROL] * len(special) + [1] * (len(tokens) - len(special))


def sentencepiece_model(folder, kind, vocabulary=400, **options):
    """Trains a SentencePiece model on the texts above and returns its path. Requires Debian's python3-sentencepiece."""
    import sentencepiece
    text = folder / "text.txt"
    dice = random.Random(2)
    words = (ENGLISH + " " + SCRIPTS).split()
    text.write_text("\n".join([ENGLISH, SCRIPTS] + [" ".join(dice.choices(words, k=12)) for _ in range(600)]))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / kind), model_type=kind, vocab_size=vocabulary, minloglevel=2,
        num_threads=1, character_coverage=1.0, **({"hard_vocab_limit": False} if kind == "unigram" else {}), **options)
    return folder / f"{kind}.model"


def sentencepiece_gguf(path, charsmap=True, **keys):
    """Returns the model's GGUF metadata as written by llama.cpp's converter: pieces, and the normalizer's table and rules."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as schema
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    model = schema.ModelProto()
    model.ParseFromString(path.read_bytes())
    count = processor.get_piece_size()
    kinds = [2 if processor.is_unknown(i) else CONTROL if processor.is_control(i) else BYTE if processor.is_byte(i)
             else UNUSED if processor.is_unused(i) else USER_DEFINED if model.pieces[i].type == 4 else 1 for i in range(count)]
    rules = model.normalizer_spec
    named = {"add_space_prefix": rules.add_dummy_prefix, "remove_extra_whitespaces": rules.remove_extra_whitespaces,
             "unknown_token_id": processor.unk_id(), "bos_token_id": processor.bos_id(), "eos_token_id": processor.eos_id()}
    if charsmap and rules.precompiled_charsmap:
        named["precompiled_charsmap"] = [np.uint8(byte) for byte in rules.precompiled_charsmap]
    return gguf({"unigram": "t5", "bpe": "llama"}[path.stem], [processor.id_to_piece(i) for i in range(count)], kinds,
                [processor.get_score(i) for i in range(count)], **(named | keys))
