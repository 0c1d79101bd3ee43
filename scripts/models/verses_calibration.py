#!/usr/bin/python3
"""Writes manifests/verses-calibration.txt: text that the sample language model itself generates, which is neither part of what it
was trained on nor of the books that it is tested on. Requires a build of mlc; the result depends on mlc's sampling only."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MLC = pathlib.Path(os.environ.get("MLC_BUILD_DIR", ROOT / "build")) / "bin/mlc"
VERSES = ROOT / "manifests/verses"
BEGINNINGS = ("And", "Then", "Now", "In", "The", "For", "But", "Moreover", "And he", "Behold,", "Thus", "When", "And it came to pass",
              "Therefore", "O", "So", "These", "If", "And the king", "Let", "Blessed", "Woe", "Hear", "And Moses",
              "The word of the LORD", "My son,", "Praise", "Jesus", "And they", "Now the")


def main():
    texts = []
    for seed, beginning in enumerate(5 * BEGINNINGS, 1):
        done = subprocess.run([MLC, "run", VERSES / "verses-f16.gguf", "--prompt", beginning, "--generate", "250", "--temperature", "1",
                               "--seed", str(seed)], capture_output=True, text=True, check=True)
        texts.append(beginning + " " + done.stdout.strip())
    (ROOT / "manifests/verses-calibration.txt").write_text("\n".join(texts) + "\n")


if __name__ == "__main__":
    main()
