"""The keys of round, training, gold and rater-key files, as they are written."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, create_model

from harness.base.file_words import Id, Text, word, wrong
from harness.base.findings import Keys
from harness.model.judgment import Category, ProposalShown, RaterAction, TranscriptPolicy

BUILT_IN, NO_TRAINING = "built_in", "none"
NAMED_KEYS = ("space", "enter", "tab", "backspace", "left", "right", "up", "down", *(f"f{n}" for n in range(1, 13)))
MOST_EXERCISES = 200
MOST_GOLD = 10_000


def _key(written: object) -> object:
    """A key of the keyboard; a digit may stand without quotes."""
    key = str(written) if isinstance(written, int) and not isinstance(written, bool) else written
    if not isinstance(key, str):
        return written
    if key in NAMED_KEYS or (len(key) == 1 and key.isprintable() and not key.isspace()):
        return key
    raise wrong(f"{key!r} is no key", f"Write one character, or one of: {', '.join(NAMED_KEYS[:8])}, f1 … f12")


def _setting(written: object) -> object:
    """A value of a plug-in's setting, as text; numbers may stand without quotes."""
    if isinstance(written, str | int | float) and not isinstance(written, bool):
        return str(written)
    raise wrong("a setting is a text or a number", "Write name: value, with yes or no where it is that")


Word = Annotated[Category, word(Category)]
KeyName = Annotated[str, BeforeValidator(_key), Field(json_schema_extra={"type": ["string", "integer"]})]
SettingValue = Annotated[str, BeforeValidator(_setting), Field(json_schema_extra={"type": ["string", "number"]})]


class ItemsKeys(Keys):
    """Which first responses are drawn; what is not given takes all."""

    devices: list[Text] = Field(default=[], description="Only of these devices.")
    classes: list[Text] = Field(default=[], description="Only of these query classes.")
    queries: list[Text] = Field(default=[], description="Only of these queries, by their ids.")
    trials: list[Text] = Field(default=[], description="Only of these trials, by their ids.")
    conditions: dict[Text, list[Text]] = Field(
        default={}, description="Only under these conditions, axis: [label, …]; one of each axis's must fit."
    )
    limit: int | None = Field(
        default=None, ge=1, description="At most so many, drawn by the seed, gold items first. Default: all."
    )


class ProposalsKeys(Keys):
    """A classifier that proposes categories, learnt from judgments of other sessions."""

    from_: list[Text] = Field(
        min_length=1,
        alias="from",
        description="Judged session folders, or patterns, relative to this file; none of the round's own.",
    )
    classifier: Id = Field(default="tfidf", description="The classifier plug-in. Default tfidf.")
    settings: dict[Text, SettingValue] = Field(
        default={}, description="Settings of the classifier, name: value, as after -s of `harness annotate propose`."
    )
    show: Annotated[ProposalShown, word(ProposalShown)] = Field(
        default=ProposalShown.AFTER,
        description="When a rater sees it: after their choice where it differs (the default), before it, or never.",
    )


class StopKeys(Keys):
    """Who fails known answers gets no more responses."""

    after: int = Field(default=5, ge=1, description="Not before so many known answers were given. Default 5.")
    below: float = Field(gt=0, le=1, description="Fewer right ones than this share stop the rater, 0 to 1.")


class RoundKeys(Keys):
    """A round of rating."""

    round: Id = Field(description="Name of the round; it stands in every judgment.")
    title: Text = Field(default="", description="For people. Default: the name.")
    sessions: list[Text] = Field(
        min_length=1, description="Session folders, or patterns such as sessions/2026-*, relative to this file."
    )
    seed: int = Field(default=0, ge=0, le=2**31, description="Of the orders, the shares and what is drawn. Default 0.")
    items: ItemsKeys = Field(default=ItemsKeys(), description="Which first responses are drawn. Default: all.")
    transcript: Annotated[TranscriptPolicy, word(TranscriptPolicy)] = Field(
        default=TranscriptPolicy.ON_REQUEST,
        description="When raters see what was said in writing: shown, on_request (the default; it is stored) or never.",
    )
    raters: list[Id] = Field(default=[], description="Pseudonyms of the raters. Default: whoever comes.")
    raters_per_item: int | None = Field(
        default=None, ge=1, description="Each response goes to so many of the raters. Default: to all."
    )
    training: Text = Field(
        default=BUILT_IN, description="Exercises before the first item: built_in (the default), none, or a file."
    )
    pass_share: float = Field(
        default=0.8, ge=0, le=1, description="Below this share, wrong exercises come once more. Default 0.8."
    )
    gold: Text | None = Field(default=None, description="A file of known answers, which are mixed in unseen.")
    stop: StopKeys | None = Field(
        default=None, description="Stops a rater who fails known answers: {after: 5, below: 0.6}. Default: nobody."
    )
    must_hear: bool = Field(
        default=False, description="No category before the response was heard to its end. Default false."
    )
    break_after_min: float = Field(
        default=25.0, ge=0, le=1440, description="A break is suggested after so many minutes; 0: never. Default 25."
    )
    proposals: ProposalsKeys | None = Field(default=None, description="A classifier that proposes categories.")


class ExerciseKeys(Keys):
    """An exercise of a training round; voices speak it, and the answer is explained at once."""

    id: Id = Field(description="Name of the exercise.")
    query: Text = Field(description="What is asked.")
    response: Text = Field(description="What is answered.")
    category: Word = Field(description="What it is.")
    accept: list[Word] = Field(default=[], description="Further categories that count as right.")
    why: Text = Field(description="The reason, which raters read after their answer.")
    effect: Text = Field(default="", description="What the device did, when that decides.")
    core_capability: bool = Field(default=False, description="Whether every such device must be able to do it.")


class TrainingKeys(Keys):
    """A training file."""

    training: Id = Field(description="Name of the training.")
    exercises: list[ExerciseKeys] = Field(min_length=1, max_length=MOST_EXERCISES, description="In their order.")


class GoldKeys(Keys):
    """A first response whose category is known."""

    session: Text = Field(description="Id of the session.")
    trial: Text = Field(description="Id of the trial.")
    category: Word = Field(description="What it is.")
    accept: list[Word] = Field(default=[], description="Further categories that count as right.")
    why: Text = Field(default="", description="The reason.")


class GoldFileKeys(Keys):
    """A gold file."""

    gold: Id = Field(description="Name of the list.")
    responses: list[GoldKeys] = Field(min_length=1, max_length=MOST_GOLD, description="The known answers.")


class _RaterKeysHead(Keys):
    """A file of rater keys; what is not given keeps its default. One character, or space, enter, tab, left, f1 …"""

    rater_keys: Id = Field(description="Name of the keys.")


_SAID = {
    **{category.value: f"Labels {category.value.replace('_', ' ')}." for category in Category},
    **{action.value: f"Key of the action {action.value.replace('_', ' ')}." for action in RaterAction},
}
RaterKeysKeys: type[_RaterKeysHead] = create_model(
    "RaterKeysKeys",
    __base__=_RaterKeysHead,
    __doc__=_RaterKeysHead.__doc__,
    **{name: (KeyName | None, Field(default=None, description=said)) for name, said in _SAID.items()},  # type: ignore[call-overload]
)
