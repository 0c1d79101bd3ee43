"""Writes and reads ONNX files at the level of the protobuf wire format: models with any contents, including malformed ones,
tensors, and facts about a model. Field numbers are those of onnx.proto3.
"""
import dataclasses
import struct

FLOAT, UINT8, INT32, INT64, STRING, BOOL, FLOAT16 = 1, 2, 6, 7, 8, 9, 10
# TensorProto.DataType: the NumPy type, and the field that holds elements not stored in raw_data.
DTYPES = {1: ("<f4", 4), 2: ("u1", 5), 3: ("i1", 5), 4: ("<u2", 5), 5: ("<i2", 5), 6: ("<i4", 5), 7: ("<i8", 7),
          9: ("?", 5), 10: ("<f2", 5), 11: ("<f8", 10), 12: ("<u4", 11), 13: ("<u8", 11), 14: ("<c8", 4),
          15: ("<c16", 10)}
BFLOAT16 = 16


# ---- writing: every function returns the bytes of one message; field() embeds it in another

def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """Encodes one field: an int as a varint, a float as fixed32, str and bytes length-delimited, a list as a repeated field."""
    if isinstance(value, (list, tuple)):
        return b"".join(field(number, v) for v in value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, dims, raw=None, external=None):
    """A TensorProto. `raw`: little-endian elements; `external`: {"location": ..., "offset": ..., "length": ...}."""
    out = field(1, list(dims)) + field(2, dtype) + field(8, name)
    if raw is not None:
        out += field(9, raw)
    for key, value in (external or {}).items():
        out += field(13, field(1, key) + field(2, str(value)))
    return out + (field(14, 1) if external else b"")


def attribute(name, value):
    """An AttributeProto: int, float, str and lists of these directly; bytes are a tensor; a tuple (GraphProto bytes,) is a graph."""
    out = field(1, name)
    if isinstance(value, tuple):
        return out + field(6, value[0]) + field(20, 5)
    if isinstance(value, list):
        number, kind = {float: (7, 6), str: (9, 8)}.get(type(value[0]) if value else int, (8, 7))
        return out + field(number, value) + field(20, kind)
    if isinstance(value, bytes):
        return out + field(5, value) + field(20, 4)
    if isinstance(value, float):
        return out + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return out + field(3, value) + field(20, 2)
    return out + field(4, value) + field(20, 3)


def node(op, inputs, outputs, domain="", **attributes):
    return (field(1, inputs) + field(2, outputs) + field(4, op)
            + field(5, [attribute(k, v) for k, v in attributes.items()]) + (field(7, domain) if domain else b""))


def value_info(name, dtype, dims):
    """A ValueInfoProto. Dimensions: int, or str for a symbol; None: unknown rank."""
    shape = b"" if dims is None else field(2, b"".join(
        field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims))
    return field(1, name) + field(2, field(1, field(1, dtype) + shape))


def graph(nodes, inputs, outputs, initializers=(), name="main"):
    return (field(1, list(nodes)) + field(2, name) + field(5, list(initializers)) + field(11, list(inputs))
            + field(12, list(outputs)))


def model(graph_bytes, opset=13, ir_version=8, functions=()):
    """A ModelProto; with None as the graph, it has no graph field."""
    return (field(1, ir_version) + field(8, field(2, opset)) + (b"" if graph_bytes is None else field(7, graph_bytes))
            + field(25, list(functions)))


def function(name, domain, inputs, outputs, nodes, opset=13):
    return (field(1, name) + field(4, inputs) + field(5, outputs) + field(7, nodes)
            + field(9, [field(2, opset), field(1, domain) + field(2, 1)]) + field(10, domain))


# ---- reading

def fields(data):
    """Yields (number, value): int for a varint, memoryview for other wire types."""
    return ((number, value) for number, _, value in typed_fields(data))


def typed_fields(data):
    """Like fields(), with the wire type: yields (number, wire type, value)."""
    data = memoryview(data)
    at = 0

    def read_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = read_varint()
        number, wire = key >> 3, key & 7
        if wire == 0:
            yield number, wire, read_varint()
            continue
        size = {1: 8, 5: 4}.get(wire)
        if wire == 2:
            size = read_varint()
        if size is None or at + size > len(data):
            raise ValueError(f"wire type {wire}, size {size} at {at}")
        yield number, wire, data[at:at + size]
        at += size


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def unpack(values):
    """Returns the varints of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        number = shift = 0
        for byte in value:
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                yield number
                number = shift = 0


def read_tensor(data):
    """Returns a TensorProto as a NumPy array; bfloat16 becomes float32. None if it is not a dense numeric tensor."""
    import numpy as np

    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    dims = [signed(d) for d in unpack(found.get(1, []))]
    dtype = found.get(2, [0])[-1]
    raw = bytes(found[9][-1]) if 9 in found else None
    if dtype == BFLOAT16:
        bits = np.frombuffer(raw, "<u2") if raw is not None else np.array(list(unpack(found.get(5, []))), "u2")
        return (bits.astype("u4") << 16).view("f4").reshape(dims)
    if dtype not in DTYPES:
        return None
    name, typed = DTYPES[dtype]
    if raw is not None:
        return np.frombuffer(raw, name).reshape(dims)
    if typed in (4, 10):
        return np.frombuffer(b"".join(bytes(v) for v in found.get(typed, [])), name).reshape(dims)
    values = list(unpack(found.get(typed, [])))
    if name == "<f2":
        return np.array(values, "u2").view("f2").reshape(dims)
    if name[-2] == "i":
        values = [signed(v) for v in values]
    return np.array(values, name).reshape(dims)


@dataclasses.dataclass
class Facts:
    inputs: list  # names of the inputs without an initializer
    outputs: list
    types: dict  # element types of the inputs and outputs that are tensors
    shapes: dict  # dimensions, None where symbolic; inputs without a shape are absent
    symbols: dict  # symbols of the dimensions, "" where unnamed
    operators: set  # (domain, operator, opset version), including subgraphs and functions
    dense: bool  # every input and output is a tensor


def read_facts(data):
    opsets, graphs, functions = {}, [], []
    for number, value in fields(data):
        if number == 8:
            entry = dict(fields(value))
            opsets[normal(bytes(entry.get(1, b"")).decode())] = entry.get(2, 1)
        elif number == 7:
            graphs.append(value)
        elif number == 25:
            functions.append(value)
    called = set()
    for function in functions:
        for number, value in fields(function):
            if number == 7:
                node_operators(value, called)
    names = {(normal(text(f, 10)), text(f, 1)) for f in functions}
    initialized, inputs, outputs, types, shapes, symbols, dense = set(), [], [], {}, {}, {}, True
    for number, value in fields(graphs[0]):
        if number == 1:
            node_operators(value, called)
        elif number == 5:
            initialized.add(text(value, 8))
        elif number in (11, 12):
            (inputs if number == 11 else outputs).append(text(value, 1))
            dense_type = dict(fields(dict(fields(value)).get(2, b""))).get(1)
            if dense_type is None:
                dense = False
            else:
                parts = dict(fields(dense_type))
                types[text(value, 1)] = parts.get(1, 0)
                if 2 in parts:
                    dims = [dict(fields(d)) for n, d in fields(parts[2]) if n == 1]
                    sizes = [signed(d[1]) if 1 in d else None for d in dims]
                    shapes[text(value, 1)] = [None if s == -1 else s for s in sizes]
                    symbols[text(value, 1)] = [bytes(d.get(2, b"")).decode() for d in dims]
    operators = {(domain, op, opsets.get(domain, 1)) for domain, op in called - names}
    return Facts([i for i in inputs if i not in initialized], outputs, types, shapes, symbols, operators, dense)


def normal(domain):
    return "" if domain == "ai.onnx" else domain


def text(data, wanted):
    return next((bytes(v).decode() for n, v in fields(data) if n == wanted), "")


def node_operators(data, found):
    found.add((normal(text(data, 7)), text(data, 4)))
    for number, value in fields(data):
        if number != 5:
            continue
        for part, inner in fields(value):
            if part in (6, 11):  # a graph, graphs
                for n, v in fields(inner):
                    if n == 1:
                        node_operators(v, found)
