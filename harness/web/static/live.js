"use strict";
// Loads the page again each second and replaces the parts that changed, so that a clip goes on playing.

const EVERY_MS = 1000;
const ANSWERS_WITHIN_MS = 5000;

function shown(part) {
  return document.querySelector(`[data-part=${part.dataset.part}]`);
}

function stale(text) {
  const box = document.getElementById("stale");
  box.hidden = !text;
  if (box.textContent !== text) box.textContent = text;
}

async function renew() {
  try {
    const answer = await fetch(location.pathname, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = page.querySelectorAll("[data-part]");
    if (answer.redirected && parts.length === 0) location.assign(answer.url);
    else if (!answer.ok || parts.length === 0) stale("This page is out of date: the site refused to renew it.");
    else {
      stale("");
      for (const part of parts) {
        const plays = shown(part).querySelector("audio")?.paused === false;
        if (!plays && shown(part).innerHTML !== part.innerHTML) shown(part).innerHTML = part.innerHTML;
      }
    }
  } catch {
    stale("This page is out of date: the site does not answer. The run itself may still go on.");
  }
  setTimeout(renew, EVERY_MS);
}

setTimeout(renew, EVERY_MS);
