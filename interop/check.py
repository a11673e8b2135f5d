"""Assertions of the interop scripts: one line per assertion, and the exit code."""

import signal
import sys

DEADLINE_S = 30
held = broken = 0


def check(what, actual, expected):
    """Asserts that `actual` equals `expected`. The script continues if it does not."""
    global held, broken
    if actual == expected:
        held += 1
        print(f"ok    {what}")
    else:
        broken += 1
        print(f"FAIL  {what}: got {actual!r:.200}, want {expected!r:.200}")


def run(main):
    """Runs a script to its end. An exception or a timeout fails it too."""
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(DEADLINE_S)
    try:
        main()
    except Exception as error:
        sys.exit(f"stopped after {held + broken} assertions: {type(error).__name__}: {error}")
    if broken:
        sys.exit(f"{broken} of {held + broken} assertions failed")
    sys.exit(0 if held else 1)


def give_up(_signal, _frame):
    raise TimeoutError(f"the peer left us waiting for {DEADLINE_S} s")
