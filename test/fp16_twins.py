"""Makes fp16 twins of ONNX models: every float32 input, output, initializer, attribute and Cast target becomes float16 where
the type constraints of the operator allow it; otherwise the node is enclosed by Casts to float32 and back.
"""
import numpy as np

import onnx_wire as wire

# Attributes that give the element type of a result, as TensorProto.DataType. stash_type, softmax_precision and similar
# attributes, which give the type of intermediate results, are not changed.
TYPE_ATTRIBUTES = {"to", "dtype", "output_datatype", "output_dtype"}
# {operator: (inputs, outputs)} that are float32 in all versions, according to the specification or onnxruntime's registration.
FLOAT_ONLY = {"Resize": {10: ((1,), ()), 11: ((2,), ())}, "Upsample": {9: ((1,), ())},
              "NonMaxSuppression": {10: ((0, 1, 3, 4), ())}, "TfIdfVectorizer": {9: ((), (0,))},
              "LayerNormalization": {17: ((), (1, 2))}, "SimplifiedLayerNormalization": {1: ((), (1,))}}
# Operators whose scales are float32 in most versions; rounding them would change the quantization.
QUANTISED = ("Quantize", "Dequantize", "QLinear", "DynamicQuantize", "NBits", "Quantized", "Quant", "QGemm", "BitCast")
# The attribute whose default is float32.
DEFAULTS = {"ConstantOfShape": wire.attribute("value", wire.tensor("", wire.FLOAT16, (1,), b"\0\0")),
            **{op: wire.attribute("dtype", wire.FLOAT16) for op in ("RandomNormal", "RandomUniform")},
            **{op: wire.attribute("output_datatype", wire.FLOAT16)
               for op in ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")}}
LARGEST = 65504.0


def narrowed(array):
    """Rounds to float16. Finite numbers stay finite, as in model conversion tools; numbers near zero may become zero."""
    array = np.asarray(array)
    limits = np.where(np.isfinite(array), LARGEST, np.inf)
    return np.clip(array, -limits, limits).astype("<f2")


def rewritten(data, change):
    """Returns a message with each field replaced by the encoded fields that `change(number, wire type, value)` returns; None
    keeps the field."""
    out = b""
    for number, kind, value in wire.typed_fields(data):
        new = change(number, kind, value)
        if new is None:
            new = wire.varint(number << 3 | kind)
            if kind == 2:
                new += wire.varint(len(value))
            new += wire.varint(value) if kind == 0 else bytes(value)
        out += new
    return out


def tensor(data):
    """Converts a float32 TensorProto to float16; other types are unchanged."""
    found = {}
    for number, value in wire.fields(data):
        found[number] = value
    if found.get(2) != wire.FLOAT or 13 in found:
        return bytes(data)
    array = wire.read_tensor(data)
    return wire.tensor(wire.text(data, 8), wire.FLOAT16, array.shape, narrowed(array).tobytes())


def type_proto(data):
    """Converts a TypeProto, including the element types of sequences (4) and optionals (9)."""
    def change(number, kind, value):
        if number in (1, 8):
            return wire.field(number, rewritten(value, lambda n, _, v: wire.field(1, wire.FLOAT16) if n == 1 and v == wire.FLOAT
                                                else None))
        if number in (4, 9):
            return wire.field(number, rewritten(value, lambda n, _, v: wire.field(1, type_proto(v)) if n == 1 else None))
        return None

    return rewritten(data, change)


def value_info(data):
    return rewritten(data, lambda n, _, v: wire.field(2, type_proto(v)) if n == 2 else None)


class Twin:
    def __init__(self, opset):
        self.opset, self.casts = opset, 0

    def attribute(self, data):
        name = wire.text(data, 1)
        if name in ("value_float", "value_floats"):  # attributes of Constant
            number = 2 if name == "value_float" else 7
            values = np.frombuffer(b"".join(bytes(v) for n, v in wire.fields(data) if n == number), "<f4")
            dims = () if name == "value_float" else values.shape
            return wire.attribute("value", wire.tensor("", wire.FLOAT16, dims, narrowed(values).tobytes()))

        def change(number, kind, value):
            if number == 3 and value == wire.FLOAT and name in TYPE_ATTRIBUTES:
                return wire.field(3, wire.FLOAT16)
            convert = {5: tensor, 10: tensor, 6: self.graph, 11: self.graph, 14: type_proto, 15: type_proto}.get(number)
            return convert and wire.field(number, convert(value))

        return rewritten(data, change)

    def nodes(self, data):
        """Converts a NodeProto to one or more nodes, each encoded as field 1 of a graph."""
        operator, standard = wire.text(data, 4), wire.normal(wire.text(data, 7)) == ""
        inputs, outputs = ([bytes(v).decode() for n, v in wire.fields(data) if n == number] for number in (1, 2))
        before, after = [], []

        def wide(names, i):
            self.casts += 1
            old, names[i] = names[i], f"{names[i]}_fp32_{self.casts}"
            return old, names[i]

        versions = FLOAT_ONLY.get(operator, {}) if standard else {}
        taken, given = versions.get(max((v for v in versions if v <= self.opset), default=0), ((), ()))
        for i in taken:
            if i < len(inputs) and inputs[i]:
                old, new = wide(inputs, i)
                before.append(wire.node("Cast", [old], [new], to=wire.FLOAT))
        for i in given:
            if i >= len(outputs) or not outputs[i]:
                continue
            old, new = wide(outputs, i)
            after.append(wire.node("Cast", [new], [old], to=wire.FLOAT16))
        attributes = [self.attribute(v) for n, v in wire.fields(data) if n == 5]
        if standard and operator in DEFAULTS and wire.text(DEFAULTS[operator], 1) not in {wire.text(a, 1) for a in attributes}:
            attributes.append(DEFAULTS[operator])
        rest = rewritten(data, lambda n, _, v: b"" if n in (1, 2, 5) else None)
        own = wire.field(1, inputs) + wire.field(2, outputs) + rest + wire.field(5, attributes)
        return b"".join(wire.field(1, node) for node in (*before, own, *after))

    def graph(self, data):
        def change(number, kind, value):
            if number == 1:
                return self.nodes(value)
            convert = {5: tensor, 11: value_info, 12: value_info, 13: value_info}.get(number)
            return convert and wire.field(number, convert(value))

        return rewritten(data, change)


def twin(model):
    """Returns the bytes of the twin; None if the model has no float32, is quantized, or defines functions."""
    facts = wire.read_facts(model)
    if any(part in operator for _, operator, _ in facts.operators for part in QUANTISED):
        return None
    if any(n == 25 for n, _ in wire.fields(model)):
        return None
    made = Twin(next((v for d, _, v in facts.operators if d == ""), 17))
    bytes_of = rewritten(model, lambda n, _, v: wire.field(7, made.graph(v)) if n == 7 else None)
    return bytes_of if bytes_of != bytes(model) else None
