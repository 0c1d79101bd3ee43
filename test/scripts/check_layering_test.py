"""The repository follows its layers, and scripts/check-layering notices where a file does not."""
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
                ("tools/mlc-run/a.cpp", '"backends/coreml/package.h"', "must not include backends/coreml"),
                ("tools/driver/a.cpp", '"tools/mlc/command.h"', "must not include tools/mlc"),
                ("tools/runtime/a.cpp", '"tools/mlc/command.h"', "must not include tools/mlc"),
                ("tools/driver/a.cpp", "<CLI/CLI.hpp>", "from tools/mlc only"),
                ("lib/verify/a.cpp", "<CLI/CLI.hpp>", "from tools/mlc only"),
                ("lib/ops/a.cpp", "<dnnl.hpp>", "from lib/engine only"),
                ("frontends/onnx/model/a.cpp", '"frontends/onnx/node.h"', "frontends/onnx/model must not include"),
                ("frontends/onnx/model/a.h", '"frontends/onnx/ops/a.h"', "frontends/onnx/model must not include"),
                ("frontends/onnx/a.cpp", '"frontends/onnx/ops/a.h"', "frontends/onnx must not include"),
                ("lib/manager/a.cpp", "<vector>", "no layer")]:
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
                ("tools/mlc/a.cpp", '"lib/verify/diff.h"'),
                ("tools/mlc-run/main.cpp", '"tools/mlc/command.h"'),
                ("test/lib/ir/a_test.cpp", '"frontends/onnx/import.h"')]:
            with self.subTest(path=path, include=include):
                self.check(path, include, None)


if __name__ == "__main__":
    unittest.main()
