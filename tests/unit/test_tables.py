"""Tables for terminals of any width, and for pipes."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len

from poca.report import Lines
from poca.tables import Column, cells, show

COLUMNS = [Column("TITLE", folds=True), Column("N", right=True), Column("WHY", folds=True)]
ROWS = [["日本語の番組", "3", "held"], ["[/b] Short", "12", "filtered out by exclude_title, as so many others"], ["", "", ""]]


def shown(width: int | None, encoding: str = "utf-8") -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    show(Lines(stream), COLUMNS, ROWS, width)
    return stream.buffer.getvalue().decode(encoding).splitlines()


def test_in_a_pipe_lines_are_whole_and_columns_aligned() -> None:
    lines = shown(None)
    assert lines[0] == "TITLE          N  WHY"
    assert lines[1] == "日本語の番組   3  held"
    assert lines[2] == "[/b] Short    12  filtered out by exclude_title, as so many others"


@pytest.mark.parametrize("width", [20, 30, 40, 60, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(width: int, encoding: str) -> None:
    lines = shown(width, encoding)
    assert max(map(cell_len, lines)) <= width
    letters = "".join("".join(lines).split())
    for word in ("3", "12", "others", "[/b]"):
        assert word in letters
    assert ("日本語" if encoding == "utf-8" else "\\u65e5") in letters


def test_a_table_without_names_of_columns_has_no_heading() -> None:
    stream = io.StringIO()
    show(Lines(stream), [Column(""), Column("")], [["a", "b"]], None)
    show(Lines(stream), [Column(""), Column("")], [["a", "b"]], 40)
    assert [line.split() for line in stream.getvalue().splitlines()] == [["a", "b"], ["a", "b"]]


def test_cells_are_what_a_terminal_takes() -> None:
    assert [cells(words) for words in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]
