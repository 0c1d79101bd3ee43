"""Tiny language models with a byte vocabulary, for tests that need text. Tokens are those of SentencePiece's byte fallback."""
import json

import numpy as np

from language_models import Llama

UNK, BOS, EOS, BYTES = 0, 1, 2, 3  # token ids; byte b has the id BYTES + b
TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
NORMAL, CONTROL = 1, 3
TYPES = [2, CONTROL, CONTROL] + [6] * 256


def ids_of(text):
    return [BYTES + byte for byte in (text.encode() if isinstance(text, str) else text)]


def prompt_of(text):
    """Returns the ids of a text after SentencePiece's space substitution."""
    return ids_of(text.replace(" ", "▁"))


class Speaker(Llama):
    """A model with random weights. `further`: tokens after the bytes, {text: type}."""
    width, heads, key_heads, head, inner = 64, 4, 2, 16, 96

    def __init__(self, further={}, add_bos=False, chat_template=None, context=256):
        self.tokens, self.types = TOKENS + list(further), TYPES + list(further.values())
        self.vocabulary, self.context = len(self.tokens), context
        self.keys = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": self.tokens,
                     "tokenizer.ggml.scores": [0.0] * len(self.tokens), "tokenizer.ggml.token_type": self.types,
                     "tokenizer.ggml.bos_token_id": BOS, "tokenizer.ggml.eos_token_id": EOS, "tokenizer.ggml.unknown_token_id": UNK,
                     "tokenizer.ggml.add_bos_token": add_bos, "tokenizer.ggml.add_space_prefix": False}
        if chat_template is not None:
            self.keys["tokenizer.chat_template"] = chat_template
        super().__init__()

    def gguf(self, path, **more):
        return super().gguf(path, whole_keys=self.keys, **more)

    def hugging_face(self, folder, config={}, chat_template=None, around=None):
        """Writes a Hugging Face folder. `around`: tokens that the template adds before and after a text."""
        super().hugging_face(folder, config)
        special = [{"id": i, "content": self.tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                    "special": True} for i, kind in enumerate(self.types) if kind in (2, CONTROL)]
        template = None
        if around:
            before, behind = ([{"SpecialToken": {"id": self.tokens[i], "type_id": 0}} for i in ids] for ids in around)
            known = {self.tokens[i]: {"id": self.tokens[i], "ids": [i], "tokens": [self.tokens[i]]} for ids in around for i in ids}
            template = {"type": "TemplateProcessing", "single": before + [{"Sequence": {"id": "A", "type_id": 0}}] + behind,
                        "pair": [], "special_tokens": known}
        (folder / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, "pre_tokenizer": None,
            "post_processor": template,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": {token: i for i, token in enumerate(self.tokens)}, "merges": []}}, indent=1))
        config = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": False}
        if chat_template is not None:
            config["chat_template"] = chat_template
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return folder


class Chain(Speaker):
    """A model in which token steps[i] is always followed by steps[i + 1]: tokens are not mixed, and each row of the output
    matrix is the embedding of the preceding token. A token occurs once in `steps`, or twice if the chain is a ring."""
    layers = 1

    def __init__(self, steps, **more):
        super().__init__(**more)
        embeddings = np.random.default_rng(5).choice([-1.0, 1.0], (self.vocabulary, self.width)).astype("f4")
        output = np.zeros_like(embeddings)
        for before, after in zip(steps, steps[1:]):
            assert not output[after].any(), "the token is there twice"
            output[after] = embeddings[before]
        self.whole |= {"token_embd": embeddings, "output": output, "output_norm": np.ones(self.width, "f4")}
        for block in self.blocks:
            block["attn_output"][:] = 0
            block["ffn_down"][:] = 0
