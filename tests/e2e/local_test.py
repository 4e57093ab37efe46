#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`outriggerctl local` as a person meets it: in a real pseudo terminal (its table, a resize, Ctrl-Z, Ctrl-C), asked by
`explain` and `plugin list`, with a plugin that dies, and what is left of it all.

Needs OUTRIGGER_BIN_DIR, redis-server and redis-cli. What comes out of the terminal is played on a small screen of our
own (Terminal), so that the test reads what a person would see.
"""

import fcntl
import os
import pty
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ["OUTRIGGER_BIN_DIR"]


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


class Terminal:
    """Knows the sequences that outriggerctl uses, and refuses all others."""

    SEQUENCE = re.compile(rb"\x1b\[(\??)(\d*)([A-Za-z])")

    def __init__(self, width, height):
        self.cursor_visible = True
        self.other_screen = False
        self.first_lines = []  # what stands on the first screen, for the person to keep
        self.clears = 0
        self.row = self.column = 0
        self.next_size = (width, height)
        self.take_size()

    def resize(self, width, height):
        """Takes effect when the screen is cleared: what comes before that was drawn for the size of before, or is drawn
        for the new one by a program that has not been told yet. On a real terminal it may wrap."""
        self.next_size = (width, height)

    def settled(self):
        return self.next_size == (self.width, self.height)

    def take_size(self):
        self.width, self.height = self.next_size
        self.row, self.column = min(self.row, self.height - 1), min(self.column, self.width)
        self.rows = [[" "] * self.width for _ in range(self.height)]

    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]

    def feed(self, data):
        while data:
            match = self.SEQUENCE.match(data)
            if match:
                self.obey(match.group(1).decode() + match.group(2).decode() + match.group(3).decode())
                data = data[match.end():]
            elif data[:1] == b"\x1b":
                return data  # the rest of it comes later
            else:
                length = 4 if data[0] >= 0xf0 else 3 if data[0] >= 0xe0 else 2 if data[0] >= 0xc0 else 1
                if len(data) < length:
                    return data
                self.put(data[:length].decode())
                data = data[length:]
        return data

    def obey(self, sequence):
        if sequence == "?1049h":
            self.other_screen = True
            self.row = self.column = 0
        elif sequence == "?1049l":
            self.other_screen = False
        elif sequence in ("?25l", "?25h"):
            self.cursor_visible = sequence == "?25h"
        elif sequence == "2J":
            self.clears += 1
            self.take_size()
        elif sequence == "H":
            self.row = self.column = 0
        elif sequence == "K":
            self.rows[self.row][self.column:] = [" "] * (self.width - self.column)
        elif sequence == "J":
            self.obey("K")
            for row in range(self.row + 1, self.height):
                self.rows[row] = [" "] * self.width
        else:
            raise Failed(f"an unknown sequence: {sequence!r}")

    def is_beyond(self, character):
        return self.row + 1 >= self.height if character == "\n" else self.column >= self.width

    def put(self, character):
        if not self.other_screen:
            if character == "\n":
                self.first_lines.append("")
            elif character != "\r":
                self.first_lines = self.first_lines or [""]
                self.first_lines[-1] += character
            return
        if character == "\r":
            self.column = 0
        elif not self.settled() and self.is_beyond(character):
            pass
        elif character == "\n":
            check(self.row + 1 < self.height, "the table scrolls the screen:\n" + "\n".join(self.lines()))
            self.row += 1
        else:
            check(self.column < self.width, "a line wraps:\n" + "\n".join(self.lines()))
            self.rows[self.row][self.column] = character
            self.column += 1


class Run:
    """outriggerctl as the only process of a terminal."""

    def __init__(self, arguments, width=80, height=24, term="xterm"):
        self.terminal = Terminal(width, height)
        self.raw = b""
        self.rest = b""
        self.exit_code = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ["TERM"] = term
            mode = termios.tcgetattr(0)
            mode[3] &= ~termios.ECHO  # what we type is not what it shows
            termios.tcsetattr(0, termios.TCSANOW, mode)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.execv(f"{BIN}/outriggerctl", ["outriggerctl", *arguments])

    def resize(self, width, height):
        self.terminal.resize(width, height)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.until("a screen drawn for the new size", self.terminal.settled)

    def type(self, keys):
        os.write(self.fd, keys)

    def read(self, seconds):
        """False once the other end is closed."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        self.rest = self.terminal.feed(self.rest + data)
        return bool(data)

    def until(self, what, holds, seconds=20):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end or not self.read(0.1):
                shown = "\n".join(self.terminal.lines())
                raise Failed(f"want {what}, last saw:\n{shown}\n{self.terminal.first_lines}")

    def until_shown(self, text, seconds=20):
        self.until(f"{text!r} on the screen", lambda: any(text in line for line in self.terminal.lines()), seconds)

    def end(self, seconds=20):
        """The exit code, once it has ended by itself."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and self.read(0.1):
            pass
        pid, status = 0, 0
        while pid == 0 and time.monotonic() < limit:  # its terminal is closed a moment before it has ended
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        check(pid == self.pid, f"want an end within {seconds} s, got none; last saw {self.terminal.lines()}")
        self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code

    def kill(self):
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


RESERVED = []  # what keeps others from our ports, until we end


def free_port():
    """As FreePort() of tests/support: nobody listens on it now, no other test gets it while we live, and it lies below
    those that the kernel takes for outgoing connections."""
    while True:
        port = random.randint(12000, 31999)
        reservation = socket.socket(socket.AF_UNIX)
        try:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            reservation.bind(f"\0outrigger-test-port-{port}")
        except OSError:
            reservation.close()
            continue
        RESERVED.append(reservation)
        return port


class Scene:
    """Redis and the example's manifests, in a folder that goes."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.tmp = os.path.join(self.folder.name, "tmp")
        os.mkdir(self.tmp)
        os.environ["TMPDIR"] = self.tmp
        check(any(self.start_redis() for _ in range(5)), "redis-server does not start")
        self.files = []
        for name in ("worker", "scaledobject"):
            path = os.path.join(self.folder.name, name + ".yaml")
            with open(os.path.join(ROOT, "examples/redis-queue", name + ".yaml"), encoding="utf-8") as example:
                text = example.read().replace("127.0.0.1:6379", f"127.0.0.1:{self.port}")
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            self.files += ["-f", path]
        return self

    def start_redis(self):
        """False where somebody took the port first: a redis-server of ours is gone then."""
        self.port = free_port()
        self.redis = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name],
            stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.redis.poll() is None:
            info = subprocess.run(self.cli("INFO", "server"), capture_output=True, text=True, check=False).stdout
            if f"process_id:{self.redis.pid}\n" in info:
                return True
        self.redis.kill()
        self.redis.wait()
        return False

    def __exit__(self, *_):
        self.redis.terminate()
        self.redis.wait()
        self.folder.cleanup()

    def cli(self, *words):
        return ["redis-cli", "-p", str(self.port), *words]

    def push(self, count):
        subprocess.run(self.cli("RPUSH", "orders", *[f"order-{i}" for i in range(count)]),
                       check=True, capture_output=True)

    def left_behind(self):
        """Processes of a run that is over: they have our TMPDIR in their environment. Redis has it too."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as environ:
                    ours = f"TMPDIR={self.tmp}\0".encode() in environ.read()
            except OSError:
                continue
            if ours and int(pid) not in (os.getpid(), self.redis.pid):
                found.append(int(pid))
        return found

    def check_clean(self):
        check(not self.left_behind(), f"processes are left: {self.left_behind()}")
        check(not os.listdir(self.tmp), f"files are left: {os.listdir(self.tmp)}")


def plugin_pid(scene):
    for pid in scene.left_behind():
        with open(f"/proc/{pid}/cmdline", "rb") as command:
            if b"outrigger-scaler-redis" in command.read():
                return pid
    raise Failed("no plugin runs")


def a_table_that_follows_and_gives_the_terminal_back(scene):
    run = Run(["local", *scene.files])
    try:
        run.until_shown("LAST DECISION")
        run.until_shown("redis   ready")
        run.until_shown("default/worker  worker  no")
        check(not run.terminal.cursor_visible and run.terminal.other_screen, "want the other screen without a cursor")
        clears = run.terminal.clears
        scene.push(60)
        run.until_shown("default/worker  worker  yes")
        run.until_shown("0 -> 1 replicas")
        check(run.terminal.clears == clears, "want no clearing of the screen between two frames: that flickers")

        run.resize(110, 30)
        run.until_shown("HPA to ")
        rows = [line for line in run.terminal.lines() if line.startswith("default/worker")]
        check(len(rows) == 1 and "HPA to" in rows[0], f"want the reason in the row at 110 columns, got {rows}")
        run.resize(50, 8)
        run.until_shown("SCALEDOBJECT")
        run.resize(80, 24)
        run.until_shown("SINCE  LAST DECISION")

        os.kill(plugin_pid(scene), signal.SIGKILL)
        run.until_shown("plugin redis: ended with signal 9 (SIGKILL); it is started again in 0")
        run.until("the plugin ready after one restart",
                  lambda: any(re.match(r"redis +ready +\d+s +1$", line) for line in run.terminal.lines()))

        run.type(b"\x1a")  # Ctrl-Z
        run.until("the first screen while it is stopped", lambda: not run.terminal.other_screen)
        check(run.terminal.cursor_visible, "want a cursor while it is stopped")
        os.kill(run.pid, signal.SIGCONT)
        run.until("the table after it goes on", lambda: run.terminal.other_screen)
        run.until_shown("default/worker  worker")

        run.type(b"\x03")  # Ctrl-C
        check(run.end() == 0, f"want exit code 0 after Ctrl-C, got {run.exit_code}")
        check(run.terminal.cursor_visible and not run.terminal.other_screen, "want the terminal as it was")
        steps = "\n".join(run.terminal.first_lines)
        check("default/worker: 0 -> 1 replicas" in steps, f"want the steps on the first screen, got:\n{steps}")
        scene.check_clean()
    finally:
        run.kill()


def plain_lines_where_no_table_fits(scene):
    for term, width in (("dumb", 80), ("xterm", 40)):
        run = Run(["local", *scene.files, "--timeout", "1s"], width=width, term=term)
        try:
            check(run.end() == 0, f"want exit code 0 at --timeout, got {run.exit_code}: {run.raw!r}")
            check(b"\x1b" not in run.raw, f"TERM={term}, {width} columns: want plain lines, got {run.raw!r}")
            check(b"replicas at the start" in run.raw, f"want the first step, got {run.raw!r}")
        finally:
            run.kill()
        scene.check_clean()


def ctrl_c_while_a_plugin_waits(scene):
    """A plugin that ends at once is started again and again; Ctrl-C does not wait for it."""
    folder = os.path.join(scene.folder.name, "bin")
    os.mkdir(folder)
    program = os.path.join(folder, "outrigger-scaler-redis")
    with open(program, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\nexit 7\n")
    os.chmod(program, 0o700)
    run = Run(["local", *scene.files, "--plugin-bin-dir", folder])
    try:
        run.until_shown("ended with exit code 7; it is started again in 1.")
        started = time.monotonic()
        run.type(b"\x03")
        check(run.end() == 0, f"want exit code 0 after Ctrl-C, got {run.exit_code}")
        check(time.monotonic() - started < 5, "want an end at once")
        scene.check_clean()
    finally:
        run.kill()


def spawn_local(scene, *arguments):
    """`outriggerctl local` with its lines in a pipe, as a script sees it."""
    return subprocess.Popen([f"{BIN}/outriggerctl", "local", *scene.files, *arguments], cwd=ROOT,
                            stdout=subprocess.PIPE, bufsize=0)


def read_until(run, text, seconds=20):
    end = time.monotonic() + seconds
    said = ""
    while text not in said:
        ready, _, _ = select.select([run.stdout], [], [], max(0, end - time.monotonic()))
        more = run.stdout.read(65536).decode() if ready else ""
        check(more, f"want {text!r} within {seconds} s, last saw {said!r}")
        said += more


def a_reader_that_goes_ends_it(scene):
    """`outriggerctl local … | head`."""
    run = spawn_local(scene)
    try:
        read_until(run, "replicas at the start")
        scene.push(40)
        read_until(run, "0 -> 1 replicas")
        run.stdout.close()
        check(run.wait(20) == 0, f"want exit code 0 when nobody reads, got {run.returncode}")
        scene.check_clean()
    finally:
        run.kill()
        run.wait()


def a_second_ctrl_c_waits_for_nothing(scene):
    """The workers ignore SIGTERM and have 30 s to end."""
    up = os.path.join(scene.folder.name, "up")
    with open(scene.files[1], encoding="utf-8") as manifest:
        text = manifest.read()
    script = f"trap '' TERM; touch {up}; while :; do sleep 0.1; done"
    with open(scene.files[1], "w", encoding="utf-8") as manifest:
        manifest.write(re.sub("command: .*", f'command: ["sh", "-c", "{script}"]', text))
    run = Run(["local", *scene.files])
    try:
        run.until_shown("replicas at the start")
        scene.push(40)
        run.until("a worker", lambda: os.path.exists(up))
        run.type(b"\x03")
        run.until_shown("stopping: what runs is asked to end")
        started = time.monotonic()
        run.until("a second to pass", lambda: time.monotonic() > started + 1)
        check(scene.left_behind(), "want workers that still run after one Ctrl-C")
        started = time.monotonic()
        run.type(b"\x03")
        check(run.end() == 130, f"want exit code 130 after the second Ctrl-C, got {run.exit_code}")
        check(time.monotonic() - started < 3, "want an end at once")
        check(run.terminal.cursor_visible and not run.terminal.other_screen, "want the terminal as it was")
        scene.check_clean()
    finally:
        run.kill()


def ctl(*arguments, seconds=20):
    return subprocess.run([f"{BIN}/outriggerctl", *arguments], capture_output=True, text=True, check=False,
                          timeout=seconds, cwd=ROOT)


def check_told(result, *texts):
    """One line on stderr that says so, nothing on stdout, exit code 1."""
    lines = result.stderr.splitlines()
    check(result.returncode == 1 and not result.stdout and len(lines) == 1, f"want one line and code 1, got {result}")
    for text in texts:
        check(text in lines[0], f"want {text!r} in {lines[0]!r}")


def until_said(what, arguments, texts, seconds=20):
    end = time.monotonic() + seconds
    while True:
        result = ctl(*arguments)
        if result.returncode == 0 and all(text in result.stdout for text in texts):
            return
        check(time.monotonic() < end, f"want {what}, last saw {result}")


def explain_and_plugin_list_ask_a_run(scene):
    port = free_port()
    address = f"127.0.0.1:{port}"
    check_told(ctl("explain", "worker", "--address", address), address, "nobody answers there (", "refused")
    check_told(ctl("plugin", "list", "--address", "here"), '--address: want HOST:PORT or unix:PATH, got "here"')
    run = spawn_local(scene, "--address", address)
    try:
        read_until(run, address)
        until_said("a plugin that is ready", ["plugin", "list", "--address", address], ["NAME", "redis", "ready"])
        scene.push(40)
        until_said("the last decision in plain words", ["explain", "default/worker", "--address", address],
                   ["ScaledObject default/worker scales Deployment worker", "s0-redis-orders = ", ", active, measured",
                    "s0-redis-orders asks for ceil(value ", "limits:    min 0, max 10", "-> stay at "])
        until_said("the same by its name alone", ["explain", "worker", "--address", address], ["default/worker"])
        check_told(ctl("explain", "default/absent", "--address", address), "no ScaledObject default/absent is")
        check_told(ctl("local", *scene.files, "--address", address), f"--address: gRPC port: cannot listen on {address}")
        redis = f"127.0.0.1:{scene.port}"
        refused = ctl("plugin", "list", "--address", redis)
        check(refused.returncode == 1 and redis in refused.stderr, f"Redis is no operator: {refused}")
        run.send_signal(signal.SIGINT)
        check(run.wait(20) == 0, f"want exit code 0 after SIGINT, got {run.returncode}")
    finally:
        run.kill()
        run.wait()
        run.stdout.close()
    scene.check_clean()


def main():
    for scenario in (a_table_that_follows_and_gives_the_terminal_back, plain_lines_where_no_table_fits,
                     ctrl_c_while_a_plugin_waits, a_second_ctrl_c_waits_for_nothing, a_reader_that_goes_ends_it,
                     explain_and_plugin_list_ask_a_run):
        started = time.monotonic()
        with Scene() as scene:
            try:
                scenario(scene)
            except Failed as failure:
                print(f"FAIL: {scenario.__name__}: {failure}")
                return 1
        print(f"{scenario.__name__}: ok, {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
