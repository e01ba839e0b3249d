"use strict";
(() => {
const list = document.getElementById("list"), form = document.getElementById("filters");
if (list) {
  const count = document.getElementById("f-count"), worst = [...list.children];
  const inFile = [...worst].sort((a, b) => a.dataset.p - b.dataset.p);
  const fields = ["f-text", "f-kind", "f-intent", "f-concept"].map(id => document.getElementById(id));
  const texts = new Map();
  const textOf = article => {
    let found = texts.get(article);
    if (found === undefined) {
      // Concepts and marks stand among the words; without them a phrase is found across slots.
      const words = [...article.querySelectorAll(".wd")].map(line => {
        const copy = line.cloneNode(true);
        for (const more of copy.querySelectorAll("b,sup")) more.remove();
        return copy.textContent;
      });
      const rest = [...article.querySelectorAll(".it bdi,.ch b")].map(one => one.textContent);
      found = [article.querySelector(".id").textContent, ...words, ...rest].map(one => one.trim().replace(/\s+/g, " ")).join("\n").toLowerCase();
      texts.set(article, found);
    }
    return found;
  };
  const filter = () => {
    const [text, kind, intent, concept] = fields.map(field => field.value);
    const wanted = text.trim().replace(/\s+/g, " ").toLowerCase();
    let shown = 0;
    for (const article of worst) {
      const {k, i, c} = article.dataset;
      const fits = (!kind || [...kind].some(one => k.includes(one))) && (!intent || i.split("\t").includes(intent)) && (!concept || c.split("\t").includes(concept)) && (!wanted || textOf(article).includes(wanted));
      article.hidden = !fits;
      shown += fits;
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
const value = (row, at) => row.cells[at].textContent.trim();
const figure = text => { const found = parseFloat(text.replace(/,/g, "").replace("−", "-")); return isNaN(found) ? -Infinity : found; };
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, at) => {
    if (head.classList.contains("plot")) return;
    const button = document.createElement("button"), numeric = head.classList.contains("n");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort ? head.ariaSort === "ascending" : numeric;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => {
        const [x, y] = [value(a, at), value(b, at)];
        return (numeric ? figure(x) - figure(y) : x.localeCompare(y)) * (down ? -1 : 1);
      }));
    });
  });
}
})();
