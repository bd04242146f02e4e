"""How pages look: one palette, in light and in dark, and one style."""

from __future__ import annotations

from importlib.resources import files

from lookhops.core.palette import PAGE


def stylesheet() -> str:
    """The style of every page. ``data-theme`` on the root chooses; the system does otherwise."""
    light, dark = (
        f"color-scheme: {name}; "
        + " ".join(f"--{colour}: {both[number]};" for colour, both in PAGE.items())
        for number, name in enumerate(("light", "dark"))
    )
    own = files("lookhops.report") / "templates" / "report.css"
    return "\n".join(
        (
            f":root {{ {light} }}",
            "@media (prefers-color-scheme: dark) "
            f'{{ :root:not([data-theme="light"]) {{ {dark} }} }}',
            f':root[data-theme="dark"] {{ {dark} }}',
            f"@media print {{ :root:root {{ {light} }} }}",
            own.read_text(encoding="utf-8"),
        )
    )
