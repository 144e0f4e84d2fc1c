"""The server's own sentences on participants' pages, by language. The page's words live with the page."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "device": "## Your screen\n\nThis study shows pictures side by side. It needs a window of at least "
        "{min_width_px} x {min_height_px} pixels: a computer or a tablet, with the window made large.",
        "quiz": "## A few questions about the instructions\n\nThey make sure that we explained the task "
        "well.",
        "practice": "## Practice\n\nA very simple machine sorts these shapes. Look at what it answered for "
        "the "
        "examples, then say what it would answer for the others. These answers do not count.",
        "practice_example": "The machine answered:",
        "practice_question": "What would the machine answer?",
        "questions_before": "## About you",
        "questions_after": "## Some last questions",
        "comment": "## Anything you would like to tell us?\n\nWhat helped, what was unclear, how you "
        "decided. "
        "You may leave this empty.",
        "declined": "## You have not taken part\n\nNothing about you was stored beyond the fact that this "
        "link was used. "
        "Thank you for reading.",
        "screened": "## Thank you for your time\n\nThis study cannot go on for you. That is no judgement "
        "about you. "
        "If you were promised a payment for coming here, it does not depend on this.",
        "turned_away": "## All places are taken\n\nSomebody else took the last place while you were reading. "
        "Thank you for your time; you have not lost anything.",
        "withdrawn": "## You have left the study\n\nThank you for the time you gave.",
        "full": "All places of this study are taken.",
        "predict_instructed": "This is not a picture question. Please press the key {key}.",
    },
    "de": {
        "device": "## Ihr Bildschirm\n\nDiese Studie zeigt Bilder nebeneinander. Sie braucht ein Fenster "
        "von mindestens "
        "{min_width_px} x {min_height_px} Pixeln: einen Computer oder ein Tablet, mit großem Fenster.",
        "quiz": "## Einige Fragen zur Anleitung\n\nSie zeigen uns, ob wir die Aufgabe gut erklärt haben.",
        "practice": "## Übung\n\nEine sehr einfache Maschine sortiert diese Formen. Sehen Sie, was sie bei "
        "den Beispielen "
        "geantwortet hat, und sagen Sie dann, was sie bei den anderen antworten würde. Diese Antworten "
        "zählen nicht.",
        "practice_example": "Die Maschine hat geantwortet:",
        "practice_question": "Was würde die Maschine antworten?",
        "questions_before": "## Über Sie",
        "questions_after": "## Einige letzte Fragen",
        "comment": "## Möchten Sie uns etwas sagen?\n\nWas geholfen hat, was unklar war, wie Sie "
        "entschieden haben. "
        "Sie dürfen das Feld leer lassen.",
        "declined": "## Sie haben nicht teilgenommen\n\nVon Ihnen wurde nichts gespeichert, außer dass "
        "dieser Link benutzt "
        "wurde. Danke fürs Lesen.",
        "screened": "## Danke für Ihre Zeit\n\nDiese Studie kann für Sie nicht weitergehen. Das ist kein "
        "Urteil über Sie. "
        "Wenn Ihnen für Ihr Kommen eine Zahlung zugesagt wurde, hängt sie nicht davon ab.",
        "turned_away": "## Alle Plätze sind vergeben\n\nJemand anderes hat den letzten Platz bekommen, "
        "während Sie lasen. "
        "Danke für Ihre Zeit; Sie haben nichts verloren.",
        "withdrawn": "## Sie haben die Studie verlassen\n\nDanke für die Zeit, die Sie gegeben haben.",
        "full": "Alle Plätze dieser Studie sind vergeben.",
        "predict_instructed": "Dies ist keine Bildfrage. Bitte drücken Sie die Taste {key}.",
    },
}


def words_of(language: str) -> Mapping[str, str]:
    """The sentences of a language; English where a language is not shipped."""
    return WORDS.get(language, WORDS["en"])
