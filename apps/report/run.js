// The page of one run.
const {step, eval: test, epoch: byEpoch} = page.series;
const several = page.workers > 1;

function curves() {
  const add = chart => addChart(byId("charts"), {resumes: page.resumes, ...chart});
  const train = {smooth: true}, dots = {dots: true};
  add({
    title: "Loss",
    scale: plain,
    log: true,
    lines: [line("train", step, "loss", 0, train), line("test", test, "loss", 1, dots)]
  });
  add({
    title: "Top-1 accuracy",
    scale: inPercent,
    lines: [
      line("train", step, "top1", 0, train), line("test", test, "top1", 1, dots),
      line("workers", test, "worker_top1", 3, dots)
    ]
  });
  add({title: "Learning rate", scale: plain, zero: true, lines: [line("rate", step, "learning_rate", 3)]});
  add({
    title: "Images per second",
    scale: plain,
    zero: true,
    lines: [line(several ? "all workers" : "training", step, "images_per_second", 2, train)]
  });
  if (!several) return;
  add({
    title: "Consensus distance",
    scale: plain,
    log: true,
    zero: true,
    lines: [line("between workers", test, "consensus_distance", 4, dots)]
  });
  add({
    title: "Waiting, share of the time",
    scale: asShare,
    zero: true,
    lines: [line("for data", step, "data_wait", 4, train), line("for peers", step, "peer_wait", 3, train)]
  });
}

function tiles() {
  const s = page.summary,
        last = rows => key => rows && rows[key] ? rows[key].filter(known).at(-1) : undefined;
  const top1 = s.top1 ?? last(test)("top1"), best = s.best_top1, steps = s.steps ?? last(step)("step");
  const all = [
    ["test top-1", percent(top1), known(best) && best > top1 + 0.005 ? `best ${percent(best)}` : ""],
    ["test top-5", percent(s.top5 ?? last(test)("top5")), ""],
    ["test loss", number(s.loss ?? last(test)("loss")), ""],
    [
      "images / s", whole(s.images_per_second || last(step)("images_per_second")),
      several ? `${page.workers} workers` : ""
    ],
    ["time", duration(s.seconds ?? last(step)("seconds")), ""],
    ["steps", whole(steps), known(s.epochs) ? `${trim(s.epochs.toFixed(2))} epochs` : ""],
    ["sent by a worker", bytes(s.bytes_per_step * steps), `${bytes(s.bytes_per_step)} a step`],
    ["transfers hidden", percent(100 * s.hidden_share), "by computing"],
    ["parameters", whole(s.parameters), ""],
  ];
  for (const [name, value, note] of all.filter(t => t[1] !== none)) {
    const tile = make("div", {class: "card tile"}, make("span", {}, name), make("b", {}, value));
    if (note) tile.append(make("i", {}, note));
    byId("tiles").append(tile);
  }
}

// One bar for the run or, where it is known, one a worker, all of one scale.
function time() {
  const s = page.summary, work = Object.entries(s.seconds_by_work || {}).filter(([, t]) => t > 0);
  const named = work.reduce((sum, [, t]) => sum + t, 0), total = Math.max(named, s.seconds || 0);
  if (!named) return;
  if (total > 1.005 * named) work.push(["other", total - named]);
  const card = make("div", {class: "card"}), legend = make("div", {class: "legend"});
  const each = s.seconds_by_worker || {},
        workers = several ? Math.max(0, ...Object.values(each).map(v => v.length)) : 0;
  const bar = parts => {
    const split = make("div", {class: "split"});
    let rest = total;
    for (const [name, t] of parts) {
      if (name !== "other" && t > 0)
        split.append(make(
            "div",
            {style: `--tone: ${toneOfWork(name)}; flex: ${t / total}`, title: `${name} ${duration(t)}`}));
      if (name !== "other") rest -= t;
    }
    if (rest > 0.001 * total)
      split.append(make(
          "div", {style: `--tone: var(--line); flex: ${rest / total}`, title: `other ${duration(rest)}`}));
    return split;
  };
  if (!workers) card.append(bar(work));
  for (let w = 0; w < workers; ++w)
    card.append(make(
        "div", {class: "row"}, make("span", {}, `worker ${w}`),
        bar(Object.entries(each).map(([name, v]) => [name, v[w] || 0]))));
  for (const [name, t] of work)
    legend.append(make(
        "div", {style: `--tone: ${name === "other" ? "var(--line)" : toneOfWork(name)}`},
        name.replaceAll("_", " "), make("b", {}, `${duration(t)}  \u00b7  ${percent(100 * t / total)}`)));
  card.append(legend);
  if (s.seconds_by_stage) {
    const stages = Object.entries(s.seconds_by_stage).filter(([, t]) => t > 0);
    card.append(make(
        "p", {class: "note"},
        "Loading, beside the computing, summed over its threads: " +
            stages.map(([name, t]) => `${name} ${duration(t)}`).join(", ")));
  }
  byId("time").append(
      make(
          "div", {class: "bar"}, make("h2", {}, "Where the time went"),
          make("span", {class: "note"}, workers ? "figures of worker 0" : "")),
      card);
}

// How many images of each class a worker has: all bars of one scale.
function shards() {
  const {classes, labels} = page.summary.shards || {};
  if (!classes || !labels) return;
  const most = Math.max(1, ...labels.flat()), card = make("div", {class: "card"});
  labels.forEach((counts, worker) => {
    const bars = make("div", {class: "bars"});
    counts.forEach((n, c) => bars.append(make("div", {
      style: `height: ${n ? Math.max(3, 100 * n / most) : 0}%`,
      title: `${classes[c]}: ${whole(n)}`
    })));
    card.append(make(
        "div", {class: "row shard"}, make("span", {}, `worker ${worker}`), bars,
        make("b", {}, whole(counts.reduce((a, b) => a + b, 0)))));
  });
  if (classes.length <= 20) {
    const names = make("div", {class: "bars names"});
    for (const name of classes) names.append(make("div", {}, name));
    card.append(make("div", {class: "row"}, make("span"), names, make("b")));
  }
  byId("shards").append(
      make(
          "div", {class: "bar"}, make("h2", {}, "Images of each worker, by class"),
          make("span", {class: "note"}, `the highest bar: ${whole(most)}`)),
      card);
}

function facts() {
  const s = page.summary, own = {};
  if (s.hash) own["parameter hash"] = s.hash;
  if (known(s.consensus_distance)) own["consensus distance"] = number(s.consensus_distance);
  const counts = (o, path) => Object.entries(o || {}).flatMap(
      ([k, v]) => known(v) ? [`${whole(v)} ${[...path, k.replaceAll("_", " ")].join(" ")}`] :
                             counts(v, [...path, k.replaceAll("_", " ")]));
  if (counts(s.odd_files, []).length) own["odd files"] = counts(s.odd_files, []).join(", ");
  if (s.unreadable)
    own["unreadable images"] = `${s.unreadable}, skipped: ${(s.unreadable_names || []).join(", ")}`;
  for (const [title, values] of [
           ["Configuration", page.config], ["Environment", {...page.environment, ...own}]]) {
    const rows = Object.entries(values || {});
    if (!rows.length) continue;
    const table = make("table");
    for (const [k, v] of rows)
      table.append(make(
          "tr", {}, make("td", {}, k.replaceAll("_", " ")),
          make(
              "td", {},
              v !== null && typeof v === "object" ? JSON.stringify(v) :
                  v === ""                        ? none :
                                                    String(v))));
    byId("facts").append(make("div", {class: "card"}, make("h2", {}, title), table));
  }
}

byId("state").textContent = page.state;
byId("state").classList.add(page.state);
byId("foot").textContent = `Skein ${page.version}. Made from metrics.jsonl, summary.json and timeline.json.` +
    (page.resumes.length ? " A dashed line marks where training resumed from a checkpoint." : "");
curves();
tiles();
showCharts();
time();
timeline(page.timeline);
shards();
facts();
