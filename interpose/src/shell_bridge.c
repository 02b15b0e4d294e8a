/* What is started in the place of a protected program. `sh -c CMD` becomes one of
 *
 *     sh -c "NAME='value' NAME='value' CMD"             one simple command, which the shell then becomes, as before
 *     sh -c "export NAME='value' NAME='value'; CMD"     any other; on the first line, so that lines keep their numbers
 *
 * and in it the names of `#!/usr/bin/env node` scripts become what the kernel makes of them, with the variables, since
 * the shell starts them past us. Such a script itself becomes `/usr/bin/env NAME=value NAME=value node SCRIPT …`. */
#include "shell_bridge.h"

#ifdef NS_BRIDGE

#include "env_command.h"
#include "shell_command.h"
#include "exec_target.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGUMENTS 4096
#define MAX_COMMAND 131072
#define ADDED_BYTES 16384 /* added to a command, or for a script's words */
#define ADDED_POINTERS 64
#define MAX_PATH_BYTES 1024

#ifdef __APPLE__
extern int csr_get_active_config(uint32_t *config) __attribute__((weak_import));

/* Without System Integrity Protection dyld keeps the variable for the system's programs and kills those of arm64e, so a
 * shell must not set it for them. */
static int system_protects(void)
{
    uint32_t config = 1;

    return csr_get_active_config != NULL && csr_get_active_config(&config) == 0 && config == 0;
}
#else
static int system_protects(void)
{
    return 1;
}
#endif

struct text {
    char *room;
    size_t size;
    size_t used;
    int full;
};

static void put(struct text *text, const char *more, size_t length)
{
    text->full |= length >= text->size - text->used;
    if (text->full)
        return;
    memcpy(text->room + text->used, more, length);
    text->used += length;
    text->room[text->used] = '\0';
}

static void append(struct text *text, const char *more)
{
    put(text, more, strlen(more));
}

/* NAME='value' and a blank; is_quotable has checked that it contains no quote. */
static void say_variable(struct text *text, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;

    put(text, variable, name);
    append(text, "'");
    append(text, variable + name);
    append(text, "'");
}

static void say_variables(struct text *text, const struct ns_injection *injection)
{
    say_variable(text, injection->preload);
    append(text, " ");
    say_variable(text, injection->map);
}

static int is_quotable(const char *word)
{
    return strpbrk(word, "'\n\r") == NULL;
}

static const char *search_path(char *const *environment)
{
    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, "PATH=", strlen("PATH=")) == 0)
            return *environment + strlen("PATH=");
    return NULL;
}

/* A script that the kernel would start in the ordinary way. */
static int is_ordinary(const struct stat *about)
{
    return S_ISREG(about->st_mode) && (about->st_mode & (S_ISUID | S_ISGID)) == 0;
}

/* A program that a shell would find, and its first bytes. */
struct found {
    char path[MAX_PATH_BYTES];
    char head[NS_HEAD_BYTES];
    size_t length; /* 0: the head is not usable */
};

static int look_at(struct found *found, const char *folder, size_t size, const char *name, size_t length)
{
    struct stat about;

    if (size + 1 + length >= sizeof found->path)
        return 0;
    memcpy(found->path, folder, size);
    if (size > 0)
        found->path[size++] = '/';
    memcpy(found->path + size, name, length);
    found->path[size + length] = '\0';
    if (access(found->path, X_OK) != 0)
        return 0;
    found->length = ns_target_head(found->path, found->head, &about);
    if (!is_ordinary(&about))
        found->length = 0;
    return !S_ISDIR(about.st_mode);
}

/* Searches like the shell. A relative folder ends the search, since its meaning is unknown. */
static int find(struct found *found, const char *list, const char *name, size_t length)
{
    if (memchr(name, '/', length) != NULL)
        return look_at(found, NULL, 0, name, length);
    while (list != NULL && *list == '/') {
        size_t size = strcspn(list, ":");

        if (look_at(found, list, size, name, length))
            return 1;
        list += size + (list[size] == ':');
    }
    return 0;
}

/* 1 for a program that a shell or env would find, and that dyld would kill if the library were in it. */
static int is_killed(const struct ns_bridge *bridge, const char *name)
{
    struct found found;

    return find(&found, search_path(bridge->environment), name, strlen(name)) &&
           ns_target_file_fate(found.path) == NS_TARGET_KILLED;
}

/* 0 if it would be killed. */
static int say_program(struct text *text, const struct ns_bridge *bridge, const char *name, size_t length)
{
    struct found found;
    size_t words;
    char *line;

    if (!find(&found, search_path(bridge->environment), name, length)) {
        put(text, name, length);
        return 1;
    }
    if (ns_target_file_fate(found.path) == NS_TARGET_KILLED)
        return 0;
    line = is_quotable(found.path) ? ns_env_words(found.head, found.length, &words) : NULL;
    if (line == NULL) {
        put(text, name, length);
        return 1;
    }
    append(text, NS_ENV " ");
    say_variables(text, bridge->injection);
    append(text, " ");
    append(text, line);
    append(text, " '");
    append(text, found.path);
    append(text, "'");
    line[strcspn(line, " \t")] = '\0';
    return !is_killed(bridge, line);
}

static int is_understood(const char *command)
{
    struct ns_shell_walk walk = {0};

    while (ns_shell_next(command, &walk))
        continue;
    return !walk.unsure && strstr(command, "PATH") == NULL;
}

static int say_programs(struct text *text, const struct ns_bridge *bridge, const char *command)
{
    struct ns_shell_walk walk = {0};
    size_t done = 0;
    int understood = is_understood(command);

    while (understood && !text->full && ns_shell_next(command, &walk)) {
        put(text, command + done, walk.start - done);
        if (!say_program(text, bridge, command + walk.start, walk.length))
            return 0;
        done = walk.start + walk.length;
    }
    append(text, command + done);
    return 1;
}

/* The command would see that it was changed: bash and zsh keep a copy of it, and the last word before it. */
static int looks_at_itself(const char *command)
{
    return strstr(command, "EXECUTION_STRING") != NULL || strstr(command, "$_") != NULL;
}

static int rewrite_command(const struct ns_bridge *bridge, const char *command, int traced, struct text *text)
{
    if (command[strspn(command, " \t\n")] == '\0' || looks_at_itself(command))
        return 0;
    if (traced)
        append(text, "{ export ");
    else if (!ns_shell_is_simple(command))
        append(text, "export ");
    say_variables(text, bridge->injection);
    append(text, traced ? "; } 2>/dev/null; " : ns_shell_is_simple(command) ? " " : "; ");
    return say_programs(text, bridge, command) && !text->full;
}

/* A shell's arguments, in place. */
static int rewrite_shell(const struct ns_bridge *bridge, char **arguments, char *room)
{
    struct text text = {room, bridge->bytes, 0, 0};
    int traced;
    size_t at = ns_shell_command(arguments, &traced);

    if (at == 0 || !rewrite_command(bridge, arguments[at], traced, &text))
        return 0;
    arguments[at] = room;
    return 1;
}

static size_t count_arguments(char *const *arguments)
{
    size_t count = 0;

    while (arguments[count] != NULL)
        count++;
    return count;
}

static char *unchanged(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void insert_variables(const struct ns_bridge *bridge, char **arguments, size_t place)
{
    memmove(arguments + place + 2, arguments + place, (count_arguments(arguments + place) + 1) * sizeof *arguments);
    arguments[place] = unchanged(bridge->injection->preload);
    arguments[place + 1] = unchanged(bridge->injection->map);
}

/* env's arguments, in place, with two more; and those of a shell that env starts. */
static int rewrite_env(const struct ns_bridge *bridge, char **arguments, char *room)
{
    size_t program;
    size_t place = ns_env_place(arguments, &program);

    if (place == 0 || is_killed(bridge, arguments[program]))
        return 0;
    if (ns_shell_is_shell(arguments[program]))
        rewrite_shell(bridge, arguments + program, room);
    insert_variables(bridge, arguments, place);
    return 1;
}

/* The arguments that the kernel would give to env for a script: the script's path replaces the first. */
static int rewrite_script(const struct ns_bridge *bridge, const char *path, char *const *arguments, char **room,
                          char *line)
{
    struct stat about;
    size_t count = 1, words;
    uint32_t length = ns_target_head(path, line, &about);
    char *word = ns_env_words(line, length, &words);

    if (word == NULL || words + 4 > ADDED_POINTERS || !is_ordinary(&about) || access(path, X_OK) != 0)
        return 0;
    room[0] = unchanged(NS_ENV);
    for (; words > 0; words--) {
        room[count++] = word;
        word += strcspn(word, " \t");
        if (words > 1)
            *word++ = '\0';
        word += strspn(word, " \t");
    }
    room[count++] = unchanged(path);
    memcpy(room + count, arguments + 1, count_arguments(arguments) * sizeof *room);
    insert_variables(bridge, room, 1);
    return !is_killed(bridge, room[3]);
}

int ns_bridge_measure(struct ns_bridge *bridge, const char *path, char *const *arguments)
{
    size_t count = count_arguments(arguments);
    size_t longest = 0;

    for (size_t at = 0; at < count && count <= MAX_ARGUMENTS; at++)
        if (strnlen(arguments[at], MAX_COMMAND) > longest && (ns_shell_is_shell(path) || strcmp(path, NS_ENV) == 0))
            longest = strnlen(arguments[at], MAX_COMMAND);
    bridge->pointers = count + ADDED_POINTERS;
    bridge->bytes = longest + ADDED_BYTES;
    return count > 0 && count <= MAX_ARGUMENTS && longest < MAX_COMMAND && (path[0] == '/' || !bridge->moves) &&
           is_quotable(bridge->injection->preload) && is_quotable(bridge->injection->map);
}

const char *ns_bridge_build(const struct ns_bridge *bridge, const char *path, char *const *arguments, char **room,
                            char *text)
{
    int saved = errno;
    const char *target = NULL;

    memcpy(room, arguments, (bridge->pointers - ADDED_POINTERS + 1) * sizeof *room);
    if (!system_protects())
        target = NULL;
    else if (!ns_target_is_protected(path))
        target = rewrite_script(bridge, path, arguments, room, text) ? NS_ENV : NULL;
    else if (strcmp(path, NS_ENV) == 0)
        target = rewrite_env(bridge, room, text) ? path : NULL;
    else if (ns_shell_is_shell(path))
        target = rewrite_shell(bridge, room, text) ? path : NULL;
    errno = saved;
    return target;
}

#endif
