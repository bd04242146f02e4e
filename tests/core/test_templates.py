"""Text from templates."""

import pytest
from jinja2 import UndefinedError

from lookhops.core.charts import templates_of


def test_a_name_that_is_not_given_is_an_error():
    template = templates_of("lookhops.report").from_string("{{ title }}, {{ forgotten }}")
    with pytest.raises(UndefinedError, match="forgotten"):
        template.render(title="a page")


def test_options_are_jinjas():
    text = "{{ name }}"
    plain, escaped = (
        templates_of("lookhops.explain.drawing", autoescape=own) for own in (False, True)
    )
    assert plain.from_string(text).render(name="a < b") == "a < b"
    assert escaped.from_string(text).render(name="a < b") == "a &lt; b"
