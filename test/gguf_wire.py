"""Writes GGUF files (ggml's docs/gguf.md, version 3) and reads files with fp32 and fp16 tensors."""
import struct

import numpy as np

ALIGNMENT = 32
UINT8, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 0, 4, 5, 6, 7, 8, 9


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item):
    """Returns (type, bytes) of a Python value, or of a NumPy value of explicit width; the elements of a list have one type.
    An empty list is one of strings."""
    for kind, width in ((UINT8, np.uint8), (INT32, np.int32)):
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
    return ARRAY, struct.pack("<IQ", parts[0][0] if parts else STRING, len(parts)) + b"".join(data for _, data in parts)


def in_blocks(array):
    return np.asarray(array, "<f4").reshape(-1, 32)


def inverse(scale):
    return np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)


def q8_0(array):
    """Returns (blocks, decoded values) of Q8_0: 32 elements with an fp16 scale, rounded like ggml's quantize_row_q8_0_ref."""
    rows = in_blocks(array)
    scale = np.abs(rows).max(1, keepdims=True) / np.float32(127)
    codes = (rows * inverse(scale)).astype("f8")
    codes = np.trunc(codes + np.copysign(0.5, codes)).astype("i1")
    half = scale.astype("<f2")
    return np.concatenate([half.view("u1"), codes.view("u1")], 1).tobytes(), (codes * half.astype("f4")).reshape(array.shape)


def q4_0(array):
    """Returns (blocks, decoded values) of Q4_0: codes 0 to 15, with code 0 for the element of largest magnitude, like
    quantize_row_q4_0_ref."""
    rows = in_blocks(array)
    scale = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], 1) / np.float32(-8)
    codes = np.minimum(rows * inverse(scale) + np.float32(8.5), 15).astype("u1")
    half = scale.astype("<f2")
    blocks = np.concatenate([half.view("u1"), codes[:, :16] | codes[:, 16:] << 4], 1)
    return blocks.tobytes(), ((codes.astype("f4") - 8) * half.astype("f4")).reshape(array.shape)


def plain(kind):
    return lambda array: (np.ascontiguousarray(array, kind).tobytes(), np.asarray(array, kind))


# Type id in files, and encoder.
TYPES = {"F32": (0, plain("<f4")), "F16": (1, plain("<f2")), "Q4_0": (2, q4_0), "Q8_0": (8, q8_0)}


def model(metadata, tensors, types={}):
    """Returns a file. metadata: {key: value}; tensors: {name: array}, in NumPy's dimension order; types: {name: one of TYPES},
    F32 by default."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        kind, data = value(item)
        head += string(key) + struct.pack("<I", kind) + data
    body = b""
    for name, array in tensors.items():
        number, encode = TYPES[types.get(name, "F32")]
        head += string(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", number, len(body))
        data, _ = encode(array)
        body += data + bytes(-len(data) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + body


def read(path):
    """Returns (metadata, tensors) of a file, in the form that model() takes."""
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
            items = [item(kind) for _ in range(count)]
            return np.array(items, "i4") if kind == INT32 else items
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
        assert kind in (0, 1), f"{name} is neither fp32 nor fp16"
        places.append((name, dims, "<f2" if kind else "<f4", offset))
    begin = at + -at % ALIGNMENT
    return metadata, {name: np.frombuffer(data, kind, int(np.prod(dims)), begin + offset).reshape(dims)
                      for name, dims, kind, offset in places}
