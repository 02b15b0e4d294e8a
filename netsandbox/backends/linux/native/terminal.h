/* Terminals for commands of `netsandbox exec`. */
#ifndef NETSANDBOX_TERMINAL_H
#define NETSANDBOX_TERMINAL_H

#include <sys/ioctl.h>

/* A new terminal; its master, or -1 with errno. */
int make_terminal(const struct winsize *size, int *slave);

/* The same by the process at the other end of *socket*, which calls give_terminal. */
int ask_terminal(int socket, const struct winsize *size, int *slave);
void give_terminal(int socket);

#endif
