"use strict";
// Shared by the desks of all sites: sends the form, shows the returned page, keeps drafts, handles keys. The site's
// own script follows and calls desk() with its functions. Without scripts the buttons work too, page by page.

const LOOK_AFTER_MS = 5000;
const UNSENT = "unsent-draft";
const LONGEST_KEPT_ALIVE = 60_000;
const NAMES = { " ": "space", Enter: "enter", Tab: "tab", Backspace: "backspace", ArrowLeft: "left", ArrowRight: "right",
  ArrowUp: "up", ArrowDown: "down", Escape: "escape" };
let own = null;
let busy = false;
let draftTimer = 0;
const documentId = crypto.getRandomValues(new Uint32Array(1))[0];
let changes = 0;

document.documentElement.classList.add("js");

const main = () => document.getElementById("main");
const form = () => document.getElementById("desk");
const guide = () => document.getElementById("guide");

// Starts. its.draftAfterMs(target): delay between an input and sending the draft.
// its.sight(main): identifies the page's item. its.begin(same): a page arrived; same: its item is unchanged.
// its.knows(key): whether a key does something on the page. its.key(event, key): a key outside text fields. its.escape(): Escape with nothing else to leave.
// Optional: its.fill(): the form is about to be sent. its.swap(next, same): a page is about to be replaced.
// its.guided(): the guide was opened or closed.
function desk(its) {
  own = its;
  document.addEventListener("keydown", pressed);
  addEventListener("pagehide", () => {
    if (form()?.elements.has_draft && !busy) navigator.sendBeacon(form().action, body("draft.quiet"));
  });
  setInterval(lookForMore, LOOK_AFTER_MS);
  restore();
  begin(false, false);
}

// Messages

function tell(text) {
  document.getElementById("said").textContent = text;
}

function alertOf(text) {
  form().querySelector(".said")?.remove(); // it belongs to the previous key
  let box = form().querySelector(".alert");
  if (!box) {
    box = document.createElement("p");
    box.className = "alert";
    box.setAttribute("role", "alert");
    form().querySelector(".bar").after(box);
  }
  box.textContent = text;
}

// Sending

function body(button) {
  own.fill?.();
  const fields = new URLSearchParams(new FormData(form()));
  fields.set("do", button);
  fields.set("change", `${documentId}.${++changes}`); // the site ignores a draft that a later form overtook
  return fields;
}

// What is wrong with a comment that the site would refuse. It stays on the page.
function tooLong() {
  const box = form().elements.comment;
  if (!box || box.value === box.defaultValue) return ""; // as the site sent it
  const length = [...box.value.normalize("NFC")].length;
  const most = Number(box.dataset.longest);
  return length <= most ? "" : `Not saved: the comment has ${length} characters; the limit is ${most}. Shorten it.`;
}

async function send(button) {
  if (busy) return;
  if (tooLong()) { alertOf(tooLong()); return; }
  clearTimeout(draftTimer);
  busy = true;
  main().classList.add("busy");
  try {
    const answer = await fetch(form().action, { method: "POST", body: body(button) });
    if (new URL(answer.url).pathname !== location.pathname) location.assign(answer.url);
    else if (answer.headers.get("content-type")?.startsWith("text/html")) {
      show(await answer.text());
      if (answer.ok) forget();
    }
    else alertOf(answer.status === 413 ? await answer.text() : "Not saved. Load the page again.");
  } catch {
    alertOf("Not saved: the site does not answer. Press the key again when it is back; nothing else is lost.");
  } finally {
    busy = false;
    main()?.classList.remove("busy");
  }
}

function keepDraft(afterMs) {
  clearTimeout(draftTimer);
  if (!form()?.elements.has_draft) return;
  remember();
  if (tooLong()) { alertOf(tooLong()); return; }
  const turn = main().dataset.turn;
  draftTimer = setTimeout(async () => {
    if (busy || main().dataset.turn !== turn) return;
    const kept = sessionStorage.getItem(UNSENT);
    const fields = body("draft.quiet");
    // Browsers refuse to keep a long request alive.
    const keepalive = fields.toString().length < LONGEST_KEPT_ALIVE;
    try {
      const answer = await fetch(form().action, { method: "POST", body: fields, keepalive });
      if (answer.ok && sessionStorage.getItem(UNSENT) === kept) forget();
    } catch {
      // It stays remembered, and goes with the next form.
    }
  }, afterMs);
}

// The draft stays in the window until the site has it: a reload is answered before the page that it replaces can send
// anything. Nobody else who logs in here gets it.

const drafted = () => [...form().querySelectorAll("textarea[name], [type=radio][name], [type=checkbox][name]")];
const whose = () => main().dataset.rater;

function remember() {
  const fields = drafted().filter((field) => field.type === "textarea" || field.checked);
  const values = fields.map((field) => [field.name, field.value]);
  sessionStorage.setItem(UNSENT, JSON.stringify([whose(), own.sight(main()), values]));
}

function forget() {
  sessionStorage.removeItem(UNSENT);
}

function restore() {
  const [rater, sight, values] = JSON.parse(sessionStorage.getItem(UNSENT) ?? "[]");
  forget();
  if (!form().elements.has_draft || rater !== whose() || sight !== own.sight(main())) return;
  for (const field of drafted()) {
    if (field.type === "textarea") field.value = values.find(([name]) => name === field.name)?.[1] ?? field.value;
    else field.checked = values.some(([name, value]) => name === field.name && value === field.value);
  }
  keepDraft(0);
}

// When all is done, the page looks for new work.
async function lookForMore() {
  if (busy || document.hidden || main()?.dataset.phase !== "finished") return;
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

// A page

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("main");
  if (!fresh || !page.getElementById("desk")) {
    // Not a desk: the site's page says what to do.
    main().replaceWith(document.importNode(fresh ?? page.body, true));
    return;
  }
  const opened = guide()?.hidden === false;
  const same = own.sight(fresh) === own.sight(main());
  const next = document.importNode(fresh, true);
  own.swap?.(next, same);
  main().replaceWith(next);
  document.title = page.title;
  begin(same, opened);
  tell(main().dataset.said);
}

function begin(same, opened) {
  if (opened) openGuide(true);
  form().addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.submitter?.value ?? "draft.save");
  });
  form().addEventListener("input", (event) => {
    if (event.target.name) keepDraft(own.draftAfterMs(event.target));
  });
  form().querySelector("[data-guide]")?.addEventListener("click", (event) => {
    if (!guide()) return; // the link leads to the guide's page
    event.preventDefault();
    openGuide(guide().hidden);
    own.guided?.();
  });
  own.begin(same);
  if (!same) scrollTo(0, 0);
}

function openGuide(open) {
  if (!guide()) return;
  guide().hidden = !open;
  main().classList.toggle("with-guide", open);
}

// Keys

// The key that stands in this place of the digit row on a US keyboard. On AZERTY the row gives digits with Shift only.
function placed(event) {
  if (event.shiftKey || /^\d$/.test(event.key)) return null;
  return /^Digit\d$/.test(event.code) ? event.code.slice(5) : event.code === "Minus" ? "-" : null;
}

function keyOf(event) {
  const place = placed(event);
  if (place !== null && own.knows(place)) return place;
  return NAMES[event.key] ?? (/^F\d+$/.test(event.key) ? event.key.toLowerCase() : event.key);
}

function isTyping(target) {
  return target.matches("textarea, input:not([type=radio]):not([type=checkbox])");
}

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || !form()) return;
  const key = keyOf(event);
  if (key === "escape") {
    if (isTyping(event.target)) { event.target.blur(); keepDraft(0); }
    else if (guide()?.hidden === false) form().querySelector("[data-guide]").click();
    else own.escape(event);
  } else if (!isTyping(event.target)) {
    own.key(event, key);
  }
}

// Whether the browser presses the focused element with this key, as usual.
function isPressed(at, key) {
  return Boolean(at) && (key === "enter" || (key === "space" && document.activeElement.matches(":focus-visible")));
}
