// How the time was spent: one bar for the run or, if known, one per worker, all on one scale.
function timeBar(parts, total) {
  const split = make("div", {class: "split"});
  for (const [name, t] of parts)
    if (t > 0.0005 * total)
      split.append(make("div", {
        ...paintOfWork(name),
        style: `--tone: ${toneOfWork(name)}; flex: ${t / total}`,
        title: `${name} ${duration(t)}`
      }));
  return split;
}

// {name: [seconds of each worker]}, with the rest of the wall clock as "other".
function workOfEach(s, workers) {
  const each = Object.fromEntries(Object.entries(s.seconds_by_worker || {}).filter(([, v]) => v.some(t => t > 0)));
  if (!workers)
    for (const [name, t] of Object.entries(s.seconds_by_work || {}))
      if (t > 0) each[name] = [t];
  const sums = [...Array(workers || 1).keys()].map(w => Object.values(each).reduce((sum, v) => sum + (v[w] || 0), 0));
  const total = Math.max(...sums, s.seconds || 0);
  if (sums.some(t => total > 1.005 * t)) each.other = sums.map(t => total - t);
  return {each, total};
}

function timeLegend(each, total) {
  const legend = make("div", {class: "legend"});
  for (const [name, v] of Object.entries(each)) {
    const mean = v.reduce((a, b) => a + b, 0) / v.length, share = t => percent(100 * t / total);
    const [low, high] = [Math.min(...v), Math.max(...v)];
    const range = v.length > 1 && share(low) !== share(high) ? make("i", {}, ` ${share(low)} to ${share(high)}`) : "";
    legend.append(make(
        "div", {...paintOfWork(name), style: `--tone: ${toneOfWork(name)}`}, name.replaceAll("_", " "),
        make("b", {}, `${duration(mean)}  \u00b7  ${share(mean)}`, range)));
  }
  return legend;
}

function time() {
  const s = page.summary,
        workers = several ? Math.max(0, ...Object.values(s.seconds_by_worker || {}).map(v => v.length)) : 0;
  const {each, total} = workOfEach(s, workers);
  if (!Object.keys(each).some(name => name !== "other")) return;
  const card = make("div", {class: "card"});
  const partsOf = w => Object.entries(each).map(([name, v]) => [name, v[w] || 0]);
  if (!workers) card.append(timeBar(partsOf(0), total));
  for (let w = 0; w < workers; ++w)
    card.append(make("div", {class: "row"}, make("span", {}, `worker ${stayed[w] ?? w}`), timeBar(partsOf(w), total)));
  card.append(timeLegend(each, total));
  const stages = Object.entries(s.seconds_by_stage || {}).filter(([, t]) => t > 0);
  if (stages.length)
    card.append(make(
        "p", {class: "note"},
        "Loading, beside the computing, summed over " + (workers ? "worker 0's" : "its") + " threads: " +
            stages.map(([name, t]) => `${name} ${duration(t)}`).join(", ")));
  byId("time").append(
      make(
          "div", {class: "bar"}, make("h2", {}, "Where the time went"),
          make("span", {class: "note"}, workers ? "means over the workers, and their range where they differ" : "")),
      card);
}
