"""A hypothesis scored against its reference, as the command line of `harness score` asks for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness.cli import score_output as output
from harness.cli.read_once import Readable, named
from harness.cli.score_groups import Grouping, check_crosses
from harness.cli.score_options import Asked
from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError
from harness.transcripts.files.transcripts import format_of, read_pair, speaker_scheme
from harness.transcripts.groups import GroupFigures, Interval, group_figures, interval_of, with_queries
from harness.transcripts.scoring import Scoring, score


@dataclass(frozen=True, slots=True)
class ScoredFile:
    """A file that was scored."""

    readable: Readable
    format: Format
    encoding: str


@dataclass(frozen=True, slots=True)
class System:
    """A hypothesis that was scored. interval: 95 % of its WER. groups: None where there are none."""

    scoring: Scoring
    interval: Interval | None
    groups: GroupFigures | None
    reference: ScoredFile
    hypothesis: ScoredFile


def scored(reference: Readable, hypothesis: Readable, asked: Asked, grouping: Grouping) -> System:
    """Reads both files and scores them; InputError."""
    reference_format = asked.reference_format or format_of(Path(reference.name), "--reference-format")
    hypothesis_format = asked.hypothesis_format or format_of(Path(hypothesis.name), "--hypothesis-format")
    wording = asked.wording(reference_format)
    scheme = speaker_scheme(asked.by)
    try:
        of, said = read_pair(reference.path, hypothesis.path, reference_format, hypothesis_format, asked.encoding)
    except InputError as error:
        raise named(error, reference, hypothesis) from error
    scoring = score(
        replace(of, file=reference.name),
        replace(said, file=hypothesis.name),
        wording,
        asked.rules(wording),
        speakers_of=scheme.speakers_of,
        drop_missing=asked.like_sclite,
        optional_words=asked.optional_words,
        fragments=asked.fragments,
    )
    if scoring.surplus and len(scoring.without_hypothesis) == len(of):
        output.warn_of_other_ids(hypothesis.name, scoring.surplus[0], reference.name, of.ids[0])
    sources = grouping.sources(reference, of, reference_format, asked.encoding)
    check_crosses(grouping.crossed, sources)
    scoring = with_queries(scoring, sources)
    groups = group_figures(scoring, sources, grouping.crossed) if sources else None
    files = (
        ScoredFile(reference, reference_format, of.encoding),
        ScoredFile(hypothesis, hypothesis_format, said.encoding),
    )
    return System(scoring, interval_of(scoring), groups, *files)
