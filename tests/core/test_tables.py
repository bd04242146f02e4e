"""One table in several languages: the same cells, and nothing in them comes alive."""

import xml.etree.ElementTree as ET

from lookhops.core.tables import Table, without_bold

TABLE = Table(
    head=["model", "accuracy, %"],
    rows=[["<b>a & b</b>", ["**80.6 ± 1.8**", "paper: 79"]], ["gcn", "70.0"]],
    title="Test",
    best=1,
)


def test_html_has_the_cells_as_text():
    root = ET.fromstring(TABLE.html().replace("<br>", "<br/>"))
    assert [cell.text for cell in root.iter("th")] == [
        "model",
        "accuracy, %",
        "<b>a & b</b>",
        "gcn",
    ]
    assert ["".join(cell.itertext()) for cell in root.iter("td")] == [
        "80.6 ± 1.8paper: 79",
        "70.0",
    ]
    assert [row.get("class") for row in root.iter("tr")] == [None, None, "best"]


def test_lines_of_a_cell_stand_below_each_other():
    assert "| **80.6 ± 1.8**<br>paper: 79 |" in TABLE.markdown()
    latex = TABLE.latex().splitlines()
    assert r"<b>a \& b</b> & \textbf{80.6 $\pm$ 1.8} \\" in latex
    assert r" & paper: 79 \\" in latex
    assert r"gcn & 70.0 \\" in latex


def test_only_the_marks_of_bold_text_are_taken_off():
    asked = ["**80.6**", "*CC*", "**", "****", "*", "**CC*"]
    assert [without_bold(line) for line in asked] == ["80.6", "*CC*", "**", "****", "*", "**CC*"]
    assert "<td>*CC*</td>" in Table(["a", "b"], [["x", "*CC*"]]).html()
