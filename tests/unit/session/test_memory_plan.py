"""Memory trials become pairs that nothing parts."""

from __future__ import annotations

import itertools
from dataclasses import replace

from harness.model.scenario import Axis, CloseDialogue, Defaults, Matrix, Order, TrialTemplate
from harness.model.trial import MemoryPart, Trial
from harness.session.plan import plan
from tests.unit.session.material import bench
from tests.unit.session.memory_material import TELLS, probe

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)


def pairs(trials: tuple[Trial, ...]) -> list[tuple[Trial, Trial]]:
    """Every prime with what comes next; AssertionError when that is not its follow-up."""
    found = []
    for trial, after in itertools.pairwise(trials):
        if trial.memory == MemoryPart():
            assert after.memory is not None
            assert after.memory.primed_by == trial.id
            found.append((trial, after))
    assert 2 * len(found) == sum(trial.memory is not None for trial in trials)
    return found


def test_a_pair_for_each_wait_and_repetition() -> None:
    closing = Defaults(close_dialogue=CloseDialogue(say="never mind"))
    made = plan(probe(*WAITS, repeat=3, defaults=closing), bench(TELLS))
    found = pairs(made)
    assert sorted((after.memory.wait_s, after.id) for _, after in found if after.memory) == sorted(
        (wait_s, f"memory.w{wait_s:g}.r{n}") for wait_s in WAITS for n in (1, 2, 3)
    )
    prime, after = next(pair for pair in found if pair[1].id == "memory.w8.r2")
    assert (prime.id, prime.reference, after.reference) == (
        "memory.w8.r2.prime",
        "what time is it",
        "set an alarm for one",
    )
    assert (prime.reprompt.max_attempts, after.reprompt.max_attempts, after.reprompt.max_interruptions) == (2, 1, 0)
    assert prime.close_dialogue is after.close_dialogue is None
    assert after.memory == MemoryPart(prime.id, 8.0, ("I still know that.",), ("I have forgotten that.",))
    assert [trial.number for trial in made] == list(range(1, 31))


def test_the_order_of_waits_is_random_in_each_repetition_and_the_seed_decides() -> None:
    def waits(seed: int | None) -> list[float]:
        return [
            after.memory.wait_s for _, after in pairs(plan(probe(*WAITS, repeat=4), bench(TELLS), seed)) if after.memory
        ]

    blocks = [tuple(waits(3)[at : at + 5]) for at in range(0, 20, 5)]
    assert all(sorted(block) == list(WAITS) for block in blocks)
    assert len(set(blocks)) > 1
    assert waits(3) == waits(3) != waits(4)
    assert waits(None) == waits(0)


def test_pairs_stay_together_in_a_shuffled_plan_with_other_trials() -> None:
    levels = Matrix((Axis("level_dbfs", (-26.0, -40.0), ("-26", "-40")),), order=Order.SHUFFLED, seed=9)
    wanted = probe(2.0, 4.0, repeat=2, matrix=levels)
    made = plan(replace(wanted, trials=(*wanted.trials, TrialTemplate("plain", "q0", repeat=6))), bench(TELLS))
    found = pairs(made)
    assert len(found) == 8
    assert all(prime.conditions == after.conditions for prime, after in found)
    kinds = [trial.memory is not None for trial in made]
    assert kinds != sorted(kinds)
    assert kinds != sorted(kinds, reverse=True)
