"""What `study_check` says of a study's models, before anything else."""

from __future__ import annotations

from crowd.study_check.dry_run import Models
from experiments.terminal import Terminal
from experiments.wording.answer_meanings import meanings
from stimuli.quality.model_knowledge import ModelLook

ANSWERS_MAX = 8
"""Up to here the table has a column for each answer; else its most frequent cells are listed."""
CELLS_MAX = 20
POOL = ("the model says", "and is", "items")


def print_models(models: Models, terminal: Terminal) -> None:
    definition = models.definition
    terminal.line(f"{definition.slug}: {definition.title} (definition {definition.digest[:12]})")
    for line in models.told:
        terminal.line(f"{line[0].upper()}{line[1:]}.")
    if names := meanings(definition):
        terminal.line(names)
    terminal.table("Pool of items", POOL, models.pool_cells)
    for name, look in models.looks.items():
        columns, rows = confusion_rows(look)
        of = f" of {name}" if name else ""
        terminal.table(f"Answers{of} on people's items, by what these are", columns, rows)
        for line in accuracy_lines(look):
            terminal.line(line)


def confusion_rows(look: ModelLook) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Truth by answer; a study of many answers lists the most frequent pairs of the two."""
    answers = sorted({answer for _, answer, _ in look.table})
    truths = sorted({truth for truth, _, _ in look.table})
    if len(answers) > ANSWERS_MAX:
        cells = sorted(look.table, key=lambda cell: (-cell[2], cell))[:CELLS_MAX]
        return ("is", "the model says", "items"), [tuple(cell) for cell in cells]
    counts = {(truth, answer): count for truth, answer, count in look.table}
    rows = [(truth, *(counts.get((truth, answer), 0) for answer in answers)) for truth in truths]
    return ("is", *(f'says "{answer}"' for answer in answers)), rows


def accuracy_lines(look: ModelLook) -> list[str]:
    """The accuracy on people's items, beside what is known from elsewhere, and what the view leaves out."""
    lines = [f"Its accuracy on them: {look.asked}."]
    if look.asked.of:
        lines.append(f"The same answers, dealt out by chance, would be right on {look.asked.guessing:.2f}.")
    if look.grey and not look.asked.is_above_guessing:
        lines.append(f"{look.grey} of {look.asked.of} pictures have no colour.")
    if colours := look.colours:
        trained = f'; it was trained with colour = "{colours.training}"' if colours.training else ""
        lines.append(
            f"Of {colours.pictures} pictures whose profile is not sRGB, {colours.answers} have another "
            f"answer of the model if they are read the other way, and {colours.labels} another label that "
            f"people see{trained}."
        )
    if look.outside:
        lines.append(f"Left out are {look.outside} items, of which it names a class that the study lacks.")
    if look.held_out is not None:
        lines.append(f"Held-out accuracy, on items kept from its training: {look.held_out}.")
    if look.published is not None:
        lines.append(f"published_accuracy, as declared: {look.published:.2f}.")
    if look.cast_from:
        stored = " and ".join(look.cast_from.split(", "))
        lines.append(f"Weights that are stored in {stored} were cast to float32.")
    if look.is_multi_label:
        lines.append(
            "It was trained as multi_label_classification, a yes or no for each label: the answer is its "
            "largest logit, and probabilities of a softmax are not its own."
        )
    if look.name_prefix:
        lines.append(f'The names of its weights were read without "{look.name_prefix}", a wrapper\'s prefix.')
    mean, largest = look.cropped
    if largest > 0:
        lines.append(f"The view cuts off {mean:.2f} of a picture on average, {largest:.2f} at most.")
    return lines
