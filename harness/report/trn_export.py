"""What devices heard as NIST trn files, so that any scorer can score a session again.

The files hold the compared words, normalised: each transcript, and the reference or alternative that fits it best.
The speaker is the voice. The groups files hold what `harness report show --wer` groups by. See
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

# Characters with a meaning in trn files become their full-width forms.
_TWINS = str.maketrans("(){}/;@<>", "（）｛｝／；＠＜＞")
LONGEST_WORD, LONGEST_LABEL = 10_000, 200
ID = "id"


def trn_files(trials: Sequence[TranscribedTrial]) -> Mapping[str, str]:
    """File name → content: `first.ref.trn`, `first.trn` and `first.groups.csv` of first attempts, `final.…` of those
    that decided.

    Only attempts with a transcript, and the same ids in all three.
    """
    ids = tuple(_ids(trials))
    first = [(id_, trial, trial.first) for id_, trial in zip(ids, trials, strict=True)]
    final = [(id_, trial, trial.final) for id_, trial in zip(ids, trials, strict=True) if trial.final is not None]
    # With one axis, its own column holds the same, if it has one.
    crossed = any(trial.trial.needs_condition(Grouping) for trial in trials)
    groupings = [grouping for grouping in Grouping if crossed or grouping is not Grouping.CONDITION]
    return {**_files("first", first, groupings), **_files("final", final, groupings)}


def _files(
    name: str, attempts: Iterable[tuple[str, TranscribedTrial, AttemptTranscript]], groupings: Sequence[Grouping]
) -> dict[str, str]:
    reference: list[str] = []
    hypothesis: list[str] = []
    groups = io.StringIO()
    table = csv.writer(groups, lineterminator="\n")
    table.writerow([ID, *(grouping.value for grouping in groupings)])
    for id_, trial, attempt in attempts:
        if attempt.heard is not None:
            judged = recognised(trial.trial, attempt.heard)
            reference.append(_line(judged.reference, id_))
            hypothesis.append(_line(judged.heard, id_))
            table.writerow([id_, *(plain_text(group_of(trial, grouping), LONGEST_LABEL) for grouping in groupings)])
    return {
        f"{name}.ref.trn": "".join(reference),
        f"{name}.trn": "".join(hypothesis),
        f"{name}.groups.csv": groups.getvalue(),
    }


def _line(words: Sequence[str], id_: str) -> str:
    return " ".join([*(plain_text(word, LONGEST_WORD).translate(_TWINS) for word in words), f"({id_})"]) + "\n"


def _ids(trials: Iterable[TranscribedTrial]) -> Iterator[str]:
    """VOICE-TRIAL, for a command also the device; unique regardless of case."""
    used_ids: set[str] = set()
    for trial in trials:
        # In the scheme spu_id, the text before the first hyphen is the speaker.
        voice = re.sub(r"[^A-Za-z0-9]+", ".", group_of(trial, Grouping.VOICE)).strip(".") or "voice"
        name = trial.trial.id if trial.trial.listening is None else f"{trial.trial.id}.{trial.device}"
        stem = f"{voice}-{re.sub(r'[^A-Za-z0-9._+-]+', '_', name)}"
        trial_id, count = stem, 1
        while trial_id.lower() in used_ids:
            count += 1
            trial_id = f"{stem}.{count}"
        used_ids.add(trial_id.lower())
        yield trial_id
