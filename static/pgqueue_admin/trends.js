// History over time, drawn by uPlot (see docs/reference/pages.md).
(() => {
  "use strict";
  const source = document.getElementById("trends");
  if (!source || !window.uPlot) return;
  const data = JSON.parse(source.dataset.trends);
  const { brush, iso } = window.pgqueue;
  const { alpha, colours, day, draw, integer, keep, listened, rate, span, time, under_cursor, walk, whole } = window.pgqueue.plot;

  const share = (value) => { // as formatting/numbers.py says it, of what it has rounded
    if (value === null || value === undefined) return "–";
    const said = value > 0 && value < 0.01 ? "<\u00a00.01" : value > 99.99 && value < 100 ? ">\u00a099.99" : value;
    return `${said}\u00a0%`;
  };
  const figure = (value) => (value === null || value === undefined ? "–" : integer(value));
  const beside = (ms) => (ms < 1 ? "" : span(ms)); // of a hairline
  const about = (ms) => (ms === null || ms === undefined ? "–" : ms < 0.5 ? span(ms) : `≈\u00a0${span(ms)}`);
  const band = (low, high) => (low < 0.5 ? `up to ${about(high)}` : `${about(low)} to ${about(high)}`);

  // ---- the legend is the readout
  const between = {
    usual: ["usual", (low, high) => `${figure(low)} to ${figure(high)}`], usual_share: ["share", (low, high) => `${share(low)} to ${share(high)}`],
    p50_usual: ["p50", band], p95_usual: ["p95", band], p99_usual: ["p99", band],
  };
  function range(i, name, said) {
    const [low, high] = [data[`${name}_low`][i], data[`${name}_high`][i]];
    return low === null ? "–" : said(low, high);
  }
  const reads = [...document.querySelectorAll("[data-read]")];
  function readout(i) {
    for (const place of reads) {
      const name = place.dataset.read;
      if (i === null) place.textContent = "";
      else if (name in between) place.textContent = range(i, ...between[name]);
      else if (name === "at") place.textContent = `from ${day(data.at[i])} ${time(data.at[i])}${known(data.at[i])}`;
      else if (name === "sampled_at") place.textContent = `from ${day(data.at[i])} ${time(data.at[i])}${goes_on(data.at[i]) ? ": so far" : ""}${data.how[i] || ""}${without(data.unread[i])}`;
      else if (name in moved) place.textContent = moving(data[name][i], data[moved[name]][i]);
      else if (name === "oldest") place.textContent = waited(i);
      else if (name.startsWith("share")) place.textContent = share(data[name][i]);
      else place.textContent = name[0] === "p" ? about(data[name][i]) : figure(data[name][i]);
    }
  }
  // by samples, and so about: the rate, and how many these were; the longest wait, which may have been longer
  const moved = { in: "came_in", out: "went_out" };
  const moving = (value, messages) => (value === null ? "–" : `≈ ${rate(value)}, ${whole(messages)} in all`);
  const seconds = (value) => span(value * 1000);
  const waited = (i) => (data.oldest[i] !== null && data.oldest_at_least[i] ? `at least\u00a0${seconds(data.oldest[i])}` : about(data.oldest[i] === null ? null : data.oldest[i] * 1000));
  const without = (queues) => (queues ? `, without ${queues} that could not be read` : "");
  const newest = () => data.at.length - 1;
  // what nobody has read yet is not none, and what goes on is no whole step
  const from = (mark, at) => mark !== null && at >= mark;
  const known = (at) => (from(data.unread_from, at) ? ": not read yet" : from(data.so_far_from, at) ? ": so far" : "");
  const goes_on = (at) => from(data.depth_so_far_from, at);

  const bars = (stroke) => ({ stroke, fill: alpha(stroke, 0.35), paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false } });
  const filled = (stroke) => ({ ...line(stroke), fill: alpha(stroke, 0.2) });
  const line = (stroke, dash) => ({ stroke, width: 1.75, dash, points: { show: true, size: 4 }, spanGaps: false });
  const week_before = (stroke = colours.out, dash = [5, 3]) => ({ ...line(stroke, dash), points: { show: false } });
  // where history ends and live samples begin
  function seam(u) {
    const folded = (value, i) => value !== null && data.at[i] < data.live_from;
    if (data.live_from && data.median.some(folded)) mark(u, data.live_from, "history", true); // else all of it is live
  }
  function unread(u) {
    if (data.unread_from > data.at[0]) mark(u, data.unread_from, "not read yet", (data.until - data.unread_from) * 4 < data.until - data.at[0]);
  }
  function mark(u, at, words, before) {
    const { ctx, bbox } = u, ratio = devicePixelRatio, x = Math.round(u.valToPos(at, "x", true)) + 0.5;
    ctx.save();
    ctx.strokeStyle = colours.edge; ctx.lineWidth = ratio; ctx.setLineDash([2 * ratio, 3 * ratio]);
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    ctx.font = `600 ${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.fillStyle = colours["ink-2"]; ctx.textAlign = before ? "right" : "left";
    ctx.fillText(words, x + (before ? -6 : 6) * ratio, bbox.top + 12 * ratio);
    ctx.restore();
  }

  // what is usual lies behind the lines: two edges that are not drawn, and the area between them
  const edge = { stroke: "transparent", width: 0, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) };
  const any_high = (high) => (high ? high * 1.08 : 1); // also of much less than one
  const SPANS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 432000, 864000, 2592000, 7776000];
  const round_span = (top) => SPANS.findLast((each) => each <= top); // hairlines of lengths of time, in seconds
  const charts = [];
  function add(plot, names, styles, label, { hooks = [], usual = [], top, every } = {}) {
    const place = document.querySelector(`[data-plot="${plot}"]`);
    if (!place) return;
    const edges = usual.flatMap(([name]) => [`${name}_high`, `${name}_low`]);
    const bands = usual.map(([, colour], i) => ({ series: [2 * i + 1, 2 * i + 2], fill: alpha(colour, 0.18) }));
    const options = { under: 20, hooks, bands, label, readout, top, every };
    charts.push({ u: draw(place, data, [...edges, ...names], [...edges.map(() => edge), ...styles], options), place });
  }
  function draw_all() {
    add("many", ["succeeded", "failed", "retried", "before"],
      [bars(colours.ready), bars(colours.dead), line(colours.delayed, [5, 3]), line(colours.out, [5, 3])], whole, { hooks: [unread], usual: [["usual", colours.out]] });
    add("share", ["share", "share_before"], [filled(colours.dead), week_before()], share, { hooks: [unread], usual: [["share", colours.out]] });
    add("long", ["p50", "p95", "p99", "p95_before"],
      [line(colours.ready), line(colours.delayed, [5, 3]), line(colours["crit-solid"], [1, 4]), week_before()], beside,
      { hooks: [unread], usual: [["p50", colours.ready], ["p95", colours.delayed], ["p99", colours["crit-solid"]]] });
    add("depth", ["median", "low", "high", "median_before"],
      [filled(colours.ready), line(colours.out, [5, 3]), line(colours.out, [5, 3]), week_before(colours.delayed, [1, 4])], whole, { hooks: [seam] });
    add("rate", ["in", "out"], [line(colours.ready), line(colours.out, [5, 3])], rate, { hooks: [seam], top: any_high });
    add("age", ["oldest"], [filled(colours.ready)], seconds, { hooks: [seam], top: any_high, every: round_span });
    readout(null);
  }
  // a press on a step leads to what failed in it, else to what finished, as Enter does; the table has the same links
  function go({ at, failed, succeeded }, i) {
    if (i === null || i === undefined) return;
    const died = data.kept_from && at[i] < data.kept_from ? data.pruned : data.messages; // the archive keeps no more of it
    open(failed[i] ? died : succeeded[i] ? data.finished : "", at, i);
  }
  function open(place, at, i) {
    const until = at[i + 1] || data.until;
    if (place) location.href = place.replace("SINCE", encodeURIComponent(iso(at[i]))).replace("UNTIL", encodeURIComponent(iso(until)));
  }
  function leads(place, lines, current, go_there = go) {
    brush(place, lines.at, () => data.until, current, location.href); // the stretch becomes the window; Back returns
    place.addEventListener("click", () => go_there(lines, current()));
    place.addEventListener("keydown", (event) => { if (event.key === "Enter") go_there(lines, current()); });
  }
  // ---- the heat map is there already: its cells are read by pointer and arrow keys
  function heat(place) {
    const cells = JSON.parse(place.dataset.heat), said = document.querySelector("[data-cell]"), mark = place.querySelector("[data-mark]");
    const height = cells.words.length, step = (data.until - data.at[0]) / data.at.length;
    let column = null, band = 0;
    function show() {
      mark.setAttribute("visibility", column === null ? "hidden" : "visible");
      said.textContent = "";
      if (column === null) return;
      const at = cells.at[column], numbers = cells.numbers[column];
      mark.setAttribute("x", (at - data.at[0]) / step);
      const end = cells.at[column + 1] || data.until;
      mark.setAttribute("width", (end - at) / step);
      mark.setAttribute("y", height - 1 - band);
      said.textContent = `from ${day(at)} ${time(at)}` + (from(data.unread_from, at) ? ": not read yet"
        : `, ${cells.words[band]}: ${integer(numbers[band])} of ${integer(numbers.reduce((a, b) => a + b))}${from(data.so_far_from, end - 1) ? " so far" : ""}`);
    }
    leads(place, cells, () => column, ({ at, cell, first, numbers }, i) => {
      if (i !== null && numbers[i][band]) open(cell.replace("BAND", first + band), at, i);
    });
    place.addEventListener("pointermove", ({ clientX, clientY }) => {
      const { left, top, width } = place.getBoundingClientRect(), cell = mark.ownerSVGElement.getBoundingClientRect().height / height;
      const at = data.at[0] + (clientX - left) / width * (data.until - data.at[0]);
      column = Math.max(0, cells.at.findLastIndex((each) => each <= at));
      band = Math.min(height - 1, Math.max(0, height - 1 - Math.floor((clientY - top) / cell)));
      show();
    });
    place.addEventListener("keydown", (event) => {
      const [right, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [0, 0];
      if (!right && !up) return;
      event.preventDefault();
      column = Math.min(cells.at.length - 1, Math.max(0, (column ?? cells.at.length - 1) + right));
      band = Math.min(height - 1, Math.max(0, band + up));
      show();
    });
    for (const type of ["pointerleave", "blur"]) place.addEventListener(type, () => { column = null; show(); });
    listened(place);
  }
  const drawn = [...document.querySelectorAll("[data-plot]")];
  drawn.forEach((place, i) => {
    leads(place, data, () => under_cursor(charts[i].u, data));
    walk(place, data, () => charts[i].u, newest, readout);
  });
  const map = document.querySelector("[data-heat]");
  if (map) heat(map);
  if (drawn.length) keep(drawn[0].parentElement, charts, draw_all);
})();
