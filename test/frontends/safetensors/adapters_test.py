#!/usr/bin/env python3
"""Tests adapters of PEFT (--lora). The expected logits are those of the same model with weights that NumPy merged, and those of
PEFT in the corpus."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import safetensors_file
from driver import CORPUS, expect, run, run_tests
from language_models import Llama, error, logits, refused

TOKENS = [3, 14, 1, 5, 9, 2, 6, 11]
EXACT, PACKAGE = 1e-5, 1e-2
Q, V, DOWN = (f"model.layers.{{}}.{name}" for name in ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"))


class Tied(Llama):
    tied = True


def write(folder, tensors, **config):
    folder.mkdir(exist_ok=True)
    own = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": None}
    (folder / "adapter_config.json").write_text(json.dumps(own | config))
    (folder / "adapter_model.safetensors").write_bytes(safetensors_file.of(
        {f"base_model.model.{name}": np.ascontiguousarray(tensor, "<f4") for name, tensor in tensors.items()}))
    return folder


def pair(random, weight, rank=4):
    """Returns A and B for a weight [out, in]."""
    return (random.standard_normal((rank, weight.shape[1])) * 0.3, random.standard_normal((weight.shape[0], rank)) * 0.3)


def low_rank(module, a, b):
    return {f"{module}.lora_A.weight": a, f"{module}.lora_B.weight": b}


def same(folder, model, tensors, adapter, merged, *options):
    """Checks that the model with the adapter computes what the merged model does, and something else than without it."""
    base = model.hugging_face(folder / "base", tensors=tensors)
    config = merged.pop("config", {})
    wanted = logits(model.hugging_face(folder / "merged", config, merged), TOKENS, folder / "wanted", "--arithmetic", "exact")
    found = logits(base, TOKENS, folder / "found", "--arithmetic", "exact", "--lora", adapter, *options)
    plain = logits(base, TOKENS, folder / "plain", "--arithmetic", "exact")
    off = error(found, wanted)
    assert off <= EXACT and error(plain, wanted) > 1e-2, (off, error(plain, wanted))
    return base, wanted


def test_corpus(folder):
    adapter = CORPUS / "lora" / "llama_q_v"
    if not adapter.exists():
        print("# adapters of PEFT: skipped, there is no corpus")
        return
    oracle, model = np.load(adapter / "oracle.npz"), CORPUS / "huggingface" / "llama"
    tokens, wanted = oracle["in_input_ids"][0], oracle["out_logits"][0]
    found = error(logits(model, tokens, folder / "source", "--lora", adapter, "--arithmetic", "exact"), wanted)
    assert found <= EXACT, found
    package = folder / "llama.mlpackage"
    expect(run("compile", model, "--lora", adapter, "-o", package), 0)
    rounded = error(logits(package, tokens, folder / "package"), wanted)
    assert rounded <= PACKAGE, rounded
    expect(run("verify", model, package, "--lora", adapter), 0, "PASSED")
    refused(run("verify", model, package), "usage", "was compiled with --lora llama_q_v", "pass the same --lora DIR")
    manifest = json.loads((folder / "llama.manifest.json").read_text())
    assert manifest["options"]["--lora"] == ["llama_q_v"], manifest["options"]
    assert any(f["name"].endswith("adapter_model.safetensors") for f in manifest["source"]["files"]), manifest["source"]
    print(f"# an adapter of PEFT: {found:.1e} from PEFT, its package {rounded:.1e}")


def test_pairs(folder):
    """Scales by rank and by its root, a factor of the option, patterns of modules, and either spelling of the option's path."""
    model, random = Llama(), np.random.default_rng(1)
    tensors = model.hugging_face_tensors()
    q, down = Q.format(0), DOWN.format(1)
    cases = {
        "plain": ({}, {}, 2, 2),
        "rslora": ({"use_rslora": True}, {}, 4, 4),
        "scaled": ({}, "=0.25", 0.5, 0.5),
        "patterns": ({"r": 8, "rank_pattern": {r"layers\.0.*": 4, "down_proj": 4}, "alpha_pattern": {"q_proj": 12, r".*mlp\.down_proj": 6}},
                     {}, 3, 1.5),
        "defaults": ({"r": None, "lora_alpha": None}, {}, 1, 1),
    }
    for name, (config, factor, q_scale, down_scale) in cases.items():
        rank = 8 if name == "defaults" else 4
        qs, downs = pair(random, tensors[f"{q}.weight"], rank), pair(random, tensors[f"{down}.weight"], rank)
        place = folder / name
        place.mkdir()
        adapter = write(place / "adapter", low_rank(q, *qs) | low_rank(down, *downs), **config)
        merged = dict(tensors)
        merged[f"{q}.weight"] = tensors[f"{q}.weight"] + q_scale * qs[1] @ qs[0]
        merged[f"{down}.weight"] = tensors[f"{down}.weight"] + down_scale * downs[1] @ downs[0]
        same(place, model, tensors, f"{adapter}{factor or ''}", merged)


def test_magnitudes(folder):
    """DoRA scales each row of the sum to a length."""
    model, random = Llama(), np.random.default_rng(2)
    tensors, q = model.hugging_face_tensors(), Q.format(1)
    weight = tensors[f"{q}.weight"].astype("f8")
    a, b = pair(random, weight)
    magnitude = 1 + random.random(len(weight))
    adapter = write(folder / "adapter", low_rank(q, a, b) | {f"{q}.lora_magnitude_vector": magnitude}, use_dora=True)
    total = weight + 2 * b @ a
    same(folder, model, tensors, adapter,
         tensors | {f"{q}.weight": magnitude[:, None] * total / np.linalg.norm(total, axis=1, keepdims=True)})


def test_whole_tensors(folder):
    """modules_to_save and `bias`, under the names of older and newer versions, and biases of pairs."""
    model, random = Llama(), np.random.default_rng(3)
    tensors, q = model.hugging_face_tensors(), Q.format(0)
    for layer in range(model.layers):
        for name in ("q", "k", "v"):
            rows = len(tensors[f"model.layers.{layer}.self_attn.{name}_proj.weight"])
            tensors[f"model.layers.{layer}.self_attn.{name}_proj.bias"] = random.standard_normal(rows)
        tensors[f"model.layers.{layer}.self_attn.o_proj.bias"] = random.standard_normal(model.width)
    head, bias = random.standard_normal(tensors["lm_head.weight"].shape) / 4, random.standard_normal(len(tensors[f"{q}.bias"]))
    a, b = pair(random, tensors[f"{q}.weight"])
    for number, name in enumerate(("lm_head.weight", "lm_head.modules_to_save.weight")):
        place = folder / f"{number}"
        place.mkdir()
        own = low_rank(q, a, b) | {name: head}
        own |= {f"{q}.lora_B.bias": bias} if number else {f"{q}.bias": bias}
        adapter = write(place / "adapter", own, modules_to_save=["lm_head"], bias="all")
        merged = tensors | {f"{q}.weight": tensors[f"{q}.weight"] + 2 * b @ a, "lm_head.weight": head,
                            f"{q}.bias": tensors[f"{q}.bias"] + 2 * bias if number else bias}
        config = {"attention_bias": True}
        base = model.hugging_face(place / "base", config, tensors)
        wanted = logits(model.hugging_face(place / "merged", config, merged), TOKENS, place / "wanted", "--arithmetic", "exact")
        found = logits(base, TOKENS, place / "found", "--arithmetic", "exact", "--lora", adapter)
        assert error(found, wanted) <= EXACT, error(found, wanted)


def test_tables(folder):
    """A pair for the table of tokens changes what looks tokens up; a head that shares the table stays as it was."""
    for number, model in enumerate((Llama(), Tied())):
        place, random = folder / f"{number}", np.random.default_rng(4)
        place.mkdir()
        tensors = model.hugging_face_tensors()
        table = tensors["model.embed_tokens.weight"]
        a, b = random.standard_normal((4, len(table))) * 0.3, random.standard_normal((table.shape[1], 4)) * 0.3
        head = pair(random, table)
        adapter = write(place / "adapter", {"model.embed_tokens.lora_embedding_A": a, "model.embed_tokens.lora_embedding_B": b}
                        | low_rank("lm_head", *head))
        before = tensors.get("lm_head.weight", table)
        same(place, model, tensors, adapter,
             tensors | {"model.embed_tokens.weight": table + 2 * (b @ a).T, "lm_head.weight": before + 2 * head[1] @ head[0],
                        "config": {"tie_word_embeddings": False}})
        alone = write(place / "alone", {"model.embed_tokens.lora_embedding_A": a, "model.embed_tokens.lora_embedding_B": b})
        wanted = logits(model.hugging_face(place / "untied", {"tie_word_embeddings": False}, tensors | {
            "model.embed_tokens.weight": table + 2 * (b @ a).T, "lm_head.weight": before}), TOKENS, place / "w", "--arithmetic", "exact")
        found = logits(place / "base", TOKENS, place / "f", "--arithmetic", "exact", "--lora", alone)
        assert error(found, wanted) <= EXACT, error(found, wanted)


def test_transposed(folder):
    """Weights [in, out] of GPT-2, square ones too, with and without magnitudes."""
    source = CORPUS / "huggingface" / "hf_gpt2"
    if not source.exists():
        print("# adapters of GPT-2: skipped, there is no corpus")
        return
    random = np.random.default_rng(5)
    tensors = {name: array for name, (_, _, array) in safetensors_file.read(source / "model.safetensors").items()}
    prefix = "" if "h.0.attn.c_attn.weight" in tensors else "transformer."
    own, merged = {}, dict(tensors)
    for name, dora in (("h.0.attn.c_attn", False), ("h.0.attn.c_proj", False), ("h.1.mlp.c_proj", True)):
        weight = tensors[f"{prefix}{name}.weight"].astype("f8").T
        a, b = pair(random, weight)
        total = weight + 2 * b @ a
        own |= low_rank(f"transformer.{name}", a, b)
        if dora:
            magnitude = 1 + random.random(len(weight))
            own[f"transformer.{name}.lora_magnitude_vector"] = magnitude
            total = magnitude[:, None] * total / np.linalg.norm(total, axis=1, keepdims=True)
        merged[f"{prefix}{name}.weight"] = total.T
    adapter = write(folder / "adapter", own, fan_in_fan_out=True)
    (folder / "merged").mkdir()
    (folder / "merged" / "config.json").write_text((source / "config.json").read_text())
    (folder / "merged" / "model.safetensors").write_bytes(safetensors_file.of(
        {name: np.ascontiguousarray(tensor, "<f4") for name, tensor in merged.items()}))
    found = logits(source, TOKENS, folder / "found", "--arithmetic", "exact", "--lora", adapter)
    wanted = logits(folder / "merged", TOKENS, folder / "wanted", "--arithmetic", "exact")
    assert error(found, wanted) <= EXACT, error(found, wanted)


def test_several(folder):
    """Two adapters are added one after the other; spellings with other prefixes name the same modules."""
    model, random = Llama(), np.random.default_rng(6)
    tensors = model.hugging_face_tensors()
    one, two = pair(random, tensors[f"{Q.format(0)}.weight"]), pair(random, tensors[f"{V.format(0)}.weight"])
    first = write(folder / "first", low_rank(Q.format(0), *one))
    second = write(folder / "second", low_rank("model.language_model.layers.0.self_attn.v_proj", *two))
    third = write(folder / "third", low_rank("language_model.model.layers.0.self_attn.v_proj", *two), lora_alpha=-8)
    merged = tensors | {f"{Q.format(0)}.weight": tensors[f"{Q.format(0)}.weight"] + 2 * one[1] @ one[0],
                        f"{V.format(0)}.weight": tensors[f"{V.format(0)}.weight"] + 1 * two[1] @ two[0]}
    same(folder, model, tensors, first, merged, "--lora", second, "--lora", f"{third}=0.5")


def test_refusals(folder):
    model, random = Llama(), np.random.default_rng(7)
    base = model.hugging_face(folder / "base")
    tensors = model.hugging_face_tensors()
    a, b = pair(random, tensors[f"{Q.format(0)}.weight"])
    good = low_rank(Q.format(0), a, b)
    inspect = lambda adapter: run("compile", base, "-o", folder / "m.mlpackage", "--lora", adapter, "--force")

    def bad(identifier, tensors, *texts, **config):
        refused(inspect(write(folder / "bad", tensors, **config)), identifier, *texts)

    bad("unsupported-architecture", good, "of type LOHA", "peft_type", peft_type="LOHA")
    for key, value in {"layer_replication": [[0, 1]], "trainable_token_indices": [1, 2], "target_parameters": ["x"]}.items():
        bad("unsupported-architecture", good, f'sets "{key}"', "merge_and_unload", **{key: value})
    bad("bad-name", low_rank("model.layers.9.self_attn.q_proj", a, b) | low_rank("model.encoder.x", a, b),
        "lacks 2 of the adapter's modules", "model.layers.9.self_attn.q_proj", "model.encoder.x", "trained on this model")
    bad("missing-tensor", {f"{Q.format(0)}.lora_A.weight": a}, "half of a pair", Q.format(0))
    bad("bad-tensor", low_rank(Q.format(0), a[:, :-1], b), "lower side", "trained on this model")
    bad("bad-tensor", low_rank(Q.format(0), a, b[:-1]), "upper side")
    bad("bad-tensor", good, "r 3", r=3)
    bad("bad-tensor", good | {"lm_head.weight": np.ones((3, 4))}, "lm_head.weight", "larger vocabulary")
    bad("unsupported-architecture", {f"{Q.format(0)}.lora_C.weight": a}, "unknown kind")
    bad("bad-file", good, "alpha_pattern", "not a regular expression", alpha_pattern={"(": 1})
    bad("bad-file", good, "with different values", alpha_pattern={"q_proj": 1, ".*q_proj": 2})
    bad("bad-file", good, '"r" is', r="four")
    bad("bad-file", {}, "no tensors")
    write(folder / "bad", good, target_modules=["q_proj"])
    expect(inspect(folder / "bad"), 0, f"target_modules names {model.layers - 1} modules")
    (folder / "empty").mkdir()
    refused(inspect(folder / "empty"), "file-io", "no adapter_config.json", "saved by PEFT")
    refused(inspect(folder / "none"), "file-io", "does not exist")
    (folder / "bad" / "adapter_model.safetensors").rename(folder / "bad" / "adapter_model.bin")
    refused(inspect(folder / "bad"), "file-io", "pickled", "save it again")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "adapters of PEFT"))
