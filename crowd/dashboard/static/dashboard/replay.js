// Plays a person's trials again from the rows of the table: each for as long as it took, the key when it was pressed.
"use strict";

const TICK_MS = 40;
const UNANSWERED_MS = 800;

function replay(box) {
  const planned = [...document.querySelectorAll("tr[data-shown-ms]")];
  // Nothing is known of what came after the last answer: who left never saw it.
  const rows = planned.slice(0, planned.findLastIndex((row) => row.dataset.rtMs !== "") + 1);
  const [play, speed, stage] = ["button", "select", ".stage"].map((name) => box.querySelector(name));
  const part = (name) => stage.querySelector(`.${name}`);
  let timer = 0;
  if (!rows.length) return;
  box.hidden = false;

  const cell = (row, name) => row.querySelector(`[data-part="${name}"]`)?.textContent.trim() ?? "";

  const lasted = (row) => Number(row.dataset.shownMs) || UNANSWERED_MS;

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play as it went";
    for (const row of rows) row.removeAttribute("data-now");
  }

  function show(row) {
    const picture = row.querySelector("img");
    part("picture").replaceChildren();
    if (picture) {
      const large = new Image();
      large.alt = picture.alt;
      large.src = picture.src;
      part("picture").append(large);
    }
    part("where").textContent = `Trial ${cell(row, "number")} · ${cell(row, "phase")}`;
    part("asked").textContent = cell(row, "asked");
    part("pressed").textContent = "";
    part("beside").textContent = [...row.querySelectorAll(".given span")].map((event) => event.textContent).join(", ");
    for (const other of rows) other.toggleAttribute("data-now", other === row);
  }

  function start() {
    let [at, spent] = [-1, Infinity];
    play.textContent = "Stop";
    stage.hidden = false;
    timer = setInterval(() => {
      spent += TICK_MS * Number(speed.value);
      if (at < 0 || spent >= lasted(rows[at])) {
        at += 1;
        spent = 0;
        if (at === rows.length) return stop();
        show(rows[at]);
      }
      const row = rows[at];
      const answered = row.dataset.rtMs === "" ? Infinity : Number(row.dataset.rtMs);
      part("time").value = spent / lasted(row);
      // The last moment of a trial is as long as its answer stands, however fast it is played.
      if (spent >= answered || spent + TICK_MS * Number(speed.value) >= lasted(row)) {
        part("pressed").textContent = answered === Infinity ? "no answer" : `${cell(row, "answer")} after ${answered} ms`;
      }
    }, TICK_MS);
  }

  play.addEventListener("click", () => (timer ? stop() : start()));
}

document.querySelectorAll("[data-replay]").forEach(replay);
