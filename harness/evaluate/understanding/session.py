"""What devices were asked and what they understood, as annotated corpora: gold and predicted, of sessions' logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.evaluate.progress import Progress
from harness.model.understanding import Corpus


class Which(StrEnum):
    """Which attempt of a trial counts: the first that tests something, or the one that decided."""

    FIRST = "first"
    DECIDING = "deciding"


@dataclass(frozen=True, slots=True)
class SessionCorpora:
    """gold, predicted: an utterance for each trial whose frame is known, in the same order and with the same ids.

    unknown: ids of trials that were decided, and of which nothing says what the device understood; in neither corpus.
    A device that stayed silent to the query has understood nothing: its prediction has no intents and no slots.
    """

    gold: Corpus
    predicted: Corpus
    unknown: tuple[str, ...] = ()


def session_corpora(sessions: Iterable[Progress], which: Which = Which.DECIDING) -> SessionCorpora:
    """The corpora of one session or several; of several, ids begin with the session's.

    Of each understand trial its latest finished take, if that says something of the device. id: of the trial. words: of
    the reference. groups: device, query_class, query, session, attempt (its number) and every condition of the matrix.
    Slots have no place; their values, on both sides, are after the scenario's normalisation. Where the trial does not
    look at slots, the gold has none (None).
    """
    raise NotImplementedError
