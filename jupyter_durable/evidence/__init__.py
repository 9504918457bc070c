"""What a step depends on besides its arguments: its own code, the local code that it reaches, and globals.

Evidence answers one question on replay: would the step still do what it did when its value was recorded? It is a set
of *parts*, each with a readable name and a digest, so that *why* can say "`PROMPT` changed" and not "hash differs".

- `place`: which code is local, and what lies inside wrappers.
- `own`: what one function or class says by itself.
- `book`: the evidence of step functions as one execution sees it.
- `reads`: digests of the notebook variables that a cell reads.
- `words`: evidence in words.
"""

from __future__ import annotations

from jupyter_durable.evidence.book import Evidence, EvidenceBook
from jupyter_durable.evidence.place import step_function
from jupyter_durable.evidence.reads import inputs
from jupyter_durable.evidence.words import explain

__all__ = ["Evidence", "EvidenceBook", "explain", "inputs", "step_function"]
