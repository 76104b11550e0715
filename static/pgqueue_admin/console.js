// What moves on a page: live figures (rules L1–L11 of docs/reference/pages.md), ages, keys, copying. Pages work without it.
(() => {
  "use strict";
  const body = document.body;
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const NBSP = "\u00a0";

  // ---- the person's zone: what arrives later is put into it here
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  if (!document.cookie.includes(`zone=${encodeURIComponent(zone)}`)) {
    document.cookie = `zone=${encodeURIComponent(zone)}; path=${body.dataset.root}; max-age=31536000; samesite=lax`;
  }
  if (!one("#live-button")) return; // signing in

  const shown = body.dataset.zone || "UTC";
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: shown, hourCycle: "h23", year: "numeric", month: "short", day: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit",
  });
  const split = (instant) => Object.fromEntries(parts.formatToParts(instant).map((p) => [p.type, p.value]));
  const clock = (instant) => { const p = split(instant); return `${p.hour}:${p.minute}:${p.second}`; };
  const short = (instant) => {
    const p = split(instant), now = split(serverNow());
    if (p.year === now.year && p.month === now.month && p.day === now.day) return `${p.hour}:${p.minute}`;
    return p.year === now.year ? `${p.day} ${p.month} ${p.hour}:${p.minute}` : instant.toISOString().slice(0, 10);
  };
  // ---- lengths of time, as formatting/durations.py says them
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const duration = (seconds) => {
    if (seconds < 0) return `−${duration(-seconds)}`;
    if (seconds < 0.9995) return `${Math.round(seconds * 1000)}${NBSP}ms`;
    if (seconds < 9.95) return `${seconds.toFixed(1)}${NBSP}s`;
    const whole = Math.round(seconds), place = UNITS.findIndex(([size]) => whole >= size);
    const [size, unit] = UNITS[place], next = UNITS[place + 1];
    const rest = next ? Math.floor((whole % size) / next[0]) : 0;
    const said = `${Math.floor(whole / size).toLocaleString("en")}${NBSP}${unit}`;
    return rest ? `${said}${NBSP}${rest}${NBSP}${next[1]}` : said;
  };
  const ago = (instant) => {
    const seconds = (serverNow() - instant) / 1000, length = Math.abs(seconds);
    if (length < 1) return "now";
    const said = duration(length < 10 ? length : Math.floor(length));
    return seconds > 0 ? `${said} ago` : `in ${said}`;
  };

  // ---- how fresh the figures are
  const skew = Date.parse(body.dataset.now) - Date.now();
  const serverNow = () => new Date(Date.now() + skew);
  const staleAfter = Number(body.dataset.staleAfter);
  let sampledAt = Date.parse(body.dataset.at) || 0;
  const age = () => (serverNow() - sampledAt) / 1000;
  let stream = null; // the open EventSource
  let outside = false; // signed out while the page was open
  const follows = body.dataset.topics; // L9
  if (!follows) one(".dot").replaceWith("◷");
  let paused = sessionStorage.getItem("paused") === "yes";

  function tick() {
    const stale = !sampledAt || age() > staleAfter;
    one("[data-clock]").textContent = clock(serverNow());
    body.classList.toggle("figures-stale", stale || paused);
    one("#freshness").hidden = !(stale || paused || outside);
    const word = follows ? "Live" : `As of ${short(new Date(body.dataset.now))}`;
    one("[data-live-word]").textContent = paused ? "Paused" : stream ? word : outside ? "Signed out" : "Cut off";
    one("[data-live-age]").textContent = !follows ? "" : sampledAt ? `${duration(Math.max(0.1, Math.round(age() * 10) / 10))} ago` : "no sample";
    if (sampledAt && one("[data-fresh-at]")) {
      one("[data-fresh-at]").textContent = clock(new Date(sampledAt));
      one("[data-fresh-age]").textContent = duration(Math.max(0, age()));
      one("[data-fresh-why]").textContent = why_stale();
    }
    if (stream && !paused) ages(document);
    if (!paused) flush();
    if (stream && Date.now() - heard > 16000) { close(); open(); } // three beats missed
  }

  function why_stale() {
    if (paused) return "Paused; press . or Live to go on.";
    if (!stream && outside) return "You are signed out. Reload to sign in, or sign in in another tab: then this page goes on.";
    return `${stream ? one("#why-stale").textContent : "The console does not answer."} This page tries again by itself.`;
  }

  function ages(root) {
    // asked before any write: one layout for all
    for (const place of all('[data-since], time[data-as="ago"]', root).filter((each) => !in_use(each))) {
      if (place.dateTime) place.textContent = ago(new Date(place.dateTime)); else age_of(place);
    }
  }
  function age_of(place) {
    let now = serverNow();
    if ("target" in place.dataset) now = Math.min(now, sampledAt + staleAfter * 1000); // without samples messages do not age
    const seconds = Math.max(0, (now - Date.parse(place.dataset.since)) / 1000);
    const target = Number(place.dataset.target) || 0, past = target > 0 && seconds > target;
    place.textContent = (place.dataset.about || "") + duration(seconds < 10 ? seconds : Math.floor(seconds));
    if (!("target" in place.dataset)) return;
    place.classList.toggle("crit-t", past && place.dataset.tone !== "warn");
    place.classList.toggle("warn-t", past && place.dataset.tone === "warn");
    const bullet = one(".bullet", place.parentNode);
    if (!bullet || !target) return;
    const scale = 96 / (1.1 * Math.max(seconds, target)), [bar, mark] = [one(".a", bullet), one(".now", bullet)];
    bar.setAttribute("width", (seconds * scale).toFixed(1));
    bar.setAttribute("class", `a ${past ? "k-dead" : "k-ready"}`);
    for (const end of ["x1", "x2"]) mark.setAttribute(end, (target * scale).toFixed(1));
  }
  function times(root) { // a live fragment is rendered once for everybody: put its times into this person's zone
    for (const time of all('time[data-as="short"]', root)) time.textContent = short(new Date(time.dateTime));
    ages(root);
  }

  // ---- changing figures in place (L1), hands off what a person is using (L5): the newest value waits
  const waiting = new Map();
  let pressed = null;
  addEventListener("pointerdown", (event) => { pressed = event.target; });
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = null; });
  const region = (place) => place.closest("[data-region], tr, dl, li, form, section") || place;
  function in_use(place) {
    const held = region(place), active = document.activeElement, selection = getSelection();
    return (held.contains(active) && active.matches("input:not([type=checkbox]), textarea, select"))
      || (pressed && held.contains(pressed))
      || (!selection.isCollapsed && selection.rangeCount > 0 && selection.getRangeAt(0).intersectsNode(held))
      || one("input[type=checkbox]:checked, dialog[open], :popover-open", held) !== null;
  }
  function flush() {
    for (const [key, html] of waiting) {
      const places = all(`[data-live="${CSS.escape(key)}"]`);
      if (places.some(in_use)) continue;
      waiting.delete(key);
      for (const place of places) put(place, html);
      for (const row of all(`[data-live-class="${CSS.escape(key)}"]`)) row.className = html;
    }
  }
  function put(place, html) {
    const made = Object.assign(document.createElement("template"), { innerHTML: html });
    times(made.content);
    const before = place.textContent;
    if (made.innerHTML === place.innerHTML) return;
    place.replaceChildren(made.content);
    if (place.textContent === before || place.matches("[data-quiet]")) return;
    place.classList.remove("changed");
    void place.offsetWidth; // starts the tint again
    place.classList.add("changed");
  }
  // ---- what has no place
  let spoken = 0;
  function say(text) { // L10: at most once in 10 s
    if (!text || Date.now() - spoken < 10000) return;
    spoken = Date.now();
    one("#speech").textContent = text;
  }
  const special = {
    "@at": (value) => { sampledAt = Date.parse(value) || sampledAt; },
    "@title": (value) => { document.title = [value, ...document.title.split(" · ").slice(1)].join(" · "); },
    "@say": (value) => { if (special.said !== undefined && special.said !== value) say(value); special.said = value; },
    "@order": (value) => { // L2: a graver row stands below
      const ranks = all("[data-row]").map((row) => (value.split(`,${row.dataset.row}:`)[1] || "0")[0]);
      for (const note of all("[data-order]")) note.hidden = ranks.join() === ranks.toSorted().reverse().join();
    },
    "@needs": (value) => { // a row may join the list's end
      const ids = value ? value.split(",") : [];
      for (const row of all("[data-need]")) over(row, !ids.includes(row.dataset.need));
    },
    "@processes": (value) => { // those of other endpoints are not missed on the page of one
      const ids = value.split(","), rows = all("[data-process]"), shown = rows.map((row) => row.dataset.process);
      for (const row of rows) over(row, !ids.includes(row.dataset.process));
      for (const note of all("[data-began]")) note.hidden = ids.every((id) => shown.includes(id));
    },
    "@head": (value) => { // messages below the head have left
      for (const row of all("[data-seq]")) over(row, Number(row.dataset.seq) < Number(value));
    },
    "@tail": (value) => { // no new rows by themselves (L3)
      for (const note of all("[data-tail]")) note.hidden = Number(value) <= Number(note.dataset.tail);
    },
  };
  function receive(event) {
    for (const [key, value] of Object.entries(JSON.parse(event.data))) {
      if (key in special) special[key](value);
      else if (key.startsWith("need.")) need(key, value);
      else waiting.set(key, value);
    }
    tick();
    document.dispatchEvent(new CustomEvent("pgqueue:figures", { detail: event.data }));
  }
  function over(row, is) { // it stays, greyed, and says so (L4)
    row.classList.toggle("over", is);
    for (const said of all("[data-left]", row)) said.hidden = !is;
  }
  function need(key, html) {
    const list = one("[data-needs]");
    if (!list) return;
    let row = one(`[data-live="${CSS.escape(key)}"]`);
    if (!row) {
      row = Object.assign(document.createElement("li"), { className: "crit" });
      Object.assign(row.dataset, { live: key, need: key.slice(5), quiet: "" });
      list.append(row);
      list.hidden = false;
    }
    waiting.set(key, html);
  }

  // ---- the stream: htmx's sse extension opens it, on an element that we take away to close it (L7–L9)
  let tries = 0, again = 0, heard = 0;
  function open() {
    clearTimeout(again);
    if (one("#stream") || paused || document.hidden || !window.htmx) return;
    const topics = ["frame", ...body.dataset.topics.split(" ").filter(Boolean)];
    const place = Object.assign(document.createElement("div"), { hidden: true, id: "stream" });
    const address = `${body.dataset.root}live/?${topics.map((t) => `t=${encodeURIComponent(t)}`).join("&")}`;
    const wiring = { "hx-ext": "sse", "sse-connect": address, "sse-swap": "figures,beat" };
    for (const [name, value] of Object.entries(wiring)) place.setAttribute(name, value);
    body.append(place);
    htmx.process(place);
  }
  function close() {
    clearTimeout(again);
    if (stream) stream.close();
    stream = null;
    one("#stream")?.remove();
  }
  body.addEventListener("htmx:sseOpen", (event) => {
    stream = event.detail.source;
    heard = Date.now();
    if (tries) say("Connected again");
    tries = 0;
    outside = false;
    tick();
  });
  body.addEventListener("htmx:sseError", (event) => {
    event.detail.source?.close();
    close();
    if (tries === 1) refused().then(() => say(outside ? "You are signed out" : "The connection to the console is lost"));
    again = setTimeout(open, Math.min(30, 2 ** tries++) * 1000 * (0.75 + Math.random() / 2));
    tick();
  });
  async function refused() { // a stream does not tell why it does not open
    const asked = { method: "HEAD", headers: { "HX-Request": "true" } };
    const answer = await fetch(one("#shortcuts").getAttribute("hx-get"), asked).catch(() => null);
    outside = answer?.status === 401;
    tick();
  }
  body.addEventListener("htmx:sseBeforeMessage", (event) => {
    event.preventDefault(); // the extension would swap; figures change one by one instead
    heard = Date.now();
    if (event.detail.type === "figures") receive(event.detail);
    else rights(JSON.parse(event.detail.data).may);
  });
  function rights(may) { // empty while the console's database does not answer
    if (!may || one("#changed") || may === body.dataset.may) return;
    const again = Object.assign(document.createElement("a"), { href: location.href, textContent: "Load it again" });
    const note = Object.assign(document.createElement("p"), { id: "changed", className: "notice warn" });
    note.append("What you may do has changed since this page was opened; its buttons are those of before.", again);
    one("#freshness").after(note);
    say("What you may do has changed");
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);

  function pause() {
    paused = !paused;
    sessionStorage.setItem("paused", paused ? "yes" : "no");
    one("#live-button").setAttribute("aria-pressed", String(!paused));
    if (paused) close(); else open();
    tick();
  }
  one("#live-button").addEventListener("click", pause);
  // ---- a part that failed to load says so in its place
  function failed(event) {
    const place = event.detail.elt;
    if (!place?.matches("[data-part]")) return;
    const text = "This part could not be loaded. Reload to try again.";
    place.replaceChildren(Object.assign(document.createElement("p"), { className: "notice warn", textContent: text }));
  }
  for (const failure of ["responseError", "sendError", "timeout"]) body.addEventListener(`htmx:${failure}`, failed);
  body.addEventListener("htmx:afterSwap", (event) => {
    times(event.detail.target);
    if (event.detail.target.id === "shortcuts") own_keys(event.detail.target);
  });

  // ---- keys: single ones only outside of fields, and not for who has turned them off
  let going = 0;
  function own_keys(list) { // keys that only this page has, named by what they press
    const places = all("[data-key]").filter((each) => each.offsetParent).map((each) => [each.dataset.key, each]);
    for (const [name, place] of new Map(places)) {
      const [key, does] = ["dt", "dd"].map((tag) => one("dl", list).appendChild(document.createElement(tag)));
      key.append(Object.assign(document.createElement("kbd"), { textContent: name }));
      does.textContent = place.textContent.trim();
    }
  }
  const links = () => all("main tbody tr, main [data-row]").filter((row) => one("a", row) && row.offsetParent);
  function step(by) {
    const rows = links(), next = rows[Math.min(rows.length - 1, Math.max(0, held() + by))];
    if (next) one("a", next).focus();
  }
  // after an act, focus is on what it said, or in the row at the same place
  const held = () => links().findIndex((row) => row.contains(document.activeElement));
  document.addEventListener("submit", () => sessionStorage.setItem("acted", `${location.pathname} ${held()}`));
  const [acted, at] = (sessionStorage.getItem("acted") || "").split(" "), result = one(".notice[role=status]");
  sessionStorage.removeItem("acted");
  if (acted && result) {
    const rows = links(), row = acted === location.pathname && rows[Math.min(at, rows.length - 1)];
    result.tabIndex = -1;
    (row ? one("a", row) : result).focus();
  }
  const own_place = (key) => all(`[data-key="${CSS.escape(key)}"]`).find((each) => each.offsetParent
    && (!each.closest("tbody") || each.closest("tr").contains(document.activeElement))); // of many rows, the held one
  const box = () => document.activeElement.closest("tr")?.querySelector("input[type=checkbox]");
  const KEYS = {
    "/": () => one("#q")?.focus(),
    "?": () => one("#shortcuts").togglePopover(),
    ".": pause,
    g: () => { going = Date.now(); },
    j: () => step(1),
    k: () => step(-1),
    x: () => box()?.click(),
    X: () => box()?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: true })),
    Escape: () => one("[data-clear]")?.click(),
    c: () => (one("tr:focus-within .copy") || one(".head .copy"))?.click(),
    z: () => one(`#person [name=utc]:not([aria-pressed])`)?.click(),
  };
  function within(question, event) { // Tab goes round, so that nobody presses what lies behind
    const stops = all("button, input:not([type=hidden]), select, textarea, a", question).filter((each) => !each.disabled);
    const [from, to] = event.shiftKey ? [stops[0], stops.at(-1)] : [stops.at(-1), stops[0]];
    if (question.contains(document.activeElement) && document.activeElement !== from) return;
    to.focus();
    event.preventDefault();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const open = one(":popover-open"); // Escape closes that, and focus goes back to what opened it
    if (open?.matches("dialog") && event.key === "Tab") within(open, event);
    if (open && (event.key === "Escape" || open.matches("dialog"))) return; // a question is answered before anything else
    if (event.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (body.dataset.keys === "off" || (event.repeat && !"jk".includes(event.key))) return; // a key held down acts once
    const own = own_place(event.key);
    const place = Date.now() - going < 1500 && one(`#nav a[data-go="${CSS.escape(event.key)}"]`);
    if (place) place.click();
    else if (own) { own.focus(); own.click(); } // where focus comes back to
    else if (KEYS[event.key]) KEYS[event.key]();
    else return;
    if (event.key !== "g") going = 0;
    event.preventDefault();
  });

  // ---- copying
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    field.select();
    document.execCommand("copy"); // without https there is no clipboard object
    field.remove();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button.dataset.copy).then(() => { spoken = 0; say("Copied"); button.classList.add("changed"); });
    if (event.target.closest("[aria-disabled=true]")) event.preventDefault();
  });

  window.pgqueue = { clock, duration, serverNow, shown, in_use };
  setInterval(tick, 1000);
  one("#live-button").setAttribute("aria-pressed", String(!paused));
  tick();
  open();
})();
