/* recorder/interruption.c -- see recorder/interruption.h. */
#include "recorder/interruption.h"

#include <math.h>

/* An operator is taken to wait by itself if it has had more than this many times its share. */
static const double SHARES = 2.0;
/* The most that an operator's earlier stops cover of its share of later ones. */
static const double COVERED = 0.5;

double opscope__interruption_part(double excess, double waited, double squares)
{
    return squares > 0.0 ? fmin(excess, excess * excess / squares * fmax(0.0, waited)) : 0.0;
}

double opscope__interruption_count(opscope__interrupted *of, double share, double all_shared,
                                   double stopped)
{
    const double square = stopped * stopped;
    const double limit = fmax(square, SHARES * share * all_shared);
    const double counted = fmax(0.0, fmin(square, limit - of->shared));
    of->stopped += stopped;
    of->shared += counted;
    return counted;
}

double opscope__interruption_variance(opscope__interrupted *of, double share, double own,
                                      double all)
{
    const double missing = share * all - own;
    if (missing < 0.0) {
        of->ahead -= missing;
        return 0.0;
    }
    const double covered = fmin(of->ahead, COVERED * missing);
    of->ahead -= covered;
    return missing - covered;
}
