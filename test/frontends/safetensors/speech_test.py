#!/usr/bin/env python3
"""Tests encoders of speech and encoder-decoders of Hugging Face folders against the results of transformers (oracle.npz of the
corpus): outputs, generated tokens, log-mel spectrograms, and packages."""
import json
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

from driver import CORPUS, expect, run, run_tests
from encoders_test import error

EXACT, PACKAGE = 1e-5, 1e-2  # relative root mean square errors
# Of the outputs that the oracle has, those that the model gives, by our names.
OUTPUTS = {"huggingface/hf_wav2vec2_ctc": {"logits": "logits"}, "folders/hf_hubert": {"logits": "logits"},
           "huggingface/hf_t5": {}, "huggingface/hf_whisper": {}, "folders/hf_bart": {}, "folders/hf_m2m_100": {},
           "folders/hf_whisper_gen": {}, "folders/hf_moonshine": {}}
SEQUENCES = {"logits": "logits", "encoder_last_hidden_state": "encoder_last_hidden_state"}
IDS = {"folders/hf_bart": [], "folders/hf_m2m_100": []}
SPOKEN = {"generated_ids": ["--language", "en"], "generated_ids_timestamps": ["--language", "en", "--timestamps"],
          "generated_ids_translate_fr": ["--language", "fr", "--task", "translate"]}


def wav(path, samples, rate=16000):
    """Writes samples as 32-bit floats, which the reader returns as stored."""
    data = np.asarray(samples, "<f4").tobytes()
    chunk = b"fmt " + (16).to_bytes(4, "little") + (3).to_bytes(2, "little") + (1).to_bytes(2, "little") + rate.to_bytes(
        4, "little") + (4 * rate).to_bytes(4, "little") + (4).to_bytes(2, "little") + (32).to_bytes(2, "little")
    body = b"WAVE" + chunk + b"data" + len(data).to_bytes(4, "little") + data
    path.write_bytes(b"RIFF" + len(body).to_bytes(4, "little") + body)
    return path


def outputs(model, folder, given, *options):
    folder.mkdir(exist_ok=True)
    takes = {port["name"]: port for port in expect(run("inspect", model, "--ops", "--json"), 0).answer["inputs"]}
    arguments = []
    for name in sorted(takes):
        value = given[name] if name in given else np.ones_like(given["input_ids"])
        np.save(folder / f"{name}.npy", value.astype("i4" if value.dtype.kind == "i" else "f4"))
        arguments += ["--input", f"{name}={folder / name}.npy"]
    expect(run("run", model, *arguments, "--output-dir", folder / "out", *options), 0)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def test_corpus(folder):
    """Compares outputs in exact arithmetic, and of the package in fp16."""
    if not (CORPUS / "folders").exists():
        return print("# speech and sequences of transformers: skipped, there is no corpus")
    for number, (name, names) in enumerate(OUTPUTS.items()):
        model, package = CORPUS / name, folder / f"{number}.mlpackage"
        oracle = np.load(model / "oracle.npz")
        given = {key[3:]: oracle[key] for key in oracle.files if key.startswith("in_")}
        expect(run("compile", model, "-o", package, "--verify-each"), 0)
        offs = []
        for what, limit, *options in ((model, EXACT, "--arithmetic", "exact"), (package, PACKAGE)):
            found = outputs(what, folder / f"{number}-{limit}", given, *options)
            for ours, theirs in (names or SEQUENCES).items():
                off = error(found[ours], oracle[f"out_{theirs}"])
                assert off <= limit, (name, ours, what, off)
                offs.append(off)
        print(f"# {name}: within {max(offs[:len(offs) // 2]):.1e} of transformers, the package within {max(offs):.1e}")


def generated(model, *arguments):
    return expect(run("run", model, *arguments, "--json"), 0).answer["generated_ids"]


def test_generation(folder):
    """Folders and packages generate the tokens that transformers generates."""
    if not (CORPUS / "folders").exists():
        return print("# generated tokens of transformers: skipped, there is no corpus")
    for name in IDS:
        model, package = CORPUS / name, folder / f"{pathlib.Path(name).name}.mlpackage"
        oracle = np.load(model / "oracle.npz")
        expect(run("compile", model, "-o", package), 0)
        for what in (model, package):
            ids = generated(what, "--tokens", ",".join(map(str, oracle["in_input_ids"][0])))
            assert ids == oracle["out_generated_ids"][0].tolist(), (name, what, ids)
    model = CORPUS / "folders" / "hf_whisper_gen"
    oracle, sound = np.load(model / "oracle.npz"), wav(folder / "sound.wav", np.load(model / "sound.npy"))
    expect(run("compile", model, "-o", folder / "whisper.mlpackage"), 0)
    for what in (model, folder / "whisper.mlpackage"):
        for key, options in SPOKEN.items():
            ids = generated(what, "--audio", sound, *options)
            assert ids == oracle[f"out_{key}"][0].tolist(), (key, what, ids)
        detected = generated(what, "--audio", sound)
        assert detected[1] == int(oracle["out_detected_language"][0]), detected
    expect(run("run", model, "--audio", sound, "--language", "xx"), 2, "usage", "<|de|>")
    model = CORPUS / "folders" / "hf_moonshine"
    oracle, sound = np.load(model / "oracle.npz"), wav(folder / "moonshine.wav", np.load(model / "oracle.npz")["in_input_values"][0])
    assert generated(model, "--audio", sound) == oracle["out_generated_ids"][0].tolist()


def test_mel(folder):
    """The function `features` computes the spectrogram of transformers' processor, in the package too."""
    model = CORPUS / "folders" / "hf_whisper_gen"
    if not model.exists():
        return print("# log-mel spectrograms of transformers: skipped, there is no corpus")
    wanted = np.load(model / "oracle.npz")["in_input_features"]
    samples = np.zeros((1, 32000), "f4")
    sound = np.load(model / "sound.npy").ravel()[:32000]
    samples[0, :len(sound)] = sound
    np.save(folder / "samples.npy", samples)
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0)
    for what in (model, folder / "m.mlpackage"):
        expect(run("run", what, "--function", "features", "--input", f"input_values={folder}/samples.npy", "--output-dir",
                   folder / "out"), 0)
        off = np.abs(np.load(folder / "out" / "input_features.npy") - wanted).max()
        assert off <= 1e-5 * np.abs(wanted).max(), (what, off)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "speech"))
