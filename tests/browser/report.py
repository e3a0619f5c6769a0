"""Opens the pages of `mlc report` in headless Chromium, uses them as a person would, and looks at what is drawn.

    python tests/browser/report.py --mlc target/release/mlc --models tests/data/pnnx --screenshots target/screenshots

Needs the package playwright, and Chromium. Fails on anything in the browser's console, on text that leaves its box, on boxes that meet, on a
control that does nothing, on a page of more than 3 MB, and on anything that a page asks the network for. Of a graph of 1,000 nodes only what is
in sight may be drawn, which is what keeps it fluid.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

from playwright.sync_api import sync_playwright

LARGEST = 3_000_000

# Nodes of the large graph, and how many elements of it may be drawn.
MANY = 1_000
FEW = 100

# What is wrong with the pictures when all of each is drawn: with text, boxes and edges in the picture's own coordinates.
FAULTS = """() => {
  const faults = [];
  for (const view of views) view.sheet.drawAll();
  for (const canvas of document.querySelectorAll('.canvas')) {
    const hidden = canvas.hidden;
    canvas.hidden = false;
    const boxes = [...canvas.querySelectorAll('.node')].map((node) => {
      const rect = node.querySelector('rect').getBBox();
      for (const text of node.querySelectorAll('text')) {
        const own = text.getBBox();
        if (own.x < rect.x - 1 || own.x + own.width > rect.x + rect.width + 1) faults.push(`${text.textContent} leaves its box`);
      }
      const place = node.transform.baseVal.consolidate().matrix;
      return { x: place.e, y: place.f, width: rect.width, height: rect.height, name: node.querySelector('title').textContent };
    });
    boxes.sort((one, other) => one.y - other.y);
    boxes.forEach((one, number) => {
      for (const other of boxes.slice(number + 1)) {
        if (other.y >= one.y + one.height) break;
        if (one.x < other.x + other.width && other.x < one.x + one.width) faults.push(`${one.name} meets ${other.name}`);
      }
    });
    if (canvas.querySelectorAll('.edge').length && !canvas.querySelector('marker')) faults.push('edges have no arrows');
    canvas.hidden = hidden;
  }
  for (const picture of document.querySelectorAll('.memory, .roofline')) {
    const [x, y, width, height] = picture.getAttribute('viewBox').split(' ').map(Number);
    const drawn = picture.getBBox();
    if (drawn.x < x - 1 || drawn.y < y - 1 || drawn.x + drawn.width > x + width + 1 || drawn.y + drawn.height > y + height + 1) {
      faults.push(`${picture.classList} is larger than its picture`);
    }
  }
  for (const view of views) view.draw();
  return faults;
}"""

# What is drawn of the first model's graph: its nodes, those of them that are in sight, and all elements.
DRAWN = """() => {
  const canvas = document.querySelector('#graph-0 .canvas:not([hidden])');
  const frame = canvas.getBoundingClientRect();
  const seen = [...canvas.querySelectorAll('.node')].filter((node) => {
    const box = node.getBoundingClientRect();
    return box.left < frame.right && frame.left < box.right && box.top < frame.bottom && frame.top < box.bottom;
  });
  return { nodes: canvas.querySelectorAll('.node').length, seen: seen.length, all: canvas.querySelectorAll('svg *').length };
}"""


def large(nodes):
    """A graph of about as many nodes, in text."""
    lines = ["mlc 1", 'graph @large(%x0: f32[4, 8]) -> ("y": f32[4, 8]) {']
    for step in range(nodes // 4):
        lines += [
            f"  %s{step} = softmax %x{step} {{axis = {step % 2}, logarithm = false}}",
            f"  %a{step} = unary %s{step} {{function = tanh}}",
            f"  %b{step} = unary %x{step} {{function = sigmoid}}",
            f"  %x{step + 1} = binary %a{step}, %b{step} {{function = add}}",
        ]
    return "\n".join([*lines, f"  return %x{nodes // 4}", "}", ""])


def roam(page, data):
    """Moves through the imported graph, from near and from afar; returns what is drawn that isn't seen, and what is missing."""
    faults = []
    page.locator("#graph-0 [data-show=imported]").click()
    page.evaluate("document.querySelector('#graph-0').scrollIntoView()")
    count = len(data[0]["imported"]["nodes"])
    if count < MANY:
        faults.append(f"the large graph has {count} nodes")
    for key in [*["ArrowDown"] * 20, "+", "+", "-", "ArrowRight", "ArrowLeft"]:
        page.keyboard.press(key)
        drawn = page.evaluate(DRAWN)
        if not 0 < drawn["seen"] <= drawn["nodes"] <= FEW:
            faults.append(f"near, after {key}: {drawn}")
    page.set_viewport_size({"width": 1800, "height": 1100})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    wide = page.evaluate(DRAWN)
    page.evaluate("models[0].view.sheet.drawAll()")
    if page.evaluate(DRAWN)["seen"] != wide["seen"]:
        faults.append("nodes that a larger window shows aren't drawn")
    page.keyboard.press("0")
    drawn = page.evaluate(DRAWN)
    if drawn["nodes"] or not 0 < drawn["all"] <= FEW:
        faults.append(f"from afar: {drawn}")
    page.evaluate("""() => {
      const view = models[0].view, { x, y, width, height } = view.sheet.nodes[500].box;
      const frame = view.canvas.getBoundingClientRect(), unit = view.unit();
      const across = (at, middle, size) => (at - middle) / unit + size / 2;
      const clientX = frame.left + across(x + width / 2, view.box.x + view.box.width / 2, frame.width);
      const clientY = frame.top + across(y + height / 2, view.box.y + view.box.height / 2, frame.height);
      view.svg.dispatchEvent(new MouseEvent('click', { clientX, clientY, bubbles: true }));
    }""")
    if page.locator("#graph-0 .node.selected").get_attribute("data-node") != "500":
        faults.append("a click from afar selects another node")
    page.keyboard.press("/")
    page.keyboard.type(data[0]["imported"]["nodes"][700]["name"])
    if page.locator("#graph-0 .canvas:not([hidden]) .outlines.hit").get_attribute("d") == "":
        faults.append("a hit isn't seen from afar")
    page.keyboard.press("Escape")
    return faults


def use(page, data):
    """Uses every control of the first model's graph; returns what didn't do what it is for."""
    faults = []
    report = data[0]
    graph = page.locator("#graph-0")

    def check(holds, what):
        if not holds:
            faults.append(what)

    for shown in [shown for shown in ["imported", "optimized"] if report[shown]["nodes"]]:
        graph.locator(f"[data-show={shown}]").click()
        known = page.evaluate("models[0].view.sheet.nodes.length")
        check(known == len(report[shown]["nodes"]), f"{known} nodes of {shown} are in the picture")
    graph.locator(".canvas:not([hidden]) .node").first.dispatch_event("click")
    first = report["optimized"]["nodes"][0]
    check(first["name"] in graph.locator(".details").inner_text(), "a click on a node tells nothing of it")
    kernel = next((number for number, own in enumerate(report["kernels"]) if own["source"]), None)
    if kernel is not None:
        page.locator(f"#kernels-0 tr[data-kernel='{kernel}']").click()
        told = graph.locator(".details").inner_text()
        check(report["kernels"][kernel]["function"] in told, "a kernel's row doesn't lead to its C")
    page.keyboard.press("Escape")
    page.evaluate("document.querySelector('#graph-0').scrollIntoView()")
    page.keyboard.press("/")
    page.keyboard.type(report["optimized"]["nodes"][-1]["name"])
    page.keyboard.press("Enter")
    check(graph.locator(".node.hit").count() > 0, "a search finds nothing")
    check(graph.locator(".node.selected").count() > 0, "Enter goes to no hit")
    page.keyboard.press("Escape")
    box = "document.querySelector('#graph-0 .canvas:not([hidden]) svg').getAttribute('viewBox')"
    for key in ["+", "-", "ArrowDown", "ArrowLeft", "0"]:
        before = page.evaluate(box)
        page.keyboard.press(key)
        check(page.evaluate(box) != before, f"the key {key} moves nothing")
    header = page.locator("#kernels-0 th").nth(4)
    header.click()
    times = page.locator("#kernels-0 tbody td:nth-child(5)").evaluate_all("cells => cells.map((cell) => Number(cell.dataset.value))")
    check(times == sorted(times, reverse=True), "kernels aren't sorted by their time")
    return faults


def click(page, data):
    """Clicks the kernels of an archive without a graph; returns what isn't told of them."""
    faults = []
    for number, kernel in enumerate(data[0]["kernels"]):
        page.locator(f"#kernels-0 tr[data-kernel='{number}']").click()
        if kernel["function"] not in page.locator("#graph-0 .details").inner_text():
            faults.append(f"nothing is told of kernel {number}")
    for key in ["/", "+", "0", "ArrowDown"]:
        page.keyboard.press(key)
    return faults


def archives(mlc, model, target, folder):
    """Archives of a model: one of mlc, and one that says no more of itself than others do."""
    own, other = folder / "archive.tar", folder / "functions.tar"
    subprocess.run([mlc, "compile", model, "--target", target, "-q", "-o", own], check=True)
    with tarfile.open(own) as source, tarfile.open(other, "w") as stripped:
        for member in source.getmembers():
            if not member.name.startswith("./src/"):
                stripped.addfile(member, source.extractfile(member) if member.isfile() else None)
    return [("archive", own, use), ("functions", other, click)]


def look(browser, file, folder, using):
    """Opens a page, uses it, and takes its pictures; prints its size and returns its faults."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    faults = []
    page.on("console", lambda message: faults.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(f"asks for {request.url}"))
    page.goto(file.as_uri())
    data = json.loads(page.locator("#data").text_content())
    page.screenshot(path=folder / f"{file.stem}.png", full_page=True)
    faults += page.evaluate(FAULTS)
    faults += using(page, data)
    page.keyboard.press("t")
    page.screenshot(path=folder / f"{file.stem}-dark.png")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    if page.evaluate("models[0].view ? models[0].view.sheet.nodes.length : 0") != page.locator("#graph-0 .canvas:not([hidden]) .node").count():
        faults.append("paper doesn't show all nodes")
    page.screenshot(path=folder / f"{file.stem}-print.png", full_page=True)
    page.close()
    size = file.stat().st_size
    if size > LARGEST:
        faults.append(f"the page has {size} bytes")
    nodes = max(len(data[0][graph]["nodes"]) for graph in ["imported", "optimized"])
    print(f"{file.stem}: {size} bytes, {nodes} nodes{''.join(chr(10) + '  ' + fault for fault in faults)}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlc", default="target/release/mlc")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("tests/data/pnnx"))
    parser.add_argument("--filter", default="net_")
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--screenshots", type=pathlib.Path, default=pathlib.Path("target/screenshots"))
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser"))
    options = parser.parse_args()
    folder = options.screenshots.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    models = sorted(path for path in options.models.glob("*/model.pnnx.param") if options.filter in path.parent.name)
    if not models:
        sys.exit("there are no models")
    (folder / "large.mlc").write_text(large(MANY))
    pages = [(path.parent.name, path, use) for path in models]
    pages += [("large", folder / "large.mlc", roam), *archives(options.mlc, models[0], options.target, folder)]
    failed = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for name, model, using in pages:
            file = folder / f"{name}.html"
            subprocess.run([options.mlc, "report", model, "--target", options.target, "-q", "-o", file], check=True)
            if look(browser, file, folder, using):
                failed.append(name)
        browser.close()
    if failed:
        sys.exit(f"{len(failed)} of {len(pages)} pages have faults: {', '.join(failed)}")
    print(f"{len(pages)} pages are as they should be")


if __name__ == "__main__":
    main()
