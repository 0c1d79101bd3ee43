"""Random nodes of recurrent layers, transforms, losses, attention and TfIdfVectorizer."""
import numpy as np

from graph import Unfit

ACTIVATIONS = {"Relu": {}, "Tanh": {}, "Sigmoid": {}, "Affine": {"alpha": 0.5, "beta": 0.25}, "LeakyRelu": {"alpha": 0.1},
               "ThresholdedRelu": {"alpha": 0.5}, "ScaledTanh": {"alpha": 0.9, "beta": 0.7}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
               "Elu": {"alpha": 0.7}, "Softsign": {}, "Softplus": {}}


def recurrent(g, op):
    gates, states = {"LSTM": (4, 2), "GRU": (3, 1), "RNN": (1, 1)}[op]
    length, batch, size, hidden = g.integer(1, 4), g.integer(1, 3), g.integer(1, 4), g.integer(1, 4)
    direction = g.one_of("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    x = g.input("f", (length, batch, size))
    inputs = [x, *[g.either("f", (ways, gates * hidden, n), constant=0.85) for n in (size, hidden)]]
    inputs.append(g.weights(ways, 2 * gates * hidden) if g.chance(0.7) else None)
    inputs.append(g.either("i", (batch,), 1, length) if g.chance(0.25) else None)
    with_states = g.chance(0.5)
    inputs += [g.either("f", (ways, batch, hidden), constant=0.3) if with_states else None for _ in range(states)]
    attributes = {"hidden_size": hidden, **({} if direction == "forward" and g.chance(0.5) else {"direction": direction})}
    if op == "LSTM":
        inputs.append(g.weights(ways, 3 * hidden) if g.chance(0.25) else None)
        if g.chance(0.15):
            attributes["input_forget"] = 1
    while inputs[-1] is None:
        inputs.pop()
    if op == "GRU":
        attributes.update(g.some(linear_before_reset=g.integer(0, 1)))
    if g.chance(0.3):
        each = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
        # the state must keep its position after the first gates
        names = [g.one_of("Sigmoid", "HardSigmoid") if i == 0 and each > 1 else g.one_of("Tanh", "Softsign", "Sigmoid")
                 if each > 1 else g.one_of(*ACTIVATIONS) for _ in range(ways) for i in range(each)]
        attributes["activations"] = names
        parameters = [ACTIVATIONS[n] for n in names]
        if any(parameters):
            if not all("alpha" in p and "beta" in p for p in parameters if p) or len({len(p) for p in parameters}) > 1:
                raise Unfit  # the assignment of parameters to activations is unambiguous only if all have the same number
            attributes["activation_alpha"] = [p["alpha"] for p in parameters]
            attributes["activation_beta"] = [p["beta"] for p in parameters]
    if g.chance(0.15):
        attributes["clip"] = g.one_of(0.5, 1.5)
    bound = 1.0 if "activations" not in attributes else 1e4
    state = ("f", (ways, batch, hidden), -bound, bound, False)
    outputs = [("f", (length, ways, batch, hidden), -bound, bound, False), state] + \
        ([("f", state[1], -8, 8, False)] if op == "LSTM" else [])
    if g.chance(0.3):
        outputs[0] = None
    elif g.chance(0.3):
        outputs = outputs[:1]
    g.node(op, inputs, *outputs, **attributes)


def dft(g, op):
    n, parts, batch = g.integer(2, 6), g.integer(1, 2), g.sizes(g.integer(1, 2), 1, 3)
    x = g.input("f", (*batch, n, parts))
    axis = x.rank - 2 if g.chance(0.6) or g.opset < 20 else g.integer(0, x.rank - 2)
    n = x.shape[axis]
    length = n if g.chance(0.7) else g.integer(2, 7)
    if n < 2:
        raise Unfit
    inverse = g.chance(0.3)
    one = g.integer(0, 1) if parts == 1 and not inverse else 0
    size = length // 2 + 1 if one else length
    shape = [size if i == axis else d for i, d in enumerate(x.shape[:-1])] + [2]
    attributes = {**({"onesided": 1} if one else {}), **({"inverse": 1} if inverse else {})}
    inputs = [x, None if length == n else g.scalar("l", length)]
    if g.opset >= 20:
        inputs.append(g.scalar("l", axis - x.rank if g.chance(0.5) else axis))
    else:
        attributes["axis"] = axis
    while inputs[-1] is None:
        inputs.pop()
    g.node(op, inputs, ("f", shape, -64, 64, False), **attributes)


def stft(g, op):
    frame, step = g.one_of(4, 8, 6), g.one_of(2, 4, 3)
    n = frame + step * g.integer(0, 3) + g.integer(0, 1)
    x = g.input("f", (g.integer(1, 2), n, 1))
    one = g.integer(0, 1)
    frames, bins = (n - frame) // step + 1, frame // 2 + 1 if one else frame
    inputs = [x, g.scalar("l", step), g.weights(frame, low=0.25, high=1) if g.chance(0.7) else None]
    if inputs[-1] is None or g.chance(0.3):
        inputs.append(g.scalar("l", frame))
    g.node(op, inputs, ("f", (x.shape[0], frames, bins, 2), -32, 32, False), onesided=one)


def window(g, op):
    n = g.integer(3, 8)
    made = g.node(op, [g.scalar(g.one_of("l", "i"), n)], ("f", (n,), 0, 1, False), **g.some(periodic=g.integer(0, 1)))
    g.node("Mul", [made, g.input("f", (n,))], ("f", (n,), -2, 2, False))


def mel(g, op):
    bands, length = g.integer(1, 5), g.one_of(16, 32, 64)
    parts = [np.array(v, k) for v, k in ((bands, "<i8"), (length, "<i8"), (8000, "<i8"), (g.one_of(0.0, 100.0), "<f4"), (4000.0, "<f4"))]
    bins = length // 2 + 1
    made = g.node(op, [g.constant(p) for p in parts], ("f", (bins, bands), 0, 1, False))
    g.node("MatMul", [g.input("f", (2, bins)), made], ("f", (2, bands), -2 * bins, 2 * bins, False))


def loss(g, op):
    n, c, rest = g.integer(1, 3), g.integer(2, 4), g.sizes(g.integer(0, 2), 1, 3)
    x = g.pick(low=-5, high=5, shape=(n, c, *rest))
    labels = g.input("l", (n, *rest), 0, c - 1)
    inputs = [x, labels] + ([g.weights(c, low=0.5, high=1)] if g.chance(0.4) else [])
    attributes = g.some(0.8, reduction=g.one_of("none", "mean", "sum"))
    if g.chance(0.3) and n * int(np.prod(rest)) > 1:
        array = g.inputs[-1][1] if g.inputs[-1][0] is labels else next(a for v, a in g.inputs if v is labels)
        if len(set(array.reshape(-1).tolist())) > 1:
            attributes["ignore_index"] = int(array.reshape(-1)[0])
    whole = attributes.get("reduction", "mean") == "none"
    outputs = [("f", (n, *rest) if whole else (), -500, 500, False)]
    if op[0] == "S" and g.chance(0.3):
        outputs.append(("f", x.shape, -50, 0, False))
    g.node(op, inputs, *outputs, **attributes)


def tf_idf(g, op):
    grams = sorted({tuple(int(i) for i in g.rng.randint(0, 4, g.integer(1, 3))) for _ in range(g.integer(2, 6))}, key=lambda t: (len(t), t))
    starts, pool = [], []
    for n in (1, 2, 3):
        starts.append(len(pool))
        pool += [i for gram in grams if len(gram) == n for i in gram]
    while starts[-1] == len(pool):
        starts.pop()
    lengths = {len(gram) for gram in grams}
    least = g.integer(1, len(starts))
    most = g.integer(least, len(starts))
    if not lengths & set(range(least, most + 1)):
        raise Unfit
    count = len(grams)
    places = [int(i) for i in g.rng.permutation(count)]
    x = g.input(g.one_of("l", "i"), (g.integer(3, 8),) if g.chance(0.6) else (g.integer(1, 3), g.integer(3, 8)), 0, 3)
    mode = g.one_of("TF", "IDF", "TFIDF")
    attributes = {"weights": [float(w) for w in g.rng.randint(1, 8, count) / 4]} if mode != "TF" and g.chance(0.7) else {}
    g.node(op, [x], ("f", (*x.shape[:-1], count), 0, 20, True), mode=mode, min_gram_length=least, max_gram_length=most,
           max_skip_count=g.integer(0, 2), ngram_counts=starts, ngram_indexes=places, pool_int64s=pool, **attributes)


def attention(g, op):
    b, q, kv, size = g.integer(1, 2), g.integer(1, 4), g.integer(1, 4), g.one_of(2, 4)
    groups, each, value_size = g.one_of(1, 2), g.one_of(1, 1, 2), g.one_of(size, 3)
    heads, flat, past = groups * each, g.chance(0.3), g.chance(0.25) * g.integer(1, 3)
    shapes = [(b, n, length, width) for n, length, width in ((heads, q, size), (groups, kv, size), (groups, kv, value_size))]
    inputs = [g.input("f", (s[0], s[2], s[1] * s[3]) if flat else s) for s in shapes]
    attributes = {"q_num_heads": heads, "kv_num_heads": groups} if flat else {}
    total = kv + past
    mask = None
    if g.chance(0.4):
        shape = g.one_of((q, total), (b, 1, q, total), (b, heads, q, total), (1, heads, q, total))
        mask = g.either(g.one_of("f", "f", "b"), shape, 0, 1, constant=0.5)
        if mask.kind == "b":  # each row has an unmasked element
            array = mask.constant if mask.constant is not None else next(a for v, a in g.inputs if v is mask)
            array[..., 0] = True
    elif g.chance(0.4):
        attributes["is_causal"] = 1
        if past and q != kv:
            g.known.add(op)
    inputs.append(mask)
    if past:
        inputs += [g.input("f", (b, groups, past, width)) for width in (size, value_size)]
    attributes.update(g.some(0.3, scale=0.25, softcap=g.one_of(1.5, 4.0)))
    out = (b, heads, q, value_size)
    outputs = [("f", (b, q, heads * value_size) if flat else out, -4, 4, False)]
    if past:
        outputs += [("f", (b, groups, total, width), -4, 4, True) for width in (size, value_size)]
    elif g.chance(0.2):
        outputs += [None, None, ("f", (b, heads, q, total), -64, 64, False)]
        attributes["qk_matmul_output_mode"] = g.integer(0, 3)
        if attributes["qk_matmul_output_mode"] in (1, 2) and (mask is not None or "is_causal" in attributes):
            g.known.add(op)
    while inputs[-1] is None:
        inputs.pop()
    g.node(op, inputs, *outputs, **attributes)


def rotary(g, op):
    b, h, n, size = g.integer(1, 2), g.integer(1, 2), g.integer(1, 3), g.one_of(4, 8)
    flat, turned = g.chance(0.4), size if g.chance(0.6) else size // 2
    x = g.input("f", (b, n, h * size) if flat else (b, h, n, size))
    if g.chance(0.6):
        inputs = [x, g.weights(6, turned // 2), g.weights(6, turned // 2), g.input("l", (b, n), 0, 5)]
    else:
        inputs = [x, g.weights(b, n, turned // 2), g.weights(b, n, turned // 2)]
    g.node(op, inputs, ("f", x.shape, -4, 4, False), **g.some(interleaved=g.integer(0, 1)), **({"num_heads": h} if flat else {}),
           **({"rotary_embedding_dim": turned} if turned != size else {}))


def tensor_scatter(g, op):
    b, length, new = g.integer(1, 3), g.integer(3, 6), g.integer(1, 3)
    shape = (b, *g.dims(g.integer(0, 1), 1, 3), length, g.integer(1, 4))
    past = g.pick("f", shape=shape)
    update = g.input("f", (*shape[:-2], new, shape[-1]))
    mode = g.one_of("linear", "circular")
    inputs = [past, update]
    if g.chance(0.8):
        inputs.append(g.either("l", (b,), 0, length - 1 if mode == "circular" else length - new))
    g.node(op, inputs, ("f", shape, min(past.low, -2), max(past.high, 2), past.exact), **g.some(0.7, axis=-2), mode=mode)


ROWS = {
    **{op: recurrent for op in ("LSTM", "GRU", "RNN")}, "DFT": dft, "STFT": stft,
    **{op: window for op in ("HannWindow", "HammingWindow", "BlackmanWindow")}, "MelWeightMatrix": mel,
    "NegativeLogLikelihoodLoss": loss, "SoftmaxCrossEntropyLoss": loss, "TfIdfVectorizer": tf_idf, "Attention": attention,
    "RotaryEmbedding": rotary, "TensorScatter": tensor_scatter,
    **{op: "onnxruntime has no kernel for it on the CPU" for op in ("CausalConvWithState", "LinearAttention")},
}
