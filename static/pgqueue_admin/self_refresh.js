// A page that asks for itself again and again, but never over what a person has in hand (L5), and not while it is paused.
// What was asked for before they took it is not put over it either.
for (const step of ["htmx:beforeRequest", "htmx:beforeSwap"]) {
  document.body.addEventListener(step, (event) => {
    if (event.target.id !== "going-on") return;
    const places = [...document.querySelectorAll(event.target.getAttribute("hx-select-oob"))];
    if (sessionStorage.getItem("paused") === "yes" || places.some(window.pgqueue.in_use)) event.preventDefault();
  });
}
