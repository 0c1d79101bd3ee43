#!/usr/bin/env python3
"""Writes the pictures and sounds of test/lib/media/files with Pillow, and what Pillow and SciPy read from them as .npy files: the
expected values of picture_test.cpp and sound_test.cpp. The committed files were made with Pillow 9.4 and SciPy 1.10."""
import pathlib
import struct
import wave

import numpy as np
import scipy.io.wavfile
from PIL import Image, ImageOps

FILES = pathlib.Path(__file__).with_name("files")


def picture(height, width):
    """A gradient with a little noise, in three channels that differ."""
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(0).integers(0, 24, (height, width, 3))
    return np.clip(np.stack([255 * y // height, 255 * x // width, 255 * (x + y) // (height + width)], 2) + noise, 0, 255).astype("u1")


def keep(name, image, **options):
    """Writes a picture, and what Pillow reads from it."""
    image.save(FILES / name, **options)
    read = ImageOps.exif_transpose(Image.open(FILES / name))
    np.save(FILES / f"{name}.npy", np.asarray(read.convert("L" if read.mode in "1L" else "RGB")))


def pictures():
    colours = Image.fromarray(picture(24, 17))
    keep("colours.png", colours)
    keep("gray.png", colours.convert("L"))
    keep("two-levels.png", colours.convert("1"))
    keep("palette.png", colours.quantize(13))
    keep("opaque.png", colours.convert("RGBA"))
    Image.fromarray(np.dstack([picture(3, 5), np.full((3, 5), 128, "u1")])).save(FILES / "transparent.png")
    Image.fromarray(np.arange(15, dtype="u2").reshape(3, 5) * 4000).save(FILES / "sixteen-bits.png")
    keep("colours.jpg", colours, quality=80)
    keep("progressive.jpg", colours, quality=70, progressive=True)
    keep("gray.jpg", colours.convert("L"))
    colours.convert("CMYK").save(FILES / "cmyk.jpg")
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        keep(f"orientation-{orientation}.jpg", Image.fromarray(picture(16, 40)), exif=exif, quality=90)
    for height, width in (9, 6), (40, 31), (24, 5):
        np.save(FILES / f"scaled-{height}x{width}.npy", np.asarray(colours.resize((width, height), Image.BILINEAR)))
    np.save(FILES / "scaled-gray.npy", np.asarray(colours.convert("L").resize((8, 8), Image.BILINEAR)))


def sounds():
    t = np.arange(50)
    mono = 0.8 * np.sin(t / 3) * np.exp(-t / 60)
    stereo = np.stack([mono, mono[::-1]], 1)
    for name, data in (("uint8", ((mono + 1) * 127.5).astype("u1")), ("int16", (stereo * 32767).astype("<i2")),
                       ("int32", (mono * 2147483647).astype("<i4")), ("float32", stereo.astype("<f4")), ("float64", mono.astype("<f8"))):
        scipy.io.wavfile.write(FILES / f"{name}.wav", 16000, data)
        read = scipy.io.wavfile.read(FILES / f"{name}.wav")[1]
        scale = {"uint8": 128, "int16": 32768, "int32": 2147483648}.get(name, 1)
        values = (read.astype("f8") - (128 if name == "uint8" else 0)) / scale
        np.save(FILES / f"{name}.wav.npy", values.T.astype("f4"))
    with wave.open(str(FILES / "int24.wav"), "wb") as file:
        file.setparams((1, 3, 8000, 0, "NONE", ""))
        whole = (mono * 8388607).astype("<i4")
        file.writeframes(b"".join(struct.pack("<i", value)[:3] for value in whole))
    np.save(FILES / "int24.wav.npy", (whole / 8388608).astype("f4"))


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    pictures()
    sounds()
