"""What every binding's example does (bindings/README.md)."""
import array
import sys

import mlc


def read_digits(path, images):
    model = mlc.Model(path)
    print("digits:", end="")
    with open(images, "rb") as file:
        while image := file.read(256):
            pixels = memoryview(bytearray(image)).cast("f", (1, 1, 8, 8))
            scores = model.predict({"image": pixels})["probabilities"].tolist()[0]
            print("", scores.index(max(scores)), end="")
    print()


def speak(path, prompt):
    generator = mlc.Generator(mlc.Model(path), mlc.Tokenizer(path))
    generator.feed(prompt)
    print("text:", prompt + "".join(generator))


def loop(package):
    """sum = 0 + 1 + ... + (n - 1)"""
    program = mlc.Program()
    body = program.function("main")
    limit = body.op("squeeze", "limit", x=body.input("n", mlc.INT32, [1]))
    zero = body.scalar(0)
    op = body.begin("while_loop", "loop", loop_vars=[zero, zero])
    condition, step = op.block(0), op.block(1)
    counter = condition.input("i", mlc.INT32, [])
    condition.input("s", mlc.INT32, [])
    condition.output(condition.op("less", x=counter, y=limit))
    i, s = step.input("i", mlc.INT32, []), step.input("s", mlc.INT32, [])
    step.output(step.op("add", x=i, y=1))
    step.output(step.op("add", x=s, y=i))
    body.output(body.op("expand_dims", "sum", x=op.finish()[1], axes=[0]), "sum")
    model = program.load()
    print("loop:", *(model.predict({"n": array.array("i", [n])})["sum"].tolist()[0] for n in range(6)))
    program.write(package)
    placed = [one["op"] for one in mlc.Model(package).placements()["operations"]]
    print("package:", "while_loop" if "while_loop" in placed else "no loop")


if __name__ == "__main__":
    digits, images, speaker, prompt, package = sys.argv[1:]
    read_digits(digits, images)
    speak(speaker, prompt)
    loop(package)
