"""Which attempt at a query an observation belongs to."""

from __future__ import annotations

from harness.model.observation import (
    Intent,
    LinkBack,
    LinkLost,
    LogLine,
    Observation,
    ResponseText,
    SpeechStarted,
    StateTold,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.trial import Trial
from harness.session.attempt import Attempt


def is_from_device(trial: Trial, source: str) -> bool:
    """Whether that source reports for the trial's device."""
    return source in (trial.sources or (trial.device,))


def owner_of(
    observation: Observation, trial: Trial, current: Attempt | None, previous: Attempt | None, *, began_idle: bool
) -> Attempt | None:
    """The attempt that an observation belongs to, by its time; None if it belongs to none.

    A device that reports wake events, and woke to the previous attempt but not to this one, is still busy with the
    previous one. That is not so if it was idle before this one (began_idle), or has reported something about it.
    The order of the cases matters: the first matches cover sounds of the harness, links and other devices.
    """
    match observation:
        case StimulusStarted(play_id=play_id) | StimulusEnded(play_id=play_id) | StimulusHeard(play_id=play_id):
            return next((attempt for attempt in (current, previous) if attempt and attempt.play_id == play_id), None)
        case LinkLost() | LinkBack():
            return None
        case Wake() | Transcript() | Intent() | ResponseText() | Status() | StateTold() | LogLine() | Unread() if (
            not is_from_device(trial, observation.source)
        ):
            return None
        case Transcript() | Intent() if current is not None and not current.may_have_heard(observation):
            if previous is None or previous.interruption or previous.is_before_query(observation):
                return None
            return previous
        case Wake() | ResponseText() if current is not None and current.began_after(observation):
            return previous
        case _ if current is None or previous is None:
            return current
    at_previous = current.missed_wake and previous.wake is not None and not began_idle and current.last_words_s is None
    if current.stimulus_offset_s(observation) is not None:  # a place on the audio line shows what it answers
        at_previous = False
    match observation:
        case _ if not (at_previous or current.is_before_answer(observation)):
            return current
        case SpeechStarted() if at_previous and previous.interruption:
            return previous
        case SpeechStarted() if previous.expects_response_at(observation.at.at_s) and current.is_open:
            return previous
        case Transcript() | ResponseText() if not previous.interruption and not previous.transcripts:
            return previous
        case Intent() if not previous.interruption and not previous.intents:
            return previous
        case _:
            return current
