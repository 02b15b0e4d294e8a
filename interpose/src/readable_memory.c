/* Linux: rt_sigprocmask(2) copies eight bytes in before it rejects its arguments, so it detects unreadable memory at
 * the cost of the cheapest system call. macOS has no such call: there only the first page is known to be bad, and any
 * other bad pointer crashes in the hook instead of giving EFAULT. */
#include "readable_memory.h"

#include <errno.h>
#include <stdint.h>

#define PAGE 4096u
#define WORD 8u

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>

#define NO_SUCH_HOW 0x7fffffff

static int page_is_there(uintptr_t address)
{
    int saved = errno;
    long result = syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, address & ~(uintptr_t)(WORD - 1), NULL, (size_t)WORD);
    int there = result == 0 || errno != EFAULT;

    errno = saved;
    return there;
}
#else
static int page_is_there(uintptr_t address)
{
    return address != 0;
}
#endif

int ns_readable(const void *start, size_t length)
{
    uintptr_t first = (uintptr_t)start;
    uintptr_t last = first + (length == 0 ? 0 : length - 1);

    if (first < PAGE || last < first)
        return 0;
    if (!page_is_there(first))
        return 0;
    return first / PAGE == last / PAGE || page_is_there(last);
}
