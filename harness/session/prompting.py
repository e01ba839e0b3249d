"""A person at the bench speaks instead of a loudspeaker: the prompt, the speech, and the recording of it.

    prompt is shown ──► speech begins ──► speech is over ──► kept as the stimulus
       │ nothing is said     │ it cannot be kept
       ▼                     ▼
    asked again           attempt interrupted

Speech that cannot be kept still interrupts the attempt, since the device has heard it. Someone who says nothing is
asked again a few times. Then the trial is withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from harness.model.errors import DeviceError
from harness.model.feed import TalkerPrompt
from harness.model.observation import (
    DeviceState,
    Intent,
    LinkBack,
    LinkLost,
    Observation,
    Overrun,
    ResponseText,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusStarted,
    Transcript,
)
from harness.model.record import FaultMet, OperatorAsked, Question, StimulusSpoken, StimulusStored
from harness.model.stimulus import SpokenText
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.session.run import Machine, Run
from harness.session.take import Action, StimulusTiming
from harness.session.talker import MARGIN_S, TalkerSpeech, UnusableUtterance

WAIT_S = 20.0
"""Time in which a person must begin to speak, unless the scenario sets it."""
TRIES = 3
"""How often a person is asked, unless the scenario sets it."""
ANSWERED_S = 0.5
"""Quiet that ends the speech once the device has reported that it answers; onsets are reported up to 0.4 s late."""

_PROMPT_WORDS = {
    "en": ("Say", "Stand at", "Once more, please.", "Nothing was heard. Once more, please."),
    "de": ("Bitte sagen", "Bitte Position einnehmen:", "Bitte noch einmal.", "Nichts gehört. Bitte noch einmal."),
    "es": ("Diga", "Colóquese en", "Otra vez, por favor.", "No se oyó nada. Otra vez, por favor."),
    "fr": ("Dites", "Placez-vous à", "Encore une fois.", "Rien entendu. Encore une fois."),
    "it": ("Dica", "Si metta a", "Ancora una volta.", "Non si è sentito nulla. Ancora una volta."),
    "nl": ("Zeg", "Ga staan bij", "Nog een keer, graag.", "Niets gehoord. Nog een keer, graag."),
    "pt": ("Diga", "Fique em", "Mais uma vez, por favor.", "Não se ouviu nada. Mais uma vez, por favor."),
}
"""By language: the words before the text, before the place, and when the person is asked again."""


def words_to_say(trial: Trial) -> str:
    """The words that a person is asked to say in a trial: wake phrase and query."""
    parts = (trial.recipe.wake_phrase, trial.recipe.query)
    return ", ".join(part.text for part in parts if isinstance(part, SpokenText))


def place_of(trial: Trial) -> str:
    """Where the person stands, from the matrix: `mark 2, 1 m, 30°`; "" if the matrix does not say."""
    conditions = dict(trial.conditions)
    position = conditions["position"].replace("_", " ") if "position" in conditions else ""
    distance = f"{conditions['distance_m']} m" if "distance_m" in conditions else ""
    angle = f"{conditions['angle_deg']}°" if "angle_deg" in conditions else ""
    return ", ".join(part for part in (position, distance, angle) if part)


def prompt_for(trial: Trial, text: str, *, repeated: bool = False, unheard: bool = False) -> TalkerPrompt:
    """The prompt in the talker's language, or in English if the harness does not have that language.

    - repeated: the attempt is repeated.
    - unheard: nothing was heard after the last prompt.
    """
    language = trial.recipe.voice.language.partition("-")[0].lower()
    say, stand_at, once_more, nothing_heard = _PROMPT_WORDS.get(language, _PROMPT_WORDS["en"])
    place = place_of(trial)
    reason = ""
    if unheard:
        reason = nothing_heard
    elif repeated:
        reason = once_more
    return TalkerPrompt(trial.talker, text, say, f"{stand_at} {place}" if place else "", reason)


def in_a_line(prompt: TalkerPrompt) -> str:
    """The prompt in a line, for plain output and logs: `ann: Stand at mark 2, 1 m. Say: "alexa, what time is it"`."""
    parts = (prompt.again, f"{prompt.stand}." if prompt.stand else "", f'{prompt.say}: "{prompt.text}"')
    return f"{prompt.talker}: {' '.join(part for part in parts if part)}"


@dataclass(slots=True)
class _Turn:
    """One prompt, from when it is shown until the speech is stored or given up.

    - speech: what was heard since. tries: how often the person was asked.
    - observations: everything else that was observed since, which the machine gets afterwards.
    - closing: whether the words close a dialogue; otherwise they are the stimulus.
    - answered_s: when the device reported that it answers; None if it has not.
    """

    machine: Machine
    play_id: str
    text: str
    prompt: TalkerPrompt
    speech: TalkerSpeech
    closing: bool
    tries: int = 1
    observations: list[Observation] = field(default_factory=list)
    answered_s: float | None = None

    @property
    def until_s(self) -> float:
        """When the speech is over, or given up, if nothing more is heard."""
        until_s = self.speech.until_s
        if self.answered_s is None or self.speech.ends is None:
            return until_s
        return min(until_s, max(self.speech.ends.at_s, self.answered_s) + ANSWERED_S)


class Prompter:
    """Asks the talker of a trial to speak, in place of a player. Only the conductor's thread uses it.

    The machine sees it as a player. The times of the stimulus are those of the speech, and known only after it. Until
    then the prompter keeps all observations. It passes them on after the start of the stimulus, as a player does.
    """

    def __init__(self, run: Run, perform: Callable[[Iterable[Action]], None]) -> None:
        self._run = run
        self._perform = perform
        self._turn: _Turn | None = None

    @property
    def due_s(self) -> float | None:
        """When `tick` is due; None while nobody is asked."""
        return None if self._turn is None else self._turn.until_s

    def ask(self, machine: Machine, play_id: str, text: str, *, closing: bool = False) -> None:
        """Asks the talker to say a text. closing: the words close a dialogue, and are not the stimulus."""
        repeated = (machine.attempt_number or 1) > 1 and not closing
        prompt = prompt_for(machine.trial, text, repeated=repeated)
        self._turn = _Turn(machine, play_id, text, prompt, self._listen(machine.trial), closing)
        self._show(self._turn)

    def stop(self) -> Sequence[Action]:
        """Withdraws the prompt. Returns what the machine then requests."""
        turn = self._end_turn()
        return () if turn is None else self._fail_turn(turn, "it was stopped")

    def intercept(self, observation: Observation, now_s: float) -> bool:
        """Keeps an observation back while a prompt is shown (True). False if it is to go to the machine at once."""
        self.tick(now_s)
        turn, microphone = self._turn, self._run.context.microphone
        if turn is None or microphone is None:
            return False
        if observation.source == microphone.id and isinstance(observation, SpeechStarted | SpeechEnded | Overrun):
            return self._handle_sound(turn, observation)
        if isinstance(observation, LinkLost | LinkBack) or (
            isinstance(observation, Status) and observation.state in (DeviceState.GONE, DeviceState.STARTED)
        ):
            self._pass_on(turn)  # it may end the attempt, and earlier observations come first
            return False
        if turn.answered_s is None and turn.speech.starts is not None and _is_answer(observation, turn.machine.trial):
            turn.answered_s = now_s
        turn.observations.append(observation)
        return True

    def tick(self, now_s: float) -> None:
        """Lets time pass."""
        turn = self._turn
        if turn is None:
            return
        try:
            if turn.speech.is_over(now_s) or (turn.speech.ends is not None and now_s >= turn.until_s):
                self._store_speech(turn)
        except UnusableUtterance as error:
            self._handle_unusable(turn, str(error))

    def _listen(self, trial: Trial) -> TalkerSpeech:
        within_s = trial.reprompt.speak_within_s
        return TalkerSpeech(self._run.now_s(), WAIT_S if within_s is None else within_s)

    def _show(self, turn: _Turn) -> None:
        """Logs the question, and shows the prompt to the clients."""
        run, machine = self._run, turn.machine
        run.prompt = turn.prompt, turn.until_s
        question = in_a_line(turn.prompt)
        take_number, attempt = machine.take_number, machine.attempt_number or 0
        run.append(OperatorAsked(machine.trial.id, take_number, attempt, question, Question.SPEECH))
        run.show_machine()

    def _handle_sound(self, turn: _Turn, observation: SpeechStarted | SpeechEnded | Overrun) -> bool:
        """Adds what the microphone heard to the speech. False if it does not belong to it, and goes to the machine."""
        answered_s = turn.answered_s
        is_answer = answered_s is not None and turn.speech.ends is not None and observation.at.at_s > answered_s
        if is_answer and isinstance(observation, SpeechStarted):
            self._store_speech(turn)  # the device speaks
            return False
        earlier_start = turn.speech.starts
        try:
            turn.speech.observe(observation)
        except UnusableUtterance as error:
            self._handle_unusable(turn, str(error))
            return False
        if turn.speech.starts is None:  # speech from before the prompt
            turn.observations.append(observation)
        elif earlier_start is None:
            self._run.prompt = turn.prompt, None
            self._run.show_machine()
        return True

    # How a turn ends

    def _end_turn(self) -> _Turn | None:
        """Stops showing the prompt. Returns its turn; None if nobody was asked."""
        turn = self._turn
        self._turn = self._run.prompt = None
        return turn

    def _store_speech(self, turn: _Turn) -> None:
        """Stores the speech as the stimulus, and gives the machine its times."""
        run, machine, speech = self._run, turn.machine, turn.speech
        microphone = run.context.microphone
        assert speech.starts is not None
        assert speech.ends is not None
        assert microphone is not None
        self._end_turn()
        try:
            sound, first_s = microphone.cut(speech.starts.at_s - MARGIN_S, speech.ends.at_s + MARGIN_S)
        except DeviceError as error:
            run.append(FaultMet(microphone.id, str(error)))
            self._interrupt(turn, f"clip_lost: {error.what}")
            return
        starts_s, ends_s = speech.starts.at_s - first_s, speech.ends.at_s - first_s
        if not turn.closing:
            clip = run.save_clip(sound, first_s)
            timing = StimulusTiming(clip.sha256, starts_s, ends_s, sound.duration_s)
            run.append(StimulusStored(clip.sha256, clip))
            run.append(
                StimulusSpoken(
                    machine.trial.id,
                    machine.take_number,
                    machine.attempt_number or 0,
                    talker=machine.trial.talker,
                    text=turn.text,
                    place=place_of(machine.trial),
                    stimulus_sha256=clip.sha256,
                    query_start_s=starts_s,
                    query_end_s=ends_s,
                    duration_s=sound.duration_s,
                )
            )
            machine.set_spoken_timing(timing)
        error_s = max(speech.starts.error_s, speech.ends.error_s)
        first, last = Stamp(first_s, error_s), Stamp(first_s + sound.duration_s, error_s)
        player, now_s = machine.trial.players[0], run.now_s()
        self._perform(machine.feed(StimulusStarted(player, first, turn.play_id), now_s))
        self._pass_on(turn)  # the window may be over already, and its end would be the attempt's
        self._perform(machine.feed(StimulusEnded(player, last, turn.play_id), now_s))

    def _handle_unusable(self, turn: _Turn, why: str) -> None:
        """Asks again if nothing was said. Speech that cannot be stored ends the attempt, since the device heard it."""
        if turn.speech.starts is not None:
            self._interrupt(turn, f"not_kept: {why}")
        elif turn.closing:
            self._end_turn()
            self._perform(self._fail_turn(turn, why))
        elif turn.tries < (turn.machine.trial.reprompt.max_prompts or TRIES):
            self._pass_on(turn)
            turn.tries += 1
            turn.speech = self._listen(turn.machine.trial)
            turn.prompt = prompt_for(turn.machine.trial, turn.text, unheard=True)
            self._show(turn)
        else:
            now_s = self._run.now_s()
            cause = f"invalid: {turn.machine.trial.talker} was asked {turn.tries} times and said nothing"
            self._perform(turn.machine.withdraw(now_s, cause))

    def _interrupt(self, turn: _Turn, cause: str) -> None:
        """Interrupts the attempt, whose speech cannot be the stimulus."""
        self._end_turn()
        self._perform(turn.machine.interrupt(self._run.now_s(), cause))
        self._perform(self._fail_turn(turn, cause))

    def _fail_turn(self, turn: _Turn, why: str) -> Sequence[Action]:
        """Reports to the machine that there is no stimulus, and passes on what was observed since the prompt."""
        machine, now_s = turn.machine, self._run.now_s()
        player, observations = machine.trial.players[0], turn.observations
        turn.observations = []
        cut = StimulusEnded(player, Stamp(now_s), turn.play_id, complete=False, why=why)
        return [action for observation in (*observations, cut) for action in machine.feed(observation, now_s)]

    def _pass_on(self, turn: _Turn) -> None:
        """Passes on to the machine what was observed since the prompt."""
        observations, turn.observations = turn.observations, []
        for observation in observations:
            self._perform(turn.machine.feed(observation, self._run.now_s()))


def _is_answer(observation: Observation, trial: Trial) -> bool:
    """Whether the observation shows that a device of the trial has heard the end of the speech."""
    if not any(observation.source in target.sources for target in trial.targets):
        return False
    match observation:
        case Status(state=state):
            return state in (DeviceState.THINKING, DeviceState.SPEAKING)
        case Transcript(final=final):
            return final
        case Intent() | ResponseText():
            return True
        case _:
            return False
