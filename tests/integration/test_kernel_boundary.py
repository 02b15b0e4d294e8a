"""The kernel's boundary, attacked from inside with system calls alone (INV-7). Each no has a yes beside it."""

from __future__ import annotations

import os
import platform
import subprocess
from typing import Any

import pytest

from tests.rig.system_calls import PRELUDE, lines

pytestmark = [pytest.mark.usefixtures("user_namespaces")]

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
        TRY("121-unix-after-allow", socket(AF_UNIX, SOCK_DGRAM, 0));
        TRY("121-packet-after-allow", socket(AF_PACKET, SOCK_RAW, 0));
        TRY("twin-tcp-after-allow", socket(AF_INET, SOCK_STREAM, 0));
        TRY("121-notify-without-listener", filter(0, SYS_socket, SECCOMP_RET_USER_NOTIF));
        TRY("121-unix-after-notify", socket(AF_UNIX, SOCK_DGRAM, 0));
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
    TRY("251-oom", written("/proc/self/oom_score_adj", "0"));
    TRY("twin-own-folder", opened("/proc/self/cwd/.", O_RDONLY));
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
    "121-unix-after-allow": {"ESOCKTNOSUPPORT"},
    "121-notify-without-listener": {"ok"},
    "121-unix-after-notify": {"ENOSYS", "ESOCKTNOSUPPORT"},
    "122-bind-door": {"EACCES"},
    "123-ptrace-init": {"EPERM", "EACCES"},
    "123-mem-init": {"EACCES", "EPERM", "EROFS"},
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
    "124-uid-map": {"EPERM", "EACCES", "EROFS"},
    "251-oom": {"EROFS"},
    "124-uevent-helper": {"EROFS", "EACCES", "ENOENT"},
    "124-resolver": {"EROFS", "EACCES"},
    "152-mem": {"EPERM", "EACCES", "ENOENT"},
    "keyctl": {"ENOSYS"},
    "add-key": {"ENOSYS"},
}


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


@pytest.mark.backend("namespaces", "broker")
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


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.ordinary_user
@pytest.mark.attack(125)
def test_only_known_families_exist_and_every_other_wish_is_recorded(netsandbox: Any, probe: Any) -> None:
    run = netsandbox("run", "--", probe("families", FAMILIES, static=True))
    found = lines(run.stdout)
    good = {"1/1", "1/5", "2/1", "2/2", "10/1", "10/2", "16/2", "16/3"}
    assert {name for name, answer in found.items() if answer == "ok"} == good
    odd = {answer for name, answer in found.items() if name not in good}
    assert odd <= {"EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"}
    recorded = {record["family"] for record in run.events("socket", verdict="deny")}
    assert {"packet", "vsock", "alg", "bluetooth", "tipc", "xdp", "smc", "rds", "kcm", "qipcrtr", "netlink"} <= recorded
    kinds = {(r["family"], r["type"], r["protocol"]) for r in run.events("socket", verdict="deny")}
    assert {("inet", "raw", 0), ("inet", "dgram", 1), ("inet", "dgram", 136), ("netlink", "dgram", 12)} <= kinds
