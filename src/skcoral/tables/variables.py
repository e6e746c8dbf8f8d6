"""The choice of variables: the columns that are asked for, or all that measure something."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from skcoral.core.validation import listing
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import remedy
from skcoral.tables.columns import ColumnProfile, TableProfile
from skcoral.tables.table import Table

#: Labels that a column must have to be suggested as clusters: confidence from fewer is coarse.
_FEWEST_GROUPS = 10


def select_variables(
    table: Table,
    content: TableProfile,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] | None = (),
    may_be_constant: bool = False,
) -> tuple[tuple[str, ...], dict[str, str], dict[str, str]]:
    """Decide which columns are the variables: the named ones, or all that hold numbers.

    Returned with them are those that never change, and those in doubt, each with the reason.

    Ids, counters and years are left out unless they are named or in ``include`` (None: all of
    them). A column that is mostly numbers but not entirely is an error unless it is excluded:
    leaving it out silently would hide a typing mistake. Constants are left out as well, and an
    error where they are named, unless a column ``may_be_constant``.
    """
    if content.n_rows == 0:
        what_to_do = "Choose another sheet" if table.other_sheets else "Give a table with data"
        raise InvalidTableError(
            f"{table.label}: there is a header but no rows under it.\n{what_to_do}."
        )
    for name in (*(columns or ()), *exclude, *(include or ())):
        table.index(name)
    left_out = set(exclude)
    wished = None if include is None or columns else set(include)
    doubtful: dict[str, str] = {}
    wanted = [name for name in columns or table.names if name not in left_out]
    chosen, unreadable = [], []
    for name in wanted:
        column = content.columns[name]
        if column.is_unreadable or (columns and column.kind in ("text", "empty")):
            unreadable.append(column)
        elif column.kind == "number" and column.doubt and wished is not None and name not in wished:
            doubtful[name] = column.doubt
        elif column.kind == "number" and (name or columns):
            chosen.append(name)
    if unreadable:
        raise no_numbers(table, unreadable)
    if len(set(chosen)) < len(chosen):
        twice = next(name for name, count in Counter(chosen).items() if count > 1)
        raise InvalidTableError(
            f"{table.label}: column {twice!r} is asked for twice.\nName each column once."
        )
    constants = {name: content.columns[name].constant for name in chosen if not may_be_constant}
    constants = {name: why for name, why in constants.items() if why}
    if constants and columns is not None:
        name, why = next(iter(constants.items()))
        raise InvalidTableError(
            f"{table.label}: column {name!r} is {why}, and a constant has no correlation.\n"
            f"Leave it out: --exclude {shlex.quote(name)}"
        )
    varying = tuple(name for name in chosen if name not in constants)
    if len(varying) < 2:
        advice = "Check the separator and the header, or choose other columns."
        if columns:
            advice = "Name two or more columns that are to be variables."
        elif doubtful:
            advice = "To use columns that look like ids or years: --include NAME."
        elif table.other_sheets:
            listed = ", ".join(table.other_sheets[:8])
            advice = f"Choose another sheet (--sheet NAME): {listed}."
        reasons = {n: doubtful.get(n) or content.columns[n].unusable(table) for n in wanted}
        usable = [name for name in varying if not reasons[name]]  # one value does not vary
        available = f"only {usable[0]!r}" if usable else "none"
        asked = [name for name in columns or table.names if name in left_out]
        reasons |= dict.fromkeys(asked, "as asked")
        unused = listing([f"{name} ({why})" for name, why in reasons.items() if why], quote="")
        raise InvalidTableError(
            f"{table.label}: at least two columns of numbers that vary are needed, and there is "
            f"{available}{f'; left out: {unused}' if unused else ''}.\n{advice}"
        )
    return varying, constants, {name: why for name, why in doubtful.items() if name}


def no_numbers(table: Table, columns: Sequence[ColumnProfile]) -> InvalidTableError:
    """Name all columns that cannot be read, with the first offending cell of each."""
    reasons = [f"{column.name!r} ({column.unusable(table)})" for column in columns]
    what = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
    problem = f"{what} cannot be read as numbers: {listing(reasons, 20, quote='')}."
    cells = [column.first_bad[1] for column in columns if column.first_bad is not None]
    advice = remedy(cells[0], table.decimal) if cells else "Correct it, or leave the column out."
    return InvalidTableError(f"{table.label}: {problem}\n{advice}")


def column_of_groups(
    table: Table, content: TableProfile, outcome: str | None
) -> tuple[str, int] | None:
    """The column whose labels repeat and may name clusters, with the number of labels.

    It holds text, or numbers under the name of an id that come again and again.
    """
    repeated: dict[str, int] = {}
    for name, column in content.columns.items():
        if (column.kind == "text" or column.repeats_ids) and name and name != outcome:
            labels = [label for label in table.labels(name) if label]
            if _FEWEST_GROUPS <= len(set(labels)) <= len(labels) / 2:
                repeated[name] = len(set(labels))
    return max(repeated.items(), key=lambda item: item[1], default=None)
