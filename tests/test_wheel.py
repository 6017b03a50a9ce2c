"""The wheel: works outside the tree, pages, kernels and published figures included."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PROBE = """
import sys
sys.path.insert(0, {wheel!r})
from rig import assets, page, config
from rig.programs.micro import increment_chain
from rig.records import encode
assert assets.folder("pages").is_dir() and {wheel!r} in str(assets.folder("pages"))
assert "executor.js" in page.harness() and increment_chain() and config.load("quick")
from rig.report import page as report
from rig.published import rows
assert {wheel!r} in str(rows.FILE) and rows.read()
print("whole")
"""


def test_a_wheel_carries_pages_kernels_profiles_and_templates_and_works_outside_the_tree(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("webgpu_dispatch_rig-*.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    tried = subprocess.run(
        [sys.executable, "-c", PROBE.format(wheel=str(unpacked))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert tried.stdout.strip() == "whole", tried.stderr
