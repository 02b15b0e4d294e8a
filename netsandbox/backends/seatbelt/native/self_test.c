/* Does the profile hold? Asked of the kernel before the command runs: a profile that was accepted and enforces nothing,
 * on a system that we do not know, must not be found out by the command. */
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

/* What the kernel says to a connection; 0 if it stands. */
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
    if (number != EAFNOSUPPORT) /* a system without IPv6 has no way out by it */
        expect_forbidden(number, "TCP to ::1");
}
