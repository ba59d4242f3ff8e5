/* tensor/kernels/iterate.c -- walking operands of any strides together. */
#include "tensor/kernels/iterate.h"

#include <string.h>

#include "tensor/kernels/parallel.h"
#include "tensor/kernels/stream.h"
#include "tensor/kernels/tiles.h"

/* Elements: whole vectors of every width, unrolled or not. */
enum { WHOLE_VECTORS = 64 };

struct walk {
    const struct opscope__iterator *it;
    opscope__loop loop;
    void *user;
    bool streams;
};

/* Where a piece that is to begin at element `place` does: whole vectors of the inner loop behind a
 * row's begin. A loop's last elements, too few for a vector, may differ from the others in their
 * last bit; they are the same ones however many threads there are. */
static int64_t piece_begin(const struct opscope__iterator *it, int64_t place)
{
    return place - place % it->sizes[it->dims - 1] % WHOLE_VECTORS;
}

/* Elements begin to end in the order of the merged dimensions. */
static void walk(int64_t begin, int64_t end, void *arg)
{
    const struct walk *all = arg;
    const struct opscope__iterator *it = all->it;
    int inner = it->dims - 1;
    begin = piece_begin(it, begin);
    end = piece_begin(it, end);
    int64_t at[OPSCOPE_DIM_LIMIT];
    char *data[OPSCOPE__OPERAND_LIMIT];
    memcpy(data, it->data, sizeof data);
    int64_t rest = begin;
    for (int i = inner; i >= 0; i--) {
        at[i] = rest % it->sizes[i];
        rest /= it->sizes[i];
        for (int j = 0; j < it->operands; j++) {
            data[j] += at[i] * it->strides[i][j];
        }
    }
    for (int64_t done = begin; done < end;) {
        int64_t run = it->sizes[inner] - at[inner];
        run = run < end - done ? run : end - done;
        if (all->streams) {
            opscope__stream(all->loop, it->operands, data, it->strides[inner], run, all->user);
        } else {
            all->loop(data, it->strides[inner], run, all->user);
        }
        done += run;
        if (done == end) {
            return;
        }
        for (int j = 0; j < it->operands; j++) {
            data[j] -= at[inner] * it->strides[inner][j];
        }
        at[inner] = 0;
        for (int i = inner - 1; i >= 0; i--) {
            at[i]++;
            for (int j = 0; j < it->operands; j++) {
                data[j] += it->strides[i][j];
            }
            if (at[i] < it->sizes[i]) {
                break;
            }
            for (int j = 0; j < it->operands; j++) {
                data[j] -= it->sizes[i] * it->strides[i][j];
            }
            at[i] = 0;
        }
    }
}

void opscope__iterate(struct opscope__iterator *it, opscope__loop loop, void *user, int64_t cost)
{
    if (it->count == 0) {
        return;
    }
    if (it->count == 1) {
        loop(it->data, it->item, 1, user);
        return;
    }
    if (it->is_even) {
        it->dims = 1;
        it->sizes[0] = it->count;
        memcpy(it->strides[0], it->item, sizeof it->item);
    } else {
        opscope__iterator_merge(it);
        if (opscope__tiles_gain(it)) {
            opscope__iterate_tiles(it, loop, user, cost);
            return;
        }
    }
    struct walk all = {it, loop, user, opscope__stream_pays(it, cost)};
    if (it->count * cost < 2 * OPSCOPE__GRAIN) {
        walk(0, it->count, &all);
    } else {
        opscope__parallel(it->count, OPSCOPE__GRAIN / cost, walk, &all);
    }
}
