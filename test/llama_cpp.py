"""Calls llama.cpp through its C interface (include/llama.h, ggml/include/ggml-backend.h), from npm's @node-llama-cpp/linux-x64.
Used as a script, it runs in a separate process that frees all memory at its end:

    llama_cpp.py LIBRARIES MODEL.gguf PROMPT TOKENS [--threads N] [--backend haswell]

measures a prompt and the tokens after it and prints {"prefill_ms": ..., "decode_ms": [...]}. LIBRARIES is the folder of
libllama. If MODEL.gguf is -, a JSON request is read from stdin and answered with a JSON object; ask() does the same:

    {"model": FILE, "greedy": [5, 17], "count": N}             {"tokens": the next N tokens of greedy decoding}
    {"model": FILE, "encode": TEXT}                            {"tokens": ids, including special tokens}
    {"model": FILE, "perplexity": [5, 17, ...], "context": C}  {"perplexity": as computed by tools/perplexity}
    {"models": [FILE, ...], "logits": [5, 17, ...]}            {"logits": [tokens, vocabulary] per file, or null if not loaded}
    {"model": FILE, "quantize": TYPE, "out": FILE}             {}: quantizes like tools/quantize, to Q8_0 or Q4_0
    {"chat": [[JINJA, SYSTEM or null, USER], ...]}             {"prompts": [text or null]}
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np


def libraries(folder):
    """Returns the folder of the libraries that npm installed under `folder`, or None."""
    found = pathlib.Path(folder) / "node_modules" / "@node-llama-cpp" / "linux-x64" / "bins" / "linux-x64"
    return found if found.is_dir() else None


def ask(question):
    """Returns the answer to a request; None if LLAMA_DIR does not contain llama.cpp."""
    folder = libraries(os.environ.get("LLAMA_DIR", "/none"))
    if not folder:
        return None
    done = subprocess.run([sys.executable, __file__, folder, "-", "0", "0"], input=json.dumps(question), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Record(ctypes.Structure):
    """A llama.cpp struct passed by value. It is passed in memory, the library initializes it, and only as much as it needs is read."""
    _fields_ = [("words", ctypes.c_uint32 * 256)]


class Batch(ctypes.Structure):
    """llama_batch. Null fields default to values that follow from the context; `logits` marks the tokens whose logits are returned."""
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                ("pos", ctypes.c_void_p), ("n_seq_id", ctypes.c_void_p), ("seq_id", ctypes.c_void_p),
                ("logits", ctypes.POINTER(ctypes.c_int8))]


class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


def load(folder, backend):
    """Loads libllama with one of its CPU backends."""
    def library(pattern):
        return ctypes.CDLL(str(sorted(pathlib.Path(folder).glob(pattern))[0]), mode=ctypes.RTLD_GLOBAL)

    library("libggml-base*.so*")
    ggml, llama = library("libggml.*so*"), library("libllama.*so*")
    ggml.ggml_backend_load.restype = ctypes.c_void_p
    if not ggml.ggml_backend_load(os.fsencode(pathlib.Path(folder) / f"libggml-cpu-{backend}.so")):
        raise SystemExit(f"llama.cpp has no backend {backend} that runs here")
    for name, result, parameters in (
            ("llama_model_default_params", Record, []), ("llama_context_default_params", Record, []),
            ("llama_model_load_from_file", ctypes.c_void_p, [ctypes.c_char_p, Record]),
            ("llama_init_from_model", ctypes.c_void_p, [ctypes.c_void_p, Record]),
            ("llama_model_free", None, [ctypes.c_void_p]), ("llama_free", None, [ctypes.c_void_p]),
            ("llama_set_n_threads", None, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]),
            ("llama_batch_get_one", Batch, [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32]),
            ("llama_decode", ctypes.c_int32, [ctypes.c_void_p, Batch]),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p, ctypes.c_int32]),
            ("llama_model_get_vocab", ctypes.c_void_p, [ctypes.c_void_p]),
            ("llama_vocab_n_tokens", ctypes.c_int32, [ctypes.c_void_p]),
            ("llama_vocab_bos", ctypes.c_int32, [ctypes.c_void_p]),
            ("llama_vocab_get_add_bos", ctypes.c_bool, [ctypes.c_void_p]),
            ("llama_tokenize", ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32),
                                                ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]),
            ("llama_model_quantize_default_params", Record, []),
            ("llama_model_quantize", ctypes.c_uint32, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Record)]),
            ("llama_chat_apply_template", ctypes.c_int32, [ctypes.c_char_p, ctypes.POINTER(Message), ctypes.c_size_t, ctypes.c_bool,
                                                           ctypes.c_char_p, ctypes.c_int32])):
        function = getattr(llama, name)
        function.restype, function.argtypes = result, parameters
    return llama


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
SILENCE = LOG(lambda level, text, data: None)


def quiet(llama):
    llama.llama_backend_init()
    llama.llama_log_set(SILENCE, None)
    return llama


def opened(llama, model):
    return loaded(llama, model) or sys.exit(f"llama.cpp does not load {model}")


def loaded(llama, model):
    return llama.llama_model_load_from_file(os.fsencode(model), llama.llama_model_default_params())


class Model:
    """A model and a context for a number of tokens, all of which may be in one batch."""

    def __init__(self, llama, path, context):
        self.llama, self.model = llama, opened(llama, path)
        self.vocabulary = llama.llama_model_get_vocab(self.model)
        self.size = llama.llama_vocab_n_tokens(self.vocabulary)
        self.context = context

    def start(self):
        parameters = self.llama.llama_context_default_params()
        parameters.words[:3] = [self.context] * 3  # n_ctx, n_batch, n_ubatch: the first fields
        assert list(parameters.words[26:28]) == [1, 1], "another llama.cpp: its parameters lie elsewhere"
        parameters.words[26:28] = [0, 0]  # type_k, type_v: F32 instead of F16, as in the model
        assert parameters.words[13] == 0xFFFFFFFF, "another llama.cpp: its parameters lie elsewhere"
        parameters.words[13] = 0  # flash_attn_type: disabled, because it rounds to F16
        self.running = ctypes.c_void_p(self.llama.llama_init_from_model(self.model, parameters))
        assert self.running, "llama.cpp makes no context"
        self.llama.llama_set_n_threads(self.running, 1, 1)  # waiting threads spin

    def logits(self, ids, first):
        """Returns logits [tokens, vocabulary] of the tokens from `first` on, which continue the context."""
        count = len(ids)
        wanted = (ctypes.c_int8 * count)(*(i >= first for i in range(count)))
        batch = Batch(count, (ctypes.c_int32 * count)(*ids), logits=wanted)
        assert self.llama.llama_decode(self.running, batch) == 0, "llama.cpp cannot decode"
        rows = (self.llama.llama_get_logits_ith(self.running, i) for i in range(first, count))
        return np.stack([np.ctypeslib.as_array(row, (self.size,)).astype("f8") for row in rows])

    def greedy(self, ids, count):
        self.start()
        tokens = []
        for _ in range(count):
            new = tokens[-1:] or ids
            tokens.append(int(self.logits(new, len(new) - 1).argmax()))
        return tokens

    def encode(self, text, special):
        data = text.encode()
        array = (ctypes.c_int32 * (4 * len(data) + 8))()  # a space may become three bytes
        count = self.llama.llama_tokenize(self.vocabulary, data, len(data), array, len(array), True, special)
        return list(array[:count])

    def perplexity(self, ids):
        """Perplexity as in tools/perplexity: chunks have the length of the context, their first token is replaced by bos if the
        vocabulary adds one, and the tokens of the second half of each chunk are scored."""
        bos = self.llama.llama_vocab_bos(self.vocabulary) if self.llama.llama_vocab_get_add_bos(self.vocabulary) else None
        surprises, first = [], self.context // 2
        for begin in range(0, len(ids) // self.context * self.context, self.context):
            chunk = ids[begin:begin + self.context]
            if bos is not None:
                chunk[0] = bos
            self.start()
            rows = self.logits(chunk, first)[:-1]
            rows -= rows.max(1, keepdims=True)
            surprises.append(np.log(np.exp(rows).sum(1)) - rows[np.arange(len(rows)), chunk[first + 1:]])
            self.llama.llama_free(self.running)
        return float(np.exp(np.mean(surprises)))


def chat(llama, jinja, system, user):
    messages = [("system", system)] * (system is not None) + [("user", user)]
    array = (Message * len(messages))(*(Message(role.encode(), text.encode()) for role, text in messages))
    out = ctypes.create_string_buffer(1 << 16)
    size = llama.llama_chat_apply_template(jinja.encode(), array, len(messages), True, out, len(out))
    return out.raw[:size].decode() if size >= 0 else None


def quantize(llama, model, kind, out):
    parameters = llama.llama_model_quantize_default_params()
    parameters.words[1] = {"Q4_0": 2, "Q8_0": 7}[kind]  # llama_ftype
    assert llama.llama_model_quantize(os.fsencode(model), os.fsencode(out), ctypes.byref(parameters)) == 0, "llama.cpp cannot quantise"
    return {}


def logits_of(llama, path, ids):
    held = loaded(llama, path)
    if not held:
        return None
    llama.llama_model_free(held)
    model = Model(llama, path, max(len(ids), 96))
    model.start()
    rows = model.logits(ids, 0).tolist()
    llama.llama_free(model.running)
    llama.llama_model_free(model.model)
    return rows


def answer(llama, question):
    if "logits" in question:
        return {"logits": [logits_of(llama, path, question["logits"]) for path in question["models"]]}
    if "chat" in question:
        return {"prompts": [chat(llama, *each) for each in question["chat"]]}
    if "quantize" in question:
        return quantize(llama, question["model"], question["quantize"], question["out"])
    model = Model(llama, question["model"], question.get("context", 512))
    if "greedy" in question:
        return {"tokens": model.greedy(question["greedy"], question["count"])}
    if "encode" in question:
        return {"tokens": model.encode(question["encode"], True)}
    return {"perplexity": model.perplexity(question["perplexity"])}


def measure(folder, model, prompt, tokens, threads, backend):
    """Measures the milliseconds for the prompt and for each following token. Everything runs twice; the first run warms up."""
    llama = quiet(load(folder, backend))
    held = opened(llama, model)
    for _ in range(2):
        parameters = llama.llama_context_default_params()
        parameters.words[0] = prompt + tokens  # n_ctx, the first field
        context = llama.llama_init_from_model(held, parameters)
        llama.llama_set_n_threads(context, threads, threads)
        times = []
        for count in (prompt, *[1] * tokens):
            ids = (ctypes.c_int32 * count)(*((7 * i + 5) % 1000 for i in range(count)))
            start = time.perf_counter()
            if llama.llama_decode(context, llama.llama_batch_get_one(ids, count)) != 0:
                raise SystemExit("llama.cpp cannot decode")
            llama.llama_get_logits_ith(context, -1)[0]  # waits for the result
            times.append(1e3 * (time.perf_counter() - start))
        llama.llama_free(ctypes.c_void_p(context))
    return {"prefill_ms": times[0], "decode_ms": times[1:]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("prompt", type=int)
    parser.add_argument("tokens", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", default="haswell")
    a = parser.parse_args()
    if str(a.model) == "-":
        print(json.dumps(answer(quiet(load(a.libraries, a.backend)), json.load(sys.stdin))))
        sys.exit()
    print(json.dumps(measure(a.libraries, a.model, a.prompt, a.tokens, a.threads, a.backend)))
