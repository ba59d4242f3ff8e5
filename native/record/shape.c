/* record/shape.c -- see record/shape.h. */
#include "record/shape.h"

#include <pthread.h>
#include <string.h>

#include "base/atomics.h"

enum { TYPE_LIMIT = 8 };

/* Entries are written once, under the lock. `known_count` publishes them: store_release there,
 * load_acquire by readers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *type;
    opscope__shape_reader *read;
} known[TYPE_LIMIT];
static uint32_t known_count;

static opscope__shape_reader *find(const char *type)
{
    uint32_t count = opscope__load_acquire(&known_count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(known[i].type, type) == 0) {
            return known[i].read;
        }
    }
    return NULL;
}

int opscope__shape_register(const char *type, opscope__shape_reader *reader)
{
    int status = OPSCOPE_OK;
    pthread_mutex_lock(&lock);
    if (find(type) == NULL) {
        if (known_count < TYPE_LIMIT) {
            known[known_count].type = type;
            known[known_count].read = reader;
            opscope__store_release(&known_count, known_count + 1);
        } else {
            status = OPSCOPE_ERR_FULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int opscope__shape_read(const opscope_value *value, int64_t *sizes)
{
    opscope__shape_reader *read =
        value->kind == OPSCOPE_VALUE_OBJECT && value->type != NULL ? find(value->type) : NULL;
    int rank = read != NULL ? read(value->as.object, sizes) : -1;
    return rank < OPSCOPE__RANK_LIMIT ? rank : OPSCOPE__RANK_LIMIT;
}
