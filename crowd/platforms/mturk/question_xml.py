"""The two XML documents of Mechanical Turk: the question that we send, the answer that a person's browser
sent. The answer comes from an untrusted source."""

from __future__ import annotations

import re
from urllib.parse import urlsplit
from xml.etree import ElementTree

from crowd.platforms.base import UnsupportedRequest

NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
QUESTION_BYTES_MAX = 65_535
ANSWER_LENGTH_MAX = 131_072
COMPLETION = "completion"
"""The field of the last form that carries the completion code."""
CODE_LENGTH_MAX = 64
DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY|ELEMENT|ATTLIST|NOTATION)", re.IGNORECASE)


class BadAnswer(ValueError):
    """An answer document that cannot, or must not, be parsed."""


def external_question(url: str, frame_height: int, *, rehearsed: bool = False) -> str:
    """The ExternalQuestion of an address. Raises Unsupported for one that a worker's page cannot frame.

    A simulator (`rehearsed`) takes plain http too; Amazon takes https alone.
    """
    parts = urlsplit(url)
    schemes = {"https", "http"} if rehearsed else {"https"}
    if parts.scheme not in schemes or not parts.hostname:
        raise UnsupportedRequest(
            f"Mechanical Turk shows the study in a frame of its own page, which needs an https address; "
            f"this one is {parts.scheme or 'no'}://{parts.hostname or ''}. Set BASE_URL to an https address."
        )
    root = ElementTree.Element("ExternalQuestion", {"xmlns": NAMESPACE})
    ElementTree.SubElement(root, "ExternalURL").text = url
    ElementTree.SubElement(root, "FrameHeight").text = str(frame_height)
    text = ElementTree.tostring(root, encoding="unicode")
    if len(text.encode()) > QUESTION_BYTES_MAX:
        raise UnsupportedRequest(
            f"The question has {len(text.encode())} bytes; Mechanical Turk takes {QUESTION_BYTES_MAX}. "
            "Shorten the address of the study."
        )
    return text


def fields_of_answer(answer: str) -> dict[str, str]:
    """The fields of an Assignment's Answer: the first text of each name. Raises BadAnswer.

    Declarations are refused before anything is parsed, so no entity is ever expanded.
    """
    if len(answer) > ANSWER_LENGTH_MAX:
        raise BadAnswer(f"An answer has {len(answer)} characters; at most {ANSWER_LENGTH_MAX} are read.")
    if DECLARATION.search(answer):
        raise BadAnswer("An answer brings declarations of its own, which no form of ours sends.")
    try:
        root = ElementTree.fromstring(answer)
    except (ElementTree.ParseError, ValueError) as error:
        raise BadAnswer("An answer is no readable XML.") from error
    fields: dict[str, str] = {}
    for element in root.iter():
        if _local(element) != "Answer":
            continue
        texts = {_local(child): (child.text or "") for child in element}
        if "QuestionIdentifier" in texts:
            fields.setdefault(texts["QuestionIdentifier"], texts.get("FreeText", ""))
    return fields


def completion_of(answer: str) -> str:
    """The completion code of an assignment; empty if there is none that could be ours."""
    try:
        code = fields_of_answer(answer).get(COMPLETION, "").strip()
    except BadAnswer:
        return ""
    return code if len(code) <= CODE_LENGTH_MAX and code.isprintable() else ""


def _local(element: ElementTree.Element) -> str:
    """The name of an element without its namespace: Amazon has changed the version in it before."""
    return str(element.tag).rpartition("}")[2]
