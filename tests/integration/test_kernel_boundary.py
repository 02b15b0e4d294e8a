"""The kernel's boundary, attacked from inside with system calls alone (INV-7). Each no has a yes beside it."""

from __future__ import annotations

import errno
import os
import platform
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

# Prints "name errno-name" or "name ok". Nothing here needs more of libc than printf.
PRELUDE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static void said(const char *name, const char *what) { printf("%s %s\n", name, what); fflush(stdout); }
static void tried(const char *name, long result)
{
    said(name, result >= 0 ? "ok" : strerrorname_np(errno) ? strerrorname_np(errno) : "?");
}
#define TRY(name, call) (errno = 0, tried(name, (long)(call)))
static long opened(const char *path, int flags) { int fd = open(path, flags); if (fd >= 0) close(fd); return fd; }
static long written(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY), kept;
    if (fd < 0) return -1;
    long result = write(fd, text, strlen(text));
    kept = errno; close(fd); errno = kept;
    return result;
}
"""

ESCAPES = (
    PRELUDE
    + r"""
static long namespace_child(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid((pid_t)pid, NULL, 0);
    return pid;
}
static long filter(unsigned int flags, int number, unsigned int action)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 4, steps };
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
static void nested_filters(void)
{
    if (fork() == 0) {
        TRY("121-own-listener", filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_socket, SECCOMP_RET_USER_NOTIF));
        TRY("121-allow-all", filter(0, SYS_socket, SECCOMP_RET_ALLOW));
        TRY("121-unix-after-allow", socket(AF_UNIX, SOCK_STREAM, 0));
        TRY("121-packet-after-allow", socket(AF_PACKET, SOCK_RAW, 0));
        TRY("twin-tcp-after-allow", socket(AF_INET, SOCK_STREAM, 0));
        TRY("121-notify-without-listener", filter(0, SYS_socket, SECCOMP_RET_USER_NOTIF));
        TRY("121-unix-after-notify", socket(AF_UNIX, SOCK_STREAM, 0));
        _exit(0);
    }
    wait(NULL);
}
static void change_route(const char *name, int type, int flags)
{
    struct { struct nlmsghdr h; struct rtmsg r; char attributes[16]; } m = { .h = { 0 } };
    struct rtattr *device = (void *)m.attributes;
    char answer[4096];
    int lo = 1, s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    m.h.nlmsg_type = (unsigned short)type;
    m.h.nlmsg_len = NLMSG_LENGTH(sizeof m.r) + RTA_LENGTH(4);
    m.h.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags);
    m.r = (struct rtmsg){ .rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL };
    m.r.rtm_scope = RT_SCOPE_HOST;
    device->rta_type = RTA_OIF;
    device->rta_len = RTA_LENGTH(4);
    memcpy(RTA_DATA(device), &lo, 4);
    send(s, &m, m.h.nlmsg_len, 0);
    recv(s, answer, sizeof answer, 0);
    errno = -((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)answer))->error;
    tried(name, errno ? -1 : 0);
    close(s);
}
static void network(void)
{
    struct ifreq lo = { .ifr_name = "lo" };
    int s = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
    change_route("122-add-route", RTM_NEWROUTE, NLM_F_CREATE);
    change_route("122-delete-route", RTM_DELROUTE, 0);
    TRY("twin-read-flags", ioctl(s, SIOCGIFFLAGS, &lo));
    TRY("122-lo-down", ioctl(s, SIOCSIFFLAGS, &lo));
    TRY("122-transparent", setsockopt(s, SOL_IP, 19, &one, 4));
    TRY("122-mark", setsockopt(s, SOL_SOCKET, SO_MARK, &one, 4));
    TRY("122-nftables", socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
    TRY("twin-rtnetlink", socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
    struct sockaddr_in door = { .sin_family = AF_INET, .sin_port = htons(1009) };
    TRY("122-bind-door", bind(s, (struct sockaddr *)&door, sizeof door));
    door.sin_port = 0;
    TRY("twin-bind", bind(s, (struct sockaddr *)&door, sizeof door));
}
static void processes(pid_t outside)
{
    char byte, path[64];
    struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 }, own = { path, 1 };
    int init = (int)syscall(SYS_pidfd_open, 1, 0), self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    TRY("123-ptrace-init", ptrace(PTRACE_ATTACH, 1, 0, 0));
    TRY("123-seize-init", ptrace(PTRACE_SEIZE, 1, 0, 0));
    TRY("123-read-init", process_vm_readv(1, &here, 1, &there, 1, 0));
    TRY("123-write-init", process_vm_writev(1, &here, 1, &there, 1, 0));
    TRY("123-getfd-init", syscall(SYS_pidfd_getfd, init, 3, 0));
    TRY("123-mem-init", opened("/proc/1/mem", O_RDWR));
    TRY("123-environ-init", opened("/proc/1/environ", O_RDONLY));
    TRY("123-fd-init", opened("/proc/1/fd/3", O_RDONLY));
    TRY("123-signal-outside", kill(outside, 0));
    TRY("123-pidfd-outside", syscall(SYS_pidfd_open, outside, 0));
    snprintf(path, sizeof path, "/proc/%d/mem", outside);
    TRY("124-proc-outside", opened(path, O_RDONLY));
    TRY("twin-read-self", process_vm_readv(getpid(), &here, 1, &own, 1, 0));
    TRY("twin-getfd-self", syscall(SYS_pidfd_getfd, self, 1, 0));
    pid_t child = fork();
    if (child == 0) { pause(); _exit(0); }
    TRY("twin-ptrace-child", ptrace(PTRACE_ATTACH, child, 0, 0));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
static void files(const char *self)
{
    TRY("124-init-root", opened("/proc/1/root" "/etc", O_RDONLY));
    TRY("124-init-cwd", opened("/proc/1/cwd/etc", O_RDONLY));
    TRY("124-init-net", opened("/proc/1/ns/net", O_RDONLY));
    TRY("124-core-pattern", written("/proc/sys/kernel/core_pattern", "|/bin/false"));
    TRY("124-modprobe", written("/proc/sys/kernel/modprobe", "/bin/false"));
    TRY("124-forward", written("/proc/sys/net/ipv4/ip_forward", "1"));
    TRY("124-low-ports", written("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
    TRY("124-sysrq", written("/proc/sysrq-trigger", "h"));
    TRY("124-self-exe", opened("/proc/self/exe", O_WRONLY));
    TRY("124-uid-map", written("/proc/self/uid_map", "0 0 1"));
    TRY("124-uevent-helper", written("/sys/kernel/uevent_helper", "/bin/false"));
    TRY("124-resolver", written("/etc/resolv.conf", "nameserver 192.0.2.1"));
    TRY("twin-oom", written("/proc/self/oom_score_adj", "1000"));
    TRY("twin-read-sysctl", opened("/proc/sys/kernel/core_pattern", O_RDONLY));
    TRY("124-mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    TRY("124-remount", mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("124-umount", umount2("/etc/resolv.conf", MNT_DETACH));
    TRY("124-chroot", chroot("/"));
    TRY("124-pivot", syscall(SYS_pivot_root, ".", "."));
    TRY("124-fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    TRY("124-open-tree", syscall(428, AT_FDCWD, "/", 1));
    TRY("124-move-mount", syscall(429, 0, "", 0, "", 4));
    TRY("124-mount-setattr", syscall(442, AT_FDCWD, "/", 0, 0, 0));
    TRY("152-handle", syscall(SYS_open_by_handle_at, 0, 0, 0));
    TRY("152-mknod", mknod("/tmp/nsb-device", S_IFBLK | 0600, 0x800));
    TRY("152-mem", opened("/dev/mem", O_RDONLY));
}
static void calls(void)
{
    char parameters[256] = { 0 };
    unsigned long arguments[11] = { CLONE_NEWUSER };
    TRY("112-io-uring-setup", syscall(425, 8, parameters));
    TRY("112-io-uring-enter", syscall(426, 0, 0, 0, 0, 0));
    TRY("112-io-uring-register", syscall(427, 0, 0, 0, 0));
    TRY("121-unshare-user", unshare(CLONE_NEWUSER));
    TRY("121-unshare-net", unshare(CLONE_NEWNET));
    TRY("121-unshare-all", unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID));
    TRY("121-clone-user", namespace_child(CLONE_NEWUSER));
    TRY("121-clone-net", namespace_child(CLONE_NEWNET));
    TRY("121-clone3", syscall(435, arguments, sizeof arguments));
    TRY("121-setns", syscall(SYS_setns, open("/proc/self/ns/net", O_RDONLY), 0));
    TRY("twin-clone", namespace_child(0));
    TRY("twin-unshare-files", unshare(CLONE_FILES));
    TRY("bpf", syscall(SYS_bpf, 0, parameters, 64));
    TRY("perf", syscall(SYS_perf_event_open, parameters, 0, -1, -1, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
    TRY("module", syscall(SYS_init_module, parameters, 1, ""));
    TRY("kexec", syscall(SYS_kexec_load, 0, 0, 0, 0));
    TRY("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
    TRY("keyctl", syscall(SYS_keyctl, 0, -3, 0));
    TRY("add-key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
    TRY("syslog", syscall(SYS_syslog, 3, parameters, 100));
    TRY("clock", syscall(SYS_clock_settime, 0, parameters));
}
int main(int argc, char **argv)
{
    calls();
    nested_filters();
    network();
    processes(atoi(argv[1]));
    files(argv[0]);
    return 0;
}
"""
)

# What each attempt may answer; everything that is not listed must be EPERM.
ANSWERS = {
    "112-io-uring-setup": {"ENOSYS"},
    "112-io-uring-enter": {"ENOSYS"},
    "112-io-uring-register": {"ENOSYS"},
    "121-clone3": {"ENOSYS"},
    "121-own-listener": {"EBUSY"},
    "121-allow-all": {"ok"},
    "121-unix-after-allow": {"EACCES", "EAFNOSUPPORT"},
    "121-notify-without-listener": {"ok"},
    "121-unix-after-notify": {"ENOSYS", "EACCES", "EAFNOSUPPORT"},
    "122-bind-door": {"EACCES"},
    "123-ptrace-init": {"EPERM", "EACCES"},
    "123-mem-init": {"EACCES", "EPERM"},
    "123-environ-init": {"EACCES", "EPERM"},
    "123-fd-init": {"EACCES", "EPERM"},
    "123-signal-outside": {"ESRCH"},
    "123-pidfd-outside": {"ESRCH"},
    "124-proc-outside": {"ENOENT"},
    "124-init-root": {"EACCES", "EPERM"},
    "124-init-cwd": {"EACCES", "EPERM"},
    "124-init-net": {"EACCES", "EPERM"},
    "124-core-pattern": {"EROFS", "EACCES"},
    "124-modprobe": {"EROFS", "EACCES", "ENOENT"},
    "124-forward": {"EROFS", "EACCES"},
    "124-low-ports": {"EROFS", "EACCES"},
    "124-sysrq": {"EROFS", "EACCES", "ENOENT"},
    "124-self-exe": {"ETXTBSY", "EACCES"},
    "124-uid-map": {"EPERM", "EACCES"},
    "124-uevent-helper": {"EROFS", "EACCES", "ENOENT"},
    "124-resolver": {"EROFS", "EACCES"},
    "152-mem": {"EPERM", "EACCES", "ENOENT"},
    "keyctl": {"ENOSYS"},
    "add-key": {"ENOSYS"},
}


def lines(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines())


@pytest.mark.ordinary_user
@pytest.mark.attack(112)
@pytest.mark.attack(121)
@pytest.mark.attack(122)
@pytest.mark.attack(123)
@pytest.mark.attack(124)
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_no_system_call_leads_out(netsandbox: Any, probe: Any, static: bool) -> None:
    """io_uring, namespaces, nested filters, the network's configuration, other processes, /proc, mounts, the kernel."""
    run = netsandbox("run", "--", probe("escapes", ESCAPES, static=static), str(os.getpid()))
    found = lines(run.stdout)
    twins = {name: found.pop(name) for name in list(found) if name.startswith("twin-")}
    assert len(twins) >= 11, run.stdout
    assert set(twins.values()) == {"ok"}, twins
    wrong = {name: answer for name, answer in found.items() if answer not in ANSWERS.get(name, {"EPERM"})}
    assert not wrong
    assert set(ANSWERS) <= set(found)
    assert run.returncode == 0


@pytest.mark.ordinary_user
@pytest.mark.attack(122)
def test_the_command_has_no_capability_and_can_get_none(netsandbox: Any) -> None:
    """122: also not by becoming root again at exec, which SECBIT_NOROOT and no_new_privs forbid."""
    run = netsandbox("run", "--", "sh", "-c", "sh -c 'cat /proc/self/status'; id -u")
    status = dict(line.split(":\t", 1) for line in run.stdout.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    assert run.stdout.splitlines()[-1] == str(netsandbox.identity.uid)


FOREIGN = (
    PRELUDE
    + r"""
static long call32(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}
static void foreign(const char *name, long number, long a, long b, long c)
{
    int status;
    pid_t child = fork();
    if (child == 0) _exit(call32(number, a, b, c) < 0 ? 1 : 0);
    waitpid(child, &status, 0);
    said(name, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : WEXITSTATUS(status) ? "error" : "ok");
}
int main(void)
{
    foreign("i386-getpid", 20, 0, 0, 0);
    foreign("i386-socket", 359, AF_UNIX, SOCK_STREAM, 0);
    foreign("i386-socketcall", 102, 1, 0, 0);
    foreign("i386-unshare", 310, CLONE_NEWUSER, 0, 0);
    TRY("x32-getpid", syscall(0x40000000 | 39));
    TRY("x32-socket", syscall(0x40000000 | 41, AF_UNIX, SOCK_STREAM, 0));
    TRY("x32-connect", syscall(0x40000000 | 42, 0, 0, 0));
    TRY("x32-high", syscall(0x40000000 | 547, 0, 0, 0));
    TRY("native", syscall(39));
    return 0;
}
"""
)


@pytest.mark.attack(113)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="i386 and x32 are foreign ABIs of x86_64 only")
def test_foreign_abis_are_closed(netsandbox: Any, probe: Any) -> None:
    program = probe("foreign", FOREIGN, static=True)
    outside = lines(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    found = lines(netsandbox("run", "--", program).stdout)
    assert found.pop("native") == outside["native"] == "ok"
    foreign = {name: answer for name, answer in found.items() if name.startswith("i386")}
    assert set(foreign.values()) == {"Bad system call"}, f"outside: {outside}"
    assert {answer for name, answer in found.items() if name.startswith("x32")} == {"ENOSYS"}


FAMILIES = (
    PRELUDE
    + r"""
int main(void)
{
    char name[64];
    int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_PACKET };
    for (int family = 0; family < 48; family++)
        for (int type = 0; type < 6; type++) {
            snprintf(name, sizeof name, "%d/%d", family, types[type]);
            TRY(name, socket(family, types[type], 0));
        }
    TRY("icmp", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
    TRY("icmp6", socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6));
    TRY("udplite", socket(AF_INET, SOCK_DGRAM, 136));
    TRY("mptcp", socket(AF_INET, SOCK_STREAM, 262));
    TRY("sctp", socket(AF_INET, SOCK_STREAM, 132));
    TRY("uevent", socket(AF_NETLINK, SOCK_DGRAM, 15));
    TRY("netfilter", socket(AF_NETLINK, SOCK_DGRAM, 12));
    TRY("diag", socket(AF_NETLINK, SOCK_DGRAM, 4));
    return 0;
}
"""
)


@pytest.mark.ordinary_user
@pytest.mark.attack(125)
def test_only_known_families_exist_and_every_other_wish_is_recorded(netsandbox: Any, probe: Any) -> None:
    run = netsandbox("run", "--", probe("families", FAMILIES, static=True))
    found = lines(run.stdout)
    good = {"2/1", "2/2", "10/1", "10/2", "16/2", "16/3"}
    assert {name for name, answer in found.items() if answer == "ok"} == good
    odd = {answer for name, answer in found.items() if name not in good}
    assert odd <= {"EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"}
    recorded = {record["family"] for record in run.events("socket", verdict="deny")}
    assert {"packet", "vsock", "alg", "bluetooth", "tipc", "xdp", "smc", "rds", "kcm", "qipcrtr", "netlink"} <= recorded
    kinds = {(r["family"], r["type"], r["protocol"]) for r in run.events("socket", verdict="deny")}
    assert {("inet", "raw", 0), ("inet", "dgram", 1), ("inet", "dgram", 136), ("netlink", "dgram", 12)} <= kinds


CONNECT = (
    PRELUDE
    + r"""
int main(int argc, char **argv)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[2])) };
    char answer[64] = { 0 };
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    long s = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    if (syscall(SYS_connect, s, &to, sizeof to) < 0) { tried("connect", -1); return 1; }
    send((int)s, "\2hello", 6, MSG_NOSIGNAL); /* no protocol that the door would look into */
    shutdown((int)s, SHUT_WR);
    said("answer", read((int)s, answer, 63) > 0 ? answer + 1 : "nothing");
    return 0;
}
"""
)


@pytest.mark.attack(98)
@pytest.mark.attack(99)
@pytest.mark.attack(203)
def test_raw_static_programs_without_environment_get_the_same_verdicts(
    netsandbox: Any, probe: Any, canary: Any, authority: Any
) -> None:
    """98, 99: what ignores libc, preloads and proxy variables is captured all the same."""
    good, bad = canary.tcp(echo=True), canary.tcp(echo=True)
    authority.answer("allowed.test", good.host)
    static, dynamic = probe("connect", CONNECT, static=True), probe("connect", CONNECT)
    lookup = "import socket; print(socket.gethostbyname('allowed.test'))"
    script = f"""
    address=$({netsandbox.python} -c "{lookup}")
    for program in {static} {dynamic} "env -i {static}" "env -u LD_PRELOAD {dynamic}"; do
        $program $address {good.port}
        $program $address {bad.port}
        $program {bad.host} {bad.port}
        $program 192.0.2.7 {good.port}
    done
    """
    options = ["--allow-domain", f"allowed.test:{good.port}", "--allow-address", f"127.0.0.1:{good.port}"]
    run = netsandbox("run", *options, "--upstream-dns", authority.address, "--", "sh", "-c", script)
    answers = run.stdout.splitlines()
    assert answers == ["answer hello", "answer nothing", "connect ECONNREFUSED", "answer nothing"] * 4
    assert (good.accepts, bad.accepts) == (4, 0)
    assert len(run.events("egress", verdict="deny", reason="port-not-allowed")) == 4
    assert len(run.events("egress", verdict="deny", host="192.0.2.7")) == 4


@pytest.mark.attack(129)
def test_datagrams_to_anywhere_are_recorded_and_go_nowhere(netsandbox: Any, canary: Any) -> None:
    """129, and the name services of the local network: multicast and broadcast, both families."""
    server, server6 = canary.udp(), canary.udp("::1")
    script = f"""
import socket
def send(family, host, port, *more):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.sendto(b"secret", (host, port, *more))
for host in ("192.0.2.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", "192.0.2.255"):
    send(socket.AF_INET, host, 5353)
for host in ("2001:db8::1", "ff02::fb", "ff02::c", "fe80::1"):
    send(socket.AF_INET6, host, 5353, 0, 1)
send(socket.AF_INET, "127.0.0.1", {server.port}); send(socket.AF_INET6, "::1", {server6.port})
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    own.bind(("127.0.0.1", 0)); send(socket.AF_INET, *own.getsockname()); print(own.recv(6).decode())
"""
    run = netsandbox("run", "--", netsandbox.python, "-c", script)
    assert run.stdout == "secret\n", run.stderr
    wanted = {"192.0.2.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", "192.0.2.255"}
    wanted |= {"2001:db8::1", "ff02::fb", "ff02::c", "fe80::1"}
    assert {record["address"] for record in run.events("udp", verdict="deny", port=5353)} == wanted
    assert server.datagrams == server6.datagrams == []


@pytest.mark.attack(132)
def test_nothing_but_the_standard_descriptors_is_inherited(netsandbox: Any, canary: Any, short_tmp: Path) -> None:
    """132: files, folders, listeners and connections that the caller left open are closed."""
    server = canary.tcp()
    home = netsandbox.home()
    folder = os.open("/", os.O_RDONLY)
    listener, connection = socket.create_server(("127.0.0.1", 0)), socket.create_connection((server.host, server.port))
    high = os.dup2(connection.fileno(), 900)
    script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) > 2))"
    inside = [home.identity.python, "-m", "netsandbox", "run", "--", home.identity.python, "-c", script]
    with listener, connection:
        given = (folder, listener.fileno(), connection.fileno(), high)
        for fd in given:
            os.set_inheritable(fd, True)
        run = subprocess.run(
            inside,
            env=home.environment(None),
            cwd=home.work,
            capture_output=True,
            text=True,
            pass_fds=given,
            check=False,
        )
    os.close(folder)
    os.close(high)
    assert run.stdout == "[3]\n", run.stderr  # the listing's own
    assert server.wait(1)
    assert server.received == b""


@pytest.mark.attack(132)
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_an_internet_socket_as_standard_input_cannot_be_aimed_anew(netsandbox: Any, canary: Any, kind: int) -> None:
    """132: it was made in the host's network, where no door stands; the session does not start with it."""
    forbidden, udp = canary.tcp(), canary.udp()
    script = f"""
import socket
sock = socket.socket(fileno=0)
for address in (("127.0.0.1", {forbidden.port}), ("127.0.0.1", {udp.port})):
    try:
        sock.connect(address); sock.send(b"secret")
    except OSError:
        pass
"""
    with socket.socket(socket.AF_INET, kind) as given:
        running = netsandbox.spawn("run", "--", netsandbox.python, "-c", script, stdin=given.fileno())
        _, err = running.process.communicate(timeout=20)
    assert running.process.returncode == 1
    assert err.startswith(b"netsandbox: standard input is a socket")
    assert (forbidden.accepts, udp.datagrams) == (0, [])


TERMINAL = (
    PRELUDE
    + r"""
int main(void)
{
    struct winsize size;
    TRY("tiocsti", ioctl(0, TIOCSTI, "x"));
    TRY("tiocsti-high", syscall(SYS_ioctl, 0L, 0xABCD00000000UL | TIOCSTI, "x"));
    TRY("tioclinux", ioctl(0, TIOCLINUX, "\3"));
    TRY("size", ioctl(0, TIOCGWINSZ, &size));
    said("end", "ok");
    return 0;
}
"""
)


@pytest.mark.ordinary_user
def test_nothing_can_be_typed_into_the_callers_terminal(netsandbox: Any, probe: Any) -> None:
    running = netsandbox.spawn("run", "--", probe("terminal", TERMINAL), terminal=True)
    text = running.read_until(b"end ok").decode().replace("\r", "")
    assert lines(text) == {"tiocsti": "EPERM", "tiocsti-high": "EPERM", "tioclinux": "EPERM", "size": "ok", "end": "ok"}


# Stands for an older kernel or a container's profile: the named system call fails with the given error, then COMMAND.
LESSER = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    unsigned int number = (unsigned)atoi(argv[1]), error = (unsigned)atoi(argv[2]), mask = (unsigned)atoi(argv[3]);
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, mask ? 0 : 2, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof steps / sizeof *steps, steps };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, 1, 0, &program)) return 99;
    execvp(argv[4], argv + 4);
    return 98;
}
"""
CLONE_NEWUSER = 0x10000000
# (system call on x86_64, error, bits of its first argument of which one must be set, or 0 for every call)
LESSER_KERNELS = {
    "no-user-namespaces": (56, errno.EPERM, CLONE_NEWUSER),
    "no-room": (56, errno.ENOSPC, CLONE_NEWUSER),
    "no-mounts": (165, errno.EPERM, 0),
    "no-mount-setattr": (442, errno.ENOSYS, 0),
    "no-close-range": (436, errno.ENOSYS, 0),
}


def refuses(home: Any, command: list[str | Path]) -> str:
    """Runs `COMMAND… netsandbox run -- touch MARK`; it must fail and MARK must not be there. Its message."""
    mark = home.work / "ran"
    product = [home.identity.python, "-m", "netsandbox", "run", "--", "touch", mark]
    run = subprocess.run(
        [*command, *product],
        env=home.environment(None),
        cwd=home.work,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        **home.identity.popen,
    )
    assert not mark.exists(), "the command ran unconfined"
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("netsandbox: ")
    assert "Traceback" not in run.stderr
    return run.stderr


@pytest.mark.ordinary_user
@pytest.mark.attack(134)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in names system calls by their x86_64 numbers")
@pytest.mark.parametrize("lacking", sorted(LESSER_KERNELS))
def test_a_lesser_kernel_is_refused_with_advice(netsandbox: Any, probe: Any, lacking: str) -> None:
    """134: never unconfined instead (INV-1); the message says what to do."""
    number, error, mask = LESSER_KERNELS[lacking]
    lesser = [probe("lesser", LESSER), str(number), str(error), str(mask)]
    text = refuses(netsandbox.home(), lesser)
    if lacking == "no-user-namespaces":
        assert "container" in text


@pytest.mark.attack(134)
def test_forbidden_user_namespaces_are_named_with_the_switch(netsandbox: Any) -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    text = refuses(netsandbox.home(), ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"])
    assert "sysctl -w user.max_user_namespaces=" in text
