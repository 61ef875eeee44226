"""Whether a build has sanitizers. Its programs are larger and slower, and their shadow memory exceeds any limit."""

import os
import re


def is_sanitized(build):
    path = os.path.join(build, "CMakeCache.txt")
    if not os.path.exists(path):  # a folder with programs alone
        return False
    with open(path, encoding="utf-8") as cache:
        return re.search(r"^SLUICE_SANITIZE:\w+=.+", cache.read(), re.MULTILINE) is not None
