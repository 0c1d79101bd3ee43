#!/usr/bin/env python3
"""Tests the code of `mlc inspect --swift` and `--objc`: app_code_test.py [--update].

The texts of a few packages are golden (golden/app/). All texts are parsed: Swift by tree-sitter (SWIFT_PARSER_DIR names a folder
with `npm install --ignore-scripts web-tree-sitter@0.20.8 tree-sitter-wasms`), Objective-C by clang with the stub of Core ML's
interface.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TEST))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy as np

import onnx_wire as wire
from command_line_test import FLOAT, INT64, Folder, floats, ints
from driver import expect, run, run_tests
from language_models import Llama

GOLDEN = TEST / "golden/app"
STUB = TEST / "backends/apple/stub"
UPDATE = "--update" in sys.argv
LANGUAGES = {"swift": "swift", "objc": "m"}  # option: ending of files
TEXTS = {}  # every text made here, to be parsed: {title: (language, text)}


def code(package, language):
    text = expect(run("inspect", package, f"--{language}"), 0).stdout
    TEXTS[f"{package.name} {len(TEXTS)}"] = (language, text)
    return text


def written(folder, name, text):
    (folder / f"{name}.mil").write_text(text)
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def compiled(model, *options):
    expect(run("compile", model, "-o", model.with_suffix(".mlpackage"), *options), 0)
    return model.with_suffix(".mlpackage")


def image_classifier(folder):
    nodes = [wire.node("GlobalAveragePool", ["image"], ["means"]), wire.node("Flatten", ["means"], ["row"]),
             wire.node("Gemm", ["row", "w"], ["scores"]), wire.node("Softmax", ["scores"], ["probabilities"], axis=1)]
    model = folder.model("fruit-v2.onnx", nodes, [("image", FLOAT, [1, 3, 48, 64])], [("probabilities", FLOAT, [1, 6])],
                         [floats("w", np.arange(18).reshape(3, 6) / 9)])
    (folder / "labels.txt").write_text("apple\nbanana\ncherry\ngrape\norange\npear \"William\"\n")
    return compiled(model, "--image", "image=rgb,0.0039", "--labels", folder / "labels.txt")


def flexible(folder):
    """A dimension in a range, another one listed, integers, and an optional input of a reserved name."""
    model = folder.model("tagger.onnx", [wire.node("Gather", ["table", "tokens"], ["rows"]), wire.node("Mul", ["rows", "in"], ["h"]),
                                         wire.node("ReduceSum", ["h"], ["score"], keepdims=1)],
                         [("tokens", INT64, ["batch", "length"]), ("in", FLOAT, ["length", 4])],
                         [("h", FLOAT, ["batch", "length", 4]), ("score", FLOAT, [1, 1, 1])],
                         [floats("table", np.arange(40).reshape(10, 4) / 40)])
    return compiled(model, "--dim", "length=16,32", "--dim", "batch=1..8", "--target", "iOS18")


def stateful(folder):
    return written(folder, "counter", """func main<ios18>(tensor<fp16, [1, 4]> x, state<tensor<fp16, [1, 4]>> total) {
  before = read_state(input = total);
  sum = add(x = before, y = x);
  write_state(input = total, data = sum);
  y = mul(x = sum, y = fp16(0.5));
} -> (y);
""")


def several_functions(folder):
    return written(folder, "steps", """func main<ios18>(tensor<fp32, [1, 4]> x) {
  y = relu(x = x);
} -> (y);
func pre_fill<ios18>(tensor<fp32, [8, 4]> x, tensor<int32, [1]> place) {
  y = tanh(x = x);
  next = add(x = place, y = 1);
} -> (y, next);
""")


def language_model(folder):
    Llama().gguf(folder / "llama.gguf")
    return compiled(folder / "llama.gguf")


def fixed_language_model(folder):
    Llama().gguf(folder / "fixed.gguf")
    return compiled(folder / "fixed.gguf", "--dim", "tokens=1,16")


GOLDENS = [image_classifier, flexible, stateful, several_functions, language_model, fixed_language_model]


def test_the_texts_are_as_expected(folder):
    for make in GOLDENS:
        package = make(folder)
        for language, ending in LANGUAGES.items():
            text, file = code(package, language), GOLDEN / f"{make.__name__}.{ending}"
            if UPDATE:
                file.write_text(text)
            assert file.read_text() == text, f"{file} differs (--update writes it anew)"
        # A compiled bundle and a package with the same name have the same code.
        bundle = folder / "compiled" / f"{package.stem}.mlmodelc"
        bundle.parent.mkdir(exist_ok=True)
        expect(run("precompile", package, "-o", bundle), 0)
        assert code(bundle, "swift") == (GOLDEN / f"{make.__name__}.swift").read_text(), make.__name__


def test_names_are_identifiers_of_the_language(folder):
    names = ["class", "self", "init", "features", "description", "hash", "id", "new_value", "copyOfX", "newer", "error", "Type", "outputs", "_", "__"]
    text = "func main<ios16>(" + ", ".join(f"tensor<fp32, [2]> {name}" for name in names) + ") {\n"
    previous = names[0]
    for i, name in enumerate(names[1:]):
        text += f"  sum_{i} = add(x = {previous}, y = {name});\n"
        previous = f"sum_{i}"
    text += f"  where = relu(x = {previous});\n  values = tanh(x = where);\n}} -> (where, values);\n"
    package = written(folder, "8-bit näme", text)
    swift, objc = code(package, "swift"), code(package, "objc")
    for declared in ("final class Model8BitNMePredictor {", "var `class`: MLShapedArray<Float>", "var self_: ", "var init_: ", "var features_: ",
                     "var description: ", "var Type_: ", "var value: ", "var value_2: ", '"self": MLFeatureValue(shapedArray: self_)',
                     'forResource: "8-bit näme"', "let `where`: ", "let values_: "):
        assert declared in swift, declared
    for declared in ("@interface Model8BitNMePredictor : NSObject", "predictionFromClass_:(MLMultiArray *)class_", "self_:(MLMultiArray *)self_",
                     "the_init:(MLMultiArray *)the_init", "description_:", "hash_:", "id_:", "the_new_value:", "the_copyOfX:", "newer:", "error_:",
                     'values[@"self"] = [MLFeatureValue featureValueWithMultiArray:self_]', "*where;", "*values_;"):
        assert declared in objc, declared


def test_class_names_of_functions_differ(folder):
    function = "func {}<ios18>(tensor<fp32, [2]> x) {{\n  y = relu(x = x);\n}} -> (y);\n"
    package = written(folder, "net", "".join(map(function.format, ["main", "pre_fill", "preFill", "PreFill"])))
    assert re.findall("final class (\\w+)", code(package, "swift")) == ["NetPredictor", "NetPreFillPredictor", "NetPreFill2Predictor",
                                                                         "NetPreFill3Predictor"]
    assert code(package, "objc").count("own.functionName = @") == 4


def test_texts_of_a_package_do_not_leave_their_comment(folder):
    model = folder.model("c.onnx", [wire.node("Softmax", ["x"], ["p"], axis=1)], [("x", FLOAT, [1, 2])], [("p", FLOAT, [1, 2])])
    (folder / "labels.txt").write_text('*/ import Evil\n"\\(exit())"\n')
    package = compiled(model, "--labels", folder / "labels.txt", "--target", "iOS17")
    for language in LANGUAGES:
        for line in code(package, language).splitlines():
            assert "Evil" not in line or line.lstrip().startswith("///"), line


def test_images_and_integers(folder):
    gray = folder.model("two.onnx", [wire.node("Neg", ["a"], ["c"]), wire.node("Neg", ["b"], ["d"])],
                        [("a", FLOAT, [1, 1, "h", 5]), ("b", FLOAT, [1, 3, 2, 5])], [("c", FLOAT, [1, 1, "h", 5]), ("d", FLOAT, [1, 3, 2, 5])])
    swift = code(compiled(gray, "--image", "a=gray", "--image", "b=bgr", "--dim", "h=2..64"), "swift")
    for declared in ("Gray image, width 5, height h: h in 2..64. kCVPixelFormatType_OneComponent8.", "(bgr)", 'input: String = "a"',
                     'b: predictor.pixelBuffer(picture, input: "b")'):
        assert declared in swift, declared


def test_the_loop_has_the_sizes_of_the_model(folder):
    text = code(language_model(folder), "swift")
    assert f"static let context = {Llama.context}" in text and f"all {Llama.vocabulary} tokens" in text and "Float16 on" not in text
    assert "generate(" not in code(stateful(folder), "swift")  # not a language model


def test_availability_is_that_of_the_package(folder):
    text = "func main<{}>(tensor<fp32, [2]> x) {{\n  y = relu(x = x);\n}} -> (y);\n"
    for target, own, asynchronous in (("ios16", "iOS 16.0, macOS 13.0, tvOS 16.0, watchOS 9.0, *", True),
                                      ("ios17", "iOS 17.0, macOS 14.0, tvOS 17.0, watchOS 10.0, visionOS 1.0, *", False)):
        swift = code(written(folder, target, text.format(target)), "swift")
        guards = re.findall(r"@available\((.*)\)", swift)
        assert guards == [own] + ["iOS 17.0, macOS 14.0, tvOS 17.0, watchOS 10.0, visionOS 1.0, *"] * asynchronous, guards


def test_usage(folder):
    model, package = folder.linear(), stateful(folder)
    expect(run("inspect", model, "--swift"), 2, "--swift requires a package", "compile it first")
    for other in ("--mil", "--ops", "--weights", "--dot", "--objc"):
        expect(run("inspect", package, "--swift", other), 2, other, "--swift prints code")
    expect(run("inspect", package, "--objc", "--mil"), 2, "--objc prints code")
    answer = expect(run("inspect", package, "--swift", "--json"), 0).answer
    assert answer["swift"] == code(package, "swift"), answer


def swift_errors(files):
    folder = os.environ["SWIFT_PARSER_DIR"]
    done = subprocess.run(["node", TEST / "parse_swift.mjs", folder, *files], capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line)["errors"] for line in done.stdout.splitlines()]


def objective_c_errors(files):
    """What clang says of each text. GNUstep's headers for gcc's runtime have an error of their own with ARC, which does not count,
    and no NS_UNAVAILABLE."""
    gcc = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    said = []
    for file in files:
        done = subprocess.run(["clang-16", "-x", "objective-c", "-", "-fsyntax-only", "-fblocks", "-fobjc-arc", "-fobjc-runtime=macosx-13",
                               "-Wall", "-Wextra", "-ferror-limit=0", "-isystem", STUB, "-isystem", "/usr/include/GNUstep",
                               "-fconstant-string-class=NSConstantString", "-DGNUSTEP", "-DGNUSTEP_BASE_LIBRARY=1", "-idirafter", gcc],
                              input=file.read_text().replace("NS_UNAVAILABLE", "__attribute__((unavailable))"), capture_output=True, text=True)
        assert "file not found" not in done.stderr, done.stderr
        said.append([line for line in done.stderr.splitlines() if line.startswith("<stdin>:")])
    return said


# By language: why its texts cannot be parsed here ("" if they can), the parser, and a change that it must refuse.
PARSERS = {
    "swift": ("" if shutil.which("node") and os.environ.get("SWIFT_PARSER_DIR") else "SWIFT_PARSER_DIR names no folder with tree-sitter",
              swift_errors, ("    let model: MLModel\n", "    let model MLModel\n")),
    "objc": ("" if shutil.which("clang-16") and shutil.which("gcc") and pathlib.Path("/usr/include/GNUstep").exists() else
             "no clang 16 or no GNUstep (scripts/setup --dev)", objective_c_errors, ("[MLModel modelWithContentsOfURL:", "[MLModel modelOf:")),
}


def test_the_texts_are_parsed(folder):
    """The last test: of all texts above."""
    for language, (missing, parse, (right, wrong)) in PARSERS.items():
        texts = {title: text for title, (its, text) in TEXTS.items() if its == language}
        if missing:
            print(f"# syntax of {language} code: skipped, {missing}")
            continue
        files = []
        for i, text in enumerate([*texts.values(), list(texts.values())[0].replace(right, wrong)]):
            files.append(folder / f"{i}.{LANGUAGES[language]}")
            files[-1].write_text(text)
        *errors, of_wrong = parse(files)
        for title, found in zip(texts, errors):
            assert not found, (title, found[:5])
        assert of_wrong, f"the parser of {language} accepts anything"
        print(f"# syntax of {language} code: {len(texts)} texts parsed")


if __name__ == "__main__":
    if UPDATE:
        sys.argv.remove("--update")
    sys.exit(run_tests(dict(globals()), "app code", Folder))
