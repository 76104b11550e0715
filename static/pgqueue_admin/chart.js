// Depth and rate of one queue, drawn by uPlot. Lengths go through the CSSOM.
(() => {
  "use strict";
  const source = document.getElementById("chart-depth");
  if (!source || !window.uPlot) return;
  const NAMES = ["ready", "in_flight", "delayed", "expired", "in", "out"];
  const data = JSON.parse(source.dataset.series);
  const target = Number(source.dataset.target) || 0, breach = Number(source.dataset.breach) || 0;
  const { alpha, colours, draw, integer, keep, rate, time, walk, whole } = window.pgqueue.plot;

  const figure = (value) => (value === null || value === undefined ? "–" : integer(Math.round(value)));

  function marks(u) { // target dashed, breach from its since mark
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
  function texture(u) { // in flight as stripes on the base; expired as crosses
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
  function add(plot, names, styles, under, hooks, label) {
    const place = document.querySelector(`[data-plot="${plot}"]`);
    const top = (high) => label ? high * 1.08 || 1 : Math.max(1, target * 1.05, high * 1.08);
    charts.push({ u: draw(place, data, names, styles, { top, under, hooks, label, readout }), names, place });
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
    add("depth", ["ready", "delayed", "expired"], depth_styles(), 20, [texture, marks]);
    add("rate", ["in", "out"], rate_styles(), 32, [deaths, marks], rate);
    readout(null);
  }
  document.querySelectorAll("[data-plot]").forEach((place, i) => { // a stretch that is chosen is shown by Trends
    window.pgqueue.brush(place, data.at, () => data.at.at(-1) + data.step, () => charts[i].u.cursor.idx, source.dataset.history);
    walk(place, data, () => charts[i].u, newest, readout);
  });

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

  keep(source, charts, draw_all);
})();
