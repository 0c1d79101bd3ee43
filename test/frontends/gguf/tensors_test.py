#!/usr/bin/env python3
"""Tests that the required, optional and ignored tensors of a GGUF file are the same as in llama.cpp: each tensor is left
out, and each tensor of other architectures is added. If LLAMA_DIR is set, llama.cpp provides the expected results for all of
them; otherwise WRONG and IGNORED do."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import keys_test
import llama_cpp
import rows
from driver import expect, parallel, run, run_tests
from language_models import error, refused

# (architecture, tensors that are added or, after a -, left out) that mlc rejects although llama.cpp does not: tensors
# without a row, or tensors that mlc requires.
STRICTER = {("stablelm", "- blk.*.ffn_norm.weight")} | {
    (architecture, f"- blk.*.{name}.bias") for architecture, names in (
        ("gpt-oss", ("attn_q", "attn_k", "attn_v")), ("starcoder2", ("attn_q", "attn_k", "attn_v")), ("phi2", ("attn_qkv",)))
    for name in names}
# Changes that llama.cpp rejects (src/models/NAME.cpp, load_arch_tensors); names without a layer belong to no layer.
WRONG = [("llama", "output.bias"), ("llama", "output_norm.bias"), ("llama", "rope_factors"), ("llama", "attn_norm.bias"),
         ("cohere2", "output.weight"), ("cohere2", "ffn_norm"), ("gemma", "output.weight"), ("qwen3", "rope_freqs.weight"),
         ("qwen3", "attn_q_norm.bias"), ("qwen2", "attn_output.bias"), ("qwen3moe", "shexp"), ("qwen3moe", "ffn_gate_inp.bias"),
         ("mamba", "ssm_in.bias"), ("qwen35", "ssm_conv1d.bias"), ("lfm2", "shortconv.in_proj.bias"), ("falcon", "attn_qkv.bias"),
         ("gpt-oss", "- output.weight"), ("gptneox", "- output.weight"), ("olmo2", "- output.weight"), ("stablelm", "- output.weight"),
         ("qwen2moe", "- output.weight"), ("gpt2", "- output_norm.bias"), ("phi2", "- output.bias"), ("gptneox", "- blk.*.attn_qkv.bias"),
         ("qwen2moe", "- blk.*.ffn_gate_inp_shexp.weight")]
IGNORED = [("ernie4_5", "attn_output.bias")]
random = np.random.default_rng(5)


def some(*shape):
    return (random.standard_normal(shape) / 4 + (len(shape) == 1)).astype("f4")


def added(numbers, tensors):
    """Returns {name of the variant: the tensors that it adds}."""
    layers, width, vocabulary = numbers["block_count"], numbers["embedding_length"], len(tensors["token_embd.weight"])
    factors = np.array([1, 1.5, 2, 4], "f4")
    made = {"output.bias": {"output.bias": some(vocabulary)}, "output_norm.bias": {"output_norm.bias": some(width)},
            "rope_freqs.weight": {"rope_freqs.weight": factors}, "output.weight": {"output.weight": some(vocabulary, width)},
            "rope_factors": {"rope_factors_long.weight": factors, "rope_factors_short.weight": factors},
            "token_embd_norm.weight": {"token_embd_norm.weight": some(width)}}

    def each(name, of):
        """Adds a variant with the missing tensors of each layer, where of(tensors of the layer) returns {name: tensor}."""
        here = {}
        for layer in range(layers):
            own = {key.split(".", 2)[2]: tensor for key, tensor in tensors.items() if key.startswith(f"blk.{layer}.")}
            here |= {f"blk.{layer}.{key}": tensor for key, tensor in of(own).items() if key not in own}
        if here:
            made[name] = here

    def bias(stem):
        def of(own):
            weight = own.get(f"{stem}.weight")
            return {} if weight is None else {f"{stem}.bias": some(*(weight.shape[:-1] or weight.shape))}
        return of

    for stem in sorted({name.split(".", 2)[2].removesuffix(".weight") for name in tensors if re.fullmatch(r"blk.*\.weight", name)}):
        each(f"{stem}.bias", bias(stem))
    for norm in ("attn_norm", "ffn_norm", "attn_norm_2", "post_attention_norm", "post_ffw_norm"):
        each(norm, lambda own: {f"{norm}.weight": some(width)})
        each(f"{norm}+bias", lambda own: {} if f"{norm}.weight" in own else {f"{norm}.weight": some(width), f"{norm}.bias": some(width)})
    each("qk_norm", lambda own: {f"attn_{c}_norm.weight": some(rows.HEAD) for c in "qk"} if "attn_q.weight" in own else {})
    each("qk_norm of each", lambda own: {f"attn_{c}_norm.weight": some(len(own[f"attn_{c}.weight"]) // rows.HEAD, rows.HEAD) for c in "qk"}
         if "attn_q.weight" in own else {})
    each("attn_sinks", lambda own: {"attn_sinks.weight": some(rows.HEADS)} if "attn_output.weight" in own else {})
    each("ffn_gate", lambda own: {"ffn_gate.weight": some(rows.INNER, width)} if "ffn_up.weight" in own else {})
    each("shexp", lambda own: {"ffn_gate_inp_shexp.weight": some(width)} | {
        f"ffn_{name}_shexp.weight": some(*shape) for name, shape in
        (("gate", (rows.INNER, width)), ("up", (rows.INNER, width)), ("down", (width, rows.INNER)))} if "ffn_gate_inp.weight" in own else {})
    return made


def changed(numbers, tensors):
    """Returns {name: tensors} of added(), and of each left-out tensor."""
    def stem(name):
        return re.sub(r"^blk\.\d+\.", "blk.*.", name)

    return {name: tensors | more for name, more in added(numbers, tensors).items() if not set(more) & set(tensors)} | {
        f"- {gone}": {name: tensor for name, tensor in tensors.items() if stem(name) != gone} for gone in {stem(name): 0 for name in tensors}}


def theirs(paths):
    """Does the same as keys_test.theirs; llama.cpp crashes for some files that lack a tensor, which counts as a rejection."""
    try:
        return keys_test.theirs(paths)
    except AssertionError:
        if len(paths) == 1:
            return [None]
        return theirs(paths[:len(paths) // 2]) + theirs(paths[len(paths) // 2:])


def test_listed(folder):
    for number, (architecture, name) in enumerate(WRONG + IGNORED):
        numbers, tensors = rows.model(architecture)
        path = rows.write(folder / f"{number}.gguf", architecture, numbers, changed(numbers, tensors)[name])
        shown = run("inspect", "--ops", path)
        if (architecture, name) in WRONG:
            refused(shown, "missing-tensor" if name.startswith("-") else "unused-tensor", name.split(".")[-2].strip("- *") if "." in name else "")
            continue
        expect(shown, 0, "unused-tensor")
        own = rows.write(folder / "own.gguf", architecture, numbers, tensors)
        assert np.array_equal(keys_test.mine(path, folder), keys_test.mine(own, folder)), (architecture, name)


def test_all(folder):
    if not llama_cpp.libraries(os.environ.get("LLAMA_DIR", "/none")):
        print("# tensors against llama.cpp: skipped, LLAMA_DIR does not name it")
        return

    def one(architecture):
        own = folder / architecture
        own.mkdir()
        numbers, tensors = rows.model(architecture)
        files = {name: rows.write(own / f"{i}.gguf", architecture, numbers, kept)
                 for i, (name, kept) in enumerate(changed(numbers, tensors).items())}
        wrong = []
        for (name, path), expected in zip(files.items(), theirs(list(files.values()))):
            # llama.cpp's context is larger than the model's, so Phi-3 uses the other factors.
            if (architecture, name) in STRICTER | {("phi3", "rope_factors")}:
                continue
            found = keys_test.mine(path, own)
            if (found is None) != (expected is None):
                wrong.append(f"{architecture}, {name}: {'refused' if found is None else 'runs'} here alone")
            elif found is not None and error(found, expected) > keys_test.near(architecture):
                wrong.append(f"{architecture}, {name}: {error(found, expected)}")
        return len(files), wrong

    found = parallel(one, keys_test.ALL)
    wrong = [each for _, some in found for each in some]
    assert not wrong, "\n".join(wrong)
    print(f"# tensors against llama.cpp: {sum(count for count, _ in found)} files of {len(found)} architectures")


def test_fused_queries(folder):
    """Queries, keys and values in one tensor, with rotary pairs of adjacent elements, give the same result as three tensors."""
    for architecture in ("llama", "cohere2", "ernie4_5", "granite", "smollm3"):
        numbers, tensors = rows.model(architecture)
        fused = dict(tensors)
        for layer in range(numbers["block_count"]):
            fused[f"blk.{layer}.attn_qkv.weight"] = np.concatenate([fused.pop(f"blk.{layer}.attn_{c}.weight") for c in "qkv"])
        files = [rows.write(folder / f"{i}.gguf", architecture, numbers, kept) for i, kept in enumerate((tensors, fused))]
        wanted, found = (keys_test.mine(path, folder) for path in files)
        assert error(found, wanted) < 1e-5, (architecture, error(found, wanted))
        expected = keys_test.theirs(files[1:])
        assert not expected or error(found, expected[0]) < 1e-5, architecture


def test_norms_of_attention(folder):
    """Falcon's second norm takes the place of the first before attention only, and StableLM's norms of queries and keys have one scale
    per head: a factor of the queries that share a key head does what it does to the key."""
    def logits_of(architecture, numbers, *variants):
        return [keys_test.mine(rows.write(folder / f"{architecture}{i}.gguf", architecture, numbers, tensors), folder)
                for i, tensors in enumerate(variants)]

    numbers, tensors = rows.model("falcon")
    same = {name.replace("attn_norm.", "attn_norm_2."): tensor for name, tensor in tensors.items() if ".attn_norm." in name}
    plain, equal, other = logits_of("falcon", numbers, tensors, tensors | same, tensors | {name: 2 * tensor for name, tensor in same.items()})
    assert np.array_equal(plain, equal) and error(other, plain) > 1e-2, (error(equal, plain), error(other, plain))

    numbers, tensors = rows.model("stablelm")
    group, factors = rows.HEADS // rows.KEY_HEADS, np.linspace(1, 3, rows.KEY_HEADS, dtype="f4")[:, None]
    norms = {f"blk.{layer}.attn_{c}_norm.weight": some(heads, rows.HEAD) for layer in range(numbers["block_count"])
             for c, heads in (("q", rows.HEADS), ("k", rows.KEY_HEADS))}
    queries = {name: norm * np.repeat(factors, group, 0) if "_q_" in name else norm for name, norm in norms.items()}
    keys = {name: norm * factors if "_k_" in name else norm for name, norm in norms.items()}
    plain, by_queries, by_keys = logits_of("stablelm", numbers, *(tensors | made for made in (norms, queries, keys)))
    assert error(by_keys, by_queries) < 1e-5 < 1e-2 < error(by_keys, plain), (error(by_keys, by_queries), error(by_keys, plain))


def test_sizes(folder):
    """As in llama.cpp, there must be as many tokens as embeddings, and whole heads must be rotated."""
    for architecture, more in (("llama", {"vocab_size": rows.VOCABULARY + 1}), ("llama", {"rope.dimension_count": rows.HEAD // 2}),
                               ("falcon", {"rope.dimension_count": rows.HEAD // 2})):
        numbers, tensors = rows.model(architecture)
        path = rows.write(folder / "size.gguf", architecture, numbers | more, tensors)
        refused(run("inspect", "--ops", path), "bad-file", f"{architecture}.{next(iter(more))}")
        assert (keys_test.theirs([path]) or [None]) == [None], more


if __name__ == "__main__":
    sys.exit(run_tests({name: test for name, test in globals().items() if not hasattr(keys_test, name)}, "tensors of GGUF files"))
