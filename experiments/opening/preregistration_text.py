"""A preregistration in words: as Markdown, and in the order of the questions of the Open Science Framework's
form "OSF Preregistration". What a document does not hold is "not stated".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.definition.preregistration_table import ALPHA
from stimuli.spec import canonical_json

NOT_STATED = "Not stated."
UNWITNESSED = (
    "The date is not independently witnessed: neither a registry's address nor a time stamp is stored."
)
BOUNDARIES = {"obrien_fleming": "O'Brien and Fleming", "pocock": "Pocock"}
Document = Mapping[str, Any]
Entry = tuple[str, tuple[str, ...]]
"""A heading and its lines."""


def witness(registry: str, named_at: str, stamp: str = "") -> str:
    """Who else can say when the plan was there, as sentences; `stamp` is what a time stamp says."""
    if not registry:
        return stamp or UNWITNESSED
    return (
        f"{stamp} ".lstrip()
        + f"Registered at {registry}, as the author says (named on {named_at[:10]}; not looked up)."
    )


def entries(document: Document) -> Iterator[Entry]:
    """The whole document in words."""
    study, size = document["study"], document["sample_size"]
    yield "Study", (f"{study['title']} ({study['slug']}), {study['paradigm']}, seed {study['seed']}.",)
    if document["extends"]:
        yield "Extends", (document["extends"], *_pairs(document["extension"]))
    yield "Hypotheses", _statement_list(document["hypotheses"])
    yield "Primary outcome", _statement(document["primary_outcome"])
    yield "Smallest effect of interest", _statement(effect_words(document["smallest_effect"]))
    yield "Alpha", (alpha_words(document["alpha"]),)
    yield "Planned contrasts", _statement(_contrast_words(document["contrasts"]))
    yield "Analysis", _statement(document["planned_analysis"])
    yield "Conditions", tuple(_conditions(document["conditions"]))
    yield "Exclusion rules", tuple(_rules(document["exclusion_rules"]))
    yield "Checks of one session", tuple(f"{name}: {n}" for name, n in document["checks"].items())
    yield "Missing data", _statement(document["missing"])
    yield "Stopping rule", (document["stopping_rule"],)
    if document.get("looks"):
        yield "Planned looks", (look_words(document),)
    yield "Sample size", (*(f"{k}: {n}" for k, n in size["places"].items()), f"together: {size['total']}")
    yield "Assignment", (document["assignment"],)
    yield "Design", _pairs(document["design"])
    yield "Explained", _pairs(document["explained"])
    yield "Recipe of the pictures", _pairs(document["render"])
    if seen := document.get("previewed"):
        said = f"{len(seen)} test items were seen with explanations in a preview: {', '.join(seen)}."
        yield "Previewed before opening", (said,)
    yield "Acknowledged warnings", tuple(document["acknowledged"]) or ("None when this was made.",)
    yield "Digests (SHA-256)", tuple(_digests(document["digests"]))
    yield "Code", (f"Legible {document['code_version']}",)


def as_markdown(document: Document, said: Sequence[str] = ()) -> str:
    """The document with the sentences of `said` below its title."""
    parts = [f"# Preregistration: {document['study']['title']}", *said]
    return _sections(parts, entries(document), "##")


def effect_words(effect: Mapping[str, float] | None) -> str:
    """Empty if none is stated."""
    if not effect:
        return ""
    if "points" in effect:
        return f"{effect['points']:g} percentage points"
    return f"d = {effect['d']:g} (standard deviations of people's own scores)"


def alpha_words(alpha: float | None) -> str:
    return f"Not stated; tests are at {ALPHA:g}." if alpha is None else f"{alpha:g}"


def look_words(document: Document) -> str:
    """At how many people the planned contrasts are looked at before the end, by which limits, and how; empty
    if the plan names no looks."""
    if not document.get("looks"):
        return ""
    return (
        f"At {', '.join(map(str, document['looks']))} people kept per condition, the first by the time at "
        "which they finished, the planned contrasts are tested; each look says continue or stop and nothing "
        f"else. Error is spent as {BOUNDARIES[document['boundary']]} (Lan and DeMets), so that all looks and "
        "the end together err at most at alpha."
    )


def _contrast_words(contrasts: str | None) -> str:
    words = {"dunnett": "Each condition against the baseline (Dunnett)", "tukey": "All pairs (Tukey)"}
    return words[contrasts] if contrasts else ""


def _statement(text: str | None) -> tuple[str, ...]:
    return (text,) if text else (NOT_STATED,)


def _statement_list(texts: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(texts) if texts else (NOT_STATED,)


def _conditions(conditions: Mapping[str, Any]) -> Iterator[str]:
    for name, condition in conditions.items():
        shown = canonical_json(condition["explainer"]) if condition["explainer"] else "no explanation"
        yield f"{name} ({condition['role']}): {shown}"


def _rules(rules: Mapping[str, Any]) -> Iterator[str]:
    for name, rule in rules.items():
        limit = rule["limit"]
        words = " to ".join(f"{end:g}" for end in limit) if isinstance(limit, list) else f"{limit:g}"
        yield f"{name}: {words}, {rule['timing']} assignment"


def _pairs(table: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{name}: {value_words(value)}" for name, value in table.items()) or (NOT_STATED,)


def value_words(value: object) -> str:
    return value if isinstance(value, str) and value else canonical_json(value)


def _digests(digests: Mapping[str, Any]) -> Iterator[str]:
    yield f"definition: {digests['definition']}"
    yield f"plans: {digests['plans'] or 'known when the study opens'}"
    yield from (f"model {name}".rstrip() + f": {key}" for name, key in digests["predictors"].items())
    if digests["pictures"] is None:
        yield "pictures: known when they are rendered"
    else:
        yield from (f"pictures of {name}: {key}" for name, key in digests["pictures"].items())


def _sections(parts: list[str], rows: Iterator[Entry], level: str) -> str:
    for title, lines in rows:
        parts += [f"{level} {title}", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(parts) + "\n"


OSF = {
    "Study Information": ("Title", "Description", "Hypotheses"),
    "Design Plan": (
        *("Study type", "Blinding", "Is there any additional blinding in this study?"),
        *("Study design", "Randomization"),
    ),
    "Sampling Plan": (
        *("Existing data", "Explanation of existing data", "Data collection procedures"),
        *("Sample size", "Sample size rationale", "Stopping rule"),
    ),
    "Variables": ("Manipulated variables", "Measured variables", "Indices"),
    "Analysis Plan": (
        *("Statistical models", "Transformations", "Inference criteria"),
        *("Data exclusion", "Missing data", "Exploratory analysis"),
    ),
    "Other": ("Other",),
}
"""The sections of the form with their questions."""


def as_osf(document: Document, rationale: Sequence[str] = ()) -> str:
    """The document as answers to the form; `rationale` are sentences on the sample size, such as its power.
    Every question stands there."""
    answers = _osf_answers(document, rationale)
    parts = [f"# OSF Preregistration: {document['study']['title']}"]
    for section, questions in OSF.items():
        rows = ((question, answers.get(question) or (NOT_STATED,)) for question in questions)
        parts.append(_sections([f"## {section}"], rows, "###").rstrip())
    return "\n\n".join(parts) + "\n"


def _osf_answers(document: Document, rationale: Sequence[str]) -> dict[str, tuple[str, ...]]:
    words = dict(entries(document))
    blind = (
        "Participants are not told their condition, and their browser is sent neither its name nor the "
        "model's answers of test trials.",
    )
    sealed = ("Results per condition are sealed from the researchers until the stopping rule is met.",)
    effect = effect_words(document["smallest_effect"])
    smallest = f"Smallest effect of interest: {effect}" if effect else ""
    return {
        "Title": (document["study"]["title"],),
        "Hypotheses": words["Hypotheses"],
        "Study type": ("Experiment: conditions are assigned to participants by a plan.",),
        "Blinding": blind,
        "Is there any additional blinding in this study?": sealed,
        "Study design": (*words["Design"], *(f"checks, {line}" for line in words["Checks of one session"])),
        "Randomization": words["Assignment"],
        "Sample size": words["Sample size"],
        "Sample size rationale": (*rationale, *filter(None, [smallest])),
        "Stopping rule": (*words["Stopping rule"], *words.get("Planned looks", ())),
        "Manipulated variables": (
            *(f"condition, {line}" for line in words["Conditions"]),
            *(f"explained, {line}" for line in words["Explained"]),
            *(f"recipe, {line}" for line in words["Recipe of the pictures"]),
        ),
        "Measured variables": words["Primary outcome"],
        "Statistical models": (*words["Planned contrasts"], *words["Analysis"]),
        "Inference criteria": (f"Alpha: {alpha_words(document['alpha'])}",),
        "Data exclusion": words["Exclusion rules"],
        "Missing data": words["Missing data"],
        "Existing data": words.get("Previewed before opening", ()),
        "Other": (*words["Digests (SHA-256)"], *words["Code"]),
    }
