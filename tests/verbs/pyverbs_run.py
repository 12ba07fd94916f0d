# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Run rdma-core's python suite, and write what became of each test.

    python3 pyverbs_run.py DIRECTORY RESULTS [ARGUMENTS OF run_tests.py]

DIRECTORY holds rdma-core's tests. RESULTS gets a line a test: pass, fail, error
or skip, its name, and the reason of a skip, with tabs between.
"""
import importlib.util
import os
import sys
import unittest


def load(directory):
    """The suite is a package named tests, which its parser must find first."""
    sys.path.insert(0, directory)
    from args_parser import parser
    spec = importlib.util.spec_from_file_location(
        "tests", os.path.join(directory, "__init__.py"),
        submodule_search_locations=[directory])
    tests = importlib.util.module_from_spec(spec)
    sys.modules["tests"] = tests
    spec.loader.exec_module(tests)
    parser.parse_args()
    return tests


class Recorder(unittest.TextTestResult):
    results = None

    def record(self, status, test, reason=""):
        name = test.id().removeprefix("tests.")
        line = "\t".join((status, name, " ".join(reason.split())))
        print(line, file=self.results, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.record("pass", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.record("fail", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.record("error", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.record("skip", test, reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.record("fail", test)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.record("pass", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.record("fail", test)


def main():
    directory, results = sys.argv[1:3]
    del sys.argv[1:3]
    tests = load(directory)
    with open(results, "w", encoding="utf-8") as file:
        Recorder.results = file
        runner = unittest.TextTestRunner(verbosity=2, resultclass=Recorder)
        unittest.main(module=tests, testRunner=runner, exit=False)
        print("end", file=file)


main()
