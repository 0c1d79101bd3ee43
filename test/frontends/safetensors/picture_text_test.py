#!/usr/bin/env python3
"""Tests encoder-decoders that read pictures and have no folder in the corpus against readings in NumPy: Donut (Swin and MBart),
vision transformers with decoders of GPT-2, BERT and RoBERTa, and Florence-2 (DaViT and BART), whose encoder reads a picture and a text."""
import json
import math
import pathlib
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import safetensors_file as safetensors
import speech_numpy
import vision_numpy
from driver import expect, run, run_tests
from encoders_test import error
from language_models import refused
from picture_numpy import Net, attend, swin_tokens, tokens
from word_tokenizer import tokenizer

EXACT = 1e-5
HEADS, VOCABULARY, POSITIONS = 4, 40, 24


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def mbart_decoder(net, tokens, states, width, layers, scale=True):
    """Logits of modeling_mbart.py: norms of inputs and of the embeddings, positions from row 2 on."""
    table = net.tensor("model.decoder.embed_tokens.weight", VOCABULARY, width)
    x = table[tokens] * (math.sqrt(width) if scale else 1)
    x = x + net.tensor("model.decoder.embed_positions.weight", POSITIONS + 2, width)[2:len(tokens) + 2]
    x = net.layer_norm("model.decoder.layernorm_embedding", x, 1e-5)
    causal = np.where(np.tri(len(tokens)) == 0, -1e30, 0)

    def attention(own, x, source, bias):
        q, k, v = (np.stack(np.split(net.linear(f"{own}.{name}_proj", of, width), HEADS, -1)) for name, of in zip("qkv", (x, source, source)))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(width // HEADS) + bias
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y = scores / scores.sum(-1, keepdims=True) @ v
        return net.linear(f"{own}.out_proj", np.concatenate(list(y), -1), width)

    for layer in range(layers):
        own = f"model.decoder.layers.{layer}."
        h = net.layer_norm(f"{own}self_attn_layer_norm", x, 1e-5)
        x = x + attention(f"{own}self_attn", h, h, causal)
        x = x + attention(f"{own}encoder_attn", net.layer_norm(f"{own}encoder_attn_layer_norm", x, 1e-5), states, 0)
        h = net.layer_norm(f"{own}final_layer_norm", x, 1e-5)
        x = x + net.linear(f"{own}fc2", gelu(net.linear(f"{own}fc1", h, 48)), width)
    return net.layer_norm("model.decoder.layer_norm", x, 1e-5) @ net.tensor("lm_head.weight", VOCABULARY, width).T


def donut(folder, kind="donut-swin", width=32, size=(32, 48), seed=0):
    """Writes a folder; returns the pixels, the tokens and what the model makes of them."""
    folder.mkdir()
    encoder = {"model_type": kind, "image_size": list(size), "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    decoder = {"model_type": "mbart", "d_model": width, "decoder_layers": 2, "decoder_attention_heads": HEADS, "decoder_ffn_dim": 48,
               "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "scale_embedding": True, "is_decoder": True, "add_cross_attention": True}
    pixels = np.random.default_rng(seed).normal(size=(3, *size)).astype("f4")
    tower, text = Net("encoder.", seed), Net("decoder.", seed + 1)
    states = swin_tokens(tower, encoder, pixels.astype("f8"))
    if kind == "swin":
        states = tower.layer_norm("layernorm", states, 1e-5)
    seen = tower.linear("enc_to_dec_proj", states, width, prefix="") if width != 32 else states
    read = [2, 5, 7, 1, 39]
    logits = mbart_decoder(text, read, seen, width, 2)
    # Saved in older versions, and not needed.
    tensors = tower.tensors | text.tensors | {"encoder.encoder.layers.0.blocks.0.attention.self.relative_position_index": np.zeros((16, 16), "i8")}
    (folder / "config.json").write_text(json.dumps({"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"],
                                                    "encoder": encoder, "decoder": decoder, "decoder_start_token_id": 2, "eos_token_id": 3,
                                                    "pad_token_id": 1}))
    (folder / "model.safetensors").write_bytes(safetensors.of(tensors))
    np.save(folder / "pixels.npy", pixels[None])
    np.save(folder / "tokens.npy", np.array([read], "i4"))
    return {"logits": logits[None], "encoder_last_hidden_state": states[None]}


def test_donut(folder):
    worst = 0
    for name, options in (("same", {}), ("other_width", {"width": 24}), ("odd", {"size": (36, 44)}), ("swin", {"kind": "swin"})):
        model = folder / name
        wanted = donut(model, **options)
        given = ["--input", f"pixel_values={model / 'pixels.npy'}", "--input", f"decoder_input_ids={model / 'tokens.npy'}"]
        expect(run("run", model, *given, "--arithmetic", "exact", "--output-dir", folder / "out"), 0)
        for output, value in wanted.items():
            off = error(np.load(folder / "out" / f"{output}.npy"), value)
            worst = max(worst, off)
            assert off <= EXACT, (name, output, off)
        # Step by step with caches, which the function main does not have.
        expect(run("run", model, "--picture", model / "pixels.npy", "--generate", 4, "--json"), 0)
        if name == "same":
            expect(run("compile", model, "-o", folder / f"{name}.mlpackage"), 0)
            expect(run("verify", model, folder / f"{name}.mlpackage"), 0, "PASSED")
    print(f"# Donut within {worst:.1e} of NumPy")


def captioner(folder, kind, width=48):
    """Writes a folder of a vision transformer with a decoder of GPT-2, BERT or RoBERTa; returns what the model makes of its inputs."""
    folder.mkdir()
    config, tower = vision_numpy.tiny("vit", "ViTModel")
    pixels = np.random.default_rng(1).normal(size=(3, config["image_size"], config["image_size"])).astype("f4")
    states = np.asarray(vision_numpy.outputs(config, tower, pixels=pixels[None])["last_hidden_state"]).reshape(-1, config["hidden_size"])
    net, read, causal = Net("decoder.", 5), [2, 5, 7, 1, 39], np.where(np.tri(5) == 0, -1e30, 0)
    seen = states if width == config["hidden_size"] else net.linear("enc_to_dec_proj", states, width, prefix="")
    decoder = {"model_type": kind, "vocab_size": VOCABULARY, "is_decoder": True, "add_cross_attention": True}

    def attended(q, k, v, bias=0):
        q, k, v = (np.stack(np.split(x, HEADS, -1)) for x in (q, k, v))
        return np.concatenate(list(attend(q, k, v, bias)), -1)
    if kind == "gpt2":
        decoder |= {"n_embd": width, "n_layer": 2, "n_head": HEADS, "n_positions": POSITIONS, "n_inner": 40}
        root = "transformer."

        def conv1d(name, x, out):
            return x @ net.tensor(name + ".weight", x.shape[-1], out) + net.tensor(name + ".bias", out)
        table = net.tensor(root + "wte.weight", VOCABULARY, width)
        x = table[read] + net.tensor(root + "wpe.weight", POSITIONS, width)[:5]
        for i in range(2):
            own = f"{root}h.{i}."
            q, k, v = np.split(conv1d(own + "attn.c_attn", net.layer_norm(own + "ln_1", x, 1e-5), 3 * width), 3, -1)
            x = x + conv1d(own + "attn.c_proj", attended(q, k, v, causal), width)
            q = conv1d(own + "crossattention.q_attn", net.layer_norm(own + "ln_cross_attn", x, 1e-5), width)
            k, v = np.split(conv1d(own + "crossattention.c_attn", seen, 2 * width), 2, -1)
            x = x + conv1d(own + "crossattention.c_proj", attended(q, k, v), width)
            y = conv1d(own + "mlp.c_fc", net.layer_norm(own + "ln_2", x, 1e-5), 40)
            y = y / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
            x = x + conv1d(own + "mlp.c_proj", y, width)
        logits = net.layer_norm(root + "ln_f", x, 1e-5) @ table.T
    else:
        first = 2 if kind == "roberta" else 0
        decoder |= {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": 40,
                    "max_position_embeddings": POSITIONS + first, "pad_token_id": first - 1 if first else 0}
        root = f"{kind}."
        table = net.tensor(root + "embeddings.word_embeddings.weight", VOCABULARY, width)
        x = table[read] + net.tensor(root + "embeddings.position_embeddings.weight", POSITIONS + first, width)[first:first + 5]
        x = x + net.tensor(root + "embeddings.token_type_embeddings.weight", 2, width)[0]
        x = net.layer_norm(root + "embeddings.LayerNorm", x, 1e-12)
        for i in range(2):
            own = f"{root}encoder.layer.{i}."
            for part, source, bias in (("attention", None, causal), ("crossattention", seen, 0)):
                q, k, v = (net.linear(f"{own}{part}.self.{name}", x if name == "query" or source is None else source, width)
                           for name in ("query", "key", "value"))
                y = net.linear(f"{own}{part}.output.dense", attended(q, k, v, bias), width)
                x = net.layer_norm(f"{own}{part}.output.LayerNorm", x + y, 1e-12)
            y = net.linear(own + "output.dense", gelu(net.linear(own + "intermediate.dense", x, 40)), width)
            x = net.layer_norm(own + "output.LayerNorm", x + y, 1e-12)
        head, norm, bias = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias") if first else (
            "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias")
        x = net.layer_norm(norm, gelu(net.linear(head, x, width)), 1e-12)
        logits = x @ table.T + net.tensor(bias, VOCABULARY)
    stored = {"encoder." + name: value for name, value in tower.items()} | net.tensors
    (folder / "config.json").write_text(json.dumps({"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"],
                                                    "encoder": config, "decoder": decoder, "decoder_start_token_id": 2, "eos_token_id": 3}))
    (folder / "model.safetensors").write_bytes(safetensors.of(stored))
    np.save(folder / "pixels.npy", pixels[None])
    np.save(folder / "tokens.npy", np.array([read], "i4"))
    return {"logits": logits[None], "encoder_last_hidden_state": states[None]}


def test_captioners(folder):
    worst = 0
    for name, arguments in (("gpt2", {}), ("bert", {}), ("roberta", {}), ("gpt2_same", {"width": vision_numpy.WIDTH})):
        model, kind = folder / name, name.split("_")[0]
        wanted = captioner(model, kind, **arguments)
        given = ["--input", f"pixel_values={model / 'pixels.npy'}", "--input", f"decoder_input_ids={model / 'tokens.npy'}"]
        expect(run("run", model, *given, "--arithmetic", "exact", "--output-dir", folder / "out"), 0)
        for output, value in wanted.items():
            off = error(np.load(folder / "out" / f"{output}.npy"), value)
            worst = max(worst, off)
            assert off <= EXACT, (name, output, off)
        expect(run("compile", model, "-o", folder / f"{name}.mlpackage"), 0)
        expect(run("verify", model, folder / f"{name}.mlpackage"), 0, "PASSED")
        ids = [json.loads(expect(run("run", what, "--picture", model / "pixels.npy", "--generate", 4, "--json"), 0).stdout)["generated_ids"]
               for what in (model, folder / f"{name}.mlpackage")]
        assert ids[0] == ids[1] and len(ids[0]) > 1, ids
    print(f"# vision transformers with decoders of texts within {worst:.1e} of NumPy")
    config = json.loads((folder / "gpt2" / "config.json").read_text())
    for changes, text in (({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"), ({"model_type": "opt"}, "gpt2"),
                          ({"n_head": 7}, "heads"), ({"n_embd": 50, "n_head": 5}, "enc_to_dec_proj")):
        (folder / "gpt2" / "config.json").write_text(json.dumps(config | {"decoder": config["decoder"] | changes}))
        result = run("compile", folder / "gpt2", "-o", folder / "no.mlpackage")
        assert result.code == 1 and text in result.stderr, (changes, result)


def davit(net, c, x):
    """The last map of modeling_florence2.py's vision tower."""
    for s, (depth, width, heads, groups) in enumerate(zip(c["depths"], c["embed_dim"], c["num_heads"], c["num_groups"])):
        name = f"convs.{s}."
        x = net.map_norm(name + "norm", x, 1e-5) if c["patch_prenorm"][s] else x
        x = net.conv(name + "conv", x, width, c["patch_size"][s], c["patch_stride"][s], bias=True)
        x = x if c["patch_prenorm"][s] else net.map_norm(name + "norm", x, 1e-5)

        def places(own, y):
            size, (_, height, across) = c["window_size"], y.shape
            y = np.pad(y.transpose(1, 2, 0), [(0, -height % size), (0, -across % size), (0, 0)])
            for top in range(0, y.shape[0], size):
                for left in range(0, y.shape[1], size):
                    part = y[top:top + size, left:left + size].reshape(-1, width)
                    q, k, v = net.linear(own + "window_attn.qkv", part, 3 * width).reshape(len(part), 3, heads, -1).transpose(1, 2, 0, 3)
                    part = attend(q, k, v).transpose(1, 0, 2).reshape(-1, width)
                    y[top:top + size, left:left + size] = net.linear(own + "window_attn.proj", part, width).reshape(size, size, width)
            return y[:height, :across].transpose(2, 0, 1)

        def channels(own, y):
            y = tokens(y)
            q, k, v = net.linear(own + "channel_attn.qkv", y, 3 * width).reshape(len(y), 3, groups, -1).transpose(1, 2, 3, 0)
            y = attend(q, k, v).transpose(2, 0, 1).reshape(len(y), width)
            return net.linear(own + "channel_attn.proj", y, width).T.reshape(x.shape)
        for i in range(depth):
            for own, attention in ((f"blocks.{s}.{i}.spatial_block.", places), (f"blocks.{s}.{i}.channel_block.", channels)):
                x = x + net.conv(own + "conv1", x, width, 3, groups=width, bias=True)
                x = x + attention(own, net.map_norm(own + "norm1", x, 1e-5))
                x = x + net.conv(own + "conv2", x, width, 3, groups=width, bias=True)
                y = tokens(net.map_norm(own + "norm2", x, 1e-5))
                y = net.linear(own + "ffn.fc2", gelu(net.linear(own + "ffn.fc1", y, int(width * c["mlp_ratio"]))), width)
                x = x + y.T.reshape(x.shape)
    return x


def florence(folder, scale=False, untied=False):
    """Writes a folder; returns the inputs and what the model makes of them."""
    folder.mkdir()
    text, tensors = speech_numpy.sequence("bart", activation_function="gelu", scale_embedding=scale)
    width, vocabulary = text["d_model"], text["vocab_size"]
    vision = {"depths": [1, 2], "patch_size": [7, 3], "patch_stride": [4, 2], "patch_padding": [3, 1], "patch_prenorm": [False, True],
              "embed_dim": [8, 16], "num_heads": [2, 4], "num_groups": [4, 2], "window_size": 3, "mlp_ratio": 2.0, "projection_dim": width,
              "max_position_embeddings": 5}
    picture = np.random.default_rng(3).normal(size=(1, 3, 24, 28)).astype("f4")
    net = Net("model.vision_tower.")
    map_ = davit(net, vision, picture[0].astype("f8"))
    net.prefix = "model.multi_modal_projector."
    (channels, height, across), positions = map_.shape, vision["max_position_embeddings"]
    rows = net.tensor("image_position_embed.row_embeddings.weight", positions, channels // 2)[:height]
    columns = net.tensor("image_position_embed.column_embeddings.weight", positions, channels // 2)[:across]
    x = tokens(map_) + np.concatenate([np.tile(columns, (height, 1)), rows.repeat(across, 0)], 1) + np.arange(channels) % 2
    x = net.linear("image_projection", np.concatenate([x.mean(0, keepdims=True), x]), width, False)
    x = net.layer_norm("image_proj_norm", x, 1e-5)
    tensors.pop("final_logits_bias")
    if untied:
        tensors["lm_head.weight"] = net.rng.normal(size=(vocabulary, width)).astype("f4")
    image = vocabulary - 1
    ids, output = [4] + len(x) * [image] + [5, 7, 3], [2, 9, 8]
    wanted = speech_numpy.sequence_outputs(text, tensors, ids, output, (image, x))
    stored = {name.replace("model.", "model.language_model.", 1): value for name, value in tensors.items()}
    stored |= net.tensors | {"model.multi_modal_projector.visual_temporal_embed.pos_idx_to_embed": np.zeros((4, channels), "f4")}
    config = {"model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"], "text_config": text, "vision_config": vision,
              "image_token_id": image, "tie_word_embeddings": not untied}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors.of(stored))
    return {"pixel_values": picture, "input_ids": np.array([ids], "i4"), "attention_mask": np.ones((1, len(ids)), "i4"),
            "decoder_input_ids": np.array([output], "i4")}, wanted


def test_florence(folder):
    sized = ["--shape", "pixel_values=1,3,24,28"]
    for name, options in (("tied", {}), ("scaled", {"scale": True}), ("untied", {"untied": True})):
        inputs, wanted = florence(folder / name, **options)
        given = []
        for key, value in inputs.items():
            np.save(folder / f"{key}.npy", value)
            given += ["--input", f"{key}={folder / key}.npy"]
        expect(run("run", folder / name, *given, *sized, "--arithmetic", "exact", "--output-dir", folder / "out"), 0)
        for output in ("logits", "encoder_last_hidden_state"):
            off = error(np.load(folder / "out" / f"{output}.npy")[0], np.asarray(wanted[output]).reshape(np.load(folder / "out" / f"{output}.npy")[0].shape))
            assert off <= EXACT, (name, output, off)
    model, package, picture = folder / "tied", folder / "m.mlpackage", folder / "pixel_values.npy"
    expect(run("compile", model, "-o", package, *sized), 0)
    expect(run("verify", model, package), 0, "PASSED")
    # The tokens of the picture may be left out: they then stand in front.
    ids = inputs["input_ids"][0]
    count, image = int((ids == ids[1]).sum()), int(ids[1])
    answers = [json.loads(expect(run("run", what, "--picture", picture, "--tokens", ",".join(map(str, given)), "--generate", 5, "--json", *more), 0).stdout)
               for what, given, more in ((model, count * [image] + [5, 7, 3], sized), (model, [5, 7, 3], sized), (package, [5, 7, 3], []))]
    assert answers[0]["tokens"] == answers[1]["tokens"] == answers[2]["tokens"] and len(answers[0]["tokens"]) > 1, answers
    # Tasks are names of prompts.
    special = {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>"}
    words = tokenizer(model, special, image, ((), (2,)))
    config = json.loads((model / "tokenizer.json").read_text())
    for n, word in enumerate(["▁What", "▁does", "▁the", "▁image", "▁describe?", "▁Locate", "▁a", "▁cat", "▁in", "▁image."]):
        config["model"]["vocab"][10 + n][0] = word
    (model / "tokenizer.json").write_text(json.dumps(config))
    for prompt, wanted_ids in (("<CAPTION>", [10, 11, 12, 13, 14]), ("<OPEN_VOCABULARY_DETECTION> a cat", [15, 16, 17, 18, 12, 19]),
                               (f"{words[30].strip('▁')}", [30])):
        found = json.loads(expect(run("run", model, "--picture", picture, "--prompt", prompt, "--generate", 2, "--json", *sized), 0).stdout)
        assert found["prompt_tokens"] == count * [image] + wanted_ids + [2], (prompt, found["prompt_tokens"])
    expect(run("run", model, "--picture", picture, "--prompt", "<CAPTION> of a cat", *sized), 2, "stands alone")
    expect(run("run", model, "--picture", picture, "--prompt", "<REGION_TO_OCR>", *sized), 2, "followed by a text")
    for arguments in (["--prompt", "a"], ["--picture", picture], ["--tokens", "5,6"]):
        expect(run("run", model, *arguments, *sized), 2, "a picture and a text")


def test_florence_refusals(folder):
    florence(folder / "good")
    for number, (part, changes, text) in enumerate((
            ("vision_config", {"model_type": "davit"}, "florence-community"), ("vision_config", {"patch_padding": [3, 0]}, "patch_padding"),
            ("vision_config", {"depths": [1]}, "depths"), ("vision_config", {"embed_dim": [8, 18]}, "heads"),
            ("vision_config", {"projection_dim": 5}, "projection_dim"), ("vision_config", {"max_position_embeddings": 3}, "positions"),
            ("vision_config", {"window_size": 10**6}, "window"), ("vision_config", {"patch_prenorm": 1}, "patch_prenorm"),
            ("text_config", {"vocab_size": 0}, "vocabulary"), (None, {"image_token_id": -1}, "image_token_id"), (None, {"vision_config": 3}, "vision_config"))):
        model = folder / f"{number}"
        model.mkdir()
        config = json.loads((folder / "good" / "config.json").read_text())
        (config[part] if part else config).update(changes)
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_bytes((folder / "good" / "model.safetensors").read_bytes())
        result = run("compile", model, "-o", folder / "m.mlpackage", "--shape", "pixel_values=1,3,24,28")
        assert result.code == 1 and text in result.stderr, (changes, result)


def test_refusals(folder):
    donut(folder / "good")

    def bad(identifier, *texts, **changes):
        model = folder / "bad"
        model.mkdir(exist_ok=True)
        config = json.loads((folder / "good" / "config.json").read_text())
        config["encoder"] |= changes
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_bytes((folder / "good" / "model.safetensors").read_bytes())
        refused(run("compile", model, "-o", folder / "m.mlpackage"), identifier, *texts)

    bad("unsupported-architecture", "unsupported encoder", "donut-swin", model_type="resnet")
    bad("unsupported-architecture", "use_absolute_embeddings", use_absolute_embeddings=True)
    bad("bad-file", "image_size", image_size=[1, 2, 3])
    bad("bad-file", image_size=0)
    bad("bad-file", num_heads=[3, 4])
    bad("bad-file", depths=[])
    bad("resource-limit", window_size=10 ** 6)
    bad("missing-tensor", depths=[2, 3])
    bad("bad-tensor", embed_dim=24, num_heads=[2, 4])


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "encoder-decoders that read pictures"))
