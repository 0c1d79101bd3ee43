#!/usr/bin/env python3
"""Tests encoders of speech and encoder-decoders of Hugging Face folders against the results of transformers (oracle.npz of the
corpus): outputs, generated tokens, log-mel spectrograms, and packages."""
import json
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import conformer_numpy
import safetensors_file as safetensors
import speech_numpy
from driver import CORPUS, expect, run, run_tests
from encoders_test import error
from word_tokenizer import tokenizer

EXACT, PACKAGE = 1e-5, 1e-2  # relative root mean square errors
# Of the outputs that the oracle has, those that the model gives, by our names.
OUTPUTS = {"huggingface/hf_wav2vec2_ctc": {"logits": "logits"}, "folders/hf_hubert": {"logits": "logits"},
           "huggingface/hf_t5": {}, "huggingface/hf_whisper": {}, "folders/hf_bart": {}, "folders/hf_m2m_100": {},
           "folders/hf_whisper_gen": {}, "folders/hf_moonshine": {}}
SEQUENCES = {"logits": "logits", "encoder_last_hidden_state": "encoder_last_hidden_state"}
IDS = {"folders/hf_bart": [], "folders/hf_m2m_100": []}
SPOKEN = {"generated_ids": ["--language", "en"], "generated_ids_timestamps": ["--language", "en", "--timestamps"],
          "generated_ids_translate_fr": ["--language", "fr", "--task", "translate"]}
# What rounding the weights to fp16 costs by itself, as `mlc verify` prints it; a package may cost 1.5 times as much.
FLOORS = {"folders/hf_bart": 2.2e-2, "folders/hf_moonshine": 7.5e-3}


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
                if what == package:
                    limit = max(limit, 1.5 * FLOORS.get(name, 0))
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
    """The function `features` computes the spectrogram of transformers' processor, in a package too."""
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


def test_parakeet(folder):
    """Parakeet's function `features` computes the spectrogram of its processor, in a package too, and both print what they hear."""
    config, tensors = speech_numpy.parakeet(7)
    config["pad_token_id"] = speech_numpy.VOCABULARY - 1
    model, package = write(folder / "parakeet", config, tensors), folder / "p.mlpackage"
    words = tokenizer(model, {0: "<unk>"}, speech_numpy.VOCABULARY)
    expect(run("compile", model, "-o", package), 0)
    expect(run("verify", model, package), 0, "PASSED")
    rng = np.random.default_rng(3)
    for count in (320, 8000, 8123):
        at = np.arange(count) / 16000
        samples = (0.3 * np.sin(2 * np.pi * 440 * at) + 0.1 * np.sin(6000 * np.pi * at**2) + 0.01 * rng.standard_normal(count)).astype("f4")
        np.save(folder / "samples.npy", samples[None])
        wanted = speech_numpy.parakeet_features(samples)
        for what, *options in ((model, "--arithmetic", "exact"), (package,)):
            expect(run("run", what, "--function", "features", "--input", f"input_values={folder}/samples.npy", "--output-dir",
                       folder / "out", *options), 0)
            off = error(np.load(folder / "out" / "input_features.npy")[0], wanted)
            assert off <= EXACT, (count, what, off)
    # The last sound; the likeliest tokens without repetitions and blanks.
    likeliest = speech_numpy.parakeet_outputs(config, tensors, wanted)["logits"].argmax(-1).ravel().tolist()
    ids = [a for a, b in zip(likeliest, [None, *likeliest]) if a != b and a != config["pad_token_id"]]
    sound = wav(folder / "sound.wav", samples)
    assert generated(model, "--audio", sound) == ids, ids
    text = expect(run("run", package, "--audio", sound), 0).stdout.strip()
    assert text == "".join(words[i] for i in ids).replace("▁", " ").strip(), (text, ids)
    # Functions besides the first one need iOS18.
    expect(run("compile", model, "-o", folder / "old.mlpackage", "--target", "iOS16"), 0)
    assert [one["name"] for one in expect(run("inspect", folder / "old.mlpackage", "--json"), 0).answer["functions"]] == ["main"]
    (model / "preprocessor_config.json").write_text(json.dumps({"feature_size": 81}))
    refused = run("compile", model, "-o", folder / "no.mlpackage")
    assert refused.code == 1 and "81" in refused.stderr, refused


# Architectures of tiny folders, and members that override their config.json; _new: names of torch's parametrisations, _untied: a
# separate matrix for logits.
LAYER_NORMS = {"do_stable_layer_norm": True, "feat_extract_norm": "layer"}
TINY_SPEECH = [("Wav2Vec2ForCTC", {"conv_bias": True}), ("Wav2Vec2Model", LAYER_NORMS),
               ("Wav2Vec2ForCTC", LAYER_NORMS | {"adapter_attn_dim": speech_numpy.ADAPTER, "_new": True}), ("HubertModel", {}),
               ("HubertForSequenceClassification", {"use_weighted_layer_sum": True}), ("WavLMModel", {}),
               ("WavLMForCTC", {"do_stable_layer_norm": True}), ("WavLMForSequenceClassification", {"_new": True}),
               ("WavLMForXVector", {"use_weighted_layer_sum": True}), ("UniSpeechSatForXVector", {}), ("Data2VecAudioModel", {}),
               ("Data2VecAudioForCTC", {"conv_pos_kernel_size": 4}), ("SEWModel", {}), ("SEWForCTC", {"squeeze_factor": 2}),
               ("SEWForSequenceClassification", {})]
ADAPTER = {"add_adapter": True, "num_adapter_layers": 2}
CONFORMERS = [(conformer_numpy.CONFORMER, "Wav2Vec2ConformerForCTC", {}), (conformer_numpy.CONFORMER, "Wav2Vec2ConformerModel", ADAPTER),
              (conformer_numpy.CONFORMER, "Wav2Vec2ConformerModel", {"position_embeddings_type": "rotary"}),
              (conformer_numpy.CONFORMER, "Wav2Vec2ConformerForCTC", {"position_embeddings_type": None}),
              (conformer_numpy.BERT, "Wav2Vec2BertForCTC", {}), (conformer_numpy.BERT, "Wav2Vec2BertModel", {"position_embeddings_type": "relative"}),
              (conformer_numpy.BERT, "Wav2Vec2BertForCTC", ADAPTER | {"use_intermediate_ffn_before_adapter": True}),
              (conformer_numpy.BERT, "Wav2Vec2BertModel", ADAPTER | {"output_hidden_size": conformer_numpy.ADAPTED}),
              (conformer_numpy.BERT, "Wav2Vec2BertForSequenceClassification", {"classifier_proj_size": 7})]
GATED = {"feed_forward_proj": "gated-gelu", "_untied": True}
TINY_SEQUENCES = [("t5", {}), ("t5", GATED | {"tie_word_embeddings": False}), ("t5", GATED | {"scale_decoder_outputs": False}),
                  ("mt5", GATED), ("mbart", {}), ("marian", {"activation_function": "swish"}),
                  ("marian", {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": speech_numpy.VOCABULARY}), ("m2m_100", {}),
                  ("bart", {}), ("bart", {"_head": "Model"}), ("bart", {"_head": "ForSequenceClassification"}),
                  ("bart", {"_head": "ForQuestionAnswering"}), ("mbart", {"_head": "ForSequenceClassification"}),
                  ("plbart", {"_head": "ForSequenceClassification"}), ("mbart", {"_head": "ForQuestionAnswering"}), ("plbart", {}), ("pegasus", {}), ("blenderbot", {"activation_function": "gelu"}),
                  ("blenderbot-small", {}), ("umt5", {"feed_forward_proj": "gated-gelu"}), ("umt5", GATED | {"tie_word_embeddings": False}),
                  ("t5", {"_head": "Model"}), ("t5", {"_head": "ForSequenceClassification", "eos_token_id": 3}),
                  ("mt5", {"_head": "ForQuestionAnswering", "feed_forward_proj": "relu"})]


def write(model, config, tensors):
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config))
    (model / "model.safetensors").write_bytes(safetensors.of(tensors))
    return model


def compare(model, scratch, wanted, given):
    found = outputs(model, scratch, given, "--arithmetic", "exact")
    assert found.keys() == wanted.keys(), (model, found.keys(), wanted.keys())
    return max(error(found[key], value) for key, value in wanted.items())


def test_numpy(folder):
    rng, worst = np.random.default_rng(5), 0
    for number, (architecture, changes) in enumerate(TINY_SPEECH):
        config, tensors = speech_numpy.speech(architecture, number, **changes)
        samples = rng.standard_normal(300).astype("f4")
        off = compare(write(folder / f"speech{number}", config, tensors), folder / f"s{number}",
                      speech_numpy.speech_outputs(config, tensors, samples), {"input_values": samples[None]})
        assert off <= EXACT, (architecture, changes, off)
        worst = max(worst, off)
    for number, changes in enumerate([{}, {"scale_input": False}]):
        config, tensors = speech_numpy.parakeet(number, **changes)
        features = rng.standard_normal((50, speech_numpy.BANDS)).astype("f4")
        off = compare(write(folder / f"parakeet{number}", config, tensors), folder / f"p{number}",
                      speech_numpy.parakeet_outputs(config, tensors, features), {"input_features": features[None]})
        assert off <= EXACT, ("parakeet", changes, off)
        worst = max(worst, off)
    for number, (members, architecture, changes) in enumerate(CONFORMERS):
        config = {"architectures": [architecture], "id2label": {str(i): f"L{i}" for i in range(conformer_numpy.LABELS)}} | members | changes
        bert = "Bert" in architecture
        given = rng.standard_normal((20, conformer_numpy.BANDS) if bert else 200).astype("f4")
        tensors, wanted = conformer_numpy.made(config, given, number)
        off = compare(write(folder / f"conformer{number}", config, tensors), folder / f"c{number}", wanted,
                      {"input_features" if bert else "input_values": given[None]})
        assert off <= EXACT, (architecture, changes, off)
        worst = max(worst, off)
    for number, (model_type, changes) in enumerate(TINY_SEQUENCES):
        config, tensors = speech_numpy.sequence(model_type, number, **changes)
        ids, output_ids = (rng.integers(4, speech_numpy.VOCABULARY, count) for count in (20, 18))
        ids[[11, 16]] = 3  # eos, of which the last one counts
        off = compare(write(folder / f"sequence{number}", config, tensors), folder / f"q{number}",
                      speech_numpy.sequence_outputs(config, tensors, ids, output_ids),
                      {"input_ids": ids[None], "decoder_input_ids": output_ids[None]})
        assert off <= EXACT, (model_type, changes, off)
        worst = max(worst, off)
    for number, changes in enumerate([{}, {"_head": "Model", "scale_embedding": False}]):
        config, tensors = speech_numpy.sequence("speech_to_text", number, **changes)
        features, output_ids = rng.standard_normal((50, speech_numpy.BANDS)).astype("f4"), rng.integers(4, speech_numpy.VOCABULARY, 18)
        off = compare(write(folder / f"frames{number}", config, tensors), folder / f"f{number}",
                      speech_numpy.sequence_outputs(config, tensors, features, output_ids),
                      {"input_features": features[None], "decoder_input_ids": output_ids[None]})
        assert off <= EXACT, ("speech_to_text", changes, off)
        worst = max(worst, off)
    for number, changes in enumerate([{}, {"use_weighted_layer_sum": True}]):
        config, tensors = speech_numpy.whisper(number, **changes)
        features = rng.standard_normal((speech_numpy.BANDS, 24)).astype("f4")
        off = compare(write(folder / f"whisper{number}", config, tensors), folder / f"w{number}",
                      speech_numpy.whisper_outputs(config, tensors, features), {"input_features": features[None]})
        assert off <= EXACT, ("whisper", changes, off)
        worst = max(worst, off)
    print(f"# {len(TINY_SPEECH) + len(TINY_SEQUENCES) + len(CONFORMERS) + 6} tiny folders within {worst:.1e} of NumPy")


def test_languages(folder):
    """A folder without the adapters of a language takes them, and the head, from the language's file."""
    config, tensors = speech_numpy.speech("Wav2Vec2ForCTC", 3, adapter_attn_dim=speech_numpy.ADAPTER, **LAYER_NORMS)
    samples = np.random.default_rng(6).standard_normal(300).astype("f4")
    wanted = speech_numpy.speech_outputs(config, tensors, samples)
    own = {name: tensor for name, tensor in tensors.items() if "adapter_layer" in name or name.startswith("lm_head")}
    model = write(folder / "m", config, {name: tensor for name, tensor in tensors.items() if name not in own})
    expect(run("inspect", "--ops", model), 1, "missing-tensor", "adapter.LANGUAGE.safetensors")
    stored = {name.removeprefix("wav2vec2."): tensor for name, tensor in own.items()}
    (model / "adapter.fra.safetensors").write_bytes(safetensors.of(stored))
    assert compare(model, folder / "out1", wanted, {"input_values": samples[None]}) <= EXACT
    (model / "adapter.deu.safetensors").write_bytes(safetensors.of({name: tensor * 0 for name, tensor in stored.items()}))
    (model / "config.json").write_text(json.dumps(config | {"target_lang": "fra"}))
    assert compare(model, folder / "out2", wanted, {"input_values": samples[None]}) <= EXACT
    (model / "config.json").write_text(json.dumps(config | {"target_lang": "ita"}))
    expect(run("inspect", "--ops", model), 1, "missing-tensor", "ita", "deu, fra")


def test_letters(folder):
    """Models with a head for CTC print what they hear, from samples that are normalised as preprocessor_config.json says."""
    config, tensors = speech_numpy.speech("Wav2Vec2ForCTC", 13, pad_token_id=16, conv_bias=True, feat_extract_norm="layer")
    samples = np.random.default_rng(8).standard_normal(200).astype("f4") / 9 + 0.2
    # No token is likely in all frames.
    tensors["lm_head.bias"] -= speech_numpy.speech_outputs(config, tensors, samples)["logits"][0].mean(0).astype("f4")
    model = write(folder / "m", config, tensors)
    sound = wav(folder / "sound.wav", samples)
    words = ["|" if i % 5 == 1 else "<unk>" if i == 3 else chr(0x61 + i) if i < 26 else chr(0x3b1 + i - 26) for i in range(speech_numpy.VOCABULARY)]

    def heard(given):
        best = speech_numpy.speech_outputs(config, tensors, given)["logits"][0].argmax(1).tolist()
        return [token for i, token in enumerate(best) if token != 16 and (i == 0 or best[i - 1] != token)]
    plain, normal = heard(samples), heard((samples - samples.mean()) / np.sqrt(samples.var() + 1e-7))
    assert plain != normal and len(normal) > 3, (plain, normal)
    ids = lambda: expect(run("run", model, "--audio", sound, "--json"), 0).answer["tokens"]
    assert ids() == normal
    (model / "preprocessor_config.json").write_text(json.dumps({"do_normalize": False, "sampling_rate": 16000}))
    assert ids() == plain
    (model / "preprocessor_config.json").write_text(json.dumps({"do_normalize": True}))
    assert expect(run("run", model, "--audio", sound), 0).stdout.strip() == " ".join(map(str, normal))
    vocabulary = {word: i for i, word in reversed(list(enumerate(words)))}
    written = "".join(next((word for word, i in vocabulary.items() if i == token), "") for token in normal).replace("|", " ").strip()
    (model / "vocab.json").write_text(json.dumps({"eng": vocabulary}))
    (model / "tokenizer_config.json").write_text(json.dumps({"target_lang": "eng", "word_delimiter_token": "|"}))
    expect(run("compile", model, "-o", folder / "p.mlpackage", "--precision", "fp32"), 0)
    for what in (model, folder / "p.mlpackage"):
        assert expect(run("run", what, "--audio", sound), 0).stdout == written + "\n", what
    (model / "vocab.json").write_text(json.dumps({"a": "one"}))
    expect(run("inspect", "--ops", model), 1, "bad-file", "vocab.json")
    expect(run("run", folder / "p.mlpackage", "--audio", sound, "--beams", 2), 2, "usage", "CTC")
    expect(run("run", folder / "p.mlpackage", "--audio", wav(folder / "slow.wav", samples, 8000)), 1, "bad-input", "8000 samples per second")


def test_refusals(folder):
    """Numbers and keys that do not fit are refused with the key or what was found."""
    speech = speech_numpy.speech("Wav2Vec2Model")
    sequence = {kind: speech_numpy.sequence(kind) for kind in ("t5", "m2m_100", "marian")}
    cases = [(speech, {"conv_dim": [], "conv_kernel": [], "conv_stride": []}, "0 convolutions"), (speech, {"conv_stride": [1]}, "conv_stride"),
             (speech, {"conv_stride": [0, 1, 1]}, "0 samples between"), (speech, {"num_attention_heads": 0}, "0 heads"),
             (speech, {"hidden_size": 2**31 - 1}, "dimensions of a hidden state"), (speech, {"feat_extract_norm": "batch"}, "feat_extract_norm"),
             (speech, {"architectures": ["Wav2Vec2ForMaskedLM"]}, "architectures"), (speech, {"num_hidden_layers": "two"}, "num_hidden_layers"),
             (speech, {"num_conv_pos_embedding_groups": 3}, "groups of positions"), (speech, {"num_hidden_layers": 1}, "unused-tensor"),
             (sequence["t5"], {"num_heads": 0}, "0 heads"), (sequence["t5"], {"relative_attention_num_buckets": 0}, "0 buckets"),
             (sequence["t5"], {"feed_forward_proj": "gated-mish"}, "mish"), (sequence["t5"], {"architectures": ["T5ForTokenClassification"]}, "architectures"),
             (sequence["m2m_100"], {"max_position_embeddings": 2**31 - 1}, "positions"), (sequence["m2m_100"], {"decoder_layers": 7}, "missing-tensor"),
             (sequence["marian"], {"scale_embedding": 3}, "scale_embedding"), (sequence["marian"], {"vocab_size": -1}, "-1 tokens")]
    for number, ((config, tensors), changes, text) in enumerate(cases):
        model = write(folder / f"{number}", config | changes, tensors)
        expect(run("inspect", "--ops", model), 1, text)


def test_whisper_kit(folder):
    """WhisperKit's three packages have its names and shapes, and compute what the model computes, token by token."""
    model = CORPUS / "folders" / "hf_whisper_gen"
    if not model.exists():
        return print("# WhisperKit: skipped, there is no corpus")
    kit, oracle = folder / "kit", np.load(model / "oracle.npz")
    expect(run("compile", model, "-o", kit, "--runtime", "whisperkit"), 0)
    assert (kit / "config.json").exists() and (kit / "generation_config.json").exists()

    def compute(name, **given):
        arguments = []
        for key, value in given.items():
            np.save(folder / f"{key}.npy", value)
            arguments += ["--input", f"{key}={folder / key}.npy"]
        expect(run("run", kit / f"{name}.mlpackage", *arguments, "--output-dir", folder / name), 0)
        return {path.stem: np.load(path).astype("f4") for path in (folder / name).glob("*.npy")}
    samples = np.zeros(32000, "f2")
    sound = np.load(model / "sound.npy").ravel()[:32000]
    samples[:len(sound)] = sound
    mel = compute("MelSpectrogram", audio=samples)["melspectrogram_features"]
    assert mel.shape == (1, 80, 1, 200) and error(mel[:, :, 0], oracle["in_input_features"]) <= PACKAGE
    states = compute("AudioEncoder", melspectrogram_features=mel.astype("f2"))["encoder_output_embeds"]
    assert states.shape == (1, 40, 1, 100) and error(states[:, :, 0].transpose(0, 2, 1), oracle["out_encoder_last_hidden_state"]) <= 2 * PACKAGE
    keys, values, logits = np.zeros((1, 80, 1, 32), "f2"), np.zeros((1, 80, 1, 32), "f2"), []
    for at, token in enumerate(oracle["in_decoder_input_ids"][0]):
        here = np.arange(32)[None]
        found = compute("TextDecoder", input_ids=np.array([token], "i4"), cache_length=np.array([at], "i4"), key_cache=keys,
                        value_cache=values, kv_cache_update_mask=(here == at).astype("f2"), encoder_output_embeds=states.astype("f2"),
                        decoder_key_padding_mask=np.where(here <= at, 0, -1e4).astype("f2"))
        keys[..., at], values[..., at] = found["key_cache_updates"][..., 0], found["value_cache_updates"][..., 0]
        assert found["alignment_heads_weights"].shape == (1, 100) and abs(found["alignment_heads_weights"].sum() - 1) < 1e-2
        logits.append(found["logits"][0])
    assert error(np.concatenate(logits)[None], oracle["out_logits"]) <= 2 * PACKAGE
    expect(run("compile", model, "-o", folder / "one.mlpackage", "--runtime", "whisperkit"), 2, "usage", "makes three")
    expect(run("compile", CORPUS / "folders" / "hf_bart", "-o", folder / "bart", "--runtime", "whisperkit"), 2, "usage", "not Whisper")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "speech"))
