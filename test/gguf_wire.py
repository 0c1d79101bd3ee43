"""Writes GGUF files (ggml's docs/gguf.md, version 3) of fp32 tensors."""
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


def model(metadata, tensors):
    """metadata: {key: value}; tensors: {name: array}, rows last as NumPy has them."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        kind, data = value(item)
        head += string(key) + struct.pack("<I", kind) + data
    body = b""
    for name, array in tensors.items():
        head += string(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", 0, len(body))
        data = np.ascontiguousarray(array, "<f4").tobytes()
        body += data + bytes(-len(data) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + body
