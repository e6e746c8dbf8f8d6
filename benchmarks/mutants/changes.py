"""Small bugs: one change of one expression of a module."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPPOSITE = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
_OPERATE = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One change: where, which, and the lines whose execution can show it."""

    number: int
    kind: str
    function: str
    text: str
    lines: range
    names: tuple[str, ...]  # constants of the module that the changed statement assigns
    occurrence: int  # among equal changes of equal expressions in the function

    def key(self, file: str) -> str:
        """A name that stays when lines move."""
        which = f" ({self.occurrence})" if self.occurrence > 1 else ""
        return f"{file} {self.function}: {self.kind}: {self.text}{which}"


def changes(tree: ast.Module) -> Iterator[Change]:
    """Every change that :func:`changed` can make."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for number, (node, kind, scope, statement) in enumerate(_places(tree)):
        names: tuple[str, ...] = ()
        if not scope and isinstance(statement, ast.Assign | ast.AnnAssign):
            assigned = (
                statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            )
            targets = (t for target in assigned for t in ast.walk(target))
            names = tuple(t.id for t in targets if isinstance(t, ast.Name))
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.If | ast.While):
            last = statement.test.end_lineno or last
        elif isinstance(statement, ast.For | ast.With):
            last = statement.body[0].lineno - 1
        shown = node.test if isinstance(node, ast.If) else node
        text = " ".join(ast.unparse(shown).split())[:90]
        lines, function = range(statement.lineno, last + 1), ".".join(scope) or "module"
        seen[function, kind, text] += 1
        yield Change(number, kind, function, text, lines, names, seen[function, kind, text])


def changed(tree: ast.Module, wanted: int) -> ast.Module:
    """The tree with one change."""
    tree = copy.deepcopy(tree)
    node, kind, _, _ = list(_places(tree))[wanted]
    if isinstance(node, ast.Compare):
        swap = _OPPOSITE if kind == "opposite" else _COMPARE
        node.ops[0] = swap[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = _OPERATE[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub):
            node.op = ast.UAdd()
        else:
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant):
        node.value = 10 * node.value if node.value else 1
    elif isinstance(node, ast.If):
        node.test = ast.Constant(kind == "always")
    elif isinstance(node, ast.Expr):
        node.value = ast.Constant(None)
    return ast.fix_missing_locations(tree)


_Place = tuple[ast.AST, str, tuple[str, ...], ast.stmt]


def _places(tree: ast.Module) -> Iterator[_Place]:
    for statement in tree.body:
        yield from _walk(statement, (), statement)


def _walk(node: ast.AST, scope: tuple[str, ...], statement: ast.stmt) -> Iterator[_Place]:
    """Expressions that compute; types, texts and the words of errors are left alone."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        scope = (*scope, node.name)
    for kind in _kinds(node):
        yield node, kind, scope, statement
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, scope, statement)


def _kinds(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        return ("comparison", "opposite") if type(node.ops[0]) in _OPPOSITE else ("comparison",)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATE and not _is_type(node):
        return ("operator",)
    if isinstance(node, ast.BoolOp):
        return ("and/or",)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        return ("sign or not",)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ("number",)
    if isinstance(node, ast.If):
        return ("always", "never")
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ("call left out",)
    return ()


def _is_type(node: ast.BinOp) -> bool:
    """Whether ``a | b`` says "one of these types"."""
    parts = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and all(
        isinstance(p, ast.Name | ast.Attribute | ast.BinOp) or getattr(p, "value", 0) is None
        for p in parts
    )
