"""``lookhops data``: list, describe, convert and fetch sets of graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.panel import Panel

from lookhops.cli.shared.output import as_grid, grid, out, panel, print_json, print_line, with_bars
from lookhops.cli.shared.parameters import Json, with_options
from lookhops.cli.shared.reading import DataDir, Reading, Source, warnings_as_lines
from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted

if TYPE_CHECKING:
    from lookhops.graphs import Features, Graphs

#: More names than this are not all shown.
SHOWN = 24

app = typer.Typer(help="List, describe, convert and fetch sets of graphs.", no_args_is_help=True)


@app.command("list")
def list_sets(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the sets that have a name, and which of them are in the data folder."""
    from lookhops.sources.collection import data_folder, local_names, tu_sets
    from lookhops.sources.loading import BUNDLED, GENERATED

    folder = data_folder(data_dir)
    local = local_names(folder)
    fields: dict[str, list[str]] = {
        "in the data folder": [name for name in local if name not in tu_sets()]
    }
    for name, known in tu_sets().items():
        fields.setdefault(known["field"], []).append(name)
    if as_json:
        included = {"bundled": BUNDLED, "generated": GENERATED}
        sets = [
            {"name": name, "field": field, "local": field in included or name in local}
            for field, names in (included | fields).items()
            for name in names
        ]
        print_json({"data_dir": str(folder), "sets": sets})
        return
    rows = [
        ("solubility", "bundled: molecules and their measured solubility in water"),
        ("transfers", "bundled: money transfers between accounts, some in a ring; as tables too"),
        (f"{GENERATED[0]} to {GENERATED[-1]}", "generated: what counts is K hops away"),
        ("", ""),
        ("TU collection", f"[green]*[/] in {escape(str(folder))}; others are downloaded"),
    ]
    for field, names in fields.items():
        if names:
            marked = (f"[green]{escape(name)}*[/]" if name in local else name for name in names)
            rows.append((f"  [not bold]{field}[/]", "  ".join(marked)))
    out.print(grid(rows, columns=("bold", "left wrap")))


@app.command()
@with_options
def info(source: Source, as_json: Json = False, *, reading: Reading) -> None:
    """Describe a set: graphs, nodes, edges, features, classes and their balance."""
    graphs = reading.load(source)
    about = describe(graphs)
    if as_json:
        print_json(about)
    else:
        out.print(_panel(graphs, about))


def describe(graphs: Graphs) -> dict[str, Any]:
    """What the paper's Table 1 says of a set, and a little more.

    Undirected edges are pairs of joined nodes. The paper's column of average edges is edges per
    node, although its caption says per graph; both are here.
    """
    from lookhops.graphs.indexing import pair_keys
    from lookhops.sources.counts import graph_counts

    counts = graph_counts(graphs)
    count, nodes, edges = counts["graphs"], counts["nodes"], counts["edges"]
    # Beyond the first between the same two nodes, in the same direction if edges have one.
    if graphs.is_undirected:
        parallel = (graphs.num_edges + int((graphs.source == graphs.target).sum())) // 2 - edges
    else:
        distinct = pair_keys(graphs.source, graphs.target, nodes).unique().numel()
        parallel = graphs.num_edges - distinct
    return {
        "name": graphs.name,
        "graphs": count,
        "nodes": nodes,
        "undirected_edges": edges,
        "parallel_edges": parallel,
        "directed": not graphs.is_undirected,
        "nodes_per_graph": nodes / count if count else 0.0,
        "smallest_graph": counts["nodes_range"][0],
        "largest_graph": counts["nodes_range"][1],
        "edges_per_graph": edges / count if count else 0.0,
        "edges_per_node": edges / nodes if nodes else 0.0,
        "features": graphs.num_features,
        "edge_features": graphs.num_edge_features,
        **_column_names("node", graphs.nodes),
        **_column_names("edge", graphs.edges),
        "graph_features": graphs.whole.width,
        **_column_names("graph", graphs.whole),
        "targets": _targets(graphs),
        "classes": graphs.num_classes,
        "class_balance": dict(zip(counts["class_names"], counts["class_counts"], strict=False)),
        "columns": list(graphs.columns),
        "skipped_rows": len(graphs.skipped),
        "molecules": counts.get("molecules"),
        "fingerprint": graphs.fingerprint,
    }


def _targets(graphs: Graphs) -> list[dict[str, Any]]:
    """What is to be learnt: of each target how many graphs have it, and its classes or range."""
    from lookhops.graphs.targets import target_columns

    found = []
    for target, values in target_columns(graphs.y, graphs.targets):
        known = values[values == values]
        fact: dict[str, Any] = {"name": target.name, "known": len(known)}
        if target.classes:
            fact["classes"] = list(target.classes)
        elif len(known):
            fact |= {"least": known.min(), "mean": known.mean(), "most": known.max()}
        found.append(fact)
    return found


def _target_rows(targets: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    if not targets:
        return [("classes", "0", "not known")]
    if len(targets) == 1 and "classes" in targets[0]:
        return [("classes", f"{len(targets[0]['classes']):,}", "")]
    rows = [("targets", f"{len(targets)}", "how many graphs have each")]
    for target in targets:
        words = "numbers"
        if "classes" in target:
            words = counted(len(target["classes"]), "class", "classes")
        elif "least" in target:
            words += " from {least:g} to {most:g}, mean {mean:.4g}".format(**target)
        rows.append((f"  {escape(target['name'])}", f"{target['known']:,}", words))
    return rows


def _panel(graphs: Graphs, about: dict[str, Any]) -> Panel:
    from lookhops.report.sections.data import class_balance

    parts = [grid(_rows(graphs, about), columns=("", "right bold", "wrap dim"))]
    if balance := about["class_balance"]:
        named = {"class_names": [*balance], "class_counts": [*balance.values()]}
        parts.append(as_grid(with_bars(class_balance(named))))
    return panel(graphs.name, *parts)


def _rows(graphs: Graphs, about: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """What is counted, how many there are, and what there is to say of them."""
    from lookhops.sources import counts
    from lookhops.sources.rdkit.descriptors import in_words

    yield "graphs", f"{about['graphs']:,}"
    yield "nodes", f"{about['nodes']:,}"
    directed = f"of {graphs.num_edges:,} directed ones" if about["directed"] else ""
    yield "undirected edges", f"{about['undirected_edges']:,}", directed
    if more := about["parallel_edges"]:
        yield "parallel edges", f"{more:,}", "more, between the same nodes"
    sizes = f"from {about['smallest_graph']:,} to {about['largest_graph']:,}"
    yield "nodes per graph", f"{about['nodes_per_graph']:.4f}", sizes
    yield "edges per graph", f"{about['edges_per_graph']:.4f}"
    yield "edges per node", f"{about['edges_per_node']:.4f}"
    none = "" if about["features"] else "none: a model sees a column of ones"
    yield "features", f"{about['features']:,}", none
    yield from _name_rows(about, "node")
    yield "edge features", f"{about['edge_features']:,}"
    yield from _name_rows(about, "edge")
    if of_graphs := in_words([*about["graph_numbers"], *about["graph_labels"]]):
        yield "graph features", f"{about['graph_features']:,}", escape(of_graphs)
    yield from _name_rows(about, "graph", numbers=False)
    yield from _target_rows(about["targets"])
    if about["molecules"] and (said := counts.in_words(about["molecules"])):
        yield "molecules", "", said
    if graphs.skipped:
        reasons = [f"{one.id}: {one.reason}" for one in graphs.skipped[:3]]
        reasons += ["..."] if len(graphs.skipped) > 3 else []
        yield "skipped rows", f"{len(graphs.skipped):,}", escape("; ".join(reasons))
    if about["columns"]:
        yield "columns", f"{len(about['columns'])}", escape(", ".join(about["columns"]))


def _column_names(owner: str, features: Features) -> dict[str, Any]:
    labels = zip(features.label_names, features.label_values, strict=True)
    return {
        f"{owner}_numbers": list(features.number_names),
        f"{owner}_labels": {name: list(known) for name, known in labels},
    }


def _name_rows(
    about: dict[str, Any], owner: str, numbers: bool = True
) -> Iterator[tuple[str, str, str]]:
    shown = {"numbers": about[f"{owner}_numbers"]} if numbers else {}
    for name, values in (*shown.items(), *about[f"{owner}_labels"].items()):
        if values or name != "numbers":
            yield f"  {escape(name)}", f"{len(values):,}", _shortened(values)


def _shortened(names: Sequence[str]) -> str:
    if len(names) > SHOWN:
        names = [*names[: SHOWN - 2], "...", names[-1]]
    return escape(", ".join(names))


@app.command()
@with_options
def convert(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[SOURCE] OUT", help="Any source, unless --edges is given; NAME.graphs."
        ),
    ],
    edges: Path | None = None,
    nodes: Path | None = None,
    graphs: Path | None = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Write a set as one file of packed graphs, which every command reads at once.

    Args:
        edges: A table of edges, in place of a SOURCE.
        nodes: A table of nodes, beside --edges.
        graphs: A table of graphs, beside --edges.
    """
    from lookhops.graphs import SUFFIX

    sources, target = paths[:-1], Path(paths[-1])
    if target.suffix != SUFFIX:
        raise LookHopsError(f"{target}: packed graphs are written to a name that ends in {SUFFIX}.")
    if len(sources) != (edges is None):
        raise LookHopsError("Name one source and OUT; or --edges (--nodes, --graphs), and OUT.")
    if edges is None:
        packed = reading.load_to_learn(sources[0])
    else:
        from lookhops.core.reading import TABLES
        from lookhops.sources.tables import read_tables

        reading.check(edges, TABLES)
        with warnings_as_lines():
            packed = read_tables(edges, nodes, graphs, reading, name=target.stem)
        reading.tell_targets(packed, inferred=True)
    packed.save(target)
    size = target.stat().st_size
    if as_json:
        print_json({"path": str(target), "graphs": len(packed), "bytes": size})
    else:
        print_line(f"{target}: {counted(len(packed), 'graph')}, {size:,} bytes")


@app.command()
def example(
    folder: Annotated[Path, typer.Argument(help="Folder to write.")] = Path("transfers"),
    cases: Annotated[int, typer.Option(min=2, help="How many graphs.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Other seeds give other cases.")] = 0,
    as_json: Json = False,
) -> None:
    """Write tables to try things on: money transfers between accounts, a class for each case."""
    from lookhops.sources.bundled import write_transfers

    if folder.exists():
        raise LookHopsError(f"{folder} is there already; name another folder.")
    paths = write_transfers(folder, cases, seed)
    if as_json:
        print_json([str(path) for path in paths])
    else:
        print_line(f"{folder}: {', '.join(path.name for path in paths)}")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="TU names.", show_default=False)],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Download sets of the TU collection to the data folder; those that are there stay."""
    from lookhops.sources.collection import data_folder, fetch, find
    from lookhops.sources.loading import OWN_NAMES

    folder = data_folder(data_dir)
    done = []
    for name in names:
        if name in OWN_NAMES:
            raise LookHopsError(f"{name} comes with LookHops: there is nothing to fetch.")
        here = find(name, folder) is not None
        path = fetch(name, folder, OWN_NAMES)
        done.append({"name": name, "path": str(path), "downloaded": not here})
        if not as_json:
            what = "already there" if here else "downloaded"
            print_line(f"{name}: {what}, {path}")
    if as_json:
        print_json(done)
