"""Programs and their references."""

from __future__ import annotations

import numpy as np
import pytest

from rig import assets
from rig.programs import fill, limits, micro, reference
from rig.programs.micro import increment_chain
from rig.records import Buffer, Dtype, HashFill, Parameters


def test_every_kernel_has_a_reference() -> None:
    names = set(assets.kernels())
    steps = {name for name in names if "rig.programs.decode.reference" in assets.source(name)}
    assert set(reference.KERNELS) <= names
    # what stands for a dispatch without its work has none, and weights are not computed but given
    rest = names - steps - set(reference.KERNELS)
    assert {name for name in rest if not name.startswith("decode/pad_")} == {"decode/weights", "decode/weights_f16"}


def test_every_kernel_states_its_contract() -> None:
    for name in assets.kernels():
        header, _, _ = assets.source(name).partition("\n\n")
        assert all(line.startswith("//") for line in header.splitlines())
        for word in ("bindings", "workgroup size", "reference"):
            assert word in header, f"{name} does not state its {word}"


def test_the_chain_counts_its_dispatches() -> None:
    program = increment_chain()
    first = fill.contents(program.buffers[0])
    assert np.array_equal(reference.run(program, 2000)["data"], first + 2000)


def test_the_hash_is_that_of_its_source() -> None:
    # Reference values of lowbias32, computed with arbitrary-precision integers.
    def slow(x: int) -> int:
        x = ((x ^ (x >> 16)) * 0x7FEB352D) % 2**32
        x = ((x ^ (x >> 15)) * 0x846CA68B) % 2**32
        return x ^ (x >> 16)

    values = np.array([0, 1, 2, 12345, 2**32 - 1], dtype=np.uint32)
    assert fill.hash32(values).tolist() == [slow(int(x)) for x in values]


@pytest.mark.parametrize("wrong", [np.nan, 0.0, 1e-3])
def test_b38_one_wrong_element_is_found_and_named(wrong: float) -> None:
    program = increment_chain()
    want = reference.run(program, 5)
    got = {"data": want["data"].copy()}
    got["data"][17] += np.float32(wrong) if wrong else np.float32(1)
    assert "data[17]" in reference.compare(program, want, got)
    assert reference.compare(program, want, want) == ""


def test_a_missing_output_is_no_match() -> None:
    program = increment_chain()
    assert "missing" in reference.compare(program, reference.run(program, 1), {})


def test_b16_a_program_beyond_a_limit_names_it_with_both_numbers() -> None:
    program = increment_chain(elements=64 * 65536)
    assert limits.shortfall(program, {"maxComputeWorkgroupsPerDimension": 65535}, ()) == (
        "needs maxComputeWorkgroupsPerDimension 65536, the device has 65535"
    )
    assert limits.shortfall(program, {"maxComputeWorkgroupsPerDimension": 65536}, ()) == ""


def test_b18_a_kernel_names_the_feature_that_is_missing() -> None:
    program = increment_chain(dtype=Dtype.f16)
    assert limits.shortfall(program, {}, ()) == "needs shader-f16, which this adapter does not have"
    assert limits.shortfall(program, {}, ("shader-f16",)) == ""


@pytest.mark.parametrize("dtype", list(Dtype))
def test_the_chain_counts_in_every_type_modulo_what_the_type_holds(dtype: Dtype) -> None:
    program = increment_chain(dtype=dtype)
    first = fill.contents(program.buffers[0]).astype(np.int64)
    modulus = {Dtype.f16: 1024, Dtype.u8x4: 256}.get(dtype, 2**24)
    got = reference.run(program, 2000, 17)["data"].astype(np.int64)
    assert np.array_equal(got, (first + 2017) % modulus)


def test_a_dispatch_that_carries_a_value_adds_its_own() -> None:
    program = micro.carrying(64, Parameters.uniform)
    first = fill.contents(program.buffers[0])
    # 1 + ... + 8, then each run begins the list again
    assert np.array_equal(reference.run(program, 8, 2, 1)["data"], first + 36 + 3 + 1)


def test_dispatches_without_workgroups_and_empty_kernels_change_nothing() -> None:
    for program in (micro.zero_sized(), micro.empty_kernels()):
        assert np.array_equal(reference.run(program, 5)["data"], fill.contents(program.buffers[0]))


def test_independent_dispatches_take_their_buffers_in_turn() -> None:
    program = micro.independent()
    outputs = reference.run(program, micro.BUFFERS + 1)
    added = [float((outputs[b.name] - fill.contents(b))[0]) for b in program.buffers]
    assert added == [2.0] + [1.0] * (micro.BUFFERS - 1)


def test_contents_are_whole_numbers_below_their_bound() -> None:
    buffer = Buffer(name="b", dtype=Dtype.f32, elements=1000, fill=HashFill(seed=3, below=7))
    values = fill.contents(buffer)
    assert values.dtype == np.float32
    assert set(values.tolist()) == set(range(7))
