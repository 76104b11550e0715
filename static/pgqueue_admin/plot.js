// What all charts share: colours of the stylesheet, hairlines with labels, the keyboard (see docs/reference/pages.md).
(() => {
  "use strict";
  const time = (at) => window.pgqueue.clock(new Date(at * 1000)).slice(0, 5);
  const said = (at, parts) => new Intl.DateTimeFormat("en-GB", { timeZone: window.pgqueue.shown, ...parts })
    .format(new Date(at * 1000)).replace("Sept", "Sep"); // as tables say it
  const year = (at) => said(at, { year: "numeric" });
  const day = (at) => said(at, { day: "numeric", month: "short", ...(year(at) === year(Date.now() / 1000) ? {} : { year: "numeric" }) });
  // below an axis: what tells its quarters apart, and fits a phone (as trends/drawing.py has it)
  const below = (at, length) => length > 25_920_000 ? said(at, { month: "short", year: "numeric" })
    : length > 90_000 ? said(at, { day: "numeric", month: "short" }) : time(at);

  // colours are the stylesheet's: light-dark() is resolved by asking an element that wears it
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const colours = {};
  function read_colours() {
    for (const name of ["ready", "flight", "delayed", "expired", "dead", "out", "line", "edge", "ink", "ink-2", "warn-solid", "warn", "crit-solid", "crit"]) {
      probe.style.color = `var(--${name})`;
      colours[name] = getComputedStyle(probe).color;
    }
  }
  const alpha = (colour, share) => `rgba(${colour.match(/[\d.]+/g).slice(0, 3).join(", ")}, ${share})`;
  // as formatting/numbers.py says them: in full where a count is read, with two digits on an axis and of what is about
  const grouped = (value) => value.toLocaleString("en");
  const millions = (value) => {
    const [size, unit] = value >= 1e12 ? [1e12, "T"] : value >= 1e9 ? [1e9, "G"] : [1e6, "M"];
    return `${grouped(+(value / size).toPrecision(2))}\u00a0${unit}`;
  };
  const integer = (value) => (value < 1e8 ? grouped(value) : millions(value));
  const whole = (value) => (value < 1e6 ? grouped(value) : millions(value));
  // as formatting/durations.py says it: milliseconds that it has rounded already
  const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const span = (ms) => {
    if (ms < 0.5) return "<\u00a01\u00a0ms";
    if (ms < 999.5) return `${Math.round(ms)}\u00a0ms`;
    if (ms < 60_000) return `${+(ms / 1000).toPrecision(3)}\u00a0s`;
    const seconds = Math.round(ms / 1000), place = UNITS.findIndex(([size]) => seconds >= size);
    const [[size, unit], [next, next_unit]] = UNITS.slice(place), rest = Math.floor(seconds % size / next);
    return `${grouped(Math.floor(seconds / size))}\u00a0${unit}${rest ? `\u00a0${rest}\u00a0${next_unit}` : ""}`;
  };
  const rate = (value) => { // as formatting/numbers.py says it
    if (value === null || value === undefined) return "–";
    for (const [times, unit] of [[1, "/s"], [60, "/min"], [3600, "/h"]]) {
      if (value * times >= 1 || unit === "/h") {
        const said = value * times < 9.95 ? (value * times).toFixed(1).replace(".0", "") : whole(+(value * times).toPrecision(2));
        return value * 3600 < 0.5 ? "0\u00a0/s" : `${said}\u00a0${unit}`;
      }
    }
  };

  const lines = (label, every) => (u) => { // three to five hairlines, labels above their line, inside the plot
    const { ctx, bbox } = u, ratio = devicePixelRatio, top = u.scales.y.max;
    ctx.save();
    ctx.font = `500 ${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.lineWidth = ratio;
    ctx.setLineDash([]);
    const step = every?.(top) || [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10(top / 4))).find((s) => top / s <= Math.max(1, bbox.height / ratio / 36)) || top;
    for (let value = 0; value <= top; value += step) {
      const y = Math.round(u.valToPos(value, "y", true)) + 0.5;
      ctx.strokeStyle = value ? colours.line : colours.edge;
      ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
      if (!value) continue;
      ctx.fillStyle = colours["ink-2"];
      ctx.fillText(label(+value.toPrecision(3)), bbox.left, y - 4 * ratio);
    }
    const [first, last] = [u.scales.x.min, u.scales.x.max];
    [0, 0.25, 0.5, 0.75, 1].forEach((share) => {
      const at = first + (last - first) * share;
      ctx.textAlign = share === 0 ? "left" : share === 1 ? "right" : "center";
      ctx.fillStyle = colours["ink-2"];
      ctx.fillText(below(at, last - first), bbox.left + bbox.width * share, bbox.top + bbox.height + 15 * ratio);
    });
    ctx.restore();
  };

  // a step reaches from its instant to the next one: not the nearest instant, but the last one before the cursor
  function under_cursor(u, data) {
    const { idx, left } = u.cursor;
    if (!data.until || !idx) return idx ?? null;
    const [before, at] = [data.at[idx - 1], data.at[idx]];
    return u.posToVal(left, "x") < at - (at - before) / 100 ? idx - 1 : idx;
  }

  const let_through = () => {}; // uPlot keeps presses to itself otherwise, and some lead to messages
  // names: the lines of data, each with its style; readout(i) is told the place under the cursor, or null
  function draw(place, data, names, styles, { top = (high) => Math.max(1, high * 1.08), under, hooks, bands, label = whole, every, readout }) {
    const u = new uPlot({
      width: place.clientWidth, height: place.clientHeight, legend: { show: false }, padding: [16, 0, under, 0],
      cursor: { y: false, drag: { x: false, y: false, click: let_through }, points: { size: 6 } },
      scales: { x: { time: false, range: (u, low, high) => [low, data.until || high] }, y: { range: (u, low, high) => [0, top(high)] } },
      axes: [{ show: false }, { show: false }],
      series: [{}, ...styles],
      bands,
      hooks: { drawClear: [lines(label, every)], draw: hooks, setCursor: [(u) => readout(under_cursor(u, data))] },
    }, [data.at, ...names.map((name) => data[name])], place);
    names.forEach((name, i) => { u.series[i + 1].name = name; });
    return u;
  }

  // arrow keys walk along the newest drawing of a place
  function walk(place, data, drawn, newest, readout) {
    place.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], u = drawn();
      if (!by) return;
      event.preventDefault();
      const i = Math.min(data.at.length - 1, Math.max(0, (under_cursor(u, data) ?? newest()) + by));
      u.setCursor({ left: u.valToPos(data.at[i], "x"), top: 10 });
      readout(i);
    });
    place.addEventListener("blur", () => { drawn().setCursor({ left: -10, top: -10 }); readout(null); });
    listened(place);
  }

  // while a place has the focus, its legend is heard
  function listened(place) {
    for (const [type, live] of [["focus", "polite"], ["blur", "off"]]) {
      place.addEventListener(type, () => place.parentElement.querySelector(".legend").setAttribute("aria-live", live));
    }
  }

  // drawn once the fonts are there, again in other colours, and at other widths
  function keep(source, charts, draw_all) {
    new ResizeObserver(() => {
      for (const { u, place } of charts) u.setSize({ width: place.clientWidth, height: place.clientHeight });
    }).observe(source);
    const anew = () => {
      read_colours();
      for (const { u } of charts.splice(0)) u.destroy();
      draw_all();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
    document.fonts.ready.then(anew);
  }

  window.pgqueue.plot = { alpha, colours, day, draw, integer, keep, listened, rate, span, time, under_cursor, walk, whole };
})();
