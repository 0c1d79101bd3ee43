"""Computes encoders of text in NumPy with double precision, from the tensors of a Hugging Face folder under their original
names. This is an implementation of transformers' models/*/modeling_*.py (nomic_bert: of nomic-ai/contrastors) that is
independent of mlc. It also makes tiny folders: `tiny(ARCHITECTURE)` has a config and random weights."""
import math

import numpy as np

WIDTH, HEADS, LAYERS, INNER, VOCABULARY, LABELS, MOST = 32, 4, 3, 48, 61, 5, 200

erf = np.vectorize(math.erf)
ACTIVATIONS = {"gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))), "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh,
               "gelu_new": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
               "silu": lambda x: x / (1 + np.exp(-x))}


class Network:
    """The tensors of a folder, whose base model may have a prefix."""

    def __init__(self, config, tensors, prefix):
        self.config, self.prefix = config, prefix
        self.tensors = {name: value.astype("f8") for name, value in tensors.items()}
        self.epsilon = next(config[k] for k in ("layer_norm_eps", "norm_eps", "layer_norm_epsilon", "rms_norm_eps", "epsilon")
                            if k in config)

    def tensor(self, name):
        for known in (name, self.prefix + name):
            if known in self.tensors:
                return self.tensors[known]
        return None

    def linear(self, name, x):
        y, bias = x @ self.tensor(name + ".weight").T, self.tensor(name + ".bias")
        return y if bias is None else y + bias

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.epsilon) * self.tensor(name + ".weight")
        bias = self.tensor(name + ".bias")
        return y if bias is None else y + bias

    def rms_norm(self, name, x, plus=0):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.epsilon) * (self.tensor(name + ".weight") + plus)


def heads_of(x, heads=HEADS):
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)  # [tokens, width] to [heads, tokens, elements]


def attend(q, k, v, mask, bias=0, scale=None, seen=True):
    scores = q @ k.transpose(0, 2, 1) * (scale or q.shape[-1] ** -0.5) + bias
    scores = np.where(np.logical_and(mask.astype(bool)[None, None, :], seen), scores, -1e300)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def rotate(x, base):
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def bert_embeddings(net, ids, types, positions=None, norm="embeddings.LayerNorm"):
    x = net.tensor("embeddings.word_embeddings.weight")[ids]
    if (table := net.tensor("embeddings.token_type_embeddings.weight")) is not None:
        x = x + table[types]
    if (table := net.tensor("embeddings.position_embeddings.weight")) is not None:
        x = x + table[np.arange(len(ids)) if positions is None else positions]
    return net.norm(norm, x)


def bert_layers(net, x, mask, layer="encoder.layer.{}.", act="gelu", parts=("attention.self.query", "attention.self.key",
                "attention.self.value", "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
                "output.dense", "output.LayerNorm"), shared=False, attention=None):
    for i in range(LAYERS):
        q, k, v, out, norm1, up, down, norm2 = (layer.format(0 if shared else i) + part for part in parts)
        q, k, v = (heads_of(net.linear(name, x)) for name in (q, k, v))
        y = attention(net, layer.format(i), q, k, v, mask) if attention else attend(q, k, v, mask)
        x = net.norm(norm1, x + net.linear(out, y))
        x = net.norm(norm2, x + net.linear(down, ACTIVATIONS[act](net.linear(up, x))))
    return x


def past_padding(ids, padding):
    real = ids != padding
    return np.cumsum(real) * real + padding


def bucket_bias(table, count):
    """Returns T5's buckets: of 16 on each side, eight are for one distance each, the others are logarithmic up to 128."""
    bias = np.zeros((HEADS, count, count))
    for i in range(count):
        for j in range(count):
            far = abs(i - j)
            step = far if far < 8 else min(15, 8 + int(np.float32(np.log(np.float32(far / 8))) / np.float32(math.log(16)) * 8))
            bias[:, i, j] = table[step + (16 if j > i else 0)]
    return bias


def mpnet_attention(net, layer, q, k, v, mask):
    return attend(q, k, v, mask, bucket_bias(net.tensor("encoder.relative_attention_bias.weight"), q.shape[1]))


def deberta_attention(net, layer, q, k, v, mask):
    """Follows section 3.1 of the paper: content to content, content to position, position to content."""
    config, count = net.config, q.shape[1]
    buckets, most = config["position_buckets"], config["max_relative_positions"]
    most = MOST if most < 1 else most
    table = net.norm("encoder.LayerNorm", net.tensor("encoder.rel_embeddings.weight"))
    own = layer + "attention.self."
    key, query = ("key_proj", "query_proj") if config["share_att_key"] else ("pos_key_proj", "pos_query_proj")
    place = np.zeros((count, count), int)
    for i in range(count):
        for j in range(count):
            far, mid = abs(i - j), buckets // 2
            if far > mid:
                ratio = np.float32(np.log(np.float32(far / mid))) / np.float32(np.log(np.float32((most - 1) / mid)))
                far = math.ceil(ratio * np.float32(mid - 1)) + mid
            place[i, j] = min(max((far if i > j else -far) + buckets, 0), 2 * buckets - 1)
    bias, kinds = np.zeros((HEADS, count, count)), 1 + len(config["pos_att_type"])
    scale = 1 / math.sqrt(q.shape[-1] * kinds)
    rows = np.arange(count)[:, None]
    if "c2p" in config["pos_att_type"]:
        heard = q @ heads_of(net.linear(own + key, table)).transpose(0, 2, 1)  # [heads, queries, places]
        bias += heard[:, rows, place]
    if "p2c" in config["pos_att_type"]:
        heard = k @ heads_of(net.linear(own + query, table)).transpose(0, 2, 1)  # [heads, keys, places]
        bias += heard[:, np.arange(count)[None, :], place]
    return attend(q, k, v, mask, bias * scale, scale)


def modern_layers(net, x, mask):
    config = net.config
    apart = np.abs(np.arange(len(x))[:, None] - np.arange(len(x)))
    for i in range(LAYERS):
        own, local = f"layers.{i}.", i % config["global_attn_every_n_layers"] != 0
        into = x if i == 0 else net.norm(own + "attn_norm", x)
        q, k, v = (heads_of(part) for part in np.split(net.linear(own + "attn.Wqkv", into), 3, -1))
        base = config["local_rope_theta" if local else "global_rope_theta"]
        seen = apart <= config["local_attention"] // 2 if local else True
        x = x + net.linear(own + "attn.Wo", attend(rotate(q, base), rotate(k, base), v, mask, seen=seen))
        a, b = np.split(net.linear(own + "mlp.Wi", net.norm(own + "mlp_norm", x)), 2, -1)
        x = x + net.linear(own + "mlp.Wo", ACTIVATIONS["gelu"](a) * b)
    return net.norm("final_norm", x)


def nomic_layers(net, x, mask):
    for i in range(LAYERS):
        own = f"encoder.layers.{i}."
        q, k, v = (heads_of(part) for part in np.split(net.linear(own + "attn.Wqkv", x), 3, -1))
        base = net.config["rotary_emb_base"]
        x = net.norm(own + "norm1", x + net.linear(own + "attn.out_proj", attend(rotate(q, base), rotate(k, base), v, mask)))
        y = net.linear(own + "mlp.fc11", x) * ACTIVATIONS["silu"](net.linear(own + "mlp.fc12", x))
        x = net.norm(own + "norm2", x + net.linear(own + "mlp.fc2", y))
    return x


def t5_layers(net, x, mask):
    """Follows Raffel et al. 2020, section 2.1: norms have no mean and no bias, all layers share one table of distances (in UMT5, each has
    its own), scores are not scaled."""
    for i in range(LAYERS):
        table = f"encoder.block.{i if net.config['model_type'] == 'umt5' else 0}.layer.0.SelfAttention.relative_attention_bias.weight"
        bias, own = bucket_bias(net.tensor(table), len(x)), f"encoder.block.{i}.layer."
        h = net.rms_norm(own + "0.layer_norm", x)
        q, k, v = (heads_of(net.linear(own + f"0.SelfAttention.{name}", h)) for name in "qkv")
        x = x + net.linear(own + "0.SelfAttention.o", attend(q, k, v, mask, bias, scale=1))
        h, own = net.rms_norm(own + "1.layer_norm", x), own + "1.DenseReluDense."
        if net.config["feed_forward_proj"] == "gated-gelu":
            h = ACTIVATIONS["gelu_new"](net.linear(own + "wi_0", h)) * net.linear(own + "wi_1", h)
        else:
            h = ACTIVATIONS["relu"](net.linear(own + "wi", h))
        x = x + net.linear(own + "wo", h)
    return net.rms_norm("encoder.final_layer_norm", x)


def gemma_layers(net, x, mask):
    """Follows Gemma 3 (arXiv 2503.19786, section 2) with bidirectional attention, in most layers within half a window on
    each side."""
    config, apart = net.config, np.abs(np.arange(len(x))[:, None] - np.arange(len(x)))
    keys = config["num_key_value_heads"]
    norm = lambda name, x: net.rms_norm(name, x, plus=1)
    x = x * math.sqrt(WIDTH)
    for i in range(LAYERS):
        own, local = f"layers.{i}.", (i + 1) % config["sliding_window_pattern"] != 0
        h = norm(own + "input_layernorm", x)
        q, k, v = (heads_of(net.linear(own + f"self_attn.{name}_proj", h), heads)
                   for name, heads in (("q", HEADS), ("k", keys), ("v", keys)))
        base = config["rope_local_base_freq" if local else "rope_theta"]
        q, k = rotate(norm(own + "self_attn.q_norm", q), base), rotate(norm(own + "self_attn.k_norm", k), base)
        k, v = (np.repeat(each, HEADS // keys, 0) for each in (k, v))
        seen = apart <= config["sliding_window"] // 2 if local else True
        y = attend(q, k, v, mask, scale=config["query_pre_attn_scalar"] ** -0.5, seen=seen)
        x = x + norm(own + "post_attention_layernorm", net.linear(own + "self_attn.o_proj", y))
        h = norm(own + "pre_feedforward_layernorm", x)
        h = ACTIVATIONS["gelu_new"](net.linear(own + "mlp.gate_proj", h)) * net.linear(own + "mlp.up_proj", h)
        x = x + norm(own + "post_feedforward_layernorm", net.linear(own + "mlp.down_proj", h))
    return norm("norm", x)


def hidden(net, ids, types, mask):
    kind = net.config["model_type"]
    if kind in ("t5", "mt5", "umt5"):
        return t5_layers(net, net.tensor("shared.weight")[ids], mask)
    if kind == "gemma3_text":
        return gemma_layers(net, net.tensor("embed_tokens.weight")[ids], mask)
    if kind in ("bert", "electra"):
        x = bert_embeddings(net, ids, types)
        return bert_layers(net, net.linear("embeddings_project", x) if kind == "electra" else x, mask)
    if kind in ("roberta", "xlm-roberta"):
        return bert_layers(net, bert_embeddings(net, ids, types, past_padding(ids, net.config["pad_token_id"])), mask)
    if kind == "distilbert":
        return bert_layers(net, bert_embeddings(net, ids, types), mask, "transformer.layer.{}.", parts=(
            "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2",
            "output_layer_norm"))
    if kind == "albert":
        x = net.linear("encoder.embedding_hidden_mapping_in", bert_embeddings(net, ids, types))
        return bert_layers(net, x, mask, "encoder.albert_layer_groups.{}.albert_layers.0.", "gelu_new", (
            "attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm", "ffn", "ffn_output",
            "full_layer_layer_norm"), shared=True)
    if kind == "mpnet":
        x = bert_embeddings(net, ids, types, past_padding(ids, 1))
        return bert_layers(net, x, mask, attention=mpnet_attention, parts=(
            "attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm",
            "intermediate.dense", "output.dense", "output.LayerNorm"))
    if kind == "deberta-v2":
        return bert_layers(net, bert_embeddings(net, ids, types), mask, attention=deberta_attention, parts=(
            "attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj", "attention.output.dense",
            "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"))
    if kind == "modernbert":
        return modern_layers(net, net.norm("embeddings.norm", net.tensor("embeddings.tok_embeddings.weight")[ids]), mask)
    return nomic_layers(net, bert_embeddings(net, ids, types, norm="emb_ln"), mask)


# Masked LM: dense layer, activation, norm, matrix (None: that of the tokens), bias.
LM = {"bert": ("cls.predictions.transform.dense", "gelu", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
      "roberta": ("lm_head.dense", "gelu", "lm_head.layer_norm", "lm_head.bias"),
      "distilbert": ("vocab_transform", "gelu", "vocab_layer_norm", "vocab_projector.bias"),
      "albert": ("predictions.dense", "gelu_new", "predictions.LayerNorm", "predictions.bias"),
      "electra": ("generator_predictions.dense", "gelu", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
      "modernbert": ("head.dense", "gelu", "head.norm", "decoder.bias")}
LM |= {"xlm-roberta": LM["roberta"], "mpnet": LM["roberta"], "deberta-v2": LM["bert"]}
# Sequence classification: dense layer over the first token, activation, classifier.
SEQUENCE = {"bert": ("pooler.dense", "tanh", "classifier"), "roberta": ("classifier.dense", "tanh", "classifier.out_proj"),
            "distilbert": ("pre_classifier", "relu", "classifier"), "albert": ("pooler", "tanh", "classifier"),
            "electra": ("classifier.dense", "gelu", "classifier.out_proj"), "deberta-v2": ("pooler.dense", "gelu", "classifier"),
            "modernbert": ("head.dense", "gelu", "classifier")}
SEQUENCE |= {"xlm-roberta": SEQUENCE["roberta"], "mpnet": SEQUENCE["roberta"]}


def outputs(config, tensors, ids, types, mask):
    """Returns {name: array with a batch of one} for one row of tokens."""
    kind, architecture = config["model_type"], config["architectures"][0]
    net = Network(config, tensors, PREFIXES[kind])
    x = hidden(net, ids, types, mask)
    modern = kind == "modernbert"
    each = net.norm("head.norm", ACTIVATIONS["gelu"](net.linear("head.dense", x))) if modern and "For" in architecture else x
    if architecture.endswith("ForMaskedLM"):
        dense, act, norm, bias = LM[kind]
        y = net.norm(norm, ACTIVATIONS[act](net.linear(dense, x)))
        table = net.tensor(("embeddings.tok_embeddings" if modern else "embeddings.word_embeddings") + ".weight")
        return {"logits": (y @ table.T + net.tensor(bias))[None]}
    if architecture.endswith("ForSequenceClassification"):
        dense, act, classifier = SEQUENCE[kind]
        first = x[0]
        if config.get("classifier_pooling") == "mean":
            first = (x * mask[:, None]).sum(0) / mask.sum()
        y = ACTIVATIONS[act](net.linear(dense, first))
        return {"logits": net.linear(classifier, net.norm("head.norm", y) if modern else y)[None]}
    if architecture.endswith("ForTokenClassification"):
        return {"logits": net.linear("classifier", each)[None]}
    if architecture.endswith("ForQuestionAnswering"):
        y = net.linear("classifier" if modern else "qa_outputs", each)[None]
        return {"start_logits": y[..., 0], "end_logits": y[..., 1]}
    found = {"last_hidden_state": x[None]}
    pooler = "pooler" if kind == "albert" else "pooler.dense"
    if net.tensor(pooler + ".weight") is not None:
        found["pooler_output"] = np.tanh(net.linear(pooler, x[0]))[None]
    return found


# ---- folders

PREFIXES = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta.", "distilbert": "distilbert.", "albert": "albert.",
            "electra": "electra.", "mpnet": "mpnet.", "deberta-v2": "deberta.", "modernbert": "model.", "nomic_bert": "bert.", "t5": "", "mt5": "", "umt5": "",
            "gemma3_text": "model."}
KINDS = {"Bert": "bert", "Roberta": "roberta", "XLMRoberta": "xlm-roberta", "DistilBert": "distilbert", "Albert": "albert",
         "Electra": "electra", "MPNet": "mpnet", "DebertaV2": "deberta-v2", "ModernBert": "modernbert", "NomicBert": "nomic_bert",
         "T5": "t5", "MT5": "mt5", "UMT5": "umt5", "Gemma3Text": "gemma3_text"}


def tiny_t5(config, changes):
    """Returns (config, {name: shape}); heads do not divide the width."""
    inner, gated = HEADS * 10, changes.get("feed_forward_proj") == "gated-gelu"
    config |= {"d_model": WIDTH, "num_heads": HEADS, "d_kv": 10, "num_layers": LAYERS, "d_ff": INNER, "n_positions": MOST,
               "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu", "relative_attention_num_buckets": 32} | changes
    shape = {"shared.weight": (VOCABULARY, WIDTH), "encoder.embed_tokens.weight": (VOCABULARY, WIDTH),
             "encoder.final_layer_norm.weight": (WIDTH,),
             "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, HEADS)}
    for i in range(LAYERS):
        own = f"encoder.block.{i}.layer."
        shape |= {own + f"0.SelfAttention.{name}.weight": (inner, WIDTH) for name in "qkv"}
        if config["model_type"] == "umt5":
            shape[own + "0.SelfAttention.relative_attention_bias.weight"] = (32, HEADS)
        shape |= {own + f"{part}.layer_norm.weight": (WIDTH,) for part in (0, 1)}
        shape[own + "0.SelfAttention.o.weight"] = (WIDTH, inner)
        shape |= {own + f"1.DenseReluDense.{name}.weight": (INNER, WIDTH) for name in (("wi_0", "wi_1") if gated else ("wi",))}
        shape[own + "1.DenseReluDense.wo.weight"] = (WIDTH, INNER)
    return config, shape


def tiny_gemma(config, changes):
    """Returns the same for EmbeddingGemma: groups of heads share keys, and heads do not divide the width."""
    keys, head = 2, 16
    config |= {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": keys, "head_dim": head,
               "num_hidden_layers": LAYERS, "intermediate_size": INNER, "max_position_embeddings": MOST, "rms_norm_eps": 1e-6,
               "rope_theta": 1e6, "rope_local_base_freq": 10000.0, "sliding_window": 16, "sliding_window_pattern": 3,
               "query_pre_attn_scalar": head, "hidden_activation": "gelu_pytorch_tanh",
               "use_bidirectional_attention": True} | changes
    shape = {"embed_tokens.weight": (VOCABULARY, WIDTH), "norm.weight": (WIDTH,)}
    for i in range(LAYERS):
        own = f"layers.{i}."
        shape |= {own + f"self_attn.{name}_proj.weight": (size * head, WIDTH)
                  for name, size in (("q", HEADS), ("k", keys), ("v", keys))}
        shape[own + "self_attn.o_proj.weight"] = (WIDTH, HEADS * head)
        shape |= {own + f"self_attn.{name}_norm.weight": (head,) for name in "qk"}
        shape |= {own + f"{name}_layernorm.weight": (WIDTH,)
                  for name in ("input", "post_attention", "pre_feedforward", "post_feedforward")}
        shape |= {own + f"mlp.{name}_proj.weight": (INNER, WIDTH) for name in ("gate", "up")}
        shape[own + "mlp.down_proj.weight"] = (WIDTH, INNER)
    return config, shape


def tiny(architecture, seed=0, **changes):
    """Returns (config, {name: float32 array}) as saved by transformers."""
    family = max((name for name in KINDS if architecture.startswith(name)), key=len)
    kind, head = KINDS[family], architecture[len(family):]
    config = {"architectures": [architecture], "model_type": kind, "vocab_size": VOCABULARY, "pad_token_id": 1}
    if kind in ("t5", "mt5", "umt5", "gemma3_text"):
        config, shape = (tiny_gemma if kind == "gemma3_text" else tiny_t5)(config, changes)
        tensors = drawn(shape, seed)
        if kind != "gemma3_text":
            tensors["encoder.embed_tokens.weight"] = tensors["shared.weight"]
        return config, tensors
    shape, prefix = {}, "" if head == "Model" else PREFIXES[kind]
    embedding = 24 if kind in ("albert", "electra") else WIDTH

    def linear(name, out, inner=WIDTH, bias=True):
        shape[name + ".weight"] = (out, inner)
        if bias:
            shape[name + ".bias"] = (out,)

    def norm(name, size=WIDTH, bias=True):
        shape[name + ".weight"] = (size,)
        if bias:
            shape[name + ".bias"] = (size,)

    if kind == "distilbert":
        config |= {"dim": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "hidden_dim": INNER, "activation": "gelu",
                   "max_position_embeddings": MOST, "epsilon": 1e-12}
    elif kind == "nomic_bert":
        config |= {"n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_inner": INNER, "activation_function": "swiglu",
                   "n_positions": MOST, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
                   "rotary_scaling_factor": None, "prenorm": False, "type_vocab_size": 2}
    else:
        config |= {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": INNER,
                   "max_position_embeddings": MOST}
        config |= {"hidden_act": "gelu", "layer_norm_eps": 1e-7} if kind != "modernbert" else {
            "hidden_activation": "gelu", "norm_eps": 1e-5, "global_attn_every_n_layers": 3, "local_attention": 16,
            "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "classifier_activation": "gelu"}
    config |= {"albert": {"hidden_act": "gelu_new", "embedding_size": embedding, "num_hidden_groups": 1, "type_vocab_size": 2},
               "electra": {"embedding_size": embedding, "type_vocab_size": 2}, "bert": {"type_vocab_size": 2},
               "roberta": {"type_vocab_size": 1}, "xlm-roberta": {"type_vocab_size": 1},
               "mpnet": {"relative_attention_num_buckets": 32},
               "deberta-v2": {"type_vocab_size": 0, "position_biased_input": False, "relative_attention": True,
                              "position_buckets": 16, "max_relative_positions": -1, "norm_rel_ebd": "layer_norm",
                              "pos_att_type": ["p2c", "c2p"], "share_att_key": True, "pooler_hidden_act": "gelu"}}.get(kind, {})
    config |= changes

    word = "tok_embeddings" if kind == "modernbert" else "word_embeddings"
    shape[f"{prefix}embeddings.{word}.weight"] = (VOCABULARY, embedding)
    if kind not in ("deberta-v2", "modernbert", "nomic_bert"):
        shape[prefix + "embeddings.position_embeddings.weight"] = (MOST, embedding)
    if config.get("type_vocab_size"):
        shape[prefix + "embeddings.token_type_embeddings.weight"] = (config["type_vocab_size"], embedding)
    plain = kind != "modernbert"
    norm(prefix + {"modernbert": "embeddings.norm", "nomic_bert": "emb_ln"}.get(kind, "embeddings.LayerNorm"), embedding, plain)
    for i in range(1 if kind == "albert" else LAYERS):
        own = prefix + {"distilbert": f"transformer.layer.{i}.", "albert": f"encoder.albert_layer_groups.{i}.albert_layers.0.",
                        "modernbert": f"layers.{i}.", "nomic_bert": f"encoder.layers.{i}."}.get(kind, f"encoder.layer.{i}.")
        if kind == "modernbert":
            if i:
                norm(own + "attn_norm", bias=False)
            norm(own + "mlp_norm", bias=False)
            linear(own + "attn.Wqkv", 3 * WIDTH, bias=False)
            linear(own + "attn.Wo", WIDTH, bias=False)
            linear(own + "mlp.Wi", 2 * INNER, bias=False)
            linear(own + "mlp.Wo", WIDTH, INNER, bias=False)
            continue
        if kind == "nomic_bert":
            linear(own + "attn.Wqkv", 3 * WIDTH, bias=False)
            linear(own + "attn.out_proj", WIDTH, bias=False)
            linear(own + "mlp.fc11", INNER, bias=False)
            linear(own + "mlp.fc12", INNER, bias=False)
            linear(own + "mlp.fc2", WIDTH, INNER, bias=False)
            norm(own + "norm1")
            norm(own + "norm2")
            continue
        q, k, v, out, norm1, up, down, norm2 = {
            "distilbert": ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1",
                           "ffn.lin2", "output_layer_norm"),
            "albert": ("attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm", "ffn",
                       "ffn_output", "full_layer_layer_norm"),
            "mpnet": ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm",
                      "intermediate.dense", "output.dense", "output.LayerNorm"),
            "deberta-v2": ("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj",
                           "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
                           "output.LayerNorm"),
        }.get(kind, ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
                     "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"))
        for name in (q, k, v, out):
            linear(own + name, WIDTH)
        linear(own + up, INNER)
        linear(own + down, WIDTH, INNER)
        norm(own + norm1)
        norm(own + norm2)
        if kind == "deberta-v2" and not config["share_att_key"]:
            linear(own + "attention.self.pos_key_proj", WIDTH)
            linear(own + "attention.self.pos_query_proj", WIDTH)
    if kind == "albert":
        linear(prefix + "encoder.embedding_hidden_mapping_in", WIDTH, embedding)
    if kind == "electra":
        linear(prefix + "embeddings_project", WIDTH, embedding)
    if kind == "mpnet":
        shape[prefix + "encoder.relative_attention_bias.weight"] = (32, HEADS)
    if kind == "deberta-v2":
        shape[prefix + "encoder.rel_embeddings.weight"] = (2 * config["position_buckets"], WIDTH)
        norm(prefix + "encoder.LayerNorm")
    if kind == "modernbert":
        norm(prefix + "final_norm", bias=False)
    if head == "Model" and kind in ("bert", "roberta", "xlm-roberta", "mpnet"):
        linear("pooler.dense", WIDTH)
    if head == "Model" and kind == "albert":
        linear("pooler", WIDTH)
    if head == "ForMaskedLM":
        dense, _, norm_name, bias = LM[kind]
        linear(dense, embedding, bias=plain)
        norm(norm_name, embedding, plain)
        shape[bias] = (VOCABULARY,)
    if head == "ForSequenceClassification":
        dense, _, classifier = SEQUENCE[kind]
        inner = kind in ("bert", "albert")
        linear((prefix if inner else "") + dense, WIDTH, bias=plain)
        linear(classifier, LABELS)
    if kind == "modernbert" and head != "Model" and head != "ForMaskedLM":
        linear("head.dense", WIDTH, bias=False)
        norm("head.norm", bias=False)
    if head == "ForTokenClassification":
        linear("classifier", LABELS)
    if head == "ForQuestionAnswering":
        linear("classifier" if kind == "modernbert" else "qa_outputs", 2)

    return config, drawn(shape, seed)


def drawn(shape, seed):
    rng = np.random.default_rng(seed)
    norms = {name for name, dims in shape.items() if len(dims) == 1 and name.endswith(".weight")}
    return {name: (rng.standard_normal(dims) / (4 if len(dims) == 1 else math.sqrt(dims[1])) * (
        1 if "mbeddings" not in name else 4) + (name in norms)).astype("f4") for name, dims in shape.items()}
