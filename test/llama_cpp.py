"""llama.cpp through its C interface (include/llama.h, ggml/include/ggml-backend.h), as npm's @node-llama-cpp/linux-x64 has it:
what a prompt and the tokens after it cost. As a script, so that what it holds ends with it:

    llama_cpp.py LIBRARIES MODEL.gguf PROMPT TOKENS [--threads N] [--backend haswell]

prints {"prefill_ms": ..., "decode_ms": [...]}; LIBRARIES is the folder of libllama.
"""
import argparse
import ctypes
import json
import os
import pathlib
import time


def libraries(folder):
    """Where npm put them under `folder`; None where it did not."""
    found = pathlib.Path(folder) / "node_modules" / "@node-llama-cpp" / "linux-x64" / "bins" / "linux-x64"
    return found if found.is_dir() else None


class Record(ctypes.Structure):
    """Any of its structs by value, which all go through memory: the library makes them, and reads only as much as they have."""
    _fields_ = [("words", ctypes.c_uint32 * 256)]


def load(folder, backend):
    """libllama with one of the processor's backends."""
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
            ("llama_set_n_threads", None, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]),
            ("llama_batch_get_one", Record, [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32]),
            ("llama_decode", ctypes.c_int32, [ctypes.c_void_p, Record]),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p, ctypes.c_int32])):
        function = getattr(llama, name)
        function.restype, function.argtypes = result, parameters
    return llama


def measure(folder, model, prompt, tokens, threads, backend):
    """Milliseconds of the prompt and of each token after it. All of it runs twice, the first time for what is made once."""
    llama = load(folder, backend)
    llama.llama_backend_init()
    log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    quiet = log(lambda level, text, data: None)
    llama.llama_log_set(quiet, None)
    held = llama.llama_model_load_from_file(os.fsencode(model), llama.llama_model_default_params())
    if not held:
        raise SystemExit(f"llama.cpp does not load {model}")
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
            llama.llama_get_logits_ith(context, -1)[0]  # which waits
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
    print(json.dumps(measure(a.libraries, a.model, a.prompt, a.tokens, a.threads, a.backend)))
