#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""clang's static analyzer on the provider, the glue library, and the transport as its tests build it.

    analyze.py compile_commands.json REPOSITORY SILENT

In the directory SILENT there is a file for each source, as the preprocessor leaves it, of which the analyzer had nothing
to say: it need not be asked again.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

FLAGS = ["clang", "--analyze", "-Xanalyzer", "-analyzer-output=text"]


def of_cmake(database):
    """The analyzer's command for each source, without what names its output."""
    for entry in json.load(open(database)):
        if "/tests/" in entry["file"]:
            continue
        words = shlex.split(entry["command"])[1:]
        if "-o" in words:
            at = words.index("-o")
            del words[at:at + 2]
        yield entry["directory"], [*FLAGS, *(w for w in words if w != "-c")]


def of_transport(repository):
    tests = repository / "tests/transport"
    transport = repository / "kernel-drivers/medge/transport"
    for source in sorted(transport.glob("*.c")):
        yield repository, [*FLAGS, "-include", str(tests / "env.h"), f"-I{tests}", f"-I{transport}", "-std=gnu11",
                           str(source)]


def question(directory, command):
    """A name for what the analyzer is asked."""
    version = subprocess.run([FLAGS[0], "--version"], stdout=subprocess.PIPE, check=True).stdout
    source = subprocess.run([*command, "-E", "-o", "-"], cwd=directory, stdout=subprocess.PIPE).stdout
    return hashlib.sha256(b"\0".join([version, " ".join(command).encode(), source])).hexdigest()


def analyze(job, silent):
    answered = silent / question(*job)
    if answered.exists():
        return 0, ""
    directory, command = job
    done = subprocess.run([*command, "-o", "/dev/null"], cwd=directory, stderr=subprocess.PIPE, text=True)
    if not done.returncode and not done.stderr:
        answered.touch()
    return done.returncode, done.stderr


def main():
    jobs = [*of_cmake(sys.argv[1]), *of_transport(pathlib.Path(sys.argv[2]))]
    silent = pathlib.Path(sys.argv[3])
    silent.mkdir(parents=True, exist_ok=True)
    said = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for status, words in pool.map(lambda job: analyze(job, silent), jobs):
            if status or words:
                print(words)
                said += 1
    print(f"{len(jobs)} sources, of {said} the analyzer has something to say")
    sys.exit(said > 0)


main()
