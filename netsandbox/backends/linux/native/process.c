#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
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
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RULE_PATH_BENEATH 1
#define LATER_BY 500L /* of 1000 (proc_pid_oom_score_adj(5)) */
#define MOST 1000L
#define SCOPES 3ULL           /* abstract Unix sockets and signals stay in the session */
#define REFER (1U << 13)
#define FILE_RIGHTS 0xC007U   /* to execute, write, read and cut a file, and to control a device; others are for folders */

/* What a kernel with each ABI of Landlock knows, the newest first (Linux 6.12, 6.10, 6.7, 6.2, 5.19, 5.13). */
static const struct {
    uint32_t files;
    uint32_t network;
    uint32_t scoped;
} ABIS[] = { { 0xFFFF, 3, 3 }, { 0xFFFF, 3, 0 }, { 0x7FFF, 3, 0 }, { 0x7FFF, 0, 0 }, { 0x3FFF, 0, 0 }, { 0x1FFF, 0, 0 } };

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
static uint32_t handled_files;
static uint32_t handled_network;

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
    struct path_beneath rule = { .rights = rights & handled_files, .parent = place };
    struct stat found;

    if (fstat(place, &found) < 0)
        fail(name);
    if (!S_ISDIR(found.st_mode))
        rule.rights &= FILE_RIGHTS;
    if (rule.rights == 0)
        return;
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

/* openat2(2), which some containers' filters refuse; the last name is no link then at least. */
static int open_without_links(const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS };
    int place = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

    return place < 0 && (errno == ENOSYS || errno == EPERM) ? open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW) : place;
}

void access_permit_exactly(uint32_t rights, const char *path)
{
    int place = open_without_links(path);

    if (place < 0)
        return;
    permit(rights, place, path);
    close(place);
}

void access_begin(uint32_t rights, uint32_t network)
{
    for (size_t abi = 0; rules < 0 && abi < sizeof ABIS / sizeof *ABIS; abi++) {
        const struct handled handled = { .files = (rights | REFER) & ABIS[abi].files,
                                         .network = network & ABIS[abi].network,
                                         .scoped = SCOPES & ABIS[abi].scoped };
        size_t size = handled.scoped ? sizeof handled : handled.network ? 2 * sizeof handled.files : sizeof handled.files;

        rules = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0U);
        scopes_signals = rules >= 0 && handled.scoped != 0;
        handled_files = (uint32_t)handled.files;
        handled_network = (uint32_t)handled.network;
        if (rules < 0 && errno != EINVAL && errno != E2BIG && errno != ENOMSG)
            break;
    }
    if (rules < 0)
        fail("Landlock");
    fcntl(rules, F_SETFD, FD_CLOEXEC);
    access_permit(REFER, "/");
}

int access_handles(uint32_t rights)
{
    return (handled_files & rights) == rights;
}

int access_handles_network(void)
{
    return handled_network != 0;
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

void die_first(void)
{
    int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char text[32] = "";
    long score;

    if (file < 0)
        return; /* the kernel chooses */
    score = read(file, text, sizeof text - 1) > 0 ? strtol(text, NULL, 10) + LATER_BY : LATER_BY;
    snprintf(text, sizeof text, "%ld", score < MOST ? score : MOST);
    if (pwrite(file, text, strlen(text), 0) < 0)
        fail("oom_score_adj");
    close(file);
}

void limits_set(void)
{
    for (size_t number = 0; number < limit_count; number++)
        if (setrlimit((int)limits[number].resource, &limits[number].limit) < 0)
            fail("setting the limits");
}
