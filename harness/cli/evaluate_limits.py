"""Limits that are declared on the command line of `harness evaluate`, and whether they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.offline.figures.figures import Figures
    from harness.statistics.intervals import Interval


class LimitsOn(StrEnum):
    """What a limit is on. BOUND: the upper end of the 95 % interval, which is what a claim needs."""

    BOUND = "bound"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """The most that figures may be: false accepts an hour, false rejects in per cent, WER as a share 0–1."""

    false_accepts_per_hour: float | None = None
    false_rejects_percent: float | None = None
    wer: float | None = None
    on: LimitsOn = LimitsOn.BOUND

    def demand_figures(self, *, inv: bool, oov: bool, words: bool) -> None:
        """InputError for a limit on a figure that this evaluation will not have."""
        if self.false_accepts_per_hour is not None and not oov:
            raise InputError("--max-fa-per-hour is of out-of-vocabulary audio, and there is none", remedy="Give -o")
        if self.false_rejects_percent is not None and not inv:
            raise InputError("--max-fr is of in-vocabulary files, and there are none", remedy="Give -i or -c")
        if self.wer is not None and not words:
            raise InputError("--max-wer is of words, and none are compared", remedy="Give -w with -c")

    def failures(self, found: Figures) -> Iterator[str]:
        """A sentence for each limit that does not hold; a figure over nothing holds none."""
        totals = found.totals
        # With references the percentage is of all that went wrong, as on the console.
        substitutions = "FR+SBRATIO" in totals
        rejects = found.with_substitutions if substitutions else found.false_rejects
        ratio = totals.get("FR+SBRATIO" if substitutions else "FRRATIO")
        bound_of_accepts = found.clustering.interval if found.clustering and found.clustered else None
        yield from self._failure(
            "--max-fa-per-hour",
            "false accepts an hour",
            self.false_accepts_per_hour,
            totals.get("FARATE"),
            _higher(found.false_accepts, bound_of_accepts),
            "",
        )
        yield from self._failure(
            "--max-fr", "the false-reject ratio", self.false_rejects_percent, ratio, _scaled(rejects), " %"
        )
        wer = None if self.wer is None else 100 * self.wer
        yield from self._failure("--max-wer", "the WER", wer, totals.get("WER"), _scaled(found.word_errors), " %")

    def _failure(
        self, option: str, what: str, wanted: float | None, value: float | None, bound: float | None, unit: str
    ) -> Iterator[str]:
        if wanted is None:
            return
        if value is None:
            yield f"{option}: {what} is n/a, which no limit allows"
        elif self.on is LimitsOn.ESTIMATE:
            if value > wanted:
                yield f"{option}: {what} is {value:.4g}{unit}, above {wanted:g}{unit}"
        elif bound is None:
            hint = f"--limits-on estimate judges {value:.4g}{unit}"
            yield f"{option}: {what} has no interval, which no limit allows ({hint})"
        elif bound > wanted:
            yield (
                f"{option}: {what} is {value:.4g}{unit}, and the upper end of its 95 % interval, {bound:.4g}{unit}, is "
                f"above {wanted:g}{unit} (--limits-on estimate judges {value:.4g}{unit})"
            )


def _scaled(interval: Interval | None) -> float | None:
    return None if interval is None else 100 * interval[1]


def _higher(interval: Interval | None, other: Interval | None) -> float | None:
    """The upper end, of the wider where false accepts come in clusters."""
    return None if interval is None else max(interval[1], other[1] if other else 0.0)
