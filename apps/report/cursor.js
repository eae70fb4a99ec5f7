// The cursor that pointer and arrow keys move in all charts at once; dragging zooms in.
function nearest(l, at, wanted) {
  let best = -1;
  l.x.forEach((x, i) => {
    if (at.inside(x) && at.visible(l.drawn[i]) &&
        (best < 0 || Math.abs(x - wanted) < Math.abs(l.x[best] - wanted)))
      best = i;
  });
  return best;
}
function point(chart, wanted) {
  const {svg, at, drawn, values} = chart;
  svg.querySelector(".cursor")?.remove();
  const speaks = !shared || shared.chart === chart;  // of several charts with one legend the one pointed at
  if (speaks) values.forEach(v => v.textContent = "");
  if (wanted === null) return;
  const g = make("g", {class: "cursor"}), x = at.X(wanted);
  g.append(make("line", {class: "mark", x1: x, x2: x, y1: at.T, y2: at.H - at.B}));
  drawn.forEach((l, n) => {
    const i = nearest(l, at, wanted);
    if (i < 0) return;
    g.append(make("circle", {cx: at.X(l.x[i]), cy: at.Y(l.drawn[i]), r: 4, style: `fill: ${l.color}`}));
    const low = l.rows[l.key + "_min"]?.[i], high = l.rows[l.key + "_max"]?.[i];
    if (speaks) values[n].textContent = chart.scale.show(l.drawn[i]) +
        (known(low) && known(high) ? ` (${chart.scale.show(low)} to ${chart.scale.show(high)})` : "");
  });
  const label = axes[view.axis].show(wanted), wide = 7 * label.length + 12;
  const left = Math.min(Math.max(x - wide / 2, 0), at.W - wide);
  g.append(
      make("rect", {class: "plate", x: left, y: at.H - at.B + 5, width: wide, height: 20, rx: 5}),
      make("text", {class: "said", x: left + wide / 2, y: at.H - 8, "text-anchor": "middle"}, label));
  if (shared && speaks) nameLine(chart, g);
  svg.append(g);
}
// Names what is highlighted beside the cursor, because the legend may be out of sight.
function nameLine(chart, g) {
  const n = chart.drawn.findIndex(l => l.name === shared.lit);
  if (n < 0) return;
  const said = `${chart.drawn[n].name}  ${chart.values[n].textContent}`;
  g.append(
      make("rect", {class: "plate", x: chart.at.L + 4, y: chart.at.T, width: 6.6 * said.length + 14, height: 22, rx: 5}),
      make("text", {class: "said", x: chart.at.L + 11, y: chart.at.T + 15}, said));
}
// The line nearest to the pointer; null if none is near.
function lineAt(chart, wanted, y) {
  let best = null, least = 16;
  for (const l of chart.drawn) {
    const i = nearest(l, chart.at, wanted), away = i < 0 ? Infinity : Math.abs(chart.at.Y(l.drawn[i]) - y);
    if (away < least) [best, least] = [l, away];
  }
  return best;
}
let cursor = null;
function pointAll(x, chart) {
  cursor = x;
  if (shared && chart) shared.chart = chart;
  charts.forEach(c => point(c, x));
}
// The positions a cursor stops at: those of the line with the most points.
function stops(chart) {
  const xs = chart.drawn.map(l => l.x.filter((x, i) => chart.at.inside(x) && chart.at.visible(l.drawn[i])));
  return xs.reduce((a, b) => b.length > a.length ? b : a, []);
}
function followPointer(chart) {
  const {svg, at} = chart;
  const positionOf = event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * at.W / box.width;
    const v = at.from + (x - at.L) / (at.W - at.L - at.R) * (at.to - at.from);
    return Math.min(at.to, Math.max(at.from, v));
  };
  let pressed = null, marked = null;
  svg.addEventListener("pointerleave", () => {
    if (pressed !== null) return;
    if (shared) highlight(null);
    pointAll(null, chart);
  });
  svg.addEventListener("pointerdown", event => {
    pressed = positionOf(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", event => {
    const x = positionOf(event), all = stops(chart);
    const box = svg.getBoundingClientRect();
    if (shared) highlight(lineAt(chart, x, (event.clientY - box.top) * at.H / box.height)?.name ?? null);
    if (all.length) pointAll(all.reduce((a, b) => Math.abs(b - x) < Math.abs(a - x) ? b : a), chart);
    if (pressed === null) return;
    marked?.remove();
    marked = make("rect", {
      class: "marked",
      x: Math.min(at.X(pressed), at.X(x)),
      y: at.T,
      width: Math.abs(at.X(x) - at.X(pressed)),
      height: at.H - at.T - at.B
    });
    svg.append(marked);
  });
  svg.addEventListener("pointerup", event => {
    const x = positionOf(event), from = pressed;
    pressed = null;
    marked?.remove();
    if (from !== null && Math.abs(at.X(x) - at.X(from)) > 8) zoom([Math.min(from, x), Math.max(from, x)]);
  });
  svg.addEventListener("dblclick", () => zoom(null));
  svg.addEventListener("blur", () => pointAll(null));
  svg.addEventListener("keydown", event => {
    const all = stops(chart), big = event.shiftKey ? 10 : 1;
    const here = cursor === null ? -1 : all.findIndex(x => x >= cursor - 1e-12);
    const to = {
      ArrowRight: here + big,
      ArrowLeft: here < 0 ? all.length - 1 : here - big,
      Home: 0,
      End: all.length - 1
    }[event.key];
    if (event.key === "Escape") view.window ? zoom(null) : pointAll(null);
    if (to === undefined || !all.length) return;
    event.preventDefault();
    pointAll(all[Math.min(all.length - 1, Math.max(0, to))], chart);
  });
}
