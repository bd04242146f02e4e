"""What lies within k hops of a node: how much it tells before any training, and what it is.

``look`` measures kInfo and its gain IG(k), ``look_labels`` what the targets say; ``identities``,
``unary_codes`` and ``gram_by_hop`` are the exact neighbourhoods, their counts and their kernels.
"""

from lookhops.neighbourhoods.counts import SparseRows, Vocabulary, unary_codes
from lookhops.neighbourhoods.entropy import kinfo
from lookhops.neighbourhoods.gain import Decay, fit_decay, smallest_k
from lookhops.neighbourhoods.identities import Bins, content_hashes, identities, shells
from lookhops.neighbourhoods.information import HopInformation, look
from lookhops.neighbourhoods.labels import LabelInformation, look_labels
from lookhops.neighbourhoods.similarity import SimilarityIndex, gram_by_hop
from lookhops.neighbourhoods.totals import graph_totals

__all__ = [
    "Bins",
    "Decay",
    "HopInformation",
    "LabelInformation",
    "SimilarityIndex",
    "SparseRows",
    "Vocabulary",
    "content_hashes",
    "fit_decay",
    "gram_by_hop",
    "graph_totals",
    "identities",
    "kinfo",
    "look",
    "look_labels",
    "shells",
    "smallest_k",
    "unary_codes",
]
