"""Generates an ONNX model of any size: a chain of matrix products followed by a chain of convolutions, each with half of the
weights. At most one tensor is held in memory.
"""
import contextlib
import pathlib

import numpy as np

import onnx_wire as onnx

WIDTH, CHANNELS = 1024, 256
PRODUCT, CONVOLUTION = (WIDTH, WIDTH), (CHANNELS, CHANNELS, 3, 3)


def weights(seed, index, dims):
    values = np.random.default_rng([seed, index]).standard_normal(dims, np.float32)
    return (values * np.float32(1 / np.sqrt(np.prod(dims[1:])))).tobytes()


def write(path, megabytes, external=False, seed=0):
    """Writes `path` and, with `external`, its weights to a separate file. Returns the size of the weights in bytes."""
    path = pathlib.Path(path)
    each = [(dims, 4 * int(np.prod(dims))) for dims in (PRODUCT, CONVOLUTION)]
    tensors = [(dims, size) for dims, size in each for _ in range(max(1, round(megabytes * 5e5 / size)))]
    nodes, last = [], "x"
    for index, (dims, _) in enumerate(tensors):
        if dims == CONVOLUTION and not last.startswith(("image", "conv")):
            nodes.append(onnx.node("Reshape", [last, "image_shape"], ["image"]))
            last = "image"
        if dims == PRODUCT:
            nodes.append(onnx.node("MatMul", [last, f"w{index}"], [f"product{index}"]))
            last = f"product{index}"
        else:
            nodes.append(onnx.node("Conv", [last, f"w{index}"], [f"conv{index}"], pads=[1, 1, 1, 1]))
            last = f"conv{index}"
        if index % 4 == 3 and index + 1 < len(tensors):
            nodes.append(onnx.node("Relu", [last], [f"{last}.relu"]))
            last += ".relu"
    shape = onnx.tensor("image_shape", onnx.INT64, [4], np.array([1, CHANNELS, 2, 2], "<i8").tobytes())
    head = onnx.graph(nodes, [onnx.value_info("x", onnx.FLOAT, [1, WIDTH])],
                      [onnx.value_info(last, onnx.FLOAT, [1, CHANNELS, 2, 2])], [shape])

    # Each weight is an initializer field of the graph; its header is written first, then, when stored inline, its data.
    location = path.name + ".data"
    prefixes, offset = [], 0
    for index, (dims, size) in enumerate(tensors):
        if external:
            message = onnx.tensor(f"w{index}", onnx.FLOAT, dims,
                                  external={"location": location, "offset": offset, "length": size})
            prefixes.append(onnx.field(5, message))
        else:
            message = onnx.tensor(f"w{index}", onnx.FLOAT, dims) + onnx.varint(9 << 3 | 2) + onnx.varint(size)
            prefixes.append(onnx.varint(5 << 3 | 2) + onnx.varint(len(message) + size) + message)
        offset += size
    length = len(head) + sum(map(len, prefixes)) + (0 if external else offset)
    assert length < 1 << 31, "a protobuf must stay below 2 GiB"
    with contextlib.ExitStack() as files:
        file = files.enter_context(open(path, "wb"))
        data = files.enter_context(open(path.with_name(location), "wb")) if external else file
        file.write(onnx.model(None) + onnx.varint(7 << 3 | 2) + onnx.varint(length) + head)
        for index, (prefix, (dims, _)) in enumerate(zip(prefixes, tensors)):
            file.write(prefix)
            data.write(weights(seed, index, dims))
    return offset
