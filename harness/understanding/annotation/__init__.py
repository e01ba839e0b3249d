"""Annotating utterances: what stands, who has what to do, and a sitting at it. No I/O."""
