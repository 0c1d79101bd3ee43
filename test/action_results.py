"""Judges entries of ac/ as bazel-remote does before it stores or serves them, with protoc as the parser.

The messages have the names and numbers of build/bazel/remote/execution/v2/remote_execution.proto; the rules are those of bazel-remote's
utils/validate/action_result.go and of GetValidatedActionResult in cache/disk/disk.go (2.6)."""
import hashlib
import pathlib
import re
import subprocess
import tempfile

PROTO = """
syntax = "proto3";
message Digest { string hash = 1; int64 size_bytes = 2; }
message OutputFile { string path = 1; Digest digest = 2; bool is_executable = 4; bytes contents = 5; }
message OutputDirectory { string path = 1; Digest tree_digest = 3; bool is_topologically_sorted = 4; Digest root_directory_digest = 5; }
message OutputSymlink { string path = 1; string target = 2; }
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message ExecutedActionMetadata {
  string worker = 1; Timestamp queued_timestamp = 2; Timestamp worker_start_timestamp = 3; Timestamp worker_completed_timestamp = 4;
  Timestamp input_fetch_start_timestamp = 5; Timestamp input_fetch_completed_timestamp = 6; Timestamp execution_start_timestamp = 7;
  Timestamp execution_completed_timestamp = 8; Timestamp output_upload_start_timestamp = 9;
  Timestamp output_upload_completed_timestamp = 10;
}
message ActionResult {
  repeated OutputFile output_files = 2; repeated OutputDirectory output_directories = 3; int32 exit_code = 4; bytes stdout_raw = 5;
  Digest stdout_digest = 6; bytes stderr_raw = 7; Digest stderr_digest = 8; ExecutedActionMetadata execution_metadata = 9;
  repeated OutputSymlink output_file_symlinks = 10; repeated OutputSymlink output_directory_symlinks = 11;
  repeated OutputSymlink output_symlinks = 12;
}
"""
LINE = re.compile(r'\s*(?:(?P<close>})|(?P<name>\w+)(?: (?P<open>{)|: (?P<value>.+)))$')


class Refused(Exception):
    """Why bazel-remote would refuse an entry."""


def parse(entry):
    """Returns an ActionResult as {field: [values]}: dictionaries, or texts as protoc prints them, without quotes."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "result.proto").write_text(PROTO)
        shown = subprocess.run(["protoc", f"--proto_path={folder}", "--decode=ActionResult", "result.proto"], input=entry, capture_output=True)
    if shown.returncode != 0:
        raise Refused(f"not an ActionResult: {shown.stderr.decode(errors='replace')}")
    around = [{}]
    for line in shown.stdout.decode().splitlines():
        found = LINE.match(line)
        if found["close"]:
            around.pop()
            continue
        if found["name"].isdigit():
            raise Refused(f"unknown field {found['name']}")
        value = {} if found["open"] else found["value"].strip('"')
        around[-1].setdefault(found["name"], []).append(value)
        if found["open"]:
            around.append(value)
    return around[0]


def one(message, field):
    return message.get(field, [None])[0]


def judge(key, entry, cas):
    """Returns the parsed entry. `cas` are the blobs by SHA-256. Exception Refused."""
    digests = []

    def check(digest, what, required=True):
        if digest is None and not required:
            return
        if digest is None:
            raise Refused(f"{what} has no digest")
        if not re.fullmatch("[a-f0-9]{64}", one(digest, "hash") or ""):
            raise Refused(f"{what}: hash {one(digest, 'hash')!r}")
        if int(one(digest, "size_bytes") or 0) < 0:
            raise Refused(f"{what}: negative size")
        digests.append((one(digest, "hash"), int(one(digest, "size_bytes") or 0), what))

    if not re.fullmatch("[a-f0-9]{64}", key):
        raise Refused(f"key {key!r}")
    result = parse(entry)
    for file in result.get("output_files", []):
        path = one(file, "path") or ""
        if not path or path.startswith("/"):
            raise Refused(f"path {path!r}")
        check(one(file, "digest"), path)
    for folder in result.get("output_directories", []):
        if (one(folder, "path") or "").startswith("/"):
            raise Refused(f"path {one(folder, 'path')!r}")
        check(one(folder, "tree_digest"), one(folder, "path"))
    for kind in ("output_file_symlinks", "output_symlinks", "output_directory_symlinks"):
        for link in result.get(kind, []):
            if not one(link, "path") or not one(link, "target") or one(link, "path").startswith("/"):
                raise Refused(f"link {link}")
    for stream in ("stdout_digest", "stderr_digest"):
        check(one(result, stream), stream, required=False)
    for sha256, size, what in digests:
        if sha256 not in cas:
            raise Refused(f"{what}: no blob {sha256}")
        if len(cas[sha256]) != size or hashlib.sha256(cas[sha256]).hexdigest() != sha256:
            raise Refused(f"{what}: another blob than {sha256} of {size} bytes")
    return result
