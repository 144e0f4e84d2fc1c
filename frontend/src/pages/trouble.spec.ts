import type { Problem } from "../server/api";
import { find } from "../cast";
import { Shell } from "../frame/shell";
import { de, en } from "../words";
import { explain, troublePage } from "./trouble";

const exit = { method: "GET" as const, url: "https://platform.example/complete?cc=T1", fields: {} };

function problem(changes: Partial<Problem>): Problem {
  const empty = { fields: {}, next: null, exit: null, retry_after_ms: null };
  return { status: 409, code: "taken_part", message: "", remedy: "", ...empty, ...changes };
}

function shown(given: Problem): void {
  document.body.innerHTML = '<div id="app"></div>';
  troublePage({ shell: new Shell(document.getElementById("app")!, en), words: en }, given, "");
}

test("it says the server's reason where there are many, in the study's language", () => {
  const message = "Sie haben an einer früheren Studie teilgenommen.";
  expect(explain(de, problem({ message })).text).toBe(message);
  expect(explain(de, problem({ status: 410, code: "full", message: "English" })).text).not.toBe("English");
});

test("it leads back whoever was not let in", () => {
  shown(problem({ exit }));
  expect(find(".actions .primary").textContent).toBe("Return to the platform");
  expect(document.querySelectorAll(".actions button")).toHaveLength(1);
});

test("it asks to give the task back where a frame has no way out", () => {
  vi.spyOn(window, "parent", "get").mockReturnValue({} as Window);
  shown(problem({ exit: { method: "none", url: "", fields: {} } }));
  expect(document.body.textContent).toContain(en.finish.give_back);
  expect(document.querySelector(".actions button")).toBeNull();
});
