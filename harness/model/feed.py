"""Messages from the engine to its clients, and their commands. One message is one JSON line."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from harness.model.effect import EffectOutcome
from harness.model.frozen import frozen
from harness.model.judgment import Judgment
from harness.model.record import Entry, Question, ReviewVerdict


class StateWord(StrEnum):
    """The state of a run, as the dashboard shows it in large letters."""

    PREPARING = "PREPARING"
    PLAYING = "PLAYING"
    LISTENING = "LISTENING"
    RESPONSE = "RESPONSE"
    CHECKING = "CHECKING"
    ASKING = "ASKING"
    CLOSING = "CLOSING"
    WAITING = "WAITING"
    INTERRUPTED = "INTERRUPTED"
    PAUSED = "PAUSED"
    FINISHED = "FINISHED"

    @property
    def in_words(self) -> str:
        """The words that people read."""
        return "ENDING DIALOGUE" if self is StateWord.CLOSING else self.value


@frozen
class Logged:
    """A row was committed, or is sent again to a client that asked for earlier rows (`Hello.since_seq`)."""

    entry: Entry
    kind: Literal["logged"] = "logged"


@frozen
class TalkerPrompt:
    """What a person is asked to say, in lines for a large screen and in the person's language.

    - text: the words to say.
    - say: "Say" in the person's language.
    - stand: where to stand, such as "Stand at mark 2"; "" if anywhere.
    - again: why the person is asked again; "" the first time.
    """

    talker: str
    text: str
    say: str
    stand: str = ""
    again: str = ""


@frozen
class StateChanged:
    """The run is in another state.

    - since_s, until_s: monotonic times at which it began, and at which it ends by itself (None: not known).
    - reason: words for people.
    - asks: in state ASKING, what the operator is asked about.
    - prompt: if that is SPEECH, what a person is asked to say.
    """

    word: StateWord
    since_s: float
    until_s: float | None = None
    trial_id: str | None = None
    attempt: int | None = None
    reason: str = ""
    asks: Question | None = None
    prompt: TalkerPrompt | None = None
    kind: Literal["state_changed"] = "state_changed"


@frozen
class Meters:
    """Levels over the last 100 ms or so in dBFS, sent at most 10 times a second. None: the bench has no such device."""

    speaker_dbfs: float | None
    microphone_dbfs: float | None
    noise_floor_dbfs: float | None
    kind: Literal["meters"] = "meters"


@frozen
class Welcome:
    """First message on a connection.

    - session_folder: absolute path on the engine's host.
    - last_seq: `seq` of the newest row.
    - has_monitor: whether the bench has headphones on which clips can be played.
    """

    session_id: str
    session_folder: str
    engine_pid: int
    last_seq: int
    state: StateChanged
    tool_version: str
    has_monitor: bool
    kind: Literal["welcome"] = "welcome"


@frozen
class Answered:
    """The engine's answer to the command with that id.

    - ok: True once the effect of the command is committed.
    - why: the reason of a refusal, else "".
    """

    command_id: str
    ok: bool
    why: str = ""
    kind: Literal["answered"] = "answered"


@frozen
class Goodbye:
    """The engine ends; exit_code as documented for `harness run`."""

    exit_code: int
    reason: str
    kind: Literal["goodbye"] = "goodbye"


Message = Logged | StateChanged | Meters | Welcome | Answered | Goodbye


@frozen
class Hello:
    """First line from a client.

    - since_seq: the client wants the rows after this one (0: all).
    - attended: whether a person is there to answer questions.
    - meters: whether the client wants `Meters`.
    """

    client: str
    since_seq: int
    attended: bool
    meters: bool = False
    kind: Literal["hello"] = "hello"


@frozen
class ClientCommand:
    """What every command has: its id, which the answer names, and who gave it."""

    id: str
    by: str


@frozen
class Pause(ClientCommand):
    """Pause the run after the attempt that is running."""

    reason: str = ""
    kind: Literal["pause"] = "pause"


@frozen
class Resume(ClientCommand):
    """Continue a paused run."""

    kind: Literal["resume"] = "resume"


@frozen
class Skip(ClientCommand):
    """End the running trial now, with a reason."""

    reason: str
    kind: Literal["skip"] = "skip"


@frozen
class Rerun(ClientCommand):
    """Another take of a trial that has ended, at the end of the plan."""

    trial_id: str
    kind: Literal["rerun"] = "rerun"


@frozen
class WriteNote(ClientCommand):
    """Add a note, to a trial or (None) to the session."""

    text: str
    trial_id: str | None = None
    kind: Literal["write_note"] = "write_note"


@frozen
class SetMark(ClientCommand):
    """Mark this moment, to find it again."""

    label: str
    kind: Literal["set_mark"] = "set_mark"


@frozen
class Abort(ClientCommand):
    """End the session; the running attempt becomes ABORTED."""

    kind: Literal["abort"] = "abort"


@frozen
class AnswerOperator(ClientCommand):
    """The operator's answer on whether the device recognised the query.

    - recognised: None if they cannot tell.
    - heard: what the device understood, as far as the operator can tell; "" if not known.
    """

    trial_id: str
    attempt: int
    recognised: bool | None
    heard: str = ""
    kind: Literal["answer_operator"] = "answer_operator"


@frozen
class Misspoke(ClientCommand):
    """What a person said at the bench was wrong: the attempt does not count, and is repeated."""

    trial_id: str
    attempt: int
    kind: Literal["misspoke"] = "misspoke"


@frozen
class AnswerEffect(ClientCommand):
    """The operator's answer on whether the effect of a query happened.

    take: None is the latest take in which the trial has a response.
    """

    trial_id: str
    attempt: int
    word: EffectOutcome
    detail: str = ""
    take: int | None = None
    kind: Literal["answer_effect"] = "answer_effect"


@frozen
class Judge(ClientCommand):
    """Add a judgment of a response."""

    judgment: Judgment
    kind: Literal["judge"] = "judge"


@frozen
class Review(ClientCommand):
    """Say what an unmatched wake event was; word None takes the answer back.

    event_seq: `seq` of the `Observed` row of the event.
    """

    event_seq: int
    word: ReviewVerdict | None
    kind: Literal["review"] = "review"


@frozen
class Replay(ClientCommand):
    """Play a stored clip on the bench's monitor (never on a loudspeaker that the device hears)."""

    clip_name: str
    kind: Literal["replay"] = "replay"


Command = (
    Hello | Pause | Resume | Skip | Rerun | WriteNote | SetMark | Abort | AnswerOperator | AnswerEffect | Misspoke |
    Judge | Review | Replay
)  # fmt: skip
