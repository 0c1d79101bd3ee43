#!/usr/bin/env python3
"""Tests folders of models that read pictures and texts: features of pictures, logits of a text with a picture in it, and generated
tokens, against transformers (oracle.npz of the corpus); towers and projectors without a folder in the corpus against a reading
in NumPy."""
import json
import pathlib
import subprocess
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parent))
import numpy as np

import picture_numpy
import safetensors_file
from driver import CORPUS, MLC, expect, run, run_tests
from language_models import error, refused

FOLDERS = ["hf_idefics3", "hf_llava", "hf_qwen2_vl", "hf_smolvlm"]
EXACT, PACKAGE = 1e-5, 2e-2


def picture_of(name, oracle):
    """Returns the pixels as the model expects them [tiles, 3, height, width]."""
    pixels = oracle["in_pixel_values"]
    if name != "hf_qwen2_vl":
        return pixels.reshape(-1, *pixels.shape[-3:])
    _, rows, columns = oracle["in_image_grid_thw"][0]
    # Patches in squares of 2 x 2; of the two frames, which are equal, one is taken.
    parts = pixels.reshape(rows // 2, columns // 2, 2, 2, 3, 2, 14, 14)[:, :, :, :, :, 0]
    return parts.transpose(4, 0, 2, 5, 1, 3, 6).reshape(1, 3, rows * 14, columns * 14)


def test_corpus(folder):
    if not (CORPUS / "folders").exists():
        print("# models that read pictures and texts: skipped, there is no corpus")
        return
    worst = {"features": 0, "logits": 0, "steps": 0, "package": 0}
    for name in FOLDERS:
        model, oracle = CORPUS / "folders" / name, np.load(CORPUS / "folders" / name / "oracle.npz")
        pixels = picture_of(name, oracle)
        array = ["--io", "tensor", *(["--shape", f"pixel_values=1,3,{pixels.shape[2]},{pixels.shape[3]}"] if "qwen" in name else [])]
        exact = [*array, "--arithmetic", "exact"]
        features = []
        for tile in pixels:
            np.save(folder / "tile.npy", tile[None])
            expect(run("run", model, *exact, "--function", "vision", "--input", f"pixel_values={folder / 'tile.npy'}",
                       "--output-dir", folder / "vision"), 0)
            features.append(np.load(folder / "vision" / "image_features.npy"))
        off = error(np.concatenate(features).reshape(oracle["out_image_features"].shape), oracle["out_image_features"])
        worst["features"] = max(worst["features"], off)
        assert off <= EXACT, (name, off)
        np.save(folder / "picture.npy", pixels)
        ids = ",".join(map(str, oracle["in_input_ids"][0]))
        given = ["--tokens", ids, "--picture", folder / "picture.npy"]
        wanted = oracle["out_logits"][0]
        for key, step in (("logits", []), ("steps", ["--step"])):
            expect(run("run", model, *exact, *given, *step, "--output-dir", folder / "out"), 0)
            off = error(np.load(folder / "out" / "logits.npy"), wanted)
            worst[key] = max(worst[key], off)
            assert off <= EXACT, (name, key, off)
        package = folder / f"{name}.mlpackage"
        expect(run("compile", model, *array, "-o", package, "--verify-each"), 0)
        expect(run("run", package, *given, "--output-dir", folder / "package"), 0)
        off = error(np.load(folder / "package" / "logits.npy"), wanted)
        worst["package"] = max(worst["package"], off)
        assert off <= PACKAGE, (name, off)
        generated = oracle["out_generated_ids"][0]
        for what, options in ((model, exact), (package, [])):
            answer = expect(run("run", what, *options, *given, "--generate", str(len(generated)), "--json"), 0).answer
            assert answer["tokens"] == generated.tolist(), (name, what, answer["tokens"], generated)
    print("# models that read pictures and texts against transformers: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))


def test_pictures(folder):
    """Pictures of the final size give the features of the processor's numbers; a single token becomes all of a picture's."""
    if not (CORPUS / "folders").exists():
        return
    for name in FOLDERS:
        model, oracle = CORPUS / "folders" / name, np.load(CORPUS / "folders" / name / "oracle.npz")
        final = model / "image_final.npy"
        pixels = np.load(final if final.exists() else model / "image.npy")
        ids = oracle["in_input_ids"][0].tolist()
        token = max(set(ids), key=ids.count)
        shape = ["--shape", f"pixel_values=1,3,{pixels.shape[0]},{pixels.shape[1]}"] if "qwen" in name else []

        def off(picture, ids):
            expect(run("run", model, *shape, "--arithmetic", "exact", "--tokens", ",".join(map(str, ids)), "--picture", picture,
                       "--output-dir", folder / "out"), 0)
            return error(np.load(folder / "out" / "logits.npy"), oracle["out_logits"][0])

        picture = folder / f"{name}.ppm"
        if pixels.ndim == 4:  # tiles, and the whole picture, which mlc scales with another filter
            np.save(folder / "tiles.npy", pixels)
            assert off(folder / "tiles.npy", ids) <= EXACT, name
            pixels = pixels[:4].reshape(2, 2, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(64, 64, 3)
            limit = 0.2
        else:
            first, limit = ids.index(token), EXACT
            ids = ids[:first + 1] + ids[first + ids.count(token):]
        picture.write_bytes(f"P6 {pixels.shape[1]} {pixels.shape[0]} 255\n".encode() + pixels.astype("u1").tobytes())
        assert off(picture, ids) <= limit, (name, off(picture, ids))


# ---- texts with a picture in them

LISTS = ("{% for m in messages %}u{% for c in m.content %}{% if c.type == 'image' %}PICTURE{% else %}{{ c.text }}{% endif %}{% endfor %}"
         "{% endfor %}c")
# As folders of older models have them: they add a message to a text, which a list is not.
TEXTS = "{% for m in messages %}{{ 'u' + m.content }}{% endfor %}c"
BOS, EOS = "<s>", "</s>"
# The spelling of ids of the reference; the others have letters of their own.
SPELLED = {
    "hf_llava": {1: BOS, 2: EOS, 17: "u", 93: "a", 255: "<image>", 41: "b", 8: "d", 60: "c"},
    "hf_qwen2_vl": {1: BOS, 2: EOS, 17: "u", 252: "<|vision_start|>", 254: "<|image_pad|>", 253: "<|vision_end|>", 93: "a", 41: "b", 8: "c"},
    "hf_smolvlm": {1: BOS, 2: EOS, 17: "u", 250: "<fake_token_around_image>", 251: "<global-img>", 255: "<image>", 10: "\n", 93: "a", 41: "b", 8: "c",
                   200: "<row_1_col_1>", 201: "<row_1_col_2>", 204: "<row_2_col_1>", 205: "<row_2_col_2>"},
}
SPELLED["hf_idefics3"] = SPELLED["hf_smolvlm"]
# What the template writes for a picture, the message, and the same message with the placeholder written by hand.
SAID = {"hf_llava": ("", "a<image>bd", None), "hf_qwen2_vl": ("<|vision_start|><|image_pad|><|vision_end|>", "ab", "<|vision_start|><|image_pad|><|vision_end|>ab"),
        "hf_smolvlm": ("<image>", "ab", "<image>ab"), "hf_idefics3": ("<image>", "ab", "<image>ab")}


def with_tokenizer(model, folder, spelled, template=None, processor=True, template_file=None, count=256):
    """Copies a folder of so many tokens, and writes a tokenizer."""
    folder.mkdir()
    for file in model.iterdir():
        if file.suffix in (".json", ".safetensors") and (processor or file.name != "preprocessor_config.json"):
            (folder / file.name).symlink_to(file)
    spelling = {i: spelled.get(i, chr(0x4e00 + i)) for i in range(count)}
    special = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for i, text in spelling.items() if len(text) > 1]
    begin = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [], "special_tokens": {BOS: {"id": BOS, "ids": [1], "tokens": [BOS]}}}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": None,
        "post_processor": begin, "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {text: i for i, text in spelling.items()}, "merges": []}}))
    config = {"bos_token": BOS, "eos_token": EOS}
    if template and not template_file:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if template_file:
        (folder / template_file).write_text(json.dumps({"chat_template": template}) if template_file.endswith(".json") else template)
    return spelling


def picture_file(model, folder):
    """A picture of the size that the processor makes; tiles are a file of arrays, since the processor scales the whole with another filter."""
    final = model / "image_final.npy"
    pixels = np.load(final if final.exists() else model / "image.npy")
    if pixels.ndim == 4:
        np.save(folder / "tiles.npy", pixels)
        return folder / "tiles.npy", []
    path = folder / "picture.ppm"
    path.write_bytes(f"P6 {pixels.shape[1]} {pixels.shape[0]} 255\n".encode() + pixels.astype("u1").tobytes())
    return path, ["--shape", f"pixel_values=1,3,{pixels.shape[0]},{pixels.shape[1]}"]


def test_chat(folder):
    """A picture and a prompt become the tokens and the answer of the reference, in folders and packages."""
    if not (CORPUS / "folders").exists():
        return
    for name in FOLDERS:
        model, oracle = CORPUS / "folders" / name, np.load(CORPUS / "folders" / name / "oracle.npz")
        written, message, by_hand = SAID[name]
        own = folder / name
        spelling = with_tokenizer(model, own, SPELLED[name], LISTS.replace("PICTURE", written),
                                  template_file={"hf_qwen2_vl": "chat_template.json", "hf_idefics3": "chat_template.jinja"}.get(name))
        picture, shape = picture_file(model, folder)
        shape = shape if "qwen" in name else []
        generated = oracle["out_generated_ids"][0].tolist()
        text = "".join(spelling[i] for i in generated if len(spelling[i]) == 1)  # without special tokens
        package = folder / f"{name}.mlpackage"
        expect(run("compile", own, *shape, "-o", package), 0)
        # A folder takes the size from the picture.
        for what, options in ((own, ["--arithmetic", "exact"]), (package, [])):
            ask = ["run", what, *options, "--picture", picture, "--generate", len(generated)]
            answer = expect(run(*ask, "--chat", "--prompt", message, "--json"), 0).answer
            assert answer["prompt_tokens"] == oracle["in_input_ids"][0].tolist(), (name, answer["prompt_tokens"])
            assert (answer["tokens"], answer["text"]) == (generated, text), (name, answer)
            assert expect(run(*ask, "--chat", "--prompt", message), 0).stdout == text + "\n", name
            # Without a template the prompt says where the picture stands, or it comes first.
            answer = expect(run(*ask, "--prompt", f"u{by_hand or message}c", "--json"), 0).answer
            assert answer["tokens"] == generated, (name, answer)
            if "llava" not in name:  # which puts a line break after it
                found = expect(run(*ask, "--prompt", "ab", "--json"), 0).answer["prompt_tokens"]
                first = oracle["in_input_ids"][0].tolist()
                assert found == first[:1] + first[2:-1], (name, found)
        # A template that takes texts: the placeholder is put before the message, unless that has it.
        template = folder / "texts.jinja"
        template.write_text(TEXTS)
        answer = expect(run("run", own, "--picture", picture, "--generate", 2, "--chat", "--prompt", message, "--chat-template", template,
                            "--json"), 0).answer
        assert answer["prompt_tokens"] == oracle["in_input_ids"][0].tolist(), (name, answer["prompt_tokens"])


def test_chat_says_what_is_missing(folder):
    if not (CORPUS / "folders").exists():
        return
    model = CORPUS / "folders" / "hf_llava"
    picture, _ = picture_file(model, folder)
    bare = folder / "bare"
    with_tokenizer(model, bare, SPELLED["hf_llava"], TEXTS, processor=False)
    for ask in (["--picture", picture, "--function", "vision"], ["--picture", picture, "--chat", "--prompt", "a"]):
        refused(run("run", bare, *ask), "usage", "no image input", "pixel_values", "no preprocessor_config.json", "--image pixel_values=rgb,SCALE,BIAS")
    refused(run("run", CORPUS / "folders" / "hf_smolvlm", "--picture", picture, "--prompt", "a"), "unsupported-tokenizer", "tokenizer.json")
    own = folder / "own"
    with_tokenizer(model, own, SPELLED["hf_llava"])
    refused(run("run", own, "--picture", picture, "--chat", "--prompt", "a"), "usage", "no chat template")
    refused(run("run", own, "--picture", picture, "--prompt", "<image>a<image>"), "bad-input", "2 places for a picture (<image>)")
    # A model that takes no tiles refuses a picture twice as large.
    wide = folder / "wide.ppm"
    wide.write_bytes(b"P6 64 64 255\n" + bytes(64 * 64 * 3))
    refused(run("run", own, "--picture", wide, "--prompt", "a"), "bad-input", "64 x 64", "--fit")
    expect(run("run", own, "--picture", wide, "--fit", "stretch", "--prompt", "a", "--generate", 1), 0)


# ---- towers and projectors in NumPy

def gelu(x):
    return 0.5 * x * (1 + np.vectorize(__import__("math").erf)(x / np.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Weights(dict):
    """Draws each tensor when it is asked for first."""
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def of(self, name, *shape, around=0.0):
        if name not in self:
            self[name] = (around + self.random.standard_normal(shape) * (0.1 if around else 0.3)).astype("f4")
        return self[name].astype("f8")

    def linear(self, name, x, out, bias=True):
        y = x @ self.of(f"{name}.weight", out, x.shape[-1]).T
        return y + self.of(f"{name}.bias", out) if bias else y

    def norm(self, name, x, epsilon, rms=False):
        if rms:
            return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + epsilon) * self.of(f"{name}.weight", x.shape[-1], around=1)
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
        return y * self.of(f"{name}.weight", x.shape[-1], around=1) + self.of(f"{name}.bias", x.shape[-1])


def patches(pixels, weight):
    """Returns [rows, columns, width] of pixels [3, height, width] and a kernel [width, 3, side, side]."""
    side = weight.shape[-1]
    _, height, width = pixels.shape
    parts = pixels.reshape(3, height // side, side, width // side, side).transpose(1, 3, 0, 2, 4)
    return np.einsum("yxcij,ocij->yxo", parts, weight)


def attend(q, k, v, heads, bias=0):
    split = lambda x: x.reshape(len(x), heads, -1).transpose(1, 0, 2)
    q, k, v = map(split, (q, k, v))
    y = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + bias) @ v
    return y.transpose(1, 0, 2).reshape(len(y[0]), -1)


def squares(x, side):
    rows, columns, width = x.shape
    return x.reshape(rows // side, side, columns // side, side, width).transpose(0, 2, 1, 3, 4).reshape(-1, side * side * width)


SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32, "patch_size": 4}


def siglip(w, pixels, prefix="vision_tower.vision_model."):
    width, epsilon = 32, 1e-6
    x = patches(pixels, w.of(f"{prefix}embeddings.patch_embedding.weight", width, 3, 4, 4)) + w.of(
        f"{prefix}embeddings.patch_embedding.bias", width)
    x = x.reshape(64, width) + w.of(f"{prefix}embeddings.position_embedding.weight", 64, width)
    for layer in range(2):
        own = f"{prefix}encoder.layers.{layer}."
        y = w.norm(f"{own}layer_norm1", x, epsilon)
        q, k, v = (w.linear(f"{own}self_attn.{name}_proj", y, width) for name in "qkv")
        x = x + w.linear(f"{own}self_attn.out_proj", attend(q, k, v, 4), width)
        y = gelu_tanh(w.linear(f"{own}mlp.fc1", w.norm(f"{own}layer_norm2", x, epsilon), 48))
        x = x + w.linear(f"{own}mlp.fc2", y, width)
    return w.norm(f"{prefix}post_layernorm", x, epsilon)


def paligemma(w, pixels):
    x = w.linear("multi_modal_projector.linear", siglip(w, pixels), 24) / np.sqrt(24)
    return x, {"vision_config": {**SIZES, "model_type": "siglip_vision_model"}, "image_token_index": 47}, "gemma"


# What version 5 of transformers writes of a model that sees prompts both ways.
SEES = {"paligemma": {"use_bidirectional_attention": True}}


def gemma3(w, pixels):
    x = siglip(w, pixels).reshape(4, 2, 4, 2, 32).mean((1, 3)).reshape(16, 32)
    x = x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * (1 + w.of("multi_modal_projector.mm_soft_emb_norm.weight", 32))
    x = x @ w.of("multi_modal_projector.mm_input_projection_weight", 32, 24)
    return x, {"vision_config": {**SIZES, "model_type": "siglip_vision_model"}, "mm_tokens_per_image": 16, "image_token_index": 47}, "gemma3_text"


def internvl(w, pixels):
    width, epsilon, prefix = 32, 1e-6, "model.vision_tower."
    x = patches(pixels, w.of(f"{prefix}embeddings.patch_embeddings.projection.weight", width, 3, 4, 4)) + w.of(
        f"{prefix}embeddings.patch_embeddings.projection.bias", width)
    x = np.concatenate([w.of(f"{prefix}embeddings.cls_token", 1, 1, width)[0], x.reshape(64, width)])
    x = x + w.of(f"{prefix}embeddings.position_embeddings", 1, 65, width)[0]
    for layer in range(2):
        own = f"{prefix}encoder.layer.{layer}."
        y = w.norm(f"{own}layernorm_before", x, epsilon)
        q, k, v = (w.linear(f"{own}attention.{name}_proj", y, width, bias=False) for name in "qkv")
        y = w.linear(f"{own}attention.projection_layer", attend(q, k, v, 4), width)
        x = x + w.of(f"{own}lambda_1", width, around=1) * y
        y = gelu(w.linear(f"{own}mlp.fc1", w.norm(f"{own}layernorm_after", x, epsilon), 48))
        x = x + w.of(f"{own}lambda_2", width, around=1) * w.linear(f"{own}mlp.fc2", y, width)
    x = w.norm("model.multi_modal_projector.layer_norm", squares(x[1:].reshape(8, 8, width), 2), 1e-5)
    x = gelu(w.linear("model.multi_modal_projector.linear_1", x, 24))
    return w.linear("model.multi_modal_projector.linear_2", x, 24), {
        "vision_config": {**SIZES, "model_type": "internvl_vision", "image_size": [32, 32], "patch_size": [4, 4]},
        "image_token_id": 47}, "qwen2"


def qwen2_5_vl(w, pixels):
    width, heads, side = 32, 2, 4
    frames = w.of("model.visual.patch_embed.proj.weight", width, 3, 2, side, side)
    x = patches(pixels, frames.sum(2))
    rows, columns, _ = x.shape
    y, c = np.divmod(np.arange(rows * columns), columns)
    quarter = width // heads // 4
    frequency = 10000.0 ** (-np.arange(quarter) / quarter)
    angles = np.tile(np.concatenate([y[:, None] * frequency, c[:, None] * frequency], 1), 2)
    turn = lambda v: v * np.cos(angles)[:, None] + np.concatenate([-v[..., 2 * quarter:], v[..., :2 * quarter]], -1) * np.sin(angles)[:, None]
    window = y // 4 * 100 + c // 4  # two squares of two patches
    apart = np.where(window[:, None] == window[None], 0, -1e9)
    x = x.reshape(-1, width)
    for layer in range(2):
        own = f"model.visual.blocks.{layer}."
        q, k, v = np.split(w.linear(f"{own}attn.qkv", w.norm(f"{own}norm1", x, 1e-6, True), 3 * width), 3, 1)
        q, k = (turn(t.reshape(len(t), heads, -1)).reshape(len(t), width) for t in (q, k))
        x = x + w.linear(f"{own}attn.proj", attend(q, k, v, heads, 0 if layer == 1 else apart), width)
        h = w.norm(f"{own}norm2", x, 1e-6, True)
        h = silu(w.linear(f"{own}mlp.gate_proj", h, 48)) * w.linear(f"{own}mlp.up_proj", h, 48)
        x = x + w.linear(f"{own}mlp.down_proj", h, width)
    x = w.norm("model.visual.merger.ln_q", x, 1e-6, True).reshape(rows, columns, width)
    x = gelu(w.linear("model.visual.merger.mlp.0", squares(x, 2), 4 * width))
    return w.linear("model.visual.merger.mlp.2", x, 24), {
        "vision_config": {"hidden_size": 32, "intermediate_size": 48, "depth": 2, "num_heads": 2, "patch_size": 4, "window_size": 16,
                          "fullatt_block_indexes": [1], "out_hidden_size": 24},
        "image_token_id": 47, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}}, "qwen2"


def quick_gelu(x):
    return x / (1 + np.exp(-1.702 * x))


def qwen2_vl(w, pixels):
    width, heads, side = 32, 2, 4
    x = patches(pixels, w.of("visual.patch_embed.proj.weight", width, 3, 2, side, side).sum(2))
    rows, columns, _ = x.shape
    x, angles = x.reshape(-1, width), qwen_angles(rows, columns, width, heads)
    for layer in range(2):
        own = f"visual.blocks.{layer}."
        q, k, v = np.split(w.linear(f"{own}attn.qkv", w.norm(f"{own}norm1", x, 1e-6), 3 * width), 3, 1)
        q, k = (turned(t.reshape(len(t), heads, -1), angles).reshape(len(t), width) for t in (q, k))
        x = x + w.linear(f"{own}attn.proj", attend(q, k, v, heads), width)
        x = x + w.linear(f"{own}mlp.fc2", quick_gelu(w.linear(f"{own}mlp.fc1", w.norm(f"{own}norm2", x, 1e-6), 64)), width)
    x = w.norm("visual.merger.ln_q", x, 1e-6).reshape(rows, columns, width)
    x = gelu(w.linear("visual.merger.mlp.0", squares(x, 2), 4 * width))
    return w.linear("visual.merger.mlp.2", x, 24), {
        "vision_config": {"embed_dim": 32, "mlp_ratio": 2, "depth": 2, "num_heads": 2, "patch_size": 4, "hidden_size": 24},
        "image_token_id": 47, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}}, "qwen2"


def llava(w, pixels):
    """The state before the last of three layers, without the class token; the last norm is not applied."""
    width, epsilon, prefix = 32, 1e-5, "model.vision_tower.vision_model."
    x = patches(pixels, w.of(f"{prefix}embeddings.patch_embedding.weight", width, 3, 4, 4)).reshape(64, width)
    x = np.concatenate([w.of(f"{prefix}embeddings.class_embedding", width)[None], x])
    x = w.norm(f"{prefix}pre_layrnorm", x + w.of(f"{prefix}embeddings.position_embedding.weight", 65, width), epsilon)
    for layer in range(3):
        before, own = x, f"{prefix}encoder.layers.{layer}."
        y = w.norm(f"{own}layer_norm1", x, epsilon)
        q, k, v = (w.linear(f"{own}self_attn.{name}_proj", y, width) for name in "qkv")
        x = x + w.linear(f"{own}self_attn.out_proj", attend(q, k, v, 4), width)
        y = quick_gelu(w.linear(f"{own}mlp.fc1", w.norm(f"{own}layer_norm2", x, epsilon), 48))
        x = x + w.linear(f"{own}mlp.fc2", y, width)
    w.norm(f"{prefix}post_layernorm", x, epsilon)
    x = gelu(w.linear("model.multi_modal_projector.linear_1", before[1:], 24))
    return w.linear("model.multi_modal_projector.linear_2", x, 24), {
        "vision_config": {**SIZES, "num_hidden_layers": 3, "model_type": "clip_vision_model"}, "image_token_index": 47,
        "projector_hidden_act": "gelu"}, "llama"


def gemma_llava(w, pixels):
    features, config, _ = llava(w, pixels)
    return features, config, "gemma"


def idefics3(w, pixels):
    x = squares(siglip(w, pixels, "model.vision_model.").reshape(8, 8, 32), 2)
    return w.linear("model.connector.modality_projection.proj", x, 24, bias=False), {
        "vision_config": {**SIZES, "model_type": "idefics3_vision"}, "image_token_id": 47, "scale_factor": 2}, "llama"


def qwen_angles(rows, columns, width, heads):
    y, c = np.divmod(np.arange(rows * columns), columns)
    quarter = width // heads // 4
    frequency = 10000.0 ** (-np.arange(quarter) / quarter)
    return np.tile(np.concatenate([y[:, None] * frequency, c[:, None] * frequency], 1), 2)


def turned(v, angles):
    half = v.shape[-1] // 2
    return v * np.cos(angles)[:, None] + np.concatenate([-v[..., half:], v[..., :half]], -1) * np.sin(angles)[:, None]


def corners(table, side, rows, columns):
    """Resizes [side * side, width] with the corners kept (modeling_qwen3_vl.py, fast_pos_embed_interpolate)."""
    def matrix(count):
        m = np.zeros((count, side))
        for i, place in enumerate(np.linspace(0, side - 1, count)):
            low = int(place)
            m[i, low] += 1 - (place - low)
            m[i, min(low + 1, side - 1)] += place - low
        return m
    return np.einsum("ay,bx,yxw->abw", matrix(rows), matrix(columns), table.reshape(side, side, -1)).reshape(rows * columns, -1)


def qwen3_vl(w, pixels):
    width, heads, side = 32, 2, 4
    frames = w.of("model.visual.patch_embed.proj.weight", width, 3, 2, side, side)
    x = patches(pixels, frames.sum(2)) + w.of("model.visual.patch_embed.proj.bias", width)
    rows, columns, _ = x.shape
    x = x.reshape(-1, width) + corners(w.of("model.visual.pos_embed.weight", 25, width), 5, rows, columns)
    angles, deep = qwen_angles(rows, columns, width, heads), []

    def merged(own, x, joined):
        if not joined:
            x = w.norm(f"{own}.norm", x, 1e-6)
        x = squares(x.reshape(rows, columns, width), 2)
        if joined:
            x = w.norm(f"{own}.norm", x, 1e-6)
        return w.linear(f"{own}.linear_fc2", gelu(w.linear(f"{own}.linear_fc1", x, 4 * width)), 24)

    for layer in range(3):
        own = f"model.visual.blocks.{layer}."
        q, k, v = np.split(w.linear(f"{own}attn.qkv", w.norm(f"{own}norm1", x, 1e-6), 3 * width), 3, 1)
        q, k = (turned(t.reshape(len(t), heads, -1), angles).reshape(len(t), width) for t in (q, k))
        x = x + w.linear(f"{own}attn.proj", attend(q, k, v, heads), width)
        h = gelu_tanh(w.linear(f"{own}mlp.linear_fc1", w.norm(f"{own}norm2", x, 1e-6), 48))
        x = x + w.linear(f"{own}mlp.linear_fc2", h, width)
        if layer in (2, 0):
            deep.append((layer, x))
    # The lists of layers and of mergers have one order, which need not be that of the layers.
    w.deepstack = [merged(f"model.visual.deepstack_merger_list.{i}", dict(deep)[layer], True) for i, layer in enumerate((0, 2))]
    return merged("model.visual.merger", x, False), {
        "vision_config": {"hidden_size": 32, "intermediate_size": 48, "depth": 3, "num_heads": 2, "patch_size": 4, "out_hidden_size": 24,
                          "num_position_embeddings": 25, "deepstack_visual_indexes": [0, 2]},
        "image_token_id": 47}, "qwen3_vl_text"


def lfm2_vl(w, pixels):
    width, epsilon, prefix = 32, 1e-6, "model.vision_tower.vision_model."
    weight = w.of(f"{prefix}embeddings.patch_embedding.weight", width, 48)
    x = patches(pixels, weight.reshape(width, 4, 4, 3).transpose(0, 3, 1, 2)) + w.of(f"{prefix}embeddings.patch_embedding.bias", width)
    x = x.reshape(64, width) + w.of(f"{prefix}embeddings.position_embedding.weight", 64, width)
    for layer in range(2):
        own = f"{prefix}encoder.layers.{layer}."
        y = w.norm(f"{own}layer_norm1", x, epsilon)
        q, k, v = (w.linear(f"{own}self_attn.{name}_proj", y, width) for name in "qkv")
        x = x + w.linear(f"{own}self_attn.out_proj", attend(q, k, v, 4), width)
        y = gelu_tanh(w.linear(f"{own}mlp.fc1", w.norm(f"{own}layer_norm2", x, epsilon), 48))
        x = x + w.linear(f"{own}mlp.fc2", y, width)
    x = squares(w.norm(f"{prefix}post_layernorm", x, epsilon).reshape(8, 8, width), 2)
    x = w.norm("model.multi_modal_projector.layer_norm", x, 1e-5)
    x = gelu(w.linear("model.multi_modal_projector.linear_1", x, 20))
    return w.linear("model.multi_modal_projector.linear_2", x, 24), {
        "vision_config": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "patch_size": 4,
                          "num_patches": 64},
        "projector_hidden_size": 20, "image_token_id": 47}, "lfm2"


TEXT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 3,
        "head_dim": 8, "vocab_size": 48, "max_position_embeddings": 96, "sliding_window": 6}


def gemma_logits(w, kind, tokens, features, prefix, whole=True):
    """One layer of Gemma or Gemma 3, whose only layer has a window; the whole prompt, or the picture, is seen both ways."""
    third = kind == "gemma3_text"
    rms = lambda name, x: x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * (1 + w.of(f"{prefix}{name}.weight", x.shape[-1]))
    table = w.of(f"{prefix}embed_tokens.weight", 48, 24)
    x, where = table[tokens] * np.sqrt(24), np.array(tokens) == 47
    x[where] = features * (1 if third else np.sqrt(24))
    place = np.arange(len(tokens))
    seen = place[None] <= place[:, None]
    if third:
        seen &= place[:, None] - place[None] < TEXT["sliding_window"]
        seen |= where[:, None] & where[None]
    elif whole:
        seen |= True
    angles = place[:, None] * 10000.0 ** (-np.arange(4) / 4)
    turn = lambda v: np.concatenate([v[..., :4] * np.cos(angles) - v[..., 4:] * np.sin(angles),
                                     v[..., 4:] * np.cos(angles) + v[..., :4] * np.sin(angles)], -1)
    own = "layers.0."
    h = rms(f"{own}input_layernorm", x)
    q, k, v = ((h @ w.of(f"{prefix}{own}self_attn.{name}_proj.weight", 24, 24).T).reshape(len(tokens), 3, 8).transpose(1, 0, 2)
               for name in "qkv")
    if third:
        q, k = rms(f"{own}self_attn.q_norm", q), rms(f"{own}self_attn.k_norm", k)
    scores = turn(q) @ turn(k).transpose(0, 2, 1) * (1 / 16 if third else 8 ** -0.5)
    y = (softmax(np.where(seen, scores, -1e9)) @ v).transpose(1, 0, 2).reshape(len(tokens), 24)
    y = y @ w.of(f"{prefix}{own}self_attn.o_proj.weight", 24, 24).T
    x = x + (rms(f"{own}post_attention_layernorm", y) if third else y)
    h = rms(f"{own}{'pre_feedforward' if third else 'post_attention'}_layernorm", x)
    part = lambda name, *shape: w.of(f"{prefix}{own}mlp.{name}_proj.weight", *shape).T
    y = (gelu_tanh(h @ part("gate", 40, 24)) * (h @ part("up", 40, 24))) @ part("down", 24, 40)
    x = x + (rms(f"{own}post_feedforward_layernorm", y) if third else y)
    return rms("norm", x) @ table.T


def rms(w, name, x, epsilon=1e-6):
    return w.norm(name, x, epsilon, True)


def causal(q, k, v, groups=1):
    """Queries, keys and values [heads, tokens, size]; returns [tokens, heads * size]."""
    k, v = np.repeat(k, groups, 0), np.repeat(v, groups, 0)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    seen = np.tril(np.ones(scores.shape[1:], bool))
    return (softmax(np.where(seen, scores, -1e9)) @ v).transpose(1, 0, 2).reshape(len(q[0]), -1)


def qwen3_logits(w, tokens, features, prefix):
    """Two layers; after each of them the features of the picture are added (modeling_qwen3_vl.py)."""
    x, where = w.of(f"{prefix}embed_tokens.weight", 48, 24)[tokens], np.array(tokens) == 47
    x[where] = features
    places, at, side = [], 0, int(len(features) ** 0.5)
    for i, token in enumerate(tokens):
        if token != 47:
            places.append((at, at, at))
            at += 1
        else:
            n = i - int(np.argmax(where))
            places.append((at, at + n // side, at + n % side))
            if n + 1 == len(features):
                at += side
    angles = np.array(places)[:, :, None] * 5000000.0 ** (-np.arange(4) / 4)  # [tokens, 3, pairs]
    # Sections 2, 1, 1: pair 1 is of the height, pair 2 of the width.
    angles = np.tile(np.stack([angles[:, 0, 0], angles[:, 1, 1], angles[:, 2, 2], angles[:, 0, 3]], 1), 2)
    for layer in range(2):
        own = f"{prefix}layers.{layer}."
        h = rms(w, f"{own}input_layernorm", x)
        heads = lambda name: (h @ w.of(f"{own}self_attn.{name}_proj.weight", 24, 24).T).reshape(len(h), 3, 8)
        q = turned(rms(w, f"{own}self_attn.q_norm", heads("q")), angles).transpose(1, 0, 2)
        k = turned(rms(w, f"{own}self_attn.k_norm", heads("k")), angles).transpose(1, 0, 2)
        x = x + causal(q, k, heads("v").transpose(1, 0, 2)) @ w.of(f"{own}self_attn.o_proj.weight", 24, 24).T
        h = rms(w, f"{own}post_attention_layernorm", x)
        part = lambda name, *shape: w.of(f"{own}mlp.{name}_proj.weight", *shape).T
        x = x + (silu(h @ part("gate", 40, 24)) * (h @ part("up", 40, 24))) @ part("down", 24, 40)
        x[where] += w.deepstack[layer]
    return rms(w, f"{prefix}norm", x) @ w.of("lm_head.weight", 48, 24).T


def lfm2_logits(w, tokens, features, prefix):
    """A short convolution, then attention (modeling_lfm2.py)."""
    table = w.of(f"{prefix}embed_tokens.weight", 48, 24)
    x = table[tokens]
    x[np.array(tokens) == 47] = features
    own = f"{prefix}layers.0."
    h = rms(w, f"{own}operator_norm", x, 1e-5)
    b, c, y = np.split(h @ w.of(f"{own}conv.in_proj.weight", 72, 24).T, 3, 1)
    y = np.concatenate([np.zeros((2, 24)), b * y])
    taps = w.of(f"{own}conv.conv.weight", 24, 1, 3)
    y = c * sum(y[i:i + len(x)] * taps[:, 0, i] for i in range(3))
    x = x + y @ w.of(f"{own}conv.out_proj.weight", 24, 24).T
    feed = lambda own, h: (silu(h @ w.of(f"{own}feed_forward.w1.weight", 32, 24).T) * (h @ w.of(f"{own}feed_forward.w3.weight", 32, 24).T)
                           ) @ w.of(f"{own}feed_forward.w2.weight", 24, 32).T
    x = x + feed(own, rms(w, f"{own}ffn_norm", x, 1e-5))
    own = f"{prefix}layers.1."
    h = rms(w, f"{own}operator_norm", x, 1e-5)
    angles = np.tile(np.arange(len(x))[:, None] * 1000000.0 ** (-np.arange(4) / 4), 2)
    heads = lambda name: (h @ w.of(f"{own}self_attn.{name}_proj.weight", 24, 24).T).reshape(len(h), 3, 8)
    q = turned(rms(w, f"{own}self_attn.q_layernorm", heads("q"), 1e-5), angles).transpose(1, 0, 2)
    k = turned(rms(w, f"{own}self_attn.k_layernorm", heads("k"), 1e-5), angles).transpose(1, 0, 2)
    x = x + causal(q, k, heads("v").transpose(1, 0, 2)) @ w.of(f"{own}self_attn.out_proj.weight", 24, 24).T
    x = x + feed(own, rms(w, f"{own}ffn_norm", x, 1e-5))
    return rms(w, f"{prefix}embedding_norm", x, 1e-5) @ table.T


def fast_vit(net, x, fused):
    """The map of timm's fastvit.py before its head, of one block in each of five stages; `fused`: as inference_mode stores it."""
    widths, batch, act = [8, 8, 16, 32, 64], net.batch_norm, gelu

    def norm_conv(name, x, out, kernel, stride, groups):
        return batch(f"{name}.bn", net.conv(f"{name}.conv", x, out, kernel, stride, groups=groups))

    def one(name, x, out, kernel, stride, groups, kxk=1, scale=True, acts=True, squeezes=False):
        if fused:
            y = net.conv(f"{name}.reparam_conv", x, out, kernel, stride, groups=groups, bias=True)
        else:
            y = sum(norm_conv(f"{name}.conv_kxk.{i}", x, out, kernel, stride, groups) for i in range(kxk))
            if kernel > 1 and scale:
                y = y + batch(f"{name}.conv_scale.bn", net.conv(f"{name}.conv_scale.conv", x, out, 1, stride, 0, groups=groups))
            if len(x) == out and stride == 1:
                y = y + batch(f"{name}.identity", x)
        if squeezes:
            m = np.maximum(net.conv(f"{name}.se.fc1", y.mean((1, 2), keepdims=True), 4, bias=True), 0)
            y = y / (1 + np.exp(-net.conv(f"{name}.se.fc2", m, out, bias=True)))
        return act(y) if acts else y

    def mlp(name, x):
        y = norm_conv(f"{name}.conv", x, len(x), 7, 1, len(x))
        return net.conv(f"{name}.fc2", act(net.conv(f"{name}.fc1", y, 4 * len(x), bias=True)), len(x), bias=True)

    def scaled(name, x):
        # Small, so that the states do not grow from block to block.
        key = f"{net.prefix}{name}.gamma"
        net.tensors.setdefault(key, net.rng.uniform(0.05, 0.2, (len(x), 1, 1)).astype("f4"))
        return x * net.tensor(f"{name}.gamma", len(x), 1, 1)

    x = one("stem.0", x, 8, 3, 2, 1, scale=False)
    x = one("stem.1", x, 8, 3, 2, 8, scale=False)
    x = one("stem.2", x, 8, 1, 1, 1, scale=False)
    for stage, width in enumerate(widths):
        own = f"stages.{stage}."
        if stage > 0:
            name, groups = f"{own}downsample.proj.", len(x)
            if fused:
                y = net.conv(f"{name}0.reparam_conv", x, width, 7, 2, 3, groups=groups, bias=True)
            else:
                y = norm_conv(f"{name}0.large_conv", x, width, 7, 2, groups) + norm_conv(f"{name}0.small_conv", x, width, 3, 2, groups)
            x = one(f"{name}1", act(y), width, 1, 1, 1)
        if stage >= 3:
            x = (net.conv(f"{own}pos_emb.reparam_conv", x, width, 7, groups=width, bias=True) if fused
                 else net.conv(f"{own}pos_emb.pos_enc", x, width, 7, groups=width, bias=True) + x)
        block = f"{own}blocks.0."
        if stage < 3:
            mixer = f"{block}token_mixer"
            if fused:
                x = net.conv(f"{mixer}.reparam_conv", x, width, 3, groups=width, bias=True)
            else:
                y = one(f"{mixer}.mixer", x, width, 3, 1, width, acts=False) - one(f"{mixer}.norm", x, width, 3, 1, width, 0, False, False)
                x = x + scaled(f"{mixer}.layer_scale", y)
            x = x + scaled(f"{block}layer_scale", mlp(f"{block}mlp", x))
        else:
            y = net.map_norm(f"{block}norm", x, 1e-5)
            tokens = y.reshape(width, -1).T
            q, k, v = np.split(net.linear(f"{block}token_mixer.qkv", tokens, 3 * width, False), 3, 1)
            y = net.linear(f"{block}token_mixer.proj", attend(q, k, v, width // 32), width).T.reshape(x.shape)
            x = x + scaled(f"{block}layer_scale_1", y)
            x = x + scaled(f"{block}layer_scale_2", mlp(f"{block}mlp", x))
    return one("final_conv", x, 128, 3, 1, 64, squeezes=True)


def fast_vlm(w, pixels, fused=False):
    net = picture_numpy.Net("model.vision_tower.timm_model.", 5)
    large = np.tile(pixels, (1, 4, 4))
    x = fast_vit(net, large, fused).reshape(128, -1).T
    w.update(net.tensors)
    w["model.vision_tower.timm_model.head.fc.weight"] = np.zeros((4, 128), "f4")
    x = gelu(w.linear("model.multi_modal_projector.linear_1", x, 24))
    return w.linear("model.multi_modal_projector.linear_2", x, 24), {
        "vision_config": {"model_type": "timm_wrapper", "architecture": "fastvit_mci3",
                          "model_args": {"inference_mode": fused, "layers": [1] * 5, "embed_dims": [8, 8, 16, 32, 64]}},
        "image_token_id": 47}, "qwen2"


def fused_fast_vlm(w, pixels):
    return fast_vlm(w, pixels, True)


# What a text has beside the usual members, and its logits for tokens and features.
TEXTS_OF = {
    "qwen3_vl_text": ({"num_hidden_layers": 2, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1], "mrope_interleaved": True}},
                      qwen3_logits),
    "lfm2": ({"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "block_ff_dim": 40, "block_multiple_of": 16,
              "intermediate_size": 7}, lfm2_logits),
}


def write(folder, make, pixels, seed=1, prefix="model.language_model."):
    """Writes a folder; returns the features of the picture, and the weights."""
    w = Weights(seed)
    features, config, kind = make(w, pixels)
    if make is idefics3:
        prefix = "model.text_model."
    if kind in TEXTS_OF:
        more, logits = TEXTS_OF[kind]
        logits(w, [1, *[47] * len(features)], features, prefix)  # draws the tensors
        config["text_config"] = {key: value for key, value in {**TEXT, "model_type": kind, **more}.items() if key != "sliding_window"}
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"model_type": make.__name__.removeprefix("fused_").removeprefix("gemma_"), **config}))
        (folder / "model.safetensors").write_bytes(safetensors_file.of({name: np.ascontiguousarray(t, "<f4") for name, t in w.items()}))
        return features, w, kind
    gemma = kind.startswith("gemma")
    for name, rows in (("q", 24), ("k", 24), ("v", 24), ("o", 24)):
        w.of(f"{prefix}layers.0.self_attn.{name}_proj.weight", rows, 24)
        if kind == "qwen2" and name != "o":
            w.of(f"{prefix}layers.0.self_attn.{name}_proj.bias", rows)
    for name, shape in (("gate", (40, 24)), ("up", (40, 24)), ("down", (24, 40))):
        w.of(f"{prefix}layers.0.mlp.{name}_proj.weight", *shape)
    norms = ["layers.0.input_layernorm", "layers.0.post_attention_layernorm", "norm"]
    if kind == "gemma3_text":
        norms += ["layers.0.pre_feedforward_layernorm", "layers.0.post_feedforward_layernorm"]
        for name in "qk":
            w.of(f"{prefix}layers.0.self_attn.{name}_norm.weight", 8, around=0 if gemma else 1)
    for name in norms:
        w.of(f"{prefix}{name}.weight", 24, around=0 if gemma else 1)
    w.of(f"{prefix}embed_tokens.weight", 48, 24)
    if not gemma:
        w.of("lm_head.weight", 48, 24)
    folder.mkdir()
    text = dict(TEXT)
    if "rope_scaling" in config:  # Qwen's first members are at the top
        config |= text
    else:
        config["text_config"] = {**text, "model_type": kind, **SEES.get(make.__name__, {})}
    (folder / "config.json").write_text(json.dumps({"model_type": make.__name__.removeprefix("fused_").removeprefix("gemma_"), **config}))
    (folder / "model.safetensors").write_bytes(safetensors_file.of({name: np.ascontiguousarray(t, "<f4") for name, t in w.items()}))
    return features, w, kind


def test_numpy(folder):
    pixels = np.random.default_rng(3).standard_normal((3, 32, 32)).astype("f4")
    np.save(folder / "pixels.npy", pixels[None])
    np.save(folder / "large.npy", np.tile(pixels, (1, 4, 4))[None])
    worst = 0
    for make in (paligemma, gemma3, internvl, llava, gemma_llava, idefics3, qwen2_vl, qwen2_5_vl, qwen3_vl, lfm2_vl, fast_vlm, fused_fast_vlm):
        model = folder / make.__name__
        features, weights, kind = write(model, make, pixels.astype("f8"))
        given = folder / ("large.npy" if "fast" in make.__name__ else "pixels.npy")
        shape = ["--shape", "pixel_values=1,3,128,128"] if "fast" in make.__name__ else [
            "--shape", "pixel_values=1,3,32,32"] if make in (qwen2_vl, qwen2_5_vl, qwen3_vl) else []
        expect(run("run", model, *shape, "--io", "tensor", "--arithmetic", "exact", "--function", "vision", "--input",
                   f"pixel_values={given}", "--output-dir", folder / "out"), 0)
        off = error(np.load(folder / "out" / "image_features.npy")[0], features)
        worst = max(worst, off)
        assert off <= EXACT, (make.__name__, off)
        count = len(features)
        expect(run("run", model, *shape, "--io", "tensor", "--tokens", "1,2,47,3", "--arithmetic", "exact", "--picture", given,
                   "--output-dir", folder / "logits"), 0)
        found = np.load(folder / "logits" / "logits.npy")
        assert found.shape == (count + 3, 48)
        if kind.startswith("gemma"):
            off = error(found, gemma_logits(weights, kind, [1, 2, *[47] * count, 3], features, "model.language_model.",
                                            make is not gemma_llava))
            worst = max(worst, off)
            assert off <= EXACT, (make.__name__, off)
        if kind in TEXTS_OF:
            for step in ([], ["--step"]):
                expect(run("run", model, *shape, "--io", "tensor", "--tokens", "1,2,47,3,5", "--arithmetic", "exact", "--picture",
                           given, *step, "--output-dir", folder / "logits"), 0)
                off = error(np.load(folder / "logits" / "logits.npy"),
                            TEXTS_OF[kind][1](weights, [1, 2, *[47] * count, 3, 5], features, "model.language_model."))
                worst = max(worst, off)
                assert off <= EXACT, (make.__name__, step, off)
        package = folder / f"{make.__name__}.mlpackage"
        expect(run("compile", model, *shape, "--io", "tensor", "-o", package), 0)
        expect(run("verify", model, package), 0, "PASSED")
    print(f"# towers and projectors within {worst:.1e} of NumPy")


def test_texts_of_processors(folder):
    """What the processors of transformers (models/*/processing_*.py) make of a prompt, in tokens."""
    pixels = np.random.default_rng(3).standard_normal((3, 32, 32)).astype("f4")
    np.save(folder / "pixels.npy", pixels[None])
    letters = {1: BOS, 2: EOS, 10: "\n", 11: "u", 12: "a", 13: "c"}
    cases = ((gemma3, {44: "<start_of_image>", 45: "<end_of_image>", 47: "<image_soft_token>"}, "<start_of_image>",
              [1, 11, 10, 10, 44, *[47] * 16, 45, 10, 10, 12, 13]),
             (internvl, {44: "<img>", 45: "</img>", 47: "<IMG_CONTEXT>"}, "<IMG_CONTEXT>\n", [1, 11, 44, *[47] * 16, 45, 10, 12, 13]),
             (lfm2_vl, {44: "<|image_start|>", 45: "<|image_end|>", 47: "<image>"}, "<image>", [1, 11, 44, *[47] * 16, 45, 12, 13]),
             (qwen3_vl, {44: "<|vision_start|>", 45: "<|vision_end|>", 47: "<|image_pad|>"}, "<|vision_start|><|image_pad|><|vision_end|>",
              [1, 11, 44, *[47] * 16, 45, 12, 13]),
             (llava, {47: "<image>"}, "<image>\n", [1, 11, *[47] * 64, 10, 12, 13]),
             # The processor puts the picture before the token that begins a text, and a line break behind.
             (paligemma, {47: "<image>"}, None, [*[47] * 64, 1, 12, 10]))
    for make, special, written, wanted in cases:
        write(folder / make.__name__, make, pixels.astype("f8"))
        own = folder / f"{make.__name__}_with_tokenizer"
        with_tokenizer(folder / make.__name__, own, letters | special, TEXTS, count=48)
        shape = ["--shape", "pixel_values=1,3,32,32"] if make is qwen3_vl else []
        ask = ["run", own, *shape, "--io", "tensor", "--picture", folder / "pixels.npy", "--generate", 1, "--json"]
        said = [["--prompt", "a"]] if written is None else [["--chat", "--prompt", "a"], ["--chat", "--prompt", f"{written}a"]]
        for text in said:
            found = expect(run(*ask, *text), 0).answer["prompt_tokens"]
            assert found == wanted, (make.__name__, text, found)


def test_a_conversation_about_a_picture(folder):
    """The picture belongs to the first message; further messages are answered as the whole conversation is."""
    if not (CORPUS / "folders").exists():
        return
    own = folder / "own"
    model = CORPUS / "folders" / "hf_smolvlm"
    with_tokenizer(model, own, SPELLED["hf_smolvlm"], LISTS.replace("PICTURE", "<image>"))
    picture, _ = picture_file(model, folder)
    ask = ["run", own, "--picture", picture, "--chat", "--generate", 3, "--arithmetic", "exact"]
    out = subprocess.run([str(MLC), *map(str, ask)], input="ab\nba\n", capture_output=True, text=True, check=True, timeout=120).stdout
    first = expect(run(*ask, "--prompt", "ab", "--json"), 0).answer
    assert out.split("\n")[0] == first["text"], (out, first["text"])
    assert len(out.split("\n")) == 3, out


def test_fast_vlm_as_published(folder):
    """Apple's folders have other names (transformers' convert_fastvlm_weights_to_hf.py), and no token for pictures."""
    pixels = np.random.default_rng(3).standard_normal((3, 32, 32)).astype("f4")
    np.save(folder / "large.npy", np.tile(pixels, (1, 4, 4))[None])
    model, own = folder / "model", folder / "own"
    features, w, _ = write(model, fused_fast_vlm, pixels.astype("f8"))
    own.mkdir()
    blocks, halves, tensors = {0: 0, 1: 2, 2: 4, 3: 7, 4: 10}, {1: 1, 2: 3, 3: 5, 4: 8}, {}
    for name, tensor in w.items():
        name = name.replace("model.language_model.", "model.").replace("model.multi_modal_projector.linear_1", "model.mm_projector.0")
        name = name.replace("model.multi_modal_projector.linear_2", "model.mm_projector.2")
        if ".head." in name:
            continue
        if "timm_model" in name:
            name = name.replace("model.vision_tower.timm_model.", "")
            for stage in range(5):
                name = name.replace(f"stages.{stage}.blocks.", f"network.{blocks[stage]}.")
                name = name.replace(f"stages.{stage}.downsample.proj.0.reparam_conv", f"network.{halves.get(stage)}.proj.0.lkb_reparam")
                name = name.replace(f"stages.{stage}.downsample.", f"network.{halves.get(stage)}.").replace(
                    f"stages.{stage}.pos_emb", f"network.{ {3: 6, 4: 9}.get(stage)}")
            for theirs, ours in (("stem", "patch_embed"), ("final_conv", "conv_exp"), ("se.fc1", "se.reduce"), ("se.fc2", "se.expand"),
                                 (".mlp.", ".convffn."), (".gamma", "")):
                name = name.replace(theirs, ours)
            name = "model.vision_tower.vision_tower.model." + name
        tensors[name] = np.ascontiguousarray(tensor, "<f4")
    config = json.loads((model / "config.json").read_text())
    flat = {**TEXT, "model_type": "llava_qwen2", "mm_vision_tower": "mobileclip_l_1024", "mm_projector_type": "mlp2x_gelu", "mm_hidden_size": 3072,
            "vision_config": {"model_args": config["vision_config"]["model_args"]}}
    (own / "config.json").write_text(json.dumps(flat))
    (own / "model.safetensors").write_bytes(safetensors_file.of(tensors))
    ask = ["--shape", "pixel_values=1,3,128,128", "--io", "tensor", "--arithmetic", "exact", "--tokens", "1,47,2", "--picture", folder / "large.npy"]
    found = []
    for what in (model, own):
        expect(run("run", what, *ask, "--output-dir", folder / "out"), 0)
        found.append(np.load(folder / "out" / "logits.npy"))
    assert error(found[1], found[0]) <= EXACT, error(found[1], found[0])
    for key, value in (("mm_projector_type", "linear"), ("mm_vision_tower", "openai/clip-vit-large-patch14")):
        (own / "config.json").write_text(json.dumps({**flat, key: value}))
        refused(run("compile", own, "-o", folder / "m.mlpackage"), "unsupported-architecture", key)


def smart_resize(height, width, unit, least, most):
    """image_processing_qwen2_vl.py"""
    rows, columns = (max(1, round(size / unit)) * unit for size in (height, width))
    if rows * columns > most:
        scale = np.sqrt(most / (height * width))
        rows, columns = (max(1, int(np.floor(size * scale / unit))) * unit for size in (height, width))
    elif rows * columns < least:
        scale = np.sqrt(least / (height * width))
        rows, columns = (int(np.ceil(size * scale / unit)) * unit for size in (height, width))
    return rows, columns


def test_sizes_of_pictures(folder):
    """Qwen reads pictures of any size: a folder takes that of the picture, a package that of --shape, or the usual one."""
    model = folder / "model"
    write(model, qwen2_vl, np.zeros((3, 32, 32)))
    processor = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "merge_size": 2, "min_pixels": 512, "max_pixels": 2048,
                 "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    for spelling in (processor, {key: value for key, value in processor.items() if "pixels" not in key} | {
            "size": {"shortest_edge": 512, "longest_edge": 2048}}):
        (model / "preprocessor_config.json").write_text(json.dumps(spelling))
        for height, width in ((32, 32), (30, 51), (28, 28), (100, 260), (9, 13), (12, 20), (400, 4)):
            picture = folder / "p.ppm"
            picture.write_bytes(f"P6 {width} {height} 255\n".encode() + bytes(width * height * 3))
            expect(run("run", model, "--tokens", "1,47,2", "--picture", picture, "--output-dir", folder / "out"), 0)
            rows, columns = smart_resize(height, width, 8, 512, 2048)
            count = len(np.load(folder / "out" / "logits.npy")) - 2
            assert count == rows * columns // 64, (height, width, count, rows, columns)
    picture.write_bytes(b"P6 2 500 255\n" + bytes(3000))
    refused(run("run", model, "--tokens", "1,47,2", "--picture", picture), "bad-input", "at most 200 times")
    package = folder / "m.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    refused(run("run", package, "--tokens", "1,47,2", "--picture", picture), "bad-input", "448 x 448")


def test_fixed_sizes(folder):
    """With a fixed number of tokens, a text with a picture is fed in parts, of which the last is padded."""
    pixels = np.random.default_rng(3).standard_normal((3, 32, 32)).astype("f4")
    np.save(folder / "pixels.npy", pixels[None])
    for make in (idefics3, qwen3_vl):
        model = folder / make.__name__
        write(model, make, pixels.astype("f8"))
        given = [*(["--shape", "pixel_values=1,3,32,32"] if make is qwen3_vl else []), "--io", "tensor"]
        ask = ["--tokens", "1,2,47,3,5", "--picture", folder / "pixels.npy", "--output-dir", folder / "out"]
        expect(run("run", model, *given, *ask, "--arithmetic", "exact"), 0)
        wanted = np.load(folder / "out" / "logits.npy")
        for size in ("tokens=8", "tokens=1,8"):
            expect(run("run", model, *given, *ask, "--arithmetic", "exact", "--dim", size), 0)
            off = error(np.load(folder / "out" / "logits.npy"), wanted)
            assert off <= EXACT, (make.__name__, size, off)
            package = folder / f"{make.__name__}{size[7:]}.mlpackage"
            expect(run("compile", model, *given, "--dim", size, "-o", package), 0)
            expect(run("run", package, *ask), 0)
            off = error(np.load(folder / "out" / "logits.npy"), wanted)
            assert off <= PACKAGE, (make.__name__, size, off)
    write(folder / "gemma", gemma3, pixels)
    refused(run("compile", folder / "gemma", "--dim", "tokens=8", "-o", folder / "g.mlpackage"), "usage", "both ways")


def test_refusals(folder):
    pixels = np.zeros((3, 32, 32))
    write(folder / "good", paligemma, pixels)

    def bad(identifier, *texts, **changes):
        model = folder / "bad"
        model.mkdir(exist_ok=True)
        config = json.loads((folder / "good" / "config.json").read_text())
        for key, value in changes.items():
            config[key] = {**config[key], **value} if isinstance(value, dict) and isinstance(config.get(key), dict) else value
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_bytes((folder / "good" / "model.safetensors").read_bytes())
        refused(run("compile", model, "-o", folder / "m.mlpackage"), identifier, *texts)

    bad("bad-file", "vision_config", vision_config=None)
    bad("bad-file", '"vision_config" is', vision_config=3)
    bad("unsupported-architecture", "clip_vision_model", vision_config={"model_type": "resnet"})
    bad("bad-file", vision_config={"hidden_size": 0})
    bad("bad-file", vision_config={"patch_size": 2**31 - 1})
    bad("bad-file", vision_config={"num_hidden_layers": -1})
    bad("resource-limit", "tokens", vision_config={"image_size": 16000, "patch_size": 1})
    bad("missing-tensor", "encoder.layers.2", vision_config={"num_hidden_layers": 3})
    bad("bad-tensor", text_config={"hidden_size": 25})
    bad("unsupported-architecture", text_config={"model_type": "none"})
    refused(run("run", folder / "good", "--tokens", "1,2", "--picture", folder / "none.png"), "file-io", "none.png")
    np.save(folder / "pixels.npy", pixels[None].astype("f4"))
    refused(run("run", folder / "good", "--io", "tensor", "--tokens", "1,2", "--picture", folder / "pixels.npy"), "bad-input",
            "0 tokens 47")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "models that read pictures and texts"))
