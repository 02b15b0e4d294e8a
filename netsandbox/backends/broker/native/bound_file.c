#include "bound_file.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANY_COOKIE 0xFFFFFFFFU

struct query {
    struct nlmsghdr header;
    struct unix_diag_req request;
};

/* The reply has the socket, then its attributes. */
static int read_reply(const void *data, size_t length, struct bound_file *into)
{
    const struct nlmsghdr *header = data;
    const struct unix_diag_msg *found = NLMSG_DATA(header);
    const struct rtattr *attribute = (const void *)(found + 1);
    struct unix_diag_vfs file;
    size_t left;

    if (length < NLMSG_LENGTH(sizeof *found) || header->nlmsg_len > length || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return 0;
    left = header->nlmsg_len - NLMSG_LENGTH(sizeof *found);
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
        if (attribute->rta_type == UNIX_DIAG_VFS && RTA_PAYLOAD(attribute) >= sizeof file) {
            memcpy(&file, RTA_DATA(attribute), sizeof file);
            into->inode = file.udiag_vfs_ino;
            into->device = file.udiag_vfs_dev;
            return 1;
        }
    return 0;
}

int find_bound_file(int bound, struct bound_file *into)
{
    struct query query = { .header = { .nlmsg_len = sizeof query, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
                           .request = { .sdiag_family = AF_UNIX, .udiag_states = ~0U, .udiag_show = UDIAG_SHOW_VFS,
                                        .udiag_cookie = { ANY_COOKIE, ANY_COOKIE } } };
    union {
        struct nlmsghdr header;
        char space[1024];
    } reply;
    struct stat own;
    ssize_t length = -1;
    int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (diag >= 0 && fstat(bound, &own) == 0) {
        query.request.udiag_ino = (uint32_t)own.st_ino;
        if (send(diag, &query, sizeof query, 0) == (ssize_t)sizeof query)
            length = recv(diag, &reply, sizeof reply, 0);
    }
    if (diag >= 0)
        close(diag);
    return length > 0 && read_reply(&reply, (size_t)length, into);
}
