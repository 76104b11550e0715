// History over time, drawn by uPlot (see docs/console.md).
(() => {
  "use strict";
  const source = document.getElementById("trends");
  if (!source || !window.uPlot) return;
  const data = JSON.parse(source.dataset.trends);
  const { alpha, colours, day, draw, keep, time, walk, whole } = window.pgqueue.plot;

  const figure = (value) => (value === null || value === undefined ? "–" : whole(value));
  const span = (ms) => {
    if (ms === null || ms === undefined) return "–";
    const [size, unit] = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"], [1, "ms"]].find(([size]) => ms >= size) || [1, "ms"];
    return `${+(ms / size).toPrecision(3)}\u00a0${unit}`;
  };

  // ---- the legend is the readout
  const reads = [...document.querySelectorAll("[data-read]")];
  function readout(i) {
    for (const place of reads) {
      const name = place.dataset.read;
      if (i === null) place.textContent = "";
      else if (name === "at") place.textContent = `from ${day(data.at[i])} ${time(data.at[i])}`;
      else place.textContent = name[0] === "p" ? `≈ ${span(data[name][i])}` : figure(data[name][i]);
    }
  }
  const newest = () => data.at.length - 1;

  const bars = (stroke) => ({ stroke, fill: alpha(stroke, 0.35), paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false } });
  const line = (stroke, dash) => ({ stroke, width: 1.75, dash, points: { show: true, size: 4 }, spanGaps: false });
  const charts = [];
  function add(plot, names, styles, label) {
    const place = document.querySelector(`[data-plot="${plot}"]`);
    charts.push({ u: draw(place, data, names, styles, { under: 20, hooks: [], label, readout }), place });
  }
  function draw_all() {
    add("many", ["succeeded", "failed", "before"], [bars(colours.ready), bars(colours.dead), line(colours.out, [5, 3])]);
    add("long", ["p50", "p95", "p99"], [line(colours.ready), line(colours.delayed, [5, 3]), line(colours["crit-solid"], [1, 4])], span);
    readout(null);
  }
  document.querySelectorAll("[data-plot]").forEach((place, i) => walk(place, data, () => charts[i].u, newest, readout));
  keep(source, charts, draw_all);
})();
