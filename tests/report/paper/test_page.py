"""Tables, claims, figures and the page, from results made up so that the answers are known."""

import csv
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from lookhops.core.paired import corrected_t
from lookhops.core.pictures import save_both
from lookhops.core.tables import to_csv
from lookhops.core.words import NONE, plus_minus, signed
from lookhops.report.paper.claims import CLAIMS, NOT_REPRODUCED, REPRODUCED, judge
from lookhops.report.paper.page import accuracy_by_k_figure, gain_figure, rank_figure, write_page
from lookhops.report.paper.side_by_side import accuracy_table, data_table, make_tables, own_table
from lookhops.runs.paper import DATASETS, FIGURES, ROWS, TABLES
from lookhops.runs.plan import RunKey
from lookhops.runs.record import Machine
from lookhops.runs.results import CellResult, Results
from lookhops.training import PAPER_SEEDS, Protocol

BETTER = {claim.title: claim for claim in CLAIMS}


@pytest.fixture
def make_results(make_record):
    """Results with a mean accuracy for each row; seeds and splits move all rows together."""

    def make(means, spread=0.2, datasets=DATASETS, quick=False, seeds=PAPER_SEEDS):
        generator = np.random.default_rng(0)
        cells = []
        for dataset in datasets:
            split_effect = generator.normal(0, 3, len(seeds))
            for slug, mean in means.items():
                own = mean + split_effect + generator.normal(0, spread, len(seeds))
                records = [
                    make_record(s, a / 100, parameters=252_738 if slug == "cheb" else 114_754)
                    for s, a in zip(seeds, own, strict=True)
                ]
                row = ROWS[slug]
                key = RunKey(
                    dataset,
                    row.architecture(dataset),
                    Protocol(precision="tf32", members=row.members),
                )
                cells.append(CellResult(dataset, row.label, key, tuple(records)))
        fit = {"a": 40.0, "b": 1.2, "r2": 0.99, "mse": 0.001}
        gain = {"k": [2, 3, 4], "gain": [3.0, 1.0, 0.3], "fit": fit, "suggested_k": 3}
        size = {"graphs": 1113, "nodes": 43471, "edges": 81044, "features": 4, "classes": 2}
        notes = {name: {"data": size, "gain": gain} for name in datasets}
        return Results(cells, notes, quick)

    return make


def every_row(**means):
    return {slug: means.get(slug.replace("-", "_"), 75.0) for slug in ROWS if "k2" not in slug}


def words(results):
    return {claim.title: judge(claim, results).word for claim in CLAIMS}


def test_clear_differences_are_decided(make_results):
    means = every_row(
        **{"gcn": 70, "gat": 70, "mixhop": 73, "limixhop": 76, "cheb": 76, "licheb": 76},
        **{"licheb_k1": 70, "lookhops_nf_pe": 74.5, "lookhops_nf": 73, "lookhops_nonf": 71},
        **{"topk": 70, "sag": 70, "edge": 70, "asap": 70},
        **{"licheb_k3": 76, "licheb_k4": 76, "licheb_k5": 76},
    )
    means["recommended"] = means["licheb"]
    assert set(words(make_results(means)).values()) == {REPRODUCED}


def test_the_opposite_is_not_reproduced(make_results):
    means = every_row(
        **{"gcn": 78, "gat": 78, "mixhop": 77, "limixhop": 73, "cheb": 77, "licheb": 73},
        **{"licheb_k1": 78, "lookhops_nf_pe": 74.5, "lookhops_nf": 76, "lookhops_nonf": 78},
        **{"topk": 70, "sag": 70, "edge": 79, "asap": 70},
    )
    means["recommended"] = means["licheb"]
    assert set(words(make_results(means)).values()) == {NOT_REPRODUCED}


def test_what_the_seeds_do_not_tell_is_not_decidable(make_results):
    found = words(make_results(every_row(), spread=6))
    assert found["LiMixHop beats MixHop"] == "not decidable with ten seeds"
    assert set(words(Results()).values()) == {"not run with two seeds or more"}


def test_a_verdict_says_on_how_much_it_rests(make_results):
    results = make_results(every_row(limixhop=90.0))
    whole = judge(BETTER["LiMixHop beats MixHop"], results)
    assert whole.word == REPRODUCED
    some = Results([c for c in results.cells if c.dataset == results.datasets[0]])
    part = judge(BETTER["LiMixHop beats MixHop"], some)
    assert part.said == f"{part.word} (on 1 of 6 data sets)"
    asap = ROWS["asap"].label
    less = Results([c for c in results.cells if c.model != asap])
    verdict = judge(BETTER["LookHops pooling beats the other poolings"], less)
    assert verdict.word == "not decided: 1 of 4 comparisons were not run"


def test_the_numbers_of_a_claim(make_results):
    results = make_results(every_row(limixhop=76.0))
    verdict = judge(BETTER["LiMixHop beats MixHop"], results)
    (answer,) = verdict.answers
    assert set(answer.by_dataset) == set(DATASETS)
    one, two = (
        results.find("DD", ROWS[slug].architecture("DD")).scores()
        for slug in ("limixhop", "mixhop")
    )
    expected = corrected_t([one[s] - two[s] for s in PAPER_SEEDS], 4 / 32)
    assert answer.by_dataset["DD"].mean == pytest.approx(expected.mean)
    assert answer.by_dataset["DD"].low == pytest.approx(expected.low)
    assert answer.overall.mean == pytest.approx(
        np.mean([estimate.mean for estimate in answer.by_dataset.values()])
    )


def test_every_cell_stands_beside_the_papers(make_results):
    results = make_results(every_row(gcn=74.0))
    table = accuracy_table(results, "conv")
    assert [row[0][0] for row in table.rows] == [
        "GCN",
        "GAT",
        "MixHop",
        "LiMixHop",
        "ChebConv",
        "LiCheb",
    ]
    records = {
        (r["row"], r["dataset"]): r for r in csv.DictReader(io.StringIO(to_csv(table.records)))
    }
    gcn = records["gcn", "PROTEINS"]
    ours = results.find("PROTEINS", ROWS["gcn"].model).mean_std()
    assert float(gcn["mean"]) == pytest.approx(ours[0])
    assert float(gcn["difference"]) == pytest.approx(ours[0] - 74.8)
    assert gcn["within_one_std"] == str(abs(ours[0] - 74.8) <= 2.5)
    assert records["gcn", "BURSI"]["paper_mean"] == ""
    cell = table.rows[0][1]
    assert cell[0] == f"**{ours[0]:.1f} ± {ours[1]:.1f}**"
    assert cell[1] == "74.8 ± 2.5"
    assert table.head[-3] == "FRANKENSTEIN (paper)"
    assert table.rows[0][-3][1] == "63.8 ± 2.5"
    assert table.rows[0][-2] == ["**114.8k**", "112.2k"]
    assert table.rows[0][-1] == ["**25 s**", "58.5 s"]  # 50 times half a second
    assert "PROTEINS" in table.latex()
    assert r"74.8 $\pm$ 2.5" in table.latex()


def test_missing_cells_are_dashes(make_results):
    results = make_results({"gcn": 70.0}, datasets=["NCI1"])
    for table in make_tables(results, TABLES):
        assert table.markdown()
        assert table.latex()
    gat = accuracy_table(results, "conv").rows[1]
    assert gat[1] == ["\N{EN DASH}", "76.4 ± 4.4"]
    asap = next(
        row
        for row in accuracy_table(make_results({"gcn": 70.0}), "pool").rows
        if row[0][0] == "ASAP"
    )
    assert asap[2] == ["\N{EN DASH}", "\N{EN DASH}"]  # neither we nor the paper have it on DD


def test_data_are_checked_against_the_paper(make_results):
    rows = data_table(make_results({})).rows
    assert rows[0][1] == ["**1,113**", "1,113 ✓"]
    assert rows[1][1] == ["**1,113**", "1,178 ✗"]
    assert rows[-1][1] == ["**1,113**"]  # BURSI is not in the paper


def test_the_page(make_results, tmp_path):
    paths = write_page(make_results(every_row()), tmp_path, TABLES, FIGURES)
    assert all(path.stat().st_size for path in paths)
    names = {path.name for path in paths}
    assert {"paper.md", "conv.tex", "pool.csv", "gain.svg", "gain.png"} <= names
    assert {"accuracy-by-k.svg", "accuracy-by-k.png", "ours.md"} <= names
    text = (tmp_path / "paper.md").read_text()
    for claim in CLAIMS:
        assert f"### {claim.title}: " in text
    for target in re.findall(r"\]\((.*?)\)", text):
        assert (tmp_path / target).is_file()
    assert "--tables pool --figures none --rows asap --datasets DD --precision tf32" in text
    assert "--figures accuracy-by-k --rows licheb-k5 --datasets BURSI" in text
    assert "780 pixel attributes" in text
    assert "computed and then thrown away" in text
    assert "114,754 against 252,738" in text
    assert "quick" not in text


def test_our_own_rows_stand_beside_the_papers_best(make_results):
    means = every_row(recommended=80.0, recommended_members=82.0, wl_oa=79.0)
    results = make_results(means, datasets=["NCI1", "DD"])
    table = own_table(results)
    rows = {row[0][0]: row for row in table.rows}
    assert rows["the paper's best"][1:4] == [["77.3", "ChebConv"], ["78.6", "LiCheb"], ["77.9"]]
    cells = [ROWS["recommended"].cell(results, name) for name in ("DD", "NCI1")]
    assert rows["LookHops recommended"][1] == [f"**{plus_minus(cells[0].mean_std(), 10)}**"]
    assert rows["LookHops recommended"][-1] == rows["the same, 5 members"][-1] == [NONE]
    other = [ROWS["wl-oa"].cell(results, name) for name in ("DD", "NCI1")]
    ahead = np.mean([a.mean_std()[0] - b.mean_std()[0] for a, b in zip(cells, other, strict=True)])
    assert rows["wl-oa"][-1][0] == signed(ahead)
    assert rows["wl-oa"][-1][1].startswith("p = ")
    assert {"licheb", "cheb", "gcn", "wl", "baseline"} <= {r["row"] for r in table.records}


def test_what_ran_elsewhere_is_named(make_results, tmp_path):
    results = make_results(every_row(), datasets=["NCI1", "DD"])
    cells = []
    for cell in results.cells:
        machine = Machine("Linux", 16, "cpu" if cell.model == "EdgePool" else "A GPU")
        cells.append(replace(cell, runs=tuple(replace(r, machine=machine) for r in cell.runs)))
    write_page(replace(results, cells=cells), tmp_path, TABLES, FIGURES)
    text = (tmp_path / "paper.md").read_text()
    assert re.search(r"- 20 runs on a CPU \(16 cores\), .*: EdgePool on NCI1, DD\n", text)
    assert re.search(r"runs on A GPU, with PyTorch \S+ and LookHops \S+\n", text)
    [row] = [line for line in text.splitlines() if line.startswith("| EdgePool<br>`edge`")]
    assert "<br>on a CPU (16 cores)<br>387.9 s" in row
    assert text.count("on a CPU") == 2


def test_the_quick_page_says_so_everywhere(make_results, tmp_path):
    results = make_results(every_row(), datasets=["NCI1"], quick=True, seeds=(11, 22))
    for path in write_page(results, tmp_path, TABLES, FIGURES):
        if path.suffix != ".png":
            assert "quick" in path.read_text().lower(), path


def test_an_empty_page_is_still_a_page(tmp_path):
    write_page(Results(), tmp_path, TABLES, FIGURES)
    assert "not run" in (tmp_path / "paper.md").read_text()


def test_figures_show_what_was_measured(make_results, tmp_path):
    results = make_results(every_row())
    assert len(gain_figure(results).axes) == 6
    figure = accuracy_by_k_figure(results)
    assert [ax.get_title() for ax in figure.axes] == list(DATASETS)
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5]
    cell = results.find("PROTEINS", ROWS["licheb"].model)
    assert line.get_ydata()[1] == pytest.approx(cell.mean_std()[0])
    assert gain_figure(Results()) is None
    assert accuracy_by_k_figure(Results()) is None
    ranks = {f"model {i}": 1.0 + i for i in range(5)}
    for path in save_both(rank_figure(ranks, [["model 0", "model 1"]]), tmp_path, "ranks"):
        assert path.stat().st_size
    text = "".join(ElementTree.parse(tmp_path / "ranks.svg").getroot().itertext())
    assert all(name in text for name in ranks)
    first = (tmp_path / "ranks.svg").read_bytes()
    save_both(rank_figure(ranks, [["model 0", "model 1"]]), tmp_path, "ranks")
    assert (tmp_path / "ranks.svg").read_bytes() == first


def test_a_row_that_was_never_alone_on_its_machine_has_no_time(make_results):
    results = make_results({"topk": 75.0, "diffpool": 75.0})
    untimed = []
    for cell in results.cells:
        if cell.model == ROWS["diffpool"].label:
            runs = [replace(r, metrics={**r.metrics, "seconds_per_epoch": None}) for r in cell.runs]
            cell = replace(cell, runs=tuple(runs))
        untimed.append(cell)
    table = accuracy_table(replace(results, cells=untimed), "pool")
    times = {row[0][0].split("<")[0]: row[-1][0] for row in table.rows}
    parameters = {row[0][0].split("<")[0]: row[-2][0] for row in table.rows}
    assert times[ROWS["topk"].label] != NONE
    assert times[ROWS["diffpool"].label] == NONE
    assert parameters[ROWS["diffpool"].label] == "**114.8k**"
