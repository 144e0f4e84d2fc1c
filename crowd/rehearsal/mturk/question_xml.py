"""The documents of the platform: the question that comes in, the answers that go out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from crowd.rehearsal.mturk.records import TurkRefusal
from crowd.rehearsal.mturk.request_rules import refuse

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
EXTERNAL = f"{SCHEMAS}/2006-07-14/ExternalQuestion.xsd"
ANSWERS = f"{SCHEMAS}/2005-10-01/QuestionFormAnswers.xsd"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class ExternalQuestion:
    """A page of the requester's own, shown in a frame. Height 0 fits by itself."""

    url: str
    height: int


def read_question(text: str) -> ExternalQuestion:
    """Raises TurkRefusal if the document violates its schema, or is of a kind without an outside page."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise TurkRefusal("XMLParseError", "Question must not declare a document type or entities.")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise TurkRefusal(
            "XMLParseError", f"There was an error parsing the XML question: {error}."
        ) from error
    if root.tag != f"{{{EXTERNAL}}}ExternalQuestion":
        raise TurkRefusal("XMLParseError", f"The simulator shows ExternalQuestion of {EXTERNAL} only.")
    if [child.tag for child in root] != [f"{{{EXTERNAL}}}{name}" for name in ("ExternalURL", "FrameHeight")]:
        raise TurkRefusal("XMLParseError", "ExternalQuestion must hold ExternalURL, then FrameHeight.")
    url, height = ((child.text or "").strip() for child in root)
    if not re.fullmatch(r"\d{1,5}", height):
        raise TurkRefusal("XMLParseError", "FrameHeight must be a whole number of pixels.")
    _check_url(url)
    return ExternalQuestion(url, int(height))


def _check_url(url: str) -> None:
    """It must be https on the real platform; a page on this machine rarely is."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("https", "http") and parts.hostname and not re.search(r"\s", url)
    except ValueError:
        fits = False
    if not fits:
        raise refuse("ExternalURL must be an address of https or http.")


def answers_document(fields: Iterable[tuple[str, str]]) -> str:
    """QuestionFormAnswers for what a form held. Characters that XML cannot hold become U+FFFD."""
    root = ET.Element("QuestionFormAnswers", xmlns=ANSWERS)
    for name, value in fields:
        answer = ET.SubElement(root, "Answer")
        ET.SubElement(answer, "QuestionIdentifier").text = _NOT_XML.sub("\ufffd", name)
        ET.SubElement(answer, "FreeText").text = _NOT_XML.sub("\ufffd", value)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")
