#!/usr/bin/env python3
"""Tests `mlc verify` of language models: the tokenizer beside the package, packages of slightly different models, close routing
decisions.
"""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import gguf_wire
from driver import CORPUS, expect, run, run_tests
from language_models import Llama
from speaking_models import CONTROL, Speaker

SEEDS = range(8)
QUICK = ["--samples", 1, "--tokens", "1,2,3"]


def compiled(model, package, *options):
    expect(run("compile", model, "-o", package, "--force", *options), 0)
    return package


def rewritten(path, change):
    """Returns the GGUF file with its metadata and tensors modified by `change`."""
    metadata, tensors = gguf_wire.read(path)
    change(metadata, tensors)
    path.write_bytes(gguf_wire.model(metadata, tensors))


def check_tokenizer(model, package, text):
    """Checks what verify says of changes to the tokenizer of a package."""
    compiled(model, package)
    beside = package.with_suffix(".tokenizer")
    right = {path.name: path.read_bytes() for path in beside.iterdir()}
    tokenizer, config = (json.loads(right[name]) for name in ("tokenizer.json", "tokenizer_config.json"))

    def restored():
        for name, data in right.items():
            (beside / name).write_bytes(data)

    on_text = ["--text", text, "--context", 32]
    expect(run("verify", model, package), 0, "PASSED", f"{beside.name} matches the source's")
    assert expect(run("verify", model, package, "--json"), 0).answer["tokenizer"] == str(beside)
    expect(run("verify", model, package, *on_text), 0, "PASSED")
    vocabulary = tokenizer["model"]["vocab"]
    swapped = vocabulary | {"<0x41>": vocabulary["<0x42>"], "<0x42>": vocabulary["<0x41>"]}
    bos = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
           "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    for change, said in (({"model": tokenizer["model"] | {"vocab": swapped}}, 'token 68 is "<0x42>" where the source has "<0x41>"'),
                         ({"normalizer": None}, "the number of normalizers is 0 where the source has 1"),
                         ({"post_processor": bos}, "before"), ({"added_tokens": tokenizer["added_tokens"][1:]}, ""),
                         ({"decoder": {"type": "Fuse"}}, '"decoder" differs from'), ({"padding": {"length": 4}}, '"padding" differs from'),
                         ({"truncation": {"max_length": 4}}, '"truncation" differs from'),
                         ({"model": tokenizer["model"] | {"dropout": 0.5}}, '"model/dropout" differs from'),
                         ({"model": tokenizer["model"] | {"merges": ["<0x41> <0x42>"]}}, "")):
        (beside / "tokenizer.json").write_text(json.dumps(tokenizer | change))
        expect(run("verify", model, package, *QUICK), 3, "FAIL tokenizer", said, "FAILED")
    expect(run("verify", model, package, *on_text), 3, "FAIL tokenizer", "FAILED")
    expect(run("verify", model, package, "--budget", "int8", "--json"), 3)
    restored()
    for change, said in (({"chat_template": "x"}, 'the chat template is "x" where'), ({"eos_token": "<s>"}, "eos is 1 where the source has 2")):
        (beside / "tokenizer_config.json").write_text(json.dumps(config | change))
        expect(run("verify", model, package, *QUICK), 3, "FAIL tokenizer", said, "FAILED")
    restored()
    # Other bytes with the same meaning.
    (beside / "tokenizer.json").write_text(json.dumps(dict(reversed(tokenizer.items()))))
    (beside / "tokenizer_config.json").write_text(json.dumps(config | {"written_by": "another"}))
    expect(run("verify", model, package), 0, "PASSED", "matches the source's")
    for damaged in (right["tokenizer.json"][:100], b"", b"{}"):
        (beside / "tokenizer.json").write_bytes(damaged)
        expect(run("verify", model, package, *QUICK), 3, "FAIL tokenizer", "differs from the source's")
    (beside / "tokenizer.json").unlink()
    for options in ([], on_text, ["--samples", 1]):
        expect(run("verify", model, package, *options), 3, "FAIL tokenizer", "there is no tokenizer beside the package")


def test_the_tokenizer(folder):
    text = folder / "t.txt"
    text.write_text("What is said here is of no matter. " * 4)
    template = "{{ '<|im_start|>' }}"
    speaker = Speaker(chat_template=template, further={"<|im_end|>": CONTROL})
    check_tokenizer(speaker.gguf(folder / "m.gguf"), folder / "p.mlpackage", text)
    check_tokenizer(Speaker().hugging_face(folder / "m", chat_template=template), folder / "h.mlpackage", text)
    # A source without a tokenizer needs none.
    silent = Llama().gguf(folder / "silent.gguf")
    assert "tokenizer" not in expect(run("verify", silent, compiled(silent, folder / "s.mlpackage")), 0).stdout


def scaled(part, factor):
    def change(_, tensors):
        name = next(name for name in tensors if part in name)
        tensors[name] = tensors[name] * np.float32(factor)
    return change


def other_number(end, factor):
    def change(metadata, _):
        key = next(key for key in metadata if key.endswith(end))
        metadata[key] = metadata[key] * factor
    return change


def epsilon(metadata, _):
    metadata[next(key for key in metadata if key.endswith("rms_epsilon"))] = 1e-3


def exchanged(part, heads):
    """Swaps the first two heads."""
    def change(_, tensors):
        name = next(name for name in tensors if part in name)
        rows = tensors[name].reshape(heads, -1, *tensors[name].shape[1:]).copy()
        rows[[0, 1]] = rows[[1, 0]]
        tensors[name] = rows.reshape(tensors[name].shape)
    return change


MUTANTS = {"query x 1.02": scaled("attn_q.weight", 1.02), "value x 1.02": scaled("attn_v.weight", 1.02),
           "norm x 0.99": scaled("ffn_norm.weight", 0.99), "epsilon": epsilon,
           "rope base": other_number("rope.freq_base", 1.05), "heads": exchanged("attn_q.weight", 4),
           "bias": scaled("attn_q.bias", 0)}


class Sharp(Llama):
    """A model in which rotary embedding matters for attention, and whose values are small enough for epsilon to matter."""
    width, head, heads, key_heads, inner, biased = 64, 16, 4, 2, 96, ("attn_q", "attn_k", "attn_v")

    def __init__(self):
        super().__init__()
        self.whole["token_embd"] *= np.float32(0.5)
        for block in self.blocks:
            block["attn_q"] *= np.float32(2)


def judged(folder, model, change, seeds):
    """Returns the exit codes of verifying a changed model's package against the original model."""
    changed = folder / "changed.gguf"
    shutil.copyfile(model, changed)
    rewritten(changed, change)
    package = compiled(changed, folder / "changed.mlpackage")
    return [run("verify", model, package, "--seed", seed, "--samples", 1).code for seed in seeds]


def test_packages_of_slightly_other_models(folder):
    model = Sharp().gguf(folder / "m.gguf", architecture="qwen2")
    right = judged(folder, model, lambda *_: None, SEEDS)
    assert right == [0] * len(SEEDS), right
    missed = {name: codes for name, change in MUTANTS.items() if (codes := judged(folder, model, change, range(2))) != [3] * 2}
    assert not missed, missed
    shown = expect(run("verify", model, compiled(model, folder / "r.mlpackage")), 0, "own floor (rounded constants and fp16 arithmetic): RMSE", "; allowed ").stdout
    assert "PASSED" in shown
    own = expect(run("verify", model, folder / "r.mlpackage", "--json"), 0).answer["language"][0]["own_floor"]
    assert own["allowed"] == max(3e-4, 3 * own["rmse"]), own
    # An explicit budget is used as given.
    assert "own floor" not in expect(run("verify", model, folder / "r.mlpackage", "--budget", "fp16"), 0).stdout


def test_slightly_other_models_of_the_corpus(folder):
    model = CORPUS / "gguf" / "llama.f32.gguf"
    if not model.exists():
        print("# slightly other models of the corpus: skipped, needs ../shared/corpus")
        return
    for name in ("query x 1.02", "heads"):
        codes = judged(folder, model, MUTANTS[name], range(2))
        assert codes == [3] * 2, (name, codes)


def test_routers_that_cannot_decide(folder):
    model = CORPUS / "gguf" / "gptoss.f32.gguf"
    if not model.exists():
        print("# routers that cannot decide: skipped, needs ../shared/corpus")
        return
    package = compiled(model, folder / "p.mlpackage")
    followed = None
    for seed in SEEDS:
        answer = expect(run("verify", model, package, "--seed", seed, "--json", timeout=120), 0).answer
        routers = answer["routers"][0]
        assert routers["followed"] * 20 < routers["tokens"] and routers["widest"] < 1e-2, routers
        followed = seed if routers["followed"] else followed
    assert followed is not None
    expect(run("verify", model, package, "--seed", followed, timeout=120), 0, "routers, samples: the source follows the package's choice of experts")

    def wrong(_, tensors):
        name = next(name for name in tensors if "ffn_gate_inp.weight" in name)
        tensors[name] = tensors[name][::-1].copy()
    assert judged(folder, model, wrong, [0]) == [3]


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "verify of language models"))
