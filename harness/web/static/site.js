"use strict";
// Sound, menus and cursor of a rater's page; page.js has the rest.

const DRAFT_AFTER_MS = 500;
const BY_ITSELF = "play-by-itself";
const wide = matchMedia("(min-width: 87rem)"); // as in site.css
let armed = null; // the open menu, whose letters take precedence over other keys
let heard = { plays: 0, ms: 0, end: false };
let sounds = [];

// Sound

class Sound {
  constructor(box) {
    this.box = box;
    this.audio = box.querySelector("audio");
    this.cursor = box.querySelector(".cursor");
    this.time = box.querySelector("[data-time]");
    this.counts = box.dataset.sound === "response";
    this.since = null;
    this.asked = null; // where a play is to begin that has not sounded yet
    this.blocked = false;
    this.whole = false; // played from the start
    this.audio.preservesPitch = true;
    this.audio.addEventListener("playing", () => { this.note(); this.since = performance.now(); this.follow(); });
    this.audio.addEventListener("ended", () => { if (this.whole && this.counts) heard.end = true; });
    this.audio.addEventListener("timeupdate", () => this.move());
    for (const event of ["pause", "ended", "emptied"]) {
      this.audio.addEventListener(event, () => { this.note(); this.draw(); });
    }
    this.audio.addEventListener("loadedmetadata", () => this.draw());
    this.audio.addEventListener("error", () => { this.time.textContent = "this sound cannot be played"; });
    box.querySelector("[data-seek]").addEventListener("click", (event) => {
      const place = event.currentTarget.getBoundingClientRect();
      this.play(1, ((event.clientX - place.left) / place.width) * (this.audio.duration || 0));
    });
    for (const button of box.querySelectorAll("[data-play]")) {
      button.addEventListener("click", () => this.press(Number(button.dataset.play)));
    }
    box.querySelector("[data-stop]")?.addEventListener("click", () => sounds.forEach((one) => one.stop()));
  }

  // The same key again stops; the next one plays from the start.
  press(rate) {
    if (!this.audio.paused && this.audio.playbackRate === rate) this.stop();
    else this.play(rate, 0);
  }

  play(rate, from) {
    sounds.forEach((one) => one.stop());
    this.audio.playbackRate = rate;
    this.whole = from === 0;
    this.blocked = false;
    this.asked = from;
    if (this.audio.readyState > 0) this.audio.currentTime = from;
    this.audio.play().catch((error) => {
      if (error.name === "NotAllowedError") this.block();
      else if (error.name !== "AbortError") this.time.textContent = "this sound cannot be played";
    });
  }

  // Browsers play no sound on a page before a key or a tap on it.
  block() {
    this.blocked = true;
    const key = this.box.querySelector("[data-play] kbd").textContent;
    this.time.textContent = `press a key to hear this (${key}), or tap Play: the browser blocks sound until then`;
    tell(this.time.textContent);
  }

  stop() {
    this.audio.pause();
    this.note();
  }

  // A play counts once its time moves: a request that the browser blocks, or that never loads, is not heard.
  move() {
    if (this.asked === null || this.since === null || this.audio.currentTime <= this.asked) return;
    this.asked = null;
    if (this.counts) heard.plays += 1;
  }

  note() {
    this.move();
    const moved = this.since !== null && this.asked === null;
    // Milliseconds of the response at its original tempo.
    if (moved && this.counts) heard.ms += Math.round((performance.now() - this.since) * this.audio.playbackRate);
    this.since = null;
  }

  follow() {
    this.draw();
    if (this.audio.paused || !this.box.isConnected) return;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) setTimeout(() => this.follow(), 250);
    else requestAnimationFrame(() => this.follow());
  }

  draw() {
    const length = this.audio.duration;
    if (!length || this.blocked) return;
    this.cursor.hidden = false;
    this.cursor.style.left = `${Math.min(100, (100 * this.audio.currentTime) / length)}%`;
    this.time.textContent = `${this.audio.currentTime.toFixed(1)} / ${length.toFixed(1)} s`;
  }
}

function fill() {
  sounds.forEach((one) => { if (one.since !== null) { one.note(); one.since = performance.now(); } });
  form().elements.plays.value = heard.plays;
  form().elements.heard_ms.value = heard.ms;
  form().elements.heard_end.value = heard.end ? 1 : 0;
}

// A sound keeps playing while the response stays the same.
function swap(next, same) {
  if (same) sounds.forEach((one) => next.querySelector(`[data-sound="${one.box.dataset.sound}"]`)?.replaceWith(one.box));
  else sounds.forEach((one) => {
    one.counts = false; // its last events come when the next page counts
    one.audio.pause();
    one.audio.removeAttribute("src");
    one.audio.load();
  });
}

// Keys

function found(box, key) {
  for (const wanted of [key, key.toLowerCase()]) {
    for (const one of box.querySelectorAll("[data-key], [data-focus], [data-toggle], [data-cycle]")) {
      const its = one.dataset;
      const lies = its.key !== undefined && one.closest("[data-menu]");
      if ((its.key ?? its.focus ?? its.toggle ?? its.cycle) !== wanted) continue;
      if (lies && lies !== armed) continue;
      return one;
    }
  }
  return null;
}

function arm(menu) {
  armed = menu;
  if (menu?.tagName === "DETAILS") menu.open = true;
}

function close() {
  if (armed?.tagName === "DETAILS") armed.open = false;
  armed = main().querySelector("[data-menu][data-open]");
}

function press(event, key) {
  const at = event.target.closest("button, a, summary, input");
  if (isPressed(at, key)) return;
  if (at?.type === "radio" && /^(left|right|up|down)$/.test(key)) return;
  const one = (armed && found(armed, key)) || found(main(), key);
  if (!one) return;
  event.preventDefault();
  // A key that is held down must not label one response after another unheard.
  if (event.repeat || busy) return;
  if (one.dataset.focus) one.focus();
  else if (one.dataset.toggle) armed === one ? close() : arm(one);
  else if (one.dataset.cycle) cycle(one);
  else one.click();
}

function cycle(box) {
  const choices = [...box.querySelectorAll("input")];
  const next = choices[(choices.findIndex((one) => one.checked) + 1) % choices.length];
  next.checked = true;
  tell(`confidence: ${next.parentElement.textContent.trim()}`);
  keepDraft(0);
}

// A page

function came(same) {
  armed = main().querySelector("[data-menu][data-open]");
  heard = { plays: 0, ms: 0, end: false }; // the site counts from each page that it sends
  const boxes = [...main().querySelectorAll("[data-sound]")];
  sounds = boxes.map((box) => sounds.find((one) => one.box === box) ?? new Sound(box));
  const chosen = main().querySelector("[data-by-itself]");
  if (chosen) {
    chosen.checked = localStorage.getItem(BY_ITSELF) === "yes";
    chosen.addEventListener("change", () => localStorage.setItem(BY_ITSELF, chosen.checked ? "yes" : "no"));
    if (chosen.checked && !same) sounds[0]?.play(1, 0);
  }
  for (const details of form().querySelectorAll("details[data-menu]")) {
    details.querySelector("summary").addEventListener("click", () => { armed = details.open ? null : details; });
  }
  if (!armed) document.getElementById("query")?.focus({ preventScroll: true });
}

// Without room beside the response, the guide stands at the end of the page.
function guided() {
  if (!wide.matches) (guide().hidden ? document.getElementById("query") : guide()).scrollIntoView();
}

desk({
  draftAfterMs: (target) => (target.type === "textarea" ? DRAFT_AFTER_MS : 0),
  sight: (page) => page.dataset.item,
  begin: came,
  knows: (key) => Boolean((armed && found(armed, key)) || found(main(), key)),
  key: press,
  escape: close,
  fill,
  swap,
  guided,
});
