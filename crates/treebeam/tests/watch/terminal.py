"""A terminal for tests: starts a program on one, does what it is told step by step, and says what was seen.

Called as `terminal.py COLUMNS ROWS STEPS PROGRAM ARGUMENT…`, STEPS a list in JSON. Prints one document: the screens that were
asked for, how the program ended, and whether the terminal was left as it was found. It knows as much of the language of
terminals as the program should use, and complains of everything else.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

PATIENCE = 120
# Of a terminal that nobody has taken: lines are wrapped, the cursor is seen, the first screen is shown.
MODES = {"7": True, "25": True, "1049": False}
SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, columns, rows):
        self.modes = dict(MODES)
        self.taken = False
        self.unknown = []
        self.rest = ""
        self.resized = False
        self.columns, self.rows = columns, rows
        self.clear()

    def resize(self, columns, rows):
        # What is on its way was made for another size.
        self.resized = True
        self.columns, self.rows = columns, rows
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        while text:
            if text[0] != "\x1b":
                self.put(text[0])
                text = text[1:]
                continue
            found = SEQUENCE.match(text)
            if not found:
                if len(text) < 16:
                    self.rest = text
                    return
                self.unknown.append(text[:16])
                text = text[1:]
                continue
            self.obey(*found.groups())
            text = text[found.end():]

    def put(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.row = min(self.row + 1, self.rows - 1)
        elif unicodedata.category(c) in ("Cc", "Cf", "Cn", "Cs"):
            self.unknown.append(c)
        elif unicodedata.combining(c):
            if self.column:
                self.cells[self.row][self.column - 1] += c
        else:
            wide = unicodedata.east_asian_width(c) in "WF"
            for cell in [c, ""] if wide else [c]:
                if self.column < self.columns:
                    self.cells[self.row][self.column] = cell
                    self.column += 1
                elif not self.resized:
                    self.unknown.append(f"{c!r} beyond the last column")

    def obey(self, private, numbers, letter):
        if private and letter in "hl" and numbers in self.modes:
            self.modes[numbers] = letter == "h"
            if numbers == "1049":
                self.taken = True
                self.clear()
        elif letter == "H":
            row, column = (int(n or 1) for n in (numbers or "1;1").split(";"))
            self.row, self.column = min(row, self.rows) - 1, min(column, self.columns) - 1
        elif letter == "J" and numbers == "2":
            row, column = self.row, self.column
            self.clear()
            self.row, self.column = row, column
        elif letter == "K" and numbers == "2":
            self.cells[self.row] = [" "] * self.columns
        elif letter != "m":
            self.unknown.append(f"{private}{numbers}{letter}")


def set_size(descriptor, columns, rows):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    def __init__(self, columns, rows, command, unplugged):
        self.master, self.slave = pty.openpty()
        # One that is unplugged is not the terminal that is drawn upon.
        self.keys, keyboard = pty.openpty() if unplugged else (self.master, self.slave)
        set_size(self.slave, columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.screen = Screen(columns, rows)
        self.raw = b""
        self.shots = []
        self.free = []
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            # Whoever was started by `nohup` would hand that on.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            os.dup2(keyboard, 0)
            for descriptor in (1, 2):
                os.dup2(self.slave, descriptor)
            os.closerange(3, 256)
            os.execv(command[0], command)
        if unplugged:
            os.close(keyboard)

    def read(self, patience):
        ready, _, _ = select.select([self.master], [], [], patience)
        if not ready:
            return False
        self.raw += os.read(self.master, 65536)
        # Only whole characters are taken; the rest of one comes with the next bytes.
        text = self.raw.decode(errors="ignore")
        done = len(text.encode())
        tail = self.raw[done:]
        if len(tail) < 4:
            self.raw = tail
        else:
            text, self.raw = self.raw.decode(errors="replace"), b""
        self.screen.feed(text)
        return True

    def has_ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def has_stopped(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid and not os.WIFSTOPPED(status):
            sys.exit(f"it ended instead of stopping: {status}")
        return pid != 0

    def settings_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def modes_restored(self):
        return self.screen.modes == MODES

    def until(self, what, holds):
        begun = time.monotonic()
        while not holds():
            gone = self.has_ended()
            if not self.read(0.05) and (gone or time.monotonic() - begun > PATIENCE):
                if holds():
                    return
                if not gone:
                    os.kill(self.pid, signal.SIGKILL)
                sys.exit(f"{what} did not come; exit {self.status}; seen:\n{self.screen.text()}")

    def do(self, name, *arguments):
        if name == "await":
            self.until(repr(arguments[0]), lambda: arguments[0] in self.screen.text())
        elif name == "drawn":
            # The last line says that all is there, once it is whole.
            last = re.compile(r"(q quit|shows all| of \d+)$")
            whole = lambda text: arguments[0] in text and last.search(text.rstrip())
            self.until(repr(arguments[0]), lambda: whole(self.screen.text()))
        elif name == "keys":
            os.write(self.keys, arguments[0].encode())
        elif name == "unplug":
            os.close(self.keys)
        elif name == "resize":
            self.screen.resize(*arguments)
            set_size(self.master, *arguments)
        elif name == "shot":
            self.shots.append(self.screen.text())
        elif name == "append":
            with open(arguments[0], "a") as file:
                file.write(arguments[1])
        elif name == "move":
            os.rename(arguments[0], arguments[1])
        elif name == "signal":
            os.kill(self.pid, getattr(signal, arguments[0]))
        elif name == "stopped":
            self.until("a stop", self.has_stopped)
            while self.read(0):
                pass
        elif name == "free":
            self.free.append(self.settings_restored() and self.modes_restored())
        elif name == "end":
            self.until("the end", self.has_ended)
            while self.read(0):
                pass
        else:
            sys.exit(f"no step {name!r}")


def main():
    columns, rows, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    terminal = Terminal(columns, rows, sys.argv[4:], ["unplug"] in steps)
    for step in steps:
        terminal.do(*step)
    screen = terminal.screen
    json.dump(
        {
            "shots": terminal.shots,
            "exit": terminal.status,
            "free": terminal.free,
            "settings_restored": terminal.settings_restored(),
            "modes_restored": terminal.modes_restored(),
            "taken": screen.taken,
            "after": screen.text(),
            "unknown": screen.unknown,
        },
        sys.stdout,
    )


main()
