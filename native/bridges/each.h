/* each.h -- a macro for each of many hexadecimal numbers: pools of functions that differ only in
 * their number. */
#ifndef OPSCOPE_BRIDGES_EACH_H
#define OPSCOPE_BRIDGES_EACH_H

/* X(0xH0) to X(0xHf) for the digits H. */
#define OPSCOPE__EACH_16(X, high)                                                                  \
    X(0x##high##0)                                                                                 \
    X(0x##high##1)                                                                                 \
    X(0x##high##2)                                                                                 \
    X(0x##high##3)                                                                                 \
    X(0x##high##4)                                                                                 \
    X(0x##high##5)                                                                                 \
    X(0x##high##6)                                                                                 \
    X(0x##high##7)                                                                                 \
    X(0x##high##8)                                                                                 \
    X(0x##high##9)                                                                                 \
    X(0x##high##a)                                                                                 \
    X(0x##high##b)                                                                                 \
    X(0x##high##c)                                                                                 \
    X(0x##high##d)                                                                                 \
    X(0x##high##e)                                                                                 \
    X(0x##high##f)
/* X(0xH00) to X(0xHff). */
#define OPSCOPE__EACH_256(X, high)                                                                 \
    OPSCOPE__EACH_16(X, high##0)                                                                   \
    OPSCOPE__EACH_16(X, high##1)                                                                   \
    OPSCOPE__EACH_16(X, high##2)                                                                   \
    OPSCOPE__EACH_16(X, high##3)                                                                   \
    OPSCOPE__EACH_16(X, high##4)                                                                   \
    OPSCOPE__EACH_16(X, high##5)                                                                   \
    OPSCOPE__EACH_16(X, high##6)                                                                   \
    OPSCOPE__EACH_16(X, high##7)                                                                   \
    OPSCOPE__EACH_16(X, high##8)                                                                   \
    OPSCOPE__EACH_16(X, high##9)                                                                   \
    OPSCOPE__EACH_16(X, high##a)                                                                   \
    OPSCOPE__EACH_16(X, high##b)                                                                   \
    OPSCOPE__EACH_16(X, high##c)                                                                   \
    OPSCOPE__EACH_16(X, high##d)                                                                   \
    OPSCOPE__EACH_16(X, high##e)                                                                   \
    OPSCOPE__EACH_16(X, high##f)

#endif
