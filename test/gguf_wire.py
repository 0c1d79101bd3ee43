"""Writes and reads GGUF files (ggml's docs/gguf.md, version 3) of fp32 tensors; writes Q8_0 ones, too."""
import struct

import numpy as np

ALIGNMENT = 32
UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item):
    """(type, bytes) of a Python value; lists have one type."""
    if isinstance(item, bool):
        return BOOL, struct.pack("<?", item)
    if isinstance(item, int):
        return UINT32, struct.pack("<I", item)
    if isinstance(item, float):
        return FLOAT32, struct.pack("<f", item)
    if isinstance(item, str):
        return STRING, string(item)
    parts = [value(each) for each in item]
    return ARRAY, struct.pack("<IQ", parts[0][0], len(parts)) + b"".join(data for _, data in parts)


def q8_0(array):
    """(bytes, values) of blocks: each of 32 numbers an integer, times what their largest magnitude needs (ggml's block_q8_0)."""
    blocks = np.asarray(array, "f4").reshape(-1, 32)
    scale = (np.abs(blocks).max(-1, keepdims=True) / 127).astype("<f2")
    integers = np.rint(blocks / np.where(scale == 0, 1, scale)).clip(-127, 127).astype("i1")
    data = np.concatenate([scale.view("u1"), integers.view("u1")], -1)
    return data.tobytes(), (scale.astype("f4") * integers).reshape(array.shape)


def model(metadata, tensors, encoded=()):
    """metadata: {key: value}; tensors: {name: array}, rows last as NumPy has them; `encoded`: names of those that are Q8_0."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        kind, data = value(item)
        head += string(key) + struct.pack("<I", kind) + data
    body = b""
    for name, array in tensors.items():
        head += string(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", 8 if name in encoded else 0, len(body))
        data = q8_0(array)[0] if name in encoded else np.ascontiguousarray(array, "<f4").tobytes()
        body += data + bytes(-len(data) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + body


def read(path):
    """(metadata, tensors) of a file, as model() takes them."""
    data, at = path.read_bytes(), 24
    plain = {0: "B", 1: "b", 2: "H", 3: "h", UINT32: "I", 5: "i", FLOAT32: "f", BOOL: "?", 10: "Q", 11: "q", 12: "d"}

    def take(code):
        nonlocal at
        at += struct.calcsize("<" + code)
        return struct.unpack_from("<" + code, data, at - struct.calcsize("<" + code))[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return data[at - size:at].decode()

    def item(kind):
        if kind == STRING:
            return text()
        if kind == ARRAY:
            kind, count = take("I"), take("Q")
            return [item(kind) for _ in range(count)]
        return take(plain[kind])

    _, tensors, entries = struct.unpack_from("<IQQ", data, 4)
    metadata, places = {}, []
    for _ in range(entries):
        key = text()
        metadata[key] = item(take("I"))
    for _ in range(tensors):
        name = text()
        dims = [take("Q") for _ in range(take("I"))][::-1]
        kind, offset = take("I"), take("Q")
        assert kind == 0, f"{name} is not fp32"
        places.append((name, dims, offset))
    begin = at + -at % ALIGNMENT
    return metadata, {name: np.frombuffer(data, "<f4", int(np.prod(dims)), begin + offset).reshape(dims)
                      for name, dims, offset in places}
