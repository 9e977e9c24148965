"""Kills every command that changes an installation at random moments. Afterwards the old state or the new one is there, nothing else is
left, and the same command works.

A kill comes after a random part of the command's usual duration, or at a random one of the system calls with which its main thread
changes names of files. It hits the main process, its process group, or all processes at once, like the failure of a node. The test
prints the seed of each kill: CONTAINERIZE_TEST_SEED=<seed> CONTAINERIZE_TEST_KILLS=1 and `-k <case>` repeat it.
CONTAINERIZE_TEST_KILLS is the total number of kills.
"""

import os
import random
import signal
import subprocess

import pytest
from changes import SEED, Node, Runner, case, made  # noqa: F401: the last two are fixtures
from test_conda import server  # noqa: F401
from test_import import of_pip  # noqa: F401

KILLS = int(os.environ.get("CONTAINERIZE_TEST_KILLS", "40"))
# Kills of each command, out of forty. A build with pip is slow, and publishes its result like the others.
SHARES = {"new": 6, "new_in_a_directory": 4, "new_by_http": 2, "new_by_pip": 1, "replacement": 5, "update": 6, "rollback": 5, "squash": 5, "upgrade": 4, "import": 3, "dev": 3}
CALLS = ("rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,fsync,fdatasync,ftruncate,flock,"
         "copy_file_range,sync_file_range,socketpair,unshare")


def as_one_tree(user, argv, options):
    """Runs the command in a pid namespace of its own, so that all its processes die at once. Needs root."""
    for name in user.switch:
        options.pop(name)
    return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", f"--reuid={user.uid}", f"--regid={user.entry.pw_gid}",
            "--clear-groups", *argv]


class Killer(Runner):
    def kill(self, chance):
        """Returns whether all processes were killed at once."""
        whom = chance.choice(["it", "group", "all"] if self.user.switch else ["it", "group"])
        at_a_call = chance.random() < 0.5
        number = signal.SIGKILL if at_a_call else chance.choice([signal.SIGKILL] * 4 + [signal.SIGTERM, signal.SIGINT])
        if number != signal.SIGKILL:
            whom = "it"
        argv, moment = self.argv(), chance.uniform(0, 1.1 * self.duration)
        if at_a_call:
            name, count = chance.choice(self.calls)
            argv = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={count}", *argv]
            print(f"  {whom}, at {name} {count}, one of {len(self.calls)}", flush=True)
        else:
            print(f"  {whom}, by {number.name} after {moment:.3f} of {self.duration:.3f} s", flush=True)
        options = self.user.options(self.case.env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if whom == "all":
            argv = as_one_tree(self.user, argv, options)
        process = subprocess.Popen(argv, **options)
        if at_a_call:
            process.wait(1200)
        else:
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        if whom == "group":
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = process.wait(60)
        if number != signal.SIGKILL:
            assert code in (0, 128 + number, -number), code  # -number: the signal came before the command handled it
        return whom == "all"


@pytest.mark.parametrize("case", list(SHARES), indirect=True)
def test_kills(case, request, user, tool, sessions, work):
    node = Node(user, sessions, work)
    killer = Killer(case, user, tool, node)
    killer.calls = killer.list_calls(CALLS)
    share = SHARES[request.node.callspec.params["case"]]
    for attempt in range(max(1, KILLS * share // sum(SHARES.values()))):
        seed = SEED + attempt
        chance = random.Random(seed)
        print(f"CONTAINERIZE_TEST_SEED={seed}:", flush=True)
        case.prepare(chance)
        node.rest()
        all_at_once = killer.kill(chance)
        node.is_clean(of_files=not all_at_once)
        case.check(all_at_once)
        sessions.kill_all()
        killer.whole()
        sessions.kill_all()
        node.is_clean()
