"""What is wrong with a model, in sentences with their measurement: a cause is named only if it was found."""

from __future__ import annotations

from collections.abc import Sequence

from stimuli.quality.model_knowledge import ModelLook


def unknowing(look: ModelLook) -> str:
    """That the model does not know people's items, with the signs of it; "" if nothing says so."""
    if not look.is_unknowing:
        return ""
    words = _words(look)
    if not look.asked.of:
        return (
            f"the model names a class that the study lacks on all {look.outside} {words}, so it has no "
            "answer that people could predict"
        )
    signs = []
    if look.is_one_answer:
        said = round(look.commonest_share * look.asked.of)
        signs.append(f'it says "{look.commonest}" on {said} of {look.asked.of}')
    if look.is_flat:
        signs.append(f"its probabilities differ by no more than {look.probability_range:.2g} between {words}")
    if look.untouched:
        signs.append("its normalisation layers stand as they are made, before any training")
    return (
        f"the network does not know these {words}: its accuracy {look.asked} is what guessing gives "
        f"({look.asked.guessing:.2f}), and {'; '.join(signs)}"
    )


def causes(look: ModelLook) -> list[str]:
    """What explains it, of the usual causes, and what else speaks against the model."""
    return [*_dim(look), *_other_colours(look), *_causes(look)]


def _dim(look: ModelLook) -> list[str]:
    count, darkest, lightest = look.dim
    if not count:
        return []
    return [
        f"{count} of {look.asked.of} pictures use levels {darkest} to {lightest} of 255, so that people see "
        "hardly anything in them: save them with their whole range; if they are greys of 16 bits, declare "
        "their levels in the dataset's table"
    ]


def _other_colours(look: ModelLook) -> list[str]:
    colours = look.colours
    if colours is None or colours.training in ("", colours.colour):
        return []
    ways = {"numbers": "the bare numbers of the files", "convert": "colours converted to sRGB"}
    return [
        f"the network was trained with {ways[colours.training]} (training_colour), but the study shows "
        f'{ways[colours.colour]} (colour = "{colours.colour}"): in the table of the dataset set colour = '
        f'"{colours.training}"'
    ]


def _causes(look: ModelLook) -> list[str]:
    if look.held_out is not None:
        return [] if look.held_out.is_above_guessing else [_untaught(look)]
    reasons = [*_first_weights(look), *_wrong_scale(look), *_other_normalisation(look), *_other_labels(look)]
    if reasons or look.asked.is_above_guessing:
        return reasons or _below_published(look)
    if look.is_unknowing:
        other = "no other normalisation and no other" if look.mean else "no other"
        return [f"{other} order of the labels does better: {_usual(look)}"]
    if look.asked.is_below_guessing:
        return [
            f"the model is right on {look.asked}, less often than guessing ({look.asked.guessing:.2f}): is "
            f"the label order right? {_order(look.labels)}"
        ]
    return [
        f"the model is right on {look.asked} of these {_words(look)}, which is what guessing gives "
        f"({look.asked.guessing:.2f}): that is as it should be only if they were chosen so that it errs; "
        f"else, {_usual(look)}"
    ]


def _usual(look: ModelLook) -> str:
    """What to ask if nothing that was measured is the cause."""
    if 2 * look.grey > look.asked.of and not look.dim[0]:
        return (
            f"was the model trained on pictures in colour? {look.grey} of these {look.asked.of} have none: "
            "show it pictures like those of its training"
        )
    return "were the trained weights loaded?"


def _first_weights(look: ModelLook) -> list[str]:
    """Random weights: what else seems to help them is luck."""
    return ["were the trained weights loaded?"] if look.is_unknowing and look.untouched else []


def _wrong_scale(look: ModelLook) -> list[str]:
    """A mean outside of 0-1 takes away what tells pictures apart; a network that knows them takes no harm."""
    if not look.mean or 0 <= min(look.mean) <= max(look.mean) <= 1 or not (look.is_unknowing or look.better):
        return []
    return [
        f"normalisation: mean = {_numbers(look.mean)} is on another scale than the pictures, which come in 0 "
        "to 1: divide mean and std by 255"
    ]


def _other_normalisation(look: ModelLook) -> list[str]:
    better = look.better
    if better is None:
        return []
    return [
        f"normalisation or input range: as declared (mean = {_numbers(look.mean)}, std = "
        f"{_numbers(look.std)}) it is right on {better.before} of {better.of} pictures, with {better.words} "
        f"(mean = {_numbers(better.mean)}, std = {_numbers(better.std)}) on {better.right}: give mean and "
        "std as in its training"
    ]


def _other_labels(look: ModelLook) -> list[str]:
    other = look.relabelled
    if other is None or other.accuracy.low <= max(look.asked.high if look.asked.of else 0, _guess(look)):
        return []
    if len(look.labels) == 2:
        return [
            f"label order: the model is right on fewer than half of the {_words(look)}, {look.asked}, and on "
            f"{other.accuracy.right} with the labels exchanged: is the label order right? "
            f"{_order(look.labels)}"
        ]
    exchanged = ", ".join(f'"{said}" is "{true}"' for said, true in other.named if said != true)
    return [
        f"label order: the model is right on {look.asked}, and on {other.accuracy.right} of "
        f"{other.accuracy.of} if {exchanged}: is the label order right? {_order(look.labels)}"
    ]


def _guess(look: ModelLook) -> float:
    return look.relabelled.accuracy.guessing if look.relabelled else 0.0


def _order(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:8]) + (", …" if len(labels) > 8 else "")
    return f"labels = [{shown}] must stand in the order of the logits"


def _below_published(look: ModelLook) -> list[str]:
    if look.published is None or look.asked.high >= look.published:
        return []
    return [
        f"published_accuracy is {look.published:.2f}, on people's {_words(look)} the model is right on "
        f"{look.asked}: are they prepared as in its training (input_px, resize_px, interpolation, fit, mean, "
        "std), or harder?"
    ]


def _untaught(look: ModelLook) -> str:
    return (
        "the network that is trained for the study has learned nothing that lasts: on items kept from its "
        f"training its accuracy {look.held_out} is not above guessing: train it on more items, or longer"
    )


def _words(look: ModelLook) -> str:
    return "pictures" if look.mean else "texts"


def _numbers(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:.4g}' for value in values)}]"
