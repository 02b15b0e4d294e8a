/* Tests before the command runs that the kernel enforces the profile: on an unknown system, the command must not be the
 * first to notice that an accepted profile enforces nothing. */
#include "apply.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int forbidden(int number)
{
    return number == EPERM || number == EACCES;
}

/* The kernel's error for a connection; 0 if it is connected. */
static int attempt(int kind, const struct sockaddr *address, socklen_t length)
{
    int sock = socket(address->sa_family, kind, 0);
    if (sock < 0)
        return errno;
    int number = connect(sock, address, length) == 0 ? 0 : errno;
    close(sock);
    return number;
}

static void expect_forbidden(int number, const char *what)
{
    if (!forbidden(number))
        fail("self-test", number, what);
}

void prove_confined(unsigned short port)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    memset(&four, 0, sizeof four);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(&six, 0, sizeof six);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    six.sin6_addr = in6addr_loopback;
#ifdef __APPLE__
    four.sin_len = sizeof four;
    six.sin6_len = sizeof six;
#endif
    expect_forbidden(attempt(SOCK_STREAM, (struct sockaddr *)&four, sizeof four), "TCP to 127.0.0.1");
    int number = attempt(SOCK_STREAM, (struct sockaddr *)&six, sizeof six);
    if (number != EAFNOSUPPORT) /* without IPv6 there is no way out through it */
        expect_forbidden(number, "TCP to ::1");
}
