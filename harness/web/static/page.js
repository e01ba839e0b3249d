"use strict";
// What the pages of all sites do: sending their form, telling of it, and the names of keys.

let busy = false;

document.documentElement.classList.add("js");

const main = () => document.getElementById("main");
const form = () => document.getElementById("desk");

function tell(text) {
  document.getElementById("said").textContent = text;
}

function alertOf(text) {
  form().querySelector(".said")?.remove();  // it is of the key before
  let box = form().querySelector(".alert");
  if (!box) {
    box = document.createElement("p");
    box.className = "alert";
    box.setAttribute("role", "alert");
    form().querySelector(".bar").after(box);
  }
  box.textContent = text;
}

// Sends what `fields` gives (it may wait for something first), and shows the page that comes back.
async function post(fields, show) {
  if (busy) return;
  busy = true;
  main().classList.add("busy");
  try {
    const answer = await fetch(form().action, { method: "POST", body: await fields() });
    if (new URL(answer.url).pathname !== location.pathname) location.assign(answer.url);
    else if (answer.headers.get("content-type")?.startsWith("text/html")) show(await answer.text());
    else alertOf("Not saved. Load the page again.");
  } catch {
    alertOf("Not saved: the site does not answer. Press the key again when it is back; nothing else is lost.");
  } finally {
    busy = false;
    main().classList.remove("busy");
  }
}

const NAMES = { " ": "space", Enter: "enter", Tab: "tab", Backspace: "backspace", ArrowLeft: "left", ArrowRight: "right",
  ArrowUp: "up", ArrowDown: "down" };

function keyOf(event) {
  return NAMES[event.key] ?? (/^F\d+$/.test(event.key) ? event.key.toLowerCase() : event.key);
}

function isTyping(target) {
  return target.matches("textarea, input:not([type=radio]):not([type=checkbox])");
}
