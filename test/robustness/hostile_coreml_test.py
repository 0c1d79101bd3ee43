"""Untrusted Core ML files: packages, compiled bundles, bare models and weight files that are damaged, contradictory, excessively
large or of another kind.

Each one goes through every command that reads it. The command ends with exit code 1 and an error with a location and a remedy, within
a second of CPU time, with bounded memory, and without any output. With an argument, only cases whose name contains it run, and
each is printed.
"""
import io
import os
import pathlib
import shutil
import struct
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import coreml_wire as coreml  # noqa: E402
import driver  # noqa: E402
import hostile_test  # noqa: E402
from coreml_wire import (BOOL, FP16, FP32, INT4, INT32, STRING, array_feature, blob, block, boolean, const,  # noqa: E402
                         description, entry, floats, function, immediate, model, operation, program, record, string,
                         tensor_type, weight_file)
from onnx_wire import field, varint  # noqa: E402

HUGE = 1 << 40
X, W, Y = tensor_type(FP32, [1, 4]), tensor_type(FP32, [4, 4]), tensor_type(FP32, [1, 4])
DATA = struct.pack("<16f", *[i / 16 for i in range(16)])
ABOUT = description([array_feature("x", [1, 4])], [array_feature("y", [1, 4])])
WEIGHTS = weight_file(record(DATA))


def matmul(x="x", w="w", y="y", **more):
    return operation("matmul", {"x": x, "y": w, "transpose_x": boolean(0), "transpose_y": boolean(0), **more}, [(y, Y)],
                     name=string(y))


def relu(x, y, value_type=Y):
    return operation("relu", {"x": x}, [(y, value_type)], name=string(y))


def of(*operations, outputs=("y",), about=ABOUT, inputs=(("x", X),), **options):
    """Returns a model of these operations, preceded by the weight "w"."""
    body = block([const("w", W, blob(W)), *operations], outputs)
    return model(about, program({"main": function(body, inputs, **options)}))


def weighing(value_type, value):
    """Returns a model whose weight has this declaration."""
    return model(ABOUT, program({"main": function(block([const("w", value_type, value), matmul()], ["y"]), [("x", X)])}))


HEALTHY = of(matmul())


def nested_blocks(depth):
    inner = block([relu("x", "t")], ["t"])
    for name in [f"c{i}" for i in range(depth - 1)] + ["y"]:
        inner = block([operation("cond", {"pred": boolean(1)}, [(name, Y)], [inner, block([], ["x"])])], [name])
    return model(ABOUT, program({"main": function(inner, [("x", X)])}))


def nested_types(depth):
    kind = X
    for _ in range(depth):
        kind = coreml.list_type(kind, 1)
    return of(operation("relu", {"x": "x"}, [("y", kind)]))


def nested_values(depth):
    value = floats([1.0])
    for _ in range(depth):
        value = field(2, X) + field(3, field(2, field(1, value)))
    return weighing(W, value)


def weights():
    """Returns {name: contents of weights/weight.bin}; None if the file is absent."""
    at = lambda **options: weight_file(record(DATA, **options))  # noqa: E731
    return {
        "no weight file": None, "empty weight file": b"", "weight file of a header": weight_file(b""),
        "weight file cut in its header": WEIGHTS[:40], "weight file cut in a record's metadata": WEIGHTS[:100],
        "weight file cut in the data": WEIGHTS[:-1], "blob version 1": weight_file(record(DATA), version=1),
        "blob version 3": weight_file(record(DATA), version=3), "wrong sentinel": at(sentinel=0xDEADBEEE),
        "sentinel of zeros": at(sentinel=0), "stored as fp16": at(dtype=1), "stored as int4": at(dtype=8),
        "stored as nothing": at(dtype=0), "stored as an unknown type": at(dtype=99),
        "record of fewer bytes": at(size=32), "record of no bytes": at(size=0), "record of more bytes": at(size=128),
        "record of 2^63 bytes": at(size=1 << 63), "record of 2^64 - 1 bytes": at(size=(1 << 64) - 1),
        "padding bits of fp32": at(padding=4), "data past the end": at(data_offset=HUGE),
        "data offset that overflows": at(data_offset=(1 << 64) - 16), "data at the end": at(data_offset=len(WEIGHTS)),
        "weight file of zeros": bytes(4096), "weight file of text": b"not weights\n" * 40,
    }


def models():
    """Returns {name: bytes of model.mlmodel}, with a valid weight file beside it."""
    unknown = {
        "Model": HEALTHY + field(99, 1), "ModelDescription": model(ABOUT + field(99, "new"), b""),
        "Metadata": model(ABOUT + field(100, field(99, 1)), b""),
        "FeatureDescription": model(description([array_feature("x", [1, 4]) + field(99, 1)], []), b""),
        "FeatureType": model(description([field(1, "x") + field(3, field(99, b""))], []), b""),
        "ArrayFeatureType": model(description([field(1, "x") + field(3, field(5, field(99, 1)))], []), b""),
        "ImageFeatureType": model(description([field(1, "x") + field(3, field(4, field(99, 1)))], []), b""),
        "StateFeatureType": model(description([], [], field(13, field(1, "s") + field(3, field(8, field(99, 1))))), b""),
        "FunctionDescription": model(ABOUT + field(20, field(99, 1)), b""),
        "Program": model(ABOUT, program({}) + field(99, 1)),
        "Function": model(ABOUT, program({"main": function(block([], []), [("x", X)]) + field(99, 1)})),
        "Block": model(ABOUT, program({"main": function(block([], []) + field(99, 1), [("x", X)])})),
        "Operation": of(matmul() + field(99, 1)),
        "Argument": of(operation("relu", {"x": "x"}, [("y", Y)]) + field(2, entry("z", field(99, 1)))),
        "NamedValueType": of(operation("relu", {"x": "x"}, []) + field(3, coreml.named("y", Y) + field(99, 1))),
        "ValueType": of(operation("relu", {"x": "x"}, [("y", Y + field(99, 1))])),
        "TensorType": of(operation("relu", {"x": "x"}, [("y", field(1, field(1, FP32) + field(99, 1)))])),
        "Dimension": of(operation("relu", {"x": "x"}, [("y", field(1, field(1, FP32) + field(3, field(99, 1))))])),
        "Value": weighing(W, blob(W) + field(99, 1)),
        "BlobFileValue": weighing(W, field(2, W) + field(5, field(99, 1))),
        "ImmediateValue": weighing(W, field(2, W) + field(3, field(99, 1))),
        "TensorValue": weighing(W, field(2, W) + field(3, field(1, field(99, 1)))),
    }
    cases = {f"unknown field of {name}": data for name, data in unknown.items()}
    place = lambda name: of(const("v", W, blob(W, name=name)), matmul(w="v"))  # noqa: E731
    sized = lambda *dims, rank=None: weighing(tensor_type(FP32, dims, rank), blob(tensor_type(FP32, dims, rank)))  # noqa: E731
    cases |= {
        "empty model": b"", "model of zeros": bytes(4096), "model of noise": b"\x0a\xff" * 500,
        "varint without end": b"\x08" + b"\xff" * 64, "length beyond the file": b"\x12" + varint(HUGE),
        "negative length": b"\x12" + varint(-1), "groups": b"\x0b" * 5000, "no program": field(1, 7) + field(2, ABOUT),
        # versions and kinds
        "specification version 0": model(ABOUT, b"", version=0), "specification version -1": model(ABOUT, b"", version=-1),
        "specification version 99": model(ABOUT, b"", version=99), "program version 0": model(ABOUT, program({}, version=0)),
        "program version 9": model(ABOUT, program({}, version=9)), "opset of the future": of(matmul(), opset="CoreML99"),
        "no opset": of(matmul(), opset=""), "block of another opset": model(ABOUT, program({"main": field(1, coreml.named(
            "x", X)) + field(2, "CoreML6") + field(3, entry("CoreML5", block([matmul()], ["y"])))})),
        "neural network": model(ABOUT, b"", number=500), "classifier of a neural network": model(ABOUT, b"", number=403),
        "pipeline": model(ABOUT, field(1, field(1, 7)), number=202), "tree ensemble": model(ABOUT, b"", number=402),
        "custom model": model(ABOUT, b"", number=555), "word tagger": model(ABOUT, b"", number=2001),
        "updatable": model(ABOUT, b"") + field(10, 1),
        # constants
        "offset past the end": of(const("v", W, blob(W, HUGE)), matmul(w="v")),
        "offset that overflows": of(const("v", W, blob(W, (1 << 64) - 64)), matmul(w="v")),
        "offset that is not aligned": of(const("v", W, blob(W, 65)), matmul(w="v")),
        "offset of the header": of(const("v", W, blob(W, 0)), matmul(w="v")),
        "weights in another folder": place("@model_path/../../etc/passwd"), "weights at the root": place("/etc/passwd"),
        "weights at the root of the model": place("@model_path//etc/passwd"), "weights nowhere": place(""),
        "weights in a folder": place("@model_path/weights"), "weights in the model": place("@model_path/."),
        "weights of no file": place("@model_path/"), "weights in a link out": place("@model_path/weights/out.bin"),
        "weights through a link out": place("@model_path/up/outside.bin"), "weights in a loop": place("@model_path/loop"),
        "weights in a pipe": place("@model_path/pipe"), "weights in a device": place("@model_path/zero"),
        "weights with a zero in their name": place("@model_path/weights/weight.bin\0x"),
        "weights of a long name": place("@model_path/" + "x" * 5000), "weights that are not there": place("@model_path/no.bin"),
        "2^63 elements": sized(1 << 63), "2^63 - 1 elements": sized((1 << 63) - 1), "2^64 elements": sized(1 << 32, 1 << 32),
        "negative size": sized(-1), "2^40 elements": sized(HUGE), "rank that is not that of the sizes": sized(4, 4, rank=3),
        "negative rank": sized(4, 4, rank=-1), "rank of 2^40": sized(4, 4, rank=HUGE), "100000 dimensions": sized(*[1] * 100000),
        "constant of unknown size": sized(None, 4), "unknown element type": weighing(tensor_type(99, [4]), blob(W)),
        "no element type": weighing(tensor_type(0, [4]), blob(W)), "weight file of strings": weighing(
            tensor_type(STRING, [4]), blob(tensor_type(STRING, [4]))),
        "int4 of odd size": weighing(tensor_type(INT4, [3, 11]), blob(tensor_type(INT4, [3, 11]))),
        "too few values": weighing(W, floats([1.0] * 3, [4, 4])), "too many values": weighing(W, floats([1.0] * 99, [4, 4])),
        "huge constant without values": weighing(tensor_type(FP32, [HUGE]), floats([], [HUGE])),
        "values of another type": weighing(W, immediate(W, 2, field(1, b"\1" * 16))),
        "constant of no value": weighing(W, field(2, W)), "constant of no type": weighing(W, field(3, b"")),
        "constant of another type": weighing(W, blob(tensor_type(FP16, [4, 4]))),
        "const without val": of(operation("const", {}, [("v", W)], name=string("v")), matmul(w="v")),
        "const with two results": of(operation("const", {}, [("v", W), ("u", W)], val=blob(W)), matmul(w="v")),
        "values nested 5000 deep": nested_values(5000),
        # operations
        "unknown operator": of(operation("frobnicate", {"x": "x"}, [("y", Y)], name=string("y"))),
        "operator of a newer Core ML": of(operation("scaled_dot_product_attention", {"query": "x", "key": "x", "value": "x"},
                                                    [("y", Y)])),
        "operator without name": of(operation("", {"x": "x"}, [("y", Y)])),
        "unknown parameter": of(matmul(strange="x")), "missing parameter": of(operation("matmul", {"x": "x"}, [("y", Y)])),
        "parameter bound to nothing": of(operation("relu", {"x": []}, [("y", Y)])),
        "parameter bound twice": of(operation("relu", {"x": ["x", "x"]}, [("y", Y)])),
        "parameter bound 100000 times": of(operation("relu", {"x": ["x"] * 100000}, [("y", Y)])),
        "unknown attribute": of(operation("relu", {"x": "x"}, [("y", Y)], strange=string("s"))),
        "operation twice named": of(matmul(y="t"), relu("t", "y"), relu("t", "y")),
        "value before its definition": of(relu("later", "y"), matmul(y="later")),
        "cycle": of(relu("b", "a"), relu("a", "b"), relu("b", "y")), "own result": of(relu("y", "y")),
        "long cycle": of(*[relu(f"t{(i + 1) % 3000}", f"t{i}") for i in range(3000)], relu("t0", "y")),
        "no such value": of(relu("nowhere", "y")), "input defined again": of(relu("x", "x"), relu("x", "y")),
        "output that nothing makes": of(matmul(), outputs=["nowhere"]), "no output": of(matmul(), outputs=[]),
        "result of another shape": of(operation("relu", {"x": "x"}, [("y", tensor_type(FP32, [9, 9]))])),
        "result of another type": of(operation("relu", {"x": "x"}, [("y", tensor_type(INT32, [1, 4]))])),
        "result without type": of(operation("relu", {"x": "x"}, [("y", b"")])),
        "5000 results": of(operation("relu", {"x": "x"}, [(f"y{i}", Y) for i in range(5000)]), outputs=["y0"]),
        "name that MIL has not": of(relu("x", "a/b"), relu("a/b", "y")), "name that is no text": of(
            operation("relu", {"x": "x"}, [(b"\xff\xfe", Y)]), relu("x", "y")),
        "no name": of(operation("relu", {"x": "x"}, [("", Y)]), relu("x", "y")),
        "block where none may be": of(relu("x", "y") + field(4, block([], []))),
        "blocks 20 deep": nested_blocks(20), "blocks 2000 deep": nested_blocks(2000), "types 5000 deep": nested_types(5000),
        "cond of one block": of(operation("cond", {"pred": boolean(1)}, [("y", Y)], [block([relu("x", "t")], ["t"])])),
        "cond whose blocks differ": of(operation("cond", {"pred": boolean(1)}, [("y", Y)], [
            block([relu("x", "t")], ["t"]), block([], [])])),
        "value of an inner block": of(operation("cond", {"pred": boolean(1)}, [("y", Y)], [
            block([relu("x", "t")], ["t"]), block([], ["x"])]), relu("t", "z"), outputs=["z"]),
        "huge fill": of(operation("fill", {"shape": immediate(tensor_type(INT32, [2]), 2, field(1, varint((1 << 31) - 1) * 2)),
                                           "value": floats([1.0], [])}, [("y", tensor_type(FP32, [(1 << 31) - 1] * 2))])),
        "negative fill": of(operation("fill", {"shape": immediate(tensor_type(INT32, [1]), 2, field(1, varint(-4))),
                                               "value": floats([1.0], [])}, [("y", tensor_type(FP32, [4]))])),
        # functions and the description
        "no function": model(ABOUT, program({})), "function without block": model(ABOUT, program({"main": field(2, "CoreML6")})),
        "no main": model(ABOUT, program({"other": function(block([relu("x", "y")], ["y"]), [("x", X)])})),
        "two functions main": model(ABOUT, program({"main": function(block([relu("x", "y")], ["y"]), [("x", X)])})
                                    + field(2, entry("main", function(block([], []), [])))),
        "input twice": of(matmul(), inputs=[("x", X), ("x", X)]), "input of no type": of(matmul(), inputs=[("x", b"")]),
        "input of lists": of(matmul(), inputs=[("x", coreml.list_type(X, 2))]),
        "empty description": of(matmul(), about=b""), "input described otherwise": of(matmul(), about=description(
            [array_feature("x", [2, 9])], [array_feature("y", [1, 4])])),
        "input described as int32": of(matmul(), about=description([array_feature("x", [1, 4], 0x20020)],
                                                                   [array_feature("y", [1, 4])])),
        "unknown array type": of(matmul(), about=description([array_feature("x", [1, 4], 77)], [array_feature("y", [1, 4])])),
        "negative described size": of(matmul(), about=description([array_feature("x", [-1, 4])], [array_feature("y", [1, 4])])),
        "huge described size": of(matmul(), about=description([array_feature("x", [1 << 62, 1 << 62])],
                                                              [array_feature("y", [1, 4])])),
        "input described twice": of(matmul(), about=description([array_feature("x", [1, 4])] * 2, [array_feature("y", [1, 4])])),
        "output that is not described": of(matmul(), about=description([array_feature("x", [1, 4])], [])),
        "described, not there": of(matmul(), about=description([array_feature("x", [1, 4]), array_feature("z", [1])],
                                                               [array_feature("y", [1, 4])])),
        "classifier without classes": of(matmul(), about=ABOUT + field(11, "label")),
        "interface entry of nonsense": of(matmul(), about=ABOUT + field(100, field(100, entry("mlc.interface", "{")))),
        "description that is no text": of(matmul(), about=ABOUT + field(100, field(1, b"\xff\xfe"))),
    }
    step = max(1, len(HEALTHY) // 40)
    cases |= {f"model cut to {n}": HEALTHY[:n] for n in range(1, len(HEALTHY), step)}
    return cases


def manifests():
    good = {"m": {"path": "model.mlmodel"}}
    return {
        "empty manifest": "", "manifest that is no JSON": "{", "manifest of a list": "[]", "manifest of null": "null",
        "manifest nested 100000 deep": "[" * 100000, "manifest of 2 MB": " " * (2 << 20),
        "manifest without items": '{"rootModelIdentifier": "m"}', "no root model": coreml.manifest("other", good),
        "root of another type": coreml.manifest(1, good), "items of another type": coreml.manifest("m", [1]),
        "item of another type": coreml.manifest("m", {"m": 1}), "path of another type": coreml.manifest("m", {"m": {"path": 1}}),
        "no path": coreml.manifest("m", {"m": {}}), "path above": coreml.manifest("m", {"m": {"path": "../../outside.bin"}}),
        "path at the root": coreml.manifest("m", {"m": {"path": "/etc/passwd"}}), "empty path": coreml.manifest(
            "m", {"m": {"path": ""}}),
        "path of a folder": coreml.manifest("m", {"m": {"path": "weights"}}), "path of nothing": coreml.manifest(
            "m", {"m": {"path": "nowhere.mlmodel"}}),
        "path of a pipe": coreml.manifest("m", {"m": {"path": "pipe"}}), "path through a link": coreml.manifest(
            "m", {"m": {"path": "up/outside.bin"}}),
        "path with a zero": coreml.manifest("m", {"m": {"path": "model.mlmodel\0"}}),
        "path that is no text": '{"rootModelIdentifier": "m", "itemInfoEntries": {"m": {"path": "\\ud800"}}}',
    }


def bundles(whole):
    """Returns {name: {file: bytes or None}} with the differences from the valid bundle."""
    data, text = (whole / "coremldata.bin").read_bytes(), (whole / "model.mil").read_text()
    line = next(t for t in text.splitlines() if "matmul" in t)
    cases = {f"coremldata.bin cut to {n}": {"coremldata.bin": data[:n]} for n in range(len(data))
             if n < 100 or n % 10 == 0 or n > len(data) - 20}
    cases |= {f"model.mil cut to {n}": {"model.mil": text[:n].encode()} for n in range(0, len(text) - 1, len(text) // 60)}
    edits = {
        "unknown operator in text": (" matmul(", " frobnicate("), "unknown parameter in text": ("transpose_x", "strange"),
        "type that is not": ("fp32, [1, 4]", "fp99, [1, 4]"), "size of 2^64": ("[1, 4]", "[18446744073709551616, 4]"),
        "huge size": ("[1, 4]", "[9223372036854775807, 4]"), "negative size in text": ("[1, 4]", "[-1, 4]"),
        "opset of the future in text": ("ios16", "ios99"), "program version 9 in text": ("program(1.0)", "program(9.9)"),
        "text without program": ("program", "programme"), "own result in text": ("x = x", "x = " + line.split()[2].strip(",")),
        "weight above": ("@model_path/weights/weight.bin", "@model_path/../../outside.bin"),
        "weight at the root in text": ("@model_path/weights/weight.bin", "/etc/passwd"),
        "weight in a pipe in text": ("@model_path/weights/weight.bin", "@model_path/pipe"),
        "weight in a loop in text": ("@model_path/weights/weight.bin", "@model_path/loop"),
        "offset past the end in text": ("(64)", f"({HUGE})"), "offset of 2^80": ("(64)", f"({1 << 80})"),
        "negative offset": ("(64)", "(-64)"),
    }
    for name, (old, new) in edits.items():
        assert old in text, (name, old, text)
        cases[name] = {"model.mil": text.replace(old, new).encode()}
    deep = "tensor<fp32, [1]>([" + "[" * 100000
    cases |= {
        "text nested 100000 deep": {"model.mil": text.replace("x = x", "x = " + deep).encode()},
        "text of one line": {"model.mil": b"program(1.0) { " + b"(" * 200000}, "text of zeros": {"model.mil": bytes(4096)},
        "text that is no UTF-8": {"model.mil": text.replace("matmul", "mat\udcffmul").encode(errors="surrogateescape")},
        "comment without end": {"model.mil": b"/*" + text.encode()}, "text without end": {"model.mil": b'program(1.0)[a = "'},
        "no text": {"model.mil": None}, "no weights": {"weights/weight.bin": None}, "empty weights": {"weights/weight.bin": b""},
        "weights of another version": {"weights/weight.bin": weight_file(record(DATA), version=1)},
        "empty coremldata.bin": {"coremldata.bin": b""}, "coremldata.bin of zeros": {"coremldata.bin": bytes(4096)},
        "bundle of a neural network": {"coremldata.bin": coreml.bundle_data(ABOUT, kind=500)},
        "bundle of a pipeline": {"coremldata.bin": coreml.bundle_data(ABOUT, kind=202)},
        "bundle of an unknown kind": {"coremldata.bin": coreml.bundle_data(ABOUT, kind=12345)},
        "bundle of another name": {"coremldata.bin": coreml.bundle_data(ABOUT, name=b"special")},
        "name of 2^63 bytes": {"coremldata.bin": struct.pack("<I4Q", 502, 5, 0, 0, 1 << 63) + b"generic"},
        "specification version 99 of a bundle": {"coremldata.bin": coreml.bundle_data(ABOUT, version=99)},
        "specification version 2^63": {"coremldata.bin": coreml.bundle_data(ABOUT, version=1 << 63)},
        "description of 2^64 - 1 bytes": {"coremldata.bin": coreml.bundle_data(ABOUT, length=(1 << 64) - 1)},
        "reserved bytes that are not zero": {"coremldata.bin": coreml.bundle_data(ABOUT, reserved=b"\1" * 24)},
        "bundle of no function": {"coremldata.bin": coreml.bundle_data(ABOUT, functions=0)},
        "bundle of two functions": {"coremldata.bin": coreml.bundle_data(ABOUT, functions=2)},
        "bundle of 10000 functions": {"coremldata.bin": coreml.bundle_data(ABOUT, functions=10000)},
        "description of nonsense": {"coremldata.bin": coreml.bundle_data(b"\xff" * 40)},
        "description of another model": {"coremldata.bin": coreml.bundle_data(description(
            [array_feature("a", [1])], [array_feature("b", [1])]))},
        "unknown field in a bundle": {"coremldata.bin": coreml.bundle_data(ABOUT + field(99, 1))},
    }
    return cases


def archive(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            made.writestr(name, b"x" * 100)
    return file.getvalue()


def others():
    """Returns {file name: (bytes, expected error)} for models of other tools, which are recognised."""
    return {
        "script.pt": (archive("m/data.pkl", "m/code/m.py", "m/constants.pkl"), "torch.jit.load"),
        "weights.pth": (archive("m/data.pkl", "m/data/0"), "a PyTorch checkpoint"),
        "old.pth": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "torch.onnx.export"),
        "protocol3.pkl": (b"\x80\x03}q\0.", "a Python pickle"), "protocol4.pkl": (b"\x80\x04\x95" + bytes(40), "a Python pickle"),
        "protocol5.pkl": (b"\x80\x05\x95" + bytes(40), "a Python pickle"),
        "old.h5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "Keras"),
        "new.keras": (archive("metadata.json", "config.json", "model.weights.h5"), "keras.models.load_model"),
        "package.zip": (archive("m.mlpackage/Manifest.json", "m.mlpackage/Data/m.mlmodel"), "unpack it"),
        "bundle.zip": (archive("m.mlmodelc/coremldata.bin"), "unpack it"), "any.zip": (archive("a.txt"), "a zip archive"),
        "arrays.npz": (archive("x.npy"), "NumPy"), "cut.zip": (archive("a")[:20], "a zip archive"),
        "lite.tflite": (b"\x1c\0\0\0TFL3" + bytes(100), "tf2onnx"), "lite2.tflite": (b"\x20\0\0\0TFL3" + bytes(100), "tf2onnx"),
        "model.ort": (b"\x1c\0\0\0ORTM" + bytes(100), ".onnx"), "network.mlmodel": (
            model(ABOUT, field(1, "layer"), version=4, number=coreml.NEURAL_NETWORK), "minimum_deployment_target"),
        "pipe.mlmodel": (model(ABOUT, field(1, field(1, 4)), version=4, number=202), "spec.pipeline.models"),
        "array.npy": (b"\x93NUMPY\1\0" + bytes(100), "a NumPy array"), "noise.mlmodel": (b"\xff" * 100, "unrecognised model format"),
        "text.txt": (b"hello\n", "unrecognised model format"), "empty.mlmodel": (b"", "is empty"), "zeros.bin": (bytes(1000), "unrecognised model format"),
        "config.json": (b'{"architectures": ["LlamaForCausalLM"]}', "JSON, which has no weights"),
    }


def surroundings(folder, path):
    """Creates the targets of hostile names: a file outside, links to it, a loop, a pipe, a device."""
    (path / "up").symlink_to(folder)
    (path / "loop").symlink_to(path / "loop")
    os.mkfifo(path / "pipe")
    (path / "zero").symlink_to("/dev/zero")
    if (path / "weights").is_dir():
        (path / "weights" / "out.bin").symlink_to(folder / "outside.bin")


def folders():
    """Returns {name: function(path)} for folders with something else in place of a file."""
    def package(path, part, make):
        coreml.write_package(path, HEALTHY, WEIGHTS)
        (path / part).unlink()
        make(path / part)

    parts = {"manifest": "Manifest.json", "model": "Data/model.mlmodel", "weights": "Data/weights/weight.bin"}
    kinds = {"a folder": pathlib.Path.mkdir, "a pipe": os.mkfifo, "a loop": lambda p: p.symlink_to(p),
             "a device": lambda p: p.symlink_to("/dev/zero"), "a link to nothing": lambda p: p.symlink_to("/nowhere")}
    cases = {f"{part} is {kind}": lambda path, f=file, m=make: package(path, f, m)
             for part, file in parts.items() for kind, make in kinds.items()}

    def saved_model(path):
        (path / "variables").mkdir(parents=True)
        (path / "saved_model.pb").write_bytes(b"\x08\1\x12\0")

    return cases | {"empty folder": pathlib.Path.mkdir, "TensorFlow SavedModel": saved_model}


def prepare(folder):
    """Returns [(name, path of the hostile file)], and paths of a valid package and bundle."""
    (folder / "outside.bin").write_bytes(WEIGHTS)
    healthy = coreml.write_package(folder / "healthy.mlpackage", HEALTHY, WEIGHTS)
    bundle = folder / "healthy.mlmodelc"
    for made in (driver.run("run", healthy), driver.run("precompile", healthy, "-o", bundle), driver.run("run", bundle)):
        if made.code != 0:
            raise RuntimeError(f"the healthy model: {driver.ending(made)} {made.stderr}")
    found = []

    def package(name, *contents):
        path = coreml.write_package(folder / f"{len(found)}.mlpackage", *contents)
        surroundings(folder, path / "Data")
        found.append((name, path))

    for name, content in weights().items():
        package(name, HEALTHY, content)
    for name, content in models().items():
        package(name, content, WEIGHTS)
    for name, content in manifests().items():
        package(name, HEALTHY, WEIGHTS, content)
    for name, changes in bundles(bundle).items():
        path = folder / f"{len(found)}.mlmodelc"
        shutil.copytree(bundle, path)
        surroundings(folder, path)
        for file, content in changes.items():
            (path / file).unlink() if content is None else (path / file).write_bytes(content)
        found.append((name, path))
    for name, (content, _) in others().items():
        (folder / name).write_bytes(content)
        found.append((name, folder / name))
    for name, make in folders().items():
        path = folder / f"{len(found)}.mlpackage"
        make(path)
        found.append((name, path))
    return found, healthy


COMMANDS = ("inspect", "run", "precompile", "diff", "opt", "verify", "compile")
# Cases that a command may accept: links are the responsibility of their creator (download caches
# consist of links), a program with a size that cannot be computed is still valid, and text is
# inspected without its weights.
ACCEPTED = {"weights in a link out": None, "weights through a link out": None, "path through a link": None, "huge fill": None,
            "blocks 20 deep": None, "no weights": "inspect"}


def commands(folder):
    found, healthy = prepare(folder)
    says = {name: text for name, (_, text) in others().items()}
    output = 0
    for name, path in found:
        for command in ("inspect", "run") if driver.SANITIZED else COMMANDS:
            if command == "precompile" and path.suffix == ".mlmodelc":
                continue  # it takes packages only
            output += 1
            strict = ACCEPTED.get(name, "") not in (None, command)
            arguments = {"precompile": [path, "-o", folder / f"out{output}.mlmodelc"], "diff": [healthy, path],
                         "opt": [path, "-o", folder / f"out{output}.mlpackage"], "verify": [healthy, path],
                         "compile": [path, "-o", folder / f"out{output}.mlpackage"]}
            yield (f"{name}: {command}", strict, [command, *arguments.get(command, [path]), "--json"],
                   says.get(name, "field 99" if name.startswith("unknown field") else ""))


if __name__ == "__main__":
    sys.exit(hostile_test.main("hostile Core ML files", commands, helpful=True))
