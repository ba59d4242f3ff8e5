/* record/identity.h -- who this process is: what tells it from every other, on this host and over
 * restarts. */
#ifndef OPSCOPE_RECORD_IDENTITY_H
#define OPSCOPE_RECORD_IDENTITY_H

#include <stdint.h>

typedef struct opscope__identity {
    uint8_t boot_id[16];
    uint64_t pid_namespace;
    uint64_t pid;
    uint64_t process_start;
    uint64_t uid;
} opscope__identity;

/* What cannot be found out is 0. */
void opscope__identity_read(opscope__identity *out);

#endif
