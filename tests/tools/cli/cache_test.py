"""The cache of compiled kernels on disk: the same programs with and without it, whatever it contains."""

import json
import os
import re
import shutil
import unittest

from sluice_cli import BUILD, CliTest, main


class CacheTest(CliTest):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")
        self.environment = dict(os.environ, SLUICE_CACHE=self.cache)
        lenet = self.run_program(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "4", "-o", "lenet.mlir")
        self.assertEqual(lenet.returncode, 0, lenet.stderr)

    def compile(self, *flags, model="small.mlir", env=None):
        """The bytes of the object, and the figures of the compilation."""
        result = self.sluice("compile", model, "-o", "program", "--emit", "obj", "--json", *flags, env=env or self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("program"), "rb") as program:
            return program.read(), json.loads(result.stdout)

    def cached(self, *flags, **how):
        """The number of kernels that came from the cache, and the number of all kernels that it can have."""
        figures = self.compile(*flags, **how)[1]
        return figures["cached_kernels"], figures["shared_kernels"]

    def entries(self):
        return sorted(os.listdir(self.cache)) if os.path.isdir(self.cache) else []

    def test_programs_have_equal_bytes_with_and_without_it(self):
        for model in ("small.mlir", "lenet.mlir"):
            with self.subTest(model):
                without, figures = self.compile("--no-cache", model=model)
                self.assertEqual(figures["cached_kernels"], 0)
                first, figures = self.compile(model=model)
                self.assertEqual(figures["cached_kernels"], 0)
                again, figures = self.compile(model=model)
                self.assertEqual(figures["cached_kernels"], figures["shared_kernels"])
                self.assertGreater(figures["cached_kernels"], 0)
                self.assertEqual(first, without)
                self.assertEqual(again, without)

    def test_damaged_entries_are_compiled_again(self):
        without, _ = self.compile(model="lenet.mlir")
        names = self.entries()
        for number, name in enumerate(names):
            with open(os.path.join(self.cache, name), "r+b") as entry:
                content = bytearray(entry.read())
                if number % 3 == 0:
                    entry.truncate(len(content) // 2)
                elif number % 3 == 1:
                    content[len(content) // 2] ^= 1
                    entry.seek(0)
                    entry.write(content)
                else:  # the content of another kernel
                    with open(os.path.join(self.cache, names[number - 1]), "rb") as other:
                        entry.seek(0)
                        entry.truncate()
                        entry.write(other.read())
        damaged, figures = self.compile(model="lenet.mlir")
        self.assertEqual(figures["cached_kernels"], 0)
        self.assertEqual(damaged, without)
        self.assertEqual(self.cached(model="lenet.mlir"), (len(names), len(names)))

    def test_other_code_has_other_entries(self):
        kernels = {}
        for flags in ([], ["--target-cpu", "haswell"], ["--target-cpu", "haswell:l1=16K"], ["--target-cpu", "haswell:l2=512K"],
                      ["--math", "fast"], ["--batch", "3"]):
            with self.subTest(flags):
                self.assertEqual(self.cached(*flags)[0], 0)
                kernels[str(flags)] = self.cached(*flags)
                self.assertEqual(*kernels[str(flags)])

    def test_it_says_how_many_kernels_came_from_it(self):
        for expected in (False, True):
            result = self.sluice("compile", "small.mlir", "-o", "small", "--timing", env=self.environment)
            self.assertEqual("  cache         code of 2 of 2 kernels\n" in result.stdout, expected, result.stdout)
            self.assertEqual(bool(re.search(r"(?m)^cached kernels +2 of 2$", result.stderr)), expected, result.stderr)

    def test_its_folder(self):
        os.mkdir(self.path("home"))
        home, caches = self.path("home"), self.path("caches")
        inherited = {name: value for name, value in os.environ.items() if name not in ("SLUICE_CACHE", "XDG_CACHE_HOME", "HOME")}
        for settings, folder in (({"HOME": home}, home + "/.cache/sluice"),
                                 ({"HOME": home, "XDG_CACHE_HOME": caches}, caches + "/sluice"),
                                 ({"HOME": home, "XDG_CACHE_HOME": "relative"}, home + "/.cache/sluice"),
                                 ({"HOME": home, "XDG_CACHE_HOME": caches, "SLUICE_CACHE": self.cache}, self.cache)):
            with self.subTest(settings):
                self.compile(env=inherited | settings)
                self.assertEqual(len(os.listdir(folder)), 2)
                shutil.rmtree(folder)

    def test_it_is_not_needed(self):
        inherited = {name: value for name, value in os.environ.items() if name not in ("SLUICE_CACHE", "XDG_CACHE_HOME", "HOME")}
        file = self.path("small.mlir")  # where there can be no folder
        home = self.path("none")  # is not created
        for settings in ({}, {"SLUICE_CACHE": "off"}, {"SLUICE_CACHE": ""}, {"SLUICE_CACHE": file}, {"HOME": file}, {"HOME": home}):
            with self.subTest(settings):
                before = sorted(os.listdir(self.folder))
                result = self.sluice("compile", "small.mlir", "--emit", "obj", "-o", "program", env=inherited | settings)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                os.remove(self.path("program"))
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    @unittest.skipUnless("DASHBOARD_TEST_FROM_CTEST" in os.environ, "not run by ctest")
    def test_other_tests_do_not_use_it(self):
        self.assertEqual(os.environ["SLUICE_CACHE"], "off")

    def test_verbose_output_says_why_it_is_not_written(self):
        file = self.path("small.mlir")
        result = self.sluice("compile", "small.mlir", "-o", "small", "--verbose", env=dict(self.environment, SLUICE_CACHE=file))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count(f"note: cannot write to the cache {file}: "), 1)


if __name__ == "__main__":
    main()
