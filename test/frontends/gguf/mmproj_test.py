#!/usr/bin/env python3
"""Tests GGUF models with an mmproj file: pairs of files with the tensors of tiny folders, as llama.cpp's convert_hf_to_gguf.py names
them, against the readings in NumPy of those folders with the activations of llama.cpp (gelu is the tanh approximation), and against
the import of the folders. llama.cpp itself, where LLAMA_DIR names it, cannot judge pictures here."""
import json
import pathlib
import re
import sys

sys.path[:0] = map(str, (pathlib.Path(__file__).resolve().parents[2], pathlib.Path(__file__).resolve().parents[1] / "safetensors"))
import numpy as np

import gguf_wire
import vision_language_test as folders
from driver import expect, run, run_tests
from language_models import error, refused

folders.gelu = folders.gelu_tanh
EXACT = 1e-5
WORDS = ["<unk>", "<s>", "</s>", *(chr(97 + i) for i in range(26)), *(chr(0x4e00 + i) for i in range(18))]

TOWER = [(r".*embeddings\.patch_embedding\.", "v.patch_embd."), (r".*patch_embeddings\.projection\.", "v.patch_embd."),
         (r".*position_embedding\.weight", "v.position_embd.weight"), (r".*position_embeddings", "v.position_embd.weight"),
         (r".*pos_embed\.weight", "v.position_embd.weight"), (r".*class_embedding", "v.class_embd"), (r".*cls_token", "v.class_embd"),
         (r".*pre_layrnorm\.", "v.pre_ln."), (r".*post_layernorm\.", "v.post_ln."), (r".*patch_embed\.proj\.bias", "v.patch_embd.bias"),
         (r".*(?:layers|layer|blocks)\.(\d+)\.(?:layer_norm1|layernorm_before|norm1)\.", r"v.blk.\1.ln1."),
         (r".*(?:layers|layer|blocks)\.(\d+)\.(?:layer_norm2|layernorm_after|norm2)\.", r"v.blk.\1.ln2."),
         (r".*(?:layers|layer)\.(\d+)\.(?:self_attn|attention)\.([qkv])_proj\.", r"v.blk.\1.attn_\2."),
         (r".*(?:layers|layer|blocks)\.(\d+)\.(?:self_attn|attention|attn)\.(?:out_proj|projection_layer|proj)\.", r"v.blk.\1.attn_out."),
         (r".*blocks\.(\d+)\.attn\.qkv\.", r"v.blk.\1.attn_qkv."),
         (r".*(?:layers|layer|blocks)\.(\d+)\.mlp\.(?:fc1|up_proj|linear_fc1)\.", r"v.blk.\1.ffn_up."),
         (r".*blocks\.(\d+)\.mlp\.gate_proj\.", r"v.blk.\1.ffn_gate."),
         (r".*(?:layers|layer|blocks)\.(\d+)\.mlp\.(?:fc2|down_proj|linear_fc2)\.", r"v.blk.\1.ffn_down."),
         (r".*layer\.(\d+)\.lambda_([12])", r"v.blk.\1.ls\2.weight")]
PROJECTORS = {
    "llava": ("mlp", [(r".*linear_1\.", "mm.0."), (r".*linear_2\.", "mm.2.")]),
    "idefics3": ("idefics3", [(r".*modality_projection\.proj\.", "mm.model.fc.")]),
    "gemma3": ("gemma3", [(r".*mm_soft_emb_norm\.", "mm.soft_emb_norm."), (r".*mm_input_projection_weight", "mm.input_projection.weight")]),
    "internvl": ("internvl", [(r".*projector\.layer_norm\.", "mm.model.mlp.0."), (r".*linear_1\.", "mm.model.mlp.1."),
                              (r".*linear_2\.", "mm.model.mlp.3.")]),
    "lfm2_vl": ("lfm2", [(r".*projector\.layer_norm\.", "mm.input_norm."), (r".*linear_1\.", "mm.1."), (r".*linear_2\.", "mm.2.")]),
    "qwen2_vl": ("qwen2vl_merger", [(r".*ln_q\.", "v.post_ln."), (r".*merger\.mlp\.", "mm.")]),
    "qwen2_5_vl": ("qwen2.5vl_merger", [(r".*ln_q\.", "v.post_ln."), (r".*merger\.mlp\.", "mm.")]),
    "qwen3_vl": ("qwen3vl_merger", [(r".*merger\.norm\.", "v.post_ln."), (r".*merger\.linear_fc1\.", "mm.0."), (r".*merger\.linear_fc2\.", "mm.2.")]),
}
TEXT = [(r".*embed_tokens\.weight", "token_embd.weight"), (r"lm_head\.weight", "output.weight"), (r".*embedding_norm\.", "token_embd_norm."),
        (r".*layers\.(\d+)\.(?:input_layernorm|operator_norm)\.", r"blk.\1.attn_norm."),
        (r".*layers\.(\d+)\.self_attn\.([qkv])_(?:norm|layernorm)\.", r"blk.\1.attn_\2_norm."),
        (r".*layers\.(\d+)\.self_attn\.([qkv])_proj\.", r"blk.\1.attn_\2."), (r".*layers\.(\d+)\.self_attn\.(?:o|out)_proj\.", r"blk.\1.attn_output."),
        (r".*layers\.(\d+)\.ffn_norm\.", r"blk.\1.ffn_norm."), (r".*layers\.(\d+)\.pre_feedforward_layernorm\.", r"blk.\1.ffn_norm."),
        (r".*layers\.(\d+)\.post_feedforward_layernorm\.", r"blk.\1.post_ffw_norm."),
        (r".*layers\.(\d+)\.(?:mlp\.gate_proj|feed_forward\.w1)\.", r"blk.\1.ffn_gate."),
        (r".*layers\.(\d+)\.(?:mlp\.up_proj|feed_forward\.w3)\.", r"blk.\1.ffn_up."),
        (r".*layers\.(\d+)\.(?:mlp\.down_proj|feed_forward\.w2)\.", r"blk.\1.ffn_down."),
        (r".*layers\.(\d+)\.conv\.in_proj\.", r"blk.\1.shortconv.in_proj."), (r".*layers\.(\d+)\.conv\.out_proj\.", r"blk.\1.shortconv.out_proj."),
        (r".*layers\.(\d+)\.conv\.conv\.", r"blk.\1.shortconv.conv."), (r".*\.norm\.weight", "output_norm.weight")]
ARCHITECTURES = {"llava": "llama", "idefics3": "llama", "gemma3": "gemma3", "internvl": "qwen2", "lfm2_vl": "lfm2", "qwen2_vl": "qwen2vl",
                 "qwen2_5_vl": "qwen2vl", "qwen3_vl": "qwen3vl"}
SPELLED = {"gemma3": "<image_soft_token>", "internvl": "<IMG_CONTEXT>"} | dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen3_vl"), "<|image_pad|>")


def named(name, rows):
    for pattern, into in rows:
        if re.match(pattern, name):
            return re.sub("^" + pattern, into, name)
    raise AssertionError(name)


def pair(folder, make, pixels, swapped=False, change=None, words=True):
    """Writes model.gguf and mmproj.gguf beside the folder `twin`; returns the features of the picture and the weights."""
    name = make.__name__
    features, w, kind = folders.write(folder / "twin", make, pixels)
    config = json.loads((folder / "twin" / "config.json").read_text())
    text_config, vision = config.get("text_config", config), config["vision_config"]
    # What llama.cpp computes in the projectors.
    if name in ("llava", "internvl", "lfm2_vl"):
        config["projector_hidden_act"] = "gelu_pytorch_tanh"
    if name == "internvl":
        vision["hidden_act"] = "gelu_pytorch_tanh"
    text_config["query_pre_attn_scalar"] = 8
    (folder / "twin" / "config.json").write_text(json.dumps(config))
    kind, projector = PROJECTORS[name]
    text, tower = {}, {}
    for stored, tensor in w.items():
        tensor = np.asarray(tensor, "f4")
        if not re.match(r"(model\.)?(visual|vision_tower|vision_model|connector|multi_modal_projector)\.", stored):
            # The norm before the feed-forward layers has this name but in Gemma.
            rows = TEXT if name == "gemma3" else [(r".*layers\.(\d+)\.post_attention_layernorm\.", r"blk.\1.ffn_norm."), *TEXT]
            rows = [(r".*layers\.(\d+)\.post_attention_layernorm\.", r"blk.\1.post_attention_norm."), *TEXT] if name == "gemma3" else rows
            own = named(stored, rows)
            if name == "gemma3" and "norm" in own:
                tensor = tensor + 1
            if ARCHITECTURES[name] == "llama" and re.search(r"attn_[qk]\.", own):
                tensor = tensor.reshape(3, 2, 4, -1).swapaxes(1, 2).reshape(tensor.shape)
            text[own] = tensor.reshape(24, 3) if "shortconv.conv" in own else tensor
            continue
        if "deepstack" in stored:
            number, rest = re.match(r".*deepstack_merger_list\.(\d+)\.(.*)", stored).groups()
            tower[f"v.deepstack.{[0, 2][int(number)]}.{rest.replace('linear_', '')}"] = tensor
            continue
        if stored.endswith("patch_embed.proj.weight"):
            tower["v.patch_embd.weight"], tower["v.patch_embd.weight.1"] = tensor[:, :, 0], tensor[:, :, 1]
            continue
        own = named(stored, projector + TOWER)
        if name == "llava" and own.startswith("v.post_ln"):  # the converter leaves it out
            continue
        if own == "v.patch_embd.weight" and tensor.ndim == 2:
            tensor = tensor.reshape(32, 4, 4, 3).transpose(0, 3, 1, 2)
        if own == "v.class_embd":
            tensor = tensor.reshape(-1)
        if own == "v.position_embd.weight":
            tensor = tensor.reshape(-1, 32)
        if own == "mm.soft_emb_norm.weight":
            tensor = tensor + 1
        if "attn_qkv" in own and name != "qwen3_vl":
            for letter, part in zip("qkv", np.split(tensor, 3)):
                tower[own.replace("attn_qkv", f"attn_{letter}")] = part
            continue
        tower[own] = tensor
    if swapped:
        old = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
        tower = {re.sub(r"ffn_(?:up|down)", lambda match: old[match[0]], own): tensor for own, tensor in tower.items()}
    architecture = ARCHITECTURES[name]
    keys = {"context_length": 96, "embedding_length": 24, "feed_forward_length": 32 if name == "lfm2_vl" else 40,
            "block_count": text_config["num_hidden_layers"], "attention.head_count": 3, "attention.head_count_kv": 3, "attention.key_length": 8,
            "attention.value_length": 8, "attention.layer_norm_rms_epsilon": 1e-5 if name == "lfm2_vl" else 1e-6, "rope.freq_base": 1e4}
    if architecture in ("qwen2vl", "qwen3vl"):
        keys["rope.dimension_sections"] = [np.int32(size) for size in (2, 1, 1, 0)]
    keys |= {"qwen2vl": {"rope.freq_base": 1e4 if "rope_theta" in config else 1e6}, "gemma3": {"attention.sliding_window": 6},
             "qwen3vl": {"rope.freq_base": 5e6, "n_deepstack_layers": 2},
             "lfm2": {"rope.freq_base": 1e6, "shortconv.l_cache": 3, "attention.head_count_kv": [np.int32(0), np.int32(3)]}}.get(architecture, {})
    metadata = {"general.architecture": architecture} | {f"{architecture}.{key}": value for key, value in keys.items()}
    spelled = [*WORDS, SPELLED.get(name, "<image>")] if words else WORDS + ["z2"]
    metadata |= {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": spelled, "tokenizer.ggml.scores": [0.0] * 48,
                 "tokenizer.ggml.token_type": [np.int32(kind) for kind in [2, 3, 3, *[1] * 44, 3 if words else 1]],
                 "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
                 "tokenizer.ggml.add_space_prefix": False}
    (folder / "model.gguf").write_bytes(gguf_wire.model(metadata, text))
    seen = {"image_size": 32, "patch_size": 4, "embedding_length": 32, "feed_forward_length": 0 if "qwen" in name else 48,
            "block_count": vision.get("num_hidden_layers", vision.get("depth")), "projection_dim": 24,
            "attention.head_count": 2 if "qwen" in name else 4, "attention.layer_norm_epsilon": 1e-5 if name == "llava" else 1e-6,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.5, 0.5]}
    seen |= {"idefics3": {"projector.scale_factor": 2}, "internvl": {"projector.scale_factor": 2}, "lfm2_vl": {"projector.scale_factor": 2},
             "gemma3": {"projector.scale_factor": 2}, "qwen2_5_vl": {"n_wa_pattern": 2, "window_size": 16},
             "qwen3_vl": {"spatial_merge_size": 2, "is_deepstack_layers": [True, False, True]}}.get(name, {})
    head = {"general.architecture": "clip", "general.type": "mmproj", "clip.has_vision_encoder": True, "clip.projector_type": kind,
            "clip.use_gelu": name not in ("llava", "qwen2_vl", "qwen2_5_vl"), "clip.use_silu": name == "qwen2_5_vl"}
    head |= {f"clip.vision.{key}": value for key, value in seen.items()}
    if change:
        change(head, tower)
    (folder / "mmproj.gguf").write_bytes(gguf_wire.model(head, tower))
    return features, w


MAKERS = (folders.llava, folders.idefics3, folders.gemma3, folders.internvl, folders.lfm2_vl, folders.qwen2_vl, folders.qwen2_5_vl, folders.qwen3_vl)
EXACT_TWINS = ("llava", "idefics3", "gemma3", "internvl", "lfm2_vl")


def picture(folder):
    pixels = np.random.default_rng(3).standard_normal((3, 32, 32)).astype("f4")
    np.save(folder / "pixels.npy", pixels[None])
    return pixels.astype("f8")


def logits(model, folder, *options):
    expect(run("run", model, "--io", "tensor", "--tokens", "1,2,47,3,5", "--arithmetic", "exact", "--picture", folder / "pixels.npy", *options,
               "--output-dir", folder / "logits"), 0)
    return np.load(folder / "logits" / "logits.npy")


def test_pairs(folder):
    pixels, worst = picture(folder), {"features": 0, "logits": 0}
    for make in MAKERS:
        name, own = make.__name__, folder / make.__name__
        own.mkdir()
        wanted, weights = pair(own, make, pixels)
        model, mmproj = own / "model.gguf", ["--mmproj", own / "mmproj.gguf"]
        shape = ["--shape", "pixel_values=1,3,32,32"] if "qwen" in name else []
        expect(run("run", model, *mmproj, *shape, "--io", "tensor", "--arithmetic", "exact", "--function", "vision", "--input",
                   f"pixel_values={folder / 'pixels.npy'}", "--output-dir", folder / "out"), 0)
        off = error(np.load(folder / "out" / "image_features.npy")[0], wanted)
        worst["features"] = max(worst["features"], off)
        assert off <= EXACT, (name, off)
        found = logits(model, folder, *mmproj, *shape)
        if name in EXACT_TWINS:
            off = error(found, logits(own / "twin", folder))
        elif name == "qwen3_vl":
            tokens = [1, 2, *[47] * len(wanted), 3, 5]
            off = error(found, folders.qwen3_logits(weights, tokens, wanted, "model.language_model."))
        else:  # the folder's projector has another gelu
            off = error(found, logits(own / "twin", folder, *shape))
            assert off <= 2e-2, (name, off)
            off = 0
        worst["logits"] = max(worst["logits"], off)
        assert off <= EXACT, (name, off)
        package = own / "model.mlpackage"
        expect(run("compile", model, *mmproj, *shape, "-o", package), 0)
        expect(run("verify", model, package, *mmproj, *shape), 0, "PASSED")
    print("# GGUF models with mmproj files against NumPy and folders: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))


def test_old_files(folder):
    """Older scripts wrote the two feed-forward matrices under each other's name, and left out what llama.cpp does not read."""
    pixels = picture(folder)
    for make in (folders.llava, folders.gemma3, folders.qwen2_vl):
        own = folder / make.__name__
        own.mkdir()

        def without(head, tower):
            if make is folders.llava:
                del head["clip.projector_type"]
                head["clip.has_llava_projector"] = True
        wanted, _ = pair(own, make, pixels, swapped=True, change=without)
        shape = ["--shape", "pixel_values=1,3,32,32"] if make is folders.qwen2_vl else []
        expect(run("run", own / "model.gguf", "--mmproj", own / "mmproj.gguf", *shape, "--io", "tensor", "--arithmetic", "exact", "--function",
                   "vision", "--input", f"pixel_values={folder / 'pixels.npy'}", "--output-dir", folder / "out"), 0)
        off = error(np.load(folder / "out" / "image_features.npy")[0], wanted)
        assert off <= EXACT, (make.__name__, off)


def test_texts(folder):
    """A prompt with a picture, also where the vocabulary has no token for it; pictures are scaled by the mean and deviation of the file."""
    pixels = picture(folder)
    colours = np.random.default_rng(4).integers(0, 256, (32, 32, 3), "u1")
    (folder / "picture.ppm").write_bytes(b"P6 32 32 255\n" + colours.tobytes())
    scaled = ((colours / 255 - 0.5) / [0.25, 0.5, 0.5]).transpose(2, 0, 1).astype("f4")
    np.save(folder / "scaled.npy", scaled[None])
    for words in (True, False):
        own = folder / f"words_{words}"
        own.mkdir()
        pair(own, folders.llava, pixels, words=words)
        ask = ["run", own / "model.gguf", "--mmproj", own / "mmproj.gguf", "--arithmetic", "exact", "--generate", 4, "--json"]
        answer = expect(run(*ask, "--picture", folder / "picture.ppm", "--prompt", "a<image>b"), 0).answer
        token = 47 if words else 0
        assert answer["prompt_tokens"] == [1, 3, *[token] * 64, 4], answer["prompt_tokens"]
        other = expect(run(*ask, "--io", "tensor", "--picture", folder / "scaled.npy", "--prompt", "a<image>b"), 0).answer
        assert answer["tokens"] == other["tokens"], (answer, other)
        package = own / "m.mlpackage"
        expect(run("compile", own / "model.gguf", "--mmproj", own / "mmproj.gguf", "-o", package), 0)
        packaged = expect(run("run", package, "--generate", 4, "--json", "--picture", folder / "picture.ppm", "--prompt", "a<image>b"), 0).answer
        assert packaged["tokens"] == answer["tokens"], (packaged, answer)


def test_refusals(folder):
    pixels = picture(folder)

    def bad(identifier, *texts, change=None, options=()):
        own = folder / f"bad{len(list(folder.iterdir()))}"
        own.mkdir()
        pair(own, folders.llava, pixels, change=change)
        refused(run("compile", own / "model.gguf", "--mmproj", own / "mmproj.gguf", "-o", own / "m.mlpackage", *options), identifier, *texts)
        return own

    def keys(**changes):
        return lambda head, tower: head.update({f"clip.{key.replace('__', '.')}": value for key, value in changes.items()})

    own = bad("unsupported-architecture", 'projector "resampler"', "idefics3", "mmproj.gguf", change=keys(projector_type="resampler"))
    bad("bad-file", "clip.vision.block_count", change=lambda head, tower: head.pop("clip.vision.block_count"))
    bad("bad-file", "layers", change=keys(vision__block_count=2 ** 31))
    bad("bad-file", change=keys(vision__patch_size=0))
    bad("resource-limit", change=keys(vision__image_size=16000, vision__patch_size=1))
    bad("bad-file", "image_std", change=keys(vision__image_std=[0.5, 0.0, 0.5]))
    bad("bad-file", "both", change=keys(use_gelu=True, use_silu=True))
    bad("unsupported-architecture", "no tower", change=keys(has_vision_encoder=False))
    bad("missing-tensor", "v.blk.1.ln1.weight", change=lambda head, tower: tower.pop("v.blk.1.ln1.weight"))
    bad("unused-tensor", "v.other", change=lambda head, tower: tower.update({"v.other": np.zeros(3, "f4")}))
    bad("bad-tensor", "24 dimensions per token", "mmproj.gguf", change=lambda head, tower: tower.update({"mm.2.weight": np.zeros((20, 24), "f4")}))
    bad("unsupported-architecture", "LLaVA 1.6", change=keys(vision__mm_patch_merge_type="spatial_unpad"))
    refused(run("compile", own / "mmproj.gguf", "-o", own / "m.mlpackage"), "usage", "not a language model", "--mmproj")
    refused(run("compile", own / "model.gguf", "--mmproj", own / "model.gguf", "-o", own / "m.mlpackage"), "bad-file", '"llama"', '"clip"')
    refused(run("compile", own / "model.gguf", "--mmproj", own / "none.gguf", "-o", own / "m.mlpackage"), "file-io", "none.gguf")
    refused(run("compile", own / "model.gguf", "--shape", "pixel_values=1,3,32,32", "-o", own / "m.mlpackage"), "usage", "--mmproj")
    expect(run("compile", own / "model.gguf", "-o", own / "m.mlpackage"), 0, "mmproj.gguf in the folder of the model")
    refused(run("compile", own / "twin", "--mmproj", own / "mmproj.gguf", "-o", own / "m2.mlpackage"), "usage", "--mmproj applies to a GGUF file")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "GGUF models that read pictures"))
