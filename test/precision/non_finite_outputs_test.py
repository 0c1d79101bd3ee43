#!/usr/bin/env python3
"""No package is written if outputs are NaN or infinite where the source is finite: x * 1e5 / (|x * 1e5| + 1), forced into fp16 by
--fp16-ops, gives infinity / infinity. Weights with NaN or infinity are reported by name, for any size and type."""
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

FORCED = ["--fp16-ops", "mul,abs,add,real_div"]


def model(path):
    def scalar(name, value):
        return wire.tensor(name, wire.FLOAT, (), np.float32(value).tobytes())

    nodes = [wire.node("Mul", ["x", "C"], ["z"]), wire.node("Abs", ["z"], ["a"]), wire.node("Add", ["a", "ONE"], ["b"]),
             wire.node("Div", ["z", "b"], ["y"])]
    path.write_bytes(wire.model(wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [2, 8])], [wire.value_info("y", wire.FLOAT, [2, 8])],
                                           [scalar("C", 1e5), scalar("ONE", 1)])))


def not_finite(folder):
    """Non-finite weights in a weight file, and small ones in the program itself."""
    faults = []
    for size in (2, 64):
        for kind, dtype in ((wire.FLOAT, np.float32), (wire.FLOAT16, np.float16)):
            for number in (np.nan, np.inf, 1):
                weight = np.ones((size, size), dtype)
                weight[1, 0] = number
                source = folder / "w.onnx"
                source.write_bytes(wire.model(wire.graph(
                    [wire.node("MatMul", ["x", "w"], ["y"])], [wire.value_info("x", kind, [1, size])],
                    [wire.value_info("y", kind, [1, size])], [wire.tensor("w", kind, weight.shape, weight.tobytes())])))
                result = driver.run("compile", source, "-o", folder / "w.mlpackage", "--force", "--no-measure")
                said = "contains NaN or infinity" in result.stderr
                if result.code != 0 or said != (number != 1):
                    faults.append(f"{size} x {size} {dtype.__name__} with {number}: {driver.ending(result)}")
    return faults


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        source, package = pathlib.Path(folder) / "m.onnx", pathlib.Path(folder) / "m.mlpackage"
        model(source)
        for options, code in ((FORCED, 3), ([*FORCED, "--no-measure"], 0), ([], 0), (["--precision", "fp32"], 0)):
            result = driver.run("compile", source, "-o", package, "--force", "--json", *options)
            if result.code != code or package.exists() != (code == 0):
                faults.append(f"{' '.join(options) or 'default'}: {driver.ending(result)}, expected exit code {code}")
            if code and [e["id"] for e in result.errors] != ["check-failed"]:
                faults.append(f"{' '.join(options)}: errors {result.errors}")
        faults += not_finite(pathlib.Path(folder))
    print("\n".join(faults))
    print(f"# packages that compute NaN: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
