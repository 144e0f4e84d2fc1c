// The preview follows its file: the page is loaded again when the file has been read again, and says what is being done.
"use strict";

const PERIOD_MS = 1000;

async function look() {
  try {
    const reply = await fetch("now", { signal: AbortSignal.timeout(5 * PERIOD_MS) });
    const now = await reply.json();
    if (String(now.reading) !== document.body.dataset.reading) return location.reload();
    document.getElementById("doing").textContent = now.doing;
  } catch {
    document.getElementById("doing").textContent = "The preview has ended. Start it again in the terminal.";
  }
}

setInterval(() => document.hidden || void look(), PERIOD_MS);
document.addEventListener("visibilitychange", () => document.hidden || void look());
for (const list of document.querySelectorAll("select")) list.addEventListener("change", () => list.form.submit());
