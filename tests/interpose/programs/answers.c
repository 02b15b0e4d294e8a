/* Reads messages, each behind two bytes of length, and gives each to ns_dns_answer in memory of just its size. */
#include "dns.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    FILE *file = fopen(arguments[count - 1], "rb");
    uint8_t question[NS_DNS_QUESTION];
    uint32_t length = ns_dns_question("one.test", 0x5353, question);
    int high, low, read = 0;

    while ((high = getc(file)) != EOF && (low = getc(file)) != EOF) {
        uint32_t size = (uint32_t)(high << 8 | low);
        uint8_t *message = malloc(size);
        struct ns_addresses found;

        if (fread(message, 1, size, file) != size)
            return 1;
        ns_dns_answer(question, length, message, size, &found);
        free(message);
        read++;
    }
    printf("%d\n", read);
    fclose(file);
    return 0;
}
