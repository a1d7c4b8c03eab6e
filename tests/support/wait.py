"""Waiting for something to become true, with a deadline and a reason when it does not.

SKEIN_TEST_SLOW multiplies every deadline; tests/run.sh sets it for sanitizer builds.
"""

import os
import time

SLOW = float(os.environ.get("SKEIN_TEST_SLOW", "1"))


class Timeout(AssertionError):
    pass


class Hopeless(Exception):
    """Waiting any longer does not help: goes through until() at once."""


def until(check, what, timeout=10.0, pause=0.02):
    """Call check() until it returns something true; that is returned.

    AssertionError and OSError count as "not yet"; the last one is told when the time is up.
    """
    deadline = time.monotonic() + timeout * SLOW
    last = None
    while True:
        try:
            value = check()
            if value:
                return value
            last = f"last value: {value!r}"
        except (AssertionError, OSError) as error:
            last = f"last error: {error!r}"
        if time.monotonic() >= deadline:
            raise Timeout(f"{what}: not within {timeout * SLOW:.1f} s ({last})")
        time.sleep(pause)
