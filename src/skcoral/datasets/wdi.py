"""The development indicators of the paper as a table: from the World Bank, or from a file."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np

from skcoral._validation import check_count
from skcoral.datasets._records import Dataset
from skcoral.datasets._worldbank import WorldBankClient
from skcoral.exceptions import InvalidTableError
from skcoral.showing import printable

#: Column → series of the World Development Indicators.
WDI_SERIES = {
    "fertility": "SP.DYN.TFRT.IN",
    "gdp_per_capita": "NY.GDP.PCAP.CD",
    "education_expenditure": "SE.XPD.TOTL.GD.ZS",
    "capital_formation": "NE.GDI.TOTL.ZS",
    "internet_use": "IT.NET.USER.ZS",
    "life_expectancy": "SP.DYN.LE00.IN",
    "under5_mortality": "SH.DYN.MORT",
    "urban_population": "SP.URB.TOTL.IN.ZS",
}

_LICENCE = "CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)"


def fetch_wdi(
    year: int = 2019,
    *,
    base_url: str = "https://api.worldbank.org/v2",
    cache_dir: str | Path | None = None,
    timeout: float = 30.0,
    retries: int = 4,
    wait: float = 1.0,
    refresh: bool = False,
) -> Dataset:
    """Fetch the paper's eight indicators for all countries that are complete on them.

    One request per series and page to the World Bank's API (version 2); regions and income groups
    are left out with the help of its country list. The Bank revises its figures: a table fetched
    today need not give the published correlations, which :func:`wdi_correlation` carries.

    Parameters
    ----------
    year : int, default=2019
        Year of the observations.
    base_url : str, default="https://api.worldbank.org/v2"
        Address of the API.
    cache_dir : path, optional
        Folder that keeps the answers; by default ``scikit-coral`` in the user's cache folder.
    timeout : float, default=30.0
        Seconds to wait for one answer.
    retries : int, default=4
        Further attempts after a failure that may pass.
    wait : float, default=1.0
        Seconds before the first further attempt, doubled each time.
    refresh : bool, default=False
        Fetch again what the cache folder already has.

    Returns
    -------
    Dataset
        Countries by name, in alphabetical order.

    Raises
    ------
    DownloadError
        If the network or the server does not answer, or answers with something else.

    Examples
    --------
    >>> from skcoral.datasets import fetch_wdi
    >>> wdi = fetch_wdi(year=2019)  # doctest: +SKIP
    """
    year = check_count("year", year)
    if cache_dir is None:
        cache_dir = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "scikit-coral"
    folder = Path(cache_dir).expanduser()
    client = WorldBankClient(base_url, folder, timeout, retries, wait, refresh)
    countries = client.countries()
    columns = {name: client.series(code, year) for name, code in WDI_SERIES.items()}
    complete = [iso for iso in countries if all(iso in values for values in columns.values())]
    complete.sort(key=lambda iso: countries[iso])
    if len(complete) <= len(columns):
        counts = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise InvalidTableError(
            f"only {len(complete)} countries have all {len(columns)} indicators in {year}; values "
            f"per series: {counts}. Choose another year."
        )
    data = np.array([[values[iso] for values in columns.values()] for iso in complete])
    return _dataset(data, [countries[iso] for iso in complete], year)


def load_wdi(path: str | Path, *, year: int = 2019) -> Dataset:
    """Load the paper's eight indicators from a CSV file; incomplete rows are left out.

    Parameters
    ----------
    path : path
        CSV file with a column ``country`` and one column per indicator, named as in
        ``WDI_SERIES`` or by its series code; other columns are ignored.
    year : int, default=2019
        Year of the observations, for the attribution.

    Returns
    -------
    Dataset
        Rows in the order of the file.

    Raises
    ------
    InvalidTableError
        If a column is missing or named twice, or a cell is not a number.

    Examples
    --------
    >>> from skcoral.datasets import load_wdi
    >>> wdi = load_wdi("wdi_2019.csv")  # doctest: +SKIP
    """
    label = printable(str(path))
    # A leading byte-order mark, as spreadsheets write it, must not become part of a name.
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        try:
            data, countries = _complete_rows(reader, label)
        except UnicodeDecodeError as error:
            raise InvalidTableError(f"{label} is not in UTF-8 ({error.reason}).") from error
        except csv.Error as error:
            raise InvalidTableError(f"{label}, after line {reader.line_num}: {error}.") from error
    if len(data) <= len(WDI_SERIES):
        raise InvalidTableError(
            f"{label} has {len(data)} complete rows; more than {len(WDI_SERIES)} are needed."
        )
    repeated = sorted({name for name in countries if countries.count(name) > 1})
    if repeated:
        raise InvalidTableError(f"{label} has more than one row for {', '.join(repeated)}.")
    return _dataset(np.array(data), countries, year)


def _complete_rows(reader: csv.DictReader[str], label: str) -> tuple[list[list[float]], list[str]]:
    header = list(reader.fieldnames or [])
    found = {
        name: name if name in header else code
        for name, code in WDI_SERIES.items()
        if name in header or code in header
    }
    missing = [name for name in ("country", *WDI_SERIES) if name not in {*found, *header}]
    if missing:
        raise InvalidTableError(
            f"{label} has no column {', '.join(missing)}; its columns are {', '.join(header)}."
        )
    twice = [name for name in ("country", *found.values()) if header.count(name) > 1]
    if twice:
        raise InvalidTableError(f"{label} has the column {', '.join(twice)} more than once.")
    data: list[list[float]] = []
    countries: list[str] = []
    for row in reader:
        cells = {name: (row[column] or "").strip() for name, column in found.items()}
        if "" in cells.values():
            continue
        for name, cell in cells.items():
            if not _is_finite(cell):
                raise InvalidTableError(
                    f"{label}, line {reader.line_num}, column {name}: wanted a number, found "
                    f"{cell!r}. Leave the cell empty to leave the row out."
                )
        data.append([float(cell) for cell in cells.values()])
        countries.append(str(row["country"]))
    return data, countries


def _is_finite(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _dataset(data: np.ndarray, countries: list[str], year: int) -> Dataset:
    source = f"World Bank, World Development Indicators, {year}"
    return Dataset(data, tuple(WDI_SERIES), tuple(countries), source, _LICENCE)
