"""``python -m jupyter_durable.cli``: the same where the script is not on the path."""

import sys

from jupyter_durable.cli import main

sys.exit(main())
