/* sandbox-exec -p PROFILE CMD [ARG...], as a Mac has it, on Linux: with the boundary of landlock_seatbelt.c. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sandbox_init_with_parameters(const char *profile, uint64_t flags, const char *const parameters[], char **error);

int main(int count, char **words)
{
    char *error = NULL;
    if (count < 4 || strcmp(words[1], "-p") != 0) {
        fprintf(stderr, "usage: sandbox-exec -p profile command [argument ...]\n");
        return 64;
    }
    if (sandbox_init_with_parameters(words[2], 0, NULL, &error) != 0) {
        fprintf(stderr, "sandbox-exec: %s\n", error != NULL ? error : "sandbox_apply: Operation not permitted");
        return 65;
    }
    execvp(words[3], words + 3);
    fprintf(stderr, "sandbox-exec: execvp() of '%s' failed\n", words[3]);
    return 71;
}
