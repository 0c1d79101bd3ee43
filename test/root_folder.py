"""Roots of other systems for tests of what is shipped: folders in which programs run as if they were /."""
import os
import pathlib
import shutil
import subprocess

# unshare (util-linux) changes the root as root, and in a user namespace for others, where the system allows it. It mounts /proc,
# by which the dynamic loader finds the folder of a program.
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *(["--map-root-user"] if os.geteuid() else [])]


def lacking(*tools):
    """Returns why tests in another root cannot run here, or None."""
    for tool in ("unshare", *tools):
        if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            return f"{tool} is not installed"
    if subprocess.run([*UNSHARE, "--root=/", "true"], capture_output=True).returncode:
        return "no permission to change the root and mount /proc"
    return None


# In a root for another processor: runs its programs.
EMULATOR = "emulator"


def inside(root, *command, folder="/", code=0, environment=None):
    """Runs a command in a root and returns what it printed; asserts its exit code."""
    emulator = [f"/{EMULATOR}"] if (root / EMULATOR).exists() else []
    done = subprocess.run([*UNSHARE, f"--root={root}", f"--wd={folder}", *emulator, *map(str, command)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=600,
                          # Emulated threads that wait actively keep the others from running.
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "OMP_WAIT_POLICY": "passive",
                               **(environment or {})})
    shown = done.stdout + done.stderr
    assert done.returncode == code, f"{' '.join(map(str, command))}: exit code {done.returncode}, not {code}: {shown}"
    return shown


def make_glibc_root(root, system="/", emulator=None):
    """Makes a root with the files of Debian's package libc6, and nothing else: no shell, no other library. They are those of a
    `system`, which may be for another processor; then the static program `emulator` runs programs in the root."""
    root, system = pathlib.Path(root), pathlib.Path(system)
    for name in ("lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    listed = subprocess.run(["dpkg-query", f"--admindir={system}/var/lib/dpkg", "--listfiles", "libc6"], check=True,
                            capture_output=True, text=True).stdout
    for line in listed.splitlines():
        source, copy = system / line.lstrip("/"), root / line.lstrip("/")
        if source.is_dir() or not source.exists() or copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
    for name in ("proc", "tmp"):
        (root / name).mkdir()
    if emulator:
        shutil.copy2(emulator, root / EMULATOR)
    return root
