#!/usr/bin/env python3
"""Tests that keys and tensor shapes of a GGUF file have the same meaning as in llama.cpp. For each architecture there is a
tiny file with each key that some architectures have, and with more or fewer dimensions of 1 for each tensor. If LLAMA_DIR is
set, llama.cpp provides the expected results; otherwise READS, REQUIRED and the file without the key do."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import llama_cpp
import rows
from driver import parallel, run, run_tests
from language_models import error, refused

IDS = [int(token) for token in np.random.default_rng(3).integers(0, rows.VOCABULARY, 24)]
ALL = sorted([*rows.ROWS, *rows.RECURRENT])
# Relative root mean square errors; llama.cpp computes GELU with an fp16 table.
EXACT, GELU = 1e-5, 1e-3
OF_GELU = {"falcon", "gemma", "gemma2", "gemma3", "gpt2", "gptneox", "phi2", "starcoder2"}

# The architectures that use each key; it does not affect files of others (llama.cpp, src/models/NAME.cpp, load_arch_hparams
# and graph).
READS = {
    "attention.scale": {"granite"}, "embedding_scale": {"granite"}, "residual_scale": {"granite"}, "logit_scale": {"cohere2", "granite"},
    "attn_logit_softcapping": {"gemma2"}, "final_logit_softcapping": {"gemma2", "gemma3"}, "use_parallel_residual": {"gptneox"},
    "attention.sliding_window": {"cohere2", "gemma2", "gemma3", "gpt-oss", "lfm2"}, "rope.scaling.finetuned": {"granite"},
}
REQUIRED = {
    "attention.sliding_window": {"cohere2", "gpt-oss"}, "logit_scale": {"cohere2", "granite"}, "use_parallel_residual": {"gptneox"},
    "expert_feed_forward_length": {"gpt-oss"}, "rope.dimension_sections": {"qwen35"}, "ssm.group_count": {"mamba2", "qwen35"},
}
WITHOUT_ATTENTION = {"mamba", "mamba2"}
UNSUPPORTED = {("olmo2", "attention.sliding_window")}
OTHER = {"attention.scale": 0.6, "embedding_scale": 3.0, "residual_scale": 0.5, "logit_scale": 0.7, "attn_logit_softcapping": 0.5,
         "final_logit_softcapping": 0.5, "use_parallel_residual": False, "attention.sliding_window": 3, "rope.scaling.finetuned": False}

YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 2000}
SCALINGS = {
    "factor": {"rope.scaling.factor": 3.0}, "older factor": {"rope.scale_linear": 3.0}, "yarn": YARN,
    "factor 0": {"rope.scaling.type": "linear", "rope.scaling.factor": 0.0}, "yarn 0": YARN | {"rope.scaling.factor": 0.0},
    "yarn below 1": YARN | {"rope.scaling.factor": 0.5}, "betas": YARN | {"rope.scaling.yarn_beta_fast": 2.0, "rope.scaling.yarn_beta_slow": 0.5},
    "yarn and magnitude": YARN | {"rope.scaling.attn_factor": 1.5}, "magnitude": {"rope.scaling.attn_factor": 1.5},
    "longrope": {"rope.scaling.type": "longrope", "rope.scaling.factor": 3.0}, "none": {"rope.scaling.type": "none", "rope.scaling.factor": 3.0},
    "local base": {"rope.freq_base_swa": 50.0}, "yarn and local base": YARN | {"rope.freq_base_swa": 50.0},
}
CASES = {key: {key: number} for key, number in OTHER.items()} | SCALINGS | {
    "parallel": {"use_parallel_residual": True}, "pattern 3": {"attention.sliding_window_pattern": 3},
    "pattern 0": {"attention.sliding_window_pattern": 0}, "older scales 0": {"embedding_scale": 0.0, "residual_scale": 0.0, "attention.scale": 0.0},
    "of others": {"attention.clamp_kqv": 0.1, "attention.max_alibi_bias": 8.0},
    "experts": {"expert_weights_scale": 2.0, "expert_weights_norm": False, "expert_gating_func": 2},
}


def near(architecture):
    return GELU if architecture in OF_GELU else EXACT


def theirs(paths):
    """Returns llama.cpp's logits for each file, or None for a file that it rejects. Returns None if llama.cpp is not
    available."""
    answer = llama_cpp.ask({"models": [str(path) for path in paths], "logits": IDS})
    return answer and [None if rows is None else np.array(rows) for rows in answer["logits"]]


def mine(path, folder):
    """Returns mlc's logits, or None if it rejects the file."""
    out = folder / path.stem
    result = run("run", path, "--tokens", ",".join(map(str, IDS)), "--output-dir", out)
    assert result.code in (0, 1, 2), result.stderr
    return np.load(out / "logits.npy") if result.code == 0 else None


def each_architecture(title, folder, variants, check, architectures=ALL):
    """Calls check(architecture, name, logits or None, llama.cpp's or None, whether llama.cpp was asked) for each of
    variants(architecture), {name: (numbers, tensors)}."""
    def one(architecture):
        own = folder / architecture
        own.mkdir(exist_ok=True)
        files = {name: rows.write(own / f"{i}.gguf", architecture, *what) for i, (name, what) in enumerate(variants(architecture).items())}
        wanted = theirs(files.values())
        wrong = []
        for i, (name, path) in enumerate(files.items()):
            try:
                check(architecture, name, mine(path, own), wanted and wanted[i], wanted is not None)
            except AssertionError as failure:
                wrong.append(str(failure))
        return len(files), wanted is not None, wrong

    found = parallel(one, architectures)
    wrong = [each for _, _, some in found for each in some]
    assert not wrong, "\n".join(wrong)
    if all(asked for _, asked, _ in found):
        print(f"# {title} against llama.cpp: {sum(count for count, _, _ in found)} files of {len(found)} architectures")
    else:
        print(f"# {title} against llama.cpp: skipped, LLAMA_DIR does not name it")


def test_keys(folder):
    base = {}

    def variants(architecture):
        numbers, tensors = rows.model(architecture)
        cases = CASES | ({"not causal": {"attention.causal": False}} if architecture in WITHOUT_ATTENTION else {})
        return {"itself": (numbers, tensors)} | {name: (numbers | more, tensors) for name, more in cases.items()
                                                 if (architecture, name) not in UNSUPPORTED}

    def check(architecture, name, found, expected, asked):
        where = f"{architecture}, {name}"
        assert found is not None, f"{where}: refused"
        if name == "itself":
            base[architecture] = found
        if asked:
            assert expected is not None and error(found, expected) < near(architecture), f"{where}: {error(found, expected)}"
        if name in READS:
            assert np.array_equal(found, base[architecture]) != (architecture in READS[name]), where

    each_architecture("keys", folder, variants, check)


def test_required_keys(folder):
    for architecture in ALL:
        numbers, tensors = rows.model(architecture)
        needed = [rows.epsilon_key(architecture)] + [key for key, of in REQUIRED.items() if architecture in of]
        files = [rows.write(folder / f"{i}.gguf", architecture, {name: number for name, number in numbers.items() if name != key}, tensors)
                 for i, key in enumerate(needed)]
        for key, path in zip(needed, files):
            refused(run("inspect", "--ops", path), "bad-file", f'"{architecture}.{key}"')
        assert all(each is None for each in theirs(files) or []), architecture


def test_experts_in_groups(folder):
    numbers, tensors = rows.model("qwen3moe")
    for groups, code in ((1, 0), (2, 1)):
        result = run("inspect", "--ops", rows.write(folder / "g.gguf", "qwen3moe", numbers | {"expert_group_count": groups}, tensors))
        assert result.code == code and (code == 0 or "expert selection within groups" in result.stderr), (groups, result.stderr)


def test_zeros(folder):
    """A value of 0 is rejected if llama.cpp would divide by it or hide all keys; for other keys it means that there is no
    such value."""
    for architecture, key in (("gemma2", "attn_logit_softcapping"), ("gemma2", "final_logit_softcapping"), ("granite", "logit_scale"),
                              ("cohere2", "attention.sliding_window"), ("gemma2", "attention.sliding_window"),
                              ("gpt-oss", "attention.sliding_window")):
        numbers, tensors = rows.model(architecture)
        zero = 0 if key.endswith("window") else 0.0
        refused(run("inspect", "--ops", rows.write(folder / "zero.gguf", architecture, numbers | {key: zero}, tensors)), "bad-file")

    def variants(architecture):
        numbers, tensors = rows.model(architecture)
        return {key: (numbers | {key: zero}, tensors) for key, zero in (
            ("final_logit_softcapping", 0.0), ("logit_scale", 0.0), ("attention.sliding_window", 0), ("attention.scale", 0.0))
            if architecture != "cohere2" or key != "attention.sliding_window"}

    def check(architecture, key, found, expected, asked):
        assert found is not None and (not asked or error(found, expected) < near(architecture)), (architecture, key)

    each_architecture("zeros", folder, variants, check, ("gemma3", "lfm2", "cohere2", "llama"))


def test_windows_of_many_layers(folder):
    """EXAONE 4 has windows only in its model with 64 layers."""
    more = {"window": {"attention.sliding_window": 3}, "pattern": {"attention.sliding_window": 3, "attention.sliding_window_pattern": 2},
            "base": {"attention.sliding_window": 3, "rope.freq_base_swa": 50.0}, "usual": {}}

    def variants(architecture):
        return {f"{layers} {name}": ((made := rows.model(architecture, layers))[0] | numbers, made[1])
                for layers in (4, 64) for name, numbers in more.items()}

    found_of = {}

    def check(architecture, name, found, expected, asked):
        assert found is not None, name
        # Rounding errors of fp32 accumulate over 64 layers.
        assert not asked or error(found, expected) < (1e-4 if name.startswith("64") else EXACT), (name, error(found, expected))
        found_of[name] = found

    each_architecture("windows of EXAONE 4", folder, variants, check, ["exaone4"])
    assert np.array_equal(found_of["4 window"], found_of["4 usual"]) and not np.array_equal(found_of["64 window"], found_of["64 usual"])


def test_other_heads_in_windows(folder):
    for key in ("rope.dimension_count_swa", "attention.key_length_swa", "attention.value_length_swa"):
        for architecture in ("cohere2", "gemma2", "gemma3", "gpt-oss", "lfm2"):
            numbers, tensors = rows.model(architecture)
            path = rows.write(folder / "swa.gguf", architecture, numbers | {key: 4, "attention.sliding_window": 3}, tensors)
            refused(run("inspect", "--ops", path), "unsupported-architecture", key)


def test_parallel_residual(folder):
    """StableLM's layers are parallel if they have no feed-forward norm, regardless of the key; GPT-NeoX uses the key."""
    def variants(architecture):
        numbers, tensors = rows.model(architecture)
        made = {}
        for key in (None, False, True) if architecture == "stablelm" else (False, True):
            more = numbers if key is None else numbers | {"use_parallel_residual": key}
            for without in ((), (0, 1), (1,)) if architecture == "stablelm" else ((),):
                kept = {name: tensor for name, tensor in tensors.items()
                        if not any(name.startswith(f"blk.{layer}.ffn_norm") for layer in without)}
                made[f"key {key}, layers {without} without norm"] = more, kept
        return made

    by_tensors = {}

    def check(architecture, name, found, expected, asked):
        assert found is not None, name
        assert not asked or error(found, expected) < near(architecture), (architecture, name, error(found, expected))
        if architecture == "stablelm":
            same = by_tensors.setdefault(name.split(", ", 1)[1], found)
            assert np.array_equal(found, same), name

    each_architecture("parallel residuals", folder, variants, check, ("gptneox", "stablelm"))
    assert len(by_tensors) == 3


def test_dimensions_of_one(folder):
    """ggml does not distinguish [1, n] from [n], so each tensor is tested with one and two additional dimensions of 1, and
    without any."""
    def variants(architecture):
        numbers, tensors = rows.model(architecture)
        if architecture == "mamba2":
            numbers, tensors = one_group(numbers, tensors)
        if architecture == "llama":
            tensors["rope_freqs.weight"] = np.array([1, 1.5, 2, 4], "f4")

        def bare(tensor):
            while tensor.ndim > 1 and tensor.shape[0] == 1:
                tensor = tensor[0]
            return tensor

        forms = {"as they are": lambda tensor: tensor, "without": bare, "one more": lambda tensor: tensor[None],
                 "four": lambda tensor: tensor.reshape((1,) * (4 - tensor.ndim) + tensor.shape)}
        return {form: (numbers, {name: shaped(tensor) for name, tensor in tensors.items()}) for form, shaped in forms.items()}

    def one_group(numbers, tensors):
        """Keeps only the first group, for all heads."""
        groups, inner, state = (numbers[f"ssm.{key}"] for key in ("group_count", "inner_size", "state_size"))
        kept = {}
        for name, tensor in tensors.items():
            if name.endswith(("ssm_in.weight", "ssm_conv1d.weight", "ssm_conv1d.bias")):
                first = inner * 2 if "ssm_in" in name else inner
                parts = [np.arange(first), first + np.arange(state), first + groups * state + np.arange(state),
                         np.arange(first + 2 * groups * state, len(tensor))]
                tensor = tensor[np.concatenate(parts)]
            kept[name] = tensor.reshape(1, inner) if name.endswith("ssm_norm.weight") else tensor
        return numbers | {"ssm.group_count": 1}, kept

    base = {}

    def check(architecture, form, found, expected, asked):
        assert found is not None, f"{architecture}, {form}: refused"
        assert np.array_equal(base.setdefault(architecture, found), found), (architecture, form)
        assert not asked or expected is not None and error(found, expected) < near(architecture), (architecture, form)

    each_architecture("dimensions of 1", folder, variants, check)
    numbers, tensors = rows.model("llama")
    for wrong in (np.ones((rows.WIDTH, 1), "f4"), np.ones((1, rows.WIDTH, 1), "f4"), np.ones((2, rows.WIDTH // 2), "f4")):
        path = rows.write(folder / "wrong.gguf", "llama", numbers, tensors | {"output_norm.weight": wrong})
        refused(run("inspect", "--ops", path), "bad-tensor", "output_norm.weight")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "keys and shapes of GGUF files"))
