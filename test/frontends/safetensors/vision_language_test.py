#!/usr/bin/env python3
"""Tests folders of models that read pictures and texts: features of pictures, logits of a text with a picture in it, and generated
tokens, against transformers (oracle.npz of the corpus); towers and projectors without a folder in the corpus against a reading
in NumPy."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import safetensors_file
from driver import CORPUS, expect, run, run_tests
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


TEXT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 3,
        "head_dim": 8, "vocab_size": 48, "max_position_embeddings": 96, "sliding_window": 6}


def gemma_logits(w, kind, tokens, features, prefix):
    """One layer of Gemma or Gemma 3, whose only layer has a window; the prompt, or the picture, is seen both ways."""
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
    else:
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


def write(folder, make, pixels, seed=1, prefix="model.language_model."):
    """Writes a folder; returns the features of the picture, and the weights."""
    w = Weights(seed)
    features, config, kind = make(w, pixels)
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
    if "rope_scaling" in config:  # Qwen's members are at the top
        config |= text
    else:
        config["text_config"] = {**text, "model_type": kind}
    (folder / "config.json").write_text(json.dumps({"model_type": make.__name__, **config}))
    (folder / "model.safetensors").write_bytes(safetensors_file.of({name: np.ascontiguousarray(t, "<f4") for name, t in w.items()}))
    return features, w, kind


def test_numpy(folder):
    pixels = np.random.default_rng(3).standard_normal((3, 32, 32)).astype("f4")
    np.save(folder / "pixels.npy", pixels[None])
    worst = 0
    for make in (paligemma, gemma3, internvl, qwen2_5_vl):
        model = folder / make.__name__
        features, weights, kind = write(model, make, pixels.astype("f8"))
        shape = ["--shape", "pixel_values=1,3,32,32"] if make is qwen2_5_vl else []
        expect(run("run", model, *shape, "--io", "tensor", "--arithmetic", "exact", "--function", "vision", "--input",
                   f"pixel_values={folder / 'pixels.npy'}", "--output-dir", folder / "out"), 0)
        off = error(np.load(folder / "out" / "image_features.npy")[0], features)
        worst = max(worst, off)
        assert off <= EXACT, (make.__name__, off)
        count = len(features)
        expect(run("run", model, *shape, "--io", "tensor", "--tokens", "1,2,47,3", "--arithmetic", "exact", "--picture", folder / "pixels.npy",
                   "--output-dir", folder / "logits"), 0)
        found = np.load(folder / "logits" / "logits.npy")
        assert found.shape == (count + 3, 48)
        if kind.startswith("gemma"):
            off = error(found, gemma_logits(weights, kind, [1, 2, *[47] * count, 3], features, "model.language_model."))
            worst = max(worst, off)
            assert off <= EXACT, (make.__name__, off)
        package = folder / f"{make.__name__}.mlpackage"
        expect(run("compile", model, *shape, "--io", "tensor", "-o", package), 0)
        expect(run("verify", model, package), 0, "PASSED")
    print(f"# towers and projectors within {worst:.1e} of NumPy")


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
    bad("bad-file", vision_config={"patch_size": 10 ** 12})
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
