/** From S to S: shows the page that the server's state asks for, sends what it yields, until the end. */
import type { Outcome, Problem } from "./server/api";
import { openTrials } from "./trials/block";
import type { Desk, Notice } from "./frame/page-context";
import { h, headed } from "./frame/dom";
import type { Exit, Ended, Page, State } from "./server/model";
import { commentPage } from "./pages/comment";
import { askToLeave, openHelp } from "./pages/dialogs";
import { finishPage, type Ending } from "./pages/finish";
import { findGate, gateOf } from "./pages/gates";
import { titleOf } from "./pages/gates/reading";
import { CANNOT_SHOW, explain, troublePage } from "./pages/trouble";
import { CannotShow } from "./plugins/kind";
import { showProgress } from "./frame/progress";
import { makeRoom } from "./trials/trial-layout";
import { CannotLoad, runBlock } from "./trials/trials";

type Turn =
  | { kind: "state"; state: State; notice: Notice | null }
  | { kind: "resync"; notice: Notice | null }
  | { kind: "ending"; ending: Ending }
  | { kind: "problem"; problem: Problem };

/** The reason that the page gives for an end that is its own fault. */
const FAILURE = "technical failure";

export class Journey {
  private interrupt: (turn: Turn) => void = () => undefined;
  private contact: string;
  private idle = 0;

  constructor(
    private readonly desk: Desk,
    private state: State,
    private readonly leave?: (exit: Exit) => void,
  ) {
    this.contact = state.study.contact;
    makeRoom(state.study);
  }

  async run(): Promise<void> {
    let notice: Notice | null = null;
    for (;;) {
      const turn: Turn = await this.turn(notice);
      if (turn.kind === "ending") return finishPage(this.desk, turn.ending, this.leave);
      if (turn.kind === "problem") return this.trouble(turn.problem);
      notice = turn.notice;
      if (turn.kind === "state") this.state = turn.state;
      else {
        const problem = await this.refresh();
        if (problem) return this.trouble(problem);
      }
    }
  }

  /** The outbox was refused: stop at once, and go on from what the server says. */
  conflict(problem: Problem): void {
    if (problem.status === 401) this.interrupt({ kind: "problem", problem });
    else this.interrupt({ kind: "resync", notice: null });
  }

  private async turn(notice: Notice | null): Promise<Turn> {
    const stop = new AbortController();
    const interrupted = new Promise<Turn>((resolve) => {
      this.interrupt = (turn) => {
        stop.abort();
        resolve(turn);
      };
    });
    this.frame();
    const step = this.step(notice, stop.signal).catch((error: unknown) => this.cannotShow(error));
    return Promise.race([step, interrupted]);
  }

  private frame(): void {
    const { step, study } = this.state;
    const { shell } = this.desk;
    document.title = study.title;
    shell.markPreview(study.origin === "preview");
    showProgress(this.desk, this.state);
    if (step === "finish" || findGate(step)?.before_consent) shell.tools(null);
    else
      shell.tools({
        help: () => void openHelp(this.desk, study),
        leave: () => void this.withdraw(),
      });
  }

  private async step(notice: Notice | null, stop: AbortSignal): Promise<Turn> {
    const { step, page } = this.state;
    if (step === "trials") return this.trials(stop);
    if (step === "finish") return this.end();
    if (page?.kind === "comment" || step === "comment") return this.comment(notice);
    if (page === null) return this.stuck();
    return this.gate(page, notice);
  }

  private async gate(page: Page, notice: Notice | null): Promise<Turn> {
    const gate = gateOf(page.kind);
    const value = await gate.page({ desk: this.desk, state: this.state, page, notice });
    if (value === null) return this.close(gate.gave_up ?? FAILURE, false);
    const outcome = await this.desk.api.gate(page.kind, page.digest, value);
    if (!outcome.ok) return this.refused(outcome.problem);
    const failed = gate.again !== undefined && outcome.value.page?.kind === page.kind;
    const text = gate.again === "not_right" ? this.desk.words.not_right : "";
    return { kind: "state", state: outcome.value, notice: failed ? { text, fields: {} } : null };
  }

  private async trials(stop: AbortSignal): Promise<Turn> {
    const { outbox } = this.desk;
    const isIdle = outbox.count === 0 && openTrials(this.state, (id) => outbox.holds(id)).length === 0;
    this.idle = isIdle ? this.idle + 1 : 0;
    // Nothing to do twice over, although the server says "trials": asking again for ever would help nobody.
    if (this.idle > 1) return this.stuck();
    await runBlock(this.desk, this.state, stop);
    return { kind: "resync", notice: null };
  }

  private async comment(notice: Notice | null): Promise<Turn> {
    const { desk, state } = this;
    const page = state.page ?? { kind: "comment", digest: "", html: "", questions: [] };
    const comment = await commentPage({ desk, state, page, notice });
    const outcome = await desk.api.finish(comment);
    if (!outcome.ok) return this.refused(outcome.problem);
    return { kind: "ending", ending: this.ending(outcome.value, titleOf(desk.words, "debrief"), state.next) };
  }

  /** Reached by finishing, by declining or by being screened; whoever has no exit yet asks for it. */
  private async end(): Promise<Turn> {
    const { desk, state } = this;
    const kind = state.page?.kind ?? "debrief";
    const farewell = await this.farewell();
    if (!farewell.ok) return { kind: "problem", problem: farewell.problem };
    const html = (state.page?.html || farewell.value.debrief) ?? "";
    const title = titleOf(desk.words, kind);
    // A debrief stands below our thanks; our own texts bring the title of the page.
    const isDebrief = kind === "debrief";
    const page = isDebrief ? { title, html } : headed(html, title);
    const told = { ...farewell.value, debrief: page.html };
    return { kind: "ending", ending: this.ending(told, page.title, isDebrief ? state.next : null) };
  }

  private async farewell(): Promise<Outcome<Ended>> {
    const { exit } = this.state;
    if (exit !== null) return { ok: true, value: { debrief: null, exit, asks_again: false, pay: [] } };
    return this.desk.api.finish(null);
  }

  private ending(farewell: Ended, title: string, stored: number | null): Ending {
    const remove = async (): Promise<boolean> => (await this.desk.api.withdraw("debrief", true)).ok;
    // A server that is a version behind says nothing of pay.
    const { debrief, exit, asks_again, invites, has_check, pay = [] } = farewell;
    const { api } = this.desk;
    const invite = async (agree: boolean): Promise<boolean> => (await api.invitation(agree)).ok;
    const check = async (): Promise<string | null> => {
      const outcome = await api.checkResult();
      return outcome.ok ? outcome.value.html : null;
    };
    const offers = { invite: invites ? invite : null, check: has_check ? check : null };
    return { title, html: debrief, stored, exit, pay, remove: asks_again ? remove : null, ...offers };
  }

  private async withdraw(): Promise<void> {
    const { desk } = this;
    const leaving = await askToLeave(desk, this.state.study.sight);
    if (leaving === null) return;
    this.desk.shell.tools(null);
    desk.outbox.stop();
    const interrupt = this.interrupt;
    interrupt(await this.close(leaving.reason, leaving.erase));
  }

  /** Leaves the study: the last page, or what stands against it. */
  private async close(reason: string, erase: boolean): Promise<Turn> {
    const { desk } = this;
    const outcome = await desk.api.withdraw(reason, erase);
    if (!outcome.ok) return this.refused(outcome.problem);
    await desk.outbox.clear();
    desk.draft.drop();
    const { left, left_title } = desk.words.finish;
    const html = outcome.value.debrief ?? h("p", {}, left).outerHTML;
    return { kind: "ending", ending: this.ending({ ...outcome.value, debrief: html }, left_title, null) };
  }

  /** Stops here. Where the fault is ours and stays, the person may end the study with the way back. */
  private trouble(problem: Problem): void {
    const giveUp = async (): Promise<void> => {
      this.desk.outbox.stop();
      const turn = await this.close(FAILURE, false);
      if (turn.kind === "ending") finishPage(this.desk, turn.ending, this.leave);
      else troublePage(this.desk, problem, this.contact);
    };
    troublePage(this.desk, problem, this.contact, () => void giveUp());
  }

  /** A refused page: fix the answers, or follow the server, or stop. */
  private refused(problem: Problem): Turn {
    const { text } = explain(this.desk.words, problem);
    if (problem.status === 400 || problem.status === 413) {
      return { kind: "state", state: this.state, notice: { text, fields: answerFields(problem.fields) } };
    }
    // Full: the server has closed the session and knows its last page, with the way back.
    if (problem.status === 409 || problem.code === "full") return { kind: "resync", notice: { text, fields: {} } };
    return { kind: "problem", problem };
  }

  private stuck(): Turn {
    return { kind: "problem", problem: ownProblem("stuck", "") };
  }

  /** The server asks for what this page lacks: it stops, says so, and leaves a trace for the researcher. */
  private cannotShow(error: unknown): Turn {
    if (error instanceof CannotLoad)
      return { kind: "problem", problem: ownProblem("cannot_load", this.desk.words.trouble.cannot_load) };
    if (!(error instanceof CannotShow)) throw error;
    console.error(error.message);
    this.desk.events.add("cannot_show", { kind: error.kind });
    void this.desk.events.flush();
    return { kind: "problem", problem: ownProblem(CANNOT_SHOW, error.kind) };
  }

  private async refresh(): Promise<Problem | null> {
    const outcome = await this.desk.api.state();
    if (!outcome.ok) return outcome.problem;
    this.state = outcome.value;
    this.desk.events.trial = null;
    return null;
  }
}

/** A problem that no server reported. */
function ownProblem(code: string, message: string): Problem {
  return { status: 0, code, message, remedy: "", fields: {}, next: null, exit: null, retry_after_ms: null };
}

/** The server names a field by its path (`value.age`); the form knows it by the question's id. */
function answerFields(fields: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([path, text]) => [path.replace(/^value\./, ""), text]),
  );
}
