"""An installation of the build tree in a temporary folder, for tests of what users see."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from sanitized import is_sanitized  # noqa: E402: of the folder named above


def run(*command, **options):
    """The standard output of a command that succeeds."""
    result = subprocess.run(command, text=True, capture_output=True, check=False, timeout=280, **options)
    if result.returncode:
        raise AssertionError(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class InstallationTest(unittest.TestCase):
    """Test cases on `prefix`, where `build` is installed; both are set by the script that defines them."""

    build = cxx = None

    @classmethod
    def setUpClass(cls):
        if is_sanitized(cls.build):
            raise unittest.SkipTest("what is installed calls the sanitizers, which programs of users are built without")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("cmake", "--install", cls.build, "--prefix", cls.path("installed"))
        os.rename(cls.path("installed"), cls.path("prefix"))  # an installation may be moved
        cls.sluice = cls.path("prefix", "bin", "sluice")

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def build_project(cls, source, name, *flags):
        """Configures and builds a CMake project against the installation, once; returns its build folder."""
        if not os.path.exists(cls.path(name)):
            run("cmake", "-S", source, "-B", cls.path(name), "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={cls.cxx}",
                f"-DCMAKE_PREFIX_PATH={cls.path('prefix')}", *flags)
            run("cmake", "--build", cls.path(name))
        return cls.path(name)
