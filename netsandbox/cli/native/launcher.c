/* The program `netsandbox`: executes the interpreter of its own installation, isolated from the environment.
 *
 *     PREFIX/bin/python3.N -I -S PREFIX/lib/python3.N/site-packages/netsandbox/__main__.py ARGUMENT...
 *
 * A Python script would start the interpreter as the environment says: PYTHONPATH=. runs a folder netsandbox/ of the
 * project in place of ours, outside of any sandbox. With -I and -S no variable, no .pth file, no sitecustomize and no
 * working directory has a say; the package's own place says where the rest is (netsandbox/__main__.py).
 *
 * PREFIX is found from the program's own file, links resolved, since pipx and uv link it into ~/.local/bin. An editable
 * install has, instead of the package, a file _netsandbox.pth whose first line is the source tree. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

enum { OLDEST = 11, NEWEST = 40, FAILED = 1 };

/* Where an installer that keeps its programs apart (pip install --user, Debian's /usr/local) has the interpreter. */
static const char *const SYSTEM_FOLDERS[] = {"/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"};
static const char *const LIBRARIES[] = {"lib", "lib64"};
static const char *const PACKAGES[] = {"site-packages", "dist-packages"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define WRITE(path, ...) ((size_t)snprintf((path), PATH_MAX, __VA_ARGS__) < PATH_MAX)

static int own_path(char path[PATH_MAX])
{
#ifdef __APPLE__
    char unresolved[PATH_MAX];
    uint32_t size = sizeof unresolved;
    return _NSGetExecutablePath(unresolved, &size) == 0 && realpath(unresolved, path) != NULL;
#else
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = '\0';
    return 1;
#endif
}

static int cut_last_part(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return 0;
    *slash = '\0';
    return 1;
}

/* The tree of an editable install. */
static int read_tree(const char *packages, char tree[PATH_MAX])
{
    char path[PATH_MAX];
    if (!WRITE(path, "%s/_netsandbox.pth", packages))
        return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    int whole = fgets(tree, PATH_MAX, file) != NULL && tree[0] == '/';
    fclose(file);
    if (whole)
        tree[strcspn(tree, "\r\n")] = '\0';
    return whole;
}

static int find_package(const char *packages, char main_file[PATH_MAX])
{
    char tree[PATH_MAX];
    if (WRITE(main_file, "%s/netsandbox/__main__.py", packages) && access(main_file, R_OK) == 0)
        return 1;
    return read_tree(packages, tree) && WRITE(main_file, "%s/netsandbox/__main__.py", tree) &&
           access(main_file, R_OK) == 0;
}

static int find_interpreter(const char *programs, int minor, char interpreter[PATH_MAX])
{
    if (WRITE(interpreter, "%s/python3.%d", programs, minor) && access(interpreter, X_OK) == 0)
        return 1;
    if (WRITE(interpreter, "%s/python3", programs) && access(interpreter, X_OK) == 0)
        return 1;
    for (size_t i = 0; i < COUNT(SYSTEM_FOLDERS); i++)
        if (WRITE(interpreter, "%s/python3.%d", SYSTEM_FOLDERS[i], minor) && access(interpreter, X_OK) == 0)
            return 1;
    return 0;
}

static int find_installation(const char *programs, const char *prefix, char interpreter[PATH_MAX],
                             char main_file[PATH_MAX])
{
    char folder[PATH_MAX];
    for (int minor = NEWEST; minor >= OLDEST; minor--)
        for (size_t i = 0; i < COUNT(LIBRARIES); i++) {
            if (!WRITE(folder, "%s/%s/python3.%d", prefix, LIBRARIES[i], minor) || access(folder, X_OK) != 0)
                continue;
            for (size_t j = 0; j < COUNT(PACKAGES); j++)
                if (WRITE(folder, "%s/%s/python3.%d/%s", prefix, LIBRARIES[i], minor, PACKAGES[j]) &&
                    find_package(folder, main_file) && find_interpreter(programs, minor, interpreter))
                    return 1;
        }
    return 0;
}

static _Noreturn void fail(const char *what, const char *path)
{
    fprintf(stderr, "netsandbox: %s %s; install netsandbox in a virtual environment (pipx, uv tool, python3 -m venv)\n",
            what, path);
    exit(FAILED);
}

int main(int argc, char **argv)
{
    static char programs[PATH_MAX], prefix[PATH_MAX], interpreter[PATH_MAX], main_file[PATH_MAX];
    struct stat input;
    if (fstat(0, &input) == 0 && S_ISDIR(input.st_mode)) { /* the interpreter would end with an error of its own */
        fputs("netsandbox: standard input is a directory; redirect it, for instance from /dev/null\n", stderr);
        return 1;
    }
    if (!own_path(programs) || !cut_last_part(programs))
        fail("cannot find its own file;", "is /proc mounted?");
    strcpy(prefix, programs);
    if (!cut_last_part(prefix) || !find_installation(programs, prefix, interpreter, main_file))
        fail("no Python 3.11 or newer with the package was found beside", programs);
    char **arguments = calloc((size_t)argc + 5, sizeof *arguments);
    if (arguments == NULL)
        fail("no memory to start", interpreter);
    size_t count = 0;
    arguments[count++] = interpreter;
    arguments[count++] = (char *)"-I";
    arguments[count++] = (char *)"-S";
    arguments[count++] = main_file;
    for (int i = 1; i < argc; i++)
        arguments[count++] = argv[i];
    unsetenv("__PYVENV_LAUNCHER__"); /* a Mac's interpreter believes it even with -I */
    execv(interpreter, arguments);
    perror("netsandbox: cannot execute the interpreter");
    fail("the interpreter cannot be executed:", interpreter);
}
