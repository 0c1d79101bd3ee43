"""Computes Wav2Vec2-Conformer and Wav2Vec2-BERT in NumPy with double precision: a reading of transformers'
modeling_wav2vec2_conformer.py and modeling_wav2vec2_bert.py that is independent of mlc. It draws the tensors that it asks for
(picture_numpy.Net), and so makes tiny folders."""
import numpy as np

from picture_numpy import ACTIVATIONS, Net, sigmoid

WIDTH, HEADS, INNER, LAYERS, TAPS, LABELS, VOCABULARY = 16, 2, 24, 2, 5, 5, 30
CONVOLUTIONS = ((8, 5, 3), (12, 3, 2))  # channels, taps, stride
BANDS, LEFT, RIGHT, ADAPTED = 10, 3, 2, 12
CONFORMER = {"model_type": "wav2vec2-conformer", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
             "intermediate_size": INNER, "hidden_act": "swish", "conv_dim": [c for c, _, _ in CONVOLUTIONS],
             "conv_kernel": [k for _, k, _ in CONVOLUTIONS], "conv_stride": [s for _, _, s in CONVOLUTIONS], "feat_extract_norm": "layer",
             "conv_bias": True, "conv_depthwise_kernel_size": TAPS, "vocab_size": VOCABULARY}
BERT = {"model_type": "wav2vec2-bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "intermediate_size": INNER, "feature_projection_input_dim": BANDS, "conv_depthwise_kernel_size": TAPS, "vocab_size": VOCABULARY,
        "left_max_position_embeddings": LEFT, "right_max_position_embeddings": RIGHT}


def swish(x):
    return x * sigmoid(x)


def norm(net, name, x):
    return net.layer_norm(name, x, 1e-5)


def convolve(net, name, x, out, taps, stride=1, before=0, behind=0, depthwise=False, bias=True):
    """x [frames, channels]"""
    x = np.pad(x, ((before, behind), (0, 0)))
    weight = net.tensor(name + ".weight", out, 1 if depthwise else x.shape[1], taps)
    frames = np.stack([x[i * stride:i * stride + taps] for i in range((len(x) - taps) // stride + 1)])  # [frames, taps, channels]
    y = np.einsum("ftc,ct->fc", frames, weight[:, 0]) if depthwise else np.einsum("ftc,oct->fo", frames, weight)
    return y + net.tensor(name + ".bias", out) if bias else y


def gated(x):
    a, b = np.split(x, 2, -1)
    return a * sigmoid(b)


def attention(net, own, x, positions="none", base=10000):
    width, size, count = x.shape[1], x.shape[1] // HEADS, len(x)

    def split(y):
        return y.reshape(count, HEADS, -1).transpose(1, 0, 2)
    placed = x
    if positions == "rotary":
        heads, half = split(x), size // 2
        angles = np.arange(count)[:, None] * base ** (-2.0 * np.arange(half) / size)
        a, b = heads[..., :half], heads[..., half:]
        turned = np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)
        placed = turned.transpose(1, 0, 2).reshape(count, width)
    q, k = (split(net.linear(own + name, placed, width)) for name in ("linear_q", "linear_k"))
    v = split(net.linear(own + "linear_v", x, width))
    at = np.arange(count)
    if positions == "relative":
        apart = at[:, None] - at[None]  # of the query from the key
        angles = apart[..., None] / 10000 ** (np.arange(0, width, 2) / width)
        waves = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(count, count, width)
        keys = net.linear(own + "linear_pos", waves, width, False).reshape(count, count, HEADS, size)
        u, w = (net.tensor(own + name, HEADS, size)[:, None] for name in ("pos_bias_u", "pos_bias_v"))
        scores = (q + u) @ k.swapaxes(1, 2) + np.einsum("hqd,qkhd->hqk", q + w, keys)
    else:
        scores = q @ k.swapaxes(1, 2)
    if positions == "relative_key":
        apart = np.clip(at[None] - at[:, None], -LEFT, RIGHT) + LEFT
        table = net.tensor(own + "distance_embedding.weight", LEFT + RIGHT + 1, size)
        scores = scores + np.einsum("hqd,qkd->hqk", q, table[apart])
    scores = np.exp((scores - scores.max(-1, keepdims=True)) / size**0.5)
    y = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(count, width)
    return net.linear(own + "linear_out", y, width)


def feed_forward(net, name, x, act):
    return net.linear(name + ".output_dense", act(net.linear(name + ".intermediate_dense", x, INNER)), x.shape[1])


def layer(net, own, x, bert, positions):
    x = x + feed_forward(net, own + "ffn1", norm(net, own + "ffn1_layer_norm", x), swish) / 2
    x = x + attention(net, own + "self_attn.", norm(net, own + "self_attn_layer_norm", x), positions)
    name = own + "conv_module."
    y = gated(convolve(net, name + "pointwise_conv1", norm(net, name + "layer_norm", x), 2 * WIDTH, 1, bias=False))
    sides = (TAPS - 1, 0) if bert else (TAPS // 2, TAPS // 2)
    y = convolve(net, name + "depthwise_conv", y, WIDTH, TAPS, 1, *sides, depthwise=True, bias=False)
    y = norm(net, name + "depthwise_layer_norm", y) if bert else net.batch_norm(name + "batch_norm", y.T[..., None]).squeeze(-1).T
    x = x + convolve(net, name + "pointwise_conv2", swish(y), WIDTH, 1, bias=False)
    x = x + feed_forward(net, own + "ffn2", norm(net, own + "ffn2_layer_norm", x), swish) / 2
    return norm(net, own + "final_layer_norm", x)


def adapted(net, c, x, bert):
    for i in range(c["num_adapter_layers"]):
        own = f"adapter.layers.{i}."
        if not bert:
            x = gated(convolve(net, own + "conv", x, 2 * WIDTH, 3, 2, 1, 1))
            continue
        width = c.get("output_hidden_size", WIDTH)
        if width != WIDTH and i == 0:
            x = norm(net, "adapter.proj_layer_norm", net.linear("adapter.proj", x, width))

        def shortened(part, x):
            return gated(convolve(net, own + part, x, 2 * width, 3, 2, 1, 1))
        residual = shortened("residual_conv", norm(net, own + "residual_layer_norm", x))
        x = shortened("self_attn_conv", norm(net, own + "self_attn_layer_norm", x))
        x = attention(net, own + "self_attn.", x) + residual
        x = x + feed_forward(net, own + "ffn", norm(net, own + "ffn_layer_norm", x), lambda y: np.maximum(y, 0))
    return x


def made(config, x, seed=0):
    """Returns the tensors of a tiny folder and the outputs for samples [N], or for a spectrogram [frames, bands]."""
    bert, head = config["model_type"] == "wav2vec2-bert", config["architectures"][0]
    base = config["model_type"].replace("-", "_") + "."
    net = Net("" if head.endswith("Model") else base, seed)
    x = x.astype("f8")
    if not bert:
        x = x[:, None]
        for i, (channels, taps, stride) in enumerate(CONVOLUTIONS):
            own = f"feature_extractor.conv_layers.{i}."
            x = ACTIVATIONS["gelu"](norm(net, own + "layer_norm", convolve(net, own + "conv", x, channels, taps, stride)))
    features = norm(net, "feature_projection.layer_norm", x)
    x = net.linear("feature_projection.projection", features, WIDTH)
    positions = config.get("position_embeddings_type", "relative_key" if bert else "relative") or "none"
    for i in range(LAYERS):
        x = layer(net, f"encoder.layers.{i}.", x, bert, positions)
    if not bert:
        x = norm(net, "encoder.layer_norm", x)
        for part, shape in ("weight_g", (1, 1, 4)), ("weight_v", (WIDTH, 4, 4)), ("bias", (WIDTH,)):
            net.tensor(f"encoder.pos_conv_embed.conv.{part}", *shape)  # which is stored, and not read
    if config.get("use_intermediate_ffn_before_adapter"):
        x = x + feed_forward(net, "intermediate_ffn", x, lambda y: np.maximum(y, 0)) / 2
    if config.get("add_adapter"):
        x = adapted(net, config, x, bert)
    if head.endswith("Model"):
        return net.tensors, {"last_hidden_state": x[None], "extract_features": features[None]}
    if head.endswith("ForCTC"):
        return net.tensors, {"logits": net.linear("lm_head", x, VOCABULARY, prefix="")[None]}
    x = net.linear("projector", x, 7, prefix="").mean(0)
    return net.tensors, {"logits": net.linear("classifier", x, LABELS, prefix="")[None]}
