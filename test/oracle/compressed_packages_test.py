#!/usr/bin/env python3
"""Compressed packages, judged by programs that are not ours (checkers.py, decode_weights.py): coremltools' definitions accept each,
and decode each weight to the bits that mlc decodes it to."""
import json
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import checkers
import compressible_models
from driver import SKIPPED, expect, parallel, run, run_tests

DECODE = pathlib.Path(__file__).with_name("decode_weights.py")
IOS16 = ["int8", "int8:block=tensor", "int8:asym", "pal1", "pal2", "pal4", "pal6", "pal8", "sparse:0.75", "sparse:2:4"]
IOS18 = IOS16 + ["int8:block=16", "int4", "int4:block=row,asym", "pal3", "pal4:group=8", "pal4:group=8,axis=in", "pal3:vec=2",
                 "pal2:group=8,vec=4", "pal4:scale=row", "pal4:lut=int8", "pal4:group=8,lut=int8", "sparse:0.5+int8",
                 "sparse:2:4+int4", "sparse:0.6+pal4", "sparse:0.5+pal3:group=8"]


def test_each_scheme_and_layout(folder):
    plain = {(opset, name): compressible_models.package(folder, name, run, expect, opset)
             for opset in ("ios16", "ios18") for name in compressible_models.LAYOUTS
             if opset == "ios18" or name not in ("lstm", "gru")}

    def compressed(job):
        (opset, name), scheme = job
        stem = folder / f"{opset}_{name}_{''.join(c if c.isalnum() else '_' for c in scheme)}"
        package, back = stem.with_suffix(".mlpackage"), pathlib.Path(f"{stem}_plain.mlpackage")
        answer = expect(run("opt", plain[opset, name], "--compress", scheme, "-o", package, "--json"), 0).answer["compression"]
        for entry in answer["tensors"]:
            assert entry["scheme"] != "none" or "would take" in entry["reason"] or "2048" in entry["reason"] \
                or "not a weight" in entry["reason"], entry
        if answer["compressed"] == 0:
            return None
        assert not [note for note in answer if "raised" in note]
        expect(run("opt", package, "--decompress", "-o", back), 0)
        return package, back

    jobs = [(key, scheme) for key in plain for scheme in (IOS16 if key[0] == "ios16" else IOS18)]
    pairs = [pair for pair in parallel(compressed, jobs) if pair]
    assert len(pairs) > 0.9 * len(jobs), (len(pairs), len(jobs))
    refused = checkers.check([package for package, _ in pairs])
    assert not refused, "\n".join(f"{pathlib.Path(package).name}: {why[:3]}" for package, why in list(refused.items())[:10])
    paths = [path for pair in pairs for path in pair]
    (folder / "jobs.json").write_text(json.dumps([{"package": str(path), "outputs": f"{path}.npz"} for path in paths]))
    result = checkers.python(DECODE, folder / "jobs.json")
    assert result.returncode == 0, result.stderr[-2000:]
    weights = 0
    for (package, back), answers in zip(pairs, zip(*[iter(json.loads(result.stdout.splitlines()[-1]))] * 2)):
        assert all("error" not in answer for answer in answers), (package.name, answers)
        theirs, ours = np.load(f"{package}.npz"), np.load(f"{back}.npz")
        for name in ours.files:
            # They compute some forms in fp32 and round later: equal up to the last bit of fp16.
            assert np.array_equal(theirs[name].astype("f2"), ours[name].astype("f2")), (package.name, name)
            weights += 1
    print(f"# compressed packages: {len(pairs)} accepted, {weights} weights decoded to the same bits")


if __name__ == "__main__":
    if checkers.missing():
        print(f"# compressed packages: skipped, {checkers.missing()}")
        sys.exit(SKIPPED)
    sys.exit(run_tests(globals(), "compressed packages"))
