"""Small recurrent language models with reference implementations in NumPy, which run token by token in float64."""
import numpy as np

from language_models import Llama

silu = lambda x: x / (1 + np.exp(-x))
sigmoid = lambda x: 1 / (1 + np.exp(-x))
softplus = lambda x: np.logaddexp(x, 0)


def convolved(x, taps, bias=0):
    """Causal depthwise convolution of x [tokens, channels] with taps [channels, .]; the last tap applies to the token itself."""
    past = np.zeros((taps.shape[1] - 1, x.shape[1]))
    padded = np.concatenate([past, x])
    return sum(padded[i:i + len(x)] * taps[:, i] for i in range(taps.shape[1])) + bias


class Recurrent(Llama):
    """A llama model in which some layers mix tokens with a recurrent block. `attends`: whether a layer keeps attention."""
    gguf_numbers = {}
    names_in_gguf = {}
    neighbours_in_gguf = False

    def attends(self, layer):
        return False

    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng(17)
        for layer, block in enumerate(self.blocks):
            if not self.attends(layer):
                for name in [name for name in block if name.startswith("attn_") and name != "attn_norm"]:
                    del block[name]
                block |= self.mixer()

    def draw(self, *shape):
        return (self.random.standard_normal(shape) / np.sqrt(shape[-1])).astype("f4")

    def time_steps(self, count):
        """Biases that give time steps between 0.001 and 0.1, the usual initialization (Gu and Dao 2023, section 3.6)."""
        steps = np.exp(self.random.uniform(np.log(0.001), np.log(0.1), count))
        return np.log(np.expm1(steps)).astype("f4")

    @staticmethod
    def suffixed(name):
        return name if name.endswith((".bias", "ssm_a", "ssm_d")) else f"{name}.weight"

    def gguf(self, path, numbers={}, tensors=None, encoded=()):
        return super().gguf(path, self.architecture, self.gguf_numbers | numbers, tensors, encoded)

    def gguf_tensors(self):
        tensors = super().gguf_tensors()
        for name, there in self.names_in_gguf.items():
            tensors = {key.replace(name, there): tensor for key, tensor in tensors.items()}
        return tensors

    def attention(self, layer, block, h):
        return super().attention(layer, block, h) if self.attends(layer) else self.mixed(block, h)


class Bare(Recurrent):
    """Recurrent layers without a feed-forward part."""

    def __init__(self):
        super().__init__()
        for block in self.blocks:
            for name in [name for name in block if name.startswith("ffn_")]:
                del block[name]

    def feed_forward(self, block, h):
        return 0


class Mamba(Bare):
    """Gu and Dao 2023, algorithm 2 and section 3.4."""
    architecture, inner_size, state, rank, taps = "mamba", 48, 6, 5, 4
    gguf_numbers = {"ssm.conv_kernel": 4, "ssm.inner_size": 48, "ssm.state_size": 6, "ssm.time_step_rank": 5,
                    "attention.head_count": 0, "attention.head_count_kv": 0, "feed_forward_length": 0}

    def mixer(self):
        inner = self.inner_size
        return {"ssm_in": self.draw(2 * inner, self.width), "ssm_conv1d": self.draw(inner, self.taps),
                "ssm_conv1d.bias": self.draw(inner), "ssm_x": self.draw(self.rank + 2 * self.state, inner),
                "ssm_dt": self.draw(inner, self.rank), "ssm_dt.bias": self.time_steps(inner),
                "ssm_a": -np.tile(np.arange(1, self.state + 1, dtype="f4"), (inner, 1)), "ssm_d": self.draw(inner) + 1,
                "ssm_out": self.draw(self.width, inner)}

    def mixed(self, block, h):
        x, gate = np.split(h @ block["ssm_in"].T, 2, -1)
        x = silu(convolved(x, block["ssm_conv1d"], block["ssm_conv1d.bias"]))
        step, B, C = (self.selected(part) for part in np.split(x @ block["ssm_x"].T, [self.rank, self.rank + self.state], -1))
        step = softplus(step @ block["ssm_dt"].T + block["ssm_dt.bias"])
        state, y = np.zeros((self.inner_size, self.state)), []
        for t in range(len(h)):
            state = np.exp(step[t, :, None] * block["ssm_a"]) * state + (step[t] * x[t])[:, None] * B[t]
            y.append(state @ C[t] + block["ssm_d"] * x[t])
        return (np.array(y) * silu(gate)) @ block["ssm_out"].T

    def selected(self, x):
        return x


class FalconMamba(Mamba):
    """Mamba with time steps, B and C normalized to mean square 1 (Zuo et al. 2024, Falcon Mamba, section 2.1)."""
    gguf_numbers = Mamba.gguf_numbers | {"ssm.dt_b_c_rms": True}

    def selected(self, x):
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + self.epsilon)


class Mamba2(Bare):
    """Dao and Gu 2024, sections 2.1 and 7."""
    architecture, inner_size, state, ssm_heads, groups, taps = "mamba2", 48, 6, 6, 2, 4
    gguf_numbers = {"ssm.conv_kernel": 4, "ssm.inner_size": 48, "ssm.state_size": 6, "ssm.time_step_rank": 6,
                    "ssm.group_count": 2, "attention.head_count": 0, "attention.head_count_kv": 0, "feed_forward_length": 0}

    def mixer(self):
        inner, heads = self.inner_size, self.ssm_heads
        channels = inner + 2 * self.groups * self.state
        return {"ssm_in": self.draw(inner + channels + heads, self.width), "ssm_conv1d": self.draw(channels, self.taps),
                "ssm_conv1d.bias": self.draw(channels), "ssm_dt.bias": self.time_steps(heads),
                "ssm_a": -self.random.uniform(1, 16, (heads, 1)).astype("f4"), "ssm_d": self.draw(heads, 1) + 1,
                "ssm_norm": 1 + self.draw(self.groups, inner // self.groups), "ssm_out": self.draw(self.width, inner)}

    def mixed(self, block, h):
        inner, heads, keys = self.inner_size, self.ssm_heads, self.groups * self.state
        gate, x, step = np.split(h @ block["ssm_in"].T, [inner, 2 * inner + 2 * keys], -1)
        x = silu(convolved(x, block["ssm_conv1d"], block["ssm_conv1d.bias"]))
        x, B, C = np.split(x, [inner, inner + keys], -1)
        step = softplus(step + block["ssm_dt.bias"])
        state, y = np.zeros((heads, inner // heads, self.state)), []
        for t in range(len(h)):
            of_head = lambda part: np.repeat(part[t].reshape(self.groups, self.state), heads // self.groups, 0)
            now, A = x[t].reshape(heads, -1), block["ssm_a"][:, 0]
            state = (np.exp(step[t] * A)[:, None, None] * state
                     + (step[t][:, None] * now)[:, :, None] * of_head(B)[:, None, :])
            y.append((np.einsum("hpn,hn->hp", state, of_head(C)) + block["ssm_d"] * now).reshape(-1))
        y = (np.array(y) * silu(gate)).reshape(len(h), self.groups, -1)
        return self.norm(y, block["ssm_norm"]).reshape(len(h), -1) @ block["ssm_out"].T


class Lfm2(Recurrent):
    """transformers, models/lfm2/modeling_lfm2.py."""
    architecture, layers, taps, head_norm = "lfm2", 3, 3, "each"
    gguf_numbers = {"attention.head_count_kv": [0, 2, 0], "shortconv.l_cache": 3}
    names_in_gguf = {"output_norm": "token_embd_norm"}

    def attends(self, layer):
        return layer == 1

    def mixer(self):
        return {"shortconv.in_proj": self.draw(3 * self.width, self.width), "shortconv.conv": self.draw(self.width, self.taps),
                "shortconv.out_proj": self.draw(self.width, self.width)}

    def mixed(self, block, h):
        B, C, x = np.split(h @ block["shortconv.in_proj"].T, 3, -1)
        return (C * convolved(B * x, block["shortconv.conv"])) @ block["shortconv.out_proj"].T


class Qwen35(Recurrent):
    """Gated delta nets (Yang et al. 2024, section 3); every fourth layer has gated attention (Qiu et al. 2025) with rotary
    embedding on half of each head. Value heads v, v + keys, ... share a key head, as in GGUF files."""
    architecture, layers, head_norm = "qwen35", 4, "each"
    keys, ssm_heads, state, taps = 2, 4, 32, 4
    gguf_numbers = {"ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 32, "ssm.time_step_rank": 4,
                    "ssm.group_count": 2, "rope.dimension_count": 4, "rope.dimension_sections": [1, 1, 0, 0],
                    "attention.key_length": 8, "attention.value_length": 8}
    names_in_gguf = {"ffn_norm": "post_attention_norm"}

    def __init__(self):
        super().__init__()
        self.frequencies = self.base ** (-np.arange(0, 4, 2) / 4)
        for layer, block in enumerate(self.blocks):
            if self.attends(layer):
                block["attn_q"] = self.draw(2 * self.heads * self.head, self.width)

    def attends(self, layer):
        return layer == 3

    def mixer(self):
        keys, values = self.keys * self.state, self.ssm_heads * self.state
        return {"attn_qkv": self.draw(2 * keys + values, self.width), "attn_gate": self.draw(values, self.width),
                "ssm_conv1d": self.draw(2 * keys + values, self.taps), "ssm_dt.bias": self.time_steps(self.ssm_heads),
                "ssm_a": -self.random.uniform(1, 16, self.ssm_heads).astype("f4"),
                "ssm_alpha": self.draw(self.ssm_heads, self.width), "ssm_beta": self.draw(self.ssm_heads, self.width),
                "ssm_norm": 1 + self.draw(self.state), "ssm_out": self.draw(self.width, values)}

    def turned(self, x):
        head, self.head = self.head, 4
        turned = super().turned(x[..., :4])
        self.head = head
        return np.concatenate([turned, x[..., 4:]], -1)

    def attention(self, layer, block, h):
        if not self.attends(layer):
            return self.mixed(block, h)
        rows = block["attn_q"].reshape(self.heads, 2, self.head, self.width)
        plain = block | {"attn_q": rows[:, 0].reshape(-1, self.width), "attn_output": np.eye(self.heads * self.head)}
        gate = h @ rows[:, 1].reshape(-1, self.width).T
        return (super().attention(layer, plain, h) * sigmoid(gate)) @ block["attn_output"].T

    def mixed(self, block, h):
        keys, heads, size = self.keys * self.state, self.ssm_heads, self.state
        x = silu(convolved(h @ block["attn_qkv"].T, block["ssm_conv1d"]))
        q, k, v = (part.reshape(len(h), -1, size) for part in np.split(x, [keys, 2 * keys], -1))
        unit = lambda x: x / np.sqrt(np.square(x).sum(-1, keepdims=True) + self.epsilon)
        q, k = (np.tile(unit(part), (1, heads // self.keys, 1)) for part in (q, k))
        q = q / np.sqrt(size)
        alpha = np.exp(block["ssm_a"] * softplus(h @ block["ssm_alpha"].T + block["ssm_dt.bias"]))
        beta = sigmoid(h @ block["ssm_beta"].T)
        state, y = np.zeros((heads, size, size)), []  # value rows, key columns
        for t in range(len(h)):
            state = alpha[t][:, None, None] * state
            error = v[t] - np.einsum("hvk,hk->hv", state, k[t])
            state = state + beta[t][:, None, None] * error[:, :, None] * k[t][:, None, :]
            y.append(np.einsum("hvk,hk->hv", state, q[t]))
        gate = h @ block["attn_gate"].T
        return (self.norm(np.array(y), block["ssm_norm"]).reshape(len(h), -1) * silu(gate)) @ block["ssm_out"].T


ALL = (Mamba, FalconMamba, Mamba2, Lfm2, Qwen35)
