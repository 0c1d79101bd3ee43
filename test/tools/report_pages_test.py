#!/usr/bin/env python3
"""Opens pages of reports in Chromium, in both themes: no console message, no request; tables and graphs are used.

MLC_SCREENSHOTS names a folder for pictures of what was opened."""
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import browser
from driver import SKIPPED, expect, run, run_tests
from report_test import PROGRAM

# The luminance of text against its ground, by WCAG 2.1; 4.5 is its level AA.
CONTRAST = """(() => {
  const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  let least = 21;
  for (const element of document.querySelectorAll("h1, h2, p, dt, dd, th, td, a, .good, .bad, .notice, svg text")) {
    const style = getComputedStyle(element), own = light(element instanceof SVGElement ? style.fill : style.color);
    least = Math.min(least, (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05));
  }
  return least;
})()"""
VIEW = "document.querySelector('.graph canvas').graphView"


def chain(blocks, branch=True):
    """A program of equal blocks, of seven operations each."""
    lines, last = [], "x"
    for i in range(blocks):
        for name, text in (("a", f"relu(x = {last})"), ("b", "sin(x = a{0})"), ("c", "cos(x = a{0})"), ("d", "add(x = b{0}, y = c{0})"),
                           ("e", "exp(x = d{0})"), ("f", "tanh(x = e{0})"), ("g", f"add(x = f{{0}}, y = {last})")):
            lines.append(f"  {name}{i} = {text.format(i)};")
        last = f"g{i}"
    return "func main<ios16>(tensor<fp16, [1, 8]> x) {\n" + "\n".join(lines) + f"\n}} -> ({last});\n"


class Page:
    """A page in the browser, as one test opens it."""

    def __init__(self, chromium, name):
        self.chromium, self.name = chromium, name

    def open(self, file):
        """Opens it in both themes, and leaves the dark one."""
        for dark in (False, True):
            self.chromium.open(file, dark)
            self.quiet(file)
            contrast = self.chromium.evaluate(CONTRAST)
            assert contrast >= 4.5, (file, dark, contrast)
            self.picture("dark" if dark else "light", whole=True)

    def quiet(self, file):
        assert self.chromium.messages == [], self.chromium.messages
        assert self.chromium.requests == [file.resolve().as_uri()], self.chromium.requests

    def picture(self, name, whole=False):
        if folder := os.environ.get("MLC_SCREENSHOTS"):
            self.chromium.screenshot(pathlib.Path(folder, f"{self.name}-{name}.png"), whole)


def model(folder, text, name="model"):
    (folder / f"{name}.mil").write_text(text)
    package = folder / f"{name}.mlpackage"
    expect(run("opt", folder / f"{name}.mil", "--passes", "", "-o", package), 0)
    return package


def graph_at(chromium):
    """Scrolls to the graph; returns the corner and size of its canvas."""
    chromium.evaluate("document.querySelector('.graph').scrollIntoView({block: 'center', behavior: 'instant'})")
    chromium.frame()
    return chromium.evaluate("(() => { const b = document.querySelector('.graph canvas').getBoundingClientRect();"
                             " return [b.x, b.y, b.width, b.height]; })()")


def middle(chromium, corner, item):
    """Where the middle of a box is in the window."""
    x, y = chromium.evaluate(f"(() => {{ const v = {VIEW}, b = v.boxOf.get({item});"
                             " return [(b.x + b.w / 2 - v.x) * v.scale, (b.y + Math.min(b.h, 30) / 2 - v.y) * v.scale]; })()")
    return corner[0] + x, corner[1] + y


def test_graph(folder, chromium):
    package = model(folder, chain(12))
    file = folder / "graph.html"
    expect(run("inspect", package, "--report", file), 0)
    page = Page(chromium, "graph")
    page.open(file)
    corner = graph_at(chromium)
    nodes = chromium.evaluate(f"{VIEW}.data.nodes.length")
    assert nodes == 12 * 7 + 2, nodes
    # Twelve blocks are one box; beside it stand the input and the output.
    assert chromium.evaluate(f"{VIEW}.shown.boxes.length") == 3
    page.picture("folded")

    # A click selects; a double click unfolds; what is unfolded is inside its box.
    chromium.click(*middle(chromium, corner, nodes))
    assert "12 blocks of 7 operations" in chromium.evaluate("document.querySelector('aside').textContent")
    chromium.click(*middle(chromium, corner, nodes), count=2)
    assert chromium.evaluate(f"{VIEW}.shown.boxes.length") == 15
    chromium.evaluate(f"{VIEW}.foldAll(false)")
    chromium.frame()
    assert chromium.evaluate(f"{VIEW}.shown.boxes.length") == nodes + 13
    assert chromium.evaluate(f"""{VIEW}.shown.boxes.filter((box) => {{
        const group = {VIEW}.layout.groupOf(box.item), around = {VIEW}.boxOf.get({nodes} + group);
        return group >= 0 && (box.x < around.x || box.y < around.y || box.x + box.w > around.x + around.w || box.y + box.h > around.y + around.h);
      }}).length""") == 0
    # No two operations overlap.
    assert chromium.evaluate(f"""(() => {{ const boxes = {VIEW}.shown.boxes.filter((box) => !box.open); let count = 0;
        for (const a of boxes) for (const b of boxes)
          count += a !== b && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
        return count; }})()""") == 0
    page.picture("unfolded")

    # Search: by the key, through the matches, and to nothing.
    chromium.evaluate("document.querySelector('.graph canvas').focus()")
    chromium.key("/")
    chromium.type("tanh")
    assert chromium.evaluate("document.querySelector('.found').textContent") == "1 of 12"
    first = chromium.evaluate(f"{VIEW}.selected")
    chromium.key("Enter")
    assert chromium.evaluate("document.querySelector('.found').textContent") == "2 of 12"
    assert chromium.evaluate(f"{VIEW}.selected") == first + 7
    assert "tanh" in chromium.evaluate("document.querySelector('aside').textContent")
    page.picture("found")
    chromium.type("x")
    assert chromium.evaluate("document.querySelector('.found').textContent") == "0 found"
    chromium.key("Escape")

    # Search unfolds what is folded away.
    chromium.evaluate(f"{VIEW}.foldAll(true)")
    chromium.key("/")
    chromium.type("e11")
    assert chromium.evaluate(f"{VIEW}.boxOf.has({VIEW}.selected)") is True
    chromium.key("Escape")

    # Keys move along the graph; the list of inputs does, too.
    selected = chromium.evaluate(f"{VIEW}.selected")
    chromium.key("ArrowDown")
    assert chromium.evaluate(f"{VIEW}.data.nodes[{VIEW}.selected].in[0]") == selected
    chromium.key("ArrowUp")
    assert chromium.evaluate(f"{VIEW}.selected") == selected
    chromium.evaluate("document.querySelector('aside button').click()")
    assert chromium.evaluate(f"{VIEW}.selected") == selected - 1

    # Zoom keeps the point under the pointer, drag moves the graph.
    corner = graph_at(chromium)
    at = [round(corner[0] + 200), round(corner[1] + 150)]
    point = (f"(() => {{ const v = {VIEW}; return [v.scale, v.x + {at[0] - corner[0]} / v.scale,"
             f" v.y + {at[1] - corner[1]} / v.scale]; }})()")
    before = chromium.evaluate(point)
    chromium.wheel(*at, dy=-120, control=True)
    after = chromium.evaluate(point)
    assert after[0] > before[0] and all(abs(a - b) < 1e-6 * max(1, abs(a)) for a, b in zip(after[1:], before[1:])), (before, after)
    chromium.drag(at, [at[0] + 60, at[1] + 30])
    moved = chromium.evaluate(point)
    assert abs(moved[1] - after[1] + 60 / after[0]) < 1e-6 and abs(moved[2] - after[2] + 30 / after[0]) < 1e-6, (after, moved)
    chromium.evaluate("document.querySelector('.graph canvas').focus()")
    chromium.key("0")
    assert chromium.evaluate(f"{VIEW}.scale * {VIEW}.shown.h <= {corner[3]}") is True
    page.picture("whole")
    page.quiet(file)


def test_functions(folder, chromium):
    """Each function has its own graph, and a loop shows what flows into its blocks."""
    package = model(folder, PROGRAM, "functions")
    file = folder / "functions.html"
    expect(run("inspect", package, "--report", file), 0)
    page = Page(chromium, "functions")
    page.open(file)
    views = "[...document.querySelectorAll('.graph canvas')].map((canvas) => canvas.graphView)"
    assert chromium.evaluate(f"{views}.map((view) => view.data.title)") == ["main", "other"]
    assert chromium.evaluate(f"{views}[0].data.groups.map((group) => group.name)") == ["block 1 of while_loop n", "block 2 of while_loop n"]
    graph_at(chromium)
    chromium.evaluate(f"{VIEW}.foldAll(false)")
    chromium.frame()
    page.picture("unfolded")
    # Searching in one graph does not move the other.
    chromium.evaluate(f"{views}[1].canvas.focus()")
    chromium.key("/")
    chromium.type("sigmoid")
    assert chromium.evaluate("[...document.querySelectorAll('.found')].map((found) => found.textContent)") == ["", "1 of 1"]
    page.quiet(file)


def test_large_graph(folder, chromium):
    """10,000 operations, folded and unfolded: everything is placed once, and only what is visible is drawn with its text."""
    package = model(folder, chain(1430), "large")
    file = folder / "large.html"
    expect(run("inspect", package, "--report", file), 0)
    assert file.stat().st_size < 5e6, file.stat().st_size
    page = Page(chromium, "large")
    chromium.open(file)
    graph_at(chromium)
    assert chromium.evaluate(f"{VIEW}.data.nodes.length") == 1430 * 7 + 2
    chromium.evaluate(f"{VIEW}.foldAll(false)")
    chromium.frame()
    assert chromium.evaluate(f"{VIEW}.shown.boxes.length") == 1430 * 8 + 3
    times = chromium.evaluate(f"""(() => {{ const view = {VIEW}, start = performance.now(); view.layout.finished.clear(); view.update();
        const placed = performance.now(); for (let i = 0; i < 10; ++i) view.paint(); const near = performance.now();
        view.fit(true); for (let i = 0; i < 10; ++i) view.paint(); const far = performance.now();
        let texts = 0; const context = view.canvas.getContext("2d"), fill = context.fillText;
        context.fillText = function (...all) {{ ++texts; fill.apply(this, all); }}; view.fit(); view.paint(); delete context.fillText;
        return [placed - start, (near - placed) / 10, (far - near) / 10, texts]; }})()""")
    assert 0 < times[3] < 400, times
    print(f"# a graph of {1430 * 7 + 2} operations: placed in {times[0]:.0f} ms, drawn in {times[1]:.1f} ms, as a whole in {times[2]:.1f} ms")
    page.quiet(file)


def test_tables(folder, chromium):
    package = model(folder, chain(6))
    other = model(folder, chain(6).replace("tanh", "sigmoid"), "other")
    file = folder / "diff.html"
    expect(run("diff", package, other, "--report", file), 3)
    page = Page(chromium, "diff")
    page.open(file)
    file = folder / "run.html"
    expect(run("run", package, "--iterations", 40, "--profile", "--report", file), 0)
    page = Page(chromium, "run")
    page.open(file)
    table = "[...document.querySelectorAll('figure.table')].find((figure) => figure.textContent.startsWith('Operations'))"
    shown = f"[...{table}.querySelectorAll('tbody tr')].filter((row) => !row.hidden)"
    assert chromium.evaluate(f"{shown}.length") == 20 and chromium.evaluate(f"{table}.querySelectorAll('tbody tr').length") == 42
    # The first click on a head of numbers puts the largest first, the second one the smallest.
    share = f"{shown}.map((row) => Number(row.cells[3].dataset.n))"
    for click, order in ((1, True), (2, False)):
        chromium.evaluate(f"{table}.querySelectorAll('th button')[3].click()")
        values = chromium.evaluate(share)
        assert values == sorted(values, reverse=order), (click, values)
    chromium.evaluate(f"{table}.querySelector('.tools button').click()")
    assert chromium.evaluate(f"{shown}.length") == 42
    chromium.evaluate(f"{table}.querySelector('input').focus()")
    chromium.type("cos")
    assert chromium.evaluate(f"{shown}.length") == 6
    assert "6 of 42 rows" in chromium.evaluate(f"{table}.querySelector('[role=status]').textContent")
    # The choice of the theme is stronger than the system's.
    ground = "getComputedStyle(document.body).backgroundColor"
    assert chromium.evaluate(ground) == "rgb(13, 17, 23)"
    chromium.evaluate("document.querySelector('.theme').click()")
    assert chromium.evaluate(ground) == "rgb(255, 255, 255)" and chromium.evaluate("document.querySelector('.theme').textContent") == "Theme: light"
    page.quiet(file)


def test_without_script(folder, chromium):
    """Where scripts are disabled, as in Jenkins, everything but the graph is there."""
    package = model(folder, chain(6))
    file = folder / "plain.html"
    expect(run("inspect", package, "--report", file), 0)
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(file, wait=False)
        Page(chromium, "plain").picture("light", whole=True)
        text = chromium.text()
    finally:
        chromium.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "42 operations; the graph needs JavaScript." in text and "Most frequent operators" in text, text


def main():
    if not browser.find():
        print("# pages of reports in a browser: skipped, no Chromium")
        return SKIPPED
    with browser.Browser() as chromium:
        return run_tests({name: (lambda folder, test=test: test(folder, chromium)) for name, test in globals().items()
                          if name.startswith("test_")}, "pages of reports")


if __name__ == "__main__":
    sys.exit(main())
