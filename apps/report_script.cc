// The report's script: draws the curves as SVG and fills in the figures.
#include "apps/report_page.h"

namespace skein::apps {

const char kReportScript[] = R"script("use strict";
const run = JSON.parse(document.getElementById("data").textContent);
const tones = ["var(--a)", "var(--b)", "var(--c)", "var(--d)", "var(--e)", "var(--g)", "var(--f)"];
const view = { axis: "epoch", scale: "linear", smooth: "on" };
const byId = id => document.getElementById(id);
const known = v => typeof v === "number";
const make = (tag, attributes, ...children) => {
  const svg = ["svg", "path", "line", "text", "g", "circle", "rect", "clipPath", "title"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const trim = s => s.includes(".") ? s.replace(/\.?0+$/, "") : s;
function number(v) {
  if (!known(v)) return "\u2013";
  const a = Math.abs(v);
  if (a >= 10000) return Math.round(v).toLocaleString("en-US");
  if (a !== 0 && a < 0.001) return v.toExponential(1);
  return trim(a >= 100 ? v.toFixed(0) : a >= 10 ? v.toFixed(1) : a >= 1 ? v.toFixed(2) : v.toFixed(4));
}
const percent = v => known(v) ? v.toFixed(v > 99.95 && v < 100 ? 2 : 1) + "\u202f%" : "\u2013";
function duration(s) {
  if (!known(s)) return "\u2013";
  if (s === 0) return "0";
  if (s < 60) return (s < 10 ? s.toFixed(1) : Math.round(s)) + "\u202fs";
  const two = n => String(n).padStart(2, "0");
  s = Math.round(s);
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}\u202fmin`
                  : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}\u202fh`;
}
function bytes(n) {
  for (const unit of ["bytes", "kB", "MB", "GB"]) {
    if (n < 1000) return number(n) + "\u202f" + unit;
    n /= 1000;
  }
  return number(n) + "\u202fTB";
}

// ---- the four curves, and more where there are peers
const step = run.series.step, test = run.series.eval;
const line = (name, rows, key, tone, more) => ({ name, rows, key, tone, ...more });
const charts = [
  { title: "Loss", show: number, log: true, lines: [
    line("train", step, "loss", 0, { smooth: true }), line("test", test, "loss", 1, { dots: true })] },
  { title: "Top-1 accuracy", show: percent, lines: [
    line("train", step, "top1", 0, { smooth: true }), line("test", test, "top1", 1, { dots: true }),
    line("workers", test, "worker_top1", 3, { dots: true })] },
  { title: "Learning rate", show: number, zero: true, lines: [line("rate", step, "learning_rate", 3)] },
  { title: "Images per second", show: number, zero: true, lines: [
    line(run.workers > 1 ? "all workers" : "training", step, "images_per_second", 2, { smooth: true })] },
  { title: "Consensus distance", show: number, log: true, zero: true, lines: [
    line("between workers", test, "consensus_distance", 4, { dots: true })] },
  { title: "Waiting", show: v => percent(100 * v), zero: true, peersOnly: true, lines: [
    line("for data", step, "data_wait", 4, { smooth: true }), line("for peers", step, "peer_wait", 3, { smooth: true })] },
];
const filled = l => l.rows && l.rows[l.key] && l.rows[l.key].some(known);

// A straight line through the neighbors of each point, near ones counting more: it neither lags behind a steep
// start nor follows the noise of the last value.
function smoothed(values) {
  const reach = Math.max(3, Math.round(values.length / 40));
  return values.map((v, i) => {
    if (!known(v)) return null;
    let w0 = 0, w1 = 0, w2 = 0, y0 = 0, y1 = 0;
    for (let j = Math.max(0, i - reach); j <= Math.min(values.length - 1, i + reach); ++j) {
      if (!known(values[j])) continue;
      const d = j - i, w = 1 - Math.abs(d) / (reach + 1);
      w0 += w; w1 += w * d; w2 += w * d * d; y0 += w * values[j]; y1 += w * d * values[j];
    }
    const spread = w0 * w2 - w1 * w1;
    return spread > 1e-9 ? (w2 * y0 - w1 * y1) / spread : y0 / w0;
  });
}

function strideOf(span, wanted) {
  const raw = span / wanted, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw * 0.999);
}
function ticks(low, high, wanted) {
  const stride = strideOf(high - low, wanted), all = [];
  for (let i = Math.ceil(low / stride - 1e-9); i * stride <= high + stride * 1e-9; ++i) all.push(i * stride);
  return all;
}
// Ticks of a clock fall on whole minutes or hours.
function clockTicks(high, wanted) {
  const stride = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800]
    .find(s => high / s <= wanted) || Math.ceil(high / wanted / 604800) * 604800;
  const all = [];
  for (let t = 0; t <= high * 1.000001; t += stride) all.push(t);
  return all;
}
function logTicks(low, high) {
  const all = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); ++p)
    for (const m of high / low > 300 ? [1] : high / low > 12 ? [1, 2, 5] : [1, 2, 3, 5, 7]) {
      const v = m * 10 ** p;
      if (v >= low * 0.999 && v <= high * 1.001) all.push(v);
    }
  return all;
}

// The range of a chart holds all that is drawn boldly, and of the faint curves and bands all but the wildest;
// it begins and ends at a tick.
function range(lines, chart, log) {
  const fits = v => known(v) && (!log || v > 0);
  const bold = lines.flatMap(l => l.drawn.filter(fits));
  if (!bold.length) return [0, 1];
  let low = bold.reduce((a, b) => Math.min(a, b)), high = bold.reduce((a, b) => Math.max(a, b));
  for (const l of lines)
    for (const key of [l.key, l.key + "_min", l.key + "_max"]) {
      const faint = (l.rows[key] || []).filter(fits).sort((a, b) => a - b);
      if (!faint.length) continue;
      low = Math.min(low, faint[Math.floor(0.01 * faint.length)]);
      high = Math.max(high, faint[Math.floor(0.99 * faint.length)]);
    }
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
  if (chart.zero || chart.show !== percent && low > 0 && low < 0.45 * high) low = Math.min(0, low);
  if (low === high) return low === 0 ? [0, 1] : [Math.min(0, low), Math.max(0, low) * 1.2];
  const stride = strideOf(high - low, 5), snug = 0.02 * (high - low);
  low = Math.floor((low + snug) / stride) * stride;
  high = Math.ceil((high - snug) / stride) * stride;
  return chart.show === percent ? [Math.max(0, low), Math.min(100, high)] : [low, high];
}

const axes = {
  epoch: { name: "epoch", show: v => trim(v.toFixed(2)) },
  step: { name: "step", show: v => Math.round(v).toLocaleString("en-US") },
  seconds: { name: "time", show: duration },
};

function draw(card, chart) {
  const lines = chart.lines.filter(filled).map(l => {
    const y = l.rows[l.key], x = l.rows[view.axis];
    return { ...l, x, y, drawn: l.smooth && view.smooth === "on" && y.length > 60 ? smoothed(y) : y };
  });
  const log = chart.log && view.scale === "log" && lines.some(l => l.y.some(v => known(v) && v > 0));
  const W = Math.max(280, card.clientWidth - 28), H = 236, L = 52, R = 12, T = 10, B = 28;
  const [low, high] = range(lines, chart, log);
  const end = Math.max(...lines.map(l => l.x[l.x.length - 1] || 0), 1e-9);
  const f = log ? Math.log : v => v;
  const X = v => L + (W - L - R) * v / end;
  const Y = v => H - B - (H - T - B) * (f(v) - f(low)) / (f(high) - f(low));
  const visible = v => known(v) && (!log || v > 0);
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": chart.title });
  const clip = "clip-" + chart.title.replace(/\W/g, "");
  svg.append(make("clipPath", { id: clip }, make("rect", { x: L, y: T - 4, width: W - L - R + 8, height: H - T - B + 5 })));
  for (const v of log ? logTicks(low, high) : ticks(low, high, 5)) {
    svg.append(make("line", { class: "grid", x1: L, x2: W - R, y1: Y(v), y2: Y(v) }),
               make("text", { x: L - 8, y: Y(v) + 4, "text-anchor": "end" }, chart.show(v).replace(/\.0(?=\u202f)/, "")));
  }
  const marks = view.axis === "seconds" ? clockTicks(end, 6) : ticks(0, end, 6);
  for (const v of marks)
    svg.append(make("text", { x: X(v), y: H - 8, "text-anchor": X(v) > W - 30 ? "end" : "middle" }, axes[view.axis].show(v)));
  svg.append(make("text", { x: L - 20, y: H - 8, "text-anchor": "end" }, axes[view.axis].name));
  const plot = make("g", { "clip-path": `url(#${clip})` });
  for (const r of run.resumes)
    plot.append(make("line", { class: "mark", x1: X(r[view.axis]), x2: X(r[view.axis]), y1: T, y2: H - B },
                     make("title", {}, "resumed")));
  const path = (x, y) => {
    let d = "", pen = "M";
    y.forEach((v, i) => {
      if (!visible(v) || !known(x[i])) { pen = "M"; return; }
      d += `${pen}${X(x[i]).toFixed(1)} ${Y(v).toFixed(1)}`;
      pen = "L";
    });
    return d;
  };
  for (const l of lines) {
    const stroke = `stroke: ${tones[l.tone]}`, low = l.rows[l.key + "_min"], high = l.rows[l.key + "_max"];
    if (low && high) {
      const both = l.x.map((x, i) => i).filter(i => visible(low[i]) && visible(high[i]) && known(l.x[i]));
      const edge = (values, order) => order.map(i => `${X(l.x[i]).toFixed(1)} ${Y(values[i]).toFixed(1)}`).join("L");
      if (both.length > 1)
        plot.append(make("path", { class: "band", style: `fill: ${tones[l.tone]}`,
                                   d: `M${edge(high, both)}L${edge(low, [...both].reverse())}Z` }));
    }
    if (l.drawn !== l.y) plot.append(make("path", { class: "raw", style: stroke, d: path(l.x, l.y) }));
    plot.append(make("path", { class: "curve", style: stroke, d: path(l.x, l.drawn), "data-line": l.name }));
    if (l.dots && l.y.length < 60)
      l.y.forEach((v, i) => visible(v) && plot.append(
        make("circle", { cx: X(l.x[i]).toFixed(1), cy: Y(v).toFixed(1), r: 3, style: `fill: ${tones[l.tone]}` })));
  }
  svg.append(plot);
  const key = make("div", { class: "key" });
  for (const l of lines) key.append(make("span", { style: `--tone: ${tones[l.tone]}` }, l.name));
  const tip = make("div", { class: "tip" });
  card.replaceChildren(make("div", { class: "top" }, make("h2", {}, chart.title), key), svg, tip);
  hover(card, svg, tip, lines, chart, { X, Y, W, H, T, B, L, end, visible });
}

function hover(card, svg, tip, lines, chart, at) {
  const rule = make("line", { class: "mark", y1: at.T, y2: at.H - at.B, visibility: "hidden" });
  const spots = lines.map(l => make("circle", { r: 4, style: `fill: ${tones[l.tone]}`, visibility: "hidden" }));
  svg.append(rule, ...spots);
  const leave = () => {
    tip.style.display = "none";
    for (const e of [rule, ...spots]) e.setAttribute("visibility", "hidden");
  };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * at.W / box.width;
    const wanted = (x - at.X(0)) / (at.X(at.end) - at.X(0)) * at.end;
    if (wanted < -0.02 * at.end || !lines.length) return leave();
    let where = null;
    const rows = lines.map((l, n) => {
      let best = -1;
      l.x.forEach((v, i) => {
        if (at.visible(l.drawn[i]) && (best < 0 || Math.abs(v - wanted) < Math.abs(l.x[best] - wanted))) best = i;
      });
      if (best < 0) return null;
      if (where === null) where = l.x[best];
      spots[n].setAttribute("cx", at.X(l.x[best]));
      spots[n].setAttribute("cy", at.Y(l.drawn[best]));
      spots[n].setAttribute("visibility", "visible");
      const value = make("b", {}, chart.show(l.drawn[best]));
      return make("div", { style: `--tone: ${tones[l.tone]}` }, l.name + " ", value);
    }).filter(r => r);
    if (where === null) return leave();
    rule.setAttribute("x1", at.X(where));
    rule.setAttribute("x2", at.X(where));
    rule.setAttribute("visibility", "visible");
    tip.replaceChildren(`${axes[view.axis].name} ${axes[view.axis].show(where)}`, ...rows);
    tip.style.display = "block";
    const left = box.left - card.getBoundingClientRect().left + at.X(where) * box.width / at.W;
    const flip = left + tip.offsetWidth + 20 > card.clientWidth;
    tip.style.left = (flip ? left - tip.offsetWidth - 12 : left + 12) + "px";
    tip.style.top = "44px";
  });
}
)script"
                             R"script(
// ---- the page
function buttons(id, options, key) {
  const box = byId(id);
  for (const [value, label] of options) {
    const b = make("button", { type: "button", "aria-pressed": view[key] === value }, label);
    b.addEventListener("click", () => {
      view[key] = value;
      for (const other of box.children) other.setAttribute("aria-pressed", other === b);
      redraw();
    });
    box.append(b);
  }
}
const shown = charts.filter(c => c.lines.some(filled) && (!c.peersOnly || run.workers > 1));
const cards = shown.map(() => make("div", { class: "card chart" }));
const redraw = () => shown.forEach((c, i) => draw(cards[i], c));

function tiles() {
  const s = run.summary, last = rows => key => rows && rows[key] ? rows[key].filter(known).at(-1) : undefined;
  const top1 = s.top1 ?? last(test)("top1"), best = s.best_top1;
  const all = [
    ["test top-1", percent(top1), known(best) && best > top1 + 0.005 ? `best ${percent(best)}` : ""],
    ["test top-5", percent(s.top5 ?? last(test)("top5")), ""],
    ["test loss", number(s.loss ?? last(test)("loss")), ""],
    ["images / s", number(s.images_per_second || last(step)("images_per_second")),
     run.workers > 1 ? `${run.workers} workers` : ""],
    ["time", duration(s.seconds ?? last(step)("seconds")), ""],
    ["steps", number(s.steps ?? last(step)("step")), known(s.epochs) ? `${trim(s.epochs.toFixed(2))} epochs` : ""],
  ];
  if (s.parameters) all.push(["parameters", s.parameters.toLocaleString("en-US"), ""]);
  for (const [name, value, note] of all.filter(t => t[1] !== "\u2013")) {
    const tile = make("div", { class: "card tile" }, make("span", {}, name), make("b", {}, value));
    if (note) tile.append(make("i", {}, note));
    byId("tiles").append(tile);
  }
}

function time() {
  const work = Object.entries(run.summary.seconds_by_work || {}).filter(([, s]) => s > 0);
  const named = work.reduce((sum, [, s]) => sum + s, 0), total = Math.max(named, run.summary.seconds || 0);
  if (!named) return;
  if (total > 1.005 * named) work.push(["other", total - named]);
  const split = make("div", { class: "split" }), legend = make("div", { class: "legend" });
  work.forEach(([name, seconds], i) => {
    const tone = `--tone: ${name === "other" ? "var(--line)" : tones[i % tones.length]}`;
    split.append(make("div", { style: `${tone}; flex: ${seconds / total}`, title: name }));
    legend.append(make("div", { style: tone }, name.replaceAll("_", " "),
                       make("b", {}, `${duration(seconds)}  \u00b7  ${percent(100 * seconds / total)}`)));
  });
  byId("time").append(make("div", { class: "bar" }, make("h2", {}, "Where the time went")),
                      make("div", { class: "card" }, split, legend));
}

// A bar for each worker, as long as its shard, in the colors of its classes; beyond twenty classes they share colors.
function shards() {
  const { classes, labels } = run.summary.shards || {};
  if (!classes || !labels) return;
  const hue = c => `--tone: hsl(${Math.round(360 * c / Math.min(classes.length, 20)) % 360} 58% ${c % 2 ? 62 : 50}%)`;
  const sizes = labels.map(l => l.reduce((a, b) => a + b, 0)), most = Math.max(...sizes);
  const card = make("div", { class: "card shards" });
  labels.forEach((counts, worker) => {
    const bar = make("div", { class: "split", style: `width: ${100 * sizes[worker] / most}%` });
    counts.forEach((n, c) => n && bar.append(
      make("div", { style: `${hue(c)}; flex: ${n}`, title: `${classes[c]}: ${n.toLocaleString("en-US")}` })));
    card.append(make("div", { class: "shard" }, make("span", {}, `worker ${worker}`), bar,
                     make("b", {}, sizes[worker].toLocaleString("en-US"))));
  });
  if (classes.length <= 20) {
    const legend = make("div", { class: "legend" });
    classes.forEach((name, c) => legend.append(make("div", { style: hue(c) }, name)));
    card.append(legend);
  }
  byId("shards").append(make("div", { class: "bar" }, make("h2", {}, "Images of each worker, by class")), card);
}

function facts() {
  const s = run.summary, own = {};
  if (s.hash) own["parameter hash"] = s.hash;
  if (known(s.consensus_distance)) own["consensus distance"] = number(s.consensus_distance);
  if (known(s.hidden_share)) own["hidden share of transfers"] = percent(100 * s.hidden_share);
  if (known(s.bytes_per_step)) own["sent per step and worker"] = bytes(s.bytes_per_step);
  if (s.unreadable) own["unreadable images"] = `${s.unreadable}, skipped: ${(s.unreadable_names || []).join(", ")}`;
  for (const [title, values] of [["Configuration", run.config], ["Environment", { ...run.environment, ...own }]]) {
    const rows = Object.entries(values || {});
    if (!rows.length) continue;
    const table = make("table");
    for (const [k, v] of rows)
      table.append(make("tr", {}, make("td", {}, k.replaceAll("_", " ")),
                        make("td", {}, v !== null && typeof v === "object" ? JSON.stringify(v) : String(v))));
    byId("facts").append(make("div", { class: "card" }, make("h2", {}, title), table));
  }
}

byId("state").textContent = run.state;
byId("state").classList.add(run.state);
byId("sub").textContent = run.subtitle;
byId("foot").textContent = `Skein ${run.version}. Made from metrics.jsonl and summary.json.` +
  (run.resumes.length ? " A dashed line marks where training resumed from a checkpoint." : "");
byId("charts").append(...cards);
buttons("smooth", [["on", "smooth"], ["off", "raw"]], "smooth");
buttons("scale", [["linear", "linear"], ["log", "log"]], "scale");
buttons("axis", [["epoch", "epoch"], ["step", "step"], ["seconds", "time"]], "axis");
tiles();
redraw();
time();
shards();
facts();
let pending = 0;
addEventListener("resize", () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(redraw); });
)script";

}  // namespace skein::apps
