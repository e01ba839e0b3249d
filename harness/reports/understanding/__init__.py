"""Figures of understanding, and annotated utterances, as files: text, JSON, pages, corpora."""
