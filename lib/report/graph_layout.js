// Places the operations of a graph: layers from top to bottom by the longest path (Sugiyama), the order
// within a layer by the positions of neighbours, and coordinates that keep lines straight. A group is
// placed like an operation, and what is in it is placed once, in a box of its own.
"use strict";
class GraphLayout {
  static kLong = 14;  // layers that a line may cross; longer ones are drawn on selection only
  static kGapX = 22;
  static kGapY = 30;
  static kMargin = 14;  // around what is in a group, and above it kTitle
  static kTitle = 34;

  // data: {nodes: [{op, name, type, in, group}], groups: [{name, parent}]}
  constructor(data) {
    this.data = data;
    this.folded = data.groups.map(() => true);
    // Items of a level: nodes by their index, groups by nodes.length + index. Level 0 is the whole.
    this.items = Array.from({length: data.groups.length + 1}, () => []);
    this.edges = this.items.map(() => []);
    this.users = data.nodes.map(() => []);
    this.sizes = data.groups.map(() => 0);
    this.finished = new Map();  // levels that are placed, by number
    const count = data.nodes.length;
    const listed = data.groups.map(() => false);
    data.nodes.forEach((node, index) => {
      for (const input of node.in || []) this.users[input].push(index);
      let item = index;
      for (let group = node.group ?? -1; ; group = data.groups[group].parent ?? -1) {
        this.items[group + 1].push(item);
        if (group < 0) break;
        ++this.sizes[group];
        if (listed[group]) {
          for (let g = data.groups[group].parent ?? -1; g >= 0; g = data.groups[g].parent ?? -1) ++this.sizes[g];
          break;
        }
        listed[group] = true;
        item = count + group;
      }
    });
    const seen = new Set();
    data.nodes.forEach((node, index) => {
      for (const input of node.in || []) {
        let a = this.chain(input), b = this.chain(index);
        let level = 0;
        while (a.length > level + 1 && b.length > level + 1 && a[level] === b[level]) ++level;
        const at = level ? a[level - 1] - count + 1 : 0;
        if (a[level] === b[level]) continue;
        const key = `${a[level]},${b[level]}`;
        if (seen.has(key)) continue;
        seen.add(key);
        this.edges[at].push([a[level], b[level]]);
      }
    });
  }

  groupOf(item) {
    const count = this.data.nodes.length;
    return (item < count ? this.data.nodes[item].group : this.data.groups[item - count].parent) ?? -1;
  }

  // The groups around a node from the outermost, and the node, as items.
  chain(item) {
    const chain = [item];
    for (let group = this.groupOf(item); group >= 0; group = this.data.groups[group].parent ?? -1)
      chain.unshift(this.data.nodes.length + group);
    return chain;
  }

  setFolded(group, folded) {
    if (this.folded[group] === folded) return;
    this.folded[group] = folded;
    for (let g = group; g >= 0; g = this.data.groups[g].parent ?? -1) this.finished.delete(g + 1);
    this.finished.delete(0);
  }

  // Unfolds what is around a node.
  reveal(node) {
    for (let group = this.groupOf(node); group >= 0; group = this.data.groups[group].parent ?? -1)
      this.setFolded(group, false);
  }

  // The lists may be too long for arguments of Math.min and Math.max.
  static least(list) { return list.reduce((a, b) => Math.min(a, b), Infinity); }
  static most(list) { return list.reduce((a, b) => Math.max(a, b), -Infinity); }
  // Boxes extend from the coordinate of their lines, x, by l and r.
  static centred(width, height) { return {l: width / 2, r: width / 2, h: height}; }

  sizeOf(item) {
    const count = this.data.nodes.length;
    if (item < count) {
      const node = this.data.nodes[item];
      const first = node.op.length + (node.precision || "").length + (node.place || "").length + 4;
      const longest = Math.max(first * 1.1, Math.min(30, node.name.length), Math.min(30, node.type.length));
      return GraphLayout.centred(Math.max(96, longest * 6.3 + 24), node.type ? 56 : 42);
    }
    const group = item - count;
    if (this.folded[group]) return GraphLayout.centred(Math.max(170, this.data.groups[group].name.length * 7 + 50), 50);
    const level = this.level(group + 1);
    const l = level.port + GraphLayout.kMargin, w = level.w + 2 * GraphLayout.kMargin;
    return {l, r: w - l, h: level.h + GraphLayout.kTitle + GraphLayout.kMargin, level};
  }

  // Places a level, and the unfolded levels in it.
  level(number) {
    if (!this.finished.has(number)) this.finished.set(number, this.place(number));
    return this.finished.get(number);
  }

  // Returns where values enter and leave a group: the items that read the latest value from outside or nothing
  // from inside, and those that only others read.
  ports(number, into, out) {
    const count = this.data.nodes.length, group = count + number - 1;
    const members = this.items[number].map((item) => item < count ? [item] : this.membersOf(item - count));
    const outside = (node) => !this.chain(node).includes(group);
    const reads = members.map((nodes) => nodes.flatMap((node) => (this.data.nodes[node].in || []).filter(outside)));
    const latest = GraphLayout.most(reads.flat());
    const entries = [], exits = [];
    members.forEach((nodes, i) => {
      if (reads[i].includes(latest) || (reads[i].length && !into[i].length)) entries.push(i);
      if (!out[i].length && nodes.some((node) => this.users[node].some(outside))) exits.push(i);
    });
    return {entries, exits};
  }

  membersOf(group) {
    const count = this.data.nodes.length;
    return this.items[group + 1].flatMap((item) => item < count ? [item] : this.membersOf(item - count));
  }

  place(number) {
    const boxes = [], index = new Map();
    for (const item of this.items[number]) {
      index.set(item, boxes.length);
      boxes.push({item, ...this.sizeOf(item), layer: 0, x: 0, y: 0, up: [], down: []});
    }
    const into = boxes.map(() => []), out = boxes.map(() => []), edges = [];
    const connect = (a, b) => { edges.push([a, b]); into[b].push(a); out[a].push(b); };
    for (const [a, b] of this.edges[number])
      if (index.get(a) < index.get(b)) connect(index.get(a), index.get(b));
    if (number > 0) {
      const {entries, exits} = this.ports(number, into, out);
      const top = boxes.length, bottom = top + 1;
      for (let port = 0; port < 2; ++port) {
        boxes.push({item: -1, ...GraphLayout.centred(1, 0), layer: 0, x: 0, y: 0, up: [], down: []});
        into.push([]);
        out.push([]);
      }
      for (const i of entries) connect(top, i);
      for (const i of exits) connect(i, bottom);
    }
    const order = [...boxes.keys()];
    if (number > 0) order.unshift(order.splice(-2, 1)[0]);  // the entry is first, the exit last
    for (const i of order) for (const a of into[i]) boxes[i].layer = Math.max(boxes[i].layer, boxes[a].layer + 1);
    for (const i of [...order].reverse())
      if (!into[i].length && out[i].length && boxes[i].item >= 0)
        boxes[i].layer = Math.max(0, Math.min(...out[i].map((b) => boxes[b].layer)) - 1);
    // Lines through several layers get a point in each.
    const lines = [], far = [];
    for (const [a, b] of edges) {
      const span = boxes[b].layer - boxes[a].layer;
      if (span > GraphLayout.kLong) {
        far.push([boxes[a].item, boxes[b].item]);
        continue;
      }
      const path = [a];
      for (let k = 1; k < span; ++k) {
        path.push(boxes.length);
        boxes.push({item: -2, ...GraphLayout.centred(2, 0), layer: boxes[a].layer + k, x: 0, y: 0, up: [], down: []});
      }
      path.push(b);
      for (let k = 1; k < path.length; ++k) {
        boxes[path[k]].up.push(path[k - 1]);
        boxes[path[k - 1]].down.push(path[k]);
      }
      lines.push(path);
    }
    const layers = [];
    boxes.forEach((box, i) => (layers[box.layer] ??= []).push(i));
    for (let l = 0; l < layers.length; ++l) layers[l] ??= [];
    this.sortLayers(boxes, layers);
    this.placeAcross(boxes, layers);
    let y = 0;
    layers.forEach((layer) => {
      const height = Math.max(0, ...layer.map((i) => boxes[i].h));
      for (const i of layer) {
        boxes[i].top = y;
        boxes[i].bottom = y + height;
        boxes[i].y = y + (height - boxes[i].h) / 2;
      }
      if (layer.length) y += height + GraphLayout.kGapY;
    });
    const left = GraphLayout.least(boxes.map((box) => box.x - box.l));
    for (const box of boxes) box.x -= left;
    const paths = lines.map((path) => path.flatMap((i, k) => {
      const box = boxes[i];
      const x = box.x;
      // Lines from outside a group begin and end at its border.
      if (k === 0) return [[x, box.item === -1 ? -GraphLayout.kTitle : box.y + box.h]];
      if (k === path.length - 1) return [[x, box.item === -1 ? box.y + GraphLayout.kMargin : box.y]];
      return [[x, box.top], [x, box.bottom]];
    }));
    return {
      boxes: boxes.filter((box) => box.item >= 0), paths, ends: lines.map((path) => [boxes[path[0]].item, boxes[path.at(-1)].item]), far,
      w: Math.max(1, GraphLayout.most(boxes.map((box) => box.x + box.r))), h: Math.max(0, y - GraphLayout.kGapY),
      port: number > 0 ? boxes[this.items[number].length].x : 0,
    };
  }

  sortLayers(boxes, layers) {
    const place = new Float64Array(boxes.length);
    const number = (layer) => layer.forEach((i, k) => { place[i] = k; });
    layers.forEach(number);
    const mean = (list) => list.reduce((sum, i) => sum + place[i], 0) / list.length;
    const sort = (layer, side) => {
      const key = new Map(layer.map((i) => [i, boxes[i][side].length ? mean(boxes[i][side]) : place[i]]));
      layer.sort((a, b) => key.get(a) - key.get(b) || place[a] - place[b]);
      number(layer);
    };
    for (let round = 0; round < 4; ++round) {
      for (let l = 1; l < layers.length; ++l) sort(layers[l], "up");
      for (let l = layers.length - 2; l >= 0; --l) sort(layers[l], "down");
    }
  }

  // Brandes and Koepf, Fast and Simple Horizontal Coordinate Assignment (2001): boxes are aligned with the
  // median of their neighbours above or below, from the left or from the right, and aligned boxes share a
  // coordinate. The result is the mean of the two middle ones of these four.
  placeAcross(boxes, layers) {
    const place = new Int32Array(boxes.length);
    for (const layer of layers) layer.forEach((i, k) => { place[i] = k; });
    const runs = [];
    for (const down of [true, false])
      for (const left of [true, false]) runs.push(this.align(boxes, layers, place, down, left));
    const widths = runs.map((run) => GraphLayout.most(run) - GraphLayout.least(run));
    const narrow = runs[widths.indexOf(GraphLayout.least(widths))];
    const low = GraphLayout.least(narrow), high = GraphLayout.most(narrow);
    runs.forEach((run, r) => {
      const shift = r % 2 ? high - GraphLayout.most(run) : low - GraphLayout.least(run);
      for (let i = 0; i < run.length; ++i) run[i] += shift;
    });
    boxes.forEach((box, i) => {
      const four = runs.map((run) => run[i]).sort((a, b) => a - b);
      box.x = (four[1] + four[2]) / 2;
    });
  }

  align(boxes, layers, place, down, left) {
    const side = down ? "up" : "down";
    const order = down ? layers : [...layers].reverse();
    const root = Int32Array.from(boxes.keys());
    const next = Int32Array.from(boxes.keys());  // of a chain of aligned boxes; the last one names the first
    for (const layer of order) {
      let bound = left ? -1 : Infinity;
      for (const i of left ? layer : [...layer].reverse()) {
        const near = [...boxes[i][side]].sort((a, b) => place[a] - place[b]);
        const middle = (near.length - 1) / 2;
        const medians = [...new Set([Math.floor(middle), Math.ceil(middle)])].filter((m) => m >= 0);
        if (!left) medians.reverse();
        for (const m of medians) {
          const other = near[m];
          if (next[i] !== i || !(left ? place[other] > bound : place[other] < bound)) continue;
          next[other] = i;
          root[i] = root[other];
          next[i] = root[i];
          bound = place[other];
        }
      }
    }
    // Chains from left to right, each as close to its neighbours as their widths allow.
    const x = new Float64Array(boxes.length);
    const chains = boxes.map(() => []);
    boxes.forEach((box, i) => chains[root[i]].push(i));
    const waiting = new Int32Array(boxes.length), after = boxes.map(() => []);
    for (const layer of layers)
      for (let k = 1; k < layer.length; ++k) {
        const [a, b] = left ? [layer[k - 1], layer[k]] : [layer[k], layer[k - 1]];
        after[root[a]].push([root[b], (left ? boxes[a].r + boxes[b].l : boxes[a].l + boxes[b].r) + GraphLayout.kGapX]);
        ++waiting[root[b]];
      }
    const ready = [...boxes.keys()].filter((i) => root[i] === i && !waiting[i]);
    while (ready.length) {
      const a = ready.pop();
      for (const [b, gap] of after[a]) {
        x[b] = Math.max(x[b], x[a] + gap);
        if (!--waiting[b]) ready.push(b);
      }
    }
    return Float64Array.from(boxes, (box, i) => left ? x[root[i]] : -x[root[i]]);
  }

  // All visible boxes and lines, in absolute coordinates; far: pairs of visible items.
  visible() {
    const boxes = [], lines = [], far = [];
    const add = (number, dx, dy, depth) => {
      const level = this.level(number);
      for (const box of level.boxes) {
        const at = {item: box.item, x: dx + box.x - box.l, y: dy + box.y, w: box.l + box.r, h: box.h, port: dx + box.x, depth, open: !!box.level};
        boxes.push(at);
        if (box.level) add(box.item - this.data.nodes.length + 1, at.x + GraphLayout.kMargin, at.y + GraphLayout.kTitle, depth + 1);
      }
      level.paths.forEach((path, i) => lines.push({ends: level.ends[i], path: path.map(([x, y]) => [dx + x, dy + y])}));
      far.push(...level.far);
    };
    add(0, 0, 0, 0);
    const whole = this.level(0);
    return {boxes, lines, far, w: whole.w, h: whole.h};
  }
}
