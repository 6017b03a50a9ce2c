"""What the host tells, on planted machines: each reading, and that what is not told is None and never zero."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rig import host
from rig.records import Host, HostState, decode, encode


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_machine_that_tells_nothing_is_none_throughout(tmp_path: Path) -> None:
    assert host.cpu_mhz(tmp_path) is None
    assert host.governor(tmp_path) is None
    assert host.quota_cores(tmp_path, tmp_path) is None
    assert host.throttling(tmp_path, tmp_path) == (None, None)
    assert host.process_ticks(tmp_path) is None
    assert host.busy_processes(None, None, 1.0) is None
    assert host.cpu_pressure(tmp_path) is None
    assert host.temperature_c(tmp_path) is None
    assert host.shared_memory_bytes(tmp_path) is None


def test_the_clock_is_the_mean_over_cores(tmp_path: Path) -> None:
    plant(tmp_path, {"cpuinfo": "processor : 0\ncpu MHz\t\t: 2000.0\n\nprocessor : 1\ncpu MHz\t\t: 3000.5\n"})
    assert host.cpu_mhz(tmp_path) == 2500.2


def test_governors_of_all_cores_are_named_once(tmp_path: Path) -> None:
    names = {0: "powersave\n", 1: "powersave\n", 2: "performance\n"}
    files = {f"devices/system/cpu/cpu{core}/cpufreq/scaling_governor": name for core, name in names.items()}
    assert host.governor(plant(tmp_path, files)) == "performance, powersave"


V2 = {"proc/self/cgroup": "0::/pod/box\n"}
STAT = "usage_usec 5\nnr_periods {}\nnr_throttled {}\nthrottled_usec 9\n"


@pytest.mark.parametrize(
    ("files", "quota", "throttling"),
    [
        # version 2, the quota on the group above
        (
            V2
            | {
                "sys/fs/cgroup/pod/box/cpu.max": "max 100000\n",
                "sys/fs/cgroup/pod/box/cpu.stat": STAT.format(0, 0),
                "sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
                "sys/fs/cgroup/pod/cpu.stat": STAT.format(100, 25),
            },
            1.5,
            (100, 25),
        ),
        # version 2, a container that sees its own group as the top
        (V2 | {"sys/fs/cgroup/cpu.max": "50000 100000", "sys/fs/cgroup/cpu.stat": STAT.format(7, 3)}, 0.5, (7, 3)),
        # version 2, the machine's own top group: no quota, no periods
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": "usage_usec 5\n"}, None, (None, None)),
        # version 1
        (
            {
                "proc/self/cgroup": "4:memory:/m\n1:cpu,cpuacct:/box\n0::/\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.stat": "nr_periods 9\nnr_throttled 1\nthrottled_time 5\n",
            },
            2.0,
            (9, 1),
        ),
        # version 1 without a quota
        (
            {
                "proc/self/cgroup": "1:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\n",
            },
            None,
            (0, 0),
        ),
    ],
)
def test_the_tightest_quota_is_found_in_either_kind_of_control_groups(
    tmp_path: Path, files: dict[str, str], quota: float | None, throttling: tuple[int | None, int | None]
) -> None:
    plant(tmp_path, files)
    assert host.quota_cores(tmp_path / "proc", tmp_path / "sys") == quota
    assert host.throttling(tmp_path / "proc", tmp_path / "sys") == throttling


def stat(pid: int, parent: int, ticks: int, name: str = "worker") -> dict[str, str]:
    return {f"{pid}/stat": f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 0\n"}


def test_processes_of_others_are_told_from_our_own_and_our_childrens(tmp_path: Path) -> None:
    plant(tmp_path, stat(1, 0, 5) | stat(50, 1, 9) | stat(51, 50, 9) | stat(52, 51, 9) | stat(60, 1, 7, "a ) (b"))
    assert host.process_ticks(tmp_path, own=50) == {1: 5, 60: 7}


def test_a_process_is_busy_from_a_fifth_of_a_core_on() -> None:
    before, after = {1: 100, 2: 100, 3: 100}, {1: 120, 2: 121, 3: 300, 4: 900}
    assert host.busy_processes(before, after, 1.0, hz=100) == 2


def test_pressure_is_that_of_the_last_ten_seconds(tmp_path: Path) -> None:
    plant(tmp_path, {"pressure/cpu": "some avg10=12.50 avg60=1.20 avg300=8.12 total=1\nfull avg10=0.00\n"})
    assert host.cpu_pressure(tmp_path) == 0.125


def test_the_hottest_sensor_of_the_cpu_is_told_and_no_other(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "class/thermal/thermal_zone0/type": "acpitz\n",
            "class/thermal/thermal_zone0/temp": "99000\n",
            "class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
            "class/thermal/thermal_zone1/temp": "61000\n",
            "class/hwmon/hwmon0/name": "coretemp\n",
            "class/hwmon/hwmon0/temp1_input": "64500\n",
            "class/hwmon/hwmon0/temp2_input": "not now\n",
            "class/hwmon/hwmon1/name": "nvme\n",
            "class/hwmon/hwmon1/temp1_input": "90000\n",
        },
    )
    assert host.temperature_c(tmp_path) == 64.5


@pytest.mark.parametrize(
    ("switch", "value"),
    [
        ("sys/kernel/unprivileged_userns_clone", "0"),
        ("sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
        ("sys/user/max_user_namespaces", "0"),
    ],
)
def test_b57_one_switch_of_the_kernel_is_enough_to_forbid_user_namespaces(
    tmp_path: Path, switch: str, value: str
) -> None:
    assert host.user_namespaces(tmp_path)
    assert not host.user_namespaces(plant(tmp_path, {switch: f"{value}\n"}))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_is_not_ours_is_seen_and_our_own_is_not() -> None:
    spin = "import os, time\nend = time.monotonic() + 8\nwhile time.monotonic() < end: pass"
    # a child that outlives the shell which started it is nobody's child of ours
    shell = f'"{sys.executable}" -c "{spin}" >/dev/null 2>&1 & echo $!'
    ours = subprocess.Popen([sys.executable, "-c", spin])
    pid = int(subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout)
    try:
        time.sleep(0.3)
        before = host.process_ticks()
        time.sleep(0.5)
        after = host.process_ticks()
        assert before is not None
        assert after is not None
        assert pid in before
        assert not {ours.pid, os.getpid()} & set(before)
        spent = {other: ticks - before.get(other, ticks) for other, ticks in after.items()}
        assert spent[pid] > 0
    finally:
        ours.kill()
        ours.wait()
        os.kill(pid, 9)


def test_states_and_hosts_stored_before_these_readings_can_still_be_read() -> None:
    old = b'{"load_1min":0.1,"cpu_busy_fraction":0.2,"steal_fraction":0.0,"memory_free_bytes":5}'
    assert decode(old, HostState).busy_processes is None
    bare = Host(system="s", cpu="c", cores=2, memory_bytes=1, python="3", container=False, root=False)
    assert decode(encode(bare), Host).governor is None


def test_this_machine_is_told_within_bounds() -> None:
    here, now = host.describe(), host.state()
    assert here.cores >= 1
    assert 0 <= now.cpu_busy_fraction <= 1
    assert now.temperature_c is None or 0 < now.temperature_c < 130
    assert now.cpu_pressure_fraction is None or 0 <= now.cpu_pressure_fraction <= 1
