"""The participant's page in a browser over a canned session: any page or trial at once, without a database.

What is shown is the built page; what it is told is checked to have the wire's form (tests/canned.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.definition.study import StudyDefinition
from experiments.paradigms import design_of
from experiments.paradigms.answer_keys import keys_to_choose
from experiments.paradigms.rating import QUESTIONS
from experiments.wording.sentence_tables import table_of
from experiments.wording.sentences import page_words, sight_words
from experiments.wording.smallest_window import answers_of, answers_px_of, board_of
from tests.canned import DIST, NUMBERS, Sitting

if TYPE_CHECKING:
    from playwright.sync_api import Page

KEYS = {2: "fj", 4: "1234"}


def media(name: str, alt: str = "Picture") -> dict[str, Any]:
    """No address occurs twice, as on the server."""
    return {
        "url": f"/m/{next(NUMBERS)}/{name}",
        "width_px": 640,
        "height_px": 640,
        "alt": alt,
        "is_said": False,
    }


def choices(texts: Sequence[str]) -> list[dict[str, str]]:
    keys = KEYS.get(len(texts), "1234567890qwertyuiop")
    return [{"value": text.lower(), "text": text, "key": keys[i]} for i, text in enumerate(texts)]


def learn(label: str, explained: bool = True, text: Mapping[str, Any] | None = None) -> dict[str, Any]:
    explanation = media("x") if explained and text is None else None
    image = media("i") if text is None else None
    content = {"image": image, "explanation": explanation, "text": text, "label": label}
    return {"kind": "learn", "phase": "train", "content": {**content, "choices": []}}


def guess(texts: Sequence[str], text: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A text, or a picture, that is guessed first; the stage reveals the last of the answers."""
    image = media("i") if text is None else None
    content = {"image": image, "explanation": None, "text": text, "label": None, "choices": choices(texts)}
    return {"kind": "learn", "phase": "train", "content": content}


def decide(texts: Sequence[str], advice: str | None = None, *, is_second: bool = False) -> dict[str, Any]:
    """A decision about a picture: the first one, or the second beside the first of the answers. With advice
    its explanation stands beside the picture."""
    content = {
        **{"step": "second" if is_second else "first", "image": media("i")},
        **{"explanation": media("x") if advice else None, "earlier": texts[0] if is_second else None},
        **{"advice": advice, "choices": choices(texts)},
    }
    return {"kind": "decide", "phase": "test", "content": content}


def predict(
    texts: Sequence[str], explained: bool = False, text: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    explanation = media("x") if explained else None
    content = {
        **{"image": None if text else media("i"), "explanation": explanation, "text": text, "prompt": None},
        **{"choices": choices(texts), "reservoir": ["e0", "e1", "e2"]},
    }
    return {"kind": "predict", "phase": "test", "content": content}


def instructed(sentence: str) -> dict[str, Any]:
    keys = [{"value": key, "text": key.upper(), "key": key} for key in "dfjk"]
    content = {"prompt": sentence, "choices": keys, "reservoir": ["e0", "e1", "e2"]}
    return {"kind": "instructed", "phase": "test", "content": content}


def rate(
    asked: Sequence[str] = QUESTIONS, pairs: Sequence[str] = ("q5", "q6"), language: str = "en"
) -> dict[str, Any]:
    """A rating of PASTA's questions, in our words; those of `pairs` compare two copies."""
    said = table_of(language)["pages"]
    shown = {"image": media("i"), "mark": media("x"), "text": None, "sentence": None}
    copy = {**shown, "image": media("i"), "mark": media("x")}
    questions = [
        {
            **{"id": name, "text": said[f"rate_{name}"]},
            **{end: said[f"rate_{name}_{end}"] for end in ("low", "high")},
            "pair": [shown, copy] if name in pairs else None,
        }
        for name in asked
    ]
    return {"kind": "rate", "phase": "test", "content": {**shown, "label": "Husky", "questions": questions}}


DIGITS = tuple("0123456789")
CANNOT_SAY = {"value": "cannot_say", "text": "Cannot say", "key": "x"}


def solve(texts: Sequence[str] = DIGITS, grid: int = 28, picture: str = "plate-7") -> dict[str, Any]:
    """A task with its answers; digits are their own keys, as on the server."""
    are_digits = all(len(text) == 1 for text in texts)
    named = [{**c, "key": c["text"].lower()} if are_digits else c for c in choices(texts)]
    content = {"image": media(picture), "grid": grid, "choices": [*named, CANNOT_SAY]}
    return {"kind": "solve", "phase": "test", "content": content}


def review(answer: str = "7", marked: bool = True, picture: str = "plate-7") -> dict[str, Any]:
    """An answer to be judged, with its region or without."""
    judged = [{"value": v, "text": v.capitalize(), "key": k} for v, k in (("accept", "f"), ("reject", "j"))]
    content = {
        **{"image": media(picture), "mark": media("region-7", "Marked picture") if marked else None},
        **{"text": None, "answer": answer, "choices": judged},
    }
    return {"kind": "review", "phase": "test", "content": content}


def words(count: int) -> dict[str, Any]:
    """A text of that many characters, in words of five letters."""
    whole = ("word " * count)[:count]
    return {"tokens": [{"text": whole[:20], "shade": 0.6}, {"text": whole[20:], "shade": None}]}


def sentence(*pieces: str | tuple[str, float]) -> dict[str, Any]:
    """A text of these pieces; a pair is a marked one with its shade."""
    rows = [piece if isinstance(piece, tuple) else (piece, None) for piece in pieces]
    return {"tokens": [{"text": text, "shade": shade} for text, shade in rows]}


def facts(definition: StudyDefinition, **changes: Any) -> dict[str, Any]:
    """What the page is told of the study."""
    design, board = design_of(definition), board_of(definition)
    return {
        **{"title": definition.title, "language": definition.language, "contact": "lab@example.org"},
        **{"instructions": "<h2>How it works</h2><p>Look.</p>", "origin": "human"},
        "words": page_words(definition),
        **{"picture_px": board.picture_px, "answers_px": answers_px_of(definition), "tile_px": 112},
        **{"min_view_ms": 0, "gap_ms": 0, "reservoir": getattr(design, "reservoir", "off")},
        **{"display": getattr(design, "display", "beside"), "sight": sight_words(definition)},
        "keys": list(keys_to_choose(answers_of(definition))),
        "presentation": definition.presentation.model_dump(exclude={"calibration"}),
        "legend": {"colours": ["#440154", "#21918c", "#fde725"], "ends": "importance"},
        **changes,
    }


def state(
    study: Mapping[str, Any], trials: Sequence[Mapping[str, Any]] = (), **changes: Any
) -> dict[str, Any]:
    """S of the wire: a block with these trials, or what `changes` say."""
    rows = [{"id": f"t{place}", "position": place, **trial} for place, trial in enumerate(trials)]
    label = next((t["content"]["label"] for t in trials if t["kind"] == "learn"), None) or "Husky"
    examples = [
        {"trial": f"e{n}", "label": label, "image": media("i"), "explanation": media("x"), "text": None}
        for n in range(3)
    ]
    return {
        **{"step": "trials", "page": None, "attempts_left": None, "feedback": None, "exit": None},
        **{"next": 0, "total": len(rows), "progress": None, "study": study},
        "block": {"index": 0, "count": 1, "first": 0, "trials": rows, "later": [], "examples": examples},
        **changes,
    }


class Stage(Sitting):
    """Tells one browser page a state, as to a person of its own, and keeps what the page sends.
    `one_by_one`: a trial of the block is handed out when the one before is answered."""

    def __init__(
        self, page: Page, shown: Mapping[str, Any], built: Path = DIST, *, one_by_one: bool = False
    ) -> None:
        super().__init__(built)
        self.page, self.shown, self.one_by_one = page, dict(shown), one_by_one
        self._stored: list[dict[str, Any]] = []

    def open(self) -> None:
        """As if the link was opened anew; a block's own page is passed."""
        self.prepare()
        self.page.goto(self.url)
        if self.shown["step"] == "trials":
            self.go_on("block")

    def go_on(self, kind: str) -> None:
        """From a page of that kind to the trial after it."""
        self.page.locator(f"[data-page={kind}] .button.primary:not(:disabled)").click()
        self.page.wait_for_selector(".board, .rating, .solving")

    def sent(self, count: int) -> list[dict[str, Any]]:
        """What was answered, in order, once `count` answers are here: the page goes on without waiting for
        the server, so what comes next may be shown before."""
        if len(self._stored) < count:
            self.page.wait_for_event("response", lambda _: len(self._stored) >= count)
        return list(self._stored)

    def press(self, key: str) -> None:
        """Answers the trial that is shown."""
        board = self.page.locator(".board")
        board.locator(":is(.answer:not([aria-disabled]), .next)").first.wait_for()
        board.evaluate("board => board.dataset.done = '1'")
        self.page.keyboard.press(key)
        self.page.wait_for_selector(".board[data-done]", state="detached")

    def state(self) -> dict[str, Any]:
        """What the page is told now."""
        trials, done = self.shown["block"]["trials"] if self.shown["block"] else [], len(self._stored)
        if not self.one_by_one:
            return self.shown
        if done == len(trials):
            return {**self.shown, "step": "comment", "block": None}
        rest = Counter((trial["kind"], trial["phase"]) for trial in trials[done + 1 :])
        later = [{"kind": kind, "phase": phase, "count": count} for (kind, phase), count in rest.items()]
        return {**self.shown, "block": {**self.shown["block"], "trials": [trials[done]], "later": later}}

    def guess(self, key: str) -> None:
        """Answers the trial that is shown, and stays at what is revealed."""
        self.page.locator(".answer:not([aria-disabled])").first.wait_for()
        self.page.keyboard.press(key)
        self.page.wait_for_selector(".next")

    def _told(self, response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """What is revealed after an answer: the last of the buttons, if it was a guess."""
        trials = self.shown["block"]["trials"]
        content = next(trial["content"] for trial in trials if trial["id"] == response["trial"])
        if content.get("label", "") is None:
            right, choice = content["choices"][-1], response["value"]["choice"]
            correct = right["value"] == choice
            yield {"trial": response["trial"], "choice": choice, "label": right["text"], "correct": correct}

    def take(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind != "responses":
            return {}
        # As on the server, an answer that is sent twice is stored once.
        known = {response["trial"] for response in self._stored}
        self.shown["next"] = len(known | {each["trial"] for each in body["responses"]})
        told = {each["trial"]: each for response in body["responses"] for each in self._told(response)}
        self.shown["feedback"] = next(reversed(told.values()), None)
        # Last, because a test that waits for the answers asks for the state at once.
        self._stored.extend(each for each in body["responses"] if each["trial"] not in known)
        return {"next": len(self._stored), "step": "trials", "feedback": told}
