// One legend for all charts of a page. A line that is pointed at, there, in a chart or in a table, is highlighted
// everywhere.
function highlight(name) {
  shared.lit = name;
  document.body.classList.toggle("focused", name !== null);
  for (const e of document.querySelectorAll("[data-line], [data-run]"))
    e.classList.toggle("lit", name !== null && (e.dataset.line ?? e.dataset.run) === name);
}
// Makes the element highlight a line.
function pointsAt(element, name) {
  element.dataset.run = name;
  element.addEventListener("pointerenter", () => highlight(name));
  element.addEventListener("pointerleave", () => highlight(null));
  return element;
}
// lines: {name, color, dash}. Call it before any chart is drawn.
function shareLegend(box, lines) {
  shared = {values: new Map(), chart: null, lit: null};
  const key = make("div", {class: "key columns"});
  for (const l of lines) {
    const value = make("b");
    shared.values.set(l.name, value);
    key.append(pointsAt(make("span", {}, swatch(l.color, l.dash), make("u", {}, l.name), value), l.name));
  }
  box.append(make("div", {class: "card"}, key));
}
