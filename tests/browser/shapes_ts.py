"""Writes ``labextension/src/shapes.ts``, the shapes of the REST answers as TypeScript has them.

``python tests/browser/shapes_ts.py`` writes the file anew; `test_shapes.py` fails while it says something else than
`jupyter_durable.server.shapes`.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ROOT / "jupyter_durable" / "server" / "shapes"
OUT = ROOT / "labextension" / "src" / "shapes.ts"

HEAD = """\
/**
 * The shapes of everything that goes over REST. Written by `python tests/browser/shapes_ts.py` from
 * `jupyter_durable/server/shapes/`, which says what each field means; not to be edited by hand.
 */
"""

PLAIN = {"int": "number", "float": "number", "str": "string", "bool": "boolean", "None": "null", "Any": "unknown"}


def typed(node: ast.expr, known: set[str]) -> str:
    """An annotation in TypeScript."""
    if isinstance(node, ast.BinOp):
        parts = [typed(node.left, known), typed(node.right, known)]
        return " | ".join(dict.fromkeys(" | ".join(parts).split(" | ")))
    if isinstance(node, ast.Constant):
        return "null" if node.value is None else f"'{node.value}'"
    if isinstance(node, ast.Name):
        return PLAIN.get(node.id) or (f"I{node.id}" if node.id in known else node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        args = [typed(each, known) for each in inside]
        if node.value.id == "Literal":
            return " | ".join(args)
        if node.value.id == "list":
            return f"({args[0]})[]" if " | " in args[0] else f"{args[0]}[]"
        if node.value.id == "dict":
            return "Record<" + ", ".join(args) + ">"
    raise TypeError(ast.unparse(node))


def text() -> str:
    """What the file should say."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SHAPES.glob("*.py"))]
    body = [node for tree in trees for node in tree.body]
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name != "Shape"]
    known = {node.name for node in classes}
    parts = [HEAD]
    for node in body:
        # Only literals: `ANSWERS` and the like are Python's own.
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            parts.append(f"export type {ast.unparse(node.targets[0])} = {typed(node.value, known)};\n")
        elif isinstance(node, ast.ClassDef) and node.name in known:
            fields = [
                f"  {each.target.id}: {typed(each.annotation, known)};"
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            parts.append("\n".join([f"export interface I{node.name} {{", *fields, "}\n"]))
    return "\n".join(parts)


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)} written", file=sys.stderr)
