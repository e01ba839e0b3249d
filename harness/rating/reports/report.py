"""All that a category report says, before it is text, JSON or a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.choices import Grouping, Parting, Reading
from harness.model.judgment import Category
from harness.rating.categories import LABELS
from harness.rating.figures.categories import CategoryFigures, Figure, figures_of
from harness.rating.figures.category_comparison import CategoryComparison, compare_categories
from harness.rating.figures.category_groups import PARTINGS, By, CrossedFigures, crossed, grouped, label_by
from harness.rating.figures.rated_trials import Fate, RatedTrial
from harness.rating.figures.reprompts import RepromptFigures, reprompts_of

DERIVED_LABELS = {"satisfied": "Satisfied", "helpful": "Helpful", "asks_back": "Asks back"}
NO_LABEL = "(none)"
NEVER_RECOGNISED = "(not recognised)"


@dataclass(frozen=True, slots=True)
class Selection:
    """What a report is of. raters, round_id: only their judgments; () and None: all. on: what is compared and crossed.

    by: partings that are asked for; None: all that part the queries. compare: two devices or sessions.
    """

    raters: tuple[str, ...] = ()
    round_id: str | None = None
    on: Figure = Category.CORRECT
    by: tuple[By, ...] | None = None
    crosses: tuple[tuple[By, By], ...] | None = None
    compare: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The queries of a label."""

    label: str
    figures: CategoryFigures
    reprompts: RepromptFigures


@dataclass(frozen=True, slots=True)
class CategoryReport:
    """sessions: ids. figures, reprompts: of all queries. comparisons: under each reading that makes a difference."""

    sessions: tuple[str, ...]
    selection: Selection
    trials: tuple[RatedTrial, ...]
    figures: CategoryFigures
    reprompts: RepromptFigures
    groups: tuple[tuple[By, tuple[Group, ...]], ...]
    crossed: tuple[CrossedFigures, ...]
    comparisons: tuple[CategoryComparison, ...] = ()

    def of(self, fate: Fate) -> tuple[RatedTrial, ...]:
        return tuple(one for one in self.trials if one.fate is fate)

    def devices(self) -> tuple[Group, ...]:
        """By device, whether or not that is asked for."""
        return next(
            (groups for by, groups in self.groups if by is Parting.DEVICE), _groups(self.trials, Parting.DEVICE)
        )


def report_of(trials: Sequence[RatedTrial], selection: Selection, sessions: Sequence[str]) -> CategoryReport:
    """The report over some queries; ValueError when a side of the comparison is no device and no session."""
    held = tuple(trials)
    wanted: tuple[By, ...] = tuple(PARTINGS.values()) if selection.by is None else selection.by
    groups = [(by, _groups(held, by)) for by in wanted if selection.by is not None or _is_shown(held, by)]
    crosses = selection.crosses
    if crosses is None:
        parts = {by for by, of in groups if len(of) > 1}
        crosses = ((Parting.DEVICE, Parting.CLASS),) if {Parting.DEVICE, Parting.CLASS} <= parts else ()
    return CategoryReport(
        tuple(sessions),
        selection,
        held,
        figures_of(held),
        reprompts_of(held),
        tuple(groups),
        tuple(crossed(held, *both) for both in crosses),
        _comparisons(held, selection),
    )


def name_of(figure: Figure) -> str:
    """A category or a derived group as it is called on screen."""
    return LABELS[figure] if isinstance(figure, Category) else DERIVED_LABELS[figure.value]


def label_in_words(label: str, by: By) -> str:
    """A label for people; it is still to be made harmless."""
    return label or (NEVER_RECOGNISED if by is Parting.ATTEMPTS else NO_LABEL)


def _groups(trials: Sequence[RatedTrial], by: By) -> tuple[Group, ...]:
    return tuple(Group(label, figures_of(of), reprompts_of(of)) for label, of in grouped(trials, by))


def _is_shown(trials: Sequence[RatedTrial], by: By) -> bool:
    """Unasked: what parts the queries; no long table of single ones, and no second one of a single axis."""
    if by is Parting.QUERY or (by is Grouping.CONDITION and all(len(one.trial.conditions) < 2 for one in trials)):
        return False
    return len({label_by(one, by) for one in trials}) > 1


def _comparisons(trials: Sequence[RatedTrial], selection: Selection) -> tuple[CategoryComparison, ...]:
    if selection.compare is None:
        return ()
    differs = selection.on in (Category.WRONG, Category.ADMITTED_DEFEAT)
    readings = tuple(Reading) if differs else (Reading.ADMITTED,)
    return tuple(compare_categories(trials, *selection.compare, selection.on, reading) for reading in readings)
