// The page of one run.
const {step, eval: test, epoch: byEpoch, shares} = page.series;
const several = page.workers > 1;
const gone = new Set((page.summary.lost || []).map(l => l.worker));
const stayed = [...Array(page.workers).keys()].filter(w => !gone.has(w));  // of whom figures by worker are

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
  if (step && step.workers)
    add({title: "Workers", scale: plain, zero: true, lines: [line("members", step, "workers", 3)]});
  const dealt = Object.keys(shares || {}).filter(key => key.startsWith("worker_"));
  if (dealt.length)
    add({
      title: "Images of a step, by worker",
      scale: plain,
      zero: true,
      lines: dealt.map((key, i) => line(key.replace("_", " "), shares, key, i))
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
  const top1 = s.top1 ?? last(test)("top1"), best = s.best?.top1 ?? s.best_top1,
        steps = s.steps ?? last(step)("step");
  const when = s.best ? ` after epoch ${trim(s.best.epoch.toFixed(2))}` : "";
  const all = [
    ["test top-1", percent(top1), known(best) && best > top1 + 0.005 ? `best ${percent(best)}${when}` : ""],
    ["test top-5", percent(s.top5 ?? last(test)("top5")), ""],
    ["test loss", number(s.loss ?? last(test)("loss")), ""],
    [
      "images / s", speed(s.images_per_second || last(step)("images_per_second")),
      [several && `${page.workers} workers`, s.predicted && `${speed(s.predicted.images_per_second)} predicted`]
          .filter(Boolean).join(", ")
    ],
    ["time", duration(s.seconds ?? last(step)("seconds")), ""],
    ["steps", count(steps), known(s.epochs) ? `${trim(s.epochs.toFixed(2))} epochs` : ""],
    ["sent by a worker", bytes(s.bytes_per_step * steps), `${bytes(s.bytes_per_step)} a step`],
    [
      "transfers hidden", percent(100 * s.hidden_share),
      "by computing" + (known(s.predicted?.hidden_share) ? `, ${percent(100 * s.predicted.hidden_share)} predicted` : "")
    ],
    ["parameters", count(s.parameters), ""],
    [
      "workers lost", page.lost.length ? count(page.lost.length) : none,
      page.lost.map(l => `worker ${l.worker} at step ${count(l.step)}`).join(", ")
    ],
    ["refused from the network", page.refused.count ? count(page.refused.count) : none, page.refused.words],
    [
      "changes of membership", page.summary.recoveries ? count(page.summary.recoveries.length) : none,
      `the slowest took ${duration(Math.max(0, ...(page.summary.recoveries || []).map(r => r.healed_s)))}`
    ],
  ];
  for (const [name, value, note] of all.filter(t => t[1] !== none)) {
    const tile = make("div", {class: "card tile"}, make("span", {}, name), make("b", {}, value));
    if (note) tile.append(make("i", {}, note));
    byId("tiles").append(tile);
  }
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

// Kinds of files that were converted or skipped, and the names of the skipped.
function unusualFiles() {
  const {odd_files: odd, unreadable_names: names = [], unreadable} = page.summary;
  const kinds = ["converted", "left_out"].flatMap(what => {
    const all = new Set(["train", "test"].flatMap(split => Object.keys(odd?.[split]?.[what] || {})));
    return [...all].filter(k => k !== "files").map(kind => ({what, kind}));
  });
  if (!kinds.length) return;
  const body = make("table", {class: "figures words"});
  body.append(make(
      "tr", {}, make("th", {}, "kind"), make("th", {}, "what was done"), make("th", {}, "training"),
      make("th", {}, "test")));
  for (const {what, kind} of kinds)
    body.append(make(
        "tr", {}, make("th", {}, kind === "grey" ? "gray" : kind),
        make("td", {}, what === "converted" ? "converted to RGB" : "skipped"),
        ...["train", "test"].map(split => make("td", {}, whole(odd[split]?.[what]?.[kind] ?? 0)))));
  const card = make("div", {class: "card scroll"}, body);
  if (names.length)
    card.append(make(
        "p", {class: "note names"},
        `Skipped: ${names.join(", ")}` + (unreadable > names.length ? ` and ${unreadable - names.length} more` : "")));
  byId("files").append(make("div", {class: "bar"}, make("h2", {}, "Unusual image files")), card);
}

function facts() {
  const s = page.summary, own = {};
  if (s.hash) own["parameter hash"] = s.hash;
  if (known(s.consensus_distance)) own["consensus distance"] = number(s.consensus_distance);
  if (page.lost.length)
    own["workers lost"] = page.lost.map(l => `worker ${l.worker} at step ${l.step}: ${l.why}`).join("; ");
  const as_given = {}, as_default = {};
  for (const [k, v] of Object.entries(page.config || {}))
    (page.defaults && page.defaults[k] === v ? as_default : as_given)[k] = v;
  for (const [title, values] of [
           ["Configuration: what was chosen", as_given], ["Configuration: left at its default", as_default],
           ["Environment", {...page.environment, ...own}]]) {
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
byId("foot").textContent =
    `Skein ${page.version}. Made from metrics.jsonl, summary.json, timeline.json and evaluation.json.` +
    (page.resumes.length ? " A dashed line marks where training resumed from a checkpoint." : "");
curves();
tiles();
showCharts();
time();
timeline(page.timeline);
evaluation(page.evaluation);
shards();
unusualFiles();
facts();
