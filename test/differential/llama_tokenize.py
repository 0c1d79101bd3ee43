#!/usr/bin/env python3
"""llama_tokenize.py LIBRARIES MODEL.gguf [--special] <TEXTS.json - prints llama.cpp's ids for a JSON list of texts, as a list of
lists.

Only the vocabulary is loaded. LIBRARIES is the folder of libllama.
"""
import ctypes
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import llama_cpp


def vocabulary_only(parameters):
    """Sets vocab_only, the first of several booleans, of which only the third is true by default; its offset depends on the version."""
    data = bytearray(parameters)
    place = next(i for i in range(56, 128, 8) if bytes(data[i:i + 4]) == b"\0\0\1\0")
    ctypes.memset(ctypes.addressof(parameters) + place, 1, 1)
    return parameters


def main():
    folder, model = sys.argv[1:3]
    llama = llama_cpp.load(folder, "x64")
    for name, result, parameters in (
            ("llama_model_get_vocab", ctypes.c_void_p, [ctypes.c_void_p]),
            ("llama_tokenize", ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32,
                                                ctypes.c_bool, ctypes.c_bool])):
        function = getattr(llama, name)
        function.restype, function.argtypes = result, parameters
    llama.llama_backend_init()
    log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    said = []
    keep = log(lambda level, text, data: said.append(text.decode(errors="replace")))
    llama.llama_log_set(keep, None)
    held = llama.llama_model_load_from_file(os.fsencode(model), vocabulary_only(llama.llama_model_default_params()))
    if not held:
        raise SystemExit(f"llama.cpp does not load {model}: {''.join(said)[-500:]}")
    vocabulary = llama.llama_model_get_vocab(held)
    lists = []
    for text in json.load(sys.stdin):
        data = text.encode()
        room = len(data) * 2 + 16
        ids = (ctypes.c_int32 * room)()
        count = llama.llama_tokenize(vocabulary, data, len(data), ids, room, False, "--special" in sys.argv)
        lists.append(list(ids[:count]))
    json.dump(lists, sys.stdout)


if __name__ == "__main__":
    main()
