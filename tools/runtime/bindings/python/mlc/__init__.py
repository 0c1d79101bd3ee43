"""libmlc in Python, with ctypes. mlc.h is the manual.

    import mlc, numpy
    model = mlc.Model("digits.mlpackage")
    scores = model.predict({"image": numpy.zeros((1, 1, 8, 8), "f4")})["probabilities"]

Arrays are passed by the buffer protocol, without copies: NumPy arrays, array.array, memoryview. ctypes releases the interpreter
lock during calls. Options are dictionaries. The library is libmlc of the system, or the file that MLC_LIBRARY names.
"""
import ctypes
import ctypes.util
import json
import os

from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p

BOOL, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16, STRING, FP64, BF16, INT64, UINT32, UINT64 = range(1, 15)
# The format characters of the buffer protocol.
_FORMATS = {"?": BOOL, "e": FP16, "f": FP32, "b": INT8, "h": INT16, "i": INT32, "B": UINT8, "H": UINT16, "d": FP64, "q": INT64,
            "l": INT64 if ctypes.sizeof(ctypes.c_long) == 8 else INT32, "I": UINT32, "Q": UINT64,
            "L": UINT64 if ctypes.sizeof(ctypes.c_long) == 8 else UINT32}
_NAMES = {BOOL: "?", FP16: "e", FP32: "f", INT8: "b", INT16: "h", INT32: "i", UINT8: "B", UINT16: "H"}
_INPUT, _OUTPUT, _STATE = 0, 1, 2


def _load():
    name = os.environ.get("MLC_LIBRARY") or ctypes.util.find_library("mlc") or "libmlc.so.0"
    library = ctypes.CDLL(name)
    for function in ("mlc_version", "mlc_error_id", "mlc_error_message", "mlc_error_text", "mlc_model_schema", "mlc_model_port_name",
                     "mlc_results_name", "mlc_results_string", "mlc_value_name"):
        getattr(library, function).restype = c_char_p
    for function in ("mlc_error_free", "mlc_string_free", "mlc_context_free", "mlc_model_free", "mlc_state_free", "mlc_results_free",
                     "mlc_tokenizer_free", "mlc_generator_free", "mlc_op_free", "mlc_program_free"):
        getattr(library, function).argtypes = [c_void_p]
        getattr(library, function).restype = None
    return library


class _Tensor(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("dtype", c_int32), ("rank", c_int32), ("dims", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("reserved", c_void_p)]


class Error(Exception):
    """An error of the library: code (class), id, message; str() is the whole text."""

    def __init__(self, record):
        super().__init__(_library.mlc_error_text(record).decode())
        self.code = _library.mlc_error_code(record)
        self.id = _library.mlc_error_id(record).decode()
        self.message = _library.mlc_error_message(record).decode()
        _library.mlc_error_free(record)


_library = _load()


def _call(function, *arguments):
    error = c_void_p()
    if getattr(_library, function)(*arguments, byref(error)):
        raise Error(error)


def _text(function, *arguments):
    text = c_void_p()
    _call(function, *arguments, byref(text))
    value = ctypes.string_at(text).decode()
    _library.mlc_string_free(text)
    return value


def _made(function, *arguments):
    handle = c_void_p()
    _call(function, *arguments, byref(handle))
    return handle


def _bytes(text):
    return None if text is None else os.fsencode(text)


def _options(options):
    return json.dumps(options).encode() if options else None


class _View:
    """A tensor over the memory of an object with the buffer protocol, which it keeps alive."""

    def __init__(self, array, dtype=None):
        view = memoryview(array)
        self.kept = view, array
        strides = None if view.c_contiguous else view.strides
        if hasattr(array, "__array_interface__"):
            address = array.__array_interface__["data"][0]
        elif strides:
            raise TypeError("the memory must be contiguous")
        elif view.readonly or not view.nbytes:
            self.holder = ctypes.create_string_buffer(view.tobytes())  # ctypes takes the address of writable memory only
            address = ctypes.addressof(self.holder)
        else:
            self.holder = (ctypes.c_char * view.nbytes).from_buffer(view)
            address = ctypes.addressof(self.holder)
        rank = view.ndim
        self.dims = (c_int64 * max(rank, 1))(*view.shape)
        self.strides = (c_int64 * rank)(*(s // view.itemsize for s in strides)) if strides else None
        kind = dtype or _FORMATS.get(view.format.lstrip("<=@"))
        if kind is None:
            raise TypeError(f"elements of format {view.format} are not supported")
        self.tensor = _Tensor(ctypes.sizeof(_Tensor), address, kind, rank, self.dims, self.strides, None)


class Context:
    """Number of threads, callbacks, cancellation of long calls. `progress` returns True to cancel; `log` gets (level, id, text)."""
    _LOG = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_char_p, c_void_p)
    _PROGRESS = ctypes.CFUNCTYPE(c_int32, c_char_p, ctypes.c_double, c_void_p)

    def __init__(self, log=None, progress=None, **options):
        self._handle = _made("mlc_context_new", _options(options))
        self._log = self._LOG(lambda level, id, text, _: log(level, id.decode(), text.decode())) if log else None
        self._progress = self._PROGRESS(lambda step, share, _: int(bool(progress(step.decode(), share)))) if progress else None
        if log:
            _library.mlc_context_set_log(self._handle, self._log, None)
        if progress:
            _library.mlc_context_set_progress(self._handle, self._progress, None)

    def cancel(self):
        _library.mlc_context_cancel(self._handle)

    def reset(self):
        _library.mlc_context_reset(self._handle)

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_context_free(self._handle)


def _context(context):
    return context._handle if context else None


def version():
    return _library.mlc_version().decode()


def compile(model, output, options=None, context=None):
    return json.loads(_text("mlc_compile", _context(context), _bytes(model), _bytes(output), _options(options)))


def inspect(model, options=None, context=None):
    return json.loads(_text("mlc_inspect", _context(context), _bytes(model), _options(options)))


def verify(source, package, options=None, context=None):
    return json.loads(_text("mlc_verify", _context(context), _bytes(source), _bytes(package), _options(options)))


def capabilities():
    return json.loads(_text("mlc_capabilities"))


class Array:
    """An output: has the buffer protocol through memoryview(array.view), and __array_interface__ for NumPy."""

    def __init__(self, results, tensor):
        self._results = results
        self.shape = tuple(tensor.dims[i] for i in range(tensor.rank))
        self.format = _NAMES[tensor.dtype]
        count = 1
        for size in self.shape:
            count *= size
        item = {"?": 1, "e": 2, "f": 4, "b": 1, "h": 2, "i": 4, "B": 1, "H": 2}[self.format]
        raw = (ctypes.c_char * (count * item)).from_address(tensor.data) if count else bytearray()
        self.view = memoryview(raw).cast("B").cast(self.format, self.shape) if count and self.shape else memoryview(raw).cast("B").cast(self.format)
        kind = {"?": "|b1", "e": "<f2", "f": "<f4", "b": "|i1", "h": "<i2", "i": "<i4", "B": "|u1", "H": "<u2"}[self.format]
        self.__array_interface__ = {"version": 3, "shape": self.shape, "typestr": kind, "data": (tensor.data or 0, True)}

    def tolist(self):
        values = self.view.tolist()
        return values if self.shape else values[0]


class _Results:
    def __init__(self, handle):
        self._handle = handle

    def __del__(self):
        _library.mlc_results_free(self._handle)

    def arrays(self):
        found = {}
        for index in range(_library.mlc_results_count(self._handle)):
            tensor = _Tensor(struct_size=ctypes.sizeof(_Tensor))
            _call("mlc_results_tensor", self._handle, c_int32(index), byref(tensor))
            name = _library.mlc_results_name(self._handle, c_int32(index)).decode()
            if tensor.dtype == STRING:
                found[name] = _library.mlc_results_string(self._handle, c_int32(index), c_int64(0)).decode()
            else:
                found[name] = Array(self, tensor)
        return found


class State:
    """The states of a model between predictions."""

    def __init__(self, model):
        self._handle = _made("mlc_state_new", model._handle)

    def read(self, name, into, dtype=None):
        _call("mlc_state_read", self._handle, name.encode(), byref(_View(into, dtype).tensor))

    def write(self, name, values, dtype=None):
        view = _View(values, dtype)
        _call("mlc_state_write", self._handle, name.encode(), byref(view.tensor))

    def reset(self):
        _call("mlc_state_reset", self._handle)

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_state_free(self._handle)


class Model:
    """A loaded function of a model."""

    def __init__(self, path=None, options=None, context=None, _handle=None):
        self._handle = _handle or _made("mlc_model_load", _context(context), _bytes(path), _options(options))

    @property
    def schema(self):
        return json.loads(_library.mlc_model_schema(self._handle))

    def new_state(self):
        return State(self)

    def predict(self, inputs, state=None, timeout_ms=0, outputs=None):
        """Returns {name: Array}. With `outputs`, {name: writable buffer}, the results are copied there instead."""
        views = [_View(array) for array in inputs.values()]
        targets = [_View(array) for array in (outputs or {}).values()]

        def arrays(names, made):
            return ((c_char_p * len(made))(*(name.encode() for name in names)),
                    (POINTER(_Tensor) * len(made))(*(ctypes.pointer(view.tensor) for view in made)))

        in_names, in_tensors = arrays(inputs, views)
        out_names, out_tensors = arrays(outputs or {}, targets)
        results = c_void_p()
        _call("mlc_predict", self._handle, state._handle if state else None, c_int32(len(views)), in_names, in_tensors,
              c_int32(len(targets)), out_names, out_tensors, c_int64(timeout_ms), None if outputs else byref(results))
        return None if outputs else _Results(results).arrays()

    def placements(self):
        return json.loads(_text("mlc_model_placements", self._handle))

    def telemetry(self):
        return json.loads(_text("mlc_model_telemetry", self._handle))

    def capabilities(self):
        return json.loads(_text("mlc_model_capabilities", self._handle))

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_model_free(self._handle)


class Tokenizer:
    def __init__(self, path, context=None):
        self._handle = _made("mlc_tokenizer_load", _context(context), _bytes(path))

    def encode(self, text, add_special=True, parse_special=False):
        data, count, room = text.encode(), c_size_t(), len(text.encode()) + 8
        while True:
            ids = (c_int32 * room)()
            _call("mlc_tokenizer_encode", self._handle, data, c_size_t(len(data)), c_int32(add_special), c_int32(parse_special), ids,
                  c_size_t(room), byref(count))
            if count.value <= room:
                return list(ids[:count.value])
            room = count.value

    def decode(self, ids, special=False):
        text, size = c_void_p(), c_size_t()
        _call("mlc_tokenizer_decode", self._handle, (c_int32 * len(ids))(*ids), c_size_t(len(ids)), c_int32(special), byref(text),
              byref(size))
        value = ctypes.string_at(text, size.value).decode("utf-8", "replace")
        _library.mlc_string_free(text)
        return value

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_tokenizer_free(self._handle)


class Generator:
    """An iterator of pieces of text."""

    def __init__(self, model, tokenizer, **options):
        self._handle = _made("mlc_generator_new", model._handle, tokenizer._handle if tokenizer else None, _options(options))
        self._done = False

    def feed(self, text):
        data = text.encode()
        self._done = False
        _call("mlc_generator_feed", self._handle, data, c_size_t(len(data)))

    def __iter__(self):
        return self

    def __next__(self):
        if self._done:
            raise StopIteration
        piece, done = c_char_p(), c_int32()
        _call("mlc_generator_next", self._handle, None, byref(piece), byref(done))
        self._done = bool(done.value)
        return piece.value.decode("utf-8", "replace")

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_generator_free(self._handle)


class Block:
    """A block of a program. op() takes values, numbers, strings, lists and buffers as arguments."""

    def __init__(self, program, handle):
        self._program, self._handle = program, handle

    def input(self, name, dtype, dims):
        value = c_int64()
        _call("mlc_block_input", self._handle, name.encode(), c_int32(dtype), c_int32(len(dims)), (c_int64 * max(len(dims), 1))(*dims),
              byref(value))
        return Value(value.value)

    def state(self, name, dtype, dims):
        value = c_int64()
        _call("mlc_block_state", self._handle, name.encode(), c_int32(dtype), c_int32(len(dims)), (c_int64 * max(len(dims), 1))(*dims),
              byref(value))
        return Value(value.value)

    def symbol(self, name, low, high):
        dim = c_int64()
        _call("mlc_block_symbol", self._handle, name.encode(), c_int64(low), c_int64(high), byref(dim))
        return dim.value

    def constant(self, array, name="", dtype=None):
        value, view = c_int64(), _View(array, dtype)
        _call("mlc_block_constant", self._handle, name.encode(), byref(view.tensor), byref(value))
        return Value(value.value)

    def scalar(self, number, dtype=INT32):
        """A constant without dimensions."""
        holder = {INT32: c_int32, FP32: ctypes.c_float}[dtype](number)
        tensor = _Tensor(ctypes.sizeof(_Tensor), ctypes.addressof(holder), dtype, 0, None, None, None)
        value = c_int64()
        _call("mlc_block_constant", self._handle, b"", byref(tensor), byref(value))
        return Value(value.value)

    def output(self, value, name=""):
        _call("mlc_block_output", self._handle, name.encode(), c_int64(value.id))

    def begin(self, op_name, name="", **arguments):
        op = Op(self, op_name, name)
        for parameter, argument in arguments.items():
            op.set(parameter, argument)
        return op

    def op(self, op_name, name="", **arguments):
        """Adds an operation; returns its result, or a list of them."""
        results = self.begin(op_name, name, **arguments).finish()
        return results[0] if len(results) == 1 else results


class Value:
    def __init__(self, id):
        self.id = id


class Op:
    def __init__(self, block, op_name, name):
        self._block = block
        self._handle = _made("mlc_op_new", block._handle, op_name.encode(), name.encode())

    def set(self, parameter, argument):
        key = parameter.encode()
        if isinstance(argument, Value):
            _call("mlc_op_arg", self._handle, key, c_int64(argument.id))
        elif isinstance(argument, bool):
            _call("mlc_op_bool", self._handle, key, c_int32(argument))
        elif isinstance(argument, int):
            _call("mlc_op_int", self._handle, key, c_int64(argument))
        elif isinstance(argument, float):
            _call("mlc_op_float", self._handle, key, ctypes.c_double(argument))
        elif isinstance(argument, str):
            _call("mlc_op_string", self._handle, key, argument.encode())
        elif argument and all(isinstance(one, Value) for one in argument):
            _call("mlc_op_args", self._handle, key, c_int32(len(argument)), (c_int64 * len(argument))(*(one.id for one in argument)))
        elif all(isinstance(one, int) for one in argument):
            _call("mlc_op_ints", self._handle, key, c_int32(len(argument)), (c_int64 * len(argument))(*argument))
        else:
            _call("mlc_op_floats", self._handle, key, c_int32(len(argument)), (ctypes.c_double * len(argument))(*argument))
        return self

    def block(self, index):
        return Block(self._block._program, _made("mlc_op_block", self._handle, c_int32(index)))

    def finish(self):
        results, count = (c_int64 * 256)(), c_int32()
        _call("mlc_op_finish", self._handle, c_int32(256), results, byref(count))
        return [Value(id) for id in results[:count.value]]

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_op_free(self._handle)


class Program:
    """A program under construction, or, with `model`, one that was imported."""

    def __init__(self, model=None, options=None, context=None):
        self._handle = (_made("mlc_program_open", _context(context), _bytes(model), _options(options)) if model
                        else _made("mlc_program_new", _options(options)))

    def function(self, name="main"):
        return Block(self, _made("mlc_function_add", self._handle, name.encode()))

    def text(self):
        return _text("mlc_program_text", self._handle)

    def optimise(self, options=None, context=None):
        return json.loads(_text("mlc_program_optimise", _context(context), self._handle, _options(options)))

    def write(self, path, options=None, context=None):
        return json.loads(_text("mlc_program_write", _context(context), self._handle, _bytes(path), _options(options)))

    def compile(self, path, options=None, context=None):
        return json.loads(_text("mlc_program_compile", _context(context), self._handle, _bytes(path), _options(options)))

    def load(self, options=None, context=None):
        return Model(_handle=_made("mlc_program_load", _context(context), self._handle, _options(options)))

    def weights(self):
        return json.loads(_text("mlc_program_weights", self._handle))["weights"]

    def set_weight(self, name, array, dtype=None):
        view = _View(array, dtype)
        _call("mlc_program_set_weight", self._handle, name.encode(), byref(view.tensor))

    def get_weight(self, name, into, dtype=None):
        _call("mlc_program_get_weight", self._handle, name.encode(), byref(_View(into, dtype).tensor))

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.mlc_program_free(self._handle)
