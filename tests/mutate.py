"""Changes the code that decides, one spot at a time, and lists the changes that no test notices.

    make mutate MUTANTS=200     or: python -m tests.mutate --mutants 200 --seed 7

Each change is made in a copy of the tree, in which the tests of its module are run. What survives is either a test that is
missing or a change that nobody could notice; a person has to tell which (docs/verification.rst).
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
LIMIT = 300         # seconds for the tests of one change: one that never ends is noticed, too
_PLAN = ["unit/test_planner.py", "property/test_planner_properties.py"]
_NAMES = ["unit/test_naming.py", "property/test_naming_properties.py", *_PLAN]
_STATE = ["unit/test_state.py", "property/test_state_properties.py", "edge/test_damaged_history.py"]
TESTS = {
    "planner": _PLAN,
    "identity": _PLAN,
    "patience": _PLAN,
    "naming": _NAMES,
    "templates": _NAMES,
    "filters": ["unit/test_filters.py", "property/test_filters_properties.py"],
    "state": _STATE,
    "statefile": _STATE,
}
_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
}


@dataclass(frozen=True)
class Change:
    module: str
    number: int                 # of the spot, in the order of the tree
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line}: {self.before}  ->  {self.after}"


def _changed(node: ast.AST) -> ast.AST | None:
    """The node with the one change that is made to its kind; None where none is."""
    match node:
        case ast.Compare(ops=[operator]):
            return ast.Compare(node.left, [_OPPOSITES[type(operator)]()], node.comparators)     # type: ignore[list-item]
        case ast.BoolOp():
            return ast.BoolOp(_OPPOSITES[type(node.op)](), node.values)                         # type: ignore[arg-type]
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return ast.BinOp(node.left, _OPPOSITES[type(node.op)](), node.right)                # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(number)):
            return ast.Constant(number + 1)
        case ast.Constant(value=str(text)) if text:
            return ast.Constant("")
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
    return None


def _spots(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Each place of a node: its parent, the field, the index in it, and the node; but for annotations, docstrings and
    the texts of errors, which people read and programs do not."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list") or isinstance(parent, (ast.Raise, ast.JoinedStr, ast.FormattedValue)):
                continue
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                docstring = isinstance(parent, ast.Expr)
                if isinstance(node, ast.AST) and not docstring:
                    yield parent, name, index if isinstance(value, list) else None, node


def changes(module: str) -> list[Change]:
    tree = ast.parse((REPOSITORY / "poca" / f"{module}.py").read_text(encoding="utf-8"))
    found = []
    for number, (_, _, _, node) in enumerate(_spots(tree)):
        if (new := _changed(node)) is not None:
            found.append(Change(module, number, getattr(node, "lineno", 0), ast.unparse(node), ast.unparse(new)))
    return found


def applied(change: Change, source: str) -> str:
    tree = ast.parse(source)
    parent, name, index, node = list(_spots(tree))[change.number]
    new = _changed(node)
    assert new is not None
    if index is None:
        setattr(parent, name, new)
    else:
        getattr(parent, name)[index] = new
    return ast.unparse(ast.fix_missing_locations(tree))


def passes(module: str, copy: Path) -> bool:
    """Whether the tests of a module pass in the copy. Raises TimeoutExpired."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *(f"tests/{test}" for test in TESTS[module])]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LIMIT, check=False).returncode == 0


def fate(change: Change, copy: Path) -> str:
    """What the tests make of it: noticed, endless or survived."""
    path = copy / "poca" / f"{change.module}.py"
    source = path.read_text(encoding="utf-8")
    path.write_text(applied(change, source), encoding="utf-8")
    try:
        return "survived" if passes(change.module, copy) else "noticed"
    except subprocess.TimeoutExpired:
        return "endless"
    finally:
        path.write_text(source, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    every = [change for module in TESTS for change in changes(module)]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.mutants, len(every)))
    began, fates = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="poca-mutate-") as folder:
        copy = Path(folder)
        for name in ("poca", "tests", "docs", "bin"):
            shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("setup.cfg", "setup.py", "pyproject.toml", "sample_config.yaml", "README.rst"):
            shutil.copy(REPOSITORY / name, copy)
        if failing := [module for module in TESTS if not passes(module, copy)]:
            parser.exit(1, f"without any change the tests fail of: {', '.join(failing)}\n")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):       # what is known by then is told
            for change in chosen:
                what = fate(change, copy)
                fates[what] += 1
                if what == "survived":
                    print(change, flush=True)
    told = ", ".join(f"{count} {what}" for what, count in fates.most_common())
    print(f"{fates.total()} of {len(every)} changes in {time.monotonic() - began:.0f} s, seed {arguments.seed}: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
