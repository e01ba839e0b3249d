"use strict";
const figureOf = text => { const found = parseFloat(text.replace(/,/g, "").replace("−", "-").replace("< ", "")); return isNaN(found) ? -Infinity : found; };
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, at) => row.cells[at].textContent.trim();
  // Labels in the order of the page, where numbers stand by size.
  [...body.rows].forEach((row, at) => { row.at = at; });
  heads.forEach((head, at) => {
    if (head.classList.contains("plot")) return;
    const button = document.createElement("button"), numeric = head.classList.contains("n");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const labels = "labels" in head.dataset;
      const down = head.ariaSort ? head.ariaSort === "ascending" : numeric;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => {
        if (labels) return (a.at - b.at) * (down ? -1 : 1);
        const [x, y] = [value(a, at), value(b, at)];
        return (numeric ? figureOf(x) - figureOf(y) : x.localeCompare(y)) * (down ? -1 : 1);
      }));
    });
  });
}
// Filters the articles of #list by #f-text and the other fields. fits: of an article's data and the fields' values.
function filterArticles(others, textOf, fits) {
  const list = document.getElementById("list"), form = document.getElementById("filters");
  if (!list) return;
  const count = document.getElementById("f-count"), worst = [...list.children];
  const inFile = [...worst].sort((a, b) => a.dataset.p - b.dataset.p);
  const fields = ["f-text", ...others].map(id => document.getElementById(id));
  const texts = new Map();
  const has = (article, wanted) => {
    if (!texts.has(article)) texts.set(article, textOf(article).toLowerCase());
    return texts.get(article).includes(wanted);
  };
  const filter = () => {
    const [text, ...values] = fields.map(field => field.value);
    const wanted = text.trim().replace(/\s+/g, " ").toLowerCase();
    let shown = 0;
    for (const article of worst) {
      const found = fits(article.dataset, ...values) && (!wanted || has(article, wanted));
      article.hidden = !found;
      shown += found;
    }
    count.textContent = `${shown.toLocaleString("en")} of ${worst.length.toLocaleString("en")}`;
  };
  let waiting;
  for (const field of fields) field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  form.addEventListener("change", event => { if (event.target.name === "order") list.append(...(event.target.value === "file" ? inFile : worst)); });
  form.addEventListener("submit", event => event.preventDefault());
  form.reset();
  form.hidden = false;
  filter();
}
