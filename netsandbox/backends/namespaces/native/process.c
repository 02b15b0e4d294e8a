#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"

/* linux/landlock.h, which older systems lack. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#endif
#define RULE_PATH_BENEATH 1
#define SCOPE_SIGNAL (1ULL << 1) /* ABI 6, Linux 6.12 */
#define REFER (1U << 13)      /* ABI 2, Linux 5.19 */
#define FILE_RIGHTS 0x7U      /* to execute, write and read a file; others are for folders */

struct handled {
    uint64_t files;
    uint64_t network;
    uint64_t scoped;
};

struct path_beneath {
    uint64_t rights;
    int32_t parent;
} __attribute__((packed));

static struct {
    uint32_t resource;
    struct rlimit limit;
} limits[MAX_LIMITS];
static size_t limit_count;
static int rules = -1;
static int scopes_signals;

void limit_add(uint32_t resource, uint64_t value)
{
    if (limit_count == MAX_LIMITS) {
        errno = E2BIG;
        fail("reading the limits");
    }
    limits[limit_count].resource = resource;
    limits[limit_count].limit.rlim_cur = limits[limit_count].limit.rlim_max = value;
    limit_count++;
}

/* A descriptor may be that of any file; what has no path, such as a pipe, is not restricted. */
static void permit(uint32_t rights, int place, const char *name)
{
    struct path_beneath rule = { .rights = rights, .parent = place };
    struct stat found;

    if (fstat(place, &found) < 0)
        fail(name);
    if (!S_ISDIR(found.st_mode))
        rule.rights &= FILE_RIGHTS;
    if (!S_ISLNK(found.st_mode) && syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0U) < 0 && errno != EBADFD)
        fail(name);
}

void access_permit(uint32_t rights, const char *path)
{
    int place = open(path, O_PATH | O_CLOEXEC);

    if (place < 0)
        fail(path);
    permit(rights, place, path);
    close(place);
}

void access_begin(uint32_t rights)
{
    const struct handled handled = { .files = rights | REFER, .scoped = SCOPE_SIGNAL };

    rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0U);
    scopes_signals = rules >= 0;
    if (rules < 0)
        rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.files, 0U);
    if (rules < 0)
        fail("Landlock");
    fcntl(rules, F_SETFD, FD_CLOEXEC);
    access_permit(REFER, "/");
}

/* A name of / or /proc: the folders of processes have numbers. */
static int is_of_processes(const char *name)
{
    return strcmp(name, "proc") == 0 || strspn(name, "0123456789") == strlen(name);
}

static void permit_entries(uint32_t rights, const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    if (entries == NULL)
        fail(folder);
    while ((entry = readdir(entries)) != NULL) {
        int place;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || is_of_processes(entry->d_name))
            continue;
        place = openat(dirfd(entries), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (place < 0)
            continue; /* it is not there any more, and stays closed */
        permit(rights, place, folder);
        close(place);
    }
    closedir(entries);
}

void access_permit_all_but_processes(uint32_t rights)
{
    permit_entries(rights, "/");
    permit_entries(rights, "/proc");
    for (int standard = 0; standard < 3; standard++) /* it may be opened anew, as /dev/stdout */
        permit(rights, standard, "the standard descriptors");
}

int access_rules(int *keeps_signals)
{
    *keeps_signals = scopes_signals;
    return rules;
}

void limits_set(void)
{
    for (size_t number = 0; number < limit_count; number++)
        if (setrlimit((int)limits[number].resource, &limits[number].limit) < 0)
            fail("setting the limits");
}
