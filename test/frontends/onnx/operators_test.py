"""Checks that frontends/onnx/OPERATORS.md equals the output of `mlc ops --frontend onnx --markdown`; --update rewrites it."""
import difflib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import driver  # noqa: E402

FILE = driver.ROOT / "frontends" / "onnx" / "OPERATORS.md"


def main():
    printed = driver.run("ops", "--frontend", "onnx", "--markdown").stdout
    if sys.argv[1:] == ["--update"]:
        FILE.write_text(printed)
        return 0
    difference = list(difflib.unified_diff(FILE.read_text().splitlines(), printed.splitlines(), FILE.name, "printed", lineterm=""))
    if difference:
        print("\n".join(difference), f"\n{pathlib.Path(__file__).name} --update writes it")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
