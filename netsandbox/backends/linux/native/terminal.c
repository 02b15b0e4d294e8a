#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"

int make_terminal(const struct winsize *size, int *slave)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int unlocked = 0;

    if (master < 0)
        return -1;
    if (ioctl(master, TIOCSPTLCK, &unlocked) < 0 || ioctl(master, TIOCSWINSZ, size) < 0
        || (*slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        close(master);
        return -1;
    }
    return master;
}

int ask_terminal(int socket, const struct winsize *size, int *slave)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    int number = 0;
    struct iovec vector = { &number, sizeof number };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    int made[2];

    if (send(socket, size, sizeof *size, MSG_NOSIGNAL) < 0)
        return -1;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof number || CMSG_FIRSTHDR(&message) == NULL
        || control.header.cmsg_type != SCM_RIGHTS || control.header.cmsg_len != CMSG_LEN(sizeof made)) {
        errno = number ? number : EACCES;
        return -1;
    }
    memcpy(made, CMSG_DATA(&control.header), sizeof made);
    *slave = made[1];
    return made[0];
}

void give_terminal(int socket)
{
    struct winsize size;
    int made[2] = { -1, -1 };
    int number = 0;

    if (recv(socket, &size, sizeof size, MSG_DONTWAIT) != (ssize_t)sizeof size)
        return;
    made[0] = make_terminal(&size, &made[1]);
    if (made[0] < 0)
        number = errno;
    send_descriptors(socket, &number, sizeof number, made, made[0] < 0 ? 0 : 2);
    if (made[0] >= 0) {
        close(made[0]);
        close(made[1]);
    }
}
