/* One query by UDP to the door on 127.0.0.1, with three tries of one second. The socket exists only within this call,
 * as in bind_request.c. It is connected, so that only the door's datagrams arrive and a missing door is noticed at
 * once. */
#include "resolver.h"

#ifdef NS_EGRESS

#include "door.h"
#include "sockaddr.h"
#include "session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define TRIES 3
#define PATIENCE_MS 1000
#define MAX_REPLY 1500

struct question {
    uint32_t length;
    uint8_t bytes[NS_DNS_QUESTION];
};

/* Waits until the deadline: datagrams that are no reply do not end the wait. */
static int receive_reply(int fd, const struct question *question, int64_t deadline, struct ns_addresses *found)
{
    while (ns_wait(fd, POLLIN, deadline) == 0) {
        uint8_t message[MAX_REPLY];
        ssize_t got = recv(fd, message, sizeof message, 0);
        int outcome;

        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return NS_RESOLVER_UNREACHED;
        outcome = got < 0 ? NS_DNS_FOREIGN
                       : ns_dns_answer(question->bytes, question->length, message, (uint32_t)got, found);
        if (outcome != NS_DNS_FOREIGN)
            return outcome;
    }
    return NS_RESOLVER_SILENT;
}

static int query(int fd, uint16_t door, const struct question *question, struct ns_addresses *found)
{
    uint8_t name[NS_NAME_BYTES];
    uint32_t length = ns_sockaddr_localhost(AF_INET, door, name);
    int outcome = NS_RESOLVER_SILENT;

    if (ns_door_reach(fd, name, length, ns_deadline(PATIENCE_MS)) != 0)
        return NS_RESOLVER_UNREACHED;
    for (int attempt = 0; attempt < TRIES && outcome == NS_RESOLVER_SILENT; attempt++) {
        int64_t deadline = ns_deadline(PATIENCE_MS);

        if (ns_door_tell(fd, question->bytes, question->length, deadline) != 0)
            return NS_RESOLVER_UNREACHED;
        outcome = receive_reply(fd, question, deadline, found);
    }
    return outcome;
}

static int exchange(uint16_t door, const struct question *question, struct ns_addresses *found)
{
    int cancelling;
    int fd;
    int outcome = NS_RESOLVER_UNREACHED;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    fd = ns_door_socket(SOCK_DGRAM);
    if (fd >= 0) {
        outcome = query(fd, door, question, found);
        close(fd);
    }
    pthread_setcancelstate(cancelling, NULL);
    return outcome;
}

static int resolve(const struct ns_map *map, const char *name, struct ns_addresses *found)
{
    struct question question;
    struct ns_view view;
    uint16_t id;

    if (ns_map_look(map, 0, &view) != 0)
        return NS_RESOLVER_UNREACHED;
    if (view.resolver == 0)
        return NS_RESOLVER_ABSENT;
    if (getentropy(&id, sizeof id) != 0)
        return NS_RESOLVER_UNREACHED;
    question.length = ns_dns_question(name, id, question.bytes);
    return question.length == 0 ? NS_DNS_NONE : exchange(view.resolver, &question, found);
}

int ns_is_number(const char *name)
{
    struct in6_addr address;

    if (strpbrk(name, " \t\n\v\f\r") != NULL) /* inet_aton accepts anything after a blank */
        return 0;
    return inet_aton(name, (struct in_addr *)&address) != 0 || inet_pton(AF_INET6, name, &address) == 1;
}

int ns_resolve(const char *name, struct ns_addresses *found)
{
    const struct ns_map *map = ns_session_map();
    int saved = errno;
    int outcome;

    found->count = 0;
    if (map == NULL)
        return NS_RESOLVER_ABSENT;
    outcome = resolve(map, name, found);
    errno = saved;
    return outcome;
}

#endif
