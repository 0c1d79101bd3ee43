"""Compares chat templates with Debian's python3-jinja2 in transformers' setting: templates of real models in the folder
MLC_CHAT_TEMPLATES (*.jinja), and the cases of test/lib/text/jinja_cases.json, whose expected texts are jinja2's. `--update`
writes these anew."""
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import chat_templates  # noqa: E402

CASES = ROOT / "test" / "lib" / "text" / "jinja_cases.json"
# Exceptions that transformers' sandbox alone has: lists and dictionaries cannot be changed there.
SANDBOX = "SecurityError"


def rendered(jobs):
    """Yields the answer of jinja_batch for each (template, variables)."""
    program = os.environ.get("JINJA_BATCH") or pathlib.Path(os.environ["MLC_BUILD_DIR"]) / "bin" / "jinja_batch"
    lines = "".join(json.dumps({"template": template, "variables": variables, "now": chat_templates.NOW}) + "\n"
                    for template, variables in jobs)
    done = subprocess.run([str(program)], input=lines, capture_output=True, text=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert len(answers) == len(jobs), (len(answers), len(jobs))
    return answers


def compare(jobs, names):
    """Compares each job with jinja2. Returns the failures and counts."""
    counts, failures = collections.Counter(), []
    for (template, variables), name, ours in zip(jobs, names, rendered(jobs)):
        text, fault = chat_templates.render(template, variables)
        if fault is None:
            kind = "equal" if ours.get("text") == text else "different" if "text" in ours else "refused"
            if kind != "equal":
                failures.append((name, kind, ours, text))
        elif "text" in ours:
            kind = "changes a value" if SANDBOX in fault else "jinja2 refuses"
            if kind == "jinja2 refuses":
                failures.append((name, kind, ours, fault))
        else:
            kind = "both refuse"
            # What is not supported would be refused where jinja2 renders, too.
            if "not supported in chat templates" in ours["message"] and "unknown tag" not in fault:
                failures.append((name, "not supported", ours, fault))
        counts[kind] += 1
    return failures, counts


def show(failures):
    for name, kind, ours, theirs in failures[:int(os.environ.get("MLC_SHOW", 20))]:
        print(f"{name}: {kind}\n  ours:   {str(ours)[:700]!r}\n  theirs: {str(theirs)[:700]!r}")


def main():
    if not chat_templates.jinja2:
        print("chat templates against jinja2: skipped, needs python3-jinja2")
        return 77
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    if "--update" in sys.argv:
        for case in cases:
            case.pop("expected", None), case.pop("error", None)
            text, fault = chat_templates.render(case["template"], case["variables"])
            case.update({"expected": text} if fault is None else {"error": fault})
        CASES.write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n", encoding="utf-8")
    failures, counts = compare([(case["template"], case["variables"]) for case in cases], [case["name"] for case in cases])
    for case in cases:
        text, fault = chat_templates.render(case["template"], case["variables"])
        if case.get("expected") != text or bool(fault) != ("error" in case):
            failures.append((case["name"], "the committed text is not jinja2's", case, text))
    print(f"# {len(cases)} cases against jinja2 {chat_templates.jinja2.__version__}: {dict(counts)}")
    folder = os.environ.get("MLC_CHAT_TEMPLATES")
    files = sorted(pathlib.Path(folder).glob("*.jinja")) if folder else []
    if not files:
        print("# templates of real models: skipped, needs MLC_CHAT_TEMPLATES")
    jobs, names = [], []
    for file in files:
        template = file.read_text(encoding="utf-8")
        for name, variables in chat_templates.conversations():
            jobs.append((template, chat_templates.TOKENS | variables))
            names.append(f"{file.name} {name}")
    if jobs:
        more, counts = compare(jobs, names)
        failures += more
        broken = {name.split()[0] for name, *_ in more}
        print(f"# {len(files)} templates of real models, {len(jobs)} conversations: {dict(counts)}; {len(broken)} templates differ")
    show(failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
