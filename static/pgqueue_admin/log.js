// A log is read from its end, and stays there while it grows; but not under whoever has scrolled up.
(() => {
  const log = () => document.querySelector("#log .log");
  const toTheEnd = () => { if (log()) log().scrollTop = log().scrollHeight; };
  const isAtTheEnd = () => !log() || log().scrollTop + log().clientHeight > log().scrollHeight - 4;
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id === "going-on" && !isAtTheEnd()) event.preventDefault();
  });
  document.body.addEventListener("htmx:oobAfterSwap", toTheEnd);
  toTheEnd();
})();
