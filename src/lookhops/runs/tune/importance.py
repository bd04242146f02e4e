"""How much each option matters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from statistics import fmean

from lookhops.runs.tune.record import SearchRecord
from lookhops.runs.tune.space import Space

#: Fewer configurations than this say nothing.
FEW = 4


def importance(searches: Sequence[SearchRecord], space: Space) -> dict[str, float]:
    """Each option's share of the differences between configurations, the largest first.

    By functional ANOVA (Optuna's), over the scores of all configurations of all searches on the
    first inner split, which pruned ones have too, less the mean of their search. Shares sum to 1;
    none are known of fewer than four configurations, or of equal ones.
    """
    import optuna

    distributions = space.distributions()
    open_options = {name: d for name, d in distributions.items() if not d.single()}
    study = optuna.create_study(storage=optuna.storages.InMemoryStorage())
    for search in searches:
        scored = [one for one in search.tried if one.scores]
        mean = fmean(one.scores[0] for one in scored) if scored else 0.0
        for one in scored:
            study.add_trial(
                optuna.create_trial(
                    params={name: one.values[name] for name in open_options},
                    distributions=open_options,
                    value=one.scores[0] - mean,
                )
            )
    values = {trial.value for trial in study.trials}
    if len(study.trials) < FEW or len(values) < 2 or not open_options:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in found.items()}
