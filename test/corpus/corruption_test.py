"""`mlc verify`, on generated inputs, detects packages that compute something else.

In small real models, each constant of the weight file with at least 64 elements is corrupted in turn: a tenth of its values is
doubled. If this moves an output by more than twice the budget on the model's own inputs, verify with 16 samples has to fail. At
least 98 % of these corruptions have to be detected; the others are listed.

MLC_CORRUPT is the number of models (default 3, all: 10). With an argument, only models whose name contains it run.
"""
import os
import pathlib
import shutil
import struct
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import models  # noqa: E402
import onnx_wire  # noqa: E402

MODELS = ["zoo_bert_small_dyn", "zoo_gpt_kv_dyn", "zoo_gru_seq_dyn", "zoo_vit_tiny", "mnist8",
          "zoo_lstm_bi2", "zoo_cnn_qdq_perchannel", "zoo_unet_dyn", "ten_vad", "stm_yamnet256"]
SAMPLES, SHARE, LEAST = 16, 0.98, 64
SECONDS = 300
# BlobDataType of a record: NumPy's type. Other types (int4 ...) are not corrupted.
TYPES = {1: np.float16, 2: np.float32, 3: np.uint8, 4: np.int8}


def records(weights):
    """Returns (offset of the metadata, offset of the data, NumPy type, elements) for each record of a weight file."""
    at = 64
    for _ in range(struct.unpack_from("<I", weights)[0]):
        sentinel, kind, size, data = struct.unpack_from("<IIQQ", weights, at)
        assert sentinel == 0xDEADBEEF, f"no record at {at}"
        if kind in TYPES:
            yield at, data, TYPES[kind], size // np.dtype(TYPES[kind]).itemsize
        at = -(-(data + size) // 64) * 64


def corrupted(values, seed):
    """Doubles a tenth of the values; integers keep their type."""
    values = values.copy()
    chosen = np.random.default_rng(seed).choice(values.size, values.size // 10, replace=False)
    twice = values[chosen].astype("f8") * 2
    if values.dtype.kind in "iu":
        limits = np.iinfo(values.dtype)
        twice = np.clip(twice, limits.min, limits.max)
    values[chosen] = twice.astype(values.dtype)
    return values


def outputs(package, model, facts, folder):
    """Returns the package's outputs for the model's own inputs, [array], or the reason why there are none."""
    given = [f"--input={n}={file}" for n, file in models.input_files(model, facts.inputs).items()]
    result = driver.run("run", package, *given, "--output-dir", folder, "--json", timeout=SECONDS)
    if driver.verdict(result) != "ok":
        raise RuntimeError(f"{model.name}: run: {driver.ending(result)}")
    return [np.load(entry["file"]) for entry in result.answer["outputs"]]


def moved(values, before, budget):
    """Returns the largest change of an output in multiples of the budget; 0 if no output is conclusive."""
    errors = [models.error(value, reference) for value, reference in zip(values, before)]
    return max((max(e[0] / budget[0], e[1] / budget[1]) for e in errors if e), default=0)


def verify(model, package):
    result = driver.run("verify", model.file, package, "--samples", SAMPLES, "--json", timeout=SECONDS)
    assert result.code in (0, 3), f"{model.name}: verify: {driver.ending(result)}"
    return result


def corrupt_one(job):
    """Returns (description, change of the outputs in multiples of the budget, whether verify detected it)."""
    model, facts, package, before, precision, number, (at, data, kind, count) = job
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        copy = pathlib.Path(scratch) / "corrupted.mlpackage"
        shutil.copytree(package, copy)
        file = next(copy.glob("**/weight.bin"))
        weights = bytearray(file.read_bytes())
        size = count * np.dtype(kind).itemsize
        values = np.frombuffer(weights[data:data + size], kind)
        weights[data:data + size] = corrupted(values, number).tobytes()
        file.write_bytes(weights)
        distance = moved(outputs(copy, model, facts, scratch), before, models.BUDGETS[precision])
        noticed = verify(model, copy).code == 3 if distance > 2 else None
    return f"{model.name} {precision}: constant at {at}, {count} of {np.dtype(kind)}", distance, noticed


def jobs(model, folder):
    facts = onnx_wire.read_facts(model.file.read_bytes())
    for precision in models.BUDGETS:
        package = folder / f"{model.name}-{precision}.mlpackage"
        driver.expect(driver.run("compile", model.file, "-o", package, "--precision", precision, "--no-manifest",
                                 *models.options(model, facts), timeout=SECONDS), 0)
        # Some random weights exceed the fp16 budget by themselves (fp16 is checked elsewhere), but
        # never that of fp32.
        if verify(model, package).code != 0:
            assert precision == "fp16", f"{model.name}: the fp32 package is outside its budget"
            print(f"# corrupted constants: {model.name} in fp16 is skipped, the whole package is outside the budget")
            continue
        before = outputs(package, model, facts, folder)
        weights = next(package.glob("**/weight.bin")).read_bytes()
        for number, record in enumerate(records(weights)):
            if record[3] >= LEAST:
                yield model, facts, package, before, precision, number, record


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    names = MODELS[:int(os.environ.get("MLC_CORRUPT", 3))] if not wanted else [n for n in MODELS if wanted in n]
    found = {m.name: m for m in models.models() if m.name in names}
    if not found:
        print(f"# corrupted constants: skipped, no corpus at {models.FOLDER}")
        return driver.SKIPPED
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        work = [job for name in names if name in found for job in jobs(found[name], pathlib.Path(folder))]
        results = driver.parallel(corrupt_one, work)
    telling = [(text, distance, noticed) for text, distance, noticed in results if distance > 2]
    missed = [(text, distance) for text, distance, noticed in telling if not noticed]
    for text, distance in missed:
        print(f"not detected: {text}, moves an output by {distance:.1f} budgets")
    share = 1 - len(missed) / max(len(telling), 1)
    print(f"# corrupted constants: {len(found)} models, {len(results)} constants, {len(telling)} move an output by more than "
          f"two budgets, verify with {SAMPLES} generated samples detects {len(telling) - len(missed)} ({share:.1%})")
    return 0 if telling and share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
