"""`harness understanding bench`: understanders trained and scored on a corpus, a row of figures each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.cells import padded, width_of
from harness.base.foreign import plain_text
from harness.base.whole_file import WholeFile
from harness.cli.options import Command, target_option
from harness.cli.understanding.training_options import settings_of, splits_of, tell
from harness.model.choices import YARDSTICKS_KNOWN
from harness.model.errors import InputError, Place, PluginError

if TYPE_CHECKING:
    from harness.understanding.models.training import BenchRow, Contender

NOTHING = "n/a"
DEFAULT = "crf,transformer"
HEADINGS = ("understander", "intent accuracy", "EMR", "slot F1", "F1mh", "CER", "SFA", "CPU s", "CPU s / 1,000")


@click.command("bench", cls=Command)
@click.option(
    "--data", multiple=True, required=True, metavar="FOLDER", type=click.Path(path_type=Path),
    help="With splits train, dev (or valid) and test; more than once for several.",
)  # fmt: skip
@click.option(
    "--understander", metavar="NAME,…", help=f"Plug-ins.  [default: {DEFAULT}, as far as what they need is installed]"
)
@click.option(
    "-s", "--setting", "settings", multiple=True, metavar="NAME:SETTING=VALUE", help="A setting of one: crf:l1=0.1."
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Of the training.")
@click.option(
    "--yardstick", type=click.Choice([*YARDSTICKS_KNOWN, "none"]),
    help="Rows of that corpus beside ours; without it where a folder's name has atis or snips in it.",
)  # fmt: skip
@target_option("--json", "json_target", "Print JSON and no table.")
def command(
    data: tuple[Path, ...],
    understander: str | None,
    settings: tuple[str, ...],
    seed: int,
    yardstick: str | None,
    json_target: str | None,
) -> None:
    """Train and score understanders on a corpus: a row of figures each, with 95 % intervals and processor seconds.

    Slots: conlleval chunks of full concepts. What other models reach on ATIS and SNIPS stands below, marked *.

    Exit status: 0 done · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.understanding.models.training import bench

    contenders = _ready(_contenders(understander or DEFAULT, settings), seed, all_wanted=understander is not None)
    corpora = [(folder, splits_of(folder)) for folder in data]
    for folder, splits in corpora:
        if splits.test is None:
            raise InputError("there is no split test", place=Place(str(folder)), remedy="Call the one to score on test")
    told = []
    for folder, splits in corpora:
        assert splits.test is not None
        rows = []
        for one in contenders:
            tell(f"{folder}: {one.name}")
            rows.append(bench(one, (splits.train, splits.held_out, splits.test), seed, tell))
        rows += _yardsticks(folder, yardstick)
        told.append({"data": str(folder), "seed": seed, "rows": [_as_json(row) for row in rows]})
        if json_target != "-":
            click.echo(plain_text(f"{folder}: {len(splits.test.utterances):,} test utterances, seed {seed}"))
            click.echo("\n".join(table(rows)))
    text = json.dumps(told, indent=1) + "\n"
    if json_target == "-":
        click.echo(text, nl=False)
    elif json_target is not None:
        with WholeFile(json_target) as target:
            target.write(text.encode())
            target.keep()


def _contenders(names: str, settings: Sequence[str]) -> list[Contender]:
    """Understanders with their settings; InputError for a setting of none of them."""
    from harness.understanding.models.training import Contender

    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not wanted:
        raise InputError("--understander names none", remedy="Write crf, or crf,transformer")
    given: dict[str, list[tuple[str, str]]] = {name: [] for name in wanted}
    for name, value in settings_of(settings):
        of, sign, setting = name.partition(":")
        if not sign or of not in given:
            remedy = f"Write -s {wanted[0]}:name=value; understanders here: {', '.join(wanted)}"
            raise InputError(f"{name!r} is no setting of an understander here", remedy=remedy)
        given[of].append((setting, value))
    return [Contender(name, tuple(pairs)) for name, pairs in given.items()]


def _ready(contenders: Sequence[Contender], seed: int, *, all_wanted: bool) -> list[Contender]:
    """Those that can run, so that what is wrong is said before anything is trained. all_wanted: PluginError for one
    that cannot; else it is told, and PluginError is for none.
    """

    from harness.understanding.models.training import make_understander

    found: list[Contender] = []
    for one in contenders:
        try:
            make_understander(one.name, one.settings, seed)
        except PluginError as error:
            if all_wanted or (one is contenders[-1] and not found):
                raise
            tell(f"{one.name} is left out: {error.what}. {error.remedy}")
        else:
            found.append(one)
    return found


def _yardsticks(folder: Path, named: str | None) -> Iterable[BenchRow]:
    from harness.understanding.models.training import YARDSTICKS

    if named is not None:
        return YARDSTICKS.get(named, ())
    return next((rows for name, rows in YARDSTICKS.items() if name in folder.absolute().name.lower()), ())


def table(rows: Sequence[BenchRow]) -> Iterator[str]:
    """Lines of a table: each figure, and below it how far it may be off."""
    from harness.understanding.models.training import FIGURES

    cells: list[tuple[str, ...]] = [HEADINGS]
    for row in rows:
        found = {figure: (value, interval) for figure, value, interval in row.figures}
        values = [found.get(figure, (None, None)) for figure in FIGURES]
        name = f"{row.name} *" if row.from_elsewhere else row.name
        times = [_seconds(row.train_cpu_s), _seconds(row.predict_cpu_s)]
        cells.append((name, *(_per_cent(value) for value, _ in values), *times))
        if not row.from_elsewhere:
            cells.append(("", *(_between(interval) for _, interval in values), "", ""))
    widths = [max(width_of(line[at]) for line in cells) for at in range(len(HEADINGS))]
    for line in cells:
        yield "  ".join(padded(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip()
    if any(row.from_elsewhere for row in rows):
        yield "* reached elsewhere on the corpus's own splits; not measured in this run"


def _per_cent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f} %"


def _between(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}"


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _as_json(row: BenchRow) -> dict[str, object]:
    figures = {
        figure.value: {"value": value, "interval_95": None if interval is None else list(interval)}
        for figure, value, interval in row.figures
    }
    return {
        "understander": row.name, "from_elsewhere": row.from_elsewhere, "utterances": row.utterances,
        "figures": figures, "train_cpu_s": row.train_cpu_s, "predict_cpu_s_per_1000": row.predict_cpu_s,
    }  # fmt: skip
