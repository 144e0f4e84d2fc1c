"""The JSON Schema of study.toml, made from the tables that read it, for editors.

Draft 7, which the editors' plug-ins for TOML know. It refuses unknown keys, wrong types, words and limits;
what needs two tables, or a file, is told by `study_check` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter

from experiments.definition.study import StudyDefinition
from experiments.definition.text_tables import InterfaceFiles, TextFiles
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.screening import RULES, RuleKind
from experiments.study_files.extension import OWN
from stimuli.datasets import DATASET_PARAMS, DATASETS
from stimuli.explainers import EXPLAINERS
from stimuli.metrics import METRICS, SET_METRICS
from stimuli.predictors import PREDICTOR_PARAMS, PREDICTORS
from stimuli.registry import Table

Json = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
OF_PACKAGES = {"type": "string", "pattern": "^[^:]+:.+$"}
"""A name that says which package offers it: what it takes, only that package knows."""


def study_schema() -> Json:
    """The schema with the names that are installed here."""
    defs: Json = {}
    whole = _schema_of(StudyDefinition, "study", defs)
    tables = whole["properties"]
    del tables["quiz"]  # Its questions stand in a file of their own, which [texts] names.
    tables["texts"], tables["interface"] = (
        _schema_of(table, name, defs) for table, name in ((TextFiles, "texts"), (InterfaceFiles, "interface"))
    )
    for paradigm in map(get_paradigm, PARADIGMS):
        for name in paradigm.texts:
            tables["texts"]["properties"][name] = {"type": "string"}
    tables["paradigm"] = {"enum": list(PARADIGMS)}
    tables["screening"] = _closed({name: _rule(kind, name) for name, kind in RULES.items()})
    stimuli = defs["study.Stimuli"]["properties"]
    datasets = _component(DATASETS, DATASET_PARAMS, "dataset", defs)
    predictors = _component(PREDICTORS, PREDICTOR_PARAMS, "predictor", defs)
    for name, component in (("dataset", datasets), ("predictor", predictors)):
        stimuli[name] = component
        stimuli[f"{name}s"] = {"type": "object", "additionalProperties": component}
    defs["study.ConditionTable"]["properties"]["explainer"] = _component(
        EXPLAINERS, EXPLAINERS, "explainer", defs
    )
    tables["metrics"] = {
        "type": "array",
        "items": _component(METRICS | SET_METRICS, METRICS | SET_METRICS, "metric", defs),
    }
    required = [name for name in whole.pop("required") if name != "quiz"]
    return {
        "$schema": DRAFT,
        "title": "study.toml",
        "description": "A study of Legible. Every key is described in docs/study-toml.md.",
        **{key: value for key, value in whole.items() if key not in ("title", "description", "$defs")},
        "if": {"required": ["extends"]},
        "then": {"required": ["slug", "title", "conditions"], "propertyNames": {"enum": sorted(OWN)}},
        "else": {"required": required},
        "allOf": [_of_paradigm(name, defs) for name in PARADIGMS],
        "$defs": defs,
    }


def schema_text() -> str:
    """The schema as a file: each of its tables in one line."""
    whole = study_schema()
    defs = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(table)}" for name, table in whole.pop("$defs").items()
    )
    return f'{json.dumps(whole)[:-1]}, "$defs": {{\n{defs}\n}}}}\n'


def _schema_of(kind: type, prefix: str, defs: Json) -> Json:
    """The schema of a table; those of the tables within are added to `defs`, under the prefix."""
    made = TypeAdapter(kind).json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
    defs |= {f"{prefix}.{name}": _plain(inner) for name, inner in made.pop("$defs", {}).items()}
    return dict(_plain(made))


def _plain(value: Any) -> Any:
    """The same in draft 7, without what pydantic adds for people who do not read the documentation."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    made = {
        key: {name: _plain(part) for name, part in inner.items()} if key == "properties" else _plain(inner)
        for key, inner in value.items()
        if key == "properties" or (key not in ("title", "description") and inner is not None)
    }
    if "anyOf" in made:  # TOML has no null: what may be absent is left out.
        made["anyOf"] = [part for part in made["anyOf"] if part != {"type": "null"}]
        if len(made["anyOf"]) == 1:
            made |= made.pop("anyOf")[0]
    if "prefixItems" in made:
        made["items"] = made.pop("prefixItems")
    return made


def _closed(properties: Mapping[str, Json], required: Iterable[str] = ()) -> Json:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _component(names: Table[Any], params: Table[Any], noun: str, defs: Json) -> Json:
    """A table with a name and the parameters of what it names."""
    known = [name for name in params if params.origin(name) is None]
    for name in known:
        made = _schema_of(params.load(name), f"{noun}.{name}", defs)
        defs[f"{noun}.{name}"] = _closed(
            {"name": {"const": name}, **made.get("properties", {})}, ["name", *made.get("required", ())]
        )
    offered = [name for name in names if names.origin(name) is not None]
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"anyOf": [{"enum": [*known, *offered]}, OF_PACKAGES]}},
        "allOf": [
            {
                "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
                "then": {"$ref": f"#/$defs/{noun}.{name}"},
            }
            for name in known
        ],
    }


def _of_paradigm(name: str, defs: Json) -> Json:
    """What [design] and the roles are, of a study of this paradigm."""
    paradigm = get_paradigm(name)
    defs[f"design.{name}"] = _schema_of(paradigm.Design, f"design.{name}", defs)
    role = {"properties": {"role": {"enum": list(paradigm.roles)}}}
    return {
        "if": {"properties": {"paradigm": {"const": name}}, "required": ["paradigm"]},
        "then": {
            "properties": {
                "design": {"$ref": f"#/$defs/design.{name}"},
                "conditions": {"type": "array", "items": role},
            }
        },
    }


def _rule(kind: RuleKind, name: str) -> Json:
    """A screening rule: its limit, or a table with limit and timing."""
    if name == "incomplete":
        limit: Json = {"const": True}
    else:
        limit = {"type": "integer" if kind.whole else "number", "minimum": kind.low, "maximum": kind.high}
    if kind.pair:
        limit = {"type": "array", "items": limit, "minItems": 2, "maxItems": 2}
    return {"anyOf": [limit, _closed({"limit": limit, "timing": {"const": kind.timing}})]}
