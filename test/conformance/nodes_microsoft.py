"""Cases for com.microsoft: attention, fused operators, normalizations."""
import math

import numpy as np

from node_cases import case, refused, values

MS = "com.microsoft"


def ms(name, op, inputs, outputs=("y",), **attributes):
    case(name, op, inputs, list(outputs), domain=MS, **attributes)


def erf_gelu(x):
    return np.vectorize(lambda v: v * 0.5 * (1 + math.erf(v / math.sqrt(2))))(x.astype("f8")).astype("f4")


def attend(q, k, v):
    """NumPy reference for attention: inputs [batch, tokens, heads, size], result [batch, tokens, heads * size]."""
    scores = np.einsum("bsnh,btnh->bnst", q.astype("f8"), k) / math.sqrt(q.shape[3])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bnst,btnh->bsnh", shares / shares.sum(-1, keepdims=True), v)
    return y.reshape(*y.shape[:2], -1).astype("f4")


def convolve(x, w):
    """NumPy reference for a convolution without padding: x [batch, height, width, channels], w [count, channels, rows, columns]."""
    rows, columns = x.shape[1] - w.shape[2] + 1, x.shape[2] - w.shape[3] + 1
    return sum(np.einsum("bhwc,mc->bhwm", x[:, i:i + rows, j:j + columns], w[:, :, i, j]) for i in range(w.shape[2])
               for j in range(w.shape[3]))


X = values(2, 3, 8, seed=1)
ms("Gelu", "Gelu", {"x": X})
ms("BiasGelu", "BiasGelu", {"x": X, "B": values(8)})
ms("FastGelu", "FastGelu", {"x": X})
ms("FastGelu with bias", "FastGelu", {"x": X, "b": values(8)})
ms("QuickGelu", "QuickGelu", {"x": X})
ms("QuickGelu alpha", "QuickGelu", {"x": X}, alpha=0.5)
SUM = X + values(8)
ms("BiasSplitGelu", "BiasSplitGelu", {"x": X, "B": values(8)}, expected=[SUM[..., :4] * erf_gelu(SUM[..., 4:])])
ms("BiasAdd", "BiasAdd", {"x": X, "B": values(8), "z": values(2, 3, 8, seed=4)}, expected=[SUM + values(2, 3, 8, seed=4)])

# ---- normalizations
case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", {"x": X, "S": values(8, seed=2)}, ["y"], epsilon=1e-3)
case("SimplifiedLayerNormalization, output inv_std_var", "SimplifiedLayerNormalization", {"x": X, "S": values(8, seed=2)}, ["y", "inv"])
case("SimplifiedLayerNormalization stash_type", "SimplifiedLayerNormalization", {"x": X, "S": values(8, seed=2)}, ["y"], axis=-1, stash_type=1)
SKIP = {"x": X, "s": values(2, 3, 8, seed=6), "G": values(8, seed=2), "B": values(8, seed=3)}
ms("SkipLayerNormalization", "SkipLayerNormalization", SKIP, epsilon=1e-3)
ms("SkipLayerNormalization bias, sum", "SkipLayerNormalization", SKIP | {"Bias": values(8, seed=5)}, ["y", "", "", "sum"])
ms("SkipLayerNormalization without beta", "SkipLayerNormalization", SKIP | {"B": None})
ms("SkipLayerNormalization, skip broadcasts over the batch", "SkipLayerNormalization", SKIP | {"s": values(3, 8, seed=6)})
SIMPLE = {k: SKIP[k] for k in ("x", "s", "G")}
ms("SkipSimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", SIMPLE, epsilon=1e-3)
ms("SkipSimplifiedLayerNormalization bias, sum", "SkipSimplifiedLayerNormalization", SIMPLE | {"Bias": values(8, seed=5)},
   ["y", "", "", "sum"])
EMBED = {"i": np.array([[1, 4, 2], [3, 0, 0]], "i4"), "t": np.array([[0, 1, 1], [0, 0, 1]], "i4"), "W": values(5, 8), "P": values(6, 8, seed=1),
         "T": values(2, 8, seed=2), "G": values(8, seed=3), "B": values(8, seed=4)}
ms("EmbedLayerNormalization", "EmbedLayerNormalization", EMBED | {"m": np.array([[1, 1, 1], [1, 0, 0]], "i4")}, ["y", "mask:i4"])
ms("EmbedLayerNormalization, position_ids and embedding_sum without mask", "EmbedLayerNormalization",
   EMBED | {"m": None, "p": np.array([[2, 1, 0], [5, 4, 3]], "i4")}, ["y", "mask:i4", "sum"])
ms("EmbedLayerNormalization without segment_ids", "EmbedLayerNormalization", EMBED | {"t": None, "T": None}, ["y", "mask:i4"], epsilon=1e-3)

# ---- products
for name, attributes in (("Relu", {"activation": "Relu"}), ("LeakyRelu", {"activation": "LeakyRelu", "activation_params": [0.3]}),
                         ("Clip", {"activation": "Clip", "activation_params": [-1.0, 2.0]}), ("Sigmoid", {"activation": "Sigmoid"}),
                         ("Tanh", {"activation": "Tanh"}), ("HardSigmoid", {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]})):
    ms(f"FusedConv {name}", "FusedConv", {"x": values(1, 4, 6, 5), "W": values(6, 2, 3, 3, seed=1), "B": values(6)}, group=2,
       pads=[1, 1, 1, 1], strides=[2, 1], **attributes)
ms("FusedConv, addend Z before the activation", "FusedConv",
   {"x": values(1, 4, 6, 5), "W": values(6, 4, 3, 3, seed=1), "B": values(6), "z": values(1, 6, 4, 3, seed=8)}, activation="Relu")
IMAGE, KERNEL = values(1, 6, 5, 4), values(6, 4, 3, 2, seed=1)
CONVOLVED = convolve(IMAGE, KERNEL) + values(6)
ms("NhwcConv", "NhwcConv", {"x": IMAGE, "W": KERNEL, "B": values(6)}, expected=[CONVOLVED])
ms("NhwcFusedConv", "NhwcFusedConv", {"x": IMAGE, "W": KERNEL, "B": values(6), "z": CONVOLVED}, activation="Relu",
   expected=[np.maximum(2 * CONVOLVED, 0)])
POOLED = values(1, 5, 4, 3, step=9, dtype="i1")
ms("NhwcMaxPool", "NhwcMaxPool", {"x": POOLED}, ["y:i1"], kernel_shape=[2, 2],
   expected=[np.max([POOLED[:, i:i + 4, j:j + 3] for i in (0, 1) for j in (0, 1)], axis=0)])
GROUPED = IMAGE.reshape(1, 30, 2, 2).astype("f8")
GROUPED = ((GROUPED - GROUPED.mean((1, 3), keepdims=True)) / np.sqrt(GROUPED.var((1, 3), keepdims=True) + 1e-5)).reshape(IMAGE.shape)
GROUPED = (GROUPED * values(4, seed=2) + values(4, seed=3)).astype("f4")
for activation, y in ((0, GROUPED), (1, GROUPED / (1 + np.exp(-GROUPED)))):
    ms(f"GroupNorm activation={activation}", "GroupNorm", {"x": IMAGE, "G": values(4, seed=2), "B": values(4, seed=3)}, groups=2,
       activation=activation, expected=[y])
for trans in ((0, 0), (1, 0), (0, 1)):
    ms(f"FusedMatMul {trans}", "FusedMatMul", {"a": values(2, 4, 3) if trans[0] else values(2, 3, 4),
                                               "b": values(2, 5, 4, seed=1) if trans[1] else values(2, 4, 5, seed=1)},
       transA=trans[0], transB=trans[1], alpha=0.5)
ms("FusedMatMul transBatchA", "FusedMatMul", {"a": values(3, 2, 4), "b": values(2, 4, 5, seed=1)}, transBatchA=1)
ms("FusedMatMul transBatchB transB", "FusedMatMul", {"a": values(2, 3, 4), "b": values(5, 2, 4, seed=1)}, transBatchB=1, transB=1)
PRODUCT = values(2, 4, 3).swapaxes(1, 2) @ values(2, 4, 5, seed=1) / 2
for name, params, y in (("Relu", {}, np.maximum(PRODUCT, 0)), ("LeakyRelu", {"activation_alpha": 0.3}, np.where(PRODUCT < 0, 0.3, 1) * PRODUCT)):
    ms(f"FusedMatMulActivation {name}", "FusedMatMulActivation", {"a": values(2, 4, 3), "b": values(2, 4, 5, seed=1)}, transA=1, alpha=0.5,
       activation=name, **params, expected=[y.astype("f4")])
for bias in (None, values(5)):
    PRODUCT = values(3, 4) @ values(4, 5, seed=1) + (0 if bias is None else bias)
    ms(f"GemmFastGelu{'' if bias is None else ' with bias'}", "GemmFastGelu", {"x": values(3, 4), "W": values(4, 5, seed=1), "b": bias},
       expected=[PRODUCT / 2 * (1 + np.tanh(np.sqrt(np.float32(2 / np.pi)) * (PRODUCT + np.float32(0.044715) * PRODUCT ** 3)))])
ms("TransposeMatMul", "TransposeMatMul", {"a": values(2, 4, 3), "b": values(2, 4, 5, seed=1)}, transA=1)
for name, attributes in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.3}), ("Tanh", {}), ("Sigmoid", {})):
    ms(f"FusedGemm {name}", "FusedGemm", {"a": values(4, 3), "b": values(4, 5, seed=1), "c": values(5)}, alpha=0.5, beta=2.0, transA=1,
       activation=name, **attributes)

# ---- operators adopted by ai.onnx
ms("GridSample", "GridSample", {"x": values(1, 2, 4, 4), "g": values(1, 3, 3, 2, step=0.2)}, align_corners=1)
ms("GridSample border nearest", "GridSample", {"x": values(1, 2, 4, 4), "g": values(1, 3, 3, 2, step=0.23)}, mode="nearest",
   padding_mode="border")
ms("GridSample bicubic reflection", "GridSample", {"x": values(1, 2, 5, 5), "g": values(1, 3, 3, 2, step=0.23)}, mode="bicubic",
   padding_mode="reflection")
MATRIX = values(2, 3, 3, seed=2, step=0.1) + 3 * np.eye(3, dtype="f4")
ms("Inverse", "Inverse", {"x": MATRIX})
ms("Inverse of a single matrix", "Inverse", {"x": MATRIX[0]})
ms("Inverse that requires pivoting", "Inverse", {"x": np.array([[0, 2, 1], [1, 0, 0], [3, 0, 1]], "f4")})
ms("Inverse 5", "Inverse", {"x": values(2, 1, 5, 5, seed=3) + 4 * np.eye(5, dtype="f4")})
ms("Trilu", "Trilu", {"x": values(3, 4)}, upper=0)
ms("Pad", "Pad", {"x": values(2, 3), "P": np.array([0, 1, 2, 0], "i8"), "V": np.array([0.5], "f4")})
ms("Range", "Range", {"A": np.array(1, "f4"), "B": np.array(7, "f4"), "C": np.array(2, "f4")})
ms("ExpandDims", "ExpandDims", {"x": values(2, 3), "A": np.array(-1, "i4")})

# ---- rotary embeddings
CACHE = {"C": np.cos(values(10, 4, seed=1)), "S": np.sin(values(10, 4, seed=1))}
FLAT, FOUR = values(2, 3, 16, seed=2), values(2, 2, 3, 8, seed=2)
OFFSET, IDS = np.array([2], "i8"), np.array([[0, 1, 2], [5, 4, 9]], "i8")
for name, x in (("three dimensions", FLAT), ("four dimensions", FOUR)):
    for ids in (OFFSET, IDS):
        for interleaved in (0, 1):
            ms(f"RotaryEmbedding {name} {'offset' if ids is OFFSET else 'positions'} interleaved={interleaved}", "RotaryEmbedding",
               {"x": x, "p": ids} | CACHE, interleaved=interleaved)
ms("RotaryEmbedding rotary_embedding_dim", "RotaryEmbedding", {"x": FLAT, "p": IDS, "C": CACHE["C"][:, :2], "S": CACHE["S"][:, :2]}, num_heads=2,
   rotary_embedding_dim=4)
ms("RotaryEmbedding num_heads", "RotaryEmbedding", {"x": FLAT, "p": IDS} | CACHE, num_heads=2)

# ---- Attention
ATTENTION = {"x": values(2, 3, 8, seed=1), "W": values(8, 24, seed=2, step=0.125), "B": values(24, seed=3)}
MASKS = {"none": None, "end positions": np.array([2, 3], "i4"), "end and start positions": np.array([2, 3, 1, 0], "i4"),
         "of two dimensions": np.array([[1, 1, 0], [0, 1, 1]], "i4"),
         "of three dimensions": np.array([[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 1, 0], [0, 1, 1], [1, 0, 1]]], "i4")}
for name, mask in MASKS.items():
    for unidirectional in (0, 1):
        ms(f"Attention mask {name}, unidirectional={unidirectional}", "Attention", ATTENTION | {"m": mask}, num_heads=2,
           unidirectional=unidirectional)
ms("Attention scale, mask_filter_value", "Attention", ATTENTION | {"m": MASKS["of two dimensions"]}, num_heads=2, scale=0.3, mask_filter_value=-5.0)
for unidirectional in (0, 1):  # the last mask excludes each key twice, but never all keys
    ms(f"Attention mask_filter_value=-3.4e38, unidirectional={unidirectional}", "Attention",
       ATTENTION | {"m": np.array([[1, 1, 0], [1, 0, 1]], "i4")}, num_heads=2, unidirectional=unidirectional, mask_filter_value=-3.4e38)
ms("Attention qkv_hidden_sizes", "Attention", {"x": ATTENTION["x"], "W": values(8, 20, seed=2), "B": values(20, seed=3)}, num_heads=2,
   qkv_hidden_sizes=[8, 8, 4])
ms("Attention attention_bias", "Attention", ATTENTION | {"m": None, "past": None, "bias": values(2, 2, 3, 3, seed=5)}, num_heads=2)
ms("Attention attention_bias broadcast", "Attention", ATTENTION | {"m": None, "past": None, "bias": values(1, 2, 3, 3, seed=5)}, num_heads=2)
PAST = values(2, 2, 2, 4, 4, seed=7)
for unidirectional in (0, 1):
    ms(f"Attention past, unidirectional={unidirectional}", "Attention", ATTENTION | {"m": None, "past": PAST}, ["y", "present"], num_heads=2,
       unidirectional=unidirectional)
ms("Attention past, mask", "Attention", ATTENTION | {"m": np.array([[1, 1, 0, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1, 1]], "i4"), "past": PAST},
   ["y", "present"], num_heads=2)

# ---- MultiHeadAttention
MHA = {"q": values(2, 3, 8, seed=1), "k": values(2, 4, 8, seed=2), "v": values(2, 4, 8, seed=3)}
KEYS = {"none": None, "end positions": np.array([2, 4], "i4"), "of two dimensions": np.array([[1, 1, 0, 0], [1, 1, 1, 1]], "i4"),
        "of three dimensions": np.stack([np.tril(np.ones((3, 4), "i4")), np.triu(np.ones((3, 4), "i4"))])}
for name, mask in KEYS.items():
    ms(f"MultiHeadAttention mask {name}", "MultiHeadAttention", MHA | {"B": None, "m": mask}, num_heads=2)
ms("MultiHeadAttention bias", "MultiHeadAttention", MHA | {"B": values(24, seed=4)}, num_heads=2, scale=0.25)
ms("MultiHeadAttention, head size of values differs", "MultiHeadAttention", MHA | {"v": values(2, 4, 12, seed=3), "B": values(28, seed=4)}, num_heads=2)
ms("MultiHeadAttention attention_bias", "MultiHeadAttention", MHA | {"B": None, "m": None, "bias": values(2, 2, 3, 4, seed=5)}, num_heads=2)
ms("MultiHeadAttention attention_bias broadcast", "MultiHeadAttention", MHA | {"B": None, "m": None, "bias": values(1, 1, 3, 4, seed=5)},
   num_heads=2)
ms("MultiHeadAttention unidirectional", "MultiHeadAttention", MHA | {"k": values(2, 3, 8, seed=2), "v": values(2, 3, 8, seed=3)}, num_heads=2,
   unidirectional=1)
QKV, KV = values(2, 3, 2, 3, 4, seed=1), values(2, 4, 2, 2, 4, seed=2)
ms("MultiHeadAttention packed", "MultiHeadAttention", {"q": QKV}, num_heads=2, expected=[attend(*np.moveaxis(QKV, 3, 0))])
ms("MultiHeadAttention packed keys and values", "MultiHeadAttention", {"q": MHA["q"], "k": KV}, num_heads=2,
   expected=[attend(MHA["q"].reshape(2, 3, 2, 4), *np.moveaxis(KV, 3, 0))])
ms("MultiHeadAttention, keys of shape [B, N, T, H]", "MultiHeadAttention", {"q": MHA["q"], "k": values(2, 2, 4, 4, seed=2), "v": values(2, 2, 4, 4, seed=3)},
   num_heads=2)
for keys in ("k", "K"):  # onnxruntime adds only the part of the bias for queries
    ms(f"MultiHeadAttention, keys of shape [B, N, T, H] and a bias{', constant' * (keys == 'K')}", "MultiHeadAttention",
       {"q": MHA["q"], keys: values(2, 2, 4, 4, seed=2), keys.replace("k", "v").replace("K", "V"): values(2, 2, 4, 4, seed=3), "B": values(24, seed=4)},
       num_heads=2)
NO_PAST = {"PK": np.zeros((2, 2, 0, 4), "f4"), "PV": np.zeros((2, 2, 0, 4), "f4")}
ms("MultiHeadAttention past of length 0", "MultiHeadAttention", MHA | {"B": None, "m": None, "bias": None} | NO_PAST, ["y", "key", "value"], num_heads=2)
ms("Attention past of length 0", "Attention", ATTENTION | {"m": None, "Past": np.zeros((2, 2, 2, 0, 4), "f4")}, ["y", "present"], num_heads=2)
PASTS = {"pk": values(2, 2, 5, 4, seed=6), "pv": values(2, 2, 5, 4, seed=7)}
NEW = {"q": MHA["q"], "k": values(2, 3, 8, seed=2), "v": values(2, 3, 8, seed=3)}
for unidirectional in (0, 1):
    ms(f"MultiHeadAttention past, unidirectional={unidirectional}", "MultiHeadAttention", NEW | {"B": None, "m": None, "bias": None} | PASTS,
       ["y", "key", "value"], num_heads=2, unidirectional=unidirectional)
ms("MultiHeadAttention past, mask and bias", "MultiHeadAttention",
   NEW | {"B": values(24, seed=4), "m": np.array([[1] * 6 + [0] * 2, [0] + [1] * 7], "i4"), "bias": values(2, 2, 3, 8, seed=5)} | PASTS,
   ["y", "key", "value"], num_heads=2)
ms("MultiHeadAttention present and scores", "MultiHeadAttention", NEW, ["y", "key", "value", "qk"], num_heads=2)

# ---- GroupQueryAttention


def gqa(name, past=0, batch=2, queries=3, packed=False, rotary=False, lengths=None, tokens=None, more=None, outputs=("y", "key", "value"), **attributes):
    inputs = {"q": values(batch, queries, 64, seed=1), "k": values(batch, queries, 32, seed=2), "v": values(batch, queries, 32, seed=3)}
    if packed:
        inputs = {"q": values(batch, queries, 128, seed=1), "k": None, "v": None}
    total = past + queries
    inputs |= {"pk": values(batch, 2, past, 16, seed=4) if past else None, "pv": values(batch, 2, past, 16, seed=5) if past else None,
               "lengths" if lengths else "Lengths": np.array(lengths or [total - 1] * batch, "i4"),
               "Total": np.array(tokens or total, "i4")}
    if rotary:
        angles = values(16, 8, seed=6)
        inputs |= {"C": np.cos(angles), "S": np.sin(angles)}
    if more:
        inputs |= {k: None for k in ("C", "S", "p", "bias", "sink") if k not in inputs} | more
    inputs = dict(sorted(inputs.items(), key=lambda e: ["q", "k", "v", "pk", "pv", "lengths", "Lengths", "Total", "C", "S", "p", "bias", "sink"].index(e[0])))
    while inputs and list(inputs.values())[-1] is None:
        inputs.pop(list(inputs)[-1])
    ms(f"GroupQueryAttention {name}", "GroupQueryAttention", inputs, outputs, num_heads=4, kv_num_heads=2, **attributes)


gqa("first tokens")
gqa("packed", packed=True)
gqa("past", past=5, queries=1)
gqa("past, several tokens", past=5, batch=1)
gqa("rotary", rotary=True, do_rotary=1)
gqa("rotary interleaved", rotary=True, do_rotary=1, rotary_interleaved=1)
gqa("rotary, packed, past", rotary=True, do_rotary=1, packed=True, past=4, queries=1)
gqa("scale and softcap", scale=0.7, softcap=2.0)
gqa("local_window_size=1", local_window_size=1, queries=6)
gqa("window", local_window_size=3, queries=6)
gqa("window and past", local_window_size=3, queries=1, past=6)
gqa("smooth softmax", smooth_softmax=1)
gqa("attention bias", more={"bias": values(2, 4, 3, 3, seed=8)})
gqa("attention bias broadcast", more={"bias": values(1, 1, 3, 3, seed=8)})
gqa("positions", rotary=True, do_rotary=1, more={"p": np.array([[0, 1, 2], [3, 4, 5]], "i8")})
gqa("positions and past", past=4, queries=1, rotary=True, do_rotary=1, more={"p": np.array([[4], [2]], "i8")})
gqa("position_ids starting at 5", rotary=True, do_rotary=1, more={"p": np.array([[5, 6, 7], [5, 6, 7]], "i8")})
gqa("sink", more={"sink": values(4, seed=9)})
gqa("not causal", causal=0)
gqa("rows of different lengths", lengths=[1, 2])
gqa("pasts of different lengths", past=5, queries=1, lengths=[3, 5])
gqa("pasts of different lengths, rotary, window", past=5, queries=1, lengths=[3, 5], rotary=True, do_rotary=1, local_window_size=2)
gqa("full past, seqlens_k at run time", past=5, batch=1, lengths=[7])
gqa("past and present share a buffer", past=6, queries=1, lengths=[3, 4], tokens=5)
gqa("first tokens written to a buffer", past=6, lengths=[2, 2], tokens=3)
ms("GroupQueryAttention past of length 0", "GroupQueryAttention",
   {"q": values(2, 3, 64, seed=1), "k": values(2, 3, 32, seed=2), "v": values(2, 3, 32, seed=3), "PK": np.zeros((2, 2, 0, 16), "f4"),
    "PV": np.zeros((2, 2, 0, 16), "f4"), "L": np.array([2, 2], "i4"), "T": np.array(3, "i4")}, ["y", "key", "value"], num_heads=4, kv_num_heads=2)

# ---- refused
# As in onnxruntime, an omitted input must have an empty name; tensors of size 0 or 1 are not accepted as placeholders.
for size in (0, 1):
    for key, value, packed in (("k", "v", 128), ("K", "V", 128), ("k", "v", 64)):
        refused(f"GroupQueryAttention keys {key} of shape [{size}], query width {packed}", f"key is fp32 [{size}], expected 3 dimensions",
                "GroupQueryAttention", {"q": values(2, 3, packed), key: np.zeros(size, "f4"), value: np.zeros(size, "f4"), "pk": None, "pv": None,
                                        "L": np.array([2, 2], "i4"), "T": np.array(3, "i4")}, ["y"], domain=MS, num_heads=4, kv_num_heads=2)
    for past in ("p", "P"):
        refused(f"GroupQueryAttention past {past} of shape [{size}]", f"past_key is fp32 [{size}], expected 4 dimensions", "GroupQueryAttention",
                {"q": values(2, 3, 64), "k": values(2, 3, 32), "v": values(2, 3, 32), f"{past}k": np.zeros(size, "f4"), f"{past}v": np.zeros(size, "f4"),
                 "L": np.array([2, 2], "i4"), "T": np.array(3, "i4")}, ["y", "key", "value"], domain=MS, num_heads=4, kv_num_heads=2)
    refused(f"MultiHeadAttention keys of shape [{size}]", f"key is fp32 [{size}]", "MultiHeadAttention",
            {"q": MHA["q"], "k": np.zeros(size, "f4"), "v": np.zeros(size, "f4")}, ["y"], domain=MS, num_heads=2)
    refused(f"MultiHeadAttention bias of shape [{size}]", f"bias has {size} elements", "MultiHeadAttention", MHA | {"B": np.zeros(size, "f4")}, ["y"],
            domain=MS, num_heads=2)
    refused(f"Attention past of shape [{size}]", f"past is fp32 [{size}], expected 5 dimensions", "Attention",
            ATTENTION | {"m": None, "past": np.zeros(size, "f4")}, ["y", "present"], domain=MS, num_heads=2)
refused("MultiHeadAttention queries of two dimensions", "query is fp32 [3, 8]", "MultiHeadAttention", MHA | {"q": values(3, 8)}, ["y"], domain=MS,
        num_heads=2)
refused("GroupQueryAttention keys without values", "key and value must be given together", "GroupQueryAttention",
        {"q": values(2, 3, 64), "k": values(2, 3, 32), "v": None, "pk": None, "pv": None, "L": np.array([2, 2], "i4"), "T": np.array(3, "i4")}, ["y"],
        domain=MS, num_heads=4, kv_num_heads=2)
refused("GroupQueryAttention local_window_size", "local_window_size=0", "GroupQueryAttention",
        {"q": values(1, 3, 32), "k": values(1, 3, 16), "v": values(1, 3, 16), "pk": None, "pv": None, "L": np.array([2], "i4"),
         "T": np.array(3, "i4")}, ["y"], domain=MS, num_heads=2, kv_num_heads=1, local_window_size=0)
refused("Attention do_rotary", "do_rotary", "Attention", ATTENTION, ["y"], domain=MS, num_heads=2, do_rotary=1)
refused("Attention past_present_share_buffer", "past_present_share_buffer", "Attention", ATTENTION, ["y"], domain=MS, num_heads=2,
        past_present_share_buffer=1)
refused("FusedConv activation", "activation=\"Mish\"", "FusedConv", {"x": values(1, 4, 6, 5), "W": values(6, 4, 3, 3)}, ["y"], domain=MS,
        activation="Mish")
refused("SimplifiedLayerNormalization axis", "axis", "SimplifiedLayerNormalization", {"x": X, "S": values(3, 8)}, ["y"], axis=1)
