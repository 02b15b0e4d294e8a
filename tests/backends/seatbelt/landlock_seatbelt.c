/* Stands in for the parts of a Mac that netsandbox-apply calls, on Linux.
 *
 * The ports that a profile opens are read out of its text and enforced by Landlock, so that the kernel itself refuses
 * everything else: what the launcher promises about doors and windows is then tried for real, though not on Seatbelt.
 * Comments in a profile ask for a system that misbehaves: `; refuse` accepts no profile, `; hollow` enforces nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* linux/landlock.h, which older systems have without ports. */
enum { RULE_NET_PORT = 2, BIND_TCP = 1, CONNECT_TCP = 2 };
struct rules {
    uint64_t handled_files, handled_ports;
};
struct port_rule {
    uint64_t access, port;
};

static void open_ports(int ruleset, const char *profile, const char *form, uint64_t access)
{
    for (const char *at = strstr(profile, form); at != NULL; at = strstr(at + 1, form)) {
        struct port_rule rule = {access, strtoul(at + strlen(form), NULL, 10)};
        syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0);
    }
}

int sandbox_init_with_parameters(const char *profile, uint64_t flags, const char *const parameters[], char **error)
{
    (void)flags, (void)parameters;
    if (strstr(profile, "; refuse") != NULL) {
        *error = strdup("unbound variable: nonsense");
        errno = EINVAL;
        return -1;
    }
    if (strstr(profile, "; hollow") != NULL)
        return 0;
    struct rules all = {0, BIND_TCP | CONNECT_TCP};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (ruleset < 0)
        return -1;
    open_ports(ruleset, profile, "(remote tcp \"localhost:", CONNECT_TCP);
    open_ports(ruleset, profile, "(local ip \"localhost:", BIND_TCP);
    int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) != 0;
    close(ruleset);
    return failed ? -1 : 0;
}

void sandbox_free_error(char *error)
{
    free(error);
}

int proc_listpids(uint32_t type, uint32_t of, void *buffer, int size)
{
    char path[64];
    int filled = 0, pid = 0;
    (void)type;
    snprintf(path, sizeof path, "/proc/%u/task/%u/children", of, of);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (filled + (int)sizeof pid <= size && fscanf(file, "%d", &pid) == 1) {
        memcpy((char *)buffer + filled, &pid, sizeof pid);
        filled += (int)sizeof pid;
    }
    fclose(file);
    return filled;
}
