"""Long trial names in few columns, so that each can still be told from the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from harness.base.foreign import ELLIPSIS, plain_text

LONGEST = 200


def short_names(ids: Sequence[str], width: int) -> list[str]:
    """One name for each id, of at most `width` characters.

    A last part that all share (`.r1`) is left out. Of names that are still too long a part is left out, where it leaves
    the most of them different; some may look alike all the same when the width is too small for that.
    """
    names = _without_shared_end([plain_text(one, LONGEST) for one in ids])
    if all(len(one) <= width for one in names):
        return names
    half = width // 2
    tails = sorted(range(width), key=lambda tail: abs(tail - half))
    ways = [[cut(one, width, tail) for one in names] for tail in tails]
    # max takes the first of equals, which is the one with the most even halves
    return max((*ways, _differences(ways[0], names, width)), key=lambda way: len(set(way)))


def cut(text: str, width: int, tail: int) -> str:
    """The text without its middle where it is too long: its last `tail` characters, and as much of its beginning."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1 - tail)] + ELLIPSIS + text[len(text) - tail :]


def _without_shared_end(names: list[str]) -> list[str]:
    ends = {name.rpartition(".")[1:] for name in names}
    if len(names) < 2 or len(ends) != 1 or ends & {("", name) for name in names}:
        return names
    return [name.rpartition(".")[0] or name for name in names]


def _differences(shown: list[str], names: list[str], width: int) -> list[str]:
    """The names as shown; where some look alike, their beginning and the part in which they differ."""
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(shown):
        alike[name].append(index)
    found = list(shown)
    for group in alike.values():
        if len(group) > 1:
            front = _shared([names[index] for index in group])
            back = _shared([names[index][front:][::-1] for index in group])
            for index in group:
                name = names[index]
                core = name[front : len(name) - back]
                room = width - 1 - len(core)
                found[index] = name[:room] + ELLIPSIS + core if room > 0 else cut(core or name, width, width // 2)
    return found


def _shared(texts: Sequence[str]) -> int:
    """How many characters all begin with."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False)))
