filterArticles(["f-speaker", "f-kind"], article => {
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
  return rows.join("\n");
}, ({s, k}, speaker, kind) => (!speaker || s === speaker) && (!kind || [...kind].some(one => k.includes(one))));
