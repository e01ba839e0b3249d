"""A comparison of sessions as lines, Markdown for a pull request, one page of HTML, and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.places import SessionFolder
from harness.base.plain_json import plain
from harness.base.text_table import note, shown
from harness.base.whole_file import write_whole
from harness.model import numbers
from harness.model.errors import LogError
from harness.model.frozen import frozen
from harness.model.numbers import counted
from harness.model.time import Measured
from harness.report.charts import Chart
from harness.report.comparison import ComparedMeasure, SessionComparison, labels_of, letter
from harness.report.session import WholeSession
from harness.report.session_page import delays_of, distribution, latencies_of
from harness.session.log.reader import stored_bytes
from harness.statistics.comparison import Counted, DifferenceVerdict, difference_text

MOST_CHARACTERS = 60_000
"""Of Markdown; a comment on GitHub takes 65,536."""
MOST_FACTS = 40
_CELL = 100
METHOD = (
    "Each difference is the later session less A, with its own 95 % interval.",
    "p is corrected for all tests together (Holm). Half of the weight is on the measures as a whole.",
)


@frozen
class DifferingFact:
    """What differs between sessions: a value of each, "" where it has none."""

    what: str
    values: tuple[str, ...]


def differing_facts(found: SessionComparison, folders: Sequence[Path]) -> tuple[DifferingFact, ...]:
    """LogError for a bench that cannot be read."""
    return differing([facts_of(one, folder) for folder, one in zip(folders, found.sessions, strict=True)])


def facts_of(session: WholeSession, folder: Path) -> dict[str, str]:
    """Builds, boards, settings, versions, processor, scenario, bench. LogError for a bench that cannot be read."""
    started = session.started
    facts = {
        "scenario": started.scenario_id,
        "scenario file": started.scenario_sha256[:12],
        "bench": started.bench_id,
        "bench file": started.bench_sha256[:12],
        "seed": str(started.seed),
        "sound path": started.sound_path,
    }
    for board in session.progress.boards:
        for name, value in (("firmware", board.firmware), ("serial number", board.serial)):
            key = f"{name} of {board.source}"
            facts[key] = ", ".join(filter(None, (facts.get(key), value)))
    facts |= {f"setting {name} of {source}": value for source, name, value in session.settings}
    facts |= {axis: next(iter(labels)) for axis, labels in labels_of(session).items() if len(labels) == 1}
    facts |= dict(_leaves("bench", _bench(folder)))
    return facts | {f"version of {package}": version for package, version in started.versions} | dict(started.host)


def differing(told: Sequence[Mapping[str, str]]) -> tuple[DifferingFact, ...]:
    """The facts that are not the same in all sessions."""
    names = dict.fromkeys(name for facts in told for name in facts)
    rows = (DifferingFact(name, tuple(facts.get(name, "") for facts in told)) for name in names)
    return tuple(row for row in rows if len(set(row.values)) > 1)


def _bench(folder: Path) -> object:
    try:
        return from_json(stored_bytes(folder))["bench"]
    except (ValueError, KeyError, TypeError) as error:
        path = SessionFolder(folder).resolved
        raise LogError(
            f"{path} cannot be read: {error}", remedy="Check the session: harness report show SESSION --check"
        ) from error


_FILES = ("sha256", "path", "id", "place")
"""Fields of a bench that other rows tell, or that say only where its files are."""


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _FILES:
                yield from _leaves(f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for at, inner in enumerate(value):
            called = inner.get("id", at) if isinstance(inner, dict) else at
            yield from _leaves(f"{name}.{called}", inner)
    elif value not in (None, "", [], {}):
        yield name, str(value)


# Text


def headline(found: SessionComparison) -> str:
    """`2 worse, 1 better, 3 undecided, 9 not shown to differ`."""
    return ", ".join(f"{len(found.of(verdict))} {verdict.word}" for verdict in DifferenceVerdict)


def name_of(one: ComparedMeasure, limit: int = 80) -> str:
    """`false rejects, kitchen, level_dbfs -40`, sanitised."""
    where = f", {plain_text(one.axis, 40)} {plain_text(one.label, limit)}" if one.axis else ""
    return f"{one.measure}, {plain_text(one.device, limit)}{where}"


def apart(one: ComparedMeasure) -> str:
    """The difference with its interval: `+8.33 points (+2.10 to +14.6)`."""
    return difference_text(one.measure.counted, one.difference, one.interval)


def lines(found: SessionComparison, facts: Sequence[DifferingFact], width: int) -> Iterator[str]:
    """For a terminal: regressions and improvements with conditions, all other measures as a whole."""
    for at, session in enumerate(found.sessions):
        yield from note(letter(at), shown(session.started.session_id), width, 2)
    for warning in found.warnings:
        yield f"note: {warning}"
    yield ""
    for fact in facts[:MOST_FACTS]:
        values = ", ".join(f"{letter(at)} {shown(value, _CELL) or '–'}" for at, value in enumerate(fact.values))
        yield f"differs: {shown(fact.what, _CELL)}: {values}"
    if len(facts) > MOST_FACTS:
        yield f"differs: {len(facts) - MOST_FACTS} more; see --html"
    if facts:
        yield ""
    yield headline(found)
    rows = [one for one in found.rows if not one.axis or one.change.differs]
    for one in rows:
        why = f", since {one.why}" if one.why else ""
        sides = f"{letter(one.session)} {name_of(one)}: {one.first} → {one.second}"
        difference = numbers.NOTHING if one.p is None else f"{apart(one)}, {numbers.p_is(one.p_holm)}"
        yield from note(one.change.word, "; ".join((sides, difference, one.how + why)), width)
    if left := len(found.rows) - len(rows):
        yield f"{counted(left, 'condition')} not shown to differ, or undecided; see --html"
    yield from METHOD


def markdown(found: SessionComparison, facts: Sequence[DifferingFact]) -> str:
    """For a comment on a pull request: at most 60,000 characters; names stand in code, so they link to nothing."""
    names = [f"- {letter(at)}: {_code(one.started.session_id)}" for at, one in enumerate(found.sessions)]
    head = [f"### {headline(found)}", "", *names, *(f"- **Note**: {_code(one, 400)}" for one in found.warnings)]
    if facts:
        letters = [letter(at) for at in range(len(found.sessions))]
        head += ["", _row(["differs", *letters]), _row(["---"] * (len(letters) + 1))]
        head += [_row([_code(one.what), *map(_code, one.values)]) for one in facts[:MOST_FACTS]]
        head += [f"\n{len(facts) - MOST_FACTS} more differ."] if len(facts) > MOST_FACTS else []
    shown_rows = [one for one in found.rows if not one.axis or one.change.differs]
    titles = ("measure", "session", "", "A", "then", "difference (95 %)", "p", "compared")
    written = [*head, "", _row(titles), _row(["---"] * len(titles))]
    end = ["", *METHOD, ""]
    room = MOST_CHARACTERS - sum(len(line) + 1 for line in (*written, *end)) - 100
    for at, one in enumerate(shown_rows):
        change = f"**{one.change.word}**" if one.change.differs else one.change.word
        why = f": {one.why}" if one.why else ""
        where = [one.device, *([f"{one.axis} {one.label}"] if one.axis else [])]
        name = ", ".join([one.measure.value, *map(_code, where)])
        line = _row([name, letter(one.session), change + why, one.first, one.second, apart(one),
                     numbers.probability(one.p_holm).replace("<", "\\<"), one.how])  # fmt: skip
        room -= len(line) + 1
        if room < 0:
            end.insert(0, f"\n{len(shown_rows) - at} more rows have no room here.")
            break
        written.append(line)
    if left := len(found.rows) - len(shown_rows):
        end.insert(0, f"\n{counted(left, 'condition')} not shown to differ, or undecided.")
    return "\n".join([*written, *end])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(foreign: str, limit: int = _CELL) -> str:
    """Foreign text in which nothing is Markdown, HTML, a mention or the end of a cell."""
    safe = plain_text(foreign, limit).replace("`", "'").replace("\\", "/").replace("|", "\\|").strip()
    return f"`{safe}`" if safe else "–"


def as_json(found: SessionComparison, facts: Sequence[DifferingFact]) -> dict[str, Any]:
    """One object; durations are in seconds."""
    return {
        "sessions": {letter(at): one.started.session_id for at, one in enumerate(found.sessions)},
        "regressions": len(found.of(DifferenceVerdict.WORSE)),
        "warnings": list(found.warnings),
        "differing": plain(facts),
        "measures": [
            plain(one)
            | {"session": letter(one.session), "unit": one.measure.counted.value}
            | {"interval": [end if math.isfinite(end) else None for end in one.interval] if one.interval else None}
            for one in found.rows
        ],
    }


def write_page(found: SessionComparison, facts: Sequence[DifferingFact], target: Path) -> None:
    """Writes one page of HTML, completely or not at all."""
    page = filled_page(
        "harness.report",
        "comparison_page.html",
        title="Comparison of sessions",
        found=found,
        facts=facts,
        charts=tuple(_charts(found)),
        headline=headline(found),
        method=" ".join(METHOD),
        changes=tuple(DifferenceVerdict),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        letter=letter,
        apart=apart,
        whisker=_whisker(found),
    )
    write_whole(target, page.encode("utf-8"))


def _whisker(found: SessionComparison) -> Callable[[ComparedMeasure], tuple[float, float, float] | None]:
    """Where an interval stands on a scale of 0–100 whose middle is no difference; a scale for each unit."""
    most: dict[Counted, float] = {}
    for one in found.rows:
        ends = [] if one.interval is None else [abs(end) for end in one.interval if abs(end) != float("inf")]
        most[one.measure.counted] = max([most.get(one.measure.counted, 0.0), *ends])

    def place(one: ComparedMeasure) -> tuple[float, float, float] | None:
        scale = most[one.measure.counted]
        if one.difference is None or one.interval is None or not scale:
            return None
        low, value, high = (
            50 + 50 * max(-1.0, min(1.0, end / scale)) for end in (one.interval[0], one.difference, one.interval[1])
        )
        return low, value, high

    return place


def _charts(found: SessionComparison) -> Iterator[Chart]:
    for id_, title, of in (
        ("latency", "Latency of the response, % of the trials up to", latencies_of),
        ("delay", "Wake delay, % of the hits up to", lambda session: delays_of(session.wake)),
    ):
        curves: dict[str, list[Measured]] = {
            f"{letter(at)} {device}": times
            for at, one in enumerate(found.sessions)
            for device, times in of(one).items()
        }
        if (drawn := distribution(id_, title, curves)) is not None:
            yield replace(
                drawn, words="Intervals of the medians, and of their difference, stand in the table of results."
            )
