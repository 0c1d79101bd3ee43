"""Compiling takes time in proportion to the operations: four times as many of them, at most GROWTH times the processor's time.

Each model has one value of a great many uses, or a chain of a great many operations that become one.
"""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import onnx_wire as wire  # noqa: E402

GROWTH = 8  # 4 is in proportion, 16 is quadratic


def write(file, nodes, output, dims, constants=()):
    graph = wire.graph([wire.node("Relu", ["x"], ["a"]), *nodes], [wire.value_info("x", wire.FLOAT, dims)],
                       [wire.value_info(output, wire.FLOAT, None)], constants)
    file.write_bytes(wire.model(graph))


def concat(parts):
    return wire.node("Concat", parts, ["y"], axis=0)


def users(file, count):
    """One value with `count` users, all of which one operation takes."""
    constants = [wire.tensor(f"c{i}", wire.FLOAT, [4], struct.pack("<4f", i, i + 1, i + 2, i + 3)) for i in range(count)]
    nodes = [wire.node("Add", ["a", f"c{i}"], [f"b{i}"]) for i in range(count)]
    write(file, [*nodes, concat([f"b{i}" for i in range(count)])], "y", [4], constants)


def equal_users(file, count):
    """The same, but all users compute the same."""
    nodes = [wire.node("Add", ["a", "a"], [f"b{i}"]) for i in range(count)]
    write(file, [*nodes, concat([f"b{i}" for i in range(count)])], "y", [4])


def wide_users(file, count):
    """The users stay in fp32, in turn with others that do not."""
    nodes = [wire.node("Sin" if i % 2 else "Sigmoid", ["a"] if i < 2 else [f"b{i - 2}"], [f"b{i}"]) for i in range(count // 2)]
    sums = [wire.node("Add", ["a", f"b{i}"], [f"s{i}"]) for i in range(count // 2)]
    write(file, [*nodes, *sums, concat([f"s{i}" for i in range(count // 2)])], "y", [4])


def chained_concats(file, count):
    """Each operand but the first is one more use of the input."""
    nodes = [wire.node("Concat", [f"b{i - 1}" if i else "a", "x"], [f"b{i}"], axis=0) for i in range(count)]
    write(file, nodes, f"b{count - 1}", ["n", 4])


MODELS = {users: 5000, equal_users: 5000, wide_users: 5000, chained_concats: 2000}


def seconds(file, folder, precision):
    result = driver.run("compile", file, "-o", folder / "out.mlpackage", "--precision", precision, "--force", "--no-manifest", timeout=300)
    assert result.code == 0, driver.ending(result)
    return result.cpu_seconds


def main():
    failed = False
    with tempfile.TemporaryDirectory(prefix="mlc-") as path:
        folder = pathlib.Path(path)
        for make, count in MODELS.items():
            name = make.__name__.replace("_", " ")
            times = []
            for n in (count, 4 * count):
                file = folder / f"{make.__name__}_{n}.onnx"
                make(file, n)
                times.append(min(seconds(file, folder, "fp16") for _ in range(3)))
            print(f"# growth, {name}: {times[0]:.2f} s for {count}, {times[1]:.2f} s for {4 * count}")
            if times[1] > GROWTH * times[0]:
                print(f"{name}: {4 * count} take {times[1] / times[0]:.1f} times as long as {count}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
