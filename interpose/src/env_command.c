/* The options that env of macOS shares with others, except -S. Of a first line, the forms that every kernel reads
 * alike: one word, or -S with words that need no unquoting. */
#include "env_command.h"

#include "shell_command.h"

#include <string.h>

size_t ns_env_place(char *const *arguments, size_t *program)
{
    size_t at, place;

    if (arguments[0] == NULL)
        return 0;
    for (at = 1; arguments[at] != NULL && arguments[at][0] == '-'; at++) {
        const char *option = arguments[at];

        if (strcmp(option, "--") == 0 || strcmp(option, "-") == 0) {
            at++;
            break;
        }
        if (strcmp(option, "-i") == 0)
            continue;
        if (strcmp(option, "-u") != 0 || arguments[at + 1] == NULL)
            return 0;
        at++;
    }
    for (place = at; arguments[at] != NULL && strchr(arguments[at], '=') != NULL; at++)
        continue;
    *program = at;
    return arguments[at] == NULL || arguments[place][0] == '-' ? 0 : place;
}

static char *past_blanks(char *text)
{
    return text + strspn(text, " \t");
}

/* Nothing that env or a shell would unquote. */
static int is_plain(const char *word, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (!ns_shell_is_plain(word + at, 1) && (word[at] == '\0' || strchr("=:,", word[at]) == NULL))
            return 0;
    return word[0] != '='; /* zsh looks such a word up */
}

char *ns_env_words(char *head, size_t length, size_t *words)
{
    char *end = length > 2 && head[0] == '#' && head[1] == '!' ? memchr(head, '\n', length) : NULL;
    char *start, *word;
    int many;

    if (end == NULL || memchr(head, '\0', (size_t)(end - head)) != NULL)
        return NULL;
    while (end > head + 2 && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    start = past_blanks(head + 2);
    if (strncmp(start, NS_ENV, strlen(NS_ENV)) != 0 || strchr(" \t", start[strlen(NS_ENV)]) == NULL)
        return NULL;
    start = past_blanks(start + strlen(NS_ENV));
    many = strncmp(start, "-S", 2) == 0;
    start = past_blanks(start + (many ? 2 : 0));
    *words = 0;
    for (word = start; *word != '\0'; word = past_blanks(word + strcspn(word, " \t")), ++*words)
        if (!is_plain(word, strcspn(word, " \t")))
            return NULL;
    if (*start == '-' || memchr(start, '=', strcspn(start, " \t")) != NULL)
        return NULL;
    return *words == 1 || (*words > 1 && many) ? start : NULL;
}
