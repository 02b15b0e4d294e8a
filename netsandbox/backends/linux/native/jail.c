#define _GNU_SOURCE
#include "jail.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"
#include "process.h"

/* capabilities(7): root in a namespace regains capabilities at exec unless the bounding set is empty and NOROOT locked. A
 * process without CAP_SETPCAP may do neither (EPERM); no_new_privs then keeps what exec gives within what it has: none. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP
        | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE
        | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability) < 0 && errno != EPERM)
            fail("dropping capabilities");
    if (prctl(PR_SET_SECUREBITS, bits) < 0 && errno != EPERM)
        fail("locking the secure bits");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        fail("clearing ambient capabilities");
    if (syscall(SYS_capset, &header, none) < 0)
        fail("dropping capabilities");
}

/* Linux 5.19: a signal cannot interrupt a call that the supervisor already handles; older kernels lack this. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static long install(const struct sock_fprog *filter)
{
    const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, filter);

    if (listener < 0 && errno == EINVAL)
        listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, filter);
    return listener;
}

/* linux/landlock.h, whose copy in many distributions is older than scopes (ABI 6, Linux 6.12). */
#define SCOPE_SIGNAL (1ULL << 1)
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

struct scopes {
    uint64_t files;
    uint64_t network;
    uint64_t scoped;
};

/* kill(0, …) on kernels without scopes is refused, since the filter cannot tell processes inside from those outside. */
static void refuse_group_signals(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = sizeof steps / sizeof *steps, .filter = steps };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &program) < 0)
        fail("keeping signals inside");
}

/* The command is in our caller's process group, so that the terminal's job control works as usual. kill(0, …) uses that
 * group and would reach the caller and its siblings. A Landlock scope limits it to the session's own processes. */
static void keep_signals_inside(int are_trapped)
{
    const struct scopes scopes = { .scoped = SCOPE_SIGNAL };
    int keeps_signals = 1;
    int ruleset = access_rules(&keeps_signals);

    if (ruleset < 0)
        keeps_signals = (ruleset = (int)syscall(SYS_landlock_create_ruleset, &scopes, sizeof scopes, 0U)) >= 0;
    if (!keeps_signals && !are_trapped)
        refuse_group_signals();
    if (ruleset < 0)
        return;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0U) < 0)
        fail("keeping signals inside");
    close(ruleset);
}

void give_up_rights(int traps_signals)
{
    drop_capabilities();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail("setting no_new_privs");
    keep_signals_inside(traps_signals);
}

int install_filter(const struct sock_fprog *filter)
{
    long listener;

    if (filter->len == 0) {
        errno = EINVAL;
        fail("installing the seccomp filter");
    }
    listener = install(filter);
    if (listener < 0)
        fail("installing the seccomp filter");
    return (int)listener;
}
