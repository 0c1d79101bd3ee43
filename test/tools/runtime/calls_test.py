"""Calls every function of libmlc with NULL, zero, and garbage for each argument, in a process that must not end."""
import ctypes
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import driver  # noqa: E402
import interface  # noqa: E402
from speaking_models import Speaker  # noqa: E402

DIGITS = driver.ROOT / "manifests" / "digits" / "digits.onnx"
RESULTS = {"int32_t": ctypes.c_int32, "const char*": ctypes.c_char_p, "void": None, "const int64_t*": ctypes.c_void_p,
           "const mlc_error*": ctypes.c_void_p}
NUMBERS = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
           "double": ctypes.c_double, "mlc_value": ctypes.c_int64}
GARBAGE = [b"", b"{", b"[]", b"{\"a\": 1}", b"\xff\xfe", b"{\"dim\": 3}", b"{\"dim\": {\"a\": {}}}", b"{\"target\": [[]]}",
           b"{\"precision\": null}", b"null", b"{" * 100, b"{\"threads\": -1}", b"{\"threads\": 1e300}", b"{\"stop\": \"\"}",
           b"{\"no-measure\": 2}", b"{\"compress\": \"x\"}", b"{\"a\": 1, \"a\": 2}"]


def load():
    library = ctypes.CDLL(str(next(driver.BUILD.glob("libmlc.so"))))
    for function in interface.functions():
        entry = getattr(library, function.name)
        entry.restype = RESULTS[function.result]
        entry.argtypes = [NUMBERS.get(type, ctypes.c_void_p) for type, _ in function.parameters]
    return library


def numbers(type):
    if type == "double":
        return (0.0, float("nan"))
    return {"int32_t": (0, -1, 2**31 - 1), "int64_t": (0, -(2**63)), "mlc_value": (0, -1, 2**62), "uint64_t": (0, 2**64 - 1),
            "size_t": (0,)}.get(type, (None,))


class Handles:
    """A handle of every kind."""

    def __init__(self, library):
        def made(name, *arguments):
            handle = ctypes.c_void_p()
            code = getattr(library, name)(*arguments, ctypes.byref(handle), None)
            assert code == 0, name
            return handle

        self.library = library
        self.context = made("mlc_context_new", None)
        self.model = made("mlc_model_load", None, str(DIGITS).encode(), None)
        self.request = made("mlc_request_new", self.model)
        self.program = made("mlc_program_new", None)
        self.block = self.body = made("mlc_function_add", self.program, b"main")
        self.op = made("mlc_op_new", self.block, b"add", None)
        self.tokenizer = made("mlc_tokenizer_load", None, str(driver.ROOT / "manifests/verses/verses").encode())
        image = (ctypes.c_float * 64)()
        dims = (ctypes.c_int64 * 4)(1, 1, 8, 8)

        class Tensor(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                        ("rank", ctypes.c_int32), ("dims", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                        ("reserved", ctypes.c_void_p)]
        tensor = Tensor(ctypes.sizeof(Tensor), ctypes.addressof(image), 3, 4, ctypes.addressof(dims))
        assert library.mlc_request_set_input(self.request, b"image", ctypes.byref(tensor), None) == 0
        self.results = made("mlc_request_run", self.request, 0)


def calls():
    library = load()
    handles = Handles(library)
    count = failed = 0
    for function in interface.functions():
        if function.name.endswith("_free"):
            assert getattr(library, function.name)(None) is None
            continue
        kinds = [type for type, _ in function.parameters]
        names = [name for _, name in function.parameters]
        entry = getattr(library, function.name)
        has_error = bool(kinds) and kinds[-1] == "mlc_error**"
        handle = None
        for kind, name in zip(kinds, names):
            if kind.strip("*").replace("const ", "").startswith("mlc_") and kind.endswith("*") and not kind.endswith("**"):
                handle = handle or getattr(handles, name, None)
        for use_handle in (False, True):
            for choice in range(max([1, *(len(numbers(kind)) for kind in kinds)])):
                arguments = [numbers(kind)[choice % len(numbers(kind))] for kind in kinds]
                for i, name in enumerate(names):
                    if use_handle and kinds[i].startswith(("mlc_", "const mlc_")) and hasattr(handles, name) and kinds[i].endswith("*"):
                        arguments[i] = getattr(handles, name) if not kinds[i].endswith("**") else None
                error = ctypes.c_void_p()
                if has_error:
                    arguments[-1] = ctypes.byref(error)
                result = entry(*arguments)
                count += 1
                if has_error and result:
                    failed += 1
                    assert result == library.mlc_error_code(error) and result != 70, (function.name, library.mlc_error_text(error))
                    assert library.mlc_error_message(error)
                    library.mlc_error_free(error)
                # The record of the error may be refused, too.
                if has_error:
                    arguments[-1] = None
                    entry(*arguments)
    for function in interface.functions():
        names = [name for _, name in function.parameters]
        if "options" not in names:
            continue
        for text in GARBAGE:
            arguments = []
            for kind, name in function.parameters:
                if name == "options":
                    arguments.append(text)
                elif kind == "mlc_error**" or (kind.endswith("**") and name != "result"):
                    arguments.append(ctypes.byref(ctypes.c_void_p()))
                elif kind == "const char*":
                    arguments.append(str(DIGITS).encode())
                elif hasattr(handles, name):
                    arguments.append(getattr(handles, name))
                else:
                    arguments.append(None if kind.endswith("*") else 0)
            error = ctypes.c_void_p()
            arguments[-1] = ctypes.byref(error)
            code = getattr(library, function.name)(*arguments)
            count += 1
            assert code or text == b"", (function.name, text)
            if code:
                assert library.mlc_error_code(error) == code != 70, (function.name, text, library.mlc_error_text(error))
                assert b"--" not in library.mlc_error_message(error), library.mlc_error_text(error)
            library.mlc_error_free(error)
    print(f"{count} calls, {failed} refused")


def test_null_and_garbage(folder):
    if interface.sanitized():
        print("# calls of libmlc with garbage: skipped, a sanitizer cannot be loaded into Python")
        return
    done = subprocess.run([sys.executable, __file__, "--calls"], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
    assert not done.stderr, done.stderr
    print(f"# libmlc, NULL and garbage: {done.stdout.strip()}")


def test_conversations_are_formatted(folder):
    """mlc_tokenizer_chat runs the chat template of a model, with variables of its own."""
    if interface.sanitized():
        print("# chats of libmlc: skipped, a sanitizer cannot be loaded into Python")
        return
    template = ("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ tools|tojson if tools }}"
                "{{ 'assistant:' if add_generation_prompt }}")
    model = Speaker(add_bos=True, chat_template=template).gguf(folder / "m.gguf")
    library, tokenizer = load(), ctypes.c_void_p()
    assert library.mlc_tokenizer_load(None, str(model).encode(), ctypes.byref(tokenizer), None) == 0

    def chat(variables):
        text, size, error = ctypes.c_char_p(), ctypes.c_size_t(), ctypes.c_void_p()
        code = library.mlc_tokenizer_chat(tokenizer, variables.encode(), ctypes.byref(text), ctypes.byref(size), ctypes.byref(error))
        shown = (text.value if code == 0 else library.mlc_error_message(error)).decode()
        assert code or len(text.value) == size.value, shown
        library.mlc_string_free(text)
        library.mlc_error_free(error)
        return code, shown

    hi = '{"role": "user", "content": "Hi é"}'
    # The token that begins a text is added where it is encoded.
    assert chat(f'{{"messages": [{hi}]}}') == (0, "user: Hi é\nassistant:")
    assert chat(f'{{"messages": [{hi}], "tools": [{{"a": 1}}], "add_generation_prompt": false}}') == (0, 'user: Hi é\n[{"a": 1}]')
    for variables, words in (("[]", "not a JSON object"), ("{", "invalid JSON"), ('{"messages": 5}', "list of objects with a role"),
                             (f'{{"messages": [{hi.replace("Hi é", "x")}, {{"a": 1}}]}}', "list of objects with a role")):
        code, shown = chat(variables)
        assert code and words in shown, shown
    library.mlc_tokenizer_free(tokenizer)


if __name__ == "__main__":
    if sys.argv[1:] == ["--calls"]:
        sys.exit(calls())
    sys.exit(driver.run_tests(globals(), "calls of libmlc"))
