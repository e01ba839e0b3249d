"""Judgments as files: comma-separated text, JSON lines, Parquet."""
