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
from harness.base.plain_json import picked
from harness.base.user_text import checked_text, person_name
from harness.cli.options import flag, json_option, option, sessions_argument, verb
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
    session_part = f" of {plain_text(item.session_id, 80)}" if of_several else ""
    lines = [
        f"{plain_text(trial.id, 80)}{session_part}  {when(item, now_wall_s)}",
        f"  asked   “{plain_text(query, 200)}” of {plain_text(trial.device, 40)}",
    ]
    if check.wanted:
        lines.append(f"  wanted  {plain_text(check.wanted, 200)}")
    if item.said:
        lines.append(f"  it said “{plain_text(item.said, 200)}” (our transcription)")
    if item.held_by:
        lines.append(f"  held by {plain_text(', '.join(item.held_by), 120)}")
    if item.evidence.said:
        lines.append(f"  known   {plain_text(item.evidence.said, 300)}")
    if check.question:
        lines.append(f"  →       {plain_text(check.question, 200)}")
    return lines


def when(item: EffectItem, now_wall_s: float) -> str:
    """When the effect can be checked: `due now`, `at 01:00, in 12 min`; or what is known."""
    from harness.session.effect_items import effect_word

    due_s = item.evidence.due_wall_s
    if not item.is_open:
        return f"{effect_word(item)}, by {'the device' if item.evidence.source is EffectSource.DEVICE else 'a person'}"
    if due_s is None or due_s <= now_wall_s:
        return "due now"
    due = datetime.fromtimestamp(due_s).astimezone()
    today = datetime.fromtimestamp(now_wall_s).astimezone().date()
    days = {today: "", today + timedelta(days=1): "tomorrow "}
    day = days.get(due.date(), f"{due:%d %b} ")
    return f"at {day}{due:%H:%M}, in {length(due_s - now_wall_s)}"


def length(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 5 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def clock(wall_s: float) -> str:
    """`14:05`."""
    return time.strftime("%H:%M", time.localtime(wall_s))


STILL_OPEN = 1  # Exit status.
LOOK_S = 3.0
"""Seconds between two searches for new effects with --watch."""
_ANSWERS = click.Tuple([str, click.Choice([word.value for word in EffectOutcome])])


@verb("effects")
def command(
    *,
    sessions: tuple[str, ...] = sessions_argument(),
    every: bool = flag("Include effects already recorded, so that you can overrule them.", "--all"),
    listing: bool = flag("Only list, even on a terminal.", "--list"),
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

    SESSION: a session's folder, or its name below ./sessions.

    Exit status: 0 nothing is open · 1 something is open · 2 wrong usage or input · 3 a log cannot be read. It is 0
    after --answer.
    """

    if [as_json, watch, answer is not None].count(True) > 1:
        raise InputError("--json, --watch and --answer cannot be combined", remedy="Choose one")
    if detail and answer is None:
        raise InputError("--comment needs --answer", remedy="Write --answer TRIAL WORD --comment TEXT")
    name = person_name(by, "observer name") if by is not None else user_name()
    detail = checked_text(detail, "--comment")
    folders = [session_folder(session) for session in sessions]
    if answer is not None:
        print_lines([_record_answer(_find_item(folders, answer[0]), EffectOutcome(answer[1]), detail, name)])
        return
    is_interactive = sys.stdin.isatty() and sys.stdout.isatty() and not listing and not as_json
    if watch:
        _watch(folders, name, is_interactive)
    elif as_json:
        effects = [_object(effect) for effect in _items(folders) if every or effect.is_open]
        print_lines([json.dumps({"effects": effects}, indent=2)])
    else:
        items, now_s, several = _items(folders), time.time(), len(folders) > 1
        items_shown = [effect for effect in items if every or effect.is_open]
        shown = [line for effect in items_shown for line in ("", *describe(effect, now_s, of_several=several))]
        print_lines([_head(items, now_s), *shown])
        if is_interactive:
            _ask_observer([effect for effect in items_shown if every or effect.is_due(now_s)], name)
    if any(effect.is_open for effect in _items(folders)):
        sys.exit(STILL_OPEN)


def _items(folders: Sequence[Path]) -> list[EffectItem]:
    return [item for folder in folders for item in effects_of(folder).items]


def _head(items: Sequence[EffectItem], now_s: float) -> str:
    open_effects = [effect for effect in items if effect.is_open]
    if not items:
        return "The session has no effect to check and no response on hold."
    if not open_effects:
        return f"{counted(len(items), 'effect')}, all known."
    due = sum(effect.is_due(now_s) for effect in open_effects)
    return f"{counted(len(items), 'effect')}: {len(open_effects)} open, {due} of them due."


def _find_item(folders: Sequence[Path], trial_id: str) -> EffectItem:
    """The effect of that trial; InputError when there is none, or more than one session has it."""
    items = _items(folders)
    matches = [effect for effect in items if effect.trial.id == trial_id]
    if not matches:
        raise InputError(
            f"no answered trial with an effect is called {plain_text(trial_id, 80)!r}",
            remedy=nearest(trial_id, [effect.trial.id for effect in items], listed="Trials with an effect"),
        )
    if len(matches) > 1:
        raise InputError(f"{len(matches)} sessions have a trial {trial_id!r}", remedy="Name one session only")
    return matches[0]


def _record_answer(item: EffectItem, word: EffectOutcome, detail: str, observer: str) -> str:
    from harness.model.record import EffectAnswered
    from harness.rating.judgment_log import JudgmentLog

    before = item.answers[-1] if item.answers else None
    if before is not None:
        overruled = f"overrules {before[1].by}, who answered {before[1].word.value}"
        detail = f"{detail} ({overruled})" if detail else overruled
    row = EffectAnswered(item.trial.id, item.take, item.attempt, word, observer, detail)
    with closing(JudgmentLog(item.folder)) as log:
        log.append(row)
    line = f"{plain_text(item.trial.id, 80)}: {word.value}, by {plain_text(observer, 40)}"
    if before is not None:
        earlier_observer, word_then = plain_text(before[1].by, 40), before[1].word.value
        return f"{line}. It overrules {earlier_observer}, who answered {word_then} at {clock(before[0])}"
    if item.evidence.source is EffectSource.DEVICE and item.evidence.word is not word:
        return f"{line}. It overrules the device: {plain_text(item.evidence.said, 200)}"
    return line


def _ask_observer(items: Sequence[EffectItem], observer: str) -> bool:
    from harness.cli.plain import HOW_EFFECT, parse_effect

    keys = f"{HOW_EFFECT}; s skips, q ends"
    several = len({effect.folder for effect in items}) > 1
    for number, item in enumerate(items, start=1):
        print_lines(["", f"{number} of {len(items)}", *describe(item, time.time(), of_several=several), keys])
        while True:
            line = sys.stdin.readline()
            word = line.strip().lower()
            if not line or word == "q":
                return False
            if word == "s":
                break
            answer = parse_effect(line)
            if answer is None:
                print_lines([keys])
                continue
            try:
                verdict, comment = answer[0], checked_text(answer[1], "the answer")
            except InputError as error:
                print_lines([str(error)])
                continue
            print_lines([_record_answer(item, verdict, comment, observer)])
            break
    return True


def effects_of(folder: Path) -> SessionEffects:
    """The effects of a session, also while it runs and while raters work; LogError."""
    from harness.session.effect_items import effects_in

    return effects_in(progress_of(folder), folder)


def _watch(folders: Sequence[Path], observer: str, is_interactive: bool) -> None:
    """Waits until nothing more can become due, or the user quits."""
    met: set[tuple[Path, str, int, int]] = set()
    last_notice = ""
    while True:
        sessions = [effects_of(folder) for folder in folders]
        now_s = time.time()
        fresh = [effect for effect in _open_items(sessions) if _key(effect) not in met]
        ready = [effect for effect in fresh if effect.is_due(now_s)]
        if ready:
            met |= {_key(effect) for effect in ready}
            stream = standard_output()
            stream.write("\a" if is_interactive else "")
            if is_interactive and not _ask_observer(ready, observer):
                return
            if not is_interactive:
                print_lines([line for effect in ready for line in ("", *describe(effect, now_s))])
            continue
        if not fresh and all(session.ended for session in sessions):
            return
        waits = _next_text(fresh, now_s)
        if waits != last_notice:
            last_notice = waits
            print_lines([waits])
        due_s = min((effect.evidence.due_wall_s or now_s for effect in fresh), default=now_s + LOOK_S)
        time.sleep(max(0.05, min(LOOK_S, due_s - now_s)))


def _next_text(fresh: Sequence[EffectItem], now_s: float) -> str:

    if not fresh:
        return "no effect is open; waiting for the session"
    first = min(fresh, key=lambda effect: effect.evidence.due_wall_s or 0.0)
    due = when(first, now_s).partition(", in")[0]
    return f"next: {plain_text(first.trial.id, 80)} {due}"


def _open_items(sessions: Sequence[SessionEffects]) -> list[EffectItem]:
    return [item for session in sessions for item in session.items if item.is_open]


def _key(item: EffectItem) -> tuple[Path, str, int, int]:
    return item.folder, item.trial.id, item.take, item.attempt


def _object(item: EffectItem) -> dict[str, object]:
    check, evidence = item.evidence.check, item.evidence
    return {
        "session": item.session_id,
        "folder": str(item.folder),
        "trial": item.trial.id,
        **picked(item, "take", "attempt"),
        "device": item.trial.device,
        "query": item.trial.reference,
        "answered": item.said,
        **picked(check, "wanted", "question"),
        **picked(evidence, "word", "source"),
        "open": item.is_open,
        **picked(evidence, "said", "due_wall_s"),
        "held_by": list(item.held_by),
    }
