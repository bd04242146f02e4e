"""Which columns are learnt, and as what."""

import pytest

from lookhops import Graphs, LookHopsError, Target, load
from lookhops.core.reading import AS_USUAL, Reading
from lookhops.graphs.targets import PLAINLY
from lookhops.sources.targets import parse_task, target_sentences
from molecule_sets import message, written

TABLE = "smiles,logS,active,class,site\n" + "".join(
    f"C{'C' * i},{i / 7:.2f},{i % 2 if i % 5 else ''},{'abc'[i % 3]},s{i % 4}\n" for i in range(30)
)


@pytest.fixture
def table(tmp_path):
    return written(tmp_path, "set.csv", TABLE)


def test_a_column_is_named_and_the_usual_one_is_kept_aside(table):
    graphs = load(table, target="logs")
    assert graphs.targets == (Target("logS"),)
    assert graphs.columns["class"].tolist()[:3] == ["a", "b", "c"]
    assert "logS" not in graphs.columns
    assert load(table).targets == (Target("class", ("a", "b", "c")),)
    assert load(table, target="class").y.tolist() == load(table).y.tolist()


def test_several_columns_with_blanks(table, tmp_path):
    graphs = load(table, target="logS, active,class", task="active=numbers")
    assert graphs.targets == (Target("logS"), Target("active"), Target("class", ("a", "b", "c")))
    assert int(graphs.y.isnan().sum()) == 6
    classes = load(table, target="active")
    assert (classes.class_names, int((classes.y < 0).sum())) == (("0", "1"), 6)
    graphs.save(tmp_path / "set.graphs")  # any source has targets to choose from
    again = load(tmp_path / "set.graphs", target="site", task="classes")
    assert again.targets == (Target("site", ("s0", "s1", "s2", "s3")),)
    assert again.columns["active"].tolist()[1] == 1
    assert load("solubility", target="value").targets == (Target("value"),)


def test_the_kind_of_what_the_source_has_can_be_said(table):
    assert load(table, target="active", task="numbers").targets == (Target("active"),)
    said = message(load, table, task="numbers")
    assert said.startswith(f"{table}, line 2: 'a' of 'class' is not a finite number")
    assert "30 different values" in message(load, table, target="logS", task="classes")
    assert message(load, table, target="pH").startswith("set: no column is called 'pH'; the")
    assert "no target" in message(load, table, target="logS", task="active=numbers")
    assert parse_task("logS=numbers,classes") == {"": "classes", "logS": "numbers"}
    with pytest.raises(LookHopsError, match="--task"):
        parse_task("poetry")


def test_a_few_texts_among_many_numbers_are_named(tmp_path):
    """One decimal: as classes there would be few enough of them."""
    cells = [f"{4 + i % 50 / 10:.1f}" for i in range(120)]
    cells[20], cells[40], cells[41], cells[60], cells[80] = ">9.0", "#N/A", "ND", "-", "?"
    for name in ("pIC50", "y"):
        rows = "".join(f"C,{cell}\n" for cell in cells)
        path = written(tmp_path, "set.csv", f"smiles,{name}\n{rows}")
        assert message(load, path, target=name) == (
            f"{name!r}: 116 of 119 values look like numbers, but cannot all be read: 'ND' ({path}, "
            f"line 43), '-' ({path}, line 62), '?' ({path}, line 82) and 1 more; mend them "
            f"({PLAINLY}), leave them blank, or learn all as classes (--task classes)."
        )
        said = message(load, path, target=name, task="numbers")
        assert said.startswith(f"{path}, line 22: '>9.0' of {name!r} is not a finite number")
        assert len(load(path, target=name, task="classes").class_names) == 54
    assert load(path, need_targets=False).y is None
    assert load(path, need_targets=False).columns["y"][20] == ">9.0"
    assert len(load(path, task="classes").class_names) == 54
    many = "".join(f"C,{i / 7}\n" for i in range(60))
    path = written(tmp_path, "many.csv", f"smiles,y\n{many}C,ND\n")
    assert message(load, path).endswith("line 62); mend them, or leave them blank.")  # no classes
    few = written(tmp_path, "few.csv", "smiles,y\n" + "C,1\nC,2\nC,3\nC,unknown\n" * 9)
    assert load(few).class_names == ("1", "2", "3", "unknown")


@pytest.mark.parametrize("mark", [";", "\t"])
def test_decimal_commas_are_points_where_they_separate_no_fields(tmp_path, mark):
    rows = "".join(f"C{mark}4,{i % 50:02d}{mark}a,b\n" for i in range(120))
    path = written(tmp_path, "set.csv", f"smiles{mark}pIC50{mark}note\n{rows}C{mark}#NV{mark}")
    said = message(load, path, target="pIC50")
    assert "120 of 121 values look like numbers, but cannot all be read: '#NV' (" in said
    path = written(tmp_path, "set.csv", f"smiles{mark}pIC50{mark}note\n{rows}C{mark}{mark}")
    with pytest.warns(UserWarning, match=r"set\.csv.*pIC50"):
        graphs = load(path, target="pIC50")
    assert graphs.targets == (Target("pIC50"),)
    assert graphs.y[1].item() == 4.01
    assert graphs.columns["note"][0] == "a,b"


def test_numbers_that_are_not_written_plainly_are_named(tmp_path):
    rows = "".join(f'C,"{i % 50},4"\n' for i in range(120))
    path = written(tmp_path, "set.csv", f"smiles,y\n{rows}")
    said = message(load, path)
    assert "120 of 120 values look like numbers, but cannot all be read: '0,4' (" in said
    assert "8.4 for 8,4" in said
    assert message(load, written(tmp_path, "s.csv", f"smiles,y\n{rows.replace(',4', '%')}"))
    few = written(tmp_path, "few.csv", "smiles,y\n" + "C,10%\nC,50%\n" * 9)
    assert load(few).class_names == ("10%", "50%")


def test_a_column_that_is_not_learnt_may_hold_anything(table, tmp_path):
    text = TABLE.replace(",class,", ",y,").replace(",a,", ",alpha beta,")
    names = "".join(f"C,{i / 7:.2f},name {i}\n" for i in range(30))
    path = written(tmp_path, "named.csv", f"smiles,logS,y\n{names}")
    assert "30 different values" in message(load, path)
    assert load(path, target="logS").columns["y"][3] == "name 3"
    assert load(written(tmp_path, "set2.csv", text)).class_names == ("alpha beta", "b", "c")


def test_a_remembered_target_need_not_be_there(table, tmp_path):
    asked = AS_USUAL.with_defaults_of(Reading(target="logS,active", task="active=numbers"))
    assert len(load(table, asked).targets) == 2
    without = written(tmp_path, "new.csv", "smiles,class\nC,a\nN,b\n")
    assert load(without, asked).targets[0].name == "class"


def test_what_was_taken_for_what_is_said(table, tasks):
    said = target_sentences(load(table, target="logS,active,class"))
    assert said == [
        "logS: learnt as numbers, a regression (0 to 4.14); say otherwise with --task classes",
        "active: learnt as classes (0, 1); say otherwise with --task numbers; "
        "6 graphs without it left out",
        "class: learnt as classes (a, b, c)",
    ]
    assert target_sentences(load(table, target="active"))[0].endswith(
        "6 graphs without it left out"
    )
    assert target_sentences(Graphs.from_pyg(tasks[:2].to_pyg(), y=None)) == []


def test_the_command_says_it(table, lookhops, tmp_path):
    code, _, err = lookhops("data", "convert", table, tmp_path / "a.graphs", "--target", "logS")
    assert (code, "logS: learnt as numbers" in err) == (0, True)
    code, _, err = lookhops("data", "convert", table, tmp_path / "a.graphs", "--task", "all")
    assert (code, "--task is one of" in err) == (2, True)


def test_what_cannot_be_learnt_of_tables_is_named_by_its_line(tmp_path):
    for name in ("class", "risk"):
        cells = [f"{i / 7:.2f}" for i in range(30)]
        cells[4] = "n. d."
        rows = "".join(f"g{i},{cell}\n" for i, cell in enumerate(cells))
        (tmp_path / "edges.csv").write_text(
            "graph,source,target\n" + "".join(f"g{i},1,2\n" for i in range(30))
        )
        (tmp_path / "graphs.csv").write_text(f"graph,{name}\n{rows}")
        said = f"29 of 30 values are numbers, but not 'n. d.' ({tmp_path / 'graphs.csv'}, line 6);"
        assert said in message(load, tmp_path, target=name)
        assert load(tmp_path, need_targets=False).columns[name][4] == "n. d."
