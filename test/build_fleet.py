"""Two small recipes with three variants, for tests of `mlc build`."""
import hashlib
import json
import time

import numpy as np

import onnx_wire as wire
from driver import MLC, expect, run

RNG = np.random.default_rng(0)
VARIANTS = ["m-fp32", "m-fp16", "n-only"]  # of Fleet


def write_model(path, scale=1.0):
    """A model y = x @ w with external data beside it; returns w."""
    w = (np.random.default_rng(1).standard_normal((16, 4)) * scale).astype("<f4")
    path.with_suffix(".bin").write_bytes(w.tobytes())
    graph = wire.graph([wire.node("MatMul", ["x", "w"], ["y"])], [wire.value_info("x", wire.FLOAT, [2, 16])],
                       [wire.value_info("y", wire.FLOAT, [2, 4])],
                       [wire.tensor("w", wire.FLOAT, w.shape, None, {"location": path.with_suffix(".bin").name})])
    path.write_bytes(wire.model(graph))
    return w


def sha256(*files):
    lines = "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
    return hashlib.sha256(lines.encode()).hexdigest()


class Fleet:
    """Two recipes with three variants in a folder, and the result of building them."""

    def __init__(self, folder):
        self.models, self.out = folder / "models", folder / "out"
        self.models.mkdir()
        self.mlc = MLC
        self.folder = folder
        x = RNG.standard_normal((6, 16)).astype("<f4")
        for name in "mn":
            w = write_model(self.models / f"{name}.onnx", 1 if name == "m" else 2)
            np.save(self.models / f"{name}-x.npy", x)
            np.save(self.models / f"{name}-y.npy", x @ w)
            np.save(self.models / f"{name}-best.npy", (x @ w).argmax(1))
        (self.models / "labels.txt").write_text("".join(f"l{i}\n" for i in range(8)))
        (self.models / "samples").mkdir()
        np.save(self.models / "samples" / "x.npy", x[:2])
        self.recipes = {
            "m": self.recipe("m", [{"name": "fp32", "options": ["--precision", "fp32"], "bundle": True},
                                   {"name": "fp16", "options": ["--calibrate", "samples"], "parity_bundle": True,
                                    "limits": {"operations": 9}}]),
            "n": self.recipe("n", [{"name": "only", "options": ["--labels", "labels.txt"], "budget": "fp16"}])}
        del self.recipes["n"]["check"]["accuracy"]
        self.write()

    def recipe(self, name, variants):
        return {"name": name, "source": {"path": f"{name}.onnx", "sha256": self.hash(name)}, "variants": variants,
                "check": {"inputs": {"x": f"{name}-x.npy"}, "reference": {"y": f"{name}-y.npy"},
                          "accuracy": {"output": "y", "labels": f"{name}-best.npy", "expected": 1, "tolerance": 0.2}}}

    def hash(self, name):
        return sha256(self.models / f"{name}.onnx", self.models / f"{name}.bin")

    def write(self):
        for name, recipe in self.recipes.items():
            (self.models / f"{name}.json").write_text(json.dumps(recipe))

    def build(self, *options, code=0):
        answer = expect(run("build", self.models, "-o", self.out, "--json", *options, folder=self.folder, program=self.mlc,
                            timeout=300), code).answer
        return {v["name"]: v for recipe in answer["recipes"] for v in recipe["variants"]}

    def bytes(self):
        return {str(f.relative_to(self.out)): f.read_bytes() for f in sorted(self.out.rglob("*"))
                if f.is_file() and ".mlc-build" not in f.parts}


def settle():
    """Digests of files are remembered only if the files are older than the resolution of their times."""
    time.sleep(0.2)
