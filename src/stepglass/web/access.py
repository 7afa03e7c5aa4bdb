"""Where a server listens, and whether it asks for a secret."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepglass.errors import ConfigError
from stepglass.settings.schema import Config, setting
from stepglass.units import printable
from stepglass.web import address

try:
    import pwd
except ImportError:
    pwd = None  # type: ignore[assignment]

FIRST_PERSON = 500 if sys.platform == "darwin" else 1000  # the lowest uid of a person
NO_SHELLS = ("nologin", "false", "sync", "halt", "shutdown")


@dataclass(frozen=True, kw_only=True)
class ListenConfig(Config):
    """Settings of every command that serves."""

    port: int | Literal["auto"] = setting(
        "auto", "the port; auto: the first free one from 8770", minimum=0, maximum=65535
    )
    host: str = setting(
        "127.0.0.1", "where to listen; other than this machine alone: only with a token"
    )
    token: Literal["auto"] | bool = setting(
        "auto", "ask for a secret, which is in the address; auto: if somebody else could call"
    )

    def check(self) -> None:
        if self.token is False and not address.is_loopback(self.host):
            raise ConfigError(
                f"--token=False: others can reach --host={self.host}; leave one of the two out"
            )


def warn_of_network(host: str, port: int, say: Callable[[str], None]) -> None:
    """Say so if other machines can connect."""
    if not address.is_loopback(host):
        say(
            f"warning: --host={printable(host)} is open to other machines, and what they see is "
            f"not encrypted; safer: ssh -L {port}:127.0.0.1:{port} this machine"
        )


def needs_token(cfg: ListenConfig) -> bool:
    if cfg.token == "auto":
        return not address.is_loopback(cfg.host) or has_other_people()
    return cfg.token


def has_other_people() -> bool:
    """Could somebody else log in to this machine? True if that cannot be known. Root and one other
    account count as one person."""
    if pwd is None:
        return True
    accounts = pwd.getpwall()
    mine = os.getuid()
    if mine not in {account.pw_uid for account in accounts}:
        return True  # a directory service manages the accounts and does not list them
    people = {account.pw_uid for account in accounts if is_person(account)}
    return len(people if mine == 0 else people | {mine}) > 1


def is_person(account: "pwd.struct_passwd") -> bool:
    has_shell = Path(account.pw_shell or "/bin/sh").name not in NO_SHELLS
    return account.pw_uid >= FIRST_PERSON and has_shell and Path(account.pw_dir).is_dir()
