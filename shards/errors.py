"""Errors that the user can fix.

UserError            one paragraph for the user, exit code 2
└── DamageError      files on disk are not what their manifest says
"""


class UserError(Exception):
    """A condition that the user can fix; the message says how."""


class DamageError(UserError):
    """A file of a dataset is missing, truncated, or not the one that the manifest names."""
