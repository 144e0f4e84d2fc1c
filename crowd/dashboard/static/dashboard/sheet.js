// A picture of the contact sheet, large; arrow keys lead to its neighbours. Without this file a click opens the picture alone.
"use strict";

function enlarge(box) {
  const rows = [...document.querySelectorAll(".sheet tbody tr")].map((row) => [...row.querySelectorAll("td")]);
  const [picture, words] = [box.querySelector("img"), box.querySelector("p")];
  let [line, column] = [0, 0];

  function show(down, right) {
    const link = rows[down]?.[right]?.querySelector("a");
    if (!link) return;
    [line, column] = [down, right];
    const small = link.querySelector("img");
    picture.src = link.href;
    picture.alt = small.alt;
    const value = rows[down][right].querySelector(".value")?.textContent;
    const metric = document.querySelector('.choices[aria-label="Metric"] [aria-current]')?.textContent;
    words.textContent = small.alt + (value ? ` · ${metric}: ${value}` : "");
    if (!box.open) box.showModal();
  }

  rows.forEach((cells, down) => cells.forEach((cell, right) => {
    cell.querySelector("a")?.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      show(down, right);
    });
  }));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    show(line + step[0], column + step[1]);
  });
  box.addEventListener("close", () => rows[line][column].querySelector("a").focus());
  box.querySelectorAll("[data-step]").forEach((button) => {
    button.addEventListener("click", () => show(line, column + Number(button.dataset.step)));
  });
}

document.querySelectorAll("dialog.large").forEach(enlarge);
