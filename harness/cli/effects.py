"""`harness report effects`: whether queries had the wanted effect, as people observe it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.places import demand_distinct
from harness.base.plain_json import picked
from harness.base.user_text import checked_text, person_name
from harness.cli.options import choose_one, flag, json_option, option, sessions_argument, verb
from harness.cli.sessions import progress_of, session_folder, user_name
from harness.cli.streams import print_lines, standard_output
from harness.model.effect import EffectOutcome, EffectSource
from harness.model.errors import InputError, nearest
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.session.effect_items import EffectItem, SessionEffects


def describe(item: EffectItem, now_wall_s: float, *, of_several: bool = False) -> list[str]:
    """An effect to check: the query, the wanted effect, the answer, and when it can be checked.

    of_several: also name the session.
    """
    from harness.model.stimulus import SpokenText

    check, trial = item.evidence.check, item.trial
    query = trial.recipe.query.text if isinstance(trial.recipe.query, SpokenText) else trial.reference
    session_text = f" of {plain_text(item.session_id, 80)}" if of_several else ""
    lines = [
        f"{plain_text(trial.id, 80)}{session_text}  {due_text(item, now_wall_s)}",
        f"  asked   “{plain_text(query, 200)}” of {plain_text(trial.device, 40)}",
    ]
    if check.wanted:
        lines.append(f"  wanted  {plain_text(check.wanted, 200)}")
    if item.transcript:
        lines.append(f"  it said “{plain_text(item.transcript, 200)}” (our transcription)")
    if item.held_by:
        lines.append(f"  held by {plain_text(', '.join(item.held_by), 120)}")
    if item.evidence.said:
        lines.append(f"  known   {plain_text(item.evidence.said, 300)}")
    if check.question:
        lines.append(f"  →       {plain_text(check.question, 200)}")
    return lines


def due_text(item: EffectItem, now_wall_s: float) -> str:
    """When the effect can be checked: `due now`, `at 01:00, in 12 min`; or what is known."""
    from harness.session.effect_items import effect_word

    due_wall_s = item.evidence.due_wall_s
    if not item.is_open:
        source = "the device" if item.evidence.source is EffectSource.DEVICE else "a person"
        return f"{effect_word(item)}, by {source}"
    if due_wall_s is None or due_wall_s <= now_wall_s:
        return "due now"
    due = datetime.fromtimestamp(due_wall_s).astimezone()
    today = datetime.fromtimestamp(now_wall_s).astimezone().date()
    day_names = {today: "", today + timedelta(days=1): "tomorrow "}
    day = day_names.get(due.date(), f"{due:%d %b} ")
    return f"at {day}{due:%H:%M}, in {duration_text(due_wall_s - now_wall_s)}"


def duration_text(duration_s: float) -> str:
    """Such as `40 s`, `12 min` or `3 h 5 min`."""
    if duration_s < 90:
        return f"{max(1, round(duration_s))} s"
    minutes = round(duration_s / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


STILL_OPEN = 1  # Exit status.
WATCH_INTERVAL_S = 3.0
_ANSWERS = click.Tuple([str, click.Choice([word.value for word in EffectOutcome])])


@verb("effects")
def command(
    *,
    sessions: tuple[str, ...] = sessions_argument(),
    every: bool = flag("Include effects already recorded, so that you can overrule them.", "--all"),
    listing: bool = flag("List the effects and exit, even on a terminal.", "--list"),
    as_json: bool = json_option("Print the list as one JSON object."),
    answer: tuple[str, str] | None = option(
        "Record TRIAL's effect: right, partial, wrong or unknown (cannot tell).", type=_ANSWERS, metavar="TRIAL WORD"
    ),
    detail: str = option("With --answer: what the device did.", "--comment", former=("--detail",), default=""),
    by: str | None = option("Name of the observer.", "--observer", former=("--by",), show_default="your user name"),
    watch: bool = flag("Wait, and ring the bell when the next effect can be checked."),
) -> None:
    """List the effects of queries that nobody has observed yet, and record what an operator observed.

    Effects that the device itself reported are known already: see `harness report show`. You can answer while the
    session runs or at any time later. A later answer overrules an earlier one.

    SESSION: a session's folder, or its name in ./sessions.

    Exit status: 0 nothing is open, or after --answer · 1 something is open · 2 wrong input · 3 a log cannot be read.
    """
    choose_one(json=as_json, watch=watch, answer=answer is not None)
    if detail and answer is None:
        raise InputError("--comment needs --answer", remedy="Use --answer TRIAL WORD --comment TEXT")
    observer = person_name(by, "observer name") if by is not None else user_name()
    detail = checked_text(detail, "--comment")
    folders = [session_folder(session) for session in sessions]
    demand_distinct(folders)
    if answer is not None:
        trial_id, outcome = answer
        print_lines([_record_answer(_find_item(folders, trial_id), EffectOutcome(outcome), detail, observer)])
        return
    is_interactive = sys.stdin.isatty() and sys.stdout.isatty() and not listing and not as_json
    if watch:
        _watch(folders, observer, is_interactive=is_interactive)
    elif as_json:
        rows = [_item_json(item) for item in _read_items(folders) if every or item.is_open]
        print_lines([json.dumps({"effects": rows}, indent=2)])
    else:
        items, now_wall_s = _read_items(folders), time.time()
        listed_items = [item for item in items if every or item.is_open]
        lines = [_head_line(items, now_wall_s)]
        for item in listed_items:
            lines += ["", *describe(item, now_wall_s, of_several=len(folders) > 1)]
        print_lines(lines)
        if is_interactive:
            _ask_observer([item for item in listed_items if every or item.is_due(now_wall_s)], observer)
    if any(item.is_open for item in _read_items(folders)):  # read again, since answers may have been recorded
        sys.exit(STILL_OPEN)


def _read_items(folders: Sequence[Path]) -> list[EffectItem]:
    return [item for folder in folders for item in effects_of(folder).items]


def _head_line(items: Sequence[EffectItem], now_wall_s: float) -> str:
    open_items = [item for item in items if item.is_open]
    if not items:
        return "The session has no effect to check and no response on hold."
    if not open_items:
        return f"{counted(len(items), 'effect')}, all known."
    due_count = sum(item.is_due(now_wall_s) for item in open_items)
    return f"{counted(len(items), 'effect')}: {len(open_items)} open, {due_count} of them due."


def _find_item(folders: Sequence[Path], trial_id: str) -> EffectItem:
    """The effect of that trial. Raises InputError when there is none, or more than one session has it."""
    items = _read_items(folders)
    matches = [item for item in items if item.trial.id == trial_id]
    if not matches:
        raise InputError(
            f"{plain_text(trial_id, 80)!r} is not the id of an answered trial with an effect",
            remedy=nearest(trial_id, [item.trial.id for item in items], listed="Trials with an effect"),
        )
    if len(matches) > 1:
        raise InputError(f"{len(matches)} sessions have a trial {trial_id!r}", remedy="Pass only one session")
    return matches[0]


def _record_answer(item: EffectItem, outcome: EffectOutcome, detail: str, observer: str) -> str:
    """Writes an answer to the session's judgments, and returns a line about it and what it overrules."""
    from harness.model.record import EffectAnswered
    from harness.rating.judgment_log import JudgmentLog

    line = f"{plain_text(item.trial.id, 80)}: {outcome.value}, by {plain_text(observer, 40)}"
    if item.answers:
        previous_wall_s, previous = item.answers[-1]
        overruled = f"overrules {previous.by}, who answered {previous.word.value}"
        detail = f"{detail} ({overruled})" if detail else overruled
        previous_text = f"{plain_text(previous.by, 40)}, who answered {previous.word.value}"
        line = f"{line}. It overrules {previous_text} at {time.strftime('%H:%M', time.localtime(previous_wall_s))}"
    elif item.evidence.source is EffectSource.DEVICE and item.evidence.word is not outcome:
        line = f"{line}. It overrules the device: {plain_text(item.evidence.said, 200)}"
    with closing(JudgmentLog(item.folder)) as log:
        log.append(EffectAnswered(item.trial.id, item.take, item.attempt, outcome, observer, detail))
    return line


def _ask_observer(items: Sequence[EffectItem], observer: str) -> bool:
    """Asks about each effect, and records the answers. Returns False if the observer quits, or the input ends."""
    of_several = len({item.folder for item in items}) > 1
    for number, item in enumerate(items, start=1):
        print_lines(["", f"{number} of {len(items)}", *describe(item, time.time(), of_several=of_several)])
        if not _ask_about(item, observer):
            return False
    return True


def _ask_about(item: EffectItem, observer: str) -> bool:
    """Asks until the effect is answered or skipped. Returns False if the observer quits, or the input ends."""
    from harness.cli.plain import EFFECT_HINT, EFFECTS, parse_reply

    instructions = f"{EFFECT_HINT}; s skips, q ends"
    print_lines([instructions])
    while True:
        line = sys.stdin.readline()
        word = line.strip().lower()
        if not line or word == "q":
            return False
        if word == "s":
            return True
        answer = parse_reply(line, EFFECTS)
        if answer is None:
            print_lines([instructions])
            continue
        outcome, comment = answer
        try:
            comment = checked_text(comment, "the answer")
        except InputError as error:
            print_lines([str(error)])
            continue
        print_lines([_record_answer(item, outcome, comment, observer)])
        return True


def effects_of(folder: Path) -> SessionEffects:
    """The effects of a session, also while it runs and while raters work. Raises LogError."""
    from harness.session.effect_items import effects_in

    return effects_in(progress_of(folder), folder)


def _watch(folders: Sequence[Path], observer: str, *, is_interactive: bool) -> None:
    """Rings the bell and asks when an effect becomes due, until no more can become due, or the observer quits.

    Without a terminal, it only prints each effect that becomes due.
    """
    reported: set[tuple[Path, str, int, int]] = set()
    last_notice = ""
    while True:
        sessions = [effects_of(folder) for folder in folders]
        now_wall_s = time.time()
        open_items = [item for session in sessions for item in session.items if item.is_open]
        waiting_items = [item for item in open_items if _item_key(item) not in reported]
        due_items = [item for item in waiting_items if item.is_due(now_wall_s)]
        if due_items:
            reported |= {_item_key(item) for item in due_items}
            if is_interactive:
                standard_output().write("\a")
                if not _ask_observer(due_items, observer):
                    return
            else:
                for item in due_items:
                    print_lines(["", *describe(item, now_wall_s, of_several=len(folders) > 1)])
            continue
        if not waiting_items and all(session.ended for session in sessions):
            return
        notice = _next_text(waiting_items, now_wall_s)
        if notice != last_notice:
            last_notice = notice
            print_lines([notice])
        due_times = (item.evidence.due_wall_s or now_wall_s for item in waiting_items)
        next_due_s = min(due_times, default=now_wall_s + WATCH_INTERVAL_S)
        time.sleep(max(0.05, min(WATCH_INTERVAL_S, next_due_s - now_wall_s)))


def _next_text(waiting_items: Sequence[EffectItem], now_wall_s: float) -> str:
    """Which effect becomes due next, and when."""
    if not waiting_items:
        return "no effect is open; waiting for the session"
    first = min(waiting_items, key=lambda item: item.evidence.due_wall_s or 0.0)
    # Without the time left, so that the text changes only with the effect.
    time_of_day, _, _ = due_text(first, now_wall_s).partition(", in")
    return f"next: {plain_text(first.trial.id, 80)} {time_of_day}"


def _item_key(item: EffectItem) -> tuple[Path, str, int, int]:
    return item.folder, item.trial.id, item.take, item.attempt


def _item_json(item: EffectItem) -> dict[str, object]:
    check, evidence = item.evidence.check, item.evidence
    return {
        "session": item.session_id,
        "folder": str(item.folder),
        "trial": item.trial.id,
        **picked(item, "take", "attempt"),
        "device": item.trial.device,
        "query": item.trial.reference,
        "answered": item.transcript,
        **picked(check, "wanted", "question"),
        **picked(evidence, "word", "source"),
        "open": item.is_open,
        **picked(evidence, "said", "due_wall_s"),
        "held_by": list(item.held_by),
    }
