"""`python -m carpool`: becomes the command."""

import os
import sys

from carpool import command

try:
    path = command()
except FileNotFoundError as error:
    sys.exit(f"carpool: {error}")
os.execv(path, ["carpool", *sys.argv[1:]])
