/* The arguments of env(1), and a script's first line that names it. Pure. */
#ifndef NETSANDBOX_ENV_COMMAND_H
#define NETSANDBOX_ENV_COMMAND_H

#include <stddef.h>

#define NS_ENV "/usr/bin/env"

/* cdef */
/* Before which argument variables can be put, or 0 for options that are not known and where no program is named.
 * *program*: which argument names it. */
size_t ns_env_place(char *const *arguments, size_t *program);
/* What the first line of a file gives to /usr/bin/env: a program's name, or words after -S of which it is the first.
 * *words* is their number; blanks are between them. Ends the line with a NUL, in place. NULL for any other file. */
char *ns_env_words(char *head, size_t length, size_t *words);
/* end of cdef */

#endif
