"""One device's wake statistics: its plays, their sums, and the current state.

    report ─heard─► event ─_place_event─► its play, or a stray ─_assign─► PlayEvents ─_read─► result ─► PlayTotals

A later row may change an earlier result: a late report, a proof of listening, a stall, or another take of the trial.
The old result is then taken out of the sums, and the new one added. Only the last RECENT plays can still change, so
the cost of a row does not grow with the session.
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
from harness.wake.requests import by_gap
from harness.wake.sums import PlayTotals, by_axis, shares
from harness.wake.unmatched import UnmatchedEvents
from harness.wake.utterances import Utterances
from harness.wake.wake_plays import (
    CommandResult,
    HeardWake,
    Play,
    PlayEvents,
    PlayReading,
    PlayState,
    ReportMerger,
    Span,
    assign,
    proven_s,
    read,
)
from harness.wake.wake_progress import (
    DeviceWake,
    Disagreement,
    Looks,
    MarkKind,
    Rate,
    Ratio,
    SourceTime,
    Speakers,
    TimelineMark,
    UnmatchedWake,
    rate,
    ratio,
    recoveries,
)

MARKS = 200
"""Number of marks that the timeline shows."""
RECENT = 16
"""Number of plays that a late event or proof may still change."""


class DeviceFigures:
    """Statistics of one device. The cost of a row does not depend on the length of the session."""

    def __init__(self, target: Target, settings: WakeSettings, events: UnmatchedEvents, speech: Utterances) -> None:
        self.device, self._target = target.device, target
        self._proofs_of_runs = [ListeningProofs(Proofs(settings.proof_within_s))]
        self.lost: dict[str, str] = {}
        """Source → why its link is down."""
        self.clock_error_s: float | None = None
        self.decisions: dict[str, bool] = {}
        self.listening_states: set[DeviceState] = set()
        self.planned_speakers: set[str] = set()
        """Names of the speakers in its planned wake trials."""
        self.changed = True
        self._events, self._speech = events, speech
        self._sums = PlayTotals()
        self._delays: dict[int, MeasuredDuration] = {}
        self._latency: LatencyFigures | None = None
        self._words: dict[int, tuple[str, WordCounts | None]] = {}
        self._sounds: dict[int, MeasuredDuration | None] = {}
        self._first_sounds: FirstSounds | None = None
        self._recent: deque[Play] = deque(maxlen=RECENT)
        self._shown_subjects: deque[Play | int] = deque(maxlen=MARKS)
        self._looks = Looks()
        self._device_wake = DeviceWake(target.device)
        self._merging = ReportMerger(target.sources, target.merge_within_s)
        self._homes: dict[int, Play | None] = {}
        self._strays: deque[HeardWake] = deque(maxlen=RECENT)
        """The latest events that lie in no play."""
        self._stalls: deque[HostStalled] = deque(maxlen=RECENT)
        """The host's latest stalls in this run. A stall is often logged before the start of a sound that it delayed."""
        self._counted_events = 0

    @property
    def proofs(self) -> ListeningProofs:
        """The proofs of listening in the current run."""
        return self._proofs_of_runs[-1]

    def begin_run(self, *, same_time: bool) -> None:
        """Records that another process resumes the session, whose positions in injected audio begin at 0.

        same_time: whether the host was not rebooted. Late reports of sound through the air then find their stimuli.
        """
        self.changed = True
        self._proofs_of_runs.append(self.proofs.of_next_run())
        self._merging.begin_run()
        self._stalls.clear()
        if self._target.injected or not same_time:
            self._recent.clear()
            self._homes.clear()
            self._strays.clear()

    def begin(self, play: Play) -> None:
        play.run = len(self._proofs_of_runs) - 1
        self._recent.append(play)
        self._shown_subjects.append(play)
        self.changed = True

    def heard(self, report: HeardWake) -> None:
        """Adds a report of a wake event."""
        self.changed = True
        if not self._merging.several:  # each report is an event
            self._place_event(report, False)
            return
        removed, new = self._merging.add(report)
        shown_seqs = {event.seq for event in removed if self._forget(event)}
        for event in new:
            self._place_event(event, event.seq in shown_seqs)

    def _forget(self, event: HeardWake) -> bool:
        """Removes an event, which others replace. Returns whether it was shown as unmatched."""
        was_shown = self._events.event_with(event.seq) is not None
        self._events.drop(event.seq)
        if not event.plays_only or self._homes.get(event.seq) is not None:
            self._counted_events -= 1
        self._strays = deque((other for other in self._strays if other.seq != event.seq), RECENT)
        play = self._homes.pop(event.seq, None)
        if play is not None:
            play.remove(event.seq)
            if play.is_complete:
                self._assign(play)
        return was_shown

    def _place_event(self, event: HeardWake, was_shown: bool) -> None:
        # Each report can place it: the best time may lie just beyond a play.
        play = self._play_of(event) or next(filter(None, map(self._play_of, event.reports)), None)
        if self._merging.several:
            self._homes[event.seq] = play
        if not event.plays_only or play is not None:
            self._counted_events += 1
        if play is None:
            self._strays.append(event)
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
            self._assign(play)
        elif play.state is PlayState.OUTSIDE:
            self._assign_near(event, play)
        elif play.kind is TrialKind.AMBIENT and (was_shown or play.counts_by_itself(event)):
            self._put_unmatched(event, play, exposed=True, pending=True)

    def unaccounted(self) -> int:
        """Number of events that are in no result: 0, or the counts are wrong."""
        open_plays = [play for play in self._recent if play.state is PlayState.RUNNING]
        waiting = sum(self._events.event_with(event.seq) is None for play in open_plays for event in play.events)
        sums, unmatched = self._sums, len(self._events.every(self.device))
        return (
            self._counted_events
            - sums.matched_events
            - sums.suppressed_events
            - sums.expected_events
            - unmatched
            - waiting
        )

    def explained(self, seq: int) -> bool | None:
        """Whether an event matches a stimulus or is part of an earlier event; None while this is open."""
        if self._events.event_with(seq) is not None:
            return False
        if self._merging.is_part(seq):
            return True
        play = next((play for play in reversed(self._recent) if play.has(seq)), None)
        if play is None:
            return False
        return None if play.state is PlayState.RUNNING and play.kind is not TrialKind.AMBIENT else True

    def started(self, play: Play, observation: StimulusStarted) -> None:
        play.started, play.audio_start_s = observation.at, observation.audio_s if play.target.injected else None
        for stall in self._stalls:
            self._add_stall(play, stall)
        self.changed = True
        self._claim_strays(play)

    def finish(self, play: Play, is_counted: bool, wall_s: float) -> None:
        """Ends an attempt. is_counted: whether it counts."""
        if play.started is not None:
            self._reorder_events(play)
        if play.started is None or not is_counted:
            self.leave(play)
            for event in play.events.copy():
                self._assign_near(event, play)
            return
        play.state, play.is_complete = PlayState.COUNTED, True
        if play.kind is TrialKind.AMBIENT and self.proofs.woken is not None:
            self.proofs.doubtful.append(play)
        self._assign(play, new=True)
        sums, accepts = self._sums, self._events.counts(self.device).after
        self._looks.add(wall_s, sums.false_rejects, self._speakers(), sums.exposure_s, accepts)

    def _claim_strays(self, play: Play) -> None:
        """Places events that were reported before the start of their sound."""
        if play.started is None or not any(is_inside for _, is_inside in play.placed(self._strays)):
            return
        strays = self._strays.copy()
        self._strays.clear()
        for event, (_, is_inside) in zip(strays, play.placed(strays), strict=True):
            if is_inside:
                if not event.plays_only:  # `_place_event` counts it again
                    self._counted_events -= 1
                self._events.drop(event.seq)
                self._place_event(event, False)
            else:
                self._strays.append(event)

    def _reorder_events(self, play: Play) -> None:
        """Sorts the events of a play after its start or speed has become known, and moves those that lie outside."""
        play.events.sort(key=play.place)
        events = play.events.copy()
        for event, (_, is_inside) in zip(events, play.placed(events), strict=True):
            # Placing one event may settle the play before, which then takes further ones by itself.
            if not is_inside and play.has(event.seq):
                self._counted_events -= 1
                play.remove(event.seq)
                self._events.drop(event.seq)
                self._place_event(event, False)

    def leave(self, play: Play) -> None:
        """Removes a play that was interrupted, or that a later take replaces."""
        self._withdraw(play)
        if play.state is PlayState.COUNTED:
            self._sums.add(play, -1)
        play.state, play.reading = PlayState.OUTSIDE, PlayReading()
        for event in play.events:
            self._put_unmatched(event, play, exposed=False)
        self.changed = True

    def heard_in_room(self, observation: StimulusHeard) -> None:
        """Sets the start of a sound through the air to where the microphone found it; possibly after the attempt."""
        play = next((play for play in self._recent if play.row.play_id == observation.play_id), None)
        if play is None or play.target.injected or play.found_at is not None:
            return
        play.found_at = observation.at
        self.changed = True
        self._claim_strays(play)
        self._reorder_events(play)
        if play.is_complete:
            self._assign(play)

    def sounded(self, microphone: str, stamp: Stamp, trial_id: str | None) -> None:
        """Records that the microphone heard a device begin to make a sound, possibly after the attempt.

        trial_id: id of the trial to which the session credits the sound.
        """
        play = next((play for play in reversed(self._recent) if play.started is not None), None)
        if play is None or play.kind is not TrialKind.COMMAND or play.trial.microphone != microphone:
            return
        if trial_id not in (None, play.trial.id):  # the answer to a later query
            return
        play.sounds.append(stamp)
        if play.state is PlayState.COUNTED:
            self._read(play)

    def proved(self) -> None:
        """Updates the last plays after another proof of listening."""
        self.changed = True
        self._prove(self._recent)

    def stalled(self, stall: HostStalled) -> None:
        """Records a stall of the host, which may become known only after the attempt."""
        self._stalls.append(stall)
        for play in self._recent:
            if self._add_stall(play, stall) and play.state is PlayState.COUNTED:
                self._read(play)

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

    def cut(self, at_s: float) -> None:
        """Records a restart or a lost link. A late report takes proofs away from the last plays."""
        self.changed = True
        if self.proofs.cut(at_s):
            self._prove(self._recent, lowered=True)

    def _prove(self, plays: Iterable[Play], *, lowered: bool = False) -> None:
        for play in plays:
            ambient = play.kind is TrialKind.AMBIENT and play.state is PlayState.COUNTED
            if ambient and (lowered or play.reading.unproven_s):
                listened_s = proven_s(play, self._listened(play))
                if listened_s > play.reading.exposure_s or (lowered and listened_s < play.reading.exposure_s):
                    self._read(play)

    def _listened(self, play: Play) -> list[Span]:
        return self._proofs_of_runs[play.run].spans_of(play)

    def snapshot(self) -> DeviceWake:
        if not self.changed:
            return self._device_wake
        self.changed = False
        sums, counts = self._sums, self._events.counts(self.device)
        hours = sums.exposure_s / 3600
        commands = sum(sums.commands.values())
        if self._latency is None:
            self._latency = latency_figures(list(self._delays.values()))
        if self._first_sounds is None:
            self._first_sounds = FirstSounds.of(list(self._sounds.values()))
        self._device_wake = DeviceWake(
            device=self.device,
            false_rejects=ratio(sums.false_rejects, self._speakers()),
            hits=sums.hits,
            double_wakes=Share(sums.doubled_hits, sums.hits),
            missed=sums.commands[CommandResult.MISSING],
            false_accepts=rate(counts.before, hours),
            after_review=rate(counts.after, hours),
            events=tuple((word, count) for word, count in counts.words.items() if count),
            in_vocabulary_events=counts.in_vocabulary,
            suppressed=sums.suppressed_events,
            exposure_s=sums.exposure_s,
            unproven_s=sums.unproven_ns / 1e9,
            ambient_events_outside=counts.outside,
            uncounted_events=counts.uncounted,
            pending_events=counts.pending,
            delays=self._latency,
            commands=Share(sums.commands[CommandResult.MATCH], commands),
            substituted=sums.commands[CommandResult.SUBSTITUTION],
            link_up=not self.lost,
            link_trouble=next(reversed(self.lost.values()), ""),
            clock_error_s=self.clock_error_s,
            listening_proved_s=self.proofs.last_s,
            probes=Share(sums.probes_heard, sums.probes),
            words=GroupTranscripts.of(self._words.values()),
            timeline=self._timeline(),
            looks=self._looks.snapshot(),
            decisions=tuple(self.decisions.items()),
            conditions=tuple(
                (name, ratio(sum(speakers.shares, Share()), speakers))
                for name, cell in by_axis(sums.speakers_by_condition)
                if (speakers := Speakers.of(shares(cell))).shares
            ),
            source_events=sums.events_by_sources.total(),
            disagreements=tuple(self._disagreements()),
            inferred=tuple((evidence, count) for evidence, count in sums.events_by_inference.most_common() if count),
            recoveries=tuple(recoveries(sums.pauses)),
            requests=by_gap(sums.requests),
            first_sounds=self._first_sounds,
        )
        return self._device_wake

    def tested(self) -> DeviceWake:
        """The part of `snapshot` that sequential tests need, without intervals."""
        counts = self._events.counts(self.device)
        return DeviceWake(
            device=self.device,
            false_rejects=Ratio(self._sums.false_rejects, speakers=self._speakers()),
            after_review=Rate(counts.after, self._sums.exposure_s / 3600),
            decisions=tuple(self.decisions.items()),
        )

    def _speakers(self) -> Speakers:
        return Speakers.of(shares(self._sums.speakers), self.planned_speakers)

    def _disagreements(self) -> Iterator[Disagreement]:
        label, sources = self._target.label, self._target.sources
        for reporters, count in self._sums.events_by_sources.most_common():
            missing = tuple(label(source) for source in sources if source not in reporters)
            if missing and count:
                yield Disagreement(tuple(map(label, reporters)), missing, count)

    def _play_of(self, event: HeardWake) -> Play | None:
        """The play to which a report belongs, by its position only: it may arrive during a later play, or after all."""
        reached_play: Play | None = None
        for play in reversed(self._recent):
            if play.started is None:
                continue
            (from_s, to_s), place_s = play.span, play.place(event)
            if from_s <= place_s:
                # How slowly sound is sent is not known before its end: until then the host's clock places too far.
                running = play.state is PlayState.RUNNING and play.ended is None
                slow = running and play.on_audio_line and event.audio_s is None
                if slow or place_s <= to_s:
                    if not play.follows(event):
                        return play
                    reached_play = reached_play or play  # unless an earlier one ends where it begins
        return reached_play

    def _assign_near(self, event: HeardWake, owner: Play | None) -> None:
        """Assigns an event outside of complete plays, which may lie in the window of one, or be part of its last event.
        owner: the interrupted play in which it lies; None if it lies in none."""
        for play in reversed(self._recent):
            if play.is_complete and (
                _has_place(play, event) if owner is None else owner.on_audio_line is play.on_audio_line
            ):
                from_s, to_s = play.span
                if from_s <= (owner or play).place(event) <= to_s + play.settings.refractory_s:
                    self._assign(play)
                    return

    def _assign(self, play: Play, new: bool = False) -> None:
        """Assigns the events around a play that was heard completely, and updates the results of the plays concerned.

        new: whether the play is in no sum yet.
        """
        neighbours = [other for other in self._recent if other.on_audio_line is play.on_audio_line]
        line = [other for other in neighbours if other.is_complete]
        if play not in line:  # too long ago for its neighbours to be known
            line = [play]
        first, from_s = line.index(play), play.span[0] - play.settings.refractory_s
        # Back to the first play that an event of this one may belong to.
        while first and line[first - 1].span[1] >= from_s:
            first -= 1
            if window := line[first].window:
                from_s = min(from_s, window.start_s)
        earlier_s = (last_s for other in reversed(line[:first]) if (last_s := other.last_s) is not None)
        plays = line[first:]
        broken = [other for other in neighbours if not other.is_complete and other.state is PlayState.OUTSIDE]
        loose = [(other.place(event), event) for other in broken for event in other.events]
        loose += [
            (play.place(event), event) for event in self._strays if not event.plays_only and _has_place(play, event)
        ]
        assignments = assign(plays, loose, next(earlier_s, -math.inf))
        returned = self._move(assignments, broken)
        woke: list[tuple[Play, HeardWake]] = []
        for other in plays:
            if other is not play and assignments[other] == other.assignment:
                continue
            hit = assignments[other].hit
            if hit is not None and hit != other.assignment.hit:
                woke.append((other, hit))
            other.assignment = assignments[other]
            if other.state is PlayState.COUNTED:
                self._read(other, new=new and other is play)
            else:
                for event in other.events:
                    self._put_unmatched(event, other, exposed=False)
        for event in returned:
            self._counted_events -= 1
            self._place_event(event, True)
        for other, hit in woke:
            self._prove([*self._proofs_of_runs[other.run].woke(other.target.connection, hit.at), *self._recent])

    def _move(self, assignments: Mapping[Play, PlayEvents], broken: Sequence[Play]) -> list[HeardWake]:
        """Moves events to the plays to which they belong now. Returns those that no longer belong to any of them.

        broken: interrupted plays, which keep the events that the other plays do not take.
        """
        homes = {event.seq: home for home, assignment in assignments.items() for event in assignment.every}
        returned: list[HeardWake] = []
        placed = [(play, event) for play in (*assignments, *broken) for event in play.events]
        for play, event in (*placed, *((None, event) for event in self._strays.copy())):
            home = homes.get(event.seq, None if play in assignments else play)
            if home is play:
                continue
            place_s = None if play is None else play.place(event)
            self._events.drop(event.seq)
            if play is None:
                self._strays.remove(event)
            else:
                play.remove(event.seq)
            if home is None:
                returned.append(event)
                continue
            home.add(event, place_s)
            if self._merging.several:
                self._homes[event.seq] = home
        return returned

    def _read(self, play: Play, new: bool = False) -> None:
        """Updates the result of a play that counts. new: whether it is in no sum yet."""
        self._withdraw(play)
        if not new:
            self._sums.add(play, -1)
        play.reading = reading = read(play, self._listened(play))
        self._sums.add(play, 1)
        for event, exposed in zip(reading.unmatched, reading.exposed, strict=True):
            self._put_unmatched(event, play, exposed)
        if reading.delay is not None and play.kind is not TrialKind.PROBE:
            self._delays[id(play)] = reading.delay
        if play.answers:
            self._sounds[id(play)] = play.first_sound
            self._first_sounds = None
        if play.transcribes:
            self._words[id(play)] = (play.trial.query_id, reading.counts)
        self._latency = None
        self.changed = True

    def _withdraw(self, play: Play) -> None:
        for event in play.events:
            self._events.drop(event.seq)
        self._words.pop(id(play), None)
        if id(play) in self._sounds:
            del self._sounds[id(play)]
            self._first_sounds = None
        if self._delays.pop(id(play), None) is not None:
            self._latency = None

    def _put_unmatched(self, event: HeardWake, play: Play | None, exposed: bool, pending: bool = False) -> None:
        # A device with injected sound does not hear the room.
        rule, why = (None, "") if play and play.target.injected else self._speech.rule(self.device, event.at.at_s)
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

    def _timeline(self) -> tuple[TimelineMark, ...]:
        marks: list[TimelineMark] = []
        for subject in reversed(self._shown_subjects):
            marks.extend(reversed(list(self._marks(subject))))
            if len(marks) >= MARKS:
                break
        return tuple(sorted(marks[:MARKS], key=lambda mark: mark.start_s))

    def _marks(self, subject: Play | int) -> Iterator[TimelineMark]:
        if isinstance(subject, int):
            yield from self._event_marks([subject], "")
            return
        if subject.started is None:
            return
        trial_id, row = subject.trial.id, subject.row
        span = subject.host_s(0.0), subject.host_s(max(0.0, subject.end_s - subject.start_s))
        if subject.state is PlayState.OUTSIDE:
            yield TimelineMark(MarkKind.INTERRUPTED, *span, trial_id)
        elif subject.kind is TrialKind.AMBIENT:
            yield TimelineMark(MarkKind.AMBIENT, *span, trial_id)
        elif subject.state is PlayState.COUNTED:
            is_command = subject.kind is TrialKind.COMMAND
            is_success = (
                subject.reading.command is CommandResult.MATCH if is_command else subject.reading.hit is not None
            )
            kind = MarkKind.HIT if is_success else MarkKind.FALSE_REJECT
            if subject.kind is TrialKind.PROBE:
                kind = MarkKind.PROBE if is_success else MarkKind.PROBE_UNHEARD
            phrase = subject.host_s(row.query_start_s), subject.host_s(row.query_end_s)
            seq = subject.reading.hit.seq if subject.reading.hit else None
            yield TimelineMark(kind, *phrase, trial_id, seq)
        yield from self._event_marks([event.seq for event in subject.events[-MARKS:]], trial_id)

    def _event_marks(self, seqs: Iterable[int], trial_id: str) -> Iterator[TimelineMark]:
        for seq in seqs:
            if (event := self._events.event_with(seq)) is not None:
                yield TimelineMark(MarkKind.UNMATCHED, event.at.at_s, event.at.at_s, trial_id, seq)


def _has_place(play: Play, event: HeardWake) -> bool:
    """Whether an event that lies in no play has a position on the time line of this one."""
    return event.audio_s is not None or not play.on_audio_line
