"""`harness effects`: what became of queries, asked of people when one can look."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.operator_prompt import HOW_EFFECT, parse_effect
from harness.cli.options import Command, json_option
from harness.cli.sessions import session_folder, user_name
from harness.cli.streams import standard_output
from harness.model.effect import EffectSource, EffectWord
from harness.model.errors import InputError
from harness.model.record import EffectAnswered

if TYPE_CHECKING:
    from harness.rating.effects import EffectItem, SessionEffects

STILL_OPEN = 1
LOOK_S = 3.0
"""How often a watch looks for what is new."""
_KEYS = f"{HOW_EFFECT}; s skips, q ends"
_ANSWERS = click.Tuple([str, click.Choice([word.value for word in EffectWord])])


@click.command("effects", cls=Command)
@click.argument("sessions", metavar="SESSION…", nargs=-1, required=True)
@click.option("--all", "every", is_flag=True, help="Also those that are known, so that they can be overruled.")
@click.option("--list", "listing", is_flag=True, help="Only list, on a terminal too.")
@json_option("as_json", "The list as one JSON object.")
@click.option("--answer", type=_ANSWERS, metavar="TRIAL WORD", help="right, partial, wrong or unknown (cannot tell).")
@click.option("--detail", default="", help="With --answer: what the device did.")
@click.option("--by", default=None, help="Who looked. Default: your user name.")
@click.option("--watch", is_flag=True, help="Wait, and ring when one can look at the next.")
def command(
    sessions: tuple[str, ...],
    every: bool,
    listing: bool,
    as_json: bool,
    answer: tuple[str, str] | None,
    detail: str,
    by: str | None,
    watch: bool,
) -> None:
    """Say what became of queries: lists effects that nobody knows yet, and takes the word of who has looked.

    Those whose device told enough are known, see `harness show`. Works while the session runs, and long after. A later
    answer overrules an earlier one.

    SESSION: a session's folder, or its name below ./sessions.

    Exit status: 0 nothing is open (any more) · 1 something still is · 2 wrong usage or input · 3 a log cannot be read.
    """
    from harness.cli.effect_lines import described
    from harness.cli.streams import print_lines

    if as_json + watch + (answer is not None) > 1:
        raise InputError("--json, --watch and --answer exclude each other", remedy="Choose one")
    if detail and answer is None:
        raise InputError("--detail is of --answer", remedy="Write --answer TRIAL WORD --detail TEXT")
    name = by or user_name()
    folders = [session_folder(one) for one in sessions]
    if answer is not None:
        print_lines([_answered(_named(folders, answer[0]), EffectWord(answer[1]), detail, name)])
        return
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not listing and not as_json
    if watch:
        _watch(folders, name, asks)
    elif as_json:
        found = [_object(one) for one in _items(folders) if every or one.is_open]
        print_lines([json.dumps({"effects": found}, indent=2)])
    else:
        items, now_s, several = _items(folders), time.time(), len(folders) > 1
        listed = [one for one in items if every or one.is_open]
        shown = [line for one in listed for line in ("", *described(one, now_s, of_several=several))]
        print_lines([_head(items, now_s), *shown])
        if asks:
            _ask([one for one in listed if every or one.is_due(now_s)], name)
    if any(one.is_open for one in _items(folders)):
        sys.exit(STILL_OPEN)


def _items(folders: Sequence[Path]) -> list[EffectItem]:
    from harness.rating.effects import effects_of

    return [item for folder in folders for item in effects_of(folder).items]


def _head(items: Sequence[EffectItem], now_s: float) -> str:
    left = [one for one in items if one.is_open]
    if not items:
        return "No effect is checked in it, and no response is held."
    if not left:
        return f"{len(items)} effects, all of them known."
    return f"{len(left)} of {len(items)} effects are open, {sum(one.is_due(now_s) for one in left)} of them due."


def _named(folders: Sequence[Path], trial_id: str) -> EffectItem:
    """The effect of that trial; InputError when there is none, or more than one session has it."""
    from harness.base.findings import nearest

    items = _items(folders)
    found = [one for one in items if one.trial.id == trial_id]
    if not found:
        remedy = nearest(trial_id, [one.trial.id for one in items], listed="Trials with an effect")
        raise InputError(f"no answered trial {plain_text(trial_id, 80)!r} has an effect to be told", remedy=remedy)
    if len(found) > 1:
        raise InputError(f"{len(found)} sessions have a trial {trial_id!r}", remedy="Name one session only")
    return found[0]


def _answered(item: EffectItem, word: EffectWord, detail: str, by: str) -> str:
    """Writes the answer, and says what it overrules."""
    from harness.cli.effect_lines import clock
    from harness.session.log.judgment_log import JudgmentLog

    before = item.answers[-1] if item.answers else None
    if before is not None:
        overruled = f"overrules {before[1].word.value} by {before[1].by}"
        detail = f"{detail} ({overruled})" if detail else overruled
    row = EffectAnswered(item.trial.id, item.take, item.attempt, word, by, detail)
    log = JudgmentLog(item.folder)
    try:
        log.append(row)
    finally:
        log.close()
    line = f"{plain_text(item.trial.id, 80)}: {word.value}, by {plain_text(by, 40)}"
    if before is not None:
        who, word_then = plain_text(before[1].by, 40), before[1].word.value
        return f"{line}. It overrules {word_then}, said by {who} at {clock(before[0])}"
    if item.evidence.source is EffectSource.DEVICE and item.evidence.word is not word:
        return f"{line}. It overrules the device: {plain_text(item.evidence.said, 200)}"
    return line


def _ask(items: Sequence[EffectItem], by: str) -> bool:
    """Asks for each in turn; False when the person is done with it."""
    from harness.cli.effect_lines import described
    from harness.cli.streams import print_lines

    several = len({one.folder for one in items}) > 1
    for number, item in enumerate(items, start=1):
        print_lines(["", f"{number} of {len(items)}", *described(item, time.time(), of_several=several), _KEYS])
        while True:
            line = sys.stdin.readline()
            word = line.strip().lower()
            if not line or word == "q":
                return False
            if word == "s":
                break
            answer = parse_effect(line)
            if answer is None:
                print_lines([_KEYS])
                continue
            print_lines([_answered(item, *answer, by)])
            break
    return True


def _watch(folders: Sequence[Path], by: str, asks: bool) -> None:
    """Until nothing can become due any more, or the person is done with it."""
    from harness.cli.effect_lines import described
    from harness.cli.streams import print_lines
    from harness.rating.effects import effects_of

    met: set[tuple[Path, str, int, int]] = set()
    told = ""
    while True:
        found = [effects_of(folder) for folder in folders]
        now_s = time.time()
        fresh = [one for one in _open(found) if _key(one) not in met]
        ready = [one for one in fresh if one.is_due(now_s)]
        if ready:
            met |= {_key(one) for one in ready}
            stream = standard_output()
            stream.write("\a" if asks else "")
            if asks and not _ask(ready, by):
                return
            if not asks:
                print_lines([line for one in ready for line in ("", *described(one, now_s))])
            continue
        if not fresh and all(one.ended for one in found):
            return
        waits = _next(fresh, now_s)
        if waits != told:
            told = waits
            print_lines([waits])
        due_s = min((one.evidence.due_wall_s or now_s for one in fresh), default=now_s + LOOK_S)
        time.sleep(max(0.05, min(LOOK_S, due_s - now_s)))


def _next(fresh: Sequence[EffectItem], now_s: float) -> str:
    from harness.cli.effect_lines import when

    if not fresh:
        return "nothing is open; waits for the session"
    first = min(fresh, key=lambda one: one.evidence.due_wall_s or 0.0)
    at = when(first, now_s).partition(", in")[0]
    return f"next: {plain_text(first.trial.id, 80)} {at}"


def _open(found: Sequence[SessionEffects]) -> list[EffectItem]:
    return [item for one in found for item in one.items if item.is_open]


def _key(item: EffectItem) -> tuple[Path, str, int, int]:
    return item.folder, item.trial.id, item.take, item.attempt


def _object(item: EffectItem) -> dict[str, object]:
    check, evidence = item.evidence.check, item.evidence
    return {
        "session": item.session_id,
        "folder": str(item.folder),
        "trial": item.trial.id,
        "take": item.take,
        "attempt": item.attempt,
        "device": item.trial.device,
        "query": item.trial.reference,
        "answered": item.said,
        "wanted": check.wanted,
        "question": check.question,
        "word": evidence.word.value,
        "source": evidence.source.value,
        "open": item.is_open,
        "said": evidence.said,
        "due_wall_s": evidence.due_wall_s,
        "held_by": list(item.held_by),
    }
