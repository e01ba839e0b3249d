"""`harness annotate agreement`: how far annotators agree."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.annotation.ledger import Choice
from harness.base.cells import counted, fit
from harness.base.foreign import plain_text
from harness.cli.annotate.plain_lines import labelled
from harness.cli.annotate.project_options import open_project, project_argument
from harness.cli.options import Command, json_option
from harness.cli.streams import standard_output
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.annotation.agreement import AllAnnotators, LabelAgreement, PairOfAnnotators
    from harness.statistics.agreement import Figure
    from harness.statistics.intervals import Share

TOO_LOW = 1
NOTHING = "n/a"
LISTED = 15
NAME = 24
Choices = Callable[[str], Mapping[str, Choice]]


@click.command("agreement", cls=Command)
@project_argument
@click.option("--annotator", "only", multiple=True, help="Only these annotators; may be repeated.")
@click.option("--differing", is_flag=True, help="Only the utterances that were given different labels, with both.")
@json_option("as_json", "All figures as one JSON object.")
@click.option(
    "--min-alpha",
    type=click.FloatRange(-1, 1),
    metavar="X",
    help="Status 1 when Krippendorff's alpha (MASI) of two annotators is below X, or nobody shares an utterance.",
)
def command(project: Path, only: tuple[str, ...], differing: bool, as_json: bool, min_alpha: float | None) -> None:
    """Say how far every two annotators agree on the utterances that both labelled.

    Labels from files are those of the annotator `imported`. Of who labelled by hand, the labels count that they gave
    before what is proposed was shown. Works while annotators are at it. docs/annotation.md

    Exit status: 0 done · 1 agreement is below --min-alpha, or there is none · 2 wrong usage or input · 3 the project
    cannot be read.
    """
    from harness.annotation.agreement import all_annotators, pairs_of_annotators

    if differing and as_json:
        raise InputError("--differing and --json exclude each other", remedy="Choose one")
    room = open_project(project)
    try:
        ledger = room.ledger
        unknown = next((name for name in only if name not in ledger.annotators), None)
        if unknown is not None:
            known = ", ".join(plain_text(one, 64) for one in ledger.annotators)
            raise InputError(f"{unknown!r} has labelled nothing here", remedy=f"Annotators: {known or 'none'}")
        found = pairs_of_annotators(room.utterances, room.label_set, ledger, only)
        together = None if differing else all_annotators(room.utterances, ledger, only)
        out = standard_output()
        if as_json:
            told_of_all = None if together is None else _all_object(together)
            pairs = [_object(one) for one in found]
            out.write(json.dumps({"project": room.project.id, "pairs": pairs, "all": told_of_all}) + "\n")
        else:
            texts = {one.id: one.text for one in room.utterances}
            told = (
                _differing(found, texts, ledger.independent) if differing else (*_lines(found), *_all_lines(together))
            )
            out.write("".join(f"{line}\n" for line in told))
    finally:
        room.close()
    if min_alpha is not None and not _enough(found, min_alpha):
        sys.exit(TOO_LOW)


def _lines(pairs: Sequence[PairOfAnnotators]) -> Iterator[str]:
    if not pairs:
        yield "no utterance was labelled by two annotators"
    for number, pair in enumerate(pairs):
        if number:
            yield ""
        figures = pair.figures
        yield f"{_name(pair.first)} and {_name(pair.second)}: {counted(figures.shared, 'utterance')} labelled by both"
        yield _row("", "value", "95 % interval")
        yield _row("same labels", *_share(figures.exact))
        yield _row("mean Jaccard", *_figure(figures.jaccard))
        yield _row("alpha, MASI", *_figure(figures.masi))
        yield _row("alpha, whole sets", *_figure(figures.nominal))
        if figures.exact.count == figures.exact.total == figures.shared:
            yield "they agree on every utterance"
        yield ""
        yield from _labels(figures.labels)
        if figures.confusion:
            yield ""
            yield f"where they differ, {counted(len(pair.differing), 'utterance')}: the first said / the second said"
            for one, other, often in figures.confusion[:LISTED]:
                yield f"{often:>6}  {labelled(tuple(sorted(one)))} / {labelled(tuple(sorted(other)))}"
            rest = figures.confusion[LISTED:]
            if rest:
                yield f"{sum(often for _, _, often in rest):>6}  in {len(rest)} other ways"


def _all_lines(together: AllAnnotators | None) -> Iterator[str]:
    if together is not None and together.shared:
        yield ""
        names = ", ".join(map(_name, together.annotators))
        many = counted(together.shared, "utterance")
        yield f"all {len(together.annotators)} together ({names}): {many} labelled by two or more"
        yield _row("alpha, MASI", *_figure(together.masi))
        yield _row("alpha, whole sets", *_figure(together.nominal))


def _labels(labels: Sequence[LabelAgreement]) -> Iterator[str]:
    yield f"{fit('label', NAME)} {'both':>6} {'1st':>6} {'2nd':>6} {'kappa':>7}  95 % interval"
    for one in labels:
        if one.both + one.first + one.second:
            value, interval = _figure(one.kappa)
            label = fit(plain_text(one.label, 64), NAME)
            yield f"{label} {one.both:>6} {one.first:>6} {one.second:>6} {value:>7}  {interval}"
    yield "1st, 2nd: that annotator alone gave it"


def _differing(pairs: Sequence[PairOfAnnotators], texts: dict[str, str], choices: Choices) -> Iterator[str]:
    for pair in pairs:
        yield f"{_name(pair.first)} and {_name(pair.second)}: {counted(len(pair.differing), 'utterance')}"
        for id_ in pair.differing:
            given = choices(id_)
            yield f"{plain_text(id_, 80)}: {plain_text(texts[id_], 400)}"
            for name in (pair.first, pair.second):
                yield f"    {_name(name)}: {labelled(given[name].intents)}"


def _enough(pairs: Sequence[PairOfAnnotators], least: float) -> bool:
    if not pairs:
        click.echo("harness: no utterance was labelled by two annotators", err=True)
        return False
    low = [one for one in pairs if one.figures.masi.value is None or one.figures.masi.value < least]
    for one in low:
        alpha = one.figures.masi
        told = f"{NOTHING} ({alpha.why_not})" if alpha.value is None else f"{alpha.value:.3f}, below {least:g}"
        click.echo(f"harness: alpha of {_name(one.first)} and {_name(one.second)} is {told}", err=True)
    return not low


def _object(pair: PairOfAnnotators) -> dict[str, object]:
    figures = pair.figures
    exact = figures.exact
    return {
        "annotators": [pair.first, pair.second],
        "shared": figures.shared,
        "exact": {"count": exact.count, "total": exact.total, "value": exact.value, "interval": exact.interval},
        "jaccard": _figure_object(figures.jaccard),
        "alpha_masi": _figure_object(figures.masi),
        "alpha_nominal": _figure_object(figures.nominal),
        "labels": {
            one.label: {
                "both": one.both,
                "first": one.first,
                "second": one.second,
                "neither": one.neither,
                "kappa": _figure_object(one.kappa),
            }
            for one in figures.labels
        },
        "confusion": [
            {"first": sorted(one), "second": sorted(other), "utterances": often}
            for one, other, often in figures.confusion
        ],
        "differing": list(pair.differing),
    }


def _all_object(together: AllAnnotators) -> dict[str, object]:
    return {
        "annotators": list(together.annotators),
        "shared": together.shared,
        "alpha_masi": _figure_object(together.masi),
        "alpha_nominal": _figure_object(together.nominal),
    }


def _figure_object(figure: Figure) -> dict[str, object]:
    return {"value": figure.value, "interval": figure.interval, "why_not": figure.why_not}


def _figure(figure: Figure) -> tuple[str, str]:
    value = NOTHING if figure.value is None else _three(figure.value)
    if figure.interval is None:
        return value, f"{NOTHING}: {figure.why_not}" if figure.why_not else NOTHING
    return value, f"{_three(figure.interval[0])} to {_three(figure.interval[1])}"


def _three(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # without a minus before nothing


def _share(share: Share) -> tuple[str, str]:
    if share.value is None or share.interval is None:
        return NOTHING, NOTHING
    low, high = share.interval
    return f"{100 * share.value:.1f} %", f"{100 * low:.1f} to {100 * high:.1f} % ({share.count} of {share.total})"


def _row(name: str, value: str, interval: str) -> str:
    return f"{name:<20}{value:>8}  {interval}".rstrip()


def _name(name: str) -> str:
    return plain_text(name, 64)
