"""Files of judgments that were made elsewhere → values under known columns. Whatever is wrong has a file and a line."""

from harness.library.judgments.reading import ReadJudgments, format_of, read_judgments
from harness.library.judgments.row import WrittenJudgment

__all__ = ["ReadJudgments", "WrittenJudgment", "format_of", "read_judgments"]
