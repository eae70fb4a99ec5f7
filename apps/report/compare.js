// The page of several runs.
const {runs, table} = page;

function curves() {
  const of = (kind, key, more) => runs.map((r, i) => line(r.label, r.series[kind], key, i, more));
  const add = chart => addChart(byId("charts"), chart);
  const train = {smooth: true}, dots = {dots: true};
  add({title: "Test accuracy, top-1", scale: inPercent, tall: true, lines: of("eval", "top1", dots)});
  add({title: "Training loss", scale: plain, log: true, tall: true, lines: of("step", "loss", train)});
  add({title: "Test loss", scale: plain, log: true, lines: of("eval", "loss", dots)});
  add({title: "Training accuracy, top-1", scale: inPercent, lines: of("step", "top1", train)});
  add({title: "Images per second", scale: plain, zero: true, lines: of("step", "images_per_second", train)});
  add({
    title: "Waiting for peers, share of the time",
    scale: asShare,
    zero: true,
    lines: of("step", "peer_wait", train)
  });
  add({
    title: "Consensus distance",
    scale: plain,
    log: true,
    zero: true,
    lines: of("eval", "consensus_distance", dots)
  });
  add({title: "Learning rate", scale: plain, zero: true, lines: of("step", "learning_rate")});
}

// The first cell of a row: the run's name, with its line as the charts draw it.
const nameOf = (r, i) => make("th", {title: r.directories.join("\n")}, swatch(tone(i), dashes(i)), r.label);

const writers = {
  percent,
  number,
  whole,
  speed,
  duration,
  bytes,
  share: v => percent(100 * v),
  word: String
};
function figures() {
  const body = make("table", {class: "figures"}), head = make("tr", {}, make("th"));
  table.columns.forEach(c => head.append(make("th", {}, c.name)));
  body.append(head);
  runs.forEach((r, i) => {
    const row = make("tr", {}, nameOf(r, i));
    if (shared) pointsAt(row, r.label);
    table.columns.forEach((c, n) => {
      const {value, spread, best} = table.rows[i][n] || {};
      const write = writers[c.kind];
      const cell = make(
          "td", best ? {class: "best"} : {},
          known(value) || c.kind === "word" && value ? write(value) : none);
      if (known(spread)) cell.append(make("i", {}, ` \u00b1${thin}${write(spread).replace(/\u202f%$/, "")}`));
      row.append(cell);
    });
    body.append(row);
  });
  byId("figures").append(
      make("div", {class: "bar"}, make("h2", {}, "Figures"), make("span", {class: "note"}, table.note)),
      make("div", {class: "card scroll"}, body));
}

function differences() {
  const keys = Object.keys(page.differences);
  if (!keys.length) return;
  const body = make("table", {class: "figures words"}), head = make("tr", {}, make("th"));
  keys.forEach(k => head.append(make("th", {}, k)));
  body.append(head);
  runs.forEach((r, i) => {
    const row = make("tr", {}, nameOf(r, i));
    if (shared) pointsAt(row, r.label);
    keys.forEach(k => row.append(make("td", {}, page.differences[k][i] || none)));
    body.append(row);
  });
  byId("differences")
      .append(
          make("div", {class: "bar"}, make("h2", {}, "What differs")),
          make("div", {class: "card scroll"}, body));
}

function facts() {
  const list = make("table");
  runs.forEach(
      r => list.append(make("tr", {}, make("td", {}, r.label), make("td", {}, r.directories.join(", ")))));
  byId("facts").append(make("div", {class: "card"}, make("h2", {}, "Runs"), list));
  const same = Object.entries(page.common);
  if (!same.length) return;
  const rows = make("table");
  for (const [k, v] of same)
    rows.append(make(
        "tr", {}, make("td", {}, k),
        make(
            "td", {},
            v === ""                  ? none :
                typeof v === "string" ? v :
                                        JSON.stringify(v))));
  byId("facts").append(make("div", {class: "card"}, make("h2", {}, "The same in all"), rows));
}

// Accuracies on different data cannot be compared.
function warnings() {
  for (const line of page.warnings || []) byId("warnings").append(make("p", {class: "card warning"}, line));
}

byId("foot").textContent = `Skein ${page.version}.`;
warnings();
if (runs.length > 1) {
  shareLegend(byId("legend"), runs.map((r, i) => ({name: r.label, color: tone(i), dash: dashes(i)})));
  document.querySelector(".hint").append(" A run that is pointed at, in a chart, the legend or a table, stands out.");
}
curves();
figures();
showCharts();
differences();
facts();
