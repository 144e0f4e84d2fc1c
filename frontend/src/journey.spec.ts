import { AnswerServer, desk, find, json, media, page, predict, question, refusal, state, until } from "./cast";
import { Journey } from "./journey";
import type { Ended, Exit, State, Step, Value } from "./server/model";

type Handler = (path: string, body: { value?: Value; digest?: string; comment?: string | null }) => Response;

const exit: Exit = { method: "GET", url: "https://platform.example/complete?cc=C1A9X7QP", fields: {} };
const ended: Ended = { debrief: "<h2>What it was about</h2>", exit, asks_again: false, pay: ["You are paid 1.40 USD."] };

async function travel(first: State, handle: Handler) {
  const calls: { path: string; body: Parameters<Handler>[1] }[] = [];
  const gone: Exit[] = [];
  const given = await desk((async (input: RequestInfo | URL, init?: RequestInit) => {
    const path = String(input).replace("/api/", "");
    const body = JSON.parse(String(init?.body ?? "{}")) as Parameters<Handler>[1];
    calls.push({ path, body });
    return handle(path, body);
  }) as typeof fetch);
  const journey = new Journey(given, first, (by) => gone.push(by));
  void journey.run();
  return { calls, gone, given, journey };
}

const nowhere: Handler = () =>
  json(200, state({ step: "finish", page: page("debrief"), block: null, next: 4 }));

beforeAll(() => {
  // jsdom has no modal dialogs.
  HTMLDialogElement.prototype.showModal = function () {
    this.setAttribute("open", "");
  };
});

test("it measures the device without asking, and asks when the server wants another window", async () => {
  const asked = state({ step: "device", page: page("device", [], "<h2>Your screen</h2>") });
  const { calls } = await travel(asked, () => json(200, asked));
  await until(() => document.querySelector('[data-page="device"]'));
  expect(calls[0]).toMatchObject({ path: "session/device/", body: { digest: "digest-device" } });
  expect(calls[0]?.body.value).toMatchObject({
    width_px: 1024,
    height_px: 768,
    touch: false,
    webdriver: false,
  });
  expect(find("h1").textContent).toBe("Your screen");
  find(".button.primary").click();
  await until(() => calls.length === 2);
});

test.each([
  [".button.primary", true],
  [".button.plain", false],
])("it sends the consent of %s as %s", async (selector, agree) => {
  const { calls } = await travel(state({ step: "consent", page: page("consent") }), nowhere);
  await until(() => document.querySelector(selector));
  find(selector).click();
  await until(() => calls.length > 0);
  expect(calls[0]?.body).toMatchObject({ digest: "digest-consent", value: { agree } });
});

test("it puts the focus on the heading of each page", async () => {
  await travel(
    state({ step: "instructions", page: page("instructions", [], "<h2>How it works</h2>") }),
    nowhere,
  );
  await until(() => document.querySelector("h1"));
  expect(document.activeElement).toBe(find("h1"));
  expect(document.querySelectorAll("h1")).toHaveLength(1);
});

test("it names the unanswered questions and goes to the first", async () => {
  const questions = [
    question({ id: "age", kind: "number", prompt: "Age?", min: 18, max: 99 }),
    question({ id: "field", kind: "text", prompt: "Field?", required: false, max_length: 20 }),
  ];
  const { calls } = await travel(state({ step: "questions", page: page("questions", questions) }), nowhere);
  await until(() => document.querySelector("form"));
  find<HTMLFormElement>("form").requestSubmit();
  expect(find("#complaint-age").textContent).toBe("Please answer this question.");
  expect(document.activeElement).toBe(find("#field-age"));
  find<HTMLInputElement>("#field-age").value = "17";
  find<HTMLFormElement>("form").requestSubmit();
  expect(find("#complaint-age").textContent).toContain("18 to 99");
  find<HTMLInputElement>("#field-age").value = "30";
  find<HTMLFormElement>("form").requestSubmit();
  await until(() => calls.length > 0);
  expect(calls[0]?.body.value).toEqual({ age: 30 });
});

test("it shows questions with markup as text", async () => {
  const nasty = "<img src=x onerror=alert(1)>";
  const choices = [{ value: "a", text: nasty, key: "" }];
  const asked = page("questions", [question({ prompt: nasty, choices })]);
  await travel(state({ step: "questions", page: asked }), nowhere);
  await until(() => document.querySelector("legend"));
  expect(find("legend").textContent).toBe(nasty);
  expect(document.querySelector("form img")).toBeNull();
});

test("it says that a quiz was not passed and how many tries are left", async () => {
  const choices = [
    { value: "yes", text: "Yes", key: "f" },
    { value: "no", text: "No", key: "j" },
  ];
  const asked = { step: "quiz" as const, page: page("quiz", [question({ choices })]) };
  const { calls } = await travel(state({ ...asked, attempts_left: 2 }), () =>
    json(200, state({ ...asked, attempts_left: 1 })),
  );
  await until(() => document.querySelector("form"));
  find<HTMLInputElement>('input[value="yes"]').checked = true;
  find<HTMLFormElement>("form").requestSubmit();
  await until(() => document.querySelector(".notice"));
  expect(calls[0]?.body.value).toEqual({ q: "yes" });
  expect(document.body.textContent).toContain("This is your last try.");
});

test("it practises picture by picture, tells each answer once it is stored, and sends all at once", async () => {
  const choices = [
    { value: "A", text: "A", key: "f" },
    { value: "B", text: "B", key: "j" },
  ];
  const asked = page("practice", [
    question({ id: "e1", kind: "example", label: "A", image: media("e1"), required: false }),
    question({ id: "p1", kind: "sort", image: media("p1"), choices }),
    question({ id: "p2", kind: "sort", image: media("p2"), choices }),
  ]);
  // The server has another first answer to the second picture: that stands.
  const told = { p1: { choice: "A", label: "A", correct: true }, p2: { choice: "A", label: "B", correct: false } };
  const { calls } = await travel(state({ step: "practice", page: asked, attempts_left: 5 }), (path, body) => {
    if (path !== "session/practice/told/") return nowhere(path, body);
    return json(200, told[(body as unknown as { question: "p1" | "p2" }).question]);
  });
  await until(() => document.querySelector(".example"));
  find(".button.primary").click();
  const said: string[] = [];
  for (const value of ["A", "seen", "B", "seen"]) {
    await until(() => document.querySelector(`[data-value="${value}"]:not([aria-disabled]):not(.pressed)`));
    const board = find(".board");
    if (value === "seen") said.push(find(".ask").textContent!);
    find(`[data-value="${value}"]`).click();
    await until(() => !board.isConnected);
  }
  await until(() => calls.some((call) => call.path === "session/practice/"));
  const sent = calls.find((call) => call.path === "session/practice/");
  expect(said).toEqual([
    "Right: the machine answered A.",
    "You answered A before, and that stands. Not right: the machine answered B.",
  ]);
  expect(calls[0]?.body).toEqual({ digest: "digest-practice", question: "p1", choice: "A" });
  expect(sent?.body.value).toEqual({ p1: "A", p2: "A" });
});

test("it practises with texts as it does with pictures, and nothing of the rule is on the page before", async () => {
  const choices = ["A", "B"].map((value) => ({ value, text: value, key: value === "A" ? "f" : "j" }));
  const text = (said: string) => ({ tokens: [{ text: said, shade: null }] });
  const asked = page("practice", [
    question({ id: "e1", kind: "example", label: "A", text: text("It rains."), required: false }),
    question({ id: "p1", kind: "sort", text: text("It rained.  Twice!"), choices }),
  ]);
  const { calls } = await travel(state({ step: "practice", page: asked, attempts_left: 5 }), (path, body) =>
    path === "session/practice/told/" ? json(200, { choice: "B", label: "A", correct: false }) : nowhere(path, body),
  );
  await until(() => document.querySelector(".example"));
  expect(find(".example .text p").textContent).toBe("It rains.");
  find(".button.primary").click();
  await until(() => document.querySelector('[data-value="B"]:not([aria-disabled])'));
  expect(find(".board .text p").textContent).toBe("It rained.  Twice!");
  expect(document.querySelector(".board .place")).toBeNull();
  find('[data-value="B"]').click();
  await until(() => document.querySelector('[data-value="seen"]:not([aria-disabled])'));
  expect(find(".board .text p").textContent).toBe("It rained.  Twice!");
  expect(find(".ask").textContent).toBe("Not right: the machine answered A.");
  find('[data-value="seen"]').click();
  await until(() => calls.some((call) => call.path === "session/practice/"));
  expect(calls.find((call) => call.path === "session/practice/")?.body.value).toEqual({ p1: "B" });
});

test("it shows the server's complaints beside their fields", async () => {
  const asked = page("questions", [question({ id: "age", kind: "number" })]);
  await travel(state({ step: "questions", page: asked }), () =>
    refusal(400, "invalid", { "value.age": "must be 18" }),
  );
  await until(() => document.querySelector("form"));
  find<HTMLInputElement>("#field-age").value = "17";
  find<HTMLFormElement>("form").requestSubmit();
  await until(() => document.querySelector(".notice"));
  expect(find("#complaint-age").textContent).toBe("must be 18");
});

test("it follows the server where a text was changed meanwhile", async () => {
  const changed = state({ step: "consent", page: page("consent", [], "<h2>New text</h2>") });
  await travel(state({ step: "consent", page: page("consent") }), (path) =>
    path === "session/" ? json(200, changed) : refusal(409, "text_changed"),
  );
  await until(() => document.querySelector(".button.primary"));
  find(".button.primary").click();
  await until(() => document.querySelector(".notice"));
  expect(find("h1").textContent).toBe("New text");
});

test("it ends with the count, the code and the way back, which waits to be read", async () => {
  const { calls, gone } = await travel(
    state({ step: "comment", page: page("comment"), next: 4, block: null }),
    () => json(200, ended),
  );
  await until(() => document.querySelector("textarea"));
  find<HTMLTextAreaElement>("textarea").value = "Nice <b>study</b>";
  find<HTMLFormElement>("form").requestSubmit();
  await until(() => document.querySelector(".code"));
  expect(calls[0]).toEqual({ path: "session/finish/", body: { comment: "Nice <b>study</b>" } });
  expect(find(".stored").textContent).toBe("All 4 answers are stored.");
  expect(find(".code").textContent).toBe("C1A9X7QP");
  find(".return .primary").click();
  expect(gone).toEqual([exit]);
});

test("it asks for the exit after screening and does not speak of stored answers", async () => {
  const screened = state({ step: "finish", page: page("screened"), block: null, next: 0, total: null });
  const { calls } = await travel(screened, () =>
    json(200, { debrief: null, exit: { method: "none", url: "", fields: {} }, pay: [] }),
  );
  await until(() => document.querySelector('[data-page="finish"]'));
  expect(calls[0]?.path).toBe("session/finish/");
  expect(find("h1").textContent).toBe("The study ends here for you");
  expect(document.querySelector(".stored, .code, .return")).toBeNull();
});

test("a last page of ours says its title once, and then what is paid", async () => {
  const html = "<h2>You have not taken part</h2><p>Nothing was stored.</p>";
  const declined = state({ step: "finish", page: page("declined", [], html), block: null, next: 0, total: null });
  await travel(declined, () => json(200, { ...ended, debrief: null, pay: ["Nothing is paid."] }));
  await until(() => document.querySelector('[data-page="finish"]'));
  expect([...document.querySelectorAll("h1, .prose h2")].map((title) => title.textContent)).toEqual([
    "You have not taken part",
  ]);
  expect(find(".pay").textContent).toBe("Nothing is paid.");
  expect(find(".prose").textContent).toBe("Nothing was stored.");
});

test("it leaves only after one question, with reason and wish", async () => {
  const consented = state({ step: "instructions", page: page("instructions") });
  const { calls } = await travel(consented, () => json(200, { ...ended, debrief: null }));
  await until(() => document.querySelector(".tools .tool:nth-child(2)"));
  find(".tools .tool:nth-child(2)").click();
  expect(calls.map((call) => call.path)).toEqual(["session/pay/?reason=unsaid"]);
  find<HTMLInputElement>('dialog input[value="time"]').checked = true;
  find<HTMLInputElement>('dialog input[name="erase"]').checked = true;
  find("dialog .danger").click();
  await until(() => document.querySelector('[data-page="finish"]'));
  expect(calls.at(-1)).toEqual({ path: "session/withdraw/", body: { reason: "time", erase: true } });
  expect(find("h1").textContent).toBe("You have left the study");
});

test("it offers help and leaving only after consent", async () => {
  await travel(state({ step: "consent", page: page("consent") }), nowhere);
  await until(() => document.querySelector(".button.primary"));
  expect(document.querySelectorAll(".tool")).toHaveLength(0);
});

test("it says so when another tab has taken over", async () => {
  await travel(state({ step: "consent", page: page("consent") }), () => refusal(401, "no_session"));
  await until(() => document.querySelector(".button.primary"));
  find(".button.primary").click();
  await until(() => document.querySelector('[data-page="trouble"]'));
  expect(find("h1").textContent).toBe("This study was continued in another tab");
});

test("it says who to write to when the server refuses for a reason of its own", async () => {
  await travel(state({ step: "consent", page: page("consent") }), () => refusal(422, "strange"));
  await until(() => document.querySelector(".button.primary"));
  find(".button.primary").click();
  await until(() => document.querySelector('[data-page="trouble"]'));
  expect(document.body.textContent).toContain("No. Do this.");
  expect(document.body.textContent).toContain("lab@example.org");
});

const weighing = { ...predict(0), kind: "weigh" };

test.each([
  ["a trial", state({ block: { ...state().block!, trials: [weighing] } }), "weigh"],
  ["a page", state({ step: "promise" as Step, page: page("promise") }), "promise"],
])("it stops calmly before %s that it cannot show, and leaves a trace", async (_what, first, kind) => {
  const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { calls } = await travel(first, () => json(200, {}));
  await until(() => document.querySelector('[data-page="trouble"]'));
  expect(find('[data-page="trouble"]').dataset["code"]).toBe("cannot_show");
  for (const words of [`“${kind}”`, "Nothing is lost", "lab@example.org"])
    expect(document.body.textContent).toContain(words);
  expect(document.querySelector(".board, .answer")).toBeNull();
  expect(said.mock.calls[0]?.[0]).toContain(`"${kind}"`);
  await until(() => calls.length > 0);
  expect(calls.map((call) => call.path)).toEqual(["session/events/"]);
  expect(calls[0]?.body).toMatchObject({ events: [{ kind: "cannot_show", data: { kind } }] });
});

test("it lets somebody stop where the page cannot show what comes next", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { calls } = await travel(state({ step: "promise" as Step, page: page("promise") }), () =>
    json(200, { ...ended, debrief: null }),
  );
  await until(() => document.querySelector('[data-page="trouble"]'));
  find(".actions .plain").click();
  await until(() => document.querySelector('[data-page="finish"]'));
  expect(calls.at(-1)?.body).toEqual({ reason: "technical failure", erase: false });
});

test("it lets the server win when it holds another answer", async () => {
  const server = new AnswerServer();
  const after = state({ step: "comment", page: page("comment"), block: null, next: 4 });
  let journey: Journey | null = null;
  const given = await desk(
    (async (input: RequestInfo | URL, init?: RequestInit) => {
      if (String(input).endsWith("responses/")) return refusal(409, "contradiction");
      if (String(input).endsWith("session/")) return json(200, after);
      return server.fetch(input, init);
    }) as typeof fetch,
    () =>
      journey?.conflict({
        status: 409,
        code: "contradiction",
        message: "",
        remedy: "",
        fields: {},
        next: 4,
        exit: null,
        retry_after_ms: null,
      }),
  );
  journey = new Journey(given, state());
  void journey.run();
  await until(() => document.querySelector('[data-page="block"] .button:not([disabled])'));
  find(".button.primary").click();
  await until(() => document.querySelector(".answer:not([aria-disabled])"));
  find(".answer").click();
  await until(() => document.querySelector("textarea"));
  expect(given.outbox.count).toBe(0);
});

test("it asks again after a debrief, and has the answers removed", async () => {
  const last = state({ step: "finish", page: page("debrief"), block: null, next: 4 });
  const { calls } = await travel(last, () => json(200, { ...ended, exit: { ...exit, method: "none" }, asks_again: true }));
  await until(() => document.querySelector(".remove"));
  find(".remove .plain + .plain, .remove .button:last-child").click();
  await until(() => calls.some((call) => call.path === "session/withdraw/"));
  expect(calls.at(-1)?.body).toEqual({ reason: "debrief", erase: true });
  await until(() => document.querySelector(".remove .actions") === null);
  expect(find(".remove p").textContent).toContain("removed");
});

const onPhone = state({ step: "device", page: page("device", [], "<h2>Your screen</h2>") });

function pressed(text: string): void {
  [...document.querySelectorAll("button")].find((button) => button.textContent === text)!.click();
}

test("it hands over to a computer by the person's own link, and 'not now' tells the server nothing", async () => {
  history.replaceState(null, "", "?PROLIFIC_PID=ada&SESSION_ID=s1");
  const { calls } = await travel(onPhone, () => json(200, onPhone));
  await until(() => document.querySelector(".address"));
  expect(find(".address").textContent).toBe(location.href);
  expect(location.href).toContain("SESSION_ID=s1");
  pressed("Not now");
  await until(() => document.querySelector('[data-page="later"]'));
  expect(find("h1").textContent).toBe("You can take part later");
  expect(find(".address").textContent).toBe(location.href);
  expect(calls.map((call) => call.path)).toEqual(["session/device/"]);
  pressed("Go on here");
  await until(() => document.querySelector('[data-page="device"]'));
});

test("it shows no link where a platform's frame has the only one", async () => {
  vi.spyOn(window, "parent", "get").mockReturnValue({} as Window);
  await travel(onPhone, () => json(200, onPhone));
  await until(() => document.querySelector('[data-page="device"]'));
  expect(document.querySelector(".address")).toBeNull();
  expect(document.body.textContent).toContain("Open this task on a computer");
  vi.restoreAllMocks();
});

test("it gives the task back for good where somebody says so", async () => {
  const { calls, gone } = await travel(onPhone, (path) =>
    path === "session/withdraw/" ? json(200, { ...ended, debrief: null }) : json(200, onPhone),
  );
  await until(() => document.querySelector('[data-page="device"]'));
  pressed("I will not take part");
  await until(() => document.querySelector('[data-page="finish"]'));
  expect(calls.at(-1)).toEqual({
    path: "session/withdraw/",
    body: { reason: "no suitable device", erase: false },
  });
  expect(find("h1").textContent).toBe("You have left the study");
  find(".return .primary").click();
  expect(gone).toEqual([exit]);
});

test.each([
  ["the amount", () => json(200, { pay: ["You are paid 0.50 USD."] }), ["If you leave now", "0.50\u00a0USD"]],
  ["nothing of money in an unpaid study", () => json(200, { pay: [] }), []],
  ["that it could not ask", () => refusal(500, "server"), ["the next page says how much"]],
])("it says %s before somebody leaves", async (_what, answer, said) => {
  const consented = state({ step: "instructions", page: page("instructions") });
  const { calls } = await travel(consented, () => answer());
  await until(() => document.querySelector(".tools .tool:nth-child(2)"));
  find(".tools .tool:nth-child(2)").click();
  await until(() => calls.length > 0 && (said.length === 0 || find(".dialog .pay").textContent !== ""));
  expect(calls[0]?.path).toBe("session/pay/?reason=unsaid");
  for (const text of said) expect(find(".dialog .pay").textContent).toContain(text);
  if (said.length === 0) expect(find(".dialog .pay").textContent).toBe("");
});

test("it shows the last page with the way back when the study fills up on the way", async () => {
  const last = state({ step: "finish", page: page("turned_away"), block: null, next: 0, total: null });
  await travel(state({ step: "instructions", page: page("instructions") }), (path) => {
    if (path === "session/instructions/") return refusal(410, "full");
    return json(200, path === "session/" ? last : { ...ended, debrief: null });
  });
  await until(() => document.querySelector(".button.primary"));
  find(".button.primary").click();
  await until(() => document.querySelector(".return"));
  expect(find("h1").textContent).toBe("All places are taken");
  expect(find(".code").textContent).toBe("C1A9X7QP");
});

test("it lets somebody stop where the fault is ours and stays", async () => {
  const { calls, gone } = await travel(state({ step: "consent", page: page("consent") }), (path) =>
    path === "session/withdraw/" ? json(200, { ...ended, debrief: null }) : refusal(422, "strange"),
  );
  await until(() => document.querySelector(".button.primary"));
  find(".button.primary").click();
  await until(() => document.querySelector('[data-page="trouble"]'));
  find(".actions .plain").click();
  await until(() => document.querySelector('[data-page="finish"]'));
  expect(calls.at(-1)?.body).toEqual({ reason: "technical failure", erase: false });
  find(".return .primary").click();
  expect(gone).toEqual([exit]);
});

test("it hands work in where the platform takes it by a form", async () => {
  const form: Exit = { method: "POST", url: "https://platform.example/submit", fields: { completion: "C" } };
  const last = state({ step: "finish", page: page("debrief"), block: null, next: 4 });
  const { gone } = await travel(last, () => json(200, { ...ended, exit: form }));
  await until(() => document.querySelector(".return"));
  expect(find(".return .primary").textContent).toBe("Hand in on the platform");
  expect(find(".return .quiet").textContent).toContain("handed in by itself");
  find(".return .primary").click();
  expect(gone).toEqual([form]);
});
