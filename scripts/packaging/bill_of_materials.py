"""Debian packages as parts of a release: which package a file is of, its licences, and a bill of materials (CycloneDX)."""
import hashlib
import json
import pathlib
import platform
import re
import subprocess
import time
import urllib.parse
import uuid

# Libraries that consist of headers, whose code is in the programs.
HEADERS = ("libcli11-dev", "nlohmann-json3-dev")

# Names of licences in Debian's copyright files and in SPDX's list.
SPDX = {"apache-2": "Apache-2.0", "apache-2.0": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
        "bsl-1.0": "BSL-1.0", "boost-1.0": "BSL-1.0", "curl": "curl", "expat": "MIT", "mit": "MIT", "isc": "ISC", "zlib": "Zlib",
        "gpl-1+": "GPL-1.0-or-later", "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-2.0+": "GPL-2.0-or-later",
        "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later", "gpl-3.0+": "GPL-3.0-or-later", "lgpl-2": "LGPL-2.0-only",
        "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later", "lgpl-3": "LGPL-3.0-only",
        "lgpl-3+": "LGPL-3.0-or-later", "lgpl-3.0+": "LGPL-3.0-or-later"}


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


class System:
    """The Debian system that a program is built for: this one, or one that scripts/packaging/sysroot made in a folder."""

    def __init__(self, root="/"):
        self.root = pathlib.Path(root).resolve()
        lines = self.query("--search", "*.so*")
        self.owners = {path: packages.split(":")[0] for packages, _, path in (line.rpartition(": ") for line in lines)}

    def query(self, *words):
        return output("dpkg-query", f"--admindir={self.root / 'var/lib/dpkg'}", *words).splitlines()

    def library(self, name, triplet):
        """Returns the path of a shared library, or None."""
        for folder in (f"usr/lib/{triplet}", f"lib/{triplet}", "usr/lib", "lib"):
            if (path := self.root / folder / name).exists():
                return path
        return None

    def package_of(self, path):
        """Returns the package that a shared library is of. Packages name files by /lib or /usr/lib, which may be the same."""
        for place in (path, path.resolve()):
            name = f"/{place.relative_to(self.root)}"
            for spelling in (name, name.removeprefix("/usr"), f"/usr{name}"):
                if spelling in self.owners:
                    return self.owners[spelling]
        raise SystemExit(f"scripts/packaging: {path} is of no installed package, so that its version and licence are unknown")

    def files_of(self, package):
        return self.query("--listfiles", package)

    def copyright_file(self, package):
        return self.root / "usr/share/doc" / package / "copyright"


def licences(package, system):
    """Returns the names of the licences in a package's copyright file: SPDX's where the file names one of those."""
    text = system.copyright_file(package).read_text(errors="replace")
    if not text.startswith("Format:"):  # prose
        return sorted(set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text))) or [f"stated in {package}/copyright"]
    names = set()
    for paragraph in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^(\w+):[ \t]*(.*(?:\n[ \t]+.*)*)", paragraph, re.M))
        if "Files" in fields and "License" in fields and not re.fullmatch(r"(debian/\S*\s*)+", fields["Files"].strip()):
            names.add(fields["License"].splitlines()[0].strip())
    return sorted(SPDX.get(name.lower(), name) for name in names)


def component(package, shipped, system):
    version, source, architecture, homepage = system.query(
        "--show", "--showformat", "${Version}\t${source:Package} ${source:Version}\t${Architecture}\t${Homepage}\n",
        package)[0].split("\t")
    release = platform.freedesktop_os_release()  # a sysroot is of the same
    distribution = f"{release['ID']}-{release.get('VERSION_ID', '')}"
    made = {"type": "library", "bom-ref": package, "name": package, "version": version,
            "licenses": [{"license": {"id" if name in SPDX.values() else "name": name}} for name in licences(package, system)],
            "purl": f"pkg:deb/{release['ID']}/{package}@{urllib.parse.quote(version, safe='')}?arch={architecture}&distro={distribution}",
            "properties": [{"name": "mlc:source", "value": source}, {"name": "mlc:in-tarball", "value": str(shipped).lower()}]}
    if homepage:
        made["externalReferences"] = [{"type": "website", "url": homepage}]
    return made


def bill_of_materials(version, epoch, shipped, expected, uses, system):
    """The document of a release: `shipped` packages are in the tarball, `expected` ones are not; uses[package] is the set of packages
    that one uses, with "mlc" for the programs."""
    components = [component(package, package in shipped, system) for package in sorted({*shipped, *expected})]
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "component": {"type": "application", "bom-ref": "mlc", "name": "mlc", "version": version,
                          "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": package, "dependsOn": sorted(uses.get(package, ()))}
                         for package in ["mlc", *(part["bom-ref"] for part in components)]]}
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}"
    return json.dumps(document, indent=2) + "\n"
