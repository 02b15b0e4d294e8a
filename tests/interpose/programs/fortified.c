/* Compiled with _FORTIFY_SOURCE, a recvfrom of unknown size is another function. Arguments: a port, a size. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int count, char **arguments)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 2]))}, sender;
    socklen_t length = sizeof sender;
    char data[8];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0 ||
        sendto(fd, "x", 1, 0, (struct sockaddr *)&name, sizeof name) != 1 ||
        recvfrom(fd, data, (size_t)atoi(arguments[count - 1]), 0, (struct sockaddr *)&sender, &length) != 1)
        return 1;
    printf("%d\n", ntohs(sender.sin_port));
    return 0;
}
