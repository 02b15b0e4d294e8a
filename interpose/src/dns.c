/* Every read is checked against the length. Each pointer of a name must lead backwards, so that there is no loop. */
#include "dns.h"

#include <string.h>

#define HEADER 12u
#define MAX_LABEL 63u
#define MAX_NAME 255u /* in the message, with length bytes and the root */
#define POINTER 0xc0u
#define TYPE_A 1u
#define TYPE_CNAME 5u
#define CLASS_IN 1u
#define RECORD 10u /* type, class, time to live, length */

#define FLAG_ANSWER 0x80u
#define OPCODE 0x78u
#define FLAG_CUT 0x02u
#define FLAG_RECURSION 0x01u
#define RCODE 0x0fu
#define NXDOMAIN 3u
#define REFUSED 5u

struct message {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t place; /* position of the next byte */
};

/* A name as in a message without pointers, in lower case. */
struct name {
    uint32_t length;
    uint8_t bytes[MAX_NAME];
};

static uint8_t lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte - 'A' + 'a') : byte;
}

static uint32_t number(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static int is_printable(const char *label, size_t length)
{
    for (size_t one = 0; one < length; one++)
        if (label[one] <= ' ' || label[one] > '~')
            return 0;
    return 1;
}

/* The bytes that the name takes in the message, or 0. */
static uint32_t write_name(const char *name, uint8_t *room)
{
    uint32_t place = 0;

    while (*name != '\0') {
        size_t length = strcspn(name, ".");

        if (length == 0 || length > MAX_LABEL || place + 1 + length + 1 > MAX_NAME ||
            !is_printable(name, length))
            return 0;
        room[place] = (uint8_t)length;
        memcpy(room + place + 1, name, length);
        place += 1 + (uint32_t)length;
        name += length;
        if (*name == '.')
            name++;
    }
    room[place] = 0;
    return place == 0 ? 0 : place + 1;
}

uint32_t ns_dns_question(const char *name, uint16_t id, uint8_t *room)
{
    const uint8_t header[HEADER] = {(uint8_t)(id >> 8), (uint8_t)id, FLAG_RECURSION, 0, 0, 1};
    const uint8_t tail[4] = {0, TYPE_A, 0, CLASS_IN};
    uint32_t length = write_name(name, room + HEADER);

    if (length == 0)
        return 0;
    memcpy(room, header, sizeof header);
    memcpy(room + HEADER + length, tail, sizeof tail);
    return HEADER + length + (uint32_t)sizeof tail;
}

static int has(const struct message *message, uint32_t bytes)
{
    return message->length - message->place >= bytes;
}

/* The label at *place*, or the place that a pointer there leads to: 1 to continue, 0 at the end, -1 if invalid. */
static int read_label(const struct message *message, uint32_t *place, uint32_t *oldest, struct name *name)
{
    uint32_t size = message->bytes[*place];

    if ((size & POINTER) == POINTER) {
        if (message->length - *place < 2)
            return -1;
        *place = number(message->bytes + *place) & ~(POINTER << 8);
        if (*place >= *oldest || *place < HEADER)
            return -1;
        *oldest = *place;
        return 1;
    }
    if (size > MAX_LABEL || message->length - *place <= size || name->length + 1 + size > MAX_NAME)
        return -1;
    for (uint32_t one = 0; one <= size; one++)
        name->bytes[name->length++] = lower(message->bytes[*place + one]);
    *place += 1 + size;
    return size != 0;
}

static int read_name(struct message *message, struct name *name)
{
    uint32_t place = message->place;
    uint32_t oldest = place;
    int jumped = 0;

    name->length = 0;
    for (;;) {
        uint32_t before = place;
        int more = place < message->length ? read_label(message, &place, &oldest, name) : -1;

        if (more < 0)
            return -1;
        if (!jumped && (message->bytes[before] & POINTER) == POINTER) {
            message->place = before + 2;
            jumped = 1;
        }
        if (more == 0)
            break;
    }
    if (!jumped)
        message->place = place;
    return 0;
}

static int is_same(const struct name *one, const struct name *other)
{
    return one->length == other->length && memcmp(one->bytes, other->bytes, one->length) == 0;
}

/* The reply repeats the question, except for the case of its letters. */
static int read_question(struct message *message, const uint8_t *question, uint32_t length, struct name *name)
{
    struct message sent = {question, length, HEADER};
    struct name same;

    if (read_name(&sent, name) != 0 || read_name(message, &same) != 0 || !is_same(name, &same) || !has(message, 4))
        return -1;
    if (memcmp(message->bytes + message->place, question + sent.place, 4) != 0)
        return -1;
    message->place += 4;
    return 0;
}

/* Takes the records of *name*, which follows the aliases; these come in order before the addresses. */
static int read_record(struct message *message, struct name *name, struct ns_addresses *found)
{
    struct name owner;
    const uint8_t *head;
    uint32_t size;
    int ours;

    if (read_name(message, &owner) != 0 || !has(message, RECORD))
        return -1;
    head = message->bytes + message->place;
    size = number(head + 8);
    message->place += RECORD;
    if (!has(message, size))
        return -1;
    ours = found != NULL && number(head + 2) == CLASS_IN && is_same(&owner, name);
    if (ours && number(head) == TYPE_A) {
        if (size != 4)
            return -1;
        if (found->count < NS_DNS_ADDRESSES)
            memcpy(found->address[found->count++], message->bytes + message->place, 4);
    } else if (ours && number(head) == TYPE_CNAME) {
        struct message alias = {message->bytes, message->place + size, message->place};

        if (read_name(&alias, name) != 0 || alias.place != message->place + size)
            return -1;
    }
    message->place += size;
    return 0;
}

/* Every record of every section must be valid, and nothing may follow. */
static int32_t read_records(struct message *message, struct name *name, struct ns_addresses *found)
{
    uint32_t answers = number(message->bytes + 6);
    uint32_t others = number(message->bytes + 8) + number(message->bytes + 10);

    for (uint32_t one = 0; one < answers + others; one++)
        if (read_record(message, name, one < answers ? found : NULL) != 0)
            return NS_DNS_FOREIGN;
    if (message->place != message->length)
        return NS_DNS_FOREIGN;
    return found->count > 0 ? NS_DNS_FOUND : NS_DNS_NONE;
}

int32_t ns_dns_answer(const uint8_t *question, uint32_t question_length, const uint8_t *bytes, uint32_t length,
                      struct ns_addresses *found)
{
    struct message message = {bytes, length, HEADER};
    struct name name;
    uint32_t rcode;
    int32_t result;

    found->count = 0;
    if (length < HEADER || memcmp(bytes, question, 2) != 0 || (bytes[2] & (FLAG_ANSWER | OPCODE)) != FLAG_ANSWER ||
        number(bytes + 4) != 1 || read_question(&message, question, question_length, &name) != 0)
        return NS_DNS_FOREIGN;
    rcode = bytes[3] & RCODE;
    if (rcode == NXDOMAIN || rcode == REFUSED)
        return NS_DNS_NONE;
    if (rcode != 0 || (bytes[2] & FLAG_CUT) != 0)
        return NS_DNS_FAILED;
    result = read_records(&message, &name, found);
    if (result != NS_DNS_FOUND)
        found->count = 0;
    return result;
}

int ns_dns_is_localhost(const char *name)
{
    static const char wanted[] = "localhost";
    size_t length = strlen(name);
    size_t size = sizeof wanted - 1;

    if (length > 0 && name[length - 1] == '.')
        length--;
    if (length < size || (length > size && name[length - size - 1] != '.'))
        return 0;
    for (size_t one = 0; one < size; one++)
        if (lower((uint8_t)name[length - size + one]) != (uint8_t)wanted[one])
            return 0;
    return 1;
}
