/* The file that a Unix socket is bound to, as the kernel knows it (sock_diag(7), UDIAG_SHOW_VFS). */
#ifndef NETSANDBOX_BOUND_FILE_H
#define NETSANDBOX_BOUND_FILE_H

#include <stdint.h>

struct bound_file {
    uint32_t inode;  /* its lower half where numbers are longer */
    uint32_t device; /* major << 20 | minor */
};

/* 0 if the kernel does not tell. */
int find_bound_file(int bound, struct bound_file *into);

#endif
