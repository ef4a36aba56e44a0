"""Files with boxes, and data sets of (image, label)."""

import pytest
import torch
from PIL import Image

from kinfold.data.datasets import DatasetImages, ImageFiles
from kinfold.data.loader import ImageLoader
from kinfold.data.read import read_table
from kinfold.data.samplers import RandomBatchSampler, SequentialBatchSampler
from kinfold.data.table import Box
from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.images.preprocessing import Preprocessing

N = 12
PREPROCESSING = Preprocessing(size=8, crop_ratio=1.0)


def test_boxes_cut_the_object_out_before_the_transform(paths):
    boxes = [Box(x_1=2, x_2=10, y_1=1, y_2=9)] + [None] * (N - 1)
    images = ImageFiles(paths, boxes=boxes, draft_size=4)
    assert images[0].tobytes() == Image.open(paths[0]).crop((2, 1, 10, 9)).tobytes()
    assert images[1].size == (18, 14)


def test_a_box_outside_its_picture_names_the_file(paths):
    images = ImageFiles(paths[:1], boxes=[Box(x_1=2, x_2=19, y_1=1, y_2=9)])
    with pytest.raises(DataError, match=r"0\.png has 18 × 14 pixels, its box \(2, 19, 1, 9\)"):
        images[0]
    with pytest.raises(ShapeError, match="1 boxes for 12 paths"):
        ImageFiles(paths, boxes=[None])


def test_jpegs_are_decoded_no_larger_than_needed(tmp_path):
    Image.new("RGB", (400, 200)).save(tmp_path / "large.jpg")
    box = Box(x_1=0, x_2=300, y_1=0, y_2=100)
    assert ImageFiles([tmp_path / "large.jpg"], draft_size=50)[0].size == (100, 50)
    assert ImageFiles([tmp_path / "large.jpg"], draft_size=50, boxes=[box])[0].size == (300, 100)


@pytest.mark.parametrize("targets", [False, True])
def test_any_data_set_of_image_and_label_is_accepted(paths, targets):
    dataset = [(Image.open(path).convert("L"), ("kind", "cba"[row % 3])) for row, path in enumerate(paths)]
    if targets:
        dataset = WithTargets(dataset)
    images = DatasetImages(dataset)
    assert images.classes == [("kind", "a"), ("kind", "b"), ("kind", "c")]
    assert images.label.tolist() == [2, 1, 0] * 4
    loader = ImageLoader(images, images.label, transform=PREPROCESSING, sampler=SequentialBatchSampler(N, 5))
    first = next(loader.epoch(0))
    assert first.item.tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(first.image[1], PREPROCESSING(Image.open(paths[1]).convert("L")))


class WithTargets:
    """A data set as torchvision's: labels known without reading images."""

    def __init__(self, pairs):
        self.pairs, self.targets, self.n_read = pairs, [label for _, label in pairs], 0

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, row):
        assert self.n_read < 5, "labels were read from the images"
        self.n_read += 1
        return self.pairs[row]


def test_labels_that_cannot_be_sorted_count_in_order_of_appearance():
    images = DatasetImages([(torch.zeros(3, 2, 2), label) for label in ("b", 3, torch.tensor(7), "b", (1, 2))])
    assert images.classes == ["b", 3, 7, (1, 2)]
    assert images.label.tolist() == [0, 1, 2, 0, 3]
    assert images[0].shape == (3, 2, 2)
    with pytest.raises(ShapeError, match="2 labels for 1 images"):
        DatasetImages([(0, 0)], label=[1, 2])


def test_a_file_that_a_data_set_cannot_read_is_named():
    class Missing(list):
        def __getitem__(self, row):
            return Image.open("nowhere.png"), 0

    with pytest.raises(DataError, match="image 1 of Missing"):
        DatasetImages(Missing([0, 0]), label=[0, 0])[1]


def test_a_sampler_of_batches_passed_as_sampler_is_explained(paths):
    with pytest.raises(ConfigError, match="batch_sampler="):
        next(iter(torch.utils.data.DataLoader(ImageFiles(paths), sampler=RandomBatchSampler(N, batch_size=4))))


def test_a_table_gives_its_paths_and_boxes(paths):
    table_file = paths[0].parent / "table.csv"
    rows = ["path,label,split,x_1,x_2,y_1,y_2", "0.png,a,train,2,10,1,9", "1.png,b,train,0,18,0,14"]
    table_file.write_text("\n".join(rows))
    images = ImageFiles.of_table(read_table(table_file))
    assert images.paths == (str(paths[0]), str(paths[1]))
    assert [images[0].size, images[1].size] == [(8, 8), (18, 14)]
