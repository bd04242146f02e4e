"""Compiles every Triton kernel for a GPU, on a machine that has none: python kernels_for_gpu.py.

Triton's interpreter takes what its compiler may refuse. Here the kernels go through the compiler,
down to machine code of an H100 or H200, and are not launched; what the cases then compare is not
looked at.
"""

import sys
from types import SimpleNamespace

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from kernel_cases import SMALL

HOPPER = GPUTarget("cuda", 90, 32)


def compile_only(found: dict[str, int]) -> None:
    """Let launches compile and do nothing else; bytes of machine code are added to ``found``."""
    absent = SimpleNamespace(
        get_current_target=lambda: HOPPER,
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
    )
    driver.set_active(absent)
    compiling = JITFunction.run

    def run(self, *args, **options):  # type: ignore[no-untyped-def]
        kernel = compiling(self, *args, **{**options, "warmup": True})
        if kernel is not None:
            name = self.fn.__name__
            found[name] = found.get(name, 0) + len(kernel.asm["cubin"])
        return kernel

    JITFunction.run = run
    for name, module in list(sys.modules.items()):
        if name.startswith("lookhops.") and hasattr(module, "can_run_on"):
            module.can_run_on = lambda x: x.dtype in (torch.float32, torch.bfloat16)


def one_of_each() -> list:
    """The last case of every kind: all that a kernel can do without is left out."""
    every = {name: case for room in SMALL.values() for name, case in room.items()}
    return list({name.split("(")[0]: case for name, case in every.items()}.values())


if __name__ == "__main__":
    sizes: dict[str, int] = {}
    compile_only(sizes)
    torch.testing.assert_close = lambda *args, **options: None
    for case in one_of_each():
        try:
            case("cpu")
        except (AssertionError, IndexError):  # what was never computed is compared, or an index
            continue
    for name, size in sorted(sizes.items()):
        print(name, size)
