/* recorder/sampling.h -- puts a sampling into force: the recorder's callback, and the windows. */
#ifndef OPSCOPE_RECORDER_SAMPLING_H
#define OPSCOPE_RECORDER_SAMPLING_H

#include "recorder/state.h"

/* With the settings lock held: samples this way from now on, or records nothing if `is_off`. */
int opscope__sampling_apply(struct opscope__recorder *recorder, struct opscope__sampling sampling,
                            bool is_off);
/* With the segment lock held: a forked child has made its segment. */
void opscope__sampling_resume(struct opscope__recorder *recorder);
/* With the segment lock held: writes the current sampling into the segment's header. */
void opscope__sampling_show(const struct opscope__recorder *recorder);
/* For the hooks. */
void opscope__sampling_first_range(struct opscope__recorder *recorder);
/* With the settings lock held: stops all recording. */
void opscope__sampling_stop(struct opscope__recorder *recorder);

#endif
