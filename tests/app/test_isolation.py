"""Uploads stay with their visitor; failures give messages; names are shown literally."""

import re
import socket

import pytest

from skcoral.app import SERVER_OPTIONS, charts
from skcoral.app.page import plain


def test_failures_after_the_first_run_are_reported(open_app, metric):
    at = open_app(source="simulated", size="31", floor="0.97")
    at.radio[0].set_value("support").run()
    assert not at.exception
    assert "up to 30 variables" in at.error[0].value
    at.radio[0].set_value("floor").run()
    assert not at.error
    assert metric(at, "Residual") > 0


def test_uploads_are_limited_where_they_come_in(open_app):
    at = open_app(source="upload")
    assert at.file_uploader(key="file").proto.max_upload_size_mb == 25
    assert "--server.maxUploadSize=25" in SERVER_OPTIONS
    assert "--browser.gatherUsageStats=false" in SERVER_OPTIONS
    assert "--client.showErrorDetails=none" in SERVER_OPTIONS


def test_an_address_that_is_taken_is_reported(capsys):
    from skcoral import cli

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.main(["app", "--no-browser", "--port", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err
    assert cli.main(["app", "--no-browser", "--host", "256.0.0.1"]) == 2
    assert "--host" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "**a**",
        "[a](b)",
        "![a](http://b)",
        "<b>",
        "$x$",
        ":red[a]",
        ":material/home:",
        "`a`",
        "a_b_",
    ],
)
def test_markdown_in_names_means_nothing(name):
    text = plain(name)
    # Whatever could begin markup stands after a backslash.
    assert re.search(r"(?<!\\)[*\[\]<>$`_:!(]", text) is None
    assert text.replace("\\", "").replace("\N{WORD JOINER}", "") == name


def test_addresses_do_not_become_links():
    assert "://" not in plain("http://e.vil").replace("\\", "")
    assert "www." not in plain("www.e.vil").replace("\\", "")


def test_labels_of_pictures_show_markup_as_text():
    assert charts.label("<a href='x'>b</a>", 40) == "&lt;a href='x'&gt;b&lt;/a&gt;"
    assert charts.label("a & b") == "a &amp; b"
    assert charts.label("a\u202eb") == "a\N{REPLACEMENT CHARACTER}b"
    assert len(charts.label("x" * 100)) == 18
    assert len(plain("x" * 1000, 300)) == 300
