"""The log of a run by mail (``-e``). Owns smtplib.

Entries are gathered between runs until there are ``threshold`` of them; the history keeps them as the text that
:func:`packed` makes, until they were sent.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from poca import text
from poca.errors import MailError
from poca.model import Email, Event, Level

if TYPE_CHECKING:
    import smtplib
    from email.message import EmailMessage

_WHOLE = 4                  # all steps of sending together may take so many times the timeout of one
_KEPT = "its entries are kept for the next one"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the log that is to be mailed, and what the subject says of it."""

    line: str
    kind: str = "note"
    level: str = Level.NEWS


def packed(event: Event, line: str) -> str:
    """The log's line of an event as the history keeps it."""
    return json.dumps([line, event.kind, event.level.value])


def unpacked(kept: str) -> LogEntry:
    """The entry of a kept text; any other text is taken as the line itself."""
    try:
        line, kind, level = json.loads(kept)
    except (ValueError, TypeError):
        return LogEntry(kept)
    return LogEntry(str(line), str(kind), str(level))


def due(email: Email, entries: Sequence[LogEntry]) -> list[LogEntry]:
    """The entries to mail now: none as long as there are fewer than the threshold. With ``only_errors`` the others
    neither count nor go out."""
    wanted = [entry for entry in entries if not email.only_errors or entry.level == Level.ERROR]
    return wanted if len(wanted) >= email.threshold else []


def subject(entries: Sequence[LogEntry]) -> str:
    """``poca: 3 downloaded, 2 removed, 1 error``."""
    errors = sum(entry.level == Level.ERROR for entry in entries)
    counts = [(sum(entry.kind == kind for entry in entries), kind) for kind in ("downloaded", "removed")]
    counts.append((errors, "error" if errors == 1 else "errors"))
    told = ", ".join(f"{count} {words}" for count, words in counts if count)
    return f"poca: {told or ('1 entry' if len(entries) == 1 else f'{len(entries)} entries')}"


def send(email: Email, entries: Sequence[LogEntry], *, timeout: float, now: datetime, hostname: str = "") -> str:
    """Sends the entries as one mail. ``timeout``: seconds for each step; all together take at most four times that.
    ``now`` needs a time zone; ``hostname``: the name by which this machine greets, its own if "".

    Gives "", or a sentence that names the receivers which the server turned down while it took others. Raises MailError
    when nothing was sent.
    """
    password = email.password or _password_of(email.password_command, timeout)
    outcome: list[Sequence[str] | OSError | ValueError] = []

    def deliver() -> None:
        try:
            outcome.append(_deliver(email, password, entries, timeout, now, hostname or socket.gethostname()))
        except (OSError, ValueError) as error:
            outcome.append(error)

    # The timeout of smtplib bounds neither a name server nor a mail server that sends a packet now and then.
    thread = threading.Thread(target=deliver, name="mail", daemon=True)
    thread.start()
    thread.join(_WHOLE * timeout)
    result = outcome[0] if outcome else TimeoutError()
    if isinstance(result, (OSError, ValueError)):
        place = f"the mail to {email.toaddr} was not sent by {email.host}:{email.port}"
        raise MailError(_hidden(f"{place}: {_reason(result, timeout)}; {_KEPT}", email, password))
    return _hidden(f"the mail went out, but not to {', '.join(result)}, whom the mail server turned down", email, password) if result else ""


def _deliver(email: Email, password: str, entries: Sequence[LogEntry], timeout: float, now: datetime, hostname: str) -> Sequence[str]:
    """Connects, logs in where there is a password, and sends. The receivers that were turned down, where others were not."""
    import smtplib
    import ssl

    message = _message(email, entries, now, hostname)
    # smtplib of Python 3.13 sends a mail without receivers to nobody, and calls that well.
    receivers = [address.addr_spec for address in message["To"].addresses]
    if not any(receivers):
        raise ValueError("there is no address in settings.email.toaddr")
    # With a name of our own smtplib does not ask the DNS for one.
    server = smtplib.SMTP(email.host, email.port, timeout=timeout, local_hostname=hostname if "." in hostname else "[127.0.0.1]")
    try:
        if email.starttls:
            server.starttls(context=ssl.create_default_context())
        if password:
            _log_in(server, email.user or email.fromaddr, password)
        refused = list(server.send_message(message, to_addrs=receivers))
        # The mail is out, however the server says good-bye.
        with suppress(OSError):
            server.quit()
        return refused
    finally:
        server.close()


def _log_in(server: smtplib.SMTP, user: str, password: str) -> None:
    if (user + password).isascii():
        server.login(user, password)
        return
    # smtplib takes ASCII only; AUTH PLAIN takes UTF-8 (RFC 4616).
    import smtplib

    server.ehlo_or_helo_if_needed()
    code, answer = server.docmd("AUTH", "PLAIN " + base64.b64encode(f"\0{user}\0{password}".encode()).decode())
    if code != 235:
        raise smtplib.SMTPAuthenticationError(code, answer)


def _password_of(command: str, timeout: float) -> str:
    """The first line that the command prints; "" without a command. Raises MailError, which tells nothing of its output."""
    if not command:
        return ""
    # A session of its own, so that all that the shell started can be ended, and closes the pipe.
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, shell=True, stdin=nowhere, stdout=subprocess.PIPE, stderr=nowhere, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise MailError(f"the mail was not sent: password_command took longer than {text.duration(timeout)}; {_KEPT}") from None
        finally:
            _end_session(process)
    password = output.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
    if process.returncode or not password:
        what = f"failed (exit {process.returncode})" if process.returncode else "printed nothing"
        raise MailError(f"the mail was not sent: password_command {what}; {_KEPT}")
    return password


def _end_session(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _message(email: Email, entries: Sequence[LogEntry], now: datetime, hostname: str) -> EmailMessage:
    """RFC 5322; the body in UTF-8, encoded so that servers of 7 bits take it."""
    from email.message import EmailMessage
    from email.utils import format_datetime, make_msgid

    message = EmailMessage()
    message["Subject"] = subject(entries)
    message["From"] = email.fromaddr
    message["To"] = email.toaddr
    message["Date"] = format_datetime(now)
    message["Message-ID"] = make_msgid(domain=hostname)
    body = "".join(f"{entry.line}\n" for entry in entries)
    message.set_content(body.encode("utf-8", "backslashreplace").decode(), cte="quoted-printable")
    return message


def _hidden(sentence: str, email: Email, password: str) -> str:
    """A server may repeat what it was sent, also as AUTH PLAIN and AUTH LOGIN write it."""
    user = email.user or email.fromaddr
    for secret in (password, *(base64.b64encode(words.encode()).decode() for words in (f"\0{user}\0{password}", password))):
        sentence = sentence.replace(secret, "***") if password else sentence
    return text.shown(sentence)


def _reason(error: OSError | ValueError, timeout: float) -> str:
    """The error of a library in plain words."""
    import smtplib
    import ssl

    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(f"{receiver} was turned down ({_said(code, answer)})" for receiver, (code, answer) in error.recipients.items())
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"it refused user and password ({_said(error.smtp_code, error.smtp_error)})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"it said {_said(error.smtp_code, error.smtp_error)}"
    # smtplib tells a timeout as a connection that was closed.
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return f"it did not answer in time (timeout: {text.duration(timeout)})"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return "it ended the connection"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"it does not offer what is asked of it ({error})"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "no encrypted connection came about"
    if isinstance(error, socket.gaierror):
        return "there is no such host, or no network"
    if isinstance(error, ConnectionRefusedError):
        return "it refuses the connection; does a mail server run there?"
    if isinstance(error, ValueError):
        return "an address or the name of the host cannot be used in a mail"
    return error.strerror or str(error) or "the connection failed"


def _said(code: int, answer: bytes | str) -> str:
    return f"{code} {answer.decode('utf-8', 'replace') if isinstance(answer, bytes) else answer}".strip()
