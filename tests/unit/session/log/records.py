"""Hypothesis strategies for every kind of row."""

from typing import get_args

from hypothesis import strategies as st

from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import Clip, Record
from harness.model.stimulus import StimulusRecipe
from harness.model.time import Measured, Stamp
from harness.model.transcript import Normalisation, Rewriting
from harness.model.understanding import Slot

# A lone surrogate is no character: it has no UTF-8, and drivers decode with replacement.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
errors = st.floats(min_value=0, allow_nan=False, allow_infinity=False)

st.register_type_strategy(str, texts)
st.register_type_strategy(float, finite)
st.register_type_strategy(int, st.integers(-(2**53), 2**53))
st.register_type_strategy(Stamp, st.builds(Stamp, at_s=finite, error_s=errors))
st.register_type_strategy(Measured, st.builds(Measured, value_s=finite, error_s=errors))
st.register_type_strategy(Clip, st.builds(Clip, rate_hz=st.integers(1, 192_000), samples=st.integers(0, 2**40)))


def _judgments() -> st.SearchStrategy[Judgment]:
    submitted = st.tuples(st.just(JudgmentStatus.SUBMITTED), st.sampled_from(Category))
    others = st.tuples(
        st.sampled_from([status for status in JudgmentStatus if status is not JudgmentStatus.SUBMITTED]), st.none()
    )
    return (submitted | others).flatmap(
        lambda pair: st.builds(
            Judgment,
            status=st.just(pair[0]),
            category=st.just(pair[1]),
            confidence=st.none() | st.sampled_from((1, 2, 3)),
        )
    )


st.register_type_strategy(Judgment, _judgments())
_phrases = st.lists(texts, max_size=3).map(tuple)
# A phrase has words and one meaning.
_same = st.dictionaries(_phrases.filter(bool), _phrases, max_size=3).map(lambda pairs: tuple(pairs.items()))
st.register_type_strategy(Rewriting, st.builds(Rewriting, id=texts, base=st.sampled_from(Normalisation), same=_same))

# Half a place is refused.
st.register_type_strategy(Slot, st.builds(Slot, concept=texts, value=st.none() | texts, start=st.none(), end=st.none()))

KINDS: tuple[type, ...] = get_args(Record)
recipes = st.from_type(StimulusRecipe)


def rows_of(kind: type) -> st.SearchStrategy[Record]:
    return st.from_type(kind)
