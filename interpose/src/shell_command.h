/* A shell's `-c COMMAND`, as far as it must be understood to put something before a program's name in it. Pure. What is
 * not surely understood is said to be so, and left alone. */
#ifndef NETSANDBOX_SHELL_COMMAND_H
#define NETSANDBOX_SHELL_COMMAND_H

#include <stddef.h>

/* cdef */
/* Walks through the programs that a command names. All zero at first. */
struct ns_shell_walk {
    size_t at;     /* how far it was read */
    size_t start;  /* of the name */
    size_t length; /* of the name; 0 once there is none left */
    int inside;    /* 1: behind the name of the present command */
    int lists;     /* operators between commands */
    int special;   /* builtins for which a variable before the name means something else */
    int unsure;    /* 1: something that is not understood; the rest was not read */
};

/* 1 for the path of sh, bash, zsh, dash or ksh. */
int ns_shell_is_shell(const char *path);
/* Which argument is the command, or 0 if options are not those that are known. *traced*: the shell will print it. */
size_t ns_shell_command(char *const *arguments, int *traced);
/* The next name that the shell looks up in PATH or that is an absolute path, written without quotes; 0: no more. */
int ns_shell_next(const char *command, struct ns_shell_walk *walk);
/* 1 for one command without operators, before which variables may be set without changing what it is. */
int ns_shell_is_simple(const char *command);
/* 1 for a word of which no shell makes anything else. */
int ns_shell_is_plain(const char *word, size_t length);
/* end of cdef */

#endif
