// Ticked rows: buttons say how many they act on. Without this script they act on what is ticked all the same.
(() => {
  "use strict";
  for (const form of document.querySelectorAll("form[data-selection]")) {
    const boxes = [...form.querySelectorAll("input[name=id]")];
    const page = form.querySelector("[data-all]"), matching = form.querySelector("[data-matching]");
    let last = null;
    page.hidden = false;
    form.querySelector("[data-clear]").hidden = false;
    function say() {
      const ticked = boxes.filter((box) => box.checked).length;
      const all = matching && matching.checked, count = all ? matching.dataset.matching.trim() : ticked.toLocaleString("en");
      form.querySelector("[data-selected]").textContent = all ? `All ${count} that match` : `${count} selected`;
      for (const button of form.querySelectorAll("[data-verb]")) {
        button.querySelector("[data-word]").textContent = ticked || all ? `${button.dataset.verb} ${count}…` : `${button.dataset.verb}…`;
        button.disabled = !ticked && !all;
      }
      for (const box of boxes) box.closest("tr").classList.toggle("sel", box.checked || Boolean(all));
      page.checked = ticked === boxes.length;
      page.indeterminate = ticked > 0 && ticked < boxes.length;
      form.querySelector("[data-bulk]").hidden = !ticked && !all;
    }
    page.addEventListener("change", () => { for (const box of boxes) box.checked = page.checked; say(); });
    form.addEventListener("click", (event) => { // shift: everything between the last one and this
      const here = boxes.indexOf(event.target);
      if (here < 0) return;
      if (event.shiftKey && last !== null) {
        for (const box of boxes.slice(Math.min(last, here), Math.max(last, here) + 1)) box.checked = event.target.checked;
      }
      last = here;
    });
    form.addEventListener("change", say);
    form.addEventListener("reset", () => setTimeout(say));
    addEventListener("pageshow", say); // Back restores ticks after the script has run
    say();
  }
})();
