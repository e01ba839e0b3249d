for (const zoom of document.querySelectorAll(".zoom")) {
  const lanes = [...document.getElementById(zoom.dataset.of).querySelectorAll("svg")];
  const whole = parseFloat(zoom.dataset.span), shown = zoom.querySelector("output");
  let start = 0, length = whole;
  const clock = s => `${Math.floor(s / 3600)}:${String(Math.floor(s / 60) % 60).padStart(2, "0")}:${String(Math.floor(s) % 60).padStart(2, "0")}`;
  const draw = () => {
    length = Math.min(whole, Math.max(whole / 5000, length));
    start = Math.min(whole - length, Math.max(0, start));
    for (const svg of lanes) svg.setAttribute("viewBox", `${start} 0 ${length} 30`);
    shown.textContent = `${clock(start)} to ${clock(start + length)} of ${clock(whole)}`;
  };
  const act = {
    "in": () => { start += length / 4; length /= 2; },
    "out": () => { start -= length / 2; length *= 2; },
    "left": () => { start -= length / 2; },
    "right": () => { start += length / 2; },
    "all": () => { start = 0; length = whole; },
  };
  zoom.addEventListener("click", event => { const name = event.target.dataset.act; if (name) { act[name](); draw(); } });
  for (const svg of lanes) svg.addEventListener("wheel", event => {
    event.preventDefault();
    const at = start + length * event.offsetX / svg.clientWidth, factor = event.deltaY < 0 ? 0.8 : 1.25;
    start = at - (at - start) * factor;
    length *= factor;
    draw();
  }, { passive: false });
  zoom.hidden = false;
  draw();
}
