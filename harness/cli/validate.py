"""`harness validate`: check scenarios, benches, device profiles and what else people write; nothing is played."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import counted, plain_text
from harness.cli.options import SHIPPED_FILE, Command, json_option
from harness.model.bench import Bench, DeviceProfile
from harness.model.errors import InputError, InputProblems, Place, UnmetNeed
from harness.model.scenario import Scenario, TrialKind
from harness.model.transcript import Rewriting
from harness.understanding.grammar import Grammar

if TYPE_CHECKING:
    from harness.model.choices import FileKind

EXIT_PROBLEMS = 2
LONGEST_LINE = 2000


@dataclass(slots=True)
class Findings:
    """What was read, and what was wrong with it."""

    scenarios: dict[Path, Scenario] = field(default_factory=dict)
    benches: dict[Path, Bench] = field(default_factory=dict)
    profiles: dict[Path, DeviceProfile] = field(default_factory=dict)
    normalisations: dict[Path, Rewriting] = field(default_factory=dict)
    grammars: dict[Path, Grammar] = field(default_factory=dict)
    of_rating: dict[Path, tuple[FileKind, str]] = field(default_factory=dict)
    problems: list[InputError] = field(default_factory=list)
    unmet: list[UnmetNeed] = field(default_factory=list)
    left_alone: list[Path] = field(default_factory=list)

    def note(self, error: InputError) -> None:
        """Notes a problem, or several, each only once."""
        for problem in error.problems if isinstance(error, InputProblems) else (error,):
            if str(problem) not in (str(known) for known in self.problems):
                self.problems.append(problem)

    def read(self, path: Path) -> None:
        """Reads a file of any kind."""
        from harness.base.findings import kind_of
        from harness.devices.profiles.profile import load_profile
        from harness.model.choices import FileKind
        from harness.scenario.bench import load_bench
        from harness.scenario.scenario import load_scenario
        from harness.transcripts.files.normalisation_file import load_normalisation
        from harness.understanding.files.grammar_file import load_grammar

        try:
            match kind_of(path):
                case FileKind.SCENARIO:
                    self.scenarios[path] = load_scenario(path)
                case FileKind.BENCH:
                    self.benches[path] = load_bench(path)
                case FileKind.DEVICE:
                    self.profiles[path] = load_profile(path, beside=Path())
                    self._try_samples(path)
                case FileKind.NORMALISATION:
                    self.normalisations[path] = load_normalisation(path)
                case FileKind.GRAMMAR:
                    self.grammars[path] = load_grammar(path)
                case (
                    FileKind.ROUND | FileKind.TRAINING | FileKind.GOLD | FileKind.RATER_KEYS | FileKind.LABEL_SET
                ) as kind:
                    self.of_rating[path] = (kind, rating_summary(kind, path))
        except InputError as error:
            self.note(error)

    def _try_samples(self, path: Path) -> None:
        """Samples are a profile's tests: one that gives something else is a problem of the file."""
        from harness.devices.profiles.samples import check_samples

        for result in check_samples(self.profiles[path]):
            if result.wrong:
                what = f"the sample gives something else: {'; '.join(line.strip() for line in result.wrong)}"
                remedy = f"Change the rules, or what it gives; see harness devices test {path}"
                self.note(InputError(what, place=Place(str(path), result.sample.line), remedy=remedy))

    def pair(self) -> None:
        """Checks every scenario on the bench, when exactly one was given: else it is not known which one is meant, and
        its voices are checked alone."""
        if not self.scenarios:
            return
        from harness.scenario.together import check_together
        from harness.session.engine.prepare import refuse_unplayable, refuse_unspeakable
        from harness.session.plan import plan

        bench = next(iter(self.benches.values())) if len(self.benches) == 1 else None
        for scenario in self.scenarios.values():
            try:
                if bench is None:
                    refuse_unspeakable(scenario)
                    continue
                check_together(scenario, bench)
                refuse_unplayable(scenario, plan(scenario, bench))
            except UnmetNeed as need:
                self.unmet.append(need)
            except InputError as error:
                self.note(error)

    def sorted_problems(self) -> list[InputError]:
        return sorted(self.problems, key=lambda problem: _order(problem.place))


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, type=SHIPPED_FILE)
@json_option("as_json", "Print the result as JSON.")
def command(paths: tuple[Path, ...], as_json: bool) -> None:
    """Check scenarios, benches, device profiles, normalisations and files for raters; plays nothing.

    PATHS are files or folders. A scenario and one bench given together are also checked for each other. Recordings are
    read whole, and every voice speaks.
    Exit status: 0 all is well · 2 something is wrong.
    """
    findings = Findings()
    for path in _files(paths, findings):
        findings.read(path)
    findings.pair()
    if as_json:
        click.echo(json.dumps(_as_json(findings), indent=2))
    else:
        _print(findings)
    if findings.problems:
        sys.exit(EXIT_PROBLEMS)


def _files(paths: tuple[Path, ...], findings: Findings) -> Iterator[Path]:
    """The files that are meant, each once; in a folder, YAML that is none of ours is left alone."""
    from harness.base.findings import is_foreign

    seen: set[Path] = set()
    for path in paths:
        inside = sorted(one for one in path.rglob("*") if one.suffix in (".yaml", ".yml")) if path.is_dir() else [path]
        if not inside:
            nothing = InputError(
                "there is no YAML file in this folder", place=Place(str(path)), remedy="Name another one"
            )
            findings.note(nothing)
        for one in inside:
            if one.resolve() in seen:
                continue
            seen.add(one.resolve())
            if one != path and is_foreign(one):
                findings.left_alone.append(one)
            else:
                yield one


def _print(findings: Findings) -> None:
    for path, summary in _summaries(findings):
        click.echo(plain_text(f"{path}: {summary}", LONGEST_LINE))
    for path, note in _notes(findings):
        click.echo(plain_text(f"{path}: note: {note}", LONGEST_LINE))
    for path in findings.left_alone:
        click.echo(plain_text(f"{path}: left alone, none of our files", LONGEST_LINE))
    for need in findings.unmet:
        click.echo(plain_text(f"would be skipped: {need}", LONGEST_LINE))
    problems = findings.sorted_problems()
    for problem in problems:
        click.echo(plain_text(str(problem), LONGEST_LINE), err=True)
    if problems:
        files = len({problem.place.file for problem in problems if problem.place})
        click.echo(f"{counted(len(problems), 'problem')} in {counted(files, 'file')}", err=True)


def _summaries(findings: Findings) -> Iterator[tuple[Path, str]]:
    for path, scenario in findings.scenarios.items():
        yield path, f"scenario {scenario.id}: {_planned(scenario)}"
    for path, bench in findings.benches.items():
        speakers = counted(len(bench.loudspeakers), "loudspeaker")
        yield path, f"bench {bench.id}: {counted(len(bench.devices), 'device')}, {speakers}"
    for path, profile in findings.profiles.items():
        reports = ", ".join(sorted(profile.reports)) or "nothing (a black box)"
        yield path, f"device {profile.id}: wakes to {', '.join(profile.wake_phrases) or 'nothing'}; reports {reports}"
    for path, list_ in findings.normalisations.items():
        yield path, f"normalisation {list_.id}: {list_.base.value}, then {counted(len(list_.same), 'pair')}"
    for path, grammar in findings.grammars.items():
        patterns = sum(len(intent.sentences) for intent in grammar.intents)
        yield path, f"grammar {grammar.name}: {counted(patterns, 'pattern')}, {counted(len(grammar.values), 'list')}"
    for path, (kind, summary) in findings.of_rating.items():
        yield path, f"{kind.value.replace('_', ' ')} {summary}"


def rating_summary(kind: FileKind, path: Path) -> str:
    """What a file for raters or annotators holds, when it is right."""
    from harness.model.choices import FileKind
    from harness.rating.files.rounds import load_gold, load_rater_keys, load_training, read_round
    from harness.understanding.files.label_set_file import load_label_set

    match kind:
        case FileKind.ROUND:
            read = read_round(path)
            return f"{read.id}: {counted(len(read.sessions), 'session')}, {counted(len(read.raters), 'named rater')}"
        case FileKind.TRAINING:
            return f"of {counted(len(load_training(path)), 'exercise')}"
        case FileKind.GOLD:
            return f"of {counted(len(load_gold(path)), 'known answer')}"
        case FileKind.LABEL_SET:
            labels = load_label_set(path)
            return f"{labels.id}: {counted(len(labels.labels), 'label')}"
        case _:
            load_rater_keys(path)
            return "as they are to be"


def _notes(findings: Findings) -> Iterator[tuple[Path, str]]:
    from harness.scenario.references import numeral_notes
    from harness.scenario.trials import wait_notes

    for path, scenario in findings.scenarios.items():
        yield from (
            (path, note) for note in (*wait_notes(scenario), *numeral_notes(scenario, findings.benches.values()))
        )


def _planned(scenario: Scenario) -> str:
    """How many trials; wake, command and ambient trials are not multiplied by every axis, and are counted by kind."""
    from harness.scenario.scenario import planned_trials

    by_kind = _by_kind(scenario)
    if set(by_kind) <= {TrialKind.QUERY}:
        trials, cells = planned_trials(scenario)
        return f"{counted(trials, 'trial')} × {counted(cells, 'cell')} = {trials * cells} planned"
    return f"{' + '.join(f'{count} {kind}' for kind, count in by_kind.items())} = {sum(by_kind.values())} planned"


def _by_kind(scenario: Scenario) -> dict[TrialKind, int]:
    from harness.scenario.scenario import planned_of

    counts: dict[TrialKind, int] = {}
    for trial in scenario.trials:
        counts[trial.kind] = counts.get(trial.kind, 0) + planned_of(trial, scenario.matrix)
    return counts


def _as_json(findings: Findings) -> dict[str, object]:
    from harness.scenario.scenario import planned_trials

    files: list[dict[str, object]] = []
    for path, scenario in findings.scenarios.items():
        trials, cells = planned_trials(scenario)
        planned = {"trials": trials, "cells": cells, "planned": sum(_by_kind(scenario).values())}
        files.append({"file": str(path), "kind": "scenario", "id": scenario.id, **planned})
    files += [{"file": str(path), "kind": "bench", "id": bench.id} for path, bench in findings.benches.items()]
    files += [{"file": str(path), "kind": "device", "id": profile.id} for path, profile in findings.profiles.items()]
    files += [
        {"file": str(path), "kind": "normalisation", "id": one.id} for path, one in findings.normalisations.items()
    ]
    files += [{"file": str(path), "kind": kind.value} for path, (kind, _) in findings.of_rating.items()]
    return {
        "ok": not findings.problems,
        "files": files,
        "notes": [{"file": str(path), "what": note} for path, note in _notes(findings)],
        "left_alone": [str(path) for path in findings.left_alone],
        "problems": [_row(problem) for problem in findings.sorted_problems()],
        "unmet_needs": [_row(need) for need in findings.unmet],
    }


def _row(error: InputError | UnmetNeed) -> dict[str, object]:
    place = error.place or Place("")
    where = {"file": place.file, "line": place.line or None, "column": place.column or None}
    return {**where, "what": error.what, "remedy": error.remedy}


def _order(place: Place | None) -> tuple[str, int, int]:
    return (place.file, place.line, place.column) if place else ("", 0, 0)
