"""Text from templates that lie in the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def templates_of(package: str, **options: Any) -> Environment:
    """The templates of a package; a name that a template does not know is an error.

    Args:
        package: The package, whose folder ``templates`` holds them.
        options: Jinja's own.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(package)
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, **options)
