/* The sockets that the broker made for the session, by inode. `/proc/PID/fd/N` names the inode of a caller's descriptor,
 * so it does not matter how the descriptor got there: dup, fork, SCM_RIGHTS.
 *
 * A copy of each socket is kept until connect or listen, the calls that are made on it. A copy keeps the socket alive
 * after its program has closed it, so a sweep drops the copies of sockets that no process of the session has any more.
 * All functions hold one lock; an entry belongs to its caller until entry_done. */
#ifndef NETSANDBOX_SOCKET_TABLE_H
#define NETSANDBOX_SOCKET_TABLE_H

#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/types.h>

#include "place.h"

enum socket_kind {
    KIND_STREAM = 's',   /* TCP */
    KIND_DATAGRAM = 'd', /* a stand-in for UDP (datagrams.h) */
    KIND_UNIX = 'u',
    KIND_NETLINK = 'n',
};

struct entry {
    ino_t inode;
    uint8_t kind;
    uint8_t family;      /* as the program asked for it */
    uint8_t type;        /* SOCK_STREAM … */
    uint8_t is_connected;
    uint8_t is_listening;
    uint8_t has_local;   /* `local` is what the program sees as its address */
    uint8_t has_peer;    /* `peer` is what it connected to */
    uint8_t is_used;     /* between entry_take and entry_done */
    uint8_t missing;     /* sweeps that did not find it */
    int unheard;         /* the number of a call that succeeded without its caller, plus one */
    int copy;            /* -1: dropped */
    int near;            /* our end of a stand-in */
    pid_t pid;           /* the process that made it */
    struct place local;
    struct place peer;   /* of a stand-in without has_peer: what it last sent to */
    char *name;          /* the address of a Unix socket, as the program gave it */
    uint16_t name_length;
    struct entry *next;
};

/* The inode behind descriptor *number* of the caller; 0 with errno for what is no socket. */
ino_t caller_inode(const struct seccomp_notif *call, int number);

/* A new entry, which is taken; NULL without memory, or while the entry of a socket that had its inode before is in use. It owns
 * *copy* and *near*. */
struct entry *entry_add(int copy, int near, uint8_t kind, int family, int type, pid_t pid);

/* The entry of the socket, taken; NULL if it is none of ours. Waits while another thread has it. */
struct entry *entry_take(ino_t inode);
void entry_done(struct entry *entry);
void entry_drop_copy(struct entry *entry);
void entry_remove(struct entry *entry); /* in place of entry_done */

int is_stream_port(uint16_t port); /* a TCP socket of the session is bound to it */

/* Drops what no process below this one has. *now*: without waiting for a second sweep to agree. */
void sweep_sockets(int now);
int is_sweep_due(void); /* copies are held, or entries have become many */
extern int sweep_wish;  /* an eventfd: they have become many */

/* Called once, before the first call. */
void sockets_begin(void);

#endif
