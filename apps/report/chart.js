// A chart: lines over one of the axes, as SVG.
const view = {
  axis: "epoch",
  scale: "linear",
  smooth: "on",
  window: null
};
const charts = [];
let shared = null;  // the legend of all charts, where they have one together (legend.js)
const kBeyond = 8;  // pixels above and below the ticks that values, and the dots at them, may reach
const kFewLines = 3;  // of more, the unsmoothed values would hide each other

// rows: columns of a series; a line without values is left out.
const line = (name, rows, key, i, more) => ({name, rows, key, color: tone(i), dash: dashes(i), ...more});
const filled = l => l.rows && l.rows[l.key] && l.rows[l.key].some(known);
const measured = (l, axis) => l.rows[axis] && l.rows[axis].some(known);

// A straight line is fitted to the neighbors of each point, weighted by nearness: it neither lags behind a
// steep start nor follows the noise of the last value.
function smoothed(values) {
  const reach = Math.max(3, Math.round(values.length / 40));
  return values.map((v, i) => {
    if (!known(v)) return null;
    let w0 = 0, w1 = 0, w2 = 0, y0 = 0, y1 = 0;
    for (let j = Math.max(0, i - reach); j <= Math.min(values.length - 1, i + reach); ++j) {
      if (!known(values[j])) continue;
      const d = j - i, w = 1 - Math.abs(d) / (reach + 1);
      w0 += w;
      w1 += w * d;
      w2 += w * d * d;
      y0 += w * values[j];
      y1 += w * d * values[j];
    }
    const spread = w0 * w2 - w1 * w1;
    return spread > 1e-9 ? (w2 * y0 - w1 * y1) / spread : y0 / w0;
  });
}

// The range of a chart covers everything drawn boldly, and all but the extremes of faint curves and bands;
// it starts and ends at a tick.
function rangeOf(lines, chart, log, inside) {
  const fits = v => known(v) && (!log || v > 0);
  const seen = (values, l) => values.filter((v, i) => fits(v) && inside(l.x[i]));
  const bold = lines.flatMap(l => seen(l.drawn, l));
  if (!bold.length) return [0, 1];
  let low = bold.reduce((a, b) => Math.min(a, b)), high = bold.reduce((a, b) => Math.max(a, b));
  for (const l of lines)
    for (const key of [...(lines.length > kFewLines ? [] : [l.key]), l.key + "_min", l.key + "_max"]) {
      const faint = seen(l.rows[key] || [], l).sort((a, b) => a - b);
      if (!faint.length) continue;
      low = Math.min(low, faint[Math.floor(0.01 * faint.length)]);
      high = Math.max(high, faint[Math.floor(0.99 * faint.length)]);
    }
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
  const {floor, ceiling} = chart.scale;
  if (chart.zero || floor === undefined && low > 0 && low < 0.45 * high) low = Math.min(0, low);
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(0, low), Math.max(0, low) * 1.2];
  const stride = strideOf(high - low, 5), snug = 0.02 * (high - low);
  low = Math.floor((low + snug) / stride) * stride;
  high = Math.ceil((high - snug) / stride) * stride;
  return [Math.max(floor ?? -Infinity, low), Math.min(ceiling ?? Infinity, high)];
}

function pathOf(l, values, at) {
  let d = "", pen = "M";
  values.forEach((v, i) => {
    if (!at.visible(v) || !known(l.x[i])) {
      pen = "M";
      return;
    }
    d += `${pen}${at.X(l.x[i]).toFixed(1)} ${at.Y(v).toFixed(1)}`;
    pen = "L";
  });
  return d;
}
function bandOf(l, at) {
  const low = l.rows[l.key + "_min"], high = l.rows[l.key + "_max"];
  if (!low || !high) return null;
  const both = l.x.map((x, i) => i).filter(i => at.visible(low[i]) && at.visible(high[i]) && known(l.x[i]));
  if (both.length < 2) return null;
  const edge = (values, order) =>
      order.map(i => `${at.X(l.x[i]).toFixed(1)} ${at.Y(values[i]).toFixed(1)}`).join("L");
  return make("path", {
    class: "band",
    style: `fill: ${l.color}`,
    d: `M${edge(high, both)}L${edge(low, [...both].reverse())}Z`
  });
}
function plotLine(plot, l, at) {
  const stroke = `stroke: ${l.color}`, faint = l.drawn !== l.y;
  const band = bandOf(l, at);
  if (band) plot.append(band);
  if (faint && at.few) plot.append(make("path", {class: "raw", style: stroke, d: pathOf(l, l.y, at)}));
  plot.append(make("path", {
    class: "curve",
    style: `${stroke}; stroke-dasharray: ${l.dash}`,
    d: pathOf(l, l.drawn, at),
    "data-line": l.name
  }));
  const few = l.y.filter(known).length;
  if (l.dots && few < 60 || few === 1)
    l.y.forEach(
        (v, i) => at.visible(v) && known(l.x[i]) &&
            plot.append(make(
                "circle",
                {cx: at.X(l.x[i]).toFixed(1), cy: at.Y(v).toFixed(1), r: 3, style: `fill: ${l.color}`, "data-run": l.name})));
}

function frameOf(chart, lines) {
  const W = Math.max(280, chart.card.clientWidth - 28), H = chart.tall ? 320 : 236, L = 56, R = 12, T = 10,
        B = 28;
  const log = chart.log && view.scale === "log" && lines.some(l => l.y.some(v => known(v) && v > 0));
  const end = Math.max(
      ...charts.flatMap(
          c => c.lines.filter(l => measured(l, view.axis))
                   .map(l => l.rows[view.axis].reduce((a, b) => known(b) ? Math.max(a, b) : a, 0))),
      1e-9);
  const [from, to] = view.window || [0, end];
  const inside = x => known(x) && x >= from && x <= to;
  const [low, high] = rangeOf(lines, chart, log, inside);
  const f = log ? Math.log : v => v;
  return {
    W,
    H,
    L,
    R,
    T,
    B,
    log,
    low,
    high,
    from,
    to,
    inside,
    few: lines.length <= kFewLines,
    X: v => L + (W - L - R) * (v - from) / (to - from),
    Y: v => H - B - (H - T - B) * (f(v) - f(low)) / (f(high) - f(low)),
    visible: v => known(v) && (!log || v > 0),
  };
}

function drawScales(svg, chart, at) {
  const {W, H, L, R, B} = at;
  for (const [v, label] of at.log ? logTicks(at.low, at.high, chart.scale.log || chart.scale.show) :
                                    chart.scale.ticks(at.low, at.high, chart.tall ? 7 : 5))
    svg.append(
        make("line", {class: "grid", x1: L, x2: W - R, y1: at.Y(v), y2: at.Y(v)}),
        make("text", {x: L - 8, y: at.Y(v) + 4, "text-anchor": "end"}, label));
  for (const [v, label] of axes[view.axis].ticks(at.from, at.to, W > 500 ? 7 : 5))
    svg.append(
        make("text", {x: at.X(v), y: H - 8, "text-anchor": at.X(v) > W - 30 ? "end" : "middle"}, label));
  svg.append(make("text", {class: "axis", x: 0, y: H - 8}, axes[view.axis].name));
}

function draw(chart) {
  const lines = chart.lines.filter(l => measured(l, view.axis)).map(l => {
    const y = l.rows[l.key];
    return {
      ...l,
      y,
      x: l.rows[view.axis],
      drawn: l.smooth && view.smooth === "on" && y.length > 60 ? smoothed(y) : y
    };
  });
  const at = frameOf(chart, lines), id = `clip-${charts.indexOf(chart)}`;
  const svg = make("svg", {
    viewBox: `0 0 ${at.W} ${at.H}`,
    role: "application",
    tabindex: 0,
    "aria-label": `${chart.title}; arrow keys read the values out`
  });
  svg.append(make(
      "clipPath", {id},
      make("rect", {
        x: at.L,
        y: at.T - kBeyond,
        width: at.W - at.L - at.R + 6,
        height: at.H - at.T - at.B + 2 * kBeyond
      })));
  drawScales(svg, chart, at);
  const plot = make("g", {"clip-path": `url(#${id})`});
  for (const r of chart.resumes || [])
    if (at.inside(r[view.axis]))
      plot.append(make(
          "line", {class: "mark", x1: at.X(r[view.axis]), x2: at.X(r[view.axis]), y1: at.T, y2: at.H - at.B},
          make("title", {}, "resumed")));
  lines.forEach(l => plotLine(plot, l, at));
  svg.append(plot);
  const key = make("div", {class: "key", "aria-live": "polite"});
  const values = lines.map(l => shared ? shared.values.get(l.name) : make("b"));
  if (!shared)
    lines.forEach((l, i) => key.append(make("span", {}, swatch(l.color, l.dash), l.name, values[i])));
  chart.card.replaceChildren(make("div", {class: "top"}, make("h2", {}, chart.title), key), svg);
  Object.assign(chart, {svg, at, drawn: lines, values});
  followPointer(chart);
}

function zoom(window) {
  view.window = window;
  redraw();
}
function redraw() {
  charts.forEach(draw);
  if (shared) highlight(shared.lit);
  byId("whole").hidden = !view.window;
}

// ---- what a page calls
function addChart(box, chart) {
  chart.lines = chart.lines.filter(filled);
  if (!chart.lines.length) return;
  chart.card = make("div", {class: chart.tall ? "card chart wide" : "card chart"});
  charts.push(chart);
  box.append(chart.card);
}
function buttons(id, options, key) {
  if (options.length < 2) return;
  const box = byId(id);
  for (const [value, label] of options) {
    const b = make("button", {type: "button", "aria-pressed": view[key] === value}, label);
    b.addEventListener("click", () => {
      view[key] = value;
      if (key === "axis") view.window = null;
      for (const other of box.children) other.setAttribute("aria-pressed", other === b);
      redraw();
    });
    box.append(b);
  }
}
// Draws all charts, with switches for their options.
function showCharts() {
  const any = axis => charts.some(c => c.lines.some(l => measured(l, axis)));
  const named =
      ["epoch", "step", "seconds", "bytes"].filter(any).map(a => [a, axes[a].title || axes[a].name]);
  if (named.length && !any(view.axis)) view.axis = named[0][0];
  buttons("smooth", [["on", "smooth"], ["off", "raw"]], "smooth");
  buttons("scale", [["linear", "linear"], ["log", "log"]], "scale");
  buttons("axis", named, "axis");
  byId("whole").addEventListener("click", () => zoom(null));
  redraw();
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redraw);
  });
}
