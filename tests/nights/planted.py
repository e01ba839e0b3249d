"""Faults that are planted one at a time, to show that the nights find them, and in how many seeds.

Most bring back a fault of the live path that the history mended, or its core. The tree is left alone: a fault stands in
a copy of it. `--check` shows which faults no longer fit the source.

    python -m tests.nights.planted --check
    python -m tests.nights.planted --nights 1000 [NAME …]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[2]
NIGHTS = (sys.executable, "-m", "tests.nights", "--first", "--seeds")
"""Plays seeds, written a:b, up to the first that breaks an invariant. Exits with 1 and prints it if there is one."""
FAILING_SEED = re.compile(r"\bseeds?\D{0,3}(\d+)", re.IGNORECASE)
"""The last one in the output."""
MAX_NIGHT_S = 7200.0
"""A planted fault may make a night endless."""
IMPORT_LIMIT_S = 60.0


class Area(StrEnum):
    """What a fault spoils."""

    MATCHING = "matching"
    MERGING = "merging"
    EXPOSURE = "exposure"
    EVIDENCE = "evidence"
    DRIVERS = "drivers"
    RESUME = "resume"
    LOG = "log"
    VERDICT = "verdict"
    CLOCK = "clock fits"


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault to plant.

    - commit: what mended it in the history; "" for an invented one.
    - diff: changes below harness/. Each begins with `@` and the file; whole lines, which stand there exactly once.
    - effect: how the product behaves with the fault.
    - unit_test: a test below tests/unit that fails with it; "" if none does.
    """

    name: str
    commit: str
    area: Area
    diff: str
    effect: str
    unit_test: str = ""

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        """File, what stands there, and what takes its place."""
        changes = [change.splitlines() for change in self.diff.strip("\n").removeprefix("@ ").split("\n@ ")]
        return tuple((change[0], _lines(change, " -"), _lines(change, " +")) for change in changes)

    def edited(self, root: Path = ROOT) -> dict[Path, str]:
        """The changed files below `root`; ValueError if what is to be replaced does not stand there exactly once."""
        texts: dict[Path, str] = {}
        for file, old, new in self.edits:
            path = root / "harness" / file
            text = texts.get(path) or path.read_text(encoding="utf-8")
            if (count := text.count(old)) != 1:
                raise ValueError(f"{self.name}: {file} holds this {count} times:{old}")
            texts[path] = text.replace(old, new)
        return texts


def _lines(change: list[str], signs: str) -> str:
    """The lines with one of the signs, from the end of the line before."""
    return "".join(f"\n{line[1:]}" for line in change[1:] if line[0] in signs) + "\n"


# fmt: off
FAULTS = (
    # The seven defects of the live path that the first simulated nights found
    Planted("late_report_of_a_life_check", "88aefb99", Area.MATCHING, """
@ wake/wake.py
-                device.add_report(event)
+                if not plays_only:
+                    device.add_report(event)
""", "a late report that arrives during a life check or a query trial counts nowhere",
        "wake/test_wake.py::test_an_event_counts_by_its_time_wherever_its_report_arrives"),
    Planted("credit_by_arrival", "88aefb99", Area.MATCHING, """
@ wake/wake.py
-                device.add_report(event)
+                device.add_report(event, self._plays_of(row).get(name))
@ wake/wake_device.py
-    def add_report(self, report: HeardWake) -> None:
+    def add_report(self, report: HeardWake, credited: Play | None = None) -> None:
@ wake/wake_device.py
-        self.changed = True
+        self.changed, self._credited = True, credited
         if not self._merger.several:  # each report is an event
@ wake/wake_device.py
+        credited = self._credited
+        if credited and credited.started and credited.place(event) >= credited.start_s:
+            return credited
         for play in reversed(self._recent_plays):
             if play.started is None:
""", "an event that is reported during an attempt is its own, however long after its sound it lies",
        "wake/test_wake.py::test_an_event_counts_by_its_time_wherever_its_report_arrives"),
    Planted("heartbeat_proves_misses_before_a_restart", "ca75af9c", Area.EVIDENCE, """
@ session/liveness.py
-            case Status(state=DeviceState.STARTED, at=at) if device:
-                self._note_restart(self._life_signs[device], at.at_s)
""", "the first sign of life after a restart proves the misses before it",
        "session/test_liveness.py::test_signs_of_life_clear_a_doubtful_device"),
    Planted("resume_forgets_signs_of_life", "ca75af9c", Area.RESUME, """
@ session/takes.py
 from harness.session.listening_trial import ListeningMachine
+from harness.session.liveness import Liveness
@ session/takes.py
-        self.liveness = run.resumption.liveness
+        self.liveness = run.resumption.liveness = Liveness()
""", "a resumed run knows no sign of life of earlier ones, and takes misses back that were proved",
        "session/test_liveness.py::test_a_resumed_run_knows_what_the_device_reacted_to"),
    Planted("kill_loses_a_decision", "ca75af9c", Area.RESUME, """
@ session/conductor.py
-        for decision in run.context.decisions():
-            run.append(decision)
""", "a kill between a trial's end and the decision of a sequential test loses the decision",
        "session/test_conductor.py::test_a_decision_that_a_killed_run_did_not_write_is_written_first"),
    Planted("wake_of_before_the_first_attempt", "ca75af9c", Area.MATCHING, """
@ session/attempt.py
-        return next((event for event in self.wakes if not self.began_after(event)), None)
+        return next(iter(self.wakes), None)
@ session/attribution.py
-        case Wake() | ResponseText() if current is not None and current.began_after(observation):
-            return previous
""", "a wake event from before a query's first attempt is that attempt's",
        "session/test_query_trial.py::test_a_wake_event_from_before_the_sound_is_not_its_own"),
    Planted("answer_to_a_cut_query", "ca75af9c", Area.MATCHING, """
@ session/query_trial.py
-        if self._phase in (Phase.PLAYING, Phase.LISTENING, Phase.RESPONDING):
-            self.query_cut_s = self._now_s
""", "the answer to a query that was cut becomes the next trial's response",
        "session/test_conductor.py::test_a_skipped_query_keeps_the_context_wait_for_what_its_device_still_says"),
    # Other faults that the history mended
    Planted("silence_proved_by_its_end", "301f8f4e", Area.EVIDENCE, """
@ session/liveness.py
-            self._check_silence(life, at_s)
             self._note_sign(life, at_s)
""", "the first heartbeat of a device that stood still proves the misses meanwhile"),
    Planted("miss_proved_in_the_lead_in", "301f8f4e", Area.EVIDENCE, """
@ session/liveness.py
-        life.gave_sign |= sign is None or self._is_after(device, sign, reacts=False)
+        life.gave_sign = True
""", "a sign of life before the phrase proves that the phrase was missed"),
    Planted("speech_from_before_the_call", "05e97ccf", Area.MATCHING, """
@ session/attempt.py
-        earliest_s = self.begun_s if called is None else called.at_s - GUARD_S
+        earliest_s = -math.inf if not self.timing.other_phrases else end.at_s - GUARD_S
@ session/attempt.py
 from __future__ import annotations
+import math
""", "speech that began before the device was called, and goes on, is its response"),
    Planted("speech_without_an_end", "05e97ccf", Area.EVIDENCE, """
@ session/query_trial.py
-                if source == self.trial.microphone and self._quiet.span is not None:
-                    self._quiet.end_speech(at)  # nobody will hear its end
""", "speech during which the microphone's link is lost goes on for ever"),
    Planted("answer_of_a_device_still_busy", "9af7d71f", Area.MATCHING, """
@ session/attribution.py
-    at_previous = current.missed_wake and previous.wake is not None and not began_idle and current.last_words_s is None
-    if current.stimulus_offset_s(observation) is not None:  # a place on the audio line shows what it answers
-        at_previous = False
+    at_previous = False
""", "a device that is still at the attempt before answers the new one, to which it has not woken",
        "session/test_query_trial.py::test_an_answer_to_an_interrupted_attempt_is_not_the_next_ones"),
    Planted("idle_meanwhile", "f085c40b", Area.MATCHING, """
@ session/query_trial.py
-        owner = owner_of(observation, self.trial, self._current, self._previous, began_idle=self._was_idle_at_start)
+        idle = self._device.state is DeviceState.IDLE
+        owner = owner_of(observation, self.trial, self._current, self._previous, began_idle=idle)
""", "a device that becomes idle during an attempt is no longer at the one before when its last words arrive",
        "session/test_understand_trial.py::test_device_without_a_new_wake_belongs_to_the_previous_attempt"),
    Planted("words_of_before_the_query", "75a6c5cb", Area.MATCHING, """
@ session/attempt.py
-        return not self.is_before_query(observation) and not (self.missed_wake and self.is_before_answer(observation))
+        return True
""", "a late transcript is credited to an attempt whose query had not been said",
        "session/test_query_trial.py::test_a_transcript_that_cannot_be_of_the_first_attempt"),
    Planted("no_wait_for_a_late_answer", "057a18be", Area.MATCHING, """
@ session/query_trial.py
-            self._in_late_window = verdict is not None and late_answer_possible
+            self._in_late_window = False
""", "after a silent last attempt the next trial begins at once, and takes the late answer",
        "session/test_understand_trial.py::test_each_course_with_a_speaking_device_has_its_outcome"),
    Planted("query_to_a_thinking_device", "7dd9ae40", Area.EVIDENCE, """
@ session/query_trial.py
-        return max(until_s, self._busy_until_s())
+        return until_s
""", "a query is repeated while the device says that it thinks",
        "session/test_query_trial.py::test_a_query_is_not_repeated_while_the_device_says_that_it_thinks"),
    Planted("query_to_a_gone_device", "73ebb78c", Area.EVIDENCE, """
@ session/query_trial.py
-                if state is DeviceState.GONE:
-                    self._handle_loss(THE_DEVICE, "it reported that it is gone")
-                else:
-                    self._lost_sources.discard(THE_DEVICE)
""", "queries to a device that says that it is gone count as missed",
        "session/test_query_trial.py::test_a_device_that_is_gone_is_waited_for"),
    Planted("phrase_with_a_gap", "2a77dd85", Area.EVIDENCE, """
@ session/listening_trial.py
-                if self._phase is Phase.PLAYING and source in (*attempt.through_air, *self.trial.noise_players):
-                    self._interrupt(f"stimulus_flawed: {source} played late blocks")
+                pass
@ session/listening_trial.py
-                if stalled_s and self._expects_wake:
+                if False:
""", "a phrase that was played with a gap counts",
        "session/test_listening_trial.py::test_a_phrase_with_a_gap_in_it_is_said_again"),
    Planted("probe_heard_beyond_its_window", "ce0d1adf", Area.EXPOSURE, """
@ session/listening_trial.py
-        if timing.query_start_s - settings.window_before_s <= offset_s <= timing.query_end_s + settings.window_after_s:
+        if offset_s >= timing.query_start_s - settings.window_before_s:
""", "any wake event after a probe shows that it was heard",
        "session/test_listening_trial.py::test_an_event_that_is_not_near_the_phrase_is_no_answer_to_it"),
    Planted("audio_of_a_killed_run", "46ae3fc7", Area.EXPOSURE, """
@ wake/wake.py
-                    device.begin_run(entry.seq, self._utterances, same_time=same_time)
+                    device.proofs.cut(0.0)
""", "plays and acknowledged audio of a killed run speak for the run that resumes it",
        "wake/test_wake.py::test_an_event_of_this_run_is_not_taken_for_one_of_the_run_before"),
    Planted("events_of_cut_phrases", "b4da69aa", Area.MATCHING, """
@ wake/unmatched.py
-        if event.in_vocabulary and event.exposed:
+        if event.in_vocabulary:
""", "events of interrupted attempts count among those of attempts that count",
        "wake/test_wake.py::test_wake_on_an_interrupted_phrase_counts_nowhere"),
    Planted("uncounted_events_in_no_group", "8b4977d8", Area.MATCHING, """
@ wake/unmatched.py
-            counts.uncounted += sign
+            pass
""", "unmatched events of trials that do not count are in no group of the figures",
        "wake/test_wake.py::test_the_groups_add_up_to_all_events"),
    Planted("placed_where_the_player_began", "6782cafb", Area.MATCHING, """
@ wake/wake_plays.py
-        return self.found_at or self.started
+        return self.started
""", "a stimulus lies where it left the player, and not where the microphone heard it",
        "wake/test_wake_exposure.py::test_through_the_air_a_phrase_lies_where_our_microphone_found_it"),
    Planted("double_wakes_only_beyond_the_refractory_time", "9ba46d82", Area.MERGING, """
@ wake/wake_plays.py
-            if owner in hits:
-                assignments[hits[owner]].doubled = True
-        if assignment.hit is not None and at_s >= play.place(assignment.hit) - origin_s:
+        if owner is None and assignment.hit is not None and at_s >= play.place(assignment.hit) - origin_s:
@ wake/wake_plays.py
-            assignments[play].doubled |= is_hit
""", "a second wake event within the refractory time makes no double wake",
        "wake/test_wake.py::test_a_phrase_that_wakes_twice_is_one_hit_and_a_double_wake"),
    Planted("clip_by_the_last_event", "bbfecaed", Area.MERGING, """
@ wake/wake_plays.py
-        if is_within_refractory(place_s, self.shown_s, self.settings.refractory_s):
-            return False
-        self.shown_s = place_s
-        return True
+        last_s, self.shown_s = self.shown_s, place_s
+        return not is_within_refractory(place_s, last_s, self.settings.refractory_s)
""", "a false accept that follows a merged event has no clip",
        "wake/test_wake.py::test_the_sound_of_every_counted_event_is_kept"),
    Planted("endless_wait_for_a_restless_device", "ebf665a6", Area.EVIDENCE, """
@ session/listening_trial.py
-            until_s = max(until_s, min(self._awake_until_s(target), longest_s))
+            until_s = max(until_s, self._awake_until_s(target))
""", "a device that wakes again and again holds the run for ever",
        "session/test_listening_trial.py::test_a_device_that_never_stops_waking_is_reported_and_does_not_hold_the_run"),
    Planted("misses_of_a_dead_device", "30c9773e", Area.EVIDENCE, """
@ session/liveness.py
-        return tuple(device for device, life in self._life_signs.items() if len(life.silent) >= after or life.unproven)
+        return ()
""", "misses of a device without a sign of life count",
        "session/test_liveness.py::test_so_many_takes_in_a_row_without_a_sign_make_a_device_doubtful"),
    Planted("gap_taken_for_a_response", "46a61537", Area.EVIDENCE, """
@ session/query_trial.py
-        elif response.complete and (why := attempt.doubt_about(response)):
-            self._rows.pop(attempt.number, None)  # after a late answer, its verdict as a silent attempt is void
-            self._interrupt(f"stream_gap: {why}")
""", "the rest of a stimulus behind lost or late samples is the response",
        "session/test_query_trial.py::test_each_course_of_a_query_trial_has_its_outcome"),
    Planted("abort_leaves_a_trial_open", "b364127d", Area.VERDICT, """
@ session/takes.py
-        if run.ending is EndReason.ABORTED and take in run.resumption.begun and take not in run.resumption.finished:
-            self._finish(take, Outcome.ABORTED, run.abort_cause)
""", "a trial whose sound is being made when the run is aborted never ends",
        "session/test_conductor.py::test_an_abort_while_a_stimulus_is_made_ends_the_trial_that_was_begun"),
    Planted("clips_unnamed_at_the_end", "45744c66", Area.LOG, """
@ session/conductor.py
-            self._await_clips()
""", "clips of the last wake events are stored, and no row names them"),
    Planted("open_test_passes", "d31f9c64", Area.VERDICT, """
@ session/figures/limits.py
-                may_stay_open=stopping.on_undecided is OnUndecided.PASS,
+                may_stay_open=True,
""", "a run whose sequential test is undecided passes",
        "wake/test_sources.py::test_an_undecided_sequential_test_fails_unless_allowed"),
    Planted("interval_over_trials", "d1ed0a38", Area.VERDICT, """
@ wake/wake_progress.py
-    if not speakers.several:
+    if True:
""", "the interval of false rejects takes trials of one voice for independent",
        "wake/test_voices.py::test_false_rejects_of_one_voice_are_not_as_many_independent_trials"),
    Planted("restart_after_what_it_cut", "c1fe3dec", Area.DRIVERS, """
@ devices/framing/board_session.py
-            self._report_start_once(boot, stamp, detail)
+            pass
@ devices/framing/board_session.py
         self.await_hello(stamp.at_s)
+        if restarted:
+            self._outlet.tell(Status(self._source, stamp, DeviceState.STARTED, detail))
""", "a board's restart is reported after the end of the sound that it cut off",
        "devices/test_board_session.py::test_restart_is_reported_before_the_sound_that_it_ended"),
    Planted("board_blamed_for_a_stalled_host", "3b54d683", Area.DRIVERS, """
@ devices/framing/board_session.py
-            self._received_s += now_s - self._ticked_s
+            pass
""", "a board counts as lost because the host stood still",
        "devices/test_board_session.py::test_device_silence_is_a_loss_unless_the_host_slept"),
    Planted("event_lost_again_and_again", "ad25aedc", Area.DRIVERS, """
@ devices/framing/numbering.py
-_MAX_AHEAD = 8 * KEPT_BY_BOARD
+_MAX_AHEAD = 2 * KEPT_BY_BOARD
""", "an event that a line loses repeatedly is given up while later ones arrive"),
    Planted("lines_held_back", "941c4987", Area.CLOCK, """
@ devices/wire/line_clock.py
-        return max(width, by_spread)
+        return width
""", "the error of a line's time leaves out how long an adapter holds lines back",
        "devices/wire/test_device_clock.py::test_stated_errors_cover_the_truth"),
    # Invented
    Planted("window_too_short", "", Area.MATCHING, """
@ wake/wake_plays.py
-        return Window(min(first_s, near_s), near_s + self.settings.window_after_s, near_s)
+        return Window(min(first_s, near_s), near_s + self.settings.window_after_s - 0.3, near_s)
""", "the window of a phrase ends 0.3 s early", "wake/test_wake.py::test_an_event_outside_the_window_is_no_hit"),
    Planted("latency_from_the_end_of_the_sound", "", Area.MATCHING, """
@ session/attempt.py
-        return self.time_of(self.timing.query_end_s)
+        return self.time_of(self.timing.duration_s)
""", "a response is measured from the end of the stimulus, and not from that of the query",
        "session/test_query_trial.py::test_each_course_of_a_query_trial_has_its_outcome"),
    Planted("no_refractory_time", "", Area.MERGING, """
@ base/refractory.py
-    return place - previous_place < refractory
+    return False
""", "events within the refractory time are events of their own",
        "wake/test_sources.py::test_a_running_ambient_trial_shows_one_event_and_moves_it"),
    Planted("sources_not_merged", "", Area.MERGING, """
@ wake/counting.py
-        windows = [Window(at_s - within_s, at_s + within_s, at_s) for at_s in starts]
+        windows = [Window(at_s, at_s, at_s) for at_s in starts]
""", "two sources' reports of one event count twice",
        "wake/test_sources.py::test_two_sources_of_one_wake_are_one_hit_at_the_time_of_the_least_error"),
    Planted("exposure_through_a_lost_link", "", Area.EXPOSURE, """
@ wake/wake.py
                 self._utterances.end_speech(device.device, observation.at.at_s)
-                device.add_cut(observation.at.at_s)
""", "sound that was played while the link was lost counts as exposure",
        "wake/test_wake.py::test_a_lost_link_cuts_exposure"),
    Planted("exposure_through_a_reboot", "", Area.EXPOSURE, """
@ wake/wake.py
-                if state in (observations.DeviceState.STARTED, observations.DeviceState.GONE):
+                if state is observations.DeviceState.GONE:
""", "sound that was played while the device booted counts as exposure",
        "wake/test_wake_exposure.py::test_a_restart_breaks_the_proof"),
    Planted("exposure_without_heartbeats", "", Area.EXPOSURE, """
@ wake/proofs.py
-        return to_s - from_s <= self.within_s and not cut
+        return not cut
""", "two proofs prove everything between them, however far they are apart",
        "wake/test_wake.py::test_time_without_proof_is_no_exposure"),
    Planted("false_accepts_outside_exposure", "", Area.EXPOSURE, """
@ wake/wake_plays.py
-        exposed=tuple([any(low <= at_s <= high for low, high in counting_spans) for at_s in ends]),
+        exposed=tuple([True] * len(ends)),
""", "events count as false accepts while nothing shows that the device listened",
        "wake/test_wake.py::test_time_without_proof_is_no_exposure"),
    Planted("restart_goes_unnoticed_by_a_listening_trial", "", Area.EVIDENCE, """
@ session/listening_trial.py
-            case Status(state=DeviceState.STARTED) if target is not None:
-                self._interrupt(f"device_restarted: {target.device}")
""", "a restart interrupts no wake, command or ambient trial",
        "session/test_listening_trial.py::test_interrupted_attempt_names_its_cause_and_is_repeated"),
    Planted("restart_goes_unnoticed_by_a_query", "", Area.EVIDENCE, """
@ session/query_trial.py
-                if state is DeviceState.STARTED and self._phase in UNDER_WAY:
-                    self._interrupt("device_restarted")
""", "a restart interrupts no query", "session/test_query_trial.py::test_each_course_of_a_query_trial_has_its_outcome"),
    Planted("withdrawn_take_stays", "", Area.EVIDENCE, """
@ wake/wake.py
-        for device, play in self._counting_takes.pop(trial_id).plays.items():
-            self._devices[device].exclude(play)
""", "a take that was played again, or was not proven, stays in the figures",
        "wake/test_wake.py::test_a_later_take_replaces_the_earlier"),
    Planted("resume_replays_a_finished_trial", "", Area.RESUME, """
@ session/resumption.py
             resumption.add(entry)
+        for take in list(resumption.finished)[-1:]:
+            del resumption.finished[take]
+            resumption.attempts.pop(take, None)
""", "a resume plays the trial again that ended last",
        "session/test_any_order.py::test_a_log_cut_off_anywhere_is_completed"),
    Planted("cut_attempt_stays_open", "", Area.RESUME, """
@ session/conductor.py
-        for row in run.resumption.interrupted_attempts():
-            run.append(row)
""", "the attempt that a kill cut off has no end, and its number is given again",
        "session/test_conductor.py::test_a_follow_up_that_was_cut_off_is_primed_again_before_its_next_attempt"),
    Planted("row_written_twice", "", Area.LOG, """
@ session/take.py
-        if self._rows.get(row.attempt) != row:
-            self._rows[row.attempt] = row
-            self._actions.append(row)
+        self._rows[row.attempt] = row
+        self._actions.append(row)
""", "a verdict that stands already is written again"),
    Planted("reports_twice_after_a_full_disk", "", Area.LOG, """
@ session/run.py
                 full = error
+                self.arrivals.put_back(backlog)
""", "what arrives while the disk is full is written once for each retry"),
    Planted("reports_lost_in_a_full_disk", "", Area.LOG, """
@ session/run.py
-        self.arrivals.put_back(backlog)
""", "what arrives while the disk is full is dropped"),
    Planted("acknowledged_row_dropped", "", Area.LOG, """
@ session/log/database.py
-from harness.model.record import Clip, EngineStarted, Entry, Record
+from harness.model.record import Clip, EngineStarted, Entry, Observed, Record
@ session/log/database.py
-            if several:
+            if not self._connection.in_transaction:
                 self._connection.execute("BEGIN IMMEDIATE")
@ session/log/database.py
-            if several:
+            if not isinstance(batch[-1][0], Observed):
                 self._connection.execute("COMMIT")
""", "observations are acknowledged before they are committed, which happens with the next other row"),
    Planted("decisions_asked_too_rarely", "", Area.VERDICT, """
@ session/takes.py
-        for row in run.context.decisions():
+        for row in run.context.decisions() if len(run.resumption.finished) % 10 == 0 else ():
""", "sequential tests are looked at after every tenth trial"),
    Planted("limit_on_the_point", "", Area.VERDICT, """
@ session/figures/limits.py
-        LimitResult(_upper(rejects.interval), counted(rejects.share.total, "wake trial")),
+        LimitResult(rejects.share.value, counted(rejects.share.total, "wake trial")),
@ session/figures/limits.py
-        LimitResult(_upper(accepts.interval), heard),
+        LimitResult(accepts.per_hour, heard),
""", "a limit on the upper end of an interval is compared with the estimate",
        "wake/test_sources.py::test_wake_limits_hold_for_every_device"),
    Planted("interruptions_use_attempts_up", "", Area.VERDICT, """
@ session/take.py
-    counted = [row for row in ordered if row.outcome is not Outcome.INTERRUPTED]
+    counted = ordered
""", "interrupted attempts count towards max_attempts",
        "session/test_query_trial.py::test_interruptions_do_not_count_as_attempts_but_are_limited"),
    Planted("redelivered_event_counts", "", Area.DRIVERS, """
@ devices/framing/numbering.py
-        if not repeated:
+        if event:
""", "an event that a broker delivers twice is two events",
        "devices/test_board_session.py::test_missing_event_is_reported_with_the_event_after_it"),
    Planted("board_clock_without_error", "", Area.CLOCK, """
@ devices/wire/device_clock.py
-        return Stamp(self._origin.host_s + x + estimate, error_s)
+        return Stamp(self._origin.host_s + x + estimate, 0.0)
""", "times of a fitted clock claim to be exact",
        "devices/wire/test_device_clock.py::test_the_stated_error_covers_the_true_error"),
    Planted("line_clock_without_error", "", Area.CLOCK, """
@ devices/wire/line_clock.py
-        return Stamp(middle_s, error_s)
+        return Stamp(middle_s, time.step_s / 2)
""", "times of console lines claim to be as exact as the device's clock counts",
        "devices/wire/test_device_clock.py::test_stated_interval_contains_the_true_time"),
)
# fmt: on


@contextmanager
def planted(fault: Planted) -> Iterator[Path]:
    """A copy of the tree with the fault in it."""
    with tempfile.TemporaryDirectory(prefix="planted-") as place:
        folder = Path(place)
        for path in ROOT.iterdir():
            if path.name in ("harness", "tests"):
                shutil.copytree(path, folder / path.name)
            elif path.name not in (".git", "build"):
                (folder / path.name).symlink_to(path)
        for path, text in fault.edited(folder).items():
            path.write_text(text, encoding="utf-8")
        yield folder


def plant(fault: Planted, command: Sequence[str], limit_s: float = MAX_NIGHT_S) -> tuple[int | None, str]:
    """Runs a command in a copy of the tree with the fault; its exit status (None: no end in time) and its output."""
    with planted(fault) as folder:
        running = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = running.communicate(timeout=limit_s)
        except BaseException as error:
            os.killpg(running.pid, signal.SIGKILL)
            output, _ = running.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return None, output
        return running.returncode, output


def seeds_needed(fault: Planted, nights: int) -> str:
    """How many seeds it takes until an invariant breaks."""
    status, output = plant(fault, (*NIGHTS, f"0:{nights}"))
    if status is None:
        return f"no end within {MAX_NIGHT_S:.0f} s"
    if status == 0:
        return "not found"
    if status == 1 and (seeds := FAILING_SEED.findall(output)):
        return str(int(seeds[-1]) + 1)
    return f"status {status}: {''.join(output.strip().splitlines()[-1:])}"


def misfits(faults: Sequence[Planted]) -> Iterator[str]:
    """What does not fit today's source, does not compile or cannot be imported."""
    for fault in faults:
        try:
            for path, text in fault.edited().items():
                compile(text, str(path), "exec")
        except (ValueError, SyntaxError) as error:
            yield f"{fault.name}: {error}"
            continue
        modules = {"harness." + file.removesuffix(".py").replace("/", ".") for file, _, _ in fault.edits}
        status, output = plant(fault, (sys.executable, "-c", f"import {', '.join(sorted(modules))}"), IMPORT_LIMIT_S)
        if status != 0:
            yield f"{fault.name}: cannot be imported: {output}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nights.planted", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help="plant only these faults (default: all)")
    parser.add_argument("--check", action="store_true", help="only check that every fault fits the source")
    parser.add_argument("--nights", type=int, default=1000, help="play at most this many seeds each (default: 1000)")
    options = parser.parse_args()
    if unknown := set(options.names) - {fault.name for fault in FAULTS}:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    faults = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    if options.check:
        wrong = list(misfits(faults))
        summary = f"{len(faults) - len(wrong)} of {len(faults)} planted faults fit"
        sys.stdout.writelines(f"{line}\n" for line in (*wrong, summary))
        return 1 if wrong else 0
    all_found = True
    sys.stdout.write(f"{'fault':48}{'area':12}{'commit':10}seeds needed\n")
    for fault in faults:
        seeds = seeds_needed(fault, options.nights)
        all_found &= seeds.isdigit()
        sys.stdout.write(f"{fault.name:48}{fault.area:12}{fault.commit or 'invented':10}{seeds}\n")
        sys.stdout.flush()
    return 0 if all_found else 1


if __name__ == "__main__":
    sys.exit(main())
