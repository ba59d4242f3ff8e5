"""TorchScript archives, as `torch.jit.save` writes them, read without PyTorch.

Read: the tree of modules with their tensors and constants, and the code of their methods as syntax
trees. The code is parsed and never run. It is not yet translated to graphs.
"""
