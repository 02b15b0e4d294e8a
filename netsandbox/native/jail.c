#define _GNU_SOURCE
#include "jail.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"

/* capabilities(7): root in a namespace regains capabilities at exec unless the bounding set is empty and NOROOT locked. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP
        | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE
        | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability) < 0)
            fail("dropping capabilities");
    if (prctl(PR_SET_SECUREBITS, bits) < 0)
        fail("locking the secure bits");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        fail("clearing ambient capabilities");
    if (syscall(SYS_capset, &header, none) < 0)
        fail("dropping capabilities");
}

/* Linux 5.19: a signal cannot interrupt a call that the supervisor already works on; older kernels do without. */
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

int lock_down(const struct sock_fprog *filter)
{
    long listener;

    drop_capabilities();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail("setting no_new_privs");
    if (filter->len == 0) {
        errno = EINVAL;
        fail("installing the seccomp filter");
    }
    listener = install(filter);
    if (listener < 0)
        fail("installing the seccomp filter");
    return (int)listener;
}
