"""Runs a training across two machines, played by two network namespaces, and cuts their link.

    sudo python tests/two_machines.py [scenario ...]        # make two-machines

Each namespace has a TUN device. This program carries their packets at 100 Mbit/s in each direction
and 5 ms late, and drops them while the link is cut, as a broken switch does: neither side is told.
It needs Linux and root, but no traffic control of the kernel. It first says what it has measured of
the link, because a busy machine may be slower. `--rank_timeout` is short, so that it takes a few
minutes.
"""

import contextlib
import fcntl
import os
import queue
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from helpers import prepare_tiny, records, tiny_args, train_tiny
from rank_processes import TWO
from runs import are_same, stored_tensors
from stepglass.run_dir import checkpoints

DELAY_S = 0.005
BITS_PER_S = 100e6
MTU = 9000  # jumbo frames: Python has to carry every packet
SENT_BYTES = 4 << 20  # to measure the rate
MACHINES = {"stepglass-a": "10.77.0.1", "stepglass-b": "10.77.0.2"}
DEVICE = "glass{}"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PORT = 29577
LONGEST_S = 300


class Wire:
    """One direction of a link: a packet takes as long as its bits need, after the one before."""

    def __init__(self, bits_per_s: float) -> None:
        self._bits_per_s = bits_per_s
        self._free_at = 0.0

    def passes_at(self, now: float, num_bytes: int) -> float:
        """When the last bit of a packet that arrives now has left."""
        self._free_at = max(self._free_at, now) + 8 * num_bytes / self._bits_per_s
        return self._free_at


class Link:
    """Carries packets between two TUN devices, until it is cut."""

    def __init__(self, ends: list[int]) -> None:
        self.is_cut = False
        self.carried = 0
        for here, there in (ends, ends[::-1]):
            threading.Thread(target=self._carry, args=(here, there), daemon=True).start()

    def _carry(self, here: int, there: int) -> None:
        waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._deliver, args=(there, waiting), daemon=True).start()
        wire = Wire(BITS_PER_S)
        with contextlib.suppress(OSError):  # the namespaces are gone
            while True:
                select.select([here], [], [])
                packet = os.read(here, 65536)
                passes_at = wire.passes_at(time.monotonic(), len(packet))
                waiting.put((passes_at + DELAY_S, packet))

    def _deliver(self, there: int, waiting: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
        while True:
            due, packet = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not self.is_cut:
                os.write(there, packet)
                self.carried += 1


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def two_machines() -> Iterator[Link]:
    """Two namespaces and the link between them."""
    made, ends = [], []
    try:
        for number, (machine, address) in enumerate(MACHINES.items()):
            ip("netns", "add", machine)
            made.append(machine)
            ends.append(os.open("/dev/net/tun", os.O_RDWR))
            name = DEVICE.format(number)
            fcntl.ioctl(
                ends[-1], TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI)
            )
            ip("link", "set", name, "netns", machine)
            ip("-n", machine, "address", "add", f"{address}/24", "dev", name)
            ip("-n", machine, "link", "set", name, "mtu", str(MTU))
            for device in ("lo", name):
                ip("-n", machine, "link", "set", device, "up")
        yield Link(ends)
    finally:
        for machine in made:
            ip("netns", "delete", machine)


RECEIVER = f"""
import socket
with socket.create_server(("", {PORT})) as server:
    print("ready", flush=True)
    with server.accept()[0] as peer:
        peer.sendall(b"!")
        left = {SENT_BYTES}
        while left:
            left -= len(peer.recv(1 << 16))
        peer.sendall(b"!")
"""
SENDER = f"""
import socket, time
began = time.monotonic()
with socket.create_connection(("{MACHINES["stepglass-b"]}", {PORT})) as peer:
    connected = time.monotonic()
    peer.recv(1)
    begun = time.monotonic()
    peer.sendall(bytes({SENT_BYTES}))
    peer.recv(1)
    print(1000 * (connected - began), 8e-6 * {SENT_BYTES} / (time.monotonic() - begun))
"""


def measured() -> str:
    """The round trip and the rate of the link, as two programs on both sides see them."""
    here, there = (
        ["ip", "netns", "exec", machine, sys.executable, "-c", program]
        for machine, program in zip(MACHINES, (SENDER, RECEIVER), strict=True)
    )
    with subprocess.Popen(there, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        receiver.stdout.readline()
        found = subprocess.run(here, check=True, capture_output=True, text=True, timeout=60)
    round_trip_ms, rate = (float(word) for word in found.stdout.split())
    assert round_trip_ms >= 2000 * DELAY_S, f"{round_trip_ms} ms"
    assert rate <= BITS_PER_S / 1e6, f"{rate} Mbit/s"
    return f"measured: a round trip of {round_trip_ms:.1f} ms, {rate:.0f} Mbit/s"


def start_both(out_dir: str, **settings: object) -> list["subprocess.Popen[str]"]:
    """A process on each machine. Both have the same disk here."""
    processes = []
    for rank, (machine, _) in enumerate(MACHINES.items()):
        place = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "RANK": str(rank), "LOCAL_RANK": "0"}
        leader = {"MASTER_ADDR": MACHINES["stepglass-a"], "MASTER_PORT": str(PORT)}
        args = tiny_args(**TWO | {"grad_clip": 0, "out_dir": out_dir, **settings})
        processes.append(
            subprocess.Popen(
                ["ip", "netns", "exec", machine, sys.executable, "-m", "stepglass", "train", *args],
                stdout=open(f"{out_dir}-{rank}.txt", "w"),  # noqa: SIM115  for the process
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | place | leader | {"OMP_NUM_THREADS": "1"},
            )
        )
    return processes


def wait_for(out_dir: str, text: str) -> None:
    deadline = time.monotonic() + LONGEST_S
    while text not in Path(f"{out_dir}-0.txt").read_text():
        assert time.monotonic() < deadline, printed(out_dir)
        time.sleep(0.05)


def printed(out_dir: str) -> str:
    return "\n".join(
        f"--- rank {rank}\n" + Path(f"{out_dir}-{rank}.txt").read_text()[-1500:] for rank in (0, 1)
    )


def ends_of(processes: list["subprocess.Popen[str]"], since: float) -> list[tuple[int, float]]:
    """The exit code of each process, and when it ended, in seconds."""
    return [(process.wait(LONGEST_S), round(time.monotonic() - since, 1)) for process in processes]


def has_weights_of_one(out_dir: str, **settings: object) -> bool:
    """Whether a run has the weights of the same run in one process, without replicas: they would
    add up in another order."""
    torch.set_num_threads(1)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        assert train_tiny(**TWO | {"grad_clip": 0, "out_dir": "one", **settings}) == 0
    return are_same(stored_tensors(out_dir), stored_tensors("one"))


def events(name: str, out_dir: str) -> list[dict[str, Any]]:
    return [r["detail"] for r in records("event", out_dir) if r["name"] == name]


def lost_in_log(out_dir: str) -> str:
    [lost] = events("process_lost", out_dir)
    return str(lost["why"])


Way = dict[str, object]  # settings
WAYS: dict[str, Way] = {
    "ddp": {"parallel": "ddp"},
    "fsdp": {"parallel": "fsdp"},
    "fsdp in shards": {"parallel": "fsdp", "checkpoint_shards": True},
}


# -- scenarios -----------------------------------------------------------------------------------


def whole(link: Link, way: Way) -> str:
    """A run that nothing disturbs has the weights of one process."""
    before = link.carried
    codes = ends_of(start_both("whole", **way), time.monotonic())
    assert [code for code, _ in codes] == [0, 0], printed("whole")
    assert has_weights_of_one("whole")
    return f"20 updates, {link.carried - before} packets, the weights of one process"


def cut_for_a_while(link: Link, way: Way) -> str:
    """After 10 s without a link the run goes on, to the same weights."""
    settings = {"max_iters": 60, "lr_decay_iters": 60, "log_interval": 1}
    processes = start_both("while", **way, rank_timeout=60, **settings)
    wait_for("while", "iter 5:")
    link.is_cut = True
    time.sleep(10)
    link.is_cut = False
    codes = ends_of(processes, time.monotonic())
    assert [code for code, _ in codes] == [0, 0], printed("while")
    silences = events("silence", "while")
    assert silences, printed("while")
    assert all(silence["rank"] == 1 for silence in silences), silences
    longest = max(r["wall_ms"] for r in records("iter", "while")[1:])  # the first has the start-up
    assert has_weights_of_one("while", **settings)
    return (
        f"the longest iteration took {longest / 1000:.1f} s, the weights are those of one process; "
        f"in the log: rank 1 silent for {silences[0]['silent_ms'] / 1000:.1f} s"
    )


def lost_machine(link: Link, way: Way) -> str:
    """A process on the other machine is killed: rank 0 cannot ask for its state, but names it."""
    settings = {"max_iters": 100_000, "lr_decay_iters": 100_000, "eval_interval": 100_000}
    processes = start_both("lost", **way, checkpoint_interval=5, **settings)
    wait_for("lost", "checkpoint 5:")
    processes[1].kill()  # `ip netns exec` has become the process itself
    [(code, after), _] = ends_of(processes, time.monotonic())
    last = Path("lost-0.txt").read_text().splitlines()[-1]
    assert code == 1, printed("lost")
    assert "rank 1 ended without a word: killed, or its machine was lost" in last, printed("lost")
    assert "rank 1 ended without a word" in lost_in_log("lost")
    return f"rank 0 ended {after:.1f} s after the kill; {last}"


def cut_for_good(link: Link, way: Way) -> str:
    """Rank 0 names the other within `rank_timeout`, keeps a checkpoint, and both end."""
    settings = {"max_iters": 100_000, "lr_decay_iters": 100_000, "eval_interval": 100_000}
    processes = start_both("good", **way, rank_timeout=8, checkpoint_interval=5, **settings)
    wait_for("good", "checkpoint 5:")
    link.is_cut = True
    began = time.monotonic()
    codes = ends_of(processes, began)
    assert [code for code, _ in codes] == [1, 1], printed("good")
    last = Path("good-0.txt").read_text().splitlines()[-1]
    assert "rank 1 did not answer within 8.0s (--rank_timeout)" in last, printed("good")
    assert "rank 0" in Path("good-1.txt").read_text(), printed("good")
    assert "rank 1 did not answer" in lost_in_log("good")
    [end] = records("end", "good")
    newest = checkpoints.committed(Path("good"))[0]
    checkpoints.verify(newest)
    assert end["reason"] == "failed"
    if way["parallel"] == "ddp":
        assert checkpoints.step_of(newest) == end["iter"]
    after = ", ".join(f"{seconds:.1f}" for _, seconds in codes)
    return f"both ended {after} s after the cut; {last}"


SCENARIOS = {
    "whole": whole,
    "cut-for-10-s": cut_for_a_while,
    "cut-for-good": cut_for_good,
    "killed": lost_machine,
}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(names: list[str]) -> None:
    say(f"link: {1000 * DELAY_S:g} ms and {BITS_PER_S / 1e6:g} Mbit/s in each direction")
    with two_machines():
        say(measured())
    for name in names or SCENARIOS:
        for kind, way in WAYS.items():
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                prepare_tiny()
                with two_machines() as link:
                    say(f"{name}, {kind}: {SCENARIOS[name](link, way)}")


if __name__ == "__main__":
    main(sys.argv[1:])
