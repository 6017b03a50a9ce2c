"""The doctor: each cause told apart, by its link, with the sentence that mends it; planted, or in the real browser."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from rig import doctor
from rig.browsers import flags as browser_flags
from rig.browsers.find import Browser
from rig.browsers.flags import AdapterAsked
from rig.doctor import Diagnosis, Finding, State, chain, gpu, installed, page, quiet, vulkan
from rig.doctor.around import Around, Library
from rig.executors.chromium import ChromiumExecutor, ChromiumSession
from rig.executors.wire import Surroundings
from rig.records import Adapter, Host, HostState
from tests.scripted import ADAPTER, BUILD, CLOCK
from tests.test_cli import WITHOUT_UNSAFE, failed, rig, wrapper

pytestmark = pytest.mark.browser

MIB = 1 << 20
QUIET = HostState(load_1min=0.1, cpu_busy_fraction=0.02, steal_fraction=0.0, memory_free_bytes=1 << 33)
HOST = Host(system="s", cpu="c", cores=8, memory_bytes=1 << 34, python="3", container=False, root=False)
GPU = msgspec.structs.replace(ADAPTER, is_fallback=False, vendor="nvidia", renderer="NVIDIA")


@dataclass(frozen=True)
class Planted(Around):
    """A machine in a folder. `broken`: libraries that can't be opened, by a part of their names; `says`: programs."""

    broken: tuple[str, ...] = ()
    says: dict[str, str] = field(default_factory=dict)

    def said(self, command: tuple[str, ...] | list[str]) -> str | None:  # type: ignore[override]
        return self.says.get(" ".join(command), self.says.get(command[0]))

    def has(self, program: str) -> bool:
        return program in self.says

    def opened(self, library: str) -> Library:
        bad = any(part in library for part in self.broken)
        return Library("", "cannot open shared object file") if bad else Library(f"/lib/{Path(library).name}")


@pytest.fixture
def planted(tmp_path: Path) -> Callable[..., Planted]:
    def plant(
        files: dict[str, str] | None = None,
        environ: dict[str, str] | None = None,
        broken: tuple[str, ...] = (),
        says: dict[str, str] | None = None,
    ) -> Planted:
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return Planted(tmp_path, environ or {}, broken, says or {})

    return plant


Plant = Callable[..., Planted]
ICD = '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3"}}'
SMI = {"nvidia-smi": "GPU 0: NVIDIA H200 (UUID: GPU-1234)\n"}


def wrong(findings: list[Finding] | tuple[Finding, ...]) -> list[str]:
    return [finding.link for finding in findings if finding.state is State.wrong]


# --- what is installed ---


def test_python_and_its_packages_are_told_and_a_missing_one_is_named() -> None:
    assert installed.python_here().state is State.fine
    all_but = dict.fromkeys(installed.PACKAGES, "1.0")
    del all_but["scipy"]
    found = installed.python((3, 12, 1), all_but)
    assert (found.state, found.found) == (State.wrong, "3.12.1, without scipy")
    assert "pip install scipy" in found.mend
    assert installed.python((3, 10, 0), all_but).mend == "make the environment with Python 3.11 or newer"


def test_missing_libraries_of_an_executable_are_named_with_their_packages(planted: Plant) -> None:
    said = "\tlinux-vdso.so.1 (0x1)\n\tlibnss3.so => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n"
    said += "\tlibx.so.1 => not found\n"
    found = installed.libraries("libraries", Path("/opt/chrome"), planted(says={"ldd": said}))
    assert found is not None
    assert (found.state, found.found) == (State.wrong, "chrome lacks libnss3.so, libx.so.1")
    assert found.mend == "apt-get install libnss3; install what brings libx.so.1 (Debian: apt-file search NAME)"


def test_without_ldd_nothing_is_said_of_libraries(planted: Plant) -> None:
    assert installed.libraries("libraries", Path("/opt/chrome"), planted()) is None


@pytest.mark.parametrize(
    ("script", "link", "mend"),
    [
        ("exit 3", "browser", "install it again"),
        (
            "echo browser: error while loading shared libraries: libnss3.so: cannot open >&2; exit 127",
            "libraries",
            "apt-get install libnss3",
        ),
    ],
)
def test_b56_a_browser_that_is_none_is_told_from_one_that_lacks_a_library(
    tmp_path: Path, browser: Browser, script: str, link: str, mend: str
) -> None:
    (found,) = installed.browser(str(wrapper(tmp_path, browser, script)), Around())
    assert isinstance(found, Finding)
    assert (found.link, found.state) == (link, State.wrong)
    assert mend in found.mend


def test_b56_no_browser_says_what_to_install_and_which_option_to_set() -> None:
    (found,) = installed.browser("/no/such/browser", Around())
    assert isinstance(found, Finding)
    assert (found.link, found.state) == ("browser", State.wrong)
    assert "apt-get install chromium-headless-shell" in found.mend
    assert "--browser PATH" in found.mend


@pytest.mark.parametrize(
    ("size", "flags", "state", "said"),
    [
        (64 * MIB, ("--disable-dev-shm-usage",), State.fine, "64 MiB; not used: --disable-dev-shm-usage is in force"),
        (64 * MIB, (), State.note, "64 MiB; used, without --disable-dev-shm-usage"),
        (4096 * MIB, (), State.fine, "4,096 MiB; used"),
        (None, (), State.note, "no /dev/shm"),
        (64 * MIB, None, State.note, "no browser ran"),
    ],
)
def test_b58_shared_memory_is_told_with_the_flag_in_use(
    size: int | None, flags: tuple[str, ...] | None, state: State, said: str
) -> None:
    found = quiet.shared_memory(size, flags)
    assert found.state is state
    assert said in found.found
    assert ("--shm-size" in found.mend) is (state is State.note)


def test_b59_ended_browsers_that_nobody_took_note_of_are_counted() -> None:
    found = quiet.leftovers([("chromium-headle", "zombie"), ("chrome", "running"), ("sh", "zombie")])
    assert found.state is State.note
    assert found.found.startswith("1 ended browser")
    assert "--init" in found.mend
    assert quiet.leftovers([("chrome", "running")]).state is State.fine


# --- Vulkan ---


def test_b04_a_variable_that_names_a_file_that_is_not_there_is_wrong(planted: Plant) -> None:
    (found,) = vulkan.variables(planted(environ={"VK_ICD_FILENAMES": "/no/such.json"}))
    assert (found.link, found.state) == ("Vulkan variables", State.wrong)
    assert found.found == "VK_ICD_FILENAMES names /no/such.json, which is not there"
    assert found.mend.startswith("unset VK_ICD_FILENAMES, or let it name")


def test_b04_a_variable_that_names_a_driver_whose_library_cannot_be_opened_is_wrong(
    planted: Plant, tmp_path: Path
) -> None:
    around = planted(
        files={"n.json": ICD}, environ={"VK_DRIVER_FILES": str(tmp_path / "n.json")}, broken=("libGLX_nvidia",)
    )
    (found,) = vulkan.variables(around)
    assert found.state is State.wrong
    assert "whose library can't be opened: cannot open shared object file" in found.found
    (whole,) = vulkan.variables(replace(around, broken=()))
    assert whole.state is State.fine


def test_no_variable_no_finding(planted: Plant) -> None:
    assert list(vulkan.variables(planted(environ={"VK_ICD_FILENAMES": ""}))) == []


def test_drivers_are_looked_for_in_every_standard_folder(planted: Plant, tmp_path: Path) -> None:
    environ = {"HOME": "/home/me", "XDG_DATA_DIRS": "/opt/share:/usr/share", "XDG_CONFIG_HOME": "/conf"}
    folders = vulkan.standard_folders(planted(environ=environ))
    places = ["conf", "etc/xdg", "etc", "home/me/.local/share", "opt/share", "usr/share"]
    assert folders == [tmp_path / place / "vulkan/icd.d" for place in places]


@pytest.mark.parametrize(
    ("text", "broken", "state", "said"),
    [
        (ICD, (), State.fine, "nvidia_icd.json"),
        (ICD, ("libGLX_nvidia",), State.wrong, "whose library can't be opened"),
        ("{}", (), State.wrong, "which is no driver's file"),
        ("not JSON", (), State.wrong, "which is no driver's file"),
    ],
)
def test_b04_a_drivers_file_is_opened_and_so_is_its_library(
    planted: Plant, text: str, broken: tuple[str, ...], state: State, said: str
) -> None:
    around = planted(files={"usr/share/vulkan/icd.d/nvidia_icd.json": text}, broken=broken)
    found, drivers = vulkan.files(around, needed=True)
    assert found.state is state
    assert said in found.found
    assert [driver.nvidia for driver in drivers] == [True]


def test_b06_no_drivers_file_matters_only_where_a_gpu_is_wanted(planted: Plant) -> None:
    assert vulkan.files(planted(), needed=False)[0].state is State.note
    missing, _ = vulkan.files(planted(), needed=True)
    assert missing.state is State.wrong
    assert missing.mend.startswith("install the GPU's Vulkan driver")


def test_a_library_beside_its_file_is_found_from_the_file(planted: Plant, tmp_path: Path) -> None:
    text = ICD.replace("libGLX_nvidia.so.0", "./lib/libvk.so")
    around = planted(
        files={"etc/vulkan/icd.d/own.json": text}, broken=(str(tmp_path / "etc/vulkan/icd.d/lib/libvk.so"),)
    )
    assert vulkan.files(around, needed=True)[0].state is State.wrong


def test_the_loader_beside_the_browser_is_used_before_the_systems(planted: Plant, tmp_path: Path) -> None:
    around = planted(files={"opt/libvulkan.so.1": ""}, broken=("nothing",))
    assert "the browser's own" in vulkan.loader(around, tmp_path / "opt/chrome", needed=True).found
    assert vulkan.loader(around, None, needed=True).found == "/lib/libvulkan.so.1"
    none = vulkan.loader(replace(around, broken=("libvulkan",)), None, needed=True)
    assert (none.state, none.mend) == (State.wrong, "apt-get install libvulkan1")


def test_each_library_that_nvidias_driver_opens_by_name_is_missed_by_name(planted: Plant) -> None:
    for name in vulkan.NVIDIA_OPENS:
        found = vulkan.opened_by_name(planted(broken=(name,)), nvidia=True)
        assert found.state is State.wrong
        assert name in found.found
        assert found.mend == f"apt-get install {installed.DEBIAN[name]}"
    assert vulkan.opened_by_name(planted(broken=("libEGL",)), nvidia=False).state is State.note
    assert vulkan.opened_by_name(planted(), nvidia=True).state is State.fine


def test_libraries_are_really_opened_and_really_missed() -> None:
    assert "libc.so" in Around().opened("libc.so.6").path
    assert "libnosuch.so.1" in Around().opened("libnosuch.so.1").error


# --- the GPU ---


@pytest.mark.parametrize("given", ["compute,utility", ""])
def test_b05_a_container_whose_capabilities_lack_graphics_is_told_so(planted: Plant, given: str) -> None:
    environ = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": given}
    (found,) = gpu.capabilities(planted(environ=environ, says=SMI))
    assert (found.link, found.state) == ("GPU in the container", State.wrong)
    assert "nvidia-smi works: graphics is missing" in found.found
    assert "NVIDIA_DRIVER_CAPABILITIES=all" in found.mend


@pytest.mark.parametrize("given", ["all", "compute,graphics", "compute, graphics"])
def test_b05_a_container_with_graphics_is_fine(planted: Plant, given: str) -> None:
    environ = {"NVIDIA_VISIBLE_DEVICES": "0", "NVIDIA_DRIVER_CAPABILITIES": given}
    (found,) = gpu.capabilities(planted(environ=environ))
    assert found.state is State.fine


def test_a_machine_without_nvidias_variables_has_no_such_link(planted: Plant) -> None:
    assert list(gpu.capabilities(planted())) == []


def test_device_files_are_listed_and_their_absence_matters_where_a_gpu_is_wanted(planted: Plant) -> None:
    assert gpu.devices(planted(), needed=False).state is State.note
    assert gpu.devices(planted(), needed=True).mend.startswith("in a container: docker run --gpus all")
    found = gpu.devices(planted(files={"dev/dri/renderD128": ""}, says=SMI), needed=True)
    assert found.state is State.fine
    assert "renderD128; NVIDIA H200 by nvidia-smi" in found.found


def test_executors_beside_the_browser_are_told_with_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    found = installed.beside()
    assert found.state is State.fine
    assert f"wgpu {importlib.metadata.version('wgpu')}" in found.found
    monkeypatch.setenv("RIG_DAWN", "/not/there")
    assert "no dawn (Dawn is not at /not/there: npm install webgpu" in installed.beside().found


def test_an_nvidia_gpu_without_a_display_wants_xvfb_which_the_rig_starts_itself(planted: Plant) -> None:
    assert gpu.display(planted(), nvidia=False, needed=True).state is State.fine
    assert gpu.display(planted(environ={"DISPLAY": ":99"}), nvidia=True, needed=True).state is State.fine
    bare = gpu.display(planted(), nvidia=True, needed=True)
    assert (bare.state, "apt-get install xvfb" in bare.mend) == (State.wrong, True)
    assert gpu.display(planted(), nvidia=True, needed=False).state is State.note
    assert gpu.display(planted(says={"Xvfb": ""}), nvidia=True, needed=True).state is State.fine


def test_other_users_of_the_gpu_are_counted_and_not_named(planted: Plant) -> None:
    query = "nvidia-smi --query-compute-apps=pid --format=csv,noheader"
    (busy,) = gpu.users(planted(says={**SMI, query: "123\n456\n"}))
    assert (busy.state, busy.found) == (State.note, "2 other processes compute on the GPU")
    (free,) = gpu.users(planted(says={**SMI, query: "\n"}))
    assert free.state is State.fine
    assert list(gpu.users(planted())) == []


def fake(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return folder


def test_b44_a_gpu_may_have_any_name(tmp_path: Path) -> None:
    bin_ = fake(tmp_path / "bin", "nvidia-smi", r"printf 'GPU 0: Quadro \370 \344\270\255/x (UUID: GPU-1)\n'")
    around = Around(tmp_path, {"PATH": f"{bin_}:/usr/bin:/bin"})
    assert around.gpus == ("Quadro \ufffd 中/x",)
    assert "Quadro \ufffd 中/x by nvidia-smi" in gpu.devices(around, needed=True).found


def test_b44_the_doctor_prints_such_a_name_in_any_locale(tmp_path: Path, browser: Browser) -> None:  # noqa: ARG001
    bin_ = fake(tmp_path / "bin", "nvidia-smi", r"printf 'GPU 0: Quadro \370 (UUID: GPU-1)\n'")
    done = rig("doctor", "--adapter", "software", LC_ALL="C", PATH=f"{bin_}:{os.environ['PATH']}")
    assert "Traceback" not in done.stderr
    assert "Quadro \ufffd by nvidia-smi" in done.stdout


# --- quiet ---


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cpu_busy_fraction": 0.7}, "over 50% busy"),
        ({"load_1min": 9.0}, "load was above the cores"),
        ({"steal_fraction": 0.2}, "hypervisor"),
        ({"busy_processes": 2}, "other processes used the CPU"),
    ],
)
def test_what_else_runs_is_a_note_with_its_reason(change: dict[str, float], said: str) -> None:
    found = quiet.load(msgspec.structs.replace(QUIET, **change), 8)
    assert found.state is State.note
    assert said in found.found
    assert quiet.load(QUIET, 8).state is State.fine


def test_a_quota_and_a_governor_are_notes_that_say_what_they_do() -> None:
    host = msgspec.structs.replace(HOST, cpu_quota_cores=1.5, governor="powersave")
    state = msgspec.structs.replace(QUIET, cpu_periods=100, cpu_throttled_periods=25)
    quota, governor = quiet.speed(host, state)
    assert "a quota of 1.5 of 8 cores, which stopped this group in 25 of 100 periods" in quota.found
    assert "cpupower frequency-set -g performance" in governor.mend
    assert [f.state for f in (quota, governor)] == [State.note, State.note]
    assert {f.state for f in quiet.speed(HOST, QUIET)} == {State.fine}


# --- the page, as a browser told it ---


def seen(**changes: object) -> page.Probe:
    build = msgspec.structs.replace(BUILD, version="150.0.0.1", flags=(browser_flags.UNSAFE_WEBGPU,))
    return replace(page.Probe(build, CLOCK, True, GPU), **changes)  # type: ignore[arg-type]


def test_a_browser_in_which_all_is_well_has_no_wrong_link() -> None:
    assert wrong(list(page.findings(seen(), AdapterAsked.hardware))) == []


@pytest.mark.parametrize(
    ("version", "secure", "mend"),
    [
        ("112.0.0.1", True, "use Chromium 113 or newer"),
        (
            "150.0.0.1",
            True,
            "name another browser with --browser PATH, this one has WebGPU switched off; flags in force: --x",
        ),
        ("150.0.0.1", False, "make the page secure first"),
    ],
)
def test_b07_b08_a_missing_api_is_told_apart_from_a_missing_gpu(version: str, secure: bool, mend: str) -> None:
    build = msgspec.structs.replace(BUILD, version=version, flags=("--x",))
    clock = msgspec.structs.replace(CLOCK, secure=secure)
    found = list(page.findings(seen(build=build, clock=clock, has_api=False, adapter=None), AdapterAsked.any))
    assert (found[-1].link, found[-1].mend) == ("WebGPU API", mend)
    assert wrong(found) == (["WebGPU API"] if secure else ["secure context", "WebGPU API"])


def test_b01_a_missing_flag_is_the_cause_only_where_no_adapter_came() -> None:
    build = msgspec.structs.replace(BUILD, flags=("--other",))
    without = list(page.findings(seen(build=build, adapter=None, refusal="no adapter"), AdapterAsked.any))
    assert wrong(without) == ["flags", "adapter"]
    assert "--enable-unsafe-webgpu is missing; in force: --other" in without[1].found
    assert wrong(list(page.findings(seen(build=build), AdapterAsked.any))) == []


def test_b02_b03_software_where_hardware_was_asked_for_is_wrong_and_names_both() -> None:
    (found,) = (f for f in page.findings(seen(adapter=ADAPTER), AdapterAsked.hardware) if f.link == "adapter")
    assert found.state is State.wrong
    assert "asked for hardware, got the software adapter scripted paper" in found.found


def test_a_hidden_page_and_a_coarse_clock_are_links_of_their_own() -> None:
    hidden = msgspec.structs.replace(CLOCK, visibility="hidden", isolated=False, tick_us=100.0)
    assert wrong(list(page.findings(seen(clock=hidden), AdapterAsked.any))) == ["visibility", "timer"]


def test_b23_missing_timestamps_and_16_bit_floats_are_notes() -> None:
    without = msgspec.structs.replace(CLOCK, has_span=False)
    found = {f.link: f for f in page.findings(seen(clock=without), AdapterAsked.any)}
    assert found["GPU timestamps"].state is State.note
    assert "vulkan_enable_f16_on_nvidia" in found["16-bit floats"].mend


# --- the chain ---


CHAIN = (
    Finding("browser", State.fine, ""),
    Finding("Vulkan drivers", State.wrong, "none", "install one"),
    Finding("adapter", State.wrong, "software"),
)


def test_the_cause_is_the_first_broken_link_and_not_its_consequence() -> None:
    cause = Diagnosis(CHAIN).cause
    assert cause is not None
    assert cause.link == "Vulkan drivers"
    assert json.loads(Diagnosis(CHAIN).json())["cause"] == "Vulkan drivers"
    assert json.loads(Diagnosis(CHAIN[:1]).json()) == {
        "schema": 1,
        "ok": True,
        "findings": [{"link": "browser", "state": "fine", "found": "", "mend": ""}],
        "cause": None,
    }


@pytest.mark.parametrize(
    ("adapter", "asked", "links"),
    [
        (GPU, AdapterAsked.hardware, ["adapter"]),
        (ADAPTER, AdapterAsked.software, ["adapter"]),
        (ADAPTER, AdapterAsked.any, ["Vulkan drivers", "adapter"]),
        (None, AdapterAsked.software, ["Vulkan drivers", "adapter"]),
    ],
)
def test_the_way_to_a_gpu_may_be_broken_where_the_adapter_is_the_one_asked_for(
    adapter: Adapter | None, asked: AdapterAsked, links: list[str]
) -> None:
    assert wrong(list(chain.settled(CHAIN, adapter, asked))) == links


# --- in the real browser ---


def cause(diagnosis: Diagnosis) -> Finding:
    assert diagnosis.cause is not None
    return diagnosis.cause


def test_the_doctor_finds_this_machine_fine_link_by_link() -> None:
    done = rig("doctor")
    assert done.returncode == 0, done.stdout
    links = [line.split(":")[0].split(maxsplit=1)[1] for line in done.stdout.splitlines()]
    known = ("Python", "browser", "sandbox", "shared memory", "GPU", "Vulkan loader", "load", "CPU quota", "start")
    for link in (*known, "flags", "secure context", "visibility", "timer", "WebGPU API", "adapter", "16-bit floats"):
        assert link in links


def test_b07_b08_an_insecure_page_is_the_cause_and_the_gpu_is_not_blamed() -> None:
    def insecure(browser: Browser, flags: tuple[str, ...]) -> ChromiumExecutor:
        return ChromiumExecutor(browser, flags, host="0.0.0.0")

    found = cause(doctor.examine("", AdapterAsked.any, start=insecure))
    assert found.link == "secure context"
    assert found.mend == "serve it from localhost or by https; the GPU and its driver are not the cause"


def test_b21_a_page_without_isolation_is_the_cause_of_a_coarse_timer() -> None:
    def open_page(browser: Browser, flags: tuple[str, ...]) -> ChromiumExecutor:
        return ChromiumExecutor(browser, flags, isolated=False)

    assert cause(doctor.examine("", AdapterAsked.any, start=open_page)).link == "timer"


def test_a_browser_without_the_api_is_told_from_one_without_an_adapter() -> None:
    class Without(ChromiumExecutor):
        def browse(self, extra_flags: tuple[str, ...] = ()) -> ChromiumSession:
            session = super().browse(extra_flags)
            assert session._page is not None
            session._run(session._page.evaluate("void delete Navigator.prototype.gpu"), 10)
            session.has_api = session._call("surroundings", Surroundings).has_api
            return session

    found = cause(doctor.examine("", AdapterAsked.any, start=Without))
    assert found.link == "WebGPU API"
    assert "another browser" in found.mend


@pytest.mark.parametrize(
    ("script", "link", "mend"),
    [
        ('[ "$1" = --version ] && exec REAL --version; exit 3', "start", "--headless --no-sandbox --dump-dom"),
        (WITHOUT_UNSAFE, "flags", "start the browser with --enable-unsafe-webgpu"),
    ],
)
def test_b01_b57_the_cause_is_named_and_not_only_its_symptom(
    tmp_path: Path, browser: Browser, script: str, link: str, mend: str
) -> None:
    done = rig("doctor", "--json", "--browser", wrapper(tmp_path, browser, script))
    told = json.loads(done.stdout)
    assert told["cause"] == link
    assert not told["ok"]
    line = failed(done, 3)
    assert f"the cause is {link}: " in line
    assert mend in line


def test_b04_a_variable_that_leads_nowhere_is_the_cause_of_the_missing_adapter() -> None:
    done = rig("doctor", "--json", VK_ICD_FILENAMES="/no/such.json")
    assert "the cause is Vulkan variables: VK_ICD_FILENAMES names /no/such.json, which is not there" in failed(done, 3)
    told = json.loads(done.stdout)
    states = {finding["link"]: finding["state"] for finding in told["findings"]}
    assert (told["cause"], states["flags"]) == ("Vulkan variables", "fine")


def test_b03_b05_a_gpu_that_the_container_may_not_use_for_graphics_is_the_cause(tmp_path: Path) -> None:
    bin_ = fake(tmp_path / "bin", "nvidia-smi", "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'")
    environ = {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    line = failed(rig("doctor", **environ), 3)
    assert "the cause is GPU in the container: " in line
    assert "graphics is missing" in line


def test_b02_software_where_hardware_was_asked_for_exits_5_and_names_the_cause() -> None:
    done = rig("doctor", "--json", "--require-hardware")
    told = json.loads(done.stdout)
    if told["ok"]:
        pytest.skip("this machine has a GPU")
    assert told["cause"] in chain.TOWARDS_GPU
    assert "no hardware adapter; the cause is " in failed(done, 5)


def test_b56_no_browser_is_the_cause_and_the_machine_is_looked_at_all_the_same() -> None:
    done = rig("doctor", "--browser", "/no/such/browser")
    assert "the cause is browser: no browser at /no/such/browser" in failed(done, 3)
    assert "CPU quota" in done.stdout
    assert "adapter:" not in done.stdout


def test_b54_an_adapter_without_a_name_costs_a_field_and_not_the_diagnosis() -> None:
    bare = msgspec.structs.replace(GPU, vendor="unknown", architecture="", device="", description="")
    found = list(page.findings(seen(adapter=bare), AdapterAsked.hardware))
    assert wrong(found) == []
    assert "got the hardware adapter unknown" in next(f.found for f in found if f.link == "adapter")
