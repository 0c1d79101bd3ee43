"""Untrusted safetensors files and Hugging Face folders: damaged, contradictory or excessively large.

Each one goes through every command that reads it. The command ends with exit code 1 and an error with a location and a remedy, within
a second of CPU time, with bounded memory, and without any output. With an argument, only cases whose name contains it run, and
each is printed.
"""
import json
import os
import pathlib
import random
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import hostile_test  # noqa: E402
import safetensors_file as safetensors  # noqa: E402

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "quantization": {"group_size": 32, "bits": 4}}
MLX = {"m.weight": np.zeros((2, 4), "<u4"), "m.scales": np.ones((2, 1), "<f2"), "m.biases": np.ones((2, 1), "<f2")}
HEALTHY = safetensors.of({"a": np.arange(6, dtype="<f4").reshape(2, 3), "b": np.ones(5, "<f2"), **MLX}, {"format": "pt"})
HUGE = 15 << 20  # the size limit of the reader


def header(text, data=b"", **options):
    return safetensors.pack(text if isinstance(text, bytes) else text.encode(), data, **options)


def entry(dtype="U8", shape="[8]", offsets="[0, 8]"):
    return f'{{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}'


def tensor(data=8, **parts):
    return header('{"t": ' + entry(**parts) + "}", bytes(data))


def filled(begin, piece, end):
    """Returns header text of as many pieces as fit."""
    return begin + piece * ((HUGE - len(begin) - len(end)) // len(piece)) + end


def weights():
    """Returns {name: bytes of model.safetensors}, with a valid config.json beside it."""
    many = b",".join(b'"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i for i in range(250_000))
    texts = b",".join(b'"%d":""' % i for i in range(1_000_000))
    return {
        "no bytes": b"", "a length alone": struct.pack("<Q", 2), "a length of 2^64 - 1": header("{}", length=(1 << 64) - 1),
        "a length of 2^63": header("{}", length=1 << 63), "a length of 2^40": header("{}", length=1 << 40),
        "a length of 100 MB": header("{}", length=100_000_000), "a length of one more": header("{}", length=3),
        "no length": header("{}", length=0), "a length of one": header("{}", length=1), "text": b"safetensors\n" * 40,
        "zeros": bytes(4096), "noise": random.Random(0).randbytes(4096), "a pointer of LFS":
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n",
        # the data
        "overlapping": header('{"a": ' + entry() + ', "b": ' + entry(offsets="[4, 12]") + "}", bytes(12)),
        "the same place": header('{"a": ' + entry() + ', "b": ' + entry() + "}", bytes(8)),
        "a hole": header('{"a": ' + entry() + ', "b": ' + entry(offsets="[9, 17]") + "}", bytes(17)),
        "a hole at the beginning": tensor(9, offsets="[1, 9]"), "bytes behind": tensor(9), "a byte too few": tensor(7),
        "past the end": tensor(offsets="[8, 16]"), "far past the end": tensor(offsets="[1099511627776, 1099511627784]"),
        "the end before the begin": tensor(offsets="[8, 0]"), "offsets of 2^64": tensor(offsets=f"[{2**64 - 8}, {2**64}]"),
        "offsets of 2^63": tensor(offsets=f"[{2**63 - 8}, {2**63 - 1}]"), "one offset": tensor(offsets="[0]"),
        "three offsets": tensor(offsets="[0, 8, 8]"), "a negative offset": tensor(offsets="[-8, 0]"),
        "fewer elements": tensor(shape="[7]"), "more elements": tensor(shape="[9]"), "wider elements": tensor(dtype="F32"),
        "dims that overflow": tensor(shape="[4294967296, 4294967296]"), "a dim of 2^63": tensor(shape=f"[{2**63}]"),
        "dims that overflow to 8": tensor(shape=f"[{2**61}, 64]"), "a negative dim": tensor(shape="[-8]"),
        "a dim of 1e400": tensor(shape="[1e400]"), "65 dims": tensor(shape=str([1] * 64 + [8])),
        # the header
        "an array": header("[1]"), "a number": header("1"), "a tensor that is a number": header('{"a": 1}'),
        "cut JSON": header('{"a": {"dtype"'), "two documents": header("{}{}"), "a comment": header("{/**/}"),
        "a zero byte": header('{}\0{"a": 1}'), "bad UTF-8": header(b'{"\xff": 1}'), "a lone surrogate": header('{"\\ud800": 1}'),
        "a name twice": header('{"a": ' + entry() + ', "a": ' + entry(offsets="[8, 16]") + "}", bytes(16)),
        "a key twice": header('{"a": {"dtype": "U8", "dtype": "I8"}}'), "an unknown key": header('{"a": {"device": 0}}'),
        "metadata of numbers": header('{"__metadata__": {"a": 1}}'), "deep metadata": header('{"__metadata__": {"a": {}}}'),
        "deep lists": header(filled(b'{"a":', b"[", b"")), "deep objects": header(filled(b"", b'{"a":', b"")),
        "deep shapes": header(filled(b'{"a":{"shape":', b"[", b"")), "a long name": header(filled(b'{"', b"n", b'": 1}')),
        "a long text": header(filled(b'{"a":"', b"x", b'"}')), "a long text without end": header(filled(b'{"a":"', b"x", b"")),
        "a long escape": header(filled(b'{"a":"', b"\\u0041", b"")), "a long number": header(filled(b'{"a":', b"1", b"")),
        "a long shape": header(filled(b'{"a":{"shape":[1', b",1", b"]}}")), "a long type": header(
            filled(b'{"a":{"dtype":"', b"x", b'","shape":[],"data_offsets":[0,0]}}x')),
        "many tensors, and then none": header(b"{" + many + b', "x": 1}'), "much metadata": header(
            b'{"__metadata__":{' + texts + b"}}"),
        **{f"cut after {size} bytes": HEALTHY[:size] for size in range(1, len(HEALTHY), 29)},
    }


def configs():
    """Returns {name: text of config.json}, with valid weights beside it."""
    return {
        "no JSON": "{", "no text": "", "a list": "[]", "not UTF-8": b"\xff\xfe{}", "cut": '{"a": "b',
        "deep": "[" * 20_000_000, "deep objects": '{"a":' * 4_000_000, "a name twice": '{"a": 1, "a": 2}',
        "wide": '{"a": [' + ",".join(["[]"] * 2_000_000) + "]}", "30 MB": '{"a": "' + "x" * 30_000_000 + '"}',
        "a long text without end": '{"a": "' + "x" * 20_000_000, "model_type a number": '{"model_type": 1}',
        "architectures a text": '{"architectures": "A"}', "many names": "{" + ",".join(f'"{i}":0' for i in range(10**6)) + "}",
    }


def indices():
    """Returns {name: text of model.safetensors.index.json}; a.safetensors has a tensor a."""
    maps = {"a folder above": {"a": "../a.safetensors"}, "the root": {"a": "/etc/passwd"}, "no file": {"a": "b.safetensors"},
            "a number": {"a": 1}, "a folder": {"a": ".."}, "no name": {"a": ""}, "another tensor": {"b": "a.safetensors"},
            "a pipe": {"a": "pipe"}, "a device": {"a": "zero"}, "a loop": {"a": "loop"}, "a folder of that name": {"a": "sub"}}
    return {"no map": "{}", "a list": '{"weight_map": []}', "deep": '{"weight_map":' * 100_000,
            "a tensor twice": '{"weight_map": {"a": "a.safetensors", "a": "a.safetensors"}}',
            **{name: json.dumps({"weight_map": places}) for name, places in maps.items()}}


def commands(folder):
    found = []

    def add(kind, name, config=CONFIG, **files):
        path = folder / f"{len(found)}"
        path.mkdir()
        for file, content in {"config.json": config, **files}.items():
            data = json.dumps(content) if isinstance(content, dict) else content
            (path / file).write_bytes(data if isinstance(data, bytes) else data.encode())
        found.append((f"{kind}: {name}", path))
        return path

    for name, data in weights().items():
        add("weights", name, **{"model.safetensors": data})
    for name, text in configs().items():
        add("config", name, config=text, **{"model.safetensors": HEALTHY})
    for name, text in indices().items():
        path = add("index", name, **{"model.safetensors.index.json": text,
                                     "a.safetensors": safetensors.of({"a": np.ones(2, "<f4")})})
        os.mkfifo(path / "pipe")
        (path / "zero").symlink_to("/dev/zero")
        (path / "loop").symlink_to("loop")
        (path / "sub").mkdir()
    add("folder", "no weights")
    add("folder", "pickled weights", **{"pytorch_model.bin": b"PK"})
    add("folder", "two files", **{"a.safetensors": HEALTHY, "b.safetensors": HEALTHY})
    output = 0
    for name, path in found:
        for command in ("inspect", "run", "compile"):
            output += 1
            more = ["-o", folder / f"out{output}.mlpackage"] if command == "compile" else []
            yield f"{name}: {command}", True, [command, path, *more, "--json"]
    for name, path in found:  # the same bytes as a separate file, where applicable
        if name.startswith("weights") and (path / "model.safetensors").read_bytes()[8:9] == b"{":
            yield f"{name}: a file", True, ["inspect", path / "model.safetensors", "--json"]


if __name__ == "__main__":
    hostile_test.CPU_SECONDS = 10 if driver.SANITIZED else 1
    sys.exit(hostile_test.main("hostile safetensors files", commands, helpful=True))
