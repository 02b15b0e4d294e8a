/* The plan of a helper: a list of steps, each <u8 operation> <u32 length> <payload>, numbers in host order; strings end
 * with NUL. Every read is checked against the end; a plan that cannot be read ends the process with a report. */
#ifndef NETSANDBOX_PLAN_READER_H
#define NETSANDBOX_PLAN_READER_H

#include <stddef.h>
#include <stdint.h>

/* What is left of a plan, or of a step's payload. */
struct reader {
    const unsigned char *at;
    size_t left;
};

/* Receives the plan from the supervisor; its length. */
size_t read_plan(const unsigned char **into);

/* The next step; 0 after the last. */
int plan_step(struct reader *all, unsigned char *operation, struct reader *payload);

uint32_t plan_number(struct reader *reader);
const char *plan_text(struct reader *reader);

#endif
