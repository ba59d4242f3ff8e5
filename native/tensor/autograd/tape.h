/* tensor/autograd/tape.h -- nodes: what an operator leaves behind for backward. Walking them is
 * engine.c.
 *
 * A node is immutable once recorded, but for what it gives up when it is spent. It keeps aliases of
 * tensors (same storage, nothing of autograd), so it never keeps itself alive.
 */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_TAPE_H
#define OPSCOPE_TENSOR_AUTOGRAD_TAPE_H

#include "opscope/autograd.h"
#include "tensor/call.h"
#include "tensor/tensor.h"

/* What a tensor has to do with autograd. Owner: the tensor. */
struct opscope__grad {
    bool requires_grad;
    uint32_t output;      /* of node */
    opscope_node *node;   /* NULL for a leaf */
    uint64_t version;     /* of the storage, when node's output was last what the storage holds */
    opscope_tensor *grad; /* of a leaf */
};

/* Where an input's gradient goes: a node's output, a leaf, or nowhere. */
struct opscope__edge {
    opscope_node *node;
    opscope_tensor *leaf;
    uint32_t output;
};

struct opscope__kept {
    opscope_tensor *tensor; /* an alias, or an outline; NULL */
    uint64_t version;       /* of its storage */
};

struct opscope_node {
    uint32_t reference_count; /* atomic */
    bool is_spent;            /* it has been walked through and has given up what it saved */
    const char *name;
    const opscope_op *range;
    int64_t sequence_nr;
    uint64_t thread_id;
    const opscope_operator *op; /* NULL: a custom node */
    opscope_node *next_dead;    /* while being destroyed */

    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT]; /* outlines */
    size_t output_count;
    struct opscope__kept saved[OPSCOPE__SAVED_LIMIT];
    size_t saved_count;
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT]; /* their tensors: of `inputs` */

    /* Of a custom node. */
    int (*custom)(void *user, opscope_tensor *const *gradients, opscope_tensor **out);
    void (*release)(void *user);
    void *user;

    size_t input_count;
    opscope_tensor **inputs; /* aliases, or outlines, or NULL */
    uint64_t *versions;      /* of the storages of inputs */
    struct opscope__edge edges[];
};

int64_t opscope__tape_next_sequence(void);
/* Makes the node of a call that wants grad, and points its outputs at it. */
int opscope__tape_record(struct opscope__call *call, opscope_tensor *const *outputs);
/* Whether a tensor may be written in place with the write on the tape. */
int opscope__tape_check_inplace(const char *name, const opscope_tensor *target);
/* `to` stands on the tape where `from` stood. */
void opscope__tape_move(opscope_tensor *from, opscope_tensor *to);
/* The tensor's node stands for what its storage holds now. */
void opscope__tape_written(opscope_tensor *tensor);
/* The edge to `tensor`, references taken. An error where the tensor was overwritten since. */
int opscope__edge_to(const char *name, opscope_tensor *tensor, struct opscope__edge *out);
void opscope__edge_release(struct opscope__edge *edge);
/* Gives up what the node saved. */
void opscope__node_spend(opscope_node *node);

/* The part of `tensor` that is autograd's, made where there is none; NULL where memory ran out. */
struct opscope__grad *opscope__grad_of(opscope_tensor *tensor);

#endif
