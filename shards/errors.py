"""Errors that the user can fix.

UserError            one paragraph for the user, exit code 2
└── DamageError      files on disk are not what their manifest says
"""

from shards.secrets import masked


class UserError(Exception):
    """A condition that the user can fix; the message says how."""

    def __str__(self) -> str:
        # It travels: from workers, into logs of engines, into notes on disk.
        return masked(super().__str__())


class DamageError(UserError):
    """A file of a dataset is missing, truncated, or not the one that the manifest names."""
