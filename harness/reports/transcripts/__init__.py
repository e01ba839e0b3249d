"""Reports of scored transcripts: summary, alignments, confusions, JSON and HTML."""
