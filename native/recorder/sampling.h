/* record/sampling.h -- how the recorder samples now: its callback, and the windows. */
#ifndef OPSCOPE_RECORD_SAMPLING_H
#define OPSCOPE_RECORD_SAMPLING_H

#include "record/recorder_state.h"

/* With the settings lock held: samples like that from now on, or records nothing where `is_off`. */
int opscope__sampling_apply(struct opscope__recorder *recorder, struct opscope__sampling sampling,
                            bool is_off);
/* With the segment lock held: a forked child has made its segment. */
void opscope__sampling_resume(struct opscope__recorder *recorder);
/* With the segment lock held: how it samples, into the segment's header. */
void opscope__sampling_show(const struct opscope__recorder *recorder);
/* With the settings lock held: nothing is recorded any more. */
void opscope__sampling_stop(struct opscope__recorder *recorder);

#endif
