"""Opens the pages of `mlc report` in headless Chromium, uses them as a person would, and looks at what is drawn.

    python tests/browser/report.py --mlc target/release/mlc --models tests/data/pnnx --screenshots target/screenshots

Needs the package playwright, and Chromium. Fails on anything in the browser's console, on text that leaves its box, on boxes that meet, on a
control that does nothing, on a page of more than 3 MB, and on anything that a page asks the network for.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

LARGEST = 3_000_000

# What is wrong with the pictures as they are drawn: with text, boxes and edges in the picture's own coordinates.
FAULTS = """() => {
  const faults = [];
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
  return faults;
}"""


def use(page, data):
    """Uses every control of the first model's graph; returns what didn't do what it is for."""
    faults = []
    report = data[0]
    graph = page.locator("#graph-0")

    def check(holds, what):
        if not holds:
            faults.append(what)

    for shown in ["imported", "optimized"]:
        graph.locator(f"[data-show={shown}]").click()
        drawn = graph.locator(".canvas:not([hidden]) .node").count()
        check(drawn == len(report[shown]["nodes"]), f"{drawn} nodes of {shown} are drawn")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlc", default="target/release/mlc")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("tests/data/pnnx"))
    parser.add_argument("--filter", default="net_")
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--screenshots", type=pathlib.Path, default=pathlib.Path("target/screenshots"))
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser"))
    options = parser.parse_args()
    options.screenshots.mkdir(parents=True, exist_ok=True)
    models = sorted(path for path in options.models.glob("*/model.pnnx.param") if options.filter in path.parent.name)
    failed = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for path in models:
            name = path.parent.name
            file = options.screenshots.resolve() / f"{name}.html"
            command = [options.mlc, "report", path, "--target", options.target, "-q", "-o", file]
            subprocess.run(command, check=True)
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            faults = []
            page.on("console", lambda message: faults.append(f"console: {message.text}"))
            page.on("pageerror", lambda error: faults.append(f"error: {error}"))
            page.on("request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(f"asks for {request.url}"))
            page.goto(file.as_uri())
            data = json.loads(page.locator("#data").text_content())
            page.screenshot(path=options.screenshots / f"{name}.png", full_page=True)
            faults += page.evaluate(FAULTS)
            faults += use(page, data)
            page.keyboard.press("t")
            page.screenshot(path=options.screenshots / f"{name}-dark.png")
            page.emulate_media(media="print")
            page.screenshot(path=options.screenshots / f"{name}-print.png", full_page=True)
            page.close()
            size = file.stat().st_size
            if size > LARGEST:
                faults.append(f"the page has {size} bytes")
            print(f"{name}: {size} bytes, {len(data[0]['imported']['nodes'])} nodes{''.join(chr(10) + '  ' + fault for fault in faults)}")
            if faults:
                failed.append(name)
        browser.close()
    if not models:
        sys.exit("there are no models")
    if failed:
        sys.exit(f"{len(failed)} of {len(models)} pages have faults: {', '.join(failed)}")
    print(f"{len(models)} pages are as they should be")


if __name__ == "__main__":
    main()
