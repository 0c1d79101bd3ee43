#!/usr/bin/env python3
"""Compares `--compress auto:bits=N` with uniform schemes of the same size, on inputs that no weight was chosen for.

Models of the corpus are calibrated on 16 generated samples and compared on 64 others; `digits` and `verses` have data of their own for
both. MLC_AUTO_MODELS names the models, which take up to three minutes each, and `verses` twenty; by default, only digits is compressed.
scripts/nightly takes all.
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

from driver import CORPUS, ROOT, expect, run, run_tests

MODELS = os.environ.get("MLC_AUTO_MODELS", "digits").split()
DIGITS = ROOT / "manifests/digits"
VERSES = ROOT / "manifests/verses/verses-f16.gguf"
UNIFORM = ("pal4", "int4:block=32")
# Bits per weight, with tables, scales and embeddings: the highest perplexity. Q4_0 of llama.cpp has 20.32 at 4.5 bits.
PERPLEXITIES = {4.5: 20.2, 4.0: 20.5, 3.5: 21.2}


def digits_samples(folder):
    """Writes each fifth image of the test data, and its probabilities, and returns the options of `mlc verify`."""
    for i, (image, wanted) in enumerate(zip(np.load(DIGITS / "images.npy")[::5], np.load(DIGITS / "probabilities.npy")[::5])):
        for root, name, value in (("inputs", "image", image), ("reference", "probabilities", wanted)):
            (folder / root / str(i)).mkdir(parents=True)
            np.save(folder / root / str(i) / f"{name}.npy", value[None])
    return ["--inputs", folder / "inputs", "--reference", folder / "reference"]


def error(model, package, samples):
    """Returns the RMSE of all outputs on all samples, each relative to the range of its reference."""
    squares = []
    for options in samples:
        result = run("verify", model, package, *options, "--json", timeout=600)
        assert result.code in (0, 3), result
        squares += [output["rmse"] ** 2 for output in result.answer["outputs"] if output.get("discriminating", True)]
    assert squares
    return np.sqrt(np.mean(squares))


def bits(report):
    """Returns the bits per element of the compressed weights."""
    chosen = [entry for entry in report["tensors"] if entry["scheme"] != "none"]
    return 8 * sum(entry["bytes_after"] for entry in chosen) / sum(np.prod(entry["shape"]) for entry in chosen)


def test_beats_uniform_schemes(folder):
    models = [name for name in MODELS if name != "verses"]
    if models:
        print(f"# {'model':<16} {'scheme':<14} {'bits':>5} {'uniform':>8} {'calibrated':>10} {'auto':>8}")
    worse = []
    for name in models:
        own = name == "digits"
        model = DIGITS / "digits.onnx" if own else next((CORPUS / "onnx-models" / name).glob("*.onnx"), None)
        if model is None:
            print(f"# auto for {name}: skipped, needs ../shared/corpus")
            continue
        inputs = DIGITS / "calibration" if own else "generated:16"
        # Inputs for calibration and for the choice have the seeds 1000 and 1001 (tools/driver/calibration.cpp).
        samples = [digits_samples(folder)] if own else [["--seed", 5000 + i, "--samples", 16] for i in range(4)]
        package = folder / "m.mlpackage"

        def compressed(scheme, *options):
            # Without a manifest, `mlc verify` compares with the plain source.
            report = expect(run("compile", model, "-o", package, "--force", "--compress", scheme, "--target", "iOS18", "--no-measure",
                                "--no-manifest", "--json", *options, timeout=1200), 0).answer["compression"]
            return report, error(model, package, samples)

        for scheme in UNIFORM:
            report, uniform = compressed(scheme)
            _, calibrated = compressed(scheme, "--calibrate", inputs)
            # Rounded up, so that the uniform scheme fits.
            auto, chosen = compressed(f"auto:bits={np.ceil(bits(report) * 1e4) / 1e4}", "--calibrate", inputs)
            assert auto["bytes_after"] <= 1.001 * report["bytes_after"], (name, scheme, auto["bytes_after"], report["bytes_after"])
            print(f"# {name:<16} {scheme:<14} {bits(report):>5.2f} {uniform:>8.4f} {calibrated:>10.4f} {chosen:>8.4f}", flush=True)
            if not (calibrated < uniform and chosen < uniform):
                worse.append((name, scheme, uniform, calibrated, chosen))
    assert not worse, worse


def test_perplexity(folder):
    if "verses" not in MODELS:
        print("# perplexity with auto: skipped, MLC_AUTO_MODELS does not name verses")
        return
    for wanted, most in PERPLEXITIES.items():
        package = folder / "v.mlpackage"
        report = expect(run("compile", VERSES, "-o", package, "--force", "--compress", f"auto:bits={wanted}", "--calibrate",
                            ROOT / "manifests/verses-calibration.txt", "--json", timeout=3600), 0).answer["compression"]
        measured = expect(run("run", package, "--perplexity", VERSES.with_name("sample.txt"), "--context", 256, "--json", timeout=600), 0).answer
        size = 16 * report["bytes_after"] / report["bytes_before"]  # of the weights, which were fp16
        print(f"# verses at {size:.2f} bits: perplexity {measured['perplexity']:.2f}", flush=True)
        assert size <= wanted and measured["perplexity"] <= most, (wanted, size, measured)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "auto against uniform schemes"))
