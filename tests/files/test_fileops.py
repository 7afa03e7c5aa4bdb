"""Folders held open: known by what they are, and reached without following links."""

import os
from pathlib import Path

import pytest

from stepglass.files import FileOps, Folder, remove_tree, replace_file, replacing


@pytest.fixture
def here():
    with Folder.open(Path()) as folder:
        yield folder


@pytest.fixture(autouse=True)
def precious():
    Path("precious").mkdir()
    Path("precious/thesis.txt").write_text("years of work")
    yield
    assert Path("precious/thesis.txt").read_text() == "years of work"


def test_a_link_is_not_opened_as_a_folder(here):
    Path("link").symlink_to("precious")
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        here.sub("link")


def test_a_link_is_not_deleted_as_a_folder(here):
    Path("link").symlink_to("precious")
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        remove_tree(FileOps(), here, "link")


def test_a_folder_that_becomes_a_link_after_it_was_looked_at_is_not_entered(here, monkeypatch):
    """A check before use is not enough: somebody may be quicker."""
    Path("old/sub").mkdir(parents=True)
    real = Folder.is_folder

    def look_and_swap(self, name):
        found = real(self, name)
        if name == "sub":
            Path("old/sub").rmdir()
            Path("old/sub").symlink_to(Path("precious").resolve())
        return found

    monkeypatch.setattr(Folder, "is_folder", look_and_swap)
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        remove_tree(FileOps(), here, "old")


def test_links_inside_a_folder_are_removed_and_not_followed(here):
    Path("old/deep").mkdir(parents=True)
    Path("old/deep/link").symlink_to(Path("precious").resolve())
    Path("old/file").symlink_to(Path("precious/thesis.txt").resolve())
    remove_tree(FileOps(), here, "old")
    assert not Path("old").exists()


def test_a_new_file_is_not_written_through_a_link(here):
    Path("state.json").symlink_to("precious/thesis.txt")
    with pytest.raises(FileExistsError):
        FileOps().create(here, "state.json")
    replace_file(FileOps(), here, "state.json", b"new")  # the link itself is replaced
    assert not Path("state.json").is_symlink()
    assert Path("state.json").read_bytes() == b"new"


def test_a_file_that_is_replaced_stays_the_old_one_until_the_new_one_is_whole():
    Path("x").write_bytes(b"old")
    with replacing(Path("x")) as file:
        file.write(b"new")
        assert Path("x").read_bytes() == b"old"
    assert Path("x").read_bytes() == b"new"
    assert sorted(os.listdir()) == ["precious", "x"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_write_that_is_broken_off_leaves_the_old_file_and_nothing_else(failure):
    Path("x").write_bytes(b"old")

    def write_half():
        with replacing(Path("x")) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert Path("x").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["precious", "x"]


def test_a_streamed_file_is_synced_before_it_gets_its_name_and_its_folder_after(monkeypatch):
    """A rename alone orders nothing on disk."""
    calls = []
    for name in ("fsync", "rename", "fsync_directory"):
        real = getattr(FileOps, name)

        def noted(self, *args, name=name, real=real):
            calls.append(name)
            return real(self, *args)

        monkeypatch.setattr(FileOps, name, noted)
    with replacing(Path("x")) as file:
        file.write(b"new")
    assert calls == ["fsync", "rename", "fsync_directory"]


def test_a_folder_stays_the_same_one_when_it_is_moved_and_another_takes_its_name():
    Path("a").mkdir()
    with Folder.open(Path("a")) as folder:
        Path("a").rename("b")
        Path("a").mkdir()
        replace_file(FileOps(), folder, "x", b"1")
        assert Path("b/x").read_bytes() == b"1"
        assert list(Path("a").iterdir()) == []
        assert folder.where() == Path("b").resolve()
        assert not folder.is_gone()


def test_a_folder_that_was_deleted_is_gone_whatever_has_its_name_now():
    Path("a").mkdir()
    with Folder.open(Path("a")) as folder:
        Path("a").rmdir()
        Path("a").mkdir()
        assert folder.is_gone()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("precious", path)])
def test_only_a_regular_file_is_read(here, make):
    make("x")
    with pytest.raises((OSError, ValueError)):
        here.read("x", 100)


def test_a_file_larger_than_allowed_is_not_read(here):
    Path("x").write_bytes(b"0" * 101)
    with pytest.raises(ValueError, match="larger than 100 bytes"):
        here.read("x", 100)
