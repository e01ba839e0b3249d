"""Files of utterances with what they mean → model: BIO folders, JSONL, CSV files of intents, and texts without either.

A model goes back into lines of JSONL, which lose nothing; other forms are reports.

Whatever is wrong with a file is told with its line. Format: docs/understanding.md; spec understanding (Labels).
"""

from harness.library.understanding.corpus_file import read_corpus, read_splits
from harness.library.understanding.form import corpus_format_of
from harness.library.understanding.joining import Joined, join
from harness.library.understanding.jsonl_writing import jsonl_line, jsonl_lines

__all__ = [
    "Joined",
    "corpus_format_of",
    "join",
    "jsonl_line",
    "jsonl_lines",
    "read_corpus",
    "read_splits",
]
