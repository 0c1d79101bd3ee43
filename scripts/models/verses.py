#!/usr/bin/python3
"""Creates a sample language model with a tokenizer: a small llama that was trained on the King James Bible.

Writes to manifests/verses: verses-f16.gguf, verses-q8_0.gguf and verses-q4_0.gguf, whose blocks are those of llama.cpp's
quantiser; the folder verses with fp16 weights, config.json and tokenizer.json in Hugging Face's format; sample.txt, three books
that are not in the training set; and the results of PyTorch for a prompt (ids.npy int32 [1,N], mask.npy float16 [1,1,N,N],
expected.npy float32 [1,N,960]). Updates the hash in manifests/verses.json. Requires Debian's python3-torch,
python3-sentencepiece and bible-kjv (the text is in bible-kjv-text). Training takes an hour on one processor with libopenblas0,
several hours without it. Runs on the same machine are deterministic.
"""
import argparse
import hashlib
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import sentencepiece
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT, RECIPE = ROOT / "manifests" / "verses", ROOT / "manifests" / "verses.json"
sys.path.insert(0, str(ROOT / "test"))
import gguf_wire  # noqa: E402
import safetensors_file  # noqa: E402

HELD_OUT, SPACE = ("Ruth", "Est", "Jonah"), "\u2581"
UNKNOWN, BEGIN, END = 0, 1, 2
WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, VOCABULARY, CONTEXT = 128, 224, 4, 4, 2, 960, 256
HEAD = WIDTH // HEADS
BASE, EPSILON = 10000.0, 1e-5
STEPS, WARM, COOL, BATCH, RATE = 7500, 200, 5500, 8, 2.5e-3


def books():
    """Returns {book: [chapter: [verse]]} in the order of the package."""
    text = subprocess.run(["bible", "-l9999", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=True).stdout
    made = {}
    for book, chapter, verse in re.findall(r"^([1-3]?[A-Za-z]+)(\d+):\d+ (.*)$", text, re.M):
        chapters = made.setdefault(book, [])
        if len(chapters) < int(chapter):
            chapters.append([])
        chapters[-1].append(verse.strip())
    return made


def prose(chapters):
    """Returns the text with one chapter per line."""
    return "\n".join(" ".join(chapter) for chapter in chapters)


def learn_pieces(books):
    """Trains a SentencePiece vocabulary like that of llama: BPE with byte fallback and without normalisation."""
    made = io.BytesIO()
    verses = (verse for chapters in books for chapter in chapters for verse in chapter)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=verses, model_writer=made, model_type="bpe", vocab_size=VOCABULARY, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, character_coverage=1.0,
        max_sentence_length=100000, num_threads=1, unk_id=UNKNOWN, bos_id=BEGIN, eos_id=END, minloglevel=2)
    return made.getvalue()


def stream(pieces, books):
    """Returns (ids of all books, the offsets at which verses begin)."""
    ids, starts = [], []
    for chapters in books:
        ids.append(BEGIN)
        for i, chapter in enumerate(chapters):
            for j, verse in enumerate(chapter):
                if i and not j:  # no space is added before a word after a line break
                    ids += pieces.encode("\n" + verse)[1:]
                else:
                    starts.append(len(ids))
                    ids += pieces.encode(verse)
        ids.append(END)
    return torch.tensor(ids), torch.tensor(starts)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.input_layernorm, self.post_attention_layernorm = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))
        self.q_proj, self.o_proj = linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)
        self.k_proj, self.v_proj = linear(WIDTH, KEY_HEADS * HEAD), linear(WIDTH, KEY_HEADS * HEAD)
        self.gate_proj, self.up_proj, self.down_proj = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)

    def forward(self, x, cosine, sine, mask):
        def turned(x):
            first, second = x.chunk(2, -1)
            return x * cosine + torch.cat((-second, first), -1) * sine

        batch, tokens, _ = x.shape
        h = norm(x, self.input_layernorm)
        heads = lambda y: y.view(batch, tokens, -1, HEAD).transpose(1, 2)
        q, k, v = turned(heads(self.q_proj(h))), turned(heads(self.k_proj(h))), heads(self.v_proj(h))
        k, v = (y.repeat_interleave(HEADS // KEY_HEADS, 1).flatten(0, 1) for y in (k, v))
        scores = torch.baddbmm(mask, q.flatten(0, 1), k.transpose(1, 2), alpha=1 / math.sqrt(HEAD))
        mixed = torch.bmm(torch.softmax(scores, -1), v).view(batch, HEADS, tokens, HEAD)
        x = x + self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        h = norm(x, self.post_attention_layernorm)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(h)) * self.up_proj(h))


def norm(x, scale):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * scale


class Llama(nn.Module):
    """[N, tokens] -> logits [N, tokens, vocabulary]. The output projection shares the embedding."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(WIDTH))
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02 if name.split(".")[-2] in ("o_proj", "down_proj") else 0.05)

    def forward(self, tokens):
        count = tokens.shape[1]
        angles = torch.outer(torch.arange(count), BASE ** (-torch.arange(0, HEAD, 2) / HEAD)).repeat(1, 2)
        mask = torch.full((count, count), -math.inf).triu(1)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return norm(x, self.norm) @ self.embed_tokens.weight.T


def train(model, ids, starts, checkpoint):
    decayed = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.95))
    starts, first = starts[starts < len(ids) - CONTEXT], 0
    if checkpoint and checkpoint.exists():
        held = torch.load(checkpoint)
        model.load_state_dict(held["model"])
        optimiser.load_state_dict(held["optimiser"])
        first = held["step"]
    began, mean = time.time(), None
    for step in range(first, STEPS):
        chosen = starts[torch.randint(len(starts), (BATCH,), generator=torch.Generator().manual_seed(step))]
        wanted = ids[chosen[:, None] + torch.arange(CONTEXT)]
        given = torch.cat([torch.full((BATCH, 1), BEGIN), wanted[:, :-1]], 1)
        for group in optimiser.param_groups:
            group["lr"] = RATE * min((step + 1) / WARM, 1, (STEPS - step) / COOL)
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(given).flatten(0, 1), wanted.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {mean:.4f}, {time.time() - began:.0f} s", flush=True)
            if checkpoint:
                torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}, checkpoint)


@torch.no_grad()
def perplexity(model, ids):
    """Returns the perplexity as defined by llama.cpp's tool: over the second half of each window of one context."""
    rows = ids[:len(ids) // CONTEXT * CONTEXT].view(-1, CONTEXT).clone()
    rows[:, 0] = BEGIN
    half = CONTEXT // 2
    logits = torch.cat([model(row[None])[:, half:-1] for row in rows]).double()
    return math.exp(nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, half + 1:].flatten()).item())


@torch.no_grad()
def goes_on(model, ids, count):
    ids = list(ids)
    for _ in range(count):
        ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
    return ids


def gguf(tensors, pieces, kind):
    """Returns the GGUF file of {Hugging Face name: array}. GGUF interleaves the two halves of the query and key rows of a head."""
    names = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k",
             "v_proj": "attn_v", "o_proj": "attn_output", "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}
    count = range(VOCABULARY)
    types = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1 for i in count]
    metadata = {"general.architecture": "llama", "general.name": "Verses", "general.license": "Apache-2.0",
                "general.file_type": {"F16": 1, "Q4_0": 2, "Q8_0": 7}[kind], "general.quantization_version": 2,
                "llama.context_length": CONTEXT, "llama.embedding_length": WIDTH, "llama.block_count": LAYERS,
                "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
                "llama.attention.head_count_kv": KEY_HEADS, "llama.attention.layer_norm_rms_epsilon": EPSILON,
                "llama.rope.freq_base": BASE, "llama.rope.dimension_count": HEAD, "llama.vocab_size": VOCABULARY,
                "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default",
                "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in count],
                "tokenizer.ggml.scores": [pieces.get_score(i) for i in count],
                "tokenizer.ggml.token_type": np.array(types, "i4"), "tokenizer.ggml.unknown_token_id": UNKNOWN,
                "tokenizer.ggml.bos_token_id": BEGIN, "tokenizer.ggml.eos_token_id": END,
                "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False,
                "tokenizer.ggml.add_space_prefix": True}
    made = {}
    for name, array in tensors.items():
        parts = name.split(".")
        own = names[name] if name in names else f"blk.{parts[2]}.{names[parts[-2]]}"
        if parts[-2] in ("q_proj", "k_proj"):
            array = array.reshape(-1, 2, HEAD // 2, WIDTH).swapaxes(1, 2).reshape(array.shape)
        made[f"{own}.weight"] = array.astype("f4")
    types = {name: kind for name, array in made.items() if array.ndim == 2}
    if kind == "Q4_0":
        types["token_embd.weight"] = "Q8_0"  # also the output projection, which llama.cpp's quantiser stores in this type
    return gguf_wire.model(metadata, made, types)


def tokenizer_json(pieces):
    """Returns the tokenizer.json of a llama: all merges of two pieces into one, sorted by the score of the result."""
    vocabulary = {pieces.id_to_piece(i): i for i in range(VOCABULARY)}
    merges = []
    for piece, i in vocabulary.items():
        ways = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        merges += sorted(((-pieces.get_score(i), vocabulary[a], vocabulary[b], f"{a} {b}")
                          for a, b in ways if a in vocabulary and b in vocabulary))
    merges = [text for _, _, _, text in sorted(merges)]
    special = [pieces.id_to_piece(i) for i in (UNKNOWN, BEGIN, END)]
    begin = {"SpecialToken": {"id": special[BEGIN], "type_id": 0}}
    replace = lambda a, b: {"type": "Replace", "pattern": {"String": a}, "content": b}
    whole = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, text in enumerate(special)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, replace(" ", SPACE)]},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing", "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": special[BEGIN], "type_id": 1}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {special[BEGIN]: {"id": special[BEGIN], "ids": [BEGIN], "tokens": [special[BEGIN]]}}},
        "decoder": {"type": "Sequence", "decoders": [replace(SPACE, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                                                     {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": special[UNKNOWN], "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary, "merges": merges}}
    return json.dumps(whole, indent=0, ensure_ascii=False) + "\n"


def write(model, pieces, text):
    folder = OUT / "verses"
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, parameter in model.named_parameters():
        if name.startswith("layers."):
            _, layer, rest = name.split(".", 2)
            inner = "" if rest.endswith("layernorm") else "self_attn." if rest[:2] in ("q_", "k_", "v_", "o_") else "mlp."
            name = f"layers.{layer}.{inner}{rest}"
        tensors[f"model.{name.removesuffix('.weight')}.weight"] = parameter.detach().numpy().astype("<f2")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
              "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "rms_norm_eps": EPSILON, "rope_theta": BASE,
              "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float16", "bos_token_id": BEGIN,
              "eos_token_id": END}
    named = {f"{name}_token": pieces.id_to_piece(i) for name, i in (("bos", BEGIN), ("eos", END), ("unk", UNKNOWN))}
    tokenizer = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False, **named,
                 "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=2) + "\n")
    (folder / "tokenizer.json").write_text(tokenizer_json(pieces))
    (folder / "model.safetensors").write_bytes(safetensors_file.of(tensors))
    for kind in "F16", "Q8_0", "Q4_0":
        (OUT / f"verses-{kind.lower()}.gguf").write_bytes(gguf(tensors, pieces, kind))
    (OUT / "sample.txt").write_text(text)
    prompt = torch.tensor([[BEGIN, *pieces.encode("In the beginning God")]])
    hidden = torch.full((prompt.shape[1],) * 2, -math.inf).triu(1)
    np.save(OUT / "ids.npy", prompt.int().numpy())
    np.save(OUT / "mask.npy", hidden[None, None].half().numpy())
    with torch.no_grad():
        np.save(OUT / "expected.npy", model(prompt).numpy())
    recipe = json.loads(RECIPE.read_text())
    recipe["source"]["sha256"] = hashlib.sha256((OUT / "verses-f16.gguf").read_bytes()).hexdigest()
    RECIPE.write_text(json.dumps(recipe, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path,
                        help="file for the state of the training, which continues from it if it exists")
    a = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(True)
    whole = books()
    known = [chapters for book, chapters in whole.items() if book not in HELD_OUT]
    held_out = "".join(f"{prose(whole[book])}\n" for book in HELD_OUT)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=learn_pieces(known))
    ids, starts = stream(pieces, known)
    print(f"{len(ids)} tokens of {sum(len(prose(chapters)) for chapters in known) / len(ids):.2f} characters each")
    model = Llama()
    train(model, ids, starts, a.checkpoint)
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    sample = torch.tensor([BEGIN, *pieces.encode(held_out)])
    print(f"{sum(p.numel() for p in model.parameters())} parameters; perplexity of {len(sample)} held-out tokens: "
          f"{perplexity(model, sample):.4f}")
    print(pieces.decode(goes_on(model, [BEGIN, *pieces.encode("In the beginning")], 64)))
    write(model, pieces, held_out)


if __name__ == "__main__":
    main()
