"""The routes as an OpenAPI document, made of the table of routes and the shapes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from jupyter_durable.server.routes import PREFIX, ROUTES, Route
from jupyter_durable.server.shapes import ANSWERS, FORMAT, QUESTIONS, Problem

_REFUSALS = {
    "400": "Asked in a way that cannot work.",
    "403": "Not logged in, not allowed, or without the XSRF header.",
    "404": "There is no such notebook, log, run, branch or step.",
    "409": "The log is busy, damaged, too new or another person's.",
    "422": "A value or query that is not accepted.",
    "503": "The log cannot be used.",
}
_INTEGERS = {"number"}


def document(base_url: str = "/") -> dict[str, Any]:
    """The description of all routes.

    Args:
        base_url: of the Jupyter server.
    """
    _, components = msgspec.json.schema_components(
        (*ANSWERS, *QUESTIONS), ref_template="#/components/schemas/{name}"
    )  # fmt: skip
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jupyter_durable",
            "version": str(FORMAT),
            "description": "Durable runs of notebooks: look at them, compare, query, decide. The Jupyter server's own "
            "authentication, authorisation and XSRF rules hold.",
        },
        "servers": [{"url": f"{base_url.rstrip('/')}/{PREFIX}"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "Authorization"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    named = re.findall(r"\{([a-z]+)\}", route.path)
    parameters = [_parameter(name, "path", "integer" if name in _INTEGERS else "string", "", True) for name in named]
    parameters += [_parameter(one.name, "query", one.kind, one.says, one.required) for one in route.parameters]
    words = re.sub(r"\{([a-z]+)\}", r"of_\1", route.path).replace("/", "_").replace(".", "_")
    made: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{words}",
        "summary": route.says,
        "parameters": parameters,
        "responses": {"200": _answer(route)} | {status: _refusal(says) for status, says in _REFUSALS.items()},
    }
    if route.question is not None:
        made["requestBody"] = {"required": True, "content": _content(route.question)}
    return made


def _parameter(name: str, where: str, kind: str, says: str, required: bool) -> dict[str, Any]:
    described = {"description": says} if says else {}
    return {"name": name, "in": where, "required": required, "schema": {"type": kind}, **described}


def _answer(route: Route) -> dict[str, Any]:
    if route.answer is not None:
        return {"description": route.answer.__name__, "content": _content(route.answer)}
    media = "application/x-ndjson" if route.path == "export" else "application/json"
    return {"description": route.says, "content": {media: {"schema": {}}}}


def _refusal(says: str) -> dict[str, Any]:
    return {"description": says, "content": _content(Problem)}


def _content(shape: type[Any]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape.__name__}"}}}
