"""Reads and checks round, training, gold and rater-key files."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, create_model

from harness.base import plugins
from harness.base.findings import (
    Findings,
    Id,
    Keys,
    Text,
    enum_validator,
    optional,
    preset,
    read_keys,
    validation_error,
)
from harness.base.plain_json import is_integer
from harness.base.user_text import name_key
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems, PluginError
from harness.model.judgment import (
    NEWER,
    Category,
    Exercise,
    GoldItem,
    ItemFilter,
    ProposalRule,
    ProposalShown,
    RaterAction,
    RaterKeys,
    RatingRound,
    StopRule,
    TranscriptPolicy,
)
from harness.rating.exercises import BUILT_IN_EXERCISES

BUILT_IN, NO_TRAINING = "built_in", "none"
NAMED_KEYS = ("space", "enter", "tab", "backspace", "left", "right", "up", "down", *(f"f{n}" for n in range(1, 13)))
MAX_EXERCISES = 200
MAX_GOLD = 10_000


def _check_key(value: object) -> object:
    """A key of the keyboard; a digit may stand without quotes."""
    key = str(value) if is_integer(value) else value
    if not isinstance(key, str):
        return value
    if key in NAMED_KEYS or (len(key) == 1 and key.isprintable() and not key.isspace()):
        return key
    raise validation_error(
        f"{key!r} is not a supported key", f"Use one character, or one of: {', '.join(NAMED_KEYS[:8])}, f1 … f12"
    )


def _check_setting(value: object) -> object:
    """A value of a plug-in's setting, as text; numbers may stand without quotes."""
    if isinstance(value, str | float) or is_integer(value):
        return str(value)
    raise validation_error("a setting is neither text nor a number", "Use `name: value`; for a switch, use yes or no")


Word = Annotated[Category, enum_validator(Category)]
KeyName = Annotated[str, BeforeValidator(_check_key), Field(json_schema_extra={"type": ["string", "integer"]})]
SettingValue = Annotated[str, BeforeValidator(_check_setting), Field(json_schema_extra={"type": ["string", "number"]})]


class ItemsKeys(Keys):
    """Which first responses are judged; a missing filter takes all."""

    devices: list[Text] = preset([], "Only responses from these devices.")
    classes: list[Text] = preset([], "Only responses to these query classes.")
    queries: list[Text] = preset([], "Only responses to queries with these ids.")
    trials: list[Text] = preset([], "Only responses in trials with these ids.")
    conditions: dict[Text, list[Text]] = preset(
        {}, "Only responses under these conditions, as axis: [label, …]. One label of each axis must match."
    )
    limit: int | None = optional(
        "Maximum number of responses: known answers first, then a random selection (`seed`). Default: all.", ge=1
    )


class ProposalsKeys(Keys):
    """A classifier that proposes categories, trained on judgments of other sessions."""

    from_: list[Text] = Field(
        min_length=1,
        alias="from",
        description="Judged session folders or patterns, relative to this file. Sessions of the round are refused.",
    )
    classifier: Id = preset("tfidf", "The classifier plug-in. Default tfidf.")
    settings: dict[Text, SettingValue] = preset(
        {}, "Settings of the classifier, as `name: value`. See the option -s of `harness understand annotate propose`."
    )
    show: Annotated[ProposalShown, enum_validator(ProposalShown)] = preset(
        ProposalShown.AFTER,
        "When raters see a proposal: after their choice if it differs (the default), before it, or never.",
    )


class StopKeys(Keys):
    """Stops raters who fail known answers."""

    after: int = preset(5, "Number of known answers before the rule applies. Default 5.", ge=1)
    below: float = Field(gt=0, le=1, description="Share of correct answers below which the rater is stopped, 0 to 1.")


class RoundKeys(Keys):
    """A round of rating."""

    round: Id = Field(description="Name of the round, stored with every judgment.")
    title: Text = preset("", "Title shown to people. Default: the name.")
    sessions: list[Text] = Field(
        min_length=1, description="Session folders, or patterns such as sessions/2026-*, relative to this file."
    )
    seed: int = preset(0, "Seed for orders, shares and the random selection. Default 0.", ge=0, le=2**31)
    items: ItemsKeys = preset(ItemsKeys(), "Which first responses are judged. Default: all.")
    transcript: Annotated[TranscriptPolicy, enum_validator(TranscriptPolicy)] = preset(
        TranscriptPolicy.ON_REQUEST,
        "When raters see the transcript: shown, on_request (the default; requests are stored) or never.",
    )
    raters: list[Id] = preset([], "Pseudonyms of the raters; others are refused. Default: anyone.")
    raters_per_item: int | None = optional("Number of raters per response. Default: all.", ge=1)
    training: Text = preset(
        BUILT_IN, "Exercises before the first response: built_in (the default), none, or a training file."
    )
    pass_share: float = preset(
        0.8, "Share of correct first answers below which wrong exercises are repeated once. Default 0.8.", ge=0, le=1
    )
    gold: Text | None = optional("A file of known answers, mixed in unmarked.")
    stop: StopKeys | None = optional(
        "Stops a rater who fails known answers: {after: 5, below: 0.6}. Default: no rater is stopped."
    )
    must_hear: bool = preset(False, "Refuse a category until the rater has heard the whole response. Default false.")
    break_after_min: float = preset(
        25.0, "Minutes without a rest after which a break is suggested; 0: never. Default 25.", ge=0, le=1440
    )
    proposals: ProposalsKeys | None = optional("A classifier that proposes categories.")


class ExerciseKeys(Keys):
    """An exercise. Voices speak it, and the rater sees the right answer at once."""

    id: Id = Field(description="Name of the exercise.")
    query: Text = Field(description="The query.")
    response: Text = Field(description="The response.")
    category: Word = Field(description="The correct category.")
    accept: list[Word] = preset([], "Other categories that count as correct.")
    why: Text = Field(description="The reason, shown after the answer.")
    effect: Text = preset("", "What the device did, if the category depends on it.")
    core_capability: bool = preset(False, "Whether every device of this kind must support the query.")


class TrainingKeys(Keys):
    """A training file."""

    training: Id = Field(description="Name of the training.")
    exercises: list[ExerciseKeys] = Field(
        min_length=1, max_length=MAX_EXERCISES, description="The exercises, in order."
    )


class GoldKeys(Keys):
    """A first response whose category is known."""

    session: Text = Field(description="Id of the session.")
    trial: Text = Field(description="Id of the trial.")
    category: Word = Field(description="The correct category.")
    accept: list[Word] = preset([], "Other categories that count as correct.")
    why: Text = preset("", "The reason.")


class GoldFileKeys(Keys):
    """A gold file."""

    gold: Id = Field(description="Name of the list.")
    responses: list[GoldKeys] = Field(min_length=1, max_length=MAX_GOLD, description="The known answers.")


class _RaterKeysHead(Keys):
    """Keys of categories and actions of raters: one character, or space, enter, tab, left, f1 …

    What is missing keeps its default key.
    """

    rater_keys: Id = Field(description="Name of the keys.")


_DEFAULTS = RaterKeys()
_DEFAULT_KEYS = {category.value: key for category, key in _DEFAULTS.categories.items()}
_DEFAULT_KEYS |= {action.value: key for action, key in _DEFAULTS.actions.items()}
RaterKeysKeys: type[_RaterKeysHead] = create_model(
    "RaterKeysKeys",
    __base__=_RaterKeysHead,
    __doc__=_RaterKeysHead.__doc__,
    **{  # type: ignore[call-overload]
        name: (KeyName | None, Field(default=None, description=f"Default `{key}`."))
        for name, key in _DEFAULT_KEYS.items()
    },
)


SESSION_LOG = "log.sqlite"
SPARE_KEYS = tuple(f"f{number}" for number in range(12, 1, -1))
"""Keys for actions whose default key the file gives to another action."""
T = TypeVar("T")


def read_round(path: Path) -> RatingRound:
    """Reads a round with its training and gold files.

    Raises InputProblems with all errors of these files, or InputError if one of them cannot be read.
    """
    keys, findings = read_keys(path, FileKind.ROUND, RoundKeys)
    folders: dict[str, None] = {}
    for number, pattern in enumerate(keys.sessions):
        folders.update(dict.fromkeys(_matching_sessions(path, pattern, ("sessions", number), findings)))
    sessions = tuple(folders)
    proposals = None if keys.proposals is None else _proposals(path, keys.proposals, sessions, findings)
    _check_raters(keys, findings)
    for axis, labels in keys.items.conditions.items():
        if not labels:
            findings.add(
                ("items", "conditions", axis), f"{axis!r} has no labels", "Add at least one label, or remove the axis"
            )
    exercises: tuple[Exercise, ...] = ()
    if keys.training == BUILT_IN:
        exercises = BUILT_IN_EXERCISES
    elif keys.training != NO_TRAINING:
        exercises = _load_relative(path, keys.training, "training", load_training, findings) or ()
    gold = () if keys.gold is None else _load_relative(path, keys.gold, "gold", load_gold, findings) or ()
    if keys.stop is not None and keys.gold is None:
        findings.add(("stop",), "`stop` needs known answers", "Add a gold file: `gold: known.yaml`")
    elif keys.stop is not None and gold and keys.stop.after > len(gold):
        problem = f"`stop` applies after {keys.stop.after} known answers, but there are only {len(gold)}"
        findings.add(("stop", "after"), problem, f"Set `after` to at most {len(gold)}, or add known answers")
    findings.refuse()
    items = keys.items
    return RatingRound(
        id=keys.round,
        title=keys.title or keys.round,
        path=str(path.absolute()),
        sessions=sessions,
        seed=keys.seed,
        items=ItemFilter(
            devices=tuple(items.devices),
            query_classes=tuple(items.classes),
            queries=tuple(items.queries),
            trials=tuple(items.trials),
            conditions=tuple((axis, label) for axis, labels in items.conditions.items() for label in labels),
            limit=items.limit,
        ),
        transcript=keys.transcript,
        raters=tuple(keys.raters),
        raters_per_item=keys.raters_per_item,
        exercises=exercises,
        pass_share=keys.pass_share,
        gold=gold,
        stop=None if keys.stop is None else StopRule(keys.stop.after, keys.stop.below),
        must_hear=keys.must_hear,
        break_after_min=keys.break_after_min,
        proposals=proposals,
    )


def load_training(path: Path) -> tuple[Exercise, ...]:
    """The exercises of a training file. Raises InputProblems or InputError."""
    keys, findings = read_keys(path, FileKind.TRAINING, TrainingKeys)
    _refuse_duplicates([exercise.id for exercise in keys.exercises], ("exercises",), "id", findings)
    findings.refuse()
    return tuple(Exercise(**{**dict(exercise), "accept": tuple(exercise.accept)}) for exercise in keys.exercises)


def load_gold(path: Path) -> tuple[GoldItem, ...]:
    """The known answers of a gold file. Raises InputProblems or InputError."""
    keys, findings = read_keys(path, FileKind.GOLD, GoldFileKeys)
    _refuse_duplicates([f"{row.trial} of {row.session}" for row in keys.responses], ("responses",), "trial", findings)
    findings.refuse()
    return tuple(GoldItem(row.session, row.trial, row.category, tuple(row.accept), row.why) for row in keys.responses)


def load_rater_keys(path: Path) -> RaterKeys:
    """The keys of a file, with defaults for the others. Raises InputProblems or InputError."""
    keys, findings = read_keys(path, FileKind.RATER_KEYS, RaterKeysKeys)
    chosen: dict[str, str] = {name: key for name, key in keys if name != "rater_keys" and key is not None}
    all_keys = {**_DEFAULT_KEYS, **chosen}
    for action in NEWER:  # older files may use the default keys of these actions for others
        if action.value not in chosen and all_keys[action.value] in chosen.values():
            all_keys[action.value] = next(key for key in SPARE_KEYS if key not in all_keys.values())
    for name, key in chosen.items():
        other_names = [other for other, other_key in all_keys.items() if other_key == key and other != name]
        if other_names:
            other = other_names[0]
            remedy = (
                "Change one of the two keys"
                if other in chosen
                else f"Assign another key to `{other}` in this file as well"
            )
            findings.add((name,), f"the key {key!r} is assigned to both {name} and {other}", remedy)
    findings.refuse()
    return RaterKeys(
        MappingProxyType({category: all_keys[category.value] for category in Category}),
        MappingProxyType({action: all_keys[action.value] for action in RaterAction}),
    )


def _matching_sessions(
    path: Path, pattern: str, key_path: tuple[str | int, ...], findings: Findings
) -> tuple[str, ...]:
    """Absolute paths of the session folders that match a pattern. If none does, that is added to the findings."""
    folder = path.absolute().parent
    names = sorted(glob.glob(str(Path(glob.escape(str(folder)), pattern))))
    sessions = [session for session in map(Path, names) if (session / SESSION_LOG).is_file()]
    if not sessions:
        problem = f"{pattern!r} matches no session folder"
        findings.add(key_path, problem, f"Specify a folder that contains a {SESSION_LOG}, relative to {folder}")
    return tuple(str(session.resolve()) for session in sessions)


def _proposals(path: Path, keys: ProposalsKeys, judged_sessions: tuple[str, ...], findings: Findings) -> ProposalRule:
    """The rule for proposals. Sources that the round judges, and wrong settings, are added to the findings."""
    sources: dict[str, None] = {}
    for number, pattern in enumerate(keys.from_):
        key_path = ("proposals", "from", number)
        folders = _matching_sessions(path, pattern, key_path, findings)
        own_names = [Path(folder).name for folder in folders if folder in judged_sessions]
        if own_names:
            problem = (
                f"{pattern!r} matches {own_names[0]!r}, which this round judges: the classifier would repeat its "
                "raters' labels"
            )
            findings.add(key_path, problem, "List judged sessions that are not in `sessions`")
        sources.update(dict.fromkeys(folders))
    settings = tuple(keys.settings.items())
    if settings:
        _check_settings(keys.classifier, settings, findings)
    return ProposalRule(tuple(sources), keys.classifier, keys.show, settings)


def _check_settings(classifier: str, settings: Sequence[tuple[str, str]], findings: Findings) -> None:
    """Checks each setting of a classifier, without creating the classifier."""
    try:
        declared = plugins.load(plugins.Group.INTENT_CLASSIFIERS, classifier).settings
    except PluginError as error:
        findings.add(("proposals", "classifier"), error.what, error.remedy)
        return
    for name, value in settings:
        try:
            plugins.checked_settings(declared, [(name, value)], classifier)
        except InputError as error:
            findings.add(("proposals", "settings", name), error.what, error.remedy)


def _check_raters(keys: RoundKeys, findings: Findings) -> None:
    _refuse_duplicates(keys.raters, ("raters",), "", findings, compared_form=name_key)
    if keys.raters_per_item is None:
        return
    if not keys.raters:
        findings.add(("raters_per_item",), "the round lists no raters", "List the raters: `raters: [ann, ben, cem]`")
    elif keys.raters_per_item > len(keys.raters):
        remedy = f"Use at most {len(keys.raters)}, or list more raters"
        findings.add(("raters_per_item",), f"there are only {len(keys.raters)} raters", remedy)


def _refuse_duplicates(
    ids: Sequence[str],
    key_path: tuple[str, ...],
    key: str,
    findings: Findings,
    *,
    compared_form: Callable[[str], str] = str,
) -> None:
    """Adds a finding for each id that occurs twice. compared_form: returns the form in which ids are compared."""
    first_numbers: dict[str, int] = {}
    for number, name in enumerate(ids):
        first = first_numbers.setdefault(compared_form(name), number)
        if first != number:
            line = findings.place((*key_path, first)).line
            location: tuple[str | int, ...] = (*key_path, number, key) if key else (*key_path, number)
            other = "" if ids[first] == name else f", as {ids[first]!r}"
            findings.add(location, f"{name!r} already occurs on line {line}{other}", "Remove one of the two entries")


def _load_relative(path: Path, relative: str, key: str, load: Callable[[Path], T], findings: Findings) -> T | None:
    """Loads another file, named relative to this one; None if that fails. Adds its errors, which keep their places."""
    other = path.parent / relative
    if not other.is_file():
        findings.add((key,), f"there is no file {relative!r}", f"Use a path relative to {path.parent}")
        return None
    try:
        return load(other)
    except InputProblems as problems:
        for problem in problems.problems:
            findings.add_at(problem.place or findings.place((key,)), problem.what, problem.remedy)
    except InputError as problem:
        findings.add_at(problem.place or findings.place((key,)), problem.what, problem.remedy)
    return None
