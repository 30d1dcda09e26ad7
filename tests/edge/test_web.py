"""Manners on the network, seen by a server on loopback: hosts, redirects, logins, proxies, certificates, words."""

from __future__ import annotations

import base64
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path

import pytest

from poca.errors import Trouble, WebError
from poca.model import Settings
from poca.web import Answer, Proxies, Web, place, retry_after
from tests.server import CA, HANG, Raw, Reply, Request, Server

Make = Callable[..., Web]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("127.0.0.1", "127.0.0.2") as server:
        yield server


@pytest.fixture
def make() -> Iterator[Make]:
    """Webs with options of Settings, and ``env`` as their whole environment."""
    webs: list[Web] = []

    def make(env: dict[str, str] | None = None, **options: object) -> Web:
        webs.append(Web(Settings(Path("base"), Path("state"), **{"timeout": 2, **options}), {"NETRC": "/dev/null", **(env or {})}))
        return webs[-1]

    yield make
    for web in webs:
        web.close()


def get(web: Web, url: str, **options: object) -> tuple[Answer, bytes]:
    with web.open(url, **{"deadline": 10, **options}) as answer:
        return answer, b"".join(iter(lambda: answer.read(100_000), b""))


def fails(web: Web, url: str, **options: object) -> WebError:
    with pytest.raises(WebError) as caught:
        get(web, url, **options)
    return caught.value


def dead_port() -> int:
    """A port of 127.0.0.1 at which nobody listens."""
    with Server() as server:
        return server.port


# ------------------------------------------------------------------------------------------------------------- answers

def test_an_answer_tells_status_headers_length_and_body(server: Server, make: Make) -> None:
    server.routes["/a"] = Reply(201, b"body", {"X-Thing": "one"})
    answer, body = get(make(), server.url("/a?q=1"))
    assert (answer.status, answer.total, body) == (201, 4, b"body")
    assert answer.headers["x-thing"] == answer.headers["X-THING"] == "one"
    assert "x-other" not in answer.headers
    assert (answer.url, answer.permanent, answer.notes) == (server.url("/a?q=1"), "", ())


def test_each_request_bears_the_user_agent_and_the_headers_asked_for(server: Server, make: Make) -> None:
    get(make(useragent="mine/1 (+héllo ☃)\r\nX: y"), server.url("/a"), headers={"Range": "bytes=1-"})
    headers = server.seen("/a")[0].headers
    assert headers["user-agent"].startswith("mine/1 (+héllo ")
    assert headers["range"] == "bytes=1-" and "x" not in headers
    assert headers["host"] == f"127.0.0.1:{server.port}"


def test_connections_are_kept_where_answers_were_read_to_the_end(server: Server, make: Make) -> None:
    server.routes["/a"] = Reply(body=b"x" * 300_000, etag='"1"')
    server.routes["/chunked"] = Reply(body=b"x" * 5000, chunked=True)
    web = make()
    for _ in range(3):
        get(web, server.url("/a"))
        get(web, server.url("/a"), headers={"If-None-Match": '"1"'})
        get(web, server.url("/chunked"))
        get(web, server.url("/missing"))
    assert server.connections == 1


def test_connections_are_shared_by_threads_one_after_another(server: Server, make: Make) -> None:
    web = make()
    for _ in range(5):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(get, web, server.url("/a")).result()
    assert server.connections == 1


def test_an_answer_that_is_left_early_costs_its_connection_and_no_other_answer(server: Server, make: Make) -> None:
    server.routes["/long"] = Reply(body=b"x" * 1_000_000)
    server.routes["/a"] = Reply(body=b"short")
    web = make()
    with web.open(server.url("/long"), deadline=5) as answer:
        assert answer.read(10) == b"x" * 10
    assert get(web, server.url("/a"))[1] == b"short"
    assert server.connections == 2


def test_a_server_that_closed_a_kept_connection_is_asked_again_silently(server: Server, make: Make) -> None:
    server.routes["/a"] = Reply(body=b"fine", close=True)
    web = make()
    for _ in range(3):
        assert get(web, server.url("/a"))[1] == b"fine"
    assert server.connections == 3


def test_a_server_that_closes_a_kept_connection_on_the_next_request_costs_one_more_sending(server: Server, make: Make) -> None:
    def first_of_its_connection(request: Request) -> Reply | Raw:
        used = [other for other in server.requests if other.connection == request.connection]
        return Reply(body=b"fine") if len(used) == 1 else Raw()

    server.routes["/a"] = first_of_its_connection
    web = make()
    assert [get(web, server.url("/a"))[1] for _ in range(3)] == [b"fine"] * 3
    assert server.count("/a") == 5


def test_importing_it_loads_neither_http_nor_tls() -> None:
    code = "import sys, poca.web, poca.fetch; print([m for m in ('requests', 'urllib3', 'http.client', 'ssl', 'poca.wire') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


# ----------------------------------------------------------------------------------------------------------- addresses

@pytest.mark.parametrize(("written", "asked"), [
    ("/ep 1.mp3", "/ep%201.mp3"),
    ("/ep%201.mp3", "/ep%201.mp3"),
    ("/café.mp3?ü=ö ä", "/caf%C3%A9.mp3?%C3%BC=%C3%B6%20%C3%A4"),
    ("/100%.mp3", "/100%25.mp3"),
    ("/Don't stop!.mp3", "/Don't%20stop!.mp3"),
    ("/a|b^c`d\\e{f}<g>\"h", "/a%7Cb%5Ec%60d%5Ce%7Bf%7D%3Cg%3E%22h"),
    ("/a%20b%.mp3?100%", "/a%20b%25.mp3?100%25"),
    ("/a%2Fb;c=1,2?x=http://h/%C3%BC&y=[1]+2#part", "/a%2Fb;c=1,2?x=http://h/%C3%BC&y=%5B1%5D+2"),
    ("", "/"),
    ("?q", "/?q"),
    ("/../x/./y", "/x/y"),
])
def test_a_url_is_quoted_once(server: Server, make: Make, written: str, asked: str) -> None:
    get(make(), f"  {server.url(written)}\n")
    assert [request.target for request in server.requests] == [asked]


@pytest.mark.parametrize("url", [
    "http://a..b/", "http://.a/", "http:///x", "http://", "http://127.0.0.1:99999/", "http://127.0.0.1:0/", "http://127.0.0.1:x/",
    "http://[::1/", "http://[zz]/", "http://a\0b/", "http://127.0.0.1/\0", "http://a b/", "http://%61/", "http://" + "a" * 64 + ".org/",
    "http://" + "ä" * 70 + "/", "http://" + "a." * 140 + "b/", "http://\ud800/", "http://127.0.0.1/\ud800", "ftp://127.0.0.1/x",
    "file:///etc/passwd", "data:text/xml,<rss/>", "javascript:alert(1)", "127.0.0.1/feed", "/feed", "", "http:127.0.0.1", "http://a\u2028b/", "http://℀.org/",
])
def test_an_address_that_cannot_be_asked_is_told(make: Make, url: str) -> None:
    error = fails(make(), url)
    assert error.trouble is Trouble.URL
    assert not error.again


def test_names_of_hosts_are_taken_in_any_script_and_case() -> None:
    assert place("HTTP://BÜCHER.Example.:80/x").url == "http://xn--bcher-kva.example/x"
    assert place("https://[2001:DB8::1]:443/").url == "https://[2001:db8::1]/"


@pytest.mark.parametrize("url", ["http://me:pa/ss@host/", "http://me:secret@a..b/?key=hidden", "http://me:secret@127.0.0.1:port/?key=hidden"])
def test_a_bad_address_is_told_without_its_secrets(make: Make, url: str) -> None:
    assert not any(secret in str(fails(make(), url)) for secret in ("secret", "hidden", "ss@"))


# ---------------------------------------------------------------------------------------------------------------- gate

def many(web: Web, urls: list[str], parallel: int = 16) -> None:
    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(lambda url: get(web, url), urls))


def test_no_host_is_asked_more_often_at_once_than_per_host_allows_and_each_has_its_own_places(server: Server, make: Make) -> None:
    server.routes["/a"] = Reply(delay=0.05)
    many(make(per_host=3), [server.url("/a"), server.url("/a", "127.0.0.2")] * 12)
    assert (server.peak("127.0.0.1"), server.peak("127.0.0.2")) == (3, 3)


def test_a_host_counts_as_one_in_any_case_and_at_any_port(make: Make) -> None:
    at_once, peak, lock = [0], [0], threading.Lock()

    def counted(_: Request) -> Reply:
        with lock:
            at_once[0] += 1
            peak[0] = max(peak[0], at_once[0])
        time.sleep(0.03)
        with lock:
            at_once[0] -= 1
        return Reply()

    with Server() as one, Server() as two:
        one.routes["/a"] = two.routes["/a"] = counted
        many(make(per_host=1), [one.url("/a", "localhost"), two.url("/a", "LOCALHOST")] * 3)
    assert peak == [1]


def test_each_redirect_counts_at_the_host_it_leads_to(server: Server, make: Make) -> None:
    server.routes["/to-2"] = lambda request: Reply(302, headers={"Location": server.url("/end", "127.0.0.2")}, delay=0.02)
    server.routes["/end"] = Reply(delay=0.05)
    many(make(per_host=2), [server.url("/to-2")] * 8 + [server.url("/end", "127.0.0.2")] * 8)
    assert server.peak("127.0.0.1") <= 2
    assert server.peak("127.0.0.2") == 2


def test_hosts_that_redirect_to_each_other_lock_nobody_out(server: Server, make: Make) -> None:
    for here, there in (("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")):
        server.routes[f"/from-{here}"] = Reply(302, headers={"Location": server.url("/end", there)}, delay=0.01)
    begin = time.monotonic()
    many(make(per_host=1), [server.url(f"/from-{host}", host) for host in server.hosts] * 10)
    assert server.count("/end") == 20
    assert time.monotonic() - begin < 5


def test_host_delay_lies_between_the_starts_of_two_requests_to_one_host(server: Server, make: Make) -> None:
    server.routes["/first"] = Reply(302, headers={"Location": "/second"})
    web = make(host_delay=0.1)
    many(web, [server.url("/first"), server.url("/a"), server.url("/a"), server.url("/b", "127.0.0.2")])
    begins = sorted(request.at for request in server.requests if request.host == "127.0.0.1")
    assert len(begins) == 4
    assert all(later - earlier > 0.085 for earlier, later in pairwise(begins))
    assert server.seen("/b")[0].at < begins[-1]


def test_a_host_serves_first_who_came_first(server: Server, make: Make) -> None:
    server.routes["/slow"] = Reply(delay=0.3)
    web = make(per_host=1)
    with ThreadPoolExecutor(8) as pool:
        for target in ["/slow", "/1", "/2", "/3", "/4", "/5"]:
            pool.submit(get, web, server.url(target))
            time.sleep(0.03)
    assert [request.target for request in server.requests] == ["/slow", "/1", "/2", "/3", "/4", "/5"]


def test_who_waits_for_a_host_is_aside_and_only_then_and_the_wait_is_not_counted(server: Server, make: Make) -> None:
    stepped: list[str] = []

    @contextmanager
    def aside() -> Iterator[None]:
        stepped.append("out")
        yield
        stepped.append("in")

    server.routes["/slow"] = Reply(delay=0.5)
    web = make(per_host=1)
    get(web, server.url("/a"), aside=aside)
    assert stepped == []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(get, web, server.url("/slow"))
        time.sleep(0.1)
        get(web, server.url("/a"), deadline=0.3, aside=aside)
    assert stepped == ["out", "in"]


def test_who_gives_up_waiting_leaves_the_others_their_places(server: Server, make: Make) -> None:
    @contextmanager
    def aside() -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    server.routes["/slow"] = Reply(delay=0.2)
    for options in ({"per_host": 1}, {"per_host": 2, "host_delay": 0.2}):
        web = make(**options)
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(get, web, server.url("/slow"))
            time.sleep(0.05)
            with pytest.raises(KeyboardInterrupt):
                get(web, server.url("/a"), aside=aside)
            slow.result()
        get(web, server.url("/b"))
    assert server.count("/a") == 0 and server.count("/b") == 2


# ----------------------------------------------------------------------------------------------------------- redirects

@pytest.mark.parametrize(("statuses", "permanent"), [
    ([], ""), ([301], "/1"), ([308, 301], "/2"), ([302], ""), ([307, 301], ""), ([301, 302, 301], "/1"), ([303], ""), ([301, 308, 307], "/2"),
])
def test_redirects_are_followed_and_for_good_as_far_as_they_say_so(server: Server, make: Make, statuses: list[int], permanent: str) -> None:
    for number, status in enumerate(statuses):
        server.routes[f"/{number}"] = Reply(status, headers={"Location": f"/{number + 1}"})
    server.routes[f"/{len(statuses)}"] = Reply(body=b"there")
    answer, body = get(make(), server.url("/0"))
    assert (answer.status, body, answer.url) == (200, b"there", server.url(f"/{len(statuses)}"))
    assert answer.permanent == (server.url(permanent) if permanent else "")


@pytest.mark.parametrize(("location", "asked"), [
    ("b c.xml", "/x/b%20c.xml"), ("?q=1", "/x/a?q=1"), ("../up", "/up"), ("/caf\u00c3\u00a9", "/caf%C3%A9"), ("/caf\u00e9", "/caf%E9"),
    ("//127.0.0.2:{port}/y", "/y"), ("http://127.0.0.2:{port}", "/"), ("/y#part", "/y"), ("/a%20b", "/a%20b"), ("http:///y", "/y"),
])
def test_a_location_may_be_relative_and_hold_anything(server: Server, make: Make, location: str, asked: str) -> None:
    server.routes["/x/a"] = lambda request: Reply() if "?" in request.target else Reply(302, headers={"Location": location.format(port=server.port)})
    assert get(make(), server.url("/x/a"))[0].status in (200, 404)
    assert server.requests[-1].target == asked


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/xml,<rss/>", "http://a..b/", "http://[", "x:y", "//"])
def test_a_redirect_to_what_is_not_fetched_is_an_error(server: Server, make: Make, location: str) -> None:
    server.routes["/a"] = Reply(302, headers={"Location": location})
    error = fails(make(), server.url("/a"))
    assert (error.trouble, error.again) == (Trouble.REDIRECT, False)
    assert server.count("/a") == 1


def test_redirects_in_a_circle_are_told_at_once(server: Server, make: Make) -> None:
    server.routes |= {"/a": Reply(301, headers={"Location": "/b"}), "/b": Reply(301, headers={"Location": "/a"})}
    error = fails(make(), server.url("/a"))
    assert error.trouble is Trouble.REDIRECT and "circle" in str(error)
    assert len(server.requests) == 2


def test_redirects_without_end_are_cut_at_twenty(server: Server, make: Make) -> None:
    server.routes["/a"] = lambda request: Reply(302, headers={"Location": f"/a?{len(server.requests)}"})
    assert fails(make(), server.url("/a")).trouble is Trouble.REDIRECT
    assert len(server.requests) == 21


def test_a_redirect_without_location_is_an_answer(server: Server, make: Make) -> None:
    server.routes["/a"] = Reply(302)
    assert get(make(), server.url("/a"))[0].failure().status == 302


def test_cookies_go_along_the_redirects_of_their_host_and_no_further(server: Server, make: Make) -> None:
    server.routes |= {
        "/a": Reply(302, headers={"Location": "/b", "Set-Cookie": "seen=1"}),
        "/b": Reply(302, headers={"Location": server.url("/c", "127.0.0.2"), "Set-Cookie": "long=" + "x" * 5000}),
    }
    web = make()
    for _ in range(2):
        get(web, server.url("/a"))
    assert [request.headers.get("cookie") for request in server.requests] == [None, "seen=1", None] * 2


def test_what_fails_after_a_redirect_says_where(server: Server, make: Make) -> None:
    port = dead_port()
    server.routes["/a"] = Reply(302, headers={"Location": f"http://127.0.0.2:{port}/b?token=hidden"})
    error = fails(make(), server.url("/a"))
    assert f"connection refused (after a redirect to http://127.0.0.2:{port}/b" in str(error)
    assert "hidden" not in str(error) and error.host == "127.0.0.2"


# -------------------------------------------------------------------------------------------------------------- logins

def login(request: Request) -> str:
    """user:password as sent."""
    return base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()


@pytest.mark.parametrize(("written", "sent"), [
    ("me:secret", "me:secret"), ("me%40home:p%3A%2F%40%25ss", "me@home:p:/@%ss"), ("m%C3%BC:p%c3%b6", "mü:pö"), ("mü:pö", "mü:pö"),
    ("me", "me:"), ("me@home:a@b", "me@home:a@b"), ("me:a:b", "me:a:b"), (":token", ":token"),
])
def test_user_info_is_sent_as_basic_login_and_shows_nowhere(server: Server, make: Make, written: str, sent: str) -> None:
    answer, _ = get(make(), server.url("/a", user=written))
    assert login(server.requests[0]) == sent
    assert "@" not in server.requests[0].target + answer.url


def test_a_login_stays_with_its_host(server: Server, make: Make) -> None:
    server.routes |= {
        "/a": Reply(302, headers={"Location": server.url("/b", "127.0.0.2")}), "/b": Reply(302, headers={"Location": server.url("/c")}),
        "/c": Reply(302, headers={"Location": "/d"}),
    }
    get(make(), server.url("/a", user="me:secret"))
    assert [login(request) for request in server.requests] == ["me:secret", "", "me:secret", "me:secret"]


def test_a_feeds_login_holds_for_its_media_at_the_same_host_only(server: Server, make: Make) -> None:
    web, feed = make(), server.url("/feed", user="me:secret")
    get(web, server.url("/1.mp3"), auth_from=feed)
    get(web, server.url("/2.mp3", "127.0.0.2"), auth_from=feed)
    get(web, server.url("/3.mp3", user="own:one"), auth_from=feed)
    with Server() as other_port:
        get(web, other_port.url("/4.mp3"), auth_from=feed)
        assert "authorization" not in other_port.requests[0].headers
    assert [login(request) for request in server.requests] == ["me:secret", "", "own:one"]


def test_a_login_is_not_sent_on_in_the_clear(server: Server, make: Make) -> None:
    get(make(), server.url("/1.mp3"), auth_from=server.url("/feed", user="me:secret").replace("http:", "https:"))
    assert "authorization" not in server.requests[0].headers


def test_the_address_for_good_keeps_the_login_where_it_holds(server: Server, make: Make) -> None:
    server.routes |= {
        "/a": Reply(301, headers={"Location": "/b"}), "/b": Reply(), "/c": Reply(301, headers={"Location": server.url("/b", "127.0.0.2")}),
    }
    assert get(make(), server.url("/a", user="me:s%40"))[0].permanent == server.url("/b", user="me:s%40")
    assert get(make(), server.url("/c", user="me:s%40"))[0].permanent == server.url("/b", "127.0.0.2")


def test_netrc_is_honoured_where_the_url_has_no_login(server: Server, make: Make, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login nat password n@t:\n")
    web = make({"NETRC": str(tmp_path / "netrc")})
    for url in (server.url("/a"), server.url("/a", user="me:secret"), server.url("/a", "127.0.0.2")):
        get(web, url)
    assert [login(request) for request in server.requests] == ["nat:n@t:", "me:secret", ""]


def test_netrc_in_the_home_is_found_and_a_broken_one_passed_over(server: Server, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login nat password x\n")
    get(make({"NETRC": ""}), server.url("/a"))
    (tmp_path / ".netrc").write_text("machine machine \"")
    get(make({"NETRC": ""}), server.url("/a"))
    assert [login(request) for request in server.requests] == ["nat:x", ""]


# ------------------------------------------------------------------------------------------------------------- proxies

def test_http_goes_by_the_proxy_with_its_own_login(server: Server, make: Make) -> None:
    server.routes["http://example.invalid/feed?x=1"] = Reply(body=b"by proxy")
    web = make({"http_proxy": f"http://pro:x%40y@127.0.0.1:{server.port}", "no_proxy": "127.0.0.2"})
    assert get(web, "http://me:secret@example.invalid/feed?x=1")[1] == b"by proxy"
    sent = server.requests[0].headers
    assert base64.b64decode(sent["proxy-authorization"].removeprefix("Basic ")) == b"pro:x@y"
    assert (sent["host"], login(server.requests[0])) == ("example.invalid", "me:secret")
    get(web, server.url("/direct", "127.0.0.2"))
    assert server.requests[1].target == "/direct"


def test_https_goes_through_a_tunnel_by_the_proxy(make: Make) -> None:
    with Server(tls="good") as origin, Server() as proxy:
        origin.routes["/a"] = Reply(body=b"secret")
        proxy.routes[f"127.0.0.1:{origin.port}"] = Reply(403)
        env = {"HTTPS_PROXY": f"pro:x@127.0.0.1:{proxy.port}", "REQUESTS_CA_BUNDLE": str(CA)}
        error = fails(make(env), origin.url("/a"))
        assert error.trouble is Trouble.CONNECT and "proxy" in str(error) and "403" in str(error) and "pro:x" not in str(error)
        assert (proxy.requests[0].method, "proxy-authorization" in proxy.requests[0].headers) == ("CONNECT", True)
        with relay(origin.port) as port:
            assert get(make({**env, "HTTPS_PROXY": f"http://127.0.0.1:{port}"}), origin.url("/a"))[1] == b"secret"


@contextmanager
def relay(port: int) -> Iterator[int]:
    """A proxy that answers any CONNECT by a tunnel to that port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def copy(source: socket.socket, sink: socket.socket) -> None:
            while data := source.recv(65536):
                sink.sendall(data)

        def serve() -> None:
            with listener.accept()[0] as client, socket.create_connection(("127.0.0.1", port)) as origin:
                while not client.recv(65536).endswith(b"\r\n\r\n"):
                    pass
                client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                back = threading.Thread(target=copy, args=(origin, client))
                back.start()
                copy(client, origin)
                origin.shutdown(socket.SHUT_RDWR)
                back.join()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
    thread.join(0.1)


@pytest.mark.parametrize(("env", "url", "proxy"), [
    ({}, "http://h/", ""),
    ({"http_proxy": "p:1"}, "http://h/", "http://p:1"),
    ({"http_proxy": "p:1"}, "https://h/", ""),
    ({"HTTPS_PROXY": "http://p:1"}, "https://h/", "http://p:1"),
    ({"all_proxy": "http://p:1"}, "https://h/", "http://p:1"),
    ({"http_proxy": "http://p:1", "HTTP_PROXY": "http://q:1"}, "http://h/", "http://p:1"),
    ({"http_proxy": "http://p:1", "no_proxy": "*"}, "http://h/", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "x.org, H"}, "http://h/", ""),
    ({"http_proxy": "http://p:1", "no_proxy": ".x.org"}, "http://a.x.org/", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "x.org"}, "http://a.x.org/", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "x.org"}, "http://ax.org/", "http://p:1"),
    ({"http_proxy": "http://p:1", "no_proxy": "h:81"}, "http://h/", "http://p:1"),
    ({"http_proxy": "http://p:1", "no_proxy": "h:81"}, "http://h:81/", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://10.2.3.4/", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8,junk/x"}, "http://11.2.3.4/", "http://p:1"),
])
def test_the_usual_variables_choose_the_proxy(env: dict[str, str], url: str, proxy: str) -> None:
    assert Proxies(env).find(place(url)) == proxy


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "https://127.0.0.1:1", "http://[", "http://:80"])
def test_a_proxy_that_cannot_be_used_is_told(make: Make, proxy: str) -> None:
    error = fails(make({"all_proxy": proxy}), "http://127.0.0.1/")
    assert error.trouble is Trouble.CONNECT and "proxy" in str(error) and "secret" not in str(error)


# -------------------------------------------------------------------------------------------------------- certificates

def test_a_good_certificate_is_taken_and_its_connection_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CA))
    web = make()
    with Server(tls="good") as server:
        server.routes["/a"] = Reply(body=b"x" * 100_000)
        assert [len(get(web, server.url("/a"))[1]) for _ in range(3)] == [100_000] * 3
        assert len(get(web, server.url("/a", "localhost"))[1]) == 100_000
        assert server.connections == 2


@pytest.mark.parametrize(("certificate", "words"), [
    ("expired", "has expired"), ("wrong-name", "is for another name"), ("stranger", "signed by itself"),
])
def test_a_bad_certificate_is_refused_in_plain_words(make: Make, certificate: str, words: str) -> None:
    with Server(tls=certificate) as server:
        error = fails(make({"REQUESTS_CA_BUNDLE": str(CA)}), server.url("/a"))
        assert server.requests == []
    assert error.trouble is Trouble.CERTIFICATE and words in str(error) and not error.again


def test_an_unknown_authority_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    with Server(tls="good") as server:
        error = fails(make(), server.url("/a"))
    assert error.trouble is Trouble.CERTIFICATE and "unknown issuer" in str(error)


def test_a_bundle_that_cannot_be_read_is_told(make: Make, tmp_path: Path) -> None:
    with Server(tls="good") as server:
        error = fails(make({"REQUESTS_CA_BUNDLE": str(tmp_path / "none.pem")}), server.url("/a"))
    assert error.trouble is Trouble.CERTIFICATE and "none.pem" in str(error)


def test_https_at_a_port_for_http_and_the_other_way_round_are_told(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        def refuse() -> None:
            with listener.accept()[0] as client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                client.recv(65536)

        pool.submit(refuse)
        error = fails(make(), f"https://127.0.0.1:{listener.getsockname()[1]}/a")
    assert (error.trouble, str(error)) == (Trouble.CONNECT, "the server does not speak https here")
    with Server(tls="good") as secure:
        assert fails(make(), secure.url("/a").replace("https:", "http:"))


def test_a_step_from_https_to_http_is_followed_and_told(server: Server, make: Make) -> None:
    server.routes["/b"] = Reply(body=b"in the clear")
    with Server(tls="good") as secure:
        secure.routes["/a"] = Reply(302, headers={"Location": server.url("/b?key=hidden")})
        answer, body = get(make({"REQUESTS_CA_BUNDLE": str(CA)}), secure.url("/a"))
    assert body == b"in the clear"
    assert len(answer.notes) == 1 and "not encrypted" in answer.notes[0] and "hidden" not in answer.notes[0]


# -------------------------------------------------------------------------------------------------------------- errors

def test_a_refused_connection_is_told_apart_from_no_network(make: Make) -> None:
    refused = fails(make(), f"http://127.0.0.1:{dead_port()}/")
    assert (refused.trouble, refused.no_network, refused.again, str(refused)) == (Trouble.CONNECT, False, True, "connection refused")
    unknown = fails(make(), "http://no-such-host.invalid/")
    assert (unknown.trouble, unknown.no_network, unknown.again, unknown.host) == (Trouble.CONNECT, True, True, "no-such-host.invalid")


def test_no_error_holds_a_secret_or_a_name_of_a_library(make: Make) -> None:
    web, port = make(), dead_port()
    with Server() as server:
        server.routes |= {"/junk": Raw(b"junk\r\n\r\n"), "/hang": Raw(HANG), "/gone": Raw()}
        urls = [server.url(f"{path}?key=hidden", user="me:secret") for path in ("/junk", "/hang", "/gone")]
        urls += [f"http://me:secret@127.0.0.1:{port}/?key=hidden", "http://me:secret@a..b/?key=hidden", "http://me:secret@no.invalid/?key=hidden"]
        for url in urls:
            words = str(fails(web, url, deadline=0.3))
            assert not any(part in words for part in ("secret", "hidden", "Error", "Exception", "http.client", "urllib", "Errno", "0x")), words


@pytest.mark.parametrize(("value", "seconds"), [
    ("120", 120), (" 0 ", 0), ("9" * 50, 86_400), ("abc", None), ("", None), ("-5", None), ("1.5", None), ("٣", None),
    (format_datetime(datetime.fromtimestamp(1_000_090, UTC), usegmt=True), 90), (format_datetime(datetime.fromtimestamp(5, UTC), usegmt=True), 0),
    ("Wed, 21 Oct 2099 07:28:00 GMT", 86_400), ("Wed, 99 Oct 2099 07:28:00 GMT", None), ("Fri, 31 Dec 9999 23:59:59 -1200", 86_400),
])
def test_retry_after_comes_in_seconds_or_as_a_date_and_junk_is_passed_over(value: str, seconds: int | None) -> None:
    assert retry_after(value, 1_000_000) == seconds


def test_a_status_that_is_no_success_is_told_with_what_may_be_done(server: Server, make: Make) -> None:
    server.routes |= {"/a": Reply(503, b"<secret page>", {"Retry-After": "7"}), "/b": Reply(410), "/c": Reply(429), "/d": Reply(799)}
    web = make()
    failures = [get(web, server.url(path))[0].failure() for path in ("/a", "/b", "/c", "/d")]
    told = [(one.status, one.again, one.retry_after) for one in failures]
    assert told == [(503, True, 7), (410, False, None), (429, True, None), (799, True, None)]
    assert [str(one) for one in failures[:2]] == ["the server answers 503 (Service Unavailable)", "the server answers 410 (Gone)"]


def test_many_threads_get_each_its_own_answer(server: Server, make: Make) -> None:
    server.routes["/a"] = lambda request: Reply(body=request.target.encode() * 50, chunked=random.random() < 0.5, close=random.random() < 0.2)
    web = make()

    def own(number: int) -> bool:
        return get(web, server.url(f"/a?{number}"))[1] == f"/a?{number}".encode() * 50

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(own, range(300)))
