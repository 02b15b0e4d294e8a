/* netsandbox-apply PORT[,RESOURCE=LIMIT...] CMD [ARG...]: applies a Seatbelt profile to itself, verifies that it holds,
 * sets resource limits, becomes CMD.
 *
 * It is a separate program, because the system's (sandbox-exec, sh, env) are protected: dyld removes DYLD_* from what
 * they start. It uses nothing from its environment and exits at the first failure: CMD is never executed without the
 * profile (INV-1). */
#include "apply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_PLAN (16u << 20)
#define MAX_DESCRIPTOR 65536

/* libSystem has these; no public header declares them. Flags 0: the text of a profile, not a name. */
int sandbox_init_with_parameters(const char *profile, uint64_t flags, const char *const parameters[], char **error);
void sandbox_free_error(char *error);

extern char **environ;

_Noreturn void fail(const char *step, int number, const char *detail)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s%c%d%c%s", step, 0, number, 0, detail);
    if (length > (int)sizeof text - 1)
        length = (int)sizeof text - 1;
    ssize_t written = write(REPORT, text, (size_t)length);
    _exit(written < 0 ? 126 : 125);
}

/* Reads up to the end of the stream; the result ends with NUL. */
static char *read_plan(size_t *length)
{
    size_t room = 1u << 16, filled = 0;
    char *plan = malloc(room);
    while (plan != NULL) {
        ssize_t count = read(PLAN, plan + filled, room - filled - 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            fail("plan", errno, "");
        if (count == 0)
            break;
        filled += (size_t)count;
        if (filled > MAX_PLAN)
            fail("plan", E2BIG, "");
        if (room - filled < 2)
            plan = realloc(plan, room *= 2);
    }
    if (plan == NULL)
        fail("plan", ENOMEM, "");
    if (filled == 0 || plan[filled - 1] != 0) /* the supervisor exited in the middle of it */
        fail("plan", EPIPE, "");
    *length = filled;
    return plan;
}

/* The strings after the profile. */
static char **read_environment(char *plan, size_t length)
{
    size_t count = 0, at = strlen(plan) + 1;
    for (size_t byte = at; byte < length; byte++)
        count += plan[byte] == 0;
    char **entries = calloc(count + 1, sizeof *entries);
    if (entries == NULL)
        fail("environment", ENOMEM, "");
    for (size_t entry = 0; entry < count; entry++) {
        entries[entry] = plan + at;
        at += strlen(plan + at) + 1;
    }
    return entries;
}

/* Restores the signals that Python ignores, and unblocks all. Signals ignored on purpose (nohup) stay ignored. */
static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    if (signal(SIGPIPE, SIG_DFL) == SIG_ERR || signal(SIGXFSZ, SIG_DFL) == SIG_ERR ||
        sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        fail("signals", errno, "");
}

/* One by one below the limit, which may be lower now than when a descriptor was opened; above it by their names. */
void close_descriptors(int first, int kept)
{
    int highest = getdtablesize();
    if (highest > MAX_DESCRIPTOR)
        highest = MAX_DESCRIPTOR;
    for (int fd = first; fd < highest; fd++)
        if (fd != kept)
            close(fd);
    DIR *open_ones = opendir("/dev/fd");
    if (open_ones == NULL) {
        for (int fd = highest; fd < MAX_DESCRIPTOR; fd++)
            close(fd);
        return;
    }
    for (struct dirent *each = readdir(open_ones); each != NULL; each = readdir(open_ones)) {
        int fd = (int)strtol(each->d_name, NULL, 10);
        if (fd >= highest && fd != kept && fd != dirfd(open_ones))
            close(fd);
    }
    closedir(open_ones);
}

/* A descriptor of the host that stayed open would lead past the profile. */
static void keep_standard_descriptors(void)
{
    close_descriptors(PLAN, REPORT);
    if (fcntl(REPORT, F_SETFD, FD_CLOEXEC) != 0)
        fail("descriptors", errno, "");
}

static void confine(const char *profile)
{
    char *error = NULL;
    errno = 0;
    if (sandbox_init_with_parameters(profile, 0, NULL, &error) != 0)
        fail("profile", errno, error != NULL ? error : "");
    if (error != NULL)
        sandbox_free_error(error);
}

/* The number that *text* begins with; *text* then begins after it, where *next* or the end must be. */
static uint64_t read_number(char **text, char next)
{
    char *start = *text;
    uint64_t value = strtoull(start, text, 10);
    if (*start < '0' || *start > '9' || (**text != next && **text != 0))
        fail("arguments", EINVAL, "");
    *text += **text != 0;
    return value;
}

static unsigned short read_port(char **text)
{
    uint64_t port = read_number(text, ',');
    if (port < 1 || port > 65535)
        fail("arguments", EINVAL, "");
    return (unsigned short)port;
}

static void set_limits(char *text)
{
    while (*text != 0) {
        int resource = (int)read_number(&text, '=');
        rlim_t value = (rlim_t)read_number(&text, ',');
        struct rlimit limit = { value, value };
        if (setrlimit(resource, &limit) != 0)
            fail("limits", errno, "");
    }
}

int main(int count, char **words)
{
    if (count < 3)
        fail("arguments", EINVAL, "");
    char *limits = words[1];
    unsigned short port = read_port(&limits);
    size_t length = 0;
    char *plan = read_plan(&length);
    if (plan[0] == 0)
        fail("profile", EINVAL, "it is empty");
    environ = read_environment(plan, length);
    reset_signals();
    watch_over(getpid());
    keep_standard_descriptors();
    confine(plan);
    prove_confined(port);
    set_limits(limits);
    if (write(REPORT, CONFINED, sizeof CONFINED - 1) != sizeof CONFINED - 1)
        _exit(126);
    execvp(words[2], words + 2);
    fail("exec", errno, "");
}
