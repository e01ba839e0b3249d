"""Files of utterances with what they mean → model: BIO folders, JSONL, CSV files of intents, and texts without either.

Whatever is wrong with a file is told with its line. Format: docs/understanding.md; spec understanding (Labels).
"""

from harness.library.understanding.corpus_file import read_corpus, read_splits
from harness.library.understanding.form import CorpusFormat, corpus_format_of
from harness.library.understanding.joining import Joined, join

__all__ = ["CorpusFormat", "Joined", "corpus_format_of", "join", "read_corpus", "read_splits"]
