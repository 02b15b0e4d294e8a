/* Parses a shell's `-c COMMAND` far enough to insert something before a program's name in it. Pure. A command that is
 * not understood with certainty is reported as unsure and stays unchanged. */
#ifndef NETSANDBOX_SHELL_COMMAND_H
#define NETSANDBOX_SHELL_COMMAND_H

#include <stddef.h>

/* cdef */
/* Walks through the programs that a command names. Start with all zero. */
struct ns_shell_walk {
    size_t at;     /* position of the parser */
    size_t start;  /* of the name */
    size_t length; /* of the name; 0 after the last */
    int inside;    /* 1: after the name of the present command */
    int lists;     /* operators between commands */
    int special;   /* builtins for which a variable before the name has another meaning */
    int unsure;    /* 1: the rest is not understood and was not parsed */
};

/* 1 for the path of sh, bash, zsh, dash or ksh. */
int ns_shell_is_shell(const char *path);
/* The argument that is the command, or 0 for unknown options. *traced*: the shell will print it. */
size_t ns_shell_command(char *const *arguments, int *traced);
/* The next name that the shell looks up in PATH or that is an absolute path, written without quotes; 0: no more. */
int ns_shell_next(const char *command, struct ns_shell_walk *walk);
/* 1 for one command without operators, before which variables may be set without changing its meaning. */
int ns_shell_is_simple(const char *command);
/* 1 for a word that no shell changes. */
int ns_shell_is_plain(const char *word, size_t length);
/* end of cdef */

#endif
