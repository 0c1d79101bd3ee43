"""Writes GGUF files of any size for tests and benchmarks: a llama model with matrices of one ggml type, in one file or several
parts. Only a few megabytes are held in memory. The format is defined in ggml's docs/gguf.md, the blocks in its
src/ggml-common.h.

Usage: gguf_file.py FILE (--megabytes N | --like 8b) [--type Q4_0] [--parts N]
"""
import argparse
import pathlib
import struct

import numpy as np

import gguf_wire as wire

# Type id in files, elements and bytes per block, and the positions of fp16 numbers with their size relative to the first; the
# first is multiplied by this factor to give elements of size 1.
TYPES = {"F32": (0, 1, 4, {}, 0), "F16": (1, 1, 2, {}, 0), "Q4_0": (2, 32, 18, {0: 1}, 1 / 4.6),
         "Q4_1": (3, 32, 20, {0: 1, 2: -7.5}, 1 / 4.6), "Q8_0": (8, 32, 34, {0: 1}, 1 / 74),
         "Q4_K": (12, 256, 144, {0: 1, 2: 7.5}, 1 / 240), "Q6_K": (14, 256, 210, {208: 1}, 1 / 1350)}
POOL = 1 << 22  # size of the random data from which tensors are cut
LIKE = {"8b": (4096, 14336, 32, 8, 128256, 32), "1b": (2048, 8192, 32, 8, 128256, 16), "tiny": (256, 512, 8, 2, 512, 2)}


def size_of(kind, shape):
    _, elements, size, _, _ = TYPES[kind]
    assert shape[-1] % elements == 0, (kind, shape)
    return int(np.prod(shape)) // elements * size


def pool(rng, kind, width):
    """Random blocks scaled so that a product with a matrix of this width preserves the size of its input."""
    _, _, size, halves, unit = TYPES[kind]
    values = rng.standard_normal(POOL // 4, np.float32) * np.float32(width ** -0.5)
    if not halves:
        return values.astype("<f4" if kind == "F32" else "<f2").tobytes()
    blocks = rng.integers(0, 256, (POOL // size, size), np.uint8)
    if kind == "Q4_K":  # minima have six bits, like the scales, as in real files
        blocks[:, 8:12] = blocks[:, 4:8]
        blocks[:, 12:16] = (blocks[:, 12:16] & 15) * 17
    scale = unit * width ** -0.5 * rng.uniform(0.5, 1.5, len(blocks))
    for at, factor in halves.items():
        blocks[:, at:at + 2] = (scale * factor).astype("<f2")[:, None].view(np.uint8)
    return blocks.tobytes()


def pieces(rng, pools, kind, shape):
    """Yields the bytes of a tensor. Vectors are scales of normalizations, near 1."""
    if len(shape) == 1:
        yield (1 + rng.standard_normal(shape[0], np.float32) / 16).astype("<f4").tobytes()
        return
    key = kind, shape[-1]
    if key not in pools:
        pools[key] = pool(rng, *key)
    blocks, block = memoryview(pools[key]), TYPES[kind][2]
    left = size_of(kind, shape)
    while left:
        size = min(left, len(blocks) // 2 // block * block)
        start = int(rng.integers((len(blocks) - size) // block + 1)) * block
        yield blocks[start:start + size]
        left -= size


def llama(like, kind):
    """Returns (metadata, {name: (type, shape)}) of a llama model with the given width, inner width, heads, key heads,
    vocabulary and layers."""
    width, inner, heads, key_heads, vocabulary, layers = like
    kv = width // heads * key_heads
    metadata = {
        "general.architecture": "llama", "general.name": f"made-up-llama-{kind}", "general.alignment": wire.ALIGNMENT,
        "llama.vocab_size": vocabulary, "llama.context_length": 8192, "llama.embedding_length": width,
        "llama.block_count": layers, "llama.feed_forward_length": inner, "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": key_heads, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 500000.0, "llama.rope.dimension_count": width // heads,
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>",
                                                                   *(f"t{i}" for i in range(3, vocabulary))],
        "tokenizer.ggml.scores": [0.0] * vocabulary, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}
    tensors = {"token_embd.weight": (kind, (vocabulary, width))}
    for i in range(layers):
        layer = f"blk.{i}."
        tensors |= {layer + "attn_norm.weight": ("F32", (width,)), layer + "attn_q.weight": (kind, (width, width)),
                    layer + "attn_k.weight": (kind, (kv, width)), layer + "attn_v.weight": (kind, (kv, width)),
                    layer + "attn_output.weight": (kind, (width, width)), layer + "ffn_norm.weight": ("F32", (width,)),
                    layer + "ffn_gate.weight": (kind, (inner, width)), layer + "ffn_up.weight": (kind, (inner, width)),
                    layer + "ffn_down.weight": (kind, (width, inner))}
    return metadata, tensors | {"output_norm.weight": ("F32", (width,)), "output.weight": (kind, (vocabulary, width))}


def of_size(megabytes, kind):
    """Returns the dimensions of a llama model of about the given size."""
    width, vocabulary = (4096, 32000) if megabytes >= 2000 else (2048, 32000) if megabytes >= 200 else (256, 4096)
    shape = width, 3 * width, width // 64, width // 256, vocabulary
    rest, one = (sum(size_of(*entry) for entry in llama((*shape, layers), kind)[1].values()) for layers in (0, 1))
    return *shape, max(1, round((megabytes * 1e6 - rest) / (one - rest)))


def head(metadata, tensors):
    """Returns everything before the data, padded."""
    text = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        kind, data = wire.value(item)
        text += wire.string(key) + struct.pack("<I", kind) + data
    end = 0
    for name, (kind, shape) in tensors.items():
        text += wire.string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        text += struct.pack("<IQ", TYPES[kind][0], end)
        end += size_of(kind, shape)
        end += -end % wire.ALIGNMENT
    return text + bytes(-len(text) % wire.ALIGNMENT)


def split(metadata, tensors, parts):
    """Returns [(metadata, tensors)] of the parts, split like llama.cpp's gguf-split: the first part has the metadata."""
    names, each = list(tensors), -(-len(tensors) // parts)
    made = []
    for i in range(parts):
        own = {"split.no": i, "split.count": parts, "split.tensors.count": len(tensors)}
        made.append(({**metadata, **own} if i == 0 else own, {n: tensors[n] for n in names[i * each:(i + 1) * each]}))
    return made


def write_llama(path, like, kind="Q4_0", parts=1, seed=0):
    """Writes `path`, or its parts NAME-00001-of-0000N.gguf. Returns the files and the size of the weights in bytes."""
    path, metadata, tensors = pathlib.Path(path), *llama(like, kind)
    files, total = [path], 0
    if parts > 1:
        files = [path.with_name(f"{path.stem}-{i + 1:05}-of-{parts:05}.gguf") for i in range(parts)]
    rng, pools = np.random.default_rng(seed), {}
    for file, (keys, own) in zip(files, [(metadata, tensors)] if parts == 1 else split(metadata, tensors, parts)):
        with open(file, "wb") as out:
            out.write(head(keys, own))
            for tensor in own.values():
                size = sum(out.write(piece) for piece in pieces(rng, pools, *tensor))
                assert size == size_of(*tensor), tensor
                out.write(bytes(-size % wire.ALIGNMENT))
                total += size
    return files, total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--megabytes", type=float)
    group.add_argument("--like", choices=sorted(LIKE))
    parser.add_argument("--type", choices=sorted(TYPES), default="Q4_0")
    parser.add_argument("--parts", type=int, default=1)
    given = parser.parse_args()
    made, bytes_of_weights = write_llama(given.file, LIKE[given.like] if given.like else of_size(given.megabytes, given.type),
                                         given.type, given.parts)
    print(*made, f"{bytes_of_weights} bytes of weights", sep="\n")
