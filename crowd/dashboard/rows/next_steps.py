"""What to do next with a study: one button, or one line for the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.core.management import get_commands
from django.db.models import Count
from django.urls import reverse

from crowd.dashboard.rows.places_and_exclusions import Drawing, Places
from crowd.dashboard.rows.postings import title_of
from crowd.models import Message, Payout, Posting
from crowd.platforms import has_service, traits_of
from experiments.models import Study


@dataclass(frozen=True, slots=True)
class NextStep:
    """`href` is a link, `post` a button that sends a form, `command` a line for the terminal. A link or a
    button with a `role` is for logins that have it. `also` is a plain link, words and address, which opens
    beside this page."""

    label: str
    note: str = ""
    href: str = ""
    post: str = ""
    command: str = ""
    also: tuple[str, str] = ("", "")
    role: str = ""


def next_step(study: Study, places: list[Places], drawing: Drawing) -> NextStep:
    if study.state == Study.State.DRAFT:
        return _draft_step(study, drawing)
    report = reverse("dashboard:report", args=[study.slug])
    if study.state == Study.State.CLOSED:
        return NextStep("Read the report", "The study is closed.", href=report)
    if sum(p.free + p.in_progress for p in places) == 0:
        close = reverse("dashboard:close", args=[study.slug])
        return NextStep(
            "Close the study", "Every place is kept: the stopping rule is met.", href=close, role="run"
        )
    return _open_step(study, places)


def _draft_step(study: Study, drawing: Drawing) -> NextStep:
    if drawing.is_complete and drawing.total:
        return NextStep(
            "Open the study",
            "All stimuli are rendered. Opening plans every place and freezes the definition.",
            command=f"python manage.py study_open {study.slug}",
        )
    label = f"Build {drawing.missing:,} stimuli"
    note = f"{drawing.failed:,} could not be made; they are tried again." if drawing.failed else ""
    if settings.CELERY_BROKER_URL:
        return NextStep(label, note, post=reverse("dashboard:build", args=[study.slug]), role="run")
    return NextStep(label, note, command=f"python manage.py build_stimuli {study.slug}")


def _open_step(study: Study, places: list[Places]) -> NextStep:
    offered = set(
        Posting.objects.filter(study=study, state=Posting.State.OPEN).values_list("platform", "mode")
    )
    platforms = {platform for platform, _ in offered}
    free = sum(p.free for p in places)
    if not offered:
        note = "No platform offers this study, so nobody can arrive."
        # Named only if this installation has it.
        command = (
            f"python manage.py publish {study.slug} --platform local" if "publish" in get_commands() else ""
        )
        if not command:
            note += f" The demo offers it here: python manage.py demo --study {study.slug}"
        return NextStep("Offer the study", note, command=command)
    if any(has_service(platform) for platform in platforms):
        return _asked_for(study) or _collecting(study, platforms, free)
    if all(traits_of(platform).is_ours for platform in platforms):
        return NextStep(
            "Preview the study",
            f"{free:,} places are free. A preview takes none.",
            href=reverse("dashboard:preview", args=[study.slug]),
            also=("Take part, which takes one", reverse("join", args=[study.slug])),
        )
    return _collecting(study, platforms, free)


def _asked_for(study: Study) -> NextStep | None:
    """What people on a platform wait for, the most urgent first; None if nothing is waited for."""
    money = reverse("dashboard:money", args=[study.slug])
    payouts = Payout.objects.filter(posting__study=study).values_list("state").annotate(n=Count("id"))
    states = dict(payouts.filter(state__in=["unknown", "due"]).order_by())
    if states.get("unknown"):
        n = states["unknown"]
        note = f"{n:,} payout{'s' if n > 1 else ''} may or may not have been sent."
        return NextStep("Settle what is unknown", note, href=money)
    count = Message.objects.filter(posting__study=study, state=Message.State.RECEIVED).count()
    if count:
        word = "messages" if count > 1 else "message"
        return NextStep(f"Answer {count:,} {word}", href=reverse("dashboard:letters", args=[study.slug]))
    if states.get("due"):
        n = states["due"]
        return NextStep(f"Pay {n:,} payout{'s' if n > 1 else ''}", "They are due and wait.", href=money)
    return None


def _collecting(study: Study, platforms: set[str], free: int) -> NextStep:
    where = ", ".join(title_of(name) for name in sorted(platforms))
    return NextStep("Collecting", f"{free:,} places are free; offered on {where}. Nothing needs to be done.")
