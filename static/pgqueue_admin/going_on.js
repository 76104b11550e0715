// A page that asks for itself again and again, but never over what a person has in hand (L5), and not while it is paused.
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id !== "going-on") return;
  const places = [...document.querySelectorAll(event.target.getAttribute("hx-select-oob"))];
  if (sessionStorage.getItem("paused") === "yes" || places.some(window.pgqueue.in_use)) event.preventDefault();
});
