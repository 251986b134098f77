"""Which GPUs a run has: all, those it was told, and never one that was not given to it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

import fake_nvml
import pytest
from builders import one_sentence
from fake_nvml import GPUS, MIGS, USABLE, set_state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.gpus import Gpus
from pytest_mlrbench.sandbox.nvml import Sample, nvml

pytest_plugins = ["gpu_bench"]
WITH_GPUS = pytest.mark.usefixtures("four_gpus")
#: One fixture for all examples, which only read.
MANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def uuids(said: str | None = None, **environ: str) -> tuple[str, ...]:
    return Gpus.find(said, environ).uuids


def visible(value: str) -> tuple[str, ...]:
    return uuids(CUDA_VISIBLE_DEVICES=value)


# All there are


@WITH_GPUS
def test_all_gpus_are_used_if_nothing_is_said() -> None:
    """The fourth is split, so it is its parts that can be used."""
    found = Gpus.find(None, {})
    assert found.uuids == USABLE
    assert found.described == (
        "5 GPUs: 3 x NVIDIA H100 80GB HBM3, 2 x NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    )
    assert uuids("all") == USABLE


@WITH_GPUS
def test_the_places_of_gpus_and_their_parts_are_known() -> None:
    with nvml() as session:
        places = [(device.index, device.part) for device in session.devices]
    assert places == [(0, None), (1, None), (2, None), (3, 0), (3, 2)]


@WITH_GPUS
def test_a_gpu_that_does_not_answer_is_left_out_and_named() -> None:
    set_state(lost=[1])
    found = Gpus.find(None, {})
    assert found.uuids == (GPUS[0], GPUS[2], *MIGS.values())
    assert "not usable: GPU 1: GPU is lost" in found.described
    with one_sentence("--mlr-gpus=5", "only 4", "GPU 1: GPU is lost"):
        uuids("5")


@WITH_GPUS
@pytest.mark.parametrize("code", [fake_nvml.NO_DRIVER, fake_nvml.NO_LIBRARY])
def test_a_machine_without_gpus_is_no_error_until_one_is_asked_for(code: int) -> None:
    set_state(fault=code)
    assert Gpus.find(None, {}) == Gpus((), "no GPU (there is no NVIDIA driver)")
    for said in ("2", "all", "0,1", "GPU-0000"):
        with one_sentence(f"--mlr-gpus={said}", "no NVIDIA driver", "--mlr-gpus=0"):
            uuids(said)


def test_without_the_package_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Gpus.find(None, {}) == Gpus((), "no GPU (nvidia-ml-py is not installed)")
    with one_sentence("--mlr-gpus=2", "nvidia-ml-py is not installed", "pip install nvidia-ml-py"):
        uuids("2")


@WITH_GPUS
def test_a_broken_driver_is_not_taken_for_a_machine_without_gpus() -> None:
    set_state(fault=fake_nvml.MISMATCH)
    with one_sentence("version mismatch", "repair it", "--mlr-gpus=0"):
        uuids()
    assert uuids("0") == ()


@WITH_GPUS
def test_a_driver_without_gpus() -> None:
    set_state(gpus=0)
    assert Gpus.find(None, {}) == Gpus((), "no GPU on this machine")
    with one_sentence("--mlr-gpus=all", "no GPU that can be used"):
        uuids("all")
    with one_sentence("--mlr-gpus=1", "only 0 of this machine's 0 GPUs"):
        uuids("1")


# Those the user names


@WITH_GPUS
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("0", ()),
        ("1", GPUS[:1]),
        ("4", USABLE[:4]),
        ("1,", GPUS[1:2]),
        ("2,0", (GPUS[2], GPUS[0])),
        (" 0 , 2 ", (GPUS[0], GPUS[2])),
        ("0,0", GPUS[:1]),
        ("3,", tuple(MIGS.values())),
        ("3:2,0", (MIGS[2], GPUS[0])),
        ("GPU-1111", GPUS[1:2]),
        (GPUS[2].upper().replace("GPU", "gpu"), GPUS[2:3]),
        (f"MIG-2222,{GPUS[0]}", (MIGS[2], GPUS[0])),
    ],
)
def test_what_is_named_is_used_in_its_order(said: str, expected: tuple[str, ...]) -> None:
    assert uuids(said) == expected


@WITH_GPUS
def test_how_many_of_how_many_is_said() -> None:
    assert Gpus.find("0", {}).described == "no GPU (--mlr-gpus=0)"
    assert Gpus.find("2", {}).described == "2 of 5 GPUs: 2 x NVIDIA H100 80GB HBM3"


@WITH_GPUS
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("6", ["only 5 of this machine's 5 GPUs"]),
        ("4,", ["there is no GPU '4' here", GPUS[0], f"3:2 {MIGS[2]}"]),
        ("0,7", ["there is no GPU '7' here"]),
        ("3:1", ["there is no GPU '3:1' here"]),
        ("GPU-dead", ["there is no GPU 'GPU-dead' here"]),
        ("GPU-", ["write how many"]),
        ("two", ["write how many"]),
        ("-1", ["write how many"]),
        ("1.5", ["write how many"]),
        (",", ["write how many"]),
        ("0;1", ["write how many"]),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(said: str, words: list[str]) -> None:
    with one_sentence("--mlr-gpus", *words):
        uuids(said)


@WITH_GPUS
def test_a_gpu_that_is_split_cannot_be_had_as_a_whole() -> None:
    with one_sentence("there is no GPU", GPUS[3]):
        uuids(GPUS[3])


@pytest.mark.parametrize("missing", ["package", "driver"])
@WITH_GPUS
def test_whole_uuids_are_believed_where_nobody_can_look(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for an engine on another machine."""
    set_state(fault=fake_nvml.NO_LIBRARY)
    if missing == "package":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    found = Gpus.find(f"{GPUS[0]},{MIGS[0]},{GPUS[0]}", {})
    assert found.uuids == (GPUS[0], MIGS[0])
    assert found.described.startswith("2 GPUs as named (")
    old = "MIG-GPU-12345678-1234-1234-1234-123456789012/7/0"
    assert uuids(old) == (old,)
    assert uuids(GPUS[1], CUDA_VISIBLE_DEVICES=f"{GPUS[0]},GPU-1111") == (GPUS[1],)
    for outer in (GPUS[0], "0,1", "", "-1"):
        with one_sentence(GPUS[1], f"CUDA_VISIBLE_DEVICES={outer}"):
            uuids(GPUS[1], CUDA_VISIBLE_DEVICES=outer)


# Those an outer CUDA_VISIBLE_DEVICES leaves


@WITH_GPUS
@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("none", ()),
        ("1", GPUS[1:2]),
        ("2, 0", (GPUS[2], GPUS[0])),
        ("1,-1,0", GPUS[1:2]),
        ("GPU-2222", GPUS[2:3]),
        ("MIG-0000,MIG-2222", tuple(MIGS.values())),
        ("3", tuple(MIGS.values())),
        (f"{GPUS[0]},1", GPUS[:2]),
    ],
)
def test_it_is_read_as_cuda_reads_it(outer: str, expected: tuple[str, ...]) -> None:
    found = Gpus.find(None, {"CUDA_VISIBLE_DEVICES": outer})
    assert found.uuids == expected
    assert found.described.endswith(f"(CUDA_VISIBLE_DEVICES={outer})")


@WITH_GPUS
@pytest.mark.parametrize("outer", ["4", "GPU-dead", "0,MIG-9", "gpu0", "0,bogus"])
def test_what_it_names_must_be_there(outer: str) -> None:
    """CUDA would go on without a word, and the run with fewer GPUs or none."""
    with one_sentence(f"CUDA_VISIBLE_DEVICES={outer}", "there is no GPU"):
        visible(outer)


@WITH_GPUS
def test_the_beginning_of_several_uuids_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    twins = ("GPU-abcd0000-0000-4000-8000-000000000000", "GPU-abcd1111-0000-4000-8000-000000000000")
    monkeypatch.setattr(sys.modules["pynvml"], "GPUS", (*twins, GPUS[2], GPUS[3]))
    assert visible("GPU-abcd1") == twins[1:]
    for said, environ in (("GPU-abcd", {}), (None, {"CUDA_VISIBLE_DEVICES": "GPU-abcd"})):
        with one_sentence("GPU-abcd is the beginning of 2 UUIDs"):
            Gpus.find(said, environ)


@WITH_GPUS
def test_the_user_chooses_among_what_is_visible() -> None:
    outer = {"CUDA_VISIBLE_DEVICES": "2,1"}
    assert Gpus.find("1", outer).uuids == GPUS[2:3]
    assert Gpus.find("1,", outer).uuids == GPUS[1:2]  # indices are always those of nvidia-smi
    with one_sentence("--mlr-gpus=3", "only 2", "CUDA_VISIBLE_DEVICES=2,1"):
        Gpus.find("3", outer)
    with one_sentence("--mlr-gpus=0,1", f"GPU 0 ({GPUS[0]})", "CUDA_VISIBLE_DEVICES=2,1"):
        Gpus.find("0,1", outer)
    with one_sentence("--mlr-gpus=all", "CUDA_VISIBLE_DEVICES=-1"):
        Gpus.find("all", {"CUDA_VISIBLE_DEVICES": "-1"})


@WITH_GPUS
def test_indices_of_unlike_gpus_count_in_an_order_only_cuda_knows() -> None:
    """CUDA puts the fastest first: index 0 may be the GPU of somebody else."""
    set_state(names=["small", "large", "small", "large"])
    with one_sentence("CUDA_VISIBLE_DEVICES=0", "CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        visible("0")
    assert visible("GPU-0000") == GPUS[:1]
    assert uuids(CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID") == GPUS[:1]
    assert uuids("0,") == GPUS[:1]


WORDS = st.one_of(
    st.integers(-2, 5).map(str),
    st.sampled_from(USABLE).flatmap(lambda u: st.integers(4, len(u)).map(lambda n: u[:n])),
    st.sampled_from(["", " ", "3:0", "3:2", "3:1", "NoDevFiles", "all", "GPU-", "MIG"]),
    st.text(max_size=4),
)
LISTS = st.lists(WORDS, max_size=5).map(",".join)


@WITH_GPUS
@MANY
@given(said=st.none() | LISTS, outer=st.none() | LISTS)
def test_whatever_is_said_nothing_hidden_is_used(said: str | None, outer: str | None) -> None:
    """Either a sentence, or a choice without doubles among what is visible."""
    environ: Mapping[str, str] = {} if outer is None else {"CUDA_VISIBLE_DEVICES": outer}
    try:
        found = Gpus.find(said, environ)
    except InputError:
        return
    assert len(set(found.uuids)) == len(found.uuids)
    if said != "0":
        assert set(found.uuids) <= set(Gpus.find(None, environ).uuids) <= set(USABLE)
    if said is not None and said.strip().isdecimal():
        assert len(found.uuids) == int(said)


@WITH_GPUS
@MANY
@given(chosen=st.lists(st.sampled_from(USABLE), unique=True, min_size=1), data=st.data())
def test_every_spelling_of_a_gpu_means_it(chosen: list[str], data: st.DataObject) -> None:
    def spelling(uuid: str) -> str:
        whole = {u: str(n) for n, u in enumerate(GPUS[:3])} | {u: f"3:{n}" for n, u in MIGS.items()}
        return data.draw(st.sampled_from([uuid, uuid[:8], uuid.upper(), whole[uuid]]))

    said = ",".join(map(spelling, chosen)) + ","
    assert uuids(said) == tuple(chosen)
    indices = [word for word in said.split(",") if ":" not in word]
    wanted = [u for u, word in zip(chosen, said.split(","), strict=False) if ":" not in word]
    assert visible(",".join(indices)) == tuple(wanted)


# What is asked of the library


@WITH_GPUS
def test_a_part_of_a_gpu_says_what_it_uses_but_not_how_busy_it_is() -> None:
    set_state(utilization={GPUS[1]: 71}, memory={GPUS[1]: 12_300_000_000, MIGS[0]: 5})
    with nvml() as session:
        assert session.sample(GPUS[1]) == Sample(0.71, 12_300_000_000)
        assert session.sample(MIGS[0]) == Sample(None, 5)
        assert session.sample("GPU-unknown") == Sample(None, None)


def test_the_stand_in_takes_what_the_real_library_takes() -> None:
    """Else these tests would hold for it only."""
    real = pytest.importorskip("pynvml")
    for name, function in inspect.getmembers(fake_nvml, inspect.isfunction):
        if name.startswith("nvml"):
            signature = inspect.signature(getattr(real, name))
            assert list(inspect.signature(function).parameters) == list(signature.parameters)
    assert issubclass(real.NVMLError, Exception)
    for code in (fake_nvml.NO_DRIVER, fake_nvml.NO_LIBRARY):
        assert real.NVMLError(code).value == code
    assert str(real.NVMLError(fake_nvml.NO_LIBRARY)) == str(
        fake_nvml.NVMLError(fake_nvml.NO_LIBRARY)
    )
