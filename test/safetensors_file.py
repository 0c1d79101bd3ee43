"""Safetensors files for tests: a writer for files with any contents, including malformed ones, an independent reader, and
folders of llama models of any size, in one file or in shards. Only a few megabytes are held in memory. The format is defined in
github.com/huggingface/safetensors, README.md.

Usage: safetensors_file.py FOLDER MEGABYTES [--dtype F16] [--shard-megabytes N]
"""
import argparse
import json
import pathlib
import struct

import numpy as np

# NumPy types of element types. BF16 is read as the upper halves of float32.
DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "I32": "<i4", "U32": "<u4",
          "F32": "<f4", "F64": "<f8", "I64": "<i8", "U64": "<u8"}
SIZES = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}


# ---- writing

def pack(header, data=b"", length=None):
    """Returns a file with this header (JSON text or an object); `length` overrides the header length in the file."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def describe(tensors, metadata=None):
    """Returns the header of consecutive tensors {name: (dtype, shape)}, and the size of their data in bytes."""
    header, end = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + SIZES.get(dtype, 1) * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    return header, end


def of(tensors, metadata=None):
    """Returns a file with {name: NumPy array or (dtype, shape, bytes)}."""
    names = {np.dtype(numpy).str: name for name, numpy in DTYPES.items()}
    held = {name: value if isinstance(value, tuple) else (names[value.dtype.str], value.shape, value.tobytes())
            for name, value in tensors.items()}
    header, _ = describe({name: (dtype, shape) for name, (dtype, shape, _) in held.items()}, metadata)
    return pack(header, b"".join(data for _, _, data in held.values()))


# ---- reading

def read(path):
    """Reads a file as {name: (dtype, shape, array)}; the array has raw bytes if NumPy lacks the type."""
    data = np.memmap(path, "u1", "r") if pathlib.Path(path).stat().st_size else b""
    (length,) = struct.unpack("<Q", bytes(data[:8]))
    found = {}
    for name, entry in json.loads(bytes(data[8:8 + length])).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            raw = data[8 + length + begin:8 + length + end]
            dtype, shape = entry["dtype"], tuple(entry["shape"])
            if dtype == "BF16":
                raw = (np.frombuffer(bytes(raw), "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
            elif dtype in DTYPES:
                raw = np.frombuffer(bytes(raw), DTYPES[dtype]).reshape(shape)
            found[name] = dtype, shape, raw
    return found


# ---- a llama model

def llama_config(megabytes, dtype):
    """Returns the config of a llama model of about this size, with the width of published models of that size."""
    width, vocabulary = (2048, 32000) if megabytes >= 400 else (512, 4096) if megabytes >= 30 else (64, 272)
    if megabytes >= 8000:
        width, vocabulary = 4096, 128256
    inner, kv = width * 3, width // 4
    layer = 2 * width * width + 2 * width * kv + 3 * width * inner + 2 * width
    rest = 2 * vocabulary * width + width
    layers = max(1, round((megabytes * 1e6 / SIZES[dtype] - rest) / layer))
    heads = max(4, width // 64)
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width,
            "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": heads // 4, "head_dim": None, "vocab_size": vocabulary, "max_position_embeddings": 2048,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None, "hidden_act": "silu",
            "tie_word_embeddings": False, "torch_dtype": {"F16": "float16", "BF16": "bfloat16", "F32": "float32"}[dtype]}


def llama_tensors(config):
    """Returns {name: shape} in the order used by transformers."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    kv = width // config["num_attention_heads"] * config["num_key_value_heads"]
    tensors = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        tensors |= {layer + "self_attn.q_proj.weight": (width, width), layer + "self_attn.k_proj.weight": (kv, width),
                    layer + "self_attn.v_proj.weight": (kv, width), layer + "self_attn.o_proj.weight": (width, width),
                    layer + "mlp.gate_proj.weight": (inner, width), layer + "mlp.up_proj.weight": (inner, width),
                    layer + "mlp.down_proj.weight": (width, inner), layer + "input_layernorm.weight": (width,),
                    layer + "post_attention_layernorm.weight": (width,)}
    return tensors | {"model.norm.weight": (width,), "lm_head.weight": (config["vocab_size"], width)}


def elements(rng, noise, shape, dtype, most=1 << 20):
    """Yields the bytes of a tensor, cut from random data: vectors near 1, and matrices that preserve the size of their input."""
    left = int(np.prod(shape))
    while left:
        count = min(left, most)
        start = rng.integers(len(noise) - count + 1)
        values = noise[start:start + count]
        values = 1 + values / 16 if len(shape) == 1 else values * np.float32(shape[1] ** -0.5)
        if dtype == "BF16":
            yield (values.view("<u4") >> 16).astype("<u2").tobytes()
        else:
            yield values.astype(DTYPES[dtype]).tobytes()
        left -= count


def write_llama(folder, megabytes, dtype="F16", shard_megabytes=None, seed=0):
    """Writes config.json and the weights; returns the size of the weights in bytes."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = llama_config(megabytes, dtype)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    shards, total, room = [{}], 0, 0
    for name, shape in llama_tensors(config).items():
        size = SIZES[dtype] * int(np.prod(shape))
        if shard_megabytes and shards[-1] and room + size > shard_megabytes * 1e6:
            shards.append({})
            room = 0
        shards[-1][name] = dtype, shape
        room, total = room + size, total + size
    names = ["model.safetensors"] if not shard_megabytes else [
        f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(1 << 22, np.float32)
    for file, tensors in zip(names, shards):
        header, _ = describe(tensors, {"format": "pt"})
        with open(folder / file, "wb") as out:
            out.write(pack(header))
            for _, shape in tensors.values():
                for piece in elements(rng, noise, shape, dtype):
                    out.write(piece)
    if shard_megabytes:
        index = {"metadata": {"total_size": total},
                 "weight_map": {name: file for file, tensors in zip(names, shards) for name in tensors}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--dtype", choices=["F16", "BF16", "F32"], default="F16")
    parser.add_argument("--shard-megabytes", type=float)
    given = parser.parse_args()
    print(write_llama(given.folder, given.megabytes, given.dtype, given.shard_megabytes), "bytes of weights")
