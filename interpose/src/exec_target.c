/* Reads the headers of <mach-o/loader.h> and <mach-o/fat.h> by their numbers, since Linux has neither file. */
#include "exec_target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MACH_O_64 0xfeedfacfu
#define FAT 0xcafebabeu
#define FAT_64 0xcafebabfu
#define FAT_ENTRY 20u
#define FAT_64_ENTRY 32u
#define ARM64 0x0100000cu
#define ARM64E 2u
#define SUBTYPE_MASK 0x00ffffffu
#define MAX_PARTS 16u
#define MAX_INTERPRETERS 3 /* a script's interpreter may be a script */

static uint32_t big(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t little(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static int is_arm64e(uint32_t type, uint32_t subtype)
{
    return type == ARM64 && (subtype & SUBTYPE_MASK) == ARM64E;
}

int ns_target_takes(const void *head, uint32_t length)
{
    const uint8_t *bytes = head;
    uint32_t entry;

    if (length < 12)
        return 1;
    if (little(bytes) == MACH_O_64)
        return !is_arm64e(little(bytes + 4), little(bytes + 8));
    if (big(bytes) != FAT && big(bytes) != FAT_64)
        return 1;
    entry = big(bytes) == FAT ? FAT_ENTRY : FAT_64_ENTRY;
    for (uint32_t part = 0; part < big(bytes + 4) && part < MAX_PARTS; part++) {
        const uint8_t *place = bytes + 8 + part * entry;

        if (8 + (part + 1) * entry > length)
            break;
        if (is_arm64e(big(place), big(place + 4)))
            return 0;
    }
    return 1;
}

static int begins(const char *path, const char *folder)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

int ns_target_is_protected(const char *path)
{
    if (begins(path, "/usr/local/") || begins(path, "/System/Volumes/Data/"))
        return 0;
    return begins(path, "/usr/") || begins(path, "/bin/") || begins(path, "/sbin/") || begins(path, "/System/");
}

uint32_t ns_target_head(const char *path, char *head, struct stat *about)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t got = -1;

    memset(about, 0, sizeof *about);
    if (fd < 0)
        return 0;
    if (fstat(fd, about) == 0)
        got = read(fd, head, NS_HEAD_BYTES);
    close(fd);
    return got > 0 ? (uint32_t)got : 0;
}

/* The path after "#!", in place, or NULL. */
static const char *interpreter(char *head, uint32_t length)
{
    char *start;

    if (length < 3 || head[0] != '#' || head[1] != '!')
        return NULL;
    head[length < NS_HEAD_BYTES ? length : NS_HEAD_BYTES - 1] = '\0';
    start = head + 2 + strspn(head + 2, " \t");
    start[strcspn(start, " \t\r\n")] = '\0';
    return start[0] == '/' ? start : NULL;
}

static int fate(const char *path, const struct stat *about, const char *head, uint32_t length)
{
    if (ns_target_is_protected(path) || (about->st_mode & (S_ISUID | S_ISGID)) != 0)
        return NS_TARGET_BARE;
    return ns_target_takes(head, length) ? NS_TARGET_TAKES : NS_TARGET_KILLED;
}

int ns_target_file_fate(const char *path)
{
    char heads[2][NS_HEAD_BYTES];
    int saved = errno;
    int found = NS_TARGET_TAKES;

    for (int turn = 0; path != NULL && found == NS_TARGET_TAKES && turn < MAX_INTERPRETERS; turn++) {
        char *head = heads[turn % 2]; /* the path may be in the other one */
        struct stat about;
        uint32_t length = ns_target_head(path, head, &about);

        found = fate(path, &about, head, length);
        path = interpreter(head, length);
    }
    errno = saved;
    return found;
}

int ns_target_file_takes(const char *path)
{
    return ns_target_file_fate(path) == NS_TARGET_TAKES;
}
