#!/usr/bin/env python3
"""Tests the sample language model that generates verses: all of its files are small and give the same text."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import gguf_wire
import llama_cpp
from driver import ROOT, expect, run, run_tests
from language_models import EXACT, PACKAGE, error, logits

VERSES = ROOT / "manifests" / "verses"
F16, Q8_0, Q4_0, FOLDER, SAMPLE = (VERSES / name for name in (
    "verses-f16.gguf", "verses-q8_0.gguf", "verses-q4_0.gguf", "verses", "sample.txt"))
CONTEXT, PROMPT = 256, "And it came to pass"
PERPLEXITY = 19.8686  # of sample.txt, computed by scripts/models/verses.py


def test_sizes(folder):
    size = sum(file.stat().st_size for file in VERSES.rglob("*") if file.is_file())
    assert size <= 4_000_000, f"{size} bytes"


def blocks_of(kind):
    """Returns {name: (bytes, decoded values)} of the F16 matrices in a file of this type."""
    encode = lambda name: gguf_wire.q4_0 if kind == "Q4_0" and name != "token_embd.weight" else gguf_wire.q8_0
    return {name: encode(name)(array) for name, array in gguf_wire.read(F16)[1].items() if array.ndim == 2}


def test_logits(folder):
    """Compares logits with PyTorch's; for quantized files, with those of the dequantized weights."""
    prompt, expected = np.load(VERSES / "ids.npy")[0].tolist(), np.load(VERSES / "expected.npy")[0]
    package = folder / "verses.mlpackage"
    expect(run("compile", F16, "-o", package), 0)
    wanted = [(FOLDER, expected, EXACT), (F16, expected, EXACT), (package, expected, PACKAGE)]
    for model, kind in (Q8_0, "Q8_0"), (Q4_0, "Q4_0"):
        metadata, tensors = gguf_wire.read(F16)
        twin = folder / f"{kind}.gguf"
        twin.write_bytes(gguf_wire.model(metadata, tensors | {name: said for name, (_, said) in blocks_of(kind).items()}))
        wanted.append((model, logits(twin, prompt, folder / "twin"), EXACT))
    for model, right, most in wanted:
        for options in ((), ("--step",)):
            off = error(logits(model, prompt, folder / "out", *options), right)
            assert off <= most, f"{model.name} {options}: {off:.1e}"


def tokens(model, *options):
    return expect(run("tokenize", model, "--add-special", "--json", *options), 0).answer["ids"]


def test_tokens(folder):
    """Compares token ids with SentencePiece's and, for an unseen text, with llama.cpp's if it is installed."""
    for model in F16, Q8_0, Q4_0, FOLDER:
        assert tokens(model, "--text", "In the beginning God") == np.load(VERSES / "ids.npy")[0].tolist(), model.name
    ids = tokens(F16, "--file", SAMPLE)
    assert len(ids) == 17316 and ids == tokens(FOLDER, "--file", SAMPLE)
    shown = expect(run("tokenize", F16, "--decode", ",".join(map(str, ids)), "--json"), 0).answer["text"]
    assert shown == SAMPLE.read_text()
    theirs = llama_cpp.ask({"model": str(F16), "encode": SAMPLE.read_text()})
    assert theirs is None or theirs["tokens"] == ids


def test_blocks(folder):
    """Compares quantized blocks with those of llama.cpp's quantizer, if it is installed."""
    for model, kind in (Q8_0, "Q8_0"), (Q4_0, "Q4_0"):
        there = [model.read_bytes()]
        if llama_cpp.ask({"model": str(F16), "quantize": kind, "out": str(folder / kind)}) is not None:
            there.append((folder / kind).read_bytes())
        for name, (blocks, _) in blocks_of(kind).items():
            assert all(blocks in data for data in there), f"{kind}: {name}"


def test_speech(folder):
    """The greedy text is the same for all formats of the same weights, and equals llama.cpp's if it is installed."""
    package, whole = folder / "verses.mlpackage", folder / "f32.gguf"
    expect(run("compile", F16, "-o", package), 0)
    whole.write_bytes(gguf_wire.model(*gguf_wire.read(F16)))
    speak = lambda model, *options: expect(run("run", model, "--prompt", PROMPT, "--generate", 64, "--json", *options), 0).answer
    first = speak(F16)
    assert len(first["tokens"]) == 64 and len(first["text"].split()) > 30, first
    for model in whole, FOLDER:
        assert speak(model)["tokens"] == first["tokens"], model.name
    packaged = speak(package, "--units", "reference")
    assert (packaged["tokens"], packaged["text"]) == (first["tokens"], first["text"]), packaged
    theirs = llama_cpp.ask({"model": str(whole), "greedy": first["prompt_tokens"], "count": 64})
    assert theirs is None or theirs["tokens"] == first["tokens"]


def test_perplexity(folder):
    """Compares perplexity with PyTorch's, with llama.cpp's if it is installed, and with manifests/README.md."""
    rows = re.findall(r"`(verses-\w+\.gguf)`[^|]*\| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|", (ROOT / "manifests" / "README.md").read_text())
    said = {model: figures for model, *figures in rows}
    ids = tokens(F16, "--file", SAMPLE)
    for model in F16, Q8_0, FOLDER:
        found = expect(run("run", model, "--perplexity", SAMPLE, "--json", timeout=300), 0).answer["perplexity"]
        file = F16 if model == FOLDER else model  # the folder has the same weights
        theirs = llama_cpp.ask({"model": str(file), "perplexity": ids, "context": CONTEXT})
        theirs = theirs["perplexity"] if theirs else float(said[file.name][1])
        assert file != F16 or abs(found / PERPLEXITY - 1) < 1e-4, found
        assert abs(found / theirs - 1) < 1e-3, f"{found}, llama.cpp {theirs}"
        assert said[file.name] == [f"{found:.2f}", f"{theirs:.2f}"], f"{model.name}: {found}, {theirs}; manifests/README.md {said}"


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "the sample language model that speaks"))
