"""The sentences of the door, by language: who cannot come in and why, and what a preview says."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "taken_part": "You have already taken part in this study, and each person can take part once. "
        "Your earlier answers are stored.",
        "excluded": "You have taken part in an earlier study that this one must not be mixed with, so you "
        "cannot take part in this one.",
        "full": "All places of this study are taken. You have not lost anything.",
        "closed": "This study is closed. You have not lost anything.",
        "not_offered": "This study is not offered here any more.",
        "not_live": "This address was for trying the study out, and the study itself has begun. Please open "
        "it from the platform or the message that offers it.",
        "preview_refused": "This is a preview: nothing is recorded. Accept the study on the platform to take "
        "part.",
        "somebody_else": "This link belongs to somebody else. Please open the study from the platform with "
        "your own account.",
        "unsigned": "This link lacks the platform's signature. Please open the study from the platform "
        "again.",
        "forged": "The platform's signature of this link is wrong or older than two minutes. Please open the "
        "study from the platform again.",
        "replayed": "This link was already opened in another browser or tab. Please open the study from the "
        "platform again.",
        "resume_over": "This address is no longer valid. Please open the study from the platform again.",
        "unreachable": "The platform's signature cannot be checked at the moment.",
        "mark": "Preview",
        "mark_text": "You are looking at a preview. Nothing is recorded, and nothing begins before you "
        "accept the task on the platform.",
        "time": "Time",
        "about_minutes": "about {minutes} minutes",
        "pay": "Pay",
        "bonus": "{reward}, and a bonus of up to {bonus}",
        "age": "Age",
        "from_age": "{minimum_age} or older",
        "device": "You need",
        "screen": "a computer or tablet with a window of at least {min_width_px} x {min_height_px} pixels",
        "warning": "Please note",
        "what": "What you will do",
        "consent": "What you will be asked to agree to",
        "contact": "Questions",
        "approval": "Ethics approval",
        "lost_title": "This study cannot be found",
        "lost": "The address may be incomplete. Please open the study from the platform again, or write to "
        "the person who sent it to you.",
    },
    "de": {
        "taken_part": "Sie haben an dieser Studie bereits teilgenommen, und jede Person kann einmal "
        "teilnehmen. Ihre früheren Antworten sind gespeichert.",
        "excluded": "Sie haben an einer früheren Studie teilgenommen, die sich mit dieser nicht vermischen "
        "darf. Deshalb können Sie an dieser nicht teilnehmen.",
        "full": "Alle Plätze dieser Studie sind vergeben. Sie haben nichts verloren.",
        "closed": "Diese Studie ist geschlossen. Sie haben nichts verloren.",
        "not_offered": "Diese Studie wird hier nicht mehr angeboten.",
        "not_live": "Diese Adresse war zum Ausprobieren der Studie, und die Studie selbst hat begonnen. "
        "Bitte öffnen Sie sie über die Plattform oder die Nachricht, die sie anbietet.",
        "preview_refused": "Dies ist eine Vorschau: Nichts wird aufgezeichnet. Nehmen Sie die Studie auf der "
        "Plattform an, um teilzunehmen.",
        "somebody_else": "Dieser Link gehört jemand anderem. Bitte öffnen Sie die Studie über die Plattform "
        "mit Ihrem eigenen Konto.",
        "unsigned": "Diesem Link fehlt die Unterschrift der Plattform. Bitte öffnen Sie die Studie noch "
        "einmal über die Plattform.",
        "forged": "Die Unterschrift der Plattform in diesem Link ist falsch oder älter als zwei Minuten. "
        "Bitte öffnen Sie die Studie noch einmal über die Plattform.",
        "replayed": "Dieser Link wurde schon in einem anderen Browser oder Tab geöffnet. Bitte öffnen Sie "
        "die Studie noch einmal über die Plattform.",
        "resume_over": "Diese Adresse gilt nicht mehr. Bitte öffnen Sie die Studie noch einmal über die "
        "Plattform.",
        "unreachable": "Die Unterschrift der Plattform kann gerade nicht geprüft werden.",
        "mark": "Vorschau",
        "mark_text": "Sie sehen eine Vorschau. Nichts wird aufgezeichnet, und nichts beginnt, bevor Sie die "
        "Aufgabe auf der Plattform annehmen.",
        "time": "Dauer",
        "about_minutes": "etwa {minutes} Minuten",
        "pay": "Bezahlung",
        "bonus": "{reward}, dazu ein Bonus von bis zu {bonus}",
        "age": "Alter",
        "from_age": "ab {minimum_age} Jahren",
        "device": "Sie brauchen",
        "screen": "einen Computer oder ein Tablet mit einem Fenster von mindestens {min_width_px} x "
        "{min_height_px} Pixeln",
        "warning": "Bitte beachten Sie",
        "what": "Was Sie tun werden",
        "consent": "Wozu wir Ihre Zustimmung erbitten werden",
        "contact": "Fragen",
        "approval": "Ethikvotum",
        "lost_title": "Diese Studie wurde nicht gefunden",
        "lost": "Die Adresse ist vielleicht unvollständig. Bitte öffnen Sie die Studie noch einmal über die "
        "Plattform, oder schreiben Sie der Person, die sie Ihnen geschickt hat.",
    },
}


def words_of(language: str) -> Mapping[str, str]:
    """The sentences of a language; English where a language is not shipped."""
    return WORDS.get(language, WORDS["en"])
