"""Image networks of the corpus, on a smooth image in each of the common ranges: no output of their default packages is infinite or
NaN where the source is finite, unless the compiler warned about it (fp16-range).

With an argument, only models whose name contains it run.
"""
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

NETWORKS = ["deeplab_v3_mnv2", "fastestdet", "nanodet_m_320", "ocr_dbnet", "pfld106_lite", "ppocr_cls", "sci_180x320",
            "stm_mobilenetv2_035_128", "stm_ssd_mbv1_025_256", "ultraface_rfb320", "vae_encoder", "yunet_n_dynamic"]
RANGES = [(0, 255), (0, 1), (-1, 1), (-128, 127)]
SECONDS = 300


def picture(shape, low, high):
    """Returns waves along the two largest dimensions."""
    sides = sorted(np.argsort(shape)[-2:])
    waves = np.zeros(shape)
    for number, side in enumerate(sides):
        at = np.arange(shape[side]).reshape([-1 if d == side else 1 for d in range(len(shape))])
        waves = waves + np.sin(2 * np.pi * (1.5 + number) * at / shape[side] + number)
    return (low + (high - low) * (waves - waves.min()) / np.ptp(waves)).astype("f4")


def faults_of(model):
    facts = onnx_wire.read_facts(model.file.read_bytes())
    faults, said = [], 0
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        folder = pathlib.Path(scratch)
        package = folder / "m.mlpackage"
        made = driver.run("compile", model.file, "-o", package, *models.options(model, facts), "--json", timeout=SECONDS)
        if made.code != 0:
            return [f"{model.name}: {driver.ending(made)}"], 0
        warned = any("fp16-range" in note for note in made.answer["notes"])
        for low, high in RANGES:
            given = []
            for name, file in models.input_files(model, facts.inputs).items():
                shape = np.load(file, mmap_mode="r").shape
                array = picture(shape, low, high) if np.prod(shape) >= 1024 else np.load(file)
                np.save(folder / f"{len(given)}.npy", array)
                given.append(f"--input={name}={folder / f'{len(given)}.npy'}")
            outputs = []
            for what in (model.file, package):
                ran = driver.run("run", what, *given, "--output-dir", folder / what.name.replace(".", "-"), "--json", timeout=SECONDS)
                if ran.code != 0:
                    return [f"{model.name} in {low}..{high}: {driver.ending(ran)}"], 0
                outputs.append({e["name"]: np.load(e["file"]) for e in ran.answer["outputs"]})
            source, found = outputs
            for name, value in found.items():
                if value.dtype.kind == "f" and (~np.isfinite(value) & np.isfinite(source[name])).any():
                    said += warned
                    if not warned:
                        faults.append(f"{model.name} in {low}..{high}: output {name} is NaN or infinite, and nothing said so")
    return faults, said


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    found = [m for m in models.models() if m.name in NETWORKS and wanted in m.name]
    if not found:
        print(f"# pictures: skipped, no corpus at {models.FOLDER}")
        return driver.SKIPPED
    results = driver.parallel(faults_of, found)
    for faults, _ in results:
        print("\n".join(faults), end="\n" if faults else "")
    failed = sum(len(faults) for faults, _ in results)
    print(f"# pictures: {len(found)} networks in {len(RANGES)} ranges, {failed} overflows neither repaired nor reported, "
          f"{sum(said for _, said in results)} that were said")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
