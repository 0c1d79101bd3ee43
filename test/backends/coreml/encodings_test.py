"""Every form of encoding: NumPy decodes its parts by the definition in lib/ir/encoding.h. The library's values must be bitwise
equal, also transposed, sliced and concatenated, and so must the results of the packages for each generation of operators, in mlc
and, if CT_DIR names coremltools, in coremltools' own evaluation.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import checkers  # noqa: E402
import driver  # noqa: E402

# An offset instead of a bias, in fp32.
BIAS_ERROR = 1e-6


def expanded(grid, dims):
    """Repeats each cell for all elements of its block."""
    for axis, size in enumerate(dims):
        grid = np.repeat(grid, size // grid.shape[axis], axis)
    return grid


def decoded(part, folder):
    if isinstance(part, str):
        return np.load(folder / part)
    parts = {name: decoded(part[name], folder)
             for name in ("data", "scale", "offset", "bias", "table", "mask") if name in part}
    data, mask = parts["data"], parts.get("mask")
    mask = mask.astype(bool) if mask is not None else None
    dtype = {"fp16": np.float16, "fp32": np.float32, "int8": np.int8}[part["dtype"]]
    if part["form"] == "sparse":
        dense = np.zeros(mask.shape, dtype)
        dense[mask] = data
        return dense
    dims = mask.shape if mask is not None else data.shape
    if part["form"] == "affine":
        def grid(name):
            cells = expanded(parts[name].astype(np.float64), dims)
            return cells[mask] if mask is not None else cells
        data = data.astype(np.float64)
        if "bias" in parts:
            return (grid("scale") * data + grid("bias")).astype(dtype)
        return (grid("scale") * (data - (grid("offset") if "offset" in parts else 0.0))).astype(dtype)
    table, axis = parts["table"], part["vector_axis"]
    *cells, entries, vector = table.shape
    indices = data
    if mask is not None:
        indices = np.zeros(dims, np.int64)
        indices[mask] = data
    which = expanded(np.arange(np.prod(cells)).reshape(cells), dims)
    vectors = table.reshape(-1, entries, vector)[which, indices]  # dims + [vector]
    dense = np.moveaxis(vectors, -1, axis + 1)
    dense = dense.reshape([size * (vector if i == axis else 1) for i, size in enumerate(dims)])
    return dense[np.repeat(mask, vector, axis)] if mask is not None else dense


def main():
    unit_tests = driver.BUILD / "bin" / "unit_tests"
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run([unit_tests, "[encoding-samples]"], check=True, env={**os.environ, "MLC_SAMPLES": str(folder)},
                       stdout=subprocess.DEVNULL)
        wrong, jobs, samples = [], [], sorted(folder.glob("*.json"))
        for path in samples:
            sample = json.loads(path.read_text())
            name, stem = sample["name"], path.stem
            expected = decoded(sample["encoding"], folder)
            for kind, value in (("values", expected), ("transposed", expected.T), ("rows", expected[4:8]),
                                ("joined", np.concatenate([expected, expected[4:8]]))):
                computed = np.load(folder / f"{stem}.{kind}.npy")
                if computed.shape != value.shape or computed.tobytes() != np.ascontiguousarray(value).tobytes():
                    wrong.append(f"{name}: {kind}")
            zeros = folder / f"{stem}.zeros.npy"
            np.save(zeros, np.zeros_like(expected))
            bound = BIAS_ERROR * np.sqrt(np.mean(expected.astype(np.float64) ** 2)) if "bias" in sample["encoding"] else 0
            for package in sorted(folder.glob(f"{stem}_*.mlpackage")):
                result = driver.run("run", package, "--json", "--output-dir", folder / "out", "--input", f"x={zeros}")
                if driver.verdict(result) != "ok":
                    wrong.append(f"{name}: {package.name}: {driver.ending(result)}")
                    continue
                computed = np.load(result.answer["outputs"][0]["file"])
                if np.abs(computed - expected).max() > 8 * bound:
                    wrong.append(f"{name}: {package.name} computes {np.abs(computed - expected).max()} off")
                np.savez(folder / f"{package.name}.in.npz", x=np.load(zeros))
                jobs.append((name, expected, bound, {"package": package, "inputs": folder / f"{package.name}.in.npz",
                                                     "outputs": folder / f"{package.name}.out.npz"}))
        assert not wrong, "\n".join(wrong)
        packages = [job["package"] for *_, job in jobs]
        print(f"# {len(samples)} forms of encoding in {len(packages)} packages: the same bits as NumPy's")
        if why := checkers.missing():
            print(f"# encodings in coremltools: skipped, {why}")
            return
        refused = checkers.check(packages)
        assert not refused, refused
        for (name, expected, bound, job), stopped in zip(jobs, checkers.compute([job for *_, job in jobs])):
            if stopped:
                wrong.append(f"{name}: {job['package'].name}: {stopped}")
                continue
            (computed,) = np.load(job["outputs"]).values()
            if not np.abs(computed - expected).max() <= 8 * bound:
                wrong.append(f"{name}: {job['package'].name}: {np.abs(computed - expected).max()} off")
        assert not wrong, "\n".join(wrong)
        print(f"# encodings in coremltools: {len(jobs)} packages compute the same bits")


main()
