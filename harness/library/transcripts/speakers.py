"""Who speaks, as an utterance id says it: the schemes of sclite's -i, or a regular expression."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpeakerScheme:
    """A way to take the speaker from an utterance id. name: as it was asked for."""

    name: str

    def speaker_of(self, id_: str) -> str:
        """The speaker, or "" where the scheme finds none in the id."""
        raise NotImplementedError


def speaker_scheme(written: str) -> SpeakerScheme:
    """The scheme of that name, or of a regular expression `/(…)_/`; InputError for any other text."""
    raise NotImplementedError
