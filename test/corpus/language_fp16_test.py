"""Text models of the corpus, GGUF files and Hugging Face folders, are entirely in fp16 with default options, at target iOS18 and at
the default one, except for permitted reasons; rounding is not one of them. Prints the share of each model that is not.
"""
import collections
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402

PERMITTED = {"overflow", "index", "angle", "logarithm", "loop", "no-fp16-form"}


def measure(model):
    """Returns a line about the model, or None if it is not a text model; raises on failures."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        for target in (["--target", "iOS18"], []):
            made = driver.run("compile", model, "-o", pathlib.Path(scratch) / "x.mlpackage", "--force", *target, "--json", timeout=300)
            if model.is_dir() and [e["id"] for e in made.answer.get("errors", [])] == ["unsupported-architecture"]:
                return None
            driver.expect(made, 0)
            if any(port["name"] == "pixel_values" for port in made.answer["inputs"]):
                return None
            reasons = collections.Counter(d["id"] for d in made.answer["decisions"] if d["kind"] == "fp32")
            assert set(reasons) <= PERMITTED, f"{model.name} {target}: {dict(reasons)}"
            assert reasons or made.answer["fp16_share"] == 1, f"{model.name} {target}: {made.answer['fp16_share']}, without a reason"
            if reasons:
                lines.append(f"{model.name:20} {made.answer['target']:8} {made.answer['fp16_share']:7.1%} {dict(reasons)}")
    return lines


def main():
    models = sorted((driver.CORPUS / "gguf").glob("*.gguf"))
    models += sorted(config.parent for config in (driver.CORPUS / "huggingface").glob("*/config.json"))
    if not models:
        print(f"# fp16 of text models: skipped, no corpus at {driver.CORPUS}")
        return driver.SKIPPED
    found = [lines for lines in driver.parallel(measure, models) if lines is not None]
    print(*(line for lines in found for line in lines), sep="\n")
    print(f"# fp16 of text models: {len(found)} of {len(models)} models, the others are not supported text models")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
