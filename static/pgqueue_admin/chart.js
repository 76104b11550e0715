// Depth and rate of one queue, drawn by uPlot (see docs/console.md). Lengths go through the CSSOM.
(() => {
  "use strict";
  const source = document.getElementById("chart-depth");
  if (!source || !window.uPlot) return;
  const NAMES = ["ready", "in_flight", "delayed", "expired", "in", "out"];
  const data = JSON.parse(source.dataset.series);
  const target = Number(source.dataset.target) || 0, breach = Number(source.dataset.breach) || 0;
  const time = (at) => window.pgqueue.clock(new Date(at * 1000)).slice(0, 5);
  const day = (at) => new Intl.DateTimeFormat("en-GB", { timeZone: window.pgqueue.shown, day: "numeric", month: "short" })
    .format(new Date(at * 1000));

  // colours are the stylesheet's: light-dark() is resolved by asking an element that wears it
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  let colours = {};
  function read_colours() {
    for (const name of ["ready", "flight", "delayed", "expired", "dead", "out", "line", "edge", "ink-2", "warn-solid", "warn", "crit-solid", "crit"]) {
      probe.style.color = `var(--${name})`;
      colours[name] = getComputedStyle(probe).color;
    }
  }
  const alpha = (colour, share) => `rgba(${colour.match(/[\d.]+/g).slice(0, 3).join(", ")}, ${share})`;

  const whole = (value) => (value >= 1e6 ? `${+(value / 1e6).toPrecision(2)}\u00a0M` : value.toLocaleString("en"));
  const figure = (value) => (value === null || value === undefined ? "–" : whole(Math.round(value)));
  const rate = (value) => {
    if (value === null || value === undefined) return "–";
    for (const [times, unit] of [[1, "/s"], [60, "/min"], [3600, "/h"]]) {
      if (value * times >= 1 || unit === "/h") {
        const said = value * times < 9.95 ? (value * times).toFixed(1).replace(".0", "") : whole(+(value * times).toPrecision(2));
        return value * 3600 < 0.5 ? "0\u00a0/s" : `${said}\u00a0${unit}`;
      }
    }
  };

  // ---- what is drawn under and over the lines
  function lines(u) { // three to five hairlines, labels above their line, inside the plot
    const { ctx, bbox } = u, ratio = devicePixelRatio, top = u.scales.y.max;
    ctx.save();
    ctx.font = `500 ${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.lineWidth = ratio;
    ctx.setLineDash([]);
    const step = [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10(top / 4))).find((s) => top / s <= Math.max(1, bbox.height / ratio / 36)) || top;
    for (let value = 0; value <= top; value += step) {
      const y = Math.round(u.valToPos(value, "y", true)) + 0.5;
      ctx.strokeStyle = value ? colours.line : colours.edge;
      ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
      if (!value) continue;
      ctx.fillStyle = colours["ink-2"];
      ctx.fillText(whole(+value.toPrecision(3)), bbox.left, y - 4 * ratio);
    }
    const [first, last] = [u.scales.x.min, u.scales.x.max];
    [0, 0.25, 0.5, 0.75, 1].forEach((share) => {
      const at = first + (last - first) * share;
      ctx.textAlign = share === 0 ? "left" : share === 1 ? "right" : "center";
      ctx.fillStyle = colours["ink-2"];
      ctx.fillText(last - first > 90000 ? day(at) : time(at), bbox.left + bbox.width * share, bbox.top + bbox.height + 15 * ratio);
    });
    ctx.restore();
  }
  function marks(u) { // the target dashed, the breach from its since mark on
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `600 ${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    if (target && u.scales.y.max >= target && u.series[1].name === "ready") {
      const y = Math.round(u.valToPos(target, "y", true)) + 0.5;
      ctx.strokeStyle = colours["warn-solid"]; ctx.lineWidth = 1.5 * ratio; ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
      ctx.fillStyle = colours.warn; ctx.fillText(`target ${whole(target)}`, bbox.left, y - 4 * ratio);
    }
    if (breach && breach < u.scales.x.max) {
      const x = Math.max(bbox.left, u.valToPos(breach, "x", true));
      ctx.fillStyle = alpha(colours["crit-solid"], 0.08);
      ctx.fillRect(x, bbox.top, bbox.left + bbox.width - x, bbox.height);
      if (breach > u.scales.x.min) {
        ctx.setLineDash([]); ctx.strokeStyle = colours["crit-solid"]; ctx.lineWidth = 1.5 * ratio;
        ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
        ctx.fillStyle = colours.crit;
        const right = x > bbox.left + bbox.width * 0.85;
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(`since ${time(breach)}`, x + (right ? -6 : 6) * ratio, bbox.top + 12 * ratio);
      }
    }
    ctx.restore();
  }
  function texture(u) { // in flight as stripes on the base, at most 8 px; expired as crosses
    const { ctx } = u, ratio = devicePixelRatio, base = u.valToPos(0, "y", true);
    ctx.save();
    ctx.lineWidth = ratio;
    data.at.forEach((at, i) => {
      const x = u.valToPos(at, "x", true);
      if (data.in_flight[i]) {
        ctx.strokeStyle = colours.flight;
        ctx.beginPath(); ctx.moveTo(x - 3 * ratio, base); ctx.lineTo(x + 3 * ratio, base - 8 * ratio); ctx.stroke();
      }
      if (data.expired[i] > 0 && i % 4 === 0) {
        const y = u.valToPos(data.expired[i], "y", true), r = 3 * ratio;
        ctx.strokeStyle = colours.expired;
        ctx.beginPath(); ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r); ctx.stroke();
      }
    });
    ctx.restore();
  }
  function deaths(u) { // red ticks under the axis
    const { ctx } = u, ratio = devicePixelRatio, base = u.valToPos(0, "y", true);
    const most = Math.max(1, ...data.dead.filter((value) => value));
    ctx.save();
    ctx.fillStyle = colours.dead;
    data.at.forEach((at, i) => {
      if (data.dead[i]) ctx.fillRect(u.valToPos(at, "x", true) - 2 * ratio, base + ratio, 4 * ratio, (3 + 8 * data.dead[i] / most) * ratio);
    });
    ctx.restore();
  }

  // ---- the legend is the readout
  const reads = [...document.querySelectorAll("[data-read]")];
  function readout(i) {
    for (const place of reads) {
      const name = place.dataset.read;
      if (name === "at") place.textContent = i === null ? "" : `at ${time(data.at[i])}`;
      else place.textContent = (place.dataset.about || "") + (["in", "out"].includes(name) ? rate : figure)(data[name][i ?? newest()]);
    }
  }
  const newest = () => data.ready.reduce((last, value, i) => (value === null ? last : i), 0);

  const charts = [];
  function draw(place, names, styles, under, hooks) {
    const top = (u, low, high) => [0, Math.max(1, target && names[0] === "ready" ? target * 1.05 : 0, high * 1.08)];
    const options = {
      width: place.clientWidth, height: place.clientHeight, legend: { show: false }, padding: [8, 0, under, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: false, range: (u, low, high) => [low, high] }, y: { range: top } },
      axes: [{ show: false }, { show: false }],
      series: [{}, ...styles()],
      hooks: { drawClear: [lines], draw: hooks, setCursor: [(u) => readout(u.cursor.idx ?? null)] },
    };
    const u = new uPlot(options, [data.at, ...names.map((name) => data[name])], place);
    names.forEach((name, i) => { u.series[i + 1].name = name; });
    charts.push({ u, names, styles, place });
    place.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const i = Math.min(data.at.length - 1, Math.max(0, (u.cursor.idx ?? newest()) + by));
      u.setCursor({ left: u.valToPos(data.at[i], "x"), top: 10 });
      readout(i);
    });
    place.addEventListener("blur", () => { u.setCursor({ left: -10, top: -10 }); readout(null); });
    for (const [type, live] of [["focus", "polite"], ["blur", "off"]]) {
      place.addEventListener(type, () => place.parentElement.querySelector(".legend").setAttribute("aria-live", live));
    }
  }
  const depth_styles = () => [
    { stroke: colours.ready, width: 1.75, fill: alpha(colours.ready, 0.2), points: { show: false } },
    { stroke: colours.delayed, width: 1.75, dash: [1, 4], cap: "round", points: { show: false } },
    { stroke: "transparent", points: { show: false } },
  ];
  const rate_styles = () => [
    { stroke: colours.ready, width: 1.75, points: { show: false } },
    { stroke: colours.out, width: 1.75, dash: [5, 3], points: { show: false } },
  ];
  function draw_all() {
    read_colours();
    for (const { u } of charts.splice(0)) u.destroy();
    draw(document.querySelector('[data-plot="depth"]'), ["ready", "delayed", "expired"], depth_styles, 20, [texture, marks]);
    draw(document.querySelector('[data-plot="rate"]'), ["in", "out"], rate_styles, 32, [deaths, marks]);
    readout(null);
  }

  // ---- live: append and slide once a sample; not while the pointer or the focus is inside
  let held = null;
  function append([at, ...figures]) {
    const step = Math.floor(at / data.step) * data.step, last = data.at.length - 1;
    if (step > data.at[last]) {
      for (const name of ["at", ...NAMES, "dead"]) { data[name].shift(); data[name].push(name === "at" ? step : null); }
    }
    figures.forEach((value, i) => { data[NAMES[i]][last] = value; });
    for (const { u, names } of charts) u.setData([data.at, ...names.map((name) => data[name])]);
    readout(null);
  }
  document.addEventListener("pgqueue:figures", (event) => {
    const point = JSON.parse(event.detail)["@point"];
    if (point) held = point.split(",").map((value) => (value === "" ? null : Number(value)));
    if (held && !charts.some(({ place }) => place.matches(":hover, :focus"))) { append(held); held = null; }
  });

  new ResizeObserver(() => {
    for (const { u, place } of charts) u.setSize({ width: place.clientWidth, height: place.clientHeight });
  }).observe(source);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
  document.fonts.ready.then(draw_all);
})();
