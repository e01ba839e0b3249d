"""What several verbs of `harness understanding` ask: how frames are read and counted, limits, and where reports go."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text, shown
from harness.cli.options import WordOf, options_as, share, target_option
from harness.cli.streams import STDIN, refuse_overwriting
from harness.model.annotation import Label, LabelSet
from harness.model.choices import LimitsOn
from harness.model.errors import InputError
from harness.model.understanding import Chunking, Corpus, Detail
from harness.statistics.text import percent
from harness.understanding.counts import Rule, ValueRule
from harness.understanding.figures import PRESETS, ZeroDivision

if TYPE_CHECKING:
    from harness.cli.options import Declared
    from harness.understanding.reports.score_text import FigureRow, Reported

NOT_HELD = 1
BOTH = "both"
_ZEROS = {"0": "zero", "1": "one", "seed": "seed"}


def chunking_option() -> Declared:
    """`--chunking`."""
    return click.option(
        "--chunking", type=WordOf(Chunking), default=Chunking.CONLLEVAL.value, show_default=True,
        help="How BIO tags are read as slots: conlleval lets an I- begin one, iob2 does not.",
    )  # fmt: skip


def separator_option() -> Declared:
    """`--separator`; an empty one would be before anything."""

    def checked(ctx: click.Context, param: click.Parameter, value: str) -> str:
        if not value:
            raise InputError("--separator is empty", remedy="Leave it out, or write the sign before specifiers")
        return value

    help = "Before the specifier of a concept."
    return click.option("--separator", default="-", show_default=True, callback=checked, help=help)


@dataclass(frozen=True, slots=True)
class FramesAsked:
    """How frames are read and counted. detail: of `Detail`, or BOTH. labels: as written. by: () is every group."""

    chunking: Chunking
    detail: str
    separator: str
    attributes: tuple[str, ...]
    values: ValueRule
    zero: ZeroDivision
    labels: str | None
    by: tuple[str, ...]
    spoken: bool = True
    without_places: bool = False

    def rule(self, *, ordered: bool, places: bool) -> Rule:
        """Under the first of the details."""
        return Rule(self.chunking, self.details[0], self.separator, self.attributes, self.values,
                    spoken=self.spoken, ordered=ordered, places=places)  # fmt: skip

    @property
    def details(self) -> tuple[Detail, ...]:
        return tuple(Detail) if self.detail == BOTH else (Detail(self.detail),)

    @property
    def declared(self) -> tuple[str, ...] | None:
        """All declared labels; InputError for a list of none."""
        return declared_labels(self.labels).ids if self.labels else None

    def demand_groups(self, gold: Corpus) -> None:
        """InputError for a column that gold does not have."""
        columns = {name for one in gold.utterances for name, _ in one.groups}
        for column in self.by:
            if column not in columns:
                from harness.base.findings import nearest  # here, since it takes long to import

                remedy = nearest(column, sorted(columns), listed="Groups") if columns else "Leave --by out"
                raise InputError(f"--by: gold has no group {plain_text(column, 60)!r}", remedy=plain_text(remedy, 300))


def frames_options(values: ValueRule, *, of_files: bool) -> Declared:
    """As `FramesAsked`. values: the default. of_files: several details, and files that say how their slots are."""
    details = [*(one.value for one in Detail), *([BOTH] if of_files else [])]
    more = (
        click.option(
            "--spoken", is_flag=True, help="The words of a slot are its value, where tags say which they are."
        ),
        click.option(
            "--without-places", is_flag=True, help="The words are not the same on both sides, as in transcripts."
        ),
    )  # fmt: skip
    return options_as(
        "asked",
        FramesAsked,
        chunking_option(),
        click.option(
            "--detail", type=click.Choice(details), default=Detail.FULL.value, show_default=True,
            help=f"Concepts as they stand, or without their specifiers{', or both' if of_files else ''}.",
        ),
        separator_option(),
        click.option(
            "--attributes", metavar="A,B,…", help="Concepts without specifiers that have the separator themselves.",
            callback=lambda ctx, param, value: tuple(filter(None, map(str.strip, (value or "").split(",")))),
        ),
        click.option(
            "--values", type=WordOf(ValueRule), default=values.value, show_default=True,
            help="How values of slots are compared, beside the figures without them, where both sides give them.",
        ),
        *(more if of_files else ()),
        click.option(
            "--zero", type=click.Choice(list(_ZEROS)), default="0", show_default=True,
            callback=lambda ctx, param, value: PRESETS[_ZEROS[value]], help="What 0/0 is; seed: 1 for precision.",
        ),
        click.option("--labels", metavar="LABELS.yaml|A,B,…", help="All declared intents, which macro is then over."),
        click.option(
            "--by", multiple=True, metavar="COLUMN", help="Figures by a group; without it by every one of gold."
        ),
    )  # fmt: skip


def declared_labels(written: str) -> LabelSet:
    """Of `a,b,c`, or of a .yaml file with a label set; InputError for neither."""
    if written.lower().endswith((".yaml", ".yml")):
        from harness.understanding.files.label_set_file import load_label_set

        return load_label_set(Path(written))
    ids = dict.fromkeys(part.strip() for part in written.split(",") if part.strip())
    if not ids:
        raise InputError("--labels names no label", remedy="Write a,b,c, or name a .yaml file of a label set")
    return LabelSet("", "", tuple(map(Label, ids)), may_be_empty=True)


def refuse_stdin_twice(files: Sequence[str]) -> None:
    """InputError, since it can be read only once."""
    if files.count(STDIN) > 1:
        raise InputError("only one file can come from standard input", remedy="Name the others")


@dataclass(frozen=True, slots=True)
class Targets:
    """Where reports go; None: there is none of that form."""

    json_target: str | None
    html_target: str | None

    def refuse(self, files: Sequence[str]) -> None:
        """InputError for a report that would be written over one of the files, or standard input named twice."""
        for target in filter(None, (self.json_target, self.html_target)):
            refuse_overwriting(target, files)
        refuse_stdin_twice(files)

    def put(self, as_json: str | None, page: bytes | None, lines: Iterable[str]) -> None:
        """JSON and page, where they are wanted; then the lines, unless JSON is on standard output."""
        from harness.cli.streams import print_lines

        if as_json is not None:
            put_text(self.json_target or STDIN, as_json)
        if page is not None and self.html_target is not None:
            from harness.base.whole_file import write_whole

            write_whole(Path(self.html_target), page)
        if self.json_target != STDIN:
            print_lines(lines)


def target_options(html: str) -> Declared:
    """`--json` and `--html`, as `Targets`. html: the help of --html."""
    return options_as(
        "targets",
        Targets,
        target_option("--json", "json_target", "Print JSON and no text."),
        click.option("--html", "html_target", metavar="FILE", help=html),
    )


def put_text(target: str, text: str) -> None:
    """Into a file, whole or not at all, or to standard output."""
    if target == STDIN:
        from harness.cli.streams import print_pieces

        print_pieces([text])
        return
    from harness.base.whole_file import WholeFile

    with WholeFile(target) as file:
        file.write(text.encode("utf-8"))
        file.keep()


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """The least, or the most, that figures may be. limits_on: the figure, or the worse end of its interval."""

    min_emr: float | None
    min_sfa: float | None
    min_slot_f1: float | None
    max_cer: float | None
    limits_on: LimitsOn

    def demand(self, systems: Sequence[Reported]) -> None:
        """Ends with status 1, after saying why, when a limit does not hold; a figure over nothing holds none."""
        found = [text for one in systems for text in self.failures(one)]
        for text in found:
            click.echo(f"harness: {text}", err=True)
        if found:
            sys.exit(NOT_HELD)

    def failures(self, system: Reported) -> Iterator[str]:
        """A sentence for each limit that does not hold, of every detail."""
        name = shown(system.counts.predicted, 100)
        wanted = {"emr": self.min_emr, "sfa": self.min_sfa, "slot_f1": self.min_slot_f1, "cer": self.max_cer}
        for key, limit in wanted.items():
            if limit is None:
                continue
            rows = [row for row in system.rows if row.key == key]
            for row in rows:
                if why := self._why_not(row, limit):
                    yield f"{row.name}{f' ({row.detail})' if row.detail else ''} of {name} {why}"
            if not rows:
                yield f"{key} of {name} is n/a, which no limit allows"

    def _why_not(self, row: FigureRow, limit: float) -> str:
        if row.value is None:
            return f"is n/a, which no limit allows: {row.counts}"
        judged, end = row.value, ""
        if self.limits_on is not LimitsOn.ESTIMATE:
            if row.interval is None:
                return "has no interval, which no limit allows (--limits-on estimate judges the figure)"
            judged = row.interval[0 if row.high else 1]
            which = "lower" if row.high else "upper"
            end = f", and the {which} end of its 95 % interval, {percent(judged, 2)}, is"
        if not (judged < limit if row.high else judged > limit):
            return ""
        side = "below" if row.high else "above"
        return f"is {percent(row.value, 2)}{end or ','} {side} {percent(limit, 2)}"


def limit_options() -> Declared:
    """As `FrameLimits`."""
    return options_as(
        "limits",
        FrameLimits,
        click.option("--min-emr", callback=share, metavar="X", help="Status 1 with a lower EMR (0.9 or 90%)."),
        click.option("--min-sfa", callback=share, metavar="X", help="Status 1 with a lower SFA."),
        click.option("--min-slot-f1", callback=share, metavar="X", help="Status 1 with a lower slot F1."),
        click.option("--max-cer", callback=share, metavar="X", help="Status 1 with a higher concept error rate."),
        click.option(
            "--limits-on", type=WordOf(LimitsOn), default=LimitsOn.ESTIMATE.value, show_default=True,
            help="What limits are on: the figure, or the worse end of its 95 % interval.",
        ),
    )  # fmt: skip
