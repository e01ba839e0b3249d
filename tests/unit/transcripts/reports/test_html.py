"""The page of scored transcripts: what it says, that foreign text is only text in it, and that it stays small."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.base.pages import templates_of
from harness.model.errors import LogError
from harness.model.scenario import Normalisation
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.statistics.intervals import Interval
from harness.transcripts.reports import html
from harness.transcripts.reports.html import MAX_STEPS, MAX_UTTERANCES, blocks, write_html
from harness.transcripts.scoring import ScoredUtterance, Scoring, score
from harness.transcripts.words import WordRules
from tests.unit.transcripts.reports.scorings import reported, scored, transcripts

CLOSED_BY_ITSELF = {"meta", "link", "input", "br"}
CLOSED_BY_NEXT = {"li", "td", "th", "option", "dt", "dd"}
"""Tags that may be left open, in our templates."""


class Page(HTMLParser):
    """A page as a reader sees it: tags with their attributes, and the text of elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.raw = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in CLOSED_BY_ITSELF | CLOSED_BY_NEXT:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in CLOSED_BY_NEXT:
            assert self.open[-1:] == [tag]
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page(
    scorings: Sequence[Scoring], title: str, references: str = "", intervals: Sequence[Interval | None] = ()
) -> str:
    """Of scorings with their intervals."""
    padded = [*intervals, *[None] * len(scorings)]
    return html.page(
        [reported(scoring, interval) for scoring, interval in zip(scorings, padded, strict=False)], title, references
    )


def utterance(path: str, reference: Sequence[str], hypothesis: Sequence[str]) -> ScoredUtterance:
    """Words along a path that need not be the best one."""
    spoken, heard = iter(reference), iter(hypothesis)
    words = tuple(
        AlignedWord(Edit(step), "" if step == "I" else next(spoken), "" if step == "D" else next(heard))
        for step in path
    )
    return ScoredUtterance("a_1", "a", words, WordCounts())


def alignment(utterances: Sequence[ScoredUtterance], labels: Sequence[str] = ("HYP",)) -> str:
    """As a page draws it."""
    drawn = templates_of("harness.transcripts.reports").from_string(
        '{% from "alignment.html" import alignment %}{{ alignment(blocks) }}'
    )
    return drawn.render(blocks=blocks(utterances, labels))


SPOKEN = {"ann_1": "turn the lamp on", "ann_2": "what time is it", "bob_1": "play some jazz", "bob_2": "stop"}
HEARD = {"ann_1": "turn the lamb on now", "ann_2": "what time is it", "bob_1": "play jazz", "bob_2": "stop"}


def test_page_says_totals_with_their_interval_and_normalisation() -> None:
    report = Page(page([scored(SPOKEN, HEARD)], "Kitchen", "refs/kitchen.trn", [(0.1, 0.42)]))
    assert not report.open
    assert "25.00 % 3 errors in 12 words 95 % interval 10.00–42.00 %" in report.text
    assert "Normalisation verbatim" in report.text
    assert "References refs/kitchen.trn Hypotheses hyp.trn" in report.text
    assert "Sentences with error 50.0 % 2 of 4" in report.text
    assert "reference → hypothesis: 1 in all, 1 different 1 lamp → lamb" in report.text
    assert "deleted words: 1 in all, 1 different 1 some" in report.text
    assert "inserted words: 1 in all, 1 different 1 now" in report.text


def test_speakers_have_their_own_rows() -> None:
    report = Page(page([scored(SPOKEN, HEARD)], "Kitchen", intervals=[None]))
    assert "speaker sentences words correct sub del ins err sent.err" in report.text
    assert "ann 2 8 87.5 12.5 0.0 12.5 25.0 50.0" in report.text
    assert "bob 2 4 75.0 0.0 25.0 0.0 25.0 50.0" in report.text
    assert "Sum / avg 4 12 83.3 8.3 8.3 8.3 25.0 50.0" in report.text
    assert "95 % interval n/a" in report.text


def test_worst_comes_first_and_the_order_of_the_file_is_kept_for_the_switch() -> None:
    heard = HEARD | {"bob_2": "a b c d"}
    articles = Page(page([scored(SPOKEN, heard)], "t", intervals=[None])).of("article")
    assert [article["data-p"] for article in articles] == ["3", "0", "2", "1"]
    assert [article["data-k"] for article in articles] == ["SI", "SI", "D", "0"]
    assert [article["data-s"] for article in articles] == ["bob", "ann", "bob", "ann"]


def test_missing_surplus_and_empty_are_stated() -> None:
    references = SPOKEN | {"cy_1": ""}
    heard = {"ann_1": "turn the lamp on", "cy_1": "hm", "dora_1": "who"}
    text = Page(page([scored(references, heard)], "t", intervals=[None])).text
    assert "missing hypotheses 3 (ann_2, bob_1, bob_2); each word counts as deleted" in text
    assert "surplus hypotheses 1 (dora_1); counted nowhere" in text
    assert "empty references 1" in text
    assert "cy_1 cy C 0 S 0 D 0 I 1 WER n/a" in text
    assert "bob_1 bob no hypothesis, C 0 S 0 D 3 I 0 WER 100 %" in text
    dropped = Page(page([scored(references, heard, drop=True)], "t", intervals=[None])).text
    assert "missing hypotheses 3 (ann_2, bob_1, bob_2); left out" in dropped
    assert "bob_1 bob" not in dropped


def test_foreign_text_is_text_only() -> None:
    mark = "<img/src=x:y/onerror=alert(1)>"
    ids = {f"a_{mark}": f"{mark} \u202eevil \x1b[31m &amp;", 'b_"onclick="x()': "'><script>alert(2)</script>"}
    heard = dict.fromkeys(ids, f"</article></script> {mark}")
    text = page([scored(ids, heard, title=f"{mark}.trn")], f"{mark} {{{{7*7}}}}", mark, [None])
    report = Page(text)
    assert not report.open
    assert len(report.of("script")) == 1
    assert not report.of("img")
    assert not [name for _, attributes in report.tags for name in attributes if name.startswith("on")]
    assert mark in report.text
    assert "{{7*7}}" in report.text
    assert r"\u202eevil" in report.text
    assert r"\e[31m" in report.text
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_page_needs_nothing_from_elsewhere() -> None:
    report = Page(page([scored(SPOKEN, HEARD)], "t", intervals=[None]))
    targets = [
        value
        for _, attributes in report.tags
        for name, value in attributes.items()
        if name in ("src", "href", "action")
    ]
    assert targets
    assert all(target and target.startswith(("#", "data:")) for target in targets)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", report.raw)


def test_right_to_left_words_are_isolated_and_their_line_runs_their_way() -> None:
    spoken = {"a_1": "שלום world"}
    report = Page(page([scored(spoken, {"a_1": "שלום word"})], "t", intervals=[None]))
    assert all(div.get("dir") == "auto" for div in report.of("div") if div.get("class") == "vh-words")
    assert re.search(r"\.vh-words b,\.vh-words i\{[^}]*unicode-bidi:isolate", report.raw)
    assert "שלום" in report.text


def test_errors_are_marked_by_letter_and_element() -> None:
    markup = alignment([utterance("CSDI", ["turn", "lamp", "on"], ["turn", "lamb", "now"])])
    text = " ".join(Page(markup).words).split()
    assert text == ["REF", "HYP", "turn", "turn", "lamp", "lamb", "S", "on", "D", "now", "I"]
    assert markup.count("<ins>") == 2
    assert markup.count("<del") == 2
    assert "<del class=x>on</del></b><i class=D><sup>D</sup></i>" in markup
    assert "<b>turn</b><i aria-hidden=true>turn</i>" in markup


def test_correct_words_that_are_written_otherwise_are_marked() -> None:
    markup = alignment([utterance("CC", ["WHERE", "(uh)"], ["<WHERE>", ""])])
    assert '<b>WHERE</b><i class=E title="counts as correct"><span>&lt;WHERE&gt;</span><sup>=</sup></i>' in markup
    assert '<b>(uh)</b><i class=E title="may be left out, correct"><sup>=</sup></i>' in markup


def test_a_page_says_what_equals_means_where_it_has_any() -> None:
    references, hypotheses = transcripts("ref.trn", {"a_1": "(uh) on"}), transcripts("hyp.trn", {"a_1": "in"})
    for optional in (True, False):
        scoring = score(references, hypotheses, WordRules(Normalisation.VERBATIM), "verbatim", optional_words=optional)
        assert ("correct in another form" in page([scoring], "t")) is optional


def test_an_optional_word_of_a_hypothesis_is_correct_over_nothing() -> None:
    (block,) = blocks([utterance("CCC", ["a", "", "c"], ["a", "(b)", "c"])], ["HYP"])
    assert [(column.reference, column.cells[0].text, column.is_lost) for column in block.columns] == [
        ("a", "a", False),
        ("", "(b)", False),
        ("c", "c", False),
    ]


def test_systems_stand_below_each_other_under_one_reference() -> None:
    first = utterance("CISC", ["turn", "lamp", "on"], ["turn", "please", "lamb", "on"])
    second = utterance("DCCI", ["turn", "lamp", "on"], ["lamp", "on", "now"])
    (block,) = blocks([first, second], ["A", "B"])
    drawn = [
        (column.reference, *(f"{cell.edit or '-'} {cell.text}".strip() for cell in column.cells))
        for column in block.columns
    ]
    assert drawn == [
        ("turn", "C turn", "D"),
        ("", "I please", "-"),
        ("lamp", "S lamb", "C lamp"),
        ("on", "C on", "C on"),
        ("", "-", "I now"),
    ]
    assert alignment([first, second], ["A", "B"]).count("class=vh-al") == 1


def test_systems_are_compared_on_one_page() -> None:
    worse = {"ann_1": "turn", "ann_2": "time", "bob_1": "play"}
    systems = [scored(SPOKEN, HEARD, title="good.trn"), scored(SPOKEN, worse, title="bad.trn")]
    report = Page(page(systems, "t", intervals=[(0.1, 0.4), None]))
    assert not report.open
    assert "1 good.trn verbatim 12 25.00 % 10.00–40.00 %" in report.text
    assert "2 bad.trn verbatim 12 75.00 % n/a" in report.text
    assert "1 good − 2 bad 4 0, 1 25.00 % − 75.00 %" in report.text
    assert "bob 2 4 75.0 0.0 25.0 0.0 25.0 50.0" in report.text
    assert "bob 2 4 25.0 0.0 75.0 0.0 75.0 100.0" in report.text
    assert "bob_2 bob 1 good C 1 S 0 D 0 I 0 2 bad no hypothesis, C 0 S 0 D 1 I 0" in report.text


def test_an_utterance_that_one_system_lacks_is_shown_of_the_other() -> None:
    systems = [
        scored(SPOKEN, HEARD, title="good.trn"),
        scored(SPOKEN, {"ann_1": "turn the lamp on"}, title="bad.trn", drop=True),
    ]
    report = Page(page(systems, "t", intervals=[None, None]))
    assert len(report.of("article")) == 4
    assert "bob_1 bob 1 good C 2 S 0 D 1 I 0 REF" in report.text


def test_the_worst_are_shown_and_the_rest_is_counted() -> None:
    references = {f"s{number % 7}_{number}": "one two three" for number in range(2600)}
    heard = {id_: "one" if number % 4 else "one two" for number, id_ in enumerate(references)}
    text = page([scored(references, heard)], "t", intervals=[None])
    report = Page(text)
    assert len(report.of("article")) == MAX_UTTERANCES
    assert sum(not int(article["data-p"] or "0") % 4 for article in report.of("article")) == 50
    assert "2,600 of 2,600 utterances have errors. The 2,000 worst are shown; 600 are left out" in report.text
    assert len(text) < 2_000_000


def test_a_very_long_line_stays_small() -> None:
    long = "word " * 40_000
    text = page([scored({"a_1": long, "a_2": "x" * 200_000}, {"a_1": "word", "a_2": "y"})], "t", intervals=[None])
    assert f"and {40_000 - MAX_STEPS:,} more words, which are not shown" in text
    assert len(text) < 200_000


def test_many_speakers_and_ids_are_cut() -> None:
    references = {f"s{number}_1": "a" for number in range(3000)}
    text = Page(html.page([reported(scored(references, {"x_1": "a"}))], "t", max_utterances=10)).text
    assert "2,500 more are not listed" in text
    assert "missing hypotheses 3,000 (s0_1, s1_1," in text
    assert "s29_1, …); each word counts as deleted" in text
    assert "2,990 are left out" in text


def test_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(LogError):
        write_html([reported(scored(SPOKEN, HEARD))], tmp_path / "none" / "page.html", title="t")
    with pytest.raises(ValueError):
        write_html([], tmp_path / "page.html", title="t")
    assert not list(tmp_path.iterdir())


def test_lone_surrogates_do_not_stop_a_page(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    write_html([reported(scored({"a_1": "caf\udce9"}, {"a_1": "caf"}))], target, title="\udce9")
    assert r"caf\udce9" in target.read_text(encoding="utf-8")
