"""What is seen in the columns of a table."""

from __future__ import annotations

from skcoral.tables.columns import profile
from skcoral.tables.reading import open_table


def test_columns_that_never_change_are_seen():
    text = f"a,b,c,d,e\n1,0.3,5,x,\n1.0,{0.1 + 0.2!r},,x,\n1e0,0.3,,x,2\n,0.3,6,x,\n"
    content = profile(open_table(text.encode(), name="t.csv"))
    always = {column.name: column.always for column in content.columns}
    # d is text, and of e there is one value only, which says nothing
    assert always == {"a": 1.0, "b": 0.3, "c": None, "d": None, "e": None}
