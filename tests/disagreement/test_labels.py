"""Files of labels: written and read, put together, and refused where they make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipopt as fo
from flipopt.disagreement import merge, read_labels
from flipopt.disagreement.labelling import Answers, as_pixels, read_images
from flipopt.disagreement.labels import HEADER, Answer, Labels

GOOD = f"{HEADER}\nann,0,3,1.500\nann,2,4,0.250\nbob,0,3,2.000\n"


def file(folder: Path, text: str | bytes, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_is_a_table_of_people_and_images(tmp_path: Path) -> None:
    found = read_labels(file(tmp_path, GOOD), images=3, classes=10)
    assert found.labellers == ("ann", "bob")
    assert found.labels.tolist() == [[3, -1, 4], [3, -1, -1]]
    assert found.seconds[0, 2] == 0.25
    assert found.missing == {"ann": [1], "bob": [1, 2]}
    assert "3 answers. 'ann' lacks 1 image. 'bob' lacks 2 images." in str(found)
    with pytest.raises(fo.InputError, match=r"'ann' lacks 1 image \(1\); 'bob' lacks 2 images \(1, 2\)"):
        found.require_complete()
    again = tmp_path / "again.csv"
    found.save(again)
    assert again.read_text() == GOOD


def test_labels_go_into_a_study_as_they_are_read(tmp_path: Path) -> None:
    text = f"{HEADER}\n" + "".join(f"{who},{image},{image % 2},1\n" for who in "ab" for image in range(4))
    found = read_labels(file(tmp_path, text), 4, ["zero", "one"])
    found.require_complete()
    study = fo.disagreement.study([[0, 1, 0, 1], [0, 1, 1, 1]], None, found, resamples=0)
    assert study.classes == ("zero", "one")
    assert study.type_a.tolist() == [False, False, True, False]
    assert found.complete().labellers == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (
            "labeller,image,label\nann,0,1\n",
            "expected a first line labeller,image,label,seconds, found labeller, image",
        ),
        (f"{HEADER}\nann,0,1\n", "line 2: expected 4 cells, found 3"),
        (f"{HEADER}\nann,0,1,1\nann,0,2,1\n", "line 3: a second answer of 'ann' for image 0; the first is line 2"),
        (f"{HEADER}\nann,3,1,1\n", "line 2: image: expected a whole number from 0 to 2, found '3'"),
        (f"{HEADER}\nann,0,10,1\n", "line 2: label: expected a whole number from 0 to 9, found '10'"),
        (f"{HEADER}\nann,0,-1,1\n", "line 2: label: expected a whole number"),
        (f"{HEADER}\nann,0,1.0,1\n", "line 2: label: expected a whole number"),
        (f"{HEADER}\nann,0,\u0661,1\n", "line 2: label: expected a whole number"),
        (f"{HEADER}\nann,0,1,nan\n", "line 2: seconds: expected a number >= 0, found 'nan'"),
        (f"{HEADER}\nann,0,1,\n", "line 2: seconds: expected a number"),
        (f"{HEADER}\n,0,1,1\n", "line 2: expected a name of 1 to 40 characters"),
        (f"{HEADER}\n=1+1,0,1,1\n", "line 2: expected a name .* does not begin with = .* found '=1\\+1'"),
        (f"{HEADER}\n{'a' * 41},0,1,1\n", "line 2: expected a name"),
        (f'{HEADER}\n"ann,0,1,1\n', "not a CSV file"),
        (b"\xff\xfe\x00", "not a CSV file"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(fo.FileFormatError, match=message) as error:
        read_labels(path, images=3, classes=10)
    assert str(path) in str(error.value)


def test_files_of_several_people_are_put_together(tmp_path: Path) -> None:
    one = read_labels(file(tmp_path, f"{HEADER}\nann,0,1,1\nbob,1,2,1\n"), 2, 3)
    other = read_labels(file(tmp_path, f"{HEADER}\nann,1,0,1\n"), 2, 3)
    both = merge([one, other])
    assert both.labels.tolist() == [[1, 0], [-1, 2]]
    with pytest.raises(fo.InputError, match="one answer of 'ann' for image 0, found two"):
        merge([one, one])
    with pytest.raises(fo.InputError, match="same images and classes"):
        merge([one, read_labels(tmp_path / "labels.csv")])


names = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=("C", "Z")), min_size=1, max_size=12
).filter(lambda name: name[0] not in "=+-@")


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.tuples(names, st.integers(0, 8)), st.tuples(st.integers(0, 9), st.integers(0, 10**6))))
def test_what_is_written_is_read_whatever_the_names(tmp_path_factory, answers: dict) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    kept = Answers(path, 9, 10)
    for (name, image), (label, took) in answers.items():
        kept.add(Answer(name, image, label, took / 1000))
    kept.close()
    found = read_labels(path, 9, 10)
    assert {(a.labeller, a.image): (a.label, round(1000 * a.seconds)) for a in found.answers()} == answers


def test_answers_go_on_where_they_were_and_undo_takes_the_last_of_one_person(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    kept = Answers(path, 3, 10)
    for answer in (Answer("ann", 0, 3, 1.5), Answer("ann", 2, 4, 0.25), Answer("bob", 0, 3, 2.0)):
        kept.add(answer)
    kept.add(Answer("ann", 2, 4, 9.0))  # once more, as after a reply that was lost
    assert path.read_text() == GOOD
    with pytest.raises(fo.InputError, match="'ann' has labelled image 2"):
        kept.add(Answer("ann", 2, 5, 1.0))
    assert kept.undo("ann") == Answer("ann", 2, 4, 0.25)
    assert kept.undo("carl") is None
    assert path.read_text() == GOOD.replace("ann,2,4,0.250\n", "")
    kept.add(Answer("ann", 1, 7, 1.0))
    kept.close()
    again = Answers(path, 3, 10)
    assert [answer.image for answer in again.of("ann")] == [0, 1]
    assert again.count == 3
    again.close()


def test_a_half_written_line_is_taken_away(tmp_path: Path) -> None:
    for cut in range(len(HEADER) + 1, len(GOOD)):
        path = file(tmp_path, GOOD[:cut])
        kept = Answers(path, 3, 10)
        whole = GOOD[: GOOD[:cut].rfind("\n") + 1]
        assert path.read_text() == whole
        kept.add(Answer("dora", 1, 1, 1.0))
        kept.close()
        assert path.read_text() == f"{whole}dora,1,1,1.000\n"
    for cut in range(len(HEADER)):
        path = file(tmp_path, GOOD[:cut])
        Answers(path, 3, 10).close()
        assert path.read_text() == f"{HEADER}\n"


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    for content in ("my notes", "name,age\nann,3\n", GOOD + "ann,1,99,1\n"):
        path = file(tmp_path, content)
        with pytest.raises(fo.FileFormatError):
            Answers(path, 3, 10)
        assert path.read_text() == content


def test_two_processes_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    first = Answers(path, 3, 10)
    with pytest.raises(fo.StorageError, match="another process writes to it"):
        Answers(path, 3, 10)
    first.add(Answer("ann", 0, 0, 1.0))
    first.undo("ann")  # which makes another file of it
    with pytest.raises(fo.StorageError, match="another process writes to it"):
        Answers(path, 3, 10)
    first.close()
    Answers(path, 3, 10).close()


def test_an_answer_that_does_not_fit_on_the_disk_leaves_no_trace(tmp_path: Path, monkeypatch) -> None:
    kept = Answers(tmp_path / "labels.csv", 3, 10)
    kept.add(Answer("ann", 0, 0, 1.0))

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("flipopt.disagreement.labelling.answers.os.fsync", full)
        with pytest.raises(fo.StorageError, match="No space left"):
            kept.add(Answer("ann", 1, 0, 1.0))
    kept.add(Answer("ann", 2, 0, 1.0))
    kept.close()
    assert [answer.image for answer in read_labels(tmp_path / "labels.csv").answers()] == [0, 2]


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 3), (3, 3, 4, 5), (3, 1, 4, 5), (3, 4, 5, 1)])
def test_images_of_any_usual_shape_are_shown(shape: tuple[int, ...], tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=values)
    found = read_images(tmp_path / "images.npz")
    assert found.shape in ((3, 4, 5), (3, 4, 5, 3))
    np.testing.assert_array_equal(as_pixels((values / 255).astype(np.float32), "images"), found)
    flat = as_pixels(found.reshape(3, -1), "images", found.shape[1:])
    np.testing.assert_array_equal(flat, found)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((3, 20)), "expected images"),
        (np.zeros((0, 4, 5)), "expected images"),
        (np.full((1, 4, 5), 2.0), "numbers from 0 to 1, found float64 from 2 to 2"),
        (np.zeros((1, 4, 5), dtype=np.int64), "expected bytes"),
        (np.full((1, 4, 5), np.nan), "expected bytes, or numbers from 0 to 1"),
        (np.zeros((1, 2000, 5)), "expected sides up to"),
    ],
)
def test_what_is_no_image_is_refused(values: np.ndarray, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        as_pixels(values, "images")


def entry(**changes: object) -> dict:
    answers = {"given": 3, "guessed": 1, "neither": 1}
    return {"id": 7, "given_original_label": 4, "our_guessed_label": 6, "mturk": answers} | changes


def test_suspected_label_errors_have_five_labels_an_image(tmp_path: Path) -> None:
    same = entry(id=9, our_guessed_label=4, mturk={"given": 4, "guessed": 4, "neither": 1})
    found = fo.disagreement.read_label_errors(file(tmp_path, json.dumps([entry(), same]), "mnist_mturk.json"))
    assert found.rows.tolist() == [7, 9]
    assert found.classes[-1] == "neither"
    assert sorted(found.labels[:, 0]) == [4, 4, 4, 6, 10]
    assert sorted(found.labels[:, 1]) == [4, 4, 4, 4, 10]
    study = fo.disagreement.study([[4, 4], [4, 6]], None, found, resamples=0)
    assert study.people.share.tolist() == [0.6, 0.8]
    two = study.agreement.of("two people disagree")  # 7 of 10 pairs, and 4 of 10; pairs of rows are nobody's
    assert two["share"] == pytest.approx(0.55)
    assert np.isnan(two["deviation"])
    assert "two of them on 55%." in str(study)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "expected a list of images"),
        ([1], "entry 0: expected a count 'given_original_label'"),
        ([entry(our_guessed_label=10)], "our_guessed_label: expected a class from 0 to 9, found 10"),
        ([entry(mturk={"given": 1})], "entry 0: mturk: expected a count 'guessed'"),
        ([entry(mturk={"given": 0, "guessed": 0, "neither": 0})], "expected 1 to .* labels an image, found 0"),
        ([entry(mturk={"given": 2**30, "guessed": 0, "neither": 0})], "labels an image"),
        ([entry(given_original_label=6)], "the same count of the same label twice"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, entries: object, message: str) -> None:
    with pytest.raises(fo.FileFormatError, match=message):
        fo.disagreement.read_label_errors(file(tmp_path, json.dumps(entries), "entries.json"))
    with pytest.raises(fo.FileFormatError, match="not a JSON file"):
        fo.disagreement.read_label_errors(file(tmp_path, "[" * 100_000, "entries.json"))


def test_counts_become_labels_of_nobody(tmp_path: Path) -> None:
    counts = np.zeros((2, 10), dtype=np.int64)
    counts[0, [3, 5]] = 2, 1
    counts[1, 9] = 5
    np.save(tmp_path / "counts.npy", counts)
    found = fo.disagreement.read_cifar_10h(tmp_path / "counts.npy")
    assert found.labels.T.tolist() == [[3, 3, 5, -1, -1], [9, 9, 9, 9, 9]]
    assert found.classes[3] == "cat"
    np.save(tmp_path / "shares.npy", counts / 5)
    with pytest.raises(fo.FileFormatError, match="expected counts as whole numbers"):
        fo.disagreement.read_cifar_10h(tmp_path / "shares.npy")
    np.save(tmp_path / "few.npy", counts[:, :9])
    with pytest.raises(fo.FileFormatError, match="expected counts"):
        fo.disagreement.read_cifar_10h(tmp_path / "few.npy")


def test_answers_about_named_files_are_a_table(tmp_path: Path) -> None:
    text = "who,stimulus,response\n1,b.png,3\n1,a.png,7.0\n2,b.png,5\n2,b.png,3\n2,a.png,none\n"
    path = file(tmp_path, text)
    found, files = fo.disagreement.read_varimnist(path, labeller="who")
    assert files == ("a.png", "b.png")
    assert found.labellers == ("1", "2")
    assert found.labels.tolist() == [[7, 3], [-1, 3]]
    nobodys, _ = fo.disagreement.read_varimnist(path)
    assert nobodys.labels.T.tolist() == [[7, -1, -1], [3, 3, 5]]
    with pytest.raises(fo.FileFormatError, match="expected a column 'person', found who, stimulus, response"):
        fo.disagreement.read_varimnist(path, labeller="person")


def test_an_empty_set_of_labels_says_so() -> None:
    assert "0 labellers" in str(Labels.of([], images=3))
