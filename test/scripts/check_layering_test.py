"""Tests that the repository follows its layers, and that scripts/check-layering reports files that do not."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-layering"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check_layering", str(SCRIPT))
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_layering", loader))
loader.exec_module(module)


class Layering(unittest.TestCase):
    def test_repository(self):
        done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
        print(done.stdout, end="")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def check(self, path, include, text):
        found = [message for _, message in module.violations(path, f"// a\n#include {include}\n")]
        self.assertEqual(len(found), 1 if text else 0, found)
        if text:
            self.assertIn(text, found[0])

    def test_refused(self):
        for path, include, text in [
                ("lib/ir/a.cpp", '"lib/ops/row.h"', "lib/ir must not include lib/ops"),
                ("lib/ops/a.h", '"lib/engine/a.h"', "lib/ops must not include lib/engine"),
                ("lib/networks/a.cpp", '"lib/passes/a.h"', "lib/networks must not include lib/passes"),
                ("lib/passes/a.cpp", '"frontends/onnx/import.h"', "lib/passes must not include frontends/onnx"),
                ("frontends/onnx/a.cpp", '"frontends/coreml/a.h"', "must not include frontends/coreml"),
                ("frontends/coreml/a.cpp", '"backends/coreml/a.h"', "must not include backends/coreml"),
                ("backends/coreml/a.cpp", '"tools/mlc/a.h"', "must not include tools/mlc"),
                ("tools/mlc/a.cpp", '"tools/mlc-run/a.h"', "must not include tools/mlc-run"),
                ("lib/ir/a.cpp", '"test/catch.h"', "must not include a test"),
                ("lib/ir/a.cpp", '"program.h"', "not a path from the repository root"),
                ("lib/coreml/a.h", '"proto/MIL.pb.h"', "no header may include"),
                ("tools/mlc/a.cpp", "<onnx/onnx_pb.h>", "from frontends/onnx only"),
                ("tools/mlc/a.h", "<CLI/CLI.hpp>", "no header may include"),
                ("tools/mlc/a.cpp", '"frontends/onnx/onnx.h"', "must not include frontends/onnx"),
                ("tools/mlc-run/a.cpp", '"backends/coreml/write_package.h"', "must not include backends/coreml"),
                ("tools/driver/a.cpp", '"tools/mlc/command.h"', "must not include tools/mlc"),
                ("tools/runtime/a.cpp", '"tools/mlc/command.h"', "must not include tools/mlc"),
                ("tools/driver/a.cpp", "<CLI/CLI.hpp>", "from tools/mlc only"),
                ("lib/verify/a.cpp", "<CLI/CLI.hpp>", "from tools/mlc only"),
                ("lib/ops/a.cpp", "<dnnl.hpp>", "from lib/engine only"),
                ("frontends/onnx/model/a.cpp", '"frontends/onnx/node.h"', "frontends/onnx/model must not include"),
                ("frontends/onnx/model/a.h", '"frontends/onnx/ops/a.h"', "frontends/onnx/model must not include"),
                ("frontends/onnx/a.cpp", '"frontends/onnx/ops/a.h"', "frontends/onnx must not include"),
                ("lib/manager/a.cpp", "<vector>", "none of the layers")]:
            with self.subTest(path=path, include=include):
                self.check(path, include, text)

    def test_accepted(self):
        for path, include in [
                ("lib/engine/a.cpp", '"lib/support/error.h"'),
                ("lib/engine/a.cpp", "<dnnl.hpp>"),
                ("lib/coreml/a.cpp", '"proto/MIL.pb.h"'),
                ("frontends/onnx/a.cpp", "<onnx/onnx_pb.h>"),
                ("frontends/onnx/model/a.cpp", '"frontends/onnx/onnx.h"'),
                ("frontends/onnx/a.cpp", '"frontends/onnx/model/a.h"'),
                ("frontends/onnx/ops/a.cpp", '"frontends/onnx/node.h"'),
                ("frontends/onnx/ops/microsoft/a.cpp", '"frontends/onnx/ops/a.h"'),
                ("frontends/onnx/a.cpp", '"lib/networks/a.h"'),
                ("tools/driver/a.cpp", '"frontends/onnx/onnx.h"'),
                ("tools/mlc/a.cpp", '"tools/driver/compile.h"'),
                ("tools/mlc/a.cpp", '"lib/verify/program_diff.h"'),
                ("tools/mlc-run/main.cpp", '"tools/mlc/command.h"'),
                ("test/lib/ir/a_test.cpp", '"frontends/onnx/import.h"')]:
            with self.subTest(path=path, include=include):
                self.check(path, include, None)

    def test_namespaces(self):
        for path, line, refused in [
                ("lib/engine/a.h", "namespace mlc::engine {", False),
                ("lib/engine/a.h", "namespace mlc {", False),
                ("lib/engine/a.h", "namespace mlc::verify {", True),
                ("lib/ir/a.h", "namespace mlc::ir {", True),
                ("tools/mlc/a.cpp", "namespace mlc::driver {", False),
                ("tools/mlc/a.cpp", "namespace mlc::mlc {", True),
                ("backends/coreml/a.h", "namespace mlc::schema {", False),
                ("test/lib/ir/a_test.cpp", "namespace mlc::verify {", False)]:
            with self.subTest(path=path, line=line):
                self.assertEqual(bool(list(module.violations(path, line))), refused)

    def test_flags(self):
        for path, line, refused in [
                ("lib/ir/a.cpp", 'throw Error("usage", "--dim: none is open");', True),
                ("frontends/onnx/a.cpp", 'Help("pass " "a --const X");', True),
                ("lib/ir/a.cpp", 'throw Error("usage", "option \'dim\': none is open");  // --dim', False),
                ("lib/ir/a.cpp", '// "--dim"', False),
                ("lib/ir/a.cpp", 'F("a", b--c, "d");', False),
                ("tools/driver/a.cpp", 'F("--dim");', False),
                ("test/lib/ir/a_test.cpp", 'F("--dim");', False)]:
            with self.subTest(path=path, line=line):
                self.assertEqual(bool(list(module.violations(path, line))), refused)

    def second(self, first, second):
        """Returns the report for lib/ir/a.h and lib/ops/b.cpp with these texts in namespace mlc."""
        texts = {path: f"// a\nnamespace mlc {{\n\n{text}\n\n}}  // namespace mlc\n"
                 for path, text in (("lib/ir/a.h", first), ("lib/ops/b.cpp", second))}
        return list(module.second_definitions(texts))

    def test_defined_twice(self):
        for name, first, second in [
                ("type mlc::A", "struct A {\n  int x;\n};", "class A final : public B {};"),
                ("type mlc::A", "enum class A : int { kX };", "template <class T>\nstruct A {};"),
                ("type mlc::A::B", "struct A::B {};", "struct alignas(64) A::B {};"),
                ("type mlc::c::A", "namespace c {\nunion A {};\n}", "namespace c {\nenum A { kX };\n}"),
                ("type mlc::A", "constexpr char kX = '{';\nstruct A {};", 'auto kX = R"({)";  // {\nstruct A {};'),
                ("variable mlc::kX", "inline constexpr int kX = 1;", "inline constexpr int kX[] = {2};"),
                ("function mlc::F(int, const B&)", "inline int F(int x, const B& y) { return 1; }",
                 "int F(int, const B& b = {}) { return 2; }"),
                ("function mlc::F(T)", "template <class T>\nvoid F(T x) {}", "template <class T> int F(T) {}"),
                ("function mlc::operator+(A)", "A operator+(A a) {}", "A operator+(A b) {}"),
                ("function mlc::F()", "inline std::function<void(int)> F() {}", "std::function<int()> F() {}")]:
            with self.subTest(first=first, second=second):
                found = self.second(first, second)
                self.assertEqual([(path, text) for path, _, text in found],
                                 [("lib/ops/b.cpp", f"{name} is defined in lib/ir/a.h and lib/ops/b.cpp")])
        self.assertEqual([line for _, line, _ in self.second("struct A {};", "/* b\n */\nstruct A {};")], [6])

    def test_defined_once(self):
        for first, second in [
                ("struct A {};", "struct A;\nA F(A a);\nA kA = {};"),
                ("struct A {};", "namespace {\nstruct A {};\n}"),
                ("struct A {};", "namespace c {\nstruct A {};\n}"),
                ("struct A {};", "void F() {\n  struct A {};\n}"),
                ("struct A {};", "struct B {\n  struct A {};\n};"),
                ("struct A {};", "// struct A {};\n/* struct A {}; */\n#define B struct A {};"),
                ("template <class T>\nstruct A {};", "template <>\nstruct A<int> {};"),
                ("int F(int x, A a = {});", "int F(int x, A a) {}"),
                ("int F(int x) {}", "int F(float x) {}"),
                ("int A::F() {}", "int B::F() {}"),
                ("constexpr int kX = 1;", "constexpr int kX = 2;"),
                ("std::function<void()> F() {}", "std::function<void()> G() {}")]:
            with self.subTest(first=first, second=second):
                self.assertEqual(self.second(first, second), [])
        self.assertEqual(list(module.second_definitions({"lib/ir/a.h": "struct A {};", "lib/ir/b.h": "struct A {};"})), [])


if __name__ == "__main__":
    unittest.main()
