"""Probes among the trials of a plan: wake phrases that prove that devices listen, around and within ambient sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience
from harness.model.trial import Trial

OTHER_TRIAL_S = 10.0
"""How long a trial is taken to last that is no ambient one."""


@dataclass(slots=True)
class _Stretch:
    """What lies behind the last probe of one soak; length_s: everything that was played since, None before it."""

    left: int
    every_s: float
    length_s: float | None = None
    ambient: bool = False
    probes: int = 0


def with_probes(trials: Sequence[Trial], probe: Mapping[str, Callable[[int], Trial]]) -> Iterator[Trial]:
    """The trials in their order, with probes between them.

    probe: template of ambient trials → its probe of that number, from 1. Of each such soak there is a probe before the
    first segment, after the last, and between them, so that no more than `probe_every_s` lies between two of them.
    """
    stretches = {name: _Stretch(0, 0.0) for name in probe}
    for trial in trials:
        if (one := stretches.get(_soak(trial))) is not None:
            one.left += 1
            one.every_s = trial.listening.probe_every_s if trial.listening else 0.0
    for trial in trials:
        lasts_s, soak = _duration_s(trial), _soak(trial)
        for name, stretch in stretches.items():
            if name == soak or stretch.ambient:
                late = stretch.length_s is None or stretch.length_s + lasts_s > stretch.every_s
                if late:
                    yield _next(stretch, probe[name])
            if stretch.length_s is not None:
                stretch.length_s += lasts_s
        yield trial
        if (mine := stretches.get(soak)) is not None:
            mine.ambient, mine.left = True, mine.left - 1
            if not mine.left:
                yield _next(mine, probe[soak])


def _next(stretch: _Stretch, probe: Callable[[int], Trial]) -> Trial:
    stretch.probes += 1
    stretch.length_s, stretch.ambient = 0.0, False
    return probe(stretch.probes)


def _soak(trial: Trial) -> str:
    """The template of an ambient trial; "" of others."""
    ambient = trial.listening is not None and trial.listening.kind is TrialKind.AMBIENT
    return trial.template if ambient else ""


def _duration_s(trial: Trial) -> float:
    sound = trial.recipe.query
    return sound.duration_s if isinstance(sound, Ambience) else OTHER_TRIAL_S
