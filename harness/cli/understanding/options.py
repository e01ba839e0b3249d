"""Options that verbs of `harness understand` share: how frames are counted, limits, and targets of reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text
from harness.base.text_table import shown
from harness.cli.options import (
    demand_limits,
    existing_or_shipped,
    flag,
    option,
    option_group,
    parse_share,
    repeatable,
    target_option,
)
from harness.cli.streams import STREAM, print_lines, refuse_overwriting, refuse_stdin_twice, write_output
from harness.model.choices import LimitBasis
from harness.model.errors import InputError, nearest
from harness.model.frozen import frozen
from harness.model.understanding import Chunking, Corpus, Detail
from harness.understanding.counts import Rule, ValueRule
from harness.understanding.figures import PRESETS, ZeroDivision

if TYPE_CHECKING:
    from harness.model.annotation import LabelSet
    from harness.statistics.verdict import DeclaredLimit
    from harness.understanding.reports.score_text import SystemReport

BOTH = "both"
_ZEROS = {"0": "zero", "1": "one", "seed": "seed"}


def chunking_option() -> Any:
    """`--chunking`."""
    help = "How to read BIO tags: in conlleval an I- may begin a slot, in iob2 it may not."
    return option(help, default=Chunking.CONLLEVAL)


def separator_option() -> Any:
    """`--separator`; an empty one is refused."""

    def demand_separator(ctx: click.Context, param: click.Parameter, value: str) -> str:
        if not value:
            raise InputError(
                "--separator is empty", remedy="Pass the character before specifiers, or remove --separator"
            )
        return value

    return option("Character before the specifier of a concept.", default="-", callback=demand_separator)


def attributes_option() -> Any:
    """`--attributes`."""
    return option(
        "Concepts whose names contain the separator, but no specifier.",
        metavar="A,B,…",
        callback=lambda ctx, param, value: tuple(filter(None, map(str.strip, (value or "").split(",")))),
    )


@frozen
class FrameOptions:
    """How frames are read and counted; the options are those of `frames_options`.

    - detail: the value of a `Detail`, or BOTH.
    - labels: as on the command line, see `declared_labels`.
    - by: () for every group of gold.
    """

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
        """The rule for counting, with the first detail. ordered, places: see `Rule`."""
        return Rule(self.chunking, self.details[0], self.separator, self.attributes, self.values,
                    spoken=self.spoken, ordered=ordered, places=places)  # fmt: skip

    @property
    def details(self) -> tuple[Detail, ...]:
        """The details under which concepts are compared: one, or both."""
        return tuple(Detail) if self.detail == BOTH else (Detail(self.detail),)

    @property
    def declared(self) -> tuple[str, ...] | None:
        """All declared labels. Raises InputError for an empty list."""
        return declared_labels(self.labels).ids if self.labels else None

    def demand_groups(self, gold: Corpus) -> None:
        """InputError for a column of --by that gold does not have."""
        columns = {name for utterance in gold.utterances for name, _ in utterance.groups}
        for column in self.by:
            if column not in columns:
                remedy = nearest(column, sorted(columns), listed="Groups") if columns else "Remove --by"
                raise InputError(f"--by: gold has no group {plain_text(column, 60)!r}", remedy=plain_text(remedy, 300))


def frames_options(values: ValueRule, *, of_files: bool) -> Any:
    """Options that become `FrameOptions`. values: the default of --values.

    of_files: also those that only the scoring of files has: both details, --spoken and --ignore-spans.
    """
    details = [detail.value for detail in Detail]
    if of_files:
        details.append(BOTH)
    slot_options = {
        "spoken": flag("Take the words of a tagged slot as its value."),
        "without_places": flag(
            "Compare slots without their word positions, for transcripts whose words differ.",
            "--ignore-spans",
            former=("--without-places",),
        ),
    }
    return option_group(
        chunking=chunking_option(),
        detail=option(
            f"Compare full concepts, or concepts without specifiers{', or both' if of_files else ''}.",
            type=click.Choice(details), default=Detail.FULL.value,
        ),
        separator=separator_option(),
        attributes=attributes_option(),
        values=option("How slot values are compared in metrics that use them.", default=values),
        **(slot_options if of_files else {}),
        zero=option(
            "Value of 0/0; seed: 1 for precision, else 0.", "--zero-division", former=("--zero",),
            type=click.Choice(list(_ZEROS)), default="0", callback=lambda ctx, param, value: PRESETS[_ZEROS[value]],
        ),
        labels=option("All declared intents, for macro averages.", metavar="LABELS.yaml|A,B,…"),
        by=repeatable(
            "Group results by this column; repeatable.", metavar="COLUMN", show_default="all columns of gold"
        ),
    )  # fmt: skip


def named_file(argument: str) -> tuple[str, str]:
    """The name and the file of `[NAME=]FILE`; "" without a name. An existing file may have = in its name."""
    name, _, path = argument.partition("=")
    if not name or not path or os.path.exists(argument):
        return "", argument
    return name, path


def declared_labels(argument: str) -> LabelSet:
    """The label set written as `a,b,c` or named as a .yaml file. Raises InputError for neither."""
    from harness.model.annotation import Label, LabelSet

    if argument.lower().endswith((".yaml", ".yml")):
        from harness.understanding.files.label_set_file import load_label_set

        return load_label_set(existing_or_shipped(Path(argument)))
    ids = dict.fromkeys(part.strip() for part in argument.split(",") if part.strip())
    if not ids:
        raise InputError("--labels is empty", remedy="Use a,b,c, or the .yaml file of a label set")
    return LabelSet("", "", tuple(map(Label, ids)), may_be_empty=True)


@frozen
class Targets:
    """Where reports are written. None if such a report is not requested."""

    json_target: str | None
    html_target: str | None

    def refuse(self, files: Sequence[str]) -> None:
        """Raises InputError for a report that would overwrite an input, or for standard input named twice."""
        for target in filter(None, (self.json_target, self.html_target)):
            refuse_overwriting(target, files)
        refuse_stdin_twice(files)

    def write(self, json: Callable[[], str], page: Callable[[], str], lines: Iterable[str]) -> None:
        """Writes JSON and page if requested, then the lines, unless JSON goes to standard output."""
        if self.json_target is not None:
            write_output(self.json_target, [json()])
        if self.html_target is not None:
            from harness.base.whole_file import write_atomically

            write_atomically(Path(self.html_target), page().encode())
        if self.json_target != STREAM:
            print_lines(lines)


def target_options(html: str) -> Any:
    """`--json` and `--html`, as `Targets`. html: the help of --html."""
    return option_group(
        json_target=target_option("--json", "Print JSON instead of text."),
        html_target=option(html, "--html", metavar="FILE", writes=True),
    )


@frozen
class FrameLimits:
    """Limits on results. limits_on: compare the estimate, or the worse end of its interval."""

    min_emr: float | None = option("Exit with status 1 when EMR is below X (or X%).", callback=parse_share, metavar="X")
    min_sfa: float | None = option("Exit with status 1 when SFA is below X.", callback=parse_share, metavar="X")
    min_slot_f1: float | None = option("Exit with status 1 when slot F1 is below X.", callback=parse_share, metavar="X")
    max_cer: float | None = option("Exit with status 1 when CER is above X.", callback=parse_share, metavar="X")
    limits_on: LimitBasis = option(
        "Compare limits with the estimate, or with bound, the worse end of its 95 % interval.",
        default=LimitBasis.ESTIMATE,
    )

    def demand(self, systems: Sequence[SystemReport], unfinished: Sequence[str] = ()) -> None:
        """Ends with status 1 if a limit does not hold, after printing why. A result of n/a does not hold any limit.

        unfinished: see `demand_limits`.
        """
        demand_limits((limit for system in systems for limit in self.limits(system)), unfinished)

    def limits(self, system: SystemReport) -> Iterator[DeclaredLimit]:
        """Each limit that is given, compared with its metric under every detail; with n/a if there is no such row."""
        from harness.statistics.verdict import SHARE, DeclaredLimit

        system_name = shown(system.counts.predicted, 100)
        limits = (
            ("emr", "--min-emr", self.min_emr),
            ("sfa", "--min-sfa", self.min_sfa),
            ("slot_f1", "--min-slot-f1", self.min_slot_f1),
            ("cer", "--max-cer", self.max_cer),
        )
        for key, option_name, limit in limits:
            if limit is None:
                continue
            rows = [row for row in system.rows if row.key == key]
            for row in rows:
                detail = f" ({row.detail})" if row.detail else ""
                yield DeclaredLimit(
                    option_name,
                    f"{row.name}{detail} of {system_name}",
                    limit,
                    row.value,
                    is_minimum=row.more_is_better,
                    unit=SHARE,
                    interval=row.interval,
                    why_not=row.counts,
                    has_interval=True,
                    compares_bound=self.limits_on is LimitBasis.BOUND,
                )
            if not rows:
                yield DeclaredLimit(
                    option_name, f"{key} of {system_name}", limit, None, unit=SHARE, is_minimum=key != "cer"
                )
