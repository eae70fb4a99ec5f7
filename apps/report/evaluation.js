// How the last evaluation classified the test images: accuracy by class, confusions, some mistakes.
const kNumbered = 12;  // classes, up to which the cells of the matrix hold numbers

function accuracies({classes, images_by_class: images, correct_by_class: correct}) {
  const share = c => images[c] ? correct[c] / images[c] : null, most = 50;
  let order = classes.map((_, c) => c).filter(c => images[c]);
  const all = order.length;
  if (all > most) order = order.sort((a, b) => share(a) - share(b)).slice(0, 20);
  const box = make("div", {class: "classes"});
  for (const c of order)
    box.append(make(
        "div", {class: "class", title: `${classes[c]}: ${whole(correct[c])} of ${whole(images[c])} images`},
        make("span", {}, classes[c]),
        make("div", {class: "meter"}, make("div", {style: `width: ${100 * share(c)}%`})),
        make("b", {}, percent(100 * share(c)))));
  const without = classes.filter((_, c) => !images[c]);
  const note = (all > most ? `the ${order.length} with the lowest accuracy, of ${whole(all)}` : "") +
      (without.length ? `${all > most ? "; " : ""}without test images: ${without.slice(0, 10).join(", ")}` +
              (without.length > 10 ? ` and ${without.length - 10} more` : "") :
                        "");
  return [box, note];
}

// Rows are the true classes; a cell is as dark as its share of the row.
function matrix({classes, confusion}) {
  const numbered = classes.length <= kNumbered, body = make("table", {class: numbered ? "matrix" : "matrix small"});
  const head = make("tr", {}, make("th", {class: "corner"}, "is \u2193  taken for \u2192"));
  classes.forEach(name => head.append(make("th", {title: name}, make("span", {}, name))));
  body.append(head);
  confusion.forEach((row, truth) => {
    const sum = row.reduce((a, b) => a + b, 0), line = make("tr", {}, make("th", {title: classes[truth]}, classes[truth]));
    row.forEach((n, guess) => {
      const cell = make("td", {title: `${classes[truth]} taken for ${classes[guess]}: ${whole(n)} of ${whole(sum)}`});
      if (n) {
        cell.style.setProperty("--share", `${Math.round(Math.max(8, 100 * Math.sqrt(n / sum)))}%`);
        cell.classList.add(truth === guess ? "right" : "wrong");
        if (n > 0.4 * sum) cell.classList.add("dark");
      }
      if (numbered) cell.textContent = n ? whole(n) : "\u00b7";
      line.append(cell);
    });
    body.append(line);
  });
  return body;
}

function confusions({classes, confusions: found, images_by_class: images}, most) {
  const body = make("table", {class: "figures words"});
  body.append(make(
      "tr", {}, make("th", {}, "class"), make("th", {}, "taken for"), make("th", {}, "images"),
      make("th", {}, "of the class")));
  for (const [truth, guess, n] of found.slice(0, most))
    body.append(make(
        "tr", {}, make("th", {}, classes[truth]), make("td", {}, classes[guess]), make("td", {}, whole(n)),
        make("td", {}, percent(100 * n / images[truth]))));
  return body;
}

function mistakes({classes, mistakes: found}) {
  const box = make("div", {class: "mistakes"});
  for (const m of found)
    box.append(make(
        "figure", {title: m.name}, m.picture ? make("img", {src: m.picture, alt: m.name}) : "",
        make(
            "figcaption", {}, make("b", {}, classes[m.guess]), ` ${percent(100 * m.probability)}`,
            make("i", {}, `is ${classes[m.truth]}`))));
  return box;
}

function evaluation(found) {
  if (!found?.classes?.length || !found.images_by_class) return;
  const titled = (title, note, ...content) => make(
      "div", {class: "card scroll"},
      make("div", {class: "top"}, make("h2", {}, title), make("span", {class: "note"}, note)), ...content);
  const [bars, note] = accuracies(found), wrong = found.confusions || [], cards = make("div", {class: "stack"});
  cards.append(titled("Accuracy by class", note, bars));
  const beside = make("div", {class: found.classes.length <= kNumbered ? "pair" : "stack"});
  cards.append(beside);
  if (found.confusion) beside.append(titled("What is taken for what", "numbers of test images", matrix(found)));
  if (wrong.length && found.classes.length > kNumbered)
    beside.append(titled("Most frequent confusions", "", confusions(found, found.confusion ? 12 : 30)));
  if (found.mistakes?.length)
    beside.append(titled("Mistakes", "those made with the highest probability", mistakes(found)));
  byId("evaluation")
      .append(
          make(
              "div", {class: "bar"}, make("h2", {}, "Test images by class"),
              make("span", {class: "note"}, `${whole(found.images)} images, after step ${whole(found.step)}`)),
          cards);
}
