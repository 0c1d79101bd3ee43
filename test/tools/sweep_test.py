"""Tests mlc sweep: schemes, figures, failures, and what remains."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import ROOT, expect, run, run_tests  # noqa: E402
from language_models import refused  # noqa: E402
from speaking_models import Speaker  # noqa: E402

DIGITS = ROOT / "manifests" / "digits" / "digits.onnx"


def test_schemes(folder):
    """Each scheme has the figures that compile, verify and run give for it; coarser schemes are smaller and lose more."""
    done = expect(run("sweep", DIGITS, "--compress", "fp16,int8,pal4", "--compress", "pal4:group=8,scale=row,pal2", "-o", folder / "kept", "--json"), 0)
    rows = done.answer["schemes"]
    assert [row["scheme"] for row in rows] == ["fp16", "int8", "pal4", "pal4:group=8,scale=row", "pal2"], rows
    sizes, errors = [row["bytes"] for row in rows], [row["error"]["max_error"] for row in rows]
    assert sizes[0] > sizes[1] > sizes[2] > sizes[4] and max(errors[:2]) < errors[2] < errors[4], (sizes, errors)
    for row in rows:
        package = pathlib.Path(row["package"])
        assert row["bytes"] == sum(path.stat().st_size for path in package.rglob("*") if path.is_file())
        assert row["within_budget"] and row["predict_ms"]["p50"] > 0 and row["predict_ms"]["units"], row
        # The reference is the model before compression.
        verified = run("verify", DIGITS, package, "--compress", "none", "--json").answer
        assert row["error"]["max_error"] == max(output["max_error"] for output in verified["outputs"]), (row, verified)
    assert (folder / "kept" / "digits-pal4-group-8-scale-row.mlpackage").is_dir()


def test_several_rules_are_one_scheme(folder):
    (folder / "rules").write_text("pal4\nfirst=none\n")
    rows = expect(run("sweep", DIGITS, "--compress", "pal4;first=none", "--compress", "linear=int8", "--json"), 0).answer["schemes"]
    assert [row["scheme"] for row in rows] == ["pal4;first=none", "linear=int8"], rows
    assert all("package" not in row for row in rows)
    refused(run("sweep", DIGITS, "--compress", "pal4;first=none", "--compress", f"@{folder}/rules"), "usage", "given twice")


def test_bad_schemes(folder):
    """All of them are named, before anything is compiled."""
    done = run("sweep", DIGITS, "--compress", "fp16,int9,pal4:goup=2,int8", "-o", folder / "kept")
    refused(done, "usage", 'unknown scheme "int9"', 'unknown option "goup=2"')
    refused(run("sweep", DIGITS, "--compress", "int8,int4,pal4", "--target", "iOS16", "-o", folder / "kept"), "target-too-old", "int4")
    refused(run("sweep", DIGITS), "usage", "--compress")
    refused(run("sweep", DIGITS, "--compress", "int8", "--text", DIGITS.with_name("digits.onnx")), "usage", "not a language model")
    refused(run("sweep", folder / "none.onnx", "--compress", "int8,int4"), "file-io", "does not exist")
    assert not (folder / "kept").exists()


def test_failures_and_budgets(folder):
    """Others are measured; failures come last, and the exit code is the worst."""
    report = folder / "r.json"
    done = expect(run("sweep", DIGITS, "--compress", "nobody=int8,fp16", "--report", report, "--report", folder / "r.html"), 1)
    lines = done.stdout.splitlines()
    assert lines[-1].startswith('FAIL nobody=int8: error[bad-name]: --compress: "nobody" selects no weight'), lines
    assert any(line.startswith("fp16 ") and "probabilities" in line for line in lines), lines
    checks = json.loads(report.read_text())["checks"]
    assert [check["outcome"] for check in checks] == ["error", "passed"], checks
    done = expect(run("sweep", DIGITS, "--compress", "int8,pal2", "--budget", "int8"), 3)
    assert done.stdout.splitlines()[-1] == "FAIL pal2: over the budget", done.stdout
    expect(run("sweep", DIGITS, "--compress", "int8,pal2"), 0)


def test_text(folder):
    model, text = Speaker().gguf(folder / "m.gguf"), folder / "t.txt"
    text.write_text("What is said here is of no matter. " * 8)
    rows = expect(run("sweep", model, "--compress", "fp16,int4", "--text", text, "--context", 32, "-o", folder / "kept", "--json"), 0).answer["schemes"]
    assert "error" not in rows[0] and 0 <= rows[0]["text"]["divergence"] < rows[1]["text"]["divergence"], rows
    assert rows[0]["text"]["source_perplexity"] == rows[1]["text"]["source_perplexity"] > 1, rows
    # The packages share one tokenizer.
    assert (folder / "kept" / "tokenizer.json").exists() and not list((folder / "kept").glob("*.tokenizer"))


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "mlc sweep"))
