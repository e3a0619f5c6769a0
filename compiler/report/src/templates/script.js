"use strict";
const reports = JSON.parse(document.getElementById("data").textContent);

function element(tag, text, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function list(title, entries) {
  if (!entries.length) return [];
  return [element("h3", title), element("ul", "", ...entries.map((entry) => (entry.nodeType ? element("li", "", entry) : element("li", entry))))];
}

// Units of the picture for a pixel, from which on no text could be read.
const AFAR = 2.5;

// Rows of the picture that one path holds from afar, in units.
const BAND = 4000;

function drawing(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const box = (x, y, width, height) => ({ x, y, width, height });
const meets = (one, other) =>
  one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
const outline = ({ x, y, width, height }) => `M${x} ${y}h${width}v${height}h${-width}z`;

// What of a graph's picture is drawn: the nodes and edges in sight; from afar the outlines of all, many in one path. The rest isn't even in
// the document: browsers lay out all of a picture, what isn't displayed too, whenever its view box changes.
class Sheet {
  constructor(svg) {
    const [outlines, edges, nodes] = ["outlines", "edges", "nodes"].map(() => drawing("g", {}));
    this.nodes = [...svg.querySelectorAll(".node")].map((element) => {
      const [x, y] = element.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
      const rect = element.querySelector("rect");
      return { element, layer: nodes, box: box(x, y, Number(rect.getAttribute("width")), Number(rect.getAttribute("height"))) };
    });
    this.edges = [...svg.querySelectorAll(".edge")].map((element) => {
      const numbers = element.getAttribute("d").match(/-?[\d.]+/g).map(Number);
      const [xs, ys] = [0, 1].map((axis) => numbers.filter((_, place) => place % 2 === axis));
      const [x, y] = [Math.min(...xs), Math.min(...ys)];
      return { element, layer: edges, box: box(x - 5, y - 5, Math.max(...xs) - x + 10, Math.max(...ys) - y + 10) };
    });
    this.outlines = this.gathered().map(({ kind, lines, box }) => {
      return { element: drawing("path", { class: `outlines ${kind}`, d: lines }), layer: outlines, box };
    });
    this.hits = { element: drawing("path", { class: "outlines hit", d: "" }), layer: nodes };
    svg.querySelector(".view").replaceChildren(outlines, edges, nodes);
  }

  // The outlines of edges and nodes by what they look like and where they are.
  gathered() {
    const paths = new Map();
    const add = (kind, text, own) => {
      const band = Math.floor(own.y / BAND);
      const path = paths.get(`${kind} ${band}`) ?? { kind, lines: "", box: { ...own } };
      path.lines += text;
      const [right, lower] = [Math.max(path.box.x + path.box.width, own.x + own.width), Math.max(path.box.y + path.box.height, own.y + own.height)];
      [path.box.x, path.box.y] = [Math.min(path.box.x, own.x), Math.min(path.box.y, own.y)];
      [path.box.width, path.box.height] = [right - path.box.x, lower - path.box.y];
      paths.set(`${kind} ${band}`, path);
    };
    for (const edge of this.edges) add("edge", edge.element.getAttribute("d"), edge.box);
    for (const node of this.nodes) add([...node.element.classList].find((name) => name.startsWith("kind-")), outline(node.box), node.box);
    return [...paths.values()];
  }

  turn(part, shown) {
    if (Boolean(part.shown) === shown) return;
    part.shown = shown;
    if (shown) part.layer.append(part.element);
    else part.element.remove();
  }

  draw(seen, unit) {
    const afar = unit > AFAR;
    for (const part of [...this.nodes, ...this.edges]) this.turn(part, Boolean(part.kept) || (!afar && meets(part.box, seen)));
    for (const part of this.outlines) this.turn(part, afar && meets(part.box, seen));
    this.turn(this.hits, afar);
  }

  drawAll() {
    for (const part of [...this.nodes, ...this.edges]) this.turn(part, true);
    for (const part of [...this.outlines, this.hits]) this.turn(part, false);
  }

  // Nodes that a search found; the others step back.
  mark(hits, searched) {
    this.nodes.forEach(({ element }, number) => {
      element.classList.toggle("hit", hits.has(number));
      element.classList.toggle("dim", searched && !hits.has(number));
    });
    for (const { element } of this.outlines) element.classList.toggle("dim", searched);
    this.hits.element.setAttribute("d", [...hits].map((number) => outline(this.nodes[number].box)).join(""));
  }

  // A node and its edges, which are drawn from afar, too.
  select(number) {
    this.nodes.forEach((node, own) => {
      node.kept = own === number;
      node.element.classList.toggle("selected", node.kept);
    });
    for (const edge of this.edges) {
      edge.kept = [edge.element.dataset.from, edge.element.dataset.to].includes(String(number));
      edge.element.classList.toggle("near", edge.kept);
    }
  }

  // The number of the node at a place, -1 where there is none.
  find({ x, y }) {
    return this.nodes.findIndex((node) => meets(node.box, box(x, y, 0, 0)));
  }
}

// A picture that can be moved and brought closer by its view box.
class View {
  constructor(canvas) {
    this.canvas = canvas;
    this.svg = canvas.querySelector("svg");
    this.sheet = new Sheet(this.svg);
    const box = this.svg.viewBox.baseVal;
    this.whole = { x: 0, y: 0, width: box.width || 1, height: box.height || 1 };
    this.box = { ...this.whole };
    this.grips = new Map();
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.scale(Math.exp(event.deltaY * 0.0015), this.at(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      this.grips.set(event.pointerId, event);
      this.moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      canvas.addEventListener(end, (event) => this.grips.delete(event.pointerId));
    }
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // Units of the picture for a pixel of the screen.
  unit() {
    const { clientWidth, clientHeight } = this.canvas;
    return Math.max(this.box.width / Math.max(clientWidth, 1), this.box.height / Math.max(clientHeight, 1));
  }

  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    const unit = this.unit();
    const x = this.box.x + this.box.width / 2 + (event.clientX - frame.left - frame.width / 2) * unit;
    const y = this.box.y + this.box.height / 2 + (event.clientY - frame.top - frame.height / 2) * unit;
    return { x, y };
  }

  drag(event) {
    const before = this.grips.get(event.pointerId);
    if (!before) return;
    const unit = this.unit();
    if (this.grips.size === 2) {
      const other = [...this.grips.values()].find((grip) => grip.pointerId !== event.pointerId);
      const distance = (grip) => Math.hypot(grip.clientX - other.clientX, grip.clientY - other.clientY);
      this.scale(Math.max(distance(before), 1) / Math.max(distance(event), 1), this.at(other));
    } else {
      this.moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
      this.move((before.clientX - event.clientX) * unit, (before.clientY - event.clientY) * unit);
    }
    this.grips.set(event.pointerId, event);
  }

  move(x, y) {
    this.show({ ...this.box, x: this.box.x + x, y: this.box.y + y });
  }

  scale(factor, at = { x: this.box.x + this.box.width / 2, y: this.box.y + this.box.height / 2 }) {
    const width = Math.min(Math.max(this.box.width * factor, 60), this.whole.width * 8 + 600);
    const real = width / this.box.width;
    this.show({
      x: at.x + (this.box.x - at.x) * real, y: at.y + (this.box.y - at.y) * real, width, height: this.box.height * real,
    });
  }

  fit() {
    this.show({ ...this.whole });
  }

  // The upper end in a size that can be read.
  start() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth || !clientHeight) return;
    const width = Math.min(Math.max(this.whole.width, clientWidth), clientWidth * 1.6);
    const height = (width * clientHeight) / clientWidth;
    if (height > this.whole.height) return this.fit();
    this.show({ x: (this.whole.width - width) / 2, y: 0, width, height });
  }

  // Brings a node to the middle.
  center(number) {
    const own = this.sheet.nodes[number].box;
    const width = Math.min(this.box.width, this.canvas.clientWidth * 1.2 || this.box.width);
    const height = (this.box.height * width) / this.box.width;
    this.show({ x: own.x + own.width / 2 - width / 2, y: own.y + own.height / 2 - height / 2, width, height });
  }

  show(box) {
    this.box = box;
    this.draw();
    this.svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
  }

  // On paper the picture has another size, which changes nothing of what is drawn.
  print() {
    this.fit();
    this.printed = true;
    this.sheet.drawAll();
  }

  screen() {
    this.printed = false;
    this.draw();
  }

  // The window is wider or higher than the box where their proportions differ.
  draw() {
    if (this.printed) return;
    const unit = this.unit();
    const { x, y, width, height } = this.box;
    const [across, down] = [this.canvas.clientWidth * unit, this.canvas.clientHeight * unit];
    this.sheet.draw({ x: x + (width - across) / 2, y: y + (height - down) / 2, width: across, height: down }, unit);
  }
}

// The pictures of a model's graph, what is searched in them, and what is told of a node.
class Graphs {
  constructor(article, report) {
    this.report = report;
    this.section = article.querySelector(".graphs");
    this.details = this.section.querySelector(".details");
    this.search = this.section.querySelector("input");
    this.hits = [];
    this.views = {};
    for (const canvas of this.section.querySelectorAll(".canvas")) this.views[canvas.dataset.graph] = this.prepare(canvas);
    for (const tab of this.section.querySelectorAll("[data-show]")) tab.addEventListener("click", () => this.show(tab.dataset.show));
    if (!this.search) return;
    for (const button of this.section.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => this.zoom(button.dataset.zoom));
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") { this.search.value = ""; this.find(""); this.search.blur(); }
    });
    this.show(Object.keys(this.views)[0]);
  }

  prepare(canvas) {
    const view = new View(canvas);
    canvas.addEventListener("click", (event) => {
      const own = event.target.closest(".node");
      const number = own ? Number(own.dataset.node) : view.sheet.find(view.at(event));
      if (number >= 0 && !(view.moved > 4)) this.select(number);
    });
    return view;
  }

  get view() {
    return this.views[this.shown];
  }

  get diagram() {
    return this.report[this.shown];
  }

  show(name) {
    this.shown = name;
    for (const [own, view] of Object.entries(this.views)) view.canvas.hidden = own !== name;
    for (const tab of this.section.querySelectorAll("[data-show]")) tab.setAttribute("aria-selected", String(tab.dataset.show === name));
    if (!this.view.started) { this.view.started = true; this.view.start(); }
    this.find(this.search.value);
  }

  zoom(how) {
    if (how === "fit") this.view.fit();
    else this.view.scale(how === "in" ? 0.8 : 1.25);
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    const matches = (node) => [node.name, node.operator, ...node.origins].some((own) => own.toLowerCase().includes(wanted));
    this.hits = wanted ? this.diagram.nodes.flatMap((node, number) => (matches(node) ? [number] : [])) : [];
    this.view.sheet.mark(new Set(this.hits), Boolean(wanted));
    this.section.querySelector(".hits").textContent = wanted ? `${this.hits.length} found` : "";
    this.place = -1;
  }

  next(step) {
    if (!this.hits.length) return;
    this.place = (this.place + step + this.hits.length) % this.hits.length;
    this.select(this.hits[this.place], true);
  }

  select(number, center = false) {
    if (!this.view.sheet.nodes[number]) return;
    this.view.sheet.select(number);
    if (center) this.view.center(number);
    else this.view.draw();
    this.tell(this.diagram.nodes[number]);
  }

  // Shows a node of a graph wherever it is.
  go(name, number) {
    this.show(name);
    this.select(number, true);
    this.section.scrollIntoView({ block: "start" });
  }

  tell(node) {
    const other = this.shown === "optimized" ? "imported" : "optimized";
    const own = new Set([...node.origins, node.name]);
    const links = this.report[other].nodes.flatMap((its, number) => {
      if (![...its.origins, its.name].some((name) => own.has(name))) return [];
      const link = element("a", `${its.operator} ${its.name}`);
      link.href = `#graph`;
      link.addEventListener("click", (event) => { event.preventDefault(); this.go(other, number); });
      return [link];
    });
    this.details.replaceChildren(
      element("h3", node.name),
      element("div", `${node.operator}: ${node.results.join(", ")}`),
      ...list("Stands for", node.origins),
      ...list("Constants", node.constants),
      ...list("Made by the rules", node.rules),
      ...list(other === "imported" ? "In the model" : "Became", links),
      ...(node.text ? [element("h3", "Text"), element("pre", node.text)] : []),
      ...node.kernels.flatMap((number) => this.kernel(number)),
    );
    this.details.scrollTop = 0;
  }

  tellKernel(number) {
    this.details.replaceChildren(element("h3", this.report.kernels[number].node), ...this.kernel(number));
    this.section.scrollIntoView({ block: "start" });
  }

  kernel(number) {
    const kernel = this.report.kernels[number];
    const unit = this.report.measured ? this.report.measured[0] : this.report.unit;
    const known = [[kernel.measured ?? kernel.time, unit], [kernel.macs, "MACs"], [kernel.code_bytes, "bytes of code"]];
    const facts = known.flatMap(([figure, what]) => (figure === undefined ? [] : [`${figure.toLocaleString("en")} ${what}`]));
    if (kernel.schedule) facts.push(`schedule ${kernel.schedule}`);
    const others = kernel.others.map(([name, time]) => `${name}: ${time.toLocaleString("en")} ${this.report.unit} predicted`);
    return [
      ...list(`Kernel ${number}: ${kernel.operator}`, facts),
      ...list("Schedules that weren't taken", others),
      ...(kernel.source ? [element("h3", "C"), element("pre", kernel.source)] : []),
    ];
  }
}

function sort(table, column, header) {
  const descending = header.getAttribute("aria-sort") !== "descending";
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const value = (row) => {
    const cell = row.cells[column];
    const number = Number(cell.dataset.value ?? cell.textContent);
    return Number.isNaN(number) ? cell.textContent : number;
  };
  const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
  const order = ([one], [other]) => (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other)));
  rows.sort((one, other) => (descending ? order(other, one) : order(one, other)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => header.addEventListener("click", () => sort(table, column, header)));
}

const models = [...document.querySelectorAll("article.model")].map((article, number) => {
  const graphs = new Graphs(article, reports[number]);
  const go = (kernel) => {
    const node = reports[number].optimized.nodes.findIndex((own) => own.kernels.includes(kernel));
    if (node >= 0) return graphs.go("optimized", node);
    // What lowering adds, such as a border, has no node.
    graphs.tellKernel(kernel);
  };
  for (const row of article.querySelectorAll("[data-kernel]")) {
    row.addEventListener("click", () => go(Number(row.dataset.kernel)));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") go(Number(row.dataset.kernel)); });
  }
  return graphs;
});

function theme() {
  const root = document.documentElement;
  const dark = root.style.colorScheme ? root.style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.style.colorScheme = dark ? "light" : "dark";
}
document.getElementById("theme").addEventListener("click", theme);

// Keys belong to the graph that is nearest to the middle of the window.
function current() {
  const distance = (graphs) => {
    const frame = graphs.section.getBoundingClientRect();
    return Math.abs((frame.top + frame.bottom) / 2 - innerHeight / 2);
  };
  return models.reduce((one, other) => (distance(other) < distance(one) ? other : one));
}

addEventListener("keydown", (event) => {
  if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  const graphs = current();
  const frame = graphs.section.getBoundingClientRect();
  const visible = frame.top < innerHeight * 0.6 && frame.bottom > innerHeight * 0.4;
  const keys = { t: theme };
  if (graphs.search) keys["/"] = () => { graphs.section.scrollIntoView({ block: "start" }); graphs.search.focus(); };
  if (graphs.view && visible) {
    const step = 60 * graphs.view.unit();
    Object.assign(keys, {
      "+": () => graphs.zoom("in"), "=": () => graphs.zoom("in"), "-": () => graphs.zoom("out"), 0: () => graphs.zoom("fit"),
      ArrowLeft: () => graphs.view.move(-step, 0), ArrowRight: () => graphs.view.move(step, 0),
      ArrowUp: () => graphs.view.move(0, -step), ArrowDown: () => graphs.view.move(0, step),
    });
  }
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// Paper shows all of a graph.
const views = models.flatMap((graphs) => Object.values(graphs.views));
addEventListener("beforeprint", () => views.forEach((view) => view.print()));
addEventListener("afterprint", () => views.forEach((view) => view.screen()));
