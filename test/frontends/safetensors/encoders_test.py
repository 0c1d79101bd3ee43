#!/usr/bin/env python3
"""Tests Hugging Face encoders against the results of transformers (oracle.npz of the corpus), and against an implementation
of the same networks in NumPy (encoder_numpy.py) with other architectures and heads, more tokens, and padding."""
import json
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import encoder_numpy
import safetensors_file as safetensors
from driver import CORPUS, expect, run, run_tests

FOLDERS = ["hf_bert", "hf_bert_qa", "hf_deberta_v2_cls", "hf_distilbert_cls", "hf_mpnet", "hf_roberta", "hf_t5_enc"]
# The architectures of tiny folders, and members that override their config.json.
TINY = [("BertModel", {}), ("BertForMaskedLM", {}), ("BertForSequenceClassification", {}), ("BertForTokenClassification", {}),
        ("RobertaForMaskedLM", {}), ("RobertaForTokenClassification", {}), ("XLMRobertaModel", {}),
        ("XLMRobertaForSequenceClassification", {}), ("DistilBertModel", {}), ("DistilBertForQuestionAnswering", {}),
        ("DistilBertForMaskedLM", {}), ("MPNetModel", {}), ("MPNetForSequenceClassification", {}), ("MPNetForMaskedLM", {}),
        ("AlbertModel", {}), ("AlbertForMaskedLM", {}), ("AlbertForSequenceClassification", {}), ("AlbertForQuestionAnswering", {}),
        ("ElectraModel", {}), ("ElectraForMaskedLM", {}), ("ElectraForSequenceClassification", {}),
        ("ElectraForTokenClassification", {}), ("DebertaV2Model", {}), ("DebertaV2ForTokenClassification", {}),
        ("DebertaV2ForSequenceClassification", {"share_att_key": False, "pos_att_type": ["c2p", "p2c"]}),
        ("DebertaV2ForQuestionAnswering", {"pos_att_type": ["c2p"], "max_relative_positions": 64}),
        ("ModernBertModel", {}), ("ModernBertForMaskedLM", {}), ("ModernBertForSequenceClassification", {}),
        ("ModernBertForSequenceClassification", {"classifier_pooling": "mean"}), ("ModernBertForTokenClassification", {}),
        ("ModernBertForQuestionAnswering", {}), ("NomicBertModel", {}), ("T5EncoderModel", {}),
        ("T5EncoderModel", {"feed_forward_proj": "gated-gelu"}), ("MT5EncoderModel", {"feed_forward_proj": "gated-gelu"}),
        ("UMT5EncoderModel", {"feed_forward_proj": "gated-gelu"}), ("Gemma3TextModel", {})]
TOKENS, PADDING = 90, 10
EXACT, PACKAGE = 1e-4, 1e-2  # relative root mean square errors


def outputs(model, folder, ids, *options, **more):
    """Returns mlc's outputs for one row of tokens without padding, all of the first type."""
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids), **more}
    takes = {port["name"] for port in expect(run("inspect", model, "--ops", "--json"), 0).answer["inputs"]}
    arguments = []
    for name in sorted(takes):
        np.save(folder / f"{name}.npy", given[name].astype("i4"))
        arguments += ["--input", f"{name}={folder / name}.npy"]
    expect(run("run", model, *arguments, "--output-dir", folder / "out", *options), 0)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def error(value, reference):
    assert value.shape == reference.shape, (value.shape, reference.shape)
    return float(np.sqrt(np.mean((value - reference.astype("f8")) ** 2) / np.mean(reference.astype("f8") ** 2)))


def test_corpus(folder):
    """Compares results in exact arithmetic, and of the package in fp16."""
    if not (CORPUS / "huggingface").exists():
        print("# encoders of transformers: skipped, there is no corpus")
        return
    worst, worst_package = 0, 0
    for name in FOLDERS:
        model, package = CORPUS / "huggingface" / name, folder / f"{name}.mlpackage"
        oracle = np.load(model / "oracle.npz")
        wanted = {key[4:]: oracle[key] for key in oracle.files if key.startswith("out_")}
        expect(run("compile", model, "-o", package, "--verify-each"), 0)
        for what, limit, *options in ((model, EXACT, "--arithmetic", "exact"), (package, PACKAGE)):
            scratch = folder / f"{name}-{limit}"
            scratch.mkdir()
            found = outputs(what, scratch, oracle["in_input_ids"], *options)
            assert found.keys() == wanted.keys(), (name, found.keys(), wanted.keys())
            off = max(error(found[key], value) for key, value in wanted.items())
            assert off <= limit, (name, what, off)
            if what == model:
                worst = max(worst, off)
            else:
                worst_package = max(worst_package, off)
    print(f"# encoders: {len(FOLDERS)} folders within {worst:.1e} of transformers, their packages within {worst_package:.1e}")


def test_numpy(folder):
    worst, rng = 0, np.random.default_rng(1)
    ids = rng.integers(2, encoder_numpy.VOCABULARY, TOKENS)
    mask, types = np.ones(TOKENS, int), rng.integers(0, 2, TOKENS)
    ids[-PADDING:], mask[-PADDING:] = 1, 0
    for number, (architecture, changes) in enumerate(TINY):
        config, tensors = encoder_numpy.tiny(architecture, number, **changes)
        model = write(folder / f"{number}", architecture, seed=number, **changes)
        kinds = types * (config.get("type_vocab_size", 2) > 1)
        wanted = encoder_numpy.outputs(config, tensors, ids, kinds, mask)
        found = outputs(model, model, ids[None], "--arithmetic", "exact", attention_mask=mask[None], token_type_ids=kinds[None])
        assert found.keys() == wanted.keys(), (architecture, found.keys(), wanted.keys())
        for key, value in wanted.items():
            assert found[key].shape == value.shape, (architecture, key, found[key].shape, value.shape)
            seen = (slice(None), slice(TOKENS - PADDING)) if value.shape[1] == TOKENS else ()
            off = error(found[key][seen], value[seen])
            assert off <= EXACT, (architecture, changes, key, off)
            worst = max(worst, off)
    print(f"# encoders: {len(TINY)} tiny folders within {worst:.1e} of NumPy, {TOKENS} tokens, {PADDING} of them padding")


def write(model, architecture, config={}, without=(), more={}, **changes):
    made, tensors = encoder_numpy.tiny(architecture, **changes)
    model.mkdir()
    (model / "config.json").write_text(json.dumps(made | config))
    kept = {name: tensor for name, tensor in tensors.items() if name not in without}
    (model / "model.safetensors").write_bytes(safetensors.of(kept | more))
    return model


def dense(model, place, matrix, activation, bias=None):
    """Adds a linear layer after the pooling, as saved by sentence-transformers' models/Dense.py."""
    (model / place).mkdir()
    (model / place / "config.json").write_text(json.dumps({
        "in_features": matrix.shape[1], "out_features": matrix.shape[0], "bias": bias is not None,
        "activation_function": f"torch.nn.modules.{activation}"}))
    tensors = {"linear.weight": matrix} | ({} if bias is None else {"linear.bias": bias})
    (model / place / "model.safetensors").write_bytes(safetensors.of(tensors))


def sentence(model, mode, *types):
    """Turns a transformers folder into a sentence-transformers folder."""
    (model / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{name}": name == mode for name in ("cls_token", "mean_tokens", "max_tokens")}
    (model / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **modes}))
    types = ("Transformer", "Pooling", *types)
    (model / "modules.json").write_text(json.dumps([{"idx": i, "name": f"{i}", "path": f"{i}_{name}" if i else "",
                                                     "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(types)]))
    return model


def test_sentences(folder):
    """Pools the first token, or the mean of unmasked tokens, optionally scaled to length 1."""
    ids, mask = np.random.default_rng(2).integers(2, 60, 20), np.array([1] * 15 + [0] * 5)
    for number, (mode, *types) in enumerate([("cls_token",), ("mean_tokens",), ("mean_tokens", "Normalize")]):
        model = sentence(write(folder / f"{number}", "MPNetModel"), mode, *types)
        states = encoder_numpy.outputs(*encoder_numpy.tiny("MPNetModel"), ids, ids * 0, mask)["last_hidden_state"][0]
        wanted = states[0] if mode == "cls_token" else states[mask > 0].mean(0)
        wanted = wanted / np.linalg.norm(wanted) if types else wanted
        found = outputs(model, model, ids[None], "--arithmetic", "exact", attention_mask=mask[None])
        assert found.keys() == {"sentence_embedding", "last_hidden_state"} and error(found["sentence_embedding"], wanted[None]) <= EXACT
        assert error(found["last_hidden_state"][0][mask > 0], states[mask > 0]) <= EXACT
        expect(run("compile", model, "-o", folder / "m.mlpackage", "--force"), 0, "sentence_embedding")
        names = [f["name"] for f in json.loads((folder / "m.manifest.json").read_text())["source"]["files"]]
        assert "modules.json" in names and len(names) == len(set(names)) == 4, names
    model = sentence(write(folder / "weighted", "MPNetModel"), "mean_tokens", "WeightedLayerPooling")
    expect(run("inspect", "--ops", model), 1, "unsupported-architecture", "models.WeightedLayerPooling", "modules.json")
    model = sentence(write(folder / "max", "MPNetModel"), "max_tokens")
    expect(run("inspect", "--ops", model), 1, "unsupported-architecture", "pooling_mode_", "1_Pooling/config.json")


def test_nothing_seen(folder):
    """If the mask hides all tokens, the mean is 0 (sentence-transformers' models/Pooling.py divides by at least 1e-9), and
    so is its torch.nn.functional.normalize, in exact arithmetic and in packages."""
    ids = np.random.default_rng(2).integers(2, 60, (1, 8))
    for number, types in enumerate([(), ("Normalize",)]):
        model = sentence(write(folder / f"{number}", "BertModel"), "mean_tokens", *types)
        expect(run("compile", model, "-o", folder / "m.mlpackage", "--force", "--no-measure"), 0)
        for options in ((model, "--arithmetic", "exact"), (folder / "m.mlpackage",)):
            found = outputs(options[0], folder, ids, *options[1:], attention_mask=ids * 0)
            assert np.array_equal(found["sentence_embedding"], np.zeros((1, 32))), (options, found["sentence_embedding"])
            assert np.isfinite(found["last_hidden_state"]).all(), options


def test_tied(folder):
    """Tests the rules of transformers 5, modeling_utils.py, tie_weights, for the logits of masked language models and for
    T5's tokens."""
    ids = np.random.default_rng(2).integers(2, 60, 12)
    given = ids, ids * 0, np.ones(12, int)
    rng = np.random.default_rng(3)
    draw = lambda *dims: (rng.standard_normal(dims) / 6).astype("f4")

    def compare(name, architecture, more, wanted, warned, config={}):
        model = write(folder / name, architecture, config=config, more=more)
        found = outputs(model, model, ids[None], "--arithmetic", "exact")
        for key, value in wanted.items():
            assert error(found[key], value) <= EXACT, (name, key)
        assert ("to which it should be tied" in run("inspect", "--ops", model).stderr) == warned, name

    decoder, bias = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
    config, tensors = encoder_numpy.tiny("BertForMaskedLM")
    embeddings = tensors["bert.embeddings.word_embeddings.weight"]
    plain = encoder_numpy.outputs(config, tensors, *given)
    states = np.linalg.lstsq(embeddings.astype("f8"), (plain["logits"][0] - tensors["cls.predictions.bias"]).T, rcond=None)[0].T
    own, own_bias = draw(*embeddings.shape), draw(len(embeddings))
    logits = lambda matrix, bias: {"logits": (states @ matrix.T.astype("f8") + bias)[None]}
    compare("same", "BertForMaskedLM", {decoder: embeddings, bias: tensors["cls.predictions.bias"]}, plain, False)
    compare("own", "BertForMaskedLM", {decoder: own}, logits(own, tensors["cls.predictions.bias"]), True)
    compare("untied", "BertForMaskedLM", {decoder: own}, logits(own, tensors["cls.predictions.bias"]), False,
            {"tie_word_embeddings": False})
    compare("bias", "BertForMaskedLM", {bias: own_bias}, logits(embeddings, own_bias), True)
    untied = write(folder / "missing", "BertForMaskedLM", config={"tie_word_embeddings": False})
    expect(run("inspect", "--ops", untied), 1, "missing-tensor", decoder)

    config, tensors = encoder_numpy.tiny("T5EncoderModel")
    other = draw(*tensors["shared.weight"].shape)
    compare("t5", "T5EncoderModel", {"encoder.embed_tokens.weight": other},
            encoder_numpy.outputs(config, tensors | {"shared.weight": other}, *given), True)
    compare("t5_same", "T5EncoderModel", {"encoder.embed_tokens.weight": tensors["shared.weight"]},
            encoder_numpy.outputs(config, tensors, *given), False)


def test_biases(folder):
    """As in transformers, stored biases that the network does not have are ignored."""
    ids = np.random.default_rng(2).integers(2, 60, 12)
    for architecture, stored in (("ModernBertModel", "layers.1.attn.Wqkv.weight"), ("Gemma3TextModel", "layers.1.self_attn.q_proj.weight"),
                                 ("T5EncoderModel", "encoder.block.1.layer.0.SelfAttention.q.weight")):
        config, tensors = encoder_numpy.tiny(architecture)
        weight = next(name for name in tensors if name.endswith(stored))
        bias = {weight.replace(".weight", ".bias"): np.ones(len(tensors[weight]), "f4")}
        model = write(folder / architecture, architecture, more=bias)
        wanted = encoder_numpy.outputs(config, tensors, ids, ids * 0, np.ones(12, int))
        found = outputs(model, model, ids[None], "--arithmetic", "exact")
        assert error(found["last_hidden_state"], wanted["last_hidden_state"]) <= EXACT, architecture
        expect(run("inspect", "--ops", model), 0, "are ignored", *bias)


def test_dense(folder):
    """Tests layers between pooling and normalisation, as in EmbeddingGemma and LaBSE."""
    rng = np.random.default_rng(4)
    ids, mask = rng.integers(2, 60, 20), np.array([1] * 15 + [0] * 5)
    draw = lambda *dims: (rng.standard_normal(dims) / 6).astype("f4")
    wide, narrow, bias = draw(80, 32), draw(24, 80), draw(24)
    model = sentence(write(folder / "gemma", "Gemma3TextModel"), "mean_tokens", "Dense", "Dense", "Normalize")
    dense(model, "2_Dense", wide, "linear.Identity")
    dense(model, "3_Dense", narrow, "activation.Tanh", bias)
    states = encoder_numpy.outputs(*encoder_numpy.tiny("Gemma3TextModel"), ids, ids * 0, mask)["last_hidden_state"][0]
    wanted = np.tanh(states[mask > 0].mean(0) @ wide.T.astype("f8") @ narrow.T + bias)
    found = outputs(model, model, ids[None], "--arithmetic", "exact", attention_mask=mask[None])
    assert error(found["sentence_embedding"], (wanted / np.linalg.norm(wanted))[None]) <= EXACT
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0, "sentence_embedding")
    names = [f["name"] for f in json.loads((folder / "m.manifest.json").read_text())["source"]["files"]]
    assert {"2_Dense/model.safetensors", "3_Dense/config.json"} <= set(names), names
    (model / "3_Dense" / "model.safetensors").write_bytes(safetensors.of({"linear.weight": narrow[:, 1:], "linear.bias": bias}))
    expect(run("inspect", "--ops", model), 1, "bad-tensor", "3_Dense/linear.weight", "[24, 79]")
    (model / "3_Dense" / "model.safetensors").write_bytes(safetensors.of({"linear.weight": narrow}))
    expect(run("inspect", "--ops", model), 1, "bad-file", "linear.bias", "3_Dense")
    (model / "3_Dense" / "config.json").write_text(json.dumps({"activation_function": "torch.nn.modules.activation.GELU"}))
    expect(run("inspect", "--ops", model), 1, "unsupported-architecture", "activation.GELU", "3_Dense/config.json")


def test_tokens(folder):
    """--tokens returns an encoder's hidden states and pooled states without the batch dimension, under the same names for
    all encoders."""
    ids = [5, 17, 40, 3, 9]
    of = lambda architecture: encoder_numpy.outputs(*encoder_numpy.tiny(architecture), np.array(ids), np.zeros(5, int), np.ones(5, int))

    def check(model, expected, limit, *options):
        out = folder / "out" / model.name
        expect(run("run", model, "--tokens", ",".join(map(str, ids)), "--output-dir", out, *options), 0)
        found = {path.stem: np.load(path) for path in out.glob("*.npy")}
        assert found.keys() == expected.keys(), found.keys()
        assert all(error(found[key], value[0]) <= limit for key, value in expected.items())

    bert = of("BertModel")
    pooled = {"hidden": bert["last_hidden_state"], "pooled": bert["pooler_output"]}
    model, labels = write(folder / "bert", "BertModel"), write(folder / "labels", "BertForTokenClassification")
    check(model, pooled, EXACT)
    check(labels, of("BertForTokenClassification"), EXACT)
    check(write(folder / "t5", "T5EncoderModel"), {"hidden": of("T5EncoderModel")["last_hidden_state"]}, EXACT)
    # Packages with only some sizes: padding follows the tokens.
    for sizes in ("8", "4,7,16"):
        package = folder / f"{sizes}.mlpackage"
        expect(run("compile", model, "-o", package, "--dim", f"tokens={sizes}"), 0)
        check(package, pooled, PACKAGE)
        expect(run("verify", model, package, "--tokens", "5,17,40"), 0, "PASSED", "last_hidden_state")
        expect(run("run", package, "--tokens", ",".join("1" * 17)), 2, "17 tokens, but the model accepts", "--dim tokens")
    expect(run("run", model, "--tokens", "5,61"), 1, "bad-input", "token 61 is not in the vocabulary", "0 to 60")
    expect(run("run", model, "--tokens", "5", "--step"), 2, "processes all tokens at once")
    result = run("verify", labels, folder / "8.mlpackage", "--tokens", "5,17")
    assert result.code in (2, 3), result.stdout + result.stderr


def test_sizes(folder):
    """Tests --dim tokens=... and the table of positions, which starts after the padding row for RoBERTa."""
    bert, roberta = write(folder / "bert", "BertModel"), write(folder / "roberta", "RobertaModel")
    for model, most in ((bert, 200), (roberta, 198)):
        expect(run("compile", model, "-o", folder / "x.mlpackage", "--force", "--no-measure"), 0, f"tokens in 1..{most}")
        expect(run("compile", model, "-o", folder / "x.mlpackage", "--force", "--dim", f"tokens={most}"), 0, f"[1, {most}]")
        expect(run("compile", model, "-o", folder / "y.mlpackage", "--dim", f"tokens={most + 1}"), 1 + 1, f"1 to {most}")
    expect(run("compile", bert, "-o", folder / "x.mlpackage", "--force", "--dim", "tokens=16,32", "--target", "iOS15"), 0, "16|32")
    expect(run("compile", bert, "-o", folder / "y.mlpackage", "--dim", "batch=2"), 1, "bad-name", "expected: tokens")
    expect(run("compile", bert, "-o", folder / "y.mlpackage", "--context", "5"), 2, "--dim tokens")


def test_refusals(folder):
    number = iter(range(100))

    def refused(code, *texts, architecture="BertForMaskedLM", **more):
        model = write(folder / str(next(number)), architecture, **more)
        result = expect(run("inspect", "--ops", "--json", model), 1, *texts)
        assert result.errors[0]["id"] == code and str(model) in result.errors[0]["location"], result.errors

    up, layer = "bert.encoder.layer.1.intermediate.dense.weight", "bert.encoder.layer.3.attention.self.query.weight"
    refused("missing-tensor", up, "[48, 32]", without=[up])
    refused("missing-tensor", "layer.3", config={"num_hidden_layers": 4})
    refused("unused-tensor", "bert.encoder.layer.2", config={"num_hidden_layers": 2})
    refused("unused-tensor", layer, more={layer: np.ones((2, 2), "f4")})
    refused("bad-tensor", up.replace("1", "0"), "[48, 32]", "[40, 32]", config={"intermediate_size": 40})
    refused("bad-tensor", up, "int32", more={up: np.ones((48, 32), "i4")})
    refused("bad-file", "32 is not a multiple of the number of heads (5)", config={"num_attention_heads": 5})
    refused("resource-limit", "131072", architecture="ModernBertModel", config={"max_position_embeddings": 1 << 30})
    for key in ("num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size", "max_position_embeddings"):
        for value in (0, -3, 1 << 40):
            refused("bad-file", str(value), config={key: value})
        refused("bad-file", key, "an integer", config={key: "many"})
    refused("unsupported-architecture", "wave", "hidden_act", config={"hidden_act": "wave"})
    refused("unsupported-architecture", "relative_key", config={"position_embedding_type": "relative_key"})
    refused("unsupported-architecture", "is_decoder", config={"is_decoder": True})
    refused("unsupported-architecture", "...ForTokenClassification", config={"architectures": ["BertForPreTraining"]})
    refused("unsupported-architecture", "conv_kernel_size", architecture="DebertaV2Model", config={"conv_kernel_size": 3})
    refused("unsupported-architecture", "p2p", architecture="DebertaV2Model", config={"pos_att_type": "c2p|p2p"})
    refused("unsupported-architecture", "rotary_emb_fraction", architecture="NomicBertModel", config={"rotary_emb_fraction": 0.5})
    t5 = dict(architecture="T5EncoderModel")
    refused("missing-tensor", "decoder.", config={"architectures": ["T5ForConditionalGeneration"]}, **t5)
    refused("unsupported-architecture", "feed_forward_proj", config={"feed_forward_proj": "gated-swish"}, **t5)
    refused("bad-file", "the number of heads (5) is not a multiple", architecture="Gemma3TextModel", config={"num_attention_heads": 5})
    refused("unsupported-architecture", "layer_types", architecture="Gemma3TextModel", config={"layer_types": ["full_attention"]})
    refused("unsupported-architecture", "num_hidden_groups", architecture="AlbertModel", config={"num_hidden_groups": 9})


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "encoders"))
