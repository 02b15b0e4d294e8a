#include "setup.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plan_reader.h"
#include "process.h"

struct setup setup;

static void limit_step(struct reader *reader)
{
    uint32_t resource = plan_number(reader);
    uint64_t low = plan_number(reader);

    limit_add(resource, (uint64_t)plan_number(reader) << 32 | low);
}

static void handled_step(struct reader *reader)
{
    uint32_t files = plan_number(reader);

    access_begin(files, plan_number(reader));
}

static void permit_step(struct reader *reader)
{
    uint32_t rights = plan_number(reader);

    while (reader->left > 0)
        access_permit_exactly(rights, plan_text(reader));
}

static void open_step(struct reader *reader)
{
    uint32_t port = plan_number(reader);

    if (setup.host_port_count == MAX_HOST_PORTS) {
        errno = E2BIG;
        fail("reading the plan");
    }
    setup.host_ports[setup.host_port_count++] = (uint16_t)port;
}

static struct sock_fprog filter_step(const struct reader *reader)
{
    struct sock_fprog filter = { .len = (unsigned short)(reader->left / sizeof(struct sock_filter)) };

    filter.filter = (struct sock_filter *)(uintptr_t)reader->at;
    return filter;
}

static void step(unsigned char operation, struct reader *reader)
{
    switch (operation) {
    case 'N':
        setup.device = plan_number(reader);
        setup.device6 = plan_number(reader);
        setup.rendezvous = plan_number(reader);
        setup.is_routed = plan_number(reader);
        break;
    case 'O':
        open_step(reader);
        break;
    case 'Z':
        limit_step(reader);
        break;
    case 'H':
        handled_step(reader);
        break;
    case 'P':
        permit_step(reader);
        break;
    case 'W':
        setup.working = plan_text(reader);
        break;
    case 'S':
        setup.sockets = plan_text(reader);
        break;
    case 'F':
        if (setup.filter_count == NEEDS) {
            errno = E2BIG;
            fail("reading the plan");
        }
        setup.filters[setup.filter_count++] = filter_step(reader);
        break;
    default:
        errno = EBADMSG;
        fail("reading the plan");
    }
}

static void open_doors(void)
{
    int far[DOOR_HOST + MAX_HOST_PORTS];

    setup.door_count = DOOR_HOST + setup.host_port_count;
    for (int door = 0; door < setup.door_count; door++) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
            fail("making the doors");
        setup.doors[door] = ends[0];
        far[door] = ends[1];
    }
    if (channel_descriptors(CHANNEL, 'D', far, (size_t)setup.door_count) < 0)
        fail("passing the doors out");
    for (int door = 0; door < setup.door_count; door++)
        close(far[door]);
}

void set_up(void)
{
    const unsigned char *plan;
    struct reader all;
    struct reader payload;
    unsigned char operation;

    all.left = read_plan(&plan);
    all.at = plan;
    while (plan_step(&all, &operation, &payload))
        step(operation, &payload);
    if (setup.is_routed && !access_handles_network()) { /* of the two backstops below the filter none would be left */
        errno = EPERM;
        fail("route_localnet");
    }
    open_doors();
}
