#!/usr/bin/env python3
"""Pictures, sounds, raw elements and archives as inputs and outputs, and the answers to files of other formats.

Pictures and sounds, and what Pillow and SciPy read from them, are those of test/lib/media/files.
"""
import gzip
import hashlib
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import ROOT, expect, run, run_tests

FILES = ROOT / "test/lib/media/files"
TYPES = {"f4": wire.FLOAT, "u1": wire.UINT8, "i8": wire.INT64}


def doubling(path, dims, dtype="f4", name="x"):
    """y = x + x."""
    info = [wire.value_info(value, TYPES[dtype], dims) for value in (name, "y")]
    path.write_bytes(wire.model(wire.graph([wire.node("Add", [name, name], ["y"])], info[:1], info[1:])))
    return path


def outcome(model, folder, *options):
    expect(run("run", model, *options, "--output-dir", folder / "out"), 0)
    return np.load(folder / "out/y.npy")


def test_a_picture_gives_the_numbers_of_another_library(folder):
    model = doubling(folder / "m.onnx", [1, 3, 24, 17])
    image = ["--image", "x=rgb,1/255"]
    for name in "colours.png", "palette.png", "colours.jpg", "progressive.jpg":
        expected = np.load(FILES / f"{name}.npy").astype("f4").transpose(2, 0, 1)[None] / 255 * 2
        found = outcome(model, folder, *image, "--input", f"x={FILES / name}")
        assert np.abs(found - expected).max() < 1e-6, name
    # A gray picture has equal channels.
    gray = np.load(FILES / "gray.png.npy").astype("f4") / 255 * 2
    found = outcome(model, folder, *image, "--input", f"x={FILES / 'gray.png'}")
    assert np.abs(found - gray).max() < 1e-6 and found.shape == (1, 3, 24, 17)
    # The package takes the same files, and verify compares them.
    package = folder / "m.mlpackage"
    expect(run("compile", model, *image, "-o", package), 0)
    expected = np.load(FILES / "colours.png.npy").astype("f4").transpose(2, 0, 1)[None] / 255 * 2
    assert np.abs(outcome(package, folder, "--input", f"x={FILES / 'colours.png'}") - expected).max() < 2e-3
    (folder / "in").mkdir()
    (folder / "in/x.png").write_bytes((FILES / "colours.png").read_bytes())
    np.save(folder / "y.npy", expected)
    (folder / "reference").mkdir()
    (folder / "y.npy").rename(folder / "reference/y.npy")
    expect(run("verify", model, package, "--inputs", folder / "in", "--reference", folder / "reference"), 0, "PASSED")


def test_sizes_are_changed_only_when_asked(folder):
    model = doubling(folder / "m.onnx", [1, 3, 9, 6])
    image = ["--image", "x=rgb", "--input", f"x={FILES / 'colours.png'}"]
    expect(run("run", model, *image), 1, "17 x 24 pixels", "6 x 9", "--fit")
    found = outcome(model, folder, *image, "--fit", "stretch")
    assert (found == 2.0 * np.load(FILES / "scaled-9x6.npy").transpose(2, 0, 1)[None]).all()
    assert outcome(model, folder, *image, "--fit", "crop").shape == (1, 3, 9, 6)
    expect(run("run", model, *image, "--fit", "cropp"), 2, "crop")


def test_pictures_for_other_inputs(folder):
    expect(run("run", doubling(folder / "f.onnx", [1, 3, 24, 17]), "--input", f"x={FILES / 'colours.png'}"), 1, "is a picture",
           "--image x=rgb,SCALE,BIAS")
    expect(run("run", doubling(folder / "g.onnx", [1, 1, 24, 17]), "--image", "x=gray", "--input", f"x={FILES / 'colours.png'}"), 1,
           "the picture has colours", "-colorspace gray")
    colours = np.load(FILES / "colours.png.npy")
    for dims in [24, 17, 3], [1, 24, 17, 3]:
        found = outcome(doubling(folder / "u.onnx", dims, "u1"), folder, "--input", f"x={FILES / 'colours.png'}")
        assert (found == (colours + colours).reshape(dims)).all(), dims


def test_sounds(folder):
    mono, stereo = np.load(FILES / "int32.wav.npy"), np.load(FILES / "int16.wav.npy")
    for dims in [50], [1, 50], [1, 1, 50], [1, 50, 1]:
        found = outcome(doubling(folder / "m.onnx", dims), folder, "--input", f"x={FILES / 'int32.wav'}")
        assert (found == (mono + mono).reshape(dims)).all(), dims
    found = outcome(doubling(folder / "s.onnx", [1, 2, 50]), folder, "--input", f"x={FILES / 'int16.wav'}")
    assert (found == (stereo + stereo)[None]).all()
    for count in 40, 64:
        model = doubling(folder / "n.onnx", [1, count])
        expect(run("run", model, "--input", f"x={FILES / 'int32.wav'}"), 1, "50 samples", f"{count} samples", "--fit crop")
        found = outcome(model, folder, "--input", f"x={FILES / 'int32.wav'}", "--fit", "crop")
        wanted = np.pad(mono + mono, (0, 14))[:count]
        assert (found == wanted[None]).all(), count
    expect(run("run", doubling(folder / "o.onnx", [1, 50]), "--input", f"x={FILES / 'int16.wav'}"), 1, "2 channels", "-ac 1")


def test_a_folder_of_pictures_is_a_set_of_samples(folder):
    model, package = doubling(folder / "m.onnx", [1, 3, 24, 17]), folder / "m.mlpackage"
    samples = folder / "samples"
    samples.mkdir()
    for i, name in enumerate(("colours.png", "opaque.png", "colours.jpg")):
        (samples / f"photo {i}{name[-4:]}").write_bytes((FILES / name).read_bytes())
    expect(run("compile", model, "--image", "x=rgb,1/255", "-o", package, "--calibrate", samples), 0)
    answer = expect(run("verify", model, package, "--inputs", samples, "--json"), 0).answer
    assert {output["step"] for output in answer["outputs"]} == {0, 1, 2}, answer
    # Other files in the folder are not skipped in silence.
    np.save(samples / "z.npy", np.zeros(3))
    expect(run("verify", model, package, "--inputs", samples), 1, "matches no input")


def test_recipes_take_pictures_and_sounds(folder):
    """A picture is one sample, and a folder of pictures of one size as many as it has files."""
    names = "colours.png", "opaque.png", "colours.jpg"
    photos = folder / "photos"
    photos.mkdir()
    for i, name in enumerate(names):
        (photos / f"{i}{name[-4:]}").write_bytes((FILES / name).read_bytes())
    pixels = np.stack([np.load(FILES / f"{name}.npy") for name in names]).astype("f4").transpose(0, 3, 1, 2)
    np.save(folder / "all.npy", pixels / 255 * 2)
    np.save(folder / "first.npy", pixels[:1] / 255 * 2)
    np.save(folder / "sound.npy", 2 * np.load(FILES / "int32.wav.npy")[None, None])
    pictures = doubling(folder / "pictures.onnx", [1, 3, 24, 17])
    sounds = doubling(folder / "sounds.onnx", [1, 1, 50])
    for name, model, options, given, reference in (("all", pictures, ["--image", "x=rgb,1/255"], "photos", "all.npy"),
                                                   ("first", pictures, ["--image", "x=rgb,1/255"], "photos/0.png", "first.npy"),
                                                   ("sound", sounds, [], str(FILES / "int32.wav"), "sound.npy")):
        recipe = {"name": name, "source": {"path": model.name, "sha256": hashlib.sha256(model.read_bytes()).hexdigest()},
                  "variants": [{"name": name, "options": options}], "check": {"inputs": {"x": given}, "reference": {"y": reference}}}
        (folder / f"{name}.json").write_text(json.dumps(recipe))
        expect(run("build", folder / f"{name}.json", "-o", folder / "built"), 0, "PASSED: 1 passed")
    # The reference is compared: with pictures in another order, it does not agree.
    (photos / "0.png").rename(photos / "9.png")
    expect(run("build", folder / "all.json", "-o", folder / "built"), 3)
    (photos / "small.png").write_bytes((FILES / "gray.png").read_bytes())
    expect(run("build", folder / "all.json", "-o", folder / "built"), 1, "the sample has shape", "small.png")
    (photos / "small.png").rename(photos / "readme.txt")
    expect(run("build", folder / "all.json", "-o", folder / "built"), 1, "neither a picture nor a sound", "readme.txt")


def test_raw_elements_and_archives(folder):
    values = np.random.default_rng(0).normal(size=(2, 5)).astype("f4")
    model = doubling(folder / "m.onnx", [2, 5])
    (folder / "x.raw").write_bytes(values.tobytes())
    assert (outcome(model, folder, "--input", f"x={folder / 'x.raw'}") == values + values).all()
    (folder / "short.raw").write_bytes(values.tobytes()[:-1])
    expect(run("run", model, "--input", f"x={folder / 'short.raw'}"), 1, "39 bytes", "40 bytes: fp32 of shape [2, 5]")
    np.savez(folder / "one.npz", a=values)
    assert (outcome(model, folder, "--input", f"x={folder / 'one.npz'}") == values + values).all()
    np.savez(folder / "two.npz", a=values, b=values)
    expect(run("run", model, "--input", f"x={folder / 'two.npz'}"), 1, "2 arrays", "a, b")
    package = folder / "m.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    np.savez(folder / "inputs.npz", x=values)
    expect(run("verify", model, package, "--inputs", folder / "inputs.npz"), 0, "PASSED")
    expect(run("verify", model, package, "--inputs", folder / "two.npz"), 1, "matches no input")


def test_outputs_as_pictures(folder):
    model = doubling(folder / "m.onnx", [1, 3, 24, 17])
    image = ["--image", "x=rgb,1/510", "--input", f"x={FILES / 'colours.png'}"]
    expect(run("run", model, *image, "--output", f"y={folder / 'y.png'}"), 1, "would be black", f"--output y={folder / 'y.png'},255")
    for name in "y.png", "y.ppm":
        expect(run("run", model, *image, "--output", f"y={folder / name},255"), 0)
        read = doubling(folder / "u.onnx", [24, 17, 3], "u1")
        colours = np.load(FILES / "colours.png.npy")
        assert (outcome(read, folder, "--input", f"x={folder / name}") == colours + colours).all(), name
    expect(run("run", model, *image, "--output", f"y={folder / 'y.npy'}"), 0)
    assert np.load(folder / "y.npy").shape == (1, 3, 24, 17)
    expect(run("run", model, *image, "--output", f"z={folder / 'y.png'}"), 1, "no output \"z\"", "y")
    expect(run("run", model, *image, "--output", f"y={folder / 'y.gif'}"), 2, ".png")
    expect(run("run", doubling(folder / "v.onnx", [7]), "--output", f"y={folder / 'v.png'}"), 1, "is no picture")


def archived(name, contents=b"x"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, contents)
    return file.getvalue()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.onnx"))
    return file.getvalue()


# name: contents, what it is, what to do
FOREIGN_MODELS = {
    "pointer.onnx": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "pointer of Git LFS", "git lfs pull"),
    "model.onnx.gz": (gzip.compress(b"x"), "gzip archive", "gunzip"),
    "model.tar": (tar(), "tar archive", "tar -xf"),
    "model.zip": (archived("readme"), "zip archive", "unzip"),
    "page.onnx": (b"\n<!DOCTYPE HTML><html><body>404</body></html>", "HTML page", "download it again"),
    "model.pt": (archived("archive/data.pkl"), "PyTorch checkpoint", "save_file(load("),
    "script.pt": (archived("archive/constants.pkl"), "TorchScript", "torch.jit.load"),
    "pytorch_model.bin": (b"\x80\x02}q\x00.", "pickle", "save_file(load("),
    "model.tflite": (b"\x1c\0\0\0TFL3\0\0", "TensorFlow Lite", "--tflite"),
    "graph.pb": (b"\x0a\x1e\x0a\x01x\x12\x0bPlaceholder*\x0b\x0a\x05dtype\x12\x020\x01", "TensorFlow graph", "--graphdef"),
    "model.h5": (b"\x89HDF\r\n\x1a\n", "HDF5", "--keras"),
    "model.keras": (archived("model.weights.h5"), "Keras archive", ".export("),
    "inference.pdmodel": (b"\x0a\x10feed\x12\x07op_role", "Paddle", "paddle2onnx"),
    "inference.json": (b'{"base_code":{"magic":"pir"}}', "Paddle", "paddle2onnx"),
    "config.json": (b'{"model_type": "llama"}', "JSON", "pass the folder"),
    "model.npz": (archived("x.npy"), "NumPy arrays", "--inputs"),
}
FOREIGN_TENSORS = {
    "x.webp": (b"RIFF\0\0\0\0WEBPVP8 ", "WebP", "magick"),
    "x.gif": (b"GIF89a\0\0", "GIF", "magick"),
    "x.heic": (b"\0\0\0\x18ftypheic", "HEIC", "heif-convert"),
    "x.mp3": (b"ID3\x04\0", "MP3", "ffmpeg"),
    "x.flac": (b"fLaC\0\0", "FLAC", "ffmpeg"),
    "x.npy": (b"version https://git-lfs.github.com/spec/v1\n", "pointer of Git LFS", "git lfs pull"),
    "x.npy.gz": (gzip.compress(b"x"), "gzip archive", "gunzip"),
    "x.pkl": (b"\x80\x04\x95", "pickle", "numpy.save"),
}


def test_files_of_other_formats_are_named(folder):
    for name, (contents, what, remedy) in FOREIGN_MODELS.items():
        (folder / name).write_bytes(contents)
        for command in ["compile"], ["inspect"]:
            expect(run(*command, folder / name), 1, "unsupported format", what, remedy, name)
    for name, word in (("saved_model.pb", "TensorFlow SavedModel"), ("inference.pdmodel", "Paddle")):
        place = folder / f"folder of {name}"
        place.mkdir()
        (place / name).write_bytes(b"x")
        expect(run("compile", place), 1, "unsupported format", word)
    model = doubling(folder / "m.onnx", [2])
    for name, (contents, what, remedy) in FOREIGN_TENSORS.items():
        (folder / name).write_bytes(contents)
        expect(run("run", model, "--input", f"x={folder / name}"), 1, "unsupported format", what, remedy)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "files of inputs"))
