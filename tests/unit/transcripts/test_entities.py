"""Errors of the spans that a reference marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.score import command
from harness.model.transcript import Normalisation
from harness.statistics.intervals import Share
from harness.transcripts.entities import EntityErrors, entity_errors
from harness.transcripts.files.transcripts import read_pair
from harness.transcripts.scoring import score
from harness.transcripts.words import WordRules
from tests.known import known
from tests.unit.transcripts.files.told import written

REFERENCE = "wake me at seven;time thirty;time in new;city york;city and york;city (u1)\n"


def errors(
    folder: Path, heard: str, reference: str = REFERENCE, normalisation: Normalisation = Normalisation.VERBATIM
) -> EntityErrors | None:
    files = written(folder, "r.trn", reference), written(folder, "h.trn", heard)
    references, hypotheses = read_pair(*files)
    wording = WordRules(normalisation)
    return entity_errors(score(references, hypotheses, wording), references, wording)


@pytest.mark.parametrize(
    ("heard", "time", "city"),
    [
        ("wake me at seven thirty in new york and york", 0, 0),
        ("wake me seven thirty in new york york", 0, 0),
        ("wake me at seven forty in new york and york", 1, 0),
        ("wake me at seven uh thirty in york and york", 1, 1),
        ("wake me at uh seven thirty uh in new york and yolk", 0, 1),
        ("", 1, 2),
    ],
)
def test_an_entity_is_wrong_as_a_whole(tmp_path: Path, heard: str, time: int, city: int) -> None:
    tally = known(errors(tmp_path, f"{heard} (u1)\n"))
    assert tally.by_tag == (("city", Share(city, 2)), ("time", Share(time, 1)))
    assert tally.total == Share(time + city, 3)


def test_entities_are_left_out_if_a_word_is_dropped_and_another_split(tmp_path: Path) -> None:
    reference = "um wake me at 7:30;time (u1)\nat noon;time (u2)\n"
    heard = "wake me at eleven thirty (u1)\nat noon (u2)\n"
    tally = known(errors(tmp_path, heard, reference, Normalisation.SPOKEN))
    assert (tally.total, tally.left_out) == (Share(0, 1), 1)


def test_alternatives_are_left_out_and_texts_without_tags_have_none(tmp_path: Path) -> None:
    tally = known(errors(tmp_path, "a b c (u1)\n", "{ a / b } b;x c (u1)\n"))
    assert (tally.by_tag, tally.left_out) == ((), 1)
    assert errors(tmp_path, "a (u1)\n", r"a\;b c (u1)" + "\n") is None
    assert errors(tmp_path, "a (u1)\n", "a @ (u1)\n") is None


def test_the_report_has_a_row_for_each_tag(tmp_path: Path) -> None:
    reference = written(tmp_path, "r.trn", REFERENCE)
    hypothesis = written(tmp_path, "h.trn", "wake me at seven thirty in york and york (u1)\n")
    result = CliRunner().invoke(command, ["-r", str(reference), "-H", str(hypothesis)])
    rows = [line.split()[:5] for line in result.output.split("\n")]
    assert ["city", "2", "1", "50.00", "%"] in rows, result.output
    assert ["all", "3", "1", "33.33", "%"] in rows
    unmarked = CliRunner().invoke(command, ["-r", str(reference), "-H", str(hypothesis), "--marks", "none"])
    assert "entities" not in unmarked.output
