#!/usr/bin/env python3
"""Tests the sample language model that adds: its answers, from the quantized file and from the folder, must be the sums; its
logits are compared with PyTorch's.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

from driver import ROOT, expect, parallel, run, run_tests
from language_models import EXACT, PACKAGE, error, logits

SUMS = ROOT / "manifests" / "sums"
PLUS, EQUALS, END = 10, 11, 12
QUESTIONS = [(0, 0), (7, 5), (12, 34), (99, 99), (57, 68), (90, 9), (1, 99), (48, 27)]


def digits(number):
    return [int(digit) for digit in str(number)]


def answer(model, a, b):
    """Decodes greedily until a token ends the answer."""
    tokens, said = [*digits(a), PLUS, *digits(b), EQUALS], []
    while len(said) < 4:
        listed = expect(run("run", model, "--tokens", ",".join(map(str, tokens + said)), "--json"), 0).answer["next"]
        assert len(listed) == 5 and listed[0]["probability"] >= listed[1]["probability"]
        if listed[0]["token"] == END:
            break
        said.append(listed[0]["token"])
    return int("".join(map(str, said)) or -1)


def test_answers(folder):
    package = folder / "sums.mlpackage"
    expect(run("compile", SUMS / "sums.gguf", "-o", package), 0)
    for model in (package, SUMS / "sums"):
        wrong = {pair: said for pair, said in zip(QUESTIONS, parallel(lambda pair: answer(model, *pair), QUESTIONS))
                 if said != sum(pair)}
        assert not wrong, f"{model.name}: {wrong}"


def test_logits(folder):
    prompt, expected = np.load(SUMS / "prompt.npy").tolist(), np.load(SUMS / "logits.npy")
    package = folder / "sums.mlpackage"
    expect(run("compile", SUMS / "sums", "-o", package), 0)
    for model, most in ((SUMS / "sums", EXACT), (package, PACKAGE), (SUMS / "sums.gguf", 3e-2)):  # quantized to Q8_0
        for options in ((), ("--step",)):
            off = error(logits(model, prompt, folder / "out", *options), expected)
            assert off <= most, f"{model.name} {options}: {off:.1e}"


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "the sample language model"))
