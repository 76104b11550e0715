// A stretch of time chosen on a chart: dragged, or with Shift and the arrow keys (see docs/reference/pages.md).
(() => {
  "use strict";
  const iso = window.pgqueue.iso = (at) => `${new Date(at * 1000).toISOString().slice(0, 19)}Z`;
  const FAR = 5; // pixels: a press that moves less is a press
  // at: the beginnings of its steps, which may slide; ended(): the end of the last; current(): the step that is read now;
  // page: the address that shows a stretch
  window.pgqueue.brush = (place, at, ended, current, page) => {
    const { day, time } = window.pgqueue.plot;
    const shade = document.createElement("div"), said = document.createElement("span");
    shade.className = "brush"; said.className = "at";
    place.append(shade);
    place.parentElement.querySelector(".legend").append(said);
    const last = at.length - 1, end = (i) => (i < last ? at[i + 1] : ended());
    let from = null, to = null, pressed = null, dragged = false;

    const chosen = () => [at[Math.min(from, to)], end(Math.max(from, to))];
    function show() {
      const address = new URL(page, location), [since, upto] = chosen();
      address.searchParams.set("since", iso(since));
      address.searchParams.set("until", iso(upto));
      location.assign(address);
    }
    function mark() {
      shade.hidden = from === null;
      said.textContent = "";
      if (from === null) return;
      const [since, upto] = chosen(), share = (seconds) => `${100 * seconds / (end(last) - at[0])}%`;
      shade.style.left = share(since - at[0]);
      shade.style.width = share(upto - since);
      said.textContent = `${day(since)} ${time(since)} to ${day(upto)} ${time(upto)}: Enter or let go to see it, Escape to leave it`;
    }
    function leave() { from = to = pressed = null; mark(); }
    function step(x) {
      const { left, width } = place.getBoundingClientRect();
      const seconds = at[0] + (x - left) / width * (end(last) - at[0]);
      return Math.max(0, at.findLastIndex((each) => each <= seconds));
    }

    place.addEventListener("pointerdown", ({ button, clientX, isPrimary }) => {
      dragged = false;
      if (!button && isPrimary) pressed = clientX;
    });
    place.addEventListener("pointermove", ({ clientX, pointerId }) => {
      if (pressed === null || (!dragged && Math.abs(clientX - pressed) < FAR)) return;
      if (!dragged) { place.setPointerCapture(pointerId); from = step(pressed); }
      dragged = true;
      to = step(clientX);
      mark();
    });
    place.addEventListener("pointerup", () => {
      pressed = null;
      if (dragged && from !== null) show();
    });
    place.addEventListener("click", (event) => { if (dragged) event.stopImmediatePropagation(); }, true);
    place.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], is_chosen = from !== null;
      if (by && event.shiftKey) {
        from ??= current() ?? last;
        to = Math.min(last, Math.max(0, (to ?? from) + by));
        mark();
      } else if (is_chosen && event.key === "Enter") {
        event.stopImmediatePropagation();
        show();
      } else if (by || event.key === "Escape") leave();
    });
    for (const type of ["pointercancel", "blur"]) place.addEventListener(type, leave);
    addEventListener("pagehide", leave);
    mark();
  };
})();
