"""The command that checks the installation, by a program that needs no extra."""

from __future__ import annotations

from .group import Given, command


@command("doctor")
def doctor(_: Given) -> None:
    """Check the build, entropy, versions and installations in the way."""
    from .doctor import main

    raise SystemExit(main())
