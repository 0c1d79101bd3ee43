#!/usr/bin/python3
"""Creates the sample model for sounds: which note of the scale from A4 to G#5 is played.

Writes to manifests/notes: notes.onnx, labels.txt (the names of the notes) and c5.wav, a fifth of a second of C5 with overtones.
The input is sound [1, 1, 1600] float32, 8000 samples per second; the output is probabilities [1, 12], the softmax of the
magnitudes of the Fourier transform at each note, which two convolutions compute. Nothing is trained. Requires Debian's
python3-numpy.
"""
import pathlib
import sys
import wave

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "manifests" / "notes"
sys.path.insert(0, str(ROOT / "test"))
import onnx_wire as wire  # noqa: E402

RATE, LENGTH, SHARPNESS = 8000, 1600, 40
NAMES = ["A4", "A#4", "B4", "C5", "C#5", "D5", "D#5", "E5", "F5", "F#5", "G5", "G#5"]
FREQUENCIES = 440 * 2 ** (np.arange(12) / 12)


def model():
    phase = 2 * np.pi * FREQUENCIES[:, None] * np.arange(LENGTH) / RATE
    window = np.hanning(LENGTH)
    window *= 2 / window.sum()
    constants = {"cosines": (np.cos(phase) * window)[:, None].astype("f4"), "sines": (np.sin(phase) * window)[:, None].astype("f4"),
                 "sharpness": np.array(SHARPNESS, "f4")}
    node = wire.node
    nodes = [node("Conv", ["sound", "cosines"], ["real"]), node("Conv", ["sound", "sines"], ["imaginary"]),
             node("Mul", ["real", "real"], ["real_squared"]), node("Mul", ["imaginary", "imaginary"], ["imaginary_squared"]),
             node("Add", ["real_squared", "imaginary_squared"], ["power"]), node("Sqrt", ["power"], ["magnitudes"]),
             node("Mul", ["magnitudes", "sharpness"], ["scaled"]), node("Flatten", ["scaled"], ["logits"]),
             node("Softmax", ["logits"], ["probabilities"], axis=1)]
    initializers = [wire.tensor(name, wire.FLOAT, array.shape, array.tobytes()) for name, array in constants.items()]
    return wire.model(wire.graph(nodes, [wire.value_info("sound", wire.FLOAT, [1, 1, LENGTH])],
                                 [wire.value_info("probabilities", wire.FLOAT, [1, len(NAMES)])], initializers, name="notes"))


def main():
    OUT.mkdir(exist_ok=True)
    (OUT / "notes.onnx").write_bytes(model())
    (OUT / "labels.txt").write_text("".join(f"{name}\n" for name in NAMES))
    time = np.arange(LENGTH) / RATE
    sound = sum(np.sin(2 * np.pi * 523.25 * k * time) / k for k in (1, 2, 3)) * 0.3
    with wave.open(str(OUT / "c5.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.round(sound * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    main()
