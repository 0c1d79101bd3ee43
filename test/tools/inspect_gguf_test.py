#!/usr/bin/env python3
"""Tests `mlc inspect` of GGUF files against the contents written by test/gguf_file.py and test/gguf_wire.py, and on the corpus
and damaged files.
"""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gguf_file as gguf
import gguf_wire as wire
import numpy as np

from driver import CORPUS, expect, run, run_tests


def answer(path, *options):
    return expect(run("inspect", path, "--json", *options), 0).answer


def agrees(facts, tensors, total):
    """Asserts that the tensors are listed in order with their sizes."""
    listed = [(t["name"], t["type"], tuple(t["shape"]), t["bytes"]) for t in facts["weights"]["tensors"]]
    assert listed == [(name, kind, shape, gguf.size_of(kind, shape)) for name, (kind, shape) in tensors.items()]
    assert facts["weights"]["bytes"] == total and facts["weights"]["count"] == len(tensors)
    for kind, of_kind in facts["weights"]["by_type"].items():
        assert of_kind["tensors"] == sum(k == kind for k, _ in tensors.values()), (kind, of_kind)
        assert of_kind["bits_per_weight"] == 8 * gguf.TYPES[kind][2] / gguf.TYPES[kind][1]


def test_llama(folder):
    for kind in gguf.TYPES:
        files, total = gguf.write_llama(folder / f"{kind}.gguf", gguf.LIKE["tiny"], kind)
        metadata, tensors = gguf.llama(gguf.LIKE["tiny"], kind)
        facts = answer(files[0], "--weights")
        agrees(facts, tensors, total)
        assert facts["architecture"] == "llama" and facts["version"] == 3 and not facts["problems"], facts["problems"]
        assert list(facts["metadata"]) == list(metadata)
        assert [f["name"] for f in facts["functions"]] == ["main"] and facts["states"] and facts["inputs"], facts["functions"]
        tokens = facts["metadata"]["tokenizer.ggml.tokens"]
        assert tokens == {"type": "string", "count": 512, "first": ["<unk>", "<s>", "</s>"]}, tokens
        assert facts["metadata"]["llama.block_count"] == {"type": "uint32", "value": 2}
    expect(run("inspect", folder / "Q4_K.gguf"), 0, "gguf version 3, llama", "llama.block_count", "uint32          2",
           'string[512]     "<unk>", "<s>", "</s>", ...', "Q4_K     16 tensors", "4.50 bits per weight")
    text = expect(run("inspect", folder / "Q4_K.gguf", "--weights"), 0).stdout
    assert "  blk.1.ffn_down.weight                    Q4_K     [256,512]            73728\n" in text, text


def test_parts(folder):
    files, total = gguf.write_llama(folder / "m.gguf", gguf.LIKE["tiny"], "Q8_0", parts=3)
    for file in files:
        facts = answer(file, "--weights")
        agrees(facts, gguf.llama(gguf.LIKE["tiny"], "Q8_0")[1], total)
        assert [f["name"] for f in facts["files"]] == [f.name for f in files]
    files[1].unlink()
    expect(run("inspect", files[0]), 1, "error[external-data]: part 2 of 3 is missing", "m-00002-of-00003.gguf")


def test_values(folder):
    """Long texts are truncated between characters, and terminal control characters are not printed."""
    (folder / "x.gguf").write_bytes(wire.model(
        {"a.text": "\N{GREEK SMALL LETTER ALPHA}" * 100, "a.escape": "\x1b[2Jred", "a.float": 1e-5, "a.list": [1.5, 2.5, 3.5, 4.5],
         "a.flag": False, "a.lists": [[1, 2], [3]]}, {"w": np.ones((2, 3), "f4")}))
    facts = answer(folder / "x.gguf")
    assert facts["metadata"]["a.text"]["value"] == "\N{GREEK SMALL LETTER ALPHA}" * 39 + "..." or \
        facts["metadata"]["a.text"]["value"] == "\N{GREEK SMALL LETTER ALPHA}" * 40 + "...", facts["metadata"]["a.text"]
    assert facts["metadata"]["a.list"] == {"type": "float32", "count": 4, "first": [1.5, 2.5, 3.5]}
    assert facts["metadata"]["a.lists"]["first"] == ["2 of uint32", "1 of uint32"], facts["metadata"]["a.lists"]
    assert facts["architecture"] == "" and len(facts["problems"]) == 1
    text = expect(run("inspect", folder / "x.gguf"), 0, "float32         1e-05", "bool            false", "problem",
                  "no key \"general.architecture\"").stdout
    assert "\x1b" not in text and " [2Jred" in text, text


def test_unknown_architecture(folder):
    (folder / "x.gguf").write_bytes(wire.model({"general.architecture": "marvin"}, {"w": np.ones((2, 3), "f4")}))
    expect(run("inspect", folder / "x.gguf"), 0, "gguf version 3, marvin", "problem", '"marvin"')
    assert answer(folder / "x.gguf")["problems"][0]["id"] == "unsupported-architecture"


def test_damage(folder):
    for path, words in {"cut": ("the file is truncated", 'tensor "output.weight"')}.items():
        files, _ = gguf.write_llama(folder / f"{path}.gguf", gguf.LIKE["tiny"])
        files[0].write_bytes(files[0].read_bytes()[:-100])
        expect(run("inspect", files[0]), 1, "error[bad-file]", *words)
        problem = expect(run("inspect", files[0], "--json"), 1).answer["errors"][0]
        assert problem["id"] == "bad-file" and str(files[0]) in problem["location"], problem
    swapped = b"GGUF" + (3).to_bytes(4, "big") + bytes(16)
    (folder / "big.gguf").write_bytes(swapped)
    expect(run("inspect", folder / "big.gguf"), 1, "error[unknown-format]: big-endian GGUF files are not supported")
    if (CORPUS / "bad").is_dir():
        expect(run("inspect", CORPUS / "bad" / "las7_tiny.gguf"), 1, "error[bad-file]: the file is truncated",
               'tensor "test.weight.0"', "help: download or convert the model again")


def test_size(folder):
    """Only metadata and headers are read, and only three of 128256 tokens."""
    like = (2048, 3 * 2048, 32, 8, 128256, 2)
    files, total = gguf.write_llama(folder / "m.gguf", like)
    result = expect(run("inspect", files[0]), 0, "string[128256]")
    assert result.seconds < 2 and result.peak_bytes < 200 << 20, (result.seconds, result.peak_bytes)
    files[0].unlink()


def test_hostile(folder):
    """Millions of meaningless values take neither much time nor much memory."""
    strings, arrays = 5_000_000, 3_000_000
    wide = wire.string("a") + struct.pack("<IIQ", wire.ARRAY, wire.STRING, strings) + bytes(8 * strings)
    deep = wire.string("b") + struct.pack("<IIQ", wire.ARRAY, wire.ARRAY, arrays) + struct.pack("<IQ", 0, 0) * arrays
    (folder / "many.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + wide + deep)
    result = expect(run("inspect", folder / "many.gguf"), 0, "string[5000000]", "array[3000000]  0 of uint8, 0 of uint8")
    assert result.seconds < 2 and result.peak_bytes < 300 << 20, (result.seconds, result.peak_bytes)
    keys = b"".join(wire.string(f"{i:08x}") + struct.pack("<IB", 0, 1) for i in range(1 << 17))
    (folder / "keys.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 17) + keys)
    result = expect(run("inspect", folder / "keys.gguf"), 1, "error[resource-limit]: the file has 131072 keys")
    assert result.seconds < 1, result.seconds


def test_corpus(folder):
    places = sorted((CORPUS / "gguf").glob("**/*.gguf")) + sorted((CORPUS / "tokenizers").glob("*.gguf"))
    if not places:
        print("# inspect gguf: the corpus's files skipped, there is no corpus")
        return
    tensors = built = 0
    for place in places:
        facts = answer(place)
        tensors += facts["weights"]["count"]
        built += not facts["problems"]
        assert json.dumps(facts), place
    print(f"# inspect gguf: {len(places)} files, {tensors} tensors, {built} networks")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "inspect gguf"))
