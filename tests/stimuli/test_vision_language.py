"""A vision-language model that is asked how probable it holds replies, beside a naive count of the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from experiments.asking.local_likelihood_rater import LikeliestAsker
from stimuli.errors import BadSpec
from stimuli.predictors.files.hub_folder import library
from stimuli.predictors.vision_language import Turn, open_vision_language
from stimuli.render.png import encode
from stimuli.types import Pixels
from tests.stimuli.hub_models import SIDE, save_clip, save_llava

pytestmark = pytest.mark.pure
SPREAD = 1e-4
"""Of log-likelihoods, in float32."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("models") / "tiny-llava"
    return folder, save_llava(folder)


def picture(seed: int) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (SIDE + 9, SIDE + 20, 3), dtype=np.uint8)


def replies(*values: str) -> list[str]:
    return [json.dumps({"answer": value}) for value in values]


def counted(saved: tuple[Path, Any], text: str, shown: list[Pixels], given: list[str]) -> list[float]:
    """Each whole reply behind the whole dialogue through the library's own model. A token counts if another
    reply is the same before it and not at it."""
    folder, model = saved
    processor = library().AutoProcessor.from_pretrained(folder)
    start = processor(text=[text], images=[Image.fromarray(p) for p in shown] or None, return_tensors="pt")
    rows = [processor.tokenizer(reply)["input_ids"] for reply in given]
    totals = []
    for row in rows:
        ids = torch.cat([start["input_ids"], torch.tensor([row])], dim=1)
        inputs = {**start, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            said = torch.log_softmax(model(**inputs).logits[0].double(), dim=-1)
        begun = start["input_ids"].shape[1]
        totals.append(
            sum(
                float(said[begun + at - 1, token])
                for at, token in enumerate(row)
                if any(other[:at] == row[:at] and other[at] != token for other in rows)
            )
        )
    return totals


@pytest.mark.parametrize(
    "values", [("1", "2", "3", "4", "5"), ("left", "lower left", "right"), ("1", "10", "100", "12"), ("yes",)]
)
@pytest.mark.parametrize("shown", [0, 1, 2])
def test_it_is_the_sum_of_the_tokens_that_set_a_reply_apart(
    saved: tuple[Path, Any], values: tuple[str, ...], shown: int
) -> None:
    pictures = [picture(seed) for seed in range(shown)]
    turns: list[Turn] = [("system", ["Be brief."]), ("user", ["Look: ", *pictures, " How clear?"])]
    text = f"<system>Be brief.<user>Look: {'<image>' * shown} How clear?<assistant>"
    told = open_vision_language(saved[0]).log_likelihoods(turns, replies(*values))
    assert told == pytest.approx(counted(saved, text, pictures, replies(*values)), abs=SPREAD)
    assert all(value < 0 for value in told) or values == ("yes",)


def test_a_forced_choice_among_all_bytes_is_certain(saved: tuple[Path, Any]) -> None:
    """The probabilities of all tokens that can come next add up to 1."""
    model = open_vision_language(saved[0])
    made = model.processor.tokenizer
    every = [made.decode([number]) for number in range(2, len(made)) if len(made.decode([number])) == 1]
    single = [text for text in every if made(text)["input_ids"] and len(made(text)["input_ids"]) == 1]
    told = np.exp(model.log_likelihoods([("user", ["?"])], single))
    assert len(single) > 90 and 0 < told.sum() <= 1 + 1e-9


def test_what_it_answers_depends_on_the_picture_and_not_on_the_listing_alone(saved: tuple[Path, Any]) -> None:
    model = open_vision_language(saved[0])
    answers = [(str(point), "") for point in range(1, 6)]
    asker = LikeliestAsker(model, "given")
    asker.system = "Answer."
    given = [asker.ask(["Picture:", encode(picture(seed)), "How clear?"], answers) for seed in range(12)]
    again = [asker.ask(["Picture:", encode(picture(seed)), "How clear?"], answers) for seed in range(12)]
    assert given == again and len(set(given)) > 1 and set(given) <= {value for value, _ in answers}
    turns: list[Turn] = [
        ("system", ["Answer."]),
        (
            "user",
            ["Picture:", picture(0), "How clear?", "Answers:\n" + "\n".join(f'"{v}"' for v, _ in answers)],
        ),
    ]
    likely = model.log_likelihoods(turns, replies(*(value for value, _ in answers)))
    assert given[0] == answers[int(np.argmax(likely))][0]


def test_equally_probable_answers_go_by_the_listing(
    saved: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_vision_language(saved[0])
    monkeypatch.setattr(model, "log_likelihoods", lambda turns, given: [-1.0] * len(given))
    answers = [("1", "low"), ("2", ""), ("3", "high")]
    assert LikeliestAsker(model, "given").ask(["?"], answers) == "1"
    assert LikeliestAsker(model, "reversed").ask(["?"], answers) == "3"


def test_weights_settings_and_words_are_in_its_digest(tmp_path: Path) -> None:
    save_llava(tmp_path / "net")
    before = open_vision_language(tmp_path / "net").digest
    assert open_vision_language(tmp_path / "net").digest == before
    template = tmp_path / "net" / "chat_template.jinja"
    template.write_text(template.read_text() + " ")
    assert open_vision_language(tmp_path / "net").digest != before


def test_what_cannot_be_asked_is_told(tmp_path: Path, saved: tuple[Path, Any]) -> None:
    with pytest.raises(BadSpec, match="is no folder"):
        open_vision_language(tmp_path / "none")
    save_clip(tmp_path / "clip")
    with pytest.raises(BadSpec, match="'clip', which is no vision-language model .* name its address"):
        open_vision_language(tmp_path / "clip")
    model = open_vision_language(saved[0])
    with pytest.raises(BadSpec, match="does not tell 'a' from 'ab'"):
        model.log_likelihoods([("user", ["?"])], ["a", "ab"])
    with pytest.raises(BadSpec, match="the library cannot read 1 picture in one dialogue"):
        model.log_likelihoods([("user", ["<image>", picture(0)])], ["a", "b"])
    save_llava(tmp_path / "net")
    processor = tmp_path / "net" / "processor_config.json"
    whole = json.loads(processor.read_text())
    processor.write_text(json.dumps(whole | {"auto_map": {"AutoProcessor": "mine.Mine"}}))
    with pytest.raises(BadSpec, match="names code that comes with the model"):
        open_vision_language(tmp_path / "net")
    processor.write_text(json.dumps(whole | {"audio_tokenizer": {"audio_tokenizer_name_or_path": "a/b"}}))
    with pytest.raises(BadSpec, match="names a model of its own for sounds"):
        open_vision_language(tmp_path / "net")
    processor.write_text(json.dumps(whole))
    (tmp_path / "net" / "chat_template.jinja").unlink()
    with pytest.raises(BadSpec, match=r"holds no chat_template\.jinja"):
        open_vision_language(tmp_path / "net")
    (tmp_path / "net" / "model.safetensors").rename(tmp_path / "net" / "pytorch_model.bin")
    (tmp_path / "net" / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(BadSpec, match="a pickle can run code"):
        open_vision_language(tmp_path / "net")
