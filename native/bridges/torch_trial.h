/* torch_trial.h -- tries out on one operator what is assumed of PyTorch. */
#ifndef OPSCOPE_BRIDGES_TORCH_TRIAL_H
#define OPSCOPE_BRIDGES_TORCH_TRIAL_H

/* From begin to end, the calling thread's operators are looked at, not recorded. */
void opscope__torch_trial_start(void);
/* NULL, or in a few words what was other than expected; the trial is over with the first call. */
const char *opscope__torch_trial_judge(void);

#endif
