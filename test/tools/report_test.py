#!/usr/bin/env python3
"""Tests --report of verify, run, inspect and diff: what is in a report, and the forms of its files."""
import html.parser
import json
import pathlib
import shutil
import struct
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
    assert not list(folder.glob(".*")), list(folder.glob(".*"))


def test_errors(folder):
    """A command that ends with an error says so in every form of its reports."""
    model = package(folder, "model")
    none = folder / "none.mlpackage"
    for words, code in ((("verify", mil(folder, "source"), none), 1), (("run", none), 1), (("diff", model, none), 1),
                        (("run", "--bundle", none), 1), (("verify", "--result", none), 1), (("run", model, "--step"), 2),
                        (("run", none, "--prompt", "x"), 1), (("run", none, "--perplexity", none), 1),
                        (("verify", none, none, "--text", none), 1), (("run", model, "--no-such-option"), 2),
                        (("build", folder / "no.json", "--no-such-option"), 2)):
        result = expect(run(*words, *reports(folder)), code)
        document = read(folder)
        text = result.stderr.splitlines()[0].split(": ", 1)[1]
        assert document["verdict"]["value"] == "ERROR" and document["command"] == words[0], document
        assert [check["outcome"] for check in document["checks"]] == ["error"] and document["checks"][0]["text"] == text, (document, text)
        assert '<error type="error" message="' in (folder / "r.xml").read_text() and 'errors="1"' in (folder / "r.xml").read_text()
        for form in ("txt", "md", "html"):
            assert "ERROR" in (folder / f"r.{form}").read_text(), form
        for form in FORMS:
            (folder / f"r.{form}").unlink()
    expect(run("run", model, "--no-such-option", f"--report={folder / 'r.md'}"), 2)
    assert "--no-such-option" in (folder / "r.md").read_text()
    expect(run("inspect", none, *reports(folder, ("html", "md", "json", "txt"))), 1)
    assert read(folder)["checks"][0]["outcome"] == "error"
    # An error after the work: there is a report of the error, and none that says that all is well.
    expect(run("run", model, "--history", folder / "no" / "h", *reports(folder)), 1)
    assert read(folder)["verdict"]["value"] == "ERROR"


def test_parity_bundles(folder):
    source, model = mil(folder, "source"), package(folder, "model")
    for name in ("a", "b"):
        expect(run("verify", source, model, "--bundle", folder / name), 0)
    expect(run("run", "--bundle", folder / "a", *reports(folder)), 0)
    document = read(folder)
    assert document["title"] == "Parity bundle a" and document["command"] == "run" and document["verdict"]["value"] == "PASSED", document
    assert outcomes(document) == {"y": "passed", "z": "passed"}, document["checks"]
    assert tables(document)[0]["rows"][0][3] == "reference"
    expect(run("verify", "--result", folder / "a" / "result.json", *reports(folder)), 0)
    assert outcomes(read(folder)) == outcomes(document) and read(folder)["command"] == "verify"
    # Of several bundles the worst comes first, and one that cannot be run does not hide the others.
    inputs = next((folder / "b" / "inputs").rglob("*.npy"))
    inputs.write_bytes(inputs.read_bytes()[:-1] + b"?")
    expect(run("run", "--bundle", folder / "a", "--bundle", folder / "b", *reports(folder)), 3)
    document = read(folder)
    assert document["title"] == "2 parity bundles" and document["verdict"]["value"] == "FAILED"
    assert [row[0] for row in tables(document)[0]["rows"]] == ["b", "a"], tables(document)[0]
    assert {(check["group"], check["outcome"]) for check in document["checks"]} == {("a", "passed"), ("b", "error")}, document["checks"]


def test_language_models(folder):
    from speaking_models import Speaker
    speaker = Speaker()
    model = speaker.gguf(folder / "m.gguf")
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0)
    (folder / "t.txt").write_text("Once upon a time there was a text of words. " * 12)
    expect(run("run", model, "--prompt", "Once --upon", "--generate", 8, *reports(folder)), 0)
    document = read(folder)
    assert outcomes(document) == {"answer": "passed"} and "verdict" not in document, document
    assert document["sections"][0]["blocks"] == [{"paragraph": "Once --upon"}], document["sections"][0]
    assert [row[0] for row in tables(document)[0]["rows"]] == ["reading and loading", "prompt", "answer"]
    expect(run("run", model, "--perplexity", folder / "t.txt", "--context", 64, *reports(folder)), 0)
    assert outcomes(read(folder)) == {"perplexity": "passed"} and "+/-" in read(folder)["checks"][0]["text"]
    text = ("verify", model, folder / "m.mlpackage", "--text", folder / "t.txt", "--context", 64)
    expect(run(*text, *reports(folder)), 0)
    document = read(folder)
    assert set(outcomes(document).values()) == {"passed"} and {"mean KL divergence", "package / source - 1"} <= set(outcomes(document)), document
    # Below the limit: a package of another quantisation by the budget of fp32.
    expect(run("compile", model, "--requant", "int4", "-o", folder / "q.mlpackage"), 0)
    expect(run("verify", model, folder / "q.mlpackage", "--text", folder / "t.txt", "--context", 64, "--budget", "fp32", *reports(folder)), 3)
    document = read(folder)
    assert document["verdict"]["value"] == "FAILED" and outcomes(document)["mean KL divergence"] == "failed", document["checks"]


PROGRAM = """func main<ios18>(tensor<fp32, [4]> x) {
  a = relu(x = x);
  n, z = while_loop(loop_vars = (const int32(0), a))
    (int32 i, tensor<fp32, [4]> d) {
      e = less(x = i, y = 3);
    } -> (e)
    (int32 j, tensor<fp32, [4]> f) {
      k = add(x = j, y = 1);
      g = tanh(x = f);
    } -> (k, g);
} -> (z);
func other<ios18>(tensor<fp32, [4]> x) {
  b = sigmoid(x = x);
} -> (b);
"""


def test_functions_and_blocks(folder):
    (folder / "m.mil").write_text(PROGRAM)
    model = folder / "m.mlpackage"
    expect(run("opt", folder / "m.mil", "--passes", "", "-o", model), 0)
    expect(run("inspect", model, *reports(folder, ("html", "md", "json", "txt"))), 0)
    document = read(folder)
    graphs = {section["title"]: block["graph"] for section in document["sections"] for block in section["blocks"] if "graph" in block}
    assert list(graphs) == ["Graph of main", "Graph of other"], graphs.keys()
    assert [node["op"] for node in graphs["Graph of other"]["nodes"]] == ["input", "sigmoid", "output"]
    # What flows into the loop reaches its body.
    nodes = graphs["Graph of main"]["nodes"]
    index = {node["name"]: i for i, node in enumerate(nodes) if node["op"] != "output"}
    body, tanh = nodes[index["f"]], nodes[index["g"]]
    assert body["op"] == "block input" and body["in"] == [index["a"]] and tanh["in"] == [index["f"]], nodes
    assert body["group"] == tanh["group"] and "block 2 of while_loop" in graphs["Graph of main"]["groups"][tanh["group"]]["name"], nodes
    dot = expect(run("inspect", model, "--dot"), 0).stdout
    assert dot.count("subgraph") == 4 and 'label="other"' in dot and "sigmoid" in dot and dot.startswith('digraph "m.mlpackage"'), dot
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", folder / "g.svg"], input=dot.encode(), check=True)


def test_tensors_of_the_source(folder):
    """A package states which tensors of its source its weights are; the graph shows them."""
    import onnx_wire as wire
    (folder / "m.onnx").write_bytes(wire.model(wire.graph(
        [wire.node("MatMul", ["x", "layer.0/w"], ["y"])], [wire.value_info("x", wire.FLOAT, [2, 3])],
        [wire.value_info("y", wire.FLOAT, [2, 40])],
        [wire.tensor("layer.0/w", wire.FLOAT, (3, 40), b"".join(struct.pack("<f", i % 7 - 3) for i in range(120)))])))
    expect(run("compile", folder / "m.onnx", "-o", folder / "m.mlpackage"), 0)
    expect(run("inspect", folder / "m.mlpackage", *reports(folder, ("html", "md", "json", "txt"))), 0)
    graph = next(block["graph"] for section in read(folder)["sections"] for block in section["blocks"] if "graph" in block)
    facts = [value for node in graph["nodes"] for _, value in node.get("facts", [])]
    assert any("from layer.0/w of the source" in fact for fact in facts), facts


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
