"""Names of labels in somebody's files → names in a label set: a preset, or a CSV file `from,to`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from harness.base.findings import nearest
from harness.base.problems import Problems
from harness.model.errors import InputError, Place
from harness.transcripts.files.encoding import read_text
from harness.transcripts.files.lists import filled_rows

MEDIA = "media"
PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        MEDIA: MappingProxyType(
            {
                "annulation": "cancellation",
                "incomprehension": "incomprehension",
                "marqueur_discursif": "discourse_marker",
                "modification": "modification",
                "remercier": "thanking",
                "renseignements": "information",
                "reponse_affirmative": "affirmative_answer",
                "reponse_indecise": "indecisive_answer",
                "reponse_negative": "negative_answer",
                "reservation": "booking",
                "saluer": "greeting",
            }
        )
    }
)
"""media: from the French of the public files to the English of the tables (spec understanding, Labels)."""

_EXAMPLE = "Write a header `from,to`, then a row for each label"


def load_label_map(named: str) -> Mapping[str, str]:
    """A preset, or the map of a file; InputError, InputProblems."""
    if named in PRESETS:
        return PRESETS[named]
    path = Path(named)
    if not path.is_file():
        remedy = f"Name a CSV file; {nearest(named, list(PRESETS), listed='presets')}"
        raise InputError(f"{named!r} is neither a file nor a preset", remedy=remedy)
    problems = Problems(named)
    rows = filled_rows(read_text(path), problems)
    _, header = next(rows, (1, [""]))
    if [one.strip().lower() for one in header] != ["from", "to"]:
        raise InputError(f"the header is {','.join(header)!r}", place=Place(named, 1), remedy=_EXAMPLE)
    found: dict[str, str] = {}
    for line, row in rows:
        if len(row) != 2 or not row[0].strip() or not row[1].strip():
            problems.add(line, 0, "the row has not two names", _EXAMPLE)
        elif row[0].strip() in found:
            problems.add(line, 0, f"{row[0].strip()!r} is there already", "Remove one of the rows")
        else:
            found[row[0].strip()] = row[1].strip()
    problems.refuse()
    return found
