"""Tests clients in C that are built from the installed files of libmlc alone."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import driver  # noqa: E402
import interface  # noqa: E402

DIGITS = driver.ROOT / "manifests" / "digits"


def cc(source, output, installed, *options):
    environment = interface.environment(installed)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "mlc"], env=environment, capture_output=True, text=True, check=True)
    done = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, "-o", output, *flags.stdout.split(), *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return environment


def test_installed_files(folder):
    installed = interface.install(folder)
    files = sorted(path.relative_to(installed).name for path in installed.rglob("*") if path.is_file() or path.is_symlink())
    assert [name for name in files if name.endswith(".h")] == ["mlc.h"], files
    assert {"libmlc.a", "libmlc.so", "libmlc.so.0", "mlc.pc", "libmlcConfig.cmake"} <= set(files), files


def test_static_library(folder):
    installed = interface.install(folder)
    environment = interface.environment(installed)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "--static", "mlc"], env=environment, capture_output=True, text=True,
                           check=True).stdout.split()
    flags[flags.index("-lmlc")] = "-l:libmlc.a"
    (folder / "main.c").write_text('#include <mlc.h>\n#include <stdio.h>\nint main(int argc, char** argv) {\n  mlc_error* error = NULL;\n'
                                   '  if (argc != 3 || mlc_compile(NULL, argv[1], argv[2], NULL, NULL, &error)) puts(mlc_error_text(error));\n'
                                   '  return mlc_error_code(error);\n}\n')
    done = subprocess.run(["cc", "main.c", *flags, "-o", "main"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    done = subprocess.run([folder / "main", DIGITS / "digits.onnx", folder / "a.mlpackage"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_cmake_package(folder):
    installed = interface.install(folder)
    (folder / "main.c").write_text('#include <mlc.h>\n#include <stdio.h>\nint main(void) { puts(mlc_version()); return 0; }\n')
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(client C)\nfind_package(libmlc REQUIRED)\n"
                                           "add_executable(client main.c)\ntarget_link_libraries(client mlc::libmlc)\n")
    for command in (["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={installed}"],
                    ["cmake", "--build", folder / "build"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([folder / "build" / "client"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == driver.run("--version").stdout.split()[-1]


def test_checks_of_a_client(folder):
    installed = interface.install(folder)
    environment = cc(pathlib.Path(__file__).parent / "client_checks.c", folder / "checks", installed, "-Wl,--as-needed", "-ldl",
                     "-lpthread")
    done = subprocess.run([folder / "checks", environment["MLC_LIBRARY"], DIGITS / "digits.onnx"], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", ""), (done.returncode, done.stdout, done.stderr)


def test_results_are_those_of_the_command_line(folder):
    """The same JSON, except for what depends on the run."""
    installed = interface.install(folder)
    (folder / "main.c").write_text('#include <mlc.h>\n#include <stdio.h>\nint main(int argc, char** argv) {\n'
                                   '  char* text = NULL;\n  mlc_error* error = NULL;\n  (void)argc;\n'
                                   '  if (mlc_compile(NULL, argv[1], argv[2], argv[3], &text, &error)) puts(mlc_error_json(error));\n'
                                   '  else puts(text);\n  return 0;\n}\n')
    environment = cc(folder / "main.c", folder / "main", installed)

    def ours(model, options):
        done = subprocess.run([folder / "main", model, folder / "a.mlpackage", json.dumps(options)], env=environment,
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    ran = ours(DIGITS / "digits.onnx", {"precision": "fp32", "fp32-ops": [], "description": "two"} | {"precision": "fp16"})
    theirs = driver.run("compile", DIGITS / "digits.onnx", "-o", folder / "b.mlpackage", "--description", "two", "--json").answer
    for key in ("phases", "passes", "peak_memory_bytes", "package", "manifest"):
        ran.pop(key), theirs.pop(key)
    assert ran == theirs
    refused = ours(DIGITS / "images.npy", {})
    assert refused == driver.run("compile", DIGITS / "images.npy", "-o", folder / "c.mlpackage", "--json").answer
    refused = ours(DIGITS / "digits.onnx", {"dim": {"m": 2}})["errors"][0]
    assert refused["id"] == "bad-name" and "option 'dim'" in refused["text"], refused


if __name__ == "__main__":
    if interface.sanitized():
        print("# clients of libmlc: skipped, a sanitizer is not linked into clients")
        sys.exit(77)
    sys.exit(driver.run_tests(globals(), "clients of libmlc in C"))
