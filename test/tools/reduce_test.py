#!/usr/bin/env python3
"""Tests `mlc reduce`: three planted faults in models of 1,000 nodes, in ONNX and in MIL text, are reduced below five operations;
scripts that fail, hang or do not exist; interrupts and time limits."""
import os
import pathlib
import shlex
import signal
import stat
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np

import onnx_wire as wire
from driver import MLC, SANITIZED, expect, run, run_tests

SHAPE = [4, 8]
SIXTH = 0.15625  # a constant that occurs once

# A faulty compiler: it edits the MIL text of a model. The script compares the results before and after.
FAULTS = {
    "dropped relu": """
for sub in re.findall(r'> (\\w+) = sub\\(', text):
    relu = re.search(r'> (\\w+) = relu\\(x = ' + sub + r'\\)', text)
    if relu:
        text = text.replace(relu[0], relu[0].replace('relu(x', 'identity(x'))""",
    "wrong axis": """
axes = {name: value for name, value in re.findall(r'(\\w+) = const\\(\\)\\[.*?val = \\w+(?:<int32, \\[\\]>)?\\((-?\\d+)\\)\\]', text)}
for call, axis in re.findall(r'( = softmax\\(axis = (\\w+))', text):
    if axes.get(axis) == '0':
        text = text.replace(' = softmax(axis = ' + axis, ' = softmax(axis = wrong_axis')
        text = text.replace(re.search(r'\\n[^\\n]*tensor<[^\\n]* = softmax\\(axis = wrong_axis', text)[0],
                            '\\n tensor<int32, []> wrong_axis = const()[name = tensor<string, []>("wrong_axis"), '
                            'val = tensor<int32, []>(1)];' + re.search(r'\\n[^\\n]* = softmax\\(axis = wrong_axis', text)[0], 1)
        break""",
    "wrong constant": """
text = text.replace('(0x1.4p-3)', '(0x1.8p-3)')""",
}

SCRIPT = """#!{python} -ES
import os, re, shutil, subprocess, sys, tempfile
folder = tempfile.mkdtemp(prefix="mlc-")
def mlc(*arguments):
    if subprocess.call([{mlc!r}, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        shutil.rmtree(folder)
        sys.exit(1)
def results(name):
    mlc("run", folder + "/" + name + ".mil", "--seed", "1", "--output-dir", folder + "/" + name)
    return [open(os.path.join(folder, name, file), "rb").read() for file in sorted(os.listdir(os.path.join(folder, name)))]
mlc("opt", sys.argv[1], "--passes", "", "-o", folder + "/good.mil")
text = before = open(folder + "/good.mil").read()
{fault}
if text == before:
    shutil.rmtree(folder)
    sys.exit(1)
open(folder + "/bad.mil", "w").write(text)
differ = results("good") != results("bad")
shutil.rmtree(folder)
sys.exit(0 if differ else 1)
"""


def script(folder, text, name="script"):
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def faulty(folder, fault):
    return script(folder, SCRIPT.format(python=sys.executable, mlc=str(MLC), fault=FAULTS[fault]))


def big_model(folder, nodes=1000):
    """Blocks h = h + c f(h); the 150th is relu(h - c), the 200th has a softmax over axis 0, the 250th another constant."""
    made, initializers, h = [], [], "x"

    def constant(name, value, dims=()):
        initializers.append(wire.tensor(name, wire.FLOAT, dims, np.full(dims, value, "<f4").tobytes()))
        return name

    while len(made) < nodes - 3:
        i = len(made) // 3
        scale = constant(f"c{i}", SIXTH if i == 250 else 0.01)
        f, g = f"f{i}", f"g{i}"
        if i == 150:
            made += [wire.node("Sub", [h, constant("shift", 0.5)], ["s"]), wire.node("Relu", ["s"], [f])]
        else:
            op = ["Relu", "Sigmoid", "Tanh", "Softmax"][i % 4]
            made.append(wire.node(op, [h], [f], **({"axis": 0 if i == 199 else 1} if op == "Softmax" else {})))
        made += [wire.node("Mul", [f, scale], [g]), wire.node("Add", [h, g], [f"h{i}"])]
        h = f"h{i}"
    while len(made) < nodes:
        made.append(wire.node("Neg", [h], [h + "n"]))
        h += "n"
    path = folder / "big.onnx"
    path.write_bytes(wire.model(wire.graph(made, [wire.value_info("x", wire.FLOAT, SHAPE)], [wire.value_info(h, wire.FLOAT, SHAPE)],
                                           initializers)))
    return path


def small_model(folder, name="small.onnx", nodes=8):
    made = [wire.node("Relu", ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"]) for i in range(nodes)]
    (folder / name).write_bytes(wire.model(wire.graph(
        made, [wire.value_info("x", wire.FLOAT, SHAPE)], [wire.value_info(f"v{nodes}", wire.FLOAT, SHAPE)])))
    return folder / name


def text_of(folder, model):
    path = folder / (model.stem + ".mil")
    expect(run("opt", model, "--passes", "", "-o", path), 0)
    return path


def check_fault(folder, fault):
    model = big_model(folder)
    judge = faulty(folder, fault)
    for source in (model, text_of(folder, model)):
        out = folder / ("out" + source.suffix)
        result = expect(run("reduce", source, "--test", judge, "-o", out, "--json", timeout=600), 0)
        answer = result.answer
        print(f"# {fault} in {source.name}: {answer['operations_before']} to {answer['operations']} operations, "
              f"{answer['tests']} tests, {result.seconds:.1f} s")
        assert answer["operations_before"] >= 1000 and answer["operations"] < 5, answer
        assert answer["end"] == "minimal", answer
        again = run(out, program=judge)
        assert again.code == 0, (again.code, again.stderr)
        expect(run("inspect", out), 0)


def test_a_dropped_relu_is_found(folder):
    check_fault(folder, "dropped relu")


def test_a_wrong_axis_is_found(folder):
    check_fault(folder, "wrong axis")


def test_a_wrong_constant_is_found(folder):
    check_fault(folder, "wrong constant")


def test_a_fast_script_takes_less_than_a_minute(folder):
    model = big_model(folder)
    judge = script(folder, f"#!/bin/sh\nsleep 0.02\ngrep -aq Sub \"$1\"\n")
    result = expect(run("reduce", model, "--test", judge, "-o", folder / "out.onnx", "--json", timeout=300), 0)
    print(f"# a script of 20 ms: {result.answer['tests']} tests, {result.seconds:.1f} s")
    assert result.answer["operations"] < 5, result.answer
    assert SANITIZED or result.seconds < 60, result.seconds


def test_the_result_does_not_depend_on_the_run(folder):
    model, judge = small_model(folder), script(folder, "#!/bin/sh\ngrep -aq v3 \"$1\"\n")
    for name in ("a.onnx", "b.onnx"):
        expect(run("reduce", model, "--test", judge, "-o", folder / name), 0, "8 operations before, 1 after", name)
    assert (folder / "a.onnx").read_bytes() == (folder / "b.onnx").read_bytes()


def test_the_default_output_is_in_the_current_folder(folder):
    model, judge = small_model(folder), script(folder, "#!/bin/sh\nexit 0\n")
    expect(run("reduce", model, "--test", judge, folder=folder), 0, "small-reduced.onnx")
    assert (folder / "small-reduced.onnx").exists()


def test_a_package_is_reduced_to_a_package(folder):
    expect(run("compile", small_model(folder), "-o", folder / "a.mlpackage"), 0)
    judge = script(folder, "#!/bin/sh\n" + shlex.quote(str(MLC)) + " inspect \"$1\" --ops | grep -q relu\n")
    # Consecutive relus are fused, so the package is made from text.
    text = text_of(folder, small_model(folder))
    expect(run("opt", text, "--passes", "", "-o", folder / "b.mlpackage"), 0)
    answer = expect(run("reduce", folder / "b.mlpackage", "--test", judge, "-o", folder / "c.mlpackage", "--json"), 0).answer
    assert answer["operations"] == 1, answer
    expect(run("run", folder / "c.mlpackage"), 0)


def test_functions_and_states_are_reduced(folder):
    (folder / "m.mil").write_text("""program(1.3)
{
    func a<ios18>(state<tensor<fp16, [4]>> s, tensor<fp16, [4]> x) {
            tensor<fp16, [4]> before = read_state(input = s);
            tensor<fp16, [4]> sum = add(x = before, y = x);
            write_state(input = s, data = sum);
            tensor<fp16, [4]> y = tanh(x = sum);
        } -> (y);
    func b<ios18>(tensor<fp16, [4]> x) {
            tensor<fp16, [4]> q = exp(x = x);
        } -> (q);
}""")
    for operator, operations, function in (("exp", 1, "b"), ("tanh", 1, "a"), ("write_state", 2, "a")):
        judge = script(folder, f"#!/bin/sh\ngrep -q {operator} \"$1\"\n")
        answer = expect(run("reduce", folder / "m.mil", "--test", judge, "-o", folder / "o.mil", "--json"), 0).answer
        assert answer["operations"] == operations, (operator, answer)
        text = (folder / "o.mil").read_text()
        assert f"func {function}<" in text and text.count("func ") == 1 and "[1]" in text and "[4]" not in text, text


def test_sizes_and_constants_are_reduced(folder):
    nodes = [wire.node("MatMul", ["x", "w"], ["h"]), wire.node("Add", ["h", "b"], ["y"])]
    weights = [wire.tensor(n, wire.FLOAT, d, np.random.default_rng(1).normal(size=d).astype("<f4").tobytes())
               for n, d in (("w", [6, 5]), ("b", [5]))]
    model = folder / "m.onnx"
    model.write_bytes(wire.model(wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [3, 6])], [wire.value_info("y", wire.FLOAT, [3, 5])],
                                            weights)))
    for source in (model, text_of(folder, model)):
        out = folder / ("out" + source.suffix)
        judge = script(folder, "#!/bin/sh\n" + shlex.quote(str(MLC)) + " opt \"$1\" --passes '' | grep -q matmul\n")
        expect(run("reduce", source, "--test", judge, "-o", out), 0, "1 after")
        shape = expect(run("inspect", out, "--json"), 0).answer["inputs"][0]["shape"]
        assert shape == [1, 1], (source, shape)
        text = expect(run("opt", out, "--passes", ""), 0).stdout
        assert "0x0p+0" in text, text


def test_scripts_that_cannot_judge(folder):
    model, out = small_model(folder), folder / "o.onnx"
    expect(run("reduce", model, "--test", folder / "absent", "-o", out), 1, "error[file-io]", "does not exist")
    (folder / "plain").write_text("#!/bin/sh\n")
    expect(run("reduce", model, "--test", folder / "plain", "-o", out), 1, "error[file-io]", "not an executable", "chmod +x")
    expect(run("reduce", model, "--test", folder, "-o", out), 1, "error[file-io]", "not an executable")
    expect(run("reduce", model, "--test", script(folder, "#!/bin/sh\nexit 1\n"), "-o", out), 1, "error[not-interesting]",
           "exited with 1", "by hand")
    expect(run("reduce", model, "--test", script(folder, "#!/absent/sh\n"), "-o", out), 1, "error[file-io]", "cannot be started")
    expect(run("reduce", model, "--test", script(folder, "#!/bin/sh\nkill -9 $$\n"), "-o", out), 1, "signal 9")
    own = script(folder, f"#!/bin/sh\n[ \"$1\" = {shlex.quote(str(model))} ]\n")
    expect(run("reduce", model, "--test", own, "-o", out), 1, "error[not-interesting]", "a copy of the model")
    assert not out.exists()


def test_a_script_that_hangs_is_ended(folder):
    model, out = small_model(folder), folder / "o.onnx"
    mark = folder / "child"
    hang = script(folder, f"#!/bin/sh\nsleep 600 &\necho $! > {shlex.quote(str(mark))}\nwait\n")
    result = expect(run("reduce", model, "--test", hang, "-o", out, "--script-timeout", "300ms"), 1, "error[not-interesting]",
                    "more than 300 ms")
    assert result.seconds < 30
    child = int(mark.read_text())
    for _ in range(100):
        state = pathlib.Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the child of the script lives")
    # Versions on which the script hangs are not interesting.
    sometimes = script(folder, "#!/bin/sh\nif grep -aq v8 \"$1\"; then exit 0; fi\nsleep 600\n")
    expect(run("reduce", model, "--test", sometimes, "-o", out, "--script-timeout", "200ms"), 0, "1 after")


def test_bad_arguments(folder):
    model, yes = small_model(folder), script(folder, "#!/bin/sh\nexit 0\n")
    expect(run("reduce", model), 2, "--test")
    expect(run("reduce", model, "--test", yes, "-o", folder / "o.mil"), 2, ".onnx")
    before = model.read_bytes()
    expect(run("reduce", model, "--test", yes, "-o", model), 1, "error[overwrites-input]")
    assert model.read_bytes() == before
    expect(run("reduce", model, "--test", yes, "-o", folder / "no" / "o.onnx"), 1, "error[file-io]")
    expect(run("reduce", model, "--test", yes, "-o", folder / "o.onnx", "--time-limit", "soon"), 2, "--time-limit")
    expect(run("reduce", folder / "absent.onnx", "--test", yes), 1, "does not exist")


def test_the_time_limit_leaves_a_version(folder):
    model, slow = small_model(folder, nodes=200), script(folder, "#!/bin/sh\nsleep 0.1\ngrep -aq v77 \"$1\"\n")
    answer = expect(run("reduce", model, "--test", slow, "-o", folder / "o.onnx", "--time-limit", "1s", "--json"), 0).answer
    assert answer["end"] == "time-limit" and answer["operations"] < 200, answer
    expect(run("inspect", folder / "o.onnx"), 0)


def test_an_interrupt_leaves_a_version(folder):
    model, slow = small_model(folder, nodes=200), script(folder, "#!/bin/sh\nsleep 0.1\ngrep -aq v77 \"$1\"\n")

    def interrupt(process):
        time.sleep(1.5)
        os.kill(process, signal.SIGINT)

    temporary = folder / "tmp"
    temporary.mkdir()
    result = run("reduce", model, "--test", slow, "-o", folder / "o.onnx", watch=interrupt, environment={"TMPDIR": str(temporary)})
    assert result.code == -signal.SIGINT, (result.code, result.stderr)
    assert "interrupted" in result.stdout, result.stdout
    expect(run("inspect", folder / "o.onnx"), 0)
    assert not list(temporary.iterdir()), list(temporary.iterdir())


def test_a_model_that_mlc_does_not_import(folder):
    nodes = [wire.node("Relu", ["x"], ["a"]), wire.node("Bogus", ["a"], ["b"]), wire.node("Relu", ["b"], ["y"])]
    model = folder / "bad.onnx"
    model.write_bytes(wire.model(wire.graph(nodes, [wire.value_info("x", wire.FLOAT, SHAPE)], [wire.value_info("y", wire.FLOAT, SHAPE)])))
    judge = script(folder, "#!/bin/sh\n" + shlex.quote(str(MLC)) + " inspect \"$1\" 2>&1 | grep -q Bogus\n")
    expect(run("reduce", model, "--test", judge, "-o", folder / "o.onnx"), 0, "1 after")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "reduce"))
