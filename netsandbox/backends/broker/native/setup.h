/* What the supervisor wants set up, as steps of a plan (plan_reader.h):
 *
 *   N  network  u32 device, device6, rendezvous   IPv4 addresses of 127.0.0.0/8 that are this session's alone;
 *               u32 is_routed                     addresses of the loopback may leave the machine (route_localnet)
 *   O  opened   u32 port                          a port of --connect-host; its door is the next descriptor
 *   Z  limit    u32 resource, u64 value           a resource limit of the command (process.h)
 *   H  handled  u32 files, u32 network            rights that Landlock takes away
 *   P  permit   u32 rights, paths                 where files have these rights all the same
 *   W  working  path                              where the command begins; / if it cannot
 *   S  sockets  path                              a folder that the session cannot write, for sockets that are bound
 *   F  filter   struct sock_filter[]              the seccomp filter for the command; three in the order of enum needs
 *
 * The doors are pairs of sockets; the supervisor gets their far ends in the order of enum door and of the O steps. */
#ifndef NETSANDBOX_SETUP_H
#define NETSANDBOX_SETUP_H

#include <linux/filter.h>
#include <stdint.h>

#include "channel.h"

#define MAX_HOST_PORTS 24 /* MAX_HOST_PORTS of portmap/netsandbox_portmap/localhost_settings.py */

enum door {
    DOOR_MIXED,       /* connections to the proxy */
    DOOR_TRANSPARENT, /* connections to any other address */
    DOOR_DNS,         /* connections to a name server */
    DOOR_DATAGRAMS,   /* DNS queries and their replies (datagrams.h) */
    DOOR_DROPPED,     /* all other datagrams */
    DOOR_HOST,        /* the first port of --connect-host */
};

/* What the filter must do since Landlock does not (broker/filter.py, build_all). */
enum needs {
    NEEDS_NOTHING,
    NEEDS_SIGNALS,    /* before ABI 6 */
    NEEDS_TRUNCATION, /* before ABI 3, and signals */
    NEEDS,
};

struct setup {
    uint32_t device;     /* where the session's servers listen, in host order */
    uint32_t device6;    /* where those for IPv6 alone do, if the port is taken on the device */
    uint32_t is_routed;
    uint32_t rendezvous; /* where connections to doors are made */
    uint16_t host_ports[MAX_HOST_PORTS];
    int host_port_count;
    int doors[DOOR_HOST + MAX_HOST_PORTS];
    int door_count;
    const char *working; /* NULL: where we are */
    const char *sockets;
    struct sock_fprog filters[NEEDS];
    int filter_count;
};

extern struct setup setup;

/* Reads the plan, makes the doors and passes them out; ends the process with a report if something fails. */
void set_up(void);

#endif
