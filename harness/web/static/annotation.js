"use strict";
// Lines, labels and cursor of an annotator's page; page.js has the rest.

const DRAFT_AFTER_MS = 300;
let cursor = 0;
let seen = new Set(); // lines of the page that were on screen

const lines = () => [...main().querySelectorAll("form .line")]; // boxes to tick, or buttons of what was found
const reviewing = () => main().dataset.phase === "reviewing";

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
  (all[cursor].querySelector("input") ?? all[cursor]).focus({ preventScroll: true });
  all[cursor].scrollIntoView({ block: "nearest" });
}

function strike(box) {
  box.click();
  move(lines().indexOf(box.closest(".line")));
}

// A key accepts only lines that were on screen, and otherwise scrolls to the others first.
function enter() {
  look();
  const unseen = lines().findIndex((_, at) => !seen.has(at));
  if (reviewing() && unseen >= 0) {
    move(unseen);
    lines()[unseen].scrollIntoView({ block: "start" });
    look();
    alertOf("Nothing accepted yet: this page has more lines. Here they are.");
    return;
  }
  (form().querySelector("button.main") ?? lines()[cursor])?.click();
}

// The rules of the label set, as the site checks them again.
function refusal() {
  const given = [...form().querySelectorAll("[name=label]:checked")].map((one) => one.value);
  if (!given.length) return "";
  const alone = JSON.parse(main().dataset.alone).find((one) => given.includes(one));
  if (alone !== undefined && given.length > 1) return `Not allowed: ${alone} must be the only label`;
  const pair = JSON.parse(main().dataset.never).find(([one, other]) => given.includes(one) && given.includes(other));
  return pair ? `Not allowed: ${pair[0]} and ${pair[1]} are mutually exclusive` : "";
}

// Words of slots

const words = () => [...main().querySelectorAll("[data-word]")];
let drawnFrom = -1;

function selected() {
  const { from, to } = form().elements;
  return from?.value ? [Number(from.value) - 1, Number(to.value || from.value)] : null;
}

// Words from `first` to before `after`, from 0; none without arguments.
function select(first = 0, after = 0) {
  const { from, to } = form().elements;
  if (!from) return;
  from.value = after > first ? first + 1 : "";
  to.value = after > first ? after : "";
  const marked = words().filter((word, at) => word.classList.toggle("at", first <= at && at < after));
  tell(marked.map((word) => word.textContent).join(" ") || "no words"); // a colour is no news to a screen reader
}

// Moves or stretches the selection with a key; whether the key does so.
function selectBy(event, key) {
  const many = words().length;
  if (!many || !["left", "right", "<", ">"].includes(key)) return false;
  let [first, after] = selected() ?? [0, 0];
  if (key === ">" || (key === "right" && event.shiftKey)) after = Math.min(many, after + 1);
  else if (key === "<" || (key === "left" && event.shiftKey)) after = Math.max(first + 1, after - 1);
  else {
    first = Math.max(0, Math.min(many - 1, key === "right" ? after : first - 1));
    after = first + 1;
  }
  select(first, after);
  return true;
}

function draw(event) {
  const at = words().indexOf(event.target.closest?.("[data-word]"));
  if (at < 0) return;
  if (event.type === "pointerdown") drawnFrom = event.pointerType === "touch" && selected() ? selected()[0] : at;
  if (drawnFrom >= 0) { event.preventDefault(); select(Math.min(at, drawnFrom), Math.max(at, drawnFrom) + 1); }
}

// Keys

function withKey(key) {
  return [...main().querySelectorAll("form [data-key], form [data-focus]")]
    .find((one) => (one.dataset.key ?? one.dataset.focus) === key);
}

function withSlotKey(key) {
  return [...main().querySelectorAll("form [data-slot-key]")].find((one) => one.dataset.slotKey === key);
}

function press(event, key) {
  if (selectBy(event, key)) { event.preventDefault(); return; }
  const slot = selected() && withSlotKey(key === "Delete" ? "-" : key);
  if (slot) {
    event.preventDefault();
    if (!event.repeat && !busy) slot.click();
    return;
  }
  const at = event.target.closest("button, a, input");
  if (at?.type !== "checkbox" && isPressed(at, key)) {
    if (event.repeat) event.preventDefault(); // the key that saved must not open it again
    return;
  }
  const one = withKey(key);
  const moves = { up: -1, k: -1, down: 1, j: 1 };
  const steps = one ? undefined : moves[key];
  if (!one && steps === undefined && key !== "space" && key !== "enter") return;
  event.preventDefault();
  if (steps !== undefined) { move(cursor + steps); return; }
  // A key that is held down must not accept one page after another unread.
  if (event.repeat || busy) return;
  if (key === "enter") enter();
  else if (key === "space") { const box = lines()[cursor]?.querySelector("input"); if (box) strike(box); }
  else if (one.dataset.focus) one.matches("input") ? one.select() : one.focus();
  else if (one.type === "checkbox") strike(one);
  else one.click();
}

// A page

function came(same) {
  if (!same) { cursor = 0; seen = new Set(); }
  move(cursor, false);
  form().addEventListener("input", (event) => {
    const told = document.getElementById("refusal");
    if (told && event.target.name === "label") told.textContent = refusal();
  });
  form().addEventListener("focusin", (event) => {
    const at = lines().indexOf(event.target.closest(".line"));
    if (at >= 0) move(at, false);
  });
  document.getElementById("search")?.addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const one of document.querySelectorAll("#guide .explained")) {
      one.hidden = !words.every((word) => one.textContent.toLowerCase().includes(word));
    }
  });
  (main().querySelector("[autofocus]") ?? document.getElementById("query"))?.focus({ preventScroll: true });
  look();
}

function guided() {
  if (guide().hidden) return;
  guide().scrollIntoView({ block: "nearest" });
  document.getElementById("search").focus();
}

function leave(event) {
  if (selected()) select();
  else if (!event.repeat && !busy) main().querySelector("form [data-key=escape]")?.click();
}

addEventListener("pointerdown", draw);
addEventListener("pointerover", draw);
addEventListener("pointerup", () => { drawnFrom = -1; });
addEventListener("scroll", look, { passive: true });
addEventListener("resize", look);
desk({
  draftAfterMs: () => DRAFT_AFTER_MS,
  sight: (page) => page.dataset.sight,
  begin: came,
  knows: (key) => Boolean(withKey(key) || (selected() && withSlotKey(key))),
  key: press,
  escape: leave,
  guided,
});
