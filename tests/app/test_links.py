"""Settings in links are applied or reported, and survive a round trip."""

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from skcoral.app.settings import LIMITED, MODES, SOURCES, Settings, from_query, to_query

names = st.text(min_size=1, max_size=12)
# Six digits travel in a link.
number = st.integers(0, 1000).map(lambda k: k / 1000)


@given(
    st.builds(
        Settings,
        source=st.sampled_from(sorted(SOURCES)),
        size=st.integers(3, 100),
        mode=st.sampled_from(sorted(MODES)),
        floor=number,
        budget=number,
        max_vif=st.integers(1000, 9000).map(lambda k: k / 1000),
        max_correlation=number,
        own=st.lists(st.tuples(names, number), max_size=3).map(tuple),
        support=number,
        without=st.lists(names, max_size=3).map(tuple),
        weights=names,
        target=names,
        covariance=st.sampled_from(["", "LedoitWolf", "OAS"]),
    )
)
def test_a_link_says_what_the_view_looks_at(settings):
    again, notes = from_query(to_query(settings))
    assert notes == []
    assert to_query(again) == to_query(settings)
    for name in ("source", "mode", "without", "weights", "target", "covariance"):
        assert getattr(again, name) == getattr(settings, name)
    if settings.mode in LIMITED:
        assert getattr(again, settings.mode) == getattr(settings, settings.mode)
    else:
        assert again.floor == settings.floor
        assert again.own == settings.own


@given(
    st.dictionaries(
        st.sampled_from([*(setting.name for setting in fields(Settings)), "x"]),
        st.lists(st.text(max_size=8), max_size=2),
    )
)
def test_any_link_can_be_opened(query):
    settings, _ = from_query(query)
    assert settings.source in SOURCES
    assert settings.mode in MODES
    assert settings.floor is None or 0 <= settings.floor <= 1
    assert 3 <= settings.size <= 100
