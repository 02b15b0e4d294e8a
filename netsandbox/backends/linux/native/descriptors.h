/* The limit of open files: the helper's own is the whole, the command's is lower. */
#ifndef NETSANDBOX_DESCRIPTORS_H
#define NETSANDBOX_DESCRIPTORS_H

void take_descriptors(void);

/* In the process that becomes the command. */
void keep_descriptors_in_reserve(void);

#endif
