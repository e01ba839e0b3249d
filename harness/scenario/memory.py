"""Context-memory probes in scenario files: what primes, what is asked after it, and after which waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from harness.base import plugins
from harness.base.findings import Findings, nearest
from harness.base.findings import Path as KeyPath
from harness.model.bench import Bench, Device, ObservationKind, OperatorPresence
from harness.model.errors import Place, UnmetNeed
from harness.model.scenario import Evidence, MemorySpec, Scenario, TrialTemplate
from harness.scenario.memory_file import SpreadKeys
from harness.scenario.trial_file import TrialKeys

LAG_S = 0.3
"""So much later than its moment the end of speech may be told (session.attempt waits for it)."""
TextOf = Callable[[str, KeyPath], str]


def check_follow_up(written: Mapping[str, object], queries: Collection[str], at: KeyPath, found: Findings) -> None:
    """Notes a follow-up that is no stimulus, or that is the query which primes."""
    follow_up = written.get("follow_up")
    if not isinstance(follow_up, str):
        return
    if follow_up not in queries:
        remedy = nearest(follow_up, queries, listed="Stimuli")
        found.add((*at, "follow_up"), f"no stimulus is called {follow_up!r}", remedy)
    elif follow_up == written.get("query"):
        remedy = "Name another stimulus: one that makes sense only to a device which remembers the query"
        found.add((*at, "follow_up"), "the follow-up is the query itself, which needs no memory", remedy)


def memory(keys: TrialKeys, at: KeyPath, found: Findings, text_of: TextOf) -> MemorySpec | None:
    """What a context-memory probe asks after the query; None when keys are missing, which is noted elsewhere."""
    if keys.follow_up is None or keys.waits_s is None or keys.shows is None:
        return None
    waits_s = _spread(keys.waits_s, at, found) if isinstance(keys.waits_s, SpreadKeys) else tuple(keys.waits_s)
    if not isinstance(keys.waits_s, SpreadKeys):
        if len(waits_s) == 1:
            remedy = "Write two or more: one after which it may still remember, and one after which it may not"
            found.add((*at, "waits_s"), "one wait cannot say how long it remembers", remedy)
        for number, wait_s in enumerate(waits_s):
            if wait_s in waits_s[:number]:
                what = f"the wait of {wait_s:g} s is there twice"
                found.add((*at, "waits_s", number), what, "Remove it; `repeat` says how often each is tried")
    shows = tuple(text_of(text, (*at, "shows", n)) for n, text in enumerate(keys.shows))
    forgets = tuple(text_of(text, (*at, "forgets", n)) for n, text in enumerate(keys.forgets or ()))
    for number, text in enumerate(forgets):
        if text.casefold() in (one.casefold() for one in shows):
            what = f"{text!r} cannot both show memory and the lack of it"
            found.add((*at, "forgets", number), what, "Remove it from one of shows and forgets")
    return MemorySpec(keys.follow_up, waits_s, shows, forgets)


def _spread(keys: SpreadKeys, at: KeyPath, found: Findings) -> tuple[float, ...]:
    """Waits in equal ratios, to 0.1 s, which is finer than any of them is kept."""
    if not keys.from_s < keys.to:
        what = f"the waits go from {keys.from_s:g} s to {keys.to:g} s"
        found.add((*at, "waits_s", "to"), what, "Write a `to` that is above `from`")
        return ()
    waits_s = tuple(round(float(wait_s), 1) for wait_s in np.geomspace(keys.from_s, keys.to, keys.count))
    if len(set(waits_s)) < len(waits_s) or waits_s[0] == 0:
        remedy = "Write a smaller `count`, or waits that lie further apart"
        found.add((*at, "waits_s", "count"), f"{keys.count} waits lie closer together than 0.1 s", remedy)
    return waits_s


def demand_evidence(trial: TrialTemplate, scenario: Scenario, device: Device, bench: Bench, place: Place) -> None:
    """UnmetNeed when nobody could tell that the prime was understood, or what the follow-up was answered with."""
    reports = device.profile.reports if device.connection is not None else frozenset()
    wanted = trial.evidence or scenario.defaults.evidence
    asks_operator = wanted is Evidence.OPERATOR or (
        wanted is Evidence.AUTO and ObservationKind.TRANSCRIPT not in reports
    )
    if asks_operator and bench.operator is OperatorPresence.ABSENT:
        what = f"nobody can say whether {device.id!r} understood the prime of {trial.id!r}: it reports no transcript"
        remedy = "Write `operator: auto` in the bench, or `evidence: none`, and every answer counts as understood"
        raise UnmetNeed(what, place=place, remedy=remedy)
    if bench.microphone is None:
        what = f"the trial {trial.id!r} waits from the end of an answer, and no microphone hears it"
        raise UnmetNeed(what, place=place, remedy="Add `microphone: {driver: microphone, …}` to the bench")
    if ObservationKind.RESPONSE not in reports and not plugins.names(plugins.Group.RECOGNISERS):
        what = f"nothing can tell what {device.id!r} answers in {trial.id!r}: it reports no response"
        remedy = "Use a device whose profile reports response, or install a recogniser (extra `recogniser`)"
        raise UnmetNeed(what, place=place, remedy=remedy)


def notes(scenario: Scenario) -> Iterator[str]:
    """What is as well to know before a probe is run: waits that cannot be kept."""
    for trial in scenario.trials:
        if trial.memory is None:
            continue
        rule = trial.reprompt or scenario.defaults.reprompt
        shortest_s = rule.end_silence_ms / 1000 + LAG_S
        short = ", ".join(f"{wait_s:g}" for wait_s in sorted(trial.memory.waits_s) if wait_s < shortest_s)
        if short:
            yield (
                f"the trial {trial.id!r} keeps no wait below {shortest_s:g} s ({short}): only then is it known that an "
                f"answer has ended. A smaller `end_silence_ms` allows for shorter ones"
            )
