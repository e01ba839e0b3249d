"""The seed's distributions of intents as it prints them, and files of intents that have them.

Tables 2 (the subset for tri-training), 5 (MEDIA original) and 18 (MEDIA 2022): rows of an intent's counts by split,
with the printed total behind. Table 1: utterances by split. All printed totals add up; nothing of them is a slip (the
one slip of the seed's figures is a share in its section 3.2: 289 of 3,946 are 7.32 %, and not 7.22 %).
"""

from __future__ import annotations

from pathlib import Path

ALONE = "marqueur_discursif"

Rows = dict[str, tuple[int, ...]]

TABLE_2: Rows = {
    "annulation": (15, 1, 1, 17),
    "incomprehension": (6, 1, 4, 11),
    "marqueur_discursif": (38, 6, 5, 49),
    "modification": (7, 1, 1, 9),
    "remercier": (47, 5, 6, 58),
    "renseignements": (114, 11, 19, 144),
    "reponse_affirmative": (392, 42, 52, 486),
    "reponse_indecise": (9, 1, 3, 13),
    "reponse_negative": (362, 35, 57, 454),
    "reservation": (352, 30, 48, 430),
    "saluer": (43, 8, 6, 57),
}
TABLE_5: Rows = {
    "annulation": (32, 1, 15, 48),
    "incomprehension": (273, 30, 94, 397),
    "marqueur_discursif": (282, 40, 113, 435),
    "modification": (115, 10, 31, 156),
    "remercier": (713, 100, 200, 1013),
    "renseignements": (1611, 159, 401, 2171),
    "reponse_affirmative": (4325, 419, 1190, 5934),
    "reponse_indecise": (37, 5, 9, 51),
    "reponse_negative": (1315, 88, 344, 1747),
    "reservation": (5437, 522, 1410, 7369),
    "saluer": (717, 101, 206, 1024),
}
TABLE_18: Rows = {
    "annulation": (33, 1, 17, 12, 63),
    "incomprehension": (409, 49, 128, 58, 644),
    "marqueur_discursif": (386, 48, 148, 97, 679),
    "modification": (127, 11, 33, 23, 194),
    "remercier": (691, 99, 199, 175, 1164),
    "renseignements": (1704, 158, 408, 524, 2794),
    "reponse_affirmative": (4347, 427, 1209, 1207, 7190),
    "reponse_indecise": (48, 9, 10, 6, 73),
    "reponse_negative": (1345, 90, 343, 412, 2190),
    "reservation": (5777, 575, 1528, 1810, 9690),
    "saluer": (714, 101, 210, 199, 1224),
}
SPLITS = ("train", "dev", "test", "test2")
UTTERANCES_2 = (1240, 124, 187)
"""Section 3.1.1."""
UTTERANCES_5 = (12916, 1259, 3518)
UTTERANCES_18 = (13712, 1367, 3767, 4002)
"""Table 1, its two rows."""


def write_intents(folder: Path, table: Rows, utterances: tuple[int, ...]) -> list[Path]:
    """A file for each split, whose utterances together have the intents of the table; ids have # and commas."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for at, number in enumerate(utterances):
        alone = table[ALONE][at]
        labels: list[list[str]] = [[ALONE] if one < alone else [] for one in range(number)]
        given = [name for name, counts in table.items() if name != ALONE for _ in range(counts[at])]
        # Each goes to the next utterance, so that none gets the same intent twice, and all get one.
        for turn, name in enumerate(given):
            labels[alone + turn % (number - alone)].append(name)
        assert all(labels)
        rows = [f'"{at}#{one},{one % 7}#s.wav",{"#".join(of)}\n' for one, of in enumerate(labels)]
        path = folder / f"{SPLITS[at]}.csv"
        path.write_text(("id,intent\n" if at % 2 else "\ufeffID,intent\n") + "".join(rows), encoding="utf-8")
        files.append(path)
    return files
