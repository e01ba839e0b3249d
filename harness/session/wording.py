"""Rows of the log in words, the same on screens, in plain output and on pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress, takewhile

from harness.base.foreign import ELLIPSIS, plain_text
from harness.base.grouping import group_by
from harness.model.numbers import counted, exact, fixed, percent, seconds, signed
from harness.model.observation import (
    ClockFitted,
    DeviceDescribed,
    Earcon,
    HostStalled,
    Intent,
    LinkBack,
    LinkLost,
    ListeningProved,
    LogLine,
    Observation,
    OperatorAnswer,
    Overrun,
    ResponseText,
    SoundKept,
    SpeechEnded,
    SpeechStarted,
    StateTold,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
    weak_evidence_text,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    BenchChecked,
    DecisionReached,
    EffectAnswered,
    EndReason,
    EngineStarted,
    EventClipped,
    EventReviewed,
    FaultMet,
    JudgmentGiven,
    LevelMeasured,
    MarkSet,
    NoteWritten,
    Observed,
    OperatorAsked,
    Paused,
    PowerSwitched,
    Record,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    Resumed,
    SessionFinished,
    SessionStarted,
    SettingsNoted,
    SettingsStage,
    SharesMoved,
    SoundRedacted,
    SoundsRemoved,
    StimulusSpoken,
    TrialFinished,
    TrialStarted,
    UnderstandingResult,
)
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience, Recording, SpokenText
from harness.model.trial import LIFE_CHECK_BY, NOT_PROVEN, ListeningSpec, Outcome, Recognition, Trial, trials_in_words
from harness.session.figures.connections import DeviceConnection
from harness.statistics.text import measured
from harness.understanding.reported_frames import frame_line, parts_line, parts_of, verdict_in_words
from harness.wake.reports.figures_text import REVIEW_WORDS


def cause_in_words(cause: str) -> str:
    """A cause from a row, for people: `link_lost: the port is gone` → `link lost: the port is gone`."""
    code, colon, more = cause.partition(":")
    return code.replace("_", " ") + colon + more


def unread_in_words(reports: Unread) -> str:
    """The words for reports of a device that were lost."""
    return f"{reports.count} lines; reason for the last: {reports.what}" if reports.count > 1 else reports.what


MAX_LINE_CHARS = 1000
"""A row is cut to this many characters."""

OUTCOME_WORDS: dict[Outcome, str] = {
    Outcome.RESPONDED: "responded",
    Outcome.LATE: "too late",
    Outcome.MISHEARD: "misheard",
    Outcome.NO_WAKE: "did not wake",
    Outcome.NO_RESPONSE: "no response",
    Outcome.INTERRUPTED: "interrupted",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.SKIPPED: "skipped",
    Outcome.ABORTED: "aborted",
    Outcome.COUNTED: "counted",
    Outcome.UNDERSTOOD: "understood",
}
"""At most 12 characters, which tables leave for them."""
_RECOGNITION_WORDS: dict[Recognition, str] = {
    Recognition.YES: "recognised",
    Recognition.NO: "not recognised",
    Recognition.UNKNOWN: "recognition unknown",
    Recognition.NOT_ASSESSED: "recognition not assessed",
}
_CHECK_WORDS = {"ok": "ok", "warn": "WARNING", "fail": "REFUSED"}
_ANSWER_WORDS = {True: "yes", False: "no", None: "cannot tell"}
ENDED: dict[EndReason, str] = {
    EndReason.COMPLETED: "all trials are finished",
    EndReason.ABORTED: "aborted",
    EndReason.STOPPED: "stopped; it can be resumed",
}


SETTINGS_WORDS: dict[SettingsStage, str] = {
    SettingsStage.ORIGINAL: "has these original settings",
    SettingsStage.TRIAL: "is set",
    SettingsStage.RESTORED: "is restored",
}


def _power_words(switched: PowerSwitched) -> str:
    """`lamp: power on (before call.r3), it answered after 4.10 s`."""
    answered = "" if switched.answered_s is None else f", it answered after {seconds(switched.answered_s)}"
    turned = "on" if switched.on else "off"
    return f"{plain_text(switched.device, 60)}: power {turned} ({plain_text(switched.reason, 200)}){answered}"


def decision_in_words(row: DecisionReached) -> str:
    """`kitchen: false rejects FAIL the sequential test`."""
    verdict = "pass" if row.passed else "FAIL"
    return f"{plain_text(row.device, 60)}: {row.figure.replace('_', ' ')} {verdict} the sequential test"


def late_blocks(count: int) -> str:
    """The words for sound that a slow host lost: `sound: 3 blocks late or lost`."""
    return f"sound: {counted(count, 'block')} late or lost"


def attempts_in_words(count: int, interrupted: int) -> str:
    """`4 attempts (1 interrupted)`."""
    return counted(count, "attempt") + interrupted_in_words(interrupted)


def interrupted_in_words(count: int) -> str:
    """` (1 interrupted)`, to follow a number of attempts; "" for none."""
    return f" ({count} interrupted)" if count else ""


def quoted(text: str, limit: int = 200) -> str:
    """Foreign text between quotation marks, escaped."""
    return f'"{plain_text(text, limit)}"'


class RowWriter:
    """Turns rows into words. It gets them in order, and remembers the plan, so that a line can quote the query."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}
        self._not_proven: set[str] = set()
        self._interrupted: defaultdict[tuple[str, int], set[int]] = defaultdict(set)

    def text(self, record: Record) -> str | None:
        """The words of a row, without its time, sanitised; None for proofs of listening and stored stimuli."""
        words = self._words(record)
        return None if words is None else words.lstrip()

    def line(self, record: Record) -> str | None:
        """The words of a row, indented below its trial; None for a row that plain output leaves out.

        Plain output leaves out the steps of the sound path, and what `WakeLines` reports about wake, command and
        ambient trials.
        """
        return None if self._is_detail(record) else self._words(record)

    def _words(self, record: Record) -> str | None:
        words = self._record_words(record)
        if words is not None and isinstance(record, AttemptStarted | AttemptFinished):
            words = self._with_trial_name(record.trial_id, words)
        return None if words is None else plain_text(words, MAX_LINE_CHARS)

    def _with_trial_name(self, trial_id: str, line: str) -> str:
        """The line of a wake, command or ambient trial with its number and name in front; others were named earlier."""
        trial = self._trials.get(trial_id)
        if trial is None or trial.listening is None:
            return line
        return f"{trial.number}/{len(self._trials)} {trial.id} {line.lstrip()}"

    def _record_words(self, record: Record) -> str | None:
        """The words of a row, and what later rows need to know about it is remembered; None for rows without words."""
        match record:
            case SessionStarted(title=title, bench_id=bench, sound_path=path, trials=trials):
                self._trials = {trial.id: trial for trial in trials}
                size = trials_in_words(trial.kind for trial in trials)
                return f"{plain_text(title)} · bench {bench} · {plain_text(path)} · {size}"
            case EngineStarted(run=run, pid=pid):
                return f"run {run} begins (engine {pid})"
            case SessionFinished(reason=reason):
                return f"END {ENDED[reason]}"
            case TrialStarted(trial_id=trial_id, take=take):
                return self._trial_heading(trial_id, take)
            case TrialFinished(trial_id=trial_id, cause=cause) if cause.startswith(NOT_PROVEN):
                self._not_proven.add(trial_id)
                return f"  = {trial_id}: {OUTCOME_WORDS[record.outcome].upper()}{_cause_suffix(cause_in_words(cause))}"
            case TrialFinished():
                interrupted = self._interrupted[record.trial_id, record.take]
                count = sum(attempt <= record.attempts for attempt in interrupted)
                attempts = attempts_in_words(record.attempts, count)
                outcome = OUTCOME_WORDS[record.outcome].upper()
                return f"  = {record.trial_id}: {outcome} after {attempts}{_cause_suffix(cause_in_words(record.cause))}"
            case Observed(observation=observation):
                return _observation_text(observation)
            case RerunAsked(trial_id=trial_id, by=by):
                if by == LIFE_CHECK_BY and trial_id not in self._not_proven:
                    return None  # opens the take that is not proven; the row after that one asks for it again
                self._not_proven.discard(trial_id)
                return f"re-run of {trial_id} requested by {plain_text(by, 40)}"
            case JudgmentGiven(judgment=judgment):
                word = judgment.category.value if judgment.category else judgment.status.value
                return f"{judgment.trial_id}: judged {word}, by {plain_text(judgment.rater, 40)}"
            case SharesMoved(items=items, rater=rater, by=by):
                responses = counted(len(items), "response")
                return f"{responses} of {plain_text(rater, 40)} given to others by {plain_text(by, 40)}"
            case SoundsRemoved(clips=clips, reason=reason, by=by):
                return f"{counted(len(clips), 'clip')} removed by {plain_text(by, 40)}{_cause_suffix(reason)}"
            case SoundRedacted(clip=name, reason=reason, by=by):
                return f"clip {plain_text(name, 80)} redacted by {plain_text(by, 40)}{_cause_suffix(reason)}"
            case EffectAnswered():
                saw = f", {quoted(record.detail)}" if record.detail else ""
                return f"    effect of {record.trial_id}: {record.word.value}{saw}, by {plain_text(record.by, 40)}"
            case AttemptFinished(trial_id=trial_id):
                interrupted = self._interrupted[trial_id, record.take]
                if record.outcome is Outcome.INTERRUPTED:
                    interrupted.add(record.attempt)
                else:  # a later row on an attempt replaces the earlier one
                    interrupted.discard(record.attempt)
                return _verdict_words(record, self._trials.get(trial_id))
            case NoteWritten(text=text, by=by):
                return f"note by {plain_text(by, 40)}: {quoted(text)}"
            case MarkSet(label=label, by=by):
                return f"mark by {plain_text(by, 40)}: {quoted(label)}"
            case Paused(reason=reason, by=by):
                return f"PAUSED by {plain_text(by, 40)}{_cause_suffix(reason)}"
            case Resumed(by=by):
                return f"RESUMED by {plain_text(by, 40)}"
            case EventClipped(event_seq=seq, clip=clip):
                return f"    sound around event {seq} kept as {plain_text(clip.name, 80)}"
            case EventReviewed(event_seq=seq, word=word, by=by):
                review = "review withdrawn" if word is None else REVIEW_WORDS[word]
                return f"event {seq}: {review}, by {plain_text(by, 40)}"
            case DecisionReached():
                return f"DECIDED {decision_in_words(record)}"
            case SettingsNoted(source=source, of=of, settings=settings):
                values = ", ".join(f"{name}={value}" for name, value in settings)
                return f"{plain_text(source, 60)} {SETTINGS_WORDS[of]}: {plain_text(values, 400)}"
            case StimulusSpoken(talker=talker, text=text):
                duration = seconds(record.query_end_s - record.query_start_s)
                return f"    {plain_text(talker, 60)} said {quoted(text)} in {duration}"
            case LevelMeasured(loudspeaker=loudspeaker, asked_spl=nominal, heard_spl=heard):
                reached = "was not heard" if heard is None else f"heard {fixed(heard, 1)} dB SPL"
                return f"    level of {plain_text(loudspeaker, 60)}: requested {fixed(nominal, 1)}, {reached}"
            case PowerSwitched():
                return _power_words(record)
            case BenchChecked(check=check, level=level, says=says):
                return f"check {check}: {_CHECK_WORDS[level]}: {plain_text(says, 400)}"
            case FaultMet(source=source, what=problem):
                return f"FAULT {plain_text(source, 60)}: {plain_text(problem, 400)}"
            case _:
                return _attempt_words(record)

    def _is_detail(self, record: Record) -> bool:
        """Whether plain output leaves a row out (see `line`)."""
        match record:
            case EngineStarted(run=1) | Observed(observation=Transcript(final=False)):
                return True
            case Observed(observation=observation) if isinstance(observation, _DETAILS):
                return True
            case TrialStarted(take=1) | AttemptStarted(attempt=1) | Observed(observation=Wake() | Transcript()):
                pass
            case AttemptFinished(outcome=Outcome.COUNTED) | TrialFinished(outcome=Outcome.COUNTED):
                pass
            case _:
                return False
        trial = self._trials.get(record.trial_id or "")
        if trial is None or trial.listening is None:
            return False
        # Ambient sound is long, so its start has a line.
        return not (isinstance(record, TrialStarted) and trial.listening.kind is TrialKind.AMBIENT)

    def _trial_heading(self, trial_id: str, take: int) -> str:
        trial = self._trials.get(trial_id)
        take_text = f" (take {take})" if take > 1 else ""
        if trial is None:
            return f"TRIAL {plain_text(trial_id, 80)}{take_text}"
        query = trial.recipe.query
        heading = f"TRIAL {trial.number}/{len(self._trials)} {trial.id}{take_text}"
        if trial.listening is not None:
            return f"{heading}: {_listening_text(trial, trial.listening)}"
        words = quoted(query.text if isinstance(query, SpokenText) else trial.reference)
        condition = f" · {plain_text(trial.condition)}" if trial.conditions else ""
        expects = trial.expects
        frame = "" if expects is None else f", expected {frame_line(expects.intents, expects.slots)}"
        return f"{heading}: {words} to {trial.device}{frame}, {trial.recipe.voice.label()}{condition}"


def _listening_text(trial: Trial, listening: ListeningSpec) -> str:
    """The sound of a listening trial, and how it reaches the devices."""
    sound = trial.recipe.query
    match sound:
        case Ambience(duration_s=duration_s):
            content = f"{exact(duration_s)} s of {plain_text(listening.source, 60)}"
        case Recording(path=path):
            content = f"{quoted(listening.phrase, 60)} from {plain_text(path.rpartition('/')[2], 80)}"
        case SpokenText(text=text):
            content = f"{quoted(text)}, {trial.recipe.voice.label()}"
    devices = ", ".join(f"{target.device}{' (injected)' if target.injected else ''}" for target in listening.targets)
    condition = f" · {plain_text(trial.condition)}" if trial.conditions else ""
    return f"{listening.kind.value} {content} to {devices}{condition}"


def _attempt_words(record: Record) -> str | None:
    match record:
        case AttemptStarted(attempt=attempt, waited_s=waited_s):
            waited = "" if waited_s is None else f", {seconds(waited_s)} after the last sound"
            return f"  attempt {attempt}{waited}"
        case ResponseFrozen(clip=clip, truncated=truncated):
            ending = ", truncated: it was still speaking" if truncated else ""
            return f"    response of {seconds(clip.duration_s)} kept as {plain_text(clip.name, 80)}{ending}"
        case ResponseTranscribed(text=text):
            return (
                f"    it says {quoted(text)} (our transcription)" if text else "    no words in it (our transcription)"
            )
        case OperatorAsked(question=question):
            return f"    ASKING {plain_text(question)}"
        case _:
            return None


def _verdict_words(row: AttemptFinished, trial: Trial | None) -> str:
    if row.outcome is Outcome.COUNTED:
        return f"  attempt {row.attempt}: {OUTCOME_WORDS[row.outcome]}"
    words = OUTCOME_WORDS[row.outcome]
    if row.recognition is not Recognition.NOT_ASSESSED or row.outcome is not Outcome.INTERRUPTED:
        words += f", {_RECOGNITION_WORDS[row.recognition]}"
    heard = f"; heard {quoted(row.heard)}" if row.heard is not None else ""
    latency = f"; latency {measured(row.latency)}" if row.latency is not None else ""
    frame = "" if row.understood is None else f"; {_frame_words(row, row.understood, trial)}"
    return f"  attempt {row.attempt}: {words}{heard}{frame}{latency}{_cause_suffix(cause_in_words(row.cause))}"


def _frame_words(row: AttemptFinished, frame: UnderstandingResult, trial: Trial | None) -> str:
    """The intents and slots that were understood, with a sign for right or wrong if the device reported any."""
    parts = () if trial is None else parts_of(trial, row)
    comparison = parts_line(parts)
    if not comparison and frame.right:
        comparison = "nothing, as expected"
    elif not comparison and frame.intents is not None:
        comparison = "nothing"
    return f"{verdict_in_words(frame)}{': ' if comparison else ''}{comparison}"


_DETAILS = (
    StimulusStarted, StimulusEnded, StimulusHeard, SpeechStarted, SpeechEnded, Earcon, ClockFitted, Status, LogLine,
    Overrun,
)  # fmt: skip
"""Steps of the sound path: plain output leaves them out."""


def _observation_text(observation: Observation) -> str | None:
    match observation:
        case ListeningProved():
            return None
        case StimulusStarted(source=source):
            return f"    {source}: stimulus starts"
        case StimulusEnded(source=source, complete=complete, why=why):
            return f"    {source}: stimulus {'ends' if complete else 'stopped early'}{_cause_suffix(why)}"
        case StimulusHeard(source=source, correlation=correlation):
            return f"    {source}: heard the stimulus (correlation {fixed(correlation, 2)})"
        case SpeechStarted(source=source, level_dbfs=level_dbfs):
            return f"    {source}: speech starts, {fixed(level_dbfs, 0)} dBFS"
        case SpeechEnded(source=source):
            return f"    {source}: speech ends"
        case Earcon(source=source, of=of, meaning=meaning):
            return f"    {of}: the {meaning} chime" if of else f"    {source}: a signal tone"
        case ClockFitted(source=source, error_s=error_s, skew_ppm=skew_ppm):
            return f"    {source}: clock known to ± {seconds(error_s)}, {signed(skew_ppm, 1)} ppm"
        case Status(source=source, state=state, detail=detail):
            return f"    {source}: {state.value}{_cause_suffix(detail)}"
        case LogLine(source=source, text=text):
            return f"    {source}: {text}"
        case Overrun(count=count):
            return f"    {late_blocks(count)}"
        case Transcript(source=source, text=text, final=False):
            return f"    {source} reports that it hears {quoted(text)}"
        case Wake(source=source, phrase=phrase, inferred=inferred):
            weak = weak_evidence_text(plain_text(inferred, 60), ", ")
            return f"    {source} woke{' on ' + quoted(phrase, 60) if phrase else ''}{weak}"
        case Intent(source=source, name=name, slots=slots):
            slots_text = "".join(f", {slot} {quoted(value, 60)}" for slot, value in slots[:20])
            return f"    {source} reports that it understood {plain_text(name, 80) or 'nothing'}{slots_text}"
        case Transcript(source=source, text=text):
            return f"    {source} reports that it heard {quoted(text)}"
        case ResponseText(source=source, text=text):
            return f"    {source} reports that it answers {quoted(text)}"
        case SoundKept(source=source, clip=clip):
            return f"    {source} delivered {seconds(clip.duration_s)} of sound, kept as {plain_text(clip.name, 80)}"
        case StateTold(source=source, name=name, value=value):
            is_now = f"is {quoted(value, 100)}" if value else "is gone"
            return f"    {source} reports that {plain_text(name, 60)} {is_now}"
        case DeviceDescribed():
            return f"    {described_in_words(observation)}"
        case OperatorAnswer(recognised=recognised, heard=heard):
            return f"    operator: {_ANSWER_WORDS[recognised]}{', heard ' + quoted(heard) if heard else ''}"
        case Unread(source=source):
            return f"NOT READ {source}: {plain_text(unread_in_words(observation), 300)}"
        case LinkLost(source=source, what=problem):
            return f"LOST {source}: {plain_text(problem, 300)}"
        case LinkBack(source=source):
            return f"BACK {source}"
        case HostStalled(lasted_s=lasted_s, load=load, steal=steal):
            steal_text = "" if steal is None else f", {percent(steal)} steal"
            return f"HOST stalled for {seconds(lasted_s)} (load {fixed(load, 1)}{steal_text})"


Recurrent = HostStalled | LinkLost | LinkBack
"""Observations that a disturbed bench makes over and over; they are summed up in one line."""


def recurrences_in_words(rows: Sequence[Recurrent]) -> str:
    """Rows of one source: `HOST stalled 12 more times within a minute, for 5.30 s`, `LOST mic 9 more times …`."""
    stalls = [row.lasted_s for row in rows if isinstance(row, HostStalled)]
    if stalls:
        return f"HOST stalled {counted(len(stalls), 'more time')} within a minute, for {seconds(sum(stalls))}"
    lost = sum(isinstance(row, LinkLost) for row in rows)
    if not lost:
        return f"BACK {rows[-1].source}"
    now = "back" if isinstance(rows[-1], LinkBack) else "still lost"
    return f"LOST {rows[-1].source} {counted(lost, 'more time')} within a minute; it is {now}"


def _cause_suffix(cause: str) -> str:
    """` (the port is gone)`, to end a line; "" without a cause."""
    return f" ({plain_text(cause, 200)})" if cause else ""


def described_in_words(board: DeviceDescribed) -> str:
    """`radio: firmware 1.4.2, serial number A1B2`."""
    firmware, serial = plain_text(board.firmware, 80), plain_text(board.serial, 80)
    parts = [f"firmware {firmware}"] if firmware else []
    parts += [f"serial number {serial}"] if serial else []
    return f"{plain_text(board.source, 80)}: {', '.join(parts) or 'reports neither firmware nor serial number'}"


def connection_in_words(connection: DeviceConnection) -> str:
    """`connection lost 1 time (25.0 s in all), restarted 2 times; 3 attempts interrupted`."""
    parts = []
    if connection.lost or connection.is_lost:
        away = f"{seconds(connection.lost_s)} in all" if connection.lost_s else ""
        away = "; ".join(part for part in (away, "not back" if connection.is_lost else "") if part)
        times = f" {counted(connection.lost, 'time')}" if connection.lost else ""
        parts.append(f"connection lost{times}{f' ({away})' if away else ''}")
    if connection.restarts:
        parts.append(f"restarted {counted(connection.restarts, 'time')}")
    attempts = f"{counted(connection.interrupted, 'attempt')} interrupted" if connection.interrupted else ""
    return "; ".join(filter(None, (", ".join(parts), attempts)))


MAX_NAME_CHARS = 200


def short_names(ids: Sequence[str], width: int) -> list[str]:
    """A short name for each id, of at most `width` characters.

    A last part that all ids share (`.r1`) is left out. If names are too long, other shared parts are left out too, then
    words with which all parts in one position begin or end. Names that are still too long lose the part without which
    most of them stay different. If the width is too small, some may look alike.
    """
    names = _without_shared_end([plain_text(name, MAX_NAME_CHARS) for name in ids])
    if any(len(name) > width for name in names):
        names = _without_shared_parts(names)
    if any(len(name) > width for name in names):
        names = _without_shared_words(names)
    if all(len(name) <= width for name in names):
        return names
    half = width // 2
    tails = sorted(range(width), key=lambda tail: abs(tail - half))
    candidates = [[cut(name, width, tail) for name in names] for tail in tails]
    candidates.append(_differences(candidates[0], names, width))
    # The most different names; of equal ones, max takes the first, which has the most even halves.
    return max(candidates, key=lambda short: len(set(short)))


def cut(text: str, width: int, tail: int) -> str:
    """A long text without its middle: its last `tail` characters, and as much of its start as fits into `width`."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1 - tail)] + ELLIPSIS + text[len(text) - tail :]


def _without_shared_end(names: list[str]) -> list[str]:
    """The names without a last part (`.r1`) that all of them share."""
    has_ends = len(names) > 1 and all("." in name for name in names)
    if not has_ends or len({name.rpartition(".")[2] for name in names}) > 1:
        return names
    return [name.rpartition(".")[0] or name for name in names]


def _without_shared_parts(names: list[str]) -> list[str]:
    """Names with the same number of parts (`time.v-anna.n-pink_10_dB`), without the shared ones, except the first."""
    parts = [name.split(".") for name in names]
    if len(names) < 2 or len({len(name_parts) for name_parts in parts}) != 1:
        return names
    differ = [number == 0 or len(set(column)) > 1 for number, column in enumerate(zip(*parts, strict=True))]
    return [".".join(compress(name_parts, differ)) for name_parts in parts]


def _without_shared_words(names: list[str]) -> list[str]:
    """Names with the same number of parts, without words that all share.

    `say_the_time.v-anna` and `say_the_date.v-bob` become `time.anna` and `date.bob`.
    """
    parts = [name.split(".") for name in names]
    if len({len(name_parts) for name_parts in parts}) != 1:
        return names
    columns = [_different_words(column) for column in zip(*parts, strict=True) if len(set(column)) > 1]
    return [".".join(name_parts) for name_parts in zip(*columns, strict=True)] or names


def _different_words(parts: Sequence[str]) -> list[str]:
    """The parts without the words with which all of them begin or end; each keeps at least one word."""
    words = [_WORD_ENDS.split(part) for part in parts]
    max_count = min(map(len, words)) - 1
    front = min(max_count, _count_shared(words))
    back = min(max_count - front, _count_shared([part_words[::-1] for part_words in words]))
    different_parts = ["".join(part_words[front : len(part_words) - back]) for part_words in words]
    if back:  # the words that are left end with the separator of the next one
        different_parts = [text.rstrip("-_") or text for text in different_parts]
    return different_parts


_WORD_ENDS = re.compile(r"(?<=[-_])(?=[^-_])")


def _differences(shown: list[str], names: list[str], width: int) -> list[str]:
    """The names as shown. Those that look alike become their start and the part in which they differ."""
    indexes_by_name = group_by((name, index) for index, name in enumerate(shown))
    distinct_names = list(shown)
    for group in indexes_by_name.values():
        if len(group) == 1:
            continue
        front = _count_shared([names[index] for index in group])
        back = _count_shared([names[index][front:][::-1] for index in group])
        for index in group:
            name = names[index]
            core = name[front : len(name) - back]
            start_width = width - 1 - len(core)
            if start_width > 0:
                distinct_names[index] = name[:start_width] + ELLIPSIS + core
            else:
                distinct_names[index] = cut(core or name, width, width // 2)
    return distinct_names


def _count_shared(texts: Sequence[Sequence[str]]) -> int:
    """Number of characters, or words, that all texts have in common at their start."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False)))
