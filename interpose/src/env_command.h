/* The arguments of env(1), and a script's first line that names it. Pure. */
#ifndef NETSANDBOX_ENV_COMMAND_H
#define NETSANDBOX_ENV_COMMAND_H

#include <stddef.h>

#define NS_ENV "/usr/bin/env"

/* cdef */
/* The argument before which variables can be inserted, or 0 for unknown options or without a program. *program*: the
 * argument that names the program. */
size_t ns_env_place(char *const *arguments, size_t *program);
/* What the first line of a file passes to /usr/bin/env: a program's name, or words after -S that begin with it. *words*
 * is their number; blanks separate them. Ends the line with a NUL, in place. NULL for any other file. */
char *ns_env_words(char *head, size_t length, size_t *words);
/* end of cdef */

#endif
