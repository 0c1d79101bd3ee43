"""The declarations of tools/runtime/mlc.h, and the installed library."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import driver  # noqa: E402

HEADER = driver.ROOT / "tools" / "runtime" / "mlc.h"
DECLARATION = re.compile(r"/\*((?:(?!\*/).)*)\*/\s*MLC_API ([^;(]*?)(mlc_\w+)\(([^;]*)\);", re.S)


class Function:
    def __init__(self, comment, result, name, parameters):
        self.comment, self.result, self.name = comment, result.strip(), name
        text = " ".join(parameters.split())
        self.parameters = [] if text == "void" else [re.fullmatch(r"(.*?)\s*(\w+)", one.strip()).groups() for one in text.split(",")]

    def definition(self):
        parameters = ", ".join(f"{type} {name}" for type, name in self.parameters) or "void"
        body = "" if self.result == "void" else " return 0;"
        return f"{self.result} {self.name}({parameters}) {{{body} }}"


def functions():
    return [Function(*match.groups()) for match in DECLARATION.finditer(HEADER.read_text())]


def install(folder):
    """Installs libmlc alone, without C++ headers, and returns its folder."""
    for component in ("libmlc", "libmlc-dev"):
        done = subprocess.run(["cmake", "--install", driver.BUILD, "--component", component, "--prefix", folder / "installed"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "installed"


def environment(installed):
    """Variables with which pkg-config and the loader find the installed library."""
    import os
    libraries = next(installed.rglob("mlc.pc")).parents[1]
    return {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_LIBRARY_PATH": str(libraries),
            "MLC_LIBRARY": str(libraries / "libmlc.so"), "MLC_LIB_DIR": str(libraries)}


def sanitized():
    cache = (driver.BUILD / "CMakeCache.txt").read_text()
    return bool(re.search(r"^MLC_SANITIZE:\w+=(.+)$", cache, re.M))
