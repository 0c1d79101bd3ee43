#!/usr/bin/env python3
"""Tests --requant, which quantises the weights of language models again. The result is as close to the source as the scheme
allows, has the expected size, and is listed in the manifest; impossible requests are rejected."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import numpy as np

import gguf_file
from driver import expect, run, run_tests
from language_models import Llama, error, logits

# Bits per weight, including its scale or table, and the maximum error of typical weights (relative root mean square). Rows
# have 64 elements, so an int8 row with a 16-bit scale has 8.25 bits per weight; a table has 16 entries of 16 bits for 32
# rows; fp16 weights may stay fp32 if fp16 is not accurate enough.
SCHEMES = {"int8": (8.25, 8e-3), "int4": (4.5, 0.1), "lut4": (4.125, 0.1), "fp16": (32, 3e-4)}
WORSE = 4  # maximum ratio of the errors of logits and weights


class Wide(Llama):
    width, head, inner, vocabulary = 64, 16, 128, 96


def model_of(folder):
    model = Wide()
    path = folder / "model.gguf"
    model.gguf(path)
    return model, path


def test_schemes(folder):
    model, path = model_of(folder)
    tokens = [int(t) for t in np.random.default_rng(2).integers(0, model.vocabulary, 40)]
    source = logits(path, tokens, folder / "source")
    for scheme, (bits, most) in SCHEMES.items():
        package = folder / f"{scheme}.mlpackage"
        answer = expect(run("compile", path, "-o", package, "--requant", scheme, "--json"), 0).answer
        off = error(logits(package, tokens, folder / scheme), source)
        assert off <= WORSE * max(most, 1e-3), f"{scheme}: {off:.1e}"
        # Running the source with the option gives the same numbers.
        again = error(logits(package, tokens, folder / f"{scheme}_exact", "--arithmetic", "exact"),
                      logits(path, tokens, folder / f"{scheme}_source", "--requant", scheme))
        assert again <= 2e-3, f"{scheme}: {again:.1e}"
        manifest = json.loads(package.with_suffix(".manifest.json").read_text())
        assert manifest["options"]["--requant"] == [scheme]
        report = manifest["compression"]
        made = {entry["name"]: entry for entry in report["tensors"] if "snr_db" in entry}
        # fp16 changes nothing, since the source is not quantised.
        wanted = {name.replace(".", "_") for name, array in model.gguf_tensors().items() if array.size >= 2048}
        assert set(made) == (set() if scheme == "fp16" else wanted), sorted(set(made) ^ wanted)
        for name, entry in made.items():
            assert 10 ** (-entry["snr_db"] / 20) <= most, entry
        assert report["compressed"] == len(made)
        weights = sum(f.stat().st_size for f in package.rglob("weight.bin"))
        matrices = sum(array.size for array in model.gguf_tensors().values() if array.ndim > 1 and array.size >= 2048)
        assert weights <= matrices * bits / 8 * 1.15 + 30000, f"{scheme}: {weights} bytes for {matrices}"


def test_folder(folder):
    """A Hugging Face folder and a GGUF file with the same weights give the same logits and package sizes, since each row
    is quantised separately."""
    model, path = model_of(folder)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6]
    there = model.hugging_face(folder / "there")
    for scheme in SCHEMES:
        packages = [folder / f"{source.name}_{scheme}.mlpackage" for source in (path, there)]
        for source, package in zip((path, there), packages):
            expect(run("compile", source, "-o", package, "--requant", scheme), 0)
        made, made_there = (logits(package, tokens, folder / "package") for package in packages)
        assert np.array_equal(made_there, made), (scheme, error(made_there, made))
        sizes = [sum(f.stat().st_size for f in package.rglob("weight.bin")) for package in packages]
        assert max(sizes) == min(sizes), (scheme, sizes)
        verified = expect(run("verify", there, packages[1], "--requant", scheme), 0)
        assert "PASSED" in verified.stdout, verified.stdout


def test_sizes_of_weights(folder):
    """Weights of any magnitude have the same relative error as typical weights, in the source and in the package, even if
    fp16 cannot represent their scales and tables. The package contains integers nevertheless; the manifest names these
    weights. 2^-14 is fp16's smallest normal number, 65504 its largest; the factors are on both sides of the limits for
    scales and tables."""
    tokens = [3, 1, 4, 1, 5, 9, 2, 6]
    sizes = {}
    for factor in (1, 2.0**-4, 2.0**-5, 1e-3, 2.0**-12, 1e-4, 1e-6, 2.0**17, 2.0**18, 1e6):
        model = Wide()
        for block in model.blocks:  # one matrix cancels the factor of the other
            block["ffn_up"] = (block["ffn_up"] * factor).astype("f4")
            block["ffn_down"] = (block["ffn_down"] / factor).astype("f4")
        path = model.gguf(folder / f"{factor}.gguf")
        source = logits(path, tokens, folder / "source")
        expect(run("compile", path, "-o", folder / "plain.mlpackage", "--force"), 0)
        plain = error(logits(folder / "plain.mlpackage", tokens, folder / "package"), source)
        for scheme in ("int8", "int4", "lut4"):
            package = folder / f"{factor}_{scheme}.mlpackage"
            expect(run("compile", path, "-o", package, "--requant", scheme), 0)
            at_source = error(logits(path, tokens, folder / "quantised", "--requant", scheme), source)
            packaged = error(logits(package, tokens, folder / "package"), source)
            wanted = sizes.setdefault(scheme, (at_source, sum(f.stat().st_size for f in package.rglob("weight.bin"))))
            assert abs(at_source - wanted[0]) <= 0.05 * wanted[0], f"{factor} {scheme}: {at_source:.1e}, {wanted[0]:.1e}"
            assert packaged <= 1.2 * wanted[0] + 2 * plain, f"{factor} {scheme}: {packaged:.1e}, {wanted[0]:.1e}"
            size = sum(f.stat().st_size for f in package.rglob("weight.bin"))
            assert size <= 1.1 * wanted[1], f"{factor} {scheme}: {size} bytes, {wanted[1]}"
            decisions = json.loads(package.with_suffix(".manifest.json").read_text())["decisions"]
            names = [d for d in decisions if d["kind"] in ("fp32", "safe-form") and ("ffn_up" in d["reason"] or "ffn_down" in d["reason"])]
            assert names or not 1e-6 <= factor <= 1e-4, (factor, scheme, decisions)


def test_not_finite(folder):
    """The error names the weight with NaN or infinity, in every form, and no other weight."""
    for bad in (np.nan, np.inf, -np.inf):
        model = Wide()
        model.blocks[1]["ffn_up"][3, 5] = bad
        path = model.gguf(folder / f"{bad}.gguf")
        for options in ([], ["--precision", "fp32"], *(["--requant", scheme] for scheme in SCHEMES)):
            result = expect(run("compile", path, "-o", folder / "x.mlpackage", "--force", "--no-measure", *options), 0)
            said = [line for line in result.stderr.splitlines() if "NaN or infinity" in line]
            assert said and all("blk_1_ffn_up_weight" in line for line in said), (bad, options, result.stderr)
    path = Wide().gguf(folder / "finite.gguf")
    assert "NaN or infinity" not in expect(run("compile", path, "-o", folder / "y.mlpackage", "--no-measure"), 0).stderr


def test_deterministic(folder):
    """The result has the same bytes for any number of threads."""
    _, path = model_of(folder)
    for scheme in SCHEMES:
        packages = []
        for threads in "1", "5":
            package = folder / f"{scheme}{threads}.mlpackage"
            expect(run("compile", path, "-o", package, "--requant", scheme, environment={"MLC_THREADS": threads}), 0)
            packages.append([f.read_bytes() for f in sorted(package.rglob("weight.bin"))])
        assert packages[0] == packages[1], scheme


def test_blocks(folder):
    """Quantised weights are decoded before they are quantised again."""
    path = folder / "tiny.gguf"
    gguf_file.write_llama(path, gguf_file.LIKE["tiny"], "Q4_K")
    source = logits(path, [3, 1, 4, 1, 5], folder / "source")
    for scheme, (_, most) in SCHEMES.items():
        off = error(logits(path, [3, 1, 4, 1, 5], folder / scheme, "--requant", scheme), source)
        assert off <= WORSE * max(most, 1e-3), f"{scheme}: {off:.1e}"
    package = folder / "fp16.mlpackage"
    expect(run("compile", path, "-o", package, "--requant", "fp16"), 0)
    operators = expect(run("inspect", package, "--json"), 0).answer["operators"]
    assert not [name for name in operators if name.startswith("constexpr")], operators


def test_refused(folder):
    _, path = model_of(folder)
    expect(run("compile", path, "--requant", "int3", "-o", folder / "x.mlpackage"), 2, "int3", "lut4")
    package = folder / "y.mlpackage"
    expect(run("compile", path, "-o", package), 0)
    expect(run("run", package, "--requant", "int8"), 2, "--requant applies to a GGUF file or a Hugging Face folder, not to a package")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "weights quantised anew"))
