"""Fetch the paper's eight development indicators from the World Bank and decorrelate them.

Needs a network and ``pip install wbgapi pandas``. The year may be named on the command line; it is
2019 by default. Writes ``wdi_YEAR.csv``, which ``coral fit`` reads as well.

The Bank revises its figures: a table fetched today need not have the published correlations, which
``skcoral.datasets.wdi_correlation()`` carries. World Development Indicators are licensed CC BY 4.0;
name the World Bank wherever the numbers are shown.
"""

from __future__ import annotations

import sys

import wbgapi

from skcoral import CORAL

SERIES = {
    "SP.DYN.TFRT.IN": "fertility",
    "NY.GDP.PCAP.CD": "gdp_per_capita",
    "SE.XPD.TOTL.GD.ZS": "education_expenditure",
    "NE.GDI.TOTL.ZS": "capital_formation",
    "IT.NET.USER.ZS": "internet_use",
    "SP.DYN.LE00.IN": "life_expectancy",
    "SH.DYN.MORT": "under5_mortality",
    "SP.URB.TOTL.IN.ZS": "urban_population",
}


def main(year: int) -> None:
    # Regions and income groups are aggregates; only countries with all eight indicators are kept.
    table = wbgapi.data.DataFrame(list(SERIES), time=year, skipAggs=True)
    table = table.rename(columns=SERIES)[list(SERIES.values())].dropna()
    table.to_csv(f"wdi_{year}.csv", index_label="country")
    print(CORAL(rho_min=0.85).fit(table).summary())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2019)
