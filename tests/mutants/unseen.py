"""Faults that no test can see, each with the reason; `make mutants` leaves them out.

The keys are those that a survivor is printed with. A key goes by the function's own code, so other
code may change.
"""

UNSEEN: dict[str, str] = {}
