"""What the answers of a study stand for: the classes of the material behind the buttons that people press."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.definition.study import StudyDefinition


@dataclass(frozen=True, slots=True)
class NamedAnswer:
    """`value` is what is stored, `text` what people read. `means` names the classes of the material that the
    value stands for, if it does not say so itself; empty if it does, or stands for none.
    """

    value: str
    text: str
    means: str


def answers_of(definition: StudyDefinition) -> tuple[NamedAnswer, ...]:
    """The answers in their canonical order; empty if the study asks for none."""
    target = definition.stimuli.target
    if target is not None:
        means = {"target": target, "other": f"every class but {target}"}
    elif definition.answers:
        means = {row.value: " or ".join(row.classes) for row in definition.answers}
    else:
        means = {definition.value_of(name): name for name in definition.stimuli.classes or ()}
    return tuple(
        NamedAnswer(value, text, "" if means[value] == value else means[value])
        for value, text in definition.choices
    )


def meanings(definition: StudyDefinition) -> str:
    """One sentence on the answers whose values do not say what they stand for; empty if all do."""
    told = [f"{answer.value} is {answer.means}" for answer in answers_of(definition) if answer.means]
    return f"Answers stand for classes of the material: {', '.join(told)}." if told else ""
