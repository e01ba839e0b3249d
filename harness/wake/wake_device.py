"""One device's wake statistics: its plays, their sums, and the current state.

    report ─add_report─► event ─_place_event─► its play, or a stray
    events of plays ─_assign_events─► PlayEvents ─_update_reading─► result ─► PlayTotals

A later row may change an earlier result: a late report, a proof of listening, a stall, or another take of the trial.
The old result is then taken out of the sums, and the new one added. Only the last RECENT_PLAYS plays can still change,
so the cost of a row does not grow with the session.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.model.observation import DeviceState, HostStalled, StimulusHeard, StimulusStarted
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.time import MeasuredDuration, Stamp
from harness.model.transcript import WordCounts
from harness.model.trial import Target
from harness.statistics.intervals import LatencyFigures, Share, latency_figures
from harness.transcripts.recognition import GroupTranscripts
from harness.wake.first_sounds import FirstSounds
from harness.wake.proofs import ListeningProofs, Proofs
from harness.wake.report_merger import ReportMerger
from harness.wake.requests import by_gap
from harness.wake.sums import PlayTotals, ordered_by_axis
from harness.wake.timeline import MAX_MARKS, timeline
from harness.wake.unmatched import UnmatchedEvents
from harness.wake.utterances import Utterances
from harness.wake.wake_plays import (
    CommandResult,
    HeardWake,
    Play,
    PlayEvents,
    PlayReading,
    PlayState,
    Span,
    assign_events,
    proven_s,
    reading_of,
)
from harness.wake.wake_progress import (
    DeviceWake,
    Disagreement,
    LookCounts,
    Looks,
    Rate,
    Ratio,
    SourceTime,
    Speakers,
    UnmatchedWake,
    rate_with_intervals,
    ratio_with_intervals,
    recoveries,
)

RECENT_PLAYS = 16
"""Number of plays that a late event or proof may still change."""


class DeviceFigures:
    """Statistics of one device. The cost of a row does not depend on the length of the session."""

    def __init__(self, target: Target, settings: WakeSettings, events: UnmatchedEvents, utterances: Utterances) -> None:
        self.device, self._target = target.device, target
        self._proofs_of_runs = [ListeningProofs(Proofs(settings.proof_within_s))]
        self.lost_links: dict[str, str] = {}
        """Source → why its link is down."""
        self.absences: dict[str, str] = {}
        """Source → how it reported that it is gone."""
        self.clock_error_s: float | None = None
        self.decisions: dict[str, bool] = {}
        """Name of a sequential test → whether the device passed."""
        self.listening_states: set[DeviceState] = set()
        self.planned_speakers: set[str] = set()
        """Names of the speakers in its planned wake trials."""
        self.changed = True
        """Whether the last snapshot is out of date."""
        self._events = events
        self._utterances_of_runs = [(0, utterances)]
        """(`seq` of its first row, utterances) of each run. An event keeps the explanation of the run that heard it."""
        self._totals = PlayTotals()
        self._delays: dict[int, MeasuredDuration] = {}
        """By id() of a play that counts, as the next ones: `WakeFigures` keeps these plays."""
        self._delay_figures: LatencyFigures | None = None
        """Computed from `_delays`; None after one has changed."""
        self._word_counts: dict[int, tuple[str, WordCounts | None]] = {}
        """(Id of the query, word counts)."""
        self._first_sound_times: dict[int, MeasuredDuration | None] = {}
        self._first_sounds: FirstSounds | None = None
        """Computed from `_first_sound_times`; None after one has changed."""
        self._recent_plays: deque[Play] = deque(maxlen=RECENT_PLAYS)
        self._shown_subjects: deque[Play | int] = deque(maxlen=MAX_MARKS)
        """Plays, and row numbers of events that lie in no play, for the timeline."""
        self._looks = Looks()
        self._snapshot = DeviceWake(target.device)
        self._merger = ReportMerger(target.sources, target.merge_within_s)
        self._play_by_seq: dict[int, Play | None] = {}
        """`seq` of an event → its play, None for a stray; only for a device with several sources."""
        self._recent_strays: deque[HeardWake] = deque(maxlen=RECENT_PLAYS)
        """The latest events that lie in no play."""
        self._recent_stalls: deque[HostStalled] = deque(maxlen=RECENT_PLAYS)
        """The host's latest stalls in this run. A stall is often logged before the start of a sound that it delayed."""
        self._event_count = 0
        """Number of separate events and parts that must be in some result, see `unaccounted`."""

    @property
    def proofs(self) -> ListeningProofs:
        """The proofs of listening in the current run."""
        return self._proofs_of_runs[-1]

    def begin_run(self, seq: int, utterances: Utterances, *, same_time: bool) -> None:
        """Records that another process resumes the session, whose positions in injected audio begin at 0.

        seq: number of its first row. utterances: those that it hears. same_time: whether the host was not rebooted.
        Late reports of sound through the air then find their stimuli.
        """
        self.changed = True
        self._utterances_of_runs.append((seq, utterances))
        self._proofs_of_runs.append(self.proofs.for_next_run())
        self._merger.begin_run()
        self._recent_stalls.clear()
        self.lost_links.clear()  # an earlier run's connections ended with it
        self.absences.clear()
        if self._target.injected or not same_time:
            self._recent_plays.clear()
            self._play_by_seq.clear()
            self._recent_strays.clear()

    def begin_attempt(self, play: Play) -> None:
        """Adds a play, before its sound has started."""
        play.run_index = len(self._proofs_of_runs) - 1
        self._recent_plays.append(play)
        self._shown_subjects.append(play)
        self.changed = True

    def add_report(self, report: HeardWake) -> None:
        """Adds a report of a wake event."""
        self.changed = True
        if not self._merger.several:  # each report is an event
            self._place_event(report, was_shown=False)
            return
        removed, new = self._merger.add(report)
        shown_seqs = {event.seq for event in removed if self._forget_event(event)}
        for event in new:
            self._place_event(event, was_shown=event.seq in shown_seqs)

    def _forget_event(self, event: HeardWake) -> bool:
        """Removes an event, which others replace. Returns whether it was shown as unmatched."""
        was_shown = self._events.event_with(event.seq) is not None
        self._events.drop(event.seq)
        if not event.plays_only or self._play_by_seq.get(event.seq) is not None:
            self._event_count -= 1
        self._recent_strays = deque((other for other in self._recent_strays if other.seq != event.seq), RECENT_PLAYS)
        play = self._play_by_seq.pop(event.seq, None)
        if play is not None:
            play.remove(event.seq)
            if play.is_complete:
                self._assign_events(play)
        return was_shown

    def _place_event(self, event: HeardWake, *, was_shown: bool) -> None:
        """Adds an event to its play or to the strays, and updates the results that this may change.

        was_shown: whether it was shown as unmatched before, as it is or as an event that it replaces.
        """
        # Each report can place it: the best time may lie just beyond a play.
        plays = map(self._play_of, (event, *event.reports))
        play = next((play for play in plays if play is not None), None)
        if self._merger.several:
            self._play_by_seq[event.seq] = play
        if not event.plays_only or play is not None:
            self._event_count += 1
        if play is None:
            self._recent_strays.append(event)
            if event.plays_only:
                return
            self._put_unmatched(event, None, exposed=False)
            if not was_shown:
                self._shown_subjects.append(event.seq)
            self._assign_near(event, None)
            return
        play.add(event)
        if play.state is PlayState.OUTSIDE:
            self._put_unmatched(event, play, exposed=False)
        if play.is_complete:
            self._assign_events(play)
        elif play.state is PlayState.OUTSIDE:
            self._assign_near(event, play)
        elif play.kind is TrialKind.AMBIENT and (was_shown or play.note_if_separate(event)):
            self._put_unmatched(event, play, exposed=True, pending=True)

    def unaccounted(self) -> int:
        """Number of events that are in no result: 0, or the counts are wrong."""
        open_plays = [play for play in self._recent_plays if play.state is PlayState.RUNNING]
        waiting = sum(self._events.event_with(event.seq) is None for play in open_plays for event in play.events)
        sums, unmatched = self._totals, len(self._events.of_device(self.device))
        return (
            self._event_count
            - sums.matched_events
            - sums.suppressed_events
            - sums.expected_events
            - unmatched
            - waiting
        )

    def is_explained(self, seq: int) -> bool | None:
        """Whether an event matches a stimulus or is part of an earlier event; None while this is open."""
        if self._events.event_with(seq) is not None:
            return False
        if self._merger.is_part(seq):
            return True
        play = next((play for play in reversed(self._recent_plays) if play.has_event(seq)), None)
        if play is None:
            return False
        return None if play.state is PlayState.RUNNING and play.kind is not TrialKind.AMBIENT else True

    def begin_sound(self, play: Play, observation: StimulusStarted) -> None:
        """Sets the start of a play's sound, which places events that were reported before."""
        play.started, play.audio_start_s = observation.at, observation.audio_s if play.target.injected else None
        for stall in self._recent_stalls:
            self._add_stall(play, stall)
        self.changed = True
        self._claim_strays(play)

    def finish_attempt(self, play: Play, *, is_counted: bool, wall_s: float) -> None:
        """Ends an attempt. is_counted: whether it counts. wall_s: Unix time of the row."""
        if play.started is not None:
            self._reorder_events(play)
        if play.started is None or not is_counted:
            self.exclude(play)
            for event in play.events.copy():
                self._assign_near(event, play)
            return
        play.state, play.is_complete = PlayState.COUNTED, True
        if play.kind is TrialKind.AMBIENT and self.proofs.woken is not None:
            self.proofs.unproven_plays.append(play)
        self._assign_events(play, new=True)
        look = LookCounts(
            wall_s=wall_s,
            false_rejects=self._totals.false_rejects,
            speakers=self._totals.speakers.copy(),
            planned_speakers=self.planned_speakers,
            exposure_s=self._totals.exposure_s,
            false_accepts=self._events.counts(self.device).after_review,
        )
        self._looks.add(look)

    def _claim_strays(self, play: Play) -> None:
        """Places events that were reported before the start of their sound."""
        if play.started is None or not any(is_inside for _, is_inside in play.placed(self._recent_strays)):
            return
        strays = self._recent_strays.copy()
        self._recent_strays.clear()
        for event, (_, is_inside) in zip(strays, play.placed(strays), strict=True):
            if is_inside:
                if not event.plays_only:  # `_place_event` counts it again
                    self._event_count -= 1
                self._events.drop(event.seq)
                self._place_event(event, was_shown=False)
            else:
                self._recent_strays.append(event)

    def _reorder_events(self, play: Play) -> None:
        """Sorts the events of a play after its start or speed has become known, and moves those that lie outside."""
        play.events.sort(key=play.place)
        events = play.events.copy()
        for event, (_, is_inside) in zip(events, play.placed(events), strict=True):
            # Placing one event may settle the play before, which then takes further ones by itself.
            if not is_inside and play.has_event(event.seq):
                self._event_count -= 1
                play.remove(event.seq)
                self._events.drop(event.seq)
                self._place_event(event, was_shown=False)

    def exclude(self, play: Play) -> None:
        """Takes a play out of the results that was interrupted, or that a later take replaces."""
        self._remove_result(play)
        if play.state is PlayState.COUNTED:
            self._totals.add(play, -1)
        play.state, play.reading = PlayState.OUTSIDE, PlayReading()
        for event in play.events:
            self._put_unmatched(event, play, exposed=False)
        self.changed = True

    def set_found_start(self, observation: StimulusHeard) -> None:
        """Sets the start of a sound through the air to where the microphone found it; possibly after the attempt."""
        play = next((play for play in self._recent_plays if play.row.play_id == observation.play_id), None)
        if play is None or play.target.injected or play.found_at is not None:
            return
        play.found_at = observation.at
        self.changed = True
        self._claim_strays(play)
        self._reorder_events(play)
        if play.is_complete:
            self._assign_events(play)

    def add_sound(self, microphone: str, stamp: Stamp, trial_id: str | None) -> None:
        """Records that the microphone heard a device begin to make a sound, possibly after the attempt.

        trial_id: id of the trial to which the session credits the sound.
        """
        play = next((play for play in reversed(self._recent_plays) if play.started is not None), None)
        if play is None or play.kind is not TrialKind.COMMAND or play.trial.microphone != microphone:
            return
        if trial_id not in (None, play.trial.id):  # the answer to a later query
            return
        play.sounds.append(stamp)
        if play.state is PlayState.COUNTED:
            self._update_reading(play)

    def apply_proofs(self) -> None:
        """Updates the exposure of the last plays after another proof of listening."""
        self.changed = True
        self._update_exposure(self._recent_plays)

    def add_stall(self, stall: HostStalled) -> None:
        """Records a stall of the host, which may become known only after the attempt."""
        self._recent_stalls.append(stall)
        for play in self._recent_plays:
            if self._add_stall(play, stall) and play.state is PlayState.COUNTED:
                self._update_reading(play)

    @staticmethod
    def _add_stall(play: Play, stall: HostStalled) -> bool:
        """Adds a stall to a play if it falls within that, as far as it is known. Returns whether it does."""
        if play.started is None:
            return False
        until_s = math.inf if play.ended is None else play.ended.at_s + play.settings.window_after_s
        if not stall.falls_within(play.started.at_s, until_s):
            return False
        play.stalls.append(stall)
        return True

    def add_cut(self, at_s: float) -> None:
        """Records a restart or a lost link. A late report takes proofs away from the last plays."""
        self.changed = True
        if self.proofs.add_cut(at_s):
            self._update_exposure(self._recent_plays, lowered=True)

    def _update_exposure(self, plays: Iterable[Play], *, lowered: bool = False) -> None:
        """Updates the plays whose exposure has changed. lowered: whether proofs were taken away."""
        for play in plays:
            if play.kind is not TrialKind.AMBIENT or play.state is not PlayState.COUNTED:
                continue
            if not lowered and not play.reading.unproven_s:
                continue
            exposure_s, listened_s = play.reading.exposure_s, proven_s(play, self._listening_spans(play))
            if listened_s > exposure_s or (lowered and listened_s < exposure_s):
                self._update_reading(play)

    def _listening_spans(self, play: Play) -> list[Span]:
        return self._proofs_of_runs[play.run_index].spans_of(play)

    def snapshot(self) -> DeviceWake:
        """All statistics; the same object as the last time if nothing has changed."""
        if not self.changed:
            return self._snapshot
        self.changed = False
        sums, counts = self._totals, self._events.counts(self.device)
        troubles = self.absences | self.lost_links
        hours = sums.exposure_s / 3600
        commands = sum(sums.commands.values())
        if self._delay_figures is None:
            self._delay_figures = latency_figures(list(self._delays.values()))
        if self._first_sounds is None:
            self._first_sounds = FirstSounds.of(list(self._first_sound_times.values()))
        self._snapshot = DeviceWake(
            device=self.device,
            false_rejects=ratio_with_intervals(sums.false_rejects, self._speakers()),
            hits=sums.hits,
            double_wakes=Share(sums.doubled_hits, sums.hits),
            missed=sums.commands[CommandResult.MISSING],
            false_accepts=rate_with_intervals(counts.before_review, hours),
            after_review=rate_with_intervals(counts.after_review, hours),
            events=tuple((verdict, count) for verdict, count in counts.by_verdict.items() if count),
            in_vocabulary_events=counts.in_vocabulary,
            suppressed=sums.suppressed_events,
            exposure_s=sums.exposure_s,
            unproven_s=sums.unproven_ns / 1e9,
            ambient_events_outside=counts.outside,
            uncounted_events=counts.uncounted,
            pending_events=counts.pending,
            delays=self._delay_figures,
            commands=Share(sums.commands[CommandResult.MATCH], commands),
            substituted=sums.commands[CommandResult.SUBSTITUTION],
            link_up=not troubles,
            link_trouble=next(reversed(troubles.values()), ""),
            clock_error_s=self.clock_error_s,
            listening_proved_s=self.proofs.last_s,
            probes=Share(sums.probes_heard, sums.probes),
            words=GroupTranscripts.of(self._word_counts.values()),
            timeline=timeline(self._shown_subjects, self._events),
            looks=self._looks.snapshot(),
            decisions=tuple(self.decisions.items()),
            conditions=tuple(self._conditions()),
            source_events=sums.events_by_sources.total(),
            disagreements=tuple(self._disagreements()),
            inferred=tuple((evidence, count) for evidence, count in sums.events_by_inference.most_common() if count),
            recoveries=tuple(recoveries(sums.pauses)),
            requests=by_gap(sums.requests),
            first_sounds=self._first_sounds,
        )
        return self._snapshot

    def sequential_snapshot(self) -> DeviceWake:
        """The part of `snapshot` that sequential tests need, without intervals."""
        counts = self._events.counts(self.device)
        return DeviceWake(
            device=self.device,
            false_rejects=Ratio(self._totals.false_rejects, speakers=self._speakers()),
            after_review=Rate(counts.after_review, self._totals.exposure_s / 3600),
            decisions=tuple(self.decisions.items()),
        )

    def _speakers(self) -> Speakers:
        return Speakers.of(self._totals.speakers, self.planned_speakers)

    def _conditions(self) -> Iterator[tuple[str, Ratio]]:
        for condition, shares in ordered_by_axis(self._totals.speakers_by_condition):
            speakers = Speakers.of(shares)
            if speakers.shares:
                yield condition, ratio_with_intervals(sum(speakers.shares, Share()), speakers)

    def _disagreements(self) -> Iterator[Disagreement]:
        label, sources = self._target.label, self._target.sources
        for reporters, count in self._totals.events_by_sources.most_common():
            missing = tuple(label(source) for source in sources if source not in reporters)
            if missing and count:
                yield Disagreement(tuple(map(label, reporters)), missing, count)

    def _play_of(self, event: HeardWake) -> Play | None:
        """The play to which a report belongs, by its position only: it may arrive during a later play, or after all."""
        reached_play: Play | None = None
        for play in reversed(self._recent_plays):
            if play.started is None:
                continue
            (from_s, to_s), place_s = play.span, play.place(event)
            if from_s <= place_s:
                # How slowly sound is sent is not known before its end: until then the host's clock places too far.
                running = play.state is PlayState.RUNNING and play.ended is None
                if place_s <= to_s or (running and play.on_audio_line and event.audio_s is None):
                    if not play.is_before_sound(event):
                        return play
                    reached_play = reached_play or play  # unless an earlier one ends where it begins
        return reached_play

    def _assign_near(self, event: HeardWake, owner: Play | None) -> None:
        """Assigns an event outside of complete plays, which may lie in the window of one, or be part of its last event.

        owner: the interrupted play in which it lies; None if it lies in none.
        """
        for play in reversed(self._recent_plays):
            is_on_line = _has_place(play, event) if owner is None else owner.on_audio_line is play.on_audio_line
            if not play.is_complete or not is_on_line:
                continue
            from_s, to_s = play.span
            if from_s <= (owner or play).place(event) <= to_s + play.settings.refractory_s:
                self._assign_events(play)
                return

    def _assign_events(self, play: Play, *, new: bool = False) -> None:
        """Assigns the events around a play that was heard completely, and updates the results of the plays concerned.

        new: whether the play is in no sum yet.
        """
        neighbours = [other for other in self._recent_plays if other.on_audio_line is play.on_audio_line]
        line = [other for other in neighbours if other.is_complete]
        if play not in line:  # too long ago for its neighbours to be known
            line = [play]
        first, from_s = line.index(play), play.span[0] - play.settings.refractory_s
        # Go back to the first play that an event of this one may belong to.
        while first and line[first - 1].span[1] >= from_s:
            first -= 1
            if window := line[first].window:
                from_s = min(from_s, window.start_s)
        earlier_s = (last_s for other in reversed(line[:first]) if (last_s := other.last_s) is not None)
        plays = line[first:]
        broken = [other for other in neighbours if not other.is_complete and other.state is PlayState.OUTSIDE]
        outside_events = [(other.place(event), event) for other in broken for event in other.events]
        outside_events += [
            (play.place(event), event)
            for event in self._recent_strays
            if not event.plays_only and _has_place(play, event)
        ]
        assignments = assign_events(plays, outside_events, next(earlier_s, -math.inf))
        released_events = self._move_events(assignments, broken)
        woke: list[tuple[Play, HeardWake]] = []
        for other in plays:
            if other is not play and assignments[other] == other.assignment:
                continue
            hit = assignments[other].hit
            if hit is not None and hit != other.assignment.hit:
                woke.append((other, hit))
            other.assignment = assignments[other]
            if other.state is PlayState.COUNTED:
                self._update_reading(other, new=new and other is play)
            else:
                for event in other.events:
                    self._put_unmatched(event, other, exposed=False)
        for event in released_events:
            self._event_count -= 1
            self._place_event(event, was_shown=True)
        for other, hit in woke:
            self._update_exposure(
                [*self._proofs_of_runs[other.run_index].add_woken(other.target.connection, hit.at), *self._recent_plays]
            )

    def _move_events(self, assignments: Mapping[Play, PlayEvents], broken: Sequence[Play]) -> list[HeardWake]:
        """Moves events to the plays to which they belong now. Returns those that no longer belong to any of them.

        broken: interrupted plays, which keep the events that the other plays do not take.
        """
        new_plays = {event.seq: new_play for new_play, assignment in assignments.items() for event in assignment.every}
        released_events: list[HeardWake] = []
        placed = [(play, event) for play in (*assignments, *broken) for event in play.events]
        for play, event in (*placed, *((None, event) for event in self._recent_strays.copy())):
            new_play = new_plays.get(event.seq, None if play in assignments else play)
            if new_play is play:
                continue
            place_s = None if play is None else play.place(event)
            self._events.drop(event.seq)
            if play is None:
                self._recent_strays.remove(event)
            else:
                play.remove(event.seq)
            if new_play is None:
                released_events.append(event)
                continue
            new_play.add(event, place_s)
            if self._merger.several:
                self._play_by_seq[event.seq] = new_play
        return released_events

    def _update_reading(self, play: Play, *, new: bool = False) -> None:
        """Updates the result of a play that counts. new: whether it is in no sum yet."""
        self._remove_result(play)
        if not new:
            self._totals.add(play, -1)
        play.reading = reading = reading_of(play, self._listening_spans(play))
        self._totals.add(play, 1)
        for event, exposed in zip(reading.unmatched, reading.exposed, strict=True):
            self._put_unmatched(event, play, exposed=exposed)
        if reading.delay is not None and play.kind is not TrialKind.PROBE:
            self._delays[id(play)] = reading.delay
        if play.was_answered:
            self._first_sound_times[id(play)] = play.first_sound
            self._first_sounds = None
        if play.has_transcripts:
            self._word_counts[id(play)] = (play.trial.query_id, reading.counts)
        self._delay_figures = None
        self.changed = True

    def _remove_result(self, play: Play) -> None:
        """Removes what `_update_reading` added, except for the sums."""
        for event in play.events:
            self._events.drop(event.seq)
        self._word_counts.pop(id(play), None)
        if id(play) in self._first_sound_times:
            del self._first_sound_times[id(play)]
            self._first_sounds = None
        if self._delays.pop(id(play), None) is not None:
            self._delay_figures = None

    def _put_unmatched(self, event: HeardWake, play: Play | None, *, exposed: bool, pending: bool = False) -> None:
        """Shows an event as unmatched. exposed: it fell into exposure. pending: its attempt still runs."""
        utterances = next(spoken for first, spoken in reversed(self._utterances_of_runs) if first <= event.seq)
        rule, why = utterances.explain_wake(self.device, event.at.at_s)
        if play and play.target.injected:  # such a device does not hear the room
            rule, why = None, ""
        self._events.put(
            UnmatchedWake(
                seq=event.seq,
                device=self.device,
                at=event.at,
                wall_s=event.wall_s,
                phrase=event.phrase,
                score=event.score,
                trial_id=play.trial.id if play else None,
                audio_s=event.audio_s,
                offset_s=play.place(event) - play.start_s if play and play.started else None,
                in_vocabulary=play is not None and play.kind is not TrialKind.AMBIENT,
                exposed=exposed,
                rule=rule,
                why=why,
                sources=tuple(
                    SourceTime(self._target.label(report.source), report.at, report.seq, report.inferred)
                    for report in event.reports
                ),
                inferred=event.inferred,
            ),
            pending,
        )


def _has_place(play: Play, event: HeardWake) -> bool:
    """Whether an event that lies in no play has a position on the time line of this one."""
    return event.audio_s is not None or not play.on_audio_line
