"""What exactly lies within h hops: an identity for every neighbourhood, counted for each graph."""

from lookhops.neighbourhoods.content import content_hashes
from lookhops.neighbourhoods.counts import SparseRows, Vocabulary, gram_by_hop, unary_codes
from lookhops.neighbourhoods.identities import Bins, identities, shells
from lookhops.neighbourhoods.similarity import SimilarityIndex
from lookhops.neighbourhoods.totals import graph_totals

__all__ = [
    "Bins",
    "SimilarityIndex",
    "SparseRows",
    "Vocabulary",
    "content_hashes",
    "gram_by_hop",
    "graph_totals",
    "identities",
    "shells",
    "unary_codes",
]
