"""Files → model: strict YAML, scenarios, benches and device profiles. Whatever is wrong has a file and a line."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.library.bench import load_bench
    from harness.library.profile import load_profile
    from harness.library.scenario import load_scenario, planned_of, planned_trials
    from harness.library.together import check_together

__all__ = ["check_together", "load_bench", "load_profile", "load_scenario", "planned_of", "planned_trials"]

# On use, since the models of YAML files take longer to import than many transcripts take to score.
_MODULES = {
    "check_together": "together",
    "load_bench": "bench",
    "load_profile": "profile",
    "load_scenario": "scenario",
    "planned_of": "scenario",
    "planned_trials": "scenario",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
