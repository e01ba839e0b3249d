"""`harness evaluate plan`: hours and utterances for a claim, a sequential test, or a comparison of two systems."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from harness.base.text_table import Column, text_table
from harness.cli.options import FiniteRange, json_option, option, parse_share, verb
from harness.cli.streams import width
from harness.model.choices import ALPHA, CONFIDENCE, POWER
from harness.model.errors import InputError, demand_main_options
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact, fixed, percent
from harness.model.scenario import SequentialTest

EVENTS = (0, 1, 2, 3, 5)
"""Numbers of errors for which the required amount is listed."""
MAX_SPRT_EVENTS = 8
CORRELATION = 0.1
PlanOutput = tuple[dict[str, Any], list[str]]
"""A result as JSON values, and as lines for people."""


def parse_proportion(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback, as `parse_share`, but for a share of at most 1."""
    fraction = parse_share(ctx, param, value)
    if fraction is not None and fraction > 1:
        raise click.BadParameter(f"{value!r} is not a share. Write 0.05 or 5%", ctx, param)
    return fraction


def _parse_proportions(ctx: click.Context, param: click.Parameter, value: tuple[str, ...] | None) -> Any:
    return None if value is None else tuple(parse_proportion(ctx, param, text) for text in value)


_INNER_SHARE = FiniteRange(0, 1, min_open=True, max_open=True)
_RATE = FiniteRange(min=0, min_open=True)


@frozen
class PlanOptions:
    """The claims to plan for, with their options."""

    fa_below: float | None = option("Claim: fewer than X false accepts per hour.", type=_RATE, metavar="X")
    fa_expected: float | None = option("Rate of false accepts that you expect.", within=(0, None), metavar="X")
    fr_below: float | None = option(
        "Claim: fewer false rejects than SHARE (5%).", callback=parse_proportion, metavar="SHARE"
    )
    fr_expected: float | None = option(
        "Share of false rejects that you expect (2%).", callback=parse_proportion, metavar="SHARE"
    )
    sprt: tuple[float, float] | None = option(
        "Sequential test of two hourly rates, such as 0.1 0.5.", nargs=2, type=_RATE, metavar="GOOD BAD"
    )
    alpha: float = option(
        "Risk that a good device fails, or that equal systems seem to differ.", type=_INNER_SHARE, default=ALPHA
    )
    beta: float = option("Risk that a bad device passes --sprt.", type=_INNER_SHARE, default=0.05)
    difference: tuple[float, float] | None = option(
        "Compare two systems with these error shares (5% 3%).", nargs=2, callback=_parse_proportions, metavar="A B"
    )
    discordant: float | None = option(
        "Share of files on which exactly one system errs.",
        show_default="errors are independent",
        callback=parse_proportion,
        metavar="SHARE",
    )
    power: float = option("Probability that the claim succeeds.", type=_INNER_SHARE, default=POWER)
    confidence: float = option("Confidence level of claims.", type=_INNER_SHARE, default=CONFIDENCE)
    per_talker: float | None = option("Utterances per talker.", within=(1, None), metavar="N")
    correlation: float = option("Correlation within a talker, for --per-talker.", within=(0, 1), default=CORRELATION)

    def __post_init__(self) -> None:
        has_rate = self.fa_below is not None or self.sprt is not None
        has_share = self.fr_below is not None or self.difference is not None
        demand_main_options((
            ("--correlation", self.correlation != CORRELATION, "--per-talker", self.per_talker is not None),
            ("--per-talker", has_rate and self.per_talker is not None, "--fr-below or --difference", has_share),
        ))  # fmt: skip
        if self.fa_expected is not None and self.fa_below is None:
            raise InputError("--fa-expected needs a claim", remedy="Add --fa-below")
        if self.fr_expected is not None and self.fr_below is None:
            raise InputError("--fr-expected needs a claim", remedy="Add --fr-below")
        if self.fr_below == 0:
            raise InputError("--fr-below: a share cannot be below 0 %", remedy="Write a share above 0, such as 5%")
        if self.discordant is not None and self.difference is None:
            raise InputError("--discordant needs two systems", remedy="Add --difference A B")
        if self.sprt is None:
            return
        good, bad = self.sprt
        if good >= bad:
            raise InputError(
                f"--sprt {exact(good)} {exact(bad)}: the good rate comes first and must be the smaller one",
                remedy=f"Write --sprt {exact(bad)} {exact(good)}" if good > bad else "Use two different rates",
            )
        if self.alpha + self.beta >= 1:
            raise InputError(
                f"--alpha {exact(self.alpha)} and --beta {exact(self.beta)} add up to 1 or more",
                remedy="Use smaller values; 0.05 is usual for both",
            )

    def or_default_claims(self) -> PlanOptions:
        """These claims, or the default ones if none is given."""
        if any(claim is not None for claim in (self.fa_below, self.fr_below, self.sprt, self.difference)):
            return self
        return replace(self, fa_below=0.1, fr_below=0.05, fr_expected=0.02, sprt=(0.1, 0.5))


@verb(
    "plan",
    sections={
        "Sequential test and comparison": "sprt alpha beta difference discordant power",
        "Talkers": "per_talker correlation",
    },
)
def command(*, options: PlanOptions, as_json: bool = json_option("Print one JSON object.")) -> None:
    """Calculate how many hours and utterances a claim needs. Nothing is played.

    Without options, the claims are fewer than 0.1 false accepts per hour, and fewer than 5 % false rejects when you
    expect 2 %. The sequential test of 0.1 against 0.5 per hour is added.
    """  # fmt: skip
    from harness.statistics.planning import design_effect

    options = options.or_default_claims()
    effect = 1.0 if options.per_talker is None else design_effect(options.per_talker, options.correlation)
    claims: dict[str, PlanOutput] = {}
    try:
        if options.fa_below is not None:
            claims["false_accepts"] = _plan_false_accepts(options, options.fa_below)
        if options.fr_below is not None:
            claims["false_rejects"] = _plan_false_rejects(options, options.fr_below, effect)
        if options.sprt is not None:
            good, bad = options.sprt
            claims["sequential"] = _plan_sequential(SequentialTest(good, bad, alpha=options.alpha, beta=options.beta))
        if options.difference is not None:
            claims["difference"] = _plan_difference(options, options.difference, effect)
    except ValueError as error:
        raise InputError(str(error), remedy="Use values that are further apart, in the right order") from error
    if as_json:
        fields: dict[str, Any] = {name: claim for name, (claim, _) in claims.items()}
        click.echo(json.dumps(fields if options.per_talker is None else fields | {"design_effect": effect}))
        return
    blocks = ["\n".join(lines) for _, lines in claims.values()]
    if options.per_talker is not None:
        blocks.append(
            f"Talkers: with {exact(options.per_talker)} utterances each and a correlation of "
            f"{exact(options.correlation)} within a talker, the design effect is {fixed(effect, 2)}: you need "
            f"{fixed(effect, 2)} times as many. More talkers help more than more utterances of each."
        )
    click.echo("\n\n".join(blocks))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from (f"  {line}" for line in text_table([Column(title) for title in titles], rows, width() - 2))


def _plan_false_accepts(options: PlanOptions, below: float) -> PlanOutput:
    """The hours for the claim of fewer than `below` false accepts per hour."""
    from harness.statistics.intervals import garwood
    from harness.statistics.planning import hours_for_claim, hours_for_limit, hours_with_power

    confidence, expected = options.confidence, options.fa_expected
    claims = [
        {
            "events": events,
            "hours": hours_for_claim(below, events, confidence),
            "hours_for_limit": hours_for_limit(below, events, confidence),
        }
        for events in EVENTS
    ]
    title = f"Hours that show fewer than {exact(below)} false accepts per hour"
    lines = [
        f"{title}, at {exact(100 * confidence)} % confidence (exact):",
        *_table(
            ("false accepts", "one-sided", "two-sided"),
            [
                (str(claim["events"]), f"{fixed(claim['hours'], 1)} h", f"{fixed(claim['hours_for_limit'], 1)} h")
                for claim in claims
            ],
        ),
        f"  For --max-fa-per-hour {exact(below)}, read the two-sided column: limits and reports use it.",
    ]
    fields: dict[str, Any] = {"below_per_hour": below, "confidence": confidence, "claims": claims}
    if expected is not None:
        need = hours_with_power(below, expected, options.power, confidence)
        fields |= {"expected_per_hour": expected, "hours": need.amount, "events": need.events, "power": need.power}
        lines.append(
            f"  If the rate is {exact(expected)}/h, {fixed(need.amount, 1)} h suffice {percent(need.power, 0)} of the "
            f"time (one-sided, at most {_count_text(need.events, 'false accept')})"
        )
        likely_interval = garwood(round(expected * need.amount), need.amount, confidence)
        if likely_interval:
            low, high = likely_interval
            lines.append(f"  The interval is then about {exact(low, 3)} to {exact(high, 3)}/h")
    return fields, lines


def _plan_false_rejects(options: PlanOptions, below: float, effect: float) -> PlanOutput:
    """The utterances for the claim of a share of false rejects below `below`. effect: the design effect of talkers."""
    from harness.statistics.planning import (
        utterances_for_claim,
        utterances_for_events,
        utterances_with_power,
        voices_for_claim,
    )

    confidence, expected, per_talker = options.confidence, options.fr_expected, math.floor(options.per_talker or 1)
    utterances = {events: utterances_for_events(below, events, confidence) for events in EVENTS}
    method = f"at {exact(100 * confidence)} % confidence (upper end of the exact two-sided interval)"
    lines = [
        f"Fewer than {exact(100 * below)} % false rejects, {method}:",
        *_table(("false rejects", "utterances"), [(str(events), f"{count:,}") for events, count in utterances.items()]),
    ]
    claims = [{"events": events, "utterances": count} for events, count in utterances.items()]
    fields: dict[str, Any] = {"below": below, "confidence": confidence, "claims": claims}
    if expected is not None:
        expected_count = utterances_for_claim(below, expected, confidence)
        need = utterances_with_power(below, expected, options.power, confidence)
        clustered_count = math.ceil(need.amount * effect)
        fields |= {"expected": expected, "utterances_as_expected": expected_count, "utterances": need.amount}
        fields |= {"events": need.events, "power": need.power, "utterances_clustered": clustered_count}
        lines.append(
            f"  If the share is {exact(100 * expected)} %: {expected_count} utterances if exactly that share is "
            f"rejected; {math.ceil(need.amount):,} to succeed {percent(need.power, 0)} of the time "
            f"(at most {_count_text(need.events, 'false reject')})"
        )
        if effect > 1:
            talkers_text = f"{math.ceil(clustered_count / per_talker):,} talkers"
            lines.append(f"  With these talkers: {clustered_count:,} utterances, by {talkers_text}")
    if options.per_talker is None:
        lines += [
            "  This assumes one talker, or a new talker for each utterance. Reports count talkers: with several",
            "  utterances of each, add --per-talker N. Then more talkers are needed, rather than more utterances.",
        ]
    else:
        talker_count = voices_for_claim(below, per_talker, confidence)
        fields["talkers_without_rejects"] = talker_count
        lines.append(
            f"  Reports allow for any correlation: they need {talker_count:,} talkers "
            f"with {per_talker:,} utterances each, and no false rejects"
        )
    return fields, lines


def _plan_sequential(test: SequentialTest) -> PlanOutput:
    """How long a device must go without a further false accept to pass a test, and when it fails.

    The logarithm of the likelihood ratio rises by `per_event` at each false accept, and falls by `per_hour` in an hour.
    """
    from harness.statistics.sequential import hours_to_pass, rate_boundaries

    pass_boundary, fail_boundary = rate_boundaries(test)
    per_event, per_hour = math.log(test.bad / test.good), test.bad - test.good
    rows = []
    good_fails, bad_passes = (exact(100 * error_rate) for error_rate in (test.alpha, test.beta))
    lines = [
        f"Sequential test of {exact(test.good)} against {exact(test.bad)} false accepts per hour:",
        f"  (a good device fails at most {good_fails} % of the time, and a bad one passes at most {bad_passes} %)",
        f"  passes after {fixed(hours_to_pass(test), 1)} h without a false accept",
    ]
    cells = []
    for events in range(MAX_SPRT_EVENTS + 1):
        fails_within_h = (events * per_event - fail_boundary) / per_hour
        passes_after_h = (events * per_event - pass_boundary) / per_hour
        can_fail = fails_within_h > 0
        rows.append({
            "events": events,
            "fails_within_hours": fails_within_h if can_fail else None,
            "passes_after_hours": passes_after_h,
        })  # fmt: skip
        fails_text = f"{fixed(fails_within_h, 1)} h" if can_fail else "–"
        cells.append((str(events), fails_text, f"{fixed(passes_after_h, 1)} h"))
    lines += _table(("false accepts", "fails if they all occur within", "passes if no more occur within"), cells)
    fields = {"good_per_hour": test.good, "bad_per_hour": test.bad, "alpha": test.alpha, "beta": test.beta}
    return {**fields, "hours_to_pass": hours_to_pass(test), "boundaries": rows}, lines


def _plan_difference(options: PlanOptions, shares: tuple[float, float], effect: float) -> PlanOutput:
    """The files on which two systems with these error shares must be compared. effect: the design effect of talkers."""
    from harness.statistics.planning import Discordant, files_for_difference, mcnemar_power

    first, second = shares
    discordant = Discordant.of(first, second, options.discordant)
    file_count = files_for_difference(discordant, options.power, options.alpha)
    clustered_count = math.ceil(file_count * effect)
    fields = {
        "shares": shares,
        "only_first": discordant.only_first,
        "only_second": discordant.only_second,
        "files": file_count,
        "power": mcnemar_power(file_count, discordant, options.alpha),
        "files_clustered": clustered_count,
    }
    assumption = "errors independent"
    if options.discordant is not None:
        assumption = f"exactly one errs on {exact(100 * options.discordant)} % of them"
    test = f"McNemar's exact test, alpha {exact(options.alpha)}"
    lines = [
        f"Two systems with {exact(100 * first)} % and {exact(100 * second)} % errors on the same files ({assumption}):",
        f"  {file_count:,} files to detect the difference {exact(100 * options.power)} % of the time ({test})",
    ]
    if effect > 1:
        lines.append(f"  With these talkers: {clustered_count:,} files")
    return fields, lines


def _count_text(count: int, noun: str) -> str:
    return counted(count, noun) if count else f"no {noun}s"
