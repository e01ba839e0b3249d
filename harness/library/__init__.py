"""Files → model: strict YAML, scenarios, benches and device profiles. Whatever is wrong has a file and a line."""

from harness.library.bench import load_bench
from harness.library.profile import load_profile
from harness.library.scenario import load_scenario, planned_of, planned_trials
from harness.library.together import check_together

__all__ = ["check_together", "load_bench", "load_profile", "load_scenario", "planned_of", "planned_trials"]
