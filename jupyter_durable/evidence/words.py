"""Says in words how evidence differs."""

from __future__ import annotations

from collections.abc import Mapping

_MOST = 3


def explain(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """What changed between two sets of parts, for a sentence about *why*; empty if nothing did.

    >>> explain({"code": "a", "var:PROMPT": "b"}, {"code": "a", "var:PROMPT": "c"})
    '`PROMPT` changed'
    >>> explain({"code": "a", "fn:clean": "b"}, {"code": "x", "fn:clean": "y", "fn:trim": "z"})
    'its own body changed, the body of `clean` changed, `trim` is newly used'
    """
    said = [_part(name, old.get(name), new.get(name)) for name in _ordered(old, new)]
    if len(said) > _MOST + 1:
        said = [*said[:_MOST], f"and {len(said) - _MOST} more"]
    return ", ".join(said)


def _ordered(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return sorted(changed, key=lambda name: (name != "code", name not in old or name not in new, name))


def _part(part: str, old: str | None, new: str | None) -> str:
    kind, _, name = part.partition(":")
    if kind == "code":
        return "its own body changed"
    if old is None:
        return f"`{name}` is newly used"
    if new is None:
        return f"`{name}` is no longer used"
    return {"fn": f"the body of `{name}` changed", "cls": f"class `{name}` changed"}.get(kind, f"`{name}` changed")
