// Interactive figures: what `btcnb.book.interactive` and `btcnb.book.board` write becomes live here.
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const GREY = "#8a8a8a", OUTSIDE = "#b5b5b5";
  const SHOWN = 12;  // clusters listed, and members named in each
  let made = 0;

  function element(name, attributes, ...children) {
    const one = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => one.setAttribute(key, value));
    one.append(...children);
    return one;
  }

  function drawing(name, attributes, text) {
    const one = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => one.setAttribute(key, value));
    if (text !== undefined) one.textContent = text;
    return one;
  }

  function titled(one, text) {
    one.append(drawing("title", {}, text));
    return one;
  }

  function dataOf(root) {
    return JSON.parse(root.querySelector(":scope > script[type='application/json']").textContent);
  }

  // A range with a button at either side; show(position) paints and returns what is read out.
  function controls(root, title, count, start, [down, back, up, forth], show) {
    const id = "btcnb-range-" + ++made;
    const range = element("input", { id, type: "range", min: 0, max: count - 1, step: 1 });
    range.value = start;
    const output = element("output", { for: id });
    function move() {
      const said = show(Number(range.value));
      output.textContent = said;
      range.setAttribute("aria-valuetext", said);
    }
    function button(sign, name, step) {
      const one = element("button", { type: "button", "data-step": step, "aria-label": name }, sign);
      one.addEventListener("click", () => { range.value = Number(range.value) + step; move(); });
      return one;
    }
    range.addEventListener("input", move);
    const label = element("label", { for: id }, title + ": ", output);
    root.append(element("div", { class: "controls" }, label, button(down, back, -1), range, button(up, forth, 1)));
    move();
  }

  function slider(root) {
    const data = dataOf(root), frames = root.querySelectorAll(":scope > .frame");
    controls(root, root.getAttribute("aria-label"), frames.length, data.start,
      ["◀", "previous frame", "▶", "next frame"], (at) => {
        frames.forEach((frame, place) => { frame.hidden = place !== at; });
        return data.labels[at];
      });
  }

  // Every partition that a cut can give, from single leaves to one cluster: {threshold, cluster of each leaf, sizes}.
  function levels(data) {
    const heights = [...new Set(data.heights)], last = heights[heights.length - 1];
    const between = heights.slice(1).map((height, i) => (heights[i] + height) / 2);
    return [heights[0] / 2, ...between, last > 0 ? last * 1.04 : 1].map((threshold) => {
      const cluster = [0], sizes = [1];
      data.joined.forEach((height) => {
        if (height < threshold) sizes[sizes.length - 1] += 1;
        else sizes.push(1);
        cluster.push(sizes.length - 1);
      });
      return { threshold, cluster, sizes };
    });
  }

  function summary(level, data) {
    const many = level.sizes.length, above = data.heights.filter((height) => height >= level.threshold).length;
    return `λ = ${level.threshold.toFixed(3)}: ${many} cluster${many > 1 ? "s" : ""}, ` +
      `${above} ${above === 1 ? "merge" : "merges"} above the cut`;
  }

  // The clusters in words, largest first: number from the left, size, groups, members.
  function described(level, data) {
    const order = level.sizes.map((size, at) => at).sort((a, b) => level.sizes[b] - level.sizes[a] || a - b);
    const lines = order.slice(0, SHOWN).map((at) => {
      const inside = data.names.map((name, leaf) => leaf).filter((leaf) => level.cluster[leaf] === at);
      const members = inside.slice(0, SHOWN).map((leaf) => data.names[leaf]).join(", ") + (inside.length > SHOWN ? " …" : "");
      const counts = new Map();
      if (data.groups) inside.forEach((leaf) => counts.set(data.groups[leaf], (counts.get(data.groups[leaf]) || 0) + 1));
      const known = [...counts].sort((a, b) => b[1] - a[1]).map(([group, count]) => `${count} × ${group}`).join(", ");
      const leaves = inside.length === 1 ? "leaf" : "leaves";
      return `Cluster ${at + 1}, ${inside.length} ${leaves}${known ? ` [${known}]` : ""}: ${members}`;
    });
    if (order.length > SHOWN) lines.push(`… and ${order.length - SHOWN} smaller clusters`);
    return lines;
  }

  function dendrogram(root) {
    const data = dataOf(root), cuts = levels(data), n = data.names.length;
    const misses = (level) => data.heights.filter((height) => height < level.threshold !== height < data.cut).length;
    const start = cuts.reduce((best, level, at) => (misses(level) < misses(cuts[best]) ? at : best), 0);
    root.querySelectorAll(":scope > .frame").forEach((picture) => picture.remove());
    const tree = treeOf(data), graph = data.graph ? graphOf(data) : null;
    root.append(tree.svg, ...(graph ? [graph.svg] : []));
    const list = element("ul", { tabindex: 0, "aria-label": "clusters at this cut" });
    controls(root, root.getAttribute("aria-label"), cuts.length, start,
      ["▼", "lower the cut", "▲", "raise the cut"], (at) => {
        const level = cuts[at], colour = (leaf) => data.colours[level.cluster[leaf] % data.colours.length];
        tree.merges.forEach(({ path, height, leaf }) => {
          const below = height < level.threshold;
          path.setAttribute("stroke", below ? colour(leaf) : GREY);
          path.setAttribute("stroke-dasharray", below ? "none" : "5 3");
        });
        tree.leaves.forEach((dot, leaf) => dot.setAttribute("fill", colour(leaf)));
        if (graph) graph.nodes.forEach((dot, member) => dot.setAttribute("fill", colour(data.graph.leaves[member])));
        ["y1", "y2"].forEach((end) => tree.cut.setAttribute(end, tree.y(level.threshold)));
        list.replaceChildren(...described(level, data).map((line) => element("li", {}, line)));
        return summary(level, data);
      });
    root.append(list);

    function treeOf() {
      const width = 760, height = 330, left = 56, right = 10, top = 12, floor = height - 64;
      const highest = data.heights[data.heights.length - 1], step = (width - left - right) / n;
      const x = (scipys) => left + (step * scipys) / 10;
      const y = (value) => floor - ((floor - top) * value) / Math.max(highest * 1.08, 1e-9);
      const alt = `Dendrogram of ${n} leaves with a movable horizontal cut; the text below names the clusters`;
      const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": alt });
      const merges = data.x.map((at, m) => {
        const [a, b, , d] = data.y[m], d0 = `M${x(at[0])} ${y(a)}V${y(b)}H${x(at[2])}V${y(d)}`;
        const path = titled(drawing("path", { class: "merge", d: d0, fill: "none", "stroke-width": 1.8 }), `height ${b.toFixed(3)}`);
        svg.append(path);
        return { path, height: b, leaf: Math.floor(at[0] / 10) };
      });
      const groups = data.groups ? [...new Set(data.groups)].sort() : [];
      const radius = Math.min(4, step / 2.2);
      const leaves = data.names.map((name, leaf) => {
        const at = x(10 * leaf + 5), group = data.groups && data.groups[leaf];
        const dot = titled(drawing("circle", { class: "leaf", cx: at, cy: floor, r: radius }), group ? `${name}, ${group}` : name);
        svg.append(dot);
        if (group) {
          const fill = data.colours[groups.indexOf(group) % data.colours.length];
          svg.append(drawing("rect", { class: "owner", x: at - radius, y: floor + 6, width: 2 * radius, height: 2 * radius,
            fill, stroke: "currentColor", "stroke-width": 0.5 }));
        }
        if (step >= 7) svg.append(labelOf(at, group && step > 80 ? `${name} · ${group}` : group || name));
        return dot;
      });
      function labelOf(at, text) {
        const size = Math.min(11, step + 2), upright = step < Math.max(22, 0.62 * size * text.length);
        const transform = upright ? `translate(${at} ${floor + 18}) rotate(-90)` : `translate(${at} ${floor + 28})`;
        const anchor = upright ? "end" : "middle";
        return drawing("text", { transform, "text-anchor": anchor, "font-size": Math.round(size), fill: "currentColor" }, text);
      }
      [0, 1, 2, 3, 4].map((quarter) => (highest * quarter) / 4).forEach((tick) => svg.append(drawing("text",
        { x: left - 6, y: y(tick) + 4, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, tick.toFixed(2))));
      const middle = `translate(14 ${(floor + top) / 2}) rotate(-90)`;
      svg.append(drawing("text", { transform: middle, "text-anchor": "middle", "font-size": 12, fill: "currentColor" },
        "cosine distance of the merge"));
      const cut = drawing("line", { class: "cut", x1: left, x2: width - right, stroke: "currentColor", "stroke-width": 1.6,
        "stroke-dasharray": "2 3" });
      svg.append(cut);
      return { svg, merges, leaves, cut, y };
    }
  }

  // The cluster's members, numbered and painted like their leaves, and their neighbours in grey.
  function graphOf(data) {
    const width = 760, height = 420, margin = 18, { place, edges, leaves } = data.graph;
    const ends = [0, 1].map((axis) => [Math.min(...place.map((at) => at[axis])), Math.max(...place.map((at) => at[axis]))]);
    const scale = (value, axis, room) => margin + ((value - ends[axis][0]) / Math.max(ends[axis][1] - ends[axis][0], 1e-9)) * (room - 2 * margin);
    const at = place.map(([x, y]) => [scale(x, 0, width), scale(y, 1, height)]);
    const alt = `The cluster's ${leaves.length} addresses, numbered, and ${at.length - leaves.length} neighbours, grey`;
    const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": alt });
    edges.forEach(([a, b]) => svg.append(drawing("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1],
      stroke: "currentColor", "stroke-opacity": 0.3 })));
    at.slice(leaves.length).forEach(([cx, cy]) => svg.append(drawing("circle", { cx, cy, r: 3.5, fill: OUTSIDE })));
    const nodes = leaves.map((leaf, member) => {
      const [cx, cy] = at[member], named = data.names[leaf] + (data.groups ? `, ${data.groups[leaf]}` : "");
      const dot = titled(drawing("circle", { class: "node", cx, cy, r: 10, stroke: "currentColor" }), named);
      svg.append(dot, drawing("text", { x: cx, y: cy + 3.5, "text-anchor": "middle", "font-size": 11, fill: "#fff",
        stroke: "#222", "stroke-width": 2, "paint-order": "stroke", "pointer-events": "none" }, member));
      return dot;
    });
    return { svg, nodes };
  }

  function clusters(root) {
    const panels = root.querySelectorAll(":scope > .panel"), id = "btcnb-choice-" + ++made;
    const choice = element("select", { id }, ...dataOf(root).titles.map((title, at) => element("option", { value: at }, title)));
    const show = () => panels.forEach((panel, at) => { panel.hidden = at !== Number(choice.value); });
    choice.addEventListener("change", show);
    root.prepend(element("p", {}, element("label", { for: id }, "Cluster: "), choice));
    show();
  }

  function board(root) {
    const lists = root.querySelectorAll("select"), lines = root.querySelectorAll("tbody tr");
    const output = root.querySelector("output"), form = root.querySelector("form");
    function show() {
      let count = 0;
      lines.forEach((line) => {
        const kept = [...lists].every((list) => !list.value || line.dataset[list.name] === list.value);
        line.hidden = !kept;
        count += kept;
      });
      output.textContent = `${count} of ${lines.length} claims`;
    }
    lists.forEach((list) => list.addEventListener("change", show));
    root.querySelector("button").addEventListener("click", () => { form.reset(); show(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    show();
  }

  function start() {
    Object.entries({ slider, dendrogram, clusters, board }).forEach(([name, make]) => {
      document.querySelectorAll(`.btcnb-${name}:not([data-live])`).forEach((root) => {
        root.dataset.live = "";
        make(root);
      });
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
