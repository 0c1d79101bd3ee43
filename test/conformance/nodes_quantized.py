"""Cases for quantized tensors: all types, schemes and operators of onnxruntime's CPU provider."""
import numpy as np

from node_cases import Packed, case, integers, refused, values

MS = "com.microsoft"
INT4, UINT4 = 22, 21


def f(*numbers):
    return np.array(numbers, "f4")


X = values(2, 3, 4, seed=1, step=0.37)
ZERO = {"u1": 7, "i1": -3, "u2": 40000, "i2": -300, "i4": 0}

# ---- QuantizeLinear and DequantizeLinear
for dtype in ("u1", "i1", "u2", "i2"):
    opset = 21 if dtype in ("u2", "i2") else 13
    scale = 0.01 if dtype in ("u1", "i1") else 0.0001
    zero = np.array(ZERO[dtype], dtype)
    case(f"QuantizeLinear {dtype}", "QuantizeLinear", {"x": X, "Scale": np.array(scale, "f4"), "Zero": zero}, [f"y:{dtype}"], opset)
    case(f"QuantizeLinear {dtype}, scale and zero point at run time", "QuantizeLinear", {"x": X, "scale": np.array(scale, "f4"), "zero": zero},
         [f"y:{dtype}"], opset)
    case(f"QuantizeLinear {dtype}, axis", "QuantizeLinear", {"x": X, "Scale": f(scale, scale * 2, scale * 3),
                                                            "Zero": np.array([0, 5, zero], dtype)}, [f"y:{dtype}"], opset, axis=-2)
for dtype in ("u1", "i1", "u2", "i2", "i4"):
    opset = 21 if dtype in ("u2", "i2") else 13
    x, zero = integers(2, 3, 4, dtype=dtype), np.array(ZERO[dtype], dtype)
    if dtype == "i4":
        x = x // 512  # keeps the sums exact in fp32
    case(f"DequantizeLinear {dtype}", "DequantizeLinear", {"x": x, "Scale": np.array(0.125, "f4"), "Zero": zero}, ["y"], opset)
    case(f"DequantizeLinear {dtype}, scale and zero point at run time", "DequantizeLinear", {"x": x, "scale": np.array(0.125, "f4"), "zero": zero},
         ["y"], opset)
    case(f"DequantizeLinear {dtype}, axis", "DequantizeLinear",
         {"x": x, "Scale": f(0.5, 0.03, 0.1, 0.7), "Zero": np.array([0, 5, zero, 1] if dtype != "i4" else [0] * 4, dtype)}, ["y"], opset,
         axis=2)
    case(f"DequantizeLinear {dtype}, no zero point", "DequantizeLinear", {"x": x, "Scale": np.array(0.125, "f4")}, ["y"], opset)
case("QuantizeLinear, no zero point", "QuantizeLinear", {"x": X, "Scale": np.array(0.02, "f4")}, ["y:u1"], 13)
case("QuantizeLinear output_dtype", "QuantizeLinear", {"x": X, "Scale": np.array(0.02, "f4")}, ["y:i1"], 21, output_dtype=3)
case("QuantizeLinear, scale of shape [1]", "QuantizeLinear", {"x": X, "Scale": f(0.02), "Zero": np.array([3], "u1")}, ["y:u1"], 13)
case("QuantizeLinear ties", "QuantizeLinear", {"x": f(0.5, 1.5, 2.5, -0.5, -1.5, 300, -300), "Scale": np.array(1, "f4"),
                                               "Zero": np.array(1, "i1")}, ["y:i1"], 13)
case("QuantizeLinear fp16", "QuantizeLinear", {"x": X.astype("f2"), "Scale": np.array(0.0625, "f2"), "Zero": np.array(9, "u1")},
     ["y:u1"], 19)
case("DequantizeLinear fp16", "DequantizeLinear", {"x": integers(4, 3), "Scale": np.array(0.0625, "f2"), "Zero": np.array(9, "u1")},
     ["y:f2"], 19)
BLOCK_SCALES = values(2, 2, 4, seed=2) + 2
case("QuantizeLinear blocked", "QuantizeLinear", {"x": values(2, 6, 4, step=0.5), "Scale": BLOCK_SCALES / 64,
                                                  "Zero": integers(2, 2, 4, seed=3) // 2}, ["y:u1"], 21, axis=1, block_size=3)
case("QuantizeLinear blocked, incomplete last block", "QuantizeLinear", {"x": values(2, 5, 4, step=0.5), "Scale": BLOCK_SCALES / 64},
     ["y:u1"], 21, axis=1, block_size=3)
case("DequantizeLinear blocked", "DequantizeLinear", {"x": integers(2, 6, 4), "Scale": BLOCK_SCALES, "Zero": integers(2, 2, 4, seed=3)},
     ["y"], 21, axis=1, block_size=3)
case("DequantizeLinear blocked, at run time, incomplete last block", "DequantizeLinear", {"x": integers(2, 5, 4), "scale": BLOCK_SCALES},
     ["y"], 21, axis=1, block_size=3)
for name, kind in (("int4", INT4), ("uint4", UINT4)):
    case(f"DequantizeLinear {name} constant", "DequantizeLinear",
         {"X": Packed(kind, (2, 6), bytes([0x10, 0x73, 0xf8, 0x52, 0x9a, 0xbc])), "s": np.array(0.5, "f4")}, ["y"], 21)
    case(f"DequantizeLinear {name} constant, blocked", "DequantizeLinear",
         {"X": Packed(kind, (2, 6), bytes([0x10, 0x73, 0xf8, 0x52, 0x9a, 0xbc])), "s": values(2, 2) + 2,
          "Zero": Packed(kind, (2, 2), bytes([0x21, 0x73]))}, ["y"], 21, axis=1, block_size=3)
for dtype in ("u1", "i1"):
    case(f"com.microsoft QuantizeLinear {dtype}", "QuantizeLinear", {"x": X, "Scale": np.array(0.02, "f4"), "Zero": np.array(7, dtype)},
         [f"y:{dtype}"], domain=MS)
    case(f"com.microsoft DequantizeLinear {dtype}", "DequantizeLinear",
         {"x": integers(2, 3, dtype=dtype), "Scale": np.array(0.02, "f4"), "Zero": np.array(7, dtype)}, ["y"], domain=MS)
for name, x in (("of mixed signs", X), ("of positive numbers", np.abs(X) + 0.3), ("of negative numbers", -np.abs(X) - 0.3), ("of zeros", X * 0)):
    case(f"DynamicQuantizeLinear {name}", "DynamicQuantizeLinear", {"x": x}, ["y:u1", "scale", "zero:u1"], 13)

# ---- integer products
for a, b in (("u1", "u1"), ("u1", "i1"), ("i1", "i1"), ("i1", "u1")):
    case(f"MatMulInteger {a} {b}", "MatMulInteger",
         {"a": integers(2, 3, 40, dtype=a), "b": integers(2, 40, 5, dtype=b, seed=1), "Azero": np.array(3, a), "Bzero": np.array(4, b)},
         ["y:i4"], 13)
case("MatMulInteger, long sums", "MatMulInteger", {"a": integers(2, 3000), "B": integers(3000, 4, seed=1)}, ["y:i4"], 13)
case("MatMulInteger, zero point per column", "MatMulInteger",
     {"a": integers(3, 8), "B": integers(8, 4, dtype="i1"), "Azero": np.array(3, "u1"), "Bzero": np.array([1, 2, -3, 4], "i1")}, ["y:i4"], 13)
case("MatMulInteger vectors", "MatMulInteger", {"a": integers(8), "b": integers(8, seed=1)}, ["y:i4"], 13)
for b in ("u1", "i1"):
    case(f"ConvInteger {b}", "ConvInteger", {"x": integers(1, 4, 6, 6), "W": integers(6, 2, 3, 3, dtype=b), "Xzero": np.array(100, "u1")},
         ["y:i4"], 13, group=2, pads=[1, 1, 1, 1], strides=[2, 1])
    case(f"QLinearConv {b}", "QLinearConv",
         {"x": integers(1, 4, 6, 6), "Xs": np.array(0.02, "f4"), "Xz": np.array(100, "u1"), "W": integers(6, 4, 3, 3, dtype=b),
          "Ws": np.array(0.01, "f4"), "Wz": np.array(0 if b == "i1" else 130, b), "Ys": np.array(0.7, "f4"), "Yz": np.array(90, "u1"),
          "B": np.arange(-300, 300, 100, dtype="i4")}, ["y:u1"], 13, pads=[1, 0, 1, 2], dilations=[1, 2])
case("QLinearConv, scale per channel", "QLinearConv",
     {"x": integers(1, 4, 6, 6, dtype="i1"), "Xs": np.array(0.02, "f4"), "Xz": np.array(10, "i1"), "W": integers(4, 1, 3, 3, dtype="i1"),
      "Ws": f(0.01, 0.02, 0.03, 0.04), "Wz": np.zeros(4, "i1"), "Ys": np.array(0.3, "f4"), "Yz": np.array(-9, "i1")}, ["y:i1"], 13, group=4)
case("QLinearConv, one dimension", "QLinearConv",
     {"x": integers(2, 3, 9), "Xs": np.array(0.02, "f4"), "Xz": np.array(10, "u1"), "W": integers(4, 3, 3, seed=4),
      "Ws": np.array(0.01, "f4"), "Wz": np.array(128, "u1"), "Ys": np.array(0.3, "f4"), "Yz": np.array(128, "u1")}, ["y:u1"], 13,
     auto_pad="SAME_UPPER", strides=[2])
case("com.microsoft QLinearConv, channels last", "QLinearConv",
     {"x": integers(1, 6, 6, 4), "Xs": np.array(0.02, "f4"), "Xz": np.array(10, "u1"), "W": integers(8, 4, 3, 3, seed=4),
      "Ws": np.array(0.01, "f4"), "Wz": np.array(128, "u1"), "Ys": np.array(0.3, "f4"), "Yz": np.array(128, "u1")}, ["y:u1"], domain=MS,
     channels_last=1)
for a, b in (("u1", "u1"), ("u1", "i1"), ("i1", "i1")):
    case(f"QLinearMatMul {a} {b}", "QLinearMatMul",
         {"a": integers(2, 3, 16, dtype=a), "As": np.array(0.03, "f4"), "Az": np.array(5, a), "b": integers(2, 16, 4, dtype=b, seed=2),
          "Bs": np.array(0.02, "f4"), "Bz": np.array(-5 if b == "i1" else 120, b), "Ys": np.array(0.9, "f4"), "Yz": np.array(40, a)},
         [f"y:{a}"], 13)
case("QLinearMatMul, scale per column", "QLinearMatMul",
     {"a": integers(3, 16), "As": np.array(0.03, "f4"), "Az": np.array(5, "u1"), "B": integers(16, 4, dtype="i1", seed=2),
      "Bs": f(0.02, 0.03, 0.04, 0.05), "Bz": np.array([0, 0, 0, 0], "i1"), "Ys": np.array(0.9, "f4"), "Yz": np.array(40, "u1")},
     ["y:u1"], 13)
case("MatMulIntegerToFloat", "MatMulIntegerToFloat",
     {"a": integers(3, 16), "B": integers(16, 4, seed=2), "As": np.array(0.03, "f4"), "Bs": np.array(0.02, "f4"), "Az": np.array(5, "u1"),
      "Bz": np.array(120, "u1"), "Bias": values(4)}, ["y"], domain=MS)
case("MatMulIntegerToFloat, scale per column", "MatMulIntegerToFloat",
     {"a": integers(2, 3, 16), "B": integers(16, 4, dtype="i1", seed=2), "As": np.array(0.03, "f4"), "Bs": f(0.02, 0.03, 0.04, 0.05),
      "Az": np.array(5, "u1"), "Bz": np.array([1, 2, 3, 4], "i1")}, ["y"], domain=MS)
for b, zero in (("u1", 120), ("i1", None)):
    case(f"DynamicQuantizeMatMul {b}", "DynamicQuantizeMatMul",
         {"a": values(3, 16), "B": integers(16, 4, dtype=b, seed=2), "Bs": np.array(0.02, "f4"),
          "Bz": None if zero is None else np.array(zero, b), "Bias": values(4)}, ["y"], domain=MS)
case("DynamicQuantizeMatMul, scale per column", "DynamicQuantizeMatMul",
     {"a": values(3, 16), "B": integers(16, 4, dtype="i1", seed=2), "Bs": f(0.02, 0.03, 0.04, 0.05), "Bz": np.array([1, 2, 3, 4], "i1")},
     ["y"], domain=MS)
QGEMM = {"a": integers(3, 8), "As": np.array(0.03, "f4"), "Az": np.array(5, "u1"), "B": integers(8, 4, dtype="i1", seed=2),
         "Bs": np.array(0.02, "f4"), "Bz": np.array(0, "i1"), "C": np.array([100, -200, 3000, 0], "i4")}
case("QGemm with float output", "QGemm", QGEMM, ["y"], domain=MS, alpha=0.5)
case("QGemm", "QGemm", QGEMM | {"Ys": np.array(0.4, "f4"), "Yz": np.array(50, "u1")}, ["y:u1"], domain=MS, alpha=1.0)
case("QGemm transposed, scale per column", "QGemm",
     QGEMM | {"a": integers(8, 3), "B": integers(4, 8, dtype="i1", seed=2), "Bs": f(0.02, 0.03, 0.04, 0.05), "Bz": np.zeros(4, "i1"),
              "Ys": np.array(0.4, "f4"), "Yz": np.array(50, "u1")}, ["y:u1"], domain=MS, transA=1, transB=1)
FACTORS = [integers(3, 4), integers(3, 4, seed=3)]
case("MulInteger", "MulInteger", {"a": FACTORS[0], "Az": np.array(5, "u1"), "b": FACTORS[1], "Bz": np.array(7, "u1")}, ["y:i4"], domain=MS,
     expected=[(FACTORS[0].astype("i4") - 5) * (FACTORS[1].astype("i4") - 7)])
TERMS = integers(2, 3, 4, dtype="i1")
for keep in (0, 1):
    case(f"ReduceSumInteger keepdims={keep}", "ReduceSumInteger", {"x": TERMS}, ["y:i4"], domain=MS, axes=[0, 2], keepdims=keep,
         expected=[TERMS.sum((0, 2), keepdims=bool(keep), dtype="i4")])
    case(f"QLinearReduceMean keepdims={keep}", "QLinearReduceMean",
         {"x": TERMS, "Xs": np.array(0.0313, "f4"), "Xz": np.array(-20, "i1"), "Ys": np.array(0.0207, "f4"), "Yz": np.array(30, "i1")},
         ["y:i1"], domain=MS, axes=[1], keepdims=keep,
         expected=[np.clip(np.rint((TERMS.astype("f8") + 20).mean(1, keepdims=bool(keep)) * 0.0313 / 0.0207) + 30, -128, 127).astype("i1")])

# ---- QLinear* of com.microsoft
for dtype, zeros in (("u1", (100, 60, 120)), ("i1", (-20, 30, 5))):
    a, b, c = (np.array(z, dtype) for z in zeros)
    s = [np.array(v, "f4") for v in (0.0313, 0.0207, 0.0511)]  # avoids ties between quantization steps
    x, y = integers(2, 3, 4, 4, dtype=dtype), integers(2, 3, 4, 4, dtype=dtype, seed=5)
    for op in ("QLinearAdd", "QLinearMul"):
        case(f"{op} {dtype}", op, {"x": x, "Xs": s[0], "Xz": a, "y": y, "Ys": s[1], "Yz": b, "Zs": s[2], "Zz": c}, [f"z:{dtype}"], domain=MS)
        case(f"{op} {dtype}, broadcast", op,
             {"x": x, "Xs": s[0], "Xz": a, "Y": y[:1, :, :1, :1], "Ys": s[1], "Yz": b, "Zs": s[2], "Zz": c}, [f"z:{dtype}"], domain=MS)
    one = {"x": x, "Xs": s[0], "Xz": a, "Ys": np.array(1 / 256, "f4"), "Yz": np.array(0 if dtype == "u1" else -128, dtype)}
    other = one | {"Ys": s[1], "Yz": b}
    case(f"QLinearSigmoid {dtype}", "QLinearSigmoid", one, [f"y:{dtype}"], domain=MS)
    case(f"QLinearLeakyRelu {dtype}", "QLinearLeakyRelu", other, [f"y:{dtype}"], domain=MS, alpha=0.2)
    case(f"QLinearSoftmax {dtype}", "QLinearSoftmax", one, [f"y:{dtype}"], domain=MS, axis=-1, others={"opset": 13})
    case(f"QLinearSoftmax {dtype}, opset 11", "QLinearSoftmax", one, [f"y:{dtype}"], domain=MS, axis=2, others={"opset": 11})
    case(f"QLinearAveragePool {dtype}", "QLinearAveragePool", other, [f"y:{dtype}"], domain=MS, kernel_shape=[3, 3], strides=[2, 1],
         pads=[1, 1, 1, 1])
    case(f"QLinearAveragePool {dtype}, channels last, count_include_pad", "QLinearAveragePool", other, [f"y:{dtype}"], domain=MS,
         kernel_shape=[3, 2], pads=[1, 1, 1, 0], count_include_pad=1, channels_last=1)
    case(f"QLinearGlobalAveragePool {dtype}", "QLinearGlobalAveragePool", other, [f"y:{dtype}"], domain=MS)
    case(f"QLinearGlobalAveragePool {dtype}, channels last", "QLinearGlobalAveragePool", other, [f"y:{dtype}"], domain=MS, channels_last=1)
    case(f"QLinearConcat {dtype}", "QLinearConcat",
         {"Os": s[2], "Oz": c, "x": x, "Xs": s[0], "Xz": a, "y": y, "Ys": s[1], "Yz": b}, [f"z:{dtype}"], domain=MS, axis=1)
    case(f"QLinearWhere {dtype}", "QLinearWhere",
         {"c": (x > 0) & (y > 3), "x": x, "Xs": s[0], "Xz": a, "y": y, "Ys": s[1], "Yz": b, "Zs": s[2], "Zz": c}, [f"z:{dtype}"], domain=MS)

# ---- block-quantized weights
def of_bytes(a, weights, scales, zeros=None, groups=None):
    """NumPy reference for a product with 8-bit weights in blocks of 16, following the operator's specification; onnxruntime's
    CPU provider supports only 4 bits."""
    weights = weights.reshape(len(weights), -1).astype("f8")
    block = np.arange(weights.shape[1]) // 16 if groups is None else groups
    scales = scales.reshape(len(weights), -1)
    zeros = np.full(scales.shape, 128.0) if zeros is None else zeros.astype("f8")
    return [(a.astype("f8") @ ((weights - zeros[:, block]) * scales[:, block]).T).astype("f4")]


for bits in (4, 8):
    per_byte = 8 // bits
    weights, scales = integers(6, 2, 16 // per_byte), values(6, 2, seed=1) / 4 + 0.5
    for name, zero in (("", None), (", zero points", integers(6, (2 + per_byte - 1) // per_byte, seed=4)),
                       (", float zero points", values(6, 2, seed=4) + 6)):
        a = values(2, 3, 32)
        case(f"MatMulNBits {bits} bits{name}", "MatMulNBits", {"a": a, "B": weights, "S": scales, "Z": zero}, ["y"], domain=MS, K=32, N=6,
             bits=bits, block_size=16, expected=of_bytes(a, weights, scales, zero) if bits == 8 and "float" in name else ())
    case(f"MatMulNBits {bits} bits, incomplete last block, bias", "MatMulNBits",
         {"a": values(3, 40), "B": integers(6, 3, 16 // per_byte), "S": values(18, seed=1) / 4 + 0.5, "Z": None, "G": None, "Bias": values(6)},
         ["y"], domain=MS, K=40, N=6, bits=bits, block_size=16)
    for order, groups in (("in order", np.arange(32, dtype="i4") // 16), ("out of order", np.arange(32, dtype="i4") % 2)):
        a, scales = values(3, 32), values(12, seed=1) / 4 + 0.5
        case(f"MatMulNBits {bits} bits, groups {order}", "MatMulNBits", {"a": a, "B": weights, "S": scales, "Z": None, "G": groups}, ["y"],
             domain=MS, K=32, N=6, bits=bits, block_size=16, expected=of_bytes(a, weights, scales, None, groups) if bits == 8 else ())
IDS = np.array([[0, 3, 2], [4, 1, 1]], "i4")
case("GatherBlockQuantized 4 bits packed in uint8", "GatherBlockQuantized",
     {"D": integers(5, 16), "i": IDS, "S": values(5, 2, seed=1) / 4 + 0.5}, ["y"], 21, domain=MS, block_size=16, bits=4)
case("GatherBlockQuantized 4 bits packed in uint8, zero points", "GatherBlockQuantized",
     {"D": integers(5, 16), "i": IDS.astype("i8"), "S": values(5, 2, seed=1) / 4 + 0.5, "Z": integers(5, 1, seed=9)}, ["y"], 21, domain=MS,
     block_size=16, bits=4)
case("GatherBlockQuantized 8 bits", "GatherBlockQuantized",
     {"D": integers(5, 32), "i": IDS, "S": values(5, 2, seed=1) / 4 + 0.5, "Z": integers(5, 2, seed=9)}, ["y"], 21, domain=MS,
     block_size=16, bits=8)
for name, kind in (("int4", INT4), ("uint4", UINT4)):
    packed = Packed(kind, (5, 32), integers(80, seed=2).tobytes())
    case(f"GatherBlockQuantized {name}", "GatherBlockQuantized", {"D": packed, "i": IDS, "S": values(5, 2, seed=1) / 4 + 0.5}, ["y"], 21,
         domain=MS, block_size=16)
    case(f"GatherBlockQuantized {name}, other axes, zero points", "GatherBlockQuantized",
         {"D": Packed(kind, (32, 5), packed.data), "i": IDS, "S": values(2, 5, seed=1) / 4 + 0.5, "Z": Packed(kind, (2, 5), bytes(range(5)))},
         ["y"], 21, domain=MS, block_size=16, gather_axis=1, quantize_axis=0)

# ---- refused
refused("MatMulNBits of 3 bits", "bits=3", "MatMulNBits",
        {"a": values(3, 32), "B": integers(6, 2, 6), "S": values(6, 2)}, ["y"], domain=MS, K=32, N=6, bits=3, block_size=16)
refused("MatMulNBits weight_prepacked", "weight_prepacked", "MatMulNBits",
        {"a": values(3, 32), "B": integers(6, 2, 8), "S": values(6, 2)}, ["y"], domain=MS, K=32, N=6, bits=4, block_size=16,
        weight_prepacked=1)
