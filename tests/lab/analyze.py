#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""clang-tidy, clang's static analyzer being part of it, on the provider, the glue library, and the transport as its tests
build it; which checks, says clang-tidy.yaml.

    analyze.py compile_commands.json REPOSITORY SILENT

In the directory SILENT there is a file for each source, as the preprocessor leaves it, of which there was nothing to say:
it need not be looked at again.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

CHECKS = pathlib.Path(__file__).parent / "clang-tidy.yaml"


def of_cmake(database):
    """Each source with the compiler's flags, without what names its output."""
    for entry in json.load(open(database)):
        if "/tests/" in entry["file"]:
            continue
        words = shlex.split(entry["command"])[1:]
        if "-o" in words:
            at = words.index("-o")
            del words[at:at + 2]
        yield entry["directory"], entry["file"], [w for w in words if w not in ("-c", entry["file"])]


def of_transport(repository):
    tests = repository / "tests/transport"
    transport = repository / "kernel-drivers/medge/transport"
    for source in sorted(transport.glob("*.c")):
        yield repository, str(source), ["-include", str(tests / "env.h"), f"-I{tests}", f"-I{transport}", "-std=gnu11"]


def question(directory, source, flags):
    """A name for what is asked."""
    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    words = subprocess.run(["clang", *flags, source, "-E", "-o", "-"], cwd=directory, stdout=subprocess.PIPE).stdout
    return hashlib.sha256(b"\0".join([version, CHECKS.read_bytes(), " ".join(flags).encode(), words])).hexdigest()


def analyze(job, silent):
    answered = silent / question(*job)
    if answered.exists():
        return ""
    directory, source, flags = job
    done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={CHECKS}", source, "--", *flags], cwd=directory,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return done.stdout + done.stderr
    # What it says of its own count goes to stderr.
    if not done.stdout:
        answered.touch()
    return done.stdout


def main():
    jobs = [*of_cmake(sys.argv[1]), *of_transport(pathlib.Path(sys.argv[2]))]
    silent = pathlib.Path(sys.argv[3])
    silent.mkdir(parents=True, exist_ok=True)
    said = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for words in pool.map(lambda job: analyze(job, silent), jobs):
            if words:
                print(words)
                said += 1
    print(f"{len(jobs)} sources, of {said} there is something to say")
    sys.exit(said > 0)


main()
