"""The client against a local server with the API's format and failures; tables from CSV files."""

import json
import socket
from types import SimpleNamespace

import numpy as np
import pytest

from skcoral.datasets import WDI_SERIES, _worldbank, fetch_wdi, load_wdi
from skcoral.exceptions import DownloadError, InvalidArgumentError, InvalidTableError


@pytest.fixture
def fetch(world_bank, tmp_path):
    def call(**options):
        settings = {"base_url": world_bank.url, "cache_dir": tmp_path / "cache", "wait": 0.01}
        return fetch_wdi(**(settings | options))

    return call


def test_table_has_the_complete_countries_only(world_bank, fetch):
    world_bank.missing = {("ALB", "SH.DYN.MORT"), ("C03", "SP.DYN.TFRT.IN")}
    wdi = fetch()
    expected = sorted(
        ["Zambia", "Cote d'Ivoire", "Turkiye", *(f"Country {k:02d}" for k in range(11) if k != 3)]
    )
    assert list(wdi.rows) == expected
    assert wdi.names == tuple(WDI_SERIES)
    assert np.array_equal(wdi.data[-1], world_bank.values[0])
    assert np.allclose(wdi.correlation, np.corrcoef(wdi.data, rowvar=False), atol=1e-13)
    assert "2019" in wdi.source
    assert "CC BY 4.0" in wdi.licence


def test_reads_every_page_of_every_series(world_bank, fetch):
    fetch()
    pages = -(-18 // world_bank.page_size)
    assert len(world_bank.requests) == 9 * pages
    for code in WDI_SERIES.values():
        assert world_bank.served(f"/indicator/{code}?date=2019&") == pages


def test_cache_answers_the_second_time(world_bank, fetch, tmp_path):
    first = fetch()
    world_bank.requests.clear()
    assert np.array_equal(fetch().data, first.data)
    assert world_bank.requests == []
    world_bank.values += 1.0
    assert np.allclose(fetch(refresh=True).data, first.data + 1.0)
    (tmp_path / "cache" / "SH.DYN.MORT-2019.json").write_text("{ half a fi", "utf-8")
    world_bank.requests.clear()
    assert np.allclose(fetch().data, first.data + 1.0)
    assert all("SH.DYN.MORT" in request for request in world_bank.requests)
    assert not list((tmp_path / "cache").glob("*.part"))


def test_cache_of_one_year_or_address_is_not_taken_for_another(world_bank, fetch):
    fetch()
    world_bank.requests.clear()
    fetch(year=2018)
    assert world_bank.served("date=2018") == len(world_bank.requests) > 0
    world_bank.requests.clear()
    fetch(base_url=world_bank.url.replace("127.0.0.1", "localhost"))
    assert world_bank.requests


@pytest.mark.parametrize(
    "body",
    [b"<html>busy</html>", b'[{"page": 2, "pages": 3', b"[]", b"{}", b'[{"page": 2}]', b"[3, []]",
     b'[{"page": 1, "pages": 3}, []]', b'[{"page": 2, "pages": 3}, null]',
     b'[{"page": 2, "pages": 3}, [4]]', b"\xff\xfe", b'[{"page": 2, "pages": Infinity}, [{}]]',
     b'[{"page": 2, "pages": 3}, []]', b"[" * 100_000],
    ids=["html", "cut", "empty", "object", "no pages", "no head", "other page", "null",
         "not objects", "not UTF-8", "endless", "no entries", "nested"],
)  # fmt: skip
def test_malformed_page_is_asked_for_again_then_refused(world_bank, fetch, body):
    part = WDI_SERIES["under5_mortality"]
    world_bank.faults = {(part, 2): [world_bank.answer(body)]}
    assert len(fetch().rows) == 15
    world_bank.faults = {(part, 2): [world_bank.answer(body)] * 3}
    with pytest.raises(DownloadError, match=r"SH\.DYN\.MORT.*page 2.*after 3 attempts"):
        fetch(refresh=True, retries=2)


@pytest.fixture
def waits(monkeypatch):
    """The pauses that were made, without making them."""
    made = []
    monkeypatch.setattr(_worldbank, "time", SimpleNamespace(sleep=made.append))
    return made


def test_too_many_requests_waits_as_long_as_the_server_says(world_bank, fetch, waits):
    world_bank.faults = {
        ("country", 1): [world_bank.answer(b"", 429, [("Retry-After", "0.3")])],
        ("NY.GDP", 1): [world_bank.answer(b"", 503), world_bank.answer(b"", 502)],
    }
    assert len(fetch().rows) == 15
    assert waits[0] == 0.3
    assert len(waits) == 3
    assert world_bank.served("NY.GDP.PCAP.CD?date=2019&format=json&per_page=1000&page=1") == 3


def test_too_many_requests_for_too_long(world_bank, fetch):
    world_bank.faults = {("country", 1): [world_bank.answer(b"", 429)] * 9}
    with pytest.raises(DownloadError, match=r"status 429.*after 2 attempts.*load_wdi"):
        fetch(retries=1)


def test_a_date_as_retry_after_is_no_advice(world_bank, fetch, waits):
    header = [("Retry-After", "Fri, 31 Dec 2027 23:59:59 GMT")]
    world_bank.faults = {("country", 1): [world_bank.answer(b"", 429, header)]}
    assert len(fetch().rows) == 15
    assert len(waits) == 1
    assert waits[0] <= 1


def test_slow_server_is_asked_again_then_given_up(world_bank, fetch):
    world_bank.faults = {("country", 1): [world_bank.late]}
    assert len(fetch(timeout=0.2).rows) == 15
    world_bank.faults = {("country", 1): [world_bank.late] * 2}
    with pytest.raises(DownloadError, match=r"no answer within 0\.2 s"):
        fetch(timeout=0.2, retries=1, refresh=True)


def test_a_refusal_is_not_repeated(world_bank, fetch):
    world_bank.faults = {("country", 1): [world_bank.answer(b"", 404)] * 9}
    with pytest.raises(DownloadError, match="status 404"):
        fetch()
    assert len(world_bank.requests) == 1


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ([{"id": "175", "key": "Invalid format", "value": "deleted"}], "Invalid format: deleted$"),
        ("closed today", "closed today$"),
    ],
)
def test_the_servers_own_message_is_shown(world_bank, fetch, message, words):
    body = json.dumps([{"message": message}]).encode()
    world_bank.faults = {("SE.XPD", 1): [world_bank.answer(body)]}
    with pytest.raises(DownloadError, match=words):
        fetch()


def test_a_list_that_grows_while_it_is_read_has_an_end(world_bank, fetch):
    """A server that promises one more page each time must not be followed for ever."""
    entry = world_bank.series("SH.DYN.MORT", "2019", 6)[5]
    world_bank.faults = {
        ("SH.DYN.MORT", page): [
            world_bank.answer(json.dumps([{"page": page, "pages": page + 1}, [entry]]).encode())
        ]
        for page in range(1, 40)
    }
    with pytest.raises(DownloadError, match=r"SH\.DYN\.MORT.*changed.*2 pages.*3"):
        fetch()


def test_a_year_without_data_is_reported_and_not_remembered(world_bank, fetch):
    nothing = json.dumps([{"page": 0, "pages": 0, "per_page": 0, "total": 0}, None]).encode()
    world_bank.faults = {("IT.NET", 1): [world_bank.answer(nothing)]}
    with pytest.raises(InvalidTableError, match=r"only 0 countries.*2019.*internet_use 0"):
        fetch()
    assert world_bank.served("IT.NET") == 1
    assert len(fetch().rows) == 15


def test_a_byte_order_mark_is_no_fault(world_bank, fetch):
    head = {"page": 1, "pages": 1}
    body = json.dumps([head, world_bank.country_list()]).encode("utf-8-sig")
    world_bank.faults = {("country", 1): [world_bank.answer(body)]}
    assert len(fetch().rows) == 15
    assert world_bank.served("/country?") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"year": "../2019"}, "year must be a whole number"),
        ({"year": 2019.0}, "year must be a whole number"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"timeout": 0}, "timeout must be a finite number above 0"),
        ({"wait": -1.0}, "wait must be a finite number of at least 0"),
        ({"base_url": None}, "base_url"),
        ({"base_url": "http://[::1"}, "base_url"),
        ({"base_url": "http:///v2"}, "base_url"),
    ],
)
def test_settings_that_are_invalid(fetch, options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        fetch(**options)


def test_a_host_that_cannot_be_one(fetch):
    with pytest.raises(DownloadError, match="could not read"):
        fetch(base_url="http://a..b/v2", retries=0)


def test_a_cache_folder_that_cannot_be_written(fetch, tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(DownloadError, match=r"cannot be kept.*file.*cache_dir"):
        fetch(cache_dir=tmp_path / "file" / "cache")


@pytest.mark.parametrize(
    "change",
    [
        {"value": "many"},
        {"value": float("nan")},
        {"date": "2018"},
        {"indicator": {"id": "X"}},
        {"country": 1, "indicator": 2},
    ],
)
def test_entry_that_is_invalid(world_bank, fetch, change):
    entry = world_bank.series("SP.DYN.TFRT.IN", "2019", 0)[5] | change
    body = json.dumps([{"page": 1, "pages": 1}, [entry]]).encode()
    world_bank.faults = {("SP.DYN.TFRT.IN", 1): [world_bank.answer(body)]}
    with pytest.raises(DownloadError, match=r"SP\.DYN\.TFRT\.IN"):
        fetch()


def test_country_that_is_invalid(world_bank, fetch):
    body = json.dumps([{"page": 1, "pages": 1}, [{"id": "ALB", "region": None}]]).encode()
    world_bank.faults = {("country", 1): [world_bank.answer(body)]}
    with pytest.raises(DownloadError, match="country list"):
        fetch()


def test_without_network_the_error_says_what_to_do(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v2"
    with pytest.raises(DownloadError, match=r"refused.*after 2 attempts.*wdi_correlation\(\)"):
        fetch_wdi(base_url=url, cache_dir=tmp_path, retries=1, wait=0.01)
    assert not list(tmp_path.iterdir())


def test_too_few_complete_countries(world_bank, fetch):
    world_bank.missing = {(f"C{k:02d}", "IT.NET.USER.ZS") for k in range(10)}
    with pytest.raises(InvalidTableError, match=r"only 5 countries.*internet_use 8"):
        fetch()


def test_only_http_addresses(tmp_path):
    with pytest.raises(InvalidArgumentError, match="http"):
        fetch_wdi(base_url=tmp_path.as_uri(), cache_dir=tmp_path)


def test_default_cache_is_in_the_users_cache_folder(world_bank, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fetch_wdi(base_url=world_bank.url)
    assert (tmp_path / "scikit-coral" / "countries.json").is_file()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    fetch_wdi(base_url=world_bank.url)
    assert (tmp_path / "home" / ".cache" / "scikit-coral" / "countries.json").is_file()


@pytest.fixture
def table(tmp_path):
    def write(rows, header=("country", "iso3", *WDI_SERIES), encoding="utf-8"):
        path = tmp_path / "wdi.csv"
        lines = [header, *rows]
        path.write_text("\n".join(",".join(map(str, line)) for line in lines), encoding)
        return path

    return write


ROWS = [(f"Land {k}", f"L{k}", *np.random.default_rng(k).normal(size=8)) for k in range(12)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_load_reads_what_was_written(table, encoding):
    wdi = load_wdi(table(ROWS, encoding=encoding))
    assert wdi.rows[3] == "Land 3"
    assert np.array_equal(wdi.data, np.array([row[2:] for row in ROWS]))


def test_load_takes_series_codes_in_any_order(table):
    header = ("country", "iso3", *reversed(WDI_SERIES.values()))
    wdi = load_wdi(table(ROWS, header))
    assert wdi.names == tuple(WDI_SERIES)
    assert np.array_equal(wdi.data, np.array([row[:1:-1] for row in ROWS]))


def test_load_tells_the_encoding_from_the_numbers(table):
    rows = [("Côte d'Ivoire", "CIV", *ROWS[0][2:]), *ROWS]
    with pytest.raises(InvalidTableError, match="UTF-8"):
        load_wdi(table(rows, encoding="latin-1"))


def test_load_leaves_out_incomplete_rows(table):
    rows = [*ROWS, ("Gap", "GAP", *[1.0] * 7, ""), ("Short", "SHO", 1.0)]
    assert load_wdi(table(rows)).rows == tuple(row[0] for row in ROWS)


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        (ROWS, ("country", "iso3", *list(WDI_SERIES)[1:], "x"), "no column fertility"),
        ([*ROWS, ("Bad", "BAD", *[1.0] * 5, "n/a", 1.0, 2.0)], None,
         r"line 14, column life_expectancy: wanted a number, found 'n/a'"),
        ([*ROWS, ("Bad", "BAD", "inf", *[1.0] * 7)], None, "column fertility"),
        (ROWS[:5], None, "5 complete rows"),
        ([*ROWS, ROWS[2]], None, "more than one row for Land 2"),
        ([], ("",), "no column country"),
        (ROWS, ("country", "urban_population", *WDI_SERIES), "urban_population more than once"),
        ([*ROWS, ("x" * 200_000, "BAD", *ROWS[0][2:])], None, "after line 13: field larger"),
    ],
)  # fmt: skip
def test_load_refuses_with_the_place(table, rows, header, words):
    path = table(rows, header) if header else table(rows)
    with pytest.raises(InvalidTableError, match=words):
        load_wdi(path)
