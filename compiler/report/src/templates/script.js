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

// A picture that can be moved and brought closer by its view box.
class View {
  constructor(canvas) {
    this.canvas = canvas;
    this.svg = canvas.querySelector("svg");
    const box = this.svg.viewBox.baseVal;
    this.whole = { x: 0, y: 0, width: box.width || 1, height: box.height || 1 };
    this.box = { ...this.whole };
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    this.grips = new Map();
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
  center(node) {
    const bounds = node.getBBox();
    const place = node.transform.baseVal.consolidate().matrix;
    const width = Math.min(this.box.width, this.canvas.clientWidth * 1.2 || this.box.width);
    const height = (this.box.height * width) / this.box.width;
    this.show({ x: place.e + bounds.width / 2 - width / 2, y: place.f + bounds.height / 2 - height / 2, width, height });
  }

  show(box) {
    this.box = box;
    this.svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
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
    for (const button of this.section.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => this.zoom(button.dataset.zoom));
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") { this.search.value = ""; this.find(""); this.search.blur(); }
    });
    this.show("optimized");
  }

  prepare(canvas) {
    const view = new View(canvas);
    view.nodes = [...canvas.querySelectorAll(".node")];
    view.edges = [...canvas.querySelectorAll(".edge")];
    canvas.addEventListener("click", (event) => {
      const node = event.target.closest(".node");
      if (node && !(view.moved > 4)) this.select(Number(node.dataset.node));
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
    const hit = new Set(this.hits);
    this.view.nodes.forEach((node, number) => {
      node.classList.toggle("hit", hit.has(number));
      node.classList.toggle("dim", Boolean(wanted) && !hit.has(number));
    });
    this.section.querySelector(".hits").textContent = wanted ? `${this.hits.length} found` : "";
    this.place = -1;
  }

  next(step) {
    if (!this.hits.length) return;
    this.place = (this.place + step + this.hits.length) % this.hits.length;
    this.select(this.hits[this.place], true);
  }

  select(number, center = false) {
    const node = this.view.nodes[number];
    if (!node) return;
    this.view.nodes.forEach((other) => other.classList.toggle("selected", other === node));
    for (const edge of this.view.edges) edge.classList.toggle("near", [edge.dataset.from, edge.dataset.to].includes(String(number)));
    if (center) this.view.center(node);
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
    const took = kernel.measured ?? kernel.time;
    const facts = [`${took.toLocaleString("en")} ${unit}`, `${kernel.macs.toLocaleString("en")} MACs`, `${kernel.code_bytes.toLocaleString("en")} bytes of code`];
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
  const step = 60 * graphs.view.unit();
  const keys = {
    "/": () => { graphs.section.scrollIntoView({ block: "start" }); graphs.search.focus(); },
    t: theme,
  };
  if (visible) {
    Object.assign(keys, {
      "+": () => graphs.zoom("in"), "=": () => graphs.zoom("in"), "-": () => graphs.zoom("out"), 0: () => graphs.zoom("fit"),
      ArrowLeft: () => graphs.view.move(-step, 0), ArrowRight: () => graphs.view.move(step, 0),
      ArrowUp: () => graphs.view.move(0, -step), ArrowDown: () => graphs.view.move(0, step),
    });
  }
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// Paper shows all of a graph.
addEventListener("beforeprint", () => models.forEach((graphs) => graphs.view.fit()));
