"""The table of routes: the server, the OpenAPI document, the module's docstring and docs/rest.md agree."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import msgspec
import pytest

import jupyter_durable
from jupyter_durable import server
from jupyter_durable.server import shapes
from jupyter_durable.server.handlers import handler_of
from jupyter_durable.server.openapi import document
from jupyter_durable.server.routes import PREFIX, ROUTES

ROOT = Path(__file__).resolve().parents[2]


def operations():
    return {(method.upper(), path) for path, methods in document()["paths"].items() for method in methods}


def test_every_route_is_described_and_nothing_else():
    assert operations() == {(route.method, f"/{route.path}") for route in ROUTES}


def test_the_document_is_served_with_the_base_url_of_the_server(ask, jp_base_url):
    answer = ask("openapi.json")

    assert answer.status == 200
    assert answer.json["servers"] == [{"url": f"{jp_base_url}{PREFIX}"}]
    assert answer.json == json.loads(json.dumps(document(jp_base_url)))


def test_every_reference_of_the_document_leads_somewhere():
    text = json.dumps(document())

    assert set(re.findall(r'"#/components/schemas/(\w+)"', text)) <= document()["components"]["schemas"].keys()


def test_every_handler_has_the_method_that_its_route_names():
    for route in ROUTES:
        handler = vars(handler_of(route))
        own = {name for name in ("get", "post", "put", "delete", "patch", "head") if name in handler}
        assert own == {route.method.lower()}


def test_every_path_parameter_is_described():
    for path, methods in document()["paths"].items():
        for operation in methods.values():
            said = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert said == set(re.findall(r"\{([a-z]+)\}", path))


def test_the_server_has_exactly_these_routes(jp_serverapp, jp_base_url):
    def patterns(rules):
        for rule in rules:
            yield from patterns(getattr(rule.target, "rules", ()))
            yield getattr(getattr(rule.matcher, "regex", None), "pattern", "").rstrip("$")

    ours = [one for one in patterns(jp_serverapp.web_app.default_router.rules) if "jupyter-durable" in one]

    assert sorted(ours) == sorted(f"{jp_base_url.rstrip('/')}{route.pattern}" for route in ROUTES)


def test_the_docstring_of_the_package_lists_every_route():
    for route in ROUTES:
        path = re.sub(r"\{([a-z]+)\}", lambda found: found[1].upper(), route.path)
        (line,) = [
            line for line in server.__doc__.splitlines() if re.match(rf"{route.method} +{re.escape(path)} ", line)
        ]
        for parameter in route.parameters[1:]:
            assert f"{parameter.name}=" in line
        if route.answer is not None:
            assert f"`{route.answer.__name__}`" in line
        if route.question is not None:
            assert f"`{route.question.__name__}`" in line


def test_the_table_of_the_guide_is_made_of_the_routes():
    guide = (ROOT / "docs" / "rest.md").read_text(encoding="utf-8")

    assert table() in guide


def table() -> str:
    """The table of docs/rest.md. To make it anew: `python -m tests.server.test_routes`."""
    rows = ["| | path | what it answers | parameters |", "| --- | --- | --- | --- |"]
    for route in ROUTES:
        path = re.sub(r"\{([a-z]+)\}", lambda found: found[1].upper(), route.path)
        said = [f"`{one.name}`" for one in route.parameters]
        if route.question is not None:
            said.append(f"body: `{msgspec_fields(route.question)}`")
        rows.append(f"| {route.method} | `{path}` | {route.says} | {' '.join(said)} |")
    return "\n".join(rows)


def msgspec_fields(shape: type) -> str:
    """The fields of a body, those that may be left out with a question mark."""
    fields = msgspec.structs.fields(shape)
    return "{" + ", ".join(one.encode_name + ("" if one.required else "?") for one in fields) + "}"


@pytest.mark.parametrize("shape", [*shapes.ANSWERS, *shapes.QUESTIONS], ids=lambda shape: shape.__name__)
def test_every_shape_says_what_it_is(shape):
    assert shape.__doc__


def test_an_installed_package_enables_the_extension():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    (folder,) = [source for source, target in shared.items() if target == "etc/jupyter/jupyter_server_config.d"]
    (config,) = (ROOT / folder).iterdir()

    assert json.loads(config.read_text()) == {"ServerApp": {"jpserver_extensions": {"jupyter_durable": True}}}
    (point,) = jupyter_durable._jupyter_server_extension_points()
    assert point["app"].name == "jupyter_durable"


if __name__ == "__main__":
    print(table())
