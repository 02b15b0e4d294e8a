"""What docs/threat-model.md promises and a Seatbelt profile can keep: probes, twins, and changes that must be noticed.

A promise is named as the page names it, by its heading or its bold word.
"""

from __future__ import annotations

from dataclasses import dataclass

from netsandbox_portmap import REWIRE_PORT

from netsandbox.backends.seatbelt.profile.mac_paths import RUN_BY_GIT
from netsandbox.backends.seatbelt.profile.profile_settings import DOORS, NetworkSettings, OwnPaths, ProfileSettings
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from tests.seatbelt_model.request import UDP, Request, bind, connect, connect_unix, file, listen, lookup

HOME, APP, STATE = "/Users/me", "/Users/me/src/app", "/Users/me/.local/state/netsandbox"
MAP, SOCKET, CODE = f"{STATE}/sessions/1/ports", f"{HOME}/run/engine.sock", f"{HOME}/src/app/.venv/netsandbox"
TERMINAL, OTHER_TERMINAL = "/dev/ttys003", "/dev/ttys004"
HTTP, DNS, ASKING, HOST, WINDOW = 21001, 21002, 21003, 5432, 20000
OTHER_WINDOW, OTHER_DOOR = 20100, 21101
SETTINGS = ProfileSettings(  # with about as much opened as a user can open: denies are worth something only there
    APP,
    HOME,
    read=(HOME, "/System"),
    kept=tuple((APP, f".git/{name}") for name in RUN_BY_GIT),
    temporary=("/private/var/folders/ab/cd/T",),
    terminal=TERMINAL,
    own=OwnPaths(hidden=(STATE,), sealed=(CODE,), port_map=MAP),
    network=NetworkSettings(DOORS, HTTP, DNS, ASKING, REWIRE_PORT, WINDOW, 2, (HOST,), (SOCKET,)),
)
TEXT = session_profile(SETTINGS)


@dataclass(frozen=True)
class Promise:
    """What every model must deny, and what every one must allow. `changes` are pairs: what stands in the profile, and
    what would stand there instead, each of which breaks this promise."""

    name: str
    denied: tuple[Request, ...]
    allowed: tuple[Request, ...]
    changes: tuple[tuple[str, str], ...]


def target(operation: str, whose: str) -> Request:
    return Request(operation, attributes={"target": whose})


def named(operation: str, key: str, value: str) -> Request:
    return Request(operation, attributes={key: value})


ON_TERMINALS = ("file-read-data", "file-write-data", "file-ioctl")


def on_terminal(operation: str, path: str, extension: str | None = None) -> Request:
    """*extension* is what the kernel gives whoever makes a terminal."""
    return Request(operation, path=path, attributes={"extension": extension})


PROMISES = (
    Promise(
        "The network beyond the policy",
        denied=(
            connect("203.0.113.7", HTTP),
            connect("203.0.113.7", 443),
            connect("2001:db8::7", 443),
            connect("203.0.113.7", DNS, UDP),
            connect("203.0.113.7", 53, UDP),
            connect("203.0.113.7", 443, UDP),
            connect("192.168.1.10", 80),
            connect("169.254.169.254", 80),
            connect("fe80::1", 80),
            connect("192.168.1.9", 80, own=True),
            connect("127.0.0.1", 22),
            connect("::1", 631),
            connect("127.0.0.1", 53, UDP),
            connect("127.0.0.1", HTTP, UDP),
            connect("224.0.0.251", 5353, UDP),
            connect_unix("/private/var/run/mDNSResponder"),
            lookup("com.apple.dnssd.service"),
            lookup("com.apple.mDNSResponder"),
            lookup("com.apple.nsurlsessiond"),
            lookup("com.apple.trustd.agent"),
        ),
        allowed=(
            connect("127.0.0.1", HTTP),
            connect("::1", HTTP),
            connect("127.0.0.1", DNS),
            connect("127.0.0.1", DNS, UDP),
            connect("::1", DNS),
            connect("::1", DNS, UDP),
            connect("::1", ASKING),
            lookup("com.apple.system.opendirectoryd.libinfo"),
        ),
        changes=(
            (f'(remote tcp "localhost:{HTTP}")', f'(remote tcp "*:{HTTP}")'),
            (f'(remote tcp "localhost:{HTTP}")', '(remote tcp "localhost:*")'),
            (f'(remote tcp "localhost:{HTTP}")', f'(local tcp "localhost:{HTTP}")'),
            (f'(remote tcp "localhost:{HTTP}")', ""),
            (f'(remote udp "localhost:{DNS}")', '(remote udp "*:53")'),
            ("(deny network*)", "(allow network*)"),
            ("(deny default)", "(allow default)"),
            ("(deny mach-lookup\n", "(allow mach-lookup\n"),
            ('(global-name "com.apple.logd")', '(global-name-prefix "com.apple.")'),
            (
                '(deny network-outbound\n  (literal "/private/var/run',
                '(allow network-outbound\n  (literal "/private/var/run',
            ),
        ),
    ),
    Promise(
        "The record",
        denied=(
            file("file-write-data", f"{STATE}/sessions/1/audit.jsonl"),
            file("file-write-unlink", f"{STATE}/sessions/1/audit.jsonl"),
            file("file-write-create", f"{STATE}/sessions/1/audit.jsonl"),
            file("file-read-data", f"{STATE}/sessions/1/audit.jsonl"),
            file("file-write-unlink", STATE),
            file("file-write-data", MAP),
            file("file-write-unlink", MAP),
            file("file-write-data", f"{CODE}/gate.py"),
            file("file-write-create", f"{CODE}/new.py"),
            file("file-write-unlink", f"{APP}/.venv"),
            connect_unix(f"{STATE}/sessions/1/control"),
        ),
        allowed=(
            file("file-read-data", MAP),
            file("file-read-data", f"{CODE}/gate.py"),
            file("file-write-create", f"{APP}/.venv/other/new.py"),
        ),
        changes=(
            (f'  (subpath "{STATE}")', '  (subpath "/nowhere")'),
            (f'  (literal "{MAP}"))', '  (literal "/nowhere"))'),
            (f'  (subpath "{CODE}")', '  (subpath "/nowhere")'),
            (f'  (literal "{APP}/.venv")', '  (literal "/nowhere")'),
            ("(deny file-write* file-write-data\n", "(deny file-write-xattr\n"),
        ),
    ),
    Promise(
        "The processes outside",
        denied=(
            target("signal", "others"),
            target("signal", "pgrp"),
            target("process-info-pidinfo", "others"),
            target("mach-priv-task-port", "others"),
            target("mach-task-name", "others"),
            target("mach-task-read", "others"),
            named("sysctl-read", "sysctl-name", "kern.procargs2.1"),
            named("sysctl-read", "sysctl-name", "kern.proc.all"),
            named("ipc-posix-shm-write-create", "ipc-posix-name", "/x"),
            named("ipc-posix-shm-read-data", "ipc-posix-name", "/x"),
            Request("ipc-sysv-shm"),
            connect_unix("/private/var/run/docker.sock"),
            connect_unix("/private/tmp/com.apple.launchd.x/Listeners"),
            Request("appleevent-send"),
            Request("job-creation"),
            Request("lsopen"),
            Request("mach-register"),
            lookup("com.apple.coreservices.launchservicesd"),
            lookup("com.apple.SecurityServer"),
            lookup("com.apple.pasteboard.1"),
            file("process-exec*", "/usr/bin/osascript"),
            file("process-exec*", "/bin/launchctl"),
        ),
        allowed=(
            target("signal", "same-sandbox"),
            target("process-info-pidinfo", "same-sandbox"),
            target("mach-priv-task-port", "same-sandbox"),
            named("ipc-posix-sem-create", "ipc-posix-name", "/x"),
            named("sysctl-read", "sysctl-name", "hw.ncpu"),
            file("process-exec*", "/bin/sh"),
            lookup("com.apple.system.notification_center"),
        ),
        changes=(
            ("(allow signal\n  (target self)", "(allow signal\n  (target others)"),
            ("(allow signal\n", "(allow signal)\n(allow signal\n"),
            ("(allow process-info*\n", "(allow process-info*)\n(allow process-info*\n"),
            ("(allow mach-priv-task-port\n", "(allow mach*)\n(allow mach-priv-task-port\n"),
            ("  (target same-sandbox))\n(allow process-info*", ")\n(allow process-info*"),
            ("(deny sysctl-read\n", "(allow sysctl-read\n"),
            ("(deny appleevent-send)", "(allow appleevent-send)"),
            ("(deny job-creation)", "(allow job-creation)"),
            ("(deny lsopen)", "(allow lsopen)"),
            ('(ipc-posix-name "apple.shm.notification_center")', ""),
        ),
    ),
    Promise(
        "Other sessions",
        denied=(
            connect("127.0.0.1", OTHER_WINDOW),
            connect("::1", OTHER_DOOR),
            bind("127.0.0.1", OTHER_WINDOW),
            bind("::1", OTHER_WINDOW, UDP),
            listen("127.0.0.1", OTHER_WINDOW),
            bind("127.0.0.1", HTTP),
            listen("127.0.0.1", DNS),
            connect_unix(f"{STATE}/sessions/2/control"),
            file("file-read-data", f"{STATE}/sessions/2/audit.jsonl"),
            file("file-read-data", f"{STATE}/sessions/2/ports"),
        ),
        allowed=(
            connect("127.0.0.1", WINDOW),
            bind("127.0.0.1", WINDOW),
            bind("::1", WINDOW + 1, UDP),
            listen("::1", WINDOW + 1),
            file("file-read-data", MAP),
        ),
        changes=(
            (f'(local ip "localhost:{WINDOW}")', '(local ip "localhost:*")'),
            (f'(remote tcp "localhost:{WINDOW}")', '(remote tcp "localhost:*")'),
            (f'(local ip "localhost:{WINDOW + 1}")', ""),
            (f'(literal "{MAP}"))', f'(subpath "{STATE}"))'),
        ),
    ),
    Promise(
        "Files",
        denied=(
            file("file-read-data", f"{HOME}/.ssh/id_ed25519"),
            file("file-read-metadata", f"{HOME}/.aws/credentials"),
            file("file-read-data", f"{HOME}/Library/Keychains/login.keychain-db"),
            file("file-read-data", f"{HOME}/.config/git/credentials"),
            file("file-read-data", f"{HOME}/.local/share/uv/credentials/x"),
            file("file-read-data", f"{HOME}/.cargo/credentials.toml"),
            file("file-read-data", f"{HOME}/.local/share/fish/fish_history"),
            file("file-write-data", f"{HOME}/.bundle/config"),
            file("file-read-data", "/Users/you/letter"),
            file("file-write-create", f"{HOME}/Documents/letter"),
            file("file-write-data", f"{HOME}/.zshrc"),
            file("file-write-create", f"{HOME}/Library/LaunchAgents/x.plist"),
            file("file-write-create", f"{APP}/.git/hooks/pre-commit"),
            file("file-write-data", f"{APP}/.git/config"),
            file("file-write-create", f"{APP}/.vscode/tasks.json"),
            file("file-write-create", f"{APP}/.VSCode/tasks.json"),
            file("file-write-create", f"{APP}/.GIT"),
            file("file-write-data", f"{APP}/.git/HOOKS/pre-commit"),
            file("file-write-unlink", f"{APP}/.git"),
            file("file-write-create", f"{APP}/.git"),
            file("file-write-unlink", APP),
            file("file-write-data", "/usr/local/bin/x"),
            file("file-write-data", f"{HOME}/src/other/x"),
        ),
        allowed=(
            file("file-read-data", f"{APP}/x"),
            file("file-write-create", f"{APP}/x"),
            file("file-write-data", f"{APP}/.git/index"),
            file("file-write-create", f"{APP}/.vscodex/tasks.json"),
            file("file-write-create", f"{APP}/sub/.vscode/tasks.json"),
            file("file-write-create", f"{APP}/.gitignore"),
            file("file-read-data", f"{APP}/.git/config"),
            file("file-write-create", "/private/var/folders/ab/cd/T/x"),
            file("file-read-data", "/usr/lib/dyld"),
            file("file-read-data", f"{HOME}/.gitconfig"),
            file("file-read-data", f"{HOME}/.config/git/ignore"),
            file("file-read-data", f"{HOME}/.bundle/config"),
            file("file-read-data", f"{HOME}/.local/share/uv/tools/x"),
            file("file-write-create", f"{HOME}/.cargo/registry/x"),
            file("process-exec*", f"{APP}/node_modules/.bin/x"),
        ),
        changes=(
            (f'(subpath "{HOME}/.ssh")', '(subpath "/nowhere")'),
            (f'(subpath "{HOME}/.ssh")', f'(subpath "{HOME}/.ssh/")'),
            (f'(subpath "{HOME}/.config/git/credentials")', '(subpath "/nowhere")'),
            (f'(subpath "{HOME}/.local/share/uv/credentials")', '(subpath "/nowhere")'),
            ("[hH][oO][oO][kK][sS]($|/)", "hooks($|/)"),
            ("[.][gG][iI][tT]$", "[.]git$"),
            ("[.][vV][sS][cC][oO][dD][eE]($|/)", "[.][vV][sS][cC][oO][dD][eE]"),
            (f'(subpath "{APP}")', f'(subpath "{HOME}")'),
            (f'(subpath "{APP}")', f'(literal "{APP}")'),
            ('(subpath "/private/var/folders/ab/cd/T")', '(subpath "/nowhere")'),
        ),
    ),
    Promise(
        "Our own files under other names",
        denied=(
            file("file-read-data", f"/System/Volumes/Data{STATE}/sessions/1/audit.jsonl"),
            file("file-write-data", f"/System/Volumes/Data{CODE}/gate.py"),
            file("file-link", f"{STATE}/sessions/1/audit.jsonl"),
            file("file-write-unlink", f"{APP}/.venv"),
        ),
        allowed=(
            file("file-read-data", "/System/Library/Frameworks/x"),
            file("file-write-unlink", f"{APP}/node_modules"),
        ),
        changes=(
            ('  (subpath "/System/Volumes/Data")', '  (subpath "/nowhere")'),
            (f'  (literal "{APP}/.venv")', '  (literal "/nowhere")'),
        ),
    ),
    Promise(
        "Published ports",
        denied=(
            bind("0.0.0.0", WINDOW),
            bind("::", WINDOW),
            bind("192.168.1.10", WINDOW),
            listen("0.0.0.0", WINDOW),
            listen("2001:db8::1", WINDOW),
            bind("127.0.0.1", 3000),
            bind("127.0.0.1", 0),
            listen("::1", 8080),
        ),
        allowed=(bind("127.0.0.1", WINDOW), listen("127.0.0.1", WINDOW), bind("::1", WINDOW), listen("::1", WINDOW)),
        changes=(
            (f'(local ip "localhost:{WINDOW}")', f'(local ip "*:{WINDOW}")'),
            (f'(local ip "localhost:{WINDOW}")', ""),
            ("(allow network-inbound\n", "(allow network*)\n(allow network-inbound\n"),
        ),
    ),
    Promise(
        "Ports of the host that you open",
        denied=(
            connect("127.0.0.1", HOST + 1),
            connect("127.0.0.1", HOST, UDP),
            connect("203.0.113.7", HOST),
            bind("127.0.0.1", HOST),
            listen("::1", HOST),
        ),
        allowed=(connect("127.0.0.1", HOST), connect("::1", HOST)),
        changes=(
            (f'(remote tcp "localhost:{HOST}")', f'(remote ip "localhost:{HOST}")'),
            (f'(remote tcp "localhost:{HOST}")', f'(remote tcp "*:{HOST}")'),
            (f'(remote tcp "localhost:{HOST}")', f'(remote tcp4 "localhost:{HOST}")'),
        ),
    ),
    Promise(
        "Unix sockets that you allow",
        denied=(
            connect_unix(f"{SOCKET}2"),
            connect_unix(f"{HOME}/run/other.sock"),
            connect_unix(f"{APP}/own.sock"),
            Request("network-bind", path=SOCKET),
            Request("network-inbound", path=SOCKET),
            Request("network-bind", path=f"{APP}/own.sock"),
            file("file-write-unlink", SOCKET),
            file("file-write-create", SOCKET),
        ),
        allowed=(connect_unix(SOCKET), file("file-read-metadata", SOCKET)),
        changes=(
            (f'(allow network-outbound\n  (literal "{SOCKET}"))', f'(allow network-outbound\n  (prefix "{SOCKET}"))'),
            (f'(allow network-outbound\n  (literal "{SOCKET}"))', f'(allow network*\n  (literal "{SOCKET}"))'),
            (f'(allow network-outbound\n  (literal "{SOCKET}"))', ""),
        ),
    ),
    Promise(
        "The preload library",
        denied=(
            bind("127.0.0.1", 3000),
            bind("0.0.0.0", 3000),
            listen("127.0.0.1", 3000),
            connect("127.0.0.1", 3000),
            file("file-write-data", MAP),
        ),
        allowed=(bind("127.0.0.1", WINDOW), connect("127.0.0.1", ASKING), file("file-read-data", MAP)),
        changes=(
            (f'(local ip "localhost:{WINDOW}")', '(local ip "localhost:3000")'),
            (f'(remote tcp "localhost:{ASKING}")', ""),
            (f'(remote tcp "localhost:{ASKING}")', '(remote tcp "localhost:3000")'),
        ),
    ),
    Promise(
        "Terminals",
        denied=(
            *(on_terminal(operation, OTHER_TERMINAL) for operation in ON_TERMINALS),
            on_terminal("file-write-data", "/dev/console"),
            on_terminal("file-write-unlink", TERMINAL),
        ),
        allowed=(
            *(on_terminal(operation, TERMINAL) for operation in ON_TERMINALS),
            *(on_terminal(operation, OTHER_TERMINAL, "com.apple.sandbox.pty") for operation in ON_TERMINALS),
        ),
        changes=(
            (f'(literal "{TERMINAL}")', '(subpath "/dev")'),
            (f'(literal "{TERMINAL}")', '(literal "/nowhere")'),
            ('(extension "com.apple.sandbox.pty")', ""),
            ('(literal "/dev/ptmx")', '(prefix "/dev/")'),
        ),
    ),
    Promise(
        "The kernel",
        denied=(
            named("system-socket", "socket-domain", "AF_SYSTEM"),
            Request("system-kext-load"),
            Request("nvram-set"),
            Request("iokit-open-user-client"),
            Request("file-mount"),
            named("sysctl-write", "sysctl-name", "net.inet.ip.forwarding"),
        ),
        allowed=(Request("process-fork"), named("sysctl-write", "sysctl-name", "kern.grade_cputype")),
        changes=(
            ("(deny system-socket)", "(allow system-socket)"),
            ("(allow process-fork)", "(allow process-fork) (allow iokit*)"),
            ('(sysctl-name "kern.grade_cputype")', ""),
            ("(allow process-fork)", ""),
        ),
    ),
)
BY_NAME = {promise.name: promise for promise in PROMISES}
