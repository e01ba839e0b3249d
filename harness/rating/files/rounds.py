"""Round, training, gold and rater-key files: read, checked as a whole, and made the model's."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from harness.base import file_kinds as kinds
from harness.base import plugins, strict_yaml
from harness.base.findings import Findings, KeysT
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems, PluginError
from harness.model.judgment import (
    NEWER,
    Category,
    Exercise,
    GoldItem,
    ItemFilter,
    ProposalRule,
    RaterAction,
    RaterKeys,
    RatingRound,
    StopRule,
)
from harness.rating.files.round_file import (
    BUILT_IN,
    NO_TRAINING,
    GoldFileKeys,
    ProposalsKeys,
    RaterKeysKeys,
    RoundKeys,
    TrainingKeys,
)

SESSION_LOG = "log.sqlite"
SPARE_KEYS = tuple(f"f{number}" for number in range(12, 1, -1))
"""For actions whose own key a file gives to something else."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadRound:
    """A round as its file has it; built_in: its exercises are the tool's own, which are not among `round.exercises`."""

    round: RatingRound
    built_in: bool


def load_round(path: Path) -> ReadRound:
    """The round of a file, with its training and gold files; InputProblems with all that is wrong, InputError."""
    keys, found = _read(path, FileKind.ROUND, RoundKeys)
    sessions = _sessions(path, keys.sessions, found)
    proposals = None if keys.proposals is None else _proposals(path, keys.proposals, sessions, found)
    _check_raters(keys, found)
    for axis, labels in keys.items.conditions.items():
        if not labels:
            found.add(
                ("items", "conditions", axis), f"no label of {axis!r} is given", "Write one at least, or leave it out"
            )
    exercises: tuple[Exercise, ...] = ()
    if keys.training not in (BUILT_IN, NO_TRAINING):
        exercises = _beside(path, keys.training, "training", load_training, found) or ()
    gold = () if keys.gold is None else _beside(path, keys.gold, "gold", load_gold, found) or ()
    if keys.stop is not None and keys.gold is None:
        found.add(("stop",), "there are no known answers to fail", "Name a gold file: `gold: known.yaml`")
    elif keys.stop is not None and gold and keys.stop.after > len(gold):
        what = f"it begins after {keys.stop.after} known answers, and there are {len(gold)}"
        found.add(("stop", "after"), what, f"Write at most {len(gold)}, or add known answers")
    found.refuse()
    items = keys.items
    made = RatingRound(
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
    return ReadRound(made, keys.training == BUILT_IN)


def load_training(path: Path) -> tuple[Exercise, ...]:
    """The exercises of a training file; InputProblems, InputError."""
    keys, found = _read(path, FileKind.TRAINING, TrainingKeys)
    _refuse_twins([one.id for one in keys.exercises], ("exercises",), "id", found)
    found.refuse()
    return tuple(
        Exercise(
            id=one.id,
            query=one.query,
            response=one.response,
            category=one.category,
            why=one.why,
            accept=tuple(one.accept),
            effect=one.effect,
            core_capability=one.core_capability,
        )
        for one in keys.exercises
    )


def load_gold(path: Path) -> tuple[GoldItem, ...]:
    """The known answers of a gold file; InputProblems, InputError."""
    keys, found = _read(path, FileKind.GOLD, GoldFileKeys)
    _refuse_twins([f"{one.trial} of {one.session}" for one in keys.responses], ("responses",), "trial", found)
    found.refuse()
    return tuple(GoldItem(one.session, one.trial, one.category, tuple(one.accept), one.why) for one in keys.responses)


def load_rater_keys(path: Path) -> RaterKeys:
    """The keys of a file, the others as they are by default; InputProblems, InputError."""
    keys, found = _read(path, FileKind.RATER_KEYS, RaterKeysKeys)
    given: dict[str, str] = {name: key for name, key in keys if name != "rater_keys" and key is not None}
    defaults = RaterKeys()
    every = {
        **{category.value: key for category, key in defaults.categories.items()},
        **{action.value: key for action, key in defaults.actions.items()},
        **given,
    }
    for action in NEWER:
        if action.value not in given and every[action.value] in given.values():
            every[action.value] = next(key for key in SPARE_KEYS if key not in every.values())
    for name, key in given.items():
        others = [other for other, its in every.items() if its == key and other != name]
        if others:
            what = f"the key {key!r} stands for {name} and for {others[0]}"
            remedy = (
                "Change one of them" if others[0] in given else f"Give {others[0]} another key in this file as well"
            )
            found.add((name,), what, remedy)
    found.refuse()
    return RaterKeys(
        MappingProxyType({category: every[category.value] for category in Category}),
        MappingProxyType({action: every[action.value] for action in RaterAction}),
    )


def _read(path: Path, kind: FileKind, model: type[KeysT]) -> tuple[KeysT, Findings]:
    tree = strict_yaml.parse(strict_yaml.read_bytes(path), str(path))
    kinds.expect(kind, tree, str(path))
    found = Findings(str(path), tree)
    found.refuse_empty(tree, lambda _: False)
    written = tree.plain()
    found.check(model, written)
    found.refuse()
    return model.model_validate(written), found


def _sessions(path: Path, patterns: Sequence[str], found: Findings) -> tuple[str, ...]:
    """Absolute paths of the session folders that are meant, each once."""
    meant = [_meant(path, pattern, ("sessions", number), found) for number, pattern in enumerate(patterns)]
    return tuple(dict.fromkeys(one for of_pattern in meant for one in of_pattern))


def _meant(path: Path, pattern: str, at: tuple[str | int, ...], found: Findings) -> tuple[str, ...]:
    """Absolute paths of the session folders that a pattern means; noted when there is none."""
    folder = path.absolute().parent
    sessions = [one for one in map(Path, sorted(glob.glob(str(folder / pattern)))) if (one / SESSION_LOG).is_file()]
    if not sessions:
        what = f"{pattern!r} means no session folder"
        found.add(at, what, f"Name a folder that holds a {SESSION_LOG}, relative to {folder}")
    return tuple(str(one.resolve()) for one in sessions)


def _proposals(path: Path, keys: ProposalsKeys, own: tuple[str, ...], found: Findings) -> ProposalRule:
    """The rule; noted is each source whose own responses are judged in the round, and each setting that is wrong."""
    sources: dict[str, None] = {}
    for number, pattern in enumerate(keys.from_):
        at = ("proposals", "from", number)
        meant = _meant(path, pattern, at, found)
        twin = next((Path(one).name for one in meant if one in own), None)
        if twin is not None:
            what = f"{pattern!r} means {twin!r}, which this round judges: its raters would be told their own labels"
            found.add(at, what, "Name judged sessions that are none of `sessions`")
        sources.update(dict.fromkeys(meant))
    settings = tuple(keys.settings.items())
    if settings:
        _check_settings(keys.classifier, settings, found)
    return ProposalRule(tuple(sources), keys.classifier, keys.show, settings)


def _check_settings(classifier: str, settings: Sequence[tuple[str, str]], found: Findings) -> None:
    """Notes what is wrong with each; the classifier is not made."""
    try:
        known = plugins.load(plugins.Group.INTENT_CLASSIFIERS, classifier).settings
    except PluginError as error:
        found.add(("proposals", "classifier"), error.what, error.remedy)
        return
    for name, value in settings:
        try:
            plugins.checked_settings(known, [(name, value)], classifier)
        except InputError as error:
            found.add(("proposals", "settings", name), error.what, error.remedy)


def _check_raters(keys: RoundKeys, found: Findings) -> None:
    _refuse_twins(keys.raters, ("raters",), "", found)
    if keys.raters_per_item is None:
        return
    if not keys.raters:
        found.add(("raters_per_item",), "it is not said who the raters are", "Name them: `raters: [ann, ben, cem]`")
    elif keys.raters_per_item > len(keys.raters):
        remedy = f"Write at most {len(keys.raters)}, or name more raters"
        found.add(("raters_per_item",), f"there are only {len(keys.raters)} raters", remedy)


def _refuse_twins(ids: Sequence[str], at: tuple[str, ...], key: str, found: Findings) -> None:
    for number, one in enumerate(ids):
        if one in ids[:number]:
            line = found.place((*at, ids.index(one))).line
            where: tuple[str | int, ...] = (*at, number, key) if key else (*at, number)
            found.add(where, f"{one!r} is there already, in line {line}", "Remove one of the two")


def _beside(path: Path, named: str, key: str, load: Callable[[Path], T], found: Findings) -> T | None:
    """What another file holds, named relative to this one; its problems are told with their own places."""
    other = path.parent / named
    if not other.is_file():
        found.add((key,), f"there is no file {named!r}", f"Name it relative to {path.parent}")
        return None
    try:
        return load(other)
    except InputProblems as problems:
        for problem in problems.problems:
            found.add_at(problem.place or found.place((key,)), problem.what, problem.remedy)
    except InputError as problem:
        found.add_at(problem.place or found.place((key,)), problem.what, problem.remedy)
    return None
