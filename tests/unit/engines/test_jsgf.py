from __future__ import annotations

from harness.engines.pocketsphinx_grammar import read_grammar

GRAMMAR = """#JSGF V1.0 UTF-8 en;
grammar lights;  // turn is no word here
/* public <not> = this; */
public <switch> = turn (on | off) {state="on it"}
  the /2.5/ <room> [light];
<room> = kitchen | "living room"*;
public <time> = what time is it+;
"""


def test_words_have_the_lines_that_they_stand_in() -> None:
    found = read_grammar(GRAMMAR)
    assert found.words[:3] == (("turn", 4), ("on", 4), ("off", 4))
    assert found.words[3:8] == (("the", 5), ("light", 5), ("kitchen", 6), ("living", 6), ("room", 6))
    assert [word for word, _ in found.words[8:]] == ["what", "time", "is", "it"]


def test_public_rules_and_the_name() -> None:
    found = read_grammar(GRAMMAR)
    assert (found.name, found.public, found.imports) == ("lights", ("switch", "time"), False)
    assert read_grammar("#JSGF V1.0;\ngrammar a;\nimport <b.*>;\npublic <x> = y;").imports


def test_what_is_no_grammar_is_read_to_its_end() -> None:
    for text in ("", "public", "<", '"open', "{", "/* open", "\0\n\n= word", "public <a> = {\\} x;"):
        read_grammar(text)
