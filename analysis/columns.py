"""The one dictionary of columns: what every exported table holds, in which unit, and what it means.

Frames, exports and the codebook are all made from it. Besides these columns, `trials` has those that the
study's kinds of trial declare; no other column is in any table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import get_args

from analysis.timing_and_visual_angle import FRAMES_MIN, Timing
from experiments.kinds import KINDS
from experiments.kinds.base import INSTRUCTED, REPEAT, Column, Dtype, Phase
from experiments.paradigms import PARADIGMS, get_paradigm

__all__ = ["TABLES", "UNITS", "CodebookQuestion", "Column", "Dtype", "codebook", "columns_of", "names"]

STUDY = Column("study", "text", "Slug of the study.")
PERSON = Column("participant", "text", "Keyed pseudonym of a person; the same within one release only.")
SESSION = Column("session", "text", "Keyed pseudonym of a sitting.")
ORIGIN = Column(
    "origin",
    "text",
    "Who answered; origins are never mixed.",
    levels=("human", "simulated", "pilot", "preview", "model"),
)
ARRIVAL = Column(
    "arrival",
    "text",
    "What the place that sent the person says: it lists them, it could and did not, it never can. Who is "
    "unverified is in no main result; empty for previews.",
    levels=("verified", "unverified", "unconfirmable"),
)
WHO = (STUDY, PERSON, SESSION, ORIGIN)
CONDITION = Column("condition", "text", "Level of the manipulated factor: baseline, control, or a method.")
ROLES = tuple(dict.fromkeys(role for name in PARADIGMS for role in get_paradigm(name).roles))
ROLE = Column("role", "text", "Part that the condition plays.", levels=ROLES)
ARM = Column("arm", "text", "What the slot fixes; between subjects the condition.")
SLOT = Column("slot", "integer", "Ordinal of the slot, from 0.")
PLAN = Column(
    "plan",
    "integer",
    "Ordinal of the matched plan within its condition, from 0: same items, order and sides.",
)
MISSING = Column(
    "missing",
    "text",
    "Why cells of this row are empty: column=code, separated by semicolons. The codes are not_reached, "
    "not_recorded and withdrawn; an empty cell that is not named here is not_applicable.",
)
CHECK = Column("check", "text", "Kind of check; empty for a trial that is none.", levels=(INSTRUCTED, REPEAT))
BLOCK = Column("block", "integer", "Block of training and test, from 0.")
PHASE = Column("phase", "text", "Part of the block.", levels=get_args(Phase))
KIND = Column("kind", "text", "Kind of trial.", levels=tuple(KINDS))

TRIALS = (
    *WHO,
    CONDITION,
    ROLE,
    ARM,
    SLOT,
    PLAN,
    BLOCK,
    PHASE,
    KIND,
    CHECK,
    Column("trial_index", "integer", "Position in the slot's plan, from 0, checks included."),
    Column("scored_index", "integer", "Position among the scored trials, from 0; empty for all others."),
    Column("item", "text", "Key of the item; empty if a check shows none."),
    Column("explained", "flag", "Whether an explanation was shown."),
    Column(
        "response",
        "text",
        'The answer: the chosen value; "seen" if the page asked nothing; JSON if it is more than a choice.',
    ),
    Column("model_label", "text", "What the model says about the item."),
    Column("truth", "text", "Class that the item really belongs to; empty if a check shows none."),
    Column("matches_model", "number", "Scored trials: agreement of the answer with the model, 1 or 0."),
    Column("matches_truth", "number", "Scored trials: agreement of the answer with the true class, 1 or 0."),
    Column("check_passed", "flag", "Checks: whether the answer was the expected one."),
    Column("rt_ms", "integer", "From the onset of the stimulus to the answer.", "ms"),
    Column(
        "shown_ms",
        "integer",
        "How long the stimulus was on the screen: until the answer, or until a limited exposure ended.",
        "ms",
    ),
    Column("received_at", "time", "When the server stored the answer.", "UTC"),
    Column("late", "flag", "The slot's lease was over; kept, and marked."),
    Column("input", "text", "Input device of the answer.", levels=("keyboard", "mouse", "touch")),
    Column("key", "text", "Key that was pressed."),
    Column(
        "keys",
        "text",
        "Keys of the buttons, left to right, if the person chose others than the study's; else empty.",
    ),
    Column("side", "text", "Side of the answer button.", levels=("left", "right")),
    Column("onset_ms", "number", "Onset of the stimulus on the page's clock.", "ms"),
    Column("image_px", "number", "Width of the picture as drawn.", "CSS px"),
    Column("pixel_ratio", "number", "Device pixels per CSS pixel."),
    Column(
        "image_deg",
        "number",
        "Width of the picture to the eye: 2 atan(image_px pixel_ratio / px_per_mm / (2 distance_mm)). Empty "
        "unless the screen gate measured both.",
        "degrees",
    ),
    Column("frames", "integer", "Frames of the display that came while the stimulus was up.", "frames"),
    Column(
        "dropped_frames",
        "integer",
        "Frames of the display that were due while the stimulus was up and did not come.",
        "frames",
    ),
    Column("refresh_ms", "number", "The usual length of a frame of the display.", "ms"),
    Column("hidden_count", "integer", "How often the page was hidden while the stimulus was up."),
    Column(
        "timing",
        "text",
        "How far the exposure is to be trusted, the worst first: the page was hidden; the length of a frame "
        f"is not known; fewer than {FRAMES_MIN} frames; frames were dropped; ok.",
        levels=get_args(Timing),
    ),
    Column("reservoir_ms", "integer", "How long the reservoir was open during the trial.", "ms"),
    Column("focus_losses", "integer", "How often the page lost the focus during the trial."),
    Column("reloads", "integer", "How often the page was reloaded during the trial."),
    MISSING,
)

PARTICIPANTS = (
    STUDY,
    PERSON,
    SESSION,
    Column("sitting", "integer", "Ordinal of the sitting of this person, from 0."),
    ORIGIN,
    ARRIVAL,
    Column("simulated_kind", "text", "Kind of computational observer; empty for people."),
    Column("simulated_digest", "text", "Digest of that observer's source and parameters; empty for people."),
    Column(
        "asked",
        "json",
        "Of a model: its name, the host of its address, the prompt, the order of answers, whether it may "
        "have been trained on the data, and its faulty replies; empty for all others.",
    ),
    Column("lane", "text", "Which slots this sitting could claim."),
    CONDITION,
    ROLE,
    ARM,
    SLOT,
    PLAN,
    Column(
        "status",
        "text",
        "Verdict of the screening, or how far the sitting has come.",
        levels=(
            "passed",
            "screened",
            "incomplete",
            "withdrawn",
            "declined",
            "gates",
            "running",
            "finished",
            "turned_away",
        ),
    ),
    Column("reasons", "text", "Rules that decided against keeping it, separated by semicolons."),
    Column("reasons_detail", "json", "The same with timing, value found, limit and evidence."),
    Column(
        "excluded_by_hand",
        "flag",
        "A named person left the sitting out of the main result, on a page without condition and score.",
    ),
    Column("excluded_reason", "text", "Why, in that person's words; empty if nobody decided so."),
    Column("consented", "flag", "Agreed to the consent text."),
    Column("admitted", "flag", "Passed every gate."),
    Column("started_at", "time", "Arrival.", "UTC"),
    Column("claimed_at", "time", "When the slot was claimed.", "UTC"),
    Column("finished_at", "time", "When the sitting ended.", "UTC"),
    Column("duration_s", "number", "From arrival to the end.", "s"),
    Column("task_s", "number", "From the claim of the slot to the end.", "s"),
    Column("verdict_at", "time", "When screening decided.", "UTC"),
    Column("rules_digest", "text", "Digest of the screening rules that decided."),
    Column("quiz_attempts", "integer", "Tries at the comprehension quiz."),
    Column("practice_attempts", "integer", "Tries at the practice."),
    Column("lease_ends_at", "time", "End of the slot's lease, set once at the claim.", "UTC"),
    Column("surplus", "flag", "The lease ran out and the slot went on to another person."),
    Column("responses", "integer", "Answers stored."),
    Column("focus_losses", "integer", "Events: the page lost the focus."),
    Column("reloads", "integer", "Events: the page was reloaded."),
    Column("reservoir_openings", "integer", "Events: the reservoir was opened."),
    Column("pastes", "integer", "Events: text was pasted."),
    Column(
        "fullscreen_entries", "integer", "Events: the page filled the screen, where the study asks for it."
    ),
    Column("fullscreen_exits", "integer", "Events: the page was taken back from the full screen."),
    Column("width_px", "integer", "Width of the viewport at arrival.", "CSS px"),
    Column("height_px", "integer", "Height of the viewport at arrival.", "CSS px"),
    Column("pixel_ratio", "number", "Device pixels per CSS pixel at arrival."),
    Column("touch", "flag", "The device has a touch screen."),
    Column(
        "px_per_mm",
        "number",
        "Size of the screen by a card held to it; empty: not asked, or not known.",
        "device px/mm",
    ),
    Column(
        "distance_mm",
        "number",
        "From the eyes to the screen, by the blind spot at 13.5 degrees; empty: not asked, or not known.",
        "mm",
    ),
    Column("refresh_hz", "number", "Frames of the display, as counted before the first trials.", "Hz"),
    Column(
        "webdriver",
        "flag",
        "The browser says that it is driven by a program; a flag for a person to look at.",
    ),
    Column("language", "text", "Language of the browser."),
    Column("answers", "json", "Answers to the questions before and after, by question id."),
    Column("comment", "text", "Free text at the end, as it was typed."),
    MISSING,
)

STIMULI = (
    STUDY,
    Column("item", "text", "Key of the item."),
    CONDITION,
    ROLE,
    Column("truth", "text", "Class that the item really belongs to."),
    Column("predicted", "text", "Class that the model predicts."),
    Column("confidence", "number", "The model's probability of its prediction.", "share 0-1"),
    Column(
        "group", "text", "Items of one group come from one source and never stand on both sides of a session."
    ),
    Column("dataset", "text", "Dataset of the item, by the name that the study gives it."),
    Column("explainer", "json", "The method with all its parameters; empty for the baseline."),
    Column("image_key", "text", "Digest of the pixels or of the text that the network saw."),
    Column("stimulus_key", "text", "Content key of the stimulus: the same key is the same file."),
    Column("attribution_key", "text", "Content key of the raw map; empty for the baseline, which has none."),
    Column("picture_digest", "text", "Digest of what was shown: equal exactly for pictures that look equal."),
    Column("state", "text", "State of the rendering.", levels=("missing", "claimed", "done", "failed")),
    Column("width_px", "integer", "Width of the picture.", "px"),
    Column("height_px", "integer", "Height of the picture.", "px"),
    Column("provenance", "json", "Versions, device and time of the rendering; never part of a key."),
    Column(
        "metrics",
        "json",
        "Automatic metrics of this explanation: a list of metric, parameters, version, value, unit and "
        "what it scores: the method, or the drawn field; for rankings of pixels the share that is tied.",
    ),
    Column("predictor_key", "text", "Digest of the model: weights, architecture and labels."),
    Column("predictor", "json", "The model: its name with all its parameters, its labels and its origin."),
    Column("predictor_layer", "text", "Layer of the model that is read by methods that name none."),
    Column(
        "layer", "text", "Layer that the method was given: its own, else the model's; empty if it takes none."
    ),
    Column("target", "integer", "Index of the explained label in the model's labels, from 0."),
    Column("operator", "text", "What is explained of that label.", levels=("logit", "margin", "probability")),
    Column("against", "integer", "Index of the label that a margin is taken against; empty without one."),
    Column("seed", "integer", "Seed of the method's random draws."),
    Column("precision", "text", "Arithmetic of the network.", levels=("float32", "tf32", "bfloat16")),
    Column("explainer_version", "integer", "Version of the method, raised whenever its maps change."),
    Column(
        "recipe", "json", "How the map was drawn: all settings, the renderer's version, the picture below."
    ),
    Column("packages", "json", "Installed packages that offer the method, with their versions."),
    Column(
        "rated_as",
        "text",
        "Condition whose rating of the same item counts here too, as the pages are the same; empty: none.",
    ),
    Column("copy_of", "text", "Item of which this picture is a changed copy; empty for the study's items."),
    Column(
        "perturbation",
        "json",
        "Copies: rule, perturbation and magnitude, what the model said before and after, pictures tried.",
    ),
)

QUESTIONS = (
    *WHO,
    Column("when", "text", "Before or after the trials, or in the quiz.", levels=("before", "after", "quiz")),
    Column("attempt", "integer", "Try at the page, from 0."),
    Column("question", "text", "Id of the question in the definition."),
    Column("kind", "text", "Kind of question.", levels=("choice", "number", "text")),
    Column("prompt", "text", "The question as people read it."),
    Column("answer", "text", "The answer; the codebook lists the levels of each question in their order."),
    Column("level", "integer", "Position of the answer among the declared choices, from 0; else empty."),
)

GATES = (
    *WHO,
    Column("gate", "text", "Kind of gate. Those of a check of colour vision are in no export."),
    Column("attempt", "integer", "Try at the gate, from 0."),
    Column("passed", "flag", "Whether the try passed; empty if nothing is judged."),
    Column("at", "time", "When the server stored the try.", "UTC"),
    Column("after_s", "number", "From arrival to the try.", "s"),
)

EVENTS = (
    *WHO,
    Column("kind", "text", "Kind of event."),
    Column("trial_index", "integer", "Position of the trial in the slot's plan; empty outside the trials."),
    Column("at_ms", "integer", "On the page's clock, which begins anew when the page is loaded.", "ms"),
    Column("detail", "json", "What the page told about it."),
    Column("received_at", "time", "When the server stored the event.", "UTC"),
)

OPENINGS = (
    *WHO,
    Column("trial_index", "integer", "Position in the slot's plan of the trial that was open."),
    Column("at_ms", "integer", "On the page's clock, which begins anew when the page is loaded.", "ms"),
    Column("duration_ms", "integer", "Until the reservoir was closed on the same page.", "ms"),
    MISSING,
)

PLANS = (
    STUDY,
    Column("pilot", "flag", "A slot of the pilot; the digest of the plans is of all others."),
    SLOT,
    Column("lane", "text", "Which sessions may claim the slot."),
    ARM,
    Column("slot_condition", "text", "The condition of all trials of the slot; empty if it mixes them."),
    PLAN,
    Column("trial_index", "integer", "Position in the slot's plan, from 0."),
    BLOCK,
    PHASE,
    KIND,
    CHECK,
    Column("item", "text", "Key of the item; empty if a check shows none."),
    CONDITION,
    ROLE,
    Column("explained", "flag", "Whether an explanation is shown."),
    Column("choices", "json", "The answer buttons from left to right: value, text, key."),
    Column("label", "text", "What the page reveals beside the picture; empty: nothing."),
    Column("expected", "text", "The answer that a check asks for; empty for other trials."),
    Column("right", "text", "The answer that counts as right for the score; empty: none does."),
    Column("reservoir", "json", "Positions of the training trials that may be consulted."),
    Column("others", "json", "Further stimuli of the page by role, as item and condition."),
    Column("variant", "text", "Tells several stimuli of an item under a condition apart: key of a solution."),
    Column("extra", "json", "What only this kind of trial needs."),
)

_WITH_UNITS = {
    "trials": (TRIALS, "answer"),
    "participants": (PARTICIPANTS, "sitting"),
    "stimuli": (STIMULI, "picture"),
    "questions": (QUESTIONS, "answer to a question"),
    "gates": (GATES, "try at a gate"),
    "events": (EVENTS, "event"),
    "openings": (OPENINGS, "opening of the reservoir"),
    "plans": (PLANS, "planned trial of every slot"),
}
TABLES: dict[str, tuple[Column, ...]] = {table: columns for table, (columns, _) in _WITH_UNITS.items()}
UNITS = {table: f"one row per {unit}" for table, (_, unit) in _WITH_UNITS.items()}


@dataclass(frozen=True, slots=True)
class CodebookQuestion:
    """A question of the study or of its quiz; `levels` in the declared order."""

    id: str
    when: str
    kind: str
    prompt: str
    levels: tuple[str, ...]

    def entry(self) -> dict[str, str]:
        """Its row in the codebook."""
        return {
            "table": "questions",
            "column": "answer",
            "dtype": "integer" if self.kind == "number" else "text",
            "unit": "",
            "levels": "; ".join(self.levels),
            "meaning": f"{self.when}: {self.prompt}",
            "question": self.id,
        }


def columns_of(table: str, extra: Sequence[Column] = (), held: Collection[str] = ()) -> tuple[Column, ...]:
    """The columns of a table; `extra` are those that kinds of trial add to `trials`. If `held` names
    any, only those of the table's own that it names."""
    declared = tuple(column for column in TABLES[table] if not held or column.name in held)
    return (*declared, *(extra if table == "trials" else ()))


def names(table: str, extra: Sequence[Column] = ()) -> tuple[str, ...]:
    return tuple(column.name for column in columns_of(table, extra))


def codebook(extra: Sequence[Column] = (), asked: Sequence[CodebookQuestion] = ()) -> list[dict[str, str]]:
    """One row per column of every table, in the order of the files, then one per question that was asked."""
    return [
        {
            "table": table,
            "column": column.name,
            "dtype": column.dtype,
            "unit": column.unit,
            "levels": "; ".join(column.levels),
            "meaning": column.meaning,
            "question": "",
        }
        for table in TABLES
        for column in columns_of(table, extra)
    ] + [question.entry() for question in asked]
