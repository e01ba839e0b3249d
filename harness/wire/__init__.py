"""Pure: messages and their text form, log-line mappings. Bytes and times in, observations out."""
