"""Attributes of a token taken from its document, for templates.

base says what such an attribute is; mentions finds the other tokens of a document with the same word, from which
other_mentions takes what stands beside them, longest_mention what the longest name among them is, and case_elsewhere
how they are written; line_kind tells headlines and tables from running text. majorities counts what a first model
says of words and entities.
"""

from structperc.features.documents.base import DocumentAttribute, Extent, Lookup, PartBuilder, attribute_values, restore
from structperc.features.documents.majorities import EntityMajority, Majority, SuperentityMajority, TokenMajority
from structperc.features.documents.mentions import CaseElsewhere, LineKind, LongestMention, OtherMentions

__all__ = [
    "DocumentAttribute",
    "Extent",
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
