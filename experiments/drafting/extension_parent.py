"""An extension and the study that it extends, as they are stored: whether the two still ask the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.errors import StudyError
from experiments.models import Item, Study
from experiments.study_files.extension import APART

if TYPE_CHECKING:
    from experiments.definition.study import StudyDefinition


def parent_of(definition: StudyDefinition) -> Study | None:
    """The parent, opened in this database; None if the study extends none. Raises StudyError if it is not
    opened, or if anything that the two have in common has changed since."""
    if not definition.extends:
        return None
    parent = Study.objects.filter(slug=definition.extends).exclude(state=Study.State.DRAFT).first()
    if parent is None:
        raise StudyError(
            f"{definition.slug!r} extends {definition.extends!r}, which is not open in this database. Open "
            f"it first: study_open {definition.extends}."
        )
    before, now = _common(type(definition).model_validate(parent.definition)), _common(definition)
    changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    if changed:
        raise StudyError(
            f"{definition.slug!r} cannot extend {parent.slug!r}: {', '.join(changed)} changed in its file "
            "since it was opened, so the people of the two would not be asked the same. Restore the file."
        )
    return parent


def _common(definition: StudyDefinition) -> dict[str, Any]:
    return {key: value for key, value in definition.as_met().items() if key not in APART}


def refuse_other_items(study: Study, parent: Study) -> None:
    """StudyError unless an extension has the parent's items, with the same model's answers to them."""

    def items_of(of: Study) -> dict[str, tuple[str, str]]:
        rows = Item.objects.filter(study=of, copy_of=None).values_list("key", "truth", "predicted")
        return {key: (truth, predicted) for key, truth, predicted in rows}

    if study.predictor.get("key") != parent.predictor.get("key"):
        raise StudyError(
            f"{study.slug!r} cannot extend {parent.slug!r}: its model is another one (its key is "
            f"{str(study.predictor.get('key'))[:12]}, not {str(parent.predictor.get('key'))[:12]}). Restore "
            "the model's file."
        )
    mine, theirs = items_of(study), items_of(parent)
    others = sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
    if others:
        raise StudyError(
            f"{study.slug!r} cannot extend {parent.slug!r}: {len(others)} items differ, for example "
            f"{others[0]!r}. Its pictures have changed, or [stimuli] drop_flagged has left out others "
            "because of the new methods: leave those methods out, or start a new study."
        )
