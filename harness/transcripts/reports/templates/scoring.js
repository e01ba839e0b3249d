"use strict";
(() => {
const list = document.getElementById("list"), form = document.getElementById("filters"), count = document.getElementById("f-count");
const worst = [...list.children], inFile = [...worst].sort((a, b) => a.dataset.p - b.dataset.p);
const fields = ["f-text", "f-speaker", "f-kind"].map(id => document.getElementById(id));
const haystacks = new Map();
function haystack(article) {
  let found = haystacks.get(article);
  if (found === undefined) {
    const rows = [article.querySelector(".id").textContent];
    for (const words of article.querySelectorAll(".vh-words")) {
      const lines = [];
      for (const column of words.children)
        [...column.children].forEach((cell, row) => {
          const word = cell.firstElementChild && cell.firstElementChild.tagName === "SUP" ? "" : (cell.firstChild || {}).textContent;
          if (word) (lines[row] = lines[row] || []).push(word);
        });
      for (const line of lines) if (line) rows.push(line.join(" "));
    }
    haystacks.set(article, found = rows.join("\n").toLowerCase());
  }
  return found;
}
function filter() {
  const [text, speaker, kind] = fields.map(field => field.value);
  const wanted = text.trim().replace(/\s+/g, " ").toLowerCase();
  let shown = 0;
  for (const article of worst) {
    const {s, k} = article.dataset;
    const fits = (!speaker || s === speaker) && (!kind || [...kind].some(one => k.includes(one))) && (!wanted || haystack(article).includes(wanted));
    article.hidden = !fits;
    shown += fits;
  }
  count.textContent = `${shown.toLocaleString("en")} of ${worst.length.toLocaleString("en")}`;
}
let waiting;
for (const field of fields) field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
form.addEventListener("change", event => { if (event.target.name === "order") list.append(...(event.target.value === "file" ? inFile : worst)); });
form.addEventListener("submit", event => event.preventDefault());
form.reset();
form.hidden = false;
filter();

const value = (row, at) => row.cells[at].textContent.trim();
const figure = text => { const found = parseFloat(text.replace(/,/g, "").replace("−", "-").replace("< ", "")); return isNaN(found) ? -Infinity : found; };
// Labels in the order of the page, where numbers stand by size.
for (const table of document.querySelectorAll("table.sortable")) [...table.tBodies[0].rows].forEach((row, at) => { row.at = at; });
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
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
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a, at), value(b, at)];
        if (labels) return (a.at - b.at) * (down ? -1 : 1);
        return (numeric ? figure(x) - figure(y) : x.localeCompare(y)) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
  });
}
})();
