"""The wire: every field that a participant's browser can receive or send, and no other.

Written for the browser, never from a model: there is no field for condition, method, source, truth or a
file name.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from experiments.api.trial_serializers import TrialsField, serializer_of
from experiments.gates import GATES
from experiments.kinds import base
from experiments.kinds.solve import MARKED_WITH

Media = serializer_of(base.Media)
Choice = serializer_of(base.Button)
Text = serializer_of(base.Text)

MAX_MS = 86_400_000
QUESTIONS_MAX, QUESTION_ID_MAX, CHANGES_MAX = 12, 24, 10_000
"""What is taken of a page with several questions: how many, how long an id, how many changes, or strokes."""
QUESTION_KINDS = ["choice", "number", "text", "tick", "example", "sort", "rate"]
"""Forms of a question on a page; no trial kinds, although one shares a name."""


def steps() -> list[str]:
    """Every step of the wire: the gates, then what follows them."""
    return [*GATES.names, "trials", "comment", "finish"]


class Example(serializers.Serializer[Any]):
    trial = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    image = Media(allow_null=True)
    explanation = Media(allow_null=True)
    text = Text(allow_null=True, required=False)


class Later(serializers.Serializer[Any]):
    """Trials of the block that are handed out after those of its `trials`."""

    kind = serializers.CharField()
    phase = serializers.ChoiceField(["train", "test"])
    count = serializers.IntegerField()


class Block(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    count = serializers.IntegerField()
    first = serializers.IntegerField()
    trials = TrialsField()
    later = Later(many=True)
    examples = Example(many=True)


@extend_schema_serializer(component_name="Question")
class QuestionSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(QUESTION_KINDS)
    prompt = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment]
    choices = Choice(many=True, allow_null=True)
    image = Media(allow_null=True)
    # Not null but left out where there is none: in some studies its very name would tell something.
    explanation = Media(required=False)
    text = Text(allow_null=True)
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    low = serializers.CharField(allow_null=True)
    high = serializers.CharField(allow_null=True)
    min = serializers.IntegerField(allow_null=True)
    max = serializers.IntegerField(allow_null=True)
    max_length = serializers.IntegerField(allow_null=True)


class Page(serializers.Serializer[Any]):
    kind = serializers.CharField()
    digest = serializers.CharField()
    html = serializers.CharField()
    questions = QuestionSerializer(many=True)
    kept = serializers.DictField(child=serializers.CharField(), required=False)


class Feedback(serializers.Serializer[Any]):
    """The answer that stands, the label as people read it, and whether they are the same."""

    trial = serializers.CharField()
    choice = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]
    correct = serializers.BooleanField()


class Exit(serializers.Serializer[Any]):
    method = serializers.ChoiceField(["GET", "POST", "none"])
    url = serializers.CharField(allow_blank=True)
    fields = serializers.DictField(child=serializers.CharField())  # type: ignore[assignment]


class Legend(serializers.Serializer[Any]):
    """The colours of marked areas from the one end of their scale to the other."""

    colours = serializers.ListField(child=serializers.CharField())
    ends = serializers.ChoiceField(["importance", "sides"])


class Presentation(serializers.Serializer[Any]):
    """How trials are put on the screen; the same for everybody in the study."""

    fullscreen = serializers.BooleanField()
    fixation_ms = serializers.IntegerField()
    exposure_ms = serializers.IntegerField(allow_null=True)
    mask_ms = serializers.IntegerField()
    phases = serializers.ChoiceField(["test", "all"])
    distance = serializers.ChoiceField(["off", "blind_spot"])


class StudyFacts(serializers.Serializer[Any]):
    title = serializers.CharField()
    language = serializers.CharField()
    contact = serializers.CharField()
    instructions = serializers.CharField()
    picture_px = serializers.IntegerField()
    answers_px = serializers.IntegerField()
    tile_px = serializers.IntegerField()
    min_view_ms = serializers.IntegerField()
    gap_ms = serializers.IntegerField()
    reservoir = serializers.ChoiceField(["always", "on_request", "off"])
    display = serializers.ChoiceField(["beside", "overlay"])
    words = serializers.DictField(child=serializers.CharField(), required=False)
    legend = Legend(allow_null=True)
    presentation = Presentation()
    sight = serializers.CharField(allow_blank=True)
    keys = serializers.ListField(child=serializers.CharField())
    origin = serializers.ChoiceField(["human", "simulated", "pilot", "preview", "model"])


@extend_schema_serializer(component_name="Progress")
class ProgressSerializer(serializers.Serializer[Any]):
    """`done` and `trials` are shares of the whole session (0-1); `minutes` is what the whole takes."""

    step = serializers.IntegerField()
    steps = serializers.IntegerField()
    done = serializers.FloatField()
    trials = serializers.FloatField()
    minutes = serializers.FloatField()


class SessionState(serializers.Serializer[Any]):
    step = serializers.ChoiceField(steps())
    page = Page(allow_null=True)
    attempts_left = serializers.IntegerField(allow_null=True)
    block = Block(allow_null=True)
    next = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)
    progress = ProgressSerializer(allow_null=True)
    feedback = Feedback(allow_null=True)
    study = StudyFacts()
    exit = Exit(allow_null=True)


class Joined(serializers.Serializer[Any]):
    """`query` is the new query of the address bar (null: no change); `sitting` names what the page keeps of
    this session."""

    token = serializers.CharField()
    session = SessionState()
    query = serializers.CharField(allow_null=True)
    sitting = serializers.CharField()


class Join(serializers.Serializer[Any]):
    study = serializers.CharField(max_length=64)
    platform = serializers.CharField(max_length=20)
    query = serializers.CharField(max_length=4000, allow_blank=True)
    attempt = serializers.CharField(max_length=64, required=False)


@extend_schema_serializer(component_name="GateTry")
class GateTrySerializer(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64)
    value = serializers.DictField()


class GateAnswer(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=64)
    question = serializers.CharField(max_length=40)
    choice = serializers.CharField(max_length=80)


@extend_schema_serializer(component_name="Told")
class ToldSerializer(serializers.Serializer[Any]):
    """The answer that stands (the first), the rule's own, and whether they are the same."""

    choice = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    correct = serializers.BooleanField()


class Kept(serializers.Serializer[Any]):
    """The answer that stands (the first); nothing is said of it."""

    choice = serializers.CharField()


class Invitation(serializers.Serializer[Any]):
    agree = serializers.BooleanField()


class CheckResult(serializers.Serializer[Any]):
    html = serializers.CharField()


class QuestionNoted(serializers.Serializer[Any]):
    id = serializers.CharField(max_length=QUESTION_ID_MAX)
    ms = serializers.IntegerField(min_value=0, max_value=MAX_MS)
    changes = serializers.IntegerField(min_value=0, max_value=CHANGES_MAX)


class ResponseContext(serializers.Serializer[Any]):
    onset_ms = serializers.FloatField(required=False)
    input = serializers.ChoiceField(["keyboard", "mouse", "touch"], required=False)
    key = serializers.CharField(max_length=20, required=False)
    keys = serializers.CharField(max_length=20, required=False)
    side = serializers.ChoiceField(["left", "right"], required=False)
    image_px = serializers.FloatField(required=False)
    pixel_ratio = serializers.FloatField(required=False)
    frames = serializers.IntegerField(required=False)
    dropped_frames = serializers.IntegerField(required=False)
    hidden_count = serializers.IntegerField(required=False)
    refresh_ms = serializers.FloatField(required=False)
    reservoir_ms = serializers.IntegerField(required=False)
    focus_losses = serializers.IntegerField(required=False)
    reloads = serializers.IntegerField(required=False)
    strokes = serializers.IntegerField(min_value=0, max_value=CHANGES_MAX, required=False)
    questions = serializers.ListField(child=QuestionNoted(), max_length=QUESTIONS_MAX, required=False)
    undos = serializers.IntegerField(required=False)
    first_stroke_ms = serializers.IntegerField(required=False)
    marked_with = serializers.ChoiceField(MARKED_WITH, required=False)


class ResponseItem(serializers.Serializer[Any]):
    trial = serializers.CharField(max_length=40)
    value = serializers.DictField()
    rt_ms = serializers.IntegerField(min_value=0, max_value=MAX_MS)
    shown_ms = serializers.IntegerField(min_value=0, max_value=MAX_MS)
    context = ResponseContext(required=False)  # type: ignore[assignment]


class Responses(serializers.Serializer[Any]):
    responses = ResponseItem(many=True)


@extend_schema_serializer(component_name="Recorded")
class RecordedSerializer(serializers.Serializer[Any]):
    next = serializers.IntegerField()
    step = serializers.ChoiceField(steps())
    feedback = serializers.DictField(child=Feedback())


class EventItem(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField(max_length=24)
    trial = serializers.CharField(max_length=40, allow_null=True, required=False)
    at_ms = serializers.IntegerField(min_value=0)
    data = serializers.DictField(required=False)  # type: ignore[assignment]


class Events(serializers.Serializer[Any]):
    events = EventItem(many=True)


class Finish(serializers.Serializer[Any]):
    comment = serializers.CharField(max_length=5000, allow_null=True, allow_blank=True, required=False)
    query = serializers.CharField(max_length=4000, allow_blank=True, required=False)


class Withdraw(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=500, allow_blank=True)
    erase = serializers.BooleanField()
    query = serializers.CharField(max_length=4000, allow_blank=True, required=False)


class Ended(serializers.Serializer[Any]):
    debrief = serializers.CharField(allow_null=True)
    exit = Exit()
    asks_again = serializers.BooleanField()
    invites = serializers.BooleanField(required=False)
    has_check = serializers.BooleanField(required=False)
    pay = serializers.ListField(child=serializers.CharField())


class Pay(serializers.Serializer[Any]):
    """Sentences about the pay, in the study's language; none if the study pays nothing."""

    pay = serializers.ListField(child=serializers.CharField())


class ErrorDetail(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    fields = serializers.DictField(child=serializers.CharField())  # type: ignore[assignment]


class Error(serializers.Serializer[Any]):
    error = ErrorDetail()
    next = serializers.IntegerField(allow_null=True)
    exit = Exit(allow_null=True)
