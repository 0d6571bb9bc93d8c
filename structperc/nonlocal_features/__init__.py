"""Features of complete label sequences, whose scores need all labels of a document.

base.py                base class of features and their total score
candidate_segments.py  segments of all candidates of a batch; candidate_text.py parts that candidates share;
                       strings.py equal words; segment_counts.py compiled counts for few candidates on a CPU
consistency.py         equal phrases, phrases inside others, their majority versions, and enumerations
global_feature.py      base class of global features (Collins 2002), strings with a vocabulary
entity_templates.py    strings of entities, affixes and boundaries; quotes.py of quoted words
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
