"""TorchScript archives, as `torch.jit.save` writes them, loaded without PyTorch.

`jit.load` of such a file walks the code of the model's `forward`, traced or scripted, and writes
one graph: what is constant is computed, methods and functions are inlined, and PyTorch's operators
become those of the core (operators.py has the table). The code is parsed, and never run.

Not translated, with an error that says so: loops whose number of rounds depends on the input,
`while`, dicts, classes other than modules, and operators or options that the core lacks; those are
all named in one error. Gradients, devices and autocast are those of inference on a CPU.
"""
