"""Limits on figures of understanding that are declared on the command line, and whether they hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from harness.base.cells import shown
from harness.cli.options import share
from harness.model.choices import LimitsOn
from harness.understanding.reports.score_text import per_cent

if TYPE_CHECKING:
    from harness.understanding.reports.score_text import FigureRow, Reported

NOT_HELD = 1
_KEYS = {"min_emr": "emr", "min_sfa": "sfa", "min_slot_f1": "slot_f1", "max_cer": "cer"}


@dataclass(frozen=True, slots=True)
class Limits:
    """wanted: figure → the least it may be, or the most where less is better; on: the figure, or its interval's end."""

    wanted: tuple[tuple[str, float], ...] = ()
    on: LimitsOn = LimitsOn.ESTIMATE

    def demand(self, systems: Sequence[Reported]) -> None:
        """Ends with status 1, after saying why, when a limit does not hold; a figure over nothing holds none."""
        found = [text for one in systems for text in self.failures(one)]
        for text in found:
            click.echo(f"harness: {text}", err=True)
        if found:
            sys.exit(NOT_HELD)

    def failures(self, system: Reported) -> Iterator[str]:
        """A sentence for each limit that does not hold, of every detail."""
        for key, wanted in self.wanted:
            rows = [row for row in system.rows if row.key == key]
            for row in rows:
                if why := _why_not(row, wanted, self.on):
                    yield f"{_named(row)} of {shown(system.counts.predicted, 100)} {why}"
            if not rows:
                yield f"{key} of {shown(system.counts.predicted, 100)} is n/a, which no limit allows"


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, handed on as `limits`."""

    @click.option("--min-emr", callback=share, metavar="X", help="Status 1 with a lower EMR (0.9 or 90%).")
    @click.option("--min-sfa", callback=share, metavar="X", help="Status 1 with a lower SFA.")
    @click.option("--min-slot-f1", callback=share, metavar="X", help="Status 1 with a lower slot F1.")
    @click.option("--max-cer", callback=share, metavar="X", help="Status 1 with a higher concept error rate.")
    @click.option(
        "--limits-on",
        type=click.Choice([one.value for one in LimitsOn]),
        default=LimitsOn.ESTIMATE.value,
        show_default=True,
        help="What limits are on: the figure, or the worse end of its 95 % interval.",
    )
    @wraps(command)
    def with_limits(*given: Any, limits_on: str, **options: Any) -> Any:
        wanted = tuple((key, options.pop(name)) for name, key in _KEYS.items())
        limits = Limits(tuple((key, value) for key, value in wanted if value is not None), LimitsOn(limits_on))
        return command(*given, limits=limits, **options)

    return with_limits


def _why_not(row: FigureRow, wanted: float, on: LimitsOn) -> str:
    if row.value is None:
        return f"is n/a, which no limit allows: {row.counts}"
    side = "below" if row.high else "above"
    if on is LimitsOn.ESTIMATE:
        beyond = row.value < wanted if row.high else row.value > wanted
        return f"is {per_cent(row.value)}, {side} {per_cent(wanted)}" if beyond else ""
    if row.interval is None:
        return "has no interval, which no limit allows (--limits-on estimate judges the figure)"
    end = row.interval[0] if row.high else row.interval[1]
    if not (end < wanted if row.high else end > wanted):
        return ""
    return (
        f"is {per_cent(row.value)}, and the {'lower' if row.high else 'upper'} end of its 95 % interval, "
        f"{per_cent(end)}, is {side} {per_cent(wanted)}"
    )


def _named(row: FigureRow) -> str:
    return row.name if row.detail is None else f"{row.name} ({row.detail})"
