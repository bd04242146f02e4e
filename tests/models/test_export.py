"""Models as files that run without LookHops."""

import json
import runpy
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.export import Dim

from lookhops import Graphs, LookHopsError, Predictor, load
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import counts_of, insertion, last_begin, run_begins, spread
from lookhops.models import export, train_into
from lookhops.models.export import compare, export_model, load_exported, rests_on_rounding
from lookhops.models.exported import ExportedModel, Inputs, made_up
from lookhops.nn import Architecture, LiChebConv, LookHopsPooling
from lookhops.ops.ranking import nearness
from lookhops.sources.bundled import write_transfers
from lookhops.training import Protocol

PROTOCOL = Protocol(seeds=(11,), max_epochs=1, batch_size=64)
SMALL = Architecture(hidden=4, layers=2, k=1)
EXAMPLE = Path(__file__).parents[2] / "examples" / "predict_onnx.py"


@pytest.fixture
def exporting(monkeypatch):
    """The lines for other runtimes, run by PyTorch."""
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)


def test_a_light_layer_is_exported_with_any_number_of_nodes_and_edges():
    layer = LiChebConv(3, 5, k=2)
    x, edge_index = torch.randn(9, 3), torch.randint(9, (2, 20))
    shapes = ({0: Dim("n")}, {1: Dim("e")})
    module = torch.export.export(layer, (x, edge_index), dynamic_shapes=shapes).module()
    for nodes, edges in ((30, 100), (2, 2), (5000, 9000)):
        x, edge_index = torch.randn(nodes, 3), torch.randint(nodes, (2, edges))
        torch.testing.assert_close(module(x, edge_index), layer(x, edge_index))


def tiny(tmp_path, graphs, architecture, protocol=PROTOCOL):
    train_into(tmp_path / "model", graphs, architecture, protocol, device="cpu")
    return Predictor(tmp_path / "model", "cpu")


def with_numbers() -> Graphs:
    """Graphs with labels, blank numbers, heavy tails, weights and kinds of edges."""
    graphs, draw = load("hops-1", size=60), np.random.default_rng(0)
    numbers = draw.standard_t(1, (graphs.num_nodes, 2)) * [1, 30]
    numbers[::7, 0] = np.nan
    ends = graphs.edge_index.sum(0)  # the same in both directions
    return replace(
        graphs,
        nodes=replace(
            graphs.nodes, numbers=torch.from_numpy(numbers).float(), number_names=("size", "age")
        ),
        edges=Features(
            numbers=torch.stack(((ends % 5).float(), (ends % 3).float()), 1),
            number_names=("weight", "length"),
            labels=(ends % 2)[:, None].byte(),
            label_names=("kind",),
            label_values=(("a", "b"),),
        ),
    )


@pytest.mark.parametrize(
    ("architecture", "protocol"),
    [
        (replace(SMALL, pool="lookhops", edge_ratio=0.6, ratio=0.6), PROTOCOL),
        (replace(SMALL, conv="limixhop", pool="topk", edges="use", scale="quantiles"), PROTOCOL),
        (replace(SMALL, conv="gat", pool="sag"), PROTOCOL),
        (
            replace(SMALL, pool="lookhops", fingerprint=2, totals=True, edges="use", bins=3),
            replace(PROTOCOL, seeds=(11, 22), members=2),
        ),
        (Architecture(conv="none", fingerprint=1), PROTOCOL),
    ],
)
def test_what_is_exported_answers_as_the_model(tmp_path, exporting, architecture, protocol):
    with pytest.MonkeyPatch.context() as training:
        for name in ("is_exporting", "is_compiling"):
            training.setattr(torch.compiler, name, lambda: False)
        predictor = tiny(tmp_path, with_numbers(), architecture, protocol)
        graphs = predictor.read(made_up(predictor, 50))
        model = ExportedModel(predictor).eval()
        own = predictor.predict(graphs).probabilities
    given = {name: torch.from_numpy(own) for name, own in model.inputs.arrays(graphs).items()}
    with torch.no_grad():
        found = model(**given)
    np.testing.assert_allclose(found.numpy(), own, atol=2e-5)


def test_a_program_for_any_number_of_graphs(lookhops, tmp_path):
    predictor = tiny(tmp_path, load("hops-1", size=40), replace(SMALL, layers=1, pool="topk"))
    file = tmp_path / "model.pt2"
    code, out, err = lookhops("export", tmp_path / "model", "-o", file)
    assert code == 0, err
    assert "inputs graph_sizes, edge_index, node_labels" in out
    assert "largest difference from our own answers in 1,000 graphs (made-up graphs): " in out
    extra = {"lookhops.json": ""}
    torch.export.load(file, extra_files=extra)
    about = json.loads(extra["lookhops.json"])
    assert about["answers"][0]["classes"] == ["different", "same"]
    run, graphs = load_exported(file), predictor.read(load("hops-1", size=7))
    for count in (1, 7):
        assert compare(predictor, run, graphs[:count]).largest < 1e-6


def test_onnx_and_the_example_that_needs_nothing_else(tmp_path, monkeypatch, capsys):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason='needs ONNX: pip install "lookhops[export]"')
    graphs = load("transfers")[:40]
    network = replace(SMALL, layers=2, pool="lookhops", fingerprint=1, edges="use")
    predictor = tiny(tmp_path, graphs, network)
    file = tmp_path / "model.onnx"
    graphs = predictor.read(graphs)
    export_model(predictor, file, graphs[:5])
    found = compare(predictor, load_exported(file), graphs)
    assert found.graphs == 40
    assert found.is_small
    assert found.decided_by_rounding <= 1
    write_transfers(tmp_path / "transfers", cases=40)
    monkeypatch.setattr(sys, "argv", ["predict_onnx.py", str(file), str(tmp_path / "transfers")])
    runpy.run_path(str(EXAMPLE))
    lines = capsys.readouterr().out.splitlines()
    answers = predictor.predict(graphs)
    said = [line.split() for line in lines]
    assert [name for name, *_ in said] == answers.ids
    p = [float(number) for *_, number in said]
    assert np.sort(np.abs(p - answers.probabilities.max(1)))[:-1].max() < 1e-3


def write_flows(folder: Path, rows: str) -> None:
    """Tables of small graphs with kinds of nodes, amounts on edges, and columns, some blank."""
    folder.mkdir()
    edges, nodes = ["graph,source,target,amount"], ["graph,node,kind"]
    graphs = ["graph,label,depth,site"]
    for graph in range(24):
        edges += [f"g{graph},{row},{(graph + i) % 5 + 0.5}" for i, row in enumerate(rows.split())]
        nodes += [
            f"g{graph},{node},{kind}" for node, kind in zip("abc", ("x", "y", ""), strict=True)
        ]
        depth, site = (graph / 7 if graph % 3 else ""), ("", "north", "south")[graph % 5 % 3]
        graphs.append(f"g{graph},{('odd', 'even')[graph % 2]},{depth},{site}")
    for name, lines in (("edges", edges), ("nodes", nodes), ("graphs", graphs)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("directed", [False, True])
def test_the_example_puts_edges_in_as_predict_does(lookhops, tmp_path, monkeypatch, directed):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason='needs ONNX: pip install "lookhops[export]"')
    tables = {"one way": "a,b b,c b,b", "both ways": "a,b b,a b,c c,b b,b", "apart": "a,b"}
    for name, rows in tables.items():
        write_flows(tmp_path / name, rows)
    options = "--epochs 1 --hidden 4 --layers 2 --k 1 --conv gcn --pool none --edges use --seeds 1,"
    options += " --totals --features all --device cpu" + (" --directed" if directed else "")
    model, file = tmp_path / "model", tmp_path / "model.onnx"
    code, _, err = lookhops("train", tmp_path / "one way", "-o", model, *options.split())
    assert code == 0, err
    predictor = Predictor(model, "cpu")
    export_model(predictor, file, predictor.read(load(tmp_path / "one way"))[:5])
    for name in tables:
        code, out, err = lookhops("predict", model, tmp_path / name, "--json")
        assert code == 0, err
        expected = [max(row["probabilities"].values()) for row in json.loads(out)]
        monkeypatch.setattr(sys, "argv", ["predict_onnx.py", str(file), str(tmp_path / name)])
        with redirect_stdout(StringIO()) as said:
            runpy.run_path(str(EXAMPLE))
        found = [float(line.split()[-1]) for line in said.getvalue().splitlines()]
        assert found == pytest.approx(expected, abs=6e-4)


@pytest.fixture
def three_rings(tmp_path, monkeypatch):
    """A model, and rings of four nodes whose scores differ just so, clearly, and not at all."""
    like = load("hops-1", size=40)
    predictor = tiny(tmp_path, like, replace(SMALL, pool="lookhops", ratio=0.5))
    node = torch.arange(12)
    ends = torch.stack((node, node - node % 4 + (node + 1) % 4))
    rings = Graphs.from_edges(
        ends.flatten(),
        ends.flip(0).flatten(),
        torch.tensor([4, 4, 4]),
        nodes=replace(like.nodes, labels=node[:, None] % 2),
        featuriser=like.featuriser,
    )
    score = torch.full((3, 4), 0.5)
    score[:, 3] = 0.9
    # Equal or not by one rounding: the first node stays, or the third.
    score[0, 2] += nearness(torch.float32) * 0.9
    score[1, 2] = 0.6

    def scored(pool, x, adjacency, anchors):
        return score.flatten()[: len(x)], anchors

    monkeypatch.setattr(LookHopsPooling, "score_beside", scored)
    return predictor, predictor.read(rings)


def test_rounding_decides_where_scores_are_apart_by_just_what_counts_as_equal(three_rings):
    predictor, graphs = three_rings
    given = Inputs.of(predictor.encoding).arrays(graphs)
    found = rests_on_rounding(ExportedModel(predictor).eval(), given)
    assert found.tolist() == [True, False, False]


def test_only_such_graphs_may_differ_from_our_answers(three_rings):
    predictor, graphs = three_rings
    own = predictor.predict(graphs).probabilities

    def moved(*by):
        return compare(predictor, lambda _: own + np.array(by)[:, None], graphs)

    found = moved(0.01, 1e-7, 0)
    assert found.is_small
    assert f"{found}" == "1.0e-07; 1.0e-02 in 1 graph where rounding decides what pooling keeps"
    found = moved(0.01, 0.02, 0)
    assert not found.is_small
    assert found.largest == pytest.approx(0.02)


def test_index_arithmetic_is_the_same_for_other_runtimes(exporting):
    draw = torch.Generator().manual_seed(0)
    keys = torch.randint(5, (40,), generator=draw).sort().values
    begins = run_begins(keys)
    assert begins.tolist() == [i == 0 or keys[i] != keys[i - 1] for i in range(40)]
    place = torch.where(begins, torch.arange(40), 0)
    assert torch.equal(last_begin(begins), place.cummax(0).values)
    assert torch.equal(counts_of(keys, 9), keys.bincount(minlength=9))
    values = torch.randint(-3, 9, (30,), generator=draw)
    for size in (0, 1, 2, 3, 40):
        assert torch.equal(insertion(keys[:size], values), torch.searchsorted(keys[:size], values))
    ptr = torch.tensor([0, 0, 3, 3, 7, 7])
    assert spread(torch.arange(5), ptr, 7).tolist() == [1, 1, 1, 3, 3, 3, 3]


def test_what_cannot_be_exported_is_a_sentence(lookhops, tmp_path):
    tiny(tmp_path, load("hops-1", size=40), replace(SMALL, pool="asap"))
    code, _, err = lookhops("export", tmp_path / "model", "-o", tmp_path / "model.onnx")
    assert code == 2
    assert "its layer 'asap' cannot be exported" in err
    code, _, err = lookhops("export", tmp_path / "model", "-o", tmp_path / "model.bin")
    assert code == 2
    assert "an exported model is a file that ends in .onnx or .pt2" in err
    assert not list(tmp_path.glob("model.*"))


def test_without_onnx_there_is_a_sentence_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(export, "_program", lambda *given: pytest.fail("it was recorded"))
    graphs = load("hops-1", size=20)
    predictor = tiny(tmp_path, graphs, replace(SMALL, layers=1))
    with pytest.raises(LookHopsError, match="onnx"):
        export_model(predictor, tmp_path / "model.onnx", predictor.read(graphs))
    with pytest.raises(LookHopsError, match=r'pip install "lookhops\[export\]"'):
        load_exported(tmp_path / "model.onnx")
