filterArticles(["f-kind", "f-intent", "f-concept"], article => {
  // Concepts and marks stand among the words; without them a phrase is found across slots.
  const words = [...article.querySelectorAll(".wd")].map(line => {
    const copy = line.cloneNode(true);
    for (const more of copy.querySelectorAll("b,sup")) more.remove();
    return copy.textContent;
  });
  const rest = [...article.querySelectorAll(".it bdi,.ch b")].map(one => one.textContent);
  return [article.querySelector(".id").textContent, ...words, ...rest].map(one => one.trim().replace(/\s+/g, " ")).join("\n");
}, ({k, i, c}, kind, intent, concept) => (!kind || [...kind].some(one => k.includes(one))) && (!intent || i.split("\t").includes(intent)) && (!concept || c.split("\t").includes(concept)));
