"""Plans a pattern file with libcarpool-planner, by ctypes: plan_pattern.py FILE [STRATEGY]

The structs of C are memory whose size and members only C knows, so they are bytes here: the sizes
below are larger than theirs. doc/planner.md has more.
"""
import ctypes
import sys

lib = ctypes.CDLL("libcarpool-planner.so.0")


class Error(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 400)]


class Input(ctypes.Structure):
    _fields_ = [
        ("pattern", ctypes.c_void_p),
        ("machine", ctypes.c_void_p),
        ("unit_bytes", ctypes.c_double),
        ("budget_ms", ctypes.c_double),
    ]


class PatternHead(ctypes.Structure):  # the first members of struct cpl_pattern
    _fields_ = [("n_ranks", ctypes.c_int32), ("n_messages", ctypes.c_int64)]


def struct():
    return ctypes.create_string_buffer(4096)


def call(name, *arguments):
    error = Error()
    if getattr(lib, name)(*arguments, ctypes.byref(error)):
        raise RuntimeError(error.text.decode())


pattern, machine, choice, plan = struct(), struct(), struct(), struct()
us = ctypes.c_double()
call("cpl_pattern_read", sys.argv[1].encode(), pattern)
n_ranks = PatternHead.from_buffer(pattern).n_ranks
call("cpl_machine_init", n_ranks, 32, machine)
call("cpl_strategy_parse", (sys.argv[2] if len(sys.argv) > 2 else "vpt:2").encode(), choice)
given = Input(ctypes.addressof(pattern), ctypes.addressof(machine), 8, 500)
call("cpl_strategy_plan", ctypes.byref(given), choice, plan)
call("cpl_plan_chain_cost", plan, machine, ctypes.c_double(8), ctypes.byref(us))
print(f"{n_ranks} ranks: {us.value:.2f} us by the model")
for name, memory in (("plan", plan), ("machine", machine), ("pattern", pattern)):
    getattr(lib, f"cpl_{name}_free")(memory)
