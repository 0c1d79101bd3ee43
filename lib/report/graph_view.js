// Shows a graph on a canvas: zoom, pan, search, folding and the details of an operation.
"use strict";
class GraphView {
  static kColors = {
    light: ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#9a6700", "#bf3989", "#1b7c83", "#57606a"],
    dark: ["#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#e3b341", "#f778ba", "#39c5cf", "#9198a1"],
  };

  constructor(root, data) {
    this.data = data;
    this.layout = new GraphLayout(data);
    this.counts = data.groups.map((_, group) => this.operations(this.layout.membersOf(group).map((node) => data.nodes[node])));
    this.selected = null;  // an item of the layout
    this.matches = [];
    this.match = -1;
    this.scale = 1;
    this.x = this.y = 0;  // of the corner at the top left, in the graph
    this.pointers = new Map();
    this.texts = data.nodes.map((node) =>
      [node.op, node.name, node.type, ...(node.facts || []).flat()].join("\n").toLowerCase());
    this.build(root);
    this.update();
    this.fit();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    document.addEventListener("theme", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  // The number of nodes that are neither inputs, outputs nor states.
  operations(nodes) {
    return nodes.filter((node) => !["input", "output", "state", "block input"].includes(node.op)).length;
  }

  build(root) {
    const make = (name, properties = {}, ...children) => {
      const element = Object.assign(document.createElement(name), properties);
      element.append(...children);
      return element;
    };
    this.make = make;
    const button = (text, title, action) => {
      const element = make("button", {type: "button", textContent: text, title});
      element.setAttribute("aria-label", title);
      element.addEventListener("click", action);
      return element;
    };
    this.search = make("input", {type: "search", placeholder: "Search operations, names, types, sources ( / )"});
    this.search.setAttribute("aria-label", "Search the graph");
    this.found = make("span", {className: "found"});
    this.found.setAttribute("role", "status");
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") { this.search.value = ""; this.find(""); this.canvas.focus(); }
    });
    this.colors = make("select");
    this.colors.setAttribute("aria-label", "Colour by");
    const has = (field) => this.data.nodes.some((node) => node[field]);
    for (const [value, text] of [["op", "operator"], ["precision", "precision"], ["place", "placement"], ["share", "work"]])
      if (value === "op" || has(value)) this.colors.append(make("option", {value, textContent: `Colour by ${text}`}));
    this.colors.addEventListener("change", () => this.draw());
    this.canvas = make("canvas", {tabIndex: 0});
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `Graph of ${this.data.title}: ${this.operations(this.data.nodes)} operations. Arrow keys move along ` +
      "the graph, plus and minus zoom, 0 shows everything, Enter folds and unfolds, slash searches.");
    this.canvas.graphView = this;
    this.aside = make("aside");
    this.aside.setAttribute("aria-live", "polite");
    this.aside.setAttribute("aria-label", "Selected operation");
    this.legend = make("div", {className: "legend"});
    const groups = this.data.groups.length > 0;
    root.append(
      make("div", {className: "bar"}, this.search, this.found,
        button("\u2212", "Zoom out", () => this.zoom(1 / 1.4)), button("+", "Zoom in", () => this.zoom(1.4)),
        button("Fit", "Show everything", () => this.fit(true)), button("Top", "Go to the first operation", () => this.fit()),
        ...(groups ? [button("Unfold all", "Unfold all blocks", () => this.foldAll(false)),
                      button("Fold all", "Fold all blocks", () => this.foldAll(true))] : []), this.colors),
      make("div", {className: "stage"}, make("div", {className: "view"}, this.canvas), this.aside), this.legend);
    this.listen();
    this.details();
  }

  listen() {
    const canvas = this.canvas;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 20 : 1;
      if (event.ctrlKey || event.metaKey) {
        this.zoom(Math.exp(-event.deltaY * unit / 200), at(event));
      } else {
        this.pan(event.deltaX * unit, event.deltaY * unit);
      }
    }, {passive: false});
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at(event));
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = this.pointers.get(event.pointerId);
      if (!before) {
        canvas.style.cursor = this.itemAt(...at(event)) ? "pointer" : "";
        return;
      }
      const now = at(event);
      const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      if (others.length) {
        const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
        this.zoom(distance(now, others[0]) / distance(before, others[0]), others[0]);
      } else {
        moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
        if (moved > 3) {
          canvas.classList.add("moving");
          this.pan(before[0] - now[0], before[1] - now[1]);
        }
      }
      this.pointers.set(event.pointerId, now);
    });
    const end = (event) => {
      if (this.pointers.delete(event.pointerId) && event.type === "pointerup" && moved <= 3) {
        const box = this.itemAt(...at(event));
        this.select(box ? box.item : null);
      }
      canvas.classList.remove("moving");
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", (event) => {
      const box = this.itemAt(...at(event));
      if (box && this.isGroup(box.item)) this.toggle(box.item - this.data.nodes.length);
      else this.zoom(1.6, at(event));
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const moves = {ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right"};
      if (moves[event.key]) this.move(moves[event.key]);
      else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") this.fit(true);
      else if (event.key === "Home") this.fit();
      else if (event.key === "Escape") this.select(null);
      else if (event.key === "/") this.search.focus();
      else if ((event.key === "Enter" || event.key === " ") && this.selected !== null) {
        const group = this.isGroup(this.selected) ? this.selected - this.data.nodes.length : this.layout.groupOf(this.selected);
        if (group >= 0) this.toggle(group);
      } else return;
      event.preventDefault();
    });
  }

  isGroup(item) { return item >= this.data.nodes.length; }
  nameOf(item) { return this.isGroup(item) ? this.data.groups[item - this.data.nodes.length].name : this.data.nodes[item].name; }

  // The visible item that stands for one that may be folded away.
  standIn(item) {
    for (const part of this.layout.chain(item))
      if (part === item || (this.isGroup(part) && this.layout.folded[part - this.data.nodes.length])) return part;
    return item;
  }

  update() {
    this.shown = this.layout.visible();
    this.boxOf = new Map(this.shown.boxes.map((box) => [box.item, box]));
  }

  resize() {
    const {clientWidth: w, clientHeight: h} = this.canvas.parentElement;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    this.draw(true);
  }

  fit(whole = false) {
    const {clientWidth: w, clientHeight: h} = this.canvas.parentElement;
    const margin = 24;
    const across = (w - 2 * margin) / this.shown.w, down = (h - 2 * margin) / this.shown.h;
    this.scale = Math.max(1e-3, Math.min(1, whole ? Math.min(across, down) : Math.max(across, 0.6)));
    this.y = -margin / this.scale;
    if (whole && this.scale * this.shown.h < h) this.y = (this.shown.h - h / this.scale) / 2;
    this.x = (this.shown.w - w / this.scale) / 2;
    if (!whole && this.shown.w * this.scale > w) {
      const first = this.shown.boxes[0];
      if (first) this.x = first.x + first.w / 2 - w / this.scale / 2;
    }
    this.draw();
  }

  zoom(factor, point) {
    const {clientWidth: w, clientHeight: h} = this.canvas.parentElement;
    const [px, py] = point || [w / 2, h / 2];
    const scale = Math.min(4, Math.max(2e-3, this.scale * factor));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.draw();
  }

  pan(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.draw();
  }

  itemAt(px, py) {
    const x = this.x + px / this.scale, y = this.y + py / this.scale;
    let found = null;  // the innermost
    for (const box of this.shown.boxes)
      if (x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h && (!found || box.depth >= found.depth)) found = box;
    return found;
  }

  toggle(group) {
    const item = this.data.nodes.length + group;
    const before = this.boxOf.get(item);
    this.layout.setFolded(group, !this.layout.folded[group]);
    this.update();
    const after = this.boxOf.get(item);
    // The block that was clicked stays where it is.
    if (before && after) {
      this.x += after.x + after.w / 2 - before.x - before.w / 2;
      this.y += after.y - before.y;
    }
    this.select(item, false);
  }

  foldAll(folded) {
    this.data.groups.forEach((group, index) => this.layout.setFolded(index, folded));
    this.update();
    this.select(null);
    this.fit();
  }

  select(item, reveal = true) {
    this.selected = item;
    if (item !== null && reveal && !this.boxOf.has(item)) {
      this.layout.reveal(item);
      this.update();
    }
    this.details();
    this.draw();
  }

  // Moves the view as far as needed to show an item.
  show(item) {
    const box = this.boxOf.get(item);
    if (!box) return;
    const {clientWidth: w, clientHeight: h} = this.canvas.parentElement;
    if (this.scale < 0.5) this.scale = 0.9;
    const x = (box.x - this.x) * this.scale, y = (box.y - this.y) * this.scale;
    if (x < 20 || y < 20 || x + box.w * this.scale > w - 20 || y + box.h * this.scale > h - 20) {
      this.x = box.x + box.w / 2 - w / this.scale / 2;
      this.y = box.y + Math.min(box.h, h / this.scale - 80) / 2 - h / this.scale / 2;
    }
  }

  go(item) {
    if (!this.boxOf.has(item)) {
      this.layout.reveal(item);
      this.update();
    }
    this.show(item);
    this.select(item);
  }

  move(direction) {
    if (this.selected === null) {
      const step = {up: [0, -60], down: [0, 60], left: [-60, 0], right: [60, 0]}[direction];
      this.pan(...step);
      return;
    }
    const box = this.boxOf.get(this.selected);
    if (!box) return;
    let next = null;
    if (direction === "up" || direction === "down") {
      const ends = this.shown.lines.filter((line) => line.ends[direction === "up" ? 1 : 0] === this.selected)
        .map((line) => line.ends[direction === "up" ? 0 : 1]).filter((item) => item >= 0);
      next = ends[0] ?? null;
    } else {
      const sign = direction === "left" ? -1 : 1;
      let best = Infinity;
      for (const other of this.shown.boxes) {
        const away = sign * (other.x + other.w / 2 - box.x - box.w / 2);
        if (other.depth === box.depth && away > 1 && away < best && other.y < box.y + box.h && other.y + other.h > box.y) {
          best = away;
          next = other.item;
        }
      }
    }
    if (next !== null) this.go(next);
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.matches = wanted ? this.texts.flatMap((own, index) => own.includes(wanted) ? [index] : []) : [];
    this.match = -1;
    this.matching = new Set(this.matches);
    this.found.textContent = wanted ? `${this.matches.length} found` : "";
    if (this.matches.length) this.step(1);
    else this.draw();
  }

  step(by) {
    const count = this.matches.length;
    if (!count) return;
    this.match = (this.match + by + count) % count;
    this.found.textContent = `${this.match + 1} of ${count}`;
    this.go(this.matches[this.match]);
  }

  details() {
    const make = this.make, aside = this.aside;
    aside.replaceChildren();
    const list = (title, items) => {
      if (!items.length) return;
      aside.append(make("h4", {textContent: title}));
      const kMost = 40;
      for (const item of items.slice(0, kMost)) {
        const button = make("button", {type: "button", textContent: this.isGroup(item) ? this.nameOf(item)
          : `${this.data.nodes[item].op}  ${this.data.nodes[item].name}`});
        button.addEventListener("click", () => this.go(item));
        aside.append(button);
      }
      if (items.length > kMost) aside.append(make("p", {textContent: `and ${items.length - kMost} more`}));
    };
    const facts = (entries) => {
      const dl = make("dl");
      for (const [name, value] of entries)
        if (value) dl.append(make("div", {}, make("dt", {textContent: name}), make("dd", {textContent: value})));
      aside.append(dl);
    };
    if (this.selected === null) {
      aside.append(make("h3", {textContent: this.data.title}));
      facts([["operations", String(this.operations(this.data.nodes))], ["blocks", this.data.groups.filter((group) => group.parent === undefined)
        .map((group) => group.name).join("; ")]]);
      aside.append(make("p", {textContent: "Drag to pan, pinch or hold Ctrl while scrolling to zoom, click an operation for its details, " +
        "double-click a block to unfold it. Keys: arrows, + and \u2212, 0, Enter, /."}));
      return;
    }
    if (this.isGroup(this.selected)) {
      const group = this.selected - this.data.nodes.length;
      const members = this.layout.membersOf(group);
      aside.append(make("h3", {textContent: this.data.groups[group].name}));
      const share = members.reduce((sum, node) => sum + (this.data.nodes[node].share || 0), 0);
      const kinds = new Map();
      for (const node of members) kinds.set(this.data.nodes[node].op, (kinds.get(this.data.nodes[node].op) || 0) + 1);
      facts([["operations", String(this.counts[group])], ["share of the work", share ? `${(100 * share).toFixed(1)} %` : ""],
        ["operators", [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, count]) => `${count} ${kind}`).join(", ")]]);
      const button = make("button", {type: "button", textContent: this.layout.folded[group] ? "Unfold" : "Fold"});
      button.addEventListener("click", () => this.toggle(group));
      aside.append(button);
      return;
    }
    const node = this.data.nodes[this.selected];
    aside.append(make("h3", {textContent: node.name || node.op}));
    facts([["operator", node.op], ["type", node.type], ["precision", node.precision], ["placement", node.place],
      ["share of the work", node.share ? `${(100 * node.share).toFixed(2)} %` : ""], ...(node.facts || [])]);
    list("Inputs", node.in || []);
    list("Used by", this.layout.users[this.selected]);
  }

  // The colours of values, the most frequent first; the last one is for all others.
  palette(field) {
    const counts = new Map();
    for (const node of this.data.nodes) {
      const value = node[field] || "";
      if (value && node.op !== "input" && node.op !== "output") counts.set(value, (counts.get(value) || 0) + 1);
    }
    const values = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([value]) => value);
    return new Map(values.map((value, index) => [value, Math.min(index, 7)]));
  }

  draw(now = false) {
    if (now) { this.paint(); return; }
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }

  paint() {
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const color = Object.fromEntries(["ground", "raised", "text", "soft", "line", "accent", "good", "notice", "bad"]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    const dark = parseInt(color.ground.slice(1, 3), 16) < 128;
    const colors = GraphView.kColors[dark ? "dark" : "light"];
    const field = this.colors.value;
    if (this.paletteField !== field) {
      this.paletteField = field;
      this.paletteValues = this.palette(field);
    }
    const palette = this.paletteValues;
    const most = field === "share" ? Math.max(1e-9, GraphLayout.most(this.data.nodes.map((node) => node.share || 0))) : 1;
    const ratio = devicePixelRatio || 1, scale = this.scale;
    const w = this.canvas.width / ratio, h = this.canvas.height / ratio;
    const left = this.x, top = this.y, right = left + w / scale, bottom = top + h / scale;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = color.ground;
    context.fillRect(0, 0, w, h);
    context.setTransform(ratio * scale, 0, 0, ratio * scale, -left * scale * ratio, -top * scale * ratio);
    const inView = (box) => box.x <= right && box.x + box.w >= left && box.y <= bottom && box.y + box.h >= top;
    // Unfolded blocks are the ground of what is in them.
    for (const box of this.shown.boxes) {
      if (!box.open || !inView(box)) continue;
      context.fillStyle = color.raised;
      context.strokeStyle = box.item === this.selected ? color.accent : color.line;
      context.lineWidth = box.item === this.selected ? 2 : 1;
      context.beginPath();
      context.roundRect(box.x, box.y, box.w, box.h, 8);
      context.fill();
      context.stroke();
      if (scale > 0.25) {
        context.fillStyle = color.soft;
        context.font = "600 12px system-ui, sans-serif";
        context.fillText(this.nameOf(box.item), box.x + 12, box.y + 20);
      }
    }
    context.lineWidth = Math.max(1, 0.6 / scale);
    context.strokeStyle = color.soft;
    context.globalAlpha = dark ? 0.75 : 0.6;
    context.beginPath();
    const lit = [];
    for (const line of scale < 0.01 ? [] : this.shown.lines) {  // where boxes are less than a pixel
      const path = line.path;
      if (path[0][1] > bottom || path.at(-1)[1] < top) continue;
      if (this.selected !== null && line.ends.includes(this.selected)) lit.push(path);
      else this.trace(context, path, scale);
    }
    context.stroke();
    context.globalAlpha = 1;
    if (lit.length || this.selected !== null) {
      context.strokeStyle = color.accent;
      context.lineWidth = Math.max(2, 1.5 / scale);
      context.beginPath();
      for (const path of lit) this.trace(context, path, scale);
      context.stroke();
      context.setLineDash([6, 4]);
      context.beginPath();
      for (const [a, b] of this.shown.far) {
        if (a !== this.selected && b !== this.selected) continue;
        const from = this.boxOf.get(a), to = this.boxOf.get(b);
        if (from && to) this.trace(context, [[from.port, from.y + from.h], [to.port, to.y]], scale);
      }
      context.stroke();
      context.setLineDash([]);
    }
    const texts = scale > 0.32;
    for (const box of this.shown.boxes) {
      if (box.open || !inView(box)) continue;
      const selected = box.item === this.selected;
      const group = this.isGroup(box.item);
      const node = group ? null : this.data.nodes[box.item];
      const matches = node && this.matching && this.matching.has(box.item);
      let stripe = color.soft;
      if (node && field === "share") stripe = colors[0];
      else if (node && palette.has(node[field])) stripe = colors[palette.get(node[field])];
      if (!texts) {
        context.fillStyle = selected || matches ? color.notice : stripe;
        context.globalAlpha = field === "share" && node ? 0.15 + 0.85 * Math.sqrt((node.share || 0) / most) : 1;
        context.fillRect(box.x, box.y, box.w, box.h);
        context.globalAlpha = 1;
        continue;
      }
      context.fillStyle = group ? color.raised : color.ground;
      context.strokeStyle = selected ? color.accent : matches ? color.notice : color.line;
      context.lineWidth = selected || matches ? 2.5 : 1;
      if (group) {
        // Looks like a pile.
        for (const shift of [6, 3]) {
          context.beginPath();
          context.roundRect(box.x + shift, box.y + shift, box.w, box.h, 6);
          context.fill();
          context.stroke();
        }
      }
      context.beginPath();
      context.roundRect(box.x, box.y, box.w, box.h, group || node.op === "input" || node.op === "output" ? 14 : 5);
      context.fill();
      context.stroke();
      if (group) {
        context.fillStyle = color.text;
        context.font = "600 13px system-ui, sans-serif";
        context.fillText(this.nameOf(box.item), box.x + 16, box.y + 22);
        context.fillStyle = color.soft;
        context.font = "12px system-ui, sans-serif";
        context.fillText(`${this.counts[box.item - this.data.nodes.length]} operations, double-click to unfold`,
          box.x + 16, box.y + 39, box.w - 24);
        continue;
      }
      context.fillStyle = stripe;
      context.globalAlpha = field === "share" ? 0.1 + 0.9 * Math.sqrt((node.share || 0) / most) : 1;
      context.fillRect(box.x + 1, box.y + 6, 5, box.h - 12);
      context.globalAlpha = 1;
      context.fillStyle = color.text;
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(node.op, box.x + 13, box.y + 18);
      const badge = [node.precision, node.place].filter(Boolean).join(" \u00b7 ");
      const sign = {bad: "\u2717 ", notice: "! "}[node.mark] || "";
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "right";
      context.fillStyle = sign ? color[node.mark] : color.soft;
      context.fillText(sign + badge, box.x + box.w - 8, box.y + 18);
      context.textAlign = "left";
      context.fillStyle = color.soft;
      context.fillText(this.short(node.name), box.x + 13, box.y + 33, box.w - 20);
      if (node.type) context.fillText(this.short(node.type), box.x + 13, box.y + 48, box.w - 20);
    }
    this.drawLegend(field, palette, colors, most);
  }

  short(text) { return text.length > 34 ? `${text.slice(0, 16)}\u2026${text.slice(-17)}` : text; }

  trace(context, path, scale) {
    context.moveTo(path[0][0], path[0][1]);
    for (let k = 1; k < path.length; ++k) {
      const [x0, y0] = path[k - 1], [x1, y1] = path[k];
      if (x0 === x1 || scale < 0.2) context.lineTo(x1, y1);
      else context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
    }
  }

  drawLegend(field, palette, colors, most) {
    const key = field + colors[0];
    if (this.legendKey === key) return;
    this.legendKey = key;
    const entry = (color, text) => {
      const box = document.createElement("i");
      box.style.background = color;
      return this.make("span", {}, box, text);
    };
    if (field === "share") {
      this.legend.replaceChildren(entry(colors[0], `strong colour: up to ${(100 * most).toFixed(1)} % of the work`));
      return;
    }
    const names = [...palette.keys()];
    const entries = names.slice(0, 7).map((name, index) => entry(colors[index], name));
    if (names.length > 7) entries.push(entry(colors[7], names.length > 8 ? `${names.length - 7} others` : names[7]));
    this.legend.replaceChildren(...entries);
  }
}

for (const root of document.querySelectorAll(".graph"))
  new GraphView(root, JSON.parse(root.querySelector("script").textContent));
