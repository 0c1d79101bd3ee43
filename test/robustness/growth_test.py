"""Commands take time in proportion to the size of a model: for four times the size, at most GROWTH times the time.

Each model has one value with a great many uses, or a chain of a great many operations that are merged.
"""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

GROWTH = 8  # 4 is linear, 16 is quadratic


def write(file, nodes, outputs, dims, constants=()):
    graph = wire.graph([wire.node("Relu", ["x"], ["a"]), *nodes], [wire.value_info("x", wire.FLOAT, dims)],
                       [wire.value_info(output, wire.FLOAT, None) for output in outputs], constants)
    file.write_bytes(wire.model(graph))


def concat(parts):
    return wire.node("Concat", parts, ["y"], axis=0)


def users(file, count):
    """One value with `count` users, whose results are all operands of one operation."""
    nodes, constants = added(count)
    write(file, [*nodes, concat([f"b{i}" for i in range(count)])], ["y"], [4], constants)


def equal_users(file, count):
    """The same, but all users compute the same."""
    nodes = [wire.node("Add", ["a", "a"], [f"b{i}"]) for i in range(count)]
    write(file, [*nodes, concat([f"b{i}" for i in range(count)])], ["y"], [4])


def wide_users(file, count):
    """Users that stay in fp32 alternate with others that do not."""
    nodes = [wire.node("Sin" if i % 2 else "Sigmoid", ["a"] if i < 2 else [f"b{i - 2}"], [f"b{i}"]) for i in range(count // 2)]
    sums = [wire.node("Add", ["a", f"b{i}"], [f"s{i}"]) for i in range(count // 2)]
    write(file, [*nodes, *sums, concat([f"s{i}" for i in range(count // 2)])], ["y"], [4])


def chained_concats(file, count):
    """Each operand except the first is another use of the input."""
    nodes = [wire.node("Concat", [f"b{i - 1}" if i else "a", "x"], [f"b{i}"], axis=0) for i in range(count)]
    write(file, nodes, [f"b{count - 1}"], ["n", 4])


def dynamic_operations(file, count):
    """A chain over open sizes, alternately enlarged and reduced by pairs of operations."""
    one = [wire.tensor(name, wire.INT64, [1], struct.pack("<q", value)) for name, value in (("one", 1), ("end", 2**62))]
    one += [wire.tensor("pads", wire.INT64, [4], struct.pack("<4q", 0, 0, 1, 0))]
    kinds = [("Sin", []), ("Pad", ["pads"]), ("Tanh", []), ("Slice", ["one", "end"])]
    nodes = []
    for i in range(count):
        kind, more = kinds[i % 4]
        nodes.append(wire.node(kind, [f"b{i - 1}" if i else "a", *more], [f"b{i}"]))
    write(file, nodes, [f"b{count - 1}"], ["n", "m"], one)


def added(count):
    """Returns nodes that compute b0, b1, ... from a, each with its own constant, and the constants."""
    nodes = [wire.node("Add", ["a", f"c{i}"], [f"b{i}"]) for i in range(count)]
    return nodes, [wire.tensor(f"c{i}", wire.FLOAT, [4], struct.pack("<4f", i, i + 1, i + 2, i + 3)) for i in range(count)]


def unmoved(count):
    """Returns nodes that compute d0, d1, ... from b0, b1, ... and are removed again."""
    return [wire.node("Transpose", [f"b{i}"], [f"d{i}"], perm=[0]) for i in range(count)]


def outputs(file, count):
    """Many outputs, each replaced by another value."""
    nodes, constants = added(count)
    write(file, nodes + unmoved(count), [f"d{i}" for i in range(count)], [4], constants)


def wide_concat(file, count):
    """One operation with many operands, each replaced by another value."""
    nodes, constants = added(count)
    write(file, [*nodes, *unmoved(count), concat([f"d{i}" for i in range(count)])], ["y"], [4], constants)


def results_of_if(file, count):
    """One If with many results."""
    def branch(kind):
        names = [f"{kind}{i}" for i in range(count)]
        made = [wire.node(kind, ["x", f"c{i}"], [name]) for i, name in enumerate(names)]
        return (wire.graph(made, [], [wire.value_info(name, wire.FLOAT, None) for name in names]),)

    results = [f"b{i}" for i in range(count)]
    nodes = [wire.node("ReduceMax", ["a"], ["max"], keepdims=0), wire.node("Greater", ["max", "c0"], ["is"]),
             wire.node("If", ["is"], results, then_branch=branch("Add"), else_branch=branch("Mul")), concat(results)]
    write(file, nodes, ["y"], [4], [wire.tensor(f"c{i}", wire.FLOAT, [], struct.pack("<f", i)) for i in range(count)])


def inserted(file, count):
    """A sequence with many elements, each inserted after the previous ones."""
    nodes, constants = added(count)
    nodes += [wire.node("SequenceEmpty", [], ["empty"])]
    nodes += [wire.node("SequenceInsert", [f"s{i - 1}" if i else "empty", f"b{i}"], [f"s{i}"]) for i in range(count)]
    write(file, [*nodes, wire.node("ConcatFromSequence", [f"s{count - 1}"], ["y"], axis=0)], ["y"], [4], constants)


def ports(file, count):
    """Many inputs and many outputs."""
    names = [[f"{side}{i}" for i in range(count)] for side in "xy"]
    graph = wire.graph([wire.node("Sin", [x], [y]) for x, y in zip(*names)],
                       *([wire.value_info(name, wire.FLOAT, [4]) for name in side] for side in names))
    file.write_bytes(wire.model(graph))


def split(file, count):
    """One operation with many results."""
    nodes = [wire.node("Split", ["a"], [f"b{i}" for i in range(count)], axis=0)]
    nodes += [wire.node("Exp", [f"b{i}"], [f"d{i}"]) for i in range(count)]
    write(file, [*nodes, concat([f"d{i}" for i in range(count)])], ["y"], [count, 4])


def split_and_joined(file, count):
    """The same, followed by a concatenation, both of which are removed."""
    parts = [f"b{i}" for i in range(count)]
    write(file, [wire.node("Split", ["a"], parts, axis=0), concat(parts)], ["y"], [count, 4])


def transposed_users(file, count):
    """Many users of one value, each of which accepts another order of its dimensions."""
    nodes = [wire.node("Transpose", ["a"], ["t"], perm=[1, 0])]
    for i in range(count):
        nodes.append(wire.node("Add", ["t", f"c{i}"], [f"b{i}"]))
        nodes.append(wire.node("Transpose", [f"b{i}"], [f"d{i}"], perm=[1, 0]))
    write(file, [*nodes, concat([f"d{i}" for i in range(count)])], ["y"], [4, 4], added(count)[1])


def loops(file, count):
    """Each loop continues with the result of the previous one."""
    body = wire.graph([wire.node("Identity", ["go"], ["on"]), wire.node("Sin", ["v"], ["w"])],
                      [wire.value_info("i", wire.INT64, []), wire.value_info("go", wire.BOOL, []), wire.value_info("v", wire.FLOAT, [4])],
                      [wire.value_info("on", wire.BOOL, []), wire.value_info("w", wire.FLOAT, [4])], name="body")
    nodes = [wire.node("ReduceSum", ["a"], ["s"], keepdims=0), wire.node("Cast", ["s"], ["trips"], to=wire.INT64)]
    nodes += [wire.node("Loop", ["trips", "", f"b{i - 1}" if i else "a"], [f"b{i}"], body=(body,)) for i in range(count)]
    write(file, nodes, [f"b{count - 1}"], [4])


def open_sizes(file, count):
    """Many unknown sizes, five in each input."""
    inputs = range(count // 5)
    graph = wire.graph([wire.node("Sin", [f"x{i}"], [f"y{i}"]) for i in inputs],
                       [wire.value_info(f"x{i}", wire.FLOAT, [f"n{i}_{d}" for d in range(5)]) for i in inputs],
                       [wire.value_info(f"y{i}", wire.FLOAT, None) for i in inputs])
    file.write_bytes(wire.model(graph))


def computed_shapes(file, count):
    """Many sizes that are only known at run time."""
    nodes = [wire.node("Cast", ["a"], ["s"], to=wire.INT64)]
    nodes += [wire.node("Add", ["a", f"c{i}"], [f"b{i}"]) for i in range(count)]
    nodes += [wire.node("Reshape", [f"b{i}", "s"], [f"d{i}"]) for i in range(count)]
    nodes += [wire.node("ReduceSum", [f"d{i}"], [f"e{i}"], keepdims=0) for i in range(count)]
    nodes.append(wire.node("Sum", [f"e{i}" for i in range(count)], ["y"]))
    write(file, nodes, ["y"], [4], added(count)[1])


# Models of these sizes exceed the processor caches; below them, time increases in steps that are
# not quadratic.
MODELS = {users: 5000, equal_users: 10000, wide_users: 10000, chained_concats: 4000, dynamic_operations: 4000, outputs: 4000,
          wide_concat: 8000, results_of_if: 5000, inserted: 2000, ports: 2000, split: 1000, transposed_users: 1000, loops: 400,
          open_sizes: 2000, computed_shapes: 2000, split_and_joined: 4000}

ALSO = {ports: ["run", "inspect", "verify", "diff"]}  # commands timed in addition to compile


def seconds(command, file, package):
    arguments = {"compile": [file, "-o", package, "--precision", "fp16", "--force", "--no-manifest"], "run": [file],
                 "inspect": [package], "diff": [package, package], "verify": [file, package, "--samples", "2"]}[command]
    result = driver.run(command, *arguments, timeout=300)
    assert result.code == 0, driver.ending(result)
    return result.cpu_seconds


def main():
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        folder = pathlib.Path(path)
        for make, count in MODELS.items():
            for n in (count, 4 * count):
                make(folder / f"{make.__name__}_{n}.onnx", n)
            for command in ["compile", *ALSO.get(make, [])]:
                name = f"{command} {make.__name__.replace('_', ' ')}"
                times = []
                for n in (count, 4 * count):
                    file = folder / f"{make.__name__}_{n}.onnx"
                    times.append(min(seconds(command, file, file.with_suffix(".mlpackage")) for _ in range(2)))
                print(f"# growth, {name}: {times[0]:.2f} s for {count}, {times[1]:.2f} s for {4 * count}")
                if times[1] > GROWTH * times[0]:
                    print(f"{name}: {4 * count} take {times[1] / times[0]:.1f} times as long as {count}")
                    failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
