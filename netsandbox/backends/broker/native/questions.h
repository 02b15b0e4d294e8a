/* Questions to the supervisor, over the relay. It records its verdict before it answers (INV-5).
 *
 * here -> supervisor:
 *   Q <struct question> exe NUL path NUL     waits for struct verdict
 *   L <struct question> exe NUL NUL          a socket listens, at `actual`
 *   C <struct local_call> exe NUL            a connect or bind that failed at the session's own localhost
 * supervisor -> here: struct verdict */
#ifndef NETSANDBOX_QUESTIONS_H
#define NETSANDBOX_QUESTIONS_H

#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/stat.h>

#include "place.h"

#define RELAY 4 /* the descriptor the supervisor gives us */

enum question_kind {
    QUESTION_BIND = 'b',      /* may a TCP socket be bound to `place`, and where is that on this host? */
    QUESTION_FAMILY = 'f',    /* a socket outside of the allow list: `family`, `type`, `protocol` */
    QUESTION_SOCKET = 'u',    /* a socket file that is not of this session: 0 to connect */
    QUESTION_HIDDEN = 'h',    /* a socket file that the session cannot reach */
    QUESTION_FOREIGN = 'n',   /* a socket that the broker did not make */
    QUESTION_MALFORMED = 'm', /* the address cannot be read */
    QUESTION_INTERNAL = 'i',  /* the caller cannot be looked into */
};

struct question {
    uint64_t id;
    uint64_t device; /* of a socket file */
    uint64_t inode;
    struct place place;
    struct place actual;
    int32_t pid;
    int32_t error;
    int32_t protocol;
    uint8_t kind;
    uint8_t family;
    uint8_t type;
    uint8_t binds; /* bind(2), not connect(2) */
};

struct verdict {
    uint64_t id;
    int32_t error; /* 0: go on */
    struct place actual;
};

/* Fills in id, pid and exe, and waits for the answer; other calls go on meanwhile. 0, or an errno. *path* may be NULL. */
int ask(const struct seccomp_notif *call, struct question *question, const char *path, struct verdict *verdict);

/* The same for a refusal whose errno is known: it is recorded. Returns the errno. */
int refuse(const struct seccomp_notif *call, char kind, int error);

/* Tells of a listening socket. */
void tell_listening(const struct seccomp_notif *call, const struct place *actual);

/* Tells of a call at the session's localhost; *error* is what it gives. */
void tell_local(const struct seccomp_notif *call, int binds, const struct place *place, int error);

#endif
