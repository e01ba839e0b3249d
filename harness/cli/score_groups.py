"""What the command line of `harness score` says of groups: the list of them, and which two to cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import click

from harness.cli.read_once import Readable, named
from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError
from harness.model.transcript import Groupings, Transcripts

if TYPE_CHECKING:
    from harness.transcripts.groups import GroupedComparison, GroupFigures
    from harness.transcripts.scoring import Scoring

Cross = tuple[str, str]
Sources = Sequence[Groupings]


def crosses(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[Cross, ...]:
    """An option's pairs of groupings: voice,level_dbfs."""
    found: list[Cross] = []
    for value in values:
        names = [name.strip() for name in value.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise click.BadParameter(f"{value!r} is not two different columns; write voice,level_dbfs", ctx, param)
        found.append((names[0], names[1]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Grouping:
    """What parts the utterances. file: a list, if there is one. crossed: names of columns, by twos."""

    file: Readable | None
    crossed: tuple[Cross, ...]

    def sources(self, reference: Readable, references: Transcripts, form: Format, encoding: str | None) -> Sources:
        """The list, and the labels of an stm file; InputError for what is wrong with either."""
        from harness.transcripts.files.lists import read_groups, read_labels, refuse_other_list

        found: list[Groupings] = []
        try:
            if self.file is not None:
                listed = read_groups(self.file.path, encoding, case_counts=form is Format.CSV)
                found.append(replace(listed, file=self.file.name))
            if form is Format.STM:
                taken = [one.name for groups in found for one in groups.groupings]
                labels = read_labels(reference.path, references, encoding, taken)
                found += [labels] if labels else []
        except InputError as error:
            raise named(error, *filter(None, [self.file]), reference) from error
        if self.file is not None:
            refuse_other_list(found[0], replace(references, file=reference.name))
        return found


def check_crosses(asked: Sequence[Cross], sources: Sequence[Groupings]) -> None:
    """InputError for a grouping that there is not, or that has too many labels."""
    from harness.transcripts.groups import MOST_LABELS

    known = {one.name: one for groups in sources for one in groups.groupings}
    for name in (name for both in asked for name in both):
        if name not in known:
            from harness.base.findings import nearest  # here, since it takes long to import

            remedy = nearest(name, list(known)) if known else "Name a list of them: --groups FILE.csv"
            raise InputError(f"--cross: there is no grouping {name!r}", remedy=remedy)
        if (labels := len(set(known[name].labels))) > MOST_LABELS:
            raise InputError(f"--cross: {name!r} has {labels:,} different labels", remedy="Cross conditions")


def compared_by_groups(
    systems: Sequence[tuple[Scoring, GroupFigures | None]],
) -> tuple[tuple[GroupedComparison, ...], ...]:
    """Each two systems within each group, in the order of `compare`; () where there are no groups."""
    from harness.transcripts.groups import compared_by_group

    return tuple(
        tuple(compared_by_group(first, second, parting) for parting in groups.partings)
        for (first, groups), (second, _) in combinations(systems, 2)
        if groups is not None
    )
