"""Writes Core ML files at the level of the protobuf wire format: packages and bundles with any contents, including malformed
ones. Every function returns the bytes of one message. Field numbers are those of proto/*.proto.
"""
import json
import struct

from onnx_wire import field

FP16, FP32, INT32, INT4, BOOL, STRING = 10, 11, 23, 25, 1, 2
ML_PROGRAM, NEURAL_NETWORK = 502, 500


def tensor_type(dtype, dims, rank=None):
    """A tensor type; None is an unknown dimension."""
    sizes = b"".join(field(3, field(2, b"") if d is None else field(1, field(1, d))) for d in dims)
    return field(1, field(1, dtype) + field(2, len(dims) if rank is None else rank) + sizes)


def list_type(element, length):
    return field(2, field(1, element) + field(2, field(1, field(1, length))))


def named(name, value_type):
    return field(1, name) + field(2, value_type)


def immediate(value_type, number, payload):
    """An immediate value. `number`: field of TensorValue (1 floats, 2 ints, 3 bools, 4 strings, 7 bytes); `payload`: its message."""
    return field(2, value_type) + field(3, field(1, field(number, payload)))


def string(text):
    return immediate(tensor_type(STRING, []), 4, field(1, text))


def boolean(value):
    return immediate(tensor_type(BOOL, []), 3, field(1, bytes([value])))


def floats(values, dims=None):
    return immediate(tensor_type(FP32, [len(values)] if dims is None else dims), 1,
                     field(1, struct.pack(f"<{len(values)}f", *values)))


def blob(value_type, offset=64, name="@model_path/weights/weight.bin"):
    return field(2, value_type) + field(5, field(1, name) + field(2, offset))


def entry(key, value):
    return field(1, key) + field(2, value)


def operation(kind, inputs, outputs, blocks=(), **attributes):
    """An operation. `inputs`: {key: name of a value, Value bytes, or a list of them}; `outputs`: [(name, type)]."""
    out = field(1, kind)
    for key, values in inputs.items():
        values = values if isinstance(values, list) else [values]
        bindings = b"".join(field(1, field(2 if isinstance(v, bytes) else 1, v)) for v in values)
        out += field(2, entry(key, bindings))
    out += b"".join(field(3, named(*output)) for output in outputs)
    out += b"".join(field(4, block) for block in blocks)
    return out + b"".join(field(5, entry(key, value)) for key, value in attributes.items())


def const(name, value_type, value, **attributes):
    return operation("const", {}, [(name, value_type)], name=string(name), val=value, **attributes)


def block(operations, outputs, inputs=()):
    return (b"".join(field(1, named(*i)) for i in inputs) + field(2, list(outputs))
            + b"".join(field(3, op) for op in operations))


def function(body, inputs, opset="CoreML6"):
    return b"".join(field(1, named(*i)) for i in inputs) + field(2, opset) + field(3, entry(opset, body))


def program(functions, version=1, **attributes):
    return (field(1, version) + b"".join(field(2, entry(*f)) for f in functions.items())
            + b"".join(field(4, entry(key, value)) for key, value in attributes.items()))


def array_feature(name, dims, dtype=0x10020):
    return field(1, name) + field(3, field(5, field(1, list(dims)) + field(2, dtype)))


def description(inputs, outputs, more=b""):
    return field(1, list(inputs)) + field(10, list(outputs)) + more


def model(about, kind, version=7, number=ML_PROGRAM):
    return field(1, version) + field(2, about) + field(number, kind)


def record(data, dtype=2, offset=64, sentinel=0xDEADBEEF, size=None, data_offset=None, padding=0):
    """Metadata and data of a weight at `offset`; dtype 1 is fp16, 2 fp32, 8 int4."""
    size = len(data) if size is None else size
    data_offset = offset + 64 if data_offset is None else data_offset
    return struct.pack("<IIQQQ", sentinel, dtype, size, data_offset, padding) + bytes(32) + data


def weight_file(records, version=2, count=1):
    return struct.pack("<II", count, version) + bytes(56) + records


def manifest(root="m", items=None):
    items = {"m": {"author": "test", "description": "", "name": "model.mlmodel", "path": "model.mlmodel"}} if items is None else items
    return json.dumps({"fileFormatVersion": "1.0.0", "rootModelIdentifier": root, "itemInfoEntries": items})


def write_package(path, model_bytes, weights=None, manifest_text=None):
    (path / "Data" / "weights").mkdir(parents=True)
    (path / "Manifest.json").write_text(manifest() if manifest_text is None else manifest_text)
    (path / "Data" / "model.mlmodel").write_bytes(model_bytes)
    if weights is not None:
        (path / "Data" / "weights" / "weight.bin").write_bytes(weights)
    return path


def bundle_data(about, version=7, kind=ML_PROGRAM, name=b"generic", functions=1, reserved=bytes(24), length=None):
    """A coremldata.bin file (lib/coreml/mlmodelc_layout.h)."""
    length = len(about) if length is None else length
    return (struct.pack("<I3QQ", kind, 5, 0, 0, len(name)) + name + struct.pack("<Q", version) + reserved
            + struct.pack("<Q", length) + about + (struct.pack("<I", kind) + bytes(12)) * functions)
