"""Exports the transcripts of a session as NIST trn files, so that any scorer can score it again.

The files contain the compared words, normalised: each transcript, and the reference or alternative that fits it best.
The speaker is the voice. The groups files contain the groups of `harness report show --wer`. See
docs/reference/sessions.md.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.base.foreign import plain_text
from harness.model.choices import Grouping
from harness.session.figures.trials import AttemptTranscript, TranscribedTrial, group_of
from harness.transcripts.recognition import recognised

# Characters with a special meaning in trn files are replaced by their full-width forms.
_FULL_WIDTH = str.maketrans("(){}/;@<>", "（）｛｝／；＠＜＞")
MAX_WORD_CHARS, MAX_LABEL_CHARS = 10_000, 200
ID = "id"


def trn_files(trials: Sequence[TranscribedTrial]) -> Mapping[str, str]:
    """The contents of the files by name: `first.ref.trn`, `first.trn` and `first.groups.csv` for first attempts,
    `final.…` for the attempts that decided.

    They contain only attempts with a transcript. All three have the same ids.
    """
    ids = tuple(_utterance_ids(trials))
    first = [(id_, trial, trial.first) for id_, trial in zip(ids, trials, strict=True)]
    final = [(id_, trial, trial.final) for id_, trial in zip(ids, trials, strict=True) if trial.final is not None]
    # With only one axis, its own column (if there is one) has the same content.
    crossed = any(trial.trial.needs_condition(Grouping) for trial in trials)
    groupings = [grouping for grouping in Grouping if crossed or grouping is not Grouping.CONDITION]
    return {**_attempt_files("first", first, groupings), **_attempt_files("final", final, groupings)}


def _attempt_files(
    name: str, attempts: Iterable[tuple[str, TranscribedTrial, AttemptTranscript]], groupings: Sequence[Grouping]
) -> dict[str, str]:
    reference: list[str] = []
    hypothesis: list[str] = []
    groups = io.StringIO()
    table = csv.writer(groups, lineterminator="\n")
    table.writerow([ID, *(grouping.value for grouping in groupings)])
    for id_, trial, attempt in attempts:
        if attempt.heard is not None:
            recognition = recognised(trial.trial, attempt.heard)
            reference.append(_trn_line(recognition.reference, id_))
            hypothesis.append(_trn_line(recognition.heard, id_))
            table.writerow([id_, *(plain_text(group_of(trial, grouping), MAX_LABEL_CHARS) for grouping in groupings)])
    return {
        f"{name}.ref.trn": "".join(reference),
        f"{name}.trn": "".join(hypothesis),
        f"{name}.groups.csv": groups.getvalue(),
    }


def _trn_line(words: Sequence[str], id_: str) -> str:
    """A line of a trn file: words, then the id in parentheses."""
    safe_words = [plain_text(word, MAX_WORD_CHARS).translate(_FULL_WIDTH) for word in words]
    return " ".join([*safe_words, f"({id_})"]) + "\n"


def _utterance_ids(trials: Iterable[TranscribedTrial]) -> Iterator[str]:
    """The ids of utterances: VOICE-TRIAL, for a command with the device. They are unique regardless of case."""
    used_ids: set[str] = set()
    for trial in trials:
        # In the scheme spu_id, the text before the first hyphen is the speaker.
        voice = re.sub(r"[^A-Za-z0-9]+", ".", group_of(trial, Grouping.VOICE)).strip(".") or "voice"
        name = trial.trial.id if trial.trial.listening is None else f"{trial.trial.id}.{trial.device}"
        stem = f"{voice}-{re.sub(r'[^A-Za-z0-9._+-]+', '_', name)}"
        utterance_id, count = stem, 1
        while utterance_id.lower() in used_ids:
            count += 1
            utterance_id = f"{stem}.{count}"
        used_ids.add(utterance_id.lower())
        yield utterance_id
