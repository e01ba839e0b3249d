"""`harness plan`: hours and utterances for a claim, for a sequential test, and to tell two systems apart."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import click

from harness.cli.options import Command, json_option
from harness.model.choices import ALPHA, CONFIDENCE, POWER
from harness.model.errors import InputError
from harness.model.scenario import SequentialTest

EVENTS = (0, 1, 2, 3, 5)
SPRT_EVENTS = 8


@dataclass(slots=True)
class _Plan:
    """Lines for people, and the same as JSON values."""

    lines: list[str] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)


def share_of(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """An option's share: 0.05, or 5%."""
    return None if value is None else _share(value, ctx, param)


def _shares(ctx: click.Context, param: click.Parameter, value: tuple[str, ...] | None) -> tuple[float, ...] | None:
    return None if value is None else tuple(_share(one, ctx, param) for one in value)


def _share(text: str, ctx: click.Context, param: click.Parameter) -> float:
    try:
        found = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise click.BadParameter(f"{text!r} is no share; write 0.05, or 5%", ctx, param)
    return found


_INNER = click.FloatRange(0, 1, min_open=True, max_open=True)
_RATE = click.FloatRange(min=0, min_open=True)


@click.command("plan", cls=Command)
@click.option("--fa-below", type=_RATE, metavar="X", help="Claim: fewer than X false accepts an hour.")
@click.option("--fa-expected", type=click.FloatRange(min=0), metavar="X", help="What the rate is thought to be.")
@click.option("--fr-below", callback=share_of, metavar="SHARE", help="Claim: fewer false rejects than this (5%).")
@click.option("--fr-expected", callback=share_of, metavar="SHARE", help="What the share is thought to be (2%).")
@click.option("--sprt", nargs=2, type=_RATE, metavar="GOOD BAD", help="Sequential test of a rate an hour (0.1 0.5).")
@click.option(
    "--alpha", type=_INNER, default=ALPHA, show_default=True, help="A good device fails, equal systems differ."
)
@click.option("--beta", type=_INNER, default=0.05, show_default=True, help="A bad device passes --sprt.")
@click.option(
    "--difference", nargs=2, callback=_shares, metavar="A B", help="Tell two systems' error shares apart (5% 3%)."
)
@click.option(
    "--discordant",
    callback=share_of,
    metavar="SHARE",
    help="Files on which one of the two alone errs; without it errors are taken as independent.",
)
@click.option("--power", type=_INNER, default=POWER, show_default=True, help="How often the claim is to succeed.")
@click.option("--confidence", type=_INNER, default=CONFIDENCE, show_default=True, help="Of claims.")
@click.option("--per-talker", type=click.FloatRange(min=1), metavar="N", help="Utterances of each talker.")
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="How alike one talker's utterances are, for --per-talker.",
)
@json_option("as_json", "As one JSON object.")
def command(
    fa_below: float | None,
    fa_expected: float | None,
    fr_below: float | None,
    fr_expected: float | None,
    sprt: tuple[float, float] | None,
    alpha: float,
    beta: float,
    difference: tuple[float, float] | None,
    discordant: float | None,
    power: float,
    confidence: float,
    per_talker: float | None,
    correlation: float,
    as_json: bool,
) -> None:
    """Work out how many hours and utterances a claim needs; plays nothing.

    Without an option: fewer than 0.1 false accepts an hour, fewer than 5 % false rejects when they are 2 %, and the
    sequential test of 0.1 against 0.5 an hour.
    """  # fmt: skip
    from harness.statistics.planning import design_effect

    if fa_expected is not None and fa_below is None:
        raise InputError("--fa-expected is of a claim that is not made", remedy="Add --fa-below")
    if fr_expected is not None and fr_below is None:
        raise InputError("--fr-expected is of a claim that is not made", remedy="Add --fr-below")
    if discordant is not None and difference is None:
        raise InputError("--discordant is of two systems", remedy="Add --difference A B")
    if fa_below is None and fr_below is None and sprt is None and difference is None:
        fa_below, fr_below, fr_expected, sprt = 0.1, 0.05, 0.02, (0.1, 0.5)
    if sprt is not None and sprt[0] >= sprt[1]:
        raise InputError(
            f"--sprt {sprt[0]:g} {sprt[1]:g}: the good rate comes first, and is the smaller one",
            remedy=f"Write --sprt {min(sprt):g} {max(sprt):g}" if sprt[0] > sprt[1] else "Move the two apart",
        )
    if sprt is not None and alpha + beta >= 1:
        raise InputError(f"--alpha {alpha:g} and --beta {beta:g} are 1 or more together", remedy="Both are often 0.05")
    plan = _Plan()
    effect = 1.0 if per_talker is None else design_effect(per_talker, correlation)
    try:
        if fa_below is not None:
            _false_accepts(plan, fa_below, fa_expected, power, confidence)
        if fr_below is not None:
            _false_rejects(plan, fr_below, fr_expected, power, confidence, effect)
        if sprt is not None:
            _sequential(plan, SequentialTest(*sprt, alpha=alpha, beta=beta))
        if difference is not None:
            _difference(plan, difference, discordant, power, alpha, effect)
    except ValueError as error:
        raise InputError(str(error), remedy="Move the two further apart, or the right way round") from error
    if per_talker is not None:
        plan.told["design_effect"] = effect
        plan.lines += _clustering(per_talker, correlation, effect)
    if as_json:
        click.echo(json.dumps(plan.told))
    else:
        click.echo("\n".join(plan.lines).strip())


def _false_accepts(plan: _Plan, below: float, expected: float | None, power: float, confidence: float) -> None:
    from harness.statistics.intervals import garwood
    from harness.statistics.planning import hours_for_claim, hours_with_power

    plan.lines.append(
        f"Fewer than {below:g} false accepts an hour, shown at {100 * confidence:g} % (one-sided, exact):"
    )
    rows = []
    for events in EVENTS:
        hours = hours_for_claim(below, events, confidence)
        rows.append({"events": events, "hours": hours})
        plan.lines.append(f"  {hours:8.1f} h  when {_times(events, 'false accept')} in them")
    told: dict[str, Any] = {"below_per_hour": below, "confidence": confidence, "claims": rows}
    if expected is not None:
        need = hours_with_power(below, expected, power, confidence)
        told |= {"expected_per_hour": expected, "hours": need.amount, "events": need.events, "power": need.power}
        plan.lines.append(
            f"  If the rate is {expected:g}/h, {need.amount:.1f} h are enough {100 * need.power:.0f} % of the time "
            f"(they allow {need.events})"
        )
        likely = garwood(round(expected * need.amount), need.amount, confidence)
        if likely is not None:
            plan.lines.append(f"  and the interval then is about {likely[0]:.3g} to {likely[1]:.3g}/h")
    plan.told["false_accepts"] = told
    plan.lines.append("")


def _false_rejects(
    plan: _Plan, below: float, expected: float | None, power: float, confidence: float, effect: float
) -> None:
    from harness.statistics.planning import utterances_for_claim, utterances_for_events, utterances_with_power

    plan.lines.append(
        f"Fewer than {100 * below:g} % false rejects, shown at {100 * confidence:g} % (the exact two-sided interval "
        "ends below):"
    )
    rows = []
    for events in EVENTS:
        utterances = utterances_for_events(below, events, confidence)
        rows.append({"events": events, "utterances": utterances})
        plan.lines.append(f"  {utterances:8,d} utterances  when {_times(events, 'miss', 'misses')}")
    told: dict[str, Any] = {"below": below, "confidence": confidence, "claims": rows}
    if expected is not None:
        just = utterances_for_claim(below, expected, confidence)
        need = utterances_with_power(below, expected, power, confidence)
        told |= {
            "expected": expected,
            "utterances_as_expected": just,
            "utterances": need.amount,
            "events": need.events,
            "power": need.power,
            "utterances_clustered": math.ceil(need.amount * effect),
        }
        plan.lines.append(
            f"  If the share is {100 * expected:g} %: {just} utterances when just so many are missed; "
            f"{need.amount:,.0f} to succeed {100 * need.power:.0f} % of the time (they allow {need.events})"
        )
        if effect > 1:
            plan.lines.append(f"  With talkers as below: {math.ceil(need.amount * effect):,}")
    plan.told["false_rejects"] = told
    plan.lines.append("")


def _sequential(plan: _Plan, test: SequentialTest) -> None:
    from harness.statistics.sequential import hours_to_pass, rate_boundaries

    passed, failed = rate_boundaries(test)
    up, down = math.log(test.bad / test.good), test.bad - test.good
    rows = []
    plan.lines += [
        f"Sequential test of {test.good:g} against {test.bad:g} false accepts an hour:",
        f"  (a good device fails at most {100 * test.alpha:g} % of the time, a bad one passes {100 * test.beta:g} %)",
        f"  passes after {hours_to_pass(test):.1f} h without a false accept",
        "  false accepts   fails when they come within   passes when no more come within",
    ]
    for events in range(SPRT_EVENTS + 1):
        fails = (events * up - failed) / down
        passes = (events * up - passed) / down
        rows.append(
            {"events": events, "fails_within_hours": fails if fails > 0 else None, "passes_after_hours": passes}
        )
        plan.lines.append(f"  {events:13d}   {f'{fails:.1f} h' if fails > 0 else '–':>26}   {passes:.1f} h")
    plan.told["sequential"] = {
        "good_per_hour": test.good,
        "bad_per_hour": test.bad,
        "alpha": test.alpha,
        "beta": test.beta,
        "hours_to_pass": hours_to_pass(test),
        "boundaries": rows,
    }
    plan.lines.append("")


def _difference(
    plan: _Plan, shares: tuple[float, float], discordant: float | None, power: float, alpha: float, effect: float
) -> None:
    from harness.statistics.planning import Differing, files_for_difference, mcnemar_power

    differing = Differing.of(*shares, discordant)
    files = files_for_difference(differing, power, alpha)
    plan.told["difference"] = {
        "shares": shares,
        "only_first": differing.only_first,
        "only_second": differing.only_second,
        "files": files,
        "power": mcnemar_power(files, differing, alpha),
        "files_clustered": math.ceil(files * effect),
    }
    how = "errors taken as independent" if discordant is None else f"differing on {100 * discordant:g} % of them"
    plan.lines += [
        f"Two systems with {100 * shares[0]:g} % and {100 * shares[1]:g} % errors on the same files ({how}):",
        f"  {files:,} files, to find it {100 * power:g} % of the time (McNemar's exact test, alpha {alpha:g})",
        *([f"  With talkers as below: {math.ceil(files * effect):,}"] if effect > 1 else []),
        "",
    ]


def _clustering(per_talker: float, correlation: float, effect: float) -> Iterator[str]:
    yield (
        f"Talkers: with {per_talker:g} utterances each and a correlation of {correlation:g} within a talker the design "
        f"effect is {effect:.2f}: so many times as much is needed. More talkers help more than more of each."
    )


def _times(count: int, one: str, many: str = "") -> str:
    if count == 0:
        return f"there is no {one}"
    return f"there is 1 {one}" if count == 1 else f"there are {count} {many or one + 's'}"
