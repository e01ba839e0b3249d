"""The rows of a night, sorted by what they say. Knows nothing of the product but their form."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.nights import model

Row = dict[str, Any]
Key = tuple[str, int, int]


class Rows:
    """first, ended: of each attempt the first and the last row about its end."""

    def __init__(self, rows: list[Row]) -> None:
        self.all = rows
        self.of: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            self.of[row["kind"]].append(row)
        self.plan: list[Row] = self.of["session_started"][0]["body"]["trials"]
        self.trials = {trial["id"]: trial for trial in self.plan}
        self.started = {key_of(row): row for row in self.of["attempt_started"]}
        for row in self.of["stimulus_spoken"]:  # its times replace those that were planned
            times = {name: row["body"][name] for name in ("query_start_s", "query_end_s", "duration_s")}
            start = self.started[key_of(row)]
            self.started[key_of(row)] = start | {"body": start["body"] | times}
        self.ended = {key_of(row): row for row in self.of["attempt_finished"]}
        self.first = {key_of(row): row for row in reversed(self.of["attempt_finished"])}
        self.takes: dict[str, list[Row]] = defaultdict(list)
        for row in self.of["trial_finished"]:
            self.takes[row["body"]["trial_id"]].append(row["body"])
        self.seen = self.of["observed"]
        self.sound: dict[str, dict[str, Row]] = defaultdict(dict)
        """Play → kind of observation → what was observed of it."""
        for row in self.seen:
            observation = row["body"]["observation"]
            if observation["kind"].startswith("stimulus_"):
                self.sound[observation["play_id"]].setdefault(observation["kind"], observation)

        self._rows = [model.Row(**row) for row in rows]
        self._recounts: dict[int, model.Recount] = {}

    def recount(self, last: int | None = None) -> model.Recount:
        """Of the rows up to that one; of all without one."""
        last = self.all[-1]["seq"] if last is None else last
        if last not in self._recounts:
            self._recounts[last] = model.Recount(row for row in self._rows if row.seq <= last)
        return self._recounts[last]

    def run_at(self, at_s: float) -> tuple[float, float]:
        """Beginning of the run of that time, and its last row: what came after that is nowhere."""
        starts = self.of["engine_started"]
        run = starts[bisect_right([row["at_s"] for row in starts], at_s) - 1]
        return run["at_s"], max(row["at_s"] for row in self.all if row["run"] == run["run"])

    def counted(self) -> Iterator[tuple[Row, Row, Row]]:
        """Trial, take and started attempt of each listening trial that counts at the end."""
        for trial in self.plan:
            takes = self.takes.get(trial["id"])
            if trial["listening"] is None or not takes or takes[-1]["outcome"] != "counted":
                continue
            last = takes[-1]
            key = (trial["id"], last["take"], last["deciding_attempt"] or last["attempts"])
            yield trial, last, self.started[key]["body"]


def key_of(row: Row) -> Key:
    body = row["body"]
    return body["trial_id"], body["take"], body["attempt"]


def sources_of(trial: Row, device: str) -> set[str]:
    """What reports for a device of a trial."""
    if trial["listening"] is None:
        return {trial["connection"], *trial["also"]} if trial["device"] == device else set()
    targets = [target for target in trial["listening"]["targets"] if target["device"] == device]
    return {source for target in targets for source in (target["connection"], *target["also"])}
