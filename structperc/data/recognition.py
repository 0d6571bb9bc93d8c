"""What a file of unlabelled text is: columns, JSON lines or running text; what could be two of these is refused."""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

from structperc.data.json_lines import opens_json
from structperc.data.not_columns import check_columns, ends_sentence, filled, is_json, refuse_conllu
from structperc.data.reading import DOCSTART
from structperc.errors import InputError

Form = Literal["text", "columns", "jsonl"]
FORMS = get_args(Form)
NAMES = {"text": "running text", "columns": "columns", "jsonl": "JSON lines"}

logger = logging.getLogger("pytorch_lightning.structperc")


def recognised(lines: Sequence[str], needed: int, name: str) -> Form:
    """Return the form of the lines of the file `name`, in which columns would need so many fields.

    A model that needs several columns reads columns alone. JSON lines begin as an object does. Columns have -DOCSTART-
    lines, no more fields than are needed, or the same number of fields in more than half of the lines, unless these
    stand alone, between empty lines, or all end as sentences do. Everything else is running text if a line ends as a
    sentence does. Raises InputError for CoNLL-U, and for what could be text and columns.
    """
    found = [line for _, line in filled(lines)]
    if found and (all(map(is_json, found)) or opens_json(found)):
        return "jsonl"
    refuse_conllu(lines, name)
    if needed > 1:
        check_columns(lines, needed, name)
        return "columns"
    widths = Counter(len(line.split()) for line in found)
    marked = any(line.split()[0] == DOCSTART for line in found)
    if marked or max(widths, default=0) <= needed:
        return "columns"
    alone = all(a + 1 < b for (a, _), (b, _) in pairwise(filled(lines)))
    ends = [ends_sentence(line) for line in found]
    if not alone and not all(ends) and 2 * max(widths.values()) > len(found):
        return "columns"
    if any(ends):
        return "text"
    raise InputError(f"{name}: this may be running text or columns; set --input text or --input columns")


def is_recognised(lines: Sequence[str], needed: int) -> bool:
    """Return whether lines of a file are enough to tell what it is."""
    try:
        recognised(lines, needed, "")
    except InputError:
        return False
    return True


def say_form(form: Form, name: str) -> None:
    """Tell the user, on standard error, which form a file was found to have."""
    logger.info("%s: read as %s; --input says otherwise", name, NAMES[form])
