/* Options as npm, node, Python, make and workflows pass them, and a small part of sh's grammar (POSIX.1-2017, 2.10):
 * commands, quotes, operators, redirections. Anything else makes the walk unsure. */
#include "shell_command.h"

#include <string.h>

#define SHELLS "sh bash zsh dash ksh "
#define LONG_OPTIONS "--norc --noprofile --login --posix "
#define NAMED_OPTIONS "pipefail errexit nounset noglob "
#define LETTERS "eufxl" /* before c, or before o and a name */

/* At the start of a command these change how the rest is parsed, or what names mean. */
#define KEYWORDS                                                                                                       \
    "! [[ ]] { } case coproc do done elif else end esac fi for foreach function if in nocorrect noglob repeat "        \
    "select then time until while . alias autoload disable emulate enable eval hash rehash setopt shopt source "       \
    "unalias unsetopt zmodload builtin command - "
/* Builtins for which a preceding assignment persists, or does not reach their children. */
#define SPECIAL                                                                                                        \
    ": break continue declare exec exit export float integer local readonly return set shift times trap typeset "      \
    "unset "
/* All other builtins of bash, dash, ksh and zsh. */
#define BUILTINS                                                                                                       \
    "[ bg bind bindkey bye caller cd chdir compadd comparguments compcall compctl compdescribe compfiles compgen "     \
    "compgroups complete compopt compquote compset comptags comptry compvalues dirs disown echo echotc echoti "        \
    "false fc fg functions getconf getln getopts help hist history jobs kill let limit log logout mapfile newgrp "     \
    "popd print printf private pushd pushln pwd r read readarray sched sleep suspend test true ttyctl type ulimit "    \
    "umask unfunction unhash unlimit vared wait whence where which zcompile zformat zle zparseopts zregexparse "       \
    "zstyle "

static int is_listed(const char *list, const char *word, size_t length)
{
    while (*list != '\0' && length > 0) {
        size_t same = 0;

        while (same < length && list[same] == word[same] && word[same] != ' ')
            same++;
        if (same == length && list[same] == ' ')
            return 1;
        while (*list != '\0' && *list++ != ' ')
            continue;
    }
    return 0;
}

static int names_one_of(const char *list, const char *word)
{
    return is_listed(list, word, strlen(word));
}

int ns_shell_is_shell(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;

    return names_one_of(SHELLS, name);
}

/* 'c' or 'o' for a word of known letters that ends in it, 'x' for a word of only such letters, 0 for any other. */
static char option(const char *word, int *traced)
{
    size_t known = strspn(word + 1, LETTERS);
    const char *rest = word + 1 + known;

    if (word[0] != '-' || word[1] == '\0' || (rest[0] != '\0' && rest[1] != '\0'))
        return 0;
    *traced |= memchr(word + 1, 'x', known) != NULL;
    if (rest[0] == '\0')
        return 'x';
    return rest[0] == 'c' || rest[0] == 'o' ? rest[0] : 0;
}

size_t ns_shell_command(char *const *arguments, int *traced)
{
    *traced = 0;
    for (size_t at = 1; arguments[0] != NULL && arguments[at] != NULL; at++) {
        char kind;

        if (names_one_of(LONG_OPTIONS, arguments[at]))
            continue;
        kind = option(arguments[at], traced);
        if (kind == 0 || (kind != 'x' && arguments[++at] == NULL))
            return 0;
        if (kind == 'c')
            return arguments[at][0] == '-' || arguments[at][0] == '+' ? 0 : at;
        if (kind == 'o' && !names_one_of(NAMED_OPTIONS, arguments[at]))
            return 0;
    }
    return 0;
}

static int is_letter(char one)
{
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || one == '_';
}

static int is_digit(char one)
{
    return one >= '0' && one <= '9';
}

int ns_shell_is_plain(const char *word, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (!is_letter(word[at]) && !is_digit(word[at]) && (word[at] == '\0' || strchr("./@+-", word[at]) == NULL))
            return 0;
    return length > 0;
}

/* The position after a dollar sign's name, single character, or braces with at most a plain default. 0: unsure. */
static size_t past_dollar(const char *text, size_t at)
{
    if (text[at] != '{')
        return text[at] == '(' || text[at] == '\'' || text[at] == '"' || text[at] == '[' ? 0 : at;
    for (at++; is_letter(text[at]) || is_digit(text[at]) || text[at] == ':' || text[at] == '-'; at++)
        continue;
    return text[at] == '}' ? at + 1 : 0;
}

static size_t past_quote(const char *text, size_t at)
{
    const char *end = strchr(text + at, '\'');

    return end == NULL ? 0 : (size_t)(end - text) + 1;
}

static size_t past_double_quote(const char *text, size_t at)
{
    while (at != 0 && text[at] != '"') {
        if (text[at] == '\0' || text[at] == '`' || (text[at] == '\\' && text[at + 1] == '\0'))
            return 0;
        if (text[at] == '$')
            at = text[at + 1] == '"' ? at + 1 : past_dollar(text, at + 1);
        else
            at += text[at] == '\\' ? 2 : 1;
    }
    return at == 0 ? 0 : at + 1;
}

static size_t past_word(const char *text, size_t at)
{
    if (text[at] == '#')
        return 0;
    for (;;) {
        char one = text[at++];

        if (one == '\0' || strchr(" \t\n;&|<>", one) != NULL)
            return at - 1;
        if (strchr("`(){}\\^", one) != NULL)
            return 0;
        if (one == '\'')
            at = past_quote(text, at);
        else if (one == '"')
            at = past_double_quote(text, at);
        else if (one == '$')
            at = past_dollar(text, at);
        if (at == 0)
            return 0;
    }
}

/* The position after the file of a redirection, which is no word of the command. 0: unsure, such as a here-document. */
static size_t past_redirection(const char *text, size_t at)
{
    size_t end;

    at += strspn(text + at, "0123456789") + 1;
    if (text[at - 1] == '<' && text[at] == '<')
        return 0;
    at += text[at] != '\0' && strchr(">&|", text[at]) != NULL;
    at += strspn(text + at, " \t");
    end = past_word(text, at);
    return end == at ? 0 : end;
}

static int is_redirection(const char *text)
{
    const char *sign = text + strspn(text, "0123456789");

    return *sign == '<' || *sign == '>';
}

static int is_assignment(const char *word)
{
    size_t at = 0;

    while (is_letter(word[at]) || (at > 0 && is_digit(word[at])))
        at++;
    return at > 0 && word[at] == '=';
}

/* A word in the position of a command's name: 1 if it must be looked up. */
static int names_a_program(const char *word, size_t length, struct ns_shell_walk *walk)
{
    if (is_assignment(word))
        return 0;
    walk->inside = 1;
    if (is_listed(KEYWORDS, word, length) || strchr("-+=%!", word[0]) != NULL ||
        (length > 1 && memchr(word, '[', length) != NULL)) {
        walk->unsure = 1;
        return 0;
    }
    if (is_listed(SPECIAL, word, length)) {
        walk->special = 1;
        walk->inside = length != strlen("exec") || memcmp(word, "exec", length) != 0;
        return 0;
    }
    return ns_shell_is_plain(word, length) && !is_listed(BUILTINS, word, length) &&
           (word[0] == '/' || memchr(word, '/', length) == NULL);
}

static int is_operator(const char *text)
{
    return *text != '\0' && strchr("\n;&|", *text) != NULL;
}

int ns_shell_next(const char *command, struct ns_shell_walk *walk)
{
    walk->length = 0;
    while (!walk->unsure) {
        size_t start = walk->at += strspn(command + walk->at, " \t");
        int found = 0;

        if (command[start] == '\0')
            return 0;
        if (is_operator(command + start)) {
            walk->unsure = command[start] == '&' && command[start + 1] == '>';
            walk->inside = 0;
            walk->lists++;
            walk->at++;
            continue;
        }
        walk->at = is_redirection(command + start) ? past_redirection(command, start) : past_word(command, start);
        walk->unsure = walk->at == 0;
        if (!walk->unsure && !walk->inside && !is_redirection(command + start))
            found = names_a_program(command + start, walk->at - start, walk);
        if (found) {
            walk->start = start;
            walk->length = walk->at - start;
            return 1;
        }
    }
    return 0;
}

int ns_shell_is_simple(const char *command)
{
    struct ns_shell_walk walk = {0};

    while (ns_shell_next(command, &walk))
        continue;
    return walk.inside && !walk.unsure && !walk.special && walk.lists == 0;
}
