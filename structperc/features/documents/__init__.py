"""Attributes of a token that depend on its whole document, for templates.

base.py        base class of document attributes
mentions.py    attributes of other tokens with the same word, and the kind of line: headline, table or running text
majorities.py  majority labels of a first model
"""

from structperc.features.documents.base import (
    DocumentAttribute,
    DocumentExtent,
    Lookup,
    PartBuilder,
    attribute_values,
    restore,
)
from structperc.features.documents.majorities import EntityMajority, Majority, SuperentityMajority, TokenMajority
from structperc.features.documents.mentions import CaseElsewhere, LineKind, LongestMention, OtherMentions

__all__ = [
    "DocumentAttribute",
    "DocumentExtent",
    "Lookup",
    "PartBuilder",
    "restore",
    "attribute_values",
    "OtherMentions",
    "CaseElsewhere",
    "LineKind",
    "LongestMention",
    "Majority",
    "TokenMajority",
    "EntityMajority",
    "SuperentityMajority",
]
