#!/usr/bin/python3
"""Creates the sample model: a small CNN trained on the 8x8 digits of scikit-learn.

Writes to manifests/digits: digits.onnx, 300 held-out images (images.npy [300,1,8,8] float32, grey values 0..16), their
labels (labels.npy [300] int64), the first of them as a picture (digit.png), 64 images of the training set for --calibrate (calibration/image.npy), and the results of PyTorch for them (probabilities.npy [300,10] float32). The hash of the model
and the accuracy are written to manifests/digits.json. Requires Debian's python3-torch and python3-sklearn. Runs on the same
machine are deterministic.

The file deliberately contains batch normalisation, because folding it is the task of the compiler.
"""
import hashlib
import json
import pathlib
import struct
import zlib

import numpy as np
import sklearn.datasets
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "manifests" / "digits"
HELD_OUT = 300
CALIBRATION = 64
OPSET = 13


def block(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


class Digits(nn.Module):
    """[N,1,8,8] grey values 0..16 -> [N,10] probabilities."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 48), nn.MaxPool2d(2), nn.Flatten())
        self.classifier = nn.Linear(48 * 2 * 2, 10)

    def logits(self, image):
        return self.classifier(self.features(image / 16))

    def forward(self, image):
        return torch.softmax(self.logits(image), dim=1)


def shifted(images):
    """Shifts each image by -1, 0 or 1 pixel along each axis."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    rows, columns = torch.randint(0, 3, (2, len(images))).tolist()
    return torch.stack([p[:, r:r + 8, c:c + 8] for p, r, c in zip(padded, rows, columns)])


def train(model, images, labels, epochs=60, batch=64):
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(batch):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model.logits(shifted(images[chosen])), labels[chosen]).backward()
            optimiser.step()
        schedule.step()
    model.eval()


def write_picture(path, image):
    """Writes [H,W] grey values 0..16 as a PNG file of one byte per pixel."""
    pixels = np.round(image * (255 / 16)).astype("u1")

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", *pixels.shape[::-1], 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    # The last images of the data set are held out, as in scikit-learn's examples.
    data = sklearn.datasets.load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None]
    labels = torch.tensor(data.target)
    model = Digits()
    train(model, images[:-HELD_OUT], labels[:-HELD_OUT])
    (OUT / "calibration").mkdir(parents=True, exist_ok=True)
    seen = images[:-HELD_OUT]
    np.save(OUT / "calibration" / "image.npy", seen[::len(seen) // CALIBRATION][:CALIBRATION].numpy())
    images, labels = images[-HELD_OUT:], labels[-HELD_OUT:]
    with torch.no_grad():
        probabilities = model(images)
    accuracy = (probabilities.argmax(1) == labels).double().mean().item()

    OUT.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(model, images[:1], OUT / "digits.onnx", opset_version=OPSET,
                      input_names=["image"], output_names=["probabilities"],
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    np.save(OUT / "images.npy", images.numpy())
    write_picture(OUT / "digit.png", images[0, 0].numpy())
    np.save(OUT / "labels.npy", labels.numpy())
    np.save(OUT / "probabilities.npy", probabilities.numpy())

    path = ROOT / "manifests" / "digits.json"
    recipe = json.loads(path.read_text())
    recipe["source"]["sha256"] = hashlib.sha256((OUT / "digits.onnx").read_bytes()).hexdigest()
    recipe["check"]["accuracy"]["expected"] = round(accuracy, 4)
    path.write_text(json.dumps(recipe, indent=2) + "\n")
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters, accuracy {accuracy:.4f} on {len(labels)} held-out digits")


if __name__ == "__main__":
    main()
