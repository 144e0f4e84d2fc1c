/** What a study's trials need room for, told to the style sheet, which makes the same of it as the server does. */
import type { Study } from "../server/model";

export function makeRoom(study: Study, root: HTMLElement = document.documentElement): void {
  root.style.setProperty("--picture-px", `${study.picture_px}px`);
  root.style.setProperty("--answers-px", `${study.answers_px}px`);
  root.style.setProperty("--tile-px", `${study.tile_px}px`);
  root.dataset["display"] = study.display;
  if (study.reservoir !== "off") root.dataset["examples"] = "";
}
