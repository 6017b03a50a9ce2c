"""Names of builds, and the cache that they get into: by fake providers, and a list of Chrome for Testing of our own."""

from __future__ import annotations

import http.server
import io
import json
import os
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import brotli
import pytest
from typer.testing import CliRunner

from rig.browsers import cache, names, providers
from rig.browsers.find import BrowserMissing
from rig.browsers.flags import SOFTWARE, UNSAFE_WEBGPU, AdapterAsked, flags
from rig.browsers.names import UnknownBuild, Wanted
from rig.cli import app

KNOWN = ("npm", "debian", "cft")
VERSIONS = ("113.0.0", "113.0.1", "115.0.0", "117.0.0", "119.0.2", "131.0.1")


def expand(*texts: str) -> list[str]:
    return [str(one) for one in names.expand(texts, KNOWN, lambda _: VERSIONS)]


def test_a_range_has_the_newest_of_every_major_version_in_it() -> None:
    assert expand("npm:113..117") == ["npm:113.0.1", "npm:115.0.0", "npm:117.0.0"]
    assert expand("npm:117..") == ["npm:117.0.0", "npm:119.0.2", "npm:131.0.1"]


def test_every_kth_of_a_range_keeps_its_ends() -> None:
    assert expand("npm:113..131/2") == ["npm:113.0.1", "npm:117.0.0", "npm:131.0.1"]
    assert expand("npm:113..131/3") == ["npm:113.0.1", "npm:119.0.2", "npm:131.0.1"]


def test_a_build_named_twice_is_there_once() -> None:
    assert expand("npm:131", "debian:156.0.8078.114", "npm:131") == ["npm:131", "debian:156.0.8078.114"]


@pytest.mark.parametrize("text", ["npm", "npm:", "npm:latest", "nosuch:131", "path:", "npm:200..300", "npm:113..115/0"])
def test_a_name_that_names_no_build_is_said_to_in_one_line(text: str) -> None:
    with pytest.raises(UnknownBuild) as caught:
        expand(text)
    assert "\n" not in str(caught.value)
    assert text in str(caught.value)


def test_a_name_says_whose_driver_a_build_runs_with_and_is_a_folder() -> None:
    wanted = names.parse("npm:131@npm:133", KNOWN)
    assert wanted == Wanted("npm", "131", Wanted("npm", "133"))
    assert str(wanted) == "npm:131@npm:133"
    assert wanted.folder == "npm-131@npm-133"
    assert names.parse("path:/a@b/chrome", KNOWN) == Wanted("path", "/a@b/chrome")


def test_a_version_is_that_of_which_it_is_the_beginning_part_by_part() -> None:
    assert names.newest("113", VERSIONS) == "113.0.1"
    assert names.newest("11", VERSIONS) == ""


def test_the_table_of_flags_gives_old_builds_what_asks_for_their_software_adapter() -> None:
    assert flags(AdapterAsked.any, version="131.0.1")[-len(SOFTWARE) :] == SOFTWARE
    assert flags(AdapterAsked.any, version="143.0.1")[-1] == UNSAFE_WEBGPU
    assert flags(AdapterAsked.any) == flags(AdapterAsked.any, version="156.0.8078.114")


# --- the cache ---------------------------------------------------------------------------------------------------


class FakeProvider:
    """Builds that are shell scripts which report a version; `breaks`: so many fetches fail half way."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.breaks = 0
        self.reports = ""

    def versions(self) -> list[str]:
        return ["131.0.0.1", "133.0.0.2"]

    def fetch(self, version: str, folder: Path) -> Path:
        self.fetched.append(version)
        executable = folder / "chromium-headless-shell"
        executable.write_text(f"#!/bin/sh\necho Chromium {self.reports or version}\n")
        if self.breaks:
            self.breaks -= 1
            raise BrowserMissing("broke off")
        executable.chmod(0o755)
        (folder / cache.DRIVER).write_text(f"driver of {version}")
        return executable

    def fits(self, version: str, reported: str) -> bool:
        return version == reported


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    fake = FakeProvider()
    monkeypatch.setenv("RIG_BROWSERS", str(tmp_path / "browsers"))
    monkeypatch.setitem(providers.PROVIDERS, "npm", fake)
    monkeypatch.setitem(providers.PROVIDERS, "debian", fake)
    return fake


def test_a_build_is_installed_once_and_found_by_the_beginning_of_its_version(provider: FakeProvider) -> None:
    first = cache.install(Wanted("npm", "131"))
    assert (first.name, first.reports) == ("npm:131.0.0.1", "131.0.0.1")
    assert cache.install(Wanted("npm", "131.0.0.1")) == first == cache.install(Wanted("npm", "131"))
    assert provider.fetched == ["131.0.0.1"]
    assert [one.name for one in cache.installed()] == ["npm:131.0.0.1"]


def test_an_installation_that_breaks_off_leaves_nothing_in_the_list_and_the_next_one_goes_on(
    provider: FakeProvider,
) -> None:
    provider.breaks = 1
    with pytest.raises(BrowserMissing, match="broke off"):
        cache.install(Wanted("npm", "131"))
    assert cache.installed() == []
    assert cache.build(Wanted("npm", "131")).version == "131.0.0.1"


def test_of_many_who_install_one_build_at_once_one_fetches_it(provider: FakeProvider) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(cache.install, [Wanted("npm", "131")] * 6))
    assert len(set(made)) == 1
    assert provider.fetched == ["131.0.0.1"]


def test_a_build_that_reports_another_version_is_not_installed(provider: FakeProvider) -> None:
    provider.reports = "129.0.0.0"
    with pytest.raises(BrowserMissing, match=r"npm:131.0.0.1 reports version 129.0.0.0"):
        cache.install(Wanted("npm", "131"))
    assert cache.installed() == []


@pytest.mark.usefixtures("provider")
def test_a_version_that_nobody_has_is_told_with_those_there_are() -> None:
    with pytest.raises(BrowserMissing, match=r"npm has no version 140 .*131\.0\.0\.1, 133\.0\.0\.2"):
        cache.install(Wanted("npm", "140"))


@pytest.mark.usefixtures("provider")
def test_a_swapped_build_is_the_same_executable_with_the_other_driver() -> None:
    swapped = cache.install(Wanted("npm", "131", Wanted("npm", "133")))
    own, other = (cache.install(Wanted("npm", version)) for version in ("131", "133"))
    assert swapped.sha256 == own.sha256
    assert swapped.driver_sha256 == other.driver_sha256 != own.driver_sha256
    assert (cache.root() / own.wanted.folder / cache.DRIVER).read_text() == "driver of 131.0.0.1"


@pytest.mark.usefixtures("provider")
def test_the_verbs_install_show_list_and_remove() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["browsers", "show", "npm:131"]).exit_code == 3
    assert runner.invoke(app, ["browsers", "install", "npm:131..133"]).exit_code == 0
    assert json.loads(runner.invoke(app, ["browsers", "show", "npm:131"]).output)["reports"] == "131.0.0.1"
    assert "npm:133.0.0.2" in runner.invoke(app, ["browsers", "list"]).output
    assert runner.invoke(app, ["browsers", "remove", "npm:131"]).exit_code == 0
    assert [one.name for one in cache.installed()] == ["npm:133.0.0.2"]
    assert runner.invoke(app, ["browsers", "remove", "npm:131"]).exit_code == 3
    assert runner.invoke(app, ["browsers", "install", "npm:140"]).exit_code == 3
    assert runner.invoke(app, ["browsers", "install", "npm:x"]).exit_code == 2


@pytest.mark.usefixtures("provider")
def test_only_the_build_that_is_named_is_removed_swapped_or_not() -> None:
    swapped = cache.install(Wanted("npm", "131", Wanted("npm", "133")))
    assert cache.known(Wanted("npm", "131", Wanted("npm", "133"))) == swapped
    assert cache.remove(Wanted("npm", "131", Wanted("npm", "133"))) == [swapped.name]
    assert [one.name for one in cache.installed()] == ["npm:131.0.0.1", "npm:133.0.0.2"]
    assert cache.remove(Wanted("npm", "131")) == ["npm:131.0.0.1"]


def test_what_a_killed_installation_or_removal_left_is_no_build_and_in_nobodys_way(provider: FakeProvider) -> None:
    whole = cache.root() / cache.install(Wanted("npm", "131")).wanted.folder
    for left in (f".{whole.name}.partial", f".{whole.name}.removed"):
        shutil.copytree(whole, cache.root() / left)
    assert [one.name for one in cache.installed()] == ["npm:131.0.0.1"]
    assert cache.remove(Wanted("npm", "131")) == ["npm:131.0.0.1"]
    assert cache.installed() == []
    assert cache.build(Wanted("npm", "131")).path.is_file()
    (whole / cache.TOLD).write_text("{")
    assert cache.build(Wanted("npm", "131")).path.is_file()
    assert len(provider.fetched) == 3


def test_a_path_that_reads_like_another_has_a_folder_of_its_own() -> None:
    folders = {Wanted("path", path).folder for path in ("/opt/a b", "/opt/a/b", "/x/\u00fc1", "/x/\u00e41", "/a" * 200)}
    assert len(folders) == 5
    assert all(len(folder) < 100 for folder in folders)


def test_npms_own_numbers_fit_by_their_first_and_others_must_be_the_same() -> None:
    assert providers.Npm().fits("143.0.4", "143.0.7499.0")
    assert not providers.Npm().fits("143.0.4", "144.0.7499.0")
    assert not providers.ChromeForTesting().fits("140.0.5.5", "140.0.1.1")
    assert providers.Debian("chromium").fits("156.0.8078.114", "156.0.8078.114")


# --- npm ---------------------------------------------------------------------------------------------------------


def test_a_build_from_npm_is_its_shell_with_the_software_driver_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / cache.DRIVER
    driver.write_text("a driver")
    libraries, package = io.BytesIO(), tmp_path / "package.tgz"
    with tarfile.open(fileobj=libraries, mode="w") as archive:
        archive.add(driver, driver.name)
    shell = b"#!/bin/sh\necho HeadlessChrome 131.0.6778.0\n"
    with tarfile.open(package, "w:gz") as archive:
        for name, content in (("chromium.br", shell), ("swiftshader.tar.br", libraries.getvalue())):
            packed = brotli.compress(content)
            entry = tarfile.TarInfo(f"package/bin/{name}")
            entry.size = len(packed)
            archive.addfile(entry, io.BytesIO(packed))
    npm = tmp_path / "npm"
    npm.write_text(
        f"""#!/bin/sh
case $1 in
  view) echo '["1.0.0", "131.0.1", "131.0.2-beta", "133.0.0"]' ;;
  pack) cp {package} sparticuz-chromium-131.0.1.tgz ;;
esac
"""
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("RIG_BROWSERS", str(tmp_path / "browsers"))
    assert providers.Npm().versions() == ["131.0.1", "133.0.0"]
    made = cache.install(Wanted("npm", "131"))
    place = cache.root() / made.wanted.folder
    assert (made.name, made.reports) == ("npm:131.0.1", "131.0.6778.0")
    assert (place / cache.DRIVER).read_text() == "a driver"
    assert {path.name for path in place.iterdir()} == {cache.DRIVER, cache.TOLD, "chromium-headless-shell"}


# --- Playwright's own --------------------------------------------------------------------------------------------


class PlaywrightServer(http.server.BaseHTTPRequestHandler):
    """Gives one archive for whatever Playwright's client asks for."""

    archive = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.archive)))
        self.end_headers()
        self.wfile.write(self.archive)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_playwrights_build_is_fetched_by_its_own_client_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for place in (
            *("chrome-headless-shell-linux64/chrome-headless-shell", "chrome-linux/headless_shell"),
            "ffmpeg-linux",
        ):
            entry = zipfile.ZipInfo(place)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, "#!/bin/sh\necho HeadlessChrome 150.0.7000.1\n")
    monkeypatch.setattr(PlaywrightServer, "archive", packed.getvalue())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PlaywrightServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    monkeypatch.setenv("PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS", "1")
    monkeypatch.setenv("RIG_BROWSERS", str(tmp_path / "browsers"))
    try:
        assert cache.build(Wanted("playwright")).version == "150.0.7000.1"
    finally:
        server.shutdown()
    assert cache.build(Wanted("playwright")).version == "150.0.7000.1"  # nobody answers any more


# --- Chrome for Testing ------------------------------------------------------------------------------------------


class CftServer(http.server.BaseHTTPRequestHandler):
    """A list with one version, and its archive, which breaks off at first."""

    archive = b""
    listed = b""
    breaks = 0
    ranges: tuple[str, ...] = ()

    def do_GET(self) -> None:
        kind = type(self)
        if self.path == "/list.json":
            url = f"http://127.0.0.1:{self.server.server_port}/shell.zip"  # type: ignore[attr-defined]
            entry = {
                "version": "131.0.6778.85",
                "downloads": {"chrome-headless-shell": [{"platform": "linux64", "url": url}]},
            }
            body, status = kind.listed or json.dumps({"versions": [entry]}).encode(), 200
        else:
            wanted = self.headers.get("Range", "")
            kind.ranges = (*kind.ranges, wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
            body, status = kind.archive[start:], 206 if start else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path != "/list.json" and kind.breaks:
            kind.breaks -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def cft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[CftServer]]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        entry = zipfile.ZipInfo("chrome-headless-shell-linux64/chrome-headless-shell")
        entry.external_attr = 0o755 << 16
        archive.writestr(entry, "#!/bin/sh\necho HeadlessChrome 131.0.6778.85\n" + "#" * 4000)
    CftServer.archive, CftServer.listed, CftServer.breaks, CftServer.ranges = packed.getvalue(), b"", 0, ()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), CftServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("RIG_CFT_LIST", f"http://127.0.0.1:{server.server_port}/list.json")
    monkeypatch.setenv("RIG_BROWSERS", str(tmp_path / "browsers"))
    yield CftServer
    server.shutdown()


@pytest.mark.usefixtures("cft")
def test_chrome_for_testing_is_fetched_by_its_list() -> None:
    browser = cache.build(Wanted("cft", "131"))
    assert browser.version == "131.0.6778.85"
    assert os.access(browser.path, os.X_OK)


def test_a_download_that_broke_off_is_gone_on_with(cft: type[CftServer]) -> None:
    cft.breaks = 1
    with pytest.raises(BrowserMissing, match=r"broke off|what has come is kept"):
        cache.install(Wanted("cft", "131"))
    assert cache.install(Wanted("cft", "131")).reports == "131.0.6778.85"
    assert cft.ranges[0] == ""
    assert cft.ranges[1].startswith("bytes=")
    assert cft.ranges[1] != "bytes=0-"


@pytest.mark.parametrize(
    "listed", [b"[]", b"nonsense", b'{"versions": null}', b'{"versions": [{"version": 150, "downloads": {}}]}']
)
def test_a_list_that_is_none_is_told_in_one_line(cft: type[CftServer], listed: bytes) -> None:
    cft.listed = listed
    with pytest.raises(BrowserMissing, match=r"^the list of Chrome for Testing, [^\n]+$"):
        cache.install(Wanted("cft", "131"))


def test_an_archive_reaches_nothing_outside_its_folder(cft: type[CftServer], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("as it was")
    outside.chmod(0o600)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in (str(outside), "../../outside", "chrome-headless-shell-linux64/chrome-headless-shell"):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, "#!/bin/sh\necho HeadlessChrome 131.0.6778.85\n")
    cft.archive = packed.getvalue()
    assert cache.build(Wanted("cft", "131")).version == "131.0.6778.85"
    assert (outside.read_text(), outside.stat().st_mode & 0o777) == ("as it was", 0o600)


def test_a_damaged_archive_is_not_unpacked(cft: type[CftServer]) -> None:
    cft.archive = cft.archive[:60] + b"x" + cft.archive[61:]
    with pytest.raises(BrowserMissing, match=r"shell\.zip"):
        cache.install(Wanted("cft", "131"))
    assert cache.installed() == []
