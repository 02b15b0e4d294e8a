#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_path.h"
#include "caller.h"
#include "channel.h"
#include "refused.h"
#include "reports.h"
#include "sockets.h"
#include "trap_pool.h"

#define MAX_CALL 512 /* every number of file_calls.py is below */
#define MAX_ROWS 128

static struct path_row rows[MAX_ROWS];
static uint8_t first_row[MAX_CALL]; /* 1 + index in rows; rows of one call follow one another */
static size_t row_count;

static void receive_rows(void)
{
    ssize_t length;

    do
        length = recv(RELAY, rows, sizeof rows, MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length <= 0 || (size_t)length > sizeof rows || (size_t)length % sizeof *rows != 0)
        _exit(1);
    row_count = (size_t)length / sizeof *rows;
    for (size_t number = row_count; number-- > 0;) {
        if (rows[number].call >= MAX_CALL)
            _exit(1);
        first_row[rows[number].call] = (uint8_t)(number + 1);
    }
}

/* What the call does with the path: one of refusal.does, 'e' to make a file that may not exist, 'c' to open one that may
 * not exist, or 0 if it is not looked at. */
static char purpose(const struct seccomp_notif *call, const struct path_row *row, int *follow)
{
    uint64_t flags = row->flags == NO_ARGUMENT ? 0 : call->data.args[row->flags];

    *follow = row->follows;
    switch (row->use) {
    case USE_CHANGE:
        *follow = row->follows && !(flags & AT_SYMLINK_NOFOLLOW);
        return 'w';
    case USE_NAME:
    case USE_REMOVE:
    case USE_FOLDER:
    case USE_EXEC:
        return (char)row->use;
    case USE_CREAT:
        flags = O_CREAT | O_WRONLY | O_TRUNC;
        break;
    case USE_HOW:
        if (caller_memory((pid_t)call->pid, flags, &flags, sizeof flags) != (ssize_t)sizeof flags)
            return 0;
        break;
    default:
        flags = (uint32_t)flags;
        break;
    }
    if (flags & O_PATH)
        return 0;
    *follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    if (flags & O_CREAT)
        return flags & O_EXCL ? 'e' : 'c';
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ? 'w' : 'r';
}

static int is_under(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Non-zero if the call is held for the supervisor. */
static int look(const struct seccomp_notif *call, const struct path_row *row)
{
    char path[PATH_MAX];
    int follow;
    char does = purpose(call, row, &follow);
    char why;

    if (does == 0 || full_path(call, row, path) == 0 || is_under(path, "/proc") || is_under(path, "/dev"))
        return 0;
    if (!open_root(call)) {
        count_unreported();
        return 0;
    }
    if (does == 'r' || does == 'x') {
        why = does == 'x' ? refused_execution(path) : refused_read(path);
    } else {
        why = refused_write(path, &does, follow);
        if (!why && row->tells & TELLS && is_change(path, does))
            why = 'o';
    }
    if ((why == 'h' || why == 'r') && row->tells & ASKS)
        return pass_question(call, why, does == 'e' ? 'n' : does, path);
    if (why)
        report(call, why, does == 'e' ? 'n' : does, path);
    if ((!why || why == 'o') && (does == 'n' || does == 'd' || does == 'e') && is_change(path, does))
        report_made(path);
    return 0;
}

static void serve_call(struct seccomp_notif *call)
{
    size_t row = call->data.nr >= 0 && call->data.nr < MAX_CALL ? first_row[call->data.nr] : 0;
    int is_held = 0;

    if (call->data.nr == SYS_connect || call->data.nr == SYS_bind) {
        if (!serve_socket(call, row != 0))
            pass_on(call);
        return;
    }
    if (row == 0) {
        if (call->data.nr != SYS_listen || !serve_listen(call, first_row[SYS_bind] != 0))
            pass_on(call);
        return;
    }
    for (row--; row < row_count && rows[row].call == call->data.nr; row++)
        is_held |= look(call, &rows[row]);
    report_unreported();
    if (!is_held)
        let_go_on(call);
}

void serve_traps(int source)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-trap") < 0)
        _exit(1);
    if (syscall(SYS_close_range, 0U, CHANNEL, 0U) < 0 || chdir("/") < 0)
        _exit(1);
    receive_rows();
    receive_hidden();
    receive_listener(source);
    sockets_begin();
    serve_pool(serve_call);
}
