"use strict";
// Keys of an annotator's page, with page.js. Without both all works too: by its boxes and buttons.

const DRAFT_AFTER_MS = 300;
const LOOK_AFTER_MS = 5000;
let cursor = 0;
let seen = new Set(); // lines of the page that have been in sight
let draftTimer = 0;
let drafted = Promise.resolve();

const lines = () => [...main().querySelectorAll("form .line")];
const reviewing = () => main().dataset.phase === "reviewing";

// Sending

function body(button) {
  const fields = new URLSearchParams(new FormData(form()));
  fields.set("do", button);
  return fields;
}

async function send(button) {
  if (busy) return;
  clearTimeout(draftTimer);
  await post(async () => { await drafted; return body(button); }, show);
}

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("main");
  if (!fresh || !page.getElementById("desk")) {
    // Not an annotator's page: the site says what to do on one of its own.
    main().replaceWith(document.importNode(fresh ?? page.body, true));
    return;
  }
  const open = document.getElementById("guide")?.hidden === false;
  const same = fresh.dataset.sight === main().dataset.sight;
  main().replaceWith(document.importNode(fresh, true));
  document.title = page.title;
  begin({ open, same });
  tell(main().dataset.said);
}

function keepDraft(soon) {
  clearTimeout(draftTimer);
  if (!form()?.elements.has_draft) return;
  const turn = main().dataset.turn;
  draftTimer = setTimeout(() => {
    if (busy || main().dataset.turn !== turn) return;
    drafted = fetch(form().action, { method: "POST", body: body("draft.quiet"), keepalive: true }).then(() => {}, () => {});
  }, soon ? 0 : DRAFT_AFTER_MS);
}

// Lines

function look() {
  lines().forEach((line, at) => {
    if (line.getBoundingClientRect().bottom <= innerHeight + 1) seen.add(at);
  });
}

function move(to, focus = true) {
  const all = lines();
  if (!all.length) return;
  all[cursor]?.classList.remove("at");
  cursor = Math.max(0, Math.min(all.length - 1, to));
  all[cursor].classList.add("at");
  if (!focus) return;
  all[cursor].querySelector("input").focus({ preventScroll: true });
  all[cursor].scrollIntoView({ block: "nearest" });
}

function strike(box) {
  box.click();
  move(lines().indexOf(box.closest(".line")));
}

// Only what has been in sight is accepted by a key: what lies below comes into sight first.
function enter() {
  look();
  const unseen = lines().findIndex((_, at) => !seen.has(at));
  if (reviewing() && unseen >= 0) {
    move(unseen);
    lines()[unseen].scrollIntoView({ block: "start" });
    look();
    alertOf("Nothing accepted yet: there were more lines on this page. Here they are.");
    return;
  }
  form().querySelector("button.main")?.click();
}

// The rules of the label set, as the site checks them again.
function refusal() {
  const given = [...form().querySelectorAll("[name=label]:checked")].map((one) => one.value);
  if (!given.length) return "";
  const alone = JSON.parse(main().dataset.alone).find((one) => given.includes(one));
  if (alone !== undefined && given.length > 1) return `Not like this: ${alone} stands alone`;
  const pair = JSON.parse(main().dataset.never).find(([one, other]) => given.includes(one) && given.includes(other));
  return pair ? `Not like this: ${pair[0]} and ${pair[1]} exclude each other` : "";
}

// Keys

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || !form()) return;
  const box = document.getElementById("guide");
  if (event.key === "Escape") {
    if (isTyping(event.target)) { event.target.blur(); keepDraft(true); }
    else if (box?.hidden === false) guide(false);
    return;
  }
  if (isTyping(event.target)) return;
  const key = keyOf(event);
  const at = event.target.closest("button, a, input");
  const pressable = at && at.type !== "checkbox";
  if (pressable && (key === "enter" || (key === "space" && document.activeElement.matches(":focus-visible")))) return;
  const one = [...main().querySelectorAll("form [data-key], form [data-focus]")]
    .find((other) => (other.dataset.key ?? other.dataset.focus) === key);
  const moves = { up: -1, k: -1, down: 1, j: 1 };
  const steps = one ? undefined : moves[key];
  if (!one && steps === undefined && key !== "space") return;
  event.preventDefault();
  if (steps !== undefined) { move(cursor + steps); return; }
  // A key that is held down must not accept one page after another unread.
  if (event.repeat || busy) return;
  if (key === "enter") enter();
  else if (key === "space") { const line = lines()[cursor]; if (line) strike(line.querySelector("input")); }
  else if (one.dataset.focus) one.focus();
  else if (one.type === "checkbox") strike(one);
  else one.click();
}

function guide(open) {
  const box = document.getElementById("guide");
  box.hidden = !open;
  main().classList.toggle("with-guide", open);
}

// A page

function begin({ open = false, same = false } = {}) {
  if (!form()) return;
  if (!same) { cursor = 0; seen = new Set(); }
  if (open) guide(true);
  move(cursor, false);
  form().addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.submitter?.value ?? "draft.save");
  });
  form().addEventListener("input", (event) => {
    if (!event.target.name) return;
    const told = document.getElementById("refusal");
    if (told && event.target.name === "label") told.textContent = refusal();
    keepDraft(false);
  });
  form().addEventListener("focusin", (event) => {
    const at = lines().indexOf(event.target.closest(".line"));
    if (at >= 0) move(at, false);
  });
  form().querySelector("[data-guide]")?.addEventListener("click", (event) => {
    event.preventDefault();
    const box = document.getElementById("guide");
    guide(box.hidden);
    if (!box.hidden) { box.scrollIntoView({ block: "nearest" }); document.getElementById("search").focus(); }
  });
  document.getElementById("search")?.addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const one of document.querySelectorAll("#guide .explained")) {
      one.hidden = !words.every((word) => one.textContent.toLowerCase().includes(word));
    }
  });
  document.getElementById("query")?.focus({ preventScroll: true });
  if (!same) scrollTo(0, 0);
  look();
}

// Who has done all is shown what comes later.
async function lookForMore() {
  if (busy || document.hidden || main().dataset.phase !== "finished") return;
  try {
    const answer = await fetch(location.pathname);
    if (!answer.ok || new URL(answer.url).pathname !== location.pathname) return;
    const text = await answer.text();
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
    if (!busy && main().dataset.phase === "finished" && fresh && fresh.dataset.phase !== "finished") show(text);
  } catch {
    // The site does not answer now: the next look may find it.
  }
}

document.addEventListener("keydown", pressed);
addEventListener("scroll", look, { passive: true });
addEventListener("resize", look);
setInterval(lookForMore, LOOK_AFTER_MS);
addEventListener("pagehide", () => {
  if (form()?.elements.has_draft && !busy) navigator.sendBeacon(form().action, body("draft.quiet"));
});
begin();
