"""The promise of the intervals of word error rates, over corpora whose errors cluster."""

import numpy as np
import pytest

from tests.unit.transcripts.word_simulations import Corpus, called_different, kept

RUNS = 6000


@pytest.mark.soak
@pytest.mark.parametrize(
    ("corpus", "min_share"),
    [
        (Corpus(1, 20, 0.1), 0.94),
        (Corpus(1, 50, 0.1), 0.94),
        (Corpus(1, 100, 0.01), 0.94),
        (Corpus(1, 1000, 0.12), 0.94),
        (Corpus(1, 100, 0.6), 0.94),
        (Corpus(1, 100, 0.9), 0.94),
        (Corpus(1, 100, 0.7, inserted=0.3), 0.94),
        (Corpus(1, 50, 0.7, inserted=0.6), 0.93),
        (Corpus(3, 40, 0.1, between=0.3), 0.93),
        (Corpus(5, 40, 0.1, between=0.3, unequal=0.4), 0.93),
        (Corpus(10, 40, 0.1, between=0.1, unequal=0.9), 0.93),
        (Corpus(20, 20, 0.02, between=0.3), 0.93),
        (Corpus(40, 50, 0.12, between=0.3, unequal=0.4), 0.93),
    ],
    ids=str,
)
def test_intervals_keep_the_true_rate(corpus: Corpus, min_share: float) -> None:
    covered, below, above = kept(np.random.default_rng(21), corpus, RUNS)
    assert covered >= min_share * RUNS, f"{below / RUNS:.1%} below the truth, {above / RUNS:.1%} above"


@pytest.mark.soak
@pytest.mark.parametrize(
    "corpus",
    [
        Corpus(1, 50, 0.1),
        Corpus(1, 1000, 0.12),
        Corpus(1, 100, 0.7, inserted=0.5),
        Corpus(6, 40, 0.1, between=0.3, unequal=0.4),
        Corpus(30, 40, 0.1, between=0.3, unequal=0.9),
    ],
    ids=str,
)
def test_equally_good_systems_are_seldom_told_apart(corpus: Corpus) -> None:
    significant, excluded = called_different(np.random.default_rng(22), corpus, RUNS)
    assert significant == excluded
    assert significant <= 0.06 * RUNS
