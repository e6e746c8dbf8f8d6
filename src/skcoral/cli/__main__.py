"""``python -m skcoral.cli`` is the same as ``coral``."""

import sys

from skcoral.cli import main

sys.exit(main())
