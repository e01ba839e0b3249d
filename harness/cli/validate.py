"""`harness check validate`: check scenarios, benches, device profiles and other files; plays nothing."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text, shell_word
from harness.base.progress import tracked
from harness.cli.options import SHIPPED_FILE, argument, json_option, verb
from harness.cli.streams import drawn_progress
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems, Place, UnmetNeed, place_of_problem
from harness.model.numbers import counted
from harness.model.scenario import Scenario, TrialKind
from harness.model.trial import trials_in_words

if TYPE_CHECKING:
    from harness.model.bench import DeviceProfile

EXIT_PROBLEMS = 2  # The same status as for wrong usage and unreadable files.
MAX_LINE_CHARS = 2000
_FIRST = (FileKind.SCENARIO, FileKind.BENCH, FileKind.DEVICE, FileKind.NORMALISATION, FileKind.GRAMMAR)
"""The kinds that are printed first, in this order. Their files have ids."""


@dataclass(slots=True)
class ValidatedFiles:
    """The files that were checked, and what is wrong with them.

    - files: kind, path and content of each file that could be read.
    - unmet: needs of scenarios that the bench does not meet.
    - foreign: YAML files in folders that are not files of the harness.
    - bench_notes: (scenario, note) about scenarios on the bench.
    - plans: kinds of the trials of each scenario on the bench.
    """

    files: list[tuple[FileKind, Path, Any]] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)
    unmet: list[UnmetNeed] = field(default_factory=list)
    foreign: list[Path] = field(default_factory=list)
    bench_notes: list[tuple[Path, str]] = field(default_factory=list)
    plans: dict[Path, list[TrialKind]] = field(default_factory=dict)

    def of_kind(self, kind: FileKind) -> list[tuple[Path, Any]]:
        return [(path, content) for other_kind, path, content in self.files if other_kind is kind]

    def add_problem(self, error: InputError) -> None:
        """Adds a problem, or each of several, unless it is known already."""
        for problem in error.problems if isinstance(error, InputProblems) else (error,):
            if str(problem) not in (str(earlier) for earlier in self.problems):
                self.problems.append(problem)

    def read(self, path: Path) -> None:
        """Reads a file of any kind. What is wrong with it is added to the problems."""
        from harness.base.findings import kind_of
        from harness.devices.profiles.profile import load_profile
        from harness.rating.files.rounds import load_gold, load_rater_keys, load_training, read_round
        from harness.scenario.bench import load_bench
        from harness.scenario.conditions import load_conditions
        from harness.scenario.scenario import load_scenario
        from harness.transcripts.files.normalisation_file import load_normalisation
        from harness.understanding.files.grammar_file import load_grammar
        from harness.understanding.files.label_set_file import load_label_set

        readers: dict[FileKind, Callable[[Path], Any]] = {
            FileKind.SCENARIO: load_scenario,
            FileKind.BENCH: load_bench,
            FileKind.CONDITIONS: load_conditions,
            FileKind.DEVICE: lambda path: load_profile(path, beside=Path()),
            FileKind.NORMALISATION: load_normalisation,
            FileKind.GRAMMAR: load_grammar,
            FileKind.ROUND: read_round,
            FileKind.TRAINING: load_training,
            FileKind.GOLD: load_gold,
            FileKind.RATER_KEYS: load_rater_keys,
            FileKind.LABEL_SET: load_label_set,
        }
        try:
            kind = kind_of(path)
            content = readers[kind](path)
            self.files.append((kind, path, content))
            if kind is FileKind.DEVICE:
                self._run_samples(path, content)
        except InputError as error:
            self.add_problem(error)

    def _run_samples(self, path: Path, profile: DeviceProfile) -> None:
        """Runs the samples of a profile, which are its tests. A different result is a problem."""
        from harness.devices.profiles.samples import check_samples

        for result in check_samples(profile):
            if result.wrong:
                problem = f"the sample gives a different result: {'; '.join(line.strip() for line in result.wrong)}"
                remedy = (
                    f"Correct the rules, or `gives` in the sample; see harness admin devices test {shell_word(path)}"
                )
                self.add_problem(InputError(problem, place=Place(str(path), result.sample.line), remedy=remedy))

    def check_scenarios(self) -> None:
        """Checks every scenario on the bench if exactly one bench was given. Otherwise it checks only the voices."""
        scenarios = self.of_kind(FileKind.SCENARIO)
        if not scenarios:
            return
        from harness.scenario.compatibility import check_compatibility
        from harness.session.engine.prepare import refuse_unplayable, refuse_unspeakable
        from harness.session.plan import plan
        from harness.session.plan_notes import evidence_notes, percentile_notes

        benches = [bench for _, bench in self.of_kind(FileKind.BENCH)]
        bench = benches[0] if len(benches) == 1 else None
        for path, scenario in scenarios:
            try:
                if bench is None:
                    refuse_unspeakable(scenario)
                    continue
                check_compatibility(scenario, bench)
                trials = plan(scenario, bench)
                self.plans[path] = [trial.kind for trial in trials]
                refuse_unplayable(scenario, trials)
                limits = scenario.limits
                notes = [*evidence_notes(trials, limits, bench.operator), *percentile_notes(trials, limits)]
                self.bench_notes += ((path, note) for note in notes)
            except UnmetNeed as need:
                self.unmet.append(need)
            except InputError as error:
                self.add_problem(error)

    def sorted_problems(self) -> list[InputError]:
        return sorted(self.problems, key=place_of_problem)


@verb("validate")
def command(
    *,
    paths: tuple[Path, ...] = argument(required=True, type=SHIPPED_FILE),
    as_json: bool = json_option("Print the result as JSON."),
) -> None:
    """Check scenarios, benches, device profiles, normalisations and files for raters. Plays nothing.

    PATHS are files or folders. If they include one bench, scenarios are also checked against it. The command reads
    every recording completely, and tests every voice. It does not look for devices, as
    `harness check doctor --bench BENCH` does.

    Exit status: 0 no problems · 2 problems found.
    """
    findings = ValidatedFiles()
    with drawn_progress():
        for path in tracked(list(_select_files(paths, findings)), "Reading files"):
            findings.read(path)
        findings.check_scenarios()
    if as_json:
        click.echo(json.dumps(_as_json(findings), indent=2))
    else:
        _print_findings(findings)
    if findings.problems:
        sys.exit(EXIT_PROBLEMS)


def _select_files(paths: tuple[Path, ...], findings: ValidatedFiles) -> Iterator[Path]:
    """The named files and those in the named folders, each once. YAML in a folder that is not ours is only listed."""
    from harness.base.findings import is_foreign

    visited: set[str] = set()
    for path in paths:
        files = [path]
        if os.path.isdir(path):  # path.is_dir() fails at a name that is too long
            files = sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml"))
        if not files:
            problem = "there is no YAML file in this folder"
            findings.add_problem(InputError(problem, place=Place(str(path)), remedy="Choose another folder"))
        for file in files:
            real_path = os.path.realpath(file)  # resolve() fails at a link to itself
            if real_path in visited:
                continue
            visited.add(real_path)
            if file != path and is_foreign(file):
                findings.foreign.append(file)
            else:
                yield file


def _print_findings(findings: ValidatedFiles) -> None:
    """Prints a line for each file, note and unmet need, and the problems to standard error."""
    for kind, path, content in _in_print_order(findings):
        click.echo(plain_text(f"{path}: {_summary(kind, content, findings.plans.get(path))}", MAX_LINE_CHARS))
    for path, note in _notes(findings):
        click.echo(plain_text(f"{path}: note: {note}", MAX_LINE_CHARS))
    for path in findings.foreign:
        click.echo(plain_text(f"{path}: ignored, not a harness file", MAX_LINE_CHARS))
    for need in findings.unmet:
        click.echo(plain_text(f"would be skipped: {need}", MAX_LINE_CHARS))
    problems = findings.sorted_problems()
    for problem in problems:
        click.echo(plain_text(str(problem), MAX_LINE_CHARS), err=True)
    if problems:
        file_count = len({problem.place.file for problem in problems if problem.place})
        click.echo(f"{counted(len(problems), 'problem')} in {counted(file_count, 'file')}", err=True)


def _in_print_order(findings: ValidatedFiles) -> list[tuple[FileKind, Path, Any]]:
    """Scenarios first, then what they need, then files for raters and annotators as they were named."""
    position_by_kind = {kind: position for position, kind in enumerate(_FIRST)}
    return sorted(findings.files, key=lambda file: position_by_kind.get(file[0], len(_FIRST)))


def _summary(kind: FileKind, content: Any, planned_kinds: list[TrialKind] | None) -> str:
    """What a file is called and contains. planned_kinds: see `_plan_text`."""
    match kind:
        case FileKind.SCENARIO:
            return f"scenario {content.id}: {_plan_text(content, planned_kinds)}"
        case FileKind.BENCH:
            speakers = counted(len(content.loudspeakers), "loudspeaker")
            return f"bench {content.id}: {counted(len(content.devices), 'device')}, {speakers}"
        case FileKind.DEVICE:
            reports = ", ".join(sorted(content.reports)) or "nothing (a black box)"
            phrases = ", ".join(f'"{phrase}"' for phrase in content.wake_phrases) or "none"
            return f"device {content.id}: wake phrases {phrases}; reports {reports}"
        case FileKind.NORMALISATION:
            return f"normalisation {content.id}: {content.base.value}, then {counted(len(content.same), 'pair')}"
        case FileKind.GRAMMAR:
            pattern_count = sum(len(intent.sentences) for intent in content.intents)
            return (
                f"grammar {content.name}: {counted(pattern_count, 'pattern')}, {counted(len(content.values), 'list')}"
            )
        case FileKind.ROUND:
            raters = counted(len(content.raters), "named rater")
            return f"round {content.id}: {counted(len(content.sessions), 'session')}, {raters}"
        case FileKind.CONDITIONS:
            return counted(len(content), "condition")
        case FileKind.TRAINING:
            return f"training of {counted(len(content), 'exercise')}"
        case FileKind.GOLD:
            return f"gold of {counted(len(content), 'known answer')}"
        case FileKind.LABEL_SET:
            return f"label set {content.id}: {counted(len(content.labels), 'label')}"
        case FileKind.RATER_KEYS:
            return "rater keys are valid"


def _notes(findings: ValidatedFiles) -> Iterator[tuple[Path, str]]:
    """(path, note) of each remark on a scenario, first on itself and then on the bench."""
    from harness.scenario.assets import length_notes
    from harness.scenario.references import numeral_notes
    from harness.scenario.trials import noise_notes, wait_notes

    benches = [bench for _, bench in findings.of_kind(FileKind.BENCH)]
    for path, scenario in findings.of_kind(FileKind.SCENARIO):
        notes = (
            *wait_notes(scenario),
            *noise_notes(scenario),
            *numeral_notes(scenario, benches),
            *length_notes(scenario),
        )
        yield from ((path, note) for note in notes)
    yield from findings.bench_notes


def _plan_text(scenario: Scenario, planned_kinds: list[TrialKind] | None) -> str:
    """How many trials there are. If some are not queries, trials are counted by kind, since not every axis of the
    matrix multiplies each kind.

    planned_kinds: of the trials on the bench; None without a bench, when the number of probes is not known.
    """
    from harness.scenario.scenario import planned_trials

    counts_by_kind = _trials_by_kind(scenario, planned_kinds)
    if set(counts_by_kind) <= {TrialKind.QUERY}:
        trials, cells = planned_trials(scenario)
        return f"{counted(trials, 'trial')} × {counted(cells, 'cell')} = {trials * cells} planned"
    kinds = planned_kinds or list(counts_by_kind.elements())
    total_text = trials_in_words(kinds)
    if planned_kinds is None and any(trial.ambient is not None and trial.ambient.probe for trial in scenario.trials):
        total_text = f"{total_text}, and probes"
    return f"{' + '.join(f'{count} {kind}' for kind, count in counts_by_kind.items())} = {total_text}"


def _trials_by_kind(scenario: Scenario, planned_kinds: list[TrialKind] | None) -> Counter[TrialKind]:
    """Numbers of trials without probes. planned_kinds: see `_plan_text`.

    With a bench they may be fewer: what it injects into a device is not multiplied by positions.
    """
    from harness.scenario.scenario import trial_count

    if planned_kinds is not None:
        return Counter(kind for kind in planned_kinds if kind is not TrialKind.PROBE)
    counts: Counter[TrialKind] = Counter()
    for trial in scenario.trials:
        counts[trial.kind] += trial_count(trial, scenario.matrix)
    return counts


def _as_json(findings: ValidatedFiles) -> dict[str, object]:
    from harness.scenario.scenario import planned_trials

    files: list[dict[str, object]] = []
    for kind, path, content in _in_print_order(findings):
        row: dict[str, object] = {"file": str(path), "kind": kind.value}
        if kind in _FIRST:
            row["id"] = content.name if kind is FileKind.GRAMMAR else content.id
        if kind is FileKind.SCENARIO:
            trials, cells = planned_trials(content)
            planned = _trials_by_kind(content, findings.plans.get(path)).total()
            row |= {"trials": trials, "cells": cells, "planned": planned}
        files.append(row)
    return {
        "ok": not findings.problems,
        "files": files,
        "notes": [{"file": str(path), "what": note} for path, note in _notes(findings)],
        "left_alone": [str(path) for path in findings.foreign],
        "problems": [_error_json(problem) for problem in findings.sorted_problems()],
        "unmet_needs": [_error_json(need) for need in findings.unmet],
    }


def _error_json(error: InputError | UnmetNeed) -> dict[str, object]:
    place = error.place or Place("")
    place_fields = {"file": place.file, "line": place.line or None, "column": place.column or None}
    return {**place_fields, "what": error.what, "remedy": error.remedy}
