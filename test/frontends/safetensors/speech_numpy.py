"""Encoders of speech and encoder-decoders in NumPy, as transformers computes them, and tiny folders with random weights."""
import math

import numpy as np

VOCABULARY, WIDTH, HEADS, WIDE, LAYERS, POSITIONS = 40, 16, 2, 24, 2, 24
CONVOLUTIONS = [(8, 5, 3), (8, 3, 2), (12, 2, 2)]  # channels, taps, stride
TAPS, GROUPS, BUCKETS, DISTANCE, ADAPTER, LABELS = 6, 2, 12, 20, 6, 5

erf = np.vectorize(math.erf)


def gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu": gelu, "relu": lambda x: np.maximum(x, 0), "swish": lambda x: x / (1 + np.exp(-x)), "gelu_new": gelu_tanh}


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Network:
    """Layers by the names of their tensors."""

    def __init__(self, tensors, epsilon=1e-5):
        self.t, self.epsilon = {name: tensor.astype("f8") for name, tensor in tensors.items()}, epsilon

    def linear(self, name, x):
        return x @ self.t[name + ".weight"].T + self.t.get(name + ".bias", 0)

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.epsilon)
        return x * self.t[name + ".weight"] + self.t[name + ".bias"]

    def rms(self, name, x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.epsilon) * self.t[name + ".weight"]

    def attention(self, q, k, v, out, x, source, heads, bias=0, scale=None):
        def split(name, y):
            y = self.linear(name, y)
            return y.reshape(len(y), heads, -1).transpose(1, 0, 2)
        queries, keys, values = split(q, x), split(k, source), split(v, source)
        scale = queries.shape[-1] ** -0.5 if scale is None else scale
        shares = softmax(queries @ keys.transpose(0, 2, 1) * scale + bias)
        return self.linear(out, (shares @ values).transpose(1, 0, 2).reshape(len(x), -1))

    def convolution(self, name, x, stride=1, padding=0, groups=1, weight=None):
        """x [C, N]"""
        weight = self.t[name + ".weight"] if weight is None else weight
        x = np.pad(x, ((0, 0), (padding, padding)))
        out, of, taps = weight.shape
        count = (x.shape[1] - taps) // stride + 1
        windows = np.stack([x[:, i * stride:i * stride + taps] for i in range(count)])  # [count, C, taps]
        parts = [np.einsum("nck,ock->on", windows[:, g * of:(g + 1) * of], weight[g * out // groups:(g + 1) * out // groups])
                 for g in range(groups)]
        bias = self.t.get(name + ".bias")
        return np.concatenate(parts) + (0 if bias is None else bias[:, None])


def buckets(apart, count, most, one_sided):
    """T5's and WavLM's buckets of distances (key - query)."""
    result = np.zeros_like(apart)
    if one_sided:
        apart = -np.minimum(apart, 0)
    else:
        count //= 2
        result += (apart > 0) * count
        apart = abs(apart)
    exact = count // 2
    far = exact + (np.log(np.maximum(apart, 1).astype("f4") / exact) / math.log(most / exact) * (count - exact)).astype(int)
    return result + np.where(apart < exact, apart, np.minimum(far, count - 1))


def draw(rng, shapes):
    return {name: (rng.standard_normal(shape) * (0.3 if len(shape) > 1 else 0.5) + (name.endswith("norm.weight"))).astype("f4")
            for name, shape in shapes.items()}


def speech_shapes(config, base):
    c, d = config, WIDTH
    shapes, before = {}, 1
    for i, (channels, taps, _) in enumerate(CONVOLUTIONS):
        own = f"feature_extractor.conv_layers.{i}."
        shapes[own + "conv.weight"] = (channels, before, taps)
        if c["conv_bias"]:
            shapes[own + "conv.bias"] = (channels,)
        if i == 0 or c["feat_extract_norm"] == "layer":
            shapes |= {own + "layer_norm.weight": (channels,), own + "layer_norm.bias": (channels,)}
        before = channels
    norms = ["encoder.layer_norm"]
    linears = {"feature_projection.projection": (d, before)}
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."
        linears |= {own + f"attention.{name}_proj": (d, d) for name in "qkv"} | {own + "attention.out_proj": (d, d)}
        linears |= {own + "feed_forward.intermediate_dense": (WIDE, d), own + "feed_forward.output_dense": (d, WIDE)}
        norms += [own + "layer_norm", own + "final_layer_norm"]
        if c.get("adapter_attn_dim"):
            norms.append(own + "adapter_layer.norm")
            linears |= {own + "adapter_layer.linear_1": (ADAPTER, d), own + "adapter_layer.linear_2": (d, ADAPTER)}
        if c["model_type"] == "wavlm":
            linears[own + "attention.gru_rel_pos_linear"] = (8, d // HEADS)
            shapes[own + "attention.gru_rel_pos_const"] = (1, HEADS, 1, 1)
    if c["model_type"] == "wavlm":
        shapes["encoder.layers.0.attention.rel_attn_embed.weight"] = (BUCKETS, HEADS)
    shapes |= {"feature_projection.layer_norm.weight": (before,), "feature_projection.layer_norm.bias": (before,)}
    if c["model_type"] == "sew":
        for part in ("weight", "bias"):
            shapes["layer_norm." + part] = shapes.pop("feature_projection.layer_norm." + part)
        linears["feature_projection"] = linears.pop("feature_projection.projection")
        linears["encoder.upsample.projection"] = (c["squeeze_factor"] * d, d)
    position = "encoder.pos_conv_embed.conv."
    g, v = ("parametrizations.weight.original0", "parametrizations.weight.original1") if c.get("_new") else ("weight_g", "weight_v")
    if c["model_type"] == "data2vec-audio":
        for i in range(c["num_conv_pos_embeddings"]):
            shapes |= {f"encoder.pos_conv_embed.layers.{i}.conv.weight": (d, d // GROUPS, c["conv_pos_kernel_size"]),
                       f"encoder.pos_conv_embed.layers.{i}.conv.bias": (d,)}
    else:
        shapes |= {position + g: (1, 1, TAPS), position + v: (d, d // GROUPS, TAPS), position + "bias": (d,)}
    for name in norms:
        shapes |= {name + ".weight": (d,), name + ".bias": (d,)}
    for name, shape in linears.items():
        shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
    shapes = {base + name: shape for name, shape in shapes.items()}
    head = c["architectures"][0]
    if head.endswith("ForCTC"):
        shapes |= {"lm_head.weight": (VOCABULARY, d), "lm_head.bias": (VOCABULARY,)}
    if head.endswith("ForXVector"):
        before = c["tdnn_dim"][0]
        shapes |= {"projector.weight": (before, d), "projector.bias": (before,), "feature_extractor.weight": (6, 2 * c["tdnn_dim"][-1]),
                   "feature_extractor.bias": (6,), "classifier.weight": (6, 6), "classifier.bias": (6,),
                   "objective.weight": (6, LABELS)}  # which only training reads
        for i, (channels, taps) in enumerate(zip(c["tdnn_dim"], c["tdnn_kernel"])):
            shapes |= {f"tdnn.{i}.kernel.weight": (channels, taps * before), f"tdnn.{i}.kernel.bias": (channels,)}
            before = channels
    if head.endswith("ForSequenceClassification"):
        shapes |= {"projector.weight": (7, d), "projector.bias": (7,), "classifier.weight": (LABELS, 7), "classifier.bias": (LABELS,)}
    if c.get("use_weighted_layer_sum"):
        shapes["layer_weights"] = (LAYERS + 1,)
    return shapes


def speech(architecture, seed=0, **changes):
    """Returns config.json and the tensors of a tiny encoder of speech."""
    kinds = {"Wav2Vec2": ("wav2vec2", "wav2vec2."), "Hubert": ("hubert", "hubert."), "WavLM": ("wavlm", "wavlm."),
             "Data2VecAudio": ("data2vec-audio", "data2vec_audio."), "SEW": ("sew", "sew."), "UniSpeechSat": ("unispeech-sat", "unispeech_sat.")}
    model_type, base = next(value for key, value in kinds.items() if architecture.startswith(key))
    config = {"model_type": model_type, "architectures": [architecture], "vocab_size": VOCABULARY, "hidden_size": WIDTH,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": WIDE, "conv_bias": False,
              "conv_dim": [c for c, _, _ in CONVOLUTIONS], "conv_kernel": [k for _, k, _ in CONVOLUTIONS],
              "conv_stride": [s for _, _, s in CONVOLUTIONS], "num_conv_pos_embeddings": TAPS,
              "num_conv_pos_embedding_groups": GROUPS, "feat_extract_norm": "group", "do_stable_layer_norm": False,
              "num_buckets": BUCKETS, "max_bucket_distance": DISTANCE, "classifier_proj_size": 7,
              "id2label": {str(i): f"L{i}" for i in range(LABELS)}}
    if model_type == "data2vec-audio":
        config |= {"feat_extract_norm": "layer", "num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5}
    if model_type == "sew":
        config["squeeze_factor"] = 3
    if architecture.endswith("ForXVector"):
        config |= {"tdnn_dim": [8, 10, 9], "tdnn_kernel": [3, 2, 1], "tdnn_dilation": [1, 3, 1], "xvector_output_dim": 6}
    config |= changes
    tensors = draw(np.random.default_rng(seed), speech_shapes(config, "" if architecture.endswith("Model") else base))
    return {key: value for key, value in config.items() if not key.startswith("_")}, tensors


def speech_outputs(config, tensors, samples):
    base = next((p for p in ("wav2vec2.", "hubert.", "wavlm.", "data2vec_audio.", "sew.", "unispeech_sat.") if any(name.startswith(p) for name in tensors)), "")
    n = Network({name.removeprefix(base): tensor for name, tensor in tensors.items()})
    x = samples[None].astype("f8")
    for i, (_, _, stride) in enumerate(CONVOLUTIONS):
        own = f"feature_extractor.conv_layers.{i}."
        x = n.convolution(own + "conv", x, stride)
        if config["feat_extract_norm"] == "layer":
            x = n.norm(own + "layer_norm", x.T).T
        elif i == 0:
            x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
            x = x * n.t[own + "layer_norm.weight"][:, None] + n.t[own + "layer_norm.bias"][:, None]
        x = gelu(x)
    sew = config["model_type"] == "sew"
    features = n.norm("layer_norm" if sew else "feature_projection.layer_norm", x.T)
    x = n.linear("feature_projection" if sew else "feature_projection.projection", features)
    frames = len(x)
    if config["model_type"] == "data2vec-audio":
        y = x
        for i in range(config["num_conv_pos_embeddings"]):
            y = n.convolution(f"encoder.pos_conv_embed.layers.{i}.conv", y.T, padding=config["conv_pos_kernel_size"] // 2, groups=GROUPS).T[:frames]
            y = y - y.mean(1, keepdims=True)
            y = gelu(y / np.sqrt((y**2).mean(1, keepdims=True) + 1e-5))
        x = x + y
    else:
        conv = "encoder.pos_conv_embed.conv"
        g, v = (n.t.get(conv + old, n.t.get(conv + ".parametrizations.weight." + new))
                for old, new in ((".weight_g", "original0"), (".weight_v", "original1")))
        weight = g * v / np.sqrt((v**2).sum((0, 1), keepdims=True))
        squeeze = config.get("squeeze_factor", 1)
        y = gelu(n.convolution(conv, x.T, stride=squeeze, padding=TAPS // 2, groups=GROUPS, weight=weight).T)
        x = np.stack([x[i * squeeze:(i + 1) * squeeze].mean(0) for i in range(frames // squeeze)])
        x = x + y[:len(x)]
    stable = config["do_stable_layer_norm"]
    x = x if stable else n.norm("encoder.layer_norm", x)
    bias, states = 0, [x]
    if config["model_type"] == "wavlm":
        at = np.arange(len(x))
        rows = buckets(at[None] - at[:, None], BUCKETS, DISTANCE, False)
        bias = n.t["encoder.layers.0.attention.rel_attn_embed.weight"][rows].transpose(2, 0, 1)
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."

        def attend(x):
            mine = bias
            if config["model_type"] == "wavlm":
                heads = x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)
                gates = n.linear(own + "attention.gru_rel_pos_linear", heads).reshape(HEADS, len(x), 2, 4).sum(-1)
                a, b = np.moveaxis(1 / (1 + np.exp(-gates)), -1, 0)
                mine = (a * (b * n.t[own + "attention.gru_rel_pos_const"][0, :, 0] - 1) + 2)[..., None] * bias
            names = [own + f"attention.{name}_proj" for name in ("q", "k", "v", "out")]
            return n.attention(*names, x, x, HEADS, mine)

        def feed(x):
            return n.linear(own + "feed_forward.output_dense", gelu(n.linear(own + "feed_forward.intermediate_dense", x)))
        if stable:
            x = x + attend(n.norm(own + "layer_norm", x))
            x = x + feed(n.norm(own + "final_layer_norm", x))
            if config.get("adapter_attn_dim"):
                y = np.maximum(n.linear(own + "adapter_layer.linear_1", n.norm(own + "adapter_layer.norm", x)), 0)
                x = x + n.linear(own + "adapter_layer.linear_2", y)
        else:
            x = n.norm(own + "layer_norm", x + attend(x))
            x = n.norm(own + "final_layer_norm", x + feed(x))
        states.append(x)
    if stable:
        x = states[-1] = n.norm("encoder.layer_norm", x)
    if sew:
        x = gelu(n.linear("encoder.upsample.projection", x)).reshape(-1, WIDTH)
        x = np.pad(x, ((0, frames - len(x)), (0, 0)))
    head = config["architectures"][0]
    if head.endswith("Model"):
        return {"last_hidden_state": x[None], "extract_features": features[None]}
    if head.endswith("ForCTC"):
        return {"logits": n.linear("lm_head", x)[None]}
    if config.get("use_weighted_layer_sum"):
        x = np.einsum("s,sfw->fw", softmax(n.t["layer_weights"]), np.stack(states))
    if head.endswith("ForXVector"):
        x = n.linear("projector", x)
        for i, (taps, dilation) in enumerate(zip(config["tdnn_kernel"], config["tdnn_dilation"])):
            count = len(x) - (taps - 1) * dilation
            x = np.maximum(n.linear(f"tdnn.{i}.kernel", np.concatenate([x[k * dilation:k * dilation + count] for k in range(taps)], 1)), 0)
        x = n.linear("feature_extractor", np.concatenate([x.mean(0), x.std(0, ddof=1)]))
        return {"logits": n.linear("classifier", x)[None], "embeddings": x[None]}
    return {"logits": n.linear("classifier", n.linear("projector", x).mean(0))[None]}


# Of the relatives of BART: norms before the branches, norms of embeddings, and tables of positions with the row of the first token.
PRE = ("mbart", "m2m_100", "pegasus", "blenderbot", "speech_to_text")
FAIRSEQ = ("m2m_100", "speech_to_text")
NORMED = ("bart", "mbart", "plbart", "blenderbot-small")
TABLES = {"bart": 2, "mbart": 2, "plbart": 2, "blenderbot": 0, "blenderbot-small": 0}


def head_shapes(head):
    if head == "ForSequenceClassification":
        return {"classification_head.dense.weight": (WIDTH, WIDTH), "classification_head.dense.bias": (WIDTH,),
                "classification_head.out_proj.weight": (LABELS, WIDTH), "classification_head.out_proj.bias": (LABELS,)}
    return {"qa_outputs.weight": (2, WIDTH), "qa_outputs.bias": (2,)} if head == "ForQuestionAnswering" else {}


def head_outputs(n, config, ids, states, decode, logits):
    """The outputs of a class, whose decoder reads the encoder's tokens shifted by one if it classifies."""
    head, states = config["architectures"][0], {"encoder_last_hidden_state": states[None]}
    if head.endswith("5Model") or head in ("BartModel", "Speech2TextModel"):
        return states | {"last_hidden_state": decode(None)[None]}
    if "Classification" not in head and "Answering" not in head:
        return states | {"logits": logits(decode(None))[None]}
    # The decoders of mBART and PLBart begin with the last token that is no padding.
    wraps = config["model_type"] in ("mbart", "plbart")
    first = ids[(ids != config["pad_token_id"]).sum() - 1] if wraps else config["decoder_start_token_id"]
    x = decode(np.concatenate([[first], ids[:-1]]))
    if "Answering" in head:
        start, end = n.linear("qa_outputs", x).T
        return states | {"start_logits": start[None], "end_logits": end[None]}
    x = x[np.flatnonzero(ids == config["eos_token_id"])[-1]]
    return states | {"logits": n.linear("classification_head.out_proj", np.tanh(n.linear("classification_head.dense", x)))[None]}


def attention_names(own, kind):
    return [own + f"{kind}.{name}" for name in ("q_proj", "k_proj", "v_proj", "out_proj")]


def sequence(model_type, seed=0, **changes):
    """Returns config.json and the tensors of a tiny encoder-decoder."""
    d, rng = WIDTH, np.random.default_rng(seed)
    head = changes.pop("_head", "ForConditionalGeneration")
    if model_type in ("t5", "mt5", "umt5"):
        config = {"model_type": model_type, "architectures": [{"t5": "T5", "mt5": "MT5", "umt5": "UMT5"}[model_type] + head], "d_model": d, "d_kv": 6,
                  "d_ff": WIDE, "num_layers": LAYERS, "num_decoder_layers": 1, "num_heads": HEADS, "vocab_size": VOCABULARY,
                  "relative_attention_num_buckets": BUCKETS, "relative_attention_max_distance": DISTANCE,
                  "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0} | changes
        shapes = {"shared.weight": (VOCABULARY, d), "encoder.final_layer_norm.weight": (d,), "decoder.final_layer_norm.weight": (d,)}
        for side, layers in (("encoder", LAYERS), ("decoder", 1)):
            for i in range(layers if model_type == "umt5" else 1):
                shapes[f"{side}.block.{i}.layer.0.SelfAttention.relative_attention_bias.weight"] = (BUCKETS, HEADS)
            for i in range(layers):
                kinds = ["SelfAttention"] + ["EncDecAttention"] * (side == "decoder") + ["DenseReluDense"]
                for j, kind in enumerate(kinds):
                    own = f"{side}.block.{i}.layer.{j}."
                    shapes[own + "layer_norm.weight"] = (d,)
                    if kind != "DenseReluDense":
                        shapes |= {f"{own}{kind}.{name}.weight": (6 * HEADS, d) for name in "qkv"} | {f"{own}{kind}.o.weight": (d, 6 * HEADS)}
                    else:
                        ups = ("wi_0", "wi_1") if config.get("feed_forward_proj", "relu").startswith("gated") else ("wi",)
                        shapes |= {f"{own}{kind}.{name}.weight": (WIDE, d) for name in ups} | {f"{own}{kind}.wo.weight": (d, WIDE)}
        if config.pop("_untied", False):
            shapes["lm_head.weight"] = (VOCABULARY, d)
        if head == "ForSequenceClassification":
            shapes = {"transformer." + name: shape for name, shape in shapes.items()}
        return config, draw(rng, shapes | head_shapes(head))
    config = {"model_type": model_type, "architectures": ["MarianMTModel" if model_type == "marian" else "Bart" + head],
              "d_model": d, "encoder_layers": LAYERS, "decoder_layers": 1, "encoder_attention_heads": HEADS,
              "decoder_attention_heads": HEADS, "encoder_ffn_dim": WIDE, "decoder_ffn_dim": WIDE, "vocab_size": VOCABULARY,
              "max_position_embeddings": POSITIONS, "activation_function": "relu", "scale_embedding": True, "pad_token_id": 1,
              "decoder_start_token_id": 2, "eos_token_id": 3} | changes
    shapes = {} if model_type in FAIRSEQ or head != "ForConditionalGeneration" else {"final_logits_bias": (1, VOCABULARY)}
    own = not config.get("share_encoder_decoder_embeddings", True)
    shapes |= {f"model.{side}.embed_tokens.weight": (VOCABULARY, d) for side in ("encoder", "decoder")} if own else {"model.shared.weight": (VOCABULARY, d)}
    if model_type == "speech_to_text":
        shapes["model.decoder.embed_tokens.weight"] = shapes.pop("model.shared.weight")
        config |= {"architectures": ["Speech2Text" + head], "conv_channels": 20, "conv_kernel_sizes": [5, 3], "input_feat_per_channel": BANDS,
                   "max_source_positions": 100, "max_target_positions": POSITIONS}
        for i, (out, before) in enumerate(((20, BANDS), (2 * d, 10))):
            shapes |= {f"model.encoder.conv.conv_layers.{i}.weight": (out, before, config["conv_kernel_sizes"][i]),
                       f"model.encoder.conv.conv_layers.{i}.bias": (out,)}
    norms, linears = [], {}
    for side, layers in (("encoder", LAYERS), ("decoder", 1)):
        root = f"model.{side}."
        if model_type in PRE:
            norms.append(root + "layer_norm")
        if model_type in NORMED:
            norms.append(root + "layernorm_embedding")
        if model_type in TABLES:
            shapes[root + "embed_positions.weight"] = (POSITIONS + TABLES[model_type], d)
        for i in range(layers):
            layer = f"{root}layers.{i}."
            kinds = ["self_attn"] + ["encoder_attn"] * (side == "decoder")
            for kind in kinds:
                linears |= {name: (d, d) for name in attention_names(layer, kind)}
                norms.append(f"{layer}{kind}_layer_norm")
            linears |= {layer + "fc1": (WIDE, d), layer + "fc2": (d, WIDE)}
            norms.append(layer + "final_layer_norm")
    for name in norms:
        shapes |= {name + ".weight": (d,), name + ".bias": (d,)}
    for name, shape in linears.items():
        shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
    return config, draw(rng, shapes | head_shapes(head))


def sequence_outputs(config, tensors, ids, output_ids, picture=None):
    """`picture` is a token and the embeddings that take its place in the encoder's input."""
    t5 = config["model_type"] in ("t5", "mt5", "umt5")
    n = Network({name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}, 1e-6 if t5 else 1e-5)

    def causal(count):
        return np.where(np.arange(count)[None] > np.arange(count)[:, None], -1e30, 0)
    if t5:
        kind = config.get("feed_forward_proj", "relu" if config["model_type"] == "t5" else "gated-gelu")

        def feed(own, x):
            if kind.startswith("gated"):
                x = gelu_tanh(n.linear(own + "wi_0", x)) * n.linear(own + "wi_1", x)
            else:
                x = np.maximum(n.linear(own + "wi", x), 0)
            return n.linear(own + "wo", x)

        def run(side, x, layers, mask, source=None):
            at = np.arange(len(x))
            rows = buckets(at[None] - at[:, None], BUCKETS, DISTANCE, side == "decoder")
            for i in range(layers):
                table = f"{side}.block.{i if config['model_type'] == 'umt5' else 0}.layer.0.SelfAttention.relative_attention_bias.weight"
                bias = n.t[table][rows].transpose(2, 0, 1) + mask
                own = f"{side}.block.{i}.layer."
                names = [own + f"0.SelfAttention.{name}" for name in "qkvo"]
                y = n.rms(own + "0.layer_norm", x)
                x = x + n.attention(*names, y, y, HEADS, bias, 1)
                if source is not None:
                    names = [own + f"1.EncDecAttention.{name}" for name in "qkvo"]
                    x = x + n.attention(*names, n.rms(own + "1.layer_norm", x), source, HEADS, 0, 1)
                last = 1 if source is None else 2
                x = x + feed(f"{own}{last}.DenseReluDense.", n.rms(f"{own}{last}.layer_norm", x))
            return n.rms(f"{side}.final_layer_norm", x)
        states = run("encoder", n.t["shared.weight"][ids], LAYERS, 0)

        def decode(given):
            given = output_ids if given is None else given
            return run("decoder", n.t["shared.weight"][given], 1, causal(len(given)), states)

        def logits(x):
            tied = config.get("tie_word_embeddings", config["model_type"] != "mt5")
            x = x * WIDTH**-0.5 if config.get("scale_decoder_outputs", tied) else x
            return x @ n.t.get("lm_head.weight", n.t["shared.weight"]).T
        return head_outputs(n, config, ids, states, decode, logits)
    kind, pre = config["model_type"], config["model_type"] in PRE
    act = ACTIVATIONS[config["activation_function"]]

    def positions(root, count):
        if kind in TABLES:
            return n.t[root + "embed_positions.weight"][TABLES[kind]:count + TABLES[kind]]
        j, half, first = np.arange(WIDTH // 2), WIDTH // 2, 2 if kind in FAIRSEQ else 0
        frequencies = 10000.0 ** (-j / (half - 1)) if kind in FAIRSEQ else 10000.0 ** (-2 * j / WIDTH)
        angles = np.arange(first, count + first)[:, None] * frequencies
        return np.concatenate([np.sin(angles), np.cos(angles)], 1)

    def table(side):
        return n.t.get("model.shared.weight", n.t.get(f"model.{side}.embed_tokens.weight"))

    def run(side, tokens, layers, mask, source=None):
        root = f"model.{side}."
        if kind == "speech_to_text" and side == "encoder":
            x = np.asarray(tokens, "f8").T  # features [frames, bands]
            for i, taps in enumerate(config["conv_kernel_sizes"]):
                a, b = np.split(n.convolution(f"model.encoder.conv.conv_layers.{i}", x, 2, taps // 2), 2)
                x = a / (1 + np.exp(-b))
            tokens = x = x.T
        else:
            x = table(side)[tokens]
        x = x * (math.sqrt(WIDTH) if config["scale_embedding"] else 1)
        if picture is not None and side == "encoder":
            x[np.asarray(tokens) == picture[0]] = picture[1]
        late = kind == "blenderbot-small" and side == "decoder"
        if late:
            x = n.norm(root + "layernorm_embedding", x)
        x = x + positions(root, len(tokens))
        if kind in NORMED and not late:
            x = n.norm(root + "layernorm_embedding", x)

        def branch(norm, x, f):
            return x + f(n.norm(norm, x)) if pre else n.norm(norm, x + f(x))
        for i in range(layers):
            own = f"{root}layers.{i}."
            x = branch(own + "self_attn_layer_norm", x, lambda y: n.attention(*attention_names(own, "self_attn"), y, y, HEADS, mask))
            if source is not None:
                x = branch(own + "encoder_attn_layer_norm", x,
                           lambda y: n.attention(*attention_names(own, "encoder_attn"), y, source, HEADS))
            x = branch(own + "final_layer_norm", x, lambda y: n.linear(own + "fc2", act(n.linear(own + "fc1", y))))
        return n.norm(root + "layer_norm", x) if pre else x
    states = run("encoder", ids, LAYERS, 0)

    def decode(given):
        given = output_ids if given is None else given
        return run("decoder", given, 1, causal(len(given)), states)
    return head_outputs(n, config, ids, states, decode,
                        lambda x: x @ n.t.get("lm_head.weight", table("decoder")).T + n.t.get("final_logits_bias", 0))


def whisper(seed=0, **changes):
    """Returns config.json and the tensors of a tiny Whisper that classifies sounds."""
    d, frames = WIDTH, 12
    config = {"model_type": "whisper", "architectures": ["WhisperForAudioClassification"], "d_model": d, "num_mel_bins": BANDS,
              "encoder_layers": LAYERS, "encoder_attention_heads": HEADS, "encoder_ffn_dim": WIDE, "decoder_layers": 1,
              "decoder_attention_heads": HEADS, "decoder_ffn_dim": WIDE, "vocab_size": VOCABULARY, "max_source_positions": frames,
              "max_target_positions": POSITIONS, "classifier_proj_size": 7, "id2label": {str(i): f"L{i}" for i in range(LABELS)}} | changes
    shapes = {"encoder.embed_positions.weight": (frames, d), "projector.weight": (7, d), "projector.bias": (7,),
              "classifier.weight": (LABELS, 7), "classifier.bias": (LABELS,), "encoder.layer_norm.weight": (d,), "encoder.layer_norm.bias": (d,)}
    if config.get("use_weighted_layer_sum"):
        shapes["layer_weights"] = (LAYERS + 1,)
    for i, before in ((1, BANDS), (2, d)):
        shapes |= {f"encoder.conv{i}.weight": (d, before, 3), f"encoder.conv{i}.bias": (d,)}
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."
        for name, shape in {**{name: (d, d) for name in attention_names(own, "self_attn")}, own + "fc1": (WIDE, d), own + "fc2": (d, WIDE)}.items():
            shapes |= {name + ".weight": shape} | ({} if name.endswith("k_proj") else {name + ".bias": shape[:1]})
        for name in ("self_attn_layer_norm", "final_layer_norm"):
            shapes |= {f"{own}{name}.weight": (d,), f"{own}{name}.bias": (d,)}
    return config, draw(np.random.default_rng(seed), shapes)


def whisper_outputs(config, tensors, features):
    n = Network(tensors)
    x = gelu(n.convolution("encoder.conv2", gelu(n.convolution("encoder.conv1", features.astype("f8"), padding=1)), 2, 1)).T
    x = x + n.t["encoder.embed_positions.weight"]
    states = []
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."
        states.append(x)
        y = n.norm(own + "self_attn_layer_norm", x)
        x = x + n.attention(*attention_names(own, "self_attn"), y, y, HEADS)
        x = x + n.linear(own + "fc2", gelu(n.linear(own + "fc1", n.norm(own + "final_layer_norm", x))))
    x = n.norm("encoder.layer_norm", x)
    if config.get("use_weighted_layer_sum"):
        x = np.einsum("s,sfw->fw", softmax(n.t["layer_weights"]), np.stack([*states, x]))
    return {"logits": n.linear("classifier", n.linear("projector", x).mean(0))[None]}


BANDS, CHANNELS = 16, 4


def parakeet(seed=0, **changes):
    """Returns config.json and the tensors of a tiny Parakeet."""
    d = WIDTH
    inner = {"hidden_size": d, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": WIDE, "conv_kernel_size": 5,
             "subsampling_factor": 4, "subsampling_conv_channels": CHANNELS, "num_mel_bins": BANDS} | changes
    config = {"model_type": "parakeet_ctc", "architectures": ["ParakeetForCTC"], "vocab_size": VOCABULARY, "encoder_config": inner}
    stem = "encoder.subsampling."
    shapes = {stem + "layers.0.weight": (CHANNELS, 1, 3, 3), stem + "layers.0.bias": (CHANNELS,), stem + "layers.2.weight": (CHANNELS, 1, 3, 3),
              stem + "layers.2.bias": (CHANNELS,), stem + "layers.3.weight": (CHANNELS, CHANNELS, 1, 1), stem + "layers.3.bias": (CHANNELS,),
              stem + "linear.weight": (d, CHANNELS * BANDS // 4), stem + "linear.bias": (d,), "ctc_head.weight": (VOCABULARY, d, 1),
              "ctc_head.bias": (VOCABULARY,)}
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."
        for name in ("norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out", "conv.norm"):
            shapes |= {f"{own}{name}.weight": (d,), f"{own}{name}.bias": (d,)}
        shapes |= {own + "conv.norm.running_mean": (d,), own + "conv.norm.running_var": (d,)}
        for name, shape in {"feed_forward1.linear1": (WIDE, d), "feed_forward1.linear2": (d, WIDE), "feed_forward2.linear1": (WIDE, d),
                            "feed_forward2.linear2": (d, WIDE), "self_attn.q_proj": (d, d), "self_attn.k_proj": (d, d),
                            "self_attn.v_proj": (d, d), "self_attn.o_proj": (d, d), "conv.pointwise_conv1": (2 * d, d, 1),
                            "conv.depthwise_conv": (d, 1, 5), "conv.pointwise_conv2": (d, d, 1)}.items():
            shapes |= {f"{own}{name}.weight": shape, f"{own}{name}.bias": shape[:1]}
        shapes |= {own + "self_attn.relative_k_proj.weight": (d, d), own + "self_attn.bias_u": (HEADS, d // HEADS),
                   own + "self_attn.bias_v": (HEADS, d // HEADS)}
    tensors = draw(np.random.default_rng(seed), shapes)
    return config, {name: abs(tensor) + 0.1 if name.endswith("running_var") else tensor for name, tensor in tensors.items()}


def parakeet_features(samples, bands=BANDS, window=400, transform=512, hop=160, rate=16000, preemphasis=0.97):
    """The spectrogram of feature_extraction_parakeet.py [N / hop, bands], of the frames that its attention mask keeps."""
    x = np.concatenate([samples[:1], samples[1:] - preemphasis * samples[:-1]]).astype("f8")
    x = np.pad(x, transform // 2)
    hann = np.zeros(transform)
    hann[(transform - window) // 2:][:window] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / (window - 1))
    frames = np.stack([x[i * hop:i * hop + transform] * hann for i in range(len(samples) // hop)])
    power = np.abs(np.fft.rfft(frames)) ** 2
    hertz = np.arange(transform // 2 + 1) * rate / transform

    def to_mel(f):
        return np.where(f < 1000, f * 3 / 200, 15 + np.log(np.maximum(f, 1) / 1000) * 27 / np.log(6.4))

    def to_hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
    edges = to_hertz(np.linspace(0, to_mel(rate / 2), bands + 2))
    low, middle, high = (edges[i:i + bands, None] for i in range(3))
    filters = np.maximum(0, np.minimum((hertz - low) / (middle - low), (high - hertz) / (high - middle))) * 2 / (high - low)
    y = np.log(power @ filters.T + 2.0**-24)
    return (y - y.mean(0)) / (y.std(0, ddof=1) + 1e-5)


def convolution_2d(x, weight, bias, stride, padding, groups):
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (1, 2))[:, ::stride, ::stride]
    if groups > 1:
        return np.einsum("chwij,cij->chw", windows, weight[:, 0]) + bias[:, None, None]
    return np.einsum("chwij,ocij->ohw", windows, weight) + bias[:, None, None]


def parakeet_outputs(config, tensors, features):
    n, d, inner = Network(tensors), WIDTH, config["encoder_config"]

    def conv(name, x, stride, padding, groups=1):
        return convolution_2d(x, n.t[name + ".weight"], n.t[name + ".bias"], stride, padding, groups)
    stem = "encoder.subsampling."
    x = np.maximum(conv(stem + "layers.0", features[None].astype("f8"), 2, 1), 0)
    x = np.maximum(conv(stem + "layers.3", conv(stem + "layers.2", x, 2, 1, CHANNELS), 1, 0), 0)
    x = n.linear(stem + "linear", x.transpose(1, 0, 2).reshape(x.shape[1], -1))
    x = x * (math.sqrt(d) if inner.get("scale_input", True) else 1)
    count = len(x)
    angles = np.arange(count - 1, -count, -1)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)
    positions = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(2 * count - 1, d)

    def silu(y):
        return y / (1 + np.exp(-y))

    def feed(own, y):
        return n.linear(own + ".linear2", silu(n.linear(own + ".linear1", y)))
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."
        x = x + 0.5 * feed(own + "feed_forward1", n.norm(own + "norm_feed_forward1", x))
        y = n.norm(own + "norm_self_att", x)

        def heads(name, of):
            return n.linear(f"{own}self_attn.{name}_proj", of).reshape(len(of), HEADS, -1).transpose(1, 0, 2)
        q, k, v, relative = heads("q", y), heads("k", y), heads("v", y), heads("relative_k", positions)
        shifted = np.pad((q + n.t[own + "self_attn.bias_v"][:, None]) @ relative.transpose(0, 2, 1), ((0, 0), (0, 0), (1, 0)))
        shifted = shifted.reshape(HEADS, -1, count)[:, 1:].reshape(HEADS, count, -1)[..., :count]
        scores = (q + n.t[own + "self_attn.bias_u"][:, None]) @ k.transpose(0, 2, 1) + shifted
        y = (softmax(scores * (d // HEADS) ** -0.5) @ v).transpose(1, 0, 2).reshape(count, -1)
        x = x + n.linear(own + "self_attn.o_proj", y)
        y = n.convolution(own + "conv.pointwise_conv1", n.norm(own + "norm_conv", x).T)
        y = y[:d] / (1 + np.exp(-y[d:]))
        y = n.convolution(own + "conv.depthwise_conv", y, padding=2, groups=d).T
        norm = own + "conv.norm"
        y = (y - n.t[norm + ".running_mean"]) / np.sqrt(n.t[norm + ".running_var"] + 1e-5) * n.t[norm + ".weight"] + n.t[norm + ".bias"]
        x = x + n.convolution(own + "conv.pointwise_conv2", silu(y).T).T
        x = x + 0.5 * feed(own + "feed_forward2", n.norm(own + "norm_feed_forward2", x))
        x = n.norm(own + "norm_out", x)
    return {"logits": n.convolution("ctc_head", x.T).T[None]}
