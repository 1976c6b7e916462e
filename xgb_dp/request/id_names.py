"""Names of columns that look like ids: public words, from which a question to the user is made."""

from __future__ import annotations

import re

_ENDINGS = ("id", "ids", "uid", "uuid", "guid", "nbr", "mrn", "ssn", "pk")
_NUMBERS = ("no", "nr", "num", "number", "key", "code", "hash", "name")
_PERSONS = (
    "applicant", "borrower", "client", "cust", "customer", "employee", "household", "member",
    "participant", "pat", "patient", "person", "policyholder", "respondent", "student", "subj",
    "subject", "user",
)  # fmt: skip
_GLUED = re.compile(f"({'|'.join(_PERSONS)})s?({'|'.join(_ENDINGS + _NUMBERS)})")


def looks_like_id(name: object) -> bool:
    """Whether the name of a column is that of an id: of persons, or of rows."""
    if not isinstance(name, str):
        return False
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = re.findall(r"[a-z]+", spaced.lower())
    if not words:
        return False
    if words[-1] in _ENDINGS or _GLUED.fullmatch(words[-1]):
        return True
    if len(words) == 1:
        return words[0] in _PERSONS
    return words[0].removesuffix("s") in _PERSONS and words[-1] in _NUMBERS
