"""Context-memory probes become pairs of trials: a prime, and the follow-up that comes after a wait."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.model.scenario import MemorySpec
from harness.model.trial import MemoryPart, Trial

Pair = tuple[Trial, Trial]
"""A prime and its follow-up, which are always played one after the other."""


def pair(asked: Trial, follow_up: Trial, spec: MemorySpec, wait_s: float) -> Pair:
    """The prime and the follow-up of one wait. asked, follow_up: the two queries as trials with the follow-up's id.

    Neither closes a dialogue: closing words would be what the device has to remember. The follow-up is said once, since
    after it the memory is another; interrupted, it does not count.
    """
    prime = replace(asked, id=f"{follow_up.id}.prime", close_dialogue=None, effect=None, memory=MemoryPart())
    once = replace(follow_up.reprompt, max_attempts=1, max_interruptions=0)
    part = MemoryPart(prime.id, wait_s, spec.shows, spec.forgets)
    return prime, replace(follow_up, reprompt=once, close_dialogue=None, effect=None, memory=part)


def wait_slug(wait_s: float) -> str:
    """The part of an id that names a wait: w8, w0.5."""
    return f"w{wait_s:g}"


def in_blocks(repetitions: Sequence[Sequence[Pair]], seed: str) -> Iterator[Pair]:
    """The pairs of a template, repetition after repetition, each in an order of its own.

    So waits are not confused with what changes in the course of a session, and a session that is cut off has tried
    each wait about as often.
    """
    chance = random.Random(seed)
    for one in repetitions:
        shuffled = list(one)
        chance.shuffle(shuffled)
        yield from shuffled
