#!/usr/bin/env python3
"""Tests the caches of `mlc build`: a folder, and a server that may do anything wrong."""
import base64
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from action_results import Refused, judge
from build_fleet import Fleet
from cache_server import CacheServer
from driver import expect, run, run_tests


def build(fleet, cache, *options, code=0, environment=None):
    result = expect(run("build", fleet.models, "-o", fleet.out, "--json", "--cache", cache, *options, folder=fleet.folder, timeout=300,
                        environment=environment), code)
    answer = result.answer
    return {v["name"]: v for recipe in answer["recipes"] for v in recipe["variants"]}, answer.get("warnings", [])


def start_again(fleet):
    """An empty output folder, as on another machine."""
    shutil.rmtree(fleet.out)


def all_from_cache(variants):
    return all(v["status"] == "passed" and not v.get("made") and v["cached"] for v in variants.values())


def none_from_cache(variants):
    return all(v["status"] == "passed" and v["made"] and not v.get("cached") for v in variants.values())


def test_a_folder(folder):
    fleet, cache = Fleet(folder), folder / "cache"
    variants, warnings = build(fleet, cache)
    assert none_from_cache(variants) and not warnings
    expected = fleet.bytes()
    start_again(fleet)
    variants, warnings = build(fleet, cache, "-j", "2")
    assert all_from_cache(variants) and not warnings, variants
    assert fleet.bytes() == expected
    assert all(os.access(f, os.W_OK) for f in fleet.out.rglob("*"))
    # The files are copies: writing to one does not damage the cache.
    file = next((fleet.out / "n-only.mlpackage").rglob("weight.bin"))
    file.write_bytes(b"")
    assert build(fleet, cache)[0]["n-only"]["cached"] == ["package"]
    assert fleet.bytes() == expected
    # `mlc cache` manages this folder, too.
    listed = expect(run("cache", "ls", "--cache", cache, "--json"), 0).answer["entries"]
    assert len(listed) == 8, listed
    expect(run("cache", "gc", "--limit", "0", "--cache", cache), 0)
    start_again(fleet)
    assert none_from_cache(build(fleet, cache)[0])


def test_a_folder_is_not_trusted(folder):
    fleet, cache = Fleet(folder), folder / "cache"
    build(fleet, cache)
    expected = fleet.bytes()
    for damage in ("cas", "ac", "tree"):
        for file in (cache / damage).rglob("*"):
            if file.is_file():
                file.chmod(0o644)
                data = bytearray(file.read_bytes())
                data[len(data) // 2] ^= 1
                file.write_bytes(data)
        for options in (["--read-only-cache"], []):
            start_again(fleet)
            variants, _ = build(fleet, cache, *options)
            assert fleet.bytes() == expected and all(v["status"] == "passed" for v in variants.values()), (damage, options)
    start_again(fleet)
    assert all_from_cache(build(fleet, cache)[0])


def test_a_read_only_folder(folder):
    fleet, cache = Fleet(folder), folder / "cache"
    variants, _ = build(fleet, cache, "--read-only-cache")
    assert none_from_cache(variants) and not cache.exists()
    start_again(fleet)
    build(fleet, cache)
    for stays in ("lock", "work", "index", "tree", "mlc-cache", "stats"):
        shutil.rmtree(cache / stays, ignore_errors=True) if (cache / stays).is_dir() else (cache / stays).unlink(missing_ok=True)
    before = sorted(f for f in cache.rglob("*"))
    start_again(fleet)
    variants, warnings = build(fleet, cache, "--read-only-cache")
    assert all_from_cache(variants) and not warnings
    assert sorted(f for f in cache.rglob("*")) == before


def test_a_folder_of_something_else_is_refused(folder):
    fleet = Fleet(folder)
    result = run("build", fleet.models, "-o", fleet.out, "--cache", fleet.models, folder=folder)
    expect(result, 1, "error[file-exists]", "do not belong to a cache")
    for place in ("ftp://host/x", "http://", "http://user:secret@host/x", "https://host/x?key=1"):
        result = run("build", fleet.models, "-o", fleet.out, "--cache", place, folder=folder)
        expect(result, 2, "error[usage]")
        assert "secret" not in result.stderr


def test_failures_are_not_cached(folder):
    fleet, cache = Fleet(folder), folder / "cache"
    fleet.recipes["m"]["variants"][1]["limits"] = {"operations": 0}
    fleet.recipes["n"]["variants"][0]["options"] = ["--dim", "nosuch=3"]
    fleet.write()
    for _ in range(2):
        variants, _ = build(fleet, cache, code=3)
        assert variants["m-fp16"]["status"] == "failed" and "checks" not in variants["m-fp16"].get("cached", []), variants["m-fp16"]
        assert variants["n-only"]["status"] == "not built"
        assert {f.split("/")[0] for f in fleet.bytes()} == {"m-fp32.mlpackage", "m-fp32.manifest.json", "m-fp32.mlmodelc"}
    entries = expect(run("cache", "ls", "--cache", cache, "--json"), 0).answer["entries"]
    makers = sorted(part["value"] for entry in entries for part in entry["parts"] if part["name"] == "maker")
    assert makers == [f"mlc build: {action}" for action in ("bundle", "checks", "package", "package")], makers


def test_a_server(folder):
    fleet = Fleet(folder)
    with CacheServer() as server:
        variants, warnings = build(fleet, server.url, "-j", "2")
        assert none_from_cache(variants) and not warnings, warnings
        expected = fleet.bytes()
        assert {p.split("/")[3] for p in server.stored} == {"ac", "cas"} and all(p.startswith("/pre/fix/") for p in server.stored)
        start_again(fleet)
        server.requests.clear()
        variants, warnings = build(fleet, server.url + "/", "-j", "2")
        assert all_from_cache(variants) and not warnings
        assert fleet.bytes() == expected and server.count("PUT", "/") == 0
        # A second build asks for nothing.
        server.requests.clear()
        assert {v["status"] for v in build(fleet, server.url)[0].values()} == {"up to date"} and not server.requests


def test_entries_are_action_results(folder):
    """bazel-remote validates them and their files, and a server that does the same serves them."""
    fleet = Fleet(folder)
    with CacheServer() as server:
        server.validate = True
        build(fleet, server.url, "-j", "2")
        expected = fleet.bytes()
        blobs = {path.split("/")[-1]: blob for path, blob in server.stored.items() if "/cas/" in path}
        records = {path.split("/")[-1]: entry for path, entry in server.stored.items() if "/ac/" in path}
        assert len(records) == 8 and not server.refused, (records.keys(), server.refused)
        for key, entry in records.items():
            result = judge(key, entry, blobs)
            assert set(result) <= {"output_files", "exit_code", "stdout_raw"} and "exit_code" not in result, result.keys()
            assert all(".." not in file["path"][0].split("/") for file in result["output_files"]), result
            assert '\\"parts\\"' in result["stdout_raw"][0], result["stdout_raw"]
        start_again(fleet)
        assert all_from_cache(build(fleet, server.url)[0]) and fleet.bytes() == expected
        # The rules refuse what breaks one of them.
        key, entry = next((key, entry) for key, entry in records.items() if b"weight.bin" in entry)
        for broken in (entry[:-1], b"<html>", entry.replace(b"\x0a\x40", b"\x0a\x3f", 1), entry + b"\x7a\x01x", b"\x12\x00",
                       entry.replace(b"package/", b"/ackage/")):
            try:
                raise AssertionError(judge(key, broken, blobs))
            except Refused:
                pass
        # An entry whose blob was removed is as good as absent, to them and to mlc: the action runs again.
        lost = judge(key, entry, blobs)["output_files"][0]["digest"][0]["hash"][0]
        del server.stored[f"/pre/fix/cas/{lost}"]
        start_again(fleet)
        variants, warnings = build(fleet, server.url)
        assert not all_from_cache(variants) and not warnings and fleet.bytes() == expected, (variants, warnings)
        assert f"/pre/fix/cas/{lost}" in server.stored


def test_a_server_that_does_anything_wrong(folder):
    fleet = Fleet(folder)
    with CacheServer() as server:
        build(fleet, server.url)
        expected = fleet.bytes()
        stored = dict(server.stored)
        for fault, part in (("truncate", "/cas/"), ("truncate", "/ac/"), ("stall", "/cas/"), ("stall", "/ac/"), ("500", "/"),
                            ("wrong", "/cas/"), ("wrong", "/ac/"), ("other", "/cas/"), ("other", "/ac/"), ("garbage", "/ac/"),
                            ("garbage", "/cas/")):
            server.fault, server.applies_to, server.stored = fault, part, dict(stored)
            start_again(fleet)
            variants, warnings = build(fleet, server.url, environment={"MLC_CACHE_TIMEOUT": "1"})
            text = f"{fault} {part}: {warnings} {variants}"
            assert {v["status"] for v in variants.values()} == {"passed"} and fleet.bytes() == expected, text
            assert len(warnings) == 1 and warnings[0]["id"] == "remote-cache" and server.url in json.dumps(warnings[0]), text


def test_a_server_that_loses_or_refuses(folder):
    fleet = Fleet(folder)
    with CacheServer() as server:
        build(fleet, server.url)
        expected = fleet.bytes()
        # Files that the server removed are made again, without a warning.
        for path in [p for p in server.stored if "/cas/" in p]:
            del server.stored[path]
        start_again(fleet)
        variants, warnings = build(fleet, server.url)
        assert none_from_cache(variants) and not warnings and fleet.bytes() == expected
        start_again(fleet)
        assert all_from_cache(build(fleet, server.url)[0])
        # A server that accepts nothing.
        server.fault, server.stored = "refuse", {}
        start_again(fleet)
        variants, warnings = build(fleet, server.url)
        assert none_from_cache(variants) and len(warnings) == 1 and "read-only-cache" in json.dumps(warnings), warnings
        start_again(fleet)
        server.requests.clear()
        assert not build(fleet, server.url, "--read-only-cache")[1] and server.count("PUT", "/") == 0
        url = server.url
    # A server that is not there.
    start_again(fleet)
    variants, warnings = build(fleet, url)
    assert none_from_cache(variants) and len(warnings) == 1, warnings
    assert fleet.bytes() == expected


def test_without_libcurl(folder):
    """libcurl is loaded only for a server. A file that is no library stands for one that is not installed."""
    if sys.platform != "linux":
        return
    fleet = Fleet(folder)
    (folder / "libraries").mkdir()
    (folder / "libraries/libcurl.so.4").write_bytes(b"")
    environment = {"LD_LIBRARY_PATH": str(folder / "libraries")}
    expect(run("build", fleet.models, "-o", fleet.out, "--cache", "http://127.0.0.1:1/x", environment=environment), 1,
           "error[remote-cache]", "libcurl4", "a cache in a folder")
    assert not fleet.out.exists()
    assert none_from_cache(build(fleet, folder / "cache", environment=environment)[0])


def test_credentials(folder):
    fleet = Fleet(folder)
    with CacheServer() as server:
        server.credentials = "Bearer very-secret"
        text = run("build", fleet.models, "-o", fleet.out, "--cache", server.url, folder=folder,
                   environment={"MLC_CACHE_HEADER": "Authorization: Bearer wrong-secret"})
        expect(text, 0, "warning[remote-cache]", "401", "MLC_CACHE_HEADER")
        assert "secret" not in text.stdout + text.stderr
        start_again(fleet)
        variants, warnings = build(fleet, server.url, environment={"MLC_CACHE_HEADER": "Authorization: Bearer very-secret"})
        assert not warnings and server.stored, warnings
        assert "secret" not in json.dumps(variants)
        # From ~/.netrc, as for curl.
        server.credentials = "Basic " + base64.b64encode(b"me:pass-word").decode()
        (folder / ".netrc").write_text("machine 127.0.0.1 login me password pass-word\n")
        start_again(fleet)
        variants, warnings = build(fleet, server.url, environment={"HOME": str(folder)})
        assert all_from_cache(variants) and not warnings, warnings


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "build_cache"))
