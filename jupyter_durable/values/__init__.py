"""The boundary between program and log: how values are stored, brought back, told apart and kept from leaking.

Upper floors use the names of this file; the files beneath hold one idea each::

    secrets  trust                        what looks like a key; the user's own key
    refused  shapes  objects  classes     what is never stored; what objects keep; how classes are found again
    migrations  migrated  unpickling      versions of classes: the registry; today's values of recorded ones; in pickles
    lineage                               what a migrated value was when it was recorded, for digests
    http  raised  leaf  check             exceptions in parts; pickles without twins; where in a value the trouble is
    scalars  tables                       values without parts; arrays and frames as bytes
    walking  structural  restoring  codec values as JSON trees, and back
    salvage  failures                     what is saved of an unstorable value; exceptions
    functions  frames  canonical  digest  equal values have equal digests, in every process
"""

from __future__ import annotations

from jupyter_durable.values.codec import Encoded, decode, encode, encode_verified
from jupyter_durable.values.digest import comparable, digest
from jupyter_durable.values.failures import describe_error, restore_error
from jupyter_durable.values.salvage import salvage
from jupyter_durable.values.secrets import redact

__all__ = [
    "Encoded",
    "comparable",
    "decode",
    "describe_error",
    "digest",
    "encode",
    "encode_verified",
    "redact",
    "restore_error",
    "salvage",
]
