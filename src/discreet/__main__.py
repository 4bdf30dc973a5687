"""`python -m discreet` is the command line, too."""

import sys

from discreet.doors.cli import main

sys.exit(main())
