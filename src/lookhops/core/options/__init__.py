"""What a user can choose about reading, a network and its training, each option named once.

The fields of :class:`Architecture` and :class:`Protocol` are the options of the command line, the
parameters of ``LookHopsClassifier`` and the options in names of models; those of :class:`Reading`
are the options of the command line and of :func:`lookhops.load`. The texts of their ``Args:`` are
the help everywhere. PyTorch is not imported here: ``--help`` does not wait for it.
"""

from lookhops.core.options.architecture import (
    CLASSICAL,
    EDGES,
    FINGERPRINT,
    RECOMMENDED,
    SCALES,
    Architecture,
    Classical,
)
from lookhops.core.options.fields import (
    Option,
    argument_texts,
    option,
    options_of,
)
from lookhops.core.options.protocol import (
    LOSSES,
    OF_SPLITS,
    PAPER_SEEDS,
    PRECISIONS,
    Protocol,
    SearchOptions,
    parse_seeds,
    parse_split,
    splits_in_words,
)
from lookhops.core.options.reading import (
    AS_USUAL,
    HOP_TASKS,
    MOLECULES,
    TABLES,
    Reading,
    names_in,
)

__all__ = [
    "AS_USUAL",
    "CLASSICAL",
    "EDGES",
    "FINGERPRINT",
    "HOP_TASKS",
    "LOSSES",
    "MOLECULES",
    "OF_SPLITS",
    "PAPER_SEEDS",
    "PRECISIONS",
    "RECOMMENDED",
    "SCALES",
    "TABLES",
    "Architecture",
    "Classical",
    "Option",
    "Protocol",
    "Reading",
    "SearchOptions",
    "argument_texts",
    "names_in",
    "option",
    "options_of",
    "parse_seeds",
    "parse_split",
    "splits_in_words",
]
