"""The installed poca-subscribe: at a terminal, in a shell's completion, and beside a poca that runs."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from rich.cells import cell_len

from tests.server import Server
from tests.terminal import at_terminal
from tests.world import POCA, Done, Home, Show, ended, until

SUBSCRIBE = POCA.with_name("poca-subscribe")


def start(home: Home, *arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(SUBSCRIBE), "-c", str(home.config), *arguments], env={**home.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, encoding="utf-8", cwd=home.folder,
    )


def subscribe(home: Home, *arguments: str, **env: str) -> Done:
    return ended(start(home, *arguments, **env))


def terminal(home: Home, *arguments: str, columns: int = 80, answers: tuple[tuple[str, str], ...] = (), **env: str) -> tuple[int, str]:
    command = [str(SUBSCRIBE), "-c", str(home.config), *arguments]
    return at_terminal(command, {**home.env, **env}, answers=answers, columns=columns, cwd=str(home.folder))


@pytest.fixture
def show(server: Server) -> Show:
    return Show(server, "show").publish(5)


def test_add_asks_for_what_is_missing(home: Home, show: Show) -> None:
    home.write()
    code, out = terminal(home, "add", answers=(("Address of the feed:", show.url), ("Title [show]:", "Mine"), ("Add Mine? [Y/n]", "")))
    assert code == 0, out
    assert "title: Mine" in home.config.read_text()


def test_add_takes_no_for_an_answer_and_asks_nothing_with_yes(home: Home, show: Show) -> None:
    home.write()
    before = home.config.read_bytes()
    code, _ = terminal(home, "add", show.url, answers=(("Title", ""), ("Add show?", "n")))
    assert (code, home.config.read_bytes()) == (2, before)
    code, out = terminal(home, "add", show.url, "--yes")
    assert (code, "?" in out) == (0, False)


def test_delete_asks_and_no_is_what_it_takes_silence_for(home: Home, show: Show) -> None:
    home.write(show.subscription(max_number=2))
    home.run("-q")
    code, out = terminal(home, "delete", "show", "--files", answers=(("and 2 episodes (10.0 kB)? [y/N]", ""),))
    assert (code, "Nothing was changed" in out, len(home.files())) == (2, True, 2)
    code, out = terminal(home, "delete", "show", "--files", answers=(("[y/N]", "y"),))
    assert (code, len(home.files())) == (0, 0), out


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_no_command_is_wider_than_its_tables_may_be(home: Home, show: Show, columns: int) -> None:
    home.write(show.subscription("日本語の番組 — with a rather long title", max_number=2, category="news"))
    home.run("-q")
    for command in (["list"], ["why", "with"], ["stats"], ["tags", "mp4"]):
        code, out = terminal(home, *command, columns=columns)
        assert code == 0
        tables = [line for line in out.splitlines() if not line.startswith("日本語の番組")]
        assert max(map(cell_len, tables)) <= max(columns, 30)
        assert "\x1b" not in out


def test_no_terminal_and_no_utf8_either(home: Home, show: Show) -> None:
    home.write(show.subscription("Früh 日本", max_number=2))
    for command in (["list"], ["stats"], ["why", "fr"], ["check"], ["export"]):
        done = subscribe(home, *command, LC_ALL="C", LANG="C")
        assert done.code == 0, done
    assert "Früh 日本" in subscribe(home, "export", LC_ALL="C").out
    code, out = terminal(home, "list", PYTHONIOENCODING="ascii")
    assert (code, "Fr\\xfch" in out) == (0, True)


def test_a_closed_pipe_is_no_error(home: Home, show: Show) -> None:
    home.write(*[show.subscription(f"Show {number}", url=f"{show.url}/{number}") for number in range(300)])
    for command in ("list", "export", "check"):
        done = subprocess.run(["bash", "-c", f'"{SUBSCRIBE}" -c "{home.config}" {command} | head -n 1; echo ${{PIPESTATUS[0]}}'],
                              env=home.env, capture_output=True, text=True, check=False)
        assert done.stdout.splitlines()[-1] == "0"
        assert done.stderr == ""
    closed = subprocess.run(["bash", "-c", f'"{SUBSCRIBE}" -c "{home.config}" list >&-'], env=home.env, capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_ctrl_c_at_a_question_changes_nothing(home: Home, show: Show) -> None:
    home.write(show.subscription(max_number=2))
    before = home.config.read_bytes()
    code, out = terminal(home, "delete", "show", answers=(("[y/N]", "\x03"),))
    assert (code, "Traceback" in out) == (130, False)
    code, out = terminal(home, "delete", "show", answers=(("[y/N]", "\x04"),))
    assert (code, "no answer" in out) == (2, True)
    assert home.config.read_bytes() == before


# ---------------------------------------------------------------------------------------------------------- completion

@pytest.mark.parametrize("program", ["poca", "poca-subscribe"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_completion_that_it_can_read(home: Home, program: str, shell: str) -> None:
    done = subprocess.run([POCA.with_name(program), "--print-completion", shell], env=home.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "poca-subscribe titles" in done.stdout
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=done.stdout, text=True, check=False).returncode == 0


def complete(home: Home, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    script = 'source /dev/stdin; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_poca_subscribe; printf "%s\\n" "${COMPREPLY[@]}"'
    code = subprocess.run([SUBSCRIBE, "--print-completion", "bash"], env=home.env, capture_output=True, text=True, check=True).stdout
    env = {**home.env, "PATH": f"{POCA.parent}{os.pathsep}{home.env['PATH']}"}
    done = subprocess.run(["bash", "-c", script, "bash", *words], input=code, env=env, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line]


def test_bash_completes_commands_options_and_titles(home: Home, show: Show) -> None:
    home.write(show.subscription("The Example Hour"), {"title": "News", "url": show.url + "?2"})
    config = home.folder / "home" / ".config" / "poca"
    config.mkdir(parents=True)
    home.config.rename(config / "config.yaml")
    assert complete(home, "poca-subscribe", "en") == ["enable"]
    assert "--files" in complete(home, "poca-subscribe", "delete", "--f")
    assert complete(home, "poca-subscribe", "why", "The") == ["The\\ Example\\ Hour"]
    assert set(complete(home, "poca-subscribe", "delete", "")) == {"The\\ Example\\ Hour", "News"}


def test_nothing_but_the_completion_needs_its_library(home: Home) -> None:
    (home.folder / "shtab.py").write_text("raise ImportError('not here')\n")
    home.write()
    env = {"PYTHONPATH": str(home.folder)}
    assert subscribe(home, "list", **env).code == 0
    done = subscribe(home, "--print-completion", "bash", **env)
    assert (done.code, "shtab" in done.err) == (2, True)


def test_a_list_needs_none_of_the_heavy_libraries(home: Home, show: Show) -> None:
    home.write(show.subscription("Plain", max_number=2))
    home.run("-q")
    script = ("import sys; from poca.subscribe import main; code = main(['-c', sys.argv[1], 'list'])\n"
              "assert code == 0\nprint(sorted({'rich', 'feedparser', 'requests', 'mutagen', 'shtab'} & set(sys.modules)))")
    done = subprocess.run([str(POCA.with_name("python")), "-c", script, str(home.config)], env=home.env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ---------------------------------------------------------------------------------------------------------- both at once

def test_a_title_is_added_and_another_removed_while_poca_runs(home: Home, server: Server, show: Show) -> None:
    slow = Show(server, "slow", frames=2000).publish(1)
    from tests.server import Reply

    server.routes["/slow/1.mp3"] = Reply(body=slow.items[0].body, type="audio/mpeg", drip=0.00001)
    home.write(slow.subscription(max_number=1), show.subscription(max_number=1))
    run = home.start("-q")
    until(lambda: server.count("/slow/1.mp3"))
    busy = subscribe(home, "delete", "Slow", "--files", "--yes")
    assert (busy.code, "busy" in busy.err) == (1, True)
    third = Show(server, "third").publish(1)
    assert subscribe(home, "add", third.url).code == 0
    assert subscribe(home, "list").code == 0
    assert subscribe(home, "disable", "Show", "--files").code in (0, 1)
    run.kill()
    run.wait()
    for pipe in (run.stdout, run.stderr):
        assert pipe
        pipe.close()
    assert subscribe(home, "check").code == 0
    assert subscribe(home, "delete", "Slow", "--files", "--yes").code == 0
    assert not home.hidden()
    assert home.run("-q").code == 0
    assert sorted(home.files()) == ["third/1.mp3"]


def test_two_adds_at_once_are_both_written(home: Home, server: Server) -> None:
    home.write()
    shows = [Show(server, f"show{number}").publish(1) for number in range(6)]
    started = [start(home, "add", show.url) for show in shows]
    codes = [ended(process).code for process in started]
    assert codes == [0] * 6
    text = home.config.read_text()
    assert all(show.url in text for show in shows)
    assert subscribe(home, "check").code == 0
