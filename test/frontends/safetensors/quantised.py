"""Makes quantised/: an MLX folder and an FP8 folder, and the values of their weights according to NumPy (expected.npz).

    /usr/bin/python3 test/frontends/safetensors/quantised.py
"""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import safetensors_file as safetensors  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "quantised"


def packed(q, bits):
    """Packs the bits of the integers of a row, lowest bit first, into little-endian words."""
    bit = (q[..., None] >> np.arange(bits)) & 1
    row = bit.reshape(*q.shape[:-1], -1).astype("u1")
    return np.packbits(row, axis=-1, bitorder="little").view("<u4")


def bf16(values):
    bits = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    return ("BF16", bits.shape, bits.tobytes()), (bits.astype("<u4") << 16).view("<f4")


def e4m3(codes):
    """Implements OCP 8-bit floating point specification 1.0, section 5.2.1."""
    exponent, mantissa = (codes >> 3 & 15).astype(int), (codes & 7).astype(float)
    size = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    return np.where(codes & 128, -size, size)


def mlx(rng):
    tensors, expected, quantization = {}, {}, {"group_size": 64, "bits": 4}

    def add(name, bits, shape, group, dtype):
        q = rng.integers(0, 1 << bits, shape)
        grid = (*shape[:-1], shape[-1] // group)
        held, values = [], []
        for _ in range(2):
            number = rng.standard_normal(grid)
            if dtype == "BF16":
                stored, value = bf16(number)
            else:
                stored = value = number.astype(dtype)
            held.append(stored)
            values.append(np.repeat(value.astype("f8"), group, axis=-1))
        tensors.update({name + ".weight": packed(q, bits), name + ".scales": held[0], name + ".biases": held[1]})
        expected[name + ".weight"] = (values[0] * q + values[1]).astype("<f4")
        if (group, bits) != (64, 4):
            quantization[name] = {"group_size": group, "bits": bits}

    for bits in (2, 3, 4, 5, 6, 8):
        add(f"layers.{bits}", bits, (3, 128), 64, "<f2")
    add("narrow", 4, (5, 96), 32, "BF16")
    add("wide", 8, (2, 256), 128, "<f4")
    add("experts", 3, (2, 4, 64), 32, "<f2")
    tensors["norm.weight"] = expected["norm.weight"] = rng.standard_normal(7).astype("<f2")
    quantization["norm"] = False
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "quantization": quantization}, tensors, expected


def fp8(rng):
    tensors, expected = {}, {}

    def add(name, shape, scale, block, key="_scale_inv"):
        codes = rng.integers(0, 256, shape).astype("u1")
        codes[codes & 127 == 127] = 0  # NaN
        scale = np.asarray(scale, "<f4")
        whole = np.broadcast_to(scale, shape) if block is None else np.repeat(
            np.repeat(scale, block, 0), block, 1)[:shape[0], :shape[1]]
        tensors.update({name: ("F8_E4M3", shape, codes.tobytes()), name + key: scale})
        expected[name] = (e4m3(codes) * whole.astype("f8")).astype("<f4")

    add("even.weight", (32, 48), rng.standard_normal((2, 3)), 16)
    add("cut.weight", (40, 25), rng.standard_normal((3, 2)), 16)
    add("rows.weight", (6, 5), rng.standard_normal((6, 1)), None, "_scale")
    add("whole.weight", (6, 5), rng.standard_normal(()), None, "_scale")
    config = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
              "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 16]}}
    return config, tensors, expected


for name, make in (("mlx", mlx), ("fp8", fp8)):
    config, tensors, expected = make(np.random.default_rng(len(name)))
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "model.safetensors").write_bytes(safetensors.of(tensors, {"format": name}))
    np.savez(folder / "expected.npz", **expected)
