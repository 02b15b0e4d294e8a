/* A datagram socket that is connected to a name server, dissolved, and then asked for its peer; errno stays. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define MARK 77

int main(void)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(53)}, seen;
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    socklen_t length = sizeof seen;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    inet_pton(AF_INET, "192.0.2.53", &server.sin_addr);
    errno = MARK;
    if (connect(fd, (struct sockaddr *)&server, sizeof server) != 0 || errno != MARK)
        printf("connect %d\n", errno);
    if (getpeername(fd, (struct sockaddr *)&seen, &length) != 0 || errno != MARK || memcmp(&seen, &server, length) != 0)
        printf("peer %d\n", errno);
    if (connect(fd, &nobody, sizeof nobody) != 0 || errno != MARK)
        printf("dissolve %d\n", errno);
    if (getpeername(fd, (struct sockaddr *)&seen, &length) == 0 || errno != ENOTCONN)
        printf("still connected\n");
    return 0;
}
