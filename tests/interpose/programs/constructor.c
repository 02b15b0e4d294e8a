/* As a library: uses hooks in its constructor, which may run before the preload library's own. As a program: nothing. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

__attribute__((constructor)) static void early(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, seen;
    socklen_t length = sizeof seen;
    const char *port = getenv("EARLY_PORT");
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (port == NULL)
        return;
    name.sin_port = htons(atoi(port));
    if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0 || getsockname(fd, (struct sockaddr *)&seen, &length) != 0)
        perror("early bind");
    printf("early %d\n", ntohs(seen.sin_port));
    fflush(stdout);
}
