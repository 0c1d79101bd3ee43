"""Tests generation with encoder-decoders: texts through a tokenizer, printed as they come, and the rules of generation_config.json with
the search of beams, which are compared with a reading of transformers' generation/logits_process.py and beam_search.py in NumPy."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = map(str, (ROOT, ROOT / "frontends" / "safetensors"))
import numpy as np

import speech_numpy
from driver import CORPUS, MLC, expect, run, run_tests
from speech_test import wav, write
from word_tokenizer import tokenizer

def text_of(words, ids, special):
    return "".join(words[i] for i in ids if i not in special or words[i].startswith("<|") and words[i][2].isdigit()).replace("▁", " ").strip()


def writes_of(*arguments):
    """Returns the individual writes of a run; a datagram socket keeps them separate."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen([str(MLC), *map(str, arguments)], stdout=other, stderr=subprocess.PIPE) as process:
        other.close()
        writes = list(iter(lambda: own.recv(1 << 16), b""))
        error = process.stderr.read().decode()
    own.close()
    assert process.returncode == 0, error
    return [piece.decode() for piece in writes]


def speaks(model, package, wanted, *arguments):
    """The folder and the package print the text, a word at a time; a package has the tokenizer beside it."""
    for what in (model, package):
        writes = writes_of("run", what, *arguments)
        # Spaces beside times are those of the tokenizer.
        said = "".join(writes)
        assert said == wanted + "\n" or "<|" in wanted and "".join(said.split()) == "".join(wanted.split()), (what, writes, wanted)
        assert len(writes) > wanted.count(" "), (what, writes)


def copied(name, folder):
    model = folder / name
    shutil.copytree(CORPUS / "folders" / name, model)
    return model, np.load(model / "oracle.npz")


def test_corpus(folder):
    """Models of the corpus with a tokenizer translate, summarise and transcribe texts and sounds with one command."""
    if not (CORPUS / "folders").exists():
        return print("# texts of encoder-decoders: skipped, there is no corpus")
    for name, special, around in (("hf_bart", {0: "<s>", 1: "<pad>", 2: "</s>"}, ((0,), (2,))),
                                  ("hf_m2m_100", {0: "<s>", 1: "<pad>", 2: "</s>", 23: "<end>", 121: "__de__", 124: "__fr__"}, ((121,), (2,)))):
        model, oracle = copied(name, folder)
        words, package = tokenizer(model, special, 128, around), folder / f"{name}.mlpackage"
        ids = oracle["in_input_ids"][0].tolist()
        prompt = text_of(words, ids[1:-1], special)
        answer = expect(run("run", model, "--prompt", prompt, "--json"), 0).answer
        assert answer["prompt_tokens"] == ids and answer["generated_ids"] == oracle["out_generated_ids"][0].tolist(), answer
        expect(run("compile", model, "-o", package), 0)
        speaks(model, package, text_of(words, oracle["out_generated_ids"][0], special), "--prompt", prompt)
    model, oracle = copied("hf_whisper_gen", folder)
    special = {100: "<|endoftext|>", 101: "<|startoftranscript|>", 102: "<|en|>", 103: "<|de|>", 104: "<|fr|>", 105: "<|es|>",
               106: "<|translate|>", 107: "<|transcribe|>", 108: "<|startoflm|>", 109: "<|startofprev|>", 110: "<|nospeech|>",
               111: "<|notimestamps|>"} | {112 + i: f"<|{i * .02:.2f}|>" for i in range(213 - 112)}
    words, package = tokenizer(model, special, 213), folder / "whisper.mlpackage"
    sound = wav(folder / "A.wav", np.load(model / "sound.npy"))
    expect(run("compile", model, "-o", package), 0)
    for key, options in (("generated_ids", ["--language", "en"]), ("generated_ids_timestamps", ["--language", "en", "--timestamps"]),
                         ("generated_ids_translate_fr", ["--language", "fr", "--task", "translate"])):
        speaks(model, package, text_of(words, oracle[f"out_{key}"][0], special), "--audio", sound, *options)


# ---- transformers' rules and search

def never(scores, tokens):
    scores[[token for token in tokens if token < len(scores)]] = -np.inf


def repeated(n, said, tokens):
    """The tokens that would repeat n tokens of `said`."""
    last = tuple(tokens[len(tokens) - n + 1:])
    return [said[i + n - 1] for i in range(len(said) - n + 1) if n and tuple(said[i:i + n - 1]) == last] if len(tokens) + 1 >= n else []


def processed(scores, s, tokens, begin, most, ids):
    scores, ends = scores.copy(), s["eos_token_id"]
    if (penalty := s.get("repetition_penalty", 1)) != 1:
        at = sorted(set(tokens))
        scores[at] = np.where(scores[at] < 0, scores[at] * penalty, scores[at] / penalty)
    never(scores, repeated(s.get("no_repeat_ngram_size", 0), tokens, tokens))
    never(scores, repeated(s.get("encoder_no_repeat_ngram_size", 0), ids, tokens))
    for word in s.get("bad_words_ids", []):
        if word != [ends] and tokens[len(tokens) - len(word) + 1:] == word[:-1]:
            never(scores, word[-1:])
    if len(tokens) < s.get("min_length", 0) or len(tokens) - begin < s.get("min_new_tokens", 0):
        never(scores, [ends])
    for key, forced, now in (("forced_bos_token_id", s.get("forced_bos_token_id"), len(tokens) == 1),
                             ("forced_eos_token_id", s.get("forced_eos_token_id"), len(tokens) == most - 1)):
        if forced is not None and now:
            scores[:] = -np.inf
            scores[forced] = 0
    never(scores, s.get("suppress_tokens", []))
    if len(tokens) == begin + ("forced_bos_token_id" in s and begin == 1):
        never(scores, s.get("begin_suppress_tokens", []))
    return scores


def log_softmax(x):
    x = x - x.max()
    return x - np.log(np.exp(x).sum())


def generate(logits_of, s, ids):
    """Returns the tokens, and how far apart the closest two scores are whose order matters."""
    begin, most, n, end = [s["decoder_start_token_id"]], s.get("max_length", 20), s.get("num_beams", 1), s["eos_token_id"]
    if "max_new_tokens" in s:
        most = 1 + s["max_new_tokens"]
    if n == 1:
        tokens, gap = begin, np.inf
        while len(tokens) < most and tokens[-1:] != [end] or len(tokens) == 1:
            scores = processed(logits_of(tokens), s, tokens, 1, most, ids)
            best = np.sort(scores)[-2:]
            gap, tokens = min(gap, best[1] - best[0]), tokens + [int(scores.argmax())]
        return tokens, gap
    penalty, early = s.get("length_penalty", 1.0), s.get("early_stopping", False)
    beams, sums, kept, done, gap = [begin] * n, [0.0] + [-1e9] * (n - 1), [], False, np.inf

    def add(tokens, total, length):
        score = total / length ** penalty
        if len(kept) < n or score > min(kept)[0]:
            kept.append((score, tokens))
            if len(kept) > n:
                kept.remove(min(kept))
    while not done and len(beams[0]) < most:
        total = np.stack([before + processed(log_softmax(logits_of(beam)), s, beam, 1, most, ids) for beam, before in zip(beams, sums)])
        count, width = len(beams[0]) + 1, total.shape[1]
        order = np.argsort(-total.ravel(), kind="stable")[:2 * n]
        ranked = np.sort(-total.ravel())[:2 * n + 1]
        ranked = ranked[ranked < 1e8]
        gap = min(gap, *np.diff(ranked), np.inf)
        following, following_sums = [], []
        for rank, at in enumerate(order):
            beam, token = int(at) // width, int(at) % width
            if token == end:
                if rank < n:
                    add(beams[beam], total.ravel()[at], count - 1)
            else:
                following.append(beams[beam] + [token])
                following_sums.append(total.ravel()[at])
            if len(following) == n:
                break
        best = total.ravel()[order].max()
        if len(kept) == n:
            length = most - 1 if early == "never" and penalty > 0 else count - 1
            done = early is True or min(kept)[0] >= best / length ** penalty
        beams, sums = following, following_sums
    if not done:
        for tokens, total in zip(beams, sums):
            add(tokens, total, len(tokens) - 1)
    score, tokens = max(kept)
    if len(kept) > 1:
        gap = min(gap, score - sorted(kept)[-2][0])
    return tokens + [end] * (len(tokens) < most), gap


# Model, settings, and the first seed whose model is clear.
BEAMS = [("mbart", {"num_beams": 3}, 2),
         ("mbart", {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True}, 241),
         ("marian", {"num_beams": 3, "length_penalty": 0.3, "early_stopping": "never", "bad_words_ids": [[1], [5, 6]]}, 8),
         ("marian", {"num_beams": 6, "length_penalty": -1.0, "max_new_tokens": 9}, 103),
         ("t5", {"num_beams": 3, "no_repeat_ngram_size": 2, "min_length": 6}, 2),
         ("t5", {"num_beams": 2, "encoder_no_repeat_ngram_size": 1}, 11),
         ("m2m_100", {"num_beams": 5, "forced_bos_token_id": 7, "forced_eos_token_id": 3, "repetition_penalty": 1.3}, 17),
         ("m2m_100", {"num_beams": 2, "suppress_tokens": [8, 9, 10, 11], "begin_suppress_tokens": [3, 20, 21], "min_new_tokens": 5}, 21),
         # The same rules without beams.
         ("mbart", {"no_repeat_ngram_size": 2, "repetition_penalty": 1.5, "min_length": 5, "forced_eos_token_id": 3}, 0),
         ("t5", {"encoder_no_repeat_ngram_size": 1, "suppress_tokens": [8, 9, 10, 11], "begin_suppress_tokens": [20, 21]}, 4)]
CLEAR = 5e-3  # the caches of the function `decode` are fp16


def speaker(model_type, settings, first=0):
    """Returns a tiny model whose scores are apart, the tokens of a text, and what is generated, with beams and without.
    Seeds are tried from `first` on."""
    for seed in range(first, 1000):
        config, tensors = speech_numpy.sequence(model_type, seed, tie_word_embeddings=False)
        config |= {"eos_token_id": 3}
        # A head of its own, so that a token is not the likeliest one after itself.
        tensors["lm_head.weight"] = np.random.default_rng(seed).standard_normal((speech_numpy.VOCABULARY, speech_numpy.WIDTH)).astype("f4") / 2
        ids = np.random.default_rng(seed).integers(4, speech_numpy.VOCABULARY, 8).tolist()
        rules = {"decoder_start_token_id": config["decoder_start_token_id"], "eos_token_id": 3, "max_length": 10} | settings
        def logits_of(tokens):
            return speech_numpy.sequence_outputs(config, tensors, ids, tokens)["logits"][0, -1]
        found, gap = generate(logits_of, rules, ids)
        if gap > CLEAR and len(set(found)) > 3:
            greedy, _ = generate(logits_of, rules | {"num_beams": 1}, ids)
            if "num_beams" not in rules or found != greedy:
                return config, tensors, rules, ids, found, greedy
    raise AssertionError(f"no clear model for {settings}")


def test_beams(folder):
    ended = 0
    for number, (model_type, settings, seed) in enumerate(BEAMS):
        config, tensors, rules, ids, wanted, greedy = speaker(model_type, settings, seed)
        model, listed = write(folder / f"{number}", config, tensors), ",".join(map(str, ids))
        (model / "generation_config.json").write_text(json.dumps(rules))
        answer = expect(run("run", model, "--tokens", listed, "--generate", rules.get("max_new_tokens", 9), "--json"), 0).answer
        assert answer["generated_ids"] == wanted, (model_type, settings, answer["generated_ids"], wanted)
        assert answer["finish"] == ("stop" if wanted[-1] == 3 else "length"), answer
        ended += wanted[-1] == 3
        if number == 0:
            expect(run("compile", model, "-o", folder / "p.mlpackage"), 0)
            assert expect(run("run", folder / "p.mlpackage", "--tokens", listed, "--json"), 0).answer["generated_ids"] == wanted
            assert expect(run("run", model, "--tokens", listed, "--beams", 1, "--json"), 0).answer["generated_ids"] == greedy
            # What is not done is said.
            (model / "generation_config.json").write_text(json.dumps(rules | {"do_sample": True, "num_beam_groups": 3}))
            said = run("run", model, "--tokens", listed)
            assert said.code == 0 and "do_sample" in said.stderr and "num_beam_groups" in said.stderr, said
            (model / "generation_config.json").write_text(json.dumps(rules))
            tokenizer(model, {0: "<unk>", 1: "<pad>", 2: "<s>", 3: "</s>"}, speech_numpy.VOCABULARY)
            shown = writes_of("run", model, "--tokens", listed)
            assert "".join(shown) == expect(run("run", model, "--tokens", listed, "--json"), 0).answer["text"] + "\n", shown
    assert 2 <= ended < len(BEAMS), ended
    print(f"# {len(BEAMS)} tiny models generate what the algorithm of transformers generates")


def test_lengths(folder):
    """max_length counts the first token of the decoder, too; its default, 20, does not."""
    config, tensors = speech_numpy.sequence("mbart")
    model = write(folder / "m", config, tensors)
    for rules, count in (({}, 21), ({"max_length": 20}, 21), ({"max_length": 15}, 15), ({"max_new_tokens": 15}, 16)):
        (model / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 2, "num_beams": 1} | rules))
        ids = expect(run("run", model, "--tokens", "5,6", "--json"), 0).answer["generated_ids"]
        assert len(ids) == count, (rules, ids)


def test_refusals(folder):
    config, tensors = speech_numpy.sequence("mbart")
    model = write(folder / "m", config, tensors)
    for key, value, expected in (("num_beams", 0, "1 to 256"), ("num_beams", 10**9, "1 to 256"), ("early_stopping", "soon", "never"),
                                 ("length_penalty", "long", "length_penalty"), ("num_beams", [2], "num_beams")):
        (model / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 2, "eos_token_id": 3, key: value}))
        expect(run("run", model, "--tokens", "5,6"), 1, "bad-file", expected)
    (model / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 2, "eos_token_id": 3}))
    expect(run("run", model, "--tokens", "5,6", "--beams", 0), 2, "usage", "1 to 256")
    expect(run("run", model, "--beams", 2), 2, "usage", "--beams")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "sequence_generation"))
