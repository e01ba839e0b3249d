"""Sweeps of thresholds: from outcomes and stored scores to counts at every threshold, a DET curve and a chosen point.

Development lists are evaluated here, into their own journal.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.base.whole_file import write_atomically
from harness.model.errors import InputError, Place
from harness.model.numbers import counted
from harness.model.offline import EngineFacts, Evaluation, FileOutcome, ListedFile, ListKind, SpotRule
from harness.offline.figures.counts import Tally
from harness.offline.figures.det import Det
from harness.offline.figures.groups import talker_of
from harness.offline.figures.sweep import ChosenPoint, Sweep, TermWeighted, choose, term_weighted
from harness.offline.journal import Journal, JournalFile
from harness.offline.journal_lines import JournalHeader, Talkers
from harness.offline.lists import Listing
from harness.offline.reports import det as det_reports
from harness.offline.reports.log import fault_lines
from harness.offline.request import SweepRequest
from harness.offline.run import OpenJournal, RunPace
from harness.offline.score_cache import ScoreCache

PlayFiles = Callable[[Evaluation, Sequence[ListedFile], OpenJournal], RunPace]
"""Plays files into a journal that it opens."""
MAX_NAMED_FILES = 3


def demand_scores(facts: EngineFacts, evaluation: Evaluation) -> SpotRule:
    """The rule by which an engine's scores become spots.

    Raises InputError for an engine without scores, or if scores are not stored.
    """
    if facts.rule is None:
        raise InputError(
            f"{evaluation.task.engine} reports no scores, so its thresholds cannot be swept",
            remedy="Run the engine once for each sensitivity, then compare the logs: harness report compare",
        )
    if evaluation.continuous or facts.carries_state:
        if evaluation.continuous:
            circumstance, remedy = "with --continuous", "Sweep without --continuous"
        else:
            circumstance = f"with {evaluation.task.engine}"
            remedy = "Sweep an engine that keeps no state between files"
        raise InputError(
            f"{circumstance}, scores depend on earlier files, so they are not stored and cannot be swept", remedy=remedy
        )
    return facts.rule


def sweep_of(
    outcomes: Iterable[tuple[FileOutcome, str]],
    header: JournalHeader,
    cache: ScoreCache,
    *,
    refractory_ms: float | None = None,
    phrase: str | None = None,
) -> Sweep:
    """Counts at every threshold, from outcomes with the names of their files.

    - refractory_ms: refractory time; None for that of the run.
    - phrase: the only phrase that counts; None for all. Raises InputError, with some names, if files have no stored
      scores. The cache reports damaged entries.
    """
    facts = header.facts
    rule = demand_scores(facts, header.evaluation)
    if refractory_ms is not None:
        rule = replace(rule, refractory_samples=round(refractory_ms / 1000 * facts.rate_hz))
    sweep = Sweep(
        header.counting,
        rule,
        facts.operating_points,
        phrase=phrase,
        repeats=max(1, len(header.evaluation.conditions)),
        talker_of=talker_of(header.talkers),
    )
    missing: list[str] = []
    unscored_count = 0
    for outcome, name in outcomes:
        tracks = None
        if sweep.wants(outcome):
            tracks = cache.tracks(facts, outcome.sha256) if outcome.sha256 else None
            if tracks is None:
                unscored_count += 1
                if len(missing) < MAX_NAMED_FILES:
                    missing.append(name)
                continue
        sweep.add(outcome, tracks or ())
    if unscored_count:
        missing_names = ", ".join(repr(name) for name in missing)
        raise InputError(
            f"{cache.folder} has no scores for {counted(unscored_count, 'file')}, such as {missing_names}",
            remedy="Run the evaluation again with the same --cache folder: only missing scores are computed",
        )
    return sweep


def _file_name(phrase: str) -> str:
    """A phrase as part of a file name."""
    return re.sub(r"[^\w-]+", "_", phrase)


class SweepRun:
    """The sweep of a complete journal with stored scores: its counts and files.

    Raises InputError if scores are missing.

    - warn: takes warnings.
    - dev_sweep: the sweep of the development lists, after `develop`.
    - chosen: the point that meets the target, after `write`; None without.
    - thresholds: number of thresholds that were counted, after `write`.
    - term_weighted: term-weighted values, after `write`; None if they are not wanted.
    """

    def __init__(self, options: SweepRequest, journal: JournalFile, warn: Callable[[str], None]) -> None:
        self._options, self._journal, self._warn = options, journal, warn
        self._header = journal.header
        self._cache = ScoreCache(self._header.evaluation.cache, warn)
        self._report, self._reported_hashes = self._count(journal)
        self.dev_sweep: Sweep | None = None
        self.chosen: ChosenPoint | None = None
        self.thresholds = 0
        self.term_weighted: TermWeighted | None = None

    def develop(self, listing: Listing, play: PlayFiles, talkers: Talkers) -> bool:
        """Evaluates the development lists with the settings of the reported ones. Returns whether a file or the engine
        had a fault.

        Raises InputError if a list has no usable file. Raises KeyboardInterrupt if the run was stopped.
        """
        header, path = self._header, self._journal.path
        path = path.with_name(f"{path.stem}.dev{path.suffix}")

        def open_journal(facts: EngineFacts) -> Journal:
            dev_header = replace(
                header,
                facts=facts,
                lists=listing.lists,
                planned=len(listing.files),
                started_s=time.time(),
                bases=(),
                talkers=talkers,
            )
            return Journal.create(path, dev_header)

        if play(header.evaluation, listing.files, open_journal).partial:
            raise KeyboardInterrupt
        journal = JournalFile(path)
        self.dev_sweep, dev_hashes = self._count(journal)
        tally = Tally(header.counting)
        for entry in journal.outcomes():
            tally.add(entry.outcome, entry.listed)
        counts, resampling = tally.counts, header.evaluation.resample
        for line in fault_lines(counts, f"{path} says", "development file", resampling=resampling):
            self._warn(line)
        for option, usable in (("--dev-inv", counts.inv_files), ("--dev-oov", counts.oov_files)):
            if not usable:
                raise InputError(
                    f"no file of {option} could be used, so no point can be chosen", place=Place(str(path)),
                    remedy="Use readable recordings; the log gives the reason for each rejection",
                )  # fmt: skip
        if shared := len(self._reported_hashes & dev_hashes):
            files = counted(shared, "development file")
            self._warn(f"{files} with the same bytes as reported files: the lists are not independent")
        return counts.has_faults

    def _count(self, journal: JournalFile, phrase: str | None = None) -> tuple[Sweep, set[bytes]]:
        """The sweep of a journal, and the first 12 bytes of the sha256 of its files. phrase: the only phrase that
        counts; files of -i, which do not name their phrase, are then left out. None for all phrases and files."""
        header, hashes = journal.header, set[bytes]()

        def outcomes() -> Iterator[tuple[FileOutcome, str]]:
            for entry in journal.outcomes():
                if phrase is not None and entry.outcome.kind is ListKind.INV:
                    continue
                if entry.outcome.sha256:
                    hashes.add(bytes.fromhex(entry.outcome.sha256)[:12])
                yield entry.outcome, entry.listed

        sweep = sweep_of(
            outcomes(), header, self._cache, refractory_ms=self._options.refractory_ms, phrase=phrase,
        )  # fmt: skip
        return sweep, hashes

    def _phrases(self) -> tuple[str, ...]:
        """Phrases that get a curve of their own: those of the engine, if recordings are labelled and there are
        several."""
        labelled = any(listing.kind is ListKind.LABELLED for listing in self._header.lists)
        phrases = self._header.counting.phrases
        return phrases if labelled and len(phrases) > 1 else ()

    def write(self, prefix: str) -> list[str]:
        """Chooses a point if there is a target, and writes tables, JSON and pictures to PREFIX.*. Returns the names of
        the files."""
        options, header, report, dev_sweep = self._options, self._header, self._report, self.dev_sweep
        points, target = header.facts.operating_points, options.target
        self.chosen = chosen = self._choose()
        chosen_threshold = None if chosen is None else chosen.chosen.threshold
        added_thresholds = [] if chosen_threshold is None else [chosen_threshold]
        det = report.det_at(report.thresholds(added_thresholds))
        phrase_dets = self._phrase_dets(added_thresholds)
        self.thresholds = len(det)
        twv = (options.beta, options.speech_s) if options.twv else None
        if twv is not None:
            self.term_weighted = term_weighted(report, det, *twv)

        files = {f"{prefix}.csv": det_reports.det_csv(det, points, chosen_threshold, twv)}
        if dev_sweep is not None:
            files[f"{prefix}.dev.csv"] = det_reports.det_csv(
                dev_sweep.det_at(dev_sweep.thresholds(added_thresholds)), points, chosen_threshold, twv
            )
        summary = det_reports.sweep_json(report, len(det), header.facts, header.counting.lead_in_ms)
        summary["task"], summary["settings"] = header.evaluation.task.name, dict(header.evaluation.task.settings)
        if target is not None:
            summary["choice"] = det_reports.chosen_json(target, chosen)
        if self.term_weighted is not None:
            summary["term_weighted"] = det_reports.twv_json(self.term_weighted)
        files[f"{prefix}.json"] = json.dumps(summary, indent=1) + "\n"
        for phrase, phrase_det in phrase_dets.items():
            files[f"{prefix}.{_file_name(phrase)}.csv"] = det_reports.det_csv(phrase_det, points, chosen_threshold, twv)
        for name, text in files.items():
            write_atomically(Path(name), text.encode())
        written = [*files]
        if not options.no_picture and det.has_accepts and det.has_rejects:
            written += self._draw(prefix, det, phrase_dets)
        return written

    def warn_of_stored_scores(self) -> None:
        """Warns of the room that the stored scores take on the disk."""
        size = self._cache.size(self._header.facts.fingerprint)
        self._warn(f"scores of this and earlier runs are kept in {self._cache.folder}: {size}")

    def _choose(self) -> ChosenPoint | None:
        """The point that meets the target, chosen on the development lists if there are some; None without a target,
        or if no point meets it."""
        target, dev_sweep, report = self._options.target, self.dev_sweep, self._report
        if target is None:
            return None
        target_sweep = dev_sweep or report
        points = self._header.facts.operating_points
        chosen = choose(target, target_sweep.det_at(), points, None if dev_sweep is None else report)
        if chosen is None:
            return None
        return replace(chosen, chosen=target_sweep.figures_at(chosen.chosen.threshold))

    def _phrase_dets(self, added_thresholds: list[float]) -> dict[str, Det]:
        """A curve for each phrase that gets its own. added_thresholds: see `also` of `Sweep.thresholds`."""
        dets = {}
        for phrase in self._phrases():
            sweep, _ = self._count(self._journal, phrase=phrase)
            dets[phrase] = sweep.det_at(sweep.thresholds(added_thresholds))
        return dets

    def _draw(self, prefix: str, det: Det, phrase_dets: dict[str, Det]) -> list[str]:
        """Draws the curve of all phrases, and those of single phrases. Returns the names of the files."""
        report, dev_sweep, name = self._report, self.dev_sweep, self._header.evaluation.task.name
        points = self._header.facts.operating_points
        rule_point = report.figures_at(report.rule.threshold)
        curves = [det_reports.Curve("list" if dev_sweep is None else "reported list", det, rule_point)]
        if dev_sweep is not None:
            curves.append(det_reports.Curve("development list", dev_sweep.det_at()))
        written = []
        for ending in det_reports.ENDINGS:
            written.append(f"{prefix}.{ending}")
            det_reports.draw(Path(written[-1]), name, curves, points, self.chosen)
        for phrase, phrase_det in phrase_dets.items():
            if not (phrase_det.has_accepts and phrase_det.has_rejects):
                continue
            for ending in det_reports.ENDINGS:
                written.append(f"{prefix}.{_file_name(phrase)}.{ending}")
                det_reports.draw(
                    Path(written[-1]), f"{name}, {phrase}", [det_reports.Curve("list", phrase_det)], points
                )
        return written
