"""Tests that the C++ of CONTRIBUTING.md compiles: functions unchanged, rows as elements of a table of their section."""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402

# Section: the includes of its code, its namespace, the type of its rows (None: it shows no table).
SECTIONS = {"A MIL operator": (["<cmath>", '"lib/ops/eval.h"', '"lib/ops/range_rules.h"', '"lib/ops/row.h"'], "mlc", "OpRow"),
            "An ONNX operator": (['"frontends/onnx/node.h"', '"frontends/onnx/row.h"'], "mlc::onnx", "NodeRow"),
            "A frontend": (['"lib/ir/builder.h"', '"lib/ir/import_options.h"', '"lib/ir/npy.h"', '"lib/ir/source_facts.h"',
                            '"lib/ops/row.h"'], "mlc::matrix", None),
            "A pass": (['"lib/passes/rewriting.h"'], "mlc::passes", None)}


def compiler():
    cache = (driver.BUILD / "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.M)[1]


def source(section, text):
    includes, namespace, type = SECTIONS[section]
    code = [line[4:] for line in text.splitlines() if line.startswith("    ") or not line]
    rows = [line for line in code if re.match(r'\{"|\{\.| +\.\w+ = |\w*Row\(', line)]
    functions = [line for line in code if line not in rows]
    assert any(functions) and bool(rows) == bool(type), f"{section}: no functions, or rows where none or some are expected"
    table = [f"extern const {type} kExamples[];", f"const {type} kExamples[] = {{", *rows, "};"] if type else []
    return "\n".join([*(f"#include {name}" for name in includes), f"namespace {namespace} {{", *functions, *table, "}"])


def main():
    text = (driver.ROOT / "CONTRIBUTING.md").read_text()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    failed = 0
    for section in SECTIONS:
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
            file.write(source(section, sections[section]))
            file.flush()
            result = subprocess.run([compiler(), "-std=c++20", "-fsyntax-only", "-Wall", "-Werror",
                                     "-Wno-missing-field-initializers", "-I", driver.ROOT, file.name],
                                    capture_output=True, text=True)
        if result.returncode:
            failed += 1
            print(f"FAILED: {section}\n{result.stderr[-3000:]}")
    print(f"# CONTRIBUTING.md: {len(SECTIONS)} sections with code, {failed} do not compile")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
