/* Calls that succeed must leave errno alone, and calls that fail must say what the kernel says. Argument: a port. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MARK 77

static struct sockaddr_in name;
static int failures;

static void succeeds(const char *what, long result)
{
    if (result < 0 || errno != MARK) {
        printf("%s: result %ld, errno %d\n", what, result, errno);
        failures++;
    }
    errno = MARK;
}

static void fails(const char *what, long result, int error)
{
    if (result != -1 || errno != error) {
        printf("%s: result %ld, errno %d, not %d\n", what, result, errno, error);
        failures++;
    }
    errno = MARK;
}

static void successes(void)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    char data[4];
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), accepted;
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    struct iovec part = {data, 1};
    struct msghdr message = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many[20] = {0};
    in_port_t wanted = name.sin_port;

    errno = MARK;
    succeeds("bind", bind(server, (struct sockaddr *)&name, sizeof name));
    succeeds("listen", listen(server, 5));
    succeeds("connect", connect(client, (struct sockaddr *)&name, sizeof name));
    succeeds("accept", accepted = accept(server, (struct sockaddr *)&peer, &length));
    succeeds("getsockname", getsockname(accepted, (struct sockaddr *)&peer, &length));
    succeeds("getpeername", getpeername(client, (struct sockaddr *)&peer, &length));
    succeeds("bind udp", bind(udp, (struct sockaddr *)&name, sizeof name));
    succeeds("sendto", sendto(udp, "x", 1, 0, (struct sockaddr *)&name, sizeof name));
    succeeds("recvfrom", recvfrom(udp, data, 1, 0, (struct sockaddr *)&peer, &length));
    succeeds("sendmsg", sendmsg(udp, &message, 0));
    message.msg_name = &peer;
    succeeds("recvmsg", recvmsg(udp, &message, 0));
    message.msg_name = &name, message.msg_namelen = sizeof name;
    for (int one = 0; one < 20; one++)
        many[one].msg_hdr = message;
    succeeds("sendmmsg", sendmmsg(udp, many, 20, 0) == 20 ? 0 : -1);
    name.sin_port = 0;
    succeeds("recvmmsg", recvmmsg(udp, many, 20, MSG_DONTWAIT, NULL) == 20 ? 0 : -1);
    succeeds("recvmmsg's sender", name.sin_port == wanted ? 0 : -1);
    succeeds("listen without a name", listen(socket(AF_INET, SOCK_STREAM, 0), 1));
}

/* The last byte before memory that is not there: an address that begins here ends in the void. */
static char *edge(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(pages + 4096, 4096);
    return pages + 4096 - 8;
}

static void bad_pointers(void)
{
    char *half = edge();
    struct sockaddr *none = NULL, *wild = (struct sockaddr *)0xdead0000, *cut = (struct sockaddr *)half;
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr *bad[] = {none, wild, cut};

    memcpy(half, &name, 8);
    for (int one = 0; one < 3; one++) {
        errno = MARK;
        fails("bind", bind(tcp, bad[one], sizeof name), EFAULT);
        fails("connect", connect(tcp, bad[one], sizeof name), EFAULT);
        fails("getsockname", getsockname(tcp, bad[one], &length), EFAULT);
        length = 12;
        fails("getsockname, short", getsockname(tcp, bad[one], &length), EFAULT);
        length = sizeof peer;
        fails("getsockname, length", getsockname(tcp, (struct sockaddr *)&peer, (socklen_t *)0xdead0000), EFAULT);
        if (one != 0)
            fails("sendto", sendto(udp, "x", 1, 0, bad[one], sizeof name), EFAULT);
        fails("sendmsg", sendmsg(udp, (struct msghdr *)bad[one], 0), EFAULT);
        fails("recvmsg", recvmsg(udp, (struct msghdr *)bad[one], MSG_DONTWAIT), EFAULT);
        fails("sendmmsg", sendmmsg(udp, (struct mmsghdr *)bad[one], 3, 0), EFAULT);
    }
}

static void bad_lengths(void)
{
    char large[256] = {0};
    struct sockaddr *address = (struct sockaddr *)large;
    socklen_t negative = (socklen_t)-1;
    int tcp = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(large, &name, sizeof name);
    errno = MARK;
    for (socklen_t length = 0; length < 16; length++) {
        fails("short bind", bind(tcp, address, length), EINVAL);
        fails("short connect", connect(tcp, address, length), EINVAL);
    }
    fails("long bind", bind(tcp, address, 129), EINVAL);
    fails("long connect", connect(tcp, address, negative), EINVAL);
    fails("negative room", getsockname(tcp, address, &negative), EINVAL);
    fails("no descriptor", connect(-1, address, 16), EBADF);
    fails("no socket", connect(0, address, 16), ENOTSOCK);
    succeeds("long room", connect(tcp, address, 128));
}

static void short_rooms(void)
{
    struct sockaddr_in whole;
    unsigned char cut[16];
    int udp = socket(AF_INET, SOCK_DGRAM, 0);

    connect(udp, (struct sockaddr *)&name, sizeof name);
    for (socklen_t room = 0; room <= 16; room++) {
        socklen_t length = room, full = sizeof whole;

        memset(cut, 0xaa, sizeof cut);
        errno = MARK;
        succeeds("full room", getpeername(udp, (struct sockaddr *)&whole, &full));
        succeeds("short room", getpeername(udp, (struct sockaddr *)cut, &length));
        if (length != 16 || memcmp(cut, &whole, room) != 0 || (room < 16 && cut[room] != 0xaa))
            failures++, printf("room %d\n", (int)room);
    }
    if (whole.sin_port != name.sin_port)
        failures++, printf("port %d\n", ntohs(whole.sin_port));
}

int main(int count, char **arguments)
{
    name.sin_family = AF_INET;
    name.sin_port = htons(atoi(arguments[count - 1]));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    successes();
    bad_pointers();
    bad_lengths();
    short_rooms();
    return failures != 0;
}
