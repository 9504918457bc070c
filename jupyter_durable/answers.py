"""What may be answered: schemas of answers, checking them at the door, and the snapshot of what was shown.

The same check is made where an answer is sent (`client.answer`, the server, the command line) and where the run takes
it, so a value that does not fit never becomes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import OutputItem
from jupyter_durable.values import redact

LARGEST = 64 * 1024
"""Bytes of JSON of an answer at most."""

LARGEST_SHOWN = 256 * 1024
"""Bytes of each form of what is shown."""

Schema = msgspec.Raw | msgspec.UnsetType

_FORMS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_latex_": "text/latex",
    "_repr_svg_": "image/svg+xml",
}
_PLAIN: dict[Any, dict[str, str]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    dict: {"type": "object"},
}


def schema_of_choices(choices: Sequence[str]) -> msgspec.Raw:
    """The JSON schema of an approval.

    >>> bytes(schema_of_choices(()))
    b'{"type":"boolean"}'
    """
    return _raw({"enum": list(choices)} if choices else {"type": "boolean"})


def schema_of(schema: Any) -> Schema:
    """The JSON schema of what a program wants: of a pydantic model or type, or as it is given.

    Args:
        schema: ``None`` for anything; a JSON schema; ``bool``, ``int``, ``float``, ``str``, ``list``, ``dict``; or what
            pydantic can describe.

    Raises:
        UsageError: it is none of these.

    >>> bytes(schema_of(int))
    b'{"type":"integer"}'
    """
    if schema is None:
        return msgspec.UNSET
    if isinstance(schema, Mapping):
        return _raw(dict(schema))
    if schema in _PLAIN:
        return _raw(_PLAIN[schema])
    adapter = _adapter(schema)
    return _raw(adapter.json_schema())


def acceptor(schema: Schema, model: Any = None) -> Callable[[msgspec.Raw], Any]:
    """What makes the value of an answer's JSON, and raises for one that does not fit.

    Args:
        schema: the JSON schema.
        model: what the program gave; of a pydantic model the value is an instance.
    """
    if model is not None and not isinstance(model, Mapping) and model not in _PLAIN:
        adapter = _adapter(model)
        return lambda raw: adapter.validate_json(bytes(raw))

    def accept(raw: msgspec.Raw) -> Any:
        value = msgspec.json.decode(raw)
        check(value, schema)
        return value

    return accept


def check(value: Any, schema: Schema) -> None:
    """Refuse an answer that does not fit.

    Raises:
        UsageError: it does not, in a sentence that names the place in the answer, not its content.

    >>> check(True, schema_of_choices(()))
    >>> check("perhaps", schema_of_choices(("yes", "no")))
    Traceback (most recent call last):
        ...
    jupyter_durable.errors.UsageError: The answer does not fit: it must be one of "yes", "no".
    """
    if isinstance(schema, msgspec.UnsetType):
        return
    wanted = msgspec.json.decode(schema)
    if wanted == {"type": "boolean"}:
        if not isinstance(value, bool):
            raise UsageError("The answer does not fit: it must be yes or no (true or false).")
        return
    if set(wanted) == {"enum"}:
        if value not in wanted["enum"]:
            said = ", ".join(f'"{each}"' for each in wanted["enum"])
            raise UsageError(f"The answer does not fit: it must be one of {said}.")
        return
    validator = _validator(bytes(schema))
    error = next(iter(sorted(validator.iter_errors(value), key=lambda each: list(map(str, each.path)))), None)
    if error is not None:
        place = "".join(f"[{each!r}]" for each in error.path)
        raise UsageError(f"The answer does not fit its schema at `answer{place}`: {_why(error)}.")


def encoded(value: Any) -> msgspec.Raw:
    """An answer as JSON.

    Raises:
        UsageError: it is no JSON, or larger than `LARGEST`.
    """
    try:
        text = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError("An answer is JSON: text, numbers, true and false, lists and objects.") from None
    if len(text) > LARGEST:
        raise UsageError(f"An answer has at most {LARGEST // 1024} KB; put a larger thing in a file and send its path.")
    return msgspec.Raw(text)


def snapshot(thing: Any) -> OutputItem:
    """What is shown with a question, in all its forms, as it is now. Text is Markdown."""
    bundle: dict[str, Any] = {}
    if isinstance(thing, str):
        bundle = {"text/markdown": thing, "text/plain": thing}
    else:
        for method, mime in _FORMS.items():
            form = getattr(thing, method, None)
            if callable(form) and not isinstance(thing, type) and isinstance(text := form(), str):
                bundle[mime] = text
        bundle["text/plain"] = _plain(thing)
    kept = {mime: redact(text) for mime, text in bundle.items() if len(text) <= LARGEST_SHOWN}
    if "text/plain" not in kept:
        kept["text/plain"] = redact(bundle["text/plain"][:LARGEST_SHOWN]) + " ... (cut)"
    return OutputItem(kind="display", data=msgspec.Raw(msgspec.json.encode(kept)))


def _plain(thing: Any) -> str:
    if isinstance(thing, dict | list | tuple):
        try:
            return msgspec.json.format(msgspec.json.encode(thing), indent=2).decode()
        except (TypeError, ValueError, OverflowError):
            return repr(thing)
    return repr(thing)


def _raw(schema: Any) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(schema))
    except (TypeError, ValueError) as error:
        raise UsageError("A JSON schema is made of texts, numbers, lists and dicts.") from error


@cache
def _adapter(model: Any) -> Any:
    try:
        from pydantic import TypeAdapter
    except ImportError:
        raise UsageError(
            "`schema` is a JSON schema, or one of bool, int, float, str, list, dict. For other types install pydantic: "
            "pip install pydantic"
        ) from None
    try:
        return TypeAdapter(model)
    except Exception as error:
        raise UsageError(f"pydantic cannot make a schema of it: {type(error).__name__}.") from error


@cache
def _validator(schema: bytes) -> Any:
    try:
        from jsonschema import exceptions, validators
    except ImportError:
        raise UsageError("To check answers against a JSON schema, install jsonschema: pip install jsonschema") from None
    wanted = msgspec.json.decode(schema)
    kind = validators.validator_for(wanted)
    try:
        kind.check_schema(wanted)
    except exceptions.SchemaError as error:
        raise UsageError(f"This is no JSON schema: {error.message}.") from None
    return kind(wanted)


def _why(error: Any) -> str:
    """What is asked for, and nothing of what was given."""
    if error.validator == "type":
        return f"it must be of type {error.validator_value}"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"`{missing[0]}` is missing" if missing else "something is missing"
    if error.validator == "enum":
        return "it must be one of " + ", ".join(map(str, error.validator_value))
    return f"`{error.validator}` asks for {str(error.validator_value)[:100]}"
