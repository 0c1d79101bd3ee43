"""Manifests follow manifests/manifest.schema.json; coremltools' own definitions accept the sample packages.

CT_DIR names an importable coremltools; the checker is ../shared/tools/check_mlpackage.py.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test"))
import json_schema  # noqa: E402

CHECKER = ROOT.parent / "shared" / "tools" / "check_mlpackage.py"


def main():
    unit_tests = pathlib.Path(os.environ["MLC_BUILD_DIR"]) / "bin" / "unit_tests"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([unit_tests, "[coreml-samples]"], check=True, env={**os.environ, "MLC_SAMPLES": folder},
                       stdout=subprocess.DEVNULL)
        folder = pathlib.Path(folder)
        schema = json.loads((ROOT / "manifests" / "manifest.schema.json").read_text())
        for name in ("least.json", "full.manifest.json"):
            manifest = json.loads((folder / name).read_text())
            found = json_schema.errors(manifest, schema)
            assert not found, (name, found)
        # Device measurements are added later by `mlc manifest` (test/tools/run_test.py).
        assert set(schema["properties"]) - {"measured"} == set(manifest), "a section that the full manifest lacks"

        packages = sorted(folder.glob("*.mlpackage"))
        if not CHECKER.exists() or "CT_DIR" not in os.environ:
            print(f"# sample packages: skipped, no coremltools (CT_DIR) to check {len(packages)} with")
            return
        subprocess.run([sys.executable, CHECKER, "--strict", *packages], check=True)
        print(f"# {len(packages)} sample packages accepted by coremltools")


main()
