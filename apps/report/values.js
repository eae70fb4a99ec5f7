// Formats values, and places the ticks of a scale.
"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const known = v => Number.isFinite(v);
const thin = "\u202f", none = "\u2013";

const inSvg = new Set(["svg", "path", "line", "text", "g", "circle", "rect", "clipPath", "title"]);
function make(tag, attributes, ...children) {
  const e = inSvg.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) :
                             document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// The colors of Okabe and Ito, which color-blind people can distinguish; dashes extend seven lines to 35.
const tone = i => `var(--c${i % 7})`;
const dashes = i => ["none", "9 5", "2 4", "10 4 2 4", "10 4 2 4 2 4"][Math.floor(i / 7) % 5];
// A piece of a line, for legends.
const swatch = (color, dash) => make(
    "svg", {class: "swatch", viewBox: "0 0 30 8", "aria-hidden": "true"},
    make("line", {x1: 1, x2: 29, y1: 4, y2: 4, style: `stroke: ${color}; stroke-dasharray: ${dash}`}));
const workTones = {
  data: 4,
  forward: 0,
  backward: 5,
  update: 2,
  compute: 0,
  evaluate: 3,
  evaluation: 3,
  average: 6,
  checkpoint: 6
};
const toneOfWork = name => name in workTones ? tone(workTones[name]) :
    name === "peers" || name === "waiting"   ? "var(--wait)" :
    name === "transfer"                      ? tone(1) :
    name === "other"                         ? "var(--line)" :
                                               "var(--rest)";
// Waiting is hatched to distinguish it from other grays.
const paintOfWork = name => name === "peers" || name === "waiting" ? {class: "hatched"} : {};

const trim = s => s.includes(".") ? s.replace(/\.?0+$/, "") : s;
const thousands = (v, digits = 0) =>
    v.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
function number(v) {
  if (!known(v)) return none;
  const a = Math.abs(v);
  if (a >= 1000) return thousands(v);
  if (a !== 0 && a < 0.001) return v.toExponential(2);
  return trim(a >= 100 ? v.toFixed(1) : a >= 10 ? v.toFixed(2) : a >= 1 ? v.toFixed(3) : v.toFixed(4));
}
const whole = v => known(v) ? thousands(Math.round(v)) : none;
// Millions have three digits: "11.2 M".
const count = v => !known(v) || v < 999500 ? whole(v) :
    v < 999.5e6                            ? (v / 1e6).toPrecision(3) + thin + "M" :
                                             (v / 1e9).toPrecision(3) + thin + "G";
const speed = v => known(v) && v < 99.95 ? v.toFixed(1) : count(v);  // images a second
// 99.96 must not be shown as 100.
const percent = v => known(v) ? v.toFixed(v > 99.95 && v < 100 ? 2 : 1) + thin + "%" : none;
function duration(s) {
  if (!known(s)) return none;
  if (s === 0) return "0" + thin + "s";
  if (s < 0.1) return trim((1000 * s).toPrecision(3)) + thin + "ms";
  if (s < 60) return (s < 10 ? trim(s.toFixed(2)) : trim(s.toFixed(1))) + thin + "s";
  const two = n => String(n).padStart(2, "0");
  s = Math.round(s);
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}${thin}min`;
  return s < 172800 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}${thin}h` :
                      `${trim((s / 86400).toFixed(1))}${thin}days`;
}
const unitsOfBytes = ["bytes", "kB", "MB", "GB", "TB", "PB"];
const unitOf = n =>
    Math.min(unitsOfBytes.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(n, 1)) / 3 + 1e-9)));
function bytes(n) {
  if (!known(n)) return none;
  const u = unitOf(n), v = n / 1000 ** u;
  return (u === 0 ? whole(v) : trim(v.toPrecision(3))) + thin + unitsOfBytes[u];
}

// ---- ticks: [value, label] each; labels have enough digits to distinguish neighbors
const digitsOf = stride => {
  for (let d = 0; d < 12; ++d)
    if (Math.abs(stride * 10 ** d - Math.round(stride * 10 ** d)) < 1e-6 * 10 ** d * stride) return d;
  return 12;
};
function strideOf(span, wanted, least = 0) {
  const raw = Math.max(span / wanted, 1e-300), power = 10 ** Math.floor(Math.log10(raw));
  return Math.max(least, [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw * 0.999));
}
function linearTicks(low, high, wanted, least, label = v => v) {
  const stride = strideOf(high - low, wanted, least), all = [], tiny = high < 1e-4 && low > -1e-4;
  const written = v =>
      tiny && v ? Number(v.toPrecision(6)).toExponential() : thousands(v, tiny ? 0 : digitsOf(stride));
  for (let i = Math.ceil(low / stride - 1e-9); i * stride <= high + stride * 1e-9; ++i)
    all.push([i * stride, label(written(i * stride || 0))]);
  return all;
}
function bytesTicks(low, high, wanted) {
  const u = unitOf(high), scale = 1000 ** u;
  return linearTicks(low / scale, high / scale, wanted, 0, s => s + thin + unitsOfBytes[u])
      .map(([v, label]) => [v * scale, label]);
}
// Ticks of a clock fall on whole seconds, minutes or hours.
function clockTicks(low, high, wanted) {
  const span = high - low;
  if (span < 4) return linearTicks(low, high, wanted, 0, s => s + thin + "s");
  const stride =
      [
        1,   2,    5,    10,   15,    30,    60,    120,   300,    600,
        900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800
      ].find(s => span / s <= wanted) ||
      Math.ceil(span / wanted / 604800) * 604800;
  const all = [];
  for (let t = Math.ceil(low / stride - 1e-9) * stride; t <= high + 1e-6 * stride; t += stride)
    all.push([t, t === 0 ? "0" : duration(t)]);
  return all;
}
function logTicks(low, high, label) {
  const all = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); ++p)
    for (const m of high / low > 300 ? [1] :
             high / low > 12         ? [1, 2, 5] :
             high / low > 2          ? [1, 2, 3, 5, 7] :
                                       [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]) {
      const v = m * 10 ** p;
      if (v >= low * 0.999 && v <= high * 1.001) all.push([v, label(v)]);
    }
  return all.length > 1 ? all : linearTicks(low, high, 4);
}

// A scale: how a value is displayed, and its ticks.
const plain = {
  show: number,
  ticks: linearTicks,
  log: v => trim(v.toPrecision(2))
};
const inPercent = {
  show: percent,
  ticks: (a, b, n) => linearTicks(a, b, n, 0, s => s + thin + "%"),
  floor: 0,
  ceiling: 100
};
const asShare = {
  show: v => percent(100 * v),
  floor: 0,
  ceiling: 1,
  ticks: (a, b, n) => inPercent.ticks(100 * a, 100 * b, n).map(([v, s]) => [v / 100, s])
};
const axes = {
  epoch: {name: "epoch", show: v => trim(v.toFixed(3)), ticks: linearTicks},
  step: {name: "step", show: whole, ticks: (a, b, n) => linearTicks(a, b, n, 1)},
  seconds: {name: "time", show: duration, ticks: clockTicks},
  bytes: {name: "sent", title: "bytes", show: bytes, ticks: bytesTicks},
};
