"""Untrusted files: damaged, contradictory or excessively large models, external data, tensors and packages.

Each one ends with exit code 1 and a known error (random damage may also go undetected), with bounded memory and work: CPU_SECONDS is
far above the time that any file here takes on any machine. With an argument, only cases whose name contains it run, and each is
printed.
"""
import os
import pathlib
import random
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as onnx  # noqa: E402
from onnx_wire import FLOAT, INT64, attribute, field, graph, model, node, tensor, value_info  # noqa: E402

CPU_SECONDS = 30 if driver.SANITIZED else 10
PEAK_BYTES = (2048 if driver.SANITIZED else 256) << 20
ADDRESS_SPACE = 8 << 30
SECONDS = 60
FLIPS = 200
HUGE = 1 << 40


def ints(name, values):
    return tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))


def one(nodes, initializers=(), shape=(1, 4, 8, 8), outputs=("y",), **options):
    """Returns a model with input x, float[shape], and float outputs of any shape."""
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return model(graph(nodes, [value_info("x", FLOAT, shape)], [value_info(n, FLOAT, None) for n in outputs],
                       initializers), **options)


def healthy():
    """The valid originals of the damaged models: weights above and below the size from which they stay in the file."""
    w = tensor("w", FLOAT, [64, 4, 3, 3], struct.pack("<2304f", *[i / 2304 for i in range(2304)]))
    b = tensor("b", FLOAT, [64], struct.pack("<64f", *range(64)))
    return one([node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]),
                node("Reshape", ["r", "s"], ["y"])], [w, b, ints("s", [1, -1])])


def nested_if(depth, wide):
    """If nested in If, in one branch or in both; then its size grows with 2^depth."""
    leaf = body = graph([node("Relu", ["x"], ["t"])], [], [value_info("t", FLOAT, None)])
    for _ in range(depth):
        body = graph([node("If", ["c"], ["t"], then_branch=(body,), else_branch=(body if wide else leaf,))], [],
                     [value_info("t", FLOAT, None)])
    return one([node("Cast", ["x"], ["c"], to=9), node("If", ["c"], ["y"], then_branch=(body,), else_branch=(leaf,))],
               shape=())


def nested_messages(depth):
    data = b""
    for _ in range(depth):
        data = field(4, field(1, data))  # a sequence of sequences
    info = field(1, "x") + field(2, data)
    return model(graph([node("Relu", ["x"], ["y"])], [info], [value_info("y", FLOAT, None)]))


def laughing_functions(levels, calls, recursive=False):
    """Each function calls the next one several times."""
    functions = []
    for level in range(levels):
        last = level + 1 == levels
        op, domain = ("f0", "d") if last and recursive else ("Relu", "") if last else (f"f{level + 1}", "d")
        body = [node(op, [f"t{i}" if i else "x"], [f"t{i + 1}" if i + 1 < calls else "y"], domain) for i in range(calls)]
        functions.append(onnx.function(f"f{level}", "d", ["x"], ["y"], body))
    return one(node("f0", ["x"], ["y"], "d"), functions=functions) + field(8, field(1, "d") + field(2, 1))


def external(**entry):
    return one(node("MatMul", ["x", "w"], ["y"]), [tensor("w", FLOAT, [64, 64], external=entry)], shape=(1, 64))


def initializer(dtype, dims, raw=None, extra=b""):
    return one(node("Add", ["x", "w"], ["y"]), [tensor("w", dtype, dims, raw) + extra])


def operator(op, *constants, shape=(1, 4, 8, 8), opset=13, outputs=("y",), **attributes):
    """Passes x and constants c0, c1 ... (lists of int64, or bytes of a whole tensor with that name) to one operator."""
    made = [c if isinstance(c, bytes) else ints(f"c{i}", c) for i, c in enumerate(constants)]
    return one(node(op, ["x", *[f"c{i}" for i in range(len(made))]], list(outputs), **attributes), made, shape, outputs,
               opset=opset)


def hostile_models():
    """Returns {name: bytes}; every model must be rejected."""
    w = tensor("c0", FLOAT, [4, 4, 3, 3], bytes(4 * 144))
    relu = node("Relu", ["x"], ["y"])
    x, y = value_info("x", FLOAT, [1, 4]), value_info("y", FLOAT, None)
    cases = {
        "empty": b"", "zeros": bytes(4096), "text": b"hello, world\n" * 100, "noise": random.Random(1).randbytes(4096),
        "no graph": field(1, 8) + field(8, field(2, 13)), "empty graph": model(b""),
        "varint without end": b"\x3a" + b"\xff" * 64, "length beyond the file": b"\x3a" + onnx.varint(1 << 40),
        "negative length": b"\x3a" + onnx.varint(-1), "groups": b"\x3b" * 5000,
        # sizes
        "huge initializer without data": initializer(FLOAT, [HUGE]),
        "initializer whose size overflows": initializer(FLOAT, [1 << 32, 1 << 32, 4]),
        "initializer of 2^63 elements": initializer(FLOAT, [1 << 31, 1 << 32]),
        "negative initializer": initializer(FLOAT, [-4, -4], bytes(64)),
        "one negative dimension": initializer(FLOAT, [-1], bytes(64)),
        "raw data too short": initializer(FLOAT, [1000], bytes(100)),
        "raw data too long": initializer(FLOAT, [10], bytes(4096)),
        "float_data too short": initializer(FLOAT, [8], None, field(4, struct.pack("<4f", 1, 2, 3, 4))),
        "rank 100000": initializer(FLOAT, [1] * 100000, bytes(4)),
        "unknown element type": initializer(99, [4], bytes(16)), "no element type": initializer(0, [4], bytes(16)),
        "strings": initializer(8, [4]), "negative element type": initializer(-1, [4], bytes(16)),
        "huge input": operator("Relu", shape=(HUGE, HUGE)), "negative input": operator("Relu", shape=(-5, 4)),
        "input of zero": operator("Relu", shape=(0, 4)),
        "huge ConstantOfShape": one([node("ConstantOfShape", ["s"], ["t"]), node("Add", ["x", "t"], ["y"])],
                                    [ints("s", [HUGE, HUGE])]),
        "negative ConstantOfShape": one([node("ConstantOfShape", ["s"], ["t"]), node("Add", ["x", "t"], ["y"])],
                                        [ints("s", [-4, -4])]),
        "huge Expand": operator("Expand", [HUGE, 1, 4, 8, 8]), "huge Tile": operator("Tile", [HUGE, HUGE, 1, 1]),
        "huge Range": one([node("Range", ["a", "b", "d"], ["t"]), node("Cast", ["t"], ["f"], to=1),
                           node("Add", ["x", "f"], ["y"])],
                          [tensor(n, INT64, [], struct.pack("<q", v)) for n, v in zip("abd", (0, HUGE << 20, 1))]),
        "Range with step 0": one([node("Range", ["a", "b", "d"], ["t"]), node("Cast", ["t"], ["f"], to=1),
                                  node("Add", ["x", "f"], ["y"])],
                                 [tensor(n, INT64, [], struct.pack("<q", v)) for n, v in zip("abd", (0, 8, 0))]),
        "huge Pad": operator("Pad", [0, 0, 0, HUGE, 0, 0, HUGE, HUGE]),
        "negative Pad": operator("Pad", [0, 0, -9, -9, 0, 0, -9, -9]),
        "huge constant folded": one([node("Expand", ["k", "s"], ["e"]), node("Add", ["e", "e"], ["t"]),
                                     node("Add", ["x", "t"], ["y"])],
                                    [tensor("k", FLOAT, [1], bytes(4)), ints("s", [1 << 20, 1 << 15])]),
        "huge OneHot": one([node("Cast", ["x"], ["i"], to=7), node("OneHot", ["i", "d", "v"], ["y"])],
                           [tensor("d", INT64, [], struct.pack("<q", HUGE)), tensor("v", FLOAT, [2], bytes(8))]),
        "Resize to a huge size": one(node("Resize", ["x", "", "", "s"], ["y"]), [ints("s", [1, 4, HUGE, HUGE])]),
        "Resize to a negative size": one(node("Resize", ["x", "", "", "s"], ["y"]), [ints("s", [1, 4, -8, -8])]),
        # attributes
        "Conv with stride 0": operator("Conv", w, strides=[0, 0]),
        "Conv with negative stride": operator("Conv", w, strides=[-1, -1]),
        "Conv with dilation 0": operator("Conv", w, dilations=[0, 0]),
        "Conv with group 0": operator("Conv", w, group=0), "Conv with negative group": operator("Conv", w, group=-4),
        "Conv with too few pads": operator("Conv", w, pads=[1]),
        "Conv with huge pads": operator("Conv", w, pads=[1 << 62] * 4),
        "Conv with huge dilation": operator("Conv", w, dilations=[1 << 62, 1 << 62]),
        "Conv with a wrong kernel_shape": operator("Conv", w, kernel_shape=[5, 5]),
        "Conv larger than its input": operator("Conv", w, shape=(1, 4, 2, 2)),
        "Conv with other channels": operator("Conv", w, shape=(1, 5, 8, 8)),
        "MaxPool with kernel 0": operator("MaxPool", kernel_shape=[0, 0]),
        "MaxPool with negative kernel": operator("MaxPool", kernel_shape=[-3, -3]),
        "MaxPool without kernel": operator("MaxPool"),
        "MaxPool with huge kernel": operator("MaxPool", kernel_shape=[1 << 62, 1 << 62]),
        "Reshape with two unknowns": operator("Reshape", [-1, -1]), "Reshape to -2": operator("Reshape", [-2, 4]),
        "Reshape that overflows": operator("Reshape", [1 << 32, 1 << 32, 256]),
        "Reshape to another size": operator("Reshape", [7, 7]),
        "Transpose twice the same": operator("Transpose", perm=[0, 0, 1, 2]),
        "Transpose out of range": operator("Transpose", perm=[0, 1, 2, 99]),
        "Transpose negative": operator("Transpose", perm=[0, 1, 2, -7]),
        "Concat out of range": operator("Concat", axis=99), "Concat without axis": operator("Concat"),
        "Softmax out of range": operator("Softmax", axis=-(1 << 62)),
        "Split negative": operator("Split", [-4, 8], axis=1, outputs=("y", "z")),
        "Split of another sum": operator("Split", [1, 1], axis=1, outputs=("y", "z")),
        "Split into too many": operator("Split", axis=1, outputs=tuple(f"y{i}" for i in range(5000))),
        "Slice with step 0": operator("Slice", [0], [4], [1], [0]),
        "Gather out of range": operator("Gather", [99], axis=1), "Gather far below": operator("Gather", [-99], axis=1),
        "TopK negative": operator("TopK", [-1], outputs=("y", "z")),
        "TopK too many": operator("TopK", [HUGE], outputs=("y", "z")),
        "Squeeze a large axis": operator("Squeeze", [1]), "Squeeze out of range": operator("Squeeze", [99]),
        "Unsqueeze beyond the ranks": operator("Unsqueeze", list(range(60))),
        "Unsqueeze twice the same": operator("Unsqueeze", [0, 0]),
        "Cast to nothing": operator("Cast", to=99), "Flatten out of range": operator("Flatten", axis=9),
        "DepthToSpace 0": operator("DepthToSpace", blocksize=0),
        "DepthToSpace negative": operator("DepthToSpace", blocksize=-2),
        "DepthToSpace huge": operator("DepthToSpace", blocksize=1 << 62),
        "MatMul that does not fit": operator("MatMul", tensor("c0", FLOAT, [7, 7], bytes(196))),
        "Add that does not fit": operator("Add", tensor("c0", FLOAT, [7], bytes(28))),
        "ReduceSum out of range": operator("ReduceSum", [99]),
        "attribute of another type": one(field(1, "x") + field(2, "y") + field(4, "Softmax")
                                         + field(5, attribute("axis", "one"))),
        "attribute with a subgraph": one(field(1, "x") + field(2, "y") + field(4, "Relu")
                                         + field(5, attribute("alpha", (graph([], [], []),)))
                                         + field(5, attribute("unknown", 1))),
        "Constant without value": one([node("Constant", [], ["t"]), node("Add", ["x", "t"], ["y"])]),
        # the graph
        "cycle": one([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
        "own input": one(node("Add", ["x", "y"], ["y"])),
        "long cycle": one([node("Relu", [f"t{(i + 1) % 5000}"], [f"t{i}"]) for i in range(5000)]
                          + [node("Add", ["x", "t0"], ["y"])]),
        "two nodes, one output": one([relu, node("Sigmoid", ["x"], ["y"])]),
        "input computed": one([relu, node("Relu", ["y"], ["x"])]),
        "initializer twice": one(node("Add", ["x", "w"], ["y"]),
                                 [tensor("w", FLOAT, [1], bytes(4)), tensor("w", FLOAT, [8], bytes(32))]),
        "input twice": model(graph([relu], [x, value_info("x", FLOAT, [2, 2])], [y])),
        "output twice": model(graph([relu], [x], [y, y])),
        "output that nothing makes": one(relu, outputs=("nowhere",)), "no output": one(relu, outputs=()),
        "missing input": one(node("Add", ["x", "nowhere"], ["y"])),
        "too few inputs": one(node("Conv", ["x"], ["y"])), "no inputs": one(node("Relu", [], ["y"])),
        "first input left out": one(node("Add", ["", "x"], ["y"])),
        "too many outputs": one(node("Relu", ["x"], [f"y{i}" for i in range(5000)]), outputs=("y4999",)),
        "unknown operator": one(node("Frobnicate", ["x"], ["y"])),
        "no operator": one(field(1, "x") + field(2, "y")), "foreign domain": one(node("Relu", ["x"], ["y"], "evil")),
        "opset -1": one(relu, opset=-1),
        "input without type": model(graph([relu], [field(1, "x")], [y])),
        "input of strings": model(graph([relu], [value_info("x", 8, [4])], [y])),
        "input without name": model(graph([node("Relu", [""], ["y"])], [value_info("", FLOAT, [4])], [y])),
        "If 2000 deep": nested_if(2000, False), "types 50000 deep": nested_messages(50000),
        "functions that call ten of the next": laughing_functions(12, 10),
        "function that calls itself": laughing_functions(1, 1, recursive=True),
        "functions in a circle": laughing_functions(5, 1, recursive=True),
        "functions in a chain of 5000": laughing_functions(5000, 1, recursive=True),
        # external data
        "external: above": external(location="../outside.bin"), "external: absolute": external(location="/etc/passwd"),
        "external: detour": external(location="inside/../../outside.bin"), "external: symlink": external(location="link.bin"),
        "external: through a linked folder": external(location="linked/outside.bin"),
        "external: too short": external(location="short.bin", length=16384),
        "external: too short without length": external(location="short.bin"),
        "external: not there": external(location="nowhere.bin"), "external: no location": external(offset=0),
        "external: empty location": external(location=""), "external: folder": external(location="inside"),
        "external: offset beyond": external(location="long.bin", offset=HUGE, length=16384),
        "external: negative offset": external(location="long.bin", offset=-4096, length=16384),
        "external: offset that overflows": external(location="long.bin", offset=(1 << 64) - 16, length=16384),
        "external: no number": external(location="long.bin", offset="many", length=16384),
        "external: another length": external(location="long.bin", offset=0, length=100),
        "external: length that overflows": external(location="long.bin", offset=8, length=(1 << 64) - 1),
        "external: pipe": external(location="pipe.bin"), "external: name with a zero": external(location="long.bin\0x"),
        "external: device": external(location="zero.bin"),
    }
    return cases


def odd_models():
    """Returns {name: bytes} of models that may compile, but must not crash, hang or grow."""
    name = "n/\n\t\x01\u2028" + "x" * 100000
    data = healthy()
    cases = {
        "If 2^10 wide": nested_if(10, True),
        "chain of 5000": one([node("Relu", [f"t{i}" if i else "x"], [f"t{i + 1}" if i < 4999 else "y"])
                              for i in range(5000)]),
        "strange names": one([node("Relu", ["x"], [name]), node("Sigmoid", [name], ["y"])]),
        "bytes that are no UTF-8": one([node("Relu", ["x"], ["\xff".encode("latin-1")]),
                                        node("Sigmoid", ["\xff".encode("latin-1")], ["y"])]),
        "value_info that lies": model(graph([node("Relu", ["x"], ["y"])], [value_info("x", FLOAT, [1, 4])],
                                            [value_info("y", INT64, [9, 9])])),
        "input that nobody uses": model(graph([node("Relu", ["x"], ["y"])],
                                              [value_info("x", FLOAT, [1, 4]), value_info("z", FLOAT, [HUGE])],
                                              [value_info("y", FLOAT, None)])),
        "output is the input": model(graph([], [value_info("x", FLOAT, [1, 4])], [value_info("x", FLOAT, [1, 4])])),
        "no opset": field(1, 8) + field(7, graph([node("Relu", ["x"], ["y"])], [value_info("x", FLOAT, [1, 4])],
                                                 [value_info("y", FLOAT, None)])),
        "opset of the future": one(node("Relu", ["x"], ["y"]), opset=1 << 30),
        "too many inputs": one(node("Relu", ["x"] * 5000, ["y"])),
        "unknown fields": data + field(999, b"new") + field(1000, 7),
        "two graphs": data + field(7, graph([], [], [])),
    }
    generator = random.Random(7)
    for i in range(FLIPS):
        damaged = bytearray(data)
        # Weights make up most of the bytes, so half of the flips target the structure around them.
        at = generator.randrange(len(data)) if i % 2 else generator.choice(
            [generator.randrange(200), len(data) - 1 - generator.randrange(500)])
        damaged[at] ^= 1 << generator.randrange(8)
        cases[f"flipped bit {i} at {at}"] = bytes(damaged)
    for i in range(60):
        at = generator.randrange(len(data)) if i % 3 else min(i * 4, len(data) - 1)
        cases[f"cut to {at}"] = data[:at]
    return cases


def prepare_folder(folder):
    """Creates the surroundings of external data: a file outside, links to it, a pipe, a file that is too short."""
    models = folder / "models"
    (models / "inside").mkdir(parents=True)
    (folder / "outside.bin").write_bytes(bytes(1 << 16))
    (models / "long.bin").write_bytes(bytes(1 << 16))
    (models / "short.bin").write_bytes(bytes(100))
    (models / "link.bin").symlink_to(folder / "outside.bin")
    (models / "linked").symlink_to(folder)
    (models / "zero.bin").symlink_to("/dev/zero")
    os.mkfifo(models / "pipe.bin")
    os.mkfifo(models / "pipe.onnx")
    return models


def npy(header, data=b""):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def damaged_tensors():
    shape = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
    return {
        "npy: empty": b"", "npy: cut": npy(shape % "1, 4, 8, 8")[:20], "npy: too short": npy(shape % "1, 4, 8, 8", bytes(8)),
        "npy: huge": npy(shape % f"{HUGE}, {HUGE}"), "npy: negative": npy(shape % "-1, 4"),
        "npy: no header": npy("not a dictionary"), "npy: objects": npy(shape.replace("<f4", "|O") % "4", bytes(64)),
        "npy: another shape": npy(shape % "2, 2", bytes(16)),
        "npy: rank 1000": npy(shape % "1")[:8] + struct.pack("<H", 4096) + (shape % ("1, " * 1000)).encode().ljust(4096),
        "pb: huge": tensor("x", FLOAT, [HUGE, HUGE]), "pb: negative": tensor("x", FLOAT, [-1, 4], bytes(16)),
        "pb: external": tensor("x", FLOAT, [1, 4, 8, 8], external={"location": "/etc/passwd"}),
        "pb: cut": tensor("x", FLOAT, [1, 4, 8, 8], bytes(1024))[:40],
    }


def commands(folder):
    """Returns [(name, whether it must be rejected, arguments)]."""
    models = prepare_folder(folder)
    found = []
    for strict, cases in ((True, hostile_models()), (False, odd_models())):
        for number, (name, data) in enumerate(cases.items()):
            file = models / f"{'hostile' if strict else 'odd'}{number}.onnx"
            file.write_bytes(data)
            found.append((name, strict, ["compile", file, "-o", folder / f"{file.stem}.mlpackage", "--json"]))
    found.append(("model that is a pipe", True, ["compile", models / "pipe.onnx", "-o", folder / "p.mlpackage", "--json"]))
    found.append(("model that is a folder", True, ["compile", models, "-o", folder / "p.mlpackage", "--json"]))
    found.append(("no model", True, ["compile", models / "nowhere.onnx", "-o", folder / "p.mlpackage", "--json"]))

    source, whole = models / "healthy.onnx", folder / "healthy.mlpackage"
    source.write_bytes(healthy())
    made = driver.run("compile", source, "-o", whole, "--json")
    if made.code != 0:
        raise RuntimeError(f"the healthy model: {driver.ending(made)}")
    for number, (name, data) in enumerate(damaged_tensors().items()):
        file = folder / f"tensor{number}.{name.split(':')[0]}"
        file.write_bytes(data)
        found.append((name, True, ["run", whole, f"--input=x={file}", "--json"]))
    inner = pathlib.Path("Data") / "com.apple.CoreML"
    generator = random.Random(3)
    for part in (inner / "model.mlmodel", inner / "weights" / "weight.bin", pathlib.Path("Manifest.json")):
        data = (whole / part).read_bytes()
        variants = {f"cut to {n}": (data[:n], n < len(data) // 2) for n in (0, 1, 50, len(data) // 2, len(data) - 1)}
        variants["missing"] = (None, True)
        for i in range(20):
            damaged = bytearray(data)
            at = generator.randrange(min(len(data), 1500))
            damaged[at] ^= 1 << generator.randrange(8)
            variants[f"flipped bit {i} at {at}"] = (bytes(damaged), False)
        for number, (text, (content, strict)) in enumerate(variants.items()):
            package = folder / f"{part.stem}{number}.mlpackage"
            shutil.copytree(whole, package)
            (package / part).unlink() if content is None else (package / part).write_bytes(content)
            found.append((f"{part.name} {text}", strict, ["run", package, "--json"]))
    return found


def without_way_on(result):
    """Returns the first error without a location, or with neither an expectation nor help."""
    for error in result.errors:
        if not error["location"] or not any(note.startswith(("expected: ", "help: ")) for note in error["notes"]):
            return error
    return None


def main(title, make_commands, helpful=False):
    """Runs [(name, whether it must be rejected, arguments[, text of the error])] of a folder. `helpful`: every error must have a
    location and a remedy."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory(prefix="mlc-") as scratch:
        cases = [case for case in make_commands(pathlib.Path(scratch)) if wanted in case[0]]
        before = set(os.listdir(scratch))

        def run(case):
            return driver.run(*case[2], timeout=SECONDS, address_space=ADDRESS_SPACE)

        results = driver.parallel(run, cases)
        failures, refused = 0, 0
        for (name, strict, arguments, *says), result in zip(cases, results):
            verdict = driver.verdict(result)
            refused += verdict == "refused"
            wrong = []
            different = not strict and result.code == 3  # differences reported by diff and verify for an accepted file
            if verdict not in (("refused",) if strict else ("refused", "ok")) and not different:
                wrong.append("was accepted" if verdict == "ok" else driver.ending(result))
            elif helpful and without_way_on(result):
                wrong.append(f"no place or no way on: {without_way_on(result)}")
            if any(text not in result.stdout for text in says):
                wrong.append(f"does not say {says[0]!r}: {result.stdout}")
            if result.cpu_seconds > CPU_SECONDS:
                wrong.append(f"took {result.cpu_seconds:.1f} s of computing")
            if result.peak_bytes > PEAK_BYTES:
                wrong.append(f"took {result.peak_bytes >> 20} MB")
            if strict and "-o" in arguments and pathlib.Path(arguments[arguments.index("-o") + 1]).exists():
                wrong.append("left an output")
            failures += bool(wrong)
            if wrong or wanted:
                print(f"{'FAILED' if wrong else 'ok'}: {name}: {'; '.join(wrong) or driver.ending(result)}")
        left = [name for name in set(os.listdir(scratch)) - before if name.startswith(".")]
        if left:
            failures += 1
            print(f"FAILED: left behind: {left}")
    slowest = max(zip(results, cases), key=lambda pair: pair[0].cpu_seconds)
    largest = max(zip(results, cases), key=lambda pair: pair[0].peak_bytes)
    print(f"# {title}: {len(cases)}, {refused} refused with exit code 1, {failures} failures; slowest "
          f"{slowest[0].cpu_seconds:.2f} s ({slowest[1][0]}), most memory {largest[0].peak_bytes >> 20} MB ({largest[1][0]})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main("hostile files", commands))
