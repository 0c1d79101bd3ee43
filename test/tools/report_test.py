#!/usr/bin/env python3
"""Tests --report of verify, run, inspect and diff: what is in a report, and the forms of its files."""
import html.parser
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import junit_schema
from driver import expect, run, run_tests

FORMS = ("html", "md", "xml", "json", "txt")
SOURCE = """func main<ios16>(tensor<fp32, [1, 8]> x) {
  a = relu(x = x);
  tensor<fp32, [4, 8]> w = const()[val = tensor<fp32, [4, 8]>([%s])];
  y = linear(x = a, weight = w);
  z = softmax(x = y, axis = -1);
} -> (y, z);
"""


def mil(folder, name, scale=1.0):
    elements = ", ".join("[" + ", ".join(f"{scale * ((3 * i + j) % 7 - 3) / 8}" for j in range(8)) + "]" for i in range(4))
    (folder / f"{name}.mil").write_text(SOURCE % elements)
    return folder / f"{name}.mil"


def package(folder, name, scale=1.0):
    expect(run("opt", mil(folder, name, scale), "--passes", "", "-o", folder / f"{name}.mlpackage"), 0)
    return folder / f"{name}.mlpackage"


def reports(folder, forms=FORMS):
    return [word for form in forms for word in ("--report", folder / f"r.{form}")]


def read(folder):
    """Returns the document of r.json after checks that hold for the files of every report."""
    document = json.loads((folder / "r.json").read_text())
    page = (folder / "r.html").read_text()
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, dict(attributes)))
    parser.feed(page)
    assert not [tag for tag in tags if "src" in tag[1] or tag[0] == "link"], "the page loads something"
    assert [tag for tag, _ in tags].count("h2") == len(document["sections"]), page
    for form in ("md", "txt"):
        text = (folder / f"r.{form}").read_text()
        for section in document["sections"]:
            assert section["title"] in text.replace("\\", ""), (form, section["title"])
    if (folder / "r.xml").exists():
        found = junit_schema.errors((folder / "r.xml").read_text())
        assert not found, found
    return document


def tables(document):
    return [block["table"] for section in document["sections"] for block in section["blocks"] if "table" in block]


def outcomes(document):
    return {check["name"]: check["outcome"] for check in document["checks"]}


def test_verify(folder):
    source, good, bad = mil(folder, "source"), package(folder, "good"), package(folder, "bad", 1.1)
    expect(run("verify", source, good, "--layers", "--budget", "fp32", *reports(folder)), 0)
    document = read(folder)
    assert document["verdict"] == {"value": "PASSED", "mark": "good"}, document["verdict"]
    assert outcomes(document) == {"y": "passed", "z": "passed"}
    assert [section["title"] for section in document["sections"]] == ["Outputs", "Layers", "Generated inputs"]
    expect(run("verify", source, bad, "--budget", "fp32", *reports(folder)), 3)
    document = read(folder)
    assert document["verdict"]["mark"] == "bad" and outcomes(document)["y"] == "failed"
    rows = tables(document)[0]["rows"]
    assert rows[0][0] == "y" and rows[0][1]["mark"] == "bad" and rows[0][2] > rows[1][2], "the worst comes first"
    text = (folder / "r.xml").read_text()
    assert 'failures="2"' in text and "max error" in text, text


def test_nothing_compared(folder):
    """A comparison without a figure fails, although none of its outputs does."""
    for name in ("a", "b"):
        (folder / f"{name}.mil").write_text("func main<ios16>(tensor<fp32, [4]> x) {\n  z = mul(x = x, y = 0.0);\n} -> (z);\n")
    expect(run("opt", folder / "b.mil", "--passes", "", "-o", folder / "b.mlpackage"), 0)
    expect(run("verify", folder / "a.mil", folder / "b.mlpackage", *reports(folder)), 3)
    document = read(folder)
    assert outcomes(document) == {"z": "skipped", "comparison": "failed"}, document["checks"]


def test_run(folder):
    model = package(folder, "model")
    expect(run("run", model, "--iterations", 20, "--warmup", 1, "--profile", *reports(folder)), 0)
    document = read(folder)
    titles = [section["title"] for section in document["sections"]]
    assert titles == ["Latency", "Operations by time", "Phases", "Graph"], titles
    charts = [block["chart"] for section in document["sections"] for block in section["blocks"] if "chart" in block]
    histogram = charts[0]
    assert histogram["kind"] == "columns" and sum(point["y"] for point in histogram["series"][0]["points"]) == 20
    assert [line["name"] for line in histogram["lines"]] == ["p50", "p95", "p99"]
    latency = next(table for table in tables(document) if table["columns"][0]["name"] == "part")
    assert [row[0] for row in latency["rows"]] == ["predict", "marshal in", "marshal out", "overhead of mlc"]
    times = next(table for table in tables(document) if table["title"] == "Operations")
    assert {row[1] for row in times["rows"]} == {"relu", "linear", "softmax"} and abs(sum(row[3] for row in times["rows"]) - 1) < 1e-6
    assert outcomes(document) == {"predictions": "passed"}
    # Comparisons are checks, too.
    other = package(folder, "other", 2.0)
    expect(run("run", model, "--compare", other, *reports(folder)), 3)
    document = read(folder)
    assert outcomes(document)["y"] == "failed" and document["verdict"]["mark"] == "bad", document["checks"]


def test_inspect(folder):
    model = package(folder, "model")
    expect(run("inspect", model, *reports(folder, ("html", "md", "json", "txt"))), 0)
    document = read(folder)
    graph = next(block["graph"] for section in document["sections"] for block in section["blocks"] if "graph" in block)
    kinds = [node["op"] for node in graph["nodes"]]
    assert kinds == ["input", "relu", "linear", "softmax", "output", "output"], kinds
    linear = graph["nodes"][2]
    facts = dict(linear["facts"])
    assert linear["in"] == [1] and "fp32 [4, 8], 128 bytes" in facts["weight"], linear
    assert linear["precision"] == "fp32" and linear["place"] == "cpu or gpu" and linear["mark"] == "bad", linear
    assert graph["nodes"][3]["facts"][0] == ["axis", "-1"], graph["nodes"][3]
    weights = next(table for table in tables(document) if table["title"] == "By size")
    assert weights["rows"][0][3] == 128, weights
    dot = expect(run("inspect", model, "--dot"), 0).stdout
    assert dot.startswith('digraph "main" {') and "n1 -> n2;" in dot, dot
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", folder / "g.svg"], input=dot.encode(), check=True)
    else:
        print("# Graphviz reads the output of --dot: skipped, no dot")


def test_sources_are_shown_as_compiled(folder):
    """The graph of a source model has the precision of its package, and the places in the source."""
    import onnx_wire as wire
    (folder / "m.onnx").write_bytes(wire.model(wire.graph(
        [wire.node("Relu", ["x"], ["a"]), wire.node("Exp", ["a"], ["y"])],
        [wire.value_info("x", wire.FLOAT, [2, 3])], [wire.value_info("y", wire.FLOAT, [2, 3])])))
    expect(run("inspect", folder / "m.onnx", *reports(folder, ("html", "md", "json", "txt"))), 0)
    document = read(folder)
    graph = next(block["graph"] for section in document["sections"] for block in section["blocks"] if "graph" in block)
    relu = next(node for node in graph["nodes"] if node["op"] == "relu")
    assert relu["precision"] == "fp16" and relu["place"] == "ane" and "node of output" in dict(relu["facts"])["source"], relu


def test_diff(folder):
    a, b = package(folder, "a"), package(folder, "b", 1.5)
    expect(run("diff", a, a, *reports(folder)), 0)
    document = read(folder)
    assert document["verdict"]["value"] == "identical" and set(outcomes(document).values()) == {"passed"}
    expect(run("diff", a, b, *reports(folder)), 3)
    document = read(folder)
    assert outcomes(document) == {"interface": "passed", "operations": "passed", "weights": "failed"}, document["checks"]


def test_files(folder):
    """Files that cannot be written are refused before the work, and no report is half a file."""
    model = package(folder, "model")
    expect(run("inspect", model, "--report", folder / "r.pdf"), 2, "--report", ".html, .md (Markdown)")
    expect(run("inspect", model, "--report", folder / "r.xml"), 2, "nothing is checked")
    expect(run("verify", folder / "none", model, "--report", folder / "no/r.html"), 1, "no")
    expect(run("inspect", model, "--report", model), 2)
    (folder / "r.html").mkdir()
    expect(run("inspect", model, "--report", folder / "r.html"), 1)
    source = mil(folder, "source")
    expect(run("verify", source, model, "--text", source, "--report", folder / "t.md"), 2, "--text")
    assert not list(folder.glob(".*")), list(folder.glob(".*"))


def test_same_bytes(folder):
    """The same result is the same file, whatever the number of threads."""
    source, model = mil(folder, "source"), package(folder, "model")
    texts = []
    for threads in ("1", "4"):
        expect(run("verify", source, model, "--layers", *reports(folder), environment={"MLC_THREADS": threads}), 0)
        texts.append([(folder / f"r.{form}").read_bytes() for form in FORMS])
    assert texts[0] == texts[1]


def test_markdown_is_read_as_meant(folder):
    """A renderer of GitHub's dialect finds the tables, and no markup in names."""
    if not shutil.which("cmark-gfm"):
        print("# Markdown of reports, by cmark-gfm: skipped, not installed")
        return
    source, model = mil(folder, "source"), package(folder, "model")
    expect(run("verify", source, model, "--layers", *reports(folder)), 0)
    page = subprocess.run(["cmark-gfm", "-e", "table", "--unsafe", folder / "r.md"], capture_output=True, text=True, check=True).stdout
    document = read(folder)
    assert page.count("<table>") == len(tables(document)) + 1, page
    assert "<em>" not in page and "&lt;" not in page, page


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "reports"))
