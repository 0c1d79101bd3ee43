"""Tests the CI templates in scripts/ci: `report` with reports made here, and every shell step of the GitHub Action and of
the GitLab template, run by bash in a sample repository with one recipe, against a server that imitates theirs."""
import hashlib
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import urllib.parse
import zipfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import onnx_wire as wire  # noqa: E402
from driver import MLC, ROOT  # noqa: E402

CI = ROOT / "scripts" / "ci"
TOKEN = "a-secret"


# ---- the templates: parses the subset of YAML that they use

def block(lines, indent):
    """Returns the lines of a literal block with this indentation, and their number."""
    taken = []
    for line in lines:
        if line.strip() and not line.startswith(" " * indent):
            break
        taken.append(line[indent:])
    return "\n".join(taken).rstrip("\n") + "\n", len(taken)


def action_steps():
    """Returns [{name, uses or run, env, if, id}] of the action."""
    lines = (CI / "action.yml").read_text().splitlines()
    steps, at, inside = [], lines.index("  steps:") + 1, None
    while at < len(lines):
        line = lines[at]
        at += 1
        if match := re.fullmatch(r"(    - |      )([\w-]+):(?: (.*))?", line):
            begins, name, value = match.groups()
            if begins == "    - ":
                steps.append({})
            inside = steps[-1].setdefault(name, {}) if value is None else None
            if value == "|":
                steps[-1][name], count = block(lines[at:], 8)
                at += count
            elif value is not None:
                steps[-1][name] = value
        elif match := re.fullmatch(r"        ([\w-]+): (.*)", line):
            inside[match[1]] = match[2]
        else:
            assert not line.strip(), line
    return steps


def gitlab_script(section):
    """Returns the commands of a section of the template."""
    lines = (CI / "gitlab.yml").read_text().splitlines()
    commands, at = [], lines.index(f"  {section}:") + 1
    while lines[at].startswith("    "):
        item = lines[at].removeprefix("    - ")
        at += 1
        if item == "|":
            item, count = block(lines[at:], 6)
            at += count
        commands.append(item)
    return "\n".join(commands)


# ---- a repository and a server

def write_recipe(repository, **variant):
    """Writes one model, y = x @ w, and one recipe; `variant` changes the model."""
    models = repository / "models"
    models.mkdir(parents=True, exist_ok=True)
    w = (np.arange(256, dtype="<f4").reshape(16, 16) / 7 % 1 - 0.5).astype("<f4")
    x = np.random.default_rng(0).standard_normal((2, 16)).astype("<f4")
    graph = wire.graph([wire.node("MatMul", ["x", "w"], ["y"])], [wire.value_info("x", wire.FLOAT, [2, 16])],
                       [wire.value_info("y", wire.FLOAT, [2, 16])], [wire.tensor("w", wire.FLOAT, [16, 16], w.tobytes())])
    (models / "small.onnx").write_bytes(wire.model(graph))
    np.save(models / "x.npy", x)
    np.save(models / "y.npy", x @ w + (0.1 if variant.pop("wrong", False) else 0))
    recipe = {"name": "small", "source": {"path": "small.onnx",
                                          "sha256": hashlib.sha256((models / "small.onnx").read_bytes()).hexdigest()},
              "variants": [{"name": "fp32", "options": ["--precision", "fp32"], "bundle": True,
                            "limits": {"package_bytes": 10000, "operations": 5}} | variant],
              "check": {"inputs": {"x": "x.npy"}, "reference": {"y": "y.npy"}}}
    (models / "small.json").write_text(json.dumps(recipe))
    shutil.copy(ROOT / "manifests" / "recipe.schema.json", models)
    return models / "small.json"


class Server(http.server.BaseHTTPRequestHandler):
    """Imitates GitHub's artefacts and comments, and GitLab's job artefacts and notes."""
    artifacts, comments, notes, files, seen = [], [], [], {}, []

    def log_message(self, *_):
        pass

    def reply(self, code, content=b"", **headers):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers["Content-Length"])).decode()

    def allowed(self):
        return TOKEN in " ".join(self.headers.get(n, "") for n in ("Authorization", "JOB-TOKEN", "PRIVATE-TOKEN"))

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(path.query)
        self.seen.append(self.path)
        if "/releases/" in path.path:  # public
            content = self.files.get(path.path)
            return self.reply(404 if content is None else 200, content or b"")
        if path.path.startswith("/storage/"):  # rejects credentials, which belong to another server
            return self.reply(400 if "Authorization" in self.headers else 200, self.artifacts[int(path.path[9:])]["data"])
        if not self.allowed():
            return self.reply(401)
        page = int(query.get("page", ["1"])[0])
        if path.path == "/repos/o/r":
            return self.reply(200, {"default_branch": "main"})
        if path.path == "/repos/o/r/actions/artifacts":
            found = [{k: v for k, v in a.items() if k != "data"} for a in self.artifacts if a["name"] == query["name"][0]]
            return self.reply(200, {"artifacts": found[::-1][100 * (page - 1):100 * page]})
        if path.path.startswith("/zip/"):
            return self.reply(302, Location=f"http://localhost:{self.server.server_port}/storage/{path.path[5:]}")
        if path.path == "/repos/o/r/issues/7/comments":
            return self.reply(200, self.comments[100 * (page - 1):100 * page])
        content = self.files.get((path.path, query.get("job", [""])[0]))
        return self.reply(404 if content is None else 200, content or b"")

    def do_POST(self):
        if not self.allowed():
            return self.reply(403)
        if self.path.endswith("/notes"):
            self.notes.append(urllib.parse.parse_qs(self.body())["body"][0])
        else:
            url = f"http://127.0.0.1:{self.server.server_port}/comments/{len(self.comments)}"
            self.comments.append({"url": url, "body": json.loads(self.body())["body"]})
        return self.reply(201, {})

    def do_PATCH(self):
        self.comments[int(self.path.rsplit("/", 1)[1])]["body"] = json.loads(self.body())["body"]
        return self.reply(200, {})


class WithServer(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        for name, empty in (("artifacts", []), ("comments", []), ("notes", []), ("files", {}), ("seen", [])):
            setattr(Server, name, empty)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.address = f"http://127.0.0.1:{server.server_port}"
        # The template's copy of mlc appears to be built already; tools that would change this machine do nothing.
        source = self.folder / "mlc"
        (source / "scripts").mkdir(parents=True)
        (source / "scripts" / "ci").symlink_to(CI)
        self.command(source / "scripts" / "build", f'cd "$(dirname "$0")/.." && mkdir -p build/bin && ln -sf "{MLC}" build/bin/mlc')
        self.command(self.folder / "bin" / "apt-get", "exit 0")
        self.command(self.folder / "bin" / "git", f'cp -a "{source}" "${{@: -1}}"')
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_", "MLC_", "GH_"))}
        self.environment |= {"PATH": f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin", "no_proxy": "*"}

    def command(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def bash(self, script, environment):
        file = self.folder / "step.sh"
        file.write_text(script)
        return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", file], cwd=self.repository, env=environment,
                              capture_output=True, text=True, timeout=120)


class GitHub(WithServer):
    def run_action(self, event="push", recipes="models/*.json", ref="main", release="", sha256=""):
        """Runs the steps as a runner does; returns (exit code of the job, output)."""
        expressions = {"inputs.recipes": recipes, "inputs.artifact": "coreml-models", "inputs.token": TOKEN,
                       "inputs.release": release, "inputs.sha256": sha256, "github.event.number": "7",
                       "github.server_url": self.address, "github.action_repository": "o/mlc", "github.action_ref": ref}
        environment = self.environment | {
            "GITHUB_ACTION_PATH": str(self.folder / "mlc" / "scripts" / "ci"), "GITHUB_REPOSITORY": "o/r",
            "GITHUB_API_URL": self.address, "RUNNER_TEMP": str(self.folder / "temporary")}
        for name in ("PATH", "OUTPUT", "STEP_SUMMARY"):
            (self.folder / name).write_text("")
            environment[f"GITHUB_{name}"] = str(self.folder / name)
        code, output = 0, ""
        for step in action_steps():
            self.assertTrue(step["name"])
            if "uses" in step:
                self.assertIn(step["uses"], ["actions/upload-artifact@v4"])
                if code == 0:
                    self.upload(self.fill(step["with"]["name"], expressions), self.repository / step["with"]["path"])
                continue
            self.assertEqual(step["shell"], "bash")
            self.assertNotIn("${{", step["run"], "an expression in a script is an injection")
            if code or step.get("if", f"github.event_name == '{event}'") != f"github.event_name == '{event}'":
                continue
            own = {k: self.fill(v, expressions) for k, v in step.get("env", {}).items()}
            ran = self.bash(step["run"], environment | own)
            output += ran.stdout + ran.stderr
            code = ran.returncode
            environment["PATH"] = ":".join([*(self.folder / "PATH").read_text().split(), self.environment["PATH"]])
            for line in (self.folder / "OUTPUT").read_text().splitlines():
                expressions[f"steps.{step.get('id', '')}.outputs.{line.split('=')[0]}"] = line.split("=")[1]
        return code, output

    def fill(self, text, expressions):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda m: expressions[m[1]], text)

    def upload(self, name, path, branch="main", expired=False, **run):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                archive.write(file, file.relative_to(path if path.is_dir() else path.parent))
        Server.artifacts.append({"name": name, "expired": expired, "data": data.getvalue(),
                                 "archive_download_url": f"{self.address}/zip/{len(Server.artifacts)}",
                                 "workflow_run": {"id": 1, "head_branch": branch, "repository_id": 1, "head_repository_id": 1} | run})

    def summary(self):
        return (self.folder / "STEP_SUMMARY").read_text()

    def test_builds_follow_one_another(self):
        write_recipe(self.repository)
        code, output = self.run_action()
        self.assertEqual(code, 0, output)
        self.assertIn("no earlier build of main", output)
        self.assertIn("1 variant, all checks passed, no earlier build", self.summary())
        self.assertEqual([a["name"] for a in Server.artifacts], ["coreml-models", "coreml-models-report"])
        names = zipfile.ZipFile(io.BytesIO(Server.artifacts[0]["data"])).namelist()
        for name in ("small-fp32.mlpackage/Manifest.json", "small-fp32.mlmodelc/model.mil", "report.json", "changes.md",
                     "small-fp32.manifest.json"):
            self.assertIn(name, names)
        self.assertEqual(zipfile.ZipFile(io.BytesIO(Server.artifacts[1]["data"])).namelist(), ["report.json"])

        # A pull request that adds casts, and then one whose limits are too low.
        write_recipe(self.repository, options=["--precision", "fp16"], budget="fp16")
        code, output = self.run_action("pull_request")
        self.assertEqual(code, 0, output)
        self.assertIn("1 changed in size or operations", self.summary())
        self.assertRegex(self.summary(), r"3 ← 1 \(\+200\.0 %\)")
        self.assertIn("←", self.summary())
        self.assertEqual(len(Server.comments), 1)
        self.assertIn("all checks passed", Server.comments[0]["body"])
        Server.artifacts[:] = Server.artifacts[:2]

        write_recipe(self.repository, limits={"operations": 0, "package_bytes": 100})
        code, output = self.run_action("pull_request")
        self.assertEqual(code, 3, output)
        self.assertIn("**2 checks failed**", self.summary())
        self.assertIn("**FAIL** operations 1 of 0", self.summary())
        self.assertEqual(len(Server.comments), 1, "the comment is replaced")
        self.assertIn("**2 checks failed**", Server.comments[0]["body"])
        self.assertEqual(len(Server.artifacts), 4, "a failed build is kept too")

    def publish(self, sums=None):
        """Publishes version 0.1.0 with mlc in a tarball for this machine; returns its hash."""
        name = f"mlc-0.1.0-linux-{os.uname().machine}"
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:xz") as archive:
            link = tarfile.TarInfo(f"{name}/bin/mlc")
            link.type, link.linkname = tarfile.SYMTYPE, str(MLC)
            archive.addfile(link)
        digest = hashlib.sha256(data.getvalue()).hexdigest()
        folder = "/o/mlc/releases/download/v0.1.0"
        Server.files[f"{folder}/{name}.tar.xz"] = data.getvalue()
        Server.files[f"{folder}/SHA256SUMS"] = (f"{digest}  {name}.tar.xz\n" if sums is None else sums).encode()
        return digest

    def built(self):
        return (self.folder / "mlc" / "build" / "bin" / "mlc").exists()

    @unittest.skipUnless(os.uname().sysname == "Linux" and shutil.which("curl") and shutil.which("xz"), "no Linux with curl and xz")
    def test_a_release_is_used(self):
        write_recipe(self.repository)
        digest = self.publish()
        for arguments in ({"ref": "v0.1.0"}, {"release": "0.1.0"}, {"ref": "v0.1.0", "sha256": digest}):
            code, output = self.run_action(**arguments)
            self.assertEqual(code, 0, output)
            self.assertIn(f"mlc: release 0.1.0, SHA-256 {digest}", output)
            self.assertFalse(self.built())

    @unittest.skipUnless(os.uname().sysname == "Linux" and shutil.which("curl") and shutil.which("xz"), "no Linux with curl and xz")
    def test_another_checksum_fails_the_job(self):
        write_recipe(self.repository)
        for sums, sha256 in ((f"{'0' * 64}  mlc-0.1.0-linux-{os.uname().machine}.tar.xz\n", ""), (None, "1" * 64)):
            digest = self.publish(sums)
            code, output = self.run_action(ref="v0.1.0", sha256=sha256)
            self.assertEqual(code, 1, output)
            self.assertIn(f"has SHA-256 {digest}, expected {sha256 or '0' * 64}", output)
            self.assertFalse(self.built())
            self.assertFalse((self.folder / "temporary" / "mlc").exists())

    def test_without_a_release_mlc_is_built(self):
        write_recipe(self.repository)
        self.publish("another file\n")
        for arguments in ({"ref": "main"}, {"ref": "v0.1.0", "release": "none"}, {"ref": "v0.2.0"}, {"ref": "v0.1.0"}):
            code, output = self.run_action(**arguments)
            self.assertEqual(code, 0, output)
            self.assertIn("; building it", output)
            self.assertTrue(self.built())
            shutil.rmtree(self.folder / "mlc" / "build")

    def test_parity(self):
        write_recipe(self.repository)
        self.assertEqual(self.run_action()[0], 0)
        write_recipe(self.repository, wrong=True)
        code, output = self.run_action()
        self.assertEqual(code, 3, output)
        self.assertIn("**1 check failed**", self.summary())
        self.assertRegex(self.summary(), r"\*\*FAIL\*\* y: max error \S+, RMSE \S+, budget fp32 ← y: max error")

    def test_the_last_build_is_of_the_default_branch(self):
        folder = self.folder / "report"
        folder.mkdir()
        for i, (branch, expired, run) in enumerate([("main", False, {}), ("main", True, {}), ("topic", False, {}),
                                                    ("main", False, {"head_repository_id": 2})]):
            (folder / "which").write_text(str(i))
            self.upload("name-report", folder, branch, expired, **run)
        for _ in range(120):  # more than one page
            self.upload("name-report", folder, "topic")
        environment = self.environment | {"GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": self.address, "GH_TOKEN": TOKEN}
        ran = self.bash(f'"{CI}/github" last name-report .', environment)
        self.assertEqual((ran.returncode, (self.repository / "which").read_text()), (0, "0"), ran.stdout + ran.stderr)

    def test_what_github_refuses_is_said(self):
        write_recipe(self.repository)
        environment = self.environment | {"GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": self.address, "GH_TOKEN": "wrong"}
        (self.repository / "text").write_text("x")
        for command in ("last name-report .", "comment name 7 text"):
            ran = self.bash(f'"{CI}/github" {command}', environment)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn(f"::warning::mlc: scripts/ci/github {command.split()[0]} failed: ", ran.stdout)
            ran = self.bash(f'"{CI}/github" {command}', environment | {"GITHUB_API_URL": "http://127.0.0.1:9"})
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn(f"::warning::mlc: scripts/ci/github {command.split()[0]} failed: ", ran.stdout)
        self.assertEqual(self.bash(f'"{CI}/github" last', environment).returncode, 2)

    def test_errors_fail_the_job_and_are_in_the_summary(self):
        code, output = self.run_action()
        self.assertEqual(code, 1)
        self.assertIn("::error::mlc: no recipe matches models/*.json", output)
        recipe = write_recipe(self.repository)
        recipe.write_text(recipe.read_text().replace('"variants"', '"variant"'))
        code, output = self.run_action()
        self.assertEqual(code, 1, output)
        self.assertIn("not built", self.summary())
        self.assertIn("**bad-recipe**", self.summary())


@unittest.skipUnless(shutil.which("curl"), "no curl")
class GitLab(WithServer):
    def run_job(self, **more):
        environment = self.environment | {
            "CI_API_V4_URL": self.address, "CI_PROJECT_ID": "5", "CI_DEFAULT_BRANCH": "main", "CI_JOB_NAME": "core ml",
            "CI_JOB_TOKEN": TOKEN, "MLC_RECIPES": "models/*.json", "MLC_REPOSITORY": "https://example.org/mlc.git",
            "MLC_VERSION": "main"} | more
        shutil.rmtree(self.repository / "mlc-source", ignore_errors=True)
        # The sections run in sequence in one shell, as in a GitLab runner.
        return self.bash(f"{gitlab_script('before_script')}\n{gitlab_script('script')}", environment)

    def keep(self):
        Server.files[("/projects/5/jobs/artifacts/main/raw/mlc-build/report.json", "core ml")] = (
            self.repository / "mlc-build" / "report.json").read_bytes()

    def test_builds_follow_one_another(self):
        write_recipe(self.repository)
        ran = self.run_job()
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("no earlier build of main", ran.stdout)
        self.assertIn("1 variant, all checks passed, no earlier build", ran.stdout)
        self.assertTrue((self.repository / "mlc-build" / "small-fp32.mlmodelc" / "model.mil").exists())
        self.keep()
        write_recipe(self.repository, limits={"operations": 0})
        ran = self.run_job(MLC_TOKEN=TOKEN, CI_MERGE_REQUEST_IID="9")
        self.assertEqual(ran.returncode, 3, ran.stdout + ran.stderr)
        self.assertIn("**FAIL** operations 1 of 0 ← operations 1 of 5", ran.stdout)
        self.assertEqual(len(Server.notes), 1)
        self.assertIn("**1 check failed**", Server.notes[0])

    def test_errors_fail_the_job(self):
        ran = self.run_job()
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no recipe matches models/*.json", ran.stdout)
        write_recipe(self.repository).write_text("{")
        ran = self.run_job(CI_JOB_TOKEN="wrong", MLC_TOKEN="wrong", CI_MERGE_REQUEST_IID="9")
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertIn("**bad-recipe**", ran.stdout)
        self.assertIn("mlc: cannot comment on the merge request", ran.stdout)


class Report(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def variant(self, name="m-fp16", size=1000000, operations=100, checks=()):
        return {"name": name, "package": f"/b/{name}.mlpackage", "precision": "fp16", "target": "iOS16", "operations": operations,
                "weight_bytes": size - 10, "package_bytes": size, "checks": list(checks)}

    def parity(self, error, ok=True):
        return {"kind": "reference", "output": "y", "budget": "fp16", "max_error": error, "rmse": 1e-4, "ok": ok}

    def report(self, *reports):
        files = []
        for i, variants in enumerate(reports):
            files.append(self.folder / f"{i}.json")
            content = variants if isinstance(variants, (str, dict)) else {
                "ok": True, "recipes": [{"recipe": "r.json", "variants": variants}]}
            files[-1].write_text(content if isinstance(content, str) else json.dumps(content))
        ran = subprocess.run([CI / "report", *files], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.stderr, "")
        return ran.returncode, ran.stdout

    def test_first_build(self):
        code, text = self.report([self.variant(checks=[self.parity(1e-3)])])
        self.assertEqual(code, 0)
        self.assertIn("1 variant, all checks passed, no earlier build to compare with", text)
        self.assertIn("| m-fp16 | iOS16, fp16 | 1.000 | 100 | ok y: max error 1.00e-03, RMSE 1.00e-04, budget fp16 |", text)
        self.assertEqual(self.report([self.variant()])[1].count("←"), 0)
        ran = subprocess.run([CI / "report", self.folder / "0.json", self.folder / "nowhere.json"], capture_output=True, text=True)
        self.assertEqual((ran.returncode, "no earlier build" in ran.stdout), (0, True))

    def test_nothing_changed(self):
        same = [self.variant(checks=[self.parity(1e-3)])]
        code, text = self.report(same, same)
        self.assertEqual((code, "←" in text), (0, False))
        self.assertIn("sizes and operations unchanged", text)

    def test_changes(self):
        limit = {"kind": "limit", "what": "operations", "found": 120, "limit": 150, "ok": True}
        accuracy = {"kind": "accuracy", "output": "y", "accuracy": 0.97, "expected": 0.98, "ok": True}
        code, text = self.report(
            [self.variant(size=1500000, operations=120, checks=[limit, self.parity(2e-3), accuracy]), self.variant("new")],
            [self.variant(checks=[limit | {"found": 100}, self.parity(1e-3), accuracy | {"accuracy": 0.98}]), self.variant("old")])
        self.assertEqual(code, 0)
        for part in ("2 variants", "1 changed in size or operations", "1.500 ← 1.000 (+50.0 %)", "120 ← 100 (+20.0 %)",
                     "ok operations 120 of 150 ← operations 100 of 150",
                     "ok y: max error 2.00e-03, RMSE 1.00e-04, budget fp16 ← y: max error 1.00e-03",
                     "accuracy 97.00 %, expected 98.00 % ← accuracy 98.00 %", "| new (new) |", "| ~~old~~ (removed) |"):
            self.assertIn(part, text)

    def test_without_verdict(self):
        recorded = {"kind": "limit", "what": "latency_increase_pct", "limit": 10, "figures": "no baseline, recorded: median 1.2 ms",
                    "judged": False, "ok": True}
        code, text = self.report([self.variant(checks=[recorded])])
        self.assertEqual(code, 0)
        for part in ("all checks passed, 1 not judged", "– latency_increase_pct not judged: no baseline, recorded: median 1.2 ms"):
            self.assertIn(part, text)

    def test_broken_budgets(self):
        code, text = self.report([self.variant(checks=[self.parity("inf", False), self.parity(1e-3) | {"output": "z"}])],
                                 [self.variant(checks=[self.parity(1e-3)])])
        self.assertEqual(code, 3)
        self.assertIn("**1 check failed**", text)
        self.assertIn("**FAIL** y: max error inf, RMSE 1.00e-04, budget fp16 ← y: max error 1.00e-03", text)

    def test_damaged_reports(self):
        for damaged in ("", "{", "[1]", '{"recipes": [{}]}', "\x00"):
            code, text = self.report([self.variant()], damaged)
            self.assertEqual(code, 0, damaged)
            self.assertIn("the earlier report cannot be read", text)
            self.assertEqual(self.report(damaged)[0], 1, damaged)
        self.assertEqual(self.report({"recipes": []})[0], 1)

    def test_errors(self):
        code, text = self.report({"errors": [{"id": "bad-recipe", "text": "no name", "location": "r.json", "notes": ["help: h"]}]})
        self.assertEqual(code, 1)
        self.assertIn("- **bad-recipe**: no name (r.json)\n  - help: h", text)

    def test_one_variant_is_not_built(self):
        error = {"id": "bad-recipe", "text": "no such flag", "location": "r.json", "notes": []}
        code, text = self.report({"recipes": [{"recipe": "r.json", "variants": [
            self.variant(), {"name": "m-bad", "errors": [error]}]}], "errors": [error | {"variant": "m-bad"}]})
        self.assertEqual(code, 1)
        self.assertIn("- m-bad: **bad-recipe**: no such flag (r.json)", text)
        self.assertIn("1 variant, all checks passed", text)
        self.assertIn("| m-fp16 |", text)

    def test_usage(self):
        for arguments in ([], ["--help"], ["a", "b", "c"]):
            ran = subprocess.run([CI / "report", *arguments], capture_output=True, text=True)
            self.assertEqual((ran.returncode, "NOW.json [BEFORE.json]" in ran.stdout), (2, True))


class Build(WithServer):
    """Tests `mlc build` itself: exit code 3 for each violated budget, and its messages."""

    def build(self, **variant):
        recipe = write_recipe(self.repository, **variant)
        ran = subprocess.run([MLC, "build", recipe], cwd=self.folder, capture_output=True, text=True, timeout=120)
        answer = subprocess.run([MLC, "build", recipe, "--json"], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, answer.returncode)
        document = json.loads(answer.stdout)
        self.assertEqual(document["ok"], ran.returncode == 0)
        return ran.returncode, ran.stdout, document["recipes"][0]["variants"][0]

    def test_budgets(self):
        code, text, _ = self.build()
        self.assertEqual((code, text.splitlines()[-1][:8]), (0, "PASSED: "))
        for variant, line, kind in ((dict(limits={"package_bytes": 10}), "FAIL package_bytes", "limit"),
                                    (dict(limits={"operations": 0}), "FAIL operations 1, at most 0", "limit"),
                                    (dict(wrong=True), "FAIL y against the reference", "reference")):
            code, text, report = self.build(**variant)
            self.assertEqual((code, text.splitlines()[-1][:8]), (3, "FAILED: "))
            self.assertIn(line, text)
            self.assertEqual([c["kind"] for c in report["checks"] if not c["ok"]], [kind])

    def test_infinite_errors_are_json(self):
        recipe = write_recipe(self.repository)
        np.save(self.repository / "models" / "y.npy", np.full((2, 16), np.inf, "<f4") * np.arange(1, 33).reshape(2, 16))
        ran = subprocess.run([MLC, "build", recipe, "--json"], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 3, ran.stdout)
        check = [c for c in json.loads(ran.stdout)["recipes"][0]["variants"][0]["checks"] if c["kind"] == "reference"][0]
        self.assertEqual(check["max_error"], "inf")


if __name__ == "__main__":
    if not MLC.exists():
        print(f"# {MLC} is not built")
        sys.exit(77)
    unittest.main()
