#!/usr/bin/env python3
"""Tests the cache of compiled models: `mlc precompile --cache` and `mlc cache`."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from coreml_test import changed, package
from driver import expect, run, run_tests
from command_line_test import Folder


def precompile(folder, package, cached, *options, name="out.mlmodelc"):
    result = expect(run("precompile", package, "-o", folder / name, "--cache", folder / "cache", "--json", *options), 0)
    assert result.answer["cached"] == cached, result.answer
    return folder / name


def cache(folder, *words, code=0, environment=None):
    return expect(run("cache", *words, "--cache", folder / "cache", "--json", environment=environment), code).answer


def contents(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_found_again_after_touching_and_copying(folder):
    a = package(folder)
    first = contents(precompile(folder, a, False))
    assert first == contents(precompile(folder, a, True))
    expect(run("precompile", a, "-o", folder / "plain.mlmodelc"), 0)
    assert first == contents(folder / "plain.mlmodelc")
    for file in a.rglob("*"):
        os.utime(file)
    precompile(folder, a, True)
    (folder / "copy").mkdir()
    shutil.copytree(a, folder / "copy" / a.name)
    precompile(folder, folder / "copy" / a.name, True)
    # The name is written in the bundle.
    shutil.copytree(a, folder / "copy" / "other.mlpackage")
    precompile(folder, folder / "copy" / "other.mlpackage", False)
    text = expect(run("precompile", a, "-o", folder / "out.mlmodelc", "--cache", folder / "cache"), 0).stdout
    assert "from the cache" in text, text


def test_options_and_other_bytes_make_it_anew(folder):
    a = package(folder)
    precompile(folder, a, False)
    precompile(folder, a, False, "--mil-version", "3500.14.2")
    precompile(folder, a, True, "--mil-version", "3500.14.2")
    # Replaces a weight in place, with the same size and the same modification time.
    weights = next(a.rglob("weight.bin"))
    data, time = bytearray(weights.read_bytes()), weights.stat()
    data[-1] ^= 1
    with open(weights, "r+b") as file:
        file.write(data)
    os.utime(weights, ns=(time.st_atime_ns, time.st_mtime_ns))
    precompile(folder, a, False)
    assert next((folder / "out.mlmodelc").rglob("weight.bin")).read_bytes() == data


def test_what_comes_out_may_be_written_to(folder):
    a = package(folder)
    first = contents(precompile(folder, a, False))
    for file in (folder / "out.mlmodelc").rglob("*"):
        if file.is_file():
            file.write_bytes(b"mine")
    assert first == contents(precompile(folder, a, True, name="again.mlmodelc"))


def test_a_damaged_blob_is_never_given_out(folder):
    a = package(folder)
    first = contents(precompile(folder, a, False))
    for blob in (folder / "cache" / "cas").iterdir():
        blob.chmod(0o644)
        data = bytearray(blob.read_bytes())
        data[len(data) // 2] ^= 1
        with open(blob, "r+b") as file:
            file.write(data)
    assert first == contents(precompile(folder, a, False))
    assert cache(folder, "stats")["damaged"] == 1


def test_output_that_is_not_mlc_s_stays(folder):
    a = package(folder)
    precompile(folder, a, False)
    (folder / "mine.mlmodelc").mkdir()
    (folder / "mine.mlmodelc" / "text").write_text("mine")
    command = ["precompile", a, "-o", folder / "mine.mlmodelc", "--cache", folder / "cache"]
    expect(run(*command), 1, "file-exists")
    expect(run(*command, "--force"), 0)
    assert not (folder / "mine.mlmodelc" / "text").exists()


def test_ls_stats_gc_clear(folder):
    assert cache(folder, "ls")["entries"] == []
    expect(run("cache", "ls", "--cache", folder / "cache"), 0, "no cache in ")
    for action in ("stats", "gc", "clear"):
        cache(folder, action)
    assert not (folder / "cache").exists()
    for name, weight in (("a", changed(0, 0, 0)), ("b", changed(0, 0, 1)), ("c", changed(0, 0, 2))):
        precompile(folder, package(folder, name, weight=weight), False)
    precompile(folder, folder / "a.mlpackage", True)
    entries = cache(folder, "ls")["entries"]
    assert [entry["model"] for entry in entries] == ["a.mlpackage", "c.mlpackage", "b.mlpackage"], entries
    assert all(entry["bytes"] > 0 and not entry["in_use"] and entry["maker"] == "mlc precompile" for entry in entries)
    assert {"name": "compiler version", "value": ""} in entries[0]["parts"], entries[0]["parts"]
    stats = cache(folder, "stats")
    assert (stats["hits"], stats["misses"], stats["entries"], stats["hit_rate"]) == (1, 3, 3, 0.25), stats
    expect(run("cache", "ls", "--cache", folder / "cache"), 0, "a.mlpackage", "last used")
    expect(run("cache", "stats", "--cache", folder / "cache"), 0, "hits       1 of 4 (25.0 %)")
    removed = cache(folder, "gc", "--limit", str(stats["bytes"] - 1))["removed"]
    assert [entry["model"] for entry in removed] == ["b.mlpackage"] and removed[0]["reason"] == "limit", removed
    assert '"reason":"limit"' in (folder / "cache" / "log").read_text()
    assert cache(folder, "gc", "--verify")["removed"] == []
    assert len(cache(folder, "gc", environment={"MLC_CACHE_LIMIT": "1"})["removed"]) == 2
    precompile(folder, folder / "a.mlpackage", False)
    assert [entry["reason"] for entry in cache(folder, "clear")["removed"]] == ["cleared"]
    assert cache(folder, "stats")["bytes"] == 0


def test_things_of_others_stay(folder):
    theirs = [f"{name}/{'0' * 64}" for name in ("cas", "tree", "ac")] + ["work/thesis/text", "index/1-1", "log", "stats"]
    for name in theirs:
        (folder / "cache" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cache" / name).write_text("mine")
    before = contents(folder / "cache")
    for action in ("ls", "stats", "gc", "clear"):
        expect(run("cache", action, "--cache", folder / "cache"), 1, "file-exists", "empty")
    a = package(folder)
    expect(run("precompile", a, "-o", folder / "out.mlmodelc", "--cache", folder / "cache"), 1, "file-exists")
    expect(run("doctor", environment={"MLC_CACHE_DIR": str(folder / "cache")}), 0)
    assert contents(folder / "cache") == before


def test_a_cache_of_another_version_is_left_alone(folder):
    (folder / "cache").mkdir()
    (folder / "cache" / "mlc-cache").write_text("compiled models of mlc, version 99\n")
    expect(run("cache", "clear", "--cache", folder / "cache"), 1, "file-exists", "version")


def test_never_within_a_package_nor_a_bundle_within_the_cache(folder):
    a = package(folder)
    before = contents(a)
    expect(run("precompile", a, "-o", folder / "out.mlmodelc", "--cache", a), 1, "file-exists")
    expect(run("precompile", a, "-o", folder / "out.mlmodelc", "--cache", a / "Data" / "cache"), 1, "overwrites-input")
    expect(run("precompile", a, "-o", folder / "out.mlmodelc", "--cache", a / "Data" / "x" / "y"), 1, "overwrites-input")
    assert contents(a) == before and not (a / "Data" / "x").exists()
    precompile(folder, a, False)
    for output in (folder / "cache" / "x.mlmodelc", folder / "cache" / "cas" / "x.mlmodelc"):
        expect(run("precompile", a, "-o", output, "--cache", folder / "cache", "--force"), 1, "file-exists", "cache")
        expect(run("precompile", a, "-o", output, "--force"), 1, "file-exists", "cache")
        assert not output.exists()


def test_a_bare_model_with_weights_beside_it_is_not_cached(folder):
    a = package(folder)
    data = folder / "bare"
    shutil.copytree(a / "Data" / "com.apple.CoreML", data)
    precompile(folder, data / "model.mlmodel", False)
    weights = next(data.rglob("weight.bin"))
    changed_bytes = bytearray(weights.read_bytes())
    changed_bytes[-1] ^= 1
    weights.write_bytes(changed_bytes)
    precompile(folder, data / "model.mlmodel", False)
    assert next((folder / "out.mlmodelc").rglob("weight.bin")).read_bytes() == changed_bytes


def test_default_folder(folder):
    home = {"MLC_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": str(folder / "home")}
    mac = os.uname().sysname == "Darwin"
    answer = expect(run("cache", "stats", "--json", environment=home), 0).answer
    assert answer["folder"] == str(folder / "home" / ("Library/Caches/mlc" if mac else ".cache/mlc")), answer
    if not mac:
        answer = expect(run("cache", "stats", "--json", environment={**home, "XDG_CACHE_HOME": str(folder / "xdg")}), 0).answer
        assert answer["folder"] == str(folder / "xdg" / "mlc"), answer
    answer = expect(run("cache", "stats", "--json", environment={**home, "MLC_CACHE_DIR": str(folder / "own")}), 0).answer
    assert answer["folder"] == str(folder / "own"), answer


def test_wrong_words(folder):
    expect(run("cache", "wash"), 2, "ls, gc, clear or stats")
    expect(run("cache", "ls", "--limit", "5GB"), 2, "gc")
    expect(run("cache", "gc", "--limit", "much", "--cache", folder / "cache"), 2, "--limit", "500MB")
    expect(run("cache", "stats", "--cache", folder / "cache", environment={"MLC_CACHE_LIMIT": "-1"}), 2, "MLC_CACHE_LIMIT")
    (folder / "file").write_text("")
    expect(run("cache", "stats", "--cache", folder / "file"), 1, "file-io")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc cache", Folder))
