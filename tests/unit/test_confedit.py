"""Edits of the config's text: what a user who keeps the file by hand would see in a diff."""

from __future__ import annotations

from datetime import date

import pytest
import yaml

from poca.confedit import add_subscriptions, remove_subscription, section, set_value
from poca.errors import EditError

NEW = {"title": "New", "url": "http://n.example"}


def added(text: str, **values: object) -> str:
    return add_subscriptions(text, [{**NEW, **values}])


# ------------------------------------------------------------------------------------------------------- add

@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("", "subscriptions:\n  - title: New\n    url: http://n.example\n", id="empty file"),
        pytest.param("# mine", "# mine\nsubscriptions:\n  - title: New\n    url: http://n.example\n", id="only a comment, no line end"),
        pytest.param(
            "---\n# mine\n...\n# end\n", "---\n# mine\nsubscriptions:\n  - title: New\n    url: http://n.example\n...\n# end\n",
            id="document markers",
        ),
        pytest.param(
            "settings: {base_dir: x}\n\n# end\n",
            "settings: {base_dir: x}\n\n# end\nsubscriptions:\n  - title: New\n    url: http://n.example\n", id="no such section",
        ),
        pytest.param("{}\n", "{subscriptions: [{title: New, url: http://n.example}]}\n", id="flow root, empty"),
        pytest.param("{a: b}", "{a: b, subscriptions: [{title: New, url: http://n.example}]}", id="flow root"),
        pytest.param("{a: b, subscriptions: }", "{a: b, subscriptions: [{title: New, url: http://n.example}]}", id="flow root, no value"),
        pytest.param(
            "subscriptions: []  # none\nx: 1\n", "subscriptions:  # none\n  - title: New\n    url: http://n.example\nx: 1\n", id="empty list",
        ),
        pytest.param("subscriptions: ~", "subscriptions:\n  - title: New\n    url: http://n.example\n", id="null"),
        pytest.param(
            "'subscriptions':\n  # - title: old\n\nx: 1\n",
            "'subscriptions':\n  # - title: old\n  - title: New\n    url: http://n.example\n\nx: 1\n", id="missing value, quoted key",
        ),
        pytest.param(
            "  settings: 1\n  subscriptions:\n", "  settings: 1\n  subscriptions:\n    - title: New\n      url: http://n.example\n",
            id="indented document",
        ),
        pytest.param(
            "subscriptions:\n- title: A\n  url: x\n# end\n",
            "subscriptions:\n- title: A\n  url: x\n- title: New\n  url: http://n.example\n# end\n", id="list not indented",
        ),
        pytest.param(
            "subscriptions:\n    -   title: A\n        url: x\n        # max_number: 3\n    # - title: B\n# end\n",
            "subscriptions:\n    -   title: A\n        url: x\n        # max_number: 3\n    # - title: B\n"
            "    -   title: New\n        url: http://n.example\n# end\n", id="wide indentation, comments of the list",
        ),
        pytest.param(
            "subscriptions:\n- title: A\n\n- title: B\n\nx: 1\n",
            "subscriptions:\n- title: A\n\n- title: B\n\n- title: New\n  url: http://n.example\n\nx: 1\n", id="blank lines between",
        ),
        pytest.param(
            "subscriptions:\n- title: A\n\n- title: B\n\n", "subscriptions:\n- title: A\n\n- title: B\n\n- title: New\n  url: http://n.example\n",
            id="blank line that a removed entry left",
        ),
        pytest.param(
            "subscriptions:\n- {title: A, url: x}\n", "subscriptions:\n- {title: A, url: x}\n- {title: New, url: http://n.example}\n",
            id="flow neighbours",
        ),
        pytest.param(
            "subscriptions: [{title: A, url: x}] # c\n", "subscriptions: [{title: A, url: x}, {title: New, url: http://n.example}] # c\n",
            id="flow list",
        ),
        pytest.param(
            "subscriptions: [\n  {title: A, url: x}  # a\n]\n",
            "subscriptions: [\n  {title: A, url: x},  # a\n  {title: New, url: http://n.example}\n]\n", id="flow list over lines",
        ),
        pytest.param(
            "subscriptions: [\n  {title: A, url: x},  # a\n]\n",
            "subscriptions: [\n  {title: A, url: x},  # a\n  {title: New, url: http://n.example},\n]\n", id="flow list with a last comma",
        ),
        pytest.param(
            "subscriptions:\r\n- title: A\r\n  url: x", "subscriptions:\r\n- title: A\r\n  url: x\r\n- title: New\r\n  url: http://n.example\r\n",
            id="CRLF, no line end",
        ),
        pytest.param(
            "\ufeffsubscriptions:\n- title: A\n", "\ufeffsubscriptions:\n- title: A\n- title: New\n  url: http://n.example\n", id="byte order mark",
        ),
        pytest.param(
            "subscriptions:\n- title: A\n  comment: |\n    x\n\n    # y\n\n# end\n",
            "subscriptions:\n- title: A\n  comment: |\n    x\n\n    # y\n- title: New\n  url: http://n.example\n\n# end\n",
            id="after a block of text",
        ),
        pytest.param(
            "? subscriptions\n: - title: A\n", "? subscriptions\n: - title: A\n  - title: New\n    url: http://n.example\n",
            id="key with a question mark",
        ),
        pytest.param("a:\tb\n", "a:\tb\nsubscriptions:\n  - title: New\n    url: http://n.example\n", id="tab after a colon"),
        pytest.param(
            "b: &b {max_number: 3}\nsubscriptions:\n- <<: *b\n  title: A\n- *b\n",
            "b: &b {max_number: 3}\nsubscriptions:\n- <<: *b\n  title: A\n- *b\n- title: New\n  url: http://n.example\n", id="anchors",
        ),
    ],
)
def test_a_subscription_is_added_in_the_style_of_its_neighbours(old, new):
    assert added(old) == new


def test_options_are_written_in_their_order_with_sections_below_each_other():
    filters = {"hour": [8, 21], "after_date": date(2016, 8, 23)}
    text = added("", max_number=10, from_the_top=True, metadata={"artist": "Jane", "comment": ""}, filters=filters, cover=None)
    assert text.splitlines()[2:] == [
        "    url: http://n.example", "    max_number: 10", "    from_the_top: yes", "    metadata:", "      artist: Jane", "      comment: ''",
        "    filters:", "      hour: [8, 21]", "      after_date: 2016-08-23", "    cover: null",
    ]


@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("The Example Hour", "The Example Hour"), ("Früh", "Früh"), ("日本語", "日本語"), ("Q & A, again", "Q & A, again"),
        ("It's", "It's"),
        ("2024", "'2024'"), ("on", "'on'"), ("12:30", "'12:30'"), ("2024-13-01", "'2024-13-01'"), ("null", "'null'"), ("~", "'~'"),
        ("0x1F", "'0x1F'"), ("1e3", "1e3"),
        ("Foo #1", "'Foo #1'"), ("- x", "'- x'"), ("a: b", "'a: b'"), ("end:", "'end:'"), ("", "''"), (" pad ", "' pad '"), ("'s", "'''s'"),
        ("*a", "'*a'"), ("[x]", "'[x]'"), ("a\nb", '"a\\nb"'), ("\x1b[31m", '"\\x1B[31m"'), ('tab\t"', '"tab\\x09\\""'),
        ("\u202eevil", '"\\u202Eevil"'),
        ("a\u2028b", '"a\\u2028b"'), ("nb\xa0sp", '"nb\\xA0sp"'), ("\U000e0001", '"\\U000E0001"'), ("👨\u200d👩", "'👨\u200d👩'"),
    ],
)
def test_a_title_is_quoted_where_it_has_to_be_and_only_there(title, written):
    text = add_subscriptions("", [{"title": title, "url": "x"}])
    assert text.splitlines()[1] == f"  - title: {written}"
    assert yaml.safe_load(text)["subscriptions"][0]["title"] == title


def test_a_title_that_is_there_already_is_refused():
    for there in ("2024", "'2024'", '"2024"', "|\n    2024"):
        with pytest.raises(EditError, match='a subscription "2024" in the config already'):
            add_subscriptions(f"subscriptions:\n- title: {there}\n".replace("|\n", "|-\n"), [{"title": "2024", "url": "x"}])
    with pytest.raises(EditError, match="already"):
        add_subscriptions("", [NEW, NEW])


def test_several_are_added_at_once():
    assert add_subscriptions("subscriptions:\n- title: A\n\n- title: B\n", [{"title": "C"}, {"title": "D"}]) == (
        "subscriptions:\n- title: A\n\n- title: B\n\n- title: C\n\n- title: D\n"
    )
    assert add_subscriptions("# as it is", []) == "# as it is"


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        ("a: [\n", "no valid YAML"), ("- a\n", "does not consist of sections"), ("a: 1\n---\nb: 2\n", "several documents"),
        ("subscriptions: soon\n", "no list"),
        ("subscriptions: {a: b}\n", "no list"), ("l: &l []\nsubscriptions: *l\n", "no list"), ("subscriptions:\nsubscriptions:\n", "given twice"),
        ("a: *b\n", r"\*b refers to an anchor that is not there"), ("a: &a 1\nb: &a 1\n", "the anchor &a is given twice"),
        ("subscriptions: &l\n- title: A\ncopy: *l\n", "change their meaning"), ("a: |\n  text", "change their meaning"),
        ("a: \x07\n", "no valid YAML"),
        ("[" * 100_000, "no valid YAML"),
    ],
)
def test_what_cannot_be_done_safely_is_refused_and_told(old, reason):
    with pytest.raises(EditError, match=reason) as caught:
        added(old, url="https://joe:pw@n.example/feed?key=secret")
    said = str(caught.value)
    assert 'write this at the end of the list "subscriptions":\n  - title: New\n    url: ' in said
    assert "pw@" not in said
    assert "secret" not in said


# ---------------------------------------------------------------------------------------------------- remove

BLOCK = """\
# my podcasts
subscriptions:   # all
  # morning
  - title: A     # a
    # inside
    url: x

  # evening
  - url: y
    title: "B"
    comment: |
      text

  # night
  - {title: 2024, url: z}
# end
other: 1
"""


@pytest.mark.parametrize(
    ("title", "gone"),
    [("A", [4, 5, 6]), ("B", [9, 10, 11, 12]), ("2024", [15])],
)
def test_only_the_lines_of_a_removed_subscription_go(title, gone):
    lines = BLOCK.splitlines(keepends=True)
    assert remove_subscription(BLOCK, title) == "".join(line for number, line in enumerate(lines, 1) if number not in gone)


def test_the_last_one_leaves_an_empty_list():
    text = BLOCK
    for title in ("A", "B", "2024"):
        text = remove_subscription(text, title)
    assert text == "# my podcasts\nsubscriptions: []   # all\n  # morning\n\n  # evening\n\n  # night\n# end\nother: 1\n"
    assert remove_subscription("\ufeffsubscriptions:\r\n- title: A", "A") == "\ufeffsubscriptions: []\r\n"
    assert remove_subscription("subscriptions: [{title: A}]", "A") == "subscriptions: []"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("subscriptions: [{title: A, url: x}, {title: B}]\n", "subscriptions: [{title: B}]\n"),
        ("subscriptions: [{title: B}, {title: A, url: x}]\n", "subscriptions: [{title: B}]\n"),
        ("subscriptions: [{title: B}, {title: A}, {title: C}]\n", "subscriptions: [{title: B}, {title: C}]\n"),
        ("subscriptions: [\n  {title: A},  # a\n  {title: B}  # b\n]\n", "subscriptions: [\n  {title: B}  # b\n]\n"),
        ("subscriptions: [\n  {title: B},  # b\n  {title: A}  # a\n]\n", "subscriptions: [\n  {title: B},  # b\n]\n"),
        ("subscriptions: [\n  {title: B},\n  {title: A,\n   url: x},\n  ]\n", "subscriptions: [\n  {title: B},\n  ]\n"),
        ("subscriptions: [{title: A},\n  {title: B}]\n", "subscriptions: [\n  {title: B}]\n"),
        ("subscriptions:\n-\n  title: A\n- title: B\n", "subscriptions:\n- title: B\n"),
        ("a: &a {title: A}\nsubscriptions:\n- *a\n- title: B\n", "a: &a {title: A}\nsubscriptions:\n- title: B\n"),
        ("a: &a {title: A}\nsubscriptions:\n- <<: *a\n  url: x\n- title: B\n", "a: &a {title: A}\nsubscriptions:\n- title: B\n"),
    ],
)
def test_removing_works_in_every_style(old, new):
    assert remove_subscription(old, "A") == new


def test_one_whose_anchor_is_used_elsewhere_is_refused_and_its_lines_are_named():
    with pytest.raises(EditError, match=r'\*a refers to an anchor that is not there.*delete the subscription "A" \(lines 2 to 3\)\.'):
        remove_subscription("subscriptions:\n- &a\n  title: A\n- <<: *a\n  title: B\n", "A")


@pytest.mark.parametrize("edit", [remove_subscription, lambda text, title: set_value(text, title, "url", "x")])
def test_no_such_title_and_two_of_it_are_refused(edit):
    for text in (BLOCK, "", "settings: {}", "subscriptions:\n- 1\n-\n- [a]\n"):
        with pytest.raises(EditError, match='no subscription "C" in the config'):
            edit(text, "C")
    with pytest.raises(EditError, match='Several subscriptions bear the title "A" \\(lines 2 and 3 of the config\\)'):
        edit("subscriptions:\n- title: A\n- title: 'A'\n", "A")


# ----------------------------------------------------------------------------------------------- set a value

@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("- title: A\n  url: x   # c\n", "- title: A\n  url: https://n.example/?a=1   # c\n", id="plain"),
        pytest.param("- title: A\n  url: 'x'\n  a: b\n", "- title: A\n  url: https://n.example/?a=1\n  a: b\n", id="quoted"),
        pytest.param("- title: A\n  'url':  # soon\n", "- title: A\n  'url': https://n.example/?a=1  # soon\n", id="nothing"),
        pytest.param("- title: A\n  url: >-\n    x\n\n  a: b\n", "- title: A\n  url: https://n.example/?a=1\n\n  a: b\n", id="folded"),
        pytest.param('- title: A\n  url: "x\n    y"\n', "- title: A\n  url: https://n.example/?a=1\n", id="over two lines"),
        pytest.param("- url:\n    x\n  title: A\n", "- url:\n    https://n.example/?a=1\n  title: A\n", id="on the next line"),
        pytest.param("- {title: A, url: x, a: b}\n", "- {title: A, url: 'https://n.example/?a=1', a: b}\n", id="flow"),
        pytest.param('- {"title":"A","url":"x"}\n', "- {\"title\":\"A\",\"url\": 'https://n.example/?a=1'}\n", id="JSON"),
        pytest.param("- title: A\n", "- title: A\n  url: https://n.example/?a=1\n", id="not there"),
        pytest.param("- a: 1\n  title: >\n    A\n\n  b: 2\n", None, id="title with a line end is another title"),
        pytest.param("- {title: A}\n", "- {title: A, url: 'https://n.example/?a=1'}\n", id="flow, not there"),
        pytest.param("-   title: A", "-   title: A\n    url: https://n.example/?a=1\n", id="not there, no line end"),
        pytest.param("- &a\n  title: A\n  url: x\n- <<: *a\n  title: B\n  url: y\n", None, id="others merge it"),
        pytest.param("- title: A\n  url: x\n  url: y\n", None, id="given twice"),
        pytest.param("- title: A\n  url:\n    - x\n", None, id="a list in block style"),
        pytest.param("- title: A\n  url: &u x\n- title: B\n  url: *u\n", None, id="others use it"),
    ],
)
def test_a_value_is_set_where_it_stands(old, new):
    old = "subscriptions:\n" + old
    if new is None:
        with pytest.raises(EditError):
            set_value(old, "A", "url", "https://n.example/?a=1")
    else:
        assert set_value(old, "A", "url", "https://n.example/?a=1") == "subscriptions:\n" + new


def test_a_new_key_comes_after_the_url():
    assert set_value(BLOCK, "B", "state", "inactive") == BLOCK.replace("  - url: y\n", "  - url: y\n    state: inactive\n")
    assert set_value(BLOCK, "2024", "max_number", 5) == BLOCK.replace("url: z}", "url: z, max_number: 5}")
    assert set_value(BLOCK, "A", "metadata", {"artist": "x"}) == BLOCK.replace("url: x\n", "url: x\n    metadata:\n      artist: x\n")


def test_a_value_that_says_so_already_is_left_as_it_is_written():
    text = "subscriptions:\n- title: A\n  url: 'x'\n  cover: yes\n"
    assert set_value(text, "A", "url", "x") == text
    assert set_value(text, "A", "cover", True) == text


def test_a_merged_value_is_overridden_in_the_entry_itself():
    text = "a: &a {url: x}\nsubscriptions:\n- title: A\n  <<: *a\n"
    assert set_value(text, "A", "url", "y") == "a: &a {url: x}\nsubscriptions:\n- title: A\n  url: y\n  <<: *a\n"


def test_what_cannot_be_set_safely_says_where_to_write_it():
    with pytest.raises(EditError, match=r'write this in the subscription "A" \(line 3\):\n    url: https://n\.example/\?…$'):
        set_value("a: &a {title: A}\nsubscriptions:\n- *a\n".replace("- *a", "# c\n- *a").replace("# c\n", ""), "A", "url", "https://n.example/?secret")


def test_a_nonsense_date_elsewhere_does_no_harm():
    text = "subscriptions:\n- title: A\n  filters: {after_date: 2024-13-01}\n  url: x\n"
    assert set_value(text, "A", "url", "y") == text.replace("url: x", "url: y")


def test_aliases_of_aliases_take_no_time():
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30))
    assert added(bomb + "l: &l [*l]\n").startswith(bomb)


# --------------------------------------------------------------------------------------------------- section

def test_a_section_is_lines_of_text():
    assert section("settings", {"base_dir": "~/podcasts", "id3removev1": False, "email": {"port": 25}}) == (
        "settings:\n  base_dir: ~/podcasts\n  id3removev1: no\n  email:\n    port: 25\n"
    )
    assert section("defaults", {}) == "defaults: {}\n"
