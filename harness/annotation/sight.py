"""What is in sight at a desk, as front-ends show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.annotation.draft import HandDraft, PageDraft
from harness.annotation.ledger import Choice
from harness.annotation.queue import Group
from harness.annotation.view import AnnotationInput, GroupView, LabellingItem, PageLine
from harness.model.annotation import Intents, Labelled, LabelSet


def group_view(page: PageDraft, groups: Sequence[Group]) -> GroupView:
    """The group of a page; its number is 0 when nothing is left of it, as after an undo that others overtook."""
    for number, group in enumerate(groups, 1):
        if group.intents == page.intents:
            return GroupView(page.intents, number, len(groups), len(group.open), group.total)
    return GroupView(page.intents, 0, len(groups), len(page.utterances), len(page.utterances))


def page_lines(page: PageDraft, texts: Mapping[str, str]) -> tuple[PageLine, ...]:
    """The utterances of a page."""
    return tuple(
        PageLine(number, one, texts.get(one, ""), one in page.struck) for number, one in enumerate(page.utterances, 1)
    )


def labelling_item(
    hand: HandDraft,
    text: str,
    label_set: LabelSet,
    *,
    proposal: Intents | None,
    struck: bool,
    inputs: Sequence[Choice],
) -> LabellingItem:
    """The utterance in sight. inputs: what annotators chose, in an order that does not tell who they are."""
    given = [AnnotationInput(row.intents, row.comment if isinstance(row, Labelled) else "") for row in inputs]
    return LabellingItem(
        utterance=hand.utterance,
        text=text,
        chosen=tuple(one for one in label_set.ids if one in hand.chosen),
        saved=hand.saved == (tuple(sorted(hand.chosen)), hand.comment),
        proposal=proposal if hand.seen else None,
        struck=struck,
        refusal=label_set.refusal(tuple(sorted(hand.chosen))),
        comment=hand.comment,
        inputs=tuple(sorted(given, key=lambda one: (one.intents, one.comment))),
    )
