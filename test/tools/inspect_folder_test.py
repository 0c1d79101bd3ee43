#!/usr/bin/env python3
"""Tests `mlc inspect` of Hugging Face folders and safetensors files against the contents read by test/safetensors_file.py."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import safetensors_file as safetensors
from driver import CORPUS, ROOT, expect, run, run_tests


def answer(path, *options):
    return expect(run("inspect", path, "--json", *options), 0).answer


def agrees(path, files):
    """Asserts that the tensors are listed in file order; returns their number."""
    listed = {t["name"]: t for t in answer(path, "--weights")["weights"]["tensors"]}
    stored = {}
    for file in files:
        stored |= safetensors.read(file)
    assert listed.keys() == stored.keys(), listed.keys() ^ stored.keys()
    for name, (dtype, shape, array) in stored.items():
        told = listed[name]
        assert (told["dtype"], tuple(told["shape"])) == (dtype, shape), told
        assert told["bytes"] == safetensors.SIZES.get(dtype, 1) * array.size and "problem" not in told, told
    return len(stored)


def test_corpus(folder):
    """Tests the folders of the corpus and each of their files."""
    places = sorted((CORPUS / "huggingface").glob("*/")) + sorted((CORPUS / "safetensors").glob("*.safetensors"))
    if not places:
        print("# inspect: the corpus's folders skipped, there is no corpus")
        return
    count = 0
    for place in places:
        files = sorted(place.glob("*.safetensors")) if place.is_dir() else [place]
        count += agrees(place, files)
        if place.is_dir():
            facts, config = answer(place), json.loads((place / "config.json").read_text())
            assert facts["architecture"] == config["architectures"][0] and facts["model_type"] == config["model_type"]
            assert not facts["problems"], (place.name, facts["problems"])
            assert facts["config"] == {key: value for key, value in config.items() if value is not None}
    print(f"# inspect: {count} tensors of {len(places)} folders and files")


def test_a_header_is_no_pickle_by_its_length(folder):
    """A length of 640 bytes is written as the beginning of a Python pickle, 80 02."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path = folder / "model.safetensors"
    path.write_bytes(safetensors.pack(header.ljust(640), bytes(4)))
    assert path.read_bytes().startswith(b"\x80\x02")
    agrees(path, [path])


def test_shards(folder):
    size = safetensors.write_llama(folder / "llama", 3, "BF16", shard_megabytes=1)
    files = sorted((folder / "llama").glob("*.safetensors"))
    assert len(files) > 2, files
    agrees(folder / "llama", files)
    facts = answer(folder / "llama")
    assert facts["weights"]["bytes"] == size and facts["weights"]["bits_per_weight"] == 16, facts
    assert facts["weights"]["by_dtype"] == {"BF16": size}
    assert [f["name"] for f in facts["files"]] == ["config.json", "model.safetensors.index.json", *(f.name for f in files)]
    assert "head_dim" not in facts["config"], "null is as good as nothing"


def test_quantised(folder):
    """The parts of a quantized weight are listed as one tensor; its bits per weight include the scales."""
    facts = answer(ROOT / "test/frontends/safetensors/quantised/mlx", "--weights")
    tensors = {t["name"]: t for t in facts["weights"]["tensors"]}
    assert tensors["layers.4.weight"] == {"name": "layers.4.weight", "dtype": "4 bits in groups of 64", "shape": [3, 128],
                                          "bytes": 3 * 128 // 2 + 2 * 3 * 2 * 2}
    assert "layers.4.scales" not in tensors and len(tensors) == facts["weights"]["count"] == 10
    expect(run("inspect", ROOT / "test/frontends/safetensors/quantised/mlx"), 0, "LlamaForCausalLM (llama)",
           "4 bits in groups of 64   1 tensor, 384 elements", "4.50 bits per weight")
    expect(run("inspect", ROOT / "test/frontends/safetensors/quantised/fp8"), 0, "F8_E4M3 in blocks of 16 x 16")


def test_what_is_not_read(folder):
    """A tensor of an unsupported type does not hide the others."""
    (folder / "x.safetensors").write_bytes(safetensors.of({"odd": ("F8_E8M0", (3,), bytes(3)), "even": np.ones(2, "<f4")}))
    expect(run("inspect", folder / "x.safetensors"), 0, "not read: odd: unsupported element type F8_E8M0", "2 tensors")
    tensors = answer(folder / "x.safetensors", "--weights")["weights"]["tensors"]
    assert ["problem" in t for t in tensors] == [False, True]


def test_size(folder):
    """Only the headers are read."""
    safetensors.write_llama(folder / "llama", 300)
    result = expect(run("inspect", folder / "llama"), 0)
    assert result.seconds < 1 and result.peak_bytes < 100 << 20, (result.seconds, result.peak_bytes)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "inspect folder"))
