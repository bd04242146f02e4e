"""How a command splits graphs: what the protocol draws, a file of splits, or a test set."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lookhops.cli.shared.printing import err, print_line, warn
from lookhops.cli.shared.reading import GraphReader
from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol, parse_seeds, parse_split
from lookhops.core.reading import listed
from lookhops.core.words import agreeing

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.sources.splits import SplitPlan


#: No more columns than this are named in a line.
SHOWN = 10


@dataclass(frozen=True)
class SplitSource:
    """Splits that are not drawn, or not all of them.

    Args:
        splits: JSON with the parts, by graph numbers or ids: one split for all seeds, or one for
            each. Published folds ({"test", "model_selection"}) are read as they are.
        test: Graphs that are the test part of every split, read as SOURCE is; each seed draws
            training and validation parts from SOURCE.
    """

    splits: Path | None = None
    test: str | None = None

    def plan(
        self,
        source: str,
        graphs: Graphs,
        protocol: Protocol,
        seeds: str | None,
        reading: GraphReader,
        usual: int = 1,
    ) -> tuple[Graphs, SplitPlan]:
        """The graphs, with the test set if there is one, and the split of each seed.

        ``seeds`` is how many or which; by default one for each fold, or for each split of the file,
        and as many as ``usual`` where neither is given.
        """
        from lookhops.sources.splits import SplitPlan, read_splits
        from lookhops.sources.splits.given import with_test_set

        graphs = _features(source, graphs, reading, parse_split(protocol.split)[1])
        if self.splits is not None:
            if self.test is not None or protocol.folds or protocol.split != "auto":
                raise LookHopsError("--splits says all: leave out --split, --folds and --test.")
            parts = read_splits(self.splits, graphs)
            chosen = parse_seeds(len(parts) if seeds is None else seeds)
            plan = SplitPlan.given(replace(protocol, seeds=chosen), parts)
        else:
            test = None
            if self.test is not None:
                graphs, test = with_test_set(graphs, reading.load(self.test))
            chosen = parse_seeds(
                protocol.folds or usual if seeds is None else seeds, protocol.folds
            )
            plan = SplitPlan.of(graphs, replace(protocol, seeds=chosen), test)
        return graphs, plan


def _features(source: str, graphs: Graphs, reading: GraphReader, split: str) -> Graphs:
    """The graphs without the column of the split as a feature, where all were asked for.

    A line says which columns are features then, or which could be where none was named.
    """
    from lookhops.graphs.columns import ALL, possible_features
    from lookhops.sources.loading import BUNDLED

    if reading.features is None:
        names = possible_features(graphs, but=[split])
        if names and source not in BUNDLED:  # of which one is the target in other words
            shown = shlex.quote(",".join(names[:SHOWN]))
            more = f" ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
            which = agreeing(len(names), "a column is", f"{len(names)} columns are")
            print_line(f"{which} not read; as features: --features {shown}{more}", err)
    elif reading.features.strip().lower() == ALL:
        graphs = replace(graphs, whole=graphs.whole.without([split]))
        read = [name for name in graphs.whole.names.features if name in graphs.columns]
        print_line(f"columns that are features: {listed(read) if read else 'none'}", err)
    return graphs


def tell_remarks(graphs: Graphs, plan: SplitPlan) -> None:
    """Warn of parts with few graphs of a class, before the training begins."""
    for remark in plan.remarks(graphs):
        warn(remark)


Splitting = Annotated[SplitSource, "Splits that are not drawn"]
