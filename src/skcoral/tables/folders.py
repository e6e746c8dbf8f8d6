"""Several files as one table: folders, lists of files, and the file systems that pyarrow knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from skcoral.core.display import printable
from skcoral.core.validation import listing
from skcoral.exceptions import InvalidTableError
from skcoral.tables.sources import Source
from skcoral.tables.table import Batch, Table


def is_several(source: Any) -> bool:
    """Whether a source is a folder, a list of files, or an address of another file system."""
    if isinstance(source, str | os.PathLike):
        return "://" in os.fspath(source) or os.path.isdir(source)
    return isinstance(source, list | tuple)


def find_files(path: Any) -> list[Source]:
    """The files of a path, of a folder or of several of them, folders by the names in them."""
    from pyarrow import fs

    found: list[Source] = []
    for one in [path] if isinstance(path, str | os.PathLike) else path:
        place = os.fspath(one)
        system, place = (
            fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)
        )
        (info,) = system.get_file_info([place])
        files = [info] if info.is_file else []
        if info.type == fs.FileType.Directory:
            listed = system.get_file_info(fs.FileSelector(place, recursive=True))
            files = [f for f in listed if f.is_file and not f.base_name.startswith(("_", "."))]
        if not files:
            raise InvalidTableError(
                f"{printable(str(one))}: there is no file.\nCheck the name and the folder."
            )
        found += [
            Source(f.path, partial(system.open_input_file, f.path), f.size)
            for f in sorted(files, key=lambda f: f.path)
        ]
    if not found:
        raise InvalidTableError("The list of files is empty.\nName at least one.")
    return found


def joined(label: str, sources: list[Source], open_one: Callable[..., Table]) -> Table:
    """The rows of one file after the other; the first tells names and decimal mark."""
    first = open_one(sources[0])
    names = first.names
    decimal = {} if first.unit == "row" else {"decimal": first.decimal}

    def read(size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        wanted = names if places is None else [names[j] for j in places]
        for source in sources:
            part = open_one(source, **decimal)
            missing = [name for name in wanted if name not in part.names]
            if missing:
                raise InvalidTableError(
                    f"{source.label}: no column {listing(missing)}.\n"
                    "All files of a table have the columns of the first."
                )
            yield from part.batches(size, wanted)

    return replace(first, label=label, read=read, n_rows=None)
