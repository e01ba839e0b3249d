"""The one error tree.

HarnessError
├── InputError            what a person wrote is wrong: refused before anything is played (exit 2)
│   └── InputProblems     all of a file's problems at once
├── UnmetNeed             the bench does not offer what the scenario needs: SKIP with the reason
├── PluginError           no such driver, voice, detector, …; lists those that are installed (exit 2)
├── DeviceError           a device, a sound server or a broker is gone or refuses (exit 3)
│   ├── SoundError        … the sound path
│   └── LoginRefused      … because of the harness's token: a person must act, so nothing tries again
├── VoiceError            a voice could not speak a text (exit 3)
│   └── LanguageError     … because it does not speak its language
├── LogError              the session log cannot be written or read (exit 3)
│   ├── LogFull           … because the disk is full: the run pauses
│   └── SoundGone         … because somebody removed the sound of a clip on purpose
├── EngineError           the engine process is gone or does not answer (exit 3)
└── LabError              the virtual lab cannot start or is not up (exit 3)

Rooms have kinds of their own that they catch themselves: CodecError of base/, PayloadError, PortLost and AssistantTaken
of devices/.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from harness.model.frozen import frozen
from harness.model.numbers import counted, exact


@frozen
class Place:
    """Where in a file: line and column count from 1; 0 stands for "not known"."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class HarnessError(Exception):
    """What went wrong, where, and what to do about it; `exit_code` is the command's status."""

    exit_code = 3

    def __init__(self, problem: str, *, place: Place | None = None, remedy: str = "") -> None:
        super().__init__(problem)
        self.what = problem
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.place}: {self.what}" if self.place else self.what
        return f"{text}. {self.remedy}" if self.remedy else text


class InputError(HarnessError):
    """Something that a person wrote is wrong."""

    exit_code = 2


class InputProblems(InputError):
    """Every problem that was found in one go; `problems` has at least one."""

    def __init__(self, problems: Sequence[InputError]) -> None:
        if not problems:
            raise ValueError("InputProblems without a problem")
        count = counted(len(problems), "problem")
        super().__init__(f"{count} found", place=problems[0].place)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class UnmetNeed(HarnessError):
    """The bench lacks what the scenario needs; the scenario is skipped, which is not a failure."""

    exit_code = 0


class PluginError(HarnessError):
    """A plug-in is unknown or cannot be loaded."""

    exit_code = 2


class DeviceError(HarnessError):
    """A device or its connection is gone or refuses."""


class SoundError(DeviceError):
    """The sound path is gone or refuses."""


class LoginRefused(DeviceError):
    """A device refuses the harness's token. Trying again cannot help, and may lock the harness out."""


class VoiceError(HarnessError):
    """A voice could not speak a text."""


class LanguageError(VoiceError):
    """A voice does not speak the requested language."""


class LogError(HarnessError):
    """The session log cannot be written or read."""


class LogFull(LogError):
    """The disk has no room for the log; nothing acknowledged is lost, and the run pauses."""


class SoundGone(LogError):
    """The sound of a clip was removed on purpose: by whom, when and why. All numbers remain."""


class EngineError(HarnessError):
    """The engine process is gone or does not answer."""


class LabError(HarnessError):
    """The virtual lab cannot start, or is not up."""


def place_of_problem(problem: InputError) -> tuple[str, int, int]:
    """The key by which problems are sorted; those without a place come first."""
    place = problem.place or Place("")
    return (place.file, place.line, place.column)


def did_you_mean(word: str, known_words: Iterable[str], *, alike: float = 0.5) -> str:
    """The start of a remedy: "Did you mean 'x'? " with the most similar known word; "" if none is similar enough.

    alike: the least similarity that counts, 0–1, as computed by difflib's `ratio`.
    """
    import difflib  # here, since errors are rare

    matches = difflib.get_close_matches(word.lower(), list(known_words), n=1, cutoff=alike)
    return f"Did you mean {matches[0]!r}? " if matches else ""


def nearest(word: object, known_words: Collection[str], *, listed: str = "Known") -> str:
    """A remedy: the most similar known word, and the list of known words (at most twenty).

    listed: the word that introduces the list.
    """
    suggestion = did_you_mean(str(word), known_words)
    word_list = ", ".join(list(known_words)[:20]) + (", …" if len(known_words) > 20 else "")
    return f"{suggestion}{listed}: {word_list or 'none'}"


def demand_main_options(rows: Iterable[tuple[str, object, str, object]]) -> None:
    """Raises InputError for an option that would be ignored, since the option it belongs to is not given.

    rows: the option, whether it is given, what it belongs to, and whether that is given.
    """
    for option, is_given, main, has_main in rows:
        if is_given and not has_main:
            raise InputError(f"{option} needs {main}", remedy=f"Add {main}, or remove {option}")


def refuse_out_of_range(options: object, **bounds: tuple[float, float]) -> None:
    """Raises InputError for the first of these fields whose number is not between its bounds. None is not checked."""
    for name, (low, high) in bounds.items():
        value = getattr(options, name)
        if value is not None and not low <= value <= high:
            remedy = f"Use a number from {exact(low)} to {exact(high)}"
            raise InputError(f"{name} is {exact(value)}, which is out of range", remedy=remedy)
