"""Runs of a program as forked copies of one that has started (ForkServer.cpp)."""

import os
import struct
import subprocess

REQUESTS, ANSWERS = 198, 199


class ForkServer:
    def __init__(self, build, program, environment):
        self.program = program
        ours, theirs = [os.pipe() for _ in range(2)]  # requests, answers

        def connect():
            os.dup2(ours[0], REQUESTS)
            os.dup2(theirs[1], ANSWERS)

        preload = os.path.join(build, "tests", "mutants_fork_server.so")
        self.process = subprocess.Popen(
            [program], preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL,
            env=dict(environment, LD_PRELOAD=preload))
        os.close(ours[0])
        os.close(theirs[1])
        self.requests, self.answers = ours[1], theirs[0]

    def run(self, output, folder, arguments):
        """The status of wait4 and the peak memory in bytes. The file `output` contains the text that it printed."""
        texts = [os.fsencode(text) for text in [output, folder, self.program, *arguments]]
        request = struct.pack("=I", len(texts)) + b"".join(struct.pack("=I", len(text)) + text for text in texts)
        while request:
            request = request[os.write(self.requests, request):]
        answer = os.read(self.answers, 16)
        if len(answer) != 16:
            raise RuntimeError(f"{self.program}: the fork server ended with {self.process.wait()}")
        status, peak = struct.unpack("=qq", answer)
        return status, peak << 10

    def close(self):
        os.close(self.requests)
        os.close(self.answers)
        self.process.wait()
