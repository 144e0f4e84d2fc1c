// Everything works without this file; it keeps numbers fresh, copies commands, and fits the report's frame.
"use strict";

const PERIOD_MS = 5000;

function markStale(box) {
  const line = box.querySelector(".asof");
  if (line && !line.classList.contains("stale")) {
    line.classList.add("stale");
    line.append(" (the server does not answer; these numbers are older)");
  }
}

function replace(box, text) {
  const focused = box.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = [...box.querySelectorAll("[id]")].map((part) => [part.id, part.scrollLeft]);
  const opened = [...box.querySelectorAll("details[open][id]")].map((part) => part.id);
  box.innerHTML = text;
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, left] of scrolled) {
    const part = document.getElementById(id);
    if (part && left) part.scrollLeft = left;
  }
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  box.querySelectorAll("template[data-replaces]").forEach(replaceOutside);
}

// What stands elsewhere on the page, but says the same numbers. It stays if it says the same as before.
function replaceOutside(part) {
  const old = document.querySelector(part.dataset.replaces);
  const fresh = part.content.firstElementChild;
  part.remove();
  if (!old || old.textContent === fresh.textContent || old.contains(document.activeElement)) return;
  fresh.querySelectorAll("[data-copy]").forEach(offerCopy);
  old.replaceWith(fresh);
}

async function refresh(box) {
  try {
    const reply = await fetch(box.dataset.live, {
      headers: { Accept: "text/html" },
      signal: AbortSignal.timeout(4 * PERIOD_MS),
    });
    // Logged out meanwhile: the login page is where the reader has to go.
    if (reply.redirected) return location.reload();
    if (!reply.ok) return markStale(box);
    const selection = getSelection();
    if (selection && !selection.isCollapsed && box.contains(selection.anchorNode)) return;
    replace(box, await reply.text());
    const state = box.querySelector("[data-state]")?.dataset.state;
    if (box.dataset.state && state && state !== box.dataset.state) location.reload();
  } catch {
    markStale(box);
  }
}

function keepFresh(box) {
  let busy = false;
  const tick = async () => {
    if (busy || document.hidden) return;
    busy = true;
    await refresh(box);
    busy = false;
  };
  setInterval(tick, 1000 * Number(box.dataset.seconds) || PERIOD_MS);
  document.addEventListener("visibilitychange", tick);
}

function offerCopy(button) {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

function fitFrame(frame) {
  const fit = () => {
    const page = frame.contentDocument?.documentElement;
    if (page) frame.style.height = `${page.scrollHeight + 4}px`;
  };
  frame.addEventListener("load", fit);
  addEventListener("resize", fit);
  fit();
}

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
document.querySelectorAll("[data-live]").forEach(keepFresh);
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.querySelectorAll("iframe.report").forEach(fitFrame);

function tickAll(label) {
  const all = label.querySelector("input");
  const boxes = [...label.closest("table").querySelectorAll("tbody input[type=checkbox]")];
  label.hidden = false;
  const show = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  };
  all.addEventListener("change", () => boxes.forEach((box) => { box.checked = all.checked; }));
  boxes.forEach((box) => box.addEventListener("change", show));
  show();
}

document.querySelectorAll("[data-tick-all]").forEach(tickAll);
