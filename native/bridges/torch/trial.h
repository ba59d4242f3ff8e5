/* torch/trial.h -- verifies the assumptions about PyTorch with three of its ranges. */
#ifndef OPSCOPE_BRIDGES_TORCH_TRIAL_H
#define OPSCOPE_BRIDGES_TORCH_TRIAL_H

#include <stdint.h>

/* From start to judge, the calling thread's ranges are checked, not recorded. With a layout, the
 * fields are checked too; otherwise only that PyTorch calls callbacks as assumed. */
void opscope__torch_trial_start(void);
/* NULL, or a short text for the first wrong assumption about calls; the first call ends the trial.
 */
const char *opscope__torch_trial_judge(void);
/* After the judgement: NULL if all three ranges have their fields where the layout says. */
const char *opscope__torch_trial_layout(void);

#endif
