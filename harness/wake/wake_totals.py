"""The totals of a wake evaluation, whoever counted it: a live session, a list of files, a log that is read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ACCEPTED = ("INVTA", "CMDTA", "STTTA")
MISSED = ("INVFR", "CMDFR", "STTFR")
MISTAKEN = ("CMDSB", "STTSB")
WITH_REFERENCE = ("CMDTA", "CMDSB", "CMDFR", "STTTA", "STTSB", "STTFR")
WITH_WORDS = ("STTTA", "STTSB", "STTFR")


@dataclass(frozen=True, slots=True)
class StatedWords:
    """Words of references, and what went wrong with them, as lines state them: one by one they need not add up."""

    words: int = 0
    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0


def wake_totals(
    lines: Mapping[str, int], hours: float, *, count_in_vocabulary: bool, words: StatedWords
) -> dict[str, float]:
    """Totals by the log's keys, in its order, from how many lines of each key there are; none over nothing.

    hours: those of the false-accept rate. words: of the STT lines. Ratios and WER are per cent. Source: seed
    snsr-eval-batch, log file format.
    """

    def of(*keys: str) -> int:
        return sum(lines.get(key, 0) for key in keys)

    missed, accepted = of(*MISSED), of(*ACCEPTED)
    wrong = missed + of(*MISTAKEN)
    files = wrong + accepted
    false = of("OOVFA", "INVFA") if count_in_vocabulary else of("OOVFA")
    found: dict[str, float] = {}
    if hours or of("OOVFA"):
        found["FACOUNT"] = false
    if hours:
        found["FARATE"] = false / hours
    if files:
        found |= {"FRCOUNT": missed, "FRRATIO": 100 * missed / files}
        if of(*WITH_REFERENCE):
            found |= {"FR+SBCOUNT": wrong, "FR+SBRATIO": 100 * wrong / files}
        found["TACOUNT"] = accepted
    if of(*WITH_WORDS):
        if words.words:
            found["WER"] = 100 * (words.substitutions + words.insertions + words.deletions) / words.words
        found |= {
            "WER_WORDS": words.words,
            "WER_SUBSTITUTIONS": words.substitutions,
            "WER_INSERTIONS": words.insertions,
            "WER_DELETIONS": words.deletions,
        }
    return found
