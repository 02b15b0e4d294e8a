/* Binds a port around the preloaded library: bound HOW PORT [FILE].
 *
 * Prints "HOW ERROR", or "HOW SEEN REAL": the port as the C library tells it and as the kernel tells it. HOW is a way to
 * call bind, or a way to start this program anew without the library, which then calls bind plainly. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*binder)(int, const struct sockaddr *, socklen_t);

static int raw_bind(int fd, const struct sockaddr *name, socklen_t length)
{
    return (int)syscall(SYS_bind, fd, name, length);
}

/* The C library itself, past whatever stands before it. */
static binder from_handle(const char *file)
{
    void *library = dlopen(file, RTLD_NOW);

    return library ? (binder)dlsym(library, "bind") : NULL;
}

/* A C library of our own, in a name space of its own. */
static binder from_namespace(const char *file)
{
    void *library = dlmopen(LM_ID_NEWLM, file, RTLD_NOW);

    return library ? (binder)dlsym(library, "bind") : NULL;
}

static void patch(uintptr_t base, const ElfW(Rela) *relocations, size_t count, const ElfW(Sym) *symbols,
                  const char *strings, binder real)
{
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocations[i].r_info)];
        uintptr_t *place = (uintptr_t *)(base + relocations[i].r_offset);

        if (strcmp(strings + symbol->st_name, "bind") != 0)
            continue;
        mprotect((void *)((uintptr_t)place & ~4095UL), 4096, PROT_READ | PROT_WRITE);
        *place = (uintptr_t)real;
    }
}

/* Puts the C library's bind where this program's own calls to bind look for it. */
static int patch_program(struct dl_phdr_info *info, size_t size, void *real)
{
    const ElfW(Dyn) *entry = NULL;
    const ElfW(Rela) *jumps = NULL, *plain = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    size_t jump_bytes = 0, plain_bytes = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_JMPREL) jumps = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_PLTRELSZ) jump_bytes = entry->d_un.d_val;
        if (entry->d_tag == DT_RELA) plain = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_RELASZ) plain_bytes = entry->d_un.d_val;
        if (entry->d_tag == DT_SYMTAB) symbols = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) strings = (const void *)entry->d_un.d_ptr;
    }
    if (jumps)
        patch(info->dlpi_addr, jumps, jump_bytes / sizeof *jumps, symbols, strings, real);
    if (plain)
        patch(info->dlpi_addr, plain, plain_bytes / sizeof *plain, symbols, strings, real);
    return 1; /* only the first, which is the program */
}

static int tell(const char *how, binder call, int port)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) }, seen, real;
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (call == NULL) {
        printf("%s unavailable\n", how);
        return 0;
    }
    if ((call ? call(fd, (void *)&name, sizeof name) : -1) != 0) {
        printf("%s %s\n", how, errno ? strerrorname_np(errno) : "refused"); /* errno may be that of another C library */
        return 0;
    }
    getsockname(fd, (void *)&seen, &size);
    size = sizeof real;
    syscall(SYS_getsockname, fd, &real, &size);
    printf("%s %d %d\n", how, ntohs(seen.sin_port), ntohs(real.sin_port));
    return 0;
}

static int again(const char *how, char *self, char *port)
{
    char *words[] = { self, "plainly", port, (char *)how, NULL }, *none[] = { NULL };
    char *bare[] = { "PATH=/usr/bin:/bin", "LD_PRELOAD=", NULL };
    pid_t child = 0;

    if (strcmp(how, "execve") == 0)
        execve(self, words, none);
    if (strcmp(how, "execve-null") == 0)
        execve(self, words, NULL);
    if (strcmp(how, "execve-bare") == 0)
        execve(self, words, bare);
    if (strcmp(how, "execvpe") == 0)
        execvpe(self, words, none);
    if (strcmp(how, "execle") == 0)
        execle(self, self, "plainly", port, how, NULL, none);
    if (strcmp(how, "clearenv") == 0 && clearenv() == 0)
        execv(self, words);
    if (strcmp(how, "fexecve") == 0)
        fexecve(open(self, O_RDONLY), words, none);
    if (strcmp(how, "raw-execve") == 0)
        syscall(SYS_execve, self, words, none);
    if (strcmp(how, "raw-execveat") == 0)
        syscall(SYS_execveat, AT_FDCWD, self, words, none, 0);
    if (strcmp(how, "loader") == 0)
        execl("/proc/self/exe", self, "plainly", port, how, NULL);
    if (strcmp(how, "spawn") == 0)
        posix_spawn(&child, self, NULL, NULL, words, none);
    if (strcmp(how, "spawnp") == 0)
        posix_spawnp(&child, self, NULL, NULL, words, none);
    if (strcmp(how, "vfork") == 0 && (child = vfork()) == 0) {
        execve(self, words, none);
        _exit(127);
    }
    if (child > 0)
        return waitpid(child, NULL, 0) > 0 ? 0 : 1;
    return 3;
}

int main(int count, char **words)
{
    int port = count > 2 ? atoi(words[2]) : 0;

    setvbuf(stdout, NULL, _IONBF, 0);
    if (count < 3)
        return 2;
    if (strcmp(words[1], "plainly") == 0)
        return tell(count > 3 ? words[3] : "plainly", bind, port);
    if (strcmp(words[1], "raw") == 0)
        return tell("raw", raw_bind, port);
    if (strcmp(words[1], "next") == 0)
        return tell("next", (binder)dlsym(RTLD_NEXT, "bind"), port);
    if (strcmp(words[1], "handle") == 0)
        return tell("handle", from_handle("libc.so.6"), port);
    if (strcmp(words[1], "namespace") == 0)
        return tell("namespace", from_namespace("libc.so.6"), port);
    if (strcmp(words[1], "copy") == 0)
        return tell("copy", from_namespace(words[3]), port);
    if (strcmp(words[1], "table") == 0) {
        dl_iterate_phdr(patch_program, (void *)from_handle("libc.so.6"));
        return tell("table", bind, port);
    }
    return again(words[1], words[0], words[2]);
}
