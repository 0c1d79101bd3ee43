"""Tests scripts/count-names, which finds the places that identify an operator by its name instead of the traits of its row."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "count-names"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("count_names", str(SCRIPT))
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("count_names", loader))
loader.exec_module(module)

NAMES = {"relu", "add", "sigmoid", "constexpr_cast", "pad"}


class CountNames(unittest.TestCase):
    def test_repository(self):
        done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
        print(done.stdout, end="")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_rows_are_read(self):
        names = module.operators(SCRIPT.parents[1])
        self.assertLessEqual({"add", "conv", "relu", "while_loop", "reduce_sum"}, names)
        self.assertGreater(len(names), 160)

    def test_counted(self):
        for text, kinds in [
                ('if (op->is("relu")) return;', ["questions"]),
                ('op.is("add") || op.is("sigmoid")', ["questions"] * 2),
                ('return op.def->name == "pad";', ["questions"]),
                ('std::string_view name = op.def->name;\nif (name == "pad" || name != "add") f();', ["questions"] * 2),
                ('op.def->name.starts_with("constexpr_")', ["questions"]),
                ('return context.def().name != "pad";', ["questions"]),
                ('if (Operation* add = DefinedBy(op->value("x"), "add")) f(SoleUser(add->result(), "relu"));', ["questions"] * 2),
                ('op->is("add") || (op->is("sigmoid") && f()) || op->is("pad")', ["questions"] * 3),
                ('op->is("add") ||\n !user->is("sigmoid") && def->name == "pad"', ["listed names"] * 3),
                ('for (auto name : {"relu",\n "add"}) f(name);', ["listed names"] * 2)]:
            with self.subTest(text=text):
                self.assertEqual([kind for kind, _, _ in module.places(text, NAMES)], kinds)

    def test_not_counted(self):
        for text in ['token.is("]")', '// op->is("relu")', 'builder.Make("relu", {{"x", x}})', '{{"pad", pad}}',
                     'ArgsWithout(op, {"x", "pad"})', 'port.name == "relu"', 'name.starts_with("re")']:
            with self.subTest(text=text):
                self.assertEqual(list(module.places(text, NAMES)), [])

    def test_reasons(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "lib/ops").mkdir(parents=True)
            (root / "lib/ops/rows.cpp").write_text('{.name = "relu"}')
            asks = 'op->is("relu")'
            for name, text in [("counted.cpp", asks), ("reason.cpp", f"// Operators by name: a rewrite.\n{asks}"),
                               ("empty.cpp", f"// Operators by name: \n{asks}"), ("needless.cpp", "// Operators by name: a rewrite.\n"),
                               ("lists.cpp", f"// Operators by name: a rewrite.\n{asks}; {asks} || {asks} || {asks}")]:
                (root / "lib" / name).write_text(text)
            found, reasons, needless = module.count(root)
        self.assertEqual([text.partition(":")[0] for text in found["questions"]], ["lib/counted.cpp", "lib/empty.cpp"])
        self.assertEqual([text.partition(":")[0] for text in found["excused questions"]], ["lib/lists.cpp", "lib/reason.cpp"])
        self.assertEqual([text.partition(":")[0] for text in found["listed names"]], ["lib/lists.cpp"] * 3)
        self.assertEqual(list(reasons), ["lib/lists.cpp", "lib/needless.cpp", "lib/reason.cpp"])
        self.assertEqual(needless, ["lib/needless.cpp"])


if __name__ == "__main__":
    unittest.main()
