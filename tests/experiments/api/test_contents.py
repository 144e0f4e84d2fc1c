"""Serializers from the models of the wire: every form, and no undeclared field is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from rest_framework import serializers

from experiments.api.trial_serializers import TrialsField, serializer_of, trial_serializer
from experiments.kinds import KINDS, base, get_kind
from stimuli.errors import UnknownName

pytestmark = pytest.mark.pure


class Inner(base.Wire):
    text: str
    shade: float | None


class Forms(base.Wire):
    """Every form of annotation that a content may have."""

    text: str
    number: int
    share: float
    flag: bool
    maybe_text: str | None
    maybe_number: int | None
    inner: Inner
    maybe_inner: Inner | None
    words: tuple[str, ...]
    numbers: tuple[int, ...]
    rows: tuple[Inner, ...]
    maybe_rows: tuple[Inner, ...] | None
    maybe_words: tuple[str, ...] | None


INNER = Inner(text=" a\n", shade=0.25)
FULL = Forms(
    text="  two  ", number=3, share=0.5, flag=True, maybe_text="m", maybe_number=0, inner=INNER,
    maybe_inner=INNER, words=("a", ""), numbers=(1, 2), rows=(INNER, INNER), maybe_rows=(INNER,),
    maybe_words=("b",),
)  # fmt: skip
BARE = Forms(
    text="", number=-1, share=0.0, flag=False, maybe_text=None, maybe_number=None,
    inner=Inner(text="", shade=None), maybe_inner=None, words=(), numbers=(), rows=(), maybe_rows=None,
    maybe_words=None,
)  # fmt: skip


@pytest.mark.parametrize("value", [FULL, BARE], ids=["full", "bare"])
def test_it_writes_every_form_as_its_plain_json(value: Forms) -> None:
    """pydantic's own JSON, made without any serializer, is the other way to write the same value."""
    assert serializer_of(Forms)(value.model_dump()).data == value.model_dump(mode="json")


@pytest.mark.parametrize("value", [FULL, BARE], ids=["full", "bare"])
def test_it_reads_what_it_has_written(value: Forms) -> None:
    """A schema made from the serializer promises fields that these very values pass."""
    reader = serializer_of(Forms)(data=value.model_dump(mode="json"))
    assert reader.is_valid(), reader.errors
    assert Forms.model_validate(reader.validated_data) == value


@pytest.mark.parametrize("name", ["text", "number", "share", "flag", "inner", "words", "numbers", "rows"])
def test_only_what_may_be_absent_may_be_null(name: str) -> None:
    reader = serializer_of(Forms)(data={**FULL.model_dump(mode="json"), name: None})
    assert not reader.is_valid() and set(reader.errors) == {name}


@pytest.mark.parametrize("name", list(Forms.model_fields))
def test_every_declared_field_is_required(name: str) -> None:
    data = FULL.model_dump(mode="json")
    del data[name]
    reader = serializer_of(Forms)(data=data)
    assert not reader.is_valid() and set(reader.errors) == {name}


def test_it_makes_each_serializer_once_by_the_name_of_its_model() -> None:
    assert serializer_of(Forms) is serializer_of(Forms)
    assert serializer_of(Forms).__name__ == "Forms" and serializer_of(Inner).__name__ == "Inner"
    # The page has always called a button a choice.
    assert serializer_of(base.Button).__name__ == "Choice"


@pytest.mark.parametrize("text", ["", " ", "\n", "\t a ", " no-break ", "\u3000", "a  b", "👩‍🔬", "<b>&amp;"])
def test_a_piece_of_text_keeps_every_character(text: str) -> None:
    """Texts are cut at spaces: a trimmed piece would join two words."""
    pieces = base.Text(tokens=(base.Token(text=text, shade=None), base.Token(text="end", shade=1.0)))
    told = serializer_of(base.Text)(pieces.model_dump()).data
    assert "".join(row["text"] for row in told["tokens"]) == text + "end"
    assert [row["shade"] for row in told["tokens"]] == [None, 1.0]


def test_a_wire_value_takes_no_undeclared_field_and_does_not_change() -> None:
    with pytest.raises(ValidationError, match="condition"):
        Inner(text="a", shade=None, condition="grad_cam")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="frozen"):
        INNER.text = "b"


# Trials


class ProbeContent(base.Content):
    prompt: str
    pair: tuple[base.Media, ...]


class Probe(base.Kind):
    name: ClassVar[str] = "probe_pair"
    content_model: ClassVar[type[base.Content]] = ProbeContent


@pytest.fixture
def probe() -> Iterator[None]:
    with KINDS.added("probe_pair", f"{__name__}:Probe"):
        yield


MEDIA = {"url": "/m/a", "width_px": 1, "height_px": 2, "alt": "Picture", "is_said": False}


def trial(**more: Any) -> dict[str, Any]:
    content = {"prompt": "Which?", "pair": [MEDIA]}
    return {"id": "7", "position": 0, "kind": "probe_pair", "phase": "test", "content": content, **more}


def test_it_serves_a_new_kind_by_its_model_alone(probe: None) -> None:
    assert TrialsField().to_representation([trial()]) == [trial()]
    assert trial_serializer("probe_pair").__name__ == "ProbePairTrial"


@pytest.mark.parametrize("secret", ["condition", "truth", "predicted", "right", "expected", "check", "extra"])
def test_what_a_kind_does_not_declare_cannot_leave(probe: None, secret: str) -> None:
    content = {**trial()["content"], secret: "grad_cam", "pair": [{**MEDIA, secret: "grad_cam"}]}
    told = TrialsField().to_representation([trial(content=content, **{secret: "grad_cam"})])
    assert told == [trial()] and "grad_cam" not in str(told)


def test_a_content_without_a_declared_field_is_an_error_and_no_gap(probe: None) -> None:
    with pytest.raises(KeyError, match="prompt"):
        TrialsField().to_representation([trial(content={"pair": []})])


def test_a_trial_of_an_unknown_kind_is_not_served() -> None:
    with pytest.raises(UnknownName, match="probe_pair"):
        TrialsField().to_representation([trial()])


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_is_told_apart_by_its_kind_alone(kind: str) -> None:
    """The union on the wire needs a discriminator that only this kind's trial passes."""
    fields = trial_serializer(kind)().fields
    assert set(fields) == {"id", "position", "kind", "phase", "content"}
    shown = fields["kind"]
    assert isinstance(shown, serializers.ChoiceField) and list(shown.choices) == [kind]
    content = fields["content"]
    assert isinstance(content, serializers.Serializer)
    assert set(content.fields) == set(get_kind(kind).content_model.model_fields)


def test_no_two_kinds_share_a_name_on_the_wire() -> None:
    names = [trial_serializer(kind).__name__ for kind in KINDS]
    models = [get_kind(kind).content_model.__name__ for kind in KINDS]
    assert len({*names, *models}) == len(names) + len(models)
