"""The command group with all of its commands."""

from . import data_commands, model_commands, training_commands  # noqa: F401  # registers the commands
from .group import cli

__all__ = ["cli"]
