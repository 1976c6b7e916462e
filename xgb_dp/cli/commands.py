"""The group with all of its commands, for who looks at them all."""

from .group import cli

for _name in cli.list_commands(None):
    cli.get_command(None, _name)
