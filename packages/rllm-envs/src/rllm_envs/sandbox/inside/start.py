"""First file of a fresh interpreter; its arguments are descriptors: REQUEST READY CHANNEL..."""

import marshal
import os
import sys


def main() -> None:
    """Read the request and run it; its bytes come from the process that started this one."""
    sys.path.insert(0, os.path.dirname(__file__))
    import program

    request_file, ready, *channels = map(int, sys.argv[1:])
    with os.fdopen(request_file, "rb") as file:
        request = marshal.load(file)
    program.run_request(request, program.take_descriptors(ready, channels))


main()
