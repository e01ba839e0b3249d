"""Words on screen for a rater's keys, effects and judgments."""

from __future__ import annotations

from collections.abc import Callable

from textual import events

from harness.model.judgment import Category, RaterAction, RaterKeys
from harness.rating.guide import LABELS
from harness.rating.view import SittingPhase, SittingView

ACTIONS: dict[RaterAction, str] = {
    RaterAction.PLAY: "play",
    RaterAction.PLAY_QUERY: "query",
    RaterAction.PLAY_SLOWER: "slower",
    RaterAction.STOP: "stop",
    RaterAction.TRANSCRIPT: "text",
    RaterAction.UNDO: "undo",
    RaterAction.EARLIER: "earlier",
    RaterAction.LATER: "later",
    RaterAction.FIND: "find",
    RaterAction.SKIP: "skip",
    RaterAction.HOLD: "hold",
    RaterAction.FLAG: "flag",
    RaterAction.COMMENT: "comment",
    RaterAction.CONFIDENCE: "sure",
    RaterAction.SUB_FLAG: "sub-flag",
    RaterAction.AID: "aid",
    RaterAction.GUIDE: "guide",
    RaterAction.RELEASE_HELD: "judge held",
    RaterAction.QUIT: "quit",
}

DIGIT_ROW = dict(zip("&é\"'(-è_çà", "1234567890", strict=True))
"""Character of a digit key on an AZERTY keyboard without Shift → the digit."""
NEEDS_SHIFT = "on this keyboard, the digits need Shift; the letters next to them do not"


class AzertyDigitCheck:
    """Asks once whether a rater means a character or the digit on the same key of an AZERTY keyboard (`-` and 6).

    Raters who have labelled with a digit or a letter know their keyboard, and are not asked.
    category_of_key: returns the category of a key; None if it has none.
    """

    def __init__(self, category_of_key: Callable[[str], Category | None]) -> None:
        self._category_of_key = category_of_key
        self._is_settled, self._asked_key = False, ""

    def question(self, key: str, category: Category) -> str:
        """The question to ask before a key gives a category; "" if it gives it at once."""
        digit_category = self._category_of_key(DIGIT_ROW[key]) if key in DIGIT_ROW else None
        is_unambiguous = digit_category in (None, category)
        if self._is_settled or is_unambiguous or key == self._asked_key:
            self._is_settled = True
            return ""
        self._asked_key = key
        return f"{key} again saves {LABELS[category]}. A digit may need Shift here"


AUTO_PLAY = "p"
"""A fixed key: it works unless the keys file uses it for something else."""
_LEAVING_ACTIONS = (RaterAction.SKIP, RaterAction.HOLD, RaterAction.FLAG)


def key_name(event: events.Key) -> str:
    """The key's name in a keys file: its character, or a name."""
    character = event.character
    return character if character is not None and character.isprintable() and character != " " else event.key


def offered_keys(view: SittingView, keys: RaterKeys, *, sounds: bool, playing: bool) -> tuple[tuple[str, str], ...]:
    """(key, what it does) for the keys that work now.

    - sounds: whether sounds can be played.
    - playing: whether one plays.
    """

    def key(action: RaterAction) -> tuple[str, str]:
        return keys.actions[action], ACTIONS[action]

    if view.explanation is not None:
        return ("any key", "continue"), key(RaterAction.UNDO), key(RaterAction.QUIT)
    offers: list[tuple[str, str]] = []
    if view.item is not None:
        if sounds:
            offers += [key(RaterAction.PLAY), key(RaterAction.PLAY_SLOWER), key(RaterAction.PLAY_QUERY)]
            if playing:
                offers.append(key(RaterAction.STOP))
        is_text_shown = view.draft.transcript_shown
        if is_text_shown or not view.hides_text:
            offers.append((keys.actions[RaterAction.TRANSCRIPT], "all text" if is_text_shown else "text"))
        offers += [
            key(RaterAction.AID),
            key(RaterAction.SUB_FLAG),
            key(RaterAction.COMMENT),
            key(RaterAction.CONFIDENCE),
        ]
        if view.phase is SittingPhase.JUDGING:
            offers += [key(action) for action in _LEAVING_ACTIONS]
    if view.can_undo:
        offers.append(key(RaterAction.UNDO))
    if view.can_go_back:
        offers += [key(RaterAction.EARLIER), key(RaterAction.FIND)]
    if view.is_reopened:
        offers.append(key(RaterAction.LATER))
    if view.count.held and view.phase is SittingPhase.FINISHED:
        offers.append(key(RaterAction.RELEASE_HELD))
    offers.append(key(RaterAction.GUIDE))
    is_auto_play_key = keys.category(AUTO_PLAY) is None and keys.action(AUTO_PLAY) is None
    if sounds and is_auto_play_key and view.item is not None:
        offers.append((AUTO_PLAY, "auto-play"))
    offers.append(key(RaterAction.QUIT))
    if view.item is not None:
        labels = list(keys.categories.values())
        short = "1-9 0 -" if labels == list("1234567890-") else " ".join(labels)
        offers.insert(0, (short, "judge"))
    return tuple(offers)
