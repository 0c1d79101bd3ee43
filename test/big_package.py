"""Writes a package of any size: a chain of square linear layers with fp16 weights or int4 blocks. Only a few megabytes are held
in memory.
"""
import pathlib
import random
import struct

import coreml_wire as wire

WIDTH, BLOCK = 4096, 32
PART_OF_FP16 = (BLOCK / 2 + 2) / (2 * BLOCK)  # size of int4 weights relative to fp16
FP16_ARRAY = 0x10010
SCALE = struct.pack("<H", 0x1BA7)  # 1 / sqrt(WIDTH) divided by the root mean square of -7 to 7 with two zeros, so that a layer preserves the size of x


def halves(count, random_bytes):
    """fp16 numbers of both signs with root mean square 1 / sqrt(WIDTH)."""
    out = bytearray(random_bytes(2 * count))
    out[1::2] = bytes((b & 0x80) | 0x20 + (b & 0x7F) % 6 for b in out[1::2])
    return bytes(out)


def nibbles(count, random_bytes):
    """int4 numbers from -7 to 7 with mean zero."""
    drop = bytes(b & (0x0F if b >> 4 == 8 else 0xFF) & (0xF0 if b & 15 == 8 else 0xFF) for b in range(256))
    return random_bytes(count // 2).translate(drop)


def write(path, megabytes, kind, batch):
    """Writes the package. `kind`: fp16 or int4. Returns the number of layers and the size of the weights in bytes."""
    path = pathlib.Path(path)
    random_bytes = random.Random(0).randbytes
    piece = halves(1 << 19, random_bytes) if kind == "fp16" else nibbles(1 << 21, random_bytes)
    parts = [(1, [WIDTH, WIDTH], 2 * WIDTH * WIDTH, piece)]
    if kind == "int4":
        scales = 2 * WIDTH * WIDTH // BLOCK
        parts = [(8, [WIDTH, WIDTH], WIDTH * WIDTH // 2, piece), (1, [WIDTH, WIDTH // BLOCK], scales, SCALE * (1 << 19))]
    layers = max(1, round(megabytes * 1e6 / sum(size for _, _, size, _ in parts)))
    x_type = wire.tensor_type(wire.FP16, [batch, WIDTH])
    (path / "Data" / "weights").mkdir(parents=True)
    operations, offset, last = [], 64, "x"
    with open(path / "Data" / "weights" / "weight.bin", "wb") as file:
        file.write(struct.pack("<II", layers * len(parts), 2) + bytes(56))
        for layer in range(layers):
            operands = []
            for dtype, dims, size, data in parts:
                file.write(wire.record(b"", dtype, offset, size=size))
                # Equal weights would be stored once by those who compress them.
                first = 2 * layer % len(data)
                data = data[first:] + data[:first]
                for _ in range(0, size, len(data)):
                    file.write(data)
                operands.append((wire.tensor_type(wire.INT4 if dtype == 8 else wire.FP16, dims), offset))
                offset += 64 + size
            weight, output = f"w{layer}", f"y{layer}"
            weight_type = wire.tensor_type(wire.FP16, [WIDTH, WIDTH])
            values = [wire.blob(*operand) for operand in operands]
            if kind == "fp16":
                operations.append(wire.const(weight, weight_type, values[0]))
            else:
                operations.append(wire.operation("constexpr_blockwise_shift_scale", {"data": values[0], "scale": values[1]},
                                                 [(weight, weight_type)], name=wire.string(weight)))
            operations.append(wire.operation("linear", {"x": last, "weight": weight}, [(output, x_type)],
                                             name=wire.string(output)))
            last = output
    function = wire.function(wire.block(operations, [last]), [("x", x_type)], opset="CoreML8")
    about = wire.description([wire.array_feature("x", [batch, WIDTH], FP16_ARRAY)],
                             [wire.array_feature(last, [batch, WIDTH], FP16_ARRAY)])
    (path / "Data" / "model.mlmodel").write_bytes(wire.model(about, wire.program({"main": function}), version=9))
    (path / "Manifest.json").write_text(wire.manifest())
    return layers, offset
