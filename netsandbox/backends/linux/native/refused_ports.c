#include "refused_ports.h"

#include <pthread.h>
#include <stddef.h>

#define PORTS 64 /* a power of two */

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint16_t port;
    uint32_t times;
} refused[PORTS];

uint32_t refused_times(uint16_t port, int is_refused)
{
    size_t slot = port & (PORTS - 1);
    uint32_t times = 0;

    pthread_mutex_lock(&counting);
    if (is_refused) {
        if (refused[slot].port != port)
            refused[slot].times = 0;
        refused[slot].port = port;
        times = ++refused[slot].times;
        if (times & (times - 1))
            times = 0;
    } else if (refused[slot].port == port) {
        refused[slot].port = 0;
        times = 1;
    }
    pthread_mutex_unlock(&counting);
    return times;
}
