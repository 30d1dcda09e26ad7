"""Tables: of rich at a terminal that is wide enough for them, else of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

from poca.report import Lines

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2                    # columns between two columns
_NARROWEST = 14             # columns that a column which may be folded needs


@dataclass(frozen=True, slots=True)
class Column:
    """``right``: aligned there, as numbers are; ``folds``: may take several lines at a terminal."""

    name: str
    right: bool = False
    folds: bool = False


Rows = Sequence[Sequence[str]]


def cells(words: str) -> int:
    """Columns that a terminal takes for the words: two for a wide letter, none for a combining one."""
    if words.isascii():
        return len(words)
    from rich.cells import cell_len

    return cell_len(words)


def show(out: Lines, columns: Sequence[Column], rows: Rows, width: int | None) -> None:
    """Shows rows of one-line texts under the columns' names. ``width``: columns of the terminal, None: there is none.

    Where it is too narrow for a table each row is a paragraph. Columns without a name are of a table without a heading.
    """
    fitting = [[out.fitting(cell) for cell in row] for row in rows]
    widths = [max(cells(words) for words in (column.name, *(row[i] for row in fitting))) for i, column in enumerate(columns)]
    least = sum(min(wide, _NARROWEST) if column.folds else wide for column, wide in zip(columns, widths, strict=True)) + _GAP * (len(columns) - 1)
    if width is None:
        _plain(out, columns, fitting, widths)
    elif least <= width:
        _table(out, columns, fitting, width)
    else:
        _paragraphs(out, columns, fitting, width)


def _plain(out: Lines, columns: Sequence[Column], rows: Rows, widths: Sequence[int]) -> None:
    heading = [column.name for column in columns]
    for row in [heading, *rows] if any(heading) else rows:
        padded = []
        for column, words, wide in zip(columns, row, widths, strict=True):
            blanks = " " * (wide - cells(words))
            padded.append(blanks + words if column.right else words + blanks)
        out.line((" " * _GAP).join(padded).rstrip())


def _console(out: Lines, width: int) -> Console:
    from rich.console import Console

    # Without a height it would take a dumb terminal to be 80 columns wide.
    return Console(file=cast(IO[str], out), width=width, height=25, markup=False, emoji=False, highlight=False)


def _table(out: Lines, columns: Sequence[Column], rows: Rows, width: int) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=any(column.name for column in columns), header_style="bold")
    for column in columns:
        table.add_column(column.name, justify="right" if column.right else "left", no_wrap=not column.folds, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    _console(out, width).print(table)


def _paragraphs(out: Lines, columns: Sequence[Column], rows: Rows, width: int) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = _console(out, width)
    for row in rows:
        console.print(Text(row[0], style="bold", overflow="fold"))
        more = (f"{column.name.lower()} {words}".strip() for column, words in zip(columns[1:], row[1:], strict=True) if words)
        console.print(Padding(Text("; ".join(more), overflow="fold"), (0, 0, 0, 2)))
