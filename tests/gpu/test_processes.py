"""Several stacks side by side on one GPU give what one after the other gives."""

from lookhops.core.options import Architecture, Protocol
from lookhops.runs.executor import Local, run_plan
from lookhops.runs.plan import Cell
from lookhops.runs.store import Store
from lookhops.sources.hop_tasks import hop_task


def test_side_by_side_is_one_after_the_other(tmp_path):
    graphs = hop_task(1, 40)
    protocol = Protocol(seeds=(11, 22), max_epochs=3, batch_size=16)
    cells = [
        Cell(graphs, conv, Architecture(conv=conv, hidden=8, layers=2), protocol)
        for conv in ("licheb", "gcn")
    ]
    found = []
    for processes in (1, 2):
        with Store(tmp_path / f"{processes}.sqlite") as store:
            done = run_plan(cells, store, Local("cuda", processes))
            assert (done.trained, done.failures) == (4, [])
            found.append({cell.model: cell.scores() for cell in store.cells()})
    assert found[0] == found[1]
