"""What can go wrong in a way that a person can mend.

UserError            one paragraph for the person, exit code 2
└── DamageError      files on disk are not what their manifest says
"""


class UserError(Exception):
    """A condition that the person at the keyboard can mend; the message says how."""


class DamageError(UserError):
    """A file of a dataset is missing, cut short, or not the one that the manifest names."""
