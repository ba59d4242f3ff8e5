/* tensor/autograd/tape.h -- nodes: what an operator leaves behind for backward. Walking them is
 * engine.c.
 *
 * A node is immutable once recorded, but for what it gives up when it is spent (node.c). It keeps
 * aliases of tensors (same storage, nothing of autograd), so it never keeps itself alive.
 */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_TAPE_H
#define OPSCOPE_TENSOR_AUTOGRAD_TAPE_H

#include "opscope/autograd.h"
#include "tensor/call.h"
#include "tensor/tensor.h"

/* What the tape knows of a tensor that is a view of another. */
enum opscope__view {
    OPSCOPE__NO_VIEW,      /* also one off the tape, as detach gives */
    OPSCOPE__VIEW,         /* its history follows writes to its base, and its base's writes to it */
    OPSCOPE__VIEW_NO_GRAD, /* made under no_grad: a constant */
    OPSCOPE__VIEW_CUSTOM   /* made by a node of the caller's own, whose backward alone knows it */
};

/* What a tensor has to do with autograd. Owner: the tensor. */
struct opscope__grad {
    bool requires_grad;
    uint8_t view;         /* enum opscope__view */
    uint32_t output;      /* of node */
    opscope_node *node;   /* NULL for a leaf */
    opscope_tensor *base; /* of a view: the tensor, no view itself, whose memory it is */
    uint64_t version;     /* atomic, of a view: that of the storage its node stands for; view.c */
    opscope_tensor *grad; /* of a leaf */
    struct opscope__watch *watch; /* hooks and retain_grad; NULL: none */
};

/* Where an input's gradient goes: a node's output, a leaf, or nowhere. */
struct opscope__edge {
    opscope_node *node;
    opscope_tensor *leaf;
    uint32_t output;
};

struct opscope_node {
    uint32_t reference_count; /* atomic */
    uint32_t walks;           /* atomic: walks inside, and whether it is spent; node.c */
    const char *name;
    const opscope_op *range;
    int64_t sequence_nr;
    uint64_t thread_id;
    int64_t work;                   /* the largest count of elements among its inputs and outputs */
    const opscope_operator *op;     /* NULL: a custom node */
    struct opscope__watch *watches; /* of its outputs; atomic, changed under the lock of watch.c */
    opscope_node *next_dead;        /* while being destroyed */

    /* Of a custom node. */
    int (*custom)(void *user, opscope_tensor *const *gradients, opscope_tensor **out);
    void (*release)(void *user); /* NULL: called already, or none */
    void *user;

    size_t bytes; /* of all this */
    size_t input_count, saved_count, output_count, argument_count;

    opscope_tensor **inputs;  /* aliases, or outlines, or NULL; then, behind them, saved: aliases */
    uint64_t *versions;       /* of their storages */
    opscope_tensor **outputs; /* outlines */
    opscope_argument *arguments; /* their tensors: of `inputs` */
    struct opscope__edge edges[];
};

int64_t opscope__tape_next_sequence(void);
/* Makes the node of a call that wants grad, and points its outputs at it. */
int opscope__tape_record(struct opscope__call *call, opscope_tensor *const *outputs);
/* The edge to `tensor`, references taken. */
int opscope__edge_to(opscope_tensor *tensor, struct opscope__edge *out);
void opscope__edge_release(struct opscope__edge *edge);

/* The part of `tensor` that is autograd's, made where there is none; NULL where memory ran out. */
struct opscope__grad *opscope__grad_of(opscope_tensor *tensor);

/* An alias of `saved`, which is output `index` of the custom node whose backward this thread runs
 * now; on the tape where grad mode is on. */
OPSCOPE_API int opscope__as_output(opscope_tensor *saved, uint32_t index, opscope_tensor **out);

/* ---- for garbage collectors of language bindings (node.c) ------------------------------------- */

typedef int (*opscope__visit)(void (*release)(void *user), void *user, void *arg);

/* Calls visit for what the caller handed to opscope_autograd_record and
 * opscope_tensor_register_hook, where nothing keeps it but `tensor`, and nothing keeps that but the
 * caller's one reference. Stops where visit returns anything but 0, and returns it. What lies
 * behind further nodes is not looked at. */
OPSCOPE_API int opscope__tensor_visit(const opscope_tensor *tensor, opscope__visit visit,
                                      void *arg);
/* Takes the tensor off the tape. */
OPSCOPE_API void opscope__tensor_forget(opscope_tensor *tensor);

/* ---- a walk inside a node (node.c) ---------------------------------------------------------- */

/* Lets a walk in, after which what the node saved stays until it leaves; with `spend` as the last
 * one to get in. False where the node is spent. */
bool opscope__node_enter(opscope_node *node, bool spend);
void opscope__node_leave(opscope_node *node);

/* ---- views and writes in place (view.c) ------------------------------------------------------ */

/* Notes that `view`, just made by an operator from `of`, is a view of it. */
int opscope__view_note(opscope_tensor *of, opscope_tensor *view, enum opscope__view kind);
/* Gives a view the history of what its base holds now. */
int opscope__view_refresh(opscope_tensor *view);
/* Whether a tensor may be written in place with the write on the tape. */
int opscope__tape_check_inplace(const char *name, opscope_tensor *target);
/* `copy`, of what `tensor` holds now, stands on the tape where it stands; not for leaves that
 * require grad, which backward must find themselves. */
int opscope__tape_stand_in(opscope_tensor *tensor, opscope_tensor *copy);
/* A written view's base: its history goes through the write. */
int opscope__tape_rebase(opscope_tensor *target);

#endif
