"""Tests the header, the version script and the exported symbols of libmlc, and compares the interface with its description.

`header_test.py --update` writes libmlc.abi, the description. Run it when functions are added.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import driver  # noqa: E402
import interface  # noqa: E402

DESCRIPTION = pathlib.Path(__file__).resolve().parent / "libmlc.abi"
MAP = driver.ROOT / "tools" / "runtime" / "libmlc.map"
THREADS = r"Threads: (any(, each with its own (context|state))?|one at a time( per program)?|while running)\.\s*$"


def declared():
    return [function.name for function in interface.functions()]


def test_every_declaration_is_recognised(folder):
    text = interface.HEADER.read_text()
    assert len(declared()) == len(re.findall(r"^MLC_API ", text, re.M)) > 100
    assert len(set(declared())) == len(declared())


def test_ownership_and_threads_are_stated_at_every_function(folder):
    lacking = []
    for function in interface.functions():
        comment = re.sub(r"\n \*", "\n", function.comment)
        owner = re.search(r"Ownership: (.*?)Threads:", comment, re.S)
        if not owner or not re.search(THREADS, comment.strip()):
            lacking.append(function.name)
            continue
        returned = [name for type, name in function.parameters if re.fullmatch(r"(mlc_\w+|char)\*\*", type) and name != "error"]
        for name in returned:  # the owner of each result is stated
            if f"*{name}" not in owner[1]:
                lacking.append(f"{function.name}: *{name}")
        if function.parameters and function.parameters[-1][0] == "mlc_error**" and "mlc_error_free" not in comment:
            lacking.append(f"{function.name}: *error")
    assert not lacking, lacking


def test_header_is_c99_and_cpp11(folder):
    (folder / "user.c").write_text('#include "mlc.h"\nint main(void) { return mlc_abi_version() != MLC_ABI_VERSION; }\n')
    strict = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-I", interface.HEADER.parent, "-c", folder / "user.c", "-o", folder / "o"]
    for command in (["cc", "-std=c99", "-Wstrict-prototypes"], ["c++", "-x", "c++", "-std=c++11"]):
        done = subprocess.run([*command, *strict], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def preprocessed(folder):
    """The declarations alone: the types of the included headers are known to every parser."""
    for header in ("stddef.h", "stdint.h"):
        (folder / header).write_text("")
    return subprocess.run(["cc", "-E", "-P", "-nostdinc", "-I", folder, interface.HEADER], capture_output=True, text=True, check=True).stdout


def test_cffi_reads_the_declarations(folder):
    try:
        import cffi
    except ImportError:
        print("# header of libmlc: not read by cffi, which is not installed")
        return
    ffi = cffi.FFI()
    ffi.cdef(preprocessed(folder))
    assert ffi.sizeof("mlc_tensor") == 2 * ffi.sizeof("size_t") + 8 + 3 * ffi.sizeof("void*")
    if interface.sanitized():
        return
    library = ffi.dlopen(str(next(driver.BUILD.glob("libmlc.so"))))
    for function in interface.functions():
        assert ffi.typeof(getattr(library, function.name)).kind == "function"
    error = ffi.new("mlc_error**")
    assert library.mlc_require(1 << 20, error) != 0 and b"interface 16.0" in ffi.string(library.mlc_error_message(error[0]))
    library.mlc_error_free(error[0])


def test_bindgen_reads_the_declarations(folder):
    if not shutil.which("bindgen"):
        print("# header of libmlc: not read by bindgen, which is not installed")
        return
    done = subprocess.run(["bindgen", interface.HEADER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"pub fn (mlc_\w+)", done.stdout)) == set(declared())
    assert "pub const MLC_ERROR_INTERNAL: u32 = 70;" in done.stdout


def test_every_function_with_options_lists_them(folder):
    source = (driver.ROOT / "tools" / "runtime" / "function_options.cpp").read_text()
    listed = re.findall(r'\{"(mlc_\w+)", Describe', source)
    assert listed == sorted(f.name for f in interface.functions() if any(name == "options" for _, name in f.parameters))


def test_macros_are_constants_only(folder):
    macros = re.findall(r"^#define (\w+)(.*)$", interface.HEADER.read_text(), re.M)
    for name, value in macros:
        assert name in ("MLC_H", "MLC_API") or re.fullmatch(r" \d+( +/\*.*)?", value), name + value


def test_signatures_use_plain_types(folder):
    plain = (r"(const )?(int32_t|int64_t|uint64_t|size_t|double|char|void|mlc_\w+)(\*|\* const\*|\*\*)?|mlc_value")
    for function in interface.functions():
        for type, name in function.parameters:
            assert re.fullmatch(plain, type), f"{function.name}: {type} {name}"


def test_version_script_and_exported_symbols_agree(folder):
    listed = re.findall(r"^ +(mlc_\w+);$", MAP.read_text(), re.M)
    assert listed == sorted(listed) and sorted(listed) == sorted(declared())
    if interface.sanitized():
        return
    library = next(driver.BUILD.glob("libmlc.so"))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = sorted(line.split()[2] for line in symbols.splitlines())
    versioned = [f"{name}@@MLC_0.1" for name in sorted(listed)]
    assert exported == sorted(["MLC_0.1", *versioned]) or exported == sorted(["MLC_0.1@@MLC_0.1", *versioned]), exported[:5]


def stub(folder):
    """A library with the same interface, whose debugging information describes all types."""
    source = '#include "mlc.h"\n' + "\n".join(function.definition() for function in interface.functions())
    (folder / "stub.c").write_text(source)
    subprocess.run(["cc", "-std=c99", "-g", "-shared", "-fPIC", f"-Wl,--version-script={MAP}", "-Wl,-soname,libmlc.so.0", "-I",
                    interface.HEADER.parent, "stub.c", "-o", "stub.so"], cwd=folder, check=True)
    return folder / "stub.so"


def test_interface_is_compatible_with_its_description(folder):
    if not shutil.which("abidiff"):
        print("# interface of libmlc: comparison with its description skipped, no abidiff (abigail-tools)")
        return
    done = subprocess.run(["abidiff", DESCRIPTION, stub(folder)], capture_output=True, text=True)
    assert done.returncode & 12 == 0, done.stdout
    if done.returncode:
        print(f"# interface of libmlc has additions; run {pathlib.Path(__file__).name} --update")


def test_an_incompatible_change_is_found(folder):
    if not shutil.which("abidiff"):
        return
    text = interface.HEADER.read_text()
    try:
        interface.HEADER = folder / "mlc.h"
        interface.HEADER.write_text(text.replace("  int32_t rank;\n", "  int64_t rank;\n"))
        done = subprocess.run(["abidiff", DESCRIPTION, stub(folder)], capture_output=True, text=True)
    finally:
        interface.HEADER = driver.ROOT / "tools" / "runtime" / "mlc.h"
    assert done.returncode & 4, done.stdout


def update():
    with tempfile.TemporaryDirectory() as path:
        library = stub(pathlib.Path(path))
        done = subprocess.run(["abidw", "--drop-private-types", "--no-comp-dir-path", "--no-corpus-path", "--no-show-locs", library],
                              capture_output=True, text=True, check=True)
    DESCRIPTION.write_text(done.stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        sys.exit(update())
    sys.exit(driver.run_tests(globals(), "header of libmlc"))
