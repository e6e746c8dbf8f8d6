"""A small client of the World Bank's API, version 2: paging, retries, a cache folder."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from skcoral._staging import replacing
from skcoral._validation import check_count, check_number, check_positive
from skcoral._version import __version__
from skcoral.exceptions import DownloadError, InvalidArgumentError

_PER_PAGE = 1000
_LONGEST_WAIT = 60.0


class _MalformedPageError(ValueError):
    """The answer of the server does not have the form of the API; the message says why."""


@dataclass(frozen=True)
class WorldBankClient:
    """Read lists from the API, page by page, and keep them in a folder.

    The settings are those of :func:`skcoral.datasets.fetch_wdi`. A failure that may pass is one
    without an answer, with status 429 or 5xx, or with a broken page; a ``Retry-After`` header
    counts where it asks for a longer wait, up to a minute.
    """

    base_url: str
    cache_dir: Path
    timeout: float
    retries: int
    wait: float
    refresh: bool

    def __post_init__(self) -> None:
        check_positive("timeout", self.timeout)
        check_count("retries", self.retries, minimum=0)
        wanted = "a finite number of at least 0"
        check_number("wait", self.wait, wanted, lambda v: 0 <= v < math.inf)
        try:
            parts = urlsplit(self.base_url)
            is_address = parts.scheme in ("http", "https") and parts.hostname
        except (ValueError, AttributeError):
            is_address = False
        if not is_address:
            raise InvalidArgumentError(
                f"base_url must be an address that starts with http:// or https://; got "
                f"{self.base_url!r}."
            )

    def countries(self) -> dict[str, str]:
        """Return code → name of every country; regions and income groups are left out."""
        return self._cached("countries.json", "country", {}, _read_country)

    def series(self, code: str, year: int) -> dict[str, float]:
        """Return country code → value of one series in one year; missing values are left out."""
        path, query = f"country/all/indicator/{code}", {"date": year}
        return self._cached(
            f"{code}-{year}.json", path, query, lambda entry: _read_value(entry, code, year)
        )

    def _cached(
        self,
        name: str,
        path: str,
        query: dict[str, Any],
        read: Callable[[dict[str, Any]], tuple[str, Any] | None],
    ) -> dict[str, Any]:
        url = f"{self.base_url.rstrip('/')}/{path}"
        file = self.cache_dir / name
        stored = None if self.refresh else _read_cache(file, url)
        if stored is not None:
            return stored
        pairs = []
        page, pages = 0, None
        while pages is None or page < pages:
            page += 1
            paging = {"format": "json", "per_page": _PER_PAGE, "page": page}
            told, entries = self._page(f"{url}?{urlencode(query | paging)}", page)
            # Without this, a server that announces one more page each time is read without end.
            if pages not in (None, told):
                raise DownloadError(
                    f"{url} changed while it was read: {pages} pages at first, then {told}. "
                    "Try again."
                )
            pages = told
            pairs += [read(entry) for entry in entries]
        found = dict(pair for pair in pairs if pair is not None)
        if found:
            _write_cache(file, url, found)
        return found

    def _page(self, url: str, page: int) -> tuple[int, list[dict[str, Any]]]:
        pause = self.wait
        for attempt in range(self.retries + 1):
            advised = 0.0
            try:
                request = Request(url, headers={"User-Agent": f"scikit-coral/{__version__}"})
                with urlopen(request, timeout=self.timeout) as response:
                    return _parse_page(response.read(), page)
            except HTTPError as error:
                with error:
                    if error.code != 429 and error.code < 500:
                        raise DownloadError(
                            f"{url} was refused with status {error.code} ({error.reason})."
                        ) from error
                    problem = f"status {error.code} ({error.reason})"
                    advised = _seconds(error.headers.get("Retry-After"))
            except _MalformedPageError as error:
                problem = str(error)
            except (URLError, TimeoutError, HTTPException, ConnectionError, UnicodeError) as error:
                reason = getattr(error, "reason", error)
                problem = str(reason) or type(reason).__name__
                if isinstance(reason, TimeoutError):
                    problem = f"no answer within {self.timeout:g} s"
            if attempt < self.retries:
                time.sleep(min(max(pause, advised), _LONGEST_WAIT))
                pause *= 2
        raise DownloadError(
            f"could not read {url}: {problem}, after {self.retries + 1} attempts. Without network, "
            "wdi_correlation() has the matrix of 2019 and load_wdi(path) reads a table from a file."
        )


def _parse_page(body: bytes, page: int) -> tuple[int, list[dict[str, Any]]]:
    """How many pages there are, and the entries of this one."""
    try:
        # The API has been seen to start its answers with a byte-order mark.
        head, *rest = json.loads(body.decode("utf-8-sig"))
        if head.get("total") == 0:
            return 0, []
        if "message" not in head:
            pages, number = int(head["pages"]), int(head["page"])
            entries = [dict(entry) for entry in rest[0]]
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as e:
        told = f"page {page} is not a list of paging details and entries ({e})"
        raise _MalformedPageError(told) from e
    if "message" in head:
        raise DownloadError(f"the server refused the request: {_told(head['message'])}")
    if number != page or not entries:
        raise _MalformedPageError(f"page {page} came back as page {number} or without entries")
    return pages, entries


def _told(message: Any) -> str:
    """The API's own words: a list of objects with a key and a value."""
    if not isinstance(message, list) or not all(isinstance(part, dict) for part in message):
        return str(message)
    return "; ".join(f"{part.get('key', '')}: {part.get('value', part)}" for part in message)


def _read_country(entry: dict[str, Any]) -> tuple[str, str] | None:
    try:
        if entry["region"]["value"].strip() == "Aggregates":
            return None
        return str(entry["id"]), str(entry["name"]).strip()
    except (KeyError, TypeError, AttributeError) as error:
        raise DownloadError(f"an entry of the country list cannot be read: {entry!r}") from error


def _read_value(entry: dict[str, Any], code: str, year: int) -> tuple[str, float] | None:
    try:
        if entry["indicator"]["id"] != code or str(entry["date"]) != str(year):
            raise DownloadError(
                f"asked for {code} in {year}; got {entry['indicator']['id']} in {entry['date']}."
            )
        if entry["value"] is None or not entry["countryiso3code"]:
            return None
        value = float(entry["value"])
        if not math.isfinite(value):
            raise ValueError(value)
        return str(entry["countryiso3code"]), value
    except (KeyError, TypeError, ValueError) as error:
        raise DownloadError(f"an entry of series {code} cannot be read: {entry!r}") from error


def _read_cache(file: Path, url: str) -> dict[str, Any] | None:
    """Return what the cache has for this address; None where it has nothing readable."""
    try:
        stored = json.loads(file.read_text("utf-8"))
        return dict(stored["entries"]) if stored["url"] == url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_cache(file: Path, url: str, entries: dict[str, Any]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            stream.write(json.dumps({"url": url, "entries": entries}).encode())
    except OSError as error:
        raise DownloadError(
            f"the answers cannot be kept in {file.parent} ({error.strerror}); name another "
            "folder as cache_dir."
        ) from error


def _seconds(header: str | None) -> float:
    """Read a Retry-After header in seconds; a date there counts as no advice."""
    try:
        return max(0.0, float(header)) if header else 0.0
    except ValueError:
        return 0.0
