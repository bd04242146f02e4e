"""The file itself: complete, small, and nothing in it comes alive that came from the data."""

import re
from html.parser import HTMLParser

from lookhops.report.build import report_on
from lookhops.report.page import Note, Report, Section, embedded, render, whole_words

MOST_BYTES = 6_000_000


class Outside(HTMLParser):
    """Collects what a page asks others for, its scripts, and its identifiers."""

    def __init__(self):
        super().__init__()
        self.addresses, self.scripts, self.names, self.inside, self.styles = [], 0, [], "", []

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.scripts += tag == "script"
        for key, value in attributes:
            if key in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
                self.addresses.append(value)
            if key == "id":
                self.names.append(value)
            assert not key.startswith("on"), "scripts stand in script elements"

    def handle_data(self, data):
        if self.inside == "style":
            self.styles.append(data)


def parsed(text):
    page = Outside()
    page.feed(text)
    return page


def test_nothing_is_asked_of_the_network(page):
    found = parsed(page.read_text(encoding="utf-8"))
    assert {address for address in found.addresses if not address.startswith("#")} == {"data:,"}
    assert not re.search(r"url\(|@import", "".join(found.styles))
    assert len(set(found.names)) == len(found.names)
    links = [address[1:] for address in found.addresses if address.startswith("#")]
    assert set(links) <= set(found.names)


def test_the_page_is_small(page):
    assert page.stat().st_size < MOST_BYTES


def test_names_are_text(page):
    text = page.read_text(encoding="utf-8")
    assert parsed(text).scripts == 3  # the figures, Plotly, and our own
    assert "<script>window.evil" not in text
    assert "&lt;script&gt;window.evil = 1&lt;/script&gt;" in text
    assert "mole &amp; &lt;cules&gt;" in text
    assert "lookhops train &#39;&lt;mine&gt;.csv&#39;" in text


def test_json_in_a_script_cannot_end_it():
    text = embedded({"a": "</script><!-- \u2028"})
    assert "<" not in text
    assert "\u2028" not in text


def test_a_page_without_charts_does_without_plotly():
    text = render(Report("a", "b", [], [Section("x", "X", "", [Note("nothing")])]))
    assert len(text) < 40_000


def test_the_same_report_is_the_same_page(model_folder, page):
    assert render(report_on(model_folder)) == render(report_on(model_folder))
    text = page.read_text(encoding="utf-8")
    assert '<html lang="en">' in text
    assert 'name="viewport"' in text


def test_long_words_are_whole_or_end_in_dots_with_a_tooltip():
    name, model = "w" * 30, "recommended/conv=gin/hidden=256"
    said = str(whole_words(f"A <b> & {name}, {model}; the rest of a sentence is not one word."))
    assert f'<span class="long" title="{name},">{name},</span>' in said
    assert "recommended/<wbr>conv=gin/<wbr>hidden=256;" in said
    assert said.startswith("A &lt;b&gt; &amp; ")
    assert said.endswith(" the rest of a sentence is not one word.")
