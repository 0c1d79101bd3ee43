"""Writes and reads GGUF files (ggml's docs/gguf.md, version 3) of fp32 tensors, and writes some in blocks."""
import struct

import numpy as np

ALIGNMENT = 32
UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item):
    """(type, bytes) of a Python value, or of one of NumPy's that says its width; lists have one type."""
    for kind, width in ((0, np.uint8), (5, np.int32)):
        if isinstance(item, width):
            return kind, item.tobytes()
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
    """(blocks, what they say): of 32 elements a scale in fp16 and integers (ggml's src/ggml-common.h)."""
    rows = np.asarray(array, "f4").reshape(-1, 32)
    scale = (np.abs(rows).max(1, keepdims=True) / 127).astype("<f2")
    codes = np.clip(np.rint(rows / np.maximum(scale.astype("f4"), 1e-9)), -127, 127).astype("i1")
    blocks = np.concatenate([scale.view("u1"), codes.view("u1")], 1)
    return blocks.tobytes(), (codes * scale.astype("f4")).reshape(array.shape)


def model(metadata, tensors, q8=()):
    """metadata: {key: value}; tensors: {name: array}, rows last as NumPy has them. Those in `q8` become blocks of Q8_0."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        kind, data = value(item)
        head += string(key) + struct.pack("<I", kind) + data
    body = b""
    for name, array in tensors.items():
        head += string(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", 8 if name in q8 else 0, len(body))
        data = q8_0(array)[0] if name in q8 else np.ascontiguousarray(array, "<f4").tobytes()
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
