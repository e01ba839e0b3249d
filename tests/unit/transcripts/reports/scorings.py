"""Scorings to report on."""

from collections.abc import Sequence

from harness.model.transcript import Normalisation, Transcripts
from harness.statistics.intervals import Interval
from harness.transcripts.groups import GroupFigures
from harness.transcripts.reports.scoring_json import SourcedScoring, SourceFile
from harness.transcripts.scoring import Scoring, score
from harness.transcripts.words import WordRules

VERBATIM = WordRules(Normalisation.VERBATIM)
HOSTILE = "\x1b]0;title\x07\x1b[31m[red]‮abc​\x9b2J"
WIDE = "ｗｉｄｅ東京"


def transcripts(file: str, texts: dict[str, str], speakers: dict[str, str] | None = None) -> Transcripts:
    speakers_of = tuple((speakers or {}).get(id_, "") for id_ in texts)
    return Transcripts(file, tuple(texts), tuple(texts.values()), tuple(range(1, len(texts) + 1)), speakers_of)


def prefixes(ids: Sequence[str]) -> list[str]:
    return [id_.partition("_")[0] for id_ in ids]


def scored(
    references: dict[str, str],
    hypotheses: dict[str, str],
    wording: WordRules = VERBATIM,
    *,
    title: str = "",
    drop: bool = False,
    optional_words: bool = False,
    fragments: bool = False,
) -> Scoring:
    return score(
        transcripts("ref.trn", references),
        transcripts("hyp.trn", hypotheses),
        wording,
        speakers_of=prefixes,
        title=title,
        drop_missing=drop,
        optional_words=optional_words,
        fragments=fragments,
    )


def every_sort(title: str = "") -> Scoring:
    """Two speakers, each sort of error, an empty reference, one without hypothesis and one of no reference."""
    references = {
        "amy_1": "show me the flights",
        "amy_2": "to boston",
        "amy_3": "",
        "bob_1": "東京 へ 行く e\u0301a",
        "bob_2": "never heard",
    }
    hypotheses = {
        "amy_1": "show me flights",
        "amy_2": "two boston please",
        "amy_3": "uh",
        "bob_1": "東京 に 行く e\u0301a",
        "dog_1": "woof",
    }
    return scored(references, hypotheses, title=title)


def foreign() -> Scoring:
    """Wide and hostile ids, speakers and words."""
    references = {f"{WIDE * 9}_1": f"{WIDE} {HOSTILE}", f"{HOSTILE}_2": "a " * 40, "\u0301" * 80 + "_3": "x" * 900}
    return scored(references, {f"{WIDE * 9}_1": f"{HOSTILE} b", f"{HOSTILE}_2": "b " * 39}, title=HOSTILE + WIDE * 30)


def reported(scoring: Scoring, interval: Interval | None = None, groups: GroupFigures | None = None) -> SourcedScoring:
    """As the verb hands it to the reports."""
    file = SourceFile("ref.trn", "trn", "utf-8", "00")
    return SourcedScoring(scoring, file, file, interval, groups=groups)
