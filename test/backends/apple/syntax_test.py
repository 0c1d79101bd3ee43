"""The Core ML runtime also compiles for Apple's Objective-C runtime, against the declarations of the stub: it does not depend on
gcc's runtime or on GNUstep."""
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOR_APPLE = ["-fobjc-runtime=macosx-13", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]


def commands():
    """{source: compile command of this build} for the Objective-C++ sources of backends/apple."""
    entries = json.loads((pathlib.Path(os.environ["MLC_BUILD_DIR"]) / "compile_commands.json").read_text())
    return {pathlib.Path(e["file"]).resolve(): e for e in entries
            if pathlib.Path(e["file"]).resolve().parent == ROOT / "backends/apple" and e["file"].endswith(".mm")
            and "mlc_core_ml_stub.dir" in e["command"]}


def compile_for_apple(entry, source, text=None):
    """Returns the compiler's exit code and output; `text`, if given, replaces the source."""
    words = shlex.split(entry["command"])
    words = words[words.index(next(w for w in words if "clang" in w)):]  # without the launcher
    output = words.index("-o")
    del words[output:output + 2]
    words = [w for w in words if w not in ("-c", "-fobjc-runtime=gcc", str(source), entry["file"])]
    done = subprocess.run([*words, *FOR_APPLE, *(["-x", "objective-c++", "-"] if text else [str(source)])],
                          cwd=entry["directory"], capture_output=True, text=True, input=text)
    return done.returncode, done.stderr


def main():
    found = commands()
    if not found:
        print("# backends/apple for Apple's runtime: skipped, no clang or no GNUstep here (scripts/setup --dev)")
        return 77
    sources = sorted((ROOT / "backends/apple").glob("*.mm"))
    failed = 0
    for source in sources:
        status, said = compile_for_apple(found[source], source)
        if status:
            failed += 1
            print(f"{source}: {said}")
    # Verifies that the check detects an undeclared method and a warning.
    for text in ("#import <CoreML/CoreML.h>\nvoid F(MLModel* model) { [model notThere]; }\n",
                 "#import <CoreML/CoreML.h>\nvoid F() { int unused = 1; }\n"):
        if compile_for_apple(found[sources[0]], sources[0], text)[0] == 0:
            failed += 1
            print("compiles, but should be rejected:", text)
    print(f"# backends/apple: {len(sources)} sources compile for Apple's Objective-C runtime")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
