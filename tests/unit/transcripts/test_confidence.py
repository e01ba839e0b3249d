"""What the confidences of recognised words are worth."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.choices import TextUnit
from harness.model.transcript import Normalisation
from harness.statistics.confidence import ConfidenceFigures, deviate
from harness.statistics.intervals import Share
from harness.transcripts.files.transcripts import read_pair
from harness.transcripts.reports.html import page
from harness.transcripts.reports.text import confidence
from harness.transcripts.scoring import score, word_confidences
from harness.transcripts.words import WordRules
from tests.known import known
from tests.unit.transcripts.files.told import written
from tests.unit.transcripts.reports.scorings import reported

REFERENCE = "f1 A ann 0.0 2.0 hello world good bye\n"
HEARD = (("hello", "0.98"), ("word", "0.3"), ("good", "0.9"), ("by", "0.8"), ("oh", "NA"))


def figures(
    folder: Path,
    heard: tuple[tuple[str, str], ...] = HEARD,
    reference: str = REFERENCE,
    wording: WordRules | None = None,
) -> ConfidenceFigures | None:
    lines = (f"f1 A {0.1 + 0.3 * number:.2f} 0.2 {word} {sure}\n" for number, (word, sure) in enumerate(heard))
    files = written(folder, "r.stm", reference), written(folder, "h.ctm", "".join(lines))
    references, hypotheses = read_pair(*files)
    wording = wording or WordRules(Normalisation.VERBATIM)
    return word_confidences(score(references, hypotheses, wording), hypotheses, wording)


def test_cross_entropy_reliability_and_detection_by_hand(tmp_path: Path) -> None:
    metrics = known(figures(tmp_path))
    assert (metrics.correct, metrics.left_out) == (Share(2, 4), 1)
    lost = math.log2(0.98) + math.log2(0.9) + math.log2(0.7) + math.log2(0.2)
    assert metrics.nce == pytest.approx((4 + lost) / 4)
    assert [(bucket.low, bucket.high, bucket.correct) for bucket in metrics.bins] == [
        (0.3, 0.4, Share(0, 1)),
        (0.8, 0.9, Share(0, 1)),
        (0.9, 1.0, Share(2, 2)),
    ]
    assert metrics.calibration_error == pytest.approx((0.3 + 0.8 + 2 * 0.06) / 4)
    assert [(point.threshold, point.missed, point.false) for point in metrics.det] == [
        (0.3, 0.0, 1.0),
        (0.8, 0.0, 0.5),
        (0.9, 0.0, 0.0),
        (0.98, 0.5, 0.0),
    ]
    assert metrics.equal_error == 0.0
    lines = list(confidence(metrics).lines(80))
    assert lines[-1].split() == ["without", "confidence", "1", "words"]
    assert any(line.startswith("NCE") and "0.246" in line for line in lines)


def test_one_wrong_word_of_confidence_1_does_not_decide_everything(tmp_path: Path) -> None:
    metrics = known(figures(tmp_path, (("hello", "1"), ("word", "1"), ("good", "0.5"))))
    assert metrics.nce == pytest.approx((3 * 0.9182958 + math.log2(1e-7) + math.log2(0.5)) / (3 * 0.9182958), rel=1e-4)


@pytest.mark.parametrize("heard", [(("hello", "0.9"), ("world", "0.8")), (("a", "0.9"), ("b", "0.8"))])
def test_there_is_no_cross_entropy_if_all_words_are_right_or_none_is(
    tmp_path: Path, heard: tuple[tuple[str, str], ...]
) -> None:
    metrics = known(figures(tmp_path, heard))
    assert (metrics.nce, metrics.equal_error) == (None, None)
    assert any("NCE" in line and "n/a" in line for line in confidence(metrics).lines(80))


def test_invalid_confidences_are_left_out(tmp_path: Path) -> None:
    assert figures(tmp_path, (("hello", "NA"), ("world", "7"))) is None
    assert known(figures(tmp_path, (("hello", "0.5"), ("world", "7")))).left_out == 1


def test_words_that_a_normalisation_parts_are_left_out(tmp_path: Path) -> None:
    spoken = replace(WordRules(Normalisation.SPOKEN))
    assert figures(tmp_path, (("845", "0.5"),), "f1 A ann 0.0 2.0 eight forty five\n", spoken) is None
    assert figures(tmp_path, wording=WordRules(Normalisation.VERBATIM, unit=TextUnit.CHAR)) is None
    # As many words as before, but "um" is dropped, and "it's" becomes two.
    heard = (("um", "0.1"), ("it's", "0.9"), ("late", "0.8"))
    assert figures(tmp_path, heard, "f1 A ann 0.0 2.0 it's late\n", spoken) is None
    with_event = (("[uh", "0.1"), ("hm]", "0.1"), ("late", "0.8"))
    assert figures(tmp_path, with_event, "f1 A ann 0.0 2.0 late\n", WordRules(Normalisation.SNOR)) is None


def test_words_beside_alternatives_keep_their_confidences(tmp_path: Path) -> None:
    marks = "f1 A * * <ALT_BEGIN>\nf1 A 0.3 0.1 world\nf1 A * * <ALT>\nf1 A 0.3 0.1 word\nf1 A * * <ALT_END>\n"
    files = (
        written(tmp_path, "r.stm", "f1 A ann 0.0 2.0 hello word bye\n"),
        written(tmp_path, "h.ctm", f"f1 A 0.1 0.1 hello 0.9\n{marks}f1 A 0.6 0.1 by 0.4\n"),
    )
    references, hypotheses = read_pair(*files)
    wording = WordRules(Normalisation.PLAIN)
    metrics = known(word_confidences(score(references, hypotheses, wording), hypotheses, wording))
    assert (metrics.correct, metrics.left_out) == (Share(1, 2), 1)


def test_a_page_draws_reliability_and_detection_error(tmp_path: Path) -> None:
    confidences = known(figures(tmp_path))
    files = read_pair(tmp_path / "r.stm", tmp_path / "h.ctm")
    scoring = score(*files, WordRules(Normalisation.VERBATIM))
    whole = page([replace(reported(scoring), confidence=confidences)], "words")
    assert whole.count("class=line d=") == whole.count("class=many") == len(confidences.bins)
    (drawn,) = re.findall(r'<polyline class=line points="([^"]*)"', whole)
    assert len(drawn.split()) == len(confidences.det)
    assert [deviate(share) for share in (0, 0.5, 1)] == pytest.approx([0, 0.5, 1])
    assert deviate(0.2) == pytest.approx(1 - deviate(0.8))
