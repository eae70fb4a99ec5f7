// What every worker did during a few steps: its work and waits on one bar, its transfers in flight below.
const [kCompute, kWaiting, kTransfer] = ["compute", "waiting", "transfer"];

// Overlapping transfers are on different lanes; each takes the first free one.
function lanesOf(spans) {
  const free = [], most = 6;
  for (const s of spans.filter(s => s.track === kTransfer)) {
    const lane = free.findIndex(t => t <= s.begin);
    s.lane = Math.min(lane < 0 ? free.length : lane, most - 1);
    free[s.lane] = Math.max(free[s.lane] || 0, s.begin + s.length);
  }
  return free.length;
}
function describeSpan(s) {
  const what = s.track === kCompute ? s.name :
      s.track === kWaiting          ? `waiting for ${s.name}` :
                                      `transfer: ${s.name}`;
  return what + ", " + duration(s.length) + (s.step >= 0 ? `, step ${whole(s.step)}` : "") +
      (s.from >= 0 ? `, from worker ${s.from}` : "") + (s.bytes >= 0 ? `, ${bytes(s.bytes)}` : "");
}
const paintOf = s => s.track === kCompute ? toneOfWork(s.name) : toneOfWork(s.track);

function drawTimeline(card, {workers, length}) {
  const W = Math.max(320, card.clientWidth - 36), L = 74, R = 8, bar = 16, lane = 5;
  const X = t => L + (W - L - R) * t / length, svg = make("svg", {});
  const said = make("div", {class: "said"}, "Point at a bar to read what it is.");
  let y = 4;
  const ticks = linearTicks(0, 1000 * length, W > 700 ? 10 : 5, 0, s => s + thin + "ms");
  const grid = make("g");
  svg.append(grid);
  for (const {rank, spans} of workers) {
    svg.append(make("text", {x: 0, y: y + 12, class: "axis"}, `worker ${rank}`));
    const lanes = lanesOf(spans);
    for (const s of spans) {
      const below = s.track === kTransfer;
      const r = make(
          "rect", {
            x: X(s.begin).toFixed(2),
            width: Math.max(0.6, X(s.begin + s.length) - X(s.begin)).toFixed(2),
            y: below ? y + bar + 2 + s.lane * lane : y,
            height: below ? lane - 1 : bar,
            class: "span",
            style: `fill: ${paintOf(s)}`
          },
          make("title", {}, describeSpan(s)));
      r.addEventListener("pointerenter", () => said.textContent = `worker ${rank}: ${describeSpan(s)}`);
      svg.append(r);
    }
    y += bar + 2 + lanes * lane + 8;
  }
  for (const [v, label] of ticks)
    grid.append(
        make("line", {class: "grid", x1: X(v / 1000), x2: X(v / 1000), y1: 0, y2: y}),
        make(
            "text", {x: X(v / 1000), y: y + 14, "text-anchor": X(v / 1000) > W - 30 ? "end" : "middle"},
            label));
  svg.setAttribute("viewBox", `0 0 ${W} ${y + 20}`);
  const names = new Set(workers.flatMap(w => w.spans.map(s => s.track === kCompute ? s.name : s.track)));
  const legend = make("div", {class: "key"});
  for (const name of names)
    legend.append(make("span", {class: "box", style: `--tone: ${toneOfWork(name)}`}, name));
  card.replaceChildren(make("div", {class: "top"}, legend), svg, said);
}

function timeline(found) {
  if (!found || !found.workers?.some(w => w.spans.length)) return;
  const {names, tracks} = found;
  const length = found.seconds;
  const workers = found.workers.map(
      w => ({
        rank: w.rank,
        spans: w.spans.map(
            ([track, name, begin, took, step, from, size]) =>
                ({track: tracks[track], name: names[name], begin, length: took, step, from, bytes: size}))
      }));
  const card = make("div", {class: "card timeline"}), [first, last] = found.steps;
  byId("timeline")
      .append(
          make(
              "div", {class: "bar"}, make("h2", {}, "Time line"),
              make(
                  "span", {class: "note"},
                  first === last ? `step ${whole(first)}` : `steps ${whole(first)} to ${whole(last)}`)),
          card);
  const again = () => drawTimeline(card, {workers, length});
  again();
  addEventListener("resize", again);
}
