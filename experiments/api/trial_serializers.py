"""The trial kinds on the wire: a serializer for each, made from its content model, and their union.

What a kind does not declare cannot leave the server: its content is a value with declared fields, and passes
through a serializer of the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any, get_args, get_origin

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from pydantic import BaseModel
from rest_framework import serializers

from experiments.kinds import KINDS, base, get_kind

Fields = dict[str, serializers.Field[Any, Any, Any, Any]]


_PLAIN: Mapping[type, type[serializers.Field[Any, Any, Any, Any]]] = {
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
}


_NAMES: Mapping[type[BaseModel], str] = {base.Button: "Choice"}
"""Names of these members on the wire; they never change."""


@lru_cache(maxsize=64)
def serializer_of(model: type[BaseModel]) -> type[serializers.Serializer[Any]]:
    """The serializer with the fields of a model of the wire."""
    fields: Fields = {name: _field(info.annotation) for name, info in model.model_fields.items()}
    return type(_NAMES.get(model, model.__name__), (serializers.Serializer,), fields)


def _field(annotation: Any, *, is_nullable: bool = False) -> serializers.Field[Any, Any, Any, Any]:
    """The field of an annotation: a plain type, a model, a tuple of either, or one of these or None."""
    parts = get_args(annotation)
    if NoneType in parts:
        (inner,) = (part for part in parts if part is not NoneType)
        return _field(inner, is_nullable=True)
    if get_origin(annotation) is tuple:
        inner = parts[0]
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return serializer_of(inner)(many=True, allow_null=is_nullable)
        return serializers.ListField(child=_field(inner), allow_null=is_nullable)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return serializer_of(annotation)(allow_null=is_nullable)
    if annotation is str:
        return serializers.CharField(allow_null=is_nullable, allow_blank=True, trim_whitespace=False)
    return _PLAIN[annotation](allow_null=is_nullable)


def trial_serializer(kind: str) -> type[serializers.Serializer[Any]]:
    """The serializer of a trial of this kind, content included."""
    return _trial_serializer(kind, get_kind(kind).content_model)


@lru_cache(maxsize=64)
def _trial_serializer(kind: str, content: type[BaseModel]) -> type[serializers.Serializer[Any]]:
    fields: Fields = {
        "id": serializers.CharField(),
        "position": serializers.IntegerField(),
        "kind": serializers.ChoiceField([kind]),
        "phase": serializers.ChoiceField(["train", "test"]),
        "content": serializer_of(content)(),
    }
    name = "".join(part.capitalize() for part in kind.split("_"))
    return type(f"{name}Trial", (serializers.Serializer,), fields)


def _every_kind() -> dict[str, serializers.Serializer[Any] | type[serializers.Serializer[Any]]]:
    return {kind: trial_serializer(kind) for kind in KINDS.names}


@extend_schema_field(
    PolymorphicProxySerializer(
        component_name="Trial", serializers=_every_kind, resource_type_field_name="kind", many=True
    )
)
class TrialsField(serializers.Field[Any, Any, Any, Any]):
    """Trials of any kind, each through the serializer of its kind; written to the wire, never read."""

    def to_representation(self, value: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [dict(trial_serializer(trial["kind"])(trial).data) for trial in value]
