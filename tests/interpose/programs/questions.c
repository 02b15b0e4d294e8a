/* Asks a name server twenty times by one sendmmsg, and takes the answers by recvmmsg: each comes from that server. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define COUNT 20

static const unsigned char question[] = "\x53\x53\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1";

int main(void)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(53)}, senders[COUNT];
    struct iovec parts[COUNT];
    struct mmsghdr messages[COUNT] = {0};
    unsigned char rooms[COUNT][512];
    int fd = socket(AF_INET, SOCK_DGRAM, 0), answered = 0;

    inet_pton(AF_INET, "192.0.2.53", &server.sin_addr);
    for (int one = 0; one < COUNT; one++) {
        parts[one] = (struct iovec){(void *)question, sizeof question - 1};
        messages[one].msg_hdr = (struct msghdr){.msg_name = &server, .msg_namelen = sizeof server};
        messages[one].msg_hdr.msg_iov = &parts[one];
        messages[one].msg_hdr.msg_iovlen = 1;
    }
    if (sendmmsg(fd, messages, COUNT, 0) != COUNT)
        return 1;
    while (answered < COUNT) {
        for (int one = answered; one < COUNT; one++) {
            parts[one] = (struct iovec){rooms[one], sizeof rooms[one]};
            messages[one].msg_hdr.msg_name = &senders[one];
            messages[one].msg_hdr.msg_namelen = sizeof senders[one];
        }
        int got = recvmmsg(fd, messages + answered, (unsigned int)(COUNT - answered), MSG_WAITFORONE, NULL);

        if (got <= 0)
            return 2;
        for (int one = answered; one < answered + got; one++)
            if (memcmp(&senders[one], &server, sizeof server) != 0)
                return 3;
        answered += got;
    }
    printf("answered %d\n", answered);
    return 0;
}
