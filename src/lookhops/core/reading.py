"""How a source of graphs is read, and how its columns are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import check_fields, option, read

MOLECULES, TABLES, HOP_TASKS = "molecules", "tables", "hop tasks"
#: The bundled molecules.
SOLUBILITY = "solubility"


@dataclass(frozen=True)
class Reading:
    """How a source of graphs is read; most options are for some kinds of sources alone.

    Args:
        smiles_column: CSV: the column of SMILES; by default found by its name.
        label_column: Molecules and tables: what is to be learnt, if no ``target`` is named; by
            default found by its name.
        id_column: CSV or SDF: what to call each molecule; by default found by its name.
        graph_column: Tables: the graph of an edge or a node; by default found by its name.
        node_column: Tables: the id of a node; by default found by its name.
        source_column: Tables: where an edge begins; by default found by its name.
        target_column: Tables: where an edge ends; by default found by its name.
        weight_column: Tables: the weight of an edge; by default found by its name.
        features: Columns of whole graphs (temperature, pH, dose) that are features of them, with
            commas between, or ``all``: every column that can be one. By default none is.
        categories: Molecules and tables: features to read as categories, with commas between; by
            default text and whole numbers of at most ten values.
        numbers: Molecules and tables: features to read as numbers, with commas between; by default
            all others.
        ignore: Tables: columns to leave out, with commas between.
        directed: Tables: an edge leads from its source to its target and not back.
        invalid: Molecules that do not parse and graphs without nodes: ``raise`` an error, or
            ``skip`` them with a warning; by default ``raise``, and where a model answers ``skip``.
        target: What is to be learnt: a column, or several with commas between; by default what the
            source has.
        task: Whether targets are learnt as ``classes``, as ``numbers`` or as ``counts`` (whole
            numbers from 0); ``auto``: few different values are classes, others numbers. For each by
            name: ``logS=numbers,active=classes``.
        duplicates: Rows that are the same molecule: ``keep`` all (a split never parts them), or
            ``merge`` them: numbers are averaged, classes that contradict each other are blanked.
        salts: Molecules of several pieces: ``keep`` them whole, or only the ``largest`` piece.
        descriptors: RDKit's two-dimensional descriptors of each molecule, as features of the whole
            graph: those that are ``fast`` to compute, ``all``, or ``none``.
        max_atoms: Molecules with more are not read: RDKit takes long for them, or crashes.
        task_size: hops-K: how many graphs to make; by default 1000.
        task_seed: hops-K: the seed to make them by; by default 0.
    """

    smiles_column: str | None = option(None, of=(MOLECULES,))
    label_column: str | None = option(None, of=(MOLECULES, TABLES))
    id_column: str | None = option(None, of=(MOLECULES,))
    graph_column: str | None = option(None, of=(TABLES,))
    node_column: str | None = option(None, of=(TABLES,))
    source_column: str | None = option(None, of=(TABLES,))
    target_column: str | None = option(None, of=(TABLES,))
    weight_column: str | None = option(None, of=(TABLES,))
    features: str | None = None
    categories: str | None = option(None, of=(MOLECULES, TABLES))
    numbers: str | None = option(None, of=(MOLECULES, TABLES))
    ignore: str | None = option(None, of=(TABLES,))
    directed: bool = option(False, of=(TABLES,))
    invalid: str | None = option(None, words=("raise", "skip"))
    target: str | None = None
    task: str = "auto"
    duplicates: str = option("keep", words=("keep", "merge"))
    salts: str = option("keep", words=("keep", "largest"), of=(MOLECULES,))
    descriptors: str = option("fast", words=("fast", "all", "none"), of=(MOLECULES, SOLUBILITY))
    max_atoms: int = option(1000, least=1, most=1_000_000, of=(MOLECULES,))
    task_size: int | None = option(None, least=1, of=(HOP_TASKS,))
    task_seed: int | None = option(None, least=0, of=(HOP_TASKS,))

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def defaults(self) -> Reading:
        """What is read where nothing is chosen."""
        return AS_USUAL

    def check(self, source: object, kind: str) -> None:
        """Refuse an option that was chosen for a source of a kind that knows nothing of it."""
        for each in fields(Reading):
            of, usual = each.metadata.get("of"), (each.default, getattr(self.defaults, each.name))
            if of and kind not in of and getattr(self, each.name) not in usual:
                raise LookHopsError(
                    f"{each.name} is an option of {' and '.join(of)} alone, and {source} is none."
                )

    def with_defaults_of(self, earlier: Reading) -> Reading:
        """These options, with those of an earlier reading where nothing else was chosen.

        Names of columns and targets are not taken over: they are looked for before the usual ones,
        and need not be there. Nor is what only concerns learning (how targets are learnt,
        duplicates, what hop tasks are made of), nor the features of whole graphs, which the model
        itself knows by name.
        """
        values = {each.name: getattr(self, each.name) for each in fields(Reading)}
        values |= {
            each.name: getattr(earlier, each.name)
            for each in fields(Reading)
            if values[each.name] == each.default
            and not each.name.endswith("_column")
            and each.name not in ("target", "task", "duplicates", "features")
            and each.metadata.get("of") != (HOP_TASKS,)
        }
        return LaterReading(**values, defaults=earlier)

    def find(
        self,
        origin: object,
        header: Iterable[str],
        option: str,
        usual: Sequence[str],
        strict: bool = True,
    ) -> str | None:
        """The column that an option names, else the first with one of the usual names, else none.

        Args:
            origin: The table, for messages.
            header: Names of its columns; an exact match comes before one in another case.
            option: A field; what the :attr:`defaults` name is looked for before the usual names.
            usual: Names in lower case, the likeliest first.
            strict: Refuse a table without the column that the option names.
        """
        named = [column for column in header if column]
        wanted, default = getattr(self, option), getattr(self.defaults, option)
        if wanted is not None:
            if found := called(wanted, named):
                return found
            if strict:
                raise LookHopsError(
                    f"{origin}: no column is called {wanted!r}; the columns are "
                    f"{listed(named)}. Choose one of them for {option} "
                    f"(--{option.replace('_', '-')})."
                )
        names = usual if default is None else (default, *usual)
        return next((found for name in names if (found := called(name, named))), None)

    def to_dict(self) -> dict[str, Any]:
        """The options that are not the defaults, as JSON can hold them."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(Reading)
            if getattr(self, each.name) != each.default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reading:
        """The reading that :meth:`to_dict` wrote; what it does not know is left out."""
        known = {each.name for each in fields(Reading)}
        return read(cls, {k: value for k, value in values.items() if k in known}, "reading")


def names_in(text: str | None) -> list[str]:
    """Names with commas between, as options give them."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


#: What is done with a source where nothing is chosen.
AS_USUAL = Reading()


@dataclass(frozen=True)
class LaterReading(Reading):
    """A reading that takes its defaults from an earlier one."""

    defaults: Reading = AS_USUAL


#: Usual names of the columns with the two ends of an edge.
SOURCE_NAMES = ("source", "src", "from", "source_id", "from_id", "from_node", "sender", "u")
TARGET_NAMES = ("target", "dst", "to", "target_id", "to_id", "to_node", "receiver", "v")
#: The same of what is to be learnt.
LABEL_NAMES = ("class", "label", "y", "target")


def called(name: str, names: Iterable[str]) -> str | None:
    """The one among these names that is called so, else so in another case, or none."""
    known = list(names)
    if name in known:
        return name
    lower = name.strip().lower()
    return next((one for one in known if one.lower() == lower), None)


def listed(header: Sequence[str]) -> str:
    """Names of columns for a message: the first twenty, and how many more there are."""
    shown = [column for column in header if column]
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(shown[:20]) + more
