#include "questions.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "caller.h"
#include "descendants.h"
#include "refused_ports.h"
#include "trap_pool.h"

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static void to_supervisor(struct iovec *parts, size_t count)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    while (sendmsg(RELAY, &message, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            end_session();
}

static void send_question(const struct seccomp_notif *call, char letter, struct question *question, const char *path)
{
    char exe[PATH_MAX];
    struct iovec parts[4] = { { &letter, 1 }, { question, sizeof *question }, { exe, 1 },
                              { (void *)(uintptr_t)path, strlen(path) + 1 } };

    question->id = call->id;
    question->pid = (int32_t)call->pid;
    parts[2].iov_len = caller_link((pid_t)call->pid, "exe", exe, sizeof exe) + 1;
    to_supervisor(parts, 4);
}

int ask(const struct seccomp_notif *call, struct question *question, const char *path, struct verdict *verdict)
{
    ssize_t length;

    if (!hand_over())
        return EAGAIN;
    if (!is_waiting(call))
        return EACCES; /* the caller is gone, and what was read may be of another process */
    pthread_mutex_lock(&asking);
    send_question(call, 'Q', question, path == NULL ? "" : path);
    do
        length = recv(RELAY, verdict, sizeof *verdict, 0);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof *verdict || verdict->id != call->id)
        end_session();
    pthread_mutex_unlock(&asking);
    return verdict->error;
}

int refuse(const struct seccomp_notif *call, char kind, int error)
{
    struct question question = { .kind = (uint8_t)kind, .error = error };
    struct verdict verdict;
    int answer = ask(call, &question, NULL, &verdict);

    return answer ? answer : error;
}

void tell_listening(const struct seccomp_notif *call, const struct place *actual)
{
    struct question question = { .actual = *actual };

    send_question(call, 'L', &question, "");
}

void tell_local(const struct seccomp_notif *call, int binds, const struct place *place, int error)
{
    char exe[PATH_MAX];
    char letter = 'C';
    struct local_call told = { .pid = (int32_t)call->pid, .port = place->port };
    struct iovec parts[3] = { { &letter, 1 }, { &told, sizeof told }, { exe, 1 } };

    if (binds ? error != EADDRINUSE : error != 0 && error != EINPROGRESS && error != ECONNREFUSED)
        return;
    told.times = binds ? 1 : refused_times(place->port, error == ECONNREFUSED);
    told.kind = binds ? LOCAL_TAKEN : error == ECONNREFUSED ? LOCAL_REFUSED : LOCAL_CONNECTED;
    if (told.times == 0)
        return;
    parts[2].iov_len = caller_link((pid_t)call->pid, "exe", exe, sizeof exe) + 1;
    to_supervisor(parts, 3);
}
