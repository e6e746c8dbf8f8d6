"""``python -m skcoral`` is the same as ``coral``."""

import sys

from skcoral.cli import main

if __name__ == "__main__":
    sys.exit(main())
