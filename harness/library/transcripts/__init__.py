"""Files of transcripts → model: trn, ctm, stm, .sro and CSV lists. Whatever is wrong has a file and a line.

Source: spec transcripts (In and out); NIST SCTK 2.4.10 for trn, ctm and stm.
"""

from harness.library.transcripts.ctm import read_ctm
from harness.library.transcripts.form import format_of
from harness.library.transcripts.pairs import read_pair, read_transcripts
from harness.library.transcripts.speakers import SpeakerScheme, speaker_scheme
from harness.library.transcripts.stm import Label, Segments, read_stm

__all__ = [
    "Label",
    "Segments",
    "SpeakerScheme",
    "format_of",
    "read_ctm",
    "read_pair",
    "read_stm",
    "read_transcripts",
    "speaker_scheme",
]
