// torch_attached.cpp -- loaded into a C++ program that uses PyTorch, attaches the bridge before its
// main() and records until its end. OPSCOPE_DIR and WINDOW_US (0: every range) say how; a program
// that cannot be attached, or only without a layout, ends with 99.
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <cstdio>
#include <cstdlib>

#include "opscope/recorder.h"
#include "private/torch.h"

namespace
{

struct Attached {
    Attached()
    {
        opscope_recorder_options options{};
        options.directory = std::getenv("OPSCOPE_DIR");
        options.sampling_prob = 1.0;
        options.window_ns = std::strtoull(std::getenv("WINDOW_US"), nullptr, 10) * 1000;
        options.period_ns = options.window_ns * 3 / 2;
        const char *reason = opscope_torch_trial_begin("");
        if (reason == nullptr) {
            run_trial();
            reason = opscope_torch_trial_end();
        }
        if (reason == nullptr) {
            reason = opscope_torch_fault(OPSCOPE_TORCH_FIELDS);
        }
        if (reason == nullptr && opscope_recorder_start(&options) != OPSCOPE_OK) {
            reason = "no recorder";
        }
        if (reason != nullptr) {
            std::fprintf(stderr, "%s\n", reason);
            std::_Exit(99);
        }
    }

    static void run_trial()
    {
        at::empty({0}, at::TensorOptions().pinned_memory(false));
        {
            RECORD_USER_SCOPE("a range of the trial");
        }
        at::Tensor result = at::empty({0}).set_requires_grad(true).neg();
        (*result.grad_fn())({result.detach()});
    }

    ~Attached()
    {
        opscope_recorder_stop(false);
    }
};

Attached attached;

} // namespace
