"""Who speaks, as an utterance id says it: the schemes of sclite's -i, or a regular expression.

Source: NIST SCTK 2.4.10, sclite -i; docs/transcript-formats.md says where we differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.model.errors import InputError

_LONGEST_S = 0.5  # a regular expression that takes longer over one id never ends


@dataclass(frozen=True, slots=True)
class SpeakerScheme:
    """A way to take the speaker from an utterance id. name: as it was asked for."""

    name: str
    _take: Callable[[str], str]

    def speaker_of(self, id_: str) -> str:
        """The speaker, or "" where the scheme finds none in the id.

        In lower case but for a regular expression's, since ids that differ in case only are one. InputError when a
        regular expression does not come to an end.
        """
        return self._take(id_)

    def speakers_of(self, ids: Sequence[str]) -> list[str]:
        """The speakers of many ids, one for one: quicker than one by one."""
        if self._take is _before_mark and not any("-" in id_ for id_ in ids):
            known = _Lowered()
            return [known[before] if mark else "" for before, mark, _ in (id_.partition("_") for id_ in ids)]
        return list(map(self._take, ids))


class _Lowered(dict[str, str]):
    """Texts in lower case, each made once."""

    def __missing__(self, text: str) -> str:
        lowered = self[text] = text.lower()
        return lowered


def speaker_scheme(written: str) -> SpeakerScheme:
    """The scheme of that name, or of a regular expression `/(…)_/`; InputError for any other text.

    spu_id, swb and rm: what stands before the first hyphen, or, without one, before the first underscore. wsj: the
    first three characters. sp: every utterance is its own speaker. none: there are no speakers. A regular expression
    is searched in the id, and its first group is the speaker.
    """
    if len(written) > 2 and written.startswith("/") and written.endswith("/"):
        return SpeakerScheme(written, _by_expression(written))
    if written not in _SCHEMES:
        # Here, since it takes longer to import than most files take to score, as does `regex` below.
        from harness.base.findings import nearest

        remedy = nearest(written, [*_SCHEMES, "/(…)_/"], listed="The schemes are")
        raise InputError(f"no scheme of speakers is called {written!r}", remedy=remedy)
    return SpeakerScheme(written, _SCHEMES[written])


def _before_mark(id_: str) -> str:
    for mark in "-_":
        before, found, _ = id_.partition(mark)
        if found:
            return before.lower()
    return ""


_SCHEMES: dict[str, Callable[[str], str]] = {
    "spu_id": _before_mark,
    "swb": _before_mark,
    "rm": _before_mark,
    "wsj": lambda id_: id_[:3].lower(),
    "sp": str.lower,
    "none": lambda id_: "",
}


def _by_expression(written: str) -> Callable[[str], str]:
    import regex

    remedy = "Write one with one group: /([a-z]+)[0-9]/"
    try:
        expression = regex.compile(written[1:-1])
    except (regex.error, RecursionError, OverflowError) as error:
        raise InputError(f"{written} is no regular expression: {error}", remedy=remedy) from error
    if not expression.groups:
        raise InputError(f"{written} has no group", remedy=remedy)

    def take(id_: str) -> str:
        try:
            found = expression.search(id_, timeout=_LONGEST_S)
        except TimeoutError as error:
            raise InputError(f"{written} does not come to an end on {id_!r}", remedy="Write a simpler one") from error
        return (found[1] or "") if found else ""

    return take
