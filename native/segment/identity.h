/* segment/identity.h -- identifies this process among all processes of this host, also over
 * restarts. */
#ifndef OPSCOPE_SEGMENT_IDENTITY_H
#define OPSCOPE_SEGMENT_IDENTITY_H

#include <stdint.h>

typedef struct opscope__identity {
    uint8_t boot_id[16];
    uint64_t pid_namespace;
    uint64_t pid;
    uint64_t process_start;
    uint64_t uid;
} opscope__identity;

/* Unknown fields are 0. */
void opscope__identity_read(opscope__identity *out);

#endif
