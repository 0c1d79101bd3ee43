"""Tests that every source folder has a README.md that names each of its headers."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402

FOLDERS = ("lib", "frontends", "backends", "tools")


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS], cwd=driver.ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    files = [pathlib.Path(name) for name in listed if (driver.ROOT / name).exists()]
    missing = []
    folders = sorted({file.parent for file in files if file.suffix in (".h", ".cpp", ".mm")})
    for folder in folders:
        readme = driver.ROOT / folder / "README.md"
        if not readme.exists():
            missing.append(f"{folder} has no README.md")
            continue
        text = readme.read_text()
        words = set(re.findall(r"[a-z0-9_]+", text))
        missing += [f"{readme.relative_to(driver.ROOT)} does not name {file.name}" for file in files
                    if file.parent == folder and file.suffix == ".h" and file.stem not in words]
    for text in missing:
        print(f"FAILED: {text}")
    print(f"# folders: {len(folders)} with sources, {len(missing)} faults in their READMEs")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
