"""A bundle that Apple's compiler made, computed layer by layer: `mlc run` and a plain numpy reading of the same weights agree
on the spectrum, the four convolutions, the LSTM and the result.

Nothing here is mlc's: the weight file is taken apart as the corpus' notes describe it, the layers are written from the
definitions of Core ML's operators (gates of an LSTM in the order input, forget, output, cell).
"""
import pathlib
import re
import struct
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import models  # noqa: E402

BUNDLE = driver.CORPUS / "mlmodelc" / "SileroVAD.mlmodelc"
LIMIT = 1e-5  # of the range of values; both compute in at least single precision
LAYERS = ("stft_out_cast_fp16", "clip_0_cast_fp16", "clip_1_cast_fp16", "clip_2_cast_fp16", "clip_3_cast_fp16",
          "lstm_out_batch_first_1", "lstm_out_batch_first_2")


def weights(text):
    """{name: array} of what the program takes from the weight file, and of the one bias that it spells out."""
    data = (BUNDLE / "weights" / "weight.bin").read_bytes()
    found = {}
    for name, dtype, dims, at in re.findall(
            r"tensor<(?:fp16|fp32), [^>]*>\s+(\w+) = const\(\)\[.*?val = tensor<(fp16|fp32), \[([\d, ]*)\]>\(BLOBFILE\(.*?"
            r"offset = tensor<uint64, \[\]>\((\d+)\)", text):
        magic, _, size, offset = struct.unpack_from("<IIQQ", data, int(at))
        assert magic == 0xDEADBEEF, name
        values = np.frombuffer(data, {"fp16": np.float16, "fp32": np.float32}[dtype], offset=offset,
                               count=size // {"fp16": 2, "fp32": 4}[dtype])
        found[name] = values.astype(np.float64).reshape([int(d) for d in dims.split(",")])
    bias = re.search(r"decoder_final_conv_bias_to_fp16\"\), val = tensor<fp16, \[1\]>\(\[([^\]]+)\]\)", text).group(1)
    found["decoder_final_conv_bias_to_fp16"] = np.array([float.fromhex(bias)])
    return found


def conv(x, weight, bias, stride, pad):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
    width = weight.shape[2]
    steps = range(0, x.shape[2] - width + 1, stride)
    y = np.stack([np.einsum("ncw,ocw->no", x[:, :, t:t + width], weight) for t in steps], axis=2)
    return y + bias[None, :, None]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def network(w, audio, h, c):
    values = {}
    x = np.pad(audio, ((0, 0), (0, 64)), mode="reflect")[:, None, :]
    x = values[LAYERS[0]] = conv(x, w["stft_forward_basis_to_fp16"], np.zeros(258), 128, 0)
    x = np.sqrt(x[:, :129] ** 2 + x[:, 129:] ** 2 + 2.0 ** -24)
    for layer, number, stride in zip(LAYERS[1:5], (0, 2, 4, 6), (1, 2, 2, 1)):
        x = conv(x, w[f"encoder_layers_{number}_weight_to_fp16"], w[f"encoder_layers_{number}_bias_to_fp16"], stride, 1)
        x = values[layer] = np.clip(x, 0, 10000)
    gates = x[:, :, 0] @ w["concat_1"].T + h @ w["concat_2"].T + w["concat_0"]
    i, f, o, g = np.split(gates, 4, axis=1)
    c = values[LAYERS[6]] = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = values[LAYERS[5]] = sigmoid(o) * np.tanh(c)
    y = conv(np.maximum(h, 0)[:, :, None], w["decoder_final_conv_weight_to_fp16"], w["decoder_final_conv_bias_to_fp16"], 1, 0)
    return values | {"vad_output": sigmoid(y), "new_hidden_state": h, "new_cell_state": c}


def main():
    if not BUNDLE.exists():
        print(f"# layers of a bundle: skipped, no {BUNDLE}")
        return driver.SKIPPED
    text = (BUNDLE / "model.mil").read_text()
    random = np.random.default_rng(0)
    # Numbers that fp16 holds: the program casts its inputs.
    inputs = {name: random.standard_normal(shape).astype(np.float16).astype(np.float32) * scale for name, shape, scale in (
        ("audio_input", (1, 576), 0.25), ("hidden_state", (1, 128), 0.5), ("cell_state", (1, 128), 0.5))}
    expected = network(weights(text), *(inputs[n].astype(np.float64) for n in ("audio_input", "hidden_state", "cell_state")))
    failed = []
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "weights").symlink_to(BUNDLE / "weights")
        text = re.sub(r"\} -> \((vad_output[^)]*)\);", rf"}} -> (\1, {', '.join(LAYERS)});", text)
        (folder / "model.mil").write_text(text)
        arguments = []
        for name, value in inputs.items():
            np.save(folder / f"{name}.npy", value)
            arguments += ["--input", f"{name}={folder / name}.npy"]
        result = driver.run("run", folder / "model.mil", "--arithmetic", "exact", "--json", "--output-dir", folder / "out",
                            *arguments)
        if driver.verdict(result) != "ok":
            print(f"FAILED {driver.ending(result)}")
            return 1
        computed = {o["name"]: np.load(o["file"]) for o in result.answer["outputs"]}
        for name, value in expected.items():
            error, _ = models.measured(computed[name].reshape(value.shape), value)
            # What is written as fp16 is rounded to it.
            limit = LIMIT + (2.0 ** -11 if computed[name].dtype == np.float16 else 0)
            if not error <= limit:
                failed.append(name)
            print(f"{name}: error {error:.2e}, allowed {limit:.2e}")
    print(f"# layers of {BUNDLE.name}: {len(expected) - len(failed)} of {len(expected)} agree with numpy")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
