#!/usr/bin/env python3
"""Tests the interface of a package as an app sees it (names, labels, sizes, images, supported systems), and how the tools report it."""
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import checkers
import onnx_wire as wire
from driver import MLC, SKIPPED, expect, run, run_tests
from command_line_test import FLOAT, INT64, PACKAGES, Folder, accepted, compiled, floats, ints

RUN = MLC.with_name("mlc-run")


def about(package):
    return expect(run("inspect", package, "--json"), 0).answer


def test_names_of_the_package_come_first(folder):
    model = folder.model("names.onnx", [wire.node("Relu", ["input.1"], ["out/y:0"]), wire.node("Neg", ["input.1"], ["z"])],
                         [("input.1", FLOAT, [2])], [("out/y:0", FLOAT, [2]), ("z", FLOAT, [2])])
    names = ['input_1 (from "input.1")', 'out_y_0 (from "out/y:0")', "z "]
    shown = expect(run("compile", model, "-o", folder / "out.mlpackage"), 0, *names).stdout
    assert '"z"' not in shown, shown
    for file in (model, folder / "out.mlpackage"):
        expect(run("inspect", file), 0, *names)
        expect(run("run", file), 0, *names[1:], "  out_y_0: ", "  z: ")
        answer = expect(run("run", file, "--json"), 0).answer
        assert [(o["name"], o["mil_name"]) for o in answer["outputs"]] == [("out/y:0", "out_y_0"), ("z", "z")], answer
    answer = expect(run("compile", model, "-o", folder / "out.mlpackage", "--json"), 0).answer
    assert [(i["name"], i["mil_name"]) for i in answer["inputs"]] == [("input.1", "input_1")], answer
    assert [o["mil_name"] for o in answer["outputs"]] == ["out_y_0", "z"], answer
    # An input is found under either name.
    np.save(folder / "x.npy", np.array([1, 2], "f4"))
    for name in ("input.1", "input_1"):
        expect(run("run", folder / "out.mlpackage", "--input", f"{name}={folder / 'x.npy'}"), 0, "out_y_0: 1 2")


def classifier(folder, nodes, labels, *options, name="c.onnx", shape=3):
    model = folder.model(name, nodes, [("x", FLOAT, [1, shape])], [("p", FLOAT, [1, shape])])
    (folder / "labels.txt").write_text("\n".join(labels))
    result = expect(run("compile", model, "-o", folder / "c.mlpackage", "--labels", folder / "labels.txt", *options), 0)
    return folder / "c.mlpackage", result


def test_a_classifier_shows_its_labels_and_the_name_of_its_probabilities(folder):
    nodes = [wire.node("Softmax", ["x"], ["p"], axis=1)]
    package, result = classifier(folder, nodes, ["cat", "dog", "h\u00f8ne"])
    accepted(package)
    assert "logits" not in result.stdout + result.stderr, result
    for result in (result, run("inspect", package), run("run", package)):
        expect(result, 0, 'classLabel_probs (from "p")')
    expect(run("inspect", package), 0, "labels     3: cat, dog, h\u00f8ne\n")
    assert about(package)["labels"] == ["cat", "dog", "h\u00f8ne"]
    many = [f"label {i}" for i in range(100)]
    package, result = classifier(folder, nodes, many, shape=100)
    expect(result, 0, "labels     100: label 0, ", "... 80 more")
    assert about(package)["labels"] == many


def test_outputs_are_saved_under_the_names_of_what_was_run(folder):
    """For a package these are the names that an app uses. References are found under either name, in a folder, an .npz file and
    a bundle."""
    model = folder.model("names.onnx", [wire.node("Softmax", ["input.1"], ["out/y:0"], axis=1)], [("input.1", FLOAT, [1, 4])],
                         [("out/y:0", FLOAT, [1, 4])])
    (folder / "labels.txt").write_text("a\nb\nc\nd\n")
    (folder / "in").mkdir()
    for labels, name in (((), "out_y_0"), (("--labels", folder / "labels.txt"), "classLabel_probs")):
        package = folder / f"{name}.mlpackage"
        expect(run("compile", model, "-o", package, *labels), 0)
        for file in (folder / "in").iterdir():
            file.unlink()
        for given in ("input.1", "input_1"):
            np.save(folder / "in" / f"{given}.npy", np.array([[1, 2, 3, 5]], "f4"))
            for run_of, saved in ((package, name), (model, "out%2Fy%3A0")):
                out = folder / f"{name}-{given}-{saved}"
                answer = expect(run("run", run_of, "--input", f"{given}={folder / 'in' / given}.npy", "--output-dir", out, "--json"), 0).answer
                assert {f.name for f in out.iterdir()} >= {f"{saved}.npy"}, sorted(out.iterdir())
                files = {o["mil_name"]: pathlib.Path(o["file"]) for o in answer["outputs"]}
                assert out / f"{saved}.npy" in files.values() and all(f.exists() for f in files.values()), files
                bundle = folder / f"{name}-{given}-{saved}-bundle"
                expect(run("verify", model, package, "--inputs", folder / "in", "--reference", out, "--bundle", bundle), 0, "PASSED")
                np.savez(folder / "r.npz", **{name if saved == name else "out/y:0": np.load(out / f"{saved}.npy")})
                expect(run("verify", model, package, "--inputs", folder / "in", "--reference", folder / "r.npz"), 0, "PASSED")
                expect(run("--bundle", bundle, program=RUN), 0, "PASSED")
            (folder / "in" / f"{given}.npy").unlink()


def test_a_slash_behind_an_output_is_none_of_its_name(folder):
    model = folder.linear()
    expect(run("compile", model, "-o", f"{folder / 'm.mlpackage'}/"), 0, "m.mlpackage")
    expect(run("opt", folder / "m.mlpackage", "-o", f"{folder / 'o.mlpackage'}//"), 0)
    expect(run("precompile", folder / "m.mlpackage", "-o", f"{folder / 'm.mlmodelc'}/"), 0)
    expect(run("compile", model, "-o", f"{folder / 'c.mlmodelc'}/"), 0)
    names = {path.name for path in folder.path.iterdir()}
    assert {"m.mlpackage", "m.manifest.json", "o.mlpackage", "m.mlmodelc", "c.mlmodelc", "c.manifest.json"} <= names, names


def test_a_classifier_of_logits_is_noted(folder):
    node, labels = wire.node, ["a", "b", "c"]
    axes = {"axis": 1}
    for nodes, logits in (
            ([node("Softmax", ["x"], ["p"], **axes)], False),
            ([node("Sigmoid", ["x"], ["p"])], False),
            ([node("Softmax", ["x"], ["h"], **axes), node("Transpose", ["h"], ["t"]), node("Flatten", ["t"], ["p"], axis=0)], False),
            ([node("Exp", ["x"], ["e"]), node("ReduceSum", ["e"], ["s"]), node("Div", ["e", "s"], ["p"])], False),
            ([node("Relu", ["x"], ["e"]), node("ReduceSum", ["x"], ["s"]), node("Div", ["e", "s"], ["p"])], True),
            ([node("Softmax", ["x"], ["h"], **axes), node("Sigmoid", ["x"], ["s"]), node("Mul", ["h", "s"], ["p"])], False),
            ([node("LogSoftmax", ["x"], ["p"], **axes)], True),
            ([node("Softmax", ["x"], ["h"], **axes), node("Log", ["h"], ["p"])], True),
            ([node("Relu", ["x"], ["p"])], True),
            ([node("Softmax", ["x"], ["h"], **axes), node("Add", ["h", "x"], ["p"])], True)):
        _, result = classifier(folder, nodes, labels)
        assert ("logits" in result.stderr) == logits, (nodes, result.stderr)
        if logits:
            expect(result, 0, 'note: output "p"', "classLabel_probs", "softmax")


def test_open_dimensions_stand_in_the_headline(folder):
    model = folder.linear("open.onnx", batch="n")
    shown = expect(run("compile", model, "-o", folder / "o.mlpackage"), 0).stdout.splitlines()
    assert "n in 1..4096" in shown[0], shown
    shown = expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "n=2,4"), 0).stdout.splitlines()
    assert "n in 2|4" in shown[0], shown
    shown = expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "n=2"), 0).stdout.splitlines()
    assert " in " not in shown[0] and "open" not in shown[0], shown
    answer = expect(run("compile", model, "-o", folder / "o.mlpackage", "--dim", "n=2..9", "--json"), 0).answer
    assert answer["inputs"][0]["shape"] == ["n", 3] and answer["symbols"] == {"n": {"low": 2, "high": 9}}, answer


def test_targets_of_every_system(folder):
    model = folder.linear()
    for name, ios in (("tvOS15", "iOS15"), ("watchOS9", "iOS16"), ("visionOS1", "iOS17"), ("tvos18", "iOS18"),
                      ("visionOS2", "iOS18"), ("watchOS26", "iOS26"), ("visionOS26", "iOS26"), ("macOS13", "iOS16")):
        answer = expect(run("compile", model, "-o", folder / "o.mlpackage", "--target", name, "--json"), 0).answer
        assert answer["target"] == ios, (name, answer)
    for name in ("visionOS3", "watchOS12", "tvOS", "tvOS14"):
        expect(run("compile", model, "-o", folder / "o.mlpackage", f"--target={name}"), 2, "tvOS15", "visionOS1", "watchOS8")


FUNCTIONS = """func f<ios18>(state<tensor<fp16, [4, 2]>> s, state<tensor<fp16, [4, 2]>> u, tensor<fp16, [4, 2]> x) {
  t = read_state(input = s);
  y = add(x = t, y = x);
  write_state(input = s, data = y);
  v = read_state(input = u);
  z = mul(x = v, y = y);
  write_state(input = u, data = z);
} -> (z);
func g<ios18>(state<tensor<fp16, [4, 2]>> s, tensor<fp16, [4, 2]> a) {
  t = read_state(input = s);
  b = sub(x = t, y = a);
} -> (b);
func h<ios18>(tensor<fp16, [3, 2]> x) {
  y = abs(x = x);
} -> (y);
"""


def functions(folder, name="m", text=FUNCTIONS):
    (folder / f"{name}.mil").write_text(text)
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def test_inspect_shows_every_function(folder):
    package = accepted(functions(folder))
    answer = about(package)
    assert [f["name"] for f in answer["functions"]] == ["f", "g", "h"], answer["functions"]
    f, g, h = answer["functions"]
    assert [[i["mil_name"] for i in one["inputs"]] for one in (f, g, h)] == [["x"], ["a"], ["x"]], answer
    assert [[i["mil_name"] for i in one["outputs"]] for one in (f, g, h)] == [["z"], ["b"], ["y"]], answer
    assert [[i["name"] for i in one["states"]] for one in (f, g, h)] == [["s", "u"], ["s"], []], answer
    assert h["inputs"][0]["shape"] == [3, 2] and h["operators"] == {"abs": 1}, h
    assert f["operators"] == {"read_state": 2, "write_state": 2, "add": 1, "mul": 1}, f
    assert answer["operators"] == {"read_state": 3, "write_state": 2, "add": 1, "mul": 1, "sub": 1, "abs": 1}, answer
    shown = expect(run("inspect", package), 0, "functions  f, g, h").stdout
    parts = shown.split("function   ")
    assert len(parts) == 4 and parts[1].startswith("f (default)") and parts[3].startswith("h"), shown
    for part, words in ((parts[1], ("inputs     x", "states     s", " u ", "write_state")),
                        (parts[2], ("inputs     a", "outputs    b", "states     s", "sub")), (parts[3], ("[3, 2]", "abs"))):
        assert all(word in part for word in words), part


def unet(folder, name="unet.onnx", dims=("h", "w"), levels=2):
    """x is halved and doubled `levels` times and added to the original, so sizes must be multiples of 2^levels."""
    nodes, x = [], "x"
    for i in range(levels):
        nodes.append(wire.node("MaxPool", [x], [f"d{i}"], kernel_shape=[2, 2], strides=[2, 2]))
        x = f"d{i}"
    for i in reversed(range(levels)):
        nodes += [wire.node("Resize", [x, "", "scales"], [f"u{i}"], mode="nearest"),
                  wire.node("Concat", [f"u{i}", "x" if i == 0 else f"d{i - 1}"], [f"c{i}"], axis=1),
                  wire.node("Conv", [f"c{i}", "k"], [f"s{i}" if i else "y"])]
        x = f"s{i}"
    return folder.model(name, nodes, [("x", FLOAT, [1, 1, *dims])], [("y", FLOAT, [1, 1, "oh", "ow"])],
                        [floats("scales", [1, 1, 2, 2]), floats("k", np.full((1, 2, 1, 1), 0.5))])


def test_the_lower_bound_is_the_smallest_size_that_can_be_computed(folder):
    model = unet(folder)
    result = expect(run("compile", model, "-o", folder / "u.mlpackage"), 0, "h in 4..4096, w in 4..4096", "note: minimum size of h raised to 4",
                    "--dim h=4,8,12,16", "--dim w=4,8,12,16")
    assert "x" in result.stdout
    package = accepted(folder / "u.mlpackage")
    answer = about(package)["inputs"][0]
    assert answer["shape_range"] == [[1, 1], [1, 1], [4, 4096], [4, 4096]], answer
    for file in (package, model):
        shown = expect(run("run", file, "--json"), 0).answer
        assert shown["outputs"][0]["shape"] == [1, 1, 4, 4], shown
    expect(run("verify", model, package), 0, "PASSED")
    # One symbol for both sizes, given bounds, and enumerated sizes.
    same = unet(folder, "same.onnx", dims=("s", "s"), levels=3)
    assert about(compiled(folder, same))["inputs"][0]["shape_range"][2:] == [[8, 4096]] * 2
    assert about(compiled(folder, same, "--dim", "s=9..40"))["inputs"][0]["shape_range"][2:] == [[16, 40]] * 2
    assert about(compiled(folder, same, "--dim", "s=16..40"))["inputs"][0]["shape_range"][2:] == [[16, 40]] * 2
    listed = accepted(compiled(folder, same, "--dim", "s=8,24"))
    assert about(listed)["inputs"][0]["enumerated_shapes"] == [[1, 1, 8, 8], [1, 1, 24, 24]]
    o = folder / "o.mlpackage"
    expect(run("compile", same, "-o", o, "--dim", "s=8,12,24"), 1, "input-shape", "12", "--dim s=8,24")
    expect(run("compile", same, "-o", o, "--dim", "s=9..15"), 1, "input-shape", "--dim s=SIZE")
    # Must not fire: all sizes are valid, and a dimension of size 1 stays.
    plain = folder.linear("plain.onnx", batch="n")
    assert "note:" not in expect(run("compile", plain, "-o", o), 0, "n in 1..4096").stderr
    # The batch size stays 1 while height and width are symbolic.
    batched = folder.model("batched.onnx", [wire.node("MaxPool", ["x"], ["d"], kernel_shape=[3, 3], strides=[1, 1])],
                           [("x", FLOAT, ["n", 1, "h", "w"])], [("d", FLOAT, ["n", 1, "a", "b"])])
    shape_range = about(compiled(folder, batched))["inputs"][0]["shape_range"]
    assert shape_range == [[1, 4096], [1, 1], [3, 4096], [3, 4096]], shape_range


def test_sizes_of_packages_are_chosen(folder):
    model = folder.linear("open.onnx", batch="n")
    package = compiled(folder, model, "--dim", "n=2..9")
    listed = compiled(folder, model, "--dim", "n=2,4", name="listed.mlpackage")

    def shape(*options, file=package, code=0, texts=()):
        answer = expect(run("run", file, *options, "--json"), code, *texts).answer
        return answer["outputs"][0]["shape"] if code == 0 else None

    assert shape() == [2, 4] and shape("--dim", "n=5") == [5, 4] and shape("--shape", "x=9,3") == [9, 4]
    assert shape("--dim", "n=4..7") == [4, 4] and shape("--dim", "n=4", file=listed) == [4, 4]
    assert shape("--shape", "x=4,3", file=listed) == [4, 4]
    for options, text in ((("--dim", "n=10"), "2..9"), (("--dim", "n=1"), "2..9"), (("--dim", "m=3"), "expected: \\\"n\\\""),
                          (("--shape", "x=3,4"), "dimension 1"), (("--shape", "x=3"), "[n, 3]"), (("--shape", "z=3"), "expected: \\\"x\\\""),
                          (("--shape", "x=10,3"), "2..9")):
        shape(*options, code=1, texts=(text,))
    shape("--dim", "n=3", file=listed, code=1, texts=("2|4",))
    expect(run("run", package, "--outputs", "y"), 2, "--outputs")
    expect(run("verify", model, package, "--dim", "n=7"), 0, "PASSED")
    expect(run("verify", model, package, "--shape", "x=7,3"), 0, "PASSED")
    expect(run("verify", model, package, "--dim", "n=11"), 1, "2..9")
    # Enumerated shapes are listed as a whole: the sizes of each belong together.
    square = folder.model("square.onnx", [wire.node("Neg", ["x"], ["y"])], [("x", FLOAT, ["h", "w"])], [("y", FLOAT, ["h", "w"])])
    square = compiled(folder, square, "--dim", "h=2,4", "--dim", "w=3,5", name="square.mlpackage")
    assert shape("--dim", "w=5", file=square) == [2, 5] and shape("--dim", "h=4", "--dim", "w=5", file=square) == [4, 5]


def test_image_sizes_are_listed_or_ranges(folder):
    model = folder.model("open.onnx", [wire.node("Neg", ["x"], ["y"])], [("x", FLOAT, [1, 3, "h", "w"])],
                         [("y", FLOAT, [1, 3, "h", "w"])])
    options = ["--image", "x=rgb", "--precision", "fp32"]
    listed = accepted(compiled(folder, model, *options, "--dim", "h=4,2", "--dim", "w=5"))
    answer = about(listed)["inputs"][0]
    assert answer["image"] == "rgb" and answer["enumerated_shapes"] == [[1, 3, 2, 5], [1, 3, 4, 5]], answer
    ranges = accepted(compiled(folder, model, *options, "--dim", "h=2..4", "--dim", "w=5..6", name="ranges.mlpackage"))
    assert about(ranges)["inputs"][0]["shape_range"] == [[1, 1], [3, 3], [2, 4], [5, 6]]
    for package in (listed, ranges):
        for height in (2, 4):
            picture = np.arange(height * 5 * 3, dtype="u1").reshape(height, 5, 3)
            np.save(folder / "x.npy", picture)
            expect(run("run", package, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "o"), 0)
            assert np.array_equal(np.load(folder / "o" / "y.npy"), -picture.transpose(2, 0, 1)[None].astype("f4"))
            shown = expect(run("run", package, "--dim", f"h={height}", "--json"), 0).answer
            assert shown["outputs"][0]["shape"] == [1, 3, height, 5], shown
        expect(run("verify", model, package, "--image", "x=rgb"), 0, "PASSED")
    np.save(folder / "x.npy", np.zeros((3, 5, 3), "u1"))
    expect(run("run", listed, "--input", f"x={folder / 'x.npy'}"), 1, "2, 4")
    last = folder.model("last.onnx", [wire.node("Neg", ["x"], ["y"])], [("x", FLOAT, [1, "h", "w", 3])],
                        [("y", FLOAT, [1, "h", "w", 3])])
    package = accepted(compiled(folder, last, *options, "--dim", "h=2,4", "--dim", "w=5,7"))
    assert about(package)["inputs"][0]["enumerated_shapes"] == [[1, 3, h, w] for h in (2, 4) for w in (5, 7)]
    expect(run("verify", last, package, "--image", "x=rgb"), 0, "PASSED")
    batch = folder.model("batch.onnx", [wire.node("Neg", ["x"], ["y"])], [("x", FLOAT, ["n", 3, 2, 2])],
                         [("y", FLOAT, ["n", 3, 2, 2])])
    expect(run("compile", batch, "-o", folder / "o.mlpackage", "--image", "x=rgb"), 1, "[n, 3, 2, 2]", "--dim")


def test_means_and_deviations_of_images(folder):
    model = folder.model("image.onnx", [wire.node("Identity", ["x"], ["y"])], [("x", FLOAT, [1, 3, 2, 5])],
                         [("y", FLOAT, [1, 3, 2, 5])])
    pixels = np.arange(2 * 5 * 3, dtype="u1").reshape(2, 5, 3) * 8
    np.save(folder / "x.npy", pixels)
    planes = pixels.transpose(2, 0, 1)[None].astype("f8")

    def each(*values):
        return np.array(values).reshape(1, -1, 1, 1)

    mean, deviation = each(0.485, 0.456, 0.406), each(0.229, 0.224, 0.225)  # of ImageNet
    for option, want in (("rgb,mean=0.485,0.456,0.406,std=0.229,0.224,0.225", (planes / 255 - mean) / deviation),
                         ("bgr,mean=0.485,0.456,0.406,std=0.229,0.224,0.225", (planes[:, ::-1] / 255 - mean) / deviation),
                         ("rgb,mean=0.5,std=0.5", planes / 127.5 - 1), ("rgb,std=0.25", planes / 255 / 0.25),
                         ("rgb,mean=123.675,116.28,103.53,std=58.395,57.12,57.375",
                          (planes - each(123.675, 116.28, 103.53)) / each(58.395, 57.12, 57.375)),
                         ("bgr,mean=103.939,116.779,123.68", planes[:, ::-1] - each(103.939, 116.779, 123.68)),
                         ("rgb,1/255", planes / 255), ("rgb,1/127.5,-1", planes / 127.5 - 1),
                         ("rgb,2,mean=10", planes * 2 - 10), ("rgb,scale=1/255,bias=-1/2,0,1/2", planes / 255 + each(-0.5, 0, 0.5))):
        package = compiled(folder, model, "--image", f"x={option}", "--precision", "fp32")
        expect(run("run", package, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "o"), 0)
        got = np.load(folder / "o" / "y.npy")
        assert np.abs(got - want).max() <= 1e-5 * max(1, np.abs(want).max()), (option, got, want)
    for bad in ("rgb,1/0", "rgb,1/", "rgb,/255", "rgb,1/2/3", "rgb,mean=", "rgb,mean=1,2", "rgb,std=0", "rgb,gamma=1",
                "rgb,mean=1,mean=2", "rgb,1,2,mean=1", "rgb,mean=nan", "rgb,1,scale=2", "gray,mean=1,2,3"):
        expect(run("compile", model, "-o", folder / "o.mlpackage", "--image", f"x={bad}"), 2, "--image")
    named = folder.model("named.onnx", [wire.node("Neg", ["a=b"], ["y"])], [("a=b", FLOAT, [1, 1, 2, 2])], [("y", FLOAT, [1, 1, 2, 2])])
    expect(run("compile", named, "-o", folder / "o.mlpackage", "--image", "a=b=gray,mean=0.5"), 0)


def test_coremltools_accepts_the_packages_of_the_tests_before(_):
    if what := checkers.missing():
        print(f"# interface: {len(PACKAGES)} packages not checked, {what}")
        return
    refused = checkers.check(PACKAGES)
    print(f"# interface: check_mlpackage --strict accepts {len(PACKAGES) - len(refused)} of {len(PACKAGES)} packages")
    assert not refused, refused


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "interface", Folder) if MLC.exists() else SKIPPED)
