// While an operation runs its page asks for what became of each message, but never over what a person has in hand (L5).
document.body.addEventListener("htmx:beforeRequest", (event) => {
  const places = [...document.querySelectorAll("#acts, #rest")];
  if (event.target.id === "going-on" && places.some(window.pgqueue.in_use)) event.preventDefault();
});
