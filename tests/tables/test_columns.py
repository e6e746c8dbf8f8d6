"""What is seen in the columns of a table."""

from __future__ import annotations

from skcoral.tables.columns import profile
from skcoral.tables.reading import open_table


def test_columns_that_never_change_are_seen():
    text = f"a,b,c,d,e\n1,0.3,5,x,\n1.0,{0.1 + 0.2!r},,x,\n1e0,0.3,,x,2\n,0.3,6,x,\n"
    content = profile(open_table(text.encode(), name="t.csv"))
    constant = {name: column.constant for name, column in content.columns.items()}
    # d is text, and of e there is one value only, which says nothing
    assert constant == {"a": "always 1", "b": "always 0.3", "c": "", "d": "", "e": ""}


def test_long_codes_are_equal_only_in_the_digits_of_a_float():
    text = "a,code\n" + "".join(f"{i},{1234567890123456000 + 137 * i}\n" for i in range(12))
    content = profile(open_table(text.encode(), name="t.csv"))
    assert "first 15 digits" in content.columns["code"].constant
    assert content.columns["a"].constant == ""
